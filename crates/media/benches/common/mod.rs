//! What the benches of whole workers share: invented phones and what is agreed with them.

use std::net::SocketAddr;

use base::{Direction, DtmfMode, FormatId, Latch, MAX_RX_PAYLOADS, Marking, Plan, RxPayload};

/// Address of the phone at the other end of a leg; each has its own.
pub fn peer(slot: u32) -> SocketAddr {
    SocketAddr::from(([192, 0, 2, (slot % 200) as u8 + 1], 4000 + (slot / 200) as u16 * 2))
}

/// What is agreed with it: one format, in its usual packets.
pub fn plan(slot: u32, format: FormatId) -> Plan {
    let payload = format.usual_payload().expect("a payload type");
    let mut rx = [None; MAX_RX_PAYLOADS];
    rx[0] = Some(RxPayload::Audio(payload, format));
    Plan {
        remote: Some(peer(slot)),
        remote_rtcp: None,
        latch: Latch::Strict,
        relearn: false,
        format,
        payload,
        ptime_ms: format.usual_ms(),
        wishes: base::Wishes::default(),
        rx,
        dtmf: DtmfMode::Signalling,
        direction: Direction::SendRecv,
        ssrc: 0x1000 + slot,
        first_sequence: 1,
        first_timestamp: 1,
        jitter_max_ms: 200,
        rtcp_interval_ms: 5000,
        rtp_timeout_ms: 0,
        keepalive_ms: 0,
        marking: Marking::default(),
        keys: None,
        picture: base::PictureRequest::default(),
    }
}
