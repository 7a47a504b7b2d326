//! The story of a channel in a program's hands: it takes orders, does what takes time one after the other, and listens.

use std::collections::VecDeque;

use base::{ChannelId, Instant};
use call::stasis::{BridgeKind, Order, PlaybackState, RecordingState, Work};
use call::{Chan, ChanEvent, ChanState, Indication, Stop};

use super::digits::Sending;
use super::place::Placed;
use super::play::Playing;
use super::record::Recording;
use crate::{Call, Flow, Outcome};

/// Orders that are carried out before other calls have their turn.
const ORDERS_PER_TURN: usize = 64;

/// What a channel does that takes time.
pub(super) enum Doing {
    Play(Playing),
    Record(Recording),
    Digits(Sending),
}

/// A channel in a program's hands. What it does ends with this, however the story ends.
pub(super) struct Stay<'a> {
    pub(super) call: &'a Call,
    pub(super) chan: &'a Chan,
    works: VecDeque<Work>,
    pub(super) doing: Option<Doing>,
    /// Music that the program wants it to hear.
    music: Option<String>,
    /// Music that it hears, or was to hear and there is none.
    hears: Option<String>,
    pub(super) placed: Option<Placed>,
    /// Its other side was told that sound comes before the answer.
    pub(super) is_told_early: bool,
}

