//! Skills with levels: what callers need, and what members have.
//!
//! A caller who needs `german=3&sales` gets members who have `german` of level 3 at least and `sales` of level 1 at least.
//! Among them the strategy and penalties choose as ever. `skillchange` in queuerules.conf changes what is needed over time.

use core::fmt;
use core::time::Duration;

use crate::Shift;

/// Most skills of one member or caller.
pub const SKILLS_MAX: usize = 32;
/// Longest name of a skill, bytes.
const NAME_BYTES_MAX: usize = 40;
/// Highest level.
pub const LEVEL_MAX: u32 = 100;

/// Skills by name, each once, with their levels from 1 on.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Skills(Vec<(String, u32)>);

impl Skills {
    /// Reads `german=3&sales`: names without blanks, `=` and `&`, in any case; without a level it is 1, and one of level 0
    /// is none. The last of a name counts. `Err` names the part that is no skill, or the first one too many.
    pub fn parse(text: &str) -> Result<Self, &str> {
        let mut skills = Self::default();
        for part in text.split('&').map(str::trim).filter(|part| !part.is_empty()) {
            let (name, level) = part.split_once('=').unwrap_or((part, "1"));
            let (name, level) = (name.trim(), level.trim().parse().ok().filter(|level| *level <= LEVEL_MAX));
            let is_name = !name.is_empty()
                && name.len() <= NAME_BYTES_MAX
                && name.chars().all(|c| c.is_alphanumeric() || "_-.".contains(c));
            let level = level.filter(|_| is_name).ok_or(part)?;
            skills.set(&name.to_lowercase(), level);
            if skills.0.len() > SKILLS_MAX {
                return Err(part);
            }
        }
        Ok(skills)
    }
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
    /// The level of a skill, by its name in lower case; 0 without it.
    pub fn level(&self, name: &str) -> u32 {
        let place = self.0.binary_search_by(|(own, _)| own.as_str().cmp(name));
        place.ok().and_then(|place| self.0.get(place)).map_or(0, |(_, level)| *level)
    }
    /// Whether somebody who has these meets what is needed.
    pub fn meet(&self, needed: &Self) -> bool {
        needed.0.iter().all(|(name, level)| self.level(name) >= *level)
    }
    fn set(&mut self, name: &str, level: u32) {
        match self.0.binary_search_by(|(own, _)| own.as_str().cmp(name)) {
            Ok(place) if level == 0 => drop(self.0.remove(place)),
            Ok(place) => self.0.iter_mut().skip(place).take(1).for_each(|own| own.1 = level),
            Err(_) if level == 0 => {}
            Err(place) => self.0.insert(place, (name.to_owned(), level)),
        }
    }
}

impl fmt::Display for Skills {
    /// As [`Skills::parse`] reads it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, (name, level)) in self.0.iter().enumerate() {
            let and = if place > 0 { "&" } else { "" };
            write!(f, "{and}{name}={level}")?;
        }
        Ok(())
    }
}

/// One line of a rule: `skillchange => seconds,[skill=]change`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkillChange {
    /// After this long in the queue.
    pub after: Duration,
    /// The skill, in lower case; `None`: all that the caller needs.
    pub skill: Option<String>,
    /// How the level that is needed changes.
    pub level: Shift,
}

