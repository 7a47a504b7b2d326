//! The media plane: RTP, workers, music.

use std::fmt::Write as _;
use std::net::SocketAddr;

use io::media::{Tracing, Watch, WorkerLoad};
use serde_json::{Value, json};
use store::config::music::{KillMethod, Mode};

use super::text::{clean, yes_no};
use super::{Ask, Cli, Row, Said, show, verb};

/// Files of a folder of music that are listed; a folder that holds more is no folder of music.
const MUSIC_FILES_MAX: usize = 10_000;

pub(super) const ROWS: &[Row] = &[
    verb("rtp set debug on|off", "Switches the trace of RTP packets.", |cli, ask| {
        cli.set_trace("RTP", ask, |tracing| &mut tracing.rtp)
    })
    .detail(
        "Each packet is a line on consoles and in files that take verbose lines; bursts are counted instead.",
    ),
    verb(
        "rtp set debug ip <address>",
        "Traces RTP packets of one host; of one port with address:port.",
        |cli, ask| cli.set_trace("RTP", ask, |tracing| &mut tracing.rtp),
    ),
    verb("rtcp set debug on|off", "Switches the trace of RTCP packets.", |cli, ask| {
        cli.set_trace("RTCP", ask, |tracing| &mut tracing.rtcp)
    }),
    verb(
        "rtcp set debug ip <address>",
        "Traces RTCP packets of one host; of one port with address:port.",
        |cli, ask| cli.set_trace("RTCP", ask, |tracing| &mut tracing.rtcp),
    ),
    show(
        "rtp show settings",
        "Shows what rtp.conf set, and how many ports are in use.",
        "settings [name value] port_pairs port_pairs_in_use streams",
        Cli::rtp_show_settings,
    ),
    show(
        "media show io",
        "Shows how media is moved, why that way, and what each worker does.",
        "backend wanted reason kernel_relay streams commands_delayed workers [streams ticks late_ticks received sent panics busy_permille \
         events_delayed tick_ms cpu_ns unsent by_xdp relayed relays relays_begun discarded discards]",
        Cli::media_show_io,
    ),
    show(
        "moh show classes",
        "Lists classes of music on hold.",
        "classes [name mode directory sort loaded]",
        Cli::moh_show_classes,
    ),
    show("moh show files", "Lists the files of each class.", "classes [name files]", Cli::moh_show_files),
    verb("moh reload", "Reads musiconhold.conf again, and everything else with it.", |cli, _| {
        cli.reload_part("res_musiconhold", "")
    }),
];

/// A host to trace: `192.0.2.1`, `192.0.2.1:4000`, `[2001:db8::1]:4000`.
fn host(text: &str) -> Option<Watch> {
    let alone = text.parse().ok().map(|ip| Watch::Host(ip, None));
    alone.or_else(|| {
        let address: SocketAddr = text.parse().ok()?;
        Some(Watch::Host(address.ip(), Some(address.port())))
    })
}

impl Cli {
    fn set_trace(&self, what: &str, ask: &Ask<'_>, part: fn(&mut Tracing) -> &mut Watch) -> Said {
        let named = ask.arg("address");
        let watch = match named {
            Some(text) => match host(text) {
                Some(watch) => watch,
                None => return Said::failed(format!("Could not look up IP address {}\n", clean(text))),
            },
            None if ask.choice() == Some("on") => Watch::All,
            None => Watch::Off,
        };
        let mut media = self.site.media.borrow_mut();
        let mut tracing = media.tracing();
        *part(&mut tracing) = watch;
        media.trace(tracing);
        Said::done(match (watch, named) {
            (Watch::Off, _) => format!("{what} Packet Debugging Disabled\n"),
            (Watch::Host(..), Some(named)) => {
                format!("{what} Packet Debugging Enabled for address: {named}\n")
            }
            (Watch::All | Watch::Host(..), _) => format!("{what} Packet Debugging Enabled\n"),
        })
    }

