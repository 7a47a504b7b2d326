//! Calls between two machines over a good network, and what strangers get.

mod world;

use base::{Cause, Digit, FormatId};
use iax2::frame::{
    Auth, Command, Control, Datagram, Element, Fields, Full, Html, Kind, Media, parse, write_element,
};
use iax2::machine::{
    Accept, Challenge, Connected, Dial, Encrypt, Lines, Piece, Priority, Refused, TokenRule,
};
use iax2::{Event, Secret, Settings};
use world::{World, accept_any, address, ms, secs};

/// The full frames that a machine sent, as names.
fn frames(world: &World, side: usize) -> Vec<String> {
    let of_side = world.wire.iter().filter(|(from, ..)| *from == side);
    of_side
        .filter_map(|(_, _, bytes)| match parse(bytes) {
            Ok(Datagram::Full(frame)) => Some(match frame.kind {
                Kind::Iax(command) => command.name().to_owned(),
                Kind::Control(control) => control.name().to_owned(),
                other => format!("{other:?}"),
            }),
            _ => None,
        })
        .collect()
}

#[test]
fn rfc5456_6_2_a_call_begins_with_a_token_and_ends_with_hangup() {
    let mut world = World::two();
    let (caller, callee) = world.call(|_| {});
    world.act(0, |machine, now, out| machine.hang_up(now, caller, Cause::NORMAL_CLEARING, out)).unwrap();
    world.run(secs(1), &mut |_, _, _| {});
    assert_eq!(frames(&world, 0), ["NEW", "NEW", "ACK", "ACK", "HANGUP"]);
    assert_eq!(frames(&world, 1), ["CALLTOKEN", "ACCEPT", "ANSWER", "ACK"]);
    let ended = Event::Ended { leg: callee, cause: Cause::NORMAL_CLEARING, text: Vec::new() };
    assert_eq!(world.of(1).last(), Some(&ended));
    assert_eq!(world.machines[0].counts().legs + world.machines[1].counts().legs, 0);
    world.assert_empty();
}

/// Asks who calls for a proof, and takes the call when it comes.
fn challenging(
    secret: &'static [u8],
    methods: Auth,
    encrypt: Encrypt,
) -> impl FnMut(&mut World, usize, &Event) {
    move |world, side, event| match event {
        Event::Call(leg, request) if side == 1 => {
            let (leg, user) = (*leg, request.fields().username.unwrap_or_default().to_vec());
            let challenge = Challenge {
                username: &user,
                methods,
                secret: Secret::new(secret),
                encrypt,
                keys_stay: false,
            };
            world.act(1, |machine, now, out| machine.challenge(now, leg, &challenge, out)).unwrap();
        }
        Event::Proven(leg) => {
            let leg = *leg;
            world.act(1, |machine, now, out| machine.accept(now, leg, &accept_any(), out)).unwrap();
        }
        Event::Unproven(leg) => refuse(world, *leg),
        _ => {}
    }
}

/// Refuses who could not prove who it is.
fn refuse(world: &mut World, leg: base::Place) {
    let (cause, why) = (Cause::FACILITY_NOT_SUBSCRIBED, b"No authority found");
    world.act(1, |machine, now, out| machine.reject(now, leg, cause, why, out)).unwrap();
}

#[test]
fn rfc5456_6_2_6_who_proves_the_password_is_accepted_and_nobody_else() {
    for (name, theirs, methods, ours, plaintext, accepted) in [
        ("MD5", &b"secret"[..], Auth::MD5, &b"secret"[..], false, true),
        ("MD5, one of several", b"old;secret", Auth::MD5, b"secret", false, true),
        ("a wrong password", b"secret", Auth::MD5, b"other", false, false),
        ("an unknown user, who is asked like a known one", b"", Auth::MD5, b"secret", false, false),
        ("in the clear, allowed on both sides", b"secret", Auth::PLAINTEXT, b"secret", true, true),
        ("in the clear, wrong", b"secret", Auth::PLAINTEXT, b"other", true, false),
    ] {
        let mut world = World::two();
        let mut dial = Dial::to(address(1));
        (dial.username, dial.secret, dial.plaintext) = (b"bob", Some(Secret::new(ours)), plaintext);
        let caller = world.act(0, |machine, now, out| machine.dial(now, &dial, out)).unwrap();
        world.run(secs(2), &mut challenging(theirs, methods, Encrypt::No));
        let events: Vec<_> = world.of(0).collect();
        let expected = if accepted {
            Event::Accepted(caller, FormatId::ULAW)
        } else {
            let (cause, text) = (Cause::FACILITY_NOT_SUBSCRIBED, b"No authority found".to_vec());
            Event::Ended { leg: caller, cause, text }
        };
        assert_eq!(events, [&expected], "{name}");
        assert!(!world.wire.iter().any(|(.., bytes)| !plaintext && bytes.windows(6).any(|w| w == b"secret")));
    }
}

#[test]
fn a_password_is_not_sent_in_the_clear_unless_that_is_allowed() {
    let mut world = World::two();
    let mut dial = Dial::to(address(1));
    dial.secret = Some(Secret::new(b"secret"));
    let caller = world.act(0, |machine, now, out| machine.dial(now, &dial, out)).unwrap();
    world.run(secs(1), &mut challenging(b"secret", Auth::PLAINTEXT, Encrypt::No));
    let asked = world.of(0).next().cloned();
    assert!(matches!(asked, Some(Event::Challenged { leg, methods: Auth::PLAINTEXT, .. }) if leg == caller));
    let secret = Secret::new(b"secret");
    let refused = world.act(0, |machine, now, out| machine.prove(now, caller, &secret, out));
    assert_eq!(refused, Err(Refused::WrongState));
    world.act(0, |machine, now, out| machine.hang_up(now, caller, Cause::NORMAL_CLEARING, out)).unwrap();
    world.assert_empty();
}

