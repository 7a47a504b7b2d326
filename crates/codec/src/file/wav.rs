//! RIFF/WAVE, read and written: PCM, G.711, GSM (format tag 0x31). Sizes in headers are hints, never trusted.

use std::borrow::Cow;

use base::FormatId;

use super::{SoundError, SoundFile};
use crate::{RATES, g711, gsm};

/// Most channels a file may have; more is not a telephone's recording.
pub const CHANNELS_MAX: u16 = 8;

const TAG_PCM: u16 = 1;
const TAG_ALAW: u16 = 6;
const TAG_ULAW: u16 = 7;
const TAG_GSM: u16 = 0x31;
const TAG_EXTENSIBLE: u16 = 0xfffe;

struct Fmt {
    tag: u16,
    channels: u16,
    rate: u32,
    bits: u16,
}

/// Reads a whole file.
pub fn parse(bytes: &[u8]) -> Result<SoundFile<'_>, SoundError> {
    let (riff, mut rest) = bytes.split_first_chunk::<12>().ok_or(SoundError::NotWave)?;
    if &riff[..4] != b"RIFF" || &riff[8..] != b"WAVE" {
        return Err(SoundError::NotWave);
    }
    let mut fmt = None;
    while let Some((head, body)) = rest.split_first_chunk::<8>() {
        let [a, b, c, d, s0, s1, s2, s3] = *head;
        let size = usize::try_from(u32::from_le_bytes([s0, s1, s2, s3])).unwrap_or(usize::MAX);
        match &[a, b, c, d] {
            b"fmt " => fmt = Some(parse_fmt(body)?),
            b"data" => {
                // A recorder that died leaves 0 or the largest size: then the rest of the file is the sound.
                let size = if size == 0 { body.len() } else { size.min(body.len()) };
                let data = body.get(..size).unwrap_or_default();
                return sound(fmt.ok_or(SoundError::NotWave)?, data);
            }
            _ => {}
        }
        rest = body.get(size.saturating_add(size & 1)..).unwrap_or_default(); // chunks are padded to even sizes
    }
    Err(SoundError::NotWave)
}

fn parse_fmt(body: &[u8]) -> Result<Fmt, SoundError> {
    let fixed = body.first_chunk::<16>().ok_or(SoundError::NotWave)?;
    let [t0, t1, c0, c1, r0, r1, r2, r3, _, _, _, _, _, _, b0, b1] = *fixed;
    let mut tag = u16::from_le_bytes([t0, t1]);
    if tag == TAG_EXTENSIBLE {
        // The sub-format GUID begins with the plain tag.
        let guid = body.get(24..26).and_then(|guid| guid.first_chunk::<2>()).ok_or(SoundError::NotWave)?;
        tag = u16::from_le_bytes(*guid);
    }
    Ok(Fmt {
        tag,
        channels: u16::from_le_bytes([c0, c1]),
        rate: u32::from_le_bytes([r0, r1, r2, r3]),
        bits: u16::from_le_bytes([b0, b1]),
    })
}

