//! Whole calls between two stacks.

use super::*;

#[test]
fn rfc3261_13_a_call_rings_is_answered_and_ended_by_either_side() {
    for (name, ender) in [("caller hangs up", 0), ("callee hangs up", 1)] {
        let mut world = World::new(FINE, 1);
        let (caller, callee) = world.call();
        world.answer(callee, 180);
        assert_eq!(words(&world.run(ms(50))), ["0 Provisional 180 Some(0)"], "{name}");
        world.answer(callee, 200);
        assert_eq!(words(&world.run(ms(100))), ["0 Answered 0"], "{name}");
        world.with(0, |stack, _, out| stack.ack(caller, None, out).unwrap());
        assert_eq!(words(&world.run(ms(200))), ["1 Acked"], "{name}");
        let dialog = [caller, callee][ender];
        world.with(ender, |stack, now, out| stack.bye(dialog, &[], now, out).unwrap());
        let other = 1 - ender;
        let expected = [format!("{other} Ended Bye"), format!("{ender} Ended Local")];
        assert_eq!(words(&world.run(ms(300))), expected, "{name}");
        assert_eq!(world.stacks[0].load().dialogs + world.stacks[1].load().dialogs, 0, "{name}");
        let bye = format!("{ender} BYE sip:{}", ["callee@10.0.0.2:5060", "caller@10.0.0.1:5060"][ender]);
        let expected = [
            "0 INVITE sip:callee@there",
            "1 180 Ringing",
            "1 200 OK",
            "0 ACK sip:callee@10.0.0.2:5060",
            &bye,
            &format!("{other} 200 OK"),
        ];
        let sent: Vec<String> = world.sent().iter().map(|line| line.replace("SIP/2.0 ", "")).collect();
        assert_eq!(sent, expected, "{name}");
        assert!(world.run_out().is_empty(), "{name}");
    }
}

#[test]
fn rfc3261_17_2_1_a_slow_callee_sends_100_by_itself() {
    let mut world = World::new(FINE, 2);
    let (_, callee) = world.call();
    world.run(ms(300));
    assert_eq!(world.sent().last().unwrap(), "1 SIP/2.0 100 Trying".trim_start_matches(' '));
    world.answer(callee, 486);
    assert_eq!(words(&world.run_out()), ["0 Failed 486"]);
}

#[test]
fn rfc3261_13_3_1_1_ringing_is_repeated_every_minute() {
    let mut world = World::new(FINE, 3);
    let (_, callee) = world.call();
    world.answer(callee, 183);
    world.run(ms(130_000));
    let rang = world.sent().iter().filter(|line| line.contains("183")).count();
    assert_eq!(rang, 3);
    world.answer(callee, 404);
    world.run_out();
}

#[test]
fn rfc3261_9_1_cancel_waits_for_a_provisional_response() {
    let mut world = World::new(FINE, 4);
    let (caller, _callee) = world.call();
    let why = [("Reason", "SIP;cause=200;text=\"Call completed elsewhere\"")];
    world.with(0, |stack, now, out| stack.cancel(caller, &why, now, out).unwrap());
    assert_eq!(world.sent(), ["0 INVITE sip:callee@there"], "held: nothing was heard yet");
    let happened = world.run_out();
    let [(1, Event::Canceled { message, .. }), _] = happened.as_slice() else {
        panic!("{:?}", words(&happened))
    };
    assert_eq!(message.view().header(HeaderName::Reason), Some(why[0].1.as_bytes()), "kept while held");
    assert_eq!(words(&happened), ["1 Canceled", "0 Failed Canceled"]);
    let sent = world.sent();
    assert_eq!(
        sent.iter().map(|line| line.replace("SIP/2.0 ", "")).collect::<Vec<_>>(),
        [
            "1 100 Trying",
            "0 CANCEL sip:callee@there",
            "1 200 OK",
            "1 487 Request Terminated",
            "0 ACK sip:callee@there"
        ]
    );
}

