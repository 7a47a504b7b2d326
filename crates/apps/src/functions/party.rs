//! CALLERID(), CONNECTEDLINE() and REDIRECTING(): who calls, who is talked to, who sent the call on.

use call::{Indication, Notice, PartyId, Presentation, Redirecting};
use dialplan::Fault;

use super::{Read, gone, unknown};
use crate::Call;
use crate::call_ctx::args;

/// One item of a party; `None` when there is no such item.
fn read_item(party: &PartyId, item: &str) -> Option<String> {
    let flag = |set: bool| u8::from(set).to_string();
    Some(match item {
        // Both parts, whatever there is.
        "all" => format!("\"{}\" <{}>", party.name(), party.number()),
        "name" => party.name().to_owned(),
        "num" | "number" => party.number().to_owned(),
        "name-valid" => flag(party.name.is_some()),
        "num-valid" => flag(party.number.is_some()),
        "name-charset" => "utf8".to_owned(),
        "num-plan" | "ton" => "0".to_owned(),
        "name-pres" => party.name_presentation.name().to_owned(),
        "num-pres" => party.number_presentation.name().to_owned(),
        "pres" => {
            let hidden =
                [party.number_presentation, party.name_presentation].into_iter().find(|p| p.is_hidden());
            hidden.unwrap_or(party.number_presentation).name().to_owned()
        }
        "tag" => party.tag.clone(),
        "subaddr" | "subaddr-type" | "subaddr-odd" => String::new(),
        "subaddr-valid" => flag(false),
        _ => return None,
    })
}

fn write_item(party: &mut PartyId, item: &str, value: &str) -> Result<(), Fault> {
    let presentation =
        || Presentation::parse(value).ok_or_else(|| Fault::new(format!("'{value}' is no presentation")));
    let set = |value: &str| Some(value.trim().to_owned());
    match item {
        "all" => {
            let read = PartyId::parse(value);
            party.name = read.name;
            party.number = read.number;
        }
        "name" => party.name = set(value),
        "num" | "number" => party.number = set(value),
        "name-valid" => keep(&mut party.name, value),
        "num-valid" => keep(&mut party.number, value),
        "name-pres" => party.name_presentation = presentation()?,
        "num-pres" => party.number_presentation = presentation()?,
        "pres" => {
            party.name_presentation = presentation()?;
            party.number_presentation = party.name_presentation;
        }
        "tag" => party.tag = value.to_owned(),
        "name-charset" | "num-plan" | "ton" | "subaddr" | "subaddr-valid" | "subaddr-type"
        | "subaddr-odd" => {}
        _ => return Err(unknown(item)),
    }
    Ok(())
}

/// `…-valid=0` takes the text away; `1` makes it at least empty.
fn keep(text: &mut Option<String>, value: &str) {
    if args::is_true(value) {
        text.get_or_insert_default();
    } else {
        *text = None;
    }
}

pub(super) fn read_caller(call: &Call, text: &str, out: &mut String) -> Read {
    let (item, given) = text.split_once(',').map_or((text, None), |(item, cid)| (item, Some(cid)));
    let item = item.trim().to_ascii_lowercase();
    let answer = call.chan.with(|c| {
        if let Some(cid) = given {
            return read_item(&PartyId::parse(cid), &item);
        }
        Some(match item.as_str() {
            "dnid" | "dnid-num" => c.dialed.clone().unwrap_or_default(),
            "rdnis" => c.redirecting.from.number().to_owned(),
            "ani" | "ani-num" => c.ani.clone().unwrap_or_default(),
            "ani-all" => format!("\"\" <{}>", c.ani.as_deref().unwrap_or_default()),
            "ani2" => format!("{:02}", c.ani2),
            "tns" | "dnid-num-plan" | "ani-num-plan" => "0".to_owned(),
            "ani-num-valid" => u8::from(c.ani.is_some()).to_string(),
            "ani-num-pres" | "ani-name-pres" => Presentation::default().name().to_owned(),
            "ani-name" | "ani-tag" => String::new(),
            other => return read_item(&c.caller, other.strip_prefix("priv-").unwrap_or(other)),
        })
    });
    out.push_str(&answer.map_err(gone)?.ok_or_else(|| unknown(&item))?);
    Ok(())
}

