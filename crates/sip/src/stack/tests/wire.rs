//! One stack against messages written by hand.

use super::*;
use crate::message::OwnedMessage;

struct Desk {
    stack: Stack,
    now: Instant,
}

struct Heard {
    sent: Vec<(Flow, OwnedMessage)>,
    events: Vec<Event>,
}

impl Heard {
    fn new(out: Vec<Output>) -> Self {
        let mut heard = Self { sent: Vec::new(), events: Vec::new() };
        for output in out {
            match output {
                Output::Send(send) => {
                    let message = OwnedMessage::parse(send.bytes).unwrap();
                    assert_eq!(message.view().validate(), Ok(()), "we send only what is valid");
                    heard.sent.push((send.flow, message));
                }
                Output::Event(event) => heard.events.push(event),
            }
        }
        heard
    }
    /// Status of responses and method of requests that left.
    fn lines(&self) -> Vec<String> {
        let line = |message: &OwnedMessage| match message.view().status() {
            Some(status) => status.code().to_string(),
            None => message.view().method().to_string(),
        };
        self.sent.iter().map(|(_, message)| line(message)).collect()
    }
    fn words(&self) -> Vec<String> {
        self.events.iter().map(word).collect()
    }
    fn incoming(self) -> Box<Incoming> {
        match self.events.into_iter().next() {
            Some(Event::Invite(incoming) | Event::Request(incoming)) => incoming,
            other => panic!("{other:?}"),
        }
    }
}

const PEER: &str = "192.0.2.9:5062";

impl Desk {
    fn new(config: Config) -> Self {
        Self { stack: stack("10.0.0.1:5060", config, 42), now: Instant::ZERO }
    }
    fn hear_from(&mut self, flow: Flow, text: &str) -> Heard {
        let mut out = Vec::new();
        self.stack.receive(flow, text.replace('\n', "\r\n").as_bytes(), self.now, &mut out);
        Heard::new(out)
    }
    fn hear(&mut self, text: &str) -> Heard {
        self.hear_from(udp(PEER), text)
    }
    fn act<T>(&mut self, operation: impl FnOnce(&mut Stack, Instant, &mut Vec<Output>) -> T) -> (T, Heard) {
        let mut out = Vec::new();
        let result = operation(&mut self.stack, self.now, &mut out);
        (result, Heard::new(out))
    }
    fn wait(&mut self, millis: u64) -> Heard {
        self.now += Duration::from_millis(millis);
        self.act(|stack, now, out| stack.due(now, out)).1
    }
    fn accept(&mut self, incoming: &Incoming) -> DialogId {
        let accept = Accept { contact: "<sip:us@10.0.0.1>", symmetric: false, unproved: false };
        self.stack.accept_invite(incoming, &accept, self.now).unwrap()
    }
    /// A dialog that `text` made and that is acknowledged; gives our tag.
    fn up(&mut self, text: &str) -> (DialogId, String) {
        let incoming = self.hear(text).incoming();
        let dialog = self.accept(&incoming);
        let ((), heard) =
            self.act(|stack, now, out| stack.answer(dialog, &Answer::new(200), now, out).unwrap());
        let tag = String::from_utf8(heard.sent[0].1.view().to_tag().unwrap().to_vec()).unwrap();
        let heard = self.hear(&request("ACK", "ack", 1, &tag, ""));
        assert_eq!(heard.words(), ["Acked"]);
        (dialog, tag)
    }
}

/// A request of the peer: method, branch, CSeq number, our tag, further header lines.
fn request(method: &str, branch: &str, cseq: u32, tag: &str, headers: &str) -> String {
    let tag = if tag.is_empty() { String::new() } else { format!(";tag={tag}") };
    format!(
        "{method} sip:us@10.0.0.1 SIP/2.0\nVia: SIP/2.0/UDP 192.0.2.9:5062;branch=z9hG4bK{branch}\n\
         From: <sip:peer@192.0.2.9>;tag=peer\nTo: <sip:us@10.0.0.1>{tag}\nCall-ID: call\nCSeq: {cseq} {method}\n\
         Max-Forwards: 70\n{headers}\n"
    )
}

fn invite() -> String {
    request("INVITE", "inv", 1, "", "Contact: <sip:peer@192.0.2.9:5062>\n")
}

#[test]
fn rfc3261_8_2_7_a_stateless_answer_is_the_same_each_time_and_its_ack_meets_nothing() {
    let mut desk = Desk::new(config());
    let mut answers = Vec::new();
    for _ in 0..3 {
        let incoming = desk.hear(&invite()).incoming();
        let challenge = [("WWW-Authenticate", "Digest realm=\"x\", nonce=\"n\"")];
        let answer = Answer::new(401).headers(&challenge);
        let ((), heard) = desk.act(|stack, _, out| stack.respond_stateless(&incoming, &answer, out));
        answers.push(heard.sent[0].1.bytes());
    }
    assert!(answers.iter().all(|answer| *answer == answers[0]));
    let tag = OwnedMessage::parse(answers[0].clone()).unwrap();
    let tag = std::str::from_utf8(tag.view().to_tag().unwrap()).unwrap().to_owned();
    let heard = desk.hear(&request("ACK", "inv", 1, &tag, ""));
    assert!(heard.sent.is_empty() && heard.events.is_empty());
    assert_eq!((desk.stack.load(), desk.stack.deadline()), (Load::default(), None));
}

#[test]
fn rfc3261_8_2_2_2_the_same_request_by_another_way_gets_482() {
    let mut desk = Desk::new(config());
    let incoming = desk.hear(&invite()).incoming();
    desk.accept(&incoming);
    assert_eq!(desk.hear(&invite().replace("bKinv", "bKother")).lines(), ["482"]);
    assert_eq!(desk.hear(&invite()).lines(), ["100"], "the same branch is a retransmission");
}

