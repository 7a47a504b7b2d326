//! Rooms of `MeetMe` that are rows of a database (family `meetme`), with the times between which they are there.

use core::time::Duration;

use base::{Instant, Rows, RowsAsk, RowsWant};
use call::conference::{Bookings, Pins};
use call::{Level, Stop};
use dialplan::zone::{DAY, days_from_date};

use crate::Call;

/// How long a database may take; what it said last serves when it does not answer.
const WITHIN: Duration = Duration::from_secs(3);
/// Bookings of one number that are looked at.
const BOOKINGS_MAX: usize = 1_000;

/// A booking.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Booking {
    /// Its PINs.
    pub(super) pins: Pins,
    /// Options that are added for everybody.
    opts: String,
    /// Options that are added for administrators instead.
    adminopts: String,
    /// Most who may be there, but for administrators.
    pub(super) users_max: Option<usize>,
    /// When it ends.
    pub(super) ends: Option<Instant>,
    /// File and format of a recording.
    pub(super) recording: [String; 2],
    /// Column and value by which its row is found again.
    pub(super) row: (String, String),
}

/// What there is to know of a number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Booked {
    /// No row has it, now.
    No,
    /// It begins soon.
    Soon,
    /// It may be entered.
    Now(Box<Booking>),
    /// The database does not say.
    Unknown,
}

impl Booking {
    /// The letters of the step, and those of the row.
    pub(super) fn options(&self, own: &str, is_admin: bool) -> String {
        format!("{own}{}", if is_admin && !self.adminopts.is_empty() { &self.adminopts } else { &self.opts })
    }
}

/// `2026-11-23 15:30:00` as the wall shows it, in seconds since its 1970. `None`: no time, or zeros.
fn local_seconds(text: &str) -> Option<i64> {
    let mut parts = text.trim().split(|symbol: char| !symbol.is_ascii_digit()).map(str::parse::<i64>);
    let mut next = || parts.next().and_then(Result::ok);
    let (year, month, day) = (next()?, next()?, next()?);
    let (hour, minute, second) = (next().unwrap_or(0), next().unwrap_or(0), next().unwrap_or(0));
    let is_one = (1..=9999).contains(&year) && (1..=12).contains(&month) && (1..=31).contains(&day);
    let is_time = (0..=24).contains(&hour) && (0..=60).contains(&minute) && (0..=60).contains(&second);
    let month = u32::try_from(month).ok().filter(|_| is_one && is_time)?;
    Some(days_from_date(year, month, day) * DAY + hour * 3_600 + minute * 60 + second)
}

/// What rows say of a number. `wall` is what the clock on the wall shows, in seconds; `runs_until` the end of the conference
/// when it is there, which may have been put off.
fn booked(
    rows: &Rows,
    rules: &Bookings,
    number: &str,
    wall: i64,
    runs_until: Option<Instant>,
    now: Instant,
) -> Booked {
    let at = |row: &[Option<String>], name: &str| {
        let column = rows.columns.iter().position(|column| column.eq_ignore_ascii_case(name))?;
        row.get(column)?.clone().filter(|value| !value.trim().is_empty())
    };
    let seconds = |length: Duration| i64::try_from(length.as_secs()).unwrap_or(i64::MAX);
    let mut soon = false;
    let mut best: Option<(i64, Booking)> = None;
    for row in &rows.rows {
        let text = |name: &str| at(row, name).unwrap_or_default();
        let time =
            |name: &str| at(row, name).and_then(|text| local_seconds(&text)).filter(|_| rules.schedule);
        let (start, end) = (time("starttime"), time("endtime"));
        let early = start.map_or(0, |start| (start - wall).max(0));
        if early > seconds(rules.early) {
            soon |= early <= seconds(rules.early_alert);
            continue;
        }
        let left = end.map(|end| end - wall);
        let ends = match (left, runs_until.filter(|until| *until > now)) {
            (Some(left), None) if left <= 0 => continue,
            (Some(_), Some(until)) => Some(until),
            (Some(left), None) => Some(now + Duration::from_secs(u64::try_from(left).unwrap_or(0))),
            (None, _) => None,
        };
        let key = match at(row, "bookid") {
            Some(id) => ("bookid".to_owned(), id),
            None => ("confno".to_owned(), number.to_owned()),
        };
        let booking = Booking {
            pins: Pins { user: text("pin"), admin: text("adminpin") },
            opts: text("opts"),
            adminopts: text("adminopts"),
            users_max: text("maxusers").trim().parse().ok().filter(|most| *most > 0),
            ends,
            recording: [text("recordingfilename"), text("recordingformat")],
            row: key,
        };
        // Of several that may be entered the one that began last.
        let start = start.unwrap_or(i64::MIN);
        if best.as_ref().is_none_or(|(before, _)| start > *before) {
            best = Some((start, booking));
        }
    }
    match best {
        Some((_, booking)) => Booked::Now(Box::new(booking)),
        None if soon => Booked::Soon,
        None => Booked::No,
    }
}

