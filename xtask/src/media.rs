//! Figures of the media plane that have a table and a picture in docs/media.md: ticks, and calls by processors.

use std::fmt::Write as _;
use std::path::Path;

use crate::bench::short;
use crate::codecs::Figures;
use crate::picture::{self, Curve, Panel};

/// Beginnings of names that are told here and not in the table of all figures.
const PREFIXES: &[&str] = &["tick_", "scaling "];
/// Loads of the bench of ticks: their names in results, and what they are called.
const LOADS: [(&str, &str); 3] = [
    ("idle", "nothing to do"),
    ("496_calls", "496 calls in Playback, epoll"),
    ("496_calls_xdp", "the same with xdp"),
];
/// Loads of the bench of processors, in the same way.
const KINDS: [(&str, &str); 2] = [("gsm ilbc", "GSM to iLBC"), ("relay", "relay, G.711")];

/// Whether a result is told here.
pub fn is_one(name: &str) -> bool {
    PREFIXES.iter().any(|prefix| name.starts_with(prefix))
}

/// Percent of a core by the milliseconds of the tick.
fn costs(figures: &Figures, load: &str) -> Vec<(f64, f64)> {
    let points = figures.iter().filter_map(|(name, figure)| {
        let (ms, what) = name.strip_prefix("tick_")?.split_once("_ms_")?;
        (what == load).then_some((ms.parse().ok()?, figure.value))
    });
    points.collect()
}

/// The table of ticks; `None` when they were not measured.
pub fn ticks(figures: &Figures) -> Option<String> {
    let [idle, epoll, xdp] = LOADS.map(|(load, _)| costs(figures, load));
    epoll.first()?;
    let mut out = String::from(
        "| Tick | Nothing to do | 496 calls in Playback, `epoll` | of the tick of 1 ms | the same, `xdp` | of the tick of 1 ms |\n\
         |---|---|---|---|---|---|\n",
    );
    for (row, (ms, _)) in epoll.iter().enumerate() {
        let nothing = idle.get(row).map_or_else(|| "–".to_owned(), |(_, idle)| format!("{} %", short(*idle)));
        let _ = write!(out, "| {ms} ms | {nothing} |");
        for busy in [&epoll, &xdp] {
            let _ = match (busy.get(row), busy.first()) {
                (Some((_, cost)), Some((_, one))) => {
                    write!(out, " {} % | {:.2} |", short(*cost), cost / one)
                }
                _ => write!(out, " – | – |"),
            };
        }
        out.push('\n');
    }
    Some(out)
}

/// The table of calls by processors; `None` when they were not measured.
pub fn scaling(figures: &Figures) -> Option<String> {
    let mut out = String::from("| Workers |");
    let kinds = KINDS.map(|(kind, title)| Some((figures.get(&format!("scaling {kind}"))?, title)));
    let kinds: Vec<_> = kinds.into_iter().flatten().collect();
    let count = kinds.iter().map(|(figure, _)| figure.points.len()).min()?;
    for (_, title) in &kinds {
        let _ = write!(out, " {title}, calls | efficiency |");
    }
    let _ = writeln!(out, "\n|---|{}", "---|---|".repeat(kinds.len()));
    for row in 0..count {
        for (number, (figure, _)) in kinds.iter().enumerate() {
            let (Some((workers, calls)), Some((_, one))) = (figure.points.get(row), figure.points.first())
            else {
                continue;
            };
            if number == 0 {
                let _ = write!(out, "| {workers} |");
            }
            let _ = write!(out, " {calls:.0} | {:.2} |", calls / one / workers);
        }
        out.push('\n');
    }
    Some(out)
}

