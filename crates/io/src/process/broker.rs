//! The broker of programs: one thread that starts them, speaks to them by pipes, and collects them when they end. It
//! speaks to servers by TCP alike, so that whoever wants a conversation need not know with whom.
//!
//! Nobody waits for it and it waits for nobody: what a program does not read is kept up to a bound, what its owner does not
//! take is not read from the program. No shell is ever started here: paths and arguments go to `execve` as they are.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::net::{SocketAddr, ToSocketAddrs as _};
use std::os::fd::OwnedFd;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use base::AudioSink;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open};

use crate::sys;
use crate::wake::{Receiver, Sender, Wake, queue};

/// Programs that run at once, those included that their owners have let go of: a fraction of what a system allows.
pub const PROGRAMS_MAX: usize = 1024;
/// Conversations at once.
pub const CONVERSATIONS_MAX: usize = 4096;
/// Bytes that are read at a time.
pub const CHUNK_BYTES: usize = 4096;
/// Chunks of one conversation that its owner has not taken. With so many its output is not read, and it has to wait.
pub const CHUNKS_MAX: u32 = 4;
/// Bytes that wait for one that does not read; one more and the conversation ends.
pub const BACKLOG_BYTES_MAX: usize = 256 * 1024;
/// How long one address of a server may take to accept.
pub const CONNECT_WITHIN: Duration = Duration::from_secs(5);
/// Addresses of a server that are tried.
pub const ADDRESSES_MAX: usize = 8;
/// Names of servers that are looked up at once, each on a thread of its own.
pub const LOOKUPS_MAX: usize = 16;
/// How long what was said last may take to be read, once the owner has let go.
pub const FLUSH_WITHIN: Duration = Duration::from_secs(5);
/// Samples that wait for a program that hears a call: two seconds.
pub const AUDIO_SAMPLES_MAX: usize = 16_000;
/// How often audio is handed on.
const AUDIO_EVERY: Duration = Duration::from_millis(20);
/// Reports on their way to the owner.
const REPORTS_MAX: usize = 1024;
/// Longest sleep.
const SLEEP_MAX: Duration = Duration::from_secs(60);
/// How often a program is asked whether it has ended where the kernel has no descriptor for that (before Linux 5.3).
const ASK_EVERY: Duration = Duration::from_millis(200);
/// Descriptor by which a program hears a call.
const AUDIO_DESCRIPTOR: libc::c_int = 3;

/// Whom to talk to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Want {
    /// A program.
    Program {
        /// The file.
        path: String,
        /// Its arguments.
        args: Vec<String>,
        /// Added to the environment of this process.
        environment: Vec<(String, String)>,
        /// It reads linear samples from descriptor 3.
        audio: bool,
    },
    /// The first of these hosts, at its port, that accepts.
    Server {
        /// Names or addresses.
        hosts: Vec<(String, u16)>,
    },
}

/// What happened to a conversation.
pub enum Report {
    /// It has begun.
    Open {
        /// The server's address.
        address: Option<SocketAddr>,
        /// Where the call's audio goes.
        audio: Option<Box<dyn AudioSink>>,
    },
    /// Bytes came; [`Broker::took`] says when they are dealt with.
    Bytes(Vec<u8>),
    /// No more will come.
    End,
    /// The program ended with this code; `None`: by a signal. After [`Report::End`].
    Exited(Option<i32>),
    /// It did not begin.
    Failed {
        /// There is no such file, or it may not be run.
        not_found: bool,
        /// What the system said.
        why: String,
    },
}

enum Order {
    Open(u64, Want),
    Found(u64, io::Result<Vec<SocketAddr>>),
    Send(u64, Vec<u8>),
    Took(u64),
    HangUp(u64),
    Close(u64),
    Leave,
}

/// The owner's end. Nothing here waits.
pub struct Broker {
    orders: mpsc::Sender<Order>,
    wake: Wake,
    reports: Receiver<(u64, Report)>,
    next: u64,
}

