//! Operations that are carried out, as programs use them one after the other.

use super::*;

#[test]
fn a_call_is_answered_played_to_bridged_and_let_go() {
    let mut desk = Desk::new("verbs-call");
    let hello = desk.connect("app=hello");
    desk.world.clip("tt-monkeys", Duration::from_secs(2));
    let id = desk.call("alice", "100");
    assert_eq!(desk.ask("POST", &format!("/channels/{id}/answer"), "").status, 204);
    let heard = desk.ask("POST", &format!("/channels/{id}/play?media=sound:tt-monkeys"), "");
    assert_eq!(heard.status, 201, "{}", heard.body);
    let playback = heard.json();
    for (key, value) in
        [("media_uri", "sound:tt-monkeys"), ("state", "queued"), ("target_uri", &format!("channel:{id}"))]
    {
        assert_eq!(playback[key], *value, "{key}");
    }
    desk.pass(100);
    let own = format!("/playbacks/{}", playback["id"].as_str().unwrap());
    assert_eq!(desk.ask("GET", &own, "").json()["state"], "playing");
    desk.pass(5_000);
    assert_eq!(desk.ask("GET", &own, "").status, 404);
    let names = desk.names(hello);
    let at =
        |name: &str| names.iter().position(|own| own == name).unwrap_or_else(|| panic!("{name}: {names:?}"));
    assert!(at("StasisStart") < at("PlaybackStarted") && at("PlaybackStarted") < at("PlaybackFinished"));

    let bridge = desk.ask("POST", "/bridges", "{\"type\":\"mixing\",\"name\":\"table\"}").json();
    let path = format!("/bridges/{}", bridge["id"].as_str().unwrap());
    assert_eq!((bridge["bridge_type"].as_str(), bridge["name"].as_str()), (Some("mixing"), Some("table")));
    assert_eq!(desk.ask("POST", &format!("{path}/addChannel?channel={id}"), "").status, 204);
    assert_eq!(desk.ask("GET", &path, "").json()["channels"], serde_json::json!([id]));
    assert_eq!(desk.ask("POST", &format!("{path}/removeChannel?channel={id}"), "").status, 204);
    assert_eq!(desk.ask("DELETE", &path, "").status, 204);
    desk.pass(10);
    let names = desk.names(hello);
    for wanted in ["ChannelEnteredBridge", "ChannelLeftBridge", "BridgeDestroyed"] {
        assert!(names.contains(&wanted.to_owned()), "{wanted}: {names:?}");
    }
    assert_eq!(desk.ask("POST", &format!("/channels/{id}/continue"), "").status, 204);
    desk.pass(10);
    assert!(desk.names(hello).contains(&"StasisEnd".to_owned()));
    assert_eq!(
        desk.ask("POST", &format!("/channels/{id}/answer"), "").status,
        409,
        "it is no program's any more"
    );
    assert_eq!(desk.ask("GET", &format!("/channels/{id}"), "").json()["dialplan"]["app_name"], "Wait");
}

