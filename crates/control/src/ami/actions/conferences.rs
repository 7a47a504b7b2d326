//! Actions on conferences.

use call::Snapshot;
use call::conference::{Conference, NotThere, RecordRefused, Which};

use super::super::events::{self, yes_no};
use super::super::table::{ActionRow, After, Done, Refusal, Turn, may, must};

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
    ActionRow {
        name: "ConfbridgeStartRecord",
        class: &["system"],
        synopsis: "Records a conference.",
        fields: &[
            must("Conference", "its name"),
            may("RecordFile", "file to record to; else its bridge profile says where"),
        ],
        run: start_record,
    },
    ActionRow {
        name: "ConfbridgeStopRecord",
        class: &["system"],
        synopsis: "Ends the recording of a conference.",
        fields: &[must("Conference", "its name")],
        run: stop_record,
    },
    ActionRow {
        name: "ConfbridgeSetSingleVideoSrc",
        class: &["call"],
        synopsis: "Lets all others in a conference see this member, until it leaves or lets go, whatever video_mode says.",
        fields: &[must("Conference", "its name"), must("Channel", "a channel")],
        run: set_video,
    },
    ActionRow {
        name: "MeetmeList",
        class: &["reporting"],
        synopsis: "Lists the members of conferences, in the words of MeetMe.",
        fields: &[may("Conference", "only of this one")],
        run: list_meeting,
    },
    ActionRow {
        name: "MeetmeListRooms",
        class: &["reporting"],
        synopsis: "Lists conferences, in the words of MeetMe.",
        fields: &[],
        run: list_meetings,
    },
    ActionRow {
        name: "MeetmeMute",
        class: &["call"],
        synopsis: "Lets a member of a conference not be heard.",
        fields: &[
            must("Meetme", "the conference"),
            must("Usernum", "the member's number, as MeetmeList tells it"),
        ],
        run: |turn| mute_number(turn, true),
    },
    ActionRow {
        name: "MeetmeUnmute",
        class: &["call"],
        synopsis: "Lets a member of a conference be heard again.",
        fields: &[
            must("Meetme", "the conference"),
            must("Usernum", "the member's number, as MeetmeList tells it"),
        ],
        run: |turn| mute_number(turn, false),
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
    let (conference, whom) = (turn.need("Conference")?, turn.need("Channel")?);
    let core = turn.site.shard.core.borrow();
    if core.conferences.get(conference).is_none() {
        return Err(refusal(NotThere::Conference));
    }
    apps::conference::which(&core, conference, whom).ok_or_else(|| refusal(NotThere::Member))
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
            .field("Marked", conference.marked())
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
        let item = turn
            .item("ConfbridgeList")
            .field("Conference", &conference.name)
            .field("Admin", yes_no(member.seat.is_admin))
            .field("MarkedUser", yes_no(member.seat.is_marked))
            .field("WaitMarked", yes_no(member.seat.waits_marked))
            .field("EndMarked", yes_no(member.seat.ends_marked))
            .field("EndMarkedAny", yes_no(member.seat.ends_marked_any))
            .field("Waiting", yes_no(member.waits))
            .field("Muted", yes_no(conference.silences(member)))
            // Of one whose talk is not told, it is not known.
            .field("Talking", yes_no(member.talks && member.seat.tells_talking))
            .field("AnsweredTime", channel.answered.map_or(0, |answered| core.now.since(answered).as_secs()));
        events::channel(item, "", &Snapshot::of(channel)).end();
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

fn start_record(turn: &mut Turn<'_>) -> Done {
    let name = turn.need("Conference")?.to_owned();
    let file = turn.get("RecordFile").unwrap_or_default().to_owned();
    match apps::conference::start_recording(&turn.site.shard, &name, &file) {
        Ok(_) => turn.success("Conference Recording Started."),
        Err(RecordRefused::NotThere) => Err(refusal(NotThere::Conference)),
        Err(RecordRefused::Running) => Err("Conference is already being recorded.".into()),
        Err(why) => Err(format!("Could not start recording: {why}").into()),
    }
}

fn stop_record(turn: &mut Turn<'_>) -> Done {
    let name = turn.need("Conference")?.to_owned();
    match apps::conference::stop_recording(&turn.site.shard, &name) {
        Ok(_) => turn.success("Conference Recording Stopped."),
        Err(RecordRefused::NotThere) => Err(refusal(NotThere::Conference)),
        Err(_) => Err("Conference is not being recorded.".into()),
    }
}

fn set_video(turn: &mut Turn<'_>) -> Done {
    let name = turn.need("Conference")?.to_owned();
    let Which::One(id) = which(turn)? else { return Err("No active channel found matching Channel".into()) };
    match turn.site.shard.core.borrow_mut().conference_choose_video(&name, id) {
        Ok(()) => turn.success("Conference single video source set."),
        Err(why) => Err(refusal(why)),
    }
}

fn list_meeting(turn: &mut Turn<'_>) -> Done {
    let name = turn.get("Conference").unwrap_or_default().to_owned();
    let shard = turn.site.shard.clone();
    let core = &*shard.core.borrow();
    let meant = || core.conferences.iter().filter(|found| name.is_empty() || found.name == name);
    if meant().next().is_none() {
        return Err("No active conferences.".into());
    }
    turn.begin_list("Meetme user list will follow");
    let mut items = 0;
    for conference in meant() {
        for member in &conference.members {
            let Some(channel) = core.get(member.channel) else { continue };
            items += 1;
            let mixing = &member.seat.mixing;
            let role = if mixing.deaf { "Talk only" } else { "Talk and listen" };
            let muted = match (conference.silences(member), mixing.muted) {
                (true, false) => "By admin",
                (true, true) => "By self",
                (false, _) => "No",
            };
            turn.item("MeetmeList")
                .field("Conference", &conference.name)
                .field("UserNumber", member.number)
                .field("CallerIDNum", events::or_unknown(channel.caller.number()))
                .field("CallerIDName", events::or_unknown(channel.caller.name()))
                .field("ConnectedLineNum", events::or_unknown(channel.connected.number()))
                .field("ConnectedLineName", events::or_unknown(channel.connected.name()))
                .field("Channel", &*channel.name)
                .field("Admin", yes_no(member.seat.is_admin))
                .field("Role", role)
                .field("MarkedUser", yes_no(member.seat.is_marked))
                .field("Muted", muted)
                .field(
                    "Talking",
                    if member.seat.tells_talking { yes_no(member.talks) } else { "Not monitored" },
                )
                .end();
        }
    }
    turn.end_list("MeetmeListComplete", items).end();
    Ok(After::Go)
}

fn list_meetings(turn: &mut Turn<'_>) -> Done {
    let shard = turn.site.shard.clone();
    let core = &*shard.core.borrow();
    if core.conferences.iter().next().is_none() {
        return Err("No active conferences.".into());
    }
    turn.begin_list("Meetme conferences will follow");
    let now = core.services.wall.now_micros();
    let mut items = 0;
    for conference in core.conferences.iter() {
        items += 1;
        let seconds = (now - conference.began).max(0) / 1_000_000;
        let is_room = core.settings.meeting_rooms.contains_key(&conference.name);
        turn.item("MeetmeListRooms")
            .field("Conference", &conference.name)
            .field("Parties", conference.members.len())
            .field("Marked", conference.marked())
            .field("Activity", format!("{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60))
            .field("Creation", if is_room { "Static" } else { "Dynamic" })
            .field("Locked", yes_no(conference.is_locked))
            .end();
    }
    turn.end_list("MeetmeListRoomsComplete", items).end();
    Ok(After::Go)
}

fn mute_number(turn: &mut Turn<'_>, muted: bool) -> Done {
    let name = turn.need("Meetme")?.to_owned();
    let number: Option<u32> = turn.need("Usernum")?.parse().ok();
    {
        let core = &mut *turn.site.shard.core.borrow_mut();
        let conference = core.conferences.get(&name).ok_or("Meetme conference not found")?;
        let found = conference.members.iter().find(|member| Some(member.number) == number);
        let id = found.map(|member| member.channel).ok_or("User number not found")?;
        core.conference_mute(&name, Which::One(id), muted).map_err(refusal)?;
    }
    turn.success(if muted { "User muted" } else { "User unmuted" })
}
