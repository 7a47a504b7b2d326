//! Applications that change who is a member of a queue, and that write into its log.

use core::time::Duration;

use ::queue::{Entry, Line, NewMember, Refused, Whom};
use call::Level;

use crate::call_ctx::args;
use crate::flow::rows;
use crate::{AppRow, Call, Flow, Outcome, Run, hints};

pub(crate) const ROWS: &[AppRow] = rows! {
    "AddQueueMember" "app_queue" Run::Now(add),
        "Makes somebody a member of a queue.",
        "AddQueueMember(queuename[,interface[,penalty[,options[,membername[,stateinterface[,wrapuptime]]]]]])",
        "Without an interface the device of the channel. The device whose state counts may be another (hint:6001@default,\n\
         Custom:agent1). No options have an effect.\n\
         Sets AQMSTATUS (ADDED MEMBERALREADY NOSUCHQUEUE).";
    "RemoveQueueMember" "app_queue" Run::Now(remove),
        "Takes a member out of a queue.", "RemoveQueueMember(queuename[,interface])",
        "Without an interface the device of the channel.\n\
         Sets RQMSTATUS (REMOVED NOTINQUEUE NOSUCHQUEUE NOTDYNAMIC).";
    "PauseQueueMember" "app_queue" Run::Now(|call, text| pause(call, text, true)),
        "Lets a member have no calls.", "PauseQueueMember([queuename],interface[,options[,reason]])",
        "Without a queue in all that it is a member of. The reason is told and logged. No options have an effect.\n\
         Sets PQMSTATUS (PAUSED NOTFOUND).";
    "UnpauseQueueMember" "app_queue" Run::Now(|call, text| pause(call, text, false)),
        "Lets a member have calls again.", "UnpauseQueueMember([queuename],interface[,options[,reason]])",
        "Without a queue in all that it is a member of.\n\
         Sets UPQMSTATUS (UNPAUSED NOTFOUND).";
    "QueueUpdate" "app_queue" Run::Now(update),
        "Counts a call that a member made or had outside of a queue as one of the queue.",
        "QueueUpdate(queuename,uniqueid,agent,status,talktime[,params])",
        "For the h extension of calls that members place: QueueUpdate(${QUEUE},${UNIQUEID},${AGENT},${DIALSTATUS},${ANSWEREDTIME}). \
         Writes OUTCALL with status, talktime and params into the log. With the status ANSWER the queue's figures, the member's \
         calls and its wrap-up time count it. agent is the member's interface or name.\n\
         Sets QUEUEUPDATESTATUS (UPDATED NOQUEUE ERROR).";
    "QueueLog" "app_queue" Run::Now(log),
        "Writes a line into the log of queues.", "QueueLog(queuename,uniqueid,agent,event[,additionalinfo])",
        "additionalinfo may have several fields, parted by '|'.";
};

/// The device of the channel: its name without the number.
fn own_device(call: &Call) -> String {
    let name = call.chan.name();
    name.rsplit_once('-').map_or(&*name, |(device, _)| device).to_owned()
}

fn interface(call: &Call, text: &str) -> String {
    if text.is_empty() { own_device(call) } else { text.to_owned() }
}

/// Who did it, in the log: the channel.
fn by(call: &Call) -> String {
    call.chan.with(|c| c.uniqueid.to_string()).unwrap_or_default()
}

fn add(call: &Call, text: &str) -> Outcome {
    let parts = args::split(text);
    let part = |index: usize| args::nth(&parts, index);
    let wrapup = part(6).parse().ok().filter(|seconds| *seconds > 0).map(Duration::from_secs);
    let penalty = match part(2) {
        "" => 0,
        text => text.parse().unwrap_or_else(|_| {
            call.log(Level::Warning, &format!("Penalty '{text}' is invalid, must be an integer >= 0"));
            0
        }),
    };
    let mut member = NewMember {
        interface: interface(call, part(1)),
        penalty,
        name: part(4).to_owned(),
        state_interface: part(5).to_owned(),
        wrapup,
        ..NewMember::default()
    };
    member.state = Some(crate::hints::member_state(call.chan.shard(), member.device()));
    let by = by(call);
    let added = call
        .chan
        .core(|core| core.with_queues(|queues, now, out| queues.add(part(0), &member, &by, now, out)));
    let status = match added {
        Ok(()) => "ADDED",
        Err(Refused::AlreadyMember) => "MEMBERALREADY",
        Err(_) => "NOSUCHQUEUE",
    };
    hints::ask_members(call.chan.shard(), part(0));
    if added == Err(Refused::NoQueue) {
        call.log(Level::Warning, &format!("Unable to add interface to queue '{}': No such queue", part(0)));
    }
    call.set("AQMSTATUS", status);
    Ok(Flow::Continue)
}

