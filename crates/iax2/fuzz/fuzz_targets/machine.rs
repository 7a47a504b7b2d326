//! Any sequence of datagrams, moments and orders. Oracle: nothing panics, and when all is over no number is left.
#![no_main]

use base::{Cause, FormatId, Instant};
use core::net::SocketAddr;
use core::time::Duration;
use iax2::machine::{Accept, Lines, Priority};
use iax2::{Event, Machine, Out, Settings};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let mut now = Instant::ZERO;
    // Everybody is let in, so that much can happen.
    let token_optional = vec![("0.0.0.0".parse().expect("an address"), 0)];
    let mut machine = Machine::new(now, 5456, Settings { token_optional, ..Settings::default() });
    let mut out = Out::default();
    let mut legs = Vec::new();
    let mut rest = bytes;
    while let Some((&[host, length, wait], after)) = rest.split_first_chunk::<3>() {
        let (datagram, after) = after.split_at(after.len().min(usize::from(length)));
        rest = after;
        now += Duration::from_millis(u64::from(wait) * 40);
        let from = SocketAddr::from(([192, 0, 2, host % 4], 4569));
        out.clear();
        machine.on_datagram(now, from, datagram, &mut out);
        machine.on_timer(now, &mut out);
        for event in std::mem::take(&mut out.events) {
            if let Event::Call(leg, _) | Event::Register { leg, .. } = event {
                legs.push(leg);
                let accept = Accept {
                    formats: FormatId::ALL,
                    video: FormatId::VIDEO,
                    priority: Priority::Caller,
                    trunk: host % 2 == 0,
                    transferable: true,
                    lines: Lines { send: true, take: true },
                };
                let _taken = machine.accept(now, leg, &accept, &mut out);
                let _said = machine.voice(now, leg, FormatId::ULAW, 20, &[7; 20], &mut out);
            }
        }
    }
    for leg in legs {
        let _ended = machine.hang_up(now, leg, Cause::NORMAL_CLEARING, &mut out);
    }
    for _ in 0..400 {
        now += Duration::from_secs(1);
        machine.on_timer(now, &mut out);
    }
    let counts = machine.counts();
    assert_eq!((counts.legs, counts.shared, counts.hosts, counts.indexed), (0, (0, 0), 0, 0));
});
