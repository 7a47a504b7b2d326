//! The two ends of a stream's line: the worker's [`Port`] and the [`Desk`] of the thread that speaks with the process.

use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::Arc;

use rtrb::{Consumer, Producer, RingBuffer};

use super::wire::{HEAD_BYTES, Kind, Message};

/// What may be on its way of a stream at once, milliseconds: two of the longest packets. A healthy process never holds
/// back more, and what comes later is not worth hearing.
const IN_FLIGHT_MS: usize = 120;
/// The same in frames, where frames are long.
const IN_FLIGHT_MIN: usize = 4;

/// What a stream wants of the codec.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// Samples become coded bytes.
    Encode,
    /// Coded bytes become samples.
    Decode,
}

/// What the process said of its frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Geometry {
    /// Rate of the samples, in Hz.
    pub rate: u32,
    /// Samples of a frame.
    pub samples: usize,
    /// Bytes of a frame at most.
    pub bytes: usize,
}

impl Geometry {
    /// Frames of a stream that may be on their way at once.
    pub fn in_flight(&self) -> u32 {
        let frames = self.rate as usize * IN_FLIGHT_MS / 1000 / self.samples.max(1);
        frames.max(IN_FLIGHT_MIN) as u32
    }
}

/// Wakes the thread that speaks with the process. Must not block.
pub trait Bell: Send + Sync {
    /// Something was put into a port.
    fn ring(&self);
}

/// What went wrong on all lines to a process, counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Faults {
    /// Frames not sent because too many were unanswered.
    pub full: u64,
    /// Frames not sent because the process was gone.
    pub dead: u64,
    /// Frames that the process could not code, or answered with something of another size.
    pub refused: u64,
    /// Frames whose answer was not there when it was their turn.
    pub late: u64,
}

/// What all lines to one process share: whether it lives, and what went wrong.
#[derive(Debug, Default)]
pub struct Health {
    alive: AtomicBool,
    /// How often it began: whoever looks too seldom to see it dead sees that it is another one.
    lives: AtomicU32,
    full: AtomicU64,
    dead: AtomicU64,
    refused: AtomicU64,
    late: AtomicU64,
}

impl Health {
    /// Whether the process lives.
    pub fn is_alive(&self) -> bool {
        self.alive.load(Ordering::Acquire)
    }
    /// It began, or ended.
    pub fn set_alive(&self, alive: bool) {
        if alive {
            self.lives.fetch_add(1, Ordering::Relaxed);
        }
        self.alive.store(alive, Ordering::Release);
    }
    /// How often it began.
    fn lives(&self) -> u32 {
        self.lives.load(Ordering::Relaxed)
    }
    /// What went wrong so far.
    pub fn faults(&self) -> Faults {
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        Faults {
            full: read(&self.full),
            dead: read(&self.dead),
            refused: read(&self.refused),
            late: read(&self.late),
        }
    }
}

/// Something that the process could not code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Refused;

/// A stream's line to the codec; one per direction of a call. Allocates nothing after it was made, and never waits.
pub struct Port {
    stream: u32,
    direction: Direction,
    geometry: Geometry,
    requests: Producer<u8>,
    answers: Consumer<u8>,
    /// Number of the next frame, and of the next answer.
    sent: u32,
    answered: u32,
    /// Which life of the process they belong to.
    life: u32,
    /// Answers put into the ring since the beginning, and those taken out.
    delivered: Arc<AtomicU32>,
    taken: u32,
    health: Arc<Health>,
    bell: Arc<dyn Bell>,
}

/// The other end.
pub struct Desk {
    /// The stream's number.
    pub stream: u32,
    /// What the stream wants.
    pub direction: Direction,
    requests: Consumer<u8>,
    answers: Producer<u8>,
    delivered: Arc<AtomicU32>,
}

/// A line for one stream. `health` is shared by all lines to a process.
pub fn port(
    stream: u32,
    direction: Direction,
    geometry: Geometry,
    health: Arc<Health>,
    bell: Arc<dyn Bell>,
) -> (Port, Desk) {
    let largest = HEAD_BYTES + geometry.bytes.max(2 * geometry.samples);
    let room = largest * geometry.in_flight() as usize;
    let (requests, request_end) = RingBuffer::new(room);
    let (answer_end, answers) = RingBuffer::new(room);
    let delivered = Arc::new(AtomicU32::new(0));
    let port = Port {
        stream,
        direction,
        geometry,
        requests,
        answers,
        sent: 0,
        answered: 0,
        life: health.lives(),
        delivered: delivered.clone(),
        taken: 0,
        health,
        bell,
    };
    (port, Desk { stream, direction, requests: request_end, answers: answer_end, delivered })
}

