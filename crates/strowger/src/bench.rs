//! `strowger codec bench`: what coding costs on this machine, and how many calls a core carries.
//!
//! The same measurement as `core show translation recalc`, without a server and in more detail: every step at every level
//! of instructions, plain and in lanes, by how many streams there are at once.

use std::io::Write as _;

use anyhow::{bail, ensure};
use base::{Coding, FormatId};
use codec::{Level, Material, Resampler, Trial, Work};
use indicatif::{ProgressBar, ProgressStyle};
use io::media::{SECONDS_MAX, processor_name, thread_cpu};
use serde_json::{Value, json};

use crate::args::BenchJob;

/// Speech that is coded in each round, when nobody says otherwise.
const SECONDS: usize = 5;
/// The shortest time of so many rounds counts, because others share the processor.
const ROUNDS: usize = 3;
/// Streams at once: alone, through partly empty groups to full ones, and so many that their states fill no cache.
const STREAMS: [usize; 7] = [1, 2, 4, 8, 16, 32, 640];
/// Streams of a full group of every level.
const FULL: usize = 32;
/// Ticks of a round at least.
const TICKS: usize = 2;

/// One step run one way: microseconds a second of sound of one stream, by streams at once.
struct Row {
    format: FormatId,
    encodes: bool,
    /// `None` in plain form.
    level: Option<Level>,
    points: Vec<(usize, f64)>,
}

impl Row {
    fn step(&self) -> &'static str {
        if self.encodes { "encode" } else { "decode" }
    }
    fn lanes(&self) -> &'static str {
        self.level.map_or("plain", Level::name)
    }
    fn at(&self, streams: usize) -> Option<f64> {
        self.points.iter().find(|point| point.0 == streams).map(|point| point.1)
    }
}

/// Measures and prints.
pub fn run(job: &BenchJob, as_json: bool) -> anyhow::Result<u8> {
    let seconds = job.seconds.unwrap_or(SECONDS);
    ensure!((1..=SECONDS_MAX).contains(&seconds), "--seconds {seconds}: from 1 to {SECONDS_MAX}");
    let speech = store::sounds::speech(seconds);
    let formats = formats(&job.codecs)?;
    let bar = ProgressBar::new(formats.iter().map(|format| 2 * ways(*format).len() as u64).sum());
    if let Ok(style) = ProgressStyle::with_template("{bar:40} {msg:<16} {eta} left") {
        bar.set_style(style);
    }
    let mut rows = Vec::new();
    let mut missing = Vec::new();
    for &format in &formats {
        let material = Material::new(format, &speech);
        if material.coded().is_empty() {
            missing.push(format);
        } else {
            rows.extend(measure(format, &material, seconds, &bar));
        }
    }
    bar.finish_and_clear();
    let resampling = resampling(&speech, &formats);
    let calls = calls(&rows, &resampling);
    let mut out = std::io::stdout().lock();
    let said = if as_json {
        writeln!(out, "{}", report_json(seconds, &rows, &calls))
    } else {
        out.write_all(report(seconds, &rows, &calls, &missing).as_bytes())
    };
    // A reader that closed the pipe has seen enough.
    Ok(u8::from(said.is_err_and(|error| error.kind() != std::io::ErrorKind::BrokenPipe)))
}

/// What is asked for; everything that takes work, when nothing is.
fn formats(names: &[String]) -> anyhow::Result<Vec<FormatId>> {
    let all = || FormatId::coded().filter(|format| !format.is_linear());
    if names.is_empty() {
        return Ok(all().collect());
    }
    let find = |name: &String| match FormatId::from_name(name) {
        Some(format) if all().any(|known| known == format) => Ok(format),
        _ => {
            let known: Vec<&str> = all().map(FormatId::name).collect();
            bail!("--codec {name}: nothing codes that here; there are {}", known.join(", "))
        }
    };
    names.iter().map(find).collect()
}

/// How a step of the format is run: in lanes of every level and plain, or only plain.
fn ways(format: FormatId) -> Vec<Option<Level>> {
    match format.coding() {
        Coding::Lanes => Level::all_available().map(Some).chain([None]).collect(),
        _ => vec![None],
    }
}