#[test]
fn rfc3261_9_1_answer_that_crosses_the_cancel_is_acked_and_ended() {
    let mut world = World::new(FINE, 5);
    let (caller, callee) = world.call();
    world.answer(callee, 180);
    world.run(ms(50));
    world.with(0, |stack, now, out| stack.cancel(caller, &[], now, out).unwrap());
    world.answer(callee, 200);
    let happened = world.run_out();
    assert_eq!(words(&happened), ["0 Failed Canceled", "1 Acked", "1 Ended Bye"]);
    let sent = world.sent();
    assert!(sent.contains(&"0 ACK sip:callee@10.0.0.2:5060".to_owned()), "{sent:?}");
    assert!(sent.contains(&"0 BYE sip:callee@10.0.0.2:5060".to_owned()), "{sent:?}");
}

#[test]
fn rfc3261_9_1_a_cancel_that_nobody_heeds_ends_after_64_t1() {
    let mut world = World::new(FINE, 6);
    let (caller, callee) = world.call();
    world.answer(callee, 180);
    world.run(ms(50));
    world.weather.lost_percent = 100;
    world.with(0, |stack, now, out| stack.cancel(caller, &[], now, out).unwrap());
    assert_eq!(words(&world.run(ms(33_000))), ["0 Failed Canceled"]);
    assert_eq!(world.stacks[0].load().dialogs, 0);
    world.with(1, |stack, now, out| stack.hang_up(callee, 480, &[], now, out).unwrap());
    world.run_out();
}

#[test]
fn rfc3261_13_3_1_4_an_unacknowledged_answer_is_repeated_then_ended_by_bye() {
    let mut world = World::new(FINE, 7);
    let (_caller, callee) = world.call();
    world.answer(callee, 200);
    assert_eq!(words(&world.run(ms(100))), ["0 Answered 0"], "and the caller never acknowledges");
    let happened = world.run_out();
    assert_eq!(words(&happened), ["1 Ended NoAck", "0 Ended Bye"]);
    let repeated =
        world.sent().iter().filter(|line| line.contains("200 OK") && line.starts_with('1')).count();
    assert_eq!(repeated, 11, "first, 0.5, 1.5, 3.5, 7.5 and then every 4 s up to 31.5");
}

#[test]
fn rfc3261_13_2_2_4_a_repeated_answer_is_acknowledged_again() {
    let mut world = World::new(FINE, 8);
    let (caller, callee) = world.call();
    world.answer(callee, 200);
    world.run(ms(20));
    world.weather.lost_percent = 100;
    world.with(0, |stack, _, out| stack.ack(caller, None, out).unwrap());
    world.weather.lost_percent = 0;
    assert_eq!(words(&world.run(ms(1000))), ["1 Acked"]);
    assert_eq!(world.sent().iter().filter(|line| line.starts_with("0 ACK")).count(), 2);
    world.with(0, |stack, now, out| stack.bye(caller, &[], now, out).unwrap());
    world.run_out();
}

#[test]
fn rfc3261_15_bye_waits_for_the_ack_of_our_answer() {
    let mut world = World::new(FINE, 9);
    let (caller, callee) = world.call();
    world.answer(callee, 200);
    world.with(1, |stack, now, out| stack.bye(callee, &[], now, out).unwrap());
    assert_eq!(words(&world.run(ms(20))), ["0 Answered 0"]);
    assert!(!world.sent().iter().any(|line| line.contains("BYE")));
    world.with(0, |stack, _, out| stack.ack(caller, None, out).unwrap());
    assert_eq!(words(&world.run_out()), ["0 Ended Bye", "1 Ended Local"]);
}

#[test]
fn rfc3261_14_1_two_reinvites_that_meet_are_both_refused_and_both_succeed_later() {
    for seed in 0..20 {
        let mut world = World::new(FINE, 100 + seed);
        let (caller, callee) = world.call_up();
        world.with(0, |stack, now, out| stack.reinvite(caller, &[], None, now, out).unwrap());
        world.with(1, |stack, now, out| stack.reinvite(callee, &[], None, now, out).unwrap());
        let again = world.with(0, |stack, now, out| stack.reinvite(caller, &[], None, now, out)).0;
        assert_eq!(again, Err(Refused::Pending));
        let (mut reinvited, mut at) = ([0, 0], Vec::new());
        while let Some(events) = world.step(ms(20_000)) {
            for (side, event) in events {
                match event {
                    Event::InDialog { request, .. } => {
                        at.push((side, world.now.as_millis()));
                        let answer = Answer::new(200);
                        world
                            .with(side, |stack, now, out| stack.respond(request, &answer, now, out).unwrap());
                    }
                    Event::Answered { dialog, .. } => {
                        reinvited[side] += 1;
                        world.with(side, |stack, _, out| stack.ack(dialog, None, out).unwrap());
                    }
                    Event::Acked { .. } => {}
                    other => panic!("seed {seed}: {}", word(&other)),
                }
            }
        }
        assert_eq!(reinvited, [1, 1], "seed {seed}");
        let sent = world.sent();
        assert_eq!(sent.iter().filter(|line| line.contains("491")).count(), 2, "seed {seed}");
        // The callee, who does not own the Call-ID, comes back within 2 s, the caller after 2.1 s.
        let order: Vec<usize> = at.iter().map(|(side, _)| *side).collect();
        assert_eq!(order, [0, 1], "seed {seed}: {at:?}");
        assert!(at[0].1 <= 2_100 && (2_100..4_200).contains(&at[1].1), "seed {seed}: {at:?}");
        world.with(0, |stack, now, out| stack.bye(caller, &[], now, out).unwrap());
        world.run_out();
    }
}

