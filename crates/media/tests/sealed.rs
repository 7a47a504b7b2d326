//! Streams of SRTP: what they carry is what plain ones carry, and who has no key moves nothing.

mod common;

use base::{
    Command, Event, FormatId, Latch, MemberSettings, PlayId, RoomId, RoomSettings, SrtpSuite, StreamId,
};
use common::*;
use rtp::Discard;
use srtp::Session;

/// A phone that seals what it says and opens what it hears, when it has a session.
struct Talker {
    phone: Phone,
    session: Option<Session>,
}

impl Talker {
    fn say(&mut self, plant: &mut Plant, audio: &[u8]) {
        let packet = self.phone.packet(audio);
        let packet = self.session.as_mut().map_or(packet.clone(), |session| sealed(session, &packet));
        plant.datagram(self.phone.stream, self.phone.from, packet);
    }
    fn heard(&mut self, plant: &Plant) -> Vec<Sent> {
        let sent = plant.net.sent.iter().filter(|sent| sent.port == port(self.phone.stream));
        sent.map(|sent| match &mut self.session {
            Some(session) => opened(session, sent),
            None => sent.clone(),
        })
        .collect()
    }
}

/// A plant, and talkers with these formats; those that are sealed have these suites.
fn calls(lines: &[(FormatId, Option<SrtpSuite>)]) -> (Plant, Vec<Talker>) {
    let mut plant = Plant::new();
    let talkers = lines
        .iter()
        .enumerate()
        .map(|(number, (format, suite))| {
            let number = number as u32;
            let keys = suite.map(|suite| keys_of(suite, number));
            let session = keys.as_deref().map(far_end);
            let mut plan = plan(number, *format, format.usual_payload().unwrap());
            plan.rtcp_interval_ms = 300;
            plan.remote_rtcp = plan.remote;
            plan.keys = keys;
            let payload = plan.payload;
            Talker { phone: Phone::new(plant.open(plan), payload), session }
        })
        .collect();
    (plant, talkers)
}

/// When, whether RTCP, and what.
type Heard = (u64, bool, Vec<u8>);

/// What everyone hears of two seconds in which `act` says what happens when.
fn heard(
    lines: &[(FormatId, Option<SrtpSuite>)],
    act: impl Fn(&mut Plant, &mut [Talker], u64),
) -> (Vec<Vec<Heard>>, Vec<Event>) {
    let (mut plant, mut talkers) = calls(lines);
    let formats: Vec<_> = lines.iter().map(|(format, _)| *format).collect();
    let speech: Vec<_> = formats.iter().map(|format| tone(*format, 440.0, 2000)).collect();
    for round in 0..100_u64 {
        act(&mut plant, &mut talkers, round);
        for (talker, (format, speech)) in talkers.iter_mut().zip(formats.iter().zip(&speech)) {
            let bytes = format.bytes_in(20);
            talker.say(&mut plant, &speech[round as usize * bytes..][..bytes]);
        }
        plant.run(20);
    }
    let events = plant.take_events();
    let heard = talkers
        .iter_mut()
        .map(|talker| {
            talker.heard(&plant).into_iter().map(|sent| (sent.at_ms, sent.rtcp, sent.bytes)).collect()
        })
        .collect();
    assert_eq!(plant.worker.load().discards.total(), 0);
    (heard, events)
}

