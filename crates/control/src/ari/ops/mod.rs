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

use super::asked::Asked;
use super::table::{Fault, Operation, Resource};
use crate::ami::capability;

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

/// A handle on a channel; without one, functions and globals still answer.
fn call_on(asked: &Asked<'_>, channel: Option<ChannelId>) -> Call {
    let id = channel.unwrap_or(ChannelId::new(u32::MAX, u32::MAX));
    Call::new(Chan::new(asked.site.shard.clone(), id))
}

/// The name of the function that a variable's name calls.
fn function(name: &str) -> Option<&str> {
    name.split_once('(').map(|(function, _)| function.trim())
}

/// Programs reach functions that act on calls, and no others unless the site says `live_dangerously`.
fn may(asked: &Asked<'_>, name: &str, is_plain: fn(&str) -> bool) -> Result<(), Fault> {
    let is_trusted = || asked.site.shard.core.borrow().settings.live_dangerously;
    match function(name) {
        Some(function) if !is_plain(function) && !is_trusted() => Err(Fault::new(
            403,
            format!("{function} reaches beyond calls, which live_dangerously of asterisk.conf would allow"),
        )),
        _ => Ok(()),
    }
}

/// The value of a variable or function.
fn read_variable(asked: &Asked<'_>, channel: Option<ChannelId>, name: &str) -> Result<String, Fault> {
    may(asked, name, capability::is_plain_to_read)?;
    let call = call_on(asked, channel);
    let value = if name.ends_with(')') { Some(call.read(name)) } else { call.get(name) };
    value.ok_or_else(|| Fault::not_found("Provided variable was not found"))
}

/// Sets a variable, or writes a function.
fn write_variable(
    asked: &Asked<'_>,
    channel: Option<ChannelId>,
    name: &str,
    value: &str,
) -> Result<(), Fault> {
    may(asked, name, capability::is_plain_to_write)?;
    let call = call_on(asked, channel);
    if name.ends_with(')') {
        if !call.assign(name, value) {
            return Err(Fault::bad("the function is not written to"));
        }
    } else if channel.is_some() {
        call.set(name, value);
    } else {
        call.set_global(name, value);
    }
    Ok(())
}

/// Variables of channels to be.
fn variables(asked: &Asked<'_>) -> Result<Vec<(String, String)>, Fault> {
    asked.pairs("variables")
}

/// Which functions may be read.
fn may_read(asked: &Asked<'_>) -> fn(&str) -> bool {
    if asked.site.shard.core.borrow().settings.live_dangerously {
        |_| true
    } else {
        capability::is_plain_to_read
    }
}

/// Which functions may be written.
fn may_write(asked: &Asked<'_>) -> fn(&str) -> bool {
    if asked.site.shard.core.borrow().settings.live_dangerously {
        |_| true
    } else {
        capability::is_plain_to_write
    }
}
