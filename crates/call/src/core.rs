//! The owner of channels and bridges: slabs of both, their events, and what is told to watchers.
//!
//! Here is all that a story may touch; what is done with it is in the modules below and in those of the crate.

mod bridges;
mod channels;
mod events;
pub(crate) mod notices;
mod settings;

use std::collections::{HashMap, VecDeque};
use std::rc::Rc;

use base::{Cause, ChannelId, Command, Instant, PlayId, StreamId};

use self::bridges::Bridge;
use self::channels::Slot;
use crate::exec::TaskId;
use crate::unique_ids::UniqueIds;
use crate::{Admission, Cdr, Notice, Services};

pub(crate) use self::bridges::BridgeGuest;
pub use self::bridges::FORWARDER_NAME;
pub use self::events::BY_OTHER_HALF;
pub use self::settings::{MachineSettings, Settings};

/// Lines for a server of statistics, until the turn ends.
#[derive(Debug, Default)]
pub struct Statistics {
    /// There is one.
    pub is_told: bool,
    /// Lines, without the site's prefix.
    pub lines: Vec<String>,
}

/// Whether the dialplan has a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// It has.
    Whole,
    /// More digits could make one.
    Partial,
    /// It has not, and no more digits help.
    None,
    /// No extension has exactly this name, and it holds this character, which a dial string takes for its own: no
    /// pattern may take it.
    Separator(char),
}

/// How the call of somebody who was transferred comes on, for who transferred him.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Advance {
    /// The other end rings.
    Ringing,
    /// The other end is heard before it answers.
    Early,
    /// Somebody, or an application, has taken the call.
    Connected,
    /// Nobody took it.
    Failed(Cause),
}

