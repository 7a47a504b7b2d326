//! From a member's answer to the end of the conversation.

use core::time::Duration;
use std::rc::Rc;

use ::queue::{End, Exit, Input};
use call::{BridgeEnd, BridgeLimits, Chan, Elsewhere, Leg, Level, Stop};

use dialplan::{Inherit, Var};

use super::callback;
use super::wait::{Out, Ringing, Waiting};
use crate::dial::{DialOptions, after};
use crate::{Call, Flow, features, say};

/// Takes a member who has answered to the end of the conversation; `None`: it went away before that, and the caller waits on.
pub(super) async fn converse(waiting: &mut Waiting<'_>, ringing: Ringing) -> Result<Option<Out>, Stop> {
    let call = waiting.call;
    let caller = &call.chan;
    let leg = ringing.leg;
    caller.suit(leg.chan().id());
    let member = (&*ringing.interface, &*ringing.name);
    if caller.while_up(tell_member(waiting, &leg)).await?.is_err() {
        call.note_leg(leg.chan());
        waiting.tell(Input::Dumped);
        return Ok(None);
    }
    waiting.voice.hush();
    if caller.while_up(prepare(waiting, &leg, member)).await?.is_err() {
        return lost(waiting, &leg).await;
    }
    after::note_peer(call, leg.chan())?;
    if caller.core(|core| core.queues.general().update_cdr) {
        caller.with(|c| c.cdr.show_party(&ringing.name))?;
    }
    let number = ringing.interface.split_once('/').map_or("", |(_, number)| number);
    let _ = caller.with(|c| c.vars.set(Var::named("DIALEDPEERNUMBER"), number, Inherit::Never));
    waiting.tell(Input::Heard);
    if let Some(first) = &waiting.asked.rings_first
        && let Err(status) = callback::reach(call, leg.chan(), first.ring).await?
    {
        let exit = Exit::Withdrawn(format!("CALLBACK {status}"));
        waiting.tell(Input::Left(exit.clone()));
        return Ok(Some(Out::Left(exit)));
    }
    if !waiting.handling.caller_announce.is_empty() {
        caller.answer()?;
        caller.play(&waiting.handling.caller_announce, "").await?;
    }
    if leg.chan().check().is_err() {
        return lost(waiting, &leg).await;
    }
    record(waiting).await?;
    if !waiting.asked.agi.is_empty() {
        // What the script says of the dialplan is of no meaning here; its caller may be gone.
        call.run_app("AGI", &waiting.asked.agi).await.transpose()?;
    }
    let bridged = leg.chan().check().and_then(|()| leg.chan().with(|c| c.uniqueid.to_string()));
    let Ok(bridged) = bridged else {
        stop_record(waiting).await?;
        return lost(waiting, &leg).await;
    };
    let position = waiting.position();
    waiting.tell(Input::Connected { bridged });
    waiting.write_position(position);
    waiting.write_wait();
    waiting.tell(Input::Introduced);
    caller.answer()?;
    after::note_peer(call, leg.chan())?;
    if let Some(first) = &waiting.asked.rings_first {
        callback::served(caller, first);
    }
    let options = &waiting.asked.options;
    if !options.ignore_parties {
        let parties =
            (caller.with(|c| c.caller.clone())?, leg.chan().with(|c| c.caller.clone()).unwrap_or_default());
        leg.chan().connect_line(parties.0).await;
        caller.connect_line(parties.1).await;
    }
    let parties = [(caller, Some(options.caller_rights)), (leg.chan(), Some(options.callee_rights))];
    leg.chan().core(|core| core.show_changes(leg.chan().id()));
    let began = caller.now();
    let told = [caller.clone(), leg.chan().clone()];
    let on_end = move |end| {
        let input = Input::Ended(ended([&told[0], &told[1]], end));
        let id = told[0].id();
        told[0].core(|core| core.with_queues(|queues, now, out| queues.input(id, input, now, out)));
    };
    let limits = BridgeLimits { on_end: Some(Rc::new(on_end)), ..BridgeLimits::default() };
    let end = features::converse(parties, limits).await;
    let talked = caller.now().since(began);
    // Where they never talked it is told now.
    waiting.tell(Input::Ended(ended([caller, leg.chan()], end)));
    if waiting.handling.set_queue_var {
        super::set_queue_variables(call, &waiting.asked.queue);
    }
    waiting.write_talk(talked);
    let dial = DialOptions {
        go_on: options.go_on,
        callee_goes_on: options.callee_goes_on.clone(),
        ..DialOptions::default()
    };
    let outcome = after::after_talk(call, &dial, leg, end).await;
    if outcome == Ok(Flow::Continue) {
        call.set("QUEUESTATUS", "CONTINUE");
    }
    Ok(Some(Out::Ended(outcome)))
}

