//! CHANNEL(), CHANNELS(), IMPORT(), MASTER_CHANNEL() and TIMEOUT().

use core::time::Duration;
use std::rc::Rc;

use base::ChannelId;
use call::{Channel, HandlerChange, Notice};
use dialplan::Fault;

use super::{Read, gone, record, tech_read, tech_write, unknown};
use crate::Call;
use crate::call_ctx::args;
use crate::env::Scope;

/// Hang-up handlers one channel may have: more than any stack of routines in use pushes.
const HANGUP_HANDLERS_MAX: usize = 64;

pub(super) fn read(call: &Call, text: &str, out: &mut String) -> Read {
    let item = text.split(',').next().unwrap_or_default().trim().to_ascii_lowercase();
    call.settle();
    let answer = call.chan.with(|c| read_item(c, &item)).map_err(gone)?;
    if let Some(answer) = answer {
        out.push_str(&answer);
        return Ok(());
    }
    match item.as_str() {
        "rtcp" | "rtpqos" => super::quality::read(call, text, out),
        "peer" | "bridgepeer" => {
            out.push_str(&peer_name(call).unwrap_or_default());
            Ok(())
        }
        "audiowriteformat" => {
            let written = call.chan.core(|core| core.written_format(call.chan.id()));
            out.push_str(written.map_or("", |format| format.name()));
            Ok(())
        }
        "channeltype" => {
            let name = call.chan.shard().with_tech(call.chan.id(), |tech, _| tech.names().first().copied());
            out.push_str(name.flatten().unwrap_or_default());
            Ok(())
        }
        _ => tech_read(call, "CHANNEL", text, out).map_err(|_| unknown(&item)),
    }
}

/// Items that the channel's own state answers.
fn read_item(c: &Channel, item: &str) -> Option<String> {
    Some(match item {
        "name" => c.name.to_string(),
        "state" => c.state.name().to_owned(),
        "language" => c.language.clone(),
        "parkinglot" => c.parking_lot.clone(),
        // What is not set on the channel is empty, whatever holds then.
        "musicclass" if c.music_class == "default" && !c.music_chosen => String::new(),
        "musicclass" => c.music_class.clone(),
        "tonezone" => c.tone_zone.clone(),
        "accountcode" => c.account.clone(),
        "peeraccount" => c.peer_account.clone(),
        "amaflags" => (c.cdr.ama_flags as u8).to_string(),
        "context" => c.location.context.clone(),
        "exten" => c.location.exten.clone(),
        "priority" => c.location.priority.to_string(),
        "uniqueid" => c.uniqueid.to_string(),
        "linkedid" => c.linkedid.to_string(),
        "tenantid" => c.tenant.to_string(),
        "hangupsource" => c.hangup_by.to_string(),
        "audioreadformat" => c.format.name().to_owned(),
        "audionativeformat" => formats(&c.formats),
        "videonativeformat" => formats(&c.video_formats),
        "lastcontext" => c.last_place.context.clone(),
        "lastexten" => c.last_place.exten.clone(),
        "channame" => c.name.to_string(),
        "device_name" => device_of(&c.name).to_owned(),
        "adsicpe" => "unknown".to_owned(),
        "userfield" => c.user_field.clone(),
        "appname" | "applicationname" => c.app.to_owned(),
        "appdata" => c.app_data.clone(),
        "transfercapability" => "SPEECH".to_owned(),
        "callgroup" => c.pickup.call.numbers(),
        "pickupgroup" => c.pickup.pickup.numbers(),
        "namedcallgroup" => c.pickup.call.names(),
        "namedpickupgroup" => c.pickup.pickup.names(),
        "caller_url" => {
            return Some(c.vars.get_name(&hidden(item)).unwrap_or_default().to_owned());
        }
        "secure_bridge_signaling" => kept_yes(c, call::SECURE_SIGNALING),
        "secure_bridge_media" => kept_yes(c, call::SECURE_MEDIA),
        "checkhangup" => u8::from(c.hangup.is_some()).to_string(),
        "max_forwards" => c.forwards.to_string(),
        // As lines of the log carry it.
        "callid" => format!("[C-{:08x}]", c.call_number),
        "onhold" => u8::from(c.held).to_string(),
        _ => return None,
    })
}

