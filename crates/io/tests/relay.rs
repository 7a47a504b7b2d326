//! Bridges that the XDP program relays, between network namespaces: when it takes one over, what brings it back, what the
//! far end hears meanwhile, and whom it does not serve.
//!
//! Skipped with a printed reason without the privileges, or a kernel that can.

#[path = "backends/world.rs"]
#[allow(dead_code, reason = "the tests of back-ends need more of it")]
mod world;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant as Wall};

use base::{
    Clip, Command, Direction, DtmfMode, Event, FormatId, Latch, MonitorSettings, MonitorSinks, Plan, PlayId,
    RxPayload, StreamId, StreamStats,
};
use io::media::{IoWish, MediaFront, Tracing, Watch};
use rtp::{Header, rtcp};
use world::{Phone, World, await_event, patiently, plan};

/// Payload type of telephone-events here.
const EVENT: u8 = 101;
/// A bridge is looked at once a second; nothing waits so long unless it fails.
const PATIENCE: Duration = Duration::from_secs(60);

/// Runs a scenario where bridges are relayed by the XDP program.
fn below(name: &str, scenario: fn(&World, &mut MediaFront)) {
    let world = World::veth(name).and_then(|mut world| world.relay_in_kernel().map(|()| world));
    let world = match world {
        Ok(world) => world,
        Err(why) => return println!("skipped: {why}"),
    };
    world.inside(|| {
        let mut front = match world.front(IoWish::Xdp, 1) {
            Ok(front) => front,
            Err(why) => return println!("skipped: {why}"),
        };
        if let Err(why) = front.io().kernel_relay() {
            return println!("skipped: {why}");
        }
        scenario(&world, &mut front);
        assert_eq!(front.loads().total().panics, 0);
    });
}

/// A plan with telephone-events.
fn phone_plan(phone: &Phone, ssrc: u32) -> Plan {
    let mut plan = plan(Some(phone.address()));
    plan.rx[1] = Some(RxPayload::Event(EVENT, 8000));
    plan.dtmf = DtmfMode::Rfc4733 { payload: EVENT, clock: 8000 };
    (plan.ssrc, plan.first_sequence, plan.first_timestamp) = (ssrc, 65_400, u32::MAX - 9_000);
    plan
}

/// Two phones of one bridge, and what each has heard last.
struct Call {
    phones: [Phone; 2],
    streams: [StreamId; 2],
    heard: [Option<Header>; 2],
    round: u8,
    /// Times that a bridge had gone below when this one was seen there last.
    begun: u64,
}

impl Call {
    fn begin(world: &World, front: &mut MediaFront) -> Self {
        let mut phones = [world.phone(0), world.phone(1)];
        let mut streams = [StreamId::new(0, 0); 2];
        for (n, phone) in phones.iter_mut().enumerate() {
            let (stream, port) = front.open(world.ip, phone_plan(phone, 0x700 + n as u32)).unwrap();
            phone.to = SocketAddr::new(world.ip, port);
            streams[n] = stream;
        }
        let mut call = Self { phones, streams, heard: [None; 2], round: 0, begun: 0 };
        call.join(front);
        call
    }
    fn join(&mut self, front: &mut MediaFront) {
        let [a, b] = self.streams;
        front.command(Command::Join { a, b });
        self.settle(front);
    }
    /// Waits until everything that was asked so far has happened.
    fn settle(&self, front: &mut MediaFront) {
        for stream in self.streams {
            stats(front, stream);
        }
    }
    /// What a phone hears next has to follow what it heard: by one number, and as many samples as were said.
    fn hear(&mut self, phone: usize, byte: u8) {
        let (header, heard) = self.phones[phone].hear();
        assert_eq!((header.payload_type, heard), (0, byte), "phone {phone}");
        assert_eq!(self.phones[phone].last_from(), Some(self.phones[phone].to));
        self.follows(phone, header);
    }
    fn follows(&mut self, phone: usize, header: Header) {
        if let Some(before) = self.heard[phone].replace(header) {
            assert_eq!(header.ssrc, before.ssrc);
            assert_eq!(header.sequence, before.sequence.wrapping_add(1), "{before:?} {header:?}");
            let step = header.timestamp.wrapping_sub(before.timestamp);
            assert!(step == 160 || header.marker && step < 1 << 20, "{before:?} {header:?}");
        }
    }
    /// Each says one thing and hears the other's.
    fn talk(&mut self, rounds: usize) {
        for _ in 0..rounds {
            self.round = self.round.wrapping_add(1);
            for (from, to) in [(0, 1), (1, 0)] {
                let byte = self.round ^ if from == 0 { 0 } else { 0x80 };
                self.phones[from].say(byte);
                self.hear(to, byte);
            }
        }
    }
    /// Talks until so many bridges are below.
    fn talk_until(&mut self, front: &mut MediaFront, relays: u64) {
        let give_up = Wall::now() + PATIENCE;
        while front.loads().total().relays != relays {
            assert!(Wall::now() < give_up, "{relays} bridges below");
            self.talk(1);
            front.drain_events(|_| ());
        }
    }
    /// Talks below, and sees that it is so. A neighbour that is being asked for anew may bring the bridge up for a second.
    fn talk_below(&mut self, front: &mut MediaFront) {
        let give_up = Wall::now() + 2 * PATIENCE;
        loop {
            self.settle(front);
            worker(front);
            self.talk_until(front, 1);
            self.settle(front);
            let before = worker(front);
            self.talk(50);
            self.settle(front);
            let after = worker(front);
            if after.relayed >= before.relayed + 90 {
                self.begun = after.relays_begun;
                return;
            }
            println!("{} of 100 packets below: {before:?} {after:?}", after.relayed - before.relayed);
            assert!(Wall::now() < give_up, "both directions are below");
        }
    }
}

