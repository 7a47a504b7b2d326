//! CDR() and CDR_PROP(): the call's record.

use call::{AmaFlags, Channel, Disposition};
use dialplan::Fault;

use super::{Read, gone, unknown};
use crate::Call;
use crate::call_ctx::args;

/// Most variables of its own that one record takes, and the longest name and value, bytes: what a sink's row can hold.
const CUSTOM_MAX: usize = 64;
const CUSTOM_BYTES_MAX: usize = 4096;

/// `CDR(field[,options])`: options `u` raw value, `f` seconds with microseconds.
pub(super) fn read(call: &Call, text: &str, out: &mut String) -> Read {
    let parts = args::split(text);
    let field = args::nth(&parts, 0).to_ascii_lowercase();
    let options = args::nth(&parts, 1);
    let (raw, fine) = (options.contains('u'), options.contains('f'));
    call.settle();
    let offset = |call: &Call, wall: i64| {
        call.chan.core(|core| core.services.wall.offset(wall.div_euclid(1_000_000), "").seconds)
    };
    let stamp = |wall: Option<i64>| match wall {
        None if raw => "0.000000".to_owned(),
        None => String::new(),
        Some(wall) if raw => format!("{}.{:06}", wall.div_euclid(1_000_000), wall.rem_euclid(1_000_000)),
        Some(wall) => {
            let t = dialplan::zone::Civil::at(wall.div_euclid(1_000_000), offset(call, wall));
            format!("{:04}-{:02}-{:02} {:02}:{:02}:{:02}", t.year, t.month, t.day, t.hour, t.minute, t.second)
        }
    };
    let length = |d: core::time::Duration| match fine {
        true => format!("{}.{:06}", d.as_secs(), d.subsec_micros()),
        false => d.as_secs().to_string(),
    };
    let now = call.chan.now();
    let start = |c: &Channel| c.cdr.start.unwrap_or((c.created, c.created_wall));
    let answer = call.chan.with(|c| {
        let (dst, dcontext) =
            c.cdr.dialed.clone().unwrap_or_else(|| (c.location.exten.clone(), c.location.context.clone()));
        Ok(match field.as_str() {
            "clid" => c.caller.all(),
            "src" => c.caller.number().to_owned(),
            "dst" => dst,
            "dcontext" => dcontext,
            "channel" => c.name.to_string(),
            "dstchannel" => c.cdr.dst_channel.clone(),
            "lastapp" => c.cdr.last_app.to_owned(),
            "lastdata" => c.cdr.last_data.clone(),
            "start" => return Err(Some(start(c).1)),
            "answer" => return Err(c.cdr.answer.map(|(_, wall)| wall)),
            "end" => return Err(None),
            "duration" => length(now.since(start(c).0)),
            "billsec" => length(c.cdr.answer.map(|(at, _)| now.since(at)).unwrap_or_default()),
            "disposition" if raw => raw_disposition(c.cdr.disposition).to_owned(),
            "disposition" => c.cdr.disposition.name().to_owned(),
            "amaflags" if raw => (c.cdr.ama_flags as u8).to_string(),
            "amaflags" => c.cdr.ama_flags.name().to_owned(),
            "accountcode" => c.cdr.account.clone().unwrap_or_else(|| c.account.clone()),
            "peeraccount" => c.cdr.peer_account.clone(),
            "uniqueid" => c.uniqueid.to_string(),
            "linkedid" => c.linkedid.to_string(),
            "userfield" => c.cdr.user_field.clone(),
            "sequence" => c.cdr.written.to_string(),
            other => {
                let own = c.cdr.custom.iter().find(|(name, _)| name.eq_ignore_ascii_case(other));
                own.map(|(_, value)| value.clone()).unwrap_or_default()
            }
        })
    });
    match answer.map_err(gone)? {
        Ok(text) => out.push_str(&text),
        Err(wall) => out.push_str(&stamp(wall)),
    }
    Ok(())
}

fn raw_disposition(disposition: Disposition) -> &'static str {
    match disposition {
        Disposition::NoAnswer => "0",
        Disposition::Failed => "2",
        Disposition::Busy => "4",
        Disposition::Answered => "8",
        Disposition::Congestion => "16",
    }
}

/// The AMA flags of a word or a number.
pub(super) fn ama_flags(value: &str) -> Option<AmaFlags> {
    [AmaFlags::Omit, AmaFlags::Billing, AmaFlags::Documentation].into_iter().find(|flags| {
        flags.name().eq_ignore_ascii_case(value.trim()) || (*flags as u8).to_string() == value.trim()
    })
}

pub(super) fn write(call: &Call, text: &str, value: &str) -> Read {
    let field = args::nth(&args::split(text), 0).to_owned();
    let key = field.to_ascii_lowercase();
    call.chan
        .with(|c| {
            match key.as_str() {
                "accountcode" => c.cdr.account = Some(value.to_owned()),
                "peeraccount" => c.cdr.peer_account = value.to_owned(),
                "userfield" => c.cdr.user_field = value.to_owned(),
                "amaflags" => {
                    c.cdr.ama_flags =
                        ama_flags(value).ok_or_else(|| Fault::new(format!("'{value}' is no AMA flag")))?;
                }
                "clid" | "src" | "dst" | "dcontext" | "channel" | "dstchannel" | "lastapp" | "lastdata"
                | "start" | "answer" | "end" | "duration" | "billsec" | "disposition" | "uniqueid"
                | "linkedid" | "sequence" => return Err(Fault::new(format!("'{field}' can only be read"))),
                _ => {
                    if field.len() + value.len() > CUSTOM_BYTES_MAX {
                        return Err(Fault::new("is longer than a record takes"));
                    }
                    let full = c.cdr.custom.len() >= CUSTOM_MAX;
                    match c.cdr.custom.iter_mut().find(|(name, _)| *name == field) {
                        Some((_, known)) => *known = value.to_owned(),
                        None if full => {
                            return Err(Fault::new("the record holds as many variables as it may"));
                        }
                        None => c.cdr.custom.push((field.clone(), value.to_owned())),
                    }
                }
            }
            Ok(())
        })
        .map_err(gone)?
}

/// `CDR_PROP(disable)=1` switches this channel's record off; `CDR_PROP(party_a)` is taken and changes nothing here,
/// because party A is always who called.
pub(super) fn write_prop(call: &Call, text: &str, value: &str) -> Read {
    let item = text.trim().to_ascii_lowercase();
    match item.as_str() {
        "disable" => call.chan.with(|c| c.cdr.disabled = args::is_true(value)).map_err(gone),
        "party_a" => Ok(()),
        _ => Err(unknown(&item)),
    }
}