#[test]
fn sealed_streams_carry_what_plain_ones_carry_in_bridges_prompts_rooms_digits_and_reports() {
    let (ulaw, gsm) = (FormatId::ULAW, FormatId::GSM);
    let (cm, gcm) = (Some(SrtpSuite::AesCm128Sha1Tag80), Some(SrtpSuite::AesGcm256));
    let short = Some(SrtpSuite::AesCm256Sha1Tag32);
    let ids: Vec<StreamId> = (0..4).map(|slot| StreamId::new(slot, 1)).collect();
    let bridge = |plant: &mut Plant, _: &mut [Talker], round: u64| match round {
        0 => plant.command(Command::Join { a: ids[0], b: ids[1] }),
        40 => plant.command(Command::SendDigit {
            stream: ids[1],
            digit: base::Digit::from_char('5').unwrap(),
            duration_ms: 100,
        }),
        60 => plant.command(Command::Part { stream: ids[0] }),
        61 => plant.command(Command::Echo { stream: ids[0], on: true }),
        _ => {}
    };
    let plays = |plant: &mut Plant, _: &mut [Talker], round: u64| {
        for stream in ids[..2].iter().filter(|_| round == 0) {
            let clip = clip(ulaw, tone(ulaw, 300.0, 700));
            plant.command(Command::Play { stream: *stream, play: PlayId(1), clip, offset: 0 });
        }
    };
    let room = |plant: &mut Plant, talkers: &mut [Talker], round: u64| {
        for talker in talkers.iter().filter(|_| round == 0) {
            plant.command(Command::Enter {
                stream: talker.phone.stream,
                room: RoomId::new(1, 1),
                mixing: RoomSettings::default(),
                member: MemberSettings::default(),
            });
        }
    };
    type Act<'a> = &'a dyn Fn(&mut Plant, &mut [Talker], u64);
    let acts: [(&str, Vec<FormatId>, Act); 5] = [
        ("relay and echo", vec![ulaw, ulaw], &bridge),
        ("relay between the laws", vec![ulaw, FormatId::ALAW], &bridge),
        ("transcoding", vec![ulaw, gsm], &bridge),
        ("prompts", vec![ulaw, gsm], &plays),
        ("conference", vec![ulaw, gsm, ulaw, ulaw], &room),
    ];
    for (name, formats, act) in acts {
        let with = |suites: [_; 4]| -> Vec<_> { formats.iter().copied().zip(suites).collect() };
        let (plain, told) = heard(&with([None; 4]), act);
        assert!(plain.iter().all(|heard| heard.len() > 30), "{name}");
        for suites in [[cm, None, gcm, None], [None, short, None, cm], [cm, gcm, short, cm]] {
            let (sealed, events) = heard(&with(suites), act);
            assert!(plain == sealed, "{name} {suites:?}");
            assert_eq!(told, events, "{name} {suites:?}");
        }
    }
}

/// An event that a packet of speech does not make.
fn latched(events: &[Event]) -> usize {
    events.iter().filter(|event| matches!(event, Event::Latched { .. })).count()
}