#[test]
fn rfc3261_18_2_2_and_rfc3581_responses_go_where_via_and_source_say() {
    let tcp = Flow { protocol: Protocol::Tcp, connection: Some(ConnectionId(3)), ..udp("203.0.113.5:40000") };
    let seen = udp("203.0.113.5:40000");
    for (name, flow, via, force, expected, stamped) in [
        (
            "port of Via, address of source",
            seen,
            "UDP 10.1.1.1:5070",
            false,
            udp("203.0.113.5:5070"),
            ";received=203.0.113.5;branch=",
        ),
        ("default port", seen, "UDP 203.0.113.5", false, udp("203.0.113.5:5060"), ""),
        (
            "name in Via",
            seen,
            "UDP phone.example",
            false,
            udp("203.0.113.5:5060"),
            ";received=203.0.113.5;branch=",
        ),
        ("rport", seen, "UDP 10.1.1.1:5070;rport", false, seen, ";rport=40000;received=203.0.113.5;branch="),
        ("force_rport", seen, "UDP 10.1.1.1:5070", true, seen, ";rport=40000;received=203.0.113.5;branch="),
        (
            "maddr is not obeyed",
            seen,
            "UDP 10.1.1.1;maddr=239.1.1.1",
            false,
            udp("203.0.113.5:5060"),
            ";received=203.0.113.5;maddr=239.1.1.1;branch=",
        ),
        ("connection", tcp, "TCP 10.1.1.1:5070", false, tcp, ";received=203.0.113.5;branch="),
    ] {
        let mut desk = Desk::new(config());
        let text = request("OPTIONS", "o", 1, "", "").replace("UDP 192.0.2.9:5062", via);
        let mut incoming = desk.hear_from(flow, &text).incoming();
        incoming.force_rport = force;
        let id = desk.stack.accept(&incoming, desk.now).unwrap();
        let ((), heard) = desk.act(|stack, now, out| stack.respond(id, &Answer::new(200), now, out).unwrap());
        assert_eq!(heard.sent[0].0, expected, "{name}");
        let message = heard.sent[0].1.view();
        let value = String::from_utf8_lossy(message.header(HeaderName::Via).unwrap()).into_owned();
        assert!(value.contains(stamped), "{name}: {value}");
        let ((), stateless) =
            desk.act(|stack, _, out| stack.respond_stateless(&incoming, &Answer::new(200), out));
        assert_eq!(stateless.sent[0].0, expected, "{name}, stateless");
        assert_eq!(stateless.sent[0].1.bytes(), heard.sent[0].1.bytes(), "{name}: both ways say the same");
    }
}

#[test]
fn rfc3261_9_2_and_12_2_2_requests_that_fit_nothing_are_answered_or_dropped() {
    for (name, text, expected) in [
        ("CANCEL without its INVITE", request("CANCEL", "x", 1, "", ""), vec!["481"]),
        ("BYE with a tag of nobody", request("BYE", "x", 2, "nobody", ""), vec!["481"]),
        (
            "BYE with the wrong From tag",
            request("BYE", "x", 2, "OURS", "").replace("=peer\n", "=thief\n"),
            vec!["481"],
        ),
        (
            "BYE with the wrong Call-ID",
            request("BYE", "x", 2, "OURS", "").replace("call\n", "other\n"),
            vec!["481"],
        ),
        ("old number", request("INFO", "x", 1, "OURS", ""), vec!["500"]),
        ("ACK without anything", request("ACK", "x", 7, "nobody", ""), vec![]),
        ("ACK again", request("ACK", "x", 1, "OURS", ""), vec![]),
        ("method unlike CSeq", request("INFO", "x", 2, "OURS", "").replace("2 INFO", "2 BYE"), vec!["400"]),
        (
            "version",
            request("INFO", "x", 2, "OURS", "").replace("us@10.0.0.1 SIP/2.0", "us@10.0.0.1 SIP/3.0"),
            vec!["505"],
        ),
    ] {
        let mut desk = Desk::new(config());
        let (_, tag) = desk.up(&invite());
        let heard = desk.hear(&text.replace("OURS", &tag));
        assert_eq!(heard.lines(), expected, "{name}");
        assert!(heard.events.iter().all(|event| matches!(event, Event::Malformed { .. })), "{name}");
        assert_eq!(desk.stack.load().dialogs, 1, "{name}: the call stays up");
    }
}

#[test]
fn rfc3261_12_2_2_an_old_request_that_is_repeated_gets_the_same_answer() {
    let mut desk = Desk::new(config());
    let (_, tag) = desk.up(&invite());
    let info = request("INFO", "i", 5, &tag, "");
    let heard = desk.hear(&info);
    let [Event::InDialog { request: id, .. }] = heard.events.as_slice() else {
        panic!("{:?}", heard.words())
    };
    assert!(desk.hear(&info).events.is_empty(), "a retransmission is absorbed");
    let id = *id;
    let ((), first) = desk.act(|stack, now, out| stack.respond(id, &Answer::new(200), now, out).unwrap());
    assert_eq!(desk.hear(&info).sent[0].1.bytes(), first.sent[0].1.bytes());
    let late = request("INFO", "late", 4, &tag, "");
    assert_eq!(desk.hear(&late).lines(), ["500"]);
    assert_eq!(desk.hear(&late).lines(), ["500"]);
}

