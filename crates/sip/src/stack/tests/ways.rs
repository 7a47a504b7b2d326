//! Ways that break, and settings that change while the stack runs.

use super::*;

/// The flow of a connection with `remote`.
fn tcp(remote: &str, connection: u64) -> Flow {
    Flow { protocol: Protocol::Tcp, connection: Some(ConnectionId(connection)), ..udp(remote) }
}

fn told(out: &mut Vec<Output>) -> Vec<String> {
    let events = out.drain(..).filter_map(|output| match output {
        Output::Event(event) => Some(word(&event)),
        Output::Send(_) => None,
    });
    events.collect()
}

fn sent(out: &mut Vec<Output>) -> Vec<(Flow, String)> {
    let sends = out.drain(..).filter_map(|output| match output {
        Output::Send(send) => Some((send.flow, String::from_utf8_lossy(&send.bytes).into_owned())),
        Output::Event(_) => None,
    });
    sends.collect()
}

#[test]
fn rfc3261_17_1_4_a_refused_datagram_fails_the_transactions_with_that_peer_and_no_other() {
    let mut stack = stack(NAMES[0], config(), 71);
    let mut out = Vec::new();
    for peer in ["10.0.0.2:5060", "10.0.0.2:5060", "10.0.0.2:5061", "10.0.0.3:5060"] {
        stack.request(&outgoing(CONTACTS[0], peer), ms(0), &mut out).unwrap();
    }
    told(&mut out);
    stack.transport_error(udp("10.0.0.2:5060"), ms(1), &mut out);
    assert_eq!(told(&mut out), ["Unanswered Transport"; 2]);
    assert_eq!(stack.load().clients, 2);
    stack.transport_error(udp("10.0.0.9:5060"), ms(2), &mut out);
    assert_eq!(told(&mut out), [""; 0]);
    stack.due(ms(40_000), &mut out);
    assert_eq!(told(&mut out), ["Unanswered Timeout"; 2]);
    assert_eq!((stack.load(), stack.deadline()), (Load::default(), None));
}

#[test]
fn rfc3261_18_4_a_closed_connection_is_looked_for_anew_by_its_calls_and_by_no_other() {
    let mut stack = stack(NAMES[0], config(), 72);
    let mut out = Vec::new();
    let accept = Accept { contact: CONTACTS[0], symmetric: true, unproved: false };
    let mut dialogs = Vec::new();
    for number in 1..=2 {
        let flow = tcp("10.0.0.2:40000", number);
        let invite = format!(
            "INVITE sip:caller@10.0.0.1 SIP/2.0\r\nVia: SIP/2.0/TCP 10.0.0.2;branch=z9hG4bK{number}\r\n\
             From: <sip:callee@10.0.0.2>;tag={number}\r\nTo: <sip:caller@10.0.0.1>\r\nCall-ID: {number}\r\n\
             CSeq: 1 INVITE\r\nContact: <sip:callee@10.0.0.2;transport=tcp>\r\nMax-Forwards: 70\r\n\
             Content-Length: 0\r\n\r\n"
        );
        stack.receive(flow, invite.as_bytes(), ms(0), &mut out);
        let Some(Output::Event(Event::Invite(incoming))) = out.pop() else { panic!("no INVITE") };
        let dialog = stack.accept_invite(&incoming, &accept, ms(0)).unwrap();
        stack.answer(dialog, &Answer::new(200), ms(0), &mut out).unwrap();
        let [(_, answer)] = sent(&mut out).try_into().unwrap();
        let tag = answer.split("To: ").nth(1).and_then(|to| to.split(";tag=").nth(1)).unwrap();
        let tag = tag.split("\r\n").next().unwrap();
        let ack = invite.replace("INVITE", "ACK").replace(">\r\nCall-ID", &format!(">;tag={tag}\r\nCall-ID"));
        stack.receive(flow, ack.replace("bK", "bKa").as_bytes(), ms(1), &mut out);
        assert_eq!(told(&mut out), ["Acked"]);
        dialogs.push(dialog);
    }
    stack.transport_error(tcp("10.0.0.2:40000", 1), ms(2), &mut out);
    assert_eq!(told(&mut out), [""; 0]);
    for (dialog, connection) in dialogs.into_iter().zip([None, Some(ConnectionId(2))]) {
        stack.bye(dialog, &[], ms(3), &mut out).unwrap();
        let [(flow, bye)] = sent(&mut out).try_into().unwrap();
        assert!(bye.starts_with("BYE "), "{bye}");
        assert_eq!(flow.connection, connection);
    }
    stack.due(ms(60_000), &mut out);
    stack.due(ms(120_000), &mut out);
    assert_eq!((stack.load(), stack.deadline()), (Load::default(), None));
}

