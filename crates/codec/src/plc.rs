//! Packet loss concealment for codecs that have none of their own: the last pitch period goes on, then fades.
//!
//! After the idea of ITU-T G.711 Appendix I, without its delay: periods are joined by spreading the step between them
//! over a quarter of a period, and the first samples after the gap are faded in over the synthetic ones.

/// Shortest and longest pitch period, in samples at 8 kHz: 200 and 67 Hz.
const LAG_MIN: usize = 40;
const LAG_MAX: usize = 120;
/// Samples compared when the period is looked for, at 8 kHz: 10 ms.
const WINDOW: usize = 80;
/// Full level lasts this long, then falls to nothing within [`FADE`]; samples at 8 kHz (10 ms, 50 ms).
const HOLD: usize = 80;
const FADE: usize = 400;
/// Samples over which the signal is taken back after a gap, at 8 kHz: 4 ms.
const RETURN: usize = 32;
/// How loud the first sample after a gap may be, at least, and as a multiple of what was heard last; each [`DOUBLING`] it
/// may be twice as loud. Only of codecs whose state may be off.
const LOUD_MIN: f32 = 1000.0;
const LOUDER: f32 = 1.5;
/// Samples at 8 kHz: 20 ms.
const DOUBLING: usize = 160;

/// What was heard last on one stream, and where its continuation stands.
#[derive(Debug)]
pub struct Concealer {
    /// The last 25 ms.
    history: Box<[i16]>,
    /// Samples at this rate for each one at 8 kHz, at least 1.
    scale: usize,
    /// Pitch period found for the gap.
    lag: usize,
    /// Samples made up in this gap; 0 when there is none.
    made: usize,
    /// The codec remembers: after a gap it may blare until its state fits again.
    remembers: bool,
    /// How loud a sample may be for the time being.
    ceiling: f32,
}

impl Concealer {
    /// For samples at this rate, of a codec that `remembers` what came before. Allocates 25 ms of them.
    pub fn new(rate: u32, remembers: bool) -> Self {
        let scale = (rate as usize / 8000).max(1);
        let history = vec![0; (WINDOW + LAG_MAX) * scale].into();
        Self { history, scale, lag: LAG_MIN * scale, made: 0, remembers, ceiling: f32::INFINITY }
    }

    /// Takes decoded samples; after a gap their beginning is blended with the continuation.
    pub fn follow(&mut self, linear: &mut [i16]) {
        if linear.is_empty() {
            return;
        }
        if self.made > 0 && self.remembers {
            let loudest = self.history.iter().map(|sample| sample.unsigned_abs()).max().unwrap_or(0);
            self.ceiling = (f32::from(loudest) * LOUDER).max(LOUD_MIN);
        }
        self.limit(linear);
        if self.made > 0 {
            let length = RETURN * self.scale;
            for (index, sample) in linear.iter_mut().take(length).enumerate() {
                let weight = index as f32 / length as f32;
                let made = self.sample(self.made + index);
                *sample = (f32::from(*sample) * weight + made * (1.0 - weight)) as i16;
            }
            self.made = 0;
        }
        let keep = self.history.len();
        if let Some(tail) = linear.len().checked_sub(keep).and_then(|start| linear.get(start..)) {
            self.history.copy_from_slice(tail);
        } else {
            self.history.copy_within(linear.len().., 0);
            if let Some(end) = self.history.get_mut(keep - linear.len()..) {
                end.copy_from_slice(linear);
            }
        }
    }

    /// Continues what was heard; returns the number of the first sample in its gap.
    pub fn fill(&mut self, linear: &mut [i16]) -> usize {
        if self.made == 0 {
            self.lag = self.find_lag();
        }
        for (index, sample) in linear.iter_mut().enumerate() {
            *sample = self.sample(self.made + index) as i16; // `as` saturates
        }
        let first = self.made;
        self.made = self.made.saturating_add(linear.len());
        first
    }

    /// Whether sample `index` of a gap is still to be heard.
    pub fn is_audible(&self, index: usize) -> bool {
        index < (HOLD + FADE) * self.scale
    }

    /// Keeps the first samples after a gap below the ceiling, which rises.
    fn limit(&mut self, linear: &mut [i16]) {
        if self.ceiling >= f32::from(i16::MAX) {
            return;
        }
        let rise = (1.0 / (DOUBLING * self.scale) as f32).exp2();
        for sample in linear {
            *sample = f32::from(*sample).clamp(-self.ceiling, self.ceiling) as i16;
            self.ceiling *= rise;
        }
    }

    /// Forgets what was heard.
    pub fn reset(&mut self) {
        self.history.fill(0);
        (self.made, self.ceiling) = (0, f32::INFINITY);
    }

