//! Packets as peers send them: digits, timestamps, lengths, and who is on hold.

use super::peers::{ENOUGH, Manager, Source, connect, hears, managed};
use e2e::{Phone, Server, Site, Speak, wait};

/// Hertz of what each says, and of the music.
const ALICE: f64 = 440.0;
const BOB: f64 = 620.0;
const CAROL: f64 = 880.0;
const MUSIC: f64 = 1040.0;

fn event(source: &mut Source, code: u8, number: u16) {
    source.event(0, code, 10, 160 * number);
    source.tick();
}

/// Three ends of one press whose timestamps run on, in a burst or a packet apart.
fn drifting(source: &mut Source, code: u8, apart: bool) {
    (1..=5).for_each(|number| event(source, code, number));
    for (offset, duration) in [(0, 960), (160, 1120), (320, 1280)] {
        source.event(offset, code, 0x8a, duration);
        if apart {
            source.tick();
        }
    }
    source.timestamp += 1600;
}

fn beginning_lost(source: &mut Source, ends: u32) {
    (0..ends).for_each(|_| source.event(0, 1, 0x8a, 960));
    source.timestamp += 1600;
}

type Says = fn(&mut Source);

/// Digits as the dialplan reads them, one press each, whatever the timestamps of the packets do.
const DIGITS: [(&str, Says, &str); 15] = [
    ("no jump", |source| jumps(source, 0x1000_0000, 0x1000_0000 + 8000), "123"),
    ("back from far up", |source| jumps(source, 0x6000_0000, 1000), "123"),
    ("forward by more than half of all", |source| jumps(source, 1000, 0x9000_0000), "123"),
    ("around the end", |source| jumps(source, 0xf000_0000, 1000), "123"),
    ("back by five seconds", |source| jumps(source, 0x6000_0000, 0x6000_0000 - 40_000), "123"),
    ("back by half of all", |source| jumps(source, 0x8000_0000, 0), "123"),
    ("back to nothing, without a pause", |source| jumps(source, 40_000, 0), "123"),
    ("three ends in a burst, whose timestamps run on", |source| drifting(source, 1, false), "1"),
    ("three ends one after the other, whose timestamps run on", |source| drifting(source, 1, true), "1"),
    (
        "two presses",
        |source| {
            source.digit('1');
            source.timestamp += 480;
            source.digit('1');
        },
        "11",
    ),
    (
        "a gap and then the end",
        |source| {
            event(source, 1, 1);
            event(source, 1, 2);
            (0..40).for_each(|_| source.tick());
            (0..3).for_each(|_| source.event(0, 1, 0x8a, 8000));
            source.timestamp += 8480;
        },
        "1",
    ),
    ("an end alone", |source| beginning_lost(source, 1), "1"),
    ("three ends alone", |source| beginning_lost(source, 3), "1"),
    (
        "two presses, the ends of the first lost",
        |source| {
            (1..=4).for_each(|number| event(source, 1, number));
            source.timestamp += 2000;
            source.digit('2');
        },
        "12",
    ),
    (
        "an end that comes once more late",
        |source| {
            source.digit('1');
            source.play(5);
            source.event(0_u32.wrapping_sub(13 * 160), 1, 0x8a, 960);
            source.play(5);
            source.digit('2');
        },
        "12",
    ),
];

/// A digit, another timestamp, and two digits.
fn jumps(source: &mut Source, first: u32, second: u32) {
    source.timestamp = first;
    source.play(8);
    source.digit('1');
    source.play(8);
    source.timestamp = second;
    source.play(8);
    source.digit('2');
    source.play(8);
    source.digit('3');
}

#[test]
fn rfc4733_2_5_each_press_is_read_once_whatever_its_timestamps_do() {
    let site = Site::new("case-digits").phone("alice").dialplan(
        "[test]\nexten => _7XX,1,Answer()\n same => n,Read(D,,8,,1,20)\n same => n,Set(DB(read/${EXTEN})=x${D})\n \
         same => n,Hangup()\n",
    );
    let server = Server::start(site);
    std::thread::scope(|scope| {
        for (number, (case, says, expected)) in DIGITS.into_iter().enumerate() {
            let server = &server;
            scope.spawn(move || {
                let mut phone = Phone::new(server.site.sip, "alice");
                let exten = format!("7{number:02}");
                let mut source = Source::call(&mut phone, &exten);
                source.follow(&phone.outcome());
                source.timestamp = 0x10_0000;
                source.play(8);
                says(&mut source);
                source.play(8);
                // Read() ends with it.
                source.digit('#');
                let read = server.database("read", &exten);
                assert_eq!(read, format!("x{expected}"), "{case}");
                phone.until_hung_up();
            });
        }
    });
}

