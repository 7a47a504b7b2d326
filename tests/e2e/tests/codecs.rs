//! Calls between formats, recognised by what is said in them: libraries of Debian, golden payloads and baresip at the
//! far ends (RFC 3551, RFC 3952, RFC 5574, RFC 7587).

use e2e::likeness::{Clip, Least, Recognised, WAVEFORM};
use e2e::wire::{
    ALAW, AMR, G722, G723, G726, G726_AAL2, G729A, GSM_FULL, ILBC20, ILBC30, LPC10, OPUS48, SIREN7, SPEEX3,
    SPEEX8, ULAW, clip, golden_ilbc,
};
use e2e::{Baresip, Phone, Recital, Server, Site, Wire, installed, wait};

/// Pieces of 1.5 s that must be recognised, each following one that was.
const GOOD: usize = 3;
/// Milliseconds of sound after which it is worth to listen: as many pieces, the one before them, and a beginning.
const FIRST_LOOK: usize = 6500;
/// Milliseconds of sound after which it is not going to get better: a busy machine spoils some seconds now and then.
const LAST_LOOK: usize = 40_000;

/// What a codec in another process must keep: where it gets the processor too late a frame is missing, and a busy machine
/// takes many. Pieces have to follow one another all the same, which other speech does not.
const LATE: Least = Least { profile: 0.65, waveform: 0.5 };

const DIALPLAN: &str = "
[test]
exten => bob,1,Dial(PJSIP/bob,20)
exten => prompt,1,Answer()
 same => n,Playback(speech)
 same => n,Playback(speech)
 same => n,Hangup()
exten => echo,1,Answer()
 same => n,Echo()
";

fn site(name: &str, alice: &str, bob: &str) -> Site {
    Site::new(name)
        .phone_with("alice", &format!("allow={alice}\n"))
        .phone_with("bob", &format!("allow={bob}\n"))
        .dialplan(DIALPLAN)
}

/// A phone of one format.
fn phone(server: &Server, name: &str, wire: &'static Wire) -> Phone {
    let mut phone = Phone::new(server.site.sip, name);
    phone.wire = Some(wire);
    phone
}

/// Waits until somebody has heard `said` and not, as an echo or a mix-up would be, `own`.
///
/// `ms` tells how much was heard so far, `heard` what, at 8 kHz.
fn until_recognised(
    who: &str,
    ms: impl Fn() -> usize,
    heard: impl Fn() -> Vec<i16>,
    (said, own): (&Clip, &Clip),
    least: Least,
) {
    let mut look = FIRST_LOOK;
    let mut last: Option<Recognised> = None;
    while look <= LAST_LOOK {
        let enough = wait::for_some(wait::SOON, || (ms() >= look).then_some(()));
        assert!(enough.is_some(), "{who} hears less than {look} ms; last: {last:.2?}");
        let heard = heard();
        let found = said.find(&heard, least);
        if found.good >= GOOD {
            let mixed_up = own.find(&heard, least);
            assert_eq!(mixed_up.good, 0, "{who} hears itself: {mixed_up:.2?}");
            return;
        }
        last = Some(found);
        look = (look + FIRST_LOOK / 2).max(ms());
    }
    panic!("{who} does not hear what was said: {last:.2?}");
}

/// As [`until_recognised`], of a phone of ours.
fn until_heard(phone: &Phone, said: &Clip, own: &Clip, least: Least) {
    let wire = phone.wire.expect("a phone of one format");
    let name = format!("{} by {}", phone.name, wire.name);
    let payloads = || phone.media.heard().payloads(wire.payload_type);
    let ms = || phone.media.received() * wire.ms as usize;
    until_recognised(&name, ms, || wire.hear(&payloads()), (said, own), least);
}

/// What a phone says.
struct Voice {
    clip: Clip,
    recital: Recital,
}

fn voice(wire: &Wire, party: usize) -> Voice {
    let clip = clip(party);
    let recital = wire.recital(clip.samples());
    Voice { clip, recital }
}

