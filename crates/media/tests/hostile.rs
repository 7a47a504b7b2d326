//! Bad input from the shared sets, thrown at a stream that is in a call: nothing panics, the call notices nothing.

mod common;

use base::{Command, FormatId};
use common::*;

#[test]
fn the_shared_bad_input_disturbs_neither_the_worker_nor_the_call_that_is_up() {
    let mut inputs = Vec::new();
    for name in ["generated.tar.xz", "pjsip-fuzz.tar.xz", "libsrtp-fuzz.tar.xz"] {
        inputs.extend(kit::bad_input(name, ""));
    }
    // Without the sets, noise that looks like RTP does for a test.
    let mut seed = base::Random::new(11);
    for n in 0..3000_u32 {
        let length = seed.word() as usize % 400;
        let mut noise: Vec<u8> = (0..length).map(|_| seed.word() as u8).collect();
        if let [first, second, ..] = &mut noise[..] {
            *first = 0x80 | *first & 0x3f;
            *second = [0, EVENT, 200, 201, 203, 8][n as usize % 6] | *second & 0x80;
        }
        inputs.push(noise);
    }
    let mut plant = Plant::new();
    let (a, b) = (plant.open(plan(0, FormatId::ULAW, 0)), plant.open(plan(1, FormatId::ALAW, 8)));
    plant.command(Command::Join { a, b });
    // The victim takes everything as if its own peer had sent it, in each way a stream can hear.
    let victims: Vec<_> =
        [(FormatId::ULAW, 0), (FormatId::GSM, 3), (FormatId::G722, 9), (FormatId::SLIN16, 8)]
            .into_iter()
            .enumerate()
            .map(|(n, (format, payload))| plant.open(plan(2 + n as u32, format, payload)))
            .collect();
    plant.command(Command::Join { a: victims[0], b: victims[1] });
    plant.command(Command::DetectInband { stream: victims[2], on: true });
    plant.command(Command::Echo { stream: victims[2], on: true });
    plant.command(Command::WatchSilence { stream: victims[3], ms: 100, threshold: 256 });
    let mut alice = Phone::new(a, 0);
    let count = inputs.len();
    for chunk in inputs.chunks(50) {
        for bytes in chunk {
            for &victim in &victims {
                plant.datagram(victim, phone(victim), bytes.clone());
                plant.rtcp(victim, phone(victim), bytes.clone());
            }
            // And the call that is up gets it from a stranger.
            plant.datagram(a, "203.0.113.9:9".parse().unwrap(), bytes.clone());
        }
        alice.say(&mut plant, &[0x55; 160]);
        plant.run(20);
    }
    assert_eq!(plant.worker.load().panics, 0);
    assert_eq!(plant.worker.load().streams, 6);
    let frames = count.div_ceil(50);
    let heard = plant.sent_by(b);
    assert!(heard.len() + 2 >= frames && heard.len() <= frames + 1, "{} of {frames}", heard.len());
    assert_continuous(&heard, 160);
    println!("{count} inputs");
}