impl SkillChange {
    /// Reads what stands after `skillchange =>`; `None` when it is no such line.
    pub fn parse(text: &str) -> Option<Self> {
        let (after, change) = text.split_once(',')?;
        let after = Duration::from_secs(after.trim().parse::<u32>().ok()?.into());
        let (skill, level) = match change.split_once('=') {
            Some((skill, level)) => (Some(skill.trim()).filter(|skill| !skill.is_empty()), level),
            None => (None, change),
        };
        if change.contains('=') && skill.is_none() {
            return None;
        }
        let level = Shift::parse(level).filter(|level| *level != Shift::Keep)?;
        Some(Self { after, skill: skill.map(str::to_lowercase), level })
    }
    /// What is needed after it. A skill that is not needed before may be needed from here on.
    pub fn apply(&self, needed: &Skills) -> Skills {
        let mut after = needed.clone();
        let mut change = |name: &str| {
            let level = self.level.apply(Some(needed.level(name))).unwrap_or(0);
            if after.0.len() < SKILLS_MAX || needed.level(name) > 0 {
                after.set(name, level.min(LEVEL_MAX));
            }
        };
        match &self.skill {
            Some(name) => change(name),
            None => needed.0.iter().for_each(|(name, _)| change(name)),
        }
        after
    }
}

impl fmt::Display for SkillChange {
    /// What changes, as the file says it, without the time.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(skill) = &self.skill {
            write!(f, "{skill}=")?;
        }
        match self.level {
            Shift::Keep => Ok(()),
            Shift::To(level) => write!(f, "{level}"),
            Shift::By(by) => write!(f, "{by:+}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn skills(text: &str) -> Skills {
        Skills::parse(text).unwrap()
    }

    #[test]
    fn skills_are_names_with_levels() {
        for (text, expected) in [
            ("", Ok("")),
            ("sales", Ok("sales=1")),
            (" German = 3 & sales&", Ok("german=3&sales=1")),
            ("b=2&a=1&b=5", Ok("a=1&b=5")),
            ("a=0", Ok("")),
            ("a&a=0", Ok("")),
            ("Größe=2", Ok("größe=2")),
            ("a=-1", Err("a=-1")),
            ("a=101", Err("a=101")),
            ("a=high", Err("a=high")),
            ("=3", Err("=3")),
            ("two words", Err("two words")),
        ] {
            assert_eq!(
                Skills::parse(text).map(|skills| skills.to_string()),
                expected.map(str::to_owned),
                "{text}"
            );
        }
        let many: Vec<String> = (0..=SKILLS_MAX).map(|number| format!("s{number}")).collect();
        assert_eq!(Skills::parse(&many.join("&")), Err("s32"));
        assert!(Skills::parse(&"x".repeat(41)).is_err());
    }

    #[test]
    fn a_member_meets_what_is_needed_by_every_level() {
        for (has, needs, expected) in [
            ("", "", true),
            ("german=3", "", true),
            ("", "german", false),
            ("german=3", "german=3", true),
            ("german=2", "german=3", false),
            ("german=5&sales", "german=3&sales", true),
            ("german=5", "german=3&sales", false),
        ] {
            assert_eq!(skills(has).meet(&skills(needs)), expected, "{has} for {needs}");
        }
    }

    #[test]
    fn a_line_of_a_rule_changes_what_is_needed() {
        let before = skills("german=3&sales=2");
        for (text, expected) in [
            ("30,-1", Some((30, "german=2&sales=1", "-1"))),
            ("30, german=-1", Some((30, "german=2&sales=2", "german=-1"))),
            ("60,german=0", Some((60, "sales=2", "german=0"))),
            ("60,0", Some((60, "", "0"))),
            ("60,-9", Some((60, "", "-9"))),
            ("5,French=+2", Some((5, "french=2&german=3&sales=2", "french=+2"))),
            ("5,german=+200", Some((5, "german=100&sales=2", "german=+200"))),
            ("5", None),
            ("5,", None),
            ("5,german=", None),
            ("5,=2", None),
            ("soon,-1", None),
        ] {
            let read = SkillChange::parse(text);
            let applied =
                read.as_ref().map(|change| (change.after.as_secs(), change.apply(&before).to_string()));
            let expected = expected.map(|(after, skills, shown)| {
                assert_eq!(read.as_ref().map(ToString::to_string).as_deref(), Some(shown), "{text}");
                (after, skills.to_owned())
            });
            assert_eq!(applied, expected, "{text}");
        }
    }
}
