//! What works inside the process: threads, queues, channel technologies, file formats, tones, licence.

use std::fmt::Write as _;
use std::path::Path;

use serde_json::{Value, json};
use store::config::tones::{Zone, tone_text};

use super::text::{clean, holds, s};
use super::{Ask, Cli, Row, Said, show};
use crate::VERSION;

/// What the kernel counts of the processor time of a thread in a second.
const TICKS_A_SECOND: f64 = 100.0;

pub(super) const ROWS: &[Row] = &[
    show(
        "core show threads",
        "Lists the threads of the process. No call has one: calls are stories on one thread, packets move on the workers.",
        "threads [id name state cpu_seconds]",
        Cli::core_show_threads,
    ),
    show(
        "core show taskprocessors [like <text>]",
        "Lists the queues between the parts of the process: what went through, what waits.",
        "taskprocessors [name processed in_queue]",
        Cli::core_show_taskprocessors,
    ),
    show(
        "core show locks",
        "Lists the locks that calls hold: none, for calls share no memory.",
        "locks [thread lock]",
        |_, ask| {
            let rule = "=".repeat(71);
            let none = "=== None: calls share no memory and hold no locks.";
            ask.show(
                || json!({ "locks": [] }),
                || format!("{rule}\n=== {VERSION}\n=== Currently Held Locks\n{rule}\n{none}\n{rule}\n"),
            )
        },
    ),
    show(
        "core show channeltypes",
        "Lists channel technologies.",
        "technologies [name description]",
        Cli::core_show_channeltypes,
    ),
    show(
        "core show channeltype <technology>",
        "Shows what one channel technology can do.",
        "name description transfer text digits",
        Cli::core_show_channeltype,
    ),
    show(
        "core show file formats",
        "Lists formats of sound files and the endings of their names.",
        "formats [format extensions]",
        Cli::core_show_file_formats,
    ),
    show(
        "core show switches",
        "Lists what switch lines of extensions.conf can ask.",
        "switches [name description]",
        |cli, ask| {
            let is_there = |name: &str| name != "IAX2" || cli.site.is_configured("chan_iax2");
            let data = || {
                let rows = SWITCHES.iter().map(|(name, text)| json!({ "name": name, "description": text }));
                json!({ "switches": rows.collect::<Vec<_>>() })
            };
            ask.show(data, || {
                let rows = SWITCHES.iter().filter(|(name, _)| is_there(name));
                let rows = rows.map(|(name, text)| format!("{name}: {text}\n"));
                format!("\n    -= Registered Asterisk Alternative Switches =-\n{}", rows.collect::<String>())
            })
        },
    ),
    show(
        "indication show [<country>]",
        "Lists the countries whose tones are known, or the tones of one.",
        "countries [country description tones [name tone]]",
        Cli::indication_show,
    ),
    show(
        "group show channels [<text>]",
        "Lists the channels that GROUP() counts, or those whose group holds a text.",
        "groups [channel category group]",
        Cli::group_show_channels,
    ),
    show(
        "local show channels",
        "Lists the halves of Local channels.",
        "channels [name state place]",
        Cli::local_show_channels,
    ),
    show("core show license", "Tells under which licence this program may be used.", "license", |_, ask| {
        ask.show(|| json!({ "license": LICENCE }), || LICENCE.to_owned())
    }),
    show("core show warranty", "Tells that there is no warranty.", "warranty", |_, ask| {
        ask.show(|| json!({ "warranty": WARRANTY }), || WARRANTY.to_owned())
    }),
];

/// Engines of `switch =>`.
const SWITCHES: &[(&str, &str)] =
    &[("IAX2", "IAX2 Remote Dialplan Switch"), ("Realtime", "Realtime Dialplan Switch")];

/// Technologies and what they are; those that are there are shown.
const TECHNOLOGIES: &[(&str, &str)] = &[
    ("PJSIP", "SIP over UDP, TCP, TLS and WebSocket"),
    ("SIP", "Other name of PJSIP"),
    ("IAX2", "Inter Asterisk eXchange, version 2"),
    ("Local", "Calls into the dialplan"),
];

/// Their names, for completion.
pub(super) fn technologies() -> Vec<String> {
    TECHNOLOGIES.iter().map(|(name, _)| (*name).to_owned()).collect()
}

