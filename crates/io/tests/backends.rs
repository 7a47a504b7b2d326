//! The same scenarios against every back-end, on the loopback interface and between network namespaces.
//!
//! Back-ends that need privileges, and namespaces, are skipped with a printed reason where there are none.

#[path = "backends/world.rs"]
#[allow(dead_code, reason = "the tests of the relay need more of it")]
mod world;

use std::net::{IpAddr, Ipv6Addr, SocketAddr, UdpSocket};
use std::time::Instant as Wall;

use base::{Command, DtmfMode, Event, FormatId, Latch, RxPayload, StreamId};
use io::media::{IoWish, MediaFront};
use rtp::{EventPayload, Header};
use world::{PATIENCE, Phone, World, await_event, patiently, plan};

/// Scenarios with fragments or IPv6, which come by sockets beside the queue; all else comes by the queue.
const BESIDE_THE_QUEUE: [&str; 3] = ["long", "bad", "six"];

/// Runs one scenario in every world and on every back-end that there is.
fn everywhere(name: &str, scenario: fn(&World, &mut MediaFront)) {
    for world in [World::loopback(), World::veth(name)] {
        let world = match world {
            Ok(world) => world,
            Err(why) => {
                println!("skipped: {why}");
                continue;
            }
        };
        for (wish, workers) in [IoWish::Epoll, IoWish::Uring, IoWish::SkLookup, IoWish::Xdp]
            .into_iter()
            .flat_map(|wish| [(wish, 1), (wish, 3)])
        {
            world.inside(|| match world.front(wish, workers) {
                Ok(mut front) => {
                    println!("{} on {}, {workers} workers", wish.name(), world.name);
                    scenario(&world, &mut front);
                    close_all(&mut front);
                    let load = front.loads().total();
                    assert_eq!((load.panics, load.unsent), (0, 0));
                    // The one queue of the wire belongs to the first worker. Alone it has all ports.
                    match (wish, workers) {
                        (IoWish::Xdp, 1) if !BESIDE_THE_QUEUE.contains(&name) => {
                            assert_eq!(load.by_xdp, load.received)
                        }
                        (IoWish::Xdp, _) => assert!(load.by_xdp <= load.received),
                        _ => assert_eq!(load.by_xdp, 0),
                    }
                }
                Err(why) => println!("skipped: {why}"),
            });
        }
    }
}

/// Waits until everything that was asked of the stream so far has happened.
fn settle(front: &mut MediaFront, stream: StreamId) {
    front.command(Command::Stats { stream });
    await_event(front, |event| matches!(event, Event::Stats { stream: s, asked: true, .. } if *s == stream));
}
fn join(front: &mut MediaFront, a: StreamId, b: StreamId) {
    front.command(Command::Join { a, b });
    settle(front, a);
    settle(front, b);
}

/// Opens a stream for a phone by SDP's address.
fn open(world: &World, front: &mut MediaFront, phone: &mut Phone) -> StreamId {
    let (stream, port) = front.open(world.ip, plan(Some(phone.address()))).unwrap();
    phone.to = SocketAddr::new(world.ip, port);
    stream
}
/// Closes what is open, and waits until all ports are back.
fn close_all(front: &mut MediaFront) {
    let open: Vec<StreamId> =
        (0..64).flat_map(|slot| (1..64).map(move |generation| StreamId::new(slot, generation))).collect();
    for stream in open {
        front.command(Command::Close { stream });
    }
    while front.streams() > 0 {
        front.drain_events(|_| ());
        std::thread::yield_now();
    }
    assert_eq!(front.ports().leased(), 0);
}

#[test]
fn packets_of_a_bridge_arrive_once_and_in_order_both_ways() {
    everywhere("order", |world, front| {
        let (mut alice, mut bob) = (world.phone(0), world.phone(1));
        let (a, b) = (open(world, front, &mut alice), open(world, front, &mut bob));
        join(front, a, b);
        // The first packet of each side finds the other's latch and the neighbour tables empty.
        for byte in 0..100 {
            alice.say(byte);
            let (header, heard) = bob.hear();
            assert_eq!((header.sequence, heard), (u16::from(byte) + 1, byte));
            bob.say(byte + 100);
            let (header, heard) = alice.hear();
            assert_eq!((header.sequence, heard), (u16::from(byte) + 1, byte + 100));
        }
        // A burst within one tick keeps its order.
        for byte in 0..50 {
            alice.say(byte);
        }
        let heard: Vec<u8> = (0..50).map(|_| bob.hear().1).collect();
        assert_eq!(heard, (0..50).collect::<Vec<u8>>());
        assert_eq!(bob.last_from(), Some(bob.to), "from the port that SDP named");
    });
}

