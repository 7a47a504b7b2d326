//! Ogg pages (RFC 3533) with Opus in them (RFC 7845), written and read. What is read is not trusted.

use base::FormatId;

use super::SoundError;
#[cfg(target_family = "wasm")]
use crate::bound::opus;
#[cfg(not(target_family = "wasm"))]
use bound::opus;

/// Granule positions count samples at this rate (RFC 7845 §4).
const GRANULES_PER_SECOND: u64 = 48_000;
/// Rate at which recordings are coded: the bandwidth of nearly all calls.
pub const RECORDED_RATE: u32 = 16_000;
/// Samples of one packet of ours: 20 ms.
pub const PACKET_SAMPLES: usize = 320;
/// Granules of one packet of ours.
const PACKET_GRANULES: u64 = 960;
/// What the encoder looks ahead, granules: 6.5 ms, which a player skips (RFC 7845 §4.2).
const PRE_SKIP: u16 = 312;
/// Longest packet that is read, samples: 120 ms at 48 kHz (RFC 6716 §3.2.5).
const PACKET_SAMPLES_MAX: usize = 5760;
/// Longest sound that is read, samples: as many bytes of linear sound as the largest file has.
const SAMPLES_MAX: usize = 48 << 20;
/// Bytes of a page before its table of segments.
const PAGE_HEAD: usize = 27;
/// Segments of one page (RFC 3533 §6).
const SEGMENTS_MAX: usize = 255;
/// Longest page (RFC 3533 §6).
pub const PAGE_BYTES_MAX: usize = PAGE_HEAD + SEGMENTS_MAX + SEGMENTS_MAX * 255;
/// Where the checksum stands in a page.
const CHECKSUM_AT: core::ops::Range<usize> = 22..26;
const CONTINUED: u8 = 1;
const BEGINS: u8 = 2;
const ENDS: u8 = 4;
/// Who wrote the file, as its comment header says.
const VENDOR: &[u8] = b"Strowger";

/// The checksum of pages: CRC-32 with the polynomial 0x04c11db7, neither reflected nor inverted (RFC 3533 §6).
const CRC: [u32; 256] = {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let mut value = (byte as u32) << 24;
        let mut bit = 0;
        while bit < 8 {
            value = if value & 0x8000_0000 != 0 { value << 1 ^ 0x04c1_1db7 } else { value << 1 };
            bit += 1;
        }
        table[byte] = value;
        byte += 1;
    }
    table
};

/// The checksum of a page, whose own field counts as zeros.
fn checksum(page: &[u8]) -> u32 {
    page.iter().enumerate().fold(0, |sum: u32, (at, byte)| {
        let byte = if CHECKSUM_AT.contains(&at) { 0 } else { *byte };
        sum << 8 ^ CRC[usize::from((sum >> 24) as u8 ^ byte)]
    })
}

/// Marks a page as the last one, up to this granule.
pub fn end_with(page: &mut [u8], granule: u64) {
    if let Some(flags) = page.get_mut(5) {
        *flags |= ENDS;
    }
    if let Some(place) = page.get_mut(6..14) {
        place.copy_from_slice(&granule.to_le_bytes());
    }
    let sum = checksum(page);
    if let Some(place) = page.get_mut(CHECKSUM_AT) {
        place.copy_from_slice(&sum.to_le_bytes());
    }
}

/// Drops all but the first packets of a page of ours, in which packets are whole.
pub fn keep(bytes: &mut Vec<u8>, packets: usize) {
    let Some(page) = page(bytes) else { return };
    let ends = page.segments.iter().enumerate().filter(|(_, length)| **length < 255);
    let Some(segments) = ends.map(|(at, _)| at + 1).nth(packets.saturating_sub(1)) else { return };
    let body: usize = page.segments.iter().take(segments).map(|length| usize::from(*length)).sum();
    let start = PAGE_HEAD + page.segments.len();
    let kept = [
        bytes.get(..PAGE_HEAD + segments).unwrap_or_default(),
        bytes.get(start..start + body).unwrap_or_default(),
    ]
    .concat();
    *bytes = kept;
    if let Some(count) = bytes.get_mut(PAGE_HEAD - 1) {
        *count = segments as u8;
    }
}

