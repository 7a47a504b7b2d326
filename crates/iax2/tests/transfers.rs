//! Trunks, and calls that are sent elsewhere.

mod world;

use base::{Cause, FormatId, Place};
use iax2::frame::{Control, Datagram, parse};
use iax2::machine::{Connected, Dial, Encrypt, Lines, TrunkSettings};
use iax2::{Event, Secret, Settings};
use world::{World, accept_any, address, ms, secs};

const ULAW: FormatId = FormatId::ULAW;

fn voice(world: &mut World, side: usize, leg: Place, byte: u8) {
    world.act(side, |machine, now, out| machine.voice(now, leg, ULAW, 20, &[byte; 160], out)).unwrap();
}

/// First bytes of the voice that a machine heard on a leg since `start`.
fn heard(world: &World, start: usize, side: usize, leg: Place) -> Vec<u8> {
    world.told[start..]
        .iter()
        .filter(|(_, at, event, _)| {
            *at == side && matches!(event, Event::Voice { leg: of, .. } if *of == leg)
        })
        .map(|(.., payload)| payload[0])
        .collect()
}

#[test]
fn rfc5456_7_1_voice_of_many_calls_goes_together_and_no_datagram_is_too_long() {
    for (stamped, calls, bytes_max, datagrams) in
        [(true, 10, 1240, 2), (false, 10, 1240, 2), (true, 7, 1240, 1)]
    {
        let trunk = TrunkSettings { stamped, bytes_max, ..TrunkSettings::default() };
        let settings = Settings { trunk, ..Settings::default() };
        let mut world = World::new(&[settings.clone(), settings]);
        let legs: Vec<_> = (0..calls).map(|_| world.call(|dial| dial.trunk = true)).collect();
        for (byte, (caller, _)) in (0..).zip(&legs) {
            voice(&mut world, 0, *caller, byte);
        }
        world.run(secs(1), &mut |_, _, _| {});
        let start = world.told.len();
        for _ in 0..50 {
            world.wire.clear();
            for (byte, (caller, _)) in (0..).zip(&legs) {
                voice(&mut world, 0, *caller, byte);
            }
            world.run(ms(20), &mut |_, _, _| {});
            // Questions of the calls' own may go in between.
            let mine = world.wire.iter().filter(|(side, ..)| *side == 0);
            let media: Vec<_> =
                mine.filter(|(.., bytes)| !matches!(parse(bytes), Ok(Datagram::Full(_)))).collect();
            assert_eq!(media.len(), datagrams, "{calls} calls");
            for (.., bytes) in media {
                assert!(bytes.len() <= bytes_max && matches!(parse(bytes), Ok(Datagram::Trunk(_))));
            }
        }
        world.run(ms(100), &mut |_, _, _| {});
        for (byte, (_, callee)) in (0..).zip(&legs) {
            assert_eq!(heard(&world, start, 1, *callee), vec![byte; 50], "stamped: {stamped}");
        }
        for (caller, _) in legs {
            world
                .act(0, |machine, now, out| machine.hang_up(now, caller, Cause::NORMAL_CLEARING, out))
                .unwrap();
        }
        world.assert_empty();
    }
}

/// Machine 0 calls machine 1, which calls machine 2 in its stead: caller, its leg at 1, the leg of 1 to 2, callee.
fn three(encrypt: bool, transferable: bool) -> (World, [Place; 4]) {
    three_with(encrypt, transferable, secs(0))
}

/// The same, with so much time between the two calls.
fn three_with(encrypt: bool, transferable: bool, between: core::time::Duration) -> (World, [Place; 4]) {
    let mut world = World::new(&[Settings::default(), Settings::default(), Settings::default()]);
    let lines = Lines { send: true, take: true };
    let legs = world.call(|dial| (dial.transferable, dial.lines) = (transferable, lines));
    world.run(between, &mut |_, _, _| {});
    let mut dial = Dial::to(address(2));
    (dial.called, dial.transferable) = (b"300", true);
    if encrypt {
        (dial.secret, dial.encrypt) = (Some(Secret::new(b"x")), Encrypt::Required);
    }
    let onward = world.act(1, |machine, now, out| machine.dial(now, &dial, out)).unwrap();
    let mut last = None;
    world.run(secs(2), &mut |world, side, event| match (side, event) {
        (2, Event::Call(leg, _)) if encrypt => {
            let leg = *leg;
            let challenge = iax2::machine::Challenge {
                username: b"",
                methods: iax2::frame::Auth::MD5,
                secret: Secret::new(b"x"),
                encrypt: Encrypt::Required,
                keys_stay: false,
            };
            world.act(2, |machine, now, out| machine.challenge(now, leg, &challenge, out)).unwrap();
        }
        (2, Event::Call(leg, _) | Event::Proven(leg)) => {
            let leg = *leg;
            last = Some(leg);
            world.act(2, |machine, now, out| {
                machine.accept(now, leg, &accept_any(), out).unwrap();
                machine.control(now, leg, Control::ANSWER, out).unwrap();
            });
        }
        _ => {}
    });
    (world, [legs.0, legs.1, onward, last.expect("a call")])
}

