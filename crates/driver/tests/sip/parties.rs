//! Who talks to whom, as each side's display shows it: told by one peer, shown by the other (RFC 3325, RFC 5806, RFC 3891).

use base::ChannelId;
use call::{Indication, PartyId, Redirecting};
use driver::sip::Endpoint;

use crate::lab::{Lab, add, aor, change, endpoint, header, line, site, udp};
use crate::phone::{Phone, sdp};

const OFFER: &str = "0 8 101";
const ALLOW: &str = "Allow: INVITE, UPDATE\r\n";

fn offer() -> String {
    sdp("198.51.100.7", 4000, OFFER)
}

/// A laboratory where the endpoint `told` hears of changed parties, and `trunk` is believed.
fn laboratory(trunk: impl FnOnce(&mut Endpoint), told: impl FnOnce(&mut Endpoint)) -> Lab {
    let mut config = site();
    let mut shown = Endpoint { auths: Vec::new(), ..endpoint("told") };
    (shown.send_pai, shown.send_connected_line) = (true, true);
    told(&mut shown);
    let contact = "sip:told@198.51.100.9:5062".to_owned();
    add(&mut config, shown, driver::sip::Aor { contacts: vec![contact], ..aor("told") });
    change(&mut config, "trunk", |endpoint| {
        (endpoint.trust_id_inbound, endpoint.trust_connected_line) = (true, true);
        trunk(endpoint);
    });
    let mut lab = Lab::new(config);
    lab.storyless = true;
    lab
}

/// A call to the contact of an endpoint, answered.
#[track_caller]
fn called(lab: &mut Lab, name: &str, at: &str) -> (ChannelId, Phone) {
    let id = lab.dial(name).unwrap();
    let invite = lab.sent();
    let mut phone = Phone::at(name, udp(at));
    phone.called(&invite);
    phone.respond(lab, &invite, 200, ALLOW, &offer());
    assert_eq!(lab.lines(), ["ACK"]);
    (id, phone)
}

fn party(lab: &Lab, id: ChannelId) -> (String, String) {
    let core = lab.shard.core.borrow();
    core.get(id).map(|c| (c.caller.all(), c.connected.all())).unwrap_or_default()
}

#[test]
fn rfc3325_who_a_trusted_peer_says_is_there_is_shown_to_the_other_side_of_the_call() {
    type Change = fn(&mut Endpoint);
    let same: Change = |_| {};
    let rows: [(&str, Change, Change, &str, Option<&str>); 8] = [
        ("a re-INVITE shown by UPDATE", same, same, "INVITE", Some("UPDATE")),
        ("an UPDATE shown by UPDATE", same, |e| e.connected_by_update = true, "UPDATE", Some("UPDATE")),
        ("not by who is not trusted with identities", |e| e.trust_id_inbound = false, same, "UPDATE", None),
        ("not by who is not trusted with these", |e| e.trust_connected_line = false, same, "UPDATE", None),
        ("not to who is not to hear of it", same, |e| e.send_connected_line = false, "UPDATE", None),
        ("not to who takes no identity", same, |e| e.send_pai = false, "UPDATE", None),
        ("as Remote-Party-ID", same, |e| (e.send_pai, e.send_rpid) = (false, true), "UPDATE", Some("UPDATE")),
        ("hidden from who is not trusted with that", same, same, "UPDATE Privacy: id", None),
    ];
    for (name, trunk, told, method, shown) in rows {
        let mut lab = laboratory(trunk, told);
        let (a, mut teller) = called(&mut lab, "trunk", "198.51.100.7:5062");
        let (b, other) = called(&mut lab, "told", "198.51.100.9:5062");
        lab.talk(a, b);
        let (method, privacy) = method.split_once(' ').unwrap_or((method, ""));
        let headers = format!("P-Asserted-Identity: \"Carol\" <sip:300@h>\r\n{privacy}\r\n")
            .replace("\r\n\r\n", "\r\n");
        let body = if method == "INVITE" { offer() } else { String::new() };
        teller.inside(&mut lab, method, &headers, &body);
        let answer = lab.sent();
        assert_eq!(line(&answer), "200", "{name}");
        if method == "INVITE" {
            teller.ack(&mut lab, &answer, "");
        }
        let Some(shown) = shown else {
            assert!(lab.lines().is_empty(), "{name}");
            continue;
        };
        let update = lab.sent();
        assert_eq!(line(&update), shown, "{name}");
        let said = [header(&update, "P-Asserted-Identity"), header(&update, "Remote-Party-ID")];
        assert!(
            said.iter().any(|said| said.starts_with("\"Carol\" <sip:300@192.0.2.1>")),
            "{name}: {said:?}"
        );
        other.respond(&mut lab, &update, 200, "", if shown == "INVITE" { "x" } else { "" });
        lab.lines();
        assert_eq!(party(&lab, a).0, "\"Carol\" <300>", "{name}");
        assert_eq!(party(&lab, b).1, "\"Carol\" <300>", "{name}");
        // The same once more is no news.
        teller.inside(&mut lab, "UPDATE", &headers, "");
        assert_eq!(lab.lines(), ["200"], "{name}");
    }
}