fn sound(fmt: Fmt, data: &[u8]) -> Result<SoundFile<'_>, SoundError> {
    if fmt.channels == 0 || fmt.channels > CHANNELS_MAX {
        return Err(SoundError::Channels(fmt.channels));
    }
    if !RATES.contains(&fmt.rate) {
        return Err(SoundError::Rate(fmt.rate));
    }
    let mono = fmt.channels == 1;
    let narrow = fmt.rate == 8000;
    let borrowed = |format| Ok(SoundFile { format, data: Cow::Borrowed(data) });
    let linear = FormatId::ALL.iter().copied().find(|f| f.is_linear() && f.rate().0 == fmt.rate);
    let linear = linear.ok_or(SoundError::Rate(fmt.rate))?;
    let mixed =
        |samples: Vec<i16>| Ok(SoundFile { format: linear, data: mix_down(&samples, fmt.channels).into() });
    match (fmt.tag, fmt.bits) {
        (TAG_PCM, 16) if mono => borrowed(linear),
        (TAG_PCM, 16) => {
            mixed(data.as_chunks::<2>().0.iter().map(|pair| i16::from_le_bytes(*pair)).collect())
        }
        (TAG_PCM, 8) => mixed(data.iter().map(|&byte| (i16::from(byte) - 128) << 8).collect()),
        (TAG_PCM, 24) => mixed(
            data.as_chunks::<3>().0.iter().map(|&[_, low, high]| i16::from_le_bytes([low, high])).collect(),
        ),
        (TAG_ULAW, _) if mono && narrow => borrowed(FormatId::ULAW),
        (TAG_ALAW, _) if mono && narrow => borrowed(FormatId::ALAW),
        (TAG_ULAW, _) => mixed(data.iter().map(|&code| g711::ulaw_decode_one(code)).collect()),
        (TAG_ALAW, _) => mixed(data.iter().map(|&code| g711::alaw_decode_one(code)).collect()),
        (TAG_GSM, _) if mono && narrow => {
            let mut frames = Vec::with_capacity(data.len() / gsm::WAV49_BYTES * 2 * gsm::FRAME_BYTES);
            for block in data.as_chunks().0 {
                let mut pair = [[0; gsm::FRAME_BYTES]; 2];
                gsm::from_wav49(block, &mut pair);
                frames.extend_from_slice(pair.as_flattened());
            }
            Ok(SoundFile { format: FormatId::GSM, data: Cow::Owned(frames) })
        }
        (tag, bits) => Err(SoundError::Encoding { tag, bits }),
    }
}

/// Averages the channels; returns little-endian bytes.
fn mix_down(samples: &[i16], channels: u16) -> Vec<u8> {
    let width = usize::from(channels).max(1);
    samples
        .chunks_exact(width)
        .flat_map(|frame| {
            let sum: i32 = frame.iter().map(|&s| i32::from(s)).sum();
            ((sum / i32::from(channels.max(1))) as i16).to_le_bytes()
        })
        .collect()
}

/// Header of a 16-bit PCM file with `data_bytes` of samples to follow: 44 bytes.
pub fn pcm_header(rate: u32, channels: u16, data_bytes: u32) -> Vec<u8> {
    let mut header = Vec::with_capacity(44);
    riff(&mut header, 36, data_bytes);
    let block = 2 * channels;
    fmt(&mut header, 16, TAG_PCM, channels, rate, rate * u32::from(block), block, 16);
    data(&mut header, data_bytes);
    header
}

/// Header of a GSM file (`.WAV`) with `data_bytes` of 65-byte blocks to follow: 60 bytes.
pub fn gsm_header(data_bytes: u32) -> Vec<u8> {
    let mut header = Vec::with_capacity(60);
    riff(&mut header, 52, data_bytes);
    // 1625 bytes a second: 65 for each 40 ms.
    fmt(&mut header, 20, TAG_GSM, 1, 8000, 1625, 65, 0);
    header.extend_from_slice(&2u16.to_le_bytes()); // size of the extension
    header.extend_from_slice(&320u16.to_le_bytes()); // samples a block
    header.extend_from_slice(b"fact");
    header.extend_from_slice(&4u32.to_le_bytes());
    header.extend_from_slice(&(data_bytes / 65).saturating_mul(320).to_le_bytes());
    data(&mut header, data_bytes);
    header
}

fn riff(header: &mut Vec<u8>, overhead: u32, data_bytes: u32) {
    let padded = data_bytes.saturating_add(data_bytes & 1);
    header.extend_from_slice(b"RIFF");
    header.extend_from_slice(&padded.saturating_add(overhead).to_le_bytes());
    header.extend_from_slice(b"WAVE");
}

#[expect(clippy::too_many_arguments, reason = "the fields of the chunk in their order")]
fn fmt(
    header: &mut Vec<u8>,
    size: u32,
    tag: u16,
    channels: u16,
    rate: u32,
    bytes_a_second: u32,
    block: u16,
    bits: u16,
) {
    header.extend_from_slice(b"fmt ");
    header.extend_from_slice(&size.to_le_bytes());
    header.extend_from_slice(&tag.to_le_bytes());
    header.extend_from_slice(&channels.to_le_bytes());
    header.extend_from_slice(&rate.to_le_bytes());
    header.extend_from_slice(&bytes_a_second.to_le_bytes());
    header.extend_from_slice(&block.to_le_bytes());
    header.extend_from_slice(&bits.to_le_bytes());
}

