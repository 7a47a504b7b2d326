//! Registrations of ours at others (RFC 5456 §6.1): made, kept alive, tried again, ended.

use super::link::Space;
use super::orders::{Refused, proof_element};
use super::out::{Event, Out};
use super::state::{Core, Timer};
use super::{Fate, Leg, Machine, Role};
use crate::auth::{Secret, prove};
use crate::frame::{Auth, Command, Discard, Element, Fields, Full, Kind, write_element};
use base::{Cause, Instant, Place, Scheduled};
use core::net::SocketAddr;
use core::time::Duration;

/// What a registrar that says nothing about it means (RFC 5456 §8.6.18).
const REFRESH_DEFAULT: u16 = 60;
/// The shortest time that a registrar may give, s: a lower one would make us flood it.
const REFRESH_MIN: u16 = 10;
/// The first and the longest wait after a failure.
const AGAIN: Duration = Duration::from_secs(10);
/// See [`AGAIN`].
const AGAIN_MAX: Duration = Duration::from_secs(120);
/// How long a registrar may take over one attempt.
const ATTEMPT: Duration = Duration::from_secs(30);
/// Most tokens in one attempt.
const TOKENS_MAX: u8 = 3;

/// A registration to keep.
#[derive(Debug, Clone)]
pub struct Registration {
    /// The registrar.
    pub at: SocketAddr,
    /// Our user there.
    pub username: Vec<u8>,
    /// Its password.
    pub secret: Secret,
    /// Seconds that we ask for.
    pub refresh: u16,
    /// Whether the password may go out in the clear.
    pub plaintext: bool,
}

/// A registration and where it is.
#[derive(Debug)]
pub(super) struct Registering {
    what: Registration,
    leg: Option<Place>,
    /// Whether it is to end.
    ending: bool,
    failures: u32,
    tokens: u8,
    /// Whether the driver was asked for a signature.
    signing: bool,
    at: Instant,
    scheduled: Scheduled,
}

impl Registering {
    fn command(&self) -> Command {
        if self.ending { Command::REGREL } else { Command::REGREQ }
    }
    fn elements(&self) -> Vec<u8> {
        let mut data = Vec::new();
        write_element(&Element::Username(&self.what.username), &mut data);
        if !self.ending {
            write_element(&Element::Refresh(self.what.refresh), &mut data);
        }
        data
    }
}

impl Machine {
    /// Registers somewhere, and keeps the registration alive until [`Machine::unregister`].
    ///
    /// # Errors
    /// When there are too many.
    pub fn keep_registered(
        &mut self,
        now: Instant,
        what: Registration,
        out: &mut Out,
    ) -> Result<Place, Refused> {
        let place = self
            .core
            .registrations
            .insert_with(|_| Registering {
                what,
                leg: None,
                ending: false,
                failures: 0,
                tokens: 0,
                signing: false,
                at: now,
                scheduled: Scheduled::default(),
            })
            .ok_or(Refused::TooManyLegs)?;
        self.attempt(place, now, out);
        Ok(place)
    }

    /// Ends a registration; [`Event::Unregistered`] tells when, after one attempt to say so.
    ///
    /// # Errors
    /// When there is no such registration.
    pub fn unregister(&mut self, now: Instant, registration: Place, out: &mut Out) -> Result<(), Refused> {
        let kept = self.core.registrations.get_mut(registration).ok_or(Refused::NoLeg)?;
        kept.ending = true;
        if let Some(leg) = kept.leg.take() {
            self.settle(leg, Fate::Drop, now, out);
        }
        self.attempt(registration, now, out);
        Ok(())
    }

    fn attempt(&mut self, place: Place, now: Instant, out: &mut Out) {
        let Some(kept) = self.core.registrations.get_mut(place) else { return };
        (kept.tokens, kept.signing) = (0, false);
        let (to, command, mut data) = (kept.what.at, kept.command(), kept.elements());
        write_element(&Element::CallToken(b""), &mut data);
        match self.leg_to(now, to, Space::Own, None, Role::Registrant(place)) {
            Ok(leg) => {
                if let Some(kept) = self.core.registrations.get_mut(place) {
                    kept.leg = Some(leg);
                }
                self.with(leg, now, out, |leg, core, out| {
                    leg.give_up_at = Some(now + ATTEMPT);
                    leg.link.full(now, Kind::Iax(command), &data, &mut core.random, out);
                    ((), Fate::Keep)
                });
            }
            Err(_) => self.registration_failed(place, now, out),
        }
    }

    /// The registrar did not answer, or there was no way to ask.
    pub(super) fn registration_failed(&mut self, place: Place, now: Instant, out: &mut Out) {
        let Some(kept) = self.core.registrations.get_mut(place) else { return };
        kept.leg = None;
        if kept.ending {
            self.core.registrations.remove(place);
            return out.event(Event::Unregistered(place));
        }
        out.event(Event::RegistrationLost(place));
        again(&mut self.core, place, now);
    }

    pub(super) fn registration_due(&mut self, place: Place, fired: Instant, now: Instant, out: &mut Out) {
        let Some(kept) = self.core.registrations.get_mut(place) else { return };
        kept.scheduled.fired(fired);
        if kept.leg.is_some() {
            return;
        }
        if kept.at > now {
            let at = kept.at;
            return self.core.deadlines.schedule(Timer::Registration(place), &mut kept.scheduled, Some(at));
        }
        self.attempt(place, now, out);
    }
}