/// Formats as they are shown: `(ulaw|alaw)`.
fn formats(of: &base::FormatSet) -> String {
    let names: Vec<&str> = of.iter().map(|format| format.name()).collect();
    if names.is_empty() { "(nothing)".to_owned() } else { format!("({})", names.join("|")) }
}

/// A channel's name without what tells it from others of its device.
fn device_of(name: &str) -> &str {
    name.rsplit_once('-').map_or(name, |(device, _)| device)
}

/// `1` or nothing.
fn kept_yes(c: &Channel, name: &str) -> String {
    let value = c.vars.get_name(name).unwrap_or_default();
    if is_yes(value) { "1".to_owned() } else { String::new() }
}
fn is_yes(value: &str) -> bool {
    !matches!(value.trim().to_ascii_lowercase().as_str(), "" | "0" | "no" | "n" | "false" | "f" | "off")
}

/// Where an item that nothing else of the channel needs is kept; no dialplan can write that name.
fn hidden(item: &str) -> String {
    format!("CHANNEL({item})")
}

fn peer_name(call: &Call) -> Option<String> {
    call.chan.core(|core| {
        let id = call.chan.id();
        let other = *core.bridge_members(core.get(id)?.bridge?).iter().find(|member| **member != id)?;
        core.get(other).map(|c| c.name.to_string())
    })
}

pub(super) fn write(call: &Call, text: &str, value: &str) -> Read {
    let item = text.split(',').next().unwrap_or_default().trim().to_ascii_lowercase();
    if item == "accountcode" {
        return write_account(call, value);
    }
    if let Some(act) = item.strip_prefix("hangup_handler_") {
        return write_handlers(call, act, value);
    }
    let written = call.chan.with(|c| write_item(c, &item, value)).map_err(gone)?;
    match written {
        Some(result) => result,
        None if HIDDEN.contains(&item.as_str()) => {
            let name = hidden(&item);
            let _ =
                call.chan.with(|c| c.vars.set(dialplan::Var::named(&name), value, dialplan::Inherit::Always));
            Ok(())
        }
        None => tech_write(call, "CHANNEL", text, value).map_err(|_| unknown(&item)),
    }
}

/// Items that are kept and given back, and mean nothing else here.
const HIDDEN: &[&str] = &["caller_url"];

/// Longest name of a tenant, as in the field.
const TENANT_CHARS_MAX: usize = 63;

fn write_item(c: &mut Channel, item: &str, value: &str) -> Option<Read> {
    match item {
        "max_forwards" => c.forwards = value.trim().parse().ok()?,
        "language" => c.language = value.trim().to_owned(),
        "callgroup" | "pickupgroup" | "namedcallgroup" | "namedpickupgroup" => {
            let own = Rc::make_mut(&mut c.pickup);
            let groups = if item.ends_with("callgroup") { &mut own.call } else { &mut own.pickup };
            if item.starts_with("named") {
                groups.set_names(value);
            } else if let Err(part) = groups.set_numbers(value) {
                return Some(Err(Fault::new(format!("'{part}' is no group from 0 to 63"))));
            }
        }
        "parkinglot" => c.parking_lot = value.trim().to_owned(),
        "musicclass" => {
            c.music_class = value.trim().to_owned();
            c.music_chosen = !c.music_class.is_empty();
        }
        "tonezone" => c.tone_zone = value.trim().to_owned(),
        "tenantid" => {
            let kept: String = value.chars().take(TENANT_CHARS_MAX).collect();
            c.tenant = kept.into();
        }
        "peeraccount" => c.peer_account = value.to_owned(),
        "userfield" => c.user_field = value.to_owned(),
        "hangupsource" => c.hangup_by = value.into(),
        "amaflags" => match record::ama_flags(value) {
            Some(flags) => c.cdr.ama_flags = flags,
            None => return Some(Err(Fault::new(format!("'{value}' is no AMA flag")))),
        },
        // Kept with the channel, inherited by all that is called on its behalf, and obeyed by who places those calls.
        "secure_bridge_signaling" | "secure_bridge_media" => {
            let name = if item.ends_with("media") { call::SECURE_MEDIA } else { call::SECURE_SIGNALING };
            let value = if is_yes(value) { "1" } else { "0" };
            c.vars.set(dialplan::Var::named(name), value, dialplan::Inherit::Always);
        }
        "name" | "state" | "context" | "exten" | "priority" | "uniqueid" | "linkedid" | "peer"
        | "channeltype" => {
            return Some(Err(Fault::new("can only be read")));
        }
        "transfercapability" | "audioreadformat" | "audiowriteformat" | "trace" => {}
        _ => return None,
    }
    Some(Ok(()))
}