/// Two phones that have no format in common talk at once, and each hears the other and nothing else.
fn talk(name: &str, (one, first): (&'static Wire, Voice), (other, second): (&'static Wire, Voice)) {
    let server = Server::start(site(name, one.name, other.name));
    let (mut alice, mut bob) = (phone(&server, "alice", one), phone(&server, "bob", other));
    bob.must_register();
    alice.media.recite(first.recital);
    bob.media.recite(second.recital);
    alice.begin("bob");
    let invite = bob.ring();
    bob.take(&invite);
    assert_eq!(alice.outcome().status(), Some(200));
    alice.media.forget();
    bob.media.forget();
    // Both vocoders count for both directions: what came through one is no longer a waveform.
    let least = if one.least() == WAVEFORM { other.least() } else { one.least() };
    until_heard(&bob, &first.clip, &second.clip, least);
    until_heard(&alice, &second.clip, &first.clip, least);
    for (phone, wire) in [(&alice, one), (&bob, other)] {
        let heard = phone.media.heard();
        assert_eq!(heard.payload_types(), [wire.payload_type], "{name}: {}", phone.name);
        assert_eq!(heard.lost(), 0, "{name}: {}", phone.name);
    }
    alice.hang_up();
    bob.until_hung_up();
    server.until_idle();
}

/// [`talk`] between the formats of libraries, when they are there.
fn talk_by(name: &str, one: &'static Wire, other: &'static Wire) {
    if one.is_there() && other.is_there() {
        talk(name, (one, voice(one, 0)), (other, voice(other, 1)));
    }
}

#[test]
fn gsm_and_ilbc_of_20_ms_hear_each_other() {
    talk_by("gsm-ilbc20", &GSM_FULL, &ILBC20);
}

#[test]
fn gsm_and_ilbc_of_30_ms_hear_each_other() {
    talk_by("gsm-ilbc30", &GSM_FULL, &ILBC30);
}

#[test]
fn rfc3951_payloads_of_the_reference_are_heard_by_gsm() {
    for (name, wire) in [("golden20", &ILBC20), ("golden30", &ILBC30)] {
        let Some((clip, payloads)) = golden_ilbc(wire) else {
            println!("skipped: no golden files beside the project");
            return;
        };
        if !GSM_FULL.is_there() {
            return;
        }
        let golden = Voice { clip, recital: wire.recital_of(payloads) };
        talk(name, (&GSM_FULL, voice(&GSM_FULL, 0)), (wire, golden));
    }
}

#[test]
fn gsm_and_speex_hear_each_other() {
    talk_by("gsm-speex3", &GSM_FULL, &SPEEX3);
}

#[test]
fn gsm_and_speex_of_a_higher_quality_hear_each_other() {
    talk_by("gsm-speex8", &GSM_FULL, &SPEEX8);
}

#[test]
fn g722_and_ulaw_hear_each_other() {
    talk_by("g722-ulaw", &G722, &ULAW);
}

#[test]
fn opus_and_alaw_hear_each_other() {
    talk_by("opus-alaw", &OPUS48, &ALAW);
}

#[test]
fn ilbc_and_speex_hear_each_other() {
    talk_by("ilbc-speex", &ILBC30, &SPEEX3);
}

#[test]
fn the_packings_of_g726_hear_each_other() {
    talk_by("g726", &G726, &G726_AAL2);
}

#[test]
fn lpc10_and_opus_hear_each_other() {
    talk_by("lpc10-opus", &LPC10, &OPUS48);
}

/// A site whose G.729 is coded by a process of its own.
fn external(name: &str, program: &std::path::Path) -> Site {
    let codecs = format!(
        "[by-bcg729]\ntype=external\nformat=g729\nprogram={}\nanswer=60000\nrestart=200\n",
        program.display()
    );
    site(name, "g729", "ulaw").add("codecs.conf", &codecs)
}

/// Processes of a codec that the server has started.
fn codec_processes(server: &Server, program: &std::path::Path) -> Vec<u32> {
    let folders = std::fs::read_dir("/proc").expect("/proc").flatten();
    let numbers = folders.filter_map(|folder| folder.file_name().to_str()?.parse::<u32>().ok());
    numbers
        .filter(|pid| std::fs::read_link(format!("/proc/{pid}/exe")).is_ok_and(|path| path == program))
        .filter(|pid| {
            let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
            status.lines().any(|line| line == format!("PPid:\t{}", server.pid()))
        })
        .collect()
}