#[test]
fn rfc5456_8_6_16_signatures_are_made_and_checked_by_the_drivers_at_their_leisure() {
    for right in [true, false] {
        let mut world = World::two();
        let dial = Dial::to(address(1));
        world.act(0, |machine, now, out| machine.dial(now, &dial, out)).unwrap();
        let mut ask = challenging(b"", Auth::RSA, Encrypt::No);
        let mut later = Vec::new();
        world.run(secs(5), &mut |world, side, event| match event {
            Event::Challenged { leg, .. } | Event::Signed { leg, .. } => {
                later.push((side, *leg, event.clone()));
            }
            _ => ask(world, side, event),
        });
        let (_, leg, Event::Challenged { methods: Auth::RSA, challenge: asked, .. }) = later.remove(0) else {
            panic!("a challenge")
        };
        world.act(0, |machine, now, out| machine.sign(now, leg, b"c2lnbmF0dXJl", out)).unwrap();
        world.run(secs(5), &mut |_, side, event| later.push((side, leg, event.clone())));
        let Some((1, _, Event::Signed { leg, challenge, signature })) = later.pop() else {
            panic!("a signature")
        };
        assert_eq!((&challenge, &signature[..]), (&asked, &b"c2lnbmF0dXJl"[..]));
        world.act(1, |machine, _, out| machine.judge(leg, right, out)).unwrap();
        world.run(secs(1), &mut ask);
        let accepted = world.of(0).any(|event| matches!(event, Event::Accepted(..)));
        let ended = world.of(0).any(|event| matches!(event, Event::Ended { .. }));
        assert_eq!((accepted, ended), (right, !right));
    }
}

#[test]
fn rfc5456_7_4_an_enciphered_call_shows_nothing_and_changes_its_keys() {
    let mut world = World::two();
    let mut dial = Dial::to(address(1));
    (dial.username, dial.secret) = (b"bob", Some(Secret::new(b"secret")));
    dial.encrypt = Encrypt::Required;
    let caller = world.act(0, |machine, now, out| machine.dial(now, &dial, out)).unwrap();
    world.run(secs(2), &mut challenging(b"wrong;secret", Auth::MD5, Encrypt::Wanted));
    assert!(world.of(0).any(|event| *event == Event::Accepted(caller, FormatId::ULAW)), "{:?}", world.told);
    world.wire.clear();
    // Ten minutes of talk, in which each side changes its key at least twice.
    for second in 0..600u32 {
        for _ in 0..2 {
            let voice = [b'v'; 160];
            world
                .act(0, |machine, now, out| machine.voice(now, caller, FormatId::ULAW, 20, &voice, out))
                .unwrap();
        }
        if second % 10 == 0 {
            world.act(0, |machine, now, out| machine.text(now, caller, b"plainly", out)).unwrap();
        }
        world.run(secs(1), &mut |_, _, _| {});
    }
    let (mut voices, mut texts) = (0, 0);
    for event in world.of(1) {
        voices += usize::from(matches!(event, Event::Voice { format: FormatId::ULAW, .. }));
        texts += usize::from(matches!(event, Event::Text(_, text) if text == b"plainly"));
    }
    assert_eq!((voices, texts), (1200, 60));
    for (.., bytes) in &world.wire {
        assert!(!bytes.windows(7).any(|w| w == b"plainly") && !bytes.windows(8).any(|w| w == [b'v'; 8]));
    }
    assert_eq!(world.machines[1].counts().discards.iter().sum::<u64>(), 0);
}

#[test]
fn rfc5456_7_4_keys_change_only_where_both_sides_let_them() {
    // AES-128 is 1, and that keys may change 2.
    for (caller_stays, callee_stays, expected) in [
        (false, false, [Some(3), Some(3)]),
        (true, false, [Some(1), Some(1)]),
        (false, true, [Some(3), Some(1)]),
    ] {
        let mut world = World::two();
        let mut dial = Dial::to(address(1));
        (dial.secret, dial.encrypt) = (Some(Secret::new(b"secret")), Encrypt::Required);
        dial.keys_stay = caller_stays;
        let caller = world.act(0, |machine, now, out| machine.dial(now, &dial, out)).unwrap();
        world.run(secs(2), &mut |world, side, event| match event {
            Event::Call(leg, _) if side == 1 => {
                let (leg, secret) = (*leg, Secret::new(b"secret"));
                let challenge = Challenge {
                    username: b"",
                    methods: Auth::MD5,
                    secret,
                    encrypt: Encrypt::Wanted,
                    keys_stay: callee_stays,
                };
                world.act(1, |machine, now, out| machine.challenge(now, leg, &challenge, out)).unwrap();
            }
            event => challenging(b"secret", Auth::MD5, Encrypt::Wanted)(world, side, event),
        });
        assert!(world.of(0).any(|event| *event == Event::Accepted(caller, FormatId::ULAW)));
        let ciphers = |wanted: Command| {
            let frames = world.wire.iter().filter_map(|(.., bytes)| match parse(bytes) {
                Ok(Datagram::Full(frame)) if frame.kind == Kind::Iax(wanted) => Some(frame.data),
                _ => None,
            });
            frames.filter_map(|data| Fields::collect(data)?.encryption).next_back()
        };
        let case = format!("caller {caller_stays}, callee {callee_stays}");
        assert_eq!([ciphers(Command::NEW), ciphers(Command::AUTHREQ)], expected, "{case}");
    }
}

