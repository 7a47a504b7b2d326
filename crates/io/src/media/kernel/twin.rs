//! The XDP program against [`RelayPlan::carry`], its plain twin, frame by frame in the kernel's own test run.

use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::os::fd::AsFd as _;

use aya::maps::Map;
use aya::programs::{TestRun as _, TestRunOptions, Xdp};
use base::Random;
use media::{RelayPlan, Relayed};
use rtp::Header;

use super::frame::{self, HEADERS, IPV4, Template};
use super::ports::{Owner, Ports};
use super::relays::{RELAYS_MAX, Relays, Through};
use super::{load, sys};

/// Frames of the comparison.
const FRAMES: u32 = 20_000;
/// What the program answers.
const XDP_DROP: u32 = 1;
const XDP_PASS: u32 = 2;
const XDP_TX: u32 = 3;
/// A test run comes by the loopback interface.
const LOOPBACK: u32 = 1;

fn address(text: &str) -> SocketAddrV4 {
    text.parse().unwrap()
}

#[test]
fn the_program_relays_what_its_twin_carries_and_leaves_the_rest_as_it_is() {
    let mut programs = match aya::EbpfLoader::new().map_max_entries("RELAYS", RELAYS_MAX).load(load::OBJECT) {
        Ok(programs) => programs,
        Err(why) => return println!("skipped: {why}"),
    };
    let relay: &mut Xdp = programs.program_mut("relay").unwrap().try_into().unwrap();
    if let Err(why) = relay.load() {
        return println!("skipped: {why}");
    }
    let shared = |name: &str, bytes| {
        let Some(Map::Array(map)) = programs.map(name) else { panic!("map {name}") };
        sys::Shared::map(map.fd().as_fd(), bytes).unwrap()
    };
    let ports = Ports::new(shared("PORTS", Ports::BYTES));
    let relays = Relays::new(shared("RELAYS", Relays::BYTES));
    let (ours, source, target) =
        (address("198.51.100.7:4000"), address("192.0.2.1:40000"), address("203.0.113.9:5004"));
    ports.give(*ours.ip(), ours.port(), Owner { worker: 0, slot: 1, rtcp: false });
    let out = Template::new(address("198.51.100.7:4002"), target, 0xb8, ([2; 6], [4; 6]));
    let plan = RelayPlan {
        from: SocketAddr::V4(source),
        to: SocketAddr::V4(target),
        payload: (0, 97),
        ssrc: (0xfeed_0001, 0x0102_0304),
        sequence_offset: 60_000,
        timestamp_offset: u32::MAX - 77,
        clock: 8000,
        highest: 65_000,
        timestamp: u32::MAX - 1000,
        jitter_x16: 0,
    };
    let room = 1000;
    let through = Through { interfaces: (LOOPBACK, None), headers: out.clone(), room };
    let ticket = relays.begin(ours.port(), source, &plan, &through).unwrap();
    let mut run = |frame: &[u8], out: &mut [u8]| {
        let relay: &mut Xdp = programs.program_mut("relay").unwrap().try_into().unwrap();
        let options = TestRunOptions { data_in: Some(frame), data_out: Some(out), ..TestRunOptions::new() };
        let result = relay.test_run(options).unwrap();
        (result.return_value, result.data_size_out as usize)
    };

    let mut random = Random::new(0x7e1a);
    let (mut sequence, mut expected, mut carried) = (plan.highest, plan.begin(), 0);
    let timestamp = |so_far: &Relayed| so_far.latest.map(|(timestamp, _)| timestamp);
    for number in 0..FRAMES {
        let one_of = |random: &mut Random, chances: u32| random.word().is_multiple_of(chances);
        sequence = match random.word() % 40 {
            0 => sequence.wrapping_add(random.word() as u16),
            1 => sequence.wrapping_sub(random.word() as u16 % 200),
            2..5 => sequence.wrapping_add(random.word() as u16 % 3_100),
            _ => expected.highest.wrapping_add(1),
        };
        let header = Header {
            payload_type: if one_of(&mut random, 20) { random.word() as u8 & 0x7f } else { 0 },
            marker: one_of(&mut random, 10),
            sequence,
            timestamp: timestamp(&expected).unwrap_or(plan.timestamp).wrapping_add(
                match random.word() % 40 {
                    0 => random.word(),
                    1 => random.word() % 60_200,
                    2 => 0_u32.wrapping_sub(random.word() % 4_100),
                    _ => 160,
                },
            ),
            ssrc: if one_of(&mut random, 30) { random.word() } else { plan.ssrc.0 },
        };
        let length = match random.word() % 20 {
            0 => 0,
            1 => random.word() as usize % 1_200,
            2..8 => 6 + random.word() as usize % 250,
            _ => 160,
        };
        let mut packet = rtp::write(&header).to_vec();
        packet.extend((0..length).map(|_| random.word() as u8));
        if one_of(&mut random, 20) {
            packet[0] = random.word() as u8;
        }
        let from = match random.word() % 30 {
            0 => SocketAddrV4::new(*source.ip(), source.port() ^ 1),
            1 => SocketAddrV4::new(Ipv4Addr::from(random.word()), source.port()),
            _ => source,
        };
        let mut frame = vec![0; HEADERS + packet.len()];
        let written = Template::new(from, ours, 0, ([1; 6], [3; 6])).write(&packet, &mut frame);
        assert_eq!(written, frame.len());
        match random.word() % 8 {
            // Without a checksum; left to hardware that is not there; damaged; longer than the datagram.
            0 => frame[40..42].fill(0),
            1 => {
                let pseudo = frame::sum(&frame[26..34])
                    + u32::from(u16::from_ne_bytes([0, 17]))
                    + u32::from(u16::from_ne_bytes([frame[38], frame[39]]));
                let [high, low] = frame::fold(pseudo);
                frame[40..42].copy_from_slice(&[!high, !low]);
            }
            2 => {
                let at = 14 + random.word() as usize % (frame.len() - 14);
                frame[at] ^= 1 << (random.word() % 8);
            }
            3 if one_of(&mut random, 4) => frame.push(0),
            _ => {}
        }

        let parsed = frame::parse(&frame);
        let is_whole = frame.len() == 14 + usize::from(u16::from_be_bytes([frame[16], frame[17]]));
        let mut payload = parsed.as_ref().map_or_else(Vec::new, |parsed| parsed.payload.to_vec());
        let is_ours = parsed.is_some_and(|parsed| (parsed.from, parsed.to) == (source, ours)) && is_whole;
        let at = base::Instant::ZERO;
        let goes = is_ours && payload.len() <= room && plan.carry(&mut expected, &mut payload, at);
        carried += u32::from(goes);

        let mut left = vec![0; 2048];
        let (action, length) = run(&frame, &mut left);
        let name = format!("frame {number}: {header:?}, {} bytes", packet.len());
        if goes {
            let mut wanted = vec![0; 2048];
            let length_wanted = out.write(&payload, &mut wanted);
            assert_eq!((action, length), (XDP_TX, length_wanted), "{name}");
            assert_eq!(left[..length], wanted[..length], "{name}");
            assert!(frame::parse(&left[..length]).is_some());
        } else {
            assert_eq!(action, XDP_PASS, "{name}");
            assert_eq!(left[..length], frame, "{name}");
        }
        let read = relays.read(ticket).unwrap();
        assert_eq!(
            (read.packets, read.bytes, read.highest, timestamp(&read)),
            (expected.packets, expected.bytes, expected.highest, timestamp(&expected)),
            "{name}"
        );
    }
    assert!(carried > FRAMES / 2, "{carried}");

    // Once the plan has ended, and where the source is another one's, nothing goes.
    let next = Header {
        sequence: expected.highest.wrapping_add(1),
        timestamp: timestamp(&expected).unwrap(),
        ssrc: plan.ssrc.0,
        ..Header::default()
    };
    let mut packet = rtp::write(&next).to_vec();
    packet.resize(172, 0x7f);
    let mut frame = vec![0; HEADERS + packet.len()];
    Template::new(source, ours, 0, Default::default()).write(&packet, &mut frame);
    let mut left = vec![0; 2048];
    ports.let_in(ours.port(), Some(target));
    assert_eq!(run(&frame, &mut left).0, XDP_DROP);
    ports.let_in(ours.port(), Some(source));
    let last = relays.end(ticket);
    assert_eq!(last.map(|read| read.packets), Some(expected.packets));
    assert_eq!(run(&frame, &mut left).0, XDP_PASS);
    assert_eq!(left[14..14 + IPV4], frame[14..14 + IPV4]);
}
