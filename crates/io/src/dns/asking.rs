//! The thread that asks: many questions at once, each datagram from a port of its own.

use std::collections::{BTreeMap, VecDeque};
use std::io::{Read as _, Write as _};
use std::net::{IpAddr, SocketAddr, TcpStream, ToSocketAddrs as _, UdpSocket};
use std::os::fd::AsFd as _;
use std::sync::mpsc::{Receiver, SyncSender};
use std::time::{Duration, Instant};

use base::dns::{Answer, Kind, Question, Records};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::message::{Asked, Flaw, Record, Reply, Type, UDP_BYTES_MAX};
use super::{Order, Settings, places};
use crate::wake::{Sender, Wake};

/// How long one name is asked for: within the time a dialplan waits.
const ASK: Duration = Duration::from_millis(4_500);
/// How long one server has for its answer.
const TRY: Duration = Duration::from_millis(1_500);
/// Questions open at once; each has one or two sockets. The others wait.
const OPEN_MAX: usize = 128;
/// Shortest time that an answer is kept: the step or the call that asked can still read it.
const KEEP_MIN: Duration = Duration::from_secs(5);
/// Longest time that an answer is kept.
const KEEP_MAX: Duration = Duration::from_secs(3600);
/// How long it is remembered that there are no records, when the zone does not say.
const KEEP_NONE: Duration = Duration::from_secs(60);
/// Longest time that it is remembered that there are none: somebody may be waiting for what has just been added.
const KEEP_NONE_MAX: Duration = Duration::from_secs(300);
/// How long it is remembered that no server answered, or the system has no address.
const KEEP_FAILED: Duration = Duration::from_secs(10);
/// How long an address from a file, or from the system, is kept: neither says.
const KEEP_SYSTEM: Duration = Duration::from_secs(60);
/// Addresses of one name that are kept.
const ADDRESSES_MAX: usize = 16;
/// Names that wait for the system's resolver.
const SYSTEM_MAX: usize = 1024;
/// Longest sleep when nothing is open.
const IDLE: Duration = Duration::from_secs(3600);

/// One question on the wire.
struct Part {
    wanted: Type,
    /// How many servers have been tried.
    tries: usize,
    until: Instant,
    asked: Option<Asked>,
    socket: Option<UdpSocket>,
    came: Came,
}

enum Came {
    /// Nothing yet.
    Open,
    /// All servers were tried.
    Nothing,
    Records(Vec<Record>, Option<Duration>),
}

struct Asking {
    parts: Vec<Part>,
    until: Instant,
    servers: Vec<SocketAddr>,
}

/// See the module's page.
pub(super) struct Thread<R> {
    settings: Settings,
    inbox: Receiver<Order>,
    /// For the threads that wait in our place.
    own: (SyncSender<Order>, Wake),
    answers: Sender<(Question, Answer)>,
    random: R,
    open: BTreeMap<Question, Asking>,
    waiting: VecDeque<Question>,
    /// Names for the system's resolver.
    system: SyncSender<String>,
    stopped: bool,
}

impl<R: FnMut() -> u64> Thread<R> {
    pub(super) fn new(
        settings: Settings,
        inbox: Receiver<Order>,
        own: (SyncSender<Order>, Wake),
        answers: Sender<(Question, Answer)>,
        random: R,
    ) -> std::io::Result<Self> {
        let (system, names) = std::sync::mpsc::sync_channel::<String>(SYSTEM_MAX);
        let (orders, wake) = own.clone();
        std::thread::Builder::new().name("names".to_owned()).spawn(move || {
            while let Ok(name) = names.recv() {
                // The port is only there because the resolver wants one.
                let found = (name.as_str(), 5060).to_socket_addrs();
                let found = found.map(|found| found.map(|at| at.ip()).collect()).unwrap_or_default();
                let question = Question { kind: Kind::Addresses, name };
                if orders.send(Order::System(question, found)).is_err() {
                    return;
                }
                wake.ring();
            }
        })?;
        let (open, waiting) = (BTreeMap::new(), VecDeque::new());
        Ok(Self { settings, inbox, own, answers, random, open, waiting, system, stopped: false })
    }

