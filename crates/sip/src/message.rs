//! Messages: one pass over the bytes finds where everything lies, and nothing is copied.
//!
//! [`Message::parse`] fills a caller's [`Index`] with the ranges of the start line, the headers and the body; typed headers
//! are read from those ranges when asked for. What is wrong with a message that still has a start line is kept as a flaw,
//! so that [`Message::validate`] can say how to answer it. Bytes are bytes: a Latin-1 name or a binary body loses nothing.

use std::sync::Arc;

use crate::frame::FrameError;
use crate::header::lex::{is_lws, is_token_byte, number, trim};
use crate::header::{
    CSeq, CommaList, Contact, HeaderName, MAX_LIST_VALUES, MediaType, Method, NameAddr, OTHER, Via,
    delta_seconds, find_name,
};
use crate::uri::Uri;

mod body;
mod status;
mod validate;

pub use body::{DEPTH_MAX, PARTS_MAX};
pub use status::Status;
pub use validate::Invalid;
pub(crate) use validate::MISSING_CONTACT;

/// Longest message in bytes: what a UDP datagram can carry, and what a 16-bit offset can name.
pub const MAX_MESSAGE: usize = 65_535;
/// Most header fields a message is indexed for; four times the longest honest one seen. More are answered 400.
pub const MAX_HEADERS: usize = 128;
/// Longest header field in bytes, name and folds included: twice the largest seen in the field. Longer ones are answered 400.
pub const MAX_HEADER_BYTES: usize = 8 * 1024;

/// Why bytes are no SIP message at all, so that nothing can be answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ParseError {
    /// Nothing but line breaks: a keep-alive (RFC 5626 §3.5.1).
    Empty,
    /// More than [`MAX_MESSAGE`] bytes.
    TooLarge,
    /// The first line is neither a request line nor a status line.
    NotSip,
}

impl core::fmt::Display for ParseError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Self::Empty => "nothing but line breaks",
            Self::TooLarge => "longer than any SIP message may be",
            Self::NotSip => "first line is neither a request line nor a status line",
        })
    }
}
impl std::error::Error for ParseError {}

/// A range of the message.
#[derive(Debug, Clone, Copy, Default)]
struct Span {
    start: u16,
    end: u16,
}

impl Span {
    fn new(start: usize, end: usize) -> Self {
        // Offsets are at most MAX_MESSAGE, which `parse` checks before anything else.
        let clamp = |at| u16::try_from(at).unwrap_or(u16::MAX);
        Self { start: clamp(start), end: clamp(end) }
    }
    fn of(self, bytes: &[u8]) -> &[u8] {
        bytes.get(usize::from(self.start)..usize::from(self.end)).unwrap_or_default()
    }
}

/// One header field.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Slot {
    pub(crate) id: u8,
    /// The line can be copied as it is: long name, no fold, no stray CR, CR LF at its end.
    verbatim: bool,
    start: u16,
    name_end: u16,
    value: Span,
    next: u16,
}

impl Slot {
    /// The whole line with its line break, when it can be copied as it is.
    pub(crate) fn line<'a>(&self, message: &Message<'a>) -> Option<&'a [u8]> {
        self.verbatim.then(|| Span { start: self.start, end: self.next }.of(message.bytes))
    }
    /// Where that line lies in the message.
    pub(crate) fn line_range(&self) -> Option<(usize, usize)> {
        self.verbatim.then(|| (usize::from(self.start), usize::from(self.next)))
    }
    pub(crate) fn name<'a>(&self, message: &Message<'a>) -> HeaderName<'a> {
        let written = Span { start: self.start, end: self.name_end }.of(message.bytes);
        HeaderName::from_id(self.id, written).unwrap_or(HeaderName::Other(written))
    }
    pub(crate) fn value<'a>(&self, message: &Message<'a>) -> &'a [u8] {
        self.value.of(message.bytes)
    }
}

#[derive(Debug, Clone, Copy)]
enum Start {
    Request {
        method: Span,
        uri: Span,
        version: Span,
    },
    /// `code` is 0 when it is not three digits.
    Response {
        code: u16,
        reason: Span,
        version: Span,
    },
}

