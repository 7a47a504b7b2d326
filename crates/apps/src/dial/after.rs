//! Between the answer and the end: announcements, routines, the conversation, and who goes on where.

use core::time::Duration;
use std::rc::Rc;

use base::Cause;
use call::{BridgeEnd, BridgeLimits, Chan, Heard, Leg, Level, Location, Stop, Warnings};

use super::legs::Ringing;
use super::{DialOptions, Status};
use crate::functions::is_left_untold;
use crate::{Call, Flow, Outcome, dtmf, features, pbx, say};

/// Takes the leg that answered to its end.
pub(crate) async fn converse(call: &Call, options: &DialOptions, leg: Leg, ringing: &Ringing<'_>) -> Outcome {
    let caller = &call.chan;
    show_parties(call, options, &leg, ringing).await;
    call.set("DIALSTATUS", Status::Answer.name());
    call.set("DIALEDPEERNAME", &leg.chan().name());
    if !ringing.answered_number.is_empty() {
        call.set("DIALEDPEERNUMBER", &ringing.answered_number);
    }
    // What a routine of the called party decides is how the attempt has come out.
    let is_decided = options.answered_routine.is_none() && options.answered_macro.is_none();
    if is_decided {
        super::notice_end(caller, &leg, Status::Answer.name(), None);
    }
    note_peer(call, leg.chan())?;
    // An answered attempt is what both have heard of a cause.
    call.set_cause(Cause::NORMAL_CLEARING);
    let _ = leg.chan().with(|c| c.last_cause = Cause::NORMAL_CLEARING);
    caller.suit(leg.chan().id());
    if options.answer_at_once {
        caller.answer()?;
    }

    let verdict = caller.while_up(prepare(call, options, &leg)).await?;
    if !is_decided {
        super::legs::leave_place(&leg);
        let status = match &verdict {
            Ok(Verdict::Refuse(status, _)) => *status,
            Ok(Verdict::Talk | Verdict::GoTo(_)) => Status::Answer,
            Err(_) => Status::Cancel,
        };
        super::notice_end(caller, &leg, status.name(), None);
    }
    match verdict {
        Ok(Verdict::Talk) => {}
        Ok(Verdict::Refuse(status, flow)) => {
            call.set("DIALSTATUS", status.name());
            leg.end(Cause::NORMAL_CLEARING);
            return Ok(flow);
        }
        Ok(Verdict::GoTo(target)) => {
            leg.end(Cause::NORMAL_CLEARING);
            return go_to(call, &target);
        }
        Err(_) => {
            // One of the two ended before anybody talked; the caller's reason is his own.
            caller.check()?;
            call.note_leg(leg.chan());
            pbx::let_go(leg, None);
            return Ok(if options.go_on { Flow::Continue } else { Flow::Hangup });
        }
    }
    if let Some(target) = &options.both_go_to {
        return both_go(call, leg, target);
    }
    caller.answer()?;
    note_peer(call, leg.chan())?;

    let audio = LimitAudio::of(call);
    let limits = bridge_limits(call, options, &audio).await?;
    let parties = [(caller, Some(options.caller_rights)), (leg.chan(), Some(options.callee_rights))];
    leg.chan().core(|core| core.show_outgoing(leg.chan().id(), super::legs::APP_DIAL));
    let end = features::converse(parties, limits).await;
    // Whoever is sent elsewhere meanwhile is not told how long it took.
    if caller.with(|c| c.goto.is_none()) == Ok(true) {
        // Since when the caller is there, and talks to anybody.
        let (created, answered) = caller.with(|c| (c.created, c.answered))?;
        let now = caller.now();
        super::write_time(call, "ANSWEREDTIME", Some(now.since(answered.unwrap_or(now))));
        super::write_time(call, "DIALEDTIME", Some(now.since(created)));
    }
    call.set("DIALSTATUS", Status::Answer.name());
    if (options.go_on || call.hears_of_its_end()) && is_left_untold(leg.chan()) {
        let _ = leg.chan().refresh_quality(true).await;
        call.note_quality_of(leg.chan());
    }
    if end == BridgeEnd::Limit {
        audio.time_is_up(call, &leg).await?;
    }
    after_talk(call, options, leg, end).await
}

/// Each of the two learns who the other is, as far as it does not know.
async fn show_parties(call: &Call, options: &DialOptions, leg: &Leg, ringing: &Ringing<'_>) {
    if let Some(newcomer) = ringing.newcomer() {
        leg.chan().connect_line(newcomer).await;
    }
    if !options.ignore_parties {
        let party = leg.chan().with(|c| c.caller.clone()).unwrap_or_default();
        call.chan.connect_line(party).await;
    }
}

