//! Playing clips and music on invented time.

mod common;

use std::collections::BTreeMap;
use std::sync::Arc;

use base::{Clip, Command, Direction, Event, FormatId, Instant, PlayEnd, PlayId};
use common::*;
use media::{Carried, Input, Traced, Tracing, Watch};

fn numbered(frames: usize) -> Vec<u8> {
    (0..frames).flat_map(|n| [n as u8; 160]).collect()
}

#[test]
fn a_thousand_streams_play_every_20_ms_exactly_and_spread_over_the_slots() {
    let mut plant = Plant::new();
    let streams: Vec<_> = (0..1000).map(|n| plant.open(plan(n, FormatId::ULAW, 0))).collect();
    let prompt = clip(FormatId::ULAW, numbered(100));
    for &stream in &streams {
        plant.command(Command::Play { stream, play: PlayId(7), clip: prompt.clone(), offset: 0 });
    }
    plant.run(2020);
    let mut by_stream: BTreeMap<u16, Vec<&Sent>> = BTreeMap::new();
    let mut by_ms: BTreeMap<u64, usize> = BTreeMap::new();
    for sent in &plant.net.sent {
        by_stream.entry(sent.port).or_default().push(sent);
        *by_ms.entry(sent.at_ms).or_default() += 1;
    }
    assert_eq!(by_stream.len(), 1000);
    for (port, sent) in by_stream {
        assert_eq!(sent.len(), 100, "port {port}");
        assert!(sent.windows(2).all(|pair| pair[1].at_ms - pair[0].at_ms == 20), "port {port}");
        assert!(sent.iter().enumerate().all(|(n, s)| s.payload() == [n as u8; 160]), "port {port}");
        let sent: Vec<_> = sent.into_iter().cloned().collect();
        assert_continuous(&sent, 160);
        assert!(sent[0].header().marker);
    }
    assert!(by_ms.values().all(|&count| count == 50), "{by_ms:?}");
    let finished =
        Event::Played { stream: streams[3], play: PlayId(7), end: PlayEnd::Finished, offset: 16_000 };
    assert_eq!(plant.events.len(), 1000);
    assert!(plant.events.contains(&finished));
}

#[test]
fn ticks_of_five_milliseconds_send_the_same_packets() {
    let mut plant = Plant::new();
    let stream = plant.open(plan(0, FormatId::ULAW, 0));
    plant.command(Command::Play {
        stream,
        play: PlayId(1),
        clip: clip(FormatId::ULAW, numbered(50)),
        offset: 0,
    });
    for _ in 0..204 {
        plant.net.now_ms += 5;
        let now = plant.now();
        plant.worker.tick(now, &mut plant.net, &mut plant.events);
    }
    let sent = plant.sent_by(stream);
    assert_eq!(sent.len(), 50);
    assert_continuous(&sent, 160);
    assert_eq!(plant.worker.load().late_ticks, 0);
}

#[test]
fn one_prompt_follows_another_without_a_gap_when_the_event_is_answered_at_once() {
    let mut plant = Plant::new();
    let stream = plant.open(plan(0, FormatId::ULAW, 0));
    for play in 0..5 {
        let prompt = clip(FormatId::ULAW, vec![play as u8; 320]);
        plant.command(Command::Play { stream, play: PlayId(play), clip: prompt, offset: 0 });
        while plant.events.is_empty() {
            plant.run(1);
        }
        assert_eq!(plant.take_events().len(), 1);
    }
    let sent = plant.sent_by(stream);
    assert_eq!(sent.len(), 10);
    assert!(sent.windows(2).all(|pair| pair[1].at_ms - pair[0].at_ms == 20));
    assert_continuous(&sent, 160);
}

