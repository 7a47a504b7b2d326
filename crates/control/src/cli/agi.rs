//! What scripts may say, and what they do say.

use std::fmt::Write as _;

use apps::agi::{COMMANDS, CommandRow, find_command};
use call::{AgiCommand, AgiRefused};
use serde_json::{Value, json};

use super::text::clean;
use super::{Ask, Cli, Row, Said, show, verb};

pub(super) const ROWS: &[Row] = &[
    show(
        "agi show commands [topic <command...>]",
        "Lists what scripts may say, or tells of one command.",
        "commands [name synopsis syntax description dead]",
        Cli::agi_show,
    )
    .also(&["agi show"]),
    verb("agi set debug on|off", "Shows every line that scripts say and are answered.", |cli, ask| {
        let on = ask.choice() == Some("on");
        cli.site.shard.core.borrow_mut().agi_debug = on;
        Said::done(format!("AGI Debugging {}\n", if on { "Enabled" } else { "Disabled" }))
    }),
    verb(
        "agi exec <channel> <command> [<id>]",
        "Sends a command to a channel that is in AGI(agi:async).",
        Cli::agi_exec,
    )
    .detail("The command stands in quotation marks when it has several words."),
];

impl Cli {
    fn agi_show(&self, ask: &mut Ask<'_>) -> Said {
        let rows: Vec<&CommandRow> = match ask.arg("command") {
            None => COMMANDS.iter().collect(),
            Some(name) => match find_command(name) {
                Some(row) => vec![row],
                None => {
                    return Said::failed(format!("There is no AGI command '{}'\n", clean(name)));
                }
            },
        };
        let one = ask.arg("command").is_some();
        let data = || {
            let row = |row: &&CommandRow| {
                json!({
                    "name": row.name,
                    "synopsis": row.synopsis,
                    "syntax": row.syntax,
                    "description": row.description,
                    "dead": row.dead,
                })
            };
            let rows: Vec<Value> = rows.iter().map(row).collect();
            json!({ "commands": rows })
        };
        let text = || {
            let mut out = String::new();
            if !one {
                let _ = writeln!(out, "{:<5} {:<26} Description", "Dead", "Command");
            }
            for row in &rows {
                let dead = if row.dead { "Yes" } else { "No" };
                let _ = if one {
                    writeln!(
                        out,
                        "{} {}\n{}\n{}\nWorks when the call has ended: {dead}",
                        row.name, row.syntax, row.synopsis, row.description
                    )
                } else {
                    writeln!(out, "{dead:<5} {:<26} {}", row.name, row.synopsis)
                };
            }
            out
        };
        ask.show(data, text)
    }
    fn agi_exec(&self, ask: &mut Ask<'_>) -> Said {
        let name = ask.need("channel");
        let core = &mut *self.site.shard.core.borrow_mut();
        let Some(id) = core.by_name(name) else {
            return Said::failed(format!("Channel {} does not exist.\n", clean(name)));
        };
        if !crate::ami::agi_allowed(core, ask.need("command"), ask.rights, ask.may_reach_outside) {
            return Said::refused(super::OUTSIDE);
        }
        let command = AgiCommand {
            line: ask.need("command").to_owned(),
            id: ask.arg("id").unwrap_or_default().to_owned(),
            rights: ask.rights,
        };
        match core.push_agi(id, command) {
            Ok(()) => Said::done(format!("Added AGI command to queue of {}\n", clean(name))),
            Err(AgiRefused::NotThere) => {
                Said::failed(format!("Channel {} is not setup for Async AGI.\n", clean(name)))
            }
            Err(AgiRefused::Full) => Said::failed("Too many commands wait already.\n"),
        }
    }
}
