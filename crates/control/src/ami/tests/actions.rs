//! What actions do.

use base::Cause;
use sim::{Act, Phone};

use super::*;
use crate::site::{Reloaded, Wish};

#[test]
fn channels_are_listed_moved_limited_and_hung_up() {
    let mut desk = Desk::new("channels");
    desk.login(1, "all");
    for (phone, exten) in [("alice", "100"), ("bob", "100"), ("carol", "101")] {
        desk.call(phone, exten);
    }
    desk.pass_to(100);
    let text = desk.act(1, "CoreShowChannels|ActionID: 5");
    let list = messages(&text);
    assert!(list.iter().all(|message| field(message, "ActionID") == Some("5")));
    assert_eq!(list.len(), 5);
    assert_eq!(field(&list[0], "EventList"), Some("start"));
    assert_eq!(field(&list[1], "Application"), Some("Wait"));
    assert_eq!((field(&list[4], "EventList"), field(&list[4], "ListItems")), (Some("Complete"), Some("3")));

    let text = desk.act(1, "Status|Channel: SIM/bob-00000001|Variables: CALLERID(num),EXTEN");
    let status = &messages(&text)[1];
    assert_eq!(field(status, "Channel"), Some("SIM/bob-00000001"));
    assert!(text.contains("Variable: CALLERID(num)=6001\r\nVariable: EXTEN=100\r\n"), "{text}");

    for (act, expected) in [
        (
            "Redirect|Channel: SIM/carol-00000002|Context: default|Exten: 100|Priority: talk",
            "Redirect successful",
        ),
        ("AbsoluteTimeout|Channel: SIM/carol-00000002|Timeout: 5", "Timeout Set"),
        ("PlayDTMF|Channel: SIM/carol-00000002|Digit: 5", "DTMF successfully queued"),
        ("PlayDTMF|Channel: SIM/carol-00000002|Digit: Z", "DTMF successfully queued"),
        ("PlayMF|Channel: SIM/carol-00000002|Digit: *", "MF successfully queued"),
        ("PlayMF|Channel: SIM/carol-00000002|Digit: 5|Duration: 100", "MF successfully queued"),
        ("Hangup|Channel: SIM/alice-00000000|Cause: 17", "Channel Hungup"),
    ] {
        assert_eq!(desk.act(1, act), format!("Response: Success\r\nMessage: {expected}\r\n\r\n"), "{act}");
    }
    let done = desk.act(1, "ControlPlayback|Channel: SIM/carol-00000002|Control: Forward");
    assert_eq!(done, "Response: Success\r\n\r\n");
    for (act, expected) in [
        // Each action has words of its own for what is missing and for who is not there.
        ("Hangup", "No channel specified"),
        ("Redirect|Context: default|Exten: 100|Priority: 1", "Channel not specified"),
        (
            "Redirect|Channel: SIM/nobody|Context: default|Exten: 100|Priority: 1",
            "Channel does not exist: SIM/nobody",
        ),
        ("BridgeKick", "Channel must be provided"),
        ("BridgeKick|Channel: SIM/nobody", "Channel does not exist"),
        ("BridgeInfo", "BridgeUniqueid must be provided"),
        ("BridgeInfo|BridgeUniqueid: none", "Specified BridgeUniqueid not found"),
        ("LocalOptimizeAway", "'Channel' not specified."),
        ("LocalOptimizeAway|Channel: SIM/nobody", "Channel does not exist."),
        ("PlayDTMF|Digit: 1", "Channel not found"),
        ("PlayDTMF|Channel: SIM/nobody|Digit: 1", "Channel not found"),
        ("Atxfer|Channel: SIM/nobody|Exten: 1", "Channel specified does not exist"),
        ("Bridge|Channel1: SIM/nobody", "Missing channel parameter in request"),
        ("Getvar", "No variable specified"),
        ("PresenceState", "No provider specified"),
        ("PresenceState|Provider: Nothing:x", "Invalid provider Nothing:x or provider in invalid state"),
        ("ExtensionState", "Extension not specified"),
        ("MixMonitor|File: x.wav", "No channel specified"),
        ("Filter|Operation: Add", "Filter was formatted incorrectly.  Check the syntax of the filter given."),
        ("SorceryMemoryCacheExpire|Cache: none", "The provided cache does not exist\n"),
        ("Hangup|Channel: SIM/nobody", "No such channel"),
        ("Hangup|Channel: SIM/bob-00000001|Cause: 300", "Invalid cause"),
        (
            "Redirect|Channel: SIM/bob-00000001|Context: default|Exten: 100|Priority: nowhere",
            "Redirect failed",
        ),
        ("ControlPlayback|Channel: SIM/bob-00000001|Control: dance", "Unknown control type"),
        ("AbsoluteTimeout|Channel: SIM/bob-00000001|Timeout: NaN", "No timeout specified"),
        ("MailboxCount", "Mailbox not specified"),
        ("MWIUpdate|Mailbox: 1|NewMessages: -1", "Invalid NewMessages"),
    ] {
        let answer = desk.act(1, act);
        assert!(answer.starts_with(&format!("Response: Error\r\nMessage: {expected}")), "{act}: {answer}");
    }
    desk.pass_to(200);
    let core = desk.world.shard.clone();
    assert_eq!(core.core.borrow().by_name("SIM/alice-00000000"), None);
    let carol = core.core.borrow().by_name("SIM/carol-00000002").unwrap();
    assert_eq!(core.core.borrow().get(carol).unwrap().location.exten, "100");
    desk.pass_to(5_100);
    assert_eq!(core.core.borrow().by_name("SIM/carol-00000002"), None, "its time is up");
    let text = desk.act(1, "Hangup|Channel: /^SIM\\/.*$/");
    assert_eq!(event_names(&text), ["ChannelHungup", "ChannelsHungupListComplete"]);
    desk.pass_to(5_200);
    assert_eq!(core.core.borrow().channel_count(), 0);
}