fn measure(format: FormatId, material: &Material, seconds: usize, bar: &ProgressBar) -> Vec<Row> {
    let mut rows = Vec::new();
    for (work, encodes) in [(Work::Decode(format), false), (Work::Encode(format), true)] {
        for level in ways(format) {
            let mut row = Row { format, encodes, level, points: Vec::new() };
            bar.set_message(format!("{} {}", format.name(), row.step()));
            let streams = if level.is_some() { &STREAMS[..] } else { &STREAMS[..1] };
            let most = streams.iter().copied().max().unwrap_or(1);
            let Some(mut trial) = Trial::new(work, most, material) else { continue };
            row.points = streams.iter().map(|&streams| (streams, f64::MAX)).collect();
            for _ in 0..ROUNDS {
                for (streams, best) in &mut row.points {
                    let second = trial.seconds(*streams);
                    let ticks = ((seconds as f64 / second) as usize).max(TICKS);
                    let before = thread_cpu();
                    trial.run(level, *streams, ticks);
                    let took = thread_cpu().saturating_sub(before);
                    *best = best.min(took.as_secs_f64() * 1e6 / (second * ticks as f64));
                }
            }
            rows.push(row);
            bar.inc(1);
        }
    }
    rows
}

/// From rate to rate, microseconds a second.
type Resampling = Vec<((u32, u32), f64)>;

fn resampling(speech: &[i16], formats: &[FormatId]) -> Resampling {
    let rates: std::collections::BTreeSet<u32> = formats.iter().map(|format| format.rate().0).collect();
    let pairs = rates.iter().flat_map(|from| rates.iter().map(move |to| (*from, *to)));
    pairs
        .filter_map(|(from, to)| {
            let mut resampler = Resampler::new(base::SampleRate(from), base::SampleRate(to))?;
            let mut room = vec![0; resampler.output_max(speech.len())];
            let mut best = f64::MAX;
            for _ in 0..ROUNDS {
                let before = thread_cpu();
                resampler.process(speech, &mut room);
                best = best.min(thread_cpu().saturating_sub(before).as_secs_f64());
            }
            Some(((from, to), best * 1e6 * f64::from(from) / speech.len() as f64))
        })
        .collect()
}

/// What a core carries of calls between two formats, both ways coded.
struct Calls {
    a: FormatId,
    b: FormatId,
    /// With every step in full groups of the best level.
    full: f64,
    /// With every stream by itself.
    alone: f64,
}

fn calls(rows: &[Row], resampling: &Resampling) -> Vec<Calls> {
    let best = |format: FormatId, encodes: bool| {
        rows.iter().find(|row| row.format == format && row.encodes == encodes)
    };
    // Both steps of a format, in a full group and alone.
    let both = |format: FormatId| {
        let steps = [best(format, false)?, best(format, true)?];
        let sum = |streams: usize| -> Option<f64> {
            steps.iter().map(|row| row.at(streams).or_else(|| row.at(1))).sum()
        };
        Some((sum(FULL)?, sum(1)?))
    };
    let rate = |from: FormatId, to: FormatId| {
        let pair = (from.rate().0, to.rate().0);
        resampling.iter().find(|known| known.0 == pair).map_or(0.0, |known| known.1)
    };
    let mut formats: Vec<FormatId> = rows.iter().map(|row| row.format).collect();
    formats.dedup();
    let mut found = Vec::new();
    for (at, &a) in formats.iter().enumerate() {
        for &b in formats.iter().skip(at + 1).filter(|b| codec::direct(a, **b).is_none()) {
            let (Some(one), Some(other)) = (both(a), both(b)) else { continue };
            let rates = rate(a, b) + rate(b, a);
            let count = |us: f64| 1e6 / us.max(f64::EPSILON);
            let (full, alone) = (count(one.0 + other.0 + rates), count(one.1 + other.1 + rates));
            found.push(Calls { a, b, full, alone });
        }
    }
    found
}

fn report_json(seconds: usize, rows: &[Row], calls: &[Calls]) -> Value {
    let steps: Vec<Value> = rows
        .iter()
        .map(|row| {
            let points: Vec<Value> =
                row.points.iter().map(|(streams, us)| json!({ "streams": streams, "us": us })).collect();
            json!({ "codec": row.format.name(), "step": row.step(), "lanes": row.lanes(), "points": points })
        })
        .collect();
    let calls: Vec<Value> = calls
        .iter()
        .map(|calls| {
            json!({ "a": calls.a.name(), "b": calls.b.name(), "full": calls.full, "alone": calls.alone })
        })
        .collect();
    let levels: Vec<&str> = Level::all_available().map(Level::name).collect();
    json!({
        "processor": processor_name(), "levels": levels, "seconds": seconds, "steps": steps,
        "calls_per_core": calls,
    })
}

