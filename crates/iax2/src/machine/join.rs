//! Transfers (RFC 5456 §6.5): two legs of ours that are to talk directly, and legs of ours that are sent elsewhere.
//!
//! Who sits between two others asks both to try each other (TXREQ); each tries (TXCNT, TXACC) and says that it is ready
//! (TXREADY); then both are released (TXREL), or send only their media directly (TXMEDIA).

use super::call::Call;
use super::link::{Link, Space};
use super::orders::Refused;
use super::out::{Event, Out};
use super::party::Lines;
use super::state::{Core, Timer};
use super::{Fate, Leg, Machine, Role};
use crate::frame::{Command, Discard, Element, Fields, Full, Kind, write_element};
use base::{Cause, Instant, Place, Scheduled};
use core::net::SocketAddr;
use core::time::Duration;

/// Between two tries to reach the third side (the field repeats frames of transfers within a second).
const TRY_EVERY: Duration = Duration::from_secs(1);
/// Tries before it counts as out of reach.
const TRIES: u8 = 5;
/// How long two sides may take to become ready.
const JOIN_WAIT: Duration = Duration::from_secs(15);

/// How far a leg of ours is on its way elsewhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Trying {
        tries: u8,
    },
    Ready,
    /// Media goes there.
    Media,
}

/// A leg of ours that another side sends elsewhere.
#[derive(Debug)]
pub(super) struct Transfer {
    pub(super) peer: SocketAddr,
    pub(super) number: u16,
    id: u32,
    stage: Stage,
    pub(super) next_at: Option<Instant>,
}

impl Transfer {
    /// Where media goes instead of to the other side.
    pub(super) fn media_to(&self) -> Option<SocketAddr> {
        (self.stage == Stage::Media).then_some(self.peer)
    }
}

/// Two legs of ours that are to talk directly.
#[derive(Debug)]
pub(super) struct Join {
    legs: [Place; 2],
    ready: [bool; 2],
    media_only: bool,
    id: u32,
    at: Instant,
    scheduled: Scheduled,
    failed: bool,
}

fn id_elements(id: u32) -> Vec<u8> {
    let mut data = Vec::new();
    write_element(&Element::TransferId(id), &mut data);
    data
}

/// A frame of a transfer to the third side; it takes no place in any sequence.
fn to_third(link: &Link, transfer: &Transfer, command: Command, now: Instant, out: &mut Out) {
    let data = id_elements(transfer.id);
    let frame = Full {
        source: link.ours,
        dest: transfer.number,
        again: false,
        timestamp: link.clock(now),
        oseq: 0,
        iseq: 0,
        kind: Kind::Iax(command),
        data: &data,
    };
    out.datagram(transfer.peer, |buffer| frame.write(buffer));
}

/// Tries the third side again, or gives it up.
pub(super) fn transfer_due(
    call: &mut Call,
    link: &mut Link,
    core: &mut Core,
    place: Place,
    now: Instant,
    out: &mut Out,
) {
    let Some(transfer) = call.transfer.as_mut().filter(|t| t.next_at.is_some_and(|at| now >= at)) else {
        return;
    };
    match &mut transfer.stage {
        Stage::Trying { tries } if *tries < TRIES => {
            *tries += 1;
            transfer.next_at = Some(now + TRY_EVERY);
            to_third(link, transfer, Command::TXCNT, now, out);
        }
        Stage::Trying { .. } => {
            let id = transfer.id;
            cancel(call, link, core, place);
            link.full(now, Kind::Iax(Command::TXREJ), &id_elements(id), &mut core.random, out);
        }
        Stage::Ready | Stage::Media => transfer.next_at = None,
    }
}

/// Forgets a transfer.
fn cancel(call: &mut Call, link: &Link, core: &mut Core, place: Place) {
    if let Some(transfer) = call.transfer.take() {
        core.forget_ours(transfer.peer, link.ours, place);
        core.forget_theirs(transfer.peer, transfer.number, place);
    }
}