#[test]
fn timers_and_name_of_another_configuration_hold_for_what_comes_after() {
    let mut stack = stack(NAMES[0], config(), 73);
    let mut out = Vec::new();
    stack.request(&outgoing(CONTACTS[0], NAMES[1]), ms(0), &mut out).unwrap();
    let timers = Timers::new(Duration::from_millis(100), Some(Duration::from_secs(2)));
    stack.set_config(timers, "Other".to_owned(), 70);
    stack.request(&outgoing(CONTACTS[0], NAMES[1]), ms(0), &mut out).unwrap();
    let [(_, first), (_, second)] = sent(&mut out).try_into().unwrap();
    assert!(first.contains("User-Agent: Strowger\r\n"), "{first}");
    assert!(second.contains("User-Agent: Other\r\n"), "{second}");
    assert_eq!(stack.deadline(), Some(ms(100)), "the second is repeated after its T1");
    stack.due(ms(2_000), &mut out);
    assert_eq!(told(&mut out), ["Unanswered Timeout"], "the second is given up after its timer F");
    stack.due(ms(40_000), &mut out);
    assert_eq!(told(&mut out), ["Unanswered Timeout"]);
}

#[test]
fn rfc3261_18_1_1_a_request_too_large_for_a_datagram_goes_by_tcp_and_back_when_nobody_is_there() {
    let mut stack = stack(NAMES[0], config(), 74);
    let name = |sent_by: &str, stream| Transport {
        sent_by: sent_by.into(),
        external: None,
        local_nets: Vec::new(),
        stream,
    };
    stack.set_transport(TransportId(0), name("10.0.0.1:5060", Some(TransportId(1))));
    stack.set_transport(TransportId(1), name("10.0.0.1:5062", None));
    let by_tcp = Flow { transport: TransportId(1), connection: None, ..tcp(NAMES[1], 0) };
    let made = Flow { connection: Some(ConnectionId(7)), ..by_tcp };
    let via = |text: &str| text.lines().nth(1).unwrap().to_owned();
    let branch = |text: &str| {
        via(text).split([';', '=']).skip_while(|word| *word != "branch").nth(1).unwrap().to_owned()
    };
    let mut out = Vec::new();
    let filler = "x".repeat(1_300);
    let (small, large) = ([("X-Filler", "x")], [("X-Filler", filler.as_str())]);

    stack.request(&Outgoing { headers: &small, ..outgoing(CONTACTS[0], NAMES[1]) }, ms(0), &mut out).unwrap();
    let [(flow, text)] = sent(&mut out).try_into().unwrap();
    assert_eq!(flow, udp(NAMES[1]), "{text}");

    for (case, heard) in [("nobody listens", false), ("the connection breaks after a response", true)] {
        let request = Outgoing { headers: &large, ..outgoing(CONTACTS[0], NAMES[1]) };
        stack.request(&request, ms(0), &mut out).unwrap();
        let [(flow, text)] = sent(&mut out).try_into().unwrap();
        assert_eq!(flow, by_tcp, "{case}");
        assert!(via(&text).starts_with("Via: SIP/2.0/TCP 10.0.0.1:5062;rport;branch="), "{}", via(&text));
        assert!(text.contains(&filler), "{case}");
        if heard {
            let trying = format!(
                "SIP/2.0 100 Trying\r\n{}\r\nFrom: <sip:a@b>;tag=1\r\nTo: <sip:c@d>\r\nCall-ID: 1\r\nCSeq: 1 OPTIONS\r\n\r\n",
                via(&text)
            );
            stack.receive(made, trying.as_bytes(), ms(0), &mut out);
        }
        out.clear();
        stack.transport_error(made, ms(0), &mut out);
        if heard {
            assert_eq!(told(&mut out), ["Unanswered Transport"], "{case}");
            continue;
        }
        let [(flow, again)] = sent(&mut out).try_into().unwrap();
        assert_eq!(flow, udp(NAMES[1]), "{case}");
        assert!(via(&again).starts_with("Via: SIP/2.0/UDP 10.0.0.1:5060;"), "{}", via(&again));
        assert_eq!(branch(&again), branch(&text), "it is the same transaction");
        stack.due(ms(500), &mut out);
        assert!(sent(&mut out).iter().any(|(_, text)| *text == again), "a datagram is repeated");
        stack.transport_error(udp(NAMES[1]), ms(501), &mut out);
        assert_eq!(told(&mut out), ["Unanswered Transport"; 2], "no second way is left");
    }
    assert_eq!(stack.load(), Load::default());
}

