//! Rooms on invented time: who hears whom, at which rate, in which packets; panics.

mod common;

use std::sync::Arc;

use base::{
    AudioSink, Clip, Command, Event, Fault, FormatId, Gain, MemberSettings, RoomId, RoomSettings, RoomVideo,
    StreamId,
};
use common::*;
use media::Input;

const ROOM: RoomId = RoomId::new(3, 1);

/// A phone in a room.
struct Guest {
    phone: Phone,
    format: FormatId,
    speech: Vec<u8>,
    said: usize,
}

impl Guest {
    fn stream(&self) -> StreamId {
        self.phone.stream
    }
    /// Says the next 20 ms of what it has to say; silence, when that is nothing.
    fn say(&mut self, plant: &mut Plant) {
        let size = self.format.bytes_in(20);
        let frames = (self.speech.len() / size).max(1);
        let at = self.said % frames * size;
        self.said += 1;
        let mut frame = self.speech.get(at..at + size).unwrap_or_default().to_vec();
        if frame.is_empty() {
            frame = tone(self.format, 0.0, 20);
        }
        self.phone.say(plant, &frame);
    }
}

/// The payload type of a format in these tests, and its RTP clock in 20 ms.
fn guest(plant: &mut Plant, format: FormatId, hertz: f64) -> Guest {
    guest_of(plant, format, hertz, 20)
}

fn guest_of(plant: &mut Plant, format: FormatId, hertz: f64, ptime_ms: u8) -> Guest {
    let mut plan = plan(0, format, 97);
    plan.jitter_max_ms = 0;
    plan.ptime_ms = ptime_ms;
    let stream = plant.open(plan.clone());
    plan.remote = Some(phone(stream));
    plan.ssrc += stream.slot;
    plant.command(Command::Plan { stream, plan: Box::new(plan) });
    let mut phone = Phone::new(stream, 97);
    phone.units = format.rtp_clock() / 50;
    let speech = if hertz > 0.0 { tone(format, hertz, 2000) } else { Vec::new() };
    Guest { phone, format, speech, said: 0 }
}

fn enter(plant: &mut Plant, stream: StreamId) {
    enter_as(plant, stream, RoomSettings::default(), MemberSettings::default());
}

fn enter_as(plant: &mut Plant, stream: StreamId, mixing: RoomSettings, member: MemberSettings) {
    plant.command(Command::Enter { stream, room: ROOM, mixing, member });
}

fn talk(plant: &mut Plant, guests: &mut [Guest], ms: u64) {
    for _ in 0..ms / 20 {
        guests.iter_mut().for_each(|guest| guest.say(plant));
        plant.run(20);
    }
}

/// What the phone has heard in the last so many milliseconds, and the tones in it.
fn heard(plant: &Plant, guest: &Guest, ms: usize) -> Vec<i16> {
    let linear = decode(guest.format, &plant.sent_by(guest.stream()));
    let rate = guest.format.rate().0 as usize;
    linear[linear.len() - (rate * ms / 1000).min(linear.len())..].to_vec()
}

/// The amplitude of a tone.
fn amplitude(linear: &[i16], rate: u32, hertz: f64) -> f64 {
    let (mut re, mut im) = (0.0, 0.0);
    for (n, &sample) in linear.iter().enumerate() {
        let phase = n as f64 * hertz * std::f64::consts::TAU / f64::from(rate);
        re += f64::from(sample) * phase.cos();
        im += f64::from(sample) * phase.sin();
    }
    2.0 * (re * re + im * im).sqrt() / linear.len() as f64
}

/// Which of these tones the guest hears: those with at least a fifth of the amplitude they are spoken with; what codecs
/// made for speech leave of several tones at once may be less.
fn tones(plant: &Plant, guest: &Guest, hertz: &[f64]) -> Vec<f64> {
    let linear = heard(plant, guest, 400);
    let rate = guest.format.rate().0;
    let least = if matches!(guest.format, FormatId::GSM | FormatId::ILBC) { 500.0 } else { 1600.0 };
    hertz.iter().copied().filter(|hertz| amplitude(&linear, rate, *hertz) > least).collect()
}

