//! The machine of one socket: every call, registration and watched peer on it, found by what a frame says, woken by one
//! deadline.
//!
//! Datagrams, time and orders come in; datagrams and [`Event`]s go out. Nothing here blocks: whatever has to be looked up
//! elsewhere is an event, and an order answers it later.

mod call;
mod dial;
mod join;
mod link;
mod media;
mod negotiate;
mod orders;
mod out;
mod party;
mod receive;
mod registrant;
mod registrar;
mod state;
mod trunk;
mod watch;

pub use dial::{Dial, Encrypt};
pub use link::Message;
pub use media::{Piece, Report};
pub use negotiate::Priority;
pub use orders::{Accept, Challenge, Lease, Refused};
pub use out::{Event, Out, Reach, Request};
pub use party::{Connected, Lines};
pub use registrant::Registration;
pub use state::{Counts, Settings, TokenRule};
pub use trunk::TrunkSettings;
pub use watch::Watch;

use crate::frame::{
    Command, DATAGRAM_BYTES_MAX, Datagram, Discard, Kind, Media, mini_source, numbers, parse,
};
use base::hash::Key;
use base::{Cause, FormatId, Instant, Place, Scheduled, Slab};
use call::Call;
use core::net::{IpAddr, SocketAddr};
use core::time::Duration;
use link::Link;
use registrar::Registrar;
use state::{Core, Timer};

/// How long whoever is asked (a driver for its answer, a caller for its proof) may take before a leg is given up.
const ANSWER_WAIT: Duration = Duration::from_secs(60);
/// How long an acknowledgement may wait for an answer that carries it.
const ACK_WAIT: Duration = Duration::from_millis(40);

/// The machine of one socket.
#[derive(Debug)]
pub struct Machine {
    legs: Slab<Leg>,
    core: Core,
}

/// What is known of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Look {
    /// The other side.
    pub remote: SocketAddr,
    /// Our number.
    pub ours: u16,
    /// The other side's; 0 before it has told.
    pub theirs: u16,
    /// The number of our next frame, and of the other side's.
    pub sequence: (u8, u8),
    /// As far as it was measured.
    pub round_trip: Duration,
    /// How long the way there and back was last, ms, when that was asked; `None` before.
    pub lag_ms: Option<u32>,
    /// The first and the latest message of the protocol.
    pub messages: Option<(Message, Message)>,
    /// Once it is accepted.
    pub format: Option<FormatId>,
    /// Formats of video that both sides have, as far as the other side has said.
    pub video: Media,
    /// Whether it is enciphered.
    pub encrypted: bool,
    /// Whether its voice goes together with that of other calls.
    pub trunk: bool,
    /// How we receive voice.
    pub local: Report,
    /// How the other side says that it receives ours.
    pub remote_report: Report,
}

/// One leg: a call, or an exchange that registers or pokes. What voice needs comes first.
#[derive(Debug)]
#[repr(C)]
struct Leg {
    role: Role,
    /// Only waits until the other side has acknowledged.
    closing: bool,
    link: Link,
    /// Whose count of numbers it is in.
    host: IpAddr,
    /// Whether it was begun by a stranger without a token.
    without_token: bool,
    /// When whoever is asked has waited too long.
    give_up_at: Option<Instant>,
    /// An acknowledgement that waits for an answer: until when, of which timestamp, and the frames sent before.
    owed: Option<(Instant, u32, u32)>,
    scheduled: Scheduled,
}

#[derive(Debug)]
enum Role {
    Call(Box<Call>),
    Registrar(Box<Registrar>),
    Registrant(Place),
    Watch(Place),
    /// Something that is only told; acknowledged, it is over.
    Notice,
}

/// What a frame or a moment makes of its leg.
#[derive(Debug, PartialEq, Eq)]
enum Fate {
    /// It goes on.
    Keep,
    /// It is over, and whoever owns it hears why.
    Over(Cause, Vec<u8>),
    /// The same, but the other side has yet to acknowledge that it was told.
    Told(Cause, Vec<u8>),
    /// It is over, and nobody needs to hear.
    Drop,
}

