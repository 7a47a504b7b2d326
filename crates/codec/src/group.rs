//! Streams of one format side by side: what a media worker runs each tick.
//!
//! State stays with its stream ([`Encoder`], [`Decoder`]); a group borrows the states of whoever is ready, codes one
//! frame of each and gives them back. So a group is composed afresh each time, and nobody's output depends on who else
//! is in it. A codec with lanes writes state and output only at its end: after a panic within, every stream whose task is
//! not done is as it was, and can be coded again by itself.

use base::{Codec, FormatId, Granule};
use lanes::Level;
use smallvec::SmallVec;

use crate::coder::{Decoder, DecoderKind, Encoder, EncoderKind};
use crate::gsm;

/// Most streams in one call: the widest group there is, 16-bit lanes of AVX-512.
pub const GROUP_MAX: usize = lanes::LANES16_MAX;

/// One stream's frame to decode.
#[derive(Debug)]
pub struct DecodeTask<'a> {
    /// Its state.
    pub decoder: &'a mut Decoder,
    /// One frame as [`lane_frame`] says, or one packet of a format of variable rate.
    pub coded: &'a [u8],
    /// Room for its samples.
    pub linear: &'a mut [i16],
    /// Samples written; 0 until it is done, also when the group panics.
    pub samples: &'a mut usize,
}

/// One stream's frame to encode.
#[derive(Debug)]
pub struct EncodeTask<'a> {
    /// Its state.
    pub encoder: &'a mut Encoder,
    /// One frame as [`lane_frame`] says.
    pub linear: &'a [i16],
    /// Room for its bytes.
    pub coded: &'a mut [u8],
    /// Bytes written; 0 until it is done, also when the group panics.
    pub bytes: &'a mut usize,
}

/// Up to [`GROUP_MAX`] tasks without an allocation.
pub type DecodeTasks<'a> = SmallVec<[DecodeTask<'a>; GROUP_MAX]>;
/// Up to [`GROUP_MAX`] tasks without an allocation.
pub type EncodeTasks<'a> = SmallVec<[EncodeTask<'a>; GROUP_MAX]>;

/// The frame that a format's lanes work on; `None` for a format without lanes.
pub fn lane_frame(format: FormatId) -> Option<Granule> {
    match format.codec() {
        Codec::Gsm | Codec::Ilbc20 | Codec::Ilbc30 => Some(format.granule()),
        _ => None,
    }
}

/// Streams that fill a group of this format; 1 for a format without lanes.
pub fn group_size(format: FormatId, level: Level) -> usize {
    match format.codec() {
        // Arithmetic on 16 bits.
        Codec::Gsm => 2 * level.lanes(),
        Codec::Ilbc20 | Codec::Ilbc30 => level.lanes(),
        _ => 1,
    }
}

/// Jobs of one codec, and what they leave in their tasks whatever happens.
struct Jobs<'m, J> {
    jobs: SmallVec<[J; GROUP_MAX]>,
    marks: SmallVec<[&'m mut usize; GROUP_MAX]>,
    /// Samples or bytes of a job that is done.
    count: usize,
    is_done: fn(&J) -> bool,
}

impl<'m, J> Jobs<'m, J> {
    /// With `is_done`, a job tells by itself, even after a panic; without, all are done when the codec returns.
    fn new(count: usize, is_done: fn(&J) -> bool) -> Self {
        Self { jobs: SmallVec::new(), marks: SmallVec::new(), count, is_done }
    }
    fn push(&mut self, job: J, mark: &'m mut usize) {
        self.jobs.push(job);
        self.marks.push(mark);
    }
    /// The codec returned.
    fn all_done(mut self) {
        self.is_done = |_| true;
    }
}

impl<J> Drop for Jobs<'_, J> {
    fn drop(&mut self) {
        for (job, mark) in self.jobs.iter().zip(&mut self.marks) {
            if (self.is_done)(job) {
                **mark = self.count;
            }
        }
    }
}

