//! Bridges on invented time: relay, transcode, ties, echo, taps, digits.

mod common;

use std::sync::mpsc;

use base::{
    AudioSink, Command, Digit, Direction, DtmfMode, Event, FormatId, Gain, HoldBack, Instant, Loudness,
    MemberSettings, PlayId, RoomId, RoomSettings, RxPayload, StreamId,
};
use common::*;

/// Lets the phones talk for `frames` of 20 ms, each saying its own byte.
fn talk(plant: &mut Plant, phones: &mut [&mut Phone], frames: usize) {
    for _ in 0..frames {
        for phone in phones.iter_mut() {
            let byte = phone.stream.slot as u8;
            phone.say(plant, &[byte; 160]);
        }
        plant.run(20);
    }
}
fn said(sent: &[Sent]) -> Vec<u8> {
    let mut order: Vec<_> = sent.iter().map(|s| s.payload()[0]).collect();
    order.dedup();
    order
}
fn digit(symbol: char) -> Digit {
    Digit::from_char(symbol).unwrap()
}

#[test]
fn a_relay_forwards_in_the_tick_of_arrival_with_our_own_numbers_and_payload_type() {
    let mut plant = Plant::new();
    let a = plant.open(plan(0, FormatId::G722, 9));
    let mut other = plan(1, FormatId::G722, 9);
    other.payload = 97;
    let b = plant.open(other);
    plant.command(Command::Join { a, b });
    let mut alice = Phone::new(a, 9);
    for n in 0..100_u8 {
        alice.say(&mut plant, &[n; 160]);
        plant.run(1);
        let sent = plant.sent_by(b);
        assert_eq!(sent.len(), usize::from(n) + 1, "at once");
        assert_eq!(sent.last().unwrap().payload(), [n; 160]);
        plant.run(19);
    }
    let sent = plant.sent_by(b);
    assert_continuous(&sent, 160);
    let first = sent[0].header();
    assert_eq!((first.ssrc, first.sequence, first.payload_type, first.marker), (0x1001, 65_500, 97, true));
    assert_eq!(sent[0].to, phone(b));
    assert!(plant.sent_by(a).is_empty(), "nothing comes back");
    assert_eq!(plant.worker.load().discards.total(), 0);
}

#[test]
fn rfc3550_5_1_one_sequence_reaches_the_phone_across_prompt_bridge_hold_music_and_another_bridge() {
    let mut plant = Plant::new();
    let ids: Vec<_> = (0..3).map(|n| plant.open(plan(n, FormatId::ULAW, 0))).collect();
    let (a, b, c) = (ids[0], ids[1], ids[2]);
    let (mut bob, mut carol) = (Phone::new(b, 0), Phone::new(c, 0));
    let prompt = clip(FormatId::ULAW, vec![100; 800]);
    plant.command(Command::Play { stream: a, play: PlayId(1), clip: prompt, offset: 0 });
    plant.run(120);
    plant.command(Command::Join { a, b });
    talk(&mut plant, &mut [&mut bob, &mut carol], 10);
    // Hold: Bob's phone goes away, music comes.
    plant.command(Command::Part { stream: a });
    let music = clip(FormatId::ULAW, vec![101; 16_000]);
    plant.command(Command::Music { stream: a, clip: music, epoch: Instant::ZERO });
    talk(&mut plant, &mut [&mut bob, &mut carol], 10);
    plant.command(Command::StopPlay { stream: a });
    plant.command(Command::Join { a, b });
    talk(&mut plant, &mut [&mut bob, &mut carol], 10);
    // A transfer to Carol.
    plant.command(Command::Join { a, b: c });
    talk(&mut plant, &mut [&mut bob, &mut carol], 10);
    let sent = plant.sent_by(a);
    assert_eq!(said(&sent), [100, 1, 101, 1, 2]);
    assert!((44..=46).contains(&sent.len()), "{}", sent.len());
    assert_continuous(&sent, 160);
}

