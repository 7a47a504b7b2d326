use std::rc::Rc;

use call::{Location, PartyId};

use super::*;

fn snapshot(name: &str, uniqueid: &str, linkedid: &str) -> Snapshot {
    Snapshot {
        name: Rc::from(name),
        uniqueid: Rc::from(uniqueid),
        linkedid: Rc::from(linkedid),
        tenant: Rc::from(""),
        state: ChanState::Up,
        caller: PartyId { number: Some("6001".into()), ..PartyId::default() },
        connected: PartyId::default(),
        language: "en".into(),
        account: String::new(),
        location: Location { context: "test".into(), exten: "200".into(), priority: 2 },
        created_wall: 0,
        call_id: "".into(),
        app: "",
        app_data: String::new(),
        tech_cause: None,
        rdnis: String::new(),
        reported: std::collections::BTreeSet::new(),
    }
}

fn tracer(change: impl FnOnce(&mut TelemetryGeneral)) -> Tracer {
    let mut general = TelemetryGeneral::default();
    change(&mut general);
    Tracer::new(&general, 7)
}

fn step(channel: &Snapshot, application: &'static str) -> Notice {
    Notice::NewExten { channel: channel.clone(), application, data: "secret".into() }
}

/// Alice dials bob, they talk, alice hangs up.
fn call(tracer: &mut Tracer) -> Vec<Span> {
    let (alice, bob) = (snapshot("PJSIP/alice-1", "1.0", "1.0"), snapshot("PJSIP/bob-2", "1.1", "1.0"));
    let bridge = |count: usize| call::BridgeSnapshot {
        id: BridgeId::new(3, 1),
        uid: "bridge".into(),
        used_for: call::BridgeUse::Call,
        technology: "simple_bridge",
        name: "".into(),
        count,
        video_mode: "none",
        video_source: None,
    };
    let dial = |end: bool| {
        let (caller, dest) = (Some(alice.clone()), bob.clone());
        match end {
            false => Notice::DialBegin { caller, dest, dial_string: "bob".into() },
            true => Notice::DialEnd {
                caller,
                dest,
                status: "ANSWER",
                forward: None,
                forwarded: None,
                dial_string: String::new(),
            },
        }
    };
    let enter = |channel: &Snapshot, count| Notice::BridgeEnter {
        bridge: bridge(count),
        channel: channel.clone(),
        instead_of: None,
    };
    let leave =
        |channel: &Snapshot, count| Notice::BridgeLeave { bridge: bridge(count), channel: channel.clone() };
    let hangup = |channel: &Snapshot, cause| Notice::Hangup { channel: channel.clone(), cause };
    for (at, notice) in [
        (10, Notice::NewChannel(alice.clone())),
        (11, step(&alice, "NoOp")),
        (12, step(&alice, "Dial")),
        (13, Notice::NewChannel(bob.clone())),
        (14, dial(false)),
        (20, Notice::NewState(Snapshot { state: ChanState::Ringing, ..bob.clone() })),
        (30, Notice::NewState(bob.clone())),
        (31, dial(true)),
        (32, enter(&alice, 1)),
        (33, enter(&bob, 2)),
        (90, leave(&bob, 1)),
        (91, leave(&alice, 0)),
        (92, hangup(&bob, Cause::NORMAL_CLEARING)),
        (93, hangup(&alice, Cause::NORMAL_CLEARING)),
    ] {
        tracer.notice(&notice, at);
    }
    tracer.take_finished()
}

fn one<'a>(spans: &'a [Span], name: &str, key: &str, value: &str) -> &'a Span {
    let is_it = |span: &&Span| {
        span.name == name && span.attributes.iter().any(|(known, text)| *known == key && text == value)
    };
    let found: Vec<&Span> = spans.iter().filter(is_it).collect();
    assert_eq!(found.len(), 1, "{name} with {key}={value} in {spans:#?}");
    found[0]
}

