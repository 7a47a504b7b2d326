//! Many calls over a bad network: what is acknowledged was told once and in order, every call ends, nothing is left.

mod world;

use base::{Cause, FormatId, Place};
use iax2::frame::{Auth, Control};
use iax2::machine::{Challenge, Dial, Encrypt, Refused};
use iax2::{Event, Secret, Settings};
use std::collections::BTreeMap;
use world::{Net, World, accept_any, address, ms, secs};

/// What one simulation did.
#[derive(Debug, Default)]
struct Tally {
    calls: usize,
    answered: usize,
    texts: usize,
    voices: usize,
}

/// A leg may end while its driver decides; nothing else may be wrong.
fn meanwhile_gone<T>(done: Result<T, Refused>) {
    assert!(matches!(done, Ok(_) | Err(Refused::NoLeg)), "{:?}", done.err());
}

/// Calls of every kind between two machines, both ways, for two minutes.
fn simulate(seed: u64, net: Net) -> Tally {
    let mut world = World::new(&[Settings::default(), Settings::default()]);
    world.random = kit::Random(seed);
    world.net = net;
    world.keep_wire = false;
    let mut tally = Tally::default();
    // Legs that a driver has, by side: what it said on each, and what it heard.
    let mut open: BTreeMap<(usize, Place), usize> = BTreeMap::new();
    let mut heard: BTreeMap<(usize, Place), Vec<usize>> = BTreeMap::new();
    for round in 0..120usize {
        if round < 60 {
            let side = round % 2;
            let mut dial = Dial::to(address(1 - side));
            (dial.called, dial.transferable, dial.trunk) = (b"1", round % 3 == 0, round % 5 == 0);
            if round % 4 == 1 {
                (dial.secret, dial.encrypt) = (Some(Secret::new(b"secret")), Encrypt::Wanted);
            }
            let leg = world.act(side, |machine, now, out| machine.dial(now, &dial, out)).unwrap();
            open.insert((side, leg), 0);
            tally.calls += 1;
        }
        world.run(secs(1), &mut |world, side, event| match event {
            Event::Call(leg, request) => {
                let leg = *leg;
                open.insert((side, leg), 0);
                if request.fields().encryption.is_some() {
                    let (methods, secret) = (Auth::MD5, Secret::new(b"secret"));
                    let challenge = Challenge {
                        username: b"",
                        methods,
                        secret,
                        encrypt: Encrypt::Wanted,
                        keys_stay: false,
                    };
                    world.act(side, |machine, now, out| {
                        meanwhile_gone(machine.challenge(now, leg, &challenge, out))
                    });
                } else {
                    world.act(side, |machine, now, out| {
                        meanwhile_gone(machine.accept(now, leg, &accept_any(), out))
                    });
                }
            }
            Event::Proven(leg) => {
                let leg = *leg;
                world.act(side, |machine, now, out| {
                    meanwhile_gone(machine.accept(now, leg, &accept_any(), out))
                });
            }
            Event::Text(leg, text) => {
                let number = String::from_utf8_lossy(text).parse().expect("one of ours");
                heard.entry((side, *leg)).or_default().push(number);
            }
            Event::Voice { .. } => tally.voices += 1,
            Event::Control(_, Control::ANSWER) => tally.answered += 1,
            Event::Ended { leg, .. } => {
                assert!(open.remove(&(side, *leg)).is_some(), "seed {seed}: ended twice, or never begun");
            }
            _ => {}
        });
        for (&(side, leg), said) in &mut open {
            let (text, begun) = (said.to_string(), *said == 0);
            world.act(side, |machine, now, out| {
                if machine.text(now, leg, text.as_bytes(), out).is_ok() {
                    *said += 1;
                    if begun {
                        // The window may be full: then it goes on unanswered.
                        let _sent = machine.control(now, leg, Control::ANSWER, out);
                    }
                    for _ in 0..5 {
                        let _sent = machine.voice(now, leg, FormatId::ULAW, 20, &[7; 33], out);
                    }
                }
            });
        }
        if round % 3 == 2 && round > 20 {
            let at = world.random.below(open.len().max(1));
            if let Some((side, leg)) = open.keys().nth(at).copied() {
                open.remove(&(side, leg));
                world
                    .act(side, |machine, now, out| machine.hang_up(now, leg, Cause::NORMAL_CLEARING, out))
                    .unwrap();
            }
        }
    }
    for numbers in heard.values() {
        assert!(
            numbers.iter().copied().eq(0..numbers.len()),
            "seed {seed}: each once and in order: {numbers:?}"
        );
        tally.texts += numbers.len();
    }
    for (side, leg) in std::mem::take(&mut open).into_keys() {
        world.act(side, |machine, now, out| machine.hang_up(now, leg, Cause::NORMAL_CLEARING, out)).unwrap();
    }
    world.assert_empty();
    tally
}

#[test]
fn over_a_bad_network_what_is_said_arrives_once_and_in_order_and_every_call_ends() {
    let seeds = std::env::var("STROWGER_IAX2_SEEDS").ok().and_then(|n| n.parse().ok()).unwrap_or(6);
    for seed in 0..seeds {
        let net = [
            Net { loss: 5, twice: 5, delay: 20, spread: 30 },
            Net { loss: 20, twice: 20, delay: 5, spread: 300 },
            Net { loss: 40, twice: 0, delay: 50, spread: 0 },
        ][seed as usize % 3];
        let tally = simulate(seed, net);
        assert_eq!(tally.calls, 60);
        assert!(tally.texts > 100 && tally.voices > 100, "seed {seed}: {tally:?}");
    }
}

#[test]
fn over_a_good_network_everything_that_is_said_is_heard() {
    let tally = simulate(1, Net { loss: 0, twice: 0, delay: 10, spread: 0 });
    assert!(tally.texts > 3000 && tally.answered > 100, "{tally:?}");
}

#[test]
fn a_network_that_loses_everything_ends_every_call() {
    let mut world = World::two();
    let (caller, callee) = world.call(|_| {});
    world.net.loss = 100;
    world.act(0, |machine, now, out| machine.text(now, caller, b"lost", out)).unwrap();
    world.run(ms(1), &mut |_, _, _| {});
    world.run(secs(200), &mut |_, _, _| {});
    for (side, leg) in [(0, caller), (1, callee)] {
        assert!(matches!(world.of(side).last(), Some(Event::Ended { leg: ended, .. }) if *ended == leg));
    }
    world.assert_empty();
}
