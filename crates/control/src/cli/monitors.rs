//! Calls that are written down.

use std::fmt::Write as _;

use apps::monitor::{is_mix_monitor, mix_monitor_from_outside};
use base::ChannelId;
use serde_json::{Value, json};

use super::text::clean;
use super::{Ask, Cli, Row, Said, show, verb};

pub(super) const ROWS: &[Row] = &[
    verb(
        "mixmonitor start <channel> <arguments...>",
        "Records both sides of a call; the arguments are those of the application MixMonitor.",
        Cli::mixmonitor_start,
    ),
    verb(
        "mixmonitor stop <channel> [<id>]",
        "Ends recordings of a call, or the one with this id.",
        Cli::mixmonitor_stop,
    ),
    show(
        "mixmonitor list <channel>",
        "Lists what records a call.",
        "monitors [id application files lost_ms]",
        Cli::mixmonitor_list,
    ),
];

impl Cli {
    fn monitored(&self, ask: &Ask<'_>) -> Result<ChannelId, Said> {
        let name = ask.need("channel");
        let found = self.site.shard.core.borrow().by_name(name);
        found.ok_or_else(|| Said::failed(format!("No channel matching '{}' found.\n", clean(name))))
    }
    fn mixmonitor_start(&self, ask: &mut Ask<'_>) -> Said {
        let id = match self.monitored(ask) {
            Ok(id) => id,
            Err(said) => return said,
        };
        match mix_monitor_from_outside(&self.site.shard, id, ask.need("arguments")) {
            Ok(begun) => {
                let mut out = format!("Recording {} as {}\n", clean(&begun.file), begun.id);
                for what in &begun.ignored {
                    let _ = writeln!(out, "No effect has {}", clean(what));
                }
                Said::Done(out)
            }
            Err(why) => Said::failed(format!("MixMonitor: {}\n", clean(&why))),
        }
    }
    fn mixmonitor_stop(&self, ask: &mut Ask<'_>) -> Said {
        let id = match self.monitored(ask) {
            Ok(id) => id,
            Err(said) => return said,
        };
        let wanted = ask.arg("id");
        let ended = self.site.shard.core.borrow_mut().monitor_stop(id, |monitor| {
            is_mix_monitor(monitor) && wanted.is_none_or(|wanted| monitor.id() == wanted)
        });
        if ended == 0 {
            Said::failed("There is no such recording\n")
        } else {
            Said::done(format!("{ended} ended\n"))
        }
    }
    fn mixmonitor_list(&self, ask: &mut Ask<'_>) -> Said {
        let id = match self.monitored(ask) {
            Ok(id) => id,
            Err(said) => return said,
        };
        let core = &*self.site.shard.core.borrow();
        let monitors = || core.get(id).into_iter().flat_map(|channel| &channel.monitors);
        let names = |monitor: &call::monitor::Monitor| {
            let files = monitor.plan.files.iter();
            files.map(|(_, (path, extension))| format!("{path}.{extension}")).collect::<Vec<_>>()
        };
        let data = || {
            let row = |monitor: &call::monitor::Monitor| {
                let (id, application, lost) = (monitor.id(), monitor.plan.by, monitor.lost_ms());
                json!({ "id": id, "application": application, "files": names(monitor), "lost_ms": lost })
            };
            let rows: Vec<Value> = monitors().map(row).collect();
            json!({ "monitors": rows })
        };
        let text = || {
            let mut out = format!("{:<12} {:<12} {:>8} {}\n", "ID", "Application", "Lost ms", "Files");
            for monitor in monitors() {
                let files = names(monitor).join(" ");
                let (id, by, lost) = (monitor.id(), monitor.plan.by, monitor.lost_ms());
                let _ = writeln!(out, "{id:<12} {by:<12} {lost:>8} {}", clean(&files));
            }
            out
        };
        ask.show(data, text)
    }
}
