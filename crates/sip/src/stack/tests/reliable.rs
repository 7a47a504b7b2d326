//! Reliable provisional responses (RFC 3262) and UPDATE (RFC 3311) between two stacks and against forged peers.

use super::*;

const OFFER: Body<'static> = Body::sdp(b"v=0\r\noffer");
const ANSWER: Body<'static> = Body::sdp(b"v=0\r\nanswer");

/// A call with an offer that side 1 has accepted.
fn offered(world: &mut World) -> (DialogId, DialogId) {
    let request = Outgoing { body: Some(OFFER), ..outgoing(CONTACTS[0], NAMES[1]) };
    let (caller, _) = world.with(0, |stack, now, out| stack.invite(&request, now, out).unwrap());
    let events = world.run(world.now + Duration::from_millis(10));
    let [(1, Event::Invite(incoming))] = events.as_slice() else { panic!("{:?}", words(&events)) };
    let accept = Accept { contact: CONTACTS[1], symmetric: false, unproved: false };
    let (callee, _) = world.with(1, |stack, now, _| stack.accept_invite(incoming, &accept, now).unwrap());
    world.sent();
    (caller, callee)
}

fn reliably(world: &mut World, callee: DialogId, status: u16, body: Option<Body<'_>>) {
    let answer = Answer { body, ..Answer::new(status) };
    let (done, events) = world.with(1, |stack, now, out| stack.answer_reliably(callee, &answer, now, out));
    assert_eq!((done, events.len()), (Ok(()), 0));
}

#[test]
fn rfc3262_3_and_4_a_reliable_response_is_acknowledged_by_prack() {
    let mut world = World::new(FINE, 31);
    let (caller, callee) = offered(&mut world);
    reliably(&mut world, callee, 183, Some(ANSWER));
    assert_eq!(words(&world.run(ms(100))), ["0 Provisional 183 Some(0)", "0 Response 200"]);
    assert_eq!(
        world.sent(),
        ["1 SIP/2.0 183 Session Progress", "0 PRACK sip:callee@10.0.0.2:5060", "1 SIP/2.0 200 OK"]
    );
    world.answer(callee, 200);
    assert_eq!(words(&world.run(ms(200))), ["0 Answered 0"]);
    world.with(0, |stack, _, out| stack.ack(caller, None, out).unwrap());
    assert_eq!(words(&world.run(ms(300))), ["1 Acked"]);
    world.with(0, |stack, now, out| stack.bye(caller, &[], now, out).unwrap());
    world.run_out();
}

#[test]
fn rfc3262_3_one_response_at_a_time_and_the_latest_waits() {
    let mut world = World::new(FINE, 32);
    let (_, callee) = offered(&mut world);
    for status in [180, 181, 183] {
        reliably(&mut world, callee, status, None);
    }
    assert_eq!(world.sent(), ["1 SIP/2.0 180 Ringing"]);
    let happened = world.run(ms(200));
    assert_eq!(
        words(&happened),
        ["0 Provisional 180 Some(0)", "0 Response 200", "0 Provisional 183 Some(0)", "0 Response 200"]
    );
    let rseq = |event: &Event| match event {
        Event::Provisional { message, .. } => {
            message.view().header(HeaderName::RSeq).and_then(crate::header::delta_seconds)
        }
        _ => None,
    };
    let numbers: Vec<u32> = happened.iter().filter_map(|(_, event)| rseq(event)).collect();
    assert_eq!(numbers[1], numbers[0] + 1);
    world.answer(callee, 486);
    world.run_out();
}

#[test]
fn rfc3262_3_a_2xx_waits_for_the_prack_of_a_description_and_for_no_other() {
    for (name, body, waits) in [("a description", Some(ANSWER), true), ("ringing", None, false)] {
        let mut world = World::new(FINE, 33);
        let (_, callee) = offered(&mut world);
        reliably(&mut world, callee, 183, body);
        world.answer(callee, 200);
        assert_eq!(world.sent().len(), if waits { 1 } else { 2 }, "{name}");
        let events = words(&world.run(ms(400)));
        assert!(events.contains(&"0 Answered 0".to_owned()), "{name}: {events:?}");
        world.run_out();
    }
}

