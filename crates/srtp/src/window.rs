//! Which packet indices were seen (RFC 3711 §3.3.2).

use crate::Refused;

/// How far back the window reaches, packets; RFC 3711 asks for 64 at least. Two and a half seconds of speech.
pub(crate) const WINDOW: u64 = 128;

/// The highest index that was seen, and which of those before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Window {
    highest: u64,
    /// Bit n: the index n below the highest was seen. Zero: none was.
    seen: u128,
}

impl Window {
    /// The highest index; `None` before the first.
    pub(crate) const fn highest(&self) -> Option<u64> {
        if self.seen == 0 { None } else { Some(self.highest) }
    }
    /// Whether a packet of this index is one more.
    pub(crate) const fn judge(&self, index: u64) -> Result<(), Refused> {
        if self.seen == 0 || index > self.highest {
            return Ok(());
        }
        let back = self.highest - index;
        if back >= WINDOW {
            return Err(Refused::TooOld);
        }
        if self.seen >> back & 1 != 0 { Err(Refused::Replayed) } else { Ok(()) }
    }
    /// Marks it; only for packets that were authenticated.
    pub(crate) const fn mark(&mut self, index: u64) {
        if self.seen == 0 || index > self.highest {
            let ahead = if self.seen == 0 { WINDOW } else { index - self.highest };
            self.seen = if ahead >= WINDOW { 1 } else { self.seen << ahead | 1 };
            self.highest = index;
        } else if self.highest - index < WINDOW {
            self.seen |= 1 << (self.highest - index);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    #[test]
    fn rfc3711_3_3_2_each_index_passes_once_and_none_from_before_the_window() {
        let mut window = Window::default();
        for (index, expected) in [
            (1000, Ok(())),
            (1000, Err(Refused::Replayed)),
            (873, Ok(())),
            (872, Err(Refused::TooOld)),
            (873, Err(Refused::Replayed)),
            (1127, Ok(())),
            (1000, Err(Refused::Replayed)),
            (999, Err(Refused::TooOld)),
            (1 << 47, Ok(())),
            (1127, Err(Refused::TooOld)),
            ((1 << 47) - 1, Ok(())),
        ] {
            assert_eq!(window.judge(index), expected, "{index}");
            if expected.is_ok() {
                window.mark(index);
            }
        }
    }

    proptest! {
        #[test]
        fn the_window_says_what_a_set_of_all_indices_says(indices in proptest::collection::vec(0_u64..600, 1..300)) {
            let (mut window, mut all) = (Window::default(), BTreeSet::new());
            for index in indices {
                let highest = all.last().copied();
                let expected = if highest.is_some_and(|highest: u64| highest >= index + WINDOW) {
                    Err(Refused::TooOld)
                } else if all.contains(&index) {
                    Err(Refused::Replayed)
                } else {
                    Ok(())
                };
                prop_assert_eq!(window.judge(index), expected);
                if expected.is_ok() {
                    all.insert(index);
                    window.mark(index);
                }
            }
        }
    }
}