impl Leg {
    fn new(link: Link, role: Role) -> Self {
        let host = link.remote.ip();
        Self {
            link,
            role,
            host,
            without_token: false,
            closing: false,
            give_up_at: None,
            owed: None,
            scheduled: Scheduled::default(),
        }
    }
    fn call(&mut self) -> Option<&mut Call> {
        match &mut self.role {
            Role::Call(call) if !self.closing => Some(call),
            _ => None,
        }
    }
    /// When it next wants to be woken.
    fn deadline(&self) -> Option<Instant> {
        let owed = self.owed.map(|(until, ..)| until);
        let own = match &self.role {
            Role::Call(call) if !self.closing => call.deadline(),
            _ => None,
        };
        [self.link.deadline(), self.give_up_at, owed, own].into_iter().flatten().min()
    }
    /// The other side is there: who was hurried has as much time as any other from here on.
    fn heard(&mut self, now: Instant) {
        if let Role::Call(call) = &mut self.role
            && call.dialling.as_mut().is_some_and(|dialling| core::mem::take(&mut dialling.is_hurried))
        {
            self.give_up_at = Some(now + ANSWER_WAIT);
        }
    }
    /// From here on only acknowledgements matter.
    fn close(&mut self) {
        self.closing = true;
        self.give_up_at = None;
        self.owed = None;
    }
}

impl Machine {
    /// A machine without calls. `key` is 128 bits that nobody can guess.
    pub fn new(now: Instant, key: u128, settings: Settings) -> Self {
        Self { legs: Slab::new(settings.legs_max), core: Core::new(now, Key::new(key), settings) }
    }

    /// Takes a datagram.
    pub fn on_datagram(&mut self, now: Instant, from: SocketAddr, bytes: &[u8], out: &mut Out) {
        if bytes.len() > DATAGRAM_BYTES_MAX {
            return self.core.discard(Discard::TooLong);
        }
        if numbers(bytes).is_some() {
            return self.on_full(now, from, bytes, out);
        }
        if let Some(source) = mini_source(bytes) {
            return self.on_mini(now, from, source, bytes, out);
        }
        match parse(bytes) {
            Ok(Datagram::Video(video)) => self.on_video(now, from, &video, out),
            Ok(Datagram::Trunk(trunk)) => self.on_trunk(now, from, &trunk, out),
            // Told apart above.
            Ok(Datagram::Full(_) | Datagram::Mini(_)) => {}
            Err(discard) => self.core.discard(discard),
        }
    }

    /// When [`Machine::on_timer`] next wants to be called; may be early, which costs a call for nothing.
    pub fn next_timer(&self) -> Option<Instant> {
        self.core.deadlines.earliest()
    }

    /// Does what is due.
    pub fn on_timer(&mut self, now: Instant, out: &mut Out) {
        self.core.wake_numbers(now);
        while let Some((at, timer)) = self.core.deadlines.pop_due(now) {
            match timer {
                Timer::Leg(place) => {
                    let Some(leg) = self.legs.get_mut(place) else { continue };
                    leg.scheduled.fired(at);
                    let fate = leg_due(leg, &mut self.core, place, now, out);
                    self.settle(place, fate, now, out);
                }
                Timer::Registration(place) => self.registration_due(place, at, now, out),
                Timer::Watch(place) => self.watch_due(place, at, now, out),
                Timer::Join(place) => self.join_due(place, at, now, out),
                Timer::Trunk(place) => self.core.trunk_due(place, at, now, out),
            }
        }
    }

    /// Takes other settings; what is under way goes on as it began, and [`Settings::legs_max`] stays.
    pub fn configure(&mut self, settings: Settings) {
        self.core.configure(settings);
    }
    /// Whether one user has to bring call tokens, from here on: [`Settings::token_users`] for one name.
    pub fn set_token_rule(&mut self, user: &[u8], rule: TokenRule) {
        match rule {
            TokenRule::Yes => _ = self.core.settings.token_users.remove(user),
            other => _ = self.core.settings.token_users.insert(user.to_vec(), other),
        }
    }
    /// How voice of several calls is sent together from here on: [`Settings::trunk`].
    pub fn set_trunk(&mut self, trunk: TrunkSettings) {
        self.core.settings.trunk = trunk;
    }
    /// Calls may be transferred from here on: [`Settings::transfers`].
    pub fn allow_transfers(&mut self) {
        self.core.settings.transfers = true;
    }

    /// What is known of a call; `None` when there is no such leg, or it is over.
    pub fn look(&self, leg: Place) -> Option<Look> {
        let leg = self.legs.get(leg).filter(|leg| !leg.closing)?;
        let Role::Call(call) = &leg.role else { return None };
        Some(Look {
            remote: leg.link.remote,
            ours: leg.link.ours,
            theirs: leg.link.theirs,
            sequence: leg.link.sequence(),
            round_trip: leg.link.round_trip,
            lag_ms: call.lag,
            messages: leg.link.messages(),
            format: call.format,
            video: call.video,
            encrypted: leg.link.keys.is_some(),
            trunk: call.trunk,
            local: call.media.heard_so_far(),
            remote_report: call.media.remote,
        })
    }

    /// The other side of a leg, a call or a registration.
    pub fn remote(&self, leg: Place) -> Option<SocketAddr> {
        self.legs.get(leg).map(|leg| leg.link.remote)
    }

