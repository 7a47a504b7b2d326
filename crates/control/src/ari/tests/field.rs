//! Answers as the field's server gives them, a row each: which refusal, in which words.

use serde_json::json;

use super::*;

/// Status and sentence of an answer.
fn said(heard: &Heard) -> (u16, String) {
    let text = match heard.body.is_empty() {
        true => String::new(),
        false => {
            let body = heard.json();
            let text = body.get("message").or(body.get("error")).and_then(Value::as_str);
            text.unwrap_or_default().to_owned()
        }
    };
    (heard.status, text)
}

#[test]
fn a_channel_that_was_not_answered_takes_few_orders() {
    let mut desk = Desk::new("field-412");
    desk.world.phone("bob", sim::Phone { acts: vec![(1_000, sim::Act::Answer)], refuses: None });
    desk.connect("app=hello");
    desk.ask("POST", "/channels/create?endpoint=SIM/bob&app=hello&channelId=leg", "");
    desk.pass(10);
    let invalid = (412, "Channel in invalid state".to_owned());
    for (method, verb) in [
        ("POST", "continue"),
        ("POST", "redirect"),
        ("POST", "answer"),
        ("POST", "ring"),
        ("DELETE", "ring"),
        ("POST", "progress"),
        ("POST", "dtmf"),
        ("POST", "mute"),
        ("DELETE", "mute"),
        ("POST", "hold"),
        ("DELETE", "hold"),
        ("POST", "moh"),
        ("DELETE", "moh"),
        ("POST", "silence"),
        ("DELETE", "silence"),
        ("POST", "play?media=sound:a"),
        ("POST", "play/p?media=sound:a"),
    ] {
        let heard = desk.ask(method, &format!("/channels/leg/{verb}"), "");
        assert_eq!(said(&heard), invalid, "{method} {verb}");
    }
    for (method, verb, status) in [
        ("GET", "", 200),
        ("POST", "/variable?variable=A&value=1", 204),
        ("GET", "/variable?variable=A", 200),
        ("POST", "/record?name=r&format=wav", 201),
        ("POST", "/move?app=hello", 204),
        ("POST", "/dial", 204),
        ("DELETE", "", 204),
    ] {
        let heard = desk.ask(method, &format!("/channels/leg{verb}"), "");
        assert_eq!(heard.status, status, "{method} {verb}: {}", heard.body);
        desk.pass(10);
    }
    // An incoming call is no such channel.
    let id = desk.call("alice", "100");
    assert_eq!(desk.ask("GET", &format!("/channels/{id}"), "").json()["state"], "Ring");
    assert_eq!(desk.ask("POST", &format!("/channels/{id}/answer"), "").status, 204);
}

