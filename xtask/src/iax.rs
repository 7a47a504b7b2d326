//! Figures of IAX2: a table and a picture in docs/iax2.md, the table in README.md too.

use std::fmt::Write as _;
use std::path::Path;

use crate::bench::short;
use crate::codecs::Figures;
use crate::picture::{self, Curve, Panel};

/// Beginning of names that are told here and not in the table of all figures.
const PREFIX: &str = "iax ";

/// Rows: the name of the result, what is said of it, what was asked, and the unit.
const ROWS: &[(&str, &str, &str, &str)] = &[
    (
        "iax registrations, a minute for 15000",
        "15,000 registrations in 60 s, peers in `iax.conf`, 8 addresses",
        "3 % of one core",
        "%",
    ),
    ("iax registrations, a minute for 15000, time", "the same, REGREQ to REGACK, 99 of 100", "2 ms", "ms"),
    (
        "iax registrations, 20000 a second",
        "20,000 registrations a second, 256 addresses, each",
        "50 us of one core",
        "us",
    ),
    (
        "iax rows, native",
        "15,000 registrations in 60 s, rows in MariaDB, remembered and written behind",
        "3 % of one core",
        "%",
    ),
    ("iax rows, native, time", "the same, REGREQ to REGACK, 99 of 100", "2 ms", "ms"),
    ("iax rows, ODBC", "the same through unixODBC, with the processes of its driver", "3 % of one core", "%"),
    ("iax rows, ODBC, program", "of that Strowger's own process", "3 % of one core", "%"),
    ("iax rows, ODBC, time", "the same, REGREQ to REGACK, 99 of 100", "2 ms", "ms"),
    ("iax rows, cold, queries", "15,000 peers at once, none remembered: queries a peer", "1", ""),
    (
        "iax rows, cold, time",
        "the same, until all are registered, who come as fast as a pool of as many connections answers their SELECTs",
        "1.2 times the SELECTs alone",
        "",
    ),
    (
        "iax rows, cold, away, queries",
        "15,000 peers at once, none remembered, MariaDB a millisecond away: queries a peer",
        "1",
        "",
    ),
    ("iax rows, cold, away, time", "the same, until all are registered", "1.2 times the SELECTs alone", ""),
    (
        "iax rows, stopped, refused",
        "250 registrations a second while MariaDB is stopped: refused or lost",
        "0",
        "",
    ),
    ("iax rows, stopped, rows lost", "rows that are not written when it is back", "0", ""),
    (
        "iax attack, good calls",
        "NEW to ANSWER of a known user under 100,000 NEW a second from forged addresses, 99 of 100",
        "100 ms",
        "ms",
    ),
    ("iax attack, good calls lost", "calls of the known user that were not answered", "0", ""),
    ("iax attack, numbers", "numbers that strangers got without a token", "0", ""),
    (
        "iax trunk, calling",
        "1,000 calls on a trunk, µ-law, music both ways, at the side that calls, each",
        "0.01 % of one core",
        "%",
    ),
    ("iax trunk, called", "the same at the side that is called", "0.01 % of one core", "%"),
];
/// Beginning of what rows are compared with.
const OLD: &str = "the old design";
/// Curves of the picture.
const CURVES: [(&str, &str); 2] =
    [("iax load, Strowger", "Strowger"), ("iax load, the old design", "the old design")];

/// Whether a result is told here.
pub fn is_one(name: &str) -> bool {
    name.starts_with(PREFIX)
}

/// The table of what was measured; `None` when nothing was.
pub fn table(figures: &Figures) -> Option<String> {
    let mut out = String::from("| Load | Reached | Asked | Compared with |\n|---|---|---|---|\n");
    let head = out.len();
    for (name, title, asked, unit) in ROWS.iter().copied() {
        let Some(figure) = figures.get(name) else { continue };
        let other = figure.baseline.as_ref();
        // What was only asked stands in a column of its own.
        let other = other.filter(|(_, name)| name.starts_with(OLD)).map(|(value, name)| {
            format!("{} {unit}, {name}: {:.1} times", short(*value), value / figure.value)
        });
        let (value, other) = (format!("{} {unit}", short(figure.value)), other.unwrap_or_default());
        let _ = writeln!(out, "| {title} | {} | {asked} | {other} |", value.trim_end());
    }
    (out.len() > head).then_some(out)
}

/// Draws the processor time against the rate, if it was measured.
pub fn draw(figures: &Figures, docs: &Path) -> anyhow::Result<()> {
    let curves = CURVES.into_iter().filter_map(|(name, label)| {
        let points = figures.get(name)?.points.clone();
        (points.len() > 1).then(|| Curve { label: label.to_owned(), points, is_plain: false })
    });
    let curves: Vec<_> = curves.collect();
    let least = curves.iter().filter_map(|curve| curve.points.first()).map(|point| point.0);
    let Some(from) = least.reduce(f64::min) else { return Ok(()) };
    let axes = ("registrations a second", "percent of one core");
    let panel = Panel { caption: "", axes, from, is_log: true, curves, labels: 120 };
    picture::draw(&[panel], docs, "iax2-registrations")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codecs;

    fn some() -> Figures {
        let result = |text: &str| codecs::parse(text).unwrap();
        Figures::from([
            result(
                r#"{"name":"iax registrations, 20000 a second","value":40.0,"baseline":700,"baseline_name":"the old design"}"#,
            ),
            result(r#"{"name":"iax load, Strowger","value":80,"points":[[50,1],[20000,80]]}"#),
            result(r#"{"name":"iax load, the old design","value":18,"points":[[50,4],[250,18]]}"#),
        ])
    }

    #[test]
    fn what_was_measured_has_a_row_with_what_was_asked_and_how_many_times_it_is_better() {
        let rows = table(&some()).unwrap();
        let row = "| 20,000 registrations a second, 256 addresses, each | 40.0 us | 50 us of one core | 700 us, the old design: 17.5 times |\n";
        assert!(rows.ends_with(row), "{rows}");
        assert_eq!(table(&Figures::new()), None);
        assert!(some().keys().all(|name| is_one(name)));
    }

    #[test]
    fn the_picture_has_both_curves() {
        let folder = std::env::temp_dir().join(format!("strowger-iax-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        draw(&Figures::new(), &folder).unwrap();
        assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 0);
        draw(&some(), &folder).unwrap();
        for name in ["iax2-registrations", "iax2-registrations-dark"] {
            let svg = std::fs::read_to_string(folder.join(format!("{name}.svg"))).unwrap();
            assert!(CURVES.iter().all(|(_, label)| svg.contains(label)), "{name}");
        }
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