#[test]
fn who_wants_enciphering_and_gets_none_does_not_talk() {
    let mut world = World::two();
    let mut dial = Dial::to(address(1));
    (dial.secret, dial.encrypt) = (Some(Secret::new(b"secret")), Encrypt::Required);
    let caller = world.act(0, |machine, now, out| machine.dial(now, &dial, out)).unwrap();
    world.run(secs(1), &mut challenging(b"secret", Auth::MD5, Encrypt::No));
    assert!(world.of(0).any(|event| matches!(event, Event::Ended { leg, .. } if *leg == caller)));
    let plain = Dial::to(address(1));
    world.act(0, |machine, now, out| machine.dial(now, &plain, out)).unwrap();
    let mut refused = None;
    world.run(secs(1), &mut |world, side, event| {
        if let (1, Event::Call(leg, _)) = (side, event) {
            let leg = *leg;
            let challenge = Challenge {
                username: b"",
                methods: Auth::MD5,
                secret: Secret::new(b"secret"),
                encrypt: Encrypt::Required,
                keys_stay: false,
            };
            let answer = world.act(1, |machine, now, out| machine.challenge(now, leg, &challenge, out));
            refused = answer.err();
        }
    });
    assert_eq!(refused, Some(Refused::NoCipher));
}

#[test]
fn whatever_is_said_on_a_call_arrives_once_and_in_order() {
    let mut world = World::two();
    let (caller, callee) = world.call(|_| {});
    let start = world.told.len();
    let five = Digit::from_char('5').unwrap();
    world.act(0, |machine, now, out| {
        machine.digit(now, caller, five, true, out).unwrap();
        machine.digit(now, caller, five, false, out).unwrap();
        machine.control(now, caller, Control::HOLD, out).unwrap();
        machine.control(now, caller, Control::UNHOLD, out).unwrap();
        machine.text(now, caller, b"hello", out).unwrap();
        machine.html(now, caller, Html::URL, b"http://example.org/", out).unwrap();
        machine.quelch(now, caller, Some(b"jazz"), out).unwrap();
        machine.unquelch(now, caller, out).unwrap();
        machine.messages(now, caller, 0x0102, out).unwrap();
        machine.ask_number(now, caller, b"12", out).unwrap();
        machine.dial_on(now, caller, b"123", out).unwrap();
        machine.send_on(now, caller, b"200", Some(b"office"), out).unwrap();
    });
    world.run(ms(500), &mut |_, _, _| {});
    world.act(1, |machine, now, out| machine.tell_number(now, callee, (b"12", 0x8002, 600), out)).unwrap();
    world.run(secs(1), &mut |_, _, _| {});
    let told: Vec<_> = world.told[start..].iter().map(|(_, side, event, _)| (*side, event.clone())).collect();
    let expected = [
        (1, Event::Digit(callee, five, true)),
        (1, Event::Digit(callee, five, false)),
        (1, Event::Control(callee, Control::HOLD)),
        (1, Event::Control(callee, Control::UNHOLD)),
        (1, Event::Text(callee, b"hello".to_vec())),
        (1, Event::Html(callee, Html::URL, b"http://example.org/".to_vec())),
        (1, Event::Quelched(callee, Some(b"jazz".to_vec()))),
        (1, Event::Unquelched(callee)),
        (1, Event::Messages(callee, 0x0102)),
        (1, Event::NumberAsked(callee, b"12".to_vec())),
        (1, Event::Dialled(callee, b"123".to_vec())),
        (1, Event::SendOn(callee, b"200".to_vec(), Some(b"office".to_vec()))),
        (0, Event::NumberTold { leg: caller, number: b"12".to_vec(), status: 0x8002, refresh: 600 }),
    ];
    assert_eq!(told, expected);
}

#[test]
fn variables_and_who_calls_come_with_the_call() {
    let mut world = World::two();
    let mut dial = Dial::to(address(1));
    (dial.called, dial.calling, dial.name) = (b"100", b"200", b"Bob");
    let variables: [(&[u8], &[u8]); 2] = [(b"colour", b"green"), (b"empty", b"")];
    dial.variables = &variables;
    world.act(0, |machine, now, out| machine.dial(now, &dial, out)).unwrap();
    world.run(secs(1), &mut |_, _, _| {});
    let Some(Event::Call(_, request)) = world.of(1).next() else { panic!("a call") };
    let fields = request.fields();
    assert_eq!(
        (fields.called, fields.calling, fields.name),
        (Some(&b"100"[..]), Some(&b"200"[..]), Some(&b"Bob"[..]))
    );
    assert_eq!(request.variables().collect::<Vec<_>>(), variables);
    assert_eq!((request.from, request.validated), (address(0), true));
}

#[test]
fn a_call_without_a_common_format_can_still_be_rejected() {
    let mut world = World::two();
    let mut dial = Dial::to(address(1));
    dial.formats = &[FormatId::GSM];
    let caller = world.act(0, |machine, now, out| machine.dial(now, &dial, out)).unwrap();
    world.run(secs(1), &mut |world, side, event| {
        if let (1, Event::Call(leg, _)) = (side, event) {
            let leg = *leg;
            let accept = Accept { formats: &[FormatId::ULAW], priority: Priority::Host, ..accept_any() };
            world.act(1, |machine, now, out| {
                assert_eq!(machine.accept(now, leg, &accept, out), Err(Refused::NoFormat));
                machine.reject(now, leg, Cause::BEARERCAPABILITY_NOTAVAIL, b"no codec", out).unwrap();
            });
        }
    });
    let ended =
        Event::Ended { leg: caller, cause: Cause::BEARERCAPABILITY_NOTAVAIL, text: b"no codec".to_vec() };
    assert_eq!(world.of(0).last(), Some(&ended));
    world.assert_empty();
}