/// The member is gone after the caller was told of it: the caller waits on, and hears so.
async fn lost(waiting: &mut Waiting<'_>, leg: &Leg) -> Result<Option<Out>, Stop> {
    waiting.call.note_leg(leg.chan());
    waiting.tell(Input::Dumped);
    waiting.voice.start().await?;
    Ok(None)
}

/// What a member hears of the call. `Err`: it is gone.
async fn tell_member(waiting: &Waiting<'_>, leg: &Leg) -> Result<(), Stop> {
    let (handling, member) = (&waiting.handling, leg.chan());
    if !handling.member_delay.is_zero() {
        member.wait(handling.member_delay).await?;
    }
    if handling.report_hold {
        report_hold(waiting, leg).await?;
    }
    let announce = match waiting.asked.announce.as_str() {
        "" => handling.announce.as_str(),
        own => own,
    };
    for sound in announce.split('&').map(str::trim).filter(|sound| !sound.is_empty()) {
        member.play(sound, "").await?;
    }
    member.check()
}

/// What else comes before the conversation on the member's channel. `Err`: it is gone.
async fn prepare(waiting: &Waiting<'_>, leg: &Leg, named: (&str, &str)) -> Result<(), Stop> {
    let (call, handling, member) = (waiting.call, &waiting.handling, leg.chan());
    // A macro or routine on the member's channel reads them there.
    set_variables(waiting, [call, &Call::new(member.clone())], named);
    let name =
        if waiting.asked.macro_name.is_empty() { &handling.member_macro } else { &waiting.asked.macro_name };
    if !name.is_empty() && Call::new(member.clone()).run_macro(name, "").await? == Flow::Hangup {
        return Err(Stop::Hangup);
    }
    let gosub = if waiting.asked.gosub.is_empty() { &handling.member_gosub } else { &waiting.asked.gosub };
    if let Some(routine) = (!gosub.is_empty()).then(|| routine_of(call, gosub)).flatten() {
        let on_member = Call::new(member.clone());
        if on_member.gosub(&routine).await? == Flow::Hangup {
            return Err(Stop::Hangup);
        }
    }
    member.check()
}

/// A routine as queues.conf and Queue() name it: a context alone means its `s,1`.
fn routine_of(call: &Call, text: &str) -> Option<String> {
    let text = text.replace('^', ",");
    let full = if text.contains(',') { text } else { format!("{text},s,1") };
    crate::dial::routine(call, &full)
}

/// "Hold time: … minutes, … seconds".
async fn report_hold(waiting: &Waiting<'_>, leg: &Leg) -> Result<(), Stop> {
    let call = waiting.call;
    let told = call.chan.core(|core| {
        let (queue, caller) = core.queues.caller(call.chan.id())?;
        let waited = Duration::from_secs(caller.waited(core.now));
        Some((waited, queue.settings.announcing.round_seconds, queue.settings.announcing.sounds.clone()))
    });
    let Some((waited, round, sounds)) = told else { return Ok(()) };
    let (minutes, seconds) = ::queue::minutes_and_seconds(waited, round.max(1));
    if minutes == 0 && seconds == 0 {
        return Ok(());
    }
    let mut files = vec![sounds.report_hold.to_string()];
    if minutes > 0 {
        files.extend(say::number_words(leg.chan(), i64::from(minutes)).await?);
        files.push(if minutes == 1 { &sounds.minute } else { &sounds.minutes }.to_string());
    }
    if seconds > 0 {
        files.extend(say::number_words(leg.chan(), i64::from(seconds)).await?);
        files.push(sounds.seconds.to_string());
    }
    for file in files {
        leg.chan().play(&file, "").await?;
    }
    Ok(())
}

