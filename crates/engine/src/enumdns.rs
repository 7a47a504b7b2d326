//! NAPTR records for `ENUMLOOKUP()`: asked for on threads of their own, kept for as long as the DNS allows.
//!
//! Host names stay with the system's resolver ([`crate::resolve`]), which knows no NAPTR; a slow answer here holds no
//! other name up.

use std::collections::HashMap;
use std::io::{Read as _, Write as _};
use std::net::{IpAddr, SocketAddr, TcpStream, UdpSocket};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use base::Instant;
use call::{Naptr, NaptrAnswer};
use io::wake::{Receiver, Sender, queue};
use store::config::resolver::Resolver as Settings;

use crate::dns::{self, Answer};

/// Questions that wait, and answers that wait.
const WAITING_MAX: usize = 256;
/// Threads that ask, started when they are needed: so many servers may be silent at once without holding up the rest.
const THREADS_MAX: usize = 4;
/// Names remembered; beyond it all are asked for again.
const KNOWN_MAX: usize = 4096;
/// How long one name is asked for: within the time a dialplan waits.
const ASK: Duration = Duration::from_millis(4_500);
/// How long one server has for its answer.
const TRY: Duration = Duration::from_millis(1_500);
/// Shortest time that an answer is kept, so that the step which asked can read it.
const KEEP_MIN: Duration = Duration::from_secs(5);
/// Longest time that an answer is kept.
const KEEP_MAX: Duration = Duration::from_secs(3600);
/// How long it is remembered that a name has no records.
const KEEP_NONE: Duration = Duration::from_secs(60);
/// Servers that are asked, one after the other (resolv.conf names at most three).
const SERVERS_MAX: usize = 4;
/// The DNS's port.
const PORT: u16 = 53;

struct Question {
    name: String,
    servers: Arc<Servers>,
}

/// What a look-up found; `None` when no server gave a usable answer.
pub(crate) struct Found {
    name: String,
    answer: Option<(Arc<[Naptr]>, Duration)>,
}

/// Who is asked.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Servers {
    named: Vec<SocketAddr>,
    /// Read when none is named.
    file: String,
}

impl Servers {
    fn of(settings: &Settings) -> Self {
        let named = settings.nameserver.iter().map(|server| server.or_port(PORT)).collect();
        Self { named, file: settings.resolv_conf().to_owned() }
    }
    fn addresses(&self) -> Vec<SocketAddr> {
        let mut found = self.named.clone();
        if found.is_empty() {
            let text = std::fs::read_to_string(&self.file).unwrap_or_default();
            found.extend(resolv_conf(&text));
        }
        found.truncate(SERVERS_MAX);
        found
    }
}

/// The servers of a resolv.conf.
fn resolv_conf(text: &str) -> Vec<SocketAddr> {
    let lines = text.lines().filter_map(|line| line.trim().strip_prefix("nameserver"));
    lines.filter_map(|rest| Some(SocketAddr::new(rest.trim().parse::<IpAddr>().ok()?, PORT))).collect()
}

enum Known {
    Asked,
    Answered { records: Option<Arc<[Naptr]>>, until: Instant },
}

/// The loop's end.
pub(crate) struct EnumDns {
    servers: Arc<Servers>,
    wanted: SyncSender<Question>,
    inbox: Arc<Mutex<std::sync::mpsc::Receiver<Question>>>,
    answers: Sender<Found>,
    found: Receiver<Found>,
    threads: usize,
    /// Names asked for and not answered.
    open: usize,
    known: HashMap<String, Known>,
}

