//! One door to every codec: [`Encoder`] and [`Decoder`], dispatched by [`FormatId`].
//!
//! These are the plain forms, one stream after the other, and the home of each stream's state; `group` runs the same
//! states side by side in lanes. Linear formats are little-endian here, as in files and [`base::Clip`]s; RTP's L16 is
//! big-endian, and [`swap_bytes`] turns one into the other in place. Nothing here allocates after `new`.

use base::{Codec, FormatId, Granule, Wishes};

#[cfg(target_family = "wasm")]
use crate::bound;
use crate::coders::{OpusSettings, Settings, SpeexSettings};
use crate::external::{self, Direction, External, LineDecoder, LineEncoder};
use crate::plc::Concealer;
use crate::{adpcm, g711, g722, g726, gsm, lpc10};
use ilbc::{Mode20, Mode30};

pub(crate) enum EncoderKind {
    Ulaw,
    Alaw,
    Linear,
    G722(Box<g722::Encoder>),
    G726(Box<g726::Encoder>),
    Adpcm(adpcm::Encoder),
    Gsm(Box<gsm::Encoder>),
    Ilbc20(Box<ilbc::Encoder<Mode20>>),
    Ilbc30(Box<ilbc::Encoder<Mode30>>),
    Lpc10(Box<lpc10::Encoder>),
    Speex(Box<speex::Encoder>),
    WideSpeex(Box<bound::speex::Encoder>),
    Opus(Box<bound::opus::Encoder>),
    Codec2(Box<bound::codec2::Encoder>),
    External(Box<LineEncoder>),
    /// Of a format that is passed through only: codes nothing.
    Nothing,
}

/// Linear samples → one format. One per direction of a stream.
pub struct Encoder {
    format: FormatId,
    /// Groups need not give the reference's bits.
    pub(crate) fast: bool,
    /// What stands for silence is not sent.
    dtx: bool,
    pub(crate) kind: EncoderKind,
    pub(crate) poisoned: bool,
}