#[test]
fn a_stranger_is_not_heard_and_gets_nothing_back_before_and_after_the_latch() {
    everywhere("spray", |world, front| {
        let (mut alice, mut bob) = (world.phone(0), world.phone(1));
        let mut thief = world.phone(2);
        let mut learning = plan(None);
        (learning.latch, learning.relearn) = (Latch::Learn(alice.address().ip()), true);
        let (a, port) = front.open(world.ip, learning).unwrap();
        alice.to = SocketAddr::new(world.ip, port);
        let b = open(world, front, &mut bob);
        join(front, a, b);
        let targets = [alice.to.port(), bob.to.port()];
        let spray = |thief: &mut Phone| {
            for port in (world.ports.first..world.ports.last).chain(targets) {
                thief.to = SocketAddr::new(world.ip, port);
                thief.say(66);
            }
        };
        spray(&mut thief);
        for byte in 0..4 {
            alice.say(byte);
        }
        await_event(front, |event| matches!(event, Event::Latched { stream, .. } if *stream == a));
        assert_eq!(bob.hear().1, 3, "the packet that the latch needed to know her is heard");
        for byte in 4..30 {
            spray(&mut thief);
            alice.say(byte);
            assert_eq!(bob.hear().1, byte);
            bob.say(byte);
            assert_eq!(alice.hear().1, byte);
        }
        // Not RTP at all, from where RTP comes.
        for junk in [&b""[..], b"\x80", &[0xff; 1400], &[0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]] {
            alice.send(junk);
        }
        alice.say(30);
        assert_eq!(bob.hear().1, 30);
        assert!(thief.heard_nothing());
    });
}

#[test]
fn a_port_that_is_leased_again_belongs_to_its_new_stream_alone() {
    everywhere("reuse", |world, front| {
        let mut old = world.phone(0);
        let mut new = world.phone(1);
        for round in 0..4_u8 {
            let stream = open(world, front, &mut old);
            front.command(Command::Echo { stream, on: true });
            old.say(round);
            assert_eq!(old.hear().1, round);
            let port = old.to.port();
            front.command(Command::Close { stream });
            await_event(front, |event| matches!(event, Event::Closed { stream: s, .. } if *s == stream));
            // A straggler of the old call, before and after the new one has the port.
            old.say(77);
            let (mut others, mut found) = (Vec::new(), None);
            let give_up = Wall::now() + PATIENCE;
            while found.is_none() {
                // All others are leased, and the kernel may still be closing this one's socket of a ring.
                let Ok((stream, leased)) = front.open(world.ip, plan(Some(new.address()))) else {
                    assert!(Wall::now() < give_up, "port {port} is free again");
                    std::thread::yield_now();
                    continue;
                };
                if leased == port {
                    found = Some(stream);
                } else {
                    others.push(stream);
                }
            }
            new.to = old.to;
            let stream = found.unwrap();
            front.command(Command::Echo { stream, on: true });
            old.say(78);
            new.say(round + 100);
            assert_eq!(new.hear().1, round + 100);
            for stream in others.into_iter().chain([stream]) {
                front.command(Command::Close { stream });
                await_event(front, |event| matches!(event, Event::Closed { stream: s, .. } if *s == stream));
            }
        }
        assert!(old.heard_nothing());
    });
}

#[test]
fn streams_that_join_and_part_move_between_workers_and_go_on() {
    everywhere("move", |world, front| {
        let mut phones: Vec<Phone> = (0..6).map(|n| world.phone(n)).collect();
        let streams: Vec<StreamId> = phones.iter_mut().map(|phone| open(world, front, phone)).collect();
        let talk = |phones: &mut [Phone], one: usize, other: usize| {
            for byte in 0..5 {
                phones[one].say(byte);
                assert_eq!(phones[other].hear().1, byte);
                phones[other].say(byte + 100);
                assert_eq!(phones[one].hear().1, byte + 100);
            }
        };
        for n in 1..streams.len() {
            for m in 0..n {
                join(front, streams[n], streams[m]);
                talk(&mut phones, n, m);
                front.command(Command::Part { stream: streams[n] });
                settle(front, streams[n]);
            }
        }
        phones[0].say(1);
        settle(front, streams[0]);
        assert!(phones.iter_mut().all(Phone::heard_nothing), "parted");
    });
}

