//! Security descriptions (RFC 4568): `a=crypto` read and written, and which of them two sides agree on.

use base::{SRTP_SECRET_BYTES_MAX, SrtpKeys, SrtpSecret, SrtpSuite};
use zeroize::Zeroize;

use super::{Stream, words};
use crate::header::lex::{number, split_once};

/// Lines of one stream that are looked at; phones send one to eight.
const LINES_MAX: usize = 16;
/// Highest tag (RFC 4568 §9.1: nine digits).
const TAG_MAX: u64 = 999_999_999;

/// What our side wants of SRTP.
#[derive(Debug, Clone, Copy)]
pub struct Encryption<'a> {
    /// Suites that we offer, the most wanted first; of an offer every suite that is built in is taken.
    pub suites: &'a [SrtpSuite],
    /// A peer without SRTP is served with plain RTP, and our offers say `RTP/AVP`.
    pub optimistic: bool,
    /// Our offers say `RTP/AVP` though the stream must be encrypted (`force_avp`).
    pub force_avp: bool,
    /// Our offers ask the network to take part in it at its edge (`a=3ge2ae:requested`, 3GPP TS 24.229 §7.5.2).
    pub to_edge: bool,
    /// Fills in unpredictable bytes, for keys.
    pub random: fn(&mut [u8]),
}

impl Encryption<'_> {
    /// Whether a tag of 32 bits is as good as one of 80.
    fn likes_short_tags(&self) -> bool {
        self.suites.first().is_some_and(|suite| suite.tag_bytes() == 4)
    }
}

/// Why a line of an offer or answer cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CryptoFlaw {
    /// There is none, though the profile promises SRTP.
    Missing,
    /// It cannot be read.
    Malformed,
    /// A suite that is not built in.
    UnknownSuite,
    /// The key has another length than the suite's.
    BadKey,
    /// Several keys, or a master key identifier in every packet, which is not built in.
    Mki,
    /// Packets that are not encrypted or not authenticated.
    Unprotected,
    /// A session parameter that must be understood and is not.
    UnknownParameter,
    /// A tag or suite that was not offered.
    NotOffered,
}

impl core::fmt::Display for CryptoFlaw {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Self::Missing => "it has no a=crypto; DTLS-SRTP is not built in",
            Self::Malformed => "a=crypto cannot be read",
            Self::UnknownSuite => "none of its crypto suites is built in",
            Self::BadKey => "the key has another length than the suite's",
            Self::Mki => "it wants a master key identifier (MKI), which is not built in",
            Self::Unprotected => {
                "it wants packets without encryption or authentication (UNENCRYPTED_SRTP, UNENCRYPTED_SRTCP, UNAUTHENTICATED_SRTP)"
            }
            Self::UnknownParameter => "it wants a session parameter that is not built in (KDR, FEC_ORDER, FEC_KEY)",
            Self::NotOffered => "it answers with a tag or suite that was not offered",
        })
    }
}

/// One `a=crypto` that can be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Line {
    pub(super) tag: u32,
    pub(super) suite: SrtpSuite,
    pub(super) secret: SrtpSecret,
}

impl Line {
    /// Reads the value: tag, suite, key parameters, session parameters.
    fn parse(value: &[u8]) -> Result<Self, CryptoFlaw> {
        let mut words = words(value);
        let tag = words.next().and_then(number).filter(|tag| *tag <= TAG_MAX).ok_or(CryptoFlaw::Malformed)?;
        let suite = words.next().ok_or(CryptoFlaw::Malformed)?;
        let suite = SrtpSuite::named(suite).ok_or(CryptoFlaw::UnknownSuite)?;
        let secret = key(suite, words.next().ok_or(CryptoFlaw::Malformed)?)?;
        words.try_for_each(parameter)?;
        Ok(Self { tag: u32::try_from(tag).map_err(|_| CryptoFlaw::Malformed)?, suite, secret })
    }
    /// Appends it.
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"a=crypto:");
        out.extend_from_slice(self.tag.to_string().as_bytes());
        out.push(b' ');
        out.extend_from_slice(self.suite.name().as_bytes());
        out.extend_from_slice(b" inline:");
        encode(self.secret.bytes(), out);
        out.extend_from_slice(b"\r\n");
    }
}