#[test]
fn rfc3262_3_without_prack_the_interval_doubles_without_cap_and_the_call_is_refused() {
    let mut world = World::new(FINE, 34);
    let (_, callee) = offered(&mut world);
    world.weather.lost_percent = 100;
    reliably(&mut world, callee, 183, None);
    world.sent();
    let mut at = Vec::new();
    let mut events = Vec::new();
    while let Some(happened) = world.step(ms(32_500)) {
        events.extend(happened.into_iter().filter(|(side, _)| *side == 1));
        at.extend(
            world
                .sent()
                .iter()
                .filter(|line| line.contains("183"))
                .map(|_| world.now.since(ms(10)).as_millis()),
        );
    }
    assert_eq!(at, [500, 1500, 3500, 7500, 15500, 31500]);
    assert_eq!(words(&events), ["1 Ended NoAck"]);
}

#[test]
fn rfc3262_4_lost_doubled_and_late_messages_change_nothing() {
    for seed in 0..200 {
        let weather = Weather { lost_percent: 20, doubled_percent: 20, delay_ms: (1, 400) };
        let mut world = World::new(weather, 1000 + seed);
        let request = Outgoing { body: Some(OFFER), ..outgoing(CONTACTS[0], NAMES[1]) };
        let (caller, _) = world.with(0, |stack, now, out| stack.invite(&request, now, out).unwrap());
        let mut callee = None;
        let (mut heard, mut answered) = (Vec::new(), false);
        while let Some(happened) = world.step(ms(60_000)) {
            for (side, event) in happened {
                match (side, event) {
                    (1, Event::Invite(incoming)) if callee.is_none() => {
                        let accept = Accept { contact: CONTACTS[1], symmetric: false, unproved: false };
                        let (dialog, _) = world
                            .with(1, |stack, now, _| stack.accept_invite(&incoming, &accept, now).unwrap());
                        callee = Some(dialog);
                        reliably(&mut world, dialog, 180, None);
                        reliably(&mut world, dialog, 183, Some(ANSWER));
                        world.answer(dialog, 200);
                    }
                    (0, Event::Provisional { status, .. }) => heard.push(status),
                    (0, Event::Answered { .. }) => {
                        answered = true;
                        world.with(0, |stack, _, out| stack.ack(caller, None, out).unwrap());
                    }
                    _ => {}
                }
            }
        }
        // A 2xx that nothing holds back may overtake.
        assert!(heard.is_empty() || heard == [180] || heard == [180, 183], "seed {seed}: {heard:?}");
        assert!(answered, "seed {seed}");
        let _ = world.with(0, |stack, now, out| stack.hang_up(caller, 0, &[], now, out)).0;
        world.run_out();
    }
}

/// A response of a forged callee to the INVITE that `stack` has just sent.
fn forged(invite: &[u8], status: &str, tag: &str, headers: &str, body: &str) -> String {
    let text = String::from_utf8_lossy(invite).into_owned();
    let line = |name: &str| text.lines().find(|line| line.starts_with(name)).unwrap().to_owned();
    let via = line("Via:").replace(";rport", "");
    let to = line("To:");
    let to = to.split_once(";tag=").map_or(&*to, |(to, _)| to);
    format!(
        "SIP/2.0 {status} X\r\n{via}\r\n{}\r\n{to};tag={tag}\r\n{}\r\n{}\r\nContact: <sip:{tag}@10.0.0.2>\r\n{headers}\
         Content-Length: {}\r\n\r\n{body}",
        line("From:"),
        line("Call-ID:"),
        line("CSeq:"),
        body.len()
    )
}