#[test]
fn loss_and_reordering_before_us_stay_what_they_are_in_a_relay() {
    let mut plant = Plant::new();
    let (a, b) = (plant.open(plan(0, FormatId::ULAW, 0)), plant.open(plan(1, FormatId::ULAW, 0)));
    plant.command(Command::Join { a, b });
    let mut alice = Phone::new(a, 0);
    let packets: Vec<_> = (0..8_u8).map(|n| alice.packet(&[n; 160])).collect();
    for n in [0, 1, 3, 2, 5, 6, 7] {
        plant.datagram(a, alice.from, packets[n].clone());
        plant.run(20);
    }
    let sent = plant.sent_by(b);
    let base = sent[0].header();
    for packet in &sent {
        let header = packet.header();
        let n = u16::from(packet.payload()[0]);
        assert_eq!(header.sequence.wrapping_sub(base.sequence), n);
        assert_eq!(header.timestamp.wrapping_sub(base.timestamp), 160 * u32::from(n));
    }
    plant.command(Command::Stats { stream: a });
    let Some(Event::Stats { stats, .. }) = plant.events.last() else { panic!("{:?}", plant.events) };
    assert_eq!((stats.received_packets, stats.lost_packets), (7, 1));
}

#[test]
fn a_transcoded_bridge_carries_the_tone_both_ways_between_every_pair_of_formats() {
    let formats = [
        (FormatId::ULAW, 0),
        (FormatId::ALAW, 8),
        (FormatId::GSM, 3),
        (FormatId::G722, 9),
        (FormatId::SLIN, 110),
        (FormatId::SLIN16, 118),
        (FormatId::SLIN48, 119),
    ];
    for (from, from_payload) in formats {
        for (to, to_payload) in formats.into_iter().filter(|(to, _)| *to != from) {
            let mut plant = Plant::new();
            let a = plant.open(plan(0, from, from_payload));
            let b = plant.open(plan(1, to, to_payload));
            plant.command(Command::Join { a, b });
            let (mut alice, mut bob) = (Phone::new(a, from_payload), Phone::new(b, to_payload));
            (alice.units, bob.units) = (from.rtp_clock() / 50, to.rtp_clock() / 50);
            let (there, back) = (tone(from, 440.0, 1000), tone(to, 1000.0, 1000));
            for (one, other) in there.chunks(from.bytes_in(20)).zip(back.chunks(to.bytes_in(20))) {
                alice.say(&mut plant, one);
                bob.say(&mut plant, other);
                plant.run(20);
            }
            for (stream, format, hertz) in [(b, to, 440.0), (a, from, 1000.0)] {
                let sent = plant.sent_by(stream);
                let name = format!("{from} and {to}, {hertz} Hz");
                assert!((47..=51).contains(&sent.len()), "{name}: {}", sent.len());
                assert_continuous(&sent, format.rtp_clock() / 50);
                let heard = decode(format, &sent);
                let rate = format.rate().0;
                let steady = &heard[rate as usize / 5..rate as usize * 9 / 10];
                assert!(purity(steady, rate, hertz) > 0.9, "{name}: {}", purity(steady, rate, hertz));
            }
        }
    }
}

#[test]
fn other_frame_lengths_are_repacked() {
    let mut plant = Plant::new();
    let a = plant.open(plan(0, FormatId::ULAW, 0));
    let b = plant.open(base::Plan { ptime_ms: 30, ..plan(1, FormatId::ULAW, 0) });
    plant.command(Command::Join { a, b });
    let mut alice = Phone::new(a, 0);
    for frame in tone(FormatId::ULAW, 440.0, 1200).chunks(160) {
        alice.say(&mut plant, frame);
        plant.run(20);
    }
    let sent = plant.sent_by(b);
    assert!((38..=41).contains(&sent.len()), "{}", sent.len());
    assert!(sent.iter().all(|s| s.payload().len() == 240));
    assert_continuous(&sent, 240);
    let heard = decode(FormatId::ULAW, &sent);
    assert!(purity(&heard[1600..8000], 8000, 440.0) > 0.95);
}

#[test]
fn jitter_and_reordering_are_heard_as_an_unbroken_tone_behind_a_transcoder() {
    let mut plant = Plant::new();
    let a = plant.open(plan(0, FormatId::ULAW, 0));
    let b = plant.open(plan(1, FormatId::GSM, 3));
    plant.command(Command::Join { a, b });
    let mut alice = Phone::new(a, 0);
    let packets: Vec<_> = tone(FormatId::ULAW, 440.0, 3000).chunks(160).map(|f| alice.packet(f)).collect();
    // Every packet is up to 50 ms late, so that neighbours overtake each other.
    let mut due: Vec<(u64, usize)> =
        (0..packets.len()).map(|n| (n as u64 * 20 + [0, 45, 10, 50, 25][n % 5], n)).collect();
    due.sort_unstable();
    let mut now = 0;
    for (at, n) in due {
        plant.run(at - now);
        now = at;
        plant.datagram(a, alice.from, packets[n].clone());
    }
    plant.run(100);
    let sent = plant.sent_by(b);
    assert_continuous(&sent, 160);
    let heard = decode(FormatId::GSM, &sent);
    // The first half second finds the delay; from there on nothing is missing.
    let steady = &heard[6000..22_000];
    assert!(purity(steady, 8000, 440.0) > 0.98, "{}", purity(steady, 8000, 440.0));
}

