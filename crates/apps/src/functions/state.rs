//! States of devices and extensions, how dialled channels ended, and what else a running dialplan asks about itself.

use call::{Channel, DeviceState};
use dialplan::Fault;

use super::{Read, gone, unknown};
use crate::Call;
use crate::call_ctx::args;
use crate::{hints, presence};

pub(super) fn read_device(call: &Call, device: &str, out: &mut String) -> Read {
    out.push_str(hints::device_state(call.chan.shard(), device.trim()).name());
    Ok(())
}

/// `Set(DEVICE_STATE(Custom:name)=INUSE)`: only custom devices can be told what they are.
pub(super) fn write_device(call: &Call, device: &str, value: &str) -> Read {
    let Some(name) = hints::custom_name(device.trim()) else {
        return Err(Fault::new("only Custom: devices can be set"));
    };
    let state =
        DeviceState::parse(value).ok_or_else(|| Fault::new(format!("'{value}' is no device state")))?;
    call.chan.core(|core| core.set_custom_device(name, state));
    Ok(())
}

/// `PRESENCE_STATE(provider,value|subtype|message[,e])`: with `e` subtype and message are Base64.
pub(super) fn read_presence(call: &Call, text: &str, out: &mut String) -> Read {
    let parts = args::split(text);
    let said = call.chan.core(|core| presence::state(core, args::nth(&parts, 0)));
    let said = said.ok_or(Fault::new("there is no provider but CustomPresence:name"))?;
    let coded = args::nth(&parts, 2).contains('e');
    let text = match args::nth(&parts, 1).trim() {
        "value" => said.state.name().to_owned(),
        "subtype" => said.subtype,
        "message" => said.message,
        other => return Err(unknown(other)),
    };
    let coded = coded && args::nth(&parts, 1).trim() != "value";
    out.push_str(&if coded { dialplan::functions::base64_of(&text) } else { text });
    Ok(())
}

/// `Set(PRESENCE_STATE(CustomPresence:name)=state[,subtype[,message[,e]]])`.
pub(super) fn write_presence(call: &Call, provider: &str, value: &str) -> Read {
    if presence::custom_name(provider).is_none() {
        return Err(Fault::new("only CustomPresence: providers can be set"));
    }
    let said = presence::PresenceState::parse(value).map_err(Fault::new)?;
    let kept = call.chan.core(|core| presence::set(core, provider, &said));
    kept.then_some(()).ok_or(Fault::new("the database did not take it"))
}

/// `exten@context`, the context being this one when it is not named.
fn exten_at(call: &Call, text: &str) -> (String, String) {
    let (exten, context) = text.split_once('@').unwrap_or((text, ""));
    let context = if context.trim().is_empty() { call.context() } else { context.trim().to_owned() };
    (exten.trim().to_owned(), context)
}

pub(super) fn read_extension(call: &Call, text: &str, out: &mut String) -> Read {
    let (exten, context) = exten_at(call, text);
    let hint = call.hint_of(&context, &exten);
    let state = hint.map(|(devices, _)| hints::hint_state(call.chan.shard(), &devices)).unwrap_or_default();
    out.push_str(state.name());
    Ok(())
}

/// `HINT(exten[@context][,n])`: the devices, or with `n` the name.
pub(super) fn read_hint(call: &Call, text: &str, out: &mut String) -> Read {
    let parts = args::split(text);
    let (exten, context) = exten_at(call, args::nth(&parts, 0));
    if let Some((devices, name)) = call.hint_of(&context, &exten) {
        match args::nth(&parts, 1).contains('n') {
            true => out.push_str(&name),
            false => out.push_str(&crate::hints::hint_text(&devices, &name)),
        }
    }
    Ok(())
}

/// `HANGUPCAUSE(channel,tech|ast)`.
pub(super) fn read_hangup_cause(call: &Call, text: &str, out: &mut String) -> Read {
    let parts = args::split(text);
    let (channel, kind) = (args::nth(&parts, 0), args::nth(&parts, 1));
    let answer = call
        .chan
        .with(|c| {
            let known = c.hangup_causes.iter().find(|(name, ..)| name == channel)?;
            match kind {
                "ast" => Some(known.1.text().to_owned()),
                "tech" if known.2.is_empty() => Some(known.1.text().to_owned()),
                "tech" => Some(known.2.clone()),
                _ => None,
            }
        })
        .map_err(gone)?;
    if !matches!(kind, "ast" | "tech") {
        return Err(Fault::new("needs a channel and one of 'tech' and 'ast'"));
    }
    out.push_str(&answer.ok_or_else(|| Fault::new(format!("nothing is known of channel '{channel}'")))?);
    Ok(())
}

