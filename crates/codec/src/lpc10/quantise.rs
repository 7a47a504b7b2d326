//! Parameters ⇄ the numbers of a frame ⇄ its bits.

use super::{FRAME_BYTES, ORDER, Parameters};

/// The numbers of a frame, as sent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Frame {
    /// Seven bits: 0 unvoiced, 127 half voiced, else a pitch with four bits set, so that one error is seen.
    pub pitch: i32,
    /// Five bits, logarithmic.
    pub rms: i32,
    /// Signed, two to five bits.
    pub rc: [i32; ORDER],
}

/// The pitch's code for half voiced frames.
const HALF_VOICED: i32 = 127;
/// Codes of [`super::LAGS`].
const PITCH_CODES: [u8; 60] = [
    19, 11, 27, 25, 29, 21, 23, 22, 30, 14, 15, 7, 39, 38, 46, 42, 43, 41, 45, 37, 53, 49, 51, 50, 54, 52,
    60, 56, 58, 26, 90, 88, 92, 84, 86, 82, 83, 81, 85, 69, 77, 73, 75, 74, 78, 70, 71, 67, 99, 97, 113, 112,
    114, 98, 106, 104, 108, 100, 101, 76,
];
/// Parity bits that make a Hamming (8,4) word of four bits.
const HAMMING: [u8; 16] = [0, 7, 11, 12, 13, 10, 6, 1, 14, 9, 5, 2, 3, 4, 8, 15];
/// Levels of the root mean square; every other one is sent.
pub const RMS: [i32; 64] = [
    1024, 936, 856, 784, 718, 656, 600, 550, 502, 460, 420, 384, 352, 328, 294, 270, 246, 226, 206, 188, 172,
    158, 144, 132, 120, 110, 102, 92, 84, 78, 70, 64, 60, 54, 50, 46, 42, 38, 34, 32, 30, 26, 24, 22, 20, 18,
    17, 16, 15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0,
];
/// Codes of the first two coefficients by their upper six bits: fine near one, where it matters.
const OUTER: [i32; 64] = [
    0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2, 2, 3, 3, 3, 3, 3, 3, 3, 4, 4, 4, 4, 4, 4, 4, 5,
    5, 5, 5, 5, 6, 6, 6, 6, 6, 7, 7, 7, 7, 7, 8, 8, 8, 8, 9, 9, 9, 10, 10, 11, 11, 12, 13, 14, 15,
];
/// Offset, factor and bits dropped of the third to tenth coefficient.
const INNER: [(i32, f32, u32); 8] = [
    (-1152, 0.0112, 3),
    (2816, 0.0125, 3),
    (1536, 0.0135, 4),
    (3584, 0.0143, 4),
    (1280, 0.0147, 4),
    (2432, 0.0145, 4),
    (-768, 0.0167, 5),
    (1920, 0.0204, 6),
];

/// Quantises (FED-STD-1015 tables); unvoiced frames have room to protect their upper bits.
pub fn encode(parameters: &Parameters) -> Frame {
    let pitch = match parameters.voiced {
        [true, true] => i32::from(PITCH_CODES.get(parameters.pitch).copied().unwrap_or(PITCH_CODES[0])),
        [false, false] => 0,
        _ => HALF_VOICED,
    };
    let rms = encode_rms(parameters.rms as i32);
    let mut rc = parameters.rc.map(|c| (c * 32768.0) as i32);
    for c in &mut rc[..2] {
        let code = OUTER[(c.unsigned_abs() as usize / 512).min(63)];
        *c = if *c < 0 { -code } else { code };
    }
    for (c, (offset, factor, bits)) in rc[2..].iter_mut().zip(INNER) {
        let scaled = (((*c / 2 + offset) as f32 * factor) as i32).clamp(-127, 127);
        let code = scaled / (1 << bits);
        *c = if scaled < 0 { code - 1 } else { code };
    }
    if pitch == 0 || pitch == HALF_VOICED {
        let protect = |number: i32| i32::from(HAMMING[(number & 30) as usize / 2]);
        let fourth = protect(rc[3]);
        [rc[4], rc[5], rc[6], rc[7]] = [protect(rc[0]), protect(rc[1]), protect(rc[2]), protect(rms)];
        [rc[8], rc[9]] = [fourth / 2, fourth & 1];
    }
    Frame { pitch, rms, rc }
}