#[test]
fn a_codec_in_another_process_carries_a_call_and_its_death_ends_none() {
    let Some(program) = G729A.process() else { return };
    let program = program.canonicalize().expect("its path");
    let server = Server::start(external("external", &program));
    let (mut alice, mut bob) = (phone(&server, "alice", &G729A), phone(&server, "bob", &ULAW));
    bob.must_register();
    let (first, second) = (voice(&G729A, 0), voice(&ULAW, 1));
    alice.media.recite(first.recital);
    bob.media.recite(second.recital);
    alice.begin("bob");
    let invite = bob.ring();
    bob.take(&invite);
    assert_eq!(alice.outcome().status(), Some(200));
    until_heard(&bob, &first.clip, &second.clip, LATE);
    until_heard(&alice, &second.clip, &first.clip, LATE);
    let [process] = codec_processes(&server, &program)[..] else { panic!("one process") };
    let killed = std::process::Command::new("kill").args(["-9", &process.to_string()]).status();
    assert!(killed.is_ok_and(|status| status.success()));
    let again = wait::for_some(wait::SOON, || {
        let now = codec_processes(&server, &program);
        (now.len() == 1 && now != [process]).then_some(())
    });
    assert!(again.is_some(), "it is not started again");
    alice.media.forget();
    bob.media.forget();
    until_heard(&bob, &first.clip, &second.clip, LATE);
    until_heard(&alice, &second.clip, &first.clip, LATE);
    let shown = server.cli("core show external codecs");
    let row = shown.lines().find(|line| line.starts_with("by-bcg729")).unwrap_or_else(|| panic!("{shown}"));
    let words: Vec<&str> = row.split_whitespace().collect();
    assert_eq!(words[1..5], ["g729", "alive", "1", "2"], "{shown}");
    alice.hang_up();
    bob.until_hung_up();
    server.until_idle();
}

#[test]
fn a_prompt_is_heard_by_a_codec_in_another_process() {
    let Some(program) = G729A.process() else { return };
    let (said, other) = (clip(0), clip(1));
    let server = Server::start(external("extprompt", &program).spoken("speech", said.samples()));
    let mut alice = phone(&server, "alice", &G729A);
    let mut last = None;
    // A codec that gets its processor too late for some frames spoils the prompt of one call, not of each.
    let recognised = (0..5).any(|_| {
        alice.media.forget();
        alice.must_call("prompt");
        alice.until_hung_up();
        let heard = alice.media.heard();
        let sound = G729A.hear(&heard.payloads(G729A.payload_type));
        assert_eq!(other.find(&sound, LATE).good, 0);
        assert_eq!(heard.lost(), 0);
        // Each prompt has an encoder of its own, which begins from nothing.
        let found = last.insert(said.find(&sound, LATE));
        found.good >= GOOD
    });
    assert!(recognised, "{last:.2?}");
}

/// Payloads that no codec would make, told apart by their numbers.
fn odd_payloads(bytes: &[usize]) -> Vec<Vec<u8>> {
    let sizes = bytes.iter().cycle().take(50);
    (0u8..).zip(sizes).map(|(number, &size)| vec![number.wrapping_mul(37) ^ 0xa5; size]).collect()
}

