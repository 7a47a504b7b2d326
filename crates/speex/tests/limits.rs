//! What a media worker counts on: no frame allocates, and a group run fits a small stack.

use kit::{Counting, allocations, on_small_stack};
use lanes::{LANES_MAX, Level};
use speex::{BYTES_MAX, DecodeJob, Decoder, EncodeJob, Encoder, FRAME, Quality, decode, encode};

/// What is kept for a transcoded direction: one decoder and one encoder of 6 kB each at most.
const STATE_BYTES_MAX: usize = 6 * 1024;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn sound(number: usize) -> [i16; FRAME] {
    std::array::from_fn(|i| (8000.0 * ((number * FRAME + i) as f32 * 0.11).sin()) as i16)
}

/// Codes and decodes a few frames of a full group; calls `step` around every run of a group.
fn run(level: Level, quality: Quality, enhance: bool, mut step: impl FnMut(&mut dyn FnMut())) {
    let mut encoders = vec![Encoder::new(quality); LANES_MAX];
    let mut decoders = vec![Decoder::new(); LANES_MAX];
    decoders.iter_mut().for_each(|decoder| decoder.set_enhancer(enhance));
    for number in 0..4 {
        let sound = sound(number);
        let mut coded = vec![[0; BYTES_MAX]; LANES_MAX];
        let jobs = encoders.iter_mut().zip(&mut coded);
        let mut jobs: Vec<_> = jobs.map(|(state, out)| EncodeJob::new(state, &sound, out)).collect();
        step(&mut || encode(level, &mut jobs));
        let mut heard = vec![[0; FRAME]; LANES_MAX];
        let jobs = decoders.iter_mut().zip(&coded).zip(&mut heard);
        let mut jobs: Vec<_> = jobs
            .map(|((state, payload), pcm)| DecodeJob::new(state, &payload[..quality.bytes()], pcm))
            .collect();
        step(&mut || decode(level, &mut jobs));
        assert!(jobs.iter().all(|job| job.outcome == Some(Ok(()))));
    }
    let mut pcm = [0; FRAME];
    step(&mut || decoders[0].conceal(&mut pcm));
}

#[test]
fn no_step_of_a_frame_allocates() {
    for level in Level::all_available() {
        for quality in [Quality::Q3, Quality::Q8] {
            run(level, quality, true, |work| assert_eq!(allocations(work), 0, "{level}, {quality:?}"));
        }
    }
}

#[test]
fn a_group_run_fits_a_stack_of_256_kb() {
    on_small_stack(|| {
        for level in Level::all_available() {
            for quality in [Quality::Q3, Quality::Q8] {
                for enhance in [false, true] {
                    run(level, quality, enhance, |work| work());
                }
            }
        }
    });
}

#[test]
fn states_are_small() {
    assert!(size_of::<Encoder>() < STATE_BYTES_MAX, "{}", size_of::<Encoder>());
    assert!(size_of::<Decoder>() < STATE_BYTES_MAX, "{}", size_of::<Decoder>());
}
