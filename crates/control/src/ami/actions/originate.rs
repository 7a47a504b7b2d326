//! Placing a call: the manager's spelling of the verb.

use core::time::Duration;

use apps::originate::{Originate, Then, originate};
use base::{FormatId, FormatSet};
use call::{Location, PartyId};

use super::super::capability;
use super::super::session::Busy;
use super::super::table::{ActionRow, After, Done, Refusal, Turn, may, must};
use super::super::{Later, Outcome};

/// Longest time a call rings: a day, so that no number of a client overflows anything.
const TIMEOUT_MS_MAX: u64 = 86_400_000;

pub(super) const ROWS: &[ActionRow] = &[ActionRow {
    name: "Originate",
    class: &["originate"],
    synopsis: "Places a call and sends it, once answered, to an extension or an application.",
    fields: &[
        must("Channel", "whom to call: PJSIP/6001"),
        may("Exten", "extension; with Context and Priority"),
        may("Context", "context"),
        may("Priority", "priority or label"),
        may("Application", "application, instead of an extension"),
        may("Data", "its arguments"),
        may("Timeout", "milliseconds to ring (30000)"),
        may("CallerID", "caller id of the call: \"Name\" <number>"),
        may("Variable", "NAME=value, several separated by commas; the header may be repeated"),
        may("Account", "account code"),
        may("EarlyMedia", "true to go on at the first early media instead of the answer"),
        may("Async", "true for an answer at once; OriginateResponse tells how it came out"),
        may("Codecs", "formats, comma separated"),
        may("ChannelId", "UNIQUEID of the new channel"),
        may("OtherChannelId", "UNIQUEID of the second half of a Local channel"),
        may(
            "PreDialGoSub",
            "routine on the new channel before it is called: context,exten,priority(arguments)",
        ),
    ],
    run: place,
}];

fn place(turn: &mut Turn<'_>) -> Done {
    let wanted = wanted(turn)?;
    let is_async = turn.action.is_true("Async");
    let (later, session) = (turn.later.clone(), turn.id);
    let shard = turn.site.shard.clone();
    if is_async {
        let action_id = Some(turn.action_id().unwrap_or_default().to_owned());
        if !originate(&shard, Originate { action_id, ..wanted }, |_| {}) {
            return Err("Originate failed".into());
        }
        return turn.success("Originate successfully queued");
    }
    if !originate(&shard, wanted, move |placed| {
        later.borrow_mut().push(Later { session, outcome: Outcome::Placed(placed) })
    }) {
        return Err("Originate failed".into());
    }
    let action_id = turn.action_id().map(str::to_owned);
    Ok(After::Wait(Busy::Originate { action_id }))
}

fn wanted(turn: &Turn<'_>) -> Result<Originate, Refusal> {
    let target = turn.need("Channel")?;
    if target.split_once('/').is_none_or(|(_, resource)| resource.is_empty()) {
        return Err("Invalid channel".into());
    }
    let timeout = match turn.get("Timeout").map(str::parse::<u64>) {
        None => None,
        Some(Ok(ms)) => Some(Duration::from_millis(ms.min(TIMEOUT_MS_MAX))),
        Some(Err(_)) => return Err("Invalid timeout".into()),
    };
    let mut wanted = Originate {
        target: target.to_owned(),
        then: then(turn)?,
        caller: turn.get("CallerID").map(PartyId::parse).unwrap_or_default(),
        variables: variables(turn)?,
        own_variables: turn.login().map(|login| login.variables.clone()).unwrap_or_default(),
        rights: turn.rights_to_set(),
        account: turn.get("Account").unwrap_or_default().to_owned(),
        formats: formats(turn)?,
        early_media: turn.action.is_true("EarlyMedia"),
        uniqueid: uniqueid(turn, "ChannelId")?,
        other_uniqueid: uniqueid(turn, "OtherChannelId")?,
        routine: turn.get("PreDialGoSub").map(routine).transpose()?,
        ..Originate::default()
    };
    if let Some(timeout) = timeout {
        wanted.timeout = timeout;
    }
    Ok(wanted)
}

