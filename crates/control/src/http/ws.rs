//! SIP over WebSocket (RFC 6455, RFC 7118): the upgrade of a request, and frames in memory.
//!
//! Frames are tungstenite's work; it reads from and writes to memory here. Each WebSocket message is one SIP message, so
//! nothing is framed by Content-Length.

use std::io::{self, Read, Write};

use sha1::{Digest as _, Sha1};
use tungstenite::error::{CapacityError, Error};
use tungstenite::protocol::frame::coding::CloseCode;
use tungstenite::protocol::{CloseFrame, Message, Role, WebSocketConfig};

use crate::base64;

/// Longest message, bytes: the longest SIP message there may be.
pub const MESSAGE_BYTES_MAX: usize = 64 * 1024;
/// What is read at once, bytes: most SIP messages are shorter, and each connection has a buffer of it.
const READ_BYTES: usize = 4096;
/// Symbols of a key: 16 bytes in base64 (RFC 6455 §4.1).
const KEY_SYMBOLS: usize = 24;
/// What the server appends to the key (RFC 6455 §1.3).
const KEY_END: &[u8] = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

/// Where WebSockets are asked for, below the prefix of http.conf.
pub const PATH: &str = "ws";

/// Why a request is not upgraded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Refusal {
    /// Status and reason of the answer.
    pub status: &'static str,
    /// Headers that go with it.
    pub headers: &'static str,
}

const NOT_GET: Refusal = Refusal { status: "405 Method Not Allowed", headers: "Allow: GET\r\n" };
const NO_UPGRADE: Refusal = Refusal {
    status: "426 Upgrade Required",
    headers: "Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Protocol: sip\r\n",
};
const NO_UPGRADE_TO_EVENTS: Refusal = Refusal {
    status: "426 Upgrade Required",
    headers: "Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n",
};
const BAD: Refusal = Refusal { status: "400 Bad Request", headers: "" };
const FORBIDDEN: Refusal = Refusal { status: "403 Forbidden", headers: "" };

/// What is spoken in the frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Speech {
    /// SIP, which a client has to ask for (RFC 7118 §4).
    Sip,
    /// Events of the REST interface, which it need not name.
    Events,
}

/// The answer that turns an HTTP request into a WebSocket, or why not (RFC 6455 §4.2).
///
/// `origins` lists the pages that may connect; everybody may when it is empty, and what is no browser says nothing.
pub fn upgrade(
    request: &httparse::Request<'_, '_>,
    origins: &[String],
    speech: Speech,
) -> Result<Vec<u8>, Refusal> {
    let no_upgrade = match speech {
        Speech::Sip => NO_UPGRADE,
        Speech::Events => NO_UPGRADE_TO_EVENTS,
    };
    let header = |name: &str| {
        let found = request.headers.iter().find(|header| header.name.eq_ignore_ascii_case(name))?;
        core::str::from_utf8(found.value).ok()
    };
    let lists = |name: &str, word: &str| {
        let named = request.headers.iter().filter(|header| header.name.eq_ignore_ascii_case(name));
        let mut words = named.filter_map(|header| core::str::from_utf8(header.value).ok());
        words.any(|value| value.split(',').any(|one| one.trim().eq_ignore_ascii_case(word)))
    };
    if request.method != Some("GET") || request.version != Some(1) {
        return Err(NOT_GET);
    }
    if !lists("Upgrade", "websocket") || !lists("Connection", "upgrade") {
        return Err(no_upgrade);
    }
    if header("Sec-WebSocket-Version") != Some("13") {
        return Err(no_upgrade);
    }
    let key = header("Sec-WebSocket-Key").filter(|key| key.len() == KEY_SYMBOLS && key.ends_with("=="));
    let Some(key) = key else { return Err(BAD) };
    let protocol = match speech {
        Speech::Sip if !lists("Sec-WebSocket-Protocol", "sip") => return Err(BAD),
        Speech::Sip => "Sec-WebSocket-Protocol: sip\r\n",
        Speech::Events if lists("Sec-WebSocket-Protocol", "ari") => "Sec-WebSocket-Protocol: ari\r\n",
        Speech::Events => "",
    };
    if let (false, Some(origin)) = (origins.is_empty(), header("Origin"))
        && !origins.iter().any(|allowed| allowed == "*" || allowed.eq_ignore_ascii_case(origin))
    {
        return Err(FORBIDDEN);
    }
    let accept = base64::encode(&Sha1::new().chain_update(key).chain_update(KEY_END).finalize());
    Ok(format!(
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: \
         {accept}\r\n{protocol}\r\n"
    )
    .into_bytes())
}

