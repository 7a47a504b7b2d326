//! Who is asked to prove who it is, and what becomes of the answer.
//!
//! Who is nobody is asked like everybody else, and fails like who does not know the password.

use core::net::{IpAddr, SocketAddr};
use core::time::Duration;
use std::collections::{HashMap, VecDeque};
use std::rc::Rc;

use ::iax2::Secret;
use ::iax2::machine::{Challenge, Encrypt, Request};
use base::{Cause, Instant};
use call::security::{self, Presence};
use call::{Core, Level};

use super::config::{Peer, User};
use super::index::Face;
use super::{At, IaxDriver};

/// How long who was asked to prove who it is is remembered: longer than the machine waits for the proof, which is a minute.
const ASKED_WAIT: Duration = Duration::from_secs(70);
/// Places of those who have answered that are kept beside as many as there are others.
const FORGOTTEN_MORE: usize = 64;
/// How long who fails waits for the refusal with `delayreject`.
const REFUSAL_WAIT: Duration = Duration::from_secs(1);
/// Refusals that wait at once; further ones are sent at once.
const REFUSALS_MAX: usize = 4096;
/// What is said to every caller who fails, whoever it claims to be.
pub(super) const NO_AUTHORITY: &[u8] = b"No authority found";
/// What is said to everybody who fails to register.
const REFUSED: &[u8] = b"Registration Refused";

/// A token shows where whoever brings it is.
fn presence_of(request: &Request) -> Presence {
    if request.validated { Presence::Shown } else { Presence::Claimed }
}

/// What is said to who has too much waiting to be looked at, whoever it claims to be.
pub(super) fn busy() -> (Cause, &'static [u8]) {
    (Cause::SWITCH_CONGESTION, b"Too busy")
}

/// What is asked for by who has to prove who it is.
pub(super) enum Wish {
    Call(Rc<User>),
    Register(Rc<Peer>, bool),
    /// Somebody who is nobody calls, or registers.
    Nobody {
        calls: bool,
        /// Keys that its answer is looked at with, though none makes it right.
        keys: Vec<String>,
    },
}

impl Wish {
    fn calls(&self) -> bool {
        matches!(self, Self::Call(_) | Self::Nobody { calls: true, .. })
    }
    fn is_known(&self) -> bool {
        !matches!(self, Self::Nobody { .. })
    }
    fn keys(&self) -> &[String] {
        match self {
            Self::Call(user) => &user.keys,
            Self::Register(peer, _) => &peer.keys,
            Self::Nobody { keys, .. } => keys,
        }
    }
}

/// Who was asked to prove who it is.
pub(super) struct Asked {
    wish: Wish,
    /// Who it says that it is.
    name: Rc<str>,
    request: Box<Request>,
}