impl EnumDns {
    pub(crate) fn new(settings: &Settings) -> std::io::Result<Self> {
        let (wanted, inbox) = sync_channel(WAITING_MAX);
        let (answers, found) = queue(WAITING_MAX)?;
        Ok(Self {
            servers: Arc::new(Servers::of(settings)),
            wanted,
            inbox: Arc::new(Mutex::new(inbox)),
            answers,
            found,
            threads: 0,
            open: 0,
            known: HashMap::new(),
        })
    }
    pub(crate) fn configure(&mut self, settings: &Settings) {
        let servers = Servers::of(settings);
        if servers != *self.servers {
            self.servers = Arc::new(servers);
            self.known.retain(|_, known| matches!(known, Known::Asked));
        }
    }
    pub(crate) fn found(&self) -> &Receiver<Found> {
        &self.found
    }
    /// What is known of a name; asks when nothing is.
    pub(crate) fn ask(&mut self, name: &str, now: Instant) -> NaptrAnswer {
        match self.known.get(name) {
            Some(Known::Asked) => return NaptrAnswer::Loading,
            Some(Known::Answered { records, until }) if now < *until => {
                return records.clone().map_or(NaptrAnswer::Failed, NaptrAnswer::Ready);
            }
            Some(Known::Answered { .. }) | None => {}
        }
        if self.known.len() >= KNOWN_MAX {
            self.known.retain(|_, known| matches!(known, Known::Asked));
        }
        let question = Question { name: name.to_owned(), servers: self.servers.clone() };
        // With the queue full the name is not asked for: the call goes on as without an answer.
        if self.wanted.try_send(question).is_err() {
            return NaptrAnswer::Failed;
        }
        self.known.insert(name.to_owned(), Known::Asked);
        self.open += 1;
        if self.open > self.threads && self.threads < THREADS_MAX {
            self.start_thread();
        }
        if self.threads == 0 { NaptrAnswer::Failed } else { NaptrAnswer::Loading }
    }
    fn start_thread(&mut self) {
        let (inbox, answers) = (self.inbox.clone(), self.answers.clone());
        let name = format!("enum-{}", self.threads + 1);
        let started = std::thread::Builder::new().name(name).spawn(move || {
            loop {
                let question = inbox.lock().unwrap_or_else(PoisonError::into_inner).recv();
                let Ok(Question { name, servers }) = question else { return };
                let answer = look_up(&name, &servers.addresses());
                if answers.send_blocking(Found { name, answer }).is_err() {
                    return;
                }
            }
        });
        self.threads += usize::from(started.is_ok());
    }
    /// Takes the answers in; whether there were any.
    pub(crate) fn take_in(&mut self, now: Instant) -> bool {
        let mut came = Vec::new();
        self.found.drain(|found| came.push(found));
        let any = !came.is_empty();
        for Found { name, answer } in came {
            self.open = self.open.saturating_sub(1);
            let (records, keep) = answer
                .map_or((None, KEEP_MIN), |(records, keep)| (Some(records), keep.clamp(KEEP_MIN, KEEP_MAX)));
            self.known.insert(name, Known::Answered { records, until: now + keep });
        }
        any
    }
}

fn look_up(name: &str, servers: &[SocketAddr]) -> Option<(Arc<[Naptr]>, Duration)> {
    let until = std::time::Instant::now() + ASK;
    // Once more around for servers whose answer was lost.
    for server in servers.iter().chain(servers) {
        let left = until.saturating_duration_since(std::time::Instant::now()).min(TRY);
        if left.is_zero() {
            break;
        }
        if let Some((records, keep)) = ask_server(name, *server, left) {
            let keep = if records.is_empty() { KEEP_NONE } else { keep.unwrap_or(KEEP_NONE) };
            return Some((records.into(), keep));
        }
    }
    None
}

type Records = (Vec<Naptr>, Option<Duration>);

/// Asks one server, by a datagram from a port of its own and, when the answer does not fit one, over TCP.
fn ask_server(name: &str, server: SocketAddr, wait: Duration) -> Option<Records> {
    let id = u16::from_le_bytes(crate::secret());
    let question = dns::question(id, name)?;
    let any: IpAddr = if server.is_ipv4() { [0; 4].into() } else { [0; 16].into() };
    let socket = UdpSocket::bind((any, 0)).ok()?;
    // Connected: nobody else's datagrams arrive.
    socket.connect(server).ok()?;
    socket.send(&question).ok()?;
    let until = std::time::Instant::now() + wait;
    let mut buffer = [0; dns::UDP_BYTES_MAX as usize];
    loop {
        let left = until.saturating_duration_since(std::time::Instant::now());
        socket.set_read_timeout((!left.is_zero()).then_some(left)).ok()?;
        if left.is_zero() {
            return None;
        }
        let length = match socket.recv(&mut buffer) {
            Ok(length) => length,
            // As when the process is stopped for a while and goes on.
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
            Err(_) => return None,
        };
        match dns::answer(buffer.get(..length)?, id, name) {
            Ok(Answer::Records(records, keep)) => return Some((records, keep)),
            Ok(Answer::Truncated) => return ask_by_stream(name, id, &question, server, wait),
            Err(dns::Flaw::NotOurs) => {}
            Err(dns::Flaw::Malformed | dns::Flaw::Refused) => return None,
        }
    }
}