#[test]
fn rfc3261_14_2_a_second_reinvite_before_the_first_is_answered_gets_500() {
    let mut world = World::new(FINE, 10);
    let (caller, callee) = world.call_up();
    world.with(0, |stack, now, out| stack.reinvite(caller, &[], None, now, out).unwrap());
    let events = world.run(world.now + Duration::from_millis(10));
    let [(1, Event::InDialog { request, .. })] = events.as_slice() else { panic!("{:?}", words(&events)) };
    let mine = world.with(1, |stack, now, out| stack.reinvite(callee, &[], None, now, out)).0;
    assert_eq!(mine, Err(Refused::Pending), "§14.1");
    world.with(1, |stack, now, out| stack.respond(*request, &Answer::new(488), now, out).unwrap());
    assert_eq!(words(&world.run(world.now + Duration::from_millis(50))), ["0 ReinviteFailed 488"]);
    world.with(0, |stack, now, out| stack.hang_up(caller, 0, &[], now, out).unwrap());
    assert_eq!(words(&world.run_out()), ["1 Ended Bye", "0 Ended Local"]);
}

#[test]
fn rfc3261_14_2_rfc3311_5_2_who_comes_too_early_is_told_to_come_back_within_ten_seconds() {
    let mut told: Vec<u32> = Vec::new();
    for seed in 0..200 {
        let mut world = World::new(FINE, 500 + seed);
        let (caller, _) = world.call_up();
        world.with(0, |stack, now, out| stack.reinvite(caller, &[], None, now, out).unwrap());
        world.run(world.now + Duration::from_millis(10));
        let names = world.stacks[0].names(caller).unwrap();
        let ours = names.local_tag.to_owned();
        let (call_id, theirs) = (names.call_id.to_owned(), names.remote_tag.to_owned());
        let (call_id, theirs) = (String::from_utf8_lossy(&call_id), String::from_utf8_lossy(&theirs));
        for (method, number, body) in [("INVITE", 20_000, ""), ("UPDATE", 20_001, "v=0\r\n")] {
            let text = format!(
                "{method} sip:callee@10.0.0.2:5060 SIP/2.0\r\nVia: SIP/2.0/UDP {};branch=z9hG4bKe{method}\r\n\
                 Max-Forwards: 70\r\nFrom: <sip:caller@here>;tag={ours}\r\nTo: <sip:callee@there>;tag={theirs}\r\n\
                 Call-ID: {call_id}\r\nCSeq: {number} {method}\r\nContact: <sip:caller@10.0.0.1>\r\n\
                 Content-Type: application/sdp\r\nContent-Length: {}\r\n\r\n{body}",
                NAMES[0],
                body.len()
            );
            let mut out = Vec::new();
            world.stacks[1].receive(udp(NAMES[0]), text.as_bytes(), world.now, &mut out);
            let [Output::Send(send)] = out.as_slice() else { panic!("{out:?}") };
            let answer = String::from_utf8_lossy(&send.bytes).into_owned();
            assert!(answer.starts_with("SIP/2.0 500 "), "{method}: {answer}");
            let seconds = answer.lines().find_map(|line| line.strip_prefix("Retry-After: "));
            told.push(seconds.unwrap_or_else(|| panic!("{method}: {answer}")).parse().unwrap());
        }
    }
    assert!((0..=10).all(|seconds| told.contains(&seconds)), "{told:?}");
    assert!(told.iter().all(|seconds| *seconds <= 10), "{told:?}");
}

