//! Tones a telephone exchange makes: call progress from `indications.conf`, DTMF, the milliwatt.
//!
//! A [`ToneScript`] is text parsed once; [`render_clip`] turns it into coded audio that everyone shares.

mod detector;
mod oscillator;
mod script;

use base::{Clip, Digit, FormatId, SampleRate};

pub use detector::ToneDetector;
pub use oscillator::ToneGenerator;
pub use script::{Tone, ToneError, TonePart, ToneScript};

use crate::coder::Encoder;
use crate::file::clip_of_samples;

/// Peak of a sine at 0 dBm0 as a 16-bit sample: 3.17 dB below the overload point of µ-law (ITU-T G.711 table 2a).
pub const PEAK_0_DBM0: f64 = 22_304.0;
/// Peak of each frequency of a call progress tone: about -9 dBm0, where exchanges have them.
pub const PROGRESS_PEAK: f64 = 8_192.0;
/// Levels of a DTMF digit's row and column, dBm0: the column 2 dB up (ITU-T Q.23, ETSI ES 201 235-2).
pub const DTMF_LEVELS_DBM0: (f64, f64) = (-9.0, -7.0);
/// One period of 1000 Hz at 0 dBm0 in µ-law (ITU-T G.711 table 5).
pub const DIGITAL_MILLIWATT_ULAW: [u8; 8] = [0x1e, 0x0b, 0x0b, 0x1e, 0x9e, 0x8b, 0x8b, 0x9e];
/// The same in A-law (ITU-T G.711 table 6).
pub const DIGITAL_MILLIWATT_ALAW: [u8; 8] = [0x34, 0x21, 0x21, 0x34, 0xb4, 0xa1, 0xa1, 0xb4];

/// The frame to which coded tones are cut, milliseconds.
const FRAME_MS: u64 = 20;
/// Most that a loop is lengthened to end on a frame, milliseconds; a longer one is cut to whole frames instead.
const LOOP_MS_MAX: u64 = 60_000;

/// Peak amplitude of a sine at this level.
pub fn peak_of_dbm0(level: f64) -> f64 {
    PEAK_0_DBM0 * 10f64.powf(level / 20.0)
}

/// Linear samples of a script, and where the part that repeats begins; `None` when it is played once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RenderedTone {
    /// Samples at the rate asked for, a whole number of 20 ms frames.
    pub samples: Vec<i16>,
    /// First sample of the loop, on a frame; the loop lasts to the end.
    pub loop_from: Option<usize>,
}

/// Renders a script: the parts that are played once, then the ones that repeat, each cadence kept to the sample.
pub fn render(script: &ToneScript, rate: SampleRate) -> RenderedTone {
    let (intro_ms, loop_ms) = script.lengths_ms();
    // Intro and loop must end on frames: the loop is turned until it begins on one, and repeated until it ends on one.
    let head_ms = intro_ms.next_multiple_of(FRAME_MS);
    let body_ms = match loop_ms {
        0 => 0,
        ms => {
            let whole = ms * (FRAME_MS / gcd(ms, FRAME_MS));
            if whole <= LOOP_MS_MAX.max(ms) { whole } else { ms / FRAME_MS * FRAME_MS }
        }
    };
    let samples_in = |ms: u64| (ms * u64::from(rate.0) / 1000) as usize;
    let total = samples_in(head_ms + body_ms);
    let mut samples = Vec::with_capacity(total);
    let mut parts = script.playing();
    while samples.len() < total {
        let Some((part, ms)) = parts.next() else {
            samples.resize(total, 0); // played once: silence up to the frame
            break;
        };
        let start = samples.len();
        samples.resize((start + samples_in(ms)).min(total), 0);
        ToneGenerator::new(part.tone, PROGRESS_PEAK, rate).fill(samples.get_mut(start..).unwrap_or_default());
    }
    RenderedTone { samples, loop_from: (body_ms > 0).then(|| samples_in(head_ms)) }
}

/// Renders a script as a clip in any format, its loop ready to be played for ever.
///
/// For codecs with memory the loop is coded twice and the second time is kept as the loop, so that the decoder's state
/// at its end is the one at its beginning.
pub fn render_clip(script: &ToneScript, format: FormatId) -> Clip {
    let format = format.clip();
    let tone = render(script, format.rate());
    let mut samples = tone.samples;
    let granule = format.granule();
    let stateless = granule.samples == 1;
    let mut loop_from = tone.loop_from;
    if let (Some(start), false) = (loop_from, stateless) {
        let end = samples.len();
        samples.extend_from_within(start..);
        loop_from = Some(end);
    }
    let mut data = vec![0; samples.len() / granule.samples * granule.bytes];
    let count = Encoder::new(format).encode(&samples, &mut data);
    data.truncate(count);
    let loop_from = loop_from.map(|sample| sample / granule.samples * granule.bytes);
    Clip { format, data: data.into(), loop_from, packets: None }
}

/// One DTMF digit as samples; empty for the flash, which has no tone.
pub fn dtmf(digit: Digit, duration_ms: u32, rate: SampleRate) -> Vec<i16> {
    let Some(mut generator) = ToneGenerator::dtmf(digit, rate) else { return Vec::new() };
    let mut samples = vec![0; (u64::from(duration_ms) * u64::from(rate.0) / 1000) as usize];
    generator.fill(&mut samples);
    samples
}