/// One page as it stands in a file.
#[derive(Debug, Clone, Copy)]
struct Page<'a> {
    flags: u8,
    granule: u64,
    segments: &'a [u8],
    body: &'a [u8],
    /// Bytes of all.
    length: usize,
}

/// The page at the beginning of `bytes`; `None` when there is none that is whole and right.
fn page(bytes: &[u8]) -> Option<Page<'_>> {
    let head: &[u8; PAGE_HEAD] = bytes.first_chunk()?;
    let [b'O', b'g', b'g', b'S', 0, flags, granule @ .., count] = head else { return None };
    let granule = u64::from_le_bytes(*granule.first_chunk()?);
    let segments = bytes.get(PAGE_HEAD..PAGE_HEAD + usize::from(*count))?;
    let start = PAGE_HEAD + segments.len();
    let length = start + segments.iter().map(|bytes| usize::from(*bytes)).sum::<usize>();
    let whole = bytes.get(..length)?;
    let told = u32::from_le_bytes(whole.get(CHECKSUM_AT)?.try_into().ok()?);
    let body = whole.get(start..)?;
    (told == checksum(whole)).then_some(Page { flags: *flags, granule, segments, body, length })
}

/// Where the whole pages at the beginning of a file end, and where the last of them begins.
fn extent(bytes: &[u8]) -> (usize, usize) {
    let (mut last, mut end) = (0, 0);
    while let Some(page) = page(bytes.get(end..).unwrap_or_default()) {
        (last, end) = (end, end + page.length);
    }
    (end, last)
}

/// Whether the end of a file is that of a complete stream. `tail` is the end of the file, at least [`PAGE_BYTES_MAX`] of it
/// or all.
pub fn is_complete(tail: &[u8]) -> bool {
    let last = |at: &usize| {
        let rest = tail.get(*at..).unwrap_or_default();
        page(rest).is_some_and(|page| page.length == rest.len() && page.flags & ENDS != 0)
    };
    (0..tail.len()).rev().filter(|at| tail.get(*at) == Some(&b'O')).any(|at| last(&at))
}

/// A recording of ours that a kill cut short: how many of its bytes are whole pages, and the last of them as it has to be.
/// `None` for files that somebody else wrote, and those with nothing to mend.
pub fn completed(bytes: &[u8]) -> Option<(usize, Vec<u8>)> {
    let head = page(bytes)?;
    let tags = page(bytes.get(head.length..)?)?;
    let ours = tags.body.starts_with(b"OpusTags") && tags.body.get(12..12 + VENDOR.len()) == Some(VENDOR);
    let (end, last) = extent(bytes);
    let mut page = bytes.get(last..end)?.to_vec();
    let granule = u64::from_le_bytes(*page.get(6..)?.first_chunk()?);
    if !ours || last < head.length + tags.length || page.get(5)? & ENDS != 0 {
        return None;
    }
    end_with(&mut page, granule);
    Some((last, page))
}

/// The packets of a stream on their way into pages, and the encoder before them.
#[derive(Debug)]
pub struct Writer {
    encoder: opus::Encoder,
    serial: u32,
    sequence: u32,
    /// Packets that no page has yet; the last one stays until the next, so that the last page has sound.
    packets: Vec<Vec<u8>>,
    /// Granules of the packets that pages have.
    granule: u64,
    /// Samples of sound that were taken, without what fills up the last packet.
    samples: u64,
    /// Samples that were coded.
    coded: u64,
    /// Bytes that were written, and of each page with sound where it begins and which granule it reaches.
    written: u64,
    pages: Vec<(u64, u64)>,
}

