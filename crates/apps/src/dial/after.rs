//! Between the answer and the end: announcements, routines, the conversation, and who goes on where.

use core::time::Duration;
use std::rc::Rc;
use std::sync::Arc;

use base::{Cause, Clip, Digit};
use call::{
    BridgeEnd, BridgeLimits, Chan, Disposition, Heard, Leg, Level, Location, Shard, Stop, Warnings,
    bridge_pair,
};

use super::legs::Ringing;
use super::{DialOptions, Status};
use crate::{Call, Flow, Outcome, dtmf, pbx};

/// Takes the leg that answered to its end.
pub(crate) async fn converse(call: &Call, options: &DialOptions, leg: Leg, ringing: &Ringing<'_>) -> Outcome {
    let caller = &call.chan;
    call.set("DIALSTATUS", Status::Answer.name());
    call.set("DIALEDPEERNAME", &leg.chan().name());
    call.set("DIALEDPEERNUMBER", &ringing.answered_number);
    note_peer(call, &leg)?;

    match caller.while_up(prepare(call, options, &leg)).await? {
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
        // The called party hung up before anybody talked.
        Err(_) => {
            leg.end(Cause::NORMAL_CLEARING);
            return Ok(if options.go_on { Flow::Continue } else { Flow::Hangup });
        }
    }
    caller.answer()?;
    if let Some(target) = &options.both_go_to {
        return both_go(call, leg, target);
    }

    let started = caller.now();
    let limits = bridge_limits(call, options, &leg).await?;
    let end = bridge_pair(caller, leg.chan(), limits, "Dial").await;
    let talked = caller.now().since(started);
    call.set("ANSWEREDTIME", &talked.as_secs().to_string());
    call.set("ANSWEREDTIME_MS", &talked.as_millis().to_string());
    let times = ringing.times();
    call.set("DIALEDTIME", &times.dialed.as_secs().to_string());
    call.set("DIALEDTIME_MS", &times.dialed.as_millis().to_string());
    after_talk(call, options, leg, end).await
}

/// The record names the peer; the caller learns who answered.
fn note_peer(call: &Call, leg: &Leg) -> Result<(), Stop> {
    let (name, account, identity) =
        leg.chan().with(|c| (c.name.to_string(), c.account.clone(), c.caller.clone())).unwrap_or_default();
    call.chan.with(|c| {
        c.cdr.dst_channel = name;
        c.cdr.peer_account = account.clone();
        c.cdr.disposition = Disposition::Answered;
        c.peer_account = account;
        c.connected = identity;
        c.last_cause = Cause::NORMAL_CLEARING;
    })
}

enum Verdict {
    Talk,
    Refuse(Status, Flow),
    GoTo(String),
}

/// What comes before the conversation, on the called channel: `A`, `U`, `D`. `Err`: it hung up.
async fn prepare(call: &Call, options: &DialOptions, leg: &Leg) -> Result<Verdict, Stop> {
    let callee = leg.chan();
    if let Some((for_callee, _)) = &options.announce
        && !for_callee.is_empty()
        && callee.play(for_callee, "").await? == Heard::Failed
    {
        call.log(Level::Warning, &format!("Dial announcement '{for_callee}' could not be played"));
    }
    if let Some(routine) = &options.answered_routine {
        let on_callee = Call::new(callee.clone());
        on_callee.gosub(routine).await?;
        let result = on_callee.get("GOSUB_RESULT").unwrap_or_default();
        let upper = result.to_ascii_uppercase();
        return Ok(match upper.split(':').next().unwrap_or_default() {
            "ABORT" => Verdict::Refuse(Status::Answer, Flow::Hangup),
            "CONGESTION" => Verdict::Refuse(Status::Congestion, Flow::Continue),
            "BUSY" => Verdict::Refuse(Status::Busy, Flow::Continue),
            "CONTINUE" => Verdict::Refuse(Status::Answer, Flow::Continue),
            "GOTO" => Verdict::GoTo(result.get(5..).unwrap_or_default().replace('^', ",")),
            _ => Verdict::Talk,
        });
    }
    if let Some((to_callee, to_caller, _)) = &options.dtmf {
        dtmf::send(callee, to_callee, dtmf::DEFAULT_MS, dtmf::DEFAULT_GAP).await?;
        dtmf::send(&call.chan, to_caller, dtmf::DEFAULT_MS, dtmf::DEFAULT_GAP).await?;
    }
    Ok(Verdict::Talk)
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
    let mut location = call.chan.with(|c| c.location.clone())?;
    location.priority += 1;
    let shard = call.chan.shard().clone();
    start_on(&shard, leg, location);
    Ok(Flow::Jumped)
}

