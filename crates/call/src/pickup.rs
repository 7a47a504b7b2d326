//! Call pickup: who may take a call that rings at somebody else's phone, and taking it.
//!
//! Whoever picks up changes places with the leg that rings ([`Exchange`]): the Dial or queue that waits for an answer has
//! one, from another phone, and knows of nothing else.

use std::collections::BTreeSet;
use std::fmt;
use std::rc::Rc;

use base::{Cause, ChannelId};

use crate::{ChanState, Core, Exchange, Notice};

/// Groups with numbers: 0 to 63, as in the field.
const NUMBERS: u32 = 64;
/// Most groups by name of one channel; more than the departments of any office.
pub const NAMES_MAX: usize = 256;

/// Groups, by number and by name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Groups {
    numbers: u64,
    names: BTreeSet<String>,
}

impl Groups {
    /// Reads `1,3-5`; `Err` is the part that is no number from 0 to 63.
    pub fn set_numbers(&mut self, text: &str) -> Result<(), String> {
        let mut numbers = 0;
        for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let number = |text: &str| text.trim().parse::<u32>().ok().filter(|number| *number < NUMBERS);
            let (first, last) = number(first).zip(number(last)).ok_or_else(|| part.to_owned())?;
            numbers |= (first..=last).fold(0, |all, number| all | 1 << number);
        }
        self.numbers = numbers;
        Ok(())
    }
    /// Reads names parted by commas.
    pub fn set_names(&mut self, text: &str) {
        let names = text.split(',').map(str::trim).filter(|name| !name.is_empty());
        self.names = names.take(NAMES_MAX).map(str::to_owned).collect();
    }
    /// Whether a group is in both.
    pub fn meets(&self, other: &Self) -> bool {
        self.numbers & other.numbers != 0 || !self.names.is_disjoint(&other.names)
    }
    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.numbers == 0 && self.names.is_empty()
    }
    /// Those with numbers: `1, 3, 4`.
    pub fn numbers(&self) -> String {
        let numbers: Vec<String> = (0..NUMBERS)
            .filter(|number| self.numbers & (1 << number) != 0)
            .map(|number| number.to_string())
            .collect();
        numbers.join(", ")
    }
    /// Those with numbers as bits of one: group 0 is the lowest.
    pub fn bits(&self) -> u64 {
        self.numbers
    }
    /// Those with names: `sales,support`.
    pub fn names(&self) -> String {
        self.names.iter().map(String::as_str).collect::<Vec<_>>().join(",")
    }
}

impl fmt::Display for Groups {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts = [self.numbers(), self.names()];
        f.write_str(
            &parts.iter().filter(|part| !part.is_empty()).map(String::as_str).collect::<Vec<_>>().join(", "),
        )
    }
}

/// In which groups calls of a channel ring, and calls of which groups it may take.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PickupGroups {
    /// `call_group`, `named_call_group`.
    pub call: Groups,
    /// `pickup_group`, `named_pickup_group`.
    pub pickup: Groups,
}