#[test]
fn rfc3261_14_2_a_reinvite_can_be_withdrawn_and_the_session_stays() {
    let mut world = World::new(FINE, 11);
    let (caller, callee) = world.call_up();
    world.with(0, |stack, now, out| stack.reinvite(caller, &[], None, now, out).unwrap());
    world.with(0, |stack, now, out| stack.cancel(caller, &[], now, out).unwrap());
    let events = world.run(world.now + Duration::from_millis(50));
    let [(1, Event::InDialog { request, .. })] = events.as_slice() else { panic!("{:?}", words(&events)) };
    let happened = world.run(world.now + Duration::from_millis(250));
    assert_eq!(words(&happened), ["1 Withdrawn", "0 ReinviteFailed 487"]);
    let late = world.with(1, |stack, now, out| stack.respond(*request, &Answer::new(200), now, out)).0;
    assert_eq!(late, Err(Refused::Gone));
    world.with(1, |stack, now, out| stack.bye(callee, &[], now, out).unwrap());
    assert_eq!(words(&world.run_out()), ["0 Ended Bye", "1 Ended Local"]);
}

#[test]
fn rfc3261_12_2_requests_inside_the_dialog_are_answered_and_numbered() {
    let mut world = World::new(FINE, 12);
    let (caller, callee) = world.call_up();
    for side in [0, 1, 0] {
        let dialog = [caller, callee][side];
        let body = Body { content_type: "application/dtmf-relay", bytes: b"Signal=1\r\n" };
        world.with(side, |stack, now, out| {
            stack.request_inside(dialog, (Method::Info, &[], Some(body)), now, out).unwrap()
        });
        let events = world.run(world.now + Duration::from_millis(10));
        let [(_, Event::InDialog { request, message, .. })] = events.as_slice() else {
            panic!("{:?}", words(&events))
        };
        assert_eq!(message.view().body(), b"Signal=1\r\n");
        world.with(1 - side, |stack, now, out| stack.respond(*request, &Answer::new(200), now, out).unwrap());
        assert_eq!(
            words(&world.run(world.now + Duration::from_millis(10))),
            [format!("{side} Response 200")]
        );
    }
    world.with(0, |stack, now, out| stack.bye(caller, &[], now, out).unwrap());
    world.run_out();
}

#[test]
fn rfc3261_12_2_1_2_a_peer_that_forgot_the_dialog_ends_it() {
    let mut world = World::new(FINE, 13);
    let (caller, callee) = world.call_up();
    world.stacks[1].evict(callee);
    world.with(0, |stack, now, out| {
        stack.request_inside(caller, (Method::Info, &[], None), now, out).unwrap();
    });
    assert_eq!(words(&world.run_out()), ["0 Response 481", "0 Ended PeerLost"]);
}

#[test]
fn rfc3261_22_2_a_challenged_invite_is_tried_again_in_the_same_call_with_the_next_number() {
    let mut world = World::new(FINE, 14);
    let body = Body::sdp(b"v=0\r\n");
    let request = Outgoing { body: Some(body), ..outgoing(CONTACTS[0], NAMES[1]) };
    let caller = world.with(0, |stack, now, out| stack.invite(&request, now, out).unwrap()).0;
    let events = world.run(ms(10));
    let [(1, Event::Invite(first))] = events.as_slice() else { panic!("{:?}", words(&events)) };
    let challenge = [("WWW-Authenticate", "Digest realm=\"x\", nonce=\"y\"")];
    world.with(1, |stack, _, out| {
        stack.respond_stateless(first, &Answer::new(401).headers(&challenge), out);
    });
    assert_eq!(words(&world.run(ms(40))), ["0 Challenged"]);
    assert_eq!(world.stacks[1].load(), Load::default(), "nothing is stored for who has not proved anything");
    let credentials = [("Authorization", "Digest username=\"caller\"")];
    world.with(0, |stack, now, out| stack.retry_invite(caller, &credentials, now, out).unwrap());
    let events = world.run(ms(60));
    let [(1, Event::Invite(second))] = events.as_slice() else { panic!("{:?}", words(&events)) };
    let (first, second) = (first.message.view(), second.message.view());
    assert_eq!(first.call_id(), second.call_id());
    assert_eq!(first.from_tag(), second.from_tag());
    assert_eq!(first.cseq().unwrap().number + 1, second.cseq().unwrap().number);
    assert_ne!(first.top_via().unwrap().branch(), second.top_via().unwrap().branch());
    assert_eq!(second.body(), b"v=0\r\n");
    assert_eq!(second.header(HeaderName::Authorization), Some(credentials[0].1.as_bytes()));
    world.with(0, |stack, now, out| stack.hang_up(caller, 0, &[], now, out).unwrap());
    world.run_out();
}

