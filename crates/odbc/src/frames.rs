//! A stream of bytes, cut into frames.

use crate::Flaw;

/// Longest frame without its length, bytes: a row with two of the longest values.
pub const FRAME_BYTES_MAX: usize = 16 * 1024 * 1024 + 64 * 1024;
/// What is kept for the next frames; a buffer that had to be larger is given back.
const KEPT_BYTES: usize = 256 * 1024;

/// Takes what was read from a stream, in pieces of any size, and hands out what each frame holds.
///
/// It never holds more than one frame and what one read brings behind it: hand in what was read, then take frames until
/// there is none.
#[derive(Debug, Default)]
pub struct Frames {
    bytes: Vec<u8>,
    /// Where the next frame begins.
    start: usize,
}

impl Frames {
    /// Takes in what was read.
    pub fn push(&mut self, bytes: &[u8]) {
        if self.start == self.bytes.len() {
            self.bytes.clear();
            self.bytes.shrink_to(KEPT_BYTES);
        } else {
            self.bytes.drain(..self.start);
        }
        self.start = 0;
        self.bytes.extend_from_slice(bytes);
    }
    /// What the next frame holds; `None` while it is not whole. After a flaw nothing of the stream has a meaning.
    pub fn frame(&mut self) -> Result<Option<&[u8]>, Flaw> {
        let Some((length, rest)) = self.bytes.get(self.start..).and_then(|left| left.split_first_chunk())
        else {
            return Ok(None);
        };
        let length = usize::try_from(u32::from_le_bytes(*length)).unwrap_or(usize::MAX);
        if length > FRAME_BYTES_MAX {
            return Err(Flaw::TooLong(length));
        }
        if rest.len() < length {
            return Ok(None);
        }
        let from = self.start + 4;
        self.start = from + length;
        Ok(self.bytes.get(from..self.start))
    }
}
