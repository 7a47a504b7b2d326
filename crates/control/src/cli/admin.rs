//! Modules, the log, call records, device states and access lists.

use std::fmt::Write as _;

use call::{Ban, DeviceState};
use serde_json::{Value, json};
use store::config::logger::{Channel as LogChannel, LogLevel, Target, facility_name};
use store::config::modules::{self, Capability};

use super::text::{clean, holds, s, yes_no};
use super::{Ask, Cli, Row, Said, show, verb};
use crate::ami::WebForm;
use crate::http::{STATIC_PATH, ws};
use crate::site::Wish;

pub(super) const ROWS: &[Row] = &[
    verb(
        "module reload [<module>]",
        "Reads the whole configuration again; a module's name only makes the answer what scripts expect.",
        |cli, ask| cli.reload_module(ask),
    )
    .also(&["reload [<module>]"]),
    show(
        "module show [like <text>]",
        "Lists the modules of Asterisk whose function is built in, and whether modules.conf turned it off.",
        "modules [name provides running]",
        Cli::module_show,
    )
    .also(&["show modules [like <text>]"]),
    verb("module load <module>", "Is refused: everything is built in.", |_, ask| {
        Said::refused(format!(
            "Unable to load module {}: nothing is loaded here, what there is is built in (module show)\n",
            clean(ask.need("module"))
        ))
    }),
    verb(
        "module unload <module>",
        "Is refused: everything is built in; noload in modules.conf turns it off at the start.",
        |_, ask| {
            Said::refused(format!(
                "Unable to unload module {}: write noload = {0} into modules.conf and restart\n",
                clean(ask.need("module"))
            ))
        },
    ),
    verb(
        "module refresh <module>",
        "Is refused: nothing is loaded here; module reload reads the configuration again.",
        |_, ask| {
            Said::failed(format!(
                "Unable to refresh module {}: what there is is built in; module reload reads its configuration again\n",
                clean(ask.need("module"))
            ))
        },
    ),
    verb(
        "logger reload",
        "Reads logger.conf again, and everything else with it; files are opened anew.",
        |cli, _| cli.reload_part("logger", ""),
    ),
    verb("logger rotate", "Begins new log files, as rotatestrategy of logger.conf says.", |cli, _| {
        cli.site.wish(Wish::RotateLogs);
        Said::done("")
    }),
    show(
        "logger show channels",
        "Lists where log lines go.",
        "channels [channel type formatter levels verbose] queue_limit dropped",
        Cli::logger_show_channels,
    )
    .also(&["logger list channels"]),
    verb(
        "logger add channel <file> <levels...>",
        "Logs to one more file in astlogdir, with levels as logger.conf writes them.",
        Cli::logger_add_channel,
    )
    .detail(
        "For example: logger add channel trouble warning,error. A file of logger.conf hears the levels that are named here \
         instead of its own. It holds through reloads, until logger remove channel or a restart.",
    ),
    verb(
        "logger remove channel <file>",
        "Takes back what logger add channel did.",
        Cli::logger_remove_channel,
    ),
    show("logger show levels", "Lists the levels of log lines.", "levels [id name]", Cli::logger_show_levels),
    verb(
        "logger set level <level> on|off",
        "Shows lines of a level on this console, or hides them.",
        Cli::logger_set_level,
    )
    .detail(
        "The level is one of logger show levels. It is about this console only; what files get stands in logger.conf.",
    ),
    verb("logger mute", "Stops the log on this console, or lets it go on.", |_, ask| {
        if !ask.view.attached {
            return Said::failed("Only a console (strowger -r) has a log to mute\n");
        }
        ask.view.muted = !ask.view.muted;
        let what = if ask.view.muted { "disabled" } else { "enabled" };
        Said::done(format!("Logging to this console is {what}.\n"))
    }),
    show(
        "core show bans",
        "Lists who is not listened to after too many wrong passwords; without a user it is the whole address.",
        "bans [address user seconds_left count]",
        Cli::show_bans,
    ),
    verb(
        "core unban <address> [<user>]",
        "Takes back the bans of an address, or of one user there; of everybody if the address is all.",
        |cli, ask| cli.unban(ask),
    ),
    show(
        "http show status",
        "Shows where HTTP is served, and what the manager interface and the metrics have there.",
        "server bind tls_bind paths [path what]",
        Cli::http_show_status,
    ),
    show(
        "cdr show status",
        "Shows whether and where call records are written.",
        "logging by_default unanswered congestion backends records tables [name waiting written refused away]",
        Cli::cdr_show_status,
    ),
    show(
        "cel show status",
        "Shows which channel events are kept, and where they go.",
        "logging events apps backends tables [name waiting written refused away]",
        Cli::cel_show_status,
    ),
    verb("cel reload", "Reads cel.conf again, and everything else with it.", |cli, _| cli.reload_part("cel", "")),
    verb("cdr reload", "Reads cdr.conf again, and everything else with it.", |cli, _| cli.reload_part("cdr", "")),
    show(
        "devstate list",
        "Lists custom device states (Custom:NAME).",
        "devices [name state]",
        Cli::devstate_list,
    ),
    verb(
        "devstate change <device> <state>",
        "Sets a custom device: NOT_INUSE, INUSE, BUSY, INVALID, UNAVAILABLE, RINGING, RINGINUSE, ONHOLD or UNKNOWN.",
        Cli::devstate_change,
    ),
    show(
        "presencestate list",
        "Lists what presence providers were told (CustomPresence:NAME).",
        "providers [name state subtype message]",
        Cli::presencestate_list,
    ),
    verb(
        "presencestate change <provider> <state>",
        "Sets a CustomPresence: provider to not_set, unavailable, available, away, xa, chat or dnd, with [,subtype[,message[,e]]].",
        Cli::presencestate_change,
    ),
    show(
        "acl show [<name>]",
        "Lists the access lists of acl.conf, or the rules of one.",
        "acls [name rules]",
        Cli::acl_show,
    ),
    verb("acl reload", "Reads acl.conf again, and everything else with it.", |cli, _| cli.reload_part("acl", "")),
];

