//! Actions on channels and bridges that are up.

use core::time::Duration;

use apps::Call;
use base::{Cause, ChannelId, Digit};
use call::{Chan, ChanEvent, Channel, Core, Snapshot, Steer};
use dialplan::ere::Matcher;

use super::super::events;
use super::super::packet::Message;
use super::super::table::{ActionRow, After, Done, Refusal, Turn, may, must};

/// Longest digit `PlayDTMF` sends, milliseconds.
const DIGIT_MS_MAX: u16 = 6_000;
/// Its length when nothing is said.
const DIGIT_MS: u16 = 250;
/// Longest `AbsoluteTimeout`: a year.
const TIMEOUT_SECONDS_MAX: f64 = 365.0 * 86_400.0;

pub(super) const ROWS: &[ActionRow] = &[
    ActionRow {
        name: "CoreShowChannels",
        class: &["system", "reporting"],
        synopsis: "Lists channels.",
        fields: &[],
        run: core_show_channels,
    },
    ActionRow {
        name: "CoreShowChannelMap",
        class: &["system", "reporting"],
        synopsis: "Lists the channels that a channel talks to, by whatever bridges lie between.",
        fields: &[must("Channel", "name or UNIQUEID")],
        run: channel_map,
    },
    ActionRow {
        name: "SendText",
        class: &["call"],
        synopsis: "Sends text to the other end of a channel.",
        fields: &[must("Channel", "name or UNIQUEID"), must("Message", "the text")],
        run: send_text,
    },
    ActionRow {
        name: "LocalOptimizeAway",
        class: &["system", "call"],
        synopsis: "Takes a Local channel out of the way of the two that it connects, as soon as both talk. By itself it stays where it is: that costs next to nothing.",
        fields: &[must("Channel", "name of one half of a Local channel")],
        run: optimize_away,
    },
    ActionRow {
        name: "Status",
        class: &["system", "call", "reporting"],
        synopsis: "Tells everything about one channel or all.",
        fields: &[
            may("Channel", "name or UNIQUEID; all when absent"),
            may("Variables", "variables and functions to tell as well, comma separated"),
            may("AllVariables", "true for every variable"),
        ],
        run: status,
    },
    ActionRow {
        name: "PJSIPHangup",
        class: &["system", "call"],
        synopsis: "Ends a call; one that has come by SIP and waits is refused with a response of choice.",
        fields: &[may("Channel", "name"), may("Cause", "400 to 699, or the name of a response")],
        run: pjsip_hangup,
    },
    ActionRow {
        name: "Hangup",
        class: &["system", "call"],
        synopsis: "Hangs up one channel, or those whose names match an expression.",
        fields: &[
            must("Channel", "name, UNIQUEID or /expression/"),
            may("Cause", "Q.850 cause, number or name"),
        ],
        run: hangup,
    },
    ActionRow {
        name: "Redirect",
        class: &["call"],
        synopsis: "Sends a channel that runs in the dialplan or talks to another to a place of the dialplan, or two at once.",
        fields: &[
            must("Channel", "name or UNIQUEID"),
            must("Exten", "extension"),
            must("Context", "context"),
            must("Priority", "priority or label"),
            may("ExtraChannel", "second channel"),
            may("ExtraExten", "its extension, when another"),
            may("ExtraContext", "its context"),
            may("ExtraPriority", "its priority"),
        ],
        run: redirect,
    },
    ActionRow {
        name: "AbsoluteTimeout",
        class: &["system", "call"],
        synopsis: "Ends a call after so many seconds from this moment; 0 takes the limit away.",
        fields: &[must("Channel", "name or UNIQUEID"), must("Timeout", "seconds")],
        run: absolute_timeout,
    },
    ActionRow {
        name: "PlayDTMF",
        class: &["call"],
        synopsis: "Sends a digit on a channel.",
        fields: &[
            must("Channel", "name or UNIQUEID"),
            must("Digit", "0-9, A-D, * or #"),
            may("Duration", "milliseconds (250)"),
            may("Receive", "true to act as if the channel had sent it"),
        ],
        run: play_dtmf,
    },
    ActionRow {
        name: "PlayMF",
        class: &["call"],
        synopsis: "Sends a digit of R1 on a channel.",
        fields: &[
            must("Channel", "name or UNIQUEID"),
            must("Digit", "0-9, * (KP), # (ST), A (STP), B (ST2P) or C (ST3P)"),
            may("Duration", "milliseconds (55, of KP 120, of the others 65)"),
        ],
        run: play_mf,
    },
    ActionRow {
        name: "MuteAudio",
        class: &["system"],
        synopsis: "Lets no audio of a channel through, or lets it through again; digits go on.",
        fields: &[
            must("Channel", "name or UNIQUEID"),
            must("Direction", "in (what its party says), out (what its party hears) or all"),
            must("State", "on or off"),
        ],
        run: mute_audio,
    },
    ActionRow {
        name: "ControlPlayback",
        class: &["call"],
        synopsis: "Steers what ControlPlayback plays on a channel.",
        fields: &[
            must("Channel", "name or UNIQUEID"),
            must("Control", "stop, forward, reverse, pause or restart"),
        ],
        run: control_playback,
    },
];

