//! Fax over UDPTL (ITU-T T.38): what arrives is read, made good as far as its protection goes, and goes on to the bridged
//! peer under its own numbers and protection. Nobody looks into the fax itself.

use core::net::SocketAddr;
use core::ops::Range;

use base::{Event, Fax, Latch, StreamId};
use rtp::{Discard, Piece, UDPTL_BYTES_MAX, UdptlReceiver, UdptlSender, Verdict};

use crate::packet_io::PacketIo;
use crate::worker::Desk;

/// What a stream that carries fax keeps.
#[derive(Debug)]
pub(crate) struct FaxLine {
    receiver: UdptlReceiver,
    sender: UdptlSender,
}

impl FaxLine {
    pub(crate) fn new(fax: Fax) -> Self {
        let sender = UdptlSender::new(fax.protection, fax.datagram_max);
        Self { receiver: UdptlReceiver::default(), sender }
    }
}

impl<P: PacketIo> Desk<'_, P> {
    /// A datagram to the port of a stream that carries fax.
    pub(crate) fn fax_arrived(
        &mut self,
        id: StreamId,
        from: SocketAddr,
        packet: Range<usize>,
    ) -> Result<(), Discard> {
        let stream = self.streams.get_mut(id).ok_or(Discard::UnknownStream)?;
        let datagram = self.scratch.packets.bytes(packet);
        let sequence = UdptlReceiver::sequence(datagram).ok_or(Discard::TooShort)?;
        match stream.lock.judge(from, stream.plan.remote, 0, sequence) {
            Verdict::Refuse => return Err(Discard::WrongSource),
            // It comes from the host of the signalling, and a fax has few packets to learn from.
            Verdict::Learning | Verdict::Accept => {}
            Verdict::Locked(remote) => {
                stream.settle();
                self.events.push(Event::Latched { stream: id, remote });
                if let Some(leg) = &mut stream.leg
                    && stream.plan.latch != Latch::Off
                {
                    self.io.lock(leg, Some(remote));
                }
            }
        }
        let peer = stream.bridge;
        let Some(mut line) = stream.fax.take() else { return Ok(()) };
        let (now, streams, io, load) = (self.at, &mut *self.streams, &mut *self.io, &mut *self.load);
        let read = line.receiver.datagram(datagram, |piece| {
            let Some(stream) = peer.and_then(|peer| streams.get_mut(peer)) else { return };
            let (Some(fax), Some(leg), Some(target)) = (&mut stream.fax, &mut stream.leg, stream.target)
            else {
                return;
            };
            match piece {
                Piece::Lost(count) => fax.sender.skip(count),
                Piece::Ifp(ifp) => {
                    let mut room = [0; UDPTL_BYTES_MAX];
                    let Some(datagram) = fax.sender.datagram(ifp, &mut room) else { return };
                    if io.put(stream.id.slot, leg, target, datagram) {
                        stream.sent.count(datagram.len());
                        stream.last_sent = now;
                        load.sent += 1;
                    } else {
                        load.discards.count(Discard::SendFailed);
                    }
                }
            }
        });
        let length = datagram.len();
        let stream = self.streams.get_mut(id).ok_or(Discard::UnknownStream)?;
        stream.fax = Some(line);
        read?;
        stream.received.count(length);
        (stream.last_rtp, stream.timed_out) = (now, false);
        Ok(())
    }
}
