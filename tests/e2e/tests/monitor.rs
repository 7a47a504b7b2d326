//! Calls that are recorded, both sides told apart by their tones; what is left after a kill.

use std::path::{Path, PathBuf};
use std::time::Duration;

use e2e::{Phone, Server, Site, Speak, tone, wait};

const ALICE: f64 = 440.0;
const BOB: f64 = 750.0;

const DIALPLAN: &str = "
[test]
exten => mixed,1,MixMonitor(${EXTEN}.wav,r(heard.gsm)t(said.ulaw))
 same => n,Dial(PJSIP/bob,10)
exten => stereo,1,MixMonitor(${EXTEN}.wav,D)
 same => n,Dial(PJSIP/bob,10)
exten => split,1,Monitor(wav,pair)
 same => n,Dial(PJSIP/bob,10)
";

fn server(name: &str) -> Server {
    let site = Site::new(name)
        .phone_with("alice", "allow=ulaw\n")
        .phone_with("bob", "allow=alaw\n")
        .dialplan(DIALPLAN);
    Server::start(site)
}

/// A call of alice to bob for so long.
fn talk(server: &Server, extension: &str, long: Duration) {
    let mut alice = Phone::new(server.site.sip, "alice");
    let mut bob = Phone::new(server.site.sip, "bob");
    bob.codecs = vec![8];
    bob.must_register();
    alice.media.speak(Speak::Tone(ALICE));
    bob.media.speak(Speak::Tone(BOB));
    alice.begin(extension);
    let invite = bob.ring();
    bob.take(&invite);
    assert_eq!(alice.outcome().status(), Some(200));
    let enough = u32::try_from(long.as_millis()).unwrap();
    wait::until_true("bob hears alice", || bob.media.heard().tone(ALICE) >= enough);
    alice.hang_up();
    bob.until_hung_up();
    server.until_idle();
}

fn folder(server: &Server) -> PathBuf {
    server.site.config().ancestors().nth(2).map(Path::to_path_buf).unwrap_or_default()
}

/// A file of this name below the site's folder, when it is complete.
fn find(below: &Path, name: &str) -> Option<PathBuf> {
    std::fs::read_dir(below).ok()?.flatten().find_map(|entry| {
        let path = entry.path();
        if path.is_dir() { find(&path, name) } else { path.ends_with(name).then_some(path) }
    })
}

/// Channels, and samples of each, of a WAVE file of 16 bits whose header is complete.
fn wave(below: &Path, name: &str) -> Option<Vec<Vec<i16>>> {
    let bytes = std::fs::read(find(below, name)?).ok()?;
    let field = |at: usize| u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?).into();
    let length: Option<u32> = field(40);
    let data = bytes.get(44..)?;
    if data.is_empty() || length? as usize != data.len() {
        return None;
    }
    let channels = usize::from(bytes[22]);
    let samples: Vec<i16> = data.as_chunks::<2>().0.iter().map(|pair| i16::from_le_bytes(*pair)).collect();
    Some((0..channels).map(|first| samples.iter().skip(first).step_by(channels).copied().collect()).collect())
}

/// Whose tones are in any tenth of a second of it: one may begin later than the other on a busy machine.
fn shares(samples: &[i16]) -> [bool; 2] {
    [ALICE, BOB].map(|hertz| samples.chunks(800).any(|tenth| tone::share(tenth, 8000, hertz) > 0.2))
}

/// Whether both are heard at once.
fn together(samples: &[i16]) -> bool {
    samples.chunks(800).any(|tenth| [ALICE, BOB].iter().all(|hertz| tone::share(tenth, 8000, *hertz) > 0.2))
}

#[test]
fn a_mixed_recording_has_both_sides_and_files_of_one_side_have_that_side() {
    let server = server("mixmonitor");
    talk(&server, "mixed", Duration::from_millis(1500));
    let folder = folder(&server);
    // While it is written the file is complete too, as far as it goes.
    let whole = |file: &Vec<Vec<i16>>| file[0].len() > 8000;
    let mixed = wait::until("the mixed file", || wave(&folder, "mixed.wav").filter(whole));
    assert_eq!(mixed.len(), 1);
    assert!(together(&mixed[0]));
    let said = std::fs::read(find(&folder, "said.ulaw").unwrap()).unwrap();
    let said: Vec<i16> = said.iter().map(|&code| tone::from_ulaw(code)).collect();
    assert_eq!(shares(&said), [false, true], "what alice heard is bob");
    let heard = std::fs::metadata(find(&folder, "heard.gsm").unwrap()).unwrap().len();
    assert!(heard > 33 * 50, "{heard} bytes of GSM");
}