fn seconds(channel: &Channel, core: &Core) -> u64 {
    core.now.since(channel.created).as_secs()
}

fn clock(seconds: u64) -> String {
    format!("{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60)
}

fn bridge_id(channel: &Channel) -> String {
    channel.bridge.map(events::bridge_name).unwrap_or_default()
}

fn core_show_channels(turn: &mut Turn<'_>) -> Done {
    turn.begin_list("Channels will follow");
    let shard = turn.site.shard.clone();
    let core = &*shard.core.borrow();
    let mut items = 0;
    for channel in core.channels() {
        items += 1;
        events::channel(turn.item("CoreShowChannel"), "", &Snapshot::of(channel))
            .field("Application", channel.app)
            .field("ApplicationData", &channel.app_data)
            .field("Duration", clock(seconds(channel, core)))
            .field("BridgeId", bridge_id(channel))
            .end();
    }
    turn.end_list("CoreShowChannelsComplete", items).end();
    Ok(After::Go)
}

fn channel_map(turn: &mut Turn<'_>) -> Done {
    let first = turn.channel("Channel")?;
    turn.begin_list("Channel map will follow");
    let shard = turn.site.shard.clone();
    let core = &*shard.core.borrow();
    let mut known = vec![first];
    let mut at = 0;
    while let Some(id) = known.get(at).copied() {
        at += 1;
        let Some(channel) = core.get(id) else { continue };
        let bridged = channel.bridge.map_or(&[][..], |bridge| core.bridge_members(bridge));
        let half = core.by_name(&other_half(&channel.name));
        for other in bridged.iter().copied().chain(half) {
            if !known.contains(&other) {
                known.push(other);
            }
        }
    }
    let others: Vec<&Channel> = known.iter().skip(1).filter_map(|id| core.get(*id)).collect();
    let name = core.get(first).map(|channel| channel.name.clone()).unwrap_or_default();
    for channel in &others {
        turn.item("CoreShowChannelMap")
            .field("Channel", &name)
            .field("ConnectedChannel", &channel.name)
            .end();
    }
    turn.end_list("CoreShowChannelMapComplete", others.len()).end();
    Ok(After::Go)
}

/// The name of the other half of a Local channel; no channel's for others.
fn other_half(name: &str) -> String {
    match (name.strip_suffix(";1"), name.strip_suffix(";2")) {
        (Some(pair), _) => format!("{pair};2"),
        (None, Some(pair)) => format!("{pair};1"),
        (None, None) => String::new(),
    }
}

fn send_text(turn: &mut Turn<'_>) -> Done {
    let id = turn.channel("Channel")?;
    let text = turn.need("Message")?.to_owned();
    let sent = turn.site.shard.with_tech(id, |tech, core| tech.send_text(core, id, &text));
    match sent {
        Some(true) => turn.success("Success"),
        Some(false) | None => Err("Failure".into()),
    }
}

fn optimize_away(turn: &mut Turn<'_>) -> Done {
    let id = turn.channel("Channel")?;
    let queued = turn.site.shard.with_tech(id, |tech, core| tech.optimize_away(core, id));
    if queued == Some(true) {
        turn.success("Queued channel to be optimized away")
    } else {
        Err("Unable to optimize channel".into())
    }
}

fn status(turn: &mut Turn<'_>) -> Done {
    let only = match turn.get("Channel") {
        Some(_) => Some(turn.channel("Channel")?),
        None => None,
    };
    let names: Vec<String> = turn.get("Variables").into_iter().flat_map(super::split_list).collect();
    if let Some(name) = names.iter().find(|name| !super::may_read(turn, name)) {
        return Err(format!("Permission denied for {name}").into());
    }
    let all_variables = turn.action.is_true("AllVariables");
    turn.begin_list("Channel status will follow");
    let shard = turn.site.shard.clone();
    let ids: Vec<ChannelId> = {
        let core = shard.core.borrow();
        core.channels().map(|channel| channel.id).filter(|id| only.is_none_or(|only| only == *id)).collect()
    };
    for id in &ids {
        let mut variables: Vec<(String, String)> = Vec::new();
        if all_variables {
            let core = shard.core.borrow();
            let vars = core.get(*id).into_iter().flat_map(|channel| channel.vars.iter());
            variables.extend(vars.map(|(_, name, value)| (name.to_owned(), value.to_owned())));
        }
        let call = turn.call(Some(*id));
        variables.extend(names.iter().map(|name| (name.clone(), super::value_of(&call, name))));
        let core = &*shard.core.borrow();
        let Some(channel) = core.get(*id) else { continue };
        let message = turn.plain_item("Status").field("Privilege", "Call");
        let message = status_fields(events::channel(message, "", &Snapshot::of(channel)), channel, core);
        let _ = variables.iter().fold(message, |message, (name, value)| {
            message.field("Variable", format_args!("{name}={value}"))
        });
        turn.end_item();
    }
    turn.end_list("StatusComplete", ids.len()).field("Items", ids.len()).end();
    Ok(After::Go)
}

fn status_fields<'a>(message: Message<'a>, channel: &Channel, core: &Core) -> Message<'a> {
    let formats = channel.formats.iter().map(|format| format.name()).collect::<Vec<_>>().join("|");
    let kind = channel.name.split_once('/').map_or("", |(kind, _)| kind);
    let left = channel.absolute_deadline.map_or(0, |at| at.since(core.now).as_secs());
    message
        .field("Type", kind)
        .field("DNID", channel.dialed.as_deref().unwrap_or_default())
        .field("EffectiveConnectedLineNum", events::or_unknown(channel.connected.number()))
        .field("EffectiveConnectedLineName", events::or_unknown(channel.connected.name()))
        .field("TimeToHangup", left)
        .field("BridgeID", bridge_id(channel))
        .field("Application", channel.app)
        .field("Data", &channel.app_data)
        .field("Nativeformats", format_args!("({formats})"))
        // What is coded on the way from one format to another is the worker's, and no path of theirs.
        .field("Readformat", channel.format.name())
        .field("Readtrans", "")
        .field("Writeformat", core.written_format(channel.id).map_or("", |format| format.name()))
        .field("Writetrans", "")
        .field("Callgroup", channel.pickup.call.bits())
        .field("Pickupgroup", channel.pickup.pickup.bits())
        .field("Seconds", seconds(channel, core))
}