/// The same over TCP (RFC 7766).
fn ask_by_stream(
    name: &str,
    id: u16,
    question: &[u8],
    server: SocketAddr,
    wait: Duration,
) -> Option<Records> {
    let mut stream = TcpStream::connect_timeout(&server, wait).ok()?;
    stream.set_read_timeout(Some(wait)).ok()?;
    stream.set_write_timeout(Some(wait)).ok()?;
    let mut message = u16::try_from(question.len()).ok()?.to_be_bytes().to_vec();
    message.extend(question);
    stream.write_all(&message).ok()?;
    let mut length = [0; 2];
    stream.read_exact(&mut length).ok()?;
    let mut reply = vec![0; usize::from(u16::from_be_bytes(length))];
    stream.read_exact(&mut reply).ok()?;
    match dns::answer(&reply, id, name) {
        Ok(Answer::Records(records, keep)) => Some((records, keep)),
        Ok(Answer::Truncated) | Err(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dns::tests::{message, naptr};

    type Reply = fn(&[u8]) -> Vec<u8>;

    /// A server that answers `replies` times, the first ones with nothing that helps.
    fn server(replies: Vec<Reply>) -> SocketAddr {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let address = socket.local_addr().unwrap();
        std::thread::spawn(move || {
            let mut buffer = [0; 512];
            let (length, from) = socket.recv_from(&mut buffer).unwrap();
            for reply in replies {
                socket.send_to(&reply(&buffer[..length]), from).unwrap();
            }
        });
        address
    }
    fn one_record(question: &[u8]) -> Vec<u8> {
        message(question, 0, &[(vec![0xc0, 12], 35, naptr(1, "!^.*$!sip:a@example.com!"))])
    }
    fn guessed(question: &[u8]) -> Vec<u8> {
        let mut reply = one_record(question);
        reply[0] ^= 0xff;
        reply
    }

    #[test]
    fn rfc5452_9_1_guessed_answers_do_not_count_and_the_next_server_is_asked() {
        let refusing = server(vec![|question| message(question, 2, &[])]);
        let good = server(vec![guessed, one_record]);
        let (records, keep) = look_up("1.2.e164.arpa", &[refusing, good]).unwrap();
        assert_eq!((records.len(), keep), (1, Duration::from_secs(300)));
        assert_eq!(records[0].regexp, "!^.*$!sip:a@example.com!");
        assert!(look_up("1.2.e164.arpa", &[]).is_none());
    }

    #[test]
    fn an_answer_is_kept_as_long_as_the_dns_allows() {
        let mut names = EnumDns::new(&Settings::default()).unwrap();
        names.servers = Arc::new(Servers { named: vec![server(vec![one_record])], file: String::new() });
        let start = Instant::ZERO;
        assert_eq!(names.ask("1.e164.arpa", start), NaptrAnswer::Loading);
        assert_eq!(names.ask("1.e164.arpa", start), NaptrAnswer::Loading, "asked once");
        let deadline = std::time::Instant::now() + Duration::from_secs(60);
        while !names.take_in(start) {
            assert!(std::time::Instant::now() < deadline, "no answer");
            std::thread::yield_now();
        }
        let known = |names: &mut EnumDns, seconds| matches!(names.ask("1.e164.arpa", start + Duration::from_secs(seconds)), NaptrAnswer::Ready(records) if records.len() == 1);
        assert!(known(&mut names, 299));
        assert_eq!((names.open, names.threads), (0, 1));
        assert!(!known(&mut names, 300));
        assert_eq!(names.open, 1, "asked again");
    }

    #[test]
    fn servers_stand_in_resolv_conf() {
        let text =
            "# comment\nnameserver 192.0.2.53\nsearch example.com\nnameserver\t2001:db8::53\nnameserver x\n";
        let expected: Vec<SocketAddr> =
            vec!["192.0.2.53:53".parse().unwrap(), "[2001:db8::53]:53".parse().unwrap()];
        assert_eq!(resolv_conf(text), expected);
    }
}
