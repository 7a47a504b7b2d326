//! The owner of channels and bridges: a slab, their events, and what is told to watchers.

use std::collections::{HashMap, VecDeque};
use std::rc::Rc;

use base::{
    BridgeId, Cause, ChannelId, Coded, Command, Event, FormatId, FormatSet, Instant, Listener, PlayId,
    StreamId,
};

use crate::channel::EVENTS_MAX;
use crate::exec::TaskId;
use crate::{
    Admission, Cdr, CdrState, CelKind, ChanEvent, ChanState, Channel, Directories, Elsewhere, Level,
    Location, NewChannel, Notice, Services, Snapshot,
};

/// What the administrator set and the call core reads. Replaced whole by a reload.
#[derive(Debug, Clone, Default)]
pub struct Settings {
    /// Formats that are coded here; the others only pass through.
    pub coded: Coded,
    /// `systemname`: prefix of UNIQUEID.
    pub system_name: String,
    /// `entityid`.
    pub entity_id: String,
    /// `defaultlanguage`.
    pub language: String,
    /// `country` of indications.conf.
    pub country: String,
    /// Directories.
    pub directories: Directories,
    /// `transmit_silence`: an answered call that has nothing to hear is sent silence.
    pub transmit_silence: bool,
    /// `preferchannelclass=no`: music that an application names goes before what the dialplan chose for the channel.
    pub named_music_first: bool,
    /// Call records: written at all.
    pub cdr_enabled: bool,
    /// `unanswered`: call records also for calls that nobody answered and that had no second party.
    pub cdr_unanswered: bool,
    /// `congestion=yes`: disposition CONGESTION exists.
    pub cdr_congestion: bool,
    /// `channeldefaultenabled=no`: only channels whose dialplan asks for records have them.
    pub cdr_on_request: bool,
    /// `initiatedseconds`: what is billed is rounded up to a whole second.
    pub cdr_initiated_seconds: bool,
    /// `ignoredialchanges`: dialling begins no other record.
    pub cdr_ignore_dialling: bool,
    /// `endbeforehexten`: the record ends before `h` runs.
    pub cdr_end_before_h: bool,
    /// Channel event logging; `None`: there is none.
    pub cel: Option<Rc<crate::CelSettings>>,
    /// Capabilities switched off by `noload` in modules.conf, by module name without `.so`.
    pub disabled_modules: std::collections::BTreeSet<String>,
    /// `live_dangerously`.
    pub live_dangerously: bool,
    /// Profiles of confbridge.conf.
    pub conferences: std::sync::Arc<crate::conference::Profiles>,
    /// Rooms of meetme.conf.
    pub meeting_rooms: std::sync::Arc<crate::conference::Rooms>,
    /// What meetme.conf says of rooms that are rows.
    pub bookings: crate::conference::Bookings,
    /// Profiles of followme.conf.
    pub follow_me: std::sync::Arc<crate::followme::Profiles>,
    /// features.conf.
    pub features: Rc<crate::features::Features>,
    /// Classes of music that nobody hears who is not answered (`answeredonly`).
    pub music_when_answered: Rc<std::collections::BTreeSet<String>>,
    /// Keys by which who hears music chooses its class (`digit`).
    pub music_keys: Rc<std::collections::BTreeMap<char, String>>,
    /// How answering machines are told from people, where a dialplan does not say.
    pub machines: MachineSettings,
    /// Databases that transactions can be in, by their names.
    pub transactions: Rc<std::collections::BTreeMap<String, crate::transactions::TransactionRules>>,
    /// Mailboxes and their rules.
    pub voicemail: std::sync::Arc<crate::voicemail::Voicemail>,
    /// Accounts that have no menus.
    pub minivm: std::sync::Arc<crate::voicemail::MiniVm>,
}

/// Lines for a server of statistics, until the turn ends.
#[derive(Debug, Default)]
pub struct Statistics {
    /// There is one.
    pub is_told: bool,
    /// Lines, without the site's prefix.
    pub lines: Vec<String>,
}