#[test]
fn rfc3261_18_1_1_a_challenged_call_that_grew_too_large_goes_by_tcp() {
    let mut stack = stack(NAMES[0], config(), 75);
    for (id, stream) in [(0, Some(TransportId(1))), (1, None)] {
        let transport =
            Transport { sent_by: NAMES[0].into(), external: None, local_nets: Vec::new(), stream };
        stack.set_transport(TransportId(id), transport);
    }
    let mut out = Vec::new();
    let dialog = stack.invite(&outgoing(CONTACTS[0], NAMES[1]), ms(0), &mut out).unwrap();
    let [(_, invite)] = sent(&mut out).try_into().unwrap();
    let value = |name: &str| invite.lines().find(|line| line.starts_with(name)).unwrap().to_owned();
    let refusal = format!(
        "SIP/2.0 401 Unauthorized\r\n{}\r\n{}\r\n{};tag=x\r\n{}\r\n{}\r\n\r\n",
        value("Via:"),
        value("From:"),
        value("To:"),
        value("Call-ID:"),
        value("CSeq:")
    );
    stack.receive(udp(NAMES[1]), refusal.as_bytes(), ms(1), &mut out);
    out.clear();
    let credentials = "x".repeat(1_300);
    stack.retry_invite(dialog, &[("Authorization", &credentials)], ms(2), &mut out).unwrap();
    let [(flow, again)] = sent(&mut out).try_into().unwrap();
    assert_eq!((flow.transport, flow.protocol), (TransportId(1), Protocol::Tcp));
    assert!(again.contains("\r\nVia: SIP/2.0/TCP ") && again.contains(&credentials), "{again}");
    stack.cancel(dialog, &[], ms(3), &mut out).unwrap();
    stack.due(ms(40_000), &mut out);
    assert_eq!(told(&mut out), ["Failed Canceled"]);
}

/// A response to `request`.
fn response(request: &str, status: &str) -> String {
    let value = |name: &str| request.lines().find(|line| line.starts_with(name)).unwrap().to_owned();
    format!(
        "SIP/2.0 {status}\r\n{}\r\n{}\r\n{};tag=x\r\n{}\r\n{}\r\nContent-Length: 0\r\n\r\n",
        value("Via:"),
        value("From:"),
        value("To:"),
        value("Call-ID:"),
        value("CSeq:")
    )
}

/// A message without what another server sees of it otherwise.
fn same(text: &str) -> String {
    let own = |line: &&str| !line.starts_with("Via: ") && !line.starts_with("Contact: ");
    text.lines().filter(own).collect::<Vec<_>>().join("\n")
}

const SERVERS: [&str; 3] = ["10.0.0.2:5060", "10.0.0.3:5060", "10.0.0.4:5080"];

fn others() -> Vec<Way> {
    let way = |server: &&str| Way { flow: udp(server), contact: Some(format!("<sip:me@{server}>")) };
    SERVERS[1..].iter().map(way).collect()
}