/// Channels, bridges and everything a story may touch.
pub struct Core {
    /// Monotonic time of this turn of the shard's loop.
    pub now: Instant,
    /// Floor 3.
    pub services: Services,
    /// Settings in force.
    pub settings: Rc<Settings>,
    /// Dialplan in force; a call keeps the one it looks up at each step.
    pub program: std::sync::Arc<dialplan::Program>,
    /// Extensions that are there while somebody is registered.
    pub registered: dialplan::Registered,
    /// Looks a number up: context, extension, caller's number. Set by whoever runs the dialplan.
    pub reach: fn(&Core, &str, &str, &str) -> Reach,
    /// Global variables.
    pub globals: dialplan::Vars,
    /// The gate for new calls.
    pub admission: Admission,
    /// Who has guessed too many passwords.
    pub bans: crate::Bans,
    /// How much of what strangers do is told.
    pub strangers: crate::security::Strangers,
    /// Whether anybody reads notices; when not, none are made.
    pub watched: bool,
    /// Notices of this turn, in order.
    pub notices: Vec<Notice>,
    /// Finished call records of this turn.
    pub cdrs: Vec<Cdr>,
    /// Number of the next call record.
    pub(crate) cdr_sequence: u32,
    /// Channel events of this turn that are kept, in order.
    pub cels: Vec<crate::Cel>,
    pub(crate) linked: crate::cel::LinkedCounts,
    /// Devices (`PJSIP/6001`) whose state may have changed this turn.
    pub touched_devices: Vec<String>,
    /// Custom devices that were set since, in order, each with what it was set to.
    pub custom_changes: Vec<(String, crate::DeviceState)>,
    /// While an earlier change of a custom device is told: what the device did then.
    pub custom_then: Option<(String, crate::DeviceState)>,
    /// The dialplan was read anew, and watchers of the manager are told of every hint.
    pub reloaded_hints: bool,
    /// A called phone rings, and the story of whoever calls it has not heard so.
    pub rings_unheard: bool,
    /// What is watched from outside: extensions with hints, mailboxes.
    pub board: crate::Board,
    /// Numbers whose call forward or do-not-disturb has changed.
    pub(crate) diverted: crate::diversion::Noted,
    /// What switches of the dialplan say of numbers.
    pub switches: crate::Switches,
    /// What devices do on other servers.
    pub(crate) others: crate::others::OtherServers,
    /// What other servers are to be told.
    pub outward: crate::Outward,
    /// Whether an extension has a hint: context, extension. Set by whoever runs the dialplan.
    pub hinted: fn(&Core, &str, &str) -> bool,
    /// Arguments of the Park() that an extension begins with: context, extension, caller's number; `None`: it does
    /// something else. Set by whoever runs the dialplan.
    pub parks: fn(&Core, &str, &str, &str) -> Option<String>,
    /// Call queues; changed through [`Core::with_queues`].
    pub queues: queue::Queues,
    /// What stories of callers in queues are to do.
    pub(crate) queue_orders: HashMap<ChannelId, VecDeque<queue::Order>>,
    /// Lines for the log of queues, in order.
    pub queue_lines: Vec<queue::Line>,
    /// Callers who are called back instead of waiting; changed by the `callback_…` methods.
    pub callbacks: crate::Callbacks,
    /// Parking lots; who is in them is changed by [`Core::park`] and the like.
    pub parking: crate::parking::Parking,
    /// Agents; changed by the `agent_…` methods.
    pub agents: crate::Agents,
    /// How queues are read that lie in a database; `None`: none does.
    pub queue_tables: Option<std::rc::Rc<dyn crate::QueueTables>>,
    pub(crate) queue_rows: Vec<crate::MemberRow>,
    pub(crate) queue_rows_wait: usize,
    /// Conferences; changed by the `conference_…` methods.
    pub conferences: crate::conference::Conferences,
    /// What programs that steer calls from outside have; changed by the `stasis_…` methods.
    pub stasis: crate::stasis::Stasis,
    /// Channels that listen to others; changed by the `spy_…` methods.
    pub(crate) spies: std::collections::BTreeMap<ChannelId, crate::spy::Spy>,
    /// Channels that wait for a signal, by its name.
    pub(crate) signals: Vec<(String, ChannelId)>,
    /// Number of the last who spoke to a channel beside whom it talks to.
    pub(crate) last_murmur: u32,
    /// What AGI says and hears goes to the consoles.
    pub agi_debug: bool,
    /// Exchanges of channels that drivers have asked for.
    pub(crate) exchanges: Vec<crate::Exchange>,
    /// Ends of calls that came while somebody was about to take their place.
    pub(crate) late_ends: Vec<(ChannelId, Cause, String)>,
    /// Who is to take seats in conferences, as drivers have asked.
    pub(crate) stand_ins: Vec<crate::StandIn>,
    pub(crate) couplings: Vec<crate::Coupling>,
    /// What members of conferences are to be told in their calls.
    pub(crate) documents: crate::conference::Documents,
    /// How transferred calls came on: the number that [`Channel::advance_watch`](crate::Channel::advance_watch) was given,
    /// and what happened.
    pub advances: Vec<(u64, Advance)>,
    /// Calls that have entered the dialplan since start.
    pub calls_processed: u64,
    channels: Vec<Slot>,
    free: Vec<u32>,
    alive: usize,
    calls: usize,
    by_name: HashMap<Rc<str>, ChannelId>,
    by_stream: HashMap<StreamId, ChannelId>,
    pub(crate) woken: Vec<TaskId>,
    /// Stories that let others go first: they are woken in the next turn, not in this one.
    pub(crate) paused: Vec<TaskId>,
    pub(crate) library_waiters: Vec<TaskId>,
    /// Music that somebody chose by a key and that is still being read.
    pub(crate) music_wanted: Vec<(ChannelId, String)>,
    pub(crate) outside_waiters: Vec<TaskId>,
    /// What dialplans tell a server of statistics.
    pub statistics: Statistics,
    /// Rows of databases that stand beside files.
    pub rows_again: crate::RowsAgain,
    pub(crate) post_waiters: Vec<TaskId>,
    /// Stories that wait until the database has put on the disk what it was given.
    pub(crate) save_waiters: Vec<TaskId>,
    pub(crate) locks: crate::locks::Locks,
    pub(crate) transactions: crate::transactions::OwnTransactions,
    pub(crate) next_transaction: u64,
    /// Urgent messages by mailbox.
    pub(crate) urgent: HashMap<String, u32>,
    /// PINs that were changed since voicemail.conf was read.
    pub pins: HashMap<crate::voicemail::BoxName, String>,
    /// Programs that wait for the files of recordings.
    pub(crate) following: Vec<crate::monitor::Following>,
    pub(crate) link_waiters: HashMap<crate::LinkId, TaskId>,
    /// How often a channel has entered a bridge.
    pub entries: u64,
    pub(crate) bridges: Vec<Bridge>,
    pub(crate) regrouped: Vec<ChannelId>,
    free_bridges: Vec<u32>,
    random: base::Random,
    name_serial: u32,
    unique_ids: UniqueIds,
    /// The number of the latest call, for the log.
    call_numbers: u32,
    /// The call whose story is running.
    speaking: Option<u32>,
}

