//! The database that dialplans read and write (`astdb`).

use super::super::packet::Message;
use super::super::session::Busy;
use super::super::table::{ActionRow, After, Done, Field, Turn, may, must};
use super::super::{Later, Outcome};

const FAMILY: Field = must("Family", "family");
const KEY: Field = must("Key", "key");

pub(super) const ROWS: &[ActionRow] = &[
    ActionRow {
        name: "DBGet",
        class: &["system", "reporting"],
        synopsis: "Reads a value of the database.",
        fields: &[FAMILY, KEY],
        run: get,
    },
    ActionRow {
        name: "DBGetTree",
        class: &["system", "reporting"],
        synopsis: "Lists what lies under a family, or under a key of it, or the whole database.",
        fields: &[may("Family", "family"), may("Key", "key prefix")],
        run: get_tree,
    },
    ActionRow {
        name: "DBPut",
        class: &["system"],
        synopsis: "Writes a value into the database.",
        fields: &[FAMILY, KEY, may("Val", "value; empty when absent")],
        run: put,
    },
    ActionRow {
        name: "DBDel",
        class: &["system"],
        synopsis: "Deletes a value of the database.",
        fields: &[FAMILY, KEY],
        run: delete,
    },
    ActionRow {
        name: "DBDelTree",
        class: &["system"],
        synopsis: "Deletes a family of the database, or what lies under a key.",
        fields: &[FAMILY, may("Key", "key prefix")],
        run: delete_tree,
    },
];

fn get(turn: &mut Turn<'_>) -> Done {
    let (family, key) = (turn.need("Family")?.to_owned(), turn.need("Key")?.to_owned());
    let value = turn.site.shard.core.borrow().services.db.get(&family, &key);
    let Some(value) = value else { return Err("Database entry not found".into()) };
    turn.begin_list("Result will follow");
    let _ = turn.plain_item("DBGetResponse").field("Family", family).field("Key", key).field("Val", value);
    turn.end_item();
    turn.end_list("DBGetComplete", 1).end();
    Ok(After::Go)
}

fn get_tree(turn: &mut Turn<'_>) -> Done {
    let (family, key) = (turn.get("Family").unwrap_or_default(), turn.get("Key").unwrap_or_default());
    if family.is_empty() && !key.is_empty() {
        return Err("No family specified".into());
    }
    let prefix = match (family, key) {
        ("", _) => String::new(),
        (family, "") => format!("/{family}"),
        (family, key) => format!("/{family}/{key}"),
    };
    let found = turn.site.shard.core.borrow().services.db.list(&prefix);
    turn.begin_list("Result will follow");
    for (path, value) in &found {
        let _ = turn.plain_item("DBGetTreeResponse").field("Key", path).field("Val", value);
        turn.end_item();
    }
    turn.end_list("DBGetTreeComplete", found.len()).end();
    Ok(After::Go)
}

fn put(turn: &mut Turn<'_>) -> Done {
    let (family, key) = (turn.need("Family")?, turn.need("Key")?);
    let value = turn.get("Val").unwrap_or_default();
    let is_put = {
        let core = &mut *turn.site.shard.core.borrow_mut();
        let is_put = core.services.db.put(family, key, value);
        if is_put && family.eq_ignore_ascii_case("CustomDevstate") {
            core.touched_devices.push(format!("Custom:{key}"));
        }
        is_put
    };
    if !is_put {
        return Err("Failed to update entry".into());
    }
    acknowledge(turn, "Updated database successfully")
}

fn delete(turn: &mut Turn<'_>) -> Done {
    let (family, key) = (turn.need("Family")?, turn.need("Key")?);
    if !turn.site.shard.core.borrow_mut().services.db.delete(family, key) {
        return Err("Database entry could not be deleted".into());
    }
    acknowledge(turn, "Key deleted successfully")
}

fn delete_tree(turn: &mut Turn<'_>) -> Done {
    let (family, prefix) = (turn.need("Family")?, turn.get("Key").unwrap_or_default());
    if turn.site.shard.core.borrow_mut().services.db.delete_tree(family, prefix) == 0 {
        return Err("Database entry not found".into());
    }
    acknowledge(turn, "Key tree deleted successfully")
}

/// Answers when what was changed is on the disk.
fn acknowledge(turn: &mut Turn<'_>, text: &'static str) -> Done {
    if turn.site.is_saved() {
        return turn.success(text);
    }
    let (later, session) = (turn.later.clone(), turn.id);
    let action_id = turn.action_id().map(str::to_owned);
    let spawned = turn.site.when_saved(move |is_saved| {
        let (kind, text) = match is_saved {
            true => ("Success", text),
            false => ("Error", "Changed, but it does not come to the disk"),
        };
        let mut answer = String::new();
        Message::response(kind, action_id.as_deref(), &mut answer).field("Message", text).end();
        later.borrow_mut().push(Later { session, outcome: Outcome::Said(answer) });
    });
    if spawned { Ok(After::Wait(Busy::Story)) } else { Err("There are too many stories".into()) }
}
