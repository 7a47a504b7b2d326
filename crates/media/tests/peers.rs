//! Who may send, what RTCP says, when a peer is gone, and what a fault costs.

mod common;

use std::time::Duration;

use base::{Command, Event, Fault, FormatId, Instant, Latch, PlayEnd, PlayId, RtcpReport};
use common::*;
use media::{Input, Tracing};
use rtp::{Discard, rtcp};

fn thief() -> std::net::SocketAddr {
    "203.0.113.66:6666".parse().unwrap()
}

#[test]
fn a_sprayer_is_neither_heard_nor_answered_and_costs_the_call_nothing() {
    for learn in [false, true] {
        let mut plant = Plant::new();
        let mut own = plan(0, FormatId::ULAW, 0);
        if learn {
            // Behind a NAT: SDP named an address of no use, the packets come from another port of the phone's host.
            own.latch = Latch::Learn(peer(0).ip());
            own.remote = Some("10.0.0.5:9000".parse().unwrap());
        }
        let a = plant.open(own);
        let b = plant.open(plan(1, FormatId::ULAW, 0));
        plant.command(Command::Join { a, b });
        let (mut alice, mut bob) = (Phone::new(a, 0), Phone::new(b, 0));
        // The thief knows the SSRC and nearly the sequence, and speaks before, during and after Alice.
        let mut spray = Phone { from: thief(), ..Phone::new(a, 0) };
        for n in 0..100 {
            for _ in 0..100 {
                spray.say(&mut plant, &[66; 160]);
            }
            if n >= 10 {
                alice.say(&mut plant, &[7; 160]);
            }
            bob.say(&mut plant, &[8; 160]);
            plant.run(20);
        }
        assert!(plant.net.sent.iter().all(|s| s.to != thief()), "learn {learn}: nothing goes to the thief");
        let heard = plant.sent_by(b);
        assert!(
            heard.iter().all(|s| s.payload() == [7; 160]),
            "learn {learn}: none of its samples are heard"
        );
        assert_eq!(heard.len(), if learn { 87 } else { 90 }, "learn {learn}: a lock takes four packets");
        assert_eq!(plant.net.locked[&port(a)], Some(alice.from), "learn {learn}");
        plant.command(Command::Stats { stream: a });
        let Some(Event::Stats { stats, .. }) = plant.events.last() else { panic!() };
        assert_eq!((stats.lost_packets, stats.discarded_packets), (0, 10_000), "learn {learn}");
        let latched: Vec<_> = plant
            .events
            .iter()
            .filter(|e| matches!(e, Event::Latched { stream, .. } if *stream == a))
            .collect();
        assert_eq!(latched, [&Event::Latched { stream: a, remote: alice.from }], "learn {learn}");
        // Before the lock only SDP's address was served, after it only the phone.
        let to: Vec<_> = plant.sent_by(a).iter().map(|s| s.to).collect();
        if learn {
            let nat: std::net::SocketAddr = "10.0.0.5:9000".parse().unwrap();
            assert!(to[..10].iter().all(|&to| to == nat));
            assert!(to[20..].iter().all(|&to| to == alice.from));
        } else {
            assert!(to.iter().all(|&to| to == alice.from));
        }
    }
}

#[test]
fn a_new_answer_opens_the_window_again_and_only_then() {
    let mut plant = Plant::new();
    let learning = base::Plan { latch: Latch::Learn(peer(0).ip()), ..plan(0, FormatId::ULAW, 0) };
    let a = plant.open(learning.clone());
    plant.command(Command::Echo { stream: a, on: true });
    let mut alice = Phone::new(a, 0);
    for _ in 0..5 {
        alice.say(&mut plant, &[1; 160]);
        plant.run(20);
    }
    assert_eq!(plant.sent_by(a).len(), 2);
    alice.from.set_port(7777);
    for relearn in [false, true] {
        plant
            .command(Command::Plan { stream: a, plan: Box::new(base::Plan { relearn, ..learning.clone() }) });
        assert_eq!(plant.net.locked[&port(a)].is_none(), relearn);
        for _ in 0..5 {
            alice.say(&mut plant, &[2; 160]);
            plant.run(20);
        }
        assert_eq!(plant.sent_by(a).len(), if relearn { 4 } else { 2 }, "relearn {relearn}");
    }
    assert_eq!(plant.sent_by(a).last().unwrap().to.port(), 7777);
}