#[test]
fn a_full_table_refuses_new_requests_and_still_ends_old_calls() {
    let mut desk = Desk::new(Config { transactions_max: 32, dialogs_max: 3, ..config() });
    let (_, tag) = desk.up(&invite());
    let other =
        |n: u32| request("OPTIONS", &format!("o{n}"), n, "", "").replace("Call-ID: call", "Call-ID: other");
    let mut refused = None;
    for n in 0..40 {
        let heard = desk.hear(&other(n));
        if heard.events.is_empty() {
            refused = refused.or(Some(heard));
        } else {
            let incoming = heard.incoming();
            desk.stack.accept(&incoming, desk.now).unwrap();
        }
    }
    let refused = refused.unwrap();
    assert_eq!(refused.lines(), ["503"]);
    let seconds =
        refused.sent[0].1.view().header(HeaderName::RetryAfter).and_then(crate::header::delta_seconds);
    assert!(seconds.is_some_and(|seconds| (5..=30).contains(&seconds)));
    let heard = desk.hear(&request("BYE", "bye", 2, &tag, ""));
    assert_eq!((heard.lines(), heard.words()), (vec!["200".to_owned()], vec!["Ended Bye".to_owned()]));
}

#[test]
fn rfc3261_16_7_forked_answers_each_come_up_and_only_the_first_stays() {
    let mut desk = Desk::new(config());
    let (dialog, heard) =
        desk.act(|stack, now, out| stack.invite(&outgoing("<sip:us@10.0.0.1>", PEER), now, out).unwrap());
    let invite = heard.sent[0].1.clone();
    let say = |status: u16, tag: &str| {
        let mut bytes = Vec::new();
        let reply = Reply { to_tag: Some(tag.as_bytes()), ..Reply::default() };
        let status = Status::new(status).unwrap();
        let mut writer = MessageWriter::response(&mut bytes, &invite.view(), status, &reply);
        writer.header(HeaderName::Contact, format!("<sip:{tag}@192.0.2.{}>", tag.len()));
        writer.header(HeaderName::RecordRoute, format!("<sip:p-{tag};lr>"));
        writer.finish();
        String::from_utf8(bytes).unwrap().replace("\r\n", "\n")
    };
    assert_eq!(desk.hear(&say(100, "a")).words(), [""; 0]);
    assert_eq!(desk.hear(&say(180, "a")).words(), ["Provisional 180 Some(0)"]);
    assert_eq!(desk.hear(&say(183, "bb")).words(), ["Provisional 183 Some(1)"]);
    assert_eq!(desk.hear(&say(180, "a")).words(), ["Provisional 180 Some(0)"]);
    assert_eq!(desk.hear(&say(200, "bb")).words(), ["Answered 1"]);
    let ((), heard) = desk.act(|stack, _, out| stack.ack(dialog, None, out).unwrap());
    assert_eq!(heard.sent[0].1.view().request_uri_bytes(), b"sip:bb@192.0.2.2");
    assert_eq!(heard.sent[0].1.view().header(HeaderName::Route), Some(&b"<sip:p-bb;lr>"[..]));
    let surplus = desk.hear(&say(200, "a"));
    assert_eq!((surplus.lines(), surplus.words()), (vec!["ACK".to_owned(), "BYE".to_owned()], vec![]));
    for (_, message) in &surplus.sent {
        assert_eq!(message.view().to_tag(), Some(&b"a"[..]));
        assert_eq!(message.view().request_uri_bytes(), b"sip:a@192.0.2.1");
    }
    assert_eq!(desk.hear(&say(200, "a")).lines(), ["ACK"], "ended already");
    assert_eq!(desk.hear(&say(200, "bb")).lines(), ["ACK"]);
    assert_eq!(desk.hear(&say(486, "a")).lines(), [""; 0], "RFC 6026 §8.4");
    assert_eq!(desk.stack.load().dialogs, 1);
}

#[test]
fn rfc3261_12_1_1_and_12_2_1_1_requests_follow_the_route_set() {
    for (name, record_route, target, routes, flow) in [
        ("no proxy", "", "sip:peer@192.0.2.9:5062", vec![], udp(PEER)),
        (
            "loose routers",
            "Record-Route: <sip:192.0.2.50;lr>, <sip:p2;lr>\n",
            "sip:peer@192.0.2.9:5062",
            vec!["<sip:192.0.2.50;lr>", "<sip:p2;lr>"],
            udp("192.0.2.50:5060"),
        ),
        (
            "strict router",
            "Record-Route: <sip:192.0.2.50:5080>\nRecord-Route: <sip:p2;lr>\n",
            "sip:192.0.2.50:5080",
            vec!["<sip:p2;lr>", "<sip:peer@192.0.2.9:5062>"],
            udp("192.0.2.50:5080"),
        ),
        (
            "a name is left to the driver",
            "Record-Route: <sip:proxy.example;lr>\n",
            "sip:peer@192.0.2.9:5062",
            vec!["<sip:proxy.example;lr>"],
            udp(PEER),
        ),
    ] {
        let mut desk = Desk::new(config());
        let (dialog, _) = desk.up(&invite().replace("Contact:", &format!("{record_route}Contact:")));
        let ((), heard) = desk.act(|stack, now, out| stack.bye(dialog, &[], now, out).unwrap());
        let (sent_to, bye) = &heard.sent[0];
        let bye = bye.view();
        assert_eq!(String::from_utf8_lossy(bye.request_uri_bytes()), target, "{name}");
        let values: Vec<_> = bye.values(HeaderName::Route).map(String::from_utf8_lossy).collect();
        assert_eq!(values, routes, "{name}");
        assert_eq!(*sent_to, flow, "{name}");
        assert_eq!((bye.to_tag(), bye.cseq().unwrap().number), (Some(&b"peer"[..]), 1), "{name}");
    }
}

