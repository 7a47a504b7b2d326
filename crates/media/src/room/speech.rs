//! What listeners of a room are sent: one encoder for all who hear the same in the same format, and one of its own for
//! everyone who hears something else.

use base::{Codec, FormatId, SampleRate, Wishes};
use codec::Coders;

use crate::ear::Fifo;
use crate::mouth::Mouth;
use crate::room::{ROUND_MS_MAX, Ways};

/// Longest packet, milliseconds.
const PTIME_MS_MAX: usize = 60;
/// How long a member must have heard the same as the others before it shares their encoder again: over it the states of
/// two encoders with the same input come close enough for no decoder to stumble.
const ALIKE_MS: u32 = 1000;

/// Samples on their way into packets of a length that need not be that of a mix.
#[derive(Debug)]
pub(crate) struct Speech {
    pcm: Fifo,
    /// Taken out only while a group borrows it.
    pub(crate) mouth: Option<Box<Mouth>>,
    /// The samples of one packet.
    packet: usize,
    /// A packet's samples are in the mouth.
    pub(crate) ready: bool,
}

impl Speech {
    pub(crate) fn new(rate: SampleRate, ways: Ways, coders: &Coders) -> Self {
        let Ways { format, ptime_ms, wishes, .. } = ways;
        let packet = rate.0 as usize * usize::from(ptime_ms) / 1000;
        let room = rate.0 as usize * (PTIME_MS_MAX + usize::from(ROUND_MS_MAX)) / 1000;
        let mouth = Some(Box::new(Mouth::new(rate, format, wishes, coders)));
        Self { pcm: Fifo::new(room), mouth, packet, ready: false }
    }
    /// Whether its encoder is of no use any more.
    pub(crate) fn is_orphan(&self) -> bool {
        self.mouth.as_ref().is_some_and(|mouth| mouth.is_orphan())
    }
    /// How much of the next packet, one of `ptime_ms`, is there.
    pub(crate) fn begun_ms(&self, ptime_ms: u8) -> u32 {
        (self.pcm.len() * usize::from(ptime_ms)).div_ceil(self.packet.max(1)) as u32
    }
    /// Takes one mix.
    pub(crate) fn feed(&mut self, mix: &[i16]) {
        if self.pcm.len() == 0 && mix.len() == self.packet {
            self.listen_to(Some(mix));
        } else {
            self.push(mix);
            self.listen_to(None);
        }
    }
    /// Takes one mix that nobody is sent: only the place in the packet goes on.
    pub(crate) fn pass(&mut self, mix: &[i16]) {
        if self.pcm.len() != 0 || mix.len() != self.packet {
            self.push(mix);
            while self.pcm.len() >= self.packet.max(1) {
                self.pcm.skip(self.packet);
            }
        }
        self.ready = false;
    }
    /// The packet has been sent; the next one may be there already.
    pub(crate) fn sent(&mut self) {
        self.listen_to(None);
    }
    /// Goes on where another one stands.
    pub(crate) fn take_over(&mut self, from: &Self) {
        self.pcm.skip(usize::MAX);
        self.push(from.pcm.filled());
        self.ready = false;
        if let (Some(mouth), Some(other)) = (&mut self.mouth, &from.mouth) {
            mouth.take_over(other);
        }
    }
    fn push(&mut self, samples: &[i16]) {
        self.pcm.push_with(samples.len(), |room| {
            room.iter_mut().zip(samples).map(|(to, from)| *to = *from).count()
        });
    }
    fn listen_to(&mut self, mix: Option<&[i16]>) {
        self.ready = mix.is_some() || self.pcm.len() >= self.packet.max(1);
        let Some(mouth) = self.mouth.as_mut().filter(|_| self.ready) else { return };
        match mix {
            Some(mix) => mouth.listen(mix),
            None => {
                mouth.listen(self.pcm.filled().get(..self.packet).unwrap_or_default());
                self.pcm.skip(self.packet);
            }
        }
    }
}

/// A format and packet length of a room, and what all who only listen in it are sent.
#[derive(Debug)]
pub(crate) struct Voice {
    pub(crate) format: FormatId,
    pub(crate) ptime_ms: u8,
    pub(crate) wishes: Wishes,
    /// Index of the bus that it hears.
    pub(crate) bus: usize,
    pub(crate) speech: Speech,
    /// The packet that all are sent.
    pub(crate) coded: Box<[u8]>,
    pub(crate) bytes: usize,
    /// Members who are sent it.
    pub(crate) listeners: usize,
}

impl Voice {
    pub(crate) fn new(ways: Ways, bus: usize, rate: SampleRate, coders: &Coders) -> Self {
        let Ways { format, ptime_ms, wishes, .. } = ways;
        let coded = vec![0; format.packet_room(u16::from(ptime_ms))].into();
        let speech = Speech::new(rate, ways, coders);
        Self { format, ptime_ms, wishes, bus, speech, coded, bytes: 0, listeners: 0 }
    }
    /// Whether it serves for a member with these ways.
    pub(crate) fn fits(&self, ways: Ways) -> bool {
        (self.format, self.ptime_ms, self.wishes) == (ways.format, ways.ptime_ms, ways.wishes)
            && !self.speech.is_orphan()
    }
    /// What it stands for.
    pub(crate) fn ways(&self) -> Ways {
        let Self { format, ptime_ms, wishes, .. } = *self;
        Ways { heard: format, format, ptime_ms, wishes }
    }
    /// How long a member must have heard what all hear before it is sent what all are sent, milliseconds.
    pub(crate) fn alike_ms(&self) -> u32 {
        match self.format.codec() {
            Codec::Ulaw | Codec::Alaw | Codec::Slin => 0,
            _ => ALIKE_MS,
        }
    }
}
