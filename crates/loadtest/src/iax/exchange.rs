//! Registrations under way: what was said, what is expected, and when it is said again.

use std::collections::VecDeque;
use std::time::Duration;

use base::Instant;
use iax2::Secret;
use iax2::frame::{Command, Datagram, Element, Fields, Full, Kind, parse, write_element};

use super::RegistrationReport;
use super::sources::{Place, Sources};

/// How long an answer is waited for before a frame is sent again.
const REPEAT: Duration = Duration::from_secs(1);
/// Times that a frame is sent.
const TRIES: u8 = 5;
/// Numbers of ours: each place could have as many, but one for all exchanges finds them by it.
const NUMBERS: u16 = 0x7fff;

/// What was sent last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// A request for a token.
    Asked,
    /// The request with it.
    Begun,
    /// The request with the proof.
    Proving,
}

#[derive(Debug)]
struct Exchange {
    begun: Instant,
    peer: u32,
    place: Place,
    stage: Stage,
    theirs: u16,
    tries: u8,
    /// The frame that was sent last.
    frame: Vec<u8>,
    /// Counts the frames that this number has sent, so that a moment to repeat one that is answered is none.
    turn: u32,
}

/// All that are under way, by their number.
#[derive(Debug)]
pub(super) struct Exchanges {
    name: String,
    secret: Secret,
    refresh: u16,
    slots: Vec<Option<Exchange>>,
    /// The number that has rested longest is used first.
    free: VecDeque<u16>,
    turns: u32,
    due: VecDeque<(Instant, u16, u32)>,
    pub(super) counted: RegistrationReport,
}

impl Exchanges {
    pub(super) fn new(name: String, secret: &str, refresh: u16) -> Self {
        Self {
            name,
            secret: Secret::new(secret.as_bytes()),
            refresh,
            slots: (0..=NUMBERS).map(|_| None).collect(),
            free: (1..=NUMBERS).collect(),
            turns: 0,
            due: VecDeque::new(),
            counted: RegistrationReport::default(),
        }
    }
    /// A peer begins to register.
    pub(super) fn begin(&mut self, now: Instant, peer: u32, place: Place, sources: &mut Sources) {
        let Some(number) = self.free.pop_front() else {
            self.counted.skipped += 1;
            return;
        };
        let exchange = Exchange {
            begun: now,
            peer,
            place,
            stage: Stage::Asked,
            theirs: 0,
            tries: 0,
            frame: Vec::with_capacity(96),
            turn: 0,
        };
        if let Some(slot) = self.slots.get_mut(usize::from(number)) {
            *slot = Some(exchange);
        }
        self.counted.begun += 1;
        self.say(now, number, Stage::Asked, Element::CallToken(b""), sources);
    }
    /// Sends what nobody has answered in time again, or gives up.
    pub(super) fn repeat(&mut self, now: Instant, sources: &mut Sources) {
        while let Some((_, number, turn)) = self.due.pop_front_if(|(at, ..)| *at <= now) {
            let Some(slot) = self.slots.get_mut(usize::from(number)) else { continue };
            let Some(exchange) = slot.as_mut().filter(|exchange| exchange.turn == turn) else { continue };
            exchange.tries += 1;
            if exchange.tries >= TRIES {
                self.counted.lost += 1;
                *slot = None;
                self.free.push_back(number);
                continue;
            }
            self.counted.repeated += 1;
            if let Some(dest) = exchange.frame.get_mut(2) {
                *dest |= 0x80;
            }
            sources.send(exchange.place, &exchange.frame);
            self.due.push_back((now + REPEAT, number, turn));
        }
    }
    /// Takes what came to a place of ours.
    pub(super) fn take(&mut self, now: Instant, place: Place, bytes: &[u8], sources: &mut Sources) {
        let Ok(Datagram::Full(frame)) = parse(bytes) else { return };
        let (number, Kind::Iax(command)) = (frame.dest, frame.kind) else { return };
        let slot = self.slots.get_mut(usize::from(number)).and_then(Option::as_mut);
        let Some(exchange) = slot.filter(|exchange| exchange.place == place) else {
            // A confirmation again, because our acknowledgement is lost.
            if command == Command::REGACK {
                acknowledge(&frame, 2, place, sources);
            }
            return;
        };
        let Some(fields) = Fields::collect(frame.data) else { return };
        match (exchange.stage, command) {
            (Stage::Asked, Command::CALLTOKEN) => {
                let token = fields.token.unwrap_or_default();
                self.say(now, number, Stage::Begun, Element::CallToken(token), sources);
            }
            (Stage::Begun, Command::REGAUTH) => {
                exchange.theirs = frame.source;
                let answer = self.secret.answer(fields.challenge.unwrap_or_default());
                let answer = answer.unwrap_or_default();
                self.say(now, number, Stage::Proving, Element::Md5Result(&answer), sources);
            }
            (Stage::Begun | Stage::Proving, Command::REGACK) => {
                acknowledge(&frame, frame.oseq.wrapping_add(1), place, sources);
                self.counted.registered += 1;
                self.counted.time.add(now.since(exchange.begun));
                self.end(number);
            }
            (_, Command::REGREJ | Command::INVAL) => {
                if command == Command::REGREJ && exchange.theirs != 0 {
                    acknowledge(&frame, frame.oseq.wrapping_add(1), place, sources);
                }
                self.counted.refused += 1;
                self.end(number);
            }
            // An acknowledgement, or an answer that came twice.
            _ => {}
        }
    }
    fn end(&mut self, number: u16) {
        if let Some(slot) = self.slots.get_mut(usize::from(number)) {
            *slot = None;
            self.free.push_back(number);
        }
    }
    /// Sends the request of a stage, with what belongs to it.
    fn say(&mut self, now: Instant, number: u16, stage: Stage, with: Element<'_>, sources: &mut Sources) {
        let Some(Some(exchange)) = self.slots.get_mut(usize::from(number)) else { return };
        let peer = format!("{}{}", self.name, exchange.peer);
        let mut data = Vec::with_capacity(80);
        write_element(&Element::Username(peer.as_bytes()), &mut data);
        write_element(&Element::Refresh(self.refresh), &mut data);
        write_element(&with, &mut data);
        // A request with a token begins anew; the proof is the second frame of its exchange.
        let turn = u8::from(stage == Stage::Proving);
        let frame = Full {
            source: number,
            dest: exchange.theirs,
            again: false,
            timestamp: u32::try_from(now.since(exchange.begun).as_millis()).unwrap_or(u32::MAX),
            oseq: turn,
            iseq: turn,
            kind: Kind::Iax(Command::REGREQ),
            data: &data,
        };
        exchange.frame.clear();
        frame.write(&mut exchange.frame);
        self.turns = self.turns.wrapping_add(1);
        (exchange.stage, exchange.tries, exchange.turn) = (stage, 0, self.turns);
        sources.send(exchange.place, &exchange.frame);
        self.due.push_back((now + REPEAT, number, self.turns));
    }
}

/// Acknowledges a frame (RFC 5456 §6.9.1).
fn acknowledge(frame: &Full<'_>, iseq: u8, place: Place, sources: &mut Sources) {
    let (kind, data): (_, &[u8]) = (Kind::Iax(Command::ACK), &[]);
    let (source, dest, timestamp) = (frame.dest, frame.source, frame.timestamp);
    let ack = Full { source, dest, again: false, timestamp, oseq: frame.iseq, iseq, kind, data };
    let mut bytes = Vec::with_capacity(iax2::frame::FULL_BYTES);
    ack.write(&mut bytes);
    sources.send(place, &bytes);
}
