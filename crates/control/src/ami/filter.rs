//! Event filters of a user: `eventfilter=` and the action `Filter`.

use dialplan::ere::{BadPattern, Regex};

/// Filters one session may have: each is tried on every event.
pub(crate) const FILTERS_MAX: usize = 64;

/// Patterns that let events through or hold them back.
#[derive(Default)]
pub(crate) struct Filters {
    list: Vec<(bool, Regex)>,
}

impl Filters {
    /// Adds one; a leading `!` holds back what it matches.
    pub fn add(&mut self, text: &str) -> Result<(), BadPattern> {
        let (keep, pattern) = text.strip_prefix('!').map_or((true, text), |pattern| (false, pattern));
        self.list.push((keep, Regex::new(pattern)?));
        Ok(())
    }
    /// How many there are.
    pub fn len(&self) -> usize {
        self.list.len()
    }
    /// Takes the place of the first `old` filters.
    pub fn replace_first(&mut self, old: usize, new: Self) {
        self.list.splice(..old.min(self.list.len()), new.list);
    }
    /// Whether an event, as it is written, goes through: nothing holds it back, and when some filters let through, one
    /// of them does.
    pub fn passes(&self, event: &str) -> bool {
        let held = self.list.iter().any(|(keep, pattern)| !keep && pattern.find(event).is_some());
        let mut keepers = self.list.iter().filter(|(keep, _)| *keep).peekable();
        !held && (keepers.peek().is_none() || keepers.any(|(_, pattern)| pattern.find(event).is_some()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exclusion_wins_and_inclusion_is_required_once_there_is_one() {
        for (filters, event, passes) in [
            (&[][..], "Event: Newchannel", true),
            (&["Event: New"], "Event: Newchannel", true),
            (&["Event: New"], "Event: Hangup", false),
            (&["!Event: New"], "Event: Newchannel", false),
            (&["!Event: New"], "Event: Hangup", true),
            (&["Event: New", "!Channel: Local/"], "Event: Newchannel\r\nChannel: Local/x", false),
            (&["Event: New", "Event: Hangup"], "Event: Hangup", true),
        ] {
            let mut set = Filters::default();
            filters.iter().for_each(|text| set.add(text).unwrap());
            assert_eq!(set.passes(event), passes, "{filters:?} {event:?}");
        }
        assert!(Filters::default().add("(").is_err());
    }
}
