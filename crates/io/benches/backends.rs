//! What a relayed packet costs on each back-end, against a thread a call in the same run.
//!
//! `cargo bench -p io --bench backends` writes `media_io_PLACE_BACKEND.json`. PLACE is `loopback`, or `veth`: phones in a
//! network namespace of their own, which needs privileges, as all back-ends but `epoll` do; what is not to be had is
//! skipped and said. The figure is the processor time of the media thread: system calls, its own work, and the way
//! of what it sends up to the phones' socket. What the kernel does for a packet before the thread takes it is the
//! sender's time here, on every back-end alike.

#[path = "../tests/backends/world.rs"]
#[allow(dead_code, reason = "the tests need more of it")]
mod world;

mod common;
#[path = "common/talk.rs"]
mod talk;

use std::io::Write;
use std::net::{SocketAddr, UdpSocket};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant as Wall};

use base::Command;
use io::media::{IoWish, MediaFront, PortRange, thread_cpu};
use world::{Phone, World, plan};

use common::poll_two;
use talk::Talk;

/// Bridged calls: 800 legs, 40,000 packets a second.
const CALLS: usize = 400;
/// Rounds of each measurement; the least counts, because others share the processor.
const ROUNDS: usize = 3;
const MEASURED: Duration = Duration::from_millis(1500);
/// Before it: sockets, caches, the worker's choice of tick.
const WARM_UP: Duration = Duration::from_millis(1500);

fn main() {
    // Two sockets a call; a refusal shows up as an error of the first socket too many.
    let _ = io::process::raise_file_limit();
    for world in [World::loopback(), World::veth("bench")] {
        match world {
            Ok(mut world) => {
                world.ports = PortRange { first: 20_000, last: 29_999 };
                world.real_time = true;
                world.inside(|| measure_all(&world, &world.phone(0)));
            }
            Err(why) => println!("skipped: {why}"),
        }
    }
}

fn measure_all(world: &World, phone: &Phone) {
    let baseline = thread_per_call(world, phone);
    println!("{}: a thread a call {baseline:.2} us a packet", world.name);
    for wish in [IoWish::Epoll, IoWish::Uring, IoWish::SkLookup, IoWish::Xdp] {
        match world.front(wish, 1) {
            Ok(mut front) => {
                let value = relay(world, &mut front, phone);
                println!(
                    "{}: {} {value:.2} us a packet, {:.1} times less",
                    world.name,
                    wish.name(),
                    baseline / value
                );
                write(&format!("media_io_{}_{}", world.name, wish.name()), value, baseline);
            }
            Err(why) => println!("skipped: {why}"),
        }
    }
}

/// Microseconds of the media thread a packet.
fn relay(world: &World, front: &mut MediaFront, phone: &Phone) -> f64 {
    let mut targets = Vec::new();
    for _ in 0..CALLS {
        let legs = [0, 1].map(|_| front.open(world.ip, plan(Some(phone.address()))).expect("a free port"));
        targets.extend(legs.iter().map(|(_, port)| SocketAddr::new(world.ip, *port)));
        front.command(Command::Join { a: legs[0].0, b: legs[1].0 });
    }
    let talk = talk(phone, targets);
    std::thread::sleep(WARM_UP);
    let loads = front.loads();
    let mut best = f64::MAX;
    for _ in 0..ROUNDS {
        let (before, begin) = (loads.total(), Wall::now());
        std::thread::sleep(MEASURED);
        let after = loads.total();
        let (sent, received) = (after.sent - before.sent, after.received - before.received);
        let rate = sent as f64 / begin.elapsed().as_secs_f64();
        assert!(sent * 100 >= received * 98, "{sent} of {received} packets were relayed");
        // Phones that others crowd out say less; of much less a figure would be of another load.
        assert!(rate > 0.5 * (CALLS * 100) as f64, "{rate:.0} packets a second: the machine is too busy");
        assert_eq!(after.unsent, 0);
        let cost = (after.cpu_nanos - before.cpu_nanos) as f64 / 1e3 / sent as f64;
        println!("{}: {rate:.0} packets a second, {cost:.2} us each", world.name);
        best = best.min(cost);
    }
    talk.stop();
    front.drain_events(|_| ());
    best
}

/// One thread a call with two sockets, as telephony servers of the last decades have it; microseconds a packet.
fn thread_per_call(world: &World, phone: &Phone) -> f64 {
    let stop = Arc::new(AtomicBool::new(false));
    let (nanos, sent) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let (mut targets, mut threads) = (Vec::new(), Vec::new());
    for _ in 0..CALLS {
        let legs = [0, 1].map(|_| UdpSocket::bind((world.ip, 0)).expect("a socket"));
        targets.extend(legs.iter().map(|leg| leg.local_addr().expect("an address")));
        let (stop, nanos, sent, to) = (stop.clone(), nanos.clone(), sent.clone(), phone.address());
        let body = move || {
            let before = thread_cpu();
            let mut buffer = [0; 2048];
            while !stop.load(Relaxed) {
                for ready in poll_two(&legs) {
                    let Ok((length, _)) = legs[ready].recv_from(&mut buffer) else { continue };
                    if legs[1 - ready].send_to(&buffer[..length], to).is_ok() {
                        sent.fetch_add(1, Relaxed);
                    }
                }
            }
            nanos.fetch_add((thread_cpu() - before).as_nanos() as u64, Relaxed);
        };
        threads.push(std::thread::Builder::new().stack_size(64 * 1024).spawn(body).expect("a thread"));
    }
    let talk = talk(phone, targets);
    std::thread::sleep(WARM_UP + MEASURED);
    stop.store(true, Relaxed);
    threads.into_iter().for_each(|thread| thread.join().expect("a baseline thread ends"));
    talk.stop();
    nanos.load(Relaxed) as f64 / 1e3 / sent.load(Relaxed) as f64
}

/// Phones on one socket. What they hear waits in a queue that is full.
fn talk(phone: &Phone, targets: Vec<SocketAddr>) -> Talk {
    let socket = phone.socket.try_clone().expect("a second handle");
    // A baseline that has ended answers that nobody is there.
    Talk::start(targets, move |_, packet, to| socket.send_to(packet, to).is_ok())
}

fn write(name: &str, value: f64, baseline: f64) {
    let folder = std::env::var_os("STROWGER_BENCH_DIR")
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../target/bench"), PathBuf::from);
    std::fs::create_dir_all(&folder).expect("a folder for the figures");
    let mut file =
        std::fs::File::create(folder.join(format!("{name}.json"))).expect("a file for the figures");
    let ratio = baseline / value;
    writeln!(
        file,
        "{{\"name\": \"{name}\", \"value\": {value:.5}, \"unit\": \"us per relayed packet\", \"baseline\": \
         {baseline:.5}, \"baseline_name\": \"thread per call, poll, recvfrom and sendto\", \"ratio\": {ratio:.2}}}"
    )
    .expect("the figures are written");
}
