//! Page: calls many phones at once and lets them hear the caller; intercom.
//!
//! The caller's story owns all legs. Each rings, hears an announcement if there is one, and enters a conference in which,
//! unless it is asked for otherwise, only the caller is heard. The conference ends with the story.

use core::time::Duration;
use std::collections::VecDeque;

use base::{Cause, ChannelId, Instant, MemberSettings, PlayId};
use call::conference::Seat;
use call::monitor::{MonitorPlan, Side};
use call::{Chan, ChanEvent, DeviceState, Leg, Level, Prompt, Stop};
use dialplan::Options;

use crate::call_ctx::args;
use crate::dial::{legs, notice_end, routine, status_of};
use crate::flow::rows;
use crate::monitor::spooled;
use crate::{Call, Flow, Outcome, Run, hints};

/// Most phones of one page: a floor of a building, and as many as Dial calls.
const TARGETS_MAX: usize = 128;
/// How often one phone may send the call on.
const FORWARDS_MAX: u32 = 16;
/// Option letters.
pub(crate) const OPTIONS: &str = "AbBdinqrs";

pub(crate) const ROWS: &[crate::AppRow] = rows! {
    "Page" "app_page" Run::Story(|call, text| Box::pin(async move { page(&call, &text).await })),
        "Calls phones that answer by themselves and speaks to all of them.",
        "Page([Technology/Resource[&Technology2/Resource2[&...]]][,options[,timeout]])",
        "Calls all phones at once. Each that answers is put into a conference with the caller, where it hears the caller and\n\
         is not heard. Whether a phone answers by itself is said by headers: docs/paging.md. The call ends when the caller\n\
         hangs up, and so do all others.\n\n\
         options:\n  \
         A(file)               plays a file to each phone when it has answered, and to the caller.\n  \
         b(ctx^ext^prio(args)) Gosub on each channel before it is called.\n  \
         B(ctx^ext^prio(args)) Gosub on the caller before.\n  \
         d  all are heard by all.\n  \
         i  a phone that sends the call on is left out.\n  \
         n  the caller does not hear the file of A.\n  \
         q  the caller hears no beep.\n  \
         r  records what is said to confbridge-NAME-SECONDS.wav below monitor/, as MixMonitor does.\n  \
         s  leaves out devices that are in use, ring or are not there.\n\
         timeout  seconds that phones ring (without: until the caller hangs up).";
};

/// What a phone does.
enum Stage {
    Rings,
    /// It hears the announcement.
    Hears(PlayId),
    Listens,
}

struct Paged {
    leg: Leg,
    target: String,
    stage: Stage,
    forwards: u32,
}

struct Page<'a> {
    call: &'a Call,
    options: Options,
    /// Of the conference.
    name: String,
    phones: Vec<Paged>,
    /// What the caller still has to hear before it is put into the conference, and what it hears.
    before: VecDeque<Prompt>,
    playing: Option<PlayId>,
    has_entered: bool,
    monitor: Option<u32>,
}

async fn page(call: &Call, text: &str) -> Outcome {
    let parts = args::split(text);
    let options = Options::parse(args::nth(&parts, 1), OPTIONS);
    for letter in &options.unknown {
        call.log(Level::Warning, &format!("option {letter}: there is none"));
    }
    let targets = args::nth(&parts, 0).split('&').map(str::trim).filter(|target| !target.is_empty());
    let targets: Vec<String> = targets.take(TARGETS_MAX).map(str::to_owned).collect();
    if targets.is_empty() {
        call.log(Level::Warning, "Page requires an argument (technology/resource)");
        return Ok(Flow::Hangup);
    }
    let timeout = args::seconds(args::nth(&parts, 2)).filter(|timeout| !timeout.is_zero());
    call.chan.answer()?;
    if let Some(place) = place_of(&options, 'B').and_then(|place| routine(call, &place))
        && call.gosub(&place).await? == Flow::Hangup
    {
        return Ok(Flow::Hangup);
    }
    let number = call.chan.core(|core| core.random()) as u32;
    let mut page = Page {
        call,
        options,
        name: format!("page-{number:08x}"),
        phones: Vec::new(),
        before: VecDeque::new(),
        playing: None,
        has_entered: false,
        monitor: None,
    };
    for target in targets {
        page.ring(target, 0).await?;
    }
    page.run(timeout).await?;
    Ok(Flow::Hangup)
}

