//! Frames on the wire (RFC 5456 §8): full, mini, video and trunk, borrowed from the datagram and written into a buffer.
//!
//! Everything that arrives is hostile: what is not a frame is a counted [`Discard`], never an error with text.

mod element;
mod kind;
mod media;
mod trunk;

pub use element::{Auth, Element, Elements, Fields, packed_time, write_element};
pub use kind::{Command, Control, Html, Kind};
pub use media::{Media, millis, preferences, write_preferences};
pub use trunk::{
    Entries, Entry, TRUNK_ENTRY_BYTES, TRUNK_HEADER_BYTES, write_trunk_entry, write_trunk_header,
};

/// Bytes of the header of a full frame (RFC 5456 §8.1.1).
pub const FULL_BYTES: usize = 12;
/// Bytes of the header of a mini frame (RFC 5456 §8.1.2).
pub const MINI_BYTES: usize = 4;
/// Bytes of the header of a video mini frame (RFC 5456 §8.1.3.1).
pub const VIDEO_BYTES: usize = 6;
/// Longest datagram that is looked at, bytes: a full frame with video in the largest UDP payload of an Ethernet.
pub const DATAGRAM_BYTES_MAX: usize = 1472;
/// The fifteen bits of a call number.
pub const NUMBER_MASK: u16 = 0x7fff;
/// The bit beside the number: a full frame before the source, a retransmission before the destination.
const FLAG: u16 = 0x8000;

/// Why a datagram was dropped without a word to its sender.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Discard {
    /// Shorter than its header.
    TooShort,
    /// Longer than [`DATAGRAM_BYTES_MAX`].
    TooLong,
    /// A meta command that nobody assigned (RFC 5456 §8.1.3.2).
    UnknownMeta,
    /// An information element runs over the end of its frame.
    Overrun,
    /// Nothing here has that number, or not with that sender.
    NoCall,
    /// Enciphered, and no key that is known makes a frame of it.
    Undeciphered,
    /// A frame out of its place in the sequence.
    OutOfOrder,
    /// A frame that may not come in this state.
    Unexpected,
    /// Answers without state have used up what the sender's network may have.
    Throttled,
    /// A token that is not ours, not this address's, or too old.
    BadToken,
    /// A sender that asks for more call numbers than its address may have, or when there are none.
    NoNumber,
}

impl Discard {
    /// Every reason, in the order of [`Discard::index`].
    pub const ALL: [Self; 11] = [
        Self::TooShort,
        Self::TooLong,
        Self::UnknownMeta,
        Self::Overrun,
        Self::NoCall,
        Self::Undeciphered,
        Self::OutOfOrder,
        Self::Unexpected,
        Self::Throttled,
        Self::BadToken,
        Self::NoNumber,
    ];
    /// The place in an array of counters.
    pub const fn index(self) -> usize {
        self as usize
    }
}

/// One datagram, told apart by its first bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Datagram<'a> {
    /// A full frame.
    Full(Full<'a>),
    /// Voice in a mini frame.
    Mini(Mini<'a>),
    /// Video in a mini frame.
    Video(Video<'a>),
    /// Voice of many calls.
    Trunk(Trunk<'a>),
}

/// A full frame (RFC 5456 §8.1.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Full<'a> {
    /// The sender's number of the call.
    pub source: u16,
    /// The receiver's number of the call; 0 while the sender does not know it.
    pub dest: u16,
    /// Whether it was sent before.
    pub again: bool,
    /// Milliseconds since the sender's first frame of the call.
    pub timestamp: u32,
    /// The frame's place in its sender's sequence.
    pub oseq: u8,
    /// The place that the sender expects next of the other direction.
    pub iseq: u8,
    /// Type and subclass.
    pub kind: Kind,
    /// Information elements or media.
    pub data: &'a [u8],
}

/// The words of a full frame that stand in the clear when the rest is enciphered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Numbers {
    /// The sender's number of the call.
    pub source: u16,
    /// The receiver's number of the call.
    pub dest: u16,
    /// Whether the frame was sent before.
    pub again: bool,
}

/// Voice in a mini frame (RFC 5456 §8.1.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mini<'a> {
    /// The sender's number of the call.
    pub source: u16,
    /// The low half of the sender's timestamp.
    pub timestamp: u16,
    /// Coded voice in the format of the latest full voice frame.
    pub data: &'a [u8],
}

/// Video in a mini frame (RFC 5456 §8.1.3.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Video<'a> {
    /// The sender's number of the call.
    pub source: u16,
    /// The low fifteen bits of the sender's timestamp.
    pub timestamp: u16,
    /// Whether a picture ends here.
    pub mark: bool,
    /// Coded video in the format of the latest full video frame.
    pub data: &'a [u8],
}

/// A trunk frame (RFC 5456 §8.1.3.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Trunk<'a> {
    /// Milliseconds of the sender's trunk when it sent the frame.
    pub timestamp: u32,
    /// Voice of calls, one after the other.
    pub entries: Entries<'a>,
}

