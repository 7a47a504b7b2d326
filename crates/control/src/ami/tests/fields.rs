//! Fields and sentences that the field's manual names for each answer, where clients read them by name.

use super::*;
use sim::{Act, Phone};

/// The first event of a name.
fn event<'a>(text: &'a str, name: &str) -> Lines<'a> {
    let found = messages(text).into_iter().find(|message| field(message, "Event") == Some(name));
    found.unwrap_or_else(|| panic!("no {name}: {text}"))
}

#[test]
fn status_tells_translations_and_the_groups_of_a_channel_as_numbers() {
    let mut desk = Desk::new("fields-status");
    desk.login(1, "all");
    let alice = desk.call("alice", "100");
    {
        let mut core = desk.world.shard.core.borrow_mut();
        let groups = std::rc::Rc::make_mut(&mut core.get_mut(alice).unwrap().pickup);
        groups.call.set_numbers("0,3").unwrap();
    }
    desk.pass_to(100);
    let text = desk.act(1, "Status|Channel: SIM/alice-00000000");
    let status = event(&text, "Status");
    for (name, value) in [("Readtrans", ""), ("Writetrans", ""), ("Callgroup", "9"), ("Pickupgroup", "0")] {
        assert_eq!(field(&status, name), Some(value), "{name}: {text}");
    }
}

#[test]
fn variables_of_an_originated_channel_are_told_as_they_are_set() {
    let mut desk = Desk::new("fields-varset");
    desk.world.phone("bob", Phone { acts: vec![(100, Act::Answer)], refuses: None });
    desk.login(1, "all");
    desk.act(1, "Events|EventMask: dialplan");
    desk.act(
        1,
        "Originate|Async: true|Channel: SIM/bob|Application: Wait|Data: 9|Variable: A=1,__B=2|Variable: C=3",
    );
    desk.pass_to(50);
    let text = desk.sent(1);
    let all = messages(&text);
    let told = all.iter().filter(|message| field(message, "Event") == Some("VarSet"));
    let told: Vec<_> = told.map(|message| (field(message, "Variable"), field(message, "Value"))).collect();
    let expected = [("WHO", "all"), ("C", "3"), ("__B", "2"), ("A", "1")];
    assert_eq!(told, expected.map(|(name, value)| (Some(name), Some(value))), "{text}");
    assert!(text.contains("Channel: SIM/bob-"), "{text}");
}

