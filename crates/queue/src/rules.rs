//! Penalties over time (`queuerules.conf`): which members a caller may get changes while it waits.

use core::time::Duration;

/// The bounds of one caller. A bound that is `None` does not hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Bounds {
    /// `QUEUE_MAX_PENALTY`: members above it are not called.
    pub max: Option<u32>,
    /// `QUEUE_MIN_PENALTY`: members below it are not called.
    pub min: Option<u32>,
    /// `QUEUE_RAISE_PENALTY`: members below it are treated as if they had it.
    pub raise: Option<u32>,
}

impl Bounds {
    /// The bounds that three variables of a channel say; what is no number says nothing.
    pub fn read(max: &str, min: &str, raise: &str) -> Self {
        let number = |text: &str| text.trim().parse().ok();
        Self { max: number(max), min: number(min), raise: number(raise) }
    }
    /// The penalty of a member as it counts for this caller; `None`: not for it.
    pub fn admit(self, penalty: u32) -> Option<u32> {
        let raised = self.raise.map_or(penalty, |raise| penalty.max(raise));
        let fits = self.max.is_none_or(|max| raised <= max) && self.min.is_none_or(|min| raised >= min);
        fits.then_some(raised)
    }
}

/// How one bound changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Shift {
    /// It stays.
    #[default]
    Keep,
    /// It becomes this.
    To(u32),
    /// It grows by this (shrinks, below zero).
    By(i32),
}

impl Shift {
    /// Reads `5`, `+5` or `-5`; nothing keeps it. `None` for other text.
    pub fn parse(text: &str) -> Option<Self> {
        match text.trim() {
            "" => Some(Self::Keep),
            text if text.starts_with(['+', '-']) => text.parse().ok().map(Self::By),
            text => text.parse().ok().map(Self::To),
        }
    }
    pub(crate) fn apply(self, bound: Option<u32>) -> Option<u32> {
        match self {
            Self::Keep => bound,
            Self::To(value) => Some(value),
            Self::By(by) => Some(bound.unwrap_or(0).saturating_add_signed(by)),
        }
    }
}

/// One line of a rule: `penaltychange => seconds,max[,min[,raise]]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PenaltyChange {
    /// After this long in the queue.
    pub after: Duration,
    /// Changes `QUEUE_MAX_PENALTY`.
    pub max: Shift,
    /// Changes `QUEUE_MIN_PENALTY`.
    pub min: Shift,
    /// Changes `QUEUE_RAISE_PENALTY`.
    pub raise: Shift,
}

impl PenaltyChange {
    /// Reads what stands after `penaltychange =>`; `None` when it is no such line.
    pub fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split(',');
        let after = Duration::from_secs(parts.next()?.trim().parse::<u32>().ok()?.into());
        let mut shift = || Shift::parse(parts.next().unwrap_or_default());
        let change = Self { after, max: shift()?, min: shift()?, raise: shift()? };
        (change.max, change.min, change.raise).ne(&Default::default()).then_some(change)
    }
    /// The bounds after it.
    pub fn apply(&self, bounds: Bounds) -> Bounds {
        Bounds {
            max: self.max.apply(bounds.max),
            min: self.min.apply(bounds.min),
            raise: self.raise.apply(bounds.raise),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_says_when_and_how_bounds_change() {
        let bounds = |max, min, raise| Bounds { max, min, raise };
        let before = bounds(Some(2), None, Some(1));
        for (text, expected) in [
            ("30,+3", Some((30, bounds(Some(5), None, Some(1))))),
            ("60, 10, 5", Some((60, bounds(Some(10), Some(5), Some(1))))),
            ("5,-1,+2,4", Some((5, bounds(Some(1), Some(2), Some(4))))),
            ("5,-9", Some((5, bounds(Some(0), None, Some(1))))),
            ("5,,3", Some((5, bounds(Some(2), Some(3), Some(1))))),
            ("5", None),
            ("", None),
            ("soon,1", None),
            ("5,many", None),
        ] {
            let read = PenaltyChange::parse(text);
            let applied = read.map(|change| (change.after.as_secs(), change.apply(before)));
            assert_eq!(applied, expected, "{text}");
        }
    }

    #[test]
    fn bounds_admit_raise_and_keep_out() {
        for (bounds, penalty, expected) in [
            (Bounds::default(), 7, Some(7)),
            (Bounds { max: Some(5), ..Bounds::default() }, 6, None),
            (Bounds { max: Some(5), ..Bounds::default() }, 5, Some(5)),
            (Bounds { min: Some(3), ..Bounds::default() }, 2, None),
            (Bounds { raise: Some(4), ..Bounds::default() }, 1, Some(4)),
            (Bounds { raise: Some(4), min: Some(3), max: Some(4) }, 1, Some(4)),
            (Bounds { raise: Some(4), max: Some(3), min: None }, 1, None),
        ] {
            assert_eq!(bounds.admit(penalty), expected, "{bounds:?} {penalty}");
        }
        assert_eq!(Bounds::read("3", " ", "x"), Bounds { max: Some(3), min: None, raise: None });
    }
}