/// Waits until no bridge is below.
fn await_above(front: &mut MediaFront, what: &str) {
    let give_up = Wall::now() + PATIENCE;
    while worker(front).relays > 0 {
        assert!(Wall::now() < give_up, "{what} brings the bridge back");
    }
}
/// Packets sent, by the next report; nothing when it is that of a stream that says nothing at present.
fn reported(control: &Phone) -> Option<u32> {
    let mut buffer = [0; 1500];
    let length = patiently(|| control.socket.recv(&mut buffer)).unwrap();
    rtcp::Compound::parse(&buffer[..length]).unwrap().find_map(|part| match part {
        rtcp::Packet::Report { sender, .. } => sender.map(|sender| sender.packets),
        _ => None,
    })
}
/// The counters, no older than the call.
fn worker(front: &mut MediaFront) -> io::media::WorkerLoad {
    let ticks = front.loads().total().ticks;
    let give_up = Wall::now() + PATIENCE;
    loop {
        let load = front.loads().total();
        if load.ticks > ticks {
            return load;
        }
        assert!(Wall::now() < give_up);
        front.drain_events(|_| ());
        std::thread::yield_now();
    }
}
fn stats(front: &mut MediaFront, stream: StreamId) -> StreamStats {
    front.command(Command::Stats { stream });
    let events = await_event(
        front,
        |event| matches!(event, Event::Stats { stream: s, asked: true, .. } if *s == stream),
    );
    let stats = events.iter().rev().find_map(|event| match event {
        Event::Stats { stats, asked: true, .. } => Some(*stats),
        _ => None,
    });
    stats.unwrap()
}

