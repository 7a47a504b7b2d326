//! Digits that leave: queued by command or passed on from a bridged peer, as events, as tones, or across a tie.

use base::{Digit, DtmfMode, Plan};
use codec::{Coders, Encoder, ToneGenerator};
use rtp::{EventPacket, EventSender};

use crate::ear::FRAME_SAMPLES_MAX;
use crate::mouth::to_network_order;

/// Digits that may wait; the contract with signalling.
const QUEUE_MAX: usize = 32;
/// Pause after a digit, milliseconds (the field's least is 40).
const GAP_MS: u32 = 60;
/// Shortest and longest digit, milliseconds.
const DURATION_MS: core::ops::RangeInclusive<u32> = 80..=6000;

/// How digits leave one stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Event,
    Tone,
    /// To the tied partner, as edges.
    Edge,
    /// Signalling carries them.
    Nothing,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Idle,
    Sending {
        digit: Digit,
        lasted_ms: u32,
        /// `u32::MAX` while a passed-on digit is held.
        wanted_ms: u32,
    },
    /// Final packets of an event.
    Ending,
    Gap {
        left_ms: u32,
    },
}

/// What one visit is to send for a digit.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// No digit: the stream sends what it sends otherwise.
    Free,
    /// Nothing at all: the pause between digits.
    Hush,
    /// A digit is to begin as an event; call [`Digits::event_began`] with its timestamp, then step again.
    BeginEvent(Digit),
    /// This telephone-event packet.
    Event(EventPacket),
    /// A frame of tone, made by [`Digits::tone`].
    Tone,
    /// The partner's digit begins.
    EdgeBegin(Digit),
    /// The partner's digit ends.
    EdgeEnd(Digit, u32),
    /// The queue has drained.
    AllSent,
}

/// Two tones and their encoder; built with the plan.
#[derive(Debug)]
struct ToneVoice {
    encoder: Encoder,
    /// The digit that sounds; the flash has no tone.
    sounding: Option<(Digit, ToneGenerator)>,
}

/// Digits that leave one stream.
#[derive(Debug)]
pub(crate) struct Digits {
    sender: EventSender,
    state: State,
    queue: [Option<(Digit, u16)>; QUEUE_MAX],
    queued: usize,
    /// [`base::Event::DigitsSent`] is owed.
    owed: bool,
    tones: Option<Box<ToneVoice>>,
}