/// What the field calls the places of records, cut as it cuts them.
fn backend_name(name: &str) -> &str {
    match name {
        "cdr-custom" => "CDR File custom bac",
        "cel-custom" => "CEL Custom CSV Logging",
        "CEL Manager Event Logging" => "Manager Event Logging",
        other => other,
    }
}

/// The order in which the field shows channel events.
const CEL_ORDER: &[&str] = &[
    "CHAN_START",
    "CHAN_END",
    "HANGUP",
    "ANSWER",
    "APP_START",
    "APP_END",
    "BRIDGE_ENTER",
    "BRIDGE_EXIT",
    "PARK_START",
    "PARK_END",
    "BLINDTRANSFER",
    "ATTENDEDTRANSFER",
    "USER_DEFINED",
    "LINKEDID_END",
    "PICKUP",
    "FORWARD",
    "LOCAL_OPTIMIZE",
    "LOCAL_OPTIMIZE_BEGIN",
    "STREAM_BEGIN",
    "STREAM_END",
    "DTMF",
];

pub(super) fn module_names() -> Vec<String> {
    modules::known().map(|(name, _)| format!("{name}.so")).collect()
}

fn capability(capability: &Capability) -> String {
    match capability {
        Capability::Application(name) => format!("{name}()"),
        Capability::Function(name) => format!("${{{name}()}}"),
        Capability::Technology(name) => format!("{name}/"),
        Capability::Rtp => "RTP".to_owned(),
        Capability::MusicOnHold => "music on hold".to_owned(),
        Capability::CdrCsv => "call records in CSV".to_owned(),
        Capability::Extensions => "extensions.conf".to_owned(),
        Capability::FileFormat(name) => format!(".{name}"),
        Capability::Codec(name) => format!("codec {name}"),
        Capability::Indications => "indications.conf".to_owned(),
    }
}

