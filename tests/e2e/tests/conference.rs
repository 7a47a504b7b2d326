//! Conferences: three phones, told apart by their tones; who hears whom.

use std::path::Path;

use e2e::{Phone, Server, Site, Speak, tone, wait};

/// What each phone says.
const TONES: [f64; 3] = [440.0, 750.0, 1250.0];
const NAMES: [&str; 3] = ["alice", "bob", "carol"];

const DIALPLAN: &str = "
[test]
exten => room,1,ConfBridge(room)
 same => n,Set(DB(conference/${CALLERID(num)})=${CONFBRIDGE_RESULT})
 same => n,Wait(30)
exten => quick,1,ConfBridge(quick,fast,gated)
exten => guest,1,ConfBridge(lecture,plain,guest)
 same => n,Set(DB(conference/${CALLERID(num)})=${CONFBRIDGE_RESULT})
exten => leader,1,ConfBridge(lecture,plain,leader)
exten => keys,1,ConfBridge(board,taped,member,keys)
 same => n,Set(DB(conference/${CALLERID(num)})=${CONFBRIDGE_RESULT})
exten => named,1,ConfBridge(board,taped,named)
exten => told,1,ConfBridge(told,told,browser)
";

/// What is heard besides the phones: the question for a PIN, music, a beep.
const PIN: f64 = 1700.0;
const MUSIC: f64 = 1900.0;
const JOINED: f64 = 2300.0;

const CONFBRIDGE: &str = "
[fast]
type=bridge
mixing_interval=10
max_speakers=3
[gated]
type=user
quiet=yes
dsp_drop_silence=yes
dsp_silence_threshold=300
[plain]
type=bridge
sound_join=
sound_leave=
[taped]
type=bridge
template=plain
record_conference=yes
record_file=board.wav
record_file_timestamp=no
[member]
type=user
announce_only_user=no
[told]
type=bridge
template=plain
enable_events=yes
[browser]
type=user
template=member
send_events=yes
echo_events=no
[guest]
type=user
template=member
pin=42
wait_marked=yes
end_marked=yes
music_on_hold_when_empty=yes
[leader]
type=user
template=member
marked=yes
admin=yes
[named]
type=user
template=member
announce_join_leave=yes
[keys]
type=menu
1=toggle_mute
3=leave_conference
";

fn server(name: &str) -> Server {
    let site = Site::new(name)
        .phone_with("alice", "allow=ulaw\n")
        .phone_with("bob", "allow=alaw\n")
        .phone_with("carol", "allow=ulaw\n")
        .add("confbridge.conf", CONFBRIDGE)
        .prompt("conf-getpin", PIN, 0.5)
        .prompt("conf-hasjoin", JOINED, 0.5)
        .music(MUSIC, 4.0)
        .dialplan(DIALPLAN);
    Server::start(site)
}

fn phones(server: &Server, extension: &str) -> Vec<Phone> {
    (0..NAMES.len()).map(|n| phone(server, n, extension)).collect()
}

fn phone(server: &Server, n: usize, extension: &str) -> Phone {
    let mut phone = Phone::new(server.site.sip, NAMES[n]);
    phone.codecs = vec![if NAMES[n] == "bob" { 8 } else { 0 }];
    phone.media.speak(Speak::Tone(TONES[n]));
    phone.must_call(extension);
    phone
}

fn until_hears_tone(phone: &Phone, hertz: f64) {
    phone.media.forget();
    wait::until_true("the tone", || phone.media.heard().tone(hertz) >= 300);
}

/// The tones that a phone has heard in the last quarter of a second.
fn tones(phone: &Phone) -> Vec<f64> {
    tone::lately(&phone.media.heard().audio(), &TONES)
}

fn until_hears(phone: &Phone, expected: &[f64]) {
    let hears = wait::for_some(wait::SOON, || (tones(phone) == expected).then_some(()));
    assert!(hears.is_some(), "{} hears {:?}, not {expected:?}", phone.name, tones(phone));
}

fn others(own: usize) -> Vec<f64> {
    TONES.into_iter().enumerate().filter(|(n, _)| *n != own).map(|(_, hertz)| hertz).collect()
}

/// The channel of a phone in the room; they enter it in any order, because prompts are read first.
fn channel(server: &Server, name: &str) -> String {
    let list = server.json("confbridge list room");
    let members = list["members"].as_array().unwrap().iter().filter_map(|member| member["channel"].as_str());
    let found = members.filter(|channel| channel.starts_with(&format!("PJSIP/{name}-"))).collect::<Vec<_>>();
    let [channel] = found[..] else { panic!("{name} is not there once: {list}") };
    channel.to_owned()
}