pub(super) fn read_hangup_keys(call: &Call, out: &mut String) -> Read {
    let names: Vec<String> =
        call.chan.with(|c| c.hangup_causes.iter().map(|(name, ..)| name.clone()).collect()).map_err(gone)?;
    out.push_str(&names.join(","));
    Ok(())
}

pub(super) fn read_exception(call: &Call, item: &str, out: &mut String) -> Read {
    let exception = call.run.exception.borrow();
    let Some(exception) = &*exception else { return Ok(()) };
    match item.trim().to_ascii_lowercase().as_str() {
        "reason" => out.push_str(&exception.reason),
        "context" => out.push_str(&exception.context),
        "exten" => out.push_str(&exception.exten),
        "priority" => out.push_str(&exception.priority.to_string()),
        other => return Err(unknown(other)),
    }
    Ok(())
}

/// `STACK_PEEK(n,c|e|p|l)`: where the nth caller of Gosub goes on.
pub(super) fn read_stack_peek(call: &Call, text: &str, out: &mut String) -> Read {
    let parts = args::split(text);
    let depth: usize = args::nth(&parts, 0).parse().map_err(|_| Fault::new("needs a depth"))?;
    let stack = call.run.stack.borrow();
    let frame = depth.checked_sub(1).and_then(|up| stack.iter().rev().nth(up));
    let place = frame
        .and_then(|frame| frame.back.as_ref())
        .ok_or_else(|| Fault::new("the stack is not that deep"))?;
    match args::nth(&parts, 1) {
        "c" => out.push_str(place.context()),
        "e" => out.push_str(place.exten()),
        "p" => out.push_str(&place.priority().to_string()),
        _ => out.push_str(&format!("{},{},{}", place.context(), place.exten(), place.priority())),
    }
    Ok(())
}

/// `LOCAL_PEEK(0,name)` is `LOCAL(name)`; callers' frames are not kept apart once hidden.
pub(super) fn read_local_peek(call: &Call, text: &str, out: &mut String) -> Read {
    let (depth, name) = text.split_once(',').ok_or(Fault::new("needs a depth and a name"))?;
    if depth.trim() != "0" {
        return Err(Fault::new("only depth 0 is built in"));
    }
    out.push_str(&call.get(name.trim()).unwrap_or_default());
    Ok(())
}

/// Whether the caller's number or name stands in the database's family `blacklist`.
pub(super) fn read_blacklist(call: &Call, out: &mut String) -> Read {
    let (number, name) =
        call.chan.with(|c| (c.caller.number.clone(), c.caller.name.clone())).map_err(gone)?;
    let listed = call.chan.core(|core| {
        [number, name].into_iter().flatten().any(|key| core.services.db.get("blacklist", &key).is_some())
    });
    out.push(if listed { '1' } else { '0' });
    Ok(())
}

/// `MIXMONITOR(id,filename)`: nothing when no such recording runs.
pub(super) fn read_mix_monitor(call: &Call, text: &str, out: &mut String) -> Read {
    let parts = args::split(text);
    if args::nth(&parts, 1).trim() != "filename" {
        return Err(Fault::new("needs an id and filename"));
    }
    let file = |channel: &mut Channel| crate::monitor::file_of(channel, args::nth(&parts, 0).trim());
    out.extend(call.chan.with(file).map_err(gone)?);
    Ok(())
}

/// `IFMODULE(app_dial.so)`: whether it is built in and not switched off.
pub(super) fn read_module(call: &Call, module: &str, out: &mut String) -> Read {
    let module = module.trim().trim_end_matches(".so");
    let built_in = crate::table::applications().iter().any(|row| row.module == module);
    let enabled = call.chan.core(|core| core.settings.has_module(module));
    out.push(if built_in && enabled { '1' } else { '0' });
    Ok(())
}

/// The version of Asterisk whose dialplans are understood, as far as dialplans compare it: what `VERSION()` reads.
pub const SPEAKS: &str = "23.4.1";

pub(super) fn read_version(item: &str, out: &mut String) -> Read {
    match item.trim() {
        "ASTERISK_VERSION_NUM" => out.push_str("230401"),
        "" => out.push_str(SPEAKS),
        _ => {}
    }
    Ok(())
}
