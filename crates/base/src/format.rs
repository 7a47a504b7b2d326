//! Media formats as interned ids: a closed set fixed at build time, compared as one byte.
//!
//! What a peer wrote in its `fmtp` line lives in the stream's plan, so nothing from outside can grow this table.

use crate::audio::SampleRate;

/// How samples are coded, without the rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Codec {
    /// G.711 µ-law.
    Ulaw,
    /// G.711 A-law.
    Alaw,
    /// GSM 06.10 full rate, 33 bytes a 20 ms frame.
    Gsm,
    /// G.722 at 64 kbit/s.
    G722,
    /// Signed linear, 16 bit; network byte order on the wire, native order in memory.
    Slin,
    /// iLBC in frames of 20 ms (RFC 3951, 15.2 kbit/s).
    Ilbc20,
    /// iLBC in frames of 30 ms (RFC 3951, 13.33 kbit/s).
    Ilbc30,
    /// Speex: narrow, wide or ultra-wide band by the rate (RFC 5574).
    Speex,
    /// G.726 at 32 kbit/s, the older code word in the low bits of a byte (RFC 3551 §4.5.4).
    G726,
    /// G.726 at 32 kbit/s, the older code word in the high bits of a byte (ITU-T I.366.2 annex E, as AAL2 packs it).
    G726Aal2,
    /// Dialogic's ADPCM at 32 kbit/s, two code words a byte.
    Adpcm,
    /// LPC-10e at 2.4 kbit/s (FIPS 137), 7 bytes a frame of 22.5 ms.
    Lpc10,
    /// Opus (RFC 6716), coded and decoded at 48 kHz.
    Opus,
    /// Codec 2 at 2.4 kbit/s, 6 bytes a 20 ms frame.
    Codec2,
    /// G.723.1 in frames of 30 ms.
    G723,
    /// G.729 in frames of 10 ms.
    G729,
    /// AMR, bandwidth-efficient (RFC 4867).
    Amr,
    /// AMR-WB, bandwidth-efficient (RFC 4867).
    AmrWb,
    /// G.722.1 at 32 kbit/s (RFC 5577).
    Siren7,
    /// G.722.1 annex C at 48 kbit/s.
    Siren14,
    /// Moving pictures, whose format the table alone tells apart: nobody here looks into them.
    Picture,
}

/// Who codes and decodes a format in this build.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Coding {
    /// Our own code, streams of many calls side by side in SIMD lanes.
    Lanes,
    /// Our own code, stream by stream: a table or so little work that lanes would not pay.
    Native,
    /// A library in C.
    Bound,
    /// Nobody: coded bytes go from leg to leg as they are.
    PassThrough,
}

impl Coding {
    /// One word for tables: `lanes`, `native`, `bound`, `pass-through`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Lanes => "lanes",
            Self::Native => "native",
            Self::Bound => "bound",
            Self::PassThrough => "pass-through",
        }
    }
}

/// A codec at a rate. Equality of ids is equality of formats.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FormatId(u8);

/// Samples and bytes of the smallest piece that a format can be cut into. Formats of variable rate say what a usual one
/// has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Granule {
    /// Samples at the format's rate.
    pub samples: usize,
    /// Bytes.
    pub bytes: usize,
}

struct Row {
    name: &'static str,
    codec: Codec,
    rate: u32,
    coding: Coding,
    /// RTP: encoding name and clock (RFC 3551 table 4; G.722's clock is 8000 by erratum).
    rtp_name: &'static str,
    rtp_clock: u32,
    payload: Payload,
    granule: (u16, u16),
    description: &'static str,
}

/// Which RTP payload type a format goes by.
#[derive(Clone, Copy)]
enum Payload {
    /// Assigned by RFC 3551 table 4.
    Static(u8),
    /// What peers of the field expect in our offers; not binding.
    Usual(u8),
    /// Any dynamic one.
    Dynamic,
}
use Payload::{Dynamic, Static, Usual};

