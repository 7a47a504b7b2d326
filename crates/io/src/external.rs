//! A codec's process: started, spoken to by one thread, watched, and started again when it dies.
//!
//! The thread moves whole messages between the streams' desks and two pipes (or a socket) and never lets either side
//! wait for long: what the process does not take stays in bounded buffers, what a stream does not fetch is dropped.
//! A process that leaves questions unanswered for [`Limits::answer`], says what is no message, or ends, is ended and
//! started again after [`Limits::restart`]; meanwhile its streams hear nothing and count it. Knows messages, no codec.
#![forbid(unsafe_code)]

use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use codec::external::{
    Bell, Desk, Direction, External, Faults, Geometry, Health, Kind, Message, Port, VERSION, port,
};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::wake::Wake;

/// Streams that one process codes at most.
pub const STREAMS_MAX: usize = 1024;
/// Bytes that wait for the process at most; beyond, the streams' own rings fill: two ticks of all streams.
const OUTGOING_BYTES_MAX: usize = 512 * 1024;
/// Bytes read at a time.
const READ_BYTES: usize = 64 * 1024;
/// Longest sleep without anything to do.
const SLEEP_MAX: Duration = Duration::from_secs(1);

/// Where a codec is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Peer {
    /// A program, spoken to by its standard input and output; its standard error is ours.
    Program {
        /// The file.
        path: PathBuf,
        /// Its arguments.
        args: Vec<String>,
    },
    /// A Unix socket on which somebody listens.
    Socket(PathBuf),
}

/// How long what may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// From the start to the greeting.
    pub greeting: Duration,
    /// From a question to its answer, or to that of another stream's later one.
    pub answer: Duration,
    /// From an end to the next start.
    pub restart: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            greeting: Duration::from_secs(5),
            answer: Duration::from_secs(1),
            restart: Duration::from_secs(2),
        }
    }
}

/// Why a codec could not be started or opened.
#[derive(Debug, thiserror::Error)]
pub enum ExternalError {
    /// The program or socket is not to be had.
    #[error("codec '{name}': cannot start {peer}: {error}")]
    Start {
        /// The codec.
        name: String,
        /// Its program or socket.
        peer: String,
        /// What the system said.
        error: io::Error,
    },
    /// It said something else than a greeting, or nothing.
    #[error("codec '{name}': {peer} gave no greeting of version {VERSION} in time")]
    Greeting {
        /// The codec.
        name: String,
        /// Its program or socket.
        peer: String,
    },
    /// Its frames are not those of the format.
    #[error(
        "codec '{name}' has frames of {} samples at {} Hz in at most {} bytes; those of {format} are {samples} at {rate} Hz \
         in {bytes}", said.samples, said.rate, said.bytes
    )]
    Format {
        /// The codec.
        name: String,
        /// The format that it was started for.
        format: &'static str,
        /// What it said of its frames.
        said: Geometry,
        /// Rate of the format.
        rate: u32,
        /// Samples of a frame of it.
        samples: usize,
        /// Bytes of one.
        bytes: usize,
    },
    /// [`STREAMS_MAX`] are open.
    #[error("codec '{name}': all {STREAMS_MAX} streams are in use")]
    Full {
        /// The codec.
        name: String,
    },
}

/// A codec's state, for those who watch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Status {
    /// Whether the process lives.
    pub alive: bool,
    /// How often it was started again.
    pub restarts: u32,
    /// Streams open.
    pub streams: u32,
    /// Frames sent and answers received.
    pub frames: u64,
    /// Answers received.
    pub answers: u64,
    /// Answers that nobody wanted any more.
    pub dropped: u64,
    /// What went wrong on the lines.
    pub faults: Faults,
}

#[derive(Debug, Default)]
struct Shared {
    health: Arc<Health>,
    restarts: AtomicU32,
    streams: AtomicU32,
    frames: AtomicU64,
    answers: AtomicU64,
    dropped: AtomicU64,
}

impl Bell for Wake {
    fn ring(&self) {
        Wake::ring(self);
    }
}

