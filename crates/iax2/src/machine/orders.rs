//! What a driver orders: calls to make, and what to say on them.

use super::call::{AES, Call, Dialling, State, ciphers, format_elements, reply};
use super::dial::{Dial, Encrypt};
use super::link::{Link, Space};
use super::negotiate::Priority;
use super::out::{Event, Out};
use super::party::Lines;
use super::state::{Challenged, Core};
use super::{ANSWER_WAIT, Fate, Leg, Machine, Role};
use super::{registrant, registrar};
use crate::auth::{Proof, Secret, prove};
use crate::frame::{Auth, Command, Control, Element, Html, Kind, Media, write_element};
use base::{Cause, Digit, FormatId, Instant, Place};
use core::net::SocketAddr;

/// Most octets of elements in one frame: they have to fit a datagram of any network, enciphered.
pub(super) const ELEMENTS_BYTES_MAX: usize = 1300;

/// Why an order was not carried out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refused {
    /// There is no such leg, or it is over.
    NoLeg,
    /// Not in the state that it is in.
    WrongState,
    /// There are as many legs as there may be.
    TooManyLegs,
    /// The address has as many numbers as it may have, or none is left.
    NoNumber,
    /// No format that both sides have.
    NoFormat,
    /// The other side cannot encipher.
    NoCipher,
    /// Too many frames wait to be acknowledged.
    WindowFull,
}

/// How a stranger shall prove who it is.
#[derive(Debug, Clone)]
pub struct Challenge<'a> {
    /// Whom it says to be.
    pub username: &'a [u8],
    /// Methods that are taken. The password in the clear only where an administrator asks for it.
    pub methods: Auth,
    /// The passwords of which any is right. An empty one is right for nobody, so unknown users can be asked like known
    /// ones and fail like them.
    pub secret: Secret,
    /// Whether to encipher; calls only.
    pub encrypt: Encrypt,
    /// Whether the keys of an enciphered call stay while it lasts.
    pub keys_stay: bool,
}

/// How a call is taken.
#[derive(Debug, Clone, Copy)]
pub struct Accept<'a> {
    /// Formats that the caller may have, best first.
    pub formats: &'a [FormatId],
    /// Formats of video that the caller may have.
    pub video: &'a [FormatId],
    /// Whose wishes go first.
    pub priority: Priority,
    /// Whether voice to the caller goes together with that of other calls.
    pub trunk: bool,
    /// Whether the caller may send the call elsewhere.
    pub transferable: bool,
    /// Whether changes of who is talked to are told and taken, where the caller can.
    pub lines: Lines,
}

/// What a registered peer is told.
#[derive(Debug, Clone, Copy, Default)]
pub struct Lease<'a> {
    /// Seconds until the registration ends.
    pub refresh: u16,
    /// Messages that wait: old ones in the high octet, new ones in the low one.
    pub messages: Option<u16>,
    /// Date and time in UTC (RFC 5456 §8.6.28).
    pub datetime: Option<u32>,
    /// The peer's number.
    pub calling: &'a [u8],
    /// The peer's name.
    pub name: &'a [u8],
}

/// The elements that say why.
pub(super) fn cause_elements(cause: Cause, text: &[u8]) -> Vec<u8> {
    let mut data = Vec::new();
    if !text.is_empty() {
        write_element(&Element::Cause(text), &mut data);
    }
    write_element(&Element::CauseCode(cause.0), &mut data);
    data
}

fn one(element: &Element<'_>) -> Vec<u8> {
    let mut data = Vec::new();
    write_element(element, &mut data);
    data
}

impl Machine {
    /// A leg of ours to `to`, which knows nothing of it yet.
    pub(super) fn leg_to(
        &mut self,
        now: Instant,
        to: SocketAddr,
        space: Space,
        most: Option<u32>,
        role: Role,
    ) -> Result<Place, Refused> {
        if self.legs.room() == 0 {
            return Err(Refused::TooManyLegs);
        }
        let number = self.core.take_number(now, to, space, most).ok_or(Refused::NoNumber)?;
        let link = Link::new(to, number, 0, space, now);
        let place = self.legs.insert_with(|_| Leg::new(link, role)).ok_or(Refused::TooManyLegs)?;
        self.core.index_ours(to, number, place);
        Ok(place)
    }

