//! The signalling shard's handle on the media plane: opens streams, passes commands on, hands events out.
#![forbid(unsafe_code)]

use std::collections::{BTreeSet, VecDeque};
use std::io;
use std::net::IpAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering, fence};
use std::thread::JoinHandle;
use std::time::Duration;

use base::{Command, Event, Plan, StreamId};
use codec::Coders;
use media::{Config, Input, Lanes, Moving, Noted, PACKET_BYTES_MAX, STREAMS_MAX, Tracing};
use rtrb::{Consumer, Producer, PushError, RingBuffer};

use super::backend::{Io, Leg, MediaIo, Pipe};
use super::load::{LoadCell, MediaLoads};
use super::pipe::{Inlet, Outlet, pipe};
use super::ports::{NoPort, PortPool, PortRange};
use super::rooms::{Rooms, Stay};
use super::sys;
use super::thread::{Ends, FromWorker, Manner, Prepared, ToWorker};
use crate::clock::Clock;
use crate::wake::Wake;

/// Messages that a ring holds each way; a burst of calls in one millisecond, and then some.
pub(crate) const RING: usize = 4096;
/// Seconds between NTP's epoch (1900) and Unix's (1970).
const NTP_UNIX: u64 = 2_208_988_800;

/// How the media plane is set up.
pub struct MediaSettings {
    /// Ports for media.
    pub ports: PortRange,
    /// How packets are moved, and by how many workers.
    pub io: Io,
    /// Ask for real-time priority and pin the workers.
    pub real_time: bool,
    /// Milliseconds of every tick; `None` lets the load decide.
    pub tick_ms: Option<u8>,
    /// How streams are coded side by side.
    pub lanes: Lanes,
    /// Unpredictable numbers for port choice: two 32-bit draws of a cryptographic generator.
    pub random: Box<dyn FnMut() -> u64 + Send>,
}

impl core::fmt::Debug for MediaSettings {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "MediaSettings({:?}, {:?})", self.ports, self.io)
    }
}

/// Something an administrator ought to know and can mend; the media plane runs all the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Warning(pub String);

/// Why the media plane could not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// No port in the range.
    #[error("rtpstart={first} and rtpend={last} leave no pair of an even and an odd port")]
    NoPorts {
        /// `rtpstart`.
        first: u16,
        /// `rtpend`.
        last: u16,
    },
    /// A descriptor or a thread was refused.
    #[error("the media workers cannot start: {0}")]
    System(#[from] io::Error),
}

impl StartError {
    /// What to do about it.
    pub const fn remedy(&self) -> &'static str {
        match self {
            Self::NoPorts { .. } => "widen rtpstart and rtpend in rtp.conf",
            Self::System(_) => "raise the limits on open files and threads (ulimit -n, ulimit -u)",
        }
    }
}

/// Why a stream could not be opened. The call is refused; nothing is left behind.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Every pair of ports is in use.
    #[error(
        "no free RTP port between {first} and {last}: {leased} pairs are ours, {foreign} are held by other programs"
    )]
    NoPort {
        /// `rtpstart`.
        first: u16,
        /// `rtpend`.
        last: u16,
        /// Pairs leased.
        leased: u32,
        /// Pairs that other programs hold.
        foreign: u16,
    },
    /// The address cannot be bound.
    #[error("cannot bind an RTP port on {ip}: {error}")]
    Bind {
        /// The local address that was asked for.
        ip: IpAddr,
        /// What the kernel said.
        error: io::Error,
    },
    /// Too many streams.
    #[error("{0} media streams are open, which is all there can be")]
    Full(u32),
}

impl OpenError {
    /// What to do about it.
    pub fn remedy(&self) -> &'static str {
        match self {
            Self::NoPort { .. } => "widen rtpstart and rtpend in rtp.conf",
            Self::Bind { error, .. } if crate::net::is_out_of_descriptors(error) => {
                "raise the limit on open files (ulimit -n, LimitNOFILE= of the systemd unit)"
            }
            Self::Bind { .. } => "check the addresses of this host and media_address",
            Self::Full(_) => "lower maxcalls in asterisk.conf",
        }
    }
}

