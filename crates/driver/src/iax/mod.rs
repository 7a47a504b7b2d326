//! `IAX2/…` channels: translates between the machine of crate `iax2` and the call core.
//!
//! It decides who may call and register, where calls go, and what the protocol's events mean for a channel. It knows no
//! socket: datagrams come in through [`IaxDriver::receive`] and leave through [`IaxDriver::send`]. The protocol carries voice
//! itself, so streams have no ports: frames become RTP for a stream of [`call::MediaDoor::open_piped`] and back (`voice`).

mod config;
mod events;
mod hosts;
mod inbound;
mod index;
mod keywork;
mod leg;
mod lookup;
mod outbound;
mod party;
mod peers;
mod proof;
mod registry;
mod show;
mod switch;
mod tech;
mod trace;
mod trial;
mod videos;
mod voice;
mod voices;

use core::net::SocketAddr;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::rc::Rc;

use ::iax2::{Event, Machine, Out};
use base::dns::{Answer, Question};
use base::hash::{Key, Randomness};
use base::{ChannelId, FormatId, Instant, Place, StreamId};
use call::{Core, Location};

pub use config::{
    Access, Common, Config, Host, JITTER_DEFAULT, KeyKind, KeyRow, Keys, Peer, Registration, Transfer, User,
};
pub use keywork::{KeyAnswer, KeyJob, KeySet, KeyWork};
pub use lookup::{Directory, Kind, Learned};
pub use peers::Lease;
pub use show::{
    ChannelRow, HostNumbers, NetstatRow, Netstats, Numbers, PeerRow, PeerState, RegistryRow, RegistryState,
    Stats, UserRow,
};

pub use trace::Trace;
pub use trial::{TRUNK_MTU_DEFAULT, TRUNK_MTU_LEAST, TRUNK_MTU_MOST};

use hosts::Hosts;
use inbound::Unnumbered;
use leg::Leg;
use peers::Live;
use proof::Doorkeeper;
use registry::Ours;

/// A leg of one socket's machine.
type At = (u32, Place);

/// One socket's machine.
struct Socket {
    local: SocketAddr,
    machine: Machine,
    out: Out,
    received: u64,
    sent: u64,
}

/// The driver. One per shard.
pub struct IaxDriver {
    config: Rc<Config>,
    random: Randomness,
    /// What decides how names are challenged that nobody has.
    names_key: Key,
    /// By the number that the shell knows a socket by.
    sockets: Vec<Option<Socket>>,
    legs: BTreeMap<u64, Leg>,
    /// Legs that may wait for the DNS: looked through in every turn, so never all of them.
    unnamed: BTreeSet<u64>,
    next_leg: u64,
    by_place: HashMap<At, u64>,
    voices: voices::Voices,
    videos: videos::Videos,
    door: Doorkeeper,
    keywork: keywork::Keywork,
    /// Calls that are accepted and have no number yet.
    unnumbered: HashMap<At, Unnumbered>,
    peers: HashMap<Rc<str>, Live>,
    index: index::Index,
    expiries: BTreeSet<(Instant, Rc<str>)>,
    watched: HashMap<At, Rc<str>>,
    ours: Vec<Ours>,
    changes: Vec<Lease>,
    hosts: Hosts,
    /// When names of registrars and of watched peers are looked up again.
    names_at: Option<Instant>,
    lookups: lookup::Lookups,
    switches: switch::Switches,
    started: Vec<(ChannelId, Location)>,
    tech_index: usize,
    /// Where a packet is made.
    packet: Vec<u8>,
    told: trace::Told,
    trial: trial::Trial,
}