type Odd = fn(&mut Source);

fn whole(source: &mut Source, offset: u32) {
    source.event(offset, 5, 10, 160);
    source.tick();
    for _ in 0..3 {
        source.event(offset, 5, 0x8a, 800);
        source.tick();
    }
}

/// Odd packets of digits that a gateway with a clock of its own sends, or somebody who means it.
const ODD: [(&str, Odd); 11] = [
    ("a whole digit a second ahead", |source| whole(source, 8000)),
    ("a whole digit 100 s ahead", |source| whole(source, 800_000)),
    ("a whole digit 2^30 ahead", |source| whole(source, 1 << 30)),
    ("a whole digit 2^31 ahead", |source| whole(source, 1 << 31)),
    ("a whole digit 100 s behind", |source| whole(source, 0_u32.wrapping_sub(800_000))),
    ("a beginning without an end, 2^30 ahead", |source| source.event(1 << 30, 5, 10, 160)),
    ("an end alone that says it lasted eight seconds", |source| source.event(0, 5, 0x8a, 65_535)),
    ("an end alone, far ahead, that says so", |source| source.event(1 << 29, 5, 0x8a, 65_535)),
    ("codes that are no digits", |source| (16..60).for_each(|code| source.event(1 << 20, code, 10, 160))),
    ("300 whole digits at once", |source| {
        for number in 0..300 {
            source.event(number * 100, 5, 10, 160);
            (0..3).for_each(|_| source.event(number * 100, 5, 0x8a, 800));
        }
    }),
    ("300 packets of anything, with one number", |source| {
        let mut random = kit::Random(1);
        for _ in 0..300 {
            let [a, b] = [random.bits(), random.bits()];
            let sequence = source.sequence;
            let [code, flags, high, low, ..] = b.to_le_bytes();
            source.event(a as u32, code % 16, 10 | (flags & 0x80), u16::from_be_bytes([high, low]));
            source.sequence = sequence;
        }
    }),
];

/// Longest time without sound after packets of digits that nobody would send.
const BACK: usize = 15 * 50;

#[test]
fn the_sound_of_a_phone_comes_back_soon_after_odd_packets_of_digits() {
    let server = Server::start(
        Site::new("case-odd").phone("alice").dialplan("[test]\nexten => 600,1,Answer()\n same => n,Echo()\n"),
    );
    std::thread::scope(|scope| {
        for (case, says) in ODD {
            let server = &server;
            scope.spawn(move || {
                let mut phone = Phone::new(server.site.sip, "alice");
                let mut source = Source::call(&mut phone, "600");
                source.follow(&phone.outcome());
                source.play(50);
                assert!(source.came > 25, "{case}: {} before", source.came);
                says(&mut source);
                let mut played = 0;
                // Half of a second is heard as it should be.
                loop {
                    source.came = 0;
                    source.play(25);
                    played += 25;
                    if source.came > 15 {
                        break;
                    }
                    assert!(played < BACK, "{case}: no sound for {played} packets");
                }
                phone.hang_up();
            });
        }
    });
}

/// Over a bridge with transcoding: sound and digits go on when timestamps begin anew below.
#[test]
fn rfc3550_5_1_the_other_side_and_the_recording_hear_a_source_that_begins_its_timestamps_anew() {
    let site = Site::new("case-jump")
        .phone("alice")
        .phone_with("bob", "allow=alaw")
        .dialplan("[test]\nexten => bob,1,MixMonitor(case.wav)\n same => n,Dial(PJSIP/bob,30)\n");
    let server = Server::start(site);
    let (mut alice, mut bob) = (Phone::new(server.site.sip, "alice"), Phone::new(server.site.sip, "bob"));
    bob.codecs = vec![8];
    bob.must_register();
    let mut source = Source::call(&mut alice, "bob");
    let invite = bob.ring();
    bob.take(&invite);
    source.follow(&alice.outcome());
    source.timestamp = 0x6000_0000;
    source.play(30);
    source.digit('1');
    source.play(10);
    source.timestamp = 1000;
    bob.media.forget();
    source.play(50);
    let heard = bob.media.heard().tone(400.0);
    assert!(heard >= 600, "{heard} ms of a second after the jump");
    for digit in ['2', '3'] {
        source.digit(digit);
        source.play(10);
    }
    wait::until("digits", || Some(bob.media.heard().digits()).filter(|digits| digits == "23"));
    alice.hang_up();
    bob.until_hung_up();
    server.until_idle();
    let file = server.site.place.join("spool/monitor/case.wav");
    let samples =
        wait::until("the recording", || Some(e2e::tone::read_wav(&file)?.1).filter(|all| all.len() > 16_000));
    let late = &samples[samples.len() - 12_000..];
    assert!(
        e2e::tone::heard(late, 8000, 400.0) >= ENOUGH,
        "the tone in the last second and a half of the recording"
    );
}

