//! The scheduler on invented time: occupancy, the bound on waiting, streams that come and go, panics.

mod common;

use base::{Command, Event, Fault, FormatId, StreamId};
use codec::Level;
use common::*;
use media::{Config, Input, Lanes, Worker};

/// A worker with these lanes.
fn plant(level: Level, wait_ms: u8) -> Plant {
    let mut plant = Plant::new();
    plant.worker = Worker::new(Config { lanes: Lanes { level, wait_ms }, ..Config::default() });
    plant
}

/// A bridge from a phone that talks `from` to one that hears `to`.
struct Call {
    phone: Phone,
    from: FormatId,
    speaker: StreamId,
    hearer: StreamId,
    speech: Vec<u8>,
}

const PAYLOAD: u8 = 97;

impl Call {
    fn new(plant: &mut Plant, number: u32, from: FormatId, to: FormatId) -> Self {
        let speaker = plant.open(plan(2 * number, from, PAYLOAD));
        let hearer = plant.open(plan(2 * number + 1, to, PAYLOAD));
        plant.command(Command::Join { a: speaker, b: hearer });
        let mut phone = Phone::new(speaker, PAYLOAD);
        phone.units = from.rtp_clock() / 1000 * u32::from(from.usual_ms());
        // Everyone talks differently.
        let speech = tone(from, 200.0 + 37.0 * f64::from(number), 2100);
        Self { phone, from, speaker, hearer, speech }
    }
    fn say(&mut self, plant: &mut Plant, turn: usize) {
        let size = self.from.bytes_in(self.from.usual_ms().into());
        let frames = self.speech.len() / size;
        let frame = turn % frames * size..(turn % frames + 1) * size;
        let frame = self.speech[frame].to_vec();
        self.phone.say(plant, &frame);
    }
}

/// All calls talk for `turns` packets of the same length.
fn talk(plant: &mut Plant, calls: &mut [Call], turns: core::ops::Range<usize>) {
    for turn in turns {
        for call in calls.iter_mut() {
            call.say(plant, turn);
        }
        plant.run(calls.first().map_or(20, |call| call.from.usual_ms().into()));
    }
}

fn payloads(plant: &Plant, stream: StreamId) -> Vec<Vec<u8>> {
    plant.sent_by(stream).iter().map(|sent| sent.payload().to_vec()).collect()
}

/// Pairs with lanes on one side, the other, and both.
const PAIRS: [(FormatId, FormatId); 9] = [
    (FormatId::ULAW, FormatId::GSM),
    (FormatId::GSM, FormatId::ALAW),
    (FormatId::GSM, FormatId::ILBC),
    (FormatId::ILBC, FormatId::GSM),
    (FormatId::GSM, FormatId::SPEEX),
    (FormatId::SPEEX, FormatId::ILBC),
    (FormatId::G722, FormatId::ULAW),
    (FormatId::ULAW, FormatId::G722),
    (FormatId::G726, FormatId::ADPCM),
];

/// What the same call sends when nobody else is there and nothing is done in lanes.
fn alone(number: u32, from: FormatId, to: FormatId, turns: usize) -> Vec<Vec<u8>> {
    let mut plant = plant(Level::portable(), 0);
    for _ in 0..2 * number {
        plant.open_internal(plan(0, FormatId::ULAW, 0));
    }
    let mut calls = [Call::new(&mut plant, number, from, to)];
    talk(&mut plant, &mut calls, 0..turns);
    payloads(&plant, calls[0].hearer)
}

#[test]
fn what_a_stream_sends_does_not_depend_on_its_neighbours_the_level_or_the_wait() {
    for level in Level::all_available() {
        for (calls, wait_ms) in [(1, 5), (7, 0), (19, 5), (40, 9)] {
            let mut plant = plant(level, wait_ms);
            let pair = |number: u32| PAIRS[number as usize % PAIRS.len()];
            let mut calls: Vec<_> =
                (0..calls).map(|n| Call::new(&mut plant, n, pair(n).0, pair(n).1)).collect();
            talk(&mut plant, &mut calls, 0..40);
            for (number, call) in calls.iter().enumerate().step_by(3) {
                let number = number as u32;
                let expected = alone(number, pair(number).0, pair(number).1, 40);
                // The visit's phase on the wheel is another; the packets are the same, one more or less.
                let sent = payloads(&plant, call.hearer);
                let common = sent.len().min(expected.len());
                assert!(common >= 36, "{level} call {number}: {} and {}", sent.len(), expected.len());
                let shift = sent.len().abs_diff(expected.len());
                assert!(shift <= 2, "{level} call {number}");
                let (long, short) =
                    if sent.len() >= expected.len() { (&sent, &expected) } else { (&expected, &sent) };
                assert_eq!(long[..short.len()], short[..], "{level} call {number} {:?}", pair(number));
            }
        }
    }
}

