//! The two ends of one leg: numbers, sequence, timestamps, keys. It knows how frames are sent, not what they mean.

use super::out::Out;
use crate::cipher::{Cipher, FULL_CLEAR, MINI_CLEAR};
use crate::frame::{Command, Full, Kind, Mini, NUMBER_MASK, Video};
use crate::window::{Due, Pending, ROUND_TRIP_FIRST, Window, first_wait};
use base::hash::Randomness;
use base::{Instant, answer_octets, datagram_overhead};
use core::net::{IpAddr, SocketAddr};
use core::time::Duration;

/// Where a number comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Space {
    /// Unique on the socket.
    Shared,
    /// Unique on the socket, of the upper half.
    Trunked,
    /// Unique for the remote.
    Own,
}

/// The keys of both directions, and those before them while frames under them may be on their way.
#[derive(Debug)]
pub(crate) struct Keys {
    seal: Cipher,
    seal_before: Option<Cipher>,
    open: Cipher,
    open_before: Option<Cipher>,
    /// Counts the keys that were used to seal.
    turn: u32,
}

impl Keys {
    pub(crate) fn new(key: &[u8; 16]) -> Box<Self> {
        let cipher = Cipher::new(key);
        Box::new(Self { seal: cipher.clone(), seal_before: None, open: cipher, open_before: None, turn: 0 })
    }
    /// From the next frame on we seal with another key.
    pub(crate) fn turn_seal(&mut self, key: &[u8; 16]) {
        self.seal_before = Some(core::mem::replace(&mut self.seal, Cipher::new(key)));
        self.turn = self.turn.wrapping_add(1);
    }
    /// From the next frame on the other side seals with another key.
    pub(crate) fn turn_open(&mut self, key: &[u8; 16]) {
        self.open_before = Some(core::mem::replace(&mut self.open, Cipher::new(key)));
    }
    fn sealer(&self, turn: u32) -> &Cipher {
        match &self.seal_before {
            Some(before) if turn != self.turn => before,
            _ => &self.seal,
        }
    }
    /// Puts the frame in the clear into `opened`, under the key that makes something of it that `fits`.
    pub(crate) fn open(
        &self,
        bytes: &[u8],
        clear: usize,
        opened: &mut Vec<u8>,
        fits: impl Fn(&[u8]) -> bool,
    ) -> bool {
        let mut each = [Some(&self.open), self.open_before.as_ref()].into_iter().flatten();
        each.any(|cipher| cipher.open(bytes, clear, opened) && fits(opened))
    }
}

/// A message of the protocol on a leg.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Message {
    /// From us, or to us.
    pub sent: bool,
    /// Which.
    pub command: Command,
}

/// One leg's transport. What voice needs comes first, in one line of the cache.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Link {
    pub(crate) born: Instant,
    /// Apart, because they are ten times as long as all the rest, and most legs have none.
    pub(crate) keys: Option<Box<Keys>>,
    pub(crate) remote: SocketAddr,
    pub(crate) ours: u16,
    /// 0 until the other side has said it.
    pub(crate) theirs: u16,
    pub(crate) space: Space,
    /// The number of the frame that is expected next.
    pub(crate) iseq: u8,
    pub(crate) round_trip: Duration,
    /// Whether the other side has shown that it knows our number.
    pub(crate) met: bool,
    /// Octets that may still be sent to a side that has shown neither that nor a token: it may be anybody's address.
    allowance: Option<usize>,
    window: Window,
    last_stamp: u32,
    /// Sequenced frames sent; tells whether an answer has acknowledged already.
    sent: u32,
    /// Whether a frame was repeated because nobody had acknowledged it.
    repeated: bool,
    /// The first and the latest message of the protocol, for people.
    messages: Option<(Message, Message)>,
    /// Where voice is put together before it is enciphered.
    plain: Vec<u8>,
}

impl Link {
    pub(crate) fn new(remote: SocketAddr, ours: u16, theirs: u16, space: Space, now: Instant) -> Self {
        Self {
            remote,
            ours,
            theirs,
            space,
            born: now,
            keys: None,
            iseq: 0,
            round_trip: ROUND_TRIP_FIRST,
            met: false,
            allowance: None,
            window: Window::default(),
            last_stamp: 0,
            sent: 0,
            repeated: false,
            messages: None,
            plain: Vec::new(),
        }
    }

