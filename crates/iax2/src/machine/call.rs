//! One call: from NEW over its proof to ACCEPT, what is said on it, and its end (RFC 5456 §6.2, §6.3, §6.7).

use super::dial::Encrypt;
use super::join::{self, Transfer};
use super::link::{Keys, Link};
use super::negotiate::Offer;
use super::orders::{cause_elements, proof_element};
use super::out::{Event, Out};
use super::party::{self, Lines};
use super::state::{Challenged, Core};
use super::{ANSWER_WAIT, Fate, Leg, Role, media};
use crate::auth::{CHALLENGE_BYTES_MAX, Proof, Secret, prove};
use crate::frame::{
    Auth, Command, Control, Discard, Element, Fields, Full, Html, Kind, Media, preferences, write_element,
};
use base::{Cause, FormatId, Instant, Place};
use core::mem::offset_of;
use core::ops::Range;
use core::time::Duration;
use lanes::{LINE_BYTES, prefetch};

/// Between two questions whether the other side is there (RFC 5456 §6.7.2): on a call without media, and on one that is
/// answered and heard, which says as much.
const PING_EVERY: Duration = Duration::from_secs(21);
/// See [`PING_EVERY`].
const PING_EVERY_MAX: Duration = Duration::from_secs(84);
/// Between two questions how long the way is: while it changes, and when it has long been the same.
const LAG_EVERY: Duration = Duration::from_secs(10);
/// See [`LAG_EVERY`].
const LAG_EVERY_MAX: Duration = Duration::from_secs(160);
/// By so much the way may change and still count as the same, ms.
const LAG_CHANGE_MS: u32 = 10;
/// Media this long ago means that the call is heard.
const HEARD: Duration = Duration::from_secs(5);
/// How long a key is used, at least; the field changes it every two to five minutes.
const KEY_LIFE: Duration = Duration::from_secs(120);
/// By so much longer at most.
const KEY_LIFE_MORE_MS: u64 = 180_000;
/// Most tokens that a call begins anew with.
const TOKENS_MAX: u8 = 3;
/// Bits of the element of ciphers: AES-128, and that keys may change.
pub(super) const AES: u16 = 1;
/// See [`AES`].
pub(super) const KEYS_CHANGE: u16 = 2;

/// What we can of these.
pub(super) const fn ciphers(keys_stay: bool) -> u16 {
    if keys_stay { AES } else { AES | KEYS_CHANGE }
}

#[derive(Debug)]
pub(super) enum State {
    /// NEW is out.
    Calling,
    /// AUTHREP is out.
    Replied,
    /// NEW came; the driver decides.
    Asked,
    /// AUTHREQ is out.
    Challenged(Box<Challenged>),
    /// A signature came; the driver checks it.
    Judging,
    /// The caller is who it says; the driver decides.
    Proven,
    /// The caller could not prove it; the driver refuses it when it likes.
    Failed,
    /// ACCEPT was said.
    Accepted,
    /// ANSWER was said.
    Up,
}

/// What an outgoing call needs until it is accepted.
#[derive(Debug)]
pub(super) struct Dialling {
    /// The elements of NEW, without a token.
    pub(super) elements: Vec<u8>,
    pub(super) secret: Option<Secret>,
    pub(super) encrypt: Encrypt,
    pub(super) keys_stay: bool,
    pub(super) plaintext: bool,
    /// The other side has said nothing yet, and has no more time than was asked for.
    pub(super) is_hurried: bool,
    pub(super) tokens: u8,
    /// What the other side wants proven, while the driver looks for a proof.
    pub(super) challenge: Option<(Auth, Vec<u8>, u16)>,
}

/// A call. What its voice needs comes first.
#[derive(Debug)]
#[repr(C)]
pub(super) struct Call {
    pub(super) state: State,
    /// A box, because it is needed for each frame whether there is one.
    pub(super) transfer: Option<Box<Transfer>>,
    pub(super) trunk: bool,
    pub(super) quelched: bool,
    pub(super) media: media::State,
    pub(super) dialling: Option<Box<Dialling>>,
    pub(super) offer: Offer,
    /// Ciphers that the caller can, when it came with NEW.
    pub(super) ciphers: u16,
    /// Keys of which the first enciphered frame tells the right one.
    pub(super) trial: Vec<[u8; 16]>,
    pub(super) format: Option<FormatId>,
    /// Formats of video: those that the caller has offered, and from ACCEPT on those that both sides have.
    pub(super) video: Media,
    pub(super) transferable: bool,
    /// The join of two legs of ours that this one is in.
    pub(super) join: Option<Place>,
    /// Whether it is told and taken who is talked to: until ACCEPT what the caller has said of itself, then what both do.
    pub(super) lines: Lines,
    pub(super) lag: Option<u32>,
    ping: Option<(Instant, Duration)>,
    lag_question: Option<(Instant, Duration)>,
    key_until: Option<Instant>,
}