#[test]
fn refusals_have_the_words_of_the_field() {
    let mut desk = Desk::new("field-words");
    desk.connect("app=hello");
    let id = desk.call("alice", "100");
    let plain = desk.call("alice", "101");
    desk.ask("POST", &format!("/channels/{id}/answer"), "");
    desk.ask("POST", "/bridges/table", "");
    desk.pass(10);
    for (method, target, body, status, text) in [
        ("GET", "/channels/none", "", 404, "Channel not found"),
        ("GET", "/bridges/none", "", 404, "Bridge not found"),
        ("GET", "/playbacks/none", "", 404, "Playback not found"),
        ("GET", "/recordings/live/none", "", 404, "Recording not found"),
        ("GET", "/recordings/stored/none", "", 404, "Recording not found"),
        ("GET", "/sounds/none", "", 404, "Sound not found"),
        ("GET", "/applications/none", "", 404, "Application not found"),
        ("GET", "/endpoints/PJSIP/nobody", "", 404, "Endpoint not found"),
        ("GET", "/endpoints/Bogus", "", 404, "No Endpoints found - invalid tech Bogus"),
        ("GET", "/none", "", 404, "Resource not found"),
        ("DELETE", "/asterisk/info", "", 405, "Invalid method"),
        ("GET", "/channels/", "", 404, "ARI URLs do not end with a slash. Try /ari/channels"),
        ("GET", "/asterisk/variable", "", 400, "Variable name is required"),
        ("GET", "/asterisk/modules/none.so", "", 404, "Module could not be found in running modules"),
        ("PUT", "/endpoints/sendMessage?to=pjsip:a&from=b", "\"text\"", 400, "Error parsing request body"),
        ("POST", "/channels", "{\"app\":\"hello\"}", 400, "Endpoint must be specified"),
        ("POST", "/channels?endpoint=SIM/bob", "", 400, "Application or extension must be specified"),
        ("POST", "/channels?endpoint=Bogus/x&app=hello", "", 500, "Allocation failed"),
        ("POST", "/bridges/table", "", 409, "Bridge with id 'table' already exists"),
        ("POST", "/bridges?bridgeId=table&type=holding", "", 409, "Bridge with id 'table' already exists"),
        ("POST", "/bridges/other?type=foo", "", 500, "Unable to create bridge"),
        ("DELETE", "/bridges/table/moh", "", 409, "Bridge isn't playing music"),
        ("POST", "/bridges/table/addChannel?channel=nothing", "", 400, "Channel not found"),
        ("POST", "/bridges/none/addChannel?channel=nothing", "", 404, "Bridge not found"),
        ("POST", "/bridges/table/removeChannel?channel=ID", "", 422, "Channel not in this bridge"),
        (
            "POST",
            "/bridges/table/record?name=a&format=cheese",
            "",
            422,
            "The format specified is unknown on this system",
        ),
        (
            "POST",
            "/bridges/table/play?media=sound:a&announcer_format=cheese",
            "",
            422,
            "Invalid format: cheese",
        ),
        (
            "POST",
            "/bridges/table/record?name=a&format=wav&recorder_format=cheese",
            "",
            422,
            "Invalid format: cheese",
        ),
        ("POST", "/bridges/table/videoSource/none", "", 400, "Channel not found"),
        ("POST", "/bridges/table/videoSource/ID", "", 422, "Channel not in this bridge"),
        ("POST", "/bridges/table/videoSource/PLAIN", "", 422, "Channel not in Stasis application"),
        ("DELETE", "/bridges/none/videoSource", "", 404, "Bridge not found"),
        ("GET", "/bridges/table/variable?variable=A", "", 404, "Provided variable was not found"),
        ("POST", "/channels/ID/redirect", "", 400, "Required parameter 'endpoint' not provided."),
        ("POST", "/channels/ID/dtmf", "", 400, "DTMF is required"),
        ("POST", "/channels/PLAIN/dtmf", "", 409, "Channel not in Stasis application"),
        ("GET", "/channels/PLAIN/variable", "", 409, "Channel not in Stasis application"),
        ("GET", "/channels/ID/variable?variable=NONE", "", 404, "Provided variable was not found"),
        ("GET", "/channels/ID/variable?variable=NO_SUCH(1)", "", 500, "Unable to read provided function"),
        ("GET", "/channels/ID/variables?variables=,", "", 400, "Variable names are required"),
        ("GET", "/channels/ID/rtp_statistics", "", 403, "RTP not found"),
        (
            "POST",
            "/channels/ID/variables",
            "{\"variables\":{\"A\":1}}",
            400,
            "Only string values in the 'variables' object allowed",
        ),
        (
            "DELETE",
            "/channels/ID?reason=busy&reason_code=17",
            "",
            400,
            "The reason and reason_code can't both be specified",
        ),
        ("DELETE", "/channels/ID?reason_code=cheese", "", 400, "Invalid Reason Code"),
        ("POST", "/events/claim?channelId=ID&application=hello", "", 404, "Channel not found"),
        ("POST", "/events/user/x?application=none", "", 404, "Application not found"),
        (
            "POST",
            "/events/user/x?application=hello&source=deviceState:a",
            "",
            400,
            "Invalid source URI scheme",
        ),
        ("POST", "/events/user/x?application=hello&source=channel:a", "", 422, "Event source not found"),
        ("PUT", "/deviceStates/Stasis:?deviceState=INUSE", "", 404, "Device name is missing"),
        ("PUT", "/deviceStates/PJSIP/1?deviceState=INUSE", "", 409, "Uncontrolled device specified"),
        ("PUT", "/deviceStates/Stasis:a?deviceState=SHUT", "", 500, "Unknown device"),
        ("GET", "/asterisk/config/dynamic/none/endpoint/a", "", 404, "configClass 'none' not found"),
        ("GET", "/asterisk/config/dynamic/res_pjsip/none/a", "", 404, "objectType 'none' not found"),
        ("DELETE", "/asterisk/logging/none", "", 404, "Log channel does not exist"),
    ] {
        let target = target.replace("ID", &id).replace("PLAIN", &plain);
        let heard = desk.ask(method, &target, body);
        assert_eq!(said(&heard), (status, text.to_owned()), "{method} {target}");
    }
    let heard = desk.ask("POST", "/channels?endpoint=Bogus/x&app=hello", "");
    assert_eq!(heard.json(), json!({ "error": "Allocation failed" }));
    assert_eq!(
        desk.ask("POST", "/bridges/x?type=foo", "").json(),
        json!({ "message": "Unable to create bridge" })
    );
}

