//! The scalar decoder, and what is played when a frame is lost.

use crate::bits::BitReader;
use crate::enhance::comb;
use crate::filter::{HIGH_PASS_OUTPUT, Lpc, Memory, all_pole, widen};
use crate::lsp::{self, Lsp};
use crate::math::{GAIN, random, rms};
use crate::mode::{INNOVATION_GAIN_1, INNOVATION_GAIN_3, Innovation, Pitch, Submode, submode};
use crate::pitch::tap_gains;
use crate::{FRAME, LAG_MAX, LAG_MIN, ORDER, SUBFRAME, SUBFRAMES};

/// Samples of past excitation: two of the longest periods for the enhancer, and what it looks at around them.
pub const HISTORY: usize = 2 * LAG_MAX + SUBFRAME + 6;
/// Samples behind the frame that the enhancer may look at; always zero.
pub const BEHIND: usize = 6;
/// Largest magnitude of predicted excitation, so that no payload can make infinities.
pub const EXCITATION_MAX: f32 = 32_000.0;
/// Gain of the second of two innovations.
const SECOND_INNOVATION: f32 = 0.454_545;
/// Attenuation of the first, second, .. lost frame; silence from the tenth on.
const ATTENUATION: [f32; 10] = [1.0, 0.961, 0.852, 0.698, 0.527, 0.368, 0.237, 0.141, 0.077, 0.039];
/// Bits of a wideband layer by its sub-mode; zero where there is none such.
const WIDEBAND_BITS: [usize; 8] = [4, 36, 112, 192, 352, 0, 0, 0];
/// Bits of in-band messages by their number.
const MESSAGE_BITS: [usize; 16] = [1, 1, 4, 4, 4, 4, 4, 4, 8, 8, 16, 16, 32, 32, 64, 64];
/// Bits that follow the length of an application's message, besides its bytes; as the reference skips them.
const USER_MESSAGE_BITS: usize = 5;

/// Why a payload gave no frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// The payload ends, or its terminator says so, before a frame begins.
    #[error("no frame")]
    NoFrame,
    /// The payload ends within a frame.
    #[error("the frame is cut off")]
    Truncated,
    /// A sub-mode that does not exist, or more than two wideband layers.
    #[error("no such sub-mode")]
    BadMode,
}

/// State of a decoder: what one frame leaves to the next.
#[derive(Clone, Debug)]
pub struct Decoder {
    pub(crate) enhance: bool,
    pub(crate) first: bool,
    /// The sender stopped sending: frames that do not come are comfort noise.
    pub(crate) silent: bool,
    /// Frames lost in a row.
    pub(crate) lost: u32,
    pub(crate) excitation: [f32; HISTORY],
    pub(crate) lsp: Lsp,
    /// A(z) of the last subframe.
    pub(crate) synthesis: Lpc,
    pub(crate) memory: Memory,
    pub(crate) high_pass: [f32; 2],
    pub(crate) lag: usize,
    pub(crate) pitch_gain: f32,
    pub(crate) pitch_gains: [f32; 3],
    pub(crate) pitch_gains_next: usize,
    pub(crate) seed: u32,
    /// Of the lowest sub-mode, which makes pulses itself: the last pulse sample, the last noise sample, their mean, and
    /// where the next pulse falls.
    pub(crate) vocoder: Vocoder,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Vocoder {
    pulse: f32,
    noise: f32,
    mean: f32,
    next: usize,
}

/// Excitation of a frame with its past in front and zeros behind.
pub(crate) type Excitation = [f32; HISTORY + FRAME + BEHIND];

impl Default for Decoder {
    fn default() -> Self {
        Self::new()
    }
}

impl Decoder {
    /// A fresh stream with the perceptual enhancer on, as libspeex has it.
    pub fn new() -> Self {
        Self {
            enhance: true,
            first: true,
            silent: false,
            lost: 0,
            excitation: [0.0; HISTORY],
            lsp: [0.0; ORDER],
            synthesis: [0.0; ORDER],
            memory: [0.0; ORDER],
            high_pass: [0.0; 2],
            lag: 40,
            pitch_gain: 0.0,
            pitch_gains: [0.0; 3],
            pitch_gains_next: 0,
            seed: 1000,
            vocoder: Vocoder::default(),
        }
    }