impl<'a> Stay<'a> {
    pub(super) fn new(call: &'a Call) -> Self {
        let works = VecDeque::new();
        Self {
            call,
            chan: &call.chan,
            works,
            doing: None,
            music: None,
            hears: None,
            placed: None,
            is_told_early: false,
        }
    }
    pub(super) fn id(&self) -> ChannelId {
        self.chan.id()
    }
    /// Stays until the program lets go, or the call goes elsewhere or ends.
    pub(super) async fn run(&mut self) -> Outcome {
        let mut in_a_row = 0;
        loop {
            while let Some(order) = self.chan.core(|core| core.stasis_next_order(self.chan.id())) {
                if !self.carry_out(order)? {
                    return Ok(Flow::Continue);
                }
                in_a_row += 1;
                if in_a_row >= ORDERS_PER_TURN {
                    in_a_row = 0;
                    self.chan.pause().await;
                }
            }
            self.drop_unwanted();
            self.work().await?;
            self.settle_music().await?;
            let deadline = self.deadline();
            match self.chan.event(deadline).await? {
                Some(event) => self.heard(event).await?,
                None => self.due()?,
            }
        }
    }
    /// Carries an order out, or queues it; false when it lets the channel go.
    fn carry_out(&mut self, order: Order) -> Result<bool, Stop> {
        let id = self.chan.id();
        match order {
            Order::Work(work) => self.works.push_back(work),
            Order::Music(class) => {
                (self.music, self.hears) = (Some(class), None);
            }
            Order::NoMusic => self.music = None,
            Order::Dial(placing) => self.place(placing),
            Order::Move(app, told) => drop(self.chan.core(|core| core.stasis_move(id, &app, told))),
            Order::Continue => return Ok(false),
        }
        Ok(true)
    }
    /// Takes works out of the queue that the program does not want any more.
    fn drop_unwanted(&mut self) {
        let id = self.chan.id();
        let chan = self.chan;
        self.works.retain(|work| {
            chan.core(|core| {
                let stays = match work {
                    Work::Play(play) if core.stasis.playback(play).is_none_or(|p| p.is_stopped()) => {
                        core.stasis_end_playback(play, PlaybackState::Done);
                        false
                    }
                    Work::Record(name) if core.stasis.recording(name).is_none_or(|r| r.is_stopped()) => {
                        core.stasis_end_recording(name, RecordingState::Canceled, "", Default::default());
                        false
                    }
                    _ => true,
                };
                if !stays {
                    core.stasis_work_done(id);
                }
                stays
            })
        });
    }
    /// Begins what is next, and goes on with what is steered.
    async fn work(&mut self) -> Result<(), Stop> {
        loop {
            match self.doing.take() {
                Some(Doing::Play(playing)) => {
                    if let Some(playing) = playing.steered(self).await? {
                        self.doing = Some(Doing::Play(playing));
                        return Ok(());
                    }
                }
                Some(Doing::Record(recording)) => {
                    if let Some(recording) = recording.looked(self) {
                        self.doing = Some(Doing::Record(recording));
                        return Ok(());
                    }
                }
                Some(doing @ Doing::Digits(_)) => {
                    self.doing = Some(doing);
                    return Ok(());
                }
                None => {
                    let Some(next) = self.works.pop_front() else { return Ok(()) };
                    self.begin(next).await?;
                    if self.doing.is_some() {
                        return Ok(());
                    }
                }
            }
            self.done();
        }
    }
    async fn begin(&mut self, work: Work) -> Result<(), Stop> {
        match work {
            Work::Play(id) => {
                self.hush();
                if self.chan.state() != ChanState::Up && !core::mem::replace(&mut self.is_told_early, true) {
                    self.chan.indicate(&Indication::Progress);
                }
                let playing = Playing::new(id);
                self.doing = playing.item(self).await?.map(Doing::Play);
            }
            Work::Record(name) => {
                let recording = Recording::new(name);
                self.doing = recording.begin(self).await?.map(Doing::Record);
            }
            Work::Digits(digits) => self.doing = Some(Doing::Digits(Sending::new(digits, self.chan.now()))),
        }
        Ok(())
    }
    /// A work is done.
    fn done(&self) {
        self.chan.core(|core| core.stasis_work_done(self.chan.id()));
    }
    fn deadline(&self) -> Option<Instant> {
        let doing = match &self.doing {
            Some(Doing::Record(recording)) => recording.deadline(self.chan),
            Some(Doing::Digits(sending)) => Some(sending.at()),
            Some(Doing::Play(_)) | None => None,
        };
        [doing, self.placed.as_ref().and_then(Placed::deadline)].into_iter().flatten().min()
    }
    /// Something's time has come.
    fn due(&mut self) -> Result<(), Stop> {
        self.place_due();
        if let Some(Doing::Digits(sending)) = &mut self.doing
            && !sending.due(self.chan)
        {
            self.doing = None;
            self.done();
        }
        Ok(())
    }
    async fn heard(&mut self, event: ChanEvent) -> Result<(), Stop> {
        match event {
            ChanEvent::Played { play, end, offset } => match self.doing.take() {
                Some(Doing::Play(playing)) => {
                    self.doing = playing.played(self, (play, end, offset)).await?.map(Doing::Play);
                    if self.doing.is_none() {
                        self.done();
                    }
                }
                Some(Doing::Record(mut recording)) => {
                    recording.played(play);
                    self.doing = Some(Doing::Record(recording));
                }
                doing => self.doing = doing,
            },
            ChanEvent::Silence(ms) => {
                if let Some(Doing::Record(recording)) = &mut self.doing {
                    recording.silent(ms);
                }
            }
            ChanEvent::Digit { digit, duration_ms, relayed } => {
                if let Some(Doing::Record(recording)) = &mut self.doing {
                    recording.pressed(self.chan, digit);
                }
                if !relayed {
                    self.pass_on(
                        |member| !member.absorbs_digits,
                        |other| other.pass_digit(digit, duration_ms),
                    );
                }
            }
            ChanEvent::Text(text) => self.pass_on(
                |_| true,
                |other| {
                    other.shard().with_tech(other.id(), |tech, core| tech.pass_text(core, other.id(), &text));
                },
            ),
            ChanEvent::ConnectedLine(party) => {
                if let [other] = self.others().as_slice() {
                    other.connect_line(*party).await;
                }
            }
            ChanEvent::Redirecting(redirecting) => {
                if let [other] = self.others().as_slice() {
                    other.redirect_line(*redirecting).await;
                }
            }
            ChanEvent::Charge(advice) => {
                if let [other] = self.others().as_slice() {
                    other.advise_charge(&advice);
                }
            }
            ChanEvent::Hold => self.hold(true),
            ChanEvent::Unhold => self.hold(false),
            ChanEvent::Conference => self.leave_when_sent_out(),
            ChanEvent::Proceeding
            | ChanEvent::Ringing
            | ChanEvent::Progress
            | ChanEvent::Answered
            | ChanEvent::Forwarded(_) => self.place_heard(&event),
            // The program hears of the rest by notices, and acts on it or not.
            _ => {}
        }
        Ok(())
    }
    /// Its user holds whom it talks to, or does no more.
    fn hold(&self, holds: bool) {
        if let [other] = self.others().as_slice() {
            other.indicate(if holds { &Indication::Hold } else { &Indication::Unhold });
        }
        self.chan.core(|core| core.stasis_bridge_held(self.chan.id(), holds));
    }
    /// A manager, or a console, has sent it out of its bridge.
    fn leave_when_sent_out(&self) {
        let id = self.chan.id();
        self.chan.core(|core| {
            if core.conferences.member(id).is_some_and(|member| member.leaves.is_some()) {
                core.conference_leave(id);
            }
        });
    }
    /// Who else is in its bridge, where all hear all.
    fn others(&self) -> Vec<Chan> {
        let own = self.chan.id();
        let members = self.chan.core(|core| {
            let bridge = core.stasis_bridge_of(own).filter(|bridge| bridge.kind == BridgeKind::Mixing);
            bridge.map(|bridge| bridge.members.clone()).unwrap_or_default()
        });
        let others = members.into_iter().map(|member| member.channel).filter(|id| *id != own);
        others.map(|id| Chan::new(self.chan.shard().clone(), id)).collect()
    }
    /// Lets the others in its bridge have something, if it may be passed on.
    fn pass_on(&self, may: impl Fn(&call::stasis::BridgeMember) -> bool, pass: impl Fn(&Chan)) {
        let own = self.chan.id();
        let may = self.chan.core(|core| {
            let member = core.stasis_bridge_of(own)?.members.iter().find(|member| member.channel == own)?;
            Some(may(member))
        });
        if may == Some(true) {
            self.others().iter().for_each(pass);
        }
    }