macro_rules! formats {
    ($($index:literal $konst:ident $name:literal $codec:ident $rate:literal $coding:ident
        $rtp:literal $clock:literal $pt:expr, $samples:literal/$bytes:literal $description:literal;)*
    video: $($video_index:literal $video:ident $video_name:literal $video_rtp:literal $video_pt:expr,
        $video_description:literal;)*) => {
        impl FormatId {
            $(#[doc = $description] pub const $konst: Self = Self($index);)*
            $(#[doc = $video_description] pub const $video: Self = Self($video_index);)*
            /// Every format of sound this build knows, in table order.
            pub const ALL: &'static [Self] = &[$(Self($index),)*];
            /// Every format of video that it passes through; they follow those of sound in the table.
            pub const VIDEO: &'static [Self] = &[$(Self($video_index),)*];
        }
        const TABLE: &[Row] = &[$(Row {
            name: $name, codec: Codec::$codec, rate: $rate, coding: Coding::$coding, rtp_name: $rtp, rtp_clock: $clock,
            payload: $pt, granule: ($samples, $bytes), description: $description,
        },)* $(Row {
            name: $video_name, codec: Codec::Picture, rate: VIDEO_CLOCK, coding: Coding::PassThrough, rtp_name: $video_rtp,
            rtp_clock: VIDEO_CLOCK, payload: $video_pt, granule: (VIDEO_STEP, 1), description: $video_description,
        },)*];
    };
}

/// Hertz of the RTP timestamps of all video (RFC 3551 §5).
const VIDEO_CLOCK: u32 = 90_000;
/// Pictures have no packet length; their streams are looked after in steps of 20 ms.
const VIDEO_STEP: u16 = 1800;

formats! {
    0 ULAW "ulaw" Ulaw 8000 Native "PCMU" 8000 Static(0), 1/1 "G.711 u-law";
    1 ALAW "alaw" Alaw 8000 Native "PCMA" 8000 Static(8), 1/1 "G.711 A-law";
    2 GSM "gsm" Gsm 8000 Lanes "GSM" 8000 Static(3), 160/33 "GSM";
    3 G722 "g722" G722 16000 Lanes "G722" 8000 Static(9), 2/1 "G722";
    4 SLIN "slin" Slin 8000 Native "L16" 8000 Dynamic, 1/2 "16 bit Signed Linear PCM";
    5 SLIN12 "slin12" Slin 12000 Native "L16" 12000 Dynamic, 1/2 "16 bit Signed Linear PCM (12kHz)";
    6 SLIN16 "slin16" Slin 16000 Native "L16" 16000 Usual(118), 1/2 "16 bit Signed Linear PCM (16kHz)";
    7 SLIN24 "slin24" Slin 24000 Native "L16" 24000 Dynamic, 1/2 "16 bit Signed Linear PCM (24kHz)";
    8 SLIN32 "slin32" Slin 32000 Native "L16" 32000 Dynamic, 1/2 "16 bit Signed Linear PCM (32kHz)";
    9 SLIN44 "slin44" Slin 44100 Native "L16" 44100 Static(11), 1/2 "16 bit Signed Linear PCM (44kHz)";
    10 SLIN48 "slin48" Slin 48000 Native "L16" 48000 Dynamic, 1/2 "16 bit Signed Linear PCM (48kHz)";
    11 ILBC "ilbc" Ilbc20 8000 Lanes "iLBC" 8000 Usual(97), 160/38 "iLBC";
    12 ILBC30 "ilbc30" Ilbc30 8000 Lanes "iLBC" 8000 Usual(97), 240/50 "iLBC (30 ms)";
    13 SPEEX "speex" Speex 8000 Lanes "speex" 8000 Usual(110), 160/20 "SpeeX";
    14 SPEEX16 "speex16" Speex 16000 Bound "speex" 16000 Usual(117), 320/25 "SpeeX 16khz";
    15 SPEEX32 "speex32" Speex 32000 Bound "speex" 32000 Usual(119), 640/30 "SpeeX 32khz";
    16 G726 "g726" G726 8000 Lanes "G726-32" 8000 Usual(111), 2/1 "G.726 RFC3551";
    17 G726AAL2 "g726aal2" G726Aal2 8000 Lanes "AAL2-G726-32" 8000 Usual(112), 2/1 "G.726 AAL2";
    18 ADPCM "adpcm" Adpcm 8000 Native "DVI4" 8000 Static(5), 2/1 "Dialogic ADPCM";
    19 LPC10 "lpc10" Lpc10 8000 Native "LPC" 8000 Static(7), 180/7 "LPC10";
    20 OPUS "opus" Opus 48000 Bound "opus" 48000 Usual(107), 960/80 "Opus Codec";
    21 CODEC2 "codec2" Codec2 8000 Bound "CODEC2" 8000 Dynamic, 160/6 "Codec 2";
    22 G723 "g723" G723 8000 PassThrough "G723" 8000 Static(4), 240/24 "G.723.1";
    23 G729 "g729" G729 8000 PassThrough "G729" 8000 Static(18), 80/10 "G.729A";
    24 AMR "amr" Amr 8000 PassThrough "AMR" 8000 Dynamic, 160/32 "AMR NB";
    25 AMRWB "amrwb" AmrWb 16000 PassThrough "AMR-WB" 16000 Dynamic, 320/61 "AMR WB";
    26 SIREN7 "siren7" Siren7 16000 PassThrough "G7221" 16000 Usual(102), 320/80 "ITU G.722.1 (Siren7, licensed from Polycom)";
    27 SIREN14 "siren14" Siren14 32000 PassThrough "G7221" 32000 Usual(115), 640/120 "ITU G.722.1 Annex C, (Siren14, licensed from Polycom)";
    video:
    28 H261 "h261" "H261" Static(31), "H.261 video";
    29 H263 "h263" "H263" Static(34), "H.263 video";
    30 H263P "h263p" "H263-1998" Usual(98), "H.263+ video";
    31 H264 "h264" "H264" Usual(99), "H.264 video";
    32 H265 "h265" "H265" Dynamic, "H.265 video";
    33 MPEG4 "mpeg4" "MP4V-ES" Usual(104), "MPEG4 video";
    34 VP8 "vp8" "VP8" Usual(108), "VP8 video";
    35 VP9 "vp9" "VP9" Dynamic, "VP9 video";
    36 AV1 "av1" "AV1" Dynamic, "AV1 video";
}

/// Other names of the field for formats.
const ALIASES: &[(&str, FormatId)] = &[
    ("mulaw", FormatId::ULAW),
    ("g711u", FormatId::ULAW),
    ("pcmu", FormatId::ULAW),
    ("g711a", FormatId::ALAW),
    ("pcma", FormatId::ALAW),
    ("slin8", FormatId::SLIN),
    ("slinear", FormatId::SLIN),
    ("gsm0610", FormatId::GSM),
    ("g726-32", FormatId::G726),
    ("g723.1", FormatId::G723),
    ("g729a", FormatId::G729),
    ("g729b", FormatId::G729),
    ("ilbc20", FormatId::ILBC),
    ("speex8", FormatId::SPEEX),
    ("amr-wb", FormatId::AMRWB),
];

impl FormatId {
    /// The formats that this build can decode and encode, in table order.
    pub fn coded() -> impl Iterator<Item = Self> {
        Self::ALL.iter().copied().filter(|id| id.is_coded())
    }
    fn row(self) -> &'static Row {
        // The field is private and only the table mints ids, so the fallback is never taken.
        TABLE.get(usize::from(self.0)).unwrap_or(&TABLE[0])
    }
    /// The name `allow=` and `core show codecs` use.
    pub fn name(self) -> &'static str {
        self.row().name
    }
    /// The codec's name, which formats at several rates or in several modes share (`speex` of `speex16`).
    pub fn codec_name(self) -> &'static str {
        match self.row().codec {
            Codec::Slin => "slin",
            Codec::Speex => "speex",
            Codec::Ilbc30 => "ilbc",
            _ => self.row().name,
        }
    }
    /// The name `core show codecs` prints beside it.
    pub fn description(self) -> &'static str {
        self.row().description
    }
    /// The format an administrator names in `allow=`; any case, with the field's aliases (`g711u`, `mulaw`, `pcma`, `slin8`).
    pub fn from_name(name: &str) -> Option<Self> {
        let name = name.trim();
        let alias = ALIASES.iter().find(|(alias, _)| alias.eq_ignore_ascii_case(name)).map(|&(_, id)| id);
        alias.or_else(|| Self::ALL.iter().copied().find(|id| id.name().eq_ignore_ascii_case(name)))
    }
    /// The video format an administrator names in `allow=`, in any case.
    pub fn video_from_name(name: &str) -> Option<Self> {
        Self::VIDEO.iter().copied().find(|id| id.name().eq_ignore_ascii_case(name.trim()))
    }
    /// Whether it is one of [`Self::VIDEO`].
    pub fn is_video(self) -> bool {
        self.row().codec == Codec::Picture
    }
    /// How samples are coded.
    pub fn codec(self) -> Codec {
        self.row().codec
    }
    /// Who codes it in this build.
    pub fn coding(self) -> Coding {
        self.row().coding
    }
    /// Whether this build can decode and encode it by itself, so that it can be heard, recorded, mixed and turned into
    /// others. A running system may have codecs besides: [`Coded`].
    pub fn is_coded(self) -> bool {
        self.row().coding != Coding::PassThrough
    }
    /// Rate of the decoded samples.
    pub fn rate(self) -> SampleRate {
        SampleRate(self.row().rate)
    }
    /// Encoding name in `a=rtpmap` (RFC 3551 table 4).
    pub fn rtp_name(self) -> &'static str {
        self.row().rtp_name
    }
    /// Hertz of the RTP timestamp; differs from `rate` for G.722 (RFC 3551 §4.5.2).
    pub fn rtp_clock(self) -> u32 {
        self.row().rtp_clock
    }
    /// Static RTP payload type (RFC 3551 table 4), when the format has one.
    pub fn static_payload(self) -> Option<u8> {
        match self.row().payload {
            Static(payload) => Some(payload),
            Usual(_) | Dynamic => None,
        }
    }
    /// The payload type that our offers give the format when it is free: its static one, or that of the field's habit.
    pub fn usual_payload(self) -> Option<u8> {
        match self.row().payload {
            Static(payload) | Usual(payload) => Some(payload),
            Dynamic => None,
        }
    }
    /// The format a static payload type stands for without an `a=rtpmap`.
    pub fn from_static_payload(payload: u8) -> Option<Self> {
        Self::ALL.iter().copied().find(|id| id.static_payload() == Some(payload))
    }
    /// The format an `a=rtpmap` names, encoding name in any case. [`Self::refined`] takes `a=fmtp` into account.
    pub fn from_rtpmap(name: &str, clock: u32) -> Option<Self> {
        Self::ALL
            .iter()
            .copied()
            .find(|id| id.rtp_name().eq_ignore_ascii_case(name) && id.rtp_clock() == clock)
    }
    /// The video format a static payload type stands for without an `a=rtpmap` (RFC 3551 table 5).
    pub fn video_from_static_payload(payload: u8) -> Option<Self> {
        Self::VIDEO.iter().copied().find(|id| id.static_payload() == Some(payload))
    }
    /// The video format an `a=rtpmap` names, encoding name in any case.
    pub fn video_from_rtpmap(name: &str, clock: u32) -> Option<Self> {
        Self::VIDEO
            .iter()
            .copied()
            .find(|id| id.rtp_name().eq_ignore_ascii_case(name) && id.rtp_clock() == clock)
    }
    /// What we write in `a=fmtp`, when the format wants one.
    pub fn fmtp(self) -> Option<&'static str> {
        Some(match self.row().codec {
            Codec::Ilbc20 => "mode=20",
            Codec::Ilbc30 => "mode=30",
            Codec::Siren7 => "bitrate=32000",
            Codec::Siren14 => "bitrate=48000",
            Codec::G723 => "annexa=no",
            Codec::G729 => "annexb=no",
            Codec::Opus => "useinbandfec=1",
            _ => return None,
        })
    }
    /// The format that the same `a=rtpmap` stands for with these parameters of the peer's `a=fmtp` (empty: none);
    /// `None` when they ask for a coding that is not in the table.
    pub fn refined(self, fmtp: &[u8]) -> Option<Self> {
        let is = |name: &[u8], value: &[u8]| parameter(fmtp, name).is_none_or(|given| given == value);
        match self.row().codec {
            // Without a mode the peer means 30 ms (RFC 3952 §4.1).
            Codec::Ilbc20 | Codec::Ilbc30 => match parameter(fmtp, b"mode") {
                Some(b"20") => Some(Self::ILBC),
                Some(b"30") | None => Some(Self::ILBC30),
                Some(_) => None,
            },
            Codec::Siren7 => is(b"bitrate", b"32000").then_some(self),
            Codec::Siren14 => is(b"bitrate", b"48000").then_some(self),
            Codec::Amr | Codec::AmrWb => {
                let plain =
                    [&b"octet-align"[..], b"crc", b"robust-sorting"].iter().all(|name| is(name, b"0"));
                (plain && parameter(fmtp, b"interleaving").is_none()).then_some(self)
            }
            _ => Some(self),
        }
    }
    /// Shortest packet, milliseconds, that a peer with this `a=fmtp` wants: `minptime` of Opus (RFC 7587 §6.1); else 0.
    pub fn least_ms(self, fmtp: &[u8]) -> u8 {
        let asked = parameter(fmtp, b"minptime").filter(|_| self.codec() == Codec::Opus);
        asked.and_then(decimal).and_then(|ms| u8::try_from(ms).ok()).unwrap_or(0)
    }
    /// What two sides use that name these formats for one codec: equal ones, or iLBC in frames of 30 ms when either
    /// wants those (RFC 3952 §5).
    pub fn agreed(self, other: Self) -> Option<Self> {
        let ilbc = |id: Self| matches!(id.row().codec, Codec::Ilbc20 | Codec::Ilbc30);
        match (self == other, ilbc(self) && ilbc(other)) {
            (true, _) => Some(self),
            (false, true) => Some(Self::ILBC30),
            (false, false) => None,
        }
    }
    /// The smallest piece that can be cut apart: one sample, or one frame of the codec.
    pub fn granule(self) -> Granule {
        let (samples, bytes) = self.row().granule;
        Granule { samples: usize::from(samples), bytes: usize::from(bytes) }
    }
    /// Whether every granule has the same number of bytes.
    pub fn is_constant(self) -> bool {
        !matches!(
            self.row().codec,
            Codec::Speex
                | Codec::Opus
                | Codec::G723
                | Codec::G729
                | Codec::Amr
                | Codec::AmrWb
                | Codec::Picture
        )
    }
    /// Packets last a multiple of so many milliseconds: 10, or two or three times that where a codec's frame is longer.
    /// The frames of LPC10 do not end on a millisecond before the second one.
    pub fn packet_step_ms(self) -> u8 {
        match self.row().codec {
            Codec::Lpc10 => 45,
            _ => {
                let Granule { samples, .. } = self.granule();
                (samples * 1000).div_ceil(self.row().rate as usize).next_multiple_of(10) as u8
            }
        }
    }
    /// Longest packet that is asked for, milliseconds (`a=maxptime`), as the field has it for each codec.
    pub fn longest_ms(self) -> u16 {
        match self.row().codec {
            Codec::Ulaw | Codec::Alaw | Codec::G722 => 140,
            Codec::Slin => 70,
            Codec::Speex | Codec::Opus => 60,
            Codec::Siren7 | Codec::Siren14 => 80,
            Codec::Lpc10 | Codec::Codec2 | Codec::Amr | Codec::AmrWb => {
                20.max(u16::from(self.packet_step_ms()))
            }
            Codec::G729 => 230,
            Codec::Gsm
            | Codec::Ilbc20
            | Codec::Ilbc30
            | Codec::G726
            | Codec::G726Aal2
            | Codec::Adpcm
            | Codec::G723
            | Codec::Picture => 300,
        }
    }
    /// How long a packet usually is, milliseconds: 20, or the shortest one of a codec whose frames do not divide it.
    pub fn usual_ms(self) -> u8 {
        let step = self.packet_step_ms();
        if 20 % step == 0 { 20 } else { step }
    }
    /// Bytes that code `ms` milliseconds, in whole frames of the codec, rounded down.
    pub fn bytes_in(self, ms: u16) -> usize {
        let Granule { samples, bytes } = self.granule();
        self.row().rate as usize * usize::from(ms) / 1000 / samples * bytes
    }
    /// Room for a coded packet of `ms`: [`Self::bytes_in`], or as much as a packet of variable rate may have.
    pub fn packet_room(self, ms: u16) -> usize {
        if self.is_constant() { self.bytes_in(ms) } else { VARIABLE_BYTES_MAX }
    }
    /// The format that clips for streams of this one are kept in: itself, or linear where frames have no fixed size.
    pub fn clip(self) -> Self {
        if self.is_constant() || !self.is_coded() { self } else { self.linear() }
    }
    /// Whether the coded bytes are the samples themselves.
    pub fn is_linear(self) -> bool {
        matches!(self.row().codec, Codec::Slin)
    }
    /// Signed linear at this format's rate.
    pub fn linear(self) -> Self {
        let rate = self.row().rate;
        Self::ALL.iter().copied().find(|id| id.is_linear() && id.row().rate == rate).unwrap_or(Self::SLIN)
    }
    /// Index in the table, for arrays with a slot a format; of sound less than `FormatId::ALL.len()`.
    pub fn index(self) -> usize {
        usize::from(self.0)
    }
}

