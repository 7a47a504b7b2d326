//! Phones that register, each time anew: REGISTER, challenge, REGISTER with the proof, 200.

use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use loadtest::Histogram;

use crate::message::{authorization, header, status};
use crate::pace::Pacer;

/// Phones at work; they stop when this goes.
#[derive(Debug)]
pub struct Registrars {
    counts: Arc<Counts>,
    stop: Arc<AtomicBool>,
    // Before the answering thread, so that nothing is sent that nobody answers.
    pacer: Option<Pacer>,
    answers: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Counts {
    registered: AtomicU64,
    refused: AtomicU64,
    /// When each phone began, and how long they took from REGISTER to 200.
    times: Mutex<(Vec<Option<Instant>>, Histogram)>,
}

impl Counts {
    fn begun(&self, phone: u64) {
        let mut times = self.times.lock().expect("nobody panics with it");
        let place = usize::try_from(phone).expect("phones are few");
        if times.0.len() <= place {
            times.0.resize(place + 1, None);
        }
        times.0[place] = Some(Instant::now());
    }
    fn done(&self, phone: u64) {
        let mut times = self.times.lock().expect("nobody panics with it");
        let begun = usize::try_from(phone).ok().and_then(|place| times.0.get_mut(place)?.take());
        if let Some(begun) = begun {
            times.1.add(begun.elapsed());
        }
    }
}

impl Registrars {
    /// Lets `phones` phones, named `phone0` and so on, register in turn, together `rate` times a second.
    pub fn start(server: SocketAddr, ip: IpAddr, phones: u64, secret: &str, rate: u32) -> Self {
        let socket = UdpSocket::bind((ip, 0)).expect("a port for SIP");
        socket.connect(server).expect("a way to the program");
        socket.set_read_timeout(Some(Duration::from_millis(100))).expect("a time-out");
        let writer = Writer { local: socket.local_addr().expect("an address"), server };
        let (counts, stop) = (Arc::new(Counts::default()), Arc::new(AtomicBool::new(false)));
        let answers = std::thread::spawn({
            let socket = socket.try_clone().expect("a second handle");
            let (counts, stop, secret) = (counts.clone(), stop.clone(), secret.to_owned());
            move || {
                let mut buffer = vec![0; 65_536];
                while !stop.load(Relaxed) {
                    let Ok(length) = socket.recv(&mut buffer) else { continue };
                    let text = String::from_utf8_lossy(&buffer[..length]);
                    if let Some(reply) = reaction(&text, &writer, &secret, &counts) {
                        let _ = socket.send(reply.as_bytes());
                    }
                }
            }
        });
        let begun = counts.clone();
        let pacer = Pacer::start(rate, u64::MAX, move |number| {
            begun.begun(number % phones);
            let sequence = 1 + 2 * (number / phones);
            let _ = socket.send(writer.register(number % phones, sequence, "").as_bytes());
        });
        Self { counts, stop, pacer: Some(pacer), answers: Some(answers) }
    }

    /// Registrations that have been granted.
    pub fn registered(&self) -> u64 {
        self.counts.registered.load(Relaxed)
    }

    /// How long registrations took since the last time this was asked, from the first REGISTER to 200.
    pub fn take_times(&self) -> Histogram {
        std::mem::take(&mut self.counts.times.lock().expect("nobody panics with it").1)
    }

    /// Registrations that were refused.
    pub fn refused(&self) -> u64 {
        self.counts.refused.load(Relaxed)
    }
}

impl Drop for Registrars {
    fn drop(&mut self) {
        self.pacer = None;
        self.stop.store(true, Relaxed);
        if let Some(thread) = self.answers.take() {
            let joined = thread.join();
            assert!(joined.is_ok() || std::thread::panicking(), "the thread that answers has panicked");
        }
    }
}

fn reaction(text: &str, writer: &Writer, secret: &str, counts: &Counts) -> Option<String> {
    match status(text)? {
        200 => {
            counts.registered.fetch_add(1, Relaxed);
            let phone = header(text, "Call-ID").and_then(|id| id.split('-').nth(1)?.parse().ok());
            phone.into_iter().for_each(|phone| counts.done(phone));
            None
        }
        401 => {
            let phone = header(text, "Call-ID")?.split('-').nth(1)?.parse().ok()?;
            let sequence: u64 = header(text, "CSeq")?.split(' ').next()?.parse().ok()?;
            let challenge = header(text, "WWW-Authenticate")?;
            let uri = format!("sip:{}", writer.server);
            let proof = authorization(challenge, &format!("phone{phone}"), secret, "REGISTER", &uri);
            Some(writer.register(phone, sequence + 1, &proof))
        }
        _ => {
            counts.refused.fetch_add(1, Relaxed);
            None
        }
    }
}

#[derive(Debug, Clone, Copy)]
struct Writer {
    local: SocketAddr,
    server: SocketAddr,
}

impl Writer {
    fn register(&self, phone: u64, sequence: u64, proof: &str) -> String {
        let Self { local, server } = self;
        format!(
            "REGISTER sip:{server} SIP/2.0\r\nVia: SIP/2.0/UDP {local};rport;branch=z9hG4bK-{phone}-{sequence}\r\n\
             Max-Forwards: 70\r\nFrom: <sip:phone{phone}@{server}>;tag=f{phone}\r\nTo: <sip:phone{phone}@{server}>\r\n\
             Call-ID: load-{phone}-{local}\r\nCSeq: {sequence} REGISTER\r\nContact: <sip:phone{phone}@{local}>\r\n\
             Expires: 3600\r\nAllow: INVITE, ACK, CANCEL, OPTIONS, BYE, REFER, NOTIFY, INFO\r\n\
             User-Agent: loadbench\r\n{proof}Content-Length: 0\r\n\r\n"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_challenged_phone_proves_itself_in_the_next_request() {
        let writer =
            Writer { local: "127.0.0.2:5070".parse().unwrap(), server: "127.0.0.1:5060".parse().unwrap() };
        let challenge = "SIP/2.0 401 Unauthorized\r\nCall-ID: load-3-x\r\nCSeq: 9 REGISTER\r\n\
                         WWW-Authenticate: Digest realm=\"r\",nonce=\"n\",algorithm=MD5,qop=\"auth\"\r\n\r\n";
        let counts = Counts::default();
        let reply = reaction(challenge, &writer, "s", &counts).unwrap();
        assert_eq!(header(&reply, "CSeq"), Some("10 REGISTER"));
        assert!(
            reply.contains("Authorization: Digest username=\"phone3\",realm=\"r\",nonce=\"n\""),
            "{reply}"
        );
        assert_eq!(reaction("SIP/2.0 200 OK\r\n\r\n", &writer, "s", &counts), None);
        assert_eq!(counts.registered.load(Relaxed), 1);
    }
}
