//! From the numbers of a frame to parameters, one frame late: with both neighbours known, errors are seen and mended.

use super::quantise::{Frame, RMS};
use super::{LAG_MAX, LAGS, Parameters};

/// Rates of errors, in the units of [`Repair::error_rate`], above which less is believed.
const RATE_PROTECT: i32 = 2048;
const RATE_LIMITS: [i32; 3] = [128, 1024, 2048];
/// What a channel word's voicing, the frame's before and the one's to come make of a frame: voicing and remedies.
///
/// Of each pair of octal digits the lower is for few errors. Lowest three bits: where the pitch comes from.
const VERDICTS: [i32; 32] = [
    0o60600, 0o60600, 0o60600, 0o60600, 0o61610, 0o61610, 0o61613, 0o61610, 0o40400, 0o3030, 0o3030, 0o3030,
    0o40400, 0o3430, 0o3033, 0o3030, 0o60600, 0o60600, 0o60433, 0o60430, 0o62621, 0o62431, 0o62473, 0o62471,
    0o3030, 0o3030, 0o17170, 0o7070, 0o3031, 0o3031, 0o7073, 0o7071,
];
/// Remedies of a verdict.
const SMOOTH: i32 = 4;
const SMOOTH_PITCH: i32 = 8;
const CORRECT: i32 = 16;
const DROP_UPPER: i32 = 32;
/// Steps from both neighbours above which a number is taken for wrong: pitch, energy, six coefficients; by error rate.
const STEPS: [[f32; 8]; 4] = [
    [32767.0, 32767.0, 32.0, 32.0, 32.0, 32.0, 16.0, 16.0],
    [10.0, 8.0, 6.4, 6.4, 11.2, 11.2, 5.6, 5.6],
    [5.0, 4.0, 3.2, 3.2, 6.4, 6.4, 3.2, 3.2],
    [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0],
];
/// Pitch periods by code; below 5: 0 unvoiced, 1 half voiced, 3 an error.
const PITCHES: [u8; 128] = [
    0, 0, 0, 3, 0, 3, 3, 31, 0, 3, 3, 21, 3, 3, 29, 30, 0, 3, 3, 20, 3, 25, 27, 26, 3, 23, 58, 22, 3, 24, 28,
    3, 0, 3, 3, 3, 3, 39, 33, 32, 3, 37, 35, 36, 3, 38, 34, 3, 3, 42, 46, 44, 50, 40, 48, 3, 54, 3, 56, 3,
    52, 3, 3, 1, 0, 3, 3, 108, 3, 78, 100, 104, 3, 84, 92, 88, 156, 80, 96, 3, 3, 74, 70, 72, 66, 76, 68, 3,
    62, 3, 60, 3, 64, 3, 3, 1, 3, 116, 132, 112, 148, 152, 3, 3, 140, 3, 136, 3, 144, 3, 3, 1, 124, 120, 128,
    3, 3, 3, 3, 1, 3, 3, 3, 1, 3, 1, 1, 1,
];
/// Coefficients five to ten of a frame that has none.
const UPPER: [i32; 6] = [0, 3, 0, 2, 0, 0];
/// The first two coefficients by every other code.
const OUTER: [i32; 32] = [
    4, 11, 18, 25, 32, 39, 46, 53, 60, 66, 72, 77, 82, 87, 92, 96, 101, 104, 108, 111, 114, 115, 117, 119,
    121, 122, 123, 124, 125, 126, 127, 127,
];
/// Shift, middle of the step, factor and offset of the third to tenth coefficient.
const INNER: [(u32, i32, f32, i32); 8] = [
    (10, 511, 0.6953, 1152),
    (10, 511, 0.6250, -2816),
    (11, 1023, 0.5781, -1536),
    (11, 1023, 0.5469, -3584),
    (11, 1023, 0.5312, -1280),
    (11, 1023, 0.5391, -2432),
    (12, 2047, 0.4688, 768),
    (13, 4095, 0.3828, -1920),
];

/// Three frames and an estimate of the line's quality.
#[derive(Debug, Clone)]
pub struct Repair {
    first: bool,
    /// The second half of the frame before was voiced.
    was_voiced: bool,
    /// How the pitch of the frame in the middle reads.
    kind: usize,
    average_pitch: i32,
    error_rate: i32,
    past: Frame,
    present: Frame,
}

impl Default for Repair {
    fn default() -> Self {
        Self {
            first: true,
            was_voiced: false,
            kind: 0,
            average_pitch: 60,
            error_rate: 0,
            past: Frame::default(),
            present: Frame::default(),
        }
    }
}

