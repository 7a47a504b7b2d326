//! What the worker needs of a packet back-end; sockets, AF_XDP rings or a test's invented network.

use core::net::SocketAddr;

use crate::phase::Phase;

/// Bytes of the worker's packet buffer: linear 48 kHz at 60 ms with its header and room.
pub const PACKET_BYTES_MAX: usize = 6144;

/// One datagram that arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Arrival {
    /// Slot of the stream whose leg it came to, as given to [`PacketIo::attach`].
    pub slot: u32,
    /// It came to the RTCP port.
    pub rtcp: bool,
    /// Source; IPv4 addresses are IPv4, never mapped.
    pub from: SocketAddr,
    /// Bytes of the buffer that it fills.
    pub length: usize,
}

/// A packet back-end. Calls happen on the worker's thread and must not block.
pub trait PacketIo {
    /// One leg's ports; dropping it gives them back.
    type Leg;

    /// Starts to receive for `leg`; packets carry `slot` from here on. False when the back-end cannot.
    fn attach(&mut self, slot: u32, leg: &mut Self::Leg) -> bool;
    /// Stops receiving, because the leg moves to another worker. One that is closed is dropped, which ends all.
    fn detach(&mut self, leg: &mut Self::Leg);
    /// The next datagram of this receive phase, or `None` when the phase is over (nothing left, or enough).
    fn receive(&mut self, buffer: &mut [u8]) -> Option<Arrival>;
    /// Sends RTP; false when the packet was not taken. A batch may wait for [`Self::flush`].
    fn send(&mut self, slot: u32, leg: &mut Self::Leg, to: SocketAddr, packet: &[u8]) -> bool;
    /// Sends RTCP, from the RTP port when `shared` (RFC 5761).
    fn send_rtcp(
        &mut self,
        slot: u32,
        leg: &mut Self::Leg,
        to: SocketAddr,
        shared: bool,
        packet: &[u8],
    ) -> bool;
    /// Only `source` is let in until the next call; `None` lets everyone in again. An optimisation: the worker judges
    /// every packet all the same.
    fn lock(&mut self, leg: &mut Self::Leg, source: Option<SocketAddr>);
    /// What the worker does from here on, for whoever measures. Called some times a tick and some times a packet.
    #[inline]
    fn phase(&mut self, _: Phase) {}
    /// End of the send phase.
    fn flush(&mut self) {}
}
