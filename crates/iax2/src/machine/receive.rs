//! From a datagram to the leg that it means, and its place in that leg's sequence. What frames mean is elsewhere.

use super::link::{Link, Space};
use super::out::{Event, Out, Request};
use super::state::{Core, STATELESS};
use super::{ACK_WAIT, ANSWER_WAIT, Call, Fate, Leg, Machine, Registrar, Role};
use super::{call, join, media, registrant, registrar, watch};
use crate::cipher::{FULL_CLEAR, MINI_CLEAR};
use crate::frame::{
    Command, Datagram, Discard, Entry, Fields, Full, Kind, Mini, Numbers, Trunk, Video, numbers, parse,
};
use base::{Cause, Instant, Place};
use core::net::SocketAddr;

/// Entries of a trunk whose legs are asked for together, so that waits for their memory overlap.
const FETCHED: usize = 16;

/// A full frame, in the clear or not.
fn read(bytes: &[u8]) -> Option<Full<'_>> {
    match parse(bytes) {
        Ok(Datagram::Full(frame)) => Some(frame),
        _ => None,
    }
}

impl Machine {
    pub(super) fn on_full(&mut self, now: Instant, from: SocketAddr, bytes: &[u8], out: &mut Out) {
        let Some(Numbers { source, dest, .. }) = numbers(bytes) else { return };
        let found = match dest {
            0 => self.core.by_theirs(from, source),
            _ => self.core.by_ours(from, dest),
        };
        let found = found.filter(|place| self.legs.get(*place).is_some());
        let mut opened = core::mem::take(&mut self.core.opened);
        match found {
            Some(place) => self.on_leg(place, source, now, from, bytes, &mut opened, out),
            None => match read(bytes) {
                Some(frame) if dest == 0 => self.on_stranger(now, from, &frame, out),
                Some(frame) => self.on_stray(now, from, &frame, out),
                None => self.core.discard(Discard::TooShort),
            },
        }
        self.core.opened = opened;
    }

    /// A frame for a number that nobody has: the other side learns that there is no such call (RFC 5456 §6.9.2).
    fn on_stray(&mut self, now: Instant, from: SocketAddr, frame: &Full<'_>, out: &mut Out) {
        self.core.discard(Discard::NoCall);
        // What ends or acknowledges is not answered, or two sides could answer each other for ever; nor is what belongs
        // to a transfer that the third side begins before we have heard of it.
        let quiet = match frame.kind {
            Kind::Iax(command) => {
                command.is_unsequenced() || matches!(command, Command::HANGUP | Command::REJECT)
            }
            _ => false,
        };
        if !quiet && frame.dest != STATELESS {
            self.core.answer(now, from, frame, Command::INVAL, None, out);
        }
    }

    /// A frame from a side that does not know a number of ours.
    fn on_stranger(&mut self, now: Instant, from: SocketAddr, frame: &Full<'_>, out: &mut Out) {
        match frame.kind {
            // Answered without a leg, so that it takes no number.
            Kind::Iax(Command::POKE) => self.core.answer(now, from, frame, Command::PONG, None, out),
            // Whoever tells us of messages outside of a call tells nobody here, and need not repeat it.
            Kind::Iax(Command::MWI) => self.core.answer(now, from, frame, Command::ACK, None, out),
            Kind::Iax(command @ (Command::NEW | Command::REGREQ | Command::REGREL)) => {
                self.on_asking(now, from, frame, command, out);
            }
            _ => self.core.discard(Discard::NoCall),
        }
    }

    /// Whether the sender has shown that it receives where it sends from; `None` when it was answered already.
    fn admit(
        &mut self,
        now: Instant,
        from: SocketAddr,
        frame: &Full<'_>,
        command: Command,
        fields: &Fields<'_>,
        out: &mut Out,
    ) -> Option<bool> {
        let user = fields.username.unwrap_or_default();
        match fields.token {
            Some([]) => {
                self.core.answer_token(now, from, frame, command, out);
                None
            }
            Some(token) if self.core.check_token(now, from, command, token, user) => Some(true),
            Some(_) => {
                self.core.discard(Discard::BadToken);
                self.core.refuse(now, from, frame, command, Cause::CALL_REJECTED, out);
                None
            }
            None if self.core.wants_token(from.ip(), user) => {
                self.core.discard(Discard::BadToken);
                self.core.refuse(now, from, frame, command, Cause::CALL_REJECTED, out);
                None
            }
            None => Some(false),
        }
    }