#[test]
fn a_session_refresh_costs_a_phone_behind_a_nat_no_audio() {
    let mut plant = Plant::new();
    let learning = base::Plan { latch: Latch::Learn(peer(0).ip()), ..plan(0, FormatId::ULAW, 0) };
    let a = plant.open(learning.clone());
    plant.command(Command::Echo { stream: a, on: true });
    let mut alice = Phone::new(a, 0);
    for n in 0..200 {
        if n % 20 == 19 {
            let refresh = base::Plan { relearn: true, ..learning.clone() };
            plant.command(Command::Plan { stream: a, plan: Box::new(refresh) });
        }
        alice.say(&mut plant, &[1; 160]);
        plant.run(20);
    }
    let sent = plant.sent_by(a);
    assert_eq!(sent.len(), 197, "only what the first lock takes");
    assert_continuous(&sent, 160);
    plant.run(20);
    (0..50).for_each(|_| {
        alice.say(&mut plant, &[1; 160]);
        plant.run(20);
    });
    assert_eq!(plant.net.locked[&port(a)], Some(alice.from), "the window closes again");
}

#[test]
fn malformed_and_foreign_packets_are_counted_words() {
    let mut plant = Plant::new();
    let a = plant.open(plan(0, FormatId::ULAW, 0));
    let mut alice = Phone::new(a, 0);
    alice.say(&mut plant, &[1; 160]);
    let good = alice.packet(&[1; 160]);
    let mut version = good.clone();
    version[0] = 0x40;
    let mut payload = good.clone();
    payload[1] = 77 - 64;
    for bytes in [vec![], vec![0x80], version, payload, good[..12].to_vec()] {
        plant.datagram(a, alice.from, bytes);
    }
    plant.datagram(a, alice.from, [&good[..1], &[200], &good[2..]].concat());
    alice.event(&mut plant, 99, false, 1);
    plant.run(1);
    let discards = plant.worker.load().discards;
    let counted: Vec<_> = discards.iter().filter(|(_, n)| *n > 0).collect();
    let expected = [
        (Discard::TooShort, 2),
        (Discard::BadVersion, 1),
        (Discard::NoPayload, 1),
        (Discard::UnknownPayload, 1),
        (Discard::BadEvent, 1),
        (Discard::BadRtcp, 1),
    ];
    assert_eq!(counted, expected);
}