#[test]
fn rfc3263_4_3_a_failed_server_is_followed_by_the_next_in_a_transaction_of_its_own() {
    for (case, invite) in [("INVITE", true), ("another", false)] {
        for (how, status) in [("silence", ""), ("a transport error", ""), ("503", "503 Service Unavailable")]
        {
            let name = format!("{case}, {how}");
            let mut stack = stack(NAMES[0], config(), 80);
            let mut out = Vec::new();
            let request = outgoing(CONTACTS[0], SERVERS[0]);
            match invite {
                true => {
                    let dialog = stack.invite(&request, ms(0), &mut out).unwrap();
                    stack.invite_also_by(dialog, &others());
                }
                false => {
                    let id = stack.request(&request, ms(0), &mut out).unwrap();
                    stack.request_also_by(id, &others());
                }
            }
            let mut now = ms(0);
            let [(_, first)] = sent(&mut out).try_into().unwrap();
            let mut last = first.clone();
            for (server, next) in SERVERS.iter().zip(&SERVERS[1..]) {
                match (how, status) {
                    ("silence", _) => {
                        now = ms(32_000) + now.since(ms(0));
                        stack.due(now, &mut out);
                    }
                    (_, "") => stack.transport_error(udp(server), now, &mut out),
                    (_, status) => {
                        let refusal = response(&last, status);
                        stack.receive(udp(server), refusal.as_bytes(), now, &mut out);
                    }
                }
                let events: Vec<String> = out
                    .iter()
                    .filter_map(|output| match output {
                        Output::Event(event) => Some(word(event)),
                        Output::Send(_) => None,
                    })
                    .collect();
                assert_eq!(events, [format!("Moved {next}")], "{name}");
                let sends: Vec<(Flow, String)> =
                    sent(&mut out).into_iter().filter(|(flow, _)| *flow == udp(next)).collect();
                let [(_, again)] = sends.try_into().unwrap();
                assert_eq!(same(&again), same(&first), "{name}: Call-ID, tag and CSeq stay");
                assert!(again.contains(&format!("Contact: <sip:me@{next}>\r\n")), "{again}");
                let branch =
                    |text: &str| text.split("branch=").nth(1).unwrap().lines().next().unwrap().to_owned();
                assert_ne!(branch(&again), branch(&last), "{name}");
                if !status.is_empty() {
                    // A failure that is said again is acknowledged again, and moves nothing.
                    stack.receive(udp(server), response(&last, status).as_bytes(), now, &mut out);
                    let acks = sent(&mut out);
                    assert_eq!(acks.len(), usize::from(invite), "{name}: {acks:?}");
                    assert!(acks.iter().all(|(flow, ack)| *flow == udp(server) && ack.starts_with("ACK ")));
                }
                last = again;
            }
            stack.receive(
                udp(SERVERS[2]),
                response(&last, "503 Service Unavailable").as_bytes(),
                now,
                &mut out,
            );
            let [event] = told(&mut out).try_into().unwrap();
            assert!(
                event.contains("503") || event.starts_with("Failed Refused"),
                "the last one's word counts: {event}"
            );
            stack.due(now + Duration::from_secs(40), &mut out);
            stack.due(now + Duration::from_secs(80), &mut out);
            assert_eq!((stack.load(), stack.deadline()), (Load::default(), None), "{name}");
        }
    }
}

#[test]
fn rfc3261_18_4_what_the_network_could_not_deliver_fails_at_once_when_the_quotation_proves_it() {
    let quote = |request: &str, bytes: usize| request.as_bytes()[..bytes.min(request.len())].to_vec();
    for (name, expected) in [
        ("as much as routers quote", vec![format!("Moved {}", SERVERS[1])]),
        ("eight bytes of it", vec![]),
        ("somebody else's branch", vec![]),
        ("from another address", vec![]),
        ("after an answer", vec![]),
    ] {
        let mut stack = stack(NAMES[0], config(), 83);
        let mut out = Vec::new();
        let dialog = stack.invite(&outgoing(CONTACTS[0], SERVERS[0]), ms(0), &mut out).unwrap();
        stack.invite_also_by(dialog, &others());
        let [(_, invite)] = sent(&mut out).try_into().unwrap();
        let (mut from, mut quoted) = (udp(SERVERS[0]), quote(&invite, 500));
        match name {
            "eight bytes of it" => quoted = quote(&invite, 8),
            "somebody else's branch" => {
                quoted = quote(&invite.replace("branch=z9hG4bK00000000", "branch=z9hG4bK00000001"), 500)
            }
            "from another address" => from = udp(SERVERS[2]),
            "after an answer" => {
                stack.receive(udp(SERVERS[0]), response(&invite, "100 Trying").as_bytes(), ms(1), &mut out);
                out.clear();
            }
            _ => {}
        }
        stack.undelivered(from, &quoted, ms(2), &mut out);
        assert_eq!(told(&mut out), expected, "{name}");
        for cut in 0..quoted.len() {
            stack.undelivered(udp(SERVERS[1]), &quoted[cut..], ms(3), &mut out);
        }
        assert_eq!(told(&mut out), [""; 0], "{name}: pieces prove nothing of another server");
    }
    // The only server: whoever starts a moment later gets the repetition (RFC 3261 §17.1.1.2).
    let mut stack = stack(NAMES[0], config(), 84);
    let mut out = Vec::new();
    stack.request(&outgoing(CONTACTS[0], SERVERS[0]), ms(0), &mut out).unwrap();
    let [(_, request)] = sent(&mut out).try_into().unwrap();
    stack.undelivered(udp(SERVERS[0]), request.as_bytes(), ms(3), &mut out);
    assert_eq!(told(&mut out), [""; 0]);
    stack.due(ms(500), &mut out);
    assert_eq!(sent(&mut out), [(udp(SERVERS[0]), request)]);
    out.clear();
    // Nobody started: it ends as if there had been no word of it.
    for second in 1..=32 {
        stack.due(ms(second * 1000), &mut out);
    }
    assert_eq!(told(&mut out), ["Unanswered Timeout"]);
    assert_eq!(stack.load(), Load::default());
}