    /// Milliseconds since the leg began.
    pub(crate) fn clock(&self, now: Instant) -> u32 {
        (now - self.born).as_millis() as u32
    }
    pub(crate) const fn sent(&self) -> u32 {
        self.sent
    }
    /// Whether a frame was repeated, so that an answer may be one to an earlier copy.
    pub(crate) const fn has_repeated(&self) -> bool {
        self.repeated
    }
    /// The number of the frame that is sent next, and of the one that is expected next.
    pub(crate) fn sequence(&self) -> (u8, u8) {
        (self.window.next(), self.iseq)
    }
    /// The first and the latest message of the protocol.
    pub(crate) const fn messages(&self) -> Option<(Message, Message)> {
        self.messages
    }
    /// Notes a frame that goes or has come.
    pub(crate) fn note(&mut self, sent: bool, kind: Kind) {
        if let Kind::Iax(command) = kind {
            let message = Message { sent, command };
            self.messages = Some((self.messages.map_or(message, |(first, _)| first), message));
        }
    }
    /// Whether the other side has acknowledged everything.
    pub(crate) fn is_quiet(&self) -> bool {
        self.window.is_empty()
    }
    pub(crate) fn acknowledge(&mut self, iseq: u8) {
        self.window.acknowledge(iseq);
    }
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.window.deadline()
    }
    /// A datagram of so many octets came from a side that has shown nothing yet: it may be answered by one and a half
    /// times as much, with IP and UDP around both.
    pub(crate) fn bound(&mut self, octets: usize) {
        let more = answer_octets(octets + datagram_overhead(self.remote.ip()));
        self.allowance = Some(self.allowance.unwrap_or(0).saturating_add(more));
    }
    /// The same of a further one, or the side has shown that it receives what is sent to it.
    pub(crate) fn heard(&mut self, octets: usize) {
        match self.allowance {
            Some(_) if self.met => self.allowance = None,
            Some(_) => self.bound(octets),
            None => {}
        }
    }
    /// Begins anew under the same number: a NEW that goes out again with a token, or a transferred call.
    pub(crate) fn restart(&mut self) {
        self.window.reset();
        self.iseq = 0;
        self.theirs = 0;
        self.met = false;
    }

    /// Sends a full frame, timed with the next moment; `false` when too many wait to be acknowledged, which those that end
    /// a leg do not heed.
    pub(crate) fn full(
        &mut self,
        now: Instant,
        kind: Kind,
        data: &[u8],
        random: &mut Randomness,
        out: &mut Out,
    ) -> bool {
        let stamp = self.clock(now).max(self.last_stamp.wrapping_add(1));
        let sent = self.full_at(now, stamp, kind, data, random, out);
        if sent {
            self.last_stamp = stamp;
        }
        sent
    }

    /// Sends a full frame with this timestamp: answers carry that of the question.
    pub(crate) fn full_at(
        &mut self,
        now: Instant,
        timestamp: u32,
        kind: Kind,
        data: &[u8],
        random: &mut Randomness,
        out: &mut Out,
    ) -> bool {
        let (source, dest, oseq, iseq) = (self.ours, self.theirs, self.window.next(), self.iseq);
        let frame = Full { source, dest, again: false, timestamp, oseq, iseq, kind, data };
        // The other side has to hear of the end: there is a place for it beyond the window.
        let is_room = if is_last(kind) { self.window.has_room_for_last() } else { !self.window.is_full() };
        if frame.is_sequenced() && !is_room {
            return false;
        }
        let mut bytes = Vec::with_capacity(crate::frame::FULL_BYTES + data.len());
        frame.write(&mut bytes);
        let turn = self.keys.as_ref().map_or(0, |keys| keys.turn);
        // What is held back counts as lost: it is repeated when the other side has said more.
        if spend(&mut self.allowance, self.remote, bytes.len()) {
            transmit(self.remote, self.keys.as_deref(), turn, &bytes, random, out);
        }
        let is_sequenced = frame.is_sequenced();
        self.note(true, kind);
        if is_sequenced {
            self.window.push(bytes, turn, now, first_wait(self.round_trip));
            self.sent = self.sent.wrapping_add(1);
        }
        true
    }

    /// Acknowledges a frame by its timestamp (RFC 5456 §6.9.1).
    pub(crate) fn ack(&mut self, now: Instant, timestamp: u32, random: &mut Randomness, out: &mut Out) {
        self.full_at(now, timestamp, Kind::Iax(Command::ACK), &[], random, out);
    }

    /// Asks for what is missing (RFC 5456 §6.9.3).
    pub(crate) fn vnak(&mut self, now: Instant, random: &mut Randomness, out: &mut Out) {
        let stamp = self.clock(now);
        self.full_at(now, stamp, Kind::Iax(Command::VNAK), &[], random, out);
    }

    /// Sends voice without keeping it.
    pub(crate) fn mini(
        &mut self,
        to: SocketAddr,
        timestamp: u32,
        data: &[u8],
        random: &mut Randomness,
        out: &mut Out,
    ) {
        if !spend(&mut self.allowance, to, crate::frame::MINI_BYTES + data.len()) {
            return;
        }
        let frame = Mini { source: self.ours & NUMBER_MASK, timestamp: timestamp as u16, data };
        let plain = &mut self.plain;
        out.datagram(to, |buffer| match &self.keys {
            None => frame.write(buffer),
            Some(keys) => {
                plain.clear();
                frame.write(plain);
                keys.seal.seal(plain, MINI_CLEAR, random, buffer);
            }
        });
    }

    /// Sends video without keeping it; never on an enciphered leg, for which the protocol has no form of it.
    pub(crate) fn video(&mut self, timestamp: u32, mark: bool, data: &[u8], out: &mut Out) {
        if self.keys.is_none()
            && spend(&mut self.allowance, self.remote, crate::frame::FULL_BYTES + data.len())
        {
            let frame = Video { source: self.ours, timestamp: timestamp as u16 & 0x7fff, mark, data };
            out.datagram(self.remote, |buffer| frame.write(buffer));
        }
    }

    /// Repeats what is due; `false` when the other side is gone.
    pub(crate) fn repeat(&mut self, now: Instant, random: &mut Randomness, out: &mut Out) -> bool {
        match self.window.due(now) {
            Due::Nothing => {}
            Due::Dead => return false,
            Due::Repeat => {
                self.repeated = true;
                for frame in self.window.overdue(now) {
                    if !spend(&mut self.allowance, self.remote, frame.bytes.len()) {
                        continue;
                    }
                    again(frame, self.iseq, self.remote, self.keys.as_deref(), random, out);
                }
            }
        }
        true
    }

    /// Repeats what the other side misses.
    pub(crate) fn asked(&mut self, iseq: u8, now: Instant, random: &mut Randomness, out: &mut Out) {
        for frame in self.window.asked(iseq, now) {
            if !spend(&mut self.allowance, self.remote, frame.bytes.len()) {
                continue;
            }
            again(frame, self.iseq, self.remote, self.keys.as_deref(), random, out);
        }
    }
}

