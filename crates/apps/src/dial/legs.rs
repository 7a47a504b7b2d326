//! The legs of a Dial while they ring, and what the caller hears meanwhile.

use core::time::Duration;

use base::{Cause, ChannelId, Instant};
use call::{Chan, ChanEvent, Leg, Level, Notice, PartyId, Redirecting, Request, Stop};

use super::sound::Sound;
use super::{DialOptions, Status, Timeouts, notice_end, notice_ended_as, notice_state};
use crate::pbx::Place;
use crate::{Call, Flow, dtmf, mf};

/// How ringing ended.
pub(crate) enum Called {
    Answered(Leg),
    Refused(Status),
    CallerStopped(Stop),
    /// The caller pressed the hang-up digit (`H`): his dialplan goes on.
    CallerCancelled,
    /// The caller dialled an extension meanwhile (`d`).
    CallerDialled(Place),
}

/// Times for the result variables.
pub(crate) struct Times {
    pub(crate) ringing: Option<Duration>,
    pub(crate) progress: Option<Duration>,
}

struct Entry {
    leg: Leg,
    target: String,
    /// A leg has sent the call there.
    is_forwarded: bool,
}

/// Times that legs of one Dial may be sent elsewhere; ends loops of phones that forward to each other.
const FORWARDS_MAX: u32 = 16;

/// Everything that rings.
pub(crate) struct Ringing<'a> {
    call: &'a Call,
    options: &'a DialOptions,
    legs: Vec<Entry>,
    started: Instant,
    ringing_at: Option<Instant>,
    progress_at: Option<Instant>,
    refusals: Vec<Cause>,
    forwards: u32,
    /// When nobody is waited for any longer.
    deadline: Instant,
    /// When one of the legs has to ring, or to send progress, if it has to.
    heard_by: Option<Instant>,
    sound: Sound,
    /// Who called, when the legs were called.
    caller: PartyId,
    /// What was dialled to reach the leg that answered: `6001` of `PJSIP/6001`.
    pub(crate) answered_number: String,
}

impl<'a> Ringing<'a> {
    pub(crate) fn new(call: &'a Call, options: &'a DialOptions) -> Self {
        Self {
            call,
            options,
            legs: Vec::new(),
            started: call.chan.now(),
            ringing_at: None,
            progress_at: None,
            refusals: Vec::new(),
            forwards: 0,
            deadline: call.chan.now(),
            heard_by: None,
            sound: Sound::new(&call.chan),
            caller: call.chan.with(|c| c.caller.clone()).unwrap_or_default(),
            answered_number: String::new(),
        }
    }

    /// Calls all targets and waits for the first answer, the last refusal, the timeout or the caller.
    pub(crate) async fn call(&mut self, targets: &[&str], timeouts: Timeouts) -> Called {
        if let Err(stop) = self.call.chan.check() {
            return Called::CallerStopped(stop);
        }
        for target in targets {
            if let Err(stop) = self.request(target).await {
                return Called::CallerStopped(stop);
            }
        }
        self.started = self.call.chan.now();
        for entry in std::mem::take(&mut self.legs) {
            self.ring(entry);
        }
        if self.options.music.is_some()
            && !self.legs.is_empty()
            && let Err(stop) = self.sound.start(self.options).await
        {
            return self.give_up(stop);
        }
        // Behind a Local channel somebody else is called, who is told of then.
        if let [entry] = self.legs.as_slice()
            && !entry.target.starts_with(BY_NUMBER)
        {
            let party = entry.leg.chan().with(|c| c.caller.clone()).unwrap_or_default();
            self.show(party).await;
        }
        self.deadline = self.started + timeouts.answer;
        self.heard_by = timeouts.progress.map(|progress| self.started + progress);
        let called = self.wait().await;
        self.sound.end();
        called
    }