impl Writer {
    /// A stream in its initial state; `None` where the library is missing.
    pub fn new() -> Option<Self> {
        let options = opus::Options {
            bitrate: None,
            playback_rate: GRANULES_PER_SECOND as u32,
            fec: false,
            loss_percent: 0,
            dtx: false,
            constant: false,
            complexity: 5,
        };
        Some(Self {
            encoder: opus::Encoder::new(RECORDED_RATE, &options).ok()?,
            serial: 0,
            sequence: 0,
            packets: Vec::new(),
            granule: 0,
            samples: 0,
            coded: 0,
            written: 0,
            pages: Vec::new(),
        })
    }
    /// The two header pages (RFC 7845 §5), in a file that has so many bytes: streams follow one another there, each with
    /// a number of its own.
    pub fn open(&mut self, there: u64, out: &mut Vec<u8>) {
        self.serial = 0x5374_0000 ^ there as u32;
        let mut head = b"OpusHead\x01\x01".to_vec();
        head.extend_from_slice(&PRE_SKIP.to_le_bytes());
        head.extend_from_slice(&RECORDED_RATE.to_le_bytes());
        head.extend_from_slice(&[0, 0, 0]);
        self.page(BEGINS, 0, &[head], out);
        let mut tags = b"OpusTags".to_vec();
        tags.extend_from_slice(&(VENDOR.len() as u32).to_le_bytes());
        tags.extend_from_slice(VENDOR);
        tags.extend_from_slice(&[0; 4]);
        self.page(0, 0, &[tags], out);
    }
    /// Codes whole packets.
    pub fn write(&mut self, linear: &[i16]) {
        self.samples += linear.len() as u64;
        self.code(linear);
    }
    fn code(&mut self, linear: &[i16]) {
        for pcm in linear.chunks_exact(PACKET_SAMPLES) {
            let mut room = [0; base::VARIABLE_BYTES_MAX];
            let bytes = self.encoder.encode(pcm, &mut room).bytes;
            self.packets.push(room.get(..bytes).unwrap_or_default().to_vec());
            self.coded += PACKET_SAMPLES as u64;
        }
    }
    /// Appends pages with all that was coded but for the last packet.
    pub fn flush(&mut self, out: &mut Vec<u8>) {
        if let Some(last) = self.packets.pop() {
            self.put(0, None, out);
            self.packets.push(last);
        }
    }
    /// Appends the rest: `extra` samples of the sound taken last only fill the packet up.
    pub fn finish(&mut self, extra: usize, out: &mut Vec<u8>) {
        self.samples -= (extra as u64).min(self.samples);
        let end = u64::from(PRE_SKIP) + self.samples * GRANULES_PER_SECOND / u64::from(RECORDED_RATE);
        // What the encoder looks ahead is still inside of it.
        while self.coded * GRANULES_PER_SECOND < end * u64::from(RECORDED_RATE) {
            self.code(&[0; PACKET_SAMPLES]);
        }
        if !self.packets.is_empty() {
            self.put(ENDS, Some(end), out);
        }
    }
    /// Where the page begins and ends, in bytes of this stream, that a stream without its last samples ends with, how many
    /// packets of it are left, and the granule that they reach.
    pub fn without(&self, samples: u64) -> Option<(u64, u64, usize, u64)> {
        let kept = self.samples.saturating_sub(samples);
        let granule = u64::from(PRE_SKIP) + kept * GRANULES_PER_SECOND / u64::from(RECORDED_RATE);
        let at = self.pages.iter().position(|(_, reached)| *reached >= granule)?;
        let (start, _) = self.pages.get(at)?;
        let end = self.pages.get(at + 1).map_or(self.written, |(start, _)| *start);
        let before = at.checked_sub(1).and_then(|before| self.pages.get(before)).map_or(0, |page| page.1);
        let packets = granule.saturating_sub(before).div_ceil(PACKET_GRANULES).max(1);
        Some((*start, end, usize::try_from(packets).unwrap_or(usize::MAX), granule))
    }
    /// Puts the packets that wait into pages.
    fn put(&mut self, flags: u8, end: Option<u64>, out: &mut Vec<u8>) {
        let packets = core::mem::take(&mut self.packets);
        let segments = |packet: &Vec<u8>| packet.len() / 255 + 1;
        let mut rest = packets.as_slice();
        while !rest.is_empty() {
            let mut room = SEGMENTS_MAX;
            let fits = rest.iter().take_while(|packet| {
                let fits = segments(packet) <= room;
                room = room.saturating_sub(segments(packet));
                fits
            });
            let (now, later) = rest.split_at(fits.count().clamp(1, rest.len()));
            rest = later;
            self.granule += now.len() as u64 * PACKET_GRANULES;
            let is_last = rest.is_empty();
            let granule = end.filter(|_| is_last).unwrap_or(self.granule);
            self.pages.push((self.written, granule));
            self.page(if is_last { flags } else { 0 }, granule, now, out);
        }
        self.packets = packets;
        self.packets.clear();
    }
    /// Appends one page.
    fn page(&mut self, flags: u8, granule: u64, packets: &[Vec<u8>], out: &mut Vec<u8>) {
        let start = out.len();
        out.extend_from_slice(b"OggS\0");
        out.push(flags);
        out.extend_from_slice(&granule.to_le_bytes());
        out.extend_from_slice(&self.serial.to_le_bytes());
        out.extend_from_slice(&self.sequence.to_le_bytes());
        out.extend_from_slice(&[0; 4]);
        let lengths = packets.iter().flat_map(|packet| {
            core::iter::repeat_n(255, packet.len() / 255).chain([(packet.len() % 255) as u8])
        });
        let lengths: Vec<u8> = lengths.take(SEGMENTS_MAX).collect();
        out.push(lengths.len() as u8);
        out.extend_from_slice(&lengths);
        packets.iter().for_each(|packet| out.extend_from_slice(packet));
        self.sequence += 1;
        if let Some(page) = out.get_mut(start..) {
            let sum = checksum(page);
            if let Some(place) = page.get_mut(CHECKSUM_AT) {
                place.copy_from_slice(&sum.to_le_bytes());
            }
        }
        self.written += (out.len() - start) as u64;
    }
}