    fn rtp_show_settings(&self, ask: &mut Ask<'_>) -> Said {
        let snapshot = self.site.snapshot.borrow();
        let media = self.site.media.borrow();
        let (rtp, ports) = (&snapshot.rtp, media.ports());
        let range = ports.range();
        let rows: Vec<(&str, String)> = vec![
            ("Port start", range.first.to_string()),
            ("Port end", range.last.to_string()),
            ("Checksums", yes_no(rtp.rtpchecksums).to_owned()),
            ("DTMF Timeout", rtp.dtmftimeout.to_string()),
            ("Strict RTP", format!("{:?}", rtp.strictrtp)),
            ("Probation", format!("{} frames", rtp.probation)),
            ("Replay Protect", yes_no(rtp.srtpreplayprotection).to_owned()),
            // Neither is built in.
            ("ICE support", yes_no(false).to_owned()),
            ("STUN", "disabled".to_owned()),
            (" Address", "0.0.0.0:0".to_owned()),
        ];
        let data = || {
            let rows: Vec<Value> =
                rows.iter().map(|(name, value)| json!({ "name": name, "value": value })).collect();
            json!({
                "settings": rows, "port_pairs": range.pairs(), "port_pairs_in_use": ports.leased(),
                "streams": media.streams(),
            })
        };
        let text = || {
            let mut out = String::from("\n\nGeneral Settings:\n----------------\n");
            for (name, value) in &rows {
                let _ = writeln!(out, "  {:<17}{value}", format!("{name}:"));
            }
            out
        };
        ask.show(data, text)
    }

    fn media_show_io(&self, ask: &mut Ask<'_>) -> Said {
        let media = self.site.media.borrow();
        let io = media.io();
        let workers: Vec<WorkerLoad> = media.loads().workers().collect();
        let wanted = self.site.snapshot.borrow().rtp.media_io.word();
        let discarded = |worker: &WorkerLoad| worker.discards.iter().sum::<u64>();
        let total = media.loads().total();
        let relay = match io.kernel_relay() {
            Ok(()) => {
                let WorkerLoad { relays, relays_begun, relayed, .. } = total;
                format!("in the kernel {relays} bridges, begun {relays_begun} times, {relayed} packets")
            }
            Err(why) => format!("none in the kernel: {why}"),
        };
        let data = || {
            let rows: Vec<Value> = workers
                .iter()
                .map(|worker| {
                    let reasons = worker.discarded().map(|(why, count)| (why.to_owned(), count.into()));
                    let discards: serde_json::Map<String, Value> = reasons.collect();
                    json!({
                        "streams": worker.streams, "ticks": worker.ticks, "late_ticks": worker.late_ticks,
                        "received": worker.received, "sent": worker.sent, "panics": worker.panics,
                        "busy_permille": worker.busy_permille, "events_delayed": worker.events_delayed,
                        "tick_ms": worker.tick_ms, "cpu_ns": worker.cpu_nanos, "unsent": worker.unsent,
                        "by_xdp": worker.by_xdp, "relayed": worker.relayed, "relays": worker.relays,
                        "relays_begun": worker.relays_begun,
                        "discarded": discarded(worker), "discards": discards,
                    })
                })
                .collect();
            json!({
                "backend": io.used().name(), "wanted": wanted, "reason": io.reason(),
                "kernel_relay": io.kernel_relay().is_ok(), "streams": media.streams(),
                "commands_delayed": media.inputs_delayed(), "workers": rows,
            })
        };
        let text = || {
            let mut out = format!(
                "Back-end: {}\nWanted:   {wanted}\nWhy:      {}\nRelay:    {}\nStreams:  {}\nDelayed:  {} commands\n\n",
                io.name(),
                io.reason(),
                relay,
                media.streams(),
                media.inputs_delayed()
            );
            let _ = writeln!(
                out,
                "{:>6} {:>8} {:>6} {:>5} {:>12} {:>12} {:>12} {:>10} {:>6}",
                "Worker", "Streams", "Busy", "Tick", "Received", "Sent", "Discarded", "Late ticks", "Panics"
            );
            for (number, worker) in workers.iter().enumerate() {
                let busy = format!("{}.{}%", worker.busy_permille / 10, worker.busy_permille % 10);
                let _ = writeln!(
                    out,
                    "{number:>6} {:>8} {busy:>6} {:>3}ms {:>12} {:>12} {:>12} {:>10} {:>6}",
                    worker.streams,
                    worker.tick_ms,
                    worker.received,
                    worker.sent,
                    discarded(worker),
                    worker.late_ticks,
                    worker.panics
                );
            }
            out
        };
        ask.show(data, text)
    }

