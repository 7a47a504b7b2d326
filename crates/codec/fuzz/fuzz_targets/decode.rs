//! Any bytes as any format, in packets of any size, with losses between them; and on into any other format.
#![no_main]

use base::FormatId;
use codec::{Decoder, Transcoder};
use libfuzzer_sys::fuzz_target;

/// Room for the longest packet: 120 ms of Opus at 48 kHz.
const SAMPLES_MAX: usize = 5760;

fuzz_target!(|data: &[u8]| {
    let [from, to, packets @ ..] = data else { return };
    let count = FormatId::coded().count();
    let pick = |byte: &u8| FormatId::coded().nth(usize::from(*byte) % count);
    let (Some(from), Some(to)) = (pick(from), pick(to)) else { return };
    let mut decoder = Decoder::new(from);
    let steady = from.is_constant() && to.is_constant();
    let mut transcoder = steady.then(|| Transcoder::new(from, to));
    let mut linear = [0; SAMPLES_MAX];
    let mut rest = packets;
    while let [size, tail @ ..] = rest {
        let (packet, tail) = tail.split_at(usize::from(*size).min(tail.len()));
        rest = tail;
        let count = decoder.decode(packet, &mut linear);
        assert!(count <= linear.len());
        let is_lost = size % 5 == 0;
        if is_lost {
            decoder.conceal(&mut linear[..usize::from(*size)]);
        }
        if let Some(transcoder) = &mut transcoder {
            let mut room = vec![0; transcoder.output_max(packet.len())];
            let count = transcoder.transcode(packet, &mut room);
            assert!(count <= room.len());
            if is_lost {
                transcoder.conceal(usize::from(*size), &mut room);
            }
        }
    }
});
