//! The sound: pulses or noise, a period at a time, through the filter that the coefficients tell.

use super::{FRAME_SAMPLES, LAG_MAX, ORDER, Parameters};

/// Periods in a frame at most: the shortest, and what was left of the frame before.
const EPOCHS: usize = 20;
/// Samples of an unvoiced epoch, and of the parts into which voicing changes cut a frame.
const QUARTER: usize = FRAME_SAMPLES / 4;
/// Part of the spectral shaping that the excitation has already.
const SHAPING: f32 = 0.7;
/// A glottal pulse with a flat spectrum.
const PULSE: [f32; 25] = [
    8.0, -16.0, 26.0, -48.0, 86.0, -162.0, 294.0, -502.0, 718.0, -728.0, 184.0, 672.0, -610.0, -672.0, 184.0,
    728.0, 718.0, 502.0, 294.0, 162.0, 86.0, 48.0, 26.0, 16.0, 8.0,
];

/// A pitch period, or as long a piece of noise.
#[derive(Debug, Clone, Copy, Default)]
struct Epoch {
    length: usize,
    voiced: bool,
    rms: f32,
    rc: [f32; ORDER],
}

/// The epochs of a frame.
#[derive(Default)]
struct Epochs {
    list: [Epoch; EPOCHS],
    count: usize,
}

impl Epochs {
    fn push(&mut self, epoch: Epoch) {
        if let Some(slot) = self.list.get_mut(self.count) {
            *slot = epoch;
            self.count += 1;
        }
    }
}

/// What the last frame ended with.
#[derive(Debug, Clone, Default)]
struct Previous {
    voiced: bool,
    pitch: usize,
    rms: f32,
    rc: [f32; ORDER],
    /// Samples of the frame that its epochs left over.
    rest: usize,
}

/// State of the synthesis of one stream.
#[derive(Debug, Clone)]
pub struct Synthesis {
    /// None before the first frame.
    previous: Option<Previous>,
    excitation: Excitation,
    de_emphasis: DeEmphasis,
    /// Samples made and not yet heard: less than a frame and an epoch.
    ready: [f32; 2 * FRAME_SAMPLES],
    count: usize,
}

impl Default for Synthesis {
    fn default() -> Self {
        Self {
            previous: None,
            excitation: Excitation::default(),
            de_emphasis: DeEmphasis::default(),
            ready: [0.0; 2 * FRAME_SAMPLES],
            count: FRAME_SAMPLES,
        }
    }
}

impl Synthesis {
    /// A frame of sound, -1 to 1 unless it is overloud; what `parameters` tell is heard a frame later.
    pub fn speak(&mut self, mut parameters: Parameters) -> [f32; FRAME_SAMPLES] {
        parameters.rms = parameters.rms.max(1.0);
        for c in &mut parameters.rc {
            *c = c.clamp(-0.99, 0.99);
        }
        let ratio = parameters.rms / (self.previous.as_ref().map_or(1.0, |p| p.rms) + 8.0);
        let mut epochs = Epochs::default();
        self.previous = Some(match self.previous.take() {
            None => first_epochs(&parameters, &mut epochs),
            Some(previous) => next_epochs(previous, &parameters, ratio, &mut epochs),
        });
        for epoch in epochs.list.iter().take(epochs.count) {
            let (filter, gain) = prediction(&epoch.rc);
            let end = (self.count + epoch.length).min(self.ready.len());
            let out = self.ready.get_mut(self.count..end).unwrap_or_default();
            self.excitation.synthesise(epoch, &filter, gain, ratio, out);
            self.de_emphasis.filter(out);
            self.count = end;
        }
        let mut speech = [0.0; FRAME_SAMPLES];
        for (sample, made) in speech.iter_mut().zip(&self.ready) {
            *sample = made / 4096.0;
        }
        self.ready.copy_within(FRAME_SAMPLES.., 0);
        self.count = self.count.saturating_sub(FRAME_SAMPLES);
        speech
    }
}

fn first_epochs(parameters: &Parameters, epochs: &mut Epochs) -> Previous {
    let voiced = parameters.voiced[1];
    let pitch = if voiced { parameters.pitch } else { QUARTER };
    let count = FRAME_SAMPLES / pitch;
    for _ in 0..count {
        epochs.push(Epoch { length: pitch, voiced, rms: parameters.rms, rc: parameters.rc });
    }
    let rest = FRAME_SAMPLES - count * pitch;
    Previous { voiced, pitch, rms: parameters.rms, rc: parameters.rc, rest }
}