/// What the thread is told.
#[derive(Debug)]
enum Order {
    /// Serve one more stream.
    Open(Desk),
    /// End.
    End,
}

/// Where lines to a codec are opened, by whoever plans a route. Never blocks.
#[derive(Debug)]
pub struct Lines {
    name: String,
    geometry: Geometry,
    shared: Arc<Shared>,
    wake: Wake,
    orders: mpsc::SyncSender<Order>,
    next: AtomicU32,
}

impl Lines {
    /// A line for one direction of a stream.
    ///
    /// # Errors
    /// When too many are open, or the codec was ended.
    pub fn open(&self, direction: Direction) -> Result<Port, ExternalError> {
        let full = || ExternalError::Full { name: self.name.clone() };
        if self.shared.streams.load(Ordering::Relaxed) as usize >= STREAMS_MAX {
            return Err(full());
        }
        let stream = self.next.fetch_add(1, Ordering::Relaxed).max(1);
        let bell = Arc::new(self.wake.clone());
        let (port, desk) = port(stream, direction, self.geometry, self.shared.health.clone(), bell);
        self.orders.try_send(Order::Open(desk)).map_err(|_| full())?;
        self.shared.streams.fetch_add(1, Ordering::Relaxed);
        self.wake.ring();
        Ok(port)
    }
    /// How the codec is.
    pub fn status(&self) -> Status {
        let Shared { health, restarts, streams, frames, answers, dropped } = &*self.shared;
        Status {
            alive: health.is_alive(),
            restarts: restarts.load(Ordering::Relaxed),
            streams: streams.load(Ordering::Relaxed),
            frames: frames.load(Ordering::Relaxed),
            answers: answers.load(Ordering::Relaxed),
            dropped: dropped.load(Ordering::Relaxed),
            faults: health.faults(),
        }
    }
}

impl External for Lines {
    fn open(&self, direction: Direction) -> Option<Port> {
        Self::open(self, direction).ok()
    }
}

/// A codec in another process. Ends the process when dropped; ports that are still held hear nothing from then on.
#[derive(Debug)]
pub struct ExternalCodec {
    lines: Arc<Lines>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl ExternalCodec {
    /// Starts the process and waits for its greeting; `format` is the name by which the format is known.
    ///
    /// # Errors
    /// When there is no such program or socket, or it does not greet as it should.
    pub fn start(name: &str, format: &str, peer: Peer, limits: Limits) -> Result<Self, ExternalError> {
        let describe = || match &peer {
            Peer::Program { path, .. } => path.display().to_string(),
            Peer::Socket(path) => path.display().to_string(),
        };
        let failed = |error| ExternalError::Start { name: name.into(), peer: describe(), error };
        let mut link = Link::connect(&peer).map_err(failed)?;
        let Some(geometry) = link.greet(format, limits.greeting).map_err(failed)? else {
            return Err(ExternalError::Greeting { name: name.into(), peer: describe() });
        };
        let wake = Wake::new().map_err(failed)?;
        let shared = Arc::new(Shared::default());
        shared.health.set_alive(true);
        let (orders, receiver) = mpsc::sync_channel(STREAMS_MAX);
        let clerk = Clerk {
            peer: peer.clone(),
            format: format.into(),
            limits,
            geometry,
            shared: shared.clone(),
            wake: wake.clone(),
            receiver,
            seats: BTreeMap::new(),
            outgoing: Vec::new(),
            incoming: Vec::new(),
            progress: Instant::now(),
        };
        let thread = std::thread::Builder::new()
            .name(format!("codec-{name}"))
            .spawn(move || clerk.run(link))
            .map_err(failed)?;
        let next = AtomicU32::new(1);
        let lines = Arc::new(Lines { name: name.into(), geometry, shared, wake, orders, next });
        Ok(Self { lines, thread: Some(thread) })
    }

    /// Where its lines are opened.
    pub fn lines(&self) -> &Arc<Lines> {
        &self.lines
    }

    /// What its frames are like.
    pub fn geometry(&self) -> Geometry {
        self.lines.geometry
    }

    /// A line for one direction of a stream.
    ///
    /// # Errors
    /// When too many are open.
    pub fn open(&self, direction: Direction) -> Result<Port, ExternalError> {
        self.lines.open(direction)
    }

    /// How it is.
    pub fn status(&self) -> Status {
        self.lines.status()
    }
}

impl Drop for ExternalCodec {
    fn drop(&mut self) {
        // A thread that has ended is told nothing.
        let _told = self.lines.orders.send(Order::End);
        self.lines.wake.ring();
        if let Some(thread) = self.thread.take() {
            // A panic in there has ended the thread all the same.
            let _ended = thread.join();
        }
    }
}

/// The two ends of a connection, and the process when it is ours.
#[derive(Debug)]
struct Link {
    child: Option<Child>,
    to: OwnedFd,
    from: OwnedFd,
}

impl Link {
    fn connect(peer: &Peer) -> io::Result<Self> {
        let link = match peer {
            Peer::Program { path, args } => {
                let mut child =
                    Command::new(path).args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
                let pipes = child.stdin.take().zip(child.stdout.take());
                let Some((to, from)) = pipes else { return Err(io::ErrorKind::BrokenPipe.into()) };
                Self { child: Some(child), to: to.into(), from: from.into() }
            }
            Peer::Socket(path) => {
                let stream = UnixStream::connect(path)?;
                Self { child: None, to: stream.try_clone()?.into(), from: stream.into() }
            }
        };
        for fd in [&link.to, &link.from] {
            rustix::io::ioctl_fionbio(fd, true)?;
        }
        Ok(link)
    }