#[test]
fn a_clip_may_start_anywhere_loop_be_replaced_be_stopped_or_be_empty() {
    let mut plant = Plant::new();
    let stream = plant.open(plan(0, FormatId::ULAW, 0));
    let looped = Arc::new(Clip {
        format: FormatId::ULAW,
        data: numbered(4).into(),
        loop_from: Some(320),
        packets: None,
    });
    plant.command(Command::Play { stream, play: PlayId(1), clip: looped, offset: 160 });
    plant.run(140);
    let order: Vec<_> = plant.sent_by(stream).iter().map(|sent| sent.payload()[0]).collect();
    assert_eq!(order, [1, 2, 3, 2, 3, 2, 3]);
    let empty = clip(FormatId::ULAW, vec![]);
    plant.command(Command::Play { stream, play: PlayId(2), clip: empty, offset: 99 });
    plant.run(20);
    let short = clip(FormatId::ULAW, vec![9; 100]);
    plant.command(Command::Play { stream, play: PlayId(3), clip: short.clone(), offset: 0 });
    plant.run(20);
    plant.command(Command::Play { stream, play: PlayId(4), clip: short, offset: 0 });
    plant.command(Command::StopPlay { stream });
    plant.command(Command::StopPlay { stream });
    plant.run(40);
    let played: Vec<_> = plant
        .take_events()
        .into_iter()
        .map(|event| match event {
            Event::Played { play: PlayId(play), end, offset, .. } => (play, end, offset),
            other => panic!("{other:?}"),
        })
        .collect();
    use PlayEnd::{Finished, Stopped};
    assert_eq!(played, [(1, Stopped, 640), (2, Finished, 0), (3, Finished, 100), (4, Stopped, 0)]);
    let last = plant.sent_by(stream).pop().unwrap();
    assert_eq!(last.payload()[..100], [9; 100]);
    assert!(last.payload()[100..].iter().all(|&byte| byte == 0xff), "the rest of the frame is silence");
}

#[test]
fn a_clip_in_another_format_is_heard_all_the_same() {
    for (source, target, payload) in [
        (FormatId::SLIN, FormatId::ULAW, 0),
        (FormatId::GSM, FormatId::ALAW, 8),
        (FormatId::ULAW, FormatId::GSM, 3),
        (FormatId::SLIN16, FormatId::G722, 9),
        (FormatId::ULAW, FormatId::SLIN16, 118),
    ] {
        for ptime_ms in [20, 40, 60] {
            let mut plant = Plant::new();
            let stream = plant.open(base::Plan { ptime_ms, ..plan(0, target, payload) });
            let mut data = tone(source, 440.0, 1200);
            if source.is_linear() {
                codec::swap_bytes(&mut data);
            }
            let bytes = data.len();
            plant.command(Command::Play { stream, play: PlayId(1), clip: clip(source, data), offset: 0 });
            plant.run(1500);
            let sent = plant.sent_by(stream);
            let name = format!("{source} to {target}, {ptime_ms} ms");
            assert_eq!(sent.len(), 1200 / usize::from(ptime_ms), "{name}");
            let heard = decode(target, &sent);
            let rate = target.rate().0;
            assert!(purity(&heard[rate as usize / 10..rate as usize], rate, 440.0) > 0.9, "{name}");
            assert!(
                matches!(plant.events[..], [Event::Played { end: PlayEnd::Finished, offset, .. }] if offset == bytes),
                "{name}: {:?}",
                plant.events
            );
        }
    }
}

#[test]
fn linear_clips_leave_in_network_order() {
    let mut plant = Plant::new();
    let stream = plant.open(plan(0, FormatId::SLIN16, 118));
    let data: Vec<u8> = [0x0102_i16; 320].iter().flat_map(|sample| sample.to_le_bytes()).collect();
    plant.command(Command::Play { stream, play: PlayId(1), clip: clip(FormatId::SLIN16, data), offset: 0 });
    plant.run(20);
    assert_eq!(plant.sent_by(stream)[0].payload()[..4], [1, 2, 1, 2]);
}

