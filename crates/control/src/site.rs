//! What every dialect steers: the running system, as one thing to borrow from.
//!
//! A dialect never stops, reloads or rotates by itself: it puts a [`Wish`] down, and the engine carries it out between
//! two turns, when nothing is borrowed.

use core::time::Duration;
use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::rc::Rc;
use std::sync::Arc;

use apps::hints::Hints;
use base::{FormatId, Instant};
use call::Shard;
use driver::iax::IaxDriver;
use driver::sip::SipDriver;
use io::external::Lines;
use io::media::{MediaFront, Translation};
use store::Snapshot;
use store::log::{LogSender, LogSink};
use store::sounds::Sounds;

use crate::iax::Show;

/// When to stop, the most urgent first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum When {
    /// At once; calls are hung up.
    Now,
    /// When the last call has ended; new ones are refused.
    Gracefully,
    /// When no call is up by chance; new ones are taken.
    Convenient,
}

/// What the engine is to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wish {
    /// End the process.
    Stop {
        /// When.
        when: When,
        /// Start again after it.
        restart: bool,
    },
    /// Forget an earlier [`Wish::Stop`] that waits.
    AbortStop,
    /// Read the configuration again; the answer goes to this client of the control socket or manager, when there is one.
    Reload {
        /// What the asker named (`pjsip`, `dialplan`), empty for all. Everything is read and checked in any case.
        module: String,
    },
    /// Open log files anew.
    RotateLogs,
}

/// How the last reload came out.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reloaded {
    /// Whether it was taken.
    pub taken: bool,
    /// What there was to say, a line each, with file, line and remedy.
    pub said: Vec<String>,
}

/// Reads and checks the configuration; what is good is in force from the next turn on. The argument is the module that
/// was named, empty for all.
pub type Reload = Box<dyn FnMut(&str) -> Reloaded>;

/// Counters that the engine keeps for those who ask.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counters {
    /// Turns of the loop.
    pub turns: u64,
    /// Call records handed to the sink.
    pub records: u64,
    /// Copies of SIP messages, and reports of RTCP, sent to the capture server of hep.conf.
    pub captured: u64,
    /// Copies that were lost on the way there.
    pub capture_lost: u64,
    /// Spans that the collector of opentelemetry.conf took.
    pub spans: u64,
    /// Spans that were lost.
    pub spans_lost: u64,
    /// Rows of registrations that wait to be written to databases.
    pub rows_waiting: u64,
    /// Rows that were written.
    pub rows_written: u64,
    /// Rows that were lost: too many waited, or a database refused them.
    pub rows_lost: u64,
}

/// Listeners that the configuration asks for and that are off: their address cannot be had, or their certificate cannot be
/// used.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Down {
    /// Transports of SIP, by their names.
    pub transports: BTreeSet<String>,
    /// HTTP.
    pub http: bool,
    /// HTTPS.
    pub https: bool,
}

/// A codec in another process, for those who show it.
#[derive(Debug)]
pub struct ExternalLine {
    /// Its section in codecs.conf.
    pub name: String,
    /// What it codes.
    pub format: FormatId,
    /// Its program or socket.
    pub source: String,
    /// Its state.
    pub lines: Arc<Lines>,
}

/// What may be done to a cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CacheWish {
    /// Who wants an object next waits for the database.
    Expire,
    /// Who wants it next is served, and it is asked for behind that.
    Stale,
    /// All objects are asked for at once.
    Populate,
}

/// Why nothing was done to a cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CacheFault {
    /// There is none of that name.
    NoCache,
    /// It has no object of that name.
    NoObject,
}

/// A cache of objects that lie in a database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CacheLine {
    /// Module and type.
    pub name: String,
    /// Objects in it.
    pub objects: usize,
    /// Most of them.
    pub maximum: usize,
    /// Seconds after which an object is asked for anew; `None`: never.
    pub lifetime: Option<u64>,
    /// Seconds after which it is asked for behind its use; `None`: never.
    pub stale: Option<u64>,
    /// All objects are remembered at once.
    pub whole: bool,
    /// The database does not answer.
    pub is_away: bool,
    /// Look-ups that what is fresh has answered.
    pub hits: u64,
    /// Those that what is stale has.
    pub stale_hits: u64,
    /// Those that what is past its lifetime has, because the database is away.
    pub away_hits: u64,
    /// Those that waited.
    pub waited: u64,
    /// Those that nobody could answer.
    pub failed: u64,
    /// Questions asked of the database.
    pub asked: u64,
    /// Objects that went for others.
    pub evicted: u64,
    /// Questions on their way to the database.
    pub in_flight: usize,
    /// Those who wait for their answers.
    pub waiting: usize,
}

