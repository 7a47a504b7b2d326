//! DTMF in the audio: which of the sixteen digits begins and ends, and nothing in speech or music; and the digits of R1,
//! which are two of six tones (ITU-T Q.320, Q.323).
//!
//! Goertzel filters over blocks of 12.75 ms at 8 kHz. A block is a digit when its two tones hold most of its energy,
//! stand out from the other rows and columns, are balanced, and have no second harmonic (speech has one). A digit
//! begins with its second block and ends with its third block without it, so 40 ms on and 40 ms off are enough
//! (ITU-T Q.24; ETSI ES 201 235-3).

use base::Digit;

use crate::tone::PEAK_0_DBM0;

/// Samples of a block: narrow enough to tell 697 from 770 Hz, short enough that 40 ms hold two.
const BLOCK: usize = 102;
/// Blocks with the same digit before it counts as begun.
const BLOCKS_TO_BEGIN: u8 = 2;
/// Blocks without it before it counts as ended; bridges a drop-out of a block.
const BLOCKS_TO_END: u8 = 3;
/// Weakest tone, dBm0 a frequency: -25 dBm0 for the digit, less what a deviating frequency loses in its filter.
pub(crate) const LEVEL_MIN_DBM0: f64 = -32.0;
/// How much the column may exceed the row (12 dB) and the row the column (8 dB): phones lift columns, long lines eat them.
const TWIST_MAX: f32 = 15.8;
const REVERSE_TWIST_MAX: f32 = 6.3;
/// How far a tone stands out from the others of its group (8 dB).
const GROUP_MIN: f32 = 6.3;
/// Smallest part of the block's energy that both tones hold.
const ENERGY_MIN: f32 = 0.62;
/// Largest second harmonic, as a part of its fundamental (-9 dB).
const HARMONIC_MAX: f32 = 0.125;
/// A row's harmonic this near to the column, hertz, cannot be told from it and is not looked at.
const HARMONIC_CLEARANCE: f32 = 160.0;

const ROWS: [f32; 4] = [697.0, 770.0, 852.0, 941.0];
const COLUMNS: [f32; 4] = [1209.0, 1336.0, 1477.0, 1633.0];
const DIGITS: [[char; 4]; 4] =
    [['1', '2', '3', 'A'], ['4', '5', '6', 'B'], ['7', '8', '9', 'C'], ['*', '0', '#', 'D']];

/// Tones of R1, hertz.
const MF: [f32; 6] = [700.0, 900.0, 1100.0, 1300.0, 1500.0, 1700.0];
/// How much one tone of R1 may exceed the other (6 dB), and how far both stand out from the rest (8 dB).
const MF_TWIST_MAX: f32 = 4.0;
/// Digits of R1 by the places of their tones. KP is `*`, ST `#`, and STP, ST2P, ST3P are `A` to `C`.
const MF_DIGITS: [(usize, usize, char); 15] = [
    (0, 1, '1'),
    (0, 2, '2'),
    (1, 2, '3'),
    (0, 3, '4'),
    (1, 3, '5'),
    (2, 3, '6'),
    (0, 4, '7'),
    (1, 4, '8'),
    (2, 4, '9'),
    (3, 4, '0'),
    (2, 5, '*'),
    (4, 5, '#'),
    (1, 5, 'A'),
    (3, 5, 'B'),
    (0, 5, 'C'),
];

/// An edge of a digit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DtmfEdge {
    /// A digit began.
    Begin(Digit),
    /// It ended, this many milliseconds after it began.
    End(Digit, u32),
}

/// Listens to one stream of linear samples at 8 kHz. Allocates nothing.
#[derive(Debug, Clone)]
pub struct DtmfDetector {
    analyse: fn(&[i16; BLOCK]) -> Option<Digit>,
    block: [i16; BLOCK],
    filled: usize,
    /// The digit of the last block, and how many blocks in a row had it.
    candidate: Option<Digit>,
    repeats: u8,
    /// The digit that has begun, in how many blocks it was heard, and the blocks without it since.
    current: Option<Digit>,
    blocks: u32,
    misses: u8,
}

impl Default for DtmfDetector {
    fn default() -> Self {
        Self::new()
    }
}

