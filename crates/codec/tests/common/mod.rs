//! What the tests of lanes share: the kinds of sound that streams bring.

use kit::Random;

/// 620 ms of speech at 8 kHz.
pub fn speech() -> Vec<i16> {
    oracle::samples(include_bytes!("../data/speech.sln"))
}

/// Kinds of [`sound`], most of them speech.
pub const KINDS: usize = 12;

/// A packet of one of the kinds of sound: speech at any level, silence, noise, a tone, full scale.
pub fn sound(random: &mut Random, speech: &[i16], kind: usize, packet: &mut [i16]) {
    let at = random.below(speech.len() - packet.len());
    let level = 1 << random.below(4);
    for (n, sample) in packet.iter_mut().enumerate() {
        *sample = match kind {
            0..4 => speech[at + n] / level,
            4 => 0,
            5 => random.bits() as i16,
            6 => (random.bits() as i16) >> 9,
            7 => [i16::MIN, i16::MAX][(n + at) / 7 % 2],
            8 => i16::MIN,
            9 => ((n as f64 * 0.6).sin() * 20_000.0) as i16,
            _ => [0, i16::MAX, i16::MIN, -1, 7, 8][random.below(6)],
        };
    }
}