#[test]
fn a_silent_party_is_not_made_up_for_in_a_transcoded_bridge() {
    let mut plant = Plant::new();
    let (a, b) = (plant.open(plan(0, FormatId::ULAW, 0)), plant.open(plan(1, FormatId::ALAW, 8)));
    plant.command(Command::Join { a, b });
    let mut alice = Phone::new(a, 0);
    plant.run(1000);
    assert_eq!(plant.sent_by(b).len(), 0);
    talk(&mut plant, &mut [&mut alice], 10);
    plant.run(1000);
    let after = plant.sent_by(b).len();
    assert!((10..=22).contains(&after), "{after}");
}

#[test]
fn a_peer_that_switches_to_another_negotiated_format_is_followed() {
    let mut plant = Plant::new();
    let mut both = plan(0, FormatId::ULAW, 0);
    both.rx[2] = Some(RxPayload::Audio(8, FormatId::ALAW));
    let (a, b) = (plant.open(both), plant.open(plan(1, FormatId::ULAW, 0)));
    plant.command(Command::Join { a, b });
    let mut alice = Phone::new(a, 0);
    talk(&mut plant, &mut [&mut alice], 10);
    assert_eq!(plant.sent_by(b).len(), 10);
    alice.payload = 8;
    for frame in tone(FormatId::ALAW, 440.0, 1000).chunks(160) {
        alice.say(&mut plant, frame);
        plant.run(20);
    }
    let sent = plant.sent_by(b);
    assert!(sent.len() >= 56, "{}", sent.len());
    assert!(sent.iter().all(|s| s.header().payload_type == 0));
    let heard = decode(FormatId::ULAW, &sent[15..]);
    assert!(purity(&heard[800..6000], 8000, 440.0) > 0.95);
    // And back, which is a relay again.
    alice.payload = 0;
    talk(&mut plant, &mut [&mut alice], 10);
    assert_eq!(plant.sent_by(b).last().unwrap().payload(), [0; 160]);
}

#[test]
fn echo_returns_what_came_at_once_or_transcoded() {
    for (format, payload, rx) in [(FormatId::ULAW, 0, FormatId::ULAW), (FormatId::ALAW, 8, FormatId::ULAW)] {
        let mut plant = Plant::new();
        let mut own = plan(0, format, payload);
        own.rx[0] = Some(RxPayload::Audio(0, rx));
        let a = plant.open(own);
        plant.command(Command::Echo { stream: a, on: true });
        let mut alice = Phone::new(a, 0);
        for frame in tone(FormatId::ULAW, 440.0, 1000).chunks(160) {
            alice.say(&mut plant, frame);
            plant.run(20);
        }
        let sent = plant.sent_by(a);
        assert!(sent.len() >= 46, "{format}: {}", sent.len());
        let heard = decode(format, &sent);
        assert!(purity(&heard[1600..7000], 8000, 440.0) > 0.95, "{format}");
        plant.command(Command::Echo { stream: a, on: false });
        let before = plant.sent_by(a).len();
        talk(&mut plant, &mut [&mut alice], 5);
        assert_eq!(plant.sent_by(a).len(), before, "{format}");
    }
}

/// Phone A, bridged with X; X tied to Y (a Local channel); and B for the other side of Y.
fn local_channel(plant: &mut Plant, other: FormatId) -> (StreamId, StreamId, StreamId, StreamId) {
    let a = plant.open(plan(0, FormatId::ULAW, 0));
    let x = plant.open_internal(plan(1, FormatId::ULAW, 0));
    let y = plant.open_internal(plan(2, FormatId::ULAW, 0));
    let b = plant.open(plan(3, other, if other == FormatId::ULAW { 0 } else { 8 }));
    plant.command(Command::Tie { a: x, b: y });
    plant.command(Command::Join { a, b: x });
    (a, x, y, b)
}