/// The caller learns the account of whom it talks to.
pub(crate) fn note_peer(call: &Call, peer: &Chan) -> Result<(), Stop> {
    let (account, theirs) = peer.with(|c| (c.account.clone(), c.peer_account.clone())).unwrap_or_default();
    call.chan.with(|c| {
        if c.account.is_empty() {
            c.account.clone_from(&theirs);
        }
        // Told of after the answer.
        if c.state == call::ChanState::Up {
            c.peer_account = account;
        }
    })
}

enum Verdict {
    Talk,
    Refuse(Status, Flow),
    GoTo(String),
}

/// What comes before the conversation, on the called channel: `A`, `U`, `D`. `Err`: it hung up, or the caller did.
async fn prepare(call: &Call, options: &DialOptions, leg: &Leg) -> Result<Verdict, Stop> {
    let callee = leg.chan();
    if let Some((for_callee, _)) = &options.announce
        && !for_callee.is_empty()
        && callee.play(for_callee, "").await? == Heard::Failed
    {
        call.log(Level::Warning, &format!("Dial announcement '{for_callee}' could not be played"));
    }
    if let Some((name, arguments)) = &options.answered_macro {
        let on_callee = Call::new(callee.clone());
        if on_callee.run_macro(name, arguments).await? == Flow::Hangup {
            return Err(Stop::Hangup);
        }
        let verdict = verdict_of(&on_callee.get("MACRO_RESULT").unwrap_or_default());
        if !matches!(verdict, Verdict::Talk) {
            return Ok(verdict);
        }
    }
    if let Some(routine) = options.answered_routine.as_deref().and_then(|place| super::routine(call, place)) {
        let on_callee = Call::new(callee.clone());
        if on_callee.gosub(&routine).await? == Flow::Hangup {
            return Err(Stop::Hangup);
        }
        let verdict = verdict_of(&on_callee.get("GOSUB_RESULT").unwrap_or_default());
        if !matches!(verdict, Verdict::Talk) {
            return Ok(verdict);
        }
    }
    if let Some(digits) = &options.dtmf {
        let (length, gap) = (dtmf::DEFAULT_MS, dtmf::DEFAULT_GAP);
        if options.echoes_digits {
            dtmf::queue(&call.chan, &digits.to_callee);
        }
        dtmf::send(callee, callee, &digits.to_callee, length, gap).await?;
        dtmf::send(callee, &call.chan, &digits.to_caller, length, gap).await?;
    }
    Ok(Verdict::Talk)
}

/// What the routine of option `U`, or the macro of option `M`, decided.
fn verdict_of(result: &str) -> Verdict {
    let (word, place) = result.split_once(':').unwrap_or((result, ""));
    match word.to_ascii_uppercase().as_str() {
        "ABORT" => Verdict::Refuse(Status::Answer, Flow::Hangup),
        "CONGESTION" => Verdict::Refuse(Status::Congestion, Flow::Continue),
        "BUSY" => Verdict::Refuse(Status::Busy, Flow::Continue),
        "CONTINUE" => Verdict::Refuse(Status::Answer, Flow::Continue),
        "GOTO" => Verdict::GoTo(place.replace('^', ",")),
        _ => Verdict::Talk,
    }
}

fn go_to(call: &Call, target: &str) -> Outcome {
    match call.goto(target) {
        Ok(()) => Ok(Flow::Jumped),
        Err(why) => {
            call.log(Level::Error, &format!("Dial cannot go to '{target}': {why}"));
            Ok(Flow::Continue)
        }
    }
}

/// Option `G`: the caller to the priority, the called party to the one after it.
fn both_go(call: &Call, leg: Leg, target: &str) -> Outcome {
    if let Err(why) = call.goto(target) {
        call.log(Level::Error, &format!("Dial cannot go to '{target}': {why}"));
        leg.end(Cause::NORMAL_CLEARING);
        return Ok(Flow::Continue);
    }
    let mut location = call.here().location();
    location.priority += 1;
    pbx::start_leg(leg, location);
    Ok(Flow::Jumped)
}

