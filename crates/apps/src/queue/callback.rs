//! `QueueCallback`: a caller hangs up and keeps its place. A channel that nobody has called yet waits there for it; when a
//! member has answered, the caller is called by it.

use core::time::Duration;

use ::queue::{Bounds, Closed, Entry, Exit, Join, Line, Skills};
use base::{Cause, Instant};
use call::{
    CALLBACK_ATTEMPTS_MAX, CALLBACK_LIFETIME_MAX, CALLBACK_PAUSE_MIN, Callback, CallbackId, Chan, ChanEvent,
    Leg, Level, NoCallback, Notice, QueuePlace, Request, Shard, Stop,
};

use super::options::QueueOptions;
use super::wait::{Out, Waiting};
use super::{Asked, InQueue, caller_id};
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
         l(seconds)  gives up after so long (14400), 30 days at most.\n  \
         r(seconds)  pause between two attempts (300), 10 at least.\n  \
         t(seconds)  how long the caller's phone may ring (30).\n\n\
         Sets QUEUECALLBACKSTATUS (SUCCESS NOQUEUE EXISTS FULL JOINEMPTY UNAVAILABLE UNSAVED) and QUEUEPOSITION. With\n\
         SUCCESS the place is on the disk, in the family Queue/Callbacks of the database: a restart and a crash keep it.\n\
         UNSAVED: the disk did not take it within 5 seconds, and nothing is kept. There is one place for each\n\
         technology/resource in a queue, and at most 1,000 in all. When the queue takes nobody, or lets its callers go because\n\
         no member is there, the place is taken again after r(seconds) as long as l(seconds) lets it. queue_log gets a line\n\
         CALLBACK with what is called, the attempt and seconds waited, the same with EXPIRED instead of the attempt when it was\n\
         given up between two attempts, and WITHDRAW with CALLBACK and a status of Dial for each attempt that came to nothing.\n\
         QUEUECALLBACK=1 is set on the channel that waits.";
};

/// How long the disk may take before the caller is told that nothing is kept: a disk at work takes milliseconds.
const SAVE_WAIT: Duration = Duration::from_secs(5);

/// Who waits in a queue and is nobody's phone yet.
pub(crate) struct First {
    id: CallbackId,
    /// How long its phone may ring.
    pub(super) ring: Duration,
}

/// What is asked for.
fn read(call: &Call, queue: &str, target: &str, options: &str) -> Result<Callback, Stop> {
    let given = Options::parse(options, "alrt");
    if let Some(unknown) = given.unknown.first() {
        call.log(Level::Warning, &format!("QueueCallback has no option '{unknown}'"));
    }
    let number = |letter: char, usual: u32| {
        given.arg(letter).and_then(|text| text.trim().parse::<u32>().ok()).unwrap_or(usual)
    };
    let seconds = |letter: char, usual: u32| Duration::from_secs(number(letter, usual).into());
    let lifetime = seconds('l', 14_400).min(CALLBACK_LIFETIME_MAX);
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
        Callback {
            target: target.to_owned(),
            place,
            caller: c.caller.clone(),
            account: c.account.clone(),
            language: c.language.clone(),
            attempts: number('a', 2).clamp(1, CALLBACK_ATTEMPTS_MAX),
            attempt: 1,
            due: now.wall,
            ends: now.wall.saturating_add_unsigned(lifetime.as_secs()),
            pause: seconds('r', 300).clamp(CALLBACK_PAUSE_MIN, CALLBACK_LIFETIME_MAX),
            ring: seconds('t', 30).clamp(Duration::from_secs(1), CALLBACK_LIFETIME_MAX),
        }
    })
}

/// The one place of a target in a queue, and what comes next. The place may be taken again however its story ends; what the
/// database keeps stays until [`Plan::done`], so that a process that ends forgets nothing.
struct Plan {
    shard: Rc<Shard>,
    id: CallbackId,
    kept: Callback,
    /// When the next attempt begins.
    due: Instant,
    /// When the place is given up.
    ends: Instant,
}

impl Drop for Plan {
    fn drop(&mut self) {
        self.shard.core.borrow_mut().callback_free(self.id);
    }
}

/// A channel that keeps the place.
type Standing = (Leg, InQueue);

