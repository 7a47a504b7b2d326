//! A phone that changes its SRTP key in a re-INVITE (RFC 4568 §7.1.4): libsrtp seals what it says and opens what it hears.

use e2e::{Message, Phone, Server, Site, wait};
use oracle::Oracle;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::time::Duration;

const SUITE: &str = "AES_CM_128_HMAC_SHA1_80";
/// Key and salt of the suite, and what the oracle has room for.
const SECRET: usize = 30;
const SECRET_ROOM: usize = 46;
const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Base64 of bytes whose count is a multiple of three.
fn encoded(bytes: &[u8]) -> String {
    let four = |three: &[u8]| {
        let bits = three.iter().fold(0_usize, |bits, byte| bits << 8 | usize::from(*byte));
        [18, 12, 6, 0].map(|shift| LETTERS[bits >> shift & 63] as char)
    };
    bytes.chunks(3).flat_map(four).collect()
}
fn decoded(text: &str) -> Vec<u8> {
    let value = |letter| LETTERS.iter().position(|known| *known == letter).expect("base64") as u32;
    let three = |four: &[u8]| {
        let bits = four.iter().fold(0, |bits, letter| bits << 6 | value(*letter));
        [16, 8, 0].map(|shift| (bits >> shift) as u8)
    };
    text.as_bytes().chunks(4).flat_map(three).collect()
}

/// These packets through libsrtp; what it refuses comes out empty.
fn through(libsrtp: &Oracle, how: &str, secret: &[u8], packets: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let mut input = secret.to_vec();
    input.resize(SECRET_ROOM, 0);
    for packet in packets {
        input.extend((packet.len() as u16).to_le_bytes());
        input.extend(packet);
    }
    let output = libsrtp.run(&format!("{SUITE}-{how}"), &input);
    let (mut rest, mut made) = (&output[..], Vec::new());
    while let Some((length, behind)) = rest.split_first_chunk() {
        let (packet, behind) = behind.split_at(usize::from(u16::from_le_bytes(*length)));
        made.push(packet.to_vec());
        rest = behind;
    }
    made
}

/// The audio end of the phone.
struct Line {
    libsrtp: Oracle,
    socket: UdpSocket,
    to: SocketAddr,
    /// What the other side seals with.
    theirs: Vec<u8>,
    sequence: u16,
    heard: Vec<Vec<u8>>,
}

impl Line {
    fn sdp(&self, secret: &[u8]) -> String {
        let at = self.socket.local_addr().expect("its address");
        let (ip, port) = (at.ip(), at.port());
        format!(
            "v=0\r\no=- 1 {} IN IP4 {ip}\r\ns=-\r\nc=IN IP4 {ip}\r\nt=0 0\r\nm=audio {port} RTP/SAVP 0\r\n\
             a=crypto:1 {SUITE} inline:{}\r\na=sendrecv\r\n",
            secret[0],
            encoded(secret)
        )
    }
    fn agreed(&mut self, answer: &Message) {
        assert_eq!(answer.status(), Some(200), "{}", answer.text());
        let port = answer.sdp("m=audio ").and_then(|audio| audio.split(' ').next()?.parse().ok());
        let ip = answer.sdp("c=IN IP4 ").and_then(|ip| ip.parse::<IpAddr>().ok());
        self.to = (ip.expect("an address"), port.expect("a port")).into();
        let text = answer.text();
        let key = text.split("inline:").nth(1).expect("a key in the answer");
        self.theirs = decoded(key.split(['|', '\r', '\n', ' ']).next().expect("a key"));
    }
    /// Twenty packets of this one byte, sealed under a key of its own side.
    fn say(&mut self, secret: &[u8], byte: u8) {
        let packet = |at: u16| {
            let sequence = self.sequence.wrapping_add(at);
            let header = [0x80, 0, (sequence >> 8) as u8, sequence as u8];
            [&header[..], &(u32::from(sequence) * 160).to_be_bytes(), &[0, 0, 0, 9], &[byte; 160]].concat()
        };
        let packets: Vec<_> = (0..20).map(packet).collect();
        self.sequence = self.sequence.wrapping_add(20);
        for packet in through(&self.libsrtp, "protect", secret, &packets) {
            self.socket.send_to(&packet, self.to).expect("the packet leaves");
        }
    }
    /// Whether an echo of this byte has come, sealed with the other side's key.
    fn hears(&mut self, byte: u8) -> bool {
        let mut room = [0; 1500];
        while let Ok((length, _)) = self.socket.recv_from(&mut room) {
            self.heard.push(room[..length].to_vec());
        }
        let opened = through(&self.libsrtp, "unprotect", &self.theirs, &self.heard);
        opened.iter().any(|packet| packet.get(12..).is_some_and(|payload| payload == [byte; 160]))
    }
}

#[test]
fn rfc4568_7_1_4_a_phone_that_changes_its_key_is_heard_under_the_new_one_and_no_more_under_the_old() {
    let Some(libsrtp) = Oracle::build(&oracle::SRTP) else { return };
    let site = Site::new("rekey")
        .phone_with("alice", "allow=ulaw\nmedia_encryption=sdes\n")
        .dialplan("[test]\nexten => echo,1,Answer()\n same => n,Echo()\n");
    let server = Server::start(site);
    let mut alice = Phone::new(server.site.sip, "alice");
    let socket = UdpSocket::bind((alice.local().ip(), 0)).expect("a port for audio");
    socket.set_read_timeout(Some(Duration::from_millis(50))).expect("a time-out");
    let to = server.site.sip;
    let mut line = Line { libsrtp, socket, to, theirs: Vec::new(), sequence: 1000, heard: Vec::new() };
    let (first, second) = ([1; SECRET], [2; SECRET]);
    alice.offer = Some(line.sdp(&first).into_bytes());
    let answer = alice.must_call("echo");
    line.agreed(&answer);
    let theirs = line.theirs.clone();
    wait::until_true("she hears herself", || {
        line.say(&first, 11);
        line.hears(11)
    });
    // Another key; the other side keeps its own, and goes on with its counters.
    let answer = alice.reinvite_with(&line.sdp(&second));
    line.agreed(&answer);
    assert_eq!(line.theirs, theirs);
    wait::until_true("she hears herself under the new key", || {
        line.say(&second, 22);
        line.hears(22)
    });
    // Whoever has only the old one is not heard any more.
    line.say(&first, 33);
    wait::until_true("she is heard behind that", || {
        line.say(&second, 44);
        line.hears(44)
    });
    assert!(!line.hears(33), "the old key is of no use");
    alice.hang_up();
    server.until_idle();
}
