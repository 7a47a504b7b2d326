//! What a phone says again, because datagrams get lost when a machine is busy (RFC 3261 §17).

use crate::message::Message;
use std::collections::HashMap;
use std::time::{Duration, Instant};

/// T1 and T2: first time until something is said again, and the longest.
const FIRST: Duration = Duration::from_millis(500);
const LONGEST: Duration = Duration::from_secs(4);
/// 64 times T1: after that nobody answers.
const GIVE_UP: Duration = Duration::from_secs(32);

#[derive(Debug)]
struct Waiting {
    key: String,
    bytes: Vec<u8>,
    since: Instant,
    again: Instant,
    interval: Duration,
}

/// What waits for an answer, and what was answered.
#[derive(Debug, Default)]
pub(crate) struct Repeats {
    waiting: Vec<Waiting>,
    answers: HashMap<String, Vec<u8>>,
}

/// The transaction of a message: the same for a request and its responses.
pub(crate) fn transaction(message: &Message) -> String {
    let method = message.header("CSeq").and_then(|value| value.split_whitespace().nth(1));
    format!("{} {}", message.branch(), method.unwrap_or_default())
}

/// What ends the wait of a final response to an INVITE.
fn acknowledged(message: &Message) -> String {
    format!("ACK {}", message.header("Call-ID").unwrap_or_default())
}

impl Repeats {
    /// A request was sent that wants a response.
    pub(crate) fn asked(&mut self, branch: &str, method: &str, bytes: &[u8]) {
        if method != "ACK" {
            self.wait(format!("{branch} {method}"), bytes);
        }
    }
    /// A request was answered; a final response to an INVITE wants an ACK.
    pub(crate) fn answered(&mut self, request: &Message, status: u16, bytes: &[u8]) {
        self.answers.insert(transaction(request), bytes.to_vec());
        if request.method() == "INVITE" && status >= 200 {
            self.wait(acknowledged(request), bytes);
        }
    }
    /// A final response was acknowledged.
    pub(crate) fn acknowledges(&mut self, response: &Message, bytes: &[u8]) {
        self.answers.insert(transaction(response), bytes.to_vec());
    }
    fn wait(&mut self, key: String, bytes: &[u8]) {
        let since = Instant::now();
        self.waiting.retain(|waiting| waiting.key != key);
        self.waiting.push(Waiting {
            key,
            bytes: bytes.to_vec(),
            since,
            again: since + FIRST,
            interval: FIRST,
        });
    }
    /// A message came: what waited for it waits no more.
    pub(crate) fn came(&mut self, message: &Message) {
        let key = if message.method() == "ACK" { acknowledged(message) } else { transaction(message) };
        self.waiting.retain(|waiting| waiting.key != key);
    }
    /// What to say when a message comes once more: whoever sent it has not heard it.
    pub(crate) fn again(&self, message: &Message) -> Option<&[u8]> {
        self.answers.get(&transaction(message)).map(Vec::as_slice)
    }
    /// When something is to be said again.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.waiting.iter().map(|waiting| waiting.again).min()
    }
    /// What is to be said again at this time.
    pub(crate) fn due(&mut self, now: Instant) -> Vec<Vec<u8>> {
        self.waiting.retain(|waiting| now < waiting.since + GIVE_UP);
        let due = self.waiting.iter_mut().filter(|waiting| waiting.again <= now);
        due.map(|waiting| {
            waiting.interval = (2 * waiting.interval).min(LONGEST);
            waiting.again = now + waiting.interval;
            waiting.bytes.clone()
        })
        .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(start: &str, method: &str) -> Message {
        let text = format!(
            "{start}\r\nVia: SIP/2.0/UDP a;branch=z9hG4bK1\r\nCall-ID: c\r\nCSeq: 1 {method}\r\n\r\n"
        );
        Message::parse(text.as_bytes())
    }

    #[test]
    fn rfc3261_17_a_request_is_sent_again_until_any_response_and_a_final_response_until_its_ack() {
        let mut repeats = Repeats::default();
        repeats.asked("z9hG4bK1", "INVITE", b"invite");
        let first = repeats.deadline().expect("it waits");
        assert_eq!(repeats.due(first), [b"invite"]);
        assert_eq!(repeats.deadline(), Some(first + 2 * FIRST));
        assert!(repeats.due(first).is_empty());
        repeats.came(&message("SIP/2.0 100 Trying", "INVITE"));
        assert_eq!(repeats.deadline(), None);

        let invite = message("INVITE sip:a SIP/2.0", "INVITE");
        repeats.answered(&invite, 180, b"ringing");
        assert_eq!((repeats.deadline(), repeats.again(&invite)), (None, Some(&b"ringing"[..])));
        repeats.answered(&invite, 200, b"ok");
        assert_eq!(repeats.due(Instant::now() + FIRST), [b"ok"]);
        repeats.came(&message("ACK sip:a SIP/2.0", "ACK"));
        assert_eq!((repeats.deadline(), repeats.again(&invite)), (None, Some(&b"ok"[..])));
    }
}