impl Port {
    /// What the codec's frames are like.
    pub fn geometry(&self) -> Geometry {
        self.geometry
    }

    /// Sends a frame of samples to be encoded.
    pub fn encode(&mut self, pcm: &[i16]) {
        if self.direction != Direction::Encode || pcm.len() != self.geometry.samples {
            count(&self.health.refused);
            return;
        }
        self.send(Kind::Frame, 2 * pcm.len(), pcm.iter().flat_map(|sample| sample.to_le_bytes()));
    }

    /// Sends a coded frame to be decoded.
    pub fn decode(&mut self, payload: &[u8]) {
        if self.direction != Direction::Decode || payload.len() > self.geometry.bytes {
            count(&self.health.refused);
            return;
        }
        self.send(Kind::Frame, payload.len(), payload.iter().copied());
    }

    /// Asks for something in place of a frame that never came.
    pub fn conceal(&mut self) {
        if self.direction == Direction::Decode {
            self.send(Kind::Lost, 0, core::iter::empty());
        }
    }

    /// The oldest answer, coded bytes; their number. `None` while there is none: send nothing.
    pub fn encoded(&mut self, out: &mut [u8]) -> Option<Result<usize, Refused>> {
        if self.direction != Direction::Encode {
            return None;
        }
        self.answer(|bytes, geometry| {
            let out = out.get_mut(..bytes.len()).filter(|_| bytes.len() <= geometry.bytes)?;
            out.copy_from_slice(bytes);
            Some(bytes.len())
        })
    }

    /// The oldest answer, samples; their number. `None` while there is none: play silence.
    pub fn decoded(&mut self, pcm: &mut [i16]) -> Option<Result<usize, Refused>> {
        if self.direction != Direction::Decode {
            return None;
        }
        self.answer(|bytes, geometry| {
            let pcm = pcm.get_mut(..geometry.samples).filter(|_| bytes.len() == 2 * geometry.samples)?;
            for (sample, pair) in pcm.iter_mut().zip(bytes.as_chunks().0) {
                *sample = i16::from_le_bytes(*pair);
            }
            Some(geometry.samples)
        })
    }

    /// Answers that wait to be taken.
    pub fn spare(&self) -> u32 {
        self.delivered.load(Ordering::Acquire).wrapping_sub(self.taken)
    }

    /// Drops the oldest answer.
    pub fn skip(&mut self) {
        self.answer(|_, _| Some(()));
    }

    /// Whether the process lives.
    pub fn is_alive(&self) -> bool {
        self.health.is_alive()
    }

    /// Whether nobody serves the line any more, nor ever will.
    pub fn is_orphan(&self) -> bool {
        self.requests.is_abandoned()
    }

    /// An answer was not there when it was its turn.
    pub(super) fn count_late(&self) {
        count(&self.health.late);
    }

    fn send(&mut self, kind: Kind, length: usize, data: impl Iterator<Item = u8>) {
        let alive = self.is_alive();
        let life = self.health.lives();
        if !alive || self.life != life {
            // What was on its way died with the process.
            (self.answered, self.life) = (self.sent, life);
        }
        if !alive {
            count(&self.health.dead);
            return;
        }
        let message = Message { kind, stream: self.stream, sequence: self.sent, data: &[] };
        let Some(mut head) = message.head() else { return };
        head[..2].copy_from_slice(&((HEAD_BYTES - 2 + length) as u16).to_le_bytes());
        let waiting = self.sent.wrapping_sub(self.answered);
        let room = self.requests.write_chunk_uninit(HEAD_BYTES + length);
        let (true, Ok(room)) = (waiting < self.geometry.in_flight(), room) else {
            count(&self.health.full);
            return;
        };
        room.fill_from_iter(head.into_iter().chain(data));
        self.sent = self.sent.wrapping_add(1);
        self.bell.ring();
    }