impl Broker {
    /// Starts the thread.
    ///
    /// # Errors
    /// When the process has no descriptor or thread left.
    pub fn start() -> io::Result<Self> {
        let wake = Wake::new()?;
        // Bounded by what it carries: an answer to a line, and lines are read only as far as they are taken.
        let (orders, inbox) = mpsc::channel();
        let (sender, reports) = queue(REPORTS_MAX)?;
        let clerk = Clerk {
            inbox,
            own: orders.clone(),
            wake: wake.clone(),
            reports: sender,
            talks: BTreeMap::new(),
            orphans: Vec::new(),
            lookups: 0,
            waiting: VecDeque::new(),
        };
        std::thread::Builder::new().name("programs".to_owned()).spawn(move || clerk.run())?;
        Ok(Self { orders, wake, reports, next: 0 })
    }
    /// What has happened, with the descriptor to sleep on.
    pub fn reports(&self) -> &Receiver<(u64, Report)> {
        &self.reports
    }
    /// Begins a conversation; its number is never used again.
    pub fn open(&mut self, want: Want) -> u64 {
        self.next += 1;
        self.order(Order::Open(self.next, want));
        self.next
    }
    /// Says something.
    pub fn send(&self, talk: u64, bytes: Vec<u8>) {
        self.order(Order::Send(talk, bytes));
    }
    /// One [`Report::Bytes`] is dealt with.
    pub fn took(&self, talk: u64) {
        self.order(Order::Took(talk));
    }
    /// Sends the program SIGHUP.
    pub fn hang_up(&self, talk: u64) {
        self.order(Order::HangUp(talk));
    }
    /// Lets go. What was said before is still written; a program that runs on is only waited for.
    pub fn close(&self, talk: u64) {
        self.order(Order::Close(talk));
    }
    fn order(&self, order: Order) {
        // The thread lives as long as this end.
        let _sent = self.orders.send(order);
        self.wake.ring();
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        self.order(Order::Leave);
    }
}

/// A program that runs.
struct Program {
    child: Child,
    /// Readable when it has ended.
    ended: Option<OwnedFd>,
}

impl Program {
    fn new(child: Child) -> Self {
        let ended = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
        let ended = ended.and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok());
        Self { child, ended }
    }
    /// How it ended, if it has.
    fn exit(&mut self) -> Option<Option<i32>> {
        match self.child.try_wait() {
            Ok(None) => None,
            Ok(Some(status)) => {
                debug_assert!(status.code().is_some() || status.signal().is_some());
                Some(status.code())
            }
            Err(_) => Some(None),
        }
    }
    fn signal_hangup(&self) {
        // It is still ours to wait for, so its number is nobody else's.
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        let _sent = pid.map(|pid| kill_process(pid, Signal::HUP));
    }
}

/// The caller's audio on its way.
struct Audio {
    ring: rtrb::Consumer<i16>,
    pipe: OwnedFd,
    /// Bytes of samples that were taken from the ring and not written yet.
    rest: Vec<u8>,
}

impl Audio {
    /// Hands on what there is room for; `false` when nobody listens any more.
    fn hand_on(&mut self) -> bool {
        loop {
            if self.rest.is_empty() {
                let count = self.ring.slots().min(CHUNK_BYTES / 2);
                if count == 0 {
                    return !self.ring.is_abandoned();
                }
                let Ok(chunk) = self.ring.read_chunk(count) else { return true };
                self.rest.extend(chunk.into_iter().flat_map(i16::to_ne_bytes));
            }
            match rustix::io::write(&self.pipe, &self.rest) {
                Ok(count) => drop(self.rest.drain(..count)),
                Err(rustix::io::Errno::AGAIN) => return true,
                Err(rustix::io::Errno::INTR) => {}
                Err(_) => return false,
            }
        }
    }
}

/// What a media worker fills.
struct AudioEnd(rtrb::Producer<i16>);

impl AudioSink for AudioEnd {
    fn write(&mut self, samples: &[i16]) -> usize {
        let count = self.0.slots().min(samples.len());
        let Ok(chunk) = self.0.write_chunk_uninit(count) else { return 0 };
        chunk.fill_from_iter(samples.iter().copied())
    }
}

/// One conversation.
#[derive(Default)]
struct Talk {
    program: Option<Program>,
    /// What we write to; gone when nobody reads.
    to: Option<OwnedFd>,
    /// What we read from; gone after its end.
    from: Option<OwnedFd>,
    /// Addresses that are still to be tried, and when the present one has had its time.
    connecting: Option<(VecDeque<SocketAddr>, Instant, OwnedFd, SocketAddr)>,
    out: Vec<u8>,
    /// Chunks that the owner has not taken.
    untaken: u32,
    audio: Option<Audio>,
    /// How the program ended, while its output is not read to the end.
    exit: Option<Option<i32>>,
    /// The owner has let go; what is left to write has until then.
    until: Option<Instant>,
}

impl Talk {
    fn reads(&self) -> bool {
        self.from.is_some() && self.untaken < CHUNKS_MAX && self.until.is_none()
    }
}