    /// Makes the channel for one destination and prepares it; a refusal is counted, not an error.
    async fn request(&mut self, target: &str) -> Result<(), Stop> {
        let caller = &self.call.chan;
        if let Some((tech, resource)) = target.split_once('/') {
            caller.while_up(caller.shard().look_up(tech, resource)).await?;
        }
        let Some(leg) = self.open(target)? else { return Ok(()) };
        let routine = self.options.callee_routine.as_deref();
        if let Some(routine) = routine.and_then(|place| super::routine(self.call, place)) {
            let callee = Call::new(leg.chan().clone());
            let outcome = caller.while_up(callee.gosub(&routine)).await?;
            if outcome != Ok(Flow::Continue) {
                self.note_refusal(Cause::NORMAL_CLEARING);
                return Ok(());
            }
        }
        self.legs.push(Entry { leg, target: target.to_owned(), is_forwarded: false });
        Ok(())
    }
    fn open(&mut self, target: &str) -> Result<Option<Leg>, Stop> {
        self.open_after(target, None)
    }
    /// The same instead of a leg, by its name, that has sent the call on.
    fn open_after(&mut self, target: &str, forwarder: Option<&str>) -> Result<Option<Leg>, Stop> {
        let own = self.call.chan.with(|c| c.caller.clone())?;
        let presented = self.presented(own.clone());
        let shown = Shown { app: APP_DIAL, forwarder };
        match request_shown(self.call, target, presented, self.stored(own), shown)? {
            Ok(leg) => Ok(Some(leg)),
            Err(cause) => {
                self.note_refusal(cause);
                Ok(None)
            }
        }
    }
    /// The caller id that legs show: the caller's, or what option `f` says.
    fn presented(&self, own: PartyId) -> PartyId {
        let DialOptions { force_caller_id, forced_tag, forced_presentation, .. } = self.options;
        let mut forced = match force_caller_id {
            None => return own,
            Some(text) if !text.is_empty() => PartyId::parse(text),
            Some(_) => {
                let here = self.call.here().location();
                let name = self.call.hint_of(&here.context, &here.exten).map(|(_, name)| name);
                let name = name.filter(|name| !name.is_empty());
                PartyId { number: Some(here.exten), name, ..PartyId::default() }
            }
        };
        if let Some(tag) = forced_tag {
            forced.tag.clone_from(tag);
        }
        if let Some(presentation) = *forced_presentation {
            (forced.number_presentation, forced.name_presentation) = (presentation, presentation);
        }
        forced
    }
    /// The legs' own caller id when option `o` asks for another than the number that was dialled.
    fn stored(&self, own: PartyId) -> Option<PartyId> {
        let text = self.options.original_caller_id.as_deref()?;
        Some(if text.is_empty() { own } else { PartyId::parse(text) })
    }
    fn note_refusal(&mut self, cause: Cause) {
        self.refusals.push(cause);
        let _ = self.call.chan.with(|c| c.last_cause = cause);
    }

    /// Starts one call.
    fn ring(&mut self, Entry { leg, target, is_forwarded }: Entry) {
        match begin(self.call, &leg, &target) {
            Ok(()) => self.legs.push(Entry { leg, target, is_forwarded }),
            Err(cause) => {
                self.note_refusal(cause);
                leg.end(cause);
            }
        }
    }

    async fn wait(&mut self) -> Called {
        let caller = self.call.chan.clone();
        if !self.legs.is_empty()
            && self.options.music.is_none()
            && let Err(stop) = self.sound.start(self.options).await
        {
            return self.give_up(stop);
        }
        while !self.legs.is_empty() {
            let mut ids = vec![caller.id()];
            ids.extend(self.legs.iter().map(|entry| entry.leg.chan().id()));
            let is_heard = self.ringing_at.is_some() || self.progress_at.is_some();
            let heard_by = self.heard_by.filter(|by| !is_heard && *by < self.deadline);
            let deadline = heard_by.unwrap_or(self.deadline);
            let Some((id, heard)) = Chan::any(caller.shard(), &ids, Some(deadline)).await else {
                if heard_by.is_some() {
                    self.call.log(Level::Verbose(3), "no leg rings or sends progress in time");
                    self.cancel(Cause::NONE, Status::ChanUnavail.name());
                    return Called::Refused(Status::ChanUnavail);
                }
                self.cancel(Cause::NONE, Status::NoAnswer.name());
                return Called::Refused(Status::NoAnswer);
            };
            let called = match heard {
                Err(stop) if id == caller.id() => return self.give_up(stop),
                Ok(event) if id == caller.id() => self.caller_event(event),
                heard => self.leg_event(id, heard).await,
            };
            if let Some(called) = called {
                return called;
            }
        }
        Called::Refused(self.verdict())
    }

