//! `/deviceStates`: what devices do, and devices that programs have made up: `Stasis:NAME`.
//!
//! Those are kept in the database, family `StasisDevstate`, and told to the core as another server would tell of its phones:
//! hints on them, lamps and queues follow.

use apps::hints::device_state;
use call::{Core, DeviceState};
use serde_json::{Value, json};

use super::super::asked::Asked;
use super::super::table::{Answer, Done, Fault, Method, Operation, Param, path, text};

/// The family that they are kept in.
const FAMILY: &str = "StasisDevstate";
/// What their names begin with.
const PREFIX: &str = "Stasis:";
/// As who the core hears of them; no server of SIP comes so far.
const TELLER: u64 = u64::MAX;
/// Longest name, bytes: what the core keeps.
const NAME_BYTES_MAX: usize = 128;
/// Devices of programs at once.
const DEVICES_MAX: usize = 10_000;

const DEVICE: Param = path("deviceName", "name of the device");
/// What a program may say that a device does.
const STATES: [&str; 8] =
    ["NOT_INUSE", "INUSE", "BUSY", "INVALID", "UNAVAILABLE", "RINGING", "RINGINUSE", "ONHOLD"];
const NO_NAME: (u16, &str) = (404, "the device has no name");
const NOT_OURS: (u16, &str) = (409, "the name does not begin with Stasis:");

pub(super) const ROWS: &[Operation] = &[
    Operation {
        method: Method::Get,
        path: "/deviceStates",
        name: "list",
        text: "Lists devices that programs have made up.",
        params: &[],
        answer: "List[DeviceState]",
        errors: &[],
        run: list,
    },
    Operation {
        method: Method::Get,
        path: "/deviceStates/{deviceName}",
        name: "get",
        text: "Tells what a device does, any device.",
        params: &[DEVICE],
        answer: "DeviceState",
        errors: &[],
        run: get,
    },
    Operation {
        method: Method::Put,
        path: "/deviceStates/{deviceName}",
        name: "update",
        text: "Says what a device does whose name begins with Stasis:.",
        params: &[
            DEVICE,
            text(
                "deviceState",
                "what it does: NOT_INUSE, INUSE, BUSY, INVALID, UNAVAILABLE, RINGING, RINGINUSE or ONHOLD",
            )
            .must(),
        ],
        answer: "void",
        errors: &[
            (400, "the name is too long"),
            NO_NAME,
            NOT_OURS,
            (500, "the state is none, or there are too many"),
        ],
        run: update,
    },
    Operation {
        method: Method::Delete,
        path: "/deviceStates/{deviceName}",
        name: "delete",
        text: "Forgets a device whose name begins with Stasis:.",
        params: &[DEVICE],
        answer: "void",
        errors: &[NO_NAME, NOT_OURS],
        run: delete,
    },
];

/// The core hears of what is kept; once, at the start.
pub(in super::super) fn restore(core: &mut Core) {
    for (name, word) in kept(core) {
        if let Some(state) = DeviceState::parse(&word) {
            core.told_of_device(&format!("{PREFIX}{name}"), TELLER, state);
        }
    }
}

/// Names, without what they begin with, and words.
fn kept(core: &Core) -> Vec<(String, String)> {
    let prefix = format!("/{FAMILY}");
    let listed = core.services.db.list(&prefix).into_iter();
    listed
        .filter_map(|(key, word)| Some((key.strip_prefix(&prefix)?.strip_prefix('/')?.to_owned(), word)))
        .collect()
}

fn list(asked: &mut Asked<'_>) -> Done {
    let rows = kept(&asked.site.shard.core.borrow());
    let row = |(name, word): &(String, String)| json!({ "name": format!("{PREFIX}{name}"), "state": word });
    Ok(Answer::Found(rows.iter().map(row).collect::<Vec<Value>>().into()))
}

/// The name without what it begins with.
fn own(asked: &Asked<'_>) -> Result<String, Fault> {
    let device = asked.need("deviceName");
    let found =
        device.split_at_checked(PREFIX.len()).filter(|(prefix, _)| prefix.eq_ignore_ascii_case(PREFIX));
    match found {
        Some((_, "")) => Err(Fault::not_found("Device name is missing")),
        Some((_, name)) => Ok(name.to_owned()),
        None => Err(Fault::new(409, "Uncontrolled device specified")),
    }
}

fn get(asked: &mut Asked<'_>) -> Done {
    let device = asked.need("deviceName");
    let kept = match own(asked) {
        Ok(name) => asked.site.shard.core.borrow().services.db.get(FAMILY, &name),
        Err(_) => None,
    };
    let word = kept.unwrap_or_else(|| match own(asked).is_ok() {
        true => DeviceState::Unknown.name().to_owned(),
        false => device_state(&asked.site.shard, device).name().to_owned(),
    });
    Ok(Answer::Found(json!({ "name": device, "state": word })))
}

fn update(asked: &mut Asked<'_>) -> Done {
    let name = own(asked)?;
    let device = asked.need("deviceName");
    if device.len() > NAME_BYTES_MAX || name.contains('/') || name.chars().any(char::is_control) {
        return Err(Fault::bad("the name is too long, or holds what no name does"));
    }
    let state = asked.need("deviceState").to_ascii_uppercase();
    let state = STATES.contains(&&*state).then(|| DeviceState::parse(&state)).flatten();
    let state = state.ok_or_else(|| Fault::new(500, "Unknown device"))?;
    let own = format!("{PREFIX}{name}");
    let core = &mut *asked.site.shard.core.borrow_mut();
    let is_new = core.services.db.get(FAMILY, &name).is_none();
    if is_new && kept(core).len() >= DEVICES_MAX || !core.services.db.put(FAMILY, &name, state.name()) {
        return Err(Fault::new(500, "there are too many devices"));
    }
    core.told_of_device(&own, TELLER, state);
    Ok(Answer::Nothing)
}

fn delete(asked: &mut Asked<'_>) -> Done {
    let name = own(asked)?;
    let core = &mut *asked.site.shard.core.borrow_mut();
    if core.services.db.get(FAMILY, &name).is_some() {
        core.services.db.delete(FAMILY, &name);
        core.told_of_device(&format!("{PREFIX}{name}"), TELLER, DeviceState::Unknown);
    }
    Ok(Answer::Nothing)
}
