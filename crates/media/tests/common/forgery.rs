//! A call with SRTP in the midst of forged packets: shared by the test and the bench that runs it whole.

use base::{Command, Event, FormatId, Latch};

use super::{Phone, Plant, far_end, keys, opened, phone, plan, sealed};

/// Sends so many forged packets at a call whose counter is about to roll over, and asserts that they have changed nothing
/// (RFC 3711 §3.3): not the rollover counter, not the replay window, not the latch, no
/// statistics.
pub fn withstand(count: u32) {
    let mut plant = Plant::new();
    let (mut plan, keys) = (plan(0, FormatId::ULAW, 0), keys(0));
    (plan.latch, plan.keys) = (Latch::Learn("192.0.2.1".parse().unwrap()), Some(keys.clone()));
    let stream = plant.open(plan);
    plant.command(Command::Echo { stream, on: true });
    let (mut alice, mut session) = (Phone::new(stream, 0), far_end(&keys));
    alice.sequence = u16::MAX - 40;
    let mut make = || sealed(&mut session, &alice.packet(&[0x55; 160]));
    let hear = |plant: &mut Plant, packet: &[u8]| {
        plant.datagram(stream, phone(stream), packet.to_vec());
        plant.run(20);
    };
    let heard: Vec<_> = (0..20).map(|_| make()).collect();
    // One that is on its way meanwhile, and is not too late when it comes.
    let (late, last) = (make(), make());
    heard.iter().chain([&last]).for_each(|packet| hear(&mut plant, packet));
    let events = plant.take_events();
    assert!(events.iter().any(|event| matches!(event, Event::Latched { .. })), "{events:?}");
    let (sent, discarded) = (plant.sent_by(stream).len(), plant.worker.load().discards.total());

    let mut seed = base::Random::new(7);
    for at in 0..count {
        let random = seed.word();
        let mut forged = match at % 4 {
            // What was heard, again.
            0 => heard[random as usize % heard.len()].clone(),
            _ => last.clone(),
        };
        match at % 4 {
            0 => {}
            // Any number of the call's own source, before and behind the rollover.
            1 => forged[2..4].copy_from_slice(&(random as u16).to_be_bytes()),
            // Another source.
            2 => forged[8..12].copy_from_slice(&random.to_be_bytes()),
            _ => forged[20 + random as usize % 150] ^= 1 << (random % 8),
        }
        if at % 4 == 1 && forged == last {
            forged[30] ^= 1;
        }
        let from = match at % 3 {
            0 => phone(stream),
            1 => "192.0.2.1:9999".parse().unwrap(),
            _ => "203.0.113.9:9".parse().unwrap(),
        };
        plant.datagram(stream, from, forged);
        if at % 64 == 63 {
            plant.net.now_ms -= 1;
            plant.run(1);
        }
    }
    plant.run(1);
    assert_eq!(plant.worker.load().discards.total() - discarded, u64::from(count), "each one, and no other");
    assert_eq!(plant.take_events(), [], "nobody hears of it");
    assert_eq!(plant.sent_by(stream).len(), sent, "and nobody hears it");

    // The one that was on its way is good once, and the call goes on over its rollover.
    (0..2).for_each(|_| hear(&mut plant, &late));
    assert_eq!(plant.worker.load().discards.total() - discarded, u64::from(count) + 1, "once");
    (0..60).for_each(|_| hear(&mut plant, &make()));
    assert_eq!(plant.worker.load().discards.total() - discarded, u64::from(count) + 1);
    let echoed = plant.sent_by(stream);
    assert!(echoed.iter().all(|packet| packet.to == phone(stream)), "the latch stays");
    assert_eq!(echoed.len(), sent + 61);
    let mut ears = far_end(&keys);
    assert!(echoed.iter().all(|packet| opened(&mut ears, packet).payload() == [0x55; 160]));
}