#[test]
fn rfc3550_6_3_reports_come_every_interval_and_tell_loss_and_round_trip() {
    let mut plant = Plant::new();
    let mut own = plan(0, FormatId::ULAW, 0);
    (own.remote_rtcp, own.rtcp_interval_ms) = (Some("192.0.2.1:4001".parse().unwrap()), 1000);
    let a = plant.open(own);
    let start = plant.net.now_ms;
    plant.command(Command::Echo { stream: a, on: true });
    let mut alice = Phone::new(a, 0);
    let mut answered = false;
    for n in 0..500 {
        if n % 10 == 9 {
            alice.packet(&[]); // lost
        } else {
            alice.say(&mut plant, &[1; 160]);
        }
        plant.run(20);
        if let Some(report) = plant.net.sent.iter().find(|s| s.rtcp).filter(|_| !answered) {
            // 40 ms after our first SR its receiver answers that it held it for 10 ms: 30 ms on the way.
            answered = true;
            assert_eq!(report.to, "192.0.2.1:4001".parse().unwrap());
            let packets: Vec<_> = rtcp::Compound::parse(&report.bytes).unwrap().collect();
            let rtcp::Packet::Report { sender: Some(info), .. } = packets[0] else { panic!("{packets:?}") };
            let at = report.at_ms;
            plant.run(at + 40 - plant.net.now_ms);
            let block = rtcp::Block {
                ssrc: 0x1000,
                fraction_lost: 0,
                lost: 5,
                highest: 1,
                jitter: 16,
                last_report: (info.ntp >> 16) as u32,
                delay: 655,
            };
            let mut buffer = [0; 128];
            let mut writer = rtcp::Writer::new(&mut buffer);
            writer.report(alice.ssrc, None, Some(block));
            let length = writer.len();
            plant.rtcp(a, "203.0.113.1:4001".parse().unwrap(), buffer[..length].to_vec());
            plant.rtcp(a, "192.0.2.1:4001".parse().unwrap(), buffer[..length].to_vec());
        }
    }
    let reports: Vec<_> = plant.net.sent.iter().filter(|s| s.rtcp).cloned().collect();
    let gaps: Vec<_> = reports.windows(2).map(|p| p[1].at_ms - p[0].at_ms).collect();
    assert_eq!(
        (reports[0].at_ms - start, gaps),
        (1000, vec![1000; 9]),
        "the first one comes after an interval too"
    );
    let last: Vec<_> = rtcp::Compound::parse(&reports.last().unwrap().bytes).unwrap().collect();
    let rtcp::Packet::Report { ssrc: 0x1000, sender: Some(info), mut blocks } = last[0] else {
        panic!("{last:?}")
    };
    let block = blocks.next().unwrap();
    assert_eq!(block.ssrc, alice.ssrc);
    assert!((20..=30).contains(&block.fraction_lost), "a tenth of 256: {}", block.fraction_lost);
    assert!((400..=450).contains(&info.packets), "{}", info.packets);
    plant.command(Command::Stats { stream: a });
    let Some(Event::Stats { stats, .. }) = plant.events.last() else { panic!() };
    assert!((29_000..=32_000).contains(&stats.round_trip_us), "{}", stats.round_trip_us);
    assert_eq!((stats.peer_lost_packets, stats.peer_jitter_us, stats.lost_packets), (5, 2000, 49));
    assert_eq!(plant.worker.load().discards.of(Discard::WrongSource), 1);
}

#[test]
fn rfc3550_6_4_what_reports_say_is_told_while_somebody_wants_to_know() {
    let mut plant = Plant::new();
    let mut own = plan(0, FormatId::ULAW, 0);
    let peer: std::net::SocketAddr = "192.0.2.1:4001".parse().unwrap();
    (own.remote_rtcp, own.rtcp_interval_ms) = (Some(peer), 1000);
    let a = plant.open(own);
    let told = |plant: &Plant| -> Vec<RtcpReport> {
        let report = |event: &Event| match event {
            Event::Rtcp { report, .. } => Some(*report),
            _ => None,
        };
        plant.events.iter().filter_map(report).collect()
    };
    let reports_sent = |plant: &Plant| plant.net.sent.iter().filter(|sent| sent.rtcp).count();
    plant.run(3_000);
    let before = reports_sent(&plant);
    assert!(before > 0 && told(&plant).is_empty());
    plant.input(Input::Trace(Tracing { reports: true, ..Tracing::default() }));
    plant.run(3_000);
    let left = told(&plant);
    assert_eq!(left.len(), reports_sent(&plant) - before);
    let expected = RtcpReport { sent: true, peer, ssrc: 0x1000, sender: None, block: None, round_trip_us: 0 };
    assert!(!left.is_empty() && left.iter().all(|report| *report == expected), "{left:?}");
    // What the peer says is told as it said it; what others say is not.
    let sender = rtcp::SenderInfo { ntp: 7 << 32, timestamp: 160, packets: 5, bytes: 800 };
    let block = rtcp::Block {
        ssrc: 0x1000,
        fraction_lost: 64,
        lost: -5,
        highest: 70_000,
        jitter: 16,
        last_report: 0,
        delay: 0,
    };
    let mut buffer = [0; 128];
    let mut writer = rtcp::Writer::new(&mut buffer);
    writer.report(0x55, Some(sender), Some(block));
    let length = writer.len();
    plant.rtcp(a, thief(), buffer[..length].to_vec());
    plant.rtcp(a, peer, buffer[..length].to_vec());
    plant.run(20);
    let came: Vec<_> = told(&plant).into_iter().filter(|report| !report.sent).collect();
    let (sender, block) = (Some(sender), Some(block));
    assert_eq!(came, [RtcpReport { sent: false, ssrc: 0x55, sender, block, ..expected }]);
    plant.input(Input::Trace(Tracing::default()));
    let before = told(&plant).len();
    plant.run(3_000);
    assert_eq!(told(&plant).len(), before, "nobody wants to know any more");
}

