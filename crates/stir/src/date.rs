//! The Date header (RFC 3261 §20.17), in seconds since 1970.

const DAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
const DAY: u64 = 86_400;

/// Days since 1970 of a day of the Gregorian calendar from 1970 on.
fn days(year: u64, month: u64, day: u64) -> u64 {
    // Years begin in March, so that the day that is there once in four years is the last.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let (era, of_era) = (year / 400, year % 400);
    let of_year = (153 * month + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

/// The value of a Date header at that second: `Sat, 13 Nov 2010 23:29:00 GMT`.
pub fn date_header(at: u64) -> String {
    let (days, second) = (at / DAY, at % DAY);
    let shifted = days + 719_468;
    let (era, of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let (year, month) = (year_of_era + era * 400 + u64::from(month >= 10), (month + 2) % 12);
    let name = |names: &[&'static str], at: u64| {
        usize::try_from(at).ok().and_then(|at| names.get(at)).copied().unwrap_or_default()
    };
    format!(
        "{}, {day:02} {} {year} {:02}:{:02}:{:02} GMT",
        name(&DAYS, days % 7),
        name(&MONTHS, month),
        second / 3600,
        second / 60 % 60,
        second % 60
    )
}

/// The second that a Date header names; it has to say in which zone, by name or by hours and minutes.
pub fn read_date(value: &str) -> Option<u64> {
    let value = value.trim();
    let rest = value.split_once(',').map_or(value, |(_, rest)| rest);
    let mut words = rest.split_ascii_whitespace();
    let day: u64 = number(words.next()?, 2)?;
    let month = words.next()?;
    let month = MONTHS.iter().position(|name| name.eq_ignore_ascii_case(month))?;
    let month = u64::try_from(month).ok()? + 1;
    let year: u64 = number(words.next()?, 4)?;
    let mut clock = words.next()?.split(':').map(|part| number(part, 2));
    let (hour, minute, second) = (clock.next()??, clock.next()??, clock.next().unwrap_or(Some(0))?);
    let zone = words.next()?;
    let is_leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let length = match month {
        4 | 6 | 9 | 11 => 30,
        2 if is_leap => 29,
        2 => 28,
        _ => 31,
    };
    let fits = (1970..=9999).contains(&year) && (1..=length).contains(&day);
    // A leap second is the next one.
    if !fits || hour > 23 || minute > 59 || second > 60 || clock.next().is_some() || words.next().is_some() {
        return None;
    }
    let local = days(year, month, day) * DAY + hour * 3600 + minute * 60 + second;
    match zone {
        "GMT" | "UTC" | "UT" | "Z" => Some(local),
        _ => {
            let (sign, offset) = zone.split_at_checked(1)?;
            let offset = number(offset, 4).filter(|offset| offset % 100 < 60 && *offset < 2400)?;
            let offset = offset / 100 * 3600 + offset % 100 * 60;
            match sign {
                "+" => local.checked_sub(offset),
                "-" => local.checked_add(offset),
                _ => None,
            }
        }
    }
}

/// A number of one digit to as many.
fn number(text: &str, most: usize) -> Option<u64> {
    let fits = (1..=most).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
    if fits { text.parse().ok() } else { None }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn rfc3261_20_17_dates_are_read_with_their_zone() {
        for (written, expected) in [
            ("Sat, 13 Nov 2010 23:29:00 GMT", Some(1_289_690_940)),
            ("Thu, 01 Jan 1970 00:00:00 GMT", Some(0)),
            ("Thu, 1 Jan 1970 01:00:00 +0100", Some(0)),
            ("Wed, 31 Dec 1969 23:00:00 -0100", None),
            ("Thu, 29 Feb 2024 12:00:00 UTC", Some(1_709_208_000)),
            ("29 Feb 2024 12:00:00 -0500", Some(1_709_226_000)),
            ("Wed, 29 Feb 2023 12:00:00 GMT", None),
            ("Sat, 13 Nov 2010 23:29:00", None),
            ("Sat, 13 Nov 2010 23:29:00 EST", None),
            ("Sat, 13 Nov 2010 24:29:00 GMT", None),
            ("Sat, 13 Nov 2010 23:60:00 GMT", None),
            ("Sat, 32 Nov 2010 23:29:00 GMT", None),
            ("Sat, 13 Foo 2010 23:29:00 GMT", None),
            ("Sat, 13 Nov 10 23:29:00 GMT", None),
            ("Sat, 13 Nov 2010 23:29:00 GMT x", None),
            ("yesterday", None),
            ("", None),
        ] {
            assert_eq!(read_date(written), expected, "{written}");
        }
        assert_eq!(date_header(1_289_690_940), "Sat, 13 Nov 2010 23:29:00 GMT");
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back(at in 0u64..253_402_300_800) {
            prop_assert_eq!(read_date(&date_header(at)), Some(at));
        }
        #[test]
        fn nothing_that_is_read_panics(text in ".{0,64}") {
            let _ = read_date(&text);
        }
    }
}
