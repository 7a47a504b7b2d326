//! How long a working day of a contact centre takes: a thousand agents and ten thousand calls an hour for eight hours, with
//! everything looked at after every second that always holds.
//!
//! `cargo bench -p queue` prints the figure and writes it as JSON to `$STROWGER_BENCH_DIR`, else to `target/bench`.
#![allow(clippy::disallowed_types, clippy::disallowed_methods, reason = "a bench reads the clock")]

use std::time::Instant;

#[path = "../tests/centre/mod.rs"]
mod centre;
#[path = "../tests/common/mod.rs"]
mod common;

/// What it may take, seconds.
const WANTED: f64 = 60.0;

fn main() {
    let began = Instant::now();
    let day = centre::working_day(9);
    let (value, calls) = (began.elapsed().as_secs_f64(), day.calls);
    let json = format!(
        "{{\"name\": \"queue_working_day\", \"value\": {value:.2}, \"unit\": \"s for {calls} calls of 1,000 agents in eight \
         hours\", \"baseline\": {WANTED}, \"baseline_name\": \"target\", \"ratio\": {:.2}}}\n",
        WANTED / value
    );
    print!("{json}");
    let folder = std::env::var("STROWGER_BENCH_DIR")
        .unwrap_or_else(|_| concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/bench").to_owned());
    let written = std::fs::create_dir_all(&folder)
        .and_then(|()| std::fs::write(format!("{folder}/queue_working_day.json"), &json));
    if let Err(error) = written {
        eprintln!("{folder}/queue_working_day.json cannot be written: {error}");
        std::process::exit(1);
    }
}
