//! `Queue`: a caller waits until a member takes the call. Who is called for whom is decided by the machine of the crate
//! `queue`; here its orders are carried out on channels, and what happens on them is told to it.

pub(crate) mod callback;
pub(crate) mod members;
mod options;
mod rows;
mod talk;
mod voice;
mod wait;

use core::time::Duration;

use ::queue::{Bounds, CallerId, Closed, Exit, Join, Skills};
use call::{Chan, Level, PartyId, Presentation, QueuePlace};
use dialplan::Var;

use crate::call_ctx::args;
use crate::flow::rows;
use crate::{AppRow, Call, Flow, Outcome, Run, hints};
pub(crate) use options::LETTERS;
use options::QueueOptions;
use wait::{Out, Waiting};

pub(crate) const ROWS: &[AppRow] = rows! {
    "Queue" "app_queue" Run::Story(|call, text| Box::pin(async move { queue(&call, &text).await })),
        "Lets a caller wait for a member of a queue.",
        "Queue(queuename[,options[,URL[,announceoverride[,timeout[,AGI[,gosub[,rule[,position]]]]]]]])",
        "The caller hears music and announcements until a member of the queue in queues.conf answers, then the two talk.\n\
         With ten arguments the seventh is the macro of Asterisk before 21, which is not run.\n\n\
         URL  is written into the log only.\n\
         announceoverride  sounds for the member instead of those of the queue, joined by '&'.\n\
         timeout  seconds after which the caller leaves.\n\
         AGI  a script on the caller's channel before the two talk.\n\
         gosub  a routine on the member's channel before the two talk, instead of membergosub.\n\
         rule  a section of queuerules.conf instead of defaultrule.\n\
         position  the place at which the caller enters, as far as priorities let it.\n\n\
         options:\n  \
         b(ctx^ext^prio(args))  Gosub on each member's channel before it is called.\n  \
         B(ctx^ext^prio(args))  Gosub on the caller's channel before it enters.\n  \
         c  goes on with the dialplan when the member hangs up.\n  \
         C  members whose phones are let be are told that the call was answered elsewhere.\n  \
         F([ctx^ext^prio])  when the caller hangs up, the member goes on there (no argument: next priority).\n  \
         h / H  the member / the caller may hang up with the code of disconnect (*) in features.conf.\n  \
         i  members' phones do not forward the call.\n  \
         I  the caller and the member are not shown to each other.\n  \
         k / K  the member / the caller may park the other by the code of parkcall.\n  \
         m(class)  music of this class.\n  \
         n  leaves after one round: when the strategies rrmemory, rrordered and linear have called every member, the others\n     \
            once.\n  \
         r  ringing instead of music.\n  \
         R  ringing while a member's phone rings.\n\
         t / T  the member / the caller may transfer the other by the codes of blindxfer (#) and atxfer.\n  \
         w W x X  as in Dial: recording by the codes of automon and automixmon.\n\
         d has no effect; that is logged.\n\n\
         Reads QUEUE_PRIO, QUEUE_MAX_PENALTY, QUEUE_MIN_PENALTY, QUEUE_RAISE_PENALTY, MONITOR_FILENAME, MONITOR_OPTIONS, and\n\
         QUEUE_SKILLS: skills that members must have, with the least level of each, as in german=3&sales.\n\
         Sets QUEUESTATUS (TIMEOUT FULL JOINEMPTY LEAVEEMPTY CONTINUE WITHDRAW), ABANDONED, QUEUEPOSITION (where it was when it\n\
         left), QUEUEWAIT, DIALEDTIME and ANSWEREDTIME (seconds; with _MS milliseconds), QUEUE_WITHDRAW_INFO,\n\
         DIALEDPEERNUMBER and what setinterfacevar, setqueuevar and setqueueentryvar of the queue say.";
};

/// What the arguments say.
pub(crate) struct Asked {
    pub(crate) queue: String,
    pub(crate) options: QueueOptions,
    pub(crate) announce: String,
    pub(crate) agi: String,
    pub(crate) gosub: String,
    pub(crate) macro_name: String,
    /// Who waits is nobody's phone yet: it is called when a member has answered.
    pub(crate) rings_first: Option<callback::First>,
}