#[test]
fn reports_leave_from_the_odd_port_and_come_back_to_it_and_end_with_bye() {
    everywhere("rtcp", |world, front| {
        let (mut alice, control) = (world.phone(0), world.phone(2));
        let mut with_rtcp = plan(Some(alice.address()));
        (with_rtcp.remote_rtcp, with_rtcp.rtcp_interval_ms) = (Some(control.address()), 500);
        let (stream, port) = front.open(world.ip, with_rtcp).unwrap();
        alice.to = SocketAddr::new(world.ip, port);
        front.command(Command::Echo { stream, on: true });
        // A packet that comes before the worker knows the stream waits.
        alice.say(1);
        assert_eq!(alice.hear().1, 1);
        let report = control.hear_report();
        assert!(report.contains(&"sender report"), "{report:?}");
        assert_eq!(control.last_from(), Some(SocketAddr::new(world.ip, port + 1)));
        // Our report comes in by the odd port: its loss is what the stream's totals say.
        control.report_loss(SocketAddr::new(world.ip, port + 1), 7, 0x55);
        let mut told = 0;
        while told != 0x55 {
            front.command(Command::Stats { stream });
            let events = await_event(front, |event| matches!(event, Event::Stats { asked: true, .. }));
            if let Some(Event::Stats { stats, .. }) = events.last() {
                told = stats.peer_lost_packets;
            }
        }
        front.command(Command::Close { stream });
        while !control.hear_report().contains(&"bye") {}
    });
}

#[test]
fn packets_longer_than_any_way_surely_carries_arrive_whole() {
    everywhere("long", |world, front| {
        let (mut alice, mut bob) = (world.phone(0), world.phone(1));
        let mut formats = [plan(Some(alice.address())), plan(Some(bob.address()))];
        for plan in &mut formats {
            // Linear 48 kHz: 1,920 bytes in 20 ms, more than an Ethernet frame.
            plan.rx[0] = Some(RxPayload::Audio(0, FormatId::SLIN48));
            plan.format = FormatId::SLIN48;
        }
        let [a, b] = formats;
        let (a, to_alice) = front.open(world.ip, a).unwrap();
        let (b, to_bob) = front.open(world.ip, b).unwrap();
        (alice.to, bob.to) = (SocketAddr::new(world.ip, to_alice), SocketAddr::new(world.ip, to_bob));
        join(front, a, b);
        for byte in 0..10 {
            alice.say_long(byte, 1920);
            assert_eq!(bob.hear().1, byte);
            bob.say(byte + 100);
            assert_eq!(alice.hear().1, byte + 100);
        }
    });
}

#[test]
fn ports_of_other_programs_and_of_other_addresses_are_untouched() {
    everywhere("other", |world, front| {
        let (mut alice, mut bob) = (world.phone(0), world.phone(2));
        let a = open(world, front, &mut alice);
        front.command(Command::Echo { stream: a, on: true });
        alice.say(1);
        assert_eq!(alice.hear().1, 1);
        // One in the range that another program took, one outside it, and the leased port on another address.
        let free = (world.ports.first..world.ports.last).filter(|port| *port != alice.to.port());
        let taken = free.map(|port| UdpSocket::bind((world.ip, port))).find_map(Result::ok).unwrap();
        let outside = UdpSocket::bind((world.ip, 0)).unwrap();
        for other in [&taken, &outside] {
            other.set_read_timeout(Some(PATIENCE)).unwrap();
            bob.to = other.local_addr().unwrap();
            bob.say(7);
            let (length, from) = patiently(|| other.recv_from(&mut [0; 256])).unwrap();
            assert_eq!((length, from), (172, bob.address()));
        }
        let elsewhere = UdpSocket::bind(("127.0.0.9", alice.to.port())).unwrap();
        let neighbour = UdpSocket::bind("127.0.0.9:0").unwrap();
        neighbour.send_to(b"hello", elsewhere.local_addr().unwrap()).unwrap();
        assert_eq!(elsewhere.recv_from(&mut [0; 256]).unwrap().0, 5);
        alice.say(2);
        assert_eq!(alice.hear().1, 2);
    });
}

