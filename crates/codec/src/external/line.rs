//! A stream's coder that is a line to another process: frame in, answer to an earlier frame out.

use base::{Codec, FormatId};

use super::port::{Port, Refused};

/// Takes of a line after which answers that waited all the time are dropped: half a second of G.729. They are delay that
/// a late answer left behind.
const PACE_FRAMES: u32 = 50;

/// Keeps the delay of a line at what its process needs.
#[derive(Debug)]
struct Pace {
    /// Fewest answers that waited after a take.
    least: u32,
    takes: u32,
    /// An answer came since the process lives: from here on none is late.
    begun: bool,
}

impl Pace {
    const fn new() -> Self {
        Self { least: u32::MAX, takes: 0, begun: false }
    }
    /// A take found an answer, or none; the process lives.
    fn took(&mut self, port: &mut Port, found: bool) {
        if !port.is_alive() {
            *self = Self::new();
            return;
        }
        if !found && self.begun {
            port.count_late();
        }
        self.begun |= found;
        self.least = self.least.min(port.spare());
        self.takes += 1;
        if self.takes == PACE_FRAMES {
            (0..self.least).for_each(|_| port.skip());
            (self.least, self.takes) = (u32::MAX, 0);
        }
    }
}

/// Encodes by another process; what it gives is a packet late.
#[derive(Debug)]
pub(crate) struct LineEncoder {
    port: Port,
    pace: Pace,
}

impl LineEncoder {
    pub(crate) const fn new(port: Port) -> Self {
        Self { port, pace: Pace::new() }
    }
    /// Sends whole frames of `linear`, and gives the bytes of as many earlier ones, as far as they are there.
    pub(crate) fn encode(&mut self, linear: &[i16], coded: &mut [u8]) -> usize {
        let mut written = 0;
        for frame in linear.chunks_exact(self.port.geometry().samples.max(1)) {
            let answer = self.port.encoded(coded.get_mut(written..).unwrap_or_default());
            self.pace.took(&mut self.port, answer.is_some());
            written += answer.and_then(Result::ok).unwrap_or(0);
            self.port.encode(frame);
        }
        written
    }
    pub(crate) fn is_orphan(&self) -> bool {
        self.port.is_orphan()
    }
}

/// Decodes by another process; what it gives is a packet late.
#[derive(Debug)]
pub(crate) struct LineDecoder {
    port: Port,
    pace: Pace,
}

impl LineDecoder {
    pub(crate) const fn new(port: Port) -> Self {
        Self { port, pace: Pace::new() }
    }
    /// Sends the frames of a payload, and gives the samples of as many earlier ones: silence where none are there.
    pub(crate) fn decode(
        &mut self,
        format: FormatId,
        payload: &[u8],
        linear: &mut [i16],
        malformed: &mut u32,
    ) -> usize {
        let mut made = 0;
        for (frame, pcm) in
            frames(format, payload).zip(linear.chunks_exact_mut(self.port.geometry().samples.max(1)))
        {
            made += pcm.len();
            match frame {
                Ok(frame) => {
                    self.take(pcm);
                    self.port.decode(frame);
                }
                Err(Refused) => {
                    *malformed += 1;
                    self.conceal(pcm);
                }
            }
        }
        made
    }
    /// Asks for something in place of what never came.
    pub(crate) fn conceal(&mut self, linear: &mut [i16]) {
        let mut frames = linear.chunks_exact_mut(self.port.geometry().samples.max(1));
        for pcm in &mut frames {
            self.take(pcm);
            self.port.conceal();
        }
        frames.into_remainder().fill(0);
    }
    fn take(&mut self, pcm: &mut [i16]) {
        let answer = self.port.decoded(pcm);
        self.pace.took(&mut self.port, answer.is_some());
        if !matches!(answer, Some(Ok(_))) {
            pcm.fill(0);
        }
    }
    pub(crate) fn is_orphan(&self) -> bool {
        self.port.is_orphan()
    }
}

/// Whether packets of a format fall apart into frames by their bytes alone, so that a codec of its own can have them one
/// by one. The frames of AMR lie bit by bit in a packet (RFC 4867 §4.3).
pub fn has_frames(format: FormatId) -> bool {
    matches!(format.codec(), Codec::G729 | Codec::G723 | Codec::Siren7 | Codec::Siren14)
}

/// The frames of a payload; its last item is an error when what is left is none.
pub(crate) fn frames(format: FormatId, payload: &[u8]) -> impl Iterator<Item = Result<&[u8], Refused>> {
    let mut rest = payload;
    core::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let length = frame_bytes(format, rest);
        let frame = length.and_then(|length| rest.split_at_checked(length));
        let Some((frame, left)) = frame else {
            rest = &[];
            return Some(Err(Refused));
        };
        rest = left;
        Some(Ok(frame))
    })
}

