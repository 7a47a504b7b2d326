//! AGI with real programs, servers and manager clients, and with such as hang, flood and trickle.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Stdio};

use e2e::{Owned, Phone, Server, Site, installed, node_with, python, tone, wait};

const SHELL: &str = r#"#!/bin/sh
while read line && [ -n "$line" ]; do
    case "$line" in
        agi_request:*) request=${line#agi_request: } ;;
        agi_arg_1:*) first=${line#agi_arg_1: } ;;
        agi_callerid:*) caller=${line#agi_callerid: } ;;
    esac
done
say() { echo "$1"; read answer; }
say "VERBOSE \"a script in sh\" 1"
say "SET VARIABLE heard \"$request $first $caller $1 $AST_AGI_DIR\""
say "DATABASE PUT agi answer \"$answer\""
exit ${2:-0}
"#;

const PERL: &str = r#"#!/usr/bin/perl
use strict; use warnings;
$| = 1;
my %env;
while (my $line = <STDIN>) {
    chomp $line;
    last if $line eq '';
    $env{$1} = $2 if $line =~ /^agi_(\w+): (.*)$/;
}
sub say_ { my ($command) = @_; print "$command\n"; my $answer = <STDIN>; chomp $answer; return $answer; }
my @told = map { say_($_) } ('ANSWER', 'CHANNEL STATUS', 'STREAM FILE low ""', 'DATABASE PUT agi waits yes', 'WAIT FOR DIGIT 60000', 'NONSENSE');
say_('DATABASE PUT agi perl "' . join('|', $env{type}, @told) . '"');
"#;

/// Listens to the caller on descriptor 3 for a second, says how loud that was, and leaves it in a file.
const HEARS: &str = r#"#!/usr/bin/perl
use strict; use warnings;
$| = 1;
while (my $line = <STDIN>) { chomp $line; last if $line eq ''; }
sub say_ { my ($command) = @_; print "$command\n"; my $answer = <STDIN>; return $answer; }
say_('ANSWER');
open(my $ear, '<&=', 3) or die "no descriptor 3: $!";
binmode $ear;
my $sound = '';
while (length($sound) < 32000) { read($ear, $sound, 320, length($sound)) or last; }
open(my $file, '>', "$ARGV[0].part") or die; binmode $file; print $file $sound; close $file;
rename "$ARGV[0].part", $ARGV[0];
say_('DATABASE PUT agi heard ' . length($sound));
"#;

/// Says what happened to it after the call, by signal or by the lines it could still say.
const OUTLIVES: &str = r#"#!/usr/bin/perl
use strict; use warnings;
$| = 1;
my $signals = 0;
$SIG{HUP} = sub { $signals++ };
while (my $line = <STDIN>) { chomp $line; last if $line eq ''; }
sub say_ { my ($command) = @_; print "$command\n"; my $answer = <STDIN>; chomp $answer; return $answer; }
say_('DATABASE PUT agi ready yes');
my @told = map { say_($_) } ('WAIT FOR DIGIT -1', 'GET VARIABLE EXTEN', 'ANSWER');
say_('DATABASE PUT agi outlived "' . join('|', @told, $signals) . '"');
"#;

const HANGS: &str = "#!/bin/sh\ntrap '' HUP\nexec sleep 120\n";
const FLOODS: &str = "#!/bin/sh\nexec yes NOOP\n";
const LONG: &str = "#!/bin/sh\nhead -c 1048576 /dev/zero | tr '\\0' x\necho\nsleep 120\n";

const DIALPLAN: &str = "
[test]
exten => sh,1,AGI(hello.sh,one two,0)
 same => n,Set(DB(agi/status)=${AGISTATUS} ${heard})
exten => fails,1,AGI(hello.sh,three,7)
 same => n,Set(DB(agi/fails)=${AGISTATUS})
exten => none,1,AGI(none.sh)
 same => n,Set(DB(agi/none)=${AGISTATUS})
exten => plain,1,AGI(plain.txt)
 same => n,Set(DB(agi/plain)=${AGISTATUS})
exten => up,1,AGI(../hello.sh)
 same => n,Set(DB(agi/up)=${AGISTATUS})
exten => perl,1,AGI(hello.pl)
exten => hears,1,EAGI(hears.pl,HEARD)
exten => outlives,1,Answer()
 same => n,AGI(outlives.pl)
exten => hangs,1,Answer()
 same => n,AGI(hangs.sh)
exten => floods,1,Answer()
 same => n,AGI(floods.sh)
exten => long,1,AGI(long.sh)
 same => n,Set(DB(agi/long)=${AGISTATUS})
exten => server,1,AGI(agi://SERVER/steer/me)
 same => n,Set(DB(agi/told)=${heard})
 same => n,Set(DB(agi/server)=${AGISTATUS})
exten => nobody,1,AGI(agi://NOBODY/x)
 same => n,Set(DB(agi/nobody)=${AGISTATUS})
exten => async,1,AGI(agi:async)
 same => n,Set(DB(agi/async)=${AGISTATUS})
exten => quick,1,Answer()
 same => n,Set(DB(agi/quick)=yes)
exten => h,1,Set(DB(ended/${EXTEN}${CALLERID(num)})=${AGISTATUS})
";

/// A running program with the scripts above and two phones. `agi://SERVER` is `to`.
fn server(name: &str, to: SocketAddr) -> Server {
    let nobody = TcpListener::bind((to.ip(), 0)).and_then(|free| free.local_addr()).expect("a port");
    let site = Site::new(name)
        .phone_with("alice", "allow=ulaw\n")
        .phone_with("bob", "allow=ulaw\n")
        .prompt("low", 500.0, 1.0);
    let heard = site.place.join("heard.raw");
    let dialplan = DIALPLAN
        .replace("SERVER", &to.to_string())
        .replace("NOBODY", &nobody.to_string())
        .replace("HEARD", &heard.display().to_string());
    for (file, text) in [
        ("hello.sh", SHELL),
        ("hello.pl", PERL),
        ("hears.pl", HEARS),
        ("outlives.pl", OUTLIVES),
        ("hangs.sh", HANGS),
        ("floods.sh", FLOODS),
        ("long.sh", LONG),
    ] {
        let path = site.place.write(&format!("agi/{file}"), text);
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).expect("executable");
    }
    site.place.write("agi/plain.txt", "no program\n");
    let ip = site.sip.ip();
    let manager = format!(
        "[general]\nenabled=yes\nbindaddr={ip}\n[admin]\nsecret=a-long-manager-secret\nread=agi\nwrite=all\n"
    );
    Server::start(site.dialplan(&dialplan).add("manager.conf", &manager))
}

fn alone(name: &str) -> Server {
    server(name, SocketAddr::new(e2e::address(), 4573))
}

/// Calls an extension whose dialplan ends by itself, and waits for its end.
fn through(phone: &mut Phone, exten: &str) {
    phone.begin(exten);
    phone.outcome();
}

#[test]
fn programs_hear_who_calls_and_steer_the_call() {
    let server = alone("agi-programs");
    let mut alice = Phone::new(server.site.sip, "alice");
    through(&mut alice, "sh");
    let folder = server.site.place.join("agi");
    let told = format!("SUCCESS hello.sh one two alice one two {}", folder.display());
    assert_eq!(server.database("agi", "status"), told);
    assert_eq!(server.database("agi", "answer"), "200 result=1");
    for (exten, status) in [
        ("fails", "FAILURE"),
        ("none", "NOTFOUND"),
        ("plain", "NOTFOUND"),
        ("up", "NOTFOUND"),
        ("nobody", "FAILURE"),
    ] {
        through(&mut alice, exten);
        assert_eq!(server.database("agi", exten), status, "{exten}");
    }
    server.until_idle();
    let rows = server.cli("agi show commands");
    assert!(rows.contains("STREAM FILE") && rows.contains("Dead"), "{rows}");
}

#[test]
fn a_script_plays_and_reads_digits() {
    if !installed(&["perl"]) {
        return;
    }
    let server = alone("agi-perl");
    let mut alice = Phone::new(server.site.sip, "alice");
    alice.must_call("perl");
    wait::until_true("the sound", || alice.media.heard().tone(500.0) >= 800);
    assert_eq!(server.database("agi", "waits"), "yes");
    alice.media.type_digits("7");
    assert_eq!(
        server.database("agi", "perl"),
        "PJSIP|200 result=0|200 result=6|200 result=0 endpos=8000|200 result=1|200 result=55|510 Invalid or unknown command"
    );
    alice.until_hung_up();
    server.until_idle();
}

#[test]
fn a_program_hears_the_caller_by_descriptor_three() {
    if !installed(&["perl"]) {
        return;
    }
    let server = alone("agi-hears");
    let mut alice = Phone::new(server.site.sip, "alice");
    alice.media.speak(e2e::Speak::Tone(700.0));
    alice.must_call("hears");
    assert_eq!(server.database("agi", "heard"), "32000");
    alice.until_hung_up();
    let bytes = std::fs::read(server.site.place.join("heard.raw")).expect("what it heard");
    let samples: Vec<i16> =
        bytes.chunks_exact(2).map(|pair| i16::from_ne_bytes([pair[0], pair[1]])).collect();
    let share = tone::heard(&samples, 8000, 700.0);
    assert!(share >= 1000, "{share} ms of the caller's tone");
    server.until_idle();
}

#[test]
fn a_program_hears_of_the_end_by_a_signal_and_may_go_on() {
    if !installed(&["perl"]) {
        return;
    }
    let server = alone("agi-outlives");
    let mut alice = Phone::new(server.site.sip, "alice");
    // The call may end before the program has begun to wait for a digit, but not each time.
    let waited = (0..20).any(|_| {
        alice.must_call("outlives");
        assert_eq!(server.database("agi", "ready"), "yes");
        alice.hang_up();
        let told = server.database("agi", "outlived");
        for key in ["ready", "outlived"] {
            server.cli(&format!("database del agi {key}"));
        }
        let dead = "511 Command Not Permitted on a dead channel or intercept routine";
        let rest = told.strip_suffix(&format!("|200 result=1 (outlives)|{dead}|1"));
        assert!(matches!(rest, Some("200 result=-1")) || rest == Some(dead), "{told}");
        rest == Some("200 result=-1")
    });
    assert!(waited);
    server.until_idle();
}

#[test]
fn one_that_hangs_or_floods_delays_nobody() {
    let mut server = alone("agi-hangs");
    let (mut alice, mut bob) = (Phone::new(server.site.sip, "alice"), Phone::new(server.site.sip, "bob"));
    for bad in ["hangs", "floods"] {
        alice.must_call(bad);
        bob.must_call("quick");
        assert_eq!(server.database("agi", "quick"), "yes");
        bob.until_hung_up();
        server.cli("database del agi quick");
        alice.hang_up();
    }
    through(&mut bob, "long");
    assert_eq!(server.database("agi", "long"), "FAILURE");
    server.until_logged(&["a line of more than"]);
    server.assert_healthy();
}

/// Takes one connection and reads its first block.
fn accept(listener: &TcpListener) -> (BufReader<TcpStream>, Vec<String>) {
    let (stream, _) = listener.accept().expect("a connection");
    stream.set_read_timeout(Some(wait::SOON)).expect("a limit");
    let mut reader = BufReader::new(stream);
    let mut block = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).expect("a line");
        match line.trim_end() {
            "" => return (reader, block),
            line => block.push(line.to_owned()),
        }
    }
}

