//! The encoder in all its ways: alone and in groups of any size, on every level, compared with the plain one.

use std::fmt::Debug;

use ilbc::{Decoder, EncodeJob, Encoder, Mode, Mode20, Mode30, encode, encode_fast};
use lanes::Level;

/// A frame size with arrays that tests can make and compare.
trait Size: Mode<Pcm: Copy + for<'a> TryFrom<&'a [i16]>, Payload: Copy + Debug + PartialEq> {
    const NAME: &str;
    const SAMPLES: usize;
    const EMPTY: Self::Payload;
    /// FNV-1a over the payloads that the reference makes of the speech in `tests/oracle`, and over those that it makes of
    /// [`Signal::Loud`].
    const REFERENCE: [u64; 2];
}

impl Size for Mode20 {
    const NAME: &str = "20 ms";
    const SAMPLES: usize = 160;
    const EMPTY: [u8; 38] = [0; 38];
    const REFERENCE: [u64; 2] = [0x399d_8829_6415_0ab5, 0x4050_a9b0_47c0_0b6f];
}

impl Size for Mode30 {
    const NAME: &str = "30 ms";
    const SAMPLES: usize = 240;
    const EMPTY: [u8; 50] = [0; 50];
    const REFERENCE: [u64; 2] = [0x45fb_0b80_9938_a388, 0x2b53_197e_cb93_3809];
}

/// Numbers from a printed seed.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u32 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 32) as u32
    }

    fn below(&mut self, bound: usize) -> usize {
        self.next() as usize % bound
    }
}

/// What a stream sends.
#[derive(Clone, Copy, Debug)]
enum Signal {
    Speech,
    Silence,
    /// Extremes, at random.
    Loud,
    Noise,
    /// A sample of ±1 now and then.
    Faint,
    /// A click, then silence: filters ring down to the smallest numbers there are.
    Click,
    Tone,
}

const SIGNALS: [Signal; 7] = [
    Signal::Speech,
    Signal::Silence,
    Signal::Loud,
    Signal::Noise,
    Signal::Faint,
    Signal::Click,
    Signal::Tone,
];

impl Signal {
    fn samples(self, speech: &[i16], count: usize, random: &mut Random) -> Vec<i16> {
        let from = random.below(speech.len());
        let mut sample = |n: usize| match self {
            Self::Speech => speech[(from + n) % speech.len()],
            Self::Silence => 0,
            Self::Loud => [i16::MIN, i16::MAX][random.below(2)],
            Self::Noise => random.next() as i16,
            Self::Faint => i16::from(n.is_multiple_of(37)) - i16::from(n.is_multiple_of(53)),
            Self::Click => [0, 20_000][usize::from(n % 2000 == 5)],
            Self::Tone => ((n as f64 * 0.31).sin() * 9000.0) as i16,
        };
        (0..count).map(&mut sample).collect()
    }
}

/// A stream encoded in some way, beside its plain twin.
struct Stream<M: Mode> {
    signal: Signal,
    samples: Vec<i16>,
    at: usize,
    state: Encoder<M>,
    twin: Encoder<M>,
}

impl<M: Size> Stream<M> {
    fn new(signal: Signal, samples: Vec<i16>) -> Self {
        Self { signal, samples, at: 0, state: Encoder::new(), twin: Encoder::new() }
    }

    fn next_frame(&mut self) -> M::Pcm {
        if self.at + M::SAMPLES > self.samples.len() {
            self.at = 0;
        }
        let frame = M::Pcm::try_from(&self.samples[self.at..self.at + M::SAMPLES]).ok();
        self.at += M::SAMPLES;
        frame.unwrap()
    }
}

/// Each tick another set of streams in another order: every lane, every number of neighbours, streams that come, go, move
/// to another lane and start anew.
fn streams_in_any_company<M: Size>(level: Level, seed: u64, ticks: usize) {
    let mut random = Random(seed);
    let speech = oracle::speech();
    let lanes = level.lanes();
    let mut streams: Vec<Stream<M>> = (0..2 * lanes)
        .map(|n| {
            let signal = SIGNALS[n % SIGNALS.len()];
            let samples = signal.samples(&speech, 20 * M::SAMPLES, &mut random);
            Stream::new(signal, samples)
        })
        .collect();
    for tick in 0..ticks {
        for n in (1..streams.len()).rev() {
            streams.swap(n, random.below(n + 1));
        }
        let present = 1 + tick % (2 * lanes);
        if tick % 5 == 4 {
            let stream = &mut streams[0];
            (stream.state, stream.twin) = (Encoder::new(), Encoder::new());
        }
        let frames: Vec<M::Pcm> = streams[..present].iter_mut().map(Stream::next_frame).collect();
        let mut payloads = vec![M::EMPTY; present];
        let pairs = streams.iter_mut().zip(&frames).zip(&mut payloads);
        let mut jobs: Vec<_> =
            pairs.map(|((stream, pcm), out)| EncodeJob::new(&mut stream.state, pcm, out)).collect();
        encode(level, &mut jobs);
        for (lane, (payload, pcm)) in payloads.iter().zip(&frames).enumerate() {
            let stream = &mut streams[lane];
            let mut expected = M::EMPTY;
            stream.twin.encode(pcm, &mut expected);
            let what = (level.name(), M::NAME, stream.signal);
            assert_eq!(*payload, expected, "{what:?} seed {seed:#x} tick {tick}, {lane} of {present}");
        }
    }
}