#[test]
fn everyone_hears_music_at_the_same_place_whenever_he_came() {
    let mut plant = Plant::new();
    let epoch = Instant::ZERO;
    let music = clip(FormatId::ULAW, numbered(70));
    let early = plant.open(plan(0, FormatId::ULAW, 0));
    plant.command(Command::Music { stream: early, clip: music.clone(), epoch });
    plant.run(333);
    let late = plant.open(plan(1, FormatId::ULAW, 0));
    plant.command(Command::Music { stream: late, clip: music, epoch });
    plant.run(3000);
    let place = |sent: &Sent| i64::from(sent.payload()[0]);
    let (one, two) = (plant.sent_by(early), plant.sent_by(late));
    for sent in &two[1..] {
        let other = one.iter().min_by_key(|other| other.at_ms.abs_diff(sent.at_ms)).unwrap();
        let apart = (place(sent) - place(other)).rem_euclid(70);
        assert!(apart <= 1 || apart == 69, "{apart} frames at {} ms", sent.at_ms);
    }
    assert_continuous(&two, 160);
    plant.command(Command::StopPlay { stream: early });
    plant.run(40);
    assert!(plant.events.is_empty(), "music has no end to report: {:?}", plant.events);
}

#[test]
fn music_goes_round_where_its_clip_says_once_all_of_it_was_heard() {
    // Ten frames, of which the last three are the piece that is heard again.
    let clip = |loop_from| {
        let data = numbered(10);
        Arc::new(Clip { format: FormatId::ULAW, data: data.into(), loop_from, packets: None })
    };
    for (name, loop_from, began_ms, expected) in [
        ("at its beginning", Some(7 * 160), 0, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 7, 8, 9, 7, 8, 9]),
        ("at its end", Some(7 * 160), 200, [7, 8, 9, 7, 8, 9, 7, 8, 9, 7, 8, 9, 7, 8, 9, 7]),
        ("a round later", Some(7 * 160), 280, [8, 9, 7, 8, 9, 7, 8, 9, 7, 8, 9, 7, 8, 9, 7, 8]),
        ("the whole of it", Some(0), 280, [4, 5, 6, 7, 8, 9, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9]),
        ("it does not say where", None, 280, [4, 5, 6, 7, 8, 9, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9]),
    ] {
        let mut plant = Plant::new();
        let stream = plant.open(plan(0, FormatId::ULAW, 0));
        let epoch = Instant::from_nanos(plant.now().as_nanos() - began_ms * 1_000_000);
        plant.command(Command::Music { stream, clip: clip(loop_from), epoch });
        plant.run(16 * 20);
        let heard: Vec<u8> = plant.sent_by(stream).iter().map(|sent| sent.payload()[0]).collect();
        assert_eq!(heard[..15], expected[..15], "{name}");
    }
}

#[test]
fn playing_goes_on_in_time_while_the_direction_forbids_sending() {
    let mut plant = Plant::new();
    let stream = plant.open(plan(0, FormatId::ULAW, 0));
    plant.command(Command::Play {
        stream,
        play: PlayId(1),
        clip: clip(FormatId::ULAW, numbered(50)),
        offset: 0,
    });
    plant.run(200);
    let hold = base::Plan { direction: Direction::Inactive, ..plan(0, FormatId::ULAW, 0) };
    plant.command(Command::Plan { stream, plan: Box::new(hold) });
    plant.run(400);
    plant.command(Command::Plan { stream, plan: Box::new(plan(0, FormatId::ULAW, 0)) });
    plant.run(410);
    let sent = plant.sent_by(stream);
    let order: Vec<_> = sent.iter().map(|s| s.payload()[0]).collect();
    assert_eq!(order, (0..10).chain(30..50).collect::<Vec<u8>>());
    assert_continuous(&sent, 160);
    let pause = sent[10].header().timestamp.wrapping_sub(sent[9].header().timestamp);
    assert_eq!(pause, 21 * 160, "the timestamp tells the time, the sequence shows no loss");
}

