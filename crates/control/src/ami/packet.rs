//! Lines to actions, and fields to messages. What goes out is made safe here, in one place: no value can end a line.

use std::collections::VecDeque;
use std::fmt::{Display, Write as _};

/// Longest line: the field's own limit is shorter, and no client writes a longer one on purpose.
pub const LINE_BYTES_MAX: usize = 8 * 1024;
/// Headers of one action, as in the field.
pub const HEADERS_MAX: usize = 128;
/// Bytes of one action before login: name, secret, key and some slack. Nothing larger is kept for strangers.
pub const STRANGER_BYTES_MAX: usize = 4 * 1024;
/// Bytes of one action after login: an originated call with a hundred long variables.
pub const ACTION_BYTES_MAX: usize = 256 * 1024;

/// One action as it came: header lines in order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Action {
    headers: Vec<(String, String)>,
}

impl Action {
    /// An action whose headers came in another way than by lines: as if they had come so.
    pub fn of(headers: Vec<(String, String)>) -> Self {
        let line = |text: String| -> String {
            let end = text.floor_char_boundary(LINE_BYTES_MAX);
            let kept = text.get(..end).unwrap_or_default();
            kept.chars().map(|c| if c.is_control() { ' ' } else { c }).collect::<String>().trim().to_owned()
        };
        let headers = headers.into_iter().take(HEADERS_MAX);
        Self { headers: headers.map(|(name, value)| (line(name), line(value))).collect() }
    }
    /// The first value of a header, any case; `None` when it is absent or empty.
    pub fn get(&self, name: &str) -> Option<&str> {
        let found =
            self.headers.iter().find(|(key, value)| key.eq_ignore_ascii_case(name) && !value.is_empty());
        found.map(|(_, value)| value.as_str())
    }
    /// Every value of a header, in order.
    pub fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.headers
            .iter()
            .filter(move |(key, _)| key.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.as_str())
    }
    /// Every header in order.
    pub fn headers(&self) -> impl Iterator<Item = (&str, &str)> {
        self.headers.iter().map(|(key, value)| (key.as_str(), value.as_str()))
    }
    /// Whether a header says yes.
    pub fn is_true(&self, name: &str) -> bool {
        self.get(name).is_some_and(truth)
    }
}

/// What configuration and clients call true.
pub(crate) fn truth(text: &str) -> bool {
    conf::boolean(text) == Some(true)
}

/// What a session's bytes have become.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Framed {
    /// A whole action.
    Action(Action),
    /// One that broke a limit; the rest of it was thrown away. Holds its ActionID, as far as it was read.
    TooLarge(Action, &'static str),
}

/// Cuts a byte stream into actions. Never holds more than the limit of one action and what follows it in one read.
#[derive(Debug, Default)]
pub(crate) struct Framer {
    line: Vec<u8>,
    action: Action,
    bytes: usize,
    flaw: Option<&'static str>,
    ready: VecDeque<Framed>,
}

impl Framer {
    /// Takes bytes as they came; `bytes_max` is the limit of one action.
    pub fn push(&mut self, bytes: &[u8], bytes_max: usize) {
        for &byte in bytes {
            if byte == b'\n' {
                let line = std::mem::take(&mut self.line);
                self.end_line(&line);
                // Keeps the allocation for the next line.
                self.line = line;
                self.line.clear();
                continue;
            }
            self.bytes += 1;
            if self.bytes > bytes_max {
                self.flaw.get_or_insert("Message too large");
            } else if self.line.len() >= LINE_BYTES_MAX {
                self.flaw.get_or_insert("Line too long");
            }
            if self.flaw.is_none() {
                self.line.push(byte);
            } else if self.line.len() < 2 {
                // Enough to tell an empty line, which ends the broken action, from others.
                self.line.push(byte);
            }
        }
    }
    /// The next action.
    pub fn next(&mut self) -> Option<Framed> {
        self.ready.pop_front()
    }
    /// Whether a limit is broken already, before the action has ended.
    pub fn is_broken(&self) -> bool {
        self.flaw.is_some()
    }

