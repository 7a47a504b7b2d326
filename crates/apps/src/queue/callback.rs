//! `QueueCallback`: a caller hangs up and keeps its place. A channel that nobody has called yet waits there for it; when a
//! member has answered, the caller is called by it.

use core::time::Duration;

use ::queue::{Bounds, Closed, Entry, Exit, Join, Line, Skills};
use base::Cause;
use call::{Chan, ChanEvent, Leg, Level, Notice, PartyId, QueuePlace, Request, Shard, Stop};

use super::options::QueueOptions;
use super::wait::{Out, Waiting};
use super::{Asked, InQueue};
use crate::call_ctx::args;
use crate::dial::status_of;
use crate::flow::rows;
use crate::{AppRow, Call, Flow, Outcome, Run, hints};
use dialplan::Options;
use std::rc::Rc;

pub(crate) const ROWS: &[AppRow] = rows! {
    "QueueCallback" "app_queue" Run::Story(|call, text| Box::pin(async move { queue_callback(&call, &text).await })),
        "Keeps the caller's place in a queue, for a call back.",
        "QueueCallback(queuename,technology/resource[,options])",
        "The caller may hang up: its place in the queue is kept by a channel to technology/resource that is not called yet.\n\
         It stands where the caller stood when it left Queue() last, with its priority, penalties and skills; a caller who\n\
         has not waited there stands at the end. When a member has answered, the channel is called, and the member hears it\n\
         ring; then the two talk. Write Local/number@context/n, so that the way to the caller is looked up at that moment,\n\
         and let the context have only numbers that may be called.\n\n\
         options:\n  \
         a(n)  so many attempts (2): one that nobody answers, or that the member ends, is made again, from the same place.\n  \
         l(seconds)  gives up after so long (14400).\n  \
         r(seconds)  pause between two attempts (300).\n  \
         t(seconds)  how long the caller's phone may ring (30).\n\n\
         Sets QUEUECALLBACKSTATUS (SUCCESS NOQUEUE EXISTS FULL JOINEMPTY UNAVAILABLE) and QUEUEPOSITION. There is one place\n\
         for each technology/resource in a queue, and at most 1,000 are kept in all; a restart forgets them. queue_log gets a\n\
         line CALLBACK with what is called, the attempt and seconds waited, and WITHDRAW with CALLBACK and a status of Dial\n\
         for each attempt that came to nothing. QUEUECALLBACK=1 is set on the channel that waits.";
};

/// Most callers who are called back, in all queues.
const CALLBACKS_MAX: usize = 1000;

/// What is asked for.
struct Plan {
    queue: String,
    target: String,
    place: QueuePlace,
    caller: PartyId,
    account: String,
    language: String,
    attempts: u32,
    lifetime: Duration,
    pause: Duration,
    ring: Duration,
}

