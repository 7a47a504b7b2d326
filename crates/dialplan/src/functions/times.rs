//! STRFTIME, STRPTIME and TESTTIME.

use super::{Answer, arg, native, reader, required};
use crate::args::split_raw;
use crate::env::{Env, Fault, Wall};
use crate::registry::FunctionRow;
use crate::rights::Reach;
use crate::strftime::{format, parse};
use crate::timing::TESTTIME;
use crate::vars::{Inherit, Var};

pub(super) const ROWS: &[FunctionRow] = &[
    reader(
        "STRFTIME",
        Reach::PLAIN,
        "STRFTIME([epoch][,[timezone][,format]])",
        "Writes a time as text.",
        strftime,
    ),
    reader(
        "STRPTIME",
        Reach::PLAIN,
        "STRPTIME(datetime,timezone,format)",
        "Reads a time from text; seconds since 1970.",
        strptime,
    ),
    native(
        "TESTTIME",
        Reach::PLAIN,
        "TESTTIME(date,time[,zone])",
        "Sets the time that GotoIfTime, ExecIfTime and IFTIME() go by on this channel: 2026-12-24 18:00:00, and a zone; \
         empty: the true one.",
        None,
        Some(set_testtime),
    ),
];

/// Three arguments; the last keeps its commas.
fn three(args: &str) -> Vec<String> {
    let raw = split_raw(args, ',');
    let mut parts: Vec<String> = raw.iter().take(2).map(|part| crate::args::unquote(part)).collect();
    if raw.len() > 2 {
        parts.push(raw.iter().skip(2).copied().collect::<Vec<_>>().join(","));
    }
    parts
}

fn strftime(env: &mut dyn Env, args: &str, out: &mut String) -> Answer {
    let args = three(args);
    let wall = match arg(&args, 0).trim() {
        "" => env.wall(),
        text => {
            let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
            let seconds = whole.parse().map_err(|_| Fault::new(format!("`{text}` is no time")))?;
            let micros = format!("{fraction:0<6}").get(..6).and_then(|text| text.parse().ok()).unwrap_or(0);
            Wall { seconds, micros }
        }
    };
    let offset = env.offset(wall.seconds, arg(&args, 1).trim());
    let pattern = Some(arg(&args, 2)).filter(|text| !text.is_empty()).unwrap_or("%c");
    format(wall, &offset, pattern, out);
    Ok(())
}

fn strptime(env: &mut dyn Env, args: &str, out: &mut String) -> Answer {
    let args = three(args);
    let text = required(&args, 0, "the time")?;
    let pattern = required(&args, 2, "the format")?;
    let local = parse(text, pattern).ok_or_else(|| Fault::new(format!("`{text}` is not `{pattern}`")))?;
    let zone = arg(&args, 1).trim();
    out.push_str(&epoch_of(env, local, zone).to_string());
    Ok(())
}

/// Seconds since 1970 of a zone's local time.
fn epoch_of(env: &dyn Env, local: i64, zone: &str) -> i64 {
    // The offset depends on the moment that is looked for: a second look settles all but the skipped hour.
    let first = local - i64::from(env.offset(local, zone).seconds);
    local - i64::from(env.offset(first, zone).seconds)
}

/// `Set(TESTTIME()=2026-12-24 18:00:00 Europe/Berlin)`; what stands in the parentheses counts when nothing is set.
fn set_testtime(env: &mut dyn Env, args: &str, value: &str) -> Answer {
    let text = if value.trim().is_empty() { args } else { value };
    let mut words = text.split([' ', ',']).filter(|word| !word.is_empty());
    let Some(date) = words.next() else {
        env.remove_variable(Var::named(TESTTIME));
        return Ok(());
    };
    let (time, zone) = (words.next().unwrap_or("00:00:00"), words.next().unwrap_or(""));
    let moment = format!("{date} {time}");
    let local = parse(&moment, "%Y-%m-%d %H:%M:%S").or_else(|| parse(&moment, "%Y-%m-%d %H:%M"));
    let local = local
        .ok_or_else(|| Fault::new(format!("`{text}` is no date and time such as 2026-12-24 18:00:00")))?;
    let at = epoch_of(env, local, zone);
    env.set_variable(Var::named(TESTTIME), &at.to_string(), Inherit::Never);
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::testenv::TestEnv;

    #[test]
    fn a_made_up_time_decides_what_applies_until_it_is_taken_away() {
        let mut env = TestEnv::new();
        env.wall.seconds = 1_795_300_205; // Saturday 2026-11-21 22:30:05 UTC
        let night = "${IFTIME(22:00-23:00,sat,21,nov?night:day)}";
        for (set, value, expected) in [
            ("TESTTIME()", "2026-11-21 12:00:00", "day"),
            ("TESTTIME()", "2027-11-21 22:30", "day"), // a Sunday
            ("TESTTIME()", "2026-11-22 07:30:00 Asia/Tokyo", "night"),
            ("TESTTIME(2026-11-20,22:30:00)", "", "day"),
            ("TESTTIME()", "", "night"),
        ] {
            env.set(set, value);
            assert_eq!(env.expand(night), expected, "{set}={value}");
            assert!(env.logs.is_empty(), "{:?}", env.logs);
        }
        env.set("TESTTIME()", "tomorrow noon");
        assert!(env.logs.iter().any(|line| line.contains("no date and time")), "{:?}", env.logs);
    }

    #[test]
    fn times_to_text_and_back() {
        let mut env = TestEnv::new();
        env.wall.seconds = 1_795_300_205; // Saturday 2026-11-21 22:30:05 UTC
        for (text, expected) in [
            ("${STRFTIME(,,%Y-%m-%d %H:%M:%S)}", "2026-11-21 22:30:05"),
            ("${STRFTIME(${EPOCH},UTC,%Y)}", "2026"),
            ("${STRFTIME(0,Asia/Tokyo,%H:%M %Z %z)}", "09:00 JST +0900"),
            ("${STRFTIME()}", "Sat Nov 21 22:30:05 2026"),
            (
                "${STRFTIME(0,,%A %a %B %b %d %e %j %u %w %y %C)}",
                "Thursday Thu January Jan 01  1 001 4 4 70 19",
            ),
            (
                "${STRFTIME(1.25,,%S.%q|%3q|%s|%I:%M %p|%D|%T|%R|%F|%%)}",
                "01.250|250|1|12:00 AM|01/01/70|00:00:01|00:00|1970-01-01|%",
            ),
            ("${STRFTIME(1451606400,,%G-W%V %U %W)}", "2015-W53 00 00"),
            ("${STRFTIME(0,,%k,%l)}", " 0,12"),
            ("${STRPTIME(2006-03-01 07:30:35,UTC,%Y-%m-%d %H:%M:%S)}", "1141198235"),
            ("${STRPTIME(1970-01-01 09:00,Asia/Tokyo,%F %R)}", "0"),
            ("${STRPTIME(21 Nov 26 10:30 PM,,%d %b %y %I:%M %p)}", "1795300200"),
            ("[${STRPTIME(yesterday,,%Y)}]", "[]"),
        ] {
            env.builtins.insert(crate::vars::Builtin::Epoch, "1795300205".to_owned());
            assert_eq!(env.expand(text), expected, "{text}");
        }
    }
}