/// How long the caller waited, was called for and talked, seconds and milliseconds.
const TIMES: [&str; 6] =
    ["ANSWEREDTIME", "ANSWEREDTIME_MS", "DIALEDTIME", "DIALEDTIME_MS", "QUEUEWAIT", "QUEUEWAIT_MS"];

async fn queue(call: &Call, text: &str) -> Outcome {
    let _ = call.chan.with(|c| {
        for variable in ["QUEUESTATUS", "ABANDONED", "QUEUE_WITHDRAW_INFO", "QUEUEPOSITION"] {
            c.vars.remove(Var::named(variable));
        }
    });
    for variable in TIMES {
        call.set(variable, "");
    }
    let parts = args::split(text);
    let part = |index: usize| args::nth(&parts, index).to_owned();
    // What follows the macro that Asterisk 20 and earlier had here.
    let has_macro = parts.len() > 9;
    let late = |index: usize| part(if has_macro { index + 1 } else { index });
    let options = QueueOptions::parse(&part(1));
    for letter in &options.without_effect {
        call.log(Level::Warning, &format!("Queue option '{letter}' has no effect"));
    }
    let asked = Asked {
        queue: part(0),
        options,
        announce: part(3),
        agi: part(5),
        gosub: late(6),
        macro_name: if has_macro { part(6) } else { String::new() },
        rings_first: None,
    };
    if asked.queue.is_empty() {
        call.log(Level::Warning, "Queue requires an argument: queuename");
        return Ok(Flow::Hangup);
    }
    if let Some(routine) =
        asked.options.caller_routine.as_deref().and_then(|place| crate::dial::routine(call, place))
        && call.gosub(&routine).await? == Flow::Hangup
    {
        return Ok(Flow::Hangup);
    }
    call.chan.check()?;
    self::rows::refresh(call, &asked.queue).await?;
    let timeout = args::seconds(&part(4)).filter(|timeout| !timeout.is_zero());
    let join = joining(call, &asked, timeout, (part(2), late(7), late(8)))?;
    let place = call.chan.core(|core| QueuePlace {
        queue: asked.queue.as_str().into(),
        since: core.queue_now(),
        priority: join.priority,
        bounds: join.bounds,
        skills: join.skills.clone(),
        rule: join.rule.clone(),
    });
    call.chan.while_up(hints::look_members_up(call.chan.shard(), &asked.queue)).await?;
    let _guard = InQueue(call.chan.clone());
    let joined =
        call.chan.core(|core| core.with_queues(|queues, now, out| queues.join(&asked.queue, join, now, out)));
    match joined {
        Err(Closed::NoQueue) => {
            call.log(
                Level::Warning,
                &format!("unable to join queue '{}': there is no such queue", asked.queue),
            );
            return Ok(Flow::Continue);
        }
        Err(closed) => {
            let status = if closed == Closed::Full { "FULL" } else { "JOINEMPTY" };
            call.set("QUEUESTATUS", status);
            call.log(Level::Verbose(3), &format!("queue '{}' takes no caller: {status}", asked.queue));
            return Ok(Flow::Continue);
        }
        Ok(_) => {}
    }
    call.chan.core(|core| {
        let Some(c) = core.get_mut(call.chan.id()) else { return };
        c.queue_place = Some(Box::new(place));
    });
    let (out, sets_variables) = Waiting::new(call, &asked).run().await;
    if sets_variables {
        set_queue_variables(call, &asked.queue);
    }
    match out {
        Out::Ended(outcome) => {
            let _ = call.chan.with(|c| c.queue_place = None);
            outcome
        }
        Out::Stopped(stop) => Err(stop),
        Out::Left(exit) => Ok(left(call, &exit)),
        Out::Key(place) => {
            call.stand_at(place);
            Ok(Flow::Jumped)
        }
        Out::HungUp => Ok(Flow::Hangup),
    }
}

