//! The dialplan, its hints and the devices they stand for.

use std::collections::BTreeSet;
use std::sync::Arc;

use apps::hints;
use call::CUSTOM_FAMILY;
use dialplan::{Addition, ChangeError, Context, Program};

use super::super::events;
use super::super::table::{ActionRow, After, Done, Refusal, Turn, may, must};

pub(super) const ROWS: &[ActionRow] = &[
    ActionRow {
        name: "ExtensionState",
        class: &["call", "reporting"],
        synopsis: "Tells the state of an extension with a hint.",
        fields: &[must("Exten", "extension"), may("Context", "context (default)")],
        run: extension_state,
    },
    ActionRow {
        name: "ExtensionStateList",
        class: &["call", "reporting"],
        synopsis: "Lists extensions with hints and their states.",
        fields: &[],
        run: extension_state_list,
    },
    ActionRow {
        name: "DeviceStateList",
        class: &["call", "reporting"],
        synopsis: "Lists devices and their states.",
        fields: &[],
        run: device_state_list,
    },
    ActionRow {
        name: "ShowDialPlan",
        class: &["config", "reporting"],
        synopsis: "Lists the dialplan, or one context or extension of it.",
        fields: &[may("Context", "context"), may("Extension", "extension, as written")],
        run: show_dial_plan,
    },
    ActionRow {
        name: "DialplanExtensionAdd",
        class: &["system"],
        synopsis: "Adds a step to the dialplan, until that is loaded again.",
        fields: &[
            must("Context", "context; made when there is none"),
            must("Extension", "extension or pattern"),
            must("Priority", "priority, with a label in parentheses, or hint"),
            must("Application", "application; the devices for a hint"),
            may("ApplicationData", "its arguments"),
            may("Replace", "yes to take the place of a step with this priority"),
        ],
        run: add,
    },
    ActionRow {
        name: "DialplanExtensionRemove",
        class: &["system"],
        synopsis: "Takes an extension or one of its steps out of the dialplan, until that is loaded again.",
        fields: &[
            must("Context", "context"),
            must("Extension", "extension, as written"),
            may("Priority", "only this step"),
        ],
        run: remove,
    },
];

/// Puts a changed dialplan in force. Calls look their place up in it at their next step.
fn take(turn: &Turn<'_>, changed: Result<Program, ChangeError>) -> Result<(), Refusal> {
    let program = changed.map_err(|why| match why {
        ChangeError::Exists => Refusal::from("That extension and priority already exist at that context"),
        ChangeError::Missing => Refusal::from("Failed to remove requested extension"),
        ChangeError::Invalid(why) => Refusal(format!("Failed to add requested extension: {why}")),
    })?;
    turn.site.shard.core.borrow_mut().program = Arc::new(program);
    Ok(())
}

fn add(turn: &mut Turn<'_>) -> Done {
    let program = turn.site.shard.core.borrow().program.clone();
    let app = turn.need("Application")?;
    let priority = turn.need("Priority")?;
    let (number, label) = priority.split_once('(').map_or((priority, None), |(n, label)| (n, Some(label)));
    let is_number = number.trim().parse::<u32>().is_ok_and(|number| number > 0);
    let is_known = is_number || priority.eq_ignore_ascii_case("hint");
    if !is_known || label.is_some_and(|label| !label.ends_with(')')) {
        return Err("The priority specified was invalid.".into());
    }
    if !priority.eq_ignore_ascii_case("hint") && apps::table::lookup(app).is_none() {
        return Err(format!("Unknown application '{app}'").into());
    }
    let new = Addition {
        context: turn.need("Context")?,
        exten: turn.need("Extension")?,
        priority,
        app,
        data: turn.get("ApplicationData").unwrap_or_default(),
        replace: turn.action.is_true("Replace"),
    };
    let changed = dialplan::add(&program, &program.tables(), &new);
    take(turn, changed)?;
    turn.success("Added requested extension")
}

