//! From a member's answer to the end of the conversation.

use core::time::Duration;

use ::queue::{End, Exit, Input};
use call::{BridgeEnd, BridgeLimits, Elsewhere, Leg, Level, Stop};

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
    if caller.while_up(prepare(waiting, &leg)).await?.is_err() {
        call.note_leg(leg.chan());
        waiting.tell(Input::Dumped);
        return Ok(None);
    }
    set_variables(waiting, &ringing.interface, &ringing.name);
    after::note_peer(call, leg.chan())?;
    let number = ringing.interface.split_once('/').map_or("", |(_, number)| number);
    call.set("DIALEDPEERNUMBER", number);
    waiting.voice.hush();
    match waiting.asked.rings_first {
        None => caller.answer()?,
        Some(long) => {
            if let Err(status) = callback::reach(call, leg.chan(), long).await? {
                let exit = Exit::Withdrawn(format!("CALLBACK {status}"));
                waiting.tell(Input::Left(exit.clone()));
                return Ok(Some(Out::Left(exit)));
            }
        }
    }
    record(waiting).await?;
    if !waiting.asked.agi.is_empty()
        && let Some(outcome) = call.run_app("AGI", &waiting.asked.agi).await
    {
        outcome?;
    }
    let bridged = leg.chan().with(|c| c.uniqueid.to_string());
    let Ok(bridged) = bridged else {
        waiting.tell(Input::Dumped);
        waiting.voice.start().await?;
        return Ok(None);
    };
    waiting.tell(Input::Connected { bridged });
    let options = &waiting.asked.options;
    let parties =
        (caller.with(|c| c.caller.clone())?, leg.chan().with(|c| c.caller.clone()).unwrap_or_default());
    leg.chan().connect_line(parties.0).await;
    caller.connect_line(parties.1).await;
    let parties = [(caller, Some(options.caller_rights)), (leg.chan(), Some(options.callee_rights))];
    let end = features::converse(parties, BridgeLimits::default(), "Queue").await;
    waiting.tell(Input::Ended(ended(call, &leg, end)));
    if waiting.handling.set_queue_var {
        super::set_queue_variables(call, &waiting.asked.queue);
    }
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

/// What comes before the conversation on the member's channel. `Err`: it is gone.
async fn prepare(waiting: &Waiting<'_>, leg: &Leg) -> Result<(), Stop> {
    let (call, handling, member) = (waiting.call, &waiting.handling, leg.chan());
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

/// What `setinterfacevar`, `setqueueentryvar` and `setqueuevar` ask for.
fn set_variables(waiting: &Waiting<'_>, interface: &str, name: &str) {
    let (call, handling) = (waiting.call, &waiting.handling);
    if handling.set_interface_var {
        let member = call.chan.core(|core| core.queues.get(&waiting.asked.queue)?.member(interface).cloned());
        let Some(member) = member else { return };
        let flag = |is: bool| u8::from(is).to_string();
        for (variable, value) in [
            ("MEMBERINTERFACE", interface.to_owned()),
            ("MEMBERNAME", name.to_owned()),
            ("MEMBERCALLS", member.calls.to_string()),
            ("MEMBERLASTCALL", member.last_call.map_or(0, |last| last.wall).to_string()),
            ("MEMBERPENALTY", member.penalty.to_string()),
            ("MEMBERDYNAMIC", flag(member.membership == ::queue::Membership::Dynamic)),
            ("MEMBERREALTIME", flag(member.membership == ::queue::Membership::Realtime)),
        ] {
            call.set(variable, &value);
        }
    }
    if handling.set_entry_var {
        let entry = call.chan.core(|core| {
            let (_, caller) = core.queues.caller(call.chan.id())?;
            Some((caller.waited(core.now), caller.original))
        });
        if let Some((hold, original)) = entry {
            call.set("QEHOLDTIME", &hold.to_string());
            call.set("QEORIGINALPOS", &original.to_string());
        }
    }
    if handling.set_queue_var {
        super::set_queue_variables(call, &waiting.asked.queue);
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

/// Who ended it, for the log.
fn ended(call: &Call, leg: &Leg, end: BridgeEnd) -> End {
    let (id, stop) = match end {
        BridgeEnd::Stopped(id, stop) => (id, Some(stop)),
        BridgeEnd::Disconnected(id) => (id, None),
        BridgeEnd::Limit => (call.chan.id(), None),
    };
    let by_caller = id == call.chan.id();
    let who = if by_caller { &call.chan } else { leg.chan() };
    match (stop, who.with(|c| c.goto.clone()).ok().flatten()) {
        (Some(Stop::Goto), Some(Elsewhere::Dialplan(to))) => {
            End::Blind { exten: to.exten, context: to.context }
        }
        (Some(Stop::Goto), _) => End::Attended { method: "BRIDGE".to_owned(), to: String::new() },
        _ if by_caller => End::Caller,
        _ => End::Agent,
    }
}
