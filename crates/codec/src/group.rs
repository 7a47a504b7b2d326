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
use crate::{g722, g726, gsm};

/// Most streams in one call: the widest group there is, 16-bit lanes of AVX-512.
pub const GROUP_MAX: usize = lanes::LANES16_MAX;

/// One stream's frame to decode.
#[derive(Debug)]
pub struct DecodeTask<'a> {
    /// Its state.
    pub decoder: &'a mut Decoder,
    /// One frame as [`decode_frame`] says, or one packet of a format of variable rate.
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
    /// One frame as [`encode_frame`] says.
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

/// The frame that a format's lanes encode; `None` for a format without lanes.
pub fn encode_frame(format: FormatId) -> Option<Granule> {
    match format.codec() {
        Codec::Gsm | Codec::Ilbc20 | Codec::Ilbc30 => Some(format.granule()),
        Codec::Speex if format == FormatId::SPEEX => Some(format.granule()),
        // Any even number of samples would do: a packet is usually 20 ms.
        Codec::G722 => Some(Granule { samples: 320, bytes: 160 }),
        Codec::G726 | Codec::G726Aal2 => Some(Granule { samples: 160, bytes: 80 }),
        _ => None,
    }
}

/// The frame that a format's lanes decode; `None` for a format without lanes. Of a format of variable rate its bytes are
/// those of a usual frame.
pub fn decode_frame(format: FormatId) -> Option<Granule> {
    encode_frame(format)
}

