//! Bodies of one part and of several (RFC 2046 §5.1, RFC 5621): which parts there are, and whether one has to be read
//! that is not.

use super::{HeaderScan, Message, Status};
use crate::header::lex::{trim, unquote};
use crate::header::{Disposition, HeaderName, MediaType, find_name};

/// Most parts of one body: several times what gateways of telephone networks send (SDP, ISUP, a location, a charge).
pub const PARTS_MAX: usize = 16;
/// How deep bodies of several parts may lie in each other, the outermost included.
pub const DEPTH_MAX: usize = 4;
/// Longest boundary, bytes (RFC 2046 §5.1.1).
const BOUNDARY_BYTES_MAX: usize = 70;

/// A whole body, or a part of one.
#[derive(Clone, Copy)]
struct Part<'a> {
    kind: Option<MediaType<'a>>,
    disposition: Option<Disposition<'a>>,
    /// Packed or spelt in a way that nobody here undoes.
    is_coded: bool,
    bytes: &'a [u8],
}

impl<'a> Message<'a> {
    /// The bytes of this media type: the body, or the first of its parts that is one. Of alternatives the last counts,
    /// which is the best (RFC 2046 §5.1.4).
    pub fn part(&self, kind: &str, subtype: &str) -> Option<&'a [u8]> {
        self.whole().find(DEPTH_MAX, &|part| part.is(kind, subtype))
    }
    /// The description of the session: the body or its part that is SDP, but for one of early media alone (RFC 3959).
    pub fn sdp(&self) -> Option<&'a [u8]> {
        let is_session = |part: &Part<'_>| {
            let is_early = part.disposition.is_some_and(|as_what| as_what.is("early-session"));
            part.is("application", "sdp") && !part.bytes.is_empty() && !is_early
        };
        self.whole().find(DEPTH_MAX, &is_session)
    }
    /// Whether the body can be served by whoever reads the media types that `reads` names: 415 when something has to be
    /// read that is none of them (RFC 3261 §8.2.3, RFC 5621 §4), 400 when the parts cannot be told apart.
    ///
    /// A part that is not understood has to be read when its Content-Disposition says `handling=required`. When it says
    /// nothing, that is so as well, unless a part beside it is read: carriers add parts and do not say that these may be
    /// passed over.
    pub fn body_fits(&self, reads: impl Fn(&MediaType<'_>) -> bool) -> Result<(), Status> {
        let whole = self.whole();
        if whole.bytes.is_empty() {
            return Ok(());
        }
        let reads = |part: &Part<'_>| !part.is_coded && part.kind.is_some_and(|kind| reads(&kind));
        let is_read_of = whole.find(DEPTH_MAX, &reads).is_some();
        whole.fits(DEPTH_MAX, is_read_of, &reads)
    }

    fn whole(&self) -> Part<'a> {
        let coding = |value: &[u8]| !value.is_empty() && !value.eq_ignore_ascii_case(b"identity");
        Part {
            kind: self.content_type(),
            disposition: self.header(HeaderName::ContentDisposition).and_then(Disposition::parse),
            is_coded: self.values(HeaderName::ContentEncoding).any(coding),
            bytes: self.body(),
        }
    }
}

impl<'a> Part<'a> {
    /// The part that these bytes are, headers and all. What cannot be read of its headers is passed over.
    fn read(bytes: &'a [u8]) -> Self {
        let mut scan = HeaderScan { bytes, at: 0, flaw: None };
        let mut part = Part { kind: None, disposition: None, is_coded: false, bytes: &[] };
        while let Some(slot) = scan.next_field() {
            let name = bytes.get(usize::from(slot.start)..usize::from(slot.name_end)).unwrap_or_default();
            let value = slot.value.of(bytes);
            let is = |wanted: HeaderName<'_>| find_name(name) == Some(wanted.id());
            if is(HeaderName::ContentType) {
                part.kind = MediaType::parse(value);
            } else if is(HeaderName::ContentDisposition) {
                part.disposition = Disposition::parse(value);
            } else if is(HeaderName::ContentEncoding) {
                part.is_coded |= !value.eq_ignore_ascii_case(b"identity");
            } else if name.eq_ignore_ascii_case(b"Content-Transfer-Encoding") {
                let plain: [&[u8]; 3] = [b"binary", b"8bit", b"7bit"];
                part.is_coded |= !plain.iter().any(|plain| value.eq_ignore_ascii_case(plain));
            }
        }
        part.bytes = bytes.get(scan.at..).unwrap_or_default();
        part
    }

