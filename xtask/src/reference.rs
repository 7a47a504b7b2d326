//! Plays scenes against the built program and compares what it did with recordings of the field's server.
//!
//! The scenes, the player and the judge lie outside the project (`../shared/reference`); a machine without them says so and
//! goes on. What legitimately differs stands in `tests/reference-exceptions.txt`, a regular expression a line with its reason
//! above it; what each scene has reached stands in `tests/reference-floors.txt` and may only rise.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{Context, bail};
use serde_json::json;

use crate::workspace::Workspace;

/// Where the scenes lie when nobody says.
const SCENES: &str = "../shared/reference/scenes";
/// Most exceptions: more would be an excuse.
const EXCEPTIONS_MAX: usize = 40;
/// Scenes that are played at once.
const PLAYED_AT_ONCE: usize = 2;
/// Of so many scenes `--third` plays one.
const THIRD: usize = 3;

/// What is asked for.
#[derive(Debug, Default)]
struct Asked {
    folder: Option<PathBuf>,
    program: Option<PathBuf>,
    json: bool,
    third: bool,
    only: Vec<String>,
}

/// How a scene came out.
#[derive(Debug, Clone, PartialEq)]
struct Outcome {
    differences: u64,
    facts: u64,
    /// Percent of the facts that were found equal.
    score: f64,
}

/// `cargo xtask reference [DIR] [--program PATH] [--json] [--third] [SCENE ...]`.
pub fn run(workspace: &Workspace, words: &[&str]) -> anyhow::Result<()> {
    let asked = read(words)?;
    let folder = asked.folder.clone().unwrap_or_else(|| workspace.root.join(SCENES));
    let folder = if folder.join("scenes").is_dir() { folder.join("scenes") } else { folder };
    let above = folder.parent().context("the folder of scenes has none above it")?.to_owned();
    if !above.join("play.py").is_file() {
        if asked.folder.is_some() {
            bail!("{} has no play.py: name a folder of scenes beside it", above.display());
        }
        println!("skipped: recordings of the field's server, which are not at {SCENES}");
        return Ok(());
    }
    if !has_python() {
        println!("skipped: recordings of the field's server; playing them needs python3 of 3.11 or later");
        return Ok(());
    }
    let program = program(workspace, asked.program.clone())?;
    let out = workspace.root.join("target/reference");
    std::fs::create_dir_all(&out)?;
    let ignored = exceptions(workspace, &above, &out)?;
    let floors = floors(workspace)?;
    let scenes = scenes(&folder, &asked)?;
    println!("{} scenes of {} against {}", scenes.len(), folder.display(), program.display());
    let stage = Stage { above, folder, program, out, ignored };
    let mut outcomes = stage.play_all(&scenes);
    // Two processors play two scenes and everything else: what fell short is played once more, alone.
    for (name, floor) in &floors {
        let fell = |outcomes: &BTreeMap<String, anyhow::Result<Outcome>>| {
            outcomes.get(name).is_some_and(|outcome| !reaches(outcome, *floor))
        };
        if fell(&outcomes) {
            outcomes.insert(name.clone(), stage.play(name));
        }
    }
    report(&outcomes, &floors, asked.json)
}

fn read(words: &[&str]) -> anyhow::Result<Asked> {
    let mut asked = Asked::default();
    let mut words = words.iter();
    while let Some(word) = words.next() {
        match *word {
            "--json" => asked.json = true,
            "--third" => asked.third = true,
            "--program" => asked.program = Some(words.next().context("--program needs a path")?.into()),
            flag if flag.starts_with('-') => bail!("there is no option {flag}"),
            path if asked.folder.is_none() && (path.contains('/') || Path::new(path).is_dir()) => {
                asked.folder = Some(path.into());
            }
            name => asked.only.push(name.to_owned()),
        }
    }
    Ok(asked)
}

fn has_python() -> bool {
    let asks = "import sys; sys.exit(sys.version_info < (3, 11))";
    let ran = Command::new("python3").args(["-c", asks]).stdout(Stdio::null()).stderr(Stdio::null()).status();
    ran.is_ok_and(|status| status.success())
}