    /// Calls somebody. [`Event::Accepted`] or [`Event::Ended`] tells what comes of it.
    ///
    /// # Errors
    /// When there are too many legs, no number, or no format.
    pub fn dial(&mut self, now: Instant, dial: &Dial<'_>, out: &mut Out) -> Result<Place, Refused> {
        if Media::all(dial.formats).is_empty() {
            return Err(Refused::NoFormat);
        }
        let elements = dial.elements();
        let mut data = elements.clone();
        write_element(&Element::CallToken(b""), &mut data);
        let dialling = Dialling {
            elements,
            secret: dial.secret.clone(),
            encrypt: dial.encrypt,
            keys_stay: dial.keys_stay,
            plaintext: dial.plaintext,
            is_hurried: dial.autokill.is_some(),
            tokens: 0,
            challenge: None,
        };
        let space = match (dial.trunk, dial.transferable) {
            (true, _) => Space::Trunked,
            (false, true) => Space::Shared,
            (false, false) => Space::Own,
        };
        let mut call = Call::outgoing(dialling, dial.trunk, dial.transferable);
        call.lines = dial.lines;
        call.video = Media::all_video(dial.video);
        let place = self.leg_to(now, dial.to, space, dial.numbers_max, Role::Call(Box::new(call)))?;
        self.with(place, now, out, |leg, core, out| {
            leg.give_up_at = Some(now + dial.autokill.unwrap_or(ANSWER_WAIT));
            leg.link.full(now, Kind::Iax(Command::NEW), &data, &mut core.random, out);
            ((), Fate::Keep)
        });
        Ok(place)
    }

    /// Asks a caller, or who registers, to prove who it is. [`Event::Proven`], [`Event::Signed`] or [`Event::Unproven`]
    /// tells how it answered.
    ///
    /// # Errors
    /// When the leg does not wait to be decided on, or has to be enciphered and cannot.
    pub fn challenge(
        &mut self,
        now: Instant,
        leg: Place,
        challenge: &Challenge<'_>,
        out: &mut Out,
    ) -> Result<(), Refused> {
        self.order(leg, now, out, |leg, core, out| {
            let asked = Box::new(Challenged {
                challenge: core.fresh_challenge(),
                methods: challenge.methods,
                secret: challenge.secret.clone(),
            });
            let mut data = Vec::new();
            write_element(&Element::AuthMethods(asked.methods), &mut data);
            write_element(&Element::Challenge(&asked.challenge), &mut data);
            write_element(&Element::Username(challenge.username), &mut data);
            let command = match &mut leg.role {
                Role::Call(call) if matches!(call.state, State::Asked) => {
                    let can = call.ciphers & AES != 0 && challenge.encrypt != Encrypt::No;
                    if challenge.encrypt == Encrypt::Required && !can {
                        return Err(Refused::NoCipher);
                    }
                    if can {
                        call.trial = challenge.secret.keys(&asked.challenge).collect();
                        if call.trial.is_empty() {
                            // Whoever has no password has none that could decipher.
                            call.trial.push(core.fresh_key());
                        }
                        call.ciphers &= ciphers(challenge.keys_stay);
                        write_element(&Element::Encryption(call.ciphers), &mut data);
                    }
                    call.state = State::Challenged(asked);
                    Command::AUTHREQ
                }
                Role::Registrar(registrar) => {
                    registrar.challenge(asked)?;
                    Command::REGAUTH
                }
                _ => return Err(Refused::WrongState),
            };
            leg.give_up_at = Some(now + ANSWER_WAIT);
            leg.link.full(now, Kind::Iax(command), &data, &mut core.random, out);
            Ok(())
        })
    }

    /// Says whether a signature ([`Event::Signed`]) was right.
    ///
    /// # Errors
    /// When the leg does not wait for it.
    pub fn judge(&mut self, leg: Place, right: bool, out: &mut Out) -> Result<(), Refused> {
        let waits = match self.legs.get_mut(leg).map(|leg| &mut leg.role) {
            Some(Role::Call(call)) if matches!(call.state, State::Judging) => {
                call.state = if right { State::Proven } else { State::Failed };
                true
            }
            Some(Role::Registrar(registrar)) => registrar.judged(right),
            _ => false,
        };
        if !waits {
            return Err(Refused::WrongState);
        }
        out.event(if right { Event::Proven(leg) } else { Event::Unproven(leg) });
        Ok(())
    }

