//! The fields of a frame: written into a buffer, read from hostile bytes.

use crate::{FRAME_BYTES_MAX, VALUES_MAX, Values};

/// Length that stands for NULL.
const NULL: u32 = u32::MAX;

/// What is wrong with a frame. Whoever sends one is not listened to any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Flaw {
    /// Longer than a frame may be.
    #[error("a frame of {0} bytes, of at most {FRAME_BYTES_MAX}")]
    TooLong(usize),
    /// It ends before its fields do.
    #[error("a frame that ends too early")]
    Short,
    /// Something follows its last field.
    #[error("a frame with {0} bytes behind its end")]
    Behind(usize),
    /// More elements than there may be.
    #[error("a list of {0}")]
    Many(usize),
    /// Nobody knows what it means.
    #[error("a frame of kind {0}")]
    Kind(u8),
}

/// A frame that is being written.
pub(crate) struct Out<'o> {
    out: &'o mut Vec<u8>,
    start: usize,
}

impl<'o> Out<'o> {
    pub(crate) fn new(out: &'o mut Vec<u8>, kind: u8) -> Self {
        let start = out.len();
        out.extend_from_slice(&[0, 0, 0, 0, kind]);
        Self { out, start }
    }
    pub(crate) fn number(&mut self, number: u32) {
        self.out.extend_from_slice(&number.to_le_bytes());
    }
    pub(crate) fn long(&mut self, number: u64) {
        self.out.extend_from_slice(&number.to_le_bytes());
    }
    pub(crate) fn text(&mut self, text: &str) {
        self.number(length(text.len()));
        // Of what no frame holds nothing is copied: `finish` sees the sum.
        self.out.extend_from_slice(text.as_bytes());
    }
    pub(crate) fn values(&mut self, values: &Values) {
        self.number(length(values.len()));
        for value in values {
            match value {
                Some(value) => self.text(value),
                None => self.number(NULL),
            }
        }
    }
    pub(crate) fn finish(self) -> Result<(), Flaw> {
        let bytes = self.out.len() - self.start - 4;
        let Some(place) = self.out.get_mut(self.start..self.start + 4).filter(|_| bytes <= FRAME_BYTES_MAX)
        else {
            self.out.truncate(self.start);
            return Err(Flaw::TooLong(bytes));
        };
        place.copy_from_slice(&length(bytes).to_le_bytes());
        Ok(())
    }
}

/// Never that of NULL: what is longer than a frame is not sent.
fn length(bytes: usize) -> u32 {
    u32::try_from(bytes).unwrap_or(NULL - 1).min(NULL - 1)
}

/// What is left of a frame that is being read.
pub(crate) struct Fields<'f> {
    left: &'f [u8],
}

impl<'f> Fields<'f> {
    pub(crate) const fn new(frame: &'f [u8]) -> Self {
        Self { left: frame }
    }
    fn take(&mut self, bytes: usize) -> Result<&'f [u8], Flaw> {
        let (taken, left) = self.left.split_at_checked(bytes).ok_or(Flaw::Short)?;
        self.left = left;
        Ok(taken)
    }
    pub(crate) fn octet(&mut self) -> Result<u8, Flaw> {
        let (octet, left) = self.left.split_first().ok_or(Flaw::Short)?;
        self.left = left;
        Ok(*octet)
    }
    pub(crate) fn number(&mut self) -> Result<u32, Flaw> {
        let (number, left) = self.left.split_first_chunk().ok_or(Flaw::Short)?;
        self.left = left;
        Ok(u32::from_le_bytes(*number))
    }
    pub(crate) fn long(&mut self) -> Result<u64, Flaw> {
        let (number, left) = self.left.split_first_chunk().ok_or(Flaw::Short)?;
        self.left = left;
        Ok(u64::from_le_bytes(*number))
    }
    /// How many elements follow. Each takes four bytes at least, so that a lie allocates nothing.
    pub(crate) fn count(&mut self, most: usize) -> Result<usize, Flaw> {
        let count = usize::try_from(self.number()?).unwrap_or(usize::MAX);
        if count > most {
            return Err(Flaw::Many(count));
        }
        if count > self.left.len() / 4 {
            return Err(Flaw::Short);
        }
        Ok(count)
    }
    pub(crate) fn text(&mut self) -> Result<String, Flaw> {
        let bytes = usize::try_from(self.number()?).unwrap_or(usize::MAX);
        Ok(String::from_utf8_lossy(self.take(bytes)?).into_owned())
    }
    pub(crate) fn values(&mut self) -> Result<Values, Flaw> {
        let count = self.count(VALUES_MAX)?;
        let mut values = Vec::with_capacity(count);
        for _ in 0..count {
            values.push(match self.number()? {
                NULL => None,
                bytes => {
                    let bytes = self.take(usize::try_from(bytes).unwrap_or(usize::MAX))?;
                    Some(String::from_utf8_lossy(bytes).into_owned())
                }
            });
        }
        Ok(values)
    }
    pub(crate) const fn end(&self) -> Result<(), Flaw> {
        if self.left.is_empty() { Ok(()) } else { Err(Flaw::Behind(self.left.len())) }
    }
}