fn program(workspace: &Workspace, named: Option<PathBuf>) -> anyhow::Result<PathBuf> {
    let built = ["target/release/strowger", "target/debug/strowger"].map(|path| workspace.root.join(path));
    let newest = |path: &PathBuf| path.metadata().and_then(|about| about.modified()).ok();
    let found = named.or_else(|| built.into_iter().filter(|path| path.is_file()).max_by_key(newest));
    let found = found.context("the program is not built: run `make build`, or name it with --program")?;
    found.canonicalize().with_context(|| format!("{}", found.display()))
}

/// The exceptions of the project and those that come with the scenes, in one file.
fn exceptions(workspace: &Workspace, above: &Path, out: &Path) -> anyhow::Result<PathBuf> {
    let own =
        std::fs::read_to_string(workspace.root.join("tests/reference-exceptions.txt")).unwrap_or_default();
    let count = lines_of(&own).count();
    if count > EXCEPTIONS_MAX {
        bail!("tests/reference-exceptions.txt has {count} exceptions, more than {EXCEPTIONS_MAX}");
    }
    let theirs = std::fs::read_to_string(above.join("ignore.txt")).unwrap_or_default();
    let path = out.join("ignore.txt");
    std::fs::write(&path, format!("{theirs}\n{own}"))?;
    Ok(path)
}

fn lines_of(text: &str) -> impl Iterator<Item = &str> {
    text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'))
}

fn floors(workspace: &Workspace) -> anyhow::Result<BTreeMap<String, f64>> {
    let text = std::fs::read_to_string(workspace.root.join("tests/reference-floors.txt")).unwrap_or_default();
    let floor = |line: &str| {
        let (name, percent) = line.split_once(' ').context("a line is a scene and a percentage")?;
        Ok((name.to_owned(), percent.trim().parse()?))
    };
    lines_of(&text).map(floor).collect()
}

fn scenes(folder: &Path, asked: &Asked) -> anyhow::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in std::fs::read_dir(folder).with_context(|| format!("{}", folder.display()))? {
        let entry = entry?;
        if entry.path().join("scene.py").is_file() {
            names.extend(entry.file_name().into_string().ok());
        }
    }
    names.sort();
    if !asked.only.is_empty() {
        if let Some(unknown) = asked.only.iter().find(|name| !names.contains(name)) {
            bail!("there is no scene {unknown}");
        }
        return Ok(asked.only.clone());
    }
    let step = if asked.third { THIRD } else { 1 };
    Ok(names.into_iter().step_by(step).collect())
}

/// Where scenes are played.
struct Stage {
    above: PathBuf,
    folder: PathBuf,
    program: PathBuf,
    out: PathBuf,
    ignored: PathBuf,
}

impl Stage {
    fn play_all(&self, scenes: &[String]) -> BTreeMap<String, anyhow::Result<Outcome>> {
        let (next, outcomes) = (AtomicUsize::new(0), Mutex::new(BTreeMap::new()));
        std::thread::scope(|scope| {
            for _ in 0..PLAYED_AT_ONCE {
                scope.spawn(|| {
                    while let Some(name) = scenes.get(next.fetch_add(1, Ordering::Relaxed)) {
                        let outcome = self.play(name);
                        let mut outcomes = outcomes.lock().unwrap_or_else(|broken| broken.into_inner());
                        outcomes.insert(name.clone(), outcome);
                    }
                });
            }
        });
        outcomes.into_inner().unwrap_or_else(|broken| broken.into_inner())
    }
    fn play(&self, name: &str) -> anyhow::Result<Outcome> {
        let (scene, recording) = (self.folder.join(name), self.out.join(format!("{name}.json")));
        let played = Command::new("python3")
            .arg(self.above.join("play.py"))
            .arg(&self.program)
            .arg(&scene)
            .arg("-o")
            .arg(&recording)
            .output()?;
        if !played.status.success() {
            let said = String::from_utf8_lossy(&played.stderr);
            bail!("it was not played to its end: {}", said.lines().last().unwrap_or("it says nothing"));
        }
        let expected =
            std::fs::read_dir(&scene)?.filter_map(Result::ok).map(|entry| entry.path()).find(|path| {
                path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("asterisk-"))
            });
        let judged = Command::new("python3")
            .arg(self.above.join("compare.py"))
            .arg(expected.context("the scene has no recording")?)
            .arg(&recording)
            .arg("--ignore")
            .arg(&self.ignored)
            .output()?;
        let said = String::from_utf8_lossy(&judged.stdout);
        std::fs::write(self.out.join(format!("{name}.txt")), said.as_bytes())?;
        said.lines().last().and_then(verdict).context("the judge says nothing that is understood")
    }
}

