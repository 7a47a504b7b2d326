//! Calls with SIPp as caller and callee (RFC 3261 §§9, 13, 15; RFC 3264 §8.4).

use e2e::{Phone, Server, Sipp, Site, address, installed};
use std::net::{IpAddr, SocketAddr};

const DIALPLAN: &str = "
[test]
exten => 100,1,Answer()
 same => n,Wait(30)
exten => 101,1,Answer()
 same => n,Hangup()
exten => 102,1,Hangup(21)
exten => 103,1,Busy(1)
exten => 104,1,Congestion(1)
exten => 110,1,Progress()
 same => n,Playback(tone,noanswer)
 same => n,Answer()
 same => n,Wait(30)
exten => 120,1,Ringing()
 same => n,Wait(30)
exten => _2XX,1,Dial(PJSIP/phone${EXTEN},60)
 same => n,Set(DB(dial/${EXTEN})=${DIALSTATUS}/${HANGUPCAUSE})
 same => n,Hangup()
exten => 300,1,Dial(PJSIP/phone201&PJSIP/phone202,60)
 same => n,Hangup()
exten => 301,1,Dial(PJSIP/phone203,1)
 same => n,Set(DB(dial/301)=${DIALSTATUS})
 same => n,Hangup(19)
";

struct Scene {
    server: Server,
    callees: Vec<IpAddr>,
}

/// A server with a phone that registers, and phones at fixed addresses.
fn scene(name: &str) -> Option<Scene> {
    if !installed(&["sipp"]) {
        return None;
    }
    let mut site = Site::new(name).phone("alice").prompt("tone", 1000.0, 1.0).dialplan(DIALPLAN);
    let mut callees = Vec::new();
    for number in 201..204 {
        let ip = address();
        site = site.trunk(&format!("phone{number}"), SocketAddr::new(ip, 5060));
        callees.push(ip);
    }
    Some(Scene { server: Server::start(site), callees })
}

impl Scene {
    fn caller(&self, scenario: &str, number: &str) -> Sipp {
        Sipp::new(scenario, self.server.site.sip).dials(number).with("TALK", "300")
    }
    fn callee(&self, scenario: &str, number: usize) -> Sipp {
        Sipp::new(scenario, self.server.site.sip).at(self.callees[number - 201], 5060)
    }
}

#[test]
fn an_authenticated_call_is_answered_and_ended_by_either_side_over_udp_and_tcp() {
    let Some(scene) = scene("answer") else { return };
    scene.caller("call.xml", "100").run();
    scene.caller("call_is_ended.xml", "101").run();
    scene.caller("call.xml", "100").over_tcp().run();
    scene.caller("call_is_ended.xml", "101").over_tcp().run();
    scene.server.until_idle();
}

#[test]
fn refusals_have_the_status_their_cause_maps_to() {
    let Some(scene) = scene("refuse") else { return };
    for (number, status) in [("999", "404"), ("102", "403"), ("103", "486"), ("104", "503")] {
        scene.caller("call_refused.xml", number).with("STATUS", status).run();
    }
    scene.caller("call_refused.xml", "100").secret("wrong").with("STATUS", "401").run();
    scene.server.until_idle();
}

#[test]
fn early_media_is_described_in_a_183_before_the_answer() {
    let Some(scene) = scene("early") else { return };
    scene.caller("early_media.xml", "110").run();
}

#[test]
fn a_call_is_held_and_resumed_by_reinvite() {
    let Some(scene) = scene("hold") else { return };
    scene.caller("hold.xml", "100").run();
    scene.caller("hold.xml", "100").over_tcp().run();
    scene.server.until_idle();
}

#[test]
fn a_caller_cancels_while_it_rings() {
    let Some(scene) = scene("cancel") else { return };
    scene.caller("cancel.xml", "120").run();
    let callee = scene.callee("callee_rings.xml", 203).start();
    scene.caller("cancel.xml", "203").run();
    callee.finish();
    scene.server.until_idle();
}