const TONES: [f64; 5] = [350.0, 600.0, 950.0, 1400.0, 2050.0];

fn others(own: usize, count: usize) -> Vec<f64> {
    (0..count).filter(|n| *n != own).map(|n| TONES[n]).collect()
}

#[test]
fn everyone_hears_the_others_and_never_themselves_in_every_format_at_once() {
    let mut plant = Plant::new();
    let formats = [FormatId::ULAW, FormatId::GSM, FormatId::G722, FormatId::SLIN48, FormatId::ILBC];
    let mut guests: Vec<_> =
        formats.iter().zip(TONES).map(|(format, hertz)| guest(&mut plant, *format, hertz)).collect();
    for guest in &guests {
        enter(&mut plant, guest.stream());
    }
    talk(&mut plant, &mut guests, 1000);
    for (n, guest) in guests.iter().enumerate() {
        assert_eq!(tones(&plant, guest, &TONES), others(n, 5), "{}", guest.format);
        let sent = plant.sent_by(guest.stream());
        assert!((48..=50).contains(&sent.len()), "{}: {} packets", guest.format, sent.len());
        assert_continuous(&sent, guest.format.rtp_clock() / 50);
    }
}

#[test]
fn linear_sums_are_exact_and_one_s_own_part_is_not_in_them() {
    // Each guest says a digit of a number to base six: who hears a sum can tell what everyone said.
    let mut plant = Plant::new();
    let mut guests: Vec<_> = (0..5).map(|_| guest(&mut plant, FormatId::SLIN, 0.0)).collect();
    for (n, guest) in guests.iter_mut().enumerate() {
        let digits = (0..1600).map(|at| (at / 160 + n) as i16 % 5 + 1);
        guest.speech = digits.flat_map(|digit| (digit * 6i16.pow(n as u32)).to_be_bytes()).collect();
        enter(&mut plant, guest.stream());
    }
    talk(&mut plant, &mut guests, 1000);
    for (own, guest) in guests.iter().enumerate() {
        let linear = heard(&plant, guest, 600);
        for (n, power) in (0..5).map(|n| (n, 6i16.pow(n as u32))) {
            let digits: Vec<i16> = linear.iter().map(|sample| sample / power % 6).collect();
            if n == own {
                assert!(digits.iter().all(|digit| *digit == 0), "{own} hears itself");
                continue;
            }
            for frames in digits.chunks(160).collect::<Vec<_>>().windows(2) {
                assert!(frames[0].iter().all(|digit| *digit == frames[0][0]), "{own} hears {n} in pieces");
                assert_eq!(frames[1][0], frames[0][0] % 5 + 1, "{own} misses a frame of {n}");
            }
        }
    }
}

