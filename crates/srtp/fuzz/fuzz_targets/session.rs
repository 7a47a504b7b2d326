//! Hostile datagrams between the packets of a call: nothing panics, nothing is accepted, and the call goes on.
//!
//! The input is a byte that names the suite, then datagrams: a byte of what is done with it, a byte of length, the datagram.
#![no_main]

use base::{SrtpKeys, SrtpSecret, SrtpSuite};
use libfuzzer_sys::fuzz_target;
use srtp::{RTCP_TRAILER_MAX, Session};

fuzz_target!(|data: &[u8]| {
    let [suite, rest @ ..] = data else { return };
    let suite = SrtpSuite::ALL[usize::from(*suite) % SrtpSuite::ALL.len()];
    let secret = |byte| SrtpSecret::new(suite, &vec![byte; suite.secret_bytes()]).expect("its length");
    let keys = |send, receive| SrtpKeys { suite, send, receive, replay_protection: true };
    let mut sender = Session::new(&keys(secret(1), secret(2))).expect("keys of the suite");
    let mut receiver = Session::new(&keys(secret(2), secret(1))).expect("keys of the suite");
    let mut sequence = 65_000_u16;
    let mut rest = rest;
    while let [what, length, after @ ..] = rest {
        let (datagram, next) = after.split_at(usize::from(*length).min(after.len()));
        rest = next;
        let mut buffer = datagram.to_vec();
        let opened = match what % 4 {
            0 | 1 => receiver.open_rtp(&mut buffer),
            2 => receiver.open_rtcp(&mut buffer),
            _ => {
                // What we are made to send is hostile, too: it is sealed or refused.
                buffer.resize(datagram.len() + RTCP_TRAILER_MAX, 0);
                let mut other = Session::new(&keys(secret(3), secret(4))).expect("keys of the suite");
                if let Ok(length) = other.seal_rtp(&mut buffer, datagram.len()) {
                    assert_eq!(length, datagram.len() + suite.tag_bytes());
                }
                continue;
            }
        };
        assert!(opened.is_err(), "accepted without the key");
        assert_eq!(buffer, datagram, "what is refused stays as it came");
        let mut packet = [0_u8; 60];
        packet[0] = 0x80;
        packet[2..4].copy_from_slice(&sequence.to_be_bytes());
        sequence = sequence.wrapping_add(1);
        let length = sender.seal_rtp(&mut packet, 40).expect("a packet");
        assert_eq!(receiver.open_rtp(&mut packet[..length]), Ok(40));
    }
});