#[test]
fn rfc3550_5_1_a_bridge_goes_below_and_comes_back_for_everything_that_wants_its_packets() {
    below("inout", |world, front| {
        let mut call = Call::begin(world, front);
        let [a, b] = call.streams;
        call.talk_below(front);
        let prompt =
            Clip { format: FormatId::ULAW, data: vec![0x55; 160].into(), loop_from: None, packets: None };
        let prompt = Arc::new(prompt);
        let nothing = || Box::new(MonitorSinks { mixed: None, heard: None, said: None });
        let settings = MonitorSettings::default();
        let format = FormatId::SLIN;
        let mut held = phone_plan(&call.phones[0], 0x700);
        held.direction = Direction::Inactive;
        let resumed = phone_plan(&call.phones[0], 0x700);
        type Step<'a> = Box<dyn FnOnce(&mut MediaFront, &mut Call) + 'a>;
        let command = |command: Command| -> Step<'_> { Box::new(move |front, _| front.command(command)) };
        let changes: Vec<(&str, Step<'_>, Step<'_>)> = vec![
            (
                "recording",
                command(Command::Monitor { stream: a, monitor: 1, format, settings, sinks: nothing() }),
                command(Command::StopMonitor { stream: a, monitor: 1 }),
            ),
            (
                "rtp set debug on",
                Box::new(|front, _| front.trace(Tracing { rtp: Watch::All, ..Tracing::default() })),
                Box::new(|front, _| front.trace(Tracing::default())),
            ),
            (
                "playback",
                command(Command::Play { stream: b, play: PlayId(1), clip: prompt, offset: 0 }),
                Box::new(|_, call| {
                    let (header, byte) = call.phones[1].hear();
                    assert_eq!(byte, 0x55);
                    call.follows(1, header);
                }),
            ),
            (
                "hold",
                command(Command::Plan { stream: a, plan: Box::new(held) }),
                command(Command::Plan { stream: a, plan: Box::new(resumed) }),
            ),
            (
                "in-band digits",
                command(Command::DetectInband { stream: b, on: true }),
                command(Command::DetectInband { stream: b, on: false }),
            ),
            ("part", command(Command::Part { stream: a }), Box::new(|front, call| call.join(front))),
        ];
        for (name, change, undo) in changes {
            println!("{name}");
            let begun = call.begun;
            change(front, &mut call);
            call.settle(front);
            // A prompt ends by itself, and the bridge goes below again.
            if name != "playback" {
                await_above(front, name);
            }
            if matches!(name, "recording" | "rtp set debug on" | "in-band digits") {
                call.talk(20);
            }
            undo(front, &mut call);
            call.settle(front);
            call.talk_below(front);
            assert!(call.begun > begun, "{name} brings the bridge back");
        }
        let load = worker(front);
        assert!(load.relays_begun >= 7, "{}", load.relays_begun);
        assert!(call.heard[0].unwrap().sequence < 60_000, "numbers have wrapped around");
    });
}

#[test]
fn rfc4733_digits_come_up_are_passed_on_once_and_the_numbers_go_on() {
    below("dtmf", |world, front| {
        let mut call = Call::begin(world, front);
        let [a, b] = call.streams;
        // One that is dialled here, and one that the peer dials.
        for dialled in [true, false] {
            call.talk_below(front);
            let begun = call.begun;
            if dialled {
                let digit = base::Digit::from_char('5').unwrap();
                front.command(Command::SendDigit { stream: b, digit, duration_ms: 100 });
            } else {
                let mut header = call.phones[0].header();
                header.payload_type = EVENT;
                for (n, duration) in [160_u16, 320, 480, 480, 480].into_iter().enumerate() {
                    let payload = rtp::EventPayload { event: 5, end: n >= 2, volume: 10, duration }.write();
                    let numbered = Header { sequence: header.sequence.wrapping_add(n as u16), ..header };
                    call.phones[0].send(&[&rtp::write(&numbered)[..], &payload].concat());
                }
                call.phones[0].skip(4);
                let events = await_event(front, |event| matches!(event, Event::DigitEnd { .. }));
                let begun =
                    |event: &&Event| matches!(event, Event::DigitBegin { stream, .. } if *stream == a);
                assert_eq!(events.iter().filter(begun).count(), 1);
            }
            // The other phone hears one event under numbers that follow the audio's.
            let (mut ends, mut timestamp) = (0, None);
            while ends < 3 {
                let mut buffer = [0; 256];
                let length = patiently(|| call.phones[1].socket.recv(&mut buffer)).unwrap();
                let (header, payload) = rtp::parse(&buffer[..length]).unwrap();
                assert_eq!(header.payload_type, EVENT);
                assert_eq!(*timestamp.get_or_insert(header.timestamp), header.timestamp);
                let before = call.heard[1].replace(header).unwrap();
                assert_eq!(header.sequence, before.sequence.wrapping_add(1));
                assert!(header.timestamp.wrapping_sub(before.timestamp) < 1 << 20);
                let event = rtp::EventPayload::parse(&buffer[payload]).unwrap();
                assert_eq!(event.event, 5);
                ends += usize::from(event.end);
            }
            call.talk_below(front);
            assert!(call.begun > begun, "a digit brings the bridge back");
        }
    });
}

