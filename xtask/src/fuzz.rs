//! Runs the fuzz targets of `crates/*/fuzz` for a short time each.
//!
//! They are ordinary libFuzzer programs, so a stable compiler with its coverage pass builds them and `cargo-fuzz` is
//! not needed; `cargo fuzz run` works on the same folders for longer hunts with a sanitizer.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail};

use crate::workspace::Workspace;

/// The coverage that libFuzzer steers by, with overflow and debug checks on.
const FLAGS: &str = "--cfg fuzzing -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
    -Cllvm-args=-sanitizer-coverage-trace-compares -Cdebug-assertions -Coverflow-checks -Ccodegen-units=1";
/// Flags reach only the program, not the build scripts, when a platform is named.
const PLATFORM: &str = "x86_64-unknown-linux-gnu";
/// Longest input: a SIP message of the largest size allowed.
const INPUT_BYTES_MAX: u32 = 65_536;
/// Memory above which an input is called a finding, in MB.
const MEMORY_MB_MAX: u32 = 1024;

pub fn run(workspace: &Workspace, seconds: u32) -> anyhow::Result<()> {
    if !cfg!(all(target_arch = "x86_64", target_os = "linux")) {
        println!("skipped: fuzz targets are built for {PLATFORM} only");
        return Ok(());
    }
    let mut count = 0;
    for member in &workspace.members {
        let folder = member.folder.join("fuzz");
        if !folder.join("Cargo.toml").exists() {
            continue;
        }
        let programs = build(&folder, &workspace.target.join("fuzz"))
            .with_context(|| format!("fuzz targets of '{}'", member.name))?;
        for program in programs {
            hunt(&member.name, &folder, &program, seconds)?;
            count += 1;
        }
    }
    println!("fuzz: {count} targets, {seconds} s each, nothing found");
    Ok(())
}

/// Builds a fuzz folder and returns its programs.
fn build(folder: &Path, target: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let status = Command::new("cargo")
        .args(["build", "--quiet", "--release", "--bins", "--target", PLATFORM])
        .arg("--manifest-path")
        .arg(folder.join("Cargo.toml"))
        .arg("--target-dir")
        .arg(target)
        .env("RUSTFLAGS", FLAGS)
        .env_remove("CARGO_ENCODED_RUSTFLAGS")
        .status()?;
    if !status.success() {
        bail!("cargo build ended with {status}; a C++ compiler is needed (apt-get install g++)");
    }
    let mut sources: Vec<PathBuf> =
        std::fs::read_dir(folder.join("fuzz_targets"))?.flatten().map(|entry| entry.path()).collect();
    sources.sort();
    let release = target.join(PLATFORM).join("release");
    let programs = sources.iter().filter_map(|source| source.file_stem()).map(|name| release.join(name));
    Ok(programs.filter(|program| program.exists()).collect())
}

/// Replays the committed corpus of a target, then hunts on from it. What is found is written to `artifacts`.
fn hunt(member: &str, folder: &Path, program: &Path, seconds: u32) -> anyhow::Result<()> {
    let name = program.file_name().unwrap_or_default().to_string_lossy();
    let artifacts = folder.join("artifacts").join(&*name);
    std::fs::create_dir_all(&artifacts)?;
    // The first corpus folder is where new inputs go: one of ours below `target`, so that the committed one stays.
    let fresh = program.with_extension("corpus");
    std::fs::create_dir_all(&fresh)?;
    let mut command = Command::new(program);
    command.arg(format!("-max_total_time={seconds}"));
    command.arg(format!("-max_len={INPUT_BYTES_MAX}")).arg(format!("-rss_limit_mb={MEMORY_MB_MAX}"));
    command.arg("-timeout=5").arg(format!("-artifact_prefix={}/", artifacts.display())).arg(&fresh);
    for corpus in [folder.join("corpus").join(&*name), folder.join("seeds").join(&*name)] {
        if corpus.is_dir() {
            command.arg(corpus);
        }
    }
    let output = command.output().with_context(|| format!("cannot run {}", program.display()))?;
    let said = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() {
        eprintln!("{said}");
        bail!("'{member}' target '{name}' found something: see {}", artifacts.display());
    }
    let runs = said.lines().rev().find(|line| line.starts_with("Done ")).unwrap_or("done");
    println!("fuzz: {member}/{name}: {runs}");
    Ok(())
}
