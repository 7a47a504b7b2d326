//! Both sides of a call as whoever records it or listens to it hears them, and who hears the listener, on invented time.

mod common;

use std::sync::mpsc::{Receiver, channel};

use base::{
    AudioSink, Command, Event, FormatId, Gain, LineOut, MemberSettings, MonitorSettings, MonitorSinks,
    PlayId, RoomId, RoomSettings, StreamId, ToneWatch, line,
};
use common::*;

struct Kept(std::sync::mpsc::Sender<Vec<i16>>);

impl AudioSink for Kept {
    fn write(&mut self, samples: &[i16]) -> usize {
        self.0.send(samples.to_vec()).unwrap();
        samples.len()
    }
}

fn sink() -> (Option<Box<dyn AudioSink>>, Receiver<Vec<i16>>) {
    let (sender, kept) = channel();
    (Some(Box::new(Kept(sender))), kept)
}

/// What a monitor has been given since it was last asked.
struct Tape {
    mixed: Receiver<Vec<i16>>,
    heard: Receiver<Vec<i16>>,
    said: Receiver<Vec<i16>>,
}

impl Tape {
    fn take(kept: &Receiver<Vec<i16>>) -> Vec<i16> {
        kept.try_iter().flatten().collect()
    }
}

fn monitor(plant: &mut Plant, stream: StreamId, number: u32, settings: MonitorSettings) -> Tape {
    let ((mixed, a), (heard, b), (said, c)) = (sink(), sink(), sink());
    let sinks = Box::new(MonitorSinks { mixed, heard, said });
    plant.command(Command::Monitor { stream, monitor: number, format: FormatId::SLIN, settings, sinks });
    Tape { mixed: a, heard: b, said: c }
}

const ALICE: f64 = 500.0;
const BOB: f64 = 1300.0;

struct Party {
    phone: Phone,
    format: FormatId,
    speech: Vec<u8>,
    turn: usize,
}

fn party(plant: &mut Plant, number: u32, format: FormatId, hertz: f64) -> Party {
    let stream = plant.open(plan(number, format, 97));
    let mut phone = Phone::new(stream, 97);
    phone.units = format.rtp_clock() / 50;
    Party { phone, format, speech: tone(format, hertz, 1000), turn: 0 }
}

fn talk(plant: &mut Plant, parties: &mut [Party], ms: u64) {
    for _ in 0..ms / 20 {
        for party in parties.iter_mut() {
            let size = party.format.bytes_in(20);
            let at = party.turn % 50 * size;
            party.turn += 1;
            let frame = party.speech[at..at + size].to_vec();
            party.phone.say(plant, &frame);
        }
        plant.run(20);
    }
}

fn amplitude(linear: &[i16], hertz: f64) -> f64 {
    let last = &linear[linear.len().saturating_sub(2400)..];
    let (mut re, mut im) = (0.0, 0.0);
    for (n, &sample) in last.iter().enumerate() {
        let phase = n as f64 * hertz * std::f64::consts::TAU / 8000.0;
        re += f64::from(sample) * phase.cos();
        im += f64::from(sample) * phase.sin();
    }
    2.0 * (re * re + im * im).sqrt() / last.len().max(1) as f64
}

/// Amplitudes of both tones, in thousands.
fn both(linear: &[i16]) -> [i32; 2] {
    [ALICE, BOB].map(|hertz| (amplitude(linear, hertz) / 1000.0).round() as i32)
}