/// Both directions of a connection, in memory.
#[derive(Default)]
struct Pipe {
    input: Vec<u8>,
    read: usize,
    output: Vec<u8>,
}

impl Read for Pipe {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let waiting = self.input.get(self.read..).unwrap_or(&[]);
        if waiting.is_empty() {
            self.input.clear();
            self.read = 0;
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let count = waiting.len().min(buffer.len());
        for (to, from) in buffer.iter_mut().zip(waiting) {
            *to = *from;
        }
        self.read += count;
        Ok(count)
    }
}

impl Write for Pipe {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.output.extend_from_slice(bytes);
        Ok(bytes.len())
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The connection is over, by the peer's word or by its fault; what `take_output` has may still be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Over;

/// The server's end of one WebSocket.
pub struct Socket {
    frames: tungstenite::WebSocket<Pipe>,
}

impl Default for Socket {
    fn default() -> Self {
        let config = WebSocketConfig::default()
            .read_buffer_size(READ_BYTES)
            .write_buffer_size(0)
            .max_message_size(Some(MESSAGE_BYTES_MAX))
            .max_frame_size(Some(MESSAGE_BYTES_MAX));
        Self { frames: tungstenite::WebSocket::from_raw_socket(Pipe::default(), Role::Server, Some(config)) }
    }
}

impl Socket {
    /// Takes what came and hands out whole messages. Pings are answered, pongs mean nothing.
    pub fn receive(&mut self, bytes: &[u8], sink: &mut dyn FnMut(&[u8])) -> Result<(), Over> {
        self.frames.get_mut().input.extend_from_slice(bytes);
        let over = loop {
            match self.frames.read() {
                Ok(Message::Text(text)) => sink(text.as_bytes()),
                Ok(Message::Binary(bytes)) => sink(&bytes),
                Ok(Message::Ping(_) | Message::Pong(_) | Message::Frame(_)) => {}
                Ok(Message::Close(_)) => break true,
                Err(Error::Io(error)) if error.kind() == io::ErrorKind::WouldBlock => break false,
                Err(error) => {
                    self.refuse(&error);
                    break true;
                }
            }
        };
        // Writing to memory does not fail; a connection that is over has nothing more to say.
        let _flushed = self.frames.flush();
        if over { Err(Over) } else { Ok(()) }
    }
    /// Says goodbye to who broke the rules, and why (RFC 6455 §7.4.1).
    fn refuse(&mut self, error: &Error) {
        let code = match error {
            Error::Utf8(_) => CloseCode::Invalid,
            Error::Capacity(CapacityError::MessageTooLong { .. }) => CloseCode::Size,
            _ => CloseCode::Protocol,
        };
        // After the peer's own goodbye there is nothing to say.
        let _closed = self.frames.close(Some(CloseFrame { code, reason: "".into() }));
    }
    /// Sends a SIP message, as text when it is text (RFC 7118 §4.2).
    pub fn send(&mut self, message: &[u8]) {
        let message = match core::str::from_utf8(message) {
            Ok(text) => Message::text(text),
            Err(_) => Message::binary(message.to_vec()),
        };
        let _sent = self.frames.send(message);
    }
    /// Asks whether the peer is there; routers on the way see traffic.
    pub fn ping(&mut self) {
        let _sent = self.frames.send(Message::Ping(Vec::new().into()));
    }
    /// Bytes for the peer.
    pub fn take_output(&mut self) -> Vec<u8> {
        core::mem::take(&mut self.frames.get_mut().output)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(text: &str, origins: &[&str]) -> Result<String, &'static str> {
        let mut headers = [httparse::EMPTY_HEADER; 16];
        let mut request = httparse::Request::new(&mut headers);
        assert!(request.parse(text.as_bytes()).unwrap().is_complete());
        let origins: Vec<String> = origins.iter().map(|origin| (*origin).to_owned()).collect();
        match upgrade(&request, &origins, Speech::Sip) {
            Ok(bytes) => Ok(String::from_utf8(bytes).unwrap()),
            Err(refusal) => Err(refusal.status),
        }
    }

