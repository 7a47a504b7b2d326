//! Wall-clock times as people read them: time zones from the system's database, and `strftime`.

use std::collections::BTreeMap;
use std::path::Path;

use dialplan::zone::{Civil, DAY, days_from_date};
use dialplan::{Offset, Wall, strftime};

/// Microseconds of a second.
const MICROS: i64 = 1_000_000;
/// Largest zone file read, in bytes; the largest of tzdata has 4 kB.
const ZONE_BYTES_MAX: u64 = 256 << 10;

/// A time zone (RFC 8536).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Zone {
    /// Moments at which another offset begins, with its index.
    transitions: Vec<(i64, usize)>,
    offsets: Vec<Offset>,
    /// What holds after the last transition.
    rule: Option<Rule>,
}

impl Zone {
    /// UTC.
    pub fn utc() -> Self {
        let utc = Offset { seconds: 0, daylight: false, abbreviation: "UTC".into() };
        Self { transitions: Vec::new(), offsets: vec![utc], rule: None }
    }
    /// The system's own zone: `TZ`, else `/etc/localtime`, else UTC.
    pub fn local() -> Self {
        match std::env::var("TZ") {
            Ok(name) if !name.is_empty() => Self::named(&name),
            _ => Self::read(Path::new("/etc/localtime")),
        }
        .unwrap_or_else(Self::utc)
    }
    /// A zone of the system's database (`Europe/Berlin`), or a rule as `TZ` takes it (`CET-1CEST,M3.5.0,M10.5.0/3`).
    pub fn named(name: &str) -> Option<Self> {
        let name = name.strip_prefix(':').unwrap_or(name);
        // A name stays inside the database.
        let plain = !name.starts_with('/') && !name.split('/').any(|part| part == "..");
        let file = plain.then(|| Self::read(&Path::new("/usr/share/zoneinfo").join(name))).flatten();
        file.or_else(|| {
            let rule = Rule::parse(name)?;
            Some(Self { transitions: Vec::new(), offsets: vec![rule.standard.clone()], rule: Some(rule) })
        })
    }
    fn read(path: &Path) -> Option<Self> {
        if std::fs::metadata(path).ok()?.len() > ZONE_BYTES_MAX {
            return None;
        }
        Self::parse(&std::fs::read(path).ok()?)
    }
    /// What holds at a moment, in seconds since the Unix epoch.
    pub fn at(&self, epoch: i64) -> Offset {
        let after = self.transitions.partition_point(|&(start, _)| start <= epoch);
        if after == self.transitions.len()
            && let Some(rule) = &self.rule
        {
            return rule.at(epoch).clone();
        }
        let index = match after.checked_sub(1).and_then(|last| self.transitions.get(last)) {
            Some(&(_, index)) => index,
            // Before the first transition the first offset that is no daylight time holds.
            None => self.offsets.iter().position(|offset| !offset.daylight).unwrap_or(0),
        };
        self.offsets.get(index).cloned().unwrap_or(Offset {
            seconds: 0,
            daylight: false,
            abbreviation: "UTC".into(),
        })
    }

    /// A TZif file: the second, 64-bit block with its footer.
    fn parse(bytes: &[u8]) -> Option<Self> {
        let (first, header) = block(bytes, 4)?;
        if header.version < 2 {
            return first.zone(bytes, 4, None);
        }
        let rest = bytes.get(first.end..)?;
        let (second, _) = block(rest, 8)?;
        let footer = rest.get(second.end..)?.strip_prefix(b"\n")?;
        let footer = footer.split(|&byte| byte == b'\n').next()?;
        second.zone(rest, 8, Rule::parse(std::str::from_utf8(footer).ok()?))
    }
}

struct Header {
    version: u8,
}

/// Positions of the tables of a TZif block.
struct Block {
    times: usize,
    kinds: usize,
    infos: usize,
    names: usize,
    time_count: usize,
    info_count: usize,
    name_bytes: usize,
    end: usize,
}

fn be32(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(bytes.get(at..)?.first_chunk().copied()?))
}