impl Cli {
    fn show_bans(&self, ask: &mut Ask<'_>) -> Said {
        let core = self.site.shard.core.borrow();
        let bans: Vec<Ban> = core.bans.list(core.now).collect();
        let left = |ban: &Ban| ban.until.since(core.now).as_secs();
        ask.show(
            || {
                let bans = bans.iter().map(|ban| {
                    json!({ "address": ban.address, "user": ban.user, "seconds_left": left(ban), "count": ban.count })
                });
                json!({ "bans": bans.collect::<Vec<_>>() })
            },
            || {
                let mut text = format!("{:<40} {:<24} {:>12} {:>6}\n", "Address", "User", "Seconds left", "Count");
                for ban in &bans {
                    let user = clean(ban.user.as_deref().unwrap_or("(all)"));
                    // Writing to a String cannot fail.
                    let _ = writeln!(text, "{:<40} {user:<24} {:>12} {:>6}", ban.address, left(ban), ban.count);
                }
                let _ = writeln!(text, "{} ban{}", bans.len(), s(bans.len()));
                text
            },
        )
    }
    fn unban(&self, ask: &mut Ask<'_>) -> Said {
        let text = ask.need("address");
        let address = match text.parse() {
            Ok(address) => Some(address),
            Err(_) if text.eq_ignore_ascii_case("all") => None,
            Err(_) => return Said::Usage,
        };
        let user = ask.arg("user").map(str::to_owned);
        match self.site.shard.core.borrow_mut().unban(address, user.as_deref()) {
            0 => Said::failed("There is no such ban\n"),
            count => Said::done(format!("{count} ban{} lifted\n", s(count))),
        }
    }
    fn reload_module(&self, ask: &mut Ask<'_>) -> Said {
        let Some(asked) = ask.arg("module") else { return self.reload("", "") };
        let name = asked.trim_end_matches(".so");
        if !is_reloadable(name) {
            let module = name.to_owned();
            self.site.shard.core.borrow_mut().notice(|_| Some(call::Notice::Reload { module, status: 2 }));
            return Said::failed(format!("No such module '{}'\n", clean(asked)));
        }
        let success = if FILES.contains(&name) {
            String::new()
        } else {
            format!("Module '{name}.so' reloaded successfully.\n")
        };
        self.reload(name, &success)
    }

    fn module_show(&self, ask: &mut Ask<'_>) -> Said {
        let snapshot = self.site.snapshot.borrow();
        let core = self.site.shard.core.borrow();
        let like = ask.arg("text");
        let rows: Vec<(&str, String, bool)> = modules::known()
            .filter(|(name, _)| like.is_none_or(|like| holds(&format!("{name}.so"), like)))
            .map(|(name, provides)| {
                let text = match modules::title(name) {
                    Some(title) => title.to_owned(),
                    None => provides.iter().map(capability).collect::<Vec<_>>().join(" "),
                };
                let off = core.settings.disabled_modules.contains(name)
                    || (!provides.is_empty() && !provides.iter().any(|what| snapshot.modules.has(*what)));
                (name, text, !off)
            })
            .collect();
        let data = || {
            let rows: Vec<Value> = rows
                .iter()
                .map(|(name, provides, running)| {
                    json!({ "name": format!("{name}.so"), "provides": provides, "running": running })
                })
                .collect();
            json!({ "modules": rows })
        };
        let text = || {
            let line = |name: &str, provides: &str, count: &str, status: &str, level: &str| {
                format!("{name:<30} {provides:<40.40} {count:<10} {status:<11} {level:>13}\n")
            };
            let mut out = line("Module", "Description", "Use Count", "Status", "Support Level");
            for (name, provides, running) in &rows {
                let status = if *running { "Running" } else { "Not Running" };
                out += &line(&format!("{name}.so"), provides, "0", status, "core");
            }
            let _ = writeln!(out, "{} modules loaded", rows.iter().filter(|(.., running)| *running).count());
            out
        };
        ask.show(data, text)
    }

    fn logger_add_channel(&self, ask: &mut Ask<'_>) -> Said {
        let (file, levels) = (ask.need("file"), ask.need("levels"));
        let channel = match LogChannel::named(file, levels) {
            Ok(channel) => channel,
            Err(why) => return Said::failed(format!("{}\n", clean(&why))),
        };
        match self.site.log.add(channel) {
            true => Said::done(format!("Logging to {}\n", clean(file))),
            false => Said::failed("So many files were added that no more fit: remove one\n"),
        }
    }