impl Call {
    /// Lines of the cache that a frame of voice touches.
    const OF_VOICE: Range<usize> =
        0..(offset_of!(Self, media) + media::State::VOICE_BYTES).div_ceil(LINE_BYTES) + 1;

    /// Asks for the memory that a frame of voice touches.
    pub(super) fn fetch(&self) {
        prefetch(self, Self::OF_VOICE);
    }
    fn new(state: State) -> Self {
        Self {
            state,
            dialling: None,
            offer: Offer::default(),
            ciphers: 0,
            trial: Vec::new(),
            format: None,
            video: Media::NONE,
            media: media::State::default(),
            transferable: false,
            transfer: None,
            join: None,
            trunk: false,
            quelched: false,
            lines: Lines::default(),
            lag: None,
            ping: None,
            lag_question: None,
            key_until: None,
        }
    }
    pub(super) fn outgoing(dialling: Dialling, trunk: bool, transferable: bool) -> Self {
        Self { dialling: Some(Box::new(dialling)), trunk, transferable, ..Self::new(State::Calling) }
    }
    pub(super) fn incoming(elements: &[u8], fields: &Fields<'_>) -> Self {
        let order = preferences(fields.prefs.unwrap_or_default()).collect();
        let offer = Offer { can: fields.formats(), wish: fields.format_one(), order };
        let ciphers = fields.encryption.unwrap_or(0);
        let lines = Lines::said(elements);
        let video = offer.can.and(Media::VIDEO);
        Self { offer, ciphers, lines, video, transferable: true, ..Self::new(State::Asked) }
    }
    /// Whether ACCEPT was said, so that media and what happens to the call may be.
    pub(super) const fn is_accepted(&self) -> bool {
        matches!(self.state, State::Accepted | State::Up)
    }
    pub(super) const fn is_replied(&self) -> bool {
        matches!(self.state, State::Replied)
    }
    /// The message that ends it.
    pub(super) const fn farewell(&self) -> Command {
        match self.state {
            State::Asked | State::Challenged(_) | State::Judging | State::Proven | State::Failed => {
                Command::REJECT
            }
            State::Calling | State::Replied | State::Accepted | State::Up => Command::HANGUP,
        }
    }
    pub(super) fn deadline(&self) -> Option<Instant> {
        let ping = self.ping.map(|(at, _)| at);
        let lag = self.lag_question.map(|(at, _)| at);
        let transfer = self.transfer.as_ref().and_then(|transfer| transfer.next_at);
        [ping, lag, self.key_until, transfer].into_iter().flatten().min()
    }
    /// From ACCEPT on both sides look after each other.
    pub(super) fn accepted(&mut self, format: FormatId, link: &Link, core: &mut Core, now: Instant) {
        self.state = State::Accepted;
        self.format = Some(format);
        self.dialling = None;
        self.ping = Some((now + core.jittered(PING_EVERY), PING_EVERY));
        self.lag_question = Some((now + core.jittered(LAG_EVERY), LAG_EVERY));
        if link.keys.is_some() && self.ciphers & KEYS_CHANGE != 0 {
            self.key_until = Some(now + key_life(core));
        }
    }
}

fn key_life(core: &mut Core) -> Duration {
    KEY_LIFE + Duration::from_millis(core.random.below(KEY_LIFE_MORE_MS))
}

/// What is due on a call.
pub(super) fn due(
    call: &mut Call,
    link: &mut Link,
    core: &mut Core,
    place: Place,
    now: Instant,
    out: &mut Out,
) -> Fate {
    if let Some((_, every)) = call.ping.filter(|(at, _)| now >= *at) {
        // Who is heard and answers is asked less often.
        let heard = call.media.heard.is_some_and(|at| now - at < HEARD);
        let every = if heard { (every * 2).min(PING_EVERY_MAX) } else { PING_EVERY };
        call.ping = Some((now + core.jittered(every), every));
        link.full(now, Kind::Iax(Command::PING), &[], &mut core.random, out);
    }
    if let Some((_, every)) = call.lag_question.filter(|(at, _)| now >= *at) {
        call.lag_question = Some((now + core.jittered(every), every));
        link.full(now, Kind::Iax(Command::LAGRQ), &[], &mut core.random, out);
    }
    if call.key_until.is_some_and(|at| now >= at) {
        call.key_until = Some(now + key_life(core));
        let key = core.fresh_key();
        let mut data = Vec::new();
        write_element(&Element::Challenge(&key), &mut data);
        // The message itself, also when it is repeated, goes under the key before.
        if link.full(now, Kind::Iax(Command::RTKEY), &data, &mut core.random, out)
            && let Some(keys) = &mut link.keys
        {
            keys.turn_seal(&key);
        }
    }
    join::transfer_due(call, link, core, place, now, out);
    Fate::Keep
}

