//! `/events`: the WebSocket that programs hear by, and what they say to each other.

use call::Notice;
use call::stasis::APP_NAME_BYTES_MAX;
use serde_json::{Map, Value};

use super::super::asked::Asked;
use super::super::sockets::APPS_OF_SOCKET_MAX;
use super::super::table::{Answer, Done, Fault, Method, Operation, flag, pairs, path, text};
use super::super::view::View;
use super::super::{identity_of, tell, zone_of};

pub(super) const ROWS: &[Operation] = &[
    Operation {
        method: Method::Get,
        path: "/events",
        name: "eventWebsocket",
        text: "Becomes a WebSocket, by which a program hears what happens. Who heard for the same application before is told ApplicationReplaced and hears no more.",
        params: &[
            text("app", "applications that it hears for").must().many(),
            flag("subscribeAll", "hear of everything, not only of its own channels").or("false"),
        ],
        answer: "Event",
        errors: &[
            (400, "no application is named, or the handshake is none"),
            (503, "too many are connected"),
        ],
        run: upgrade,
    },
    Operation {
        method: Method::Post,
        path: "/events/user/{eventName}",
        name: "userEvent",
        text: "Tells an application something: ChannelUserevent, and UserEvent to managers when it is about a channel.",
        params: &[
            path("eventName", "name of the event"),
            text("application", "who is told").must(),
            text("source", "what it is about: channel:ID, bridge:ID or endpoint:TECH/RESOURCE").many(),
            pairs("variables", "what it says"),
        ],
        answer: "void",
        errors: &[
            (400, "a source is none"),
            (404, "there is no such application"),
            (422, "there is no such source"),
        ],
        run: user_event,
    },
];

/// The applications that a connection is to hear for.
pub(in super::super) fn joined(asked: &Asked<'_>) -> Result<Vec<String>, Fault> {
    let mut apps: Vec<String> = Vec::new();
    for app in asked.all("app") {
        let app = app.trim();
        if app.is_empty() || app.len() > APP_NAME_BYTES_MAX || app.chars().any(char::is_control) {
            return Err(Fault::bad("an application has a name of 1 to 128 bytes"));
        }
        if !apps.iter().any(|known| known == app) {
            apps.push(app.to_owned());
        }
    }
    match apps.len() {
        0 => Err(Fault::bad("app is required")),
        1..=APPS_OF_SOCKET_MAX => Ok(apps),
        _ => Err(Fault::bad("too many applications")),
    }
}

/// The machine upgrades by itself, before it comes here.
fn upgrade(_: &mut Asked<'_>) -> Done {
    Err(Fault::new(426, "WebSocket upgrade required"))
}

fn user_event(asked: &mut Asked<'_>) -> Done {
    let (name, app) = (asked.need("eventName").to_owned(), asked.need("application").to_owned());
    let fields = asked.pairs("variables")?;
    let sources = asked.all("source");
    let site = asked.site.clone();
    if site.shard.core.borrow().stasis.app(&app).is_none() {
        return Err(Fault::not_found("Application not found"));
    }
    let core = site.shard.core.borrow();
    let mut view =
        View { site: &site, core: &core, facts: asked.facts, variables: &[], zone: zone_of(&site) };
    let mut said: Map<String, Value> = Map::new();
    said.insert("eventname".into(), Value::from(name.as_str()));
    said.extend(fields.iter().map(|(key, value)| (key.clone(), Value::from(value.as_str()))));
    let mut event = Map::new();
    event.insert("type".into(), Value::from("ChannelUserevent"));
    event.insert("timestamp".into(), view.moment(core.services.wall.now_micros()));
    event.insert("asterisk_id".into(), Value::from(identity_of(&site)));
    event.insert("eventname".into(), Value::from(name.as_str()));
    event.insert("userevent".into(), said.into());
    let (mut channel, mut bridge) = (None, None);
    for source in &sources {
        let (kind, id) = source.split_once(':').ok_or_else(|| Fault::bad("Invalid source URI scheme"))?;
        let found = match kind {
            "channel" => {
                channel = core.stasis_channel(id).ok().and_then(|id| core.snapshot(id));
                channel.as_ref().map(|of| view.channel(of))
            }
            "bridge" => {
                bridge = core.bridge_by_uid(id).and_then(|id| core.bridge_snapshot(id));
                let own = core.stasis_bridge_view(id).map(|of| view.bridge(&of));
                own.or_else(|| bridge.as_ref().map(|of| view.plain_bridge(of)))
            }
            "endpoint" => id.split_once('/').and_then(|(tech, resource)| view.endpoint(tech, resource)),
            _ => return Err(Fault::bad("Invalid source URI scheme")),
        };
        event.insert(kind.to_owned(), found.ok_or_else(|| Fault::new(422, "Event source not found"))?);
    }
    let hears = core.stasis.app(&app).is_some_and(|own| own.hears("ChannelUserevent"));
    drop(core);
    if hears {
        tell(&site, asked.sockets, &event.into(), std::iter::once(&*app));
    }
    // Managers hear of it when it is about a channel; no other application does.
    let mut core = site.shard.core.borrow_mut();
    core.notice(|_| Some(Notice::ProgramEvent { channel: channel?, bridge, name, fields }));
    Ok(Answer::Nothing)
}
