//! The decoder in lanes: every stream gets what the plain decoder gives, whoever its neighbours are.

mod common;

use common::{Random, TestMode, seed};
use ilbc::{DecodeJob, Decoder, Mode20, Mode30, Unusable, decode, decode_fast};
use kit::on_small_stack;
use lanes::Level;

/// A stream and its plain twin.
struct Pair<M: TestMode> {
    state: Decoder<M>,
    twin: Decoder<M>,
    /// The next frame of the prompt.
    at: usize,
}

impl<M: TestMode> Pair<M> {
    fn new(enhance: bool, at: usize) -> Self {
        Self { state: Decoder::new(enhance), twin: Decoder::new(enhance), at }
    }

    fn payload(&mut self) -> Vec<u8> {
        let count = M::PROMPT.len() / M::BYTES;
        self.at = (self.at + 1) % count;
        M::PROMPT[self.at * M::BYTES..][..M::BYTES].to_vec()
    }
}

type Run<M> = fn(Level, &mut [DecodeJob<'_, M>]);

/// Decodes a payload of each stream in one go and compares with the twins.
fn step<M: TestMode>(what: &str, level: Level, pairs: &mut [&mut Pair<M>], payloads: &[Vec<u8>]) {
    let mut heard = vec![M::SILENCE; pairs.len()];
    let mut jobs: Vec<_> = pairs
        .iter_mut()
        .zip(payloads)
        .zip(&mut heard)
        .map(|((pair, payload), pcm)| DecodeJob::new(&mut pair.state, payload, pcm))
        .collect();
    decode(level, &mut jobs);
    let outcomes: Vec<_> = jobs.iter().map(|job| job.outcome).collect();
    for (lane, pair) in pairs.iter_mut().enumerate() {
        let mut expected = M::SILENCE;
        let outcome = pair.twin.decode(&payloads[lane], &mut expected);
        assert_eq!(outcomes[lane], Some(outcome), "{what}: {} ms, {level}, stream {lane}", M::NAME);
        assert_eq!(heard[lane].as_ref(), expected.as_ref(), "{what}: {} ms, {level}, stream {lane}", M::NAME);
    }
}

fn speech_in_every_occupancy<M: TestMode>(enhance: bool) {
    for level in Level::all_available() {
        for count in 1..=2 * level.lanes() + 1 {
            let mut pairs: Vec<_> = (0..count).map(|lane| Pair::<M>::new(enhance, 3 * lane)).collect();
            for _ in 0..6 {
                let payloads: Vec<_> = pairs.iter_mut().map(Pair::payload).collect();
                let mut members: Vec<_> = pairs.iter_mut().collect();
                step("occupancy", level, &mut members, &payloads);
            }
        }
    }
}

#[test]
fn any_number_of_streams_gets_the_plain_decoders_samples() {
    for enhance in [false, true] {
        speech_in_every_occupancy::<Mode20>(enhance);
        speech_in_every_occupancy::<Mode30>(enhance);
    }
}

/// A whole prompt with damaged frames, in every lane at another time.
fn whole_prompt<M: TestMode>(enhance: bool) {
    for level in Level::all_available() {
        let mut pairs: Vec<_> = (0..level.lanes()).map(|lane| Pair::<M>::new(enhance, 7 * lane)).collect();
        for _ in 0..M::PROMPT.len() / M::BYTES + 10 {
            let payloads: Vec<_> = pairs.iter_mut().map(Pair::payload).collect();
            let mut members: Vec<_> = pairs.iter_mut().collect();
            step("prompt", level, &mut members, &payloads);
        }
    }
}

#[test]
fn a_whole_prompt_is_equal_in_every_lane() {
    for enhance in [false, true] {
        whole_prompt::<Mode20>(enhance);
        whole_prompt::<Mode30>(enhance);
    }
}

/// Streams join and leave, change lanes and neighbours, lose frames, receive garbage, silence and the loudest there is,
/// begin anew, and are moved.
fn eventful_calls<M: TestMode>(level: Level, random: &mut Random) {
    let mut pairs: Vec<_> =
        (0..3 * level.lanes()).map(|number| Pair::<M>::new(number % 2 == 0, random.below(90))).collect();
    for _ in 0..60 {
        // A random choice in random order.
        let mut members: Vec<_> = pairs.iter_mut().filter(|_| random.below(4) > 0).collect();
        for index in (1..members.len()).rev() {
            members.swap(index, random.below(index + 1));
        }
        let mut payloads = Vec::new();
        for pair in &mut members {
            let mut payload = pair.payload();
            match random.below(20) {
                0 => random.fill(&mut payload),
                1 => payload.truncate(random.below(M::BYTES)),
                2 => payload.fill(0),
                3 => payload.fill(0xff),
                4 => {
                    // The largest scale, levels and gains; of sub-blocks, the last.
                    payload.fill(0xff);
                    payload[M::BYTES - 1] = 0xfe;
                    if M::BYTES == 50 {
                        payload[5] = 0xbf;
                    }
                }
                5 => {
                    let (mut heard, mut expected) = (M::SILENCE, M::SILENCE);
                    for _ in 0..=random.below(5) {
                        pair.state.conceal(&mut heard);
                        pair.twin.conceal(&mut expected);
                        assert_eq!(heard.as_ref(), expected.as_ref(), "{level}: concealed");
                    }
                }
                6 => **pair = Pair::new(random.below(2) == 0, random.below(90)),
                7 => pair.state = pair.state.clone(),
                _ => {}
            }
            payloads.push(payload);
        }
        step("calls", level, &mut members, &payloads);
    }
}

#[test]
fn losses_garbage_resets_and_moves_leave_neighbours_alone() {
    let mut random = Random(seed("losses_garbage_resets_and_moves_leave_neighbours_alone"));
    for level in Level::all_available() {
        for _ in 0..4 {
            eventful_calls::<Mode20>(level, &mut random);
            eventful_calls::<Mode30>(level, &mut random);
        }
    }
}

/// Silence drives the recursive filters into numbers too small to be normal.
#[test]
fn long_silence_is_equal() {
    fn check<M: TestMode>(enhance: bool) {
        for level in Level::all_available() {
            let mut pairs: Vec<_> =
                (0..level.lanes()).map(|lane| Pair::<M>::new(enhance, 5 * lane)).collect();
            // The smallest scale is the least that a payload can say.
            let mut quiet = M::PROMPT[..M::BYTES].to_vec();
            let (at, masks) = if M::BYTES == 38 { (2, [0xfe, 0x07]) } else { (5, [0xf0, 0x3f]) };
            quiet.iter_mut().skip(at).zip(masks).for_each(|(byte, mask)| *byte &= mask);
            for frame in 0..40 {
                let payloads: Vec<_> = pairs
                    .iter_mut()
                    .map(|pair| if frame < 4 { pair.payload() } else { quiet.clone() })
                    .collect();
                let mut members: Vec<_> = pairs.iter_mut().collect();
                step("silence", level, &mut members, &payloads);
            }
        }
    }
    for enhance in [false, true] {
        check::<Mode20>(enhance);
        check::<Mode30>(enhance);
    }
}

/// A job that is done is left alone, so that a group which a panic ended can be run again stream by stream.
#[test]
fn jobs_that_are_done_are_not_done_again() {
    let payload = &Mode30::PROMPT[..50];
    let mut states = vec![Decoder::<Mode30>::new(false); 8];
    let mut heard = [[7; 240]; 8];
    let mut jobs: Vec<_> =
        states.iter_mut().zip(&mut heard).map(|(state, pcm)| DecodeJob::new(state, payload, pcm)).collect();
    jobs[2].outcome = Some(Ok(()));
    jobs[5].outcome = Some(Err(Unusable));
    for run in [decode as Run<Mode30>, decode_fast] {
        run(Level::best(), &mut jobs);
    }
    assert!(jobs.iter().all(|job| job.outcome.is_some()));
    for (lane, pcm) in heard.iter().enumerate() {
        assert_eq!(*pcm == [7; 240], lane == 2 || lane == 5, "{lane}");
        assert_eq!(*pcm == heard[0], lane != 2 && lane != 5, "{lane}: once, by the first run");
    }
}

/// Fast sums differ from the plain decoder's by rounding only.
#[test]
fn fast_decoding_stays_close_to_exact_decoding() {
    fn check<M: TestMode>(enhance: bool) {
        for level in Level::all_available() {
            let mut pairs: Vec<_> =
                (0..level.lanes()).map(|lane| Pair::<M>::new(enhance, 3 * lane)).collect();
            let (mut error, mut energy) = (0.0, 0.0);
            for _ in 0..40 {
                let payloads: Vec<_> = pairs.iter_mut().map(Pair::payload).collect();
                let mut heard = vec![M::SILENCE; pairs.len()];
                let mut jobs: Vec<_> = pairs
                    .iter_mut()
                    .zip(&payloads)
                    .zip(&mut heard)
                    .map(|((pair, payload), pcm)| DecodeJob::new(&mut pair.state, payload, pcm))
                    .collect();
                decode_fast(level, &mut jobs);
                for ((pair, payload), heard) in pairs.iter_mut().zip(&payloads).zip(&heard) {
                    let mut expected = M::SILENCE;
                    let _ = pair.twin.decode(payload, &mut expected);
                    for (&a, &b) in heard.as_ref().iter().zip(expected.as_ref()) {
                        error += (f64::from(a) - f64::from(b)).powi(2);
                        energy += f64::from(b).powi(2);
                    }
                }
            }
            let decibels = 10.0 * (energy / error.max(1.0)).log10();
            println!("{} ms, enhance {enhance}, {level}: {decibels:.1} dB", M::NAME);
            // Where a tie of two pitch lags falls the other way, a block differs audibly to none but this sum.
            assert!(decibels > if enhance { 35.0 } else { 60.0 }, "{} ms, {level}: {decibels} dB", M::NAME);
        }
    }
    for enhance in [false, true] {
        check::<Mode20>(enhance);
        check::<Mode30>(enhance);
    }
}

/// Workers run groups on small stacks.
#[test]
fn a_group_fits_a_stack_of_256_kilobytes() {
    fn work<M: TestMode>() {
        for level in Level::all_available() {
            for enhance in [false, true] {
                let mut pairs: Vec<_> =
                    (0..level.lanes()).map(|lane| Pair::<M>::new(enhance, lane)).collect();
                let payloads: Vec<_> = pairs.iter_mut().map(Pair::payload).collect();
                let mut members: Vec<_> = pairs.iter_mut().collect();
                step("stack", level, &mut members, &payloads);
            }
        }
    }
    for work in [work::<Mode20>, work::<Mode30>] {
        on_small_stack(work);
    }
}