#[test]
fn rfc3311_5_2_a_changed_party_is_told_once_the_request_in_its_way_is_over() {
    let mut lab = laboratory(|_| {}, |_| {});
    let (b, mut other) = called(&mut lab, "told", "198.51.100.9:5062");
    // It says that it takes no UPDATE any more.
    other.inside(&mut lab, "INVITE", "Allow: INVITE\r\n", &offer());
    let answer = lab.sent();
    other.ack(&mut lab, &answer, "");
    let carol = PartyId::parse("\"Carol\" <300>");
    let dave = PartyId::parse("\"Dave\" <400>");
    lab.indicate(b, Indication::ConnectedLine(carol));
    let first = lab.sent();
    lab.indicate(b, Indication::ConnectedLine(dave));
    assert!(lab.lines().is_empty(), "one re-INVITE at a time");
    other.respond(&mut lab, &first, 200, "", &offer());
    assert_eq!(line(&lab.sent()), "ACK");
    let second = lab.sent();
    assert_eq!(header(&second, "P-Asserted-Identity"), "\"Dave\" <sip:400@192.0.2.1>");
}

#[test]
fn rfc3891_an_attended_transfer_shows_each_of_the_two_whom_it_talks_to_now() {
    let mut lab = laboratory(|_| {}, |told| told.connected_by_update = true);
    let mut alice = Phone::new("alice");
    let place = alice.invite(&mut lab, "100", &offer());
    lab.answer(place);
    let answer = lab.sent();
    alice.ack(&mut lab, &answer, "");
    let (other, phone) = called(&mut lab, "told", "198.51.100.9:5062");
    lab.talk(place, other);
    let replaces =
        format!("Replaces: {};to-tag={};from-tag={}\r\n", alice.call_id, alice.remote_tag, alice.tag);
    let mut newcomer = Phone::new("trunk").call("newcomer");
    let identity = "P-Asserted-Identity: \"Carol\" <sip:300@h>\r\n";
    let text = newcomer.request("INVITE", "sip:100@strowger", &format!("{identity}{replaces}"), &offer());
    lab.receive(newcomer.flow, text);
    let messages: Vec<_> = std::iter::from_fn(|| lab.next().map(|(_, message)| message)).collect();
    let update = messages.iter().find(|message| line(message) == "UPDATE").expect("an UPDATE");
    assert_eq!(header(update, "P-Asserted-Identity"), "\"Carol\" <sip:300@192.0.2.1>");
    phone.respond(&mut lab, update, 200, "", "");
    assert_eq!(party(&lab, other).1, "\"Carol\" <300>");
    let own = party(&lab, other).0;
    assert_eq!(party(&lab, place), ("\"Carol\" <300>".to_owned(), own));
}