fn remove(call: &Call, text: &str) -> Outcome {
    let parts = args::split(text);
    let (queue, by) = (args::nth(&parts, 0), by(call));
    let interface = interface(call, args::nth(&parts, 1));
    let removed = call
        .chan
        .core(|core| core.with_queues(|queues, now, out| queues.remove(queue, &interface, &by, now, out)));
    let status = match removed {
        Ok(_) => "REMOVED",
        Err(Refused::NoQueue) => "NOSUCHQUEUE",
        Err(Refused::NotDynamic) => "NOTDYNAMIC",
        Err(_) => "NOTINQUEUE",
    };
    call.set("RQMSTATUS", status);
    Ok(Flow::Continue)
}

fn pause(call: &Call, text: &str, paused: bool) -> Outcome {
    let parts = args::split(text);
    let part = |index: usize| args::nth(&parts, index);
    if part(1).is_empty() {
        call.log(Level::Warning, "Missing interface argument: [queuename],interface[,options[,reason]]");
    }
    let queue = Some(part(0)).filter(|queue| !queue.is_empty());
    let by = by(call);
    let whom = Whom { queue, interface: part(1), by: &by };
    let done = call
        .chan
        .core(|core| core.with_queues(|queues, now, out| queues.pause(whom, paused, part(3), now, out)));
    let (variable, status) = match (paused, done.is_ok()) {
        (true, true) => ("PQMSTATUS", "PAUSED"),
        (true, false) => ("PQMSTATUS", "NOTFOUND"),
        (false, true) => ("UPQMSTATUS", "UNPAUSED"),
        (false, false) => ("UPQMSTATUS", "NOTFOUND"),
    };
    call.set(variable, status);
    Ok(Flow::Continue)
}

fn update(call: &Call, text: &str) -> Outcome {
    let parts = args::split(text);
    let part = |index: usize| args::nth(&parts, index).trim();
    let (queue, agent, status) = (part(0), part(2), part(3));
    if part(4).is_empty() {
        call.log(
            Level::Warning,
            "QueueUpdate requires arguments (queuename,uniqueid,agent,status,talktime[,params])",
        );
        call.set("QUEUEUPDATESTATUS", "ERROR");
        return Ok(Flow::Continue);
    }
    let talked = status.eq_ignore_ascii_case("ANSWER").then(|| part(4).parse().unwrap_or(0));
    let found = call.chan.core(|core| {
        core.queues.get(queue)?;
        core.with_queues(|queues, now, out| queues.outside_call(queue, agent, talked, now, out));
        let data = [status, part(4), part(5)].map(str::to_owned).to_vec();
        let entry = Entry::Custom { event: "OUTCALL".to_owned(), data };
        let (time, call) = (core.queue_now().wall, part(1).into());
        core.queue_lines.push(Line { time, call, queue: queue.into(), agent: agent.into(), entry });
        Some(())
    });
    call.set("QUEUEUPDATESTATUS", if found.is_some() { "UPDATED" } else { "NOQUEUE" });
    Ok(Flow::Continue)
}

fn log(call: &Call, text: &str) -> Outcome {
    let parts = args::split(text);
    let part = |index: usize| args::nth(&parts, index);
    if part(3).is_empty() {
        call.log(
            Level::Warning,
            "QueueLog requires arguments (queuename,uniqueid,agent,event[,additionalinfo])",
        );
        return Ok(Flow::Continue);
    }
    let data = part(4).split('|').map(str::to_owned).filter(|data| !data.is_empty()).collect();
    call.chan.core(|core| {
        let time = core.queue_now().wall;
        let entry = Entry::Custom { event: part(3).to_owned(), data };
        let line = Line { time, call: part(1).into(), queue: part(0).into(), agent: part(2).into(), entry };
        core.queue_lines.push(line);
    });
    Ok(Flow::Continue)
}
