//! A hierarchical timer wheel (Varghese and Lauck, "Hashed and Hierarchical Timing Wheels", scheme 7) that keeps moments to
//! the nanosecond.
//!
//! Eight levels of 64 slots take apart the number of a moment's tick (2^20 ns, 1.05 ms), six bits each: a moment lies at the
//! level of the highest digit in which its tick differs from the tick that the wheel stands at. So all moments of a level
//! come before those of the next one, and within a level the slots come in order. A slot that comes up is taken apart into
//! the levels below it; what is due within the tick the wheel stands at waits in front, sorted. A moment is filed at most once
//! a level, so that one costs the same however many there are. Nothing wakes for a slot: each knows its earliest moment, and
//! the wheel turns when that has come.

use crate::Instant;
use core::cmp::Reverse;
use std::collections::BinaryHeap;

/// A tick is so many bits of nanoseconds.
const TICK_BITS: u32 = 20;
/// A level is so many bits of ticks.
const DIGIT_BITS: u32 = 6;
const SLOTS: usize = 1 << DIGIT_BITS;
/// Where a list of waiting moments ends.
const END: u32 = u32::MAX;

/// Moments and what waits for them, earliest first; equal moments in order of what waits.
#[derive(Debug)]
pub(crate) struct Wheel<K> {
    /// The tick at which it stands; never later than the last moment that it was asked about.
    tick: u64,
    /// What is due within that tick, or was before.
    front: BinaryHeap<Reverse<(Instant, K)>>,
    /// What is due later, by the digit in which it differs; as many levels as have been needed.
    levels: Vec<Level>,
    /// All that waits in the levels, in lists by slot; and the list of those that are free.
    waiting: Vec<Waiting<K>>,
    free: u32,
}

#[derive(Debug)]
struct Level {
    /// A bit for each slot that holds something.
    taken: u64,
    slots: [Slot; SLOTS],
}

/// The earliest of its moments, and the first of its list.
#[derive(Debug, Clone, Copy)]
struct Slot {
    earliest: Instant,
    head: u32,
}

#[derive(Debug, Clone, Copy)]
struct Waiting<K> {
    at: Instant,
    key: K,
    next: u32,
}

const EMPTY: Slot = Slot { earliest: Instant::FAR, head: END };

impl<K: Ord> Default for Wheel<K> {
    fn default() -> Self {
        Self { tick: 0, front: BinaryHeap::new(), levels: Vec::new(), waiting: Vec::new(), free: END }
    }
}

const fn tick(at: Instant) -> u64 {
    at.as_nanos() >> TICK_BITS
}

impl Level {
    const NEW: Self = Self { taken: 0, slots: [EMPTY; SLOTS] };

    /// The first slot that holds something. All are ahead of the wheel, so that the lowest is the first.
    fn first(&self) -> Option<(usize, Slot)> {
        let at = self.taken.trailing_zeros() as usize;
        self.slots.get(at).map(|slot| (at, *slot))
    }
}

impl<K: Ord + Copy> Wheel<K> {
    /// Adds a moment. May be one that has passed.
    pub(crate) fn add(&mut self, at: Instant, key: K) {
        let Some(digit) = (self.tick ^ tick(at)).checked_ilog2().filter(|_| tick(at) > self.tick) else {
            self.front.push(Reverse((at, key)));
            return;
        };
        let level = digit / DIGIT_BITS;
        if self.levels.len() <= level as usize {
            self.levels.resize_with(level as usize + 1, || Level::NEW);
        }
        let slot = (tick(at) >> (level * DIGIT_BITS)) as usize % SLOTS;
        let Some(level) = self.levels.get_mut(level as usize) else { return };
        level.taken |= 1 << slot;
        let Some(slot) = level.slots.get_mut(slot) else { return };
        let waiting = Waiting { at, key, next: slot.head };
        slot.earliest = slot.earliest.min(at);
        match self.waiting.get_mut(self.free as usize) {
            Some(room) => {
                slot.head = self.free;
                self.free = core::mem::replace(room, waiting).next;
            }
            None => {
                // Four thousand million deadlines are more than there is memory for.
                slot.head = u32::try_from(self.waiting.len()).unwrap_or(END);
                self.waiting.push(waiting);
            }
        }
    }

