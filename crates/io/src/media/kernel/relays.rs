//! The table of bridges that the XDP program relays by itself, in memory that it shares with us.
//!
//! A place of the table is one direction: packets that come to an RTP port. Whoever writes it sees to it that it is off
//! meanwhile; the program counts in it while it is on. `struct relay` of `media.bpf.c` says what stands where.
#![forbid(unsafe_code)]

use std::net::SocketAddrV4;
use std::sync::atomic::{AtomicU64, Ordering};

use base::Instant;
use media::{RelayPlan, Relayed};

use super::frame::{HEADERS, Template};
use super::ports::raw_address;
use super::sys::Shared;

/// Directions that there is room for: one an even port; `RELAYS_MAX` of `media.bpf.c`.
pub(crate) const RELAYS_MAX: u32 = 1 << 15;
/// Words of a place.
const WORDS: usize = 16;
/// Bits of a place's first word: the plan is on, its number, what is relayed.
const RELAYING: u64 = 1 << 16;
const NUMBER: u64 = 1 << 17;
const NUMBERS: u64 = 0x7fff;
/// Words of a place: headers, what the program needs of the plan, counters.
const HEADERS_AT: usize = 2;
const PLAN_AT: usize = 8;
const COUNTED_AT: usize = 13;
/// Bits of the bytes that were counted; packets stand above them.
const COUNTED_BITS: u32 = 40;
/// How often one looks whether the program has counted a packet in full that it has taken: some microseconds.
const LOOKS_MAX: u32 = 10_000;

/// Places of all ports.
#[derive(Debug)]
pub(crate) struct Relays {
    shared: Shared,
}

/// The way of a plan's packets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Through {
    /// Interfaces by which they come and leave; `None` when the driver is to send them back by itself.
    pub(crate) interfaces: (u32, Option<u32>),
    /// Headers that they leave with.
    pub(crate) headers: Template,
    /// Longest datagram that goes this way.
    pub(crate) room: usize,
}

/// A plan in a place; whoever has it may end it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ticket {
    port: u16,
    number: u64,
}

impl Relays {
    /// Bytes of the table.
    pub(crate) const BYTES: usize = RELAYS_MAX as usize * WORDS * 8;

    pub(crate) const fn new(shared: Shared) -> Self {
        Self { shared }
    }
    fn place(&self, port: u16) -> Option<&[AtomicU64; WORDS]> {
        let start = usize::from(port / 2) * WORDS;
        self.shared.words().get(start..)?.first_chunk()
    }
    /// Relays what comes to `port` from `from`; `None` when that port has a plan already, or is none of RTP's.
    pub(crate) fn begin(
        &self,
        port: u16,
        from: SocketAddrV4,
        plan: &RelayPlan,
        through: &Through,
    ) -> Option<Ticket> {
        let place = self.place(port).filter(|_| port.is_multiple_of(2))?;
        let [state, source, rest @ ..] = place;
        let before = state.load(Ordering::Acquire);
        if before & RELAYING != 0 {
            return None;
        }
        let number = (before / NUMBER).wrapping_add(1) & NUMBERS;
        let Through { interfaces, headers, room } = through;
        let (bytes, ip_sum, udp_sum) = headers.parts();
        let mut words = [0; WORDS - HEADERS_AT];
        let (top, plan_words) = words.split_at_mut(PLAN_AT - HEADERS_AT);
        let mut padded = [0; (PLAN_AT - HEADERS_AT) * 8];
        if let Some(room) = padded.get_mut(..HEADERS) {
            room.copy_from_slice(bytes);
        }
        for (word, bytes) in top.iter_mut().zip(padded.as_chunks::<8>().0) {
            *word = u64::from_ne_bytes(*bytes);
        }
        let [to_in, to_out] = [plan.ssrc.0, plan.ssrc.1].map(|ssrc| u32::from_ne_bytes(ssrc.to_be_bytes()));
        let offsets = [
            &plan.timestamp_offset.to_ne_bytes()[..],
            &plan.sequence_offset.to_ne_bytes(),
            &[plan.payload.0, plan.payload.1],
        ]
        .concat();
        let offsets = offsets.first_chunk().map_or(0, |bytes| u64::from_ne_bytes(*bytes));
        let room = u32::try_from(*room).unwrap_or(u32::MAX);
        let values = [
            pair(ip_sum, udp_sum),
            pair(to_in, to_out),
            pair(interfaces.0, interfaces.1.unwrap_or(0)),
            offsets,
            pair(plan.clock, room),
            0,
            0,
            pair(plan.timestamp, plan.jitter_x16),
        ];
        for (word, value) in plan_words.iter_mut().zip(values) {
            *word = value;
        }
        source.store(raw_address(from), Ordering::Relaxed);
        for (place, word) in rest.iter().zip(words) {
            place.store(word, Ordering::Relaxed);
        }
        state.store((number * NUMBER) | RELAYING | u64::from(plan.highest), Ordering::SeqCst);
        Some(Ticket { port, number })
    }
    /// What was relayed so far; `None` when the plan has ended.
    pub(crate) fn read(&self, ticket: Ticket) -> Option<Relayed> {
        let place = self.place(ticket.port)?;
        let state = place.first()?.load(Ordering::Acquire);
        (state & RELAYING != 0 && (state / NUMBER) & NUMBERS == ticket.number).then(|| counters(place, state))
    }
    /// Ends a plan. Not a packet is relayed after the counts that are returned.
    pub(crate) fn end(&self, ticket: Ticket) -> Option<Relayed> {
        self.read(ticket)?;
        let place = self.place(ticket.port)?;
        let state = place.first()?.fetch_and(!RELAYING, Ordering::SeqCst);
        Some(counters(place, state))
    }
}