impl IaxDriver {
    /// A driver without sockets. `seed` is secret randomness.
    pub fn new(seed: u128) -> Self {
        let mut random = Randomness::new(Key::new(seed));
        Self {
            config: Rc::new(Config::default()),
            names_key: Key::new(random.next_wide()),
            random,
            sockets: Vec::new(),
            legs: BTreeMap::new(),
            unnamed: BTreeSet::new(),
            next_leg: 1,
            by_place: HashMap::new(),
            voices: voices::Voices::default(),
            videos: videos::Videos::default(),
            door: Doorkeeper::default(),
            keywork: keywork::Keywork::default(),
            unnumbered: HashMap::new(),
            peers: HashMap::new(),
            index: index::Index::default(),
            expiries: BTreeSet::new(),
            watched: HashMap::new(),
            ours: Vec::new(),
            changes: Vec::new(),
            hosts: Hosts::default(),
            names_at: None,
            lookups: lookup::Lookups::default(),
            switches: switch::Switches::default(),
            started: Vec::new(),
            tech_index: 0,
            packet: Vec::new(),
            told: trace::Told::default(),
            trial: trial::Trial::default(),
        }
    }
    /// The index that [`Shard::add_tech`](call::Shard::add_tech) gave this driver.
    pub fn set_tech_index(&mut self, index: usize) {
        self.tech_index = index;
    }
    /// The configuration in force.
    pub fn config(&self) -> &Rc<Config> {
        &self.config
    }
    /// A socket was opened: its number, and where it listens. Numbers are small, and free again after
    /// [`close`](Self::close).
    pub fn open(&mut self, socket: u32, local: SocketAddr, now: Instant) {
        let at = socket as usize;
        while self.sockets.len() <= at {
            self.sockets.push(None);
        }
        let machine = Machine::new(now, self.random.next_wide(), self.config.machine());
        if let Some(place) = self.sockets.get_mut(at) {
            *place = Some(Socket { local, machine, out: Out::default(), received: 0, sent: 0 });
        }
    }
    /// A socket was closed: its calls are over.
    pub fn close(&mut self, core: &mut Core, socket: u32) {
        if let Some(place) = self.sockets.get_mut(socket as usize) {
            *place = None;
        }
        let gone: Vec<At> = self.by_place.keys().copied().filter(|(of, _)| *of == socket).collect();
        for at in gone {
            self.ended(core, at, base::Cause::NORMAL_TEMPORARY_FAILURE, b"the socket was closed");
        }
        self.door.forget_socket(socket);
        self.keywork.forget_socket(socket);
        self.forget_switches_of(core, socket);
        self.unnumbered.retain(|(of, _), _| *of != socket);
        self.forget_parked_of(socket);
        self.sockets_changed(socket);
    }
    /// Takes a new configuration, once the sockets are as it says. Calls and registrations go on; peers that are gone lose
    /// theirs.
    pub fn configure(&mut self, core: &mut Core, config: Config) {
        let registered = self.peers.values().filter_map(Live::address);
        self.index = index::Index::of(&config, registered);
        self.config = Rc::new(config);
        let settings = self.config.machine();
        for socket in self.sockets.iter_mut().flatten() {
            socket.machine.configure(settings.clone());
        }
        self.configure_peers(core);
        self.configure_registry(core);
        self.plan_names(core.now);
        self.settle(core);
    }
    /// Takes in a datagram. False: all that came of it are datagrams to send, deadlines, and media that are on their way, so
    /// that nothing in the core or beyond has to follow.
    pub fn receive(&mut self, core: &mut Core, socket: u32, from: SocketAddr, bytes: &[u8]) -> bool {
        if self.throws_away() {
            return false;
        }
        self.note_received(core, from, bytes);
        let Some(Some(to)) = self.sockets.get_mut(socket as usize) else { return true };
        to.received += 1;
        to.machine.on_datagram(core.now, from, bytes, &mut to.out);
        let is_more = |event: &Event| !matches!(event, Event::Voice { .. } | Event::Video { .. });
        let has_followed = self.told.is_any() || to.out.events.iter().any(is_more);
        self.settle(core);
        has_followed
    }
    /// Takes in what streams of our legs send, in order. What lies in memory for the packets is asked for together, one step
    /// after the other, so that waits for it overlap: few at once, and none of it is gone again when its turn comes.
    pub fn media(&mut self, now: Instant, packets: &[(StreamId, &[u8])]) {
        packets.iter().for_each(|(stream, _)| self.voices.fetch(*stream));
        for fetch in [Machine::fetch_leg, Machine::fetch_voice] {
            for (stream, _) in packets {
                if let Some(((socket, place), _)) = self.voices.of_stream(*stream)
                    && let Some(Some(socket)) = self.sockets.get(socket as usize)
                {
                    fetch(&socket.machine, place);
                }
            }
        }
        packets.iter().for_each(|(stream, packet)| self.said(now, *stream, packet));
    }
    fn said(&mut self, now: Instant, stream: StreamId, packet: &[u8]) {
        let Some(((socket, place), voice)) = self.voices.of_stream(stream) else {
            return self.show(now, stream, packet);
        };
        let Some((format, millis, payload)) = voice.frame(packet) else { return };
        if let Some(Some(socket)) = self.sockets.get_mut(socket as usize) {
            // Voice that cannot leave is lost, as on any network.
            let _ = socket.machine.voice(now, place, format, millis, payload, &mut socket.out);
        }
    }
    /// Wakes what is due.
    pub fn due(&mut self, core: &mut Core) {
        for socket in self.sockets.iter_mut().flatten() {
            if socket.machine.next_timer().is_some_and(|at| at <= core.now) {
                socket.machine.on_timer(core.now, &mut socket.out);
            }
        }
        self.settle(core);
        self.door_due(core.now);
        self.switches_due(core);
        self.expire(core);
        self.give_up_names(core);
        self.names_due(core.now);
        self.tell_jitter(core);
        self.settle(core);
    }
    /// When [`due`](Self::due) next wants to be called.
    pub fn deadline(&self) -> Option<Instant> {
        let machines = self.sockets.iter().flatten().filter_map(|socket| socket.machine.next_timer());
        let asked = self.door.deadline();
        let lease = self.expiries.first().map(|(at, _)| *at);
        let names = self.names_deadline().into_iter().chain(self.names_at);
        let told = self.told.deadline();
        machines.chain(asked).chain(lease).chain(self.switches.deadline()).chain(names).chain(told).min()
    }
    /// Hands out the datagrams to send, in order: from which socket, where to, and the line of the log where frames are told.
    pub fn send(&mut self, mut each: impl FnMut(u32, SocketAddr, &[u8], Option<String>)) {
        let trace = self.told;
        for (number, socket) in (0..).zip(&mut self.sockets) {
            let Some(socket) = socket else { continue };
            for (to, bytes) in socket.out.datagrams() {
                socket.sent += 1;
                each(number, to, bytes, trace.sent_line(to, bytes));
            }
            socket.out.clear();
        }
    }
    /// Channels whose dialplan is to be started, and where.
    pub fn take_started(&mut self) -> Vec<(ChannelId, Location)> {
        std::mem::take(&mut self.started)
    }
    /// What the shell is to ask the DNS; it answers each with [`IaxDriver::resolved`].
    pub fn take_lookups(&mut self) -> Vec<Question> {
        self.hosts.take_wanted()
    }
    /// What the DNS says. What waited for it goes on.
    pub fn resolved(&mut self, core: &mut Core, question: &Question, answer: &Answer) {
        if self.hosts.learn(question, answer, &mut self.random, core.now) {
            self.calls_resolved(core);
            self.switches_resolved(core);
            self.configure_peers(core);
            self.configure_registry(core);
            self.settle(core);
        }
    }
    /// Calls that are under way, for a stop that waits for them.
    pub fn legs(&self) -> usize {
        self.sockets.iter().flatten().map(|socket| socket.machine.counts().legs).sum()
    }