#[test]
fn rfc3261_12_2_2_a_reinvite_moves_the_target_and_symmetric_peers_stay_where_they_send_from() {
    for (name, symmetric, expected, target) in [
        ("contact counts", false, udp("192.0.2.77:5060"), "sip:moved@192.0.2.77"),
        ("source counts", true, udp("198.51.100.4:999"), "sip:moved@198.51.100.4:999"),
    ] {
        let mut desk = Desk::new(config());
        let incoming = desk.hear(&invite()).incoming();
        let accept = Accept { contact: "<sip:us@10.0.0.1>", symmetric, unproved: false };
        let dialog = desk.stack.accept_invite(&incoming, &accept, desk.now).unwrap();
        let answer = |id| {
            move |stack: &mut Stack, now, out: &mut Vec<Output>| {
                stack.respond(id, &Answer::new(200), now, out).unwrap()
            }
        };
        let ((), heard) =
            desk.act(|stack, now, out| stack.answer(dialog, &Answer::new(200), now, out).unwrap());
        let tag = String::from_utf8_lossy(heard.sent[0].1.view().to_tag().unwrap()).into_owned();
        desk.hear(&request("ACK", "a", 1, &tag, ""));
        let text = request("INVITE", "re", 2, &tag, "Contact: <sip:moved@192.0.2.77>\n");
        // Nobody was known to be there, so that the driver is asked first.
        let heard = desk.hear_from(udp("198.51.100.4:999"), &text);
        let [Event::Elsewhere { incoming, .. }] = heard.events.as_slice() else {
            panic!("{:?}", heard.words())
        };
        let ((), heard) = desk.act(|stack, now, out| stack.receive_proved(dialog, incoming, now, out));
        let [Event::InDialog { request: id, .. }] = heard.events.as_slice() else {
            panic!("{:?}", heard.words())
        };
        desk.act(answer(*id));
        desk.hear_from(udp("198.51.100.4:999"), &request("ACK", "a2", 2, &tag, ""));
        let ((), heard) = desk.act(|stack, now, out| stack.bye(dialog, &[], now, out).unwrap());
        assert_eq!(heard.sent[0].1.view().request_uri_bytes(), target.as_bytes(), "{name}");
        assert_eq!(heard.sent[0].0, expected, "{name}");
    }
}

#[test]
fn rfc3261_17_2_3_a_peer_of_rfc2543_is_understood_without_branches() {
    let old = |text: String| text.replace(";branch=z9hG4bKinv", "").replace(";branch=z9hG4bKack", "");
    let mut desk = Desk::new(config());
    let incoming = desk.hear(&old(invite())).incoming();
    let dialog = desk.accept(&incoming);
    assert_eq!(desk.hear(&old(invite())).lines(), ["100"], "retransmission");
    let ((), heard) = desk.act(|stack, now, out| stack.answer(dialog, &Answer::new(486), now, out).unwrap());
    let tag = String::from_utf8_lossy(heard.sent[0].1.view().to_tag().unwrap()).into_owned();
    assert_eq!(desk.wait(500).lines(), ["486"]);
    desk.hear(&old(request("ACK", "inv", 1, &tag, "")));
    assert_eq!(desk.wait(1000).lines(), [""; 0], "acknowledged");
    let mut desk = Desk::new(config());
    let incoming = desk.hear(&old(invite())).incoming();
    desk.accept(&incoming);
    let heard = desk.hear(&old(request("CANCEL", "inv", 1, "", "")));
    assert_eq!(
        (heard.lines(), heard.words()),
        (vec!["200".into(), "487".into()], vec!["Canceled".to_owned()])
    );
}

#[test]
fn rfc3261_17_1_3_responses_that_are_not_for_us_change_nothing() {
    let mut desk = Desk::new(config());
    let (_, heard) =
        desk.act(|stack, now, out| stack.invite(&outgoing("<sip:us@h>", PEER), now, out).unwrap());
    let invite = heard.sent[0].1.clone();
    let mut bytes = Vec::new();
    let reply = Reply { to_tag: Some(b"x"), ..Reply::default() };
    MessageWriter::response(&mut bytes, &invite.view(), Status::OK, &reply).finish();
    let good = String::from_utf8(bytes).unwrap().replace("\r\n", "\n");
    let branch = String::from_utf8_lossy(invite.view().top_via().unwrap().branch().unwrap()).into_owned();
    let forged = format!("{}{}", &branch[..branch.len() - 4], "0000");
    for (name, text) in [
        ("forged branch", good.replace(&branch, &forged)),
        ("branch of nobody", good.replace(&branch, "z9hG4bKnobody")),
        ("other method", good.replace(" INVITE\n", " BYE\n")),
        ("two Vias", good.replace("Via:", "Via: SIP/2.0/UDP other;branch=z9hG4bKo\nVia:")),
    ] {
        let heard = desk.hear(&text);
        assert!(heard.events.is_empty() && heard.sent.is_empty(), "{name}: {:?}", heard.words());
    }
    assert_eq!(desk.hear(&good).words(), ["Answered 0"]);
}