#[test]
fn rfc3550_6_6_a_stream_that_closes_says_bye_and_reports_its_totals() {
    let mut plant = Plant::new();
    let mut own = plan(0, FormatId::ULAW, 0);
    (own.remote_rtcp, own.rtcp_interval_ms) = (own.remote, 5000);
    let a = plant.open(own);
    let prompt = clip(FormatId::ULAW, vec![1; 16_000]);
    plant.command(Command::Play { stream: a, play: PlayId(3), clip: prompt, offset: 0 });
    plant.run(200);
    plant.command(Command::Close { stream: a });
    plant.command(Command::Stats { stream: a });
    let bye = plant.net.sent.last().unwrap();
    assert!(bye.rtcp && bye.to == peer(0), "multiplexed: BYE goes where RTP goes");
    let packets: Vec<_> = rtcp::Compound::parse(&bye.bytes).unwrap().collect();
    assert!(matches!(
        packets[..],
        [rtcp::Packet::Report { .. }, rtcp::Packet::Other(202), rtcp::Packet::Bye(_)]
    ));
    let [Event::Played { end: PlayEnd::Stopped, .. }, Event::Closed { stream, stats, fault: None }] =
        plant.events[..]
    else {
        panic!("{:?}", plant.events)
    };
    assert_eq!((stream, stats.sent_packets, stats.sent_bytes), (a, 10, 1600));
    assert_eq!(*plant.net.closed.borrow(), [port(a)]);
    assert_eq!(plant.worker.deadline(1), None, "without a stream the worker sleeps");
}

#[test]
fn a_peer_that_falls_silent_is_reported_once_until_it_comes_back() {
    let mut plant = Plant::new();
    let a = plant.open(base::Plan { rtp_timeout_ms: 1000, ..plan(0, FormatId::ULAW, 0) });
    let mut alice = Phone::new(a, 0);
    let timeouts = |plant: &mut Plant| {
        plant.take_events().iter().filter(|e| **e == Event::RtpTimeout { stream: a }).count()
    };
    plant.run(900);
    assert_eq!(timeouts(&mut plant), 0);
    plant.run(5000);
    assert_eq!(timeouts(&mut plant), 1);
    alice.say(&mut plant, &[1; 160]);
    plant.run(900);
    assert_eq!(timeouts(&mut plant), 0);
    plant.run(5000);
    assert_eq!(timeouts(&mut plant), 1);
}

#[test]
fn a_panic_ends_its_own_stream_and_no_neighbour_loses_a_packet() {
    let mut plant = Plant::new();
    let ids: Vec<_> = (0..40).map(|n| plant.open(plan(n, FormatId::ULAW, 0))).collect();
    let prompt = clip(FormatId::ULAW, vec![1; 32_000]);
    for &stream in &ids {
        plant.command(Command::Play { stream, play: PlayId(1), clip: prompt.clone(), offset: 0 });
    }
    plant.run(100);
    let guilty = ids[17];
    plant.command(Command::Join { a: guilty, b: ids[18] });
    quiet_faults();
    plant.input(Input::Poison(guilty));
    plant.run(1900);
    for &stream in ids.iter().filter(|&&s| s != guilty) {
        let sent = plant.sent_by(stream);
        assert_eq!(sent.len(), 100, "{stream:?}");
        assert!(sent.windows(2).all(|p| p[1].at_ms - p[0].at_ms == 20), "{stream:?}");
    }
    let closed: Vec<_> = plant
        .events
        .iter()
        .filter_map(|e| match e {
            Event::Closed { stream, fault, .. } => Some((*stream, *fault)),
            _ => None,
        })
        .collect();
    assert_eq!(closed, [(guilty, Some(Fault::Panicked))]);
    assert_eq!((plant.worker.load().panics, plant.worker.load().streams), (1, 39));
    assert_eq!(*plant.net.closed.borrow(), [port(guilty)]);
}