impl Encoder {
    /// An encoder in its initial state, with the usual settings. One of a format that is not [`FormatId::is_coded`] codes
    /// nothing.
    pub fn new(format: FormatId) -> Self {
        Self::with(format, &Settings::default(), &Wishes::default())
    }
    /// As [`Self::new`], with these settings and for a peer with these wishes.
    pub fn with(format: FormatId, settings: &Settings, wishes: &Wishes) -> Self {
        let kind = match format.codec() {
            Codec::Ulaw => EncoderKind::Ulaw,
            Codec::Alaw => EncoderKind::Alaw,
            Codec::Slin => EncoderKind::Linear,
            Codec::G722 => EncoderKind::G722(Box::default()),
            Codec::G726 => EncoderKind::G726(Box::new(g726::Encoder::new(g726::Packing::Rfc3551))),
            Codec::G726Aal2 => EncoderKind::G726(Box::new(g726::Encoder::new(g726::Packing::Aal2))),
            Codec::Adpcm => EncoderKind::Adpcm(adpcm::Encoder::default()),
            Codec::Gsm => EncoderKind::Gsm(Box::default()),
            Codec::Ilbc20 => EncoderKind::Ilbc20(Box::new(ilbc::Encoder::new())),
            Codec::Ilbc30 => EncoderKind::Ilbc30(Box::new(ilbc::Encoder::new())),
            Codec::Lpc10 => EncoderKind::Lpc10(Box::default()),
            Codec::Speex => speex_encoder(format, &settings.speex),
            Codec::Opus => bound::opus::Encoder::new(format.rate().0, &opus_options(&settings.opus, wishes))
                .map_or(EncoderKind::Nothing, |state| EncoderKind::Opus(Box::new(state))),
            Codec::Codec2 => bound::codec2::Encoder::new()
                .map_or(EncoderKind::Nothing, |state| EncoderKind::Codec2(Box::new(state))),
            _ => EncoderKind::Nothing,
        };
        let dtx = match format.codec() {
            Codec::Opus => settings.opus.dtx || wishes.dtx,
            _ => settings.speex.dtx,
        };
        Self { format, fast: settings.ilbc.fast, dtx, kind, poisoned: false }
    }
    /// The encoding direction of an external codec; one that has no room for it codes nothing.
    pub(crate) fn external(format: FormatId, external: &dyn External) -> Self {
        let line = external.open(Direction::Encode).map(LineEncoder::new);
        let kind = line.map_or(EncoderKind::Nothing, |line| EncoderKind::External(Box::new(line)));
        Self { format, fast: false, dtx: false, kind, poisoned: false }
    }
    /// An encoder of [`FormatId::SPEEX`] of this quality; `new` makes one of the quality that Asterisk has by default, 3.
    pub fn speex(quality: speex::Quality) -> Self {
        let kind = EncoderKind::Speex(Box::new(speex::Encoder::new(quality)));
        Self { format: FormatId::SPEEX, fast: false, dtx: false, kind, poisoned: false }
    }
    /// Whether each packet is filled to the last byte: neither a format of variable rate nor a codec that may be late.
    pub fn fills_packets(&self) -> bool {
        self.format.is_constant() && !matches!(self.kind, EncoderKind::External(_))
    }
    /// Whether it is of no use any more, because its external codec is gone for good.
    pub fn is_orphan(&self) -> bool {
        matches!(&self.kind, EncoderKind::External(line) if line.is_orphan())
    }
    /// The frame that lanes encode, when it has lanes.
    pub fn lane(&self) -> Option<Granule> {
        match &self.kind {
            EncoderKind::Speex(state) => {
                Some(Granule { samples: speex::FRAME, bytes: state.quality().bytes() })
            }
            EncoderKind::WideSpeex(_) | EncoderKind::External(_) | EncoderKind::Nothing => None,
            _ => crate::encode_frame(self.format),
        }
    }
    /// Brings frames that lie one after the other in `coded`, `bytes` in all, into the form of a packet; returns its bytes.
    ///
    /// Frames of Speex end within a byte, and the next one begins there (RFC 5574 §3.3); those of other codecs stay.
    pub fn join(&self, coded: &mut [u8], bytes: usize) -> usize {
        match &self.kind {
            EncoderKind::Speex(state) if state.quality() == speex::Quality::Q8 => {
                join_halves(coded.get_mut(..bytes).unwrap_or_default())
            }
            _ => bytes,
        }
    }
    /// The format it makes.
    pub fn format(&self) -> FormatId {
        self.format
    }
    /// Makes every group panic in which it is coded, once those before it are done: fault injection for tests.
    #[doc(hidden)]
    pub fn poison(&mut self) {
        self.poisoned = true;
    }
    /// Encodes as many whole granules as both slices hold; returns the bytes written.
    ///
    /// In a format of variable rate what is written is one packet, and `linear` is 20, 40 or 60 ms of sound.
    /// Samples are at the format's rate. A rest smaller than a [`base::Granule`] is not consumed.
    pub fn encode(&mut self, linear: &[i16], coded: &mut [u8]) -> usize {
        let bytes = self.encode_apart(linear, coded);
        self.join(coded, bytes)
    }
    /// As [`Self::encode`], with frames one after the other as lanes make them: [`Self::join`] makes a packet of them.
    pub fn encode_apart(&mut self, linear: &[i16], coded: &mut [u8]) -> usize {
        let dtx = self.dtx;
        match &mut self.kind {
            EncoderKind::Ulaw => g711::ulaw_encode(linear, coded),
            EncoderKind::Alaw => g711::alaw_encode(linear, coded),
            EncoderKind::Linear => {
                for (pair, sample) in coded.chunks_exact_mut(2).zip(linear) {
                    pair.copy_from_slice(&sample.to_le_bytes());
                }
                linear.len().min(coded.len() / 2) * 2
            }
            EncoderKind::G722(state) => state.encode(linear, coded),
            EncoderKind::G726(state) => state.encode(linear, coded),
            EncoderKind::Adpcm(state) => state.encode(linear, coded),
            EncoderKind::Gsm(state) => frames_in(linear, coded, |pcm, frame| state.encode(pcm, frame)),
            EncoderKind::Ilbc20(state) => frames_in(linear, coded, |pcm, frame| state.encode(pcm, frame)),
            EncoderKind::Ilbc30(state) => frames_in(linear, coded, |pcm, frame| state.encode(pcm, frame)),
            EncoderKind::Lpc10(state) => frames_in(linear, coded, |pcm, frame| state.encode(pcm, frame)),
            EncoderKind::Speex(state) => speex_frames(state, linear, coded),
            EncoderKind::WideSpeex(state) => sent(state.encode(linear, coded), dtx),
            EncoderKind::Opus(state) => sent(state.encode(linear, coded), dtx),
            EncoderKind::External(line) => line.encode(linear, coded),
            EncoderKind::Codec2(state) => frames_in(linear, coded, |pcm, frame| state.encode(pcm, frame)),
            EncoderKind::Nothing => 0,
        }
    }
    /// Back to the initial state.
    pub fn reset(&mut self) {
        match &mut self.kind {
            EncoderKind::Ulaw
            | EncoderKind::Alaw
            | EncoderKind::Linear
            | EncoderKind::External(_)
            | EncoderKind::Nothing => {}
            EncoderKind::G722(state) => **state = g722::Encoder::default(),
            EncoderKind::G726(state) => **state = g726::Encoder::new(packing(self.format)),
            EncoderKind::Adpcm(state) => *state = adpcm::Encoder::default(),
            EncoderKind::Gsm(state) => **state = gsm::Encoder::default(),
            EncoderKind::Ilbc20(state) => **state = ilbc::Encoder::new(),
            EncoderKind::Ilbc30(state) => **state = ilbc::Encoder::new(),
            EncoderKind::Lpc10(state) => **state = lpc10::Encoder::default(),
            EncoderKind::Speex(state) => **state = speex::Encoder::new(state.quality()),
            EncoderKind::WideSpeex(state) => state.reset(),
            EncoderKind::Opus(state) => state.reset(),
            // The library has no way back; half a second of speech later the past is forgotten.
            EncoderKind::Codec2(_) => {}
        }
    }
}

impl core::fmt::Debug for Encoder {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "Encoder({})", self.format)
    }
}

/// What encoders of the reference make of silence once they have settled.
/// Of Codec 2, the first frame that its encoder makes of silence: the faintest of its noises.
const CODEC2_SILENCE: [u8; 6] = [223, 192, 149, 211, 119, 200];
const ILBC20_SILENCE: [u8; 38] = [
    255, 166, 52, 2, 96, 80, 0, 0, 0, 0, 0, 0, 0, 73, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255,
    255, 255, 255, 201, 147, 5, 202, 149, 128, 128, 128, 22, 22,
];
const ILBC30_SILENCE: [u8; 50] = [
    255, 166, 63, 250, 99, 32, 20, 20, 0, 0, 0, 0, 0, 0, 0, 7, 0, 1, 66, 16, 255, 255, 255, 255, 255, 255,
    255, 255, 255, 255, 255, 255, 255, 255, 242, 133, 1, 98, 197, 144, 16, 0, 0, 1, 65, 65, 97, 97, 88, 86,
];