#[test]
fn who_is_silent_shares_one_encoding_and_who_talks_has_one_of_its_own() {
    let mut plant = Plant::new();
    for format in [FormatId::ULAW, FormatId::GSM] {
        let mut guests: Vec<_> =
            [600.0, 0.0, 0.0].iter().map(|hertz| guest(&mut plant, format, *hertz)).collect();
        let room = RoomId::new(u32::from(format == FormatId::GSM), 1);
        for guest in &guests {
            let (mixing, member) = (RoomSettings::default(), MemberSettings::default());
            plant.command(Command::Enter { stream: guest.stream(), room, mixing, member });
        }
        // What GSM makes of silence is not silence itself, so only who sends nothing is silent for sure.
        for _ in 0..50 {
            guests[0].say(&mut plant);
            plant.run(20);
        }
        let payloads = |guest: &Guest, plant: &Plant| -> Vec<Vec<u8>> {
            plant.sent_by(guest.stream()).iter().map(|sent| sent.payload().to_vec()).collect()
        };
        assert_eq!(payloads(&guests[1], &plant), payloads(&guests[2], &plant), "{format}");
        assert_ne!(payloads(&guests[0], &plant), payloads(&guests[1], &plant), "{format}");
        assert_eq!(tones(&plant, &guests[0], &[600.0]), [0.0; 0], "{format}");
        assert_eq!(tones(&plant, &guests[1], &[600.0]), [600.0], "{format}");
        // The second begins to talk: it hears the first as before, without a break, and the third hears both.
        guests[1].speech = tone(format, 1400.0, 2000);
        for _ in 0..50 {
            guests[0].say(&mut plant);
            guests[1].say(&mut plant);
            plant.run(20);
        }
        assert_eq!(tones(&plant, &guests[1], &[600.0, 1400.0]), [600.0], "{format}");
        assert_eq!(tones(&plant, &guests[2], &[600.0, 1400.0]), [600.0, 1400.0], "{format}");
        let unbroken = heard(&plant, &guests[1], 1900);
        for piece in unbroken.chunks(160) {
            assert!(amplitude(piece, 8000, 600.0) > 6000.0, "{format}: a break in what the second hears");
        }
        // And ceases to: after a second it shares again.
        for _ in 0..100 {
            guests[0].say(&mut plant);
            plant.run(20);
        }
        let last = |guest: &Guest| payloads(guest, &plant).pop();
        assert_eq!(last(&guests[1]), last(&guests[2]), "{format}");
    }
}

#[test]
fn packets_of_every_length_and_mixes_of_every_interval_keep_the_time() {
    for interval_ms in [10, 20, 40, 80] {
        let mut plant = Plant::new();
        let lengths = [10, 20, 30, 40, 60];
        let mut guests: Vec<_> = lengths
            .iter()
            .zip(TONES)
            .map(|(ms, hertz)| guest_of(&mut plant, FormatId::ALAW, hertz, *ms))
            .collect();
        let mixing = RoomSettings { interval_ms, ..RoomSettings::default() };
        for guest in &guests {
            enter_as(&mut plant, guest.stream(), mixing, MemberSettings::default());
        }
        talk(&mut plant, &mut guests, 1200);
        for (n, (guest, ms)) in guests.iter().zip(lengths).enumerate() {
            let sent = plant.sent_by(guest.stream());
            let (least, most) = ((1200 - 160) / u64::from(ms), 1200 / u64::from(ms));
            assert!(
                (least..=most).contains(&(sent.len() as u64)),
                "{} packets of {ms} ms at {interval_ms}",
                sent.len()
            );
            assert_continuous(&sent, u32::from(ms) * 8);
            assert_eq!(tones(&plant, guest, &TONES), others(n, 5), "{ms} ms at {interval_ms}");
        }
    }
}

#[test]
fn settings_change_who_is_heard_and_how_loud() {
    let mut plant = Plant::new();
    let mut guests: Vec<_> = (0..3).map(|n| guest(&mut plant, FormatId::SLIN, TONES[n])).collect();
    for guest in &guests {
        enter(&mut plant, guest.stream());
    }
    let unity = MemberSettings::default();
    for (name, member, first_hears, second_hears, loud) in [
        ("as they are", unity, vec![TONES[1], TONES[2]], vec![TONES[0], TONES[2]], 8000.0),
        ("muted", MemberSettings { muted: true, ..unity }, vec![TONES[1], TONES[2]], vec![TONES[2]], 0.0),
        ("deaf", MemberSettings { deaf: true, ..unity }, vec![], vec![TONES[0], TONES[2]], 8000.0),
        (
            "talks at half",
            MemberSettings { talking: Gain::of_step(-2), ..unity },
            vec![TONES[1], TONES[2]],
            vec![TONES[0], TONES[2]],
            4000.0,
        ),
        (
            "at a fixed level",
            MemberSettings { level: 2546, ..unity }, // mean of a sine of 4000
            vec![TONES[1], TONES[2]],
            vec![TONES[0], TONES[2]],
            4000.0,
        ),
        ("again", unity, vec![TONES[1], TONES[2]], vec![TONES[0], TONES[2]], 8000.0),
    ] {
        plant.command(Command::Adjust { stream: guests[0].stream(), member });
        talk(&mut plant, &mut guests, 1600);
        assert_eq!(tones(&plant, &guests[0], &TONES), first_hears, "{name}");
        assert_eq!(tones(&plant, &guests[1], &TONES), second_hears, "{name}");
        let amplitude = amplitude(&heard(&plant, &guests[2], 400), 8000, TONES[0]);
        assert!((amplitude - loud).abs() < 150.0, "{name}: {amplitude}");
    }
    let member = MemberSettings { listening: Gain::of_step(-4), ..unity };
    plant.command(Command::Adjust { stream: guests[2].stream(), member });
    talk(&mut plant, &mut guests, 800);
    let own = amplitude(&heard(&plant, &guests[2], 400), 8000, TONES[0]);
    assert!((own - 2000.0).abs() < 100.0, "listens at a quarter: {own}");
}

