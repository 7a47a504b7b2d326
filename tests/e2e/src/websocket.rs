//! One end of a WebSocket (RFC 6455): a request for SIP, frames as a test wants them, and what comes back.

use crate::message::Message;
use crate::tls::TlsStream;
use crate::wait::SOON;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

/// The request of a phone that is a page.
pub const REQUEST: &str = "GET /ws HTTP/1.1\r\nHost: pbx.example.com\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
                           Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Protocol: sip\r\n\
                           Sec-WebSocket-Version: 13\r\n\r\n";

/// A frame: its first byte and what it carries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    /// Final, reserved bits, opcode.
    pub first: u8,
    /// Unmasked.
    pub payload: Vec<u8>,
}

impl Frame {
    /// The code of a goodbye.
    pub fn code(&self) -> Option<u16> {
        let code = self.payload.first_chunk::<2>().filter(|_| self.first == 0x88)?;
        Some(u16::from_be_bytes(*code))
    }
}

/// A frame as a client sends it, masked (RFC 6455 §5.2).
pub fn frame(first: u8, payload: &[u8]) -> Vec<u8> {
    let mask = [0x37, 0xfa, 0x21, 0x3d];
    let mut out = vec![first];
    match (u8::try_from(payload.len()), u16::try_from(payload.len())) {
        (Ok(short @ 0..=125), _) => out.push(0x80 | short),
        (_, Ok(medium)) => {
            out.push(0xfe);
            out.extend(medium.to_be_bytes());
        }
        _ => {
            out.push(0xff);
            out.extend((payload.len() as u64).to_be_bytes());
        }
    }
    out.extend(mask);
    out.extend(payload.iter().zip(mask.iter().cycle()).map(|(byte, mask)| byte ^ mask));
    out
}

/// What a WebSocket goes by: TCP, or TLS on it.
pub trait Carrier: Read + Write + std::fmt::Debug {
    /// The socket below.
    fn socket(&self) -> &TcpStream;
}

impl Carrier for TcpStream {
    fn socket(&self) -> &TcpStream {
        self
    }
}

impl Carrier for TlsStream {
    fn socket(&self) -> &TcpStream {
        &self.sock
    }
}

/// A connection on which a small frame does not wait until the one before has been acknowledged.
fn plain(server: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(server).expect("a connection");
    stream.set_nodelay(true).expect("a socket");
    stream
}

/// A connection that has been upgraded.
#[derive(Debug)]
pub struct WebSocket {
    stream: Box<dyn Carrier>,
    seen: Vec<u8>,
}

impl WebSocket {
    /// Asks, and returns what the server says besides, headers and body.
    pub fn ask(server: SocketAddr, request: &str) -> (Self, String) {
        Self::ask_by(Box::new(plain(server)), request)
    }
    fn ask_by(stream: Box<dyn Carrier>, request: &str) -> (Self, String) {
        let mut socket = Self { stream, seen: Vec::new() };
        socket.send(request.as_bytes());
        let end = socket.until(|seen| seen.windows(4).position(|four| four == b"\r\n\r\n").map(|at| at + 4));
        let head: Vec<u8> = socket.seen.drain(..end.expect("an answer")).collect();
        (socket, String::from_utf8_lossy(&head).into_owned())
    }
    /// A WebSocket for SIP, which the server must give.
    pub fn connect(server: SocketAddr) -> Self {
        Self::by(plain(server))
    }
    /// The same by a connection that is open.
    pub fn by(stream: impl Carrier + 'static) -> Self {
        let (socket, answer) = Self::ask_by(Box::new(stream), REQUEST);
        assert!(answer.starts_with("HTTP/1.1 101 "), "{answer}");
        socket
    }
    /// Bytes as they are. A server that has hung up is seen by what does not come.
    pub fn send(&mut self, bytes: &[u8]) {
        let _gone = self.stream.write_all(bytes);
    }
    /// A message of one frame.
    pub fn say(&mut self, message: &[u8]) {
        self.send(&frame(0x81, message));
    }
    /// Reads until there is something to take from what has come; `None` when the server has hung up before.
    fn until<T>(&mut self, take: impl Fn(&[u8]) -> Option<T>) -> Option<T> {
        let end = Instant::now() + SOON;
        let mut buffer = [0; 4096];
        loop {
            if let Some(taken) = take(&self.seen) {
                return Some(taken);
            }
            let left = end.saturating_duration_since(Instant::now()).max(Duration::from_millis(1));
            self.stream.socket().set_read_timeout(Some(left)).expect("a time-out that is not zero");
            match self.stream.read(&mut buffer) {
                Ok(0) => return None,
                Ok(length) => self.seen.extend(&buffer[..length]),
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error)
                    if matches!(
                        error.kind(),
                        std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut
                    ) =>
                {
                    panic!("nothing comes within {SOON:?}; seen: {}", String::from_utf8_lossy(&self.seen));
                }
                // Reset: it has hung up with our bytes unread.
                Err(_) => return None,
            }
        }
    }
    /// The next frame; `None` when the server has hung up.
    pub fn frame(&mut self) -> Option<Frame> {
        let length = self.until(whole)?;
        let bytes: Vec<u8> = self.seen.drain(..length.1).collect();
        Some(Frame { first: bytes[0], payload: bytes[length.0..].to_vec() })
    }
    /// Waits until the server has taken in all that was sent, and throws away what it says; `false` when it has hung up.
    pub fn is_heard(&mut self) -> bool {
        self.send(&frame(0x89, b"heard?"));
        loop {
            match self.frame().map(|frame| frame.first) {
                Some(0x8a) => return true,
                Some(0x88) | None => return false,
                Some(_) => {}
            }
        }
    }
    /// The next message of SIP; the server must send one.
    pub fn message(&mut self) -> Message {
        loop {
            let frame = self.frame().expect("a frame");
            // The server asks now and then whether anybody is there.
            if frame.first != 0x89 {
                assert!(matches!(frame.first, 0x81 | 0x82), "{frame:?}");
                return Message::parse(&frame.payload);
            }
        }
    }
}

/// Where the payload of a whole frame of a server begins, and where it ends.
fn whole(bytes: &[u8]) -> Option<(usize, usize)> {
    let short = usize::from(*bytes.get(1)?);
    let (begin, length) = match short {
        126 => (4, usize::from(u16::from_be_bytes(*bytes.get(2..)?.first_chunk()?))),
        127 => (10, u64::from_be_bytes(*bytes.get(2..)?.first_chunk()?) as usize),
        short => (2, short),
    };
    (bytes.len() >= begin + length).then_some((begin, begin + length))
}