#[test]
fn a_tie_carries_prompts_talk_and_digits_of_a_local_channel() {
    for other in [FormatId::ULAW, FormatId::ALAW] {
        let mut plant = Plant::new();
        let (a, _x, y, b) = local_channel(&mut plant, other);
        // The dialplan behind the Local channel plays to the caller.
        let prompt = clip(FormatId::ULAW, vec![50; 1600]);
        plant.command(Command::Play { stream: y, play: PlayId(1), clip: prompt, offset: 0 });
        plant.run(300);
        assert_eq!(plant.sent_by(a).iter().filter(|s| s.payload() == [50; 160]).count(), 10);
        assert!(matches!(plant.take_events()[..], [Event::Played { stream, .. }] if stream == y));
        // Then it is bridged on to B.
        plant.command(Command::Join { a: y, b });
        let (mut alice, mut bob) =
            (Phone::new(a, 0), Phone::new(b, if other == FormatId::ULAW { 0 } else { 8 }));
        talk(&mut plant, &mut [&mut alice, &mut bob], 20);
        let (to_a, to_b) = (plant.sent_by(a), plant.sent_by(b));
        assert!((28..=31).contains(&to_a.len()), "{other}: {}", to_a.len());
        assert!((18..=21).contains(&to_b.len()), "{other}: {}", to_b.len());
        assert_continuous(&to_a, 160);
        // A digit of Alice reaches Bob as an event of his own stream, and is reported on both ends of the tie.
        plant.take_events();
        for n in 1..=5 {
            alice.event(&mut plant, 7, n == 5, n * 160);
            plant.run(20);
        }
        plant.run(400);
        let begins: Vec<_> = plant
            .take_events()
            .into_iter()
            .filter_map(|event| match event {
                Event::DigitBegin { stream, digit: d, relayed } if d == digit('7') => Some((stream, relayed)),
                _ => None,
            })
            .collect();
        assert!(begins.contains(&(a, true)) && begins.contains(&(y, true)), "{other}: {begins:?}");
        let events = plant.sent_by(b).into_iter().filter(|s| s.header().payload_type == EVENT).count();
        assert!(events >= 5, "{other}: {events}");
    }
}

#[test]
fn ties_that_lead_in_a_circle_end_instead_of_recursing() {
    let mut plant = Plant::new();
    let ids: Vec<_> = (0..4).map(|n| plant.open_internal(plan(n, FormatId::ULAW, 0))).collect();
    plant.command(Command::Tie { a: ids[0], b: ids[1] });
    plant.command(Command::Tie { a: ids[2], b: ids[3] });
    plant.command(Command::Join { a: ids[1], b: ids[2] });
    plant.command(Command::Join { a: ids[3], b: ids[0] });
    let prompt = clip(FormatId::ULAW, vec![50; 1600]);
    plant.command(Command::Play { stream: ids[0], play: PlayId(1), clip: prompt, offset: 0 });
    plant.run(300);
    assert!(matches!(plant.events[..], [Event::Played { .. }]), "{:?}", plant.events);
}

struct Sink(mpsc::Sender<Vec<i16>>);
impl AudioSink for Sink {
    fn write(&mut self, samples: &[i16]) -> usize {
        self.0.send(samples.to_vec()).unwrap();
        samples.len()
    }
}

#[test]
fn a_recording_hears_the_whole_call_in_real_time_whether_bridged_by_relay_or_transcoded_or_alone() {
    for peer in [None, Some((FormatId::ULAW, 0)), Some((FormatId::ALAW, 8))] {
        let mut plant = Plant::new();
        let a = plant.open(plan(0, FormatId::ULAW, 0));
        if let Some((format, payload)) = peer {
            let b = plant.open(plan(1, format, payload));
            plant.command(Command::Join { a, b });
        }
        let (sink, kept) = mpsc::channel();
        plant.command(Command::Record { stream: a, format: FormatId::SLIN, sink: Box::new(Sink(sink)) });
        let mut alice = Phone::new(a, 0);
        for frame in tone(FormatId::ULAW, 440.0, 2000).chunks(160) {
            alice.say(&mut plant, frame);
            plant.run(20);
        }
        plant.run(1000);
        plant.command(Command::StopRecord { stream: a });
        plant.run(100);
        let kept: Vec<i16> = kept.iter().flatten().collect();
        assert!((23_800..=24_200).contains(&kept.len()), "{peer:?}: {} samples", kept.len());
        assert!(purity(&kept[1000..15_000], 8000, 440.0) > 0.98, "{peer:?}");
        assert!(kept[18_000..].iter().all(|s| s.abs() < 100), "{peer:?}: silence is recorded as silence");
    }
}