/// Appends the keys of a stream; `to_edge`: with the wish that the network's edge takes part.
pub(super) fn write_keys(lines: &[Line], to_edge: bool, out: &mut Vec<u8>) {
    if to_edge && !lines.is_empty() {
        out.extend_from_slice(b"a=3ge2ae:requested\r\n");
    }
    lines.iter().for_each(|line| line.write(out));
}

/// `inline:` key and salt, then lifetime and MKI, each behind a bar and each optional (RFC 4568 §6.1).
fn key(suite: SrtpSuite, parameters: &[u8]) -> Result<SrtpSecret, CryptoFlaw> {
    if parameters.contains(&b';') {
        return Err(CryptoFlaw::Mki); // several keys are told apart by it
    }
    let (method, info) = split_once(parameters, b':');
    let info = info.filter(|_| method.eq_ignore_ascii_case(b"inline")).ok_or(CryptoFlaw::Malformed)?;
    let mut parts = info.split(|&b| b == b'|');
    let coded = parts.next().unwrap_or_default();
    for part in parts {
        if part.contains(&b':') {
            return Err(CryptoFlaw::Mki);
        }
        // A lifetime: packets as a number or a power of two. No call lives as long as ours (2^48 and 2^31).
        let count = part.strip_prefix(b"2^").unwrap_or(part);
        number(count).ok_or(CryptoFlaw::Malformed)?;
    }
    let mut room = [0; SRTP_SECRET_BYTES_MAX];
    let secret = decode(coded, &mut room).and_then(|length| SrtpSecret::new(suite, room.get(..length)?));
    room.zeroize();
    secret.ok_or(CryptoFlaw::BadKey)
}

/// A session parameter that can be lived with (RFC 4568 §6.3).
fn parameter(word: &[u8]) -> Result<(), CryptoFlaw> {
    let (name, value) = split_once(word, b'=');
    if name.eq_ignore_ascii_case(b"KDR") && value.and_then(number) == Some(0)
        || name.eq_ignore_ascii_case(b"WSH")
        // Whoever wrote it says that it need not be understood.
        || word.first() == Some(&b'-')
    {
        return Ok(());
    }
    let unprotected = [&b"UNENCRYPTED_SRTP"[..], b"UNENCRYPTED_SRTCP", b"UNAUTHENTICATED_SRTP"];
    match unprotected.iter().any(|other| name.eq_ignore_ascii_case(other)) {
        true => Err(CryptoFlaw::Unprotected),
        false => Err(CryptoFlaw::UnknownParameter),
    }
}

/// The lines of a stream.
fn lines(stream: &Stream<'_>) -> impl Iterator<Item = Result<Line, CryptoFlaw>> {
    let values = stream.attributes().filter(|(name, _)| name.eq_ignore_ascii_case(b"crypto"));
    values.take(LINES_MAX).map(|(_, value)| Line::parse(value))
}

/// The keys of a session: ours stay what they are for each suite, so that rollover counters go on over new offers.
#[derive(Debug, Clone, Default)]
pub(super) struct Crypto {
    own: Vec<(SrtpSuite, SrtpSecret)>,
    /// What our last offer said.
    offered: Vec<Line>,
    /// What was agreed on last.
    suite: Option<SrtpSuite>,
}