impl Plan {
    fn read(call: &Call, queue: &str, target: &str, options: &str) -> Result<Self, Stop> {
        let given = Options::parse(options, "alrt");
        if let Some(unknown) = given.unknown.first() {
            call.log(Level::Warning, &format!("QueueCallback has no option '{unknown}'"));
        }
        let number = |letter: char, usual: u32| {
            given.arg(letter).and_then(|text| text.trim().parse::<u32>().ok()).unwrap_or(usual)
        };
        let seconds = |letter: char, usual: u32| Duration::from_secs(number(letter, usual).into());
        let now = call.chan.core(|core| core.queue_now());
        call.chan.with(|c| {
            let kept = c.queue_place.as_deref().filter(|place| place.queue.eq_ignore_ascii_case(queue));
            let place = kept.cloned().unwrap_or_else(|| QueuePlace {
                queue: queue.into(),
                since: now,
                priority: 0,
                bounds: Bounds::default(),
                skills: Skills::default(),
                rule: String::new(),
            });
            Self {
                queue: queue.to_owned(),
                target: target.to_owned(),
                place,
                caller: c.caller.clone(),
                account: c.account.clone(),
                language: c.language.clone(),
                attempts: number('a', 2).clamp(1, 100),
                lifetime: seconds('l', 14_400),
                pause: seconds('r', 300),
                ring: seconds('t', 30).max(Duration::from_secs(1)),
            }
        })
    }
    /// The channel that keeps the place.
    async fn request(&self, shard: &Rc<Shard>) -> Result<Leg, Cause> {
        let (tech, resource) = self.target.split_once('/').ok_or(Cause::CHAN_NOT_IMPLEMENTED)?;
        shard.look_up(tech, resource).await;
        let request = Request {
            resource: resource.to_owned(),
            variables: vec![("__QUEUECALLBACK".to_owned(), "1".to_owned())],
            ..Request::default()
        };
        let leg = Leg::new(shard.clone(), shard.request(tech, &request)?);
        let _ = leg.chan().with(|c| {
            // Members see who is called back.
            c.caller = self.caller.clone();
            c.account.clone_from(&self.account);
            c.language.clone_from(&self.language);
        });
        Ok(leg)
    }
    /// Takes the place for it.
    fn join(&self, leg: &Leg, left: Duration) -> Result<(usize, InQueue), Closed> {
        let chan = leg.chan();
        let uniqueid = chan.with(|c| c.uniqueid.clone()).map_err(|_| Closed::NoQueue)?;
        let place = self.place.clone();
        let join = Join {
            caller: chan.id(),
            uniqueid,
            number: self.caller.number().to_owned(),
            url: String::new(),
            priority: place.priority,
            position: None,
            since: Some(place.since),
            timeout: Some(left),
            no_retry: false,
            bounds: place.bounds,
            skills: place.skills,
            rule: place.rule,
        };
        hints::ask_members(chan.shard(), &self.queue);
        let joined =
            chan.core(|core| core.with_queues(|queues, now, out| queues.join(&self.queue, join, now, out)));
        joined.map(|position| (position, InQueue(chan.clone())))
    }
    fn note(&self, leg: &Leg, attempt: u32) {
        let Ok(uniqueid) = leg.chan().with(|c| c.uniqueid.clone()) else { return };
        leg.chan().core(|core| {
            let now = core.queue_now();
            let waited = now.at.since(self.place.since.at).as_secs();
            let data = vec![self.target.clone(), attempt.to_string(), waited.to_string()];
            let entry = Entry::Custom { event: "CALLBACK".to_owned(), data };
            let (queue, agent) = (self.queue.as_str().into(), "NONE".into());
            core.queue_lines.push(Line { time: now.wall, call: uniqueid, queue, agent, entry });
        });
    }
}

/// The one place of a target in a queue; given back however its story ends.
struct OnePlace {
    shard: Rc<Shard>,
    key: (String, String),
}

impl Drop for OnePlace {
    fn drop(&mut self) {
        self.shard.core.borrow_mut().callbacks.remove(&self.key);
    }
}

async fn queue_callback(call: &Call, text: &str) -> Outcome {
    call.set("QUEUECALLBACKSTATUS", "");
    let parts = args::split(text);
    let (queue, target) = (args::nth(&parts, 0), args::nth(&parts, 1));
    if queue.is_empty() || !target.contains('/') {
        call.log(Level::Warning, "QueueCallback requires arguments: queuename, technology/resource");
        return Ok(Flow::Hangup);
    }
    let plan = Plan::read(call, queue, target, args::nth(&parts, 2))?;
    let status = match begin(call, plan).await? {
        Ok(position) => {
            call.set("QUEUEPOSITION", &position.to_string());
            let _ = call.chan.with(|c| c.queue_place = None);
            "SUCCESS"
        }
        Err(status) => {
            call.log(Level::Notice, &format!("no call back to {target} for queue '{queue}': {status}"));
            status
        }
    };
    call.set("QUEUECALLBACKSTATUS", status);
    Ok(Flow::Continue)
}

/// Takes the place, in a story of its own from there on; the place, or why there is none.
async fn begin(call: &Call, plan: Plan) -> Result<Result<usize, &'static str>, Stop> {
    let shard = call.chan.shard().clone();
    if call.chan.core(|core| core.queues.get(&plan.queue).is_none()) {
        return Ok(Err("NOQUEUE"));
    }
    let key = (plan.queue.to_ascii_lowercase(), plan.target.to_ascii_lowercase());
    let taken = call.chan.core(|core| match core.callbacks.len() {
        CALLBACKS_MAX.. => Err("FULL"),
        _ if core.callbacks.insert(key.clone()) => Ok(()),
        _ => Err("EXISTS"),
    });
    if let Err(status) = taken {
        return Ok(Err(status));
    }
    let one_place = OnePlace { shard: shard.clone(), key };
    let Ok(leg) = call.chan.while_up(plan.request(&shard)).await? else { return Ok(Err("UNAVAILABLE")) };
    let (position, in_queue) = match plan.join(&leg, plan.lifetime) {
        Ok(joined) => joined,
        Err(Closed::NoQueue) => return Ok(Err("NOQUEUE")),
        Err(Closed::Full) => return Ok(Err("FULL")),
        Err(Closed::Empty) => return Ok(Err("JOINEMPTY")),
    };
    plan.note(&leg, 1);
    let own = shard.clone();
    let started = shard.spawn(None, async move {
        let _one_place = one_place;
        follow(&own, &plan, leg, in_queue).await;
    });
    // Without room for a story nothing keeps the channel, and with it the place.
    Ok(if started { Ok(position) } else { Err("FULL") })
}