#[test]
fn silence_is_reported_while_the_bridge_goes_on() {
    let mut plant = Plant::new();
    let (a, b) = (plant.open(plan(0, FormatId::ULAW, 0)), plant.open(plan(1, FormatId::ULAW, 0)));
    plant.command(Command::Join { a, b });
    plant.command(Command::WatchSilence { stream: a, ms: 500, threshold: 256 });
    let mut alice = Phone::new(a, 0);
    for frame in tone(FormatId::ULAW, 440.0, 1000).chunks(160) {
        alice.say(&mut plant, frame);
        plant.run(20);
    }
    assert!(plant.take_events().iter().all(|event| matches!(event, Event::Latched { .. })));
    for _ in 0..50 {
        alice.say(&mut plant, &[0xff; 160]);
        plant.run(20);
    }
    let silences: Vec<_> = plant.take_events();
    assert!(!silences.is_empty() && silences.len() <= 2, "{silences:?}");
    assert!(silences.iter().all(|e| *e == Event::Silence { stream: a, ms: 500 }));
    assert_eq!(plant.sent_by(b).len(), 100);
}

/// The digits that the phone behind `sent` receives as events, each with its longest duration.
fn events_in(sent: &[Sent]) -> Vec<(u8, u16)> {
    let mut heard: Vec<(u32, u8, u16)> = Vec::new();
    for packet in sent.iter().filter(|s| s.header().payload_type == EVENT) {
        let event = rtp::EventPayload::parse(packet.payload()).unwrap();
        let timestamp = packet.header().timestamp;
        match heard.last_mut() {
            Some((latest, _, duration)) if *latest == timestamp => *duration = event.duration.max(*duration),
            _ => heard.push((timestamp, event.event, event.duration)),
        }
    }
    heard.into_iter().map(|(_, event, duration)| (event, duration)).collect()
}

#[test]
fn rfc4733_a_command_sends_digits_inside_the_stream_s_own_numbering() {
    let mut plant = Plant::new();
    let (a, b) = (plant.open(plan(0, FormatId::ULAW, 0)), plant.open(plan(1, FormatId::ULAW, 0)));
    plant.command(Command::Join { a, b });
    let mut bob = Phone::new(b, 0);
    talk(&mut plant, &mut [&mut bob], 5);
    for symbol in ['4', '2'] {
        plant.command(Command::SendDigit { stream: a, digit: digit(symbol), duration_ms: 100 });
    }
    talk(&mut plant, &mut [&mut bob], 40);
    let sent = plant.sent_by(a);
    assert_eq!(events_in(&sent), [(4, 800), (2, 800)]);
    let ends = sent.iter().filter(|s| s.header().payload_type == EVENT && s.payload()[1] & 0x80 != 0).count();
    assert_eq!(ends, 6, "each end three times");
    assert!(sent.windows(2).all(|p| p[1].header().sequence == p[0].header().sequence.wrapping_add(1)));
    assert_eq!(plant.events.iter().filter(|e| **e == Event::DigitsSent { stream: a }).count(), 1);
    assert_eq!(sent.last().unwrap().payload(), [1; 160], "talk goes on");
}