/// One press of a key whose ends run on is no code of two keys for those who talk.
#[test]
fn rfc4733_2_5_1_4_one_press_is_no_code_of_two() {
    let site = Site::new("case-code")
        .phone("alice")
        .phone("bob")
        .add("features.conf", "[featuremap]\nblindxfer=##\n")
        .dialplan("[test]\nexten => bob,1,Dial(PJSIP/bob,30,T)\n");
    let server = Server::start(site);
    let (mut alice, mut bob) = (Phone::new(server.site.sip, "alice"), Phone::new(server.site.sip, "bob"));
    bob.must_register();
    let mut source = Source::call(&mut alice, "bob");
    let invite = bob.ring();
    bob.take(&invite);
    source.follow(&alice.outcome());
    source.play(10);
    drifting(&mut source, 11, false);
    // The key goes to the other side when no second one follows.
    for _ in 0..6 {
        source.play(50);
        if bob.media.heard().digits() == "#" {
            break;
        }
    }
    assert_eq!(bob.media.heard().digits(), "#");
    bob.media.speak(Speak::Tone(BOB));
    source.came = 0;
    source.play(50);
    assert!(source.came > 25, "they talk on: {}", source.came);
    alice.hang_up();
    bob.until_hung_up();
}

/// `allow=ulaw:30` makes packets of 30 ms, and the offer says so.
#[test]
fn a_format_with_milliseconds_makes_packets_of_that_length() {
    let mut site = Site::new("case-length").phone("alice");
    let rows = [("ulaw:30", 30), ("ulaw:10", 10), ("ulaw:40", 40), ("ulaw", 20)];
    let mut dialplan = String::from("[test]\n");
    for (number, (allow, _)) in rows.iter().enumerate() {
        site = site.phone_with(&format!("b{number}"), &format!("allow={allow}"));
        dialplan += &format!("exten => b{number},1,Dial(PJSIP/b{number},30)\n");
    }
    let server = Server::start(site.dialplan(&dialplan));
    for (number, (allow, ms)) in rows.into_iter().enumerate() {
        let name = format!("b{number}");
        let (mut alice, mut bob) = (Phone::new(server.site.sip, "alice"), Phone::new(server.site.sip, &name));
        alice.media.speak(Speak::Tone(ALICE));
        bob.must_register();
        alice.begin(&name);
        let invite = bob.ring();
        assert_eq!(invite.sdp("a=ptime:"), Some(ms.to_string().as_str()), "{allow}:\n{}", invite.body);
        bob.take(&invite);
        assert_eq!(alice.outcome().status(), Some(200));
        wait::until_true("packets come", || bob.media.received() > 20);
        let lengths: std::collections::BTreeSet<usize> =
            bob.media.heard().payloads(0).iter().map(Vec::len).collect();
        // The phone's own description says 20 ms, which `use_ptime` would follow.
        assert_eq!(lengths, [ms * 8].into(), "{allow}");
        alice.hang_up();
        bob.until_hung_up();
    }
}

/// Ways by which a call gets another party.
const WAYS: [&str; 8] =
    ["refer", "attended", "redirect", "park", "replaces", "keys", "attended by keys", "bridge"];

/// Who holds goes on holding, and whoever comes hears the music until that ends (RFC 3264 §8.4, RFC 5589 §6.1).
#[test]
fn rfc3264_8_4_who_takes_over_from_a_held_party_hears_music_until_it_resumes() {
    std::thread::scope(|scope| {
        for direction in ["sendonly", "inactive"] {
            for way in WAYS {
                scope.spawn(move || held(way, direction));
            }
        }
    });
}

