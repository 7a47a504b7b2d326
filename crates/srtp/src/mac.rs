//! HMAC-SHA1 (RFC 2104) with the key's two blocks compressed beforehand, so that a packet of 172 bytes costs four
//! compressions; and small enough that thousands of streams stay in the caches.

use sha1::digest::generic_array::{GenericArray, typenum::U64};
use subtle::ConstantTimeEq;
use zeroize::Zeroize;

/// Bytes of an authentication key (RFC 3711 §5.2).
pub(crate) const KEY_BYTES: usize = 20;
/// Bytes that SHA-1 compresses at once.
const BLOCK: usize = 64;
/// Blocks that are compressed in one call.
const BLOCKS: usize = 4;
/// SHA-1's initial state (FIPS 180-4 §5.3.1).
const INITIAL: [u32; 5] = [0x6745_2301, 0xefcd_ab89, 0x98ba_dcfe, 0x1032_5476, 0xc3d2_e1f0];

/// An authentication key.
pub(crate) struct Mac {
    inner: [u32; 5],
    outer: [u32; 5],
}

impl Drop for Mac {
    fn drop(&mut self) {
        self.inner.zeroize();
        self.outer.zeroize();
    }
}

impl Mac {
    pub(crate) fn new(key: &[u8; KEY_BYTES]) -> Self {
        let state = |pad: u8| {
            let mut block = [pad; BLOCK];
            for (byte, key) in block.iter_mut().zip(key) {
                *byte ^= key;
            }
            let mut state = INITIAL;
            sha1::compress(&mut state, &[GenericArray::from(block)]);
            block.zeroize();
            state
        };
        Self { inner: state(0x36), outer: state(0x5c) }
    }
    /// The tag of a message and of four bytes behind it.
    pub(crate) fn tag(&self, message: &[u8], tail: [u8; 4]) -> [u8; 20] {
        let mut state = self.inner;
        let mut room: [GenericArray<u8, U64>; BLOCKS] = Default::default();
        let (blocks, rest) = message.as_chunks::<BLOCK>();
        let (fours, few) = blocks.as_chunks::<BLOCKS>();
        for four in fours {
            room = four.map(GenericArray::from);
            sha1::compress(&mut state, &room);
        }
        // What is left, the tail, the bit that ends it and its length fill two blocks at most.
        let mut used = 0;
        for (room, block) in room.iter_mut().zip(few) {
            room.copy_from_slice(block);
            used += 1;
        }
        let mut end = [0; 2 * BLOCK];
        let length = rest.len();
        if let Some(room) = end.get_mut(..length) {
            room.copy_from_slice(rest);
        }
        if let Some([t0, t1, t2, t3, bit]) = end.get_mut(length..length + 5) {
            [*t0, *t1, *t2, *t3] = tail;
            *bit = 0x80;
        }
        let bits = ((BLOCK + message.len() + tail.len()) as u64 * 8).to_be_bytes();
        let ends = if length + 5 + bits.len() <= BLOCK { 1 } else { 2 };
        if let Some(room) = end.get_mut(ends * BLOCK - bits.len()..ends * BLOCK) {
            room.copy_from_slice(&bits);
        }
        for block in end.as_chunks::<BLOCK>().0.iter().take(ends) {
            if used == BLOCKS {
                sha1::compress(&mut state, &room);
                used = 0;
            }
            if let Some(room) = room.get_mut(used) {
                room.copy_from_slice(block);
            }
            used += 1;
        }
        sha1::compress(&mut state, room.get(..used).unwrap_or_default());
        digest(finish(self.outer, state))
    }
    /// Whether `tag`, which may be cut short, is the message's; takes as long whatever differs.
    pub(crate) fn is_tag(&self, message: &[u8], tail: [u8; 4], tag: &[u8]) -> bool {
        let own = self.tag(message, tail);
        own.get(..tag.len()).is_some_and(|own| own.ct_eq(tag).into())
    }
}

/// The outer hash over the inner one.
fn finish(mut outer: [u32; 5], inner: [u32; 5]) -> [u32; 5] {
    let mut block = [0; BLOCK];
    if let Some((hash, [bit, rest @ ..])) = block.split_first_chunk_mut::<20>() {
        *hash = digest(inner);
        *bit = 0x80;
        if let Some(length) = rest.last_chunk_mut::<8>() {
            *length = ((BLOCK + 20) as u64 * 8).to_be_bytes();
        }
    }
    sha1::compress(&mut outer, &[GenericArray::from(block)]);
    outer
}

fn digest(state: [u32; 5]) -> [u8; 20] {
    let mut bytes = [0; 20];
    for (four, word) in bytes.as_chunks_mut::<4>().0.iter_mut().zip(state) {
        *four = word.to_be_bytes();
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use hmac::{Hmac, Mac as _};
    use sha1::Sha1;

    #[test]
    fn rfc2202_3_and_every_length_give_the_tag_of_the_plain_twin() {
        // RFC 2202 §3, case 3 is the one with a key of 20 bytes and data of one length; the last four are the tail.
        let mac = Mac::new(&[0xaa; 20]);
        let expected = [
            0x12, 0x5d, 0x73, 0x42, 0xb9, 0xac, 0x11, 0xcd, 0x91, 0xa3, 0x9a, 0xf4, 0x8a, 0xa1, 0x7b, 0x4f,
            0x63, 0xf1, 0x75, 0xd3,
        ];
        assert_eq!(mac.tag(&[0xdd; 46], [0xdd; 4]), expected);
        let key: [u8; 20] = core::array::from_fn(|at| at as u8);
        let mac = Mac::new(&key);
        let message: Vec<u8> = (0..700_u32).map(|at| (at * 7) as u8).collect();
        for length in 0..message.len() {
            let mut twin = Hmac::<Sha1>::new_from_slice(&key).unwrap();
            twin.update(&message[..length]);
            twin.update(&[9, 8, 7, 6]);
            let expected: [u8; 20] = twin.finalize().into_bytes().into();
            assert_eq!(mac.tag(&message[..length], [9, 8, 7, 6]), expected, "{length} bytes");
            assert!(mac.is_tag(&message[..length], [9, 8, 7, 6], &expected[..10]), "{length} bytes");
            let mut wrong = expected;
            wrong[length % 10] ^= 1 << (length % 8);
            assert!(!mac.is_tag(&message[..length], [9, 8, 7, 6], &wrong[..10]), "{length} bytes");
        }
        assert!(!mac.is_tag(&[], [0; 4], &[0; 21]), "longer than there is");
    }
}