#[test]
fn a_program_calls_somebody() {
    let mut desk = Desk::new("verbs-originate");
    desk.world.phone("bob", sim::Phone { acts: vec![(1_000, sim::Act::Answer)], refuses: None });
    let hello = desk.connect("app=hello");
    let body = "{\"endpoint\":\"SIM/bob\",\"app\":\"hello\",\"appArgs\":\"a,b\",\"callerId\":\"Desk <100>\",\"variables\":{\"COLOUR\":\"green\"}}";
    let heard = desk.ask("POST", "/channels/call-1", body);
    assert_eq!(heard.status, 200, "{}", heard.body);
    assert_eq!(heard.json()["id"], "call-1");
    assert_eq!(desk.ask("POST", "/channels/call-1", body).status, 409, "the id is taken");
    desk.pass(20_000);
    let events = desk.events(hello);
    let start =
        events.iter().find(|event| event["type"] == "StasisStart").unwrap_or_else(|| panic!("{events:?}"));
    assert_eq!(start["args"], serde_json::json!(["a", "b"]));
    assert_eq!(start["channel"]["channelvars"], serde_json::json!({ "COLOUR": "green" }));
    let value = desk.ask("GET", "/channels/call-1/variable?variable=COLOUR", "").json();
    assert_eq!(value, serde_json::json!({ "value": "green" }));
    assert_eq!(desk.ask("POST", "/channels/call-1/variable?variable=SHADE&value=dark%20one", "").status, 204);
    let value = desk.ask("GET", "/channels/call-1/variable?variable=SHADE", "").json();
    assert_eq!(value["value"], "dark one");
    let heard = desk.ask("GET", "/channels/call-1/variable?variable=SHELL(id)", "");
    assert_eq!((heard.status, &*heard.message()), (500, "Unable to read provided function"));
    assert!(heard.head.starts_with("HTTP/1.1 500 Error With Function\r\n"), "{}", heard.head);
    for (body, status) in [
        ("{\"endpoint\":\"SIM/bob\"}", 400),
        ("{\"endpoint\":\"SIM/bob\",\"app\":\"hello\",\"extension\":\"100\"}", 400),
        ("{\"endpoint\":\"bob\",\"app\":\"hello\"}", 400),
        ("{\"endpoint\":\"SIM/bob\",\"app\":\"hello\",\"formats\":\"cheese\"}", 400),
        ("{\"endpoint\":\"SIM/bob\",\"app\":\"hello\",\"variables\":{\"SHELL(x)\":\"1\"}}", 422),
        ("{\"endpoint\":\"SIM/bob\",\"app\":\"hello\",\"variables\":{\"X\":{\"report_events\":true}}}", 400),
    ] {
        let heard = desk.ask("POST", "/channels", body);
        assert_eq!(heard.status, status, "{body}: {}", heard.body);
    }
}