fn word(bytes: &[u8]) -> Option<(u16, &[u8])> {
    let (word, rest) = bytes.split_first_chunk::<2>()?;
    Some((u16::from_be_bytes(*word), rest))
}

fn long(bytes: &[u8]) -> Option<(u32, &[u8])> {
    let (long, rest) = bytes.split_first_chunk::<4>()?;
    Some((u32::from_be_bytes(*long), rest))
}

/// The numbers of a datagram that is a full frame, enciphered or not; `None` when it is none.
pub fn numbers(bytes: &[u8]) -> Option<Numbers> {
    let (source, rest) = word(bytes)?;
    let (dest, _) = word(rest)?;
    (source & FLAG != 0).then_some(Numbers {
        source: source & NUMBER_MASK,
        dest: dest & NUMBER_MASK,
        again: dest & FLAG != 0,
    })
}

/// The sender's number of a datagram that is a voice mini frame, enciphered or not; `None` when it is none.
pub fn mini_source(bytes: &[u8]) -> Option<u16> {
    word(bytes).map(|(source, _)| source).filter(|source| *source != 0 && source & FLAG == 0)
}

/// Reads a datagram.
///
/// # Errors
/// When it is too short or too long for a frame, or has a meta command that nobody assigned.
pub fn parse(bytes: &[u8]) -> Result<Datagram<'_>, Discard> {
    if bytes.len() > DATAGRAM_BYTES_MAX {
        return Err(Discard::TooLong);
    }
    let (first, rest) = word(bytes).ok_or(Discard::TooShort)?;
    match first {
        0 => parse_meta(rest),
        _ if first & FLAG == 0 => {
            let (timestamp, data) = word(rest).ok_or(Discard::TooShort)?;
            Ok(Datagram::Mini(Mini { source: first, timestamp, data }))
        }
        _ => parse_full(bytes).map(Datagram::Full).ok_or(Discard::TooShort),
    }
}

fn parse_full(bytes: &[u8]) -> Option<Full<'_>> {
    let Numbers { source, dest, again } = numbers(bytes)?;
    let (&[_, _, _, _, t0, t1, t2, t3, oseq, iseq, kind, subclass], data) =
        bytes.split_first_chunk::<FULL_BYTES>()?;
    let timestamp = u32::from_be_bytes([t0, t1, t2, t3]);
    Some(Full { source, dest, again, timestamp, oseq, iseq, kind: Kind::read(kind, subclass), data })
}

fn parse_meta(rest: &[u8]) -> Result<Datagram<'_>, Discard> {
    /// A trunk frame's command (RFC 5456 §8.1.3.2).
    const TRUNK: u8 = 1;
    let (second, rest) = word(rest).ok_or(Discard::TooShort)?;
    if second & FLAG != 0 {
        let (third, data) = word(rest).ok_or(Discard::TooShort)?;
        let video =
            Video { source: second & NUMBER_MASK, timestamp: third & 0x7fff, mark: third & FLAG != 0, data };
        return Ok(Datagram::Video(video));
    }
    let [command, flags] = second.to_be_bytes();
    if command != TRUNK {
        return Err(Discard::UnknownMeta);
    }
    let (timestamp, entries) = long(rest).ok_or(Discard::TooShort)?;
    Ok(Datagram::Trunk(Trunk { timestamp, entries: Entries::new(entries, flags & 1 != 0) }))
}

impl Full<'_> {
    /// Appends the frame to `out`, [`FULL_BYTES`] and its data.
    pub fn write(&self, out: &mut Vec<u8>) {
        let flag = if self.again { FLAG } else { 0 };
        out.extend_from_slice(&(self.source & NUMBER_MASK | FLAG).to_be_bytes());
        out.extend_from_slice(&(self.dest & NUMBER_MASK | flag).to_be_bytes());
        out.extend_from_slice(&self.timestamp.to_be_bytes());
        let (kind, subclass) = self.kind.code();
        out.extend_from_slice(&[self.oseq, self.iseq, kind, subclass]);
        out.extend_from_slice(self.data);
    }
    /// Whether the frame takes a place in its sender's sequence and is repeated until acknowledged (RFC 5456 §7).
    pub fn is_sequenced(&self) -> bool {
        !matches!(self.kind, Kind::Iax(command) if command.is_unsequenced())
    }
    /// The elements of a frame that carries elements.
    pub fn elements(&self) -> Elements<'_> {
        Elements::new(self.data)
    }
}

impl Mini<'_> {
    /// Appends the frame to `out`.
    pub fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&(self.source & NUMBER_MASK).to_be_bytes());
        out.extend_from_slice(&self.timestamp.to_be_bytes());
        out.extend_from_slice(self.data);
    }
}

impl Video<'_> {
    /// Appends the frame to `out`.
    pub fn write(&self, out: &mut Vec<u8>) {
        let mark = if self.mark { FLAG } else { 0 };
        out.extend_from_slice(&[0, 0]);
        out.extend_from_slice(&(self.source & NUMBER_MASK | FLAG).to_be_bytes());
        out.extend_from_slice(&(self.timestamp & 0x7fff | mark).to_be_bytes());
        out.extend_from_slice(self.data);
    }
}
