//! Flows that phones keep open (RFC 5626), and responses that have to find another way (RFC 3263 §5).

use core::time::Duration;

use ::sip::stack::{Flow, TransportId};
use base::Cause;

use crate::lab::{Lab, address, change, change_aor, header, line, site, tcp, udp};
use crate::phone::{Phone, sdp};

const INSTANCE: &str = "+sip.instance=\"<urn:uuid:00000000-0000-1000-8000-AABBCCDDEEFF>\"";

/// A Contact by a flow of the phone.
fn contact(reg_id: u32, uri: &str) -> String {
    format!("Contact: <{uri}>;reg-id={reg_id};{INSTANCE}\r\nSupported: path, outbound\r\n")
}
fn flows(lab: &Lab) -> Vec<Option<u32>> {
    lab.sip.borrow().bindings().map(|(_, binding)| binding.reg_id).collect()
}

#[test]
fn rfc5626_6_the_answer_to_a_registration_says_what_becomes_of_its_flow() {
    let plain = "Contact: <sip:alice@10.0.0.1;transport=tcp>\r\n".to_owned();
    let flow = contact(1, "sip:alice@10.0.0.1;transport=tcp");
    let silent = flow.replace("Supported: path, outbound\r\n", "");
    let via = "Via: SIP/2.0/TCP 10.0.0.1;branch=z9hG4bKphone\r\n";
    let (tcp, udp) = (tcp("203.0.113.9:41000", 7), udp("203.0.113.9:41000"));
    let knows = "Path: <sip:core.example;lr>, <sip:token@edge.example;lr;ob>\r\n";
    let does_not = "Path: <sip:core.example;lr;ob>, <sip:edge.example;lr>\r\n";
    for (name, by, headers, status, require, timer) in [
        ("by a connection", tcp, flow.clone(), "200", "outbound", "120"),
        ("by datagrams", udp, flow.clone(), "200", "outbound", ""),
        ("as ever", tcp, plain, "200", "", ""),
        ("by a proxy that keeps the flow", tcp, format!("{via}{flow}{knows}"), "200", "outbound", ""),
        ("by one that does not", tcp, format!("{via}{flow}{does_not}"), "439", "", ""),
        ("by one that says nothing", tcp, format!("{via}{flow}"), "439", "", ""),
        ("a phone that names a flow and means nothing by it", tcp, silent.clone(), "200", "", ""),
        ("that one by a proxy", tcp, format!("{via}{silent}"), "200", "", ""),
        ("taken back", tcp, format!("{flow}Expires: 0\r\n"), "200", "", ""),
    ] {
        let mut config = site();
        change_aor(&mut config, "alice", |aor| aor.support_path = true);
        let mut lab = Lab::new(config);
        let answer = Phone::at("alice", by).register(&mut lab, &headers);
        assert_eq!(line(&answer), status, "{name}");
        assert_eq!(header(&answer, "Require"), require, "{name}");
        assert_eq!(header(&answer, "Flow-Timer"), timer, "{name}");
        let patience = (!timer.is_empty()).then(|| Duration::from_secs(130));
        assert_eq!(lab.with(|sip, _| sip.patience(by)), patience, "{name}");
        assert_eq!(flows(&lab).len(), usize::from(status == "200" && name != "taken back"), "{name}");
        lab.with(|sip, core| sip.transport_error(core, by));
        assert_eq!(lab.with(|sip, _| sip.patience(by)), None, "{name}: forgotten with its connection");
    }
}

#[test]
fn rfc3327_5_3_a_path_that_is_required_and_not_kept_refuses_the_registration() {
    for (keeps, status) in [(true, "200"), (false, "420")] {
        let mut config = site();
        change_aor(&mut config, "alice", |aor| aor.support_path = keeps);
        let mut lab = Lab::new(config);
        let answer =
            Phone::new("alice").register(&mut lab, "Require: path\r\nPath: <sip:203.0.113.4;lr>\r\n");
        assert_eq!(line(&answer), status);
        assert_eq!(header(&answer, "Unsupported"), if keeps { "" } else { "path" });
    }
}