#[test]
fn a_noise_gate_keeps_hum_out_and_lets_speech_in_at_once() {
    let mut plant = Plant::new();
    let mut guests = vec![guest(&mut plant, FormatId::SLIN, 0.0), guest(&mut plant, FormatId::SLIN, 0.0)];
    // A second of hum, a second of speech.
    let hum = tone(FormatId::SLIN, 600.0, 1000);
    guests[0].speech = hum
        .as_chunks::<2>()
        .0
        .iter()
        .flat_map(|pair| (i16::from_be_bytes(*pair) / 80).to_be_bytes())
        .chain(tone(FormatId::SLIN, 600.0, 1000))
        .collect();
    let member = MemberSettings { drop_silence: true, silence_ms: 200, ..MemberSettings::default() };
    enter_as(&mut plant, guests[0].stream(), RoomSettings::default(), member);
    enter(&mut plant, guests[1].stream());
    talk(&mut plant, &mut guests, 940);
    assert!(heard(&plant, &guests[1], 800).iter().all(|sample| *sample == 0), "hum is not heard");
    talk(&mut plant, &mut guests, 200);
    let loud = heard(&plant, &guests[1], 40);
    assert!(amplitude(&loud, 8000, 600.0) > 7000.0, "speech is heard");
    let events = plant.take_events();
    let talking: Vec<_> = events.iter().filter(|event| matches!(event, Event::Talking { .. })).collect();
    assert_eq!(talking, [&Event::Talking { stream: guests[0].stream(), talks: true }]);
    talk(&mut plant, &mut guests, 1500);
    let ended = Event::Talking { stream: guests[0].stream(), talks: false };
    assert!(plant.take_events().contains(&ended), "and its end is told");
    assert!(heard(&plant, &guests[1], 300).iter().all(|sample| *sample == 0), "hum is not heard again");
}

#[test]
fn only_the_loudest_are_heard_where_places_are_few() {
    let mut plant = Plant::new();
    let mut guests: Vec<_> = (0..4).map(|n| guest(&mut plant, FormatId::SLIN, TONES[n])).collect();
    for guest in &guests {
        let mixing = RoomSettings { speakers_max: 2, ..RoomSettings::default() };
        enter_as(&mut plant, guest.stream(), mixing, MemberSettings::default());
    }
    // The last two speak at a third.
    for guest in &mut guests[2..] {
        let quiet =
            guest.speech.as_chunks::<2>().0.iter().flat_map(|p| (i16::from_be_bytes(*p) / 3).to_be_bytes());
        guest.speech = quiet.collect();
    }
    talk(&mut plant, &mut guests, 800);
    assert_eq!(tones(&plant, &guests[3], &TONES), [TONES[0], TONES[1]]);
    assert_eq!(tones(&plant, &guests[0], &TONES), [TONES[1]]);
    // One of the loud ones goes: there is a place.
    plant.command(Command::Part { stream: guests[0].stream() });
    talk(&mut plant, &mut guests, 800);
    let last = heard(&plant, &guests[3], 400);
    assert!(amplitude(&last, 8000, TONES[2]) > 2000.0, "the third is heard");
}

