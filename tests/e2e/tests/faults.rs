//! A panic in a part of one call ends that call, says so, and costs no other call a packet.

use e2e::{Phone, Server, Site, Speak, wait};
use std::time::Duration;

const DIALPLAN: &str = "
[test]
exten => echo,1,Answer()
 same => n,Echo()
 same => n,Hangup()
";

/// Silence on a stream that flows, which no machine makes by itself, however busy it is.
const STALL: Duration = Duration::from_secs(5);

/// Puts a fault into one of three calls; what the log must say of it.
fn one_call_of_three_fails(part: &str, reason: &str) {
    let site = Site::new(&format!("fault-{part}")).environment("STROWGER_FAULT_INJECTION", "yes");
    let site = ["alice", "bob", "carol"].into_iter().fold(site, Site::phone).dialplan(DIALPLAN);
    let mut server = Server::start(site);
    let mut guilty = Phone::new(server.site.sip, "alice");
    let mut neighbours = ["bob", "carol"].map(|name| Phone::new(server.site.sip, name));
    for phone in [&mut guilty].into_iter().chain(&mut neighbours) {
        phone.media.speak(Speak::Tone(440.0));
        phone.must_call("echo");
    }
    for phone in &neighbours {
        wait::until_true("the echo has begun", || phone.media.heard().tone(440.0) >= 500);
        phone.media.forget();
    }

    let channel = server.json("core show channels")["channels"]
        .as_array()
        .and_then(|all| all.iter().filter_map(|row| row["name"].as_str()).find(|name| name.contains("alice")))
        .map(str::to_owned)
        .expect("the call has a channel");
    server.cli(&format!("fault inject {part} {channel}"));
    if part == "sip" {
        // A machine takes its next step when a message comes. What the machine made of this one nobody knows.
        guilty.poke("OPTIONS");
    }
    guilty.until_hung_up();
    wait::until_true("the call has gone", || server.channels() == 2);
    wait::until_true("the reason is in the log", || {
        let log = server.log();
        log.lines().any(|line| line.contains("ERROR") && line.contains(&channel) && line.contains(reason))
    });

    for phone in &neighbours {
        wait::until_true("the echo goes on", || phone.media.heard().tone(440.0) >= 3_000);
        let heard = phone.media.heard();
        assert_eq!(heard.lost(), 0, "{part}: {} lost packets", phone.name);
        assert!(heard.longest_gap() < STALL, "{part}: {} waited {:?}", phone.name, heard.longest_gap());
    }
    assert!(server.alive(), "the process has ended");
    // The part serves new calls as before.
    guilty.must_call("echo");
    wait::until_true("the echo is back", || guilty.media.heard().tone(440.0) >= 500);
    for phone in [&mut guilty].into_iter().chain(&mut neighbours) {
        phone.hang_up();
    }
    server.until_idle();
    wait::until_true("each call has its record", || server.records().len() == 4);
}

#[test]
fn a_panic_in_a_sip_machine_ends_its_call_and_no_neighbour_loses_a_packet() {
    one_call_of_three_fails("sip", "the SIP machine of this call panicked");
}

#[test]
fn a_panic_in_an_application_ends_its_call_and_no_neighbour_loses_a_packet() {
    one_call_of_three_fails("application", "application \"Echo\" panicked");
}

#[test]
fn a_panic_in_a_media_stream_ends_its_call_and_no_neighbour_loses_a_packet() {
    one_call_of_three_fails("media", "media stream ended: Panicked");
}

