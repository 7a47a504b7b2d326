//! The scalar encoder.

use crate::bits::BitWriter;
use crate::codebooks::{INNOVATION_5_64, INNOVATION_10_32, PITCH_GAINS_5_BIT, PITCH_GAINS_7_BIT};
use crate::filter::{HIGH_PASS_INPUT, Lpc, Memory, all_pole, all_zero, pole_zero, widen};
use crate::innovation::{self, Shapes};
use crate::lsp::{self, Lsp};
use crate::math::{GAIN, gain_code, rms};
use crate::mode::{INNOVATION_GAIN_1, INNOVATION_GAIN_1_BOUND, INNOVATION_GAIN_3, INNOVATION_GAIN_3_BOUND};
use crate::pitch::{self, GainTerms, Weighting};
use crate::{BYTES_MAX, FRAME, LAG_MAX, ORDER, PAST, SUBFRAME, SUBFRAMES};

/// Numerator and denominator of the perceptual filter, as bandwidth expansions of A(z).
pub const GAMMA: [f32; 2] = [0.92, 0.6];
/// What the reference puts where a signal is silent, so that filters do not decay into denormal numbers.
pub const VERY_SMALL: f32 = 1e-15;

/// Quality settings of constant rate that are native here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quality {
    /// 8 kbit/s, sub-mode 3, which qualities 3 and 4 stand for.
    Q3,
    /// 15 kbit/s, sub-mode 5, which qualities 7 and 8 stand for.
    Q8,
}

impl Quality {
    /// Bytes of a frame.
    pub const fn bytes(self) -> usize {
        match self {
            Self::Q3 => 20,
            Self::Q8 => 38,
        }
    }
}

/// State of an encoder: what one frame leaves to the next.
#[derive(Clone, Debug)]
pub struct Encoder {
    pub(crate) quality: Quality,
    /// No frame was coded yet: prediction reaches back to the frame's beginning only.
    pub(crate) first: bool,
    pub(crate) gain_product: f32,
    /// The last 40 input samples, which are coded with the next frame.
    pub(crate) input: [f32; SUBFRAME],
    pub(crate) excitation: [f32; PAST],
    pub(crate) weighted: [f32; LAG_MAX],
    pub(crate) lsp: Lsp,
    pub(crate) quantised_lsp: Lsp,
    pub(crate) synthesis: Memory,
    pub(crate) weighting: Memory,
    pub(crate) open_residual: Memory,
    pub(crate) residual: Memory,
    pub(crate) high_pass: [f32; 2],
}

/// What the two qualities differ in.
pub struct Rate<const GAINS: usize, const WIDTH: usize, const SHAPES: usize> {
    /// Number of the sub-mode.
    pub submode: usize,
    /// Gains of the pitch predictor, as stored and as searched.
    pub gains: &'static [[i8; 4]; GAINS],
    pub gain_terms: GainTerms<GAINS>,
    /// The innovation codebook, a row a sample, and the same a row an entry.
    pub shapes: Shapes<WIDTH, SHAPES>,
    pub shape_rows: [[f32; WIDTH]; SHAPES],
    /// Innovation gains of a subframe and their bounds.
    pub innovation_gains: &'static [f32],
    pub innovation_bounds: &'static [f32],
    /// Strength of the enhancer's comb filter.
    pub comb: Option<f32>,
}

/// Quality 3.
pub static LOW: Rate<32, 10, 32> = Rate {
    submode: 3,
    gains: &PITCH_GAINS_5_BIT,
    gain_terms: GainTerms::new(&PITCH_GAINS_5_BIT),
    shapes: Shapes::new(&INNOVATION_10_32),
    shape_rows: innovation::rows(&INNOVATION_10_32),
    innovation_gains: &INNOVATION_GAIN_1,
    innovation_bounds: &INNOVATION_GAIN_1_BOUND,
    comb: crate::mode::LOW.comb,
};

/// Quality 8.
pub static HIGH: Rate<128, 5, 64> = Rate {
    submode: 5,
    gains: &PITCH_GAINS_7_BIT,
    gain_terms: GainTerms::new(&PITCH_GAINS_7_BIT),
    shapes: Shapes::new(&INNOVATION_5_64),
    shape_rows: innovation::rows(&INNOVATION_5_64),
    innovation_gains: &INNOVATION_GAIN_3,
    innovation_bounds: &INNOVATION_GAIN_3_BOUND,
    comb: crate::mode::HIGH.comb,
};