#[test]
fn no_frame_waits_longer_than_the_setting_and_its_timestamp_is_that_of_its_visit() {
    for (wait_ms, tick) in [(0, 1), (5, 1), (5, 5), (9, 1), (3, 2)] {
        let mut plant = plant(Level::best(), wait_ms);
        let mut calls = [Call::new(&mut plant, 0, FormatId::ULAW, FormatId::GSM)];
        for turn in 0..50 {
            calls[0].say(&mut plant, turn);
            for _ in 0..20 / tick {
                plant.net.now_ms += tick;
                let now = plant.now();
                // The shell sleeps until the deadline, which a waiting turn brings forward.
                let due = plant.worker.deadline(tick).unwrap();
                assert!(due <= now + core::time::Duration::from_millis(tick), "{due:?} {now:?}");
                plant.worker.tick(now, &mut plant.net, &mut plant.events);
            }
        }
        let sent = plant.sent_by(calls[0].hearer);
        assert!(sent.len() >= 48, "{wait_ms} ms: {}", sent.len());
        assert_continuous(&sent, 160);
        // A lone stream's packets leave at its visit plus the wait, never later by more than a tick.
        let visits: Vec<u64> = sent.iter().map(|sent| sent.at_ms % 20).collect();
        let spread = visits.iter().max().unwrap() - visits.iter().min().unwrap();
        assert!(spread <= tick, "{wait_ms} ms, ticks of {tick}: {visits:?}");
    }
}

#[test]
fn streams_of_one_step_share_groups_and_full_ones_do_not_wait() {
    let level = Level::best();
    let size = codec::group_size(FormatId::GSM, level) as u64;
    // A full group's worth of calls for every millisecond of the wheel.
    let calls = 20 * size as u32;
    let mut plant = plant(level, 5);
    let mut calls: Vec<_> =
        (0..calls).map(|n| Call::new(&mut plant, n, FormatId::ULAW, FormatId::GSM)).collect();
    talk(&mut plant, &mut calls, 0..10);
    let load = *plant.worker.load();
    assert!(load.groups > 0 && load.grouped > 0);
    let share = load.grouped as f64 / load.group_room as f64;
    assert!(share > 0.9, "{share:.2} of the lanes are filled: {load:?}");
    // Few calls wait for one another within the bound.
    let mut few = self::plant(level, 5);
    let mut calls: Vec<_> = (0..20).map(|n| Call::new(&mut few, n, FormatId::ULAW, FormatId::GSM)).collect();
    talk(&mut few, &mut calls, 0..50);
    let waited = few.worker.load().grouped as f64 / few.worker.load().groups as f64;
    let mut none = self::plant(level, 0);
    let mut calls: Vec<_> = (0..20).map(|n| Call::new(&mut none, n, FormatId::ULAW, FormatId::GSM)).collect();
    talk(&mut none, &mut calls, 0..50);
    let at_once = none.worker.load().grouped as f64 / none.worker.load().groups as f64;
    assert!(waited >= 2.5 * at_once, "{waited:.1} frames a group, {at_once:.1} without waiting");
}

#[test]
fn calls_come_and_go_and_change_format_while_others_talk_on() {
    let mut plant = plant(Level::best(), 5);
    let mut calls: Vec<_> =
        (0..12).map(|n| Call::new(&mut plant, n, FormatId::GSM, FormatId::ILBC)).collect();
    talk(&mut plant, &mut calls, 0..10);
    plant.command(Command::Close { stream: calls[3].speaker });
    plant.command(Command::Part { stream: calls[4].hearer });
    let new = base::Plan { payload: 8, ..plan(2 * 5 + 1, FormatId::ALAW, 8) };
    plant.command(Command::Plan { stream: calls[5].hearer, plan: Box::new(new) });
    let late = Call::new(&mut plant, 12, FormatId::GSM, FormatId::ILBC);
    calls.push(late);
    talk(&mut plant, &mut calls, 10..30);
    let count = |n: usize| payloads(&plant, calls[n].hearer).len();
    assert!((9..=10).contains(&count(3)) && (9..=10).contains(&count(4)), "{} {}", count(3), count(4));
    assert!((18..=20).contains(&count(12)), "{}", count(12));
    for n in [0, 1, 2, 6, 7, 8, 9, 10, 11] {
        assert!((28..=30).contains(&count(n)), "call {n}: {}", count(n));
        assert_continuous(&plant.sent_by(calls[n].hearer), 160);
    }
    let changed = plant.sent_by(calls[5].hearer);
    assert_eq!(changed.last().unwrap().header().payload_type, 8);
    assert!(changed.len() >= 27, "{}", changed.len());
}

