//! Attempts: who is called for whom, and what comes of it.

use core::time::Duration;
use std::rc::Rc;

use base::Instant;

use super::{Phone, Queues, log, tell_agent};
use crate::log::{Entry, Line};
use crate::strategy::{Candidate, Turn, choose};
use crate::{
    AgentStep, Autopause, Bounds, Caller, Member, Now, Offer, Order, Output, Queue, Refusal, Stage, Strategy,
};

/// Callers who wait for somebody and are weighed against those behind them: more than that wait for one another.
const AHEAD_MAX: usize = 64;
/// Shortest pause between two attempts for one caller: members who refuse at once are not called without end.
const RETRY_MIN: Duration = Duration::from_secs(1);

impl Queues {
    /// Whether a member could be called now, as far as it and its device are concerned.
    pub fn is_free(&self, member: &Member, now: Instant) -> bool {
        let engaged = || self.phones.get(&member.phone).is_some_and(|phone| *phone != Phone::default());
        !member.paused && !member.wraps_up(now) && member.device_takes_calls(self.device_of(member), engaged)
    }

    /// Whether a member could be called now for this caller of the queue: it is free, and within the caller's own limits.
    fn may_get(&self, queue: &Queue, caller: &Caller, member: &Member, now: Instant) -> bool {
        let is_within = !queue.penalises() || caller.bounds.admit(member.penalty).is_some();
        is_within && caller.suits(member) && self.is_free(member, now)
    }

    /// Whether one more caller could be served beside those who wait for somebody before it.
    ///
    /// Only those compete who may get one of the members that this caller may get.
    fn has_room(&self, queue: &Queue, caller: &Caller, before: &[usize], now: Instant) -> bool {
        let before = before.iter().filter_map(|at| queue.callers.get(*at));
        if !is_limited(queue, caller) && before.clone().all(|other| !is_limited(queue, other)) {
            let beside = before.count();
            let mut free = queue.members.iter().filter(|member| self.is_free(member, now));
            return !(serves_one_at_once(queue) && beside > 0) && free.nth(beside).is_some();
        }
        let own = || queue.members.iter().filter(|member| self.may_get(queue, caller, member, now));
        let competes = |other: &&Caller| own().any(|member| self.may_get(queue, other, member, now));
        let beside = before.filter(competes).count();
        !(serves_one_at_once(queue) && beside > 0) && own().nth(beside).is_some()
    }

    /// Whether a free member is wanted more by another of its queues.
    pub(super) fn is_wanted_elsewhere(
        &self,
        queue: &Queue,
        slot: usize,
        member: &Member,
        since: Instant,
        now: Instant,
    ) -> bool {
        if !self.weighs {
            return false;
        }
        let others = self.phones.queues(&member.phone).iter().filter(|other| **other != slot);
        let others = others.filter_map(|other| self.slots.get(*other)?.as_deref());
        others.into_iter().any(|other| {
            let Some(there) = other.member(&member.interface).filter(|there| self.is_free(there, now)) else {
                return false;
            };
            match other.settings.weight.cmp(&queue.settings.weight) {
                core::cmp::Ordering::Less => false,
                core::cmp::Ordering::Greater => self.needs(other, there, now),
                core::cmp::Ordering::Equal => {
                    let waits = |caller: &&Caller| self.may_get(other, caller, there, now);
                    let first = asking(other).filter(waits).map(|caller| caller.joined.at).min();
                    self.general.longest_waiting_first && first.is_some_and(|first| first < since)
                }
            }
        })
    }

    /// Whether callers of a queue wait who could not all be served without this member of it, who is free. Callers who may not
    /// get it do not count.
    fn needs(&self, queue: &Queue, member: &Member, now: Instant) -> bool {
        let free: Vec<&Member> = queue.members.iter().filter(|member| self.is_free(member, now)).collect();
        if asking(queue).all(|caller| !is_limited(queue, caller)) {
            let waiting = asking(queue).count();
            return waiting > 0 && (serves_one_at_once(queue) || free.len() <= waiting);
        }
        let choice =
            |caller: &Caller| free.iter().filter(|one| self.may_get(queue, caller, one, now)).count();
        // Who needs what nobody has who is free competes with nobody.
        let competing = asking(queue).filter(|caller| choice(caller) > 0).count();
        let mut own = asking(queue).filter(|caller| self.may_get(queue, caller, member, now));
        own.any(|caller| serves_one_at_once(queue) || choice(caller) <= competing)
    }

