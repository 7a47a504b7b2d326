//! Conferences: who is in them, and muting, locking and sending out.

use std::fmt::Write as _;

use call::conference::{
    Action, BRIDGE_ROWS, Conference, Field, Member, NotThere, OptionRow, Profiles, RecordRefused, SOUND_ROWS,
    USER_ROWS, Which,
};
use serde_json::{Value, json};

use super::text::{clean, yes_no};
use super::{Ask, Cli, Row, Said, show, verb};

pub(super) const ROWS: &[Row] = &[
    show(
        "confbridge list",
        "Lists conferences.",
        "conferences [name users marked locked muted]",
        Cli::confbridge_list,
    )
    .also(&["meetme list"]),
    show(
        "confbridge list <conference>",
        "Lists the members of a conference.",
        "members [channel caller_number caller_name user_profile menu admin marked wait_marked end_marked waiting \
         muted talking seconds]",
        Cli::confbridge_members,
    )
    .also(&["meetme list <conference>"])
    .detail("Flags: A administrator, M marked, W waits for marked users, E leaves with them, w waits now, m muted, t talks."),
    verb(
        "confbridge kick <conference> <channel|all|participants>",
        "Sends members out of a conference.",
        |cli, ask| cli.with_members(ask, |core, name, which| core.conference_kick(name, which), "Kicked"),
    )
    .also(&["meetme kick <conference> <channel|all|participants>"]),
    verb(
        "confbridge mute <conference> <channel|all|participants>",
        "Lets members of a conference not be heard.",
        |cli, ask| {
            cli.with_members(ask, |core, name, which| core.conference_mute(name, which, true), "Muted")
        },
    )
    .also(&["meetme mute <conference> <channel|all|participants>"]),
    verb(
        "confbridge unmute <conference> <channel|all|participants>",
        "Lets members of a conference be heard again.",
        |cli, ask| {
            cli.with_members(ask, |core, name, which| core.conference_mute(name, which, false), "Unmuted")
        },
    )
    .also(&["meetme unmute <conference> <channel|all|participants>"]),
    verb("confbridge lock <conference>", "Lets nobody but administrators enter a conference.", |cli, ask| {
        cli.confbridge_lock(ask, true)
    })
    .also(&["meetme lock <conference>"]),
    verb("confbridge unlock <conference>", "Lets everyone enter a conference again.", |cli, ask| {
        cli.confbridge_lock(ask, false)
    })
    .also(&["meetme unlock <conference>"]),
    verb(
        "confbridge record start <conference> [<file>]",
        "Records a conference: to this file, or where its bridge profile says.",
        Cli::confbridge_record_start,
    ),
    verb("confbridge record stop <conference>", "Ends the recording of a conference.", Cli::confbridge_record_stop),
    show("confbridge show profile bridges", "Lists bridge profiles.", "profiles", |cli, ask| {
        ask.names("bridge profiles", cli.profiles().all_bridges().into_keys().collect())
    }),
    show(
        "confbridge show profile bridge <profile>",
        "Shows what a bridge profile says.",
        "name options [name value]",
        |cli, ask| {
            let found = cli.profiles().bridge(ask.need("profile"));
            ask.options("bridge profile", found.map(|found| said(&[BRIDGE_ROWS, SOUND_ROWS], &found)))
        },
    ),
    show("confbridge show profile users", "Lists user profiles.", "profiles", |cli, ask| {
        ask.names("user profiles", cli.profiles().all_users().into_keys().collect())
    }),
    show(
        "confbridge show profile user <profile>",
        "Shows what a user profile says.",
        "name options [name value]",
        |cli, ask| {
            let found = cli.profiles().user(ask.need("profile"));
            ask.options("user profile", found.map(|found| said(&[USER_ROWS], &found)))
        },
    ),
    show("confbridge show menus", "Lists menus.", "profiles", |cli, ask| {
        ask.names("menus", cli.profiles().menus.keys().cloned().collect())
    }),
    show("confbridge show menu <profile>", "Shows what keys do.", "name options [name value]", |cli, ask| {
        let found = cli.profiles().menu(ask.need("profile"));
        let spelt = |actions: &[Action]| actions.iter().map(Action::spell).collect::<Vec<_>>().join(",");
        let rows = found.map(|menu| menu.keys.iter().map(|(digits, does)| (digits.clone(), spelt(does))).collect());
        ask.options("menu", rows)
    }),
];

