//! The bound codecs do what they are for: speech survives, losses are mended, nonsense is told and harms nothing.

use bound::{Concealed, codec2, opus, speex};
use kit::Random;

/// Five seconds of speech at this rate, each sample of 8 kHz repeated and smoothed.
fn speech(rate: usize) -> Vec<i16> {
    let times = rate / 8000;
    let narrow = oracle::speech();
    let at = |n: usize| {
        let (index, part) = (n / times, (n % times) as f64 / times as f64);
        let (a, b) = (f64::from(narrow[index]), f64::from(narrow[index + 1]));
        (a + (b - a) * part) as i16
    };
    (0..rate * 5).map(at).collect()
}

fn power(samples: &[i16]) -> f64 {
    samples.iter().map(|&s| f64::from(s).powi(2)).sum::<f64>()
}

/// Distance of the loudness of 20 ms pieces, in decibel on average where there is speech. It
/// tells whether a codec carries what it is given, whatever it does to phases.
fn loudness_distance(first: &[i16], second: &[i16], piece: usize) -> f64 {
    let level = |samples: &[i16]| 10.0 * (power(samples) / samples.len() as f64 + 1.0).log10();
    let pairs = first.chunks(piece).zip(second.chunks(piece));
    let apart: Vec<f64> =
        pairs.filter(|(a, _)| level(a) > 45.0).map(|(a, b)| (level(a) - level(b)).abs()).collect();
    apart.iter().sum::<f64>() / apart.len() as f64
}

#[test]
fn opus_carries_speech_at_every_rate() {
    for rate in opus::RATES.into_iter().filter(|rate| rate % 8000 == 0) {
        let pcm = speech(rate as usize);
        let packet = rate as usize / 50;
        let mut encoder = opus::Encoder::new(rate, &opus::Options::default()).unwrap();
        let mut decoder = opus::Decoder::new(rate).unwrap();
        let mut heard = Vec::new();
        for samples in pcm.chunks_exact(packet) {
            let mut payload = [0; 1275];
            let encoded = encoder.encode(samples, &mut payload);
            assert!(encoded.bytes > 0 && !encoded.silent, "{rate}");
            assert_eq!(opus::samples(&payload[..encoded.bytes], rate), Some(packet), "{rate}");
            let mut linear = vec![0; packet * 6];
            assert_eq!(decoder.decode(&payload[..encoded.bytes], &mut linear), Ok(packet), "{rate}");
            heard.extend_from_slice(&linear[..packet]);
        }
        let apart = loudness_distance(&pcm, &heard, packet);
        assert!(apart < 2.5, "{rate}: {apart:.2} dB");
    }
}

#[test]
fn opus_options_of_the_peer_are_obeyed() {
    let pcm = speech(48_000);
    let plain = opus::Options::default();
    let sizes = |options: opus::Options| -> Vec<usize> {
        let mut encoder = opus::Encoder::new(48_000, &options).unwrap();
        let packets = pcm.chunks_exact(960);
        packets.map(|samples| encoder.encode(samples, &mut [0; 1275]).bytes).collect()
    };
    let average = |sizes: &[usize]| sizes.iter().sum::<usize>() * 8 * 50 / sizes.len();
    let free = sizes(plain);
    let slow = sizes(opus::Options { bitrate: Some(12_000), ..plain });
    assert!(average(&slow) < 14_000 && average(&slow) < average(&free), "{}", average(&slow));
    let constant = sizes(opus::Options { bitrate: Some(16_000), constant: true, ..plain });
    assert!(constant.iter().all(|&bytes| bytes == 40), "{constant:?}");
    let narrow = sizes(opus::Options { playback_rate: 8000, ..plain });
    assert!(average(&narrow) < average(&free), "{} of {}", average(&narrow), average(&free));
}

#[test]
fn opus_dtx_falls_silent_in_silence() {
    let mut encoder = opus::Encoder::new(16_000, &opus::Options { dtx: true, ..Default::default() }).unwrap();
    let silent = (0..100).filter(|_| encoder.encode(&[0; 320], &mut [0; 1275]).silent).count();
    assert!(silent > 70, "{silent} of 100 packets");
    let mut encoder = opus::Encoder::new(16_000, &opus::Options::default()).unwrap();
    assert!((0..100).all(|_| !encoder.encode(&[0; 320], &mut [0; 1275]).silent));
}

