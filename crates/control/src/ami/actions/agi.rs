//! The action that steers a call which is in `AGI(agi:async)`.

use apps::agi::{Reach, reach_of};
use call::{AgiCommand, AgiRefused};

use super::super::capability;
use super::super::table::{ActionRow, Done, Turn, may, must};
use super::{is_trusted, may_read, may_write};

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

fn command(turn: &mut Turn<'_>) -> Done {
    let id = turn.channel("Channel")?;
    let line = turn.need("Command")?.to_owned();
    let allowed = match reach_of(&line) {
        Reach::Call => true,
        Reach::Reads(name) => may_read(turn, &name),
        Reach::Writes(name) => may_write(turn, &name),
        Reach::Application(name) => is_trusted(turn) || capability::is_plain_application(&name),
        Reach::Expands(text) => is_trusted(turn) || capability::expands_plainly(&text),
        Reach::Outside => is_trusted(turn),
    };
    if !allowed {
        return Err("Permission denied".into());
    }
    let command = AgiCommand { line, id: turn.get("CommandID").unwrap_or_default().to_owned() };
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