struct WorkerHandle {
    inputs: Producer<ToWorker>,
    outputs: Consumer<FromWorker>,
    /// Sent as soon as the ring has room, in order.
    waiting: VecDeque<ToWorker>,
    bell: Wake,
    /// The worker has no tick ahead of it: without the bell it would sleep on.
    asleep: Arc<AtomicBool>,
    /// Packets of streams without ports.
    to_piped: Inlet,
    from_piped: Outlet,
    thread: Option<JoinHandle<()>>,
}

/// What the front knows of one slot.
#[derive(Debug, Default)]
struct Place {
    generation: u32,
    open: bool,
    /// Where the stream lives, or where it is going.
    worker: usize,
    moving: bool,
    bridge: Option<StreamId>,
    tie: Option<StreamId>,
    stay: Option<Box<Stay>>,
}

/// The signalling shard's end of the media plane. Dropping it closes every stream and ends the workers.
pub struct MediaFront {
    pool: Arc<PortPool>,
    random: Box<dyn FnMut() -> u64 + Send>,
    workers: Vec<WorkerHandle>,
    wake: Wake,
    places: Vec<Place>,
    rooms: Rooms,
    /// Free slots, longest free first: an id comes back as late as it can.
    free: VecDeque<u32>,
    open: u32,
    /// Commands for streams that are on their way between workers, in order.
    held: VecDeque<Command>,
    inputs_delayed: u64,
    loads: MediaLoads,
    tracing: Tracing,
    traced: Noted,
    lanes: Lanes,
    /// Last: the programs are detached when no worker is left.
    io: Io,
}

/// Packets of the trace that wait for whoever writes them down; the rest is counted.
const TRACED_MAX: usize = 4096;