/// All of them, and those who have failed and have not heard so yet.
#[derive(Default)]
pub(super) struct Doorkeeper {
    asked: HashMap<At, Asked>,
    /// When those are forgotten, in order.
    forgotten_at: VecDeque<(Instant, At)>,
    /// Calls that wait for a proof, by name and address.
    calls: HashMap<(Rc<str>, IpAddr), u32>,
    /// Refusals that wait, in order.
    refusals: VecDeque<(Instant, At, &'static [u8])>,
}

impl Doorkeeper {
    /// Calls of this name from this address that wait for a proof.
    fn calls_of(&self, name: &Rc<str>, from: IpAddr) -> u32 {
        self.calls.get(&(name.clone(), from)).copied().unwrap_or(0)
    }
    fn put(&mut self, at: At, asked: Asked, now: Instant) {
        if asked.wish.calls() {
            *self.calls.entry((asked.name.clone(), asked.request.from.ip())).or_default() += 1;
        }
        self.asked.insert(at, asked);
        self.forgotten_at.push_back((now + ASKED_WAIT, at));
        // Most have answered long before: their places go once they are half of all.
        if self.forgotten_at.len() > 2 * self.asked.len() + FORGOTTEN_MORE {
            let asked = &self.asked;
            self.forgotten_at.retain(|(_, at)| asked.contains_key(at));
        }
    }
    pub(super) fn take(&mut self, at: At) -> Option<Asked> {
        let asked = self.asked.remove(&at)?;
        let key = (asked.name.clone(), asked.request.from.ip());
        if asked.wish.calls()
            && let Some(count) = self.calls.get_mut(&key)
        {
            *count -= 1;
            if *count == 0 {
                self.calls.remove(&key);
            }
        }
        Some(asked)
    }
    /// The keys that the answer of who was asked is looked at with.
    pub(super) fn keys_of(&self, at: At) -> Vec<String> {
        self.asked.get(&at).map(|asked| asked.wish.keys().to_vec()).unwrap_or_default()
    }
    /// The answer of who was asked is not looked at: who it says that it is, and where it came from.
    pub(super) fn turned_away(&mut self, at: At) -> Option<(Rc<str>, SocketAddr)> {
        self.take(at).map(|asked| (asked.name, asked.request.from))
    }
    /// A socket was closed.
    pub(super) fn forget_socket(&mut self, socket: u32) {
        let gone: Vec<At> = self.asked.keys().copied().filter(|(of, _)| *of == socket).collect();
        gone.into_iter().for_each(|at| _ = self.take(at));
        self.refusals.retain(|(_, (of, _), _)| *of != socket);
    }
    pub(super) fn deadline(&self) -> Option<Instant> {
        let forgotten = self.forgotten_at.front().map(|(at, _)| *at);
        let refusal = self.refusals.front().map(|(at, ..)| *at);
        [forgotten, refusal].into_iter().flatten().min()
    }
}

impl IaxDriver {
    /// What proves it, from the configuration or the astdb; `None`: nothing is asked for.
    fn secret(core: &mut Core, secret: Option<&Secret>, place: Option<&str>) -> Option<Secret> {
        let Some((family, key)) = place.and_then(|place| place.split_once('/')) else {
            return secret.cloned();
        };
        // One that is nowhere is nobody's.
        Some(Secret::new(core.services.db.get(family, key).unwrap_or_default().as_bytes()))
    }
    /// Asks for a proof.
    pub(super) fn challenge(
        &mut self,
        core: &mut Core,
        at: At,
        name: &str,
        mut wish: Wish,
        request: Request,
    ) {
        let (secret, face) = match &mut wish {
            Wish::Call(user) => {
                let secret = Self::secret(core, user.secret.as_ref(), user.secret_in.as_deref());
                (secret, Face::of_user(user))
            }
            Wish::Register(peer, _) => {
                let secret = Self::secret(core, peer.secret.as_ref(), peer.secret_in.as_deref());
                (secret, Face::of_peer(peer))
            }
            Wish::Nobody { calls, keys } => {
                let defaults = &self.config.defaults;
                let (face, of_others) = self.index.face_of_nobody(*calls, self.names_key, name, defaults);
                *keys = of_others;
                (None, face)
            }
        };
        let most = face.calls_max;
        let (now, known) = (core.now, wish.is_known());
        let (name, from): (Rc<str>, SocketAddr) = (name.into(), request.from);
        let why = if wish.calls() { NO_AUTHORITY } else { REFUSED };
        // Nobody is counted like somebody, so that the limit tells nothing.
        if most > 0 && wish.calls() && self.door.calls_of(&name, from.ip()) >= most {
            let shown = security::shown(&name);
            let line = format!(
                "a call of '{shown}' from {from} is refused: {most} wait for a proof already (maxauthreq)"
            );
            if core.tells_of(from.ip(), Presence::Claimed) {
                core.log(Level::Notice, "chan_iax2", &line);
            }
            return self.refuse(now, at, Cause::FACILITY_NOT_SUBSCRIBED, why);
        }
        // Keys of calls are made of passwords.
        if face.encrypt == Encrypt::Required && known && secret.is_none() {
            return self.refuse(now, at, Cause::FACILITY_NOT_SUBSCRIBED, why);
        }
        let challenge = Challenge {
            username: name.as_bytes(),
            methods: face.methods,
            secret: secret.unwrap_or_default(),
            encrypt: face.encrypt,
            keys_stay: face.keys_stay,
        };
        let done = self.order(at.0, |machine, out| machine.challenge(now, at.1, &challenge, out));
        if matches!(done, Some(Ok(()))) {
            self.door.put(at, Asked { wish, name: name.clone(), request: Box::new(request) }, now);
        } else {
            self.refuse(now, at, Cause::FACILITY_NOT_SUBSCRIBED, why);
        }
        let event = if known { "ChallengeSent" } else { "InvalidAccountID" };
        if core.tells_of(from.ip(), Presence::Claimed) {
            self.tell_attempt(core, at, from, event, &name);
        }
    }
    /// Tells the security log and watchers of an attempt to get in.
    fn tell_attempt(&self, core: &mut Core, at: At, from: SocketAddr, event: &'static str, name: &str) {
        let Some(Some(socket)) = self.sockets.get(at.0 as usize) else { return };
        core.tell_attempt(|_| security::Attempt {
            event,
            service: "IAX2",
            account: name.to_owned(),
            session: format!("{:x}", at.1.slot),
            local: security::address("UDP", socket.local),
            remote: security::address("UDP", from),
            challenge: String::new(),
            ..security::Attempt::default()
        });
    }
    /// Refuses a leg that was not decided on, or ends it.
    pub(super) fn refuse(&mut self, now: Instant, at: At, cause: Cause, why: &[u8]) {
        // It may be over already.
        let _ = self.order(at.0, |machine, out| machine.reject(now, at.1, cause, why, out));
    }
    /// Who was asked has proven to be who it says.
    pub(super) fn proven(&mut self, core: &mut Core, at: At) {
        let Some(asked) = self.door.take(at) else { return };
        let ip = asked.request.from.ip();
        if core.bans.is_user_banned(ip, &asked.name, core.now) {
            return self.failed(core, at, asked);
        }
        core.bans.succeeded(ip, &asked.name);
        self.tell_attempt(core, at, asked.request.from, "SuccessfulAuth", &asked.name);
        match asked.wish {
            Wish::Call(user) => self.admit(core, at, user, asked.request),
            Wish::Register(peer, release) => self.lease(core, at, &peer, release, &asked.request),
            // Nothing proves nobody.
            Wish::Nobody { .. } => self.refuse(core.now, at, Cause::FACILITY_NOT_SUBSCRIBED, NO_AUTHORITY),
        }
    }
    /// Who was asked could not prove it.
    pub(super) fn unproven(&mut self, core: &mut Core, at: At) {
        match self.door.take(at) {
            Some(asked) => self.failed(core, at, asked),
            None => self.refuse(core.now, at, Cause::FACILITY_NOT_SUBSCRIBED, NO_AUTHORITY),
        }
    }
    /// The proof was wrong, or is not looked at any more.
    fn failed(&mut self, core: &mut Core, at: At, asked: Asked) {
        let Asked { wish, name, request } = asked;
        let (now, from) = (core.now, request.from);
        // The words that fail2ban and its kin look for.
        let (ip, shown) = (from.ip().to_canonical(), security::shown(&name));
        let line = match (wish.is_known(), wish.calls()) {
            (true, _) => format!("Host {ip} failed MD5 authentication for '{shown}'"),
            (false, true) => format!("Host {ip} failed to authenticate as '{shown}'"),
            (false, false) => format!("No registration for peer '{shown}' (from {ip})"),
        };
        let is_told = core.tells_of(from.ip(), presence_of(&request));
        if is_told {
            core.log(Level::Notice, "chan_iax2", &line);
        }
        if wish.is_known() && is_told {
            self.tell_attempt(core, at, from, "ChallengeResponseFailed", &name);
        }
        // Without a token anybody may have sent it, and could have others banned.
        if request.validated {
            core.password_refused("IAX2", from.ip(), &name, || self.is_home(from.ip()));
        }
        let why = if wish.calls() { NO_AUTHORITY } else { REFUSED };
        if self.config.delay_reject && self.door.refusals.len() < REFUSALS_MAX {
            self.door.refusals.push_back((now + REFUSAL_WAIT, at, why));
        } else {
            self.refuse(now, at, Cause::FACILITY_NOT_SUBSCRIBED, why);
        }
    }
    /// Whether a peer is at home at an address: it has registered from there, or that is where it always is.
    fn is_home(&self, ip: IpAddr) -> bool {
        self.index.is_home(ip)
    }
    /// Whether a signature was right is known. None makes anybody of nobody.
    pub(super) fn judge(&mut self, at: At, right: bool) {
        let is_known = self.door.asked.get(&at).is_some_and(|asked| asked.wish.is_known());
        // It may be over.
        let _ = self.order(at.0, |machine, out| machine.judge(at.1, right && is_known, out));
    }
    /// Who has not answered in time is forgotten, and who waits for a refusal hears it.
    pub(super) fn door_due(&mut self, now: Instant) {
        while let Some((_, at)) = self.door.forgotten_at.pop_front_if(|(at, _)| *at <= now) {
            self.door.take(at);
        }
        while let Some((_, at, why)) = self.door.refusals.pop_front_if(|(at, ..)| *at <= now) {
            self.refuse(now, at, Cause::FACILITY_NOT_SUBSCRIBED, why);
        }
    }
}