    /// The oldest answer to something that is not forgotten, as `read` finds it.
    fn answer<T>(
        &mut self,
        mut read: impl FnMut(&[u8], Geometry) -> Option<T>,
    ) -> Option<Result<T, Refused>> {
        while self.answers.slots() > 0 {
            let chunk = self.answers.read_chunk(self.answers.slots()).ok()?;
            let (first, second) = chunk.as_slices();
            // An answer may lie across the ring's end.
            let mut whole = [0u8; HEAD_BYTES + super::BODY_BYTES_MAX];
            let count_bytes = (first.len() + second.len()).min(whole.len());
            for (slot, byte) in whole.iter_mut().zip(first.iter().chain(second)) {
                *slot = *byte;
            }
            let (message, length) = Message::parse(whole.get(..count_bytes)?).ok().flatten()?;
            let awaited = message.sequence.wrapping_sub(self.answered) < self.geometry.in_flight();
            let value = (message.kind == Kind::Frame).then(|| read(message.data, self.geometry)).flatten();
            chunk.commit(length);
            self.taken = self.taken.wrapping_add(1);
            if !awaited {
                continue;
            }
            self.answered = message.sequence.wrapping_add(1);
            if value.is_none() {
                count(&self.health.refused);
            }
            return Some(value.ok_or(Refused));
        }
        None
    }
}

fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

impl core::fmt::Debug for Port {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "Port({}, {:?})", self.stream, self.direction)
    }
}

impl Desk {
    /// Moves what the stream asks to the end of `out`, whole messages; returns how many.
    pub fn collect(&mut self, out: &mut Vec<u8>) -> u32 {
        let Ok(chunk) = self.requests.read_chunk(self.requests.slots()) else { return 0 };
        let (start, count) = (out.len(), chunk.len());
        let (first, second) = chunk.as_slices();
        out.extend_from_slice(first);
        out.extend_from_slice(second);
        chunk.commit(count);
        let (mut rest, mut messages) = (out.get(start..).unwrap_or_default(), 0);
        while let Ok(Some((_, length))) = Message::parse(rest) {
            rest = rest.get(length..).unwrap_or_default();
            messages += 1;
        }
        messages
    }

    /// Gives the stream an answer; whether there was room.
    pub fn deliver(&mut self, message: &Message<'_>) -> bool {
        let Some(head) = message.head() else { return false };
        let Ok(room) = self.answers.write_chunk_uninit(HEAD_BYTES + message.data.len()) else { return false };
        room.fill_from_iter(head.into_iter().chain(message.data.iter().copied()));
        self.delivered.fetch_add(1, Ordering::Release);
        true
    }

    /// Whether the worker has let go of its port.
    pub fn is_abandoned(&self) -> bool {
        self.requests.is_abandoned()
    }
}

