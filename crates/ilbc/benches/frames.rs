//! Microseconds of one core a second of audio for each way to encode iLBC.
//!
//! `cargo bench -p ilbc --bench frames`: real speech, CPU time of this thread, the best of several rounds that take the ways
//! in turn, so that a busy machine disturbs little. Baseline is the plain encoder in the same run; how it compares with the
//! floating-point code of RFC 3951 (`gcc -O3 -march=native`) on the machine where that was measured, scaled by libgsm's
//! encoder where it is installed, is printed with it. With `STROWGER_BENCH_DIR` set the figures are written there as JSON.

use std::hint::black_box;

use ilbc::{EncodeJob, Encoder, Mode, Mode20, Mode30, encode, encode_fast};
use lanes::Level;
use oracle::{Figure, quickest};

const ROUNDS: usize = 5;
/// Frames of each stream in a round.
const FRAMES: usize = 25;
/// Streams of a round: groups that take turns, so that states leave the first cache as they do in service.
const STREAMS: usize = 32;
/// What libgsm's encoder needs on the machine on which the reference was measured.
const GSM_ENCODE: f64 = 527.0;

/// A frame size, and what the reference needs for it.
trait Size: Mode<Pcm: Copy + for<'a> TryFrom<&'a [i16]>, Payload: Copy> {
    const NAME: &str;
    const EMPTY: Self::Payload;
    const SAMPLES: usize;
    const REFERENCE: f64;
}

impl Size for Mode20 {
    const NAME: &str = "20";
    const EMPTY: [u8; 38] = [0; 38];
    const SAMPLES: usize = 160;
    const REFERENCE: f64 = 2157.0;
}

impl Size for Mode30 {
    const NAME: &str = "30";
    const EMPTY: [u8; 50] = [0; 50];
    const SAMPLES: usize = 240;
    const REFERENCE: f64 = 2465.0;
}

/// How the frames of all streams are encoded.
#[derive(Clone, Copy)]
enum Way {
    Plain,
    /// As many streams in a call, in the reference's order of sums or fast.
    Jobs(Level, usize, bool),
}

impl Way {
    fn name(self) -> String {
        match self {
            Self::Plain => "plain".into(),
            Self::Jobs(level, count, fast) => {
                let precision = if fast { "fast" } else { "exact" };
                let count = match count {
                    1 => " alone".into(),
                    count if count == level.lanes() => String::new(),
                    count => format!(" {count} of {}", level.lanes()),
                };
                format!("{precision} {level}{count}")
            }
        }
    }
}

/// Microseconds a second of audio of one stream.
fn round<M: Size>(way: Way, frames: &[M::Pcm]) -> f64 {
    let mut states = vec![Encoder::<M>::new(); STREAMS];
    let mut payloads = vec![M::EMPTY; STREAMS];
    let spent = quickest(1, || {
        for n in 0..FRAMES {
            let frame = |stream: usize| &frames[(n + 31 * stream) % frames.len()];
            if let Way::Jobs(level, count, fast) = way {
                let pairs = states.iter_mut().zip(&mut payloads).enumerate();
                let mut jobs: Vec<_> =
                    pairs.map(|(stream, (state, out))| EncodeJob::new(state, frame(stream), out)).collect();
                for jobs in jobs.chunks_mut(count) {
                    if fast { encode_fast(level, jobs) } else { encode(level, jobs) }
                }
            } else {
                for (stream, (state, out)) in states.iter_mut().zip(&mut payloads).enumerate() {
                    state.encode(frame(stream), out);
                }
            }
            black_box(&payloads);
        }
    });
    spent.as_secs_f64() * 1e6 * 8000.0 / (FRAMES * M::SAMPLES * STREAMS) as f64
}

fn measure<M: Size>(speed: f64) {
    let speech = oracle::speech();
    let frames: Vec<M::Pcm> =
        speech.chunks_exact(M::SAMPLES).filter_map(|frame| M::Pcm::try_from(frame).ok()).collect();
    let mut ways = vec![Way::Plain];
    for level in Level::all_available() {
        for fast in [false, true] {
            ways.extend([level.lanes(), 1].map(|count| Way::Jobs(level, count, fast)));
        }
    }
    // Where a group begins to be quicker than its streams one after the other.
    let level = Level::best();
    ways.extend([2, 3, level.lanes() / 2].map(|count| Way::Jobs(level, count, false)));
    let mut best = vec![f64::MAX; ways.len()];
    for _ in 0..ROUNDS {
        for (best, &way) in best.iter_mut().zip(&ways) {
            *best = best.min(round::<M>(way, &frames));
        }
    }
    let reference = M::REFERENCE * speed;
    let of_reference = best[0] / reference;
    println!(
        "{} ms: the plain encoder needs {of_reference:.2} of RFC 3951 in C ({reference:.0} us/s)",
        M::NAME
    );
    for (&way, &value) in ways.iter().zip(&best) {
        let name = format!("ilbc encode {} ms {}", M::NAME, way.name());
        let baseline =
            if let Way::Plain = way { (reference, "RFC 3951 in C") } else { (best[0], "plain encoder") };
        Figure { name: &name, value, unit: "us/s", baseline: Some(baseline) }.publish();
    }
}

fn main() {
    let mut speed = 1.0;
    if let Some(gsm) = oracle::Oracle::build(&oracle::GSM) {
        let speech = oracle::speech();
        let (_, time) = gsm.time("encode", &oracle::bytes(&speech), 5);
        speed = time.as_secs_f64() * 1e6 / (speech.len() as f64 / 8000.0) / GSM_ENCODE;
    }
    println!("this machine needs {speed:.2} of the time of the one on which the reference was measured");
    measure::<Mode20>(speed);
    measure::<Mode30>(speed);
}