impl MediaFront {
    /// Starts the workers. Warnings say what was refused and how to allow it.
    pub fn start(settings: MediaSettings) -> Result<(Self, Vec<Warning>), StartError> {
        let MediaSettings { ports, mut io, real_time, tick_ms, lanes, random } = settings;
        if ports.pairs() == 0 {
            return Err(StartError::NoPorts { first: ports.first, last: ports.last });
        }
        let processors = sys::allowed_processors();
        let count = io.workers();
        let wake = Wake::new()?;
        let config = Config { ntp_at_zero: ntp_at_zero(), lanes };
        let mut handles = Vec::with_capacity(count);
        let mut cells = Vec::with_capacity(count);
        let mut warnings = BTreeSet::new();
        for number in 0..count {
            // From the last processor down: the first ones serve interrupts and the signalling shard.
            let processor = processors.iter().rev().nth(number).copied().filter(|_| processors.len() > count);
            let cell = Arc::new(LoadCell::default());
            let (handle, refused) = start_worker(
                number,
                io.take_worker(number)?,
                cell.clone(),
                &wake,
                Manner { config, tick_ms },
                processor.filter(|_| real_time),
                real_time,
            )?;
            warnings.extend(refused);
            handles.push(handle);
            cells.push(cell);
        }
        let front = Self {
            pool: PortPool::new(ports),
            random,
            workers: handles,
            wake,
            places: Vec::new(),
            rooms: Rooms::default(),
            free: VecDeque::new(),
            open: 0,
            held: VecDeque::new(),
            inputs_delayed: 0,
            loads: MediaLoads(cells.into()),
            tracing: Tracing::default(),
            traced: Noted::default(),
            lanes,
            io,
        };
        Ok((front, warnings.into_iter().map(Warning).collect()))
    }
    /// How packets are moved, and why so.
    pub const fn io(&self) -> &Io {
        &self.io
    }
    /// How streams are coded side by side.
    pub const fn lanes(&self) -> Lanes {
        self.lanes
    }
    /// Opens a stream with ports of its own on `ip`; returns its id and the RTP port to advertise (RTCP is one above).
    pub fn open(&mut self, ip: IpAddr, plan: Plan) -> Result<(StreamId, u16), OpenError> {
        let slot = self.free_slot()?;
        let random = (self.random)();
        // SDP promises the odd port unless RTCP shares the even one (RFC 5761).
        let shared = plan.remote_rtcp.is_some() && plan.remote_rtcp == plan.remote;
        let leased = match self.pool.lease(ip, random) {
            Ok(leased) => leased,
            Err(why) => {
                self.free.push_front(slot);
                return Err(self.explain(ip, why));
            }
        };
        let port = leased.0.port();
        let worker = usize::from(port / 2) % self.workers.len();
        let wants_rtcp = plan.rtcp_interval_ms > 0 && !shared;
        let leg = self.io.leg((worker, slot), ip, leased, wants_rtcp, plan.marking);
        let stream = self.occupy(slot, worker);
        self.push(worker, ToWorker::Input(Input::Open { stream, leg, plan: Box::new(plan) }));
        Ok((stream, port))
    }
    /// Opens a stream without a socket, to be tied to another one.
    pub fn open_internal(&mut self, plan: Plan) -> Result<StreamId, OpenError> {
        let slot = self.free_slot()?;
        let worker = slot as usize % self.workers.len();
        let stream = self.occupy(slot, worker);
        self.push(worker, ToWorker::Input(Input::OpenInternal { stream, plan: Box::new(plan) }));
        Ok(stream)
    }
    /// Opens a stream without ports, whose packets come by [`Self::feed`] and leave by [`Self::drain_piped`]: RTP, from and
    /// to [`PIPE`](base::PIPE). RTCP has no way there.
    pub fn open_piped(&mut self, plan: Plan) -> Result<StreamId, OpenError> {
        let slot = self.free_slot()?;
        let worker = slot as usize % self.workers.len();
        let stream = self.occupy(slot, worker);
        let leg = Leg::Piped(stream);
        self.push(worker, ToWorker::Input(Input::Open { stream, leg, plan: Box::new(plan) }));
        Ok(stream)
    }
    /// Hands a packet to a stream without ports; false when it is lost, because the stream is gone or on its way between two
    /// workers, or the worker is behind. The worker looks for it at its next tick.
    pub fn feed(&mut self, stream: StreamId, packet: &[u8]) -> bool {
        let Some(worker) = self.place(stream).filter(|place| !place.moving).map(|place| place.worker) else {
            return false;
        };
        self.workers.get_mut(worker).is_some_and(|worker| worker.to_piped.put(stream, packet))
    }
    /// Hands out what streams without ports have sent, in order of each worker, some packets at a time.
    pub fn drain_piped(&mut self, mut each: impl FnMut(&[(StreamId, &[u8])])) {
        let mut packet = [0; PACKET_BYTES_MAX];
        for worker in &mut self.workers {
            worker.from_piped.each(&mut packet, &mut each);
        }
    }
    /// Passes a command on; one for a stream that is gone is ignored.
    pub fn command(&mut self, command: Command) {
        if self.held.is_empty() {
            self.route(command);
        } else {
            self.held.push_back(command);
            self.retry_held();
        }
    }
    /// Makes a stream's next visit panic: fault injection for tests of the whole.
    #[doc(hidden)]
    pub fn inject_panic(&mut self, stream: StreamId) {
        if let Some(worker) = self.place(stream).map(|place| place.worker) {
            self.push(worker, ToWorker::Input(Input::Poison(stream)));
        }
    }
    /// Makes the next group in which a stream is coded panic, in the same way.
    #[doc(hidden)]
    pub fn inject_group_panic(&mut self, stream: StreamId) {
        if let Some(worker) = self.place(stream).map(|place| place.worker) {
            self.push(worker, ToWorker::Input(Input::PoisonGroup(stream)));
        }
    }
    /// Makes a stream's next round in the mix of its room panic, in the same way.
    #[doc(hidden)]
    pub fn inject_member_panic(&mut self, stream: StreamId) {
        if let Some(worker) = self.place(stream).map(|place| place.worker) {
            self.push(worker, ToWorker::Input(Input::PoisonMember(stream)));
        }
    }
    /// How streams are coded from here on, on every worker.
    pub fn set_coders(&mut self, coders: &Arc<Coders>) {
        for worker in 0..self.workers.len() {
            self.push(worker, ToWorker::Input(Input::Coders(coders.clone())));
        }
    }
    /// Hands out everything that the workers have told, in order of each worker.
    pub fn drain_events(&mut self, mut each: impl FnMut(Event)) {
        self.wake.answer();
        for number in 0..self.workers.len() {
            while let Some(message) = self.workers.get_mut(number).and_then(|w| w.outputs.pop().ok()) {
                match message {
                    FromWorker::Event(event) => {
                        if let Event::Closed { stream, .. } = event {
                            self.vacate(stream);
                        }
                        each(event);
                    }
                    FromWorker::Released(stream, moving) => self.arrived(stream, moving),
                    FromWorker::Traced(noted) => self.keep_trace(*noted),
                }
            }
            self.flush(number);
        }
    }
    /// Traces packets, on every worker; [`Self::take_trace`] gives them.
    pub fn trace(&mut self, tracing: Tracing) {
        self.tracing = tracing;
        for worker in 0..self.workers.len() {
            self.push(worker, ToWorker::Input(Input::Trace(tracing)));
        }
    }
    /// What is traced.
    pub fn tracing(&self) -> Tracing {
        self.tracing
    }
    /// Packets that [`Self::drain_events`] has brought, in order of each worker; `None` when there are none.
    pub fn take_trace(&mut self) -> Option<Noted> {
        let any = !self.traced.packets.is_empty() || self.traced.missed > 0;
        any.then(|| core::mem::take(&mut self.traced))
    }
    fn keep_trace(&mut self, noted: Noted) {
        let room = TRACED_MAX.saturating_sub(self.traced.packets.len());
        self.traced.missed += noted.missed + noted.packets.len().saturating_sub(room) as u64;
        self.traced.packets.extend(noted.packets.into_iter().take(room));
    }
    /// Readable when [`Self::drain_events`] has something that should not wait; register it edge-triggered.
    ///
    /// That a stream has closed as it was told, or sent a report, is no news and wakes nobody: drain whenever the loop turns.
    pub fn wake_fd(&self) -> BorrowedFd<'_> {
        self.wake.as_fd()
    }
    /// The workers' counters, for metrics and the console.
    pub fn loads(&self) -> MediaLoads {
        self.loads.clone()
    }
    /// Takes the ports of streams to come from another range. Streams that are open keep theirs.
    pub fn set_ports(&mut self, range: PortRange) {
        if self.pool.range() != range {
            self.pool = PortPool::new(range);
        }
    }
    /// The port pool, for the console.
    pub fn ports(&self) -> &PortPool {
        &self.pool
    }
    /// Streams open, with and without sockets.
    pub fn streams(&self) -> u32 {
        self.open
    }
    /// Inputs that had to wait because a worker's ring was full.
    pub fn inputs_delayed(&self) -> u64 {
        self.inputs_delayed
    }

    fn explain(&self, ip: IpAddr, why: NoPort) -> OpenError {
        match why {
            NoPort::Exhausted { foreign } => {
                let PortRange { first, last } = self.pool.range();
                OpenError::NoPort { first, last, leased: self.pool.leased(), foreign }
            }
            NoPort::Bind(error) => OpenError::Bind { ip, error },
        }
    }
    fn place(&self, id: StreamId) -> Option<&Place> {
        self.places.get(id.slot as usize).filter(|place| place.open && place.generation == id.generation)
    }
    fn place_mut(&mut self, id: StreamId) -> Option<&mut Place> {
        self.places.get_mut(id.slot as usize).filter(|place| place.open && place.generation == id.generation)
    }
    fn free_slot(&mut self) -> Result<u32, OpenError> {
        if let Some(slot) = self.free.pop_front() {
            return Ok(slot);
        }
        let slot = u32::try_from(self.places.len()).unwrap_or(u32::MAX);
        if slot >= STREAMS_MAX {
            return Err(OpenError::Full(self.open));
        }
        self.places.push(Place::default());
        Ok(slot)
    }
    fn occupy(&mut self, slot: u32, worker: usize) -> StreamId {
        self.open += 1;
        let Some(place) = self.places.get_mut(slot as usize) else { return StreamId::new(slot, 0) };
        let generation = place.generation.wrapping_add(1);
        *place = Place { generation, open: true, worker, ..Place::default() };
        StreamId::new(slot, generation)
    }
    fn vacate(&mut self, id: StreamId) {
        self.part(id);
        let Some(place) = self.place_mut(id) else { return };
        place.open = false;
        let tie = place.tie.take();
        self.open -= 1;
        self.free.push_back(id.slot);
        if let Some(partner) = tie.and_then(|partner| self.place_mut(partner)) {
            partner.tie = None;
        }
    }
    fn part(&mut self, id: StreamId) {
        if let Some(stay) = self.place_mut(id).and_then(|place| place.stay.take()) {
            self.rooms.leave(stay.room, id);
        }
        let Some(peer) = self.place_mut(id).and_then(|place| place.bridge.take()) else { return };
        if let Some(place) = self.place_mut(peer) {
            place.bridge = None;
        }
    }

    fn push(&mut self, worker: usize, message: ToWorker) {
        if let Some(handle) = self.workers.get_mut(worker) {
            if handle.waiting.is_empty() {
                if let Err(PushError::Full(message)) = handle.inputs.push(message) {
                    handle.waiting.push_back(message);
                    self.inputs_delayed += 1;
                }
            } else {
                handle.waiting.push_back(message);
                self.inputs_delayed += 1;
            }
            // A worker that ticks looks into its ring within milliseconds anyway, and acts only at ticks. The fence pairs
            // with the one before it falls asleep: either it sees the message or we see it asleep.
            fence(Ordering::SeqCst);
            if handle.asleep.load(Ordering::Relaxed) {
                handle.bell.ring();
            }
        }
        self.flush(worker);
    }
    fn flush(&mut self, worker: usize) {
        let Some(handle) = self.workers.get_mut(worker) else { return };
        while let Some(message) = handle.waiting.pop_front() {
            if let Err(PushError::Full(message)) = handle.inputs.push(message) {
                handle.waiting.push_front(message);
                // A worker that has emptied much of its ring wakes the shard, which brings us back here.
                handle.bell.ring();
                break;
            }
        }
    }

    /// Sends a command to where its streams live, or holds it while one of them is between two workers.
    fn route(&mut self, command: Command) {
        let Some((a, mut b)) = streams_of(&command, &self.rooms) else { return };
        if matches!(command, Command::Enter { .. }) && b == Some(a) {
            b = None; // it is there already
        }
        if [Some(a), b].into_iter().flatten().any(|id| self.place(id).is_some_and(|place| place.moving)) {
            self.held.push_back(command);
            return;
        }
        let Some(worker) = self.place(a).map(|place| place.worker) else { return };
        if let Command::Enter { room, .. } = command {
            // Nor does entering a room.
            let leaves =
                |place: &Place| place.bridge.is_some() || place.stay.as_ref().is_some_and(|s| s.room != room);
            if self.place(a).is_some_and(leaves) {
                self.route(Command::Part { stream: a });
            }
        }
        if let Some(b) = b {
            let Some(other) = self.place(b).map(|place| place.worker) else { return };
            if matches!(command, Command::Join { .. }) {
                // Joining replaces earlier joins, so they do not drag their peers along.
                for (one, peer) in [(a, b), (b, a)] {
                    let leaves =
                        |place: &Place| place.bridge.is_some_and(|now| now != peer) || place.stay.is_some();
                    if self.place(one).is_some_and(leaves) {
                        self.route(Command::Part { stream: one });
                    }
                }
            }
            if worker != other {
                // Who enters a room goes where it is, not the room to it.
                let (moves, to) =
                    if matches!(command, Command::Enter { .. }) { (a, other) } else { (b, worker) };
                self.held.push_back(command);
                self.move_group(moves, to);
                return;
            }
        }
        match command {
            Command::Join { a, b } => {
                if let Some(place) = self.place_mut(a) {
                    place.bridge = Some(b);
                }
                if let Some(place) = self.place_mut(b) {
                    place.bridge = Some(a);
                }
            }
            Command::Tie { a, b } => {
                if let Some(place) = self.place_mut(a) {
                    place.tie = Some(b);
                }
                if let Some(place) = self.place_mut(b) {
                    place.tie = Some(a);
                }
            }
            Command::Part { stream } => self.part(stream),
            Command::Enter { stream, room, mixing, member } => {
                self.rooms.enter(room, stream);
                if let Some(place) = self.place_mut(stream) {
                    place.stay = Some(Box::new(Stay { room, mixing, member }));
                }
            }
            Command::Adjust { stream, member } => {
                if let Some(stay) = self.place_mut(stream).and_then(|place| place.stay.as_mut()) {
                    stay.member = member;
                }
            }
            _ => {} // the others change nothing that decides where a stream lives
        }
        self.push(worker, ToWorker::Input(Input::Command(command)));
    }
    /// Moves a stream and all that hang on it by bridge, tie or room.
    fn move_group(&mut self, id: StreamId, to: usize) {
        let mut group = vec![id];
        let mut next = 0;
        while let Some(&member) = group.get(next) {
            next += 1;
            let links = self.place(member).map_or([None; 2], |place| [place.bridge, place.tie]);
            let room = self.place(member).and_then(|place| place.stay.as_ref()).map(|stay| stay.room);
            let room: Vec<_> = room.map_or(&[][..], |room| self.rooms.members(room)).to_vec();
            let links = links.into_iter().flatten().chain(room);
            group.extend(links.filter(|link| !group.contains(link)).collect::<Vec<_>>());
        }
        for member in group {
            let Some(place) = self.place_mut(member) else { continue };
            if place.worker == to || place.moving {
                continue;
            }
            let from = core::mem::replace(&mut place.worker, to);
            place.moving = true;
            self.push(from, ToWorker::Release(member));
        }
    }
    /// A stream came off its old worker.
    fn arrived(&mut self, id: StreamId, moving: Option<Box<Moving<Leg>>>) {
        if let Some(place) = self.place_mut(id) {
            place.moving = false;
            let (worker, stay) = (place.worker, place.stay.as_deref().copied());
            if let Some(moving) = moving {
                self.push(worker, ToWorker::Input(Input::Adopt(*moving)));
                if let Some(stay) = stay {
                    self.push(worker, ToWorker::Input(Input::Command(stay.enter(id))));
                }
            }
        }
        self.retry_held();
    }
    /// Tries the held commands again. One that must wait holds back later ones for the same streams.
    fn retry_held(&mut self) {
        let mut blocked = BTreeSet::new();
        for command in core::mem::take(&mut self.held) {
            let Some((a, b)) = streams_of(&command, &self.rooms) else { continue };
            let ids = [Some(a), b];
            if ids.into_iter().flatten().any(|id| blocked.contains(&id)) {
                blocked.extend(ids.into_iter().flatten());
                self.held.push_back(command);
                continue;
            }
            let before = self.held.len();
            self.route(command);
            if self.held.len() > before {
                blocked.extend(ids.into_iter().flatten());
            }
        }
    }
}

