//! `strowger doctor`: what the capacity of this machine depends on, what was found, why it matters and what mends it.
//!
//! Every check is a function from a [`Machine`] and a [`Wanted`] to [`Entry`]s, so that tests give it a machine of their
//! own. Nothing is changed, and nothing is started.

mod kernel;
mod limits;
mod machine;
mod network;
mod processor;
mod state;

use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use serde_json::json;

use crate::args::Args;
use machine::{Machine, RealMachine};

/// How serious an entry is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Level {
    /// As it should be.
    Good,
    /// Worth knowing; nothing is wrong.
    Note,
    /// Works, and worse than it could.
    Warning,
    /// Calls of the wanted number will be refused or broken.
    Error,
}

impl Level {
    const ALL: [Self; 4] = [Self::Good, Self::Note, Self::Warning, Self::Error];

    const fn name(self) -> &'static str {
        match self {
            Self::Good => "good",
            Self::Note => "note",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }

    /// The exit status, as monitoring programs read it: 0 is well, 1 a warning, 2 critical.
    const fn status(self) -> u8 {
        match self {
            Self::Good | Self::Note => 0,
            Self::Warning => 1,
            Self::Error => 2,
        }
    }
}

/// The exit status when there is nothing to judge by: "unknown" to monitoring programs.
pub const UNKNOWN: u8 = 3;

/// One thing that was looked at.
#[derive(Debug, Clone, PartialEq)]
struct Entry {
    check: &'static str,
    level: Level,
    found: String,
    reason: &'static str,
    remedy: Option<String>,
}

impl Entry {
    fn new(check: &'static str, level: Level, found: impl Into<String>, reason: &'static str) -> Self {
        Self { check, level, found: found.into(), reason, remedy: None }
    }
    fn good(check: &'static str, found: impl Into<String>, reason: &'static str) -> Self {
        Self::new(check, Level::Good, found, reason)
    }
    fn mend(self, remedy: impl Into<String>) -> Self {
        Self { remedy: Some(remedy.into()), ..self }
    }
}

/// Calls that a machine is judged for when neither the command line nor `maxcalls` says how many.
const CALLS: u32 = 1000;
/// Legs of a call between two phones.
const LEGS: u32 = 2;
/// Packets a second of a leg, each way, at the usual 20 ms.
const PACKETS: u32 = 50;

/// What the configuration asks of the machine.
#[derive(Debug, Clone, PartialEq)]
struct Wanted {
    /// Calls between two phones at once.
    calls: u32,
    /// Who said so.
    because: &'static str,
    /// First and last port for media.
    ports: (u16, u16),
    /// Media worker threads, when the configuration says how many.
    workers: Option<usize>,
    /// The lowest port that is listened on.
    lowest_port: u16,
    /// Whether phones may come by TCP.
    tcp: bool,
    /// Folders that are written to, and what for.
    folders: Vec<(PathBuf, &'static str)>,
}

impl Wanted {
    /// Legs at once.
    const fn legs(&self) -> u64 {
        self.calls as u64 * LEGS as u64
    }
    /// Packets a second, both directions.
    const fn packets(&self) -> u64 {
        self.legs() * PACKETS as u64 * 2
    }
    /// Pairs of an even and an odd port.
    fn pairs(&self) -> u64 {
        u64::from(::io::media::PortRange { first: self.ports.0, last: self.ports.1 }.pairs())
    }

