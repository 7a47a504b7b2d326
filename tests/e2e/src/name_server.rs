//! A name server of the test's own.

use std::net::{SocketAddr, UdpSocket};
use std::sync::{Arc, Mutex, PoisonError};

/// How long its answers may be kept, seconds.
const TTL: u16 = 60;

/// Answers what stands in its zone, and says of everything else that there is no such name.
pub struct NameServer {
    at: SocketAddr,
    asked: Arc<Mutex<Vec<String>>>,
}

impl NameServer {
    /// Lines of the zone: `name A 192.0.2.1`, `name SRV priority weight port target`,
    /// `name NAPTR order preference flags service rule target`; a `-` is an empty field.
    pub fn start(zone: &str) -> Self {
        let socket = UdpSocket::bind((crate::address(), 0)).expect("a socket");
        let at = socket.local_addr().expect("an address");
        let asked = Arc::new(Mutex::new(Vec::new()));
        let (zone, heard) = (zone.to_owned(), asked.clone());
        std::thread::spawn(move || {
            let mut buffer = [0; 512];
            loop {
                let (length, from) = match socket.recv_from(&mut buffer) {
                    Ok(heard) => heard,
                    Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
                    Err(_) => return,
                };
                let (reply, question) = answer(&zone, &buffer[..length]);
                let mut heard = heard.lock().unwrap_or_else(PoisonError::into_inner);
                if !heard.contains(&question) {
                    heard.push(question);
                }
                drop(heard);
                // Who does not listen any more needs no answer.
                let _gone = socket.send_to(&reply, from);
            }
        });
        Self { at, asked }
    }
    /// What `resolver_unbound.conf` says so that it is asked.
    pub fn configuration(&self) -> String {
        format!("[general]\nnameserver = {}@{}\n", self.at.ip(), self.at.port())
    }
    /// What it was asked so far, each once, as `SRV _sip._udp.example.com`.
    pub fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

fn answer(zone: &str, question: &[u8]) -> (Vec<u8>, String) {
    let (mut labels, mut at) = (Vec::new(), 12);
    while question[at] != 0 {
        let end = at + 1 + usize::from(question[at]);
        labels.push(String::from_utf8_lossy(&question[at + 1..end]).to_ascii_lowercase());
        at = end;
    }
    let kind = match question[at + 2] {
        1 => "A",
        28 => "AAAA",
        33 => "SRV",
        35 => "NAPTR",
        _ => "?",
    };
    let name = labels.join(".");
    let records: Vec<Vec<u8>> = zone
        .lines()
        .map(|line| line.split_whitespace().collect::<Vec<_>>())
        .filter(|words| words.len() > 2 && words[0] == name && words[1] == kind)
        .map(|words| data(kind, &words[2..]))
        .collect();
    let known = zone.lines().any(|line| line.split_whitespace().next() == Some(&name));
    let mut reply = question[..2].to_vec();
    let count = u8::try_from(records.len()).expect("few records");
    reply.extend([0x81, if known { 0x80 } else { 0x83 }, 0, 1, 0, count, 0, 0, 0, 0]);
    reply.extend(&question[12..at + 5]);
    for record in records {
        // The name of the question again, its type, class IN.
        reply.extend([0xc0, 12, 0, question[at + 2], 0, 1, 0, 0]);
        reply.extend(TTL.to_be_bytes());
        reply.extend(u16::try_from(record.len()).expect("a short record").to_be_bytes());
        reply.extend(record);
    }
    (reply, format!("{kind} {name}"))
}

fn data(kind: &str, words: &[&str]) -> Vec<u8> {
    let number = |at: usize| words[at].parse::<u16>().expect("a number").to_be_bytes();
    let mut out = Vec::new();
    let text = |out: &mut Vec<u8>, text: &str| {
        let text = if text == "-" { "" } else { text };
        out.push(u8::try_from(text.len()).expect("a short text"));
        out.extend(text.bytes());
    };
    match kind {
        "A" => out.extend(words[0].parse::<std::net::Ipv4Addr>().expect("an address").octets()),
        "SRV" => (0..3).for_each(|at| out.extend(number(at))),
        _ => {
            (0..2).for_each(|at| out.extend(number(at)));
            (2..5).for_each(|at| text(&mut out, words[at]));
        }
    }
    if kind != "A" {
        let target = words.last().filter(|target| **target != "-");
        target.into_iter().flat_map(|target| target.split('.')).for_each(|label| text(&mut out, label));
        out.push(0);
    }
    out
}