/// A frame of a transfer from the leg's other side, sent at `timestamp`.
#[allow(clippy::too_many_arguments, reason = "a frame, read, and where it belongs")]
pub(super) fn message(
    leg: &mut Leg,
    core: &mut Core,
    place: Place,
    command: Command,
    fields: &Fields<'_>,
    timestamp: u32,
    now: Instant,
    out: &mut Out,
) -> Fate {
    let Leg { link, role: Role::Call(call), .. } = leg else { return Fate::Keep };
    match command {
        Command::TXREQ => asked(call, link, core, place, fields, now, out),
        Command::TXREADY => {
            if let Some(join) = call.join.and_then(|join| core.joins.get_mut(join)) {
                let [first, _] = join.legs;
                let [ready, other] = &mut join.ready;
                *(if first == place { ready } else { other }) = true;
            }
        }
        Command::TXREJ => {
            if let Some(join) = call.join.and_then(|join| core.joins.get_mut(join)) {
                join.failed = true;
            }
            cancel(call, link, core, place);
        }
        // TXREL and TXMEDIA.
        _ => return released(call, link, core, place, command, timestamp, now, out),
    }
    Fate::Keep
}

/// The other side wants us to try a third one.
fn asked(
    call: &mut Call,
    link: &mut Link,
    core: &mut Core,
    place: Place,
    fields: &Fields<'_>,
    now: Instant,
    out: &mut Out,
) {
    let id = fields.transfer.unwrap_or(0);
    // The third side talks to our number from its own address, so the number must be the socket's; and it has not the
    // keys of an enciphered call.
    let able = call.transferable && link.space != Space::Own && link.keys.is_none() && call.join.is_none();
    match (fields.apparent, fields.callno) {
        (Some(peer), Some(number))
            if able
                && number > 1
                && peer != link.remote
                && core.is_ours_free(peer, link.ours, place)
                && core.is_theirs_free(peer, number, place) =>
        {
            cancel(call, link, core, place);
            let next_at = Some(now + TRY_EVERY);
            let transfer = Transfer { peer, number, id, stage: Stage::Trying { tries: 1 }, next_at };
            core.index_ours(peer, link.ours, place);
            to_third(link, &transfer, Command::TXCNT, now, out);
            call.transfer = Some(Box::new(transfer));
        }
        _ => {
            link.full(now, Kind::Iax(Command::TXREJ), &id_elements(id), &mut core.random, out);
        }
    }
}

/// A frame from the third side of a transfer, at its own address.
pub(super) fn third_side(
    leg: &mut Leg,
    core: &mut Core,
    frame: &Full<'_>,
    now: Instant,
    out: &mut Out,
) -> Fate {
    let Leg { link, role: Role::Call(call), closing: false, .. } = leg else { return Fate::Keep };
    let id = Fields::collect(frame.data).and_then(|fields| fields.transfer).unwrap_or(0);
    let Some(transfer) = call.transfer.as_mut().filter(|t| t.number == frame.source && t.id == id) else {
        core.discard(Discard::NoCall);
        return Fate::Keep;
    };
    match (frame.kind, transfer.stage) {
        (Kind::Iax(Command::TXCNT), _) => to_third(link, transfer, Command::TXACC, now, out),
        (Kind::Iax(Command::TXACC), Stage::Trying { .. }) => {
            transfer.stage = Stage::Ready;
            transfer.next_at = None;
            let mut data = id_elements(id);
            write_element(&Element::CallNumber(link.ours), &mut data);
            link.full(now, Kind::Iax(Command::TXREADY), &data, &mut core.random, out);
        }
        // What follows the transfer comes before we have heard that it is done: it is repeated.
        _ => core.discard(Discard::Unexpected),
    }
    Fate::Keep
}