/// What the one pass found besides the headers.
#[derive(Debug, Clone, Copy)]
struct Head {
    start: Start,
    body: Span,
    flaw: Option<Flaw>,
}

const EMPTY_HEAD: Head = Head {
    start: Start::Response { code: 0, reason: Span { start: 0, end: 0 }, version: Span { start: 0, end: 0 } },
    body: Span { start: 0, end: 0 },
    flaw: None,
};

/// What makes a message unfit although it has a start line; the first one found is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flaw {
    /// The start line has too many or too few parts.
    StartLine,
    /// A line that is no header field.
    HeaderLine,
    /// More than [`MAX_HEADERS`] fields.
    TooManyHeaders,
    /// A field of more than [`MAX_HEADER_BYTES`] bytes.
    HeaderTooLong,
    /// Content-Length is no number, stands twice, or promises more than there is.
    ContentLength,
}

/// Room for the ranges of one message; made once and used for every message.
#[derive(Debug, Clone)]
pub struct Index {
    head: Head,
    slots: [Slot; MAX_HEADERS],
}

impl Index {
    /// Empty room.
    pub const fn new() -> Self {
        const EMPTY: Slot = Slot {
            id: OTHER,
            verbatim: false,
            start: 0,
            name_end: 0,
            value: Span { start: 0, end: 0 },
            next: 0,
        };
        Self { head: EMPTY_HEAD, slots: [EMPTY; MAX_HEADERS] }
    }
}

impl Default for Index {
    fn default() -> Self {
        Self::new()
    }
}

/// A parsed message that borrows its bytes and its index; copying it copies three pointers.
#[derive(Clone, Copy)]
pub struct Message<'a> {
    bytes: &'a [u8],
    head: &'a Head,
    slots: &'a [Slot],
}

impl<'a> Message<'a> {
    /// Finds start line, headers and body of the message `bytes` is, one datagram or one frame of a stream.
    ///
    /// Line breaks before the start line are skipped, bare LF ends a line as CR LF does, and a body without Content-Length
    /// goes to the end. Fails only when there is nothing that could be answered; see [`Message::validate`] for the rest.
    pub fn parse(bytes: &'a [u8], index: &'a mut Index) -> Result<Self, ParseError> {
        if bytes.len() > MAX_MESSAGE {
            return Err(ParseError::TooLarge);
        }
        let from = bytes.iter().position(|&b| b != b'\r' && b != b'\n').ok_or(ParseError::Empty)?;
        let (start, mut flaw, headers_at) = parse_start_line(bytes, from)?;
        let mut scan = HeaderScan { bytes, at: headers_at, flaw: None };
        let mut count = 0;
        let mut content_length = None;
        while let Some(slot) = scan.next_field() {
            if slot.id == CONTENT_LENGTH {
                match (number(slot.value.of(bytes)), content_length) {
                    (Some(length), None) => content_length = Some(length),
                    _ => scan.flaw = scan.flaw.or(Some(Flaw::ContentLength)),
                }
            }
            let Some(free) = index.slots.get_mut(count) else {
                scan.flaw = scan.flaw.or(Some(Flaw::TooManyHeaders));
                break;
            };
            *free = slot;
            count += 1;
        }
        flaw = flaw.or(scan.flaw);
        let available = bytes.len().saturating_sub(scan.at);
        let length = match content_length.map(usize::try_from) {
            Some(Ok(length)) if length <= available => length,
            Some(_) => {
                flaw = flaw.or(Some(Flaw::ContentLength));
                available
            }
            None => available,
        };
        index.head = Head { start, body: Span::new(scan.at, scan.at + length), flaw };
        Ok(Self { bytes, head: &index.head, slots: index.slots.get(..count).unwrap_or_default() })
    }