impl Plan {
    fn new(shard: &Rc<Shard>, id: CallbackId, kept: Callback) -> Self {
        let now = shard.core.borrow().queue_now();
        let at = |wall: i64| {
            now.at + Duration::from_secs(u64::try_from(wall.saturating_sub(now.wall)).unwrap_or(0))
        };
        let (due, ends) = (at(kept.due), at(kept.ends));
        Self { shard: shard.clone(), id, kept, due, ends }
    }
    fn now(&self) -> Instant {
        self.shard.core.borrow().now
    }
    /// The channel that is to keep the place.
    async fn request(&self) -> Result<Leg, Cause> {
        let (tech, resource) = self.kept.target.split_once('/').ok_or(Cause::CHAN_NOT_IMPLEMENTED)?;
        self.shard.look_up(tech, resource).await;
        let request = Request {
            resource: resource.to_owned(),
            variables: vec![("__QUEUECALLBACK".to_owned(), "1".to_owned())],
            ..Request::default()
        };
        let leg = Leg::new(self.shard.clone(), self.shard.request(tech, &request)?);
        let _ = leg.chan().with(|c| {
            // Members see who is called back.
            c.caller = self.kept.caller.clone();
            c.account.clone_from(&self.kept.account);
            c.language.clone_from(&self.kept.language);
        });
        Ok(leg)
    }
    /// Takes the place for it.
    fn join(&self, leg: &Leg) -> Result<(usize, InQueue), Closed> {
        let chan = leg.chan();
        let uniqueid = chan.with(|c| c.uniqueid.clone()).map_err(|_| Closed::NoQueue)?;
        let place = self.kept.place.clone();
        let join = Join {
            caller: chan.id(),
            uniqueid: uniqueid.clone(),
            id: caller_id(&self.kept.caller),
            url: String::new(),
            priority: place.priority,
            position: None,
            since: Some(place.since),
            timeout: Some(self.ends.since(chan.now())),
            no_retry: false,
            bounds: place.bounds,
            skills: place.skills,
            rule: place.rule,
        };
        hints::ask_members(chan.shard(), &place.queue);
        let position =
            chan.core(|core| core.with_queues(|queues, now, out| queues.join(&place.queue, join, now, out)))?;
        chan.core(|core| core.callback_stands(self.id, chan.id()));
        self.note(uniqueid, self.kept.attempt.to_string());
        Ok((position, InQueue(chan.clone())))
    }
    /// A line of the log: what is called, the attempt or what has become of it, and seconds since the caller entered.
    fn note(&self, call: Rc<str>, what: String) {
        let core = &mut *self.shard.core.borrow_mut();
        let now = core.queue_now();
        let waited = now.at.since(self.kept.place.since.at).as_secs();
        let data = vec![self.kept.target.clone(), what, waited.to_string()];
        let entry = Entry::Custom { event: "CALLBACK".to_owned(), data };
        let queue = self.kept.place.queue.clone();
        core.queue_lines.push(Line { time: now.wall, call, queue, agent: "NONE".into(), entry });
    }
    /// Nothing is left to do.
    fn done(&self) {
        self.shard.core.borrow_mut().callback_done(self.id);
    }
    /// What comes next comes after the pause.
    fn put_off(&mut self) {
        self.due = self.now() + self.kept.pause;
    }
    /// An attempt has come to nothing, which a restart is to know unless it was the last. A row that cannot be written says
    /// what it said: a restart makes this attempt again, and earlier than it should.
    fn failed(&mut self) {
        self.kept.attempt += 1;
        if self.kept.attempt > self.kept.attempts {
            return;
        }
        let core = &mut *self.shard.core.borrow_mut();
        self.kept.due = core.queue_now().wall.saturating_add_unsigned(self.kept.pause.as_secs());
        core.callback_keep(self.id, &self.kept);
    }
    /// Stands in the queue, attempt by attempt.
    async fn follow(mut self, first: Option<Standing>) {
        let mut standing = first;
        while self.kept.attempt <= self.kept.attempts {
            let here = match standing.take() {
                Some(here) => Some(here),
                None => self.stand().await,
            };
            let Some((leg, in_queue)) = here else {
                self.note("NONE".into(), "EXPIRED".to_owned());
                break;
            };
            let out = self.wait(&leg, in_queue).await;
            leg.end(Cause::NORMAL_CLEARING);
            match out {
                Out::Left(Exit::Withdrawn(info)) if info.starts_with("CALLBACK ") => self.failed(),
                // No member is there: the caller, who does not listen, loses nothing by that.
                Out::Left(Exit::Empty) => {}
                _ => break,
            }
            self.put_off();
        }
        self.done();
    }
    /// Waits until it is time, and takes the place again; `None`: it is given up.
    async fn stand(&mut self) -> Option<Standing> {
        while self.due < self.ends {
            let _ = Chan::any(&self.shard, &[], Some(self.due)).await;
            if let Some(standing) = self.take_again().await {
                return Some(standing);
            }
            self.put_off();
        }
        None
    }
    /// `None`: the queue takes nobody at present, or there is no way to who is called.
    async fn take_again(&self) -> Option<Standing> {
        let queue = &self.kept.place.queue;
        let leg = self.request().await.ok()?;
        super::rows::refresh(&Call::new(leg.chan().clone()), queue).await.ok()?;
        hints::look_members_up(&self.shard, queue).await;
        let (_, in_queue) = self.join(&leg).ok()?;
        Some((leg, in_queue))
    }
    async fn wait(&self, leg: &Leg, in_queue: InQueue) -> Out {
        let _in_queue = in_queue;
        let call = Call::new(leg.chan().clone());
        let asked = Asked {
            queue: self.kept.place.queue.to_string(),
            options: QueueOptions::default(),
            announce: String::new(),
            agi: String::new(),
            gosub: String::new(),
            macro_name: String::new(),
            rings_first: Some(First { id: self.id, ring: self.kept.ring }),
        };
        Waiting::new(&call, &asked).run().await.0
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
    let callback = read(call, queue, target, args::nth(&parts, 2))?;
    let status = match begin(call, callback).await? {
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

/// Takes the place, in a story of its own from there on; the place, or why there is none. What is to be done is on the disk
/// before anybody stands in the queue for it, so that nobody is called of whom a restart knows nothing. A caller who hangs up
/// meanwhile has asked for it all the same.
async fn begin(call: &Call, callback: Callback) -> Result<Result<usize, &'static str>, Stop> {
    let shard = call.chan.shard().clone();
    if call.chan.core(|core| core.queues.get(&callback.place.queue).is_none()) {
        return Ok(Err("NOQUEUE"));
    }
    let id = match call.chan.core(|core| core.callback_take(&callback)) {
        Ok(id) => id,
        Err(NoCallback::Full) => return Ok(Err("FULL")),
        Err(NoCallback::Exists) => return Ok(Err("EXISTS")),
    };
    let plan = Plan::new(&shard, id, callback);
    let Ok(leg) = call.chan.while_up(plan.request()).await? else { return Ok(Err("UNAVAILABLE")) };
    if !call.chan.core(|core| core.callback_keep(id, &plan.kept)) {
        return Ok(Err("UNSAVED"));
    }
    let joined = if call.chan.saved(call.chan.now() + SAVE_WAIT).await {
        plan.join(&leg).map_err(|closed| match closed {
            Closed::NoQueue => "NOQUEUE",
            Closed::Full => "FULL",
            Closed::Empty => "JOINEMPTY",
        })
    } else {
        Err("UNSAVED")
    };
    let (position, in_queue) = match joined {
        Ok(joined) => joined,
        Err(status) => {
            plan.done();
            return Ok(Err(status));
        }
    };
    if !shard.spawn(None, plan.follow(Some((leg, in_queue)))) {
        // Without room for a story nothing keeps the channel, and with it the place.
        call.chan.core(|core| core.callback_done(id));
        return Ok(Err("FULL"));
    }
    Ok(Ok(position))
}

/// Takes up again what the process before this one has left to do; how many callers that are, and how many rows of the
/// database are not followed. Once, when the process starts and knows its queues.
pub fn restore(shard: &Rc<Shard>) -> (usize, usize) {
    let (left, ignored) = shard.core.borrow_mut().callbacks_left();
    let started = left
        .into_iter()
        .filter(|(id, kept)| shard.spawn(None, Plan::new(shard, *id, kept.clone()).follow(None)))
        .count();
    (started, ignored)
}

/// Who is called back talks to a member: a restart calls nobody again.
pub(super) fn served(chan: &Chan, first: &First) {
    chan.core(|core| core.callback_done(first.id));
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
            let (dest, dial_string) = (core.snapshot(id)?, String::new());
            Some(Notice::DialEnd { caller: None, dest, status, forward: None, forwarded: None, dial_string })
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