/// The thread's own.
struct Clerk {
    inbox: mpsc::Receiver<Order>,
    /// For threads that look names up.
    own: mpsc::Sender<Order>,
    wake: Wake,
    reports: Sender<(u64, Report)>,
    talks: BTreeMap<u64, Talk>,
    /// Programs that nobody talks to any more.
    orphans: Vec<Program>,
    lookups: usize,
    /// Servers whose names are to be looked up when there is a thread for it.
    waiting: VecDeque<(u64, Vec<(String, u16)>)>,
}

impl Clerk {
    fn run(mut self) {
        loop {
            if !self.take_orders() {
                return;
            }
            let numbers: Vec<u64> = self.talks.keys().copied().collect();
            let now = Instant::now();
            for number in numbers {
                if let Some(mut talk) = self.talks.remove(&number)
                    && self.serve(number, &mut talk, now)
                {
                    self.talks.insert(number, talk);
                }
            }
            self.orphans.retain_mut(|program| program.exit().is_none());
            if self.sleep().is_err() {
                // A want of memory; it passes or the process ends.
                std::thread::sleep(AUDIO_EVERY);
            }
        }
    }
    fn report(&self, number: u64, report: Report) {
        // Waits for the owner when he is slow; he never waits for this thread.
        let _told = self.reports.send_blocking((number, report));
    }

    /// `false` when the owner is gone.
    fn take_orders(&mut self) -> bool {
        self.wake.answer_and_clear();
        loop {
            match self.inbox.try_recv() {
                Ok(Order::Leave) | Err(mpsc::TryRecvError::Disconnected) => return false,
                Ok(order) => self.obey(order),
                Err(mpsc::TryRecvError::Empty) => return true,
            }
        }
    }
    fn obey(&mut self, order: Order) {
        match order {
            Order::Open(number, want) => {
                let opened = self.open(number, want);
                if let Err((not_found, why)) = opened {
                    self.report(number, Report::Failed { not_found, why });
                }
            }
            Order::Found(number, found) => {
                self.lookups -= 1;
                self.found(number, found);
                self.look_up_next();
            }
            Order::Send(number, bytes) => {
                if let Some(talk) = self.talks.get_mut(&number) {
                    talk.out.extend(bytes);
                }
            }
            Order::Took(number) => {
                if let Some(talk) = self.talks.get_mut(&number) {
                    talk.untaken = talk.untaken.saturating_sub(1);
                }
            }
            Order::HangUp(number) => {
                if let Some(program) = self.talks.get(&number).and_then(|talk| talk.program.as_ref()) {
                    program.signal_hangup();
                }
            }
            Order::Close(number) => {
                if let Some(talk) = self.talks.get_mut(&number) {
                    talk.until = Some(Instant::now() + FLUSH_WITHIN);
                }
            }
            // Taken before.
            Order::Leave => {}
        }
    }

    fn open(&mut self, number: u64, want: Want) -> Result<(), (bool, String)> {
        if self.talks.len() >= CONVERSATIONS_MAX {
            return Err((false, format!("there are {CONVERSATIONS_MAX} conversations already")));
        }
        match want {
            Want::Program { path, args, environment, audio } => {
                let running = self.talks.values().filter(|talk| talk.program.is_some()).count();
                if running + self.orphans.len() >= PROGRAMS_MAX {
                    return Err((false, format!("{PROGRAMS_MAX} programs run already")));
                }
                let (talk, sink) = start(&path, &args, &environment, audio).map_err(|error| {
                    let absent = matches!(
                        error.kind(),
                        io::ErrorKind::NotFound
                            | io::ErrorKind::PermissionDenied
                            | io::ErrorKind::NotADirectory
                    );
                    (absent, format!("{path} cannot be started: {error}"))
                })?;
                self.talks.insert(number, talk);
                self.report(number, Report::Open { address: None, audio: sink });
            }
            Want::Server { hosts } => {
                self.talks.insert(number, Talk::default());
                self.waiting.push_back((number, hosts));
                self.look_up_next();
            }
        }
        Ok(())
    }