/// Options of an endpoint of which its section says nothing.
const ENDPOINT_DEFAULTS: &[(&str, &str)] = &[
    ("100rel", "yes"),
    ("AcceptMultipleSdpAnswers", "false"),
    ("Acl", ""),
    ("AggregateMwi", "true"),
    ("AllowOverlap", "true"),
    ("AllowSubscribe", "true"),
    ("AllowTransfer", "true"),
    ("AllowUnauthenticatedOptions", "false"),
    ("AsymmetricRtpCodec", "false"),
    ("BindRtpToMediaAddress", "false"),
    ("Bundle", "false"),
    ("CalleridPrivacy", "allowed_not_screened"),
    ("ConnectedLineMethod", "invite"),
    ("ContactAcl", ""),
    ("CosAudio", "0"),
    ("CosVideo", "0"),
    ("DeviceStateBusyAt", "0"),
    ("DirectMediaGlareMitigation", "none"),
    ("DirectMediaMethod", "invite"),
    ("DisableDirectMediaOnNat", "false"),
    ("DtlsAutoGenerateCert", "No"),
    ("DtlsCaFile", ""),
    ("DtlsFingerprint", "SHA-256"),
    ("DtlsRekey", "0"),
    ("DtlsSetup", "active"),
    ("DtlsVerify", "No"),
    ("DtmfMode", "rfc4733"),
    ("FaxDetect", "false"),
    ("FaxDetectTimeout", "0"),
    ("FollowEarlyMediaFork", "true"),
    ("FollowRedirectMethods", ""),
    ("ForceAvp", "false"),
    ("ForceRport", "true"),
    ("G726NonStandard", "false"),
    ("GeolocIncomingCallProfile", ""),
    ("IceSupport", "false"),
    ("IdentifyBy", "username,ip"),
    ("Ignore183WithoutSdp", "false"),
    ("InbandProgress", "false"),
    ("IncomingCallOfferPref", "local"),
    ("MaxAudioStreams", "1"),
    ("MaxVideoStreams", "1"),
    ("MediaEncryption", "no"),
    ("MediaEncryptionOptimistic", "false"),
    ("MediaUseReceivedTransport", "false"),
    ("MohPassthrough", "false"),
    ("MohSuggest", "default"),
    ("MwiSubscribeReplacesUnsolicited", "no"),
    ("NotifyEarlyInuseRinging", "false"),
    ("OneTouchRecording", "false"),
    ("OutgoingCallOfferPref", "remote_merge"),
    ("PreferredCodecOnly", "false"),
    ("RecordOffFeature", "automixmon"),
    ("RecordOnFeature", "automixmon"),
    ("RedirectMethod", "user"),
    ("ReferBlindProgress", "true"),
    ("RewriteContact", "false"),
    ("RpidImmediate", "false"),
    ("RtcpMux", "false"),
    ("RtpEngine", "asterisk"),
    ("RtpIpv6", "false"),
    ("RtpKeepalive", "0"),
    ("RtpPortEnd", "0"),
    ("RtpPortStart", "0"),
    ("RtpSymmetric", "false"),
    ("RtpTimeout", "0"),
    ("SdpOwner", "-"),
    ("SdpSession", "Asterisk"),
    ("SecurityNegotiation", "no"),
    ("SendAoc", "false"),
    ("SendConnectedLine", "yes"),
    ("SendDiversion", "true"),
    ("SendHistoryInfo", "false"),
    ("SendPai", "false"),
    ("SendRpid", "false"),
    ("SetVar", ""),
    ("SrtpTag32", "false"),
    ("StirShaken", "no"),
    ("SubMinExpiry", "0"),
    ("SuppressMohOnSendonly", "false"),
    ("SuppressQ850ReasonHeaders", "false"),
    ("T38BindUdptlToMediaAddress", "false"),
    ("T38Udptl", "false"),
    ("T38UdptlEc", "none"),
    ("T38UdptlIpv6", "false"),
    ("T38UdptlMaxdatagram", "0"),
    ("T38UdptlNat", "false"),
    ("Tenantid", ""),
    ("Timers", "yes"),
    ("TimersMinSe", "90"),
    ("TimersSessExpires", "1800"),
    ("TosAudio", "0"),
    ("TosVideo", "0"),
    ("TrustConnectedLine", "yes"),
    ("TrustIdInbound", "false"),
    ("TrustIdOutbound", "false"),
    ("UseAvpf", "false"),
    ("UsePtime", "false"),
    ("UserEqPhone", "false"),
    ("Webrtc", "no"),
    ("CodecPrefsIncomingAnswer", "prefer:pending, operation:intersect, keep:all, transcode:allow"),
    ("CodecPrefsIncomingOffer", "prefer:pending, operation:intersect, keep:all, transcode:allow"),
    ("CodecPrefsOutgoingAnswer", "prefer:pending, operation:intersect, keep:all, transcode:allow"),
    ("CodecPrefsOutgoingOffer", "prefer:pending, operation:union, keep:all, transcode:allow"),
];