#[test]
fn originate_answers_when_the_call_has_come_to_something_and_what_was_sent_ahead_waits() {
    let mut desk = Desk::new("originate");
    desk.world.phone("bob", Phone { acts: vec![(100, Act::Ring), (1_000, Act::Answer)], refuses: None });
    desk.world.phone("busy", Phone { acts: vec![(100, Act::Hangup(Cause::USER_BUSY))], refuses: None });
    desk.login(1, "all");
    let place = "Context: default|Exten: 100|Priority: 1";
    let text = desk.act(1, &format!(
        "Originate|ActionID: 1|Channel: SIM/bob|{place}|CallerID: Boss <100>|Account: acc|ChannelId: own-1\
         |Variable: a=1,b=2|Variable: CHANNEL(language)=de"));
    assert_eq!(text, "");
    assert_eq!(desk.act(1, "Ping|ActionID: 2"), "", "it waits for its turn");
    desk.pass_to(999);
    assert_eq!(desk.sent(1), "");
    desk.pass_to(1_000);
    let text = desk.sent(1);
    let answers = messages(&text);
    assert_eq!(
        answers[0],
        [("Response", "Success"), ("ActionID", "1"), ("Message", "Originate successfully queued")]
    );
    assert_eq!(field(&answers[1], "ActionID"), Some("2"));
    let text = desk.act(1, "Status|Channel: own-1|AllVariables: true");
    for line in [
        "Variable: a=1",
        "Variable: b=2",
        "Variable: WHO=all",
        "Language: de",
        "AccountCode: acc",
        "CallerIDNum: 100",
        "Exten: 100",
    ] {
        assert!(text.contains(&format!("{line}\r\n")), "{line}: {text}");
    }
    desk.act(1, &format!("Originate|ActionID: 3|Channel: SIM/busy|{place}"));
    desk.pass_to(2_000);
    assert_eq!(desk.sent(1), "Response: Error\r\nActionID: 3\r\nMessage: Originate failed\r\n\r\n");

    desk.act(1, "Events|EventMask: call");
    let text = desk.act(1, "Originate|ActionID: 4|Async: true|Channel: SIM/busy|Application: Wait|Data: 1");
    assert_eq!(text, "Response: Success\r\nActionID: 4\r\nMessage: Originate successfully queued\r\n\r\n");
    desk.pass_to(3_000);
    let text = desk.sent(1);
    let all = messages(&text);
    let response = all.iter().find(|message| field(message, "Event") == Some("OriginateResponse")).unwrap();
    let told = ["ActionID", "Response", "Reason"].map(|name| field(response, name));
    assert_eq!(told, [Some("4"), Some("Failure"), Some("0")]);
}

#[test]
fn originate_in_its_other_forms_runs_a_routine_before_and_names_both_halves_of_a_local_channel() {
    let mut desk = Desk::new("originate-forms");
    desk.world.phone("bob", Phone { acts: vec![(100, Act::Answer)], refuses: None });
    desk.login(1, "all");
    desk.act(
        1,
        "Originate|Async: true|Channel: SIM/bob|Application: Wait|Data: 9|PreDialGoSub: more,before,1(a,b)\
         |ChannelId: own-1",
    );
    desk.pass_to(1_000);
    let answer = desk.act(1, "Getvar|Channel: own-1|Variable: BEFORE");
    assert!(answer.contains("Value: a-b"), "{answer}");
    assert!(desk.act(1, "Originate|Channel: SIM/bob|Application: Wait|PreDialGoSub: a,b").contains("Error"));
    desk.act(1, "Events|EventMask: call");
    desk.act(
        1,
        "Originate|ActionID: 9|Async: true|Channel: Local/100@default|Application: Wait|Data: 9|ChannelId: one\
         |OtherChannelId: two|CallerID: Boss <7>",
    );
    desk.pass_to(2_000);
    let text = desk.sent(1);
    let all = messages(&text);
    let of = |name: &str| all.iter().find(|message| field(message, "Event") == Some(name)).unwrap();
    let bridge = of("LocalBridge");
    assert_eq!(
        (field(bridge, "LocalOneUniqueid"), field(bridge, "LocalTwoUniqueid")),
        (Some("one"), Some("two"))
    );
    let order = |name: &str| all.iter().position(|message| field(message, "Event") == Some(name)).unwrap();
    assert!(order("Newchannel") < order("LocalBridge") && order("LocalBridge") < order("OriginateResponse"));
    let response = of("OriginateResponse");
    for (name, value) in [
        ("ActionID", "9"),
        ("Response", "Success"),
        ("Application", "Wait"),
        ("Data", "9"),
        ("Reason", "4"),
        ("Uniqueid", "one"),
        ("CallerIDNum", "7"),
        ("CallerIDName", "Boss"),
    ] {
        assert_eq!(field(response, name), Some(value), "{name}");
    }
    assert_eq!(field(response, "Context"), None, "that is told of an extension");
    let text = desk.act(1, "CoreShowChannelMap|Channel: one");
    assert_eq!(event_names(&text), ["CoreShowChannelMap", "CoreShowChannelMapComplete"]);
    let half = field(&messages(&text)[1], "ConnectedChannel").unwrap().to_owned();
    let asked = field(&messages(&text)[1], "Channel").unwrap().to_owned();
    assert_eq!(asked.strip_suffix(";1"), half.strip_suffix(";2"));
    assert!(half.starts_with("Local/100@default-") && half.ends_with(";2"), "{half}");
    for (act, expected) in [
        (format!("LocalOptimizeAway|Channel: {half}"), "Queued channel to be optimized away"),
        (format!("SendText|Channel: {half}|Message: hello"), "Success"),
        (format!("PlayDTMF|Channel: {half}|Digit: 5|Receive: true"), "DTMF successfully queued"),
    ] {
        let answer = desk.act(1, &act);
        assert!(answer.contains(&format!("Response: Success\r\nMessage: {expected}\r\n")), "{act}: {answer}");
    }
    assert!(desk.act(1, "LocalOptimizeAway|Channel: own-1").contains("Error"));
    let now = desk.world.now().as_millis();
    desk.pass_to(now + 10);
    assert!(!event_names(&desk.sent(1)).contains(&"DTMFEnd".to_owned()), "its class is not heard");
}