/// Reads the counters that belong to a state. The program counts a packet in full some nanoseconds after it took it.
fn counters(place: &[AtomicU64; WORDS], state: u64) -> Relayed {
    let word = |at: usize| place.get(at).map_or(0, |word| word.load(Ordering::Acquire));
    let packets = (state >> 32) as u32;
    let mut counted = word(COUNTED_AT);
    for _ in 0..LOOKS_MAX {
        let behind = (packets & 0xff_ffff).wrapping_sub((counted >> COUNTED_BITS) as u32) & 0xff_ffff;
        if behind == 0 || behind > 0x80_0000 {
            break;
        }
        std::hint::spin_loop();
        counted = word(COUNTED_AT);
    }
    let arrived = word(COUNTED_AT + 1);
    let [timestamp, jitter_x16] = halves(word(COUNTED_AT + 2));
    Relayed {
        packets,
        bytes: counted & ((1 << COUNTED_BITS) - 1),
        highest: state as u16,
        latest: (packets > 0).then(|| (timestamp, Instant::from_nanos(arrived))),
        jitter_x16,
    }
}

/// Two halves of a word, in the order of memory.
fn pair(first: u32, second: u32) -> u64 {
    let ([a, b, c, d], [e, f, g, h]) = (first.to_ne_bytes(), second.to_ne_bytes());
    u64::from_ne_bytes([a, b, c, d, e, f, g, h])
}

fn halves(word: u64) -> [u32; 2] {
    let [a, b, c, d, e, f, g, h] = word.to_ne_bytes();
    [u32::from_ne_bytes([a, b, c, d]), u32::from_ne_bytes([e, f, g, h])]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(highest: u16) -> RelayPlan {
        let here = "192.0.2.1:4000".parse().unwrap();
        RelayPlan {
            from: here,
            to: here,
            payload: (0, 8),
            ssrc: (1, 2),
            sequence_offset: 3,
            timestamp_offset: 4,
            clock: 8000,
            highest,
            timestamp: 0,
            jitter_x16: 77,
        }
    }

    #[test]
    fn a_place_has_one_plan_at_a_time_and_only_its_ticket_ends_it() {
        let relays = Relays::new(Shared::anonymous(Relays::BYTES).unwrap());
        let from: SocketAddrV4 = "192.0.2.1:4000".parse().unwrap();
        let headers = Template::new(from, from, 0, Default::default());
        let through = Through { interfaces: (1, Some(2)), headers, room: 1000 };
        let begin = |port, highest| relays.begin(port, from, &plan(highest), &through);
        assert_eq!(begin(4001, 9), None, "the port of RTCP");
        let first = begin(65_534, 9).unwrap();
        assert_eq!(begin(65_534, 10), None, "it has a plan");
        let at_first = plan(9).begin();
        assert_eq!(relays.read(first), Some(at_first));
        // The program takes a packet and counts it.
        let place = relays.place(65_534).unwrap();
        place[0].fetch_add(1 << 32 | 5, Ordering::Relaxed);
        place[COUNTED_AT].fetch_add(1 << COUNTED_BITS | 160, Ordering::Relaxed);
        place[COUNTED_AT + 1].store(5_000, Ordering::Relaxed);
        place[COUNTED_AT + 2].store(pair(320, 80), Ordering::Relaxed);
        let latest = Some((320, Instant::from_nanos(5_000)));
        let one = Relayed { packets: 1, bytes: 160, highest: 14, latest, jitter_x16: 80 };
        assert_eq!((relays.read(first), relays.end(first)), (Some(one), Some(one)));
        assert_eq!((relays.read(first), relays.end(first)), (None, None), "it has ended");
        let second = begin(65_534, 20).unwrap();
        assert_eq!((relays.end(first), relays.read(second).map(|read| read.packets)), (None, Some(0)));
        assert_ne!(first, second);
    }
}
