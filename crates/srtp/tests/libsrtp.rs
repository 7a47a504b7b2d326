//! The same packets through libsrtp: byte for byte what we seal, and it opens ours as we open its.

use base::{SrtpKeys, SrtpSecret, SrtpSuite};
use kit::Random;
use srtp::{RTCP_TRAILER_MAX, Session};

/// Packets as the oracle reads them, behind the secret.
fn input(secret: &SrtpSecret, packets: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = secret.bytes().to_vec();
    bytes.resize(46, 0);
    for packet in packets {
        bytes.extend((packet.len() as u16).to_le_bytes());
        bytes.extend(packet);
    }
    bytes
}
fn packets(mut bytes: &[u8]) -> Vec<Vec<u8>> {
    let mut packets = Vec::new();
    while let Some((length, rest)) = bytes.split_first_chunk() {
        let (packet, rest) = rest.split_at(usize::from(u16::from_le_bytes(*length)));
        packets.push(packet.to_vec());
        bytes = rest;
    }
    packets
}

/// Packets of two sources, several rounds of the sequence numbers, with loss, disorder, extensions and all lengths.
fn talk(random: &mut Random) -> Vec<Vec<u8>> {
    let mut sequence = 60_000_u16;
    let mut all = Vec::new();
    for at in 0..600_usize {
        sequence = sequence.wrapping_add(if at % 50 == 49 { 20_000 } else { 1 + (at % 3 == 2) as u16 });
        let mut packet = vec![0x80, 96];
        packet.extend(sequence.to_be_bytes());
        packet.extend((at as u32 * 160).to_be_bytes());
        packet.extend([0, 0, 0, 7 + (at % 7 == 6) as u8]);
        if at % 5 == 4 {
            packet[0] |= 0x10;
            packet.extend([0xbe, 0xde, 0, 1, 1, 2, 3, 4]);
        }
        let length = random.below(300);
        packet.extend(random.bytes(length));
        all.push(packet);
    }
    for at in (0..all.len() - 1).step_by(11).filter(|at| at % 50 < 47) {
        all.swap(at, at + 1);
    }
    all
}
fn reports(random: &mut Random) -> Vec<Vec<u8>> {
    (0..100)
        .map(|at| {
            let words = random.below(30);
            let mut packet = vec![0x80, 200, 0, 1 + words as u8, 0, 0, 0, 7 + at % 2];
            packet.extend(random.bytes(words * 4));
            packet
        })
        .collect()
}

fn sealed(session: &mut Session, packet: &[u8], rtcp: bool) -> Vec<u8> {
    let mut buffer = [packet, &[0; RTCP_TRAILER_MAX]].concat();
    let length = match rtcp {
        true => session.seal_rtcp(&mut buffer, packet.len()),
        false => session.seal_rtp(&mut buffer, packet.len()),
    };
    buffer.truncate(length.unwrap());
    buffer
}
fn opened(session: &mut Session, packet: &[u8], rtcp: bool) -> Vec<u8> {
    let mut buffer = packet.to_vec();
    let length = match rtcp {
        true => session.open_rtcp(&mut buffer),
        false => session.open_rtp(&mut buffer),
    };
    buffer.truncate(length.unwrap_or(0));
    buffer
}

#[test]
fn libsrtp_and_we_seal_alike_open_each_other_and_refuse_the_same() {
    let Some(libsrtp) = oracle::Oracle::build(&oracle::SRTP) else { return };
    let mut compared = 0;
    for suite in SrtpSuite::ALL {
        if suite.key_bytes() == 24 {
            // It derives session keys of AES-192 with AES-256 and a key filled up with zeros, where RFC 6188 §3 and its
            // vectors, which we have, say AES-192.
            println!("not compared: {}", suite.name());
            continue;
        }
        let mut random = Random(suite as u64 + 1);
        let secret = SrtpSecret::new(suite, &random.bytes(suite.secret_bytes())).unwrap();
        let session = || {
            let (send, receive) = (secret.clone(), secret.clone());
            Session::new(&SrtpKeys { suite, send, receive, replay_protection: true }).unwrap()
        };
        for rtcp in [false, true] {
            let plain = if rtcp { reports(&mut random) } else { talk(&mut random) };
            let behind = if rtcp { "-rtcp" } else { "" };
            let theirs =
                packets(&libsrtp.run(&format!("{}-protect{behind}", suite.name()), &input(&secret, &plain)));
            if theirs.iter().all(Vec::is_empty) {
                println!("skipped: this libsrtp has no {}", suite.name());
                continue;
            }
            let mut sender = session();
            if rtcp {
                // It counts from one, we from zero (RFC 3711 §3.4).
                (7..=8).for_each(|ssrc| drop(sealed(&mut sender, &[0x80, 201, 0, 1, 0, 0, 0, ssrc], true)));
            }
            let ours: Vec<_> = plain.iter().map(|packet| sealed(&mut sender, packet, rtcp)).collect();
            assert!(ours == theirs, "{suite:?}{behind}");

            // Opened in disorder, doubled and spoiled: they and we give the same.
            let mut arriving = Vec::new();
            for (at, packet) in ours.iter().enumerate() {
                arriving.push(packet.clone());
                if at % 4 == 3 {
                    arriving.push(ours[at - random.below(at.min(40))].clone());
                }
                if at % 3 == 2 {
                    let mut wrong = packet.clone();
                    kit::spoil(&mut random, &mut wrong);
                    arriving.push(wrong);
                }
            }
            let theirs = packets(
                &libsrtp.run(&format!("{}-unprotect{behind}", suite.name()), &input(&secret, &arriving)),
            );
            let mut receiver = session();
            for (at, (packet, theirs)) in arriving.iter().zip(&theirs).enumerate() {
                let ours = opened(&mut receiver, packet, rtcp);
                assert!(ours == *theirs, "{suite:?}{behind}: packet {at} of {}", arriving.len());
            }
            assert_eq!(arriving.len(), theirs.len());
            compared += 1;
        }
    }
    println!("{compared} kinds of packets compared");
}