#[test]
fn a_stream_is_encoded_as_by_the_plain_encoder_in_any_company() {
    let seed = 0x5eed_0001_bc00_0000 | u64::from(std::process::id());
    println!("seed {seed:#x}");
    for level in Level::all_available() {
        let ticks = 2 * 2 * level.lanes();
        streams_in_any_company::<Mode20>(level, seed, ticks);
        streams_in_any_company::<Mode30>(level, seed, ticks);
    }
}

/// Workers run groups on small stacks.
#[test]
fn a_group_fits_a_stack_of_256_kilobytes() {
    fn work<M: Size>() {
        for level in Level::all_available() {
            for run in [encode::<M>, encode_fast::<M>] {
                let mut encoders = vec![Encoder::<M>::new(); level.lanes()];
                let mut payloads = vec![M::EMPTY; level.lanes()];
                let Ok(pcm) = M::Pcm::try_from(&[1000; 240][..M::SAMPLES]) else { return };
                let pairs = encoders.iter_mut().zip(&mut payloads);
                let mut jobs: Vec<_> = pairs.map(|(state, out)| EncodeJob::new(state, &pcm, out)).collect();
                run(level, &mut jobs);
                assert!(jobs.iter().all(|job| job.done), "{level}");
            }
        }
    }
    for work in [work::<Mode20>, work::<Mode30>] {
        kit::on_small_stack(work);
    }
}

fn hash(bytes: impl IntoIterator<Item = u8>) -> u64 {
    bytes.into_iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

fn payloads_hash<M: Size>(samples: &[i16]) -> u64 {
    let mut encoder = Encoder::<M>::new();
    let frames = samples.chunks_exact(M::SAMPLES).filter_map(|frame| M::Pcm::try_from(frame).ok());
    let payloads = frames.map(|pcm| {
        let mut payload = M::EMPTY;
        encoder.encode(&pcm, &mut payload);
        payload
    });
    hash(payloads.flat_map(|payload| payload.as_ref().to_vec()).collect::<Vec<_>>())
}

/// Hashes of what the floating-point code of RFC 3951, compiled without contraction, makes of the same samples.
#[test]
fn speech_and_full_scale_give_the_payloads_of_the_reference() {
    let loud = Signal::Loud.samples(&[0], 48_000, &mut Random(0x10ad));
    for (name, samples, n) in [("speech", oracle::speech(), 0), ("full scale", loud, 1)] {
        assert_eq!(payloads_hash::<Mode20>(&samples), Mode20::REFERENCE[n], "20 ms {name}");
        assert_eq!(payloads_hash::<Mode30>(&samples), Mode30::REFERENCE[n], "30 ms {name}");
    }
}

/// Speech through the fast encoder: how many payloads are not those of the reference, and how far decoding them is from the
/// speech, compared with decoding those.
fn fast<M: Size>(level: Level, alone: bool) {
    let speech = oracle::speech();
    let streams = if alone { 1 } else { level.lanes() };
    let mut states = vec![Encoder::<M>::new(); streams];
    let mut twin = Encoder::<M>::new();
    let (mut fast_ear, mut ear) = (Decoder::<M>::new(false), Decoder::<M>::new(false));
    let (mut differ, mut frames) = (0, 0);
    let mut errors = [0.0; 2];
    for frame in speech.chunks_exact(M::SAMPLES) {
        let Ok(pcm) = M::Pcm::try_from(frame) else { continue };
        let mut payloads = vec![M::EMPTY; streams];
        let pairs = states.iter_mut().zip(&mut payloads);
        let mut jobs: Vec<_> = pairs.map(|(state, out)| EncodeJob::new(state, &pcm, out)).collect();
        encode_fast(level, &mut jobs);
        assert!(payloads.iter().all(|payload| *payload == payloads[0]), "{level}: lanes differ");
        let mut expected = M::EMPTY;
        twin.encode(&pcm, &mut expected);
        frames += 1;
        differ += usize::from(payloads[0] != expected);
        for (error, (ear, payload)) in
            errors.iter_mut().zip([(&mut fast_ear, &payloads[0]), (&mut ear, &expected)])
        {
            let mut heard = pcm;
            assert!(ear.decode(payload.as_ref(), &mut heard).is_ok());
            for (&heard, &said) in heard.as_ref().iter().zip(pcm.as_ref()) {
                *error += (f64::from(heard) - f64::from(said)).powi(2);
            }
        }
    }
    let decibels = 10.0 * (errors[0] / errors[1]).log10();
    let what = (level.name(), M::NAME, if alone { "alone" } else { "group" });
    assert!(differ * 5 < frames, "{what:?}: {differ} of {frames} payloads differ");
    assert!(decibels.abs() < 0.2, "{what:?}: {decibels} dB more error");
}

#[test]
fn fast_sums_change_few_payloads_and_hardly_what_is_heard() {
    for level in Level::all_available() {
        for alone in [true, false] {
            fast::<Mode20>(level, alone);
            fast::<Mode30>(level, alone);
        }
    }
}

/// Writes what the hashes above were made of, for the reference to encode.
#[test]
#[ignore = "a tool: writes speech.pcm and loud.pcm into the folder that ILBC_SAMPLES names"]
fn write_the_samples_that_were_hashed() {
    let Some(folder) = std::env::var_os("ILBC_SAMPLES") else { return };
    let loud = Signal::Loud.samples(&[0], 48_000, &mut Random(0x10ad));
    for (name, samples) in [("speech.pcm", oracle::speech()), ("loud.pcm", loud)] {
        std::fs::write(std::path::Path::new(&folder).join(name), oracle::bytes(&samples)).unwrap();
    }
}