fn pjsip_hangup(turn: &mut Turn<'_>) -> Done {
    let name = turn.get("Channel").ok_or("No channel specified")?;
    let shard = turn.site.shard.clone();
    let id = shard.core.borrow().by_name(name).ok_or("No such channel")?;
    let text = turn.get("Cause").unwrap_or_default();
    let cause = apps::choose_refusal(&shard, id, text);
    let core = &mut *shard.core.borrow_mut();
    core.request_hangup(id, cause.unwrap_or(core.plain_cause(id)));
    turn.success("Channel Hungup")
}

fn hangup(turn: &mut Turn<'_>) -> Done {
    let cause = match turn.get("Cause") {
        None => None,
        Some(text) => Some(Cause::parse(text).ok_or_else(|| Refusal::from("Invalid cause"))?),
    };
    let shard = turn.site.shard.clone();
    let pattern = turn.need("Channel")?.strip_prefix('/').and_then(|text| text.strip_suffix('/'));
    let Some(pattern) = pattern else {
        let id = turn.channel("Channel")?;
        let core = &mut *shard.core.borrow_mut();
        core.request_hangup(id, cause.unwrap_or(core.plain_cause(id)));
        return turn.success("Channel Hungup");
    };
    let pattern = Matcher::new(pattern).map_err(|why| Refusal(format!("Regex error: {why}")))?;
    let found: Vec<(ChannelId, String)> = {
        let core = shard.core.borrow();
        let matching = core.channels().filter(|channel| pattern.is_match(&channel.name));
        matching.map(|channel| (channel.id, channel.name.to_string())).collect()
    };
    turn.begin_list("Channels hung up will follow");
    for (id, name) in &found {
        let core = &mut *shard.core.borrow_mut();
        core.request_hangup(*id, cause.unwrap_or(core.plain_cause(*id)));
        let _ = turn.plain_item("ChannelHungup").field("Channel", name);
        turn.end_item();
    }
    turn.end_list("ChannelsHungupListComplete", found.len()).end();
    Ok(After::Go)
}

