//! What a relayed leg costs of the program's memory: front, rings, worker and back-end together.

#[path = "backends/world.rs"]
#[allow(dead_code, reason = "the tests of back-ends need more of it")]
mod world;

use std::net::SocketAddr;
use std::time::{Duration, Instant as Wall};

use base::Command;
use io::media::{IoWish, PortRange};
use kit::{Counting, bytes_of_all};
use rtp::Header;
use world::{World, plan};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Bridged calls that are measured.
const CALLS: u16 = 500;
/// Legs that share what a worker has for all of them: 5,000 calls.
const SHARED_BY: i64 = 10_000;
/// The most that one leg may own, bytes; what the kernel keeps for a socket is not in it.
const LEG_BYTES_MAX: i64 = 4096;
/// How long packets may take; nothing waits that long unless it fails.
const PATIENCE: Duration = Duration::from_secs(60);

#[test]
fn a_thousand_relayed_legs_keep_less_than_4_kb_each() {
    let _ = io::process::raise_file_limit();
    for (number, wish) in [IoWish::Epoll, IoWish::SkLookup].into_iter().enumerate() {
        let mut world = World::loopback().unwrap();
        let first = 31_000 + 2_000 * number as u16;
        world.ports = PortRange { first, last: first + 4 * CALLS - 1 };
        let phone = world.phone(0);
        let before = bytes_of_all();
        let mut front = match world.front(wish, 1) {
            Ok(front) => front,
            Err(why) => {
                println!("skipped: {why}");
                continue;
            }
        };
        let mut targets = Vec::new();
        let begun = bytes_of_all();
        for _ in 0..CALLS {
            let legs = [0, 1].map(|_| front.open(world.ip, plan(Some(phone.address()))).unwrap());
            targets.extend(legs.iter().map(|(_, port)| SocketAddr::new(world.ip, *port)));
            front.command(Command::Join { a: legs[0].0, b: legs[1].0 });
        }
        let loads = front.loads();
        let (mut sequence, give_up) = (0, Wall::now() + PATIENCE);
        // Everyone is heard some times, so that whatever is made when talk begins has been made.
        while loads.total().sent < 4 * u64::from(CALLS) {
            assert!(Wall::now() < give_up, "{:?}", loads.total());
            for (ssrc, to) in (0..).zip(&targets) {
                let timestamp = u32::from(sequence) * 160;
                let header = Header { payload_type: 0, marker: false, sequence, timestamp, ssrc };
                let packet = [&rtp::write(&header)[..], &[0x55; 160]].concat();
                let _ = phone.socket.send_to(&packet, to);
            }
            sequence += 1;
            front.drain_events(|_| ());
        }
        let legs = i64::from(CALLS) * 2;
        let targets_bytes = (targets.capacity() * size_of::<SocketAddr>()) as i64;
        let now = bytes_of_all() - targets_bytes;
        let (own, shared) = ((now - begun) / legs, begun - before);
        let whole = own + shared / SHARED_BY;
        println!("{}: {own} bytes a leg, and {shared} that all share", wish.name());
        assert!(whole <= LEG_BYTES_MAX, "{}: {whole} bytes a leg, {own} of its own", wish.name());
    }
}
