//! Who is called next: a pure function of the members, the caller's turn, the time and a random number.

use core::time::Duration;

use base::Instant;

use crate::Strategy;

/// A member who could be called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Candidate {
    /// Its place among all members of the queue.
    pub place: usize,
    /// Its penalty, as it counts for this caller.
    pub penalty: u32,
    /// Calls of the queue that it has taken.
    pub calls: u32,
    /// When its last one ended.
    pub last_call: Option<Instant>,
}

/// Whose turn it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Turn {
    /// Members of the queue.
    pub members: usize,
    /// The place from which the queue goes on (`rrmemory`, `rrordered`).
    pub queue: usize,
    /// The place from which this caller goes on (`linear`).
    pub caller: usize,
}

/// How wide the band of one penalty is: wider than anything that orders members within it.
const BAND: u64 = 1 << 40;
/// How much one more of penalty counts in `wrandom`, and the spread of `random`.
const SPREAD: u64 = 1000;

/// How late a candidate's turn comes; the lowest is called first. `draw` makes a number below its argument.
pub fn rank(
    strategy: Strategy,
    candidate: &Candidate,
    turn: Turn,
    now: Instant,
    draw: &mut dyn FnMut(u64) -> u64,
) -> u64 {
    let after = |from: usize| {
        let size = turn.members.max(1);
        (candidate.place + size - from % size) as u64 % size as u64
    };
    let within = match strategy {
        Strategy::RingAll => 0,
        Strategy::RoundRobinMemory | Strategy::RoundRobinOrdered => after(turn.queue),
        Strategy::Linear => after(turn.caller),
        Strategy::Random => draw(SPREAD),
        Strategy::WeightedRandom => return draw(u64::from(candidate.penalty).saturating_add(1) * SPREAD),
        Strategy::FewestCalls => u64::from(candidate.calls),
        // Who has had no call goes first; then the longest idle. A day is less than the band.
        Strategy::LeastRecent => candidate.last_call.map_or(0, |at| {
            let idle = now.since(at).min(IDLE_MAX);
            1 + (IDLE_MAX - idle).as_millis() as u64
        }),
    };
    u64::from(candidate.penalty) * BAND + within.min(BAND - 1)
}

/// Longer idle times are not told apart.
const IDLE_MAX: Duration = Duration::from_secs(30 * 24 * 3600);

/// The places of those who are called now, of all who could be; none of none. `ringall` calls all of the lowest penalty,
/// every other strategy one.
pub fn choose(
    strategy: Strategy,
    candidates: &[Candidate],
    turn: Turn,
    now: Instant,
    draw: &mut dyn FnMut(u64) -> u64,
) -> Vec<usize> {
    let ranked: Vec<(u64, usize)> =
        candidates.iter().map(|one| (rank(strategy, one, turn, now, draw), one.place)).collect();
    let Some((best, first)) = ranked.iter().copied().min() else { return Vec::new() };
    match strategy {
        Strategy::RingAll => {
            // Who came last is called first, as the field does.
            ranked.iter().rev().filter(|(rank, _)| *rank == best).map(|(_, place)| *place).collect()
        }
        _ => vec![first],
    }
}
