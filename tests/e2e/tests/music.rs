//! Music on hold that is not files of sound: a program that plays for all who wait, and MP3.

use std::os::unix::fs::PermissionsExt as _;

use e2e::{Phone, Server, Site, tone, wait};

const LIVE: f64 = 620.0;
const SONG: f64 = 880.0;
const ENOUGH: u32 = 300;

const DIALPLAN: &str = "
[test]
exten => 300,1,Answer()
 same => n,MusicOnHold(live)
exten => 301,1,Answer()
 same => n,MusicOnHold(song)
";

fn hears(phone: &Phone, hertz: f64) {
    phone.media.forget();
    wait::until_true("it is heard", || phone.media.heard().tone(hertz) >= ENOUGH);
}

#[test]
fn one_program_plays_for_all_who_wait_is_started_again_and_ends_with_the_server() {
    let mut site = Site::new("music-program").phone("alice").phone("bob").dialplan(DIALPLAN);
    // Writes a second of sound for ever, faster than it is heard, and leaves a note of each start.
    let (sound, starts) = (site.place.join("second.sln"), site.place.join("starts"));
    let samples = tone::sine(8000, LIVE, 1.0);
    std::fs::write(&sound, samples.iter().flat_map(|sample| sample.to_le_bytes()).collect::<Vec<u8>>())
        .unwrap();
    let player = site.place.join("player");
    let script =
        format!("#!/bin/sh\necho $$ >> {}\nwhile cat {}; do :; done\n", starts.display(), sound.display());
    std::fs::write(&player, script).unwrap();
    std::fs::set_permissions(&player, std::fs::Permissions::from_mode(0o755)).unwrap();
    site.append(
        "musiconhold.conf",
        &format!("[live]\nmode=custom\napplication={}\nkill_escalation_delay=200", player.display()),
    );
    let pids = || {
        let text = std::fs::read_to_string(&starts).unwrap_or_default();
        text.lines().map(str::to_owned).collect::<Vec<_>>()
    };
    let mut server = Server::start(site);
    let classes = server.cli("moh show classes");
    assert!(classes.contains("Class: live\n\tMode: custom\n\tApplication: "), "{classes}");
    assert_eq!(pids(), [""; 0], "nobody listens");
    let (mut alice, mut bob) = (Phone::new(server.site.sip, "alice"), Phone::new(server.site.sip, "bob"));
    alice.must_call("300");
    hears(&alice, LIVE);
    bob.must_call("300");
    hears(&bob, LIVE);
    hears(&alice, LIVE);
    let first = pids();
    assert_eq!(first.len(), 1, "one program for both");

    // It dies, is told of and started again, and those who wait hear it.
    let killed = std::process::Command::new("kill").args(["-KILL", &first[0]]).status().unwrap();
    assert!(killed.success());
    wait::until_true("it is started again", || pids().len() == 2);
    hears(&alice, LIVE);
    hears(&bob, LIVE);
    wait::until_true("the log says so", || {
        server.log().contains("the program of music class 'live' has ended")
    });
    alice.hang_up();
    bob.hang_up();
    server.until_idle();
    let last = pids().pop().expect("a program");
    let _ = server.run("core stop now");
    assert_eq!(server.ended(), Some(0));
    wait::until_true("it ends with the server", || !std::path::Path::new(&format!("/proc/{last}")).exists());
}

#[test]
fn mp3_files_are_played() {
    let site = Site::new("music-mp3").phone("alice").dialplan(DIALPLAN);
    let mp3 = include_bytes!("../../../crates/store/tests/sounds/tone-stereo.mp3");
    site.place.write("data/songs/tone.mp3", mp3);
    let server = Server::start(site.add("musiconhold.conf", "[song]\nmode=quietmp3\ndirectory=songs\n"));
    let files = server.cli("moh show files");
    assert!(files.contains("tone.mp3"), "{files}");
    let mut alice = Phone::new(server.site.sip, "alice");
    alice.must_call("301");
    hears(&alice, SONG);
    alice.hang_up();
    server.until_idle();
}
