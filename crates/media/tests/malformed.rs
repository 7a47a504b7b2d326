//! Payloads that no encoder made, in calls of every format: what can be heard is heard, the rest is concealed and
//! counted, and neither the call nor its neighbours end.

mod common;

use base::{Command, Event, FormatId, Plan, Random, StreamId};
use common::*;
use rtp::Discard;

const PAYLOAD: u8 = 97;
/// Calls of one format: the last one's peer is ill.
const CALLS: u32 = 6;
const ILL: usize = CALLS as usize - 1;
/// Packets before, during and after the illness; as each kind of nonsense has its turn several times.
const WELL: usize = 20;
const SICK: usize = 80;

/// A format is there: its library, if it needs one, is installed.
fn is_there(format: FormatId) -> bool {
    let missing = codec::missing_libraries().any(|(missing, _)| missing == format);
    if missing {
        println!("skipped: {format}, whose library is not installed");
    }
    !missing
}

/// A tone of `hertz` in packets of the usual length.
fn packets(format: FormatId, hertz: f64, count: usize) -> Vec<Vec<u8>> {
    let ms = usize::from(format.usual_ms());
    let rate = format.rate().0 as usize;
    let size = rate * ms / 1000;
    let mut encoder = codec::Encoder::new(format);
    let sample = |n: usize| ((n as f64 * hertz * std::f64::consts::TAU / rate as f64).sin() * 8000.0) as i16;
    (0..count)
        .map(|number| {
            let linear: Vec<i16> = (number * size..(number + 1) * size).map(sample).collect();
            let mut packet = vec![0; format.packet_room(ms as u16)];
            let bytes = encoder.encode(&linear, &mut packet);
            packet.truncate(bytes);
            if format.is_linear() {
                codec::swap_bytes(&mut packet);
            }
            packet
        })
        .collect()
}

/// Nonsense number `number` of the size of `packet`, or of another.
fn nonsense(packet: &[u8], number: usize, seed: &mut Random) -> Vec<u8> {
    let length = packet.len();
    let mut noise = |length: usize| (0..length).map(|_| seed.word() as u8).collect::<Vec<_>>();
    match number % 12 {
        0 => noise(length),
        1 => vec![0; length],
        2 => vec![0xff; length],
        3 => packet[..length - 1].to_vec(),
        4 => packet[..length / 2].to_vec(),
        5 => packet[..1].to_vec(),
        6 => [packet, &noise(1)].concat(),
        7 => noise(1400),
        8 => [packet, packet, packet].concat(),
        9 => packet.iter().map(|byte| !byte).collect(),
        10 => packet.iter().rev().copied().collect(),
        _ => noise(length / 2 + 1),
    }
}

/// What the others hear: another format, because what is passed on as it is nobody reads.
fn other(format: FormatId) -> FormatId {
    if format == FormatId::GSM { FormatId::ILBC } else { FormatId::GSM }
}

/// Calls whose speakers talk all well, or the last one nonsense for a while; and the hearers.
fn calls(format: FormatId, sick: bool) -> (Plant, Vec<StreamId>) {
    let mut plant = Plant::new();
    let ms = format.usual_ms();
    let count = 2 * WELL + SICK;
    let mut seed = Random::new(7);
    let mut phones = Vec::new();
    let mut hearers = Vec::new();
    for number in 0..CALLS {
        let speaker = plant.open(Plan { ptime_ms: ms, ..plan(2 * number, format, PAYLOAD) });
        let hearer = plant.open(plan(2 * number + 1, other(format), 3));
        plant.command(Command::Join { a: speaker, b: hearer });
        let mut phone = Phone::new(speaker, PAYLOAD);
        phone.units = format.rtp_clock() / 1000 * u32::from(ms);
        phones.push((phone, packets(format, 250.0 + 50.0 * f64::from(number), count)));
        hearers.push(hearer);
    }
    for number in 0..count {
        for (index, (phone, packets)) in phones.iter_mut().enumerate() {
            let is_sick = sick && index == ILL && (WELL..WELL + SICK).contains(&number);
            let packet = &packets[number];
            if is_sick {
                phone.say(&mut plant, &nonsense(packet, number, &mut seed));
            } else {
                phone.say(&mut plant, packet);
            }
        }
        plant.run(ms.into());
    }
    (plant, hearers)
}

#[test]
fn nonsense_in_any_format_is_counted_and_ends_no_call() {
    for format in FormatId::coded().filter(|format| is_there(*format)) {
        let (well, _) = calls(format, false);
        assert_eq!(well.worker.load().discards.of(Discard::Malformed), 0, "{format}");
        let (sick, hearers) = calls(format, true);
        let load = sick.worker.load();
        assert_eq!((load.panics, load.streams), (0, 2 * CALLS), "{format}");
        let closed = sick.events.iter().any(|event| matches!(event, Event::Closed { .. }));
        assert!(!closed, "{format}");
        // A packet of 1,400 bytes may be a second of sound, and the stream begins anew; else it goes on as it was.
        let sent = sick.sent_by(hearers[ILL]);
        let least = (2 * WELL + SICK) * usize::from(format.usual_ms()) / 20 * 8 / 10;
        assert!(sent.len() >= least, "{format}: {} of {least} packets", sent.len());
        let malformed = load.discards.of(Discard::Malformed);
        // Each of the kinds that are too short, too long or no frame: of µ-law, for which every byte is a sample, those
        // whose bytes are no milliseconds.
        assert!(malformed >= SICK as u64 / 6, "{format}: {malformed} counted");
        // Once the peer is well again it is heard as before.
        let heard = decode(other(format), &sent);
        let end = &heard[heard.len() - 1600..];
        let is_vocoder = matches!(format, FormatId::LPC10 | FormatId::CODEC2);
        let share = purity(end, 8000, 250.0 + 50.0 * f64::from(CALLS - 1));
        assert!(share > 0.7 || is_vocoder, "{format}: {share:.2} of it is the tone");
        // Noise of Codec 2 comes from one generator for all of the library's decoders.
        if format == FormatId::CODEC2 {
            continue;
        }
        for (neighbour, hearer) in hearers.iter().enumerate().filter(|(number, _)| *number != ILL) {
            let payloads = |plant: &Plant| -> Vec<Vec<u8>> {
                plant.sent_by(*hearer).iter().map(|sent| sent.payload().to_vec()).collect()
            };
            assert_eq!(payloads(&sick), payloads(&well), "{format}: neighbour {neighbour}");
        }
    }
}

#[test]
fn a_streams_own_statistics_tell_of_its_malformed_payloads() {
    for format in [FormatId::GSM, FormatId::ILBC, FormatId::SPEEX, FormatId::OPUS, FormatId::LPC10] {
        let (mut sick, _) = calls(format, true);
        let ids: Vec<StreamId> = sick.worker.streams().collect();
        for (index, &stream) in ids.iter().enumerate() {
            sick.command(Command::Stats { stream });
            let stats = sick.take_events().into_iter().find_map(|event| match event {
                Event::Stats { stats, .. } => Some(stats),
                _ => None,
            });
            let discarded = stats.expect("they were asked for").discarded_packets;
            assert_eq!(discarded > 0, index == 2 * ILL, "{format}, stream {index}: {discarded}");
        }
    }
}