    /// Begins attempts for all who may have one.
    pub(super) fn call_members(&mut self, queue: &mut Queue, slot: usize, now: Now, out: &mut Vec<Output>) {
        let mut ahead = Vec::new();
        for at in 0..queue.callers.len() {
            if at > 0 && !queue.settings.autofill {
                break;
            }
            let Some(caller) = queue.callers.get(at) else { break };
            if !caller.is_waiting() {
                // Whoever is called for it counts as free where members are called who are in use: it is first to get one.
                if queue.settings.ring_in_use && ahead.len() <= AHEAD_MAX {
                    ahead.push(at);
                }
                continue;
            }
            // Who may get nobody who is free keeps nobody from those behind.
            let is_limited = is_limited(queue, caller);
            if is_limited && !queue.members.iter().any(|one| self.may_get(queue, caller, one, now.at)) {
                continue;
            }
            if !self.has_room(queue, caller, &ahead, now.at) {
                if !is_limited && !ahead.iter().any(|at| is_limited_at(queue, *at)) || ahead.len() > AHEAD_MAX
                {
                    break;
                }
                // Those behind may be content with others.
                ahead.push(at);
                continue;
            }
            match caller.stage {
                Stage::Ringing { .. } | Stage::Answered { .. } => {}
                Stage::Waiting { until } if until > now.at => ahead.push(at),
                Stage::Waiting { .. } => {
                    let ends = ring_end(queue, at, now.at);
                    if !self.offer(queue, slot, at, ends, now, out) {
                        ahead.push(at);
                    }
                }
            }
        }
    }

    /// Calls the next member, or the next ones, for a caller; `false` when there is none.
    pub(super) fn offer(
        &mut self,
        queue: &mut Queue,
        slot: usize,
        at: usize,
        ends: Option<Instant>,
        now: Now,
        out: &mut Vec<Output>,
    ) -> bool {
        let Some(caller) = queue.callers.get(at) else { return false };
        let penalised = queue.penalises();
        let candidate = |(place, member): (usize, &Member)| {
            let penalty = if penalised { caller.bounds.admit(member.penalty)? } else { 0 };
            let may = caller.suits(member)
                && !caller.tried.contains(&member.interface)
                && self.is_free(member, now.at)
                && !self.is_wanted_elsewhere(queue, slot, member, caller.joined.at, now.at);
            let last_call = member.last_call.map(|last| last.at);
            may.then_some(Candidate { place, penalty, calls: member.calls, last_call })
        };
        let candidates: Vec<Candidate> = queue.members.iter().enumerate().filter_map(candidate).collect();
        let turn = Turn { members: queue.members.len(), queue: queue.turn, caller: caller.linear };
        let mut random = self.random;
        let chosen = choose(queue.settings.strategy, &candidates, turn, now.at, &mut |end| random.below(end));
        self.random = random;
        let since = caller.joined.at;
        let mut offers: Vec<Offer> = Vec::new();
        for member in chosen.iter().filter_map(|place| queue.members.get(*place)) {
            // Each that is taken leaves one less to the heavier queues.
            if !offers.is_empty() && self.is_wanted_elsewhere(queue, slot, member, since, now.at) {
                continue;
            }
            self.phones.change(&member.phone, |phone| phone.ringing += 1);
            let (interface, name) = (member.interface.clone(), member.name.clone());
            offers.push(Offer { interface, name, since: now.at, channel: None });
        }
        let Some(last) = chosen.last() else { return false };
        let next = (last + 1) % queue.members.len().max(1);
        queue.turn = next;
        let Some(caller) = queue.callers.get_mut(at) else { return false };
        caller.linear = next;
        caller.stage = Stage::Ringing { offers: offers.clone(), ends };
        out.push(Output::Order { caller: caller.channel, order: Order::Ring(offers) });
        true
    }

    /// A member is not called any more: whoever wants it may have it.
    pub(super) fn let_be(&mut self, interface: &str) {
        let queues = self
            .phones
            .change(&interface.to_ascii_lowercase(), |phone| phone.ringing = phone.ringing.saturating_sub(1));
        self.dirty.extend(queues);
    }

    #[allow(clippy::too_many_arguments, reason = "one call from one place")]
    pub(super) fn refused(
        &mut self,
        queue: &mut Queue,
        slot: usize,
        at: usize,
        interface: &Rc<str>,
        refusal: Refusal,
        now: Now,
        out: &mut Vec<Output>,
    ) -> bool {
        let Some(caller) = queue.callers.get_mut(at) else { return false };
        let Stage::Ringing { offers, ends } = &mut caller.stage else { return false };
        let Some(found) = offers.iter().position(|offer| offer.interface == *interface) else { return false };
        let offer = offers.remove(found);
        let (left, ends) = (offers.len(), *ends);
        caller.tried.push(offer.interface.clone());
        if refusal != Refusal::NoChannel {
            self.no_answer(queue, at, &offer, Some(refusal), now, out);
        }
        self.let_be(&offer.interface);
        if left > 0 {
            return true;
        }
        let restarts =
            queue.settings.timeout_restart && matches!(refusal, Refusal::Busy | Refusal::Unavailable);
        let ends = if restarts { ring_end(queue, at, now.at) } else { ends };
        let goes_on = queue.settings.strategy != Strategy::RingAll && ends.is_none_or(|ends| ends > now.at);
        if !(goes_on && self.offer(queue, slot, at, ends, now, out)) {
            attempt_failed(queue, at, now.at);
        }
        true
    }