    const GOOD: &str = "GET /ws HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: keep-alive, Upgrade\r\n\
                        Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nOrigin: https://a.example\r\n\
                        Sec-WebSocket-Protocol: xmpp, sip\r\nSec-WebSocket-Version: 13\r\n\r\n";

    #[test]
    fn rfc6455_1_3_the_answer_proves_that_the_key_was_read() {
        let answer = ask(GOOD, &[]).unwrap();
        assert!(answer.starts_with("HTTP/1.1 101 "), "{answer}");
        assert!(answer.contains("\r\nSec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n"), "{answer}");
        assert!(answer.contains("\r\nSec-WebSocket-Protocol: sip\r\n"), "{answer}");
    }

    #[test]
    fn rfc6455_4_2_1_a_request_that_lacks_something_is_not_upgraded() {
        for (from, to, status) in [
            ("GET", "POST", "405"),
            ("HTTP/1.1", "HTTP/1.0", "405"),
            ("Upgrade: websocket", "Upgrade: h2c", "426"),
            ("keep-alive, Upgrade", "keep-alive", "426"),
            ("Version: 13", "Version: 8", "426"),
            ("dGhlIHNhbXBsZSBub25jZQ==", "dGhl", "400"),
            ("xmpp, sip", "xmpp", "400"),
        ] {
            let refused = ask(&GOOD.replacen(from, to, 1), &[]).unwrap_err();
            assert!(refused.starts_with(status), "{to}: {refused}");
        }
    }

    #[test]
    fn rfc6455_4_2_2_programs_that_hear_events_need_name_no_protocol() {
        for (protocol, answered) in [
            ("", None),
            ("Sec-WebSocket-Protocol: ari\r\n", Some("ari")),
            ("Sec-WebSocket-Protocol: mqtt\r\n", None),
        ] {
            let text = GOOD.replace("Sec-WebSocket-Protocol: xmpp, sip\r\n", protocol);
            let mut headers = [httparse::EMPTY_HEADER; 16];
            let mut request = httparse::Request::new(&mut headers);
            assert!(request.parse(text.as_bytes()).unwrap().is_complete());
            let answer = String::from_utf8(upgrade(&request, &[], Speech::Events).unwrap()).unwrap();
            let named = answer.lines().find_map(|line| line.strip_prefix("Sec-WebSocket-Protocol: "));
            assert_eq!(named, answered, "{protocol}");
        }
    }

    #[test]
    fn rfc6455_10_2_pages_of_other_origins_are_refused_when_the_site_lists_its_own() {
        let without = GOOD.replace("Origin: https://a.example\r\n", "");
        for (request, origins, allowed) in [
            (GOOD, &["https://a.example"][..], true),
            (GOOD, &["https://b.example", "HTTPS://A.example"], true),
            (GOOD, &["*"], true),
            (GOOD, &["https://b.example"], false),
            (GOOD, &["https://a.example.evil.example"], false),
            (&without, &["https://b.example"], true),
        ] {
            assert_eq!(ask(request, origins).is_ok(), allowed, "{origins:?}");
        }
    }

    /// A frame of a client: first byte, mask, payload.
    fn frame(first: u8, payload: &[u8]) -> Vec<u8> {
        let mask = [1, 2, 3, 4];
        let mut out = vec![first];
        match payload.len() {
            short @ 0..=125 => out.push(0x80 | short as u8),
            medium @ 126..=65_535 => {
                out.push(0xfe);
                out.extend((medium as u16).to_be_bytes());
            }
            long => {
                out.push(0xff);
                out.extend((long as u64).to_be_bytes());
            }
        }
        out.extend(mask);
        out.extend(payload.iter().zip(mask.iter().cycle()).map(|(byte, mask)| byte ^ mask));
        out
    }

    fn feed(pieces: &[Vec<u8>]) -> (Result<(), Over>, Vec<Vec<u8>>, Vec<u8>) {
        let mut socket = Socket::default();
        let mut got = Vec::new();
        let mut result = Ok(());
        for piece in pieces {
            result = result.and(socket.receive(piece, &mut |message| got.push(message.to_vec())));
        }
        let output = socket.take_output();
        (result, got, output)
    }