/// Waits in the queue, attempt by attempt.
async fn follow(shard: &Rc<Shard>, plan: &Plan, first: Leg, in_queue: InQueue) {
    let ends = first.chan().now() + plan.lifetime;
    let (mut leg, mut in_queue) = (first, in_queue);
    for attempt in 1..=plan.attempts {
        let out = wait(plan, &leg, in_queue).await;
        let chan = leg.chan().clone();
        let again = match &out {
            // An attempt that came to nothing, or a member's phone that vanished with it.
            Out::Left(Exit::Withdrawn(info)) => info.starts_with("CALLBACK "),
            _ => false,
        };
        leg.end(Cause::NORMAL_CLEARING);
        let next = chan.now() + plan.pause;
        if !again || attempt == plan.attempts || next >= ends {
            return;
        }
        let _ = Chan::any(shard, &[], Some(next)).await;
        let Ok(next) = plan.request(shard).await else { return };
        let Ok((_, joined)) = plan.join(&next, ends.since(next.chan().now())) else {
            return next.end(Cause::NORMAL_CLEARING);
        };
        plan.note(&next, attempt + 1);
        (leg, in_queue) = (next, joined);
    }
}

async fn wait(plan: &Plan, leg: &Leg, in_queue: InQueue) -> Out {
    let _in_queue = in_queue;
    let call = Call::new(leg.chan().clone());
    let asked = Asked {
        queue: plan.queue.clone(),
        options: QueueOptions::default(),
        announce: String::new(),
        agi: String::new(),
        gosub: String::new(),
        macro_name: String::new(),
        rings_first: Some(plan.ring),
    };
    Waiting::new(&call, &asked).run().await
}

/// Calls who is called back, while the member hears it ring. `Err` is the status of Dial: nobody answered, or the member
/// hung up (`CANCEL`).
pub(super) async fn reach(
    call: &Call,
    member: &Chan,
    long: Duration,
) -> Result<Result<(), &'static str>, Stop> {
    let chan = &call.chan;
    let id = chan.id();
    let dial_string = chan.with(|c| c.name.to_string())?;
    chan.core(|core| {
        core.notice(|core| Some(Notice::DialBegin { caller: None, dest: core.snapshot(id)?, dial_string }));
    });
    let sounds = member.start_tone("ring");
    let reached = match chan.shard().with_tech(id, |tech, core| tech.call(core, id)) {
        Some(Ok(())) => answer(call, member, long).await,
        Some(Err(cause)) => Err(status_of(cause)),
        None => Err("CHANUNAVAIL"),
    };
    if sounds {
        member.stop_sound();
    }
    let status = reached.err().unwrap_or("ANSWER");
    chan.core(|core| {
        core.notice(|core| {
            Some(Notice::DialEnd { caller: None, dest: core.snapshot(id)?, status, forward: None })
        });
    });
    Ok(reached)
}

async fn answer(call: &Call, member: &Chan, long: Duration) -> Result<(), &'static str> {
    let chan = &call.chan;
    let deadline = chan.now() + long;
    loop {
        match Chan::any(chan.shard(), &[chan.id(), member.id()], Some(deadline)).await {
            None => return Err("NOANSWER"),
            Some((id, Ok(ChanEvent::Answered))) if id == chan.id() => return Ok(()),
            Some((_, Ok(_))) => {}
            Some((id, Err(_))) if id == chan.id() => {
                let cause = chan.with(|c| c.hangup).ok().flatten();
                return Err(status_of(cause.unwrap_or(Cause::NO_ANSWER)));
            }
            Some((_, Err(_))) => return Err("CANCEL"),
        }
    }
}