/// Pushes a hang-up handler, or takes the last one or all away and pushes another when one is named. Watchers hear of each.
fn write_handlers(call: &Call, act: &str, value: &str) -> Read {
    let change = |c: &mut Channel| {
        let kept = match act {
            "push" if c.hangup_handlers.len() >= HANGUP_HANDLERS_MAX => {
                return Err(Fault::new("the channel has as many hang-up handlers as it may"));
            }
            "push" => c.hangup_handlers.len(),
            "pop" => c.hangup_handlers.len().saturating_sub(1),
            "wipe" => 0,
            _ => return Err(unknown(&format!("hangup_handler_{act}"))),
        };
        let mut popped = c.hangup_handlers.split_off(kept);
        popped.reverse();
        let pushed = (act == "push" || !value.trim().is_empty()).then(|| qualified(c, value));
        c.hangup_handlers.extend(pushed.clone());
        Ok((popped, pushed))
    };
    let (popped, pushed) = call.chan.with(change).map_err(gone)??;
    let told = popped.into_iter().map(|handler| (HandlerChange::Pop, handler));
    for (change, handler) in told.chain(pushed.map(|handler| (HandlerChange::Push, handler))) {
        call.tell_handler(change, handler);
    }
    Ok(())
}

/// A hang-up handler with the context and extension it was pushed from, where it does not name its own.
fn qualified(c: &Channel, target: &str) -> String {
    let (place, args) = target.split_once('(').map_or((target, None), |(place, args)| (place, Some(args)));
    let mut words: Vec<&str> = place.split(',').map(str::trim).collect();
    if words.len() < 2 {
        words.insert(0, &c.location.exten);
    }
    if words.len() < 3 {
        words.insert(0, &c.location.context);
    }
    let place = words.join(",");
    args.map_or_else(|| place.clone(), |args| format!("{place}({args}"))
}

pub(super) fn write_account(call: &Call, value: &str) -> Read {
    let old = call.chan.with(|c| std::mem::replace(&mut c.account, value.to_owned())).map_err(gone)?;
    call.chan.core(|core| {
        call.settle_in(core);
        core.notice_of(call.chan.id(), |channel| Notice::NewAccountCode { channel, old });
    });
    Ok(())
}

pub(super) fn read_channels(call: &Call, pattern: &str, out: &mut String) -> Read {
    let matcher = match pattern.trim() {
        "" => None,
        text => Some(
            dialplan::ere::Matcher::new(text)
                .map_err(|_| Fault::new(format!("'{text}' is no regular expression")))?,
        ),
    };
    let names = call.chan.core(|core| {
        let wanted = |name: &str| matcher.as_ref().is_none_or(|regex| regex.is_match(name));
        core.channels().filter(|c| wanted(&c.name)).map(|c| c.name.to_string()).collect::<Vec<_>>()
    });
    out.push_str(&names.join(" "));
    Ok(())
}

pub(super) fn read_exists(call: &Call, name: &str, out: &mut String) -> Read {
    let found = call.chan.core(|core| core.by_name(name.trim()).is_some());
    out.push(if found { '1' } else { '0' });
    Ok(())
}

/// A handle on another channel.
fn other(call: &Call, id: ChannelId) -> Call {
    if id == call.chan.id() { call.clone() } else { call.beside(id) }
}

