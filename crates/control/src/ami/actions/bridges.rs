//! Bridges: what they are, who is in them, and bringing channels together or apart.

use apps::transfer::{self, Refused};
use base::{BridgeId, ChannelId};
use call::Location;

use super::super::events;
use super::super::table::{ActionRow, After, Done, Field, Refusal, Turn, may, must};

/// The ways in which channels are bridged: name, type and priority, as the field has them.
pub(crate) const TECHNOLOGIES: &[(&str, &str, u32)] = &[
    ("native_rtp", "Native", 90),
    ("holding_bridge", "Holding", 50),
    ("simple_bridge", "1to1Mix", 50),
    ("softmix", "MultiMix", 10),
];

const CHANNEL: Field = must("Channel", "name or UNIQUEID");

pub(super) const ROWS: &[ActionRow] = &[
    ActionRow {
        name: "BridgeList",
        class: &[],
        synopsis: "Lists bridges.",
        fields: &[may("BridgeType", "only bridges of this type: basic, or base for those of conferences")],
        run: bridge_list,
    },
    ActionRow {
        name: "BridgeInfo",
        class: &[],
        synopsis: "Lists the channels in a bridge.",
        fields: &[must("BridgeUniqueid", "as in the events")],
        run: bridge_info,
    },
    ActionRow {
        name: "BridgeTechnologyList",
        class: &[],
        synopsis: "Lists the ways in which channels are bridged.",
        fields: &[],
        run: technologies,
    },
    ActionRow {
        name: "Bridge",
        class: &["call"],
        synopsis: "Takes two answered channels out of what they do and lets them talk; dialplans go on after the step they were in.",
        fields: &[
            must("Channel1", "name or UNIQUEID"),
            must("Channel2", "name or UNIQUEID"),
            may("Tone", "no effect: nothing is played"),
        ],
        run: bridge,
    },
    ActionRow {
        name: "BridgeKick",
        class: &["call"],
        synopsis: "Sends a channel out of its bridge: on in its dialplan, else to its end.",
        fields: &[may("BridgeUniqueid", "the bridge it must be in"), CHANNEL],
        run: kick,
    },
    ActionRow {
        name: "BridgeDestroy",
        class: &["call"],
        synopsis: "Sends every channel out of a bridge, which ends with that.",
        fields: &[must("BridgeUniqueid", "as in the events")],
        run: destroy,
    },
    ActionRow {
        name: "BlindTransfer",
        class: &["call"],
        synopsis: "Sends the party that a channel talks to elsewhere, as if the channel had done it.",
        fields: &[CHANNEL, must("Exten", "extension"), may("Context", "context (that of the channel)")],
        run: blind_transfer,
    },
    ActionRow {
        name: "Atxfer",
        class: &["call"],
        synopsis: "Holds the party that a channel talks to and lets the channel ask a third; when it hangs up, the other two talk.",
        fields: &[CHANNEL, must("Exten", "extension"), may("Context", "context (that of the channel)")],
        run: attended_transfer,
    },
    ActionRow {
        name: "CancelAtxfer",
        class: &["call"],
        synopsis: "Ends the question of an Atxfer; the two talk again.",
        fields: &[CHANNEL],
        run: cancel,
    },
];

impl From<Refused> for Refusal {
    fn from(refused: Refused) -> Self {
        match refused {
            Refused::Gone => "No such channel".into(),
            Refused::Same => "Cannot bridge a channel to itself".into(),
            Refused::NotUp => "Channel is not up".into(),
            Refused::NoPeer => "Channel is not in a bridge with one other".into(),
            Refused::NoExtension => "Invalid extension".into(),
            Refused::Full => "There is no room for another call".into(),
        }
    }
}

fn bridge_list(turn: &mut Turn<'_>) -> Done {
    let wanted = turn.get("BridgeType").map(str::to_ascii_lowercase);
    turn.begin_list("Bridge listing will follow");
    let shard = turn.site.shard.clone();
    let core = shard.core.borrow();
    let mut items = 0;
    for shown in core.bridges().filter_map(|(id, _)| core.bridge_snapshot(id)) {
        if wanted.as_deref().is_some_and(|wanted| wanted != shown.used_for.type_name()) {
            continue;
        }
        items += 1;
        events::bridge(turn.item("BridgeListItem"), &shown).end();
    }
    turn.end_list("BridgeListComplete", items).end();
    Ok(After::Go)
}