#[test]
fn variables_are_read_and_set_many_at_once_and_told_with_what_has_them() {
    let mut desk = Desk::with("field-variables", "channelvars = CHANNEL(language)\n");
    let hello = desk.connect("app=hello");
    let id = desk.call("alice", "100");
    let body = "{\"variables\":{\"A\":\"1\",\" B \":{\"value\":\"2\",\"report_events\":true},\"C\":{\"value\":\"3\"}}}";
    assert_eq!(desk.ask("POST", &format!("/channels/{id}/variables"), body).status, 204);
    let heard = desk.ask("GET", &format!("/channels/{id}/variables?variables=A,%20B%20,CALLERID(num)"), "");
    assert_eq!(heard.json(), json!({ "variables": { "A": "1", "B": "2", "CALLERID(num)": "6001" } }));
    let told =
        |desk: &mut Desk| desk.ask("GET", &format!("/channels/{id}"), "").json()["channelvars"].clone();
    let own = |more: Value| {
        let mut all = json!({ "COLOUR": "", "CHANNEL(language)": "en" });
        all.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        all
    };
    assert_eq!(told(&mut desk), own(json!({ "B": "2" })));
    desk.pass(10);
    desk.events(hello);
    desk.ask("POST", &format!("/channels/{id}/variable?variable=B&value=4&report_events=true"), "");
    let events = desk.events(hello);
    assert_eq!(events[0]["channel"]["channelvars"], own(json!({ "B": "4" })), "{events:?}");
    desk.ask("POST", &format!("/channels/{id}/variable?variable=B&value=5&report_events=false"), "");
    assert_eq!(told(&mut desk), own(json!({})));

    let body = "{\"variables\":{\"A\":\"1\",\"B\":{\"value\":\"2\",\"report_events\":true}}}";
    let made = desk.ask("POST", "/bridges/table", body).json();
    assert_eq!(made["bridgevars"], json!({ "B": "2" }));
    assert_eq!(desk.ask("GET", "/bridges/table/variable?variable=A", "").json(), json!({ "value": "1" }));
    let heard = desk.ask("GET", "/bridges/table/variables?variables=A,B", "");
    assert_eq!(heard.json(), json!({ "variables": { "A": "1", "B": "2" } }));
    assert_eq!(
        desk.ask("POST", "/bridges/table/variable?variable=B&value=&report_events=false", "").status,
        204
    );
    assert_eq!(desk.ask("GET", "/bridges/table", "").json().get("bridgevars"), None);

    desk.world.phone("bob", sim::Phone { acts: vec![(100, sim::Act::Answer)], refuses: None });
    let body = "{\"endpoint\":\"SIM/bob\",\"app\":\"hello\",\"variables\":{\"X\":{\"value\":\"7\",\"report_events\":true}}}";
    let made = desk.ask("POST", "/channels", body).json();
    assert_eq!(made["channelvars"]["X"], "7", "{made}");
}