    fn end_line(&mut self, line: &[u8]) {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if !line.is_empty() {
            if self.flaw.is_none() {
                self.header(line);
            }
            return;
        }
        self.bytes = 0;
        let action = std::mem::take(&mut self.action);
        match self.flaw.take() {
            Some(flaw) => self.ready.push_back(Framed::TooLarge(action, flaw)),
            // Blank lines between actions are common.
            None if action.headers.is_empty() => {}
            None => self.ready.push_back(Framed::Action(action)),
        }
    }
    fn header(&mut self, line: &[u8]) {
        // A line without a colon says nothing; the field ignores it too.
        let Some(colon) = memchr_colon(line) else { return };
        if self.action.headers.len() >= HEADERS_MAX {
            self.flaw = Some("Too many headers");
            return;
        }
        let (name, value) = line.split_at(colon);
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
        self.action.headers.push((text(name), text(value.get(1..).unwrap_or_default())));
    }
}

fn memchr_colon(line: &[u8]) -> Option<usize> {
    line.iter().position(|byte| *byte == b':')
}

/// One response or event being written. Dropping it without [`Message::end`] leaves it open.
#[derive(Debug)]
pub(crate) struct Message<'a> {
    out: &'a mut String,
}

impl<'a> Message<'a> {
    /// A response of this kind (`Success`, `Error`, `Goodbye`).
    pub fn response(kind: &str, action_id: Option<&str>, out: &'a mut String) -> Self {
        Self { out }.field("Response", kind).optional("ActionID", action_id)
    }
    /// An event that answers an action.
    pub fn event(name: &str, action_id: Option<&str>, out: &'a mut String) -> Self {
        Self { out }.field("Event", name).optional("ActionID", action_id)
    }
    /// Goes on with what stands in `out`.
    pub fn open(out: &'a mut String) -> Self {
        Self { out }
    }
    /// Adds `name: value`.
    pub fn field(self, name: &str, value: impl Display) -> Self {
        self.prefixed("", name, value)
    }
    /// Adds a field whose name has a prefix (`Dest`).
    pub fn prefixed(self, prefix: &str, name: &str, value: impl Display) -> Self {
        let from = self.out.len();
        self.out.push_str(prefix);
        self.out.push_str(name);
        self.out.push_str(": ");
        // Writing to a String cannot fail.
        let _ = write!(self.out, "{value}");
        neutralise(self.out, from);
        self.out.push_str("\r\n");
        self
    }
    /// Adds a field when there is a value.
    pub fn optional(self, name: &str, value: Option<impl Display>) -> Self {
        match value {
            Some(value) => self.field(name, value),
            None => self,
        }
    }
    /// Adds a field whose name has a prefix, when there is text for it.
    pub fn optional_prefixed(self, prefix: &str, name: &str, value: &str) -> Self {
        if value.is_empty() { self } else { self.prefixed(prefix, name, value) }
    }
    /// Ends the message.
    pub fn end(self) {
        self.out.push_str("\r\n");
    }
}