impl Digits {
    pub(crate) fn new(plan: &Plan, coders: &Coders) -> Self {
        let mut digits = Self {
            sender: EventSender::default(),
            state: State::Idle,
            queue: [None; QUEUE_MAX],
            queued: 0,
            owed: false,
            tones: None,
        };
        digits.replan(plan, coders);
        digits
    }
    pub(crate) fn replan(&mut self, plan: &Plan, coders: &Coders) {
        if plan.dtmf != DtmfMode::Inband {
            self.tones = None;
        } else if self
            .tones
            .as_ref()
            .is_none_or(|voice| voice.encoder.format() != plan.format || voice.encoder.is_orphan())
        {
            let encoder = coders.encoder(plan.format, &plan.wishes);
            self.tones = Some(Box::new(ToneVoice { encoder, sounding: None }));
        }
    }
    pub(crate) fn is_busy(&self) -> bool {
        self.state != State::Idle || self.queued > 0 || self.owed
    }
    /// Whether audio that arrives now is not to be passed on.
    pub(crate) fn mutes_relay(&self) -> bool {
        match self.state {
            State::Idle => false,
            State::Sending { .. } | State::Ending => true,
            State::Gap { .. } => self.tones.is_some(),
        }
    }
    /// Queues one; false when there is no room.
    pub(crate) fn queue(&mut self, digit: Digit, duration_ms: u32, owed: bool) -> bool {
        let Some(slot) = self.queue.get_mut(self.queued) else { return false };
        let duration = duration_ms.clamp(*DURATION_MS.start(), *DURATION_MS.end());
        *slot = Some((digit, duration as u16));
        self.queued += 1;
        self.owed |= owed;
        true
    }
    /// A bridged peer began a digit: it is held until [`Self::release`]; while others are leaving it waits its turn.
    pub(crate) fn hold(&mut self, digit: Digit) {
        if self.state == State::Idle && self.queued == 0 {
            self.state = State::Sending { digit, lasted_ms: 0, wanted_ms: u32::MAX };
        }
    }
    /// The bridged peer ended its digit.
    pub(crate) fn release(&mut self, digit: Digit, lasted: u32) {
        match &mut self.state {
            State::Sending { digit: held, wanted_ms, .. } if *held == digit && *wanted_ms == u32::MAX => {
                *wanted_ms = lasted.clamp(*DURATION_MS.start(), *DURATION_MS.end());
            }
            State::Idle | State::Sending { .. } | State::Ending | State::Gap { .. } => {
                self.queue(digit, lasted, false);
            }
        }
    }
    /// The bridge is gone: a digit that is held ends.
    pub(crate) fn release_held(&mut self) {
        if let State::Sending { digit, lasted_ms, wanted_ms: u32::MAX } = self.state {
            self.release(digit, lasted_ms);
        }
    }
    /// The event of [`Step::BeginEvent`] has this timestamp.
    pub(crate) fn event_began(&mut self, digit: Digit, timestamp: u32) {
        self.sender.begin(digit, timestamp, u32::MAX);
    }
    /// What to do in a visit that stands for `ms` and `units` of the event's clock.
    pub(crate) fn step(&mut self, mode: DtmfMode, internal: bool, ms: u32, units: u32) -> Step {
        let way = match mode {
            _ if internal => Way::Edge,
            DtmfMode::Rfc4733 { .. } => Way::Event,
            DtmfMode::Inband => Way::Tone,
            DtmfMode::Signalling => Way::Nothing,
        };
        if way != Way::Event && self.sender.is_busy() {
            // The peer has stopped to take events: what is left of one has no payload type any more.
            self.sender = EventSender::default();
        }
        match self.state {
            State::Idle => self.next_in_queue(way, ms, units),
            State::Sending { digit, lasted_ms, wanted_ms } => {
                self.go_on(way, digit, lasted_ms, wanted_ms, ms, units)
            }
            State::Ending => match self.sender.next_packet(units) {
                Some(packet) => Step::Event(packet),
                None => self.pause(way),
            },
            State::Gap { left_ms } if left_ms > ms => {
                self.state = State::Gap { left_ms: left_ms - ms };
                self.between(way)
            }
            State::Gap { .. } => {
                self.state = State::Idle;
                self.next_in_queue(way, ms, units)
            }
        }
    }
    /// Fills one packet with the tones of the digit that is being sent; returns its bytes.
    pub(crate) fn tone(&mut self, wire: &mut [u8], samples: usize) -> usize {
        let State::Sending { digit, .. } = self.state else { return 0 };
        let Some(voice) = &mut self.tones else { return 0 };
        let mut linear = [0; FRAME_SAMPLES_MAX];
        let linear = linear.get_mut(..samples).unwrap_or_default();
        if voice.sounding.as_ref().is_none_or(|(sounding, _)| *sounding != digit) {
            voice.sounding =
                ToneGenerator::dtmf(digit, voice.encoder.format().rate()).map(|tone| (digit, tone));
        }
        if let Some((_, tone)) = &mut voice.sounding {
            tone.fill(linear);
        }
        let written = voice.encoder.encode(linear, wire);
        let format = voice.encoder.format();
        if !voice.encoder.fills_packets() {
            return written;
        }
        codec::fill_silence(format, wire.get_mut(written..).unwrap_or_default());
        to_network_order(format, wire);
        wire.len()
    }