    /// Names are looked up elsewhere: the system's resolver waits.
    fn look_up_next(&mut self) {
        while self.lookups < LOOKUPS_MAX
            && let Some((number, hosts)) = self.waiting.pop_front()
        {
            self.lookups += 1;
            let known: Option<Vec<SocketAddr>> =
                hosts.iter().map(|(host, port)| Some(SocketAddr::new(host.parse().ok()?, *port))).collect();
            if let Some(known) = known {
                self.obey(Order::Found(number, Ok(known)));
                continue;
            }
            let (own, wake) = (self.own.clone(), self.wake.clone());
            let started = std::thread::Builder::new().name("server-name".to_owned()).spawn(move || {
                let _sent = own.send(Order::Found(number, look_up(&hosts)));
                wake.ring();
            });
            if let Err(error) = started {
                self.obey(Order::Found(number, Err(error)));
            }
        }
    }
    fn found(&mut self, number: u64, found: io::Result<Vec<SocketAddr>>) {
        let Some(mut talk) = self.talks.remove(&number) else { return };
        let begun = match found {
            Ok(addresses) => {
                let addresses = addresses.into_iter().take(ADDRESSES_MAX).collect();
                connect(addresses, "there is no address of that name")
                    .map(|begun| talk.connecting = Some(begun))
            }
            Err(error) => Err(format!("its address is not to be had: {error}")),
        };
        match begun {
            Ok(()) => drop(self.talks.insert(number, talk)),
            Err(why) => self.report(number, Report::Failed { not_found: false, why }),
        }
    }

