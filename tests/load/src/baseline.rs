//! What others do: a thread a call, which waits for its two sockets and sends on what comes.

use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::{Meter, World, short};

/// Calls of the baseline: 40,000 packets a second.
const CALLS: usize = 400;
/// One packet of each side every 20 ms, spread over the milliseconds.
const PACKET_MS: u32 = 20;
/// How long a thread waits for a packet before it looks whether to end.
const WAIT: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };
const STACK_BYTES: usize = 64 * 1024;

/// Microseconds of processor time for each packet that is sent on, with a thread a call, `poll`, `recvfrom` and `sendto`.
pub fn thread_per_call(world: &World) -> f64 {
    let phones = world.at_phones(|| UdpSocket::bind((world.phones, 0)).expect("a socket for phones"));
    let to = phones.local_addr().expect("an address");
    let (stop, sent) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let ids = Arc::new(std::sync::Mutex::new(Vec::new()));
    let (mut targets, mut threads) = (Vec::new(), Vec::new());
    for _ in 0..CALLS {
        let legs =
            world.at_program(|| [0, 1].map(|_| UdpSocket::bind((world.program, 0)).expect("a socket")));
        targets.extend(legs.iter().map(|leg| leg.local_addr().expect("an address")));
        let (stop, sent, ids) = (stop.clone(), sent.clone(), ids.clone());
        let body = move || {
            ids.lock().expect("nobody panics with it").push(rustix::thread::gettid().as_raw_nonzero().get());
            relay(&legs, to, &stop, &sent);
        };
        threads.push(std::thread::Builder::new().stack_size(STACK_BYTES).spawn(body).expect("a thread"));
    }
    let talk = std::thread::spawn({
        let stop = stop.clone();
        move || talk(&phones, &targets, &stop)
    });
    let (warm, length) = if short() { (200, 300) } else { (1000, 2000) };
    std::thread::sleep(Duration::from_millis(warm));
    let ids: Vec<u32> =
        ids.lock().expect("nobody panics with it").iter().map(|id| id.unsigned_abs()).collect();
    let meter = Meter::new(std::process::id());
    let before = (meter.read(), sent.load(Relaxed));
    std::thread::sleep(Duration::from_millis(length));
    let after = (meter.read(), sent.load(Relaxed));
    stop.store(true, Relaxed);
    threads.into_iter().for_each(|thread| thread.join().expect("a thread of the baseline ends"));
    talk.join().expect("the phones end");
    after.0.cpu_of_since(&before.0, &ids) * 1e6 / (after.1 - before.1).max(1) as f64
}

fn relay(legs: &[UdpSocket; 2], to: SocketAddr, stop: &AtomicBool, sent: &AtomicU64) {
    let mut buffer = [0; 2048];
    while !stop.load(Relaxed) {
        let mut polled = [0, 1].map(|n: usize| PollFd::new(&legs[n], PollFlags::IN));
        let _ready = poll(&mut polled, Some(&WAIT));
        for (n, polled) in polled.iter().enumerate().filter(|(_, one)| one.revents().contains(PollFlags::IN))
        {
            let _ = polled;
            let Ok((length, _)) = legs[n].recv_from(&mut buffer) else { continue };
            if legs[1 - n].send_to(&buffer[..length], to).is_ok() {
                sent.fetch_add(1, Relaxed);
            }
        }
    }
}

/// Phones on one socket that all talk. What they hear waits in a queue that is full.
fn talk(phones: &UdpSocket, targets: &[SocketAddr], stop: &AtomicBool) {
    let mut due = Instant::now();
    let packet = [0x80_u8; 172];
    for step in 0_u32.. {
        if stop.load(Relaxed) {
            return;
        }
        std::thread::sleep(due.saturating_duration_since(Instant::now()));
        due += Duration::from_millis(1);
        for to in targets.iter().skip((step % PACKET_MS) as usize).step_by(PACKET_MS as usize) {
            // A call that has ended answers that nobody is there.
            let _sent = phones.send_to(&packet, to);
        }
    }
}
