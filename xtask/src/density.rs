//! What calls of every kind cost, in a table of README.md, one of docs/media.md and a picture.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use serde_json::Value;

use crate::bench::short;
use crate::picture::{self, Bars};

/// Beginning of the names of these results.
const PREFIX: &str = "density ";

/// Results by row, in the order of the bench, and column.
#[derive(Debug, Default)]
pub struct Density {
    rows: BTreeMap<u64, Row>,
    /// How far packets were off the grid, in the order of their names.
    grid: BTreeMap<String, Value>,
}

#[derive(Debug, Default)]
struct Row {
    title: String,
    asterisk: String,
    /// Without privileges, and with all of them.
    c: Option<Value>,
    a: Option<Value>,
}

impl Density {
    /// Takes a result in; false when it is none of these.
    pub fn take(&mut self, json: &Value) -> bool {
        let text = |key: &str| json.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
        let name = text("name");
        if !name.starts_with(PREFIX) {
            return false;
        }
        match json.get("order").and_then(Value::as_u64) {
            Some(order) => {
                let row = self.rows.entry(order).or_default();
                (row.title, row.asterisk) = (text("title"), text("asterisk"));
                let column = if text("column") == "c" { &mut row.c } else { &mut row.a };
                *column = Some(json.clone());
            }
            None => {
                self.grid.insert(name, json.clone());
            }
        }
        true
    }

    /// The table of README.md; `None` when nothing was measured.
    pub fn headlines(&self) -> Option<String> {
        let mut out = String::from(
            "| Percent of a core a call | C, no privileges | A, AF_XDP | Asterisk 23 |\n|---|---|---|---|\n",
        );
        for row in self.rows.values() {
            let cell = |column: &Option<Value>| column.as_ref().map_or_else(String::new, cost);
            let _ =
                writeln!(out, "| {} | {} | {} | {} |", row.title, cell(&row.c), cell(&row.a), row.asterisk);
        }
        (!self.rows.is_empty()).then_some(out)
    }

    /// The tables of docs/media.md; `None` when nothing was measured.
    pub fn tables(&self) -> Option<String> {
        self.headlines()?;
        let mut out = String::new();
        for (title, is_c) in
            [("C: `media_io=epoll`, loopback", true), ("A: `media_io=xdp`, veth between namespaces", false)]
        {
            let column = |row: &Row| if is_c { row.c.clone() } else { row.a.clone() };
            if self.rows.values().all(|row| column(row).is_none()) {
                continue;
            }
            let _ = writeln!(
                out,
                "| {title} | Calls | Percent of a core a call | with soft interrupts | at most | a thread a call | Lost | Late, 99 % \
                 and 99.9 % |\n|---|---|---|---|---|---|---|---|"
            );
            for row in self.rows.values() {
                let Some(point) = column(row) else { continue };
                let _ = writeln!(out, "| {} | {} |", row.title, cells(&point).join(" | "));
            }
            out.push('\n');
        }
        for point in self.grid.values() {
            let number = |key: &str| point.get(key).and_then(Value::as_f64).unwrap_or_default();
            let unit = point.get("unit").and_then(Value::as_str).unwrap_or_default();
            let name = point.get("name").and_then(Value::as_str).unwrap_or_default();
            let share = if name.contains("p999") { "99.9 %" } else { "99 %" };
            let _ = writeln!(
                out,
                "{share} of the packets were at most {} {unit} ({} wanted).  ",
                short(number("value")),
                short(number("baseline"))
            );
        }
        Some(out)
    }

    /// Draws the picture; nothing when nothing was measured.
    pub fn draw(&self, docs: &Path) -> anyhow::Result<()> {
        let carried = |percent: f64| 100.0 / percent;
        let groups = self.rows.values().map(|row| {
            let of = |column: &Option<Value>| {
                let percent = column.as_ref()?.get("value")?.as_f64()?;
                (percent > 0.0).then(|| carried(percent))
            };
            (row.title.clone(), vec![of(&row.c), of(&row.a), least(&row.asterisk).map(carried)])
        });
        let bars = Bars {
            axis: "calls that one core would carry: 100 % over what one call takes",
            kinds: vec!["no privileges", "AF_XDP", "Asterisk 23"],
            groups: groups.collect(),
        };
        if bars.groups.is_empty() {
            return Ok(());
        }
        picture::draw_bars(&bars, docs, "density")
    }
}