    /// The registration of ours that a leg is for.
    pub fn registration_of(&self, leg: Place) -> Option<Place> {
        match self.legs.get(leg)?.role {
            Role::Registrant(registration) => Some(registration),
            Role::Call(_) | Role::Registrar(_) | Role::Watch(_) | Role::Notice => None,
        }
    }

    /// Call numbers of each host (IPv6: a /64): how many it has, and how many it may have.
    pub fn numbers_of_hosts(&self) -> impl Iterator<Item = (IpAddr, u32, u32)> {
        self.core.numbers_of_hosts()
    }

    /// What there is at present, and what was dropped so far.
    pub fn counts(&self) -> Counts {
        self.core.counts(self.legs.len())
    }

    /// Carries out what a frame or a moment made of a leg, and sets its deadline.
    fn settle(&mut self, place: Place, fate: Fate, now: Instant, out: &mut Out) {
        let Some(leg) = self.legs.get_mut(place) else { return };
        let over = match fate {
            Fate::Told(cause, text) => {
                let join = leg.call().and_then(|call| call.join);
                if leg.call().is_some() {
                    out.event(Event::Ended { leg: place, cause, text });
                }
                leg.close();
                self.settle(place, Fate::Keep, now, out);
                return join.into_iter().for_each(|join| self.part(join, now, out));
            }
            Fate::Keep if leg.closing && leg.link.is_quiet() => None,
            Fate::Keep => {
                if leg.owed.is_some_and(|(_, _, sent)| sent != leg.link.sent()) {
                    leg.owed = None;
                }
                let deadline = leg.deadline();
                return self.core.deadlines.schedule(Timer::Leg(place), &mut leg.scheduled, deadline);
            }
            Fate::Drop => None,
            Fate::Over(cause, text) => Some((cause, text)),
        };
        let Some(leg) = self.legs.remove(place) else { return };
        self.core.release(place, &leg, now);
        let Some((cause, text)) = over.filter(|_| !leg.closing) else { return };
        match leg.role {
            Role::Call(call) => {
                if let Some(join) = call.join {
                    self.part(join, now, out);
                }
                out.event(Event::Ended { leg: place, cause, text });
            }
            Role::Registrar(_) | Role::Notice => {}
            Role::Registrant(registration) => self.registration_failed(registration, now, out),
            Role::Watch(watch) => self.poke_failed(watch, now, out),
        }
    }

    /// Runs `act` on a leg that lives, and settles what it makes of it.
    fn with<T>(
        &mut self,
        place: Place,
        now: Instant,
        out: &mut Out,
        act: impl FnOnce(&mut Leg, &mut Core, &mut Out) -> (T, Fate),
    ) -> Option<T> {
        let leg = self.legs.get_mut(place).filter(|leg| !leg.closing)?;
        let (value, fate) = act(leg, &mut self.core, out);
        self.settle(place, fate, now, out);
        Some(value)
    }
}

/// What is due on a leg.
fn leg_due(leg: &mut Leg, core: &mut Core, place: Place, now: Instant, out: &mut Out) -> Fate {
    if !leg.link.repeat(now, &mut core.random, out) {
        return Fate::Over(Cause::DESTINATION_OUT_OF_ORDER, Vec::new());
    }
    if let Some((_, timestamp, _)) = leg.owed.take_if(|(until, ..)| now >= *until) {
        leg.link.ack(now, timestamp, &mut core.random, out);
    }
    if leg.give_up_at.is_some_and(|at| now >= at) {
        return give_up(leg, core, now, out);
    }
    match &mut leg.role {
        Role::Call(call) if !leg.closing => call::due(call, &mut leg.link, core, place, now, out),
        _ => Fate::Keep,
    }
}

/// Nobody answered in time: the other side hears of it, when there is one.
fn give_up(leg: &mut Leg, core: &mut Core, now: Instant, out: &mut Out) -> Fate {
    leg.give_up_at = None;
    let mut cause = Cause::RECOVERY_ON_TIMER_EXPIRE;
    let command = match &leg.role {
        Role::Call(call) => {
            if call.dialling.as_ref().is_some_and(|dialling| dialling.is_hurried) {
                cause = Cause::DESTINATION_OUT_OF_ORDER;
            }
            call.farewell()
        }
        Role::Registrar(_) => Command::REGREJ,
        Role::Registrant(_) | Role::Watch(_) | Role::Notice => {
            return Fate::Over(Cause::NO_USER_RESPONSE, Vec::new());
        }
    };
    let data = orders::cause_elements(cause, b"");
    leg.link.full(now, Kind::Iax(command), &data, &mut core.random, out);
    Fate::Told(cause, Vec::new())
}