#[test]
fn rfc3263_4_3_a_call_that_got_further_or_is_given_up_does_not_move() {
    for (name, before, cancel) in [
        ("it rang", "180 Ringing", false),
        ("it was refused for its own sake", "486 Busy Here", false),
        ("the caller gave up", "100 Trying", true),
        ("the caller gave up before any answer", "", true),
    ] {
        let mut stack = stack(NAMES[0], config(), 81);
        let mut out = Vec::new();
        let dialog = stack.invite(&outgoing(CONTACTS[0], SERVERS[0]), ms(0), &mut out).unwrap();
        stack.invite_also_by(dialog, &others());
        let [(_, invite)] = sent(&mut out).try_into().unwrap();
        if !before.is_empty() {
            stack.receive(udp(SERVERS[0]), response(&invite, before).as_bytes(), ms(1), &mut out);
        }
        if cancel {
            stack.cancel(dialog, &[], ms(2), &mut out).unwrap();
        }
        stack.receive(udp(SERVERS[0]), response(&invite, "503 Out").as_bytes(), ms(3), &mut out);
        stack.due(ms(70_000), &mut out);
        assert!(sent(&mut out).iter().all(|(flow, _)| *flow == udp(SERVERS[0])), "{name}");
        stack.due(ms(140_000), &mut out);
        assert_eq!(stack.load(), Load::default(), "{name}");
    }
}

#[test]
fn rfc3263_4_3_a_challenge_is_answered_where_it_came_from() {
    let mut stack = stack(NAMES[0], config(), 82);
    let mut out = Vec::new();
    let dialog = stack.invite(&outgoing(CONTACTS[0], SERVERS[0]), ms(0), &mut out).unwrap();
    stack.invite_also_by(dialog, &others());
    out.clear();
    stack.transport_error(udp(SERVERS[0]), ms(1), &mut out);
    let [(_, again)] = sent(&mut out).try_into().unwrap();
    stack.receive(udp(SERVERS[1]), response(&again, "401 Unauthorized").as_bytes(), ms(2), &mut out);
    out.clear();
    stack.retry_invite(dialog, &[("Authorization", "Digest x")], ms(3), &mut out).unwrap();
    let [(flow, proved)] = sent(&mut out).try_into().unwrap();
    assert_eq!(flow, udp(SERVERS[1]));
    assert!(proved.contains(&format!("Contact: <sip:me@{}>", SERVERS[1])), "{proved}");
}

