//! What is answered and told has the shape that the models promise: all that must be there, and nothing else.

use super::super::models::{EVENT_FIELDS, EVENT_PARTS};
use super::*;

/// The fields of a model or an event.
fn fields(name: &str) -> Vec<ModelField> {
    if let Some(event) = EVENTS.iter().find(|event| event.name == name) {
        return EVENT_FIELDS.iter().chain(event.fields).copied().collect();
    }
    let model = MODELS.iter().chain(EVENT_PARTS).find(|model| model.name == name);
    model.unwrap_or_else(|| panic!("there is no model {name}")).fields.to_vec()
}

/// Holds a value against its kind: a word of descriptions.
fn check(kind: &str, value: &Value, path: &str) {
    if let Some(item) = kind.strip_prefix("List[").and_then(|kind| kind.strip_suffix(']')) {
        let list = value.as_array().unwrap_or_else(|| panic!("{path} is no list: {value}"));
        return list.iter().for_each(|value| check(item, value, path));
    }
    let fits = match kind {
        "string" | "Date" => value.is_string(),
        "int" | "long" => value.is_i64() || value.is_u64(),
        "double" => value.is_number(),
        "boolean" => value.is_boolean(),
        "object" => value.is_object(),
        model => return shape(model, value, path),
    };
    assert!(fits, "{path} is no {kind}: {value}");
}

fn shape(model: &str, value: &Value, path: &str) {
    let fields = fields(model);
    let object = value.as_object().unwrap_or_else(|| panic!("{path} is no object: {value}"));
    for field in &fields {
        match object.get(field.name) {
            Some(value) => check(field.kind, value, &format!("{path}.{}", field.name)),
            None => assert!(!field.required, "{path} lacks {}: {value}", field.name),
        }
    }
    for name in object.keys() {
        assert!(
            fields.iter().any(|field| field.name == name),
            "{path} has {name}, of which {model} says nothing"
        );
    }
}

#[test]
fn answers_have_the_shape_of_their_models() {
    let mut desk = Desk::new("shapes-answers");
    desk.connect("app=hello");
    let id = desk.call("alice", "100");
    desk.ask("POST", &format!("/channels/{id}/answer"), "");
    desk.ask("POST", "/bridges/table?name=t", "");
    desk.ask("POST", "/bridges/table/addChannel?channel=x", "");
    desk.ask("PUT", "/mailboxes/100@default?oldMessages=2&newMessages=3", "");
    desk.ask("PUT", "/deviceStates/Stasis:door?deviceState=INUSE", "");
    for (model, method, target) in [
        ("List[Channel]", "GET", "/channels".to_owned()),
        ("Channel", "GET", format!("/channels/{id}")),
        ("List[Bridge]", "GET", "/bridges".to_owned()),
        ("Bridge", "GET", "/bridges/table".to_owned()),
        ("Playback", "POST", format!("/channels/{id}/play?media=sound:a,sound:b")),
        ("LiveRecording", "POST", format!("/channels/{id}/record?name=r&format=wav")),
        ("LiveRecording", "GET", "/recordings/live/r".to_owned()),
        ("List[StoredRecording]", "GET", "/recordings/stored".to_owned()),
        ("List[Endpoint]", "GET", "/endpoints".to_owned()),
        ("List[Application]", "GET", "/applications".to_owned()),
        ("Application", "GET", "/applications/hello".to_owned()),
        ("List[Mailbox]", "GET", "/mailboxes".to_owned()),
        ("List[DeviceState]", "GET", "/deviceStates".to_owned()),
        ("AsteriskInfo", "GET", "/asterisk/info".to_owned()),
        ("AsteriskPing", "GET", "/asterisk/ping".to_owned()),
        ("List[Module]", "GET", "/asterisk/modules".to_owned()),
        ("List[LogChannel]", "GET", "/asterisk/logging".to_owned()),
    ] {
        let heard = desk.ask(method, &target, "");
        assert!(matches!(heard.status, 200 | 201), "{target}: {} {}", heard.status, heard.body);
        check(model, &heard.json(), &target);
    }
}