/// Calls of one format, decoded and encoded in groups because their frames have another length; one of them is made to
/// panic, or none is. What each hearer was sent.
fn with_a_fault(
    format: FormatId,
    count: u32,
    fault: Option<(usize, &str)>,
    first: bool,
) -> Vec<Vec<Vec<u8>>> {
    let mut plant = plant(Level::best(), 5);
    let mut calls: Vec<_> = (0..count).map(|n| Call::new(&mut plant, n, format, format)).collect();
    for call in &calls {
        let other = base::Plan { ptime_ms: 2 * format.usual_ms(), ..plan(call.hearer.slot, format, PAYLOAD) };
        plant.command(Command::Plan { stream: call.hearer, plan: Box::new(other) });
    }
    // A fault in the first frame finds encoders that have not coded anything.
    let before = if first { 0 } else { 20 };
    talk(&mut plant, &mut calls, 0..before);
    let guilty = fault.map(|(number, side)| match side {
        "decoder" => calls[number].speaker,
        _ => calls[number].hearer,
    });
    if let Some(guilty) = guilty {
        plant.input(Input::PoisonGroup(guilty));
    }
    talk(&mut plant, &mut calls, before..40);
    let ended: Vec<_> = plant
        .events
        .iter()
        .filter_map(|event| match event {
            Event::Closed { stream, fault, .. } => Some((*stream, *fault)),
            _ => None,
        })
        .collect();
    let expected: Vec<_> = guilty.map(|guilty| (guilty, Some(Fault::Panicked))).into_iter().collect();
    assert_eq!(ended, expected, "{format}");
    assert_eq!(plant.worker.load().panics, expected.len() as u64, "{format}");
    calls.iter().map(|call| payloads(&plant, call.hearer)).collect()
}

#[test]
fn a_panic_in_a_group_ends_the_guilty_stream_and_its_neighbours_lose_nothing() {
    quiet_faults();
    let lanes = FormatId::coded().filter(|format| codec::encode_frame(*format).is_some());
    for format in lanes {
        for (count, guilty, first) in
            [(16, 7, false), (16, 7, true), (12, 11, false), (2, 1, true), (2, 1, false)]
        {
            let healthy = with_a_fault(format, count, None, first);
            for side in ["decoder", "encoder"] {
                let name = format!("{format}: the {side} of {guilty} in {count}, first frame: {first}");
                let ill = with_a_fault(format, count, Some((guilty, side)), first);
                for (n, (healthy, ill)) in healthy.iter().zip(&ill).enumerate() {
                    assert!(healthy.len() >= 15, "{name}: {}", healthy.len());
                    if n == guilty {
                        assert!(ill.len() < healthy.len(), "{name}");
                    } else {
                        assert_eq!(healthy, ill, "{name}: neighbour {n}");
                    }
                }
            }
        }
    }
}

#[test]
fn a_recording_of_a_relayed_call_is_decoded_in_groups_too() {
    use base::AudioSink;
    use std::sync::mpsc;
    struct Sink(mpsc::Sender<Vec<i16>>);
    impl AudioSink for Sink {
        fn write(&mut self, samples: &[i16]) -> usize {
            self.0.send(samples.to_vec()).unwrap();
            samples.len()
        }
    }
    let mut plant = plant(Level::best(), 5);
    let mut calls: Vec<_> = (0..9).map(|n| Call::new(&mut plant, n, FormatId::GSM, FormatId::GSM)).collect();
    let mut kept = Vec::new();
    for call in &calls {
        let (sink, heard) = mpsc::channel();
        let format = FormatId::SLIN;
        plant.command(Command::Record { stream: call.speaker, format, sink: Box::new(Sink(sink)) });
        kept.push(heard);
    }
    talk(&mut plant, &mut calls, 0..100);
    let load = plant.worker.load();
    assert!(load.grouped >= 9 * 98, "{load:?}");
    for (number, heard) in kept.iter().enumerate() {
        let heard: Vec<i16> = heard.try_iter().flatten().collect();
        assert!((15_500..=16_000).contains(&heard.len()), "{number}: {}", heard.len());
        let hertz = 200.0 + 37.0 * number as f64;
        assert!(purity(&heard[2000..14_000], 8000, hertz) > 0.8, "call {number}");
    }
}

