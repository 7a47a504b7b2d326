//! One direction of a stream: its keys, and where its sources are.

use base::{SrtpSecret, SrtpSuite};

use crate::Refused;
use crate::cipher::{Cipher, Counter, GCM_TAG_BYTES, Galois};
use crate::derive::{Kind, SALT_BYTES, SessionKeys};
use crate::mac::Mac;
use crate::packet::{self, Clear, RTCP_CLEAR_BYTES};
use crate::sources::{self, RTCP_INDICES, Sources};

/// Bytes of the tag on RTCP in counter mode, whatever RTP has (RFC 4568 §6.2.2).
const RTCP_TAG_BYTES: usize = 10;
/// The index of RTCP with its flag, behind the packet.
const WORD_BYTES: usize = 4;
/// The flag that says that RTCP is encrypted.
const ENCRYPTED: u32 = 1 << 31;

/// One direction.
pub(crate) struct Direction {
    tag_bytes: usize,
    rtp: SessionKeys,
    rtcp: SessionKeys,
    pub(crate) sources: Sources,
    refuses_replays: bool,
}

impl Direction {
    /// `None` when the secret does not fit the suite.
    pub(crate) fn new(suite: SrtpSuite, secret: &SrtpSecret, refuses_replays: bool) -> Option<Self> {
        Some(Self {
            tag_bytes: suite.tag_bytes(),
            rtp: SessionKeys::derive(suite, secret, Kind::Rtp)?,
            rtcp: SessionKeys::derive(suite, secret, Kind::Rtcp)?,
            sources: Sources::default(),
            refuses_replays,
        })
    }
    pub(crate) const fn set_replay_protection(&mut self, on: bool) {
        self.refuses_replays = on;
    }

    /// Seals the packet that fills the first `length` bytes of the buffer.
    pub(crate) fn seal_rtp(&mut self, buffer: &mut [u8], length: usize) -> Result<usize, Refused> {
        let end = length + self.tag_bytes;
        let whole = buffer.get_mut(..end).ok_or(Refused::NoRoom)?;
        let (packet, trailer) = whole.split_at_mut_checked(length).ok_or(Refused::NoRoom)?;
        let clear = packet::rtp(packet)?;
        let window = self.sources.rtp(clear.ssrc);
        let index = sources::index(window.highest(), clear.sequence)?;
        // Two packets under one index would give away what they have in common.
        window.judge(index)?;
        let (head, body) = packet.split_at_mut_checked(clear.bytes).ok_or(Refused::TooShort)?;
        let keys = &self.rtp;
        match &keys.cipher {
            Cipher::Counter(counter) => {
                counter.apply(counter_iv(&keys.salt, clear.ssrc, index), body);
                let tag = keys.mac.tag(packet, rollover(index));
                fill(trailer, &tag);
            }
            Cipher::Galois(galois) => {
                let tag = galois.seal(galois_nonce(&keys.salt, clear.ssrc, index), head, body)?;
                fill(trailer, &tag);
            }
        }
        self.sources.mark_rtp(clear.ssrc, index);
        Ok(end)
    }

    /// Opens a packet. `elsewhere` is the highest index that its source had under another key: tried when this direction
    /// does not know the source, because not everybody begins anew with a new key.
    pub(crate) fn open_rtp(&mut self, packet: &mut [u8], elsewhere: Option<u64>) -> Result<usize, Refused> {
        let end = packet.len().checked_sub(self.tag_bytes).ok_or(Refused::TooShort)?;
        let (sealed, tag) = packet.split_at_mut_checked(end).ok_or(Refused::TooShort)?;
        let clear = packet::rtp(sealed)?;
        let window = self.sources.rtp(clear.ssrc);
        let mut index = sources::index(window.highest(), clear.sequence)?;
        if self.refuses_replays {
            window.judge(index)?;
        }
        let mut opened = self.rtp.open_rtp(sealed, tag, clear, index);
        if let (Err(Refused::BadTag), None, Some(_)) = (opened, window.highest(), elsewhere) {
            let other = sources::index(elsewhere, clear.sequence)?;
            if other != index {
                index = other;
                opened = self.rtp.open_rtp(sealed, tag, clear, index);
            }
        }
        opened?;
        self.sources.mark_rtp(clear.ssrc, index);
        Ok(end)
    }