/// Longest packet that an encoder of variable rate makes, bytes: 60 ms at 85 kbit/s.
pub const VARIABLE_BYTES_MAX: usize = 640;

/// The value of a parameter of `a=fmtp`: `name=value` pairs that semicolons part (RFC 8866 §6.15), in any case.
fn parameter<'a>(fmtp: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    fmtp.split(|&b| b == b';').find_map(|pair| {
        let at = pair.iter().position(|&b| b == b'=')?;
        let (key, value) = pair.split_at_checked(at)?;
        key.trim_ascii().eq_ignore_ascii_case(name).then(|| value.get(1..).unwrap_or_default().trim_ascii())
    })
}

/// Formats that a running system decodes and encodes: those of this build, and those of external codecs that it has
/// started. Decided at start and reload; one word, compared by bit.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Coded(u64);
const _: () = assert!(TABLE.len() <= u64::BITS as usize);

impl Default for Coded {
    /// Those of this build.
    fn default() -> Self {
        FormatId::coded().fold(Self(0), Self::with)
    }
}

impl Coded {
    /// These, and one more.
    #[must_use]
    pub const fn with(self, format: FormatId) -> Self {
        Self(self.0 | 1 << format.0)
    }
    /// These without one.
    #[must_use]
    pub const fn without(self, format: FormatId) -> Self {
        Self(self.0 & !(1 << format.0))
    }
    /// Whether it can be heard, mixed and turned into others.
    pub const fn contains(self, format: FormatId) -> bool {
        self.0 >> format.0 & 1 != 0
    }
    /// Whether sound in one format can be sent in the other: it is the same, or somebody codes both.
    pub fn leads(self, from: FormatId, to: FormatId) -> bool {
        from == to || (self.contains(from) && self.contains(to))
    }
    /// In table order.
    pub fn iter(self) -> impl Iterator<Item = FormatId> {
        FormatId::ALL.iter().copied().filter(move |format| self.contains(*format))
    }
    /// The format in which sound is made for streams of this one: [`FormatId::clip`], and linear for an external codec,
    /// which codes for each listener.
    pub fn clip(self, format: FormatId) -> FormatId {
        if self.contains(format) && !format.is_coded() { format.linear() } else { format.clip() }
    }
}