/// Decodes one frame of each task. All are of one format; a task of another one, or whose pieces have another size than
/// [`lane_frame`], is done by itself.
pub fn decode_group(level: Level, tasks: &mut [DecodeTask<'_>]) {
    let Some(format) = tasks.first().map(|task| task.decoder.format()) else { return };
    let fits = |task: &DecodeTask<'_>| {
        let frame = lane_frame(format).filter(|_| task.decoder.format() == format);
        frame.is_some_and(|frame| task.coded.len() == frame.bytes && task.linear.len() >= frame.samples)
    };
    /// Makes the jobs of one codec and runs them.
    macro_rules! lanes {
        ($kind:ident, $job:ty, $is_done:expr, |$state:ident, $payload:ident, $pcm:ident, $malformed:ident| $make:expr, $run:expr) => {{
            let mut jobs: Jobs<'_, $job> = Jobs::new(format.granule().samples, $is_done);
            for task in tasks.iter_mut().filter(|task| fits(task)) {
                let Decoder { kind, malformed: $malformed, .. } = &mut *task.decoder;
                if let (DecoderKind::$kind($state), Ok($payload)) = (kind, task.coded.try_into())
                    && let Some($pcm) = task.linear.first_chunk_mut()
                {
                    let job = $make;
                    jobs.push(job, &mut *task.samples);
                }
            }
            $run(level, &mut jobs.jobs);
            jobs.all_done();
        }};
    }
    match format.codec() {
        Codec::Gsm => lanes!(
            Gsm,
            gsm::DecodeJob<'_>,
            |_| false,
            |state, payload, pcm, malformed| {
                // The lanes conceal what has no signature, as the plain form does.
                *malformed += u32::from(!gsm::has_signature(payload));
                gsm::DecodeJob { state, payload, pcm }
            },
            gsm::decode
        ),
        Codec::Ilbc20 => lanes!(
            Ilbc20,
            ilbc::DecodeJob<'_, ilbc::Mode20>,
            |job| job.outcome.is_some(),
            |state, payload, pcm, _malformed| ilbc::DecodeJob::new(state, whole::<38>(payload), pcm),
            ilbc::decode
        ),
        Codec::Ilbc30 => lanes!(
            Ilbc30,
            ilbc::DecodeJob<'_, ilbc::Mode30>,
            |job| job.outcome.is_some(),
            |state, payload, pcm, _malformed| ilbc::DecodeJob::new(state, whole::<50>(payload), pcm),
            ilbc::decode
        ),
        _ => {}
    }
    for task in tasks.iter_mut().filter(|task| *task.samples == 0) {
        *task.samples = task.decoder.decode(task.coded, task.linear);
    }
}

/// A payload of known size as bytes.
fn whole<const BYTES: usize>(payload: &[u8; BYTES]) -> &[u8] {
    payload
}

/// Encodes one frame of each task. All are of one format; a task of another one, or whose pieces have another size than
/// [`lane_frame`], is done by itself.
pub fn encode_group(level: Level, tasks: &mut [EncodeTask<'_>]) {
    let Some(format) = tasks.first().map(|task| task.encoder.format()) else { return };
    let fits = |task: &EncodeTask<'_>| {
        let frame = lane_frame(format).filter(|_| task.encoder.format() == format);
        frame.is_some_and(|frame| task.linear.len() == frame.samples && task.coded.len() >= frame.bytes)
    };
    /// Makes the jobs of one codec and runs them.
    macro_rules! lanes {
        ($kind:ident, $job:ty, |$state:ident, $pcm:ident, $out:ident| $make:expr, $run:expr) => {{
            let mut jobs: Jobs<'_, $job> = Jobs::new(format.granule().bytes, |_| false);
            for task in tasks.iter_mut().filter(|task| fits(task)) {
                if let (EncoderKind::$kind($state), Ok($pcm)) =
                    (&mut task.encoder.kind, task.linear.try_into())
                    && let Some($out) = task.coded.first_chunk_mut()
                {
                    jobs.push($make, &mut *task.bytes);
                }
            }
            $run(level, &mut jobs.jobs);
            jobs.all_done();
        }};
    }
    if format.codec() == Codec::Gsm {
        lanes!(Gsm, gsm::EncodeJob<'_>, |state, pcm, out| gsm::EncodeJob { state, pcm, out }, gsm::encode);
    }
    for task in tasks.iter_mut().filter(|task| *task.bytes == 0) {
        *task.bytes = task.encoder.encode(task.linear, task.coded);
    }
}
