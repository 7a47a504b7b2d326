//! The XDP program in the kernel's own test run.
#![forbid(unsafe_code)]

use std::net::{SocketAddr, SocketAddrV4};
use std::os::fd::AsFd as _;

use aya::maps::Map;
use aya::programs::{TestRun as _, TestRunOptions, Xdp};
use media::RelayPlan;
use rtp::Header;

use super::frame::{HEADERS, Template};
use super::ports::{Owner, Ports};
use super::relays::{RELAYS_MAX, Relays, Through};
use super::{load, sys};

/// A test run comes by the loopback interface.
const LOOPBACK: u32 = 1;
/// Runs of one packet, and rounds of them, the least of which counts.
const RUNS: u32 = 1 << 20;
const ROUNDS: usize = 3;
/// Payload of G.711 in 20 ms.
const PAYLOAD: usize = 160;

/// Nanoseconds to relay a packet of G.711. The plan turns each packet into the next one of the same source, so that one
/// frame can be relayed over and over.
pub(crate) fn nanos_a_packet() -> Result<f64, String> {
    let said = |why: &dyn std::error::Error| why.to_string();
    let mut programs = aya::EbpfLoader::new()
        .map_max_entries("RELAYS", RELAYS_MAX)
        .load(load::OBJECT)
        .map_err(|why| said(&why))?;
    let program = programs.program_mut("relay").ok_or("no program relay")?;
    let relay: &mut Xdp = program.try_into().map_err(|why: aya::programs::ProgramError| said(&why))?;
    relay.load().map_err(|why| said(&why))?;
    let shared = |name: &str, bytes| match programs.map(name) {
        Some(Map::Array(map)) => sys::Shared::map(map.fd().as_fd(), bytes).map_err(|why| said(&why)),
        _ => Err(format!("no map {name}")),
    };
    let ports = Ports::new(shared("PORTS", Ports::BYTES)?);
    let relays = Relays::new(shared("RELAYS", Relays::BYTES)?);
    let ours = SocketAddrV4::new([198, 51, 100, 7].into(), 4000);
    let source = SocketAddrV4::new([192, 0, 2, 1].into(), 40_000);
    ports.give(*ours.ip(), ours.port(), Owner { worker: 0, slot: 1, rtcp: false });
    ports.let_in(ours.port(), Some(source));
    let headers = Template::new(source, ours, 0, ([1; 6], [3; 6]));
    let plan = RelayPlan {
        from: SocketAddr::V4(source),
        to: SocketAddr::V4(ours),
        payload: (0, 0),
        ssrc: (7, 7),
        sequence_offset: 1,
        timestamp_offset: 160,
        clock: 8000,
        highest: 0,
        timestamp: 0,
        jitter_x16: 0,
    };
    let through = Through { interfaces: (LOOPBACK, None), headers: headers.clone(), room: 1000 };
    let ticket = relays.begin(ours.port(), source, &plan, &through).ok_or("no place for a plan")?;
    let mut packet = rtp::write(&Header { sequence: 1, ssrc: 7, ..Header::default() }).to_vec();
    packet.resize(packet.len() + PAYLOAD, 0xd5);
    let mut frame = vec![0; HEADERS + packet.len()];
    let mut best = f64::MAX;
    for _ in 0..ROUNDS {
        let so_far = relays.read(ticket).ok_or("the plan has ended")?;
        let header = Header {
            sequence: so_far.highest.wrapping_add(1),
            timestamp: so_far.latest.map_or(0, |(timestamp, _)| timestamp),
            ssrc: 7,
            ..Header::default()
        };
        packet.splice(..rtp::HEADER_BYTES, rtp::write(&header));
        headers.write(&packet, &mut frame);
        let before = relays.read(ticket).map_or(0, |read| read.packets);
        let program = programs.program_mut("relay").ok_or("no program relay")?;
        let relay: &mut Xdp = program.try_into().map_err(|why: aya::programs::ProgramError| said(&why))?;
        let options = TestRunOptions { data_in: Some(&frame), repeat: RUNS, ..TestRunOptions::new() };
        let result = relay.test_run(options).map_err(|why| said(&why))?;
        let relayed = relays.read(ticket).map_or(0, |read| read.packets).wrapping_sub(before);
        if relayed != RUNS {
            return Err(format!("{relayed} of {RUNS} packets were relayed"));
        }
        best = best.min(result.duration.as_nanos() as f64);
    }
    Ok(best)
}