#[test]
fn a_plan_may_change_frame_length_and_format_in_the_middle_of_a_prompt() {
    let mut plant = Plant::new();
    let stream = plant.open(plan(0, FormatId::ULAW, 0));
    let mut data = tone(FormatId::SLIN, 440.0, 2000);
    codec::swap_bytes(&mut data);
    plant.command(Command::Play { stream, play: PlayId(1), clip: clip(FormatId::SLIN, data), offset: 0 });
    plant.run(500);
    for (format, payload, ptime_ms) in
        [(FormatId::ALAW, 8, 30), (FormatId::G722, 9, 10), (FormatId::GSM, 3, 50), (FormatId::ULAW, 0, 50)]
    {
        let before = plant.net.sent.len();
        let next = base::Plan { ptime_ms, ..plan(0, format, payload) };
        plant.command(Command::Plan { stream, plan: Box::new(next) });
        plant.run(300);
        let sent = plant.net.sent[before..].to_vec();
        let frame = if format == FormatId::GSM { 60 } else { usize::from(ptime_ms) };
        assert!((300 / frame - 1..=300 / frame + 1).contains(&sent.len()), "{format}: {}", sent.len());
        assert!(sent.iter().all(|s| s.payload().len() == format.bytes_in(frame as u16)), "{format}");
        let heard = decode(format, &sent);
        let rate = format.rate().0;
        assert!(purity(&heard[rate as usize / 10..], rate, 440.0) > 0.8, "{format}");
    }
    let sent = plant.sent_by(stream);
    assert!(sent.windows(2).all(|p| p[1].header().sequence == p[0].header().sequence.wrapping_add(1)));
}

#[test]
fn a_trace_notes_packets_of_both_directions_of_the_host_that_was_asked_for() {
    let mut plant = Plant::new();
    let streams: Vec<_> = (0..2).map(|n| plant.open(plan(n, FormatId::ULAW, 0))).collect();
    let watched = phone(streams[1]);
    let play = |stream| Command::Play {
        stream,
        play: PlayId(1),
        clip: clip(FormatId::ULAW, numbered(50)),
        offset: 0,
    };
    streams.iter().for_each(|&stream| plant.command(play(stream)));
    plant.run(40);
    assert_eq!(plant.worker.take_trace(), None, "nobody watches");
    let tracing = Tracing { rtp: Watch::Host(watched.ip(), None), ..Tracing::default() };
    plant.input(Input::Trace(tracing));
    let mut phones: Vec<_> = streams.iter().map(|&stream| Phone::new(stream, 0)).collect();
    phones.iter_mut().for_each(|phone| phone.say(&mut plant, &[0; 160]));
    plant.run(20);
    let noted = plant.worker.take_trace().unwrap();
    let sent = plant.sent_by(streams[1]).last().unwrap().header();
    let rtp = |sequence, timestamp| Carried::Rtp { payload_type: 0, sequence, timestamp };
    let packet = |sent, carried| Traced { sent, peer: watched, carried, length: 160 };
    let expected = [packet(false, rtp(65_001, 154_000)), packet(true, rtp(sent.sequence, sent.timestamp))];
    assert_eq!((noted.packets.as_slice(), noted.missed), (&expected[..], 0));
    plant.input(Input::Trace(Tracing::default()));
    plant.run(20);
    assert_eq!(plant.worker.take_trace(), None);
}

/// A linear clip of `ms` that coders of speech make something of.
fn spoken(format: FormatId, ms: usize) -> Clip {
    let mut data = tone(format.linear(), 300.0, ms);
    codec::swap_bytes(&mut data);
    Clip { format: format.linear(), data: data.into(), loop_from: None, packets: None }
}

const VARIABLE: [(FormatId, u8, base::Wishes); 2] =
    [(FormatId::SPEEX, 110, PLAIN), (FormatId::OPUS, 107, base::Wishes { fec: true, ..PLAIN })];
const PLAIN: base::Wishes =
    base::Wishes { bitrate: None, playback_rate: 48_000, fec: false, dtx: false, constant: false };

