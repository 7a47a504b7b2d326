//! Configuration files: which were read, what may stand in them, and who may run which command.

use std::fmt::Write as _;

use serde_json::{Value, json};
use store::config::permissions::{Permissions, Permitted, Subject, Who};
use store::config::{self, Row as OptionRow, Status};

use super::text::clean;
use super::{Ask, Cli, Piece, Row, Said, grammar, show, verb};

pub(super) const ROWS: &[Row] = &[
    show(
        "config list",
        "Lists the files that the configuration was read from, and the module of Asterisk that each belongs to.",
        "files [module file]",
        Cli::config_list,
    ),
    show(
        "config show help [<config-module> [<type> [<option>]]]",
        "Tells what may stand in a file of the configuration: its types of sections, their options, and one of these.",
        "modules [module file types [type options [name values default status meaning]]]",
        Cli::config_help,
    )
    .detail("A module is named as in config list, or by its file: config show help pjsip.conf aor max_contacts."),
    show(
        "cli show permissions",
        "Lists who may run which commands, as cli_permissions.conf has it.",
        "default sections [name uid gid rules [permit command]]",
        Cli::show_permissions,
    ),
    verb(
        "cli check permissions <who> <command...>",
        "Tells whether a user, or a group with @ before its name, may run a command.",
        Cli::check_permissions,
    ),
    verb(
        "cli reload permissions",
        "Reads cli_permissions.conf again, and everything else with it.",
        |cli, _| cli.reload_part("cli_permissions", ""),
    ),
];

/// Whose the files are that do not have their module's name.
const MODULES: &[(&str, &str)] = &[
    ("acl.conf", "acl"),
    ("agents.conf", "app_agent_pool"),
    ("amd.conf", "app_amd"),
    ("asterisk.conf", "core"),
    ("cli_aliases.conf", "res_clialiases"),
    ("cli_permissions.conf", "cli"),
    ("codecs.conf", "codec"),
    ("confbridge.conf", "app_confbridge"),
    ("extensions.conf", "pbx_config"),
    ("festival.conf", "app_festival"),
    ("followme.conf", "app_followme"),
    ("hep.conf", "res_hep"),
    ("iax.conf", "chan_iax2"),
    ("indications.conf", "res_indications"),
    ("meetme.conf", "app_meetme"),
    ("minivm.conf", "app_minivm"),
    ("modules.conf", "loader"),
    ("musiconhold.conf", "res_musiconhold"),
    ("pjsip.conf", "res_pjsip"),
    ("pjsip_notify.conf", "res_pjsip_notify"),
    ("pjsip_wizard.conf", "res_pjsip_config_wizard"),
    ("prometheus.conf", "res_prometheus"),
    ("queuerules.conf", "app_queue"),
    ("queues.conf", "app_queue"),
    ("res_pgsql.conf", "res_config_pgsql"),
    ("resolver_unbound.conf", "res_resolver_unbound"),
    ("rtp.conf", "res_rtp_asterisk"),
    ("sip.conf", "chan_sip"),
    ("statsd.conf", "res_statsd"),
    ("stir_shaken.conf", "res_stir_shaken"),
    ("voicemail.conf", "app_voicemail"),
];

/// The module of Asterisk that reads a file.
fn module_of(file: &str) -> &str {
    let known = MODULES.iter().find(|(known, _)| *known == file);
    known.map_or_else(|| file.trim_end_matches(".conf"), |(_, module)| module)
}

