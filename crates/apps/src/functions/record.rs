//! CDR() and CDR_PROP(): the call's record.

use call::{AmaFlags, Cdr, Disposition};
use dialplan::Fault;

use super::{Read, gone, unknown};
use crate::Call;
use crate::call_ctx::args;

/// Most variables of its own that one record takes, and the longest name and value, bytes: what a sink's row can hold.
const CUSTOM_MAX: usize = 64;
const CUSTOM_BYTES_MAX: usize = 4096;

/// `CDR(field[,options])` of a running call: options `u` raw value, `f` seconds with microseconds.
pub(super) fn read(call: &Call, text: &str, out: &mut String) -> Read {
    if !call.run.ended.get() {
        call.settle();
    }
    let record = call.chan.core(|core| core.current_cdr(call.chan.id()));
    let record = record.ok_or_else(|| gone(call::Stop::Hangup))?;
    let zone = |at| call.chan.core(|core| core.services.wall.offset(at, "").seconds);
    field(&record, false, text, &zone, out);
    Ok(())
}

/// Appends a field of a record as `CDR(field[,options])` gives it; one that has not `ended` has no time of its end.
/// `zone` is the offset of local time from UTC at a time, seconds.
pub(crate) fn field(record: &Cdr, ended: bool, text: &str, zone: &dyn Fn(i64) -> i32, out: &mut String) {
    let parts = args::split(text);
    let name = args::nth(&parts, 0).to_ascii_lowercase();
    let options = args::nth(&parts, 1);
    let (raw, fine) = (options.contains('u'), options.contains('f'));
    let stamp = |wall: Option<i64>| match wall {
        None if raw => "0.000000".to_owned(),
        None => String::new(),
        Some(wall) if raw => format!("{}.{:06}", wall.div_euclid(1_000_000), wall.rem_euclid(1_000_000)),
        Some(wall) => date(wall, zone),
    };
    let length = |exact: core::time::Duration, whole: u64| match fine {
        true => format!("{}.{:06}", exact.as_secs(), exact.subsec_micros()),
        false => whole.to_string(),
    };
    let value = match name.as_str() {
        "clid" => &record.clid,
        "src" => &record.src,
        "dst" => &record.dst,
        "dcontext" => &record.dcontext,
        "channel" => &record.channel,
        "dstchannel" => &record.dst_channel,
        "lastapp" => &record.last_app,
        "lastdata" => &record.last_data,
        "start" => &stamp(Some(record.start)),
        "answer" => &stamp(record.answer),
        "end" => &stamp(ended.then_some(record.end)),
        "duration" => &length(record.duration, record.duration.as_secs()),
        "billsec" => &length(record.billsec, record.billed),
        "disposition" if raw => raw_disposition(record.disposition),
        "disposition" => record.disposition.name(),
        "amaflags" if raw => &(record.ama_flags as u8).to_string(),
        "amaflags" => record.ama_flags.name(),
        "accountcode" => &record.account,
        "peeraccount" => &record.peer_account,
        "uniqueid" => &record.uniqueid,
        "linkedid" => &record.linkedid,
        "tenantid" => &record.tenant,
        "peertenantid" => &record.peer_tenant,
        "userfield" => &record.user_field,
        "sequence" => &record.sequence.to_string(),
        other => {
            let own = record.custom.iter().find(|(name, _)| name.eq_ignore_ascii_case(other));
            own.map_or("", |(_, value)| value)
        }
    };
    out.push_str(value);
}

/// A time of a record, microseconds since 1970, as people read it.
pub fn date(wall: i64, zone: &dyn Fn(i64) -> i32) -> String {
    let seconds = wall.div_euclid(1_000_000);
    let t = dialplan::zone::Civil::at(seconds, zone(seconds));
    format!("{:04}-{:02}-{:02} {:02}:{:02}:{:02}", t.year, t.month, t.day, t.hour, t.minute, t.second)
}

fn raw_disposition(disposition: Disposition) -> &'static str {
    match disposition {
        Disposition::NoAnswer | Disposition::Cancel => "0",
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
    call.settle();
    if key == "accountcode" {
        return super::channel::write_account(call, value);
    }
    call.chan
        .with(|c| {
            match key.as_str() {
                "peeraccount" => c.cdr.set_peer_account(value),
                "userfield" => c.cdr.set_user_field(value),
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
                    return c
                        .cdr
                        .set_custom(&field, value, CUSTOM_MAX)
                        .ok_or(Fault::new("the record holds as many variables as it may"));
                }
            }
            Ok(())
        })
        .map_err(gone)?
}

/// `CDR_PROP(disable)=1` switches this channel's records off until it is 0 again; `CDR_PROP(party_a)=1` makes it party A of
/// conversations in which neither was dialled.
pub(super) fn write_prop(call: &Call, text: &str, value: &str) -> Read {
    let item = text.trim().to_ascii_lowercase();
    match item.as_str() {
        "disable" => call.chan.with(|c| c.cdr.disabled = args::is_true(value)).map_err(gone),
        "party_a" => call.chan.with(|c| c.cdr.is_party_a = args::is_true(value)).map_err(gone),
        _ => Err(unknown(&item)),
    }
}
