//! Callers: INVITE, the answer to a challenge, ACK, and 200 to the BYE of the program.
//!
//! One thread sends what is due, one answers what comes; neither keeps anything of a call, because every message of the
//! program carries all that the next one needs. So a call costs the generator little, and the measured side has the rest
//! of a small machine.

use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::message::{authorization, header, ok, status};
use crate::pace::Pacer;

/// What callers do.
#[derive(Debug, Clone)]
pub struct Plan {
    /// Where the program listens.
    pub server: SocketAddr,
    /// Where the callers are.
    pub ip: IpAddr,
    /// User name, also that of the account.
    pub user: String,
    /// Password, for a program that asks.
    pub secret: String,
    /// Extension that they dial.
    pub exten: String,
    /// Calls a second.
    pub rate: u32,
    /// Calls at most.
    pub limit: u64,
    /// Port for audio, as offered.
    pub audio: u16,
}

/// What has happened so far.
#[derive(Debug, Default)]
struct Counts {
    answered: AtomicU64,
    ended: AtomicU64,
    refused: AtomicU64,
}

/// Callers at work; they stop when this goes.
#[derive(Debug)]
pub struct Callers {
    counts: Arc<Counts>,
    stop: Arc<AtomicBool>,
    // Before the answering thread, so that nothing is sent that nobody answers.
    pacer: Option<Pacer>,
    answers: Option<JoinHandle<()>>,
}

impl Callers {
    /// Begins to call.
    pub fn start(plan: Plan) -> Self {
        let socket = UdpSocket::bind((plan.ip, 0)).expect("a port for SIP");
        socket.connect(plan.server).expect("a way to the program");
        socket.set_read_timeout(Some(Duration::from_millis(100))).expect("a time-out");
        // The system may give a port again while the program still remembers a call from there.
        static RUNS: AtomicU64 = AtomicU64::new(0);
        let run = RUNS.fetch_add(1, Relaxed);
        let writer = Writer { local: socket.local_addr().expect("an address"), run, plan };
        let (counts, stop) = (Arc::new(Counts::default()), Arc::new(AtomicBool::new(false)));
        let answers = std::thread::spawn({
            let (socket, writer) = (socket.try_clone().expect("a second handle"), writer.clone());
            let (counts, stop) = (counts.clone(), stop.clone());
            move || answer(&socket, &writer, &counts, &stop)
        });
        let (rate, limit) = (writer.plan.rate, writer.plan.limit);
        let pacer = Pacer::start(rate, limit, move |number| {
            // A datagram that does not fit counts as a call that did not end.
            let _ = socket.send(writer.invite(number, 1, "").as_bytes());
        });
        Self { counts, stop, pacer: Some(pacer), answers: Some(answers) }
    }

    /// Calls whose 200 OK has come.
    pub fn answered(&self) -> u64 {
        self.counts.answered.load(Relaxed)
    }

    /// Calls that the program has ended after it had answered them.
    pub fn ended(&self) -> u64 {
        self.counts.ended.load(Relaxed)
    }

    /// Calls that were refused, by any final response but 401.
    pub fn refused(&self) -> u64 {
        self.counts.refused.load(Relaxed)
    }
}

impl Drop for Callers {
    fn drop(&mut self) {
        self.pacer = None;
        self.stop.store(true, Relaxed);
        if let Some(thread) = self.answers.take() {
            let joined = thread.join();
            assert!(joined.is_ok() || std::thread::panicking(), "the thread that answers has panicked");
        }
    }
}

fn answer(socket: &UdpSocket, writer: &Writer, counts: &Counts, stop: &AtomicBool) {
    let mut buffer = vec![0; 65_536];
    while !stop.load(Relaxed) {
        let Ok(length) = socket.recv(&mut buffer) else { continue };
        let text = String::from_utf8_lossy(&buffer[..length]);
        for reply in reaction(&text, writer, counts).unwrap_or_default() {
            let _ = socket.send(reply.as_bytes());
        }
    }
}

/// What a message of the program asks for.
fn reaction(text: &str, writer: &Writer, counts: &Counts) -> Option<Vec<String>> {
    let Some(status) = status(text) else {
        if text.starts_with("BYE ") {
            counts.ended.fetch_add(1, Relaxed);
        }
        return Some(vec![ok(text)]);
    };
    let (sequence, method) = header(text, "CSeq")?.split_once(' ')?;
    let number = header(text, "Call-ID")?.split('-').nth(1)?.parse().ok()?;
    if method != "INVITE" || status < 200 {
        return None;
    }
    let sequence = sequence.parse().ok()?;
    let to = header(text, "To")?;
    match status {
        200 => {
            counts.answered.fetch_add(1, Relaxed);
            Some(vec![writer.ack(number, sequence, to, "ok")])
        }
        401 => {
            let challenge = header(text, "WWW-Authenticate")?;
            let plan = &writer.plan;
            let proof = authorization(challenge, &plan.user, &plan.secret, "INVITE", &writer.target());
            Some(vec![writer.ack(number, sequence, to, ""), writer.invite(number, sequence + 1, &proof)])
        }
        _ => {
            counts.refused.fetch_add(1, Relaxed);
            Some(vec![writer.ack(number, sequence, to, "")])
        }
    }
}