#[test]
fn a_call_is_one_trace_of_channels_their_applications_what_they_dial_and_their_bridges() {
    let mut tracer = tracer(|_| {});
    let spans = call(&mut tracer);
    let root = one(&spans, "call", "linkedid", "1.0");
    assert!(spans.iter().all(|span| span.trace == root.trace));
    let alice = one(&spans, "channel", "channel", "PJSIP/alice-1");
    let bob = one(&spans, "channel", "uniqueid", "1.1");
    let dial = one(&spans, "Dial", "application", "Dial");
    for (span, parent, begin, end) in [
        (root, 0, 10, 93),
        (alice, root.id, 10, 93),
        (bob, root.id, 13, 92),
        (one(&spans, "NoOp", "application", "NoOp"), alice.id, 11, 12),
        (dial, alice.id, 12, 93),
        (one(&spans, "dial", "destchannel", "PJSIP/bob-2"), dial.id, 14, 31),
        (one(&spans, "bridge", "channel", "PJSIP/alice-1"), alice.id, 32, 91),
        (one(&spans, "bridge", "channel", "PJSIP/bob-2"), bob.id, 33, 90),
    ] {
        assert_eq!((span.parent, span.begin, span.end), (parent, begin, end), "{span:#?}");
        assert!(!span.failed);
    }
    assert_eq!(spans.len(), 8);
    assert_eq!(bob.events, [(20, "ringing"), (30, "up")]);
    let mut ids: Vec<u64> = spans.iter().map(|span| span.id).collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), 8, "ids differ");
    // Another call is another trace, and nothing is left of this one.
    let again = call(&mut tracer);
    assert_ne!(one(&again, "call", "linkedid", "1.0").trace, root.trace);
    assert!(tracer.calls.is_empty() && tracer.legs.is_empty());
}

#[test]
fn numbers_and_arguments_are_told_only_where_details_are_wanted_and_steps_may_be_omitted() {
    for (details, omitted, private, noops) in [(false, "", 0, 1), (true, "", 1, 1), (true, "noop", 1, 0)] {
        let mut tracer = tracer(|general| {
            general.details = details;
            general.omit_applications = omitted.split(',').map(Into::into).collect();
        });
        let spans = call(&mut tracer);
        let told =
            |key: &str| spans.iter().flat_map(|span| &span.attributes).filter(|(k, _)| *k == key).count();
        for key in ["appdata", "calleridnum", "exten", "dialstring"] {
            assert_eq!(told(key).min(1), private, "{key} with details={details}");
        }
        assert_eq!(spans.iter().filter(|span| span.name == "NoOp").count(), noops);
    }
}

#[test]
fn calls_are_sampled_whole() {
    let mut tracer = tracer(|general| general.sample = 25);
    let sizes: Vec<usize> = (0..400).map(|_| call(&mut tracer).len()).collect();
    let traced = sizes.iter().filter(|size| **size == 8).count();
    assert!(sizes.iter().all(|size| [0, 8].contains(size)), "{sizes:?}");
    assert!((60..140).contains(&traced), "{traced} of 400");
}

#[test]
fn a_failed_call_says_so_and_why() {
    for (cause, failed) in
        [(16, false), (17, false), (19, false), (0, false), (34, true), (38, true), (127, true)]
    {
        let mut tracer = tracer(|_| {});
        let alice = snapshot("PJSIP/alice-1", "1.0", "1.0");
        tracer.notice(&Notice::NewChannel(alice.clone()), 1);
        tracer.notice(&Notice::Hangup { channel: alice, cause: Cause(cause) }, 2);
        let spans = tracer.take_finished();
        assert!(spans.iter().all(|span| span.failed == failed), "{cause}: {spans:?}");
        assert_eq!(one(&spans, "call", "hangupcause", &cause.to_string()).end, 2);
    }
}

#[test]
fn a_dialplan_that_runs_in_a_circle_makes_no_more_than_so_many_spans() {
    let mut tracer = tracer(|_| {});
    let alice = snapshot("PJSIP/alice-1", "1.0", "1.0");
    tracer.notice(&Notice::NewChannel(alice.clone()), 1);
    for _ in 0..SPANS_OF_CHANNEL_MAX + 5 {
        tracer.notice(&step(&alice, "NoOp"), 2);
    }
    tracer.notice(&Notice::Hangup { channel: alice, cause: Cause::NORMAL_CLEARING }, 3);
    assert_eq!(tracer.take_finished().len(), SPANS_OF_CHANNEL_MAX as usize + 2);
    assert_eq!(tracer.take_dropped(), 5);
}

#[test]
fn channels_of_calls_that_began_before_are_let_be() {
    let mut tracer = tracer(|_| {});
    let bob = snapshot("PJSIP/bob-2", "1.1", "1.0");
    for notice in [
        Notice::NewChannel(bob.clone()),
        step(&bob, "Echo"),
        Notice::Hangup { channel: bob, cause: Cause::NORMAL_CLEARING },
    ] {
        tracer.notice(&notice, 1);
    }
    assert_eq!(tracer.take_finished(), []);
}