impl Encoder {
    /// A fresh stream.
    pub fn new(quality: Quality) -> Self {
        Self {
            quality,
            first: true,
            gain_product: 1024.0,
            input: [0.0; SUBFRAME],
            excitation: [0.0; PAST],
            weighted: [0.0; LAG_MAX],
            lsp: lsp::initial(),
            quantised_lsp: [0.0; ORDER],
            synthesis: [0.0; ORDER],
            weighting: [0.0; ORDER],
            open_residual: [0.0; ORDER],
            residual: [0.0; ORDER],
            high_pass: [0.0; 2],
        }
    }

    /// The setting it was made with.
    pub fn quality(&self) -> Quality {
        self.quality
    }

    /// Codes 20 ms of sound into the first [`Quality::bytes`] bytes of `out`; returns how many they are.
    ///
    /// The sound of a frame lies 5 ms behind the samples put in. Cannot fail; bytes behind the frame stay untouched.
    pub fn encode(&mut self, pcm: &[i16; FRAME], out: &mut [u8; BYTES_MAX]) -> usize {
        match self.quality {
            Quality::Q3 => self.encode_at(&LOW, pcm, out),
            Quality::Q8 => self.encode_at(&HIGH, pcm, out),
        }
    }

    fn encode_at<const GAINS: usize, const WIDTH: usize, const SHAPES: usize>(
        &mut self,
        rate: &Rate<GAINS, WIDTH, SHAPES>,
        pcm: &[i16; FRAME],
        out: &mut [u8],
    ) -> usize {
        let mut signal = [0.0f32; SUBFRAME + FRAME];
        signal[..SUBFRAME].copy_from_slice(&self.input);
        for (x, sample) in signal[SUBFRAME..].iter_mut().zip(pcm) {
            *x = f32::from(*sample);
        }
        let Some((_, frame)) = signal.split_last_chunk_mut::<FRAME>() else { return 0 };
        HIGH_PASS_INPUT.run(frame, &mut self.high_pass);
        let lpc = lsp::analyse(&self.input, frame);
        // A filter whose pairs cannot all be found is replaced by the one before.
        let lsp = lsp::from_lpc(&lpc).unwrap_or(self.lsp);
        let gain = self.open_loop_gain(&signal, &lsp);

        let mut bits = BitWriter::new(out);
        bits.put(rate.submode, 5);
        if self.first {
            self.lsp = lsp;
        }
        let quantised_lsp = if GAINS == 32 {
            put_lsp(&mut bits, lsp::quantise::<3>(&lsp))
        } else {
            put_lsp(&mut bits, lsp::quantise::<5>(&lsp))
        };
        let code = gain_code(gain);
        bits.put(code, 5);
        if self.first {
            self.quantised_lsp = quantised_lsp;
        }
        for sub in 0..SUBFRAMES {
            let part = (sub + 1) as f32 / SUBFRAMES as f32;
            let open = lsp::to_lpc(&lsp::interpolate(&self.lsp, &lsp, part));
            let synthesis = lsp::to_lpc(&lsp::interpolate(&self.quantised_lsp, &quantised_lsp, part));
            let bound = if self.first { sub * SUBFRAME } else { LAG_MAX };
            self.subframe(rate, &signal[sub * SUBFRAME..], [&open, &synthesis], bound, GAIN[code], &mut bits);
        }
        self.lsp = lsp;
        self.quantised_lsp = quantised_lsp;
        self.first = false;
        self.input.copy_from_slice(&signal[FRAME..]);
        bits.finish()
    }

    /// Gain of the frame: the level of what the unquantised filter does not predict.
    fn open_loop_gain(&mut self, signal: &[f32; SUBFRAME + FRAME], lsp: &Lsp) -> f32 {
        let middle = if self.first { *lsp } else { lsp::interpolate(&self.lsp, lsp, 0.625) };
        let mut residual = [0.0f32; FRAME];
        residual.copy_from_slice(&signal[..FRAME]);
        all_zero(&mut residual, &lsp::to_lpc(&middle), &mut self.open_residual);
        rms(&residual)
    }

