//! Compound packets: what passes the checks is walked through whole.
#![no_main]

use libfuzzer_sys::fuzz_target;
use rtp::rtcp::{Compound, Packet, round_trip};

fuzz_target!(|data: &[u8]| {
    let Ok(compound) = Compound::parse(data) else { return };
    let mut packets = 0;
    for packet in compound {
        packets += 1;
        if let Packet::Report { blocks, .. } = packet {
            assert!(blocks.count() <= 31);
            for block in blocks {
                let _ = round_trip(&block, u64::from(block.delay) << 16);
            }
        }
    }
    assert!(packets > 0 && packets <= data.len() / 4);
});
