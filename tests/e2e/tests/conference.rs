//! Conferences: three phones, told apart by their tones; who hears whom.

use e2e::{Phone, Server, Site, Speak, wait};

/// What each phone says.
const TONES: [f64; 3] = [440.0, 750.0, 1250.0];
const NAMES: [&str; 3] = ["alice", "bob", "carol"];
/// Samples in which tones are looked for: a quarter of a second.
const LOOKED: usize = 2000;

const DIALPLAN: &str = "
[test]
exten => room,1,ConfBridge(room)
 same => n,Set(DB(conference/${CALLERID(num)})=${CONFBRIDGE_RESULT})
 same => n,Wait(30)
exten => quick,1,ConfBridge(quick,fast,gated)
";

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
";

fn server(name: &str) -> Server {
    let site = Site::new(name)
        .phone_with("alice", "allow=ulaw\n")
        .phone_with("bob", "allow=alaw\n")
        .phone_with("carol", "allow=ulaw\n")
        .add("confbridge.conf", CONFBRIDGE)
        .dialplan(DIALPLAN);
    Server::start(site)
}

fn phones(server: &Server, extension: &str) -> Vec<Phone> {
    let each = |(name, tone): (&&str, f64)| {
        let mut phone = Phone::new(server.site.sip, name);
        phone.codecs = vec![if *name == "bob" { 8 } else { 0 }];
        phone.media.speak(Speak::Tone(tone));
        phone.must_call(extension);
        phone
    };
    NAMES.iter().zip(TONES).map(each).collect()
}

/// The tones that a phone has heard in the last quarter of a second.
fn tones(phone: &Phone) -> Vec<f64> {
    let audio = phone.media.heard().audio();
    let last = &audio[audio.len().saturating_sub(LOOKED)..];
    let loud = |hertz: &f64| {
        let (mut re, mut im) = (0.0, 0.0);
        for (n, &sample) in last.iter().enumerate() {
            let phase = n as f64 * hertz * std::f64::consts::TAU / 8000.0;
            re += f64::from(sample) * phase.cos();
            im += f64::from(sample) * phase.sin();
        }
        2.0 * (re * re + im * im).sqrt() / LOOKED as f64 > 800.0
    };
    TONES.into_iter().filter(loud).collect()
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
