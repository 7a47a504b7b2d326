//! The trace of packets: what an administrator asked to see, noted in a room of fixed size.

use core::net::{IpAddr, SocketAddr};

/// Packets that one tick notes; the rest is counted. Fifty calls in a tick of 20 ms, which nobody reads anyway.
const ROOM: usize = 128;

/// Whose packets are looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Watch {
    /// Nobody's.
    #[default]
    Off,
    /// Everybody's.
    All,
    /// One host's; of one port when it is named.
    Host(IpAddr, Option<u16>),
}

impl Watch {
    fn covers(self, peer: SocketAddr) -> bool {
        match self {
            Self::Off => false,
            Self::All => true,
            Self::Host(ip, port) => peer.ip() == ip && port.is_none_or(|port| port == peer.port()),
        }
    }
}

/// What is traced.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tracing {
    /// RTP.
    pub rtp: Watch,
    /// RTCP.
    pub rtcp: Watch,
    /// Each report of RTCP is told as an event.
    pub reports: bool,
}

/// What a packet carried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Carried {
    /// RTP.
    Rtp {
        /// Payload type.
        payload_type: u8,
        /// Sequence number.
        sequence: u16,
        /// Timestamp.
        timestamp: u32,
    },
    /// A compound of RTCP.
    Rtcp,
}

/// One packet that was moved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Traced {
    /// It left; else it came.
    pub sent: bool,
    /// The peer.
    pub peer: SocketAddr,
    /// What it was.
    pub carried: Carried,
    /// Bytes of RTP's payload, or of the whole of RTCP.
    pub length: usize,
}

/// What was noted since the last time, and how much more there was.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Noted {
    /// In order.
    pub packets: Vec<Traced>,
    /// Packets for which there was no room.
    pub missed: u64,
}

/// The room of a worker that traces; one that does not has none.
pub(crate) struct Trace {
    tracing: Tracing,
    noted: Noted,
}

impl Trace {
    /// A trace, unless nothing is to be seen.
    pub(crate) fn new(tracing: Tracing) -> Option<Box<Self>> {
        let noted = || Noted { packets: Vec::with_capacity(ROOM), missed: 0 };
        (tracing != Tracing::default()).then(|| Box::new(Self { tracing, noted: noted() }))
    }
    /// What is traced.
    pub(crate) fn tracing(&self) -> Tracing {
        self.tracing
    }
    /// Whether reports of RTCP are told.
    pub(crate) fn tells_reports(&self) -> bool {
        self.tracing.reports
    }
    /// Whether somebody wants to see RTP.
    pub(crate) fn watches_rtp(&self) -> bool {
        self.tracing.rtp != Watch::Off
    }
    pub(crate) fn note(&mut self, packet: Traced) {
        let watch = match packet.carried {
            Carried::Rtp { .. } => self.tracing.rtp,
            Carried::Rtcp => self.tracing.rtcp,
        };
        if !watch.covers(packet.peer) {
            return;
        }
        if self.noted.packets.len() < ROOM {
            self.noted.packets.push(packet);
        } else {
            self.noted.missed += 1;
        }
    }
    /// What was noted; the room is empty again.
    pub(crate) fn take(&mut self) -> Option<Noted> {
        let any = !self.noted.packets.is_empty() || self.noted.missed > 0;
        any.then(|| {
            std::mem::replace(&mut self.noted, Noted { packets: Vec::with_capacity(ROOM), missed: 0 })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trace_shows_what_was_asked_for_and_counts_what_it_has_no_room_for() {
        let [alice, bob]: [SocketAddr; 2] =
            ["192.0.2.1:4000".parse().unwrap(), "[2001:db8::2]:4000".parse().unwrap()];
        let rtp = Carried::Rtp { payload_type: 0, sequence: 1, timestamp: 160 };
        let packet = |peer, carried| Traced { sent: true, peer, carried, length: 160 };
        for (name, rtp_watch, rtcp_watch, expected) in [
            ("everything", Watch::All, Watch::All, 4),
            ("RTP", Watch::All, Watch::Off, 2),
            ("one host", Watch::Host(alice.ip(), None), Watch::Off, 1),
            ("one port", Watch::Host(alice.ip(), Some(4000)), Watch::Host(bob.ip(), Some(4000)), 2),
            ("another port", Watch::Host(alice.ip(), Some(4002)), Watch::Off, 0),
        ] {
            let mut trace = Trace::new(Tracing { rtp: rtp_watch, rtcp: rtcp_watch, reports: false }).unwrap();
            for peer in [alice, bob] {
                trace.note(packet(peer, rtp));
                trace.note(packet(peer, Carried::Rtcp));
            }
            assert_eq!(trace.take().map_or(0, |noted| noted.packets.len()), expected, "{name}");
            assert_eq!(trace.take(), None, "{name}");
        }
        assert!(Trace::new(Tracing::default()).is_none());
        let mut trace = Trace::new(Tracing { rtp: Watch::All, ..Tracing::default() }).unwrap();
        (0..ROOM + 3).for_each(|_| trace.note(packet(alice, rtp)));
        let noted = trace.take().unwrap();
        assert_eq!((noted.packets.len(), noted.missed), (ROOM, 3));
    }
}
