//! What callers are told of their wait, against how long they wait.

mod common;

use core::time::Duration;
use std::collections::BTreeMap;

use common::{Desk, queue, settings};
use kit::Random;
use queue::{End, Settings, Strategy};

/// Agents, seconds of a call on average, seconds between callers on average, and the share of callers with priority, percent.
const CENTRES: [(&str, usize, usize, usize, usize); 4] = [
    ("a few agents, long calls", 4, 240, 61, 0),
    ("many agents, short calls", 20, 90, 4, 0),
    ("one agent", 1, 60, 61, 0),
    ("some callers go before others", 6, 120, 20, 30),
];

/// A number of about this size: three dice, so that short ones are as common as long ones.
fn about(random: &mut Random, mean: usize) -> u64 {
    (0..3).map(|_| random.below(2 * mean / 3 + 1) as u64).sum::<u64>().max(1)
}

#[test]
fn the_estimate_is_right_on_average_and_better_than_the_mean_wait() {
    for (name, agents, talk, between, first) in CENTRES {
        let members: Vec<String> = (0..agents).map(|number| format!("PJSIP/{number}")).collect();
        let names: Vec<&str> = members.iter().map(String::as_str).collect();
        let settings =
            Settings { strategy: Strategy::LeastRecent, timeout: Duration::from_secs(60), ..settings() };
        let mut desk = Desk::new(vec![queue("q", settings, &names)]);
        let mut random = Random(7);
        let (mut next, mut arrives, mut second) = (0, 0, 0_u64);
        let mut talking: BTreeMap<u32, u64> = BTreeMap::new();
        let mut told: BTreeMap<u32, (u64, f64, f64)> = BTreeMap::new();
        let (mut errors, mut naive, mut ratio) = (Vec::new(), Vec::new(), (0.0, 0.0));
        let (mut relative, mut sooner) = (Vec::new(), 0);
        while next < 4000 {
            if second >= arrives {
                arrives = second + about(&mut random, between);
                let mut join = common::join_as(next);
                join.priority = i32::from(random.below(100) < first);
                let entered = desk.queues.join("q", join, desk.now, &mut desk.out);
                let queue = desk.queues.get("q").expect("the queue");
                let place = entered.expect("it takes callers");
                let estimate = desk.queues.estimate(queue, place).as_secs_f64();
                told.insert(next, (second, estimate, queue.stats.hold as f64));
                next += 1;
            }
            // Whoever is called answers at once.
            let ringing: Vec<(u32, String)> = desk
                .queues
                .get("q")
                .into_iter()
                .flat_map(|queue| queue.callers())
                .filter_map(|caller| {
                    Some((caller.channel.slot, caller.offers().first()?.interface.to_string()))
                })
                .collect();
            for (number, interface) in ringing {
                desk.connect(number, &interface);
                talking.insert(number, second + about(&mut random, talk));
                let (since, estimate, mean) = told.remove(&number).expect("it was told");
                let waited = (second - since) as f64;
                // The first few hundred are what it learns from; who is taken at once needs no estimate.
                if number > 500 && waited > 0.0 {
                    errors.push((estimate - waited).abs());
                    naive.push((mean - waited).abs());
                    ratio = (ratio.0 + estimate, ratio.1 + waited);
                    relative.push((estimate - waited).abs() / waited);
                    sooner += usize::from(waited <= estimate);
                }
            }
            let over: Vec<u32> =
                talking.iter().filter(|(_, until)| **until <= second).map(|(number, _)| *number).collect();
            for number in over {
                talking.remove(&number);
                desk.end(number, End::Agent);
            }
            desk.pass(1);
            desk.out.clear();
            second += 1;
        }
        let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
        let (own, other, share) = (mean(&errors), mean(&naive), ratio.0 / ratio.1);
        println!(
            "{name}: told {share:.2} of what was waited, off by {own:.0} s; the mean wait is off by {other:.0} s"
        );
        relative.sort_by(f64::total_cmp);
        let half = relative[relative.len() / 2];
        let sooner = sooner as f64 / relative.len() as f64;
        println!(
            "    half of them were told no more than {half:.2} of their wait wrong; {sooner:.2} were taken by then"
        );
        assert!(half < 0.25 && (0.25..0.75).contains(&sooner), "{name}: {half:.2} {sooner:.2}");
        assert!(errors.len() > 300, "{name}: {} waited", errors.len());
        assert!((0.85..1.15).contains(&share), "{name}: {share:.2}");
        assert!(own < 0.95 * other, "{name}: {own:.1} s against {other:.1} s");
    }
}
