//! Keyed hashing for tables whose keys the peer chooses, and the source of unpredictable identifiers.
//!
//! SipHash-2-4 (Aumasson and Bernstein, 2012) because its keys make collisions unpredictable from outside; the 128-bit
//! form stands in for the key itself, so that the tables keep no bytes of the peer's.

/// A keyed hash function: equal inputs give equal outputs only under the same key.
#[derive(Debug, Clone, Copy)]
pub struct Key {
    k0: u64,
    k1: u64,
}

impl Key {
    /// A key from 128 bits that nobody outside can guess.
    pub const fn new(seed: u128) -> Self {
        let bytes = seed.to_le_bytes();
        let [a0, a1, a2, a3, a4, a5, a6, a7, b0, b1, b2, b3, b4, b5, b6, b7] = bytes;
        Self {
            k0: u64::from_le_bytes([a0, a1, a2, a3, a4, a5, a6, a7]),
            k1: u64::from_le_bytes([b0, b1, b2, b3, b4, b5, b6, b7]),
        }
    }

    /// Hashes `parts` one after the other, each closed by its length so that no boundary can be shifted.
    pub fn digest(self, parts: &[&[u8]]) -> u128 {
        let mut hasher = Hasher::new(self);
        let mut flat = [0; FLAT_BYTES];
        match flatten(parts, &mut flat) {
            // In one piece whole words are read where they lie.
            Some(count) => hasher.write(flat.get(..count).unwrap_or_default()),
            None => {
                for part in parts {
                    hasher.write(part);
                    hasher.write(&(part.len() as u64).to_le_bytes());
                }
            }
        }
        hasher.finish()
    }
}

/// An address and a number, and as much again.
const FLAT_BYTES: usize = 80;

/// Lays parts with their lengths one behind the other; says how many bytes that are, when there is room for them.
fn flatten(parts: &[&[u8]], flat: &mut [u8; FLAT_BYTES]) -> Option<usize> {
    let mut rest = flat.as_mut_slice();
    for part in parts {
        let length = (part.len() as u64).to_le_bytes();
        for bytes in [*part, &length] {
            let (now, later) = core::mem::take(&mut rest).split_at_mut_checked(bytes.len())?;
            now.copy_from_slice(bytes);
            rest = later;
        }
    }
    Some(FLAT_BYTES - rest.len())
}

/// SipHash-2-4 with 128-bit output, fed in pieces.
struct Hasher {
    v: [u64; 4],
    tail: [u8; 8],
    filled: usize,
    total: u64,
}

impl Hasher {
    fn new(key: Key) -> Self {
        Self {
            v: [
                key.k0 ^ 0x736f_6d65_7073_6575,
                key.k1 ^ 0x646f_7261_6e64_6f6d ^ 0xee,
                key.k0 ^ 0x6c79_6765_6e65_7261,
                key.k1 ^ 0x7465_6462_7974_6573,
            ],
            tail: [0; 8],
            filled: 0,
            total: 0,
        }
    }

    fn write(&mut self, mut bytes: &[u8]) {
        self.total = self.total.wrapping_add(bytes.len() as u64);
        if self.filled > 0 {
            let take = bytes.len().min(8 - self.filled);
            let (now, later) = bytes.split_at(take);
            for (slot, byte) in self.tail.iter_mut().skip(self.filled).zip(now) {
                *slot = *byte;
            }
            self.filled += take;
            bytes = later;
            if self.filled < 8 {
                return;
            }
            let word = u64::from_le_bytes(self.tail);
            self.absorb(word);
            self.filled = 0;
        }
        while let Some((word, rest)) = bytes.split_first_chunk::<8>() {
            self.absorb(u64::from_le_bytes(*word));
            bytes = rest;
        }
        for (slot, byte) in self.tail.iter_mut().zip(bytes) {
            *slot = *byte;
        }
        self.filled = bytes.len();
    }

    fn absorb(&mut self, word: u64) {
        self.v[3] ^= word;
        self.round();
        self.round();
        self.v[0] ^= word;
    }

    fn finish(mut self) -> u128 {
        let mut last = [0u8; 8];
        for (slot, byte) in last.iter_mut().zip(self.tail.iter().take(self.filled)) {
            *slot = *byte;
        }
        let word = u64::from_le_bytes(last) | (self.total & 0xff) << 56;
        self.absorb(word);
        self.v[2] ^= 0xee;
        (0..4).for_each(|_| self.round());
        let low = self.v[0] ^ self.v[1] ^ self.v[2] ^ self.v[3];
        self.v[1] ^= 0xdd;
        (0..4).for_each(|_| self.round());
        let high = self.v[0] ^ self.v[1] ^ self.v[2] ^ self.v[3];
        u128::from(high) << 64 | u128::from(low)
    }