/// Both sides were ready: from here on we talk to the third side, or send it our media.
#[allow(clippy::too_many_arguments, reason = "a frame, read, and where it belongs")]
fn released(
    call: &mut Call,
    link: &mut Link,
    core: &mut Core,
    place: Place,
    command: Command,
    timestamp: u32,
    now: Instant,
    out: &mut Out,
) -> Fate {
    let Some(transfer) = call.transfer.as_mut().filter(|transfer| transfer.stage == Stage::Ready) else {
        core.discard(Discard::Unexpected);
        return Fate::Keep;
    };
    let (peer, number) = (transfer.peer, transfer.number);
    // Another call of the third side may have taken that number since we were asked: it keeps its frames.
    let is_free = core.is_theirs_free(peer, number, place);
    if command == Command::TXMEDIA {
        if !is_free {
            let id = transfer.id;
            cancel(call, link, core, place);
            link.full(now, Kind::Iax(Command::TXREJ), &id_elements(id), &mut core.random, out);
            return Fate::Keep;
        }
        transfer.stage = Stage::Media;
        call.media.restart();
        core.index_theirs(peer, number, place);
        out.event(Event::MediaTransferred(place, peer));
        return Fate::Keep;
    }
    // The last word to the side that lets us go; it is not a frame of the new sequence.
    link.ack(now, timestamp, &mut core.random, out);
    if !is_free {
        // Nobody is left to talk to: the side before has let us go.
        return Fate::Over(Cause::DESTINATION_OUT_OF_ORDER, Vec::new());
    }
    call.media.restart();
    call.transfer = None;
    // What the side before has said of itself does not hold for the next.
    call.lines = Lines::default();
    core.forget_ours(link.remote, link.ours, place);
    core.forget_theirs(link.remote, link.theirs, place);
    link.restart();
    link.remote = peer;
    link.theirs = number;
    core.index_ours(peer, link.ours, place);
    core.index_theirs(peer, number, place);
    out.event(Event::Transferred(place, peer));
    Fate::Keep
}

impl Machine {
    /// Asks the other sides of two calls to talk directly; with `media_only` we stay between them for signalling.
    /// [`Event::Joined`] or [`Event::NotJoined`] tells what comes of it.
    ///
    /// # Errors
    /// When one of them is not an accepted call of its own, in the clear.
    pub fn join(
        &mut self,
        now: Instant,
        first: Place,
        second: Place,
        media_only: bool,
        out: &mut Out,
    ) -> Result<(), Refused> {
        let side = |place: Place| {
            let leg = self.legs.get(place).filter(|leg| !leg.closing).ok_or(Refused::NoLeg)?;
            match &leg.role {
                Role::Call(call)
                    if call.is_accepted()
                        && call.join.is_none()
                        && call.transfer.is_none()
                        && leg.link.keys.is_none() =>
                {
                    Ok((leg.link.remote, leg.link.theirs))
                }
                _ => Err(Refused::WrongState),
            }
        };
        if first == second {
            return Err(Refused::WrongState);
        }
        let (one, other) = (side(first)?, side(second)?);
        let id = self.core.random.next() as u32;
        let at = now + JOIN_WAIT;
        let join = Join {
            legs: [first, second],
            ready: [false; 2],
            media_only,
            id,
            at,
            scheduled: Scheduled::default(),
            failed: false,
        };
        let place = self.core.joins.insert_with(|_| join).ok_or(Refused::TooManyLegs)?;
        if let Some(join) = self.core.joins.get_mut(place) {
            self.core.deadlines.schedule(Timer::Join(place), &mut join.scheduled, Some(at));
        }
        for (leg, (address, number)) in [(first, other), (second, one)] {
            let mut data = Vec::new();
            write_element(&Element::ApparentAddr(address), &mut data);
            write_element(&Element::CallNumber(number), &mut data);
            write_element(&Element::TransferId(id), &mut data);
            self.with(leg, now, out, |leg, core, out| {
                if let Some(call) = leg.call() {
                    call.join = Some(place);
                }
                leg.link.full(now, Kind::Iax(Command::TXREQ), &data, &mut core.random, out);
                ((), Fate::Keep)
            });
        }
        Ok(())
    }

