//! Registrations at us and of ours, and peers that are watched.

mod world;

use base::{Cause, Place};
use core::time::Duration;
use iax2::frame::{Auth, Command, Datagram, Element, Full, Kind, parse, write_element};
use iax2::machine::{Challenge, Encrypt, Lease, Reach, Registration, Watch};
use iax2::{Event, Secret, Settings};
use world::{Net, World, address, ms, secs};

fn registration(secret: &[u8], refresh: u16) -> Registration {
    let (username, secret) = (b"bob".to_vec(), Secret::new(secret));
    Registration { at: address(1), username, secret, refresh, plaintext: false }
}

/// A registrar with one password for everybody, whose data base takes `look_up`.
struct Office {
    secret: &'static [u8],
    refresh: u16,
    confirmed: u32,
    released: u32,
    releasing: Vec<Place>,
}

impl Office {
    const fn new(secret: &'static [u8], refresh: u16) -> Self {
        Self { secret, refresh, confirmed: 0, released: 0, releasing: Vec::new() }
    }
    fn handle(&mut self, world: &mut World, side: usize, event: &Event) {
        match event {
            Event::Register { leg, release, request } if side == 1 => {
                let (leg, user) = (*leg, request.fields().username.unwrap_or_default().to_vec());
                if *release {
                    self.releasing.push(leg);
                }
                let challenge = Challenge {
                    username: &user,
                    methods: Auth::MD5,
                    secret: Secret::new(self.secret),
                    encrypt: Encrypt::No,
                    keys_stay: false,
                };
                world.act(1, |machine, now, out| machine.challenge(now, leg, &challenge, out)).unwrap();
            }
            Event::Proven(leg) if side == 1 => {
                let leg = *leg;
                let lease = Lease { refresh: self.refresh, messages: Some(0x0203), ..Lease::default() };
                world.act(1, |machine, now, out| machine.register(now, leg, &lease, out)).unwrap();
                if self.releasing.contains(&leg) {
                    self.released += 1;
                } else {
                    self.confirmed += 1;
                }
            }
            Event::Unproven(leg) if side == 1 => refuse(world, *leg),
            _ => {}
        }
    }
}

/// Refuses who could not prove who it is.
fn refuse(world: &mut World, leg: Place) {
    let (cause, why) = (Cause::FACILITY_NOT_SUBSCRIBED, b"Registration Refused");
    world.act(1, |machine, now, out| machine.reject(now, leg, cause, why, out)).unwrap();
}

/// The messages that a machine sent.
fn messages(world: &World, side: usize) -> Vec<Command> {
    let of_side = world.wire.iter().filter(|(from, ..)| *from == side);
    of_side
        .filter_map(|(.., bytes)| match parse(bytes) {
            Ok(Datagram::Full(frame)) => match frame.kind {
                Kind::Iax(command) => Some(command),
                _ => None,
            },
            _ => None,
        })
        .collect()
}

#[test]
fn rfc5456_6_1_a_registration_is_made_kept_and_ended() {
    let mut world = World::two();
    let mut office = Office::new(b"secret", 60);
    let kept = world
        .act(0, |machine, now, out| machine.keep_registered(now, registration(b"secret", 60), out))
        .unwrap();
    world.run(secs(1), &mut |world, side, event| office.handle(world, side, event));
    let registered = Event::Registered {
        registration: kept,
        apparent: Some(address(0)),
        refresh: 60,
        messages: Some(0x0203),
    };
    assert_eq!(world.of(0).collect::<Vec<_>>(), [&registered]);
    use Command as C;
    assert_eq!(messages(&world, 0), [C::REGREQ, C::REGREQ, C::REGREQ, C::ACK]);
    assert_eq!(messages(&world, 1), [C::CALLTOKEN, C::REGAUTH, C::REGACK]);
    world.run(secs(3600), &mut |world, side, event| office.handle(world, side, event));
    // Between 60 and 90 per cent of a minute.
    assert!((66..=101).contains(&office.confirmed), "{} times in an hour", office.confirmed);
    world.act(0, |machine, now, out| machine.unregister(now, kept, out)).unwrap();
    world.run(secs(1), &mut |world, side, event| office.handle(world, side, event));
    assert_eq!((world.of(0).last(), office.released), (Some(&Event::Unregistered(kept)), 1));
    world.assert_empty();
}