/// The encoder of Speex that these settings want: lanes for 8 kHz where they can, the library else, and without it the
/// nearest that lanes have.
fn speex_encoder(format: FormatId, settings: &SpeexSettings) -> EncoderKind {
    let native = |quality| EncoderKind::Speex(Box::new(speex::Encoder::new(quality)));
    let is_narrow = format == FormatId::SPEEX;
    if let Some(quality) = settings.native().filter(|_| is_narrow) {
        return native(quality);
    }
    let &SpeexSettings { quality, complexity, vbr, vbr_quality, abr, vad, dtx, .. } = settings;
    let options = bound::speex::Options { quality, complexity, vbr, vbr_quality, abr, vad, dtx };
    match bound::speex::Encoder::new(band(format), &options) {
        Ok(state) => EncoderKind::WideSpeex(Box::new(state)),
        Err(_) if is_narrow => native(settings.nearest()),
        Err(_) => EncoderKind::Nothing,
    }
}

/// Frames of Speex, each ending at a byte.
fn speex_frames(state: &mut speex::Encoder, linear: &[i16], coded: &mut [u8]) -> usize {
    let size = state.quality().bytes();
    let mut written = 0;
    for (pcm, frame) in linear.as_chunks().0.iter().zip(coded.chunks_exact_mut(size)) {
        let mut room = [0; speex::BYTES_MAX];
        state.encode(pcm, &mut room);
        for (to, from) in frame.iter_mut().zip(room) {
            *to = from;
        }
        written += size;
    }
    written
}

/// Bytes of a Speex frame of quality 8, of which the last half is a terminator: 300 bits.
const HALVES_BYTES: usize = 38;

/// Puts frames of 37 bytes and a half together, two and two; returns the bytes that are left.
fn join_halves(coded: &mut [u8]) -> usize {
    let frames = coded.len() / HALVES_BYTES;
    let mut end = 0;
    for frame in 0..frames {
        let mut bytes = [0; HALVES_BYTES];
        for (to, from) in bytes.iter_mut().zip(coded.iter().skip(frame * HALVES_BYTES)) {
            *to = *from;
        }
        if frame % 2 == 0 {
            for (to, from) in coded.iter_mut().skip(end).zip(bytes) {
                *to = from;
            }
            end += HALVES_BYTES;
            continue;
        }
        // Its first half byte takes the place of the terminator, and the rest follows by half bytes.
        let mut before = coded.get(end - 1).map_or(0, |last| last & 0xf0);
        for (to, from) in coded.iter_mut().skip(end - 1).zip(bytes) {
            *to = before | from >> 4;
            before = from << 4;
        }
        end += HALVES_BYTES - 1;
    }
    end
}

/// Bytes of a packet that is sent; none of one that says nothing, when such are not.
fn sent(encoded: bound::Encoded, dtx: bool) -> usize {
    if dtx && encoded.silent { 0 } else { encoded.bytes }
}

/// What an encoder of Opus goes by: the wishes of the peer within our own bounds.
fn opus_options(settings: &OpusSettings, wishes: &Wishes) -> bound::opus::Options {
    bound::opus::Options {
        bitrate: [settings.bitrate, wishes.bitrate].into_iter().flatten().min(),
        playback_rate: settings.playback_rate.min(wishes.playback_rate),
        fec: settings.fec && wishes.fec,
        loss_percent: settings.loss_percent,
        dtx: settings.dtx || wishes.dtx,
        constant: settings.constant || wishes.constant,
        complexity: settings.complexity,
    }
}

fn packing(format: FormatId) -> g726::Packing {
    if format == FormatId::G726AAL2 { g726::Packing::Aal2 } else { g726::Packing::Rfc3551 }
}

fn band(format: FormatId) -> bound::speex::Band {
    match format {
        FormatId::SPEEX32 => bound::speex::Band::UltraWide,
        FormatId::SPEEX16 => bound::speex::Band::Wide,
        _ => bound::speex::Band::Narrow,
    }
}

/// Samples that a library made, malformed packets counted.
fn made(result: Result<usize, bound::Concealed>, malformed: &mut u32) -> usize {
    result.unwrap_or_else(|bound::Concealed(samples)| {
        *malformed += 1;
        samples
    })
}

/// Samples that a payload of this format lasts; 0 for one that is none.
pub fn packet_samples(format: FormatId, payload: &[u8]) -> usize {
    let granule = format.granule();
    match format.codec() {
        Codec::Speex => {
            bound::speex::frames(payload, band(format)).map_or(0, |frames| frames * granule.samples)
        }
        Codec::Opus => bound::opus::samples(payload, format.rate().0).unwrap_or(0),
        _ if external::has_frames(format) => external::frames(format, payload).count() * granule.samples,
        _ => payload.len() / granule.bytes * granule.samples,
    }
}

/// Formats whose library this machine does not have, and so nobody codes.
pub fn missing_libraries() -> impl Iterator<Item = (FormatId, bound::Unavailable)> {
    let speex = bound::speex::available().err();
    let codec2 = bound::codec2::available().err();
    [(FormatId::SPEEX16, speex), (FormatId::SPEEX32, speex), (FormatId::CODEC2, codec2)]
        .into_iter()
        .filter_map(|(format, why)| Some((format, why?)))
}