    /// Formats of a class that are in memory.
    fn loaded(&self, class: &str) -> Vec<&'static str> {
        let sounds = self.site.sounds.borrow();
        sounds
            .loaded_music()
            .filter(|(name, ..)| *name == class)
            .map(|(_, format, _)| format.name())
            .collect()
    }

    fn moh_show_classes(&self, ask: &mut Ask<'_>) -> Said {
        let snapshot = self.site.snapshot.borrow();
        let (classes, data_dir) = (&snapshot.music.classes, &snapshot.asterisk.directories.astdatadir);
        // There is music without any configuration: the catalogue adds the bundled piece under this name.
        let bundled = !classes.contains_key("default");
        let mode = |mode: &Mode| format!("{mode:?}").to_ascii_lowercase();
        let data = || {
            let rows: Vec<Value> = classes
                .iter()
                .map(|(name, class)| {
                    json!({
                        "name": name, "mode": mode(&class.mode),
                        "directory": class.folder(data_dir).display().to_string(),
                        "sort": format!("{:?}", class.sort).to_ascii_lowercase(), "loaded": self.loaded(name),
                    })
                })
                .collect();
            let bundled = bundled.then(|| {
                json!({
                    "name": "default", "mode": "files", "directory": "", "sort": "unsorted",
                    "loaded": self.loaded("default"),
                })
            });
            json!({ "classes": bundled.into_iter().chain(rows).collect::<Vec<_>>() })
        };
        let text = || {
            let mut out = String::new();
            if bundled {
                out.push_str("Class: default\n\tMode: files\n\tDirectory: (bundled piece)\n");
            }
            for (name, class) in classes {
                let _ = writeln!(out, "Class: {}", clean(name));
                let _ = writeln!(out, "\tMode: {}", mode(&class.mode));
                if class.is_live() {
                    let _ = writeln!(out, "\tApplication: {}", clean(&class.application));
                    let _ = writeln!(
                        out,
                        "\tKill Method: {}",
                        if class.kill_method == KillMethod::Group { "process_group" } else { "process" }
                    );
                    let _ = writeln!(
                        out,
                        "\tKill Escalation Delay: {} ms",
                        class.kill_escalation_delay.as_millis()
                    );
                    let _ = writeln!(out, "\tFormat: {}", clean(&class.format));
                } else if class.mode != Mode::Playlist {
                    let _ = writeln!(out, "\tDirectory: {}", class.directory.display());
                }
                let loaded = self.loaded(name);
                if !loaded.is_empty() {
                    let _ = writeln!(out, "\tIn memory: {}", loaded.join(", "));
                }
            }
            out
        };
        ask.show(data, text)
    }

    fn moh_show_files(&self, ask: &mut Ask<'_>) -> Said {
        let snapshot = self.site.snapshot.borrow();
        let data_dir = &snapshot.asterisk.directories.astdatadir;
        let classes: Vec<(&String, Vec<String>)> = snapshot
            .music
            .classes
            .iter()
            .map(|(name, class)| match class.mode {
                Mode::Playlist => (name, class.entry.clone()),
                _ if class.is_live() => (name, Vec::new()),
                _ => (name, files_in(&class.folder(data_dir))),
            })
            .collect();
        let data = || {
            let rows: Vec<Value> =
                classes.iter().map(|(name, files)| json!({ "name": name, "files": files })).collect();
            json!({ "classes": rows })
        };
        let text = || {
            let mut out = String::new();
            for (name, files) in &classes {
                let _ = writeln!(out, "Class: {}", clean(name));
                for file in files {
                    let _ = writeln!(out, "\tFile: {}", clean(file));
                }
                if files.is_empty() {
                    out.push_str("\tNo files; the default class plays the bundled piece\n");
                }
            }
            out
        };
        ask.show(data, text)
    }
}

/// Files of a folder, by name; none when it cannot be read.
fn files_in(folder: &std::path::Path) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let files = entries.filter_map(Result::ok).filter(|entry| entry.path().is_file());
    let mut names: Vec<String> =
        files.take(MUSIC_FILES_MAX).map(|entry| entry.path().display().to_string()).collect();
    names.sort_unstable();
    names
}
