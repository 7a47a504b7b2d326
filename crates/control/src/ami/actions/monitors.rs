//! Actions on calls that are written down.

use apps::monitor::{begin_monitor, is_mix_monitor, is_monitor, mix_monitor_from_outside, rename_monitor};
use call::monitor::{Monitor, MonitorChange};

use super::super::table::{ActionRow, After, Done, Turn, may, must};

pub(super) const ROWS: &[ActionRow] = &[
    ActionRow {
        name: "MixMonitor",
        class: &["system"],
        synopsis: "Records both sides of a call.",
        fields: &[
            must("Channel", "name or UNIQUEID"),
            may("File", "filename.format; may be left out where Options have r or t"),
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
    ActionRow {
        name: "Monitor",
        class: &["system"],
        synopsis: "Records both sides of a call in two files, or in one.",
        fields: &[
            must("Channel", "name or UNIQUEID"),
            may("File", "name without -in, -out and extension; the channel's, where there is none"),
            may("Format", "extension of the files (wav)"),
            may("Mix", "true: one file of both sides"),
        ],
        run: begin_two,
    },
    ActionRow {
        name: "StopMonitor",
        class: &["system", "call"],
        synopsis: "Ends what Monitor records of a call.",
        fields: &[must("Channel", "name or UNIQUEID")],
        run: |turn| {
            let id = turn.channel("Channel")?;
            if turn.site.shard.core.borrow_mut().monitor_stop(id, is_monitor) == 0 {
                return Err("Could not stop monitoring channel".into());
            }
            turn.success("Stopped monitoring channel")
        },
    },
    ActionRow {
        name: "ChangeMonitor",
        class: &["system"],
        synopsis: "Gives the files that Monitor writes of a call other names.",
        fields: &[must("Channel", "name or UNIQUEID"), must("File", "name without -in, -out and extension")],
        run: |turn| {
            let (id, base) = (turn.channel("Channel")?, turn.need("File")?);
            let changed = rename_monitor(&mut turn.site.shard.core.borrow_mut(), id, base);
            changed.map_err(|why| format!("Could not change monitored filename of channel: {why}"))?;
            turn.success("Changed monitor filename")
        },
    },
    ActionRow {
        name: "PauseMonitor",
        class: &["system", "call"],
        synopsis: "Lets Monitor pause.",
        fields: &[must("Channel", "name or UNIQUEID")],
        run: |turn| pause(turn, true),
    },
    ActionRow {
        name: "UnpauseMonitor",
        class: &["system", "call"],
        synopsis: "Lets Monitor go on.",
        fields: &[must("Channel", "name or UNIQUEID")],
        run: |turn| pause(turn, false),
    },
];

fn begin(turn: &mut Turn<'_>) -> Done {
    let id = turn.channel("Channel")?;
    let field = |name| turn.get(name).unwrap_or_default();
    let text = format!("{},{},{}", field("File"), field("Options"), field("Command"));
    let begun = mix_monitor_from_outside(&turn.site.shard, id, &text);
    begun.map_err(|_| "Could not start monitoring channel")?;
    turn.response("Success").end();
    Ok(After::Go)
}

fn begin_two(turn: &mut Turn<'_>) -> Done {
    let id = turn.channel("Channel")?;
    let field = |name| turn.get(name).unwrap_or_default().to_owned();
    let options = if turn.action.is_true("Mix") { "m" } else { "" };
    let parts = [field("Format"), field("File"), options.to_owned()];
    let begun = begin_monitor(&mut turn.site.shard.core.borrow_mut(), id, &parts);
    begun.map_err(|why| format!("Could not start monitoring channel: {why}"))?;
    turn.success("Started monitoring channel")
}

fn pause(turn: &mut Turn<'_>, paused: bool) -> Done {
    let id = turn.channel("Channel")?;
    let changed =
        turn.site.shard.core.borrow_mut().monitor_adjust(id, is_monitor, |settings| settings.paused = paused);
    if changed == 0 {
        return Err("Channel is not monitored".into());
    }
    turn.success(if paused {
        "Paused monitoring of the channel"
    } else {
        "Unpaused monitoring of the channel"
    })
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
    turn.response("Success").end();
    Ok(After::Go)
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
        _ => return Err("Invalid direction specified. Must be read, write or both".into()),
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
    turn.response("Success").end();
    Ok(After::Go)
}
