//! Connections that programs hear by.

use super::*;

#[test]
fn a_program_hears_of_its_own_calls_and_of_no_others() {
    let mut desk = Desk::new("socket-own");
    let hello = desk.connect("app=hello");
    assert!(desk.ari.is_watching());
    desk.call("alice", "101");
    assert_eq!(desk.names(hello), [] as [&str; 0], "a call that is nobody's");
    let id = desk.call("bob", "100");
    let events = desk.events(hello);
    let start = events.iter().find(|event| event["type"] == "StasisStart").unwrap();
    assert_eq!(start["application"], "hello");
    assert_eq!(start["args"], serde_json::json!(["one", "two"]));
    assert_eq!(start["asterisk_id"].as_str().unwrap().len(), 17);
    let stamp = start["timestamp"].as_str().unwrap();
    assert!(stamp.len() == 28 && stamp.as_bytes()[10] == b'T' && stamp.as_bytes()[19] == b'.', "{stamp}");
    let channel = &start["channel"];
    assert_eq!(channel["id"], *id);
    assert_eq!(channel["state"], "Ring");
    assert_eq!(channel["caller"], serde_json::json!({ "name": "bob", "number": "6001" }));
    assert_eq!(channel["dialplan"]["exten"], "100");
    assert_eq!(channel["dialplan"]["app_name"], "Stasis");
    assert_eq!(channel["channelvars"], serde_json::json!({ "COLOUR": "" }));
    for key in ["name", "protocol_id", "connected", "accountcode", "creationtime", "language"] {
        assert!(!channel[key].is_null(), "{key}");
    }
    assert_eq!(desk.ask("DELETE", &format!("/channels/{id}"), "").status, 204);
    desk.pass(10);
    assert_eq!(desk.names(hello), ["ChannelHangupRequest", "StasisEnd"], "after that it is nobody's");
}

#[test]
fn who_subscribes_to_all_hears_of_all_and_a_filter_holds_back() {
    let mut desk = Desk::new("socket-all");
    let all = desk.connect("app=all&subscribeAll=true");
    let id = desk.call("alice", "101");
    let names = desk.names(all);
    for wanted in ["ChannelCreated", "ChannelDialplan", "ChannelStateChange"] {
        assert!(names.contains(&wanted.to_owned()), "{wanted}: {names:?}");
    }
    let body = "{\"allowed\":[{\"type\":\"ChannelDestroyed\"}]}";
    let heard = desk.ask("PUT", "/applications/all/eventFilter", body);
    assert_eq!(
        heard.json()["events_allowed"],
        serde_json::json!([{ "type": "ChannelDestroyed" }]),
        "{}",
        heard.body
    );
    desk.ask("DELETE", &format!("/channels/{id}?reason=busy"), "");
    desk.pass(10);
    let events = desk.events(all);
    assert_eq!(events.len(), 1, "{events:?}");
    assert_eq!((events[0]["cause"].as_i64(), events[0]["cause_txt"].as_str()), (Some(17), Some("User busy")));
    assert_eq!(events[0]["channel"]["id"], *id, "one that is gone is told whole");
    assert_ne!(events[0]["channel"]["creationtime"], Value::Null);
}

