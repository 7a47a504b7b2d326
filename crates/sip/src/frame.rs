//! Frames of a stream: bytes as TCP or TLS delivers them become messages and keep-alives (RFC 3261 §18.3, RFC 5626 §3.5.1).
//!
//! An error is final: framing is lost and the connection has to be closed.

use crate::message::{MAX_MESSAGE, frame_length};

/// Most bytes a stream may hold back: one whole message, and what one read brings after it.
pub const MAX_BUFFERED: usize = 2 * MAX_MESSAGE;

/// Something whole that came on a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Frame<'a> {
    /// The bytes of one message, for [`crate::Message::parse`].
    Message(&'a [u8]),
    /// Two line breaks: to be answered with one.
    Ping,
    /// One line break: the answer to our ping.
    Pong,
}

/// Why a stream has to be closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FrameError {
    /// A message, or what should become one, exceeds [`MAX_MESSAGE`].
    TooLarge,
    /// The first line is no SIP start line.
    NotSip,
    /// Content-Length is missing, malformed, or stands twice with different values.
    NoLength,
}

impl core::fmt::Display for FrameError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Self::TooLarge => "message longer than any SIP message may be",
            Self::NotSip => "what came is not SIP",
            Self::NoLength => "message without a usable Content-Length",
        })
    }
}
impl std::error::Error for FrameError {}

/// Cuts one stream into frames.
#[derive(Debug, Default)]
pub struct Framer {
    buffer: Vec<u8>,
    /// Bytes at the front that were handed out already.
    used: usize,
    /// Bytes after `used` known not to hold the end of the headers: a trickling sender is not read again and again.
    scanned: usize,
    /// Length of the message at the front, once its headers are complete.
    length: Option<usize>,
    /// A ping of ours is out: a line break by itself answers it.
    awaits_pong: bool,
    failed: Option<FrameError>,
}

impl Framer {
    /// A stream at its beginning.
    pub fn new() -> Self {
        Self::default()
    }
    /// A ping of ours has left. Without this a line break by itself waits for a second one, which would make it a ping of the
    /// peer's (RFC 5626 §3.5.1 has no other way to tell the answer from the beginning of a question).
    pub fn expect_pong(&mut self) {
        self.awaits_pong = true;
    }
    /// Takes what a read brought. Call [`Framer::next_frame`] until it has no more, before the next read.
    pub fn push(&mut self, bytes: &[u8]) {
        self.buffer.drain(..self.used.min(self.buffer.len()));
        self.used = 0;
        if self.buffer.len() + bytes.len() > MAX_BUFFERED {
            self.failed = self.failed.or(Some(FrameError::TooLarge));
            return;
        }
        self.buffer.extend_from_slice(bytes);
    }
    /// The next whole frame; `None` until more bytes come. A line break at the end of what came waits, because a second
    /// one makes it a ping.
    pub fn next_frame(&mut self) -> Result<Option<Frame<'_>>, FrameError> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        match self.measure() {
            Ok(None) => Ok(None),
            Ok(Some(Measured::Ping)) => {
                self.used += 4;
                Ok(Some(Frame::Ping))
            }
            Ok(Some(Measured::Pong(width))) => {
                self.used += width;
                self.awaits_pong = false;
                Ok(Some(Frame::Pong))
            }
            Ok(Some(Measured::Message(length))) => {
                let start = self.used;
                self.used += length;
                self.scanned = 0;
                self.length = None;
                Ok(self.buffer.get(start..self.used).map(Frame::Message))
            }
            Err(error) => {
                self.failed = Some(error);
                self.buffer = Vec::new();
                self.used = 0;
                Err(error)
            }
        }
    }
    /// Whether part of a frame is held back.
    pub fn is_partial(&self) -> bool {
        self.used < self.buffer.len()
    }

    fn measure(&mut self) -> Result<Option<Measured>, FrameError> {
        let pending = self.buffer.get(self.used..).unwrap_or_default();
        match pending {
            [b'\r', b'\n'] if self.awaits_pong => return Ok(Some(Measured::Pong(2))),
            [] | [b'\r'] | [b'\r', b'\n'] | [b'\r', b'\n', b'\r'] => return Ok(None),
            [b'\r', b'\n', b'\r', b'\n', ..] => return Ok(Some(Measured::Ping)),
            [b'\r', b'\n', ..] => return Ok(Some(Measured::Pong(2))),
            [b'\n', ..] => return Ok(Some(Measured::Pong(1))),
            _ => {}
        }
        let length = match self.length {
            Some(length) => length,
            None => {
                let Some(head) = head_end(pending, self.scanned) else {
                    if pending.len() > MAX_MESSAGE {
                        return Err(FrameError::TooLarge);
                    }
                    first_line_is_sip(pending)?;
                    self.scanned = pending.len().saturating_sub(2);
                    return Ok(None);
                };
                let length = frame_length(pending.get(..head).unwrap_or_default())?;
                if length > MAX_MESSAGE {
                    return Err(FrameError::TooLarge);
                }
                self.length = Some(length);
                length
            }
        };
        Ok((pending.len() >= length).then_some(Measured::Message(length)))
    }
}