impl Crypto {
    fn own(&mut self, suite: SrtpSuite, random: fn(&mut [u8])) -> Option<SrtpSecret> {
        if let Some((_, secret)) = self.own.iter().find(|(own, _)| *own == suite) {
            return Some(secret.clone());
        }
        let mut room = [0; SRTP_SECRET_BYTES_MAX];
        let bytes = room.get_mut(..suite.secret_bytes())?;
        random(bytes);
        let secret = SrtpSecret::new(suite, bytes)?;
        room.zeroize();
        self.own.push((suite, secret.clone()));
        Some(secret)
    }
    /// The lines of an offer: the suite in use first.
    pub(super) fn offer(&mut self, encryption: Option<&Encryption<'_>>) -> &[Line] {
        self.offered.clear();
        if let Some(Encryption { suites, random, .. }) = encryption {
            let more = suites.iter().copied().filter(|suite| Some(*suite) != self.suite);
            let all: Vec<SrtpSuite> = self.suite.into_iter().chain(more).collect();
            for (tag, suite) in (1..).zip(all) {
                if let Some(secret) = self.own(suite, *random) {
                    self.offered.push(Line { tag, suite, secret });
                }
            }
        }
        &self.offered
    }
    /// The line of an offer that we take, `None` when it has none at all; with the line that answers it, and the keys.
    pub(super) fn answer(
        &mut self,
        stream: &Stream<'_>,
        encryption: &Encryption<'_>,
    ) -> Result<Option<(Line, SrtpKeys)>, CryptoFlaw> {
        let mut flaw = None;
        let mut best: Option<Line> = None;
        for line in lines(stream) {
            match line {
                Err(why) => flaw = flaw.or(Some(why)),
                // The first that will do; a short tag only when there is no other, or they are wanted.
                Ok(line) => {
                    let is_short =
                        |line: &Line| line.suite.tag_bytes() == 4 && !encryption.likes_short_tags();
                    if best.as_ref().is_none_or(|best| is_short(best) && !is_short(&line)) {
                        best = Some(line);
                    }
                }
            }
        }
        let Some(theirs) = best else { return flaw.map_or(Ok(None), Err) };
        let Line { tag, suite, secret: receive } = theirs;
        let send = self.own(suite, encryption.random).ok_or(CryptoFlaw::BadKey)?;
        self.suite = Some(suite);
        let line = Line { tag, suite, secret: send.clone() };
        Ok(Some((line, SrtpKeys { suite, send, receive, replay_protection: true })))
    }
    /// The keys that the answer to our offer gives; `None` when it has none.
    pub(super) fn accept(&mut self, stream: &Stream<'_>) -> Result<Option<SrtpKeys>, CryptoFlaw> {
        let mut flaw = None;
        for line in lines(stream) {
            let theirs = match line {
                Ok(line) => line,
                Err(why) => {
                    flaw = flaw.or(Some(why));
                    continue;
                }
            };
            let ours = self.offered.iter().find(|ours| (ours.tag, ours.suite) == (theirs.tag, theirs.suite));
            let Some(Line { suite, secret, .. }) = ours else {
                flaw = flaw.or(Some(CryptoFlaw::NotOffered));
                continue;
            };
            self.suite = Some(*suite);
            let (send, receive) = (secret.clone(), theirs.secret);
            return Ok(Some(SrtpKeys { suite: *suite, send, receive, replay_protection: true }));
        }
        flaw.map_or(Ok(None), Err)
    }
    /// Whether our last offer had keys.
    pub(super) fn is_offered(&self) -> bool {
        !self.offered.is_empty()
    }
}

/// Puts asterisks in place of every key in a message, for logs.
pub fn hide_keys(text: &mut [u8]) {
    const MARK: &[u8] = b"inline:";
    let mut from = 0;
    let next = |text: &[u8], from: usize| {
        let found = text.get(from..)?.windows(MARK.len()).position(|part| part.eq_ignore_ascii_case(MARK))?;
        Some(from + found + MARK.len())
    };
    while let Some(start) = next(text, from) {
        let rest = text.get_mut(start..).unwrap_or_default();
        let is_key = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=');
        let length = rest.iter().take_while(|byte| is_key(byte)).count();
        rest.iter_mut().take(length).for_each(|byte| *byte = b'*');
        from = start + length;
    }
}