/// `IMPORT(channel,name)`: a variable or function of another channel.
pub(super) fn read_import(call: &Call, text: &str, out: &mut String) -> Read {
    let (channel, name) = text.split_once(',').ok_or(Fault::new("needs a channel and a variable"))?;
    if let Some(id) = call.chan.core(|core| core.by_name(channel.trim())) {
        read_of(&other(call, id), name.trim(), out);
    }
    Ok(())
}

/// `PARK_GET_CHANNEL(space[,lot])`: who is parked there; nothing when nobody is.
pub(super) fn read_parked(call: &Call, text: &str, out: &mut String) -> Read {
    let (space, lot) = text.split_once(',').unwrap_or((text, ""));
    let space: u32 = space.trim().parse().map_err(|_| Fault::new("needs the number of a parking space"))?;
    let lot = Some(lot.trim()).filter(|lot| !lot.is_empty()).unwrap_or("default");
    let parked = call.chan.core(|core| {
        let lot = core.parking.lot(lot).ok_or(Fault::new("there is no such parking lot"))?;
        let parked = lot.spaces.get(&space);
        Ok(parked.and_then(|parked| core.get(parked.channel)).map(|channel| channel.name.clone()))
    })?;
    out.push_str(parked.as_deref().unwrap_or_default());
    Ok(())
}

fn read_of(call: &Call, name: &str, out: &mut String) {
    let mut scope = Scope::new(call);
    if name.contains('(') {
        dialplan::template::read_call(&mut scope, name, out);
    } else {
        dialplan::template::read_named(&scope, name, out);
    }
}

/// The channel whose UNIQUEID is this one's LINKEDID, or this one.
fn master(call: &Call) -> Result<Call, Fault> {
    let linked = call.chan.with(|c| c.linkedid.clone()).map_err(gone)?;
    let id = call.chan.core(|core| core.channels().find(|c| c.uniqueid == linked).map(|c| c.id));
    Ok(other(call, id.unwrap_or(call.chan.id())))
}

pub(super) fn read_master(call: &Call, name: &str, out: &mut String) -> Read {
    read_of(&master(call)?, name.trim(), out);
    Ok(())
}

pub(super) fn write_master(call: &Call, name: &str, value: &str) -> Read {
    master(call)?.assign(name.trim(), value);
    Ok(())
}

pub(super) fn read_timeout(call: &Call, item: &str, out: &mut String) -> Read {
    let now = call.chan.now();
    let left = call
        .chan
        .with(|c| {
            Some(match kind(item)? {
                Kind::Digit => Duration::from_millis(u64::from(c.digit_timeout_ms)),
                Kind::Response => Duration::from_millis(u64::from(c.response_timeout_ms)),
                Kind::Absolute => c.absolute_deadline.map(|at| at - now).unwrap_or_default(),
            })
        })
        .map_err(gone)?
        .ok_or_else(|| unknown(item))?;
    if left.subsec_millis() == 0 && matches!(kind(item), Some(Kind::Absolute)) {
        out.push_str(&left.as_secs().to_string());
    } else {
        out.push_str(&format!("{}.{:03}", left.as_secs(), left.subsec_millis()));
    }
    Ok(())
}

pub(super) fn write_timeout(call: &Call, item: &str, value: &str) -> Read {
    let seconds = args::seconds(value).unwrap_or_default();
    let now = call.chan.now();
    let millis = u32::try_from(seconds.as_millis()).unwrap_or(u32::MAX);
    call.chan
        .with(|c| {
            match kind(item).ok_or_else(|| unknown(item))? {
                // 0 goes back to the field's defaults.
                Kind::Digit => c.digit_timeout_ms = if millis == 0 { 5_000 } else { millis },
                Kind::Response => c.response_timeout_ms = if millis == 0 { 10_000 } else { millis },
                Kind::Absolute => c.absolute_deadline = (millis != 0).then(|| now + seconds),
            }
            Ok(())
        })
        .map_err(gone)?
}

enum Kind {
    Digit,
    Response,
    Absolute,
}

fn kind(item: &str) -> Option<Kind> {
    match item.trim().bytes().next()?.to_ascii_lowercase() {
        b'd' => Some(Kind::Digit),
        b'r' => Some(Kind::Response),
        b'a' => Some(Kind::Absolute),
        _ => None,
    }
}
