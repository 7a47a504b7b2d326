//! Call numbers: which one a new call gets, so that nobody outside can tell, and none comes back while a late frame
//! could still mean its last owner.
//!
//! Two spaces. [`SharedNumbers`] are unique on the whole socket: calls that may be transferred (the third side talks to
//! the number from an address of its own) and trunked calls take from there. [`OwnNumbers`] are unique for one remote
//! address and port, which is all that a remote can ever see: everything else takes from there, so that registrations
//! are not bounded by what 15 bits and a minute's rest allow one socket.
//!
//! # Why a number cannot be told from outside
//!
//! *Shared:* the number is drawn from the free ones, each equally likely ([`base::hash::Randomness::below`] rejects the
//! surplus), by a keyed hash of a counter. Who can tell the next draw better than 1 in the count of free numbers can
//! tell SipHash-2-4 from a random function. There are at least [`SHARED_FREE_MIN`] free ones, or none is given.
//!
//! *Own:* numbers of one remote are the values of a permutation, whose key is the keyed hash of the remote's address, a
//! salt drawn when the remote was first seen, and the cycle. Keys of different remotes are independent, unless SipHash
//! can be told from a random function; so what a remote is given tells it nothing about what another is given, and for
//! who spoofs that other's address each number is equally likely, 1 in 32,766 a guess. Only the remote itself, and who
//! reads along on its way, sees values of its permutation, and they see the numbers of its calls anyway. Ports of one host
//! beyond a bound share a sequence: each of them sees that its own numbers are not those of the others, so a guess is right
//! once in 32,766 less the numbers that the guesser itself was given.
//!
//! # Why none comes back too early
//!
//! *Shared:* a number that is given back rests [`REST`] before it is free. *Own:* inside a cycle a permutation repeats
//! nothing; across cycles a number is passed over when the place that it had in the cycle before was given less than
//! [`REST_OWN`] ago, or when its owner lives, or rests after a life longer than [`SHORT_LIFE`]. What lives shorter has
//! left [`REST`] behind when [`REST_OWN`] has passed.

use base::Instant;
use base::hash::{Key, Randomness};
use core::ops::RangeInclusive;
use core::time::Duration;
use std::collections::VecDeque;

/// How long a number rests: the last repetition of a frame comes 50 s after it was sent first (10 s four times, after
/// 10 s at most), and 10 s are given to the network.
pub const REST: Duration = Duration::from_secs(60);
/// The longest life whose number needs no memory of its own: a registration or a poke ends within it.
pub const SHORT_LIFE: Duration = Duration::from_secs(60);
/// How long ago a number of [`OwnNumbers`] was given, at least, when it is given again: [`SHORT_LIFE`] and [`REST`].
pub const REST_OWN: Duration = Duration::from_secs(120);
/// Shared numbers of single calls: number 0 is none, 1 is that of answers without state.
pub const SINGLE: RangeInclusive<u16> = 2..=16_383;
/// Shared numbers of trunked calls, which peers of the field expect in the upper half.
pub const TRUNKED: RangeInclusive<u16> = 16_384..=32_767;
/// Fewest free shared numbers to draw from, so that a guess is right once in so many times at best.
pub const SHARED_FREE_MIN: usize = 64;

/// Numbers that are unique on the whole socket.
#[derive(Debug)]
pub struct SharedNumbers {
    free: Vec<u16>,
    /// Given back, in order of time.
    resting: VecDeque<(Instant, u16)>,
    total: usize,
}

impl SharedNumbers {
    /// All of `range` are free.
    pub fn new(range: RangeInclusive<u16>) -> Self {
        let free: Vec<u16> = range.collect();
        Self { total: free.len(), free, resting: VecDeque::new() }
    }
    /// A number that nobody can tell; `None` when too few are free.
    pub fn take(&mut self, now: Instant, random: &mut Randomness) -> Option<u16> {
        self.wake(now);
        if self.free.len() < SHARED_FREE_MIN {
            return None;
        }
        let at = random.below(self.free.len() as u64) as usize;
        (at < self.free.len()).then(|| self.free.swap_remove(at))
    }
    /// Gives a number back, which rests before it is given again.
    pub fn give_back(&mut self, now: Instant, number: u16) {
        self.resting.push_back((now, number));
    }
    /// What has rested is free.
    pub fn wake(&mut self, now: Instant) {
        while let Some((_, number)) = self.resting.pop_front_if(|(since, _)| now - *since >= REST) {
            self.free.push(number);
        }
    }
    /// Numbers that are neither free nor resting.
    pub fn in_use(&self) -> usize {
        self.total - self.free.len() - self.resting.len()
    }
    /// Numbers that rest.
    pub fn resting(&self) -> usize {
        self.resting.len()
    }
}