/// A stretch of one voicing within a frame, filled with epochs whose parameters lead from the old to the new.
struct Stretch {
    /// Samples, counted from 1, between which an epoch may end.
    start: usize,
    end: usize,
    pitch: usize,
    /// Change of the pitch a sample.
    slope: f32,
    /// Length of epochs when it is not the pitch.
    fixed: Option<usize>,
    voiced: bool,
    from: (f32, [f32; ORDER]),
    to: (f32, [f32; ORDER]),
}

impl Stretch {
    /// `used` counts the samples filled so far, `pitch` keeps the last length.
    fn fill(&self, used: &mut usize, pitch: &mut usize, epochs: &mut Epochs) {
        for at in self.start..=self.end {
            let gliding = self.pitch as f32 + self.slope * at as f32 + 0.5;
            let length = self.fixed.unwrap_or((gliding as usize).clamp(1, LAG_MAX));
            if length + *used > at {
                continue;
            }
            *used += length;
            *pitch = length;
            let part = (*used - length / 2) as f32 / self.end as f32;
            let area = |c: f32| ((1.0 + c) / (1.0 - c)).ln();
            let mut rc = [0.0; ORDER];
            for (c, (&old, &new)) in rc.iter_mut().zip(self.from.1.iter().zip(&self.to.1)) {
                let between = (area(old) + part * (area(new) - area(old))).exp();
                *c = (between - 1.0) / (between + 1.0);
            }
            let (old, new) = (self.from.0.ln(), self.to.0.ln());
            let rms = (old + part * (new - old)).exp();
            epochs.push(Epoch { length, voiced: self.voiced, rms, rc });
        }
    }
}

/// Divides a frame into epochs; where the voicing changes, at a quarter or three quarters of it.
fn next_epochs(mut previous: Previous, now: &Parameters, ratio: f32, epochs: &mut Epochs) -> Previous {
    let length = FRAME_SAMPLES + previous.rest;
    let mut pitch = now.pitch;
    let mut used = 0;
    let mut stretch = Stretch {
        start: 1,
        end: length,
        pitch: previous.pitch,
        slope: 0.0,
        fixed: None,
        voiced: true,
        from: (previous.rms, previous.rc),
        to: (now.rms, now.rc),
    };
    if now.voiced == [previous.voiced; 2] {
        if !previous.voiced {
            pitch = QUARTER;
            stretch.pitch = QUARTER;
            if ratio > 8.0 {
                stretch.from.0 = now.rms;
            }
        }
        stretch.voiced = previous.voiced;
        stretch.slope = (pitch as f32 - stretch.pitch as f32) / length as f32;
        stretch.fill(&mut used, &mut pitch, epochs);
    } else if !previous.voiced {
        // Unvoiced to voiced: two epochs of what was, then the new.
        let unvoiced = length - if now.voiced[0] { 3 * QUARTER } else { QUARTER };
        for length in [unvoiced / 2, unvoiced - unvoiced / 2] {
            epochs.push(Epoch { length, voiced: false, rms: previous.rms, rc: previous.rc });
        }
        used = unvoiced;
        stretch.start = unvoiced + 1;
        stretch.pitch = pitch;
        stretch.from.1 = now.rc;
        stretch.fill(&mut used, &mut pitch, epochs);
    } else {
        // Voiced to unvoiced: the old goes on for a while, then noise.
        stretch.end = previous.rest + if now.voiced[0] { 3 * QUARTER } else { QUARTER };
        stretch.to.1 = previous.rc;
        stretch.fill(&mut used, &mut pitch, epochs);
        let left = (length - used - 1) / 2;
        stretch.fixed = match if left > 90 { left / 2 } else { left } {
            0 => None,
            length => Some(length),
        };
        (stretch.start, stretch.end) = (used + 1, length);
        stretch.voiced = false;
        stretch.from = (now.rms, now.rc);
        stretch.to = (now.rms, now.rc);
        stretch.fill(&mut used, &mut pitch, epochs);
    }
    previous = Previous { voiced: now.voiced[1], pitch, rms: now.rms, rc: now.rc, rest: length - used };
    previous
}

/// Reflection coefficients → prediction coefficients, and the gain of the shaped excitation.
fn prediction(rc: &[f32; ORDER]) -> ([f32; ORDER], f32) {
    let mut gain = 1.0;
    for c in rc {
        gain *= 1.0 - c * c;
    }
    let mut pc = [0.0; ORDER];
    for (i, &c) in rc.iter().enumerate() {
        let before = pc;
        for j in 0..i {
            pc[j] = before[j] - c * before[i - 1 - j];
        }
        pc[i] = c;
    }
    (pc, SHAPING * f32::sqrt(gain))
}

/// Samples of an epoch and, before them, of the filters' memory.
const WORK: usize = ORDER + LAG_MAX + 1;