#[test]
fn a_lost_opus_packet_comes_back_from_the_next_one_better_than_it_is_made_up() {
    let pcm = speech(16_000);
    let options = opus::Options { fec: true, bitrate: Some(24_000), ..Default::default() };
    let mut encoder = opus::Encoder::new(16_000, &options).unwrap();
    let packets: Vec<Vec<u8>> = pcm
        .chunks_exact(320)
        .map(|samples| {
            let mut payload = vec![0; 1275];
            let encoded = encoder.encode(samples, &mut payload);
            payload.truncate(encoded.bytes);
            payload
        })
        .collect();
    let listen = |lost: &dyn Fn(usize) -> bool, recover: bool| -> Vec<i16> {
        let mut decoder = opus::Decoder::new(16_000).unwrap();
        let mut heard = Vec::new();
        for (index, packet) in packets.iter().enumerate() {
            let mut linear = [0; 320];
            match (lost(index), packets.get(index + 1)) {
                (false, _) => assert_eq!(decoder.decode(packet, &mut linear), Ok(320)),
                (true, Some(next)) if recover => decoder.recover(next, &mut linear),
                (true, _) => decoder.conceal(&mut linear),
            }
            heard.extend(linear);
        }
        heard
    };
    let lossy = |index: usize| index % 7 == 5;
    let whole = listen(&|_| false, false);
    let error = |heard: &[i16]| -> f64 {
        heard.iter().zip(&whole).map(|(&a, &b)| (f64::from(a) - f64::from(b)).powi(2)).sum()
    };
    let (made_up, recovered) = (error(&listen(&lossy, false)), error(&listen(&lossy, true)));
    assert!(recovered < made_up * 0.7, "{recovered:e} against {made_up:e}");
}

#[test]
fn opus_and_debians_libopus_understand_each_other() {
    let Some(library) = oracle::Oracle::build(&oracle::OPUS) else { return };
    let pcm = speech(48_000);
    let mut encoder = opus::Encoder::new(48_000, &opus::Options::default()).unwrap();
    let mut stream = Vec::new();
    for samples in pcm.chunks_exact(960) {
        let mut payload = [0; 1275];
        let bytes = encoder.encode(samples, &mut payload).bytes;
        stream.extend_from_slice(&(bytes as u16).to_le_bytes());
        stream.extend_from_slice(&payload[..bytes]);
    }
    let theirs = oracle::samples(&library.run("decode", &stream));
    let decode = |stream: &[u8]| -> Vec<i16> {
        let (mut decoder, mut heard, mut rest) = (opus::Decoder::new(48_000).unwrap(), Vec::new(), stream);
        while let [low, high, tail @ ..] = rest {
            let (payload, tail) = tail.split_at(usize::from(u16::from_le_bytes([*low, *high])));
            let mut linear = [0; 960];
            assert_eq!(decoder.decode(payload, &mut linear), Ok(960));
            heard.extend(linear);
            rest = tail;
        }
        heard
    };
    let ours = decode(&stream);
    assert_eq!(ours.len(), theirs.len());
    // The decoder is defined to within rounding.
    let error: f64 = ours.iter().zip(&theirs).map(|(&a, &b)| (f64::from(a) - f64::from(b)).powi(2)).sum();
    assert!(error < power(&theirs) * 1e-4, "{:e} of {:e}", error, power(&theirs));
    let back = decode(&library.run("encode", &oracle::bytes(&pcm)));
    let apart = loudness_distance(&pcm, &back, 960);
    assert!(apart < 2.5, "{apart:.2} dB");
}

#[test]
fn opus_nonsense_is_told_and_concealed() {
    let mut random = Random(1);
    let mut decoder = opus::Decoder::new(48_000).unwrap();
    let mut told = 0;
    for _ in 0..4000 {
        let length = random.below(200);
        let payload = random.bytes(length);
        let mut linear = [0; 5760];
        match decoder.decode(&payload, &mut linear) {
            Ok(samples) => assert!(samples <= 5760),
            Err(Concealed(samples)) => {
                told += 1;
                assert!(samples <= 5760);
            }
        }
        // Room for less than a packet has: told, and nothing written beyond.
        let room = random.below(960);
        let mut small = vec![0; room];
        let _ = decoder.decode(&payload, &mut small);
        decoder.recover(&payload, &mut small);
        decoder.conceal(&mut small);
    }
    assert!(told > 100, "{told}");
    assert!(decoder.decode(&[], &mut [0; 960]).is_err(), "an empty packet");
    assert!(decoder.decode(&vec![0xff; 100_000], &mut [0; 5760]).is_err(), "a huge packet");
}