/// A file with options, and its types of sections, in the order of the manual.
struct Described {
    file: &'static str,
    types: Vec<(&'static str, Vec<OptionRow>)>,
}

fn described() -> Vec<Described> {
    let mut files: Vec<Described> = Vec::new();
    for row in config::manual() {
        let at = files.iter().position(|known| known.file == row.file).unwrap_or_else(|| {
            files.push(Described { file: row.file, types: Vec::new() });
            files.len() - 1
        });
        let Some(Described { types, .. }) = files.get_mut(at) else { continue };
        match types.iter_mut().find(|(known, _)| *known == row.section) {
            Some((_, options)) => options.push(row),
            None => types.push((row.section, vec![row])),
        }
    }
    files.sort_by_key(|described| module_of(described.file));
    files
}

/// What `config show help` completes.
pub(super) fn modules() -> Vec<String> {
    described().iter().map(|described| module_of(described.file).to_owned()).collect()
}

/// Whether an option is obeyed, and what happens instead.
fn status(row: &OptionRow) -> (&'static str, &'static str) {
    match row.status {
        Status::Supported => ("supported", row.doc),
        Status::Later(what) => ("later", what),
        Status::Ignored(why) => ("ignored", why),
    }
}

fn option_json(row: &OptionRow) -> Value {
    let (status, meaning) = status(row);
    json!({ "name": row.name, "values": row.kind, "default": row.default, "status": status, "meaning": meaning })
}

fn option_line(row: &OptionRow) -> String {
    let default = if row.default.is_empty() { String::new() } else { format!(" (Default: {})", row.default) };
    let values = if row.kind.is_empty() { String::new() } else { format!(" = [{}]", row.kind) };
    format!("{}{values}{default}", row.name)
}

/// What an option does, in a sentence.
fn meaning(row: &OptionRow) -> String {
    match status(row) {
        ("later", what) => format!("Not supported yet: {what}"),
        ("ignored", why) => format!("No meaning here: {why}"),
        (_, what) => what.to_owned(),
    }
}

impl Cli {
    fn config_list(&self, ask: &mut Ask<'_>) -> Said {
        let snapshot = self.site.snapshot.borrow();
        let mut files: Vec<(String, String)> = snapshot
            .files_read()
            .map(|path| {
                let name = path.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
                (module_of(&name).to_owned(), path.display().to_string())
            })
            .collect();
        files.sort();
        files.dedup();
        let row = |(module, file): &(String, String)| json!({ "module": module, "file": file });
        let data = || json!({ "files": files.iter().map(row).collect::<Vec<_>>() });
        let line = |(module, file): &(String, String)| format!("{:<23} {}\n", clean(module), clean(file));
        ask.show(data, || files.iter().map(line).collect())
    }

    fn config_help(&self, ask: &mut Ask<'_>) -> Said {
        let (module, section, option) = (ask.arg("config-module"), ask.arg("type"), ask.arg("option"));
        let mut found = described();
        if let Some(module) = module {
            let is_it = |file: &str| file == module || module_of(file) == module.trim_end_matches(".so");
            found.retain(|described| is_it(described.file));
        }
        if let Some(section) = section {
            found.iter_mut().for_each(|described| {
                described.types.retain(|(known, _)| known.eq_ignore_ascii_case(section));
            });
            found.retain(|described| !described.types.is_empty());
        }
        if let Some(option) = option {
            for (_, options) in found.iter_mut().flat_map(|described| &mut described.types) {
                options.retain(|row| row.name.eq_ignore_ascii_case(option));
            }
            found.retain(|described| described.types.iter().any(|(_, options)| !options.is_empty()));
        }
        if found.is_empty() {
            let what: Vec<&str> = [module, section, option].into_iter().flatten().collect();
            return Said::failed(format!("There is no help for '{}'.\n", clean(&what.join(" "))));
        }
        let (with_types, with_options) = (module.is_some(), section.is_some());
        let text = || match (module, section, option) {
            (None, ..) => modules_text(&found),
            (Some(_), None, _) => found.iter().map(types_text).collect(),
            (Some(_), Some(_), None) => found.iter().map(options_text).collect(),
            (Some(_), Some(_), Some(_)) => found.iter().map(option_text).collect(),
        };
        ask.show(|| help_json(&found, with_types, with_options), text)
    }

    /// Whether whoever has typed a line may run the command that it is.
    pub(super) fn may_run(&self, who: Who, words: &[String], row: &'static Row) -> bool {
        self.site.snapshot.borrow().permissions.allows(who, &names(words, Some(row)))
    }

    /// Whether they may run it at least without arguments; what they may not is not completed.
    pub(super) fn may_run_some(&self, who: Who, row: &'static Row) -> bool {
        self.site.snapshot.borrow().permissions.allows(who, &heads(row))
    }

