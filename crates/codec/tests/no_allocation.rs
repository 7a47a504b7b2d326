//! What a media worker calls per frame must not allocate: counted by an allocator that counts.

use base::{Digit, FormatId, SampleRate};
use codec::{Decoder, DtmfDetector, Encoder, Resampler, ToneGenerator, Transcoder, gsm, mix};
use kit::{Counting, allocations, on_small_stack};
use lanes::Level;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

#[test]
fn no_step_of_a_frame_allocates() {
    let pcm = [1000i16; 1920];
    let coded = [0xd5u8; 1920];
    let (mut bytes, mut linear) = ([0u8; 8000], [0i16; 4000]);
    for from in FormatId::coded().filter(|format| format.is_constant()) {
        let (mut encoder, mut decoder) = (Encoder::new(from), Decoder::new(from));
        let count = allocations(|| {
            encoder.encode(&pcm[..from.rate().0 as usize / 50], &mut bytes);
            decoder.decode(&coded[..from.bytes_in(20)], &mut linear);
            decoder.conceal(&mut linear[..160]);
            encoder.reset();
            decoder.reset();
        });
        assert_eq!(count, 0, "{from}");
        for to in FormatId::coded().filter(|format| format.is_constant()) {
            let mut transcoder = Transcoder::new(from, to);
            let count = allocations(|| {
                transcoder.transcode(&coded[..from.bytes_in(20)], &mut bytes);
                transcoder.conceal(160, &mut bytes);
                transcoder.reset();
            });
            assert_eq!(count, 0, "{from} -> {to}");
        }
    }
    for from in codec::RATES {
        for to in codec::RATES {
            let Some(mut resampler) = Resampler::new(SampleRate(from), SampleRate(to)) else { continue };
            let count = allocations(|| {
                resampler.process(&pcm[..from as usize / 50], &mut linear);
            });
            assert_eq!(count, 0, "{from} -> {to}");
        }
    }
    let mut detector = DtmfDetector::new();
    let mut generator =
        Digit::from_char('5').and_then(|digit| ToneGenerator::dtmf(digit, SampleRate(8000))).unwrap();
    let mut sum = [0i32; 160];
    let count = allocations(|| {
        generator.fill(&mut linear[..160]);
        detector.process(&linear[..160], |_| {});
        mix::accumulate(&mut sum, &linear[..160]);
        mix::limit_minus_self(&sum, &pcm[..160], &mut linear[..160]);
        mix::mean_abs(&linear[..160]);
    });
    assert_eq!(count, 0, "tones and mixing");
}

#[test]
fn no_group_of_lanes_allocates_or_needs_a_deep_stack() {
    const STREAMS: usize = 40;
    on_small_stack(|| {
        let pcm = [1000i16; gsm::FRAME_SAMPLES];
        for level in Level::all_available() {
            let mut states = vec![(gsm::Encoder::new(), gsm::Decoder::new()); STREAMS];
            let mut frames = [[0; gsm::FRAME_BYTES]; STREAMS];
            let mut linear = [[0; gsm::FRAME_SAMPLES]; STREAMS];
            let mut encoding: Vec<_> = states
                .iter_mut()
                .zip(&mut frames)
                .map(|((state, _), out)| gsm::EncodeJob::new(state, &pcm, out))
                .collect();
            assert_eq!(allocations(|| gsm::encode(level, &mut encoding)), 0, "{level}");
            let mut decoding: Vec<_> = states
                .iter_mut()
                .zip(&frames)
                .zip(&mut linear)
                .map(|(((_, state), payload), pcm)| gsm::DecodeJob::new(state, payload, pcm))
                .collect();
            assert_eq!(allocations(|| gsm::decode(level, &mut decoding)), 0, "{level}");
        }
    });
}
