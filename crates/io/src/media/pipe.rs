//! Packets of streams without a socket: between the signalling shard, which has them from a protocol that carries voice
//! itself, and the worker. One ring of bytes each way for all such streams of a worker; nothing is locked or allocated.
#![forbid(unsafe_code)]

use base::StreamId;
use rtrb::{Consumer, Producer, RingBuffer};

/// Bytes a ring holds: a tick of 20 ms of 4,000 calls in G.711, and then some. Only what is used of it becomes memory.
const RING_BYTES: usize = 1 << 20;
/// Length, slot and generation before each packet.
const HEADER_BYTES: usize = 10;

/// Where packets go in.
pub(crate) struct Inlet {
    ring: Producer<u8>,
    lost: u64,
}

/// Where they come out.
pub(crate) struct Outlet(Consumer<u8>);

/// Both ends of one direction.
pub(crate) fn pipe() -> (Inlet, Outlet) {
    let (producer, consumer) = RingBuffer::new(RING_BYTES);
    (Inlet { ring: producer, lost: 0 }, Outlet(consumer))
}

/// Copies to where a ring begins anew.
fn copy_to(parts: (&mut [u8], &mut [u8]), bytes: [&[u8]; 2]) {
    let room = parts.0.iter_mut().chain(parts.1.iter_mut());
    room.zip(bytes.into_iter().flatten()).for_each(|(to, from)| *to = *from);
}

impl Inlet {
    /// Puts a packet in; without room for it, it is lost, and counted.
    pub(crate) fn put(&mut self, stream: StreamId, packet: &[u8]) -> bool {
        let Ok(length) = u16::try_from(packet.len()) else { return false };
        let mut header = [0; HEADER_BYTES];
        let (size, rest) = header.split_at_mut(2);
        let (slot, generation) = rest.split_at_mut(4);
        size.copy_from_slice(&length.to_ne_bytes());
        slot.copy_from_slice(&stream.slot.to_ne_bytes());
        generation.copy_from_slice(&stream.generation.to_ne_bytes());
        let Ok(mut chunk) = self.ring.write_chunk(HEADER_BYTES + packet.len()) else {
            self.lost += 1;
            return false;
        };
        let (first, second) = chunk.as_mut_slices();
        match (first.split_at_mut_checked(HEADER_BYTES), second.is_empty()) {
            (Some((head, body)), true) => {
                head.copy_from_slice(&header);
                body.copy_from_slice(packet);
            }
            _ => copy_to(chunk.as_mut_slices(), [&header, packet]),
        }
        chunk.commit_all();
        true
    }
    /// Packets lost for want of room.
    pub(crate) const fn lost(&self) -> u64 {
        self.lost
    }
}

impl Outlet {
    /// Takes the next packet out: whose it is and how many bytes of `room` it fills. What does not fit is cut.
    pub(crate) fn take(&mut self, room: &mut [u8]) -> Option<(StreamId, usize)> {
        let mut header = [0; HEADER_BYTES];
        {
            let chunk = self.0.read_chunk(HEADER_BYTES).ok()?;
            let (first, second) = chunk.as_slices();
            header.iter_mut().zip(first.iter().chain(second)).for_each(|(to, from)| *to = *from);
            chunk.commit_all();
        }
        let [l0, l1, s0, s1, s2, s3, g0, g1, g2, g3] = header;
        let length = usize::from(u16::from_ne_bytes([l0, l1]));
        let stream =
            StreamId::new(u32::from_ne_bytes([s0, s1, s2, s3]), u32::from_ne_bytes([g0, g1, g2, g3]));
        let chunk = self.0.read_chunk(length).ok()?;
        let (first, second) = chunk.as_slices();
        match (room.get_mut(..length), second.is_empty()) {
            (Some(room), true) => room.copy_from_slice(first),
            _ => room.iter_mut().zip(first.iter().chain(second)).for_each(|(to, from)| *to = *from),
        }
        chunk.commit_all();
        Some((stream, length.min(room.len())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_come_out_as_they_went_in_also_around_the_end_of_the_ring() {
        let (mut inlet, mut outlet) = pipe();
        let mut room = [0; 2048];
        assert!(outlet.take(&mut room).is_none());
        let packet = |number: u32| -> Vec<u8> {
            (0..number % 1500).map(|at| (at ^ number).to_le_bytes()[0]).collect()
        };
        // Three times around.
        for number in 0..5_000 {
            let stream = StreamId::new(number, number + 7);
            assert!(inlet.put(stream, &packet(number)), "{number}");
            let (whose, length) = outlet.take(&mut room).unwrap();
            assert_eq!((whose, &room[..length]), (stream, &packet(number)[..]), "{number}");
        }
        assert!(outlet.take(&mut room).is_none());
        assert_eq!(inlet.lost(), 0);
    }

    #[test]
    fn a_full_pipe_loses_what_comes_and_keeps_what_it_has() {
        let (mut inlet, mut outlet) = pipe();
        let stream = StreamId::new(1, 1);
        let mut kept = 0;
        while inlet.put(stream, &[kept as u8; 1000]) {
            kept += 1;
        }
        assert_eq!(kept, RING_BYTES / (1000 + HEADER_BYTES));
        assert_eq!(inlet.lost(), 1);
        let mut room = [0; 100];
        for number in 0..kept {
            assert_eq!(outlet.take(&mut room), Some((stream, 100)), "cut to the room");
            assert_eq!(room, [number as u8; 100]);
        }
        assert!(outlet.take(&mut room).is_none());
        assert!(inlet.put(stream, b"again"));
    }
}