#[test]
fn rfc3261_13_2_2_4_the_ack_of_a_2xx_has_the_credentials_of_the_invite_that_was_answered() {
    for (name, credentials) in [
        ("none", &[][..]),
        ("of the server", &[("Authorization", "Digest username=\"caller\"")][..]),
        (
            "of the server and a proxy",
            &[("Authorization", "Digest username=\"a\""), ("Proxy-Authorization", "Digest username=\"b\"")][..],
        ),
    ] {
        let mut us = stack(NAMES[0], config(), 16);
        let mut out = Vec::new();
        let request = Outgoing { headers: credentials, ..outgoing(CONTACTS[0], NAMES[1]) };
        let dialog = us.invite(&request, ms(0), &mut out).unwrap();
        let answered = |out: &mut Vec<Output>, tag: &str| {
            let sent = out.drain(..).find_map(|output| match output {
                Output::Send(send) => Some(String::from_utf8_lossy(&send.bytes).into_owned()),
                Output::Event(_) => None,
            });
            let sent = sent.unwrap();
            let line = |name: &str| sent.lines().find(|line| line.starts_with(name)).unwrap().to_owned();
            format!(
                "SIP/2.0 200 OK\r\n{}\r\n{}\r\n{};tag={tag}\r\n{}\r\n{}\r\nContact: <sip:{tag}@10.0.0.2>\r\n\
                 Content-Length: 0\r\n\r\n",
                line("Via:"),
                line("From:"),
                line("To:").split(";tag=").next().unwrap(),
                line("Call-ID:"),
                line("CSeq:")
            )
        };
        let acks = |out: &[Output]| -> Vec<Vec<(String, String)>> {
            let texts = out.iter().filter_map(|output| match output {
                Output::Send(send) if send.bytes.starts_with(b"ACK ") => {
                    Some(String::from_utf8_lossy(&send.bytes).into_owned())
                }
                Output::Send(_) | Output::Event(_) => None,
            });
            let proofs = |text: String| {
                let lines = text.lines().filter(|line| line.contains("uthorization: "));
                lines.filter_map(|line| line.split_once(": ")).map(|(a, b)| (a.into(), b.into())).collect()
            };
            texts.map(proofs).collect()
        };
        let expected: Vec<Vec<(String, String)>> =
            vec![credentials.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect()];
        let response = answered(&mut out, "a");
        us.receive(udp(NAMES[1]), response.as_bytes(), ms(10), &mut out);
        us.ack(dialog, None, &mut out).unwrap();
        assert_eq!(acks(&out), expected, "{name}");
        out.clear();
        let surplus = response.replace("tag=a", "tag=b").replace("<sip:a@", "<sip:b@");
        us.receive(udp(NAMES[1]), surplus.as_bytes(), ms(20), &mut out);
        assert_eq!(acks(&out), expected, "{name}: another fork");
        out.clear();
        us.reinvite(dialog, credentials, None, ms(100), &mut out).unwrap();
        let response = answered(&mut out, "a");
        us.receive(udp(NAMES[1]), response.as_bytes(), ms(110), &mut out);
        us.ack(dialog, None, &mut out).unwrap();
        assert_eq!(acks(&out), expected, "{name}: a re-INVITE");
    }
}

#[test]
fn rfc3261_22_2_a_challenge_that_the_driver_leaves_lying_is_forgotten() {
    let mut world = World::new(FINE, 15);
    world.with(0, |stack, now, out| stack.invite(&outgoing(CONTACTS[0], NAMES[1]), now, out).unwrap());
    let events = world.run(ms(10));
    let [(1, Event::Invite(incoming))] = events.as_slice() else { panic!("{:?}", words(&events)) };
    world.with(1, |stack, _, out| stack.respond_stateless(incoming, &Answer::new(407), out));
    assert_eq!(words(&world.run_out()), ["0 Challenged", "0 Ended Abandoned"]);
}