    /// NEW, REGREQ or REGREL that begins something.
    fn on_asking(
        &mut self,
        now: Instant,
        from: SocketAddr,
        frame: &Full<'_>,
        command: Command,
        out: &mut Out,
    ) {
        let Some(fields) = Fields::collect(frame.data) else { return self.core.discard(Discard::Overrun) };
        if frame.oseq != 0 || frame.source == 0 {
            return self.core.discard(Discard::OutOfOrder);
        }
        let Some(validated) = self.admit(now, from, frame, command, &fields, out) else { return };
        if fields.version.is_some_and(|version| version != 2) {
            return self.core.refuse(now, from, frame, command, Cause::PROTOCOL_ERROR, out);
        }
        let space = match command {
            Command::NEW if self.core.settings.transfers => Space::Shared,
            _ => Space::Own,
        };
        let place = self.begin(now, from, frame.source, space, validated, || match command {
            Command::NEW => Role::Call(Box::new(Call::incoming(frame.data, &fields))),
            _ => Role::Registrar(Box::new(Registrar::new(command, &fields))),
        });
        let Some(place) = place else {
            self.core.discard(Discard::NoNumber);
            return self.core.refuse(now, from, frame, command, Cause::SWITCH_CONGESTION, out);
        };
        let request = Box::new(Request::new(from, validated, frame.data));
        out.event(match command {
            Command::NEW => Event::Call(place, request),
            _ => Event::Register { leg: place, release: command == Command::REGREL, request },
        });
        if let Some(leg) = self.legs.get_mut(place) {
            if !validated {
                leg.link.bound(crate::frame::FULL_BYTES + frame.data.len());
            }
            leg.link.iseq = 1;
            leg.link.note(false, frame.kind);
            leg.owed = Some((now + ACK_WAIT, frame.timestamp, leg.link.sent()));
            leg.give_up_at = Some(now + ANSWER_WAIT);
        }
        self.settle(place, Fate::Keep, now, out);
    }

    /// A leg for a stranger; `None` when there is no room or no number for it.
    fn begin(
        &mut self,
        now: Instant,
        from: SocketAddr,
        source: u16,
        space: Space,
        validated: bool,
        role: impl FnOnce() -> Role,
    ) -> Option<Place> {
        if self.legs.room() == 0 || (!validated && !self.core.admit_without_token()) {
            return None;
        }
        let Some(number) = self.core.take_number(now, from, space, None) else {
            if !validated {
                self.core.forget_without_token();
            }
            return None;
        };
        let link = Link::new(from, number, source, space, now);
        let place = self.legs.insert_with(|_| Leg { without_token: !validated, ..Leg::new(link, role()) })?;
        self.core.index_ours(from, number, place);
        self.core.index_theirs(from, source, place);
        Some(place)
    }

    /// A frame for a leg, if it is from the leg's other side.
    #[allow(clippy::too_many_arguments, reason = "what came, and where it is put in the clear")]
    fn on_leg(
        &mut self,
        place: Place,
        source: u16,
        now: Instant,
        from: SocketAddr,
        bytes: &[u8],
        opened: &mut Vec<u8>,
        out: &mut Out,
    ) {
        let Some(leg) = self.legs.get_mut(place) else { return };
        if leg.link.remote != from {
            // The third side of a transfer, which talks to us from its own address.
            let fate = match read(bytes) {
                Some(frame) => join::third_side(leg, &mut self.core, &frame, now, out),
                None => Fate::Keep,
            };
            return self.settle(place, fate, now, out);
        }
        // Without our number it is from a side that does not know it: believed until that side has shown that it does.
        let blind = numbers(bytes).is_none_or(|numbers| numbers.dest == 0);
        if blind && leg.link.met {
            return self.core.discard(Discard::NoCall);
        }
        // What answers without a leg has another number than the leg that comes after it.
        let stranger = source != leg.link.theirs && leg.link.theirs != 0;
        leg.link.met |= !blind && !stranger;
        leg.link.heard(bytes.len());
        let fate = if stranger {
            match read(bytes) {
                Some(frame) => return self.on_stray(now, from, &frame, out),
                None => Fate::Keep,
            }
        } else {
            match open(leg, &mut self.core, bytes, opened) {
                Opened::Frame(frame) => {
                    leg.heard(now);
                    sequenced(leg, &mut self.core, place, &frame, now, out)
                }
                Opened::Wrong => {
                    self.core.discard(Discard::Undeciphered);
                    call::undeciphered(leg, place, now, out)
                }
            }
        };
        self.settle(place, fate, now, out);
        self.joined(place, now, out);
    }