#[test]
fn the_shortest_question_of_a_device_without_tokens_is_answered_and_by_one_and_a_half_times_at_most() {
    const IP_UDP: usize = 28;
    let rows: [(&str, Command, &[Element<'_>]); 5] = [
        ("a name of one letter", Command::REGREQ, &[Element::Username(b"7")]),
        ("a name and a period", Command::REGREQ, &[Element::Username(b"iaxp"), Element::Refresh(60)]),
        ("a long name", Command::REGREQ, &[Element::Username(&[b'x'; 80])]),
        ("the end of a registration", Command::REGREL, &[Element::Username(b"7")]),
        ("a call", Command::NEW, &[Element::Version(2), Element::Username(b"7")]),
    ];
    for (name, command, elements) in rows {
        let token_optional = vec![("0.0.0.0".parse().unwrap(), 0)];
        let mut world =
            World::new(&[Settings::default(), Settings { token_optional, ..Settings::default() }]);
        let (mut data, mut question) = (Vec::new(), Vec::new());
        elements.iter().for_each(|element| write_element(element, &mut data));
        let kind = Kind::Iax(command);
        Full { source: 7, dest: 0, again: false, timestamp: 3, oseq: 0, iseq: 0, kind, data: &data }
            .write(&mut question);
        world.inject(address(0), 1, &question);
        let leg = world.of(1).find_map(|event| match event {
            Event::Register { leg, .. } | Event::Call(leg, _) => Some(*leg),
            _ => None,
        });
        let username = elements
            .iter()
            .find_map(|element| match element {
                Element::Username(name) => Some(*name),
                _ => None,
            })
            .unwrap();
        let challenge = Challenge {
            username,
            methods: Auth::MD5,
            secret: Secret::new(b"secret"),
            encrypt: Encrypt::No,
            keys_stay: false,
        };
        world.act(1, |machine, now, out| machine.challenge(now, leg.unwrap(), &challenge, out)).unwrap();
        let (.., answer) = world.wire.last().unwrap_or_else(|| panic!("{name}: no answer"));
        let percent = (answer.len() + IP_UDP) * 100 / (question.len() + IP_UDP);
        assert!(percent <= 150, "{name}: {percent} per cent");
    }
}

#[test]
fn a_wrong_password_and_an_unknown_user_are_refused_with_the_same_frames() {
    let mut seen = Vec::new();
    for (name, known, proven) in
        [("a wrong password", &b"secret"[..], &b"other"[..]), ("unknown", b"", b"other")]
    {
        let mut world = World::two();
        let mut office = Office::new(known, 60);
        world
            .act(0, |machine, now, out| machine.keep_registered(now, registration(proven, 60), out))
            .unwrap();
        world.run(secs(1), &mut |world, side, event| office.handle(world, side, event));
        let refused = |event: &Event| {
            matches!(event, Event::RegistrationRefused { cause: Cause::FACILITY_NOT_SUBSCRIBED, .. })
        };
        assert!(world.of(0).any(refused), "{name}");
        assert_eq!(office.confirmed, 0, "{name}");
        let lengths: Vec<_> =
            world.wire.iter().filter(|(side, ..)| *side == 1).map(|(.., bytes)| bytes.len()).collect();
        seen.push((messages(&world, 1), lengths.len()));
    }
    assert_eq!(seen[0], seen[1]);
}

#[test]
fn rfc5456_8_6_16_a_registration_is_proven_by_a_signature_where_the_registrar_wants_one() {
    for right in [true, false] {
        let mut world = World::two();
        world
            .act(0, |machine, now, out| machine.keep_registered(now, registration(b"secret", 60), out))
            .unwrap();
        let mut asked = Vec::new();
        world.run(secs(2), &mut |world, side, event| match event {
            Event::Register { leg, .. } => {
                let leg = *leg;
                let (methods, secret) = (Auth::RSA, Secret::new(b""));
                let challenge =
                    Challenge { username: b"bob", methods, secret, encrypt: Encrypt::No, keys_stay: false };
                world.act(side, |machine, now, out| machine.challenge(now, leg, &challenge, out)).unwrap();
            }
            Event::Challenged { leg, challenge, .. } => {
                let leg = *leg;
                asked = challenge.clone();
                let twice = world.act(side, |machine, now, out| {
                    machine.sign(now, leg, b"c2ln", out).unwrap();
                    machine.sign(now, leg, b"c2ln", out)
                });
                assert!(twice.is_err(), "one signature for one challenge");
            }
            Event::Signed { leg, challenge, signature } => {
                assert_eq!((challenge, &signature[..]), (&asked, &b"c2ln"[..]));
                let leg = *leg;
                world.act(side, |machine, _, out| machine.judge(leg, right, out)).unwrap();
            }
            Event::Unproven(leg) => refuse(world, *leg),
            Event::Proven(leg) => {
                let leg = *leg;
                let lease = Lease { refresh: 60, ..Lease::default() };
                world.act(side, |machine, now, out| machine.register(now, leg, &lease, out)).unwrap();
            }
            _ => {}
        });
        let registered = world.of(0).any(|event| matches!(event, Event::Registered { .. }));
        let refused = world.of(0).any(|event| matches!(event, Event::RegistrationRefused { .. }));
        assert_eq!((registered, refused), (right, !right));
    }
}

#[test]
fn a_registrar_that_does_not_answer_is_tried_again_and_found_when_it_is_back() {
    let mut world = World::two();
    let mut office = Office::new(b"secret", 60);
    world.net.loss = 100;
    world.act(0, |machine, now, out| machine.keep_registered(now, registration(b"secret", 60), out)).unwrap();
    world.run(secs(600), &mut |world, side, event| office.handle(world, side, event));
    let lost = world.of(0).filter(|event| matches!(event, Event::RegistrationLost(_))).count();
    assert!((4..=9).contains(&lost), "{lost} attempts in ten minutes: 30 s each, and waits of 10 to 120 s");
    world.net.loss = 0;
    world.run(secs(160), &mut |world, side, event| office.handle(world, side, event));
    assert!(office.confirmed > 0);
}

#[test]
fn a_data_base_may_take_its_time_over_each_step() {
    let mut world = World::two();
    world.act(0, |machine, now, out| machine.keep_registered(now, registration(b"secret", 60), out)).unwrap();
    let mut pending = Vec::new();
    let mut office = Office::new(b"secret", 60);
    for _ in 0..3 {
        world.run(secs(8), &mut |_, side, event| pending.push((side, event.clone())));
        for (side, event) in std::mem::take(&mut pending) {
            office.handle(&mut world, side, &event);
        }
    }
    assert_eq!(office.confirmed, 1);
    assert!(world.of(0).any(|event| matches!(event, Event::Registered { .. })));
    let repeated = messages(&world, 0).iter().filter(|command| **command == Command::REGREQ).count();
    assert_eq!(repeated, 3, "what waits is acknowledged, so nothing is repeated");
}

#[test]
fn thousands_of_registrations_of_one_address_leave_nothing_and_need_no_number_of_the_socket() {
    let settings = Settings { numbers_of_address: 100_000, ..Settings::default() };
    let mut world = World::new(&[settings.clone(), settings]);
    world.keep_wire = false;
    let mut office = Office::new(b"secret", 3600);
    let mut most = 0;
    let registrations: Vec<_> = (0..3000)
        .map(|at| {
            let kept = world
                .act(0, |machine, now, out| machine.keep_registered(now, registration(b"secret", 3600), out))
                .unwrap();
            if at % 100 == 99 {
                world.run(ms(500), &mut |world, side, event| office.handle(world, side, event));
                most = most.max(world.machines[1].counts().shared.0);
            }
            kept
        })
        .collect();
    world.run(secs(1), &mut |world, side, event| office.handle(world, side, event));
    assert_eq!((office.confirmed, most), (3000, 0));
    for kept in registrations {
        world.act(0, |machine, now, out| machine.unregister(now, kept, out)).unwrap();
        world.run(ms(4), &mut |world, side, event| office.handle(world, side, event));
    }
    world.run(secs(60), &mut |world, side, event| office.handle(world, side, event));
    assert_eq!(office.released, 3000);
    world.assert_empty();
}

#[test]
fn registrations_over_a_bad_network_are_made_and_leave_nothing() {
    for seed in 0..20 {
        let mut world = World::two();
        world.random = kit::Random(seed);
        world.net = Net { loss: 20, twice: 10, delay: 5, spread: 200 };
        let mut office = Office::new(b"secret", 60);
        let kept: Vec<_> = (0..10)
            .map(|_| {
                let one = registration(b"secret", 60);
                world.act(0, |machine, now, out| machine.keep_registered(now, one, out)).unwrap()
            })
            .collect();
        world.run(secs(600), &mut |world, side, event| office.handle(world, side, event));
        for one in &kept {
            let made = |event: &&Event| matches!(event, Event::Registered { registration, .. } if registration == one);
            assert!(world.of(0).filter(made).count() >= 3, "seed {seed}");
        }
        for one in kept {
            world.act(0, |machine, now, out| machine.unregister(now, one, out)).unwrap();
        }
        world.run(secs(120), &mut |world, side, event| office.handle(world, side, event));
        let ended = world.of(0).filter(|event| matches!(event, Event::Unregistered(_))).count();
        assert_eq!(ended, 10, "seed {seed}");
        world.assert_empty();
    }
}

#[test]
fn rfc5456_6_7_1_a_watched_peer_is_told_of_when_it_changes_and_takes_no_number() {
    let mut world = World::two();
    let watch = Watch { to: address(1), most: ms(500), every: secs(60), every_down: secs(10), smooth: false };
    let watched = world.act(0, |machine, now, out| machine.watch(now, watch, out)).unwrap();
    let mut numbers = 0;
    let mut seen = Vec::new();
    for (net, span) in [(10, 300), (400, 300), (10, 300)] {
        world.net.delay = net;
        world.run(Duration::from_secs(span), &mut |_, _, event| {
            if let Event::Peer(place, reach) = event {
                assert_eq!(*place, watched);
                seen.push(*reach);
            }
        });
        numbers = numbers.max(world.machines[1].counts().indexed);
    }
    assert_eq!(seen, [Reach::Reachable(ms(20)), Reach::Lagged(ms(800)), Reach::Reachable(ms(20))]);
    world.net.loss = 100;
    world.run(secs(120), &mut |_, _, _| {});
    assert_eq!(world.machines[0].reach(watched), Some(Reach::Unreachable));
    assert_eq!(numbers, 0, "who is poked keeps nothing");
    world.act(0, |machine, now, out| machine.unwatch(now, watched, out)).unwrap();
    world.assert_empty();
}

#[test]
fn rfc5456_6_7_1_an_answer_to_a_repeated_question_tells_no_round_trip() {
    for (name, lost_for, delay, told_by, expected) in [
        ("a peer that starts a moment later", ms(1500), 10, ms(2100), Reach::Reachable(ms(20))),
        ("a slow one", Duration::ZERO, 1250, ms(6000), Reach::Lagged(ms(2500))),
    ] {
        let mut world = World::two();
        let (every, every_down) = (secs(60), secs(10));
        let watch = Watch { to: address(1), most: secs(2), every, every_down, smooth: false };
        world.net.delay = delay;
        world.net.loss = if lost_for.is_zero() { 0 } else { 100 };
        world.act(0, |machine, now, out| machine.watch(now, watch, out)).unwrap();
        world.run(lost_for, &mut |_, _, _| {});
        world.net.loss = 0;
        world.run(told_by - lost_for, &mut |_, _, _| {});
        let told: Vec<&Event> = world.of(0).collect();
        assert!(matches!(told[..], [Event::Peer(_, reach)] if *reach == expected), "{name}: {told:?}");
    }
}

#[test]
fn rfc5456_6_7_1_with_smoothing_the_mean_of_two_round_trips_decides() {
    for (smooth, expected) in [(false, 2), (true, 1)] {
        let mut world = World::two();
        let every = secs(60);
        let watch = Watch { to: address(1), most: ms(150), every, every_down: secs(10), smooth };
        world.act(0, |machine, now, out| machine.watch(now, watch, out)).unwrap();
        world.run(secs(1), &mut |_, _, _| {});
        // 200 ms once: more than 150, and less than 150 with the 20 ms before.
        world.net.delay = 100;
        world.run(secs(76), &mut |_, _, _| {});
        let told = world.of(0).filter(|event| matches!(event, Event::Peer(..))).count();
        assert_eq!(told, expected, "smooth: {smooth}");
    }
}

#[test]
fn messages_are_told_outside_of_calls_until_they_are_acknowledged() {
    for (name, loss) in [("a good way", 0), ("a bad one", 100)] {
        let mut world = World::two();
        world.net.loss = loss;
        world.act(0, |machine, now, out| machine.announce(now, address(1), 0x0102, out)).unwrap();
        world.run(secs(1), &mut |_, _, _| {});
        world.net.loss = 0;
        world.run(secs(60), &mut |_, _, _| {});
        let sent = messages(&world, 0);
        assert!(sent.iter().all(|command| *command == Command::MWI), "{name}: {sent:?}");
        assert_eq!(sent.len() > 1, loss > 0, "{name}: {sent:?}");
        assert_eq!(messages(&world, 1).first(), Some(&Command::ACK), "{name}");
        assert!(world.told.is_empty(), "{name}: nobody hears of it");
        world.assert_empty();
    }
}

#[test]
fn who_fails_may_be_left_waiting_for_the_refusal() {
    let mut world = World::two();
    let mut office = Office::new(b"secret", 60);
    world.act(0, |machine, now, out| machine.keep_registered(now, registration(b"other", 60), out)).unwrap();
    let mut failed = None;
    world.run(secs(1), &mut |world, side, event| match event {
        Event::Unproven(leg) => failed = Some(*leg),
        _ => office.handle(world, side, event),
    });
    assert!(!messages(&world, 1).contains(&Command::REGREJ));
    let sent = messages(&world, 0).len();
    world.run(secs(1), &mut |_, _, _| {});
    refuse(&mut world, failed.expect("a wrong proof"));
    world.run(secs(1), &mut |_, _, _| {});
    assert!(world.of(0).any(|event| matches!(event, Event::RegistrationRefused { .. })));
    assert_eq!(
        messages(&world, 0).len(),
        sent + 1,
        "nothing was repeated meanwhile, and the refusal acknowledged"
    );
}