impl Repair {
    /// Takes a frame as it came; returns the parameters of the one before. Cannot fail.
    pub fn parameters(&mut self, arrived: &Frame) -> Parameters {
        let pitch = i32::from(PITCHES[(arrived.pitch & 127) as usize]);
        let mut future = *arrived;
        let kind = if pitch > 4 {
            self.average_pitch = (15 * self.average_pitch + pitch + 8) / 16;
            future.pitch = pitch;
            2
        } else {
            future.pitch = self.average_pitch;
            pitch as usize
        };
        let verdict = VERDICTS[(16 * usize::from(self.was_voiced) + 4 * self.kind + kind) & 31];
        let remedies = if self.error_rate < RATE_PROTECT { verdict / 8 / 64 } else { verdict / 8 };
        let voiced = [remedies & 2 != 0, remedies & 1 != 0];
        let limits = RATE_LIMITS.iter().take_while(|&&limit| self.error_rate >= limit).count();

        let mut frame;
        if self.first {
            self.first = false;
            frame = *arrived;
            frame.pitch = if pitch > 4 { pitch } else { self.average_pitch };
        } else {
            if remedies & CORRECT != 0 {
                self.correct();
            }
            match verdict & 3 {
                1 => self.present.pitch = self.past.pitch,
                3 => self.present.pitch = future.pitch,
                _ => {}
            }
            frame = self.present;
            self.smooth(&mut frame, &future, remedies, &STEPS[limits]);
        }
        if remedies & DROP_UPPER != 0 {
            frame.rc[4..].copy_from_slice(&UPPER);
        }
        self.kind = kind;
        self.was_voiced = voiced[1];
        (self.past, self.present) = (self.present, future);
        dequantise(&frame, voiced)
    }

    /// Corrects the upper bits of an unvoiced frame by its Hamming words; counts the errors.
    fn correct(&mut self) {
        let mut errors = 0;
        let frame = &mut self.present;
        let rc = frame.rc;
        frame.rms = match hamming(rc[7] * 16 + frame.rms / 2, &mut errors) {
            Some(upper) => upper * 2 + (frame.rms & 1),
            None => self.past.rms,
        };
        let words = [rc[4] & 15, rc[5] & 15, rc[6] & 15, (rc[8] & 7) * 2 + (rc[9] & 1)];
        for index in 0..4 {
            let number = rc[index] & 31;
            frame.rc[index] = match hamming(16 * words[index] + number / 2, &mut errors) {
                Some(upper) => {
                    let number = upper * 2 + (number & 1);
                    if number & 16 != 0 { number - 32 } else { number }
                }
                None => self.past.rc[index],
            };
        }
        self.error_rate = (self.error_rate as f32 * 0.96875 + (errors * 102) as f32) as i32;
    }

    /// Replaces numbers that stand out from both neighbours by the median.
    fn smooth(&self, frame: &mut Frame, future: &Frame, remedies: i32, steps: &[f32; 8]) {
        let (past, present) = (&self.past, &self.present);
        let mend = |number: &mut i32, [past, present, future]: [i32; 3], step: f32| {
            let far = |other: i32| (present - other).abs() as f32 >= step;
            if far(future) && far(past) {
                *number = median(past, present, future);
            }
        };
        if remedies & SMOOTH != 0 {
            mend(&mut frame.rms, [past.rms, present.rms, future.rms], steps[1]);
            for index in 0..6 {
                let numbers = [past.rc[index], present.rc[index], future.rc[index]];
                mend(&mut frame.rc[index], numbers, steps[index + 2]);
            }
        }
        if remedies & SMOOTH_PITCH != 0 {
            mend(&mut frame.pitch, [past.pitch, present.pitch, future.pitch], steps[0]);
        }
    }
}

fn median(a: i32, b: i32, c: i32) -> i32 {
    a.max(b).min(a.min(b).max(c))
}

/// Decodes a Hamming (8,4) word, the parity bits above; `None` when two bits are wrong.
///
/// The three lower parity bits tell which bit is wrong, the fourth whether one or two are.
fn hamming(word: i32, errors: &mut i32) -> Option<i32> {
    let word = word as u32 & 0xff;
    let odd = !word.count_ones().is_multiple_of(2);
    // The code words differ in four bits: among words of seven there is always one at most one bit away.
    let (data, distance) = (0..16u32)
        .map(|data| (data, ((code_word(data) ^ word) & 0x7f).count_ones()))
        .min_by_key(|&(_, distance)| distance)
        .unwrap_or_default();
    match (distance, odd) {
        (0, false) => Some(data as i32),
        (0, true) | (_, true) => {
            *errors += 1;
            Some(data as i32)
        }
        (_, false) => {
            *errors += 2;
            None
        }
    }
}

/// The word of seven bits that codes four.
fn code_word(data: u32) -> u32 {
    const PARITY: [u32; 16] = [0, 7, 3, 4, 5, 2, 6, 1, 6, 1, 5, 2, 3, 4, 0, 7];
    data | PARITY[data as usize & 15] << 4
}

fn dequantise(frame: &Frame, voiced: [bool; 2]) -> Parameters {
    let mut rc = frame.rc;
    for c in &mut rc[..2] {
        // The code for minus sixteen is none.
        let size = if *c == -16 { 0 } else { c.unsigned_abs() as usize & 15 };
        let value = OUTER[2 * size] << 7;
        *c = if *c < 0 { -value } else { value };
    }
    for (c, (shift, middle, factor, offset)) in rc[2..].iter_mut().zip(INNER) {
        *c = (((*c << shift) + middle) as f32 * factor + offset as f32) as i32;
    }
    Parameters {
        voiced,
        pitch: (frame.pitch.max(0) as usize).clamp(LAGS[0], LAG_MAX),
        rms: RMS[((31 - (frame.rms & 31)) * 2) as usize] as f32,
        rc: rc.map(|c| c as f32 / 16384.0),
    }
}