/// Nothing could be made of an enciphered frame: a caller whose proof it should be has not the password.
pub(super) fn undeciphered(leg: &mut Leg, place: Place, now: Instant, out: &mut Out) -> Fate {
    let Leg { link, role: Role::Call(call), give_up_at, .. } = leg else { return Fate::Keep };
    if matches!(call.state, State::Challenged(_)) && link.keys.is_none() {
        call.state = State::Failed;
        *give_up_at = Some(now + ANSWER_WAIT);
        out.event(Event::Unproven(place));
    }
    Fate::Keep
}

/// A token came for a call that has just begun: it begins anew with it (RFC 5456 does not know tokens; the field does).
pub(super) fn token(leg: &mut Leg, core: &mut Core, token: &[u8], now: Instant, out: &mut Out) -> Fate {
    let Leg { link, role: Role::Call(call), .. } = leg else { return Fate::Keep };
    let (State::Calling, Some(dialling)) = (&call.state, &mut call.dialling) else { return Fate::Keep };
    if dialling.tokens >= TOKENS_MAX || link.theirs != 0 {
        return Fate::Keep;
    }
    dialling.tokens += 1;
    let mut data = dialling.elements.clone();
    write_element(&Element::CallToken(token), &mut data);
    link.restart();
    link.full(now, Kind::Iax(Command::NEW), &data, &mut core.random, out);
    Fate::Keep
}

/// A frame in its turn.
pub(super) fn frame(
    leg: &mut Leg,
    core: &mut Core,
    place: Place,
    frame: &Full<'_>,
    now: Instant,
    out: &mut Out,
) -> Fate {
    let Role::Call(call) = &mut leg.role else { return Fate::Keep };
    if let Kind::Iax(command) = frame.kind {
        return match Fields::collect(frame.data) {
            Some(fields) => message(leg, core, place, command, &fields, frame, now, out),
            None => {
                core.discard(Discard::Overrun);
                Fate::Keep
            }
        };
    }
    if !call.is_accepted() {
        core.discard(Discard::Unexpected);
        return Fate::Keep;
    }
    match frame.kind {
        Kind::Voice(format) => media::full_voice(call, core, place, format, frame, now, out),
        Kind::Video(format, mark) => media::full_video(call, place, format, mark, frame, now, out),
        Kind::Control(Control::CONNECTED_LINE) => match party::told(place, frame.data) {
            Some(event) if call.lines.take => out.event(event),
            // What the field means by it is not known here.
            Some(_) | None => core.discard(Discard::Unexpected),
        },
        Kind::Control(control) => {
            if control == Control::ANSWER {
                call.state = State::Up;
            }
            out.event(Event::Control(place, control));
        }
        Kind::DigitBegin(digit) => out.event(Event::Digit(place, digit, true)),
        Kind::DigitEnd(digit) => out.event(Event::Digit(place, digit, false)),
        Kind::Text => out.event(Event::Text(place, frame.data.to_vec())),
        Kind::Noise(level) => out.event(Event::Noise(place, level)),
        Kind::Html(Html::NOT_SUPPORTED) => {}
        Kind::Html(html) => out.event(Event::Html(place, html, frame.data.to_vec())),
        Kind::Image(_) | Kind::Null | Kind::Unknown(..) => core.discard(Discard::Unexpected),
        // Told apart above.
        Kind::Iax(_) => {}
    }
    Fate::Keep
}