/// A call that rings, as it is looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ringing<'a> {
    /// In a group that the one who looks may take calls of.
    InGroups(&'a PickupGroups),
    /// Because somebody dialled this extension: context, extension.
    At(&'a str, &'a str),
    /// With this value of PICKUPMARK.
    Marked(&'a str),
    /// With this name or UNIQUEID, or of this device: `PJSIP/6001`.
    Named(&'a str),
}

impl Core {
    /// Whether somebody rings at a channel and it could be answered by another.
    pub fn can_be_picked_up(&self, id: ChannelId) -> bool {
        let Some(channel) = self.get(id) else { return false };
        let rings = channel.state == ChanState::Ringing || channel.rung_at.is_some();
        let goes_on = channel.hangup.is_none() && channel.goto.is_none() && !channel.picked_up;
        channel.outgoing && !channel.has_pbx && channel.state != ChanState::Up && rings && goes_on
    }
    /// The call that has rung longest of those that are meant, other than those of `by` itself.
    pub fn find_ringing(&self, by: ChannelId, meant: Ringing<'_>) -> Option<ChannelId> {
        let found = self.channels().filter(|channel| {
            let is_meant = match meant {
                Ringing::InGroups(groups) => groups.pickup.meets(&channel.pickup.call),
                Ringing::At(context, exten) => {
                    channel.rung_at.as_ref().is_some_and(|at| at.context == context && at.exten == exten)
                }
                Ringing::Marked(mark) => channel.vars.get_name("PICKUPMARK") == Some(mark),
                Ringing::Named(name) => {
                    let of_device = |rest: &str| rest.starts_with('-');
                    channel.name.eq_ignore_ascii_case(name)
                        || &*channel.uniqueid == name
                        || channel.name.strip_prefix(name).is_some_and(of_device)
                }
            };
            is_meant && channel.id != by && self.can_be_picked_up(channel.id)
        });
        // Ids are used again; the number in UNIQUEID is not told from outside. Age decides, then the place in the slab.
        found.min_by_key(|channel| (channel.created, channel.id)).map(|channel| channel.id)
    }
    /// Lets an answered channel take a call that rings elsewhere, at the next turn. False when that does not ring any more.
    pub fn pick_up(&mut self, by: ChannelId, target: ChannelId) -> bool {
        self.take_ringing(by, target, false, Cause::ANSWERED_ELSEWHERE)
    }
    /// The same for one that has dialled the code for it: nobody is told that it was answered elsewhere.
    pub fn pick_up_by_code(&mut self, by: ChannelId, target: ChannelId) -> bool {
        self.take_ringing(by, target, false, Cause::NORMAL_CLEARING)
    }
    /// The same for a channel that was made to take it and runs nothing.
    pub fn pick_up_by_new(&mut self, by: ChannelId, target: ChannelId) -> bool {
        self.take_ringing(by, target, true, Cause::ANSWERED_ELSEWHERE)
    }
    fn take_ringing(&mut self, by: ChannelId, target: ChannelId, is_fresh: bool, cause: Cause) -> bool {
        if !self.can_be_picked_up(target) {
            return false;
        }
        let notice = self
            .snapshot(by)
            .zip(self.snapshot(target))
            .map(|(channel, target)| Notice::Pickup { channel: Box::new(channel), target: Box::new(target) });
        if let Some(channel) = self.get_mut(target) {
            channel.picked_up = true;
        }
        self.request_exchange(Exchange {
            place: target,
            newcomer: by,
            leaving: Vec::new(),
            is_fresh,
            mirrored: false,
            answers: true,
            notice,
            cause,
        });
        true
    }
    /// Whether a number that a phone dials picks up what rings in its groups (`pickupexten`).
    pub fn is_pickup_code(&self, exten: &str) -> bool {
        let code = &self.settings.features.pickup_exten;
        !code.is_empty() && code == exten
    }
    /// [`Core::reach`] for numbers that phones dial.
    pub fn reach_of_call(&self, context: &str, exten: &str, caller: &str) -> crate::Reach {
        if self.is_pickup_code(exten) {
            crate::Reach::Whole
        } else {
            (self.reach)(self, context, exten, caller)
        }
    }
}

/// Groups that many channels share until one changes its own.
pub type SharedGroups = Rc<PickupGroups>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_read_as_numbers_ranges_and_names() {
        for (text, expected) in [("", ""), ("1", "1"), ("1, 3-5,63", "1, 3, 4, 5, 63"), ("5-4", "")] {
            let mut groups = Groups::default();
            assert_eq!(groups.set_numbers(text), Ok(()), "{text}");
            assert_eq!(groups.numbers(), expected, "{text}");
        }
        for text in ["64", "1,x", "-1", "1-64"] {
            let mut groups = Groups::default();
            assert!(groups.set_numbers(text).is_err() && groups.is_empty(), "{text}");
        }
        let mut groups = Groups::default();
        groups.set_names("support, sales,,sales");
        assert_eq!(
            (groups.names().as_str(), groups.to_string().as_str()),
            ("sales,support", "sales,support")
        );
    }

    #[test]
    fn one_group_in_common_is_enough() {
        let of = |numbers: &str, names: &str| {
            let mut groups = Groups::default();
            groups.set_numbers(numbers).unwrap();
            groups.set_names(names);
            groups
        };
        for (a, b, expected) in [
            (of("1,2", ""), of("2", ""), true),
            (of("1", ""), of("2", ""), false),
            (of("0", ""), of("0", ""), true),
            (of("1", "sales"), of("2", "sales"), true),
            (of("", "sales"), of("", "Sales"), false),
            (of("", ""), of("", ""), false),
        ] {
            assert_eq!((a.meets(&b), b.meets(&a)), (expected, expected), "{a} {b}");
        }
    }
}
