//! Whether each half of a frame is voiced: a linear discriminant for a signal in noise, smoothed over four frames.

use super::analysis::Span;
use super::place::{Bounds, Window};

/// Energies at the start, for a telephone line.
const REFERENCE: i32 = 3000;
/// Weights of the discriminant (see [`Voicing::discriminant`]), and its constant, from quiet to noisy.
const WEIGHTS: [[f32; 9]; 5] = [
    [0.0, 1714.0, -110.0, 334.0, -4096.0, -654.0, 3752.0, 3769.0, 1181.0],
    [0.0, 874.0, -97.0, 300.0, -4096.0, -1021.0, 2451.0, 2527.0, -500.0],
    [0.0, 510.0, -70.0, 250.0, -4096.0, -1270.0, 2194.0, 2491.0, -1500.0],
    [0.0, 500.0, -10.0, 200.0, -4096.0, -1300.0, 2000.0, 2000.0, -2000.0],
    [0.0, 500.0, 0.0, 0.0, -4096.0, -1300.0, 2000.0, 2000.0, -2500.0],
];
/// Signal-to-noise ratios above which each row of [`WEIGHTS`] but the last holds.
const NOISE_LEVELS: [f32; 4] = [600.0, 450.0, 300.0, 200.0];

/// What the decision goes by.
pub struct Heard<'a> {
    pub window: Window,
    pub input: &'a Span,
    pub low: &'a Span,
    /// Lag of the least difference, and that difference and the greatest near it.
    pub lag: usize,
    pub deepest: f32,
    pub highest: f32,
    pub inverse_rc: [f32; 2],
    /// Of the three frames, the oldest first.
    pub bounds: [Bounds; 3],
}

/// Voicing of the frames under analysis, and running estimates of energies.
#[derive(Debug, Clone)]
pub struct Voicing {
    /// Halves of four frames, the oldest first.
    voiced: [[bool; 2]; 4],
    /// Discriminants of the last three frames.
    scores: [[f32; 2]; 3],
    dither: f32,
    snr: f32,
    /// Depth of the pitch's minimum.
    contrast: f32,
    /// Energies when voiced: low band, full band.
    voiced_low: i32,
    voiced_full: i32,
    /// The same when unvoiced: the estimate, the smoothed one times eight, the last one.
    unvoiced_low: Floor,
    unvoiced_full: Floor,
}

/// An estimate of the level of what is not speech.
#[derive(Debug, Clone, Copy)]
struct Floor {
    level: i32,
    smoothed: i32,
    last: i32,
}

impl Floor {
    const fn new(level: i32) -> Self {
        Self { level, smoothed: level, last: level }
    }
    fn follow(&mut self, energy: i32) {
        let next = 63 * self.smoothed + 8 * energy.min(3 * self.last);
        self.smoothed = (next as f32 / 64.0).round() as i32;
        self.level = self.smoothed / 8;
        self.last = energy;
    }
}

impl Default for Voicing {
    fn default() -> Self {
        Self {
            voiced: [[false; 2]; 4],
            scores: [[0.0; 2]; 3],
            dither: 20.0,
            snr: (64 * (REFERENCE / (REFERENCE / 16))) as f32,
            contrast: 0.0,
            voiced_low: REFERENCE,
            voiced_full: REFERENCE,
            unvoiced_low: Floor::new(REFERENCE / 32),
            unvoiced_full: Floor::new(REFERENCE / 16),
        }
    }
}

/// Measurements of half a window.
struct Measures {
    zero_crossings: i32,
    low_energy: i32,
    full_energy: i32,
    /// Energy of the differences by that of the signal.
    high_part: f32,
    /// The first reflection coefficient.
    rc1: f32,
    /// Prediction gain over a pitch period, back and ahead.
    backward: f32,
    forward: f32,
}

impl Voicing {
    /// Voicing of the newest frame's halves.
    pub fn newest(&self) -> [bool; 2] {
        self.voiced[3]
    }
    /// The last half two frames ago, both of the frame before, both of the newest.
    pub fn recent(&self) -> [bool; 5] {
        let [_, [_, a], [b, c], [d, e]] = self.voiced;
        [a, b, c, d, e]
    }
    /// Voicing of the frame that leaves the analysis: two frames ago.
    pub fn oldest(&self) -> [bool; 2] {
        self.voiced[1]
    }

    /// Decides both halves of the newest frame.
    pub fn decide(&mut self, heard: &Heard<'_>) {
        self.voiced.rotate_left(1);
        self.scores.rotate_left(1);
        self.contrast = heard.highest / heard.deepest.max(1.0);
        for half in 0..2 {
            let measures = self.measure(heard, half);
            let score = self.discriminant(&measures, heard.inverse_rc[1]);
            self.scores[2][half] = score;
            self.voiced[3][half] = score > 0.0;
            if half == 1 {
                self.smooth(heard.bounds);
            }
            self.learn(&measures, self.voiced[3][half]);
        }
    }