#[test]
fn rfc5626_5_3_a_phone_that_keeps_its_flow_open_is_called_by_it_and_by_nothing_else() {
    let uri = "sip:alice@10.0.0.1:5060;ob";
    for (name, headers, expected) in [
        ("by its flow", contact(1, uri), "203.0.113.9:41000"),
        ("as its Contact says", format!("Contact: <{uri}>\r\n"), "10.0.0.1:5060"),
    ] {
        for resource in ["alice", "alice/sip:alice@10.0.0.1:5060;ob", "4711@alice"] {
            let mut config = site();
            change(&mut config, "alice", |alice| alice.rewrite_contact = false);
            let mut lab = Lab::new(config);
            Phone::at("alice", udp("203.0.113.9:41000")).register(&mut lab, &headers);
            lab.dial(resource).unwrap();
            let (flow, invite) = lab.next().unwrap();
            assert_eq!(flow.remote, address(expected), "{name}: {resource}");
            let user = if resource.starts_with("4711") { "4711" } else { "alice" };
            let target = String::from_utf8_lossy(invite.view().request_uri_bytes()).into_owned();
            assert_eq!(target, format!("sip:{user}@10.0.0.1:5060;ob"), "{name}: {resource}");
        }
    }
}

#[test]
fn a_registered_contact_that_is_dialled_by_its_uri_is_reached_over_its_connection() {
    let mut lab = Lab::new(site());
    let flow = tcp("203.0.113.9:41000", 7);
    Phone::at("alice", flow).register(&mut lab, "Contact: <sip:alice@10.0.0.1:5060;transport=tcp>\r\n");
    let id = lab.dial("trunk").unwrap();
    lab.lines();
    let all = lab.read(id, "PJSIP_DIAL_CONTACTS", "alice").unwrap();
    assert_eq!(all, "PJSIP/alice/sip:alice@10.0.0.1:5060;transport=tcp");
    lab.dial(all.trim_start_matches("PJSIP/")).unwrap();
    assert_eq!(lab.next().unwrap().0, flow);
    // Called as somebody else, it is that contact still, whatever the name would be in a dial string.
    for (user, written) in [("600", "600"), ("6&7", "6%267")] {
        let all = lab.read(id, "PJSIP_DIAL_CONTACTS", &format!("alice,,{user}")).unwrap();
        assert_eq!(all, format!("PJSIP/{written}@alice/sip:alice@10.0.0.1:5060;transport=tcp"));
        lab.dial(all.trim_start_matches("PJSIP/")).unwrap();
        let (to, invite) = lab.next().unwrap();
        assert_eq!(
            (to, invite.view().request_uri().unwrap().user_decoded().as_ref()),
            (flow, user.as_bytes())
        );
    }
    // Another AOR than the endpoint's own may be named.
    let named = lab.read(id, "PJSIP_DIAL_CONTACTS", "trunk,alice").unwrap();
    assert_eq!(named, "PJSIP/trunk/sip:alice@10.0.0.1:5060;transport=tcp");
    assert_eq!(lab.read(id, "PJSIP_DIAL_CONTACTS", "trunk,nobody").unwrap(), "");
}

/// A site with a second bind for datagrams, on a port of its own.
fn two_binds() -> driver::sip::Config {
    let mut config = site();
    let mut second = config.binds[0].clone();
    (second.name, second.id, second.local) = ("second".to_owned(), TransportId(2), address("0.0.0.0:5070"));
    config.binds.push(second);
    config
}

#[test]
fn a_phone_is_called_by_the_bind_that_it_has_registered_by() {
    let on = |bind: u16| Flow { transport: TransportId(bind), ..udp("203.0.113.9:41000") };
    for (name, bind, rewrites, named, expected, contact) in [
        ("by the first", 0, true, "", 0, "192.0.2.1:5060"),
        ("by the second", 2, true, "", 2, "192.0.2.1:5070"),
        ("by the first, as its Contact says", 0, false, "", 0, "192.0.2.1:5060"),
        ("by the second, as its Contact says", 2, false, "", 2, "192.0.2.1:5070"),
        ("by the second, where the endpoint names the first", 2, false, "udp", 0, "192.0.2.1:5060"),
        ("by the first, where the endpoint names the second", 0, false, "second", 2, "192.0.2.1:5070"),
    ] {
        let mut config = two_binds();
        change(&mut config, "alice", |alice| {
            (alice.rewrite_contact, alice.transport) = (rewrites, named.to_owned());
        });
        let mut lab = Lab::new(config);
        Phone::at("alice", on(bind)).register(&mut lab, "Contact: <sip:alice@203.0.113.9:41000>\r\n");
        lab.dial("alice").unwrap();
        let (flow, invite) = lab.next().unwrap();
        assert_eq!(
            (flow.transport, flow.remote),
            (TransportId(expected), address("203.0.113.9:41000")),
            "{name}"
        );
        assert!(header(&invite, "Contact").contains(contact), "{name}: {}", header(&invite, "Contact"));
        assert!(header(&invite, "Via").contains(contact), "{name}: {}", header(&invite, "Via"));
    }
}