const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Appends bytes in base64, filled up (RFC 4648 §4).
pub(crate) fn encode(bytes: &[u8], out: &mut Vec<u8>) {
    for three in bytes.chunks(3) {
        let bits =
            three.iter().fold(0_u32, |bits, byte| bits << 8 | u32::from(*byte)) << (8 * (3 - three.len()));
        for at in 0..4 {
            let letter = LETTERS.get((bits >> (18 - 6 * at)) as usize & 63).copied().unwrap_or(b'=');
            out.push(if at <= three.len() { letter } else { b'=' });
        }
    }
}

/// Reads base64, filled up or not; the length, or `None` when it is none or does not fit.
pub(crate) fn decode(text: &[u8], out: &mut [u8]) -> Option<usize> {
    let end = text.iter().position(|&b| b == b'=').unwrap_or(text.len());
    let (text, fill) = text.split_at_checked(end)?;
    if fill.len() > 2 || fill.iter().any(|&b| b != b'=') || text.len() % 4 == 1 {
        return None;
    }
    let (mut bits, mut count, mut length) = (0_u32, 0_u32, 0);
    for letter in text {
        let six = LETTERS.iter().position(|known| known == letter)?;
        bits = bits << 6 | six as u32;
        count += 6;
        if count >= 8 {
            count -= 8;
            *out.get_mut(length)? = (bits >> count) as u8;
            length += 1;
        }
    }
    Some(length)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rfc4648_10_base64_is_read_and_written() {
        for (plain, coded) in [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
            ("foobar", "Zm9vYmFy"),
        ] {
            let mut out = Vec::new();
            encode(plain.as_bytes(), &mut out);
            assert_eq!(out, coded.as_bytes());
            for coded in [coded, coded.trim_end_matches('=')] {
                let mut room = [0; 6];
                let length = decode(coded.as_bytes(), &mut room).unwrap();
                assert_eq!(&room[..length], plain.as_bytes(), "{coded}");
            }
        }
        for bad in ["Z", "Zg===", "Z=g=", "Zm9v!", "Zm9vYmFyZm9v", "Zm 9v"] {
            assert_eq!(decode(bad.as_bytes(), &mut [0; 6]), None, "{bad}");
        }
    }

    #[test]
    fn rfc4568_9_1_lines_are_read_or_refused_with_the_reason() {
        const KEY: &str = "inline:MTIzNDU2Nzg5QUJDREUwMTIzNDU2Nzg5QUJjZGVm";
        let long = "inline:MTIzNDU2Nzg5QUJDREUwMTIzNDU2Nzg5QUJjZGVmMTIzNDU2Nzg5QUJDREUwMQ";
        let tag80 = Ok((1, SrtpSuite::AesCm128Sha1Tag80));
        for (line, expected) in [
            (format!("1 AES_CM_128_HMAC_SHA1_80 {KEY}"), tag80),
            (format!("1 aes_cm_128_hmac_sha1_80 {KEY}|2^20"), tag80),
            (format!("1 AES_CM_128_HMAC_SHA1_80 {KEY}|1048576"), tag80),
            (
                format!("999999999 AES_CM_128_HMAC_SHA1_32 {KEY}"),
                Ok((999_999_999, SrtpSuite::AesCm128Sha1Tag32)),
            ),
            (format!("2 AES_256_CM_HMAC_SHA1_80 {long}=="), Ok((2, SrtpSuite::AesCm256Sha1Tag80))),
            (format!("2 AES_256_CM_HMAC_SHA1_80 {long}"), Ok((2, SrtpSuite::AesCm256Sha1Tag80))),
            (format!("1 AES_CM_128_HMAC_SHA1_80 {KEY} WSH=64 KDR=0 -FOO=1"), tag80),
            (format!("1 AES_CM_128_HMAC_SHA1_80 {KEY}|2^20|1:4"), Err(CryptoFlaw::Mki)),
            (format!("1 AES_CM_128_HMAC_SHA1_80 {KEY}|1:4"), Err(CryptoFlaw::Mki)),
            (format!("1 AES_CM_128_HMAC_SHA1_80 {KEY}|2^20|1:4;{KEY}|2^20|2:4"), Err(CryptoFlaw::Mki)),
            (format!("1 AES_CM_128_HMAC_SHA1_80 {KEY}|forever"), Err(CryptoFlaw::Malformed)),
            (format!("1 AES_CM_128_HMAC_SHA1_80 {KEY} UNENCRYPTED_SRTCP"), Err(CryptoFlaw::Unprotected)),
            (format!("1 AES_CM_128_HMAC_SHA1_80 {KEY} UNENCRYPTED_SRTP"), Err(CryptoFlaw::Unprotected)),
            (format!("1 AES_CM_128_HMAC_SHA1_80 {KEY} UNAUTHENTICATED_SRTP"), Err(CryptoFlaw::Unprotected)),
            (format!("1 AES_CM_128_HMAC_SHA1_80 {KEY} KDR=1"), Err(CryptoFlaw::UnknownParameter)),
            (
                format!("1 AES_CM_128_HMAC_SHA1_80 {KEY} FEC_ORDER=FEC_SRTP"),
                Err(CryptoFlaw::UnknownParameter),
            ),
            (format!("1 F8_128_HMAC_SHA1_80 {KEY}"), Err(CryptoFlaw::UnknownSuite)),
            (format!("1 AES_256_CM_HMAC_SHA1_80 {KEY}"), Err(CryptoFlaw::BadKey)),
            ("1 AES_CM_128_HMAC_SHA1_80 inline:short".into(), Err(CryptoFlaw::BadKey)),
            ("1 AES_CM_128_HMAC_SHA1_80 inline:".into(), Err(CryptoFlaw::BadKey)),
            ("1 AES_CM_128_HMAC_SHA1_80 uri:http://x".into(), Err(CryptoFlaw::Malformed)),
            ("1 AES_CM_128_HMAC_SHA1_80".into(), Err(CryptoFlaw::Malformed)),
            ("1".into(), Err(CryptoFlaw::Malformed)),
            (String::new(), Err(CryptoFlaw::Malformed)),
            (format!("1000000000 AES_CM_128_HMAC_SHA1_80 {KEY}"), Err(CryptoFlaw::Malformed)),
            (format!("x AES_CM_128_HMAC_SHA1_80 {KEY}"), Err(CryptoFlaw::Malformed)),
        ] {
            let read = Line::parse(line.as_bytes()).map(|line| (line.tag, line.suite));
            assert_eq!(read, expected, "{line}");
        }
        let read = Line::parse(format!("1 AES_CM_128_HMAC_SHA1_80 {KEY}").as_bytes()).unwrap();
        assert_eq!(read.secret.bytes(), b"123456789ABCDE0123456789ABcdef");
        let mut written = Vec::new();
        read.write(&mut written);
        assert_eq!(written, format!("a=crypto:1 AES_CM_128_HMAC_SHA1_80 {KEY}\r\n").into_bytes());
    }

    #[test]
    fn keys_are_hidden_wherever_they_stand_in_a_message() {
        for (text, expected) in [
            ("a=crypto:1 X inline:QUJD+/==|2^31\r\na=b", "a=crypto:1 X inline:********|2^31\r\na=b"),
            ("INLINE:abc;inline:d|1:4", "INLINE:***;inline:*|1:4"),
            ("inline:", "inline:"),
            ("outline:abc", "outline:abc"),
            ("inlin", "inlin"),
        ] {
            let mut bytes = text.as_bytes().to_vec();
            hide_keys(&mut bytes);
            assert_eq!(String::from_utf8(bytes).unwrap(), expected);
        }
    }
}