/// Excitation and synthesis filter.
#[derive(Debug, Clone, Default)]
struct Excitation {
    random: Random,
    /// The last samples of the excitation and of the filtered signal, oldest first.
    input: [f32; ORDER],
    output: [f32; ORDER],
    low: [f32; 2],
    high: [f32; 2],
    rms: f32,
}

impl Excitation {
    /// Fills `out`, an epoch or the part of one that there is room for.
    fn synthesise(&mut self, epoch: &Epoch, filter: &[f32; ORDER], gain: f32, ratio: f32, out: &mut [f32]) {
        let length = epoch.length.min(out.len()).min(LAG_MAX);
        let mut input = [0.0f32; WORK];
        input[..ORDER].copy_from_slice(&self.input);
        if epoch.voiced {
            self.pulse(&mut input[ORDER..ORDER + length]);
        } else {
            self.noise(&mut input[ORDER..], length, ratio);
        }
        let mut output = [0.0f32; WORK];
        let scale = (self.rms / (epoch.rms + 1.0e-6)).min(8.0);
        self.rms = epoch.rms;
        for (slot, last) in output.iter_mut().zip(self.output) {
            *slot = last * scale;
        }
        for at in ORDER..ORDER + length {
            let mut sum = 0.0;
            for (c, back) in filter.iter().zip(1..) {
                sum += c * input[at - back];
            }
            output[at] = sum * gain + input[at];
        }
        let mut energy = 0.0;
        for at in ORDER..ORDER + length {
            let mut sum = 0.0;
            for (c, back) in filter.iter().zip(1..) {
                sum += c * output[at - back];
            }
            output[at] += sum;
            energy += output[at] * output[at];
        }
        self.input.copy_from_slice(&input[length..length + ORDER]);
        self.output.copy_from_slice(&output[length..length + ORDER]);
        let level = epoch.rms * epoch.rms * length as f32;
        let gain = if energy > 0.0 { (level / energy).sqrt() } else { 0.0 };
        for (sample, made) in out.iter_mut().zip(&output[ORDER..ORDER + length]) {
            *sample = gain * made;
        }
    }

    /// Noise with one pulse, which is the louder the more suddenly it begins.
    fn noise(&mut self, input: &mut [f32], length: usize, ratio: f32) {
        for sample in input.iter_mut().take(length) {
            *sample = (self.random.next() / 64) as f32;
        }
        let at = (self.random.next() + 32768) * (length as i32 - 1).max(0) / 65536;
        let pulse = (ratio / 4.0 * 342.0).min(2000.0);
        input[at as usize] += pulse;
        input[at as usize + 1] -= pulse;
    }

    /// A glottal pulse, low-passed, with a little high-passed noise.
    fn pulse(&mut self, input: &mut [f32]) {
        let scale = (input.len() as f32).sqrt() / 6.928;
        for (index, sample) in input.iter_mut().enumerate() {
            let pulse = PULSE.get(index).map_or(0.0, |&p| scale * p);
            *sample = 0.125 * pulse + 0.75 * self.low[0] + 0.125 * self.low[1];
            self.low = [pulse, self.low[0]];
        }
        for sample in input {
            let noise = self.random.next() as f32 / 64.0;
            *sample += -0.125 * noise + 0.25 * self.high[0] + -0.125 * self.high[1];
            self.high = [noise, self.high[0]];
        }
    }
}

/// Undoes the pre-emphasis, and takes away what is near 0 Hz.
#[derive(Debug, Clone, Default)]
struct DeEmphasis {
    input: [f32; 2],
    output: [f32; 3],
}

impl DeEmphasis {
    fn filter(&mut self, signal: &mut [f32]) {
        for sample in signal {
            let ([i1, i2], [o1, o2, o3]) = (self.input, self.output);
            let fresh = *sample;
            *sample = fresh - 1.9998 * i1 + i2 + 2.5 * o1 - 2.0925 * o2 + 0.585 * o3;
            self.input = [fresh, i1];
            self.output = [*sample, o1, o2];
        }
    }
}

/// Sixteen random bits: a lagged Fibonacci generator of five terms, the same in every decoder.
#[derive(Debug, Clone)]
struct Random {
    terms: [i16; 5],
    tap: usize,
    last: usize,
}

impl Default for Random {
    fn default() -> Self {
        Self { terms: [-21161, -8478, 30892, -10216, 16950], tap: 1, last: 4 }
    }
}

impl Random {
    fn next(&mut self) -> i32 {
        let number = self.terms[self.last].wrapping_add(self.terms[self.tap]);
        self.terms[self.last] = number;
        self.last = (self.last + 4) % 5;
        self.tap = (self.tap + 4) % 5;
        i32::from(number)
    }
}