#[test]
fn formats_that_nobody_codes_pass_untouched() {
    for wire in [&G729A, &G723, &AMR, &SIREN7] {
        let sizes: &[usize] = match wire.name {
            "g729" => &[20, 10, 12, 2],
            "g723" => &[24, 20, 4],
            "amr" => &[32, 14, 7],
            _ => &[80],
        };
        let payloads = odd_payloads(sizes);
        let server = Server::start(site(&format!("pass-{}", wire.name), wire.name, wire.name));
        let (mut alice, mut bob) = (phone(&server, "alice", wire), phone(&server, "bob", wire));
        bob.must_register();
        alice.media.recite(wire.recital_of(payloads.clone()));
        alice.begin("bob");
        let invite = bob.ring();
        bob.take(&invite);
        assert_eq!(alice.outcome().status(), Some(200), "{}", wire.name);
        bob.media.forget();
        let enough = wait::for_some(wait::SOON, || (bob.media.received() >= 60).then_some(()));
        assert!(enough.is_some(), "{}: {} packets", wire.name, bob.media.received());
        let heard = bob.media.heard();
        let passed = heard.payloads(wire.payload_type);
        assert_eq!(passed.len(), heard.packets(), "{}", wire.name);
        let start = payloads.iter().position(|said| *said == passed[0]).expect("one of those that were said");
        for (said, came) in payloads.iter().cycle().skip(start).zip(&passed) {
            assert_eq!(said, came, "{}", wire.name);
        }
        alice.hang_up();
        bob.until_hung_up();
    }
}

#[test]
fn a_prompt_is_heard_in_every_format() {
    let said = clip(0);
    let other = clip(1);
    let wires = [&ILBC20, &ILBC30, &SPEEX3, &OPUS48, &G726, &G726_AAL2, &LPC10, &G722, &GSM_FULL, &ALAW];
    let all = "ilbc,speex,opus,g726,g726aal2,lpc10,g722,gsm,alaw";
    let server = Server::start(site("prompts", all, all).spoken("speech", said.samples()));
    // All at once: prompts of all formats in one worker.
    let mut callers: Vec<Phone> = wires
        .into_iter()
        .filter(|wire| wire.is_there())
        .map(|wire| {
            let mut caller = phone(&server, "alice", wire);
            caller.must_call("prompt");
            caller
        })
        .collect();
    for caller in &mut callers {
        caller.until_hung_up();
        let wire = caller.wire.expect("its format");
        let length = 2 * said.samples().len();
        // Its last packets may come after the end of the call.
        let ms = |heard: &e2e::Heard| heard.payloads(wire.payload_type).len() * wire.ms as usize;
        wait::until_true("the whole prompt", || (ms(&caller.media.heard()) + 100) * 8 >= length);
        let heard = caller.media.heard();
        let sound = wire.hear(&heard.payloads(wire.payload_type));
        assert!(
            sound.len() + 1600 >= length && sound.len() <= length + 1600,
            "{}: {}",
            wire.name,
            sound.len()
        );
        let found = said.find(&sound, wire.least());
        assert!(found.good >= 5, "{}: {found:.2?}", wire.name);
        assert_eq!(other.find(&sound, wire.least()).good, 0, "{}", wire.name);
        assert_eq!(heard.lost(), 0, "{}", wire.name);
    }
    server.until_idle();
}

/// baresip talks with a phone of ours that has another format.
fn baresip_talks(name: &str, codec: &str, format: &str, wire: &'static Wire) {
    if !installed(&["baresip"]) || !wire.is_there() {
        return;
    }
    let server = Server::start(site(name, wire.name, format));
    let (first, second) = (voice(wire, 0), clip(1));
    let bob = Baresip::speaking(server.site.sip, "bob", codec, second.samples());
    let mut alice = phone(&server, "alice", wire);
    alice.media.recite(first.recital);
    alice.must_call("bob");
    until_heard(&alice, &second, &first.clip, wire.least());
    let ms = || bob.speech().len() / 8;
    until_recognised(codec, ms, || bob.speech(), (&first.clip, &second), wire.least());
    assert_eq!(alice.media.heard().payload_types(), [wire.payload_type]);
    alice.hang_up();
    server.until_idle();
}

#[test]
fn baresip_in_g722_and_a_phone_in_ulaw_hear_each_other() {
    baresip_talks("baresip-g722", "g722", "g722", &ULAW);
}

#[test]
fn baresip_in_opus_and_a_phone_in_alaw_hear_each_other() {
    baresip_talks("baresip-opus", "opus/48000/2", "opus", &ALAW);
}

#[test]
fn baresip_in_gsm_and_a_phone_in_ilbc_hear_each_other() {
    baresip_talks("baresip-gsm", "gsm", "gsm", &ILBC30);
}

