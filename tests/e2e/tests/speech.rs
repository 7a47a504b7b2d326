//! What the program says by itself: text that a synthesiser speaks, numbers in the words of a language, and the prompts that
//! Debian packages.

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use e2e::likeness::{Clip, WAVEFORM, resample};
use e2e::{Phone, Server, Site, tone, wait};

const TEXT: &str = "The quick brown fox jumps over the lazy dog, and then the dog sleeps until the evening comes, \
                    while the fox goes home and thinks about tomorrow";

/// What espeak-ng says at 8 kHz; `None` when it is not installed.
fn spoken(voice: &str, text: &str) -> Option<Vec<i16>> {
    let mut program = Command::new("espeak-ng");
    let mut child = program
        .args(["-v", voice, "--stdin", "--stdout"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .ok()?;
    child.stdin.take()?.write_all(text.as_bytes()).ok()?;
    let wave = child.wait_with_output().ok()?.stdout;
    let samples: Vec<i16> =
        wave.get(44..)?.as_chunks::<2>().0.iter().map(|pair| i16::from_le_bytes(*pair)).collect();
    let rate = u32::from_le_bytes(*wave.get(24..28)?.first_chunk()?);
    Some(resample(&samples, rate as usize, 8000))
}

#[test]
fn a_phone_hears_the_text_that_playback_and_espeak_are_given() {
    let Some(said) = spoken("en", TEXT) else {
        println!("skipped: espeak-ng is not installed");
        return;
    };
    let clip = Clip::new(&said);
    let plan = format!(
        "[test]\nexten => say,1,Answer()\n same => n,Playback(\"say:{TEXT}\")\n \
         same => n,Set(DB(said/status)=${{PLAYBACKSTATUS}})\n same => n,Espeak(\"{TEXT}\")\n same => n,Wait(30)\n"
    );
    let server = Server::start(Site::new("speech").phone_with("alice", "allow=ulaw\n").dialplan(&plan));
    let mut alice = Phone::new(server.site.sip, "alice");
    alice.must_call("say");
    let long = u32::try_from(said.len() / 8).unwrap_or(u32::MAX);
    wait::until_true("the text, twice", || alice.media.heard().sounding() > long);
    let found = clip.find(&alice.media.heard().audio(), WAVEFORM);
    assert!(found.good >= 2, "{found:.2?}");
    assert_eq!(server.database("said", "status"), "SUCCESS");
    alice.hang_up();
    server.until_idle();
}

#[test]
fn a_program_of_tts_conf_speaks_and_one_that_cannot_is_said() {
    let site = Site::new("speech-program").phone_with("alice", "allow=ulaw\n");
    // A synthesiser that says everything as one tone, and keeps what it was told.
    let wave = site.place.join("tone.wav");
    std::fs::write(&wave, tone::wav(8000, 1, &tone::sine(8000, 700.0, 2.0))).unwrap();
    let told = site.place.join("told");
    let program = site.place.join("speak");
    let script = format!(
        "#!/bin/sh\ncat >> {}\necho \"$1\" >> {}\ncat {}\n",
        told.display(),
        told.display(),
        wave.display()
    );
    std::fs::write(&program, script).unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&program, mode).unwrap();
    let plan = "[test]\nexten => say,1,Answer()\n same => n,Set(CHANNEL(language)=de_AT)\n \
                same => n,Festival(\"$(reboot) Grüße, `id`\",any)\n same => n,Wait(30)\n";
    let tts = format!("[general]\nprogram={}\narguments={{voice}}\n[voices]\nde=deep\n", program.display());
    let server = Server::start(site.add("tts.conf", &tts).dialplan(plan));
    let mut alice = Phone::new(server.site.sip, "alice");
    alice.must_call("say");
    wait::until_true("the voice", || alice.media.heard().tone(700.0) >= 1500);
    assert_eq!(std::fs::read_to_string(&told).unwrap(), "$(reboot) Grüße, `id`\ndeep\n");
    alice.hang_up();
    server.until_idle();
}

#[test]
fn a_number_is_said_in_german_order() {
    let words = [("1N", 400.0), ("hundred", 600.0), ("1-and", 800.0), ("20", 1000.0)];
    let mut site = Site::new("speech-german").phone_with("alice", "allow=ulaw\n");
    for (word, hertz) in words {
        let file = format!("data/sounds/de/digits/{word}.wav");
        site.place.write(&file, tone::wav(8000, 1, &tone::sine(8000, hertz, 1.0)));
    }
    site = site.dialplan(
        "[test]\nexten => number,1,Answer()\n same => n,Set(CHANNEL(language)=de_AT)\n same => n,SayNumber(121)\n \
         same => n,Wait(30)\n",
    );
    let server = Server::start(site);
    let mut alice = Phone::new(server.site.sip, "alice");
    alice.must_call("number");
    wait::until_true("all four words", || {
        words.iter().all(|(_, hertz)| alice.media.heard().tone(*hertz) >= 900)
    });
    // Each word begins after the one before it.
    let audio = alice.media.heard().audio();
    let begins = |hertz: f64| audio.chunks_exact(160).position(|part| tone::heard(part, 8000, hertz) > 0);
    let order: Vec<_> = words.iter().map(|(_, hertz)| begins(*hertz)).collect();
    assert!(order.is_sorted() && order.iter().all(Option::is_some), "{order:?}");
    alice.hang_up();
    server.until_idle();
}

#[test]
fn numbers_are_said_with_the_prompts_that_debian_packages() {
    let folder = Path::new("/usr/share/asterisk/sounds");
    let languages: Vec<&str> = ["en", "es", "fr", "it", "ru"]
        .into_iter()
        .filter(|language| folder.join(language).join("digits").is_dir())
        .collect();
    if languages.is_empty() {
        println!("skipped: no asterisk-core-sounds-* is installed");
        return;
    }
    let mut plan = "[test]\nexten => number,1,Answer()\n".to_owned();
    for language in &languages {
        // What every packaged set has words for.
        plan.push_str(&format!(" same => n,Set(CHANNEL(language)={language})\n same => n,SayNumber(77)\n same => n,SayOrdinal(3)\n"));
    }
    plan.push_str(" same => n,Set(DB(said/all)=yes)\n same => n,Wait(30)\n");
    let server =
        Server::start(Site::new("speech-packaged").phone_with("alice", "allow=ulaw\n").dialplan(&plan));
    let mut alice = Phone::new(server.site.sip, "alice");
    alice.must_call("number");
    wait::until("all is said", || server.database_now("said", "all"));
    let log = server.log();
    assert!(
        !log.contains("English order") && !log.contains("does not exist in any format"),
        "{languages:?}: {log}"
    );
    assert!(alice.media.heard().sounding() > 1000 * languages.len() as u32, "{languages:?}");
    alice.hang_up();
    server.until_idle();
}
