//! Copies of SIP messages, and what RTCP says, for a capture server: HEPv3 over UDP, from a thread of its own.
//!
//! The shard hands a copy over and goes on. What does not fit the queue, and what cannot be sent, is counted.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use ::sip::stack::Protocol;
use driver::sip::{Captured, CapturedReport};
use serde_json::{Value, json};
use store::config::hep::Hep;

use crate::datagrams::Server;

/// Most messages that wait for the thread: what 1,000 calls a second say in half a second.
pub(crate) const WAITING_MAX: usize = 4_096;
/// Largest payload of a UDP datagram over IPv4, bytes.
const DATAGRAM_BYTES_MAX: usize = 65_507;

/// What a capture server is told.
#[derive(Debug, Clone)]
pub(crate) enum Told {
    /// A SIP message.
    Message(Captured),
    /// A report of RTCP.
    Report(CapturedReport),
}

/// What became of the copies.
#[derive(Debug, Default)]
struct Shared {
    sent: AtomicU64,
    lost: AtomicU64,
}

/// The shard's end.
pub(crate) struct Capture {
    wanted: Hep,
    copies: SyncSender<Told>,
    shared: Arc<Shared>,
}

impl Capture {
    /// Starts the thread.
    pub(crate) fn start(hep: &Hep) -> std::io::Result<Self> {
        let (copies, queue) = sync_channel(WAITING_MAX);
        let shared = Arc::new(Shared::default());
        let mut sender =
            Sender { hep: hep.clone(), shared: shared.clone(), server: Server::new(&hep.host, hep.port) };
        // The thread ends with the queue's other end.
        std::thread::Builder::new().name("hep".into()).spawn(move || sender.run(&queue))?;
        Ok(Self { wanted: hep.clone(), copies, shared })
    }
    /// What it was started for.
    pub(crate) fn wanted(&self) -> &Hep {
        &self.wanted
    }
    /// Hands a copy over; with a full queue it is lost and counted.
    pub(crate) fn send(&self, copy: Told) {
        if self.copies.try_send(copy).is_err() {
            self.shared.lost.fetch_add(1, Ordering::Relaxed);
        }
    }
    /// Copies that were sent, and those that were not.
    pub(crate) fn counts(&self) -> (u64, u64) {
        (self.shared.sent.load(Ordering::Relaxed), self.shared.lost.load(Ordering::Relaxed))
    }
}

struct Sender {
    hep: Hep,
    shared: Arc<Shared>,
    server: Server,
}