/// Codes whole frames of fixed size; returns the bytes written.
fn frames_in<const SAMPLES: usize, const BYTES: usize>(
    linear: &[i16],
    coded: &mut [u8],
    mut encode: impl FnMut(&[i16; SAMPLES], &mut [u8; BYTES]),
) -> usize {
    let mut count = 0;
    for (pcm, frame) in linear.as_chunks().0.iter().zip(coded.as_chunks_mut().0) {
        encode(pcm, frame);
        count += BYTES;
    }
    count
}

/// Decodes whole frames of fixed size; returns the samples written.
fn frames_out<const SAMPLES: usize, const BYTES: usize>(
    coded: &[u8],
    linear: &mut [i16],
    mut decode: impl FnMut(&[u8; BYTES], &mut [i16; SAMPLES]),
) -> usize {
    let mut count = 0;
    for (frame, pcm) in coded.as_chunks().0.iter().zip(linear.as_chunks_mut().0) {
        decode(frame, pcm);
        count += SAMPLES;
    }
    count
}

pub(crate) enum DecoderKind {
    Ulaw,
    Alaw,
    Linear,
    G722(Box<g722::Decoder>),
    G726(Box<g726::Decoder>),
    Adpcm(adpcm::Decoder),
    Gsm(Box<gsm::Decoder>),
    Ilbc20(Box<ilbc::Decoder<Mode20>>),
    Ilbc30(Box<ilbc::Decoder<Mode30>>),
    Lpc10(Box<lpc10::Decoder>),
    Speex(Box<speex::Decoder>),
    WideSpeex(Box<bound::speex::Decoder>),
    Opus(Box<bound::opus::Decoder>),
    Codec2(Box<bound::codec2::Decoder>),
    External(Box<LineDecoder>),
    /// Of a format that is passed through only: decodes nothing.
    Nothing,
}

/// One format → linear samples. One per direction of a stream.
pub struct Decoder {
    format: FormatId,
    /// Groups need not give the reference's bits.
    pub(crate) fast: bool,
    /// The enhancer of iLBC is on.
    enhance: bool,
    pub(crate) kind: DecoderKind,
    pub(crate) malformed: u32,
    pub(crate) poisoned: bool,
    /// None for codecs that conceal by themselves.
    pub(crate) concealer: Option<Concealer>,
}