#[test]
fn three_phones_hear_the_two_others_and_not_themselves_and_who_is_muted_is_not_heard() {
    let server = server("conference");
    let mut phones = phones(&server, "room");
    for (n, phone) in phones.iter().enumerate() {
        until_hears(phone, &others(n));
    }
    let [alice, bob, _] = NAMES.map(|name| channel(&server, name));
    server.cli(&format!("confbridge mute room {alice}"));
    until_hears(&phones[1], &[TONES[2]]);
    until_hears(&phones[2], &[TONES[1]]);
    until_hears(&phones[0], &others(0));
    server.cli(&format!("confbridge unmute room {alice}"));
    until_hears(&phones[2], &others(2));
    // Who is sent out goes on in the dialplan, and is not heard any more.
    server.cli(&format!("confbridge kick room {bob}"));
    until_hears(&phones[0], &[TONES[2]]);
    until_hears(&phones[2], &[TONES[0]]);
    assert_eq!(server.database("conference", "bob"), "KICKED");
    phones.iter_mut().for_each(Phone::hang_up);
    server.until_idle();
    wait::until_true("the room is gone", || {
        server.json("confbridge list")["conferences"].as_array().unwrap().is_empty()
    });
    for phone in &phones {
        assert_eq!(phone.media.heard().lost(), 0, "{}", phone.name);
    }
}

#[test]
fn a_short_interval_and_a_noise_gate_come_from_confbridge_conf() {
    let server = server("quick");
    let mut phones = phones(&server, "quick");
    for (n, phone) in phones.iter().enumerate() {
        until_hears(phone, &others(n));
    }
    phones[0].media.speak(Speak::Silence);
    until_hears(&phones[1], &[TONES[2]]);
    phones.iter_mut().for_each(Phone::hang_up);
    server.until_idle();
}

#[test]
fn a_fault_in_the_stream_of_one_member_ends_its_call_only() {
    let site = Site::new("conference-fault")
        .environment("STROWGER_FAULT_INJECTION", "1")
        .add("confbridge.conf", "[general]\n")
        .phone_with("alice", "allow=ulaw\n")
        .phone_with("bob", "allow=alaw\n")
        .phone_with("carol", "allow=ulaw\n")
        .dialplan(DIALPLAN);
    let server = Server::start(site);
    let mut phones = phones(&server, "room");
    until_hears(&phones[0], &others(0));
    let bob = channel(&server, "bob");
    server.cli(&format!("fault inject media {bob}"));
    phones[1].until_hung_up();
    until_hears(&phones[0], &[TONES[2]]);
    until_hears(&phones[2], &[TONES[0]]);
    phones[0].hang_up();
    phones[2].hang_up();
    server.until_idle();
}

#[test]
fn guests_with_a_pin_hear_music_until_their_leader_comes_and_leave_with_him() {
    let server = server("conference-leader");
    let mut guests: Vec<_> = (0..2).map(|n| phone(&server, n, "guest")).collect();
    for guest in &guests {
        wait::until_true("the question for the PIN", || guest.media.heard().tone(PIN) >= 300);
        guest.media.type_digits("42#");
        until_hears_tone(guest, MUSIC);
        assert_eq!(tones(guest), [0.0; 0], "who waits hears nobody");
    }
    let list = server.cli("confbridge list lecture");
    assert_eq!(list.matches(" WEw ").count(), 2, "{list}");
    let mut leader = phone(&server, 2, "leader");
    until_hears(&guests[0], &[TONES[1], TONES[2]]);
    until_hears(&guests[1], &[TONES[0], TONES[2]]);
    until_hears(&leader, &[TONES[0], TONES[1]]);
    leader.hang_up();
    guests.iter_mut().for_each(Phone::until_hung_up);
    for name in &NAMES[..2] {
        assert_eq!(server.database("conference", name), "ENDMARKED");
    }
    server.until_idle();
}

#[test]
fn keys_mute_and_leave_and_what_was_said_is_in_the_file() {
    let server = server("conference-keys");
    let mut phones = phones(&server, "keys");
    for (n, phone) in phones.iter().enumerate() {
        until_hears(phone, &others(n));
    }
    phones[0].media.type_digits("1");
    until_hears(&phones[1], &[TONES[2]]);
    until_hears(&phones[2], &[TONES[1]]);
    phones[0].media.type_digits("1");
    until_hears(&phones[1], &others(1));
    phones[1].media.type_digits("3");
    phones[1].until_hung_up();
    assert_eq!(server.database("conference", "bob"), "DTMF");
    until_hears(&phones[0], &[TONES[2]]);
    phones[0].hang_up();
    phones[2].hang_up();
    server.until_idle();
    let file = server.site.config().ancestors().nth(2).and_then(|folder| find(folder, "board.wav")).unwrap();
    let samples = wait::until("the recording", || {
        let bytes = std::fs::read(&file).ok()?;
        let length = u32::from_le_bytes(bytes.get(40..44)?.try_into().ok()?) as usize;
        let data = bytes.get(44..).filter(|data| !data.is_empty() && data.len() == length)?;
        Some(data.as_chunks::<2>().0.iter().map(|pair| i16::from_le_bytes(*pair)).collect::<Vec<_>>())
    });
    let together = |tones: &[f64]| {
        samples.chunks(800).any(|part| tones.iter().all(|hertz| tone::share(part, 8000, *hertz) > 0.1))
    };
    assert!(together(&TONES), "all three are heard at once");
    assert!(together(&[TONES[0], TONES[2]]));
}

