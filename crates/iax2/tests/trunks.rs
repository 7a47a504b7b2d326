//! What voice of many calls on one trunk takes of the network.

mod world;

use base::FormatId;
use iax2::Out;
use iax2::frame::{TRUNK_ENTRY_BYTES, TRUNK_HEADER_BYTES};
use iax2::machine::TrunkSettings;
use world::{World, ms};

/// Octets of a datagram's IPv4 and UDP headers.
const BELOW: usize = 28;
/// As many as fill fifty datagrams, but for one.
const CALLS: usize = 349;
const VOICE: [u8; 160] = [7; 160];

#[test]
fn rfc5456_7_1_calls_on_a_trunk_take_at_most_a_twentieth_more_than_full_datagrams_would() {
    let mut world = World::two();
    let calls: Vec<_> = (0..CALLS).map(|_| world.call(|dial| dial.trunk = true).0).collect();
    let (mut now, mut out, mut octets) = (world.now, Out::default(), 0);
    let machine = &mut world.machines[0];
    let rounds = 60;
    for round in 0..rounds {
        for place in &calls {
            machine.voice(now, *place, FormatId::ULAW, 20, &VOICE, &mut out).unwrap();
        }
        // The first frame of each call is a full one, and says the format; the last round waits for the one after it.
        octets = if round == 0 { 0 } else { octets + sent(&out) };
        out.clear();
        now += ms(20);
        machine.on_timer(now, &mut out);
    }
    octets += sent(&out);
    let entry = TRUNK_ENTRY_BYTES + VOICE.len();
    let fit = (TrunkSettings::default().bytes_max - TRUNK_HEADER_BYTES) / entry;
    let least = calls.len() * entry + calls.len().div_ceil(fit) * (TRUNK_HEADER_BYTES + BELOW);
    let least = least * (rounds - 1);
    assert!(octets >= least, "{octets} octets, less than the {least} that the voice takes");
    assert!(octets * 100 <= least * 105, "{octets} octets, where full datagrams take {least}");
}

fn sent(out: &Out) -> usize {
    out.datagrams().map(|(_, bytes)| bytes.len() + BELOW).sum()
}
