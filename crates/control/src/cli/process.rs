//! The process itself: what it is, how long it runs, ending it, and what it tells.

use core::time::Duration;
use std::fmt::Write as _;

use serde_json::json;

use super::text::{clean, span, yes_no};
use super::{Ask, Cli, Row, Said, show, verb};
use crate::VERSION;
use crate::site::{Reloaded, When, Wish};

pub(super) const ROWS: &[Row] = &[
    verb(
        "core waitfullybooted",
        "Waits until everything is up; scripts call it before anything else.",
        |_, _| Said::done("Asterisk has fully booted.\n"),
    ),
    show("core show version", "Shows the version.", "version name system machine", Cli::core_show_version)
        .also(&["show version"]),
    show(
        "core show uptime [seconds]",
        "Shows how long the process runs and when it was last reloaded.",
        "uptime_seconds reload_seconds",
        Cli::core_show_uptime,
    )
    .also(&["show uptime [seconds]"]),
    show(
        "core show settings",
        "Shows what asterisk.conf made of the process, and where everything lies.",
        "settings [name value]",
        Cli::core_show_settings,
    ),
    show(
        "core show sysinfo",
        "Shows memory and load of the machine and of the process.",
        "memory_total_kb memory_available_kb swap_total_kb swap_free_kb load_1 load_5 load_15 rss_kb threads stories \
         turns records",
        Cli::core_show_sysinfo,
    ),
    verb("core show help [<command...>]", "Lists commands, or tells how one is used.", Cli::help)
        .also(&["help [<command...>]", "? [<command...>]"]),
    verb("core stop now", "Ends the process at once; calls are hung up.", |cli, ask| {
        cli.stop(ask, When::Now, false)
    })
    .also(&["stop now"]),
    verb(
        "core stop gracefully",
        "Ends the process when the last call has ended; new calls are refused.",
        |cli, ask| cli.stop(ask, When::Gracefully, false),
    )
    .also(&["stop gracefully"]),
    verb(
        "core stop when convenient",
        "Ends the process when no call is up by chance; new calls are taken.",
        |cli, ask| cli.stop(ask, When::Convenient, false),
    )
    .also(&["stop when convenient"]),
    verb("core restart now", "Starts the process anew at once; calls are hung up.", |cli, ask| {
        cli.stop(ask, When::Now, true)
    })
    .also(&["restart now"]),
    verb(
        "core restart gracefully",
        "Starts the process anew when the last call has ended; new calls are refused.",
        |cli, ask| cli.stop(ask, When::Gracefully, true),
    )
    .also(&["restart gracefully"]),
    verb(
        "core restart when convenient",
        "Starts the process anew when no call is up by chance; new calls are taken.",
        |cli, ask| cli.stop(ask, When::Convenient, true),
    )
    .also(&["restart when convenient"]),
    verb("core abort shutdown", "Forgets a stop or restart that waits for calls to end.", |cli, _| {
        let waited = cli.site.stopping.get().is_some();
        cli.site.wish(Wish::AbortStop);
        Said::done(if waited { "Shutdown aborted\n" } else { "No shutdown is waiting\n" })
    })
    .also(&["abort halt"]),
    verb(
        "core reload",
        "Reads the whole configuration again. Everything is checked first; with an error, what ran goes on.",
        |cli, _| cli.reload("", ""),
    )
    .detail("A refused reload says file, line and remedy, and its exit status is 1."),
    verb(
        "core set verbose [atleast] <level|off>",
        "Sets how much of what happens a console shows: the one that asks, or the process's own with -rx.",
        |cli, ask| cli.set_level(ask, "verbose"),
    )
    .also(&["set verbose [atleast] <level|off>", "core set verbose <level|off> [<module>]"])
    .detail("atleast never lowers it."),
    verb(
        "core set debug [atleast] <level|off>",
        "Sets how much developers are told: on the console that asks, and in the log.",
        |cli, ask| cli.set_level(ask, "debug"),
    )
    .also(&["set debug [atleast] <level|off>", "core set debug <level|off> [<module>]"])
    .detail("atleast never lowers it."),
];

impl Cli {
    fn core_show_version(&self, ask: &mut Ask<'_>) -> Said {
        let (system, machine) = (std::env::consts::OS, std::env::consts::ARCH);
        ask.show(
            || json!({ "version": env!("CARGO_PKG_VERSION"), "name": VERSION, "system": system, "machine": machine }),
            || format!("{VERSION} on a {machine} running {system}\n"),
        )
    }