impl Drop for MediaFront {
    fn drop(&mut self) {
        for handle in &mut self.workers {
            // Whoever has not read its ring for so long is told to stop by the ring's end; here there is room or the
            // thread makes some.
            let mut message = ToWorker::Stop;
            while let Err(PushError::Full(back)) = handle.inputs.push(message) {
                message = back;
                handle.bell.ring();
                if handle.thread.as_ref().is_none_or(JoinHandle::is_finished) {
                    break;
                }
                std::thread::sleep(Duration::from_millis(1));
            }
            handle.bell.ring();
        }
        for handle in &mut self.workers {
            if let Some(thread) = handle.thread.take() {
                // A panic of the thread itself has been reported by the panic hook.
                let _ = thread.join();
            }
        }
    }
}

impl core::fmt::Debug for MediaFront {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "MediaFront({} workers, {} streams)", self.workers.len(), self.open)
    }
}

/// The one or two streams that a command is for; `None` when it is for a room that nobody is in.
fn streams_of(command: &Command, rooms: &Rooms) -> Option<(StreamId, Option<StreamId>)> {
    Some(match *command {
        Command::Announce { room, .. }
        | Command::RecordRoom { room, .. }
        | Command::StopRecordRoom { room } => (rooms.resident(room)?, None),
        Command::Enter { stream, room, .. } => (stream, rooms.resident(room)),
        Command::Tie { a, b } | Command::Join { a, b } => (a, Some(b)),
        Command::Show { stream, source } => (stream, source),
        Command::Plan { stream, .. }
        | Command::AskPicture { stream }
        | Command::Close { stream }
        | Command::Play { stream, .. }
        | Command::Music { stream, .. }
        | Command::Live { stream, .. }
        | Command::StopPlay { stream }
        | Command::Echo { stream, .. }
        | Command::Mute { stream, .. }
        | Command::Part { stream }
        | Command::Adjust { stream, .. }
        | Command::SendDigit { stream, .. }
        | Command::KeepDigits { stream, .. }
        | Command::DetectInband { stream, .. }
        | Command::DetectTrunkDigits { stream, .. }
        | Command::Record { stream, .. }
        | Command::StopRecord { stream }
        | Command::Monitor { stream, .. }
        | Command::AdjustMonitor { stream, .. }
        | Command::StopMonitor { stream, .. }
        | Command::Whisper { stream, .. }
        | Command::Murmur { stream, .. }
        | Command::StopMurmur { stream, .. }
        | Command::WatchSilence { stream, .. }
        | Command::WatchSound { stream, .. }
        | Command::WatchTone { stream, .. }
        | Command::HoldBack { stream, .. }
        | Command::Shape { stream, .. }
        | Command::FillSilence { stream, .. }
        | Command::Fax { stream, .. }
        | Command::Stats { stream } => (stream, None),
    })
}

