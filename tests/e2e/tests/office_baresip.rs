//! Each part of an office once with baresip as its phones; who hears whom is told by tones.

use std::path::Path;

use e2e::{Baresip, Phone, Server, Site, installed, wait};

/// What each says, in the order in which they are asked for.
const ALICE: f64 = 440.0;
const BOB: f64 = 750.0;
const CAROL: f64 = 1250.0;
const VOICES: [f64; 3] = [ALICE, BOB, CAROL];
/// Music, and any prompt.
const MUSIC: f64 = 600.0;
const PROMPT: f64 = 1000.0;

const DIALPLAN: &str = "
[test]
include => parkedcalls
exten => _[a-d].,1,Dial(PJSIP/${EXTEN},20)
exten => 300,1,Answer()
 same => n,Queue(sales)
exten => 310,1,Answer()
 same => n,Queue(pool)
exten => 320,1,FollowMe(ann,nd)
exten => 700,1,Park()
exten => 710,1,ConfBridge(board,,quiet)
exten => 720,1,Pickup(dave@test)
exten => 730,1,ChanSpy(PJSIP/alice,qdE)
exten => 740,1,VoiceMail(6001@default,s)
exten => 741,1,VoiceMailMain(6001@default,s)
exten => 750,1,AgentLogin(1001,s)
[agents]
exten => _1XXX,1,AgentRequest(${EXTEN})
[numbers]
exten => 1,1,Dial(PJSIP/bob)
";

/// A site with these phones; `None` without baresip.
fn office(name: &str) -> Option<Server> {
    if !installed(&["baresip"]) {
        return None;
    }
    let phones = ["alice", "bob", "carol", "dave"].into_iter().fold(Site::new(name), Site::phone);
    let site = phones
        .music(MUSIC, 5.0)
        .dialplan(DIALPLAN)
        .add("queues.conf", "[sales]\nringinuse=no\n[pool]\nmember => Local/1001@agents,0,Bob,Agent:1001\n")
        .add("agents.conf", "[1001]\n")
        .add("confbridge.conf", "[quiet]\ntype=user\nquiet=yes\n")
        .add("voicemail.conf", "[general]\nformat=wav\nminsecs=1\n[default]\n6001 => 1234,Alice\n")
        .add("followme.conf", "[ann]\ncontext=numbers\nnumber => 1,15\n")
        .add("res_parking.conf", "[default]\nparkext=709\nparkpos=701-708\nparkingtime=600\n");
    let prompts = ["beep", "followme/no-recording", "followme/options", "vm-opts", "vm-onefor"];
    Some(Server::start(prompts.into_iter().fold(site, |site, name| site.prompt(name, PROMPT, 0.7))))
}

fn uri(server: &Server, number: &str) -> String {
    format!("sip:{number}@{}", server.site.sip)
}

fn phones<const N: usize>(server: &Server, names: [&str; N]) -> [Baresip; N] {
    let tone = |name: &str| match name {
        "alice" => ALICE,
        "bob" => BOB,
        _ => CAROL,
    };
    names.map(|name| Baresip::start(server.site.sip, name, "pcmu", tone(name)))
}

/// Both hear each other, and nobody else.
fn talk(server: &Server, (one, other): ((&Baresip, f64), (&Baresip, f64))) {
    one.0.until_hears(&[other.1], &VOICES);
    other.0.until_hears(&[one.1], &VOICES);
    assert!(server.channels() >= 2);
}

#[test]
fn a_caller_waits_with_music_until_a_member_of_the_queue_takes_it() {
    let Some(server) = office("office-queue") else { return };
    let [mut alice, bob] = phones(&server, ["alice", "bob"]);
    alice.dial(&uri(&server, "300"));
    alice.until_heard(MUSIC);
    server.run("queue add member PJSIP/bob to sales");
    talk(&server, ((&alice, ALICE), (&bob, BOB)));
    alice.hang_up();
    server.until_idle();
}

#[test]
fn three_in_a_conference_hear_the_two_others() {
    let Some(server) = office("office-conference") else { return };
    let mut three = phones(&server, ["alice", "bob", "carol"]);
    for phone in &mut three {
        phone.dial(&uri(&server, "710"));
    }
    for (phone, expected) in three.iter().zip([[BOB, CAROL], [ALICE, CAROL], [ALICE, BOB]]) {
        phone.until_hears(&expected, &VOICES);
    }
    let [alice, bob, carol] = &mut three;
    carol.hang_up();
    talk(&server, ((alice, ALICE), (bob, BOB)));
}

