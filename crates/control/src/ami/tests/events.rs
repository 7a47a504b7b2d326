//! What sessions are told, and how it is spelt.

use base::Cause;
use call::PartyId;
use sim::{Act, Phone};

use super::*;

#[test]
fn a_call_through_dial_is_told_with_the_fields_that_clients_rely_on() {
    let mut desk = Desk::new("events");
    desk.login(1, "all");
    assert!(!desk.manager.watching());
    assert_eq!(desk.act(1, "Events|EventMask: on"), "Response: Success\r\nEvents: On\r\n\r\n");
    assert!(desk.manager.watching());
    desk.world.phone("bob", Phone { acts: vec![(100, Act::Ring), (500, Act::Answer)], refuses: None });
    let id = desk.call("alice", "102");
    desk.pass_to(1_000);
    desk.world.act(id, Duration::ZERO, Act::Hangup(Cause::NORMAL_CLEARING));
    desk.pass_to(2_000);
    let text = desk.sent(1);
    let all = messages(&text);
    let names = event_names(&text);
    for name in [
        "Newchannel",
        "Newexten",
        "DialBegin",
        "DialState",
        "DialEnd",
        "BridgeCreate",
        "BridgeEnter",
        "BridgeLeave",
        "BridgeDestroy",
        "Newstate",
        "HangupRequest",
        "Hangup",
    ] {
        assert!(names.iter().any(|known| known == name), "{name} is missing of {names:?}");
    }
    let order = |name: &str| names.iter().position(|known| known == name);
    assert!(order("DialBegin") < order("DialEnd") && order("DialEnd") < order("BridgeEnter"));
    let channel = [
        "Channel",
        "ChannelState",
        "ChannelStateDesc",
        "CallerIDNum",
        "CallerIDName",
        "ConnectedLineNum",
        "ConnectedLineName",
        "Language",
        "AccountCode",
        "Context",
        "Exten",
        "Priority",
        "Uniqueid",
        "Linkedid",
    ];
    let bridge = [
        "BridgeUniqueid",
        "BridgeType",
        "BridgeTechnology",
        "BridgeCreator",
        "BridgeName",
        "BridgeNumChannels",
        "BridgeVideoSourceMode",
    ];
    for message in &all {
        let name = field(message, "Event").unwrap();
        let row = EVENTS
            .iter()
            .find(|row| row.name == name)
            .unwrap_or_else(|| panic!("{name} is not in the table"));
        assert_eq!(message[1], ("Privilege", format!("{},all", row.class).as_str()), "{name}");
        let expected: Vec<String> = row
            .fields
            .iter()
            .flat_map(|field| match *field {
                "Channel*" => channel.iter().map(|name| (*name).to_owned()).collect(),
                "Dest*" => channel.iter().map(|name| format!("Dest{name}")).collect(),
                "Bridge*" => bridge.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>(),
                field => vec![field.to_owned()],
            })
            .collect();
        for (key, _) in message.iter().skip(2) {
            assert!(
                expected.iter().any(|known| known == key),
                "{name} has {key}, which its row does not name"
            );
        }
    }
    let begin = all.iter().find(|message| field(message, "Event") == Some("DialBegin")).unwrap();
    assert_eq!(field(begin, "Channel"), Some("SIM/alice-00000000"));
    assert_eq!(field(begin, "CallerIDName"), Some("alice"));
    assert_eq!(field(begin, "DestChannel"), Some("SIM/bob-00000001"));
    assert_eq!(field(begin, "DestConnectedLineNum"), Some("6001"));
    assert_eq!(field(begin, "DestCallerIDName"), Some("<unknown>"));
    let end = all.iter().rfind(|message| field(message, "Event") == Some("Hangup")).unwrap();
    assert_eq!((field(end, "Cause"), field(end, "Cause-txt")), (Some("16"), Some("Normal Clearing")));
}

