//! Everything that an RTP datagram passes: header, latch, counters, events, jitter buffer, numbering.
//!
//! The input is a list of datagrams: a byte of milliseconds that pass, a byte of length, the datagram.
#![no_main]

use base::{Instant, Latch};
use core::time::Duration;
use libfuzzer_sys::fuzz_target;
use rtp::{EventPlace, EventReceiver, Grid, Jitter, JitterLimits, Outgoing, Pulled, Reception, SourceLock};

fuzz_target!(|data: &[u8]| {
    let source = "192.0.2.1:4000".parse().expect("an address");
    let mut now = Instant::ZERO;
    let mut lock = SourceLock::new(Latch::Learn("192.0.2.1".parse().expect("an address")));
    let mut reception = Reception::default();
    let mut events = EventReceiver::default();
    let grid = Grid { unit_bytes: 8, unit_stamps: 8, unit_us: 1000, is_variable: false };
    let frames = Grid { unit_bytes: 16, unit_stamps: 160, unit_us: 20_000, is_variable: true };
    let mut whole = Jitter::new(frames, JitterLimits { min_ms: 20, max_ms: 200 });
    let mut jitter = Jitter::new(grid, JitterLimits { min_ms: 20, max_ms: 200 });
    let mut out = Outgoing::new(1, 2, 3, 8000);
    let mut begun = 0_u32;
    let mut ended = 0_u32;
    let mut rest = data;
    while let [ms, length, after @ ..] = rest {
        let (packet, next) = after.split_at(usize::from(*length).min(after.len()));
        rest = next;
        now += Duration::from_millis(u64::from(*ms));
        let Ok((header, payload)) = rtp::parse(packet) else { continue };
        let payload = packet.get(payload).expect("the payload lies within the packet");
        lock.judge(source, None, header.ssrc, header.sequence);
        reception.packet(&header, 8000, now);
        let at = EventPlace {
            sequence: reception.extended(header.sequence),
            timestamp: header.timestamp,
            marker: header.marker,
        };
        let edges = events.packet(payload, at, 8000, now).into_iter().flatten().flatten();
        for edge in edges.chain(events.tick(now)) {
            match edge {
                rtp::EventEdge::Begin(_) => begun += 1,
                rtp::EventEdge::End(..) => ended += 1,
            }
        }
        assert!(begun == ended || begun == ended + 1, "{begun} began, {ended} ended");
        jitter.push(header.sequence, header.timestamp, payload);
        assert!(jitter.delay_ms() <= 320, "{} ms", jitter.delay_ms());
        let mut units = 0;
        jitter.pull(20, |run| {
            units += match run {
                Pulled::Audio(coded) => coded.len() / 8,
                Pulled::Missing(count) => count,
            };
        });
        assert_eq!(units, 20);
        whole.push_units(header.sequence, header.timestamp, usize::from(*ms) % 4, payload);
        whole.pull(1, |run| {
            if let Pulled::Audio(coded) = run {
                assert!(coded.len() <= 3 * usize::from(frames.unit_bytes), "{} bytes", coded.len());
            }
        });
        out.relay(u64::from(header.ssrc), header.sequence, header.timestamp, header.marker, now, 160);
        let _ = (reception.lost(), reception.jitter_time(), reception.fraction_lost());
    }
});