struct Broken;
impl base::AudioSink for Broken {
    fn write(&mut self, _: &[i16]) -> usize {
        panic!("a fault injected into a sink");
    }
}

#[test]
fn a_sink_that_panics_ends_the_stream_it_records_though_the_peer_s_visit_pulled() {
    let mut plant = Plant::new();
    let (a, b) = (plant.open(plan(0, FormatId::ULAW, 0)), plant.open(plan(1, FormatId::ALAW, 8)));
    plant.command(Command::Join { a, b });
    plant.command(Command::Record { stream: a, format: FormatId::SLIN, sink: Box::new(Broken) });
    quiet_faults();
    plant.run(100);
    let [Event::Closed { stream, fault: Some(Fault::Panicked), .. }] = plant.events[..] else {
        panic!("{:?}", plant.events)
    };
    assert_eq!(stream, a);
    // The peer is free for another bridge.
    plant.command(Command::Echo { stream: b, on: true });
    let mut bob = Phone::new(b, 8);
    bob.say(&mut plant, &[1; 160]);
    plant.run(1);
    assert_eq!(plant.sent_by(b).len(), 1);
}

#[test]
fn commands_for_a_stream_that_is_gone_or_never_was_are_ignored() {
    let mut plant = Plant::new();
    let a = plant.open(plan(0, FormatId::ULAW, 0));
    let old = base::StreamId::new(a.slot, 0);
    let never = base::StreamId::new(99, 1);
    for stream in [old, never] {
        let prompt = clip(FormatId::ULAW, vec![1; 160]);
        plant.command(Command::Play { stream, play: PlayId(1), clip: prompt, offset: 0 });
        plant.command(Command::Join { a, b: stream });
        plant.command(Command::Tie { a, b: stream });
        plant.command(Command::Part { stream });
        plant.command(Command::Close { stream });
        plant.command(Command::Stats { stream });
        plant.command(Command::Plan { stream, plan: Box::new(plan(0, FormatId::ULAW, 0)) });
        plant.command(Command::WatchSilence { stream, ms: 1, threshold: 1 });
    }
    plant.run(100);
    assert!(plant.events.is_empty(), "{:?}", plant.events);
    assert_eq!(plant.worker.load().streams, 1);
}

#[test]
fn a_stream_moves_between_workers_with_its_bridge_and_numbers() {
    let mut here = Plant::new();
    let mut there = Plant::new();
    let (a, b) = (here.open(plan(0, FormatId::ULAW, 0)), here.open(plan(1, FormatId::ALAW, 8)));
    here.command(Command::Join { a, b });
    let prompt = clip(FormatId::ULAW, (0..100).flat_map(|n| [n; 160]).collect());
    here.command(Command::Play { stream: a, play: PlayId(1), clip: prompt, offset: 0 });
    here.run(500);
    there.run(500);
    for id in [a, b] {
        let now = here.now();
        let moving = here.worker.release(id, now, &mut here.net, &mut here.events).unwrap();
        assert_eq!(moving.stream(), id);
        there.input(Input::Adopt(moving));
    }
    assert_eq!((here.worker.load().streams, there.worker.load().streams), (0, 2));
    assert_eq!(here.net.detached, [port(a), port(b)]);
    there.run(1600);
    let sent = [here.sent_by(a), there.sent_by(a)].concat();
    assert_eq!(sent.len(), 100);
    assert!(sent.iter().enumerate().all(|(n, s)| s.payload() == [n as u8; 160]));
    assert!(sent.windows(2).all(|p| p[1].header().sequence == p[0].header().sequence.wrapping_add(1)));
    // The bridge came along: what Alice says is transcoded to Bob.
    let mut alice = Phone::new(a, 0);
    for _ in 0..20 {
        alice.say(&mut there, &[1; 160]);
        there.run(20);
    }
    assert!(there.sent_by(b).len() >= 18);
}