#[test]
fn digits_cross_a_bridge_between_all_ways_of_carrying_them() {
    const RFC4733: DtmfMode = DtmfMode::Rfc4733 { payload: EVENT, clock: 8000 };
    for (from, to, relayed) in [
        (RFC4733, RFC4733, true),
        (RFC4733, DtmfMode::Inband, true),
        (RFC4733, DtmfMode::Signalling, false),
        (DtmfMode::Inband, RFC4733, true),
        (DtmfMode::Inband, DtmfMode::Inband, true),
        (DtmfMode::Inband, DtmfMode::Signalling, false),
    ] {
        let mut plant = Plant::new();
        let a = plant.open(base::Plan { dtmf: from, ..plan(0, FormatId::ULAW, 0) });
        let b = plant.open(base::Plan { dtmf: to, ..plan(1, FormatId::ULAW, 0) });
        plant.command(Command::Join { a, b });
        let mut alice = Phone::new(a, 0);
        talk(&mut plant, &mut [&mut alice], 10);
        if from == DtmfMode::Inband {
            let linear = codec::tone::dtmf(digit('8'), 120, FormatId::ULAW.rate());
            let mut coded = vec![0; linear.len()];
            codec::g711::ulaw_encode(&linear, &mut coded);
            for frame in coded.chunks_exact(160) {
                alice.say(&mut plant, frame);
                plant.run(20);
            }
        } else {
            for n in 1..=6 {
                alice.event(&mut plant, 8, n == 6, n * 160);
                plant.run(20);
            }
            alice.timestamp += 6 * 160;
        }
        for _ in 0..30 {
            alice.say(&mut plant, &[0xff; 160]);
            plant.run(20);
        }
        let name = format!("{from:?} to {to:?}");
        let edges: Vec<_> = plant
            .events
            .iter()
            .filter(|e| matches!(e, Event::DigitBegin { .. } | Event::DigitEnd { .. }))
            .collect();
        let [
            Event::DigitBegin { stream, digit: begun, relayed: first },
            Event::DigitEnd { digit: ended, duration_ms, relayed: second, .. },
        ] = edges[..]
        else {
            panic!("{name}: {edges:?}")
        };
        assert_eq!(
            (*stream, *begun, *ended, *first, *second),
            (a, digit('8'), digit('8'), relayed, relayed),
            "{name}"
        );
        assert!((80..=160).contains(duration_ms), "{name}: {duration_ms}");
        let sent = plant.sent_by(b);
        let events = events_in(&sent);
        let audio: Vec<_> = sent.iter().filter(|s| s.header().payload_type == 0).cloned().collect();
        let mut detector = codec::DtmfDetector::new();
        let mut tones = 0;
        detector.process(&decode(FormatId::ULAW, &audio), |edge| {
            tones += usize::from(edge == codec::DtmfEdge::Begin(digit('8')));
        });
        let in_events = usize::from(to == RFC4733);
        let in_audio = usize::from(from == DtmfMode::Inband || to == DtmfMode::Inband);
        assert_eq!((events.len(), tones), (in_events, in_audio), "{name}: {events:?}");
        assert!(events.iter().all(|(event, duration)| *event == 8 && *duration >= 640), "{name}: {events:?}");
    }
}

#[test]
fn rfc4733_a_digit_cut_off_by_its_source_s_restart_ends_whatever_the_packet_is() {
    for direction in [Direction::SendRecv, Direction::SendOnly] {
        let mut plant = Plant::new();
        let a = plant.open(plan(0, FormatId::ULAW, 0));
        let mut alice = Phone::new(a, 0);
        talk(&mut plant, &mut [&mut alice], 10);
        alice.event(&mut plant, 8, false, 160);
        plant.run(1);
        let plan = base::Plan { direction, ..plan(0, FormatId::ULAW, 0) };
        plant.command(Command::Plan { stream: a, plan: Box::new(plan) });
        plant.take_events();
        // Two packets in a row, far from those before (RFC 3550 A.1).
        alice.sequence = alice.sequence.wrapping_add(20_000);
        for _ in 0..2 {
            alice.say(&mut plant, &[0xff; 160]);
        }
        plant.run(1);
        let ended: Vec<_> =
            plant.events.iter().filter(|event| matches!(event, Event::DigitEnd { .. })).collect();
        assert!(
            matches!(ended[..], [Event::DigitEnd { stream, digit: ended, .. }] if *stream == a && *ended == digit('8')),
            "{direction:?}: {ended:?}"
        );
    }
}

#[test]
fn inband_digits_are_found_on_request_and_sent_as_tones_where_the_plan_says_so() {
    let mut plant = Plant::new();
    let a = plant.open(base::Plan { dtmf: DtmfMode::Inband, ..plan(0, FormatId::G722, 9) });
    plant.command(Command::SendDigit { stream: a, digit: digit('3'), duration_ms: 120 });
    plant.command(Command::SendDigit { stream: a, digit: digit('#'), duration_ms: 120 });
    plant.run(600);
    let sent = plant.sent_by(a);
    // The second phone says what the first one heard; its own plan says INFO, but detection was asked for.
    let b = plant.open(base::Plan { dtmf: DtmfMode::Signalling, ..plan(1, FormatId::G722, 9) });
    plant.command(Command::DetectInband { stream: b, on: true });
    let mut bob = Phone::new(b, 9);
    let mut next = sent[0].at_ms;
    for packet in &sent {
        plant.run(packet.at_ms.saturating_sub(next));
        next = packet.at_ms;
        bob.timestamp = packet.header().timestamp;
        bob.say(&mut plant, packet.payload());
    }
    plant.run(200);
    let begun: String = plant
        .events
        .iter()
        .filter_map(|e| if let Event::DigitBegin { digit, .. } = e { Some(digit.to_char()) } else { None })
        .collect();
    assert_eq!(begun, "3#");
    assert!(plant.events.contains(&Event::DigitsSent { stream: a }));
}