#[test]
fn members_come_and_go_and_bridges_end_by_entering() {
    let mut plant = Plant::new();
    let mut guests: Vec<_> = (0..4).map(|n| guest(&mut plant, FormatId::ULAW, TONES[n])).collect();
    plant.command(Command::Join { a: guests[0].stream(), b: guests[1].stream() });
    talk(&mut plant, &mut guests, 400);
    for guest in &guests[..3] {
        enter(&mut plant, guest.stream());
    }
    talk(&mut plant, &mut guests, 600);
    assert_eq!(tones(&plant, &guests[0], &TONES), others(0, 3));
    assert_eq!(tones(&plant, &guests[1], &TONES), others(1, 3));
    assert!(plant.sent_by(guests[3].stream()).is_empty(), "who is not in the room hears nothing");
    // Two leave for a bridge; the third stays alone and hears silence.
    plant.command(Command::Join { a: guests[0].stream(), b: guests[1].stream() });
    talk(&mut plant, &mut guests, 600);
    assert_eq!(tones(&plant, &guests[0], &TONES), [TONES[1]]);
    assert_eq!(tones(&plant, &guests[2], &TONES), [0.0; 0]);
    assert!(heard(&plant, &guests[2], 200).iter().all(|sample| *sample == 0));
    // The last one hangs up, and the room opens anew for others, at another interval.
    plant.command(Command::Close { stream: guests[2].stream() });
    guests.remove(2);
    let mixing = RoomSettings { interval_ms: 10, ..RoomSettings::default() };
    for guest in &guests {
        enter_as(&mut plant, guest.stream(), mixing, MemberSettings::default());
    }
    talk(&mut plant, &mut guests, 600);
    assert_eq!(tones(&plant, &guests[2], &TONES), [TONES[0], TONES[1]]);
    assert_eq!(plant.worker.load().panics, 0);
}

#[test]
fn a_room_moves_to_another_worker_stream_by_stream() {
    let mut plant = Plant::new();
    let mut guests: Vec<_> = (0..3).map(|n| guest(&mut plant, FormatId::ULAW, TONES[n])).collect();
    for guest in &guests {
        enter(&mut plant, guest.stream());
    }
    talk(&mut plant, &mut guests, 400);
    let now = plant.now();
    let stream = guests[0].stream();
    let moving = plant.worker.release(stream, now, &mut plant.net, &mut plant.events).unwrap();
    talk(&mut plant, &mut guests[1..], 400);
    assert_eq!(tones(&plant, &guests[1], &TONES), [TONES[2]], "who left is not heard");
    plant.input(Input::Adopt(moving));
    enter(&mut plant, stream);
    talk(&mut plant, &mut guests, 600);
    for (n, guest) in guests.iter().enumerate() {
        assert_eq!(tones(&plant, guest, &TONES), others(n, 3));
    }
}

#[test]
fn everyone_hears_an_announcement_beside_those_who_talk() {
    let mut plant = Plant::new();
    let mut guests: Vec<_> = [FormatId::ULAW, FormatId::G722, FormatId::SLIN48]
        .iter()
        .zip(TONES)
        .map(|(format, hertz)| guest(&mut plant, *format, hertz))
        .collect();
    for guest in &guests {
        enter(&mut plant, guest.stream());
    }
    let mut spoken = tone(FormatId::SLIN, 2600.0, 1000);
    codec::swap_bytes(&mut spoken);
    let clip = Arc::new(Clip { format: FormatId::SLIN, data: spoken.into(), loop_from: None, packets: None });
    talk(&mut plant, &mut guests, 200);
    plant.command(Command::Announce { room: ROOM, clip });
    talk(&mut plant, &mut guests, 800);
    for (n, guest) in guests.iter().enumerate() {
        let wanted: Vec<f64> = others(n, 3).into_iter().chain([2600.0]).collect();
        let all: Vec<f64> = TONES.into_iter().chain([2600.0]).collect();
        assert_eq!(tones(&plant, guest, &all), wanted, "{}", guest.format);
    }
    talk(&mut plant, &mut guests, 800);
    for (n, guest) in guests.iter().enumerate() {
        let all: Vec<f64> = TONES.into_iter().chain([2600.0]).collect();
        assert_eq!(tones(&plant, guest, &all), others(n, 3), "{}: it ends", guest.format);
    }
}