#[test]
fn a_stereo_recording_keeps_the_sides_apart() {
    let server = server("stereo");
    talk(&server, "stereo", Duration::from_millis(1000));
    let stereo = wait::until("the stereo file", || wave(&folder(&server), "stereo.wav"));
    assert_eq!(stereo.len(), 2);
    assert_eq!([shares(&stereo[0]), shares(&stereo[1])], [[true, false], [false, true]]);
}

#[test]
fn monitor_writes_a_file_for_each_side() {
    let server = server("split");
    talk(&server, "split", Duration::from_millis(1000));
    for (name, expected) in [("pair-in.wav", [true, false]), ("pair-out.wav", [false, true])] {
        let file = wait::until(name, || wave(&folder(&server), name));
        assert_eq!(shares(&file[0]), expected, "{name}");
    }
}

#[test]
fn both_parties_hear_a_beep_beside_each_other_while_they_are_recorded() {
    const BEEP: f64 = 1400.0;
    let dialplan = "[test]\nexten => beeps,1,MixMonitor(beeps.wav,B(1))\n same => n,Dial(PJSIP/bob,10)\n";
    let site = Site::new("beeps")
        .phone_with("alice", "allow=ulaw\n")
        .phone_with("bob", "allow=alaw\n")
        .prompt("beep", BEEP, 0.6)
        .dialplan(dialplan);
    let server = Server::start(site);
    let mut alice = Phone::new(server.site.sip, "alice");
    let mut bob = Phone::new(server.site.sip, "bob");
    bob.codecs = vec![8];
    bob.must_register();
    alice.media.speak(Speak::Tone(ALICE));
    bob.media.speak(Speak::Tone(BOB));
    alice.begin("beeps");
    let invite = bob.ring();
    bob.take(&invite);
    assert_eq!(alice.outcome().status(), Some(200));
    // Both at once, in one tenth of a second of it.
    for (name, phone, voice) in [("alice", &alice, BOB), ("bob", &bob, ALICE)] {
        wait::until_true(&format!("{name} hears voice and beep"), || {
            let heard = phone.media.heard().audio();
            heard
                .chunks(800)
                .any(|tenth| [voice, BEEP].iter().all(|hertz| tone::share(tenth, 8000, *hertz) > 0.2))
        });
    }
    alice.hang_up();
    bob.until_hung_up();
    server.until_idle();
}

/// Formats that are recorded: what the file is called, bytes of its header, and bytes of a second; none where pages say
/// how long it is.
const FORMATS: [(&str, u64, u64); 12] = [
    ("wav", 44, 16_000),
    ("wav16", 44, 32_000),
    ("WAV", 60, 1625),
    ("gsm", 0, 1650),
    ("ulaw", 0, 8000),
    ("alaw", 0, 8000),
    ("g722", 0, 8000),
    ("sln", 0, 16_000),
    ("sln16", 0, 32_000),
    ("sln48", 0, 96_000),
    ("raw", 0, 16_000),
    ("opus", 0, 0),
];

/// Milliseconds of sound that are in a file, whatever its header says.
fn on_disk(path: &Path, header: u64, second: u64) -> u64 {
    let bytes = std::fs::read(path).unwrap_or_default();
    let sound = (bytes.len() as u64).saturating_sub(header) * 1000;
    if let Some(ms) = sound.checked_div(second) {
        return ms;
    }
    // The end of the last page that is whole so far, in samples at 48 kHz (RFC 3533 §6, RFC 7845 §4).
    let page = bytes.windows(4).rposition(|window| window == b"OggS");
    let granule = page.and_then(|at| bytes.get(at + 6..at + 14)?.try_into().ok()).map(u64::from_le_bytes);
    granule.unwrap_or(0) / 48
}