/// Numbers of one remote: those of a permutation's values, 2 to 32,767.
const OWN: u64 = 32_766;
/// The first of them.
const OWN_FIRST: u16 = 2;
/// Most values to look at for one number; that so many are taken means that most are.
const TRIES: usize = 64;

/// Numbers that are unique for one remote address and port.
#[derive(Debug, Clone)]
pub struct OwnNumbers {
    salt: u64,
    /// Values of the permutations looked at so far.
    count: u64,
    /// The count at two moments, [`REST_OWN`] apart at least; before the first one everything has rested.
    marks: [(Instant, u64); 2],
}

impl OwnNumbers {
    /// Numbers of a remote that is seen first.
    pub fn new(now: Instant, random: &mut Randomness) -> Self {
        Self { salt: random.next(), count: 0, marks: [(now, 0); 2] }
    }
    /// When a number was last asked for, to within [`REST_OWN`]; later than that nothing of it needs to be known.
    pub fn last_used(&self) -> Instant {
        self.marks[1].0
    }
    /// A number that nobody else can tell. `taken` says which ones live or rest. `None` when nearly all were given in
    /// the last [`REST_OWN`]: more than 270 a second from one address and port.
    pub fn take(
        &mut self,
        now: Instant,
        key: Key,
        remote: &[u8],
        mut taken: impl FnMut(u16) -> bool,
    ) -> Option<u16> {
        if now - self.marks[1].0 >= REST_OWN {
            self.marks = [self.marks[1], (now, self.count)];
        }
        let rested = self.marks[0].1;
        for _ in 0..TRIES {
            if self.count - rested >= OWN {
                return None;
            }
            let (cycle, place) = (self.count / OWN, self.count % OWN);
            self.count += 1;
            let value = Permutation::new(key, remote, self.salt, cycle).value(place as u16);
            let early = cycle.checked_sub(1).is_some_and(|before| {
                let place = Permutation::new(key, remote, self.salt, before).place(value);
                before * OWN + u64::from(place) >= rested
            });
            let number = OWN_FIRST + value;
            if !early && !taken(number) {
                return Some(number);
            }
        }
        None
    }
}

/// A keyed permutation of 0 to 32,765: a Feistel network over 16 bits, walked along its cycle until the value fits.
#[derive(Debug, Clone, Copy)]
struct Permutation(Key);

/// Rounds of the network; four make a pseudo-random permutation of long halves (Luby and Rackoff), short ones like
/// these want more (NIST SP 800-38G takes ten).
const ROUNDS: u8 = 12;