#[test]
fn a_relayed_and_a_transcoded_call_are_heard_from_both_sides_mixed_and_apart() {
    for (one, other) in [
        (FormatId::ULAW, FormatId::ULAW),
        (FormatId::ULAW, FormatId::ALAW),
        (FormatId::SLIN16, FormatId::ULAW),
        (FormatId::G722, FormatId::SLIN48),
    ] {
        let mut plant = Plant::new();
        let mut parties = [party(&mut plant, 0, one, ALICE), party(&mut plant, 1, other, BOB)];
        let (a, b) = (parties[0].phone.stream, parties[1].phone.stream);
        plant.command(Command::Join { a, b });
        let tape = monitor(&mut plant, a, 1, MonitorSettings::default());
        talk(&mut plant, &mut parties, 1000);
        let (mixed, heard, said) = (Tape::take(&tape.mixed), Tape::take(&tape.heard), Tape::take(&tape.said));
        assert_eq!((both(&mixed), both(&heard), both(&said)), ([8, 8], [8, 0], [0, 8]), "{one} {other}");
        assert!((7600..=8000).contains(&mixed.len()), "{one} {other}: {}", mixed.len());
        assert_eq!((heard.len(), said.len()), (mixed.len(), mixed.len()), "{one} {other}");
        // What the phones hear is not changed by being written down.
        assert_continuous(&plant.sent_by(a), one.rtp_clock() / 50);
    }
}

#[test]
fn settings_choose_sides_loudness_and_channels_and_each_monitor_has_its_own() {
    let mut plant = Plant::new();
    let mut parties =
        [party(&mut plant, 0, FormatId::ULAW, ALICE), party(&mut plant, 1, FormatId::ULAW, BOB)];
    let (a, b) = (parties[0].phone.stream, parties[1].phone.stream);
    plant.command(Command::Join { a, b });
    let plain = MonitorSettings::default();
    let stereo = monitor(&mut plant, a, 2, MonitorSettings { stereo: true, ..plain });
    let tape = monitor(&mut plant, a, 1, plain);
    for (name, settings, expected) in [
        ("both", plain, [8, 8]),
        ("only what is received", MonitorSettings { says: false, ..plain }, [8, 0]),
        ("only what is sent", MonitorSettings { hears: false, ..plain }, [0, 8]),
        (
            "louder and quieter",
            MonitorSettings { heard: Gain::of_step(2), said: Gain::of_step(-2), ..plain },
            [16, 4],
        ),
    ] {
        plant.command(Command::AdjustMonitor { stream: a, monitor: 1, settings });
        Tape::take(&tape.mixed);
        talk(&mut plant, &mut parties, 600);
        assert_eq!(both(&Tape::take(&tape.mixed)), expected, "{name}");
    }
    let pairs = Tape::take(&stereo.mixed);
    let side = |at: usize| pairs.as_chunks::<2>().0.iter().map(|pair| pair[at]).collect::<Vec<_>>();
    assert_eq!((both(&side(0)), both(&side(1))), ([8, 0], [0, 8]));
    // One ends, the other goes on.
    plant.command(Command::StopMonitor { stream: a, monitor: 1 });
    talk(&mut plant, &mut parties, 200);
    assert!(tape.mixed.try_recv().is_err());
    assert!(!Tape::take(&stereo.mixed).is_empty());
}

#[test]
fn what_is_played_is_heard_and_a_monitor_of_talks_waits_for_them() {
    let mut plant = Plant::new();
    let mut parties =
        [party(&mut plant, 0, FormatId::ULAW, ALICE), party(&mut plant, 1, FormatId::ULAW, ALICE)];
    let (a, b) = (parties[0].phone.stream, parties[1].phone.stream);
    let always = monitor(&mut plant, a, 1, MonitorSettings::default());
    let talks =
        monitor(&mut plant, a, 2, MonitorSettings { bridged_only: true, ..MonitorSettings::default() });
    let prompt = clip(FormatId::ULAW, tone(FormatId::ULAW, BOB, 1000));
    plant.command(Command::Play { stream: a, play: PlayId(1), clip: prompt, offset: 0 });
    talk(&mut plant, &mut parties[..1], 900);
    assert_eq!(both(&Tape::take(&always.mixed)), [8, 8], "the caller and the prompt");
    assert!(Tape::take(&talks.mixed).is_empty());
    plant.command(Command::Join { a, b });
    talk(&mut plant, &mut parties, 400);
    assert!((2800..=3200).contains(&Tape::take(&talks.mixed).len()));
    // In a room, too.
    for stream in [a, b] {
        let (mixing, member) = (RoomSettings::default(), MemberSettings::default());
        plant.command(Command::Enter { stream, room: RoomId::new(0, 1), mixing, member });
    }
    parties[1].speech = tone(FormatId::ULAW, BOB, 1000);
    talk(&mut plant, &mut parties, 800);
    assert_eq!(both(&Tape::take(&talks.mixed)), [8, 8]);
    // Closing lets go of the sinks.
    plant.command(Command::Close { stream: a });
    assert!(matches!(talks.mixed.try_recv(), Err(std::sync::mpsc::TryRecvError::Disconnected)));
}