    /// Seals the compound that fills the first `length` bytes of the buffer.
    pub(crate) fn seal_rtcp(&mut self, buffer: &mut [u8], length: usize) -> Result<usize, Refused> {
        let keys = &self.rtcp;
        let end = length + WORD_BYTES + tag_bytes(&keys.cipher);
        let whole = buffer.get_mut(..end).ok_or(Refused::NoRoom)?;
        let (packet, trailer) = whole.split_at_mut_checked(length).ok_or(Refused::NoRoom)?;
        let ssrc = packet::rtcp(packet)?;
        let index = self.sources.rtcp(ssrc).highest().map_or(0, |highest| highest + 1);
        if index >= RTCP_INDICES {
            return Err(Refused::KeyUsedUp);
        }
        let word = (index as u32 | ENCRYPTED).to_be_bytes();
        let (head, body) = packet.split_at_mut_checked(RTCP_CLEAR_BYTES).ok_or(Refused::TooShort)?;
        match &keys.cipher {
            Cipher::Counter(counter) => {
                counter.apply(counter_iv(&keys.salt, ssrc, index), body);
                let tag = keys.mac.tag(packet, word);
                let (place, rest) = trailer.split_at_mut_checked(WORD_BYTES).ok_or(Refused::NoRoom)?;
                fill(place, &word);
                fill(rest, &tag);
            }
            Cipher::Galois(galois) => {
                let tag =
                    galois.seal(galois_nonce(&keys.salt, ssrc, index), &clear_rtcp(head, word), body)?;
                let (rest, place) = trailer.split_at_mut_checked(GCM_TAG_BYTES).ok_or(Refused::NoRoom)?;
                fill(place, &word);
                fill(rest, &tag);
            }
        }
        self.sources.mark_rtcp(ssrc, index);
        Ok(end)
    }

    /// Opens a compound.
    pub(crate) fn open_rtcp(&mut self, packet: &mut [u8]) -> Result<usize, Refused> {
        let keys = &self.rtcp;
        let trailer = WORD_BYTES + tag_bytes(&keys.cipher);
        let end = packet.len().checked_sub(trailer).ok_or(Refused::TooShort)?;
        let (sealed, trailer) = packet.split_at_mut_checked(end).ok_or(Refused::TooShort)?;
        let ssrc = packet::rtcp(sealed)?;
        let (word, tag) = match keys.cipher {
            Cipher::Counter(_) => trailer.split_first_chunk::<WORD_BYTES>(),
            Cipher::Galois(_) => trailer.split_last_chunk::<WORD_BYTES>().map(|(tag, word)| (word, tag)),
        }
        .ok_or(Refused::TooShort)?;
        let flagged = u32::from_be_bytes(*word);
        if flagged & ENCRYPTED == 0 {
            return Err(Refused::NotEncrypted);
        }
        let index = u64::from(flagged & !ENCRYPTED);
        if self.refuses_replays {
            self.sources.rtcp(ssrc).judge(index)?;
        }
        let (head, _) = sealed.split_at_checked(RTCP_CLEAR_BYTES).ok_or(Refused::TooShort)?;
        let aad = clear_rtcp(head, *word);
        match &keys.cipher {
            Cipher::Counter(counter) => {
                let iv = counter_iv(&keys.salt, ssrc, index);
                open_counted(counter, &keys.mac, (sealed, RTCP_CLEAR_BYTES), *word, tag, iv)?;
            }
            Cipher::Galois(galois) => {
                let nonce = galois_nonce(&keys.salt, ssrc, index);
                open_galois(galois, nonce, &aad, sealed.get_mut(RTCP_CLEAR_BYTES..), tag)?;
            }
        }
        self.sources.mark_rtcp(ssrc, index);
        Ok(end)
    }
}