    /// Proves who we are, after [`Event::Challenged`].
    ///
    /// # Errors
    /// When the leg was not challenged, or the password cannot prove it by the methods that are taken.
    pub fn prove(&mut self, now: Instant, leg: Place, secret: &Secret, out: &mut Out) -> Result<(), Refused> {
        self.order(leg, now, out, |leg, core, out| {
            let Leg { link, role: Role::Call(call), .. } = leg else { return Err(Refused::WrongState) };
            let dialling = call.dialling.as_mut().ok_or(Refused::WrongState)?;
            let (methods, challenge, ciphers) = dialling.challenge.take().ok_or(Refused::WrongState)?;
            let Some(proof) = prove(secret, methods, Some(&challenge), dialling.plaintext) else {
                dialling.challenge = Some((methods, challenge, ciphers));
                return Err(Refused::WrongState);
            };
            dialling.secret = Some(secret.clone());
            reply(call, link, core, &proof, &challenge, ciphers, now, out);
            Ok(())
        })
    }

    /// Proves who we are with a signature in base 64, after [`Event::Challenged`], on a call or for a registration.
    ///
    /// # Errors
    /// When the leg was not challenged, or not for a signature, or has to be enciphered and there is no password to make
    /// keys of.
    pub fn sign(&mut self, now: Instant, leg: Place, signature: &[u8], out: &mut Out) -> Result<(), Refused> {
        self.order(leg, now, out, |leg, core, out| {
            let Leg { link, role: Role::Call(call), .. } = leg else {
                return registrant::sign(leg, core, signature, now, out);
            };
            let dialling = call.dialling.as_mut().ok_or(Refused::WrongState)?;
            let (methods, challenge, ciphers) = dialling.challenge.take().ok_or(Refused::WrongState)?;
            if !methods.has(Auth::RSA) {
                return Err(Refused::WrongState);
            }
            // Keys of calls are made of passwords, whatever else proves who calls.
            let has_password =
                dialling.secret.as_ref().is_some_and(|secret| secret.keys(&challenge).next().is_some());
            if dialling.encrypt == Encrypt::Required && !has_password {
                return Err(Refused::NoCipher);
            }
            reply(call, link, core, &Proof::Rsa(signature.to_vec()), &challenge, ciphers, now, out);
            Ok(())
        })
    }

    /// Takes a call that came in, in the format that is given back.
    ///
    /// # Errors
    /// When the call does not wait to be decided on, or no format fits: then it is still to be rejected.
    pub fn accept(
        &mut self,
        now: Instant,
        leg: Place,
        accept: &Accept<'_>,
        out: &mut Out,
    ) -> Result<FormatId, Refused> {
        self.order(leg, now, out, |leg, core, out| {
            let Leg { link, role: Role::Call(call), give_up_at, .. } = leg else {
                return Err(Refused::WrongState);
            };
            if !matches!(call.state, State::Asked | State::Proven) {
                return Err(Refused::WrongState);
            }
            let format = call.offer.choose(accept.priority, accept.formats).ok_or(Refused::NoFormat)?;
            let mut data = Vec::new();
            format_elements(format, &mut data);
            call.video = call.video.and(Media::all_video(accept.video));
            if !call.video.is_empty() {
                // Else nobody learns which video is taken: FORMAT names one format, and that is of sound.
                let can = Media::all(&[format]).with(call.video);
                write_element(&Element::Capability(can.0 as u32), &mut data);
                write_element(&Element::Capability2(can), &mut data);
            }
            call.lines = accept.lines.with(call.lines);
            if call.lines != Lines::default() {
                accept.lines.write(&mut data);
            }
            (call.trunk, call.transferable) = (accept.trunk, accept.transferable);
            link.full(now, Kind::Iax(Command::ACCEPT), &data, &mut core.random, out);
            call.accepted(format, link, core, now);
            *give_up_at = None;
            Ok(format)
        })
    }

    /// Confirms a registration, or that it has ended.
    ///
    /// # Errors
    /// When the leg does not wait to be decided on.
    pub fn register(
        &mut self,
        now: Instant,
        leg: Place,
        lease: &Lease<'_>,
        out: &mut Out,
    ) -> Result<(), Refused> {
        self.order(leg, now, out, |leg, core, out| registrar::confirm(leg, core, lease, now, out))
    }