fn beep(ms: usize) -> std::sync::Arc<base::Clip> {
    let mut linear = tone(FormatId::SLIN, BOB, ms);
    codec::swap_bytes(&mut linear);
    clip(FormatId::SLIN, linear)
}

#[test]
fn a_whisper_is_heard_beside_the_talk_and_the_bridge_goes_on_as_before() {
    for (one, other) in [
        (FormatId::ULAW, FormatId::ULAW),
        (FormatId::ULAW, FormatId::ALAW),
        (FormatId::ILBC, FormatId::ILBC),
        (FormatId::G722, FormatId::ULAW),
    ] {
        let mut plant = Plant::new();
        let mut parties = [party(&mut plant, 0, one, ALICE), party(&mut plant, 1, other, ALICE)];
        let (a, b) = (parties[0].phone.stream, parties[1].phone.stream);
        plant.command(Command::Join { a, b });
        talk(&mut plant, &mut parties, 500);
        let tape = monitor(&mut plant, a, 1, MonitorSettings::default());
        plant.command(Command::Whisper { stream: a, clip: beep(500) });
        talk(&mut plant, &mut parties, 500);
        // Two tones at once are no speech.
        let during = both(&Tape::take(&tape.said));
        assert!(during.iter().all(|amplitude| *amplitude >= 4), "{one} {other}: {during:?} during it");
        talk(&mut plant, &mut parties, 600);
        assert_eq!(both(&Tape::take(&tape.said)), [8, 0], "{one} {other}: after it");
        let coded = plant.worker.load().encoded;
        talk(&mut plant, &mut parties, 500);
        let is_relay = one != FormatId::G722;
        assert_eq!(plant.worker.load().encoded == coded, is_relay, "{one} {other}: nobody codes a relay");
        assert_continuous(&plant.sent_by(a), one.rtp_clock() / 50);
    }
}

#[test]
fn a_whisper_without_a_bridge_is_played_and_disturbs_no_prompt() {
    let mut plant = Plant::new();
    let mut parties = [party(&mut plant, 0, FormatId::ULAW, ALICE)];
    let stream = parties[0].phone.stream;
    let tape = monitor(&mut plant, stream, 1, MonitorSettings::default());
    plant.command(Command::Whisper { stream, clip: beep(1000) });
    talk(&mut plant, &mut parties, 900);
    assert_eq!(both(&Tape::take(&tape.said)), [0, 8]);
    talk(&mut plant, &mut parties, 400);
    let prompt = clip(FormatId::ULAW, tone(FormatId::ULAW, ALICE, 1000));
    plant.command(Command::Play { stream, play: PlayId(1), clip: prompt, offset: 0 });
    plant.command(Command::Whisper { stream, clip: beep(1000) });
    Tape::take(&tape.said);
    talk(&mut plant, &mut parties, 800);
    assert_eq!(both(&Tape::take(&tape.said)), [8, 0], "the prompt goes on");
}

#[test]
fn files_of_one_side_leave_out_what_was_not_sent_when_they_need_not_be_in_step() {
    for (in_step, expected) in [(true, 950..=1000), (false, 400..=600)] {
        let mut plant = Plant::new();
        let mut parties = [party(&mut plant, 0, FormatId::ULAW, ALICE)];
        let settings = MonitorSettings { in_step, ..MonitorSettings::default() };
        let tape = monitor(&mut plant, parties[0].phone.stream, 1, settings);
        talk(&mut plant, &mut parties, 400);
        plant.run(600);
        let ms = Tape::take(&tape.heard).len() / 8;
        assert!(expected.contains(&ms), "in step {in_step}: {ms} ms of 1000, of which 400 had sound");
    }
}