#[test]
fn the_server_tells_of_itself() {
    let mut desk = Desk::with("verbs-server", "pretty = yes\n");
    let heard = desk.ask("GET", "/asterisk/ping", "");
    assert_eq!(heard.json()["ping"], "pong");
    assert!(heard.body.contains("\n  \"ping\": \"pong\""), "{}", heard.body);
    let info = desk.ask("GET", "/asterisk/info?only=system,status", "").json();
    let version = info["system"]["version"].as_str().unwrap();
    assert!(version.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.'), "programs read it: {version}");
    let build = desk.ask("GET", "/asterisk/info?only=build", "").json();
    assert!(build["build"].as_object().unwrap().values().all(|value| value != ""), "{build}");
    assert_eq!(info.as_object().unwrap().len(), 2);
    assert_eq!(desk.ask("GET", "/asterisk/info?only=cheese", "").status, 400);
    assert_eq!(desk.ask("POST", "/asterisk/variable?variable=G&value=1", "").status, 204);
    assert_eq!(desk.ask("GET", "/asterisk/variable?variable=G", "").json()["value"], "1");
    assert_eq!(desk.ask("GET", "/asterisk/variable?variable=NONE", "").json()["value"], "");
    assert_eq!(desk.ask("GET", "/asterisk/modules/res_pjsip.so", "").json()["status"], "Running");
    assert_eq!(desk.ask("GET", "/asterisk/modules/cheese", "").status, 404);
    assert!(desk.ask("GET", "/asterisk/modules", "").json().as_array().unwrap().len() > 50);
}

#[test]
fn mailboxes_endpoints_and_words_to_programs() {
    let mut desk = Desk::new("verbs-others");
    assert_eq!(desk.ask("PUT", "/mailboxes/100@default?oldMessages=2&newMessages=3", "").status, 204);
    let wanted = serde_json::json!({ "name": "100@default", "old_messages": 2, "new_messages": 3 });
    assert_eq!(desk.ask("GET", "/mailboxes/100@default", "").json(), wanted);
    assert_eq!(desk.ask("GET", "/mailboxes", "").json(), serde_json::json!([wanted]));
    assert_eq!(desk.ask("DELETE", "/mailboxes/100@default", "").status, 204);
    assert_eq!(desk.ask("GET", "/mailboxes/100@default", "").status, 404);

    let all = desk.ask("GET", "/endpoints", "").json();
    let one = &all.as_array().unwrap()[0];
    let own =
        format!("/endpoints/{}/{}", one["technology"].as_str().unwrap(), one["resource"].as_str().unwrap());
    assert_eq!(desk.ask("GET", &own, "").json(), *one);
    assert_eq!(desk.ask("GET", "/endpoints/cheese", "").status, 404);
    assert_eq!(desk.ask("GET", "/endpoints/PJSIP/cheese", "").status, 404);

    let hello = desk.connect("app=hello");
    let body = "{\"variables\":{\"colour\":\"green\"}}";
    assert_eq!(desk.ask("POST", "/events/user/basket?application=hello", body).status, 204);
    let events = desk.events(hello);
    assert_eq!(events.len(), 1, "{events:?}");
    assert_eq!(
        (&events[0]["eventname"], &events[0]["userevent"]["colour"]),
        (&"basket".into(), &"green".into())
    );
    assert_eq!(desk.ask("POST", "/events/user/basket?application=none", body).status, 404);
    assert_eq!(desk.ask("POST", "/events/user/basket?application=hello&source=channel:x", body).status, 422);

    let id = desk.call("alice", "101");
    let heard = desk.ask("POST", &format!("/applications/hello/subscription?eventSource=channel:{id}"), "");
    assert_eq!(heard.json()["channel_ids"], serde_json::json!([id]));
    desk.ask("DELETE", &format!("/channels/{id}"), "");
    desk.pass(10);
    assert!(desk.names(hello).contains(&"ChannelDestroyed".to_owned()));
    for (source, status) in
        [("channel:none", 422), ("endpoint:PJSIP/none", 422), ("cheese:1", 400), ("cheese", 400)]
    {
        let target = format!("/applications/hello/subscription?eventSource={source}");
        assert_eq!(desk.ask("POST", &target, "").status, status, "{source}");
    }
    assert_eq!(desk.ask("POST", "/applications/none/subscription?eventSource=bridge:", "").status, 404);
}

#[test]
fn devices_of_programs_are_kept_and_hints_follow_them() {
    let mut desk = Desk::new("verbs-devices");
    for (method, target, status) in [
        ("PUT", "/deviceStates/Stasis:door?deviceState=INUSE", 204),
        ("PUT", "/deviceStates/Stasis%3Agate?deviceState=BUSY", 204),
        ("PUT", "/deviceStates/stasis:barn?deviceState=RINGING", 204),
        ("DELETE", "/deviceStates/STASIS:barn", 204),
        ("PUT", "/deviceStates/Stasis:door?deviceState=OPEN", 500),
        ("PUT", "/deviceStates/Stasis:door?deviceState=UNKNOWN", 500),
        ("PUT", "/deviceStates/Stasis:?deviceState=INUSE", 404),
        ("DELETE", "/deviceStates/Stasis:", 404),
        ("PUT", "/deviceStates/PJSIP/6001?deviceState=INUSE", 409),
        ("DELETE", "/deviceStates/PJSIP/6001", 409),
        ("DELETE", "/deviceStates/Stasis:none", 204),
        ("PUT", "/deviceStates/Stasis:a%0ab?deviceState=INUSE", 400),
        ("DELETE", "/deviceStates/Stasis:gate", 204),
    ] {
        assert_eq!(desk.ask(method, target, "").status, status, "{method} {target}");
    }
    let door = serde_json::json!({ "name": "Stasis:door", "state": "INUSE" });
    assert_eq!(desk.ask("GET", "/deviceStates", "").json(), serde_json::json!([door]));
    assert_eq!(desk.ask("GET", "/deviceStates/Stasis:door", "").json(), door);
    assert_eq!(desk.ask("GET", "/deviceStates/Stasis:gate", "").json()["state"], "UNKNOWN");
    assert_eq!(desk.ask("GET", "/deviceStates/PJSIP/cheese", "").json()["state"], "INVALID");
    assert_eq!(apps::hints::device_state(&desk.site.shard, "Stasis:door"), call::DeviceState::InUse);
    desk.site.shard.core.borrow_mut().forget_teller(u64::MAX);
    let again = Ari::new(desk.site.clone());
    assert!(!again.is_watching());
    assert_eq!(
        apps::hints::device_state(&desk.site.shard, "Stasis:door"),
        call::DeviceState::InUse,
        "after a restart"
    );
}

#[test]
fn a_program_listens_to_a_channel_by_one_of_its_own() {
    let mut desk = Desk::new("verbs-snoop");
    let hello = desk.connect("app=hello");
    let id = desk.call("alice", "101");
    desk.pass(10);
    for (query, status) in
        [("app=hello", 400), ("app=nobody&spy=both", 404), ("app=hello&spy=sideways", 400), ("spy=in", 400)]
    {
        let heard = desk.ask("POST", &format!("/channels/{id}/snoop?{query}"), "");
        assert_eq!(heard.status, status, "{query}: {}", heard.body);
    }
    let heard = desk.ask("POST", &format!("/channels/{id}/snoop/ear-1?app=hello&spy=both&appArgs=x"), "");
    assert_eq!((heard.status, heard.json()["id"].as_str()), (200, Some("ear-1")), "{}", heard.body);
    desk.pass(100);
    let events = desk.events(hello);
    let start =
        events.iter().find(|event| event["type"] == "StasisStart").unwrap_or_else(|| panic!("{events:?}"));
    assert_eq!((&start["channel"]["id"], &start["args"]), (&"ear-1".into(), &serde_json::json!(["x"])));
    desk.ask("DELETE", &format!("/channels/{id}"), "");
    desk.pass(100);
    assert!(desk.names(hello).contains(&"StasisEnd".to_owned()), "it ends with the other");
}

#[test]
fn digits_music_mute_hold_and_silence_are_a_programs_to_order() {
    let mut desk = Desk::new("verbs-orders");
    desk.connect("app=hello");
    let id = desk.call("alice", "100");
    let before = |verb: &str| format!("/channels/{id}/{verb}");
    for (method, verb, status) in [
        ("POST", "answer", 204),
        ("POST", "ring", 204),
        ("DELETE", "ring", 204),
        ("POST", "progress", 204),
        ("POST", "dtmf?dtmf=12%23w3", 204),
        ("POST", "dtmf?dtmf=1xyz", 204),
        ("POST", "dtmf", 400),
        ("POST", "mute?direction=in", 204),
        ("DELETE", "mute", 204),
        ("POST", "mute?direction=up", 400),
        ("POST", "hold", 204),
        ("DELETE", "hold", 204),
        ("POST", "moh?mohClass=default", 204),
        ("DELETE", "moh", 204),
        ("POST", "silence", 204),
        ("DELETE", "silence", 204),
        ("POST", "redirect?endpoint=PJSIP/6002", 422),
        ("POST", "redirect?endpoint=nowhere", 422),
        ("POST", "redirect?endpoint=SIM/", 422),
        ("POST", "redirect", 400),
        ("POST", "dial", 409),
        ("POST", "continue?label=nowhere", 404),
        ("POST", "record?name=../x&format=wav", 400),
        ("POST", "record?name=x&format=cheese", 422),
        ("POST", "play", 400),
    ] {
        let heard = desk.ask(method, &before(verb), "");
        assert_eq!(heard.status, status, "{method} {verb}: {}", heard.body);
        desk.pass(10);
    }
    let other = desk.call("bob", "101");
    for verb in
        ["answer", "ring", "hold", "silence", "continue", "play?media=sound:a", "variable?variable=A&value=1"]
    {
        assert_eq!(
            desk.ask("POST", &format!("/channels/{other}/{verb}"), "").status,
            409,
            "{verb}: nobody's"
        );
        assert_eq!(desk.ask("POST", &format!("/channels/none/{verb}"), "").status, 404, "{verb}: not there");
    }
}

#[test]
fn a_sound_is_steered_and_a_recording_is_ended_kept_or_not() {
    let mut desk = Desk::new("verbs-media");
    desk.world.clip("long", Duration::from_secs(30));
    desk.connect("app=hello");
    let id = desk.call("alice", "100");
    desk.ask("POST", &format!("/channels/{id}/answer"), "");
    let path = format!("/channels/{id}/play/p1?media=sound:long");
    let heard = desk.ask("POST", &path, "");
    assert_eq!(heard.status, 201);
    assert!(heard.head.contains("\r\nLocation: /ari/playbacks/p1"), "{}", heard.head);
    assert_eq!(desk.ask("POST", "/playbacks/p1/control?operation=dance", "").status, 400);
    assert_eq!(desk.ask("POST", "/playbacks/none/control?operation=pause", "").status, 404);
    desk.pass(100);
    for (operation, state) in [("pause", "paused"), ("unpause", "playing"), ("forward", "playing")] {
        assert_eq!(desk.ask("POST", &format!("/playbacks/p1/control?operation={operation}"), "").status, 204);
        desk.pass(100);
        assert_eq!(desk.ask("GET", "/playbacks/p1", "").json()["state"], state, "{operation}");
    }
    assert_eq!(
        (desk.ask("DELETE", "/playbacks/p1", "").status, desk.ask("DELETE", "/playbacks/p1", "").status),
        (204, 404)
    );
    desk.pass(100);
    assert_eq!(desk.ask("POST", &format!("/channels/{id}/record?name=r&format=wav"), "").status, 201);
    desk.pass(100);
    for (method, verb, state) in [
        ("POST", "pause", "paused"),
        ("DELETE", "pause", "recording"),
        ("POST", "mute", "recording"),
        ("DELETE", "mute", "recording"),
    ] {
        assert_eq!(
            desk.ask(method, &format!("/recordings/live/r/{verb}"), "").status,
            204,
            "{method} {verb}"
        );
        assert_eq!(desk.ask("GET", "/recordings/live/r", "").json()["state"], state, "{method} {verb}");
    }
    assert_eq!(desk.ask("POST", "/recordings/live/r/stop", "").status, 204);
    desk.pass(100);
    assert_eq!(desk.ask("GET", "/recordings/live/r", "").status, 404);
    assert_eq!(desk.ask("DELETE", "/recordings/live/r", "").status, 404);
}

#[test]
fn a_channel_is_made_first_and_called_later() {
    let mut desk = Desk::new("verbs-dial");
    desk.world.phone("bob", sim::Phone { acts: vec![(1_000, sim::Act::Answer)], refuses: None });
    let hello = desk.connect("app=hello");
    let heard = desk.ask("POST", "/channels/create?endpoint=SIM/bob&app=hello&appArgs=x&channelId=leg-1", "");
    assert_eq!((heard.status, heard.json()["state"].as_str()), (200, Some("Down")), "{}", heard.body);
    desk.pass(10);
    let names = desk.names(hello);
    assert!(names.contains(&"StasisStart".to_owned()) && !names.contains(&"Dial".to_owned()), "{names:?}");
    assert_eq!(desk.ask("POST", "/channels/leg-1/dial?timeout=soon", "").status, 400);
    assert_eq!(desk.ask("POST", "/channels/leg-1/dial?timeout=20", "").status, 204);
    desk.pass(5_000);
    assert_eq!(desk.ask("GET", "/channels/leg-1", "").json()["state"], "Up");
    let names = desk.names(hello);
    assert!(
        names.contains(&"Dial".to_owned()) && names.contains(&"ChannelStateChange".to_owned()),
        "{names:?}"
    );
    for (query, status) in
        [("endpoint=SIM/bob&app=nobody", 200), ("endpoint=SIM/bob", 400), ("app=hello", 400)]
    {
        assert_eq!(desk.ask("POST", &format!("/channels/create?{query}"), "").status, status, "{query}");
    }
}