    /// The same message with bytes and index of its own.
    pub fn into_owned(self) -> OwnedMessage {
        OwnedMessage { bytes: self.bytes.into(), head: *self.head, slots: self.slots.into() }
    }
    /// All bytes, as they came.
    pub const fn as_bytes(&self) -> &'a [u8] {
        self.bytes
    }
    /// The first thing found wrong in the one pass.
    pub const fn flaw(&self) -> Option<Flaw> {
        self.head.flaw
    }
    /// Whether this is a request.
    pub const fn is_request(&self) -> bool {
        matches!(self.head.start, Start::Request { .. })
    }
    /// Method of a request; for a response that of its CSeq, a nameless one without.
    pub fn method(&self) -> Method<'a> {
        match self.head.start {
            Start::Request { method, .. } => Method::from_bytes(method.of(self.bytes)),
            Start::Response { .. } => self.cseq().map_or(Method::Other(&[]), |cseq| cseq.method),
        }
    }
    /// Request-URI as written; empty for a response.
    pub fn request_uri_bytes(&self) -> &'a [u8] {
        match self.head.start {
            Start::Request { uri, .. } => uri.of(self.bytes),
            Start::Response { .. } => &[],
        }
    }
    /// Request-URI; `None` for a response and for one that cannot be read.
    pub fn request_uri(&self) -> Option<Uri<'a>> {
        Uri::parse(self.request_uri_bytes())
    }
    /// Status of a response; `None` for a request and for a code outside 100 to 699.
    pub fn status(&self) -> Option<Status> {
        match self.head.start {
            Start::Request { .. } => None,
            Start::Response { code, .. } => Status::new(code),
        }
    }
    /// Reason phrase of a response; may be empty.
    pub fn reason_phrase(&self) -> &'a [u8] {
        match self.head.start {
            Start::Request { .. } => &[],
            Start::Response { reason, .. } => reason.of(self.bytes),
        }
    }
    /// Protocol version as written; `SIP/2.0` in any valid message.
    pub fn version(&self) -> &'a [u8] {
        match self.head.start {
            Start::Request { version, .. } | Start::Response { version, .. } => version.of(self.bytes),
        }
    }
    /// Body, cut to Content-Length.
    pub fn body(&self) -> &'a [u8] {
        self.head.body.of(self.bytes)
    }

    /// Every header field with its value, in order.
    pub fn fields(&self) -> impl Iterator<Item = (HeaderName<'a>, &'a [u8])> + use<'a> {
        let message = *self;
        self.slots.iter().map(move |slot| (slot.name(&message), slot.value(&message)))
    }
    pub(crate) fn slots(&self) -> &'a [Slot] {
        self.slots
    }
    pub(crate) fn slots_of(&self, name: HeaderName<'_>) -> impl Iterator<Item = &'a Slot> {
        let message = *self;
        let id = name.id();
        self.slots.iter().filter(move |slot| {
            slot.id == id
                && (id != OTHER || slot.name(&message).as_bytes().eq_ignore_ascii_case(name.as_bytes()))
        })
    }
    /// The value of the first field of that name, white space at its ends removed; folds are still in it.
    pub fn header(&self, name: HeaderName<'_>) -> Option<&'a [u8]> {
        self.slots_of(name).next().map(|slot| slot.value(self))
    }
    /// The values of every field of that name, unsplit.
    pub fn headers<'n>(&self, name: HeaderName<'n>) -> impl Iterator<Item = &'a [u8]> + use<'a, 'n> {
        let message = *self;
        let id = name.id();
        self.slots
            .iter()
            .filter(move |slot| {
                slot.id == id
                    && (id != OTHER || slot.name(&message).as_bytes().eq_ignore_ascii_case(name.as_bytes()))
            })
            .map(move |slot| slot.value(&message))
    }
    /// The values of every field of that name, split at commas, at most [`MAX_LIST_VALUES`]. Not for credentials and
    /// challenges, which hold commas themselves.
    pub fn values<'n>(&self, name: HeaderName<'n>) -> impl Iterator<Item = &'a [u8]> + use<'a, 'n> {
        self.headers(name).flat_map(CommaList::new).take(MAX_LIST_VALUES)
    }
    /// Whether a field of that name is there.
    pub fn has(&self, name: HeaderName<'_>) -> bool {
        self.slots_of(name).next().is_some()
    }
    /// Whether a comma list of that name holds `token`, any case (Require, Supported, Allow, Privacy).
    pub fn lists(&self, name: HeaderName<'_>, token: &[u8]) -> bool {
        self.values(name).any(|value| value.eq_ignore_ascii_case(token))
    }

    /// The topmost Via.
    pub fn top_via(&self) -> Option<Via<'a>> {
        let value = self.header(HeaderName::Via)?;
        match memchr::memchr(b',', value) {
            None => Via::parse(value),
            Some(_) => CommaList::new(value).next().and_then(Via::parse),
        }
    }
    /// Every Via that can be read, top first.
    pub fn vias(&self) -> impl Iterator<Item = Via<'a>> + use<'a> {
        self.values(HeaderName::Via).filter_map(Via::parse)
    }
    /// From.
    pub fn from(&self) -> Option<NameAddr<'a>> {
        self.header(HeaderName::From).and_then(NameAddr::parse)
    }
    /// To.
    pub fn to(&self) -> Option<NameAddr<'a>> {
        self.header(HeaderName::To).and_then(NameAddr::parse)
    }
    /// The tag of From.
    pub fn from_tag(&self) -> Option<&'a [u8]> {
        self.from().and_then(|from| from.tag())
    }
    /// The tag of To.
    pub fn to_tag(&self) -> Option<&'a [u8]> {
        self.to().and_then(|to| to.tag())
    }
    /// Call-ID; empty ones count as missing.
    pub fn call_id(&self) -> Option<&'a [u8]> {
        self.header(HeaderName::CallId).filter(|id| !id.is_empty())
    }
    /// CSeq.
    pub fn cseq(&self) -> Option<CSeq<'a>> {
        self.header(HeaderName::CSeq).and_then(CSeq::parse)
    }
    /// Max-Forwards, 0 to 255.
    pub fn max_forwards(&self) -> Option<u8> {
        self.header(HeaderName::MaxForwards).and_then(number).and_then(|hops| u8::try_from(hops).ok())
    }
    /// Every Contact that can be read.
    pub fn contacts(&self) -> impl Iterator<Item = Contact<'a>> + use<'a> {
        self.values(HeaderName::Contact).filter_map(Contact::parse)
    }
    /// The first Contact that is an address.
    pub fn contact(&self) -> Option<NameAddr<'a>> {
        self.contacts().find_map(Contact::addr)
    }
    /// The addresses among its Contacts in the order in which their sender likes them: by `q`, which is 1 where it does not
    /// stand, and those that are liked alike as they stand (RFC 3261 §8.1.3.4, §20.10).
    pub fn preferred_contacts(&self) -> Vec<NameAddr<'a>> {
        let mut addresses: Vec<_> = self.contacts().filter_map(Contact::addr).collect();
        addresses.sort_by_key(|contact| core::cmp::Reverse(contact.q().unwrap_or(1000)));
        addresses
    }
    /// Every Route that can be read, in order.
    pub fn routes(&self) -> impl Iterator<Item = NameAddr<'a>> + use<'a> {
        self.values(HeaderName::Route).filter_map(NameAddr::parse)
    }
    /// Every Record-Route that can be read, in order.
    pub fn record_routes(&self) -> impl Iterator<Item = NameAddr<'a>> + use<'a> {
        self.values(HeaderName::RecordRoute).filter_map(NameAddr::parse)
    }
    /// Expires in seconds.
    pub fn expires(&self) -> Option<u32> {
        self.header(HeaderName::Expires).and_then(delta_seconds)
    }
    /// Min-Expires in seconds.
    pub fn min_expires(&self) -> Option<u32> {
        self.header(HeaderName::MinExpires).and_then(delta_seconds)
    }
    /// Content-Type.
    pub fn content_type(&self) -> Option<MediaType<'a>> {
        self.header(HeaderName::ContentType).and_then(MediaType::parse)
    }
    /// Whether its sender reads bodies of this media type, by its Accept; `None` when it has none (RFC 3261 §20.1).
    pub fn accepts(&self, media_type: &str) -> Option<bool> {
        let group = media_type.split('/').next().unwrap_or_default();
        let mut ranges = self.values(HeaderName::Accept).peekable();
        ranges.peek()?;
        Some(ranges.any(|value| {
            let range = value.split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii();
            let of_group =
                range.strip_suffix(b"/*").is_some_and(|of| of.eq_ignore_ascii_case(group.as_bytes()));
            range == b"*/*" || of_group || range.eq_ignore_ascii_case(media_type.as_bytes())
        }))
    }
}