fn ask(server: &mut BufReader<TcpStream>, command: &str) -> String {
    server.get_mut().write_all(format!("{command}\n").as_bytes()).expect("it is taken");
    let mut line = String::new();
    server.read_line(&mut line).expect("an answer");
    line.trim_end().to_owned()
}

#[test]
fn a_server_is_told_of_the_end_by_a_line() {
    let listener = TcpListener::bind((e2e::address(), 0)).expect("a listener");
    let server = server("agi-server", listener.local_addr().expect("an address"));
    let mut alice = Phone::new(server.site.sip, "alice");
    alice.begin("server");
    let (mut script, block) = accept(&listener);
    assert_eq!(block[..2], ["agi_network: yes", "agi_network_script: steer/me"]);
    assert!(block[2].starts_with("agi_request: agi://"), "{block:?}");
    assert_eq!(ask(&mut script, "ANSWER"), "200 result=0");
    assert_eq!(alice.outcome().status(), Some(200));
    alice.hang_up();
    let mut line = String::new();
    script.read_line(&mut line).expect("a line");
    assert_eq!(line, "HANGUP\n");
    assert!(ask(&mut script, "ANSWER").starts_with("511 "));
    assert_eq!(ask(&mut script, "GET VARIABLE EXTEN"), "200 result=1 (server)");
    drop(script);
    server.until_idle();
}