    fn show_permissions(&self, ask: &mut Ask<'_>) -> Said {
        let snapshot = self.site.snapshot.borrow();
        let Permissions { default, sections } = &snapshot.permissions;
        let word = |permit: bool| if permit { "permit" } else { "deny" };
        let data = || {
            let section = |section: &Permitted| {
                let rule = |rule: &config::permissions::Rule| json!({ "permit": rule.permit, "command": rule.command });
                let (uid, gid) = match section.subject {
                    Subject::User(uid) => (Some(uid), None),
                    Subject::Group(gid) => (None, Some(gid)),
                };
                let rules: Vec<Value> = section.rules.iter().map(rule).collect();
                json!({ "name": section.name, "uid": uid, "gid": gid, "rules": rules })
            };
            json!({ "default": word(*default), "sections": sections.iter().map(section).collect::<Vec<_>>() })
        };
        let text = || {
            let mut out = format!("Default permission: {}\n", word(*default));
            for section in sections {
                let _ = match section.subject {
                    Subject::User(uid) => writeln!(out, "\nUser: {} [uid={uid}]", clean(&section.name)),
                    Subject::Group(gid) => {
                        let name = section.name.trim_start_matches('@');
                        writeln!(out, "\nGroup: {} [gid={gid}]", clean(name))
                    }
                };
                out.push_str("Permissions:\n");
                for rule in &section.rules {
                    let _ = writeln!(out, "\t{} -> {}", word(rule.permit), clean(&rule.command));
                }
            }
            out
        };
        ask.show(data, text)
    }

    fn check_permissions(&self, ask: &mut Ask<'_>) -> Said {
        let (name, line) = (ask.need("who"), ask.need("command"));
        let snapshot = self.site.snapshot.borrow();
        let known = snapshot.permissions.sections.iter().find(|section| section.name == name);
        // Nobody has these numbers: what is not written of a user is what holds for all.
        let nobody = Who { uid: u32::MAX, gid: u32::MAX };
        let who = match known.map(|section| section.subject) {
            Some(Subject::User(uid)) => Who { uid, ..nobody },
            Some(Subject::Group(gid)) => Who { gid, ..nobody },
            None => nobody,
        };
        let words = grammar::words(line);
        let names = names(&words, Self::row_of(&words));
        let allowed = if snapshot.permissions.allows(who, &names) { "allowed" } else { "not allowed" };
        let kind = if name.starts_with('@') { "Group" } else { "User" };
        Said::done(format!("{kind} '{}' is {allowed} to run command: '{}'\n", clean(name), clean(line)))
    }
}

/// What a line is known by: as it was typed, and by all names of its command.
fn names(words: &[String], row: Option<&'static Row>) -> Vec<String> {
    let typed = words.join(" ").to_ascii_lowercase();
    std::iter::once(typed).chain(row.into_iter().flat_map(heads)).collect()
}

/// The words that the names of a command begin with.
fn heads(row: &'static Row) -> Vec<String> {
    let head = |shape: &'static str| {
        let pieces = grammar::parse(shape);
        let words = pieces.iter().map_while(|piece| match piece {
            Piece::Word(word) => Some(*word),
            _ => None,
        });
        words.collect::<Vec<_>>().join(" ")
    };
    std::iter::once(row.shape).chain(row.also.iter().copied()).map(head).collect()
}

fn help_json(found: &[Described], with_types: bool, with_options: bool) -> Value {
    let section = |(name, options): &(&str, Vec<OptionRow>)| {
        let options: Vec<Value> = options.iter().filter(|_| with_options).map(option_json).collect();
        json!({ "type": name, "options": options })
    };
    let module = |described: &Described| {
        let types: Vec<Value> = described.types.iter().filter(|_| with_types).map(section).collect();
        json!({ "module": module_of(described.file), "file": described.file, "types": types })
    };
    json!({ "modules": found.iter().map(module).collect::<Vec<_>>() })
}

fn modules_text(found: &[Described]) -> String {
    let mut out = String::from("The following modules have configuration information:\n");
    for Described { file, .. } in found {
        let _ = writeln!(out, "\t{:<25} {file}", module_of(file));
    }
    out
}

fn types_text(Described { file, types }: &Described) -> String {
    let mut out = format!("{}: {file}\n", module_of(file));
    for (name, options) in types {
        let _ = writeln!(out, "\t{name:<25} {} option{}", options.len(), super::text::s(options.len()));
    }
    out
}

fn options_text(Described { file, types }: &Described) -> String {
    let mut out = String::new();
    for (name, options) in types {
        let _ = writeln!(out, "{} [{name}] in {file}", module_of(file));
        for row in options {
            let _ = writeln!(out, "\t{}\n\t\t{}", option_line(row), meaning(row));
        }
    }
    out
}

fn option_text(Described { file, types }: &Described) -> String {
    let mut out = String::new();
    for (name, options) in types {
        for row in options {
            let module = module_of(file);
            let _ = writeln!(
                out,
                "[{name}] in {file}, of {module}\n\n{}\n\n{}\n",
                option_line(row),
                meaning(row)
            );
        }
    }
    out
}