#[test]
fn packets_that_are_not_authentic_neither_move_the_latch_nor_count_nor_end_a_silence() {
    for latch in [Latch::Off, Latch::Learn("192.0.2.1".parse().unwrap())] {
        let mut plant = Plant::new();
        let mut plan = plan(0, FormatId::ULAW, 0);
        let keys = keys(0);
        (plan.latch, plan.rtp_timeout_ms, plan.keys) = (latch, 500, Some(keys.clone()));
        let a = plant.open(plan);
        plant.command(Command::Echo { stream: a, on: true });
        let mut alice = Phone::new(a, 0);
        let mut session = far_end(&keys);
        let mut forger = Phone::new(a, 0);
        forger.from = match latch {
            Latch::Learn(ip) => (ip, 9999).into(),
            Latch::Strict | Latch::Off => "203.0.113.9:9".parse().unwrap(),
        };
        let mut wrong = far_end(&keys_of(SrtpSuite::AesCm128Sha1Tag80, 9));
        let mut seed = base::Random::new(3);
        let mut forge = |plant: &mut Plant, at: u32| {
            // Plain packets, packets under another key, the call's own with a bit turned, with its source and a stranger's.
            let packet = forger.packet(&[0x55; 160]);
            let mut packet = if at.is_multiple_of(2) { packet } else { sealed(&mut wrong, &packet) };
            if at.is_multiple_of(3) {
                packet[8..12].copy_from_slice(&0xabc0_u32.to_be_bytes());
                packet[2..4].copy_from_slice(&(seed.word() as u16).to_be_bytes());
            }
            plant.datagram(a, if at.is_multiple_of(5) { phone(a) } else { forger.from }, packet.clone());
            plant.rtcp(a, forger.from, packet);
        };
        // Before the call's first packet: nobody is latched onto, and the silence goes on.
        for at in 0..1000 {
            forge(&mut plant, at);
            plant.run(1);
        }
        let events = plant.take_events();
        assert_eq!(latched(&events), 0, "{latch:?}");
        assert_eq!(events, [Event::RtpTimeout { stream: a }], "{latch:?}");
        assert!(plant.sent_by(a).is_empty(), "{latch:?}");

        // In the midst of it: the call hears itself, and the forger nothing.
        for round in 0..200_u32 {
            let packet = sealed(&mut session, &alice.packet(&[0x55; 160]));
            // The forger is first, with the same bytes but one.
            let mut forged = packet.clone();
            forged[171 + (round % 10) as usize] ^= 1 << (round % 8);
            plant.datagram(a, "203.0.113.9:9".parse().unwrap(), forged);
            (0..50).for_each(|at| forge(&mut plant, round * 50 + at));
            plant.datagram(a, alice.from, packet.clone());
            // And then repeats what it saw.
            plant.datagram(a, "203.0.113.9:9".parse().unwrap(), packet);
            plant.run(20);
        }
        let sent = plant.sent_by(a);
        assert_eq!(sent.iter().filter(|sent| sent.to != alice.from).count(), 0, "{latch:?}");
        let learning = if matches!(latch, Latch::Learn(_)) { 3 } else { 0 };
        assert_eq!(sent.len(), 200 - learning, "{latch:?}");
        let heard: Vec<_> = sent.iter().map(|sent| opened(&mut session, sent)).collect();
        assert!(heard.iter().all(|sent| sent.payload() == [0x55; 160]), "{latch:?}");
        assert_continuous(&heard, 160);
        let discards = plant.worker.load().discards;
        assert_eq!(discards.total(), 1000 * 2 + 200 * (1 + 50 * 2 + 1), "{latch:?}: each one, and no other");
        assert!(discards.of(Discard::Replayed) >= 200, "{latch:?}");
        plant.command(Command::Close { stream: a });
        let stats = plant.take_events().into_iter().find_map(|event| match event {
            Event::Closed { stats, .. } => Some(stats),
            _ => None,
        });
        let stats = stats.unwrap();
        assert_eq!((stats.received_packets, stats.lost_packets), (200 - learning as u64, 0), "{latch:?}");
        assert_eq!(stats.peer_ssrc, alice.ssrc, "{latch:?}");
    }
}

/// All of them where the compiler optimises, as `cargo bench -p media --bench sealed` does; else as many as take a moment.
const FORGED: u32 = if cfg!(debug_assertions) { 20_000 } else { 1_000_000 };

#[test]
fn rfc3711_3_3_a_million_forged_packets_move_neither_rollover_nor_replay_window_nor_latch() {
    forgery::withstand(FORGED);
}

#[test]
fn a_plan_with_the_same_keys_goes_on_and_one_with_others_begins_anew() {
    let (mut plant, mut talkers) = calls(&[(FormatId::ULAW, Some(SrtpSuite::AesCm128Sha1Tag80)); 2]);
    let (a, b) = (talkers[0].phone.stream, talkers[1].phone.stream);
    plant.command(Command::Join { a, b });
    let replan = |plant: &mut Plant, stream: StreamId, keys| {
        let mut plan = plan(stream.slot, FormatId::ULAW, 0);
        plan.keys = keys;
        plant.command(Command::Plan { stream, plan: Box::new(plan) });
    };
    let talk = |plant: &mut Plant, talkers: &mut [Talker], rounds| {
        for _ in 0..rounds {
            talkers.iter_mut().for_each(|talker| talker.say(plant, &[0x31; 160]));
            plant.run(20);
        }
        for talker in talkers.iter_mut() {
            let heard: Vec<_> = talker.heard(plant).into_iter().filter(|sent| !sent.rtcp).collect();
            assert_eq!(heard.len(), rounds);
            assert!(heard.iter().all(|sent| sent.payload() == [0x31; 160]));
        }
        plant.net.sent.clear();
        assert_eq!(plant.worker.load().discards.total(), 0);
    };
    // Sequence numbers of both begin near the end: each rolls over.
    talk(&mut plant, &mut talkers, 600);
    replan(&mut plant, a, Some(keys(0)));
    talk(&mut plant, &mut talkers, 50);
    // Another key, another suite, none, and one again; the peer does the same.
    let suite = SrtpSuite::AesGcm128;
    for keys in [Some(keys(7)), Some(keys_of(suite, 7)), None, Some(keys_of(suite, 8))] {
        talkers[0].session = keys.as_deref().map(far_end);
        replan(&mut plant, a, keys);
        talk(&mut plant, &mut talkers, 50);
    }
    // Who was promised SRTP is not sent, and does not hear, anything plain.
    talkers[0].session = None;
    for _ in 0..10 {
        talkers.iter_mut().for_each(|talker| talker.say(&mut plant, &[0x31; 160]));
        plant.run(20);
    }
    assert!(talkers[1].heard(&plant).iter().all(|sent| sent.rtcp));
    assert_eq!(plant.worker.load().discards.of(Discard::NotAuthentic), 10);
}