#[test]
fn legacy_names_of_actions_and_registrations_answer() {
    let mut desk = Desk::new("legacy");
    desk.login(1, "all");
    for (act, expected) in [
        ("SIPshowpeer|Peer: 6001", "ObjectName: 6001"),
        ("SIPshowpeer|Peer: 6001", "Address-IP: 192.0.2.7\r\nAddress-Port: 5070"),
        ("SIPshowpeer|Peer: nobody", "Message: Peer nobody not found."),
        ("SIPqualifypeer|Peer: 6001", "Message: SIP peer qualified"),
        ("PJSIPShowAuths", "ObjectName: 6001\r\nUsername: user6001"),
        ("PJSIPShowRegistrationsOutbound", "OutboundRegistrationDetailComplete"),
        ("PJSIPShowRegistrationsInbound", "ObjectName: 6002"),
        ("PJSIPShowRegistrationInboundContactStatuses", "ContactStatusDetailComplete"),
        ("PJSIPShowResourceLists", "ResourceListDetailComplete"),
        ("PJSIPRegister|Registration: none", "Message: Unable to retrieve registration entry"),
        ("PJSIPUnregister|Registration: *all", "Message: Unregistrations queued."),
        ("ModuleLoad|Module: app_dial.so|LoadType: load", "Message: Module loaded."),
        ("ModuleLoad|Module: app_nonsense.so|LoadType: load", "Message: Module not found."),
        ("ModuleLoad|Module: app_dial|LoadType: nonsense", "Message: Module not found."),
        ("ModuleLoad|Module: app_dial.so|LoadType: unload", "Message: Could not unload module."),
        ("ModuleLoad|LoadType: unload", "Message: Need module name."),
        ("ModuleCheck", "Message: Module not loaded"),
        ("DBPut|Family: f|Key: a/b|Val: 1", "Updated database"),
        ("DBGetTree|Family: f|Key: a", "Key: /f/a/b\r\nVal: 1"),
        ("DBGetTree|Family: nothing", "Event: DBGetTreeComplete\r\nEventList: Complete\r\nListItems: 0"),
        ("BridgeTechnologyList", "BridgeTechnology: softmix"),
    ] {
        let answer = desk.act(1, act);
        assert!(answer.contains(expected), "{act}: {answer}");
        assert!(!answer.contains("very secret words"), "{act}");
    }
}

#[test]
fn steps_are_added_to_the_dialplan_and_taken_away_while_calls_go_on() {
    let mut desk = Desk::new("extensions");
    desk.login(1, "all");
    desk.call("alice", "100");
    desk.pass_to(10);
    let place = "Context: default|Extension: 700";
    for (act, answer) in [
        (
            format!("DialplanExtensionAdd|{place}|Priority: 1|Application: Answer"),
            "Added requested extension",
        ),
        (
            format!("DialplanExtensionAdd|{place}|Priority: x|Application: Answer"),
            "The priority specified was invalid.",
        ),
        (
            format!("DialplanExtensionAdd|{place}|Priority: 1"),
            "Context, Extension, Priority, and Application must be defined for DialplanExtensionAdd.",
        ),
        (
            format!("DialplanExtensionAdd|{place}|Priority: 2(talk)|Application: Wait|ApplicationData: 600"),
            "Added requested extension",
        ),
        (
            format!("DialplanExtensionAdd|{place}|Priority: 2|Application: Hangup"),
            "That extension and priority already exist at that context",
        ),
        (format!("DialplanExtensionAdd|{place}|Priority: 3|Application: Frob"), "Unknown application 'Frob'"),
        (
            "DialplanExtensionRemove|Context: default|Extension: 799".to_owned(),
            "Failed to remove requested extension",
        ),
    ] {
        let said = desk.act(1, &act);
        assert!(said.contains(&format!("Message: {answer}")), "{act}: {said}");
    }
    desk.call("bob", "700");
    let now = desk.world.now().as_millis();
    desk.pass_to(now + 100);
    {
        let core = desk.world.shard.core.borrow();
        let apps: Vec<&str> = core.channels().map(|channel| channel.app).collect();
        assert_eq!(apps, ["Wait", "Wait"]);
    }
    let text = desk.act(1, "ShowDialPlan|Context: default|Extension: 700");
    assert_eq!(messages(&text).last().and_then(|m| field(m, "ListPriorities")), Some("2"), "{text}");
    for (act, answer) in [
        (
            format!("DialplanExtensionRemove|{place}|Priority: 2"),
            "Removed the requested priority from the extension",
        ),
        (format!("DialplanExtensionRemove|{place}"), "Removed the requested extension"),
        (format!("DialplanExtensionRemove|{place}"), "Failed to remove requested extension"),
    ] {
        let said = desk.act(1, &act);
        assert!(said.contains(&format!("Message: {answer}")), "{act}: {said}");
    }
    let now = desk.world.now().as_millis();
    desk.pass_to(now + 100);
    assert_eq!(desk.world.shard.core.borrow().channel_count(), 2, "calls go on in the step they are in");
}