    fn subframe<const GAINS: usize, const WIDTH: usize, const SHAPES: usize>(
        &mut self,
        rate: &Rate<GAINS, WIDTH, SHAPES>,
        input: &[f32],
        [open, synthesis]: [&Lpc; 2],
        bound: usize,
        gain: f32,
        bits: &mut BitWriter<'_>,
    ) {
        let [num, den] = GAMMA.map(|gamma| widen(gamma, open));
        let response = impulse_response(synthesis, &num, &den);

        // What the filters would still say if nothing were sent.
        let mut ringing = [VERY_SMALL; SUBFRAME];
        all_pole(&mut ringing, synthesis, &mut { self.synthesis });
        pole_zero(&mut ringing, &num, &den, &mut { self.weighting });

        let mut weighted = [0.0f32; LAG_MAX + SUBFRAME];
        weighted[..LAG_MAX].copy_from_slice(&self.weighted);
        weighted[LAG_MAX..].copy_from_slice(&input[..SUBFRAME]);
        pole_zero(&mut weighted[LAG_MAX..], &num, &den, &mut { self.weighting });
        let mut target: [f32; SUBFRAME] = std::array::from_fn(|i| weighted[LAG_MAX + i] - ringing[i]);

        let mut residual = [0.0f32; SUBFRAME];
        residual.copy_from_slice(&input[..SUBFRAME]);
        all_zero(&mut residual, synthesis, &mut self.residual);

        let weighting = Weighting { synthesis, num: &num, den: &den, response: &response };
        let gains = (&rate.gain_terms, rate.gains);
        let found = pitch::search(
            &weighted,
            &self.excitation,
            &mut target,
            &weighting,
            gains,
            bound,
            &mut self.gain_product,
        );
        bits.put(found.lag, 7);
        bits.put(found.entry, GAINS.trailing_zeros() as usize);

        for (x, predicted) in residual.iter_mut().zip(&found.excitation) {
            *x -= predicted;
        }
        let fine = rms(&residual) / gain;
        let code = rate.innovation_bounds.iter().take_while(|bound| fine > **bound).count();
        bits.put(code, rate.innovation_gains.len().trailing_zeros() as usize);
        let gain = rate.innovation_gains[code] * gain;

        let scale = 1.0 / gain;
        let mut index = [0; 8];
        let innovation = rate.shapes.search(target.map(|x| scale * x), &response, &mut index);
        for index in index.iter().take(SUBFRAME / WIDTH) {
            bits.put(*index, SHAPES.trailing_zeros() as usize);
        }
        let excitation: [f32; SUBFRAME] = std::array::from_fn(|i| found.excitation[i] + gain * innovation[i]);
        let mut heard = excitation;
        all_pole(&mut heard, synthesis, &mut self.synthesis);
        pole_zero(&mut heard, &num, &den, &mut self.weighting);
        append(&mut self.excitation, &excitation);
        append(&mut self.weighted, &heard);
    }
}

fn put_lsp<const STAGES: usize>(bits: &mut BitWriter<'_>, (index, lsp): ([usize; STAGES], Lsp)) -> Lsp {
    for index in index {
        bits.put(index, 6);
    }
    lsp
}

/// Drops the oldest 40 samples and appends these.
fn append<const LENGTH: usize>(past: &mut [f32; LENGTH], signal: &[f32; SUBFRAME]) {
    past.copy_within(SUBFRAME.., 0);
    past[LENGTH - SUBFRAME..].copy_from_slice(signal);
}

/// Response of N(z/g1) / (D(z/g2) A(z)) to an impulse.
fn impulse_response(synthesis: &Lpc, num: &Lpc, den: &Lpc) -> [f32; SUBFRAME] {
    let mut response = [VERY_SMALL; SUBFRAME];
    response[0] = 1.0;
    response[1..=ORDER].copy_from_slice(num);
    let (mut weighting, mut filter) = ([0.0f32; ORDER], [0.0f32; ORDER]);
    for sample in &mut response {
        let x = *sample + weighting[0];
        let y = x + filter[0];
        *sample = y;
        for j in 0..ORDER - 1 {
            weighting[j] = weighting[j + 1] - den[j] * x;
            filter[j] = filter[j + 1] - synthesis[j] * y;
        }
        weighting[ORDER - 1] = -(den[ORDER - 1] * x);
        filter[ORDER - 1] = -(synthesis[ORDER - 1] * y);
    }
    response
}