#[test]
fn listeners_of_one_prompt_are_sent_one_encoding_also_in_formats_of_variable_rate() {
    for (format, payload, wishes) in VARIABLE {
        let linear = spoken(format, 1000);
        let packets = codec::packets_of(&linear, format, &codec::Coders::default()).unwrap();
        let expected: Vec<Vec<u8>> = (0..packets.len()).map(|n| packets.get(n).unwrap().to_vec()).collect();
        assert_eq!(expected.len(), 50, "{format}");
        let prompt = Arc::new(Clip { packets: Some(packets), ..linear });
        let mut plant = Plant::new();
        let streams: Vec<_> =
            (0..20).map(|n| plant.open(base::Plan { wishes, ..plan(n, format, payload) })).collect();
        for (n, &stream) in streams.iter().enumerate() {
            let (play, clip) = (PlayId(1), prompt.clone());
            // Half of them begin in the middle, one between two packets.
            let offset = [0, clip.data.len() / 2 + [0, 6][usize::from(n == 1)]][n % 2];
            plant.command(Command::Play { stream, play, clip, offset });
        }
        plant.run(1020);
        for (n, &stream) in streams.iter().enumerate() {
            let sent = plant.sent_by(stream);
            let payloads: Vec<_> = sent.iter().map(|sent| sent.payload().to_vec()).collect();
            assert!(payloads == expected[[0, 25][n % 2]..], "{format}, listener {n}");
            assert_continuous(&sent, format.rtp_clock() / 50);
        }
        assert_eq!(plant.worker.load().encoded, 0, "{format}: nobody encodes in the worker");
        assert_eq!(plant.take_events().len(), streams.len(), "{format}: all have ended");
    }
}

#[test]
fn who_wants_other_packets_than_those_that_are_shared_has_an_encoder() {
    for (name, format, ptime_ms, wishes, alone) in [
        ("as they are", FormatId::OPUS, 20, PLAIN, false),
        ("longer packets", FormatId::OPUS, 40, PLAIN, true),
        ("fewer bits", FormatId::OPUS, 20, base::Wishes { bitrate: Some(16_000), ..PLAIN }, true),
        ("another codec", FormatId::SPEEX, 20, PLAIN, true),
    ] {
        let linear = spoken(FormatId::OPUS, 400);
        let packets = codec::packets_of(&linear, FormatId::OPUS, &codec::Coders::default());
        let prompt = Arc::new(Clip { packets, ..linear });
        let mut plant = Plant::new();
        let stream = plant.open(base::Plan { ptime_ms, wishes, ..plan(0, format, 107) });
        plant.command(Command::Play { stream, play: PlayId(1), clip: prompt, offset: 0 });
        plant.run(500);
        let count = 400 / usize::from(ptime_ms);
        assert_eq!(plant.sent_by(stream).len(), count, "{name}");
        assert_eq!(plant.worker.load().encoded, if alone { count as u64 } else { 0 }, "{name}");
        assert!(matches!(plant.events[..], [Event::Played { end: PlayEnd::Finished, .. }]), "{name}");
    }
}

#[test]
fn a_thousand_callers_on_hold_cost_a_thousand_sends_and_no_encoding_of_their_own() {
    const CALLERS: u32 = 1000;
    for (format, payload) in [(FormatId::ULAW, 0), (FormatId::ILBC, 97), (FormatId::SPEEX, 110)] {
        let linear = Clip { loop_from: Some(0), ..spoken(format, 600) };
        let music = if format.is_constant() {
            let samples: Vec<i16> =
                linear.data.as_chunks().0.iter().map(|pair| i16::from_le_bytes(*pair)).collect();
            Clip { loop_from: Some(0), ..codec::clip_of_samples(&samples, format) }
        } else {
            Clip { packets: codec::packets_of(&linear, format, &codec::Coders::default()), ..linear }
        };
        let music = Arc::new(music);
        let mut plant = Plant::new();
        let streams: Vec<_> = (0..CALLERS).map(|n| plant.open(plan(n, format, payload))).collect();
        for &stream in &streams {
            plant.command(Command::Music { stream, clip: music.clone(), epoch: Instant::ZERO });
        }
        plant.run(1000);
        let load = plant.worker.load();
        assert_eq!((load.sent, load.encoded, load.grouped), (50 * u64::from(CALLERS), 0, 0), "{format}");
        let moment: std::collections::BTreeSet<_> = streams
            .iter()
            .map(|&stream| plant.sent_by_from(stream, 20).map(|sent| sent.payload().to_vec()))
            .collect();
        assert!(moment.len() <= 2, "{format}: all hear the same bar, or the one next to it");
    }
}