#[test]
fn events_name_the_system_and_old_clients_wait_for_no_answer_where_that_is_written() {
    for (name, lines, mask, answer, named) in [
        ("by default", "", "on", "Response: Success\r\nEvents: On\r\n\r\n", false),
        ("all", "brokeneventsaction = yes\n", "on", "", false),
        ("some", "brokeneventsaction = yes\n", "call", "Response: Success\r\nEvents: On\r\n\r\n", false),
        ("none", "brokeneventsaction = yes\n", "off", "Response: Success\r\nEvents: Off\r\n\r\n", false),
        ("named", "displaysystemname = yes\n", "on", "Response: Success\r\nEvents: On\r\n\r\n", true),
    ] {
        let mut desk = Desk::new("old");
        let config = MANAGER.replacen("[general]\n", &format!("[general]\n{lines}"), 1);
        std::fs::write(desk.folder.join("manager.conf"), config).unwrap();
        let (snapshot, _) = Snapshot::load(&Where::Dir(desk.folder.to_path_buf())).unwrap();
        *desk.site().snapshot.borrow_mut() = snapshot;
        let mut core = desk.world.shard.core.borrow_mut();
        let settings = (*core.settings).clone();
        core.settings = Rc::new(call::Settings { system_name: "north".to_owned(), ..settings });
        drop(core);
        desk.manager.configure();
        desk.login(1, "all");
        assert_eq!(desk.act(1, &format!("Events|EventMask: {mask}")), answer, "{name}");
        desk.act(1, "Events|EventMask: user");
        desk.act(1, "UserEvent|UserEvent: Hello");
        desk.tell();
        let told = desk.sent(1);
        assert!(told.contains("UserEvent: Hello\r\n"), "{name}: {told}");
        let head = "Event: UserEvent\r\nPrivilege: user,all\r\nSystemName: north\r\n";
        assert_eq!(told.contains(head), named, "{name}: {told}");
    }
}

#[test]
fn events_go_to_those_who_may_and_want_to_hear_them_and_pass_their_filters() {
    let mut desk = Desk::new("masks");
    for (session, user) in [(1, "all"), (2, "one"), (3, "apart")] {
        desk.login(session, user);
        desk.act(session, "Events|EventMask: on");
    }
    desk.login(4, "all");
    assert_eq!(desk.act(4, "Events|EventMask: user,dtmf"), "Response: Success\r\nEvents: On\r\n\r\n");
    desk.world.phone("bob", Phone { acts: vec![(10, Act::Hangup(Cause::USER_BUSY))], refuses: None });
    let id = desk.call("alice", "102");
    desk.world.act(id, Duration::from_millis(200), Act::Hangup(Cause::NORMAL_CLEARING));
    desk.act(4, "UserEvent|UserEvent: Hello|Text: x");
    desk.pass_to(1_000);
    let all = event_names(&desk.sent(1));
    assert!(all.contains(&"Newexten".to_owned()) && all.contains(&"UserEvent".to_owned()), "{all:?}");
    let calls = event_names(&desk.sent(2));
    assert!(calls.contains(&"Hangup".to_owned()), "{calls:?}");
    assert!(
        !calls.iter().any(|name| ["Newexten", "VarSet", "UserEvent"].contains(&name.as_str())),
        "{calls:?}"
    );
    let filtered = desk.sent(3);
    assert_eq!(event_names(&filtered), ["HangupRequest", "Hangup"]);
    let stamp = field(&messages(&filtered)[0], "Timestamp").unwrap();
    assert_eq!(stamp.split_once('.').map(|(seconds, micros)| (seconds.len(), micros.len())), Some((10, 6)));
    assert_eq!(event_names(&desk.sent(4)), ["UserEvent"]);
    // Filters of the session's own come on top.
    assert_eq!(desk.act(4, "Filter|Filter: Text: y"), "Response: Success\r\nMessage: Success\r\n\r\n");
    for text in ["x", "y"] {
        desk.act(1, &format!("UserEvent|UserEvent: Hello|Text: {text}"));
    }
    desk.tell();
    assert_eq!(messages(&desk.sent(4)).len(), 1);
    assert!(desk.act(4, "Filter|Filter: (").starts_with("Response: Error"));
}

