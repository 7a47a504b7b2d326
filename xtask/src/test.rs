//! Runs all tests of the workspace, to the end, and asks those that failed once more.
//!
//! Tests with real peers share two processors with everything else that a machine of a continuous integration does. What
//! fails there and passes alone is told by name at the end, so that it is looked into and lands nobody else's work on the
//! floor; what fails twice has failed.

use std::io::{BufRead, BufReader, PipeReader, Write};
use std::process::{Command, ExitStatus};

use anyhow::{Context, bail};

/// More failures than this are no accident, and none of them is asked again.
const AGAIN_MAX: usize = 3;

/// The failed tests of one program.
#[derive(Debug, PartialEq, Eq)]
struct Failed {
    /// How cargo is told which program: `-p e2e --test calls`.
    target: String,
    names: Vec<String>,
}

/// What the output of `cargo test` says, line by line.
#[derive(Debug, Default)]
struct Report {
    failed: Vec<Failed>,
    /// Names since the last program ended.
    names: Vec<String>,
    /// Tests that the last program says have failed.
    counted: usize,
    /// Something failed that is no test with a name: a program that was killed, an example in a comment.
    is_unclear: bool,
}

impl Report {
    fn line(&mut self, line: &str) {
        let named = |line: &str| Some(line.strip_prefix("test ")?.strip_suffix(" ... FAILED")?.to_owned());
        if let Some(name) = named(line) {
            self.names.push(name);
        } else if let Some(result) = line.strip_prefix("test result: FAILED. ") {
            let counted = result.split("; ").find_map(|part| part.strip_suffix(" failed"));
            self.counted = counted.and_then(|number| number.parse().ok()).unwrap_or_default();
        } else if let Some(target) =
            line.strip_prefix("error: test failed, to rerun pass `").and_then(|rest| rest.strip_suffix('`'))
        {
            let names = std::mem::take(&mut self.names);
            self.is_unclear |= names.is_empty() || names.len() != self.counted;
            self.counted = 0;
            self.failed.push(Failed { target: target.to_owned(), names });
        } else if line.starts_with("error: doctest failed") {
            self.is_unclear = true;
        }
    }
    fn count(&self) -> usize {
        self.failed.iter().map(|failed| failed.names.len()).sum()
    }
}

/// Builds and runs every test.
pub fn run() -> anyhow::Result<()> {
    let (status, report) = cargo(&["test", "--workspace", "--locked", "--no-fail-fast"])?;
    if status.success() {
        return Ok(());
    }
    let count = report.count();
    if report.is_unclear || count == 0 || count > AGAIN_MAX {
        bail!("cargo test ended with {status}");
    }
    println!("\n{count} failed: once more, alone");
    let mut unsure = Vec::new();
    for Failed { target, names } in &report.failed {
        let mut words = vec!["test", "--locked"];
        words.extend(target.split_whitespace());
        words.extend(["--", "--exact", "--test-threads=1"]);
        words.extend(names.iter().map(String::as_str));
        let (status, _) = cargo(&words)?;
        if !status.success() {
            bail!("failed twice: {} of {target}", names.join(", "));
        }
        unsure.extend(names.iter().map(|name| format!("{name} of {target}")));
    }
    for test in &unsure {
        println!("unsure: {test} failed beside others and passed alone: look into it");
    }
    Ok(())
}

/// Runs cargo, shows what it says, and reads it.
fn cargo(words: &[&str]) -> anyhow::Result<(ExitStatus, Report)> {
    let (reader, writer) = std::io::pipe()?;
    let mut command = Command::new("cargo");
    command.args(words).stdout(writer.try_clone()?).stderr(writer);
    let mut child = command.spawn().context("cargo")?;
    // What it was started with holds the other end of the pipe.
    drop(command);
    let report = read(reader)?;
    Ok((child.wait()?, report))
}

/// Passes on every line as it comes.
fn read(from: PipeReader) -> anyhow::Result<Report> {
    let mut report = Report::default();
    let mut from = BufReader::new(from);
    let mut line = Vec::new();
    let mut out = std::io::stdout().lock();
    while from.read_until(b'\n', &mut line)? > 0 {
        out.write_all(&line)?;
        report.line(String::from_utf8_lossy(&line).trim_end());
        line.clear();
    }
    Ok(report)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(text: &str) -> Report {
        let mut report = Report::default();
        text.lines().for_each(|line| report.line(line));
        report
    }

    #[test]
    fn failed_tests_are_found_with_the_program_they_belong_to() {
        let report = report(
            "     Running tests/calls.rs (target/debug/deps/calls-1)\n\
             test a_call ... ok\n\
             test another ... FAILED\n\
             test result: FAILED. 1 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 1.00s\n\
             error: test failed, to rerun pass `-p e2e --test calls`\n\
             test module::third ... FAILED\n\
             test result: FAILED. 9 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 1.00s\n\
             error: test failed, to rerun pass `-p io --lib`\n\
             error: 2 targets failed:\n    `-p e2e --test calls`\n    `-p io --lib`\n",
        );
        let failed = |target: &str, name: &str| Failed { target: target.into(), names: vec![name.into()] };
        assert_eq!(
            report.failed,
            [failed("-p e2e --test calls", "another"), failed("-p io --lib", "module::third")]
        );
        assert!(!report.is_unclear);
        assert_eq!(report.count(), 2);
    }

    #[test]
    fn what_failed_otherwise_is_not_asked_again() {
        let rows = [
            (
                "a program that was killed",
                "test a ... ok\nerror: test failed, to rerun pass `-p io --lib`\n\nCaused by:\n  process didn't exit",
            ),
            (
                "a program that says of more failures than it names",
                "test a ... FAILED\n\
                 test result: FAILED. 0 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out\n\
                 error: test failed, to rerun pass `-p io --lib`",
            ),
            (
                "an example in a comment",
                "test src/lib.rs - (line 1) ... FAILED\n\
                 test result: FAILED. 0 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out\n\
                 error: doctest failed, to rerun pass `-p io --doc`",
            ),
        ];
        for (what, text) in rows {
            assert!(report(text).is_unclear, "{what}");
        }
    }
}
