//! Media formats on the wire: one bit each (RFC 5456 §8.7, and those that the field added), and their order of preference.

use base::FormatId;

/// A set of formats, a bit each; as a single format, exactly one bit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Media(pub u64);

struct Row {
    bit: u8,
    format: Option<FormatId>,
}

/// The letter of the first row in a list of preferences; 0 is nobody's place.
const FIRST_LETTER: u8 = b'B';

/// Formats in the order that lists of preferences number them.
///
/// RFC 5456 §8.7 gives bit 4 to G.726 and bit 11 to its AAL2 packing; every peer of the field and tshark have them the
/// other way round, and so has this table. iLBC is that of 30 ms (50 bytes per 240 samples).
const ROWS: &[Row] = &[
    Row { bit: 0, format: Some(FormatId::G723) },
    Row { bit: 1, format: Some(FormatId::GSM) },
    Row { bit: 2, format: Some(FormatId::ULAW) },
    Row { bit: 3, format: Some(FormatId::ALAW) },
    Row { bit: 11, format: Some(FormatId::G726) },
    Row { bit: 5, format: Some(FormatId::ADPCM) },
    Row { bit: 6, format: Some(FormatId::SLIN) },
    Row { bit: 7, format: Some(FormatId::LPC10) },
    Row { bit: 8, format: Some(FormatId::G729) },
    Row { bit: 9, format: Some(FormatId::SPEEX) },
    Row { bit: 33, format: Some(FormatId::SPEEX16) },
    Row { bit: 10, format: Some(FormatId::ILBC30) },
    Row { bit: 4, format: Some(FormatId::G726AAL2) },
    Row { bit: 12, format: Some(FormatId::G722) },
    Row { bit: 15, format: Some(FormatId::SLIN16) },
    Row { bit: 16, format: None },
    Row { bit: 17, format: None },
    Row { bit: 18, format: None },
    Row { bit: 19, format: None },
    Row { bit: 20, format: None },
    Row { bit: 21, format: None },
    Row { bit: 22, format: None },
    Row { bit: 26, format: None },
    Row { bit: 27, format: None },
    Row { bit: 13, format: Some(FormatId::SIREN7) },
    Row { bit: 14, format: Some(FormatId::SIREN14) },
    Row { bit: 34, format: Some(FormatId::OPUS) },
    Row { bit: 35, format: Some(FormatId::CODEC2) },
];

/// Formats of video and their bits: those of RFC 5456 §8.7, and two that the field added.
const VIDEO_ROWS: &[(u8, FormatId)] = &[
    (18, FormatId::H261),
    (19, FormatId::H263),
    (20, FormatId::H263P),
    (21, FormatId::H264),
    (22, FormatId::MPEG4),
    (23, FormatId::VP8),
];

/// What a frame of a format of variable rate is taken to last, ms.
const VARIABLE_MS: u16 = 20;
/// The longest frame that is believed, ms.
const FRAME_MS_MAX: u16 = 200;

/// Milliseconds of voice in a payload of `bytes`.
pub fn millis(format: FormatId, bytes: usize) -> u16 {
    let granule = format.granule();
    if !format.is_constant() || granule.bytes == 0 {
        return VARIABLE_MS;
    }
    let millis = (bytes / granule.bytes * granule.samples * 1000) as u64 / u64::from(format.rate().0.max(1));
    u16::try_from(millis).unwrap_or(FRAME_MS_MAX).clamp(1, FRAME_MS_MAX)
}

impl Media {
    /// No format.
    pub const NONE: Self = Self(0);
    /// Formats of video (RFC 5456 §8.7: H.261, H.263, H.263+, H.264; MPEG-4 and VP8 by the field).
    pub const VIDEO: Self = Self(0xfc_0000);