/// The place that an option names, as Gosub writes it.
fn place_of(options: &Options, letter: char) -> Option<String> {
    options.arg(letter).filter(|_| options.has(letter)).map(|place| place.replace('^', ","))
}

impl Page<'_> {
    /// Calls one phone; one that cannot be called is logged and left out.
    async fn ring(&mut self, target: String, forwards: u32) -> Result<(), Stop> {
        let caller = &self.call.chan;
        if self.options.has('s') {
            let state = hints::device_state(caller.shard(), &target);
            if !matches!(state, DeviceState::NotInUse | DeviceState::Unknown) {
                self.call.log(Level::Verbose(3), &format!("{target} is left out: {}", state.name()));
                return Ok(());
            }
        }
        if let Some((tech, resource)) = target.split_once('/') {
            caller.while_up(caller.shard().look_up(tech, resource)).await?;
        }
        let own = caller.with(|c| c.caller.clone())?;
        let Ok(leg) = legs::request_leg(self.call, &target, own, None, legs::APP_DIAL)? else {
            return Ok(());
        };
        if let Some(place) = place_of(&self.options, 'b').and_then(|place| routine(self.call, &place)) {
            let callee = Call::new(leg.chan().clone());
            if caller.while_up(callee.gosub(&place)).await? != Ok(Flow::Continue) {
                return Ok(());
            }
        }
        match legs::begin(self.call, &leg, &target) {
            Ok(()) => self.phones.push(Paged { leg, target, stage: Stage::Rings, forwards }),
            Err(cause) => leg.end(cause),
        }
        Ok(())
    }
    async fn run(&mut self, timeout: Option<Duration>) -> Result<(), Stop> {
        let caller = self.call.chan.clone();
        let announcement = self.options.arg('A').filter(|_| self.options.has('A')).map(str::to_owned);
        if !self.options.has('q') {
            self.before.extend(caller.clip("beep").await?);
        }
        if let Some(file) = announcement.as_deref().filter(|_| !self.options.has('n')) {
            self.before.extend(caller.clip(file).await?);
        }
        let deadline = timeout.map(|timeout| caller.now() + timeout);
        self.go_on();
        loop {
            let mut ids = vec![caller.id()];
            ids.extend(self.phones.iter().map(|phone| phone.leg.chan().id()));
            let rings = self.phones.iter().any(|phone| matches!(phone.stage, Stage::Rings));
            let until: Option<Instant> = deadline.filter(|_| rings);
            let Some((id, heard)) = Chan::any(caller.shard(), &ids, until).await else {
                self.give_up();
                continue;
            };
            if id == caller.id() {
                match heard? {
                    ChanEvent::Played { play, .. } if self.playing == Some(play) => self.go_on(),
                    ChanEvent::Conference if self.is_kicked(id) => return Ok(()),
                    _ => {}
                }
            } else {
                self.phone_event(id, heard, announcement.as_deref()).await?;
            }
        }
    }
    /// The caller hears what is next, or is put into the conference.
    fn go_on(&mut self) {
        let chan = &self.call.chan;
        self.playing = self.before.pop_front().map(|clip| chan.start_clip(clip, 0));
        if self.playing.is_some() || self.has_entered {
            return;
        }
        self.has_entered = true;
        if !self.enter(chan.id(), true) {
            return;
        }
        if self.options.has('r') {
            self.monitor = self.record();
        }
    }
    fn enter(&self, id: ChannelId, is_caller: bool) -> bool {
        let muted = !is_caller && !self.options.has('d');
        let mixing = MemberSettings { muted, ..MemberSettings::default() };
        let seat = Seat { mixing, is_admin: is_caller, ..Seat::default() };
        let entered = self
            .call
            .chan
            .core(|core| core.conference_enter(&self.name, id, seat.into(), &std::sync::Arc::default()));
        if let Err(why) = &entered {
            self.call.log(Level::Warning, &format!("a channel cannot be paged: {why:?}"));
        }
        entered.is_ok()
    }
    fn is_kicked(&self, id: ChannelId) -> bool {
        self.call.chan.core(|core| core.conferences.member(id).is_none_or(|member| member.leaves.is_some()))
    }
    /// What is said goes to a file.
    fn record(&self) -> Option<u32> {
        let chan = &self.call.chan;
        let begun = chan.core(|core| {
            let seconds = core.services.wall.now_micros().div_euclid(1_000_000);
            let path = spooled(core, &format!("confbridge-{}-{seconds}", self.name));
            let files = vec![(Side::Mixed, (path, "wav".to_owned()))];
            let plan = MonitorPlan { by: "MixMonitor", files, ..MonitorPlan::default() };
            core.monitor_start(chan.id(), plan)
        });
        begun.map_err(|why| self.call.log(Level::Warning, &format!("the page is not recorded: {why}"))).ok()
    }
    /// Phones that have rung long enough ring no more.
    fn give_up(&mut self) {
        let (late, going): (Vec<_>, Vec<_>) = std::mem::take(&mut self.phones)
            .into_iter()
            .partition(|phone| matches!(phone.stage, Stage::Rings));
        self.phones = going;
        for phone in late {
            notice_end(&self.call.chan, &phone.leg, "NOANSWER", None);
            phone.leg.end(Cause::NORMAL_CLEARING);
        }
    }
    async fn phone_event(
        &mut self,
        id: ChannelId,
        heard: Result<ChanEvent, Stop>,
        announcement: Option<&str>,
    ) -> Result<(), Stop> {
        let Some(at) = self.phones.iter().position(|phone| phone.leg.chan().id() == id) else {
            return Ok(());
        };
        let is_kicked = self.is_kicked(id);
        let Some(phone) = self.phones.get(at) else { return Ok(()) };
        match (heard, &phone.stage) {
            (Err(_), stage) => {
                let rings = matches!(stage, Stage::Rings);
                let phone = self.phones.remove(at);
                let cause =
                    phone.leg.chan().with(|c| c.hangup).ok().flatten().unwrap_or(Cause::NORMAL_CLEARING);
                if rings {
                    notice_end(&self.call.chan, &phone.leg, status_of(cause), None);
                }
                phone.leg.end(cause);
            }
            (Ok(ChanEvent::Forwarded(to)), Stage::Rings) => {
                let phone = self.phones.remove(at);
                notice_end(&self.call.chan, &phone.leg, "CANCEL", Some(&to));
                phone.leg.end(Cause::NORMAL_CLEARING);
                if !self.options.has('i') && phone.forwards < FORWARDS_MAX {
                    self.ring(to, phone.forwards + 1).await?;
                }
            }
            (Ok(ChanEvent::Answered), Stage::Rings) => {
                notice_end(&self.call.chan, &phone.leg, "ANSWER", None);
                let target = &phone.target;
                self.call.log(Level::Verbose(3), &format!("{target} is paged"));
                let chan = phone.leg.chan().clone();
                let clip = match announcement {
                    // A phone that is gone by now is told of later.
                    Some(file) => self.call.chan.while_up(chan.clip(file)).await?.ok().flatten(),
                    None => None,
                };
                self.announced(at, clip.map(|clip| chan.start_clip(clip, 0)));
            }
            (Ok(ChanEvent::Played { play, .. }), Stage::Hears(own)) if play == *own => {
                self.announced(at, None)
            }
            (Ok(ChanEvent::Conference), Stage::Listens) if is_kicked => {
                self.phones.remove(at).leg.end(Cause::NORMAL_CLEARING);
            }
            (Ok(_), _) => {}
        }
        Ok(())
    }
    /// A phone hears the announcement, or has heard it and enters.
    fn announced(&mut self, at: usize, play: Option<PlayId>) {
        let Some(phone) = self.phones.get_mut(at) else { return };
        phone.stage = play.map_or(Stage::Listens, Stage::Hears);
        let id = phone.leg.chan().id();
        if play.is_none() && !self.enter(id, false) {
            self.phones.remove(at).leg.end(Cause::NORMAL_CLEARING);
        }
    }
}

impl Drop for Page<'_> {
    /// All that answered hang up with the caller.
    fn drop(&mut self) {
        for phone in std::mem::take(&mut self.phones) {
            if matches!(phone.stage, Stage::Rings) {
                notice_end(&self.call.chan, &phone.leg, "CANCEL", None);
            }
            phone.leg.end(Cause::NORMAL_CLEARING);
        }
        let (chan, monitor) = (&self.call.chan, self.monitor);
        if self.playing.is_some() {
            chan.stop_sound();
        }
        chan.core(|core| {
            core.monitor_stop(chan.id(), |running| Some(running.number) == monitor);
            core.conference_leave(chan.id());
        });
    }
}
