//! ControlPlayback: sounds that keys (RFC 4733) and managers wind, pause, start over and end, told by what is heard.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use e2e::{Phone, Server, Site, tone, wait};

/// The steps of the sound.
const STEPS: [f64; 5] = [400.0, 600.0, 800.0, 1000.0, 1200.0];
/// Seconds of each: so late may keys come on a busy machine.
const LONG: u32 = 4;
/// Milliseconds of a step that count as heard.
const SOME: u32 = 200;

const DIALPLAN: &str = "
[test]
exten => steps,1,Answer()
 same => n,ControlPlayback(steps,6000,#,*,0,5,8)
 same => n,Set(DB(steered/status)=${CPLAYBACKSTATUS} ${CPLAYBACKSTOPKEY})
 same => n,Wait(30)
";
const SECRET: &str = "a-long-manager-secret";

fn server(name: &str) -> Server {
    let steps: Vec<i16> = STEPS.iter().flat_map(|hertz| tone::sine(8000, *hertz, LONG.into())).collect();
    let site = Site::new(name)
        .phone_with("alice", "allow=ulaw\n")
        .phone_with("bob", "allow=alaw\n")
        .spoken("steps", &steps)
        .dialplan(DIALPLAN);
    let ip = site.sip.ip();
    let manager =
        format!("[general]\nenabled=yes\nbindaddr={ip}\n[admin]\nsecret={SECRET}\nread=all\nwrite=all\n");
    Server::start(site.add("manager.conf", &manager))
}

/// Waits until this step is heard, from now on.
fn hear(phone: &Phone, step: usize) {
    phone.media.forget();
    wait::until_true(&format!("step {step}"), || phone.media.heard().tone(STEPS[step]) >= SOME);
}

/// Waits until packets have ceased to come.
fn until_quiet(phone: &Phone) {
    let (mut count, mut still) = (0, 0);
    wait::until_true("no packets", || {
        let now = phone.media.received();
        still = if now == count { still + 1 } else { 0 };
        count = now;
        still > 20
    });
}

#[test]
fn keys_wind_start_over_pause_and_end_a_sound() {
    let server = server("keys");
    let mut alice = Phone::new(server.site.sip, "alice");
    alice.must_call("steps");
    hear(&alice, 0);
    alice.media.forget();
    alice.media.type_digits("#");
    wait::until_true("step 2", || alice.media.heard().tone(STEPS[2]) >= SOME);
    let second = alice.media.heard().tone(STEPS[1]);
    assert!(second < LONG * 750, "one and a half steps were left out, and {second} ms of step 1 were heard");
    hear(&alice, 3);
    alice.media.type_digits("*");
    hear(&alice, 2);
    alice.media.type_digits("8");
    hear(&alice, 0);
    alice.media.type_digits("5");
    until_quiet(&alice);
    alice.media.forget();
    alice.media.type_digits("5");
    wait::until_true("it goes on where it rested", || {
        let heard = alice.media.heard();
        heard.tone(STEPS[0]) + heard.tone(STEPS[1]) >= SOME
    });
    alice.media.type_digits("0");
    let status = wait::until("the status", || server.database_now("steered", "status"));
    assert_eq!(status.trim(), "USERSTOPPED 0");
    alice.hang_up();
    server.until_idle();
}

/// Logs in and gives a function that asks for an action and returns what is answered up to the given words.
fn manager(server: &Server) -> impl FnMut(&str, &str) {
    let mut stream = TcpStream::connect((server.site.sip.ip(), 5038)).expect("a connection");
    stream.set_read_timeout(Some(wait::SOON)).expect("a limit");
    let mut ask = move |action: &str, words: &str| {
        let lines = action.replace('\n', "\r\n");
        stream.write_all(format!("{lines}\r\n\r\n").as_bytes()).expect("the action leaves");
        let mut said = String::new();
        let mut room = [0; 4096];
        while !said.contains(words) {
            let count = stream.read(&mut room).expect("an answer");
            assert!(count > 0, "no {words} in: {said}");
            said.push_str(&String::from_utf8_lossy(&room[..count]));
        }
    };
    ask(&format!("Action: Login\nUsername: admin\nSecret: {SECRET}\nEvents: off"), "Authentication accepted");
    ask
}

#[test]
fn a_manager_steers_the_sound_of_a_call() {
    let server = server("steered");
    let mut bob = Phone::new(server.site.sip, "bob");
    bob.codecs = vec![8];
    bob.must_call("steps");
    let channels = server.cli("core show channels concise");
    let channel = channels.split('!').next().unwrap_or_default().trim().to_owned();
    let mut ask = manager(&server);
    let mut steer = |control: &str| {
        ask(&format!("Action: ControlPlayback\nChannel: {channel}\nControl: {control}"), "Response: Success");
    };
    wait::until_true("sound", || bob.media.received() > 10);
    steer("pause");
    until_quiet(&bob);
    let before = bob.media.received();
    steer("restart");
    wait::until_true("sound again", || bob.media.received() > before + 10);
    for control in ["forward", "reverse", "stop"] {
        steer(control);
    }
    let status = wait::until("the status", || server.database_now("steered", "status"));
    assert_eq!(status.trim(), "REMOTESTOPPED");
    bob.hang_up();
    server.until_idle();
}
