//! IAX2 registrations in the old design, to compare with: what the review that began this project found, and no more.
//!
//! One thread reads datagrams, one with each system call, and gives each to one of ten others. A table has a place for
//! each of 32,767 call numbers under a lock of its own; whoever looks for a call begins at its front. One list under one
//! lock holds the frames of all calls that nobody has acknowledged; each frame that comes walks it, and so does the
//! reading thread. A number rests for a minute, and the next is the first that has rested.
//!
//! It is a model that was written for this bench, after the words of that review. It is nobody's program: it has no
//! configuration, no log, no channels and no dialplan, so that it shows what the data structures cost and not what a
//! whole program does. Tokens, challenges and frames are those of this project's own crate.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use iax2::Secret;
use iax2::frame::{Command, Datagram, Element, Fields, Full, Kind, parse, write_element};

/// Threads that do the work.
const WORKERS: usize = 10;
/// Call numbers; 0 is none.
const NUMBERS: usize = 0x7fff;
/// Numbers of registrations end here: above are those of trunks.
const NUMBERS_OF_REGISTRATIONS: usize = 0x4000;
/// How long a number rests.
const REST: Duration = Duration::from_secs(60);
/// When an unacknowledged frame goes out again.
const REPEAT: Duration = Duration::from_secs(2);
/// Longest wait of the reading thread.
const WAIT: Duration = Duration::from_millis(20);
/// What stands in for a token: that of the exchange is checked in both designs without state, and costs the same.
const TOKEN: &[u8] = b"1700000000?0123456789abcdef0123456789abcdef01234567";
const CHALLENGE: &[u8] = b"184467440737";

struct Call {
    remote: SocketAddr,
    theirs: u16,
    peer: String,
}

struct Frame {
    call: usize,
    oseq: u8,
    remote: SocketAddr,
    bytes: Vec<u8>,
    due: Instant,
}

struct Shared {
    socket: UdpSocket,
    secret: Secret,
    peers: HashMap<String, ()>,
    calls: Vec<Mutex<Option<Call>>>,
    /// When each number was given up, nanoseconds since `began`.
    given_up: Vec<AtomicU64>,
    began: Instant,
    frames: Mutex<Vec<Frame>>,
    stop: AtomicBool,
}

/// A thread's place at the door: what it is to work on.
#[derive(Default)]
struct Seat {
    work: Mutex<Option<(SocketAddr, Vec<u8>)>>,
    wake: Condvar,
}

/// A registrar of the old design; it stops when this goes.
pub struct OldRegistrar {
    address: SocketAddr,
    shared: Arc<Shared>,
    seats: Vec<Arc<Seat>>,
    threads: Vec<JoinHandle<()>>,
    ids: Vec<u32>,
}