impl core::fmt::Debug for Coded {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}

impl core::fmt::Debug for FormatId {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(self.name())
    }
}

impl core::fmt::Display for FormatId {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(self.name())
    }
}

/// What a peer wishes of our encoder beyond the format, as its `a=fmtp` says. Formats without such parameters have none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wishes {
    /// Bits a second at most on average; `None` for what suits the sound.
    pub bitrate: Option<u32>,
    /// Highest rate of samples that the peer can play, in Hz.
    pub playback_rate: u32,
    /// Whether packets carry a coarse copy of the frame before.
    pub fec: bool,
    /// Whether little is sent in silence.
    pub dtx: bool,
    /// Whether each packet is equally long.
    pub constant: bool,
}

impl Default for Wishes {
    /// Of a peer that wrote nothing (RFC 7587 §6.1).
    fn default() -> Self {
        Self { bitrate: None, playback_rate: 48_000, fec: false, dtx: false, constant: false }
    }
}

/// Bounds of Opus's bit rate (RFC 7587 §6.1), in bits a second.
const OPUS_BITRATES: core::ops::RangeInclusive<u32> = 6000..=510_000;
/// Bounds of `maxplaybackrate` (RFC 7587 §6.1), in Hz.
const PLAYBACK_RATES: core::ops::RangeInclusive<u32> = 8000..=48_000;

