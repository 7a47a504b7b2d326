//! Runs every benchmark and shows what it wrote. A benchmark writes one JSON object a file below `target/bench`.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, bail};
use serde_json::Value;

use crate::workspace::Workspace;

pub fn run(workspace: &Workspace) -> anyhow::Result<()> {
    let folder = workspace.target.join("bench");
    std::fs::create_dir_all(&folder)?;
    for member in &workspace.members {
        for bench in &member.benches {
            let arguments = ["bench", "--quiet", "--package", &member.name, "--bench", bench];
            let status = Command::new("cargo").args(arguments).env("STROWGER_BENCH_DIR", &folder).status()?;
            if !status.success() {
                bail!("benchmark '{bench}' of '{}' ended with {status}", member.name);
            }
        }
    }
    let mut paths: Vec<_> = std::fs::read_dir(&folder)?.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    for path in paths.iter().filter(|path| path.extension().is_some_and(|extension| extension == "json")) {
        println!("{}", line(path)?);
    }
    Ok(())
}

/// A result as one line; a file without the six agreed fields is an error.
fn line(path: &Path) -> anyhow::Result<String> {
    let text = std::fs::read_to_string(path)?;
    row(&text).with_context(|| format!("{}", path.display()))
}

/// A figure with nothing to compare it with has `null` for baseline, its name and the ratio; one that is 0 for the ratio.
fn row(text: &str) -> anyhow::Result<String> {
    let json: Value = serde_json::from_str(text)?;
    let field = |key: &str| json.get(key).with_context(|| format!("no field \"{key}\""));
    let word = |key: &str| field(key)?.as_str().with_context(|| format!("\"{key}\" is no text"));
    let number = |key: &str| field(key)?.as_f64().with_context(|| format!("\"{key}\" is no number"));
    let (name, value, unit) = (word("name")?, number("value")?, word("unit")?);
    let mut line = format!("{name:<44} {value:>12.4} {unit:<10}");
    if !field("baseline")?.is_null() {
        line += &format!(" {:>12.4} ({})", number("baseline")?, word("baseline_name")?);
    }
    if !field("ratio")?.is_null() {
        line += &format!(" ratio {:.3}", number("ratio")?);
    }
    Ok(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_has_six_fields_and_says_which_is_missing() {
        let whole = r#"{"name":"sip parse","value":0.5,"unit":"us","baseline":3.5,"baseline_name":"best crate","ratio":0.14}"#;
        let line = row(whole).unwrap();
        assert!(line.starts_with("sip parse") && line.ends_with("3.5000 (best crate) ratio 0.140"), "{line}");
        let error = row(r#"{"name":"x","value":1}"#).unwrap_err().to_string();
        assert_eq!(error, "no field \"unit\"");
        let alone = r#"{"name":"x","value":1,"unit":"us","baseline":null,"baseline_name":null,"ratio":null}"#;
        assert!(row(alone).unwrap().trim_end().ends_with("1.0000 us"), "{}", row(alone).unwrap());
    }
}
