//! The fixed header of RFC 3550 §5.1, read from hostile bytes and written in place.

use core::ops::Range;

use crate::Discard;

/// Bytes of a header without CSRC list and extension, the only kind we write.
pub const HEADER_BYTES: usize = 12;

/// What the fixed header says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Header {
    /// Payload type, 0 to 127.
    pub payload_type: u8,
    /// Marker: first packet of a talk spurt (RFC 3551 §4.1) or of an event (RFC 4733 §2.3).
    pub marker: bool,
    /// Sequence number.
    pub sequence: u16,
    /// Timestamp in units of the payload's clock.
    pub timestamp: u32,
    /// Synchronisation source.
    pub ssrc: u32,
}

/// Reads the header; the range is the payload within `packet`, without CSRC list, extension and padding.
pub fn parse(packet: &[u8]) -> Result<(Header, Range<usize>), Discard> {
    let (fixed, rest) = packet.split_first_chunk::<HEADER_BYTES>().ok_or(Discard::TooShort)?;
    let [flags, kind, q0, q1, t0, t1, t2, t3, s0, s1, s2, s3] = *fixed;
    if flags >> 6 != 2 {
        return Err(Discard::BadVersion);
    }
    let mut start = HEADER_BYTES + 4 * usize::from(flags & 0x0f);
    if flags & 0x10 != 0 {
        let words = rest
            .get(start - HEADER_BYTES + 2..start - HEADER_BYTES + 4)
            .and_then(|length| length.first_chunk::<2>())
            .ok_or(Discard::TooShort)?;
        start += 4 + 4 * usize::from(u16::from_be_bytes(*words));
    }
    if start > packet.len() {
        return Err(Discard::TooShort);
    }
    let mut end = packet.len();
    if flags & 0x20 != 0 {
        let padding = usize::from(packet.last().copied().unwrap_or(0));
        if padding == 0 || padding > end - start {
            return Err(Discard::BadPadding);
        }
        end -= padding;
    }
    let header = Header {
        payload_type: kind & 0x7f,
        marker: kind & 0x80 != 0,
        sequence: u16::from_be_bytes([q0, q1]),
        timestamp: u32::from_be_bytes([t0, t1, t2, t3]),
        ssrc: u32::from_be_bytes([s0, s1, s2, s3]),
    };
    Ok((header, start..end))
}

/// The header's twelve bytes.
#[inline]
pub fn write(header: &Header) -> [u8; HEADER_BYTES] {
    let [q0, q1] = header.sequence.to_be_bytes();
    let [t0, t1, t2, t3] = header.timestamp.to_be_bytes();
    let [s0, s1, s2, s3] = header.ssrc.to_be_bytes();
    let kind = header.payload_type & 0x7f | if header.marker { 0x80 } else { 0 };
    [0x80, kind, q0, q1, t0, t1, t2, t3, s0, s1, s2, s3]
}

/// Whether a datagram on a shared port is RTCP: its second byte is a packet type 192 to 223 (RFC 5761 §4).
#[inline]
pub fn is_rtcp(packet: &[u8]) -> bool {
    matches!(packet, [_, 192..=223, ..])
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIXED: [u8; 12] = [0x80, 0x80 | 96, 0x12, 0x34, 0, 0, 0x30, 0x39, 0xde, 0xad, 0xbe, 0xef];

    fn with(flags: u8, tail: &[u8]) -> Vec<u8> {
        let mut packet = FIXED.to_vec();
        packet[0] = flags;
        packet.extend_from_slice(tail);
        packet
    }

    #[test]
    fn rfc3550_5_1_fields_are_read_and_written_alike() {
        let (header, payload) = parse(&with(0x80, &[1, 2, 3])).unwrap();
        let expected =
            Header { payload_type: 96, marker: true, sequence: 0x1234, timestamp: 12345, ssrc: 0xdead_beef };
        assert_eq!((header, payload), (expected, 12..15));
        assert_eq!(write(&header), FIXED);
    }

    #[test]
    fn rfc3550_5_1_csrc_extension_and_padding_are_stepped_over_or_refused() {
        let cases = [
            ("no payload", with(0x80, &[]), Ok(12..12)),
            ("two sources", with(0x82, &[0; 10]), Ok(20..22)),
            ("sources cut off", with(0x82, &[0; 7]), Err(Discard::TooShort)),
            ("empty extension", with(0x90, &[0xbe, 0xde, 0, 0, 9]), Ok(16..17)),
            ("extension of one word", with(0x90, &[0xbe, 0xde, 0, 1, 1, 2, 3, 4, 9]), Ok(20..21)),
            ("extension cut off", with(0x90, &[0xbe, 0xde, 0, 2, 1, 2, 3, 4]), Err(Discard::TooShort)),
            ("extension header cut off", with(0x90, &[0xbe, 0xde, 0]), Err(Discard::TooShort)),
            ("extension of 65535 words", with(0x90, &[0, 0, 0xff, 0xff]), Err(Discard::TooShort)),
            ("padding of three", with(0xa0, &[7, 7, 0, 0, 3]), Ok(12..14)),
            ("padding is all", with(0xa0, &[0, 2]), Ok(12..12)),
            ("padding of zero", with(0xa0, &[7, 0]), Err(Discard::BadPadding)),
            ("padding too long", with(0xa0, &[7, 3]), Err(Discard::BadPadding)),
            ("version 1", with(0x40, &[1]), Err(Discard::BadVersion)),
        ];
        for (name, packet, expected) in cases {
            assert_eq!(parse(&packet).map(|(_, range)| range), expected, "{name}");
        }
        for length in 0..12 {
            assert_eq!(parse(&FIXED[..length]).map(|_| ()), Err(Discard::TooShort), "{length} bytes");
        }
    }

    #[test]
    fn rfc5761_4_second_byte_tells_rtcp_from_rtp() {
        for (second, rtcp) in [(191, false), (192, true), (200, true), (223, true), (224, false), (0, false)]
        {
            assert_eq!(is_rtcp(&[0x80, second]), rtcp, "{second}");
        }
        assert!(!is_rtcp(&[0x80]));
    }
}