    /// Turns the perceptual enhancer on or off: a comb filter that deepens the valleys between harmonics.
    pub fn set_enhancer(&mut self, on: bool) {
        self.enhance = on;
    }

    /// Whether it is on.
    pub const fn has_enhancer(&self) -> bool {
        self.enhance
    }

    /// Decodes the first frame of a payload, or conceals it when there is none that can be read.
    ///
    /// `pcm` is 20 ms of sound in either case.
    ///
    /// # Errors
    /// Says what was wrong with the payload; the state is as after [`Decoder::conceal`].
    pub fn decode(&mut self, payload: &[u8], pcm: &mut [i16; FRAME]) -> Result<(), Fault> {
        let result = self.decode_next(&mut BitReader::new(payload), pcm);
        if result.is_err() {
            self.conceal(pcm);
        }
        result
    }

    /// Decodes the next frame of a payload of several.
    ///
    /// # Errors
    /// [`Fault::NoFrame`] at the end of the payload; the other faults concern the rest of it. State and `pcm` are
    /// unchanged then.
    pub fn decode_next(&mut self, bits: &mut BitReader<'_>, pcm: &mut [i16; FRAME]) -> Result<(), Fault> {
        match next_frame(bits)? {
            Some(mode) => self.frame(mode, bits, pcm),
            None => self.comfort_noise(pcm),
        }
        Ok(())
    }

    /// Plays on for a frame that is lost: the last period, fading, and noise.
    pub fn conceal(&mut self, pcm: &mut [i16; FRAME]) {
        if self.silent {
            self.comfort_noise(pcm);
            return;
        }
        let fading = ATTENUATION.get(self.lost as usize).copied().unwrap_or(0.0);
        let [a, b, c] = self.pitch_gains;
        let median = a.max(b).min(a.min(b).max(c));
        if median < self.pitch_gain {
            self.pitch_gain = median;
        }
        let gain = if f64::from(self.pitch_gain) > 0.85 { 0.85 } else { self.pitch_gain };
        let gain = fading * gain + 1e-15;
        let level = rms(&self.excitation[HISTORY - FRAME..]);
        let noise = level * (fading * (1.0 - gain * gain));
        let jitter = random(self.lost.saturating_add(1) as f32, &mut self.seed) as i32;
        let lag = (self.lag as i32).saturating_add(jitter).clamp(LAG_MIN as i32, LAG_MAX as i32) as usize;
        let mut excitation = self.begin();
        for i in HISTORY..HISTORY + FRAME {
            excitation[i] = gain * (excitation[i - lag] + 1e-15) + random(noise, &mut self.seed);
        }
        self.synthesis = widen(0.98, &self.synthesis);
        let mut signal = [0.0f32; FRAME];
        signal.copy_from_slice(&excitation[HISTORY - SUBFRAME..][..FRAME]);
        all_pole(&mut signal, &self.synthesis, &mut self.memory);
        HIGH_PASS_OUTPUT.run(&mut signal, &mut self.high_pass);
        self.finish(&excitation);
        self.first = false;
        self.lost = self.lost.saturating_add(1);
        self.remember_pitch_gain(gain);
        round(&signal, pcm);
    }

    /// Noise with the colour of the last frame.
    fn comfort_noise(&mut self, pcm: &mut [i16; FRAME]) {
        let mut excitation = self.begin();
        // The reference shifts its buffer and then measures what lies in the place of the new frame: the frame before but
        // for its beginning, which the shift has overwritten with zeros.
        let kept = HISTORY + BEHIND..HISTORY + FRAME;
        excitation[kept].copy_from_slice(&self.excitation[HISTORY - FRAME + BEHIND..]);
        let level = rms(&excitation[HISTORY..HISTORY + FRAME]);
        for x in &mut excitation[HISTORY..HISTORY + FRAME] {
            *x = random(level, &mut self.seed);
        }
        let mut signal = [0.0f32; FRAME];
        signal.copy_from_slice(&excitation[HISTORY..HISTORY + FRAME]);
        all_pole(&mut signal, &widen(0.93, &self.synthesis), &mut self.memory);
        self.finish(&excitation);
        self.first = true;
        self.lost = 0;
        round(&signal, pcm);
    }