#[test]
fn early_media_is_enough_when_it_is_asked_for() {
    let mut desk = Desk::new("early");
    desk.world.phone("bob", Phone { acts: vec![(100, Act::Progress)], refuses: None });
    desk.login(1, "all");
    for (early, at, expected) in [("true", 200, "Success"), ("false", 2_000, "Error")] {
        desk.act(
            1,
            &format!(
                "Originate|Channel: SIM/bob|Timeout: 1000|EarlyMedia: {early}|Application: Wait|Data: 9"
            ),
        );
        desk.pass_to(at);
        assert!(desk.sent(1).starts_with(&format!("Response: {expected}\r\n")), "{early}");
    }
}

#[test]
fn variables_are_read_and_written_on_channels_and_globally() {
    let mut desk = Desk::new("variables");
    desk.login(1, "all");
    desk.call("alice", "100");
    let on = "Channel: SIM/alice-00000000";
    for (act, expected) in [
        (format!("Setvar|{on}|Variable: x|Value: 1"), "Message: Variable Set"),
        (format!("Getvar|{on}|Variable: x"), "Variable: x\r\nValue: 1"),
        (format!("Getvar|{on}|Variable: CALLERID(num)"), "Variable: CALLERID(num)\r\nValue: 6001"),
        (format!("Setvar|{on}|Variable: CALLERID(num)|Value: 7"), "Message: Variable Set"),
        (format!("Getvar|{on}|Variable: CALLERID(num)"), "Variable: CALLERID(num)\r\nValue: 7"),
        (format!("Getvar|{on}|Variable: nothing"), "Variable: nothing\r\nValue: "),
        ("Setvar|Variable: g|Value: 2".to_owned(), "Message: Variable Set"),
        ("Getvar|Variable: g".to_owned(), "Variable: g\r\nValue: 2"),
        (format!("Getvar|{on}|Variable: LEN(${{x}})"), "Variable: LEN(${x})\r\nValue: 4"),
    ] {
        assert_eq!(desk.act(1, &act), format!("Response: Success\r\n{expected}\r\n\r\n"), "{act}");
    }
}

#[test]
fn what_people_say_of_themselves_is_set_told_and_listed() {
    let mut desk = Desk::new("presence");
    desk.login(1, "all");
    desk.act(1, "Events|EventMask: on");
    desk.act(1, "Setvar|Variable: PRESENCE_STATE(CustomPresence:alice)|Value: away,lunch,\"Back, soon\"");
    desk.tell();
    let told = desk.sent(1);
    let said = "Status: away\r\nSubtype: lunch\r\nMessage: Back, soon\r\n";
    assert!(told.contains("Event: PresenceStateChange\r\n") && told.contains(said), "{told}");
    assert!(told.contains("Presentity: CustomPresence:alice\r\n"), "{told}");
    let answer = desk.act(1, "PresenceState|Provider: CustomPresence:alice");
    assert!(
        answer.contains(
            "Message: Presence State\r\nState: away\r\nSubtype: lunch\r\nPresenceMessage: Back, soon\r\n"
        ),
        "{answer}"
    );
    let list = desk.act(1, "PresenceStateList");
    assert!(list.contains(said) && list.contains("Event: PresenceStateListComplete\r\n"), "{list}");
    assert!(desk.act(1, "PresenceState|Provider: Custom:lamp").contains("Response: Error"));
    desk.act(1, "Setvar|Variable: PRESENCE_STATE(CustomPresence:alice)|Value: away,lunch,\"Back, soon\"");
    desk.tell();
    assert!(!desk.sent(1).contains("PresenceStateChange"), "nothing has changed");
}

#[test]
fn the_database_the_hints_and_the_dialplan_are_within_reach() {
    let mut desk = Desk::new("plan");
    desk.login(1, "all");
    let ok = |text: &str| format!("Response: Success\r\nMessage: {text}\r\n\r\n");
    assert_eq!(desk.act(1, "DBPut|Family: f|Key: k|Val: v: w"), ok("Updated database successfully"));
    let text = desk.act(1, "DBGet|Family: f|Key: k");
    assert_eq!(event_names(&text), ["DBGetResponse", "DBGetComplete"]);
    assert_eq!(field(&messages(&text)[1], "Val"), Some("v: w"));
    assert_eq!(desk.act(1, "DBDel|Family: f|Key: k"), ok("Key deleted successfully"));
    assert_eq!(desk.act(1, "DBDel|Family: f|Key: k"), error("Database entry could not be deleted"));
    assert_eq!(desk.act(1, "DBGet|Family: f|Key: k"), error("Database entry not found"));
    assert_eq!(desk.act(1, "DBDelTree|Family: f"), error("Database entry not found"));

    desk.act(1, "Setvar|Variable: DEVICE_STATE(Custom:lamp)|Value: INUSE");
    let site = desk.site();
    site.hints.borrow_mut().update(&site.shard);
    let text = desk.act(1, "ExtensionState|Exten: 6001|Context: default");
    let state =
        ["Exten", "Context", "Hint", "Status", "StatusText"].map(|name| field(&messages(&text)[0], name));
    assert_eq!(state, [Some("6001"), Some("default"), Some("Custom:lamp"), Some("1"), Some("InUse")]);
    let text = desk.act(1, "ExtensionState|Exten: 1|Context: default");
    assert_eq!(field(&messages(&text)[0], "Status"), Some("-1"));
    assert_eq!(
        event_names(&desk.act(1, "ExtensionStateList")),
        ["ExtensionStatus", "ExtensionStateListComplete"]
    );
    let text = desk.act(1, "DeviceStateList");
    assert!(
        text.contains("Device: Custom:lamp\r\nState: INUSE\r\n") && text.contains("Device: PJSIP/6001\r\n"),
        "{text}"
    );

    let text = desk.act(1, "ShowDialPlan|Context: default");
    let last = messages(&text).pop().unwrap();
    let counts =
        ["ListItems", "ListExtensions", "ListPriorities", "ListContexts"].map(|name| field(&last, name));
    assert_eq!(counts, [Some("7"), Some("6"), Some("7"), Some("1")]);
    assert!(desk.act(1, "ShowDialPlan|Context: none").starts_with("Response: Error"));
}