    fn give_up(&mut self, stop: Stop) -> Called {
        self.cancel(parting_cause(self.call, self.cancel_cause()), Status::Cancel.name());
        Called::CallerStopped(stop)
    }
    fn cancel_cause(&self) -> Cause {
        if self.options.answered_elsewhere { Cause::ANSWERED_ELSEWHERE } else { Cause::NONE }
    }

    fn caller_event(&mut self, event: ChanEvent) -> Option<Called> {
        let ChanEvent::Digit { digit, duration_ms, relayed } = event else { return None };
        if self.options.digit_exit {
            let context = self.call.get("EXITCONTEXT").filter(|context| !context.is_empty());
            let context = context.unwrap_or_else(|| self.call.context());
            let exten = digit.to_char().to_string();
            if self.call.exists(&context, &exten) {
                self.cancel(self.cancel_cause(), Status::Cancel.name());
                return Some(Called::CallerDialled(Place::find(self.call, &context, &exten, 1)));
            }
        }
        if self.options.caller_rights.disconnect && digit.to_char() == '*' {
            self.cancel(self.cancel_cause(), Status::Cancel.name());
            return Some(Called::CallerCancelled);
        }
        // A menu that talks before it answers wants to be answered, too.
        if let ([entry], true, false) = (self.legs.as_slice(), self.sound.is_early_audio(), relayed) {
            entry.leg.chan().pass_digit(digit, duration_ms);
        }
        None
    }