impl DtmfDetector {
    /// A detector that has heard nothing.
    pub const fn new() -> Self {
        Self::with(analyse)
    }
    /// One for the digits of R1, KP as `*`, ST as `#`, STP, ST2P and ST3P as `A` to `C`.
    pub const fn mf() -> Self {
        Self::with(analyse_mf)
    }
    const fn with(analyse: fn(&[i16; BLOCK]) -> Option<Digit>) -> Self {
        Self {
            analyse,
            block: [0; BLOCK],
            filled: 0,
            candidate: None,
            repeats: 0,
            current: None,
            blocks: 0,
            misses: 0,
        }
    }

    /// Takes samples in pieces of any length and reports edges as they are certain.
    pub fn process(&mut self, mut linear: &[i16], mut report: impl FnMut(DtmfEdge)) {
        while !linear.is_empty() {
            let room = self.block.get_mut(self.filled..).unwrap_or_default();
            let count = room.len().min(linear.len());
            let (head, tail) = linear.split_at(count);
            for (slot, &sample) in room.iter_mut().zip(head) {
                *slot = sample;
            }
            linear = tail;
            self.filled += count;
            if self.filled == BLOCK {
                self.filled = 0;
                let heard = (self.analyse)(&self.block);
                self.step(heard, &mut report);
            }
        }
    }

    /// Ends a digit that is still heard: the stream stops here.
    pub fn finish(&mut self, mut report: impl FnMut(DtmfEdge)) {
        if let Some(digit) = self.current {
            report(DtmfEdge::End(digit, self.duration_ms()));
        }
        *self = Self::with(self.analyse);
    }

    /// The digit that is sounding.
    pub fn current(&self) -> Option<Digit> {
        self.current
    }

    fn step(&mut self, heard: Option<Digit>, report: &mut impl FnMut(DtmfEdge)) {
        self.repeats = if heard == self.candidate { self.repeats.saturating_add(1) } else { 1 };
        self.candidate = heard;
        if let Some(digit) = self.current {
            self.blocks = self.blocks.saturating_add(1);
            if heard == Some(digit) {
                self.misses = 0;
                return;
            }
            self.misses += 1;
            let replaced = heard.is_some() && self.repeats >= BLOCKS_TO_BEGIN;
            if self.misses < BLOCKS_TO_END && !replaced {
                return;
            }
            report(DtmfEdge::End(digit, self.duration_ms()));
            self.current = None;
        }
        if let (Some(digit), BLOCKS_TO_BEGIN..) = (heard, self.repeats) {
            self.current = Some(digit);
            self.blocks = u32::from(self.repeats);
            self.misses = 0;
            report(DtmfEdge::Begin(digit));
        }
    }

    fn duration_ms(&self) -> u32 {
        (u64::from(self.blocks.saturating_sub(self.misses.into())) * BLOCK as u64 / 8) as u32
    }
}

/// The digit that a block is made of.
fn analyse(block: &[i16; BLOCK]) -> Option<Digit> {
    let samples = block.map(f32::from);
    let energy: f32 = samples.iter().map(|x| x * x).sum();
    // A tone of peak A gives (A × BLOCK / 2)² in its filter and A² × BLOCK / 2 of energy.
    let peak = (PEAK_0_DBM0 * 10f64.powf(LEVEL_MIN_DBM0 / 20.0)) as f32;
    if energy < peak * peak * BLOCK as f32 / 2.0 {
        return None;
    }
    let threshold = (peak * BLOCK as f32 / 2.0).powi(2);
    let (row, row_power) = strongest(&samples, &ROWS)?;
    let (column, column_power) = strongest(&samples, &COLUMNS)?;
    let both = row_power + column_power;
    if row_power < threshold
        || column_power < threshold
        || column_power > row_power * TWIST_MAX
        || row_power > column_power * REVERSE_TWIST_MAX
        || both < ENERGY_MIN * energy * BLOCK as f32 / 2.0
    {
        return None;
    }
    let (row_hertz, column_hertz) = (ROWS.get(row)?, COLUMNS.get(column)?);
    if goertzel(&samples, column_hertz * 2.0) > HARMONIC_MAX * column_power {
        return None;
    }
    if (row_hertz * 2.0 - column_hertz).abs() > HARMONIC_CLEARANCE
        && goertzel(&samples, row_hertz * 2.0) > HARMONIC_MAX * both
    {
        return None;
    }
    DIGITS.get(row)?.get(column).copied().and_then(Digit::from_char)
}