pub(super) fn write_caller(call: &Call, text: &str, value: &str) -> Read {
    let item = args::nth(&args::split(text), 0).to_ascii_lowercase();
    call.chan
        .with(|c| {
            match item.as_str() {
                "dnid" | "dnid-num" => c.dialed = Some(value.trim().to_owned()),
                "rdnis" => c.redirecting.from.number = Some(value.trim().to_owned()),
                "ani" | "ani-num" | "ani-all" => c.ani = PartyId::parse(value).number,
                // What is no number is none.
                "ani2" => c.ani2 = value.trim().parse().unwrap_or(0),
                "tns" | "dnid-num-plan" | "ani-num-plan" | "ani-name" | "ani-tag" | "ani-num-pres"
                | "ani-name-pres" => {}
                other => {
                    write_item(&mut c.caller, other.strip_prefix("priv-").unwrap_or(other), value)?;
                    if other == "all" {
                        c.ani.clone_from(&c.caller.number);
                    }
                }
            }
            Ok(())
        })
        .map_err(gone)??;
    tell(call, Notice::NewCallerId);
    Ok(())
}

pub(super) fn read_connected(call: &Call, text: &str, out: &mut String) -> Read {
    let item = args::nth(&args::split(text), 0).to_ascii_lowercase();
    let answer = call.chan.with(|c| read_item(&c.connected, item.strip_prefix("priv-").unwrap_or(&item)));
    out.push_str(&answer.map_err(gone)?.ok_or_else(|| unknown(&item))?);
    Ok(())
}

pub(super) fn write_connected(call: &Call, text: &str, value: &str) -> Read {
    let parts = args::split(text);
    let item = args::nth(&parts, 0).to_ascii_lowercase();
    let party = call
        .chan
        .with(|c| {
            write_item(&mut c.connected, item.strip_prefix("priv-").unwrap_or(&item), value)?;
            Ok::<_, Fault>(c.connected.clone())
        })
        .map_err(gone)??;
    // `i`: more items follow, tell the other side only after the last.
    if !args::nth(&parts, 1).contains('i') && !item.starts_with("priv-") {
        call.chan.indicate(&Indication::ConnectedLine(party));
        tell(call, Notice::NewConnectedLine);
    }
    Ok(())
}

fn redirecting_party<'a>(
    redirecting: &'a mut Redirecting,
    item: &'a str,
) -> Option<(&'a mut PartyId, &'a str)> {
    let item = item.strip_prefix("priv-").unwrap_or(item);
    let (party, rest) = item.split_once('-')?;
    Some(match party {
        "orig" => (&mut redirecting.orig, rest),
        "from" => (&mut redirecting.from, rest),
        "to" => (&mut redirecting.to, rest),
        _ => return None,
    })
}

pub(super) fn read_redirecting(call: &Call, text: &str, out: &mut String) -> Read {
    let item = args::nth(&args::split(text), 0).to_ascii_lowercase();
    let answer = call.chan.with(|c| match item.as_str() {
        "count" => Some(c.redirecting.count.to_string()),
        "reason" | "orig-reason" if c.redirecting.reason.is_empty() => Some("unknown".to_owned()),
        "reason" | "orig-reason" => Some(c.redirecting.reason.clone()),
        other => {
            redirecting_party(&mut c.redirecting, other).and_then(|(party, item)| read_item(party, item))
        }
    });
    out.push_str(&answer.map_err(gone)?.ok_or_else(|| unknown(&item))?);
    Ok(())
}

/// Reasons a call is redirected for, in the dialplan's words.
const REASONS: &[&str] = &[
    "unknown",
    "cfb",
    "cfnr",
    "unavailable",
    "time_of_day",
    "dnd",
    "deflection",
    "follow_me",
    "out_of_order",
    "away",
    "cf_dte",
    "cfu",
    "send_to_vm",
];

pub(super) fn write_redirecting(call: &Call, text: &str, value: &str) -> Read {
    let parts = args::split(text);
    let item = args::nth(&parts, 0).to_ascii_lowercase();
    call.chan
        .with(|c| match item.as_str() {
            "count" => {
                c.redirecting.count =
                    value.trim().parse().map_err(|_| Fault::new(format!("'{value}' is no count")))?;
                Ok(())
            }
            "reason" | "orig-reason" => {
                let reason = value.trim().to_ascii_lowercase();
                if !REASONS.contains(&reason.as_str()) {
                    return Err(Fault::new(format!("'{value}' is no reason; one of {}", REASONS.join(", "))));
                }
                c.redirecting.reason = reason;
                Ok(())
            }
            other => match redirecting_party(&mut c.redirecting, other) {
                Some((party, item)) => write_item(party, item, value),
                None => Err(unknown(other)),
            },
        })
        .map_err(gone)??;
    // `i`: more items follow, tell the caller's side only after the last.
    if !args::nth(&parts, 1).contains('i') && !item.starts_with("priv-") {
        let redirecting = call.chan.with(|c| c.redirecting.clone()).map_err(gone)?;
        call.chan.indicate(&Indication::Redirecting(Box::new(redirecting)));
    }
    Ok(())
}

fn tell(call: &Call, notice: impl FnOnce(call::Snapshot) -> Notice) {
    call.chan.core(|core| {
        call.settle_in(core);
        core.notice_of(call.chan.id(), notice);
    });
}