#[test]
fn servers_that_are_silent_trickle_flood_and_never_end_a_line_are_bounded() {
    let listener = TcpListener::bind((e2e::address(), 0)).expect("a listener");
    let mut server = server("agi-bad-servers", listener.local_addr().expect("an address"));
    let (mut alice, mut bob) = (Phone::new(server.site.sip, "alice"), Phone::new(server.site.sip, "bob"));
    // One byte after the other: it is one command all the same.
    alice.begin("server");
    let (mut script, _) = accept(&listener);
    for byte in b"ANSWER\n" {
        script.get_mut().write_all(&[*byte]).expect("a byte");
        bob.must_call("quick");
        bob.until_hung_up();
    }
    assert_eq!(alice.outcome().status(), Some(200));
    // It floods and reads nothing: the connection ends.
    let flood = format!("GET FULL VARIABLE {}\n", "x".repeat(10_000)).repeat(10);
    let ended = wait::for_some(wait::SOON, || script.get_mut().write_all(flood.as_bytes()).err());
    assert!(ended.is_some(), "nothing bounds it");
    drop(script);
    assert_eq!(server.database("agi", "server"), "SUCCESS");
    alice.until_hung_up();
    // A line without an end.
    alice.begin("server");
    let (mut script, _) = accept(&listener);
    let rest = vec![b'x'; 1 << 20];
    let _refused = script.get_mut().write_all(&rest);
    let mut answer = Vec::new();
    let _closed = script.read_to_end(&mut answer);
    assert!(answer.is_empty());
    alice.outcome();
    assert_eq!(server.database("agi", "server"), "FAILURE");
    server.assert_healthy();
    server.until_idle();
}