#[test]
fn baresip_in_g726_and_a_phone_in_speex_hear_each_other() {
    baresip_talks("baresip-g726", "G726-32", "g726", &SPEEX3);
}

/// Payloads that no encoder made: of any size, and cut, turned around or doubled ones of `packets`.
fn nonsense(packets: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let mut seed = 3951_u32;
    let mut noise = |length: usize| -> Vec<u8> {
        let mut next = || {
            seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (seed >> 24) as u8
        };
        (0..length).map(|_| next()).collect()
    };
    let kinds = packets.iter().zip(0..96).map(|(packet, number)| match number % 8 {
        0 => noise(packet.len()),
        1 => vec![0xff; packet.len()],
        2 => packet[..packet.len() / 2].to_vec(),
        3 => packet[..1].to_vec(),
        4 => [&packet[..], &noise(1)].concat(),
        5 => noise(1300),
        6 => packet.iter().map(|byte| !byte).collect(),
        _ => noise(packet.len() / 2 + 1),
    });
    kinds.collect()
}

#[test]
fn nonsense_instead_of_speech_is_counted_and_the_call_goes_on() {
    let wires = [&GSM_FULL, &ILBC20, &ILBC30, &SPEEX3, &OPUS48, &G726, &LPC10, &G722];
    let wires: Vec<&'static Wire> = wires.into_iter().filter(|wire| wire.is_there()).collect();
    let mut site = Site::new("nonsense").dialplan("[test]\nexten => _X,1,Dial(PJSIP/hearer${EXTEN},20)\n");
    for (number, wire) in wires.iter().enumerate() {
        site = site
            .phone_with(&format!("speaker{number}"), &format!("allow={}\n", wire.name))
            .phone_with(&format!("hearer{number}"), "allow=ulaw\n");
    }
    let mut server = Server::start(site);
    let (said, other) = (clip(0), clip(1));
    let mut calls: Vec<(Phone, Phone)> = Vec::new();
    for (number, &wire) in wires.iter().enumerate() {
        let mut speaker = phone(&server, &format!("speaker{number}"), wire);
        let mut hearer = phone(&server, &format!("hearer{number}"), &ULAW);
        hearer.must_register();
        hearer.media.recite(ULAW.recital(other.samples()));
        speaker.media.recite(wire.recital_of(nonsense(&wire.code(said.samples()))));
        speaker.begin(&number.to_string());
        let invite = hearer.ring();
        hearer.take(&invite);
        assert_eq!(speaker.outcome().status(), Some(200));
        calls.push((speaker, hearer));
    }
    wait::until_true("every kind of nonsense was said", || {
        calls.iter().all(|(speaker, _)| speaker.media.sent() >= 96)
    });
    // RTCP brings the counters.
    let discarded = |name: &str| {
        let shown = server.json("pjsip show channelstats");
        let rows = shown["channels"].as_array().cloned().unwrap_or_default();
        let row = rows.iter().find(|row| row["name"].as_str().is_some_and(|is| is.contains(name))).cloned();
        row.and_then(|row| row["discarded"].as_u64()).unwrap_or_default()
    };
    for (speaker, _) in &calls {
        let name = format!("/{}-", speaker.name);
        wait::until_true("the nonsense is counted", || discarded(&name) >= 10);
    }
    for ((speaker, hearer), wire) in calls.iter().zip(&wires) {
        speaker.media.recite(wire.recital(said.samples()));
        speaker.media.forget();
        hearer.media.forget();
    }
    for (speaker, hearer) in &mut calls {
        // Both ways are as they should be, with one voice still where nothing was wrong.
        let wire = speaker.wire.expect("its format");
        until_heard(hearer, &said, &other, wire.least());
        until_heard(speaker, &other, &said, wire.least());
        assert_eq!(hearer.media.heard().lost(), 0, "{}", wire.name);
        speaker.hang_up();
        hearer.until_hung_up();
    }
    wait::until_true("all of it is counted", || {
        let workers = server.json("media show io")["workers"].clone();
        let counts = workers.as_array().into_iter().flatten();
        let counted: u64 = counts.filter_map(|worker| worker["discards"]["malformed"].as_u64()).sum();
        counted >= 10 * wires.len() as u64
    });
    server.until_idle();
    server.assert_healthy();
}