/// Asks what there is of a number.
pub(super) async fn look_up(call: &Call, number: &str) -> Result<Booked, Stop> {
    let rules = call.chan.core(|core| core.settings.bookings.clone());
    if !rules.has_rows {
        return Ok(Booked::No);
    }
    let filters = vec![("confno".to_owned(), number.to_owned())];
    let ask = RowsAsk::Find { family: "meetme".to_owned(), filters };
    let want = RowsWant { ask, rows_max: BOOKINGS_MAX, within: WITHIN, serves_last: true };
    let rows = match call.ask_database(want, false).await? {
        Ok(rows) => rows,
        Err(why) => {
            call.log(Level::Warning, &format!("whether conference '{number}' is booked is not known: {why}"));
            return Ok(Booked::Unknown);
        }
    };
    let now = call.chan.now();
    let (wall, runs_until) = call.chan.core(|core| {
        let seconds = core.services.wall.now_micros() / 1_000_000;
        let offset = core.services.wall.offset(seconds, "").seconds;
        (seconds + i64::from(offset), core.conferences.get(number).and_then(|found| found.ends))
    });
    Ok(booked(&rows, &rules, number, wall, runs_until, now))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(lines: &[&str]) -> Rows {
        let columns = ["bookid", "confno", "starttime", "endtime", "pin", "maxusers"].map(str::to_owned);
        let row = |line: &&str| {
            line.split('|').map(|value| Some(value.to_owned()).filter(|value| !value.is_empty())).collect()
        };
        Rows { columns: columns.to_vec(), rows: lines.iter().map(row).collect(), changed: 0 }
    }

    #[test]
    fn times_are_read_as_databases_write_them() {
        for (text, expected) in [
            ("1970-01-02 00:00:01", Some(86_401)),
            ("2026-11-23T15:30:00", Some(1_795_447_800)),
            ("2026-11-23 15:30:00.000", Some(1_795_447_800)),
            ("2026-11-23", Some(1_795_392_000)),
            ("0000-00-00 00:00:00", None),
            ("", None),
            ("soon", None),
            ("2026-13-01 00:00:00", None),
        ] {
            assert_eq!(local_seconds(text), expected, "{text}");
        }
    }

    #[test]
    fn a_booking_holds_in_its_time_and_a_little_before() {
        let lines = ["1|9|2026-11-23 15:00:00|2026-11-23 16:00:00|12|3", "2|9|2026-11-23 18:00:00||34|"];
        let rules = Bookings {
            has_rows: true,
            schedule: true,
            early: Duration::from_secs(300),
            early_alert: Duration::from_secs(3600),
            ..Bookings::default()
        };
        let now = Instant::ZERO + Duration::from_secs(1_000);
        let look = |rules: &Bookings, time: &str, until: Option<Instant>| {
            booked(&rows(&lines), rules, "9", local_seconds(time).unwrap(), until, now)
        };
        for (time, expected) in [
            ("2026-11-23 13:00:00", None),
            ("2026-11-23 14:30:00", Some("soon")),
            ("2026-11-23 14:56:00", Some("12")),
            ("2026-11-23 15:59:59", Some("12")),
            ("2026-11-23 16:00:00", None),
            ("2026-11-23 17:30:00", Some("soon")),
            ("2026-11-24 01:00:00", Some("34")),
        ] {
            let found = match look(&rules, time, None) {
                Booked::Now(booking) => Some(booking.pins.user.clone()),
                Booked::Soon => Some("soon".to_owned()),
                Booked::No | Booked::Unknown => None,
            };
            assert_eq!(found.as_deref(), expected, "{time}");
        }
        let Booked::Now(booking) = look(&rules, "2026-11-23 15:30:00", None) else { panic!("booked") };
        assert_eq!(booking.ends, Some(now + Duration::from_secs(1800)));
        assert_eq!((booking.users_max, booking.row), (Some(3), ("bookid".to_owned(), "1".to_owned())));
        // One whose end was put off goes on.
        let later = now + Duration::from_secs(60);
        let Booked::Now(booking) = look(&rules, "2026-11-23 16:10:00", Some(later)) else {
            panic!("goes on")
        };
        assert_eq!(booking.ends, Some(later));
        // Without a schedule times say nothing.
        let rules = Bookings { schedule: false, ..rules };
        let Booked::Now(booking) = look(&rules, "2020-01-01 00:00:00", None) else { panic!("always") };
        assert_eq!((booking.pins.user.as_str(), booking.ends), ("12", None));
    }
}