    async fn leg_event(&mut self, id: ChannelId, heard: Result<ChanEvent, Stop>) -> Option<Called> {
        let at = self.legs.iter().position(|entry| entry.leg.chan().id() == id)?;
        match heard {
            Err(Stop::Goto) => {
                // Only a leg that has answered can go anywhere.
                let _ = self.legs.get(at)?.leg.chan().with(|c| c.goto = None);
                self.call.log(Level::Warning, "a leg that still rings cannot be redirected");
            }
            Err(Stop::Hangup | Stop::AbsoluteTimeout) => {
                let entry = self.legs.remove(at);
                let cause =
                    entry.leg.chan().with(|c| c.hangup).ok().flatten().unwrap_or(Cause::NORMAL_CLEARING);
                let status = super::status_of(cause);
                self.call.log(Level::Verbose(3), &format!("{} is {status}", entry.target));
                notice_end(&self.call.chan, &entry.leg, status, None);
                self.call.note_leg(entry.leg.chan());
                self.note_refusal(cause);
                entry.leg.end(cause);
            }
            Ok(ChanEvent::Answered) => {
                // The caller learns who it was before the others are let go.
                if self.legs.len() > 1
                    && let Some(entry) = self.legs.get(at)
                {
                    let party = entry.leg.chan().with(|c| c.caller.clone()).unwrap_or_default();
                    self.show(party).await;
                }
                return Some(self.answered(at));
            }
            Ok(ChanEvent::Forwarded(target)) => self.forward(at, &target).await,
            // One of several is shown when it answers.
            Ok(ChanEvent::ConnectedLine(party)) if self.legs.len() == 1 => self.show(*party).await,
            Ok(ChanEvent::Redirecting(redirecting)) if self.legs.len() == 1 => {
                self.show_redirecting(*redirecting).await;
            }
            // Of several it is not known which will be the price.
            Ok(ChanEvent::Charge(advice)) if self.legs.len() == 1 => self.call.chan.advise_charge(&advice),
            Ok(ChanEvent::Ringing) => {
                let first = self.ringing_at.is_none();
                if first {
                    self.ringing_at = Some(self.call.chan.now());
                    super::write_time(self.call, "RINGTIME", self.times().ringing);
                }
                notice_state(&self.call.chan, id, "RINGING");
                let quiet = self.options.music.is_none() && self.options.ring.is_none();
                if first && quiet && !self.sound.is_early_audio() {
                    self.sound.ring();
                }
            }
            Ok(ChanEvent::Progress) => {
                if self.progress_at.is_none() {
                    self.progress_at = Some(self.call.chan.now());
                    super::write_time(self.call, "PROGRESSTIME", self.times().progress);
                }
                notice_state(&self.call.chan, id, "PROGRESS");
                // With a single leg the caller hears what it sends before the answer, unless options make the sound.
                if self.legs.len() == 1 && self.options.music.is_none() && self.options.ring.is_none() {
                    self.sound.let_through(id);
                }
                if let Some(digits) = &self.options.dtmf {
                    let leg = self.legs.get(at)?.leg.chan();
                    dtmf::queue(leg, &digits.on_progress);
                    mf::queue(leg, &digits.mf_on_progress);
                    if self.options.echoes_digits {
                        mf::queue(&self.call.chan, &digits.mf_on_progress);
                    }
                }
            }
            Ok(ChanEvent::Proceeding) => notice_state(&self.call.chan, id, "PROCEEDING"),
            Ok(_) => {}
        }
        None
    }
    fn answered(&mut self, at: usize) -> Called {
        let entry = self.legs.remove(at);
        // A routine of its own still runs where it was called.
        if self.options.answered_routine.is_none() && self.options.answered_macro.is_none() {
            leave_place(&entry.leg);
        }
        self.cancel(self.options.elsewhere_cause, Status::Cancel.name());
        // Whom a leg has sent the call to was not dialled.
        let number = entry.target.split_once('/').map(|(_, number)| number).filter(|_| !entry.is_forwarded);
        self.answered_number = number.unwrap_or_default().to_owned();
        self.call.log(Level::Verbose(3), &format!("{} answered", entry.leg.chan().name()));
        Called::Answered(entry.leg)
    }
    /// The caller's side learns who rings, unless option `I` keeps that from it.
    async fn show(&self, party: PartyId) {
        if !self.options.ignore_parties {
            self.call.chan.connect_line(party).await;
        }
    }
    async fn show_redirecting(&self, redirecting: Redirecting) {
        if !self.options.ignore_parties {
            self.call.chan.redirect_line(redirecting).await;
        }
    }
    /// Who sent the call on, when a leg has: whom it said itself, else the leg.
    fn redirected(&self, leg: &Leg, target: &str) -> Redirecting {
        let before = self.call.chan.with(|c| c.redirecting.clone()).unwrap_or_default();
        let (told, own) = leg.chan().with(|c| (c.redirecting.clone(), c.caller.clone())).unwrap_or_default();
        let number = target.split_once('/').map_or(target, |(_, resource)| resource);
        let number = number.split_once('@').map_or(number, |(number, _)| number).to_owned();
        let is_told = told != before;
        let from = if is_told { told.from } else { own };
        let orig = if before.count == 0 { from.clone() } else { before.orig };
        Redirecting {
            orig,
            from,
            to: PartyId { number: Some(number), ..PartyId::default() },
            reason: if is_told { told.reason } else { "unknown".to_owned() },
            count: before.count.saturating_add(1),
        }
    }
    /// The leg sent the call elsewhere: another takes its place.
    async fn forward(&mut self, at: usize, target: &str) {
        let entry = self.legs.remove(at);
        let left = entry.leg.chan();
        let target = &forwarded_target(left, target);
        let caller = self.call.chan.clone();
        let tell_end =
            |leg: &Leg| notice_end(&caller, leg, Status::Cancel.name(), Some(forward_shown(target)));
        self.call.log(Level::Verbose(3), &format!("{} is forwarded to {target}", entry.target));
        let redirecting = self.redirected(&entry.leg, target);
        let _ = left.with(|c| c.redirecting.from = redirecting.from.clone());
        if self.options.ignore_forwards {
            tell_end(&entry.leg);
            notice_ended_as(&caller, left.id(), Status::Busy.name());
            entry.leg.end(Cause::NORMAL_CLEARING);
            self.call.log(Level::Verbose(3), &format!("Forwarding {} to '{target}' prevented", entry.target));
            return self.note_refusal(Cause::USER_BUSY);
        }
        if self.options.forward_ends_timeout {
            self.deadline = self.started + super::RING_FOREVER;
        }
        self.forwards += 1;
        if self.forwards > FORWARDS_MAX {
            tell_end(&entry.leg);
            entry.leg.end(Cause::NORMAL_CLEARING);
            self.call.log(Level::Warning, "legs of one Dial forward each other without end");
            return self.note_refusal(Cause::NORMAL_TEMPORARY_FAILURE);
        }
        let opened = self.open_after(target, Some(&left.name()));
        let Ok(Some(leg)) = opened else {
            tell_end(&entry.leg);
            return entry.leg.end(Cause::NORMAL_CLEARING);
        };
        let _ = leg.chan().with(|c| c.redirecting = redirecting.clone());
        if self.legs.is_empty() {
            self.show_redirecting(redirecting).await;
        }
        let shown = target.split_once('/').map_or("", |(_, resource)| resource);
        // It rings before the one that has sent the call on is told to be through.
        let begun = begin_after(self.call, &leg, target, shown, || tell_end(&entry.leg));
        entry.leg.end(Cause::NORMAL_CLEARING);
        match begun {
            Ok(()) => self.legs.push(Entry { leg, target: target.to_owned(), is_forwarded: true }),
            Err(cause) => {
                self.note_refusal(cause);
                leg.end(cause);
            }
        }
    }
    /// Ends every leg that is left.
    fn cancel(&mut self, cause: Cause, status: &'static str) {
        for entry in std::mem::take(&mut self.legs) {
            notice_end(&self.call.chan, &entry.leg, status, None);
            entry.leg.end(cause);
        }
    }
    /// When all have refused: one that merely did not answer says most, then busy, then congestion.
    fn verdict(&self) -> Status {
        let statuses: Vec<Status> = self.refusals.iter().map(|cause| Status::of_cause(*cause)).collect();
        [Status::NoAnswer, Status::Busy, Status::Congestion]
            .into_iter()
            .find(|status| statuses.contains(status))
            .unwrap_or(Status::ChanUnavail)
    }
    /// Who the caller is, when another has taken his place meanwhile.
    pub(crate) fn newcomer(&self) -> Option<PartyId> {
        let caller = self.call.chan.with(|c| c.caller.clone()).ok()?;
        (caller != self.caller).then_some(caller)
    }
    pub(crate) fn times(&self) -> Times {
        let until = |at: Instant| at.since(self.started);
        Times { ringing: self.ringing_at.map(until), progress: self.progress_at.map(until) }
    }
}