struct Kept(std::sync::mpsc::Sender<Vec<i16>>);
impl AudioSink for Kept {
    fn write(&mut self, samples: &[i16]) -> usize {
        self.0.send(samples.to_vec()).unwrap();
        samples.len()
    }
}

#[test]
fn a_recorded_room_is_written_down_whole_in_step_at_the_rate_of_the_file_until_it_is_told_to_end() {
    for (format, rate) in [(FormatId::SLIN, 8000_u32), (FormatId::SLIN16, 16_000)] {
        let mut plant = Plant::new();
        let mut guests: Vec<_> = [FormatId::ULAW, FormatId::G722, FormatId::SLIN48]
            .iter()
            .zip(TONES)
            .map(|(format, hertz)| guest(&mut plant, *format, hertz))
            .collect();
        for guest in &guests {
            enter(&mut plant, guest.stream());
        }
        talk(&mut plant, &mut guests, 200);
        let (sink, kept) = std::sync::mpsc::channel();
        plant.command(Command::RecordRoom { room: ROOM, format, sink: Box::new(Kept(sink)) });
        talk(&mut plant, &mut guests, 1000);
        plant.command(Command::StopRecordRoom { room: ROOM });
        talk(&mut plant, &mut guests, 400);
        let samples: Vec<i16> = kept.try_iter().flatten().collect();
        let expected = rate as usize;
        let frame = expected / 50;
        assert!(samples.len().abs_diff(expected) <= frame, "{format}: {} samples", samples.len());
        let late = &samples[samples.len() / 2..];
        for hertz in &TONES[..3] {
            assert!(amplitude(late, rate, *hertz) > 1600.0, "{format}: {hertz}");
        }
        assert!(kept.recv().is_err(), "the sink is gone");
        // Nobody hears anything of it.
        for (n, guest) in guests.iter().enumerate() {
            assert_eq!(tones(&plant, guest, &TONES), others(n, 3), "{}", guest.format);
        }
    }
}

#[test]
fn a_recording_ends_with_the_last_member_of_its_room() {
    let mut plant = Plant::new();
    let mut guests = vec![guest(&mut plant, FormatId::ULAW, TONES[0])];
    let stream = guests[0].stream();
    enter(&mut plant, stream);
    let (sink, kept) = std::sync::mpsc::channel();
    plant.command(Command::RecordRoom { room: ROOM, format: FormatId::SLIN16, sink: Box::new(Kept(sink)) });
    talk(&mut plant, &mut guests, 400);
    plant.command(Command::Part { stream });
    talk(&mut plant, &mut guests, 100);
    assert!(kept.try_iter().flatten().count() >= 16_000 * 3 / 10);
    assert!(kept.recv().is_err(), "the sink is gone");
}