#[test]
fn sip_endpoints_are_listed_in_the_forms_of_both_drivers() {
    let mut desk = Desk::new("sip");
    desk.login(1, "all");
    for (act, events) in [
        ("PJSIPShowEndpoints", vec!["EndpointList", "EndpointList", "EndpointListComplete"]),
        (
            "PJSIPShowEndpoint|Endpoint: 6001",
            vec![
                "EndpointDetail",
                "AuthDetail",
                "AorDetail",
                "ContactStatusDetail",
                "EndpointDetailComplete",
            ],
        ),
        ("PJSIPShowAors", vec!["AorList", "AorList", "AorListComplete"]),
        // None has registered.
        ("PJSIPShowContacts", vec![]),
        ("SIPpeers", vec!["PeerEntry", "PeerEntry", "PeerlistComplete"]),
        ("PJSIPShowEndpoint|Endpoint: nobody", vec![]),
        ("PJSIPQualify|Endpoint: nobody", vec![]),
    ] {
        let text = desk.act(1, act);
        assert_eq!(event_names(&text), events, "{act}: {text}");
        assert_eq!(text.starts_with("Response: Error"), events.is_empty(), "{act}");
    }
    let text = desk.act(1, "SIPpeers");
    assert!(
        text.contains("ObjectName: 6001\r\n") && text.contains("IPaddress: 192.0.2.7\r\nIPport: 5070\r\n"),
        "{text}"
    );
    assert!(desk.act(1, "PJSIPQualify|Endpoint: 6001").starts_with("Response: Success"));
    for (act, why) in [
        ("PJSIPShowEndpoint", "PJSIPShowEndpoint requires an endpoint name"),
        ("PJSIPShowEndpoint|Endpoint: zz", "Unable to retrieve endpoint zz"),
        ("PJSIPQualify", "Endpoint parameter missing."),
        ("PJSIPQualify|Endpoint: zz", "Unable to retrieve endpoint\n"),
    ] {
        assert_eq!(desk.act(1, act), error(why), "{act}");
    }
}

#[test]
fn console_commands_reload_and_rotation_are_passed_on() {
    let mut desk = Desk::new("system");
    desk.login(1, "all");
    let text = desk.act(1, "Command|ActionID: 1|Command: core show uptime");
    assert_eq!(
        text,
        "Response: Success\r\nActionID: 1\r\nMessage: Command output follows\r\n\
        Output: System uptime: 1 second\r\nOutput: Last reload: 1 second\r\n\r\n"
    );
    assert!(desk.act(1, "Command|Command: nonsense").starts_with(
        "Response: Error\r\nMessage: Command output follows\r\nOutput: No such command 'nonsense'"
    ));
    let site = desk.site();
    assert!(desk.act(1, "Reload|Module: chan_pjsip.so").starts_with("Response: Success"));
    desk.act(1, "LoggerRotate");
    assert_eq!(*site.wishes.borrow(), [Wish::Reload { module: "chan_pjsip".into() }, Wish::RotateLogs]);
    *site.reload.borrow_mut() =
        Some(Box::new(|_| Reloaded { taken: false, said: vec!["pjsip.conf:3: wrong\nremedy".into()] }));
    assert_eq!(desk.act(1, "Reload"), error("Reload failed: pjsip.conf:3: wrong remedy"));
    assert!(desk.act(1, "CoreSettings").contains("AMIversion: 12.0.0\r\n"));
    assert!(desk.act(1, "CoreStatus").contains("CoreCurrentCalls: 0\r\n"));
    assert!(desk.act(1, "ModuleCheck|Module: app_dial.so").starts_with("Response: Success"));
    assert_eq!(desk.act(1, "ModuleCheck|Module: app_nonsense"), error("Module not loaded"));
}