impl Decoder {
    /// A decoder in its initial state, with the usual settings. One of a format that is not [`FormatId::is_coded`] decodes
    /// nothing.
    pub fn new(format: FormatId) -> Self {
        Self::with(format, &Settings::default())
    }
    /// As [`Self::new`], with these settings.
    pub fn with(format: FormatId, settings: &Settings) -> Self {
        let enhance = settings.ilbc.enhancer;
        let enhance_speex = settings.speex.enhancement;
        let kind = match format.codec() {
            Codec::Ulaw => DecoderKind::Ulaw,
            Codec::Alaw => DecoderKind::Alaw,
            Codec::Slin => DecoderKind::Linear,
            Codec::G722 => DecoderKind::G722(Box::default()),
            Codec::G726 | Codec::G726Aal2 => DecoderKind::G726(Box::new(g726::Decoder::new(packing(format)))),
            Codec::Adpcm => DecoderKind::Adpcm(adpcm::Decoder::default()),
            Codec::Gsm => DecoderKind::Gsm(Box::default()),
            Codec::Ilbc20 => DecoderKind::Ilbc20(Box::new(ilbc::Decoder::new(enhance))),
            Codec::Ilbc30 => DecoderKind::Ilbc30(Box::new(ilbc::Decoder::new(enhance))),
            Codec::Lpc10 => DecoderKind::Lpc10(Box::default()),
            Codec::Speex if format == FormatId::SPEEX => {
                let mut state = Box::<speex::Decoder>::default();
                state.set_enhancer(enhance_speex);
                DecoderKind::Speex(state)
            }
            Codec::Speex => bound::speex::Decoder::new(band(format), enhance_speex)
                .map_or(DecoderKind::Nothing, |state| DecoderKind::WideSpeex(Box::new(state))),
            Codec::Opus => bound::opus::Decoder::new(format.rate().0)
                .map_or(DecoderKind::Nothing, |state| DecoderKind::Opus(Box::new(state))),
            Codec::Codec2 => bound::codec2::Decoder::new()
                .map_or(DecoderKind::Nothing, |state| DecoderKind::Codec2(Box::new(state))),
            _ => DecoderKind::Nothing,
        };
        let conceals_itself = match kind {
            DecoderKind::Gsm(_)
            | DecoderKind::Ilbc20(_)
            | DecoderKind::Ilbc30(_)
            | DecoderKind::Lpc10(_)
            | DecoderKind::Speex(_)
            | DecoderKind::WideSpeex(_)
            | DecoderKind::Opus(_)
            | DecoderKind::External(_)
            | DecoderKind::Nothing => true,
            DecoderKind::Ulaw
            | DecoderKind::Alaw
            | DecoderKind::Linear
            | DecoderKind::G722(_)
            | DecoderKind::G726(_)
            | DecoderKind::Adpcm(_)
            | DecoderKind::Codec2(_) => false,
        };
        let remembers = !matches!(kind, DecoderKind::Ulaw | DecoderKind::Alaw | DecoderKind::Linear);
        let concealer = (!conceals_itself).then(|| Concealer::new(format.rate().0, remembers));
        Self { format, fast: settings.ilbc.fast, enhance, kind, malformed: 0, poisoned: false, concealer }
    }
    /// The decoding direction of an external codec; one that has no room for it decodes nothing.
    pub(crate) fn external(format: FormatId, external: &dyn External) -> Self {
        let line = external.open(Direction::Decode).map(LineDecoder::new);
        let kind = line.map_or(DecoderKind::Nothing, |line| DecoderKind::External(Box::new(line)));
        Self { format, fast: false, enhance: false, kind, malformed: 0, poisoned: false, concealer: None }
    }
    /// Whether it is of no use any more, because its external codec is gone for good.
    pub fn is_orphan(&self) -> bool {
        matches!(&self.kind, DecoderKind::External(line) if line.is_orphan())
    }
    /// Fills in for a packet of a format with in-band copies from the one after it; false when this codec has none.
    ///
    /// `next` is decoded by [`Self::decode`] afterwards as any other.
    pub fn recover(&mut self, next: &[u8], linear: &mut [i16]) -> bool {
        let DecoderKind::Opus(state) = &mut self.kind else { return false };
        state.recover(next, linear);
        true
    }
    /// The format it reads.
    pub fn format(&self) -> FormatId {
        self.format
    }
    /// Makes every group panic in which it decodes, once those before it are done: fault injection for tests.
    #[doc(hidden)]
    pub fn poison(&mut self) {
        self.poisoned = true;
    }
    /// Decodes as many whole granules as both slices hold; returns the samples written.
    ///
    /// Of a format of variable rate `coded` is one packet, whose frames tell their own length. A frame that cannot be
    /// read is concealed; it and a rest smaller than a granule count as [`Self::malformed`]. Panics never.
    pub fn decode(&mut self, coded: &[u8], linear: &mut [i16]) -> usize {
        let mut malformed =
            u32::from(self.format.is_constant() && !coded.len().is_multiple_of(self.format.granule().bytes));
        let count = match &mut self.kind {
            DecoderKind::Ulaw => g711::ulaw_decode(coded, linear),
            DecoderKind::Alaw => g711::alaw_decode(coded, linear),
            DecoderKind::Linear => {
                for (sample, pair) in linear.iter_mut().zip(coded.as_chunks::<2>().0) {
                    *sample = i16::from_le_bytes(*pair);
                }
                linear.len().min(coded.len() / 2)
            }
            DecoderKind::G722(state) => state.decode(coded, linear),
            DecoderKind::G726(state) => state.decode(coded, linear),
            DecoderKind::Adpcm(state) => state.decode(coded, linear),
            DecoderKind::Gsm(state) => {
                frames_out(coded, linear, |frame, pcm| malformed += u32::from(!state.decode(frame, pcm)))
            }
            DecoderKind::Ilbc20(state) => frames_out(coded, linear, |frame: &[u8; 38], pcm| {
                malformed += u32::from(state.decode(frame, pcm).is_err());
            }),
            DecoderKind::Ilbc30(state) => frames_out(coded, linear, |frame: &[u8; 50], pcm| {
                malformed += u32::from(state.decode(frame, pcm).is_err());
            }),
            DecoderKind::Lpc10(state) => frames_out(coded, linear, |frame, pcm| state.decode(frame, pcm)),
            DecoderKind::Speex(state) => speex_packet(state, coded, linear, &mut malformed),
            DecoderKind::WideSpeex(state) => made(state.decode(coded, linear), &mut malformed),
            DecoderKind::Opus(state) => made(state.decode(coded, linear), &mut malformed),
            DecoderKind::Codec2(state) => frames_out(coded, linear, |frame, pcm| state.decode(frame, pcm)),
            DecoderKind::External(line) => line.decode(self.format, coded, linear, &mut malformed),
            DecoderKind::Nothing => 0,
        };
        self.malformed = self.malformed.saturating_add(malformed);
        if let Some(concealer) = &mut self.concealer {
            concealer.follow(linear.get_mut(..count).unwrap_or_default());
        }
        count
    }
    /// Fills `linear` in place of a packet that never came.
    ///
    /// GSM repeats its last frame and mutes it over 320 ms (GSM 06.11 §5), iLBC and Speex go on with their last pitch,
    /// the others with the last pitch period and fade within 60 ms (after G.711 Appendix I), and the next packet is
    /// blended in.
    pub fn conceal(&mut self, linear: &mut [i16]) {
        match &mut self.kind {
            DecoderKind::Gsm(state) => frames_lost(linear, |frame| state.conceal(frame)),
            DecoderKind::Ilbc20(state) => frames_lost(linear, |frame| state.conceal(frame)),
            DecoderKind::Ilbc30(state) => frames_lost(linear, |frame| state.conceal(frame)),
            DecoderKind::Lpc10(state) => frames_lost(linear, |frame| state.conceal(frame)),
            DecoderKind::Speex(state) => frames_lost(linear, |frame| state.conceal(frame)),
            DecoderKind::WideSpeex(state) => state.conceal(linear),
            DecoderKind::Opus(state) => state.conceal(linear),
            DecoderKind::External(line) => line.conceal(linear),
            DecoderKind::Nothing => linear.fill(0),
            kind => {
                let Some(concealer) = &mut self.concealer else { return };
                let first = concealer.fill(linear);
                if !concealer.is_audible(first) {
                    return;
                }
                // What remembers moves on with what the far end may have said meanwhile.
                let (concealer, count) = (&*concealer, linear.len());
                let said = |index: usize| concealer.period(first + index) as i16;
                match kind {
                    DecoderKind::G722(state) => state.follow(count, said),
                    DecoderKind::Adpcm(state) => state.follow((0..count).map(said)),
                    // G.726 leaks so much that it is best left as it is.
                    _ => {}
                }
            }
        }
    }
    /// How many frames were malformed since `new`.
    pub fn malformed(&self) -> u32 {
        self.malformed
    }
    /// Back to the initial state; the count of malformed frames stays.
    pub fn reset(&mut self) {
        if let Some(concealer) = &mut self.concealer {
            concealer.reset();
        }
        match &mut self.kind {
            DecoderKind::Ulaw
            | DecoderKind::Alaw
            | DecoderKind::Linear
            | DecoderKind::External(_)
            | DecoderKind::Nothing => {}
            DecoderKind::G722(state) => **state = g722::Decoder::default(),
            DecoderKind::G726(state) => **state = g726::Decoder::new(packing(self.format)),
            DecoderKind::Adpcm(state) => *state = adpcm::Decoder::default(),
            DecoderKind::Gsm(state) => **state = gsm::Decoder::default(),
            DecoderKind::Ilbc20(state) => **state = ilbc::Decoder::new(self.enhance),
            DecoderKind::Ilbc30(state) => **state = ilbc::Decoder::new(self.enhance),
            DecoderKind::Lpc10(state) => **state = lpc10::Decoder::default(),
            DecoderKind::Speex(state) => {
                let enhance = state.has_enhancer();
                **state = speex::Decoder::default();
                state.set_enhancer(enhance);
            }
            DecoderKind::WideSpeex(state) => state.reset(),
            DecoderKind::Opus(state) => state.reset(),
            DecoderKind::Codec2(_) => {}
        }
    }
}