/// The variable of a leg that names the context into which it may send calls by numbers.
const FORWARD_CONTEXT: &str = "FORWARD_CONTEXT";
/// How a destination begins that was a mere number.
const BY_NUMBER: &str = "Local/";

/// What watchers see on a leg that Dial and its like have called.
pub(crate) const APP_DIAL: &str = "AppDial";

/// Makes a channel that is to be called for `call`, without calling it yet; the inner error, logged, says why there is
/// none. `stored`: its own caller id, where that is not the number that was dialled. `shown_as`: the application that watchers
/// see on it, AppDial or AppQueue.
pub(crate) fn request_leg(
    call: &Call,
    target: &str,
    presented: PartyId,
    stored: Option<PartyId>,
    shown_as: &'static str,
) -> Result<Result<Leg, Cause>, Stop> {
    request_shown(call, target, presented, stored, Shown { app: shown_as, forwarder: None })
}

/// As what watchers see a leg.
#[derive(Clone, Copy)]
struct Shown<'a> {
    /// The application: AppDial or AppQueue.
    app: &'static str,
    /// The leg that has sent the call on to it, by its name.
    forwarder: Option<&'a str>,
}

fn request_shown(
    call: &Call,
    target: &str,
    presented: PartyId,
    stored: Option<PartyId>,
    shown: Shown<'_>,
) -> Result<Result<Leg, Cause>, Stop> {
    let caller = &call.chan;
    let Some((tech, resource)) = target.split_once('/') else {
        let app = caller.with(|c| c.app)?;
        let line = format!("{app} argument takes format (technology/resource), not '{target}'");
        call.log(Level::Warning, &line);
        return Ok(Err(Cause::CHAN_NOT_IMPLEMENTED));
    };
    let request = Request {
        resource: resource.to_owned(),
        requestor: Some(caller.id()),
        caller: Some(presented.clone()),
        is_told_later: true,
        formats: caller.with(|c| c.formats)?,
        ..Request::default()
    };
    match caller.shard().request(tech, &request) {
        Ok(id) => {
            let leg = Leg::new(caller.shard().clone(), id);
            let (variable, value) = match shown.forwarder {
                Some(forwarder) => (call::FORWARDER_NAME, forwarder),
                None => ("DIALEDPEERNUMBER", resource),
            };
            leg.chan().core(|core| core.set_variable(id, variable, value));
            hand_down(caller, &leg, presented, stored, shown)?;
            Ok(Ok(leg))
        }
        Err(cause) => {
            let text = cause.text();
            let line = format!("Unable to create channel for '{target}': cause {} - {text}", cause.0);
            call.log(Level::Notice, &line);
            Ok(Err(cause))
        }
    }
}