fn held(way: &str, direction: &str) {
    let site = managed(Site::new("case-held"))
        .phone("alice")
        .phone("bob")
        .phone("carol")
        .music(MUSIC, 5.0)
        .add("features.conf", "[featuremap]\nblindxfer=##\natxfer=*2\n")
        .add("res_parking.conf", "[general]\n[default]\nparkpos=>71-79\nparkext=>70\ncontext=parkedcalls\n")
        .dialplan(
            "[test]\ninclude => parkedcalls\nexten => bob,1,Dial(PJSIP/bob,30,tT)\n\
             exten => carol,1,Dial(PJSIP/carol,30)\nexten => 300,1,Dial(PJSIP/carol,30)\n\
             exten => wait,1,Answer()\n same => n,Wait(60)\n",
        );
    let case = format!("{way}, {direction}");
    let server = Server::start(site);
    let phone = |name: &str, hertz| {
        let mut phone = Phone::new(server.site.sip, name);
        phone.media.speak(Speak::Tone(hertz));
        phone.must_register();
        phone
    };
    let (mut alice, mut bob, mut carol) = (phone("alice", ALICE), phone("bob", BOB), phone("carol", CAROL));
    connect(&mut alice, &mut bob, "bob");
    hears("bob", &bob, ALICE);
    alice.reinvite(direction);
    hears(&format!("{case}: bob"), &bob, MUSIC);
    let refer = |phone: &mut Phone, to: &str| {
        let more = format!("Refer-To: <sip:{to}@strowger>\r\nReferred-By: <sip:bob@strowger>\r\n");
        assert_eq!(phone.inside_with("REFER", &more).status(), Some(202), "{case}");
    };
    match way {
        "refer" => refer(&mut bob, "carol"),
        "redirect" => {
            let channel = channel_of(&server, "alice");
            let mut manager = Manager::login(&server, "admin");
            let fields =
                [("Channel", channel.as_str()), ("Context", "test"), ("Exten", "carol"), ("Priority", "1")];
            assert!(manager.act("Redirect", &fields).contains("Success"));
        }
        "park" => {
            refer(&mut bob, "70");
            wait::until_true("it is parked", || {
                server.json("parking show default").to_string().contains("PJSIP/alice")
            });
            carol.must_call("71");
        }
        "attended" => {
            let mut second = Phone::new(server.site.sip, "bob");
            connect(&mut second, &mut carol, "carol");
            let to = format!("Refer-To: <sip:carol@strowger?Replaces={}>\r\n", second.replaces());
            assert_eq!(bob.inside_with("REFER", &to).status(), Some(202), "{case}");
        }
        "replaces" => {
            let replaces = bob.replaces().replace("%40", "@").replace("%3B", ";").replace("%3D", "=");
            carol.begin_with("bob", &format!("Replaces: {replaces}\r\n"));
            assert_eq!(carol.outcome().status(), Some(200), "{case}");
        }
        "keys" => bob.media.type_digits("##300"),
        "attended by keys" => {
            bob.media.type_digits("*2300");
            let invite = carol.ring();
            carol.take(&invite);
            hears(&format!("{case}: carol"), &carol, BOB);
            bob.hang_up();
        }
        "bridge" => {
            carol.must_call("wait");
            let (one, other) = (channel_of(&server, "alice"), channel_of(&server, "carol"));
            let mut manager = Manager::login(&server, "admin");
            let fields = [("Channel1", one.as_str()), ("Channel2", other.as_str())];
            assert!(manager.act("Bridge", &fields).contains("Success"), "{case}");
        }
        _ => {}
    }
    if matches!(way, "refer" | "redirect" | "keys") {
        let invite = carol.ring();
        carol.take(&invite);
    }
    hears(&format!("{case}: carol"), &carol, MUSIC);
    alice.reinvite("sendrecv");
    hears(&format!("{case}: carol after the hold"), &carol, ALICE);
    hears(&format!("{case}: alice after the hold"), &alice, CAROL);
    alice.hang_up();
    carol.until_hung_up();
}

fn channel_of(server: &Server, name: &str) -> String {
    let said = server.cli("core show channels concise");
    let line = said.lines().find(|line| line.starts_with(&format!("PJSIP/{name}-")));
    line.and_then(|line| line.split('!').next()).expect("a channel").to_owned()
}
