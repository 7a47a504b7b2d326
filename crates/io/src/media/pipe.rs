//! Packets of streams without a socket: between the signalling shard, which has them from a protocol that carries voice
//! itself, and the worker. One ring of bytes each way for all such streams of a worker; nothing is locked or allocated.
#![forbid(unsafe_code)]

use base::StreamId;
use rtrb::{Consumer, Producer, RingBuffer};

/// Bytes a ring holds: a tick of 20 ms of 4,000 calls in G.711, and then some. Only what is used of it becomes memory.
const RING_BYTES: usize = 1 << 20;
/// Length, slot and generation before each packet.
const HEADER_BYTES: usize = 10;
/// Packets that are handed over together: enough that who takes them asks for the memory of the later ones while it is at
/// the first, and few enough that it is still there when their turn comes.
const TOGETHER: usize = 16;

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
        let (stream, length) = read_header(header);
        let chunk = self.0.read_chunk(length).ok()?;
        let (first, second) = chunk.as_slices();
        match (room.get_mut(..length), second.is_empty()) {
            (Some(room), true) => room.copy_from_slice(first),
            _ => room.iter_mut().zip(first.iter().chain(second)).for_each(|(to, from)| *to = *from),
        }
        chunk.commit_all();
        Some((stream, length.min(room.len())))
    }
    /// Hands out everything that is there, some packets at a time, where it lies. Only what lies around the end of the ring
    /// is copied, to `room`, and cut to it.
    pub(crate) fn each(&mut self, room: &mut [u8], mut each: impl FnMut(&[(StreamId, &[u8])])) {
        let Ok(chunk) = self.0.read_chunk(self.0.slots()) else { return };
        let (first, second) = chunk.as_slices();
        let mut parts = Parts { first, second, room: Some(room) };
        loop {
            let mut packets = [(StreamId::new(0, 0), &[][..]); TOGETHER];
            let mut filled = 0;
            for (place, packet) in packets.iter_mut().zip(core::iter::from_fn(|| parts.packet())) {
                (*place, filled) = (packet, filled + 1);
            }
            each(packets.get(..filled).unwrap_or_default());
            if filled < TOGETHER {
                break;
            }
        }
        chunk.commit_all();
    }
}

/// Whose packet follows a header, and how many bytes it has.
fn read_header([l0, l1, s0, s1, s2, s3, g0, g1, g2, g3]: [u8; HEADER_BYTES]) -> (StreamId, usize) {
    let stream = StreamId::new(u32::from_ne_bytes([s0, s1, s2, s3]), u32::from_ne_bytes([g0, g1, g2, g3]));
    (stream, usize::from(u16::from_ne_bytes([l0, l1])))
}

/// What a ring holds: up to its end, and from its beginning on.
struct Parts<'a> {
    first: &'a [u8],
    second: &'a [u8],
    /// For the one packet that lies in both.
    room: Option<&'a mut [u8]>,
}

impl<'a> Parts<'a> {
    fn packet(&mut self) -> Option<(StreamId, &'a [u8])> {
        let (stream, length) = read_header(self.header()?);
        if let Some((packet, rest)) = self.first.split_at_checked(length) {
            self.first = rest;
            return Some((stream, packet));
        }
        let (end, (beginning, rest)) = (self.first, self.second.split_at_checked(length - self.first.len())?);
        (self.first, self.second) = (rest, &[]);
        if end.is_empty() {
            return Some((stream, beginning));
        }
        let room = self.room.take()?;
        let filled = length.min(room.len());
        room.iter_mut().zip(end.iter().chain(beginning)).for_each(|(to, from)| *to = *from);
        Some((stream, room.get(..filled)?))
    }
    fn header(&mut self) -> Option<[u8; HEADER_BYTES]> {
        if let Some((header, rest)) = self.first.split_first_chunk() {
            self.first = rest;
            return Some(*header);
        }
        let (beginning, rest) = self.second.split_at_checked(HEADER_BYTES - self.first.len())?;
        let mut header = [0; HEADER_BYTES];
        header.iter_mut().zip(self.first.iter().chain(beginning)).for_each(|(to, from)| *to = *from);
        (self.first, self.second) = (rest, &[]);
        Some(header)
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
    fn packets_that_are_handed_out_together_are_those_that_went_in_also_around_the_end_of_the_ring() {
        let (mut inlet, mut outlet) = pipe();
        let mut room = [0; 2048];
        let packet = |number: u32| -> Vec<u8> {
            (0..number % 1500).map(|at| (at ^ number).to_le_bytes()[0]).collect()
        };
        // As many at once as fill and overfill what is handed out together; three times around.
        let (mut put, mut came) = (0, 0);
        for count in [0, 1, 15, 16, 17, 40].into_iter().cycle().take(300) {
            for _ in 0..count {
                assert!(inlet.put(StreamId::new(put, put + 7), &packet(put)), "{put}");
                put += 1;
            }
            outlet.each(&mut room, |packets| {
                for (stream, bytes) in packets {
                    assert_eq!((*stream, *bytes), (StreamId::new(came, came + 7), &packet(came)[..]));
                    came += 1;
                }
            });
            assert_eq!(came, put);
        }
        assert!(put > 4_000);
    }

    #[test]
    fn what_lies_around_the_end_of_the_ring_is_cut_to_the_room() {
        let (mut inlet, mut outlet) = pipe();
        let stream = StreamId::new(1, 1);
        let mut room = [0; 100];
        for left in [9, 10, 11, 500, 1009] {
            // Up to so many bytes before the end, and one packet more.
            let mut lengths = Vec::new();
            while inlet.put(stream, &[1; 1000]) {
                lengths.push(1000);
            }
            let mut seen = 0;
            outlet.each(&mut room, |packets| seen += packets.len());
            assert_eq!(seen, lengths.len(), "{left}");
            let at = (inlet.put(stream, &vec![2; left]), inlet.put(stream, &[3; 1000]));
            assert_eq!(at, (true, true));
            let mut sizes = Vec::new();
            outlet.each(&mut room, |packets| {
                for (_, bytes) in packets {
                    assert!(bytes.iter().all(|byte| *byte == bytes[0]), "{left}");
                    sizes.push(bytes.len());
                }
            });
            assert_eq!(sizes.len(), 2);
            assert!(sizes.iter().all(|size| [left, 1000, 100].contains(size)), "{left}: {sizes:?}");
        }
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