/// One stream of a file on its way to samples.
struct Link {
    decoder: opus::Decoder,
    /// Samples that are still to be dropped at its beginning.
    skip: usize,
    /// Where its sound begins in what was decoded.
    start: usize,
    pre_skip: u64,
    has_tags: bool,
}

/// Reads a whole file, all its streams one after the other, as linear samples.
///
/// What comes after a page that is broken is not read. Two channels are mixed down.
pub fn parse(bytes: &[u8]) -> Result<(FormatId, Vec<i16>), SoundError> {
    let first = page(bytes).ok_or(SoundError::NotOgg)?;
    let (_, rate) = head(first.body).ok_or(SoundError::NotOgg)?;
    // Sound that was never wider is decoded for less.
    let format = if (1..=RECORDED_RATE).contains(&rate) { FormatId::SLIN16 } else { FormatId::SLIN48 };
    let (mut samples, mut link, mut packet) = (Vec::new(), None, Vec::new());
    let mut rest = bytes;
    while let Some(page) = page(rest) {
        rest = rest.get(page.length..).unwrap_or_default();
        if page.flags & BEGINS != 0 {
            let Some((pre_skip, _)) = head(page.body) else { break };
            let decoder = opus::Decoder::new(format.rate().0).map_err(|_| SoundError::NoOpus)?;
            let skip = usize::from(pre_skip) * format.rate().0 as usize / GRANULES_PER_SECOND as usize;
            let start = samples.len();
            link = Some(Link { decoder, skip, start, pre_skip: pre_skip.into(), has_tags: false });
            packet.clear();
            continue;
        }
        let Some(link) = &mut link else { break };
        if page.flags & CONTINUED == 0 {
            packet.clear();
        }
        let mut body = page.body;
        for length in page.segments {
            let (piece, later) = body.split_at_checked((*length).into()).unwrap_or_default();
            body = later;
            packet.extend_from_slice(piece);
            if *length == 255 {
                continue;
            }
            if link.has_tags {
                link.decode(&packet, &mut samples);
            }
            link.has_tags = true;
            packet.clear();
        }
        if samples.len() > SAMPLES_MAX {
            return Err(SoundError::Long);
        }
        if page.flags & ENDS != 0 {
            let kept = page.granule.saturating_sub(link.pre_skip) * u64::from(format.rate().0);
            let kept = usize::try_from(kept / GRANULES_PER_SECOND).unwrap_or(usize::MAX);
            samples.truncate(link.start.saturating_add(kept));
        }
    }
    Ok((format, samples))
}