    /// After a frame: whether the join that its leg is in is done, one way or the other.
    pub(super) fn joined(&mut self, place: Place, now: Instant, out: &mut Out) {
        let join = self.legs.get_mut(place).and_then(Leg::call).and_then(|call| call.join);
        let Some(join) = join else { return };
        match self.core.joins.get(join) {
            Some(found) if found.failed => self.part(join, now, out),
            Some(found) if found.ready == [true; 2] => self.release_both(join, now, out),
            _ => {}
        }
    }

    fn release_both(&mut self, join: Place, now: Instant, out: &mut Out) {
        let Some(join) = self.core.joins.remove(join) else { return };
        let [first, second] = join.legs;
        let number = |place| self.legs.get(place).map_or(0, |leg: &Leg| leg.link.theirs);
        let (one, other) = (number(first), number(second));
        let command = if join.media_only { Command::TXMEDIA } else { Command::TXREL };
        for (leg, number) in [(first, other), (second, one)] {
            let mut data = Vec::new();
            write_element(&Element::CallNumber(number), &mut data);
            write_element(&Element::TransferId(join.id), &mut data);
            self.with(leg, now, out, |leg, core, out| {
                if let Some(call) = leg.call() {
                    call.join = None;
                }
                leg.link.full(now, Kind::Iax(command), &data, &mut core.random, out);
                if !join.media_only {
                    leg.close();
                }
                ((), Fate::Keep)
            });
        }
        out.event(Event::Joined(first, second));
    }

    /// The two go on through us.
    pub(super) fn part(&mut self, join: Place, now: Instant, out: &mut Out) {
        let Some(join) = self.core.joins.remove(join) else { return };
        let [first, second] = join.legs;
        for leg in join.legs {
            self.with(leg, now, out, |leg, core, out| {
                if let Some(call) = leg.call() {
                    call.join = None;
                }
                let data = id_elements(join.id);
                leg.link.full(now, Kind::Iax(Command::TXREJ), &data, &mut core.random, out);
                ((), Fate::Keep)
            });
        }
        out.event(Event::NotJoined(first, second));
    }