/// The leg becomes a call of its own.
fn start_on(shard: &Rc<Shard>, leg: Leg, location: Location) {
    let id = leg.keep().id();
    if !pbx::start(shard, id, location) {
        shard.finish(id, Cause::SWITCH_CONGESTION);
    }
}

async fn bridge_limits(call: &Call, options: &DialOptions, leg: &Leg) -> Result<BridgeLimits, Stop> {
    let star = Digit::from_char('*');
    let mut limits = BridgeLimits {
        duration: options.stop_after,
        hangup_digit_a: star.filter(|_| options.caller_hangs_up),
        hangup_digit_b: star.filter(|_| options.callee_hangs_up),
        ..BridgeLimits::default()
    };
    if let Some((_, for_caller)) = &options.announce
        && !for_caller.is_empty()
    {
        call.chan.play(for_caller, "").await?;
    }
    let Some(limit) = options.limit else { return Ok(limits) };
    limits.duration = Some(limits.duration.map_or(limit.whole, |other| other.min(limit.whole)));
    let named = |variable: &str, default: &str| {
        call.get(variable).filter(|v| !v.is_empty()).unwrap_or(default.into())
    };
    let says_yes = |variable: &str, default: bool| {
        call.get(variable).filter(|v| !v.is_empty()).map_or(default, |v| v.eq_ignore_ascii_case("yes"))
    };
    let file = named("LIMIT_WARNING_FILE", "beep");
    let connect = named("LIMIT_CONNECT_FILE", "");
    let (to_caller, to_callee) =
        (says_yes("LIMIT_PLAYAUDIO_CALLER", true), says_yes("LIMIT_PLAYAUDIO_CALLEE", false));
    if !connect.is_empty() && to_caller {
        call.chan.play(&connect, "").await?;
    }
    let clip = |wanted: bool, chan: Chan| {
        let file = file.clone();
        async move { if wanted { chan.clip(&file).await } else { Ok::<Option<Arc<Clip>>, Stop>(None) } }
    };
    limits.warnings = Warnings {
        before: limit.warn_before,
        every: limit.warn_every,
        for_a: clip(to_caller && limit.warn_before > Duration::ZERO, call.chan.clone()).await?,
        for_b: clip(to_callee && limit.warn_before > Duration::ZERO, leg.chan().clone())
            .await
            .unwrap_or_default(),
    };
    Ok(limits)
}

/// Who goes on where once they have stopped talking.
async fn after_talk(call: &Call, options: &DialOptions, leg: Leg, end: BridgeEnd) -> Outcome {
    let caller = &call.chan;
    let caller_ended = match end {
        BridgeEnd::Stopped(id, stop) if id == caller.id() => Some(stop),
        BridgeEnd::Disconnected(id) if id == caller.id() => Some(Stop::Hangup),
        BridgeEnd::Stopped(..) | BridgeEnd::Disconnected(_) | BridgeEnd::Limit => None,
    };
    let cause = leg.chan().with(|c| c.hangup).ok().flatten();
    if caller_ended.is_none() {
        call.note_leg(leg.chan());
    }
    let callee_up = cause.is_none();
    if let (Some(target), true, true) = (&options.callee_goes_on, caller_ended.is_some(), callee_up) {
        callee_goes_on(call, leg, target);
    } else {
        if options.h_exten {
            pbx::run_hangup_extension(
                leg.chan(),
                caller.with(|c| c.location.context.clone()).unwrap_or_default(),
            )
            .await;
        }
        leg.end(Cause::NORMAL_CLEARING);
    }
    match (end, caller_ended) {
        (BridgeEnd::Disconnected(_), Some(_)) => Ok(Flow::Hangup),
        (_, Some(stop)) => Err(stop),
        (_, None) if options.go_on => Ok(Flow::Continue),
        (_, None) => Ok(Flow::Hangup),
    }
}

/// Option `F`: the called party goes on in the dialplan; without a target after the Dial's own step.
fn callee_goes_on(call: &Call, leg: Leg, target: &str) {
    let here = call.chan.with(|c| c.location.clone()).unwrap_or_default();
    let shard = call.chan.shard().clone();
    let location = if target.is_empty() {
        Ok(Location { priority: here.priority + 1, ..here })
    } else {
        call.resolve(target)
    };
    match location {
        Ok(location) => start_on(&shard, leg, location),
        Err(why) => call.log(Level::Error, &format!("Dial option F cannot go to '{target}': {why}")),
    }
}
