//! Payloads of all lanes, packed together: every lane has the same fields.

use lanes::{Integer, LANES_MAX, Lanes, Vector};

use super::Long;
use crate::BYTES_MAX;

/// Words of 32 bits that hold the longest frame.
const WORDS: usize = BYTES_MAX.div_ceil(4);

/// Collects fields into words, most significant first.
pub struct LaneBits<L: Lanes> {
    words: [Long<L>; WORDS],
    full: usize,
    pending: Long<L>,
    used: u32,
}

impl<L: Lanes> LaneBits<L> {
    #[inline(always)]
    pub fn new() -> Self {
        let zero = L::I32::splat(0);
        Self { words: [zero; WORDS], full: 0, pending: zero, used: 0 }
    }

    /// Appends the low `count` bits of every lane, which has no others set; fewer than 32.
    #[inline(always)]
    pub fn put(&mut self, value: L::I32, count: u32) {
        let free = 32 - self.used;
        if count < free {
            self.pending = self.pending.shl(count) | value;
            self.used += count;
        } else {
            let left = count - free;
            self.push(self.pending.shl(free) | value.shr_logic(left));
            self.pending = value & L::I32::splat((1 << left) - 1);
            self.used = left;
        }
    }

    #[inline(always)]
    fn push(&mut self, word: L::I32) {
        if let Some(slot) = self.words.get_mut(self.full) {
            *slot = word;
            self.full += 1;
        }
    }

    /// Fills the last byte with the terminator and gives each lane its bytes.
    #[inline(always)]
    pub fn finish(mut self) -> [[u8; WORDS * 4]; LANES_MAX] {
        let rest = (8 - self.used % 8) % 8;
        if rest > 0 {
            self.put(L::I32::splat((1 << (rest - 1)) - 1), rest);
        }
        if self.used > 0 {
            self.push(self.pending.shl(32 - self.used));
        }
        let mut lanes = [[0i32; WORDS]; LANES_MAX];
        L::I32::scatter(&self.words, &mut lanes.each_mut().map(|words| &mut words[..]));
        to_bytes(&lanes)
    }
}

/// Words as they are sent. A function of its own: across lanes it would become gathers and scatters.
#[inline(never)]
fn to_bytes(lanes: &[[i32; WORDS]; LANES_MAX]) -> [[u8; WORDS * 4]; LANES_MAX] {
    let mut out = [[0; WORDS * 4]; LANES_MAX];
    for (bytes, words) in out.iter_mut().zip(lanes) {
        for (bytes, word) in bytes.as_chunks_mut::<4>().0.iter_mut().zip(words) {
            *bytes = word.to_be_bytes();
        }
    }
    out
}
