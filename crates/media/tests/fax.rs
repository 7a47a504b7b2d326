//! Fax on invented time (ITU-T T.38 §9.1): datagrams go from peer to peer, each side under its own numbers and protection.

mod common;

use base::{Command, Direction, Fax, FormatId, Plan, StreamId, UdptlProtection};
use common::*;
use rtp::{Piece, UDPTL_BYTES_MAX, UdptlReceiver, UdptlSender};

/// The plan of a stream that carries fax.
fn fax_plan(stream: StreamId) -> Box<Plan> {
    Box::new(Plan {
        direction: Direction::Inactive,
        rtcp_interval_ms: 0,
        ..plan(stream.slot, FormatId::ULAW, 0)
    })
}

fn carry(plant: &mut Plant, stream: StreamId, protection: UdptlProtection) {
    plant.command(Command::Plan { stream, plan: fax_plan(stream) });
    let fax = Fax { protection, datagram_max: 400 };
    plant.command(Command::Fax { stream, fax: Some(fax) });
}

/// What a fax that gets these datagrams makes of them.
fn heard(sent: &[Sent]) -> Vec<Result<Vec<u8>, u16>> {
    let (mut receiver, mut heard) = (UdptlReceiver::default(), Vec::new());
    for datagram in sent {
        let piece = |piece: Piece<'_>| {
            heard.push(match piece {
                Piece::Ifp(ifp) => Ok(ifp.to_vec()),
                Piece::Lost(count) => Err(count),
            });
        };
        receiver.datagram(&datagram.bytes, piece).unwrap();
    }
    heard
}

/// A fax machine.
struct Modem(UdptlSender);

impl Modem {
    fn new(protection: UdptlProtection) -> Self {
        Self(UdptlSender::new(protection, 400))
    }
    fn packet(&mut self, number: u8) -> Vec<u8> {
        self.0.datagram(&[0xc0, number], &mut [0; UDPTL_BYTES_MAX]).unwrap().to_vec()
    }
}

#[test]
fn t38_9_1_what_one_protection_makes_good_goes_on_under_the_other() {
    use UdptlProtection::{Fec, None as Bare, Redundancy};
    for (name, from, to, dropped, lost) in [
        ("repeated to bare", Redundancy, Bare, &[5_u8, 6][..], &[][..]),
        ("parity to repeated", Fec, Redundancy, &[12], &[]),
        ("bare to repeated", Bare, Redundancy, &[5], &[5]),
    ] {
        let mut plant = Plant::new();
        let (a, b) = (plant.open(plan(0, FormatId::ULAW, 0)), plant.open(plan(1, FormatId::ULAW, 0)));
        plant.command(Command::Join { a, b });
        carry(&mut plant, a, from);
        carry(&mut plant, b, to);
        let mut modem = Modem::new(from);
        for number in 0..20 {
            let datagram = modem.packet(number);
            if !dropped.contains(&number) {
                plant.datagram(a, phone(a), datagram);
            }
            plant.run(20);
        }
        let sent = plant.sent_by(b);
        assert!(sent.iter().all(|datagram| datagram.to == phone(b)), "{name}");
        let expected: Vec<Result<Vec<u8>, u16>> = (0..20)
            .map(|number| if lost.contains(&number) { Err(1) } else { Ok(vec![0xc0, number]) })
            .collect();
        assert_eq!(heard(&sent), expected, "{name}");
        let length = sent.last().unwrap().bytes.len();
        assert_eq!(length, if to == Bare { 7 } else { 7 + 3 * 3 }, "{name}: as it is protected there");
        assert!(plant.sent_by(a).is_empty(), "{name}: nothing comes back");
    }
}

#[test]
fn fax_is_taken_from_the_peer_only_and_goes_nowhere_without_one_that_carries_it() {
    let mut plant = Plant::new();
    let (a, b) = (plant.open(plan(0, FormatId::ULAW, 0)), plant.open(plan(1, FormatId::ULAW, 0)));
    plant.command(Command::Join { a, b });
    carry(&mut plant, a, UdptlProtection::None);
    let mut modem = Modem::new(UdptlProtection::None);
    plant.datagram(a, phone(a), modem.packet(0));
    plant.run(20);
    assert!(plant.sent_by(b).is_empty(), "the other side carries audio");
    carry(&mut plant, b, UdptlProtection::None);
    plant.datagram(a, peer(77), modem.packet(1));
    plant.datagram(a, phone(a), vec![]);
    plant.datagram(a, phone(a), vec![0]);
    plant.datagram(a, phone(a), vec![0, 9, 200, 1]);
    plant.run(20);
    assert!(plant.sent_by(b).is_empty(), "strangers and broken ones");
    assert_eq!(plant.worker.load().discards.total(), 4);
    plant.datagram(a, phone(a), modem.packet(2));
    plant.run(20);
    assert_eq!(heard(&plant.sent_by(b)).last(), Some(&Ok(vec![0xc0, 2])));
}

#[test]
fn audio_comes_back_after_a_fax() {
    let mut plant = Plant::new();
    plant.net.relays = true;
    let (a, b) = (plant.open(plan(0, FormatId::ULAW, 0)), plant.open(plan(1, FormatId::ULAW, 0)));
    plant.command(Command::Join { a, b });
    let mut phones = [Phone::new(a, 0), Phone::new(b, 0)];
    let talk = |plant: &mut Plant, phones: &mut [Phone; 2]| {
        let before = plant.net.sent.len() + plant.net.carried as usize;
        for _ in 0..200 {
            phones.iter_mut().for_each(|phone| phone.say(plant, &[7; 160]));
            plant.run(20);
        }
        plant.net.sent.len() + plant.net.carried as usize - before
    };
    assert!(talk(&mut plant, &mut phones) >= 390);
    for stream in [a, b] {
        carry(&mut plant, stream, UdptlProtection::Redundancy);
    }
    assert!(plant.net.below.is_empty(), "nothing passes below the worker");
    let before = plant.sent_by(b).len();
    let mut modem = Modem::new(UdptlProtection::Redundancy);
    for number in 0..10 {
        plant.datagram(a, phone(a), modem.packet(number));
        plant.run(20);
    }
    assert_eq!(plant.sent_by(b).len() - before, 10);
    for stream in [a, b] {
        plant.command(Command::Plan { stream, plan: Box::new(plan(stream.slot, FormatId::ULAW, 0)) });
        plant.command(Command::Fax { stream, fax: None });
    }
    assert!(talk(&mut plant, &mut phones) >= 380);
    // A datagram that comes late is no audio.
    let discards = plant.worker.load().discards.total();
    plant.datagram(a, phone(a), modem.packet(10));
    plant.run(20);
    assert_eq!(plant.worker.load().discards.total(), discards + 1);
}
