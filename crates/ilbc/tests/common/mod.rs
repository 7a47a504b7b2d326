//! What the decoder's tests share: the golden vectors, and a mode's lengths.
#![allow(dead_code)] // each test program uses its part

use ilbc::{Mode, Mode20, Mode30};

/// A frame size with what tests need to know of it.
pub trait TestMode: Mode<Pcm: Copy + Send> {
    const NAME: &str;
    const SILENCE: Self::Pcm;
    const BYTES: usize;
    /// Payloads in `tests/golden`, and the sums of what the reference makes of them.
    const PROMPT: &[u8];
    const SUMS: &str;
}

impl TestMode for Mode20 {
    const NAME: &str = "20";
    const SILENCE: [i16; 160] = [0; 160];
    const BYTES: usize = 38;
    const PROMPT: &[u8] = include_bytes!("../golden/prompt20.ilbc");
    const SUMS: &str = include_str!("../golden/prompt20.sums");
}

impl TestMode for Mode30 {
    const NAME: &str = "30";
    const SILENCE: [i16; 240] = [0; 240];
    const BYTES: usize = 50;
    const PROMPT: &[u8] = include_bytes!("../golden/prompt30.ilbc");
    const SUMS: &str = include_str!("../golden/prompt30.sums");
}

/// FNV-1a of samples as little-endian bytes.
pub fn sum(samples: &[i16]) -> u32 {
    let bytes = samples.iter().flat_map(|sample| sample.to_le_bytes());
    bytes.fold(0x811c_9dc5, |sum, byte| (sum ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

/// A file of the golden vectors beside the project.
pub fn shared(name: &str) -> Option<Vec<u8>> {
    std::fs::read(format!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/vectors/golden/{}"), name))
        .ok()
}

/// A generator of which a test prints the seed.
pub struct Random(pub u64);

impl Random {
    /// The next number (SplitMix64).
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
    /// One below `limit`.
    pub fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit as u64) as usize
    }
    /// Fills bytes.
    pub fn fill(&mut self, bytes: &mut [u8]) {
        bytes.iter_mut().for_each(|byte| *byte = self.next() as u8);
    }
}

/// The seed of a random test: from `STROWGER_SEED`, or a fixed one. It is printed.
pub fn seed(test: &str) -> u64 {
    let seed = std::env::var("STROWGER_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or(3951);
    println!("{test}: seed {seed} (STROWGER_SEED)");
    seed
}