/// The digit of R1 that a block is made of: two of its tones hold most of the energy, and nothing else does.
fn analyse_mf(block: &[i16; BLOCK]) -> Option<Digit> {
    let samples = block.map(f32::from);
    let energy: f32 = samples.iter().map(|x| x * x).sum();
    let peak = (PEAK_0_DBM0 * 10f64.powf(LEVEL_MIN_DBM0 / 20.0)) as f32;
    if energy < peak * peak * BLOCK as f32 / 2.0 {
        return None;
    }
    let powers = MF.map(|hertz| goertzel(&samples, hertz));
    let mut order = [0, 1, 2, 3, 4, 5];
    let power = |place: usize| powers.get(place).copied().unwrap_or(0.0);
    order.sort_unstable_by(|a, b| power(*b).total_cmp(&power(*a)));
    let [first, second, third, ..] = order;
    if power(first) > power(second) * MF_TWIST_MAX
        || power(second) < power(third) * GROUP_MIN
        || power(first) + power(second) < ENERGY_MIN * energy * BLOCK as f32 / 2.0
    {
        return None;
    }
    let pair = (first.min(second), first.max(second));
    let found = MF_DIGITS.iter().find(|(low, high, _)| (*low, *high) == pair);
    found.and_then(|(_, _, symbol)| Digit::from_char(*symbol))
}

/// The strongest of a group of tones and its power; `None` when it does not stand out.
fn strongest(samples: &[f32; BLOCK], group: &[f32; 4]) -> Option<(usize, f32)> {
    let powers = group.map(|hertz| goertzel(samples, hertz));
    let (mut best, mut power) = (0, 0.0);
    for (index, &candidate) in powers.iter().enumerate() {
        if candidate > power {
            (best, power) = (index, candidate);
        }
    }
    let clear = powers.iter().enumerate().all(|(index, &other)| index == best || power > other * GROUP_MIN);
    clear.then_some((best, power))
}