#[test]
fn rfc3262_4_each_fork_has_its_own_series_and_gaps_are_not_acknowledged() {
    let mut us = stack(NAMES[0], config(), 35);
    let mut out = Vec::new();
    let request = Outgoing { body: Some(OFFER), ..outgoing(CONTACTS[0], NAMES[1]) };
    us.invite(&request, ms(0), &mut out).unwrap();
    let Output::Send(invite) = out.remove(0) else { panic!("an INVITE") };
    for (name, tag, headers, heard, pracked) in [
        ("the first of a fork", "a", "Require: 100rel\r\nRSeq: 7\r\n", true, Some("7")),
        ("the first of another fork", "b", "Require: 100rel\r\nRSeq: 900\r\n", true, Some("900")),
        ("again", "a", "Require: 100rel\r\nRSeq: 7\r\n", false, None),
        ("one too early", "a", "Require: 100rel\r\nRSeq: 9\r\n", false, None),
        ("the next", "a", "Require: 100rel\r\nRSeq: 8\r\n", true, Some("8")),
        ("not reliable", "a", "", true, None),
        ("no number", "c", "Require: 100rel\r\n", false, None),
        ("no sound number", "c", "Require: 100rel\r\nRSeq: 99999999999\r\n", false, None),
        ("zero", "c", "Require: 100rel\r\nRSeq: 0\r\n", false, None),
    ] {
        let mut out = Vec::new();
        us.receive(
            udp(NAMES[1]),
            forged(&invite.bytes, "180", tag, headers, "").as_bytes(),
            ms(10),
            &mut out,
        );
        let told = out.iter().any(|output| matches!(output, Output::Event(Event::Provisional { .. })));
        assert_eq!(told, heard, "{name}");
        let sent = out.iter().find_map(|output| match output {
            Output::Send(send) => Some(String::from_utf8_lossy(&send.bytes).into_owned()),
            Output::Event(_) => None,
        });
        assert_eq!(sent.is_some(), pracked.is_some(), "{name}: {sent:?}");
        let (Some(sent), Some(number)) = (sent, pracked) else { continue };
        assert!(sent.starts_with(&format!("PRACK sip:{tag}@10.0.0.2 ")), "{name}: {sent}");
        let invite = String::from_utf8_lossy(&invite.bytes).into_owned();
        let cseq = invite.lines().find_map(|line| line.strip_prefix("CSeq: ")).unwrap();
        assert!(sent.contains(&format!("RAck: {number} {cseq}\r\n")), "{name}: {sent}");
    }
}

#[test]
fn rfc3262_4_a_reliable_response_to_a_reinvite_is_acknowledged_and_each_reinvite_is_numbered_anew() {
    let mut us = stack(NAMES[0], config(), 40);
    let sent = |out: Vec<Output>| -> Vec<Send> {
        out.into_iter()
            .filter_map(|output| match output {
                Output::Send(send) => Some(send),
                Output::Event(_) => None,
            })
            .collect()
    };
    let mut out = Vec::new();
    let request = Outgoing { body: Some(OFFER), ..outgoing(CONTACTS[0], NAMES[1]) };
    let dialog = us.invite(&request, ms(0), &mut out).unwrap();
    let mut invite = sent(core::mem::take(&mut out)).remove(0);
    let hear = |us: &mut Stack, text: String, at: u64| {
        let mut out = Vec::new();
        us.receive(udp(NAMES[1]), text.as_bytes(), ms(at), &mut out);
        let lines = sent(out).into_iter().map(|send| String::from_utf8_lossy(&send.bytes).into_owned());
        lines.collect::<Vec<_>>()
    };
    let reliable = |rseq: u32| format!("Require: 100rel\r\nRSeq: {rseq}\r\n");
    hear(&mut us, forged(&invite.bytes, "183", "a", &reliable(70), ""), 10);
    let routed = "Record-Route: <sip:proxy@10.0.0.2;lr>\r\n";
    hear(&mut us, forged(&invite.bytes, "200", "a", routed, "v=0\r\n"), 20);
    us.ack(dialog, None, &mut out).unwrap();
    for again in 1..=2_u64 {
        out.clear();
        us.reinvite(dialog, &[], Some(OFFER), ms(again * 1000), &mut out).unwrap();
        invite = sent(core::mem::take(&mut out)).remove(0);
        for (name, status, tag, rseq, acknowledged) in [
            ("100 is never reliable", "100", "a", 1, false),
            ("the first", "183", "a", 1, true),
            ("again", "183", "a", 1, false),
            ("one too early", "180", "a", 3, false),
            ("the next", "180", "a", 2, true),
            ("of nobody we talk to", "180", "b", 1, false),
        ] {
            let lines =
                hear(&mut us, forged(&invite.bytes, status, tag, &reliable(rseq), ""), again * 1000 + 10);
            assert_eq!(lines.len(), usize::from(acknowledged), "{name}, {again}: {lines:?}");
            let [prack] = lines.as_slice() else { continue };
            assert!(prack.starts_with("PRACK sip:a@10.0.0.2 "), "{name}: {prack}");
            assert!(prack.contains("\r\nRoute: <sip:proxy@10.0.0.2;lr>\r\n"), "{name}: {prack}");
            let invite = String::from_utf8_lossy(&invite.bytes).into_owned();
            let cseq = invite.lines().find_map(|line| line.strip_prefix("CSeq: ")).unwrap();
            assert!(prack.contains(&format!("RAck: {rseq} {cseq}\r\n")), "{name}: {prack}");
        }
        hear(&mut us, forged(&invite.bytes, "200", "a", "", "v=0\r\n"), again * 1000 + 20);
        us.ack(dialog, None, &mut out).unwrap();
    }
}