impl Wishes {
    /// Reads a peer's `a=fmtp` for this format: of Opus `maxaveragebitrate`, `maxplaybackrate`, `useinbandfec`, `usedtx`
    /// and `cbr` (RFC 7587 §6.1).
    ///
    /// What is out of bounds or no number is as if it were not there. `stereo=1` allows two channels and asks for none.
    pub fn read(format: FormatId, fmtp: &[u8]) -> Self {
        if format.codec() != Codec::Opus {
            return Self::default();
        }
        let number = |name: &[u8]| parameter(fmtp, name).and_then(decimal);
        let is_on = |name: &[u8]| number(name) == Some(1);
        Self {
            bitrate: number(b"maxaveragebitrate").filter(|rate| OPUS_BITRATES.contains(rate)),
            playback_rate: number(b"maxplaybackrate")
                .filter(|rate| PLAYBACK_RATES.contains(rate))
                .unwrap_or(*PLAYBACK_RATES.end()),
            fec: is_on(b"useinbandfec"),
            dtx: is_on(b"usedtx"),
            constant: is_on(b"cbr"),
        }
    }
}

/// A decimal number of at most nine digits.
fn decimal(text: &[u8]) -> Option<u32> {
    let digits = (1..=9).contains(&text.len()) && text.iter().all(u8::is_ascii_digit);
    digits.then(|| text.iter().fold(0, |sum, digit| sum * 10 + u32::from(digit - b'0')))
}