/// What a profile says, by option; what is not obeyed is left out.
fn said<P: Clone + Default>(tables: &[&'static [OptionRow<P>]], profile: &P) -> Vec<(String, String)> {
    let rows = tables.iter().copied().flatten().filter(|row| !matches!(row.field, Field::Not(..)));
    rows.map(|row| (row.name.to_owned(), row.show(profile))).collect()
}

impl Ask<'_> {
    /// Names, a line each.
    fn names(&self, of: &str, names: Vec<String>) -> Said {
        self.show(
            || json!({ "profiles": names }),
            || {
                let mut out = format!("--------- {of} ---------\n");
                for name in &names {
                    let _ = writeln!(out, "{}", clean(name));
                }
                out
            },
        )
    }
    /// Options and what they say.
    fn options(&self, of: &str, rows: Option<Vec<(String, String)>>) -> Said {
        let name = self.need("profile");
        let Some(rows) = rows else {
            return Said::failed(format!("No conference {of} named '{}' found!\n", clean(name)));
        };
        let data = || {
            let rows: Vec<Value> =
                rows.iter().map(|(name, value)| json!({ "name": name, "value": value })).collect();
            json!({ "name": name, "options": rows })
        };
        let text = || {
            let mut out = format!("{:<28} {}\n", "Name:", clean(name));
            for (option, value) in &rows {
                let _ = writeln!(out, "{:<28} {}", format!("{option}:"), clean(value));
            }
            out
        };
        self.show(data, text)
    }
}

type Change = fn(&mut call::Core, &str, Which) -> Result<(), NotThere>;

fn flags(conference: &Conference, member: &Member) -> String {
    let flag = |on: bool, letter: char| on.then_some(letter);
    let seat = &member.seat;
    let flags = [
        flag(seat.is_admin, 'A'),
        flag(seat.is_marked, 'M'),
        flag(seat.waits_marked, 'W'),
        flag(seat.ends_marked || seat.ends_marked_any, 'E'),
        flag(conference.silences(member), 'm'),
        flag(member.waits, 'w'),
        flag(member.talks && seat.tells_talking, 't'),
    ];
    flags.into_iter().flatten().collect()
}

fn no_conference(name: &str) -> Said {
    Said::failed(format!("No conference bridge named '{}' found!\n", clean(name)))
}

