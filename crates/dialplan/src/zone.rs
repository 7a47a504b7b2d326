//! Civil time: the Gregorian calendar and offsets, without a clock.

/// The offset of a zone at one moment.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Offset {
    /// Seconds to add to UTC.
    pub seconds: i32,
    /// Daylight-saving time is in force.
    pub daylight: bool,
    /// `CET`, `CEST`, `UTC`.
    pub abbreviation: String,
}

/// A moment as a calendar and a clock on the wall show it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Civil {
    /// Year, 2026.
    pub year: i64,
    /// Month, 1 to 12.
    pub month: u32,
    /// Day of the month, 1 to 31.
    pub day: u32,
    /// Hour, 0 to 23.
    pub hour: u32,
    /// Minute, 0 to 59.
    pub minute: u32,
    /// Second, 0 to 59.
    pub second: u32,
    /// Day of the week, 0 is Sunday.
    pub weekday: u32,
    /// Day of the year, 0 is the first of January.
    pub yearday: u32,
}

/// Seconds of a day.
pub const DAY: i64 = 86_400;
/// Furthest moment that is looked at, seconds each way: the year 9999.
const MOMENT_MAX: i64 = 253_402_300_799;

/// Days from 1970-01-01 to the given date of the proleptic Gregorian calendar; `month` 1 to 12.
pub fn days_from_date(year: i64, month: u32, day: i64) -> i64 {
    // Years begin in March, so that the leap day is the last of its year.
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let of_era = year.rem_euclid(400);
    let month = i64::from(month);
    let of_year = (153 * (month + if month > 2 { -3 } else { 9 }) + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

impl Civil {
    /// What the wall shows `offset` seconds east of UTC at `at` seconds since 1970.
    pub fn at(at: i64, offset: i32) -> Self {
        let local = at.clamp(-MOMENT_MAX, MOMENT_MAX) + i64::from(offset);
        let (days, of_day) = (local.div_euclid(DAY), local.rem_euclid(DAY));
        let shifted = days + 719_468;
        let era = shifted.div_euclid(146_097);
        let of_era = shifted.rem_euclid(146_097);
        let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
        let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let month_from_march = (5 * of_year + 2) / 153;
        let day = of_year - (153 * month_from_march + 2) / 5 + 1;
        let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
        let year = year_of_era + era * 400 + i64::from(month <= 2);
        let small = |value: i64| u32::try_from(value).unwrap_or(0);
        Self {
            year,
            month: small(month),
            day: small(day),
            hour: small(of_day / 3_600),
            minute: small(of_day / 60 % 60),
            second: small(of_day % 60),
            weekday: small((days + 4).rem_euclid(7)),
            yearday: small(days - days_from_date(year, 1, 1)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn civil_dates_around_leap_days() {
        for (at, expected) in [
            (0, (1970, 1, 1, 0, 0, 0, 4, 0)),
            (951_782_400, (2000, 2, 29, 0, 0, 0, 2, 59)),
            (1_795_305_599, (2026, 11, 21, 23, 59, 59, 6, 324)),
            (-1, (1969, 12, 31, 23, 59, 59, 3, 364)),
        ] {
            let c = Civil::at(at, 0);
            assert_eq!(
                (c.year, c.month, c.day, c.hour, c.minute, c.second, c.weekday, c.yearday),
                expected,
                "{at}"
            );
        }
    }

    proptest::proptest! {
        #[test]
        fn date_and_days_are_inverse(days in -500_000i64..2_000_000) {
            let c = Civil::at(days * DAY, 0);
            proptest::prop_assert_eq!(days_from_date(c.year, c.month, i64::from(c.day)), days);
        }
    }
}
