//! The operations, a module for each resource: its rows, and the code that carries them out.

mod applications;
mod asterisk;
mod bridges;
mod channels;
pub(super) mod devices;
mod endpoints;
pub(super) mod events;
mod mailboxes;
mod playbacks;
mod recordings;
mod snoop;
mod sound;

use apps::Call;
use base::ChannelId;
use call::Chan;
use call::stasis::StasisError;
use dialplan::Rights;

use super::asked::Asked;
use super::table::{Fault, Operation, Resource};

/// The resources in the order of the manual, which is that of [`ROWS`].
pub(super) const RESOURCES: &[Resource] = &[
    Resource { name: "asterisk", text: "The server: what it is, variables, modules, logs." },
    Resource { name: "endpoints", text: "Who may call and be called." },
    Resource { name: "channels", text: "Sides of calls." },
    Resource { name: "bridges", text: "Channels that hear each other." },
    Resource { name: "recordings", text: "Recordings, while they run and after." },
    Resource { name: "playbacks", text: "Sounds on their way." },
    Resource { name: "deviceStates", text: "What devices do." },
    Resource { name: "mailboxes", text: "Mailboxes that others look after." },
    Resource { name: "events", text: "What happens, by WebSocket." },
    Resource { name: "applications", text: "Programs that are connected." },
];

/// All rows.
pub(super) const ROWS: &[&[Operation]] = &[
    asterisk::ROWS,
    endpoints::ROWS,
    channels::ROWS,
    snoop::ROWS,
    bridges::ROWS,
    recordings::ROWS,
    playbacks::ROWS,
    devices::ROWS,
    mailboxes::ROWS,
    events::ROWS,
    applications::ROWS,
];

/// An error of the core as it is answered.
pub(super) fn fault(error: &StasisError) -> Fault {
    Fault::new(error.status(), error.text())
}

impl From<StasisError> for Fault {
    fn from(error: StasisError) -> Self {
        fault(&error)
    }
}

/// What functions and globals answer on that want no channel.
fn nowhere(asked: &Asked<'_>) -> Call {
    let nobody = ChannelId::new(u32::MAX, u32::MAX);
    Call::new(Chan::new(asked.site.shard.clone(), nobody)).with_rights(rights(asked))
}

/// Refuses a name that calls a function which reaches further than programs may.
fn may(name: &str, is_reached: bool) -> Result<(), Fault> {
    match name.split_once('(').map(|(function, _)| function.trim()) {
        Some(function) if !is_reached => Err(Fault::new(
            403,
            format!("{function} reaches beyond calls, which live_dangerously of asterisk.conf would allow"),
        )),
        _ => Ok(()),
    }
}

/// The value of a global variable, or of a function that wants no channel.
fn read_variable(asked: &Asked<'_>, name: &str) -> Result<String, Fault> {
    may(name, asked.site.shard.core.borrow().program.functions().may_read(rights(asked), name))?;
    let call = nowhere(asked);
    let value = if name.ends_with(')') { Some(call.read(name)) } else { call.get(name) };
    value.ok_or_else(|| Fault::not_found("Provided variable was not found"))
}

/// Sets a global variable, or writes a function that wants no channel.
fn write_variable(asked: &Asked<'_>, name: &str, value: &str) -> Result<(), Fault> {
    may(name, asked.site.shard.core.borrow().program.functions().may_write(rights(asked), name))?;
    let call = nowhere(asked);
    if !name.ends_with(')') {
        call.set_global(name, value);
    } else if !call.assign(name, value) {
        return Err(Fault::bad("the function is not written to"));
    }
    Ok(())
}

/// Variables of channels to be.
fn variables(asked: &Asked<'_>) -> Result<Vec<(String, String)>, Fault> {
    asked.pairs("variables")
}

/// Programs reach functions that act on calls, and no others unless the site says `live_dangerously`; users with
/// `read_only` set nothing.
fn rights(asked: &Asked<'_>) -> Rights {
    let dangerous = asked.site.shard.core.borrow().settings.live_dangerously;
    Rights { sets: !asked.read_only, system: dangerous, outside: dangerous }
}