/// `85 differences, 4568 facts, score 97.9%`.
fn verdict(line: &str) -> Option<Outcome> {
    let mut parts = line.split(", ");
    let differences = parts.next()?.strip_suffix(" differences")?.parse().ok()?;
    let facts = parts.next()?.strip_suffix(" facts")?.parse().ok()?;
    let score = parts.next()?.strip_prefix("score ")?.strip_suffix('%')?.parse().ok()?;
    Some(Outcome { differences, facts, score })
}

fn reaches(outcome: &anyhow::Result<Outcome>, floor: f64) -> bool {
    outcome.as_ref().is_ok_and(|outcome| outcome.score >= floor)
}

fn report(
    outcomes: &BTreeMap<String, anyhow::Result<Outcome>>,
    floors: &BTreeMap<String, f64>,
    as_json: bool,
) -> anyhow::Result<()> {
    let scores: Vec<f64> =
        outcomes.values().map(|outcome| outcome.as_ref().map_or(0.0, |of| of.score)).collect();
    #[expect(clippy::cast_precision_loss, reason = "there are some dozens of scenes")]
    let mean = scores.iter().sum::<f64>() / scores.len().max(1) as f64;
    if as_json {
        let rows: Vec<_> = outcomes
            .iter()
            .map(|(name, outcome)| match outcome {
                Ok(of) => json!({ "scene": name, "differences": of.differences, "facts": of.facts, "score": of.score }),
                Err(why) => json!({ "scene": name, "error": format!("{why:#}") }),
            })
            .collect();
        println!("{}", json!({ "scenes": rows, "mean": mean }));
    } else {
        for (name, outcome) in outcomes {
            match outcome {
                Ok(of) => {
                    println!("{name:32} {:5} of {:6} facts {:6.1} %", of.differences, of.facts, of.score);
                }
                Err(why) => println!("{name:32} {why:#}"),
            }
        }
        println!("{:32} {mean:27.1} %", "mean");
        println!("the differences of each scene: target/reference/SCENE.txt");
    }
    let fallen: Vec<String> = outcomes
        .iter()
        .filter_map(|(name, outcome)| {
            let floor = *floors.get(name)?;
            (!reaches(outcome, floor)).then(|| format!("{name} (below {floor} %)"))
        })
        .collect();
    if fallen.is_empty() {
        return Ok(());
    }
    bail!("scenes that were better before: {}", fallen.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_line_of_the_judge_is_understood() {
        let of = |differences, facts, score| Some(Outcome { differences, facts, score });
        for (line, expected) in [
            ("85 differences, 4568 facts, score 97.9%", of(85, 4568, 97.9)),
            ("0 differences, 12 facts, score 100.0%", of(0, 12, 100.0)),
            ("Traceback (most recent call last):", None),
            ("", None),
        ] {
            assert_eq!(verdict(line), expected, "{line}");
        }
    }

    #[test]
    fn words_are_a_folder_a_program_and_scenes() {
        let asked = read(&["../scenes", "--program", "x", "agi", "--third"]).unwrap();
        assert_eq!(asked.folder, Some("../scenes".into()));
        assert_eq!(
            (asked.program, asked.third, asked.only),
            (Some("x".into()), true, vec!["agi".to_owned()])
        );
        assert!(read(&["--fast"]).is_err());
    }

    #[test]
    fn a_scene_below_its_floor_or_not_played_has_fallen() {
        let outcome = |score| Ok(Outcome { differences: 1, facts: 2, score });
        for (name, outcome, reached) in [
            ("at its floor", outcome(97.0), true),
            ("below", outcome(96.9), false),
            ("not played", Err(anyhow::anyhow!("no")), false),
        ] {
            assert_eq!(reaches(&outcome, 97.0), reached, "{name}");
        }
    }
}