/// 1004 Hz at 0 dBm0, a second that repeats without a seam. The 1000 Hz of the standard's tables is
/// [`DIGITAL_MILLIWATT_ULAW`]; four hertz beside it, no sampling clock hides behind the tone.
pub fn milliwatt(format: FormatId) -> Clip {
    let second = format.rate().0 as usize;
    let mut samples = vec![0; second];
    ToneGenerator::new(Tone::Sum(1004.0, 0.0), PEAK_0_DBM0, format.rate()).fill(&mut samples);
    let mut clip = clip_of_samples(&samples, format);
    clip.loop_from = Some(0);
    clip
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::coder::Decoder;
    use crate::g711;
    use crate::testing::{power_at, rms};

    const RATE: SampleRate = SampleRate(8000);

    fn script(text: &str) -> ToneScript {
        text.parse().unwrap()
    }

    #[test]
    fn cadences_are_rendered_to_the_sample_with_intro_and_loop() {
        for (name, text, total_ms, loop_ms) in [
            ("ring", "440+480/2000,0/4000", 6000, Some(0)),
            ("dial tone without an end", "350+440", 1000, Some(0)),
            ("special information tone, then silence", "!950/330,!1400/330,!1800/330,0", 2000, Some(1000)),
            ("played once", "!425/100,!0/100", 200, None),
            ("stutter, then for ever", "!350+440/100,!0/100,350+440", 1200, Some(200)),
            ("a loop off the frame is repeated", "425/330,0/330", 660, Some(0)),
            ("a loop of odd length", "425/15,0/10", 100, Some(0)),
        ] {
            let tone = render(&script(text), RATE);
            assert_eq!(tone.samples.len(), total_ms * 8, "{name}");
            assert_eq!(tone.loop_from, loop_ms.map(|ms: usize| ms * 8), "{name}");
        }
        let tone = render(&script("!950/330,!1400/330,!1800/330,0"), RATE).samples;
        for (ms, hertz) in [(0, 950.0), (330, 1400.0), (660, 1800.0)] {
            let part = &tone[ms * 8 + 80..(ms + 330) * 8 - 80];
            assert!(power_at(part, hertz, 8000.0) > 0.95, "{hertz} Hz at {ms} ms");
        }
        assert!(tone[990 * 8..].iter().all(|&s| s == 0), "silence after the third tone");
    }

    #[test]
    fn an_endless_tone_loops_without_a_seam() {
        let tone = render(&script("350+440"), RATE).samples;
        let twice = [tone.as_slice(), &tone].concat();
        let mut whole = vec![0; twice.len()];
        ToneGenerator::new(Tone::Sum(350.0, 440.0), PROGRESS_PEAK, RATE).fill(&mut whole);
        let worst = twice.iter().zip(&whole).map(|(a, b)| a.abs_diff(*b)).max().unwrap();
        assert!(worst <= 2, "{worst}");
    }

    #[test]
    fn clips_of_every_format_begin_their_loop_on_a_frame() {
        for format in FormatId::coded().filter(|format| format.is_constant()) {
            let clip = render_clip(&script("!950/330,425/500,0/500"), format);
            let start = clip.loop_from.unwrap();
            let frame =
                if 20 % format.packet_step_ms() == 0 { format.bytes_in(20) } else { format.granule().bytes };
            assert_eq!(start % frame, 0, "{format}");
            assert_eq!(clip.data.len() % frame, 0, "{format}");
            let mut linear = vec![0; format.rate().0 as usize * 3];
            let count = Decoder::new(format).decode(&clip.data, &mut linear);
            let third = format.rate().0 as usize / 3;
            let level = rms(&linear[third / 4..third / 2]);
            let kept = (level / (PROGRESS_PEAK / 2f64.sqrt()) - 1.0).abs() < 0.2;
            assert!(kept || [FormatId::LPC10, FormatId::CODEC2].contains(&format), "{format}: {level}");
            assert!(count > third, "{format}");
        }
    }

    #[test]
    fn g711_tables_5_and_6_digital_milliwatt_is_1000_hz_at_0_dbm0_in_both_laws() {
        for (name, table, decode) in [
            ("mu-law", DIGITAL_MILLIWATT_ULAW, g711::ulaw_decode_one as fn(u8) -> i16),
            ("A-law", DIGITAL_MILLIWATT_ALAW, g711::alaw_decode_one),
        ] {
            let samples: Vec<i16> = table.iter().cycle().take(800).map(|&c| decode(c)).collect();
            let level = 20.0 * (rms(&samples) * 2f64.sqrt() / PEAK_0_DBM0).log10();
            assert!(level.abs() < 0.25, "{name}: {level:.2} dBm0");
            assert!(power_at(&samples, 1000.0, 8000.0) > 0.99, "{name}");
        }
        let speech = [FormatId::LPC10, FormatId::CODEC2];
        for format in FormatId::coded().filter(|f| f.clip() == *f && !speech.contains(f)) {
            let clip = milliwatt(format);
            let mut linear = vec![0; format.rate().0 as usize];
            Decoder::new(format).decode(&clip.data, &mut linear);
            let tail = &linear[linear.len() / 2..];
            let level = 20.0 * (rms(tail) * 2f64.sqrt() / PEAK_0_DBM0).log10();
            assert!(level.abs() < 1.0, "{format}: {level:.2} dBm0");
            assert!(power_at(tail, 1004.0, f64::from(format.rate().0)) > 0.97, "{format}");
        }
    }

    #[test]
    fn q23_every_digit_has_its_two_frequencies_and_two_db_of_twist() {
        for code in 0..16 {
            let digit = Digit::from_event(code).unwrap();
            let (low, high) = digit.tones().unwrap();
            let samples = dtmf(digit, 200, RATE);
            assert_eq!(samples.len(), 1600);
            let (row, column) =
                (power_at(&samples, low.into(), 8000.0), power_at(&samples, high.into(), 8000.0));
            assert!(row + column > 0.98, "{digit:?}");
            assert!((10.0 * (column / row).log10() - 2.0).abs() < 0.2, "{digit:?}");
        }
        assert!(dtmf(Digit::FLASH, 200, RATE).is_empty());
    }
}