    #[test]
    fn rfc7118_4_2_each_message_is_one_sip_message_however_it_is_cut() {
        let options = b"OPTIONS sip:a SIP/2.0\r\n\r\n".to_vec();
        let whole =
            [frame(0x81, &options), frame(0x82, &[0xff, 0xfe]), frame(0x01, b"ab"), frame(0x80, b"cd")]
                .concat();
        let expected = vec![options, vec![0xff, 0xfe], b"abcd".to_vec()];
        for size in [1, 2, 7, whole.len()] {
            let pieces: Vec<Vec<u8>> = whole.chunks(size).map(<[u8]>::to_vec).collect();
            let (result, got, _) = feed(&pieces);
            assert_eq!((result, &got), (Ok(()), &expected), "pieces of {size}");
        }
        let mut socket = Socket::default();
        socket.send(b"SIP/2.0 200 OK\r\n\r\n");
        assert_eq!(socket.take_output(), [&[0x81, 18][..], b"SIP/2.0 200 OK\r\n\r\n"].concat());
        socket.send(&[0xff]);
        assert_eq!(socket.take_output(), [0x82, 1, 0xff]);
        socket.ping();
        assert_eq!(socket.take_output(), [0x89, 0]);
    }

    #[test]
    fn rfc6455_5_5_pings_are_answered_and_a_goodbye_returned() {
        let (result, _, output) = feed(&[frame(0x89, b"hi")]);
        assert_eq!((result, output), (Ok(()), vec![0x8a, 2, b'h', b'i']));
        let (result, _, output) = feed(&[frame(0x88, &[3, 0xe8])]);
        assert_eq!((result, output), (Err(Over), vec![0x88, 2, 3, 0xe8]));
    }

    #[test]
    fn rfc6455_7_1_7_frames_that_break_the_rules_end_the_connection() {
        let mut unmasked = vec![0x81, 2];
        unmasked.extend(b"ab");
        let close = |code: u16, reason: &[u8]| frame(0x88, &[&code.to_be_bytes()[..], reason].concat());
        for (name, bytes, code) in [
            ("unmasked", unmasked, 1002),
            ("the first reserved bit", frame(0xc1, b"a"), 1002),
            ("the second reserved bit", frame(0xa1, b"a"), 1002),
            ("the third reserved bit", frame(0x91, b"a"), 1002),
            ("a reserved opcode for data", frame(0x83, b"a"), 1002),
            ("a reserved opcode for control", frame(0x8b, b"a"), 1002),
            ("a ping of 126 bytes", frame(0x89, &[0; 126]), 1002),
            ("a ping in pieces", frame(0x09, b"a"), 1002),
            ("a goodbye in pieces", frame(0x08, &[3, 0xe8]), 1002),
            ("a goodbye of one byte", frame(0x88, &[3]), 1002),
            ("a goodbye with a reason that is no text", close(1000, &[0xff]), 1007),
            ("a continuation of nothing", frame(0x80, b"a"), 1002),
            ("a beginning within a message", [frame(0x01, b"a"), frame(0x81, b"b")].concat(), 1002),
            ("text that is none", frame(0x81, &[0xff, 0xff]), 1007),
            (
                "text that ends within a character",
                [frame(0x01, b"a"), frame(0x80, &[0xe2, 0x82])].concat(),
                1007,
            ),
            ("longer than a message may be", frame(0x82, &vec![0; MESSAGE_BYTES_MAX + 1]), 1009),
            ("a length nobody has", [&[0x82, 0xff][..], &[0xff; 8], &[0; 4]].concat(), 1009),
            (
                "pieces that add up to too much",
                [frame(0x02, &[0; 60_000]), frame(0x80, &[0; 60_000])].concat(),
                1009,
            ),
            ("a goodbye for no reason there is: 0", close(0, b""), 1002),
            ("999, below all codes", close(999, b""), 1002),
            ("1004, which is reserved", close(1004, b""), 1002),
            ("1005, which says that there is none", close(1005, b""), 1002),
            ("1006, which says that none came", close(1006, b""), 1002),
            ("1016, which nobody has defined", close(1016, b""), 1002),
            ("2999, kept for the protocol", close(2999, b""), 1002),
            ("65535, beyond all codes", close(65_535, b""), 1002),
        ] {
            let (result, got, output) = feed(&[bytes]);
            assert_eq!((result, got.len()), (Err(Over), 0), "{name}");
            assert_eq!(output.first(), Some(&0x88), "{name}");
            assert_eq!(output.get(2..4), Some(&u16::to_be_bytes(code)[..]), "{name}");
        }
    }
}
