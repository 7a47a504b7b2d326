//! One figure: printed with its target, and written where all figures are collected.

use std::fmt::Write as _;
use std::path::PathBuf;

/// A measured figure. Smaller is better for all of them.
#[derive(Debug)]
pub struct Figure<'a> {
    /// Name, also that of its file.
    pub name: &'a str,
    /// What was measured.
    pub value: f64,
    /// Of what.
    pub unit: &'a str,
    /// What it shall be at most.
    pub target: f64,
    /// The same of another.
    pub baseline: f64,
    /// Which other.
    pub baseline_name: &'a str,
}

impl Figure<'_> {
    /// Prints the figure and writes `NAME.json` into `$STROWGER_BENCH_DIR`, by default `target/bench` of the workspace.
    pub fn publish(&self) {
        let met = if self.value <= self.target { "met" } else { "NOT met" };
        println!(
            "{}: {:.4} {}; target {} {met}; {} {}",
            self.name, self.value, self.unit, self.target, self.baseline_name, self.baseline
        );
        write(self.name, &self.json());
    }

    fn json(&self) -> String {
        let mut text = String::new();
        // Nothing is so many times as small as nothing that JSON could say it.
        let ratio = self.baseline / self.value;
        let ratio = if ratio.is_finite() { format!("{ratio:.2}") } else { "null".to_owned() };
        let _ = writeln!(
            text,
            "{{\"name\": \"{}\", \"value\": {:.5}, \"unit\": \"{}\", \"baseline\": {:.5}, \"baseline_name\": \"{}\", \
             \"ratio\": {ratio}}}",
            self.name, self.value, self.unit, self.baseline, self.baseline_name
        );
        text
    }
}

/// Publishes points of a curve, across and up; the figure's value is the last one.
pub fn publish_points(name: &str, unit: &str, points: &[(f64, f64)]) {
    let Some((_, last)) = points.last() else { return };
    let json = serde_json::json!({
        "name": name, "value": last, "unit": unit, "baseline": null, "baseline_name": null, "ratio": null, "points": points,
    });
    println!("{name}: {points:.2?} {unit}");
    write(name, &format!("{json}\n"));
}

fn write(name: &str, json: &str) {
    let folder = std::env::var_os("STROWGER_BENCH_DIR")
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../target/bench"), PathBuf::from);
    std::fs::create_dir_all(&folder).expect("a folder for the figures");
    std::fs::write(folder.join(format!("{name}.json")), json).expect("a file for the figure");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_is_one_object_with_the_six_agreed_fields() {
        let figure = Figure {
            name: "call",
            value: 0.125,
            unit: "ms",
            target: 0.13,
            baseline: 1.25,
            baseline_name: "other",
        };
        assert_eq!(
            figure.json(),
            "{\"name\": \"call\", \"value\": 0.12500, \"unit\": \"ms\", \"baseline\": 1.25000, \
             \"baseline_name\": \"other\", \"ratio\": 10.00}\n"
        );
    }
}