fn remove(turn: &mut Turn<'_>) -> Done {
    let program = turn.site.shard.core.borrow().program.clone();
    let priority = match turn.get("Priority").map(str::parse::<u32>) {
        None => None,
        Some(Ok(priority)) => Some(priority),
        Some(Err(_)) => return Err("The priority specified was invalid.".into()),
    };
    let (context, exten) = (turn.need("Context")?, turn.need("Extension")?);
    let changed = dialplan::remove(&program, &program.tables(), context, exten, priority);
    take(turn, changed)?;
    turn.success(if priority.is_some() {
        "Removed the requested priority from the extension"
    } else {
        "Removed the requested extension"
    })
}

fn extension_state(turn: &mut Turn<'_>) -> Done {
    let exten = turn.need("Exten")?.to_owned();
    let context = turn.get("Context").unwrap_or("default").to_owned();
    let row = {
        let known = turn.site.hints.borrow();
        known.rows().iter().find(|row| row.exten == exten && row.context == context).cloned()
    };
    // The hint of a pattern is made for the number that asks.
    let found = row.map(|row| (row.text(), row.state)).or_else(|| {
        let (devices, _) = turn.call(None).hint_of(&context, &exten)?;
        let state = hints::hint_state(&turn.site.shard, &devices);
        Some((devices, state))
    });
    let response = turn.response("Success").field("Message", "Extension Status");
    match found {
        Some((devices, state)) => events::extension(response, &exten, &context, &devices, state).end(),
        None => response
            .field("Exten", &exten)
            .field("Context", &context)
            .field("Hint", "")
            .field("Status", -1)
            .field("StatusText", "Unknown")
            .end(),
    }
    Ok(After::Go)
}

fn extension_state_list(turn: &mut Turn<'_>) -> Done {
    turn.begin_list("Extension Statuses will follow");
    let site = turn.site.clone();
    let hints = site.hints.borrow();
    for row in hints.rows() {
        let item = turn.item("ExtensionStatus");
        events::extension(item, &row.exten, &row.context, &row.text(), row.state).end();
    }
    turn.end_list("ExtensionStateListComplete", hints.rows().len()).end();
    Ok(After::Go)
}

fn device_state_list(turn: &mut Turn<'_>) -> Done {
    turn.begin_list("Device State Changes will follow");
    let site = turn.site.clone();
    let mut devices: Vec<String> = Vec::new();
    {
        let core = site.shard.core.borrow();
        let rows = site.sip.borrow().endpoint_rows(None, &core);
        devices.extend(rows.iter().map(|row| format!("PJSIP/{}", row.name)));
        // What programs have set is a device as any other: wallboards show who has switched calls off.
        let below = format!("/{CUSTOM_FAMILY}");
        let custom = core.services.db.list(&below);
        let names = custom.iter().filter_map(|(key, _)| key.strip_prefix(&below)?.strip_prefix('/'));
        devices.extend(names.map(|name| format!("Custom:{name}")));
        for queue in core.queues.iter() {
            devices.extend([format!("Queue:{}", queue.name), format!("Queue:{}_avail", queue.name)]);
        }
        devices.extend(core.agents.iter().map(|agent| format!("Agent:{}", agent.id)));
    }
    for row in site.hints.borrow().rows() {
        let named = row.devices.split('&').map(str::trim).filter(|device| !device.is_empty());
        devices.extend(named.map(str::to_owned));
    }
    let mut known = BTreeSet::new();
    devices.retain(|device| known.insert(device.to_ascii_lowercase()));
    for device in &devices {
        let state = hints::device_state(&site.shard, device).name();
        turn.item("DeviceStateChange").field("Device", device).field("State", state).end();
    }
    turn.end_list("DeviceStateListComplete", devices.len()).end();
    Ok(After::Go)
}