/// A folder of this name below another.
fn find_folder(below: &Path, name: &str) -> Option<std::path::PathBuf> {
    std::fs::read_dir(below)
        .ok()?
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.is_dir())
        .find_map(|path| if path.ends_with(name) { Some(path) } else { find_folder(&path, name) })
}

/// A file of this name below a folder.
fn find(below: &Path, name: &str) -> Option<std::path::PathBuf> {
    std::fs::read_dir(below).ok()?.flatten().find_map(|entry| {
        let path = entry.path();
        if path.is_dir() { find(&path, name) } else { path.ends_with(name).then_some(path) }
    })
}

#[test]
fn all_hear_the_name_that_somebody_has_said_when_it_comes_and_when_it_goes() {
    let server = server("conference-name");
    let mut listener = phone(&server, 1, "keys");
    wait::until_true("bob is in", || {
        server.json("confbridge list")["conferences"].as_array().unwrap().len() == 1
    });
    // What alice says first is taken for its name; the key ends it.
    let mut named = phone(&server, 0, "named");
    let names =
        || server.site.config().ancestors().nth(2).and_then(|folder| find_folder(folder, "confbridge"));
    let recorded = || {
        std::fs::read_dir(names()?)
            .ok()?
            .flatten()
            .find(|file| file.metadata().is_ok_and(|m| m.len() > 20_000))
    };
    wait::until("alice is recorded", recorded);
    named.media.type_digits("#");
    named.media.speak(Speak::Silence);
    for (words, hertz) in [("the name", TONES[0]), ("the words after it", JOINED)] {
        wait::until_true(words, || listener.media.heard().tone(hertz) >= 300);
    }
    named.hang_up();
    listener.media.forget();
    // It has gone, and its name is heard once more.
    wait::until_true("the name", || listener.media.heard().tone(TONES[0]) >= 300);
    until_hears(&listener, &[]);
    listener.hang_up();
    server.until_idle();
    let left = std::fs::read_dir(names().unwrap()).unwrap().count();
    assert_eq!(left, 0, "the name is not kept");
}

#[test]
fn consoles_record_lock_and_show_what_there_is() {
    let server = server("conference-console");
    let mut alice = phone(&server, 0, "room");
    wait::until_true("alice is in", || {
        server.json("confbridge list")["conferences"].as_array().unwrap().len() == 1
    });
    for (command, words) in [
        ("confbridge record start room kept.wav", "Recording started"),
        ("confbridge record stop room", "Recording stopped"),
        ("confbridge lock room", "is locked"),
        ("confbridge show profile user guest", "wait_marked:                 yes"),
        ("confbridge show menu keys", "leave_conference"),
        ("confbridge kick room PJSIP/alice", "Kicked"),
    ] {
        let said = server.cli(command);
        assert!(said.contains(words), "{command}: {said}");
    }
    assert_eq!(server.database("conference", "alice"), "KICKED");
    alice.hang_up();
    server.until_idle();
}

#[test]
fn rfc3428_members_are_told_in_their_calls_who_comes_and_goes() {
    let server = server("conference-told");
    let mut alice = Phone::new(server.site.sip, "alice");
    let told = |phone: &mut Phone| {
        let message = phone.expect("MESSAGE");
        phone.respond(&message, 200, "OK", false);
        assert_eq!(message.must("Content-Type"), "application/x-asterisk-confbridge-event+json");
        message.text()
    };
    alice.must_call("told");
    let welcome = told(&mut alice);
    assert!(
        welcome.contains("\"type\":\"ConfbridgeWelcome\"") && welcome.contains("PJSIP/alice-"),
        "{welcome}"
    );
    let mut carol = Phone::new(server.site.sip, "carol");
    carol.must_call("told");
    let join = told(&mut alice);
    assert!(join.contains("\"type\":\"ConfbridgeJoin\"") && join.contains("PJSIP/carol-"), "{join}");
    let welcome = told(&mut carol);
    assert!(welcome.contains("PJSIP/alice-") && welcome.contains("PJSIP/carol-"), "{welcome}");
    carol.hang_up();
    let leave = told(&mut alice);
    assert!(leave.contains("\"type\":\"ConfbridgeLeave\"") && leave.contains("PJSIP/carol-"), "{leave}");
    alice.hang_up();
    server.until_idle();
}