#[test]
fn rfc3261_17_2_1_a_100_leaves_at_once_and_once_and_begins_no_dialog() {
    let mut stack = stack(NAMES[0], config(), 91);
    let mut out = Vec::new();
    let invite = "INVITE sip:caller@10.0.0.1 SIP/2.0\r\nVia: SIP/2.0/UDP 10.0.0.2;branch=z9hG4bKt\r\n\
                  From: \"C\" <sip:callee@10.0.0.2:5070>;tag=7\r\nTo: <sip:caller@10.0.0.1:5060>\r\nCall-ID: t\r\n\
                  CSeq: 1 INVITE\r\nContact: <sip:callee@10.0.0.2>\r\nMax-Forwards: 70\r\nContent-Length: 0\r\n\r\n";
    stack.receive(udp(NAMES[1]), invite.as_bytes(), ms(0), &mut out);
    let Some(Output::Event(Event::Invite(incoming))) = out.pop() else { panic!("no INVITE") };
    let accept = Accept { contact: CONTACTS[0], symmetric: true, unproved: false };
    let dialog = stack.accept_invite(&incoming, &accept, ms(0)).unwrap();
    stack.trying(dialog, ms(0), &mut out);
    stack.trying(dialog, ms(0), &mut out);
    let [(_, trying)] = sent(&mut out).try_into().unwrap();
    assert!(trying.starts_with("SIP/2.0 100 Trying\r\n"), "{trying}");
    assert!(trying.contains("To: <sip:caller@10.0.0.1:5060>\r\n"), "{trying}");
    stack.due(ms(250), &mut out);
    assert!(sent(&mut out).is_empty(), "nothing more by itself");
    stack.receive(udp(NAMES[1]), invite.as_bytes(), ms(300), &mut out);
    assert_eq!(sent(&mut out), [(udp("10.0.0.2:5060"), trying)], "the INVITE again gets it again");
    // What a refusal by the caller's own wish says is the driver's.
    stack.set_withdrawal(dialog, vec![("Reason".to_owned(), "Q.850;cause=0".to_owned())]);
    let cancel = invite.replace("INVITE", "CANCEL").replace("Contact: <sip:callee@10.0.0.2>\r\n", "");
    stack.receive(udp(NAMES[1]), cancel.as_bytes(), ms(400), &mut out);
    let answers = sent(&mut out);
    assert!(answers.iter().any(|(_, text)| text.starts_with("SIP/2.0 487 ")
        && text.contains("Reason: Q.850;cause=0\r\n")
        && text.contains("To: <sip:caller@10.0.0.1:5060>;tag=")));
}

#[test]
fn rfc3261_19_1_1_requests_of_a_dialog_name_both_sides_without_ports() {
    for (name, from, to, expected) in [
        (
            "ports",
            "\"A; b\" <sip:a@10.0.0.2:5070>;tag=7",
            "<sip:x@10.0.0.1:5060>",
            ["\"A; b\" <sip:a@10.0.0.2>;tag=7", "<sip:x@10.0.0.1>;tag="],
        ),
        ("none", "<sip:a@h>;tag=7", "\"X\" <sip:x@h>", ["<sip:a@h>;tag=7", "\"X\" <sip:x@h>;tag="]),
        ("bare", "sip:a@h:5070;tag=7", "sip:x@h:1", ["sip:a@h;tag=7", "sip:x@h;tag="]),
        (
            "an address of IPv6",
            "<sip:a@[2001:db8::1]:5070>;tag=7",
            "<sip:x@[2001:db8::2]>",
            ["<sip:a@[2001:db8::1]>;tag=7", "<sip:x@[2001:db8::2]>;tag="],
        ),
        ("a number", "<tel:+49301>;tag=7", "<tel:+49302>", ["<tel:+49301>;tag=7", "<tel:+49302>;tag="]),
    ] {
        let mut stack = stack(NAMES[0], config(), 92);
        let mut out = Vec::new();
        let invite = format!(
            "INVITE sip:caller@10.0.0.1 SIP/2.0\r\nVia: SIP/2.0/UDP 10.0.0.2;branch=z9hG4bKt\r\nFrom: {from}\r\n\
             To: {to}\r\nCall-ID: t\r\nCSeq: 1 INVITE\r\nContact: <sip:callee@10.0.0.2>\r\nMax-Forwards: 70\r\n\
             Content-Length: 0\r\n\r\n"
        );
        stack.receive(udp(NAMES[1]), invite.as_bytes(), ms(0), &mut out);
        let Some(Output::Event(Event::Invite(incoming))) = out.pop() else { panic!("{name}: no INVITE") };
        let accept = Accept { contact: CONTACTS[0], symmetric: true, unproved: false };
        let dialog = stack.accept_invite(&incoming, &accept, ms(0)).unwrap();
        stack.answer(dialog, &Answer::new(200), ms(0), &mut out).unwrap();
        out.clear();
        stack.request_inside(dialog, (Method::Info, &[], None), ms(1), &mut out).unwrap();
        let [(_, info)] = sent(&mut out).try_into().unwrap();
        assert!(info.contains(&format!("\r\nTo: {}\r\n", expected[0])), "{name}: {info}");
        assert!(info.contains(&format!("\r\nFrom: {}", expected[1])), "{name}: {info}");
    }
}
