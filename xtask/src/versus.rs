//! Compares what the built program takes with what another one takes, in the same run: rounds of both, turn by turn.
//!
//! Others share a machine and its speed drifts over minutes, so a figure of yesterday is no baseline. Each round measures the
//! other program and then this one; the ratio of a round holds what both had in common, and the median of the rounds counts.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail};
use serde_json::Value;

use crate::bench::short;
use crate::workspace::Workspace;

/// Rounds when nobody says.
const ROUNDS: usize = 3;

/// What is measured, and how much more of it this program may take.
const ROWS: &[Row] = &[
    Row { bench: "calls", only: "call_500_per_second", file: "call_500_per_second", most: 1.03 },
    Row {
        bench: "calls",
        only: "call_500_per_second_digest",
        file: "call_500_per_second_digest",
        most: 1.05,
    },
    Row {
        bench: "registrations",
        only: "register_1500_per_second",
        file: "register_1500_per_second",
        most: 1.05,
    },
    Row { bench: "manager", only: "manager_event_delivered", file: "manager_event_delivered", most: 1.03 },
    Row { bench: "manager", only: "manager_ping", file: "manager_ping", most: 1.03 },
    Row { bench: "density", only: "bridge_c", file: "density_c_bridge", most: 1.03 },
    Row { bench: "density", only: "prompt_c", file: "density_c_prompt", most: 1.03 },
];

struct Row {
    bench: &'static str,
    /// What `STROWGER_BENCH_ONLY` is.
    only: &'static str,
    /// The file of the figure.
    file: &'static str,
    /// The largest ratio.
    most: f64,
}

/// `cargo xtask versus PROGRAM [--rounds N] [FIGURE ...]`.
pub fn run(workspace: &Workspace, words: &[&str]) -> anyhow::Result<()> {
    let (other, rounds, only) = read(words)?;
    let ours = workspace.target.join("release/strowger");
    for program in [&other, &ours] {
        if !program.is_file() {
            bail!("{} is not there: build it with 'make build' in its tree", program.display());
        }
    }
    let rows: Vec<&Row> = ROWS.iter().filter(|row| only.is_empty() || only.contains(&row.file)).collect();
    if rows.is_empty() {
        let names: Vec<&str> = ROWS.iter().map(|row| row.file).collect();
        bail!("no figure of that name; there are {}", names.join(", "));
    }
    println!("{:<30} {:>10} {:>10}  ratios of {rounds} rounds, and their median", "", "other", "this");
    let mut over = Vec::new();
    for row in rows {
        let mut ratios = Vec::new();
        let mut last = (f64::NAN, f64::NAN);
        for _ in 0..rounds {
            last = (measure(workspace, row, &other)?, measure(workspace, row, &ours)?);
            ratios.push(last.1 / last.0);
        }
        let told: Vec<String> = ratios.iter().map(|ratio| format!("{ratio:.3}")).collect();
        let ratio = median(&mut ratios);
        let verdict = if ratio <= row.most { "within" } else { "OVER" };
        let (other, this) = (short(last.0), short(last.1));
        println!(
            "{:<30} {other:>10} {this:>10}  {}: {ratio:.3}, {verdict} {}",
            row.file,
            told.join(" "),
            row.most
        );
        if ratio > row.most {
            over.push(row.file);
        }
    }
    if over.is_empty() {
        return Ok(());
    }
    bail!("takes more than it may: {}", over.join(", "))
}

fn read<'w>(words: &[&'w str]) -> anyhow::Result<(PathBuf, usize, Vec<&'w str>)> {
    let (mut other, mut rounds, mut only) = (None, ROUNDS, Vec::new());
    let mut words = words.iter().copied();
    while let Some(word) = words.next() {
        match word {
            "--rounds" => rounds = words.next().context("--rounds needs a number")?.parse()?,
            _ if other.is_none() => other = Some(std::path::absolute(word)?),
            _ => only.push(word),
        }
    }
    let other = other.context("name the program to compare with: cargo xtask versus PROGRAM")?;
    Ok((other, rounds.max(1), only))
}

/// One figure of one program.
fn measure(workspace: &Workspace, row: &Row, program: &Path) -> anyhow::Result<f64> {
    let folder = workspace.target.join("versus");
    std::fs::create_dir_all(&folder)?;
    let file = folder.join(format!("{}.json", row.file));
    let _ = std::fs::remove_file(&file);
    let output = Command::new("cargo")
        .args(["bench", "--quiet", "--package", "loadbench", "--bench", row.bench])
        .env("STROWGER", program)
        .env("STROWGER_BENCH_ONLY", row.only)
        .env("STROWGER_BENCH_DIR", &folder)
        .output()?;
    let said =
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    if !output.status.success() {
        bail!("benchmark '{}' of {} ended with {}: {said}", row.file, program.display(), output.status);
    }
    let text = std::fs::read_to_string(&file).with_context(|| format!("no {}: {said}", file.display()))?;
    let json: Value = serde_json::from_str(&text)?;
    json.get("value").and_then(Value::as_f64).context("the figure has no value")
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_name_the_other_program_the_rounds_and_the_figures() {
        let (other, rounds, only) = read(&["/there/strowger", "--rounds", "5", "manager_ping"]).unwrap();
        assert_eq!((other.as_path(), rounds), (Path::new("/there/strowger"), 5));
        assert_eq!(only, ["manager_ping"]);
        assert_eq!(read(&["/x"]).unwrap().1, ROUNDS);
        assert!(read(&[]).is_err() && read(&["/x", "--rounds", "many"]).is_err());
    }

    #[test]
    fn the_median_of_the_rounds_counts() {
        assert_eq!(median(&mut [1.2, 0.9, 1.01]), 1.01);
    }
}