#[test]
fn taps_of_a_member_hear_it_even_when_the_room_does_not() {
    let mut plant = Plant::new();
    let mut guests: Vec<_> = (0..2).map(|n| guest(&mut plant, FormatId::ULAW, TONES[n])).collect();
    let (sink, kept) = std::sync::mpsc::channel();
    let stream = guests[0].stream();
    plant.command(Command::Record { stream, format: FormatId::SLIN, sink: Box::new(Kept(sink)) });
    let muted = MemberSettings { muted: true, ..MemberSettings::default() };
    enter_as(&mut plant, stream, RoomSettings::default(), muted);
    enter(&mut plant, guests[1].stream());
    talk(&mut plant, &mut guests, 1000);
    let recorded: Vec<i16> = kept.try_iter().flatten().collect();
    assert!((7200..=8000).contains(&recorded.len()), "{}", recorded.len());
    assert!(amplitude(&recorded[4000..], 8000, TONES[0]) > 7000.0);
    assert_eq!(tones(&plant, &guests[1], &TONES), [0.0; 0]);
}

#[test]
fn a_panic_of_a_member_ends_its_call_only_and_one_of_the_room_ends_none() {
    quiet_faults();
    for format in [FormatId::ULAW, FormatId::GSM] {
        let mut plant = Plant::new();
        let mut guests: Vec<_> = (0..5).map(|n| guest(&mut plant, format, TONES[n])).collect();
        for guest in &guests {
            enter(&mut plant, guest.stream());
        }
        talk(&mut plant, &mut guests, 400);
        let mut panics = 0;
        let faults: [(&str, Injected); 4] = [
            ("round", Input::PoisonMember),
            ("visit", Input::Poison),
            ("group", Input::PoisonGroup),
            ("room", |_| Input::PoisonRoom(ROOM)),
        ];
        for (name, fault) in faults {
            let by_group = name == "group";
            let stream = guests[1].stream();
            plant.take_events();
            plant.input(fault(stream));
            talk(&mut plant, &mut guests, 600);
            let closed = |event: &Event| match event {
                Event::Closed { stream, fault, .. } => Some((*stream, *fault)),
                _ => None,
            };
            let ended: Vec<_> = plant.take_events().iter().filter_map(closed).collect();
            if name == "room" || (by_group && format == FormatId::ULAW) {
                // µ-law has no lanes, so there is no group to fall.
                assert_eq!(ended, [], "{format}, {name}");
                panics += u64::from(name == "room");
            } else {
                assert_eq!(ended, [(stream, Some(Fault::Panicked))], "{format}, {name}");
                panics += 1;
                guests.remove(1);
            }
            assert_eq!(plant.worker.load().panics, panics, "{format}, {name}");
            let spoken: Vec<f64> = guests.iter().map(|guest| guest_tone(guest.stream())).collect();
            for guest in &guests {
                let wanted: Vec<f64> =
                    spoken.iter().copied().filter(|hertz| *hertz != guest_tone(guest.stream())).collect();
                assert_eq!(tones(&plant, guest, &TONES), wanted, "{format}, {name}");
            }
        }
    }
}

/// Makes something of a stream panic.
type Injected = fn(StreamId) -> Input<Leg>;

fn guest_tone(stream: StreamId) -> f64 {
    TONES[stream.slot as usize]
}

#[test]
fn a_member_that_sends_nothing_or_changes_its_format_disturbs_nobody() {
    let mut plant = Plant::new();
    let mut guests: Vec<_> = (0..3).map(|n| guest(&mut plant, FormatId::ULAW, TONES[n])).collect();
    for guest in &guests {
        enter(&mut plant, guest.stream());
    }
    let mut silent = guests.remove(2);
    talk(&mut plant, &mut guests, 600);
    assert_eq!(tones(&plant, &silent, &TONES), [TONES[0], TONES[1]]);
    // A new offer: it goes on in wide band.
    let stream = silent.stream();
    let mut wide = plan(stream.slot, FormatId::SLIN16, 98);
    (wide.remote, wide.jitter_max_ms) = (Some(phone(stream)), 0);
    plant.command(Command::Plan { stream, plan: Box::new(wide) });
    silent.format = FormatId::SLIN16;
    (silent.phone.payload, silent.phone.units) = (98, 320);
    silent.speech = tone(FormatId::SLIN16, 5000.0, 2000);
    plant.net.sent.clear();
    guests.push(silent);
    talk(&mut plant, &mut guests, 800);
    assert_eq!(tones(&plant, &guests[2], &TONES), [TONES[0], TONES[1]]);
    assert_eq!(tones(&plant, &guests[0], &TONES), [TONES[1]]);
    let narrow = heard(&plant, &guests[0], 400);
    assert!(amplitude(&narrow, 8000, 3000.0) < 100.0, "what is too high for narrow band does not fold back");
}

