//! Bridges of the whole program that the XDP program relays, in network namespaces of the test: audio goes on whatever
//! brings them back, and time-outs hold for what no media thread sees.
//!
//! Skipped with a printed reason without the privileges, or a kernel that can.

use std::net::SocketAddr;

use e2e::{Phone, Server, Site, Speak, World, tone, wait};

const ALICE: f64 = 440.0;
const BOB: f64 = 750.0;
const MUSIC: f64 = 1200.0;
/// Milliseconds of a tone that are enough to know it.
const ENOUGH: u32 = 500;
/// Seconds of silence after which a call ends: a machine that is busy keeps a phone from talking for one or two.
const TIMEOUT: u64 = 6;

const DIALPLAN: &str = "
[test]
exten => bob,1,Dial(PJSIP/bob,10)
";

/// Runs a test with program and phones on two ends of a wire, where the program relays in the kernel.
fn below(name: &str, test: fn(&World, &mut Server)) {
    let world = World::wire(name).and_then(|world| world.take_frames().map(|()| world));
    let world = match world {
        Ok(world) => world,
        Err(why) => return println!("skipped: {why}"),
    };
    let mut site = Site::at(name, SocketAddr::new(world.program, 5060))
        .phone_with("alice", &format!("rtp_timeout={TIMEOUT}\n"))
        .phone_with("bob", &format!("rtp_timeout={TIMEOUT}\n"))
        .music(MUSIC, 3.0)
        .dialplan(DIALPLAN);
    let interface = World::INTERFACE;
    site.rewrite(
        "rtp.conf",
        &format!("[general]\nmedia_io = xdp\nmedia_interfaces = {interface}\nkernel_relay = yes\nmedia_workers = 1\n"),
    );
    let server = world.at_program(|| Server::try_start(site));
    let mut server = match server {
        Ok(server) => server,
        Err(refused) => return println!("skipped: {}", refused.said),
    };
    let io = server.json("media show io");
    if io["kernel_relay"] != true {
        return println!("skipped: {}", io["reason"]);
    }
    world.at_phones(|| test(&world, &mut server));
    server.assert_healthy();
}

/// Bridges that are below, and packets that were relayed there since the start.
fn relays(server: &Server) -> (u64, u64) {
    let io = server.json("media show io");
    let sum = |name: &str| {
        let workers = io["workers"].as_array().expect("workers");
        workers.iter().map(|worker| worker[name].as_u64().expect("a number")).sum()
    };
    (sum("relays"), sum("relayed"))
}

/// Waits until no bridge is below: a worker tells its counters some times a second.
fn until_above(server: &Server, what: &str) {
    wait::until_true(&format!("{what}: no bridge is below"), || relays(server).0 == 0);
}

/// Waits until so many packets went the kernel's way from here on.
fn relayed_more(server: &Server, packets: u64) {
    let (_, before) = relays(server);
    wait::until_true("packets below", || relays(server).1 >= before + packets);
}

struct Pair {
    alice: Phone,
    bob: Phone,
}

impl Pair {
    fn call(world: &World, server: &Server) -> Self {
        let phone = |name| Phone::at(world.phones, server.site.sip, name);
        let (mut alice, mut bob) = (phone("alice"), phone("bob"));
        bob.must_register();
        alice.media.speak(Speak::Tone(ALICE));
        bob.media.speak(Speak::Tone(BOB));
        alice.begin("bob");
        let invite = bob.ring();
        bob.take(&invite);
        assert_eq!(alice.outcome().status(), Some(200));
        Self { alice, bob }
    }
    /// Each hears the other, from here on.
    fn hear(&self, what: &str) {
        self.alice.media.forget();
        self.bob.media.forget();
        wait::until_true(&format!("{what}: bob hears alice"), || {
            self.bob.media.heard().tone(ALICE) >= ENOUGH
        });
        wait::until_true(&format!("{what}: alice hears bob"), || {
            self.alice.media.heard().tone(BOB) >= ENOUGH
        });
    }
    /// Their bridge is below, and each hears the other there.
    fn below(&self, server: &Server, what: &str) {
        relayed_more(server, 50);
        self.hear(what);
    }
}

#[test]
fn rfc3550_5_1_audio_goes_on_while_hold_recording_digits_and_another_address_bring_a_bridge_up_and_it_goes_down_again()
 {
    below("e2ein", |world, server| {
        let mut pair = Pair::call(world, server);
        pair.below(server, "a call");

        let channels = server.json("core show channels");
        let name = channels["channels"]
            .as_array()
            .and_then(|all| {
                all.iter().filter_map(|one| one["name"].as_str()).find(|name| name.contains("alice"))
            })
            .expect("a channel of alice")
            .to_owned();
        server.cli(&format!("mixmonitor start {name} both.wav"));
        until_above(server, "recorded");
        pair.hear("recorded");
        wait::until_true("sound of both is written", || recorded(server));
        server.cli(&format!("mixmonitor stop {name}"));
        pair.below(server, "after the recording");

        pair.alice.media.type_digits("42#");
        wait::until_true("bob is told the digits", || pair.bob.media.heard().digits() == "42#");
        assert_eq!(pair.bob.media.heard().lost(), 0, "numbers go on across the digits");
        pair.below(server, "after digits");

        pair.alice.reinvite("sendonly");
        wait::until_true("bob hears music", || pair.bob.media.heard().tone(MUSIC) >= ENOUGH);
        until_above(server, "on hold");
        pair.alice.reinvite("sendrecv");
        pair.below(server, "after hold");

        let before = pair.alice.media.local();
        pair.alice.move_media();
        assert_ne!(before, pair.alice.media.local());
        pair.alice.media.speak(Speak::Tone(ALICE));
        pair.alice.reinvite("sendrecv");
        pair.below(server, "at another address");

        pair.alice.hang_up();
        pair.bob.until_hung_up();
        server.until_idle();
        until_above(server, "after the call");
    });
}

/// Whether the recording has the tones of both.
fn recorded(server: &Server) -> bool {
    let path = server.site.place.join("spool/monitor/both.wav");
    let Some((rate, samples)) = tone::read_wav(&path) else { return false };
    [ALICE, BOB].iter().all(|hertz| tone::share(&samples, rate, *hertz) > 0.2)
}

#[test]
fn who_talks_below_is_not_timed_out_and_who_falls_silent_there_is() {
    below("e2eout", |world, server| {
        let mut pair = Pair::call(world, server);
        pair.below(server, "a call");
        // Both directions, for longer than the silence that ends a call.
        relayed_more(server, 2 * 50 * (TIMEOUT + 1));
        pair.hear("long after the time-out");
        pair.alice.media.speak(Speak::Nothing);
        pair.bob.until_hung_up();
        pair.alice.until_hung_up();
        server.until_idle();
        server.until_logged(&["alice", "RTP"]);
    });
}