/// RFC 3261 §8.1.3: a final response ends its transaction whatever is wrong with it.
#[test]
fn rfc3261_8_1_3_a_final_response_that_cannot_be_read_ends_its_transaction_and_is_told_of() {
    let bad = "Contact: <sip:peer@192.0.2.9\n";
    let none = ("", "");
    for (name, status, (from, to), headers, events, sent, told) in [
        ("a contact that is not closed", 200, none, bad, "Failed 500", "ACK BYE", "Contact is no address"),
        ("a contact of a telephone", 200, none, "Contact: <tel:+491>\n", "Failed 500", "ACK BYE", "sent to"),
        (
            "a contact of a service",
            200,
            none,
            "Contact: <urn:service:sos>\n",
            "Failed 500",
            "ACK BYE",
            "sent to",
        ),
        ("two contacts, one bad", 200, none, "Contact: <sip:a@b>, <x\n", "Failed 500", "ACK BYE", "Contact"),
        (
            "To",
            200,
            ("To: <sip:callee@there>", "To: <sip:callee@there"),
            "",
            "Failed 500",
            "ACK BYE",
            "To is no",
        ),
        ("From", 200, ("From: \"Caller\"", "From: \"Caller"), "", "Failed 500", "ACK BYE", "From is no"),
        ("CSeq", 200, ("CSeq: ", "CSeq: x"), "", "Failed 500", "ACK BYE", "CSeq is unreadable"),
        ("Call-ID twice", 200, none, "Call-ID: x\n", "Failed 500", "ACK BYE", "Call-ID stands twice"),
        (
            "busy",
            486,
            ("To: <sip:callee@there>", "To: <sip:callee@there"),
            "",
            "Failed 486",
            "ACK",
            "To is no",
        ),
        ("a bad contact of a failure is not looked at", 486, none, bad, "Failed 486", "ACK", ""),
        ("ringing is waited on", 180, ("CSeq: ", "CSeq: x"), "", "", "", "CSeq is unreadable"),
    ] {
        let mut desk = Desk::new(config());
        let (_, heard) =
            desk.act(|stack, now, out| stack.invite(&outgoing("<sip:us@h>", PEER), now, out).unwrap());
        let mut bytes = Vec::new();
        let reply = Reply { to_tag: Some(b"x"), ..Reply::default() };
        let status = Status::new(status).unwrap();
        MessageWriter::response(&mut bytes, &heard.sent[0].1.view(), status, &reply).finish();
        let text = String::from_utf8(bytes).unwrap().replace("\r\n", "\n");
        let text = text.replacen(from, to, usize::from(!from.is_empty()));
        let text = text.replacen("Content-Length", &format!("{headers}Content-Length"), 1);
        let heard = desk.hear(&text);
        let mut words = heard.words();
        let what = heard.events.iter().find_map(|event| match event {
            Event::Malformed { what, .. } => Some(what.clone()),
            _ => None,
        });
        assert!(what.as_deref().unwrap_or_default().contains(told), "{name}: {what:?}");
        assert_eq!(what.is_none(), told.is_empty(), "{name}: {what:?}");
        words.retain(|word| word != "Malformed");
        assert_eq!(words.join(" "), events, "{name}");
        let methods: Vec<_> =
            heard.lines().iter().map(|line| line.split(' ').next().unwrap().to_owned()).collect();
        assert_eq!(methods.join(" "), sent, "{name}");
        if status.is_success() {
            let again = desk.hear(&text);
            let acks: Vec<_> = again.lines().iter().map(|line| line == "ACK").collect();
            assert!(
                acks.iter().all(|ack| *ack),
                "{name}: a repeated 2xx is acknowledged or nothing: {acks:?}"
            );
        }
    }
}

#[test]
fn rfc3261_8_1_3_a_2xx_to_another_request_that_cannot_be_read_counts_as_500() {
    let mut desk = Desk::new(config());
    let (_, heard) =
        desk.act(|stack, now, out| stack.request(&outgoing("<sip:us@h>", PEER), now, out).unwrap());
    let mut bytes = Vec::new();
    let reply = Reply { to_tag: Some(b"x"), ..Reply::default() };
    MessageWriter::response(&mut bytes, &heard.sent[0].1.view(), Status::OK, &reply).finish();
    let text = String::from_utf8(bytes).unwrap().replace("\r\n", "\n").replace("To: <", "To: ");
    let heard = desk.hear(&text);
    assert_eq!(heard.words(), ["Malformed", "Response 500"]);
}

#[test]
fn rfc3261_17_over_tcp_nothing_is_sent_twice_but_the_answer_until_its_ack() {
    let tcp = Flow { protocol: Protocol::Tcp, connection: Some(ConnectionId(1)), ..udp(PEER) };
    let mut desk = Desk::new(config());
    let incoming = desk.hear_from(tcp, &invite().replace("UDP", "TCP")).incoming();
    let dialog = desk.accept(&incoming);
    let ((), heard) = desk.act(|stack, now, out| stack.answer(dialog, &Answer::new(200), now, out).unwrap());
    let tag = String::from_utf8_lossy(heard.sent[0].1.view().to_tag().unwrap()).into_owned();
    assert_eq!(desk.wait(500).lines(), ["200"], "§13.3.1.4: end to end, whatever the transport");
    desk.hear_from(tcp, &request("ACK", "a", 1, &tag, "").replace("UDP", "TCP"));
    let ((), heard) = desk.act(|stack, now, out| stack.bye(dialog, &[], now, out).unwrap());
    assert_eq!(heard.sent[0].0, tcp, "the connection is used as long as the dialog");
    assert_eq!(desk.wait(31_000).lines(), [""; 0]);
    assert_eq!(desk.wait(1_000).words(), ["Ended Local"]);
    desk.wait(40_000);
    assert_eq!((desk.stack.load(), desk.stack.deadline()), (Load::default(), None));
}

#[test]
fn rfc3261_8_2_2_3_an_extension_that_we_do_not_know_is_named_in_420() {
    for (supported, expected) in
        [("", "replaces, nothingSupportsThis"), ("timer, Replaces", "nothingSupportsThis")]
    {
        let mut desk = Desk::new(Config { supported: supported.into(), ..config() });
        let heard =
            desk.hear(&request("MESSAGE", "o", 1, "", "Require: replaces\nRequire: nothingSupportsThis\n"));
        assert_eq!((heard.lines(), heard.words()), (vec!["420".to_owned()], vec![]));
        assert_eq!(
            heard.sent[0].1.view().header(HeaderName::Unsupported),
            Some(expected.as_bytes()),
            "{supported}"
        );
    }
}

