//! The inside of trunk frames (RFC 5456 §8.1.3.2).

use super::{NUMBER_MASK, word};

/// Bytes before the first entry.
pub const TRUNK_HEADER_BYTES: usize = 8;
/// Bytes before an entry's voice, when entries have their own timestamps.
pub const TRUNK_ENTRY_BYTES: usize = 6;

/// The entries of a trunk frame; ends at the first one that runs over the frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entries<'a> {
    rest: &'a [u8],
    stamped: bool,
}

/// Voice of one call in a trunk frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry<'a> {
    /// The sender's number of the call.
    pub source: u16,
    /// The low half of the sender's timestamp, when the trunk tells it.
    pub timestamp: Option<u16>,
    /// Coded voice.
    pub data: &'a [u8],
}

impl<'a> Entries<'a> {
    pub(super) const fn new(rest: &'a [u8], stamped: bool) -> Self {
        Self { rest, stamped }
    }
    /// Whether each entry has its own timestamp.
    pub const fn stamped(&self) -> bool {
        self.stamped
    }
    fn read(&mut self) -> Option<Entry<'a>> {
        let (first, rest) = word(self.rest)?;
        let (second, rest) = word(rest)?;
        let (length, source, timestamp, rest) = if self.stamped {
            let (timestamp, rest) = word(rest)?;
            (first, second, Some(timestamp), rest)
        } else {
            (second, first, None, rest)
        };
        let (data, rest) = rest.split_at_checked(usize::from(length))?;
        self.rest = rest;
        Some(Entry { source: source & NUMBER_MASK, timestamp, data })
    }
}

impl<'a> Iterator for Entries<'a> {
    type Item = Entry<'a>;
    fn next(&mut self) -> Option<Entry<'a>> {
        let entry = self.read();
        if entry.is_none() {
            self.rest = &[];
        }
        entry
    }
}

/// Appends the header of a trunk frame.
pub fn write_trunk_header(timestamp: u32, stamped: bool, out: &mut Vec<u8>) {
    out.extend_from_slice(&[0, 0, 1, u8::from(stamped)]);
    out.extend_from_slice(&timestamp.to_be_bytes());
}

/// Appends an entry; `false`, and nothing, when its voice is longer than an entry can say.
pub fn write_trunk_entry(entry: &Entry<'_>, out: &mut Vec<u8>) -> bool {
    let Ok(length) = u16::try_from(entry.data.len()) else { return false };
    let (length, source) = (length.to_be_bytes(), (entry.source & NUMBER_MASK).to_be_bytes());
    match entry.timestamp {
        Some(timestamp) => {
            out.extend_from_slice(&length);
            out.extend_from_slice(&source);
            out.extend_from_slice(&timestamp.to_be_bytes());
        }
        None => {
            out.extend_from_slice(&source);
            out.extend_from_slice(&length);
        }
    }
    out.extend_from_slice(entry.data);
    true
}