fn report(seconds: usize, rows: &[Row], calls: &[Calls], missing: &[FormatId]) -> String {
    let mut out = format!(
        "{}, {} lanes; {seconds} s of speech, one core\n\n\
         Microseconds of processor time for a second of sound of one stream, by streams that are coded at once.\n\n\
         {:<10}{:<8}{:<10}",
        processor_name(),
        Level::best(),
        "codec",
        "step",
        "lanes"
    );
    STREAMS.iter().for_each(|streams| out += &format!("{streams:>8}"));
    out.push('\n');
    for row in rows {
        out += &format!("{:<10}{:<8}{:<10}", row.format.name(), row.step(), row.lanes());
        row.points.iter().for_each(|(_, us)| out += &format!("{us:>8.1}"));
        out.push('\n');
    }
    if !calls.is_empty() {
        out += &matrix(calls);
    }
    for format in missing {
        out += &format!("\n{}: the library that codes it is not installed\n", format.name());
    }
    out
}

/// Calls a core, in full groups above the diagonal and alone below it.
fn matrix(calls: &[Calls]) -> String {
    let mut formats: Vec<FormatId> = calls.iter().flat_map(|calls| [calls.a, calls.b]).collect();
    formats.sort_unstable();
    formats.dedup();
    let mut out = String::from(
        "\nCalls that one core carries when both ways are coded: codecs alone, without packets, sockets and signalling.\n\
         Right of the diagonal in full groups, left of it each stream by itself.\n\n",
    );
    out += &format!("{:<10}", "");
    formats.iter().for_each(|format| out += &format!("{:>10}", format.name()));
    out.push('\n');
    for (row, a) in formats.iter().enumerate() {
        out += &format!("{:<10}", a.name());
        for (column, b) in formats.iter().enumerate() {
            let known = |calls: &&Calls| (calls.a, calls.b) == (*a, *b) || (calls.a, calls.b) == (*b, *a);
            let shown = match calls.iter().find(known) {
                Some(calls) => format!("{:.0}", if column > row { calls.full } else { calls.alone }),
                None => "-".into(),
            };
            out += &format!("{shown:>10}");
        }
        out.push('\n');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(format: FormatId, encodes: bool, points: &[(usize, f64)]) -> Row {
        Row { format, encodes, level: Some(Level::portable()), points: points.to_vec() }
    }

    #[test]
    fn calls_a_core_are_a_million_over_all_four_steps() {
        let rows = [
            row(FormatId::GSM, false, &[(1, 200.0), (FULL, 10.0)]),
            row(FormatId::GSM, true, &[(1, 300.0), (FULL, 30.0)]),
            row(FormatId::ILBC, false, &[(1, 200.0), (FULL, 60.0)]),
            row(FormatId::ILBC, true, &[(1, 1300.0), (FULL, 300.0)]),
            row(FormatId::G722, false, &[(1, 100.0)]),
            row(FormatId::G722, true, &[(1, 100.0)]),
        ];
        let found = calls(&rows, &vec![((8000, 16_000), 25.0), ((16_000, 8000), 35.0)]);
        let of = |a, b| found.iter().find(|calls| (calls.a, calls.b) == (a, b)).unwrap();
        let ilbc = of(FormatId::GSM, FormatId::ILBC);
        assert_eq!((ilbc.full, ilbc.alone), (2500.0, 500.0));
        // What has no group costs what it costs alone, and rates are turned both ways.
        assert_eq!(of(FormatId::GSM, FormatId::G722).full, 1e6 / (40.0 + 200.0 + 60.0));
        let text = matrix(&found);
        assert!(text.contains("2500") && text.contains("500"), "{text}");
    }

    #[test]
    fn a_short_measurement_has_every_way_of_a_codec() {
        let speech = store::sounds::speech(1);
        let material = Material::new(FormatId::GSM, &speech);
        let rows = measure(FormatId::GSM, &material, 1, &ProgressBar::hidden());
        assert_eq!(rows.len(), 2 * (Level::all_available().count() + 1));
        assert!(rows.iter().all(|row| row.points.iter().all(|(_, us)| *us > 0.0 && *us < 1e5)));
        let json = report_json(1, &rows, &calls(&rows, &Vec::new()));
        assert_eq!(json["steps"][0]["codec"], "gsm");
        assert_eq!(json["steps"][0]["points"][0]["streams"], 1);
    }

    #[test]
    fn names_that_nothing_codes_are_refused_with_those_that_are() {
        let error = formats(&["g729".into()]).unwrap_err().to_string();
        assert!(
            error.starts_with("--codec g729: nothing codes that here; there are ulaw, alaw, gsm"),
            "{error}"
        );
        assert_eq!(formats(&["G711U".into(), "ilbc30".into()]).unwrap(), [FormatId::ULAW, FormatId::ILBC30]);
        assert!(formats(&[]).unwrap().len() > 10);
    }
}