    fn round(&mut self) {
        let [mut v0, mut v1, mut v2, mut v3] = self.v;
        v0 = v0.wrapping_add(v1);
        v1 = v1.rotate_left(13) ^ v0;
        v0 = v0.rotate_left(32);
        v2 = v2.wrapping_add(v3);
        v3 = v3.rotate_left(16) ^ v2;
        v0 = v0.wrapping_add(v3);
        v3 = v3.rotate_left(21) ^ v0;
        v2 = v2.wrapping_add(v1);
        v1 = v1.rotate_left(17) ^ v2;
        v2 = v2.rotate_left(32);
        self.v = [v0, v1, v2, v3];
    }
}

/// Unpredictable numbers from a seed: the keyed hash of a counter.
#[derive(Debug)]
pub struct Randomness {
    key: Key,
    counter: u64,
}

impl Randomness {
    /// A source under `key`; two sources under one key give the same numbers.
    pub const fn new(key: Key) -> Self {
        Self { key, counter: 0 }
    }

    /// The next 64 unpredictable bits.
    #[allow(clippy::should_implement_trait, reason = "it never ends, and nobody wants to iterate over it")]
    pub fn next(&mut self) -> u64 {
        (self.next_wide() & u128::from(u64::MAX)) as u64
    }

    /// The next 128 unpredictable bits.
    pub fn next_wide(&mut self) -> u128 {
        self.counter = self.counter.wrapping_add(1);
        self.key.digest(&[&self.counter.to_le_bytes()])
    }

    /// A number from `0` up to and without `end`, each equally likely; 0 when `end` is 0.
    ///
    /// Multiplies and rejects (Lemire, "Fast Random Integer Generation in an Interval", 2019).
    pub fn below(&mut self, end: u64) -> u64 {
        if end == 0 {
            return 0;
        }
        loop {
            let product = u128::from(self.next()) * u128::from(end);
            let low = product as u64;
            // The products whose low half is below 2^64 mod `end` are one too many for some numbers.
            if low >= end || low >= end.wrapping_neg() % end {
                return (product >> 64) as u64;
            }
        }
    }
}

/// For maps whose keys are [`Key::digest`]s: the key is its own hash.
#[derive(Debug, Clone, Copy, Default)]
pub struct Digested(u64);

impl core::hash::Hasher for Digested {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(*byte);
        }
    }
    fn write_u128(&mut self, digest: u128) {
        self.0 = (digest >> 64) as u64 ^ digest as u64;
    }
}

/// A map from a digest to something small.
pub type DigestMap<V> = std::collections::HashMap<u128, V, core::hash::BuildHasherDefault<Digested>>;

#[cfg(test)]
mod tests {
    use super::*;

    fn reference_key() -> Key {
        Key::new(u128::from_le_bytes([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15]))
    }

    #[test]
    fn siphash_2_4_128_gives_the_published_value_for_the_empty_input() {
        let published =
            [0xa3, 0x81, 0x7f, 0x04, 0xba, 0x25, 0xa8, 0xe6, 0x6d, 0xf6, 0x72, 0x14, 0xc7, 0x55, 0x02, 0x93];
        assert_eq!(Hasher::new(reference_key()).finish().to_le_bytes(), published);
    }

    #[test]
    fn pieces_of_any_size_hash_like_the_whole() {
        let whole: Vec<u8> = (0..61).collect();
        let expected = {
            let mut hasher = Hasher::new(reference_key());
            hasher.write(&whole);
            hasher.finish()
        };
        for size in 1..whole.len() {
            let mut hasher = Hasher::new(reference_key());
            whole.chunks(size).for_each(|chunk| hasher.write(chunk));
            assert_eq!(hasher.finish(), expected, "pieces of {size}");
        }
    }

    #[test]
    fn a_boundary_between_parts_cannot_be_shifted() {
        let key = reference_key();
        assert_ne!(key.digest(&[b"ab", b"c"]), key.digest(&[b"a", b"bc"]));
        assert_ne!(key.digest(&[b"ab"]), Key::new(1).digest(&[b"ab"]));
        assert_eq!(key.digest(&[b"ab", b"c"]), key.digest(&[b"ab", b"c"]));
    }

    #[test]
    fn parts_that_are_laid_together_hash_as_parts_one_by_one() {
        let bytes: Vec<u8> = (0..100).collect();
        for (first, second) in [(0, 0), (1, 2), (19, 2), (8, 56), (64, 0), (63, 1), (64, 1), (100, 3)] {
            let parts = [&bytes[..first], &bytes[..second]];
            let mut hasher = Hasher::new(reference_key());
            for part in parts {
                hasher.write(part);
                hasher.write(&(part.len() as u64).to_le_bytes());
            }
            assert_eq!(reference_key().digest(&parts), hasher.finish(), "{first} and {second} bytes");
        }
    }

    #[test]
    fn random_numbers_stay_below_their_end_and_differ() {
        let mut source = Randomness::new(reference_key());
        let drawn: Vec<u64> = (0..1000).map(|_| source.below(10)).collect();
        assert!((0..10).all(|n| drawn.contains(&n)), "{drawn:?}");
        assert!(drawn.iter().all(|n| *n < 10));
        assert_eq!(source.below(0), 0);
    }
}