/// Bytes of the first frame.
fn frame_bytes(format: FormatId, payload: &[u8]) -> Option<usize> {
    let usual = format.granule().bytes;
    match format.codec() {
        // A description of silence of two bytes may be the last of a packet (RFC 3551 §4.5.6).
        Codec::G729 => Some(if payload.len() == 2 { 2 } else { usual }),
        // The lowest two bits tell: 6.3 and 5.3 kbit/s, a description of silence, nothing sent (RFC 3551 §4.5.3).
        Codec::G723 => [usual, 20, 4, 1].get(usize::from(payload.first()? & 3)).copied(),
        Codec::Siren7 | Codec::Siren14 => Some(usual),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::external::{Direction, Geometry, Health, Kind, Message, port};
    use std::sync::Arc;

    #[test]
    fn rfc3551_4_5_payloads_fall_into_frames() {
        let lengths = |format, payload: &[u8]| -> Vec<Option<usize>> {
            frames(format, payload).map(|frame| frame.ok().map(<[u8]>::len)).collect()
        };
        for (format, payload, expected) in [
            (FormatId::G729, &[0; 20][..], &[Some(10), Some(10)][..]),
            (FormatId::G729, &[0; 12], &[Some(10), Some(2)]),
            (FormatId::G729, &[0; 2], &[Some(2)]),
            (FormatId::G729, &[0; 13], &[Some(10), None]),
            (FormatId::G729, &[], &[]),
            (FormatId::G723, &[0; 48], &[Some(24), Some(24)]),
            (FormatId::G723, &[1; 20], &[Some(20)]),
            (FormatId::G723, &[2, 0, 0, 0], &[Some(4)]),
            (FormatId::G723, &[0; 20], &[None]),
            (FormatId::SIREN7, &[0; 160], &[Some(80), Some(80)]),
            (FormatId::AMR, &[0; 32], &[None]),
        ] {
            assert_eq!(lengths(format, payload), expected, "{format} {}", payload.len());
        }
    }

    /// A line, and a process that answers each frame of one byte with samples of that number.
    struct Process {
        line: LineDecoder,
        desk: crate::external::Desk,
        health: Arc<Health>,
        asked: Vec<(u32, u8)>,
    }

    impl Process {
        fn new() -> Self {
            struct Quiet;
            impl crate::external::Bell for Quiet {
                fn ring(&self) {}
            }
            let health = Arc::new(Health::default());
            health.set_alive(true);
            let geometry = Geometry { rate: 8000, samples: 80, bytes: 10 };
            let (port, desk) = port(1, Direction::Decode, geometry, health.clone(), Arc::new(Quiet));
            Self { line: LineDecoder::new(port), desk, health, asked: Vec::new() }
        }
        /// A visit of 20 ms: two frames that begin with these numbers; what is heard, a number a frame.
        fn visit(&mut self, numbers: [u8; 2]) -> [i16; 2] {
            let payload: Vec<u8> = numbers.iter().flat_map(|number| [*number; 10]).collect();
            let mut pcm = [99; 160];
            assert_eq!(self.line.decode(FormatId::G729, &payload, &mut pcm, &mut 0), 160);
            let mut bytes = Vec::new();
            self.desk.collect(&mut bytes);
            let mut rest = &bytes[..];
            while let Some((message, length)) = Message::parse(rest).unwrap() {
                self.asked.push((message.sequence, message.data[0]));
                rest = &rest[length..];
            }
            [pcm[0], pcm[80]]
        }
        fn answer(&mut self) {
            for (sequence, number) in self.asked.drain(..) {
                let data: Vec<u8> = [number, 0].repeat(80);
                assert!(self.desk.deliver(&Message { kind: Kind::Frame, stream: 1, sequence, data: &data }));
            }
        }
    }

    #[test]
    fn frames_come_a_packet_late_and_a_late_answer_leaves_no_delay_behind() {
        let mut process = Process::new();
        assert_eq!(process.visit([1, 2]), [0, 0], "nothing has been answered yet");
        process.answer();
        assert_eq!(process.visit([3, 4]), [1, 2]);
        assert_eq!(process.visit([5, 6]), [0, 0], "the answers are late");
        process.answer();
        assert_eq!(process.visit([7, 8]), [3, 4], "heard all the same");
        process.answer();
        let mut heard = [0, 0];
        for number in 0..60u8 {
            heard = process.visit([10 + number, 100 + number]);
            process.answer();
        }
        assert_eq!(heard, [10 + 58, 100 + 58], "a packet late, as in the beginning");
        assert_eq!(process.health.faults().late, 2);
    }

    #[test]
    fn after_the_process_died_and_lives_again_the_line_goes_on_as_in_the_beginning() {
        let mut process = Process::new();
        process.visit([1, 2]);
        process.answer();
        assert_eq!(process.visit([3, 4]), [1, 2]);
        process.health.set_alive(false);
        assert_eq!(process.visit([5, 6]), [0, 0]);
        assert_eq!(process.visit([7, 8]), [0, 0]);
        process.asked.clear();
        process.health.set_alive(true);
        assert_eq!(process.visit([9, 10]), [0, 0]);
        process.answer();
        assert_eq!(process.visit([11, 12]), [9, 10]);
        let faults = process.health.faults();
        assert_eq!((faults.dead, faults.late, faults.full), (4, 0, 0));
    }
}