/// What legs that ring are told when the caller has gone: why it has, among which that somebody else has answered (RFC 3326
/// §3.1: a phone behind us would count the call as missed); `otherwise` when it has not gone, or that is to be told anyway.
pub(crate) fn parting_cause(call: &Call, otherwise: Cause) -> Cause {
    if otherwise == Cause::ANSWERED_ELSEWHERE {
        return otherwise;
    }
    let said = call.chan.with(|caller| caller.hangup).ok().flatten();
    said.filter(|cause| *cause != Cause::NONE).unwrap_or(otherwise)
}

/// Calls it, and tells watchers.
pub(crate) fn begin(call: &Call, leg: &Leg, target: &str) -> Result<(), Cause> {
    begin_as(call, leg, target, target.split_once('/').map_or("", |(_, resource)| resource))
}
/// The same; `shown` is what watchers are told was dialled.
pub(crate) fn begin_as(call: &Call, leg: &Leg, target: &str, shown: &str) -> Result<(), Cause> {
    begin_after(call, leg, target, shown, || {})
}
/// The same; watchers hear of `before` first.
fn begin_after(
    call: &Call,
    leg: &Leg,
    target: &str,
    shown: &str,
    before: impl FnOnce(),
) -> Result<(), Cause> {
    let caller = &call.chan;
    let id = leg.chan().id();
    let rung_at = caller.with(|c| c.location.clone()).ok().map(Box::new);
    let _ = leg.chan().with(|c| c.rung_at = rung_at);
    let called = caller.shard().with_tech(id, |tech, core| tech.call(core, id));
    let dial_string = shown.to_owned();
    before();
    caller.core(|core| {
        core.cdr_dial(caller.id(), id);
        core.notice(|core| {
            let dest = core.snapshot(id)?;
            Some(Notice::DialBegin { caller: core.snapshot(caller.id()), dest, dial_string })
        });
    });
    match called {
        Some(Ok(())) => {
            call.log(Level::Verbose(3), &format!("Called {target}"));
            Ok(())
        }
        Some(Err(cause)) => {
            notice_end(caller, leg, super::status_of(cause), None);
            Err(cause)
        }
        None => Err(Cause::NORMAL_TEMPORARY_FAILURE),
    }
}

