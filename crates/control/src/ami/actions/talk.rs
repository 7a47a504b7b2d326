//! Actions about the session itself: what it hears, what it may do.

use core::time::Duration;
use store::config::manager::Classes;

use call::Notice;
use store::config::manager::EventFilter;

use super::super::filter::FILTERS_MAX;
use super::super::login::mask;
use super::super::packet::Message;
use super::super::session::Busy;
use super::super::table::{self, ActionRow, After, Done, Turn, may, must};
use crate::pages::Pages;
use crate::socket::{Answer, Call, View};

/// Longest `WaitEvent`, seconds; without a timeout it waits so long.
const WAIT_EVENT_SECONDS_MAX: u64 = 3600;

pub(super) const ROWS: &[ActionRow] = &[
    ActionRow {
        name: "Ping",
        class: &[],
        synopsis: "Answers, to show that the connection is alive.",
        fields: &[],
        run: ping,
    },
    ActionRow {
        name: "Events",
        class: &[],
        synopsis: "Chooses which events the session gets.",
        fields: &[must("EventMask", "on, off, or classes separated by commas")],
        run: events,
    },
    ActionRow {
        name: "Filter",
        class: &["system"],
        synopsis: "Adds an event filter to the session.",
        fields: &[
            may("Operation", "Add"),
            may("Filter", "POSIX extended regular expression; a leading ! holds back what it matches"),
            may(
                "MatchCriteria",
                "action(include|exclude), name(EVENT), header(NAME), method(regex|exact|starts_with|ends_with|contains|none), \
                 comma separated; Filter is what is compared",
            ),
        ],
        run: filter,
    },
    ActionRow {
        name: "WaitEvent",
        class: &[],
        synopsis: "Waits for an event.",
        fields: &[may("Timeout", "seconds; -1 for as long as possible")],
        run: wait_event,
    },
    ActionRow {
        name: "UserEvent",
        class: &["user"],
        synopsis: "Sends word to all clients; every other header goes with it.",
        fields: &[may("UserEvent", "name of the event")],
        run: user_event,
    },
    ActionRow {
        name: "Command",
        class: &["command"],
        synopsis: "Runs a console command; the answer comes in Output lines.",
        fields: &[must("Command", "as typed at the console")],
        run: command,
    },
    ActionRow {
        name: "ListCommands",
        class: &[],
        synopsis: "Lists the actions that the user may use.",
        fields: &[],
        run: list_commands,
    },
];

fn ping(turn: &mut Turn<'_>) -> Done {
    let micros = turn.site.shard.core.borrow().services.wall.now_micros();
    let stamp = format!("{}.{:06}", micros.div_euclid(1_000_000), micros.rem_euclid(1_000_000));
    turn.response("Success").field("Ping", "Pong").field("Timestamp", stamp).end();
    Ok(After::Go)
}

fn events(turn: &mut Turn<'_>) -> Done {
    let wanted = mask(turn.need("EventMask")?);
    let is_broken = turn.site.snapshot.borrow().manager.general.brokeneventsaction;
    let Some(login) = turn.session.login_mut() else { return Err("Permission denied".into()) };
    login.wanted = wanted;
    // Clients of old wait for nothing when they want all events. A request over HTTP always waits.
    if is_broken && wanted == Classes::ALL && turn.session.web.is_none() {
        return Ok(After::Go);
    }
    turn.response("Success").field("Events", if wanted.is_empty() { "Off" } else { "On" }).end();
    Ok(After::Go)
}

/// What is said of a filter that cannot be read.
const BAD_FILTER: &str = "Filter was formatted incorrectly.  Check the syntax of the filter given.";

fn filter(turn: &mut Turn<'_>) -> Done {
    if !turn.get("Operation").unwrap_or("Add").eq_ignore_ascii_case("Add") {
        return Err("Unknown operation".into());
    }
    let criteria = turn.get("MatchCriteria").map(str::to_owned);
    let text = match (turn.get("Filter"), &criteria) {
        (None, Some(_)) => String::new(),
        _ => turn.get("Filter").ok_or(BAD_FILTER)?.to_owned(),
    };
    let rule = criteria.map(|criteria| EventFilter::parse(&criteria, &text)).transpose();
    let rule = rule.map_err(|_| BAD_FILTER)?;
    let Some(login) = turn.session.login_mut() else { return Err("Permission denied".into()) };
    if login.filters.len() >= FILTERS_MAX {
        return Err("Too many filters".into());
    }
    let added = match rule {
        Some(rule) => login.filters.add_rule(rule),
        None => login.filters.add(&text),
    };
    match added {
        Ok(()) => turn.success("Success"),
        Err(_) => Err(BAD_FILTER.into()),
    }
}

