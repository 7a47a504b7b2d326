//! When something applies: the time fields of GotoIfTime, ExecIfTime, IFTIME() and `include =>`.

use crate::env::{Calendar, Env};
use crate::vars::Var;
use crate::zone::Civil;

/// The variable that holds the time that a dialplan is tested with, seconds since 1970; `TESTTIME()` sets it.
pub const TESTTIME: &str = "TESTTIME";

const MINUTES: u32 = 24 * 60;

/// Parsed `times,weekdays,monthdays,months[,zone]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Timing {
    minutes: Vec<(u32, u32)>,
    weekdays: u32,
    days: u32,
    months: u32,
    zone: Box<str>,
}

const WEEKDAYS: &[&str] = &["sun", "mon", "tue", "wed", "thu", "fri", "sat"];
const MONTHS: &[&str] = &["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];

/// A field's members as bits; ranges may wrap, lists are joined with `&`, `*` or nothing is all.
fn bits(field: &str, size: u32, read: impl Fn(&str) -> Option<u32>) -> Result<u32, String> {
    let all = (1u32 << size) - 1;
    let field = field.trim();
    if field.is_empty() || field == "*" {
        return Ok(all);
    }
    let bad = |part: &str| format!("`{part}` is not understood");
    let mut set = 0;
    for part in field.split('&').map(str::trim) {
        if part == "*" {
            return Ok(all);
        }
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let first = read(first.trim()).ok_or_else(|| bad(part))?;
        let last = read(last.trim()).ok_or_else(|| bad(part))?;
        let mut at = first;
        loop {
            set |= 1 << at;
            if at == last {
                break;
            }
            at = (at + 1) % size;
        }
    }
    Ok(set)
}

fn named(names: &[&str], text: &str) -> Option<u32> {
    let at =
        names.iter().position(|name| text.get(..3).is_some_and(|start| start.eq_ignore_ascii_case(name)));
    at.and_then(|at| u32::try_from(at).ok())
}

fn minute(text: &str) -> Option<u32> {
    let (hour, minute) = text.trim().split_once(':')?;
    let (hour, minute) = (hour.parse::<u32>().ok()?, minute.parse::<u32>().ok()?);
    (hour < 24 && minute < 60).then_some(hour * 60 + minute)
}

impl Timing {
    /// Reads the fields; missing ones count as `*`. The error says which part is wrong.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut fields = text.splitn(5, ',').map(str::trim);
        let mut next = || fields.next().unwrap_or("");
        let times = next();
        let mut minutes = Vec::new();
        if times.is_empty() || times == "*" {
            minutes.push((0, MINUTES - 1));
        } else {
            for part in times.split('&').map(str::trim) {
                if part == "*" {
                    minutes.push((0, MINUTES - 1));
                    continue;
                }
                let (first, last) = part.split_once('-').unwrap_or((part, part));
                let range = minute(first).zip(minute(last));
                minutes.push(range.ok_or_else(|| format!("time `{part}` is not understood"))?);
            }
        }
        let weekdays = bits(next(), 7, |text| named(WEEKDAYS, text))?;
        let days = bits(next(), 31, |text| text.parse::<u32>().ok()?.checked_sub(1).filter(|&day| day < 31))?;
        let months = bits(next(), 12, |text| {
            named(MONTHS, text)
                .or_else(|| text.parse::<u32>().ok()?.checked_sub(1).filter(|&month| month < 12))
        })?;
        Ok(Self { minutes, weekdays, days, months, zone: next().into() })
    }
    /// Whether it applies at the calendar's present moment.
    pub fn applies(&self, calendar: &dyn Calendar) -> bool {
        self.applies_at(calendar.wall().seconds, calendar)
    }
    /// Whether it applies on a channel, whose time may be a made-up one ([`TESTTIME`]).
    pub fn applies_on(&self, env: &dyn Env) -> bool {
        let mut made_up = String::new();
        env.variable(Var::named(TESTTIME), &mut made_up);
        self.applies_at(made_up.parse().unwrap_or_else(|_| env.wall().seconds), env)
    }
    fn applies_at(&self, at: i64, calendar: &dyn Calendar) -> bool {
        let civil = Civil::at(at, calendar.offset(at, &self.zone).seconds);
        let minute = civil.hour * 60 + civil.minute;
        let in_time = self.minutes.iter().any(|&(first, last)| {
            if first <= last { (first..=last).contains(&minute) } else { minute >= first || minute <= last }
        });
        in_time
            && self.weekdays >> civil.weekday & 1 == 1
            && self.days >> (civil.day - 1) & 1 == 1
            && self.months >> (civil.month - 1) & 1 == 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::env::Wall;
    use crate::zone::Offset;

    struct At(i64);
    impl Calendar for At {
        fn wall(&self) -> Wall {
            Wall { seconds: self.0, micros: 0 }
        }
        fn offset(&self, _: i64, zone: &str) -> Offset {
            let seconds = if zone == "Asia/Tokyo" { 9 * 3_600 } else { 0 };
            Offset { seconds, ..Offset::default() }
        }
    }

    #[test]
    fn section_4_time_fields_ranges_wrap_and_lists_join() {
        // Saturday 2026-11-21 22:30 UTC.
        let now = At(1_795_300_200);
        for (text, expected) in [
            ("*,*,*,*", true),
            ("", true),
            ("22:00-23:00,sat,21,nov", true),
            ("22:30,*,*,*", true),
            ("22:31,*,*,*", false),
            ("22:00-06:00,*,*,*", true),
            ("9:00-17:00,*,*,*", false),
            ("9:00-17:00&22:15-22:45,*,*,*", true),
            ("*,mon-fri,*,*", false),
            ("*,fri-mon,*,*", true),
            ("*,mon&sat,*,*", true),
            ("*,*,15-25,*", true),
            ("*,*,25-15,*", false),
            ("*,*,*,oct-feb", true),
            ("*,*,*,mar-oct", false),
            ("7:00-8:00,sun,22,nov,Asia/Tokyo", true),
        ] {
            assert_eq!(Timing::parse(text).unwrap().applies(&now), expected, "{text}");
        }
        for text in ["25:00-26:00,*,*,*", "*,xyz,*,*", "*,*,32,*", "*,*,0,*", "9-17,*,*,*", "*,*,*,foo"] {
            assert!(Timing::parse(text).is_err(), "{text}");
        }
    }
}
