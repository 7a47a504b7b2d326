//! The asker's end of all databases, and the thread that asks them.

use std::collections::BTreeMap;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use io::wake::{Receiver, Sender, queue};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tokio::sync::mpsc;

use crate::pool::{Figures, Job, Pool, Told};
use crate::query::{Answer, Query};
use crate::settings::{Connection, Settings};
use crate::{Failure, Ticket};

/// Answers that wait to be taken in. With as many waiting, the thread waits too.
const ANSWERS_MAX: usize = 4_096;

/// How it stands with a database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Standing {
    /// It was not asked for anything yet.
    Untried,
    /// It answers.
    Up,
    /// It cannot be reached, for this reason; it is tried again by itself.
    Down(Failure),
}

/// A database whose standing has changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Turned {
    /// The connection's name.
    pub name: String,
    /// How it stands with it from here on: `Up` or `Down`.
    pub standing: Standing,
}

/// What there is to show of a database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Status {
    /// The connection's name.
    pub name: String,
    /// Where it is, without the password.
    pub target: String,
    /// What speaks to it; through ODBC, and what the database calls itself.
    pub driver: String,
    /// How it stands with it.
    pub standing: Standing,
    /// Connections that are open.
    pub open: u64,
    /// Those that have a query.
    pub busy: u64,
    /// Those that transactions of calls have.
    pub lent: u64,
    /// Most of them, and as many again that are lent.
    pub connections_max: u32,
    /// Queries that wait for a connection.
    pub waiting: u64,
    /// Queries that were answered.
    pub answered: u64,
    /// Queries that failed.
    pub failed: u64,
    /// Queries that took longer than slow_query.
    pub slow: u64,
    /// Queries that were turned away because too many waited.
    pub refused: u64,
    /// Connections that were made.
    pub connects: u64,
}

/// What comes from the thread: of which pool, what. Pools are numbered, so that an old one's answers are known as such.
enum Came {
    Told(u64, Told),
    /// The thread is at its end.
    Ended,
}

/// A pool that is to be made.
struct Order {
    number: u64,
    settings: Connection,
    figures: Arc<Figures>,
    jobs: mpsc::Receiver<Job>,
}

/// The asker's side of a pool.
struct Front {
    number: u64,
    settings: Connection,
    figures: Arc<Figures>,
    jobs: mpsc::Sender<Job>,
    /// Queries that are not answered yet.
    open: usize,
    refused: u64,
    standing: Standing,
}

/// All databases. Nothing here waits, but for [`Databases::wait`] and [`Databases::finish`].
pub struct Databases {
    fronts: BTreeMap<String, Front>,
    pools: Option<mpsc::UnboundedSender<Order>>,
    came: Receiver<Came>,
    /// Taken in while waiting, and not handed over yet.
    kept: Vec<Came>,
    thread: Option<JoinHandle<()>>,
    next: u64,
    is_over: bool,
}

impl Databases {
    /// Starts the thread. Databases are connected to when they are first asked for something, or at once.
    pub fn open(settings: Settings) -> std::io::Result<Self> {
        let (sender, came) = queue(ANSWERS_MAX)?;
        let (pools, orders) = mpsc::unbounded_channel();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build()?;
        let work = move || {
            runtime.block_on(serve(orders, &sender));
            // Look-ups of names that hang are left behind.
            runtime.shutdown_background();
            let _nobody = sender.send_blocking(Came::Ended);
        };
        let thread = std::thread::Builder::new().name("databases".to_owned()).spawn(work)?;
        let mut databases = Self {
            fronts: BTreeMap::new(),
            pools: Some(pools),
            came,
            kept: Vec::new(),
            thread: Some(thread),
            next: 0,
            is_over: false,
        };
        databases.configure(settings);
        Ok(databases)
    }
    /// Other databases from here on. Those described as before are left alone; what the others were asked is still answered.
    pub fn configure(&mut self, settings: Settings) {
        let mut before = std::mem::take(&mut self.fronts);
        for connection in settings.connections {
            if self.fronts.contains_key(&connection.name) {
                continue;
            }
            let name = connection.name.clone();
            match before.remove(&name).filter(|front| front.settings == connection) {
                Some(front) => _ = self.fronts.insert(name, front),
                None => self.add(connection),
            }
        }
    }
    fn add(&mut self, settings: Connection) {
        let Some(pools) = &self.pools else { return };
        self.next += 1;
        let (number, figures) = (self.next, Arc::new(Figures::default()));
        let (jobs, inbox) = mpsc::channel(settings.waiting_max.max(1));
        let order = Order { number, settings: settings.clone(), figures: figures.clone(), jobs: inbox };
        // The thread ends only after `pools` is gone.
        let _sent = pools.send(order);
        let (name, standing) = (settings.name.clone(), Standing::Untried);
        self.fronts.insert(name, Front { number, settings, figures, jobs, open: 0, refused: 0, standing });
    }

