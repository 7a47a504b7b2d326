//! Reading and writing variables and functions, of a channel or global.

use super::super::table::{ActionRow, After, Done, Turn, may, must};
use super::{may_read, may_write, value_of};

pub(super) const ROWS: &[ActionRow] = &[
    ActionRow {
        name: "Getvar",
        class: &["call", "reporting"],
        synopsis: "Reads a variable or a function, of a channel or global.",
        fields: &[must("Variable", "NAME or NAME(arguments)"), may("Channel", "name or UNIQUEID")],
        run: getvar,
    },
    ActionRow {
        name: "Setvar",
        class: &["call"],
        synopsis: "Sets a variable or writes a function, of a channel or global.",
        fields: &[
            must("Variable", "NAME or NAME(arguments)"),
            may("Value", "value; empty when absent"),
            may("Channel", "name or UNIQUEID"),
        ],
        run: setvar,
    },
];

fn getvar(turn: &mut Turn<'_>) -> Done {
    let name = turn.get("Variable").ok_or("No variable specified")?.to_owned();
    let channel = match turn.get("Channel") {
        Some(_) => Some(turn.channel("Channel")?),
        None => None,
    };
    if !may_read(turn, &name) {
        return Err(format!("Permission denied for {name}").into());
    }
    let value = value_of(&turn.call(channel), &name);
    turn.response("Success").field("Variable", name).field("Value", value).end();
    Ok(After::Go)
}

fn setvar(turn: &mut Turn<'_>) -> Done {
    let name = turn.get("Variable").ok_or("No variable specified")?.to_owned();
    let value = turn.get("Value").unwrap_or_default().to_owned();
    let channel = match turn.get("Channel") {
        Some(_) => Some(turn.channel("Channel")?),
        None => None,
    };
    if !may_write(turn, &name) {
        return Err(format!("Permission denied for {name}").into());
    }
    let call = turn.call(channel).with_rights(turn.rights_to_set());
    if name.ends_with(')') {
        if !call.assign(&name, &value) {
            return Err("Variable not set".into());
        }
    } else if channel.is_some() {
        call.set(&name, &value);
    } else {
        call.set_global(&name, &value);
    }
    turn.success("Variable Set")
}
