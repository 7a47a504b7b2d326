//! Against the library itself, minutes of speech and sounds that are hard: every frame, by the scalar form and in lanes.

use lanes::Level;
use oracle::Oracle;
use speex::{BYTES_MAX, DecodeJob, Decoder, EncodeJob, Encoder, FRAME, Quality, decode, encode};

/// Silence, single steps, full-scale noise, squares and sweeps, a second of each.
fn hard() -> Vec<i16> {
    let mut seed = 1u32;
    let mut noise = move || {
        seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (seed >> 16) as i16
    };
    let mut pcm = Vec::new();
    let kinds: [&mut dyn FnMut(usize) -> i16; 9] = [
        &mut |_| 0,
        &mut |n| i16::from(n.is_multiple_of(997)),
        &mut |_| noise(),
        &mut |n| if (n / 37).is_multiple_of(2) { i16::MAX } else { i16::MIN },
        &mut |n| (32767.0 * (n as f64 * n as f64 * 1e-5).sin()) as i16,
        &mut |_| i16::MIN,
        &mut |n| (3.0 * (n as f64 * 0.3).sin()) as i16,
        &mut |n| (30000.0 * (n as f64 * 0.8).sin() * (-(n as f64) / 900.0).exp()) as i16,
        &mut |n| if n.is_multiple_of(61) { i16::MAX } else { 0 },
    ];
    for kind in kinds {
        pcm.extend((0..8000).map(kind));
    }
    pcm
}

fn material() -> Vec<i16> {
    let mut pcm = oracle::speech();
    pcm.extend(hard());
    pcm.truncate(pcm.len() / FRAME * FRAME);
    pcm
}

#[test]
fn scalar_encoders_equal_libspeex() {
    let Some(libspeex) = Oracle::build(&oracle::SPEEX) else { return };
    let pcm = material();
    for (quality, mode) in [(Quality::Q3, "encode-q3"), (Quality::Q8, "encode-q8")] {
        let expected = libspeex.run(mode, &oracle::bytes(&pcm));
        let mut encoder = Encoder::new(quality);
        let mut expected = expected.chunks_exact(quality.bytes());
        for (number, frame) in pcm.as_chunks::<FRAME>().0.iter().enumerate() {
            let mut out = [0; BYTES_MAX];
            let count = encoder.encode(frame, &mut out);
            assert_eq!(Some(&out[..count]), expected.next(), "{mode}, frame {number}");
        }
    }
}

#[test]
fn encoders_in_lanes_equal_libspeex_stream_by_stream() {
    let Some(libspeex) = Oracle::build(&oracle::SPEEX) else { return };
    let pcm = material();
    let level = Level::best();
    for (quality, mode) in [(Quality::Q3, "encode-q3"), (Quality::Q8, "encode-q8")] {
        // Each lane has its own piece of the material.
        let frames = pcm.as_chunks::<FRAME>().0;
        let streams: Vec<_> = frames.chunks_exact(frames.len() / level.lanes()).collect();
        let mut encoders = vec![Encoder::new(quality); streams.len()];
        let mut coded = vec![Vec::new(); streams.len()];
        for number in 0..streams[0].len() {
            let mut out = vec![[0; BYTES_MAX]; streams.len()];
            let jobs = encoders.iter_mut().zip(&streams).zip(&mut out);
            let mut jobs: Vec<_> =
                jobs.map(|((state, pcm), out)| EncodeJob::new(state, &pcm[number], out)).collect();
            encode(level, &mut jobs);
            for (coded, out) in coded.iter_mut().zip(&out) {
                coded.extend_from_slice(&out[..quality.bytes()]);
            }
        }
        for (lane, (stream, coded)) in streams.iter().zip(&coded).enumerate() {
            let expected = libspeex.run(mode, &oracle::bytes(stream.as_flattened()));
            let differing = coded.chunks(quality.bytes()).zip(expected.chunks(quality.bytes()));
            let first = differing.clone().position(|(a, b)| a != b);
            assert_eq!((coded.len(), first), (expected.len(), None), "{mode}, lane {lane}");
        }
    }
}

#[test]
fn scalar_decoders_equal_libspeex_in_every_submode_with_enhancer_and_losses() {
    let Some(libspeex) = Oracle::build(&oracle::SPEEX) else { return };
    let input = oracle::bytes(&material()[..20 * 8000]);
    let hard = oracle::bytes(&hard());
    for (quality, bytes) in [(0, 6), (1, 10), (2, 15), (3, 20), (5, 28), (8, 38), (9, 46), (10, 62)] {
        for (name, input) in [("speech", &input), ("hard sounds", &hard)] {
            let coded = libspeex.run(&format!("encode-q{quality}"), input);
            for (enhance, lossy) in [(false, false), (true, false), (false, true), (true, true)] {
                let enhanced = if enhance { "-enhanced" } else { "" };
                let losses = if lossy { "-lossy" } else { "" };
                let mode = format!("decode-q{quality}{enhanced}{losses}");
                let expected = oracle::samples(&libspeex.run(&mode, &coded));
                let mut decoder = Decoder::new();
                decoder.set_enhancer(enhance);
                let frames = coded.chunks_exact(bytes).zip(expected.as_chunks::<FRAME>().0);
                for (number, (payload, expected)) in frames.enumerate() {
                    let mut pcm = [0; FRAME];
                    let scattered = (number as u32).wrapping_mul(2_654_435_761) >> 24;
                    if lossy && scattered.is_multiple_of(5) {
                        decoder.conceal(&mut pcm);
                    } else {
                        assert_eq!(decoder.decode(payload, &mut pcm), Ok(()), "{mode}, frame {number}");
                    }
                    assert_eq!(&pcm, expected, "{mode} of {name}, frame {number}");
                }
            }
        }
    }
}

#[test]
fn decoders_in_lanes_equal_libspeex_stream_by_stream() {
    let Some(libspeex) = Oracle::build(&oracle::SPEEX) else { return };
    let level = Level::best();
    let pcm = material();
    let frames = pcm.as_chunks::<FRAME>().0;
    for (quality, bytes) in [(3, 20), (8, 38)] {
        for (enhance, name) in [(false, ""), (true, "-enhanced")] {
            let streams: Vec<(Vec<u8>, Vec<i16>)> = frames
                .chunks_exact(frames.len() / level.lanes())
                .map(|pcm| {
                    let coded =
                        libspeex.run(&format!("encode-q{quality}"), &oracle::bytes(pcm.as_flattened()));
                    let decoded = libspeex.run(&format!("decode-q{quality}{name}"), &coded);
                    (coded, oracle::samples(&decoded))
                })
                .collect();
            let mut decoders = vec![Decoder::new(); streams.len()];
            for number in 0..streams[0].1.len() / FRAME {
                let mut pcm = vec![[0; FRAME]; streams.len()];
                let mut jobs = Vec::new();
                for ((state, (coded, _)), pcm) in decoders.iter_mut().zip(&streams).zip(&mut pcm) {
                    state.set_enhancer(enhance);
                    jobs.push(DecodeJob::new(state, &coded[number * bytes..][..bytes], pcm));
                }
                decode(level, &mut jobs);
                for (lane, (pcm, (_, expected))) in pcm.iter().zip(&streams).enumerate() {
                    let expected = &expected[number * FRAME..][..FRAME];
                    assert_eq!(pcm, expected, "q{quality}{name}, lane {lane}, frame {number}");
                }
            }
        }
    }
}