#[test]
fn whose_video_is_seen_is_chosen_and_told() {
    let mut desk = Desk::new("video");
    desk.login(1, "all");
    desk.act(1, "Events|EventMask: on");
    let ids: Vec<_> = ["alice", "bob"].iter().map(|phone| desk.call(phone, "110")).collect();
    desk.pass_to(2_000);
    for (at, id) in (100..).zip(&ids) {
        let camera = base::StreamId::new(at, 1);
        desk.world.shard.core.borrow_mut().set_passed(*id, vec![Some(camera)]);
    }
    desk.sent(1);
    let answer = desk.act(1, "ConfbridgeSetSingleVideoSrc|Conference: room|Channel: SIM/bob-00000001");
    assert!(answer.contains("Message: Conference single video source set."), "{answer}");
    desk.pass_to(2_500);
    let text = format!("{answer}{}", desk.sent(1));
    let update = messages(&text).into_iter().find(|m| field(m, "Event") == Some("BridgeVideoSourceUpdate"));
    let update = update.unwrap_or_else(|| panic!("{text}"));
    let bob = desk.world.shard.core.borrow().get(ids[1]).unwrap().uniqueid.to_string();
    for (name, value) in [
        ("BridgeName", "room"),
        ("BridgeNumChannels", "3"),
        ("BridgeVideoSourceMode", "single"),
        ("BridgeVideoSource", &bob),
        ("BridgePreviousVideoSource", ""),
    ] {
        assert_eq!(field(&update, name), Some(value), "{name}: {text}");
    }
    desk.world.hang_up(ids[1]);
    desk.pass_to(3_000);
    let text = desk.sent(1);
    let mut updates =
        messages(&text).into_iter().filter(|m| field(m, "Event") == Some("BridgeVideoSourceUpdate"));
    let last = updates.next_back().unwrap_or_else(|| panic!("{text}"));
    assert_eq!(field(&last, "BridgeVideoSource"), None);
    assert_eq!(field(&last, "BridgePreviousVideoSource"), Some(&*bob));
    // Nobody else is chosen in its place.
    assert_eq!(field(&last, "BridgeVideoSourceMode"), Some("single"));
}

#[test]
fn conferences_are_listed_and_members_muted_and_sent_out_with_events_of_each() {
    let mut desk = Desk::new("conferences");
    desk.login(1, "all");
    desk.act(1, "Events|EventMask: on");
    for phone in ["alice", "bob"] {
        desk.call(phone, "110");
    }
    desk.pass_to(2_000);
    let text = desk.sent(1);
    let names = event_names(&text);
    for (name, count) in [("ConfbridgeStart", 1), ("ConfbridgeJoin", 2)] {
        assert_eq!(names.iter().filter(|known| *known == name).count(), count, "{name}: {names:?}");
    }
    let join = messages(&text).into_iter().find(|m| field(m, "Event") == Some("ConfbridgeJoin")).unwrap();
    for (name, value) in [
        ("Conference", "room"),
        ("BridgeTechnology", "softmix"),
        ("BridgeName", "room"),
        // Who announces is in it, too.
        ("BridgeNumChannels", "2"),
        // Who called first was told that he is alone before he entered.
        ("Channel", "SIM/bob-00000001"),
        ("Admin", "No"),
        ("Muted", "No"),
    ] {
        assert_eq!(field(&join, name), Some(value), "{name}");
    }
    let text = desk.act(1, "ConfbridgeListRooms");
    let rooms = messages(&text);
    assert_eq!((field(&rooms[1], "Conference"), field(&rooms[1], "Parties")), (Some("room"), Some("2")));
    let text = desk.act(1, "ConfbridgeList|Conference: room");
    let list = messages(&text);
    assert_eq!((list.len(), field(&list[2], "Channel")), (4, Some("SIM/bob-00000001")));
    for (act, expected, event) in [
        ("ConfbridgeMute|Conference: room|Channel: SIM/bob-00000001", "User muted", "ConfbridgeMute"),
        ("ConfbridgeUnmute|Conference: room|Channel: all", "User unmuted", "ConfbridgeUnmute"),
        ("ConfbridgeKick|Conference: room|Channel: SIM/bob-00000001", "User kicked", "ConfbridgeLeave"),
    ] {
        let answer = desk.act(1, act);
        assert!(answer.contains(&format!("Response: Success\r\nMessage: {expected}\r\n")), "{act}: {answer}");
        let now = desk.world.now().as_millis();
        desk.pass_to(now + 500);
        let told = format!("{answer}{}", desk.sent(1));
        assert!(event_names(&told).iter().any(|name| name == event), "{act}: {told}");
    }
    for (act, expected) in [
        ("ConfbridgeLock|Conference: other", "No Conference by that name found."),
        (
            "ConfbridgeMute|Conference: room|Channel: SIM/nobody",
            "No Channel by that name found in Conference.",
        ),
    ] {
        let answer = desk.act(1, act);
        assert!(answer.starts_with(&format!("Response: Error\r\nMessage: {expected}")), "{act}: {answer}");
    }
    let rooms = desk.act(1, "MeetmeListRooms");
    assert_eq!(field(&messages(&rooms)[1], "Creation"), Some("Dynamic"), "{rooms}");
    let list = desk.act(1, "MeetmeList|Conference: room");
    let item = &messages(&list)[1];
    for (name, value) in
        [("UserNumber", "1"), ("Role", "Talk and listen"), ("Muted", "No"), ("Talking", "Not monitored")]
    {
        assert_eq!(field(item, name), Some(value), "{name}: {list}");
    }
    let mut told = String::new();
    for (act, expected) in [
        ("MeetmeMute|Meetme: room|Usernum: 1", "Response: Success\r\nMessage: User muted"),
        ("MeetmeUnmute|Meetme: room|Usernum: 1", "Response: Success\r\nMessage: User unmuted"),
        ("MeetmeMute|Meetme: room|Usernum: 9", "Response: Error\r\nMessage: User number not found"),
        ("MeetmeMute|Meetme: other|Usernum: 1", "Response: Error\r\nMessage: Meetme conference not found"),
        ("ConfbridgeStartRecord|Conference: room|RecordFile: /x/kept.wav", "Conference Recording Started."),
        ("ConfbridgeStartRecord|Conference: room", "Conference is already being recorded."),
        ("ConfbridgeStopRecord|Conference: room", "Conference Recording Stopped."),
        ("ConfbridgeStopRecord|Conference: room", "Conference is not being recorded."),
        ("ConfbridgeStopRecord|Conference: other", "No Conference by that name found."),
        (
            "ConfbridgeSetSingleVideoSrc|Conference: room|Channel: SIM/alice-00000000",
            "Conference single video source set.",
        ),
    ] {
        let answer = desk.act(1, act);
        assert!(answer.contains(expected), "{act}: {answer}");
        let now = desk.world.now().as_millis();
        desk.pass_to(now + 10);
        told += &format!("{answer}{}", desk.sent(1));
    }
    for name in ["ConfbridgeRecord", "ConfbridgeStopRecord"] {
        assert_eq!(event_names(&told).iter().filter(|known| *known == name).count(), 1, "{name}: {told}");
    }
    assert!(desk.act(1, "ConfbridgeLock|Conference: room").contains("Conference locked"));
    assert!(desk.act(1, "ConfbridgeUnlock|Conference: room").contains("Conference unlocked"));
}