/// How an answering machine is told from somebody who answers; times in milliseconds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MachineSettings {
    /// Longest silence before a greeting.
    pub initial_silence_ms: u32,
    /// Longest greeting.
    pub greeting_ms: u32,
    /// Silence after a greeting that people leave.
    pub after_greeting_silence_ms: u32,
    /// After this it is not sure.
    pub total_ms: u32,
    /// Shortest sound that is a word.
    pub word_min_ms: u32,
    /// Shortest silence that parts words.
    pub between_words_ms: u32,
    /// Words by which it is a machine.
    pub words_max: u32,
    /// Mean absolute amplitude from which on it is sound.
    pub silence_threshold: u32,
    /// Longest word.
    pub word_max_ms: u32,
    /// Sound that is played meanwhile; empty: none.
    pub audio_file: String,
}

impl Default for MachineSettings {
    /// The field's.
    fn default() -> Self {
        Self {
            initial_silence_ms: 2500,
            greeting_ms: 1500,
            after_greeting_silence_ms: 800,
            total_ms: 5000,
            word_min_ms: 100,
            between_words_ms: 50,
            words_max: 2,
            silence_threshold: 256,
            word_max_ms: 5000,
            audio_file: String::new(),
        }
    }
}

impl Settings {
    /// Whether `module` (`app_dial`) was not switched off.
    pub fn has_module(&self, module: &str) -> bool {
        !self.disabled_modules.contains(module)
    }
}

struct Slot {
    generation: u32,
    channel: Option<Box<Channel>>,
}