    /// Exchanges greetings; `None` when what comes is none, or nothing comes in time.
    fn greet(&mut self, format: &str, patience: Duration) -> io::Result<Option<Geometry>> {
        let end = Instant::now() + patience;
        let data = [&[VERSION], format.as_bytes()].concat();
        let hello = Message { kind: Kind::Hello, stream: 0, sequence: 0, data: &data };
        let Some(head) = hello.head() else { return Ok(None) };
        let mut outgoing = [&head[..], &data].concat();
        let mut incoming = Vec::new();
        loop {
            match Message::parse(&incoming) {
                Err(_) => return Ok(None),
                Ok(Some((message, _))) => return Ok(geometry(&message)),
                Ok(None) => {}
            }
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(None);
            }
            wait(self, None, !outgoing.is_empty(), left)?;
            if !self.write(&mut outgoing)? || !self.read(&mut incoming)? {
                return Ok(None);
            }
        }
    }

    /// Writes what the other side takes; `false` when it is gone.
    fn write(&mut self, outgoing: &mut Vec<u8>) -> io::Result<bool> {
        let mut written = 0;
        let mut open = true;
        while let Some(rest) = outgoing.get(written..).filter(|rest| !rest.is_empty()) {
            match rustix::io::write(&self.to, rest) {
                Ok(count) => written += count,
                Err(rustix::io::Errno::AGAIN) => break,
                Err(rustix::io::Errno::INTR) => {}
                Err(rustix::io::Errno::PIPE | rustix::io::Errno::CONNRESET) => {
                    open = false;
                    break;
                }
                Err(error) => return Err(error.into()),
            }
        }
        outgoing.drain(..written);
        Ok(open)
    }

    /// Reads what there is; `false` when the other side is gone.
    fn read(&mut self, incoming: &mut Vec<u8>) -> io::Result<bool> {
        let start = incoming.len();
        incoming.resize(start + READ_BYTES, 0);
        let got = rustix::io::read(&self.from, incoming.get_mut(start..).unwrap_or_default());
        incoming.truncate(start + got.unwrap_or(0));
        match got {
            Ok(count) => Ok(count > 0),
            Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => Ok(true),
            Err(rustix::io::Errno::CONNRESET) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            // It may have ended by itself; either way it is collected.
            let _killed = child.kill();
            let _status = child.wait();
        }
    }
}