#[test]
fn a_transcoded_pair_goes_on_with_its_coders_on_another_worker_whoever_moves_first() {
    for (name, order) in [("stays", None), ("caller first", Some([0, 1])), ("callee first", Some([1, 0]))] {
        let (mut here, mut there) = (Plant::new(), Plant::new());
        let ids = [here.open(plan(0, FormatId::G722, 9)), here.open(plan(1, FormatId::GSM, 3))];
        let [a, b] = ids;
        here.command(Command::Join { a, b });
        let mut phones = [Phone::new(a, 9), Phone::new(b, 3)];
        let speech = [tone(FormatId::G722, 700.0, 1000), tone(FormatId::GSM, 700.0, 1000)];
        let mut turn = 0;
        let mut talk = |plant: &mut Plant, turns: usize| {
            for _ in 0..turns {
                for (phone, speech) in phones.iter_mut().zip(&speech) {
                    let size = speech.len() / 50;
                    phone.say(plant, &speech[turn % 50 * size..][..size]);
                }
                turn += 1;
                plant.run(20);
            }
        };
        talk(&mut here, 25);
        there.run(500);
        for n in order.into_iter().flatten() {
            let now = here.now();
            let moving = here.worker.release(ids[n], now, &mut here.net, &mut here.events).unwrap();
            there.input(Input::Adopt(moving));
        }
        talk(if order.is_some() { &mut there } else { &mut here }, 25);
        for (id, format) in [(a, FormatId::G722), (b, FormatId::GSM)] {
            let sent = [here.sent_by(id), there.sent_by(id)].concat();
            let linear = decode(format, &sent);
            let rate = format.rate().0;
            // A coder that began anew would be heard: the far end's goes on from where it was.
            let middle = &linear[linear.len() / 4..linear.len() * 7 / 8];
            assert!(purity(middle, rate, 700.0) > 0.95, "{name}, {format}: {}", purity(middle, rate, 700.0));
            assert!(sent.len() >= 45, "{name}, {format}: {} packets", sent.len());
        }
    }
}

#[test]
fn a_worker_that_was_held_up_catches_up_and_counts_it() {
    let mut plant = Plant::new();
    let a = plant.open(plan(0, FormatId::ULAW, 0));
    let prompt = clip(FormatId::ULAW, vec![1; 160_000]);
    plant.command(Command::Play { stream: a, play: PlayId(1), clip: prompt, offset: 0 });
    plant.run(100);
    plant.net.now_ms += 60;
    plant.run(1);
    assert_eq!(plant.sent_by(a).len(), 8, "three frames late, none lost");
    assert!(plant.worker.load().late_ticks >= 40);
    // A whole second away is more than the wheel holds: what is over is over.
    plant.net.now_ms += 1000;
    plant.run(1);
    assert!((14..=15).contains(&plant.sent_by(a).len()), "{}", plant.sent_by(a).len());
    assert_eq!(plant.worker.deadline(5), Some(Instant::ZERO + Duration::from_millis(2165)));
}

#[test]
fn rfc6263_4_6_a_stream_that_sends_nothing_keeps_its_way_open_on_hold_too() {
    let mut plant = Plant::new();
    let mut held = base::Plan { keepalive_ms: 5000, ..plan(0, FormatId::ULAW, 0) };
    held.direction = base::Direction::Inactive;
    let held = plant.open(held);
    let silent = plant.open(plan(1, FormatId::ULAW, 0));
    let playing = plant.open(base::Plan { keepalive_ms: 5000, ..plan(2, FormatId::ULAW, 0) });
    let clip = clip(FormatId::ULAW, vec![0; 8 * 7000]);
    plant.command(Command::Play { stream: playing, play: base::PlayId(1), clip, offset: 0 });
    plant.run(16_100);
    let kept = plant.sent_by(held);
    assert_eq!(kept.len(), 3);
    for pair in kept.windows(2) {
        assert_eq!(pair[1].at_ms - pair[0].at_ms, 5000);
        assert_eq!(pair[1].header().sequence, pair[0].header().sequence.wrapping_add(1));
    }
    assert!(kept.iter().all(|sent| sent.header().payload_type == 13 && sent.payload() == [127]));
    assert!(plant.sent_by(silent).is_empty());
    let noise = plant.sent_by(playing).iter().filter(|sent| sent.header().payload_type == 13).count();
    assert_eq!(noise, 1, "five seconds after the last packet of the prompt, not before");
}
