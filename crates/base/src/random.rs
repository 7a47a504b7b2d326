//! Numbers from a seed, for spreading, shuffling and naming; never for secrets.

/// SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number generators"): equal seeds give equal numbers.
///
/// Whoever sees one number knows all that follow. What must not be guessed (nonces, tags, ports, call numbers) is drawn
/// from keys instead.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Random(u64);

impl Random {
    /// Starts from `seed`.
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }
    /// The next 64 bits.
    pub const fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
    /// The next 32 bits, the upper half of 64.
    pub const fn word(&mut self) -> u32 {
        (self.bits() >> 32) as u32
    }
    /// A number from 0 on and below `end`; 0 for an `end` of 0. Uneven by less than `end` in 2^64 (Lemire's product).
    pub const fn below(&mut self, end: u64) -> u64 {
        ((self.bits() as u128 * end as u128) >> 64) as u64
    }
    /// Puts the items into another order (Fisher-Yates).
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            let other = usize::try_from(self.below(last as u64 + 1)).unwrap_or(last);
            items.swap(last, other);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_gives_the_published_numbers() {
        // The first outputs of the authors' reference for the seed 1234567.
        let mut random = Random::new(1_234_567);
        let expected: [u64; 3] =
            [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423];
        assert_eq!([random.bits(), random.bits(), random.bits()], expected);
    }

    #[test]
    fn every_number_below_the_end_comes_and_none_beyond() {
        let mut random = Random::new(7);
        let mut seen = [0; 10];
        for _ in 0..10_000 {
            seen[usize::try_from(random.below(10)).unwrap()] += 1;
        }
        assert!(seen.iter().all(|&often| (900..1_100).contains(&often)), "{seen:?}");
        assert_eq!(random.below(0), 0);
        assert_eq!(random.below(1), 0);
    }

    #[test]
    fn a_shuffle_keeps_every_item() {
        let mut items: Vec<u32> = (0..100).collect();
        Random::new(1).shuffle(&mut items);
        assert!(!items.is_sorted());
        items.sort_unstable();
        assert!(items.into_iter().eq(0..100));
    }
}