#[test]
fn rfc5456_6_5_two_sides_talk_directly_and_who_stood_between_them_is_free() {
    let (mut world, [caller, there, onward, callee]) = three(false, true);
    world.act(1, |machine, now, out| machine.join(now, there, onward, false, out)).unwrap();
    world.run(secs(2), &mut |_, _, _| {});
    assert!(world.of(1).any(|event| *event == Event::Joined(there, onward)), "{:?}", world.told);
    assert!(world.of(0).any(|event| *event == Event::Transferred(caller, address(2))));
    assert!(world.of(2).any(|event| *event == Event::Transferred(callee, address(0))));
    assert!(!world.of(1).any(|event| matches!(event, Event::Ended { .. })), "nobody has hung up");
    assert_eq!(world.machines[1].counts().legs, 0);
    let start = world.told.len();
    for _ in 0..10 {
        voice(&mut world, 0, caller, 1);
        voice(&mut world, 2, callee, 2);
        world.run(ms(20), &mut |_, _, _| {});
    }
    world.act(0, |machine, now, out| machine.text(now, caller, b"direct", out)).unwrap();
    // That who stood between them knew who is talked to says nothing of the other side.
    let party = Connected { number: b"200", name: b"", presentation: 0 };
    let told = world.act(0, |machine, now, out| machine.connected(now, caller, &party, out));
    assert_eq!(told, Ok(false));
    // An hour later both still look after each other.
    world.run(secs(3600), &mut |_, _, _| {});
    assert_eq!(heard(&world, start, 2, callee), [1; 10]);
    assert_eq!(heard(&world, start, 0, caller), [2; 10]);
    assert!(world.of(2).any(|event| *event == Event::Text(callee, b"direct".to_vec())));
    world.act(2, |machine, now, out| machine.hang_up(now, callee, Cause::NORMAL_CLEARING, out)).unwrap();
    world.run(secs(1), &mut |_, _, _| {});
    assert!(matches!(world.of(0).last(), Some(Event::Ended { leg, .. }) if *leg == caller));
    world.assert_empty();
}

#[test]
fn rfc5456_6_5_6_media_alone_goes_directly_and_signalling_stays() {
    let (mut world, [caller, there, onward, callee]) = three(false, true);
    world.act(1, |machine, now, out| machine.join(now, there, onward, true, out)).unwrap();
    world.run(secs(2), &mut |_, _, _| {});
    assert!(world.of(1).any(|event| *event == Event::Joined(there, onward)), "{:?}", world.told);
    assert!(world.of(0).any(|event| *event == Event::MediaTransferred(caller, address(2))));
    assert_eq!(world.machines[1].counts().legs, 2);
    // The full frame that says the format goes the old way, and is passed on there.
    voice(&mut world, 0, caller, 1);
    world.run(ms(100), &mut |_, _, _| {});
    assert!(heard(&world, 0, 1, there).contains(&1));
    voice(&mut world, 1, onward, 1);
    world.run(ms(100), &mut |_, _, _| {});
    let start = world.told.len();
    for _ in 0..10 {
        voice(&mut world, 0, caller, 3);
        world.run(ms(20), &mut |_, _, _| {});
    }
    world.act(0, |machine, now, out| machine.text(now, caller, b"through", out)).unwrap();
    world.run(ms(100), &mut |_, _, _| {});
    assert_eq!((heard(&world, start, 2, callee), heard(&world, start, 1, there)), (vec![3; 10], vec![]));
    assert!(world.of(1).any(|event| *event == Event::Text(there, b"through".to_vec())));
    for leg in [there, onward] {
        world.act(1, |machine, now, out| machine.hang_up(now, leg, Cause::NORMAL_CLEARING, out)).unwrap();
    }
    world.assert_empty();
}

#[test]
fn a_call_that_may_not_be_transferred_or_is_enciphered_goes_on_as_it_is() {
    let (mut world, [caller, there, onward, callee]) = three(false, false);
    world.act(1, |machine, now, out| machine.join(now, there, onward, false, out)).unwrap();
    world.run(secs(20), &mut |_, _, _| {});
    assert!(world.of(1).any(|event| *event == Event::NotJoined(there, onward)), "not to be transferred");
    let start = world.told.len();
    voice(&mut world, 0, caller, 1);
    voice(&mut world, 1, onward, 2);
    world.run(ms(100), &mut |_, _, _| {});
    assert_eq!((heard(&world, start, 1, there), heard(&world, start, 2, callee)), (vec![1], vec![2]));
    let (mut world, [_, there, onward, _]) = three(true, true);
    let refused = world.act(1, |machine, now, out| machine.join(now, there, onward, false, out));
    assert_eq!(refused, Err(iax2::machine::Refused::WrongState), "enciphered");
}

