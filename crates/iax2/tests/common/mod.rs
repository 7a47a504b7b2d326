//! Datagrams through tshark's dissector.
#![allow(dead_code, reason = "each test binary uses its part")]

use std::path::Path;
use std::process::{Command, Stdio};

/// A datagram between ports 4569 of two hosts, of which the last octets of the addresses are given.
pub type Sent = (u8, u8, Vec<u8>);

/// A capture of datagrams, as a file of libpcap with raw IPv4 packets.
fn capture(datagrams: &[Sent]) -> Vec<u8> {
    const RAW_IP: u32 = 101;
    let mut pcap = Vec::new();
    pcap.extend_from_slice(&0xa1b2_c3d4u32.to_be_bytes());
    pcap.extend_from_slice(&[0, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff]);
    pcap.extend_from_slice(&RAW_IP.to_be_bytes());
    for (second, (from, to, datagram)) in (0u32..).zip(datagrams) {
        let udp = u16::try_from(datagram.len() + 8).expect("a datagram");
        let length = u32::from(udp) + 20;
        for word in [second, 0, length, length] {
            pcap.extend_from_slice(&word.to_be_bytes());
        }
        pcap.extend_from_slice(&[0x45, 0]);
        pcap.extend_from_slice(&(udp + 20).to_be_bytes());
        pcap.extend_from_slice(&[0, 0, 0, 0, 64, 17, 0, 0, 192, 0, 2, *from, 192, 0, 2, *to]);
        pcap.extend_from_slice(&4569u16.to_be_bytes());
        pcap.extend_from_slice(&4569u16.to_be_bytes());
        pcap.extend_from_slice(&udp.to_be_bytes());
        pcap.extend_from_slice(&[0, 0]);
        pcap.extend_from_slice(datagram);
    }
    pcap
}

/// What tshark reads in these datagrams: the named fields, joined by `|`, a line a datagram. The last field is the
/// message of a mark that it makes beside a packet it does not like. `None`, and said, without tshark.
pub fn dissect(name: &str, datagrams: &[Sent], fields: &[&str]) -> Option<Vec<String>> {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}.{}.pcap", std::process::id()));
    std::fs::write(&path, capture(datagrams)).expect("a file for the capture");
    let mut command = Command::new("tshark");
    command.arg("-r").arg(&path).args(["-T", "fields", "-E", "separator=|", "-E", "occurrence=a"]);
    for field in fields.iter().chain(&["_ws.expert.message"]) {
        command.args(["-e", field]);
    }
    let output = command.stdin(Stdio::null()).stderr(Stdio::null()).output();
    std::fs::remove_file(&path).expect("the file is ours");
    let Ok(output) = output else {
        println!("skipped: tshark is not here");
        return None;
    };
    assert!(output.status.success(), "tshark reads the capture");
    let lines: Vec<_> = String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect();
    assert_eq!(lines.len(), datagrams.len(), "a line a datagram");
    Some(lines)
}