impl OldRegistrar {
    /// Lets peers `name0` and so on register by this password. The table is as it would be after `rate` registrations a
    /// second for a minute: those of the last minute rest.
    pub fn start(ip: IpAddr, name: &str, peers: u32, secret: &str, rate: f64) -> Self {
        let socket = UdpSocket::bind((ip, 0)).expect("a port for IAX2");
        socket.set_read_timeout(Some(WAIT)).expect("a time-out");
        let address = socket.local_addr().expect("an address");
        // The minute before the beginning is on the scale too.
        let began = Instant::now().checked_sub(REST).expect("a machine that is up for a minute");
        let resting = ((rate * REST.as_secs_f64()) as usize).min(NUMBERS_OF_REGISTRATIONS - 2);
        let given_up = |number: usize| {
            let at = number.checked_sub(2).filter(|at| *at < resting);
            at.map_or(0, |at| 1 + (at as f64 / resting as f64 * REST.as_nanos() as f64) as u64)
        };
        let shared = Arc::new(Shared {
            socket,
            secret: Secret::new(secret.as_bytes()),
            peers: (0..peers).map(|peer| (format!("{name}{peer}"), ())).collect(),
            calls: (0..=NUMBERS).map(|_| Mutex::new(None)).collect(),
            given_up: (0..=NUMBERS).map(|number| AtomicU64::new(given_up(number))).collect(),
            began,
            frames: Mutex::default(),
            stop: AtomicBool::new(false),
        });
        let seats: Vec<Arc<Seat>> = (0..WORKERS).map(|_| Arc::default()).collect();
        let ids = Arc::new(Mutex::new(Vec::new()));
        let mut bodies: Vec<Box<dyn FnOnce() + Send>> = Vec::new();
        for seat in &seats {
            let (seat, shared) = (seat.clone(), shared.clone());
            bodies.push(Box::new(move || work(&seat, &shared)));
        }
        let (at_door, to_read) = (seats.clone(), shared.clone());
        bodies.push(Box::new(move || read(&at_door, &to_read)));
        let threads = bodies.into_iter().map(|body| {
            let ids = ids.clone();
            std::thread::spawn(move || {
                lock(&ids).push(rustix::thread::gettid().as_raw_nonzero().get().unsigned_abs());
                body();
            })
        });
        let threads: Vec<_> = threads.collect();
        while lock(&ids).len() < threads.len() {
            std::thread::yield_now();
        }
        let ids = lock(&ids).clone();
        Self { address, shared, seats, threads, ids }
    }
    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
    /// Its threads, of this process.
    pub fn threads(&self) -> &[u32] {
        &self.ids
    }
}

