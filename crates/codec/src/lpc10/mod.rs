//! LPC-10 at 2.4 kbit/s (FED-STD-1015, FIPS 137, STANAG 4198): 180 samples of 8 kHz ⇄ 54 bits in 7 bytes.
//!
//! A vocoder: each 22.5 ms become a pitch, a loudness and ten reflection coefficients, and a buzz or a hiss is shaped
//! by them. Both sides look ahead: a frame comes out two frames (encoder) and one (decoder) after its samples went in.
//!
//! Written after the LPC-10 version 55 that the U.S. Department of Defense published in 1993 in Fortran (a work of the
//! U.S. Government, in the public domain) with the corrections of J. A. Fingerhut (BSD-3-Clause, see `NOTICE`). Sums
//! run in the order of the original, in single precision, so that frames come out the same. Rooms: `analysis` (what
//! the encoder measures), with `onset` and `place` (where it looks), `voicing` and `pitch` (what it decides) and
//! `predict` (the coefficients); `quantise` (parameters ⇄ numbers ⇄ bits); `repair` (what the decoder makes of bit
//! errors); `synthesis` (the sound).

mod analysis;
mod onset;
mod pitch;
mod place;
mod predict;
mod quantise;
mod repair;
mod synthesis;
mod voicing;

/// Samples of a frame: 22.5 ms.
pub const FRAME_SAMPLES: usize = 180;
/// Bytes of a frame: 54 bits, the first in the highest bit of the first byte, two bits of padding.
pub const FRAME_BYTES: usize = 7;
/// Number of reflection coefficients.
const ORDER: usize = 10;
/// Pitch periods that can be coded, in samples: 400 to 51 Hz.
const LAGS: [usize; 60] = [
    20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32, 33, 34, 35, 36, 37, 38, 39, 40, 42, 44, 46, 48, 50,
    52, 54, 56, 58, 60, 62, 64, 66, 68, 70, 72, 74, 76, 78, 80, 84, 88, 92, 96, 100, 104, 108, 112, 116, 120,
    124, 128, 132, 136, 140, 144, 148, 152, 156,
];
/// Longest of [`LAGS`].
const LAG_MAX: usize = 156;
/// A frame of silence: unvoiced, no energy.
pub const SILENCE: [u8; FRAME_BYTES] = [0; FRAME_BYTES];

/// What a frame tells, before quantisation or after.
#[derive(Debug, Clone, Default)]
struct Parameters {
    /// Whether each half of the frame is voiced.
    voiced: [bool; 2],
    /// Pitch: an index into [`LAGS`] in the encoder, a period in samples in the decoder.
    pitch: usize,
    /// Root mean square of the pre-emphasised signal; 12-bit samples.
    rms: f32,
    /// Reflection coefficients.
    rc: [f32; ORDER],
}

/// LPC-10 encoder of one stream.
#[derive(Debug, Clone, Default)]
pub struct Encoder {
    high_pass: HighPass,
    analysis: analysis::Analysis,
    /// The alternating bit that ends a frame.
    sync: bool,
}

impl Encoder {
    /// Encodes a frame.
    pub fn encode(&mut self, linear: &[i16; FRAME_SAMPLES], coded: &mut [u8; FRAME_BYTES]) {
        let mut speech = linear.map(|sample| f32::from(sample) / 32768.0);
        self.high_pass.filter(&mut speech);
        let parameters = self.analysis.analyse(&speech);
        *coded = quantise::pack(&quantise::encode(&parameters), self.sync);
        self.sync = !self.sync;
    }
}

/// LPC-10 decoder of one stream.
#[derive(Debug, Clone, Default)]
pub struct Decoder {
    repair: repair::Repair,
    synthesis: synthesis::Synthesis,
    /// The last frame that came, and how many have been missing since.
    last: [u8; FRAME_BYTES],
    missing: u32,
}

/// Frames for which the last one is repeated in place of lost ones: 45 ms; then a silent frame is decoded.
const REPEATED_FRAMES: u32 = 2;

impl Decoder {
    /// Decodes a frame. Every combination of bits is a frame.
    pub fn decode(&mut self, coded: &[u8; FRAME_BYTES], linear: &mut [i16; FRAME_SAMPLES]) {
        (self.last, self.missing) = (*coded, 0);
        self.synthesise(*coded, linear);
    }

    /// Fills in for a frame that never came: the last one again, then silence.
    pub fn conceal(&mut self, linear: &mut [i16; FRAME_SAMPLES]) {
        let frame = if self.missing < REPEATED_FRAMES { self.last } else { SILENCE };
        self.missing = self.missing.saturating_add(1);
        self.synthesise(frame, linear);
    }

    fn synthesise(&mut self, coded: [u8; FRAME_BYTES], linear: &mut [i16; FRAME_SAMPLES]) {
        let parameters = self.repair.parameters(&quantise::unpack(&coded));
        let speech = self.synthesis.speak(parameters);
        // `as` limits what is too loud.
        *linear = speech.map(|sample| (sample * 32768.0) as i16);
    }
}

/// A Butterworth high-pass filter of the fourth order at 100 Hz.
#[derive(Debug, Clone, Default)]
struct HighPass {
    z: [[f32; 2]; 2],
}

impl HighPass {
    fn filter(&mut self, speech: &mut [f32; FRAME_SAMPLES]) {
        for sample in speech {
            let mut s = *sample;
            for ([z1, z2], [c1, c2]) in
                self.z.iter_mut().zip([[1.859_076, 0.864_824_9], [1.935_715, 0.941_700_4]])
            {
                let error = s + c1 * *z1 - c2 * *z2;
                s = error - 2.0 * *z1 + *z2;
                (*z2, *z1) = (*z1, error);
            }
            *sample = 0.902_428 * s;
        }
    }
}