/// What a greeting tells; `None` when it is none of ours or makes no sense.
fn geometry(message: &Message<'_>) -> Option<Geometry> {
    let &[VERSION, r0, r1, r2, r3, s0, s1, b0, b1] = message.data else { return None };
    let rate = u32::from_le_bytes([r0, r1, r2, r3]);
    let samples = usize::from(u16::from_le_bytes([s0, s1]));
    let bytes = usize::from(u16::from_le_bytes([b0, b1]));
    let fits = |size: usize| (1..=codec::external::BODY_BYTES_MAX).contains(&size);
    let sensible = message.kind == Kind::Hello && (8000..=48_000).contains(&rate);
    (sensible && fits(2 * samples) && fits(bytes)).then_some(Geometry { rate, samples, bytes })
}

/// Sleeps until the link or the bell has something, or `patience` is over.
fn wait(link: &Link, wake: Option<&Wake>, write: bool, patience: Duration) -> io::Result<()> {
    let patience =
        Timespec { tv_sec: patience.as_secs() as i64, tv_nsec: i64::from(patience.subsec_nanos()) };
    let mut fds = vec![PollFd::new(&link.from, PollFlags::IN)];
    if write {
        fds.push(PollFd::new(&link.to, PollFlags::OUT));
    }
    let bell = wake.map(AsFd::as_fd);
    if let Some(bell) = &bell {
        fds.push(PollFd::new(bell, PollFlags::IN));
    }
    match poll(&mut fds, Some(&patience)) {
        Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// A stream as the thread beside a process sees it.
struct Seat {
    desk: Desk,
    /// Questions that have no answer yet.
    unanswered: u32,
}

/// The thread beside a process.
struct Clerk {
    peer: Peer,
    format: String,
    limits: Limits,
    geometry: Geometry,
    shared: Arc<Shared>,
    wake: Wake,
    receiver: mpsc::Receiver<Order>,
    seats: BTreeMap<u32, Seat>,
    outgoing: Vec<u8>,
    incoming: Vec<u8>,
    /// When something was last answered, or asked of a process that had nothing to answer.
    progress: Instant,
}

/// Why serving a process ended.
#[derive(Debug, PartialEq, Eq)]
enum End {
    /// The codec is dropped.
    Dropped,
    /// The process is gone or of no use.
    Broken,
}

impl Clerk {
    fn run(mut self, link: Link) {
        let mut link = Some(link);
        loop {
            if let Some(mut link) = link.take()
                && matches!(self.serve(&mut link), Ok(End::Dropped))
            {
                self.shared.health.set_alive(false);
                return;
            }
            // The link is dropped: the process, if it was ours, is ended.
            self.shared.health.set_alive(false);
            if !self.pause() {
                return;
            }
            link = self.connect();
            if link.is_some() {
                self.shared.restarts.fetch_add(1, Ordering::Relaxed);
                self.forget();
                self.shared.health.set_alive(true);
            }
        }
    }

    /// Starts the process again; none that has become another codec.
    fn connect(&self) -> Option<Link> {
        let mut link = Link::connect(&self.peer).ok()?;
        let geometry = link.greet(&self.format, self.limits.greeting).ok()??;
        (geometry == self.geometry).then_some(link)
    }

    /// Lets the time until the next start go by; `false` when there shall be none.
    fn pause(&mut self) -> bool {
        let end = Instant::now() + self.limits.restart;
        loop {
            match self.receiver.recv_timeout(end.saturating_duration_since(Instant::now())) {
                Ok(Order::Open(desk)) => self.seat(desk),
                Err(mpsc::RecvTimeoutError::Timeout) => return true,
                Ok(Order::End) | Err(mpsc::RecvTimeoutError::Disconnected) => return false,
            }
        }
    }

    /// Begins anew with a process that knows no stream yet, before anybody is told that it lives.
    fn forget(&mut self) {
        self.outgoing.clear();
        self.incoming.clear();
        let mut forgotten = Vec::new();
        for seat in self.seats.values_mut() {
            // Asked of the process before: its answers would come too late.
            seat.desk.collect(&mut forgotten);
            seat.unanswered = 0;
            open(&seat.desk, &mut self.outgoing);
        }
    }

    /// Serves the streams until the process or its owner ends.
    fn serve(&mut self, link: &mut Link) -> io::Result<End> {
        self.progress = Instant::now();
        loop {
            self.wake.answer_and_clear();
            if !self.admit() {
                return Ok(End::Dropped);
            }
            self.collect();
            if !link.write(&mut self.outgoing)? || !link.read(&mut self.incoming)? || !self.deliver() {
                return Ok(End::Broken);
            }
            let waiting = self.seats.values().any(|seat| seat.unanswered > 0);
            let waited = self.progress.elapsed();
            if waiting && waited >= self.limits.answer {
                return Ok(End::Broken);
            }
            let patience = if waiting { self.limits.answer.saturating_sub(waited) } else { SLEEP_MAX };
            wait(link, Some(&self.wake), !self.outgoing.is_empty(), patience)?;
        }
    }

    /// Takes in new streams; `false` when the codec is dropped.
    fn admit(&mut self) -> bool {
        loop {
            match self.receiver.try_recv() {
                Ok(Order::Open(desk)) => {
                    open(&desk, &mut self.outgoing);
                    self.seat(desk);
                }
                Err(mpsc::TryRecvError::Empty) => return true,
                Ok(Order::End) | Err(mpsc::TryRecvError::Disconnected) => return false,
            }
        }
    }

    fn seat(&mut self, desk: Desk) {
        self.seats.insert(desk.stream, Seat { desk, unanswered: 0 });
    }

    /// Fetches what the streams ask, and says goodbye for those that are over.
    fn collect(&mut self) {
        let Self { seats, outgoing, shared, progress, .. } = self;
        let idle = seats.values().all(|seat| seat.unanswered == 0);
        let mut asked = 0;
        seats.retain(|&stream, seat| {
            if outgoing.len() < OUTGOING_BYTES_MAX {
                let count = seat.desk.collect(outgoing);
                seat.unanswered += count;
                asked += count;
            }
            if !seat.desk.is_abandoned() {
                return true;
            }
            let goodbye = Message { kind: Kind::Close, stream, sequence: 0, data: &[] };
            outgoing.extend(goodbye.head().into_iter().flatten());
            shared.streams.fetch_sub(1, Ordering::Relaxed);
            false
        });
        if idle && asked > 0 {
            *progress = Instant::now();
        }
        shared.frames.fetch_add(u64::from(asked), Ordering::Relaxed);
    }

    /// Gives the streams their answers; `false` when the process said what is no message.
    fn deliver(&mut self) -> bool {
        let Self { seats, incoming, shared, progress, .. } = self;
        let mut taken = 0;
        loop {
            let (message, length) = match Message::parse(incoming.get(taken..).unwrap_or_default()) {
                Ok(Some(message)) => message,
                Ok(None) => break,
                Err(_) => return false,
            };
            taken += length;
            if !matches!(message.kind, Kind::Frame | Kind::Error) {
                return false;
            }
            shared.answers.fetch_add(1, Ordering::Relaxed);
            *progress = Instant::now();
            // The answer to a stream that is over meets nobody.
            let delivered = seats.get_mut(&message.stream).is_some_and(|seat| {
                seat.unanswered = seat.unanswered.saturating_sub(1);
                seat.desk.deliver(&message)
            });
            if !delivered {
                shared.dropped.fetch_add(1, Ordering::Relaxed);
            }
        }
        incoming.drain(..taken);
        true
    }
}

/// Tells the process of a stream.
fn open(desk: &Desk, outgoing: &mut Vec<u8>) {
    let data: &[u8] = match desk.direction {
        Direction::Encode => b"e",
        Direction::Decode => b"d",
    };
    let message = Message { kind: Kind::Open, stream: desk.stream, sequence: 0, data };
    outgoing.extend(message.head().into_iter().flatten());
    outgoing.extend_from_slice(data);
}