fn wake_at(core: &mut Core, place: Place, at: Instant) {
    if let Some(kept) = core.registrations.get_mut(place) {
        kept.at = at;
        core.deadlines.schedule(Timer::Registration(place), &mut kept.scheduled, Some(at));
    }
}

/// After a failure: later, and later each time.
fn again(core: &mut Core, place: Place, now: Instant) {
    let Some(kept) = core.registrations.get_mut(place) else { return };
    let wait = (AGAIN * 2u32.saturating_pow(kept.failures.min(8))).min(AGAIN_MAX);
    kept.failures = kept.failures.saturating_add(1);
    let wait = core.jittered(wait);
    wake_at(core, place, now + wait);
}

/// A token came: the attempt begins anew with it.
pub(super) fn token(leg: &mut Leg, core: &mut Core, token: &[u8], now: Instant, out: &mut Out) -> Fate {
    let Role::Registrant(place) = leg.role else { return Fate::Keep };
    let Some(kept) = core.registrations.get_mut(place) else { return Fate::Drop };
    if kept.tokens >= TOKENS_MAX || leg.link.theirs != 0 {
        return Fate::Keep;
    }
    kept.tokens += 1;
    let (command, mut data) = (kept.command(), kept.elements());
    write_element(&Element::CallToken(token), &mut data);
    leg.link.restart();
    leg.link.full(now, Kind::Iax(command), &data, &mut core.random, out);
    Fate::Keep
}

/// A frame in its turn.
pub(super) fn frame(
    leg: &mut Leg,
    core: &mut Core,
    leg_place: Place,
    frame: &Full<'_>,
    now: Instant,
    out: &mut Out,
) -> Fate {
    let Role::Registrant(place) = leg.role else { return Fate::Keep };
    let fields = Fields::collect(frame.data);
    let (Kind::Iax(command), Some(fields)) = (frame.kind, fields) else {
        core.discard(Discard::Unexpected);
        return Fate::Keep;
    };
    let Some(kept) = core.registrations.get_mut(place) else { return Fate::Drop };
    match command {
        Command::REGAUTH => {
            let methods = fields.methods.unwrap_or_default();
            let Some(proof) = prove(&kept.what.secret, methods, fields.challenge, kept.what.plaintext) else {
                if let Some(challenge) = fields.challenge.filter(|_| methods.has(Auth::RSA)) {
                    kept.signing = true;
                    let challenge = challenge.to_vec();
                    out.event(Event::Challenged { leg: leg_place, methods, challenge });
                    return Fate::Keep;
                }
                return refused(core, place, Cause::CALL_REJECTED, b"No method in common", now, out);
            };
            let (command, mut data) = (kept.command(), kept.elements());
            proof_element(&proof, &mut data);
            leg.link.full(now, Kind::Iax(command), &data, &mut core.random, out);
            Fate::Keep
        }
        Command::REGACK if kept.ending => {
            core.registrations.remove(place);
            out.event(Event::Unregistered(place));
            Fate::Drop
        }
        Command::REGACK => {
            let refresh = fields.refresh.unwrap_or(REFRESH_DEFAULT).max(REFRESH_MIN);
            (kept.leg, kept.failures) = (None, 0);
            out.event(Event::Registered {
                registration: place,
                apparent: fields.apparent,
                refresh,
                messages: fields.messages,
            });
            // RFC 5456 §7.2.2: in time, and not all at once. Between 60 and 90 per cent of the lease.
            let percent = 60 + core.random.below(31) as u32;
            wake_at(core, place, now + Duration::from_secs(u64::from(refresh)) * percent / 100);
            Fate::Drop
        }
        Command::REGREJ | Command::REJECT | Command::HANGUP => {
            let cause = Cause(fields.causecode.unwrap_or(0) & 127);
            refused(core, place, cause, fields.cause.unwrap_or_default(), now, out)
        }
        _ => {
            core.discard(Discard::Unexpected);
            Fate::Keep
        }
    }
}

/// Sends the signature that the driver was asked for.
pub(super) fn sign(
    leg: &mut Leg,
    core: &mut Core,
    signature: &[u8],
    now: Instant,
    out: &mut Out,
) -> Result<(), Refused> {
    let Role::Registrant(place) = leg.role else { return Err(Refused::WrongState) };
    let kept = core.registrations.get_mut(place).ok_or(Refused::NoLeg)?;
    if !core::mem::take(&mut kept.signing) {
        return Err(Refused::WrongState);
    }
    let (command, mut data) = (kept.command(), kept.elements());
    write_element(&Element::RsaResult(signature), &mut data);
    leg.link.full(now, Kind::Iax(command), &data, &mut core.random, out);
    Ok(())
}

fn refused(core: &mut Core, place: Place, cause: Cause, text: &[u8], now: Instant, out: &mut Out) -> Fate {
    let Some(kept) = core.registrations.get_mut(place) else { return Fate::Drop };
    kept.leg = None;
    if kept.ending {
        core.registrations.remove(place);
        out.event(Event::Unregistered(place));
    } else {
        out.event(Event::RegistrationRefused { registration: place, cause, text: text.to_vec() });
        again(core, place, now);
    }
    Fate::Drop
}
