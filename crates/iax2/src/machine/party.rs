//! Who is talked to, told on a call that goes on (connected line).
//!
//! RFC 5456 has no word for it, and what the field sends as this control frame is nowhere described. So it goes only
//! between two sides that have both said that they know this form: a variable in NEW and in ACCEPT, which nobody else
//! looks for. What is told is then a control frame with the elements that NEW has of its caller.

use super::orders::Refused;
use super::out::{Event, Out};
use super::{Machine, Role};
use crate::frame::{Control, Element, Elements, Fields, Kind, write_element};
use base::{Instant, Place};

/// The variable by which a side says that it knows this form; what stands behind it is a [`Lines`].
const VARIABLE: &[u8] = b"STROWGER_CONNECTED=";
/// Most elements of NEW or ACCEPT that are looked at for it.
const ELEMENTS_MAX: usize = 256;

/// Whether changes of who is talked to are told, and taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Lines {
    /// They are told.
    pub send: bool,
    /// They are taken.
    pub take: bool,
}

impl Lines {
    /// Says it to the other side; nothing when neither is so.
    pub(super) fn write(self, data: &mut Vec<u8>) {
        let word = match (self.send, self.take) {
            (false, false) => return,
            (true, false) => "send",
            (false, true) => "take",
            (true, true) => "both",
        };
        write_element(&Element::Variable(&[VARIABLE, word.as_bytes()].concat()), data);
    }
    /// What the elements of NEW or ACCEPT say of their sender.
    pub(super) fn said(elements: &[u8]) -> Self {
        let mut words = Elements::new(elements).take(ELEMENTS_MAX).filter_map(|element| match element {
            Element::Variable(pair) => pair.strip_prefix(VARIABLE),
            _ => None,
        });
        match words.next() {
            Some(b"send") => Self { send: true, take: false },
            Some(b"take") => Self { send: false, take: true },
            Some(b"both") => Self { send: true, take: true },
            Some(_) | None => Self::default(),
        }
    }
    /// What goes on between us and a side that has said `other`: we tell what it takes, and take what it tells.
    pub(super) const fn with(self, other: Self) -> Self {
        Self { send: self.send && other.take, take: self.take && other.send }
    }
}

/// Whether a variable of NEW is meant for the machine alone.
pub(super) fn is_own_variable(pair: &[u8]) -> bool {
    pair.starts_with(VARIABLE)
}

/// Who is talked to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Connected<'a> {
    /// Its number.
    pub number: &'a [u8],
    /// Its name.
    pub name: &'a [u8],
    /// Whether both may be shown (RFC 5456 §8.6.29).
    pub presentation: u8,
}

/// The event of a frame that tells it; `None` for one that is not whole.
pub(super) fn told(leg: Place, data: &[u8]) -> Option<Event> {
    let fields = Fields::collect(data)?;
    Some(Event::Connected {
        leg,
        number: fields.calling.unwrap_or_default().to_vec(),
        name: fields.name.unwrap_or_default().to_vec(),
        presentation: fields.presentation.unwrap_or(0),
    })
}

impl Machine {
    /// Tells who is talked to from here on; `false` when the other side does not take it, which is no fault.
    ///
    /// # Errors
    /// As [`Machine::control`].
    pub fn connected(
        &mut self,
        now: Instant,
        leg: Place,
        party: &Connected<'_>,
        out: &mut Out,
    ) -> Result<bool, Refused> {
        let takes = match self.legs.get(leg).map(|leg| &leg.role) {
            Some(Role::Call(call)) if call.is_accepted() => call.lines.send,
            Some(_) => return Err(Refused::WrongState),
            None => return Err(Refused::NoLeg),
        };
        if takes {
            let mut data = Vec::new();
            write_element(&Element::CallingNumber(party.number), &mut data);
            write_element(&Element::CallingName(party.name), &mut data);
            write_element(&Element::CallingPresentation(party.presentation), &mut data);
            self.say(now, leg, Kind::Control(Control::CONNECTED_LINE), &data, out)?;
        }
        Ok(takes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_side_says_what_it_does_with_connected_lines_and_hears_nothing_else_for_it() {
        for send in [false, true] {
            for take in [false, true] {
                let (lines, mut data) = (Lines { send, take }, Vec::new());
                write_element(&Element::Variable(b"CITY=Ulm"), &mut data);
                lines.write(&mut data);
                assert_eq!(Lines::said(&data), lines);
            }
        }
        for (name, pair) in [
            ("nothing", &b""[..]),
            ("another word", b"STROWGER_CONNECTED=all"),
            ("no word", b"STROWGER_CONNECTED="),
            ("more than a word", b"STROWGER_CONNECTED=both "),
            ("another name", b"XSTROWGER_CONNECTED=both"),
        ] {
            let mut data = Vec::new();
            write_element(&Element::Variable(pair), &mut data);
            assert_eq!(Lines::said(&data), Lines::default(), "{name}");
        }
    }
}