/// Bytes of the files below a folder.
fn bytes(folder: &Path) -> u64 {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let of = |entry: std::fs::DirEntry| match entry.metadata() {
        Ok(facts) if facts.is_dir() => bytes(&entry.path()),
        facts => facts.map_or(0, |facts| facts.len()),
    };
    entries.map(of).sum()
}

#[test]
fn what_is_said_into_a_mailbox_is_heard_from_it() {
    let Some(server) = office("office-voicemail") else { return };
    let [mut alice, mut bob] = phones(&server, ["alice", "bob"]);
    alice.dial(&uri(&server, "740"));
    alice.until_heard(PROMPT);
    let spool = server.site.place.join("spool/voicemail/default/6001");
    wait::until_true("two seconds are kept", || bytes(&spool) > 32_000);
    alice.hang_up();
    wait::until_true("the message is there", || spool.join("INBOX/msg0000.txt").exists());
    bob.dial(&uri(&server, "741"));
    bob.until_heard(PROMPT);
    bob.type_digits("1");
    bob.until_heard(ALICE);
}

#[test]
fn a_call_is_parked_by_refer_and_fetched_by_its_space() {
    let Some(server) = office("office-parking") else { return };
    let [mut alice, mut bob, mut carol] = phones(&server, ["alice", "bob", "carol"]);
    alice.dial(&uri(&server, "bob"));
    talk(&server, ((&alice, ALICE), (&bob, BOB)));
    bob.transfer(&uri(&server, "709"));
    alice.until_heard(MUSIC);
    carol.dial(&uri(&server, "701"));
    talk(&server, ((&alice, ALICE), (&carol, CAROL)));
}

#[test]
fn a_call_is_sent_on_by_refer() {
    let Some(server) = office("office-refer") else { return };
    let [mut alice, mut bob, carol] = phones(&server, ["alice", "bob", "carol"]);
    alice.dial(&uri(&server, "bob"));
    talk(&server, ((&alice, ALICE), (&bob, BOB)));
    bob.transfer(&uri(&server, "carol"));
    talk(&server, ((&alice, ALICE), (&carol, CAROL)));
    wait::until_true("whoever sent it on is out", || server.channels() == 2);
    alice.hang_up();
    server.until_idle();
}

#[test]
fn a_call_that_rings_elsewhere_is_picked_up() {
    let Some(server) = office("office-pickup") else { return };
    let [mut alice, mut bob] = phones(&server, ["alice", "bob"]);
    let mut dave = Phone::new(server.site.sip, "dave");
    dave.must_register();
    alice.dial(&uri(&server, "dave"));
    let invite = dave.ring();
    bob.dial(&uri(&server, "720"));
    let cancel = dave.expect("CANCEL");
    dave.respond(&cancel, 200, "OK", false);
    dave.refuse(&invite, 487, "Request Terminated");
    talk(&server, ((&alice, ALICE), (&bob, BOB)));
}

#[test]
fn a_supervisor_listens_whispers_and_barges_in() {
    let Some(server) = office("office-spy") else { return };
    let [mut alice, bob, mut carol] = phones(&server, ["alice", "bob", "carol"]);
    alice.dial(&uri(&server, "bob"));
    talk(&server, ((&alice, ALICE), (&bob, BOB)));
    carol.dial(&uri(&server, "730"));
    for (key, of_alice, of_bob) in [
        ("", vec![BOB], vec![ALICE]),
        ("5", vec![BOB, CAROL], vec![ALICE]),
        ("6", vec![BOB, CAROL], vec![ALICE, CAROL]),
    ] {
        carol.type_digits(key);
        alice.until_hears(&of_alice, &VOICES);
        bob.until_hears(&of_bob, &VOICES);
        carol.until_hears(&[ALICE, BOB], &VOICES);
    }
}

#[test]
fn an_agent_who_is_logged_in_is_given_a_caller() {
    let Some(server) = office("office-agents") else { return };
    let [mut alice, mut bob] = phones(&server, ["alice", "bob"]);
    bob.dial(&uri(&server, "750"));
    bob.until_heard(MUSIC);
    alice.dial(&uri(&server, "310"));
    talk(&server, ((&alice, ALICE), (&bob, BOB)));
    alice.hang_up();
    bob.until_hears(&[MUSIC], &[ALICE, MUSIC]);
}

#[test]
fn who_is_followed_takes_the_call_by_a_key() {
    let Some(server) = office("office-followme") else { return };
    let [mut alice, mut bob] = phones(&server, ["alice", "bob"]);
    alice.dial(&uri(&server, "320"));
    bob.until_heard(PROMPT);
    bob.type_digits("1");
    talk(&server, ((&alice, ALICE), (&bob, BOB)));
}