#[test]
fn a_cancel_that_crosses_the_answer_leaves_no_call_behind() {
    let Some(scene) = scene("race") else { return };
    let (mut answered, mut cancelled) = (0, 0);
    // The callee answers at once and the caller cancels at once: both outcomes are right, a call left behind is not.
    for round in 0..20 {
        let mut alice = Phone::new(scene.server.site.sip, "alice");
        alice.begin(if round % 2 == 0 { "100" } else { "101" });
        assert!(matches!(alice.cancel().status(), Some(200 | 481)));
        match alice.outcome().status() {
            Some(200) if round % 2 == 0 => {
                alice.hang_up();
                answered += 1;
            }
            Some(200) => {
                alice.until_hung_up();
                answered += 1;
            }
            Some(487) => cancelled += 1,
            other => panic!("round {round}: {other:?}"),
        }
    }
    assert_eq!(answered + cancelled, 20);
    scene.server.until_idle();
}

#[test]
fn dial_connects_two_phones_and_either_ends_the_call() {
    let Some(scene) = scene("dial") else { return };
    let callee = scene.callee("callee_answers.xml", 201).start();
    scene.caller("call.xml", "201").run();
    callee.finish();
    let callee = scene.callee("callee_ends.xml", 201).start();
    scene.caller("call_is_ended.xml", "201").run();
    callee.finish();
    scene.server.until_idle();
}

#[test]
fn a_fork_is_won_by_one_phone_and_cancelled_at_the_other() {
    let Some(scene) = scene("fork") else { return };
    let winner = scene.callee("callee_answers.xml", 202).start();
    let loser = scene.callee("callee_rings.xml", 201).start();
    scene.caller("call.xml", "300").run();
    winner.finish();
    loser.finish();
    scene.server.until_idle();
}

#[test]
fn a_fork_to_two_contacts_of_one_phone_is_won_by_one_of_them() {
    let site = Site::new("contacts")
        .phone("alice")
        .phone("bob")
        .dialplan("[test]\nexten => bob,1,Dial(${PJSIP_DIAL_CONTACTS(bob)},10)\n");
    let server = Server::start(site);
    let mut phones = [Phone::new(server.site.sip, "bob"), Phone::new(server.site.sip, "bob")];
    phones.iter_mut().for_each(Phone::must_register);
    let mut alice = Phone::new(server.site.sip, "alice");
    alice.begin("bob");
    let [first, second] = &mut phones;
    let lost = first.ring();
    let won = second.ring();
    second.take(&won);
    let cancel = first.expect("CANCEL");
    first.respond(&cancel, 200, "OK", false);
    first.refuse(&lost, 487, "Request Terminated");
    assert_eq!(alice.outcome().status(), Some(200));
    alice.hang_up();
    second.until_hung_up();
    server.until_idle();
}

#[test]
fn what_became_of_a_dial_is_in_dialstatus_and_in_the_callers_response() {
    let Some(scene) = scene("status") else { return };
    for (status, given, told, result) in [
        ("486 Busy Here", 201, "486", "BUSY/17"),
        ("603 Decline", 202, "403", "CHANUNAVAIL/21"),
        ("404 Not Found", 203, "404", "CHANUNAVAIL/1"),
    ] {
        let callee = scene.callee("callee_refuses.xml", given).with("STATUS", status).start();
        let number = given.to_string();
        let call = scene.caller("call_refused.xml", &number).with("STATUS", told).start();
        callee.finish();
        call.finish();
        assert_eq!(scene.server.database("dial", &number), result, "{status}");
    }
    let callee = scene.callee("callee_rings.xml", 203).start();
    scene.caller("call_refused.xml", "301").with("STATUS", "480").run();
    callee.finish();
    assert_eq!(scene.server.database("dial", "301"), "NOANSWER");
    scene.server.until_idle();
}

#[test]
fn a_phone_that_is_nowhere_is_chanunavail() {
    let site = Site::new("nowhere").phone("alice").phone("bob").dialplan(
        "[test]\nexten => bob,1,Dial(PJSIP/bob,5)\n same => n,Set(DB(dial/bob)=${DIALSTATUS})\n same => n,Hangup()\n",
    );
    let server = Server::start(site);
    let refused = Phone::new(server.site.sip, "alice").call("bob");
    assert!(matches!(refused.status(), Some(400..700)), "{}", refused.text());
    assert_eq!(server.database("dial", "bob"), "CHANUNAVAIL");
}
