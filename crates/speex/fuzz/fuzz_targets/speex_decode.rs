//! Any payloads to two streams in lanes, with losses between them; each must sound as it does alone.
#![no_main]

use lanes::Level;
use libfuzzer_sys::fuzz_target;
use speex::{BitReader, DecodeJob, Decoder, FRAME, decode};

fuzz_target!(|data: &[u8]| {
    let [settings, packets @ ..] = data else { return };
    let level = Level::all_available().nth(usize::from(settings >> 6)).unwrap_or(Level::portable());
    let mut lanes = [Decoder::new(), Decoder::new()];
    lanes[0].set_enhancer(settings & 1 == 0);
    let mut alone = lanes.clone();
    let mut previous: &[u8] = &[];
    let mut rest = packets;
    while let [size, tail @ ..] = rest {
        let (packet, tail) = tail.split_at(usize::from(*size).min(tail.len()));
        rest = tail;
        let (mut pcm, mut expected) = ([[0; FRAME]; 2], [[0; FRAME]; 2]);
        if size % 5 == 0 {
            lanes[1].conceal(&mut pcm[1]);
            alone[1].conceal(&mut expected[1]);
        }
        let payloads = [packet, previous];
        let jobs = lanes.iter_mut().zip(payloads).zip(&mut pcm);
        let mut jobs =
            jobs.map(|((state, payload), pcm)| DecodeJob::new(state, payload, pcm)).collect::<Vec<_>>();
        decode(level, &mut jobs);
        for ((state, payload), expected) in alone.iter_mut().zip(payloads).zip(&mut expected) {
            let _ = state.decode(payload, expected);
        }
        assert_eq!(pcm, expected);
        // The rest of a packet of several frames.
        let mut bits = BitReader::new(packet);
        let mut reader = alone[0].clone();
        while reader.decode_next(&mut bits, &mut expected[0]).is_ok() {}
        previous = packet;
    }
});