fn block(bytes: &[u8], width: usize) -> Option<(Block, Header)> {
    if !bytes.starts_with(b"TZif") {
        return None;
    }
    let version = bytes.get(4)?.saturating_sub(b'0');
    let count = |index: usize| {
        be32(bytes, 20 + index * 4).and_then(|n| usize::try_from(n).ok()).filter(|n| *n < 100_000)
    };
    let (utc, standard, leaps) = (count(0)?, count(1)?, count(2)?);
    let (time_count, info_count, name_bytes) = (count(3)?, count(4)?, count(5)?);
    let times = 44;
    let kinds = times + time_count * width;
    let infos = kinds + time_count;
    let names = infos + info_count * 6;
    let end = names + name_bytes + leaps * (width + 4) + standard + utc;
    Some((Block { times, kinds, infos, names, time_count, info_count, name_bytes, end }, Header { version }))
}

impl Block {
    fn zone(&self, bytes: &[u8], width: usize, rule: Option<Rule>) -> Option<Zone> {
        let names = bytes.get(self.names..self.names + self.name_bytes)?;
        let offsets: Option<Vec<Offset>> = (0..self.info_count)
            .map(|index| {
                let at = self.infos + index * 6;
                let name = names.get(usize::from(*bytes.get(at + 5)?)..)?;
                let name = name.split(|&byte| byte == 0).next()?;
                Some(Offset {
                    seconds: be32(bytes, at)?.cast_signed(),
                    daylight: *bytes.get(at + 4)? != 0,
                    abbreviation: String::from_utf8_lossy(name).into_owned(),
                })
            })
            .collect();
        let transitions: Option<Vec<_>> = (0..self.time_count)
            .map(|index| {
                let at = self.times + index * width;
                let time = match width {
                    8 => i64::from_be_bytes(bytes.get(at..)?.first_chunk().copied()?),
                    _ => i64::from(be32(bytes, at)?.cast_signed()),
                };
                Some((time, usize::from(*bytes.get(self.kinds + index)?)))
            })
            .collect();
        Some(Zone {
            transitions: transitions?,
            offsets: offsets.filter(|offsets| !offsets.is_empty())?,
            rule,
        })
    }
}