impl Sender {
    fn run(&mut self, queue: &Receiver<Told>) {
        let mut packet = Vec::new();
        while let Ok(copy) = queue.recv() {
            let whole = encode(&copy, &self.hep, &mut packet);
            let sent = whole && self.server.send(&packet);
            let count = if sent { &self.shared.sent } else { &self.shared.lost };
            count.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Chunk types of vendor 0 (HEPv3).
mod chunk {
    pub(super) const FAMILY: u16 = 1;
    pub(super) const PROTOCOL: u16 = 2;
    pub(super) const SOURCE_V4: u16 = 3;
    pub(super) const TARGET_V4: u16 = 4;
    pub(super) const SOURCE_V6: u16 = 5;
    pub(super) const TARGET_V6: u16 = 6;
    pub(super) const SOURCE_PORT: u16 = 7;
    pub(super) const TARGET_PORT: u16 = 8;
    pub(super) const SECONDS: u16 = 9;
    pub(super) const MICROS: u16 = 10;
    pub(super) const KIND: u16 = 11;
    pub(super) const AGENT: u16 = 12;
    pub(super) const KEY: u16 = 14;
    pub(super) const PAYLOAD: u16 = 15;
    pub(super) const CORRELATION: u16 = 17;
    pub(super) const NAME: u16 = 19;
}

/// The address families and protocols of IP, as Linux numbers them.
const IPV4: u8 = 2;
const IPV6: u8 = 10;
const TCP: u8 = 6;
const UDP: u8 = 17;
/// The kinds of payload: SIP, and RTCP as JSON.
const SIP: u8 = 1;
const RTCP: u8 = 5;

/// Writes a packet; false when it would be too large for a datagram.
fn encode(copy: &Told, hep: &Hep, out: &mut Vec<u8>) -> bool {
    let spoken: String;
    let (at_micros, outgoing, local, remote, correlation) = match copy {
        Told::Message(copy) => (copy.at_micros, copy.outgoing, copy.local, copy.remote, &copy.correlation),
        Told::Report(copy) => {
            (copy.at_micros, copy.report.sent, copy.local, copy.report.peer, &copy.correlation)
        }
    };
    let (kind, carrier, payload) = match copy {
        Told::Message(copy) if copy.protocol == Protocol::Udp => (SIP, UDP, &*copy.bytes),
        Told::Message(copy) => (SIP, TCP, &*copy.bytes),
        Told::Report(copy) => {
            spoken = report(&copy.report).to_string();
            (RTCP, UDP, spoken.as_bytes())
        }
    };
    let (from, to) = if outgoing { (local, remote) } else { (remote, local) };
    let (from, to) = (canonical(from), canonical(to));
    let micros = u64::try_from(at_micros).unwrap_or(0);
    let (seconds, rest) = ((micros / 1_000_000) as u32, (micros % 1_000_000) as u32);
    out.clear();
    out.extend_from_slice(b"HEP3\0\0");
    let mut put = |kind: u16, value: &[u8]| {
        let length = u16::try_from(value.len() + 6).unwrap_or(u16::MAX);
        out.extend_from_slice(&[0, 0]);
        out.extend_from_slice(&kind.to_be_bytes());
        out.extend_from_slice(&length.to_be_bytes());
        out.extend_from_slice(value);
    };
    match (from, to) {
        (SocketAddr::V4(from), SocketAddr::V4(to)) => {
            put(chunk::FAMILY, &[IPV4]);
            put(chunk::SOURCE_V4, &from.ip().octets());
            put(chunk::TARGET_V4, &to.ip().octets());
        }
        (from, to) => {
            put(chunk::FAMILY, &[IPV6]);
            put(chunk::SOURCE_V6, &in_v6(from));
            put(chunk::TARGET_V6, &in_v6(to));
        }
    }
    put(chunk::PROTOCOL, &[carrier]);
    put(chunk::SOURCE_PORT, &from.port().to_be_bytes());
    put(chunk::TARGET_PORT, &to.port().to_be_bytes());
    put(chunk::SECONDS, &seconds.to_be_bytes());
    put(chunk::MICROS, &rest.to_be_bytes());
    put(chunk::KIND, &[kind]);
    put(chunk::AGENT, &hep.general.capture_id.to_be_bytes());
    if !hep.general.capture_password.is_empty() {
        put(chunk::KEY, hep.general.capture_password.expose().as_bytes());
    }
    if !hep.general.capture_name.is_empty() {
        put(chunk::NAME, hep.general.capture_name.as_bytes());
    }
    if !correlation.is_empty() {
        put(chunk::CORRELATION, correlation);
    }
    put(chunk::PAYLOAD, payload);
    let Ok(length) = u16::try_from(out.len()) else { return false };
    if let Some(place) = out.get_mut(4..6) {
        place.copy_from_slice(&length.to_be_bytes());
    }
    out.len() <= DATAGRAM_BYTES_MAX
}

/// What a report said, in the words of Asterisk's res_hep_rtcp, which capture servers read: the halves of the NTP time are
/// texts, all else is numbers.
fn report(said: &base::RtcpReport) -> Value {
    let kind = if said.sender.is_some() { SENDER_REPORT } else { RECEIVER_REPORT };
    let blocks: Vec<Value> = said
        .block
        .iter()
        .map(|block| {
            json!({
                "source_ssrc": block.ssrc,
                "fraction_lost": block.fraction_lost,
                "packets_lost": block.lost,
                "highest_seq_no": block.highest,
                "ia_jitter": block.jitter,
                "lsr": block.last_report,
                "dlsr": block.delay,
            })
        })
        .collect();
    let mut told =
        json!({ "ssrc": said.ssrc, "type": kind, "report_count": blocks.len(), "report_blocks": blocks });
    if let (Some(sender), Some(told)) = (&said.sender, told.as_object_mut()) {
        let information = json!({
            "ntp_timestamp_sec": (sender.ntp >> 32).saturating_sub(NTP_UNIX).to_string(),
            "ntp_timestamp_usec": (((sender.ntp & 0xffff_ffff) * 1_000_000) >> 32).to_string(),
            "rtp_timestamp": sender.timestamp,
            "packets": sender.packets,
            "octets": sender.bytes,
        });
        told.insert("sender_information".to_owned(), information);
    }
    told
}

/// Seconds from NTP's epoch (1900) to Unix's (1970), in whose words the field tells the time.
const NTP_UNIX: u64 = 2_208_988_800;
/// Packet types of RTCP (RFC 3550 §6.4).
const SENDER_REPORT: u8 = 200;
const RECEIVER_REPORT: u8 = 201;

/// IPv4 in IPv6 as IPv4.
fn canonical(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}

fn in_v6(address: SocketAddr) -> [u8; 16] {
    match address {
        SocketAddr::V4(address) => address.ip().to_ipv6_mapped().octets(),
        SocketAddr::V6(address) => address.ip().octets(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::UdpSocket;
    use std::time::Duration;
    use store::config::hep::HepGeneral;

    fn hep(id: u32, name: &str) -> Hep {
        let mut general = HepGeneral::default();
        general.capture_id = id;
        general.capture_name = name.to_owned();
        Hep { host: "127.0.0.1".into(), port: 9060, general }
    }

    fn copy(outgoing: bool, local: &str, remote: &str, bytes: &[u8]) -> Told {
        Told::Message(Captured {
            at_micros: 1_763_762_068_250_001,
            outgoing,
            protocol: Protocol::Tls,
            local: local.parse().unwrap(),
            remote: remote.parse().unwrap(),
            correlation: b"one".to_vec(),
            bytes: bytes.into(),
        })
    }

    /// Chunks of a packet, by type.
    fn chunks(packet: &[u8]) -> Vec<(u16, Vec<u8>)> {
        assert_eq!(&packet[..4], b"HEP3");
        assert_eq!(usize::from(u16::from_be_bytes([packet[4], packet[5]])), packet.len());
        let (mut rest, mut found) = (&packet[6..], Vec::new());
        while let [0, 0, a, b, c, d, tail @ ..] = rest {
            let length = usize::from(u16::from_be_bytes([*c, *d])) - 6;
            found.push((u16::from_be_bytes([*a, *b]), tail[..length].to_vec()));
            rest = &tail[length..];
        }
        assert!(rest.is_empty(), "{rest:?}");
        found
    }

    #[test]
    fn hep3_chunks_say_who_sent_what_to_whom_and_when() {
        let mut packet = Vec::new();
        let sent = copy(true, "192.0.2.1:5061", "198.51.100.7:40000", b"BYE");
        assert!(encode(&sent, &hep(70_000, "north"), &mut packet));
        assert_eq!(
            chunks(&packet),
            [
                (1, vec![2]),
                (3, vec![192, 0, 2, 1]),
                (4, vec![198, 51, 100, 7]),
                (2, vec![6]),
                (7, 5061_u16.to_be_bytes().to_vec()),
                (8, 40_000_u16.to_be_bytes().to_vec()),
                (9, 1_763_762_068_u32.to_be_bytes().to_vec()),
                (10, 250_001_u32.to_be_bytes().to_vec()),
                (11, vec![1]),
                (12, 70_000_u32.to_be_bytes().to_vec()),
                (19, b"north".to_vec()),
                (17, b"one".to_vec()),
                (15, b"BYE".to_vec()),
            ]
        );
        let received = copy(false, "[2001:db8::1]:5061", "[2001:db8::2]:9", b"x");
        assert!(encode(&received, &hep(0, ""), &mut packet));
        let found = chunks(&packet);
        assert_eq!(found[0], (1, vec![10]));
        assert_eq!(found[1].1[15], 2, "the peer is the source");
        assert!(!found.iter().any(|(kind, _)| [14, 19].contains(kind)), "neither key nor name");
    }

    #[test]
    fn reports_of_rtcp_are_kind_5_and_json_as_res_hep_rtcp_writes_it() {
        use base::{ReportBlock, RtcpReport, SenderInfo};
        let sender = SenderInfo { ntp: 0xE8AD_2F00_8000_0000, timestamp: 160, packets: 50, bytes: 8000 };
        let block = ReportBlock {
            ssrc: 7,
            fraction_lost: 64,
            lost: -1,
            highest: 65_537,
            jitter: 11,
            last_report: 9,
            delay: 65_536,
        };
        let whole = RtcpReport {
            sent: true,
            peer: "198.51.100.7:4001".parse().unwrap(),
            ssrc: 5,
            sender: Some(sender),
            block: Some(block),
            round_trip_us: 0,
        };
        let told = |report: RtcpReport| {
            let local = "192.0.2.1:4001".parse().unwrap();
            let copy = CapturedReport { at_micros: 2_000_003, local, correlation: b"one".to_vec(), report };
            let mut packet = Vec::new();
            assert!(encode(&Told::Report(copy), &hep(1, ""), &mut packet));
            chunks(&packet)
        };
        let found = told(whole);
        let of = |kind: u16| found.iter().find(|(k, _)| *k == kind).map(|(_, value)| value.clone());
        assert_eq!(of(11), Some(vec![5]));
        assert_eq!(of(2), Some(vec![17]));
        assert_eq!(of(3), Some(vec![192, 0, 2, 1]));
        assert_eq!(of(17), Some(b"one".to_vec()));
        let payload: Value = serde_json::from_slice(&of(15).unwrap()).unwrap();
        assert_eq!(
            payload,
            json!({
                "ssrc": 5, "type": 200, "report_count": 1,
                "report_blocks": [{
                    "source_ssrc": 7, "fraction_lost": 64, "packets_lost": -1, "highest_seq_no": 65537,
                    "ia_jitter": 11, "lsr": 9, "dlsr": 65536
                }],
                "sender_information": {
                    "ntp_timestamp_sec": "1694675072", "ntp_timestamp_usec": "500000",
                    "rtp_timestamp": 160, "packets": 50, "octets": 8000
                }
            })
        );
        // Of one who only listens, and came: no sender's part, and the peer is the source.
        let found = told(RtcpReport { sent: false, sender: None, block: None, ..whole });
        let of = |kind: u16| found.iter().find(|(k, _)| *k == kind).map(|(_, value)| value.clone());
        assert_eq!(of(3), Some(vec![198, 51, 100, 7]));
        let payload: Value = serde_json::from_slice(&of(15).unwrap()).unwrap();
        assert_eq!(payload, json!({ "ssrc": 5, "type": 201, "report_count": 0, "report_blocks": [] }));
    }

    #[test]
    fn what_fits_no_datagram_is_not_sent() {
        let mut packet = Vec::new();
        for (bytes, fits) in [(60_000, true), (65_500, false), (1 << 20, false)] {
            let copy = copy(true, "192.0.2.1:1", "192.0.2.2:2", &vec![b'x'; bytes]);
            assert_eq!(encode(&copy, &hep(0, ""), &mut packet), fits, "{bytes}");
        }
    }

    #[test]
    fn copies_come_to_the_server_in_order() {
        let server = UdpSocket::bind("127.0.0.1:0").unwrap();
        server.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        let mut hep = hep(1, "");
        hep.port = server.local_addr().unwrap().port();
        let capture = Capture::start(&hep).unwrap();
        for n in 0..3_u8 {
            capture.send(copy(true, "192.0.2.1:1", "192.0.2.2:2", &[n]));
        }
        let mut buffer = [0; 2_048];
        for n in 0..3_u8 {
            let length = server.recv(&mut buffer).unwrap();
            assert_eq!(chunks(&buffer[..length]).last(), Some(&(15, vec![n])));
        }
        drop(capture);
    }
}
