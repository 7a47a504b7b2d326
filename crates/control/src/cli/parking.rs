//! Parking lots: what they are, and who waits in them.

use std::fmt::Write as _;

use call::Core;
use call::parking::{Lot, Parked};
use serde_json::{Value, json};

use super::text::clean;
use super::{Ask, Cli, Row, Said, show};

pub(super) const ROWS: &[Row] = &[show(
    "parking show [<lot>]",
    "Lists parking lots; with a name also the calls that wait there.",
    "lots [name extension context first last exclusive hints time_seconds to_origin come_back_context dial_seconds music \
     enabled dynamic calls [space channel parker waited_seconds left_seconds]]",
    Cli::parking_show,
)
.also(&["parkedcalls show"])];

fn left(core: &Core, parked: &Parked) -> Option<u64> {
    parked.until.map(|until| (until - core.now).as_secs())
}

fn lot_json(core: &Core, lot: &Lot) -> Value {
    let of = &lot.settings;
    let calls = lot.spaces.iter().map(|(space, parked)| {
        json!({
            "space": space,
            "channel": core.get(parked.channel).map(|channel| channel.name.to_string()),
            "parker": parked.parker,
            "waited_seconds": core.now.since(parked.since).as_secs(),
            "left_seconds": left(core, parked),
        })
    });
    json!({
        "name": of.name, "extension": of.extension, "context": of.context, "first": of.first, "last": of.last,
        "exclusive": of.exclusive, "hints": of.hints, "time_seconds": of.time.map(|time| time.as_secs()),
        "to_origin": of.to_origin, "come_back_context": of.come_back_context, "dial_seconds": of.dial_time.as_secs(),
        "music": of.music, "enabled": lot.enabled, "dynamic": lot.dynamic, "calls": calls.collect::<Vec<_>>(),
    })
}

fn lot_text(core: &Core, lot: &Lot, with_calls: bool, out: &mut String) {
    let of = &lot.settings;
    let time = of.time.map_or(0, |time| time.as_secs());
    let unused = if of.to_origin { " (comebacktoorigin=yes, not used)" } else { "" };
    let yes = |value: bool| if value { "yes" } else { "no" };
    let _ = writeln!(out, "\nParking Lot: {}\n{}", clean(&of.name), "-".repeat(74));
    for (what, value) in [
        ("Parking Extension", clean(&of.extension).into_owned()),
        ("Parking Context", clean(&of.context).into_owned()),
        ("Parking Spaces", format!("{}-{}", of.first, of.last)),
        ("Parking Time", format!("{time} sec")),
        ("Comeback to Origin", yes(of.to_origin).to_owned()),
        ("Comeback Context", format!("{}{unused}", clean(&of.come_back_context))),
        ("Comeback Dial Time", format!("{} sec", of.dial_time.as_secs())),
        ("MusicOnHold Class", clean(&of.music).into_owned()),
        ("Enabled", yes(lot.enabled).to_owned()),
        ("Dynamic", yes(lot.dynamic).to_owned()),
    ] {
        let _ = writeln!(out, "{what:<20}:  {value}");
    }
    out.push('\n');
    if !with_calls {
        return;
    }
    out.push_str("Parked Calls\n------------\n");
    out.push_str(if lot.spaces.is_empty() { "  (none)\n\n" } else { "" });
    for (space, parked) in &lot.spaces {
        let name = core.get(parked.channel).map(|channel| channel.name.to_string()).unwrap_or_default();
        let _ = writeln!(out, "  Space               :  {space}");
        let _ = writeln!(out, "  Channel             :  {}", clean(&name));
        let _ = writeln!(out, "  Parker Dial String  :  {}\n", clean(&parked.parker));
    }
    out.push('\n');
}

impl Cli {
    fn parking_show(&self, ask: &mut Ask<'_>) -> Said {
        let core = &*self.site.shard.core.borrow();
        let only = ask.arg("lot");
        if let Some(name) = only.filter(|name| core.parking.lot(name).is_none()) {
            return Said::failed(format!("Could not find parking lot '{}'\n", clean(name)));
        }
        let lots = || core.parking.lots().filter(|lot| only.is_none_or(|name| lot.settings.name == name));
        let data = || json!({ "lots": lots().map(|lot| lot_json(core, lot)).collect::<Vec<_>>() });
        let text = || {
            let mut out = String::new();
            lots().for_each(|lot| lot_text(core, lot, only.is_some(), &mut out));
            out
        };
        ask.show(data, text)
    }
}
