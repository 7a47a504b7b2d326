//! The figures of the codecs: a few lines in README.md, all of them and a picture in docs/codecs.md.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use anyhow::Context;
use serde_json::Value;

use crate::bench::short;
use crate::picture;

/// Beginnings of names that are told here and not in the table of all figures.
const PREFIXES: &[&str] = &["codec ", "ilbc ", "transcode ", "worker "];

/// Whether a result is one of the codecs'.
pub fn is_one(name: &str) -> bool {
    PREFIXES.iter().any(|prefix| name.starts_with(prefix))
}

/// Ways between formats that are told: what they are called, and how the results name them.
const WAYS: &[(&str, &str)] = &[
    ("GSM to iLBC, 20 ms", "gsm ilbc"),
    ("GSM to iLBC, 30 ms", "gsm ilbc30"),
    ("GSM to Speex, quality 3", "gsm speex q3"),
    ("GSM to Speex, quality 8", "gsm speex q8"),
    ("iLBC, 20 ms, to GSM", "ilbc gsm"),
    ("iLBC, 30 ms, to GSM", "ilbc30 gsm"),
    ("Speex, quality 3, to GSM", "speex q3 gsm"),
];
/// Ways of the README.
const HEADLINES: usize = 4;

/// Steps that are told; `@` stands for the level.
const STEPS: &[(&str, &str)] = &[
    ("GSM encode", "codec gsm encode @"),
    ("GSM decode", "codec gsm decode @"),
    ("iLBC encode, 20 ms", "ilbc encode 20 ms exact @"),
    ("the same, fast", "ilbc encode 20 ms fast @"),
    ("iLBC encode, 30 ms", "ilbc encode 30 ms exact @"),
    ("the same, fast", "ilbc encode 30 ms fast @"),
    ("iLBC decode, 20 ms", "ilbc decode 20 ms @"),
    ("the same, enhanced", "ilbc decode 20 ms enhanced @"),
    ("iLBC decode, 30 ms", "ilbc decode 30 ms @"),
    ("the same, enhanced", "ilbc decode 30 ms enhanced @"),
    ("Speex encode, quality 3", "codec speex q3 encode @"),
    ("Speex encode, quality 8", "codec speex q8 encode @"),
    ("Speex decode, quality 3, enhanced", "codec speex q3 decode @"),
    ("Speex decode, quality 8, enhanced", "codec speex q8 decode @"),
    ("G.722 encode", "codec g722 encode @"),
    ("G.722 decode", "codec g722 decode @"),
    ("G.726 encode", "codec g726 encode @"),
    ("G.726 decode", "codec g726 decode @"),
];

/// One result.
#[derive(Debug, Clone)]
pub struct Figure {
    pub value: f64,
    pub baseline: Option<(f64, String)>,
    /// The same for other numbers of streams.
    pub points: Vec<(f64, f64)>,
}

/// Results by name.
pub type Figures = BTreeMap<String, Figure>;

/// A result from its JSON.
pub fn parse(text: &str) -> anyhow::Result<(String, Figure)> {
    let json: Value = serde_json::from_str(text)?;
    let name = json.get("name").and_then(Value::as_str).context("no name")?;
    let value = json.get("value").and_then(Value::as_f64).context("no value")?;
    let other = json.get("baseline").and_then(Value::as_f64);
    let other_name = json.get("baseline_name").and_then(Value::as_str);
    let pair = |pair: &Value| Some((pair.get(0)?.as_f64()?, pair.get(1)?.as_f64()?));
    let points = json.get("points").and_then(Value::as_array);
    let mut points: Vec<(f64, f64)> = points.into_iter().flatten().filter_map(pair).collect();
    points.sort_by(|a, b| a.0.total_cmp(&b.0));
    let baseline = other.zip(other_name.map(str::to_owned));
    Ok((name.to_owned(), Figure { value, baseline, points }))
}

/// `48.2 (11.0 times)`.
fn compared(figure: &Figure) -> String {
    match &figure.baseline {
        Some((other, _)) => format!("{} ({:.1} times)", short(figure.value), other / figure.value),
        None => short(figure.value),
    }
}

