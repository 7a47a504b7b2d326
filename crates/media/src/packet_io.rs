//! What the worker needs of a packet back-end; sockets, AF_XDP rings or a test's invented network.

use core::net::SocketAddr;
use core::ops::Range;

use srtp::RTP_TRAILER_MAX;

use crate::phase::Phase;
use crate::relay::{RelayPlan, Relayed};

/// Bytes of the longest datagram: linear 48 kHz at 60 ms with its header and room.
pub const PACKET_BYTES_MAX: usize = 6144;

/// Datagrams of one batch: so many that the waits for memory overlap and a system call is shared, and so few that they
/// stay in the nearest caches.
pub const BATCH_MAX: usize = 64;
/// Bytes of a batch's buffer besides room for one datagram of the longest: usual ones fill a batch with 400 bytes each.
const BATCH_BYTES: usize = 26 * 1024;
/// Datagrams begin at whole lines of the cache.
const LINE: usize = 64;

/// One datagram that arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Arrival {
    /// Slot of the stream whose leg it came to, as given to [`PacketIo::attach`].
    pub slot: u32,
    /// It came to the RTCP port.
    pub rtcp: bool,
    /// Source; IPv4 addresses are IPv4, never mapped.
    pub from: SocketAddr,
    /// Bytes of the room that it fills.
    pub length: usize,
}

/// Datagrams taken in one look, side by side in one buffer. The worker's own packets are made at the buffer's beginning,
/// so that a packet is a range of one buffer wherever it came from.
#[derive(Debug)]
pub struct Batch {
    bytes: Box<[u8]>,
    arrivals: Vec<(Arrival, usize)>,
    end: usize,
}

impl Batch {
    /// An empty one.
    #[allow(clippy::new_without_default, reason = "nobody wants one by default: it has room for a batch")]
    pub fn new() -> Self {
        let bytes = vec![0; PACKET_BYTES_MAX + BATCH_BYTES + PACKET_BYTES_MAX + RTP_TRAILER_MAX].into();
        Self { bytes, arrivals: Vec::with_capacity(BATCH_MAX), end: PACKET_BYTES_MAX }
    }
    /// Room of [`PACKET_BYTES_MAX`] bytes for the next datagram; `None` when the batch is full.
    pub fn room(&mut self) -> Option<&mut [u8]> {
        let room = self.bytes.get_mut(self.end..self.end + PACKET_BYTES_MAX);
        room.filter(|_| self.arrivals.len() < BATCH_MAX)
    }
    /// The datagram that was written into the room; without room it is dropped.
    pub fn push(&mut self, arrival: Arrival) {
        if self.room().is_some() {
            let length = arrival.length.min(PACKET_BYTES_MAX);
            self.arrivals.push((Arrival { length, ..arrival }, self.end));
            // Behind each is room for the tag that it may leave with.
            self.end += (length + RTP_TRAILER_MAX).next_multiple_of(LINE);
        }
    }
    /// Copies a datagram into the batch; false when the batch is full.
    pub fn copy(&mut self, slot: u32, rtcp: bool, from: SocketAddr, bytes: &[u8]) -> bool {
        let Some(room) = self.room() else { return false };
        let length = bytes.len().min(room.len());
        if let (Some(room), Some(bytes)) = (room.get_mut(..length), bytes.get(..length)) {
            room.copy_from_slice(bytes);
        }
        self.push(Arrival { slot, rtcp, from, length });
        true
    }
    /// How many there are.
    pub fn len(&self) -> usize {
        self.arrivals.len()
    }
    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.arrivals.is_empty()
    }
    /// Forgets them all.
    pub fn clear(&mut self) {
        self.arrivals.clear();
        self.end = PACKET_BYTES_MAX;
    }
    /// The datagrams, in order.
    pub fn iter(&self) -> impl Iterator<Item = (Arrival, &[u8])> {
        self.arrivals.iter().map(|&(arrival, start)| (arrival, self.bytes(start..start + arrival.length)))
    }
    /// A datagram and where it lies.
    #[inline]
    pub(crate) fn get(&self, index: usize) -> Option<(Arrival, Range<usize>)> {
        let &(arrival, start) = self.arrivals.get(index)?;
        Some((arrival, start..start + arrival.length))
    }
    /// Bytes of a packet; none outside the buffer.
    #[inline]
    pub(crate) fn bytes(&self, range: Range<usize>) -> &[u8] {
        self.bytes.get(range).unwrap_or_default()
    }
    #[inline]
    pub(crate) fn bytes_mut(&mut self, range: Range<usize>) -> Option<&mut [u8]> {
        self.bytes.get_mut(range)
    }
}