    /// Sample `index` of the continuation as it is heard.
    fn sample(&self, index: usize) -> f32 {
        if !self.is_audible(index) {
            return 0.0;
        }
        let gain = 1.0 - index.saturating_sub(HOLD * self.scale) as f32 / (FADE * self.scale) as f32;
        self.period(index) * gain
    }

    /// Sample `index` of the continuation before it fades: what the far end may have said.
    pub fn period(&self, index: usize) -> f32 {
        let end = self.history.len();
        let at = |position: usize| self.history.get(position).copied().map_or(0.0, f32::from);
        let phase = index % self.lag;
        let seam = self.lag / 4;
        // What the signal would jump by where a period follows the one before.
        let step = at(end - 1) - at(end - 1 - self.lag);
        let bridge = step * seam.saturating_sub(phase) as f32 / seam as f32;
        at(end - self.lag + phase) + bridge
    }

    /// The shift at which the last 10 ms look most like what was before, by normalised correlation.
    fn find_lag(&self) -> usize {
        let end = self.history.len();
        let thinned = |from: usize| self.history.get(from..).unwrap_or_default().iter().step_by(self.scale);
        let recent = end - WINDOW * self.scale;
        let (mut best, mut highest) = (LAG_MAX, 0.0);
        for lag in LAG_MIN..=LAG_MAX {
            let (mut product, mut energy) = (0.0f32, 1.0f32);
            for (&now, &before) in thinned(recent).zip(thinned(recent - lag * self.scale)) {
                product += f32::from(now) * f32::from(before);
                energy += f32::from(before) * f32::from(before);
            }
            let likeness = product.max(0.0) * product / energy;
            if likeness > highest {
                (best, highest) = (lag, likeness);
            }
        }
        best * self.scale
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{rms, sine};

    #[test]
    fn a_lost_packet_of_a_voiced_sound_is_hardly_heard() {
        for rate in [8000u32, 12_000, 16_000, 44_100, 48_000] {
            let packet = rate as usize / 50;
            // A buzz of 125 Hz with its third harmonic.
            let mut whole = sine(125.0, rate, 6000.0, packet * 10);
            for (sample, third) in whole.iter_mut().zip(sine(375.0, rate, 3000.0, packet * 10)) {
                *sample += third;
            }
            let mut concealer = Concealer::new(rate, false);
            let mut heard = Vec::new();
            for (index, piece) in whole.chunks(packet).enumerate() {
                let mut piece = piece.to_vec();
                if index == 5 {
                    concealer.fill(&mut piece);
                } else {
                    concealer.follow(&mut piece);
                }
                heard.extend(piece);
            }
            let error: Vec<i16> = heard.iter().zip(&whole).map(|(a, b)| a.saturating_sub(*b)).collect();
            let part = packet * 5..packet * 6 + packet / 4;
            let ratio = rms(&error[part.clone()]) / rms(&whole[part]);
            assert!(ratio < 0.2, "{rate} Hz: an error of {ratio:.2}");
            assert!(error[packet * 6 + packet / 4..].iter().all(|&e| e == 0), "{rate} Hz: after the gap");
        }
    }

    #[test]
    fn a_long_gap_is_silent_after_60_ms_and_never_clicks() {
        let mut concealer = Concealer::new(8000, false);
        concealer.follow(&mut sine(200.0, 8000, 12_000.0, 800));
        let mut gap = vec![0; 800];
        let (first, second) = gap.split_at_mut(100);
        concealer.fill(first);
        concealer.fill(second);
        assert!(rms(&gap[..80]) > 6000.0, "full level at first");
        assert!(gap[480..].iter().all(|&s| s == 0), "silence at last");
        let steepest = 12_000.0 * core::f64::consts::TAU * 200.0 / 8000.0;
        let step = gap.windows(2).map(|pair| pair[0].abs_diff(pair[1])).max().unwrap();
        assert!(f64::from(step) < steepest * 1.5, "a step of {step}");
        concealer.reset();
        concealer.fill(&mut gap);
        assert!(gap.iter().all(|&s| s == 0), "nothing was heard");
    }

    #[test]
    fn what_blares_after_a_gap_is_kept_near_what_was_heard_before() {
        for (remembers, most) in [(true, 3200), (false, 30_000)] {
            let mut concealer = Concealer::new(8000, remembers);
            concealer.follow(&mut sine(200.0, 8000, 2000.0, 800));
            concealer.fill(&mut [0; 160]);
            let mut back = sine(200.0, 8000, 30_000.0, 1600);
            concealer.follow(&mut back);
            let peak = |part: &[i16]| part.iter().map(|sample| sample.unsigned_abs()).max().unwrap();
            assert!(peak(&back[..10]) <= most && peak(&back[..20]) > 2000, "{}", peak(&back[..20]));
            assert!(peak(&back[800..]) > 29_000, "it rises");
        }
    }
}