const CHIEF: f64 = 2100.0;

/// What a monitor of `stream` hears goes into a line at this format's rate.
fn line_from(
    plant: &mut Plant,
    stream: StreamId,
    monitor: u32,
    format: FormatId,
    heard_only: bool,
) -> LineOut {
    let (to, from) = line(format.rate());
    let to: Option<Box<dyn AudioSink>> = Some(Box::new(to));
    let sinks = match heard_only {
        true => MonitorSinks { heard: to, ..MonitorSinks::default() },
        false => MonitorSinks { mixed: to, ..MonitorSinks::default() },
    };
    let (settings, sinks) = (MonitorSettings::default(), Box::new(sinks));
    plant.command(Command::Monitor { stream, monitor, format, settings, sinks });
    from
}

/// The chief listens to `on`.
fn listen(plant: &mut Plant, chief: StreamId, on: StreamId, format: FormatId) {
    let source = Box::new(line_from(plant, on, 7, format.linear(), false));
    plant.command(Command::Live { stream: chief, format: format.linear(), source });
}

/// The chief speaks to `to`, under this number.
fn murmur(plant: &mut Plant, chief: StreamId, to: &Party, number: u32) {
    let format = to.format.linear();
    let source = Box::new(line_from(plant, chief, number, format, true));
    plant.command(Command::Murmur { stream: to.phone.stream, murmur: number, format, source });
}

/// Which of the three a phone has heard in the last third of a second.
fn hears(plant: &Plant, party: &Party) -> [bool; 3] {
    let linear = decode(party.format, &plant.sent_by(party.phone.stream));
    let rate = f64::from(party.format.rate().0);
    // The measure takes samples of 8 kHz.
    [ALICE, BOB, CHIEF].map(|hertz| amplitude(&linear, hertz * 8000.0 / rate) > 3000.0)
}

const NONE: [bool; 3] = [false; 3];

#[test]
fn who_listens_hears_both_and_is_heard_by_whom_it_speaks_to_and_nobody_else() {
    for (one, other, third) in [
        (FormatId::ULAW, FormatId::ULAW, FormatId::ULAW),
        (FormatId::ULAW, FormatId::ALAW, FormatId::ALAW),
        (FormatId::SLIN16, FormatId::ULAW, FormatId::ULAW),
        (FormatId::G722, FormatId::ULAW, FormatId::SLIN48),
    ] {
        let mut plant = Plant::new();
        let mut parties = [
            party(&mut plant, 0, one, ALICE),
            party(&mut plant, 1, other, BOB),
            party(&mut plant, 2, third, CHIEF),
        ];
        let [a, b, chief] = [0, 1, 2].map(|n: usize| parties[n].phone.stream);
        let everyone = |plant: &Plant, parties: &[Party; 3]| [0, 1, 2].map(|n| hears(plant, &parties[n]));
        let (alice, bob, talk_of_both) = ([false, true, false], [true, false, false], [true, true, false]);
        plant.command(Command::Join { a, b });
        talk(&mut plant, &mut parties, 500);
        assert_eq!(everyone(&plant, &parties), [alice, bob, NONE], "{one} {other}: before");
        let coded = plant.worker.load().encoded;
        listen(&mut plant, chief, a, third);
        talk(&mut plant, &mut parties, 800);
        assert_eq!(everyone(&plant, &parties), [alice, bob, talk_of_both], "{one} {other}: listens");
        murmur(&mut plant, chief, &parties[0], 11);
        talk(&mut plant, &mut parties, 800);
        let whispered = [false, true, true];
        assert_eq!(everyone(&plant, &parties), [whispered, bob, talk_of_both], "{one} {other}: whispers");
        murmur(&mut plant, chief, &parties[1], 12);
        talk(&mut plant, &mut parties, 800);
        // Nor does who speaks hear itself.
        let barged = [[false, true, true], [true, false, true], talk_of_both];
        assert_eq!(everyone(&plant, &parties), barged, "{one} {other}: barges in");
        for (stream, murmur) in [(a, 11), (b, 12)] {
            plant.command(Command::StopMurmur { stream, murmur });
        }
        talk(&mut plant, &mut parties, 800);
        assert_eq!(everyone(&plant, &parties), [alice, bob, talk_of_both], "{one} {other}: listens again");
        plant.command(Command::StopPlay { stream: chief });
        plant.command(Command::StopMonitor { stream: a, monitor: 7 });
        talk(&mut plant, &mut parties, 500);
        assert_eq!(everyone(&plant, &parties)[..2], [alice, bob], "{one} {other}: after");
        assert!(plant.worker.load().encoded > coded);
        let coded = plant.worker.load().encoded;
        talk(&mut plant, &mut parties, 500);
        let is_relay = one.rate() == other.rate();
        assert_eq!(plant.worker.load().encoded == coded, is_relay, "{one} {other}: nobody codes a relay");
        for (stream, format) in [(a, one), (b, other)] {
            assert_continuous(&plant.sent_by(stream), format.rtp_clock() / 50);
        }
    }
}

