//! `strowger check DIR`: whether a server would run on a configuration folder, and what would not work, line by line.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::Path;

use conf::Level;
use engine::Remark;
use serde_json::json;

/// Whether a server would run.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Verdict {
    /// All of it.
    Whole,
    /// It starts, and so many things that are used do not work.
    InPart(usize),
    /// It does not start: these files of the core are refused.
    Refused(Vec<String>),
    /// It starts and serves nobody, because of this.
    Nobody(String),
}

impl Verdict {
    /// The exit status of the command.
    fn status(&self) -> u8 {
        match self {
            Self::Whole => 0,
            Self::Refused(_) | Self::Nobody(_) => 1,
            Self::InPart(_) => 2,
        }
    }
    /// The word for programs.
    fn word(&self) -> &'static str {
        match self {
            Self::Whole => "whole",
            Self::InPart(_) => "part",
            Self::Refused(_) | Self::Nobody(_) => "not",
        }
    }
    /// The line for people.
    fn line(&self) -> String {
        match self {
            Self::Whole => "The server would run whole.".to_owned(),
            Self::InPart(1) => "The server would run in part: 1 thing that is used will not work.".to_owned(),
            Self::InPart(n) => {
                format!("The server would run in part: {n} things that are used will not work.")
            }
            Self::Refused(files) => {
                format!("The server would not start: refused as a whole: {}.", files.join(", "))
            }
            Self::Nobody(why) => {
                format!("The site will not run: {why}. The server would start, and serve nobody.")
            }
        }
    }
}

/// Prints the verdict, every finding and a summary, or all of it as JSON. The exit status is the verdict's.
/// `exec` lets `#exec` run commands.
pub fn run(folder: &Path, (json, exec): (bool, bool)) -> anyhow::Result<u8> {
    if !folder.is_dir() {
        eprintln!("strowger: {} is no folder; name the one that holds asterisk.conf", folder.display());
        return Ok(crate::MISUSED);
    }
    let store::Examined { snapshot, mut findings, refused } = store::examine(folder, exec);
    if let Some(snapshot) = &snapshot {
        snapshot.check_sounds(&mut findings);
    }
    let (remarks, nobody) = match &snapshot {
        Some(snapshot) => (engine::check_site(snapshot, findings), engine::nobody_served(snapshot, folder)),
        None => (Vec::new(), None),
    };
    let errors = remarks.iter().filter(|remark| remark.used && remark.finding.level == Level::Error).count();
    let errors = errors.max(refused.len());
    let core: Vec<String> = refused.into_iter().filter(|file| store::is_core_file(file)).collect();
    let verdict = match (core.is_empty(), nobody, errors) {
        (false, ..) => Verdict::Refused(core),
        (_, Some(why), _) => Verdict::Nobody(why),
        (_, None, 0) => Verdict::Whole,
        (_, None, errors) => Verdict::InPart(errors),
    };
    let mut out = io::stdout().lock();
    let said =
        if json { as_json(&verdict, &remarks, &mut out) } else { as_text(&verdict, &remarks, &mut out) };
    // A reader that closed the pipe has seen enough.
    match said {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error.into()),
        _ => Ok(verdict.status()),
    }
}

fn as_text(verdict: &Verdict, remarks: &[Remark], out: &mut impl Write) -> io::Result<()> {
    writeln!(out, "{}", verdict.line())?;
    let (used, unused): (Vec<&Remark>, Vec<&Remark>) = remarks.iter().partition(|remark| remark.used);
    used.iter().try_for_each(|remark| writeln!(out, "{}", remark.finding))?;
    if !unused.is_empty() {
        writeln!(out, "There, and nothing leads to it:")?;
        unused.iter().try_for_each(|remark| writeln!(out, "{}", remark.finding))?;
    }
    let count = |level: Level, one: &str, many: &str| match remarks
        .iter()
        .filter(|remark| remark.finding.level == level)
        .count()
    {
        1 => format!("1 {one}"),
        n => format!("{n} {many}"),
    };
    writeln!(
        out,
        "{}, {}, {}",
        count(Level::Error, "error", "errors"),
        count(Level::Warning, "warning", "warnings"),
        count(Level::Note, "note", "notes")
    )
}

fn as_json(verdict: &Verdict, remarks: &[Remark], out: &mut impl Write) -> io::Result<()> {
    let mut words = Words::default();
    let findings: Vec<serde_json::Value> = remarks
        .iter()
        .map(|remark| {
            let finding = &remark.finding;
            json!({
                "file": &*finding.place.file,
                "line": finding.place.line,
                "severity": finding.level.as_str(),
                "kind": remark.kind,
                "word": words.of(remark),
                "message": finding.message,
                "remedy": finding.remedy,
                "used": remark.used,
            })
        })
        .collect();
    let whole = json!({
        "verdict": verdict.word(),
        "exit": verdict.status(),
        "summary": verdict.line(),
        "findings": findings,
    });
    writeln!(out, "{whole}")
}

/// Lines of files that findings are about.
#[derive(Default)]
struct Words {
    files: BTreeMap<String, Vec<String>>,
}

impl Words {
    /// The word of the file that a finding is about: one that it quotes and that stands in its line, else the name before
    /// `=`; empty when the finding is about a whole file.
    fn of(&mut self, remark: &Remark) -> String {
        let place = &remark.finding.place;
        let lines = self.files.entry(place.file.to_string()).or_insert_with(|| {
            let bytes = std::fs::read(&*place.file).unwrap_or_default();
            String::from_utf8_lossy(&bytes).lines().map(str::to_owned).collect()
        });
        let at = usize::try_from(place.line).unwrap_or(0);
        let Some(line) = at.checked_sub(1).and_then(|at| lines.get(at)) else { return String::new() };
        let mut quoted: Vec<&str> = Vec::new();
        for (open, close) in [('\'', '\''), ('`', '`'), ('[', ']')] {
            let mut rest = remark.finding.message.as_str();
            while let Some((_, behind)) = rest.split_once(open) {
                let Some((word, after)) = behind.split_once(close) else { break };
                quoted.push(word);
                rest = after;
            }
        }
        let spoken = remark.finding.message.split([' ', ',', ':', '(']).filter(|word| word.len() > 3);
        let found = quoted.into_iter().find(|word| !word.is_empty() && line.contains(word));
        let found = found.or_else(|| spoken.clone().find(|word| line.contains(word) && !word.contains('.')));
        found.unwrap_or_else(|| line.split('=').next().unwrap_or("").trim()).to_owned()
    }
}
