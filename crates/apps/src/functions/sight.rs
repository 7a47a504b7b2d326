//! What else a dialplan asks of this machine, and does to channels: SYSINFO, EXPORT, MUTEAUDIO, HOLD_INTERCEPT, SAYFILES,
//! RECORDING_INFO.

use dialplan::{Fault, Inherit, Var};

use super::{Read, gone, unknown};
use crate::Call;
use crate::call_ctx::args;
use crate::say;

/// Most bytes of a file of the kernel that are looked at.
const KERNEL_FILE_MAX: usize = 16 * 1024;

fn kernel_file(call: &Call, name: &str) -> Result<String, Fault> {
    let path = format!("/proc/{name}");
    let text = call.chan.core(|core| core.services.outside.file_text(&path, KERNEL_FILE_MAX));
    text.ok_or_else(|| Fault::new(format!("{path} cannot be read")))
}

/// Kilobytes after a name in `/proc/meminfo`.
fn memory(call: &Call, name: &str) -> Result<String, Fault> {
    let text = kernel_file(call, "meminfo")?;
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    let number = line.and_then(|line| line.split_whitespace().next());
    number.map(str::to_owned).ok_or_else(|| Fault::new(format!("/proc/meminfo has no {name}")))
}

/// `SYSINFO(parameter)`.
pub(super) fn read_system(call: &Call, item: &str, out: &mut String) -> Read {
    let word = |file: &str, at: usize| {
        let text = kernel_file(call, file)?;
        let word = text.split_whitespace().nth(at).map(str::to_owned);
        word.ok_or_else(|| Fault::new(format!("/proc/{file} is not understood")))
    };
    let value = match item.trim().to_ascii_lowercase().as_str() {
        "loadavg" => word("loadavg", 0)?,
        "numcalls" => call.chan.core(|core| core.call_count()).to_string(),
        "uptime" => {
            let seconds = word("uptime", 0)?;
            let seconds: f64 = seconds.parse().map_err(|_| Fault::new("/proc/uptime is not understood"))?;
            (seconds as u64 / 3600).to_string()
        }
        "totalram" => memory(call, "MemTotal")?,
        "freeram" => memory(call, "MemFree")?,
        "bufferram" => memory(call, "Buffers")?,
        "totalswap" => memory(call, "SwapTotal")?,
        "freeswap" => memory(call, "SwapFree")?,
        // "running/all".
        "numprocs" => word("loadavg", 3)?.split('/').nth(1).unwrap_or_default().to_owned(),
        other => return Err(unknown(other)),
    };
    out.push_str(&value);
    Ok(())
}

/// `EXPORT(channel,var)=value`.
pub(super) fn write_export(call: &Call, text: &str, value: &str) -> Read {
    let (channel, name) = text.split_once(',').ok_or(Fault::new("needs a channel and a variable"))?;
    let (channel, name) = (channel.trim(), name.trim());
    let (inherit, name) = Inherit::strip(name);
    if name.is_empty() {
        return Err(Fault::new("needs a channel and a variable"));
    }
    let other = call.chan.core(|core| {
        let by_id = || core.channels().find(|other| &*other.uniqueid == channel).map(|other| other.id);
        core.by_name(channel).or_else(by_id)
    });
    let other = other.ok_or_else(|| Fault::new(format!("there is no channel '{channel}'")))?;
    call.beside(other).set_var(Var::named(name), value, inherit);
    Ok(())
}

fn on_or_off(value: &str) -> Result<bool, Fault> {
    match value.trim().to_ascii_lowercase().as_str() {
        "on" | "yes" | "true" | "1" => Ok(true),
        "off" | "no" | "false" | "0" => Ok(false),
        other => Err(Fault::new(format!("'{other}' is neither on nor off"))),
    }
}

/// `MUTEAUDIO(in|out|all)=on|off`.
pub(super) fn write_mute(call: &Call, direction: &str, value: &str) -> Read {
    let on = Some(on_or_off(value)?);
    let (heard, sent) = match direction.trim().to_ascii_lowercase().as_str() {
        "in" => (on, None),
        "out" => (None, on),
        "all" => (on, on),
        other => return Err(unknown(other)),
    };
    let done = call.chan.core(|core| core.mute(call.chan.id(), heard, sent));
    if done { Ok(()) } else { Err(Fault::new("the channel has no sound")) }
}

/// `HOLD_INTERCEPT(set|remove)=`.
pub(super) fn write_hold(call: &Call, act: &str) -> Read {
    let on = match act.trim().to_ascii_lowercase().as_str() {
        "set" => true,
        "remove" => false,
        other => return Err(unknown(other)),
    };
    call.chan.with(|c| c.keeps_holds = on).map_err(gone)
}

/// `SAYFILES(value[,type])`.
pub(super) fn read_files(call: &Call, text: &str, out: &mut String) -> Read {
    let parts = args::split(text);
    let (value, kind) = (args::nth(&parts, 0), args::nth(&parts, 1));
    if value.is_empty() {
        return Err(Fault::new("needs a value"));
    }
    let tongue = say::tongue_of(&call.chan);
    let number =
        || say::sayable(value).ok_or_else(|| Fault::new(format!("'{value}' is no number that can be said")));
    let files = match kind.to_ascii_lowercase().as_str() {
        "" | "alpha" => say::spelled(value),
        "digits" => say::digits(value),
        "phonetic" => say::phonetic(value),
        "number" => say::number(tongue, number()?, say::Gender::Plain),
        "ordinal" => say::ordinal(tongue, number()?, say::Gender::Plain),
        "money" => {
            say::money(value).ok_or_else(|| Fault::new(format!("'{value}' is no amount of dollars")))?
        }
        other => return Err(unknown(other)),
    };
    out.push_str(&files.join("&"));
    Ok(())
}

/// `RECORDING_INFO(duration)`.
pub(super) fn read_recording(call: &Call, item: &str, out: &mut String) -> Read {
    match item.trim().to_ascii_lowercase().as_str() {
        "duration" => {
            let last = call.chan.with(|c| c.last_recording).map_err(gone)?;
            let last = last.ok_or(Fault::new("nothing was recorded on this channel"))?;
            out.push_str(&last.as_millis().to_string());
            Ok(())
        }
        other => Err(unknown(other)),
    }
}
