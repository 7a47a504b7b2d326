//! The two ways of encrypting: AES in counter mode (RFC 3711 §4.1.1) and in Galois/counter mode (RFC 7714).

use aes::cipher::{
    BlockEncrypt, BlockSizeUser, KeyInit, consts::U12, consts::U16, generic_array::GenericArray,
};
use aes::{Aes128Enc, Aes192Enc, Aes256Enc};
use aes_gcm::{AeadInPlace, AesGcm};
use base::SrtpSuite;

use crate::Refused;

/// Blocks that are encrypted at once: so many are on their way through the processor's unit for it.
const BLOCKS: usize = 8;
/// Bytes of a block.
const BLOCK: usize = 16;
/// Bytes of the tag of Galois/counter mode (RFC 7714 §13.1).
pub(crate) const GCM_TAG_BYTES: usize = 16;

type Block = GenericArray<u8, U16>;

/// AES in counter mode, of three lengths of key.
pub(crate) enum Counter {
    Aes128(Aes128Enc),
    Aes192(Aes192Enc),
    Aes256(Aes256Enc),
}

impl Counter {
    /// With a key of 16, 24 or 32 bytes.
    pub(crate) fn new(key: &[u8]) -> Option<Self> {
        Some(match key.len() {
            16 => Self::Aes128(Aes128Enc::new_from_slice(key).ok()?),
            24 => Self::Aes192(Aes192Enc::new_from_slice(key).ok()?),
            32 => Self::Aes256(Aes256Enc::new_from_slice(key).ok()?),
            _ => return None,
        })
    }
    /// Encrypts, or decrypts: the last two bytes of `iv` count blocks from what they hold.
    #[inline]
    pub(crate) fn apply(&self, iv: [u8; BLOCK], data: &mut [u8]) {
        match self {
            Self::Aes128(aes) => apply(aes, iv, data),
            Self::Aes192(aes) => apply(aes, iv, data),
            Self::Aes256(aes) => apply(aes, iv, data),
        }
    }
}

#[inline]
fn apply<C: BlockEncrypt + BlockSizeUser<BlockSize = U16>>(aes: &C, iv: [u8; BLOCK], data: &mut [u8]) {
    let [start @ .., c0, c1] = iv;
    let mut count = u16::from_be_bytes([c0, c1]);
    let mut room: [Block; BLOCKS] = Default::default();
    for run in data.chunks_mut(BLOCKS * BLOCK) {
        // A run of a few blocks takes as long as a full one: they go through side by side.
        for block in &mut room {
            if let Some((head, tail)) = block.split_first_chunk_mut::<14>() {
                *head = start;
                tail.copy_from_slice(&count.to_be_bytes());
            }
            count = count.wrapping_add(1);
        }
        aes.encrypt_blocks(&mut room);
        let (blocks, rest) = run.as_chunks_mut::<BLOCK>();
        for (block, key) in blocks.iter_mut().zip(&room) {
            let key: [u8; BLOCK] = (*key).into();
            *block = (u128::from_ne_bytes(*block) ^ u128::from_ne_bytes(key)).to_ne_bytes();
        }
        if let Some(key) = room.get(blocks.len()) {
            for (byte, key) in rest.iter_mut().zip(key) {
                *byte ^= key;
            }
        }
    }
}

/// AES in Galois/counter mode, of two lengths of key.
#[allow(clippy::large_enum_variant, reason = "a box more would be a wait for memory more for each packet")]
pub(crate) enum Galois {
    Aes128(AesGcm<Aes128Enc, U12>),
    Aes256(AesGcm<Aes256Enc, U12>),
}

impl Galois {
    /// With a key of 16 or 32 bytes.
    pub(crate) fn new(key: &[u8]) -> Option<Self> {
        Some(match key.len() {
            16 => Self::Aes128(AesGcm::from(Aes128Enc::new_from_slice(key).ok()?)),
            32 => Self::Aes256(AesGcm::from(Aes256Enc::new_from_slice(key).ok()?)),
            _ => return None,
        })
    }
    /// Encrypts, and gives the tag.
    pub(crate) fn seal(
        &self,
        nonce: [u8; 12],
        aad: &[u8],
        data: &mut [u8],
    ) -> Result<[u8; GCM_TAG_BYTES], Refused> {
        let nonce = GenericArray::from(nonce);
        let tag = match self {
            Self::Aes128(gcm) => gcm.encrypt_in_place_detached(&nonce, aad, data),
            Self::Aes256(gcm) => gcm.encrypt_in_place_detached(&nonce, aad, data),
        };
        // It fails beyond 64 GB.
        tag.map(Into::into).map_err(|_| Refused::NoRoom)
    }
    /// Decrypts when the tag is right, and else leaves the data alone.
    pub(crate) fn open(
        &self,
        nonce: [u8; 12],
        aad: &[u8],
        data: &mut [u8],
        tag: [u8; GCM_TAG_BYTES],
    ) -> Result<(), Refused> {
        let (nonce, tag) = (GenericArray::from(nonce), GenericArray::from(tag));
        let opened = match self {
            Self::Aes128(gcm) => gcm.decrypt_in_place_detached(&nonce, aad, data, &tag),
            Self::Aes256(gcm) => gcm.decrypt_in_place_detached(&nonce, aad, data, &tag),
        };
        opened.map_err(|_| Refused::BadTag)
    }
}