fn then(turn: &Turn<'_>) -> Result<Then, Refusal> {
    let Some(name) = turn.get("Application") else {
        let given = |name| turn.get(name).filter(|text| !text.is_empty());
        let (Some(context), Some(exten), Some(priority)) =
            (given("Context"), given("Exten"), given("Priority"))
        else {
            return Err("Originate with 'Exten' requires 'Context' and 'Priority'".into());
        };
        let (context, exten) = (context.to_owned(), exten.to_owned());
        let location = match priority.parse() {
            Ok(priority) => Location { context, exten, priority },
            Err(_) => turn
                .call(None)
                .resolve(&format!("{context},{exten},{priority}"))
                .map_err(|_| Refusal::from("Invalid priority"))?,
        };
        let call = turn.call(None);
        let priority = location.priority.to_string();
        if !call.exists(&location.context, &location.exten)
            || call.resolve(&format!("{},{},{priority}", location.context, location.exten)).is_err()
        {
            return Err("Extension does not exist.".into());
        }
        return Ok(Then::Exten(location));
    };
    let Some(row) = apps::table::lookup(name) else {
        return Err(format!("Unknown application '{name}'").into());
    };
    let data = turn.get("Data").unwrap_or_default();
    if !capability::is_plain_application(row.name) && !super::is_trusted(turn) {
        return Err("Originate Access Forbidden: app or data blacklisted".into());
    }
    Ok(Then::App { name: row.name.to_owned(), data: data.to_owned() })
}

/// The variables of the action.
fn variables(turn: &Turn<'_>) -> Result<Vec<(String, String)>, Refusal> {
    let mut variables = Vec::new();
    for item in turn.action.all("Variable").flat_map(super::split_list) {
        let Some((name, value)) = item.split_once('=') else {
            return Err(format!("'{item}' is no NAME=value").into());
        };
        let name = name.trim();
        if !super::may_write(turn, name) {
            return Err(format!("Permission denied for {name}").into());
        }
        variables.push((name.to_owned(), value.to_owned()));
    }
    // They are set from the last one on.
    variables.reverse();
    Ok(variables)
}

fn formats(turn: &Turn<'_>) -> Result<FormatSet, Refusal> {
    let mut formats = FormatSet::EMPTY;
    for name in turn.get("Codecs").into_iter().flat_map(|list| list.split([',', '|'])).map(str::trim) {
        match FormatId::from_name(name) {
            Some(format) => formats.push(format),
            None if name.is_empty() => {}
            None => return Err(format!("Unknown codec '{name}'").into()),
        }
    }
    Ok(formats)
}

/// The routine of `PreDialGoSub`: `context,exten,priority`, `exten@context` or a context alone, with arguments behind it in
/// parentheses or after a comma that follows them.
fn routine(text: &str) -> Result<String, Refusal> {
    let (place, arguments) = text.split_once('(').map_or((text, ""), |(place, arguments)| (place, arguments));
    let place = match place.split(',').count() {
        1 => format!("{},s,1", place.trim()),
        2 => return Err("PreDialGoSub names context,exten,priority".into()),
        _ => place.to_owned(),
    };
    Ok(if arguments.is_empty() { place } else { format!("{place}({arguments}") })
}

fn uniqueid(turn: &Turn<'_>, header: &str) -> Result<Option<String>, Refusal> {
    /// Longest UNIQUEID: what other systems that store it make room for.
    const UNIQUEID_BYTES_MAX: usize = 149;
    let Some(id) = turn.get(header) else { return Ok(None) };
    if id.len() > UNIQUEID_BYTES_MAX || id.chars().any(|c| c.is_control() || c.is_whitespace()) {
        return Err(format!("Invalid {header}").into());
    }
    if turn.site.shard.core.borrow().by_name(id).is_some() {
        return Err(format!("{header} is in use").into());
    }
    Ok(Some(id.to_owned()))
}
