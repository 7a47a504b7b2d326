//! GROUP() and its counts: channels that the dialplan puts together.

use call::conference::Member;
use dialplan::Fault;

use super::{Read, gone, unknown};
use crate::Call;

/// Categories one channel may be counted in.
const GROUPS_MAX: usize = 64;

/// `group@category`, either part may be missing.
fn parts(text: &str) -> (&str, &str) {
    let (group, category) = text.split_once('@').unwrap_or((text, ""));
    (group.trim(), category.trim())
}

pub(super) fn read_group(call: &Call, category: &str, out: &mut String) -> Read {
    let category = category.trim();
    call.chan
        .with(|c| {
            if let Some((_, group)) = c.groups.iter().find(|(known, _)| known.eq_ignore_ascii_case(category))
            {
                out.push_str(group);
            }
        })
        .map_err(gone)
}

pub(super) fn write_group(call: &Call, category: &str, value: &str) -> Read {
    let (group, of_value) = parts(value);
    let category = if category.trim().is_empty() { of_value } else { category.trim() };
    call.chan
        .with(|c| {
            c.groups.retain(|(known, _)| !known.eq_ignore_ascii_case(category));
            if group.is_empty() {
                return Ok(());
            }
            if c.groups.len() >= GROUPS_MAX {
                return Err(Fault::new("the channel is in as many groups as it may be"));
            }
            c.groups.push((category.to_owned(), group.to_owned()));
            Ok(())
        })
        .map_err(gone)?
}

/// `CONFBRIDGE_INFO(type,conference)`; one that nobody is in has none of anything.
pub(super) fn read_conference(call: &Call, text: &str, out: &mut String) -> Read {
    let (item, name) = text.split_once(',').ok_or(Fault::new("needs a type and a conference"))?;
    let (item, name) = (item.trim(), name.trim());
    if name.is_empty() {
        return Err(Fault::new("the conference is missing"));
    }
    let answer = call.chan.core(|core| {
        let conference = core.conferences.get(name);
        let members = || conference.iter().flat_map(|conference| &conference.members);
        Some(match item.to_ascii_lowercase().as_str() {
            "parties" => members().count(),
            "admins" => members().filter(|member| member.seat.is_admin).count(),
            "marked" => conference.map_or(0, call::conference::Conference::marked),
            "locked" => usize::from(conference.is_some_and(|conference| conference.is_locked)),
            "muted" => usize::from(conference.is_some_and(call::conference::Conference::is_muted)),
            _ => return None,
        })
    });
    out.push_str(&answer.ok_or_else(|| unknown(item))?.to_string());
    Ok(())
}

/// `MEETME_INFO(keyword,confno)`.
pub(super) fn read_meeting(call: &Call, text: &str, out: &mut String) -> Read {
    let (item, name) = text.split_once(',').ok_or(Fault::new("needs a keyword and a conference"))?;
    let (item, name) = (item.trim().to_ascii_lowercase(), name.trim());
    let answer = call.chan.core(|core| {
        let conference = core.conferences.get(name);
        let seconds = |began: i64| (core.services.wall.now_micros() - began).max(0) / 1_000_000;
        Some(match item.as_str() {
            "lock" => i64::from(conference.is_some_and(|found| found.is_locked)),
            "parties" => conference.map_or(0, |found| i64::try_from(found.members.len()).unwrap_or(i64::MAX)),
            "activity" => conference.map_or(0, |found| seconds(found.began)),
            "dynamic" => i64::from(!core.settings.meeting_rooms.contains_key(name)),
            _ => return None,
        })
    });
    out.push_str(&answer.ok_or_else(|| unknown(&item))?.to_string());
    Ok(())
}

/// `CONFBRIDGE_CHANNELS(type,conference)`.
pub(super) fn read_conference_channels(call: &Call, text: &str, out: &mut String) -> Read {
    let (item, name) = text.split_once(',').ok_or(Fault::new("needs a type and a conference"))?;
    let item = item.trim().to_ascii_lowercase();
    let meant: fn(&Member) -> bool = match item.as_str() {
        "parties" => |_| true,
        "admins" => |member| member.seat.is_admin,
        "marked" => |member| member.seat.is_marked,
        "active" => |member| !member.waits,
        "waiting" => |member| member.waits,
        _ => return Err(unknown(&item)),
    };
    let names = call.chan.core(|core| {
        let members =
            core.conferences.get(name.trim()).into_iter().flat_map(|conference| &conference.members);
        let channels = members.filter(|member| meant(member)).filter_map(|member| core.get(member.channel));
        channels.map(|channel| channel.name.to_string()).collect::<Vec<_>>().join(",")
    });
    out.push_str(&names);
    Ok(())
}

fn count(call: &Call, matches: impl Fn(&str, &str) -> bool) -> usize {
    call.chan.core(|core| {
        core.channels().flat_map(|c| &c.groups).filter(|(category, group)| matches(category, group)).count()
    })
}

pub(super) fn read_count(call: &Call, text: &str, out: &mut String) -> Read {
    let (group, category) = parts(text);
    let own = match group {
        "" => call
            .chan
            .with(|c| {
                c.groups
                    .iter()
                    .find(|(known, _)| known.eq_ignore_ascii_case(category))
                    .map(|(_, g)| g.clone())
            })
            .map_err(gone)?
            .unwrap_or_default(),
        given => given.to_owned(),
    };
    let number = if own.is_empty() {
        0
    } else {
        count(call, |c, g| c.eq_ignore_ascii_case(category) && g.eq_ignore_ascii_case(&own))
    };
    out.push_str(&number.to_string());
    Ok(())
}

pub(super) fn read_match_count(call: &Call, text: &str, out: &mut String) -> Read {
    let (group, category) = parts(text);
    let matcher = |pattern: &str| {
        dialplan::ere::Matcher::new(pattern)
            .map_err(|_| Fault::new(format!("'{pattern}' is no regular expression")))
    };
    let (group, category) = (matcher(group)?, matcher(category)?);
    let number = count(call, |c, g| group.is_match(g) && category.is_match(c));
    out.push_str(&number.to_string());
    Ok(())
}

pub(super) fn read_list(call: &Call, out: &mut String) -> Read {
    let words = call
        .chan
        .with(|c| {
            let word = |(category, group): &(String, String)| match category.as_str() {
                "" => group.clone(),
                category => format!("{group}@{category}"),
            };
            c.groups.iter().map(word).collect::<Vec<_>>()
        })
        .map_err(gone)?;
    out.push_str(&words.join(" "));
    Ok(())
}