#[test]
fn rfc5456_8_1_2_voice_begins_with_a_full_frame_and_repeats_one_when_the_timestamp_turns() {
    let mut world = World::two();
    let (caller, _) = world.call(|_| {});
    world.wire.clear();
    let start = world.told.len();
    let frames_count = 50 * 70;
    for at in 0..frames_count {
        let format = if at < 100 { FormatId::ULAW } else { FormatId::ALAW };
        world.act(0, |machine, now, out| machine.voice(now, caller, format, 20, &[7; 160], out)).unwrap();
        // The sender wakes now early and now late; the pace of the codec is kept.
        world.run(ms(if at % 2 == 0 { 15 } else { 25 }), &mut |_, _, _| {});
    }
    let mine = world.wire.iter().filter(|(side, ..)| *side == 0).map(|(.., bytes)| parse(bytes).unwrap());
    let full =
        mine.filter(|frame| matches!(frame, Datagram::Full(Full { kind: Kind::Voice(_), .. }))).count();
    // The first, one for the other format, and one at 0x8000 and at 0x10000.
    assert_eq!(full, 4);
    let stamps: Vec<u32> = world.told[start..]
        .iter()
        .filter_map(|(.., event, _)| match event {
            Event::Voice { timestamp, .. } => Some(*timestamp),
            _ => None,
        })
        .collect();
    assert_eq!(stamps.len(), frames_count);
    assert!(stamps.windows(2).all(|pair| pair[1] - pair[0] == 20), "20 ms from each to the next");
}

#[test]
fn who_is_talked_to_is_told_between_two_sides_that_both_said_that_they_know_how() {
    const NEITHER: Lines = Lines { send: false, take: false };
    const SEND: Lines = Lines { send: true, take: false };
    const TAKE: Lines = Lines { send: false, take: true };
    const BOTH: Lines = Lines { send: true, take: true };
    let party = Connected { number: b"200", name: b"Bob", presentation: 0x20 };
    for (caller_has, callee_has, to_callee, to_caller) in [
        (BOTH, BOTH, true, true),
        (SEND, TAKE, true, false),
        (TAKE, SEND, false, true),
        (SEND, SEND, false, false),
        (TAKE, TAKE, false, false),
        (BOTH, NEITHER, false, false),
        (NEITHER, BOTH, false, false),
        (TAKE, BOTH, false, true),
    ] {
        let name = format!("{caller_has:?} {callee_has:?}");
        let mut world = World::two();
        let mut dial = Dial::to(address(1));
        (dial.called, dial.lines) = (b"100", caller_has);
        dial.variables = &[(b"CITY", b"Ulm")];
        let caller = world.act(0, |machine, now, out| machine.dial(now, &dial, out)).unwrap();
        let early = world.act(0, |machine, now, out| machine.connected(now, caller, &party, out));
        assert_eq!(early, Err(Refused::WrongState), "{name}");
        let mut callee = None;
        world.run(secs(1), &mut |world, side, event| {
            if let (1, Event::Call(leg, request)) = (side, event) {
                let leg = *leg;
                callee = Some(leg);
                let variables: Vec<_> = request.variables().collect();
                assert_eq!(variables, [(&b"CITY"[..], &b"Ulm"[..])], "only what the dialplan has set");
                let accept = Accept { lines: callee_has, ..accept_any() };
                world.act(1, |machine, now, out| machine.accept(now, leg, &accept, out)).unwrap();
            }
        });
        let callee = callee.expect("a call");
        for (from, leg, goes, other) in [(0, caller, to_callee, callee), (1, callee, to_caller, caller)] {
            let told = world.act(from, |machine, now, out| machine.connected(now, leg, &party, out));
            assert_eq!(told, Ok(goes), "{name}");
            world.run(ms(100), &mut |_, _, _| {});
            let (number, text) = (b"200".to_vec(), b"Bob".to_vec());
            let event = Event::Connected { leg: other, number, name: text, presentation: 0x20 };
            assert_eq!(world.of(1 - from).any(|told| *told == event), goes, "{name}");
        }
        // Who knows nothing of it sees nothing but a variable in NEW, and that only from who wants it.
        let said = |side: usize| {
            let mut mine = world.wire.iter().filter(|(from, ..)| *from == side);
            mine.any(|(.., bytes)| bytes.windows(18).any(|part| part == b"STROWGER_CONNECTED"))
        };
        assert_eq!(said(0), caller_has != NEITHER, "{name}");
        assert_eq!(said(1), to_callee || to_caller, "{name}");
    }
}