#[test]
fn rfc3261_12_2_1_1_a_call_that_came_by_a_bind_is_ended_by_it() {
    for (bind, named) in [(0, ""), (2, ""), (2, "udp")] {
        let mut config = two_binds();
        change(&mut config, "alice", |alice| alice.transport = named.to_owned());
        let mut lab = Lab::new(config);
        let mut alice = Phone::at("alice", Flow { transport: TransportId(bind), ..udp("203.0.113.9:41000") });
        let id = alice.invite(&mut lab, "100", &sdp("203.0.113.9", 4000, "0 101"));
        lab.answer(id);
        let (flow, answer) = lab.next().unwrap();
        assert_eq!((flow.transport, &*line(&answer)), (TransportId(bind), "200"), "{named}");
        alice.ack(&mut lab, &answer, "");
        lab.finish(id, Cause::NORMAL_CLEARING);
        let (flow, bye) = lab.next().unwrap();
        assert_eq!((flow.transport, &*line(&bye)), (TransportId(bind), "BYE"), "{named}");
    }
}

/// A site where alice has registered by two proxies, each of which keeps a flow to the same phone.
fn two_flows(qualify_frequency: u32) -> Lab {
    let mut config = site();
    change_aor(&mut config, "alice", |aor| {
        (aor.support_path, aor.qualify_frequency) = (true, qualify_frequency);
    });
    let mut lab = Lab::new(config);
    for (reg_id, proxy) in [(1, "203.0.113.1"), (2, "203.0.113.2")] {
        let mut alice = Phone::at("alice", udp(&format!("{proxy}:5060")));
        let headers = contact(reg_id, "sip:alice@10.0.0.1:5060");
        let path = format!(
            "Via: SIP/2.0/UDP 10.0.0.1;branch=z9hG4bKphone{reg_id}\r\nPath: <sip:flow-{reg_id}@{proxy};lr;ob>\r\n"
        );
        // Whoever is asked, is so at once: the question of the first registration is nobody's here.
        lab.lines();
        assert_eq!(line(&alice.register(&mut lab, &format!("{path}{headers}"))), "200");
    }
    lab
}

#[test]
fn rfc5626_7_a_call_goes_on_by_another_flow_of_the_phone_when_one_is_lost() {
    let proxy = |flow: Flow| Phone::at("alice", flow);
    for (name, status, left) in [("430", 430, vec![Some(1)]), ("silence", 0, vec![Some(1), Some(2)])] {
        let mut lab = two_flows(0);
        assert_eq!(flows(&lab), [Some(1), Some(2)], "{name}");
        let id = lab.dial("alice").unwrap();
        let (flow, invite) = lab.next().unwrap();
        assert_eq!(header(&invite, "Route"), "<sip:flow-2@203.0.113.2;lr;ob>", "{name}: the newest");
        match status {
            0 => lab.pass(Duration::from_secs(33)),
            status => proxy(flow).respond(&mut lab, &invite, status, "", ""),
        }
        let again = core::iter::from_fn(|| lab.next())
            .find(|(way, message)| line(message) == "INVITE" && way.remote == address("203.0.113.1:5060"));
        let (flow, invite) = again.expect(name);
        assert_eq!(header(&invite, "Route"), "<sip:flow-1@203.0.113.1;lr;ob>", "{name}");
        assert_eq!(flows(&lab), left, "{name}: what is lost is not bound any more");
        assert_eq!(lab.read(id, "PJSIP_DIAL_CONTACTS", "alice").unwrap().split('&').count(), 1, "{name}");
        // The last one's word counts.
        proxy(flow).respond(&mut lab, &invite, 486, "", "");
        assert!(lab.heard().iter().any(|heard| heard == "Hangup 17"), "{name}");
    }
}

#[test]
fn rfc5626_7_a_call_that_failed_for_its_own_sake_does_not_try_another_flow() {
    for status in [486, 404, 503, 603] {
        let mut lab = two_flows(0);
        lab.dial("alice").unwrap();
        let (flow, invite) = lab.next().unwrap();
        Phone::at("alice", flow).respond(&mut lab, &invite, status, "", "");
        assert!(!lab.lines().contains(&"INVITE".to_owned()), "{status}");
        assert_eq!(flows(&lab), [Some(1), Some(2)], "{status}");
    }
}