#[test]
fn rfc3262_3_a_prack_that_fits_nothing_is_481() {
    let mut world = World::new(FINE, 36);
    let (_, callee) = offered(&mut world);
    let names = world.stacks[1].names(callee).unwrap();
    let (call_id, tag) = (String::from_utf8_lossy(names.call_id).into_owned(), names.local_tag.to_owned());
    let remote = String::from_utf8_lossy(names.remote_tag).into_owned();
    reliably(&mut world, callee, 180, None);
    for (place, rack) in ["RAck: 1 1 INVITE\r\n", "RAck: x\r\n", ""].iter().enumerate() {
        let text = format!(
            "PRACK sip:callee@10.0.0.2:5060 SIP/2.0\r\nVia: SIP/2.0/UDP {};branch=z9hG4bKp{place}\r\nMax-Forwards: 70\r\n\
             From: <sip:caller@here>;tag={remote}\r\nTo: <sip:callee@there>;tag={tag}\r\nCall-ID: {call_id}\r\n\
             CSeq: {} PRACK\r\n{rack}Content-Length: 0\r\n\r\n",
            NAMES[0],
            20_000 + place
        );
        let mut out = Vec::new();
        world.stacks[1].receive(udp(NAMES[0]), text.as_bytes(), world.now, &mut out);
        let [Output::Send(send)] = out.as_slice() else { panic!("{out:?}") };
        assert!(send.bytes.starts_with(b"SIP/2.0 481 "), "{rack}");
    }
}

#[test]
fn rfc3262_5_an_offer_in_a_reliable_response_is_answered_in_the_prack_by_the_driver() {
    let mut world = World::new(FINE, 37);
    let (_, callee) = world.call(); // no offer in the INVITE
    reliably(&mut world, callee, 183, None);
    world.run(ms(100));
    let names = world.stacks[1].names(callee).unwrap();
    let (call_id, tag) = (String::from_utf8_lossy(names.call_id).into_owned(), names.local_tag.to_owned());
    let remote = String::from_utf8_lossy(names.remote_tag).into_owned();
    world.sent();
    reliably(&mut world, callee, 183, Some(OFFER));
    let mut world_out = Vec::new();
    world.stacks[1].due(world.now, &mut world_out);
    // The stack of side 0 would acknowledge by itself; a peer that answers in PRACK is written by hand.
    let response = loop {
        let flown = world.flying.pop().expect("the second 183");
        let text = String::from_utf8_lossy(&flown.bytes).into_owned();
        if text.contains("offer") {
            break text;
        }
    };
    let line = |name: &str| response.lines().find_map(|line| line.strip_prefix(name)).unwrap().to_owned();
    let text = format!(
        "PRACK sip:callee@10.0.0.2:5060 SIP/2.0\r\nVia: SIP/2.0/UDP {};branch=z9hG4bKq\r\nMax-Forwards: 70\r\n\
         From: <sip:caller@here>;tag={remote}\r\nTo: <sip:callee@there>;tag={tag}\r\nCall-ID: {call_id}\r\nCSeq: 20000 PRACK\r\n\
         RAck: {} {}\r\nContent-Type: application/sdp\r\nContent-Length: 13\r\n\r\nv=0\r\nanswer\r\n",
        NAMES[0],
        line("RSeq: "),
        line("CSeq: ")
    );
    let mut out = Vec::new();
    world.stacks[1].receive(udp(NAMES[0]), text.as_bytes(), world.now, &mut out);
    let [Output::Event(Event::InDialog { request, message, .. })] = out.as_slice() else { panic!("{out:?}") };
    assert_eq!(message.view().method(), Method::Prack);
    let (request, mut out) = (*request, Vec::new());
    world.stacks[1].respond(request, &Answer::new(200), world.now, &mut out).unwrap();
    assert_eq!(out.len(), 1);
}

