//! Headers of the packets that we build ourselves: Ethernet, IPv4, UDP, with their checksums.
#![forbid(unsafe_code)]

use std::net::{Ipv4Addr, SocketAddrV4};

/// Destination, source, type.
pub(crate) const ETHERNET: usize = 14;
/// IPv4 without options.
pub(crate) const IPV4: usize = 20;
/// Ports, length, checksum.
pub(crate) const UDP: usize = 8;
/// Bytes before the payload.
pub(crate) const HEADERS: usize = ETHERNET + IPV4 + UDP;

/// Routers that a packet may pass; the kernel's own default.
const TIME_TO_LIVE: u8 = 64;
const PROTOCOL_UDP: u8 = 17;
const TYPE_IPV4: [u8; 2] = [0x08, 0x00];
/// Don't fragment: what is longer than the way allows goes through an ordinary socket. Such packets need no identification
/// (RFC 6864 §4.1).
const DONT_FRAGMENT: [u8; 2] = [0x40, 0x00];

/// An Ethernet address.
pub(crate) type Mac = [u8; 6];

/// The headers of one way, ready but for what depends on the payload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Template {
    bytes: [u8; HEADERS],
    /// Sum of the IPv4 header with length and checksum 0.
    ip_sum: u32,
    /// Sum of the pseudo-header and the ports, without the two lengths.
    udp_sum: u32,
}

impl Template {
    /// Headers from one address to another. `macs` (destination, source) are 0 where the kernel adds its own.
    pub(crate) fn new(from: SocketAddrV4, to: SocketAddrV4, tos: u8, macs: (Mac, Mac)) -> Self {
        let mut bytes = [0; HEADERS];
        let mut at = 0;
        let mut put = |part: &[u8]| {
            if let Some(place) = bytes.get_mut(at..at + part.len()) {
                place.copy_from_slice(part);
            }
            at += part.len();
        };
        put(&macs.0);
        put(&macs.1);
        put(&TYPE_IPV4);
        put(&[0x45, tos, 0, 0, 0, 0]);
        put(&DONT_FRAGMENT);
        put(&[TIME_TO_LIVE, PROTOCOL_UDP, 0, 0]);
        put(&from.ip().octets());
        put(&to.ip().octets());
        put(&from.port().to_be_bytes());
        put(&to.port().to_be_bytes());
        let (ip, ports) = (bytes.get(ETHERNET..).unwrap_or_default(), ETHERNET + IPV4);
        let ip_sum = sum(ip.get(..IPV4).unwrap_or_default());
        let addresses = sum(ip.get(12..IPV4).unwrap_or_default());
        let udp_sum = addresses
            + sum(bytes.get(ports..ports + 4).unwrap_or_default())
            + u32::from(u16::from_ne_bytes([0, PROTOCOL_UDP]));
        Self { bytes, ip_sum, udp_sum }
    }
    /// The headers, and their sums for the checksums of IPv4 and UDP, all without lengths.
    pub(crate) const fn parts(&self) -> (&[u8; HEADERS], u32, u32) {
        (&self.bytes, self.ip_sum, self.udp_sum)
    }
    /// Writes headers and payload and returns the length; 0 when `out` is too short.
    pub(crate) fn write(&self, payload: &[u8], out: &mut [u8]) -> usize {
        let length = HEADERS + payload.len();
        let Some((headers, rest)) =
            out.get_mut(..length).and_then(|out| out.split_first_chunk_mut::<HEADERS>())
        else {
            return 0;
        };
        *headers = self.bytes;
        rest.copy_from_slice(payload);
        // No packet of ours is longer than 65,535 bytes: the batch has less room.
        let ip_length = ((IPV4 + UDP + payload.len()) as u16).to_be_bytes();
        let udp_length = ((UDP + payload.len()) as u16).to_be_bytes();
        [headers[16], headers[17]] = ip_length;
        [headers[24], headers[25]] = fold(self.ip_sum + u32::from(u16::from_ne_bytes(ip_length)));
        [headers[38], headers[39]] = udp_length;
        // The length counts twice: in the pseudo-header and in the header.
        let udp = self.udp_sum + 2 * u32::from(u16::from_ne_bytes(udp_length)) + sum(payload);
        [headers[40], headers[41]] = match fold(udp) {
            // 0 would mean that there is no checksum (RFC 768).
            [0, 0] => [0xff, 0xff],
            checksum => checksum,
        };
        length
    }
}