/// Replaces what could end a line or confuse a terminal, from byte `from` on. For clients in some languages U+2028 and
/// U+2029 end one, too (`splitlines` of Python).
fn neutralise(out: &mut String, from: usize) {
    let Some(tail) = out.get(from..) else { return };
    // Nearly all text has none of the bytes that these begin with: 0xC2 leads to U+0080 to U+009F, 0xE2 to U+2028, among
    // others.
    let suspect = tail
        .bytes()
        .fold(false, |found, byte| found | (byte < 0x20) | (byte == 0x7F) | (byte == 0xC2) | (byte == 0xE2));
    let ends = |c: char| c.is_control() || matches!(c, '\u{2028}' | '\u{2029}');
    if !suspect || !tail.chars().any(ends) {
        return;
    }
    let safe: String = tail.chars().map(|c| if ends(c) { ' ' } else { c }).collect();
    out.truncate(from);
    out.push_str(&safe);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(bytes: &[u8]) -> Vec<Framed> {
        let mut whole = Framer::default();
        whole.push(bytes, ACTION_BYTES_MAX);
        let whole: Vec<Framed> = std::iter::from_fn(|| whole.next()).collect();
        let mut split = Framer::default();
        bytes.iter().for_each(|byte| split.push(&[*byte], ACTION_BYTES_MAX));
        let split: Vec<Framed> = std::iter::from_fn(|| split.next()).collect();
        assert_eq!(whole, split, "the way bytes are cut into reads changes nothing");
        whole
    }

    fn action(headers: &[(&str, &str)]) -> Framed {
        let headers = headers.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
        Framed::Action(Action { headers })
    }

    #[test]
    fn actions_are_framed_by_blank_lines_with_either_line_end() {
        let ping = [("Action", "Ping"), ("ActionID", "7")];
        for (what, bytes, expected) in [
            ("CR LF", &b"Action: Ping\r\nActionID: 7\r\n\r\n"[..], vec![action(&ping)]),
            ("LF", b"Action: Ping\nActionID: 7\n\n", vec![action(&ping)]),
            ("no space", b"Action:Ping\r\nActionID:7\r\n\r\n", vec![action(&ping)]),
            ("blank lines before", b"\r\n\r\nAction: Ping\r\nActionID: 7\r\n\r\n", vec![action(&ping)]),
            ("a line without colon", b"Action: Ping\r\nnonsense\r\nActionID: 7\r\n\r\n", vec![action(&ping)]),
            ("unfinished", b"Action: Ping\r\nActionID: 7\r\n", vec![]),
            (
                "repeated",
                b"Variable: a=1\r\nvariable: b:2\r\n\r\n",
                vec![action(&[("Variable", "a=1"), ("variable", "b:2")])],
            ),
            ("no UTF-8", b"Action: \xff\r\n\r\n", vec![action(&[("Action", "\u{fffd}")])]),
        ] {
            assert_eq!(frame(bytes), expected, "{what}");
        }
    }

    #[test]
    fn what_breaks_a_limit_is_thrown_away_and_the_next_action_is_read() {
        let long = [&b"X: "[..], &vec![b'x'; LINE_BYTES_MAX], b"\r\n\r\nAction: Ping\r\n\r\n"].concat();
        let many = [b"X: y\r\n".repeat(HEADERS_MAX + 1), b"\r\nAction: Ping\r\n\r\n".to_vec()].concat();
        let large = [
            format!("X: {}\r\n", "y".repeat(8000)).repeat(40).into_bytes(),
            b"\r\nAction: Ping\r\n\r\n".to_vec(),
        ]
        .concat();
        for (what, bytes) in
            [("Line too long", long), ("Too many headers", many), ("Message too large", large)]
        {
            let framed = frame(&bytes);
            assert!(
                matches!(framed.first(), Some(Framed::TooLarge(_, flaw)) if *flaw == what),
                "{what}: {framed:?}"
            );
            assert_eq!(framed.get(1), Some(&action(&[("Action", "Ping")])), "{what}");
        }
    }

    #[test]
    fn no_name_or_value_can_end_a_line_or_a_message() {
        for hostile in [
            "a\r\n\r\nEvent: Fake",
            "\n",
            "\r",
            "x\0y",
            "\u{85}",
            "a\u{2028}Event: Fake",
            "a\u{2029}Event: Fake",
            "\u{1b}[2J",
            "a\r\nAction: Login",
        ] {
            let mut out = String::new();
            Message::event("UserEvent", Some(hostile), &mut out).field(hostile, hostile).end();
            assert_eq!(out.matches("\r\n").count(), 4, "{hostile:?}: {out:?}");
            let inner = out.replace("\r\n", "");
            assert!(!inner.contains(|c: char| c.is_control() || "\u{2028}\u{2029}".contains(c)), "{out:?}");
        }
    }
}