#[test]
fn recordings_of_every_format_survive_a_kill_but_for_the_last_second_and_are_whole_after_the_restart() {
    let steps: String = FORMATS
        .iter()
        .map(|(name, ..)| {
            // The older name of WAV, as dialplans write it.
            let name = if *name == "WAV" { "wav49" } else { name };
            format!(" same => n,MixMonitor(k-{name}.{name})\n")
        })
        .collect();
    let dialplan = format!("[test]\nexten => killed,1,Answer()\n{steps} same => n,Wait(60)\n");
    let site = Site::new("killed").phone_with("alice", "allow=ulaw\n").dialplan(&dialplan);
    let mut server = Server::start(site);
    let mut alice = Phone::new(server.site.sip, "alice");
    alice.media.speak(Speak::Tone(ALICE));
    alice.must_call("killed");
    let folder = folder(&server);
    let opens = |name: &str| !server.log().contains(&format!(".{name} cannot be written"));
    let formats: Vec<_> = FORMATS
        .into_iter()
        .filter(|(name, ..)| {
            let opens = opens(name);
            if !opens {
                println!("skipped: {name} is not written on this machine");
            }
            opens
        })
        .map(|(name, header, second)| {
            let file = format!("k-{}.{name}", if name == "WAV" { "wav49" } else { name });
            let path = wait::until(&file, || find(&folder, &file));
            (name, path, header, second)
        })
        .collect();
    // All record one stream: the longest file shows how far it is, whatever a busy machine kept the phone from saying.
    let before = wait::until("all files but for the last second of at least three", || {
        let lengths: Vec<u64> =
            formats.iter().map(|(_, path, header, second)| on_disk(path, *header, *second)).collect();
        let longest = lengths.iter().copied().max().unwrap_or_default();
        (longest >= 3000 && lengths.iter().all(|ms| ms + 1000 >= longest)).then_some(lengths)
    });
    server.kill_and_restart();
    for ((name, path, ..), ms) in formats.iter().zip(before) {
        let linear = path.with_file_name(format!("{name}.linear.sln"));
        let (from, to) = (path.to_string_lossy(), linear.to_string_lossy());
        let samples = wait::until(&format!("{name}, whole"), || {
            server.call(&["codec", "transcode", &from, &to]).status.success().then_some(())?;
            let bytes = std::fs::read(&linear).ok()?;
            let samples: Vec<i16> =
                bytes.as_chunks::<2>().0.iter().map(|pair| i16::from_le_bytes(*pair)).collect();
            // Pages tell where their sound ends, what comes before it (312 samples and more) is not played.
            (samples.len() as u64 / 8 + 20 >= ms).then_some(samples)
        });
        assert!(shares(&samples)[0], "{name}: {} samples", samples.len());
    }
}

#[test]
fn the_record_key_of_a_phone_begins_and_ends_a_recording_of_both() {
    let dialplan = "[test]\nexten => bob,1,Set(__TOUCH_MIXMONITOR=kept)\n same => n,Dial(PJSIP/bob,10,X)\n";
    let site = Site::new("record-key")
        .phone_with("alice", "one_touch_recording=yes\n")
        .phone("bob")
        .add("features.conf", "[featuremap]\nautomixmon => *3\n")
        .dialplan(dialplan);
    let server = Server::start(site);
    let mut alice = Phone::new(server.site.sip, "alice");
    let mut bob = Phone::new(server.site.sip, "bob");
    bob.must_register();
    alice.media.speak(Speak::Tone(ALICE));
    bob.media.speak(Speak::Tone(BOB));
    alice.begin("bob");
    let invite = bob.ring();
    bob.take(&invite);
    assert_eq!(alice.outcome().status(), Some(200));
    wait::until_true("bob hears alice", || bob.media.heard().tone(ALICE) >= 200);
    assert_eq!(bob.inside_with("INFO", "Record: on\r\n").status(), Some(403), "its key is no record key");
    assert_eq!(alice.inside_with("INFO", "Record: on\r\n").status(), Some(200));
    let folder = folder(&server);
    let enough = |file: &Vec<Vec<i16>>| together(&file[0]);
    let name = || {
        let names =
            std::fs::read_dir(folder.join("spool/monitor")).ok()?.flatten().map(|entry| entry.file_name());
        names.filter_map(|name| name.into_string().ok()).find(|name| name.ends_with("-kept.wav"))
    };
    wait::until("both are recorded", || wave(&folder, &name()?).filter(enough));
    assert_eq!(alice.inside_with("INFO", "Record: off\r\n").status(), Some(200));
    wait::until_true("the recording ends", || {
        !server.cli("mixmonitor list PJSIP/alice-00000000").contains("kept.wav")
    });
    bob.media.forget();
    wait::until_true("they still talk", || bob.media.heard().tone(ALICE) >= 200);
    assert_eq!(bob.media.heard().digits(), "", "nobody hears the keys");
    alice.hang_up();
    bob.until_hung_up();
    server.until_idle();
}