    pub(super) fn on_mini(
        &mut self,
        now: Instant,
        from: SocketAddr,
        source: u16,
        bytes: &[u8],
        out: &mut Out,
    ) {
        let mut opened = core::mem::take(&mut self.core.opened);
        let leg =
            self.core.by_theirs(from, source).and_then(|place| Some((place, self.legs.get_mut(place)?)));
        match leg {
            None => self.core.discard(Discard::NoCall),
            Some((place, leg)) => {
                let plain = match &leg.link.keys {
                    None => Some(bytes),
                    Some(keys) => keys.open(bytes, MINI_CLEAR, &mut opened, |_| true).then_some(&opened[..]),
                };
                match plain.map(parse) {
                    Some(Ok(Datagram::Mini(mini))) => {
                        media::voice(leg, &mut self.core, place, &mini, now, out);
                    }
                    _ => self.core.discard(Discard::Undeciphered),
                }
            }
        }
        self.core.opened = opened;
    }

    pub(super) fn on_video(&mut self, now: Instant, from: SocketAddr, video: &Video<'_>, out: &mut Out) {
        let place = self.core.by_theirs(from, video.source);
        match place.and_then(|place| Some((place, self.legs.get_mut(place)?))) {
            Some((place, leg)) => media::video(leg, &mut self.core, place, video, now, out),
            None => self.core.discard(Discard::NoCall),
        }
    }

    pub(super) fn on_trunk(&mut self, now: Instant, from: SocketAddr, trunk: &Trunk<'_>, out: &mut Out) {
        let mut entries = trunk.entries;
        loop {
            let mut batch = [(None, None); FETCHED];
            let places = batch.iter_mut().zip(&mut entries).map(|(place, entry)| {
                *place = (Some(entry), self.core.by_theirs(from, entry.source));
                place.1.into_iter().for_each(|leg| self.fetch_leg(leg));
            });
            if places.count() == 0 {
                return;
            }
            batch.iter().filter_map(|(_, place)| *place).for_each(|leg| self.fetch_voice(leg));
            for (entry, place) in batch.into_iter().filter_map(|(entry, place)| Some((entry?, place))) {
                self.trunked(now, &entry, place, out);
            }
        }
    }
    fn trunked(&mut self, now: Instant, entry: &Entry<'_>, place: Option<Place>, out: &mut Out) {
        match place.and_then(|place| Some((place, self.legs.get_mut(place)?))) {
            // In the clear on an enciphered leg: not from the other side.
            Some((_, leg)) if leg.link.keys.is_some() => self.core.discard(Discard::Undeciphered),
            Some((place, leg)) => match entry.timestamp {
                Some(timestamp) => {
                    let mini = Mini { source: entry.source, timestamp, data: entry.data };
                    media::voice(leg, &mut self.core, place, &mini, now, out);
                }
                None => media::unstamped(leg, &mut self.core, place, entry.data, now, out),
            },
            None => self.core.discard(Discard::NoCall),
        }
    }
}

/// What deciphering made of a frame.
enum Opened<'a> {
    Frame(Full<'a>),
    Wrong,
}

/// A frame in the clear, or deciphered. Under a wrong key it would look like anything, so it has to fit.
fn open<'a>(leg: &mut Leg, core: &mut Core, bytes: &'a [u8], opened: &'a mut Vec<u8>) -> Opened<'a> {
    let iseq = leg.link.iseq;
    let fits = |bytes: &[u8]| {
        read(bytes).is_some_and(|frame| {
            let known = !matches!(frame.kind, Kind::Unknown(..) | Kind::Null);
            known && frame.oseq.wrapping_sub(iseq).wrapping_add(64) < 128
        })
    };
    let clear = read(bytes);
    if leg.link.keys.is_none() {
        let trial = match &mut leg.role {
            Role::Call(call) => core::mem::take(&mut call.trial),
            _ => Vec::new(),
        };
        if trial.is_empty() {
            return clear.map_or(Opened::Wrong, Opened::Frame);
        }
        // The first enciphered frame tells which of the passwords the caller has.
        let answers = |bytes: &[u8]| {
            fits(bytes) && read(bytes).is_some_and(|frame| frame.kind == Kind::Iax(Command::AUTHREP))
        };
        let right = trial
            .iter()
            .find(|key| crate::cipher::Cipher::new(key).open(bytes, FULL_CLEAR, opened) && answers(opened));
        match right {
            Some(key) => leg.link.keys = Some(super::link::Keys::new(key)),
            None => {
                core.discard(Discard::Undeciphered);
                // An acknowledgement may still come in the clear.
                let ack = clear.filter(|frame| !frame.is_sequenced() || frame.oseq != iseq);
                if let Role::Call(call) = &mut leg.role
                    && ack.is_some()
                {
                    call.trial = trial;
                }
                return ack.map_or(Opened::Wrong, Opened::Frame);
            }
        }
        return read(opened).map_or(Opened::Wrong, Opened::Frame);
    }
    let done = leg.link.keys.as_ref().is_some_and(|keys| keys.open(bytes, FULL_CLEAR, opened, fits));
    if done {
        return read(opened).map_or(Opened::Wrong, Opened::Frame);
    }
    // A side that could not decipher our proof says so in the clear.
    let refused = match &leg.role {
        Role::Call(call) if call.is_replied() => clear.filter(|frame| {
            matches!(frame.kind, Kind::Iax(Command::REJECT | Command::INVAL | Command::HANGUP))
        }),
        _ => None,
    };
    refused.map_or(Opened::Wrong, Opened::Frame)
}

