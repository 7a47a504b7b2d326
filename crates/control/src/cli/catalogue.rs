//! What the process can do: applications, functions, formats; and hints.

use std::fmt::Write as _;

use apps::AppRow;
use base::FormatId;
use call::DeviceState;
use dialplan::FunctionRow;
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
        "hints [exten context devices state]",
        |cli, ask| cli.hints(ask, None),
    )
    .also(&["show hints"]),
    show(
        "core show hint <exten>",
        "Shows the hints of one extension, in every context.",
        "hints [exten context devices state]",
        |cli, ask| {
            let exten = ask.need("exten").to_owned();
            cli.hints(ask, Some(&exten))
        },
    ),
    show(
        "core show codecs [audio|video|image]",
        "Lists formats, and who codes them.",
        "codecs [id name format description rate rtp_name payload coding]",
        Cli::core_show_codecs,
    )
    .also(&["show codecs"])
    .detail(
        "coding (with --json): lanes, native and bound formats are coded here; pass-through ones only go from leg to \
         leg.",
    ),
    show(
        "core show codec <number>",
        "Shows one format by its number in core show codecs.",
        "id name format description rate rtp_name payload coding",
        Cli::core_show_codec,
    )
    .also(&["show codec <number>"]),
    show(
        "core show translation [paths <codec>]",
        "Shows which formats can be turned into which, and in how many steps.",
        "translations [from to steps]",
        Cli::core_show_translation,
    )
    .also(&["show translation"])
    .detail("Steps are coding, decoding and resampling; 0 is the same format. Costs are not measured."),
    show(
        "core show channeltypes",
        "Lists channel technologies.",
        "technologies [name description]",
        Cli::core_show_channeltypes,
    ),
];

/// Technologies and what they are; those that are there are shown.
const TECHNOLOGIES: &[(&str, &str)] = &[
    ("PJSIP", "SIP over UDP and TCP"),
    ("SIP", "Other name of PJSIP"),
    ("Local", "Calls into the dialplan"),
];

fn function_json(row: &FunctionRow) -> Value {
    json!({
        "name": row.name, "syntax": row.syntax, "synopsis": row.synopsis,
        "readable": row.readable(), "writable": row.writable(),
    })
}

fn codec_json(format: FormatId) -> Value {
    json!({
        "id": format.index() + 1, "name": format.codec_name(), "format": format.name(),
        "description": format.description(), "rate": format.rate().0, "rtp_name": format.rtp_name(),
        "payload": format.usual_payload(), "coding": format.coding().name(),
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

/// How many steps lead from one format to another: everything goes over linear audio of its own rate.
fn steps(from: FormatId, to: FormatId) -> usize {
    if from == to {
        return 0;
    }
    let resampled = from.rate() != to.rate();
    usize::from(!from.is_linear()) + usize::from(resampled) + usize::from(!to.is_linear())
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
        core.program.functions().iter().map(|row| row.name.to_owned()).collect()
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
            return Said::failed(format!("Your application(s) is (are) not registered: {}\n", clean(name)));
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
            .filter(|row| like.is_none_or(|like| holds(row.name, like)))
            .collect();
        rows.sort_by_key(|row| row.name);
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
            return Said::failed(format!("No function by that name registered: {}\n", clean(name)));
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

    fn hints(&self, ask: &mut Ask<'_>, exten: Option<&str>) -> Said {
        let hints = self.site.hints.borrow();
        let rows: Vec<_> =
            hints.rows().iter().filter(|row| exten.is_none_or(|exten| row.exten == exten)).collect();
        let data = || {
            let rows: Vec<Value> = rows
                .iter()
                .map(|row| {
                    json!({
                        "exten": row.exten, "context": row.context, "devices": row.devices,
                        "state": exten_state(row.state),
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
            for row in &rows {
                let place = format!("{}@{}", row.exten, row.context);
                let _ = writeln!(
                    out,
                    "{:<30}: {:<20}  State:{:<15} Presence:{:<15} Watchers {:>2}",
                    clean(&place),
                    clean(&row.devices),
                    exten_state(row.state),
                    "not_set",
                    0
                );
            }
            match exten {
                Some(_) => {
                    let _ = writeln!(out, "{} hint{} matching", rows.len(), super::text::s(rows.len()));
                }
                None => {
                    let _ = writeln!(out, "----------------\n- {} hints registered", rows.len());
                }
            }
            out
        };
        ask.show(data, text)
    }

    fn core_show_codecs(&self, ask: &mut Ask<'_>) -> Said {
        let formats = match ask.choice() {
            None | Some("audio") => FormatId::ALL,
            Some(_) => &[],
        };
        let data = || {
            let rows: Vec<Value> = formats.iter().map(|format| codec_json(*format)).collect();
            json!({ "codecs": rows })
        };
        let text = || {
            let mut out = format!(
                "Disclaimer: this command is for informational purposes only.\n\
                 \tIt does not indicate anything about your configuration.\n\
                 {:>8} {:<5} {:<12} {:<16} {}\n{}\n",
                "ID",
                "TYPE",
                "NAME",
                "FORMAT",
                "DESCRIPTION",
                "-".repeat(96)
            );
            for format in formats {
                let _ = writeln!(
                    out,
                    "{:>8} {:<5} {:<12} {:<16} ({})",
                    format.index() + 1,
                    "audio",
                    format.codec_name(),
                    format.name(),
                    format.description()
                );
            }
            out
        };
        ask.show(data, text)
    }

    fn core_show_codec(&self, ask: &mut Ask<'_>) -> Said {
        let number = ask.need("number");
        let format = number.parse::<usize>().ok().and_then(|id| FormatId::ALL.get(id.checked_sub(1)?));
        let Some(&format) = format else {
            return Said::failed(format!("Codec {} not found\n", clean(number)));
        };
        ask.show(|| codec_json(format), || format!("{:>11} {}\n", format.index() + 1, format.description()))
    }

    fn core_show_translation(&self, ask: &mut Ask<'_>) -> Said {
        let only = match ask.arg("codec") {
            None => None,
            Some(name) => match FormatId::from_name(name) {
                Some(format) => Some(format),
                None => return Said::failed(format!("There is no codec '{}'\n", clean(name))),
            },
        };
        let sources = || FormatId::ALL.iter().copied().filter(|from| only.is_none_or(|only| only == *from));
        let data = || {
            let rows: Vec<Value> = sources()
                .flat_map(|from| FormatId::ALL.iter().map(move |to| (from, *to)))
                .map(|(from, to)| json!({ "from": from.name(), "to": to.name(), "steps": steps(from, to) }))
                .collect();
            json!({ "translations": rows })
        };
        let text = || {
            let mut out = String::from(
                "         Steps of translation between formats\n          Source Format (Rows) Destination Format (Columns)\n\n",
            );
            let _ = write!(out, "{:>8}", "");
            for to in FormatId::ALL {
                let _ = write!(out, " {:>6}", to.name());
            }
            out.push('\n');
            for from in sources() {
                let _ = write!(out, "{:>8}", from.name());
                for to in FormatId::ALL {
                    let shown = if from == *to { "-".to_owned() } else { steps(from, *to).to_string() };
                    let _ = write!(out, " {shown:>6}");
                }
                out.push('\n');
            }
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
            let _ = writeln!(
                out,
                "----------\n{} channel driver{} registered.",
                there.len(),
                super::text::s(there.len())
            );
            out
        };
        ask.show(data, text)
    }
}