/// Whether so many octets may be sent in an answer to so many.
pub(crate) const fn may_answer(asked: usize, octets: usize, from: IpAddr) -> bool {
    let around = datagram_overhead(from);
    octets + around <= answer_octets(asked + around)
}

/// Whether a datagram of so many octets may be sent; takes it from what is left.
fn spend(allowance: &mut Option<usize>, to: SocketAddr, octets: usize) -> bool {
    let Some(left) = allowance else { return true };
    match left.checked_sub(octets + datagram_overhead(to.ip())) {
        Some(rest) => {
            *left = rest;
            true
        }
        None => false,
    }
}

/// Whether nothing is sent on a leg after this.
fn is_last(kind: Kind) -> bool {
    matches!(kind, Kind::Iax(Command::HANGUP | Command::REJECT | Command::REGREJ | Command::TXREL))
}

/// Sends a kept frame again: marked, and with what has arrived since.
fn again(
    frame: &mut Pending,
    iseq: u8,
    to: SocketAddr,
    keys: Option<&Keys>,
    random: &mut Randomness,
    out: &mut Out,
) {
    if let Some([_, _, dest, _, _, _, _, _, _, acknowledged, ..]) = frame.bytes.first_chunk_mut::<12>() {
        *dest |= 0x80;
        *acknowledged = iseq;
    }
    transmit(to, keys, frame.key, &frame.bytes, random, out);
}

fn transmit(
    to: SocketAddr,
    keys: Option<&Keys>,
    turn: u32,
    bytes: &[u8],
    random: &mut Randomness,
    out: &mut Out,
) {
    out.datagram(to, |buffer| match keys {
        None => buffer.extend_from_slice(bytes),
        Some(keys) => keys.sealer(turn).seal(bytes, FULL_CLEAR, random, buffer),
    });
}
