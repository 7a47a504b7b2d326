//! Conferences: who is in them, and muting, locking and sending out.

use std::fmt::Write as _;

use call::conference::{Member, NotThere, Which};
use serde_json::{Value, json};

use super::text::{clean, yes_no};
use super::{Ask, Cli, Row, Said, show, verb};

pub(super) const ROWS: &[Row] = &[
    show(
        "confbridge list",
        "Lists conferences.",
        "conferences [name users marked locked muted]",
        Cli::confbridge_list,
    ),
    show(
        "confbridge list <conference>",
        "Lists the members of a conference.",
        "members [channel caller_number caller_name admin muted talking seconds]",
        Cli::confbridge_members,
    )
    .detail("Flags: A administrator, m muted, t talks."),
    verb(
        "confbridge kick <conference> <channel|all|participants>",
        "Sends members out of a conference.",
        |cli, ask| cli.with_members(ask, |core, name, which| core.conference_kick(name, which), "Kicked"),
    ),
    verb(
        "confbridge mute <conference> <channel|all|participants>",
        "Lets members of a conference not be heard.",
        |cli, ask| {
            cli.with_members(ask, |core, name, which| core.conference_mute(name, which, true), "Muted")
        },
    ),
    verb(
        "confbridge unmute <conference> <channel|all|participants>",
        "Lets members of a conference be heard again.",
        |cli, ask| {
            cli.with_members(ask, |core, name, which| core.conference_mute(name, which, false), "Unmuted")
        },
    ),
    verb("confbridge lock <conference>", "Lets nobody but administrators enter a conference.", |cli, ask| {
        cli.confbridge_lock(ask, true)
    }),
    verb("confbridge unlock <conference>", "Lets everyone enter a conference again.", |cli, ask| {
        cli.confbridge_lock(ask, false)
    }),
];

type Change = fn(&mut call::Core, &str, Which) -> Result<(), NotThere>;

fn flags(member: &Member) -> String {
    let flag = |on: bool, letter: char| on.then_some(letter);
    let flags =
        [flag(member.seat.is_admin, 'A'), flag(member.seat.mixing.muted, 'm'), flag(member.talks, 't')];
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
                        "marked": 0,
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
                    0,
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
                        "admin": member.seat.is_admin,
                        "muted": member.seat.mixing.muted,
                        "talking": member.talks,
                        "seconds": core.now.since(member.since).as_secs(),
                    })
                })
                .collect();
            json!({ "members": rows })
        };
        let text = || {
            let mut out = format!(
                "{:<30} {:<6} {:<8} {}\n{:=<30} {:=<6} {:=<8} {:=<16}\n",
                "Channel", "Flags", "Seconds", "CallerID", "", "", "", ""
            );
            for (member, channel) in members() {
                let _ = writeln!(
                    out,
                    "{:<30} {:<6} {:>8} {}",
                    clean(&channel.name),
                    flags(member),
                    core.now.since(member.since).as_secs(),
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
        let which = match whom {
            "all" => Which::All,
            "participants" => Which::Participants,
            channel => match core.by_name(channel) {
                Some(id) => Which::One(id),
                None => return Said::failed(format!("No channel named '{}' found\n", clean(channel))),
            },
        };
        match change(core, name, which) {
            Ok(()) => Said::done(format!("{done} {} in conference {}\n", clean(whom), clean(name))),
            Err(NotThere::Conference) => no_conference(name),
            Err(NotThere::Member) => {
                Said::failed(format!("'{}' is not in conference {}\n", clean(whom), clean(name)))
            }
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