#[test]
fn the_fields_own_connected_line_and_one_that_runs_over_its_frame_are_no_party() {
    for (name, lines, data) in [
        ("of who said nothing", Lines::default(), &[2, 3, b'2', b'0', b'0'][..]),
        ("an element that runs over", Lines { send: true, take: true }, &[2, 30, b'2']),
    ] {
        let mut world = World::two();
        let (_, callee) = world.call(|dial| dial.lines = lines);
        let look = world.machines[1].look(callee).unwrap();
        let (source, dest, iseq) = (look.theirs, look.ours, 2);
        let (kind, timestamp) = (Kind::Control(Control::CONNECTED_LINE), 900);
        let mut bytes = Vec::new();
        Full { source, dest, again: false, timestamp, oseq: 1, iseq, kind, data }.write(&mut bytes);
        let (told, wire) = (world.told.len(), world.wire.len());
        world.inject(address(0), 1, &bytes);
        assert_eq!(world.told.len(), told, "{name}");
        assert_eq!(world.wire.len(), wire + 1, "{name}: acknowledged all the same");
    }
}

#[test]
fn a_quelched_side_sends_no_media_until_it_may() {
    let mut world = World::two();
    let (caller, callee) = world.call(|_| {});
    world.act(1, |machine, now, out| machine.quelch(now, callee, None, out)).unwrap();
    world.run(ms(100), &mut |_, _, _| {});
    let voice = |world: &mut World| {
        world.act(0, |machine, now, out| machine.voice(now, caller, FormatId::ULAW, 20, &[7; 160], out))
    };
    assert_eq!(voice(&mut world), Err(Refused::WrongState));
    world.act(1, |machine, now, out| machine.unquelch(now, callee, out)).unwrap();
    world.run(ms(100), &mut |_, _, _| {});
    assert_eq!(voice(&mut world), Ok(()));
}

#[test]
fn a_mini_frame_before_any_full_one_is_asked_for_and_not_heard() {
    let mut world = World::two();
    let (_, _) = world.call(|_| {});
    let Some((.., bytes)) = world.wire.iter().find(|(side, ..)| *side == 0) else { panic!("a frame") };
    let Ok(Datagram::Full(frame)) = parse(bytes) else { panic!("a full frame") };
    let source = frame.source;
    let (start, wire) = (world.told.len(), world.wire.len());
    for _ in 0..10 {
        world.inject(address(0), 1, &[&source.to_be_bytes()[..], &[0, 20], &[7; 160]].concat());
    }
    assert_eq!(world.told.len(), start);
    assert_eq!(world.wire.len() - wire, 1, "one VNAK for ten");
}

#[test]
fn a_silent_call_is_asked_after_at_a_pace_that_slows_down_and_a_dead_side_is_noticed() {
    let mut world = World::two();
    let (caller, callee) = world.call(|_| {});
    world.wire.clear();
    world.run(secs(3600), &mut |_, _, _| {});
    let counted = |name: &str| frames(&world, 0).iter().filter(|frame| *frame == name).count();
    let (pings, lags) = (counted("PING"), counted("LAGRQ"));
    assert!((140..220).contains(&pings), "{pings} PING in an hour without media, 171 expected");
    assert!((15..40).contains(&lags), "{lags} LAGRQ in an hour of the same lag; every 10 s would be 360");
    assert_eq!(world.machines[0].counts().legs, 1);
    // The round trip of the network, nearly.
    let round_trip = world.machines[0].round_trip(caller).unwrap();
    assert!(round_trip < ms(30), "{round_trip:?}");
    world.net.loss = 100;
    world.run(secs(120), &mut |_, _, _| {});
    for (side, leg) in [(0, caller), (1, callee)] {
        let gone = Event::Ended { leg, cause: Cause::DESTINATION_OUT_OF_ORDER, text: Vec::new() };
        assert_eq!(world.of(side).last(), Some(&gone));
    }
    world.assert_empty();
}

