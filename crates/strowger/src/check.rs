//! `strowger check DIR`: what would not work in a configuration folder, line by line.

use std::io::{self, Write};
use std::path::Path;

use conf::Findings;
use store::Snapshot;

/// Prints every finding and a summary, or all findings as JSON. The exit status is 1 when something would not run.
/// `dialplan` adds what compiling the dialplan finds.
pub fn run(
    folder: &Path,
    (json, exec): (bool, bool),
    dialplan: &mut dyn FnMut(&Snapshot, &mut Findings),
) -> anyhow::Result<u8> {
    anyhow::ensure!(
        folder.is_dir(),
        "{} is no folder; name the one that holds asterisk.conf",
        folder.display()
    );
    let findings = store::check(folder, exec, dialplan);
    let mut out = io::stdout().lock();
    let said = if json {
        writeln!(out, "{}", serde_json::to_string(&findings)?)
    } else {
        writeln!(out, "{findings}{}", store::summary(&findings))
    };
    // A reader that closed the pipe has seen enough.
    match said {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error.into()),
        _ => Ok(u8::from(findings.has_errors())),
    }
}