    fn next_in_queue(&mut self, way: Way, ms: u32, units: u32) -> Step {
        let first = self.queue.first().copied().flatten();
        let Some((digit, duration)) = first.filter(|_| self.queued > 0) else {
            let step = if self.owed { Step::AllSent } else { Step::Free };
            self.owed = false;
            return step;
        };
        self.queue.copy_within(1.., 0);
        self.queued -= 1;
        let wanted_ms = u32::from(duration);
        if way == Way::Nothing {
            return self.next_in_queue(way, ms, units);
        }
        self.state = State::Sending { digit, lasted_ms: 0, wanted_ms };
        self.go_on(way, digit, 0, wanted_ms, ms, units)
    }
    fn go_on(&mut self, way: Way, digit: Digit, lasted_ms: u32, wanted_ms: u32, ms: u32, units: u32) -> Step {
        if way == Way::Nothing {
            self.state = State::Idle;
            return Step::Free;
        }
        if way == Way::Event && !self.sender.is_busy() {
            return Step::BeginEvent(digit);
        }
        // As an event the last packet states the whole duration; tones and edges need a visit more to have lasted it.
        let over = match way {
            Way::Event => lasted_ms.saturating_add(ms) >= wanted_ms,
            Way::Tone | Way::Edge | Way::Nothing => lasted_ms >= wanted_ms,
        };
        if !over {
            self.state = State::Sending { digit, lasted_ms: lasted_ms.saturating_add(ms), wanted_ms };
            return match way {
                Way::Event => self.sender.next_packet(units).map_or(Step::Hush, Step::Event),
                Way::Tone => Step::Tone,
                Way::Edge | Way::Nothing if lasted_ms == 0 => Step::EdgeBegin(digit),
                Way::Edge | Way::Nothing => Step::Hush,
            };
        }
        match way {
            Way::Event => {
                self.sender.finish(0);
                self.state = State::Ending;
                self.sender.next_packet(units).map_or(Step::Hush, Step::Event)
            }
            Way::Tone => self.pause(way),
            Way::Edge | Way::Nothing => {
                self.pause(way);
                Step::EdgeEnd(digit, lasted_ms)
            }
        }
    }
    fn pause(&mut self, way: Way) -> Step {
        self.state = State::Gap { left_ms: GAP_MS };
        self.between(way)
    }
    /// The pause between two digits: tones want silence around them, events let the audio pass.
    fn between(&self, way: Way) -> Step {
        if way == Way::Tone { Step::Hush } else { Step::Free }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn digits(dtmf: DtmfMode) -> Digits {
        Digits::new(&crate::stream::testing::plan(dtmf), &Coders::default())
    }
    fn digit(symbol: char) -> Digit {
        Digit::from_char(symbol).unwrap()
    }
    /// One visit as text.
    fn visit(digits: &mut Digits, mode: DtmfMode, internal: bool) -> String {
        loop {
            return match digits.step(mode, internal, 20, 160) {
                Step::BeginEvent(digit) => {
                    digits.event_began(digit, 1000);
                    continue;
                }
                Step::Event(packet) => {
                    let event = rtp::EventPayload::parse(&packet.payload).unwrap();
                    format!("{}{}{}", event.event, if event.end { "E" } else { "e" }, event.duration)
                }
                Step::Free => "free".into(),
                Step::Hush => "hush".into(),
                Step::Tone => "tone".into(),
                Step::EdgeBegin(d) => format!("begin {}", d.to_char()),
                Step::EdgeEnd(d, ms) => format!("end {} {ms}", d.to_char()),
                Step::AllSent => "sent".into(),
            };
        }
    }
    const RFC4733: DtmfMode = DtmfMode::Rfc4733 { payload: 101, clock: 8000 };

    #[test]
    fn rfc4733_2_5_1_queued_digits_leave_one_after_another_with_a_pause() {
        let mut out = digits(RFC4733);
        assert!(out.queue(digit('1'), 100, true) && out.queue(digit('2'), 80, true));
        let seen: Vec<_> = (0..18).map(|_| visit(&mut out, RFC4733, false)).collect();
        let one = ["1e160", "1e320", "1e480", "1e640", "1E800", "1E800", "1E800", "free", "free", "free"];
        let two = ["2e160", "2e320", "2e480", "2E640", "2E640", "2E640", "free", "free"];
        assert_eq!(seen, [&one[..], &two[..]].concat());
        assert_eq!(visit(&mut out, RFC4733, false), "free");
        assert_eq!(visit(&mut out, RFC4733, false), "sent");
        assert_eq!(visit(&mut out, RFC4733, false), "free");
    }

    #[test]
    fn a_digit_that_a_peer_holds_lasts_until_it_lets_go() {
        let mut out = digits(RFC4733);
        out.hold(digit('5'));
        for n in 1..=10 {
            assert_eq!(visit(&mut out, RFC4733, false), format!("5e{}", n * 160));
        }
        out.release(digit('5'), 200);
        let seen: Vec<_> = (0..7).map(|_| visit(&mut out, RFC4733, false)).collect();
        assert_eq!(seen, ["5E1760", "5E1760", "5E1760", "free", "free", "free", "free"]);
    }

    #[test]
    fn tones_edges_and_signalling_each_take_their_time() {
        let mut tones = digits(DtmfMode::Inband);
        tones.queue(digit('9'), 80, true);
        let seen: Vec<_> = (0..8).map(|_| visit(&mut tones, DtmfMode::Inband, false)).collect();
        assert_eq!(seen, ["tone", "tone", "tone", "tone", "hush", "hush", "hush", "sent"]);
        let mut edges = digits(DtmfMode::Signalling);
        edges.queue(digit('9'), 80, true);
        let seen: Vec<_> = (0..8).map(|_| visit(&mut edges, DtmfMode::Signalling, true)).collect();
        assert_eq!(seen, ["begin 9", "hush", "hush", "hush", "end 9 80", "free", "free", "sent"]);
        let mut nothing = digits(DtmfMode::Signalling);
        nothing.queue(digit('9'), 80, true);
        assert_eq!(visit(&mut nothing, DtmfMode::Signalling, false), "sent");
    }

    #[test]
    fn rfc3264_8_a_new_answer_without_events_ends_one_that_is_being_sent() {
        let (inband, info) = (DtmfMode::Inband, DtmfMode::Signalling);
        for (name, visits, mode, expected) in [
            ("held, then tones", 2, inband, ["tone", "tone", "tone", "hush"]),
            ("held, then signalling", 2, info, ["free", "sent", "free", "free"]),
            ("ending, then tones", 5, inband, ["hush", "hush", "hush", "sent"]),
            ("ending, then signalling", 5, info, ["free", "free", "free", "sent"]),
        ] {
            let mut out = digits(RFC4733);
            out.queue(digit('1'), 100, true);
            for _ in 0..visits {
                visit(&mut out, RFC4733, false);
            }
            out.replan(&crate::stream::testing::plan(mode), &Coders::default());
            let seen: Vec<_> = (0..4).map(|_| visit(&mut out, mode, false)).collect();
            assert_eq!(seen, expected, "{name}");
            // With events again, the next digit is an event of its own.
            out.replan(&crate::stream::testing::plan(RFC4733), &Coders::default());
            out.queue(digit('2'), 80, false);
            let seen: Vec<_> = (0..8).map(|_| visit(&mut out, RFC4733, false)).collect();
            assert!(seen.contains(&"2e160".to_owned()), "{name}: {seen:?}");
        }
    }

    #[test]
    fn the_queue_is_bounded() {
        let mut out = digits(RFC4733);
        assert!((0..QUEUE_MAX).all(|_| out.queue(digit('1'), 100, true)));
        assert!(!out.queue(digit('1'), 100, true));
    }
}