#[test]
fn a_re_invite_with_another_address_moves_the_bridge_with_it() {
    below("moved", |world, front| {
        let mut call = Call::begin(world, front);
        call.talk_below(front);
        // Alice's call goes on at another phone, on the other side of the router.
        let mut moved = world.phone(3);
        (moved.to, moved.ssrc) = (call.phones[0].to, 0xbeef);
        front.command(Command::Plan { stream: call.streams[0], plan: Box::new(phone_plan(&moved, 0x700)) });
        call.settle(front);
        let mut old = std::mem::replace(&mut call.phones[0], moved);
        for _ in 0..100 {
            old.say(66);
        }
        call.talk_below(front);
        for _ in 0..100 {
            old.say(66);
        }
        call.talk(10);
        assert!(old.heard_nothing());
    });
}

#[test]
fn rfc3550_5_1_timestamps_that_begin_anew_below_go_on_for_the_peer() {
    below("anew", |world, front| {
        let mut call = Call::begin(world, front);
        for jump in [0x4000_0000, 0u32.wrapping_sub(80_000)] {
            call.talk_below(front);
            let plain = call.phones[0].header();
            let anew = Header { timestamp: plain.timestamp.wrapping_add(jump), ..plain };
            call.phones[0].send(&[&rtp::write(&anew)[..], &[44; 160]].concat());
            call.hear(1, 44);
        }
    });
}

#[test]
fn a_stranger_and_whatever_is_not_the_next_packet_of_the_source_is_not_relayed() {
    below("hostile", |world, front| {
        let mut call = Call::begin(world, front);
        call.talk_below(front);
        let [a, b] = call.streams;
        // From elsewhere, with the numbers of the next packet.
        let mut thief = world.phone(0);
        for target in 0..2 {
            thief.to = call.phones[target].to;
            let next = Header { sequence: call.phones[target].header().sequence, ..thief.header() };
            for n in 0..50 {
                let header = Header { sequence: next.sequence.wrapping_add(n), ..next };
                thief.send(&[&rtp::write(&header)[..], &[66; 160]].concat());
            }
            // The number was Alice's to lose.
            call.heard[1 - target] = None;
        }
        call.talk(10);
        // From the source, but no plain packet of it.
        let before = stats(front, b).sent_packets;
        let plain = rtp::write(&call.phones[0].header());
        call.heard[1] = None;
        let with = |at: usize, byte: u8| {
            let mut packet = [&plain[..], &[66; 160]].concat();
            packet[at] = byte;
            packet
        };
        let junk = [
            ("version 1", with(0, 0x40)),
            ("nothing", Vec::new()),
            ("no payload", plain.to_vec()),
            ("cut header", plain[..11].to_vec()),
            ("more sources than there is room for", with(0, 0x8f)[..40].to_vec()),
            ("padding longer than the packet", [&with(0, 0xa0)[..], &[0xff]].concat()),
            ("comfort noise", with(1, 13)),
            ("a payload type that was not agreed", with(1, 99)),
            ("RTCP on this port", with(1, 201)),
        ];
        for (name, packet) in &junk {
            println!("{name}");
            call.phones[0].send(packet);
        }
        call.talk(10);
        assert_eq!(stats(front, b).sent_packets, before + 10, "nothing of it has left");
        call.talk_below(front);
        assert!(stats(front, a).discarded_packets >= 5);
        assert!(call.phones.iter_mut().all(Phone::heard_nothing) && thief.heard_nothing());
        // A sound packet in another form is heard, by way of the worker.
        let header = call.phones[0].header();
        let padded = [&rtp::write(&header)[..], &[77; 160], &[0, 0, 3]].concat();
        call.phones[0].send(&[&[padded[0] | 0x20], &padded[1..]].concat());
        call.hear(1, 77);
        call.talk(10);
    });
}