/// What is written down of a caller whom the queue let go.
fn left(call: &Call, exit: &Exit) -> Flow {
    let status = match exit {
        Exit::Timeout => "TIMEOUT",
        Exit::Empty => "LEAVEEMPTY",
        Exit::Withdrawn(info) => {
            call.set("QUEUE_WITHDRAW_INFO", info);
            "WITHDRAW"
        }
        Exit::Abandoned | Exit::Key(_) => "",
    };
    call.set("QUEUESTATUS", status);
    Flow::Continue
}

/// A caller as the log knows it.
pub(super) fn caller_id(caller: &PartyId) -> CallerId {
    let presentations = [caller.number_presentation, caller.name_presentation];
    CallerId {
        number: caller.number().to_owned(),
        name: caller.name().to_owned(),
        is_restricted: presentations.into_iter().any(Presentation::is_hidden),
    }
}

fn joining(
    call: &Call,
    asked: &Asked,
    timeout: Option<Duration>,
    (url, rule, position): (String, String, String),
) -> Result<Join, call::Stop> {
    let (uniqueid, id) = call.chan.with(|c| (c.uniqueid.clone(), caller_id(&c.caller)))?;
    let variable = |name: &str| call.get(name).unwrap_or_default();
    let skills = variable("QUEUE_SKILLS");
    let skills = Skills::parse(&skills).unwrap_or_else(|wrong| {
        call.log(Level::Warning, &format!("QUEUE_SKILLS has '{wrong}', which is no skill; none is needed"));
        Skills::default()
    });
    if !rule.is_empty() && !call.chan.core(|core| core.queues.has_rule(&rule)) {
        let (queue, why) = (&asked.queue, "there is no such section in queuerules.conf");
        call.log(
            Level::Warning,
            &format!("Queue '{queue}' is to follow rule '{rule}': {why}; it has no rule"),
        );
    }
    if !position.is_empty() && position.parse::<u32>().is_err() {
        let text = format!(
            "Queue '{}': the position '{position}' is no number; the caller enters at the end",
            asked.queue
        );
        call.log(Level::Warning, &text);
    }
    Ok(Join {
        caller: call.chan.id(),
        uniqueid,
        id,
        url,
        priority: variable("QUEUE_PRIO").trim().parse().unwrap_or(0),
        position: position.parse().ok().filter(|place| *place > 0),
        since: None,
        timeout,
        no_retry: asked.options.no_retry,
        bounds: Bounds::read(
            &variable("QUEUE_MAX_PENALTY"),
            &variable("QUEUE_MIN_PENALTY"),
            &variable("QUEUE_RAISE_PENALTY"),
        ),
        skills,
        rule,
    })
}

/// However the story ends, also by a fault of its own, the queue forgets the caller.
struct InQueue(Chan);

impl Drop for InQueue {
    fn drop(&mut self) {
        let id = self.0.id();
        self.0.core(|core| {
            core.with_queues(|queues, now, out| queues.gone(id, now, out));
            core.queue_orders_end(id);
        });
    }
}

/// What `setqueuevar` and `QUEUE_VARIABLES()` set.
pub(crate) fn set_queue_variables(call: &Call, queue: &str) -> bool {
    let rows = call.chan.core(|core| {
        let queue = core.queues.get(queue)?;
        let (stats, settings) = (queue.stats, &queue.settings);
        Some([
            ("QUEUENAME", queue.name.to_string()),
            ("QUEUEMAX", settings.max_length.to_string()),
            ("QUEUESTRATEGY", settings.strategy.name().to_owned()),
            ("QUEUECALLS", queue.callers().len().to_string()),
            ("QUEUEHOLDTIME", stats.hold.to_string()),
            ("QUEUETALKTIME", stats.talk.to_string()),
            ("QUEUECOMPLETED", stats.completed.to_string()),
            ("QUEUEABANDONED", stats.abandoned.to_string()),
            ("QUEUESRVLEVEL", settings.service_level.as_secs().to_string()),
            ("QUEUESRVLEVELPERF", format!("{:.1}", stats.level_of_completed())),
        ])
    });
    rows.iter().flatten().for_each(|(name, value)| call.set(name, value));
    rows.is_some()
}