#[test]
fn a_panic_in_one_leg_of_a_bridge_ends_that_call_and_a_bridge_beside_it_loses_no_packet() {
    let site = Site::new("fault-bridge").environment("STROWGER_FAULT_INJECTION", "yes");
    let site = ["alice", "bob", "carol", "dave"].into_iter().fold(site, Site::phone);
    let dialplan = "[test]\nexten => _[bd]!,1,Dial(PJSIP/${EXTEN},20)\n same => n,Hangup()\n";
    let mut server = Server::start(site.dialplan(dialplan));
    let bridge = |caller: &str, callee: &str| {
        let [mut from, mut to] = [caller, callee].map(|name| Phone::new(server.site.sip, name));
        to.must_register();
        from.media.speak(Speak::Tone(440.0));
        to.media.speak(Speak::Tone(1000.0));
        from.begin(callee);
        let invite = to.ring();
        to.take(&invite);
        assert_eq!(from.outcome().status(), Some(200));
        wait::until_true("both hear the other", || {
            from.media.heard().tone(1000.0) >= 500 && to.media.heard().tone(440.0) >= 500
        });
        [from, to]
    };
    let (mut ill, mut well) = (bridge("alice", "bob"), bridge("carol", "dave"));
    well.iter().for_each(|phone| phone.media.forget());
    let channels = server.json("core show channels");
    let names = channels["channels"].as_array().into_iter().flatten().filter_map(|row| row["name"].as_str());
    let channel = names.into_iter().find(|name| name.contains("bob")).expect("a channel of the callee");
    server.cli(&format!("fault inject media {channel}"));
    ill.iter_mut().for_each(Phone::until_hung_up);
    wait::until_true("the call has gone", || server.channels() == 2);
    for (phone, hertz) in well.iter().zip([1000.0, 440.0]) {
        wait::until_true("the bridge beside it goes on", || phone.media.heard().tone(hertz) >= 3_000);
        let heard = phone.media.heard();
        assert_eq!(heard.lost(), 0, "{} lost packets", phone.name);
        assert!(heard.longest_gap() < STALL, "{} waited {:?}", phone.name, heard.longest_gap());
    }
    assert!(server.alive(), "the process has ended");
    well[0].hang_up();
    well[1].until_hung_up();
    server.until_idle();
}

#[test]
fn a_panic_in_a_mix_ends_one_members_call_and_the_others_go_on_talking() {
    let tones = [440.0, 750.0, 1250.0];
    let site = Site::new("fault-mixer").environment("STROWGER_FAULT_INJECTION", "yes");
    let site = ["alice", "bob", "carol"]
        .into_iter()
        .fold(site, Site::phone)
        .dialplan("[test]\nexten => room,1,ConfBridge(room)\n");
    let mut server = Server::start(site);
    let mut phones = ["alice", "bob", "carol"].map(|name| Phone::new(server.site.sip, name));
    for (phone, tone) in phones.iter_mut().zip(tones) {
        phone.media.speak(Speak::Tone(tone));
        phone.must_call("room");
        // Who is first is told so before it comes in.
        if phone.name == "bob" {
            wait::until_true("bob hears the first", || phone.media.heard().tone(tones[0]) >= 1000);
        }
    }
    wait::until_true("carol hears the others", || phones[2].media.heard().sounding() >= 1000);
    let channel = server.json("core show channels")["channels"]
        .as_array()
        .and_then(|all| all.iter().filter_map(|row| row["name"].as_str()).find(|name| name.contains("alice")))
        .map(str::to_owned)
        .expect("the call has a channel");
    server.cli(&format!("fault inject mixer {channel}"));
    let [alice, bob, carol] = &mut phones;
    alice.until_hung_up();
    wait::until_true("the call has gone", || server.channels() == 2);
    for (phone, other) in [(&*bob, tones[2]), (&*carol, tones[1])] {
        phone.media.forget();
        wait::until_true("the others go on", || phone.media.heard().tone(other) >= 2000);
        assert_eq!(phone.media.heard().tone(tones[0]), 0, "{}", phone.name);
    }
    assert!(server.alive(), "the process has ended");
    bob.hang_up();
    carol.hang_up();
    server.until_idle();
}

#[test]
fn faults_cannot_be_injected_into_a_process_that_was_not_started_for_it() {
    let mut server = Server::start(Site::new("fault-none").phone("alice").dialplan(DIALPLAN));
    let mut alice = Phone::new(server.site.sip, "alice");
    alice.must_call("echo");
    for part in ["sip", "application", "media", "mixer"] {
        let output = server.run(&format!("fault inject {part} PJSIP/alice-00000000"));
        assert_ne!(output.status.code(), Some(0), "{part}");
        let said = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
        assert!(said.contains("No such command"), "{part}: {said}");
    }
    alice.hang_up();
    server.assert_healthy();
}