    /// Refuses a call or a registration that was not decided on, or ends a call as [`Machine::hang_up`] does.
    ///
    /// # Errors
    /// When there is no such leg.
    pub fn reject(
        &mut self,
        now: Instant,
        leg: Place,
        cause: Cause,
        text: &[u8],
        out: &mut Out,
    ) -> Result<(), Refused> {
        let join = self.legs.get_mut(leg).and_then(Leg::call).and_then(|call| call.join);
        self.order(leg, now, out, |leg, core, out| {
            let command = match &leg.role {
                Role::Call(call) => call.farewell(),
                Role::Registrar(_) => Command::REGREJ,
                Role::Registrant(_) | Role::Watch(_) | Role::Notice => return Err(Refused::WrongState),
            };
            let data = cause_elements(cause, text);
            leg.link.full(now, Kind::Iax(command), &data, &mut core.random, out);
            leg.close();
            Ok(())
        })?;
        // The other one of two that were to talk directly goes on.
        join.into_iter().for_each(|join| self.part(join, now, out));
        Ok(())
    }

    /// Ends a call. There is no event: the leg is over for the driver at once.
    ///
    /// # Errors
    /// When there is no such leg.
    pub fn hang_up(&mut self, now: Instant, leg: Place, cause: Cause, out: &mut Out) -> Result<(), Refused> {
        self.reject(now, leg, cause, b"", out)
    }

    /// Says what happens to the call: it rings, is answered, held.
    ///
    /// # Errors
    /// When the call is not accepted, or too much waits to be acknowledged.
    pub fn control(
        &mut self,
        now: Instant,
        leg: Place,
        control: Control,
        out: &mut Out,
    ) -> Result<(), Refused> {
        self.say(now, leg, Kind::Control(control), &[], out)?;
        if control == Control::ANSWER
            && let Some(Role::Call(call)) = self.legs.get_mut(leg).map(|leg| &mut leg.role)
        {
            call.state = State::Up;
        }
        Ok(())
    }

    /// Begins or ends a digit.
    ///
    /// # Errors
    /// As [`Machine::control`].
    pub fn digit(
        &mut self,
        now: Instant,
        leg: Place,
        digit: Digit,
        begins: bool,
        out: &mut Out,
    ) -> Result<(), Refused> {
        let kind = if begins { Kind::DigitBegin(digit) } else { Kind::DigitEnd(digit) };
        self.say(now, leg, kind, &[], out)
    }

    /// Sends text.
    ///
    /// # Errors
    /// As [`Machine::control`].
    pub fn text(&mut self, now: Instant, leg: Place, text: &[u8], out: &mut Out) -> Result<(), Refused> {
        self.say(now, leg, Kind::Text, text.get(..ELEMENTS_BYTES_MAX).unwrap_or(text), out)
    }

    /// Sends a page, or says what to do with one.
    ///
    /// # Errors
    /// As [`Machine::control`].
    pub fn html(
        &mut self,
        now: Instant,
        leg: Place,
        html: Html,
        data: &[u8],
        out: &mut Out,
    ) -> Result<(), Refused> {
        self.say(now, leg, Kind::Html(html), data.get(..ELEMENTS_BYTES_MAX).unwrap_or(data), out)
    }

    /// Asks the other side to send no media, and, with a class, to play music; `unquelch` takes it back.
    ///
    /// # Errors
    /// As [`Machine::control`].
    pub fn quelch(
        &mut self,
        now: Instant,
        leg: Place,
        music: Option<&[u8]>,
        out: &mut Out,
    ) -> Result<(), Refused> {
        let data = music.map(|class| one(&Element::MusicOnHold(class))).unwrap_or_default();
        self.say(now, leg, Kind::Iax(Command::QUELCH), &data, out)
    }

    /// Asks the other side to send media again.
    ///
    /// # Errors
    /// As [`Machine::control`].
    pub fn unquelch(&mut self, now: Instant, leg: Place, out: &mut Out) -> Result<(), Refused> {
        self.say(now, leg, Kind::Iax(Command::UNQUELCH), &[], out)
    }