impl Permutation {
    fn new(key: Key, remote: &[u8], salt: u64, cycle: u64) -> Self {
        Self(Key::new(key.digest(&[remote, &salt.to_le_bytes(), &cycle.to_le_bytes()])))
    }
    fn half(self, round: u8, half: u8) -> u8 {
        self.0.digest(&[&[round, half]]) as u8
    }
    fn value(self, place: u16) -> u16 {
        let mut at = place;
        loop {
            let [mut left, mut right] = at.to_be_bytes();
            for round in 0..ROUNDS {
                (left, right) = (right, left ^ self.half(round, right));
            }
            at = u16::from_be_bytes([left, right]);
            if u64::from(at) < OWN {
                return at;
            }
        }
    }
    fn place(self, value: u16) -> u16 {
        let mut at = value;
        loop {
            let [mut left, mut right] = at.to_be_bytes();
            for round in (0..ROUNDS).rev() {
                (left, right) = (right ^ self.half(round, left), left);
            }
            at = u16::from_be_bytes([left, right]);
            if u64::from(at) < OWN {
                return at;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn random(seed: u128) -> Randomness {
        Randomness::new(Key::new(seed))
    }
    fn at(seconds: u64) -> Instant {
        Instant::ZERO + Duration::from_secs(seconds)
    }

    /// Pearson's statistic of counts that should be equal, less its expectation, in standard deviations.
    fn deviation(counts: impl IntoIterator<Item = usize>) -> f64 {
        let counts: Vec<f64> = counts.into_iter().map(|count| count as f64).collect();
        let mean = counts.iter().sum::<f64>() / counts.len() as f64;
        let statistic: f64 = counts.iter().map(|count| (count - mean).powi(2) / mean).sum();
        let degrees = (counts.len() - 1) as f64;
        (statistic - degrees) / (2.0 * degrees).sqrt()
    }

    #[test]
    fn every_shared_number_is_given_once_and_comes_back_after_its_rest() {
        let mut numbers = SharedNumbers::new(SINGLE);
        let mut random = random(1);
        let mut seen = vec![false; 32_768];
        let mut given = Vec::new();
        while let Some(number) = numbers.take(at(0), &mut random) {
            assert!(SINGLE.contains(&number) && !std::mem::replace(&mut seen[usize::from(number)], true));
            given.push(number);
        }
        assert_eq!(given.len(), 16_382 - SHARED_FREE_MIN + 1);
        assert_eq!(numbers.in_use(), given.len());
        for number in &given {
            numbers.give_back(at(5), *number);
        }
        assert_eq!((numbers.in_use(), numbers.resting()), (0, given.len()));
        assert_eq!(numbers.take(at(64), &mut random), None, "59 s of rest are too few");
        assert!(numbers.take(at(65), &mut random).is_some());
    }

    #[test]
    fn shared_numbers_are_spread_evenly_and_the_last_does_not_tell_the_next() {
        let mut numbers = SharedNumbers::new(SINGLE);
        let mut random = random(2);
        // A busy exchange: eight thousand calls are up, and each new one ends the oldest.
        let mut calls: VecDeque<u16> = (0..8000).filter_map(|_| numbers.take(at(0), &mut random)).collect();
        let mut seconds = 0;
        let (mut places, mut steps) = (vec![0; 64], vec![0; 64]);
        let (mut right, mut last) = (0, 0);
        for _ in 0..100_000 {
            numbers.give_back(at(seconds), calls.pop_front().unwrap());
            seconds += 1;
            let number = numbers.take(at(seconds), &mut random).unwrap();
            places[usize::from(number) * 64 / 16_384] += 1;
            steps[usize::from(number.wrapping_sub(last) & 16_383) * 64 / 16_384] += 1;
            right += usize::from(number == last + 1);
            last = number;
            calls.push_back(number);
        }
        assert!(deviation(places).abs() < 5.0, "numbers");
        assert!(deviation(steps).abs() < 5.0, "steps from one to the next");
        // Once in 8,000 free numbers, 12 times here.
        assert!(right < 40, "the next number after the last: {right}");
    }

    #[test]
    fn a_permutation_gives_each_value_once_and_finds_its_place() {
        for seed in 0..2 {
            let permutation = Permutation::new(Key::new(seed), b"remote", 7, 0);
            let mut seen = vec![false; OWN as usize];
            for place in 0..OWN as u16 {
                let value = permutation.value(place);
                assert!(!std::mem::replace(&mut seen[usize::from(value)], true), "value {value} twice");
                if place % 64 == 0 {
                    assert_eq!(permutation.place(value), place);
                }
            }
        }
    }

    #[test]
    fn own_numbers_are_spread_evenly_over_remotes_cycles_and_steps() {
        let key = Key::new(3);
        let mut random = random(4);
        let (mut firsts, mut pairs, mut steps) = (vec![0; 64], vec![0; 64], vec![0; 64]);
        let mut right = 0;
        for remote in 0u32..20_000 {
            let mut numbers = OwnNumbers::new(at(0), &mut random);
            let mut take = || numbers.take(at(0), key, &remote.to_le_bytes(), |_| false).unwrap();
            let [first, second] = [take(), take()];
            let band = |number: u16| usize::from(number - 2) * 8 / 32_766;
            firsts[usize::from(first - 2) * 64 / 32_766] += 1;
            pairs[band(first) * 8 + band(second)] += 1;
            steps[usize::from(second.wrapping_sub(first) & 0x7fff) * 64 / 32_768] += 1;
            right += usize::from(second == first + 1);
        }
        assert!(deviation(firsts).abs() < 5.0, "first numbers of remotes");
        assert!(deviation(pairs).abs() < 5.0, "first against second");
        assert!(deviation(steps).abs() < 5.0, "steps");
        assert!(right < 10, "the next number after the last: {right}, 0.6 expected");
    }

    #[test]
    fn an_own_number_comes_back_only_after_its_rest_even_at_the_highest_pace() {
        let key = Key::new(5);
        let mut numbers = OwnNumbers::new(at(0), &mut random(6));
        let mut given: BTreeMap<u16, u64> = BTreeMap::new();
        let mut refused = 0;
        // 300 a second are more than can be, so that the bound is felt, over several cycles.
        for second in 0..250 {
            for _ in 0..300 {
                match numbers.take(at(second), key, b"remote", |_| false) {
                    Some(number) => {
                        if let Some(before) = given.insert(number, second) {
                            assert!(second - before >= 120, "number {number} after {} s", second - before);
                        }
                    }
                    None => refused += 1,
                }
            }
        }
        assert!(given.len() > 32_000, "{} of 32,766 were used", given.len());
        assert!(refused > 0, "the pace is above what numbers allow");
    }

    #[test]
    fn a_number_that_lives_is_passed_over() {
        let mut numbers = OwnNumbers::new(at(0), &mut random(7));
        let mut again = numbers.clone();
        let first = numbers.take(at(0), Key::new(8), b"remote", |_| false).unwrap();
        let other = again.take(at(0), Key::new(8), b"remote", |number| number == first).unwrap();
        assert_ne!(first, other);
        assert_eq!(again.take(at(0), Key::new(8), b"remote", |_| true), None);
    }
}
