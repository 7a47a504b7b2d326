//! What tshark's dissector, written by others, reads in the frames that are written here.

mod common;
mod world;

use base::{Cause, Digit, FormatId};
use common::dissect;
use iax2::frame::{
    Auth, Command, Control, Element, Entry, Full, Html, Kind, Media, Mini, Video, packed_time, write_element,
    write_preferences, write_trunk_entry, write_trunk_header,
};
use iax2::machine::{Challenge, Connected, Dial, Encrypt, Lease, Lines, Piece, Registration, Watch};
use iax2::{Event, Secret};
use world::{World, accept_any, address, ms, secs};

fn full(kind: Kind, elements: &[Element<'_>]) -> Vec<u8> {
    let mut data = Vec::new();
    elements.iter().for_each(|element| write_element(element, &mut data));
    let mut out = Vec::new();
    Full { source: 4660, dest: 801, again: false, timestamp: 70_000, oseq: 5, iseq: 6, kind, data: &data }
        .write(&mut out);
    out
}

#[test]
fn tshark_reads_every_kind_of_frame_as_it_was_meant() {
    let ulaw = Media::of(FormatId::ULAW).unwrap();
    let mut mini = Vec::new();
    Mini { source: 4660, timestamp: 513, data: &[0xff; 160] }.write(&mut mini);
    let mut video = Vec::new();
    Video { source: 4660, timestamp: 513, mark: true, data: &[1; 50] }.write(&mut video);
    let mut trunk = Vec::new();
    write_trunk_header(70_000, true, &mut trunk);
    write_trunk_entry(&Entry { source: 4660, timestamp: Some(513), data: &[0xff; 160] }, &mut trunk);
    write_trunk_entry(&Entry { source: 4661, timestamp: Some(514), data: &[0xff; 160] }, &mut trunk);
    // A call of a trunk without times is its number, its length and so much voice (RFC 5456 §8.1.3.2), and so the dissector
    // (4.0.17) reads them, each where the one before ends. But it wants two octets behind each, as many as a time has, and
    // marks a datagram that ends with its last call. With two octets more, which would be the beginning of a call for
    // anybody else, there is no mark.
    let mut unstamped = Vec::new();
    write_trunk_header(70_000, false, &mut unstamped);
    for source in [4660, 4661] {
        write_trunk_entry(&Entry { source, timestamp: None, data: &[0xff; 160] }, &mut unstamped);
    }
    let longer = [&unstamped[..], &[0, 0]].concat();
    let mut voice = full(Kind::Voice(ulaw), &[]);
    voice.extend_from_slice(&[0xff; 160]);
    // Numbers, timestamp, sequence, type; then the subclass of its kind, the trunk's calls and the packet's type.
    let rows = [
        ("NEW", full(Kind::Iax(Command::NEW), &[Element::Version(2)]), "4660|801|70000|5|6|6|1|||||1|"),
        ("ACK", full(Kind::Iax(Command::ACK), &[]), "4660|801|70000|5|6|6|4|||||1|"),
        ("ANSWER", full(Kind::Control(Control::ANSWER), &[]), "4660|801|70000|5|6|4||4||||1|"),
        ("voice", voice, "4660|801|70000|5|6|2|||4|||1|"),
        ("digit", full(Kind::DigitEnd(Digit::from_char('7').unwrap()), &[]), "4660|801|70000|5|6|1||||7||1|"),
        ("mini", mini, "4660||513|||||||||0|"),
        ("video", video, "4660||513|||||||||2|"),
        ("trunk", trunk, "||70000||||||||4660,4661|3|"),
        ("trunk without times", unstamped, "||70000||||||||4660|3|Malformed Packet (Exception occurred)"),
        ("the same with two octets behind", longer, "||70000||||||||4660,4661|3|"),
    ];
    let datagrams: Vec<_> = rows.iter().map(|(_, datagram, _)| (1, 2, datagram.clone())).collect();
    let fields = [
        "iax2.src_call",
        "iax2.dst_call",
        "iax2.timestamp",
        "iax2.oseqno",
        "iax2.iseqno",
        "iax2.type",
        "iax2.iax.subclass",
        "iax2.control.subclass",
        "iax2.voice.codec",
        "iax2.dtmf.subclass",
        "iax2.trunk.call.scallno",
        "iax2.packet_type",
    ];
    let Some(lines) = dissect("frames", &datagrams, &fields) else { return };
    for ((name, _, expected), line) in rows.iter().zip(&lines) {
        assert_eq!(line, expected, "{name}");
    }
}

#[test]
fn tshark_reads_every_element_that_it_knows_as_it_was_meant() {
    let mut letters = Vec::new();
    write_preferences(&[FormatId::ALAW, FormatId::ULAW], &mut letters);
    let rows = [
        ("iax2.iax.called_number", Element::CalledNumber(b"100"), "100"),
        ("iax2.iax.calling_number", Element::CallingNumber(b"200"), "200"),
        ("iax2.iax.calling_ani", Element::CallingAni(b"201"), "201"),
        ("iax2.iax.calling_name", Element::CallingName(b"Bob"), "Bob"),
        ("iax2.iax.called_context", Element::CalledContext(b"in"), "in"),
        ("iax2.iax.username", Element::Username(b"bob"), "bob"),
        ("iax2.iax.language", Element::Language(b"en"), "en"),
        ("iax2.iax.dnid", Element::Dnid(b"100"), "100"),
        ("iax2.iax.auth.methods", Element::AuthMethods(Auth::MD5), "0x0002"),
        ("iax2.iax.auth.challenge", Element::Challenge(b"12345"), "12345"),
        ("iax2.iax.auth.md5", Element::Md5Result(b"abcdef"), "abcdef"),
        ("iax2.iax.auth.rsa", Element::RsaResult(b"c2ln"), "c2ln"),
        ("iax2.iax.app_addr.sinaddr", Element::ApparentAddr("10.1.2.3:4569".parse().unwrap()), "10.1.2.3"),
        ("iax2.iax.refresh", Element::Refresh(60), "60"),
        ("iax2.iax.dialplan_status", Element::DpStatus(1), "0x0001"),
        ("iax2.iax.call_no", Element::CallNumber(77), "77"),
        ("iax2.iax.cause", Element::Cause(b"No such"), "No such"),
        ("iax2.iax.msg_count", Element::MessageCount(258), "258"),
        ("iax2.iax.transferid", Element::TransferId(5456), "0x00001550"),
        ("iax2.iax.datetime.raw", Element::DateTime(packed_time(2026, 11, 21, 12, 30, 58)), "896885725"),
        ("iax2.iax.rdnis", Element::Rdnis(b"300"), "300"),
        ("iax2.iax.callingpres", Element::CallingPresentation(1), "0x01"),
        ("iax2.iax.callington", Element::CallingTon(16), "0x10"),
        ("iax2.iax.callingtns", Element::CallingTns(0), "0x0000"),
        ("iax2.iax.causecode", Element::CauseCode(16), "0x10"),
        ("iax2.iax.encryption", Element::Encryption(1), "0x0001"),
        ("iax2.iax.codecprefs", Element::CodecPrefs(&letters), "ED"),
        ("iax2.iax.rrjitter", Element::RrJitter(3), "0x00000003"),
        ("iax2.iax.rrpkts", Element::RrPackets(4000), "0x00000fa0"),
        ("iax2.iax.rrdelay", Element::RrDelay(60), "0x003c"),
        ("iax2.iax.format", Element::Format(4), "4"),
        ("iax2.iax.capability2", Element::Capability2(Media(12)), "0x000000000000000c"),
    ];
    let datagrams: Vec<_> =
        rows.iter().map(|(_, element, _)| (1, 2, full(Kind::Iax(Command::NEW), &[*element]))).collect();
    let fields: Vec<_> = rows.iter().map(|(field, ..)| *field).collect();
    let Some(lines) = dissect("elements", &datagrams, &fields) else { return };
    for (at, ((field, _, expected), line)) in rows.iter().zip(&lines).enumerate() {
        let cells: Vec<_> = line.split('|').collect();
        assert_eq!(cells[at], *expected, "{field}");
        assert_eq!(cells.last(), Some(&""), "{field} without a mark");
    }
}

/// Says everything that can be said on a call.
fn say_everything(world: &mut World, caller: base::Place) {
    let five = Digit::from_char('5').unwrap();
    world.act(0, |machine, now, out| {
        machine.digit(now, caller, five, true, out).unwrap();
        machine.digit(now, caller, five, false, out).unwrap();
        machine.control(now, caller, Control::HOLD, out).unwrap();
        machine.text(now, caller, b"hello", out).unwrap();
        let party = Connected { number: b"200", name: b"Bob", presentation: 0 };
        assert_eq!(machine.connected(now, caller, &party, out), Ok(true));
        machine.html(now, caller, Html::URL, b"http://example.org/", out).unwrap();
        machine.quelch(now, caller, Some(b"jazz"), out).unwrap();
        machine.unquelch(now, caller, out).unwrap();
        machine.messages(now, caller, 0x0102, out).unwrap();
        machine.ask_number(now, caller, b"12", out).unwrap();
        machine.dial_on(now, caller, b"123", out).unwrap();
        machine.send_on(now, caller, b"200", Some(b"office"), out).unwrap();
    });
    for format in [FormatId::ULAW, FormatId::ALAW] {
        for _ in 0..3 {
            world.act(0, |machine, now, out| machine.voice(now, caller, format, 20, &[7; 160], out)).unwrap();
            world.run(ms(20), &mut grant);
        }
    }
    for mark in [false, true] {
        let h264 = Media(1 << 21);
        let piece = Piece { format: h264, goes_on: mark, mark, payload: &[1; 99] };
        world.act(0, |machine, now, out| machine.video(now, caller, &piece, out)).unwrap();
    }
}

/// Challenges whoever asks for something, and grants it.
fn grant(world: &mut World, side: usize, event: &Event) {
    match event {
        Event::Call(leg, _) | Event::Register { leg, .. } => {
            let leg = *leg;
            let (methods, secret) = (Auth::MD5, Secret::new(b"secret"));
            let challenge =
                Challenge { username: b"bob", methods, secret, encrypt: Encrypt::No, keys_stay: false };
            world.act(side, |machine, now, out| machine.challenge(now, leg, &challenge, out)).unwrap();
        }
        Event::Proven(leg) => {
            let leg = *leg;
            world.act(side, |machine, now, out| {
                if machine.accept(now, leg, &accept_any(), out).is_err() {
                    let lease = Lease { refresh: 60, messages: Some(1), ..Lease::default() };
                    machine.register(now, leg, &lease, out).unwrap();
                }
            });
        }
        Event::NumberAsked(leg, number) => {
            let told = (&number[..], 1, 60);
            world.act(side, |machine, now, out| machine.tell_number(now, *leg, told, out)).unwrap();
        }
        _ => {}
    }
}

/// The messages that tshark reads in what machines have sent, all of it without a mark, but for trunks without times, which it
/// always makes a mark at; `None` without tshark.
fn said(name: &str, world: &World) -> Option<std::collections::BTreeSet<Command>> {
    let last = |address: core::net::SocketAddr| match address.ip() {
        core::net::IpAddr::V4(ip) => ip.octets()[3],
        core::net::IpAddr::V6(_) => 0,
    };
    let datagrams: Vec<_> =
        world.wire.iter().map(|(from, to, bytes)| (last(address(*from)), last(*to), bytes.clone())).collect();
    let lines = dissect(name, &datagrams, &["frame.protocols", "iax2.type", "iax2.iax.subclass"])?;
    let mut commands = std::collections::BTreeSet::new();
    for (line, (.., bytes)) in lines.iter().zip(&datagrams) {
        let cells: Vec<_> = line.split('|').collect();
        assert!(cells[0].contains("iax2"), "{line}: {bytes:02x?}");
        let is_unstamped = bytes.starts_with(&[0, 0, 1, 0]);
        let known = is_unstamped && cells[3] == "Malformed Packet (Exception occurred)";
        assert!(known || cells[3].is_empty(), "{line}: {bytes:02x?}");
        commands.extend(cells[2].parse::<u8>().ok().map(Command));
    }
    Some(commands)
}

#[test]
fn tshark_makes_no_mark_at_anything_that_machines_say_to_each_other() {
    let mut world = World::new(&[(); 3].map(|()| iax2::Settings::default()));
    let secret = Secret::new(b"secret");
    let registration = Registration {
        at: address(1),
        username: b"bob".to_vec(),
        secret: secret.clone(),
        refresh: 60,
        plaintext: false,
    };
    let watch = Watch { to: address(1), most: ms(500), every: secs(60), every_down: secs(10), smooth: false };
    world.act(0, |machine, now, out| {
        machine.keep_registered(now, registration, out).unwrap();
        machine.watch(now, watch, out).unwrap();
        machine.announce(now, address(1), 0x0102, out).unwrap();
    });
    let mut dial = Dial::to(address(1));
    (dial.called, dial.username, dial.secret) = (b"100", b"bob", Some(secret));
    (dial.name, dial.transferable, dial.trunk) = (b"Bob", true, true);
    dial.lines = Lines { send: true, take: true };
    let caller = world.act(0, |machine, now, out| machine.dial(now, &dial, out)).unwrap();
    world.run(secs(2), &mut grant);
    say_everything(&mut world, caller);
    world.run(secs(1), &mut grant);
    // A call onward, and both ends of it joined.
    let Some(there) = world.of(1).find_map(|event| match event {
        Event::Call(leg, _) => Some(*leg),
        _ => None,
    }) else {
        panic!("a call")
    };
    (dial.to, dial.trunk) = (address(2), false);
    let onward = world.act(1, |machine, now, out| machine.dial(now, &dial, out)).unwrap();
    world.run(secs(2), &mut grant);
    world.act(1, |machine, now, out| machine.join(now, there, onward, false, out)).unwrap();
    world.run(secs(90), &mut grant);
    assert!(world.of(1).any(|event| *event == Event::Joined(there, onward)));
    // Somebody who does not answer, so that frames are repeated.
    world.net.loss = 100;
    world.act(0, |machine, now, out| machine.hang_up(now, caller, Cause::NORMAL_CLEARING, out)).unwrap();
    world.run(secs(60), &mut grant);
    assert!(world.wire.len() > 100);
    let Some(commands) = said("machines", &world) else { return };
    use Command as C;
    for command in [
        C::NEW,
        C::PING,
        C::PONG,
        C::ACK,
        C::HANGUP,
        C::ACCEPT,
        C::AUTHREQ,
        C::AUTHREP,
        C::LAGRQ,
        C::LAGRP,
        C::REGREQ,
        C::REGAUTH,
        C::REGACK,
        C::DPREQ,
        C::DPREP,
        C::DIAL,
        C::TXREQ,
        C::TXCNT,
        C::TXACC,
        C::TXREADY,
        C::TXREL,
        C::QUELCH,
        C::UNQUELCH,
        C::POKE,
        C::MWI,
        C::TRANSFER,
        C::CALLTOKEN,
    ] {
        assert!(commands.contains(&command), "{} was said", command.name());
    }
}

#[test]
fn tshark_reads_every_message_that_refuses_or_ends_something_without_a_mark() {
    use Element as E;
    let refusal = [E::Cause(b"No authority found"), E::CauseCode(29)];
    let rows: [(Command, &[Element<'_>]); 13] = [
        (Command::HANGUP, &refusal),
        (Command::REJECT, &refusal),
        (Command::REGREJ, &refusal),
        (Command::REGREL, &[E::Username(b"bob")]),
        (Command::VNAK, &[]),
        (Command::INVAL, &[]),
        (Command::UNSUPPORT, &[E::IaxUnknown(35)]),
        (Command::DPREP, &[E::CalledNumber(b"12"), E::DpStatus(1), E::Refresh(60)]),
        (Command::TXREJ, &[E::TransferId(5)]),
        (Command::TXREL, &[E::CallNumber(77), E::TransferId(5)]),
        (Command::TXMEDIA, &[E::CallNumber(77), E::TransferId(5)]),
        // Enciphered on the wire; this is what the other side makes of it.
        (Command::RTKEY, &[E::Challenge(&[0x9a; 16])]),
        (
            Command::REGACK,
            &[E::Username(b"bob"), E::DateTime(packed_time(2026, 11, 21, 12, 0, 0)), E::Refresh(60)],
        ),
    ];
    let datagrams: Vec<_> =
        rows.iter().map(|(command, elements)| (1, 2, full(Kind::Iax(*command), elements))).collect();
    let Some(lines) = dissect("refusals", &datagrams, &["iax2.iax.subclass"]) else { return };
    for ((command, _), line) in rows.iter().zip(&lines) {
        assert_eq!(*line, format!("{}|", command.0), "{}", command.name());
    }
}

/// Refuses who is called or registers, and grants what comes to the third machine.
fn refuse(world: &mut World, side: usize, event: &Event) {
    match event {
        Event::Call(leg, _) | Event::Register { leg, release: false, .. } if side == 1 => {
            let (leg, cause) = (*leg, Cause::FACILITY_NOT_SUBSCRIBED);
            world.act(side, |machine, now, out| machine.reject(now, leg, cause, b"Refused", out)).unwrap();
        }
        other => grant(world, side, other),
    }
}

#[test]
fn tshark_makes_no_mark_at_what_machines_say_when_things_go_wrong_with_and_without_times_of_trunks() {
    for stamped in [true, false] {
        let trunk = iax2::machine::TrunkSettings { stamped, ..Default::default() };
        let settings = iax2::Settings { trunk, ..iax2::Settings::default() };
        let mut world = World::new(&[settings.clone(), settings.clone(), settings]);
        let registration = |at| Registration {
            at,
            username: b"bob".to_vec(),
            secret: Secret::new(b"secret"),
            refresh: 60,
            plaintext: false,
        };
        let mut dial = Dial::to(address(1));
        let kept = world.act(0, |machine, now, out| {
            machine.dial(now, &dial, out).unwrap();
            machine.keep_registered(now, registration(address(1)), out).unwrap();
            machine.keep_registered(now, registration(address(2)), out).unwrap()
        });
        world.run(secs(3), &mut refuse);
        world.act(0, |machine, now, out| machine.unregister(now, kept, out)).unwrap();
        world.run(secs(3), &mut refuse);
        // A call that nobody knows of.
        let stray = full(Kind::Iax(Command::LAGRQ), &[]);
        world.inject(address(0), 1, &stray);
        // Two calls joined for their media, and two of which one may not be transferred.
        for (media_only, transferable) in [(true, true), (false, false)] {
            let (_, there) = world.call(|dial| dial.transferable = transferable);
            (dial.to, dial.secret, dial.transferable) = (address(2), Some(Secret::new(b"secret")), true);
            let onward = world.act(1, |machine, now, out| machine.dial(now, &dial, out)).unwrap();
            world.run(secs(2), &mut grant);
            world.act(1, |machine, now, out| machine.join(now, there, onward, media_only, out)).unwrap();
            world.run(secs(3), &mut grant);
        }
        // Frames that are missed, and voice of two calls together.
        let legs: Vec<_> = (0..2).map(|_| world.call(|dial| dial.trunk = true).0).collect();
        for turn in 0..20 {
            world.net.loss = if turn % 2 == 0 { 50 } else { 0 };
            for leg in &legs {
                world.act(0, |machine, now, out| {
                    machine.voice(now, *leg, FormatId::ULAW, 20, &[7; 160], out).unwrap();
                    machine.text(now, *leg, b"text", out).unwrap();
                });
            }
            world.run(ms(20), &mut |_, _, _| {});
        }
        world.net.loss = 0;
        world.run(secs(10), &mut |_, _, _| {});
        let trunks = world.wire.iter().filter(|(.., bytes)| bytes[..3] == [0, 0, 1]).count();
        assert!(trunks > 5, "{trunks} datagrams of trunks");
        let Some(commands) = said(&format!("wrong-{stamped}"), &world) else { return };
        use Command as C;
        for command in [C::REJECT, C::REGREJ, C::REGREL, C::INVAL, C::VNAK, C::TXREJ, C::TXMEDIA] {
            assert!(commands.contains(&command), "{} was said", command.name());
        }
    }
}