#[test]
fn a_peer_on_hold_is_not_heard_and_does_not_hear() {
    let mut plant = Plant::new();
    let (a, b) = (plant.open(plan(0, FormatId::ULAW, 0)), plant.open(plan(1, FormatId::ULAW, 0)));
    plant.command(Command::Join { a, b });
    let (mut alice, mut bob) = (Phone::new(a, 0), Phone::new(b, 0));
    talk(&mut plant, &mut [&mut alice, &mut bob], 5);
    let hold = base::Plan { direction: Direction::Inactive, ..plan(0, FormatId::ULAW, 0) };
    plant.command(Command::Plan { stream: a, plan: Box::new(hold) });
    talk(&mut plant, &mut [&mut alice, &mut bob], 5);
    assert_eq!((plant.sent_by(a).len(), plant.sent_by(b).len()), (5, 5));
    plant.command(Command::Plan { stream: a, plan: Box::new(plan(0, FormatId::ULAW, 0)) });
    talk(&mut plant, &mut [&mut alice, &mut bob], 5);
    for stream in [a, b] {
        let sent = plant.sent_by(stream);
        assert_eq!(sent.len(), 10);
    }
    assert_eq!(plant.worker.load().discards.of(rtp::Discard::Muted), 5);
}

#[test]
fn what_is_to_be_held_back_leaves_a_relay_evenly_however_it_comes() {
    for (name, limits, spread) in [
        ("as it comes", None, 40),
        ("held back", Some(HoldBack { least_ms: 60, most_ms: 200 }), 20),
        ("not any more", Some(HoldBack { least_ms: 0, most_ms: 0 }), 40),
    ] {
        let mut plant = Plant::new();
        let [a, b] = [0, 1].map(|n| plant.open(plan(n, FormatId::ULAW, 0)));
        plant.command(Command::Join { a, b });
        let (mut alice, mut bob) = (Phone::new(a, 0), Phone::new(b, 0));
        let held = Some(HoldBack { least_ms: 60, most_ms: 200 });
        plant.command(Command::HoldBack { stream: a, limits: held });
        plant.command(Command::HoldBack { stream: a, limits });
        for pair in 0..100_u8 {
            // Two packets of hers at once, every 40 ms; his as they should come.
            for _ in 0..2 {
                alice.say(&mut plant, &[pair; 160]);
            }
            for _ in 0..2 {
                bob.say(&mut plant, &[7; 160]);
                plant.run(20);
            }
        }
        let sent = plant.sent_by(b);
        let late = sent.get(20..).unwrap();
        let gaps: Vec<u64> = late.windows(2).map(|two| two[1].at_ms - two[0].at_ms).collect();
        assert_eq!(gaps.iter().max(), Some(&spread), "{name}: {gaps:?}");
        assert_eq!(gaps.iter().filter(|gap| **gap == 0).count() > 50, spread == 40, "{name}");
        let mut order = said(late);
        order.dedup();
        assert!(order.windows(2).all(|two| two[0] < two[1]), "{name}: {order:?}");
        assert_continuous(&sent, 160);
        // The other way is nobody's business.
        assert_eq!(plant.sent_by(a).len(), 200, "{name}");
    }
}

/// 20 ms of 500 Hz with a mean absolute amplitude of 1000, in whole periods.
fn thousand() -> Vec<u8> {
    let angle = |n: u16| f64::from(n) * core::f64::consts::TAU / 16.0;
    let linear: Vec<i16> = (0..160).map(|n| (angle(n).sin() * 1591.0) as i16).collect();
    let mut coded = vec![0; 160];
    codec::Encoder::new(FormatId::ULAW).encode(&linear, &mut coded);
    coded
}
/// Mean absolute amplitude of what was sent, but for the first packets.
fn loudness(sent: &[Sent]) -> u64 {
    let linear = decode(FormatId::ULAW, sent.get(50..).unwrap());
    linear.iter().map(|sample| u64::from(sample.unsigned_abs())).sum::<u64>() / linear.len() as u64
}

