//! Streams whose packets are SRTP: opened before anything is believed of them, sealed as the last thing before they leave.

use core::ops::Range;

use base::StreamId;
use rtp::Discard;
use srtp::{Refused, Session};

use crate::packet_io::PacketIo;
use crate::stream::Stream;
use crate::worker::Desk;

/// Which packets are opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Rtp,
    Rtcp,
}

impl<L> Stream<L> {
    /// Takes the keys of a new plan. A direction whose key stayed goes on with its counters.
    pub(crate) fn take_keys(&mut self) {
        self.is_sealed = self.plan.keys.is_some();
        let Some(keys) = &self.plan.keys else {
            self.seal = None;
            return;
        };
        let went_on = self.seal.as_mut().is_some_and(|seal| seal.rekey(keys).is_some());
        if !went_on {
            self.seal = Session::new(keys).map(Box::new);
        }
    }
}

impl<P: PacketIo> Desk<'_, P> {
    /// Opens a packet of a sealed stream where it lies; gives what is left of it. One that is not authentic changes nothing.
    pub(crate) fn open_sealed(
        &mut self,
        id: StreamId,
        packet: Range<usize>,
        kind: Kind,
    ) -> Result<Range<usize>, Discard> {
        let stream = self.streams.get_mut(id).ok_or(Discard::UnknownStream)?;
        let seal = stream.seal.as_mut().ok_or(Discard::NotAuthentic)?;
        let start = packet.start;
        let bytes = self.scratch.packets.bytes_mut(packet).unwrap_or_default();
        self.io.seals(true);
        let opened = match kind {
            Kind::Rtp => seal.open_rtp(bytes),
            Kind::Rtcp => seal.open_rtcp(bytes),
        };
        self.io.seals(false);
        match opened {
            Ok(length) => Ok(start..start + length),
            Err(Refused::TooShort | Refused::NoRoom) => Err(Discard::TooShort),
            Err(Refused::BadVersion) => Err(Discard::BadVersion),
            Err(Refused::Replayed | Refused::TooOld) => Err(Discard::Replayed),
            Err(Refused::BadTag | Refused::NotEncrypted | Refused::KeyUsedUp) => Err(Discard::NotAuthentic),
        }
    }
}
