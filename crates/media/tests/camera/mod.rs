//! Cameras of tests: packets of pictures, and what peers say of them.
#![allow(dead_code, reason = "shared by test binaries that each use a part")]

use base::{DtmfMode, FormatId, Plan, StreamId};
use rtp::{Header, rtcp};

use crate::common::*;

/// A plan for video in one format.
pub fn video(number: u32, format: FormatId, payload: u8) -> Plan {
    let mut plan = Plan {
        dtmf: DtmfMode::Signalling,
        remote_rtcp: Some(control(number)),
        rtcp_interval_ms: 5000,
        ..plan(number, format, payload)
    };
    plan.rx[1] = None;
    plan
}
pub fn control(number: u32) -> std::net::SocketAddr {
    let mut at = peer(number);
    at.set_port(at.port() + 1);
    at
}

/// A camera: pictures of several packets, the last one marked.
pub struct Camera {
    pub phone: Phone,
    pictures: u32,
}

impl Camera {
    pub fn new(stream: StreamId, payload: u8) -> Self {
        Self { phone: Phone { units: 0, ..Phone::new(stream, payload) }, pictures: 0 }
    }
    pub fn packets(&mut self, count: u8) -> Vec<Vec<u8>> {
        self.pictures += 1;
        self.phone.timestamp = self.phone.timestamp.wrapping_add(3000);
        let picture = self.pictures as u8;
        (0..count)
            .map(|at| {
                let mut bytes = self.phone.packet(&[picture, at, 0xaa, 0xbb]);
                bytes[1] |= if at + 1 == count { 0x80 } else { 0 };
                bytes
            })
            .collect()
    }
    pub fn show(&mut self, plant: &mut Plant, count: u8) {
        for packet in self.packets(count) {
            plant.datagram(self.phone.stream, self.phone.from, packet);
        }
        plant.run(33);
    }
    pub fn header(&self) -> Header {
        let Phone { payload, sequence, timestamp, ssrc, .. } = self.phone;
        Header { payload_type: payload, marker: false, sequence, timestamp, ssrc }
    }
}

/// RTCP that a stream has sent to its peer's port for it.
pub fn controls(plant: &Plant, stream: StreamId) -> Vec<Sent> {
    plant.net.sent.iter().filter(|sent| sent.rtcp && sent.port == port(stream)).cloned().collect()
}
/// The feedback that a stream has passed on.
pub fn passed(plant: &Plant, stream: StreamId) -> Vec<Vec<u8>> {
    let compounds = controls(plant, stream);
    compounds
        .iter()
        .filter(|sent| sent.bytes.len() > 32 && sent.bytes[33] >= 205)
        .map(|sent| sent.bytes.clone())
        .collect()
}
/// A compound of a peer that ends with this feedback.
pub fn feedback(kind: u8, format: u8, sender: u32, media: u32, entries: &[u8]) -> Vec<u8> {
    let mut buffer = [0; 256];
    let mut writer = rtcp::Writer::new(&mut buffer);
    writer.report(sender, None, None);
    writer.cname(sender, b"peer");
    let length = writer.len();
    let words = (2 + entries.len() / 4) as u8;
    [
        &buffer[..length],
        &[0x80 | format, kind, 0, words],
        &sender.to_be_bytes(),
        &media.to_be_bytes(),
        entries,
    ]
    .concat()
}
