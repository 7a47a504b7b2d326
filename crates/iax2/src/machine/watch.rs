//! Peers that are asked from time to time whether they are there (POKE, RFC 5456 §6.7.1).

use super::link::Space;
use super::orders::Refused;
use super::out::{Event, Out, Reach};
use super::state::{Core, Timer};
use super::{Fate, Leg, Machine, Role};
use crate::frame::{Command, Discard, Full, Kind};
use base::{Instant, Place, Scheduled};
use core::net::SocketAddr;
use core::time::Duration;

/// How long an answer is waited for at most, however long it may take.
const POKE_WAIT_MAX: Duration = Duration::from_secs(10);

/// A peer to watch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Watch {
    /// Where it is.
    pub to: SocketAddr,
    /// Longest round trip that counts as reachable (`qualify`).
    pub most: Duration,
    /// Between two questions while it answers (`qualifyfreqok`).
    pub every: Duration,
    /// Between two questions while it does not (`qualifyfreqnotok`).
    pub every_down: Duration,
    /// Whether the mean of the last two round trips counts (`qualifysmoothing`).
    pub smooth: bool,
}

/// A watched peer and how it is.
#[derive(Debug)]
pub(super) struct Watching {
    what: Watch,
    leg: Option<Place>,
    asked: Instant,
    at: Instant,
    reach: Option<Reach>,
    /// The last round trip.
    took: Option<Duration>,
    /// What the next one may take before the question is repeated, when the last answer has not told.
    may_take: Option<Duration>,
    scheduled: Scheduled,
}

impl Machine {
    /// Watches a peer; [`Event::Peer`] tells each change, and the first answer.
    ///
    /// # Errors
    /// When there are too many.
    pub fn watch(&mut self, now: Instant, what: Watch, out: &mut Out) -> Result<Place, Refused> {
        let watching = Watching {
            what,
            leg: None,
            asked: now,
            at: now,
            reach: None,
            took: None,
            may_take: None,
            scheduled: Scheduled::default(),
        };
        let place = self.core.watches.insert_with(|_| watching).ok_or(Refused::TooManyLegs)?;
        self.poke(place, now, out);
        Ok(place)
    }

    /// Watches a peer no longer.
    ///
    /// # Errors
    /// When there is no such watch.
    pub fn unwatch(&mut self, now: Instant, watch: Place, out: &mut Out) -> Result<(), Refused> {
        let watching = self.core.watches.remove(watch).ok_or(Refused::NoLeg)?;
        if let Some(leg) = watching.leg {
            self.settle(leg, Fate::Drop, now, out);
        }
        Ok(())
    }

    /// How a watched peer answered last.
    pub fn reach(&self, watch: Place) -> Option<Reach> {
        self.core.watches.get(watch).and_then(|watching| watching.reach)
    }

    fn poke(&mut self, place: Place, now: Instant, out: &mut Out) {
        let Some(watching) = self.core.watches.get_mut(place) else { return };
        watching.asked = now;
        let Watch { to, most, .. } = watching.what;
        let Ok(leg) = self.leg_to(now, to, Space::Own, None, Role::Watch(place)) else {
            return self.poke_failed(place, now, out);
        };
        let may_take = self.core.watches.get_mut(place).and_then(|watching| {
            watching.leg = Some(leg);
            watching.may_take.take()
        });
        self.with(leg, now, out, |leg, core, out| {
            leg.link.round_trip = may_take.unwrap_or(leg.link.round_trip);
            leg.give_up_at = Some(now + (most * 2).min(POKE_WAIT_MAX));
            leg.link.full(now, Kind::Iax(Command::POKE), &[], &mut core.random, out);
            ((), Fate::Keep)
        });
    }

    /// Nobody answered.
    pub(super) fn poke_failed(&mut self, place: Place, now: Instant, out: &mut Out) {
        found(&mut self.core, place, Reach::Unreachable, now, out);
    }

    pub(super) fn watch_due(&mut self, place: Place, fired: Instant, now: Instant, out: &mut Out) {
        let Some(watching) = self.core.watches.get_mut(place) else { return };
        watching.scheduled.fired(fired);
        if watching.leg.is_some() {
            return;
        }
        if watching.at > now {
            let at = watching.at;
            return self.core.deadlines.schedule(Timer::Watch(place), &mut watching.scheduled, Some(at));
        }
        self.poke(place, now, out);
    }
}

/// Notes how a peer answered, tells a change, and sets when it is asked next.
fn found(core: &mut Core, place: Place, reach: Reach, now: Instant, out: &mut Out) {
    let Some(watching) = core.watches.get_mut(place) else { return };
    watching.leg = None;
    if reach == Reach::Unreachable {
        watching.took = None;
    }
    let before = watching.reach.replace(reach);
    if before.map(|before| core::mem::discriminant(&before)) != Some(core::mem::discriminant(&reach)) {
        out.event(Event::Peer(place, reach));
    }
    let every = match reach {
        Reach::Reachable(_) => watching.what.every,
        Reach::Lagged(_) | Reach::Unreachable => watching.what.every_down,
    };
    let every = core.jittered(every.max(Duration::from_secs(1)));
    if let Some(watching) = core.watches.get_mut(place) {
        watching.at = now + every;
        core.deadlines.schedule(Timer::Watch(place), &mut watching.scheduled, Some(now + every));
    }
}

/// A frame in its turn.
pub(super) fn frame(leg: &mut Leg, core: &mut Core, frame: &Full<'_>, now: Instant, out: &mut Out) -> Fate {
    let Role::Watch(place) = leg.role else { return Fate::Keep };
    if frame.kind != Kind::Iax(Command::PONG) {
        core.discard(Discard::Unexpected);
        return Fate::Keep;
    }
    if let Some(watching) = core.watches.get_mut(place) {
        let took = now - watching.asked;
        if leg.link.has_repeated() {
            // Which of the two was answered nobody knows, so it tells no round trip (Karn and Partridge, 1987). The peer
            // is there, and is asked again at once, with patience for the longer of them.
            (watching.leg, watching.may_take, watching.at) = (None, Some(took), now);
            core.deadlines.schedule(Timer::Watch(place), &mut watching.scheduled, Some(now));
            return Fate::Drop;
        }
        let before = watching.took.replace(took);
        let took = before.filter(|_| watching.what.smooth).map_or(took, |before| (before + took) / 2);
        let reach = if took <= watching.what.most { Reach::Reachable(took) } else { Reach::Lagged(took) };
        found(core, place, reach, now, out);
    }
    Fate::Drop
}
