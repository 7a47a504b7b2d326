//! Actions on calls that are written down.

use apps::monitor::{is_mix_monitor, mix_monitor};
use call::monitor::{Monitor, MonitorChange};

use super::super::table::{ActionRow, After, Done, Turn, may, must};

pub(super) const ROWS: &[ActionRow] = &[
    ActionRow {
        name: "MixMonitor",
        class: &["system"],
        synopsis: "Records both sides of a call.",
        fields: &[
            must("Channel", "name or UNIQUEID"),
            must("File", "filename.format"),
            may("Options", "those of the application MixMonitor"),
            may("Command", "has no effect"),
        ],
        run: begin,
    },
    ActionRow {
        name: "StopMixMonitor",
        class: &["system", "call"],
        synopsis: "Ends recordings of a call.",
        fields: &[must("Channel", "name or UNIQUEID"), may("MixMonitorID", "only this one")],
        run: end,
    },
    ActionRow {
        name: "MixMonitorMute",
        class: &["system", "call"],
        synopsis: "Writes silence in the place of one side or both, or the sides again.",
        fields: &[
            must("Channel", "name or UNIQUEID"),
            may("Direction", "read (what the channel says), write (what it hears) or both"),
            may("State", "1 for silence, 0 for sound"),
            may("MixMonitorID", "only this one"),
        ],
        run: mute,
    },
];

fn begin(turn: &mut Turn<'_>) -> Done {
    let id = turn.channel("Channel")?;
    let (file, options) = (turn.need("File")?, turn.get("Options").unwrap_or_default());
    let text = format!("{file},{options}");
    let begun = mix_monitor(&mut turn.site.shard.core.borrow_mut(), id, &text);
    let begun = begun.map_err(|why| format!("Could not start MixMonitor: {why}"))?;
    turn.response("Success").field("MixMonitorID", begun.id).end();
    Ok(After::Go)
}

/// Which recordings an action means.
fn which(turn: &Turn<'_>) -> impl Fn(&Monitor) -> bool + use<> {
    let wanted = turn.get("MixMonitorID").filter(|id| !id.is_empty()).map(str::to_owned);
    move |monitor| is_mix_monitor(monitor) && wanted.as_ref().is_none_or(|id| monitor.id() == *id)
}

fn end(turn: &mut Turn<'_>) -> Done {
    let (id, which) = (turn.channel("Channel")?, which(turn));
    if turn.site.shard.core.borrow_mut().monitor_stop(id, which) == 0 {
        return Err("Could not stop monitoring channel".into());
    }
    turn.success("Stopped")
}

fn mute(turn: &mut Turn<'_>) -> Done {
    let (id, which) = (turn.channel("Channel")?, which(turn));
    let silent = match turn.get("State") {
        Some("1") => true,
        Some("0") => false,
        _ => return Err("Invalid state specified".into()),
    };
    let (read, write) = match turn.get("Direction").unwrap_or("both") {
        "read" => (true, false),
        "write" => (false, true),
        "both" => (true, true),
        _ => return Err("Invalid direction specified".into()),
    };
    let changed = turn.site.shard.core.borrow_mut().monitor_adjust(id, which, |settings| {
        settings.hears = if read { !silent } else { settings.hears };
        settings.says = if write { !silent } else { settings.says };
    });
    if changed == 0 {
        return Err("Cannot set mute flag".into());
    }
    let muted = MonitorChange::Muted { read, write, silent };
    turn.site.shard.core.borrow_mut().monitor_notice(id, "MixMonitor", muted);
    turn.success("Mute set")
}