/// The README's lines: whole ways at the best level that was measured.
pub fn headlines(figures: &Figures) -> Option<String> {
    let mut out = String::from(
        "| From format to format, 640 streams | Strowger, in lanes | One stream after the other |\n|---|---|---|\n",
    );
    for (label, ends) in WAYS.iter().take(HEADLINES) {
        let figure = best(figures, &format!("transcode {ends} @"))?;
        let (other, name) = figure.baseline.as_ref()?;
        let _ = writeln!(out, "| {label} | {} | {}, {name} |", compared(figure), short(*other));
    }
    Some(out)
}

fn at<'f>(figures: &'f Figures, pattern: &str, level: &str) -> Option<&'f Figure> {
    figures.get(&pattern.replace('@', level))
}

fn best<'f>(figures: &'f Figures, pattern: &str) -> Option<&'f Figure> {
    ["avx512", "avx2", "portable"].iter().find_map(|level| at(figures, pattern, level))
}

/// The tables of docs/codecs.md; `None` when no way was measured.
pub fn tables(figures: &Figures, machine: &str) -> Option<String> {
    best(figures, &format!("transcode {} @", WAYS.first()?.1))?;
    let mut out = String::from(
        "| From format to format | AVX-512 | AVX2 | One stream after the other | 2,000 streams for 640 |\n\
         |---|---|---|---|---|\n",
    );
    let cell = |figure: Option<&Figure>| figure.map_or_else(|| "–".to_owned(), compared);
    for (label, ends) in WAYS {
        let pattern = format!("transcode {ends} @");
        let Some(figure) = best(figures, &pattern) else { continue };
        let (other, name) = figure.baseline.clone().unwrap_or_default();
        let crowded = best(figures, &format!("{pattern} 2000 streams"));
        let crowded =
            crowded.map_or_else(String::new, |crowded| format!("{:.2}", crowded.value / figure.value));
        let levels = ["avx512", "avx2"].map(|level| cell(at(figures, &pattern, level)));
        let _ = writeln!(out, "| {label} | {} | {}, {name} | {crowded} |", levels.join(" | "), short(other));
    }
    out.push_str("\n| One step | AVX-512 | AVX2 | Alone | Compared with |\n|---|---|---|---|---|\n");
    for (label, pattern) in STEPS {
        let Some(figure) = best(figures, pattern) else { continue };
        let (other, name) = figure.baseline.clone().unwrap_or_default();
        let levels = ["avx512", "avx2"].map(|level| cell(at(figures, pattern, level)));
        let alone = [format!("{pattern} alone"), format!("{pattern} 1 of 16"), format!("{pattern} 1 of 8")];
        let alone = alone.iter().find_map(|pattern| best(figures, pattern)).map(|figure| figure.value);
        let first = figure.points.iter().find(|point| point.0 == 1.0).map(|point| point.1);
        let alone = alone.or(first).map_or_else(|| "–".to_owned(), short);
        let _ = writeln!(out, "| {label} | {} | {alone} | {}, {name} |", levels.join(" | "), short(other));
    }
    let mut calls = String::new();
    for (label, format) in [("iLBC, 20 ms", "ilbc"), ("iLBC, 30 ms", "ilbc30"), ("Speex, quality 3", "speex")]
    {
        let count = |count: &str| figures.get(&format!("worker calls gsm {format} {count}"));
        if let (Some(some), Some(many)) = (count("640"), count("2000")) {
            let a_core = |figure: &Figure| format!("{:.0}", 1e6 / figure.value);
            let plain =
                some.baseline.as_ref().map_or_else(String::new, |(other, _)| format!("{:.0}", 1e6 / other));
            let (some, many) = (a_core(some), a_core(many));
            let _ = writeln!(calls, "| GSM and {label} | {some} | {many} | {plain} |");
        }
    }
    if !calls.is_empty() {
        out.push_str(
            "\n| Calls a core, both ways, whole worker | 640 calls | 2,000 calls | C libraries, codecs alone |\n\
             |---|---|---|---|\n",
        );
        out.push_str(&calls);
    }
    let _ = writeln!(out, "\nMeasured on {machine}, a virtual machine that other work shared.");
    Some(out)
}