/// An ordered list of formats without repeats, all of sound or all of video: `allow=`/`disallow=` in order of preference.
/// `Copy`, no allocation.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct FormatSet {
    list: [u8; FormatId::ALL.len()],
    len: u8,
}

impl FormatSet {
    /// No format.
    pub const EMPTY: Self = Self { list: [0; FormatId::ALL.len()], len: 0 };

    /// Formats in order of preference.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = FormatId> + '_ {
        self.list.iter().take(usize::from(self.len)).map(|&index| FormatId(index))
    }
    /// Adds at the end unless it is there.
    pub fn push(&mut self, format: FormatId) {
        if self.contains(format) {
            return;
        }
        if let Some(slot) = self.list.get_mut(usize::from(self.len)) {
            *slot = format.0;
            self.len += 1;
        }
    }
    /// Takes one out; the rest keep their order.
    pub fn remove(&mut self, format: FormatId) {
        let kept: Self = self.iter().filter(|&f| f != format).collect();
        *self = kept;
    }
    /// Whether `format` is in the list.
    pub fn contains(&self, format: FormatId) -> bool {
        self.iter().any(|f| f == format)
    }
    /// The most preferred format.
    pub fn first(&self) -> Option<FormatId> {
        self.iter().next()
    }
    /// How many formats.
    pub fn len(&self) -> usize {
        usize::from(self.len)
    }
    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
}