fn wait_event(turn: &mut Turn<'_>) -> Done {
    let seconds = match turn.get("Timeout").map(str::parse::<i64>) {
        None | Some(Ok(-1)) => WAIT_EVENT_SECONDS_MAX,
        Some(Ok(seconds @ 0..)) => seconds.unsigned_abs().min(WAIT_EVENT_SECONDS_MAX),
        Some(_) => return Err("Invalid timeout".into()),
    };
    let action_id = turn.action_id().map(str::to_owned);
    let waiting = turn.session.web.as_mut().map(|web| web.take_events()).unwrap_or_default();
    if !waiting.is_empty() {
        turn.response("Success").field("Message", "Waiting for Event completed.").end();
        turn.out.push_str(&waiting);
        turn.item("WaitEventComplete").end();
        return Ok(After::Go);
    }
    Ok(After::Wait(Busy::Event { until: turn.now + Duration::from_secs(seconds), action_id }))
}

fn user_event(turn: &mut Turn<'_>) -> Done {
    let name = turn.get("UserEvent").unwrap_or_default().to_owned();
    let own = ["Action", "UserEvent"];
    let fields =
        turn.action.headers().filter(|(key, _)| !own.iter().any(|own| own.eq_ignore_ascii_case(key)));
    let fields = fields.map(|(key, value)| (key.to_owned(), value.to_owned())).collect();
    turn.site.shard.core.borrow_mut().notice(|_| Some(Notice::UserEvent { channel: None, name, fields }));
    turn.success("Event Sent")
}

fn command(turn: &mut Turn<'_>) -> Done {
    let line = turn.need("Command")?.trim().to_owned();
    let Some(commands) = turn.commands.cloned() else { return Err("There are no commands here".into()) };
    let Ok(mut commands) = commands.try_borrow_mut() else { return Err("The console is busy".into()) };
    let mut view = View::default();
    let may_reach_outside = super::is_trusted(turn);
    let answer = commands.run(Call {
        who: None,
        session: turn.id,
        line: &line,
        json: false,
        columns: 0,
        may_wait: false,
        may_reach_outside,
        rights: turn.rights_to_set(),
        view: &mut view,
    });
    match answer {
        Answer::Done { text, refused, .. } => {
            let kind = if refused { "Error" } else { "Success" };
            let response = turn.response(kind).field("Message", "Command output follows");
            text.lines().fold(response, |response, line| response.field("Output", line)).end();
            Ok(After::Go)
        }
        Answer::Pages(pages) => {
            turn.response("Success").field("Message", "Command output follows");
            let mut is_over = false;
            turn.pages(Pages::new(move |out| {
                match pages.next() {
                    Some(page) => {
                        page.lines().fold(Message::open(out), |message, line| message.field("Output", line));
                    }
                    None if is_over => return false,
                    None => {
                        is_over = true;
                        Message::open(out).end();
                    }
                }
                true
            }))
        }
        Answer::Later => Err("This command answers later and cannot be used here".into()),
    }
}

/// Actions that only clients of older servers know: taken, and not listed to those who look for what there is.
pub(crate) const OLDER: [&str; 15] = [
    "ChangeMonitor",
    "MeetmeList",
    "MeetmeListRooms",
    "MeetmeMute",
    "MeetmeUnmute",
    "Monitor",
    "MWIDelete",
    "MWIGet",
    "MWIUpdate",
    "PauseMonitor",
    "SIPpeers",
    "SIPqualifypeer",
    "SIPshowpeer",
    "StopMonitor",
    "UnpauseMonitor",
];

fn list_commands(turn: &mut Turn<'_>) -> Done {
    let Some(write) = turn.login().map(|login| login.write) else { return Err("Permission denied".into()) };
    let is_listed = |row: &&ActionRow| {
        row.is_allowed(write) && turn.site.has_action(row.name) && !OLDER.contains(&row.name)
    };
    let mut rows: Vec<&ActionRow> = table::actions().filter(is_listed).collect();
    rows.sort_by_key(|row| row.name.to_ascii_lowercase());
    let response = turn.response("Success");
    rows.into_iter()
        .fold(response, |response, row| {
            // Who has the class `all` has each of them.
            let class = if row.class.is_empty() { "<none>".to_owned() } else { row.class.join(",") + ",all" };
            response.field(row.name, format_args!("{}  (Priv: {class})", row.synopsis))
        })
        .end();
    Ok(After::Go)
}
