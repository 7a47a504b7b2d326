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
}

/// A codec at a rate. Equality of ids is equality of formats.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FormatId(u8);

struct Row {
    name: &'static str,
    codec: Codec,
    rate: u32,
    /// RTP: encoding name and clock (RFC 3551 table 4; G.722's clock is 8000 by erratum).
    rtp_name: &'static str,
    rtp_clock: u32,
    static_payload: Option<u8>,
    /// Bytes that code 10 ms, times two so that GSM's 16.5 is whole.
    bytes_20ms: u16,
    description: &'static str,
}

macro_rules! formats {
    ($($index:literal $konst:ident $name:literal $codec:ident $rate:literal $rtp:literal $clock:literal $pt:expr, $bytes:literal $description:literal;)*) => {
        impl FormatId {
            $(#[doc = $description] pub const $konst: Self = Self($index);)*
            /// Every format this build knows, in table order.
            pub const ALL: &'static [Self] = &[$(Self($index),)*];
        }
        const TABLE: &[Row] = &[$(Row {
            name: $name, codec: Codec::$codec, rate: $rate, rtp_name: $rtp, rtp_clock: $clock,
            static_payload: $pt, bytes_20ms: $bytes, description: $description,
        },)*];
    };
}

formats! {
    0 ULAW "ulaw" Ulaw 8000 "PCMU" 8000 Some(0), 160 "G.711 u-law";
    1 ALAW "alaw" Alaw 8000 "PCMA" 8000 Some(8), 160 "G.711 A-law";
    2 GSM "gsm" Gsm 8000 "GSM" 8000 Some(3), 33 "GSM 06.10";
    3 G722 "g722" G722 16000 "G722" 8000 Some(9), 160 "G.722 at 64 kbit/s";
    4 SLIN "slin" Slin 8000 "L16" 8000 None, 320 "16 bit Signed Linear PCM";
    5 SLIN12 "slin12" Slin 12000 "L16" 12000 None, 480 "16 bit Signed Linear PCM (12kHz)";
    6 SLIN16 "slin16" Slin 16000 "L16" 16000 None, 640 "16 bit Signed Linear PCM (16kHz)";
    7 SLIN24 "slin24" Slin 24000 "L16" 24000 None, 960 "16 bit Signed Linear PCM (24kHz)";
    8 SLIN32 "slin32" Slin 32000 "L16" 32000 None, 1280 "16 bit Signed Linear PCM (32kHz)";
    9 SLIN44 "slin44" Slin 44100 "L16" 44100 Some(11), 1764 "16 bit Signed Linear PCM (44kHz)";
    10 SLIN48 "slin48" Slin 48000 "L16" 48000 None, 1920 "16 bit Signed Linear PCM (48kHz)";
}

impl FormatId {
    fn row(self) -> &'static Row {
        // The field is private and only the table mints ids, so the fallback is never taken.
        TABLE.get(usize::from(self.0)).unwrap_or(&TABLE[0])
    }
    /// The name `allow=` and `core show codecs` use.
    pub fn name(self) -> &'static str {
        self.row().name
    }
    /// The name `core show codecs` prints beside it.
    pub fn description(self) -> &'static str {
        self.row().description
    }
    /// The format an administrator names in `allow=`; any case, with the field's aliases (`g711u`, `mulaw`, `pcma`, `slin8`).
    pub fn from_name(name: &str) -> Option<Self> {
        let name = name.trim().to_ascii_lowercase();
        let name = match name.as_str() {
            "mulaw" | "g711u" | "pcmu" => "ulaw",
            "g711a" | "pcma" => "alaw",
            "slin8" | "slinear" => "slin",
            "gsm0610" => "gsm",
            other => other,
        };
        Self::ALL.iter().copied().find(|id| id.name() == name)
    }
    /// How samples are coded.
    pub fn codec(self) -> Codec {
        self.row().codec
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
        self.row().static_payload
    }
    /// The format a static payload type stands for without an `a=rtpmap`.
    pub fn from_static_payload(payload: u8) -> Option<Self> {
        Self::ALL.iter().copied().find(|id| id.static_payload() == Some(payload))
    }
    /// The format an `a=rtpmap` names, encoding name in any case.
    pub fn from_rtpmap(name: &str, clock: u32) -> Option<Self> {
        Self::ALL
            .iter()
            .copied()
            .find(|id| id.rtp_name().eq_ignore_ascii_case(name) && id.rtp_clock() == clock)
    }
    /// Bytes that code `ms` milliseconds; GSM in whole 20 ms frames, rounded down.
    pub fn bytes_in(self, ms: u16) -> usize {
        let row = self.row();
        match row.codec {
            Codec::Gsm => usize::from(row.bytes_20ms) * usize::from(ms / 20),
            _ => usize::from(row.bytes_20ms) * usize::from(ms) / 20,
        }
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
    /// Index in the table, for arrays with a slot a format; less than `FormatId::ALL.len()`.
    pub fn index(self) -> usize {
        usize::from(self.0)
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

/// An ordered list of formats without repeats: `allow=`/`disallow=` in order of preference. `Copy`, no allocation.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct FormatSet {
    list: [u8; TABLE.len()],
    len: u8,
}

impl FormatSet {
    /// No format.
    pub const EMPTY: Self = Self { list: [0; TABLE.len()], len: 0 };

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
    fn every_row_sits_at_its_own_index_and_is_found_by_name_and_rtpmap() {
        for (index, &id) in FormatId::ALL.iter().enumerate() {
            assert_eq!(id.index(), index, "{id}");
            assert_eq!(FormatId::from_name(id.name()), Some(id), "{id}");
            assert_eq!(FormatId::from_rtpmap(id.rtp_name(), id.rtp_clock()), Some(id), "{id}");
            assert_eq!(id.linear().rate(), id.rate(), "{id}");
        }
        assert_eq!(FormatId::from_static_payload(9), Some(FormatId::G722));
        assert_eq!(FormatId::from_name("G711U"), Some(FormatId::ULAW));
        assert_eq!(FormatId::from_name("g729"), None);
    }

    #[test]
    fn a_format_codes_this_many_bytes_in_20_ms() {
        for (format, bytes) in
            [(FormatId::ULAW, 160), (FormatId::GSM, 33), (FormatId::SLIN48, 1920), (FormatId::G722, 160)]
        {
            assert_eq!(format.bytes_in(20), bytes, "{format}");
            assert_eq!(format.bytes_in(60), bytes * 3, "{format}");
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