/// A packet back-end: what arrives comes in batches, and what is sent leaves in batches. Calls happen on the worker's
/// thread and must not block.
pub trait PacketIo {
    /// One leg's ports; dropping it gives them back.
    type Leg;

    /// Starts to receive for `leg`; packets carry `slot` from here on. False when the back-end cannot.
    fn attach(&mut self, slot: u32, leg: &mut Self::Leg) -> bool;
    /// Stops receiving, because the leg moves to another worker. One that is closed is dropped, which ends all.
    fn detach(&mut self, leg: &mut Self::Leg);
    /// Adds what has arrived to an empty batch. True when there may be more; false ends the receive phase, because nothing
    /// is left or the worker has other things to do, and the next call begins another.
    fn rx_batch(&mut self, batch: &mut Batch) -> bool;
    /// Puts RTP into the batch that leaves next; false when the packet was not taken. The back-end keeps the batch, because
    /// only it knows where packets have to stand to leave without another copy; one that cannot send in batches sends at once.
    fn put(&mut self, slot: u32, leg: &mut Self::Leg, to: SocketAddr, packet: &[u8]) -> bool;
    /// Puts RTCP into it, to leave from the RTP port when `shared` (RFC 5761).
    fn put_rtcp(
        &mut self,
        slot: u32,
        leg: &mut Self::Leg,
        to: SocketAddr,
        shared: bool,
        packet: &[u8],
    ) -> bool;
    /// Sends all that was put.
    fn tx_batch(&mut self) {}
    /// Only `source` is let in until the next call; `None` lets everyone in again. An optimisation: the worker judges
    /// every packet all the same.
    fn lock(&mut self, leg: &mut Self::Leg, source: Option<SocketAddr>);
    /// Relays one direction of a bridge from here on: packets that `plan` covers go from the leg they come to out of the
    /// other one, and the worker does not see them. All others go on coming by [`Self::rx_batch`]. False when the back-end
    /// cannot, for these legs or at all.
    fn relay(&mut self, _from: &mut Self::Leg, _to: &mut Self::Leg, _: &RelayPlan) -> bool {
        false
    }
    /// What was relayed of the packets that came to this leg, since [`Self::relay`]; `None` when it cannot go on, and is to
    /// be ended.
    fn relayed(&mut self, _: &mut Self::Leg) -> Option<Relayed> {
        None
    }
    /// Ends it. Not a packet is relayed after the counts that are returned; `None` when nothing was.
    fn unrelay(&mut self, _: &mut Self::Leg) -> Option<Relayed> {
        None
    }
    /// What the worker does from here on, for whoever measures. Called some times a tick and some times a packet.
    #[inline]
    fn phase(&mut self, _: Phase) {}
    /// A packet is opened or sealed from here on ([`Phase::Seal`]), in the midst of another phase; or that is over.
    #[inline]
    fn seals(&mut self, _begins: bool) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_keeps_datagrams_whole_and_apart_from_what_the_worker_makes() {
        let from = SocketAddr::from(([192, 0, 2, 1], 4000));
        for length in [0, 12, 64, 172, 1500, PACKET_BYTES_MAX, PACKET_BYTES_MAX + 1] {
            let mut batch = Batch::new();
            for round in 0..2 {
                let mut taken = 0;
                while batch.copy(taken, false, from, &vec![taken as u8 + round; length]) {
                    taken += 1;
                }
                assert!(taken as usize == BATCH_MAX || length > 416 && taken >= 4, "{taken} of {length}");
                for index in 0..taken {
                    let (arrival, range) = batch.get(index as usize).unwrap();
                    assert_eq!((arrival.slot, arrival.length), (index, length.min(PACKET_BYTES_MAX)));
                    assert!(range.start >= PACKET_BYTES_MAX);
                    assert!(batch.bytes(range).iter().all(|byte| *byte == index as u8 + round));
                }
                batch.push(Arrival { slot: 0, rtcp: false, from, length });
                assert_eq!(batch.len(), taken as usize, "what has no room is dropped");
                batch.clear();
            }
        }
    }
}