impl core::fmt::Debug for Message<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self.status() {
            Some(status) => write!(f, "Message({status} to {})", self.method()),
            None => write!(f, "Message({} {})", self.method(), self.request_uri_bytes().escape_ascii()),
        }
    }
}

/// A message that owns its bytes; clones share them.
#[derive(Clone)]
pub struct OwnedMessage {
    bytes: Arc<[u8]>,
    head: Head,
    slots: Box<[Slot]>,
}

impl OwnedMessage {
    /// Parses `bytes` and keeps them.
    pub fn parse(bytes: impl Into<Arc<[u8]>>) -> Result<Self, ParseError> {
        let bytes = bytes.into();
        let mut index = Index::new();
        let message = Message::parse(&bytes, &mut index)?;
        let (head, slots) = (*message.head, message.slots.into());
        Ok(Self { bytes, head, slots })
    }
    /// The message, borrowed.
    pub fn view(&self) -> Message<'_> {
        Message { bytes: &self.bytes, head: &self.head, slots: &self.slots }
    }
    /// The bytes, shared.
    pub fn bytes(&self) -> Arc<[u8]> {
        Arc::clone(&self.bytes)
    }
}

impl core::fmt::Debug for OwnedMessage {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        self.view().fmt(f)
    }
}

const CONTENT_LENGTH: u8 = HeaderName::ContentLength.id();