#[test]
fn rfc3261_12_2_2_an_extension_that_we_do_not_know_is_named_in_420_inside_a_call_too() {
    let mut desk = Desk::new(Config { supported: "timer".into(), ..config() });
    let (_, tag) = desk.up(&invite());
    for (n, method) in (2..).zip(["INVITE", "UPDATE", "PRACK", "INFO", "FOO"]) {
        let heard = desk.hear(&request(method, method, n, &tag, "Require: timer, telepathy\n"));
        assert_eq!((heard.lines(), heard.words()), (vec!["420".to_owned()], vec![]), "{method}");
        let unsupported = heard.sent[0].1.view().header(HeaderName::Unsupported);
        assert_eq!(unsupported, Some(&b"telepathy"[..]), "{method}");
    }
    let heard = desk.hear(&request("UPDATE", "u", 20, &tag, "Require: timer\n"));
    assert_eq!(heard.words(), ["InDialog UPDATE"]);
    let heard = desk.hear(&request("BYE", "b", 21, &tag, "Require: telepathy\n"));
    assert_eq!(heard.lines(), ["200"]);
}

#[test]
fn rfc3261_18_4_a_dialog_whose_connection_closed_asks_for_another_one() {
    let tcp = Flow { protocol: Protocol::Tcp, connection: Some(ConnectionId(1)), ..udp("192.0.2.9:40001") };
    let mut desk = Desk::new(config());
    let incoming = desk.hear_from(tcp, &invite().replace("UDP", "TCP")).incoming();
    let dialog = desk.accept(&incoming);
    let ((), heard) = desk.act(|stack, now, out| stack.answer(dialog, &Answer::new(200), now, out).unwrap());
    let tag = String::from_utf8_lossy(heard.sent[0].1.view().to_tag().unwrap()).into_owned();
    desk.hear_from(tcp, &request("ACK", "a", 1, &tag, "").replace("UDP", "TCP"));
    desk.act(|stack, now, out| stack.transport_error(tcp, now, out));
    let names = desk.stack.names(dialog).unwrap();
    assert_eq!(
        (names.call_id, names.local_tag, names.remote_tag),
        (&b"call"[..], tag.as_str(), &b"peer"[..])
    );
    assert_eq!(names.flow, Flow { connection: None, remote: PEER.parse().unwrap(), ..tcp }, "to the Contact");
    assert_eq!(desk.stack.find_dialog(b"call", tag.as_bytes(), b"peer"), Some(dialog));
    assert_eq!(desk.stack.find_dialog(b"call", tag.as_bytes(), b"thief"), None);
}

#[test]
fn rfc3261_18_2_2_rfc3263_5_an_answer_without_its_connection_goes_where_the_peer_listens_and_then_where_the_dns_says()
 {
    let tcp = Flow { protocol: Protocol::Tcp, connection: Some(ConnectionId(1)), ..udp("192.0.2.9:40001") };
    let at = |remote: &str| Flow { connection: None, remote: remote.parse().unwrap(), ..tcp };
    for (name, via, received, stranded) in [
        ("a port", "192.0.2.9:5070", "192.0.2.9:5070", "Stranded 192.0.2.9 Some(5070) 192.0.2.9:5070"),
        ("no port", "phone.example", "192.0.2.9:5060", "Stranded phone.example None 192.0.2.9:5060"),
    ] {
        for (ways, last) in
            [(vec![], vec!["Ended PeerLost"]), (vec!["192.0.2.20:5060", "192.0.2.21:5062"], vec![])]
        {
            let mut desk = Desk::new(config());
            let named = invite().replace("UDP 192.0.2.9:5062", &format!("TCP {via}"));
            let incoming = desk.hear_from(tcp, &named).incoming();
            let dialog = desk.accept(&incoming);
            let ((), heard) = desk.act(|stack, now, out| stack.transport_error(tcp, now, out));
            assert!(heard.events.is_empty() && desk.stack.load().dialogs == 1, "{name}");
            let ((), heard) =
                desk.act(|stack, now, out| stack.answer(dialog, &Answer::new(180), now, out).unwrap());
            assert_eq!(heard.sent[0].0, at(received), "{name}");
            // The connection that was made for it was refused.
            let made = Flow { connection: Some(ConnectionId(2)), ..at(received) };
            let ((), mut heard) = desk.act(|stack, now, out| stack.transport_error(made, now, out));
            assert_eq!(heard.words(), [stranded], "{name}");
            let Event::Stranded { request, .. } = heard.events.remove(0) else { panic!("{name}") };
            let ways: Vec<Flow> = ways.iter().map(|way| at(way)).collect();
            let ((), mut heard) = desk.act(|stack, now, out| {
                stack.respond_by(request, &[&[at(received)], &*ways].concat(), now, out);
            });
            for way in &ways {
                assert_eq!(heard.sent[0].0, *way, "{name}");
                assert!(heard.sent[0].1.view().status().is_some_and(|status| status.code() == 180));
                heard = desk.act(|stack, now, out| stack.transport_error(*way, now, out)).1;
            }
            let ended = if ways.is_empty() { last } else { vec!["Ended PeerLost"] };
            assert_eq!(heard.words(), ended, "{name}");
            // What the DNS says twice, or late, moves nothing.
            let ((), heard) =
                desk.act(|stack, now, out| stack.respond_by(request, &[at("192.0.2.30:5060")], now, out));
            assert!(heard.sent.is_empty() && heard.events.is_empty(), "{name}");
            assert_eq!(desk.stack.load(), Load::default());
        }
    }
}

