//! Digits that leave a line of the twin.

use std::collections::VecDeque;

use base::{Digit, FormatId, Plan};
use codec::{Coders, Encoder, ToneGenerator};
use rtp::{EventPacket, EventSender};

use crate::parts::{network_order, samples};

/// How digits leave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    Event,
    Tone,
    /// Across a tie.
    Edge,
    /// Signalling carries them.
    Nothing,
}

/// What a visit does for a digit.
#[derive(Debug)]
pub enum Turn {
    /// Nothing: the line sends what it sends otherwise.
    Free,
    /// Silence around tones.
    Hush,
    /// The last of the queue has left; ask again.
    AllSent,
    /// An event begins; give it a timestamp by [`Dialler::began`] and ask again.
    Begins(Digit),
    Event(EventPacket),
    Tone(Digit),
    EdgeBegin(Digit),
    EdgeEnd(Digit, u32),
}

struct Current {
    digit: Digit,
    lasted_ms: u32,
    /// `None` while somebody holds the key.
    wanted_ms: Option<u32>,
    /// Its last packets are being repeated.
    ends: bool,
}

pub struct Dialler {
    current: Option<Current>,
    pause_ms: Option<u32>,
    queue: VecDeque<(Digit, u32)>,
    owed: bool,
    sender: EventSender,
    tones: Option<(Encoder, FormatId)>,
    sounding: Option<(Digit, ToneGenerator)>,
}

impl Dialler {
    pub fn new(plan: &Plan, coders: &Coders) -> Self {
        let mut dialler = Self {
            current: None,
            pause_ms: None,
            queue: VecDeque::new(),
            owed: false,
            sender: EventSender::default(),
            tones: None,
            sounding: None,
        };
        dialler.replan(plan, coders);
        dialler
    }
    pub fn replan(&mut self, plan: &Plan, coders: &Coders) {
        if plan.dtmf != base::DtmfMode::Inband {
            self.tones = None;
        } else if self.tones.as_ref().is_none_or(|(_, format)| *format != plan.format) {
            self.tones = Some((coders.encoder(plan.format, &plan.wishes), plan.format));
            self.sounding = None;
        }
    }
    pub fn is_busy(&self) -> bool {
        self.current.is_some() || self.pause_ms.is_some() || !self.queue.is_empty() || self.owed
    }
    /// Whether no sound passes.
    pub fn mutes(&self) -> bool {
        self.current.is_some() || (self.pause_ms.is_some() && self.tones.is_some())
    }
    pub fn queue(&mut self, digit: Digit, ms: u32, owed: bool) -> bool {
        let fits = self.queue.len() < 32;
        if fits {
            self.queue.push_back((digit, ms.clamp(80, 6000)));
            self.owed |= owed;
        }
        fits
    }
    /// The other party presses a key.
    pub fn press(&mut self, digit: Digit) {
        if self.current.is_none() && self.pause_ms.is_none() && self.queue.is_empty() {
            self.current = Some(Current { digit, lasted_ms: 0, wanted_ms: None, ends: false });
        }
    }
    /// It lets go after so long.
    pub fn let_go(&mut self, digit: Digit, ms: u32) {
        match &mut self.current {
            Some(current) if current.digit == digit && current.wanted_ms.is_none() && !current.ends => {
                current.wanted_ms = Some(ms.clamp(80, 6000));
            }
            _ => {
                self.queue(digit, ms, false);
            }
        }
    }
    /// There is no other party any more.
    pub fn let_go_held(&mut self) {
        if let Some(Current { digit, lasted_ms, wanted_ms: None, ends: false }) = self.current {
            self.let_go(digit, lasted_ms);
        }
    }
    pub fn began(&mut self, digit: Digit, timestamp: u32) {
        self.sender.begin(digit, timestamp, u32::MAX);
    }
    /// A visit that stands for `ms` and so many units of the event's clock.
    pub fn turn(&mut self, way: Way, ms: u32, units: u32) -> Turn {
        if way != Way::Event {
            // An event that the peer takes no more of is not gone on with later.
            self.sender = EventSender::default();
        }
        if let Some(left) = self.pause_ms {
            if left > ms {
                self.pause_ms = Some(left - ms);
                return between(way);
            }
            self.pause_ms = None;
        }
        if self.current.is_none() {
            let next = match way {
                Way::Nothing => {
                    self.queue.clear();
                    None
                }
                _ => self.queue.pop_front(),
            };
            let Some((digit, ms)) = next else {
                return if std::mem::take(&mut self.owed) { Turn::AllSent } else { Turn::Free };
            };
            self.current = Some(Current { digit, lasted_ms: 0, wanted_ms: Some(ms), ends: false });
        }
        let Some(current) = &mut self.current else { return Turn::Free };
        if current.ends {
            return match self.sender.next_packet(units) {
                Some(packet) => Turn::Event(packet),
                None => self.pause(way),
            };
        }
        let Current { digit, lasted_ms, wanted_ms, ends } = current;
        let digit = *digit;
        let is_over = |lasted: u32| wanted_ms.is_some_and(|wanted| lasted >= wanted);
        match way {
            Way::Nothing => {
                self.current = None;
                Turn::Free
            }
            Way::Event if !self.sender.is_busy() => Turn::Begins(digit),
            Way::Event => {
                // The last packet states the whole duration.
                if is_over(*lasted_ms + ms) {
                    *ends = true;
                    self.sender.finish(0);
                } else {
                    *lasted_ms += ms;
                }
                self.sender.next_packet(units).map_or(Turn::Hush, Turn::Event)
            }
            Way::Tone if is_over(*lasted_ms) => self.pause(way),
            Way::Tone => {
                *lasted_ms += ms;
                Turn::Tone(digit)
            }
            Way::Edge if is_over(*lasted_ms) => {
                let lasted = *lasted_ms;
                self.pause(way);
                Turn::EdgeEnd(digit, lasted)
            }
            Way::Edge => {
                *lasted_ms += ms;
                if *lasted_ms == ms { Turn::EdgeBegin(digit) } else { Turn::Hush }
            }
        }
    }
    fn pause(&mut self, way: Way) -> Turn {
        self.current = None;
        self.pause_ms = Some(60);
        between(way)
    }
    /// A packet of the digit's tones.
    pub fn tone(&mut self, digit: Digit, ms: u8) -> Vec<u8> {
        let Some((encoder, format)) = &mut self.tones else { return Vec::new() };
        let mut linear = vec![0; samples(format.rate(), ms)];
        if self.sounding.as_ref().is_none_or(|(sounding, _)| *sounding != digit) {
            self.sounding = ToneGenerator::dtmf(digit, format.rate()).map(|tone| (digit, tone));
        }
        if let Some((_, tone)) = &mut self.sounding {
            tone.fill(&mut linear);
        }
        let mut coded = vec![0; format.packet_room(ms.into())];
        let bytes = encoder.encode(&linear, &mut coded);
        if format.is_constant() {
            codec::fill_silence(*format, &mut coded[bytes..]);
        } else {
            coded.truncate(bytes);
        }
        network_order(*format, coded)
    }
}

/// Events let sound pass in the pause between two; tones want silence.
fn between(way: Way) -> Turn {
    if way == Way::Tone { Turn::Hush } else { Turn::Free }
}