#[test]
fn who_is_spoken_to_hears_it_beside_a_prompt_in_a_room_and_alone() {
    for format in [FormatId::ULAW, FormatId::G722, FormatId::ILBC] {
        let mut plant = Plant::new();
        let mut parties = [
            party(&mut plant, 0, format, ALICE),
            party(&mut plant, 1, FormatId::ULAW, BOB),
            party(&mut plant, 2, FormatId::ULAW, CHIEF),
        ];
        let [a, b, chief] = [0, 1, 2].map(|n: usize| parties[n].phone.stream);
        murmur(&mut plant, chief, &parties[0], 1);
        talk(&mut plant, &mut parties, 700);
        assert_eq!(hears(&plant, &parties[0]), [false, false, true], "{format}: alone");
        let prompt = clip(format, tone(format, BOB, 2000));
        plant.command(Command::Play { stream: a, play: PlayId(1), clip: prompt, offset: 0 });
        talk(&mut plant, &mut parties, 800);
        let heard = hears(&plant, &parties[0]);
        assert!(heard[1] || format == FormatId::ILBC, "{format}: the prompt of {heard:?}");
        assert!(heard[2] || format == FormatId::ILBC, "{format}: and who speaks of {heard:?}");
        plant.command(Command::StopPlay { stream: a });
        for stream in [a, b] {
            let (mixing, member) = (RoomSettings::default(), MemberSettings::default());
            plant.command(Command::Enter { stream, room: RoomId::new(0, 1), mixing, member });
        }
        talk(&mut plant, &mut parties, 800);
        if format != FormatId::ILBC {
            // Two tones at once are no speech.
            assert_eq!(hears(&plant, &parties[0]), [false, true, true], "{format}: in a room");
        }
        assert!(!hears(&plant, &parties[1])[2], "{format}: the others do not hear it");
        plant.command(Command::StopMurmur { stream: a, murmur: 1 });
        talk(&mut plant, &mut parties, 1500);
        assert_eq!(hears(&plant, &parties[0]), [false, true, false], "{format}: after it");
        plant.command(Command::Part { stream: a });
        let sent = plant.sent_by(a).len();
        talk(&mut plant, &mut parties, 300);
        assert_eq!(plant.sent_by(a).len(), sent, "{format}: nothing is left to send");
    }
}

/// Sides of the stream on which tones have come since this was last asked: `r`eceived, `s`ent.
fn tones(plant: &mut Plant, stream: StreamId) -> String {
    let came = plant.take_events().into_iter().filter_map(|event| match event {
        Event::Tone { stream: of, sent, .. } if of == stream => Some(if sent { 's' } else { 'r' }),
        _ => None,
    });
    came.collect()
}