/// What a suite encrypts with.
pub(crate) enum Cipher {
    Counter(Counter),
    Galois(Galois),
}

impl Cipher {
    pub(crate) fn new(suite: SrtpSuite, key: &[u8]) -> Option<Self> {
        match suite {
            SrtpSuite::AesGcm128 | SrtpSuite::AesGcm256 => Galois::new(key).map(Self::Galois),
            SrtpSuite::AesCm128Sha1Tag80
            | SrtpSuite::AesCm128Sha1Tag32
            | SrtpSuite::AesCm192Sha1Tag80
            | SrtpSuite::AesCm192Sha1Tag32
            | SrtpSuite::AesCm256Sha1Tag80
            | SrtpSuite::AesCm256Sha1Tag32 => Counter::new(key).map(Self::Counter),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hex(text: &str) -> Vec<u8> {
        let digits: Vec<u8> =
            text.chars().filter_map(|letter| letter.to_digit(16)).map(|digit| digit as u8).collect();
        digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect()
    }

    #[test]
    fn rfc3711_b_2_and_rfc6188_7_key_streams_are_those_of_the_documents() {
        let salt = "f0f1f2f3f4f5f6f7f8f9fafbfcfd";
        for (name, key, first, expected) in [
            (
                "AES-128, first blocks",
                "2b7e151628aed2a6abf7158809cf4f3c",
                0_u16,
                "e03ead0935c95e80e166b16dd92b4eb4 d23513162b02d0f72a43a2fe4a5f97ab 41e95b3bb0a2e8dd477901e4fca894c0",
            ),
            (
                "AES-128, last blocks",
                "2b7e151628aed2a6abf7158809cf4f3c",
                0xfeff,
                "ec8cdf7398607cb0f2d21675ea9ea1e4 362b7c3c6773516318a077d7fc5073ae 6a2cc3787889374fbeb4c81b17ba6c44",
            ),
            (
                "AES-192",
                "eab234764e517b2d3d160d587d8c86219740f65f99b6bcf7",
                0,
                "35096cba4610028dc1b57503804ce37c 5de986291dcce161d5165ec4568f5c9a 474a40c77894bc17180202272a4c264d",
            ),
            (
                "AES-256",
                "57f82fe3613fd170a85ec93c40b1f0922ec4cb0dc025b58272147cc438944a98",
                0,
                "92bdd28a93c3f52511c677d08b5515a4 9da71b2378a854f67050756ded165bac 63c4868b7096d88421b563b8c94c9a31",
            ),
        ] {
            let counter = Counter::new(&hex(key)).unwrap();
            let mut iv = [0; 16];
            iv[..14].copy_from_slice(&hex(salt));
            iv[14..].copy_from_slice(&first.to_be_bytes());
            let expected = hex(expected);
            for length in [0, 1, 15, 16, 17, 47, expected.len()] {
                let mut data = vec![0; length];
                counter.apply(iv, &mut data);
                assert_eq!(data, expected[..length], "{name}, {length} bytes");
            }
        }
    }

    #[test]
    fn long_data_goes_on_counting_from_run_to_run() {
        let counter = Counter::new(&[7; 16]).unwrap();
        let mut whole = [0; 1000];
        counter.apply([3; 16], &mut whole);
        for block in 0..62_u16 {
            let mut iv = [3; 16];
            iv[14..].copy_from_slice(&(0x0303 + block).to_be_bytes());
            let mut one = [0; 16];
            counter.apply(iv, &mut one);
            let at = usize::from(block) * 16;
            assert_eq!(one, whole[at..at + 16], "block {block}");
        }
    }

    #[test]
    fn keys_of_other_lengths_are_none() {
        for length in [0, 15, 17, 20, 31, 33] {
            assert!(Counter::new(&vec![0; length]).is_none() && Galois::new(&vec![0; length]).is_none());
        }
        assert!(Galois::new(&[0; 24]).is_none());
    }
}
