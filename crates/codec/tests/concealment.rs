//! What is heard where packets were lost: like the speech around it, no louder, joined without clicks, and gone soon.

use base::{FormatId, SampleRate};
use codec::{Decoder, Encoder, Resampler};

/// Every so many packets one is lost.
const LOST: usize = 9;

/// Speech at the rate of a format.
fn speech(format: FormatId) -> Vec<i16> {
    let speech = &oracle::speech()[..80_000];
    let Some(mut resampler) = Resampler::new(SampleRate(8000), format.rate()) else { return speech.to_vec() };
    let mut out = vec![0; resampler.output_max(speech.len()) + 1000];
    let mut filled = 0;
    for part in speech.chunks(160) {
        filled += resampler.process(part, &mut out[filled..]);
    }
    out.truncate(filled);
    out
}

/// Packets of the usual length, and the samples of one.
fn packets(format: FormatId) -> (Vec<Vec<u8>>, usize) {
    let ms = usize::from(format.usual_ms());
    let size = format.rate().0 as usize * ms / 1000;
    let mut encoder = Encoder::new(format);
    let speech = speech(format);
    let coded = speech.chunks_exact(size).map(|linear| {
        let mut packet = vec![0; format.packet_room(ms as u16)];
        let bytes = encoder.encode(linear, &mut packet);
        packet.truncate(bytes);
        packet
    });
    (coded.collect(), size)
}

/// What a listener hears when these packets are lost.
fn heard(format: FormatId, packets: &[Vec<u8>], size: usize, is_lost: impl Fn(usize) -> bool) -> Vec<i16> {
    let mut decoder = Decoder::new(format);
    let mut heard = vec![0; packets.len() * size];
    for (number, (packet, linear)) in packets.iter().zip(heard.chunks_exact_mut(size)).enumerate() {
        if is_lost(number) {
            decoder.conceal(linear);
        } else {
            assert_eq!(decoder.decode(packet, linear), size, "{format} packet {number}");
        }
    }
    heard
}

fn energy(samples: &[i16]) -> f64 {
    samples.iter().map(|&sample| f64::from(sample).powi(2)).sum()
}

fn rms(samples: &[i16]) -> f64 {
    (energy(samples) / samples.len().max(1) as f64).sqrt()
}

/// The steepest step from sample to sample.
fn steepest(samples: &[i16]) -> u16 {
    samples.windows(2).map(|pair| pair[0].abs_diff(pair[1])).max().unwrap_or(0)
}

fn is_there(format: FormatId) -> bool {
    let missing = codec::missing_libraries().any(|(missing, _)| missing == format);
    if missing {
        println!("skipped: {format}, whose library is not installed");
    }
    !missing
}

#[test]
fn a_lost_packet_of_speech_sounds_like_the_speech_around_it() {
    for format in FormatId::coded().filter(|format| is_there(*format)) {
        let (packets, size) = packets(format);
        let is_lost = |number: usize| number % LOST == LOST - 1;
        let whole = heard(format, &packets, size, |_| false);
        let holed = heard(format, &packets, size, is_lost);
        let (mut lost, mut made, mut error) = (0.0, 0.0, 0.0);
        let mut click = 0.0_f64;
        let mut peak = 0.0_f64;
        for number in (0..packets.len() - 2).filter(|number| is_lost(*number)) {
            let hole = number * size..(number + 1) * size;
            lost += energy(&whole[hole.clone()]);
            made += energy(&holed[hole.clone()]);
            let pairs = whole[hole.clone()].iter().zip(&holed[hole.clone()]);
            error += pairs.map(|(x, y)| (f64::from(*x) - f64::from(*y)).powi(2)).sum::<f64>();
            // Around the hole: from two packets before to two after.
            let around = hole.start - 2 * size..hole.end + 2 * size;
            let near = &whole[around.clone()];
            let loud = near.iter().map(|sample| sample.unsigned_abs()).max().unwrap_or(0);
            let made_loud =
                holed[around.clone()].iter().map(|sample| sample.unsigned_abs()).max().unwrap_or(0);
            peak = peak.max(f64::from(made_loud) / f64::from(loud.max(500)));
            click = click.max(f64::from(steepest(&holed[around])) / f64::from(steepest(near).max(500)));
        }
        let (energy, error) = (made / lost, error / lost);
        let figures =
            format!("{format}: energy {energy:.2}, error {error:.2}, peak {peak:.2}, step {click:.2}");
        println!("{figures}");
        assert!((0.3..1.3).contains(&energy), "{figures}");
        // Silence would have an error of 1; a vocoder's speech has other phases each time.
        assert!(error < 0.8 || format == FormatId::CODEC2, "{figures}");
        assert!(peak < 3.0 && click < 5.0, "{figures}");
    }
}

#[test]
fn a_long_loss_fades_and_never_swells() {
    for format in FormatId::coded().filter(|format| is_there(*format)) {
        let (packets, size) = packets(format);
        let rate = format.rate().0 as usize;
        let (mut swell, mut end, mut step) = (0.0_f64, 0.0_f64, 0.0_f64);
        // Losses of 600 ms that begin at many places of the speech.
        for start in (40..packets.len() - 80).step_by(13) {
            let count = (600 / usize::from(format.usual_ms())).max(1);
            let holed = heard(format, &packets[..start + count], size, |number| number >= start);
            let before = &holed[start * size - rate / 10..start * size];
            let hole = &holed[start * size..];
            let level = before.chunks_exact(rate / 50).map(rms).fold(100.0, f64::max);
            for part in hole.chunks_exact(rate / 50) {
                swell = swell.max(rms(part) / level);
            }
            end = end.max(rms(&hole[hole.len() - rate / 20..]) / level);
            let seam = &holed[start * size - 2..];
            step = step.max(f64::from(steepest(seam)) / f64::from(steepest(before).max(300)));
        }
        let figures = format!("{format}: swell {swell:.2}, end {end:.3}, step {step:.2}");
        println!("{figures}");
        // Of its wide bands libspeex makes more of a high voice than there was.
        let most = if matches!(format, FormatId::SPEEX16 | FormatId::SPEEX32) { 3.0 } else { 2.0 };
        assert!(swell < most && end < 0.25 && step < 2.5, "{figures}");
    }
}