#[test]
fn rfc5626_a_flow_that_a_question_finds_lost_is_forgotten() {
    let mut lab = two_flows(60);
    lab.pass(Duration::from_secs(2));
    let asked = core::iter::from_fn(|| lab.next()).find(|(_, message)| line(message) == "OPTIONS");
    let (flow, question) = asked.expect("a question");
    Phone::at("alice", flow).respond(&mut lab, &question, 430, "", "");
    assert!(flows(&lab).len() < 2);
}

#[test]
fn rfc5626_one_connection_that_closes_takes_its_flow_and_no_other() {
    let mut lab = Lab::new(site());
    let both = [tcp("203.0.113.9:41000", 7), tcp("203.0.113.9:41001", 8)];
    let mut alice = Phone::at("alice", both[0]);
    for (reg_id, flow) in [1, 2].into_iter().zip(both) {
        alice.flow = flow;
        // Another second, another nonce.
        lab.pass(Duration::from_secs(1));
        let headers = contact(reg_id, "sip:alice@10.0.0.1:5060;transport=tcp");
        assert_eq!(line(&alice.register(&mut lab, &headers)), "200");
    }
    lab.with(|sip, core| sip.transport_error(core, both[1]));
    assert_eq!(flows(&lab), [Some(1)]);
    lab.dial("alice").unwrap();
    assert_eq!(lab.next().unwrap().0, both[0]);
}

/// A caller whose connection has closed before we answer, and who says in its Via to be `host`.
fn cut_off(host: &str) -> (Lab, Flow) {
    let mut config = site();
    change(&mut config, "alice", |alice| alice.auths.clear());
    let mut lab = Lab::new(config);
    let flow = tcp("203.0.113.9:41000", 7);
    let invite =
        Phone::at("alice", flow).request("INVITE", "sip:100@strowger", "", &sdp("203.0.113.9", 4000, "0"));
    lab.receive(flow, invite.replace("TCP 203.0.113.9:41000", &format!("TCP {host}")));
    let id = lab.started.pop_front().expect("a call");
    lab.lines();
    lab.with(|sip, core| sip.transport_error(core, flow));
    lab.answer(id);
    let (way, answer) = lab.next().unwrap();
    assert_eq!(
        (way.remote, way.connection, line(&answer)),
        (address("203.0.113.9:5060"), None, "200".to_owned())
    );
    (lab, way)
}

#[test]
fn rfc3263_5_a_response_without_a_way_goes_where_the_dns_finds_its_via() {
    let (mut lab, failed) = cut_off("phone.example");
    lab.lookups();
    lab.with(|sip, core| sip.transport_error(core, failed));
    // A 2xx is the dialog's to repeat; a provisional response or another request is the transaction's.
    assert_eq!(lab.lookups(), [""; 0]);

    let mut config = site();
    change(&mut config, "alice", |alice| alice.auths.clear());
    let mut lab = Lab::new(config);
    let flow = tcp("203.0.113.9:41000", 7);
    let invite =
        Phone::at("alice", flow).request("INVITE", "sip:100@strowger", "", &sdp("203.0.113.9", 4000, "0"));
    lab.receive(flow, invite.replace("TCP 203.0.113.9:41000", "TCP phone.example"));
    let id = lab.started.pop_front().expect("a call");
    lab.lines();
    lab.with(|sip, core| sip.transport_error(core, flow));
    lab.indicate(id, call::Indication::Ringing);
    let (way, ringing) = lab.next().unwrap();
    assert_eq!((way.remote, line(&ringing)), (address("203.0.113.9:5060"), "180".to_owned()));
    lab.with(|sip, core| sip.transport_error(core, way));
    let asked = lab.lookups();
    assert!(asked.contains(&"SRV _sip._tcp.phone.example".to_owned()), "{asked:?}");
    assert!(!asked.iter().any(|asked| asked.starts_with("NAPTR")), "the transport is known: {asked:?}");
    lab.serves("_sip._tcp.phone.example", &[(1, 1, 5070, "away.example")]);
    lab.resolved("away.example", &["203.0.113.77".parse().unwrap()]);
    let (way, again) = lab.next().expect("the response");
    assert_eq!((way.remote, line(&again)), (address("203.0.113.77:5070"), "180".to_owned()));
    lab.answer(id);
    assert_eq!(lab.next().unwrap().0.remote, address("203.0.113.77:5070"));
}