/// Draws what was measured of the two pictures.
pub fn draw(figures: &Figures, docs: &Path) -> anyhow::Result<()> {
    let curves = LOADS.map(|(load, title)| (title, costs(figures, load)));
    let curves: Vec<_> = curves.into_iter().filter(|(_, points)| points.len() > 1).collect();
    if !curves.is_empty() {
        let curve = |(title, points): (&str, _)| Curve { label: title.to_owned(), points, is_plain: false };
        let panel = Panel {
            caption: "",
            axes: ("milliseconds of a tick", "percent of a core"),
            from: 0.0,
            is_log: false,
            curves: curves.into_iter().map(curve).collect(),
            labels: 210,
        };
        picture::draw(&[panel], docs, "ticks")?;
    }
    let panels: Vec<Panel> =
        KINDS.iter().filter_map(|(kind, title)| by_processors(figures, kind, title)).collect();
    if !panels.is_empty() {
        picture::draw(&panels, docs, "calls-by-cores")?;
    }
    Ok(())
}

/// Calls by workers, beside as many times what one carries; `None` when there was but one.
fn by_processors(figures: &Figures, kind: &str, title: &'static str) -> Option<Panel> {
    let points = figures.get(&format!("scaling {kind}"))?.points.clone();
    let (Some((_, one)), Some((most, _)), true) = (points.first(), points.last(), points.len() > 1) else {
        return None;
    };
    let ideal =
        Curve { label: "ideal".into(), points: vec![(0.0, 0.0), (*most, one * most)], is_plain: true };
    let measured = Curve { label: "measured".into(), points, is_plain: false };
    Some(Panel {
        caption: title,
        axes: ("workers, one a processor", "calls"),
        from: 0.0,
        is_log: false,
        curves: vec![measured, ideal],
        labels: 90,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codecs;

    fn some() -> Figures {
        let result = |text: &str| codecs::parse(text).unwrap();
        let tick = |name: &str, value: f64| {
            result(&format!(
                r#"{{"name":"{name}","value":{value},"baseline":9.0,"baseline_name":"a tick of 1 ms"}}"#
            ))
        };
        let scaling = |kind: &str| {
            result(&format!(
                r#"{{"name":"scaling {kind}","value":1950,"baseline":1000,"baseline_name":"one worker",
                    "points":[[2,1950],[1,1000]]}}"#
            ))
        };
        Figures::from([
            tick("tick_01_ms_idle", 0.02),
            tick("tick_10_ms_idle", 0.01),
            tick("tick_01_ms_496_calls", 9.0),
            tick("tick_10_ms_496_calls", 7.02),
            tick("tick_01_ms_496_calls_xdp", 4.0),
            tick("tick_10_ms_496_calls_xdp", 1.8),
            scaling("gsm ilbc"),
            scaling("relay"),
        ])
    }

    #[test]
    fn ticks_and_processors_have_a_row_each() {
        let all = some();
        let rows = ticks(&all).unwrap();
        assert!(rows.contains("| 10 ms | 0.0100 % | 7.02 % | 0.78 | 1.80 % | 0.45 |\n"), "{rows}");
        let mut unprivileged = some();
        unprivileged.retain(|name, _| !name.ends_with("_xdp"));
        let rows = ticks(&unprivileged).unwrap();
        assert!(rows.contains("| 10 ms | 0.0100 % | 7.02 % | 0.78 | – | – |\n"), "{rows}");
        let rows = scaling(&all).unwrap();
        assert!(
            rows.ends_with("| 1 | 1000 | 1.00 | 1000 | 1.00 |\n| 2 | 1950 | 0.97 | 1950 | 0.97 |\n"),
            "{rows}"
        );
        assert!(all.keys().all(|name| is_one(name)));
        assert_eq!((ticks(&Figures::new()), scaling(&Figures::new())), (None, None));
    }

    #[test]
    fn pictures_are_drawn_of_what_was_measured_and_of_nothing_else() {
        let folder = std::env::temp_dir().join(format!("strowger-media-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        draw(&Figures::new(), &folder).unwrap();
        assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 0);
        draw(&some(), &folder).unwrap();
        for (name, word) in [("ticks", "496 calls in Playback"), ("calls-by-cores-dark", "relay, G.711")] {
            let svg = std::fs::read_to_string(folder.join(format!("{name}.svg"))).unwrap();
            assert!(svg.contains(word), "{name}");
        }
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