    fn logger_remove_channel(&self, ask: &mut Ask<'_>) -> Said {
        let file = ask.need("file");
        let target = LogChannel::named(file, "error").map(|channel| channel.target);
        match target.is_ok_and(|target| self.site.log.remove(&target)) {
            true => Said::done(format!("Removed {}\n", clean(file))),
            false => Said::failed(format!("{} was not added by logger add channel\n", clean(file))),
        }
    }

    fn logger_show_levels(&self, ask: &mut Ask<'_>) -> Said {
        let levels = || LogLevel::ALL.iter().map(|level| (*level as u8, level.name()));
        let data = || {
            let rows: Vec<Value> = levels().map(|(id, name)| json!({ "id": id, "name": name })).collect();
            json!({ "levels": rows })
        };
        let text = || {
            let rows = levels().map(|(id, name)| format!("{id:<6}{name}\n")).collect::<String>();
            format!("ID    Level\n{rows}")
        };
        ask.show(data, text)
    }

    fn logger_set_level(&self, ask: &mut Ask<'_>) -> Said {
        if !ask.view.attached {
            return Said::failed("Only a console (strowger -r) has levels of its own\n");
        }
        let name = ask.need("level").to_owned();
        let Some(level) = LogLevel::ALL.iter().find(|level| level.name().eq_ignore_ascii_case(&name)) else {
            return Said::failed(format!("{} is no level: logger show levels lists them\n", clean(&name)));
        };
        let on = ask.choice() == Some("on");
        match on {
            true => ask.view.hidden.remove(*level),
            false => ask.view.hidden.insert(*level),
        }
        let state = if on { "on" } else { "off" };
        Said::done(format!("Logger status for '{}' has been set to '{state}'.\n", level.name()))
    }

    fn http_show_status(&self, ask: &mut Ask<'_>) -> Said {
        let snapshot = self.site.snapshot.borrow();
        let http = &snapshot.http;
        let address = |address: Option<std::net::SocketAddr>| address.map(|address| address.to_string());
        let down = self.site.down.borrow();
        let plain = address(http.address().filter(|_| !down.http));
        let tls = address(http.tls_address().filter(|_| !down.https));
        let mut paths: Vec<(String, &str)> = Vec::new();
        if snapshot.manager.is_on_the_web() {
            let what = "Manager Interface";
            paths.extend(WebForm::PATHS.iter().map(|(name, _)| (http.path(name), what)));
        }
        if snapshot.pjsip.has_websockets() {
            paths.push((http.path(ws::PATH), "SIP over WebSocket"));
        }
        if snapshot.ari.is_served() {
            paths.push((http.path(crate::ari::PATH) + "/...", "Asterisk RESTful API"));
        }
        if snapshot.prometheus.enabled {
            paths.push((http.path(&snapshot.prometheus.uri), "Prometheus Metrics"));
        }
        if http.enablestatic {
            paths.push((http.path(STATIC_PATH) + "/...", "Static Files"));
        }
        let data = || {
            let paths: Vec<Value> =
                paths.iter().map(|(path, what)| json!({ "path": path, "what": what })).collect();
            json!({ "server": http.servername, "bind": plain, "tls_bind": tls, "paths": paths })
        };
        let text = || {
            let mut out = format!(
                "HTTP Server Status:\nPrefix: {}\nServer: {}\n",
                clean(&http.prefix),
                match http.servername.as_str() {
                    "Asterisk" => crate::VERSION.split(" (").next().unwrap_or_default().replace(' ', "/"),
                    named => clean(named).into_owned(),
                }
            );
            match &plain {
                Some(bind) => drop(writeln!(out, "Server Enabled and Bound to {bind}\n")),
                None => out.push_str("Server Disabled\n\n"),
            }
            if let Some(bind) = &tls {
                let _ = writeln!(out, "HTTPS Server Enabled and Bound to {bind}\n");
            }
            out.push_str("Enabled URI's:\n");
            for (path, what) in &paths {
                let _ = writeln!(out, "{} => {what}", clean(path));
            }
            if paths.is_empty() {
                out.push_str("None.\n");
            }
            out.push_str("\nEnabled Redirects:\n  None.\n\nPath Restrictions:\n  None.\n");
            out
        };
        ask.show(data, text)
    }

