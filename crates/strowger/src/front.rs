//! Everything the program may be asked for that is not being the server.
//!
//! Knows the control socket and the terminal, not the configuration: `main` says where the socket is.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use control::cli_client::run_once;
use control::console::{self, Seat};

use crate::args::{Args, Mode, USAGE};

/// Where the history of consoles is kept, in the person's home.
const HISTORY: &str = ".strowger_history";

/// Does what `args` ask, if it needs no server of our own, and returns the exit status.
/// `None`: it is the business of `main`.
pub fn run(args: &Args, socket: &Path) -> Option<u8> {
    let mut out = io::stdout().lock();
    let said = match &args.mode {
        Mode::Help => write!(out, "{}\n\n{USAGE}", control::VERSION),
        Mode::Version => writeln!(out, "{}", control::VERSION),
        Mode::Codecs => out.write_all(codecs(args.json).as_bytes()),
        Mode::Run { command } => {
            return Some(run_once(socket, command, args.json, &mut out, &mut io::stderr()));
        }
        Mode::Console => {
            drop(out);
            return Some(attach(args, socket, Seat::Remote));
        }
        Mode::Serve
        | Mode::Check { .. }
        | Mode::Doctor
        | Mode::Codec(_)
        | Mode::CodecBench(_)
        | Mode::Db(_) => {
            return None;
        }
    };
    // A reader that closed the pipe has seen enough.
    Some(u8::from(said.is_err_and(|error| error.kind() != io::ErrorKind::BrokenPipe)))
}

/// Attaches a console to the server at `socket` and returns the exit status.
pub fn attach(args: &Args, socket: &Path, seat: Seat) -> u8 {
    let options = console::Options {
        socket: socket.to_owned(),
        history: std::env::var_os("HOME").map(|home| PathBuf::from(home).join(HISTORY)),
        seat,
        verbose: if args.mute { 0 } else { args.verbose },
        debug: if args.mute { 0 } else { args.debug },
        // https://no-color.org
        color: !args.no_color && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty()),
        timestamps: args.timestamps,
        host: ::io::process::host_name(),
    };
    match console::run(&options) {
        Ok(status) => status,
        Err(error) => {
            eprintln!("{error}: {}; {}", error.source, error.remedy());
            1
        }
    }
}

/// The built-in codecs, one a line or as JSON.
fn codecs(json: bool) -> String {
    let all = base::FormatId::ALL;
    if json {
        let rows: Vec<String> = all
            .iter()
            .map(|id| {
                // Names and descriptions come from our own table and hold nothing that JSON would escape.
                format!(
                    "{{\"name\":\"{}\",\"rate\":{},\"description\":\"{}\",\"coding\":\"{}\"}}",
                    id.name(),
                    id.rate().0,
                    id.description(),
                    id.coding().name()
                )
            })
            .collect();
        return format!("[{}]\n", rows.join(","));
    }
    let row = |id: &base::FormatId| {
        format!("{:<8} {:>6} Hz  {:<12}  {}\n", id.name(), id.rate().0, id.coding().name(), id.description())
    };
    all.iter().map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codecs_are_listed_for_people_and_for_scripts() {
        let text = codecs(false);
        assert!(text.starts_with("ulaw       8000 Hz  native        G.711 u-law\n"), "{text}");
        assert_eq!(text.lines().count(), base::FormatId::ALL.len());
        let json = codecs(true);
        assert!(
            json.starts_with(
                "[{\"name\":\"ulaw\",\"rate\":8000,\"description\":\"G.711 u-law\",\"coding\":\"native\"},"
            ),
            "{json}"
        );
    }
}