#[test]
fn rfc3261_18_2_2_the_final_answer_to_another_request_waits_until_the_new_connection_stands() {
    let tcp = Flow { protocol: Protocol::Tcp, connection: Some(ConnectionId(1)), ..udp("192.0.2.9:40001") };
    let mut desk = Desk::new(config());
    let incoming = desk.hear_from(tcp, &request("OPTIONS", "o", 1, "", "").replace("UDP", "TCP")).incoming();
    let (request, _) = desk.act(|stack, now, _| stack.accept(&incoming, now).unwrap());
    desk.act(|stack, now, out| stack.transport_error(tcp, now, out));
    let ((), heard) =
        desk.act(|stack, now, out| stack.respond(request, &Answer::new(200), now, out).unwrap());
    let (back, _) = heard.sent[0];
    assert_eq!((back.connection, back.remote.ip()), (None, tcp.remote.ip()));
    let ((), heard) = desk.act(|stack, now, out| stack.transport_error(back, now, out));
    assert!(heard.words()[0].starts_with("Stranded "), "{:?}", heard.words());
    let found = Flow { remote: "192.0.2.20:5060".parse().unwrap(), ..back };
    let ((), heard) = desk.act(|stack, now, out| stack.respond_by(request, &[found], now, out));
    assert_eq!(heard.sent[0].0, found);
    desk.wait(40_000);
    assert_eq!(desk.stack.load(), Load::default());
}

#[test]
fn rfc3261_13_3_1_4_a_2xx_is_repeated_where_the_peer_listens_when_its_connection_is_gone() {
    let tcp = Flow { protocol: Protocol::Tcp, connection: Some(ConnectionId(1)), ..udp("192.0.2.9:40001") };
    let mut desk = Desk::new(config());
    let incoming = desk.hear_from(tcp, &invite().replace("UDP", "TCP")).incoming();
    let dialog = desk.accept(&incoming);
    let ((), heard) = desk.act(|stack, now, out| stack.answer(dialog, &Answer::new(200), now, out).unwrap());
    assert_eq!(heard.sent[0].0, tcp);
    desk.act(|stack, now, out| stack.transport_error(tcp, now, out));
    let heard = desk.wait(500);
    assert_eq!(heard.sent[0].0, Flow { connection: None, remote: PEER.parse().unwrap(), ..tcp });
}

#[test]
fn rfc5626_4_3_a_peer_whose_contact_has_ob_is_reached_by_its_flow() {
    for (name, contact, routes, expected) in [
        ("as its Contact says", "sip:peer@192.0.2.77:5070", "", "192.0.2.77:5070"),
        ("by its flow", "sip:peer@192.0.2.77:5070;ob", "", "192.0.2.9:40001"),
        (
            "by the proxy that knows the flow",
            "sip:peer@192.0.2.77:5070;ob",
            "Record-Route: <sip:192.0.2.50;lr>\n",
            "192.0.2.50:5060",
        ),
    ] {
        let mut desk = Desk::new(config());
        let source = udp("192.0.2.9:40001");
        let with = format!("Contact: <{contact}>\n{routes}");
        let incoming = desk.hear_from(source, &request("INVITE", "inv", 1, "", &with)).incoming();
        let (dialog, _) = desk.act(|stack, now, _| {
            stack
                .accept_invite(
                    &incoming,
                    &Accept { contact: "<sip:us@h>", symmetric: false, unproved: false },
                    now,
                )
                .unwrap()
        });
        desk.act(|stack, now, out| stack.answer(dialog, &Answer::new(200), now, out).unwrap());
        assert_eq!(desk.stack.names(dialog).unwrap().flow.remote, expected.parse().unwrap(), "{name}");
    }
}

#[test]
fn rfc3327_5_3_rfc5626_6_a_registrar_may_be_required_to_know_path_and_outbound() {
    // Whoever asks by OPTIONS what we know is told that by the driver.
    for (method, words) in [("REGISTER", vec!["Request"]), ("OPTIONS", vec!["Request"]), ("MESSAGE", vec![])]
    {
        let mut desk = Desk::new(config());
        let heard = desk.hear(&request(method, "o", 1, "", "Require: path, outbound\n"));
        assert_eq!(heard.words(), words, "{method}");
    }
}

#[test]
fn a_request_fails_with_the_connection_that_was_made_for_it() {
    let made_for = Flow { protocol: Protocol::Tcp, ..udp(PEER) };
    let mut desk = Desk::new(config());
    let request = Outgoing { flow: made_for, ..outgoing("<sip:us@h>", PEER) };
    desk.act(|stack, now, out| stack.invite(&request, now, out).unwrap());
    let made = Flow { connection: Some(ConnectionId(9)), ..made_for };
    let ((), heard) = desk.act(|stack, now, out| stack.transport_error(made, now, out));
    assert_eq!((heard.words(), desk.stack.load()), (vec!["Failed Transport".to_owned()], Load::default()));
}

#[test]
fn rfc3261_8_1_1_8_a_call_that_does_not_say_where_its_caller_is_is_refused() {
    let mut desk = Desk::new(config());
    let heard = desk.hear(&request("INVITE", "inv", 1, "", ""));
    let view = heard.sent[0].1.view();
    assert_eq!(
        (heard.lines(), view.reason_phrase()),
        (vec!["400".to_owned()], &b"Missing Contact header"[..])
    );
    assert_eq!(desk.stack.load(), Load::default());
}