fn show_dial_plan(turn: &mut Turn<'_>) -> Done {
    let program = turn.site.shard.core.borrow().program.clone();
    let (context, exten) = (turn.get("Context").map(str::to_owned), turn.get("Extension").map(str::to_owned));
    if let Some(name) = context.as_deref().filter(|name| program.context_id(name).is_none()) {
        return Err(format!("Did not find context {name}").into());
    }
    if let Some(wanted) = exten.as_deref() {
        let core = turn.site.shard.core.borrow();
        let meant = program
            .contexts()
            .iter()
            .filter(|entry| context.as_deref().is_none_or(|name| *name == *entry.name));
        let has = |entry: &Context| {
            entry.extensions.iter().any(|extension| *extension.name == *wanted)
                || core.registered.of(&entry.name).any(|(own, _)| own == wanted)
        };
        if !meant.into_iter().any(has) {
            return Err(match &context {
                Some(name) => format!("Did not find extension {wanted}@{name}").into(),
                None => format!("Did not find extension {wanted}@").into(),
            });
        }
    }
    turn.begin_list("DialPlan list will follow");
    let mut counted = [0; 4];
    for entry in program.contexts() {
        if context.as_deref().is_none_or(|name| name == &*entry.name) {
            list_context(turn, entry, exten.as_deref(), &mut counted);
        }
    }
    let [items, extensions, priorities, contexts] = counted;
    turn.end_list("ShowDialPlanComplete", items)
        .field("ListExtensions", extensions)
        .field("ListPriorities", priorities)
        .field("ListContexts", contexts)
        .end();
    Ok(After::Go)
}

/// Lists one context; counts items, extensions, priorities and contexts.
fn list_context(turn: &mut Turn<'_>, context: &Context, only: Option<&str>, counted: &mut [usize; 4]) {
    let [items, extensions, priorities, contexts] = counted;
    *contexts += 1;
    for extension in context.extensions.iter().filter(|e| only.is_none_or(|only| *e.name == *only)) {
        *extensions += 1;
        if let Some(hint) = &extension.hint {
            *items += 1;
            *priorities += 1;
            turn.item("ListDialplan")
                .field("Context", &context.name)
                .field("Extension", &extension.name)
                .field("Priority", "hint")
                .field("Application", &hint.devices)
                .field("Registrar", "pbx_config")
                .end();
        }
        for step in &extension.steps {
            *items += 1;
            *priorities += 1;
            turn.item("ListDialplan")
                .field("Context", &context.name)
                .field("Extension", &extension.name)
                .optional("ExtensionLabel", step.label.as_deref())
                .field("Priority", step.priority)
                .field("Application", &step.name)
                .field("AppData", &step.args)
                .field("Registrar", "pbx_config")
                .end();
        }
    }
    let site = turn.site.clone();
    let core = site.shard.core.borrow();
    for (exten, holder) in
        core.registered.of(&context.name).filter(|(own, _)| only.is_none_or(|only| *own == only))
    {
        (*items, *extensions, *priorities) = (*items + 1, *extensions + 1, *priorities + 1);
        turn.item("ListDialplan")
            .field("Context", &context.name)
            .field("Extension", exten)
            .field("Priority", 1)
            .field("Application", "NoOp")
            .field("AppData", &holder.name)
            .field("Registrar", holder.registrar)
            .end();
    }
    if only.is_none() {
        for include in &context.includes {
            *items += 1;
            turn.item("ListDialplan")
                .field("Context", &context.name)
                .field("IncludeContext", &include.text)
                .field("Registrar", "pbx_config")
                .end();
        }
        for pattern in &context.ignorepats {
            *items += 1;
            turn.item("ListDialplan")
                .field("Context", &context.name)
                .field("IgnorePattern", pattern)
                .field("Registrar", "pbx_config")
                .end();
        }
        for switch in &context.switches {
            *items += 1;
            turn.item("ListDialplan")
                .field("Context", &context.name)
                .field("Switch", format_args!("{}/{}", switch.engine, switch.data))
                .field("Registrar", "pbx_config")
                .end();
        }
    }
}