impl FromIterator<FormatId> for FormatSet {
    fn from_iter<I: IntoIterator<Item = FormatId>>(formats: I) -> Self {
        let mut set = Self::EMPTY;
        formats.into_iter().for_each(|format| set.push(format));
        set
    }
}

impl core::fmt::Debug for FormatSet {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_sits_at_its_own_index_and_is_found_by_name_rtpmap_and_fmtp() {
        for (index, &id) in FormatId::ALL.iter().enumerate() {
            assert_eq!(id.index(), index, "{id}");
            assert_eq!(FormatId::from_name(id.name()), Some(id), "{id}");
            let named = FormatId::from_rtpmap(id.rtp_name(), id.rtp_clock());
            let fmtp = id.fmtp().unwrap_or_default().as_bytes();
            assert_eq!(named.and_then(|named| named.refined(fmtp)), Some(id), "{id}");
            assert_eq!(id.linear().rate(), id.rate(), "{id}");
            assert!(id.usual_payload().is_none_or(|payload| payload < 128), "{id}");
        }
        assert_eq!(FormatId::from_static_payload(9), Some(FormatId::G722));
        assert_eq!(FormatId::from_static_payload(97), None, "a habit is no assignment");
        assert_eq!(FormatId::from_name("G711U"), Some(FormatId::ULAW));
        assert_eq!(FormatId::from_name("g729a"), Some(FormatId::G729));
        assert_eq!(FormatId::from_name("silk8"), None);
    }

    #[test]
    fn rfc3551_table_5_video_is_known_by_its_own_names_and_numbers_only() {
        for (at, &id) in FormatId::VIDEO.iter().enumerate() {
            assert_eq!(id.index(), FormatId::ALL.len() + at, "{id}");
            assert_eq!(FormatId::video_from_name(&id.name().to_ascii_uppercase()), Some(id), "{id}");
            assert_eq!(FormatId::video_from_rtpmap(&id.rtp_name().to_ascii_lowercase(), 90_000), Some(id));
            assert_eq!(
                (FormatId::from_name(id.name()), FormatId::from_rtpmap(id.rtp_name(), 90_000)),
                (None, None)
            );
            assert!(id.is_video() && !id.is_coded() && !id.is_constant(), "{id}");
            assert!(!Coded::default().contains(id) && !Coded::default().leads(id, FormatId::ULAW), "{id}");
            assert_eq!((id.rtp_clock(), id.packet_step_ms()), (90_000, 20), "{id}");
        }
        assert!(FormatId::ALL.iter().all(|id| !id.is_video()));
        for (payload, expected) in
            [(31, Some(FormatId::H261)), (34, Some(FormatId::H263)), (99, None), (0, None)]
        {
            assert_eq!(FormatId::video_from_static_payload(payload), expected, "{payload}");
        }
        assert_eq!((FormatId::from_static_payload(31), FormatId::video_from_name("ulaw")), (None, None));
    }

    #[test]
    fn a_format_codes_this_many_bytes_in_60_ms_and_packets_have_whole_frames() {
        for (format, bytes, step) in [
            (FormatId::ULAW, 480, 10),
            (FormatId::GSM, 99, 20),
            (FormatId::SLIN48, 5760, 10),
            (FormatId::G722, 480, 10),
            (FormatId::ILBC, 114, 20),
            (FormatId::ILBC30, 100, 30),
            (FormatId::G726, 240, 10),
            (FormatId::OPUS, 240, 20),
            (FormatId::G723, 48, 30),
            (FormatId::G729, 60, 10),
            (FormatId::SIREN14, 360, 20),
        ] {
            assert_eq!((format.bytes_in(60), format.packet_step_ms()), (bytes, step), "{format}");
        }
        assert_eq!((FormatId::LPC10.bytes_in(45), FormatId::LPC10.packet_step_ms()), (14, 45));
    }