#[test]
fn formats_of_variable_rate_and_odd_frames_carry_a_tone_both_ways_and_play_prompts() {
    for (format, ms) in [
        (FormatId::OPUS, 20),
        (FormatId::OPUS, 60),
        (FormatId::SPEEX, 20),
        (FormatId::SPEEX, 40),
        (FormatId::SPEEX16, 20),
        (FormatId::ILBC30, 30),
        (FormatId::CODEC2, 20),
        (FormatId::LPC10, 45),
    ] {
        if codec::missing_libraries().any(|(missing, _)| missing == format) {
            println!("skipped: {format}, whose library is not installed");
            continue;
        }
        let mut plant = plant(Level::best(), 5);
        let a = plant.open(base::Plan { ptime_ms: ms, ..plan(0, format, PAYLOAD) });
        let b = plant.open(plan(1, FormatId::ULAW, 0));
        let prompt = clip(FormatId::SLIN, tone(FormatId::SLIN, 440.0, 600));
        plant.command(Command::Play { stream: a, play: base::PlayId(1), clip: prompt, offset: 0 });
        plant.run(700);
        let prompt_sent = plant.sent_by(a);
        let expected = 600 / u64::from(ms);
        assert!(
            (expected..=expected + 1).contains(&(prompt_sent.len() as u64)),
            "{format}: {}",
            prompt_sent.len()
        );
        plant.command(Command::Join { a, b });
        let (mut alice, mut bob) = (Phone::new(a, PAYLOAD), Phone::new(b, 0));
        alice.units = format.rtp_clock() / 1000 * u32::from(ms);
        let rate = format.rate().0 as usize;
        let linear: Vec<i16> = (0..rate * 3)
            .map(|n| ((n as f64 * 300.0 * std::f64::consts::TAU / rate as f64).sin() * 8000.0) as i16)
            .collect();
        let mut encoder = codec::Encoder::new(format);
        let back = tone(FormatId::ULAW, 500.0, 3000);
        let mut back = back.chunks(160);
        let mut due = 0;
        for (turn, frame) in linear.chunks_exact(rate * usize::from(ms) / 1000).enumerate() {
            let mut packet = vec![0; format.packet_room(u16::from(ms))];
            let count = encoder.encode(frame, &mut packet);
            alice.say(&mut plant, &packet[..count]);
            for _ in 0..ms {
                if due % 20 == 0
                    && let Some(audio) = back.next()
                {
                    bob.say(&mut plant, audio);
                }
                due += 1;
                plant.run(1);
            }
            assert!(turn < 1000);
        }
        let heard = decode(FormatId::ULAW, &plant.sent_by(b));
        assert!(heard.len() > 21_000, "{format} {ms} ms: {} samples", heard.len());
        let sent = &plant.sent_by(a)[prompt_sent.len()..];
        assert!(sent.len() as u64 * u64::from(ms) > 2700, "{format} {ms} ms: {} packets", sent.len());
        assert_continuous(&sent[1..], alice.units);
        if ![FormatId::CODEC2, FormatId::LPC10].contains(&format) {
            let share = purity(&heard[8000..20_000], 8000, 300.0);
            assert!(share > 0.85, "{format} {ms} ms towards ulaw: {share:.2}");
            let mut decoder = codec::Decoder::new(format);
            let mut linear = Vec::new();
            for packet in sent {
                let mut room = vec![0; rate / 10];
                let count = decoder.decode(packet.payload(), &mut room);
                linear.extend_from_slice(&room[..count]);
            }
            let share = purity(&linear[rate / 2..rate * 2], rate as u32, 500.0);
            assert!(share > 0.85, "{format} {ms} ms from ulaw: {share:.2}");
            assert_eq!(decoder.malformed(), 0, "{format}");
        }
    }
}
