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
exten => killed,1,Answer()
 same => n,MixMonitor(${EXTEN}.wav)
 same => n,Wait(60)
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

fn shares(samples: &[i16]) -> [bool; 2] {
    let middle = &samples[samples.len() / 4..samples.len() * 3 / 4];
    [ALICE, BOB].map(|hertz| tone::share(middle, 8000, hertz) > 0.2)
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
    assert_eq!(shares(&mixed[0]), [true, true]);
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
fn a_recording_survives_a_kill_but_for_the_last_second_and_plays_after_the_restart() {
    let mut server = server("killed");
    let mut alice = Phone::new(server.site.sip, "alice");
    alice.media.speak(Speak::Tone(ALICE));
    alice.must_call("killed");
    let folder = folder(&server);
    let long = |file: &Vec<Vec<i16>>| file[0].len() >= 2 * 8000;
    wait::until("two seconds on disk", || wave(&folder, "killed.wav").filter(|file| long(file)));
    server.kill_and_restart();
    let file = wait::until("a file that is whole", || wave(&folder, "killed.wav"));
    assert!(long(&file) && shares(&file[0])[0], "{} samples", file[0].len());
}
