//! What the process can do: applications, functions; and hints.

use std::collections::HashMap;
use std::fmt::Write as _;

use apps::AppRow;
use apps::hints::HintRow;
use call::DeviceState;
use dialplan::FunctionRow;
use dialplan::pattern::Pattern;
use serde_json::{Value, json};

use super::text::{clean, holds};
use super::{Ask, Cli, Row, Said, show};

pub(super) const ROWS: &[Row] = &[
    show(
        "core show applications [like <text>]",
        "Lists dialplan applications, or those whose name holds a text.",
        "applications [name synopsis module]",
        Cli::core_show_applications,
    )
    .also(&["show applications [like <text>]", "core list applications [like <text>]"]),
    show(
        "core show application <application>",
        "Shows how an application is used.",
        "name synopsis syntax description module",
        Cli::core_show_application,
    )
    .also(&["show application <application>"]),
    show(
        "core show functions [like <text>]",
        "Lists dialplan functions, or those whose name holds a text.",
        "functions [name syntax synopsis readable writable]",
        Cli::core_show_functions,
    )
    .also(&["show functions [like <text>]"]),
    show(
        "core show function <function>",
        "Shows how a function is used.",
        "name syntax synopsis readable writable",
        Cli::core_show_function,
    )
    .also(&["show function <function>"]),
    show(
        "core show hints",
        "Lists the hints of the dialplan and the states of their devices.",
        "hints [exten context devices state watchers]",
        |cli, ask| cli.hints(ask, None),
    )
    .also(&["show hints"]),
    show(
        "core show hint <exten>",
        "Shows the hints of one extension, in every context.",
        "hints [exten context devices state watchers]",
        |cli, ask| {
            let exten = ask.need("exten").to_owned();
            cli.hints(ask, Some(&exten))
        },
    ),
];

fn function_json(row: &FunctionRow) -> Value {
    json!({
        "name": row.name, "syntax": row.syntax, "synopsis": row.synopsis,
        "readable": row.readable(), "writable": row.writable(),
    })
}

/// The state of an extension in the words of `core show hints`.
fn exten_state(state: DeviceState) -> &'static str {
    match state {
        DeviceState::Unknown | DeviceState::NotInUse => "Idle",
        DeviceState::InUse => "InUse",
        DeviceState::Busy => "Busy",
        DeviceState::Invalid | DeviceState::Unavailable => "Unavailable",
        DeviceState::Ringing => "Ringing",
        DeviceState::RingInUse => "InUse&Ringing",
        DeviceState::OnHold => "Hold",
    }
}

