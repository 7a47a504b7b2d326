//! One registration at us (RFC 5456 §6.1): a request, a challenge, an answer, a confirmation. Where peers are is the
//! driver's to know.

use super::link::Space;
use super::orders::{Lease, Refused};
use super::out::{Event, Out};
use super::state::{Challenged, Core};
use super::{ANSWER_WAIT, Fate, Leg, Machine, Role};
use crate::frame::{Auth, Command, Discard, Element, Fields, Full, Kind, write_element};
use base::{Instant, Place};
use core::net::SocketAddr;

#[derive(Debug)]
enum State {
    /// The driver decides.
    Asked,
    /// REGAUTH is out.
    Challenged(Box<Challenged>),
    /// A signature came; the driver checks it.
    Judging,
    /// The peer is who it says; the driver decides.
    Proven,
    /// The peer could not prove it; the driver refuses it when it likes.
    Failed,
}

#[derive(Debug)]
pub(super) struct Registrar {
    state: State,
    user: Vec<u8>,
    /// REGREQ or REGREL.
    command: Command,
}

impl Registrar {
    pub(super) fn new(command: Command, fields: &Fields<'_>) -> Self {
        Self { state: State::Asked, user: fields.username.unwrap_or_default().to_vec(), command }
    }
    pub(super) fn challenge(&mut self, asked: Box<Challenged>) -> Result<(), Refused> {
        if !matches!(self.state, State::Asked) {
            return Err(Refused::WrongState);
        }
        self.state = State::Challenged(asked);
        Ok(())
    }
    /// A signature was looked at; whether one was waited for.
    pub(super) fn judged(&mut self, right: bool) -> bool {
        let waited = matches!(self.state, State::Judging);
        if waited {
            self.state = if right { State::Proven } else { State::Failed };
        }
        waited
    }
}

impl Machine {
    /// Tells a peer outside of a call how many messages wait for it (MWI): old ones in the high octet, new ones in the low
    /// one. It is repeated until the peer acknowledges it or says that it does not know what it is told.
    ///
    /// # Errors
    /// When there are too many legs, or no number.
    pub fn announce(
        &mut self,
        now: Instant,
        to: SocketAddr,
        messages: u16,
        out: &mut Out,
    ) -> Result<(), Refused> {
        let place = self.leg_to(now, to, Space::Own, None, Role::Notice)?;
        self.with(place, now, out, |leg, core, out| {
            let mut data = Vec::new();
            write_element(&Element::MessageCount(messages), &mut data);
            leg.link.full(now, Kind::Iax(Command::MWI), &data, &mut core.random, out);
            leg.close();
            ((), Fate::Keep)
        });
        Ok(())
    }
}

/// A frame in its turn: the request again, with a proof.
pub(super) fn frame(
    leg: &mut Leg,
    core: &mut Core,
    place: Place,
    frame: &Full<'_>,
    now: Instant,
    out: &mut Out,
) -> Fate {
    let Leg { role: Role::Registrar(registrar), .. } = &mut *leg else { return Fate::Keep };
    let fields = Fields::collect(frame.data);
    let (Kind::Iax(command), Some(fields)) = (frame.kind, fields) else {
        core.discard(Discard::Unexpected);
        return Fate::Keep;
    };
    let State::Challenged(asked) = &registrar.state else {
        core.discard(Discard::Unexpected);
        return Fate::Keep;
    };
    if command != registrar.command || fields.username.unwrap_or_default() != registrar.user {
        core.discard(Discard::Unexpected);
        return Fate::Keep;
    }
    if let Some(signature) = fields.rsa.filter(|_| asked.methods.has(Auth::RSA)) {
        let (challenge, signature) = (asked.challenge.clone(), signature.to_vec());
        registrar.state = State::Judging;
        out.event(Event::Signed { leg: place, challenge, signature });
    } else if asked.check(&fields) {
        registrar.state = State::Proven;
        out.event(Event::Proven(place));
    } else {
        registrar.state = State::Failed;
        out.event(Event::Unproven(place));
    }
    leg.give_up_at = Some(now + ANSWER_WAIT);
    Fate::Keep
}

/// Says that the peer is registered, or no longer.
pub(super) fn confirm(
    leg: &mut Leg,
    core: &mut Core,
    lease: &Lease<'_>,
    now: Instant,
    out: &mut Out,
) -> Result<(), Refused> {
    let Leg { link, role: Role::Registrar(registrar), .. } = &mut *leg else {
        return Err(Refused::WrongState);
    };
    if !matches!(registrar.state, State::Asked | State::Proven) {
        return Err(Refused::WrongState);
    }
    let mut data = Vec::new();
    write_element(&Element::Username(&registrar.user), &mut data);
    if let Some(datetime) = lease.datetime {
        write_element(&Element::DateTime(datetime), &mut data);
    }
    if registrar.command == Command::REGREQ {
        write_element(&Element::Refresh(lease.refresh), &mut data);
        write_element(&Element::ApparentAddr(link.remote), &mut data);
        if let Some(messages) = lease.messages {
            write_element(&Element::MessageCount(messages), &mut data);
        }
        if !lease.calling.is_empty() {
            write_element(&Element::CallingNumber(lease.calling), &mut data);
        }
        if !lease.name.is_empty() {
            write_element(&Element::CallingName(lease.name), &mut data);
        }
    }
    link.full(now, Kind::Iax(Command::REGACK), &data, &mut core.random, out);
    leg.close();
    Ok(())
}
