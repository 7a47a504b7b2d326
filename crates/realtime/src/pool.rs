//! The connections of one database, on the thread of all databases: who has one, who waits, when it is tried again.

mod lending;
mod together;

use std::collections::VecDeque;
use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use futures_util::FutureExt as _;
use tokio::sync::mpsc::Receiver;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until, timeout_at};

use self::lending::Lending;
use crate::link::{Link, Tables, Trouble};
use crate::query::{Answer, Query};
use crate::settings::{Connection, Target};
use crate::{Failure, Ticket};

/// First pause after a database was not reached; each further one is twice as long.
const RETRY_FIRST: Duration = Duration::from_secs(1);
/// Longest pause while nobody is there: to be refused a connection costs nobody anything, and what waits to be written, such
/// as a registration of a minute, shall find the database soon after it is back.
const RETRY_MOST: Duration = Duration::from_secs(10);
/// Least pause, whatever negative_connection_cache says.
const RETRY_LEAST: Duration = Duration::from_millis(250);
/// Longest sleep when there is nothing to wait for.
const IDLE: Duration = Duration::from_secs(3_600);

/// A query on its way.
pub(crate) struct Job {
    pub ticket: Ticket,
    pub query: Query,
    pub handed: Instant,
    /// It was on its way already when the connection broke, and changes nothing.
    pub is_second: bool,
    /// It was asked with others, and the database would not have them all.
    pub is_alone: bool,
}

/// What the thread tells the shard.
pub(crate) enum Told {
    Answer(Ticket, Result<Answer, Failure>),
    /// It can be reached (again).
    Up,
    /// It cannot.
    Down(Failure),
}

/// Figures that the thread writes and the shard reads.
#[derive(Debug, Default)]
pub(crate) struct Figures {
    /// Connections that are open.
    pub open: AtomicU64,
    /// Those that have a query.
    pub busy: AtomicU64,
    /// Those that transactions have.
    pub lent: AtomicU64,
    /// Queries that have none.
    pub waiting: AtomicU64,
    pub answered: AtomicU64,
    pub failed: AtomicU64,
    /// Queries that took longer than slow_query.
    pub slow: AtomicU64,
    /// Connections that were made.
    pub connects: AtomicU64,
    /// What a database that ODBC leads to calls itself.
    pub dbms: OnceLock<String>,
}

/// What a task ended with.
enum Done {
    Connected(Result<Link, Failure>),
    Asked {
        link: Option<Link>,
        job: Job,
        result: Result<Answer, Failure>,
        /// The program that spoke ODBC has ended over it.
        has_ended: bool,
    },
    /// Several look-ups on one connection.
    Together(together::Done),
    /// The same on a connection that is lent.
    Lent(lending::Done),
}

/// How it stands with the database.
#[derive(Debug, Clone, PartialEq)]
enum State {
    /// Not asked for anything yet.
    Untried,
    Up,
    Down {
        failure: Failure,
        pause: Duration,
    },
}

pub(crate) struct Pool<T> {
    settings: Connection,
    tell: T,
    figures: Arc<Figures>,
    tables: Tables,
    state: State,
    /// Connections without work, the one used last at the end.
    idle: Vec<Link>,
    connecting: usize,
    busy: usize,
    waiting: VecDeque<Job>,
    lending: Lending,
    tasks: JoinSet<Done>,
    /// When it is connected to next without being asked.
    retry: Option<Instant>,
    /// Times that a program has ended over a question, since one was answered.
    endings: u32,
    /// It has just ended for the first time, and is being started anew.
    is_restarting: bool,
    is_closing: bool,
    /// Nobody is there who would hear of it.
    is_orphan: bool,
}

