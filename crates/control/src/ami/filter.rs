//! Event filters of a user: `eventfilter=` and the action `Filter`.

use dialplan::ere::{BadPattern, Matcher};
use std::cell::Cell;

use store::config::manager::{EventFilter, FilterMethod};

use super::events::Event;

/// Filters one session may have: each is tried on every event.
pub(crate) const FILTERS_MAX: usize = 64;

/// Patterns that let events through or hold them back.
#[derive(Default)]
pub(crate) struct Filters {
    list: Vec<Filter>,
}

/// One of them, its expression compiled.
struct Filter {
    rule: EventFilter,
    pattern: Option<Matcher>,
    /// Its pattern has taken more than its budget for one event: it takes no more work, and holds events back.
    is_spent: Cell<bool>,
}

impl Filter {
    fn new(rule: EventFilter) -> Result<Self, BadPattern> {
        let pattern = match rule.method {
            FilterMethod::Regex => Some(Matcher::new(&rule.text)?),
            _ => None,
        };
        Ok(Self { rule, pattern, is_spent: Cell::new(false) })
    }
    fn matches(&self, name: &str, event: &str) -> bool {
        if self.rule.name.as_ref().is_some_and(|wanted| !wanted.eq_ignore_ascii_case(name)) {
            return false;
        }
        match &self.rule.header {
            None => self.compares(event),
            Some(header) => {
                let lines = event.split("\r\n").filter_map(|line| line.split_once(": "));
                let mut values = lines.filter(|(key, _)| key.eq_ignore_ascii_case(header));
                values.any(|(_, value)| self.compares(value))
            }
        }
    }
    fn compares(&self, value: &str) -> bool {
        let text = self.rule.text.as_str();
        match self.rule.method {
            FilterMethod::Regex => self.pattern.as_ref().is_some_and(|pattern| self.finds(pattern, value)),
            FilterMethod::Exact => value == text,
            FilterMethod::StartsWith => value.starts_with(text),
            FilterMethod::EndsWith => value.ends_with(text),
            FilterMethod::Contains => value.contains(text),
            FilterMethod::None => true,
        }
    }
}

impl Filter {
    /// Whether the pattern is in the value. One that has gone beyond its budget is in what the filter excludes, and in
    /// nothing that it would let through.
    fn finds(&self, pattern: &Matcher, value: &str) -> bool {
        if !self.is_spent.get() {
            pattern.renew();
            match pattern.matches(value) {
                Ok(found) => return found,
                Err(_) => self.is_spent.set(true),
            }
        }
        self.rule.excludes
    }
}

impl Filters {
    /// Adds one that looks at the whole event; a leading `!` holds back what it matches.
    pub fn add(&mut self, text: &str) -> Result<(), BadPattern> {
        let (excludes, text) = text.strip_prefix('!').map_or((false, text), |pattern| (true, pattern));
        self.add_rule(EventFilter { excludes, text: text.to_owned(), ..EventFilter::default() })
    }
    /// Adds one with criteria.
    pub fn add_rule(&mut self, rule: EventFilter) -> Result<(), BadPattern> {
        self.list.push(Filter::new(rule)?);
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
    /// Whether an event goes through: nothing holds it back, and when some filters let through, one of them does.
    pub fn pass(&self, event: &Event) -> bool {
        self.list.is_empty() || self.passes(event.name, &event.text())
    }
    fn passes(&self, name: &str, event: &str) -> bool {
        let held = self.list.iter().any(|filter| filter.rule.excludes && filter.matches(name, event));
        let mut keepers = self.list.iter().filter(|filter| !filter.rule.excludes).peekable();
        !held && (keepers.peek().is_none() || keepers.any(|filter| filter.matches(name, event)))
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
            assert_eq!(set.passes("", event), passes, "{filters:?} {event:?}");
        }
        assert!(Filters::default().add("(").is_err());
    }

    #[test]
    fn a_pattern_that_takes_too_much_work_holds_events_back_and_takes_no_more() {
        let pattern = format!("(a|b)*a{}", "(a|b)".repeat(255));
        let event: String = (0..20_000u32).map(|n| if n * n % 7 < 3 { 'a' } else { 'b' }).collect();
        for text in [pattern.clone(), format!("!{pattern}")] {
            let mut set = Filters::default();
            set.add(&text).unwrap();
            let passes = (0..3).map(|_| set.passes("", &event)).collect::<Vec<_>>();
            if set.list.iter().any(|filter| filter.is_spent.get()) {
                assert_eq!(passes, [false; 3], "{text}");
            }
        }
    }

    #[test]
    fn criteria_look_at_the_name_of_an_event_or_one_header_of_it() {
        const EVENT: &str = "Event: Hangup\r\nChannel: PJSIP/6001-1\r\nCause: 16\r\n";
        for (criteria, text, passes) in [
            ("name(Hangup),method(none)", "", true),
            ("name(Newexten),method(none)", "", false),
            ("action(exclude),name(Hangup),method(none)", "", false),
            ("header(Channel),method(starts_with)", "PJSIP/", true),
            ("header(Channel),method(starts_with)", "Local/", false),
            ("eventfilter(name(Hangup),header(Cause),method(exact))", "16", true),
            ("header(Cause),method(exact)", "1", false),
            ("header(Channel),method(ends_with)", "-1", true),
            ("header(Channel),method(startsWith)", "PJSIP/", true),
            ("header(Channel),method(endsWith)", "-2", false),
            ("header(Channel),method(contains)", "6001", true),
            ("header(Channel)", "^PJSIP/6...-", true),
            ("header(Nothing),method(none)", "", false),
            ("", "Cause: 1[0-9]", true),
        ] {
            let mut set = Filters::default();
            set.add_rule(EventFilter::parse(criteria, text).unwrap()).unwrap();
            assert_eq!(set.passes("Hangup", EVENT), passes, "{criteria} {text}");
        }
        for (criteria, text) in
            [("method(none)", ""), ("name", ""), ("what(x)", ""), ("", "("), ("name(a", "")]
        {
            assert!(EventFilter::parse(criteria, text).is_err(), "{criteria}");
        }
    }
}