#[test]
fn a_server_from_pypi_steers_a_call() {
    let Some(python) = python() else { return };
    let free = TcpListener::bind((e2e::address(), 0)).and_then(|free| free.local_addr()).expect("a port");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("python/fast_agi_server.py");
    let agi = Command::new(python)
        .arg(script)
        .args([free.ip().to_string(), free.port().to_string()])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn();
    let mut agi = Owned(agi.expect("python starts"));
    let mut said = BufReader::new(agi.0.stdout.take().expect("its output"));
    said.read_line(&mut String::new()).expect("it is ready");
    let server = server("agi-pypi", free);
    let mut alice = Phone::new(server.site.sip, "alice");
    alice.must_call("server");
    wait::until_true("the sound", || alice.media.heard().tone(500.0) >= 800);
    assert_eq!(server.database("agi", "waits"), "yes");
    alice.media.type_digits("4");
    let told = wait::for_some(wait::SOON, || server.database_now("agi", "panoramisk"));
    drop(agi);
    assert_eq!(told.as_deref(), Some("steer/me 0 server 0 4 510"));
    alice.until_hung_up();
    server.until_idle();
}

#[test]
fn a_server_from_npm_steers_a_call() {
    let Some((node, modules)) = node_with("ding-dong") else { return };
    let free = TcpListener::bind((e2e::address(), 0)).and_then(|free| free.local_addr()).expect("a port");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("node/fast_agi_server.js");
    let agi = Command::new(node)
        .env("NODE_PATH", modules)
        .arg(script)
        .args([free.ip().to_string(), free.port().to_string()])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn();
    let mut agi = Owned(agi.expect("node starts"));
    let mut said = BufReader::new(agi.0.stdout.take().expect("its output"));
    said.read_line(&mut String::new()).expect("it is ready");
    let server = server("agi-npm", free);
    let mut alice = Phone::new(server.site.sip, "alice");
    alice.must_call("server");
    wait::until_true("the sound", || alice.media.heard().tone(500.0) >= 800);
    assert_eq!(server.database("agi", "waits"), "yes");
    alice.media.type_digits("4");
    alice.until_hung_up();
    // What it set is there after it has gone.
    assert_eq!(server.database("agi", "server"), "SUCCESS");
    assert_eq!(server.database("agi", "told"), "steer/me 0 server 0 endpos=8000 4 3-alice");
    server.until_idle();
}

#[test]
fn a_manager_steers_a_call() {
    let server = alone("agi-manager");
    let mut alice = Phone::new(server.site.sip, "alice");
    let stream = TcpStream::connect((server.site.sip.ip(), 5038)).expect("the manager port");
    stream.set_read_timeout(Some(wait::SOON)).expect("a limit");
    let mut manager = BufReader::new(stream);
    let mut act = |text: &str| {
        let packet = format!("Action: {}\r\n\r\n", text.replace('|', "\r\n"));
        manager.get_mut().write_all(packet.as_bytes()).expect("it is taken");
    };
    act("Login|Username: admin|Secret: a-long-manager-secret");
    alice.begin("async");
    wait::until_true("the call waits", || server.cli("core show channels").contains("AGI"));
    let channels = server.json("core show channels");
    let channel = channels["channels"][0]["name"].as_str().expect("a channel").to_owned();
    for (command, id) in [("ANSWER", "a"), ("GET VARIABLE EXTEN", "b"), ("ASYNCAGI BREAK", "c")] {
        act(&format!("AGI|Channel: {channel}|Command: {command}|CommandID: {id}"));
    }
    assert_eq!(alice.outcome().status(), Some(200));
    assert_eq!(server.database("agi", "async"), "SUCCESS");
    alice.until_hung_up();
    let mut said = String::new();
    wait::until_true("the end is told", || {
        manager.read_line(&mut said).expect("a line");
        said.contains("Event: AsyncAGIEnd")
    });
    assert!(said.contains("CommandID: b\r\nResult: 200%20result%3D1%20%28async%29%0A\r\n"), "{said}");
    server.until_idle();
}