    /// Carries out what the machines have said.
    fn settle(&mut self, core: &mut Core) {
        loop {
            let mut quiet = true;
            for number in 0..self.sockets.len() {
                let Some(Some(socket)) = self.sockets.get_mut(number) else { continue };
                if socket.out.events.is_empty() {
                    continue;
                }
                quiet = false;
                let mut events = std::mem::take(&mut socket.out.events);
                let socket = u32::try_from(number).unwrap_or(u32::MAX);
                for event in &events {
                    if let Event::Voice { leg, .. } = event {
                        self.voices.fetch_leg((socket, *leg));
                    }
                }
                for event in events.drain(..) {
                    self.happened(core, socket, event);
                }
                // The memory serves the next turn, unless events were added meanwhile.
                if let Some(Some(socket)) = self.sockets.get_mut(number)
                    && socket.out.events.is_empty()
                {
                    socket.out.forget_events();
                    socket.out.events = events;
                }
            }
            if quiet {
                return;
            }
        }
    }
    /// Runs an order of a socket's machine.
    fn order<T>(&mut self, socket: u32, order: impl FnOnce(&mut Machine, &mut Out) -> T) -> Option<T> {
        let Some(Some(socket)) = self.sockets.get_mut(socket as usize) else { return None };
        Some(order(&mut socket.machine, &mut socket.out))
    }
    /// The socket by which an address is reached: the first of its family.
    fn socket_to(&self, address: SocketAddr) -> Option<u32> {
        let mut sockets = (0..).zip(&self.sockets).filter_map(|(at, socket)| Some((at, socket.as_ref()?)));
        let found = sockets.find(|(_, socket)| socket.local.is_ipv4() == address.is_ipv4());
        found.map(|(at, _)| at)
    }
    /// The same for somebody who may have a source of its own (`sourceaddress`): the socket that listens there, if there is
    /// one.
    fn socket_for(&self, address: SocketAddr, common: &Common) -> Option<u32> {
        let own = common.source.and_then(|source| {
            let fits = |local: SocketAddr| {
                local.ip() == source.ip() && (source.port() == 0 || local.port() == source.port())
            };
            let mut sockets =
                (0..).zip(&self.sockets).filter_map(|(at, socket)| Some((at, socket.as_ref()?)));
            sockets.find(|(_, socket)| fits(socket.local)).map(|(at, _)| at)
        });
        own.or_else(|| self.socket_to(address))
    }
    /// A leg of a machine is nobody's from here on, and has no voice and no video; whose it was.
    fn unplace(&mut self, at: At) -> Option<u64> {
        self.voices.remove(at);
        self.videos.remove(at);
        self.by_place.remove(&at)
    }
    fn leg_at(&mut self, at: At) -> Option<&mut Leg> {
        self.by_place.get(&at).and_then(|handle| self.legs.get_mut(handle))
    }
    fn leg_of(&mut self, core: &Core, channel: ChannelId) -> Option<&mut Leg> {
        let handle = core.get(channel).filter(|entry| entry.tech == self.tech_index)?.handle;
        self.legs.get_mut(&handle).filter(|leg| leg.channel == channel)
    }
    /// Voice of the other side goes to its stream.
    fn heard(
        &mut self,
        core: &mut Core,
        at: At,
        format: FormatId,
        timestamp: u32,
        payload: &core::ops::Range<usize>,
    ) {
        let Some(voice) = self.voices.of_leg(at) else { return };
        let Some(Some(socket)) = self.sockets.get(at.0 as usize) else { return };
        if voice.packet(format, timestamp, socket.out.payload(payload), &mut self.packet) {
            core.services.media.feed(voice.stream, &self.packet);
        }
    }
}

/// The time of day in UTC, as the protocol says it (RFC 5456 §8.6.28).
fn datetime(core: &Core) -> u32 {
    let at = dialplan::Civil::at(core.services.wall.now_micros().div_euclid(1_000_000), 0);
    ::iax2::frame::packed_time(at.year, at.month, at.day, at.hour, at.minute, at.second)
}

/// Text from the wire.
fn text(bytes: Option<&[u8]>) -> String {
    String::from_utf8_lossy(bytes.unwrap_or_default()).into_owned()
}