/// A message of the protocol.
#[allow(clippy::too_many_arguments, reason = "a frame, read, and where it belongs")]
fn message(
    leg: &mut Leg,
    core: &mut Core,
    place: Place,
    command: Command,
    fields: &Fields<'_>,
    frame: &Full<'_>,
    now: Instant,
    out: &mut Out,
) -> Fate {
    let Leg { link, role: Role::Call(call), give_up_at, .. } = &mut *leg else { return Fate::Keep };
    match (command, &call.state) {
        (Command::HANGUP | Command::REJECT, _) => {
            // Many say why only in words.
            let unsaid =
                if command == Command::REJECT { Cause::CALL_REJECTED } else { Cause::NORMAL_CLEARING };
            let cause = fields.causecode.filter(|code| (1..128).contains(code)).map_or(unsaid, Cause);
            return Fate::Over(cause, fields.cause.unwrap_or_default().to_vec());
        }
        (Command::PING, _) => {
            let data = call.media.report();
            link.full_at(now, frame.timestamp, Kind::Iax(Command::PONG), &data, &mut core.random, out);
            out.event(Event::Asked(place));
        }
        (Command::LAGRQ, _) => {
            link.full_at(now, frame.timestamp, Kind::Iax(Command::LAGRP), &[], &mut core.random, out);
        }
        (Command::PONG, _) => {
            if let Some(took) = took(link, frame, now) {
                link.round_trip = (link.round_trip * 3 + took) / 4;
            }
            if let Some(report) = media::Report::told(fields) {
                call.media.remote = report;
            }
        }
        (Command::LAGRP, _) => lag_answered(call, link, frame, now),
        (Command::ACCEPT, State::Calling | State::Replied) => {
            // Without a challenge there are no keys: whoever leaves it out gets nothing in the clear.
            let must = call.dialling.as_ref().is_some_and(|dialling| dialling.encrypt == Encrypt::Required);
            if must && link.keys.is_none() {
                return unciphered(link, core, now, out);
            }
            // Some say the formats of sound and of video in one.
            let Some(format) = fields.format_one().sound().format() else {
                let data = cause_elements(Cause::BEARERCAPABILITY_NOTAVAIL, b"Unable to negotiate codec");
                link.full(now, Kind::Iax(Command::HANGUP), &data, &mut core.random, out);
                return Fate::Told(Cause::BEARERCAPABILITY_NOTAVAIL, Vec::new());
            };
            *give_up_at = None;
            call.lines = call.lines.with(Lines::said(frame.data));
            // The field says nothing of what else it has: it may have all that it was offered.
            if !fields.formats().is_empty() {
                call.video = call.video.and(fields.formats());
            }
            call.accepted(format, link, core, now);
            out.event(Event::Accepted(place, format));
        }
        (Command::AUTHREQ, State::Calling) => return challenged(leg, core, place, fields, now, out),
        (Command::AUTHREP, State::Challenged(asked)) => {
            if let Some(signature) = fields.rsa.filter(|_| asked.methods.has(Auth::RSA)) {
                let (challenge, signature) = (asked.challenge.clone(), signature.to_vec());
                call.state = State::Judging;
                out.event(Event::Signed { leg: place, challenge, signature });
            } else if asked.check(fields) {
                call.state = State::Proven;
                out.event(Event::Proven(place));
            } else {
                call.state = State::Failed;
                out.event(Event::Unproven(place));
            }
            *give_up_at = Some(now + ANSWER_WAIT);
        }
        (Command::RTKEY, _) => {
            let key = fields.challenge.and_then(|key| <&[u8; 16]>::try_from(key).ok());
            match (key, &mut link.keys) {
                (Some(key), Some(keys)) => keys.turn_open(key),
                _ => core.discard(Discard::Unexpected),
            }
        }
        (
            Command::TXREQ | Command::TXREADY | Command::TXREL | Command::TXMEDIA | Command::TXREJ,
            State::Accepted | State::Up,
        ) => return join::message(leg, core, place, command, fields, frame.timestamp, now, out),
        (_, State::Accepted | State::Up) => told(call, link, core, place, command, fields, now, out),
        _ => core.discard(Discard::Unexpected),
    }
    Fate::Keep
}

/// What the driver is told of, on a call that was accepted; and what is not known here.
#[allow(clippy::too_many_arguments, reason = "a frame, read, and where it belongs")]
fn told(
    call: &mut Call,
    link: &mut Link,
    core: &mut Core,
    place: Place,
    command: Command,
    fields: &Fields<'_>,
    now: Instant,
    out: &mut Out,
) {
    let called = || fields.called.unwrap_or_default().to_vec();
    match command {
        Command::QUELCH => {
            call.quelched = true;
            out.event(Event::Quelched(place, fields.music.map(<[u8]>::to_vec)));
        }
        Command::UNQUELCH => {
            call.quelched = false;
            out.event(Event::Unquelched(place));
        }
        Command::MWI => out.event(Event::Messages(place, fields.messages.unwrap_or(0))),
        Command::DPREQ => out.event(Event::NumberAsked(place, called())),
        Command::DPREP => out.event(Event::NumberTold {
            leg: place,
            number: called(),
            status: fields.dpstatus.unwrap_or(0),
            refresh: fields.refresh.unwrap_or(0),
        }),
        Command::DIAL => out.event(Event::Dialled(place, called())),
        Command::TRANSFER => {
            out.event(Event::SendOn(place, called(), fields.context.map(<[u8]>::to_vec)));
        }
        Command::UNSUPPORT => {}
        // Known, and out of place.
        Command::NEW | Command::ACCEPT | Command::AUTHREQ | Command::AUTHREP => {
            core.discard(Discard::Unexpected);
        }
        // RFC 5456 §6.9.5; firmware and provisioning among them.
        other => {
            let mut data = Vec::new();
            write_element(&Element::IaxUnknown(other.0), &mut data);
            link.full(now, Kind::Iax(Command::UNSUPPORT), &data, &mut core.random, out);
        }
    }
}