#[test]
fn calls_are_recorded_muted_paused_renamed_and_left_alone_again() {
    let mut desk = Desk::new("recordings");
    desk.login(1, "all");
    desk.call("alice", "100");
    desk.pass_to(100);
    let say = |desk: &mut Desk, action: &str| {
        let (name, fields) = action.split_once('|').unwrap_or((action, ""));
        desk.act(1, &format!("{name}|Channel: SIM/alice-00000000|{fields}"))
    };
    let begun = say(&mut desk, "MixMonitor|File: /x/both.wav|Options: r(/x/r.wav)i(ID)p");
    assert_eq!(begun, "Response: Success\r\n\r\n");
    for (variable, value) in [("ID", "0x00000001"), ("MIXMONITOR_FILENAME", "/x/both.wav")] {
        let text = say(&mut desk, &format!("Getvar|Variable: {variable}"));
        assert!(text.contains(&format!("Value: {value}\r\n")), "{variable}: {text}");
    }
    for (action, expected) in [
        ("MixMonitorMute|Direction: read|State: 1", "Success\r\n\r\n"),
        (
            "MixMonitorMute|Direction: up|State: 1",
            "Error\r\nMessage: Invalid direction specified. Must be read, write or both",
        ),
        ("MixMonitor|Options: D", "Error\r\nMessage: Could not start monitoring channel"),
        ("PauseMonitor", "Error\r\nMessage: Channel is not monitored"),
        ("Monitor|File: /x/two|Mix: true|Format: gsm", "Success\r\nMessage: Started monitoring channel"),
        (
            "Monitor|File: /x/three",
            "Error\r\nMessage: Could not start monitoring channel: the channel is monitored",
        ),
        ("PauseMonitor", "Success"),
        ("UnpauseMonitor", "Success"),
        ("ChangeMonitor|File: /x/four", "Success\r\nMessage: Changed monitor filename"),
        ("StopMonitor", "Success\r\nMessage: Stopped monitoring channel"),
        ("StopMonitor", "Error\r\nMessage: Could not stop monitoring channel"),
        ("ChangeMonitor|File: /x/five", "Error\r\nMessage: Could not change monitored filename"),
        ("StopMixMonitor|MixMonitorID: 0x00000009", "Error"),
        ("StopMixMonitor|MixMonitorID: 0x00000001", "Success"),
    ] {
        let answer = say(&mut desk, action);
        assert!(answer.starts_with(&format!("Response: {expected}")), "{action}: {answer}");
    }
    let transcript = desk.world.transcript();
    for words in
        ["hears beep besides", "records /x/two.gsm", "renames /x/two.gsm to /x/four.gsm", "records /x/r.wav"]
    {
        assert_eq!(
            transcript.iter().filter(|line| line.contains(words)).count(),
            1,
            "{words}: {transcript:?}"
        );
    }
}

#[test]
fn mailboxes_are_told_counted_and_forgotten() {
    let mut desk = Desk::new("mailboxes");
    desk.login(1, "all");
    for (act, expected) in [
        ("MWIUpdate|Mailbox: 6001|NewMessages: 2|OldMessages: 5", "Message: Mailbox updated\r\n"),
        ("MailboxCount|Mailbox: 6001@default", "UrgMessages: 0\r\nNewMessages: 2\r\nOldMessages: 5\r\n"),
        ("MailboxStatus|Mailbox: 6001", "Mailbox: 6001\r\nWaiting: 1\r\n"),
        ("MWIGet|Mailbox: 6001", "Mailbox: 6001@default\r\nOldMessages: 5\r\nNewMessages: 2\r\n"),
        ("MWIDelete|Mailbox: 6001", "Message: Mailbox deleted\r\n"),
        ("MailboxStatus|Mailbox: 6001", "Waiting: 0\r\n"),
        ("MWIGet|Mailbox: 6001", "ListItems: 0\r\n"),
        ("PJSIPShowSubscriptionsInbound", "Event: InboundSubscriptionDetailComplete\r\n"),
        ("PJSIPShowSubscriptionsOutbound", "Event: OutboundSubscriptionDetailComplete\r\n"),
    ] {
        let answer = desk.act(1, act);
        assert!(answer.contains(expected), "{act}: {answer}");
    }
}