#[test]
fn rfc4301_what_a_policy_blocks_does_not_leave_by_any_back_end() {
    for (wish, name) in
        [(IoWish::Epoll, "ipsa"), (IoWish::SkLookup, "ipsb"), (IoWish::Xdp, "ipsc"), (IoWish::Uring, "ipsd")]
    {
        let world = match World::veth(name) {
            Ok(world) => world,
            Err(why) => {
                println!("skipped: {why}");
                continue;
            }
        };
        let block = [
            "xfrm",
            "policy",
            "add",
            "dir",
            "out",
            "src",
            "10.44.0.1",
            "dst",
            "10.44.0.2",
            "action",
            "block",
        ];
        if let Err(why) = world.ip(&block) {
            println!("skipped: {why}");
            continue;
        }
        world.inside(|| {
            let mut front = match world.front(wish, 1) {
                Ok(front) => front,
                Err(why) => {
                    println!("skipped: {why}");
                    return;
                }
            };
            let (mut barred, mut free) = (world.phone(0), world.phone(1));
            for phone in [&mut barred, &mut free] {
                let stream = open(&world, &mut front, phone);
                front.command(Command::Echo { stream, on: true });
            }
            for byte in 0..20 {
                barred.say(byte);
                free.say(byte);
                assert_eq!(free.hear().1, byte);
            }
            assert!(barred.heard_nothing(), "{}", wish.name());
            close_all(&mut front);
        });
    }
}

/// Packets that no peer should send: the shared sets where they are, and spoiled ones from a seed.
fn bad_packets() -> Vec<Vec<u8>> {
    let mut packets = Vec::new();
    for (archive, folder) in [
        ("generated.tar.xz", "/rtp/"),
        ("generated.tar.xz", "/rtcp/"),
        ("pjsip-fuzz.tar.xz", "rt"),
        ("libsrtp-fuzz.tar.xz", ""),
    ] {
        packets.extend(kit::bad_input(archive, folder));
    }
    let mut random = kit::Random(2026);
    let header = Header { payload_type: 0, marker: false, sequence: 1, timestamp: 160, ssrc: 0xbad };
    let good = [
        [&rtp::write(&header)[..], &[66; 160]].concat(),
        vec![
            0x81, 201, 0, 7, 0, 0, 0, 9, 0, 0, 0, 7, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0,
            1,
        ],
    ];
    for number in 0..500 {
        let mut packet = good[number % 2].clone();
        kit::spoil(&mut random, &mut packet);
        packets.push(packet);
    }
    packets
}

#[test]
fn bad_input_at_the_ports_of_a_call_gets_nothing_back_and_the_call_loses_and_gains_nothing() {
    everywhere("bad", |world, front| {
        let (mut alice, mut bob) = (world.phone(0), world.phone(1));
        let mut mallory = world.phone(2);
        let (a, b) = (open(world, front, &mut alice), open(world, front, &mut bob));
        join(front, a, b);
        // A call whose own peer sends it, too: whatever becomes of that call, it is its own.
        let mut own = world.phone(3);
        let ill = open(world, front, &mut own);
        front.command(Command::Echo { stream: ill, on: true });
        settle(front, ill);
        let stranger = world.phone(4);
        let at = |port: u16| SocketAddr::new(world.ip, port);
        for (number, packets) in bad_packets().chunks(30).enumerate() {
            for packet in packets {
                for port in [alice.to.port(), alice.to.port() + 1, bob.to.port(), bob.to.port() + 1] {
                    mallory.to = at(port);
                    mallory.send(packet);
                }
                for port in [own.to.port(), own.to.port() + 1] {
                    let _ = own.socket.send_to(packet, at(port));
                    let _ = stranger.socket.send_to(packet, at(port));
                }
            }
            let byte = number as u8;
            alice.say(byte);
            let (header, heard) = bob.hear();
            assert_eq!((header.sequence, heard), (number as u16 + 1, byte));
            bob.say(!byte);
            let (header, heard) = alice.hear();
            assert_eq!((header.sequence, heard), (number as u16 + 1, !byte));
        }
        settle(front, ill);
        let mut stranger = stranger;
        assert!(mallory.heard_nothing() && stranger.heard_nothing());
    });
}

