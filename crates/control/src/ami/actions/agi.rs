//! The action that steers a call which is in `AGI(agi:async)`.

use apps::agi::{Reach, reach_of};
use call::{AgiCommand, AgiRefused};
use dialplan::Rights;

use super::super::capability;
use super::super::table::{ActionRow, Done, Turn, may, must};
use super::is_trusted;

pub(super) const ROWS: &[ActionRow] = &[ActionRow {
    name: "AGI",
    class: &["agi"],
    synopsis: "Sends an AGI command to a channel that is in AGI(agi:async); AsyncAGIExec tells what it came to.",
    fields: &[
        must("Channel", "name or UNIQUEID"),
        must("Command", "the command's line"),
        may("CommandID", "comes back in AsyncAGIExec"),
    ],
    run: command,
}];

/// Whether somebody with these rights may send a command; `is_trusted`: any application, and the database.
pub(crate) fn allowed(core: &call::Core, line: &str, rights: Rights, is_trusted: bool) -> bool {
    let functions = core.program.functions();
    match reach_of(line) {
        Reach::Call => true,
        Reach::Reads(name) => functions.may_read(rights, &name),
        Reach::Writes(name) => functions.may_write(rights, &name),
        Reach::Application(name) => is_trusted || capability::is_plain_application(&name),
        Reach::Outside => is_trusted,
    }
}

fn command(turn: &mut Turn<'_>) -> Done {
    let id = turn.channel("Channel")?;
    let line = turn.need("Command")?.to_owned();
    let rights = turn.rights_to_set();
    if !allowed(&turn.site.shard.core.borrow(), &line, rights, is_trusted(turn)) {
        return Err("Permission denied".into());
    }
    let command = AgiCommand { line, id: turn.get("CommandID").unwrap_or_default().to_owned(), rights };
    let pushed = turn.site.shard.core.borrow_mut().push_agi(id, command);
    match pushed {
        Ok(()) => turn.success("Added AGI command to queue"),
        Err(AgiRefused::NotThere) => {
            let name = turn.need("Channel")?;
            Err(format!("Channel {name} is not setup for Async AGI.").into())
        }
        Err(AgiRefused::Full) => Err("Failed to add AGI command to queue".into()),
    }
}
