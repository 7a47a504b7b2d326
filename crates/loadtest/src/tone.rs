//! Tones by which a call is known: each call speaks one of sixteen, and who hears it can tell which.

use std::f64::consts::TAU;
use std::sync::Arc;

use base::{FormatId, SampleRate};
use codec::Encoder;

/// Different tones. Two calls that were mixed up are told apart in fifteen of sixteen cases.
pub const TONES: usize = 16;
/// The lowest tone and the step to the next, in hertz: within what every narrowband codec carries, and apart by nine times
/// what [`MEASURED_MS`] resolves.
const LOWEST: f64 = 400.0;
const STEP: f64 = 75.0;
/// Length of sound that is measured: a whole beat, wherever it begins.
pub const MEASURED_MS: usize = 120;
/// Amplitude of what is spoken: -13 dB of full scale.
const PEAK: f64 = 7_000.0;
/// Below this mean square there is silence: some -50 dB of full scale.
const SILENCE: f64 = 5_000.0;
/// The part of a sound's energy that a tone must have to be the tone. GSM, the worst of the codecs, leaves a tenth of some
/// tones; noise has a hundredth at any one pitch.
const SHARE: f64 = 0.06;
/// How many times more it must have than any other of the sixteen.
const AHEAD: f64 = 3.0;
/// Milliseconds of spoken sound at least, after which it begins again; and what they are a multiple of, so that every tone
/// goes on where it was.
const LOOP_MS: usize = 1000;
const PERIOD_MS: usize = BEAT_MS;
/// Tones come in beats, and sound for so much of each. A decoder of GSM that begins in the middle of a steady tone would hear
/// nothing for long, because each frame says only how it differs from the one before.
const BEAT_MS: usize = 120;
const SOUNDS_MS: usize = 80;

/// Hertz of a tone by number.
pub fn hertz(tone: usize) -> f64 {
    LOWEST + STEP * (tone % TONES) as f64
}

/// What is heard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Heard {
    /// Nothing to speak of.
    Silence,
    /// The tone of this number.
    Tone(usize),
    /// Something else.
    Other,
}

/// Says what some decoded sound is.
pub fn recognise(samples: &[i16], rate: SampleRate) -> Heard {
    if is_silent(samples) {
        return Heard::Silence;
    }
    let tone = (0..TONES).find(|tone| stands_out(samples, rate, hertz(*tone)));
    tone.map_or(Heard::Other, Heard::Tone)
}

/// Whether the sound is a tone of this pitch.
pub fn is_tone(samples: &[i16], rate: SampleRate, hertz: f64) -> bool {
    !is_silent(samples) && stands_out(samples, rate, hertz)
}

/// Whether a pitch has a good part of the energy, and far more than each of the sixteen that are not next to it.
fn stands_out(samples: &[i16], rate: SampleRate, pitch: f64) -> bool {
    let own = share(samples, rate, pitch);
    let others = (0..TONES).map(hertz).filter(|other| (other - pitch).abs() > 0.8 * STEP);
    own > SHARE && others.map(|other| share(samples, rate, other)).all(|share| own > AHEAD * share)
}

/// Whether there is nothing to hear.
pub fn is_silent(samples: &[i16]) -> bool {
    energy(samples) < SILENCE * samples.len() as f64
}

fn energy(samples: &[i16]) -> f64 {
    samples.iter().map(|sample| f64::from(*sample) * f64::from(*sample)).sum()
}

/// The part of the energy that lies at one frequency (Goertzel's recurrence).
fn share(samples: &[i16], rate: SampleRate, hertz: f64) -> f64 {
    let turn = 2.0 * (TAU * hertz / f64::from(rate.0)).cos();
    let (mut one, mut two) = (0.0, 0.0);
    for sample in samples {
        (one, two) = (f64::from(*sample) + turn * one - two, one);
    }
    let power = one * one + two * two - turn * one * two;
    2.0 * power / (samples.len() as f64 * energy(samples)).max(1.0)
}

/// The payloads of a sound that is spoken again and again.
pub type Sound = Arc<[Box<[u8]>]>;

/// Packets of a tone, or of silence, in a format; empty when nobody codes it here.
pub fn spoken(format: FormatId, packet_ms: usize, hertz: Option<f64>) -> Sound {
    let rate = format.rate().0 as usize;
    let samples = rate * packet_ms / 1000;
    let mut encoder = Encoder::new(format);
    let mut coded = vec![0; samples * 2 + 64];
    let mut packets = Vec::new();
    let count = (LOOP_MS.div_ceil(packet_ms)..)
        .find(|count| (count * packet_ms).is_multiple_of(PERIOD_MS))
        .unwrap_or(LOOP_MS / packet_ms);
    // The first round brings the encoder to where the end of each later one leaves it.
    for number in 0..2 * count {
        let linear: Vec<i16> = (0..samples)
            .map(|at| {
                let time = number * samples + at;
                let hertz = hertz.filter(|_| time * 1000 / rate % BEAT_MS < SOUNDS_MS);
                hertz.map_or(0, |hertz| (PEAK * (TAU * hertz * time as f64 / rate as f64).sin()) as i16)
            })
            .collect();
        let bytes = encoder.encode(&linear, &mut coded);
        if bytes == 0 {
            return Vec::new().into();
        }
        let packet = coded.get_mut(..bytes).unwrap_or_default();
        if format.is_linear() {
            // Network order on the wire.
            codec::swap_bytes(packet);
        }
        if number >= count {
            packets.push((*packet).into());
        }
    }
    packets.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use codec::Decoder;

    /// Formats whose coder needs no library that a machine may lack.
    const FORMATS: [FormatId; 9] = [
        FormatId::ULAW,
        FormatId::ALAW,
        FormatId::GSM,
        FormatId::ILBC,
        FormatId::ILBC30,
        FormatId::SPEEX,
        FormatId::G722,
        FormatId::G726,
        FormatId::SLIN16,
    ];

    #[test]
    fn every_tone_is_recognised_in_every_format_by_a_decoder_that_begins_in_the_middle() {
        for format in FORMATS {
            for tone in 0..TONES {
                let packet_ms = if format == FormatId::ILBC30 { 30 } else { 20 };
                let sound = spoken(format, packet_ms, Some(hertz(tone)));
                for begin in (0..sound.len()).step_by(7) {
                    let mut decoder = Decoder::new(format);
                    let (mut linear, mut frame) = (Vec::new(), vec![0; 4096]);
                    for payload in sound.iter().cycle().skip(begin).take(240 / packet_ms) {
                        let mut payload = payload.clone();
                        if format.is_linear() {
                            codec::swap_bytes(&mut payload);
                        }
                        let count = decoder.decode(&payload, &mut frame);
                        linear.extend_from_slice(&frame[..count]);
                    }
                    let rate = format.rate();
                    let measured = &linear[linear.len() - rate.0 as usize * MEASURED_MS / 1000..];
                    let name = format!("{format:?} tone {tone} from {begin}");
                    assert_eq!(recognise(measured, rate), Heard::Tone(tone), "{name}");
                    let own = is_tone(measured, rate, hertz(tone));
                    assert!(own && !is_tone(measured, rate, hertz(tone + 1)), "{name}");
                }
            }
        }
    }

    #[test]
    fn silence_is_no_tone_and_noise_is_none_either() {
        let rate = SampleRate(8000);
        assert_eq!(recognise(&[3; 480], rate), Heard::Silence);
        let mut state = 1_u32;
        let noise: Vec<i16> = (0..480)
            .map(|_| {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                (state >> 18) as i16
            })
            .collect();
        assert_eq!(recognise(&noise, rate), Heard::Other);
    }
}