#[test]
fn an_aor_a_contact_and_an_auth_have_their_options_and_no_secret() {
    let mut desk = Desk::new("fields-sip");
    desk.login(1, "all");
    let text = desk.act(1, "PJSIPShowEndpoint|Endpoint: 6001");
    let aor = event(&text, "AorDetail");
    for (name, value) in [
        ("MinimumExpiration", "60"),
        ("MaximumExpiration", "7200"),
        ("DefaultExpiration", "3600"),
        ("QualifyFrequency", "0"),
        ("AuthenticateQualify", "false"),
        ("MaxContacts", "0"),
        ("RemoveExisting", "true"),
        ("RemoveUnavailable", "false"),
        ("Mailboxes", ""),
        ("OutboundProxy", ""),
        ("SupportPath", "false"),
        ("TotalContacts", "1"),
        ("ContactsRegistered", "0"),
        ("EndpointName", "6001"),
    ] {
        assert_eq!(field(&aor, name), Some(value), "{name}: {text}");
    }
    assert_eq!(field(&aor, "Contacts"), Some("6001/sip:6001@192.0.2.7:5070"), "{text}");
    let endpoint = event(&text, "EndpointDetail");
    for (name, value) in ENDPOINT_DEFAULTS {
        assert!(field(&endpoint, name).is_some(), "{name}: {text}");
        // The desk's endpoint is one of nobody's file: what the driver obeys has no default of a file there.
        let of_file =
            ["Bundle", "CodecPrefs", "Dtls", "Geoloc", "IceSupport", "RtpPort", "StirShaken", "Webrtc"];
        if of_file.iter().any(|prefix| name.starts_with(prefix)) {
            assert_eq!(field(&endpoint, name), Some(*value), "{name}: {text}");
        }
    }
    for name in "Aors Allow Auth CallGroup Callerid Context DirectMedia Mailboxes ActiveChannels".split(' ') {
        assert!(field(&endpoint, name).is_some(), "{name}: {text}");
    }
    let contact = event(&text, "ContactStatusDetail");
    for (name, value) in [
        ("URI", Some("sip:6001@192.0.2.7:5070")),
        ("RegExpire", Some("0")),
        ("ViaAddress", None),
        ("CallID", None),
        ("RoundtripUsec", Some("N/A")),
        ("AuthenticateQualify", Some("0")),
        ("QualifyTimeout", Some("3.000")),
        ("EndpointName", Some("6001")),
        // The MD5 of the URI.
        ("ID", Some("6001@@0a8b07ec69492b8d6df7343a04d87629")),
    ] {
        assert_eq!(field(&contact, name), value, "{name}: {text}");
    }
    let auth = event(&text, "AuthDetail");
    assert_eq!(field(&auth, "EndpointName"), Some("6001"), "{text}");
    assert!(!text.contains("very secret words"), "{text}");
}

#[test]
fn refusals_name_what_is_not_there() {
    let mut desk = Desk::new("fields-refusals");
    desk.login(1, "all");
    for (act, why) in [
        (
            "QueueRemove|Queue: none|Interface: SIM/bob",
            "Unable to remove interface from queue: No such queue",
        ),
        ("QueueAdd|Queue: none|Interface: SIM/bob", "Unable to add interface to queue: No such queue"),
        ("QueuePenalty|Interface: SIM/bob|Penalty: 1", "Invalid interface, queuename or penalty"),
        (
            "QueueMemberRingInUse|Interface: SIM/bob|RingInUse: yes",
            "Invalid interface, queuename, or ringinuse value",
        ),
        ("QueuePause|Interface: SIM/bob|Paused: yes", "Interface not found"),
        ("Reload|Module: app_nonsense", "No such module"),
        ("ModuleLoad|LoadType: reload|Module: app_nonsense.so", "Module not found."),
    ] {
        assert_eq!(desk.act(1, act), error(why), "{act}");
    }
    assert!(desk.site().wishes.borrow().is_empty());
    let text = desk.act(1, "ListCommands");
    assert!(
        text.contains("  (Priv: system,call,all)\r\n") && text.contains("  (Priv: <none>)\r\n"),
        "{text}"
    );
}

#[test]
fn core_settings_tell_whether_managers_are_served_over_http() {
    let mut desk = Desk::new("fields-settings");
    desk.login(1, "all");
    let served = |desk: &mut Desk| {
        let text = desk.act(1, "CoreSettings");
        field(&messages(&text)[0], "CoreHTTPenabled").map(str::to_owned)
    };
    assert_eq!(served(&mut desk).as_deref(), Some("No"));
    // A server of HTTP is not enough: managers are let in by `webenabled` alone.
    let web = MANAGER.replace("enabled = yes", "enabled = yes\nwebenabled = yes");
    for (file, text, expected) in [
        ("http.conf", "[general]\nenabled = yes\nbindaddr = 127.0.0.1\n", "No"),
        ("manager.conf", &*web, "Yes"),
    ] {
        std::fs::write(desk.folder.join(file), text).unwrap();
        let (snapshot, _) = Snapshot::load(&Where::Dir(desk.folder.to_path_buf())).unwrap();
        *desk.site().snapshot.borrow_mut() = snapshot;
        assert_eq!(served(&mut desk).as_deref(), Some(expected), "{file}");
    }
}

