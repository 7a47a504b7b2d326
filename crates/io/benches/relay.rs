//! What a bridge costs that the XDP program relays, on the whole machine.
//!
//! `cargo bench -p io --bench relay` writes `media_kernel_relay.json` and `media_kernel_relay_packet.json`. Phones in a
//! network namespace of their own talk over a veth pair, at whose end a program drops what they are sent. Rounds alternate:
//! packets are relayed, or dropped by the same program at its entry, because their source is none of the call's. The
//! figure is the difference of the time that this process and the kernel's threads have run, by their nanosecond clocks:
//! the media thread, and soft interrupts, which run where phones send, or in a thread of the kernel; sending and receiving
//! by phones, and the driver, are on both sides of it. The second figure
//! is the program alone in the kernel's own test run. What needs privileges that are not there is skipped and said.

#[path = "../tests/backends/world.rs"]
#[allow(dead_code, reason = "the tests need more of it")]
mod world;

#[path = "common/busy.rs"]
mod busy;
#[path = "common/sink.rs"]
mod sink;
#[path = "common/talk.rs"]
mod talk;

use std::io::Write as _;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::{Duration, Instant as Wall};

use base::{Command, StreamId};
use io::media::{IoWish, MediaFront, PortRange};
use talk::Talk;
use world::{Phone, World, plan};

/// Bridged calls: 800 legs, 40,000 packets a second.
const CALLS: usize = 400;
/// Rounds of each kind.
const ROUNDS: usize = 5;
const MEASURED: Duration = Duration::from_secs(2);
/// Bridges are looked at once a second; one that waits does so twice as long.
const SETTLING: Duration = Duration::from_secs(30);
/// Share of a core that a bridge may cost.
const GOAL_PERCENT: f64 = 0.010;

fn main() {
    match io::media::relay_program_nanos() {
        Ok(nanos) => {
            println!("the program alone: {nanos:.0} ns a packet");
            write(
                "media_kernel_relay_packet",
                nanos,
                "ns per relayed packet, the program in the kernel's test run",
                None,
            );
        }
        Err(why) => println!("skipped: {why}"),
    }
    let world = World::veth("brelay").and_then(|mut world| world.relay_in_kernel().map(|()| world));
    let mut world = match world {
        Ok(world) => world,
        Err(why) => return println!("skipped: {why}"),
    };
    world.ports = PortRange { first: 20_000, last: 29_999 };
    world.real_time = true;
    world.inside(|| {
        let phone = world.phone(0);
        let mut front = match world.front(IoWish::Xdp, 1) {
            Ok(front) => front,
            Err(why) => return println!("skipped: {why}"),
        };
        if let Err(why) = front.io().kernel_relay() {
            return println!("skipped: {why}");
        }
        match world.inside_phones(|| sink::drop_ipv4("v1")) {
            Ok(_sink) => measure(&world, &mut front, &phone),
            Err(why) => println!("skipped: a program that drops: {why}"),
        }
    });
}

fn measure(world: &World, front: &mut MediaFront, phone: &Phone) {
    let (mut streams, mut targets) = (Vec::new(), Vec::new());
    for _ in 0..CALLS {
        let legs = [0, 1].map(|_| front.open(world.ip, plan(Some(phone.address()))).expect("a free port"));
        targets.extend(legs.iter().map(|(_, port)| SocketAddr::new(world.ip, *port)));
        front.command(Command::Join { a: legs[0].0, b: legs[1].0 });
        streams.extend(legs.map(|(stream, _)| stream));
    }
    let nobody = SocketAddr::from(([10, 44, 0, 99], 9));
    let socket = phone.socket.try_clone().expect("a second handle");
    let talk =
        world.inside_phones(|| Talk::start(targets, move |_, packet, to| socket.send_to(packet, to).is_ok()));
    let (mut costs, mut shares) = (Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        let [relayed, dropped] = [(phone.address(), CALLS as u64), (nobody, 0)].map(|(source, relays)| {
            replan(front, &streams, source);
            await_relays(front, relays);
            let relayed = front.loads().total().relayed;
            let (busy, sent, begin) = (busy::nanos(), talk.sent(), Wall::now());
            std::thread::sleep(MEASURED);
            let (busy, sent) = (busy::nanos() - busy, talk.sent() - sent);
            let rate = sent as f64 / begin.elapsed().as_secs_f64();
            assert!(rate > 0.5 * (CALLS * 100) as f64, "{rate:.0} packets a second: the machine is too busy");
            front.drain_events(|_| ());
            let total = front.loads().total();
            assert_eq!(total.relays, relays, "all the time");
            if relays > 0 {
                let through = total.relayed - relayed;
                // Counters are read once a second.
                assert!(through as f64 > 0.4 * sent as f64, "{through} of {sent} packets were relayed");
            }
            busy as f64 / sent as f64
        });
        let cost = relayed - dropped;
        println!(
            "round {round}: {relayed:.0} ns busy a packet with the relay, {dropped:.0} when dropped at entry"
        );
        costs.push(cost);
        shares.push(cost * 100.0 * 100.0 / 1e9);
    }
    talk.stop();
    costs.sort_by(f64::total_cmp);
    shares.sort_by(f64::total_cmp);
    let (cost, share) = (costs[ROUNDS / 2], shares[ROUNDS / 2]);
    println!(
        "{cost:.0} ns a packet, {share:.4} % of a core a bridge (median; {:.4} to {:.4})",
        shares[0],
        shares[ROUNDS - 1]
    );
    write(
        "media_kernel_relay",
        share,
        "% of a core per bridge in kernel relay, whole machine",
        Some(GOAL_PERCENT),
    );
}

/// Locks every stream to a source.
fn replan(front: &mut MediaFront, streams: &[StreamId], source: SocketAddr) {
    for stream in streams {
        front.command(Command::Plan { stream: *stream, plan: Box::new(plan(Some(source))) });
    }
}
fn await_relays(front: &mut MediaFront, relays: u64) {
    let give_up = Wall::now() + SETTLING;
    // Counters of before are gone after a second.
    std::thread::sleep(Duration::from_secs(1));
    while front.loads().total().relays != relays {
        assert!(Wall::now() < give_up, "{} of {relays} bridges are relayed", front.loads().total().relays);
        front.drain_events(|_| ());
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn write(name: &str, value: f64, unit: &str, goal: Option<f64>) {
    let folder = std::env::var_os("STROWGER_BENCH_DIR")
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../target/bench"), PathBuf::from);
    std::fs::create_dir_all(&folder).expect("a folder for the figures");
    let mut file =
        std::fs::File::create(folder.join(format!("{name}.json"))).expect("a file for the figures");
    let goal = goal.map_or(String::new(), |goal| format!(", \"goal\": {goal}"));
    writeln!(file, "{{\"name\": \"{name}\", \"value\": {value:.5}, \"unit\": \"{unit}\"{goal}}}")
        .expect("the figures are written");
}