impl<T: FnMut(Told) -> bool> Pool<T> {
    /// `tell` is given what there is to tell, and says whether there is still somebody to tell it to.
    pub(crate) fn new(settings: Connection, figures: Arc<Figures>, tell: T) -> Self {
        Self {
            settings,
            tell,
            figures,
            tables: Tables::default(),
            state: State::Untried,
            idle: Vec::new(),
            connecting: 0,
            busy: 0,
            waiting: VecDeque::new(),
            lending: Lending::default(),
            tasks: JoinSet::new(),
            retry: None,
            endings: 0,
            is_restarting: false,
            is_closing: false,
            is_orphan: false,
        }
    }

    /// Runs until the other end of `orders` is gone and everything is answered.
    pub(crate) async fn run(mut self, mut orders: Receiver<Job>) {
        if self.settings.at_once {
            self.connect();
        }
        loop {
            let wake = self.deadline();
            tokio::select! {
                order = orders.recv(), if !self.is_closing => match order {
                    Some(job) => self.enter(job),
                    None => self.is_closing = true,
                },
                Some(done) = self.tasks.join_next() => match done {
                    Ok(done) => self.take_in(done),
                    // Panics are caught inside, and nothing is aborted before the end.
                    Err(_) => self.is_orphan = true,
                },
                () = sleep_until(wake) => {}
            }
            while !self.is_closing
                && let Ok(job) = orders.try_recv()
            {
                self.enter(job);
            }
            self.turn(Instant::now());
            let is_idle = self.busy == 0 && self.waiting.is_empty() && self.lending.is_idle();
            if self.is_orphan || (self.is_closing && is_idle) {
                return;
            }
        }
    }
    fn deadline(&self) -> Instant {
        let oldest = self.waiting.front().map(|job| job.handed + self.settings.query_within);
        let lent = self.lending.deadline(self.settings.query_within);
        let next = [oldest, lent, self.retry.filter(|_| !self.is_closing)].into_iter().flatten().min();
        next.unwrap_or_else(|| Instant::now() + IDLE)
    }
    fn enter(&mut self, job: Job) {
        match job.query.transaction() {
            Some(number) => self.enter_lent(number, job),
            None => self.waiting.push_back(job),
        }
    }
    fn turn(&mut self, now: Instant) {
        if self.retry.is_some_and(|at| at <= now) {
            self.retry = None;
            self.connect();
        }
        // Those that were handed over first are in front.
        while let Some(job) = self.waiting.pop_front_if(|job| job.handed + self.settings.query_within <= now)
        {
            let slow = Failure::Slow { name: self.settings.name.clone(), within: self.settings.query_within };
            self.answer(job.ticket, Err(slow));
        }
        self.expire_lent(now);
        while let State::Down { failure, .. } = &self.state
            && self.idle.is_empty()
            && self.busy == 0
            && !self.is_restarting
            && let Some(job) = self.waiting.pop_front().or_else(|| self.lending.pop_borrower())
        {
            let failure = failure.clone();
            self.answer(job.ticket, Err(failure));
        }
        let most = self.connections_max();
        while self.busy < most
            && !self.waiting.is_empty()
            && let Some(link) = self.idle.pop()
        {
            let free = (self.idle.len() + 1).min(most - self.busy);
            if let Some(jobs) = together::take(&mut self.waiting, free) {
                self.hand_out_together(link, jobs);
            } else if let Some(job) = self.waiting.pop_front() {
                self.hand_out(link, job);
            }
        }
        self.lend(now);
        let wanted = self.waiting.len().min(most.saturating_sub(self.busy)) + self.lending.wanted(most);
        while self.connecting < wanted && self.retry.is_none() {
            self.connect();
        }
        let count = |value: usize| value as u64;
        let (lent, lent_busy) = (self.lending.len(), self.lending.busy());
        self.figures.open.store(count(self.idle.len() + self.busy + lent), Ordering::Relaxed);
        self.figures.busy.store(count(self.busy + lent_busy), Ordering::Relaxed);
        self.figures.lent.store(count(lent), Ordering::Relaxed);
        self.figures.waiting.store(count(self.waiting.len() + self.lending.waiting()), Ordering::Relaxed);
    }
    /// Most connections that queries have, and most that are lent.
    fn connections_max(&self) -> usize {
        match self.settings.target {
            // Its writers take turns on the file, and two that have begun may find each other in the way.
            Target::Sqlite { .. } => 1,
            _ => usize::try_from(self.settings.connections_max.max(1)).unwrap_or(1),
        }
    }
    fn connect(&mut self) {
        self.connecting += 1;
        let Connection { name, target, at_connect, connect_within, .. } = self.settings.clone();
        self.tasks.spawn(async move {
            let until = Instant::now() + connect_within;
            Done::Connected(
                match timeout_at(until, whole(Link::open(&target, &at_connect, connect_within))).await {
                    Ok(Ok(link)) => Ok(link),
                    Ok(Err(Trouble::Malformed(why))) => Err(Failure::Malformed { name, why }),
                    Ok(Err(
                        Trouble::Broken(why)
                        | Trouble::Ended(why)
                        | Trouble::Refused(why)
                        | Trouble::Value(why)
                        | Trouble::Stale(why)
                        | Trouble::Locked(why)
                        | Trouble::Unaskable(why),
                    )) => Err(Failure::Unreachable { name, why }),
                    Err(_) => {
                        let why = format!("nothing came within {} ms", connect_within.as_millis());
                        Err(Failure::Unreachable { name, why })
                    }
                },
            )
        });
    }
    fn hand_out(&mut self, mut link: Link, job: Job) {
        self.busy += 1;
        let (name, within) = (self.settings.name.clone(), self.settings.query_within);
        let tables = self.tables.clone();
        self.tasks.spawn(async move {
            let asked = timeout_at(job.handed + within, whole(link.perform(&tables, &job.query))).await;
            let (result, keeps, has_ended) = match asked {
                Ok(Ok(answer)) => (Ok(answer), true, false),
                Ok(Err(trouble)) => {
                    let (keeps, has_ended) = (trouble.leaves_link(), matches!(trouble, Trouble::Ended(_)));
                    (Err(failure(trouble, name)), keeps, has_ended)
                }
                // What it goes on saying belongs to nobody: the connection is closed.
                Err(_) => (Err(Failure::Slow { name, within }), false, false),
            };
            Done::Asked { link: keeps.then_some(link), job, result, has_ended }
        });
    }
    fn take_in(&mut self, done: Done) {
        match done {
            Done::Connected(Ok(link)) => {
                self.connecting -= 1;
                self.is_restarting = false;
                self.figures.connects.fetch_add(1, Ordering::Relaxed);
                if let Some(dbms) = link.dbms() {
                    let _same = self.figures.dbms.set(dbms.to_owned());
                }
                self.idle.push(link);
                self.retry = None;
                if self.state != State::Up {
                    self.state = State::Up;
                    self.tell(Told::Up);
                }
            }
            Done::Connected(Err(failure)) => {
                self.connecting -= 1;
                self.is_restarting = false;
                self.not_reached(failure);
            }
            Done::Asked { link, job, result, has_ended } => {
                self.busy -= 1;
                self.heard(&result, link.is_some(), has_ended);
                self.idle.extend(link);
                self.settle(job, result);
            }
            Done::Together(done) => self.take_in_together(done),
            Done::Lent(done) => self.take_back(done),
        }
    }
    /// What becomes of a question that was asked.
    fn settle(&mut self, job: Job, result: Result<Answer, Failure>) {
        self.time(&job);
        let reads = matches!(job.query, Query::Load(_) | Query::Columns { .. });
        if matches!(result, Err(Failure::Broken { .. })) && reads && !job.is_second {
            // It rested too long, or the database was started anew: a question does no harm twice.
            self.waiting.push_front(Job { is_second: true, ..job });
        } else {
            self.answer(job.ticket, result);
        }
    }
    /// What an answer says of the database, and of the other connections to it.
    fn heard(&mut self, result: &Result<Answer, Failure>, keeps_link: bool, has_ended: bool) {
        match result {
            // The others have programs of their own.
            Err(failure) if has_ended => {
                self.not_reached(failure.clone());
                if self.endings == 0 {
                    // It may have died while it rested: the next one is started at once, and waited for.
                    (self.retry, self.is_restarting) = (Some(Instant::now()), true);
                }
                self.endings = self.endings.saturating_add(1);
            }
            // The others were opened to the same server, and rest since.
            Err(_) if !keeps_link => self.idle.clear(),
            Err(_) => {}
            Ok(_) => self.endings = 0,
        }
    }
    fn time(&self, job: &Job) {
        if job.handed.elapsed() >= self.settings.slow_query {
            self.figures.slow.fetch_add(1, Ordering::Relaxed);
        }
    }
    fn not_reached(&mut self, failure: Failure) {
        let before = match &self.state {
            State::Down { pause, .. } => Some(*pause),
            State::Untried | State::Up => None,
        };
        let pause = pause_after(before, self.endings, self.settings.negative_cache);
        self.retry = Some(Instant::now() + pause);
        let is_news = !matches!(self.state, State::Down { .. });
        self.state = State::Down { failure: failure.clone(), pause };
        if is_news {
            self.tell(Told::Down(failure));
        }
    }
    fn answer(&mut self, ticket: Ticket, result: Result<Answer, Failure>) {
        let count = if result.is_ok() { &self.figures.answered } else { &self.figures.failed };
        count.fetch_add(1, Ordering::Relaxed);
        self.tell(Told::Answer(ticket, result));
    }
    fn tell(&mut self, told: Told) {
        if !(self.tell)(told) {
            self.is_orphan = true;
        }
    }
}

