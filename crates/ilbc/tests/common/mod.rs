//! What the decoder's tests share: the golden vectors, and a mode's lengths.
#![allow(dead_code)] // each test program uses its part

use ilbc::{Mode, Mode20, Mode30};
pub use kit::Random;

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

/// The seed of a random test: from `STROWGER_SEED`, or a fixed one. It is printed.
pub fn seed(test: &str) -> u64 {
    let seed = std::env::var("STROWGER_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or(3951);
    println!("{test}: seed {seed} (STROWGER_SEED)");
    seed
}