    /// The excitation buffer with the past in its place.
    fn begin(&self) -> Excitation {
        let mut excitation = [0.0; HISTORY + FRAME + BEHIND];
        excitation[..HISTORY].copy_from_slice(&self.excitation);
        excitation
    }

    fn finish(&mut self, excitation: &Excitation) {
        self.excitation.copy_from_slice(&excitation[FRAME..FRAME + HISTORY]);
    }

    fn remember_pitch_gain(&mut self, gain: f32) {
        if let Some(slot) = self.pitch_gains.get_mut(self.pitch_gains_next) {
            *slot = gain;
        }
        self.pitch_gains_next = (self.pitch_gains_next + 1) % self.pitch_gains.len();
    }

    /// One frame whose bits are all there.
    fn frame(&mut self, (number, mode): (usize, &Submode), bits: &mut BitReader<'_>, pcm: &mut [i16; FRAME]) {
        let lsp = lsp::unquantise(bits, mode.fine_lsp);
        if self.lost > 0 {
            // After a loss the filter's memory is damped by how far the filter has moved.
            let moved = self.lsp.iter().zip(&lsp).fold(0.0f32, |sum, (old, new)| sum + (old - new).abs());
            let keep = (0.6 * (-0.2 * f64::from(moved)).exp()) as f32;
            self.memory = self.memory.map(|x| keep * x);
        }
        if self.first || self.lost > 0 {
            self.lsp = lsp;
        }
        let frame_lag = LAG_MIN + if let Pitch::Subframe = mode.pitch { 0 } else { bits.take(7) };
        let forced_gain = match mode.pitch {
            Pitch::Forced => (0.066_667 * bits.take(4) as f64) as f32,
            _ => 0.0,
        };
        let gain = GAIN[bits.take(5)];
        self.silent = number == 1 && bits.take(4) == 15;

        let mut excitation = self.begin();
        let mut voice = Voice::new();
        for sub in 0..SUBFRAMES {
            let offset = HISTORY + sub * SUBFRAME;
            let (predicted, lag, gains) = match mode.pitch {
                Pitch::Forced => forced(&excitation, offset, frame_lag, forced_gain),
                Pitch::FrameLag | Pitch::Subframe => {
                    let lag = match mode.pitch {
                        Pitch::Subframe => LAG_MIN + bits.take(7),
                        _ => frame_lag,
                    };
                    let gains = tap_gains(&mode.gains[bits.take(mode.gain_bits)]);
                    let gains = self.restrained(gains, lag > sub * SUBFRAME);
                    (predict(&excitation, offset, lag, gains), lag, gains)
                }
            };
            voice.hear(lag, gains);
            let innovation = self.innovation(mode, gain, bits);
            let out = &mut excitation[offset..offset + SUBFRAME];
            for ((out, predicted), innovation) in out.iter_mut().zip(&predicted).zip(&innovation) {
                *out = limited(*predicted) + innovation;
            }
            if number == 1 {
                self.vocoder.run(out, &innovation, frame_lag, forced_gain, gain);
            }
        }
        let mut signal = [0.0f32; FRAME];
        signal.copy_from_slice(&excitation[HISTORY - SUBFRAME..][..FRAME]);
        if self.lost > 0 {
            // After a loss the excitation gets the energy that was sent.
            let level = rms(&excitation[HISTORY..HISTORY + FRAME]);
            let scale = gain / (level + 1.0);
            let scale = if scale > 2.0 { 2.0 } else { scale };
            for x in &mut excitation[HISTORY..HISTORY + FRAME] {
                *x *= scale;
            }
            signal.copy_from_slice(&excitation[HISTORY - SUBFRAME..][..FRAME]);
        } else if let (true, Some(strength)) = (self.enhance, mode.comb) {
            comb(&excitation, &mut signal, voice.lag, strength);
        }
        self.finish(&excitation);
        self.synthesise(&mut signal, &lsp);
        self.after(&voice, &lsp);
        round(&signal, pcm);
    }