    /// The time of an attempt is over.
    pub(super) fn rang_out(&mut self, queue: &mut Queue, at: usize, now: Now, out: &mut Vec<Output>) {
        let Some(caller) = queue.callers.get(at) else { return };
        let offers = caller.offers().to_vec();
        out.push(Output::Order { caller: caller.channel, order: Order::LetBe });
        attempt_failed(queue, at, now.at);
        for offer in &offers {
            self.no_answer(queue, at, offer, None, now, out);
            self.let_be(&offer.interface);
        }
    }

    /// A member did not answer: that is written down, and it may be paused.
    pub(super) fn no_answer(
        &mut self,
        queue: &mut Queue,
        at: usize,
        offer: &Offer,
        refusal: Option<Refusal>,
        now: Now,
        out: &mut Vec<Output>,
    ) {
        let ring_ms = u64::try_from(now.at.since(offer.since).as_millis()).unwrap_or(u64::MAX);
        let Some(caller) = queue.callers.get(at) else { return };
        let entry = Entry::RingNoAnswer { ms: ring_ms };
        out.push(log(queue, now, &caller.uniqueid, Some(&offer.name), entry));
        tell_agent(queue, at, offer, AgentStep::NoAnswer { ring_ms }, out);
        let pauses = queue.settings.autopause != Autopause::No
            && match refusal {
                Some(Refusal::Busy) => queue.settings.autopause_busy,
                Some(Refusal::Unavailable) => queue.settings.autopause_unavailable,
                Some(Refusal::Declined | Refusal::NoChannel) | None => true,
            };
        let delay = queue.settings.autopause_delay;
        let last = queue.member(&offer.interface).and_then(|member| member.last_call);
        let is_soon = last.is_some_and(|last| last.at + delay > now.at);
        if !pauses || is_soon {
            return;
        }
        const REASON: &str = "Auto-Pause";
        let by = caller.uniqueid.clone();
        self.pause_here(queue, &offer.interface, (true, REASON), &by, now, out);
        if queue.settings.autopause == Autopause::All {
            for slot in self.queues_of(&offer.interface) {
                self.with(slot, |queues, other| {
                    queues.pause_here(other, &offer.interface, (true, REASON), &by, now, out);
                });
            }
            let entry = Entry::PauseAll { reason: REASON.to_owned() };
            let (queue, agent) = ("NONE".into(), offer.name.clone());
            out.push(Output::Log(Line { time: now.wall, call: by, queue, agent, entry }));
        }
    }
}

/// Whether a caller may not get every member of the queue.
fn is_limited(queue: &Queue, caller: &Caller) -> bool {
    let Bounds { max, min, raise: _ } = caller.bounds;
    !caller.skills.is_empty() || queue.penalises() && (max.is_some() || min.is_some())
}
fn is_limited_at(queue: &Queue, at: usize) -> bool {
    queue.callers.get(at).is_some_and(|caller| is_limited(queue, caller))
}

/// Those who wait for a member. Where one is served after the other those behind count, too: their turn comes.
fn asking(queue: &Queue) -> impl Iterator<Item = &Caller> {
    queue.callers.iter().filter(|caller| caller.is_waiting())
}

/// Whether members are called for one caller at a time.
fn serves_one_at_once(queue: &Queue) -> bool {
    !queue.settings.autofill || queue.settings.strategy == Strategy::RingAll
}

/// Failed attempts after which a caller who wants no second round leaves: strategies that go from member to member begin
/// an attempt with each, the others reach in one attempt whom they can.
pub(super) fn tries_of_a_round(queue: &Queue) -> usize {
    match queue.settings.strategy {
        Strategy::RoundRobinMemory | Strategy::RoundRobinOrdered | Strategy::Linear => queue.members.len(),
        Strategy::RingAll
        | Strategy::LeastRecent
        | Strategy::FewestCalls
        | Strategy::Random
        | Strategy::WeightedRandom => 1,
    }
}

/// The pause between two attempts.
pub(super) fn pause(retry: Duration) -> Duration {
    retry.max(RETRY_MIN)
}

/// When an attempt that begins now ends.
pub(super) fn ring_end(queue: &Queue, at: usize, now: Instant) -> Option<Instant> {
    let own = Some(queue.settings.timeout).filter(|timeout| !timeout.is_zero()).map(|timeout| now + timeout);
    let expires = queue.callers.get(at).and_then(|caller| caller.expires);
    let expires = expires.filter(|_| queue.settings.app_timeout_first);
    [own, expires].into_iter().flatten().min()
}

/// Nobody answered: the caller waits for the next attempt.
pub(super) fn attempt_failed(queue: &mut Queue, at: usize, now: Instant) {
    let until = now + pause(queue.settings.retry);
    if let Some(caller) = queue.callers.get_mut(at) {
        caller.stage = Stage::Waiting { until };
        caller.tries += 1;
        caller.tried.clear();
    }
}