    pub(super) fn run(mut self) {
        while !self.stopped {
            self.sleep();
            self.own.1.answer_and_clear();
            while let Ok(order) = self.inbox.try_recv() {
                self.obey(order);
            }
            self.listen();
            self.due(Instant::now());
            while self.open.len() < OPEN_MAX
                && let Some(question) = self.waiting.pop_front()
            {
                self.begin(question);
            }
        }
    }
    fn sleep(&self) {
        let now = Instant::now();
        let parts = || self.open.values().flat_map(|asking| &asking.parts);
        let until = parts().filter(|part| matches!(part.came, Came::Open)).map(|part| part.until).min();
        let left = until.map_or(IDLE, |until| until.saturating_duration_since(now));
        // Rounded up: a poll that is over too early is only repeated.
        let left = left + Duration::from_millis(1);
        let timeout = Timespec {
            tv_sec: i64::try_from(left.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: i64::from(left.subsec_nanos()),
        };
        let mut fds = vec![PollFd::new(&self.own.1, PollFlags::IN)];
        fds.extend(
            parts().filter_map(|part| {
                Some(PollFd::from_borrowed_fd(part.socket.as_ref()?.as_fd(), PollFlags::IN))
            }),
        );
        // Whatever woke us, everything is looked at.
        let _woken = poll(&mut fds, Some(&timeout));
    }
    fn obey(&mut self, order: Order) {
        match order {
            Order::Ask(question) => self.waiting.push_back(question),
            Order::Settings(settings) => self.settings = settings,
            Order::System(question, found) => {
                let keep = if found.is_empty() { KEEP_FAILED } else { KEEP_SYSTEM };
                self.tell(question, Some(Records::Addresses(bounded(found))), keep);
            }
            Order::Streamed(question, at, reply) => {
                let part = self.open.get_mut(&question).and_then(|asking| asking.parts.get_mut(at));
                let Some(part) = part.filter(|part| matches!(part.came, Came::Open)) else { return };
                let read = reply.and_then(|reply| part.asked.as_ref()?.read(&reply).ok());
                match read {
                    Some(Reply::Records(records, keep)) => part.came = Came::Records(records, keep),
                    Some(Reply::Truncated) | None => part.until = Instant::now(),
                }
            }
            Order::Stop => self.stopped = true,
        }
    }
    fn tell(&mut self, question: Question, records: Option<Records>, keep: Duration) {
        self.stopped |= self.answers.send_blocking((question, Answer { records, keep })).is_err();
    }

    fn begin(&mut self, question: Question) {
        let host = places::host_of(&question);
        let known = places::hosts(&self.settings, host);
        let is_local = known.is_some() || !host.contains('.');
        if !question.is_askable() {
            return self.tell(question.clone(), Some(Records::none(question.kind)), KEEP_MAX);
        }
        match (question.kind, known) {
            (Kind::Addresses, Some(addresses)) => {
                return self.tell(question, Some(Records::Addresses(bounded(addresses))), KEEP_SYSTEM);
            }
            (Kind::Addresses, None) if is_local => return self.ask_system(question),
            // What a file says of a name is all there is; a name without a dot is one of the local network.
            (Kind::Srv | Kind::Naptr, _) if is_local => {
                let none = Records::none(question.kind);
                return self.tell(question, Some(none), KEEP_SYSTEM);
            }
            _ => {}
        }
        let servers = places::servers(&self.settings);
        let wanted: &[Type] = match question.kind {
            Kind::Addresses => &[Type::Aaaa, Type::A],
            Kind::Srv => &[Type::Srv],
            Kind::Naptr => &[Type::Naptr],
        };
        let now = Instant::now();
        let part = |wanted: &Type| Part {
            wanted: *wanted,
            tries: 0,
            until: now,
            asked: None,
            socket: None,
            came: Came::Open,
        };
        let parts = wanted.iter().map(part).collect();
        self.open.insert(question, Asking { parts, until: now + ASK, servers });
        self.due(now);
    }
    fn ask_system(&mut self, question: Question) {
        if self.system.try_send(question.name.clone()).is_err() {
            self.tell(question, None, KEEP_FAILED);
        }
    }

    /// Takes in what came.
    fn listen(&mut self) {
        let mut buffer = [0; UDP_BYTES_MAX as usize];
        for (question, asking) in &mut self.open {
            for (at, part) in asking.parts.iter_mut().enumerate() {
                while let (Some(socket), Some(asked), Came::Open) = (&part.socket, &part.asked, &part.came) {
                    let read = match socket.recv(&mut buffer) {
                        Ok(length) => asked.read(buffer.get(..length).unwrap_or_default()),
                        Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => break,
                        Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
                        // Nobody is there.
                        Err(_) => Err(Flaw::Refused),
                    };
                    match read {
                        Ok(Reply::Records(records, keep)) => part.came = Came::Records(records, keep),
                        Ok(Reply::Truncated) => {
                            part.socket = None;
                            ask_by_stream(&self.own, question, at, (part.tries, asked), &asking.servers);
                        }
                        Err(Flaw::NotOurs) => {}
                        Err(Flaw::Malformed | Flaw::Refused) => {
                            part.socket = None;
                            part.until = Instant::now();
                        }
                    }
                }
            }
        }
    }
    /// Tries the next server where one has had its time, and answers what has come to something.
    fn due(&mut self, now: Instant) {
        for (question, asking) in &mut self.open {
            for part in &mut asking.parts {
                while matches!(part.came, Came::Open) && part.until <= now {
                    try_next(question, (part, asking.until), &asking.servers, &mut self.random, now);
                }
            }
        }
        let over = |asking: &Asking| asking.parts.iter().all(|part| !matches!(part.came, Came::Open));
        let over: Vec<Question> = self
            .open
            .iter()
            .filter(|(_, asking)| over(asking))
            .map(|(question, _)| question.clone())
            .collect();
        for question in over {
            if let Some(asking) = self.open.remove(&question) {
                self.answer(question, asking);
            }
        }
    }
    fn answer(&mut self, question: Question, asking: Asking) {
        let (mut records, mut keep, mut none, mut answered) = (Vec::new(), KEEP_MAX, None, true);
        for part in asking.parts {
            match part.came {
                Came::Records(some, lasts) if some.is_empty() => {
                    none = none.max(Some(lasts.unwrap_or(KEEP_NONE)));
                }
                Came::Records(some, lasts) => {
                    keep = keep.min(lasts.unwrap_or(KEEP_NONE));
                    records.extend(some);
                }
                Came::Nothing | Came::Open => answered = false,
            }
        }
        if records.is_empty() && question.kind == Kind::Addresses {
            // Other sources of the system may know it.
            return self.ask_system(question);
        }
        if records.is_empty() {
            let none = none.filter(|_| answered).map(|none| none.clamp(KEEP_MIN, KEEP_NONE_MAX));
            let found = none.map(|_| Records::none(question.kind));
            return self.tell(question, found, none.unwrap_or(KEEP_FAILED));
        }
        let mut addresses = Vec::new();
        let (mut services, mut ways) = (Vec::new(), Vec::new());
        for record in records {
            match record {
                Record::Address(address) => addresses.push(address),
                Record::Srv(service) => services.push(service),
                Record::Naptr(way) => ways.push(way),
            }
        }
        let found = match question.kind {
            Kind::Addresses => {
                // RFC 6724 §6 rule 1: what cannot be reached from here comes last.
                addresses.sort_by_key(|ip| !is_routed(*ip));
                Records::Addresses(bounded(addresses))
            }
            Kind::Srv => Records::Srv(services.into()),
            Kind::Naptr => Records::Naptr(ways.into()),
        };
        self.tell(question, Some(found), keep.clamp(KEEP_MIN, KEEP_MAX));
    }
}

/// Asks the next server; all of them twice, for an answer may be lost. The second time the answer need not repeat the
/// case of the question: some middleboxes do not.
fn try_next(
    question: &Question,
    (part, until): (&mut Part, Instant),
    servers: &[SocketAddr],
    random: &mut impl FnMut() -> u64,
    now: Instant,
) {
    (part.socket, part.asked) = (None, None);
    let server = servers.iter().chain(servers).nth(part.tries).filter(|_| now < until);
    let Some(server) = server else {
        part.came = Came::Nothing;
        return;
    };
    let exact = part.tries < servers.len();
    part.tries += 1;
    let (mut case, id) = (random(), random() as u16);
    let turn = |letter: char| {
        case = case.rotate_right(1);
        if case & 1 == 1 { letter.to_ascii_uppercase() } else { letter }
    };
    let name = question.name.chars().map(turn).collect();
    let asked = Asked { id, wanted: part.wanted, name, exact };
    // A socket that cannot be had, or a network that is not there: the next one at once.
    if let Some(socket) = asked.bytes().and_then(|bytes| ask_server(*server, &bytes).ok()) {
        (part.socket, part.asked) = (Some(socket), Some(asked));
        part.until = (now + TRY).min(until);
    }
}

fn ask_server(server: SocketAddr, question: &[u8]) -> std::io::Result<UdpSocket> {
    let any: IpAddr = if server.is_ipv4() { [0; 4].into() } else { [0; 16].into() };
    let socket = UdpSocket::bind((any, 0))?;
    // Connected: nobody else's datagrams arrive.
    socket.connect(server)?;
    socket.set_nonblocking(true)?;
    socket.send(question)?;
    Ok(socket)
}

/// The same over TCP (RFC 7766), by a thread of its own: few answers are that long.
fn ask_by_stream(
    own: &(SyncSender<Order>, Wake),
    question: &Question,
    at: usize,
    (tries, asked): (usize, &Asked),
    servers: &[SocketAddr],
) {
    let (orders, wake) = own.clone();
    let server = servers.iter().chain(servers).nth(tries.saturating_sub(1)).copied();
    let (question, bytes) = (question.clone(), asked.bytes());
    // Without a thread the time runs out and the next server is asked.
    let _started = std::thread::Builder::new().name("dns-stream".to_owned()).spawn(move || {
        let reply = server.zip(bytes).and_then(|(server, bytes)| streamed(server, &bytes).ok());
        if orders.send(Order::Streamed(question, at, reply)).is_ok() {
            wake.ring();
        }
    });
}

fn streamed(server: SocketAddr, question: &[u8]) -> std::io::Result<Vec<u8>> {
    let mut stream = TcpStream::connect_timeout(&server, TRY)?;
    stream.set_read_timeout(Some(TRY))?;
    stream.set_write_timeout(Some(TRY))?;
    let mut message = u16::try_from(question.len()).unwrap_or(u16::MAX).to_be_bytes().to_vec();
    message.extend(question);
    stream.write_all(&message)?;
    let mut length = [0; 2];
    stream.read_exact(&mut length)?;
    let mut reply = vec![0; usize::from(u16::from_be_bytes(length))];
    stream.read_exact(&mut reply)?;
    Ok(reply)
}

fn bounded(mut addresses: Vec<IpAddr>) -> std::sync::Arc<[IpAddr]> {
    addresses.truncate(ADDRESSES_MAX);
    addresses.into()
}

/// Whether a route leads there; connecting a datagram socket sends nothing.
fn is_routed(ip: IpAddr) -> bool {
    let any: IpAddr = if ip.is_ipv4() { [0; 4].into() } else { [0; 16].into() };
    UdpSocket::bind((any, 0)).and_then(|socket| socket.connect((ip, 53))).is_ok()
}