    fn measure(&self, heard: &Heard<'_>, half: usize) -> Measures {
        let &Heard { window, input, low, lag, .. } = heard;
        let length = window.len();
        let start = window.first + half * length / 2 + 1;
        let sign = |value: f32| if value >= 0.0 { 1i8 } else { -1 };
        let mut dither = self.dither;
        let mut last_sign = sign(input[start - 1] - dither);
        let mut crossings = 0;
        let [mut low_sum, mut full_sum, mut steps, mut square, mut rc1] = [0.0f32; 5];
        let [mut e_now, mut e_back, mut e_ahead, mut r_back, mut r_ahead] = [0.0f32; 5];
        for at in start..start + length / 2 {
            let (back, ahead) = (low[at - lag], low[at + lag]);
            low_sum += low[at].abs();
            full_sum += input[at].abs();
            steps += (input[at] - input[at - 1]).abs();
            square += input[at] * input[at];
            rc1 += input[at] * input[at - 1];
            e_now += low[at] * low[at];
            e_back += back * back;
            e_ahead += ahead * ahead;
            r_ahead += low[at] * ahead;
            r_back += low[at] * back;
            if sign(input[at] + dither) != last_sign {
                crossings += 1;
                last_sign = -last_sign;
            }
            dither = -dither;
        }
        let per_length = 90.0 / length as f32;
        let energy = |sum: f32| ((sum / 4.0 * per_length).round() as i32).min(32767);
        Measures {
            zero_crossings: ((crossings * 2) as f32 * per_length).round() as i32,
            low_energy: energy(low_sum),
            full_energy: energy(full_sum),
            high_part: steps / (2.0 * full_sum).max(1.0),
            rc1: rc1 / square.max(1.0),
            backward: (r_back / e_back.max(1.0)) * (r_back / e_now.max(1.0)),
            forward: (r_ahead / e_ahead.max(1.0)) * (r_ahead / e_now.max(1.0)),
        }
    }

    fn discriminant(&mut self, measures: &Measures, inverse_rc: f32) -> f32 {
        let ratio = self.voiced_full as f32 / self.unvoiced_full.level.max(1) as f32;
        self.snr = (63.0 * (self.snr + ratio) / 64.0).round();
        let snr = self.snr * self.unvoiced_full.level as f32 / self.unvoiced_low.level.max(1) as f32;
        let row = NOISE_LEVELS.iter().position(|&level| snr > level).unwrap_or(NOISE_LEVELS.len());
        let values = [
            self.contrast,
            measures.low_energy as f32 / self.voiced_low.max(1) as f32,
            measures.zero_crossings as f32,
            measures.rc1,
            measures.high_part,
            inverse_rc,
            measures.backward,
            measures.forward,
        ];
        let mut score = WEIGHTS[row][8];
        for (weight, value) in WEIGHTS[row].iter().zip(values) {
            score += weight * value;
        }
        score
    }

    /// Changes single halves in the two frames before the newest, where both neighbours say otherwise.
    fn smooth(&mut self, bounds: [Bounds; 3]) {
        let onset = (bounds[0].end || bounds[1] == Bounds { start: true, end: false }) && !bounds[2].start;
        let [before, one, two, newest] = self.voiced;
        let [score_one, score_two, _] = self.scores;
        let [_, one_mut, two_mut, _] = &mut self.voiced;
        match (one, two) {
            ([false, false], [false, true]) if onset && newest[0] => {
                two_mut[0] = true;
            }
            ([false, false], [true, false]) => {
                if !newest[0] || score_two[0] < -score_two[1] {
                    two_mut[0] = false;
                } else {
                    two_mut[1] = true;
                }
            }
            ([false, true], [false, false]) => one_mut[1] = false,
            ([false, true], [false, true]) => {
                if score_one[1] < -score_two[0] {
                    one_mut[1] = false;
                } else {
                    two_mut[0] = true;
                }
            }
            ([false, true], [true, false]) => {
                if before[0] || newest[0] || score_two[1] > score_one[0] {
                    two_mut[1] = true;
                } else {
                    one_mut[0] = true;
                }
            }
            ([false, true], [true, true]) if onset => {
                one_mut[1] = false;
            }
            ([true, false], [false, false]) if onset => {
                one_mut[1] = true;
            }
            ([true, false], [true, false]) => {
                if score_two[0] < -score_one[1] {
                    two_mut[0] = false;
                } else {
                    one_mut[1] = true;
                }
            }
            ([true, false], [true, true]) => one_mut[1] = true,
            ([true, true], [false, true]) => {
                if !newest[0] && score_two[1] < -score_two[0] {
                    two_mut[1] = false;
                } else {
                    two_mut[0] = true;
                }
            }
            ([true, true], [true, false]) if onset && !newest[0] => {
                two_mut[0] = false;
            }
            // Nothing stands alone.
            _ => {}
        }
    }

    /// Follows the energies of speech and of what is not, and sets the dither by them.
    fn learn(&mut self, measures: &Measures, voiced: bool) {
        if voiced {
            let follow = |level: i32, energy: i32| ((63 * level + energy) as f32 / 64.0).round() as i32;
            self.voiced_low = follow(self.voiced_low, measures.low_energy);
            self.voiced_full = follow(self.voiced_full, measures.full_energy);
        } else {
            self.unvoiced_full.follow(measures.full_energy);
            self.unvoiced_low.follow(measures.low_energy);
        }
        let product = self.unvoiced_low.level.saturating_mul(self.voiced_low) as f32;
        self.dither = (64.0 * product.sqrt() / REFERENCE as f32).clamp(1.0, 20.0);
    }
}