fn new_frame(source: u16, elements: &[Element<'_>]) -> Vec<u8> {
    let mut data = Vec::new();
    elements.iter().for_each(|element| write_element(element, &mut data));
    let mut bytes = Vec::new();
    let kind = Kind::Iax(Command::NEW);
    Full { source, dest: 0, again: false, timestamp: 3, oseq: 0, iseq: 0, kind, data: &data }
        .write(&mut bytes);
    bytes
}

#[test]
fn a_hundred_thousand_forged_calls_take_no_number_and_a_good_call_is_set_up_among_them() {
    let mut world = World::two();
    world.keep_wire = false;
    let mut random = kit::Random(4569);
    for at in 0..100_000usize {
        let from = ([127, random.below(256) as u8, random.below(256) as u8, 1], 4569).into();
        let token = random.bytes(24);
        let source = 2 + (at % 30_000) as u16;
        let bytes = match at % 3 {
            0 => new_frame(source, &[Element::Version(2), Element::Username(b"bob")]),
            1 => new_frame(source, &[Element::Version(2), Element::CallToken(b"")]),
            _ => new_frame(source, &[Element::Version(2), Element::CallToken(&token)]),
        };
        world.inject(from, 1, &bytes);
    }
    let counts = world.machines[1].counts();
    assert_eq!((counts.legs, counts.shared, counts.hosts, counts.indexed), (0, (0, 0), 0, 0));
    assert!(world.told.is_empty());
    world.keep_wire = true;
    let _call = world.call(|_| {});
}

#[test]
fn an_answer_without_state_is_hardly_longer_than_the_shortest_question() {
    const IP_UDP: usize = 28;
    for (name, element, longest) in [
        ("a token", Element::CallToken(b""), 150),
        ("a refusal for want of a token", Element::Username(b""), 107),
        ("a refusal for a wrong token", Element::CallToken(b"x"), 107),
    ] {
        let mut world = World::two();
        let question = new_frame(7, &[element]);
        world.inject(address(0), 1, &question);
        let (_, to, answer) = &world.wire[0];
        let percent = (answer.len() + IP_UDP) * 100 / (question.len() + IP_UDP);
        assert!(percent <= longest, "{name}: {percent} per cent");
        assert_eq!(*to, address(0), "{name}");
    }
}

#[test]
fn an_address_gets_its_numbers_and_no_more_until_they_have_rested() {
    let settings = Settings { numbers_of_address: 10, ..Settings::default() };
    let mut world = World::new(&[Settings::default(), settings]);
    let dial = Dial::to(address(1));
    let mut legs = Vec::new();
    for _ in 0..15 {
        world.act(0, |machine, now, out| machine.dial(now, &dial, out)).unwrap();
    }
    world.run(secs(1), &mut |_, side, event| {
        if let (1, Event::Call(leg, _)) = (side, event) {
            legs.push(*leg);
        }
    });
    assert_eq!(legs.len(), 10);
    let refused = |event: &&Event| matches!(event, Event::Ended { cause: Cause::SWITCH_CONGESTION, .. });
    assert_eq!(world.of(0).filter(refused).count(), 5);
    for leg in legs {
        world.act(1, |machine, now, out| machine.reject(now, leg, Cause::USER_BUSY, b"", out)).unwrap();
    }
    world.run(secs(30), &mut |_, _, _| {});
    world.act(0, |machine, now, out| machine.dial(now, &dial, out)).unwrap();
    world.run(secs(1), &mut |_, _, _| {});
    assert_eq!(world.of(0).filter(refused).count(), 6, "numbers of calls rest for a minute");
    world.run(secs(40), &mut |_, _, _| {});
    world.act(0, |machine, now, out| machine.dial(now, &dial, out)).unwrap();
    world.run(secs(1), &mut |_, _, _| {});
    assert_eq!(world.of(0).filter(refused).count(), 6);
}

#[test]
fn a_peer_without_tokens_is_let_in_only_where_that_is_said() {
    let users = [(b"old".to_vec(), TokenRule::No), (b"auto".to_vec(), TokenRule::Auto)];
    let settings = Settings {
        token_users: users.into_iter().collect(),
        token_optional: vec![("198.51.100.0".parse().unwrap(), 24)],
        numbers_without_token: 4,
        ..Settings::default()
    };
    let mut world = World::new(&[settings]);
    let mut calls = |from: &str, source, user: &[u8]| {
        let before = world.told.len();
        world.inject(
            from.parse().unwrap(),
            0,
            &new_frame(source, &[Element::Version(2), Element::Username(user)]),
        );
        world.told.len() - before
    };
    for (name, from, user, calls_made) in [
        ("anybody", "192.0.2.9:4569", &b"bob"[..], 0),
        ("a user who needs none", "192.0.2.9:4569", b"old", 1),
        ("a user who has not shown that it can", "192.0.2.9:4569", b"auto", 1),
        ("a network that needs none", "198.51.100.9:4569", b"bob", 1),
    ] {
        assert_eq!(calls(from, 5 + user.len() as u16, user), calls_made, "{name}");
    }
    let made: usize = (100..110).map(|source| calls("192.0.2.9:4569", source, b"old")).sum();
    assert_eq!(made, 1, "four numbers without a token altogether");
}

#[test]
fn rfc5456_6_9_2_a_frame_for_no_call_gets_inval_and_what_ends_gets_nothing() {
    for (name, kind, answered) in [
        ("voice", Kind::Iax(Command::PING), true),
        ("text", Kind::Text, true),
        ("HANGUP", Kind::Iax(Command::HANGUP), false),
        ("REJECT", Kind::Iax(Command::REJECT), false),
        ("ACK", Kind::Iax(Command::ACK), false),
        ("INVAL", Kind::Iax(Command::INVAL), false),
        ("VNAK", Kind::Iax(Command::VNAK), false),
        ("TXCNT", Kind::Iax(Command::TXCNT), false),
    ] {
        let mut world = World::two();
        let mut bytes = Vec::new();
        Full { source: 7, dest: 99, again: false, timestamp: 5, oseq: 3, iseq: 4, kind, data: &[] }
            .write(&mut bytes);
        world.inject(address(0), 1, &bytes);
        let answers: Vec<_> = world.wire.iter().map(|(.., bytes)| parse(bytes).unwrap()).collect();
        let kind = Kind::Iax(Command::INVAL);
        let inval =
            Full { source: 99, dest: 7, again: false, timestamp: 5, oseq: 4, iseq: 4, kind, data: &[] };
        let expected = if answered { vec![Datagram::Full(inval)] } else { Vec::new() };
        assert_eq!(answers, expected, "{name}");
    }
    let mut world = World::two();
    world.inject(address(0), 1, &[0, 99, 0, 1, 7, 7]);
    assert!(world.wire.is_empty(), "a mini frame");
}

#[test]
fn frames_with_a_wrong_number_or_from_another_address_do_not_touch_a_call() {
    let mut world = World::two();
    let (_, callee) = world.call(|_| {});
    let last = world.wire.iter().rfind(|(side, ..)| *side == 0).unwrap().2.clone();
    let Ok(Datagram::Full(frame)) = parse(&last) else { panic!("a full frame") };
    let kind = Kind::Iax(Command::HANGUP);
    let hangup = Full { kind, oseq: frame.oseq, ..frame };
    let forged = [
        (([192, 0, 2, 77], 4569).into(), hangup),
        (([192, 0, 2, 1], 4570).into(), hangup),
        (address(0), Full { source: frame.source ^ 1, ..hangup }),
        (address(0), Full { dest: frame.dest ^ 1, ..hangup }),
        (address(0), Full { dest: 0, ..hangup }),
        (address(0), Full { source: frame.source ^ 1, kind: Kind::Iax(Command::INVAL), ..hangup }),
    ];
    for (from, frame) in forged {
        let mut bytes = Vec::new();
        frame.write(&mut bytes);
        world.inject(from, 1, &bytes);
        assert_eq!(world.machines[1].counts().legs, 1, "{frame:?}");
    }
    let mut bytes = Vec::new();
    hangup.write(&mut bytes);
    world.inject(address(0), 1, &bytes);
    assert!(world.of(1).any(|event| matches!(event, Event::Ended { leg, .. } if *leg == callee)));
}

#[test]
fn rfc5456_6_9_5_a_message_that_is_not_known_is_said_to_be() {
    let mut world = World::two();
    let _call = world.call(|_| {});
    let last = world.wire.iter().rfind(|(side, ..)| *side == 0).unwrap().2.clone();
    let Ok(Datagram::Full(frame)) = parse(&last) else { panic!("a full frame") };
    for (oseq, command) in (frame.oseq..).zip([Command::FWDOWNL, Command::PROVISION, Command(99)]) {
        let mut bytes = Vec::new();
        Full { oseq, kind: Kind::Iax(command), data: &[], ..frame }.write(&mut bytes);
        world.inject(address(0), 1, &bytes);
        let Ok(Datagram::Full(answer)) = parse(&world.wire.last().unwrap().2) else { panic!("a full frame") };
        assert_eq!(answer.kind, Kind::Iax(Command::UNSUPPORT));
        assert_eq!(answer.elements().next(), Some(Element::IaxUnknown(command.0)));
    }
}

#[test]
fn whatever_comes_a_call_that_is_up_does_not_notice() {
    let mut world = World::two();
    let (caller, _) = world.call(|_| {});
    let mut random = kit::Random(99);
    let samples: Vec<_> = world.wire.iter().map(|(.., bytes)| bytes.clone()).collect();
    world.keep_wire = false;
    let mut bad = kit::bad_input("generated.tar.xz", "/iax2/");
    for _ in 0..20_000 {
        let mut bytes = samples[random.below(samples.len())].clone();
        kit::spoil(&mut random, &mut bytes);
        bad.push(bytes);
    }
    for bytes in bad {
        // From others, who may know every number.
        world.inject(([198, 51, 100, random.below(200) as u8], 4569).into(), 1, &bytes);
    }
    let start = world.told.len();
    world.act(0, |machine, now, out| machine.text(now, caller, b"still here", out)).unwrap();
    world.run(secs(1), &mut |_, _, _| {});
    assert!(world.told[start..].iter().any(|(.., event, _)| matches!(event, Event::Text(..))));
}

#[test]
fn rfc5456_6_7_3_both_sides_know_how_each_receives_the_voice_of_the_other() {
    let mut world = World::two();
    let (caller, callee) = world.call(|_| {});
    for frame in 0..2000 {
        // Three in a row are lost, and a pause in between is no loss.
        world.blocked = if (100..103).contains(&frame) { vec![(0, 1)] } else { Vec::new() };
        if !(500..550).contains(&frame) {
            world
                .act(0, |machine, now, out| machine.voice(now, caller, FormatId::ULAW, 20, &[0x55; 160], out))
                .unwrap();
        }
        world.run(ms(20), &mut |_, _, _| {});
    }
    let local = world.machines[1].look(callee).unwrap().local;
    assert_eq!((local.received, local.lost, local.loss_percent, local.out_of_order), (1947, 3, 0, 0));
    world.machines[1].set_played(callee, 60, 2);
    world.run(secs(120), &mut |_, _, _| {});
    let told = world.machines[0].look(caller).unwrap().remote_report;
    assert_eq!((told.received, told.lost, told.delay_ms, told.dropped), (1947, 3, 60, 2));
    assert!(world.of(1).any(|event| *event == Event::Asked(callee)));
}

#[test]
fn who_says_nothing_at_all_in_the_time_it_was_given_is_given_up() {
    let dial = |autokill| Dial { called: b"100", autokill, ..Dial::to(address(1)) };
    for (name, autokill, silent, over_ms) in [
        ("nobody there", Some(ms(750)), true, 750..800),
        ("nobody there, as the protocol has it", None, true, 20_000..61_000),
    ] {
        let mut world = World::two();
        world.net.loss = if silent { 100 } else { 0 };
        let begun = world.now;
        let leg = world.act(0, |machine, now, out| machine.dial(now, &dial(autokill), out)).unwrap();
        world.run(secs(120), &mut |_, _, _| {});
        let (at, _, event, _) = world.told.iter().find(|(_, side, ..)| *side == 0).expect(name);
        let gone = Event::Ended { leg, cause: Cause::DESTINATION_OUT_OF_ORDER, text: Vec::new() };
        assert_eq!(*event, gone, "{name}");
        assert!(over_ms.contains(&(*at - begun).as_millis()), "{name}: {:?}", *at - begun);
        world.net.loss = 0;
        world.assert_empty();
    }
    // Who answers the first frame has the time that everybody has: it is asked who it is, and takes ten seconds to accept.
    let mut world = World::two();
    let hurried = dial(Some(ms(750)));
    world.act(0, |machine, now, out| machine.dial(now, &hurried, out)).unwrap();
    let mut called = None;
    world.run(secs(10), &mut |_, side, event| {
        if let (1, Event::Call(leg, _)) = (side, event) {
            called = Some(*leg);
        }
    });
    let callee = called.expect("a call");
    assert!(world.of(0).next().is_none(), "{:?}", world.told);
    world.act(1, |machine, now, out| machine.accept(now, callee, &accept_any(), out)).unwrap();
    world.run(secs(1), &mut |_, _, _| {});
    assert!(matches!(world.of(0).next(), Some(Event::Accepted(..))), "{:?}", world.told);
}

#[test]
fn rfc5456_7_4_a_call_that_has_to_be_enciphered_ends_when_it_is_accepted_without_a_challenge() {
    for (encrypt, accepted) in [(Encrypt::No, true), (Encrypt::Wanted, true), (Encrypt::Required, false)] {
        let mut world = World::two();
        let mut dial = Dial::to(address(1));
        (dial.secret, dial.encrypt) = (Some(Secret::new(b"secret")), encrypt);
        let caller = world.act(0, |machine, now, out| machine.dial(now, &dial, out)).unwrap();
        world.run(secs(2), &mut |world, side, event| {
            if let (1, Event::Call(leg, _)) = (side, event) {
                let leg = *leg;
                world.act(1, |machine, now, out| machine.accept(now, leg, &accept_any(), out)).unwrap();
            }
        });
        let expected = if accepted {
            Event::Accepted(caller, FormatId::ULAW)
        } else {
            let (cause, text) = (Cause::BEARERCAPABILITY_NOTAVAIL, b"No encryption".to_vec());
            Event::Ended { leg: caller, cause, text }
        };
        assert_eq!(world.of(0).collect::<Vec<_>>(), [&expected], "{encrypt:?}");
        if !accepted {
            assert!(matches!(world.of(1).last(), Some(Event::Ended { .. })), "the other side hears of it");
            world.assert_empty();
        }
    }
}

#[test]
fn a_call_that_ends_while_too_much_waits_to_be_acknowledged_is_hung_up_all_the_same() {
    let mut world = World::two();
    let (caller, callee) = world.call(|_| {});
    world.blocked = vec![(0, 1), (1, 0)];
    let refused = loop {
        let said = world.act(0, |machine, now, out| machine.text(now, caller, b"text", out));
        if said.is_err() {
            break said;
        }
    };
    assert_eq!(refused, Err(Refused::WindowFull));
    world.act(0, |machine, now, out| machine.hang_up(now, caller, Cause::USER_BUSY, out)).unwrap();
    world.blocked.clear();
    world.run(secs(15), &mut |_, _, _| {});
    let ended = Event::Ended { leg: callee, cause: Cause::USER_BUSY, text: Vec::new() };
    assert_eq!(world.of(1).last(), Some(&ended));
    world.assert_empty();
}

#[test]
fn rfc5456_8_1_2_video_is_agreed_on_beside_sound_and_comes_with_the_time_of_its_picture() {
    let h264 = Media::of_video(FormatId::H264).unwrap();
    let mut world = World::two();
    let (caller, callee) = world.call(|dial| dial.video = &[FormatId::H263, FormatId::H264]);
    for (side, leg) in [(0, caller), (1, callee)] {
        assert_eq!(world.machines[side].look(leg).unwrap().video, h264, "side {side}: what both have");
    }
    // Two pictures of two pieces each, so far apart that the short clock turns.
    for (picture, pause) in [(1, 40_000), (2, 10)] {
        for (goes_on, mark) in [(false, false), (true, true)] {
            let payload = [picture, u8::from(mark)];
            let piece = Piece { format: h264, goes_on, mark, payload: &payload };
            world.act(0, |machine, now, out| machine.video(now, caller, &piece, out)).unwrap();
            world.run(ms(7), &mut |_, _, _| {});
        }
        world.run(ms(pause), &mut |_, _, _| {});
    }
    let seen: Vec<_> = world
        .of(1)
        .filter_map(|event| match event {
            Event::Video { leg, format, timestamp, mark, .. } => Some((*leg, *format, *timestamp, *mark)),
            _ => None,
        })
        .collect();
    assert_eq!(seen.iter().map(|of| of.3).collect::<Vec<_>>(), [false, true, false, true]);
    assert!(seen.iter().all(|of| of.0 == callee && of.1 == h264), "{seen:?}");
    assert!(seen[0].2 == seen[1].2 && seen[2].2 == seen[3].2, "a picture has one time: {seen:?}");
    assert_eq!(seen[2].2 - seen[1].2, 40_014);
    // The first of each half of the short clock says the format, and is repeated until it is acknowledged.
    let sent = |wanted: fn(&Datagram<'_>) -> bool| {
        let all = world.wire.iter().filter(|(from, ..)| *from == 0);
        all.filter(|(_, _, bytes)| parse(bytes).is_ok_and(|datagram| wanted(&datagram))).count()
    };
    assert_eq!(sent(|of| matches!(of, Datagram::Full(Full { kind: Kind::Video(..), .. }))), 2);
    assert_eq!(sent(|of| matches!(of, Datagram::Video(_))), 2);
}

#[test]
fn video_that_only_one_side_has_is_not_agreed_on() {
    for (name, offered) in [("none", &[][..]), ("another", &[FormatId::H261][..])] {
        let mut world = World::two();
        let (caller, callee) = world.call(|dial| dial.video = offered);
        assert_eq!(world.machines[1].look(callee).unwrap().video, Media::NONE, "{name}");
        // A callee that says nothing of video may have what it was offered: so do all of the field.
        assert_eq!(world.machines[0].look(caller).unwrap().video, Media::all_video(offered), "{name}");
    }
}