    /// Asks. The answer has the same ticket; answers come in any order. An error: it was not asked, and nothing comes.
    pub fn submit(&mut self, name: &str, ticket: Ticket, query: Query) -> Result<(), Failure> {
        let Some(front) = self.fronts.get_mut(name) else {
            return Err(Failure::Unknown { name: name.to_owned() });
        };
        let busy = |waiting| Err(Failure::Busy { name: name.to_owned(), waiting });
        if front.open >= front.settings.waiting_max.max(1) {
            front.refused += 1;
            return busy(front.open);
        }
        let handed = tokio::time::Instant::now();
        if front.jobs.try_send(Job { ticket, query, handed, is_second: false, is_alone: false }).is_err() {
            front.refused += 1;
            return busy(front.open);
        }
        front.open += 1;
        Ok(())
    }
    /// Readable when there is something to drain.
    pub fn as_fd(&self) -> BorrowedFd<'_> {
        self.came.as_fd()
    }
    /// Hands over what came: answers, and databases whose standing has changed.
    pub fn drain(&mut self, answers: &mut Vec<(Ticket, Result<Answer, Failure>)>, turned: &mut Vec<Turned>) {
        self.take_in();
        for came in std::mem::take(&mut self.kept) {
            let Came::Told(number, told) = came else { continue };
            let front = self.fronts.values_mut().find(|front| front.number == number);
            match (told, front) {
                (Told::Answer(ticket, result), front) => {
                    if let Some(front) = front {
                        front.open = front.open.saturating_sub(1);
                    }
                    answers.push((ticket, result));
                }
                (Told::Up, Some(front)) => {
                    front.standing = Standing::Up;
                    turned.push(Turned { name: front.settings.name.clone(), standing: Standing::Up });
                }
                (Told::Down(failure), Some(front)) => {
                    front.standing = Standing::Down(failure);
                    let standing = front.standing.clone();
                    turned.push(Turned { name: front.settings.name.clone(), standing });
                }
                // Of a database that is not described any more.
                (Told::Up | Told::Down(_), None) => {}
            }
        }
    }
    fn take_in(&mut self) {
        let Self { came, kept, is_over, .. } = self;
        came.drain(|came| {
            *is_over |= matches!(came, Came::Ended);
            kept.push(came);
        });
    }
    /// Whether there is a database of this name.
    pub fn has(&self, name: &str) -> bool {
        self.fronts.contains_key(name)
    }
    /// What there is to show, by name.
    pub fn status(&self) -> Vec<Status> {
        let status = |front: &Front| {
            let figure = |figure: &std::sync::atomic::AtomicU64| figure.load(Ordering::Relaxed);
            let figures = &front.figures;
            Status {
                name: front.settings.name.clone(),
                target: front.settings.target.to_string(),
                driver: match (front.settings.target.driver(), figures.dbms.get()) {
                    (driver, Some(dbms)) => format!("{driver} ({dbms})"),
                    (driver, None) => driver.to_owned(),
                },
                standing: front.standing.clone(),
                open: figure(&figures.open),
                busy: figure(&figures.busy),
                lent: figure(&figures.lent),
                connections_max: front.settings.connections_max,
                waiting: figure(&figures.waiting),
                answered: figure(&figures.answered),
                failed: figure(&figures.failed),
                slow: figure(&figures.slow),
                refused: front.refused,
                connects: figure(&figures.connects),
            }
        };
        self.fronts.values().map(status).collect()
    }

    /// Sleeps until something came, at most this long. For threads that may wait.
    pub fn wait(&mut self, within: Duration) {
        let until = Instant::now() + within;
        self.take_in();
        while self.kept.is_empty() {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            let timeout = Timespec {
                tv_sec: i64::try_from(left.as_secs()).unwrap_or(i64::MAX),
                tv_nsec: i64::from(left.subsec_nanos()),
            };
            let mut fds = [PollFd::from_borrowed_fd(self.came.as_fd(), PollFlags::IN)];
            // Whatever woke us, the queue is looked at; the bell is level-triggered and is read by `clear`.
            let _woken = poll(&mut fds, Some(&timeout));
            self.came.clear();
            self.take_in();
        }
    }
    /// Asks one thing and waits for its answer. For threads that may wait, and that ask one thing at a time.
    pub fn ask(&mut self, name: &str, query: Query) -> Result<Answer, Failure> {
        self.next += 1;
        let ticket = Ticket { asker: u8::MAX, number: self.next };
        self.submit(name, ticket, query)?;
        let (mut answers, mut turned) = (Vec::new(), Vec::new());
        loop {
            self.drain(&mut answers, &mut turned);
            if let Some((_, result)) = answers.drain(..).find(|(came, _)| *came == ticket) {
                return result;
            }
            if self.is_over {
                let why = "the thread that asks it has ended".to_owned();
                return Err(Failure::Broken { name: name.to_owned(), why });
            }
            self.wait(Duration::from_secs(1));
        }
    }
    /// Takes no more queries, and waits until those that were handed over are answered, at most this long; whether they
    /// are. What was answered can be drained.
    pub fn finish(&mut self, within: Duration) -> bool {
        let until = Instant::now() + within;
        self.pools = None;
        for front in self.fronts.values_mut() {
            // The other end sees that no more comes when the last sender is gone.
            let (none, _) = mpsc::channel(1);
            front.jobs = none;
        }
        let mut came = std::mem::take(&mut self.kept);
        while !self.is_over && Instant::now() < until {
            self.wait(until.saturating_duration_since(Instant::now()));
            came.append(&mut self.kept);
        }
        self.kept = came;
        if self.is_over
            && let Some(thread) = self.thread.take()
        {
            let _panicked = thread.join();
        }
        self.is_over
    }
}

/// Makes pools, and ends when no more can come and all have ended.
async fn serve(mut orders: mpsc::UnboundedReceiver<Order>, sender: &Sender<Came>) {
    let mut pools = tokio::task::JoinSet::new();
    while let Some(Order { number, settings, figures, jobs }) = orders.recv().await {
        let sender = sender.clone();
        let tell = move |told| sender.send_blocking(Came::Told(number, told)).is_ok();
        pools.spawn(Pool::new(settings, figures, tell).run(jobs));
    }
    while pools.join_next().await.is_some() {}
}