/// A datagram in a frame.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Parsed<'a> {
    pub(crate) from: SocketAddrV4,
    pub(crate) to: SocketAddrV4,
    pub(crate) payload: &'a [u8],
}

/// The port that a frame is for, if it is what it seems.
pub(crate) fn port(frame: &[u8]) -> Option<u16> {
    frame.get(ETHERNET + IPV4 + 2..)?.first_chunk().copied().map(u16::from_be_bytes)
}

/// Reads a frame that was taken off an interface before the kernel looked at it; `None` when it is not a whole, sound IPv4
/// datagram without options.
///
/// A sender on the same machine may leave the UDP checksum to a network card that there is none of; then the field
/// holds the sum of the pseudo-header alone, and memory has nothing to be protected from.
pub(crate) fn parse(frame: &[u8]) -> Option<Parsed<'_>> {
    let (headers, _) = frame.split_first_chunk::<HEADERS>()?;
    let word = |at: usize| Some(u16::from_be_bytes(headers.get(at..)?.first_chunk().copied()?));
    let address = |at: usize| Some(Ipv4Addr::from(headers.get(at..)?.first_chunk::<4>().copied()?));
    let (kind, version, protocol) = (headers.get(12..14)?, *headers.get(14)?, *headers.get(23)?);
    let is_fragment = word(20)? & 0x3fff != 0;
    if kind != TYPE_IPV4 || version != 0x45 || protocol != PROTOCOL_UDP || is_fragment {
        return None;
    }
    let datagram = frame.get(ETHERNET..ETHERNET + usize::from(word(16)?))?;
    let (ip, udp) = datagram.split_at_checked(IPV4)?;
    if fold(sum(ip)) != [0, 0] || usize::from(word(38)?) != udp.len() {
        return None;
    }
    let payload = udp.get(UDP..)?;
    let checksum = udp.get(6..8)?;
    let pseudo = sum(ip.get(12..)?)
        + u32::from(u16::from_ne_bytes([0, PROTOCOL_UDP]))
        + u32::from(u16::from_ne_bytes(*udp.get(4..)?.first_chunk()?));
    let is_left_out = checksum == [0, 0];
    let is_sound = || fold(pseudo + sum(udp)) == [0, 0];
    let is_left_to_hardware = || fold(pseudo).map(|byte| !byte) == checksum;
    if !(is_left_out || is_sound() || is_left_to_hardware()) {
        return None;
    }
    let from = SocketAddrV4::new(address(26)?, word(34)?);
    let to = SocketAddrV4::new(address(30)?, word(36)?);
    Some(Parsed { from, to, payload })
}

/// The one's complement sum of 16-bit words in memory order (RFC 1071), not complemented, below 2^18.
pub(crate) fn sum(bytes: &[u8]) -> u32 {
    let (words, tail) = bytes.as_chunks::<4>();
    let mut total: u64 = words.iter().map(|word| u64::from(u32::from_ne_bytes(*word))).sum();
    let (pairs, odd) = tail.as_chunks::<2>();
    total += pairs.iter().map(|pair| u64::from(u16::from_ne_bytes(*pair))).sum::<u64>();
    if let [last] = odd {
        total += u64::from(u16::from_ne_bytes([*last, 0]));
    }
    let total = (total & 0xffff_ffff) + (total >> 32);
    let total = (total & 0xffff) + (total >> 16 & 0xffff) + (total >> 32);
    total as u32
}