    fn logger_show_channels(&self, ask: &mut Ask<'_>) -> Said {
        let snapshot = self.site.snapshot.borrow();
        let logger = &snapshot.logger;
        let folder = &snapshot.asterisk.directories.astlogdir;
        let channels = self.site.log.channels();
        let rows: Vec<_> = channels
            .iter()
            .map(|channel| {
                let (name, kind) = match &channel.target {
                    Target::Console => ("Console".to_owned(), "Console"),
                    Target::File(name) => (folder.join(name).display().to_string(), "File"),
                    Target::Syslog(facility) => (format!("syslog.{}", facility_name(*facility)), "Syslog"),
                };
                let levels: Vec<&str> = LogLevel::ALL
                    .iter()
                    .filter(|level| channel.levels.contains(**level))
                    .map(|level| level.name())
                    .collect();
                let formatter = format!("{:?}", channel.formatter).to_ascii_lowercase();
                (name, kind, formatter, levels, channel.verbose)
            })
            .collect();
        let (limit, dropped) = (logger.general.logger_queue_limit, self.site.log.dropped());
        let data = || {
            let rows: Vec<Value> = rows
                .iter()
                .map(|(name, kind, formatter, levels, verbose)| {
                    json!({
                        "channel": name, "type": kind, "formatter": formatter, "levels": levels,
                        "verbose": verbose,
                    })
                })
                .collect();
            json!({ "channels": rows, "queue_limit": limit, "dropped": dropped })
        };
        let text = || {
            let mut out = format!("Logger queue limit: {limit}\n\n");
            let line = |name: &str, kind: &str, formatter: &str, status: &str, levels: &str| {
                format!("{name:<35} {kind:<8} {formatter:<10} {status:<9} {levels}\n")
            };
            out += &line("Channel", "Type", "Formatter", "Status", "Configuration");
            out += &line("-------", "----", "---------", "------", "-------------");
            for (name, kind, formatter, levels, _) in &rows {
                out += &line(&clean(name), kind, formatter, "Enabled", &format!(" - {} ", levels.join(" ")));
            }
            if dropped > 0 {
                let _ = writeln!(out, "\n{dropped} line{} dropped", s(usize::try_from(dropped).unwrap_or(2)));
            }
            out
        };
        ask.show(data, text)
    }

    fn cdr_show_status(&self, ask: &mut Ask<'_>) -> Said {
        let snapshot = self.site.snapshot.borrow();
        let settings = self.site.shard.core.borrow().settings.clone();
        let backends = store::cdr::Places::of(&snapshot).names();
        let records = self.site.counters.get().records;
        let tables = self.site.record_tables.borrow();
        let tables: Vec<_> = tables.iter().filter(|table| !table.is_of_events()).collect();
        let data = || {
            json!({
                "logging": settings.cdr_enabled, "by_default": !settings.cdr_on_request, "unanswered": settings.cdr_unanswered,
                "congestion": settings.cdr_congestion, "backends": backends, "records": records,
                "tables": tables.iter().map(|table| table.json()).collect::<Vec<_>>(),
            })
        };
        let text = || {
            let logging = if settings.cdr_enabled { "Enabled" } else { "Disabled" };
            let mut out = format!(
                "\nCall Detail Record (CDR) settings\n----------------------------------\n  \
                 Logging:                    {logging}\n"
            );
            if settings.cdr_enabled {
                let _ = writeln!(out, "  Mode:                       Simple");
                let _ = writeln!(out, "  Log calls by default:       {}", yes_no(!settings.cdr_on_request));
                let _ = writeln!(out, "  Log unanswered calls:       {}", yes_no(settings.cdr_unanswered));
                let _ = writeln!(out, "  Log congestion:             {}", yes_no(settings.cdr_congestion));
                // None of these three can be had: all that happens is looked at.
                out.push_str("\n  Ignore bridging changes:    No\n\n  Ignore dial state changes:  No\n\n");
                let cancels = snapshot.cdr.general.canceldispositionenabled;
                let _ = writeln!(out, "  Cancel disposition enabled: {}", yes_no(cancels));
                out.push_str("\n* Registered Backends\n  -------------------\n");
                let mut shown: Vec<&str> = backends.iter().map(|name| backend_name(name)).collect();
                shown.sort_unstable();
                for backend in shown {
                    let _ = writeln!(out, "    {backend}");
                }
                if backends.is_empty() {
                    out.push_str("    (none)\n");
                }
                for table in &tables {
                    let _ = writeln!(out, "    {}", clean(&table.line()));
                }
            }
            out.push('\n');
            out
        };
        ask.show(data, text)
    }