/// A rule as the environment variable `TZ` takes it (POSIX.1, XBD 8.3), with dates of the form `Mm.w.d`, `Jn` and `n`.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Rule {
    standard: Offset,
    daylight: Option<(Offset, Change, Change)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Change {
    date: Date,
    /// Seconds after local midnight.
    time: i64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Date {
    /// Month, week (5 is the last), weekday.
    Weekday(u32, i64, i64),
    /// Day of the year from 1, February 29 never counted.
    Julian(i64),
    /// Day of the year from 0.
    Day(i64),
}

impl Rule {
    fn parse(text: &str) -> Option<Self> {
        let (name, rest) = abbreviation(text)?;
        let (west, rest) = hours(rest)?;
        let standard = Offset { seconds: i32::try_from(-west).ok()?, daylight: false, abbreviation: name };
        if rest.is_empty() {
            return Some(Self { standard, daylight: None });
        }
        let (name, rest) = abbreviation(rest)?;
        let (west, rest) = match rest.strip_prefix(',') {
            Some(_) => (west - 3_600, rest),
            None => hours(rest)?,
        };
        let summer = Offset { seconds: i32::try_from(-west).ok()?, daylight: true, abbreviation: name };
        let mut dates = rest.strip_prefix(',')?.split(',');
        let (start, end) = (Change::parse(dates.next()?)?, Change::parse(dates.next()?)?);
        Some(Self { standard, daylight: Some((summer, start, end)) })
    }
    fn at(&self, epoch: i64) -> &Offset {
        let Some((summer, start, end)) = &self.daylight else { return &self.standard };
        let year = Civil::at(epoch, self.standard.seconds).year;
        let start = start.in_year(year) - i64::from(self.standard.seconds);
        let end = end.in_year(year) - i64::from(summer.seconds);
        let daylight =
            if start < end { (start..end).contains(&epoch) } else { !(end..start).contains(&epoch) };
        if daylight { summer } else { &self.standard }
    }
}

fn abbreviation(text: &str) -> Option<(String, &str)> {
    if let Some(quoted) = text.strip_prefix('<') {
        let (name, rest) = quoted.split_once('>')?;
        return Some((name.to_owned(), rest));
    }
    let end = text.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(text.len());
    let (name, rest) = text.split_at(end);
    (name.len() >= 3).then(|| (name.to_owned(), rest))
}

/// `[+-]hh[:mm[:ss]]` in seconds, and what follows.
fn hours(text: &str) -> Option<(i64, &str)> {
    let end = text.find(|c: char| !c.is_ascii_digit() && !"+-:".contains(c)).unwrap_or(text.len());
    let (number, rest) = text.split_at(end);
    let (sign, number) = match number.strip_prefix('-') {
        Some(number) => (-1, number),
        None => (1, number.strip_prefix('+').unwrap_or(number)),
    };
    let mut seconds = 0;
    for (part, unit) in number.split(':').zip([3_600, 60, 1]) {
        seconds += part.parse::<i64>().ok().filter(|n| *n <= 167)? * unit;
    }
    Some((sign * seconds, rest))
}

impl Change {
    fn parse(text: &str) -> Option<Self> {
        let (date, time) = text.split_once('/').unwrap_or((text, "2"));
        let (time, rest) = hours(time)?;
        let date = if let Some(weekday) = date.strip_prefix('M') {
            let numbers: Vec<u32> = weekday.split('.').map(str::parse).collect::<Result<_, _>>().ok()?;
            match numbers[..] {
                [month @ 1..=12, week @ 1..=5, day @ 0..=6] => Date::Weekday(month, week.into(), day.into()),
                _ => return None,
            }
        } else if let Some(day) = date.strip_prefix('J') {
            Date::Julian(day.parse().ok().filter(|day| (1..=365).contains(day))?)
        } else {
            Date::Day(date.parse().ok().filter(|day| (0..=365).contains(day))?)
        };
        rest.is_empty().then_some(Self { date, time })
    }
    /// Local seconds since the epoch.
    fn in_year(&self, year: i64) -> i64 {
        let leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
        let day = match self.date {
            Date::Day(day) => days_from_date(year, 1, 1) + day,
            Date::Julian(day) => days_from_date(year, 1, 1) + day - 1 + i64::from(leap && day >= 60),
            Date::Weekday(month, week, weekday) => {
                let first = days_from_date(year, month, 1);
                let next = if month == 12 {
                    days_from_date(year + 1, 1, 1)
                } else {
                    days_from_date(year, month + 1, 1)
                };
                // 1970-01-01 was a Thursday.
                let first_weekday = (first + 4).rem_euclid(7);
                let day = first + (weekday - first_weekday).rem_euclid(7) + (week - 1) * 7;
                if day >= next { day - 7 } else { day }
            }
        };
        day * DAY + self.time
    }
}

/// Zones by name, read once each.
#[derive(Debug, Default)]
pub struct Zones {
    known: BTreeMap<String, Zone>,
}

/// Most zones kept; names may come from a dialplan, and a site uses a handful.
const ZONES_MAX: usize = 64;

impl Zones {
    /// What holds in a zone at a moment; an empty or unknown name is the system's own zone.
    pub fn at(&mut self, epoch: i64, name: &str) -> Offset {
        if let Some(zone) = self.known.get(name) {
            return zone.at(epoch);
        }
        let zone =
            if name.is_empty() { Zone::local() } else { Zone::named(name).unwrap_or_else(Zone::local) };
        let offset = zone.at(epoch);
        if self.known.len() < ZONES_MAX {
            self.known.insert(name.to_owned(), zone);
        }
        offset
    }
}

/// A time in the words of [strftime](dialplan::strftime::format), as this zone shows it; `micros` are microseconds since
/// the Unix epoch.
pub fn format(micros: i64, zone: &Zone, format: &str) -> String {
    let seconds = micros.div_euclid(MICROS);
    let wall = Wall { seconds, micros: u32::try_from(micros.rem_euclid(MICROS)).unwrap_or(0) };
    let mut out = String::with_capacity(format.len() + 16);
    strftime::format(wall, &zone.at(seconds), format, &mut out);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_changes_at_its_dates() {
        let berlin = Zone::named("CET-1CEST,M3.5.0,M10.5.0/3").unwrap();
        let sydney = Zone::named("AEST-10AEDT,M10.1.0,M4.1.0/3").unwrap();
        let nepal = Zone::named("<+0545>-5:45").unwrap();
        for (name, zone, epoch, seconds, abbreviation) in [
            ("winter", &berlin, 1_763_700_000, 3_600, "CET"),
            ("summer", &berlin, 1_752_000_000, 7_200, "CEST"),
            ("a second before", &berlin, 1_774_745_999, 3_600, "CET"),
            ("the second", &berlin, 1_774_746_000, 7_200, "CEST"),
            ("southern summer over new year", &sydney, 1_767_225_600, 39_600, "AEDT"),
            ("southern winter", &sydney, 1_752_000_000, 36_000, "AEST"),
            ("without daylight time", &nepal, 0, 20_700, "+0545"),
        ] {
            let offset = zone.at(epoch);
            assert_eq!((offset.seconds, &*offset.abbreviation), (seconds, abbreviation), "{name}");
        }
        for bad in [
            "",
            "C",
            "NOSUCH",
            "CET-1CEST,M13.5.0,M10.5.0",
            "CET-1CEST,M3.5.0",
            "../etc/passwd",
            "/etc/passwd",
        ] {
            assert_eq!(Zone::named(bad), None, "{bad}");
        }
    }

    #[test]
    fn zone_files_and_rules_agree() {
        let Some(file) = Zone::named("Europe/Berlin") else {
            println!("skipped: no time zone database on this machine");
            return;
        };
        let rule = Zone::named("CET-1CEST,M3.5.0,M10.5.0/3").unwrap();
        for epoch in (1_000_000_000..3_500_000_000).step_by(86_400 * 5 + 1_234) {
            assert_eq!(file.at(epoch), rule.at(epoch), "{epoch}");
        }
        assert_eq!(file.at(-1_000_000_000).abbreviation, "CET", "before 1970");
    }

    #[test]
    fn rfc8536_a_damaged_zone_file_is_no_zone() {
        let Ok(whole) = std::fs::read("/usr/share/zoneinfo/Europe/Berlin") else {
            println!("skipped: no time zone database on this machine");
            return;
        };
        for length in 0..whole.len().min(1_000) {
            let _ = Zone::parse(whole.get(..length).unwrap());
        }
        assert_eq!(Zone::parse(b"TZif2"), None);
    }

    #[test]
    fn times_are_written_in_the_words_of_strftime() {
        let at = 1_763_762_068_123_456;
        let berlin = Zone::named("CET-1CEST,M3.5.0,M10.5.0/3").unwrap();
        for (zone, text, expected) in [
            (&Zone::utc(), "%b %e %T", "Nov 21 21:54:28"),
            (&berlin, "%F %T.%3q %z %Z", "2025-11-21 22:54:28.123 +0100 CET"),
            (&Zone::utc(), "%Y-%m-%d %H:%M:%S.%6q", "2025-11-21 21:54:28.123456"),
            (&Zone::utc(), "%a %A %B %j %y %I %l %p %u %w", "Fri Friday November 325 25 09  9 PM 5 5"),
            (&Zone::utc(), "%s %q %% %J %", "1763762068 123 % %J %"),
            (&Zone::utc(), "%c|%D|%R|%r", "Fri Nov 21 21:54:28 2025|11/21/25|21:54|09:54:28 PM"),
        ] {
            assert_eq!(format(at, zone, text), expected, "{text}");
        }
    }
}