    /// `bits` as one format; `None` unless exactly one bit is set.
    pub const fn one(bits: u64) -> Option<Self> {
        if bits.count_ones() == 1 { Some(Self(bits)) } else { None }
    }
    /// The bit of a format; `None` for one that the protocol has no bit for.
    pub fn of(format: FormatId) -> Option<Self> {
        ROWS.iter().find(|row| row.format == Some(format)).map(|row| Self(1 << row.bit))
    }
    /// The bit of a format of video; `None` for one that the protocol has no bit for.
    pub fn of_video(format: FormatId) -> Option<Self> {
        VIDEO_ROWS.iter().find(|(_, known)| *known == format).map(|(bit, _)| Self(1 << bit))
    }
    /// The bits of several formats of video.
    pub fn all_video(formats: &[FormatId]) -> Self {
        formats.iter().filter_map(|format| Self::of_video(*format)).fold(Self::NONE, Self::with)
    }
    /// The format of video that this is, when it is a single one.
    pub fn video(self) -> Option<FormatId> {
        VIDEO_ROWS.iter().find(|(bit, _)| self.0 == 1 << bit).map(|(_, format)| *format)
    }
    /// What of it is no video.
    #[must_use]
    pub const fn sound(self) -> Self {
        Self(self.0 & !Self::VIDEO.0)
    }
    /// The bits of several formats.
    pub fn all(formats: &[FormatId]) -> Self {
        formats.iter().filter_map(|format| Self::of(*format)).fold(Self::NONE, Self::with)
    }
    /// The voice format that this is, when it is a single one that is known here.
    pub fn format(self) -> Option<FormatId> {
        let row = ROWS.iter().find(|row| self.0 == 1 << row.bit)?;
        row.format
    }
    /// The voice formats in it that are known here, in the order of preference numbers.
    pub fn formats(self) -> impl Iterator<Item = FormatId> {
        ROWS.iter().filter(move |row| self.0 >> row.bit & 1 != 0).filter_map(|row| row.format)
    }
    /// These and those.
    #[must_use]
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
    /// What is in both.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }
    /// Whether it has the format.
    pub fn contains(self, format: FormatId) -> bool {
        Self::of(format).is_some_and(|media| self.0 & media.0 != 0)
    }
    /// Whether there is no format in it.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }
}

/// The formats of a list of preferences (RFC 5456 §8.6.35), best first; letters without a format are passed over.
pub fn preferences(letters: &[u8]) -> impl Iterator<Item = FormatId> {
    letters
        .iter()
        .filter_map(|letter| ROWS.get(usize::from(letter.checked_sub(FIRST_LETTER)?)))
        .filter_map(|row| row.format)
}

/// Appends the letters of `formats`; formats that have none are left out.
pub fn write_preferences(formats: &[FormatId], out: &mut Vec<u8>) {
    let place = |format: &FormatId| ROWS.iter().position(|row| row.format == Some(*format));
    let letters = formats.iter().filter_map(place).filter_map(|at| u8::try_from(at).ok());
    out.extend(letters.map(|at| FIRST_LETTER + at));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rfc5456_8_7_each_format_has_the_bit_of_the_table() {
        for (format, bit) in [
            (FormatId::G723, 0),
            (FormatId::GSM, 1),
            (FormatId::ULAW, 2),
            (FormatId::ALAW, 3),
            (FormatId::G726AAL2, 4),
            (FormatId::ADPCM, 5),
            (FormatId::SLIN, 6),
            (FormatId::LPC10, 7),
            (FormatId::G729, 8),
            (FormatId::SPEEX, 9),
            (FormatId::ILBC30, 10),
            (FormatId::G726, 11),
            (FormatId::G722, 12),
            (FormatId::OPUS, 34),
        ] {
            assert_eq!(Media::of(format), Some(Media(1 << bit)), "{}", format.name());
            assert_eq!(Media(1 << bit).format(), Some(format), "bit {bit}");
        }
        assert_eq!(Media::of(FormatId::SLIN48), None);
        let bits = ROWS.iter().fold(0u64, |all, row| all ^ 1 << row.bit);
        assert_eq!(bits.count_ones() as usize, ROWS.len(), "no bit twice");
    }

    #[test]
    fn rfc5456_8_7_video_has_its_bits_and_no_format_is_sound_and_video() {
        for (format, bit) in [
            (FormatId::H261, 18),
            (FormatId::H263, 19),
            (FormatId::H263P, 20),
            (FormatId::H264, 21),
            (FormatId::MPEG4, 22),
            (FormatId::VP8, 23),
        ] {
            let media = Media(1 << bit);
            assert_eq!((Media::of_video(format), media.video()), (Some(media), Some(format)), "bit {bit}");
            assert_eq!((Media::of(format), media.format()), (None, None), "bit {bit}");
        }
        let all: Vec<FormatId> = FormatId::VIDEO.to_vec();
        assert_eq!(Media::all_video(&all), Media::VIDEO, "and those without a bit are left out");
        assert_eq!(Media(0xff_ffff).sound(), Media(0x03_ffff));
        assert_eq!(Media(3 << 18).video(), None, "two formats are none");
    }

    #[test]
    fn preferences_keep_their_order_and_pass_over_what_is_not_known() {
        let order = [FormatId::ALAW, FormatId::GSM, FormatId::SLIN48, FormatId::ULAW];
        let mut letters = Vec::new();
        write_preferences(&order, &mut letters);
        assert_eq!(letters, b"ECD");
        letters.extend_from_slice(b"A\x00\xff");
        let read: Vec<_> = preferences(&letters).collect();
        assert_eq!(read, [FormatId::ALAW, FormatId::GSM, FormatId::ULAW]);
    }
}