/// Power of one frequency in a block.
pub(crate) fn goertzel(samples: &[f32], hertz: f32) -> f32 {
    let factor = 2.0 * (core::f32::consts::TAU * hertz / 8000.0).cos();
    let (mut last, mut before) = (0.0f32, 0.0f32);
    for &x in samples {
        (last, before) = (x + factor * last - before, last);
    }
    last * last + before * before - factor * last * before
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Noise, golden, samples};
    use crate::tone::{dtmf, peak_of_dbm0};
    use base::SampleRate;

    fn edges(linear: &[i16], step: usize) -> Vec<DtmfEdge> {
        let mut detector = DtmfDetector::new();
        let mut all = Vec::new();
        for piece in linear.chunks(step) {
            detector.process(piece, |edge| all.push(edge));
        }
        detector.finish(|edge| all.push(edge));
        all
    }

    #[test]
    fn q323_digits_of_r1_are_told_apart_at_their_shortest_and_noise_is_none() {
        let heard = |linear: &[i16]| {
            let (mut detector, mut heard) = (DtmfDetector::mf(), String::new());
            for piece in linear.chunks(160) {
                detector.process(piece, |edge| {
                    if let DtmfEdge::Begin(digit) = edge {
                        heard.push(digit.to_char());
                    }
                });
            }
            heard
        };
        let peak = peak_of_dbm0(-7.0);
        for (on, off) in [(55, 50), (68, 68), (100, 100)] {
            let mut linear = Vec::new();
            for (low, high, symbol) in MF_DIGITS {
                let count = if symbol == '*' { 120 } else { on } * 8;
                let (low, high) = (f64::from(MF[low]), f64::from(MF[high]));
                let tones = [low, high].map(|hertz| crate::testing::sine(hertz, 8000, peak, count));
                linear.extend(tones[0].iter().zip(&tones[1]).map(|(a, b)| a + b));
                linear.extend(vec![0; off * 8]);
            }
            assert_eq!(heard(&linear), "1234567890*#ABC", "{on} ms on and {off} ms off");
        }
        let mut noise = Noise(7);
        let hiss: Vec<i16> = (0..80_000).map(|_| (noise.unit() * 8000.0) as i16).collect();
        assert_eq!(heard(&hiss), "");
    }

    fn digits(linear: &[i16]) -> String {
        edges(linear, 160)
            .iter()
            .filter_map(|edge| match edge {
                DtmfEdge::Begin(digit) => Some(digit.to_char()),
                DtmfEdge::End(..) => None,
            })
            .collect()
    }

    struct Sender {
        row_dbm0: f64,
        column_dbm0: f64,
        deviation: f64,
        noise_dbm0: f64,
        on_ms: usize,
        off_ms: usize,
        offset: usize,
    }

    const NOMINAL: Sender = Sender {
        row_dbm0: -9.0,
        column_dbm0: -7.0,
        deviation: 0.0,
        noise_dbm0: -70.0,
        on_ms: 40,
        off_ms: 40,
        offset: 0,
    };

    impl Sender {
        fn send(&self, text: &str, seed: u64) -> Vec<i16> {
            let mut noise = Noise(seed);
            // Uniform noise has a third of the square of its peak as power.
            let noise_peak = peak_of_dbm0(self.noise_dbm0) / 2f64.sqrt() * 3f64.sqrt();
            let mut linear = Vec::new();
            let mut silence = |linear: &mut Vec<i16>, count: usize| {
                linear.extend((0..count).map(|_| (noise.unit() * noise_peak) as i16));
            };
            silence(&mut linear, self.offset);
            for symbol in text.chars() {
                let (row, column) = Digit::from_char(symbol).unwrap().tones().unwrap();
                let start = linear.len();
                silence(&mut linear, self.on_ms * 8);
                for (n, sample) in linear[start..].iter_mut().enumerate() {
                    let angle = core::f64::consts::TAU * n as f64 / 8000.0 * (1.0 + self.deviation);
                    let tone = peak_of_dbm0(self.row_dbm0) * (angle * f64::from(row)).sin()
                        + peak_of_dbm0(self.column_dbm0) * (angle * f64::from(column)).cos();
                    *sample = sample.saturating_add(tone as i16);
                }
                silence(&mut linear, self.off_ms * 8);
            }
            linear
        }
    }

    const ALL: &str = "123A456B789C*0#D";

    #[test]
    fn q24_all_digits_at_every_level_deviation_and_phase_of_the_block() {
        for level in [-3.0, -10.0, -20.0, -25.0] {
            for deviation in [-0.015, -0.008, 0.0, 0.008, 0.015] {
                for offset in [0, 17, 34, 51, 68, 85, 101] {
                    let sender = Sender { row_dbm0: level, column_dbm0: level, deviation, offset, ..NOMINAL };
                    assert_eq!(
                        digits(&sender.send(ALL, 1)),
                        ALL,
                        "{level} dBm0, {deviation}, offset {offset}"
                    );
                }
            }
        }
    }

    #[test]
    fn q24_twist_and_noise_are_tolerated() {
        for (name, sender) in [
            ("column 8 dB up", Sender { row_dbm0: -18.0, column_dbm0: -10.0, ..NOMINAL }),
            ("row 4 dB up", Sender { row_dbm0: -10.0, column_dbm0: -14.0, ..NOMINAL }),
            (
                "noise 15 dB below",
                Sender { row_dbm0: -10.0, column_dbm0: -10.0, noise_dbm0: -22.0, ..NOMINAL },
            ),
            ("weak in noise", Sender { row_dbm0: -25.0, column_dbm0: -25.0, noise_dbm0: -40.0, ..NOMINAL }),
            ("long", Sender { on_ms: 500, off_ms: 200, ..NOMINAL }),
        ] {
            for seed in 0..40 {
                assert_eq!(digits(&sender.send(ALL, seed)), ALL, "{name}, seed {seed}");
            }
        }
    }

    #[test]
    fn q24_what_is_too_short_too_far_off_or_unbalanced_is_no_digit() {
        for (name, sender) in [
            ("13 ms", Sender { on_ms: 13, ..NOMINAL }),
            ("3.5 % off", Sender { deviation: 0.035, ..NOMINAL }),
            ("column alone", Sender { row_dbm0: -60.0, ..NOMINAL }),
            ("row alone", Sender { column_dbm0: -60.0, ..NOMINAL }),
            ("far too weak", Sender { row_dbm0: -45.0, column_dbm0: -45.0, ..NOMINAL }),
            ("in as much noise", Sender { noise_dbm0: -3.0, ..NOMINAL }),
        ] {
            assert_eq!(digits(&sender.send("15#D", 3)), "", "{name}");
        }
    }

    #[test]
    fn a_digit_is_reported_once_with_its_length_however_samples_arrive() {
        let linear = Sender { on_ms: 100, off_ms: 60, ..NOMINAL }.send("55", 1);
        let five = Digit::from_char('5').unwrap();
        let whole = edges(&linear, linear.len());
        assert_eq!(whole.len(), 4, "{whole:?}");
        for pair in whole.chunks(2) {
            assert_eq!(pair[0], DtmfEdge::Begin(five));
            assert!(matches!(pair[1], DtmfEdge::End(digit, 80..=115) if digit == five), "{pair:?}");
        }
        for step in [1, 7, 80, 160, 333] {
            assert_eq!(edges(&linear, step), whole, "pieces of {step}");
        }
    }

    #[test]
    fn a_drop_out_of_ten_ms_does_not_split_a_digit() {
        let mut linear = dtmf(Digit::from_char('7').unwrap(), 200, SampleRate(8000));
        linear[700..780].fill(0);
        assert_eq!(digits(&linear), "7");
    }

    #[test]
    fn a_digit_that_follows_without_a_gap_is_a_new_one() {
        let linear: Vec<i16> =
            "19".chars().flat_map(|c| dtmf(Digit::from_char(c).unwrap(), 80, SampleRate(8000))).collect();
        assert_eq!(digits(&linear), "19");
    }

    #[test]
    fn our_own_digits_survive_every_codec() {
        // Coders of speech at the lowest rates keep no two tones apart: there digits go as RFC 4733 events.
        let speech = [base::FormatId::ILBC30, base::FormatId::LPC10, base::FormatId::CODEC2];
        for format in
            base::FormatId::coded().filter(|format| format.clip() == *format && !speech.contains(format))
        {
            let rate = format.rate();
            let mut linear = Vec::new();
            for symbol in ALL.chars() {
                linear.extend(dtmf(Digit::from_char(symbol).unwrap(), 100, rate));
                linear.resize(linear.len() + rate.0 as usize / 10, 0);
            }
            let clip = crate::clip_of_samples(&linear, format);
            let clip =
                crate::SoundFile { format, data: clip.data.to_vec().into() }.to_clip(base::FormatId::SLIN);
            assert_eq!(digits(&samples(&clip.data)), ALL, "{format}");
        }
    }

    #[test]
    fn call_progress_tones_are_no_digits() {
        for text in [
            "350+440",
            "440+480/2000,0/4000",
            "480+620/500,0/500",
            "!950/330,!1400/330,!1800/330,0",
            "425",
            "1004",
            "697",
            "1209",
            "697+770",
            "1209+1336",
            "400*25",
            "2100",
            "1100/500,0/3000",
            "941+1400",
        ] {
            let tone = crate::tone::render(&text.parse().unwrap(), SampleRate(8000));
            assert_eq!(digits(&tone.samples), "", "{text}");
        }
    }

    #[test]
    fn talk_off_speech_is_no_digit() {
        for name in ["libilbc_sample", "es_en-gb"] {
            let Some(pcm) = golden(&format!("{name}.pcm")) else { return };
            let speech = samples(&pcm);
            for gain in [1.0, 0.5, 0.25] {
                let scaled: Vec<i16> = speech.iter().map(|&s| (f64::from(s) * gain) as i16).collect();
                for offset in 0..20 {
                    assert_eq!(digits(&scaled[offset * 5..]), "", "{name} × {gain} from {}", offset * 5);
                }
            }
        }
    }

    #[test]
    fn talk_off_bundled_prompts_and_music_are_no_digits() {
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../assets");
        let mut folders = vec![root];
        let mut files = 0;
        while let Some(folder) = folders.pop() {
            let Ok(entries) = std::fs::read_dir(&folder) else {
                println!("skipped: {} is not there", folder.display());
                return;
            };
            for path in entries.map(|entry| entry.unwrap().path()) {
                if path.is_dir() {
                    folders.push(path);
                } else if path.extension().is_some_and(|e| e == "g722") {
                    let bytes = std::fs::read(&path).unwrap();
                    let clip = crate::SoundFile::parse("g722", &bytes).unwrap().to_clip(base::FormatId::SLIN);
                    let linear = samples(&clip.data);
                    for offset in [0, 25, 51, 76] {
                        let rest = linear.get(offset..).unwrap_or_default();
                        assert_eq!(digits(rest), "", "{} from {offset}", path.display());
                    }
                    files += 1;
                }
            }
        }
        assert!(files > 0, "the folder of assets holds no sound");
    }
}