fn redirect(turn: &mut Turn<'_>) -> Done {
    let first = turn.channel("Channel")?;
    let place = |turn: &Turn<'_>, prefix: &str| -> String {
        let part = |name: &str| {
            let extra = turn.get(&format!("{prefix}{name}"));
            extra.or_else(|| turn.get(name)).unwrap_or_default().to_owned()
        };
        format!("{},{},{}", part("Context"), part("Exten"), part("Priority"))
    };
    let mut moves = vec![(first, place(turn, ""))];
    if turn.get("ExtraChannel").is_some() {
        moves.push((turn.channel("ExtraChannel")?, place(turn, "Extra")));
    }
    // Both are looked at before either moves.
    let mut resolved = Vec::new();
    for (id, place) in &moves {
        let shard = &turn.site.shard;
        let (has_pbx, talks) = {
            let core = shard.core.borrow();
            let channel = core.get(*id).ok_or("No such channel")?;
            (channel.has_pbx, channel.bridge.is_some())
        };
        if !has_pbx && !talks {
            return Err("Redirect failed, channel not up.".into());
        }
        let call = Call::new(Chan::new(shard.clone(), *id));
        resolved.push((*id, call.resolve(place).map_err(|why| Refusal(format!("Redirect failed: {why}")))?));
    }
    for (id, location) in resolved {
        turn.site.shard.core.borrow_mut().request_goto(id, location);
    }
    turn.success(if moves.len() > 1 { "Dual Redirect successful" } else { "Redirect successful" })
}

fn absolute_timeout(turn: &mut Turn<'_>) -> Done {
    let id = turn.channel("Channel")?;
    // What is no number counts as none.
    let seconds: f64 = turn.need("Timeout")?.parse().unwrap_or(-1.0);
    if !(0.0..=TIMEOUT_SECONDS_MAX).contains(&seconds) {
        return Err("No timeout specified".into());
    }
    let at = (seconds > 0.0).then(|| turn.now + Duration::from_secs_f64(seconds));
    turn.site.shard.core.borrow_mut().set_absolute_deadline(id, at);
    turn.success("Timeout Set")
}

fn play_dtmf(turn: &mut Turn<'_>) -> Done {
    let id = turn.channel("Channel")?;
    // The first symbol counts; what is no digit makes no sound.
    let digit = turn.need("Digit")?.chars().next().and_then(Digit::from_char);
    let Some(digit) = digit else { return turn.success("DTMF successfully queued") };
    let duration = match turn.get("Duration").map(str::parse::<u16>) {
        None => DIGIT_MS,
        Some(Ok(ms @ 1..=DIGIT_MS_MAX)) => ms,
        Some(_) => return Err("Invalid duration".into()),
    };
    if turn.action.is_true("Receive") {
        let mut core = turn.site.shard.core.borrow_mut();
        core.push_event(id, ChanEvent::DigitBegin(digit));
        core.push_event(id, ChanEvent::Digit { digit, duration_ms: u32::from(duration), relayed: false });
        drop(core);
        return turn.success("DTMF successfully queued");
    }
    Chan::new(turn.site.shard.clone(), id).send_digit(digit, duration);
    turn.success("DTMF successfully queued")
}

fn play_mf(turn: &mut Turn<'_>) -> Done {
    let id = turn.channel("Channel")?;
    let digit = turn.need("Digit")?.chars().next().unwrap_or_default();
    let duration = match turn.get("Duration").map(str::parse::<u16>) {
        None => match digit {
            '*' => 120,
            '#' | 'A'..='C' | 'a'..='c' => 65,
            _ => 55,
        },
        Some(Ok(ms @ 1..=DIGIT_MS_MAX)) => ms,
        Some(_) => return Err("Invalid duration".into()),
    };
    apps::mf::play(&Chan::new(turn.site.shard.clone(), id), digit, duration);
    turn.success("MF successfully queued")
}

fn mute_audio(turn: &mut Turn<'_>) -> Done {
    let id = turn.channel("Channel")?;
    let on = conf::boolean(turn.need("State")?).ok_or("Invalid state")?;
    let (heard, sent) = match turn.need("Direction")?.to_ascii_lowercase().as_str() {
        "in" => (Some(on), None),
        "out" => (None, Some(on)),
        "all" => (Some(on), Some(on)),
        _ => return Err("Invalid direction".into()),
    };
    if !turn.site.shard.core.borrow_mut().mute(id, heard, sent) {
        return Err("Failed to mute the channel: it has no media".into());
    }
    turn.response("Success").end();
    Ok(After::Go)
}

fn control_playback(turn: &mut Turn<'_>) -> Done {
    let id = turn.channel("Channel")?;
    let steer = match turn.need("Control")?.to_ascii_lowercase().as_str() {
        "stop" => Steer::Stop,
        "forward" => Steer::Forward,
        "reverse" => Steer::Reverse,
        "pause" => Steer::Pause,
        "restart" => Steer::Restart,
        _ => return Err("Unknown control type".into()),
    };
    turn.site.shard.core.borrow_mut().push_event(id, ChanEvent::Steer(steer));
    turn.response("Success").end();
    Ok(After::Go)
}
