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

fn row(text: &str) -> anyhow::Result<String> {
    let json: Value = serde_json::from_str(text)?;
    let word =
        |key: &str| json.get(key).and_then(Value::as_str).with_context(|| format!("no text \"{key}\""));
    let number =
        |key: &str| json.get(key).and_then(Value::as_f64).with_context(|| format!("no number \"{key}\""));
    Ok(format!(
        "{:<44} {:>12.4} {:<10} {:>12.4} ({}) ratio {:.3}",
        word("name")?,
        number("value")?,
        word("unit")?,
        number("baseline")?,
        word("baseline_name")?,
        number("ratio")?
    ))
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
        assert_eq!(error, "no text \"unit\"");
    }
}