impl Drop for OldRegistrar {
    fn drop(&mut self) {
        self.shared.stop.store(true, Relaxed);
        for seat in &self.seats {
            let _guard = lock(&seat.work);
            seat.wake.notify_all();
        }
        for thread in self.threads.drain(..) {
            let joined = thread.join();
            assert!(joined.is_ok() || std::thread::panicking(), "a thread of the old design has panicked");
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().expect("nobody panics with it")
}

/// Reads, and gives what came to a thread that has nothing to do.
fn read(seats: &[Arc<Seat>], shared: &Shared) {
    let mut buffer = [0; 2048];
    while !shared.stop.load(Relaxed) {
        repeat(shared);
        let Ok((length, from)) = shared.socket.recv_from(&mut buffer) else { continue };
        loop {
            let idle = seats.iter().find_map(|seat| {
                let work = lock(&seat.work);
                work.is_none().then_some((seat, work))
            });
            let Some((seat, mut work)) = idle else {
                std::thread::yield_now();
                continue;
            };
            *work = Some((from, buffer[..length].to_vec()));
            seat.wake.notify_one();
            break;
        }
    }
}

/// Sends again what nobody has acknowledged: a walk through everybody's frames.
fn repeat(shared: &Shared) {
    let now = Instant::now();
    for frame in lock(&shared.frames).iter_mut().filter(|frame| frame.due <= now) {
        frame.due = now + REPEAT;
        // What is not sent now is sent again.
        let _ = shared.socket.send_to(&frame.bytes, frame.remote);
    }
}

fn work(seat: &Seat, shared: &Shared) {
    let mut work = lock(&seat.work);
    loop {
        if shared.stop.load(Relaxed) {
            return;
        }
        // The place stays taken until the work is done.
        match work.take() {
            Some((from, bytes)) => {
                *work = Some((from, Vec::new()));
                drop(work);
                if let Ok(Datagram::Full(frame)) = parse(&bytes) {
                    shared.take(from, &frame);
                }
                work = lock(&seat.work);
                *work = None;
            }
            None => work = seat.wake.wait(work).expect("nobody panics with it"),
        }
    }
}

impl Shared {
    /// The call that a frame means, from the front of the table.
    fn find(&self, from: SocketAddr, frame: &Full<'_>) -> Option<usize> {
        (1..=NUMBERS).find(|number| {
            let call = lock(&self.calls[*number]);
            call.as_ref().is_some_and(|call| {
                call.remote == from
                    && call.theirs == frame.source
                    && (frame.dest == 0 || usize::from(frame.dest) == *number)
            })
        })
    }
    /// The first number that is free and has rested.
    fn open(&self, call: Call) -> Option<usize> {
        let now = u64::try_from(self.began.elapsed().as_nanos()).unwrap_or(u64::MAX);
        let rest = u64::try_from(REST.as_nanos()).unwrap_or(u64::MAX);
        for number in 2..NUMBERS_OF_REGISTRATIONS {
            let mut place = lock(&self.calls[number]);
            let given_up = self.given_up[number].load(Relaxed);
            if place.is_none() && (given_up == 0 || now.saturating_sub(given_up) >= rest) {
                *place = Some(call);
                return Some(number);
            }
        }
        None
    }
    fn take(&self, from: SocketAddr, frame: &Full<'_>) {
        let (Kind::Iax(command), Some(fields)) = (frame.kind, Fields::collect(frame.data)) else { return };
        if command == Command::REGREQ && fields.token == Some(b"") {
            return self.send(
                from,
                (1, frame.source),
                frame,
                None,
                Command::CALLTOKEN,
                &[Element::CallToken(TOKEN)],
            );
        }
        let Some(number) = self.find(from, frame) else {
            let peer = String::from_utf8_lossy(fields.username.unwrap_or_default()).into_owned();
            if command != Command::REGREQ || fields.token != Some(TOKEN) || !self.peers.contains_key(&peer) {
                return;
            }
            let Some(number) = self.open(Call { remote: from, theirs: frame.source, peer }) else { return };
            let elements = [Element::Challenge(CHALLENGE)];
            return self.send(from, (number, frame.source), frame, Some(0), Command::REGAUTH, &elements);
        };
        // What this frame acknowledges: another walk through everybody's frames.
        lock(&self.frames).retain(|kept| kept.call != number || kept.oseq >= frame.iseq);
        match command {
            Command::REGREQ
                if fields.md5 == self.secret.answer(CHALLENGE).as_ref().map(|answer| &answer[..]) =>
            {
                let peer = lock(&self.calls[number]).as_ref().map(|call| call.peer.clone());
                let peer = peer.unwrap_or_default();
                let elements =
                    [Element::Username(peer.as_bytes()), Element::Refresh(60), Element::ApparentAddr(from)];
                self.send(from, (number, frame.source), frame, Some(1), Command::REGACK, &elements);
            }
            Command::ACK if frame.iseq == 2 => {
                let now = u64::try_from(self.began.elapsed().as_nanos()).unwrap_or(u64::MAX);
                let mut place = lock(&self.calls[number]);
                self.given_up[number].store(now, Relaxed);
                *place = None;
            }
            _ => {}
        }
    }
    /// Answers; with a place in the sequence the frame is kept until it is acknowledged.
    fn send(
        &self,
        to: SocketAddr,
        (number, theirs): (usize, u16),
        answered: &Full<'_>,
        oseq: Option<u8>,
        command: Command,
        elements: &[Element<'_>],
    ) {
        let mut data = Vec::new();
        elements.iter().for_each(|element| write_element(element, &mut data));
        let frame = Full {
            source: u16::try_from(number).unwrap_or_default(),
            dest: theirs,
            again: false,
            timestamp: answered.timestamp,
            oseq: oseq.unwrap_or_default(),
            iseq: answered.oseq.wrapping_add(1),
            kind: Kind::Iax(command),
            data: &data,
        };
        let mut bytes = Vec::new();
        frame.write(&mut bytes);
        // What is not sent now is sent again.
        let _ = self.socket.send_to(&bytes, to);
        if let Some(oseq) = oseq {
            let due = Instant::now() + REPEAT;
            lock(&self.frames).push(Frame { call: number, oseq, remote: to, bytes, due });
        }
    }
}