const LICENCE: &str = "\
Strowger is free software under the Apache License, Version 2.0, or the MIT license, as you choose. LICENSE-APACHE and\n\
LICENSE-MIT, which came with it, hold the texts; NOTICE names what it is built from.\n";

const WARRANTY: &str = "\
Strowger is provided \"as is\", without warranties or conditions of any kind, express or implied, including those of\n\
merchantability and fitness for a purpose (LICENSE-APACHE, section 7; LICENSE-MIT).\n";

/// A thread, as `/proc` has it.
struct Thread {
    id: u32,
    name: String,
    state: String,
    cpu_seconds: f64,
}

/// Reads `stat` of a thread (proc_pid_stat(5)): its name in parentheses, which may itself hold some, its state, and the
/// processor time it took as the 14th and 15th fields.
fn thread_of(stat: &str) -> Option<Thread> {
    let (id, rest) = stat.split_once(" (")?;
    let (name, rest) = rest.rsplit_once(") ")?;
    let fields: Vec<&str> = rest.split_whitespace().collect();
    let ticks = |at: usize| fields.get(at).and_then(|field| field.parse::<f64>().ok());
    Some(Thread {
        id: id.trim().parse().ok()?,
        name: name.to_owned(),
        state: (*fields.first()?).to_owned(),
        cpu_seconds: (ticks(11)? + ticks(12)?) / TICKS_A_SECOND,
    })
}

/// All threads of this process.
fn threads() -> Vec<Thread> {
    let Ok(entries) = std::fs::read_dir(Path::new("/proc/self/task")) else { return Vec::new() };
    let stats = entries.flatten().filter_map(|entry| std::fs::read_to_string(entry.path().join("stat")).ok());
    let mut threads: Vec<Thread> = stats.filter_map(|stat| thread_of(&stat)).collect();
    threads.sort_by_key(|thread| thread.id);
    threads
}

/// `ring 2000,4000` and the tones, as in indications.conf.
fn zone_text(code: &str, zone: &Zone, out: &mut String) {
    let cadence: Vec<String> = zone.ring_cadence.iter().map(u32::to_string).collect();
    // Writing to a String cannot fail.
    let _ = writeln!(out, "Country Indication      PlayList\n=====================================");
    let _ = writeln!(out, "{code:<7} {:<15} {}", "<ringcadence>", cadence.join(","));
    let others = zone.tones.keys().filter(|name| !zone.order.contains(name));
    for name in zone.order.iter().chain(others) {
        let tone = zone.tones.get(name).map(|tone| tone_text(tone)).unwrap_or_default();
        let _ = writeln!(out, "{code:<7} {name:<15} {tone}");
    }
}

impl Cli {
    fn core_show_threads(&self, ask: &mut Ask<'_>) -> Said {
        let threads = threads();
        let data = || {
            let rows = threads.iter().map(|thread| {
                json!({
                    "id": thread.id, "name": thread.name, "state": thread.state, "cpu_seconds": thread.cpu_seconds,
                })
            });
            json!({ "threads": rows.collect::<Vec<_>>() })
        };
        let text = || {
            let mut out = format!("{:>10} {:<16} {:<5} {:>12}\n", "ID", "Name", "State", "CPU seconds");
            for thread in &threads {
                let (name, seconds) = (clean(&thread.name), thread.cpu_seconds);
                let _ = writeln!(out, "{:>10} {name:<16} {:<5} {seconds:>12.2}", thread.id, thread.state);
            }
            let _ = writeln!(out, "{} thread{} listed.", threads.len(), s(threads.len()));
            out
        };
        ask.show(data, text)
    }

    /// Queues by name, with what went through and what waits.
    fn queues_inside(&self) -> Vec<(String, u64, u64)> {
        let counters = self.site.counters.get();
        let waiting = ("realtime/registrations".to_owned(), counters.rows_written, counters.rows_waiting);
        let mut rows = vec![waiting];
        let tables = self.site.record_tables.borrow();
        rows.extend(
            tables.iter().map(|table| (format!("records/{}", table.name), table.written, table.waiting)),
        );
        let databases = self.site.databases.borrow().clone();
        let databases = databases.map(|databases| databases.borrow().lines()).unwrap_or_default();
        rows.extend(
            databases
                .into_iter()
                .map(|line| (format!("database/{}", line.name), line.answered, line.waiting)),
        );
        rows.sort();
        rows
    }

