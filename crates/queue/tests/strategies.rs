//! The strategies against a plain model: who is called next, said the slow way.

use base::Instant;
use core::time::Duration;
use kit::Random;
use queue::Strategy;
use queue::strategy::{Candidate, Turn, choose};

fn at(seconds: u64) -> Instant {
    Instant::ZERO + Duration::from_secs(seconds)
}

fn candidate(place: usize, penalty: u32, calls: u32, last_call: Option<u64>) -> Candidate {
    Candidate { place, penalty, calls, last_call: last_call.map(at) }
}

/// One of all the strategies on the same four members; draws give what the row says, in order.
#[test]
fn each_strategy_calls_whom_it_says() {
    use Strategy::*;
    let members = [
        candidate(0, 0, 5, Some(10)),
        candidate(1, 0, 2, Some(90)),
        candidate(2, 1, 0, None),
        candidate(3, 0, 2, Some(5)),
    ];
    let turn = Turn { members: 4, queue: 0, caller: 0 };
    for (name, strategy, turn, draws, expected) in [
        ("all of the lowest penalty", RingAll, turn, [0, 0, 0, 0], vec![3, 1, 0]),
        ("idle longest", LeastRecent, turn, [0, 0, 0, 0], vec![3]),
        ("fewest calls, first of equals", FewestCalls, turn, [0, 0, 0, 0], vec![1]),
        ("the draw, within a penalty", Random, turn, [7, 3, 0, 5], vec![1]),
        ("round robin from its start", RoundRobinMemory, turn, [0, 0, 0, 0], vec![0]),
        ("round robin goes on", RoundRobinMemory, Turn { queue: 1, ..turn }, [0, 0, 0, 0], vec![1]),
        ("round robin passes a penalty by", RoundRobinOrdered, Turn { queue: 2, ..turn }, [0; 4], vec![3]),
        ("linear from where the caller is", Linear, Turn { caller: 3, ..turn }, [0, 0, 0, 0], vec![3]),
        ("linear begins anew", Linear, Turn { caller: 4, ..turn }, [0, 0, 0, 0], vec![0]),
        ("weighted: a penalty may win", WeightedRandom, turn, [900, 800, 700, 701], vec![2]),
    ] {
        let mut draws = draws.into_iter();
        let mut draw = |_| draws.next().unwrap();
        assert_eq!(choose(strategy, &members, turn, at(100), &mut draw), expected, "{name}");
    }
    for (_, strategy) in Strategy::WORDS {
        assert!(
            choose(strategy, &[], Turn::default(), at(0), &mut |_| 0).is_empty(),
            "{strategy:?} of nobody"
        );
    }
}

/// The same, by sorting and walking.
fn model(strategy: Strategy, members: &[Candidate], turn: Turn, draws: &[u64]) -> Vec<usize> {
    let Some(lowest) = members.iter().map(|member| member.penalty).min() else { return Vec::new() };
    let drawn: Vec<(u64, usize)> =
        members.iter().zip(draws).map(|(member, draw)| (*draw, member.place)).collect();
    let light = || members.iter().filter(|member| member.penalty == lowest);
    let is_light = |place: &usize| light().any(|member| member.place == *place);
    let walk = |from: usize| {
        let steps = (0..turn.members).map(|step| (from + step) % turn.members);
        steps.into_iter().find(|place| is_light(place)).into_iter().collect()
    };
    let first = |mut order: Vec<&Candidate>, by: &dyn Fn(&Candidate) -> u64| {
        order.sort_by_key(|member| (by(member), member.place));
        order.first().map(|member| member.place).into_iter().collect()
    };
    match strategy {
        Strategy::RingAll => {
            let mut all: Vec<usize> = light().map(|member| member.place).collect();
            all.reverse();
            all
        }
        Strategy::LeastRecent => {
            first(light().collect(), &|member| member.last_call.map_or(0, |at| 1 + at.as_millis()))
        }
        Strategy::FewestCalls => first(light().collect(), &|member| u64::from(member.calls)),
        Strategy::RoundRobinMemory | Strategy::RoundRobinOrdered => walk(turn.queue),
        Strategy::Linear => walk(turn.caller),
        Strategy::Random => {
            let mine = drawn.iter().filter(|(_, place)| is_light(place)).min();
            mine.map(|(_, place)| *place).into_iter().collect()
        }
        Strategy::WeightedRandom => drawn.iter().min().map(|(_, place)| *place).into_iter().collect(),
    }
}

#[test]
fn all_strategies_equal_the_plain_model_over_many_queues() {
    let mut random = Random(20);
    for round in 0..20_000 {
        let members = 1 + random.below(8);
        let mut candidates = Vec::new();
        for place in 0..members {
            let last_call = (random.below(3) > 0).then(|| random.below(1000) as u64);
            let penalty = random.below(3) as u32;
            if random.below(4) > 0 {
                candidates.push(candidate(place, penalty, random.below(4) as u32, last_call));
            }
        }
        let turn = Turn { members, queue: random.below(members), caller: random.below(members) };
        for (_, strategy) in Strategy::WORDS {
            let draws: Vec<u64> = candidates
                .iter()
                .map(|one| match strategy {
                    Strategy::WeightedRandom => random.below(1000 * (one.penalty as usize + 1)) as u64,
                    _ => random.below(1000) as u64,
                })
                .collect();
            let mut next = draws.iter().copied();
            let chosen = choose(strategy, &candidates, turn, at(2000), &mut |_| next.next().unwrap_or(0));
            let expected = model(strategy, &candidates, turn, &draws);
            assert_eq!(chosen, expected, "round {round} {strategy:?} {candidates:?} {turn:?} {draws:?}");
        }
    }
}

#[test]
fn a_weighted_draw_favours_low_penalties_without_starving_high_ones() {
    let members = [candidate(0, 0, 0, None), candidate(1, 4, 0, None)];
    let mut random = base::Random::new(3);
    let mut taken = [0u32; 2];
    for _ in 0..10_000 {
        let turn = Turn { members: 2, ..Turn::default() };
        let chosen = choose(Strategy::WeightedRandom, &members, turn, at(0), &mut |end| random.below(end));
        taken[chosen[0]] += 1;
    }
    // One of 5,000 against one of 1,000: the higher number goes first in 1 of 10.
    assert!((800..1_200).contains(&taken[1]), "{taken:?}");
}
