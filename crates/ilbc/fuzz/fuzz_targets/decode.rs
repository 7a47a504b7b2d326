//! Any bytes as payloads of several streams, with losses between them: whatever comes, the lanes and the plain decoder
//! agree, and a stream that was lost in garbage is heard again.
#![no_main]

use ilbc::{DecodeJob, Decoder, Mode, Mode20, Mode30, decode};
use lanes::Level;
use libfuzzer_sys::fuzz_target;

/// Enough for a group.
const STREAMS: usize = 4;

fuzz_target!(|data: &[u8]| {
    let [choice, packets @ ..] = data else { return };
    let enhance = choice & 2 != 0;
    let level = if choice & 4 != 0 { Level::portable() } else { Level::best() };
    match choice & 1 {
        0 => run::<Mode20>(enhance, level, packets, 38, [0; 160]),
        _ => run::<Mode30>(enhance, level, packets, 50, [0; 240]),
    }
});

/// A byte says what follows: a loss, so many bytes, or a whole payload.
fn run<M: Mode<Pcm: Copy>>(enhance: bool, level: Level, mut rest: &[u8], bytes: usize, silence: M::Pcm) {
    let mut streams = vec![Decoder::<M>::new(enhance); STREAMS];
    let mut twins = streams.clone();
    while !rest.is_empty() {
        let mut payloads = Vec::new();
        for (stream, twin) in streams.iter_mut().zip(&mut twins) {
            let [what, tail @ ..] = rest else { break };
            let length = if what % 16 == 1 { usize::from(*what) } else { bytes };
            let (payload, tail) = tail.split_at(length.min(tail.len()));
            rest = tail;
            if what % 16 == 0 {
                let (mut heard, mut expected) = (silence, silence);
                stream.conceal(&mut heard);
                twin.conceal(&mut expected);
                assert_eq!(heard.as_ref(), expected.as_ref());
            }
            payloads.push(payload);
        }
        let mut heard = vec![silence; payloads.len()];
        let mut jobs: Vec<_> = streams
            .iter_mut()
            .zip(&payloads)
            .zip(&mut heard)
            .map(|((state, payload), pcm)| DecodeJob::new(state, payload, pcm))
            .collect();
        decode(level, &mut jobs);
        let outcomes: Vec<_> = jobs.iter().map(|job| job.outcome).collect();
        for (index, twin) in twins.iter_mut().enumerate().take(payloads.len()) {
            let mut expected = silence;
            let outcome = twin.decode(payloads[index], &mut expected);
            assert_eq!(outcomes[index], Some(outcome));
            assert_eq!(heard[index].as_ref(), expected.as_ref());
        }
    }
}