enum Measured {
    Ping,
    Pong(usize),
    Message(usize),
}

/// A stream that begins with something else is told apart at its first line, not after 64 KiB.
fn first_line_is_sip(pending: &[u8]) -> Result<(), FrameError> {
    match memchr::memchr(b'\n', pending) {
        Some(end) if memchr::memmem::find(pending.get(..end).unwrap_or_default(), b"SIP/").is_none() => {
            Err(FrameError::NotSip)
        }
        _ => Ok(()),
    }
}

/// Where the headers end, the empty line included; looks only at line breaks from `from` on.
fn head_end(bytes: &[u8], from: usize) -> Option<usize> {
    let mut at = from;
    loop {
        at += memchr::memchr(b'\n', bytes.get(at..)?)? + 1;
        match bytes.get(at..)? {
            [b'\n', ..] => return Some(at + 1),
            [b'\r', b'\n', ..] => return Some(at + 2),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: &[u8] = b"OPTIONS sip:a SIP/2.0\r\nCall-ID: 1\r\nContent-Length: 5\r\n\r\nhello";
    const TWO: &[u8] = b"SIP/2.0 200 OK\r\nl : 0\r\n\r\n";

    /// What comes out when `stream` comes in pieces of `size` bytes.
    fn cut(stream: &[u8], size: usize) -> Result<Vec<String>, FrameError> {
        let mut framer = Framer::new();
        let mut frames = Vec::new();
        for piece in stream.chunks(size) {
            framer.push(piece);
            while let Some(frame) = framer.next_frame()? {
                frames.push(match frame {
                    Frame::Message(bytes) => format!("{} bytes", bytes.len()),
                    Frame::Ping => "ping".into(),
                    Frame::Pong => "pong".into(),
                });
            }
        }
        Ok(frames)
    }

    #[test]
    fn frames_do_not_depend_on_how_the_stream_is_cut() {
        let stream = [ONE, b"\r\n\r\n", TWO, b"\r\n", ONE, ONE].concat();
        let one = format!("{} bytes", ONE.len());
        let two = format!("{} bytes", TWO.len());
        let expected = [&one, "ping", &two, "pong", &one, &one];
        for size in 1..=stream.len() {
            assert_eq!(cut(&stream, size).unwrap(), expected, "pieces of {size}");
        }
    }

    #[test]
    fn rfc5626_3_5_1_a_line_break_answers_a_ping_at_once_and_two_in_turn_are_no_ping() {
        let mut framer = Framer::new();
        let mut after = |asked: bool, bytes: &[u8]| {
            if asked {
                framer.expect_pong();
            }
            framer.push(bytes);
            let mut frames = Vec::new();
            while let Some(frame) = framer.next_frame().unwrap() {
                frames.push(match frame {
                    Frame::Message(_) => "message",
                    Frame::Ping => "ping",
                    Frame::Pong => "pong",
                });
            }
            frames
        };
        assert_eq!(after(true, b"\r\n"), ["pong"]);
        assert_eq!(after(true, b"\r\n"), ["pong"], "the next one answers the next one");
        assert_eq!(after(true, b"\r\n\r\n"), ["ping"], "the peer asks, too");
        assert_eq!(after(false, b"\r\n"), ["pong"], "and answers");
        assert_eq!(after(false, b"\r\n"), [""; 0], "nobody has asked: half a ping");
        assert_eq!(after(false, b"\r\n"), ["ping"]);
        assert_eq!(after(true, &[b"\r\n", TWO].concat()), ["pong", "message"]);
    }

    #[test]
    fn a_stream_that_cannot_be_framed_fails_for_good() {
        for (stream, error) in [
            (&b"OPTIONS sip:a SIP/2.0\r\nCall-ID: 1\r\n\r\n"[..], FrameError::NoLength),
            (b"OPTIONS sip:a SIP/2.0\r\nContent-Length: x\r\n\r\n", FrameError::NoLength),
            (b"OPTIONS sip:a SIP/2.0\r\nContent-Length: 1\r\nl: 2\r\n\r\n", FrameError::NoLength),
            (b"OPTIONS sip:a SIP/2.0\r\nContent-Length: 65535\r\n\r\n", FrameError::TooLarge),
            (
                b"OPTIONS sip:a SIP/2.0\r\nContent-Length: 99999999999999999999999\r\n\r\n",
                FrameError::NoLength,
            ),
            (b"GET / HTTP/1.1\r\n", FrameError::NotSip),
            (&[b'a'; MAX_MESSAGE + 1], FrameError::TooLarge),
        ] {
            let mut framer = Framer::new();
            framer.push(stream);
            assert_eq!(framer.next_frame(), Err(error));
            framer.push(TWO);
            assert_eq!(framer.next_frame(), Err(error), "framing does not come back");
        }
    }
}