#[test]
fn a_peer_is_heard_and_hears_as_loud_as_is_wanted_in_a_bridge_in_a_room_and_with_a_prompt() {
    let plain = Loudness::PLAIN;
    let times = |step| Loudness { gain: Gain::of_step(step), level: 0 };
    let level = |level| Loudness { gain: Gain::UNITY, level };
    // Of a tone at 1000 in both directions: what A hears of B, and B of A.
    for (name, heard, sent, at_a, at_b) in [
        ("as it comes", plain, plain, 1000, 1000),
        ("A is three times as loud", times(3), plain, 1000, 3000),
        ("A hears a quarter", plain, times(-4), 250, 1000),
        ("both", times(2), times(4), 4000, 2000),
        ("automatic", level(4000), level(2000), 2000, 4000),
    ] {
        for place in ["bridge", "room", "prompt"] {
            let mut plant = Plant::new();
            let [a, b] = [0, 1].map(|n| plant.open(plan(n, FormatId::ULAW, 0)));
            let tone = thousand();
            let mut clip_of = Vec::new();
            match place {
                "bridge" => plant.command(Command::Join { a, b }),
                "room" => {
                    let mixing = RoomSettings::default();
                    for stream in [a, b] {
                        let member = MemberSettings::default();
                        plant.command(Command::Enter { stream, room: RoomId::new(1, 1), mixing, member });
                    }
                }
                _ => clip_of = tone.repeat(300),
            }
            plant.command(Command::Shape { stream: a, heard, sent });
            if !clip_of.is_empty() {
                let clip = clip(FormatId::ULAW, clip_of);
                plant.command(Command::Play { stream: a, play: PlayId(1), clip, offset: 0 });
            }
            let (mut alice, mut bob) = (Phone::new(a, 0), Phone::new(b, 0));
            for _ in 0..150 {
                alice.say(&mut plant, &tone);
                bob.say(&mut plant, &tone);
                plant.run(20);
            }
            let near = |is: u64, wanted: u64| is.abs_diff(wanted) <= wanted / 10;
            let at = loudness(&plant.sent_by(a));
            assert!(near(at, at_a), "{name}, {place}: A hears {at}, {at_a} expected");
            if place != "prompt" {
                let at = loudness(&plant.sent_by(b));
                assert!(near(at, at_b), "{name}, {place}: B hears {at}, {at_b} expected");
            }
            // And as it was again.
            plant.command(Command::Shape { stream: a, heard: plain, sent: plain });
            let before = plant.sent_by(a).len();
            for _ in 0..60 {
                alice.say(&mut plant, &tone);
                bob.say(&mut plant, &tone);
                plant.run(20);
            }
            let after = plant.sent_by(a);
            let at = loudness(after.get(before..).unwrap());
            assert!(near(at, 1000), "{name}, {place}: {at} afterwards");
        }
    }
}

#[test]
fn who_is_to_hear_silence_is_sent_it_whenever_there_is_nothing_else() {
    for (format, payload) in [(FormatId::ULAW, 0), (FormatId::GSM, 3), (FormatId::OPUS, 107)] {
        let mut plant = Plant::new();
        let [a, b] = [0, 1].map(|n| plant.open(plan(n, format, payload)));
        let internal = plant.open_internal(plan(2, format, payload));
        plant.run(200);
        assert!(plant.sent_by(a).is_empty(), "{format}");
        for stream in [a, internal] {
            plant.command(Command::FillSilence { stream, on: true });
        }
        plant.run(1000);
        let silence = plant.sent_by(a);
        assert_eq!(silence.len(), 50, "{format}");
        let loudest = decode(format, &silence).iter().map(|sample| sample.unsigned_abs()).max();
        assert!(loudest < Some(50), "{format}: {loudest:?}");
        // In a bridge only what the other one says goes out, which is nothing here.
        plant.command(Command::Join { a, b });
        plant.run(1000);
        assert_eq!(plant.sent_by(a).len(), 50, "{format}");
        plant.command(Command::Part { stream: a });
        // A prompt is heard instead, then it is quiet again.
        let prompt = clip(format, tone(format, 500.0, 400));
        plant.command(Command::Play { stream: a, play: PlayId(1), clip: prompt, offset: 0 });
        plant.run(400);
        let before = plant.sent_by(a).len();
        plant.run(600);
        let sent = plant.sent_by(a);
        assert!(sent.len().abs_diff(100) <= 1, "{format}: {}", sent.len());
        assert_continuous(&sent, format.rtp_clock() / 50);
        let last = decode(format, sent.get(before + 5..).unwrap());
        let loudest = last.iter().map(|sample| sample.unsigned_abs()).max();
        assert!(loudest < Some(50), "{format}: {loudest:?}");
        plant.command(Command::FillSilence { stream: a, on: false });
        let before = plant.sent_by(a).len();
        plant.run(500);
        assert_eq!(plant.sent_by(a).len(), before, "{format}");
        assert_eq!(plant.worker.load().panics, 0);
    }
}
