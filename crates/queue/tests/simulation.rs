//! A contact centre from a seed: agents answer late, refuse, vanish and pause, callers lose patience, queues are reloaded.
//! After every step what always holds is checked; at the end every caller has left by exactly one line of the log.
//!
//! `STROWGER_QUEUE_STEPS=10000000 cargo test -p queue --test simulation` runs longer.

mod centre;
mod common;

use centre::World;
use proptest::prelude::*;

#[test]
fn a_million_steps_lose_nobody_and_offer_nobody_twice() {
    let steps = std::env::var("STROWGER_QUEUE_STEPS").ok().and_then(|text| text.parse().ok());
    let steps: u32 = steps.unwrap_or(1_000_000);
    let mut calls = 0;
    for seed in 0..50 {
        let mut world = World::new(seed, 1 + seed as usize % 4, 3 + seed as usize % 9);
        (0..steps / 50).for_each(|_| world.step());
        calls += world.close();
    }
    assert!(calls > steps / 100, "too few conversations to mean anything: {calls}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, max_shrink_iters: 100, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn any_small_centre_keeps_what_always_holds(
        seed: u64, queues in 1usize..5, agents in 0usize..8, steps in 1usize..600,
    ) {
        let mut world = World::new(seed, queues, agents);
        (0..steps).for_each(|_| world.step());
        world.close();
    }
}

/// A thousand agents, ten thousand calls an hour, for a day of eight hours, on invented time; `cargo bench -p queue` says how
/// long that takes.
#[test]
fn a_working_day_of_a_thousand_agents_loses_nobody_and_offers_nobody_twice() {
    let day = centre::working_day(9);
    assert!(day.arrived > 79_000 && day.calls > 70_000, "{day:?}");
    assert!(day.hold_seconds < 60, "{day:?}");
}