    fn core_show_taskprocessors(&self, ask: &mut Ask<'_>) -> Said {
        let like = ask.arg("text");
        let mut rows = self.queues_inside();
        rows.retain(|(name, ..)| like.is_none_or(|like| holds(name, like)));
        let data = || {
            let rows = rows
                .iter()
                .map(|(name, processed, waiting)| json!({ "name": name, "processed": processed, "in_queue": waiting }));
            json!({ "taskprocessors": rows.collect::<Vec<_>>() })
        };
        let text = || {
            let mut out = format!("{:<60} {:>12} {:>10}\n", "Processor", "Processed", "In Queue");
            for (name, processed, waiting) in &rows {
                let _ = writeln!(out, "{:<60} {processed:>12} {waiting:>10}", clean(name));
            }
            let _ = writeln!(out, "{} taskprocessor{}", rows.len(), s(rows.len()));
            out
        };
        ask.show(data, text)
    }

    fn core_show_channeltypes(&self, ask: &mut Ask<'_>) -> Said {
        let there: Vec<_> =
            TECHNOLOGIES.iter().filter(|(name, _)| self.site.shard.tech_named(name).is_some()).collect();
        let data = || {
            let rows: Vec<Value> = there
                .iter()
                .map(|(name, description)| json!({ "name": name, "description": description }))
                .collect();
            json!({ "technologies": rows })
        };
        let text = || {
            let mut out =
                format!("{:<16}{}\n{:<16}{}\n", "Type", "Description", "-----------", "-----------");
            for (name, description) in &there {
                let _ = writeln!(out, "{name:<16}{description}");
            }
            let _ = writeln!(out, "----------\n{} channel driver{} registered.", there.len(), s(there.len()));
            out
        };
        ask.show(data, text)
    }

    fn core_show_channeltype(&self, ask: &mut Ask<'_>) -> Said {
        let name = ask.need("technology");
        let known = TECHNOLOGIES.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
        let Some((name, description)) = known.filter(|(name, _)| self.site.shard.tech_named(name).is_some())
        else {
            return Said::failed(format!("{} is not a registered channel driver.\n", clean(name)));
        };
        // A Local channel has nobody at its end who could be sent elsewhere.
        let transfer = *name != "Local";
        let yes = |value: bool| if value { "yes" } else { "no" };
        let formats: Vec<&str> = base::FormatId::ALL
            .iter()
            .filter(|format| !format.is_video())
            .map(|format| format.name())
            .collect();
        ask.show(
            || json!({ "name": name, "description": description, "transfer": transfer, "text": true, "digits": true }),
            || {
                format!(
                    "-- Info about channel driver: {name} --\n  Device State: yes\nPresence State: no\n    Indication: yes\n     \
                     Transfer : {}\n  Capabilities: ({})\n   Digit Begin: yes\n     Digit End: yes\n    Send HTML : {}\n \
                     Image Support: no\n  Text Support: yes\n",
                    yes(transfer),
                    formats.join("|"),
                    yes(*name == "IAX2")
                )
            },
        )
    }

    fn core_show_file_formats(&self, ask: &mut Ask<'_>) -> Said {
        let formats = store::sounds::file_formats();
        let data = || {
            let rows = formats.iter().map(|(format, names)| json!({ "format": format, "extensions": names }));
            json!({ "formats": rows.collect::<Vec<_>>() })
        };
        let text = || {
            let mut out = format!("{:<10} {}\n", "Format", "Extensions");
            for (format, names) in &formats {
                let _ = writeln!(out, "{format:<10} {}", names.join("|"));
            }
            let _ = writeln!(out, "{} file format{} registered.", formats.len(), s(formats.len()));
            out
        };
        ask.show(data, text)
    }

