//! Pseudo-random numbers from a seed that the caller owns; for spreading report times, not for secrets.

/// A small generator (splitmix64). Not for secrets: ports, SSRC and sequence starts come from the signalling plane.
#[derive(Debug, Clone, Copy)]
pub struct Seed(u64);

impl Seed {
    /// Starts from `seed`; equal seeds give equal numbers.
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }
    /// The next 32 bits.
    pub fn next_u32(&mut self) -> u32 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) >> 32) as u32
    }
}