    /// What a frame that came leaves behind, besides sound.
    pub(crate) fn after(&mut self, voice: &Voice, lsp: &Lsp) {
        self.lsp = *lsp;
        self.first = false;
        self.lost = 0;
        self.lag = voice.lag;
        self.pitch_gain = 0.25 * voice.sum;
        self.remember_pitch_gain(self.pitch_gain);
    }

    /// Excitation to sound: each subframe through the filter of the one before, which is its own by the decoder's delay.
    fn synthesise(&mut self, signal: &mut [f32; FRAME], lsp: &Lsp) {
        for (sub, part) in signal.chunks_exact_mut(SUBFRAME).enumerate() {
            let next = lsp::interpolate(&self.lsp, lsp, (sub + 1) as f32 / SUBFRAMES as f32);
            all_pole(part, &self.synthesis, &mut self.memory);
            self.synthesis = lsp::to_lpc(&next);
        }
        HIGH_PASS_OUTPUT.run(signal, &mut self.high_pass);
    }

    /// After a loss a prediction from what was concealed may not gain more than the frames before did.
    fn restrained(&self, gains: [f32; 3], from_the_past: bool) -> [f32; 3] {
        if self.lost == 0 || !from_the_past {
            return gains;
        }
        let bound = if self.lost < 4 { self.pitch_gain } else { 0.5 * self.pitch_gain };
        let bound = if f64::from(bound) > 0.95 { 0.95 } else { bound };
        let sum = as_one_tap(gains);
        if sum > bound { gains.map(|gain| (bound / sum) * gain) } else { gains }
    }

    fn innovation(&mut self, mode: &Submode, gain: f32, bits: &mut BitReader<'_>) -> [f32; SUBFRAME] {
        let gain = match mode.innovation_gain_bits {
            3 => INNOVATION_GAIN_3[bits.take(3)] * gain,
            1 => INNOVATION_GAIN_1[bits.take(1)] * gain,
            _ => gain,
        };
        let Innovation::Shapes { width, bits: shape_bits, book } = mode.innovation else {
            return std::array::from_fn(|_| gain * random(1.0, &mut self.seed));
        };
        let mut shape = |gain: f32| {
            let mut signal = [0.0f32; SUBFRAME];
            for part in signal.chunks_exact_mut(width) {
                let row = &book[bits.take(shape_bits) * width..][..width];
                for (x, value) in part.iter_mut().zip(row) {
                    *x = gain * (0.03125 * f32::from(*value));
                }
            }
            signal
        };
        let mut innovation = shape(gain);
        if mode.double {
            let second = shape(SECOND_INNOVATION * gain);
            for (x, second) in innovation.iter_mut().zip(&second) {
                *x += second;
            }
        }
        innovation
    }
}

/// Finds the next narrowband frame, past wideband layers and in-band messages. `Ok(None)` is a frame of silence.
pub(crate) fn next_frame(bits: &mut BitReader<'_>) -> Result<Option<(usize, &'static Submode)>, Fault> {
    loop {
        let mut layers = 0;
        loop {
            if bits.remaining() < 5 {
                return Err(Fault::NoFrame);
            }
            if bits.take(1) == 0 {
                break;
            }
            layers += 1;
            let length = WIDEBAND_BITS[bits.take(3)];
            if length == 0 || layers > 2 {
                return Err(Fault::BadMode);
            }
            bits.skip(length - 4).ok_or(Fault::NoFrame)?;
        }
        match bits.take(4) {
            0 => return Ok(None),
            15 => return Err(Fault::NoFrame),
            14 if bits.remaining() >= 4 => {
                let length = MESSAGE_BITS[bits.take(4)];
                bits.skip(length).ok_or(Fault::NoFrame)?;
            }
            13 if bits.remaining() >= 4 => {
                let length = USER_MESSAGE_BITS + 8 * bits.take(4);
                bits.skip(length).ok_or(Fault::NoFrame)?;
            }
            13 | 14 => return Err(Fault::NoFrame),
            number => {
                let mode = submode(number).ok_or(Fault::BadMode)?;
                if bits.remaining() < mode.bits - 5 {
                    return Err(Fault::Truncated);
                }
                return Ok(Some((number, mode)));
            }
        }
    }
}

/// The pitch that the frame as a whole has, for the enhancer and for concealment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Voice {
    pub(crate) lag: usize,
    gain: f32,
    sum: f32,
}