#[test]
fn a_caller_that_waits_is_shown_who_rings_with_the_next_response_or_at_once() {
    for (name, immediate, send, expected) in [
        ("with the next response", false, true, vec![("180", false), ("200", true)]),
        ("rpid_immediate", true, true, vec![("180", false), ("183", true), ("200", true)]),
        ("send_connected_line=no", true, false, vec![("180", false), ("200", true)]),
    ] {
        let mut config = site();
        change(&mut config, "alice", |alice| {
            (alice.send_pai, alice.send_connected_line, alice.rpid_immediate) = (true, send, immediate);
        });
        let mut lab = Lab::new(config);
        lab.storyless = true;
        let mut alice = Phone::new("alice");
        let id = alice.invite(&mut lab, "100", &offer());
        lab.indicate(id, Indication::Ringing);
        lab.indicate(id, Indication::ConnectedLine(PartyId::parse("\"Carol\" <300>")));
        lab.answer(id);
        let sent: Vec<_> = std::iter::from_fn(|| lab.next().map(|(_, message)| message)).collect();
        let sent: Vec<(String, bool)> = sent
            .iter()
            .map(|message| (line(message), header(message, "P-Asserted-Identity").contains("300")))
            .collect();
        let expected: Vec<(String, bool)> =
            expected.into_iter().map(|(line, told)| (line.to_owned(), told)).collect();
        assert_eq!(sent, expected, "{name}");
    }
}

#[test]
fn rfc5806_a_call_that_is_sent_on_is_told_to_its_caller_by_181_and_heard_from_a_peer() {
    // Told.
    let mut config = site();
    change(&mut config, "alice", |alice| alice.send_diversion = true);
    let mut lab = Lab::new(config);
    lab.storyless = true;
    let mut alice = Phone::new("alice");
    let id = alice.invite(&mut lab, "100", &offer());
    lab.indicate(id, Indication::Ringing);
    assert_eq!(line(&lab.sent()), "180");
    let sent_on = Redirecting {
        from: PartyId::parse("Bob <200>"),
        to: PartyId::parse("300"),
        reason: "cfb".to_owned(),
        count: 1,
        ..Redirecting::default()
    };
    let again = sent_on.clone();
    lab.shard.core.borrow_mut().get_mut(id).unwrap().redirecting = sent_on.clone();
    lab.indicate(id, Indication::Redirecting(Box::new(sent_on)));
    let told = lab.sent();
    assert_eq!(line(&told), "181");
    assert_eq!(header(&told, "Diversion"), "<sip:300@192.0.2.1>;reason=user-busy", "where it goes");
    assert_eq!(header(&told, "Supported"), "histinfo");
    lab.indicate(id, Indication::Ringing);
    assert!(lab.lines().is_empty(), "that it rings was said before");
    lab.indicate(id, Indication::Redirecting(Box::new(again)));
    assert!(lab.lines().is_empty(), "once for each forwarding");
    lab.answer(id);
    let answer = lab.sent();
    let kept = [header(&answer, "Supported"), header(&answer, "Diversion")];
    assert_eq!(kept, ["histinfo", "<sip:300@192.0.2.1>;reason=user-busy"], "what was said stays");
    // Heard.
    for (status, contact, heard) in [
        (181, "", vec!["Redirecting"]),
        (302, "Contact: <sip:300@strowger>\r\n", vec!["Forwarded", "Hangup"]),
    ] {
        let mut lab = Lab::new(site());
        lab.dial("trunk").unwrap();
        let invite = lab.sent();
        let trunk = Phone::new("trunk");
        let headers = format!("Diversion: <sip:200@h>;reason=user-busy\r\n{contact}");
        trunk.respond(&mut lab, &invite, status, &headers, "");
        let said = lab.heard();
        let words: Vec<&str> = said
            .iter()
            .filter_map(|line| line.split([' ', '(']).next())
            .filter(|word| *word != "Proceeding")
            .collect();
        assert_eq!(words, heard, "{status}: {said:?}");
        let first = said.first().cloned().unwrap_or_default();
        // A 181 names where the call goes, a 302 who sends it there.
        assert!(status == 302 || first.contains("\"200\"") && first.contains("cfb"), "{first}");
    }
}