    /// Moves what can be moved; `false` when the conversation is over.
    fn serve(&mut self, number: u64, talk: &mut Talk, now: Instant) -> bool {
        if talk.connecting.is_some() && !self.settle(number, talk, now) {
            return false;
        }
        write(talk);
        if let Some(audio) = &mut talk.audio
            && !audio.hand_on()
        {
            talk.audio = None;
        }
        if talk.exit.is_none() {
            talk.exit = talk.program.as_mut().and_then(Program::exit);
        }
        if let Some(until) = talk.until {
            let flushed = talk.out.is_empty() || talk.to.is_none();
            if flushed || until <= now {
                self.orphans.extend(talk.program.take().filter(|_| talk.exit.is_none()));
                return false;
            }
            return true;
        }
        if talk.out.len() > BACKLOG_BYTES_MAX {
            talk.from = None;
            talk.to = None;
            talk.out.clear();
            self.report(number, Report::End);
        }
        self.read(number, talk);
        if talk.from.is_none()
            && let Some(code) = talk.exit.filter(|_| talk.program.is_some())
        {
            talk.program = None;
            self.report(number, Report::Exited(code));
        }
        true
    }
    /// Reads as far as the owner keeps up.
    fn read(&self, number: u64, talk: &mut Talk) {
        let mut buffer = [0; CHUNK_BYTES];
        while talk.reads()
            && let Some(from) = &talk.from
        {
            match rustix::io::read(from, &mut buffer) {
                Ok(0) => talk.from = None,
                Ok(count) => {
                    talk.untaken += 1;
                    let bytes = buffer.get(..count).unwrap_or_default().to_vec();
                    self.report(number, Report::Bytes(bytes));
                }
                Err(rustix::io::Errno::INTR) => {}
                // What is left open by children of one that has ended says nothing that anybody waits for.
                Err(rustix::io::Errno::AGAIN) if talk.exit.is_none() => return,
                Err(_) => talk.from = None,
            }
            if talk.from.is_none() {
                self.report(number, Report::End);
            }
        }
    }
    /// Looks how a connection attempt comes along; `false` when no address is left.
    fn settle(&self, number: u64, talk: &mut Talk, now: Instant) -> bool {
        let Some((left, deadline, fd, address)) = talk.connecting.take() else { return true };
        let mut fds = [PollFd::new(&fd, PollFlags::OUT)];
        let ready =
            matches!(poll(&mut fds, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })), Ok(count) if count > 0);
        if !ready && now < deadline {
            talk.connecting = Some((left, deadline, fd, address));
            return true;
        }
        let failed = match sys::connect_result(&fd) {
            Ok(()) if ready => None,
            Ok(()) => Some(io::Error::from(io::ErrorKind::TimedOut)),
            Err(error) => Some(error),
        };
        let Some(error) = failed else {
            let Ok(second) = fd.try_clone() else { return false };
            (talk.to, talk.from) = (Some(fd), Some(second));
            self.report(number, Report::Open { address: Some(address), audio: None });
            return true;
        };
        match connect(left, &format!("{address} does not accept: {error}")) {
            Ok(next) => {
                talk.connecting = Some(next);
                true
            }
            Err(why) => {
                self.report(number, Report::Failed { not_found: false, why });
                false
            }
        }
    }

    /// Sleeps until something can be moved.
    fn sleep(&self) -> io::Result<()> {
        let now = Instant::now();
        let mut fds: Vec<PollFd<'_>> = vec![PollFd::new(&self.wake, PollFlags::IN)];
        let mut patience = SLEEP_MAX;
        for talk in self.talks.values() {
            if let Some((_, deadline, fd, _)) = &talk.connecting {
                fds.push(PollFd::new(fd, PollFlags::OUT));
                patience = patience.min(deadline.saturating_duration_since(now));
            }
            if let Some(until) = talk.until {
                patience = patience.min(until.saturating_duration_since(now));
            }
            if talk.audio.is_some() {
                patience = patience.min(AUDIO_EVERY);
            }
            if let Some(to) = talk.to.as_ref().filter(|_| !talk.out.is_empty()) {
                fds.push(PollFd::new(to, PollFlags::OUT));
            }
            if let Some(from) = talk.from.as_ref().filter(|_| talk.reads()) {
                fds.push(PollFd::new(from, PollFlags::IN));
            }
        }
        let talking =
            self.talks.values().filter(|talk| talk.exit.is_none()).filter_map(|talk| talk.program.as_ref());
        for program in talking.chain(&self.orphans) {
            match &program.ended {
                Some(ended) => fds.push(PollFd::new(ended, PollFlags::IN)),
                None => patience = patience.min(ASK_EVERY),
            }
        }
        let timeout =
            Timespec { tv_sec: patience.as_secs() as i64, tv_nsec: i64::from(patience.subsec_nanos()) };
        match poll(&mut fds, Some(&timeout)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

/// Writes as much as fits.
fn write(talk: &mut Talk) {
    while !talk.out.is_empty()
        && let Some(to) = &talk.to
    {
        match rustix::io::write(to, &talk.out) {
            Ok(count) => drop(talk.out.drain(..count)),
            Err(rustix::io::Errno::AGAIN) => return,
            Err(rustix::io::Errno::INTR) => {}
            Err(_) => {
                talk.to = None;
                talk.out.clear();
            }
        }
    }
}

fn look_up(hosts: &[(String, u16)]) -> io::Result<Vec<SocketAddr>> {
    let mut found = Vec::new();
    let mut failed = None;
    for (host, port) in hosts {
        match (host.as_str(), *port).to_socket_addrs() {
            Ok(addresses) => found.extend(addresses),
            Err(error) => failed = Some(error),
        }
    }
    match failed {
        Some(error) if found.is_empty() => Err(error),
        _ => Ok(found),
    }
}

type Connecting = (VecDeque<SocketAddr>, Instant, OwnedFd, SocketAddr);

/// Begins to connect to the next address that can be tried; the error of the last one, or `none` without any.
fn connect(mut left: VecDeque<SocketAddr>, none: &str) -> Result<Connecting, String> {
    let mut why = none.to_owned();
    while let Some(address) = left.pop_front() {
        let begun = sys::socket(address, libc::SOCK_STREAM).and_then(|fd| {
            sys::set_option(&fd, libc::IPPROTO_TCP, libc::TCP_NODELAY, 1)?;
            sys::connect(&fd, address)?;
            Ok(fd)
        });
        match begun {
            Ok(fd) => return Ok((left, Instant::now() + CONNECT_WITHIN, fd, address)),
            Err(error) => why = format!("{address} does not accept: {error}"),
        }
    }
    Err(why)
}

type Started = (Talk, Option<Box<dyn AudioSink>>);

fn start(path: &str, args: &[String], environment: &[(String, String)], audio: bool) -> io::Result<Started> {
    let mut command = Command::new(path);
    command
        .args(args)
        .envs(environment.iter().map(|(name, value)| (name, value)))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        // What is sent to our terminal's group is not meant for it.
        .process_group(0);
    sys::process::unblock_signals(&mut command);
    let mut talk = Talk::default();
    let mut sink = None;
    if audio {
        let (reader, writer) = io::pipe()?;
        let (producer, ring) = rtrb::RingBuffer::new(AUDIO_SAMPLES_MAX);
        let pipe = OwnedFd::from(writer);
        rustix::io::ioctl_fionbio(&pipe, true)?;
        sys::process::give_descriptor(&mut command, reader.into(), AUDIO_DESCRIPTOR);
        talk.audio = Some(Audio { ring, pipe, rest: Vec::new() });
        sink = Some(Box::new(AudioEnd(producer)) as Box<dyn AudioSink>);
    }
    let mut child = command.spawn()?;
    let pipes = child.stdin.take().zip(child.stdout.take());
    talk.program = Some(Program::new(child));
    let Some((to, from)) = pipes else { return Err(io::ErrorKind::BrokenPipe.into()) };
    let (to, from) = (OwnedFd::from(to), OwnedFd::from(from));
    rustix::io::ioctl_fionbio(&to, true)?;
    rustix::io::ioctl_fionbio(&from, true)?;
    (talk.to, talk.from) = (Some(to), Some(from));
    Ok((talk, sink))
}