/// An object of a cache.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObjectLine {
    /// Its name.
    pub name: String,
    /// Seconds until it is stale; `None`: never.
    pub stale_in: Option<u64>,
    /// Seconds until it is asked for anew; `None`: never.
    pub expires_in: Option<u64>,
}

/// A database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DatabaseLine {
    /// What the configuration calls it.
    pub name: String,
    /// What speaks to it.
    pub driver: String,
    /// Where it is, without the password.
    pub target: String,
    /// How it stands with it.
    pub standing: String,
    /// Connections that are open.
    pub open: u64,
    /// Those with a query.
    pub busy: u64,
    /// Those that transactions have, beside `max`.
    pub lent: u64,
    /// Most of them.
    pub max: u32,
    /// Queries that wait for a connection.
    pub waiting: u64,
    /// Queries that were answered.
    pub answered: u64,
    /// Queries that failed.
    pub failed: u64,
    /// Queries that took too long.
    pub slow: u64,
}

/// What is remembered of objects in databases.
pub trait Caches {
    /// All caches.
    fn list(&self) -> Vec<CacheLine>;
    /// Objects of a cache by name, so many at most; `None`: there is no such cache.
    fn objects(&self, cache: &str, most: usize) -> Option<Vec<ObjectLine>>;
    /// Does something to an object, or to all of a cache.
    fn change(&mut self, cache: &str, object: Option<&str>, wish: CacheWish) -> Result<(), CacheFault>;
}

/// A table of a database that call records go to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordLine {
    /// Module and section.
    pub name: String,
    /// Records that wait.
    pub waiting: u64,
    /// Records that were written since the start.
    pub written: u64,
    /// Records that the table did not take, and that were set aside.
    pub refused: u64,
    /// Records wait for the database, or for its table.
    pub is_away: bool,
}

impl RecordLine {
    /// Its rows are channel events, not call records.
    pub fn is_of_events(&self) -> bool {
        self.name.starts_with("cel_")
    }
    /// As programs read it.
    pub fn json(&self) -> serde_json::Value {
        serde_json::json!({
            "name": self.name, "waiting": self.waiting, "written": self.written, "refused": self.refused,
            "away": self.is_away,
        })
    }
    /// As people read it.
    pub fn line(&self) -> String {
        let away = if self.is_away { " for the database" } else { "" };
        format!(
            "{}: {} records wait{away}, {} written, {} set aside",
            self.name, self.waiting, self.written, self.refused
        )
    }
}

/// The databases there are.
pub trait DatabaseLines {
    /// What there is to show of each.
    fn lines(&self) -> Vec<DatabaseLine>;
}

/// The running system.
pub struct Site {
    /// Calls.
    pub shard: Rc<Shard>,
    /// SIP.
    pub sip: Rc<RefCell<SipDriver>>,
    /// IAX2.
    pub iax: Rc<RefCell<IaxDriver>>,
    /// Hints and their states.
    pub hints: Rc<RefCell<Hints>>,
    /// Media workers.
    pub media: Rc<RefCell<MediaFront>>,
    /// Ways between formats and what they cost.
    pub translation: Translation,
    /// Codecs that are other processes.
    pub external: RefCell<Vec<ExternalLine>>,
    /// Prompts and music.
    pub sounds: Rc<RefCell<Sounds>>,
    /// Configuration in force.
    pub snapshot: RefCell<Arc<Snapshot>>,
    /// Log thread.
    pub log: LogSink,
    /// Log lines.
    pub sender: LogSender,
    /// When the process started.
    pub started: Instant,
    /// When it was last reloaded.
    pub reloaded: Cell<Instant>,
    /// Wall time of the start and of the last reload, seconds since the epoch.
    pub started_wall: i64,
    /// See `started_wall`.
    pub reloaded_wall: Cell<i64>,
    /// What is wished for since the engine last looked.
    pub wishes: RefCell<Vec<Wish>>,
    /// A stop that waits for calls to end.
    pub stopping: Cell<Option<When>>,
    /// Outcome of the last reload.
    pub last_reload: RefCell<Reloaded>,
    /// Reloads the configuration at once and says how it came out; set by the engine.
    pub reload: RefCell<Option<Reload>>,
    /// Watchers are told nothing of the next reload: the command of a part, such as `dialplan reload`, has asked for it.
    pub quiet_reload: Cell<bool>,
    /// Counters.
    pub counters: Cell<Counters>,
    /// The console may make parts of calls panic ([`cli::FAULT_INJECTION`](crate::cli::FAULT_INJECTION)).
    pub fault_injection: Cell<bool>,
    /// What there is to see of IAX2, when it is served.
    pub iax_sight: RefCell<Option<Rc<RefCell<dyn Show>>>>,
    /// What is remembered of objects in databases.
    pub caches: RefCell<Vec<Rc<RefCell<dyn Caches>>>>,
    /// The databases; `None`: no file describes one.
    pub databases: RefCell<Option<Rc<RefCell<dyn DatabaseLines>>>>,
    /// Tables of databases that call records go to.
    pub record_tables: RefCell<Vec<RecordLine>>,
    /// Listeners that are off.
    pub down: RefCell<Down>,
    /// What there is to see of the REST interface.
    pub ari: RefCell<crate::ari::Sight>,
}