#[test]
fn a_bridge_with_srtp_is_never_relayed_below_the_worker() {
    let cm = Some(SrtpSuite::AesCm128Sha1Tag80);
    for (suites, below) in [([None, None], true), ([cm, None], false), ([None, cm], false), ([cm, cm], false)]
    {
        let (mut plant, mut talkers) = calls(&suites.map(|suite| (FormatId::ULAW, suite)));
        plant.net.relays = true;
        plant.command(Command::Join { a: talkers[0].phone.stream, b: talkers[1].phone.stream });
        for _ in 0..250 {
            talkers.iter_mut().for_each(|talker| talker.say(&mut plant, &[0x31; 160]));
            plant.run(20);
        }
        assert_eq!(plant.net.carried > 0, below, "{suites:?}");
    }
}

#[test]
fn reports_are_sealed_too_and_forged_ones_change_nothing() {
    let (mut plant, mut talkers) = calls(&[(FormatId::ULAW, Some(SrtpSuite::AesGcm256))]);
    let a = talkers[0].phone.stream;
    plant.command(Command::Echo { stream: a, on: true });
    let report = |lost: i32, ssrc: u32| {
        let mut bytes = [0; 128];
        let mut writer = rtp::rtcp::Writer::new(&mut bytes);
        let block = rtp::rtcp::Block {
            ssrc: 0x1000,
            fraction_lost: 1,
            lost,
            highest: 1,
            jitter: 2,
            last_report: 0,
            delay: 0,
        };
        writer.report(ssrc, None, Some(block));
        let length = writer.len();
        (bytes, length)
    };
    for _ in 0..50 {
        talkers[0].say(&mut plant, &[0x31; 160]);
        plant.run(20);
    }
    let (bytes, length) = report(500, talkers[0].phone.ssrc);
    plant.rtcp(a, phone(a), bytes[..length].to_vec());
    plant.rtcp(a, phone(a), [&bytes[..length], &[0x80, 0, 0, 1][..], &[0; 16]].concat());
    let (mut bytes, length) = report(7, talkers[0].phone.ssrc);
    let sealed = talkers[0].session.as_mut().unwrap().seal_rtcp(&mut bytes, length).unwrap();
    plant.rtcp(a, phone(a), bytes[..sealed].to_vec());
    plant.run(5);
    plant.command(Command::Stats { stream: a });
    let told = plant.take_events().into_iter().rev().find_map(|event| match event {
        Event::Stats { stats, asked: true, .. } => Some(stats.peer_lost_packets),
        _ => None,
    });
    assert_eq!(told, Some(7));
    assert_eq!(plant.worker.load().discards.total(), 2);
    plant.command(Command::Close { stream: a });
    let heard = talkers[0].heard(&plant);
    let reports = heard.iter().filter(|sent| sent.rtcp && rtp::rtcp::Compound::parse(&sent.bytes).is_ok());
    assert!(reports.count() > 2);
}