impl SessionKeys {
    /// Opens what lies between header and tag, when the tag is right under that index.
    fn open_rtp(&self, sealed: &mut [u8], tag: &[u8], clear: Clear, index: u64) -> Result<(), Refused> {
        match &self.cipher {
            Cipher::Counter(counter) => {
                let iv = counter_iv(&self.salt, clear.ssrc, index);
                open_counted(counter, &self.mac, (sealed, clear.bytes), rollover(index), tag, iv)
            }
            Cipher::Galois(galois) => {
                let nonce = galois_nonce(&self.salt, clear.ssrc, index);
                let (head, body) = sealed.split_at_mut_checked(clear.bytes).ok_or(Refused::TooShort)?;
                open_galois(galois, nonce, head, Some(body), tag)
            }
        }
    }
}

fn open_counted(
    counter: &Counter,
    mac: &Mac,
    (sealed, clear): (&mut [u8], usize),
    tail: [u8; 4],
    tag: &[u8],
    iv: [u8; 16],
) -> Result<(), Refused> {
    if !mac.is_tag(sealed, tail, tag) {
        return Err(Refused::BadTag);
    }
    counter.apply(iv, sealed.get_mut(clear..).unwrap_or_default());
    Ok(())
}

fn open_galois(
    galois: &Galois,
    nonce: [u8; 12],
    aad: &[u8],
    body: Option<&mut [u8]>,
    tag: &[u8],
) -> Result<(), Refused> {
    let tag = *tag.first_chunk::<GCM_TAG_BYTES>().ok_or(Refused::TooShort)?;
    galois.open(nonce, aad, body.unwrap_or_default(), tag)
}

const fn tag_bytes(cipher: &Cipher) -> usize {
    match cipher {
        Cipher::Counter(_) => RTCP_TAG_BYTES,
        Cipher::Galois(_) => GCM_TAG_BYTES,
    }
}

/// As much of the tag as there is room for.
fn fill(room: &mut [u8], tag: &[u8]) {
    for (room, byte) in room.iter_mut().zip(tag) {
        *room = *byte;
    }
}

/// The rollover counter, which is authenticated with the packet and not sent (RFC 3711 §4.2).
const fn rollover(index: u64) -> [u8; 4] {
    ((index >> 16) as u32).to_be_bytes()
}

/// Where the key stream of a packet begins: salt, source and index over each other (RFC 3711 §4.1.1).
#[inline]
fn counter_iv(salt: &[u8; SALT_BYTES], ssrc: u32, index: u64) -> [u8; 16] {
    let salt = salt.iter().fold(0_u128, |all, byte| all << 8 | u128::from(*byte)) << 16;
    (salt ^ u128::from(ssrc) << 64 ^ u128::from(index) << 16).to_be_bytes()
}

/// The nonce of a packet: two zeros, source and index, over the salt (RFC 7714 §8.1 and §9.1).
#[inline]
fn galois_nonce(salt: &[u8; SALT_BYTES], ssrc: u32, index: u64) -> [u8; 12] {
    let salt = salt.iter().take(12).fold(0_u128, |all, byte| all << 8 | u128::from(*byte));
    let bytes = (salt ^ u128::from(ssrc) << 48 ^ u128::from(index)).to_be_bytes();
    bytes.last_chunk::<12>().copied().unwrap_or_default()
}

