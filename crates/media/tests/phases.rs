//! What a worker says that its time goes into.

mod common;

use base::{Command, FormatId, PlayId};
use common::*;
use media::Phase;

/// Phases that a second of a call goes through.
fn phases(from: FormatId, to: FormatId, plays: bool, sealed: bool) -> Vec<Phase> {
    let mut plant = Plant::new();
    let mut plans = [plan(0, from, 97), plan(1, to, 97)];
    if sealed {
        plans[1].keys = Some(keys(1));
    }
    let [a, b] = plans.map(|plan| plant.open(plan));
    if plays {
        let clip = clip(to, tone(to, 440.0, 500));
        plant.command(Command::Play { stream: b, play: PlayId(1), clip, offset: 0 });
    } else {
        plant.command(Command::Join { a, b });
    }
    let mut phone = Phone::new(a, 97);
    let ms = u64::from(from.usual_ms());
    phone.units = from.rtp_clock() / 1000 * ms as u32;
    let speech = tone(from, 300.0, 900);
    for frame in speech.chunks_exact(from.bytes_in(ms as u16)) {
        if !plays {
            phone.say(&mut plant, frame);
        }
        plant.run(ms);
        assert_eq!(plant.net.phase, Some(Phase::Control), "what lies between two ticks is nobody else's");
    }
    assert!(!plant.sent_by(b).is_empty());
    Phase::ALL.into_iter().filter(|phase| plant.net.phases[*phase as usize]).collect()
}

#[test]
fn a_relay_and_a_prompt_code_nothing_and_a_transcoded_call_goes_through_every_phase() {
    use Phase::{Control, Jitter, Receive, Seal, Send};
    let plain = vec![Control, Receive, Jitter, Send];
    let coded: Vec<_> = Phase::ALL.into_iter().filter(|phase| *phase != Seal).collect();
    for (name, from, to, plays, sealed, expected) in [
        ("relay", FormatId::ULAW, FormatId::ULAW, false, false, &plain[..]),
        ("relay between the two laws", FormatId::ULAW, FormatId::ALAW, false, false, &plain),
        ("prompt", FormatId::GSM, FormatId::GSM, true, false, &plain),
        ("lanes on both sides", FormatId::GSM, FormatId::ILBC30, false, false, &coded),
        ("lanes on one side", FormatId::ULAW, FormatId::GSM, false, false, &coded),
        ("no lanes", FormatId::ULAW, FormatId::SLIN16, false, false, &coded),
        ("SRTP on one side", FormatId::ULAW, FormatId::GSM, false, true, &Phase::ALL),
    ] {
        assert_eq!(phases(from, to, plays, sealed), expected, "{name}");
    }
}