#[test]
fn rfc3311_5_2_an_offer_meets_an_unanswered_one() {
    // Before the first offer has an answer neither side may offer again.
    let mut world = World::new(FINE, 38);
    let (caller, callee) = offered(&mut world);
    let update = |world: &mut World, side: usize, dialog: DialogId, body: Option<Body<'_>>| {
        world
            .with(side, |stack, now, out| stack.request_inside(dialog, (Method::Update, &[], body), now, out))
            .0
            .map(drop)
    };
    assert_eq!(update(&mut world, 1, callee, Some(OFFER)), Err(Refused::Pending));
    reliably(&mut world, callee, 183, Some(ANSWER));
    assert_eq!(
        update(&mut world, 1, callee, Some(OFFER)),
        Err(Refused::Pending),
        "without PRACK it is not agreed"
    );
    world.run(ms(100));
    // Both at once: each gets 491.
    assert_eq!(update(&mut world, 0, caller, Some(OFFER)), Ok(()));
    assert_eq!(update(&mut world, 1, callee, Some(OFFER)), Ok(()));
    assert_eq!(update(&mut world, 0, caller, Some(OFFER)), Err(Refused::Pending), "one at a time");
    assert_eq!(words(&world.run(ms(200))), ["0 Response 491", "1 Response 491"]);
    // One at a time, it is taken, early and later.
    assert_eq!(update(&mut world, 0, caller, Some(OFFER)), Ok(()));
    let events = world.run(ms(300));
    let [(1, Event::InDialog { request, .. })] = events.as_slice() else { panic!("{:?}", words(&events)) };
    let answer = Answer::new(200).body(ANSWER);
    world.with(1, |stack, now, out| stack.respond(*request, &answer, now, out)).0.unwrap();
    assert_eq!(words(&world.run(ms(400))), ["0 Response 200"]);
    // Without an offer it meets nothing.
    assert_eq!(update(&mut world, 1, callee, None), Ok(()));
    assert_eq!(words(&world.run(ms(450))), ["0 InDialog UPDATE"]);
    world.answer(callee, 200);
    world.run(ms(500));
    world.with(0, |stack, _, out| stack.ack(caller, None, out).unwrap());
    world.run(ms(600));
    world.with(0, |stack, now, out| stack.reinvite(caller, &[], Some(OFFER), now, out).unwrap());
    assert_eq!(update(&mut world, 0, caller, Some(OFFER)), Err(Refused::Pending), "a re-INVITE is out");
    assert_eq!(update(&mut world, 1, callee, Some(OFFER)), Ok(()), "which the other side does not know");
    let happened = words(&world.run(ms(620)));
    assert!(happened.contains(&"1 Response 491".to_owned()), "{happened:?}");
}

#[test]
fn rfc4028_6_a_422_waits_for_another_interval() {
    let mut world = World::new(FINE, 39);
    let headers = [("Session-Expires", "90"), ("Min-SE", "90"), ("Subject", "kept")];
    let request = Outgoing { headers: &headers, ..outgoing(CONTACTS[0], NAMES[1]) };
    let (caller, _) = world.with(0, |stack, now, out| stack.invite(&request, now, out).unwrap());
    let events = world.run(ms(20));
    let [(1, Event::Invite(incoming))] = events.as_slice() else { panic!("{:?}", words(&events)) };
    let answer = Answer::new(422).headers(&[("Min-SE", "600")]);
    world.with(1, |stack, _, out| stack.respond_stateless(incoming, &answer, out));
    assert_eq!(words(&world.run(ms(40))), ["0 Challenged"]);
    let again = [("Session-Expires", "600"), ("Min-SE", "600")];
    world.with(0, |stack, now, out| stack.retry_invite(caller, &again, now, out).unwrap());
    let events = world.run(ms(60));
    let [(1, Event::Invite(incoming))] = events.as_slice() else { panic!("{:?}", words(&events)) };
    let view = incoming.message.view();
    let all =
        |name: &[u8]| view.headers(HeaderName::from_bytes(name)).map(<[u8]>::to_vec).collect::<Vec<_>>();
    assert_eq!((all(b"Session-Expires"), all(b"Min-SE")), (vec![b"600".to_vec()], vec![b"600".to_vec()]));
    assert_eq!(all(b"Subject"), [b"kept"]);
}