/// What `setinterfacevar`, `setqueueentryvar` and `setqueuevar` ask for, on both channels.
fn set_variables(waiting: &Waiting<'_>, sides: [&Call; 2], (interface, name): (&str, &str)) {
    let (caller, handling) = (&waiting.call.chan, &waiting.handling);
    let set_all = |rows: &[(&str, String)]| {
        for side in sides {
            rows.iter().for_each(|(variable, value)| side.set(variable, value));
        }
    };
    if handling.set_interface_var
        && let Some(member) =
            caller.core(|core| core.queues.get(&waiting.asked.queue)?.member(interface).cloned())
    {
        let flag = |is: bool| u8::from(is).to_string();
        set_all(&[
            ("MEMBERINTERFACE", interface.to_owned()),
            ("MEMBERNAME", name.to_owned()),
            ("MEMBERCALLS", member.calls.to_string()),
            ("MEMBERLASTCALL", member.last_call.map_or(0, |last| last.wall).to_string()),
            ("MEMBERPENALTY", member.penalty.to_string()),
            ("MEMBERDYNAMIC", flag(member.membership == ::queue::Membership::Dynamic)),
            ("MEMBERREALTIME", flag(member.membership == ::queue::Membership::Realtime)),
        ]);
    }
    if handling.set_entry_var {
        let entry = caller.core(|core| {
            let (_, entry) = core.queues.caller(caller.id())?;
            Some((entry.waited(core.now), entry.original))
        });
        if let Some((hold, original)) = entry {
            set_all(&[("QEHOLDTIME", hold.to_string()), ("QEORIGINALPOS", original.to_string())]);
        }
    }
    if handling.set_queue_var {
        for side in sides {
            super::set_queue_variables(side, &waiting.asked.queue);
        }
    }
}

/// Begins the recording that `monitor-format` asks for.
async fn record(waiting: &Waiting<'_>) -> Result<(), Stop> {
    let (call, handling) = (waiting.call, &waiting.handling);
    if handling.monitor_format.is_empty() {
        return Ok(());
    }
    let named = call.get("MONITOR_FILENAME").filter(|name| !name.is_empty());
    let name = match named {
        Some(name) => name,
        None => call.chan.with(|c| c.uniqueid.to_string())?,
    };
    // The format may be several, of which the first is written.
    let format = handling.monitor_format.split('|').next().unwrap_or_default();
    let (app, arguments) = if handling.mix_monitor {
        let options = call.get("MONITOR_OPTIONS").unwrap_or_default();
        ("MixMonitor", format!("{name}.{format},b{options}"))
    } else {
        ("Monitor", format!("{format},{name},m"))
    };
    match call.run_app(app, &arguments).await {
        Some(outcome) => drop(outcome?),
        None => call.log(Level::Warning, &format!("{app} is switched off: the conversation is not recorded")),
    }
    Ok(())
}

/// Ends it again: the member is gone before anybody talked, and what the caller says while it waits is nobody's business.
async fn stop_record(waiting: &Waiting<'_>) -> Result<(), Stop> {
    let (call, handling) = (waiting.call, &waiting.handling);
    if !handling.monitor_format.is_empty() {
        let app = if handling.mix_monitor { "StopMixMonitor" } else { "StopMonitor" };
        call.run_app(app, "").await.transpose()?;
    }
    Ok(())
}

/// Who ended it, for the log.
fn ended([ours, theirs]: [&Chan; 2], end: BridgeEnd) -> End {
    let (id, stop) = match end {
        BridgeEnd::Stopped(id, stop) => (id, Some(stop)),
        BridgeEnd::Disconnected(id) => (id, None),
        BridgeEnd::Limit => (ours.id(), None),
    };
    let sent = |chan: &call::Chan| chan.with(|c| c.sent_into.clone()).ok().flatten();
    if let Some((is_bridge, to)) = sent(ours).or_else(|| sent(theirs)) {
        let method = if is_bridge { "BRIDGE" } else { "APP" };
        return End::Attended { method: method.to_owned(), to };
    }
    let by_caller = id == ours.id();
    let who = if by_caller { ours } else { theirs };
    match (stop, who.with(|c| c.goto.clone()).ok().flatten()) {
        (Some(Stop::Goto), Some(Elsewhere::Dialplan(to))) => {
            End::Blind { exten: to.exten, context: to.context }
        }
        (Some(Stop::Goto), _) => End::Attended { method: "BRIDGE".to_owned(), to: String::new() },
        _ if by_caller => End::Caller,
        _ => End::Agent,
    }
}
