//! Channels that the field's server makes for itself in conferences: one that announces, one that records. Here nobody but
//! their names is needed: watchers see them in numbers of members, in `BRIDGEPEER`, as devices and in channel events.

use core::task::Poll;
use core::time::Duration;
use std::collections::VecDeque;
use std::rc::Rc;

use base::{BridgeId, Command, Instant, RoomId};

use crate::core::BridgeGuest;
use crate::{Cel, CelKind, Core, DeviceState, Extras, Notice, Prompt, Shard};

/// Most announcements whose beginning and end are still to be logged: more than anybody listens to in a minute. Those after
/// them are heard and not logged.
const UNLOGGED_MAX: usize = 64;

/// Who announces in a conference, and who records it.
#[derive(Debug, Clone)]
pub(super) struct Announcer {
    /// Its name, without the half.
    name: String,
    uniqueid: Rc<str>,
    /// Who records, while it does.
    recorder: Option<Rc<str>>,
    /// What is to be heard, and how long each takes.
    waiting: VecDeque<(Prompt, Duration)>,
    /// The beginning of one has been logged, and not its end.
    is_heard: bool,
    /// A story logs them.
    is_logged: bool,
}

impl Core {
    fn conference_guest(&mut self, technology: &str, conference: &str) -> (String, Rc<str>) {
        let (serial, wall) = (self.conferences.guests, self.services.wall.now_micros());
        self.conferences.guests = serial.wrapping_add(1);
        (format!("{technology}/{conference}-{serial:08x}"), self.next_uniqueid(wall).into())
    }
    /// A conference has begun.
    pub(super) fn conference_announcer_comes(&mut self, conference: &str) {
        let (name, uniqueid) = self.conference_guest("CBAnn", conference);
        let Some(found) = self.conferences.by_name.get_mut(conference) else { return };
        let (bridge, half) = (found.bridge, format!("{name};2").into());
        found.announcer = Some(Announcer {
            name,
            uniqueid: uniqueid.clone(),
            recorder: None,
            waiting: VecDeque::new(),
            is_heard: false,
            is_logged: false,
        });
        self.guest_enters(bridge, BridgeGuest { name: half, uniqueid });
    }
    /// A conference is over, and so is its bridge.
    pub(super) fn conference_announcer_goes(&mut self, conference: &str, bridge: BridgeId) {
        let device = format!("CBAnn/{conference}");
        let is =
            |device: String, state: DeviceState| Notice::DeviceStateChange { device, state: state.name() };
        self.notice(|_| Some(is(device.clone(), DeviceState::InUse)));
        self.bridge_destroy(bridge);
        self.notice(|_| Some(is(device, DeviceState::Unknown)));
    }
    pub(super) fn conference_recorder_comes(&mut self, conference: &str) {
        let (name, uniqueid) = self.conference_guest("CBRec", conference);
        let Some(found) = self.conferences.by_name.get_mut(conference) else { return };
        let (bridge, name): (_, Rc<str>) = (found.bridge, name.into());
        if let Some(announcer) = &mut found.announcer {
            announcer.recorder = Some(name.clone());
        }
        self.guest_enters(bridge, BridgeGuest { name, uniqueid });
    }
    pub(super) fn conference_recorder_goes(&mut self, conference: &str) {
        let Some(found) = self.conferences.by_name.get_mut(conference) else { return };
        let bridge = found.bridge;
        if let Some(name) = found.announcer.as_mut().and_then(|announcer| announcer.recorder.take()) {
            self.guest_leaves(bridge, &name);
        }
    }
    /// Everyone in a conference is to hear a linear prompt. `true`: a story has to log when it is heard.
    fn conference_hears(&mut self, conference: &str, prompt: &Prompt) -> bool {
        let Some(found) = self.conferences.by_name.get_mut(conference) else { return false };
        let room = found.room;
        let logs = found.announcer.as_mut().is_some_and(|announcer| {
            if announcer.waiting.len() < UNLOGGED_MAX && prompt.is_named() {
                announcer.waiting.push_back((prompt.clone(), prompt.lasts()));
            }
            !announcer.waiting.is_empty() && !std::mem::replace(&mut announcer.is_logged, true)
        });
        self.media(Command::Announce { room, clip: prompt.clip().clone() });
        logs
    }
    /// What everyone would be to hear comes when nobody is left: that is logged only.
    pub fn conference_unheard(&mut self, conference: &str, prompts: &[Prompt]) {
        let found = self.conferences.by_name.get_mut(conference).and_then(|found| found.announcer.as_mut());
        if let Some(announcer) = found {
            let named = prompts.iter().filter(|prompt| prompt.is_named());
            announcer.waiting.extend(named.map(|prompt| (prompt.clone(), Duration::ZERO)));
        }
    }
    /// What was announced is over and the next begins: how long that is heard; `None` when there is nothing more.
    fn conference_heard(&mut self, conference: &str, room: RoomId) -> Option<Duration> {
        let found = self.conferences.by_name.get_mut(conference).filter(|found| found.room == room)?;
        let announcer = found.announcer.as_mut()?;
        let was_heard = std::mem::take(&mut announcer.is_heard);
        let next = announcer.waiting.pop_front();
        (announcer.is_heard, announcer.is_logged) = (next.is_some(), next.is_some());
        if was_heard {
            self.conference_announcer_logs(conference, CelKind::StreamEnd, Vec::new());
        }
        let (prompt, lasts) = next?;
        self.conference_announcer_logs(conference, CelKind::StreamBegin, prompt.said());
        Some(lasts)
    }
    /// Nobody is there any more who hears what is announced, and what was still to be.
    pub(super) fn conference_announcer_falls_silent(&mut self, conference: &str) {
        if let Some(room) = self.conferences.get(conference).map(|found| found.room) {
            while self.conference_heard(conference, room).is_some() {}
        }
    }
    fn conference_announcer_logs(&mut self, conference: &str, kind: CelKind, extra: Extras) {
        if !self.keeps(kind) {
            return;
        }
        let time = self.services.wall.now_micros();
        let Some(announcer) = self.conferences.get(conference).and_then(|found| found.announcer.as_ref())
        else {
            return;
        };
        let (name, uniqueid) = (format!("{};1", announcer.name), announcer.uniqueid.clone());
        self.log_cel(Cel { extra, ..Cel::of_guest(kind, time, name.into(), uniqueid) });
    }
}

impl Shard {
    /// Lets everyone in a conference hear linear prompts, one after the other; how long they take.
    pub fn conference_announce(self: &Rc<Self>, conference: &str, prompts: &[Prompt]) -> Duration {
        let mut whole = Duration::ZERO;
        for prompt in prompts {
            let mut core = self.core.borrow_mut();
            let logs = core.conference_hears(conference, prompt);
            let room = core.conferences.get(conference).map(|found| found.room);
            drop(core);
            whole += prompt.lasts();
            if let Some(room) = room.filter(|_| logs) {
                let (shard, conference) = (self.clone(), conference.to_owned());
                self.spawn(None, async move {
                    loop {
                        let lasts = shard.core.borrow_mut().conference_heard(&conference, room);
                        let Some(lasts) = lasts else { return };
                        let until = shard.core.borrow().now + lasts;
                        shard.rest(until).await;
                    }
                });
            }
        }
        whole
    }
    /// Waits until a time comes; for stories that no channel owns.
    async fn rest(&self, until: Instant) {
        let mut waited = false;
        std::future::poll_fn(|_| {
            let mut exec = self.exec.borrow_mut();
            let is_over = std::mem::replace(&mut waited, true);
            exec.set_deadline((!is_over).then_some(until));
            if is_over { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
    }
}