/// A frame from the leg's other side: what it acknowledges, whether it is its turn, and then what it means.
fn sequenced(
    leg: &mut Leg,
    core: &mut Core,
    place: Place,
    frame: &Full<'_>,
    now: Instant,
    out: &mut Out,
) -> Fate {
    leg.link.acknowledge(frame.iseq);
    leg.link.note(false, frame.kind);
    if !frame.is_sequenced() {
        return unsequenced(leg, core, place, frame, now, out);
    }
    match frame.oseq.wrapping_sub(leg.link.iseq) {
        0 => {}
        behind if behind >= 128 => {
            leg.link.ack(now, frame.timestamp, &mut core.random, out);
            return Fate::Keep;
        }
        _ => {
            core.discard(Discard::OutOfOrder);
            leg.link.vnak(now, &mut core.random, out);
            return Fate::Keep;
        }
    }
    leg.link.iseq = leg.link.iseq.wrapping_add(1);
    know(leg, core, place, frame.source);
    // An acknowledgement that waited is carried by this frame's, or by its answer.
    leg.owed = None;
    let (sent, remote) = (leg.link.sent(), leg.link.remote);
    let fate = if leg.closing {
        match frame.kind {
            Kind::Iax(Command::HANGUP | Command::REJECT | Command::REGREJ) => Fate::Drop,
            _ => Fate::Keep,
        }
    } else {
        match &leg.role {
            Role::Call(_) => call::frame(leg, core, place, frame, now, out),
            Role::Registrar(_) => registrar::frame(leg, core, place, frame, now, out),
            Role::Registrant(_) => registrant::frame(leg, core, place, frame, now, out),
            Role::Watch(_) => watch::frame(leg, core, frame, now, out),
            Role::Notice => Fate::Keep,
        }
    };
    // Who lets us go to a third side is acknowledged before we do.
    let is_released =
        leg.link.remote != remote || matches!(frame.kind, Kind::Iax(Command::TXREL)) && fate != Fate::Keep;
    if !is_released && leg.link.sent() == sent {
        // Whoever is asked answers soon, and the answer acknowledges.
        let asked = matches!(
            frame.kind,
            Kind::Iax(Command::AUTHREP | Command::REGREQ | Command::REGREL | Command::AUTHREQ)
        );
        if asked && fate == Fate::Keep && !leg.closing {
            leg.owed = Some((now + ACK_WAIT, frame.timestamp, sent));
        } else {
            leg.link.ack(now, frame.timestamp, &mut core.random, out);
        }
    }
    fate
}

/// The other side's number, once it says it. Tokens, which come without a leg, never get here.
fn know(leg: &mut Leg, core: &mut Core, place: Place, source: u16) {
    if leg.link.theirs == 0 && source != 0 {
        leg.link.theirs = source;
        core.index_theirs(leg.link.remote, source, place);
    }
}

fn unsequenced(
    leg: &mut Leg,
    core: &mut Core,
    place: Place,
    frame: &Full<'_>,
    now: Instant,
    out: &mut Out,
) -> Fate {
    match frame.kind {
        Kind::Iax(Command::ACK) => {
            know(leg, core, place, frame.source);
            Fate::Keep
        }
        // A frame that swaps ours has our sequence in it; anything else is a guess.
        Kind::Iax(Command::INVAL) => {
            if leg.closing {
                Fate::Drop
            } else {
                Fate::Over(Cause::NORMAL_UNSPECIFIED, Vec::new())
            }
        }
        Kind::Iax(Command::VNAK) => {
            leg.link.asked(frame.iseq, now, &mut core.random, out);
            Fate::Keep
        }
        Kind::Iax(Command::CALLTOKEN) => match Fields::collect(frame.data).and_then(|fields| fields.token) {
            Some(token) if !leg.closing => match &mut leg.role {
                Role::Call(_) => call::token(leg, core, token, now, out),
                Role::Registrant(_) => registrant::token(leg, core, token, now, out),
                Role::Registrar(_) | Role::Watch(_) | Role::Notice => Fate::Keep,
            },
            _ => Fate::Keep,
        },
        _ => {
            core.discard(Discard::Unexpected);
            Fate::Keep
        }
    }
}
