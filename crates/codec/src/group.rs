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
use crate::plc::Concealer;
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

/// A frame of one stream as a codec takes it.
trait Job {
    /// Whether it is done; else, also after a panic, its stream is untouched.
    fn is_done(&self) -> bool;
    /// Whether what came could not be read and was concealed.
    fn is_malformed(&self) -> bool {
        false
    }
    /// What it has made, when that is not yet in its task.
    fn made(&self) -> Option<&[u8]> {
        None
    }
    /// What it has decoded.
    fn heard(&mut self) -> &mut [i16] {
        &mut []
    }
}

impl Job for gsm::EncodeJob<'_> {
    fn is_done(&self) -> bool {
        self.done
    }
}
impl Job for gsm::DecodeJob<'_> {
    fn is_done(&self) -> bool {
        self.done
    }
    fn is_malformed(&self) -> bool {
        !gsm::has_signature(self.payload)
    }
}
impl<M: ilbc::Mode> Job for ilbc::EncodeJob<'_, M> {
    fn is_done(&self) -> bool {
        self.done
    }
}
impl<M: ilbc::Mode> Job for ilbc::DecodeJob<'_, M> {
    fn is_done(&self) -> bool {
        self.outcome.is_some()
    }
    fn is_malformed(&self) -> bool {
        matches!(self.outcome, Some(Err(_)))
    }
}
impl Job for speex::EncodeJob<'_> {
    fn is_done(&self) -> bool {
        self.done
    }
    fn made(&self) -> Option<&[u8]> {
        self.out.get(..self.state.quality().bytes())
    }
}
impl Job for speex::DecodeJob<'_> {
    fn is_done(&self) -> bool {
        self.outcome.is_some()
    }
    fn is_malformed(&self) -> bool {
        matches!(self.outcome, Some(Err(_)))
    }
}
impl Job for g722::EncodeJob<'_> {
    fn is_done(&self) -> bool {
        self.done
    }
}
impl Job for g722::DecodeJob<'_> {
    fn is_done(&self) -> bool {
        self.done
    }
    fn heard(&mut self) -> &mut [i16] {
        self.pcm
    }
}
impl Job for g726::EncodeJob<'_> {
    fn is_done(&self) -> bool {
        self.done
    }
}
impl Job for g726::DecodeJob<'_> {
    fn is_done(&self) -> bool {
        self.done
    }
    fn heard(&mut self) -> &mut [i16] {
        self.pcm
    }
}

/// What a job writes into its task when it is done.
struct Mark<'m> {
    /// Samples or bytes.
    count: &'m mut usize,
    malformed: Option<&'m mut u32>,
    /// What conceals losses and must know what was heard, of a codec that does not by itself.
    concealer: Option<&'m mut Concealer>,
    /// Where bytes go that the codec made elsewhere.
    room: &'m mut [u8],
}

/// Jobs of one codec, and what they leave in their tasks whatever happens.
struct Jobs<'m, J: Job> {
    jobs: SmallVec<[J; GROUP_MAX]>,
    marks: SmallVec<[Mark<'m>; GROUP_MAX]>,
    /// Samples or bytes of a job that is done.
    count: usize,
}

impl<'m, J: Job> Jobs<'m, J> {
    fn new(count: usize) -> Self {
        Self { jobs: SmallVec::new(), marks: SmallVec::new(), count }
    }
    fn push(&mut self, job: J, mark: Mark<'m>) {
        self.jobs.push(job);
        self.marks.push(mark);
    }
    /// Runs the codec. Jobs from a `faulty` one on are left out, and a panic follows, as the codec's own might.
    fn run(mut self, faulty: Option<usize>, codec: impl FnOnce(&mut [J])) {
        let ready = faulty.unwrap_or(self.jobs.len()).min(self.jobs.len());
        codec(self.jobs.get_mut(..ready).unwrap_or_default());
        assert!(faulty.is_none(), "a fault injected into a group");
    }
}