/// How long the answer to a question with our timestamp took; `None` when we cannot have asked then.
fn took(link: &Link, frame: &Full<'_>, now: Instant) -> Option<Duration> {
    let took = link.clock(now).checked_sub(frame.timestamp)?;
    (took < 60_000).then(|| Duration::from_millis(u64::from(took)))
}

/// How long the way is; the more often it is the same, the more seldom it is asked.
fn lag_answered(call: &mut Call, link: &Link, frame: &Full<'_>, now: Instant) {
    let Some(took) = took(link, frame, now) else { return };
    let took = took.as_millis() as u32;
    let same = call.lag.is_some_and(|before| before.abs_diff(took) <= LAG_CHANGE_MS);
    call.lag = Some(took);
    if let Some((_, every)) = &mut call.lag_question {
        *every = if same { (*every * 2).min(LAG_EVERY_MAX) } else { LAG_EVERY };
    }
}

/// The other side wants a proof (RFC 5456 §6.2.7).
fn challenged(
    leg: &mut Leg,
    core: &mut Core,
    place: Place,
    fields: &Fields<'_>,
    now: Instant,
    out: &mut Out,
) -> Fate {
    let Leg { link, role: Role::Call(call), .. } = leg else { return Fate::Keep };
    let Some(dialling) = &mut call.dialling else { return Fate::Keep };
    let methods = fields.methods.unwrap_or_default();
    let ciphers = fields.encryption.unwrap_or(0);
    let challenge = fields.challenge.filter(|challenge| challenge.len() <= CHALLENGE_BYTES_MAX);
    if dialling.encrypt == Encrypt::Required && ciphers & AES == 0 {
        return unciphered(link, core, now, out);
    }
    let proof =
        dialling.secret.as_ref().and_then(|secret| prove(secret, methods, challenge, dialling.plaintext));
    match proof {
        Some(proof) => reply(call, link, core, &proof, challenge.unwrap_or_default(), ciphers, now, out),
        None => {
            let challenge = challenge.unwrap_or_default().to_vec();
            dialling.challenge = Some((methods, challenge.clone(), ciphers));
            out.event(Event::Challenged { leg: place, methods, challenge });
        }
    }
    Fate::Keep
}

/// A call that has to be enciphered ends, because the other side does not.
fn unciphered(link: &mut Link, core: &mut Core, now: Instant, out: &mut Out) -> Fate {
    let (cause, why) = (Cause::BEARERCAPABILITY_NOTAVAIL, b"No encryption");
    link.full(now, Kind::Iax(Command::HANGUP), &cause_elements(cause, why), &mut core.random, out);
    Fate::Told(cause, why.to_vec())
}

/// Sends the proof; from here on, if both sides can, everything is enciphered (RFC 5456 §7.4).
#[allow(clippy::too_many_arguments, reason = "the proof, what it is for, and where it goes")]
pub(super) fn reply(
    call: &mut Call,
    link: &mut Link,
    core: &mut Core,
    proof: &Proof,
    challenge: &[u8],
    ciphers: u16,
    now: Instant,
    out: &mut Out,
) {
    let Some(dialling) = &mut call.dialling else { return };
    let key = dialling.secret.as_ref().and_then(|secret| secret.keys(challenge).next());
    if let Some(key) = key.filter(|_| ciphers & AES != 0 && dialling.encrypt != Encrypt::No) {
        link.keys = Some(Keys::new(&key));
        call.ciphers = ciphers & self::ciphers(dialling.keys_stay);
    }
    let mut data = Vec::new();
    proof_element(proof, &mut data);
    call.state = State::Replied;
    link.full(now, Kind::Iax(Command::AUTHREP), &data, &mut core.random, out);
}

/// The elements of a format, narrow and wide.
pub(super) fn format_elements(format: FormatId, data: &mut Vec<u8>) {
    let media = Media::of(format).unwrap_or_default();
    if let Ok(narrow) = u32::try_from(media.0) {
        write_element(&Element::Format(narrow), data);
    }
    write_element(&Element::Format2(media), data);
}