pub(crate) async fn bridge_limits(
    call: &Call,
    options: &DialOptions,
    audio: &LimitAudio,
) -> Result<BridgeLimits, Stop> {
    let mut limits = BridgeLimits { duration: options.stop_after, ..BridgeLimits::default() };
    if let Some((_, for_caller)) = &options.announce
        && !for_caller.is_empty()
    {
        call.chan.play(for_caller, "").await?;
    }
    let Some(limit) = options.limit else { return Ok(limits) };
    if audio.to_caller && !audio.connect.is_empty() {
        call.chan.play(&audio.connect, "").await?;
    }
    limits.duration = Some(limits.duration.map_or(limit.whole, |other| other.min(limit.whole)));
    let file = audio.warning.clone();
    limits.warnings = Warnings {
        before: limit.warn_before,
        every: limit.warn_every,
        say: Rc::new(move |left| if file.is_empty() { time_left(left) } else { vec![file.clone()] }),
        to_a: audio.to_caller,
        to_b: audio.to_callee,
    };
    Ok(limits)
}

/// The time that is left, as prompts say it: in English order, because both parties may hear it.
fn time_left(left: Duration) -> Vec<String> {
    // To the nearest second.
    let seconds = left.saturating_add(Duration::from_millis(500)).as_secs();
    let seconds = i64::try_from(seconds).unwrap_or(i64::MAX);
    if seconds == 0 {
        return Vec::new();
    }
    let mut files = vec!["vm-youhave".to_owned()];
    for (count, unit) in [(seconds / 60, "queue-minutes"), (seconds % 60, "queue-seconds")] {
        if count > 0 {
            files.extend(say::number(say::Tongue::English, count, say::Gender::Plain));
            files.push(unit.to_owned());
        }
    }
    files
}

/// The `LIMIT_*` variables: who hears what of a limited call.
pub(crate) struct LimitAudio {
    to_caller: bool,
    to_callee: bool,
    connect: String,
    warning: String,
    timeout: String,
}

impl LimitAudio {
    pub(crate) fn of(call: &Call) -> Self {
        let file = |variable: &str| call.get(variable).unwrap_or_default();
        let yes = |variable: &str, default: bool| {
            let said = call.get(variable).filter(|v| !v.is_empty());
            said.map_or(default, |v| v.eq_ignore_ascii_case("yes"))
        };
        Self {
            to_caller: yes("LIMIT_PLAYAUDIO_CALLER", true),
            to_callee: yes("LIMIT_PLAYAUDIO_CALLEE", false),
            connect: file("LIMIT_CONNECT_FILE"),
            warning: file("LIMIT_WARNING_FILE"),
            timeout: file("LIMIT_TIMEOUT_FILE"),
        }
    }
    async fn time_is_up(&self, call: &Call, leg: &Leg) -> Result<(), Stop> {
        if self.timeout.is_empty() {
            return Ok(());
        }
        if self.to_callee {
            // A called party that hangs up meanwhile changes nothing.
            let _ = call.chan.while_up(leg.chan().play(&self.timeout, "")).await?;
        }
        if self.to_caller {
            call.chan.play(&self.timeout, "").await?;
        }
        Ok(())
    }
}

/// Who goes on where once they have stopped talking.
pub(crate) async fn after_talk(call: &Call, options: &DialOptions, leg: Leg, end: BridgeEnd) -> Outcome {
    let caller = &call.chan;
    let caller_ended =
        matches!(end, BridgeEnd::Stopped(id, _) | BridgeEnd::Disconnected(id) if id == caller.id());
    let callee_up = leg.chan().with(|c| c.hangup.is_none()) == Ok(true);
    call.note_leg(leg.chan());
    match &options.callee_goes_on {
        Some(target) if caller_ended && callee_up => callee_goes_on(call, leg, target),
        _ => {
            if options.h_exten {
                pbx::run_hangup_extension(leg.chan(), call.context()).await;
            }
            // A queue's member goes before its caller.
            match caller.with(|c| c.hangup.is_some() && c.app == "Dial") {
                Ok(true) if caller_ended => pbx::let_go_behind(call, leg),
                _ => pbx::let_go(leg, None),
            }
        }
    }
    match end {
        BridgeEnd::Stopped(id, stop) if id == caller.id() => Err(stop),
        _ if options.go_on => Ok(Flow::Continue),
        _ => Ok(Flow::Hangup),
    }
}

/// Option `F`: the called party goes on in the dialplan; without a target after the Dial's own step.
fn callee_goes_on(call: &Call, leg: Leg, target: &str) {
    let here = call.here().location();
    let location = if target.is_empty() {
        Ok(Location { priority: here.priority + 1, ..here })
    } else {
        call.resolve(target)
    };
    match location {
        Ok(location) => pbx::start_leg(leg, location),
        Err(why) => call.log(Level::Error, &format!("Dial option F cannot go to '{target}': {why}")),
    }
}