    fn indication_show(&self, ask: &mut Ask<'_>) -> Said {
        let snapshot = self.site.snapshot.borrow();
        let wanted = ask.arg("country").map(str::to_ascii_lowercase);
        let zones: Vec<(&String, &Zone)> = snapshot
            .tones
            .zones
            .iter()
            .filter(|(code, _)| match wanted.as_deref() {
                Some(wanted) => wanted == *code,
                // What is built in is there for those who write no countries.
                None => snapshot.tones.written.is_empty() || snapshot.tones.written.contains(code),
            })
            .collect();
        if let (Some(wanted), true) = (&wanted, zones.is_empty()) {
            return Said::failed(format!("Indication '{}' not found\n", clean(wanted)));
        }
        let data = || {
            let rows = zones.iter().map(|(code, zone)| {
                let tones =
                    zone.tones.iter().map(|(name, tone)| json!({ "name": name, "tone": tone_text(tone) }));
                json!({
                    "country": code, "description": zone.description, "tones": tones.collect::<Vec<_>>(),
                })
            });
            json!({ "countries": rows.collect::<Vec<_>>() })
        };
        let text = || {
            let mut out = String::new();
            if wanted.is_some() {
                zones.iter().for_each(|(code, zone)| zone_text(code, zone, &mut out));
                return out;
            }
            out.push_str("Country   Description\n===========================\n");
            for (code, zone) in &zones {
                let _ = writeln!(out, "{code:<7}  {}", clean(&zone.description));
            }
            let _ = writeln!(
                out,
                "===========================\nDefault tone zone: {}",
                clean(&snapshot.tones.general.country)
            );
            out
        };
        ask.show(data, text)
    }

    fn group_show_channels(&self, ask: &mut Ask<'_>) -> Said {
        let core = self.site.shard.core.borrow();
        let like = ask.arg("text");
        let rows: Vec<(&str, &str, &str)> = core
            .channels()
            .flat_map(|channel| {
                channel
                    .groups
                    .iter()
                    .map(|(category, group)| (&*channel.name, category.as_str(), group.as_str()))
            })
            .filter(|(_, _, group)| like.is_none_or(|like| holds(group, like)))
            .collect();
        let data = || {
            let rows = rows
                .iter()
                .map(|(channel, category, group)| json!({ "channel": channel, "category": category, "group": group }));
            json!({ "groups": rows.collect::<Vec<_>>() })
        };
        let text = || {
            let line = |channel: &str, group: &str, category: &str| {
                format!("{channel:<25}  {group:<20}  {category:<20}\n")
            };
            let mut out = line("Channel", "Group", "Category");
            for (channel, category, group) in &rows {
                let category = if category.is_empty() { "(default)" } else { category };
                out += &line(&clean(channel), &clean(group), &clean(category));
            }
            let _ = writeln!(out, "{} active channel{}", rows.len(), s(rows.len()));
            out
        };
        ask.show(data, text)
    }

    fn local_show_channels(&self, ask: &mut Ask<'_>) -> Said {
        let core = self.site.shard.core.borrow();
        let rows: Vec<(&str, &str, String)> = core
            .channels()
            .filter(|channel| channel.name.starts_with("Local/"))
            .map(|channel| {
                let place = &channel.location;
                (&*channel.name, channel.state.name(), format!("{}@{}", place.exten, place.context))
            })
            .collect();
        let data = || {
            let rows = rows
                .iter()
                .map(|(name, state, place)| json!({ "name": name, "state": state, "place": place }));
            json!({ "channels": rows.collect::<Vec<_>>() })
        };
        let text = || {
            if rows.is_empty() {
                return "No local channels in use\n".to_owned();
            }
            rows.iter()
                .map(|(name, state, place)| format!("{} -- {state} -- {}\n", clean(name), clean(place)))
                .collect()
        };
        ask.show(data, text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_is_read_from_stat_whatever_its_name_holds() {
        let stat = "4711 (a (b) c) S 1 2 3 4 5 6 7 8 9 10 150 50 13 14 20 0";
        let thread = thread_of(stat).expect("it is one");
        assert_eq!((thread.id, thread.name.as_str(), thread.state.as_str()), (4711, "a (b) c", "S"));
        assert!((thread.cpu_seconds - 2.0).abs() < 1e-9);
        for wrong in ["", "12", "12 (a", "x (a) S 1", "1 (a) S"] {
            assert!(thread_of(wrong).is_none(), "{wrong}");
        }
    }
}