#[test]
fn rfc3550_6_4_reports_and_statistics_count_what_was_relayed() {
    below("counts", |world, front| {
        let mut phones = [world.phone(0), world.phone(1)];
        let control = world.phone(3);
        let streams = [0, 1].map(|n| {
            let mut plan = phone_plan(&phones[n], 0x700 + n as u32);
            if n == 1 {
                (plan.remote_rtcp, plan.rtcp_interval_ms) = (Some(control.address()), 500);
            }
            let (stream, port) = front.open(world.ip, plan).unwrap();
            phones[n].to = SocketAddr::new(world.ip, port);
            stream
        });
        let mut call = Call { phones, streams, heard: [None; 2], round: 0, begun: 0 };
        call.join(front);
        call.talk_below(front);
        // Alice loses three.
        call.phones[0].skip(3);
        call.heard[1] = None;
        call.talk(200);
        // A neighbour that is being asked for anew may have brought the bridge up for a second.
        let give_up = Wall::now() + PATIENCE;
        while worker(front).relayed < 400 {
            assert!(Wall::now() < give_up, "{:?}", worker(front));
            call.talk(50);
        }
        call.settle(front);
        let said = u64::from(call.phones[0].header().sequence) - 3;
        let [alice, bob] = call.streams.map(|stream| stats(front, stream));
        assert_eq!((alice.received_packets, alice.lost_packets), (said, 3));
        assert_eq!((bob.sent_packets, bob.sent_bytes), (said, said * 160));
        assert_eq!((bob.received_packets, bob.lost_packets, alice.sent_packets), (said, 0, said));
        assert_eq!(alice.received_bytes, said * 160);
        let relayed = worker(front).relayed;
        assert!(relayed <= said * 2, "{relayed} of {said}");
        // The next report states as much.
        let mut sent = 0;
        while sent < said as u32 {
            sent = reported(&control).unwrap_or(sent);
        }
        assert_eq!(sent, said as u32);
        // A report brings nothing back; a neighbour that is asked for may.
        call.heard = [None; 2];
        let mut control = control;
        let give_up = Wall::now() + PATIENCE;
        loop {
            call.talk_until(front, 1);
            while !control.heard_nothing() {}
            let before = worker(front);
            reported(&control);
            reported(&control);
            let after = worker(front);
            if [before, after].iter().all(|load| (load.relays, load.relays_begun) == (1, before.relays_begun))
            {
                break;
            }
            assert!(Wall::now() < give_up, "each report brings the bridge back: {before:?} {after:?}");
        }
    });
}

#[test]
fn silence_is_timed_out_and_talk_is_not_while_a_bridge_is_below() {
    below("quiet", |world, front| {
        let mut call = Call::begin(world, front);
        call.talk_below(front);
        let mut timed = phone_plan(&call.phones[0], 0x700);
        timed.rtp_timeout_ms = 1500;
        front.command(Command::Plan { stream: call.streams[0], plan: Box::new(timed) });
        call.talk_below(front);
        let timed_out =
            |events: &[Event]| events.iter().any(|event| matches!(event, Event::RtpTimeout { .. }));
        let (begun, mut events) = (Wall::now(), Vec::new());
        let (mut began, mut spoke) = (begun, begun);
        while began.elapsed() < Duration::from_millis(3500) {
            call.talk(1);
            front.drain_events(|event| events.push(event));
            if spoke.elapsed() > Duration::from_millis(1000) {
                // A machine that gives this thread no time for so long makes the silence itself.
                assert!(begun.elapsed() < 3 * PATIENCE, "this machine is too busy");
                began = Wall::now();
                events.clear();
            }
            spoke = Wall::now();
        }
        assert!(!timed_out(&events));
        // Below, Alice falls silent, and Bob talks on.
        call.talk_until(front, 1);
        let silent = Wall::now();
        call.talk(1);
        events.clear();
        while !timed_out(&events) {
            assert!(silent.elapsed() < PATIENCE);
            call.round = call.round.wrapping_add(1);
            call.phones[1].say(call.round);
            call.hear(0, call.round);
            front.drain_events(|event| events.push(event));
        }
        // From before she said her last word, so that it is never less, however busy the machine is.
        let waited = silent.elapsed().as_millis();
        assert!(waited >= 1500, "{waited} ms");
        call.talk(10);
    });
}

#[test]
fn a_phone_that_comes_from_anywhere_is_followed_and_a_new_source_brings_the_bridge_back() {
    below("source", |world, front| {
        let mut call = Call::begin(world, front);
        let mut anywhere = phone_plan(&call.phones[0], 0x700);
        anywhere.latch = Latch::Off;
        front.command(Command::Plan { stream: call.streams[0], plan: Box::new(anywhere) });
        call.talk_below(front);
        let mut moved = world.phone(3);
        moved.to = call.phones[0].to;
        let next = call.phones[0].header().sequence;
        while moved.header().sequence.wrapping_add(1) != next {}
        let old = std::mem::replace(&mut call.phones[0], moved);
        let begun = call.begun;
        call.phones[0].say(1);
        call.hear(1, 1);
        call.talk_below(front);
        assert!(call.begun > begun, "a new source brings the bridge back");
        drop(old);
    });
}