/// The first number of a text: the least that the other one takes.
fn least(text: &str) -> Option<f64> {
    text.split(' ').next()?.parse().ok()
}

/// What a point costs, and of how many calls.
fn cost(point: &Value) -> String {
    let calls = point.get("calls").and_then(Value::as_u64).unwrap_or_default();
    let value = point.get("value").and_then(Value::as_f64).unwrap_or_default();
    format!("{}, {calls} calls", short(value))
}

fn cells(point: &Value) -> Vec<String> {
    let number = |key: &str| point.get(key).and_then(Value::as_f64);
    let shown = |key: &str| number(key).map_or_else(|| "–".to_owned(), short);
    let late =
        |index: usize| point.get("late_ms").and_then(|late| late.get(index)?.as_f64()).unwrap_or_default();
    let compared = match (number("baseline"), number("ratio")) {
        (Some(threads), Some(ratio)) => format!("{} ({ratio:.1} times)", short(threads)),
        (Some(threads), None) => format!("{}, machine too busy to compare", short(threads)),
        _ => "–".to_owned(),
    };
    let target = if number("target").is_some() { "target" } else { "soft_target" };
    vec![
        format!("{:.0}", number("calls").unwrap_or_default()),
        shown("process"),
        match number("above_drops") {
            Some(above) => format!("{}, {} beyond drops", shown("with_soft_interrupts"), short(above)),
            None => shown("with_soft_interrupts"),
        },
        shown(target),
        compared,
        format!("{} %", shown("loss_percent")),
        format!("{:.1} and {:.1} ms", late(1), late(2)),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn some() -> Density {
        let mut density = Density::default();
        for (order, title, column, value, soft) in [
            (9, "ulaw bridge", "a", 0.0175, Some(0.021)),
            (0, "Playback", "c", 0.028, None),
            (0, "Playback", "a", 0.0119, Some(0.0132)),
            (11, "ulaw bridge, kernel relay", "a", 0.0031, Some(0.0293)),
        ] {
            let above_drops = title.contains("kernel").then_some(0.0095);
            let taken = density.take(&json!({
                "name": format!("density {order} {column}"), "order": order, "title": title, "column": column, "value": value,
                "process": value, "with_soft_interrupts": soft, "above_drops": above_drops, "target": 0.03, "calls": 5000, "baseline": 0.05, "ratio": 2.86,
                "asterisk": "0.19 to 0.26", "loss_percent": 0.0, "late_ms": [0.1, 0.9, 2.5],
            }));
            assert!(taken);
        }
        let grid =
            json!({ "name": "density grid p99 a", "value": 0.8, "unit": "ms off the grid", "baseline": 1.0 });
        assert!(density.take(&grid) && !density.take(&json!({ "name": "sip parse" })));
        density
    }

    #[test]
    fn rows_stand_in_the_order_of_the_bench_and_the_column_without_privileges_first() {
        let density = some();
        let lines = density.headlines().unwrap();
        let rows: Vec<&str> = lines.lines().skip(2).collect();
        assert_eq!(
            rows,
            [
                "| Playback | 0.0280, 5000 calls | 0.0119, 5000 calls | 0.19 to 0.26 |",
                "| ulaw bridge |  | 0.0175, 5000 calls | 0.19 to 0.26 |",
                "| ulaw bridge, kernel relay |  | 0.00310, 5000 calls | 0.19 to 0.26 |"
            ]
        );
        let tables = density.tables().unwrap();
        assert!(tables.contains("| 0.00310 | 0.0293, 0.00950 beyond drops |"), "{tables}");
        assert!(
            tables.contains(
                "| ulaw bridge | 5000 | 0.0175 | 0.0210 | 0.0300 | 0.0500 (2.9 times) | 0 % | 0.9 and 2.5 ms |"
            ),
            "{tables}"
        );
        assert!(
            tables.contains("99 % of the packets were at most 0.800 ms off the grid (1.00 wanted)."),
            "{tables}"
        );
        assert_eq!((Density::default().headlines(), Density::default().tables()), (None, None));
    }

    #[test]
    fn the_picture_shows_calls_that_a_core_carries() {
        let folder = std::env::temp_dir().join(format!("strowger-density-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        Density::default().draw(&folder).unwrap();
        assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 0);
        some().draw(&folder).unwrap();
        let svg = std::fs::read_to_string(folder.join("density.svg")).unwrap();
        for word in ["3571", "8403", "526", "ulaw bridge"] {
            assert!(svg.contains(word), "{word}");
        }
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
