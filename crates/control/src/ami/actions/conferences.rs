//! Actions on conferences.

use call::Snapshot;
use call::conference::{Conference, NotThere, Which};

use super::super::events::{self, yes_no};
use super::super::table::{ActionRow, After, Done, Refusal, Turn, must};

pub(super) const ROWS: &[ActionRow] = &[
    ActionRow {
        name: "ConfbridgeListRooms",
        class: &["reporting"],
        synopsis: "Lists conferences.",
        fields: &[],
        run: list_rooms,
    },
    ActionRow {
        name: "ConfbridgeList",
        class: &["reporting"],
        synopsis: "Lists the members of a conference.",
        fields: &[must("Conference", "its name")],
        run: list,
    },
    ActionRow {
        name: "ConfbridgeMute",
        class: &["call"],
        synopsis: "Lets a member of a conference not be heard.",
        fields: &[must("Conference", "its name"), must("Channel", "a channel, all or participants")],
        run: |turn| mute(turn, true),
    },
    ActionRow {
        name: "ConfbridgeUnmute",
        class: &["call"],
        synopsis: "Lets a member of a conference be heard again.",
        fields: &[must("Conference", "its name"), must("Channel", "a channel, all or participants")],
        run: |turn| mute(turn, false),
    },
    ActionRow {
        name: "ConfbridgeKick",
        class: &["call"],
        synopsis: "Sends a member out of a conference.",
        fields: &[must("Conference", "its name"), must("Channel", "a channel, all or participants")],
        run: kick,
    },
    ActionRow {
        name: "ConfbridgeLock",
        class: &["call"],
        synopsis: "Lets nobody but administrators enter a conference.",
        fields: &[must("Conference", "its name")],
        run: |turn| lock(turn, true),
    },
    ActionRow {
        name: "ConfbridgeUnlock",
        class: &["call"],
        synopsis: "Lets everyone enter a conference again.",
        fields: &[must("Conference", "its name")],
        run: |turn| lock(turn, false),
    },
];

fn refusal(why: NotThere) -> Refusal {
    match why {
        NotThere::Conference => "No Conference by that name found.".into(),
        NotThere::Member => "No Channel by that name found in Conference.".into(),
    }
}

/// Whom the field `Channel` means.
fn which(turn: &Turn<'_>) -> Result<Which, Refusal> {
    match turn.need("Channel")? {
        "all" => Ok(Which::All),
        "participants" => Ok(Which::Participants),
        name => {
            let found = turn.site.shard.core.borrow().by_name(name);
            found.map(Which::One).ok_or_else(|| refusal(NotThere::Member))
        }
    }
}

fn list_rooms(turn: &mut Turn<'_>) -> Done {
    let shard = turn.site.shard.clone();
    let core = &*shard.core.borrow();
    if core.conferences.iter().next().is_none() {
        return Err("No active conferences.".into());
    }
    turn.begin_list("Confbridge conferences will follow");
    let mut items = 0;
    for conference in core.conferences.iter() {
        items += 1;
        turn.item("ConfbridgeListRooms")
            .field("Conference", &conference.name)
            .field("Parties", conference.members.len())
            .field("Marked", 0)
            .field("Locked", yes_no(conference.is_locked))
            .field("Muted", yes_no(conference.is_muted()))
            .end();
    }
    turn.end_list("ConfbridgeListRoomsComplete", items).end();
    Ok(After::Go)
}

fn list(turn: &mut Turn<'_>) -> Done {
    let name = turn.need("Conference")?.to_owned();
    let shard = turn.site.shard.clone();
    let core = &*shard.core.borrow();
    let conference: &Conference = core.conferences.get(&name).ok_or_else(|| refusal(NotThere::Conference))?;
    turn.begin_list("Confbridge user list will follow");
    for member in &conference.members {
        let Some(channel) = core.get(member.channel) else { continue };
        let item = turn.item("ConfbridgeList").field("Conference", &conference.name);
        events::channel(item, "", &Snapshot::of(channel))
            .field("Admin", yes_no(member.seat.is_admin))
            .field("MarkedUser", "No")
            .field("WaitMarked", "No")
            .field("EndMarked", "No")
            .field("Waiting", "No")
            .field("Muted", yes_no(member.seat.mixing.muted))
            .field("Talking", yes_no(member.talks))
            .field("AnsweredTime", core.now.since(member.since).as_secs())
            .end();
    }
    turn.end_list("ConfbridgeListComplete", conference.members.len()).end();
    Ok(After::Go)
}

fn mute(turn: &mut Turn<'_>, muted: bool) -> Done {
    let (name, which) = (turn.need("Conference")?.to_owned(), which(turn)?);
    turn.site.shard.core.borrow_mut().conference_mute(&name, which, muted).map_err(refusal)?;
    turn.success(if muted { "User muted" } else { "User unmuted" })
}

fn kick(turn: &mut Turn<'_>) -> Done {
    let (name, which) = (turn.need("Conference")?.to_owned(), which(turn)?);
    turn.site.shard.core.borrow_mut().conference_kick(&name, which).map_err(refusal)?;
    turn.success("User kicked")
}

fn lock(turn: &mut Turn<'_>, locked: bool) -> Done {
    let name = turn.need("Conference")?.to_owned();
    turn.site.shard.core.borrow_mut().conference_lock(&name, locked).map_err(refusal)?;
    turn.success(if locked { "Conference locked" } else { "Conference unlocked" })
}