    fn of(snapshot: &store::Snapshot, asked: Option<u32>) -> Self {
        let configured = snapshot.asterisk.options.maxcalls;
        let (calls, because) = match (asked, configured) {
            (Some(calls), _) if calls > 0 => (calls, "-M"),
            (_, calls) if calls > 0 => (calls, "maxcalls in asterisk.conf"),
            _ => (CALLS, "neither -M nor maxcalls says another number"),
        };
        let transports = snapshot.pjsip.transports.values();
        let folders = &snapshot.asterisk.directories;
        Self {
            calls,
            because,
            ports: (snapshot.rtp.rtpstart, snapshot.rtp.rtpend),
            workers: usize::try_from(snapshot.rtp.media_workers).ok().filter(|count| *count > 0),
            lowest_port: transports
                .clone()
                .filter_map(|t| t.address())
                .map(|address| address.port())
                .min()
                .unwrap_or(5060),
            tcp: transports
                .clone()
                .any(|transport| transport.protocol == store::config::pjsip::Protocol::Tcp),
            folders: vec![
                (folders.astdatadir.join("sounds"), "recordings"),
                (folders.astlogdir.clone(), "logs and call records"),
                (folders.astdbdir.clone(), "the database and registrations"),
            ],
        }
    }
}

/// A check: what it looks at, and at what it looks.
type Check = fn(&dyn Machine, &Wanted) -> Vec<Entry>;

const CHECKS: &[Check] = &[
    limits::open_files,
    limits::real_time,
    limits::capabilities,
    network::ports,
    network::local_ports,
    network::socket_buffers,
    network::lost_datagrams,
    network::backlog,
    network::accept_queue,
    network::conntrack,
    network::virtual_pairs,
    kernel::io_uring,
    kernel::sk_lookup,
    kernel::xdp,
    processor::workers,
    processor::quota,
    processor::lanes,
    processor::governor,
    processor::steal,
    state::disks,
    state::clock,
    state::clock_source,
];

fn examine(machine: &dyn Machine, wanted: &Wanted) -> Vec<Entry> {
    CHECKS.iter().flat_map(|check| check(machine, wanted)).collect()
}

/// Reads the configuration, looks at the machine, prints what was found, and returns the exit status.
pub fn run(args: &Args) -> u8 {
    match snapshot(args) {
        Ok(snapshot) => {
            let wanted = Wanted::of(&snapshot, args.max_calls);
            let machine = RealMachine::beside(&snapshot.asterisk.directories.astrundir);
            let entries = examine(&machine, &wanted);
            let text = if args.json {
                as_json(&machine, &wanted, &entries)
            } else {
                as_text(&machine, &wanted, &entries)
            };
            // A reader that closed the pipe has seen enough.
            let _gone = io::stdout().lock().write_all(text.as_bytes());
            worst(&entries).status()
        }
        Err(why) => {
            eprintln!("strowger: {why}");
            UNKNOWN
        }
    }
}

fn snapshot(args: &Args) -> Result<std::sync::Arc<store::Snapshot>, String> {
    let place = match crate::settings::site(args.config.as_deref()) {
        Some(path) => store::Where::Site(path),
        None => store::Where::Embedded(crate::embedded::place()),
    };
    match store::Snapshot::start(&place) {
        Ok((snapshot, _)) => Ok(snapshot),
        Err(findings) => {
            let said: Vec<String> = findings.iter().map(ToString::to_string).collect();
            Err(format!(
                "the configuration is refused, so there is no size to judge for:\n{}",
                said.join("\n")
            ))
        }
    }
}

fn worst(entries: &[Entry]) -> Level {
    entries.iter().map(|entry| entry.level).max().unwrap_or(Level::Good)
}

fn count(entries: &[Entry], level: Level) -> usize {
    entries.iter().filter(|entry| entry.level == level).count()
}

fn as_text(machine: &dyn Machine, wanted: &Wanted, entries: &[Entry]) -> String {
    let mut out = format!(
        "Judged for {} calls, {} packets a second ({}); limits are those of {}.\n\n",
        wanted.calls,
        wanted.packets(),
        wanted.because,
        machine.whose()
    );
    for entry in entries {
        let _ = writeln!(out, "{:<8} {}: {}", entry.level.name(), entry.check, entry.found);
        let _ = writeln!(out, "         {}", entry.reason);
        for line in entry.remedy.iter().flat_map(|remedy| remedy.lines()) {
            let _ = writeln!(out, "       > {line}");
        }
    }
    let counts =
        Level::ALL.map(|level| format!("{} {}", count(entries, level), plural(level, count(entries, level))));
    let _ = writeln!(out, "\n{}", counts.join(", "));
    out
}

fn plural(level: Level, count: usize) -> String {
    match level {
        Level::Good => "good".to_owned(),
        other if count == 1 => other.name().to_owned(),
        other => format!("{}s", other.name()),
    }
}

fn as_json(machine: &dyn Machine, wanted: &Wanted, entries: &[Entry]) -> String {
    let rows: Vec<serde_json::Value> = entries
        .iter()
        .map(|entry| {
            json!({
                "check": entry.check, "level": entry.level.name(), "found": entry.found, "reason": entry.reason,
                "remedy": entry.remedy,
            })
        })
        .collect();
    let whole = json!({
        "level": worst(entries).name(), "calls": wanted.calls, "packets_per_second": wanted.packets(),
        "limits_of": machine.whose(), "checks": rows,
    });
    format!("{whole}\n")
}

/// A path that the remedy of a check may name.
fn shown(path: &Path) -> String {
    path.display().to_string()
}

#[cfg(test)]
mod tests;