/// The bridge that a header names, and who is in it.
fn members(turn: &Turn<'_>) -> Result<(BridgeId, Vec<ChannelId>), Refusal> {
    let uid = turn.need("BridgeUniqueid")?;
    let core = turn.site.shard.core.borrow();
    let found = core.bridge_by_uid(uid).map(|id| (id, core.bridge_members(id).to_vec()));
    found.ok_or_else(|| "Specified BridgeUniqueid not found".into())
}

fn bridge_info(turn: &mut Turn<'_>) -> Done {
    let (id, members) = members(turn)?;
    let shard = turn.site.shard.clone();
    let core = shard.core.borrow();
    turn.begin_list("Bridge channel listing will follow");
    for snapshot in members.iter().filter_map(|member| core.snapshot(*member)) {
        events::channel(turn.item("BridgeInfoChannel"), "", &snapshot).end();
    }
    let end = turn.end_list("BridgeInfoComplete", members.len());
    match core.bridge_snapshot(id) {
        Some(shown) => events::bridge(end, &shown).end(),
        None => end.end(),
    }
    Ok(After::Go)
}

fn technologies(turn: &mut Turn<'_>) -> Done {
    turn.begin_list("Bridge technology listing will follow");
    for (name, kind, priority) in TECHNOLOGIES.iter().copied() {
        let _ = turn
            .plain_item("BridgeTechnologyListItem")
            .field("BridgeTechnology", name)
            .field("BridgeType", kind)
            .field("BridgePriority", priority)
            .field("BridgeSuspended", "No");
        turn.end_item();
    }
    turn.end_list("BridgeTechnologyListComplete", TECHNOLOGIES.len()).end();
    Ok(After::Go)
}

fn bridge(turn: &mut Turn<'_>) -> Done {
    let (first, second) = (turn.channel("Channel1")?, turn.channel("Channel2")?);
    transfer::bridge(&turn.site.shard, first, second)?;
    turn.success("Channels have been bridged")
}

fn kick(turn: &mut Turn<'_>) -> Done {
    let id = turn.channel("Channel")?;
    match turn.get("BridgeUniqueid") {
        Some(_) if !members(turn).map_err(|_| "Bridge not found")?.1.contains(&id) => {
            return Err("Channel kick from bridge failed".into());
        }
        None if turn.site.shard.core.borrow().get(id).is_none_or(|channel| channel.bridge.is_none()) => {
            return Err("Channel is not in a bridge".into());
        }
        _ => {}
    }
    transfer::kick(&mut turn.site.shard.core.borrow_mut(), id)
        .map_err(|_| Refusal::from("Channel kick from bridge failed"))?;
    turn.success("Channel has been kicked")
}

fn destroy(turn: &mut Turn<'_>) -> Done {
    let (_, members) = members(turn)?;
    for id in members {
        // One that has left meanwhile is out of the bridge already.
        let _ = transfer::kick(&mut turn.site.shard.core.borrow_mut(), id);
    }
    turn.success("Bridge has been destroyed")
}

/// Where a transfer leads.
fn target(turn: &Turn<'_>, id: ChannelId) -> Result<Location, Refusal> {
    let exten = turn.need("Exten")?.to_owned();
    let context = match turn.get("Context") {
        Some(context) => context.to_owned(),
        None => {
            let core = turn.site.shard.core.borrow();
            core.get(id).map(|channel| channel.location.context.clone()).unwrap_or_default()
        }
    };
    Ok(Location { context, exten, priority: 1 })
}

fn blind_transfer(turn: &mut Turn<'_>) -> Done {
    let id = turn.channel("Channel")?;
    let to = target(turn, id)?;
    transfer::blind(&mut turn.site.shard.core.borrow_mut(), id, to, false)?;
    turn.success("Transfer succeeded")
}

fn attended_transfer(turn: &mut Turn<'_>) -> Done {
    let id = turn.channel("Channel")?;
    let to = target(turn, id)?;
    apps::consult::attended(&turn.site.shard, id, &to)?;
    turn.success("Atxfer successfully queued")
}

fn cancel(turn: &mut Turn<'_>) -> Done {
    let id = turn.channel("Channel")?;
    apps::consult::cancel(&mut turn.site.shard.core.borrow_mut(), id)?;
    turn.success("CancelAtxfer successfully queued")
}
