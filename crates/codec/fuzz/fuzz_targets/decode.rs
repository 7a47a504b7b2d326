//! Any bytes as any format into any other, in packets of any size, with losses between them.
#![no_main]

use base::FormatId;
use codec::Transcoder;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let [from, to, packets @ ..] = data else { return };
    let count = FormatId::coded().count();
    let pick = |byte: &u8| FormatId::coded().nth(usize::from(*byte) % count);
    let (Some(from), Some(to)) = (pick(from), pick(to)) else { return };
    let mut transcoder = Transcoder::new(from, to);
    let mut rest = packets;
    while let [size, tail @ ..] = rest {
        let (packet, tail) = tail.split_at(usize::from(*size).min(tail.len()));
        rest = tail;
        let mut room = vec![0; transcoder.output_max(packet.len())];
        let count = transcoder.transcode(packet, &mut room);
        assert!(count <= room.len());
        if size % 5 == 0 {
            transcoder.conceal(usize::from(*size), &mut room);
        }
    }
});