/// Fills whole frames, and silence after the last.
fn frames_lost<const SAMPLES: usize>(linear: &mut [i16], mut conceal: impl FnMut(&mut [i16; SAMPLES])) {
    let (frames, rest) = linear.as_chunks_mut();
    frames.iter_mut().for_each(&mut conceal);
    rest.fill(0);
}

/// The frames of one packet, which tell their own length (RFC 5574 §3.3); what cannot be read is concealed.
fn speex_packet(state: &mut speex::Decoder, coded: &[u8], linear: &mut [i16], malformed: &mut u32) -> usize {
    let mut bits = speex::BitReader::new(coded);
    let mut count = 0;
    for pcm in linear.as_chunks_mut::<{ speex::FRAME }>().0 {
        match state.decode_next(&mut bits, pcm) {
            Ok(()) => count += speex::FRAME,
            Err(speex::Fault::NoFrame) if count > 0 => break,
            Err(_) => {
                *malformed += 1;
                state.conceal(pcm);
                return count + speex::FRAME;
            }
        }
    }
    count
}

impl core::fmt::Debug for Decoder {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "Decoder({}, {} malformed)", self.format, self.malformed)
    }
}

/// Swaps the bytes of each 16-bit sample: little-endian ⇄ network order (RTP's L16). A last odd byte stays.
pub fn swap_bytes(linear: &mut [u8]) {
    for pair in linear.as_chunks_mut::<2>().0 {
        pair.swap(0, 1);
    }
}

/// Fills `coded` with silence of `format`: whole granules, the rest zero. Returns the bytes of whole granules.
pub fn fill_silence(format: FormatId, coded: &mut [u8]) -> usize {
    match format.codec() {
        Codec::Ulaw => coded.fill(g711::ULAW_SILENCE),
        Codec::Alaw => coded.fill(g711::ALAW_SILENCE),
        Codec::Slin => coded.fill(0),
        Codec::G722 => coded.fill(g722::SILENCE),
        Codec::G726 | Codec::G726Aal2 => coded.fill(g726::SILENCE),
        Codec::Adpcm => coded.fill(adpcm::SILENCE),
        Codec::Gsm => fill_frames(coded, &gsm::SILENCE),
        Codec::Lpc10 => coded.fill(0),
        Codec::Codec2 => fill_frames(coded, &CODEC2_SILENCE),
        Codec::Ilbc20 => fill_frames(coded, &ILBC20_SILENCE),
        Codec::Ilbc30 => fill_frames(coded, &ILBC30_SILENCE),
        // No decoder of ours will hear it.
        _ => coded.fill(0),
    }
    let bytes = format.granule().bytes;
    coded.len() / bytes * bytes
}

