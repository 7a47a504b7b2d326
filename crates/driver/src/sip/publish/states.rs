//! The body in which servers tell each other what their devices do and what is in their mailboxes: one state a line.
//!
//! What Asterisk sends in its place is documented nowhere. This body has a type of its own, so that neither takes the
//! other's for its own.

use call::{DeviceState, Mailbox};

/// Its type and subtype.
pub(super) const KIND: (&str, &str) = ("application", "x-strowger-state");
/// The same as Content-Type.
pub(super) const CONTENT_TYPE: &str = "application/x-strowger-state";
/// Bytes of states in one request, so that it fits a datagram of an Ethernet with room for its headers.
pub(super) const BYTES_MAX: usize = 800;

/// One line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Line<'a> {
    /// `device INUSE PJSIP/6001`
    Device(&'a str, DeviceState),
    /// `mailbox 2/5 6001@default`
    Mailbox(&'a str, Mailbox),
    /// `refresh`: tell me all of yours.
    Refresh,
}

impl<'a> Line<'a> {
    fn parse(line: &'a str) -> Option<Self> {
        if line == "refresh" {
            return Some(Self::Refresh);
        }
        let (what, rest) = line.split_once(' ')?;
        let (state, name) = rest.split_once(' ')?;
        let is_plain = !name.trim().is_empty() && name.trim() == name && !name.chars().any(char::is_control);
        match what {
            _ if !is_plain => None,
            "device" => Some(Self::Device(name, DeviceState::parse(state)?)),
            "mailbox" => {
                let (new, old) = state.split_once('/')?;
                Some(Self::Mailbox(name, Mailbox { new: new.parse().ok()?, old: old.parse().ok()? }))
            }
            _ => None,
        }
    }
}

/// The lines of a body; `None` when one of them cannot be read.
pub(super) fn read(body: &[u8]) -> Option<Vec<Line<'_>>> {
    let text = core::str::from_utf8(body).ok()?;
    text.lines().filter(|line| !line.is_empty()).map(Line::parse).collect()
}

/// The line of a device.
pub(super) fn of_device(device: &str, state: DeviceState) -> String {
    format!("device {} {}\r\n", state.name(), plain(device))
}

/// The line of a mailbox.
pub(super) fn of_mailbox(mailbox: &str, messages: Mailbox) -> String {
    format!("mailbox {}/{} {}\r\n", messages.new, messages.old, plain(mailbox))
}

/// The line that asks for all states.
pub(super) const REFRESH: &str = "refresh\r\n";

/// A name as a line can hold it.
fn plain(name: &str) -> String {
    let name: String = name.chars().filter(|c| !c.is_control()).collect();
    name.trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_are_read_as_they_were_written() {
        let mailbox = Mailbox { new: 2, old: 5 };
        let body = [
            of_device("PJSIP/6001", DeviceState::InUse),
            of_device("Custom:two words", DeviceState::RingInUse),
            of_mailbox("6001@default", mailbox),
            REFRESH.to_owned(),
        ];
        let body = body.concat();
        let expected = vec![
            Line::Device("PJSIP/6001", DeviceState::InUse),
            Line::Device("Custom:two words", DeviceState::RingInUse),
            Line::Mailbox("6001@default", mailbox),
            Line::Refresh,
        ];
        assert_eq!(read(body.as_bytes()), Some(expected));
        assert_eq!(
            read(of_device("PJSIP/1\r\nrefresh", DeviceState::Busy).as_bytes()).map(|l| l.len()),
            Some(1)
        );
        assert_eq!(read(b"\r\n"), Some(vec![]), "nothing to tell");
    }

    #[test]
    fn a_body_with_one_line_that_cannot_be_read_is_none() {
        for body in [
            &b"device INUSE"[..],
            b"device INUSE ",
            b"device ASLEEP PJSIP/1",
            b"device INUSE  PJSIP/1",
            b"mailbox 1 6001@default",
            b"mailbox 1/-1 6001@default",
            b"mailbox 1/99999999999 6001@default",
            b"mailbox 1/2 \x07",
            b"weather fine here",
            b"refresh all",
            b"device INUSE PJSIP/1\r\n{\"type\":1}",
            b"device INUSE \xff",
        ] {
            assert_eq!(read(body), None, "{}", body.escape_ascii());
        }
    }
}