    /// Says how many messages wait: old ones in the high octet, new ones in the low one.
    ///
    /// # Errors
    /// As [`Machine::control`].
    pub fn messages(
        &mut self,
        now: Instant,
        leg: Place,
        messages: u16,
        out: &mut Out,
    ) -> Result<(), Refused> {
        let data = one(&Element::MessageCount(messages));
        self.say(now, leg, Kind::Iax(Command::MWI), &data, out)
    }

    /// Asks whether a number exists at the other side (DPREQ), on a call that was dialled without one.
    ///
    /// # Errors
    /// As [`Machine::control`].
    pub fn ask_number(
        &mut self,
        now: Instant,
        leg: Place,
        number: &[u8],
        out: &mut Out,
    ) -> Result<(), Refused> {
        self.say(now, leg, Kind::Iax(Command::DPREQ), &one(&Element::CalledNumber(number)), out)
    }

    /// Answers whether a number exists ([`Event::NumberAsked`]): RFC 5456 §8.6.19, and for how many seconds it is true.
    ///
    /// # Errors
    /// As [`Machine::control`].
    pub fn tell_number(
        &mut self,
        now: Instant,
        leg: Place,
        (number, status, refresh): (&[u8], u16, u16),
        out: &mut Out,
    ) -> Result<(), Refused> {
        let mut data = one(&Element::CalledNumber(number));
        write_element(&Element::DpStatus(status), &mut data);
        write_element(&Element::Refresh(refresh), &mut data);
        self.say(now, leg, Kind::Iax(Command::DPREP), &data, out)
    }

    /// Dials on a call that was made without a number (DIAL).
    ///
    /// # Errors
    /// As [`Machine::control`].
    pub fn dial_on(&mut self, now: Instant, leg: Place, number: &[u8], out: &mut Out) -> Result<(), Refused> {
        self.say(now, leg, Kind::Iax(Command::DIAL), &one(&Element::CalledNumber(number)), out)
    }

    /// Asks the other side to send the call on to another number of its own (TRANSFER).
    ///
    /// # Errors
    /// As [`Machine::control`].
    pub fn send_on(
        &mut self,
        now: Instant,
        leg: Place,
        number: &[u8],
        context: Option<&[u8]>,
        out: &mut Out,
    ) -> Result<(), Refused> {
        let mut data = one(&Element::CalledNumber(number));
        if let Some(context) = context {
            write_element(&Element::CalledContext(context), &mut data);
        }
        self.say(now, leg, Kind::Iax(Command::TRANSFER), &data, out)
    }

    /// The round trip of a leg, as far as it was measured.
    pub fn round_trip(&self, leg: Place) -> Option<core::time::Duration> {
        self.legs.get(leg).map(|leg| leg.link.round_trip)
    }

    /// Sends a frame that is repeated until acknowledged, on a call that is accepted.
    pub(super) fn say(
        &mut self,
        now: Instant,
        leg: Place,
        kind: Kind,
        data: &[u8],
        out: &mut Out,
    ) -> Result<(), Refused> {
        self.order(leg, now, out, |leg, core, out| match &leg.role {
            Role::Call(call) if call.is_accepted() => {
                let sent = leg.link.full(now, kind, data, &mut core.random, out);
                if sent { Ok(()) } else { Err(Refused::WindowFull) }
            }
            _ => Err(Refused::WrongState),
        })
    }

    /// Carries out an order on a leg that lives.
    pub(super) fn order<T>(
        &mut self,
        leg: Place,
        now: Instant,
        out: &mut Out,
        act: impl FnOnce(&mut Leg, &mut Core, &mut Out) -> Result<T, Refused>,
    ) -> Result<T, Refused> {
        let done = self.with(leg, now, out, |leg, core, out| (act(leg, core, out), Fate::Keep));
        done.unwrap_or(Err(Refused::NoLeg))
    }
}

/// Which message proves; for registrations.
pub(super) fn proof_element(proof: &Proof, data: &mut Vec<u8>) {
    match proof {
        Proof::Md5(answer) => write_element(&Element::Md5Result(answer), data),
        Proof::Plain(password) => write_element(&Element::Password(password), data),
        Proof::Rsa(signature) => write_element(&Element::RsaResult(signature), data),
    }
}