/// The nearest level by bisection, as the standard's encoder does it.
fn encode_rms(rms: i32) -> i32 {
    let rms = rms.min(1023);
    let mut at = 32;
    let mut step = 16;
    while step > 0 {
        match rms.cmp(&RMS[at - 1]) {
            core::cmp::Ordering::Greater => at -= step,
            core::cmp::Ordering::Less => at += step,
            core::cmp::Ordering::Equal => {}
        }
        step /= 2;
    }
    if rms > RMS[at - 1] {
        at -= 1;
    }
    31 - at as i32 / 2
}

/// Which number each bit belongs to, each number's lowest bit first: 0 to 9 the coefficients, then pitch and energy.
const BITS: [u8; 53] = [
    0, 1, 2, 10, 11, 0, 1, 2, 10, 11, 0, 3, 2, 11, 10, 3, 0, 1, 2, 3, 11, 0, 1, 2, 3, 11, 10, 1, 6, 7, 10, 3,
    4, 5, 6, 9, 7, 4, 5, 6, 8, 10, 4, 5, 9, 7, 10, 8, 4, 5, 6, 8, 7,
];
/// Bits of each coefficient.
const WIDTHS: [u32; ORDER] = [5, 5, 5, 5, 4, 4, 4, 4, 3, 2];

/// Interleaves the numbers, so that a burst of errors spreads.
pub fn pack(frame: &Frame, sync: bool) -> [u8; FRAME_BYTES] {
    let mut numbers = [0i32; 12];
    numbers[..ORDER].copy_from_slice(&frame.rc);
    (numbers[10], numbers[11]) = (frame.pitch, frame.rms);
    let mut word = 0u64;
    for number in BITS {
        let number = &mut numbers[usize::from(number)];
        word = word << 1 | u64::from(*number as u32 & 1);
        *number >>= 1;
    }
    let word = (word << 1 | u64::from(sync)) << 10;
    let [bytes @ .., _] = word.to_be_bytes();
    bytes
}

/// The numbers of any seven bytes.
pub fn unpack(coded: &[u8; FRAME_BYTES]) -> Frame {
    let word = coded.iter().fold(0u64, |word, &byte| word << 8 | u64::from(byte)) >> 3;
    let mut numbers = [0i32; 12];
    for (index, number) in BITS.iter().rev().enumerate() {
        let number = &mut numbers[usize::from(*number)];
        *number = *number << 1 | (word >> index & 1) as i32;
    }
    let [rc @ .., pitch, rms] = numbers;
    let mut frame = Frame { pitch, rms, rc };
    for (c, width) in frame.rc.iter_mut().zip(WIDTHS) {
        // The highest bit is the sign.
        *c = *c << (32 - width) >> (32 - width);
    }
    frame
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_frame_of_numbers_survives_its_bits() {
        let mut noise = crate::testing::Noise(7);
        for _ in 0..1000 {
            let word = noise.bits();
            let bytes = word.to_be_bytes();
            let coded: [u8; 7] = core::array::from_fn(|i| bytes[i] & if i == 6 { 0xf8 } else { 0xff });
            assert_eq!(pack(&unpack(&coded), false), coded);
        }
    }

    #[test]
    fn every_number_has_its_bits() {
        for (number, bits) in [5, 5, 5, 5, 4, 4, 4, 4, 3, 2, 7, 5].into_iter().enumerate() {
            let count = BITS.iter().filter(|&&owner| usize::from(owner) == number).count();
            assert_eq!(count, bits, "number {number}");
        }
    }

    #[test]
    fn loudness_is_coded_within_a_step_and_never_falls_as_it_grows() {
        let mut last = 0;
        for rms in 0..2000 {
            let code = encode_rms(rms);
            assert!((last..32).contains(&code), "{rms}: {code} after {last}");
            let level = |code: i32| RMS[((31 - code.clamp(0, 31)) * 2) as usize];
            let near = level(code - 1)..=level(code + 1);
            assert!(near.contains(&rms.clamp(1, 936)), "{rms}: {code} is {}", level(code));
            last = code;
        }
    }
}