impl core::fmt::Debug for Desk {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "Desk({}, {:?})", self.stream, self.direction)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Default)]
    struct Count(AtomicU32);
    impl Bell for Count {
        fn ring(&self) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    const GEOMETRY: Geometry = Geometry { rate: 8000, samples: 80, bytes: 10 };

    fn line(direction: Direction) -> (Port, Desk, Arc<Health>, Arc<Count>) {
        let (health, bell) = (Arc::new(Health::default()), Arc::new(Count::default()));
        health.set_alive(true);
        let (port, desk) = port(3, direction, GEOMETRY, health.clone(), bell.clone());
        (port, desk, health, bell)
    }

    fn asked(desk: &mut Desk) -> Vec<(Kind, u32, usize)> {
        let mut bytes = Vec::new();
        desk.collect(&mut bytes);
        let (mut rest, mut all) = (&bytes[..], Vec::new());
        while let Some((message, length)) = Message::parse(rest).unwrap() {
            assert_eq!(message.stream, 3);
            all.push((message.kind, message.sequence, message.data.len()));
            rest = &rest[length..];
        }
        all
    }

    #[test]
    fn frames_go_out_in_order_and_answers_come_back_in_order() {
        let (mut port, mut desk, health, bell) = line(Direction::Decode);
        port.decode(&[1; 10]);
        port.conceal();
        port.decode(&[2; 3]);
        assert_eq!(asked(&mut desk), [(Kind::Frame, 0, 10), (Kind::Lost, 1, 0), (Kind::Frame, 2, 3)]);
        assert_eq!(bell.0.load(Ordering::Relaxed), 3);
        let mut pcm = [0; 80];
        assert_eq!(port.decoded(&mut pcm), None, "no answer yet");
        for sequence in 0..3 {
            let data = [sequence as u8; 160];
            assert!(desk.deliver(&Message { kind: Kind::Frame, stream: 3, sequence, data: &data }));
        }
        for sequence in 0..3i16 {
            assert_eq!(port.decoded(&mut pcm), Some(Ok(80)));
            assert_eq!(pcm, [sequence * 257; 80]);
        }
        assert_eq!(health.faults(), Faults::default());
    }

    #[test]
    fn a_line_goes_round_its_rings_for_long() {
        let (mut port, mut desk, ..) = line(Direction::Encode);
        for round in 0..1000u32 {
            port.encode(&[round as i16; 80]);
            let mut bytes = Vec::new();
            assert_eq!(desk.collect(&mut bytes), 1);
            let (message, _) = Message::parse(&bytes).unwrap().unwrap();
            assert_eq!((message.sequence, message.data[0]), (round, round as u8));
            let data = vec![round as u8; round as usize % 11];
            desk.deliver(&Message { kind: Kind::Frame, data: &data, ..message });
            let mut out = [0; 10];
            assert_eq!(port.encoded(&mut out), Some(Ok(data.len())));
            assert_eq!(out[..data.len()], data);
        }
    }

    #[test]
    fn a_process_that_does_not_answer_is_sent_no_more_than_it_may_hold() {
        let (mut port, mut desk, health, _) = line(Direction::Encode);
        for _ in 0..20 {
            port.encode(&[0; 80]);
        }
        assert_eq!((GEOMETRY.in_flight(), health.faults().full), (12, 8), "120 ms");
        assert_eq!(asked(&mut desk).len(), 12);
        let answer = Message { kind: Kind::Frame, stream: 3, sequence: 11, data: &[9; 10] };
        assert!(desk.deliver(&answer));
        assert_eq!(port.encoded(&mut [0; 10]), Some(Ok(10)), "an answer counts for those before it");
        port.encode(&[0; 80]);
        assert_eq!(asked(&mut desk), [(Kind::Frame, 12, 160)]);
        let wide = Geometry { rate: 32_000, samples: 640, bytes: 120 };
        assert_eq!((wide.in_flight(), Geometry { samples: 1920, ..wide }.in_flight()), (6, 4));
    }

    #[test]
    fn what_dies_with_the_process_is_forgotten_and_counted() {
        let (mut port, mut desk, health, _) = line(Direction::Decode);
        (0..4).for_each(|_| port.decode(&[0; 10]));
        health.set_alive(false);
        (0..3).for_each(|_| port.decode(&[0; 10]));
        assert_eq!(health.faults(), Faults { dead: 3, ..Faults::default() });
        health.set_alive(true);
        asked(&mut desk);
        port.decode(&[0; 10]);
        assert_eq!(asked(&mut desk), [(Kind::Frame, 4, 10)], "the line is of use again");
        let late = Message { kind: Kind::Frame, stream: 3, sequence: 0, data: &[0; 160] };
        desk.deliver(&late);
        assert_eq!(port.decoded(&mut [0; 80]), None, "an answer to something forgotten");
    }

    #[test]
    fn what_died_with_a_process_is_forgotten_by_who_never_looked_while_it_was_dead() {
        let (mut port, mut desk, health, _) = line(Direction::Encode);
        for _ in 0..3 {
            (0..20).for_each(|_| port.encode(&[0; 80]));
            assert_eq!(asked(&mut desk).len(), 12);
            // Its worker lost the processor for as long as it takes to start the process again.
            health.set_alive(false);
            health.set_alive(true);
        }
        assert_eq!(health.faults(), Faults { full: 3 * 8, ..Faults::default() });
    }

    #[test]
    fn answers_of_another_size_and_refusals_are_counted() {
        let (mut port, mut desk, health, _) = line(Direction::Decode);
        (0..4).for_each(|_| port.decode(&[0; 10]));
        asked(&mut desk);
        for (sequence, kind, data) in
            [(0, Kind::Frame, &[0u8; 7][..]), (1, Kind::Error, &[]), (2, Kind::Frame, &[1; 160])]
        {
            desk.deliver(&Message { kind, stream: 3, sequence, data });
        }
        let mut pcm = [0; 80];
        assert_eq!(port.spare(), 3);
        assert_eq!(port.decoded(&mut pcm), Some(Err(Refused)), "of another size");
        assert_eq!(port.decoded(&mut pcm), Some(Err(Refused)), "an error");
        assert_eq!(port.decoded(&mut pcm), Some(Ok(80)));
        assert_eq!(pcm, [257; 80]);
        assert_eq!(health.faults().refused, 2);
        port.decode(&[0; 11]);
        assert_eq!(health.faults().refused, 3, "a frame longer than the codec has");
    }

    #[test]
    fn an_end_let_go_is_seen_at_the_other() {
        let (port, desk, ..) = line(Direction::Encode);
        assert!(!desk.is_abandoned() && !port.is_orphan());
        drop(port);
        assert!(desk.is_abandoned());
        let (port, desk, ..) = line(Direction::Encode);
        drop(desk);
        assert!(port.is_orphan());
    }
}