/// What is to be skipped and the rate of what was recorded, of an identification header (RFC 7845 §5.1) of one or two
/// channels.
fn head(body: &[u8]) -> Option<(u16, u32)> {
    let [magic @ .., channels, s0, s1, r0, r1, r2, r3, _, _, family] = body.first_chunk::<19>()?;
    let fits = magic.starts_with(b"OpusHead") && magic.last()? >> 4 == 0;
    let plain = (1..=2).contains(channels) && *family == 0;
    (fits && plain).then(|| (u16::from_le_bytes([*s0, *s1]), u32::from_le_bytes([*r0, *r1, *r2, *r3])))
}

impl Link {
    fn decode(&mut self, packet: &[u8], samples: &mut Vec<i16>) {
        let mut pcm = [0; PACKET_SAMPLES_MAX];
        let count = match self.decoder.decode(packet, &mut pcm) {
            Ok(count) => count,
            // What is broken lasts as long as it says, and is made up.
            Err(_) => opus::samples(packet, self.decoder.rate()).unwrap_or(0),
        };
        let made = pcm.get(..count.min(PACKET_SAMPLES_MAX)).unwrap_or_default();
        let skipped = self.skip.min(made.len());
        self.skip -= skipped;
        samples.extend_from_slice(made.get(skipped..).unwrap_or_default());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file::{Ending, Recording, SoundFile};
    use crate::testing::{rms, sine};

    /// A recording in pieces that a writer would flush, of so many samples.
    fn recorded(samples: usize, there: u64) -> Option<(Recording, Vec<u8>)> {
        let Some(mut recording) = Recording::new("opus") else {
            println!("skipped: libopus is missing");
            return None;
        };
        let mut file = Vec::new();
        recording.open(there, &mut file);
        for piece in sine(500.0, RECORDED_RATE, 9000.0, samples).chunks(12_345) {
            recording.write(piece, &mut file);
            recording.flush(&mut file);
        }
        Some((recording, file))
    }

    fn decoded(bytes: &[u8]) -> Vec<i16> {
        let sound = SoundFile::parse("opus", bytes).unwrap();
        assert_eq!(sound.format, FormatId::SLIN16);
        sound.data.as_chunks().0.iter().map(|pair| i16::from_le_bytes(*pair)).collect()
    }

    #[test]
    fn rfc7845_4_a_recording_has_as_many_samples_as_were_recorded_and_their_level() {
        for samples in [0, 1, 319, 320, 321, 16_000, 50_001] {
            let Some((mut recording, mut file)) = recorded(samples, 0) else { return };
            recording.finish(&mut file);
            let heard = decoded(&file);
            assert_eq!(heard.len(), samples);
            if samples >= 16_000 {
                let level = rms(&heard[2000..samples - 2000]) / rms(&sine(500.0, 16_000, 9000.0, 16_000));
                assert!((0.9..1.1).contains(&level), "{level}");
                assert!(is_complete(&file) && completed(&file).is_none());
            }
        }
    }

    #[test]
    fn rfc3533_6_pages_are_numbered_checked_and_never_longer_than_a_page_can_be() {
        let Some((mut recording, mut file)) = recorded(400_000, 0) else { return };
        recording.finish(&mut file);
        let (mut rest, mut number, mut reached) = (&file[..], 0, 0);
        while let Some(one) = page(rest) {
            assert_eq!(u32::from_le_bytes(rest[18..22].try_into().unwrap()), number);
            assert_eq!(one.flags & BEGINS != 0, number == 0);
            assert!(one.granule >= reached && one.length <= PAGE_BYTES_MAX);
            (number, reached) = (number + 1, one.granule);
            rest = &rest[one.length..];
            assert_eq!(one.flags & ENDS != 0, rest.is_empty());
        }
        assert_eq!((rest.len(), reached), (0, u64::from(PRE_SKIP) + 3 * 400_000));
    }

    #[test]
    fn a_file_that_was_cut_anywhere_plays_up_to_there_and_is_made_whole() {
        let Some((_, file)) = recorded(100_000, 0) else { return };
        let whole = decoded(&file).len();
        assert!(whole > 100_000 - 2 * PACKET_SAMPLES, "all but the last packets: {whole}");
        for cut in (0..file.len()).step_by(977).chain([file.len()]) {
            let torn = &file[..cut];
            let Some((start, page)) = completed(torn) else {
                assert!(cut < 4000, "{cut}: nothing but headers");
                continue;
            };
            let mended = [&torn[..start], &page].concat();
            assert!(is_complete(&mended) && !is_complete(torn), "{cut}");
            // A stream that ends may be shorter by what the encoder had looked ahead, and never longer.
            let (before, after) = (decoded(torn).len(), decoded(&mended).len());
            assert!(after <= before && before - after <= PACKET_SAMPLES, "{cut}: {before} and {after}");
        }
        let mut foreign = file.clone();
        foreign.iter_mut().for_each(|byte| *byte = if *byte == b'w' { b'W' } else { *byte });
        assert!(completed(&foreign).is_none(), "somebody else's");
    }

    #[test]
    fn the_end_of_a_recording_can_be_cut_off_to_the_sample() {
        for unwanted in [1, 320, 5000, 40_000] {
            let Some((mut recording, mut file)) = recorded(50_000, 0) else { return };
            recording.finish(&mut file);
            let ending = recording.without(unwanted).unwrap();
            let Ending::Page { start, end, .. } = ending else { panic!("{ending:?}") };
            let (start, end) = (start as usize, end as usize);
            let mut last = file[start..end].to_vec();
            ending.page(&mut last);
            file.truncate(start);
            file.extend_from_slice(&last);
            assert_eq!(decoded(&file).len(), 50_000 - unwanted);
        }
    }

    #[test]
    fn rfc3533_4_a_stream_appended_to_another_plays_after_it() {
        let Some((mut first, mut file)) = recorded(16_000, 0) else { return };
        first.finish(&mut file);
        let Some((mut second, mut more)) = recorded(8000, file.len() as u64) else { return };
        second.finish(&mut more);
        assert_ne!(file[14..18], more[14..18], "numbers of streams differ");
        file.extend_from_slice(&more);
        assert_eq!(decoded(&file).len(), 24_000);
    }

    #[test]
    fn what_is_no_ogg_file_or_not_opus_is_told_and_bits_that_flip_end_it() {
        let Some((mut recording, mut file)) = recorded(32_000, 0) else { return };
        recording.finish(&mut file);
        for bad in [&b""[..], b"OggS", b"RIFF....WAVE", &file[..20], &file[1..]] {
            assert_eq!(SoundFile::parse("opus", bad).err(), Some(SoundError::NotOgg));
        }
        for at in (0..file.len()).step_by(53) {
            let mut bad = file.clone();
            bad[at] ^= 0x10;
            if let Ok(sound) = SoundFile::parse("ogg", &bad) {
                assert!(sound.data.len() <= 2 * 32_000, "{at}");
            }
        }
    }
}