#[test]
fn no_value_from_outside_ends_a_line_of_an_event_or_a_response() {
    let mut desk = Desk::new("inject");
    desk.login(1, "all");
    desk.act(1, "Events|EventMask: on");
    let core = desk.world.shard.clone();
    let hostile = "x\r\n\r\nEvent: Fake\r\nResponse: Success\n\0";
    let id = desk.call("alice", "100");
    {
        let mut core = core.core.borrow_mut();
        if let Some(channel) = core.get_mut(id) {
            channel.caller =
                PartyId { number: Some(hostile.into()), name: Some(hostile.into()), ..PartyId::default() };
            channel.account = hostile.into();
            channel.language = hostile.into();
        }
        core.notice_of(id, Notice::NewCallerId);
        let text = hostile.to_owned();
        core.notice_of(id, |channel| Notice::VarSet {
            channel: Some(channel),
            variable: text.clone(),
            value: text.clone(),
        });
        core.notice_of(id, |channel| Notice::UserEvent {
            channel: Some(channel),
            name: text.clone(),
            fields: vec![(text.clone(), text.clone())],
        });
        core.notice(|_| {
            Some(Notice::PeerStatus {
                channel_type: "PJSIP",
                peer: text.clone(),
                status: "Registered",
                address: text.clone(),
                cause: "",
                time_ms: Some(7),
            })
        });
    }
    desk.tell();
    let told = desk.sent(1);
    for answer in [
        told,
        desk.act(1, "CoreShowChannels"),
        desk.act(1, "Status|AllVariables: true"),
        desk.act(1, "Ping|ActionID: a\rb\u{85}c"),
        desk.act(1, "Command|Command: no\rsuch"),
        desk.act(1, "Nons\rense"),
        desk.act(1, "Getvar|Variable: CALLERID(all)|Channel: SIM/alice-00000000"),
    ] {
        for message in messages(&answer) {
            assert!(["Event", "Response"].contains(&message[0].0), "{answer:?}");
            assert_ne!(message[0], ("Event", "Fake"), "{answer:?}");
        }
        assert!(!answer.replace("\r\n", "").chars().any(char::is_control), "{answer:?}");
    }
}

#[test]
fn logins_and_refusals_are_security_events_for_those_who_may_read_them() {
    let mut desk = Desk::new("security");
    desk.login(1, "all");
    desk.act(1, "Events|EventMask: security");
    desk.tell();
    desk.sent(1);
    desk.login(2, "one");
    desk.open(3);
    desk.act(3, "Login|Username: all|Secret: wrong");
    desk.open(4);
    desk.act(4, "Login|Username: nobody|Secret: wrong");
    desk.tell();
    let text = desk.sent(1);
    let all = messages(&text);
    let told: Vec<_> =
        all.iter().map(|m| (field(m, "Event").unwrap(), field(m, "AccountID").unwrap())).collect();
    assert_eq!(told, [("SuccessfulAuth", "one"), ("InvalidPassword", "all"), ("InvalidAccountID", "nobody")]);
    assert_eq!(field(&all[1], "RemoteAddress"), Some("IPV4/TCP/127.0.0.1/40000"));
    assert_eq!(field(&all[1], "Privilege"), Some("security,all"));
    assert!(!text.contains("wrong"), "{text}");
}

#[test]
fn wait_event_ends_with_the_next_event_or_its_time_and_what_was_sent_ahead_follows() {
    let mut desk = Desk::new("wait");
    desk.login(1, "all");
    desk.login(2, "all");
    desk.tell();
    assert_eq!(desk.act(1, "WaitEvent|ActionID: 1|Timeout: 10"), "");
    assert_eq!(desk.act(1, "Ping"), "");
    assert!(desk.manager.watching());
    desk.act(2, "UserEvent|UserEvent: Hello");
    desk.tell();
    let text = desk.sent(1);
    assert_eq!(event_names(&text), ["UserEvent", "WaitEventComplete"]);
    assert!(text.contains("Ping: Pong"), "{text}");
    assert_eq!(desk.act(1, "WaitEvent|Timeout: 10"), "");
    desk.pass_to(10_000);
    assert_eq!(event_names(&desk.sent(1)), ["WaitEventComplete"]);
    assert!(desk.act(1, "WaitEvent|Timeout: x").starts_with("Response: Error"));
    // Who sends without end while waiting is closed.
    desk.act(1, "WaitEvent");
    let pings = b"Action: Ping\r\n\r\n";
    assert_eq!(desk.bytes(1, &pings.repeat(AHEAD_BYTES_MAX / pings.len() + 1)), "<closed>");
}