/// How long a change of the database waits for the disk before its client is told that it has not come there.
const DISK_WITHIN: Duration = Duration::from_secs(10);

/// Modules, and the files without which they are not there.
const NEEDED: &[(&str, &str)] = &[
    ("app_agent_pool", "agents.conf"),
    ("app_confbridge", "confbridge.conf"),
    ("app_queue", "queues.conf"),
    ("chan_iax2", "iax.conf"),
    ("res_parking", "res_parking.conf"),
    ("res_pjsip_notify", "pjsip_notify.conf"),
];

/// How the names of their actions begin.
const ACTIONS: &[(&str, &str)] = &[
    ("Agent", "app_agent_pool"),
    ("Confbridge", "app_confbridge"),
    ("IAX", "chan_iax2"),
    ("PJSIPNotify", "res_pjsip_notify"),
    ("Park", "res_parking"),
    ("Queue", "app_queue"),
];

impl Site {
    /// Whether all that the database has been given is on the disk.
    pub(crate) fn is_saved(&self) -> bool {
        let db = &mut self.shard.core.borrow_mut().services.db;
        let mark = db.mark();
        db.is_saved(mark)
    }
    /// Says whether it has come there in time, later; `false`: there are too many stories, and nothing will be said.
    pub(crate) fn when_saved(&self, tell: impl FnOnce(bool) + 'static) -> bool {
        let nobody = base::ChannelId::new(u32::MAX, u32::MAX);
        let chan = call::Chan::new(self.shard.clone(), nobody);
        self.shard.spawn(None, async move {
            let deadline = chan.now() + DISK_WITHIN;
            tell(chan.saved(deadline).await);
        })
    }
    /// Does something to an object of a cache, or to all of it.
    pub fn change_cache(&self, cache: &str, object: Option<&str>, wish: CacheWish) -> Result<(), CacheFault> {
        let caches = self.caches.borrow().clone();
        let mut outcomes = caches.iter().map(|caches| caches.borrow_mut().change(cache, object, wish));
        outcomes.find(|outcome| *outcome != Err(CacheFault::NoCache)).unwrap_or(Err(CacheFault::NoCache))
    }
    /// Whether a module has the file without which the field's server leaves it out, with its actions and commands. What has
    /// no file at all here, and what may lie in databases, is there.
    pub(crate) fn is_configured(&self, module: &str) -> bool {
        let file = NEEDED.iter().find(|(known, ..)| *known == module).map(|(_, file)| *file);
        file.is_none_or(|file| self.databases.borrow().is_some() || !self.snapshot.borrow().lacks(file))
    }
    /// Whether an action is there, by the module that it belongs to.
    pub(crate) fn has_action(&self, action: &str) -> bool {
        let module = ACTIONS.iter().find(|(start, _)| action.starts_with(start)).map(|(_, module)| *module);
        module.is_none_or(|module| self.is_configured(module))
    }
    /// Whether somebody has wished for an end that the engine has not looked at yet.
    pub(crate) fn is_stop_wished(&self) -> bool {
        self.wishes.borrow().iter().any(|wish| matches!(wish, Wish::Stop { .. }))
    }
    /// Puts a wish down.
    pub fn wish(&self, wish: Wish) {
        self.wishes.borrow_mut().push(wish);
    }
}
