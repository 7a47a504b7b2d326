//! Call parking: who is parked where, and parking somebody.

use core::time::Duration;

use apps::parking::{self, Manner};
use base::ChannelId;
use call::parking::{ParkingChange, dial_string};

use super::super::parking::fields;
use super::super::table::{ActionRow, After, Done, Refusal, Turn, may, must};

pub(super) const ROWS: &[ActionRow] = &[
    ActionRow {
        name: "Park",
        class: &["call"],
        synopsis: "Parks a channel.",
        fields: &[
            must("Channel", "name or UNIQUEID"),
            may(
                "TimeoutChannel",
                "who is called when nobody fetches it; who talks to Channel hears the space, and is let go of",
            ),
            may("AnnounceChannel", "the same as TimeoutChannel where that is not there"),
            may("Timeout", "milliseconds instead of parkingtime; 0: no limit"),
            may("Parkinglot", "the lot"),
            may("ParkingSpace", "the space"),
        ],
        run: park,
    },
    ActionRow {
        name: "ParkedCalls",
        class: &[],
        synopsis: "Lists parked calls.",
        fields: &[may("ParkingLot", "only those of this lot")],
        run: parked_calls,
    },
    ActionRow { name: "Parkinglots", class: &[], synopsis: "Lists parking lots.", fields: &[], run: lots },
];

/// The channel in a header, when it is there.
fn optional_channel(turn: &Turn<'_>, header: &str) -> Result<Option<ChannelId>, Refusal> {
    let Some(name) = turn.get(header).filter(|name| !name.is_empty()) else { return Ok(None) };
    let found = turn.site.shard.core.borrow().by_name(name);
    found.map(Some).ok_or_else(|| Refusal(format!("{header} does not exist")))
}

fn park(turn: &mut Turn<'_>) -> Done {
    let parkee = turn.channel("Channel")?;
    let back = optional_channel(turn, "TimeoutChannel")?;
    let told = optional_channel(turn, "AnnounceChannel")?.or(back);
    let time = match turn.get("Timeout").filter(|text| !text.is_empty()) {
        Some(text) => {
            let millis: u64 = text.trim().parse().map_err(|_| Refusal::from("Invalid Timeout value"))?;
            Some(Duration::from_secs(millis / 1000))
        }
        None => None,
    };
    let shard = turn.site.shard.clone();
    let parker = {
        let core = shard.core.borrow();
        back.and_then(|id| core.get(id)).map(|channel| dial_string(&channel.name)).unwrap_or_default()
    };
    let text = |header: &str| turn.get(header).unwrap_or_default().to_owned();
    let manner = Manner { lot: text("Parkinglot"), time, space: text("ParkingSpace"), parker };
    let talks_to = apps::transfer::peer(&shard.core.borrow(), parkee).ok().map(|(peer, _)| peer);
    match told.filter(|told| talks_to == Some(*told)) {
        Some(told) => parking::pair_as(&shard, told, parkee, manner)?,
        None => parking::alone(&shard, parkee, manner)?,
    }
    turn.success("Park successfully queued")
}

fn parked_calls(turn: &mut Turn<'_>) -> Done {
    let only = turn.get("ParkingLot").filter(|name| !name.is_empty()).map(str::to_owned);
    let shard = turn.site.shard.clone();
    let core = &*shard.core.borrow();
    if only.as_ref().is_some_and(|name| core.parking.lot(name).is_none()) {
        return Err("Requested parking lot could not be found.".into());
    }
    turn.begin_list("Parked calls will follow");
    let meant = core.parking.lots().filter(|lot| only.as_ref().is_none_or(|name| lot.settings.name == *name));
    let parked: Vec<ChannelId> =
        meant.flat_map(|lot| lot.spaces.values().map(|parked| parked.channel)).collect();
    let mut items = 0;
    for notice in parked.into_iter().filter_map(|id| core.parking_notice(id, ParkingChange::Parked, None)) {
        let _ = fields(turn.plain_item("ParkedCall"), &notice);
        turn.end_item();
        items += 1;
    }
    turn.end_list("ParkedCallsComplete", items).field("Total", items).end();
    Ok(After::Go)
}

fn lots(turn: &mut Turn<'_>) -> Done {
    let shard = turn.site.shard.clone();
    let core = &*shard.core.borrow();
    turn.begin_list("Parking lots will follow");
    let mut items = 0;
    for lot in core.parking.lots() {
        let of = &lot.settings;
        turn.item("Parkinglot")
            .field("Name", &of.name)
            .field("StartSpace", of.first)
            .field("StopSpace", of.last)
            .field("Timeout", of.time.map_or(0, |time| time.as_secs()))
            .end();
        items += 1;
    }
    turn.end_list("ParkinglotsComplete", items).end();
    Ok(After::Go)
}
