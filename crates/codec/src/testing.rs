//! What the tests of this crate share: golden files when they are there, a seeded noise source, level meters.

use std::path::Path;

/// The bytes of a golden file, or `None` (and a line that says so) on a checkout without them.
pub fn golden(name: &str) -> Option<Vec<u8>> {
    shared(&format!("golden/{name}"))
}

/// The bytes of a shared test file below `vectors`.
pub fn shared(name: &str) -> Option<Vec<u8>> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/vectors").join(name);
    match std::fs::read(&path) {
        Ok(bytes) => Some(bytes),
        Err(error) => {
            println!("skipped: {}: {error}", path.display());
            None
        }
    }
}

/// Little-endian bytes → samples.
pub fn samples(bytes: &[u8]) -> Vec<i16> {
    bytes.chunks_exact(2).map(|pair| i16::from_le_bytes([pair[0], pair[1]])).collect()
}

/// `count` samples of a sine with this peak.
pub fn sine(hertz: f64, rate: u32, peak: f64, count: usize) -> Vec<i16> {
    let step = core::f64::consts::TAU * hertz / f64::from(rate);
    (0..count).map(|n| (peak * (step * n as f64).sin()).round() as i16).collect()
}

/// Root mean square.
pub fn rms(samples: &[i16]) -> f64 {
    let sum: f64 = samples.iter().map(|&s| f64::from(s) * f64::from(s)).sum();
    (sum / samples.len().max(1) as f64).sqrt()
}

/// Uniform noise in -1..1 from a seed (splitmix64).
pub struct Noise(pub u64);

impl Noise {
    /// The next 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
    /// The next value in -1..1.
    pub fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1u64 << 52) as f64 - 1.0
    }
}

/// The part of a signal's power that lies at this frequency, 0 to 1, by correlation.
pub fn power_at(samples: &[i16], hertz: f64, rate: f64) -> f64 {
    let step = core::f64::consts::TAU * hertz / rate;
    let (mut c, mut s, mut total) = (0.0, 0.0, 0.0);
    for (n, &x) in samples.iter().enumerate() {
        let x = f64::from(x);
        c += x * (step * n as f64).cos();
        s += x * (step * n as f64).sin();
        total += x * x;
    }
    2.0 * (c * c + s * s) / samples.len() as f64 / f64::max(total, 1.0)
}