#[test]
fn two_sides_that_do_not_reach_each_other_go_on_through_us() {
    let (mut world, [caller, there, onward, callee]) = three(false, true);
    world.blocked = vec![(0, 2), (2, 0)];
    world.act(1, |machine, now, out| machine.join(now, there, onward, false, out)).unwrap();
    world.run(secs(60), &mut |_, _, _| {});
    assert!(world.of(1).any(|event| *event == Event::NotJoined(there, onward)), "{:?}", world.told);
    let start = world.told.len();
    voice(&mut world, 0, caller, 1);
    voice(&mut world, 1, onward, 2);
    world.run(ms(100), &mut |_, _, _| {});
    assert_eq!((heard(&world, start, 1, there), heard(&world, start, 2, callee)), (vec![1], vec![2]));
    for (side, leg) in [(0, caller), (2, callee)] {
        world.act(side, |machine, now, out| machine.hang_up(now, leg, Cause::NORMAL_CLEARING, out)).unwrap();
    }
    world.assert_empty();
}

#[test]
fn transfers_over_a_bad_network_end_one_way_or_the_other_and_leave_nothing() {
    let (mut done, mut not) = (0, 0);
    for seed in 0..30 {
        let (mut world, [caller, there, onward, callee]) = three(false, true);
        world.random = kit::Random(seed);
        world.net = world::Net { loss: 25, twice: 10, delay: 5, spread: 100 };
        world.act(1, |machine, now, out| machine.join(now, there, onward, seed % 2 == 0, out)).unwrap();
        world.run(secs(60), &mut |_, _, _| {});
        let joined = world.of(1).filter(|event| matches!(event, Event::Joined(..))).count();
        let parted = world.of(1).filter(|event| matches!(event, Event::NotJoined(..))).count();
        assert_eq!(joined + parted, 1, "seed {seed}");
        done += joined;
        not += parted;
        world.net = world::GOOD;
        for (side, leg) in [(0, caller), (1, there), (1, onward), (2, callee)] {
            // Whatever is left of it.
            let _ended =
                world.act(side, |machine, now, out| machine.hang_up(now, leg, Cause::NORMAL_CLEARING, out));
        }
        world.assert_empty();
    }
    assert!(done > 10, "{done} were joined, {not} not");
}

#[test]
fn rfc5456_8_1_2_voice_of_a_side_with_a_younger_clock_has_its_own_times_after_a_transfer() {
    for media_only in [false, true] {
        let (mut world, [caller, there, onward, callee]) = three_with(false, true, secs(100));
        voice(&mut world, 1, there, 1);
        world.run(ms(100), &mut |_, _, _| {});
        world.act(1, |machine, now, out| machine.join(now, there, onward, media_only, out)).unwrap();
        world.run(secs(2), &mut |_, _, _| {});
        let start = world.told.len();
        if media_only {
            // The format goes the old way.
            voice(&mut world, 2, callee, 2);
            voice(&mut world, 1, there, 2);
            world.run(ms(100), &mut |_, _, _| {});
        }
        for _ in 0..50 {
            voice(&mut world, 2, callee, 2);
            world.run(ms(20), &mut |_, _, _| {});
        }
        world.run(ms(100), &mut |_, _, _| {});
        let times: Vec<u32> = world.told[start..]
            .iter()
            .filter_map(|(_, side, event, _)| match event {
                Event::Voice { leg, timestamp, .. } if *side == 0 && *leg == caller => Some(*timestamp),
                _ => None,
            })
            .collect();
        assert!(times.len() >= 50, "{times:?}");
        let steps = times.windows(2).skip(2);
        assert!(steps.clone().all(|pair| pair[1].wrapping_sub(pair[0]) == 20), "{media_only}: {times:?}");
        if !media_only {
            assert!(times.iter().all(|time| *time < 30_000), "the other side's own clock: {times:?}");
            let local = world.machines[0].look(caller).expect("a call").local;
            assert_eq!((local.out_of_order, local.lost), (0, 0), "{local:?}");
            assert!(local.jitter_ms < 5, "{local:?}");
        }
    }
}

#[test]
fn a_join_ends_with_the_first_of_its_legs_that_is_hung_up() {
    for by_us in [true, false] {
        let (mut world, [caller, there, onward, callee]) = three(false, true);
        world.act(1, |machine, now, out| machine.join(now, there, onward, false, out)).unwrap();
        let (side, leg) = if by_us { (1, there) } else { (0, caller) };
        world.act(side, |machine, now, out| machine.hang_up(now, leg, Cause::NORMAL_CLEARING, out)).unwrap();
        world.run(secs(5), &mut |_, _, _| {});
        let parted = world.of(1).filter(|event| **event == Event::NotJoined(there, onward)).count();
        assert_eq!(parted, 1, "by us: {by_us}");
        assert!(!world.of(1).any(|event| matches!(event, Event::Joined(..))), "by us: {by_us}");
        // The other call may be joined again, and goes on.
        let start = world.told.len();
        voice(&mut world, 1, onward, 2);
        world.run(ms(100), &mut |_, _, _| {});
        assert_eq!(heard(&world, start, 2, callee), [2], "by us: {by_us}");
        world.act(2, |machine, now, out| machine.hang_up(now, callee, Cause::NORMAL_CLEARING, out)).unwrap();
        world.assert_empty();
    }
}