/// What of a compound is authenticated and not encrypted (RFC 7714 §9.2).
fn clear_rtcp(head: &[u8], word: [u8; WORD_BYTES]) -> [u8; RTCP_CLEAR_BYTES + WORD_BYTES] {
    let mut clear = [0; RTCP_CLEAR_BYTES + WORD_BYTES];
    fill(&mut clear, head);
    if let Some(room) = clear.last_chunk_mut::<WORD_BYTES>() {
        *room = word;
    }
    clear
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hex(text: &str) -> Vec<u8> {
        let digits: Vec<u8> =
            text.chars().filter_map(|letter| letter.to_digit(16)).map(|digit| digit as u8).collect();
        digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect()
    }

    /// Session keys of Galois/counter mode as the documents give them, without a master key.
    fn galois(key: &str, salt: &str) -> SessionKeys {
        let mut padded = zeroize::Zeroizing::new([0; SALT_BYTES]);
        padded[..12].copy_from_slice(&hex(salt));
        let cipher = Cipher::Galois(Galois::new(&hex(key)).unwrap());
        SessionKeys { cipher, mac: Mac::new(&[0; 20]), salt: padded }
    }
    fn direction(key: &str, salt: &str) -> Direction {
        Direction {
            tag_bytes: GCM_TAG_BYTES,
            rtp: galois(key, salt),
            rtcp: galois(key, salt),
            sources: Sources::default(),
            refuses_replays: true,
        }
    }

    const SALT: &str = "517569642070726f2071756f";
    const KEY_128: &str = "000102030405060708090a0b0c0d0e0f";
    const KEY_256: &str = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";

    #[test]
    fn rfc7714_16_srtp_packets_are_those_of_the_document() {
        let plain = "8040f17b 8041f8d3 5501a0b2 47616c6c 696120657374206f6d6e697320646976697361 20696e207061727465732074726573";
        for (name, key, expected) in [
            (
                "16.1.1",
                KEY_128,
                "f24de3a3fb34de6cacba861c9d7e4bcabe633bd50d294e6f42a5f47a51c7d19b36de3adf8833899d7f27beb16a9152cf765ee4390cce",
            ),
            (
                "16.2.1",
                KEY_256,
                "32b1de78a822fe12ef9f78fa332e33aab18012389a58e2f3b50b2a0276ffae0f1ba63799b87b7aa3db36dfffd6b0f9bb7878d7a76c13",
            ),
        ] {
            let plain = hex(plain);
            let mut packet = [plain.clone(), vec![0; 16]].concat();
            let length = direction(key, SALT).seal_rtp(&mut packet, plain.len()).unwrap();
            assert_eq!(packet, [&plain[..12], &hex(expected)].concat(), "{name}");
            let opened = direction(key, SALT).open_rtp(&mut packet[..length], None).unwrap();
            assert_eq!(packet[..opened], plain, "{name}");
        }
    }

    #[test]
    fn rfc7714_17_srtcp_packets_are_those_of_the_document() {
        let plain = hex(
            "81c8000d4d6172734e5450314e545032525450200000042a0000e9304c756e61deadbeefdeadbeefdeadbeefdeadbeefdeadbeef",
        );
        let expected = "63e94885dcdab67ca727d7662f6b7e997ff5c0f76c06f32dc676a5f1730d6fda4ce09b4686303ded0bb9275bc84aa45896cf4d2fc5abf87245d9eade800005d4";
        let mut packet = [plain.clone(), vec![0; 20]].concat();
        let mut sending = direction(KEY_128, SALT);
        sending.sources.mark_rtcp(0x4d61_7273, 0x5d3);
        let length = sending.seal_rtcp(&mut packet, plain.len()).unwrap();
        assert_eq!(packet, [&plain[..8], &hex(expected)].concat());
        let opened = direction(KEY_128, SALT).open_rtcp(&mut packet[..length]).unwrap();
        assert_eq!(packet[..opened], plain);
        // Without the flag it is not what was agreed, whoever sent it.
        packet[length - 4] &= 0x7f;
        assert_eq!(direction(KEY_128, SALT).open_rtcp(&mut packet), Err(Refused::NotEncrypted));
    }
}
