//! Bridges: who talks to whom, and sending out who shall not.

use std::fmt::Write as _;

use apps::transfer;
use base::{BridgeId, ChannelId};
use call::Core;
use serde_json::{Value, json};

use super::text::{clean, clock};
use super::{Ask, Cli, Row, Said, show, verb};
use crate::ami::TECHNOLOGIES;

pub(super) const ROWS: &[Row] = &[
    show("bridge show all", "Lists bridges.", "bridges [id channels]", Cli::bridge_show_all),
    show(
        "bridge show <bridge>",
        "Shows a bridge and who is in it.",
        "id type technology conference channels [name uniqueid caller_number seconds]",
        Cli::bridge_show,
    )
    .detail(
        "A bridge is named as in `bridge show all`, which is the BridgeUniqueid of the manager's events.",
    ),
    verb(
        "bridge kick <bridge> <channel>",
        "Sends a channel out of its bridge: on in its dialplan, else to its end.",
        Cli::bridge_kick,
    ),
    verb(
        "bridge destroy <bridge>",
        "Sends every channel out of a bridge, which ends with that.",
        Cli::bridge_destroy,
    ),
    show(
        "bridge technology show",
        "Lists the ways in which channels are bridged.",
        "technologies [name type priority]",
        Cli::bridge_technologies,
    ),
];

/// The id of a bridge as clients see it.
fn uid_of(core: &Core, id: BridgeId) -> std::rc::Rc<str> {
    core.bridge_snapshot(id).map_or_else(|| "".into(), |shown| shown.uid)
}

/// Type and technology of a bridge.
fn kind_of(core: &Core, id: BridgeId) -> (&'static str, &'static str) {
    let shown = core.bridge_snapshot(id);
    shown.map_or(("", ""), |shown| (shown.used_for.type_name(), shown.technology))
}

impl Cli {
    /// The bridge that is named, and who is in it.
    fn bridge(&self, ask: &Ask<'_>) -> Result<(BridgeId, Vec<ChannelId>), Said> {
        let name = ask.need("bridge");
        let core = self.site.shard.core.borrow();
        let found = core.bridge_by_uid(name).map(|id| (id, core.bridge_members(id).to_vec()));
        found.ok_or_else(|| Said::failed(format!("Bridge '{}' not found\n", clean(name))))
    }
    fn bridge_show_all(&self, ask: &mut Ask<'_>) -> Said {
        let core = &*self.site.shard.core.borrow();
        let data = || {
            let rows: Vec<Value> = core
                .bridges()
                .map(|(id, members)| {
                    let names: Vec<&str> =
                        members.iter().filter_map(|id| core.get(*id)).map(|c| &*c.name).collect();
                    json!({ "id": uid_of(core, id), "channels": names })
                })
                .collect();
            json!({ "bridges": rows })
        };
        let text = || {
            let mut out = format!(
                "{:<36} {:<36} {:>5} {:<15} {:<15} {}\n",
                "Bridge-ID", "Name", "Chans", "Type", "Technology", "Duration"
            );
            for (id, _) in core.bridges() {
                let Some((shown, (_, since))) = core.bridge_snapshot(id).zip(core.bridge_since(id)) else {
                    continue;
                };
                let _ = writeln!(
                    out,
                    "{:<36} {:<36} {:>5} {:<15} {:<15} {}",
                    shown.uid,
                    clean(&shown.name),
                    shown.count,
                    shown.used_for.type_name(),
                    shown.technology,
                    clock(core.now.since(since))
                );
            }
            out
        };
        ask.show(data, text)
    }

    fn bridge_show(&self, ask: &mut Ask<'_>) -> Said {
        let (id, members) = match self.bridge(ask) {
            Ok(found) => found,
            Err(said) => return said,
        };
        let core = &*self.site.shard.core.borrow();
        let (kind, technology) = kind_of(core, id);
        let conference = core.conferences.iter().find(|conference| conference.bridge == id);
        let conference = conference.map(|conference| conference.name.as_str());
        let channels: Vec<_> = members.iter().filter_map(|id| core.get(*id)).collect();
        let data = || {
            let rows: Vec<Value> = channels
                .iter()
                .map(|channel| {
                    json!({
                        "name": &*channel.name,
                        "uniqueid": &*channel.uniqueid,
                        "caller_number": channel.caller.number(),
                        "seconds": core.now.since(channel.created).as_secs(),
                    })
                })
                .collect();
            let guests: Vec<&str> = core.bridge_guest_names(id).collect();
            json!({
                "id": uid_of(core, id),
                "type": kind,
                "technology": technology,
                "conference": conference,
                "channels": rows,
                "guests": guests,
            })
        };
        let text = || {
            let mut out = String::new();
            for (name, value) in [("Id", &*uid_of(core, id)), ("Type", kind), ("Technology", technology)] {
                let _ = writeln!(out, "{name}: {value}");
            }
            if let Some(name) = conference {
                let _ = writeln!(out, "Conference: {}", clean(name));
            }
            let _ = writeln!(out, "Num-Channels: {}", channels.len() + core.bridge_guest_names(id).count());
            for guest in core.bridge_guest_names(id) {
                let _ = writeln!(out, "Channel: {}", clean(guest));
            }
            for channel in &channels {
                let (name, caller) = (clean(&channel.name), clean(channel.caller.number()));
                let _ = writeln!(out, "Channel: {name} {caller} {}", clock(core.now.since(channel.created)));
            }
            out
        };
        ask.show(data, text)
    }
    fn bridge_kick(&self, ask: &mut Ask<'_>) -> Said {
        let members = match self.bridge(ask) {
            Ok((_, members)) => members,
            Err(said) => return said,
        };
        let name = ask.need("channel");
        let core = &mut *self.site.shard.core.borrow_mut();
        let found = core.by_name(name).filter(|id| members.contains(id));
        let Some(id) = found else {
            return Said::failed(format!("Channel '{}' is not in that bridge\n", clean(name)));
        };
        match transfer::kick(core, id) {
            Ok(()) => Said::done(format!(
                "Kicking channel '{}' from bridge '{}'\n",
                clean(name),
                clean(ask.need("bridge"))
            )),
            Err(why) => Said::failed(format!("Channel '{}' was not kicked: {why}\n", clean(name))),
        }
    }
    fn bridge_destroy(&self, ask: &mut Ask<'_>) -> Said {
        let members = match self.bridge(ask) {
            Ok((_, members)) => members,
            Err(said) => return said,
        };
        for id in members {
            // One that has left meanwhile is out of the bridge already.
            let _ = transfer::kick(&mut self.site.shard.core.borrow_mut(), id);
        }
        Said::done(format!("Destroying bridge '{}'\n", clean(ask.need("bridge"))))
    }
    fn bridge_technologies(&self, ask: &mut Ask<'_>) -> Said {
        let data = || {
            let row = |(name, kind, priority): &(&str, &str, u32)| json!({ "name": name, "type": kind, "priority": priority });
            json!({ "technologies": TECHNOLOGIES.iter().map(row).collect::<Vec<Value>>() })
        };
        let text = || {
            let mut out = format!("{:<20} {:<20} {:>8} {}\n", "Name", "Type", "Priority", "Suspended");
            for (name, kind, priority) in TECHNOLOGIES {
                let _ = writeln!(out, "{name:<20} {kind:<20} {priority:>8} No");
            }
            out
        };
        ask.show(data, text)
    }
}