pub(crate) struct Bridge {
    generation: u32,
    pub(crate) members: Vec<ChannelId>,
    pub(crate) alive: bool,
    /// Two talk in it and nobody else; whether their digits are waited for.
    pub(crate) pair: Option<bool>,
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

/// Most channels at once; bounds the slab whatever `maxcalls` says.
const CHANNELS_MAX: usize = 1 << 18;

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
    /// Whether anybody reads notices; when not, none are made.
    pub watched: bool,
    /// Notices of this turn, in order.
    pub notices: Vec<Notice>,
    /// Finished call records of this turn.
    pub cdrs: Vec<Cdr>,
    /// Channel events of this turn that are kept, in order.
    pub cels: Vec<crate::Cel>,
    pub(crate) linked: crate::cel::LinkedCounts,
    /// Devices (`PJSIP/6001`) whose state may have changed this turn.
    pub touched_devices: Vec<String>,
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
    /// Who is to take seats in conferences, as drivers have asked.
    pub(crate) stand_ins: Vec<crate::StandIn>,
    pub(crate) couplings: Vec<crate::Coupling>,
    /// What members of conferences are to be told in their calls.
    pub(crate) documents: crate::conference::Documents,
    /// How transferred calls came on: the number that [`Channel::advance_watch`] was given, and what happened.
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
    pub(crate) bridges: Vec<Bridge>,
    pub(crate) regrouped: Vec<ChannelId>,
    free_bridges: Vec<u32>,
    random: base::Random,
    name_serial: u32,
    unique_serial: u64,
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
            watched: false,
            notices: Vec::new(),
            cdrs: Vec::new(),
            cels: Vec::new(),
            linked: None,
            touched_devices: Vec::new(),
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
            spies: Default::default(),
            signals: Vec::new(),
            last_murmur: 0,
            exchanges: Vec::new(),
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
            bridges: Vec::new(),
            regrouped: Vec::new(),
            free_bridges: Vec::new(),
            random: base::Random::new(seed),
            name_serial: 0,
            unique_serial: 0,
            call_numbers: 0,
            speaking: None,
        }
    }

    /// Makes a channel and tells watchers. `None` when the slab is full.
    pub fn create(&mut self, new: NewChannel) -> Option<ChannelId> {
        if self.alive >= CHANNELS_MAX {
            return None;
        }
        let slot = match self.free.pop() {
            Some(slot) => slot,
            None => {
                self.channels.push(Slot { generation: 0, channel: None });
                u32::try_from(self.channels.len() - 1).ok()?
            }
        };
        let wall = self.services.wall.now_micros();
        let linked = new.linked_to.and_then(|id| self.get(id)).map(|c| (c.linkedid.clone(), c.call_number));
        let (linked, call_number) = match linked {
            Some((linkedid, number)) => (Some(linkedid), number),
            None => {
                self.call_numbers = self.call_numbers.wrapping_add(1);
                (None, self.call_numbers)
            }
        };
        let name: Rc<str> = match new.exact_name {
            Some(name) => name.into(),
            None => format!("{}-{:08x}", new.base_name, self.next_serial()).into(),
        };
        let uniqueid: Rc<str> = match new.uniqueid {
            Some(given) => given.into(),
            None => self.next_uniqueid(wall).into(),
        };
        let entry = self.channels.get_mut(slot as usize)?;
        let id = ChannelId::new(slot, entry.generation);
        let language = if new.language.is_empty() { self.settings.language.clone() } else { new.language };
        entry.channel = Some(Box::new(Channel {
            id,
            name: name.clone(),
            linkedid: linked.unwrap_or_else(|| uniqueid.clone()),
            uniqueid,
            tech: new.tech,
            handle: new.handle,
            state: new.state,
            ani: new.caller.number.clone(),
            caller: new.caller,
            dialed: None,
            connected: Default::default(),
            redirecting: Default::default(),
            account: new.account,
            peer_account: String::new(),
            language,
            tone_zone: String::new(),
            music_class: if new.music_class.is_empty() { "default".to_owned() } else { new.music_class },
            music_chosen: false,
            music_suggested: new.music_suggested,
            parking_lot: new.parking_lot,
            pickup: new.pickup,
            rung_at: None,
            picked_up: false,
            location: new.location,
            app: "",
            app_data: String::new(),
            told_app: "",
            vars: dialplan::Vars::default(),
            format: new.formats.first().unwrap_or(FormatId::SLIN),
            formats: new.formats,
            stream: None,
            passed: Vec::new(),
            video_formats: FormatSet::EMPTY,
            last_play: PlayId(0),
            bridge: None,
            hangup: None,
            hangup_source: String::new(),
            goto: None,
            wanted: false,
            keeper: None,
            consulted: None,
            agent: None,
            fax_watch: None,
            has_pbx: false,
            outgoing: new.outgoing,
            held: false,
            created: self.now,
            created_wall: wall,
            answered: None,
            absolute_deadline: None,
            digit_timeout_ms: 5_000,
            response_timeout_ms: 10_000,
            cdr: CdrState::new(&self.settings),
            hangup_handlers: Vec::new(),
            last_cause: Cause::NONE,
            hangup_causes: Vec::new(),
            shared: dialplan::Vars::default(),
            groups: Vec::new(),
            monitors: Vec::new(),
            last_monitor: 0,
            events: VecDeque::new(),
            waiter: None,
            media_flows: false,
            quality: None,
            asked_quality: false,
            agi: None,
            message: None,
            advance_watch: None,
            tones: None,
            volume: None,
            is_told_ringing: false,
            rings_inside: false,
            keeps_digits: false,
            rights: Default::default(),
            conference: None,
            features: None,
            queue_place: None,
            passes_hold: false,
            keeps_holds: false,
            last_recording: None,
            engaged: Default::default(),
            music_place: Default::default(),
            muted: (false, false),
            call_number,
        }));
        self.alive += 1;
        if !new.outgoing {
            self.calls += 1;
        }
        self.by_name.insert(name, id);
        self.notice_of(id, Notice::NewChannel);
        self.log_start(id);
        self.touch_device(id);
        Some(id)
    }

    /// A channel.
    pub fn get(&self, id: ChannelId) -> Option<&Channel> {
        let slot = self.channels.get(id.slot as usize).filter(|slot| slot.generation == id.generation)?;
        slot.channel.as_deref()
    }
    /// A channel, to change what its field's comment allows.
    pub fn get_mut(&mut self, id: ChannelId) -> Option<&mut Channel> {
        let slot = self.channels.get_mut(id.slot as usize).filter(|slot| slot.generation == id.generation)?;
        slot.channel.as_deref_mut()
    }
    /// All channels in slab order.
    pub fn channels(&self) -> impl Iterator<Item = &Channel> {
        self.channels.iter().filter_map(|slot| slot.channel.as_deref())
    }
    /// How many channels there are.
    pub fn channel_count(&self) -> usize {
        self.alive
    }
    /// How many calls there are: channels that came in or run a dialplan, not the legs they dialled.
    pub fn call_count(&self) -> usize {
        self.calls
    }
    /// A dialplan begins to run on the channel. One that we called and that has answered is a party with a record of its
    /// own from here on.
    pub fn enter_pbx(&mut self, id: ChannelId) {
        let (now, wall) = (self.now, self.services.wall.now_micros());
        let Some(channel) = self.get_mut(id).filter(|c| !c.has_pbx) else { return };
        channel.has_pbx = true;
        if channel.outgoing && channel.answered.is_some() {
            channel.cdr.answer.get_or_insert((now, wall));
            channel.cdr.disposition = crate::Disposition::Answered;
        }
        if channel.outgoing {
            self.calls += 1;
        }
        self.calls_processed += 1;
    }
    /// The channel of this exact name; or of this UNIQUEID.
    pub fn by_name(&self, name: &str) -> Option<ChannelId> {
        self.by_name
            .get(name)
            .copied()
            .or_else(|| self.channels().find(|c| &*c.uniqueid == name).map(|c| c.id))
    }
    /// Snapshot of a channel for a notice.
    pub fn snapshot(&self, id: ChannelId) -> Option<Snapshot> {
        self.get(id).map(Snapshot::of)
    }

    /// Gives a channel its media stream (driver, once).
    pub fn set_stream(&mut self, id: ChannelId, stream: StreamId, format: FormatId) {
        if let Some(channel) = self.get_mut(id) {
            channel.stream = Some(stream);
            channel.format = format;
            let is_up = channel.answered.is_some();
            self.by_stream.insert(stream, id);
            if is_up {
                self.fill_silence(id);
            }
        }
    }
    /// The channel a stream belongs to.
    pub fn channel_of_stream(&self, stream: StreamId) -> Option<ChannelId> {
        self.by_stream.get(&stream).copied()
    }
    /// Sends a media command.
    pub fn media(&mut self, command: Command) {
        self.note_engaged(&command);
        self.services.media.command(command);
    }

    /// Changes the state and tells watchers, when it is another.
    pub fn set_state(&mut self, id: ChannelId, state: ChanState) {
        let Some(channel) = self.get_mut(id).filter(|c| c.state != state) else { return };
        channel.state = state;
        self.notice_of(id, Notice::NewState);
        self.touch_device(id);
    }
    /// The channel is answered (driver, for outgoing ones; [`Shard::answer`](crate::Shard::answer) for incoming ones).
    pub fn answered(&mut self, id: ChannelId) {
        let now = self.now;
        let wall = self.services.wall.now_micros();
        let Some(channel) = self.get_mut(id) else { return };
        if channel.answered.is_none() {
            channel.answered = Some(now);
            if !channel.outgoing || channel.has_pbx {
                channel.cdr.answer = Some((now, wall));
                channel.cdr.disposition = crate::Disposition::Answered;
            }
            self.log_event(CelKind::Answer, id, |_| Vec::new());
            self.listen_for_fax(id, None);
            self.fill_silence(id);
        }
        self.set_state(id, ChanState::Up);
    }
    /// An answered call hears silence rather than nothing, where that is wanted.
    fn fill_silence(&mut self, id: ChannelId) {
        let stream = self.get(id).and_then(|channel| channel.stream);
        if let Some(stream) = stream.filter(|_| self.settings.transmit_silence) {
            self.media(Command::FillSilence { stream, on: true });
        }
    }

    /// Something happened on a channel: its story will hear of it. Bounded; the oldest digit makes room.
    pub fn push_event(&mut self, id: ChannelId, event: ChanEvent) {
        if self.watched {
            self.notice_event(id, &event);
        }
        if let ChanEvent::Digit { digit, duration_ms, .. } = event {
            self.volume_key(id, digit);
            self.music_key(id, digit);
            self.log_event(CelKind::Dtmf, id, |_| {
                vec![
                    ("digit", digit.to_char().to_string().into()),
                    ("duration_ms", duration_ms.to_string().into()),
                ]
            });
        }
        let Some(channel) = self.get_mut(id) else { return };
        match event {
            ChanEvent::MediaFlowing => channel.media_flows = true,
            ChanEvent::Hold => channel.held = true,
            ChanEvent::Unhold => channel.held = false,
            _ => {}
        }
        if channel.keeps_holds && matches!(event, ChanEvent::Hold | ChanEvent::Unhold) {
            return;
        }
        if channel.events.len() >= EVENTS_MAX {
            let oldest_digit = channel
                .events
                .iter()
                .position(|e| matches!(e, ChanEvent::Digit { .. } | ChanEvent::DigitBegin(_)));
            channel.events.remove(oldest_digit.unwrap_or(0));
        }
        channel.events.push_back(event);
        if let Some(task) = channel.waiter {
            self.woken.push(task);
        }
    }
    /// The other side has ended the call (driver). The story ends by it; the first cause stays.
    pub fn remote_hangup(&mut self, id: ChannelId, cause: Cause, source: &str) {
        if self.end(id, cause, source) {
            self.notice_of(id, |channel| Notice::HangupRequest { channel, cause });
        }
    }
    /// We end the call: its story hears of it and hangs up.
    pub fn request_hangup(&mut self, id: ChannelId, cause: Cause) {
        if self.end(id, cause, "") {
            self.notice_of(id, |channel| Notice::SoftHangup { channel, cause });
        }
    }
    fn end(&mut self, id: ChannelId, cause: Cause, source: &str) -> bool {
        let Some(channel) = self.get_mut(id).filter(|c| c.hangup.is_none()) else { return false };
        channel.hangup = Some(cause);
        channel.last_cause = cause;
        channel.hangup_source = source.to_owned();
        if let Some(task) = channel.waiter {
            self.woken.push(task);
        }
        self.spied_changed(id);
        true
    }
    /// Limits how long the call may last (`TIMEOUT(absolute)`); whoever waits on the channel takes it up at once.
    pub fn set_absolute_deadline(&mut self, id: ChannelId, at: Option<Instant>) {
        let Some(channel) = self.get_mut(id) else { return };
        channel.absolute_deadline = at;
        if let Some(task) = channel.waiter {
            self.woken.push(task);
        }
    }
    /// Sends a running channel elsewhere in the dialplan.
    pub fn request_goto(&mut self, id: ChannelId, to: Location) {
        let Some(channel) = self.get_mut(id) else { return };
        channel.goto = Some(Elsewhere::Dialplan(to));
        if let Some(task) = channel.waiter {
            self.woken.push(task);
        }
    }
    /// The story that has a channel lets go of it, because another one has asked for it; that one goes on.
    pub fn hand_over(&mut self, id: ChannelId) {
        let Some(channel) = self.get_mut(id) else { return };
        if let Some(Elsewhere::Story(task)) = channel.goto {
            channel.goto = None;
            channel.keeper = Some(task);
            self.woken.push(task);
        }
    }
    /// The call of somebody who was transferred has come on: who transferred him hears it. After `Connected` and `Failed`
    /// nothing more is told.
    pub fn advance(&mut self, id: ChannelId, advance: Advance) {
        let Some(channel) = self.get_mut(id) else { return };
        let token = match advance {
            Advance::Ringing | Advance::Early => channel.advance_watch,
            Advance::Connected | Advance::Failed(_) => channel.advance_watch.take(),
        };
        self.advances.extend(token.map(|token| (token, advance)));
    }
    /// A media worker's word.
    pub fn media_event(&mut self, event: Event) {
        let (stream, heard) = match event {
            Event::Played { stream, play, end, offset } => (stream, ChanEvent::Played { play, end, offset }),
            Event::DigitBegin { stream, digit, .. } => (stream, ChanEvent::DigitBegin(digit)),
            Event::DigitEnd { stream, digit, duration_ms, relayed } => {
                (stream, ChanEvent::Digit { digit, duration_ms, relayed })
            }
            Event::DigitsSent { stream } => (stream, ChanEvent::DigitsSent),
            Event::Silence { stream, ms } => (stream, ChanEvent::Silence(ms)),
            Event::Sound { stream, listener: Listener::Application, sounds, before_ms } => {
                (stream, ChanEvent::Sound { sounds, before_ms })
            }
            Event::Sound { stream, listener: Listener::Watcher, sounds, before_ms } => {
                if let Some(id) = self.channel_of_stream(stream) {
                    let duration_ms = (!sounds).then_some(before_ms);
                    self.notice_of(id, |channel| Notice::Talking { channel, duration_ms });
                }
                return;
            }
            Event::Tone { stream, listener, sent } => {
                match (self.channel_of_stream(stream), listener) {
                    (Some(id), Listener::Application) => self.tone_came(id, sent),
                    (Some(id), Listener::Watcher) => self.fax_sounds(id),
                    (None, _) => {}
                }
                return;
            }
            Event::Talking { stream, talks } => {
                if let Some(id) = self.channel_of_stream(stream) {
                    self.conference_talking(id, talks);
                }
                return;
            }
            Event::Speaker { stream } => {
                if let Some(id) = self.channel_of_stream(stream) {
                    self.conference_speaker(id);
                }
                return;
            }
            Event::Latched { stream, .. } => (stream, ChanEvent::MediaFlowing),
            Event::RtpTimeout { stream } => (stream, ChanEvent::MediaTimeout),
            // What to send then is between the driver and its peer, and a driver tells of reports: it knows both ends.
            Event::Sends { .. } | Event::Rtcp { .. } | Event::PictureWanted { .. } => return,
            Event::Stats { stream, stats, asked } => return self.stats_came(stream, stats, asked),
            Event::Closed { stream, fault, .. } => {
                if let (Some(id), Some(fault)) = (self.by_stream.remove(&stream), fault) {
                    let name = self.get(id).map(|c| c.name.clone()).unwrap_or_default();
                    self.log(Level::Error, "media", &format!("{name}: media stream ended: {fault:?}"));
                    self.remote_hangup(id, Cause::NORMAL_TEMPORARY_FAILURE, "media");
                }
                return;
            }
        };
        if let Some(id) = self.channel_of_stream(stream) {
            if let ChanEvent::Played { play, .. } = heard {
                self.note_played(id, play);
            }
            self.push_event(id, heard);
        }
    }
    fn stats_came(&mut self, stream: StreamId, stats: base::StreamStats, asked: bool) {
        let Some(channel) = self.by_stream.get(&stream).copied().and_then(|id| self.get_mut(id)) else {
            return;
        };
        let quality = channel.quality.get_or_insert_default();
        if asked {
            quality.told(stats);
            channel.asked_quality = false;
            let waiter = channel.waiter;
            self.woken.extend(waiter);
        } else {
            quality.report(stats);
        }
    }
    /// Lets no audio through from the party of a channel (`heard`), or to it (`sent`), or lets it through again; `None`
    /// leaves a way as it is. Digits go on. False without media.
    pub fn mute(&mut self, id: ChannelId, heard: Option<bool>, sent: Option<bool>) -> bool {
        let Some(channel) = self.get_mut(id) else { return false };
        let Some(stream) = channel.stream else { return false };
        channel.muted = (heard.unwrap_or(channel.muted.0), sent.unwrap_or(channel.muted.1));
        let (heard, sent) = channel.muted;
        self.media(Command::Mute { stream, heard, sent });
        true
    }
    /// A sound that was being read has arrived: whoever waits asks again.
    pub fn library_changed(&mut self) {
        self.woken.append(&mut self.library_waiters);
    }
    /// An answer of the DNS has arrived: whoever waits asks again.
    pub fn outside_changed(&mut self) {
        self.woken.append(&mut self.outside_waiters);
    }

    /// Removes a channel, closes its stream and tells watchers. The driver has been told before.
    pub(crate) fn remove(&mut self, id: ChannelId) {
        self.conference_leave(id);
        self.agent_gone(id);
        self.queue_gone(id);
        self.park_over(id, crate::parking::ParkingChange::GaveUp);
        self.release_locks(id);
        self.end_transactions(id);
        self.advance(id, Advance::Failed(self.get(id).map_or(Cause::NONE, |c| c.last_cause)));
        let cause = self.get(id).and_then(|c| c.hangup).unwrap_or(Cause::NORMAL_CLEARING);
        self.finish_cdr(id);
        self.monitor_end(id);
        self.spy_end(id);
        self.spied_changed(id);
        self.notice_of(id, |channel| Notice::Hangup { channel, cause });
        self.log_end(id);
        self.touch_device(id);
        let Some(slot) = self.channels.get_mut(id.slot as usize).filter(|s| s.generation == id.generation)
        else {
            return;
        };
        let Some(channel) = slot.channel.take() else { return };
        slot.generation = slot.generation.wrapping_add(1);
        self.free.push(id.slot);
        self.alive -= 1;
        if !channel.outgoing || channel.has_pbx {
            self.calls -= 1;
        }
        self.by_name.remove(&channel.name);
        // Whoever still waits for it must learn that it is gone.
        self.woken.extend(channel.waiter);
        if let Some(stream) = channel.stream {
            self.by_stream.remove(&stream);
            self.media(Command::Close { stream });
        }
        for stream in channel.passed.into_iter().flatten() {
            self.media(Command::Close { stream });
        }
    }

    /// Tells watchers, if there are any.
    pub fn notice(&mut self, notice: impl FnOnce(&Self) -> Option<Notice>) {
        if self.watched
            && let Some(notice) = notice(self)
        {
            self.notices.push(notice);
        }
    }
    /// Tells watchers something of one channel.
    pub fn notice_of(&mut self, id: ChannelId, notice: impl FnOnce(Snapshot) -> Notice) {
        self.notice(|core| core.snapshot(id).map(notice));
    }
    fn notice_event(&mut self, id: ChannelId, event: &ChanEvent) {
        match *event {
            ChanEvent::DigitBegin(digit) => {
                self.notice_of(id, |channel| Notice::Dtmf {
                    channel,
                    digit,
                    duration_ms: None,
                    received: true,
                });
            }
            ChanEvent::Digit { digit, duration_ms, .. } => self.notice_of(id, |channel| Notice::Dtmf {
                channel,
                digit,
                duration_ms: Some(duration_ms),
                received: true,
            }),
            ChanEvent::Hold => self.notice_of(id, Notice::Hold),
            ChanEvent::Unhold => self.notice_of(id, Notice::Unhold),
            _ => {}
        }
    }
    /// Writes a log line, if anybody reads its level.
    pub fn log(&mut self, level: Level, place: &str, text: &str) {
        if self.services.log.enabled(level) {
            self.services.log.line_of_call(self.speaking, level, place, text);
        }
    }
    /// Lines that are logged from here on are about the call of this channel; with `None` about none.
    pub(crate) fn speak_of(&mut self, owner: Option<ChannelId>) {
        self.speaking = owner.and_then(|id| self.get(id)).map(|channel| channel.call_number);
    }
    fn touch_device(&mut self, id: ChannelId) {
        let Some(channel) = self.get(id) else { return };
        let device = channel.name.rsplit_once('-').map_or(&*channel.name, |(device, _)| device).to_owned();
        if self.touched_devices.last() != Some(&device) {
            self.touched_devices.push(device);
        }
    }

    /// The next number of a channel's name.
    pub fn next_serial(&mut self) -> u32 {
        let serial = self.name_serial;
        self.name_serial = serial.wrapping_add(1);
        serial
    }
    /// Removes a channel that no story has ever run on; its driver has forgotten it.
    pub fn discard(&mut self, id: ChannelId) {
        self.remove(id);
    }
    /// The next UNIQUEID: `[systemname-]epoch.serial`.
    pub fn next_uniqueid(&mut self, wall_micros: i64) -> String {
        let serial = self.unique_serial;
        self.unique_serial += 1;
        let seconds = wall_micros.div_euclid(1_000_000);
        match self.settings.system_name.as_str() {
            "" => format!("{seconds}.{serial}"),
            system => format!("{system}-{seconds}.{serial}"),
        }
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

    pub(crate) fn bridge_create(&mut self, creator: &'static str) -> BridgeId {
        let slot = self.free_bridges.pop().unwrap_or_else(|| {
            self.bridges.push(Bridge { generation: 0, members: Vec::new(), alive: false, pair: None });
            u32::try_from(self.bridges.len() - 1).unwrap_or(u32::MAX)
        });
        let generation = self.bridges.get_mut(slot as usize).map_or(0, |bridge| {
            (bridge.alive, bridge.pair) = (true, None);
            bridge.generation
        });
        let bridge = BridgeId::new(slot, generation);
        self.notice(|_| Some(Notice::BridgeCreate { bridge, creator }));
        bridge
    }
    pub(crate) fn bridge_enter(&mut self, bridge: BridgeId, id: ChannelId) {
        let Some(entry) = self.bridge_mut(bridge) else { return };
        entry.members.push(id);
        let count = entry.members.len();
        if let Some(channel) = self.get_mut(id) {
            channel.bridge = Some(bridge);
        }
        self.regroup(id);
        self.note_talk(id, false);
        self.advance(id, Advance::Connected);
        self.notice_of(id, |channel| Notice::BridgeEnter { bridge, count, channel });
        self.link_bridge(bridge);
        self.log_bridge(CelKind::BridgeEnter, bridge, id);
    }
    pub(crate) fn bridge_leave(&mut self, bridge: BridgeId, id: ChannelId) {
        let Some(entry) = self.bridge_mut(bridge) else { return };
        let before = entry.members.len();
        entry.members.retain(|member| *member != id);
        let count = entry.members.len();
        if count == before {
            return; // it was taken out before
        }
        if let Some(channel) = self.get_mut(id) {
            channel.bridge = None;
        }
        self.note_talk(id, true);
        self.regroup(id);
        self.notice_of(id, |channel| Notice::BridgeLeave { bridge, count, channel });
        self.log_bridge(CelKind::BridgeExit, bridge, id);
    }
    /// Takes a channel out of a bridge; whoever calls this tells watchers.
    pub(crate) fn forget_member(&mut self, bridge: BridgeId, id: ChannelId) {
        if let Some(entry) = self.bridge_mut(bridge) {
            entry.members.retain(|member| *member != id);
        }
        if let Some(channel) = self.get_mut(id) {
            channel.bridge = None;
        }
        self.regroup(id);
    }
    /// Takes a channel out of its slot for a moment.
    pub(crate) fn take_channel(&mut self, id: ChannelId) -> Option<Box<Channel>> {
        let slot = self.channels.get_mut(id.slot as usize).filter(|slot| slot.generation == id.generation)?;
        slot.channel.take()
    }
    /// Puts it back.
    pub(crate) fn put_channel(&mut self, id: ChannelId, channel: Box<Channel>) {
        if let Some(slot) =
            self.channels.get_mut(id.slot as usize).filter(|slot| slot.generation == id.generation)
        {
            slot.channel = Some(channel);
        }
    }
    /// The channel of this name is that one from here on.
    pub(crate) fn rename(&mut self, name: Rc<str>, id: ChannelId) {
        self.by_name.insert(name, id);
    }
    /// The stream belongs to that channel from here on.
    pub(crate) fn stream_belongs_to(&mut self, stream: StreamId, id: ChannelId) {
        self.by_stream.insert(stream, id);
    }
    /// How many calls this channel counts as.
    pub(crate) fn counted(&self, id: ChannelId) -> usize {
        self.get(id).map_or(0, |channel| usize::from(!channel.outgoing || channel.has_pbx))
    }
    /// Two channels counted as `before` calls and count as `after`.
    pub(crate) fn recount(&mut self, before: usize, after: usize) {
        self.calls = (self.calls + after).saturating_sub(before);
    }
    pub(crate) fn bridge_destroy(&mut self, bridge: BridgeId) {
        if let Some(entry) = self.bridge_mut(bridge) {
            entry.alive = false;
            entry.generation = entry.generation.wrapping_add(1);
            entry.members.clear();
            self.free_bridges.push(bridge.slot);
            self.notice(|_| Some(Notice::BridgeDestroy { bridge }));
        }
    }
    /// Whether digits are waited for in a bridge of two; `None` for any other bridge.
    pub(crate) fn bridge_pair(&self, bridge: BridgeId) -> Option<bool> {
        self.bridges
            .get(bridge.slot as usize)
            .filter(|b| b.alive && b.generation == bridge.generation)
            .and_then(|b| b.pair)
    }
    pub(crate) fn bridge_mut(&mut self, bridge: BridgeId) -> Option<&mut Bridge> {
        self.bridges.get_mut(bridge.slot as usize).filter(|b| b.alive && b.generation == bridge.generation)
    }
    /// Channels in a bridge.
    pub fn bridge_members(&self, bridge: BridgeId) -> &[ChannelId] {
        self.bridges
            .get(bridge.slot as usize)
            .filter(|b| b.alive && b.generation == bridge.generation)
            .map_or(&[], |b| &b.members)
    }
    /// All bridges.
    pub fn bridges(&self) -> impl Iterator<Item = (BridgeId, &[ChannelId])> {
        self.bridges.iter().enumerate().filter(|(_, b)| b.alive).map(|(slot, b)| {
            (BridgeId::new(u32::try_from(slot).unwrap_or(u32::MAX), b.generation), b.members.as_slice())
        })
    }
}