impl Core {
    /// An empty core. `seed` feeds [`Core::random`].
    pub fn new(
        services: Services,
        settings: Settings,
        program: std::sync::Arc<dialplan::Program>,
        seed: u64,
    ) -> Self {
        let diverted = crate::diversion::Noted::default();
        let db = Box::new(crate::diversion::Noting::new(services.db, &diverted));
        Self {
            now: Instant::ZERO,
            services: Services { db, ..services },
            diverted,
            settings: Rc::new(settings),
            program,
            registered: dialplan::Registered::default(),
            reach: |_, _, _, _| Reach::Whole,
            globals: dialplan::Vars::default(),
            admission: Admission::default(),
            bans: crate::Bans::default(),
            strangers: crate::security::Strangers::default(),
            watched: false,
            notices: Vec::new(),
            cdrs: Vec::new(),
            cdr_sequence: 0,
            cels: Vec::new(),
            linked: None,
            touched_devices: Vec::new(),
            custom_changes: Vec::new(),
            custom_then: None,
            reloaded_hints: false,
            rings_unheard: false,
            board: Default::default(),
            switches: crate::Switches::default(),
            others: Default::default(),
            outward: Default::default(),
            hinted: |_, _, _| false,
            parks: |_, _, _, _| None,
            queues: queue::Queues::new(seed.rotate_left(32)),
            queue_orders: HashMap::new(),
            queue_lines: Vec::new(),
            callbacks: Default::default(),
            parking: Default::default(),
            agents: Default::default(),
            queue_tables: None,
            queue_rows: Vec::new(),
            queue_rows_wait: 0,
            conferences: Default::default(),
            stasis: Default::default(),
            spies: Default::default(),
            signals: Vec::new(),
            last_murmur: 0,
            exchanges: Vec::new(),
            late_ends: Vec::new(),
            stand_ins: Vec::new(),
            couplings: Vec::new(),
            documents: Default::default(),
            advances: Vec::new(),
            calls_processed: 0,
            channels: Vec::new(),
            free: Vec::new(),
            alive: 0,
            calls: 0,
            by_name: HashMap::new(),
            by_stream: HashMap::new(),
            woken: Vec::new(),
            paused: Vec::new(),
            library_waiters: Vec::new(),
            music_wanted: Vec::new(),
            outside_waiters: Vec::new(),
            statistics: Statistics::default(),
            rows_again: Default::default(),
            post_waiters: Vec::new(),
            save_waiters: Vec::new(),
            locks: Default::default(),
            transactions: Default::default(),
            next_transaction: 0,
            urgent: HashMap::new(),
            pins: HashMap::new(),
            following: Vec::new(),
            link_waiters: HashMap::new(),
            agi_debug: false,
            entries: 0,
            bridges: Vec::new(),
            regrouped: Vec::new(),
            free_bridges: Vec::new(),
            random: base::Random::new(seed),
            name_serial: 0,
            unique_ids: UniqueIds::default(),
            call_numbers: 0,
            speaking: None,
        }
    }

    /// Sends a media command.
    pub fn media(&mut self, command: Command) {
        self.note_engaged(&command);
        self.services.media.command(command);
    }
    /// The next number of a channel's name.
    pub fn next_serial(&mut self) -> u32 {
        let serial = self.name_serial;
        self.name_serial = serial.wrapping_add(1);
        serial
    }
    /// Says when the process began, so that no UNIQUEID of one before it comes again.
    pub fn begin_uniqueids(&mut self, wall_micros: i64) {
        self.unique_ids = UniqueIds::begin(wall_micros);
    }
    /// The next UNIQUEID: `[systemname-]epoch.serial`.
    pub fn next_uniqueid(&mut self, wall_micros: i64) -> String {
        self.unique_ids.next(&self.settings.system_name, wall_micros)
    }
    /// A random number ([`base::Random`]): for spreading, shuffling and dialplans; never for secrets.
    pub fn random(&mut self) -> u64 {
        self.random.bits()
    }
    /// A fresh [`PlayId`] for the channel; answers to older requests are told apart by it.
    pub(crate) fn next_play(&mut self, id: ChannelId) -> PlayId {
        let Some(channel) = self.get_mut(id) else { return PlayId(0) };
        channel.last_play = PlayId(channel.last_play.0.wrapping_add(1));
        channel.last_play
    }
}
