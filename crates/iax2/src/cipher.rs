//! Enciphered frames (RFC 5456 §8.1.4): AES-128 in CBC from a zero vector, after 16 to 31 octets of padding.
//!
//! There is no check of integrity, and only sequence numbers stand against repetition. It hides what is said from who
//! reads along and nothing more; `docs/iax2.md` says what to use instead.

use aes::Aes128;
use aes::cipher::{Block, BlockDecrypt as _, BlockEncrypt as _, KeyInit as _};
use base::hash::Randomness;

/// Octets of a block.
const BLOCK: usize = 16;
/// Octets of a full frame that stay in the clear: the call numbers.
pub const FULL_CLEAR: usize = 4;
/// Octets of a mini frame that stay in the clear: the source's number.
pub const MINI_CLEAR: usize = 2;

/// One direction's key.
#[derive(Clone)]
pub struct Cipher(Aes128);

impl core::fmt::Debug for Cipher {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Cipher")
    }
}

impl Cipher {
    /// The cipher of a key.
    pub fn new(key: &[u8; 16]) -> Self {
        Self(Aes128::new(key.into()))
    }

    /// Appends `frame` to `out`, all but its first `clear` octets enciphered.
    pub fn seal(&self, frame: &[u8], clear: usize, random: &mut Randomness, out: &mut Vec<u8>) {
        let Some((head, body)) = frame.split_at_checked(clear) else { return };
        out.extend_from_slice(head);
        let start = out.len();
        // So much that blocks come out whole.
        let odd = (BLOCK - body.len() % BLOCK) % BLOCK;
        let mut padding = [0; 2 * BLOCK];
        for piece in padding.as_chunks_mut::<16>().0 {
            *piece = random.next_wide().to_le_bytes();
        }
        padding[BLOCK - 1] = padding[BLOCK - 1] & 0xf0 | odd as u8;
        out.extend(padding.iter().take(BLOCK + odd));
        out.extend_from_slice(body);
        let mut previous = [0; BLOCK];
        let Some(sealed) = out.get_mut(start..) else { return };
        for block in sealed.as_chunks_mut::<BLOCK>().0 {
            block.iter_mut().zip(previous).for_each(|(octet, before)| *octet ^= before);
            self.0.encrypt_block(Block::<Aes128>::from_mut_slice(block));
            previous = *block;
        }
    }

    /// Puts `frame`, deciphered, into `out`; `false` when it has no whole blocks or its padding is longer than it.
    pub fn open(&self, frame: &[u8], clear: usize, out: &mut Vec<u8>) -> bool {
        out.clear();
        let Some((head, sealed)) = frame.split_at_checked(clear) else { return false };
        let (blocks, rest) = sealed.as_chunks::<BLOCK>();
        if !rest.is_empty() || blocks.is_empty() {
            return false;
        }
        out.extend_from_slice(head);
        let mut previous = [0; BLOCK];
        let mut skip = 0;
        for (at, block) in blocks.iter().enumerate() {
            let mut open = *block;
            self.0.decrypt_block(Block::<Aes128>::from_mut_slice(&mut open));
            open.iter_mut().zip(previous).for_each(|(octet, before)| *octet ^= before);
            previous = *block;
            if at == 0 {
                skip = usize::from(open[BLOCK - 1] & 0x0f);
                continue;
            }
            let skipped = skip.min(BLOCK);
            out.extend(open.iter().skip(skipped));
            skip -= skipped;
        }
        skip == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::hash::Key;

    #[test]
    fn rfc5456_8_1_4_what_is_sealed_opens_at_every_length_and_only_with_its_key() {
        let mut random = Randomness::new(Key::new(1));
        let (cipher, other) = (Cipher::new(&[7; 16]), Cipher::new(&[8; 16]));
        let frame: Vec<u8> = (0..200).collect();
        let (mut sealed, mut opened) = (Vec::new(), Vec::new());
        for length in 4..200 {
            for clear in [FULL_CLEAR, MINI_CLEAR] {
                sealed.clear();
                cipher.seal(&frame[..length], clear, &mut random, &mut sealed);
                assert_eq!(sealed[..clear], frame[..clear]);
                assert_eq!((sealed.len() - clear) % 16, 0);
                assert!((16..32).contains(&(sealed.len() - length)), "{length} octets");
                assert!(cipher.open(&sealed, clear, &mut opened));
                assert_eq!(opened, frame[..length]);
                assert!(!other.open(&sealed, clear, &mut opened) || opened != frame[..length]);
            }
        }
    }

    #[test]
    fn rfc5456_8_1_4_what_openssl_enciphers_opens() {
        // openssl enc -aes-128-cbc -nopad with a zero vector, key 00 to 0f, over twenty octets of padding and the frame.
        let sealed = [
            0x5e, 0x9d, 0x2c, 0x89, 0x98, 0x44, 0x7f, 0xbe, 0x4b, 0xb7, 0x51, 0xbd, 0xfd, 0x75, 0x20, 0x1f,
            0xce, 0x59, 0x3b, 0x41, 0x76, 0xf1, 0xa2, 0x13, 0xf0, 0x6f, 0xae, 0xf7, 0x69, 0xbd, 0x59, 0xc6,
        ];
        let cipher = Cipher::new(&[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15]);
        let mut opened = Vec::new();
        assert!(cipher.open(&[&b"head"[..], &sealed].concat(), FULL_CLEAR, &mut opened));
        assert_eq!(opened, b"headhello, frame");
    }

    #[test]
    fn sealed_twice_a_frame_looks_different_and_broken_ones_do_not_open() {
        let mut random = Randomness::new(Key::new(1));
        let cipher = Cipher::new(&[7; 16]);
        let (mut first, mut second, mut opened) = (Vec::new(), Vec::new(), Vec::new());
        cipher.seal(&[1; 20], FULL_CLEAR, &mut random, &mut first);
        cipher.seal(&[1; 20], FULL_CLEAR, &mut random, &mut second);
        assert_ne!(first, second);
        for length in 0..first.len() {
            assert!(
                !cipher.open(&first[..length], FULL_CLEAR, &mut opened) || length % 16 == 4,
                "{length} octets"
            );
        }
    }
}