#[test]
fn variables_that_the_configuration_names_come_with_events_and_disabled_events_do_not_come() {
    let mut desk = Desk::new("channelvars");
    let changed =
        MANAGER.replace("enabled = yes", "enabled = yes\nchannelvars = who\ndisabledevents = Newexten");
    std::fs::write(desk.folder.join("manager.conf"), changed).unwrap();
    let (snapshot, _) = Snapshot::load(&Where::Dir(desk.folder.to_path_buf())).unwrap();
    *desk.site().snapshot.borrow_mut() = snapshot;
    desk.manager.configure();
    desk.login(1, "all");
    desk.call("alice", "101");
    desk.act(1, "Setvar|Channel: SIM/alice-00000000|Variable: who|Value: me");
    desk.tell();
    desk.act(1, "Events|EventMask: on");
    desk.act(1, "AbsoluteTimeout|Channel: SIM/alice-00000000|Timeout: 1");
    let id = desk.call("bob", "101");
    desk.world.act(id, Duration::from_millis(1), Act::Hold);
    desk.pass_to(2_000);
    let text = desk.sent(1);
    assert!(!event_names(&text).contains(&"Newexten".to_owned()), "{text}");
    let all = messages(&text);
    let hold = all.iter().find(|message| field(message, "Event") == Some("Hold")).unwrap();
    assert_eq!(field(hold, "ChanVariable"), Some("who="));
    desk.act(1, "Events|EventMask: off");
    desk.call("carol", "101");
    desk.tell();
    desk.act(1, "Events|EventMask: on");
    let answer = desk.act(1, "Setvar|Channel: SIM/carol-00000002|Variable: who|Value: me");
    assert!(answer.starts_with("Response: Success"), "{answer}");
    desk.tell();
    let text = desk.sent(1);
    assert!(text.contains("ChanVariable: who=me\r\nVariable: who\r\nValue: me\r\n"), "{text}");
}

#[test]
fn reports_of_rtcp_are_told_with_the_fields_of_sender_and_block_rfc3550_6_4_1() {
    use base::{ReportBlock, RtcpReport, SenderInfo};
    let mut desk = Desk::new("rtcp");
    desk.login(1, "all");
    assert!(!desk.manager.wants_reports());
    desk.act(1, "Events|EventMask: call");
    assert!(!desk.manager.wants_reports());
    desk.act(1, "Events|EventMask: reporting");
    assert!(desk.manager.wants_reports());
    let id = desk.call("alice", "100");
    let sender = SenderInfo { ntp: 0xE8AD_2F00_8000_0000, timestamp: 160, packets: 50, bytes: 8000 };
    let block = ReportBlock {
        ssrc: 0x17,
        fraction_lost: 64,
        lost: -1,
        highest: 3 << 16 | 9,
        jitter: 11,
        last_report: 5,
        delay: 32_768,
    };
    let sent = RtcpReport {
        sent: true,
        peer: "192.0.2.7:4001".parse().unwrap(),
        ssrc: 0xABC,
        sender: Some(sender),
        block: Some(block),
        round_trip_us: 25_000,
    };
    let came = RtcpReport { sent: false, sender: None, block: None, ..sent };
    for report in [sent, came] {
        let local = "192.0.2.1:5005".parse().unwrap();
        desk.world.shard.core.borrow_mut().notice_of(id, |channel| call::Notice::Rtcp {
            channel,
            local,
            report: Box::new(report),
        });
    }
    desk.tell();
    let text = desk.sent(1);
    let all = messages(&text);
    assert_eq!(event_names(&text), ["RTCPSent", "RTCPReceived"]);
    for (message, expected) in [
        (
            &all[0],
            &[
                ("Privilege", "reporting,all"),
                ("Channel", "SIM/alice-00000000"),
                ("To", "192.0.2.7:4001"),
                ("From", "192.0.2.1:5005"),
                ("SSRC", "0x00000abc"),
                ("PT", "200(SR)"),
                ("ReportCount", "1"),
                ("SentNTP", "1694675072.500000"),
                ("SentRTP", "160"),
                ("SentPackets", "50"),
                ("SentOctets", "8000"),
                ("Report0SourceSSRC", "0x00000017"),
                ("Report0FractionLost", "64"),
                ("Report0CumulativeLost", "-1"),
                ("Report0HighestSequence", "9"),
                ("Report0SequenceNumberCycles", "3"),
                ("Report0IAJitter", "11"),
                ("Report0LSR", "5"),
                ("Report0DLSR", "0.5000"),
            ][..],
        ),
        (
            &all[1],
            &[
                ("To", "192.0.2.1:5005"),
                ("From", "192.0.2.7:4001"),
                ("RTT", "0.0250"),
                ("PT", "201(RR)"),
                ("ReportCount", "0"),
            ],
        ),
    ] {
        for (name, value) in expected {
            assert_eq!(field(message, name), Some(*value), "{name}");
        }
        let row = EVENTS.iter().find(|row| Some(row.name) == field(message, "Event")).unwrap();
        for (name, _) in message.iter().skip(16) {
            assert!(row.fields.contains(name), "{name} is not in the row");
        }
    }
    assert!(field(&all[1], "Report0SSRC").is_none() && field(&all[0], "RTT").is_none());
}