/// Calls of one format, enough for a group in lanes; the codec of one of them panics in the group.
fn one_call_of_six_fails(wire: &'static Wire) {
    const CALLS: usize = 6;
    if !wire.is_there() {
        return;
    }
    let mut site = Site::new(&format!("fault-{}", wire.name))
        .environment("STROWGER_FAULT_INJECTION", "yes")
        .dialplan("[test]\nexten => _X,1,Dial(PJSIP/hearer${EXTEN},20)\n");
    for number in 0..CALLS {
        site = site
            .phone_with(&format!("speaker{number}"), &format!("allow={}\n", wire.name))
            .phone_with(&format!("hearer{number}"), "allow=ulaw\n");
    }
    let mut server = Server::start(site);
    let (said, other) = (clip(0), clip(1));
    let (there, back) = (wire.recital(said.samples()), ULAW.recital(other.samples()));
    let mut calls: Vec<(Phone, Phone)> = (0..CALLS)
        .map(|number| {
            let mut speaker = phone(&server, &format!("speaker{number}"), wire);
            let mut hearer = phone(&server, &format!("hearer{number}"), &ULAW);
            hearer.must_register();
            speaker.media.recite(there.clone());
            hearer.media.recite(back.clone());
            speaker.begin(&number.to_string());
            let invite = hearer.ring();
            hearer.take(&invite);
            assert_eq!(speaker.outcome().status(), Some(200));
            (speaker, hearer)
        })
        .collect();
    let flows = |calls: &[(Phone, Phone)]| {
        calls.iter().all(|(a, b)| a.media.received() > 25 && b.media.received() > 25)
    };
    wait::until_true("everybody hears something", || flows(&calls));
    let channels = server.json("core show channels");
    let channel = channels["channels"]
        .as_array()
        .and_then(|all| {
            all.iter().filter_map(|row| row["name"].as_str()).find(|name| name.contains("speaker2"))
        })
        .map(str::to_owned)
        .expect("the call has a channel");
    let (mut guilty, mut bereft) = calls.remove(2);
    calls.iter().for_each(|(speaker, hearer)| {
        speaker.media.forget();
        hearer.media.forget();
    });
    server.cli(&format!("fault inject codec {channel}"));
    guilty.until_hung_up();
    bereft.until_hung_up();
    wait::until_true("the reason is in the log", || {
        server
            .log()
            .lines()
            .any(|line| line.contains(&channel) && line.contains("media stream ended: Panicked"))
    });
    for (speaker, hearer) in &calls {
        until_heard(hearer, &said, &other, wire.least());
        until_heard(speaker, &other, &said, wire.least());
        assert_eq!((hearer.media.heard().lost(), speaker.media.heard().lost()), (0, 0), "{}", wire.name);
    }
    for (mut speaker, mut hearer) in calls {
        speaker.hang_up();
        hearer.until_hung_up();
    }
    server.until_idle();
    assert!(server.alive(), "{}: the process has ended", wire.name);
}

#[test]
fn a_panic_in_a_group_of_gsm_ends_its_call_and_the_others_are_heard_on() {
    one_call_of_six_fails(&GSM_FULL);
}

#[test]
fn a_panic_in_a_group_of_ilbc_ends_its_call_and_the_others_are_heard_on() {
    one_call_of_six_fails(&ILBC20);
}

#[test]
fn a_panic_in_a_group_of_speex_ends_its_call_and_the_others_are_heard_on() {
    one_call_of_six_fails(&SPEEX3);
}

#[test]
fn a_panic_in_a_group_of_g722_ends_its_call_and_the_others_are_heard_on() {
    one_call_of_six_fails(&G722);
}

#[test]
fn a_panic_in_a_group_of_g726_ends_its_call_and_the_others_are_heard_on() {
    one_call_of_six_fails(&G726);
}
