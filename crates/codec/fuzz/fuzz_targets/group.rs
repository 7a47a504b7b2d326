//! Any bytes as frames of several streams of one format, with losses between them: whatever comes, a group gives what
//! each stream's own decoder gives, and counts as it counts.
#![no_main]

use base::FormatId;
use codec::{DecodeTask, DecodeTasks, Decoder, Level};
use libfuzzer_sys::fuzz_target;

/// Enough for lanes on any level.
const STREAMS: usize = 5;
/// Samples of the longest frame in lanes.
const ROOM: usize = 320;

fuzz_target!(|data: &[u8]| {
    let [choice, packets @ ..] = data else { return };
    let lanes = || FormatId::coded().filter(|format| codec::decode_frame(*format).is_some());
    let Some(format) = lanes().nth(usize::from(choice & 15) % lanes().count()) else { return };
    let Some(frame) = codec::decode_frame(format) else { return };
    let level = if choice & 16 != 0 { Level::portable() } else { Level::best() };
    let mut streams: Vec<Decoder> = (0..STREAMS).map(|_| Decoder::new(format)).collect();
    let mut twins: Vec<Decoder> = (0..STREAMS).map(|_| Decoder::new(format)).collect();
    let mut rest = packets;
    while !rest.is_empty() {
        // A byte for each stream: a loss before its frame, a frame of another size where such are possible.
        let mut frames = Vec::new();
        for (stream, twin) in streams.iter_mut().zip(&mut twins) {
            let [what, tail @ ..] = rest else { break };
            if what % 16 == 0 {
                let (mut heard, mut expected) = ([0; ROOM], [0; ROOM]);
                stream.conceal(&mut heard[..frame.samples]);
                twin.conceal(&mut expected[..frame.samples]);
                assert_eq!(heard, expected);
            }
            let length = if format.is_constant() { frame.bytes } else { usize::from(*what) };
            let (payload, tail) = tail.split_at(length.min(tail.len()));
            rest = tail;
            frames.push(payload);
        }
        let mut heard = [[0; ROOM]; STREAMS];
        let mut samples = [0; STREAMS];
        let mut tasks: DecodeTasks<'_> = streams
            .iter_mut()
            .zip(&frames)
            .zip(heard.iter_mut().zip(&mut samples))
            .map(|((decoder, coded), (linear, samples))| DecodeTask {
                decoder,
                coded,
                linear: &mut linear[..frame.samples],
                samples,
            })
            .collect();
        codec::decode_group(level, &mut tasks);
        drop(tasks);
        for (index, payload) in frames.iter().enumerate() {
            let mut expected = [0; ROOM];
            let count = twins[index].decode(payload, &mut expected[..frame.samples]);
            assert_eq!((samples[index], heard[index]), (count, expected), "{format}, stream {index}");
            assert_eq!(streams[index].malformed(), twins[index].malformed(), "{format}, stream {index}");
        }
    }
});