/// What a driver makes of nonsense may be a panic: it costs the connection, and no more.
async fn whole<R>(work: impl Future<Output = Result<R, Trouble>>) -> Result<R, Trouble> {
    let panicked = |_| Err(Trouble::Malformed("the driver could make nothing of it".to_owned()));
    AssertUnwindSafe(work).catch_unwind().await.unwrap_or_else(panicked)
}

fn failure(trouble: Trouble, name: String) -> Failure {
    match trouble {
        Trouble::Broken(why) | Trouble::Ended(why) => Failure::Broken { name, why },
        Trouble::Malformed(why) => Failure::Malformed { name, why },
        Trouble::Locked(why) => Failure::Locked { name, why },
        Trouble::Refused(why) | Trouble::Stale(why) => Failure::Refused { name, why },
        Trouble::Value(why) => Failure::Value { name, why },
        Trouble::Unaskable(why) => Failure::Unaskable { name, why },
    }
}

/// How long no connection is tried after one has failed; `before`: after the failure before it.
fn pause_after(before: Option<Duration>, endings: u32, negative_cache: Duration) -> Duration {
    // A driver that ends at every question is started less and less often.
    let most = if endings > 0 { Duration::MAX } else { RETRY_MOST };
    let pause = before.map_or(RETRY_FIRST * 2_u32.saturating_pow(endings.min(10)), |before| before * 2);
    pause.min(negative_cache).min(most).max(RETRY_LEAST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_database_that_is_gone_is_tried_every_ten_seconds_and_a_driver_that_ends_ever_more_seldom() {
        for (name, endings, negative_cache, expected) in [
            ("gone", 0, 300, [1, 2, 4, 8, 10, 10, 10, 10, 10, 10]),
            ("gone, and negative_connection_cache is less", 0, 5, [1, 2, 4, 5, 5, 5, 5, 5, 5, 5]),
            ("a driver that ended once", 1, 300, [2, 4, 8, 16, 32, 64, 128, 256, 300, 300]),
        ] {
            let mut before = None;
            let pauses = expected.map(|_| {
                let pause = pause_after(before, endings, Duration::from_secs(negative_cache));
                before = Some(pause);
                pause.as_secs()
            });
            assert_eq!(pauses, expected, "{name}");
        }
        assert_eq!(pause_after(None, 0, Duration::ZERO), RETRY_LEAST);
    }
}