    fn cel_show_status(&self, ask: &mut Ask<'_>) -> Said {
        let snapshot = self.site.snapshot.borrow();
        let settings = self.site.shard.core.borrow().settings.cel.clone();
        let backends = store::cdr::CelPlaces::of(&snapshot).names();
        let tables = self.site.record_tables.borrow();
        let tables: Vec<_> = tables.iter().filter(|table| table.is_of_events()).collect();
        let events: Vec<&str> = settings.iter().flat_map(|of| of.kinds()).map(call::CelKind::name).collect();
        let apps: Vec<&str> = settings.iter().flat_map(|of| of.apps()).collect();
        let data = || {
            json!({
                "logging": settings.is_some(), "events": events, "apps": apps, "backends": backends,
                "tables": tables.iter().map(|table| table.json()).collect::<Vec<_>>(),
            })
        };
        let text = || {
            let logging = if settings.is_some() { "Enabled" } else { "Disabled" };
            let mut out = format!("CEL Logging: {logging}\n");
            if events.len() == call::CelKind::ALL.len() {
                out.push_str("CEL Tracking Event: ALL\n");
            }
            let order =
                |event: &&&str| CEL_ORDER.iter().position(|known| *known == **event).unwrap_or(usize::MAX);
            let mut shown: Vec<&&str> = events.iter().collect();
            shown.sort_by_key(order);
            for event in shown {
                let _ = writeln!(out, "CEL Tracking Event: {event}");
            }
            for app in &apps {
                let _ = writeln!(out, "CEL Tracking Application: {}", clean(app));
            }
            for backend in &backends {
                let _ = writeln!(out, "CEL Event Subscriber: {}", backend_name(backend));
            }
            for table in &tables {
                let _ = writeln!(out, "{}", clean(&table.line()));
            }
            out
        };
        ask.show(data, text)
    }

    fn devstate_list(&self, ask: &mut Ask<'_>) -> Said {
        let entries = self.site.shard.core.borrow().services.db.list("/CustomDevstate");
        let rows: Vec<(&str, &str)> = entries
            .iter()
            .filter_map(|(key, state)| Some((key.strip_prefix("/CustomDevstate/")?, state.as_str())))
            .collect();
        let data = || {
            let rows: Vec<Value> = rows
                .iter()
                .map(|(name, state)| json!({ "name": format!("Custom:{name}"), "state": state }))
                .collect();
            json!({ "devices": rows })
        };
        let text = || {
            let rule = "-".repeat(69);
            let mut out = format!("\n{rule}\n--- Custom Device States {}\n{rule}\n---\n", "-".repeat(44));
            for (name, state) in &rows {
                let _ = writeln!(out, "--- Name: 'Custom:{}'  State: '{}'\n---", clean(name), clean(state));
            }
            let _ = writeln!(out, "{rule}\n{rule}\n");
            out
        };
        ask.show(data, text)
    }

    fn devstate_change(&self, ask: &mut Ask<'_>) -> Said {
        let (device, word) = (ask.need("device"), ask.need("state"));
        let Some(name) = apps::hints::custom_name(device) else {
            return Said::failed(format!(
                "The devstate command can only be used to set 'Custom' device states, not {}\n",
                clean(device)
            ));
        };
        let Some(state) = DeviceState::parse(word) else { return Said::Usage };
        self.site.shard.core.borrow_mut().set_custom_device(name, state);
        Said::done(format!("Changing {} to {}\n", clean(name), state.name()))
    }