#[test]
fn a_bridge_of_two_formats_is_transcoded_both_ways() {
    everywhere("code", |world, front| {
        let (mut alice, mut bob) = (world.phone(0), world.phone(1));
        let a = open(world, front, &mut alice);
        let mut gsm = plan(Some(bob.address()));
        (gsm.format, gsm.payload, gsm.rx[0]) = (FormatId::GSM, 3, Some(RxPayload::Audio(3, FormatId::GSM)));
        let (b, port) = front.open(world.ip, gsm).unwrap();
        bob.to = SocketAddr::new(world.ip, port);
        join(front, a, b);
        let rows = [(&mut alice, &mut bob, 0, FormatId::ULAW, 3, FormatId::GSM)];
        for (speaker, hearer, speaks, from, hears, to) in rows {
            let there = talk_coded(speaker, hearer, (speaks, from), (hears, to));
            let back = talk_coded(hearer, speaker, (hears, to), (speaks, from));
            assert!(there > 1000.0 && back > 1000.0, "heard at {there} and {back}");
        }
    });
}

/// One says a tone for half a second in its format; how loud the other hears it in another one.
fn talk_coded(speaker: &mut Phone, hearer: &mut Phone, speaks: (u8, FormatId), hears: (u8, FormatId)) -> f64 {
    let (mut encoder, mut decoder) = (codec::Encoder::new(speaks.1), codec::Decoder::new(hears.1));
    let mut loudest = 0.0_f64;
    let mut last = None;
    for packet in 0..25 {
        let sound: Vec<i16> =
            (0..160).map(|n| (8000.0 * (f64::from(packet * 160 + n) * 0.35).sin()) as i16).collect();
        let mut coded = vec![0; speaks.1.bytes_in(20)];
        encoder.encode(&sound, &mut coded);
        speaker.say_coded(speaks.0, &coded);
        let (header, payload) = hearer.hear_coded();
        assert_eq!((header.payload_type, payload.len()), (hears.0, hears.1.bytes_in(20)));
        assert!(last.is_none_or(|last: u16| header.sequence == last.wrapping_add(1)), "{last:?} {header:?}");
        last = Some(header.sequence);
        let mut linear = [0; 160];
        decoder.decode(&payload, &mut linear);
        let power = linear.iter().map(|sample| f64::from(*sample).powi(2)).sum::<f64>() / 160.0;
        loudest = loudest.max(power.sqrt());
    }
    loudest
}

#[test]
fn rfc4733_a_digit_is_told_once_and_goes_on_under_the_payload_type_of_the_other_side() {
    everywhere("digit", |world, front| {
        let (mut alice, mut bob) = (world.phone(0), world.phone(1));
        let mut plans = [plan(Some(alice.address())), plan(Some(bob.address()))];
        for (plan, event) in plans.iter_mut().zip([101, 96]) {
            plan.rx[1] = Some(RxPayload::Event(event, 8000));
            plan.dtmf = DtmfMode::Rfc4733 { payload: event, clock: 8000 };
        }
        let [a, b] = plans;
        let (a, to_alice) = front.open(world.ip, a).unwrap();
        let (b, to_bob) = front.open(world.ip, b).unwrap();
        (alice.to, bob.to) = (SocketAddr::new(world.ip, to_alice), SocketAddr::new(world.ip, to_bob));
        join(front, a, b);
        alice.say(1);
        assert_eq!(bob.hear().1, 1);
        for step in 1..=8_u16 {
            let payload = EventPayload { event: 5, end: step > 5, volume: 10, duration: step.min(5) * 160 };
            alice.say_event(101, &payload.write());
        }
        let told =
            await_event(front, |event| matches!(event, Event::DigitEnd { stream, .. } if *stream == a));
        let begun = told.iter().filter(|event| matches!(event, Event::DigitBegin { .. })).count();
        assert_eq!(begun, 1, "{told:?}");
        let mut ends = 0;
        while ends < 3 {
            let (header, payload) = bob.hear_coded();
            assert_eq!(header.payload_type, 96);
            let event = EventPayload::parse(&payload).unwrap();
            assert_eq!(event.event, 5);
            ends += usize::from(event.end);
        }
        // Sound passes again when the last packet of the digit has left.
        bob.socket.set_read_timeout(Some(std::time::Duration::from_millis(20))).unwrap();
        let give_up = Wall::now() + PATIENCE;
        let passes = std::iter::repeat(()).take_while(|()| Wall::now() < give_up).any(|()| {
            alice.say(2);
            bob.socket.recv(&mut [0; 1500]).is_ok()
        });
        assert!(passes);
    });
}