#[test]
fn who_leads_the_talk_is_told_when_somebody_wants_to_know() {
    let leads = |tells_speaker| {
        let mut plant = Plant::new();
        let mut guests: Vec<_> =
            [400.0, 700.0, 0.0].iter().map(|hertz| guest(&mut plant, FormatId::ULAW, *hertz)).collect();
        let video = RoomVideo { tells_speaker, ..RoomVideo::default() };
        for guest in &guests {
            let member = MemberSettings { silence_ms: 200, ..MemberSettings::default() };
            enter_as(&mut plant, guest.stream(), RoomSettings { video, ..RoomSettings::default() }, member);
        }
        let quiet: Vec<Vec<u8>> = guests.iter_mut().map(|guest| std::mem::take(&mut guest.speech)).collect();
        let mut told = Vec::new();
        for (talker, ms) in [(0, 200), (2, 400), (0, 600), (1, 500), (0, 200), (1, 1500), (2, 2000)] {
            for (n, guest) in guests.iter_mut().enumerate() {
                guest.speech = if n == talker { quiet[n].clone() } else { Vec::new() };
            }
            talk(&mut plant, &mut guests, ms);
            let speaker = |event: &Event| match event {
                Event::Speaker { stream } => Some(stream.slot),
                _ => None,
            };
            told.push(plant.take_events().iter().filter_map(speaker).collect::<Vec<_>>());
        }
        told
    };
    let nobody: Vec<u32> = Vec::new();
    let expected =
        [&nobody[..], &nobody, &[0], &[1], &nobody, &nobody, &nobody].map(<[u32]>::to_vec).to_vec();
    let told = leads(true);
    assert_eq!(told, expected, "{told:?}");
    assert_eq!(leads(false), vec![nobody; 7]);
}

#[test]
fn a_sound_that_is_announced_in_pieces_a_little_ahead_is_heard_whole() {
    let mut plant = Plant::new();
    let mut guests = vec![guest(&mut plant, FormatId::SLIN, 0.0)];
    let stream = guests[0].stream();
    // It is recorded and steered in a room where nobody talks: only what is announced is heard.
    enter_as(
        &mut plant,
        stream,
        RoomSettings::default(),
        MemberSettings { muted: true, ..Default::default() },
    );
    talk(&mut plant, &mut guests, 100);
    let mut spoken = tone(FormatId::SLIN, 2600.0, 1000);
    codec::swap_bytes(&mut spoken);
    // Pieces of 200 ms, each 150 ms before the one before it is over, as `apps::stasis` does it.
    for (n, piece) in spoken.chunks(3200).enumerate() {
        let data = piece.to_vec().into();
        let clip = Arc::new(Clip { format: FormatId::SLIN, data, loop_from: None, packets: None });
        plant.command(Command::Announce { room: ROOM, clip });
        talk(&mut plant, &mut guests, if n == 0 { 60 } else { 200 });
    }
    talk(&mut plant, &mut guests, 400);
    let all = decode(FormatId::SLIN, &plant.sent_by(stream));
    let from = all.iter().position(|sample| sample.abs() > 1000).expect("something is heard");
    let last = all.iter().rposition(|sample| sample.abs() > 1000).unwrap_or(from);
    assert!((7990..=8010).contains(&(last - from)), "a second is heard: {} samples", last - from);
    let quiet =
        all[from..last].chunks(40).filter(|part| part.iter().all(|sample| sample.abs() < 1000)).count();
    assert_eq!(quiet, 0, "without a gap");
}