/// Streams that fill a group of this format; 1 for a format without lanes.
pub fn group_size(format: FormatId, level: Level) -> usize {
    match (format.codec(), encode_frame(format)) {
        // Arithmetic on 16 bits.
        (Codec::Gsm, _) => 2 * level.lanes(),
        (_, Some(_)) => level.lanes(),
        (_, None) => 1,
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
/// [`decode_frame`], is done by itself.
pub fn decode_group(level: Level, tasks: &mut [DecodeTask<'_>]) {
    let Some(format) = tasks.first().map(|task| task.decoder.format()) else { return };
    let fits = |task: &DecodeTask<'_>| {
        let frame = decode_frame(format).filter(|_| task.decoder.format() == format);
        let whole = |frame: &Granule| task.coded.len() == frame.bytes || !format.is_constant();
        frame.is_some_and(|frame| whole(&frame) && task.linear.len() >= frame.samples)
    };
    /// Makes the jobs of one codec and runs them.
    macro_rules! lanes {
        ($kind:ident, $job:ty, $is_done:expr, |$state:ident, $payload:ident, $pcm:ident, $malformed:ident| $make:expr, $run:expr) => {{
            let samples = decode_frame(format).map_or(0, |frame| frame.samples);
            let mut jobs: Jobs<'_, $job> = Jobs::new(samples, $is_done);
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
        Codec::Speex => speex_decoders(level, tasks.iter_mut().filter(|task| fits(task))),
        Codec::G722 => lanes!(
            G722,
            g722::DecodeJob<'_>,
            |_| false,
            |state, payload, pcm, _malformed| {
                g722::DecodeJob { state, payload: whole::<160>(payload), pcm: room::<320>(pcm) }
            },
            g722::decode
        ),
        Codec::G726 | Codec::G726Aal2 => lanes!(
            G726,
            g726::DecodeJob<'_>,
            |_| false,
            |state, payload, pcm, _malformed| {
                g726::DecodeJob { state, payload: whole::<80>(payload), pcm: room::<160>(pcm) }
            },
            g726::decode
        ),
        _ => {}
    }
    for task in tasks.iter_mut() {
        if *task.samples == 0 {
            *task.samples = task.decoder.decode(task.coded, task.linear);
        } else if let Some(concealer) = &mut task.decoder.concealer {
            // What the plain form does after its codec.
            concealer.follow(task.linear.get_mut(..*task.samples).unwrap_or_default());
        }
    }
}

/// As the lanes of other codecs, but a payload has no fixed size.
fn speex_decoders<'t, 'a: 't>(level: Level, tasks: impl Iterator<Item = &'t mut DecodeTask<'a>>) {
    let mut jobs: Jobs<'_, speex::DecodeJob<'_>> = Jobs::new(speex::FRAME, |job| job.outcome.is_some());
    let mut faults: SmallVec<[&mut u32; GROUP_MAX]> = SmallVec::new();
    for task in tasks {
        let Decoder { kind, malformed, .. } = &mut *task.decoder;
        if let (DecoderKind::Speex(state), Some(pcm)) = (kind, task.linear.first_chunk_mut()) {
            jobs.push(speex::DecodeJob::new(state, task.coded, pcm), &mut *task.samples);
            faults.push(malformed);
        }
    }
    speex::decode(level, &mut jobs.jobs);
    for (job, malformed) in jobs.jobs.iter().zip(faults) {
        *malformed += u32::from(matches!(job.outcome, Some(Err(_))));
    }
    jobs.all_done();
}

/// A payload of known size as bytes.
fn whole<const BYTES: usize>(payload: &[u8; BYTES]) -> &[u8] {
    payload
}
/// Room of known size as samples.
fn room<const SAMPLES: usize>(pcm: &mut [i16; SAMPLES]) -> &mut [i16] {
    pcm
}
/// Samples of known number.
fn sound<const SAMPLES: usize>(pcm: &[i16; SAMPLES]) -> &[i16] {
    pcm
}
/// Room of known size as bytes.
fn space<const BYTES: usize>(out: &mut [u8; BYTES]) -> &mut [u8] {
    out
}

/// Encodes one frame of each task. All are of one format; a task of another one, or whose pieces have another size than
/// [`encode_frame`], is done by itself.
pub fn encode_group(level: Level, tasks: &mut [EncodeTask<'_>]) {
    let Some(format) = tasks.first().map(|task| task.encoder.format()) else { return };
    let fits = |task: &EncodeTask<'_>| {
        let frame = encode_frame(format).filter(|_| task.encoder.format() == format);
        frame.is_some_and(|frame| task.linear.len() == frame.samples && task.coded.len() >= frame.bytes)
    };
    /// Makes the jobs of one codec and runs them.
    macro_rules! lanes {
        ($kind:ident, $job:ty, |$state:ident, $pcm:ident, $out:ident| $make:expr, $run:expr) => {{
            let bytes = encode_frame(format).map_or(0, |frame| frame.bytes);
            let mut jobs: Jobs<'_, $job> = Jobs::new(bytes, |_| false);
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
    match format.codec() {
        Codec::Gsm => {
            lanes!(Gsm, gsm::EncodeJob<'_>, |state, pcm, out| gsm::EncodeJob { state, pcm, out }, gsm::encode)
        }
        Codec::Ilbc20 => lanes!(
            Ilbc20,
            ilbc::EncodeJob<'_, ilbc::Mode20>,
            |state, pcm, out| ilbc::EncodeJob { state, pcm, out },
            ilbc::encode
        ),
        Codec::Ilbc30 => lanes!(
            Ilbc30,
            ilbc::EncodeJob<'_, ilbc::Mode30>,
            |state, pcm, out| ilbc::EncodeJob { state, pcm, out },
            ilbc::encode
        ),
        Codec::G722 => lanes!(
            G722,
            g722::EncodeJob<'_>,
            |state, pcm, out| g722::EncodeJob { state, pcm: sound::<320>(pcm), out: space::<160>(out) },
            g722::encode
        ),
        Codec::G726 | Codec::G726Aal2 => lanes!(
            G726,
            g726::EncodeJob<'_>,
            |state, pcm, out| g726::EncodeJob { state, pcm: sound::<160>(pcm), out: space::<80>(out) },
            g726::encode
        ),
        Codec::Speex => speex_lanes(level, tasks.iter_mut().filter(|task| fits(task))),
        _ => {}
    }
    for task in tasks.iter_mut().filter(|task| *task.bytes == 0) {
        *task.bytes = task.encoder.encode(task.linear, task.coded);
    }
}

/// As the lanes of other codecs, but a frame goes through a room of its longest size.
fn speex_lanes<'t, 'a: 't>(level: Level, tasks: impl Iterator<Item = &'t mut EncodeTask<'a>>) {
    let mut frames = [[0; speex::BYTES_MAX]; GROUP_MAX];
    let mut jobs: SmallVec<[speex::EncodeJob<'_>; GROUP_MAX]> = SmallVec::new();
    let mut outs: SmallVec<[(&mut [u8], &mut usize, usize); GROUP_MAX]> = SmallVec::new();
    for (task, out) in tasks.zip(&mut frames) {
        if let (EncoderKind::Speex(state), Ok(pcm)) = (&mut task.encoder.kind, task.linear.try_into()) {
            outs.push((&mut *task.coded, &mut *task.bytes, state.quality().bytes()));
            jobs.push(speex::EncodeJob { state, pcm, out });
        }
    }
    speex::encode(level, &mut jobs);
    drop(jobs);
    for ((coded, bytes, length), frame) in outs.into_iter().zip(&frames) {
        for (to, from) in coded.iter_mut().zip(frame.iter().take(length)) {
            *to = *from;
        }
        *bytes = length.min(coded.len());
    }
}
