//! Runs every benchmark and shows what it wrote. A benchmark writes one JSON object a file below `target/bench`.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail};
use serde_json::Value;

use crate::codecs;
use crate::density::Density;
use crate::iax;
use crate::media;
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
    for path in results(&folder)? {
        println!("{}", line(&path)?);
    }
    Ok(())
}

/// Writes the tables of figures in README.md, docs/codecs.md, docs/iax2.md and docs/media.md anew, and the pictures, from what the last
/// benchmarks left. What was not measured stays.
pub fn figures(workspace: &Workspace) -> anyhow::Result<()> {
    let mut rows = String::new();
    let [mut of_codecs, mut of_media, mut of_iax] = [const { codecs::Figures::new() }; 3];
    let mut density = Density::default();
    for path in results(&workspace.target.join("bench"))? {
        let text = std::fs::read_to_string(&path)?;
        if density.take(&serde_json::from_str(&text).with_context(|| format!("{}", path.display()))?) {
            continue;
        }
        let (name, figure) = codecs::parse(&text).with_context(|| format!("{}", path.display()))?;
        if codecs::is_one(&name) {
            of_codecs.insert(name, figure);
        } else if media::is_one(&name) {
            of_media.insert(name, figure);
        } else if iax::is_one(&name) {
            of_iax.insert(name, figure);
        } else {
            rows += &cells(&text).with_context(|| format!("{}", path.display()))?;
        }
    }
    let machine = machine();
    let readme = workspace.root.join("README.md");
    if !rows.is_empty() {
        let table =
            format!("| Figure | Strowger | Compared with |\n|---|---|---|\n{rows}\nMeasured on {machine}.\n");
        replace(&readme, "figures", &table)?;
    }
    if let Some(lines) = codecs::headlines(&of_codecs) {
        replace(&readme, "figures of codecs", &lines)?;
    }
    let docs = workspace.root.join("docs");
    if let Some(tables) = codecs::tables(&of_codecs, &machine) {
        replace(&docs.join("codecs.md"), "figures of codecs", &tables)?;
    }
    for (place, table) in [("ticks", media::ticks(&of_media)), ("scaling", media::scaling(&of_media))] {
        if let Some(table) = table {
            let table =
                format!("{table}\nMeasured on {machine}, a virtual machine that other work shared.\n");
            replace(&docs.join("media.md"), place, &table)?;
        }
    }
    if let (Some(lines), Some(tables)) = (density.headlines(), density.tables()) {
        replace(&readme, "density", &lines)?;
        let tables = format!("{tables}\nMeasured on {machine}, a virtual machine that other work shared.\n");
        replace(&docs.join("media.md"), "density", &tables)?;
    }
    if let Some(table) = iax::table(&of_iax) {
        replace(&readme, "figures of iax2", &table)?;
        let table = format!("{table}\nMeasured on {machine}, a virtual machine that other work shared.\n");
        replace(&docs.join("iax2.md"), "figures", &table)?;
    }
    iax::draw(&of_iax, &docs)?;
    density.draw(&docs)?;
    media::draw(&of_media, &docs)?;
    codecs::draw(&of_codecs, &docs)
}

/// Replaces what stands between `<!-- NAME -->` and `<!-- end of NAME -->`.
fn replace(page: &Path, name: &str, text: &str) -> anyhow::Result<()> {
    let (begin, end) = (format!("<!-- {name} -->\n"), format!("<!-- end of {name} -->"));
    let old = std::fs::read_to_string(page)?;
    let place = || format!("{} has no place for {name}", page.display());
    let (head, rest) = old.split_once(&begin).with_context(place)?;
    let (_, tail) = rest.split_once(&end).with_context(place)?;
    std::fs::write(page, format!("{head}{begin}{text}{end}{tail}"))?;
    Ok(())
}

/// Files of results, by name.
fn results(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let mut paths: Vec<_> = std::fs::read_dir(folder)?.flatten().map(|entry| entry.path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "json"));
    paths.sort();
    Ok(paths)
}

/// Processor and number of cores, as the kernel names them.
fn machine() -> String {
    let cpus = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let models: Vec<&str> = cpus.lines().filter(|line| line.starts_with("model name")).collect();
    let model = models
        .first()
        .and_then(|line| line.split_once(": "))
        .map_or("an unnamed processor", |(_, name)| name);
    format!("{model}, {} cores", models.len().max(1))
}

/// A result as a row of the README's table.
fn cells(text: &str) -> anyhow::Result<String> {
    let json: Value = serde_json::from_str(text)?;
    let text = |key: &str| json.get(key).and_then(Value::as_str).unwrap_or_default();
    let number = |key: &str| json.get(key).and_then(Value::as_f64);
    let value = number("value").context("no value")?;
    let other = number("baseline").map(|baseline| format!("{}, {}", short(baseline), text("baseline_name")));
    let name = text("name").replace('_', " ");
    Ok(format!("| {name} | {} {} | {} |\n", short(value), text("unit"), other.unwrap_or_default()))
}

/// Three digits that mean something.
pub fn short(number: f64) -> String {
    let digits = if number == 0.0 { 0 } else { (2 - number.abs().log10().floor() as i32).clamp(0, 6) };
    format!("{number:.*}", usize::try_from(digits).unwrap_or(0))
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
    fn a_figure_becomes_a_row_with_three_digits_that_mean_something() {
        let text = r#"{"name":"sip_parse","value":0.93284,"unit":"us","baseline":6.0649,"baseline_name":"x","ratio":0.1}"#;
        assert_eq!(cells(text).unwrap(), "| sip parse | 0.933 us | 6.06, x |\n");
        let text = r#"{"name":"wakes","value":0,"unit":"a second","baseline":null,"baseline_name":null,"ratio":null}"#;
        assert_eq!(cells(text).unwrap(), "| wakes | 0 a second |  |\n");
        for (number, shown) in [(7865.0, "7865"), (0.02896, "0.0290"), (13.0, "13.0")] {
            assert_eq!(short(number), shown);
        }
    }

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