/// Writes the messages of one plan.
#[derive(Debug, Clone)]
struct Writer {
    local: SocketAddr,
    /// Tells calls from those of others who had the same port before.
    run: u64,
    plan: Plan,
}

impl Writer {
    fn target(&self) -> String {
        format!("sip:{}@{}", self.plan.exten, self.plan.server)
    }

    fn invite(&self, number: u64, sequence: u32, proof: &str) -> String {
        let ip = self.local.ip();
        let body = format!(
            "v=0\r\no=load {number} 1 IN IP4 {ip}\r\ns=-\r\nc=IN IP4 {ip}\r\nt=0 0\r\nm=audio {} RTP/AVP 0 8 101\r\n\
             a=rtpmap:0 PCMU/8000\r\na=rtpmap:8 PCMA/8000\r\na=rtpmap:101 telephone-event/8000\r\n\
             a=fmtp:101 0-15\r\na=ptime:20\r\na=sendrecv\r\n",
            self.plan.audio
        );
        let head = self.head("INVITE", number, sequence, "", &format!("<{}>", self.target()));
        let (user, local) = (&self.plan.user, self.local);
        format!(
            "{head}Contact: <sip:{user}@{local}>\r\nAllow: INVITE, ACK, CANCEL, OPTIONS, BYE, REFER, NOTIFY, INFO\r\n\
             Supported: replaces, timer\r\nUser-Agent: loadbench\r\n{proof}Content-Type: application/sdp\r\n\
             Content-Length: {}\r\n\r\n{body}",
            body.len()
        )
    }

    /// An ACK: of a transaction of its own for 200, of the INVITE's for the rest.
    fn ack(&self, number: u64, sequence: u32, to: &str, own: &str) -> String {
        self.head("ACK", number, sequence, own, to) + "Content-Length: 0\r\n\r\n"
    }

    fn head(&self, method: &str, number: u64, sequence: u32, branch: &str, to: &str) -> String {
        let (local, run, user, target) = (self.local, self.run, &self.plan.user, self.target());
        format!(
            "{method} {target} SIP/2.0\r\nVia: SIP/2.0/UDP {local};rport;branch=z9hG4bK-{run}-{number}-{sequence}{branch}\r\n\
             Max-Forwards: 70\r\nFrom: \"Load\" <sip:{user}@{server}>;tag=f{number}\r\nTo: {to}\r\n\
             Call-ID: load-{number}-{run}-{local}\r\nCSeq: {sequence} {method}\r\n",
            server = self.plan.server
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn writer(run: u64) -> Writer {
        Writer {
            local: "127.0.0.2:5070".parse().unwrap(),
            run,
            plan: Plan {
                server: "127.0.0.1:5060".parse().unwrap(),
                ip: "127.0.0.2".parse().unwrap(),
                user: "load".into(),
                secret: "secret".into(),
                exten: "100".into(),
                rate: 1,
                limit: 1,
                audio: 4000,
            },
        }
    }

    fn response(line: &str, more: &str) -> String {
        format!(
            "SIP/2.0 {line}\r\nTo: <sip:100@h>;tag=x\r\nCall-ID: load-7-0-127.0.0.2:5070\r\nCSeq: 1 INVITE\r\n{more}\r\n"
        )
    }

    #[test]
    fn the_program_s_messages_are_answered_by_what_they_are() {
        let (writer, counts) = (writer(0), Counts::default());
        let challenge = "WWW-Authenticate: Digest realm=\"r\",nonce=\"n\",algorithm=MD5,qop=\"auth\"\r\n";
        for (name, text, lines) in [
            ("provisional", response("180 Ringing", ""), vec![]),
            ("answer", response("200 OK", ""), vec!["ACK "]),
            ("busy", response("486 Busy Here", ""), vec!["ACK "]),
            ("challenge", response("401 Unauthorized", challenge), vec!["ACK ", "INVITE "]),
            ("end", "BYE sip:load@h SIP/2.0\r\n\r\n".to_owned(), vec!["SIP/2.0 200"]),
        ] {
            let replies = reaction(&text, &writer, &counts).unwrap_or_default();
            assert_eq!(replies.len(), lines.len(), "{name}");
            assert!(
                replies.iter().zip(lines).all(|(reply, line)| reply.starts_with(line)),
                "{name}: {replies:?}"
            );
        }
        let counted = [&counts.answered, &counts.refused, &counts.ended].map(|count| count.load(Relaxed));
        assert_eq!(counted, [1, 1, 1]);
    }

    #[test]
    fn rfc3261_17_1_1_3_only_the_ack_of_a_200_has_a_branch_of_its_own() {
        let writer = writer(0);
        let via = |text: &str| header(text, "Via").unwrap().to_owned();
        let invite = writer.invite(7, 1, "");
        assert_eq!(via(&writer.ack(7, 1, "<sip:100@h>", "")), via(&invite));
        assert_ne!(via(&writer.ack(7, 1, "<sip:100@h>", "ok")), via(&invite));
    }

    #[test]
    fn rfc3261_8_1_1_4_a_port_that_is_given_again_makes_no_call_of_an_earlier_one() {
        let invites = [0, 1].map(|run| writer(run).invite(0, 1, ""));
        for name in ["Via", "Call-ID"] {
            assert_ne!(header(&invites[0], name), header(&invites[1], name), "{name}");
        }
    }
}