#[test]
fn rfc5761_with_one_port_for_both_reports_leave_and_arrive_by_it() {
    everywhere("mux", |world, front| {
        let mut alice = world.phone(0);
        let mut muxed = plan(Some(alice.address()));
        (muxed.remote_rtcp, muxed.rtcp_interval_ms) = (muxed.remote, 500);
        let (stream, port) = front.open(world.ip, muxed).unwrap();
        alice.to = SocketAddr::new(world.ip, port);
        alice.say(1);
        let report = alice.hear_report();
        assert!(report.contains(&"receiver report"), "{report:?}");
        assert_eq!(alice.last_from(), Some(alice.to));
        alice.report_loss(alice.to, 7, 0x44);
        let mut told = 0;
        while told != 0x44 {
            front.command(Command::Stats { stream });
            let events = await_event(front, |event| matches!(event, Event::Stats { asked: true, .. }));
            if let Some(Event::Stats { stats, .. }) = events.last() {
                told = stats.peer_lost_packets;
            }
        }
    });
}

#[test]
fn a_peer_that_sdp_moves_is_heard_from_its_new_address_alone() {
    everywhere("renew", |world, front| {
        let (mut old, mut new) = (world.phone(0), world.phone(1));
        let stream = open(world, front, &mut old);
        front.command(Command::Echo { stream, on: true });
        new.to = old.to;
        for round in 0..3 {
            old.say(round);
            assert_eq!(old.hear().1, round);
            new.say(66);
            let mut moved = plan(Some(new.address()));
            moved.relearn = true;
            front.command(Command::Plan { stream, plan: Box::new(moved) });
            settle(front, stream);
            old.say(77);
            new.say(round);
            assert_eq!(new.hear().1, round, "nothing from before the move, nothing from the old address");
            assert!(old.heard_nothing());
            std::mem::swap(&mut old, &mut new);
        }
        // And whoever comes, when the plan says so.
        let mut open_to_all = plan(Some(old.address()));
        open_to_all.latch = Latch::Off;
        front.command(Command::Plan { stream, plan: Box::new(open_to_all) });
        settle(front, stream);
        new.say(9);
        assert_eq!(new.hear().1, 9);
    });
}

#[test]
fn a_call_by_ipv6_goes_on_beside_those_that_programs_steer() {
    everywhere("six", |world, front| {
        let mut alice = world.phone(0);
        let a = open(world, front, &mut alice);
        front.command(Command::Echo { stream: a, on: true });
        let Ok(mut six) = Phone::bind("[::1]:0") else {
            println!("skipped: no IPv6 here");
            return;
        };
        let ip = IpAddr::V6(Ipv6Addr::LOCALHOST);
        let (stream, port) = front.open(ip, plan(Some(six.address()))).unwrap();
        six.to = SocketAddr::new(ip, port);
        front.command(Command::Echo { stream, on: true });
        for byte in 0..20 {
            six.say(byte);
            assert_eq!(six.hear().1, byte);
            alice.say(byte + 100);
            assert_eq!(alice.hear().1, byte + 100);
        }
    });
}

#[test]
fn a_program_that_starts_again_at_once_has_its_ports_back() {
    for world in [World::loopback(), World::veth("again")] {
        let world = match world {
            Ok(world) => world,
            Err(why) => {
                println!("skipped: {why}");
                continue;
            }
        };
        for wish in [IoWish::Epoll, IoWish::Uring, IoWish::SkLookup, IoWish::Xdp] {
            world.inside(|| {
                for round in 0..3 {
                    let mut front = match world.front(wish, 2) {
                        Ok(front) => front,
                        Err(why) => {
                            println!("skipped: {why}");
                            return;
                        }
                    };
                    // All ports there are, and nobody hangs up before the end.
                    let mut phones = Vec::new();
                    let pairs = (world.ports.last - world.ports.first).div_ceil(2);
                    for number in 0..usize::from(pairs) {
                        let mut phone = world.phone(number);
                        let stream = open(&world, &mut front, &mut phone);
                        front.command(Command::Echo { stream, on: true });
                        phones.push(phone);
                    }
                    for phone in &mut phones {
                        phone.say(round);
                        assert_eq!(phone.hear().1, round, "{} on {}", wish.name(), world.name);
                    }
                }
            });
        }
    }
}