#[test]
fn phones_are_sent_notifies_and_texts_by_name_only() {
    let mut desk = Desk::new("notify");
    desk.login(1, "all");
    for (act, expected) in [
        (
            "PJSIPNotify|Variable: Event=check-sync",
            "PJSIPNotify requires either an endpoint name, a SIP URI, or a channel.\r\n",
        ),
        (
            "PJSIPNotify|Endpoint: a|URI: sip:b|Variable: Event=x",
            "PJSIPNotify requires either an endpoint name, a SIP URI, or a channel. You must use only one of them.\r\n",
        ),
        ("PJSIPNotify|Endpoint: nobody|Variable: Event=check-sync", "Unable to retrieve endpoint nobody\r\n"),
        ("PJSIPNotify|Channel: PJSIP/x-1|Variable: Event=check-sync", "Channel not found\r\n"),
        (
            "PJSIPNotify|Endpoint: nobody",
            "PJSIPNotify requires either an Option or Variable(s).You must use only one of them.\r\n",
        ),
        (
            "PJSIPNotify|Endpoint: nobody|Option: x|Variable: Event=y",
            "PJSIPNotify requires either an Option or Variable(s).You must use only one of them.\r\n",
        ),
        ("PJSIPNotify|Endpoint: nobody|Option: zzz", "Unable to find notify type 'zzz'\r\n"),
        ("MessageSend|Body: hi", "No 'To' or 'Destination' address specified"),
        ("MessageSend|To: xmpp:somebody|Body: hi", "Message technology not found"),
        ("MessageSend|To: somebody|Body: hi", "Message technology not found"),
        ("MessageSend|To: pjsip:nobody|Base64Body: aGk", "Base64Body is not base64"),
    ] {
        let answer = desk.act(1, act);
        assert!(answer.starts_with(&format!("Response: Error\r\nMessage: {expected}")), "{act}: {answer}");
    }
}

#[test]
fn iax2_is_listed_in_the_events_of_the_field_and_is_empty_where_it_is_not_served() {
    let mut desk = Desk::new("iax");
    desk.login(1, "all");
    for (act, complete) in [
        ("IAXpeers", "PeerlistComplete"),
        ("IAXpeerlist", "PeerlistComplete"),
        ("IAXregistry", "RegistrationsComplete"),
    ] {
        let text = desk.act(1, act);
        let list = messages(&text);
        assert_eq!(list.len(), 2, "{act}");
        assert_eq!((field(&list[1], "Event"), field(&list[1], "ListItems")), (Some(complete), Some("0")));
    }
    let iax = std::rc::Rc::new(std::cell::RefCell::new(crate::testing::Iax::default()));
    *desk.manager.site.iax_sight.borrow_mut() = Some(iax);
    let text = desk.act(1, "IAXpeers|ActionID: 9");
    let list = messages(&text);
    assert_eq!(field(&list[3], "ListItems"), Some("2"));
    for (header, phone, site) in [
        ("Event", "PeerEntry", "PeerEntry"),
        ("ActionID", "9", "9"),
        ("Channeltype", "IAX2", "IAX2"),
        ("ObjectName", "phone", "site-b"),
        ("ChanObjectType", "peer", "peer"),
        ("IPaddress", "(null)", "192.0.2.7"),
        ("Port", "0", "4569"),
        ("Dynamic", "yes", "no"),
        ("Trunk", "no", "yes"),
        ("Encryption", "no", "yes"),
        ("Status", "UNKNOWN", "OK (12 ms)"),
        ("RealtimeDevice", "yes", "no"),
    ] {
        assert_eq!((field(&list[1], header), field(&list[2], header)), (Some(phone), Some(site)), "{header}");
    }
    assert_eq!(
        (field(&list[1], "ObjectUsername"), field(&list[2], "ObjectUsername")),
        (None, Some("site-a"))
    );
    let text = desk.act(1, "IAXregistry");
    let list = messages(&text);
    for (header, expected) in [
        ("Event", "RegistryEntry"),
        ("Host", "iax.example.com:4569"),
        ("DNSmanager", "Y"),
        ("Username", "us"),
        ("Perceived", "198.51.100.1:4569"),
        ("Refresh", "60"),
        ("State", "Registered"),
    ] {
        assert_eq!(field(&list[1], header), Some(expected), "{header}");
    }
    let text = desk.act(1, "IAXnetstats");
    assert!(
        text.contains("Output: IAX2/site-b-00000001   12 ")
            && text.contains("Output: 1 active IAX channel\r\n"),
        "{text}"
    );
}

#[test]
fn the_dialplan_is_shown_with_those_who_are_registered() {
    let mut desk = Desk::new("registered");
    desk.login(1, "all");
    desk.world.shard.core.borrow_mut().registered.add("default", "6001", "PJSIP", "alice");
    let text = desk.act(1, "ShowDialPlan|Context: default|Extension: 6001");
    let shown = messages(&text);
    let item = shown.iter().find(|m| field(m, "Registrar") == Some("PJSIP")).expect("it is listed");
    let fields = ["Extension", "Priority", "Application", "AppData"].map(|name| field(item, name));
    assert_eq!(fields, ["6001", "1", "NoOp", "alice"].map(Some), "{text}");
}

#[test]
fn a_change_of_the_database_is_acknowledged_when_it_is_on_the_disk() {
    let mut desk = Desk::new("saved");
    desk.login(1, "all");
    desk.world.stop_disk(true);
    assert_eq!(desk.act(1, "DBPut|Family: f|Key: k|Val: 1"), "");
    desk.pass_to(100);
    assert_eq!(desk.sent(1), "", "the disk has nothing yet");
    desk.world.stop_disk(false);
    desk.pass_to(200);
    desk.tell();
    assert_eq!(desk.sent(1), "Response: Success\r\nMessage: Updated database successfully\r\n\r\n");
    desk.world.stop_disk(true);
    assert_eq!(desk.act(1, "DBDel|Family: f|Key: k"), "");
    desk.pass_to(20_000);
    desk.tell();
    assert!(desk.sent(1).starts_with("Response: Error"), "a disk that does not come is told");
}
