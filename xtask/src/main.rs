//! House-keeping for developers: `cargo xtask tidy`, `metrics`, `bench`, `figures`, `test`, `fuzz`, `vectorised`,
//! `reference`, `versus`.
#![forbid(unsafe_code)]

mod bench;
mod codecs;
mod density;
mod floors;
mod fuzz;
mod iax;
mod licence;
mod media;
mod metrics;
mod picture;
mod reference;
mod sounds;
mod sources;
mod test;
mod vectorised;
mod versus;
mod workspace;

use std::process::ExitCode;

use anyhow::bail;
use workspace::Workspace;

const USAGE: &str = "\
cargo xtask tidy             dependency floors, licences, forbidden code
cargo xtask metrics          lengths of source files
cargo xtask test             run all tests; what fails is asked once more, alone, and told
cargo xtask bench            run all benchmarks and show target/bench/*.json
cargo xtask figures          write what they left into README.md, docs/codecs.md and docs/media.md, with their pictures
cargo xtask vectorised       look into the machine code of the SIMD kernels
cargo xtask reference [DIR] [--third] [--program PATH] [--json] [SCENE ...]
                             play scenes and compare with recordings of the field's server
cargo xtask versus PROGRAM [--rounds N] [FIGURE ...]
                             what target/release/strowger takes beside PROGRAM, in turns in the same run
cargo xtask fuzz [SECONDS]   run every fuzz target of crates/*/fuzz this long (default 5)
";

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match run(&words) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(words: &[&str]) -> anyhow::Result<()> {
    match words {
        ["tidy"] => tidy(&Workspace::read()?),
        ["metrics"] => {
            let workspace = Workspace::read()?;
            print!("{}", metrics::report(&sources::read(&workspace.root)?));
            Ok(())
        }
        ["test"] => test::run(),
        ["bench"] => bench::run(&Workspace::read()?),
        ["figures"] => bench::figures(&Workspace::read()?),
        ["vectorised"] => vectorised::run(&Workspace::read()?),
        ["versus", words @ ..] => versus::run(&Workspace::read()?, words),
        ["reference", words @ ..] => reference::run(&Workspace::read()?, words),
        ["fuzz"] => fuzz::run(&Workspace::read()?, 5),
        ["fuzz", seconds] => fuzz::run(&Workspace::read()?, seconds.parse()?),
        _ => bail!("usage:\n{USAGE}"),
    }
}

/// Every rule that the compiler does not know; prints all that is broken.
fn tidy(workspace: &Workspace) -> anyhow::Result<()> {
    let files = sources::read(&workspace.root)?;
    let mut broken = floors::check(workspace);
    broken.extend(licence::check(&workspace.packages));
    broken.extend(sources::check(workspace, &files));
    broken.extend(sounds::check(&workspace.root, &files)?);
    for line in &broken {
        eprintln!("tidy: {line}");
    }
    for file in files.iter().filter(|file| file.lines() > sources::LONG_LINES) {
        println!("tidy: note: {} has {} lines: does it have two owners?", file.path, file.lines());
    }
    if broken.is_empty() {
        let (crates, packages) = (workspace.members.len(), workspace.packages.len());
        println!("tidy: {crates} crates, {packages} packages, {} source files: in order", files.len());
        return Ok(());
    }
    bail!("{} rules broken", broken.len())
}