#[test]
fn whose_video_is_seen_is_a_programs_to_say() {
    let mut desk = Desk::new("field-video");
    let hello = desk.connect("app=hello");
    let (a, b) = (desk.call("alice", "100"), desk.call("bob", "100"));
    for (id, kind, mode, technology) in [
        ("plain", "mixing", "talker", "simple_bridge"),
        ("sfu", "mixing,video_sfu", "sfu", "softmix"),
        ("single", "video_single", "single", "simple_bridge"),
    ] {
        let made = desk.ask("POST", &format!("/bridges/{id}?type={kind}"), "").json();
        assert_eq!((&made["video_mode"], &made["technology"]), (&json!(mode), &json!(technology)), "{kind}");
    }
    desk.ask("POST", &format!("/bridges/plain/addChannel?channel={a},{b}"), "");
    desk.pass(10);
    desk.events(hello);
    for source in [&a, &b] {
        assert_eq!(desk.ask("POST", &format!("/bridges/plain/videoSource/{source}"), "").status, 204);
    }
    let events = desk.events(hello);
    let told: Vec<_> = events
        .iter()
        .map(|event| {
            let bridge = &event["bridge"];
            json!([
                event["type"],
                bridge["video_mode"],
                bridge["video_source_id"],
                event.get("old_video_source_id")
            ])
        })
        .collect();
    let name = "BridgeVideoSourceChanged";
    assert_eq!(told, [json!([name, "single", a, null]), json!([name, "single", b, a])]);
    desk.ask("POST", &format!("/bridges/plain/removeChannel?channel={b}"), "");
    let events = desk.events(hello);
    let left = events.iter().find(|event| event["type"] == name).unwrap();
    assert_eq!((&left["old_video_source_id"], left["bridge"].get("video_source_id")), (&json!(b), None));
    assert_eq!(desk.ask("DELETE", "/bridges/plain/videoSource", "").status, 204);
    assert_eq!(desk.ask("GET", "/bridges/plain", "").json()["video_mode"], "talker");
}

#[test]
fn the_first_program_that_claims_a_call_has_it() {
    let mut desk = Desk::new("field-claim");
    let first = desk.connect("app=sales");
    let second = desk.connect("app=support");
    let third = desk.connect("app=other-sort");
    let id = desk.call("alice", "104");
    for (client, hears) in [(first, true), (second, true), (third, false)] {
        let names = desk.names(client);
        assert_eq!(names.contains(&"CallBroadcast".to_owned()), hears, "{names:?}");
    }
    let claim = |desk: &mut Desk, app: &str| {
        said(&desk.ask("POST", &format!("/events/claim?channelId={id}&application={app}"), ""))
    };
    assert_eq!(claim(&mut desk, "support"), (204, String::new()));
    let late = (409, "Channel has already been claimed".to_owned());
    assert_eq!(claim(&mut desk, "sales"), late);
    desk.pass(10);
    let events = desk.events(second);
    let start = events.iter().find(|event| event["type"] == "StasisStart").unwrap();
    assert_eq!(start["args"], json!(["x", "y"]));
    for client in [first, second] {
        let told = if client == second { events.clone() } else { desk.events(client) };
        let claimed = told.iter().find(|event| event["type"] == "CallClaimed").unwrap();
        assert_eq!((&claimed["winner_app"], &claimed["channel"]["id"]), (&json!("support"), &json!(id)));
    }
    assert_eq!(claim(&mut desk, "sales"), late, "while the winner has it");
    // Nobody claims the next one in time.
    let other = desk.call("bob", "104");
    desk.pass(2_000);
    let heard = desk.ask("POST", &format!("/events/claim?channelId={other}&application=sales"), "");
    assert_eq!(heard.status, 404, "its time is over");
}