impl<J: Job> Drop for Jobs<'_, J> {
    fn drop(&mut self) {
        for (job, mark) in self.jobs.iter_mut().zip(&mut self.marks) {
            if !job.is_done() {
                continue;
            }
            *mark.count = self.count;
            if let Some(concealer) = &mut mark.concealer {
                concealer.follow(job.heard());
            }
            if let Some(made) = job.made() {
                for (to, from) in mark.room.iter_mut().zip(made) {
                    *to = *from;
                }
                *mark.count = made.len().min(mark.room.len());
            }
            if let Some(malformed) = &mut mark.malformed {
                **malformed = malformed.saturating_add(u32::from(job.is_malformed()));
            }
        }
    }
}

/// Decodes one frame of each task. All are of one format; a task of another one, or whose pieces have another size than
/// [`decode_frame`], is done by itself.
pub fn decode_group(level: Level, tasks: &mut [DecodeTask<'_>]) {
    let Some(format) = tasks.first().map(|task| task.decoder.format()) else { return };
    let fast = tasks.first().is_some_and(|task| task.decoder.fast);
    let fits = |task: &DecodeTask<'_>| {
        let same = task.decoder.format() == format && task.decoder.fast == fast;
        let frame = decode_frame(format).filter(|_| same);
        let whole = |frame: &Granule| task.coded.len() == frame.bytes || !format.is_constant();
        frame.is_some_and(|frame| whole(&frame) && task.linear.len() >= frame.samples)
    };
    let faulty = tasks.iter().filter(|task| fits(task)).position(|task| task.decoder.poisoned);
    /// Makes the jobs of one codec and runs them.
    macro_rules! lanes {
        ($kind:ident, $job:ty, |$state:ident, $payload:ident, $pcm:ident| $make:expr, $run:expr) => {{
            let samples = decode_frame(format).map_or(0, |frame| frame.samples);
            let mut jobs: Jobs<'_, $job> = Jobs::new(samples);
            for task in tasks.iter_mut().filter(|task| fits(task)) {
                let Decoder { kind, malformed, concealer, .. } = &mut *task.decoder;
                if let (DecoderKind::$kind($state), Ok($payload)) = (kind, task.coded.try_into())
                    && let Some($pcm) = task.linear.first_chunk_mut()
                {
                    let (count, malformed) = (&mut *task.samples, Some(malformed));
                    let mark = Mark { count, malformed, concealer: concealer.as_mut(), room: &mut [] };
                    jobs.push($make, mark);
                }
            }
            jobs.run(faulty, |jobs| ($run)(level, jobs));
        }};
    }
    match format.codec() {
        Codec::Gsm => lanes!(
            Gsm,
            gsm::DecodeJob<'_>,
            |state, payload, pcm| gsm::DecodeJob::new(state, payload, pcm),
            gsm::decode
        ),
        Codec::Ilbc20 => lanes!(
            Ilbc20,
            ilbc::DecodeJob<'_, ilbc::Mode20>,
            |state, payload, pcm| ilbc::DecodeJob::new(state, whole::<38>(payload), pcm),
            if fast { ilbc::decode_fast } else { ilbc::decode }
        ),
        Codec::Ilbc30 => lanes!(
            Ilbc30,
            ilbc::DecodeJob<'_, ilbc::Mode30>,
            |state, payload, pcm| ilbc::DecodeJob::new(state, whole::<50>(payload), pcm),
            if fast { ilbc::decode_fast } else { ilbc::decode }
        ),
        Codec::Speex => lanes!(
            Speex,
            speex::DecodeJob<'_>,
            |state, payload, pcm| speex::DecodeJob::new(state, payload, pcm),
            speex::decode
        ),
        Codec::G722 => lanes!(
            G722,
            g722::DecodeJob<'_>,
            |state, payload, pcm| g722::DecodeJob::new(state, whole::<160>(payload), room::<320>(pcm)),
            g722::decode
        ),
        Codec::G726 | Codec::G726Aal2 => lanes!(
            G726,
            g726::DecodeJob<'_>,
            |state, payload, pcm| g726::DecodeJob::new(state, whole::<80>(payload), room::<160>(pcm)),
            g726::decode
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
    let fast = tasks.first().is_some_and(|task| task.encoder.fast);
    let fits = |task: &EncodeTask<'_>| {
        let same = task.encoder.format() == format && task.encoder.fast == fast;
        let frame = task.encoder.lane().filter(|_| same);
        frame.is_some_and(|frame| task.linear.len() == frame.samples && task.coded.len() >= frame.bytes)
    };
    let faulty = tasks.iter().filter(|task| fits(task)).position(|task| task.encoder.poisoned);
    /// Makes the jobs of one codec and runs them.
    macro_rules! lanes {
        ($kind:ident, $job:ty, |$state:ident, $pcm:ident, $out:ident| $make:expr, $run:expr) => {{
            let bytes = encode_frame(format).map_or(0, |frame| frame.bytes);
            let mut jobs: Jobs<'_, $job> = Jobs::new(bytes);
            for task in tasks.iter_mut().filter(|task| fits(task)) {
                if let (EncoderKind::$kind($state), Ok($pcm)) =
                    (&mut task.encoder.kind, task.linear.try_into())
                    && let Some($out) = task.coded.first_chunk_mut()
                {
                    let count = &mut *task.bytes;
                    jobs.push($make, Mark { count, malformed: None, concealer: None, room: &mut [] });
                }
            }
            jobs.run(faulty, |jobs| ($run)(level, jobs));
        }};
    }
    match format.codec() {
        Codec::Gsm => {
            lanes!(
                Gsm,
                gsm::EncodeJob<'_>,
                |state, pcm, out| gsm::EncodeJob::new(state, pcm, out),
                gsm::encode
            )
        }
        Codec::Ilbc20 => lanes!(
            Ilbc20,
            ilbc::EncodeJob<'_, ilbc::Mode20>,
            |state, pcm, out| ilbc::EncodeJob::new(state, pcm, out),
            if fast { ilbc::encode_fast } else { ilbc::encode }
        ),
        Codec::Ilbc30 => lanes!(
            Ilbc30,
            ilbc::EncodeJob<'_, ilbc::Mode30>,
            |state, pcm, out| ilbc::EncodeJob::new(state, pcm, out),
            if fast { ilbc::encode_fast } else { ilbc::encode }
        ),
        Codec::G722 => lanes!(
            G722,
            g722::EncodeJob<'_>,
            |state, pcm, out| g722::EncodeJob::new(state, sound::<320>(pcm), space::<160>(out)),
            g722::encode
        ),
        Codec::G726 | Codec::G726Aal2 => lanes!(
            G726,
            g726::EncodeJob<'_>,
            |state, pcm, out| g726::EncodeJob::new(state, sound::<160>(pcm), space::<80>(out)),
            g726::encode
        ),
        Codec::Speex => speex_lanes(level, tasks.iter_mut().filter(|task| fits(task)), faulty),
        _ => {}
    }
    for task in tasks.iter_mut().filter(|task| *task.bytes == 0) {
        *task.bytes = task.encoder.encode_apart(task.linear, task.coded);
    }
}

/// As the lanes of other codecs, but a frame goes through a room of its longest size.
fn speex_lanes<'t, 'a: 't>(
    level: Level,
    tasks: impl Iterator<Item = &'t mut EncodeTask<'a>>,
    faulty: Option<usize>,
) {
    let mut frames = [[0; speex::BYTES_MAX]; GROUP_MAX];
    let mut jobs: Jobs<'_, speex::EncodeJob<'_>> = Jobs::new(0);
    for (task, out) in tasks.zip(&mut frames) {
        if let (EncoderKind::Speex(state), Ok(pcm)) = (&mut task.encoder.kind, task.linear.try_into()) {
            let (count, room) = (&mut *task.bytes, &mut *task.coded);
            let mark = Mark { count, malformed: None, concealer: None, room };
            jobs.push(speex::EncodeJob::new(state, pcm, out), mark);
        }
    }
    jobs.run(faulty, |jobs| speex::encode(level, jobs));
}
