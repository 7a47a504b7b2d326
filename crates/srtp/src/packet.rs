//! As much of a packet's header as sealing needs. What is left of it is read when the packet is known to be authentic.

use crate::Refused;

/// Bytes of an RTCP packet that are never encrypted: the first header and the sender's SSRC (RFC 3711 §3.4).
pub(crate) const RTCP_CLEAR_BYTES: usize = 8;

/// What the clear header of RTP says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Clear {
    pub(crate) sequence: u16,
    pub(crate) ssrc: u32,
    /// Bytes before what is encrypted: header, list of sources, extension.
    pub(crate) bytes: usize,
}

pub(crate) fn rtp(packet: &[u8]) -> Result<Clear, Refused> {
    let (fixed, rest) = packet.split_first_chunk::<12>().ok_or(Refused::TooShort)?;
    let [flags, _, q0, q1, _, _, _, _, s0, s1, s2, s3] = *fixed;
    if flags >> 6 != 2 {
        return Err(Refused::BadVersion);
    }
    let sources = 4 * usize::from(flags & 0x0f);
    let mut bytes = fixed.len() + sources;
    if flags & 0x10 != 0 {
        let head = rest.get(sources..).and_then(<[u8]>::first_chunk::<4>).ok_or(Refused::TooShort)?;
        let [_, _, l0, l1] = *head;
        bytes += 4 + 4 * usize::from(u16::from_be_bytes([l0, l1]));
    }
    if bytes > packet.len() {
        return Err(Refused::TooShort);
    }
    let (sequence, ssrc) = (u16::from_be_bytes([q0, q1]), u32::from_be_bytes([s0, s1, s2, s3]));
    Ok(Clear { sequence, ssrc, bytes })
}

/// The sender of a compound.
pub(crate) fn rtcp(packet: &[u8]) -> Result<u32, Refused> {
    let [flags, _, _, _, s0, s1, s2, s3] =
        *packet.first_chunk::<RTCP_CLEAR_BYTES>().ok_or(Refused::TooShort)?;
    if flags >> 6 != 2 {
        return Err(Refused::BadVersion);
    }
    Ok(u32::from_be_bytes([s0, s1, s2, s3]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rfc3711_3_1_what_is_clear_ends_behind_sources_and_extension() {
        let with = |flags: u8, tail: &[u8]| {
            let mut packet = vec![flags, 0, 0x12, 0x34, 0, 0, 0, 0, 0xde, 0xad, 0xbe, 0xef];
            packet.extend_from_slice(tail);
            packet
        };
        for (name, packet, expected) in [
            ("plain", with(0x80, &[1]), Ok(12)),
            ("nothing behind", with(0x80, &[]), Ok(12)),
            ("two sources", with(0x82, &[0; 9]), Ok(20)),
            ("sources cut off", with(0x82, &[0; 7]), Err(Refused::TooShort)),
            ("extension", with(0x91, &[1, 2, 3, 4, 0, 0, 0, 1, 9, 9, 9, 9]), Ok(24)),
            ("extension cut off", with(0x90, &[0, 0, 0, 1, 9, 9, 9]), Err(Refused::TooShort)),
            ("extension's length cut off", with(0x90, &[0, 0, 0]), Err(Refused::TooShort)),
            ("version 1", with(0x40, &[0; 9]), Err(Refused::BadVersion)),
        ] {
            let expected = expected.map(|bytes| Clear { sequence: 0x1234, ssrc: 0xdead_beef, bytes });
            assert_eq!(rtp(&packet), expected, "{name}");
        }
        for length in 0..12 {
            assert_eq!(rtp(&with(0x80, &[])[..length]), Err(Refused::TooShort), "{length}");
        }
        assert_eq!(rtcp(&[0x80, 200, 0, 1, 0, 0, 0, 7]), Ok(7));
        assert_eq!(rtcp(&[0x80, 200, 0, 1, 0, 0, 0]), Err(Refused::TooShort));
        assert_eq!(rtcp(&[0xc0, 200, 0, 1, 0, 0, 0, 7]), Err(Refused::BadVersion));
    }
}