impl Cli {
    pub(super) fn applications(&self) -> impl Iterator<Item = &'static AppRow> {
        let settings = self.site.shard.core.borrow().settings.clone();
        let mut rows: Vec<&AppRow> = apps::table::applications()
            .iter()
            .copied()
            .filter(|row| settings.has_module(row.module))
            .collect();
        rows.sort_by_key(|row| row.name.to_ascii_lowercase());
        rows.into_iter()
    }

    pub(super) fn function_names(&self) -> Vec<String> {
        let core = self.site.shard.core.borrow();
        core.program.functions().iter().map(|row| row.name.to_string()).collect()
    }

    fn core_show_applications(&self, ask: &mut Ask<'_>) -> Said {
        let like = ask.arg("text");
        let rows: Vec<&AppRow> =
            self.applications().filter(|row| like.is_none_or(|like| holds(row.name, like))).collect();
        let data = || {
            let rows: Vec<Value> = rows
                .iter()
                .map(|row| json!({ "name": row.name, "synopsis": row.synopsis, "module": row.module }))
                .collect();
            json!({ "applications": rows })
        };
        let text = || {
            let (before, after) = match like {
                Some(_) => ("Matching Asterisk Applications", "Applications Matching"),
                None => ("Registered Asterisk Applications", "Applications Registered"),
            };
            let mut out = format!("    -= {before} =-\n");
            for row in &rows {
                let _ = writeln!(out, "  {:>20}: {}", row.name, row.synopsis);
            }
            let _ = writeln!(out, "    -= {} {after} =-", rows.len());
            out
        };
        ask.show(data, text)
    }

    fn core_show_application(&self, ask: &mut Ask<'_>) -> Said {
        let name = ask.need("application");
        let Some(row) = self.applications().find(|row| row.name.eq_ignore_ascii_case(name)) else {
            return Said::refused("Your application(s) is (are) not registered\n");
        };
        let data = || {
            json!({
                "name": row.name, "synopsis": row.synopsis, "syntax": row.syntax,
                "description": row.description, "module": row.module,
            })
        };
        let text = || {
            format!(
                "\n  -= Info about application '{}' =- \n\n[Synopsis]\n{}\n\n[Description]\n{}\n\n[Syntax]\n{}\n\n",
                row.name, row.synopsis, row.description, row.syntax
            )
        };
        ask.show(data, text)
    }

    fn core_show_functions(&self, ask: &mut Ask<'_>) -> Said {
        let core = self.site.shard.core.borrow();
        let like = ask.arg("text");
        let mut rows: Vec<&FunctionRow> = core
            .program
            .functions()
            .iter()
            .filter(|row| like.is_none_or(|like| holds(&row.name, like)))
            .collect();
        rows.sort_by(|one, other| one.name.cmp(&other.name));
        let data = || json!({ "functions": rows.iter().map(|row| function_json(row)).collect::<Vec<_>>() });
        let text = || {
            let (title, footer) = match like {
                Some(_) => ("Matching", "matching custom functions installed."),
                None => ("Installed", "custom functions installed."),
            };
            let mut out = format!("{title} Custom Functions:\n{}\n", "-".repeat(80));
            for row in &rows {
                let _ = writeln!(out, "{:<20.20}  {:<35.35}  {}", row.name, row.syntax, row.synopsis);
            }
            let _ = writeln!(out, "{} {footer}", rows.len());
            out
        };
        ask.show(data, text)
    }

    fn core_show_function(&self, ask: &mut Ask<'_>) -> Said {
        let core = self.site.shard.core.borrow();
        let name = ask.need("function");
        let functions = core.program.functions();
        let Some(row) = functions.lookup(name).and_then(|id| functions.row(id)) else {
            return Said::refused("No function by that name registered.\n");
        };
        let access = match (row.readable(), row.writable()) {
            (true, true) => "It can be read and set.",
            (true, false) => "It can be read.",
            _ => "It can be set.",
        };
        ask.show(
            || function_json(row),
            || {
                format!(
                    "\n  -= Info about function '{}' =- \n\n[Synopsis]\n{}\n\n[Description]\n{access}\n\n[Syntax]\n{}\n\n",
                    row.name, row.synopsis, row.syntax
                )
            },
        )
    }

    /// How many watch each extension, by context.
    fn watched(&self) -> HashMap<String, HashMap<String, usize>> {
        let mut watched: HashMap<String, HashMap<String, usize>> = HashMap::new();
        for (context, exten, count) in self.site.sip.borrow().watched_extensions() {
            watched.entry(context.to_owned()).or_default().insert(exten.to_owned(), count);
        }
        watched
    }

    fn hints(&self, ask: &mut Ask<'_>, exten: Option<&str>) -> Said {
        let hints = self.site.hints.borrow();
        let rows: Vec<_> =
            hints.rows().iter().filter(|row| exten.is_none_or(|exten| row.exten == exten)).collect();
        let watched = self.watched();
        // A pattern is watched by its numbers.
        let watchers = |row: &HintRow| -> usize {
            let Some(extens) = watched.get(&row.context) else { return 0 };
            match row.exten.starts_with('_').then(|| Pattern::parse(&row.exten)) {
                Some(Ok(pattern)) => {
                    let fits = extens.iter().filter(|(exten, _)| pattern.fit(exten).matches());
                    fits.map(|(_, count)| count).sum()
                }
                _ => extens.get(&row.exten).copied().unwrap_or(0),
            }
        };
        let data = || {
            let rows: Vec<Value> = rows
                .iter()
                .map(|row| {
                    json!({
                        "exten": row.exten, "context": row.context, "devices": row.devices,
                        "state": exten_state(row.state), "watchers": watchers(row),
                    })
                })
                .collect();
            json!({ "hints": rows })
        };
        let text = || {
            if rows.is_empty() {
                return match exten {
                    Some(exten) => format!("No hints matching extension {}\n", clean(exten)),
                    None => "There are no registered dialplan hints\n".to_owned(),
                };
            }
            let mut out = match exten {
                Some(_) => String::new(),
                None => "\n    -= Registered Asterisk Dial Plan Hints =-\n".to_owned(),
            };
            let said = |provider: &str| {
                let said = apps::presence::state(&self.site.shard.core.borrow(), provider);
                said.unwrap_or_default().state.name()
            };
            for row in &rows {
                let place = format!("{}@{}", row.exten, row.context);
                let _ = writeln!(
                    out,
                    "{:<30}: {:<60}  State:{:<15} Presence:{:<15} Watchers {:>2}",
                    clean(&place),
                    clean(&row.devices),
                    exten_state(row.state),
                    said(&row.presence),
                    watchers(row)
                );
            }
            match exten {
                Some(exten) => {
                    let plural = super::text::s(rows.len());
                    let _ = writeln!(out, "{} hint{plural} matching extension {}", rows.len(), clean(exten));
                }
                None => {
                    let _ = writeln!(out, "----------------\n- {} hints registered", rows.len());
                }
            }
            out
        };
        ask.show(data, text)
    }
}