    #[test]
    fn rfc3952_4_1_parameters_tell_codings_of_one_name_apart() {
        for (format, fmtp, expected) in [
            (FormatId::ILBC, "mode=20", Some(FormatId::ILBC)),
            (FormatId::ILBC, " Mode = 30 ;x=1", Some(FormatId::ILBC30)),
            (FormatId::ILBC, "", Some(FormatId::ILBC30)),
            (FormatId::ILBC, "mode=25", None),
            (FormatId::SIREN7, "bitrate=24000", None),
            (FormatId::SIREN7, "", Some(FormatId::SIREN7)),
            (FormatId::AMR, "mode-set=7; octet-align=0", Some(FormatId::AMR)),
            (FormatId::AMR, "octet-align=1", None),
            (FormatId::AMRWB, "interleaving=30", None),
            (FormatId::ULAW, "anything", Some(FormatId::ULAW)),
        ] {
            assert_eq!(format.refined(fmtp.as_bytes()), expected, "{format} {fmtp}");
        }
        for (one, other, expected) in [
            (FormatId::ILBC, FormatId::ILBC, Some(FormatId::ILBC)),
            (FormatId::ILBC, FormatId::ILBC30, Some(FormatId::ILBC30)),
            (FormatId::ILBC30, FormatId::ILBC, Some(FormatId::ILBC30)),
            (FormatId::ULAW, FormatId::ALAW, None),
        ] {
            assert_eq!(one.agreed(other), expected, "{one} {other}");
        }
    }

    #[test]
    fn rfc7587_6_1_parameters_of_the_peer_are_read_and_nonsense_is_not() {
        let plain = Wishes::default();
        for (fmtp, expected) in [
            ("", plain),
            ("useinbandfec=1;usedtx=1", Wishes { fec: true, dtx: true, ..plain }),
            (" maxaveragebitrate=20000 ; CBR=1", Wishes { bitrate: Some(20_000), constant: true, ..plain }),
            ("maxplaybackrate=16000; stereo=0; sprop-stereo=1", Wishes { playback_rate: 16_000, ..plain }),
            ("maxaveragebitrate=1", plain),
            ("maxaveragebitrate=99999999999999999999", plain),
            ("maxplaybackrate=-1;usedtx=yes;cbr;=;;;useinbandfec=0", plain),
        ] {
            assert_eq!(Wishes::read(FormatId::OPUS, fmtp.as_bytes()), expected, "{fmtp}");
        }
        assert_eq!(Wishes::read(FormatId::ULAW, b"usedtx=1"), plain);
        assert_eq!(FormatId::OPUS.least_ms(b"minptime=40; x"), 40);
        assert_eq!(
            (FormatId::OPUS.least_ms(b"minptime=4000"), FormatId::ULAW.least_ms(b"minptime=40")),
            (0, 0)
        );
    }

    #[test]
    fn an_external_codec_makes_its_format_coded_and_its_prompts_linear() {
        let built_in = Coded::default();
        assert!(!built_in.contains(FormatId::G729) && built_in.contains(FormatId::OPUS));
        assert!(
            built_in.leads(FormatId::G729, FormatId::G729) && !built_in.leads(FormatId::G729, FormatId::ULAW)
        );
        let with = built_in.with(FormatId::G729);
        assert!(with.leads(FormatId::G729, FormatId::ULAW) && !with.leads(FormatId::G729, FormatId::G723));
        for (coded, format, clip) in [
            (built_in, FormatId::G729, FormatId::G729),
            (with, FormatId::G729, FormatId::SLIN),
            (with, FormatId::OPUS, FormatId::SLIN48),
            (with, FormatId::GSM, FormatId::GSM),
            (with.with(FormatId::SIREN14), FormatId::SIREN14, FormatId::SLIN32),
        ] {
            assert_eq!(coded.clip(format), clip, "{format}");
        }
    }

    #[test]
    fn a_set_keeps_order_and_drops_repeats() {
        let mut set: FormatSet = [FormatId::ALAW, FormatId::ULAW, FormatId::ALAW].into_iter().collect();
        assert_eq!(set.iter().collect::<Vec<_>>(), [FormatId::ALAW, FormatId::ULAW]);
        set.remove(FormatId::ALAW);
        assert_eq!(set.first(), Some(FormatId::ULAW));
        assert_eq!(set.len(), 1);
    }
}
