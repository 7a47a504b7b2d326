//! What sealing and opening a packet of 172 bytes costs, beside libsrtp where it is there; and what a forgery costs.

use std::hint::black_box;

use base::{SrtpKeys, SrtpSecret, SrtpSuite};
use kit::Random;
use oracle::{Figure, Oracle, quickest};
use srtp::{RTP_TRAILER_MAX, Session};

/// A packet of 20 ms of G.711: header and 160 bytes.
const PACKET: usize = 172;
/// Packets of a round: less than a round of sequence numbers, and all in the nearest caches one after the other.
const PACKETS: usize = 2000;
const ROUNDS: u32 = 60;

fn packet(sequence: usize) -> [u8; PACKET + RTP_TRAILER_MAX] {
    let mut packet = [0x55; PACKET + RTP_TRAILER_MAX];
    packet[..2].copy_from_slice(&[0x80, 0]);
    packet[2..4].copy_from_slice(&(sequence as u16).to_be_bytes());
    packet
}

/// Nanoseconds a packet for libsrtp.
fn theirs(libsrtp: Option<&Oracle>, mode: &str, secret: &SrtpSecret, packets: &[Vec<u8>]) -> Option<f64> {
    let mut input = secret.bytes().to_vec();
    input.resize(46, 0);
    for packet in packets {
        input.extend((packet.len() as u16).to_le_bytes());
        input.extend(packet);
    }
    let (output, took) = libsrtp?.time(mode, &input, ROUNDS);
    // Packets that were refused are empty: this libsrtp does not have the suite.
    (output.len() > packets.len() * PACKET).then(|| took.as_nanos() as f64 / packets.len() as f64)
}

fn publish(name: &str, took: std::time::Duration, baseline: Option<f64>) {
    let value = took.as_nanos() as f64 / PACKETS as f64;
    Figure { name, value, unit: "ns", baseline: baseline.map(|other| (other, "libsrtp 2.5.0")) }.publish();
}

fn main() {
    let libsrtp = Oracle::build(&oracle::SRTP);
    for suite in SrtpSuite::ALL {
        let secret = SrtpSecret::new(suite, &Random(1).bytes(suite.secret_bytes())).expect("its length");
        let (send, receive) = (secret.clone(), secret.clone());
        let keys = SrtpKeys { suite, send, receive, replay_protection: true };
        let session = || Session::new(&keys).expect("its length");
        let mut buffers: Vec<_> = (0..PACKETS).map(packet).collect();
        let plain: Vec<Vec<u8>> = buffers.iter().map(|buffer| buffer[..PACKET].to_vec()).collect();
        let mut sender = session();
        let mut length = 0;
        let mut sequence = 0;
        // Each round goes on where the one before ended, as a call does; what is sealed is sealed again.
        let protect = quickest(ROUNDS, || {
            for buffer in &mut buffers {
                buffer[2..4].copy_from_slice(&(sequence as u16).to_be_bytes());
                sequence += 1;
                length = sender.seal_rtp(black_box(buffer), PACKET).expect("a packet");
            }
        });
        let mode = |what: &str| format!("{}-{what}", suite.name());
        let other = theirs(libsrtp.as_ref(), &mode("protect"), &secret, &plain);
        publish(&format!("srtp protect {}", suite.name()), protect, other);

        let mut sender = session();
        let rounds: Vec<Vec<_>> = (0..ROUNDS as usize)
            .map(|round| {
                let one = |at| {
                    let mut buffer = packet(round * PACKETS + at);
                    sender.seal_rtp(&mut buffer, PACKET).expect("a packet");
                    buffer
                };
                (0..PACKETS).map(one).collect()
            })
            .collect();
        let sealed: Vec<Vec<u8>> =
            rounds.iter().take(1).flatten().map(|buffer| buffer[..length].to_vec()).collect();
        let other = theirs(libsrtp.as_ref(), &mode("unprotect"), &secret, &sealed);
        let mut receiver = session();
        // A forgery of the next packet costs its tag and nothing else.
        let mut forged: Vec<_> = rounds[0].clone();
        for buffer in &mut forged {
            buffer[length - 1] ^= 1;
        }
        let refuse = quickest(ROUNDS, || {
            for buffer in &mut forged {
                assert!(receiver.open_rtp(black_box(&mut buffer[..length])).is_err(), "a forgery");
            }
        });
        let mut rounds = rounds.into_iter();
        let unprotect = quickest(ROUNDS, || {
            for buffer in rounds.next().iter_mut().flatten() {
                receiver.open_rtp(black_box(&mut buffer[..length])).expect("an authentic packet");
            }
        });
        publish(&format!("srtp unprotect {}", suite.name()), unprotect, other);
        publish(&format!("srtp refuse forgery {}", suite.name()), refuse, None);
    }
}