    fn is(&self, kind: &str, subtype: &str) -> bool {
        !self.is_coded && self.kind.is_some_and(|own| own.is(kind, subtype))
    }
    /// Its type, when it is made of parts.
    fn of_several(&self) -> Option<MediaType<'a>> {
        self.kind.filter(|kind| kind.kind.eq_ignore_ascii_case(b"multipart") && !self.is_coded)
    }
    fn is_choice(&self) -> bool {
        self.is("multipart", "alternative")
    }

    /// Its parts; `None` when they cannot be told apart, or when there are more than [`PARTS_MAX`].
    fn parts(&self) -> Option<Vec<Part<'a>>> {
        let boundary = unquote(self.of_several()?.params.get(b"boundary")?);
        if !(1..=BOUNDARY_BYTES_MAX).contains(&boundary.len()) {
            return None;
        }
        let mut at = delimiter(self.bytes, 0, &boundary)?;
        let mut parts = Vec::new();
        while !at.closes {
            let next = delimiter(self.bytes, at.next, &boundary);
            // The last delimiter may be missing where the message ends (RFC 2046 §5.1.2).
            let end = next.map_or(self.bytes.len(), |next| next.start.max(at.next));
            if parts.len() == PARTS_MAX {
                return None;
            }
            parts.push(Part::read(self.bytes.get(at.next..end)?));
            let Some(next) = next else { break };
            at = next;
        }
        (!parts.is_empty()).then_some(parts)
    }

    fn find(&self, depth: usize, wanted: &dyn Fn(&Part<'a>) -> bool) -> Option<&'a [u8]> {
        if self.of_several().is_none() {
            return wanted(self).then_some(self.bytes);
        }
        let parts = self.parts().filter(|_| depth > 0)?;
        let mut found = parts.iter().filter_map(|part| part.find(depth - 1, wanted));
        if self.is_choice() { found.next_back() } else { found.next() }
    }

    /// `is_read_of`: something of the message is read, so that what says nothing of itself may be passed over.
    fn fits(&self, depth: usize, is_read_of: bool, reads: &dyn Fn(&Part<'_>) -> bool) -> Result<(), Status> {
        let handling = self.disposition.and_then(|as_what| as_what.is_required());
        if handling == Some(false) {
            return Ok(());
        }
        if self.of_several().is_none() {
            let is_fit = reads(self) || (handling.is_none() && is_read_of);
            return if is_fit { Ok(()) } else { Err(Status::UNSUPPORTED_MEDIA_TYPE) };
        }
        let parts = self.parts().filter(|_| depth > 0).ok_or(Status::BAD_REQUEST)?;
        let mut fit = parts.iter().map(|part| part.fits(depth - 1, is_read_of, reads));
        if !self.is_choice() {
            return fit.collect();
        }
        match fit.any(|fit| fit.is_ok()) {
            true => Ok(()),
            false => Err(Status::UNSUPPORTED_MEDIA_TYPE),
        }
    }
}

/// The line between two parts.
#[derive(Clone, Copy)]
struct Delimiter {
    /// Where the line break before it begins, which belongs to it.
    start: usize,
    /// Where the next part begins.
    next: usize,
    /// It is the last.
    closes: bool,
}

/// The first delimiter from `from` on, where a line begins. A longer boundary that begins like ours is another's.
fn delimiter(bytes: &[u8], from: usize, boundary: &[u8]) -> Option<Delimiter> {
    let mut at = from.saturating_sub(1);
    loop {
        let rest = bytes.get(at..)?;
        let line = match rest {
            [b'-', b'-', ..] if at == 0 => 0,
            _ => at + memchr::memmem::find(rest, b"\n--")? + 1,
        };
        at = line.max(1);
        let Some(after) = bytes.get(line + 2..).and_then(|after| after.strip_prefix(boundary)) else {
            continue;
        };
        let (closes, padding) = match after.strip_prefix(b"--") {
            Some(rest) => (true, rest),
            None => (false, after),
        };
        let width = memchr::memchr(b'\n', padding).map_or(padding.len(), |end| end + 1);
        if padding.get(..width).is_some_and(|padding| trim(padding).is_empty()) {
            let next = bytes.len() - padding.len() + width;
            let start = match bytes.get(..line)? {
                [.., b'\r', b'\n'] => line - 2,
                _ => line.saturating_sub(1),
            };
            return Some(Delimiter { start, next, closes: closes || next == bytes.len() });
        }
    }
}

#[cfg(test)]
mod tests;