    /// The earliest moment.
    pub(crate) fn earliest(&self) -> Option<Instant> {
        let in_slots = || self.levels.iter().find_map(Level::first).map(|(_, slot)| slot.earliest);
        self.front.peek().map(|Reverse((at, _))| *at).or_else(in_slots)
    }

    /// Takes out the earliest moment if it has come.
    pub(crate) fn take_due(&mut self, now: Instant) -> Option<(Instant, K)> {
        while self.earliest()? <= now {
            if let Some(Reverse(due)) = self.front.pop() {
                return Some(due);
            }
            self.turn();
        }
        None
    }

    /// Goes on to the tick of the earliest moment in the slots, and takes that one's slot apart.
    fn turn(&mut self) {
        let Some((level, (at, slot))) =
            self.levels.iter_mut().find_map(|level| level.first().map(|first| (level, first)))
        else {
            return;
        };
        level.taken &= !(1 << at);
        if let Some(slot) = level.slots.get_mut(at) {
            *slot = EMPTY;
        }
        self.tick = tick(slot.earliest);
        let mut at = slot.head;
        while let Some(waiting) = self.waiting.get_mut(at as usize) {
            let Waiting { at: moment, key, next } = *waiting;
            waiting.next = self.free;
            self.free = at;
            self.add(moment, key);
            at = next;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Random;
    use std::collections::BTreeSet;

    /// Spans of all levels, in nanoseconds: from within a tick to years.
    fn span(random: &mut Random) -> u64 {
        let bits = random.below(56);
        random.below(1 << bits)
    }

    #[test]
    fn moments_come_in_their_order_however_far_they_lie_and_however_time_leaps() {
        for seed in 0..40 {
            let (mut random, mut wheel, mut model) = (Random::new(seed), Wheel::default(), BTreeSet::new());
            let mut now = span(&mut random);
            let mut most = 0;
            for step in 0..4_000 {
                for _ in 0..random.below(4) {
                    // Some have passed already.
                    let at = Instant::from_nanos((now + span(&mut random)).saturating_sub(1_000_000));
                    if model.insert((at, step)) {
                        wheel.add(at, step);
                    }
                }
                most = most.max(model.len());
                now += span(&mut random) >> random.below(24);
                let now = Instant::from_nanos(now);
                assert_eq!(wheel.earliest(), model.first().map(|(at, _)| *at));
                while let Some(due) = wheel.take_due(now) {
                    assert_eq!(Some(due), model.pop_first(), "seed {seed}, step {step}");
                    assert!(due.0 <= now);
                }
                assert!(model.first().is_none_or(|(at, _)| *at > now), "seed {seed}, step {step}");
            }
            assert!(wheel.waiting.len() <= most, "what has come up leaves its room to others");
            while let Some(due) = wheel.take_due(Instant::FAR) {
                assert_eq!(Some(due), model.pop_first());
            }
            assert!(model.is_empty());
        }
    }

    #[test]
    fn equal_moments_come_in_the_order_of_what_waits() {
        let mut wheel = Wheel::default();
        let at = Instant::from_nanos(1 << 40);
        [3, 1, 2].into_iter().for_each(|key| wheel.add(at, key));
        let keys: Vec<_> = std::iter::from_fn(|| wheel.take_due(at)).map(|(_, key)| key).collect();
        assert_eq!(keys, [1, 2, 3]);
    }

    #[test]
    fn the_last_moment_there_is_has_a_place() {
        let mut wheel = Wheel::default();
        wheel.add(Instant::FAR, ());
        assert_eq!(wheel.take_due(Instant::from_nanos(u64::MAX - 1)), None);
        assert_eq!(wheel.take_due(Instant::FAR), Some((Instant::FAR, ())));
        wheel.add(Instant::ZERO, ());
        assert_eq!(wheel.take_due(Instant::FAR), Some((Instant::ZERO, ())), "it has passed");
    }
}