impl Cli {
    fn confbridge_list(&self, ask: &mut Ask<'_>) -> Said {
        let core = &*self.site.shard.core.borrow();
        let data = || {
            let rows: Vec<Value> = core
                .conferences
                .iter()
                .map(|conference| {
                    json!({
                        "name": conference.name,
                        "users": conference.members.len(),
                        "marked": conference.marked(),
                        "locked": conference.is_locked,
                        "muted": conference.is_muted(),
                    })
                })
                .collect();
            json!({ "conferences": rows })
        };
        let text = || {
            let mut out = format!(
                "{:<32} {:<6} {:<6} {:<6} {}\n{:=<32} {:=<6} {:=<6} {:=<6} {:=<5}\n",
                "Conference Bridge Name", "Users", "Marked", "Locked", "Muted", "", "", "", "", ""
            );
            for conference in core.conferences.iter() {
                let _ = writeln!(
                    out,
                    "{:<32} {:>6} {:>6} {:<6} {}",
                    clean(&conference.name),
                    conference.members.len(),
                    conference.marked(),
                    yes_no(conference.is_locked),
                    yes_no(conference.is_muted()),
                );
            }
            out
        };
        ask.show(data, text)
    }
    fn confbridge_members(&self, ask: &mut Ask<'_>) -> Said {
        let name = ask.need("conference");
        let core = &*self.site.shard.core.borrow();
        let Some(conference) = core.conferences.get(name) else { return no_conference(name) };
        let members = || conference.members.iter().filter_map(|m| core.get(m.channel).map(|c| (m, c)));
        let data = || {
            let rows: Vec<Value> = members()
                .map(|(member, channel)| {
                    json!({
                        "channel": &*channel.name,
                        "caller_number": channel.caller.number(),
                        "caller_name": channel.caller.name(),
                        "user_profile": member.user,
                        "menu": member.menu,
                        "admin": member.seat.is_admin,
                        "marked": member.seat.is_marked,
                        "wait_marked": member.seat.waits_marked,
                        "end_marked": member.seat.ends_marked || member.seat.ends_marked_any,
                        "waiting": member.waits,
                        "muted": conference.silences(member),
                        "talking": member.talks,
                        "seconds": core.now.since(member.since).as_secs(),
                    })
                })
                .collect();
            json!({ "members": rows })
        };
        let text = || {
            let mut out = format!(
                "{:<30} {:<6} {:<16} {:<16} {:<16} {}\n{:=<30} {:=<6} {:=<16} {:=<16} {:=<16} {:=<16}\n",
                "Channel",
                "Flags",
                "User Profile",
                "Bridge Profile",
                "Menu",
                "CallerID",
                "",
                "",
                "",
                "",
                "",
                ""
            );
            for (member, channel) in members() {
                let _ = writeln!(
                    out,
                    "{:<30} {:<6} {:<16} {:<16} {:<16} {}",
                    clean(&channel.name),
                    flags(conference, member),
                    clean(&member.user),
                    clean(&conference.profile.name),
                    clean(&member.menu),
                    clean(channel.caller.number()),
                );
            }
            out
        };
        ask.show(data, text)
    }
    fn with_members(&self, ask: &mut Ask<'_>, change: Change, done: &str) -> Said {
        let (name, whom) = (ask.need("conference"), ask.need("channel|all|participants"));
        let core = &mut *self.site.shard.core.borrow_mut();
        if core.conferences.get(name).is_none() {
            return no_conference(name);
        }
        let Some(which) = apps::conference::which(core, name, whom) else {
            return Said::failed(format!("No channel named '{}' found\n", clean(whom)));
        };
        match change(core, name, which) {
            Ok(()) => Said::done(format!("{done} {} in conference {}\n", clean(whom), clean(name))),
            Err(NotThere::Conference) => no_conference(name),
            Err(NotThere::Member) => {
                Said::failed(format!("'{}' is not in conference {}\n", clean(whom), clean(name)))
            }
        }
    }
    fn profiles(&self) -> std::sync::Arc<Profiles> {
        self.site.shard.core.borrow().settings.conferences.clone()
    }
    fn confbridge_record_start(&self, ask: &mut Ask<'_>) -> Said {
        let (name, file) = (ask.need("conference"), ask.arg("file").unwrap_or_default());
        match apps::conference::start_recording(&self.site.shard, name, file) {
            Ok(file) => Said::done(format!("Recording started: {}\n", clean(&file))),
            Err(RecordRefused::NotThere) => no_conference(name),
            Err(RecordRefused::Running) => {
                Said::failed(format!("Conference '{}' is already being recorded.\n", clean(name)))
            }
            Err(why) => Said::failed(format!("Could not start recording: {why}\n")),
        }
    }
    fn confbridge_record_stop(&self, ask: &mut Ask<'_>) -> Said {
        let name = ask.need("conference");
        match apps::conference::stop_recording(&self.site.shard, name) {
            Ok(file) => Said::done(format!("Recording stopped: {}\n", clean(&file))),
            Err(RecordRefused::NotThere) => no_conference(name),
            Err(why) => Said::failed(format!("Conference '{}': {why}\n", clean(name))),
        }
    }
    fn confbridge_lock(&self, ask: &mut Ask<'_>, locked: bool) -> Said {
        let name = ask.need("conference");
        match self.site.shard.core.borrow_mut().conference_lock(name, locked) {
            Ok(()) => {
                let done = if locked { "locked" } else { "unlocked" };
                Said::done(format!("Conference {} is {done}.\n", clean(name)))
            }
            Err(_) => no_conference(name),
        }
    }
}