/// The complement of a sum, as it stands in a header.
pub(crate) fn fold(sum: u32) -> [u8; 2] {
    let once = (sum & 0xffff) + (sum >> 16);
    let twice = (once & 0xffff) + (once >> 16);
    (!(twice as u16)).to_ne_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 1071 §1, word by word.
    fn plain(bytes: &[u8]) -> u16 {
        let mut total = 0_u32;
        for pair in bytes.chunks(2) {
            total += u32::from(u16::from_be_bytes([pair[0], pair.get(1).copied().unwrap_or(0)]));
            total = (total & 0xffff) + (total >> 16);
        }
        total as u16
    }

    #[test]
    fn rfc1071_the_sum_equals_the_plain_one_for_every_length() {
        let bytes: Vec<u8> = (0..3000_u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
        for length in 0..bytes.len() {
            let all = &bytes[..length];
            assert_eq!(fold(sum(all)), (!plain(all)).to_be_bytes(), "{length}");
        }
        assert_eq!(fold(sum(&[0xff; 6000])), [0, 0]);
    }

    #[test]
    fn rfc768_and_rfc791_headers_sum_to_zero_whatever_the_payload() {
        let from = "192.0.2.1:4000".parse().unwrap();
        let to = "198.51.100.255:65535".parse().unwrap();
        let template = Template::new(from, to, 0xb8, ([1; 6], [2; 6]));
        for length in [0, 1, 7, 12, 172, 1200] {
            let payload: Vec<u8> = (0..length).map(|n| (n * 37) as u8).collect();
            let mut out = [0; 2048];
            let written = template.write(&payload, &mut out);
            assert_eq!(written, HEADERS + length);
            let ip = &out[ETHERNET..written];
            assert_eq!(plain(&ip[..IPV4]), 0xffff, "{length}");
            assert_eq!(usize::from(u16::from_be_bytes([ip[2], ip[3]])), IPV4 + UDP + length);
            let pseudo = [&ip[12..20], &[0, 17], &ip[24..26]].concat();
            assert_eq!(plain(&[&pseudo[..], &ip[20..]].concat()), 0xffff, "{length}");
            assert_eq!((ip[1], &ip[28..]), (0xb8, &payload[..]));
            assert_eq!((&out[..6], &out[6..12], &out[12..14]), (&[1; 6][..], &[2; 6][..], &[8, 0][..]));
        }
        assert_eq!(template.write(&[0; 3000], &mut [0; 2048]), 0, "no room, nothing written");
    }

    #[test]
    fn what_was_written_is_read_and_what_is_damaged_is_not() {
        let (from, to) = ("192.0.2.1:4000".parse().unwrap(), "198.51.100.7:5001".parse().unwrap());
        let payload: Vec<u8> = (0..172).map(|n| n as u8 ^ 0x5a).collect();
        let mut frame = vec![0; 256];
        let length = Template::new(from, to, 0, Default::default()).write(&payload, &mut frame);
        // What is short is padded on the wire (60 bytes at least); the rest of the frame is none of ours.
        assert_eq!(parse(&frame), Some(Parsed { from, to, payload: &payload }));
        frame.truncate(length);
        assert_eq!(parse(&frame), Some(Parsed { from, to, payload: &payload }));
        for at in 12..length {
            let mut damaged = frame.clone();
            damaged[at] ^= 0x10;
            assert_eq!(parse(&damaged), None, "byte {at}");
        }
        for shorter in 0..length {
            assert_eq!(parse(&frame[..shorter]), None, "{shorter} bytes");
        }
        let mut left_out = frame.clone();
        left_out[40..42].fill(0);
        assert!(parse(&left_out).is_some(), "RFC 768: 0 is no checksum");
        let mut partial = frame.clone();
        let pseudo = [&frame[26..34], &[0, 17], &frame[38..40]].concat();
        partial[40..42].copy_from_slice(&plain(&pseudo).to_be_bytes());
        assert!(parse(&partial).is_some(), "left to the hardware");
        partial[40] ^= 1;
        assert_eq!(parse(&partial), None);
    }
}