impl Voice {
    pub(crate) const fn new() -> Self {
        Self { lag: 40, gain: 0.0, sum: 0.0 }
    }

    /// A subframe's lag and gains.
    pub(crate) fn hear(&mut self, lag: usize, gains: [f32; 3]) {
        let gain = as_one_tap(gains);
        self.sum += gain;
        let (best, new) = (self.lag as i32, lag as i32);
        let near = |a: i32, b: i32| (2 * a - b).abs() < 3 || (3 * a - b).abs() < 4 || (4 * a - b).abs() < 5;
        let (multiple, part) = (near(best, new), near(new, best));
        if (gain > self.gain && !multiple)
            || (f64::from(gain) > 0.6 * f64::from(self.gain) && part)
            || (0.67 * f64::from(gain) > f64::from(self.gain) && multiple)
        {
            self.lag = lag;
            if gain > self.gain {
                self.gain = gain;
            }
        }
    }
}

/// Gain of the one tap that three amount to.
pub(crate) fn as_one_tap([a, b, c]: [f32; 3]) -> f32 {
    let side = |gain: f32| if gain > 0.0 { f64::from(gain) } else { -0.5 * f64::from(gain) };
    (f64::from(b.abs()) + side(a) + side(c)) as f32
}

/// The excitation predicted from one lag and one gain; periods shorter than the subframe repeat themselves.
fn forced(
    excitation: &Excitation,
    offset: usize,
    lag: usize,
    gain: f32,
) -> ([f32; SUBFRAME], usize, [f32; 3]) {
    let gain = if f64::from(gain) > 0.99 { 0.99 } else { gain };
    let mut signal = [0.0f32; SUBFRAME];
    for i in 0..SUBFRAME {
        let past = if i < lag { excitation[offset + i - lag] } else { signal[i - lag] };
        signal[i] = past * gain;
    }
    (signal, lag, [0.0, gain, 0.0])
}

/// The excitation predicted by three taps.
fn predict(excitation: &Excitation, offset: usize, lag: usize, gains: [f32; 3]) -> [f32; SUBFRAME] {
    let mut signal = [0.0f32; SUBFRAME];
    for (tap, gain) in gains.iter().rev().enumerate() {
        let period = lag + 1 - tap;
        for (j, x) in signal.iter_mut().enumerate() {
            if j < period {
                *x += gain * excitation[offset + j - period];
            } else if j < period + lag {
                *x += gain * excitation[offset + j - period - lag];
            }
        }
    }
    signal
}

/// Holds predicted excitation within bounds; what is no number becomes zero.
fn limited(x: f32) -> f32 {
    if x.is_nan() { 0.0 } else { x.clamp(-EXCITATION_MAX, EXCITATION_MAX) }
}

impl Vocoder {
    /// Replaces the excitation by pulses at the pitch and filtered noise, mixed by how voiced the frame is.
    fn run(&mut self, out: &mut [f32], noise: &[f32; SUBFRAME], lag: usize, voicing: f32, gain: f32) {
        let voiced = (1.5 * (voicing - 0.2)).clamp(0.0, 1.0);
        let mut pulses = [0.0f32; SUBFRAME];
        while let Some(pulse) = pulses.get_mut(self.next) {
            *pulse = (2.0 * lag as f64).sqrt() as f32 * (voiced * gain);
            self.next += lag;
        }
        self.next -= SUBFRAME;
        for ((out, pulse), noise) in out.iter_mut().zip(pulses).zip(noise) {
            let x = (0.7 * pulse + 0.3 * self.pulse)
                + ((1.0 - 0.85 * voiced) * noise - (0.15 * voiced) * self.noise);
            self.pulse = pulse;
            self.noise = *noise;
            self.mean = 0.8 * self.mean + 0.2 * x;
            *out = x - self.mean;
        }
    }
}

/// To 16 bits with saturation, halves up.
fn round(signal: &[f32; FRAME], pcm: &mut [i16; FRAME]) {
    for (sample, x) in pcm.iter_mut().zip(signal) {
        *sample = (0.5 + f64::from(*x)).floor() as i16;
    }
}
