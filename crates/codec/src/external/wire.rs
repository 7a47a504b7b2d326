//! Messages: a length, a kind, a stream, a sequence number, and samples or coded bytes. All numbers little-endian.

/// Version of the protocol, the first byte of both greetings.
pub const VERSION: u8 = 1;
/// Bytes before the data: two of length, one of kind, four of stream, four of sequence.
pub const HEAD_BYTES: usize = 11;
/// Longest data of a message: 40 ms at 48 kHz.
pub const BODY_BYTES_MAX: usize = 3840;

/// What a message says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The first message each way. To the program: the version and the format's name. From it: the version, then rate
    /// (four bytes), samples (two) and bytes at most (two) of a frame.
    Hello,
    /// A stream begins; the data are `e` or `d`: to encode or decode.
    Open,
    /// A frame to code, or the answer to one, with the same sequence number.
    Frame,
    /// A frame to decode never came; the answer is a [`Self::Frame`] made up.
    Lost,
    /// The stream is over.
    Close,
    /// The answer to a frame that cannot be coded.
    Error,
}

impl Kind {
    const ALL: [Self; 6] = [Self::Hello, Self::Open, Self::Frame, Self::Lost, Self::Close, Self::Error];

    fn letter(self) -> u8 {
        match self {
            Self::Hello => b'H',
            Self::Open => b'O',
            Self::Frame => b'F',
            Self::Lost => b'L',
            Self::Close => b'C',
            Self::Error => b'E',
        }
    }
}

/// One message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Message<'a> {
    /// What it says.
    pub kind: Kind,
    /// Of which stream; 0 for greetings.
    pub stream: u32,
    /// Which frame of the stream; the answer has the number of its question.
    pub sequence: u32,
    /// The rest.
    pub data: &'a [u8],
}

/// Bytes that are no message: the line is of no use any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Malformed;

impl<'a> Message<'a> {
    /// The message as bytes: the head, to be followed by the data. `None` when the data are too long.
    pub fn head(&self) -> Option<[u8; HEAD_BYTES]> {
        if self.data.len() > BODY_BYTES_MAX {
            return None;
        }
        let length = (HEAD_BYTES - 2 + self.data.len()) as u16;
        let mut head = [0; HEAD_BYTES];
        head[..2].copy_from_slice(&length.to_le_bytes());
        head[2] = self.kind.letter();
        head[3..7].copy_from_slice(&self.stream.to_le_bytes());
        head[7..].copy_from_slice(&self.sequence.to_le_bytes());
        Some(head)
    }

    /// The first message of `bytes` and its length; `None` when it is not whole yet.
    ///
    /// # Errors
    /// For a length that no message has and a kind that is none.
    pub fn parse(bytes: &'a [u8]) -> Result<Option<(Self, usize)>, Malformed> {
        let Some((length, rest)) = bytes.split_first_chunk::<2>() else { return Ok(None) };
        let length = usize::from(u16::from_le_bytes(*length));
        if !(HEAD_BYTES - 2..=HEAD_BYTES - 2 + BODY_BYTES_MAX).contains(&length) {
            return Err(Malformed);
        }
        let Some(body) = rest.get(..length) else { return Ok(None) };
        let Some((&[kind, s0, s1, s2, s3, n0, n1, n2, n3], data)) = body.split_first_chunk() else {
            return Err(Malformed);
        };
        let kind = Kind::ALL.into_iter().find(|known| known.letter() == kind).ok_or(Malformed)?;
        let stream = u32::from_le_bytes([s0, s1, s2, s3]);
        let sequence = u32::from_le_bytes([n0, n1, n2, n3]);
        Ok(Some((Self { kind, stream, sequence, data }, length + 2)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_survive_their_bytes_in_pieces_of_any_size() {
        let messages =
            Kind::ALL.map(|kind| Message { kind, stream: 7, sequence: 1 << 20, data: b"some data" });
        let bytes: Vec<u8> =
            messages.iter().flat_map(|m| [m.head().unwrap().as_slice(), m.data].concat()).collect();
        let mut rest = &bytes[..];
        for expected in messages {
            for cut in 0..HEAD_BYTES + expected.data.len() {
                assert_eq!(Message::parse(&rest[..cut]), Ok(None), "{expected:?} cut at {cut}");
            }
            let (message, length) = Message::parse(rest).unwrap().unwrap();
            assert_eq!(message, expected);
            rest = &rest[length..];
        }
        assert!(rest.is_empty());
    }

    #[test]
    fn lengths_and_kinds_that_are_none_are_malformed() {
        for (name, bytes) in [
            ("too short", &[8u8, 0][..]),
            ("too long", &[0xff, 0xff]),
            ("no kind", &[9, 0, b'?', 0, 0, 0, 0, 0, 0, 0, 0]),
        ] {
            assert_eq!(Message::parse(bytes), Err(Malformed), "{name}");
        }
        let long = [0; BODY_BYTES_MAX + 1];
        assert_eq!(Message { kind: Kind::Frame, stream: 1, sequence: 1, data: &long }.head(), None);
    }
}