fn parse_start_line(bytes: &[u8], from: usize) -> Result<(Start, Option<Flaw>, usize), ParseError> {
    let rest = bytes.get(from..).unwrap_or_default();
    let newline = memchr::memchr(b'\n', rest).ok_or(ParseError::NotSip)?;
    let next = from + newline + 1;
    let end = if newline > 0 && rest.get(newline - 1) == Some(&b'\r') { newline - 1 } else { newline };
    let line = rest.get(..end).unwrap_or_default();
    let first_space = memchr::memchr(b' ', line).ok_or(ParseError::NotSip)?;
    let after = first_space + 1;
    let span = |start: usize, end: usize| Span::new(from + start, from + end);
    if line.get(..4).is_some_and(|word| word.eq_ignore_ascii_case(b"SIP/")) {
        let code = line.get(after..after + 3).filter(|_| matches!(line.get(after + 3), None | Some(b' ')));
        let code = code.and_then(number).and_then(|code| u16::try_from(code).ok()).unwrap_or(0);
        let reason = span((after + 4).min(line.len()), line.len());
        let flaw = Status::new(code).is_none().then_some(Flaw::StartLine);
        return Ok((Start::Response { code, reason, version: span(0, first_space) }, flaw, next));
    }
    let last_space = memchr::memrchr(b' ', line).unwrap_or(first_space);
    let version = line.get(last_space + 1..).unwrap_or_default();
    let is_version = |word: &[u8]| word.get(..4).is_some_and(|w| w.eq_ignore_ascii_case(b"SIP/"));
    let good = last_space > first_space
        && is_version(version)
        && line
            .get(..first_space)
            .is_some_and(|method| !method.is_empty() && method.iter().all(|&b| is_token_byte(b)));
    if !good && memchr::memmem::find(line, b"SIP/").is_none() {
        return Err(ParseError::NotSip);
    }
    let uri = span(after.min(last_space), last_space.max(after.min(last_space)));
    let start =
        Start::Request { method: span(0, first_space), uri, version: span(last_space + 1, line.len()) };
    Ok((start, (!good).then_some(Flaw::StartLine), next))
}

/// Walks the header lines; `at` is where the next one, or after the walk the body, begins.
struct HeaderScan<'a> {
    bytes: &'a [u8],
    at: usize,
    flaw: Option<Flaw>,
}