    /// Lets it hear the music that it is to hear as things are.
    async fn settle_music(&mut self) -> Result<(), Stop> {
        if matches!(&self.doing, Some(Doing::Play(_)))
            || matches!(&self.doing, Some(Doing::Record(recording)) if recording.sounds())
        {
            return Ok(());
        }
        let id = self.chan.id();
        let is_told_held = self.chan.with(|c| c.passes_hold || c.keeps_holds)?;
        let of_bridge =
            self.chan.core(|core| core.stasis_bridge_of(id).map(|bridge| bridge.music_for(id, is_told_held)));
        let wanted = self.music.clone().or(of_bridge.flatten());
        if wanted == self.hears {
            return Ok(());
        }
        self.hush();
        if let Some(class) = wanted {
            // Without such a class there is nothing to hear, which was logged.
            self.chan.start_music(&class).await?;
            self.hears = Some(class);
        }
        Ok(())
    }
    /// Ends its music.
    pub(super) fn hush(&mut self) {
        if self.hears.take().is_some() {
            self.chan.stop_music();
        }
    }
}

impl Drop for Stay<'_> {
    fn drop(&mut self) {
        self.hush();
        match self.doing.take() {
            Some(Doing::Play(playing)) => playing.cut_short(self.chan),
            Some(Doing::Record(recording)) => recording.cut_short(self.chan),
            Some(Doing::Digits(_)) | None => {}
        }
        self.place_cut_short();
        let works = core::mem::take(&mut self.works);
        let id = self.chan.id();
        self.chan.core(|core| {
            // What was ordered and not looked at yet is not done either.
            let unread = core::iter::from_fn(|| core.stasis_next_order(id));
            let unread: Vec<Order> = unread.collect();
            let unread = unread.into_iter().filter_map(|order| match order {
                Order::Work(work) => Some(work),
                _ => None,
            });
            for work in works.into_iter().chain(unread) {
                match work {
                    Work::Play(play) => core.stasis_end_playback(&play, PlaybackState::Failed),
                    Work::Record(name) => {
                        let cause = "the channel has left the application";
                        core.stasis_end_recording(&name, RecordingState::Failed, cause, Default::default());
                    }
                    Work::Digits(_) => {}
                }
            }
            core.stasis_leave(id);
        });
    }
}