fn data(header: &mut Vec<u8>, data_bytes: u32) {
    header.extend_from_slice(b"data");
    header.extend_from_slice(&data_bytes.to_le_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(tag: u16, channels: u16, rate: u32, bits: u16, payload: &[u8]) -> Vec<u8> {
        let mut bytes = b"RIFF\0\0\0\0WAVELIST\x03\0\0\0abc\0fmt \x10\0\0\0".to_vec();
        bytes.extend_from_slice(&tag.to_le_bytes());
        bytes.extend_from_slice(&channels.to_le_bytes());
        bytes.extend_from_slice(&rate.to_le_bytes());
        bytes.extend_from_slice(&[0; 6]);
        bytes.extend_from_slice(&bits.to_le_bytes());
        bytes.extend_from_slice(b"data");
        bytes.extend_from_slice(&(payload.len() as u32).to_le_bytes());
        bytes.extend_from_slice(payload);
        bytes
    }

    #[test]
    fn encodings_rates_and_channels_are_read_as_the_header_says() {
        let stereo: Vec<u8> = [100i16, 300, -100, -300].iter().flat_map(|s| s.to_le_bytes()).collect();
        let mono: Vec<u8> = [200i16, -200].iter().flat_map(|s| s.to_le_bytes()).collect();
        for (name, bytes, format, expected) in [
            ("stereo is averaged", file(1, 2, 16_000, 16, &stereo), FormatId::SLIN16, &mono[..]),
            ("mono is itself", file(1, 1, 48_000, 16, &mono), FormatId::SLIN48, &mono),
            (
                "8 bit is unsigned",
                file(1, 1, 8000, 8, &[0, 128, 255]),
                FormatId::SLIN,
                &[0, 0x80, 0, 0, 0, 0x7f],
            ),
            ("24 bit loses its low byte", file(1, 1, 8000, 24, &[9, 1, 2]), FormatId::SLIN, &[1, 2]),
            ("mu-law stays coded", file(7, 1, 8000, 8, &[1, 2, 3]), FormatId::ULAW, &[1, 2, 3]),
            ("A-law stays coded", file(6, 1, 8000, 8, &[1, 2, 3]), FormatId::ALAW, &[1, 2, 3]),
            ("wide mu-law is decoded", file(7, 1, 16_000, 8, &[0xff]), FormatId::SLIN16, &[0, 0]),
        ] {
            let sound = parse(&bytes).unwrap();
            assert_eq!((sound.format, &*sound.data), (format, expected), "{name}");
        }
    }

    #[test]
    fn what_cannot_be_played_says_why() {
        for (name, bytes, expected) in [
            ("nothing", vec![], SoundError::NotWave),
            ("another file", b"OggS\0\0\0\0aaaaaaaa".to_vec(), SoundError::NotWave),
            ("float", file(3, 1, 8000, 32, &[0; 8]), SoundError::Encoding { tag: 3, bits: 32 }),
            ("no channel", file(1, 0, 8000, 16, &[0; 8]), SoundError::Channels(0)),
            ("odd rate", file(1, 1, 11_025, 16, &[0; 8]), SoundError::Rate(11_025)),
            ("no data", file(1, 1, 8000, 16, &[])[..48].to_vec(), SoundError::NotWave),
        ] {
            assert_eq!(parse(&bytes), Err(expected.clone()), "{name}");
            assert!(!expected.remedy().is_empty());
        }
    }

    #[test]
    fn a_recording_cut_short_plays_to_its_end() {
        for size in [0u32, u32::MAX, 1_000_000] {
            let mut bytes = pcm_header(8000, 1, size);
            bytes.extend_from_slice(&[1, 0, 2, 0]);
            assert_eq!(&*parse(&bytes).unwrap().data, &[1, 0, 2, 0], "size {size:#x}");
        }
    }

    #[test]
    fn headers_have_the_length_and_sizes_of_their_kind() {
        let header = pcm_header(16_000, 1, 640);
        assert_eq!(header.len(), 44);
        assert_eq!(header[4..8], 676u32.to_le_bytes());
        assert_eq!(header[40..44], 640u32.to_le_bytes());
        let header = gsm_header(65);
        assert_eq!(header.len(), 60);
        assert_eq!(header[4..8], (66 + 52u32).to_le_bytes());
        assert_eq!(header[48..52], 320u32.to_le_bytes());
    }
}
