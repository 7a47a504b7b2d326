//! The operations, a module for each resource: its rows, and the code that carries them out.

mod applications;
mod asterisk;
mod bridges;
mod channels;
mod claims;
pub(super) mod devices;
mod endpoints;
pub(super) mod events;
mod mailboxes;
mod objects;
mod playbacks;
mod recordings;
mod snoop;
mod sound;
mod sounds;
mod variables;

use apps::Call;
use base::ChannelId;
use call::Chan;
use call::stasis::StasisError;
use dialplan::Rights;

use super::asked::Asked;
use super::table::{Fault, Method, Operation, Resource};
use crate::site::Site;

/// The resources in the order of the manual, which is that of [`ROWS`].
pub(super) const RESOURCES: &[Resource] = &[
    Resource { name: "asterisk", text: "The server: what it is, variables, modules, logs." },
    Resource { name: "endpoints", text: "Who may call and be called." },
    Resource { name: "channels", text: "Sides of calls." },
    Resource { name: "bridges", text: "Channels that hear each other." },
    Resource { name: "sounds", text: "Sounds that can be played." },
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
    objects::ROWS,
    endpoints::ROWS,
    channels::ROWS,
    variables::ROWS,
    snoop::ROWS,
    bridges::ROWS,
    sounds::ROWS,
    recordings::ROWS,
    playbacks::ROWS,
    devices::ROWS,
    mailboxes::ROWS,
    events::ROWS,
    claims::ROWS,
    applications::ROWS,
];

/// Operations that want a channel only to be there, whoever has it.
const OF_ANY: [&str; 3] = ["rtpstatistics", "snoopChannel", "snoopChannelWithId"];
/// Operations that a channel of a program takes before it is there.
const OF_ANY_STATE: [&str; 10] = [
    "dial",
    "move",
    "record",
    "getChannelVar",
    "setChannelVar",
    "getChannelVars",
    "setChannelVars",
    "transfer_progress",
    "externalMedia",
    "hangup",
];

/// What has to be there before parameters are looked at: 404, 409 and 412 go before 400.
pub(super) fn before(
    site: &Site,
    operation: &Operation,
    in_path: &[(&'static str, String)],
) -> Result<(), Fault> {
    let named = |wanted: &str| in_path.iter().find(|(name, _)| *name == wanted).map(|(_, value)| &**value);
    let core = site.shard.core.borrow();
    if let Some(id) = named("channelId").filter(|_| operation.path.starts_with("/channels/{channelId}/")) {
        if OF_ANY.contains(&operation.name) {
            core.stasis_channel(id)?;
        } else if OF_ANY_STATE.contains(&operation.name) {
            core.stasis_visitor(id)?;
        } else {
            core.stasis_ready(id)?;
        }
    }
    let is_steered = operation.path.starts_with("/bridges/{bridgeId}/") || operation.method == Method::Delete;
    if let Some(id) = named("bridgeId").filter(|_| is_steered)
        && core.stasis.bridge(id).is_none()
    {
        return Err(match core.bridge_by_uid(id) {
            Some(_) => Fault::new(409, "Bridge not in Stasis application"),
            None => StasisError::no_bridge().into(),
        });
    }
    Ok(())
}

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

/// The value of a global variable, or of a function that wants no channel; empty where there is none, or it may not be read.
fn read_variable(asked: &Asked<'_>, name: &str) -> String {
    if !asked.site.shard.core.borrow().program.functions().may_read(rights(asked), name) {
        warn_unreached(asked, name);
        return String::new();
    }
    let call = nowhere(asked);
    if name.ends_with(')') { call.read(name) } else { call.get(name).unwrap_or_default() }
}

/// Sets a global variable, or writes a function that wants no channel. What may not be written is left as it is.
fn write_variable(asked: &Asked<'_>, name: &str, value: &str) {
    if !asked.site.shard.core.borrow().program.functions().may_write(rights(asked), name) {
        return warn_unreached(asked, name);
    }
    let call = nowhere(asked);
    if !name.ends_with(')') {
        call.set_global(name, value);
    } else {
        call.assign(name, value);
    }
}

/// Says of a function that it reaches further than programs may.
fn warn_unreached(asked: &Asked<'_>, name: &str) {
    let function = name.split_once('(').map_or(name, |(function, _)| function.trim());
    let text =
        format!("{function} reaches beyond calls, which live_dangerously of asterisk.conf would allow");
    asked.site.shard.core.borrow_mut().log(call::Level::Warning, "ari", &text);
}

/// Programs reach functions that act on calls, and no others unless the site says `live_dangerously`; users with
/// `read_only` set nothing.
fn rights(asked: &Asked<'_>) -> Rights {
    let dangerous = asked.site.shard.core.borrow().settings.live_dangerously;
    Rights { sets: !asked.read_only, system: dangerous, outside: dangerous }
}