fn start_worker(
    number: usize,
    mut io: MediaIo,
    cell: Arc<LoadCell>,
    shard: &Wake,
    manner: Manner,
    processor: Option<usize>,
    real_time: bool,
) -> io::Result<(WorkerHandle, Vec<String>)> {
    let (to_worker, inputs) = RingBuffer::new(RING);
    let (outputs, from_worker) = RingBuffer::new(RING);
    let (to_piped, from_shard) = pipe();
    let (to_shard, from_piped) = pipe();
    io.connect(Pipe::new(from_shard, to_shard));
    let bell = Wake::new()?;
    let asleep = Arc::new(AtomicBool::new(true));
    let ends =
        Ends { inputs, outputs, bell: bell.clone(), asleep: asleep.clone(), shard: shard.clone(), cell };
    let mut prepared = Prepared::new(io, ends, manner)?;
    let (told, refused) = std::sync::mpsc::sync_channel(1);
    let thread = std::thread::Builder::new().name(format!("media-{number}")).spawn(move || {
        let mut refused = take_priority(processor, real_time);
        refused.extend(prepared.begin());
        // The start may have been given up; then nobody listens.
        let _ = told.send(refused);
        prepared.run();
    })?;
    let warnings = refused.recv().unwrap_or_default();
    let handle = WorkerHandle {
        inputs: to_worker,
        outputs: from_worker,
        waiting: VecDeque::new(),
        bell,
        asleep,
        to_piped,
        from_piped,
        thread: Some(thread),
    };
    Ok((handle, warnings))
}

/// Pins and prefers the calling thread as far as it is allowed; says what was refused.
pub fn take_priority(processor: Option<usize>, real_time: bool) -> Vec<String> {
    let mut refused = Vec::new();
    if let Some(processor) = processor
        && let Err(error) = sys::pin_to(processor)
    {
        refused.push(format!("media workers are not pinned to processors: {error}"));
    }
    if !real_time {
        return refused;
    }
    if let Err(error) = sys::become_real_time() {
        let nice = match sys::become_preferred() {
            Ok(()) => "they run at nice -10 instead",
            Err(_) => "they run at normal priority",
        };
        refused.push(format!(
            "media workers get no real-time priority ({error}); {nice}. Under load audio may stutter: \
             grant CAP_SYS_NICE, or set LimitRTPRIO=1 in the service unit"
        ));
    }
    refused
}

/// Wall time at the zero of the monotonic clock, as NTP's 32.32 fixed point.
fn ntp_at_zero() -> u64 {
    let wall = Clock.wall() + Duration::from_secs(NTP_UNIX);
    let zero = wall.saturating_sub(Duration::from_nanos(Clock.now().as_nanos()));
    ((zero.as_nanos() << 32) / 1_000_000_000) as u64
}