fn fill_frames<const BYTES: usize>(coded: &mut [u8], frame: &[u8; BYTES]) {
    let (frames, rest) = coded.as_chunks_mut::<BYTES>();
    frames.fill(*frame);
    rest.fill(0);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Noise, sine};

    #[test]
    fn whole_granules_go_in_and_out_for_every_format() {
        for format in FormatId::coded().filter(|format| format.is_constant()) {
            let granule = format.granule();
            let pcm = sine(440.0, format.rate().0, 8000.0, granule.samples * 8 + granule.samples / 2);
            let mut coded = vec![0; granule.bytes * 10];
            let bytes = Encoder::new(format).encode(&pcm, &mut coded);
            assert_eq!(bytes, granule.bytes * 8, "{format}");
            let mut linear = vec![0; granule.samples * 10];
            let mut decoder = Decoder::new(format);
            assert_eq!(decoder.decode(&coded[..bytes], &mut linear), granule.samples * 8, "{format}");
            assert_eq!(decoder.malformed(), 0, "{format}");
        }
    }

    #[test]
    fn short_slices_bound_the_work_on_either_side() {
        for format in FormatId::coded().filter(|format| format.is_constant()) {
            let granule = format.granule();
            let pcm = vec![0; granule.samples * 4];
            let mut coded = vec![0; granule.bytes * 2];
            assert_eq!(Encoder::new(format).encode(&pcm, &mut coded), granule.bytes * 2, "{format}");
            assert_eq!(Encoder::new(format).encode(&[], &mut coded), 0, "{format}");
            let mut linear = vec![0; granule.samples];
            assert_eq!(Decoder::new(format).decode(&coded, &mut linear), granule.samples, "{format}");
        }
    }

    #[test]
    fn hostile_bytes_are_counted_and_never_panic() {
        let mut noise = Noise(1);
        for format in FormatId::coded().filter(|format| format.is_constant()) {
            let mut decoder = Decoder::new(format);
            let mut linear = [0i16; 2000];
            for length in 0..400usize {
                let bytes: Vec<u8> = (0..length).map(|_| noise.bits() as u8).collect();
                decoder.decode(&bytes, &mut linear);
                decoder.conceal(&mut linear[..length]);
            }
            let expect_malformed = format.granule().bytes > 1;
            assert_eq!(decoder.malformed() > 0, expect_malformed, "{format}");
        }
    }

    #[test]
    fn silence_decodes_to_almost_nothing_and_reset_repeats_the_first_run() {
        for format in FormatId::coded().filter(|format| format.is_constant()) {
            let granule = format.granule();
            let mut coded = vec![1; granule.bytes * 50];
            assert_eq!(fill_silence(format, &mut coded), granule.bytes * 50, "{format}");
            let mut linear = vec![0; granule.samples * 50];
            Decoder::new(format).decode(&coded, &mut linear);
            let peak = linear.iter().map(|s| s.unsigned_abs()).max().unwrap();
            // Two steps of Dialogic's ADPCM, whose codes have no zero, are 32; a vocoder has noise.
            assert!(peak <= 40, "{format}: {peak}");

            let pcm = sine(1000.0, format.rate().0, 5000.0, granule.samples * 10);
            let (mut first, mut second) = (vec![0; granule.bytes * 10], vec![0; granule.bytes * 10]);
            let mut encoder = Encoder::new(format);
            encoder.encode(&pcm, &mut first);
            encoder.reset();
            encoder.encode(&pcm, &mut second);
            // Codec 2's library has no way back.
            assert!(first == second || format == FormatId::CODEC2, "{format}");
        }
    }

    #[test]
    fn a_long_gap_fades_to_silence() {
        for format in FormatId::coded().filter(|format| format.is_constant()) {
            let rate = format.rate().0 as usize;
            let granule = format.granule();
            let pcm = sine(440.0, rate as u32, 12_000.0, granule.samples * 200);
            let mut coded = vec![0; granule.bytes * 200];
            Encoder::new(format).encode(&pcm, &mut coded);
            let mut decoder = Decoder::new(format);
            let mut linear = vec![0; granule.samples * 200];
            decoder.decode(&coded, &mut linear);
            let mut gap = vec![1; rate / 50 * 20];
            decoder.conceal(&mut gap);
            // The concealment of RFC 3951 §4.5 ends in noise a fifth as loud, and has no end of its own.
            let most = if matches!(format.codec(), Codec::Ilbc20 | Codec::Ilbc30) { 3000 } else { 32 };
            assert!(
                gap[gap.len() - 10..].iter().all(|s| s.abs() <= most),
                "{format}: {:?}",
                &gap[gap.len() - 10..]
            );
        }
    }

    #[test]
    fn rfc5574_3_3_frames_of_quality_8_begin_where_the_one_before_ends() {
        let settings = SpeexSettings { quality: 8, ..SpeexSettings::default() };
        let settings = Settings { speex: settings, ..Settings::default() };
        let pcm = sine(300.0, 8000, 9000.0, 480);
        for (frames, bytes) in [(1, 38), (2, 75), (3, 113)] {
            let mut encoder = Encoder::with(FormatId::SPEEX, &settings, &Wishes::default());
            assert_eq!(encoder.lane(), Some(Granule { samples: 160, bytes: 38 }));
            let mut packet = [0; 160];
            let linear = &pcm[..frames * 160];
            assert_eq!(encoder.encode(linear, &mut packet), bytes);
            let packet = &packet[..bytes];
            assert_eq!(packet_samples(FormatId::SPEEX, packet), frames * 160);
            let mut one_by_one = Encoder::with(FormatId::SPEEX, &settings, &Wishes::default());
            let (mut alone, mut together) = (Decoder::new(FormatId::SPEEX), Decoder::new(FormatId::SPEEX));
            let (mut apart, mut at_once) = (vec![0; frames * 160], vec![0; frames * 160]);
            for (from, to) in linear.chunks(160).zip(apart.chunks_mut(160)) {
                let mut frame = [0; 38];
                assert_eq!(one_by_one.encode(from, &mut frame), 38);
                assert_eq!(alone.decode(&frame, to), 160);
            }
            assert_eq!(together.decode(packet, &mut at_once), frames * 160);
            assert_eq!((at_once, together.malformed()), (apart, 0), "{frames} frames");
        }
    }

    #[test]
    fn settings_of_speex_choose_lanes_where_they_can_and_the_library_else() {
        let plain = SpeexSettings::default();
        for (settings, native) in [
            (plain, Some(speex::Quality::Q3)),
            (SpeexSettings { quality: 4, ..plain }, Some(speex::Quality::Q3)),
            (SpeexSettings { quality: 8, ..plain }, Some(speex::Quality::Q8)),
            (SpeexSettings { quality: 10, ..plain }, None),
            (SpeexSettings { complexity: 5, ..plain }, None),
            (SpeexSettings { vbr: true, ..plain }, None),
            (SpeexSettings { abr: 12_000, ..plain }, None),
            (SpeexSettings { vad: true, ..plain }, None),
            (SpeexSettings { dtx: true, ..plain }, None),
        ] {
            assert_eq!(
                (settings.native(), settings.wants_library()),
                (native, native.is_none()),
                "{settings:?}"
            );
            let all = Settings { speex: settings, ..Settings::default() };
            let encoder = Encoder::with(FormatId::SPEEX, &all, &Wishes::default());
            let in_lanes = native.is_some() || bound::speex::available().is_err();
            assert_eq!(encoder.lane().is_some(), in_lanes, "{settings:?}");
        }
    }

    #[test]
    fn with_dtx_nothing_is_sent_in_silence() {
        let speex = SpeexSettings { dtx: true, vad: true, ..SpeexSettings::default() };
        let opus = OpusSettings { dtx: true, ..OpusSettings::default() };
        let settings = Settings { speex, opus, ..Settings::default() };
        for format in [FormatId::OPUS, FormatId::SPEEX, FormatId::SPEEX16] {
            let samples = format.rate().0 as usize / 50;
            if format != FormatId::OPUS
                && let Err(why) = bound::speex::available()
            {
                println!("skipped: {format}: {why}");
                continue;
            }
            let count = |settings: &Settings| {
                let mut encoder = Encoder::with(format, settings, &Wishes::default());
                let mut room = [0; base::VARIABLE_BYTES_MAX];
                (0..200).filter(|_| encoder.encode(&vec![0; samples], &mut room) > 0).count()
            };
            assert_eq!(count(&Settings::default()), 200, "{format}");
            let sent = count(&settings);
            assert!(sent < 120, "{format}: {sent} of 200 packets");
        }
    }

    #[test]
    fn rfc7587_6_1_opus_obeys_the_peer_within_our_own_bounds() {
        let ours = OpusSettings { bitrate: Some(32_000), playback_rate: 16_000, ..OpusSettings::default() };
        let theirs = Wishes { bitrate: Some(20_000), fec: true, dtx: true, ..Wishes::default() };
        let both = opus_options(&ours, &theirs);
        assert_eq!((both.bitrate, both.playback_rate), (Some(20_000), 16_000));
        assert_eq!((both.fec, both.dtx, both.constant), (true, true, false));
        let silent = opus_options(&ours, &Wishes::default());
        assert_eq!((silent.bitrate, silent.fec, silent.dtx), (Some(32_000), false, false));
        let no_fec = opus_options(&OpusSettings { fec: false, ..ours }, &theirs);
        assert!(!no_fec.fec);
        let mut encoder = Encoder::with(
            FormatId::OPUS,
            &Settings::default(),
            &Wishes { bitrate: Some(16_000), constant: true, ..Wishes::default() },
        );
        let mut room = [0; base::VARIABLE_BYTES_MAX];
        let pcm = sine(440.0, 48_000, 9000.0, 960);
        assert_eq!(encoder.encode(&pcm, &mut room), 40, "16 kbit/s for 20 ms");
    }

    #[test]
    fn the_enhancers_are_settings() {
        let pcm = sine(200.0, 8000, 9000.0, 240 * 20);
        for (format, settings) in [
            (
                FormatId::ILBC,
                Settings { ilbc: crate::IlbcSettings { enhancer: true, fast: false }, ..Settings::default() },
            ),
            (
                FormatId::ILBC30,
                Settings { ilbc: crate::IlbcSettings { enhancer: true, fast: false }, ..Settings::default() },
            ),
            (
                FormatId::SPEEX,
                Settings {
                    speex: SpeexSettings { enhancement: false, ..SpeexSettings::default() },
                    ..Settings::default()
                },
            ),
        ] {
            let frame = format.granule();
            let decode = |settings: &Settings| {
                let (mut encoder, mut decoder) = (Encoder::new(format), Decoder::with(format, settings));
                let mut heard = Vec::new();
                for pcm in pcm.chunks_exact(frame.samples) {
                    let (mut coded, mut linear) = (vec![0; frame.bytes], vec![0; frame.samples]);
                    encoder.encode(pcm, &mut coded);
                    decoder.decode(&coded, &mut linear);
                    decoder.reset_if(heard.len() == frame.samples * 4);
                    heard.extend(linear);
                }
                heard
            };
            assert_ne!(decode(&settings), decode(&Settings::default()), "{format}");
        }
    }

    impl Decoder {
        /// A decoder that begins anew keeps its settings.
        fn reset_if(&mut self, reset: bool) {
            if reset {
                self.reset();
            }
        }
    }

    #[test]
    fn states_are_small() {
        assert!(size_of::<g722::Decoder>() + size_of::<g722::Encoder>() <= 1024);
        assert!(size_of::<gsm::Decoder>() <= 1024 && size_of::<gsm::Encoder>() <= 1024);
        assert!(size_of::<Encoder>() <= 32 && size_of::<Decoder>() <= 80);
    }
}