#[test]
fn devices_that_programs_have_set_and_those_of_queues_are_listed_once() {
    let mut desk = Desk::new("fields-devices");
    desk.login(1, "all");
    desk.act(1, "Setvar|Variable: DEVICE_STATE(Custom:away)|Value: BUSY");
    desk.act(1, "Setvar|Variable: DEVICE_STATE(Custom:lamp)|Value: INUSE");
    let config = queue::Config {
        queues: vec![queue::QueueConfig { name: "sales".into(), ..queue::QueueConfig::default() }],
        ..queue::Config::default()
    };
    desk.world.shard.core.borrow_mut().with_queues(|queues, now, out| queues.configure(&config, now, out));
    let text = desk.act(1, "DeviceStateList");
    for line in [
        "Device: Custom:away\r\nState: BUSY\r\n",
        "Device: Queue:sales\r\nState: NOT_INUSE\r\n",
        "Device: Queue:sales_avail\r\nState: INUSE\r\n",
    ] {
        assert!(text.contains(line), "{line}: {text}");
    }
    assert_eq!(text.matches("Device: Custom:lamp\r\n").count(), 1, "it is in a hint, too: {text}");
}

#[test]
fn mailboxes_are_listed_and_forgotten_by_expression() {
    let mut desk = Desk::new("fields-mailboxes");
    desk.login(1, "all");
    for mailbox in ["41", "42", "7@other"] {
        desk.act(1, &format!("MWIUpdate|Mailbox: {mailbox}|NewMessages: 1"));
    }
    let listed = |desk: &mut Desk, which: &str| {
        let text = desk.act(1, &format!("MWIGet|Mailbox: {which}"));
        let all = messages(&text);
        let own = all.iter().filter(|message| field(message, "Event") == Some("MWIGet"));
        own.filter_map(|message| field(message, "Mailbox").map(str::to_owned)).collect::<Vec<_>>()
    };
    assert_eq!(listed(&mut desk, "/^4.@default$/"), ["41@default", "42@default"]);
    assert_eq!(listed(&mut desk, "/./").len(), 3);
    assert_eq!(listed(&mut desk, "41"), ["41@default"]);
    assert!(desk.act(1, "MWIGet|Mailbox: /(/").starts_with("Response: Error"));
    assert!(desk.act(1, "MWIDelete|Mailbox: /@default/").starts_with("Response: Success"));
    assert_eq!(listed(&mut desk, "/./"), ["7@other"]);
}

#[test]
fn an_attended_transfer_names_the_bridges_that_were_and_the_one_that_stays() {
    let mut desk = Desk::new("fields-attended");
    desk.login(1, "all");
    desk.act(1, "Events|EventMask: call");
    let ids = ["alice", "bob"].map(|phone| desk.call(phone, "100"));
    desk.pass_to(100);
    desk.sent(1);
    let bridge = call::BridgeSnapshot {
        id: base::BridgeId::new(1, 0),
        uid: "first".into(),
        used_for: call::BridgeUse::Call,
        technology: "simple_bridge",
        name: "".into(),
        count: 2,
        video_mode: "none",
        video_source: None,
    };
    desk.world.shard.core.borrow_mut().notice(|core| {
        let [first, second] = ids.map(|id| core.snapshot(id).map(Box::new));
        Some(Notice::AttendedTransfer {
            transferer: first?,
            second,
            transferee: None,
            target: None,
            link: None,
            bridges: [Some(bridge), None],
            stays: Some("second".into()),
            external: true,
        })
    });
    desk.pass_to(200);
    let text = desk.sent(1);
    let told = event(&text, "AttendedTransfer");
    assert_eq!(field(&told, "OrigBridgeUniqueid"), Some("first"), "{text}");
    assert_eq!(field(&told, "OrigBridgeNumChannels"), Some("2"));
    assert_eq!(field(&told, "SecondBridgeUniqueid"), None, "that call was to an application");
    assert_eq!(field(&told, "DestBridgeUniqueid"), Some("second"));
}

#[test]
fn a_local_channel_that_is_called_for_nobody_has_no_number_of_its_own() {
    let mut desk = Desk::new("fields-local");
    desk.login(1, "all");
    desk.act(1, "Events|EventMask: call");
    desk.act(
        1,
        "Originate|Async: true|Channel: Local/100@default|Application: Wait|Data: 1|CallerID: Boss <7>",
    );
    desk.act(1, "Originate|Async: true|Channel: Local/100@default|Application: Wait|Data: 1");
    desk.pass_to(100);
    let text = desk.sent(1);
    let all = messages(&text);
    let last = all.iter().filter(|message| field(message, "Event") == Some("DialEnd"));
    let numbers: Vec<_> = last.map(|message| field(message, "DestCallerIDNum")).collect();
    assert_eq!(numbers, [Some("7"), Some("<unknown>")], "{text}");
}