    fn core_show_uptime(&self, ask: &mut Ask<'_>) -> Said {
        let now = self.site.shard.core.borrow().now;
        let up = now.since(self.site.started);
        let reload = now.since(self.site.reloaded.get());
        let print = |duration: Duration| match ask.choice() {
            Some(_) => duration.as_secs().to_string(),
            None => span(duration),
        };
        ask.show(
            || json!({ "uptime_seconds": up.as_secs(), "reload_seconds": reload.as_secs() }),
            || format!("System uptime: {}\nLast reload: {}\n", print(up), print(reload)),
        )
    }

    fn settings(&self) -> Vec<(&'static str, Vec<(&'static str, String)>)> {
        let snapshot = self.site.snapshot.borrow();
        let core = self.site.shard.core.borrow();
        let (options, directories) = (&snapshot.asterisk.options, &snapshot.asterisk.directories);
        let limits = core.admission.limits();
        let limit = |value: u32| if value == 0 { "Not set".to_owned() } else { value.to_string() };
        let load = f64::from(limits.max_load_centi) / 100.0;
        let lanes = self.site.media.borrow().lanes();
        let or_none = |text: &str| super::text::or(text, "(none)").to_owned();
        let core_settings = vec![
            ("Version", VERSION.to_owned()),
            ("Maximum calls", limit(limits.max_calls)),
            ("Maximum calls a second", limit(limits.calls_per_second)),
            ("Maximum load average", if load > 0.0 { format!("{load:.2}") } else { "Not set".to_owned() }),
            (
                "Maximum busy workers",
                match limits.max_busy_permille {
                    0 => "Not set".to_owned(),
                    permille => format!("{} %", permille / 10),
                },
            ),
            ("Calls refused", core.admission.refused().to_string()),
            ("Verbosity", self.verbose.get().to_string()),
            ("Debug level", self.debug.get().to_string()),
            ("Default language", core.settings.language.clone()),
            ("System name", or_none(&core.settings.system_name)),
            ("Entity ID", or_none(&core.settings.entity_id)),
            ("Executable includes", enabled(options.execincludes)),
            ("Live dangerously", enabled(core.settings.live_dangerously)),
            ("Call records", enabled(core.settings.cdr_enabled)),
            ("SIMD level", lanes.level.name().to_owned()),
            ("Streams a codec group", lanes.level.lanes().to_string()),
            ("Longest wait for a codec group", format!("{} ms", lanes.wait_ms)),
            ("Embedded configuration", yes_no(snapshot.is_embedded()).to_owned()),
        ];
        let path = |path: &std::path::Path| path.display().to_string();
        let folders = vec![
            ("Configuration directory", path(&directories.astetcdir)),
            ("Data directory", path(&directories.astdatadir)),
            ("Database directory", path(&directories.astdbdir)),
            ("Spool directory", path(&directories.astspooldir)),
            ("Log directory", path(&directories.astlogdir)),
            ("Run/Sockets directory", path(&directories.astrundir)),
            ("Control socket", path(&snapshot.asterisk.control_socket())),
        ];
        vec![("PBX Core settings", core_settings), ("Directories", folders)]
    }

    fn core_show_settings(&self, ask: &mut Ask<'_>) -> Said {
        let groups = self.settings();
        let data = || {
            let all = groups.iter().flat_map(|(_, rows)| rows);
            let rows: Vec<_> = all.map(|(name, value)| json!({ "name": name, "value": value })).collect();
            json!({ "settings": rows })
        };
        let text = || {
            let mut out = String::new();
            for (title, rows) in &groups {
                let _ = writeln!(out, "\n{title}\n{}", "-".repeat(title.len()));
                for (name, value) in rows {
                    let _ = writeln!(out, "  {:<28} {}", format!("{name}:"), clean(value));
                }
            }
            out
        };
        ask.show(data, text)
    }

    fn core_show_sysinfo(&self, ask: &mut Ask<'_>) -> Said {
        let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
        let (machine, process, load) =
            (read("/proc/meminfo"), read("/proc/self/status"), read("/proc/loadavg"));
        let [total, available, swap, swap_free] =
            ["MemTotal:", "MemAvailable:", "SwapTotal:", "SwapFree:"].map(|name| number(&machine, name));
        let [rss, threads] = ["VmRSS:", "Threads:"].map(|name| number(&process, name));
        let mut loads = load.split_whitespace();
        let [one, five, fifteen] = std::array::from_fn(|_| loads.next().unwrap_or("0").to_owned());
        let (stories, counters) = (self.site.shard.stories(), self.site.counters.get());
        let data = || {
            let decimal = |text: &str| text.parse::<f64>().unwrap_or(0.0);
            json!({
                "memory_total_kb": total, "memory_available_kb": available,
                "swap_total_kb": swap, "swap_free_kb": swap_free,
                "load_1": decimal(&one), "load_5": decimal(&five), "load_15": decimal(&fifteen),
                "rss_kb": rss, "threads": threads, "stories": stories,
                "turns": counters.turns, "records": counters.records,
            })
        };
        let text = || {
            format!(
                "\nSystem Statistics\n-----------------\n  \
                 System Load:          {one} {five} {fifteen}\n  \
                 Total RAM:            {total} KiB\n  \
                 Available RAM:        {available} KiB\n  \
                 Total Swap:           {swap} KiB\n  \
                 Free Swap:            {swap_free} KiB\n\n\
                 Process\n-------\n  \
                 Resident memory:      {rss} KiB\n  \
                 Threads:              {threads}\n  \
                 Stories:              {stories}\n  \
                 Turns of the loop:    {}\n  \
                 Call records:         {}\n",
                counters.turns, counters.records
            )
        };
        ask.show(data, text)
    }

    fn stop(&self, ask: &Ask<'_>, when: When, restart: bool) -> Said {
        if self.site.stopping.get().is_some_and(|already| when >= already) {
            return Said::failed("Ignoring asterisk shutdown request, already in progress.\n");
        }
        self.site.wish(Wish::Stop { when, restart });
        if ask.may_wait && !ask.view.attached {
            self.awaiting_end.borrow_mut().push(ask.session);
        }
        let what = if restart { "restart" } else { "halt" };
        Said::Done(match when {
            When::Now | When::Gracefully => String::new(),
            When::Convenient => format!("Waiting for inactivity to perform {what}\n"),
        })
    }

    /// Reads the configuration again as the own command of a part does, of which watchers are not told.
    pub(super) fn reload_part(&self, module: &str, success: &str) -> Said {
        self.site.quiet_reload.set(true);
        match self.reload(module, success) {
            // Warnings are in the log, and most are about other parts.
            Said::Done(_) => Said::done(success),
            other => other,
        }
    }
    /// Reads the configuration again and says how that went; `success` is what there is to say beyond it.
    pub(super) fn reload(&self, module: &str, success: &str) -> Said {
        // Taken out for the call, so that what reloads may look at the site.
        let reload = self.site.reload.borrow_mut().take();
        let Some(mut reload) = reload else {
            self.site.wish(Wish::Reload { module: module.to_owned() });
            return Said::done(success);
        };
        let Reloaded { taken, said } = reload(module);
        self.site.reload.borrow_mut().get_or_insert(reload);
        let mut out = said.iter().fold(String::new(), |mut out, line| {
            let _ = writeln!(out, "{line}");
            out
        });
        if taken {
            out.push_str(success);
            Said::Done(out)
        } else {
            out.push_str("The configuration was not taken; what ran before goes on.\n");
            Said::Refused(out)
        }
    }

    fn set_level(&self, ask: &mut Ask<'_>, which: &str) -> Said {
        let wanted = match ask.need("level|off") {
            "off" => 0,
            number => match number.parse::<u8>() {
                Ok(level) => level,
                Err(_) => return Said::Usage,
            },
        };
        if ask.arg("module").is_some() {
            return Said::failed("Levels of single modules are not kept; leave the module out\n");
        }
        let at_least = ask.choice().is_some();
        let verbose = which == "verbose";
        let own = if verbose { &self.verbose } else { &self.debug };
        let before = match (ask.view.attached, verbose) {
            (true, true) => ask.view.verbose,
            (true, false) => ask.view.debug,
            (false, _) => own.get(),
        };
        let level = if at_least { wanted.max(before) } else { wanted };
        if ask.view.attached {
            *(if verbose { &mut ask.view.verbose } else { &mut ask.view.debug }) = level;
        }
        if verbose && !ask.view.attached {
            own.set(level);
            self.site.log.set_verbose(level);
        } else if !verbose {
            own.set(level);
            self.site.log.set_debug(level);
        }
        let name = if verbose { "Console verbose" } else { "Core debug" };
        Said::Done(match (before == level, level) {
            (true, 0) => format!("{name} is still OFF.\n"),
            (true, _) => format!("{name} is still {level}.\n"),
            (false, 0) => format!("{name} was {before} and is now OFF.\n"),
            (false, _) if before == 0 => format!("{name} was OFF and is now {level}.\n"),
            (false, _) => format!("{name} was {before} and is now {level}.\n"),
        })
    }
}

fn enabled(value: bool) -> String {
    if value { "Enabled" } else { "Disabled" }.to_owned()
}

/// The number after a name in a file of `/proc`.
fn number(text: &str, name: &str) -> u64 {
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    line.and_then(|rest| rest.split_whitespace().next()).and_then(|word| word.parse().ok()).unwrap_or(0)
}