#[test]
fn a_symmetric_peer_behind_proxies_is_routed_to_where_its_first_hop_is() {
    for (symmetric, first) in [(true, "<sip:192.0.2.9:5062;lr>"), (false, "<sip:10.1.1.1;lr>")] {
        let mut desk = Desk::new(config());
        let routes = "Record-Route: <sip:10.1.1.1;lr>\nRecord-Route: <sip:203.0.113.8;lr>\n";
        let invite = request("INVITE", "inv", 1, "", &format!("{routes}Contact: <sip:p@10.9.9.9>\n"));
        let incoming = desk.hear(&invite).incoming();
        let accept = Accept { contact: "<sip:us@10.0.0.1>", symmetric, unproved: false };
        let dialog = desk.stack.accept_invite(&incoming, &accept, desk.now).unwrap();
        let ((), heard) =
            desk.act(|stack, now, out| stack.answer(dialog, &Answer::new(200), now, out).unwrap());
        let tag = String::from_utf8_lossy(heard.sent[0].1.view().to_tag().unwrap()).into_owned();
        desk.hear(&request("ACK", "a", 1, &tag, ""));
        let ((), heard) = desk.act(|stack, now, out| stack.bye(dialog, &[], now, out).unwrap());
        let bye = heard.sent[0].1.view();
        assert_eq!(bye.request_uri_bytes(), b"sip:p@10.9.9.9");
        let routes: Vec<_> = bye.headers(HeaderName::Route).map(String::from_utf8_lossy).collect();
        assert_eq!(routes, [first, "<sip:203.0.113.8;lr>"]);
    }
}

#[test]
fn timers_of_zero_do_not_spin() {
    let mut desk =
        Desk::new(Config { timers: Timers::new(Duration::ZERO, Some(Duration::ZERO)), ..config() });
    desk.act(|stack, now, out| stack.invite(&outgoing("<sip:us@h>", PEER), now, out).unwrap());
    let incoming = desk.hear(&invite()).incoming();
    let dialog = desk.accept(&incoming);
    desk.act(|stack, now, out| stack.answer(dialog, &Answer::new(200), now, out).unwrap());
    let heard = desk.wait(10);
    assert_eq!(heard.words(), ["Failed Timeout", "Ended NoAck"]);
}

#[test]
fn rfc3261_15_1_2_bye_before_our_answer_refuses_the_invite_too() {
    let mut desk = Desk::new(config());
    let incoming = desk.hear(&invite()).incoming();
    let dialog = desk.accept(&incoming);
    let ((), heard) = desk.act(|stack, now, out| stack.answer(dialog, &Answer::new(180), now, out).unwrap());
    let tag = String::from_utf8_lossy(heard.sent[0].1.view().to_tag().unwrap()).into_owned();
    let heard = desk.hear(&request("BYE", "b", 2, &tag, ""));
    assert_eq!(
        (heard.lines(), heard.words()),
        (vec!["200".into(), "487".into()], vec!["Ended Bye".to_owned()])
    );
    let late = desk.act(|stack, now, out| stack.answer(dialog, &Answer::new(200), now, out)).0;
    assert_eq!(late, Err(Refused::Gone));
}

#[test]
fn messages_name_us_as_the_transport_says_and_no_value_breaks_out_of_its_line() {
    let mut desk = Desk::new(config());
    let transport = Transport {
        sent_by: "10.0.0.1:5060".into(),
        external: Some("203.0.113.1:5060".into()),
        local_nets: vec![("10.0.0.0".parse().unwrap(), 8)],
        stream: None,
    };
    desk.stack.set_transport(TransportId(0), transport);
    for (peer, host) in [("10.0.0.9:5060", "10.0.0.1"), ("192.0.2.1:5060", "203.0.113.1")] {
        let headers = [("X-Name", "a\r\nInjected: yes"), ("Bad\r\nInjected", "yes")];
        let request = Outgoing {
            headers: &headers,
            from: "\"a\r\nInjected: b\" <sip:a@h>",
            ..outgoing("<sip:us@h>", peer)
        };
        let (_, heard) = desk.act(|stack, now, out| stack.request(&request, now, out).unwrap());
        let message = heard.sent[0].1.view();
        assert_eq!(message.top_via().unwrap().host.as_bytes(), host.as_bytes(), "{peer}");
        assert!(!message.has(HeaderName::Other(b"Injected")), "{peer}");
    }
    let unknown =
        Outgoing { flow: Flow { transport: TransportId(9), ..udp(PEER) }, ..outgoing("<sip:us@h>", PEER) };
    let refused = desk.act(|stack, now, out| stack.invite(&unknown, now, out)).0;
    assert_eq!((refused, desk.stack.load().dialogs), (Err(Refused::UnknownTransport), 0));
}

#[test]
fn a_person_waits_for_what_belongs_to_a_call_and_for_a_text_and_a_device_for_the_rest() {
    let heads = |line: &str, method: &str| {
        format!(
            "{line}\nVia: SIP/2.0/UDP {PEER};branch=z9hG4bK-{method}\nMax-Forwards: 70\nFrom: <sip:a@b>;tag=1\n\
             To: <sip:b@b>\nCall-ID: {method}\nCSeq: 1 {method}\nContent-Length: 0\n\n"
        )
    };
    let (calls, devices) = (
        ["INVITE", "ACK", "BYE", "CANCEL", "PRACK", "UPDATE", "INFO", "REFER", "MESSAGE"],
        ["REGISTER", "OPTIONS", "SUBSCRIBE", "NOTIFY", "PUBLISH", "WHATEVER"],
    );
    let rows =
        calls.iter().map(|method| (*method, true)).chain(devices.iter().map(|method| (*method, false)));
    for (method, waits) in rows {
        for line in [format!("{method} sip:b@b SIP/2.0"), "SIP/2.0 200 OK".to_owned()] {
            let mut desk = Desk::new(config());
            desk.hear_from(udp(PEER), &heads(&line, method));
            assert_eq!(desk.stack.take_hurries(), waits, "{line} of {method}");
            assert!(!desk.stack.take_hurries(), "said once");
        }
    }
    let mut desk = Desk::new(config());
    desk.hear_from(udp(PEER), "what is no message");
    assert!(!desk.stack.take_hurries());
}