#[test]
fn rfc3261_8_2_6_a_request_outside_dialogs_is_answered_once_whatever_repeats() {
    let mut world = World::new(Weather { doubled_percent: 100, ..FINE }, 16);
    let request = Outgoing { method: Method::Register, ..outgoing(CONTACTS[0], NAMES[1]) };
    world.with(0, |stack, now, out| stack.request(&request, now, out).unwrap());
    let mut answered = 0;
    let mut heard = Vec::new();
    while let Some(events) = world.step(ms(400_000)) {
        for (side, event) in events {
            if let Event::Request(incoming) = &event {
                let id = world.with(side, |stack, now, _| stack.accept(incoming, now).unwrap()).0;
                world.with(side, |stack, now, out| stack.respond(id, &Answer::new(200), now, out).unwrap());
                answered += 1;
            }
            heard.push(word(&event));
        }
    }
    assert_eq!((answered, heard), (1, vec!["Request".to_owned(), "Response 200".to_owned()]));
    assert_eq!(world.stacks[1].load(), Load::default());
}

#[test]
fn rfc3261_22_2_a_challenged_registration_is_tried_again_with_credentials() {
    let mut world = World::new(FINE, 17);
    let request = Outgoing {
        method: Method::Register,
        series: Some(("series@x", 7)),
        ..outgoing(CONTACTS[0], NAMES[1])
    };
    world.with(0, |stack, now, out| stack.request(&request, now, out).unwrap());
    let mut numbers = Vec::new();
    while let Some(events) = world.step(ms(400_000)) {
        for (side, event) in events {
            match event {
                Event::Request(incoming) => {
                    let view = incoming.message.view();
                    numbers.push((view.call_id().unwrap().to_vec(), view.cseq().unwrap().number));
                    let status = if view.has(HeaderName::Authorization) { 200 } else { 401 };
                    world.with(side, |stack, _, out| {
                        stack.respond_stateless(&incoming, &Answer::new(status), out);
                    });
                }
                Event::Response { request, status: 401, .. } => {
                    let headers = [("Authorization", "Digest x")];
                    world.with(side, |stack, now, out| stack.retry(request, &headers, now, out).unwrap());
                }
                Event::Response { status, .. } => assert_eq!(status, 200),
                other => panic!("{}", word(&other)),
            }
        }
    }
    assert_eq!(numbers, [(b"series@x".to_vec(), 7), (b"series@x".to_vec(), 8)]);
    assert_eq!(world.stacks[0].load(), Load::default());
}

#[test]
fn rfc3261_17_1_4_an_unreachable_peer_fails_after_64_t1_or_at_once_when_sending_fails() {
    for (name, fail, expected) in
        [("silence", false, "0 Failed Timeout"), ("port closed", true, "0 Failed Transport")]
    {
        let mut world = World::new(Weather { lost_percent: 100, ..FINE }, 18);
        world.with(0, |stack, now, out| stack.invite(&outgoing(CONTACTS[0], NAMES[1]), now, out).unwrap());
        let mut happened = Vec::new();
        if fail {
            let events = world.with(0, |stack, now, out| stack.transport_error(udp(NAMES[1]), now, out)).1;
            happened.extend(events.into_iter().map(|event| (0, event)));
        }
        happened.extend(world.run_out());
        assert_eq!(words(&happened), [expected], "{name}");
    }
}

#[test]
fn a_dialog_that_is_evicted_leaves_its_neighbours_alone() {
    let mut world = World::new(FINE, 19);
    let (first, _) = world.call_up();
    let (second, _) = world.call_up();
    world.stacks[0].evict(first);
    let gone = world.with(0, |stack, now, out| stack.bye(first, &[], now, out)).0;
    assert_eq!(gone, Err(Refused::Gone));
    world.with(0, |stack, now, out| stack.bye(second, &[], now, out).unwrap());
    assert_eq!(words(&world.run(world.now + Duration::from_millis(100))), ["1 Ended Bye", "0 Ended Local"]);
    assert_eq!(world.stacks[0].load().dialogs, 0);
    assert_eq!(world.stacks[1].load().dialogs, 1);
}
