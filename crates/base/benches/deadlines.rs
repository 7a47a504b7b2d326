//! What a deadline costs that comes up and is set anew, beside one heap of all: `cargo bench -p base`.
//!
//! Deadlines lie 20 ms to a minute ahead, as those of repetitions, answers and registrations do, and time goes from one to the
//! next.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::hint::black_box;
use std::time::Duration;

use base::{Deadlines, Instant, Random, Scheduled};
use oracle::{Figure, quickest};

/// Deadlines that come up in a round.
const EVENTS: u32 = 200_000;
const ROUNDS: u32 = 5;
/// As many as a small site has calls, as the review of IAX2 had registrations, and more than any table holds.
const SIZES: [u32; 4] = [1_000, 15_000, 100_000, 1_000_000];

fn ahead(random: &mut Random) -> Duration {
    // Short ones are as frequent as long ones are.
    Duration::from_micros(20_000 + random.below(60_000_000) / (1 + random.below(1_000)))
}

/// Nanoseconds an event of a queue of so many.
fn cost<Q>(
    size: u32,
    queue: &mut Q,
    add: impl Fn(&mut Q, u32, Instant),
    next: impl Fn(&mut Q) -> Option<(Instant, u32)>,
) -> f64 {
    let mut random = Random::new(size.into());
    (0..size).for_each(|key| add(queue, key, Instant::ZERO + ahead(&mut random)));
    let took = quickest(ROUNDS, || {
        for _ in 0..EVENTS {
            let (now, key) = next(queue).expect("as many as there were");
            add(queue, black_box(key), now + ahead(&mut random));
        }
    });
    took.as_nanos() as f64 / f64::from(EVENTS)
}

fn main() {
    for size in SIZES {
        let mut wheel = (Deadlines::default(), vec![Scheduled::default(); size as usize]);
        let value = cost(
            size,
            &mut wheel,
            |(wheel, scheduled), key, at| wheel.schedule(key, &mut scheduled[key as usize], Some(at)),
            |(wheel, scheduled)| {
                let due = wheel.pop_due(wheel.earliest()?)?;
                scheduled[due.1 as usize].fired(due.0);
                Some(due)
            },
        );
        let heap = cost(
            size,
            &mut BinaryHeap::new(),
            |heap, key, at| heap.push(Reverse((at, key))),
            |heap| heap.pop().map(|Reverse(due)| due),
        );
        let name = format!("deadline of {size}");
        Figure { name: &name, value, unit: "ns", baseline: Some((heap, "one heap")) }.publish();
    }
}