    fn presencestate_list(&self, ask: &mut Ask<'_>) -> Said {
        let rows = apps::presence::all(&self.site.shard.core.borrow());
        let data = || {
            let row = |(name, said): &(String, apps::presence::PresenceState)| json!({ "name": name, "state": said.state.name(), "subtype": said.subtype, "message": said.message });
            json!({ "providers": rows.iter().map(row).collect::<Vec<Value>>() })
        };
        let text = || {
            let rule = "-".repeat(69);
            let mut out = format!("\n{rule}\n--- Custom Presence States {}\n{rule}\n---\n", "-".repeat(42));
            for (name, said) in &rows {
                let (state, subtype, message) =
                    (said.state.name(), clean(&said.subtype), clean(&said.message));
                let coded = "No";
                let _ = writeln!(
                    out,
                    "--- Name: '{}'\n --- State: '{state}'\n --- Subtype: '{subtype}'\n --- Message: '{message}'\n \
                     --- Base64 Encoded: '{coded}'\n---",
                    clean(name)
                );
            }
            let _ = writeln!(out, "{rule}\n{rule}\n");
            out
        };
        ask.show(data, text)
    }

    fn presencestate_change(&self, ask: &mut Ask<'_>) -> Said {
        let (provider, text) = (ask.need("provider"), ask.need("state"));
        if apps::presence::custom_name(provider).is_none() {
            return Said::failed(format!(
                "The presencestate command can only be used to set 'CustomPresence' states, not {}\n",
                clean(provider)
            ));
        }
        let Ok(said) = apps::presence::PresenceState::parse(text) else { return Said::Usage };
        match apps::presence::set(&mut self.site.shard.core.borrow_mut(), provider, &said) {
            true => {
                let name = apps::presence::custom_name(provider).unwrap_or(provider);
                Said::done(format!("Changing {} to {}\n", clean(name), clean(text)))
            }
            false => Said::failed("The database did not take it\n".to_owned()),
        }
    }

    fn acl_show(&self, ask: &mut Ask<'_>) -> Said {
        let snapshot = self.site.snapshot.borrow();
        let acls = &snapshot.acls;
        let only = ask.arg("name");
        let names: Vec<&str> = acls.names().filter(|name| only.is_none_or(|only| only == *name)).collect();
        if let (Some(only), true) = (only, names.is_empty()) {
            return Said::failed(format!("Could not find the named ACL '{}'\n", clean(only)));
        }
        let rules = |name: &str| -> Vec<(&'static str, String)> {
            let rules = acls.get(name).map_or(&[][..], |acl| acl.rules());
            rules
                .iter()
                .map(|(permit, net)| (if *permit { "allow" } else { "deny" }, net.to_string()))
                .collect()
        };
        let data = || {
            let rows: Vec<Value> = names
                .iter()
                .map(|name| {
                    let rules: Vec<Value> = rules(name)
                        .iter()
                        .map(|(action, net)| json!({ "action": action, "network": net }))
                        .collect();
                    json!({ "name": name, "rules": rules })
                })
                .collect();
            json!({ "acls": rows })
        };
        let text = || {
            let mut out = String::new();
            if only.is_none() {
                out.push_str("acl\n---\n");
                names.iter().for_each(|name| {
                    let _ = writeln!(out, "{}", clean(name));
                });
                return out;
            }
            for name in &names {
                let _ = writeln!(out, "ACL: {}\n---------------------------------------------", clean(name));
                for (number, (action, net)) in rules(name).iter().enumerate() {
                    let _ = writeln!(out, "{number:>3}: {action:<5} - {net}");
                }
            }
            out
        };
        ask.show(data, text)
    }
}

/// Whether something by this name, a module without `.so` or a part of the core, can be read again.
pub(crate) fn is_reloadable(name: &str) -> bool {
    modules::known().any(|(known, _)| known == name) || is_part(name)
}

/// Whether this is the name of a part that is no module.
pub(crate) fn is_part(name: &str) -> bool {
    FILES.contains(&name)
}

/// What can be reloaded by a name that is no module: parts of Asterisk's own core.
const FILES: &[&str] = &[
    "acl",
    "cdr",
    "cel",
    "cli_permissions",
    "dialplan",
    "dnsmgr",
    "extconfig",
    "features",
    "http",
    "indications",
    "logger",
    "manager",
    "rtp",
];