#[test]
fn a_second_connection_takes_an_application_over() {
    let mut desk = Desk::new("socket-replaced");
    let first = desk.connect("app=hello,other");
    let second = desk.connect("app=hello");
    assert_eq!(desk.names(first), ["ApplicationReplaced"]);
    desk.call("bob", "100");
    assert!(desk.names(second).contains(&"StasisStart".to_owned()));
    desk.call("alice", "103");
    assert!(desk.events(first).iter().any(|event| event["application"] == "other"));
    desk.ari.closed(first);
    let apps = desk.ask("GET", "/applications", "").json();
    let names: Vec<&str> = apps.as_array().unwrap().iter().map(|app| app["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["hello", "other"], "one without a client stays with its channel");
    desk.ari.closed(second);
    assert!(!desk.ari.is_watching());
}

#[test]
fn who_may_only_look_takes_no_application_away_from_others() {
    let mut desk = Desk::new("socket-looks");
    let first = desk.connect("app=hello");
    let key = PASSWORD.replace(' ', "+");
    for (app, status) in [("board,hello", "403"), ("board", "101"), ("board", "101")] {
        let text = format!(
            "GET /pbx/ari/events?api_key=looks:{key}&app={app}&subscribeAll=true HTTP/1.1\r\nHost: pbx\r\nUpgrade: websocket\r\n\
             Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
        );
        let connection = desk.send(text.as_bytes());
        let (bytes, _) = desk.sent(connection);
        assert!(bytes.starts_with(format!("HTTP/1.1 {status} ").as_bytes()), "{app}");
    }
    assert_eq!(desk.names(first), [] as [&str; 0], "it hears on");
    assert_eq!(desk.ask("GET", "/applications", "").json().as_array().unwrap().len(), 2);
}

#[test]
fn pings_are_answered_and_a_goodbye_ends_it() {
    let mut desk = Desk::new("socket-frames");
    let client = desk.connect("app=hello");
    desk.ari.bytes(client, &[0x89, 0x82, 1, 2, 3, 4, b'h' ^ 1, b'i' ^ 2], &mut desk.out);
    assert_eq!(desk.sent(client), (vec![0x8a, 2, b'h', b'i'], false));
    // What it says by text is a request, or none.
    desk.ari.bytes(client, &[0x81, 0x81, 0, 0, 0, 0, b'x'], &mut desk.out);
    assert_eq!(desk.names(client), ["RESTResponse"]);
    desk.ari.bytes(client, &[0x88, 0x80, 0, 0, 0, 0], &mut desk.out);
    let (bytes, is_closed) = desk.sent(client);
    assert_eq!((bytes.first(), is_closed), (Some(&0x88), true));
    assert!(!desk.ari.has(client));
    assert_eq!(desk.ask("GET", "/applications/hello", "").status, 404);
}

#[test]
fn a_handshake_that_is_none_is_refused() {
    let mut desk = Desk::new("socket-handshake");
    let key = PASSWORD.replace(' ', "+");
    let good = format!(
        "GET /pbx/ari/events?api_key=full:{key}&app=x HTTP/1.1\r\nHost: pbx\r\nUpgrade: websocket\r\n\
         Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    );
    for (from, to, status) in [
        ("Upgrade: websocket\r\n", "", 426),
        ("Version: 13", "Version: 8", 426),
        ("dGhlIHNhbXBsZSBub25jZQ==", "dGhl", 400),
        ("app=x", "app=", 400),
        ("app=x", "app=x%0dy", 400),
        ("app=x", "app=x&subscribeAll=perhaps", 400),
        ("full:", "nobody:", 401),
    ] {
        assert_eq!(desk.raw(good.replacen(from, to, 1).as_bytes()).status, status, "{from} {to}");
    }
    let many: Vec<String> = (0..80).map(|n| format!("a{n}")).collect();
    assert_eq!(
        desk.raw(good.replacen("app=x", &format!("app={}", many.join(",")), 1).as_bytes()).status,
        400
    );
    assert!(!desk.ari.is_watching());
}

#[test]
fn so_many_connections_there_are_and_no_more() {
    let mut desk = Desk::new("socket-bound");
    for number in 0..SOCKETS_MAX {
        desk.connect(&format!("app=a{number}"));
    }
    let key = PASSWORD.replace(' ', "+");
    let text = format!(
        "GET /pbx/ari/events?api_key=full:{key}&app=more HTTP/1.1\r\nHost: pbx\r\nUpgrade: websocket\r\n\
         Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    );
    assert_eq!(desk.raw(text.as_bytes()).status, 503);
}

#[test]
fn a_user_who_is_gone_after_a_reload_is_let_go() {
    let mut desk = Desk::new("socket-reload");
    let client = desk.connect("app=hello");
    desk.ari.configure(&mut desk.out);
    assert!(desk.ari.has(client));
    let mut snapshot = (**desk.site.snapshot.borrow()).clone();
    snapshot.ari.users.remove("full");
    *desk.site.snapshot.borrow_mut() = snapshot.into();
    desk.ari.configure(&mut desk.out);
    assert_eq!(desk.sent(client), (vec![], true));
    assert!(!desk.ari.has(client));
}

/// A text frame of a client.
fn frame(text: &str) -> Vec<u8> {
    let length = u16::try_from(text.len()).unwrap().to_be_bytes();
    let mask = [1, 2, 3, 4];
    let masked = text.bytes().zip(mask.into_iter().cycle()).map(|(byte, mask)| byte ^ mask);
    [0x81, 0xfe].into_iter().chain(length).chain(mask).chain(masked).collect()
}

#[test]
fn a_program_asks_on_the_connection_that_it_hears_by() {
    let mut desk = Desk::new("socket-rest");
    let hello = desk.connect("app=hello");
    for (asked, status, uri, body) in [
        (
            r#"{"type":"RESTRequest","transaction_id":"t","request_id":"r","method":"GET","uri":"channels"}"#,
            (200, "OK"),
            "channels",
            "[]",
        ),
        (
            r#"{"type":"RESTRequest","transaction_id":"t","request_id":"r","method":"POST","uri":"bridges?type=mixing","query_strings":[{"name":"bridgeId","value":"a b"}]}"#,
            (200, "OK"),
            "bridges",
            "\"a b\"",
        ),
        (
            r#"{"type":"RESTRequest","transaction_id":"t","request_id":"r","method":"POST","uri":"bridges","content_type":"application/json","message_body":"{\"bridgeId\":\"c\"}"}"#,
            (200, "OK"),
            "bridges",
            "\"c\"",
        ),
        (
            r#"{"type":"RESTRequest","transaction_id":"t","request_id":"r","method":"POST","uri":"bridges","content_type":"application/x-www-form-urlencoded","message_body":"bridgeId=d"}"#,
            (200, "OK"),
            "bridges",
            "\"d\"",
        ),
        (
            r#"{"type":"RESTRequest","transaction_id":"t","request_id":"r","method":"DELETE","uri":"bridges/c"}"#,
            (204, "No Content"),
            "bridges/c",
            "",
        ),
        (
            r#"{"type":"RESTRequest","transaction_id":"t","request_id":"r","method":"GET","uri":"/channels/none"}"#,
            (404, "Not Found"),
            "channels/none",
            "Channel not found",
        ),
        (
            r#"{"type":"RESTRequest","transaction_id":"t","request_id":"r","method":"GET","uri":"events?app=x"}"#,
            (426, "Upgrade Required"),
            "events",
            "message",
        ),
        (
            r#"{"type":"RESTRequest","transaction_id":"t","request_id":"r","method":"PUT","uri":"channels"}"#,
            (405, "Method Not Allowed"),
            "channels",
            "message",
        ),
        (
            r#"{"type":"Ping","transaction_id":"t","request_id":"r"}"#,
            (400, "Bad Request"),
            "",
            "Unknown request type.",
        ),
    ] {
        desk.ari.bytes(hello, &frame(asked), &mut desk.out);
        let events = desk.events(hello);
        let answer = events.iter().find(|event| event["type"] == "RESTResponse").unwrap();
        assert_eq!(
            (answer["status_code"].as_i64(), answer["reason_phrase"].as_str()),
            (Some(status.0), Some(status.1)),
            "{asked}: {answer}"
        );
        assert_eq!(
            (answer["transaction_id"].as_str(), answer["request_id"].as_str()),
            (Some("t"), Some("r"))
        );
        assert_eq!((answer["uri"].as_str(), answer["application"].as_str()), (Some(uri), Some("hello")));
        let said = answer["message_body"].as_str();
        assert_eq!(said.is_some(), !body.is_empty(), "{asked}: {answer}");
        assert!(said.unwrap_or_default().contains(body), "{asked}: {answer}");
        assert_eq!(answer["content_type"].is_string(), !body.is_empty());
    }
    for nonsense in ["no JSON", "[]", "{}"] {
        desk.ari.bytes(hello, &frame(nonsense), &mut desk.out);
        assert_eq!(desk.events(hello)[0]["status_code"], 400, "{nonsense}");
    }
}