#[test]
fn events_have_the_shape_of_their_models() {
    let mut desk = Desk::new("shapes-events");
    desk.world.phone("bob", sim::Phone { acts: vec![(500, sim::Act::Answer)], refuses: None });
    desk.world.clip("a", Duration::from_millis(200));
    let all = desk.connect("app=hello,other&subscribeAll=true");
    let id = desk.call("alice", "100");
    desk.ask("POST", &format!("/channels/{id}/answer"), "");
    desk.ask("POST", &format!("/channels/{id}/play?media=sound:a,sound:a"), "");
    desk.pass(2_000);
    desk.ask("POST", "/bridges/table", "");
    desk.ask("POST", &format!("/bridges/table/addChannel?channel={id}"), "");
    desk.pass(100);
    desk.ask("DELETE", "/bridges/table", "");
    desk.ask("POST", &format!("/channels/{id}/record?name=r&format=wav&maxDurationSeconds=1"), "");
    desk.pass(3_000);
    desk.ask("POST", &format!("/channels/{id}/variable?variable=A&value=1"), "");
    desk.ask("POST", &format!("/channels/{id}/move?app=other"), "");
    desk.pass(100);
    desk.ask("POST", &format!("/channels/{id}/move?app=nobody"), "");
    desk.pass(100);
    desk.ask("POST", "/events/user/word?application=hello", "{\"variables\":{\"a\":\"1\"}}");
    desk.ask("POST", &format!("/channels/{id}/continue?extension=102&context=default&priority=1"), "");
    desk.pass(3_000);
    desk.world.shard.core.borrow_mut().notice(|core| {
        let channel = core.channels().next().map(|channel| channel.id)?;
        let leg = || core.snapshot(channel).map(Box::new);
        let bridge = |slot: u32, uid: &str| call::BridgeSnapshot {
            id: base::BridgeId::new(slot, 0),
            uid: uid.into(),
            used_for: call::BridgeUse::Call,
            technology: "simple_bridge",
            name: "".into(),
            count: 2,
            video_mode: "none",
            video_source: None,
        };
        Some(Notice::AttendedTransfer {
            transferer: leg()?,
            second: leg(),
            transferee: leg(),
            target: leg(),
            link: leg().zip(leg()),
            bridges: [Some(bridge(1, "first")), Some(bridge(2, "second"))],
            stays: Some("second".into()),
            external: true,
        })
    });
    desk.ask("DELETE", &format!("/channels/{id}"), "");
    desk.pass(100);
    let events = desk.events(all);
    let attended = events.iter().find(|event| event["type"] == "BridgeAttendedTransfer").unwrap();
    assert_eq!(attended["destination_bridge"], attended["transferer_second_leg_bridge"]["id"]);
    assert_eq!(attended["destination_link_first_leg"]["id"], id);
    let mut seen = std::collections::BTreeSet::new();
    for event in &events {
        let name = event["type"].as_str().unwrap();
        shape(name, event, name);
        seen.insert(name.to_owned());
    }
    for wanted in [
        "StasisStart",
        "StasisEnd",
        "ApplicationMoveFailed",
        "ChannelCreated",
        "ChannelDestroyed",
        "ChannelStateChange",
        "ChannelDialplan",
        "ChannelVarset",
        "ChannelUserevent",
        "ChannelHangupRequest",
        "ChannelEnteredBridge",
        "ChannelLeftBridge",
        "BridgeCreated",
        "BridgeDestroyed",
        "PlaybackStarted",
        "PlaybackContinuing",
        "PlaybackFinished",
        "RecordingStarted",
        "Dial",
    ] {
        assert!(seen.contains(wanted), "{wanted}: {seen:?}");
    }
}