#[test]
fn speex_carries_speech_in_every_band_at_constant_and_variable_rate() {
    if let Err(missing) = speex::available() {
        println!("skipped: {missing}");
        return;
    }
    let plain = speex::Options { quality: 8, ..Default::default() };
    for (band, rate) in
        [(speex::Band::Narrow, 8000), (speex::Band::Wide, 16_000), (speex::Band::UltraWide, 32_000)]
    {
        let pcm = speech(rate);
        for options in [
            plain,
            speex::Options { vbr: true, vbr_quality: 8.0, ..plain },
            speex::Options { vbr: true, vbr_quality: 8.0, dtx: true, abr: 24_000, ..plain },
        ] {
            let mut encoder = speex::Encoder::new(band, &options).unwrap();
            let mut decoder = speex::Decoder::new(band, true).unwrap();
            let mut heard = Vec::new();
            let mut sizes = Vec::new();
            // Two frames a packet.
            for samples in pcm.chunks_exact(2 * band.frame()) {
                let mut payload = [0; 300];
                let encoded = encoder.encode(samples, &mut payload);
                assert_eq!(speex::frames(&payload[..encoded.bytes], band), Some(2), "{band:?} {options:?}");
                let mut linear = vec![0; 2 * band.frame()];
                let made = decoder.decode(&payload[..encoded.bytes], &mut linear);
                assert_eq!(made, Ok(linear.len()), "{band:?} {options:?}");
                heard.extend(linear);
                sizes.push(encoded.bytes);
            }
            let constant = sizes.iter().all(|&bytes| bytes == sizes[0]);
            assert_eq!(constant, !options.vbr, "{band:?} {options:?}");
            let apart = loudness_distance(&pcm, &heard, band.frame());
            assert!(apart < 4.0, "{band:?} {options:?}: {apart:.2} dB");
        }
    }
}

#[test]
fn speex_nonsense_is_told_and_concealed() {
    if speex::available().is_err() {
        return;
    }
    let mut random = Random(2);
    for band in [speex::Band::Narrow, speex::Band::Wide, speex::Band::UltraWide] {
        let mut encoder = speex::Encoder::new(band, &Default::default()).unwrap();
        let mut decoder = speex::Decoder::new(band, false).unwrap();
        let pcm = speech(band.frame() * 50);
        for samples in pcm.chunks_exact(band.frame()).take(300) {
            let mut payload = vec![0; 200];
            let bytes = encoder.encode(samples, &mut payload).bytes;
            payload.truncate(bytes);
            match random.below(4) {
                0 => {
                    let length = random.below(200);
                    payload = random.bytes(length);
                }
                1 => payload.truncate(random.below(bytes)),
                2 => payload[random.below(bytes)] ^= 1 << random.below(8),
                _ => {}
            }
            let mut linear = vec![0; random.below(3 * band.frame())];
            match decoder.decode(&payload, &mut linear) {
                Ok(samples) | Err(Concealed(samples)) => assert!(samples <= linear.len().max(band.frame())),
            }
            decoder.conceal(&mut linear);
        }
        assert!(decoder.decode(&[0; 2000], &mut [0; 4000]).is_err(), "a huge packet");
        assert!(decoder.decode(&[], &mut [0; 4000]).is_err(), "an empty packet");
        assert_eq!(encoder.encode(&pcm[..band.frame()], &mut [0; 3]).bytes, 0, "no room");
    }
}

#[test]
fn codec2_keeps_the_loudness_of_speech_and_fades_when_frames_are_lost() {
    let mut encoder = match codec2::Encoder::new() {
        Ok(encoder) => encoder,
        Err(missing) => {
            println!("skipped: {missing}");
            return;
        }
    };
    let mut decoder = codec2::Decoder::new().unwrap();
    let pcm = speech(8000);
    let mut heard = Vec::new();
    let mut payload = [0; codec2::FRAME_BYTES];
    for samples in pcm.as_chunks().0 {
        let mut linear = [0; codec2::FRAME_SAMPLES];
        encoder.encode(samples, &mut payload);
        decoder.decode(&payload, &mut linear);
        heard.extend(linear);
    }
    // It hears two frames late.
    let apart = loudness_distance(&pcm, &heard[320..], 160);
    assert!(apart < 8.0, "{apart:.1} dB");
    let mut linear = [0; codec2::FRAME_SAMPLES];
    let mut random = Random(3);
    for _ in 0..2000 {
        payload.copy_from_slice(&random.bytes(codec2::FRAME_BYTES));
        decoder.decode(&payload, &mut linear);
    }
}