impl HeaderScan<'_> {
    /// The next field; `None` after the empty line, which is then behind `at`.
    fn next_field(&mut self) -> Option<Slot> {
        loop {
            let start = self.at;
            let rest = self.bytes.get(start..).unwrap_or_default();
            match rest {
                [b'\r', b'\n', ..] => {
                    self.at += 2;
                    return None;
                }
                [b'\n', ..] => {
                    self.at += 1;
                    return None;
                }
                // Small devices leave the empty line out where no body follows.
                [] => return None,
                _ => {}
            }
            let name_len = rest.iter().position(|&b| !is_token_byte(b)).unwrap_or(rest.len());
            let mut colon = name_len;
            while matches!(rest.get(colon), Some(b' ' | b'\t')) {
                colon += 1;
            }
            let is_field = name_len > 0 && rest.get(colon) == Some(&b':');
            let line = self.find_end(start + if is_field { colon + 1 } else { 0 });
            self.at = line.next;
            if line.next - start > MAX_HEADER_BYTES {
                self.flaw = self.flaw.or(Some(Flaw::HeaderTooLong));
                continue;
            }
            if !is_field {
                self.flaw = self.flaw.or(Some(Flaw::HeaderLine));
                continue;
            }
            let name = rest.get(..name_len).unwrap_or_default();
            let from = start + colon + 1;
            let value = self.trimmed(from, line.end);
            return Some(Slot {
                id: find_name(name).unwrap_or(OTHER),
                verbatim: !line.broken && colon == name_len && name_len > 1 && line.next - line.end == 2,
                start: Span::new(start, start).start,
                name_end: Span::new(start + name_len, 0).start,
                value,
                next: Span::new(line.next, 0).start,
            });
        }
    }

    fn trimmed(&self, mut from: usize, mut to: usize) -> Span {
        while from < to && self.bytes.get(from).is_some_and(|&b| is_lws(b)) {
            from += 1;
        }
        while to > from && self.bytes.get(to - 1).is_some_and(|&b| is_lws(b)) {
            to -= 1;
        }
        Span::new(from, to)
    }

    /// The end of the field that is read at `from`, across folds.
    fn find_end(&self, from: usize) -> LineEnd {
        let mut at = from;
        let mut broken = false;
        loop {
            let rest = self.bytes.get(at..).unwrap_or_default();
            let Some(stop) = memchr::memchr2(b'\r', b'\n', rest) else {
                return LineEnd { end: self.bytes.len(), next: self.bytes.len(), broken };
            };
            let width = match rest.get(stop..) {
                Some([b'\r', b'\n', ..]) => 2,
                Some([b'\n', ..]) => 1,
                _ => {
                    // A CR alone ends nothing here, but it may for the next reader: the line is never copied as it is.
                    broken = true;
                    at += stop + 1;
                    continue;
                }
            };
            let next = at + stop + width;
            if !matches!(self.bytes.get(next), Some(b' ' | b'\t')) {
                return LineEnd { end: at + stop, next, broken };
            }
            broken = true;
            at = next;
        }
    }
}

/// Length in bytes of the message that these complete headers begin, body included.
pub(crate) fn frame_length(head: &[u8]) -> Result<usize, FrameError> {
    let (_, _, headers_at) = parse_start_line(head, 0).map_err(|_| FrameError::NotSip)?;
    let mut scan = HeaderScan { bytes: head, at: headers_at, flaw: None };
    let mut length = None;
    while let Some(slot) = scan.next_field() {
        if slot.id == CONTENT_LENGTH {
            let found = number(slot.value.of(head)).ok_or(FrameError::NoLength)?;
            if length.is_some_and(|length| length != found) {
                return Err(FrameError::NoLength);
            }
            length = Some(found);
        }
    }
    let body = usize::try_from(length.ok_or(FrameError::NoLength)?).map_err(|_| FrameError::TooLarge)?;
    head.len().checked_add(body).ok_or(FrameError::TooLarge)
}

struct LineEnd {
    /// Where the line break begins.
    end: usize,
    /// Where the next line begins.
    next: usize,
    broken: bool,
}

/// A value with its folds made spaces, for those who compare or show it whole (RFC 3261 §7.3.1).
pub fn unfold(value: &[u8]) -> std::borrow::Cow<'_, [u8]> {
    if memchr::memchr2(b'\r', b'\n', value).is_none() {
        return value.into();
    }
    let lines = value.split(|&b| b == b'\r' || b == b'\n').map(trim).filter(|line| !line.is_empty());
    let mut out = Vec::with_capacity(value.len());
    for line in lines {
        if !out.is_empty() {
            out.push(b' ');
        }
        out.extend_from_slice(line);
    }
    out.into()
}

#[cfg(test)]
mod tests;