#[test]
fn a_tone_is_told_once_on_the_side_on_which_it_sounds() {
    for (one, other) in [
        (FormatId::ULAW, FormatId::ULAW),
        (FormatId::ULAW, FormatId::ALAW),
        (FormatId::SLIN16, FormatId::ULAW),
        (FormatId::G722, FormatId::SLIN48),
    ] {
        for (hertz, heard, sent, expected) in [
            (ALICE, true, true, "r"),
            (ALICE, false, true, ""),
            (BOB, true, true, "s"),
            (BOB, true, false, ""),
            (900.0, true, true, ""),
        ] {
            let mut plant = Plant::new();
            let mut parties = [party(&mut plant, 0, one, ALICE), party(&mut plant, 1, other, BOB)];
            let (a, b) = (parties[0].phone.stream, parties[1].phone.stream);
            plant.command(Command::Join { a, b });
            let watch = ToneWatch { hertz: Some(hertz as u16), heard, sent, ..ToneWatch::default() };
            plant.command(Command::WatchTone {
                stream: a,
                listener: base::Listener::Application,
                watch: Some(watch),
            });
            talk(&mut plant, &mut parties, 400);
            assert_eq!(tones(&mut plant, a), "", "{one} {other}: not long enough");
            talk(&mut plant, &mut parties, 1000);
            assert_eq!(tones(&mut plant, a), expected, "{one} {other}: {hertz} Hz");
        }
    }
}

#[test]
fn each_listener_has_a_tone_of_its_own_and_who_hears_one_side_only_costs_no_decoder_for_the_other() {
    use base::Listener::{Application, Watcher};
    let mut plant = Plant::new();
    let mut parties =
        [party(&mut plant, 0, FormatId::ULAW, ALICE), party(&mut plant, 1, FormatId::ULAW, BOB)];
    let (a, b) = (parties[0].phone.stream, parties[1].phone.stream);
    plant.command(Command::Join { a, b });
    for (listener, hertz, heard, sent) in [(Application, BOB, false, true), (Watcher, ALICE, true, false)] {
        let watch = ToneWatch { hertz: Some(hertz as u16), heard, sent, ..ToneWatch::default() };
        plant.command(Command::WatchTone { stream: a, listener, watch: Some(watch) });
    }
    talk(&mut plant, &mut parties, 1400);
    let mut came: Vec<_> =
        plant.take_events().into_iter().filter(|e| matches!(e, Event::Tone { .. })).collect();
    came.sort_by_key(|event| format!("{event:?}"));
    let tone = |listener, sent| Event::Tone { stream: a, listener, sent };
    assert_eq!(came, [tone(Application, true), tone(Watcher, false)]);
    plant.command(Command::WatchTone { stream: a, listener: Application, watch: None });
    talk(&mut plant, &mut parties, 1400);
    assert_eq!(tones(&mut plant, a), "", "the one goes on, and hears no new one");
}

#[test]
fn nobody_listens_for_tones_any_more_when_that_is_taken_back() {
    let mut plant = Plant::new();
    let mut parties =
        [party(&mut plant, 0, FormatId::ULAW, ALICE), party(&mut plant, 1, FormatId::ULAW, BOB)];
    let (a, b) = (parties[0].phone.stream, parties[1].phone.stream);
    plant.command(Command::Join { a, b });
    let tape = monitor(&mut plant, a, 1, MonitorSettings::default());
    let watch = ToneWatch { hertz: Some(ALICE as u16), ..ToneWatch::default() };
    plant.command(Command::WatchTone {
        stream: a,
        listener: base::Listener::Application,
        watch: Some(watch),
    });
    talk(&mut plant, &mut parties, 300);
    plant.command(Command::WatchTone { stream: a, listener: base::Listener::Application, watch: None });
    talk(&mut plant, &mut parties, 1000);
    assert_eq!(tones(&mut plant, a), "");
    assert!(!Tape::take(&tape.mixed).is_empty(), "the recording goes on");
}