    pub(super) fn join_due(&mut self, place: Place, fired: Instant, now: Instant, out: &mut Out) {
        let Some(join) = self.core.joins.get_mut(place) else { return };
        join.scheduled.fired(fired);
        if join.at <= now {
            self.part(place, now, out);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Dial, Settings};
    use super::*;
    use crate::frame::{Datagram, Media, parse};
    use base::FormatId;

    /// Two legs of one machine: of a call at `HERE`, which is accepted and may be transferred, and of one at `THERE`.
    struct Two {
        machine: Machine,
        now: Instant,
        out: Out,
        here: Place,
        there: Place,
        oseq: u8,
    }

    const HERE: SocketAddr =
        SocketAddr::new(core::net::IpAddr::V4(core::net::Ipv4Addr::new(192, 0, 2, 1)), 4569);
    const THERE: SocketAddr =
        SocketAddr::new(core::net::IpAddr::V4(core::net::Ipv4Addr::new(192, 0, 2, 2)), 4569);
    /// The number of the third side.
    const NUMBER: u16 = 77;

    impl Two {
        fn new() -> Self {
            let now = Instant::ZERO + Duration::from_secs(50);
            let mut machine = Machine::new(now, 9, Settings::default());
            let mut out = Out::default();
            let mut dial = |to, transferable| {
                let dial = Dial { transferable, ..Dial::to(to) };
                machine.dial(now, &dial, &mut out).expect("a leg")
            };
            let (here, there) = (dial(HERE, true), dial(THERE, false));
            let mut two = Self { machine, now, out, here, there, oseq: 0 };
            let mut data = Vec::new();
            write_element(
                &Element::Format(Media::of(FormatId::ULAW).map_or(0, |bit| bit.0 as u32)),
                &mut data,
            );
            two.hear(Command::ACCEPT, &data);
            two
        }
        fn ours(&self) -> u16 {
            self.machine.look(self.here).expect("a call").ours
        }
        /// A frame of the call's other side; what is sent then: where to, command and timestamp.
        fn hear(&mut self, command: Command, data: &[u8]) -> Vec<(SocketAddr, Command, u32)> {
            self.out.clear();
            let kind = Kind::Iax(command);
            let (dest, oseq, iseq) = (self.ours(), self.oseq, 1);
            let timestamp = 5000 + u32::from(oseq);
            let frame = Full { source: 20, dest, again: false, timestamp, oseq, iseq, kind, data };
            self.oseq += 1;
            self.datagram(HERE, &frame)
        }
        fn datagram(&mut self, from: SocketAddr, frame: &Full<'_>) -> Vec<(SocketAddr, Command, u32)> {
            let mut bytes = Vec::new();
            frame.write(&mut bytes);
            self.machine.on_datagram(self.now, from, &bytes, &mut self.out);
            let read = |(to, bytes)| match parse(bytes) {
                Ok(Datagram::Full(Full { kind: Kind::Iax(command), timestamp, .. })) => {
                    Some((to, command, timestamp))
                }
                _ => None,
            };
            self.out.datagrams().filter_map(read).collect()
        }
        /// The other side wants us to try the third one.
        fn ask(&mut self) -> Vec<(SocketAddr, Command, u32)> {
            let mut data = Vec::new();
            write_element(&Element::ApparentAddr(THERE), &mut data);
            write_element(&Element::CallNumber(NUMBER), &mut data);
            write_element(&Element::TransferId(5), &mut data);
            self.hear(Command::TXREQ, &data)
        }
        /// The third side answers that it is there.
        fn ready(&mut self) {
            let data = id_elements(5);
            let (dest, kind) = (self.ours(), Kind::Iax(Command::TXACC));
            let frame = Full {
                source: NUMBER,
                dest,
                again: false,
                timestamp: 3,
                oseq: 0,
                iseq: 0,
                kind,
                data: &data,
            };
            self.out.clear();
            let sent = self.datagram(THERE, &frame);
            assert!(matches!(sent[..], [(HERE, Command::TXREADY, _)]), "{sent:?}");
        }
    }

    #[test]
    fn rfc5456_6_5_no_transfer_takes_the_frames_of_another_call_with_the_third_side() {
        for (name, taken, number, expected) in [
            ("free", false, 99, Command::TXCNT),
            ("our number is another call's there", true, 99, Command::TXREJ),
            ("the third side's number is another call's", false, NUMBER, Command::TXREJ),
        ] {
            let mut two = Two::new();
            let ours = two.ours();
            if taken {
                two.machine.core.index_ours(THERE, ours, two.there);
            }
            two.machine.core.index_theirs(THERE, number, two.there);
            let sent = two.ask();
            assert_eq!(sent.first().map(|(_, command, _)| *command), Some(expected), "{name}");
            let holder = if taken { two.there } else { two.here };
            let held = two.machine.core.by_ours(THERE, ours);
            assert_eq!(held, Some(holder).filter(|_| taken || expected == Command::TXCNT), "{name}");
            assert_eq!(two.machine.core.by_theirs(THERE, number), Some(two.there), "{name}");
        }
        for command in [Command::TXREL, Command::TXMEDIA] {
            let mut two = Two::new();
            two.ask();
            two.ready();
            two.machine.core.index_theirs(THERE, NUMBER, two.there);
            two.hear(command, &id_elements(5));
            assert_eq!(
                two.machine.core.by_theirs(THERE, NUMBER),
                Some(two.there),
                "{command:?}: taken since"
            );
            let goes_on = two.machine.look(two.here).is_some();
            assert_eq!(goes_on, command == Command::TXMEDIA, "{command:?}: whoever was let go is over");
        }
    }

    #[test]
    fn rfc5456_6_9_1_who_is_released_acknowledges_that_once_and_by_its_timestamp() {
        let mut two = Two::new();
        two.ask();
        two.ready();
        let timestamp = 5000 + u32::from(two.oseq);
        let sent = two.hear(Command::TXREL, &id_elements(5));
        assert_eq!(sent, [(HERE, Command::ACK, timestamp)]);
        assert_eq!(two.machine.remote(two.here), Some(THERE));
    }
}
