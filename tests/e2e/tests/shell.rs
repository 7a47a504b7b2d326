//! Commands of the shell that a dialplan runs, and callers that would like to choose them.

use e2e::{Phone, Server, Site, wait};

const DIALPLAN: &str = "
[test]
exten => run,1,Set(EVIL=x'\\; touch FOLDER/bad \\; echo \"`touch FOLDER/bad`$(touch FOLDER/bad))
 same => n,System(echo ${EVIL} \"${EVIL}\" '${EVIL}' > FOLDER/said)
 same => n,Set(DB(shell/status)=${SYSTEMSTATUS})
 same => n,TrySystem(exit ${IF($[1]?3:4)})
 same => n,Set(DB(shell/try)=${SYSTEMSTATUS})
 same => n,System(FOLDER/no-such-program)
 same => n,Set(DB(shell/none)=${SYSTEMSTATUS})
 same => n,Set(DB(shell/wrote)=${SHELL(cat\\; printf '%s' \"<${EVIL}>\")})
 same => n,Set(DB(shell/done)=yes)
exten => mix,1,Answer()
 same => n,MixMonitor(mix.wav,b,wc -c < \"^{MIXMONITOR_FILENAME}\" > FOLDER/size.part && mv FOLDER/size.part FOLDER/size)
 same => n,Wait(1)
exten => h,1,System(echo ${EXTEN} ended > FOLDER/ended)
 same => n,Set(DB(shell/ended)=${SYSTEMSTATUS})
";

fn server(name: &str) -> Server {
    let site = Site::new(name).phone_with("alice", "allow=ulaw\n");
    let folder = site.place.join("made");
    std::fs::create_dir_all(&folder).expect("a folder");
    Server::start(site.dialplan(&DIALPLAN.replace("FOLDER", &folder.display().to_string())))
}

#[test]
fn a_command_runs_and_the_shell_reads_no_value() {
    let server = server("shell-run");
    let mut alice = Phone::new(server.site.sip, "alice");
    alice.begin("run");
    alice.outcome();
    assert_eq!(server.database("shell", "done"), "yes");
    for (key, expected) in [("status", "SUCCESS"), ("try", "APPERROR"), ("none", "FAILURE")] {
        assert_eq!(server.database("shell", key), expected, "{key}");
    }
    let made = server.site.place.join("made");
    let bad = format!("touch {}/bad", made.display());
    let evil = format!("x'; {bad} ; echo \"`{bad}`$({bad})");
    assert_eq!(server.database("shell", "wrote"), format!("<{evil}>"));
    let said = std::fs::read_to_string(made.join("said")).expect("it was written");
    assert_eq!(said, format!("{evil} {evil} {evil}\n"));
    assert_eq!(server.database("shell", "ended"), "SUCCESS");
    assert!(made.join("ended").exists());
    assert!(!made.join("bad").exists(), "a value was read as a command");
    server.until_idle();
}

#[test]
fn the_command_of_a_recording_finds_the_whole_file() {
    let server = server("shell-mix");
    let mut alice = Phone::new(server.site.sip, "alice");
    alice.must_call("mix");
    alice.until_hung_up();
    let size = server.site.place.join("made/size");
    wait::until_true("the command has run", || size.exists());
    let size: u64 = std::fs::read_to_string(size).expect("text").trim().parse().expect("a number");
    assert!(size >= 44, "{size}");
    server.until_idle();
}