#[test]
fn a_linear_prompt_is_encoded_for_each_call_side_by_side_with_others() {
    for (format, payload, ms) in [
        (FormatId::ILBC, 97, 20),
        (FormatId::ILBC30, 98, 30),
        (FormatId::SPEEX, 110, 20),
        (FormatId::GSM, 3, 20),
        (FormatId::ULAW, 0, 20),
    ] {
        const CALLS: u32 = 40;
        let prompt = Arc::new(spoken(format, 900));
        let mut plant = Plant::new();
        let streams: Vec<_> =
            (0..CALLS).map(|n| plant.open(base::Plan { ptime_ms: ms, ..plan(n, format, payload) })).collect();
        for &stream in &streams {
            plant.command(Command::Play { stream, play: PlayId(9), clip: prompt.clone(), offset: 0 });
        }
        plant.run(1000);
        // The twin: one encoder that nobody shares.
        let mut encoder = codec::Encoder::new(format);
        let samples: Vec<i16> =
            prompt.data.as_chunks().0.iter().map(|pair| i16::from_le_bytes(*pair)).collect();
        let frame = format.rate().0 as usize * usize::from(ms) / 1000;
        let expected: Vec<Vec<u8>> = samples
            .chunks_exact(frame)
            .map(|linear| {
                let mut room = [0; 1000];
                let count = encoder.encode(linear, &mut room);
                room[..count].to_vec()
            })
            .collect();
        for &stream in &streams {
            let sent = plant.sent_by(stream);
            assert!(sent.iter().map(Sent::payload).eq(expected.iter().map(Vec::as_slice)), "{format}");
            assert_continuous(&sent, format.rtp_clock() / 1000 * u32::from(ms));
        }
        let load = plant.worker.load();
        let packets = u64::from(CALLS) * expected.len() as u64;
        assert_eq!(load.encoded, packets, "{format}");
        assert_eq!(load.grouped, if format == FormatId::ULAW { 0 } else { packets }, "{format}");
        let ends = plant.take_events();
        let finished = |event: &Event| matches!(event, Event::Played { end: PlayEnd::Finished, offset, .. } if *offset == prompt.data.len());
        assert!(ends.len() == streams.len() && ends.iter().all(finished), "{format}");
    }
}

#[test]
fn what_waits_for_company_is_sent_before_a_stop_and_never_after_it() {
    let mut plant = Plant::new();
    let stream = plant.open(plan(0, FormatId::ILBC, 97));
    let prompt = Arc::new(spoken(FormatId::ILBC, 900));
    plant.command(Command::Play { stream, play: PlayId(1), clip: prompt.clone(), offset: 0 });
    // One tick after the visit: its turn still waits for others.
    while plant.sent_by(stream).len() < 2 {
        plant.run(1);
    }
    plant.run(15);
    let before = plant.sent_by(stream).len();
    plant.command(Command::StopPlay { stream });
    plant.run(100);
    let sent = plant.sent_by(stream);
    assert!(sent.len() <= before + 1, "{before} before, {} after", sent.len());
    let [Event::Played { end: PlayEnd::Stopped, offset, .. }] = plant.events[..] else {
        panic!("{:?}", plant.events)
    };
    assert_eq!(offset, sent.len() * 320, "what was reached is what was sent");
}