/// Gives a leg what it inherits from its caller, beside what its endpoint's configuration says.
fn hand_down(
    caller: &Chan,
    leg: &Leg,
    presented: PartyId,
    stored: Option<PartyId>,
    shown: Shown<'_>,
) -> Result<(), Stop> {
    let shown_as = shown.app;
    let (vars, language, (music, music_chosen), accounts, exten, redirecting) = caller.with(|c| {
        let exten = c.location.exten.clone();
        let redirecting = c.redirecting.clone();
        let music = (c.music_class.clone(), c.music_chosen);
        let accounts = (c.account.clone(), c.peer_account.clone());
        (c.vars.inherited(), c.language.clone(), music, accounts, exten, redirecting)
    })?;
    let (before, old) = leg.chan().with(|c| (c.caller.clone(), c.account.clone())).unwrap_or_default();
    let account = account_of_leg(&old, &accounts, shown_as == APP_DIAL);
    // The newest first.
    let mut told: Vec<(String, String)> = vars
        .iter()
        .map(|(inherit, name, value)| (format!("{}{name}", inherit.prefix()), value.to_owned()))
        .collect();
    told.reverse();
    leg.chan().with(|c| {
        let of_endpoint = std::mem::replace(&mut c.vars, vars);
        for (inherit, name, value) in of_endpoint.iter() {
            c.vars.set(dialplan::Var::named(name), value, inherit);
        }
    })?;
    leg.chan().core(|core| {
        let id = leg.chan().id();
        for (variable, value) in told {
            core.notice(|core| Some(Notice::VarSet { channel: Some(core.snapshot(id)?), variable, value }));
        }
    });
    if shown_as != APP_DIAL {
        // A queue's member is seen as it is called once it rings.
        leg.chan().core(|core| core.show_outgoing_later(leg.chan().id(), shown_as));
    }
    leg.chan().with(|c| {
        c.language = language;
        if c.music_class.is_empty() || c.music_class == "default" {
            (c.music_class, c.music_chosen) = (music, music_chosen);
        }
        if !accounts.0.is_empty() {
            c.peer_account.clone_from(&accounts.0);
        }
        c.account.clone_from(&account);
        c.redirecting = redirecting;
        c.location.priority = 1;
        // Where a leg has sent the call is another place than where the caller is.
        if shown.forwarder.is_none() {
            c.connected = presented.clone();
            c.location.exten.clone_from(&exten);
        }
        if let Some(stored) = stored {
            c.caller = stored;
        }
        c.ani = c.caller.number.clone();
        if c.caller.number.is_none() {
            c.caller.number = Some(exten);
        }
    })?;
    leg.chan().core(|core| {
        let id = leg.chan().id();
        if shown_as == APP_DIAL && shown.forwarder.is_none() {
            core.show_outgoing(id, shown_as);
        }
        if core.get(id).is_some_and(|channel| channel.caller != before) {
            core.notice_of(id, Notice::NewCallerId);
        }
        if account != old {
            core.notice_of(id, |channel| Notice::NewAccountCode { channel, old });
        }
        if shown.forwarder.is_some() {
            core.get_mut(id).into_iter().for_each(|channel| channel.connected = presented.clone());
            core.show_outgoing(id, shown_as);
        }
        if shown_as == APP_DIAL {
            core.notice_of(id, Notice::NewConnectedLine);
        }
    });
    Ok(())
}

/// Where a leg has sent the call: a number of its own into the context that the dialplan has named for that.
fn forwarded_target(leg: &Chan, target: &str) -> String {
    let context = leg.with(|c| c.vars.get_name(FORWARD_CONTEXT).map(str::to_owned)).ok().flatten();
    let number = target.strip_prefix(BY_NUMBER).and_then(|place| place.split_once('@'));
    match (number, context.filter(|context| !context.is_empty())) {
        (Some((number, _)), Some(context)) => format!("{BY_NUMBER}{number}@{context}"),
        _ => target.to_owned(),
    }
}
/// The same as watchers see it: the number alone, or the whole destination.
fn forward_shown(target: &str) -> &str {
    let number = target.strip_prefix(BY_NUMBER).and_then(|place| place.split_once('@'));
    number.map_or(target, |(number, _)| number)
}

/// The account of a leg that has `own`, called by a channel with this account and this of the other party's: what the caller
/// says of the other party, else with Dial its own; a member of a queue keeps its own when it has one.
fn account_of_leg(own: &str, (callers, others): &(String, String), dials: bool) -> String {
    let account = match dials {
        true => [others.as_str(), callers, own].into_iter().find(|account| !account.is_empty()),
        false => [own, others].into_iter().find(|account| !account.is_empty()),
    };
    account.unwrap_or_default().to_owned()
}

/// The leg has answered: it stands nowhere in the dialplan from here on.
pub(crate) fn leave_place(leg: &Leg) {
    let _ = leg.chan().with(|c| c.location.exten.clear());
}