/// Calls a core by calls at once, both ways: the curves of the picture.
fn curves(figures: &Figures) -> Vec<picture::Curve> {
    let mut curves = Vec::new();
    for (name, there, back, levels) in [
        ("GSM and Speex", "gsm speex q3", "speex q3 gsm", &["avx512"][..]),
        ("GSM and iLBC", "gsm ilbc", "ilbc gsm", &["avx512", "avx2"]),
    ] {
        for (index, level) in levels.iter().enumerate() {
            let way = |ends: &str| figures.get(&format!("transcode {ends} {level}"));
            let (Some(there), Some(back)) = (way(there), way(back)) else { continue };
            let label = format!("{name}, {}", if *level == "avx512" { "AVX-512" } else { "AVX2" });
            let pairs = there.points.iter().zip(&back.points);
            let points = pairs.map(|(one, other)| (one.0, 1e6 / (one.1 + other.1))).collect();
            curves.push(picture::Curve { label, points, is_plain: false });
            if let (0, Some((one, _)), Some((other, _))) = (index, &there.baseline, &back.baseline) {
                let ends = [1.0, 2000.0].map(|streams| (streams, 1e6 / (one + other)));
                let label = format!("{name}, plain");
                curves.push(picture::Curve { label, points: ends.to_vec(), is_plain: true });
            }
        }
    }
    curves
}

/// Draws the picture for light and for dark pages; nothing when nothing was measured.
pub fn draw(figures: &Figures, docs: &Path) -> anyhow::Result<()> {
    let curves = curves(figures);
    if curves.is_empty() {
        return Ok(());
    }
    let panel = picture::Panel {
        caption: "",
        axes: ("calls coded at once", "calls that one core carries"),
        from: 1.0,
        is_log: true,
        curves,
        labels: 200,
    };
    picture::draw(&[panel], docs, "calls-per-core")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn some() -> Figures {
        let result = |name: &str, value: f64, other: f64| {
            parse(&format!(
                r#"{{"name":"{name}","value":{value},"unit":"us/s","baseline":{other},"baseline_name":"libgsm","ratio":1,
                    "points":[[640,{value}],[1,900.0]]}}"#
            ))
            .unwrap()
        };
        let mut all: Figures =
            WAYS.iter().map(|(_, ends)| result(&format!("transcode {ends} avx512"), 250.0, 2500.0)).collect();
        all.extend([result("codec gsm encode avx2", 50.0, 500.0)]);
        all.extend([result("transcode gsm ilbc avx512 2000 streams", 255.0, 250.0)]);
        all
    }

    #[test]
    fn figures_of_the_codecs_make_tables() {
        let all = some();
        let lines = headlines(&all).unwrap();
        assert!(lines.contains("| GSM to iLBC, 20 ms | 250 (10.0 times) | 2500, libgsm |\n"), "{lines}");
        assert_eq!(lines.lines().count(), 2 + HEADLINES);
        let tables = tables(&all, "a machine").unwrap();
        assert!(
            tables.contains("| GSM to iLBC, 20 ms | 250 (10.0 times) | – | 2500, libgsm | 1.02 |"),
            "{tables}"
        );
        assert!(tables.contains("| GSM encode | – | 50.0 (10.0 times) | 900 | 500, libgsm |"), "{tables}");
        assert!(headlines(&Figures::new()).is_none() && super::tables(&Figures::new(), "").is_none());
    }

    #[test]
    fn calls_a_core_are_a_million_over_both_ways() {
        let curves = curves(&some());
        let ilbc = curves.iter().find(|curve| curve.label == "GSM and iLBC, AVX-512").unwrap();
        assert_eq!(ilbc.points, [(1.0, 1e6 / 1800.0), (640.0, 2000.0)]);
        let plain = curves.iter().find(|curve| curve.label == "GSM and iLBC, plain").unwrap();
        assert!(plain.is_plain && plain.points.iter().all(|point| point.1 == 200.0));
    }
}
