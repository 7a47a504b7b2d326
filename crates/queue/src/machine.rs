//! The owner of all queues: what happens goes in, what is to be done comes out.

use core::time::Duration;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::rc::Rc;

use base::{ChannelId, Deadlines, Instant, Random};

use crate::announce::Voice;
use crate::log::{Entry, Line};
use crate::names::Names;
use crate::strategy::{Candidate, Turn, choose};
use crate::{
    AgentStep, Autopause, Caller, Closed, DeviceState, End, Event, Exit, General, Input, Join, Member,
    MemberChange, Now, Offer, Order, Output, PenaltyChange, Queue, Refusal, Stage, Strategy, TellHold,
};

/// What queues do with one interface at present.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Phone {
    ringing: u32,
    talking: u32,
}

/// A caller who talks to a member.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Talk {
    /// The queue.
    pub queue: Rc<str>,
    /// The member.
    pub interface: Rc<str>,
    /// The member's name.
    pub name: Rc<str>,
    /// The member's channel.
    pub channel: Option<ChannelId>,
    /// UNIQUEID of the caller.
    pub uniqueid: Rc<str>,
    /// Since when.
    pub since: Now,
    /// Seconds that the caller waited.
    pub hold: u64,
    /// The place at which it entered.
    pub original: usize,
}

/// Shortest pause between two attempts for one caller: members who refuse at once are not called without end.
const RETRY_MIN: Duration = Duration::from_secs(1);
/// Most callers in one queue: more than any machine carries; bounds what one look at a queue costs.
const CALLERS_MAX: usize = 10_000;

/// All queues.
#[derive(Debug)]
pub struct Queues {
    pub(crate) slots: Vec<Option<Box<Queue>>>,
    pub(crate) by_name: BTreeMap<String, usize>,
    pub(crate) rules: BTreeMap<String, Rc<[PenaltyChange]>>,
    pub(crate) general: General,
    /// Queues that have to be looked at.
    pub(crate) dirty: BTreeSet<usize>,
    /// Some queue goes before others.
    pub(crate) weighs: bool,
    phones: Names<Phone>,
    devices: Names<Option<DeviceState>>,
    places: HashMap<ChannelId, usize>,
    talks: HashMap<ChannelId, Talk>,
    deadlines: Deadlines<usize>,
    random: Random,
}

impl Queues {
    /// No queues. `seed` feeds the strategies that draw.
    pub fn new(seed: u64) -> Self {
        Self {
            slots: Vec::new(),
            by_name: BTreeMap::new(),
            rules: BTreeMap::new(),
            general: General::default(),
            dirty: BTreeSet::new(),
            weighs: false,
            phones: Names::default(),
            devices: Names::default(),
            places: HashMap::new(),
            talks: HashMap::new(),
            deadlines: Deadlines::default(),
            random: Random::new(seed),
        }
    }
    /// The queue of this name, any case.
    pub fn get(&self, name: &str) -> Option<&Queue> {
        let slot = self.by_name.get(name).or_else(|| self.by_name.get(&name.to_ascii_lowercase()))?;
        self.slots.get(*slot)?.as_deref()
    }
    /// All of them, by name.
    pub fn iter(&self) -> impl Iterator<Item = &Queue> {
        self.by_name.values().filter_map(|slot| self.slots.get(*slot)?.as_deref())
    }
    /// The rules, by name.
    pub fn rules(&self) -> impl Iterator<Item = (&str, &[PenaltyChange])> {
        self.rules.iter().map(|(name, changes)| (name.as_str(), &**changes))
    }
    /// What holds for all.
    pub fn general(&self) -> General {
        self.general
    }
    /// The queue that a channel waits in, and the caller that it is there.
    pub fn caller(&self, channel: ChannelId) -> Option<(&Queue, &Caller)> {
        let queue = self.slots.get(*self.places.get(&channel)?)?.as_deref()?;
        queue.callers.get(queue.place_of(channel)?).map(|caller| (queue, caller))
    }
    /// The conversation of a caller.
    pub fn talk(&self, channel: ChannelId) -> Option<&Talk> {
        self.talks.get(&channel)
    }
    /// What the device of a member does; unknown while nobody has said.
    pub fn device_of(&self, member: &Member) -> DeviceState {
        self.devices.get(&member.device).copied().flatten().unwrap_or_default()
    }
    /// Whether members have this device.
    pub fn has_device(&self, name: &str) -> bool {
        self.devices.get(&name.to_ascii_lowercase()).is_some()
    }
    /// Devices of a queue's members of which nobody has said what they do.
    pub fn unasked(&self, queue: &Queue) -> Vec<Rc<str>> {
        let is_unasked = |member: &&Member| self.devices.get(&member.device).is_none_or(Option::is_none);
        queue.members.iter().filter(is_unasked).map(|member| member.state_interface.clone()).collect()
    }
    /// Members of a queue who could be called now.
    pub fn available(&self, queue: &Queue, now: Instant) -> usize {
        queue.members.iter().filter(|member| self.is_free(member, now)).count()
    }
    /// When [`Self::due`] next wants to be called.
    pub fn deadline(&self) -> Option<Instant> {
        self.deadlines.earliest()
    }

    /// A caller enters the queue of this name; its place.
    pub fn join(&mut self, name: &str, join: Join, now: Now, out: &mut Vec<Output>) -> Result<usize, Closed> {
        let slot = self.slot_of(name).ok_or(Closed::NoQueue)?;
        if self.places.contains_key(&join.caller) || self.talks.contains_key(&join.caller) {
            return Err(Closed::Full);
        }
        let entered = self.with(slot, |queues, queue| queues.enter(queue, slot, join, now, out));
        self.settle(now, out);
        entered.unwrap_or(Err(Closed::NoQueue))
    }
    /// A caller's story tells something; whether it was of use: not when the caller is in no queue, or what it tells of is
    /// over.
    pub fn input(&mut self, caller: ChannelId, input: Input, now: Now, out: &mut Vec<Output>) -> bool {
        let used = match (self.places.get(&caller).copied(), input) {
            (_, Input::Ended(end)) => self.ended(caller, &end, now, out),
            (Some(slot), input) => {
                let used = self.with(slot, |queues, queue| {
                    let at = queue.place_of(caller)?;
                    Some(queues.told(queue, slot, at, input, now, out))
                });
                self.dirty.insert(slot);
                used.flatten() == Some(true)
            }
            (None, _) => false,
        };
        self.settle(now, out);
        used
    }
    /// A caller's channel is gone, whatever it did.
    pub fn gone(&mut self, caller: ChannelId, now: Now, out: &mut Vec<Output>) {
        if self.places.contains_key(&caller) {
            self.input(caller, Input::Left(Exit::Abandoned), now, out);
        } else if self.talks.contains_key(&caller) {
            self.input(caller, Input::Ended(End::Caller), now, out);
        }
    }
    /// A device does something else.
    pub fn device(&mut self, name: &str, state: DeviceState, now: Now, out: &mut Vec<Output>) {
        let key = name.to_ascii_lowercase();
        if self.devices.get(&key).is_none_or(|known| *known == Some(state)) {
            return;
        }
        for slot in self.devices.change(&key, |known| *known = Some(state)) {
            self.dirty.insert(slot);
            let Some(queue) = self.slots.get(slot).and_then(Option::as_deref) else { continue };
            let its = |member: &&Member| *member.device == *key;
            for member in queue.members.iter().filter(its) {
                self.tell_member(queue, member, MemberChange::Status, out);
            }
            out.push(Output::Device(queue.name.clone()));
        }
        self.settle(now, out);
    }
    /// Lets everything happen whose time has come.
    pub fn due(&mut self, now: Now, out: &mut Vec<Output>) {
        while let Some((at, slot)) = self.deadlines.pop_due(now.at) {
            if let Some(queue) = self.slots.get_mut(slot).and_then(Option::as_deref_mut) {
                queue.scheduled.fired(at);
                self.dirty.insert(slot);
            }
        }
        self.settle(now, out);
    }

    pub(crate) fn slot_of(&self, name: &str) -> Option<usize> {
        self.by_name.get(&name.to_ascii_lowercase()).copied()
    }
    /// Works on a queue while it is out of its slot.
    pub(crate) fn with<R>(
        &mut self,
        slot: usize,
        work: impl FnOnce(&mut Self, &mut Queue) -> R,
    ) -> Option<R> {
        let mut queue = self.slots.get_mut(slot)?.take()?;
        let result = work(self, &mut queue);
        if let Some(place) = self.slots.get_mut(slot) {
            *place = Some(queue);
        }
        Some(result)
    }
    /// Looks at every queue that something has happened to, until nothing more follows from it: first at what time has
    /// brought to all of them, then, heavier queues before lighter ones, at who is called for whom.
    pub(crate) fn settle(&mut self, now: Now, out: &mut Vec<Output>) {
        let mut touched: Vec<(core::cmp::Reverse<u32>, usize)> = Vec::new();
        while let Some(slot) = self.dirty.pop_first() {
            let weight = self.with(slot, |queues, queue| {
                queues.pass_time(queue, now, out);
                queue.settings.weight
            });
            self.bury(slot);
            touched.extend(weight.map(|weight| (core::cmp::Reverse(weight), slot)));
        }
        touched.sort_unstable();
        touched.dedup();
        for (_, slot) in touched {
            self.with(slot, |queues, queue| queues.serve(queue, slot, now, out));
        }
    }
    /// A queue that the configuration has no more goes with its last caller.
    fn bury(&mut self, slot: usize) {
        let is_over = |queue: &Queue| queue.is_dead && queue.callers.is_empty();
        let Some(place) = self.slots.get_mut(slot) else { return };
        if let Some(queue) = place.take_if(|queue| is_over(queue)) {
            self.by_name.remove(&queue.name.to_ascii_lowercase());
            for member in &queue.members {
                self.forget(member, slot);
            }
        }
    }
    /// Registers what a member is called by and watched by.
    pub(crate) fn remember(&mut self, member: &Member, slot: usize) {
        self.phones.join(&member.phone, slot);
        self.devices.join(&member.device, slot);
    }
    pub(crate) fn forget(&mut self, member: &Member, slot: usize) {
        self.phones.part(&member.phone, slot);
        self.devices.part(&member.device, slot);
    }
    /// Queues that an interface is a member of.
    pub(crate) fn queues_of(&self, interface: &str) -> Vec<usize> {
        let mut queues = self.phones.queues(&interface.to_ascii_lowercase()).to_vec();
        queues.sort_unstable();
        queues
    }

    fn enter(
        &mut self,
        queue: &mut Queue,
        slot: usize,
        join: Join,
        now: Now,
        out: &mut Vec<Output>,
    ) -> Result<usize, Closed> {
        let rule = if join.rule.is_empty() { &queue.settings.default_rule } else { &join.rule };
        let rule = self.rules.get(&rule.to_ascii_lowercase()).cloned().unwrap_or_default();
        let mut caller = Caller {
            channel: join.caller,
            uniqueid: join.uniqueid,
            priority: join.priority,
            joined: now,
            original: 0,
            stage: Stage::Waiting { until: now.at },
            bounds: join.bounds,
            expires: join.timeout.map(|timeout| now.at + timeout),
            no_retry: join.no_retry,
            tries: 0,
            linear: 0,
            tried: Vec::new(),
            rule,
            rules_done: 0,
            voice: Voice::new(&queue.settings.announcing, now.at),
        };
        if self.is_empty(queue, queue.settings.join_empty, &caller, now.at) {
            return Err(Closed::Empty);
        }
        let most = queue.settings.max_length as usize;
        let count = queue.callers.len();
        if queue.is_dead || count >= CALLERS_MAX || (most > 0 && count >= most) {
            return Err(if queue.is_dead { Closed::NoQueue } else { Closed::Full });
        }
        let at = queue.place_for(join.priority, join.position);
        let position = at + 1;
        caller.original = position;
        let (channel, call) = (caller.channel, caller.uniqueid.clone());
        queue.callers.insert(at, caller);
        self.places.insert(channel, slot);
        let count = queue.callers.len();
        let event = Event::CallerJoin { caller: channel, position, count };
        out.push(Output::Event { queue: queue.name.clone(), event });
        let entry = Entry::EnterQueue { url: join.url, number: join.number, position };
        out.push(log(queue, now, &call, None, entry));
        out.push(Output::Device(queue.name.clone()));
        self.dirty.insert(slot);
        Ok(position)
    }

    fn told(
        &mut self,
        queue: &mut Queue,
        slot: usize,
        at: usize,
        input: Input,
        now: Now,
        out: &mut Vec<Output>,
    ) -> bool {
        let Some(caller) = queue.callers.get_mut(at) else { return false };
        match (&mut caller.stage, input) {
            (Stage::Ringing { offers, .. }, Input::Calling { interface, channel }) => {
                let Some(offer) = offers.iter_mut().find(|offer| offer.interface == interface) else {
                    return false;
                };
                offer.channel = Some(channel);
                let offer = offer.clone();
                tell_agent(queue, at, &offer, AgentStep::Called, out);
            }
            (Stage::Ringing { .. }, Input::Refused { interface, refusal }) => {
                return self.refused(queue, slot, at, &interface, refusal, now, out);
            }
            (Stage::Ringing { offers, .. }, Input::Answered { interface }) => {
                let Some(found) = offers.iter().position(|offer| offer.interface == interface) else {
                    return false;
                };
                let mut others = std::mem::take(offers);
                let offer = others.swap_remove(found);
                caller.stage = Stage::Answered { rang: now.at.since(offer.since), offer };
                caller.tried.clear();
                others.iter().for_each(|other| self.let_be(&other.interface));
            }
            (Stage::Answered { offer, .. }, Input::Dumped) => {
                let (offer, call) = (offer.clone(), caller.uniqueid.clone());
                caller.stage = Stage::Waiting { until: now.at + pause(queue.settings.retry) };
                out.push(log(queue, now, &call, Some(&offer.name), Entry::AgentDump));
                tell_agent(queue, at, &offer, AgentStep::Dump, out);
                self.let_be(&offer.interface);
            }
            (Stage::Answered { offer, rang }, Input::Connected { bridged }) => {
                let (offer, rang) = (offer.clone(), *rang);
                self.connect(queue, at, offer, (rang, bridged), now, out);
            }
            (_, Input::Left(exit)) => self.leave(queue, at, exit, now, out),
            (_, Input::Heard) => caller.voice.heard(&queue.settings.announcing, now.at),
            // What a story tells late changes nothing.
            (
                Stage::Waiting { .. } | Stage::Ringing { .. } | Stage::Answered { .. },
                Input::Calling { .. }
                | Input::Refused { .. }
                | Input::Answered { .. }
                | Input::Dumped
                | Input::Connected { .. }
                | Input::Ended(_),
            ) => return false,
        }
        true
    }

    /// What time has brought to the callers of a queue.
    fn pass_time(&mut self, queue: &mut Queue, now: Now, out: &mut Vec<Output>) {
        let mut at = 0;
        while let Some(caller) = queue.callers.get_mut(at) {
            let channel = caller.channel;
            if caller.follow_rules(now.at) {
                out.push(Output::Order { caller: channel, order: Order::Bounds(caller.bounds) });
            }
            if let Stage::Ringing { ends: Some(ends), .. } = &caller.stage
                && *ends <= now.at
            {
                self.rang_out(queue, at, now, out);
            }
            match self.way_out(queue, at, now.at) {
                Some(exit) => {
                    out.push(Output::Order { caller: channel, order: Order::Leave(exit.clone()) });
                    self.leave(queue, at, exit, now, out);
                }
                None => at += 1,
            }
        }
    }
    /// One queue's turn: who is called for whom, and what callers are told.
    fn serve(&mut self, queue: &mut Queue, slot: usize, now: Now, out: &mut Vec<Output>) {
        if queue.callers.is_empty() {
            return;
        }
        self.call_members(queue, slot, now, out);
        self.announce(queue, now, out);
        let deadline = self.next_look(queue, now.at);
        self.deadlines.schedule(slot, &mut queue.scheduled, deadline);
    }
    /// Why a waiting caller must leave now.
    fn way_out(&self, queue: &Queue, at: usize, now: Instant) -> Option<Exit> {
        let caller = queue.callers.get(at).filter(|caller| caller.is_waiting())?;
        let tried_all = caller.no_retry && caller.tries > 0 && caller.tries >= queue.members.len();
        if tried_all || caller.expires.is_some_and(|at| at <= now) {
            return Some(Exit::Timeout);
        }
        self.is_empty(queue, queue.settings.leave_when_empty, caller, now).then_some(Exit::Empty)
    }
    fn is_empty(&self, queue: &Queue, absence: crate::Absence, caller: &Caller, now: Instant) -> bool {
        let penalised = queue.penalises();
        let absent = |member: &Member| {
            member.is_absent(absence, self.device_of(member), caller.bounds, penalised, now)
        };
        !absence.is_none() && queue.members.iter().all(absent)
    }
    /// When something happens to this queue by itself.
    fn next_look(&self, queue: &Queue, now: Instant) -> Option<Instant> {
        let announcing = &queue.settings.announcing;
        let own = queue.callers.iter().zip(1..).flat_map(|(caller, place)| {
            let speaks = caller.is_waiting() || announcing.to_first && !caller.offers().is_empty();
            let voice = speaks.then(|| caller.voice.deadline(announcing, place)).flatten();
            let stage = match &caller.stage {
                Stage::Waiting { until } => [Some(*until).filter(|until| *until > now), caller.expires],
                Stage::Ringing { ends, .. } => [*ends, None],
                Stage::Answered { .. } => [None, None],
            };
            stage.into_iter().chain([voice, caller.next_rule()]).flatten()
        });
        let waits = queue.callers.iter().any(Caller::is_waiting);
        let wrapups = queue.members.iter().filter(|_| waits).map(Member::wrapup_end);
        own.chain(wrapups.filter(|end| *end > now)).min()
    }

    /// Whether a member could be called now, as far as it and its device are concerned.
    fn is_free(&self, member: &Member, now: Instant) -> bool {
        let engaged = || self.phones.get(&member.phone).is_some_and(|phone| *phone != Phone::default());
        !member.paused && !member.wraps_up(now) && member.device_takes_calls(self.device_of(member), engaged)
    }
    /// Whether one more caller could be served beside so many.
    fn has_room(&self, queue: &Queue, beside: usize, now: Instant) -> bool {
        let one_at_once = !queue.settings.autofill || queue.settings.strategy == Strategy::RingAll;
        let mut free = queue.members.iter().filter(|member| self.is_free(member, now));
        !(one_at_once && beside > 0) && free.nth(beside).is_some()
    }
    /// Whether a free member is wanted more by another of its queues.
    fn is_wanted_elsewhere(
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
            let waiting = other.callers.iter().filter(|caller| caller.is_waiting());
            if other.member(&member.interface).is_none_or(|there| !self.is_free(there, now)) {
                return false;
            }
            match other.settings.weight.cmp(&queue.settings.weight) {
                core::cmp::Ordering::Less => false,
                core::cmp::Ordering::Greater => {
                    let waiting = waiting.count();
                    waiting > 0 && !self.has_room(other, waiting, now)
                }
                core::cmp::Ordering::Equal => {
                    let first = waiting.map(|caller| caller.joined.at).min();
                    self.general.longest_waiting_first && first.is_some_and(|first| first < since)
                }
            }
        })
    }

    /// Begins attempts for all who may have one.
    fn call_members(&mut self, queue: &mut Queue, slot: usize, now: Now, out: &mut Vec<Output>) {
        let mut ahead = 0;
        for at in 0..queue.callers.len() {
            if at > 0 && !queue.settings.autofill {
                break;
            }
            let Some(caller) = queue.callers.get(at).filter(|caller| caller.is_waiting()) else { continue };
            if !self.has_room(queue, ahead, now.at) {
                break;
            }
            match caller.stage {
                Stage::Ringing { .. } | Stage::Answered { .. } => continue,
                Stage::Waiting { until } if until > now.at => ahead += 1,
                Stage::Waiting { .. } => {
                    let ends = ring_end(queue, at, now.at);
                    if !self.offer(queue, slot, at, ends, now, out) {
                        ahead += 1;
                    }
                }
            }
        }
    }
    /// Calls the next member, or the next ones, for a caller; `false` when there is none.
    fn offer(
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
            let may = !caller.tried.contains(&member.interface)
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
    fn let_be(&mut self, interface: &str) {
        let queues = self
            .phones
            .change(&interface.to_ascii_lowercase(), |phone| phone.ringing = phone.ringing.saturating_sub(1));
        self.dirty.extend(queues);
    }
    #[allow(clippy::too_many_arguments, reason = "one call from one place")]
    fn refused(
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
    fn rang_out(&mut self, queue: &mut Queue, at: usize, now: Now, out: &mut Vec<Output>) {
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
    fn no_answer(
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

    fn connect(
        &mut self,
        queue: &mut Queue,
        at: usize,
        offer: Offer,
        (rang, bridged): (Duration, String),
        now: Now,
        out: &mut Vec<Output>,
    ) {
        let Some(caller) = queue.callers.get(at) else { return };
        let (hold, ring) = (caller.waited(now.at), rang.as_secs());
        queue.stats.waited(hold);
        out.push(log(
            queue,
            now,
            &caller.uniqueid,
            Some(&offer.name),
            Entry::Connect { hold, bridged, ring },
        ));
        let talk = Talk {
            queue: queue.name.clone(),
            interface: offer.interface.clone(),
            name: offer.name.clone(),
            channel: offer.channel,
            uniqueid: caller.uniqueid.clone(),
            since: now,
            hold,
            original: caller.original,
        };
        self.talks.insert(caller.channel, talk);
        let connected = agent_event(queue, caller.channel, &offer, AgentStep::Connect { ring, hold });
        self.depart(queue, at, out);
        out.push(connected);
        self.phones.change(&offer.interface.to_ascii_lowercase(), |phone| {
            phone.ringing = phone.ringing.saturating_sub(1);
            phone.talking += 1;
        });
        self.at_member(queue, &offer.interface, out, |member| member.in_call = true);
    }
    fn ended(&mut self, caller: ChannelId, end: &End, now: Now, out: &mut Vec<Output>) -> bool {
        let Some(talk) = self.talks.remove(&caller) else { return false };
        let talked = now.at.since(talk.since.at).as_secs();
        let (hold, original) = (talk.hold, talk.original);
        let (entry, reason) = match end.clone() {
            End::Caller => (Entry::CompleteCaller { hold, talk: talked, original }, "caller"),
            End::Agent => (Entry::CompleteAgent { hold, talk: talked, original }, "agent"),
            End::Blind { exten, context } => {
                (Entry::BlindTransfer { exten, context, hold, talk: talked, original }, "transfer")
            }
            End::Attended { method, to } => {
                (Entry::AttendedTransfer { method, to, hold, talk: talked, original }, "transfer")
            }
        };
        let line = Line {
            time: now.wall,
            call: talk.uniqueid.clone(),
            queue: talk.queue.clone(),
            agent: talk.name.clone(),
            entry,
        };
        out.push(Output::Log(line));
        let (interface, name, channel) = (talk.interface.clone(), talk.name.clone(), talk.channel);
        let step = AgentStep::Complete { hold, talk: talked, reason };
        let event = Event::Agent { step, caller, channel, interface: interface.clone(), name };
        out.push(Output::Event { queue: talk.queue.clone(), event });
        let shared = self.general.shared_last_call;
        let queues = self
            .phones
            .change(&interface.to_ascii_lowercase(), |phone| phone.talking = phone.talking.saturating_sub(1));
        self.dirty.extend(&queues);
        let own = self.slot_of(&talk.queue);
        let wrapup = own.and_then(|slot| {
            self.with(slot, |queues, queue| {
                queue.stats.talked(talked);
                queue.stats.completed += 1;
                queue.stats.completed_in_level += u32::from(queue.is_in_level(hold));
                let wrapup = queue.settings.wrapup;
                queues.at_member(queue, &interface, out, |member| member.took_call(now, wrapup));
                wrapup
            })
        });
        for slot in queues.into_iter().filter(|slot| shared && own != Some(*slot)) {
            self.with(slot, |queues, queue| {
                let took = |member: &mut Member| member.took_call(now, wrapup.unwrap_or_default());
                queues.at_member(queue, &interface, out, took);
            });
        }
        true
    }
    /// A caller leaves before it has talked to anybody.
    fn leave(&mut self, queue: &mut Queue, at: usize, exit: Exit, now: Now, out: &mut Vec<Output>) {
        let Some(caller) = queue.callers.get(at) else { return };
        let (position, original, wait) = (at + 1, caller.original, caller.waited(now.at));
        for offer in caller.offers() {
            let ms = u64::try_from(now.at.since(offer.since).as_millis()).unwrap_or(u64::MAX);
            out.push(log(queue, now, &caller.uniqueid, Some(&offer.name), Entry::RingCanceled { ms }));
        }
        let gives_up = matches!(exit, Exit::Abandoned | Exit::Timeout | Exit::Empty);
        let entry = match exit {
            Exit::Abandoned => Entry::Abandon { position, original, wait },
            Exit::Key(key) => Entry::ExitWithKey { key, position, original, wait },
            Exit::Timeout => Entry::ExitWithTimeout { position, original, wait },
            Exit::Empty => Entry::ExitEmpty { position, original, wait },
            Exit::Withdrawn(info) => Entry::Withdraw { position, original, wait, info },
        };
        if gives_up {
            let event = Event::CallerAbandon { caller: caller.channel, position, original, hold: wait };
            out.push(Output::Event { queue: queue.name.clone(), event });
            queue.stats.abandoned += 1;
            queue.stats.abandoned_in_level += u32::from(queue.is_in_level(wait));
        }
        out.push(log(queue, now, &caller.uniqueid, None, entry));
        let called: Vec<Rc<str>> = match &caller.stage {
            Stage::Waiting { .. } => Vec::new(),
            Stage::Ringing { offers, .. } => offers.iter().map(|offer| offer.interface.clone()).collect(),
            Stage::Answered { offer, .. } => vec![offer.interface.clone()],
        };
        called.iter().for_each(|interface| self.let_be(interface));
        self.depart(queue, at, out);
    }
    /// Takes a caller out of the line.
    fn depart(&mut self, queue: &mut Queue, at: usize, out: &mut Vec<Output>) {
        if at >= queue.callers.len() {
            return;
        }
        let caller = queue.callers.remove(at).channel;
        self.places.remove(&caller);
        let event = Event::CallerLeave { caller, position: at + 1, count: queue.callers.len() };
        out.push(Output::Event { queue: queue.name.clone(), event });
        out.push(Output::Device(queue.name.clone()));
        if self.weighs {
            // A member may have been kept from a lighter queue for this caller.
            self.dirty.extend(self.places.values());
        }
    }
    /// Changes a member and tells watchers.
    pub(crate) fn at_member(
        &self,
        queue: &mut Queue,
        interface: &str,
        out: &mut Vec<Output>,
        change: impl FnOnce(&mut Member),
    ) {
        let found = queue.members.iter_mut().find(|member| member.interface.eq_ignore_ascii_case(interface));
        let Some(member) = found else { return };
        change(member);
        let member = member.clone();
        self.tell_member(queue, &member, MemberChange::Status, out);
        out.push(Output::Device(queue.name.clone()));
    }
    pub(crate) fn tell_member(
        &self,
        queue: &Queue,
        member: &Member,
        change: MemberChange,
        out: &mut Vec<Output>,
    ) {
        let member = Box::new((member.clone(), self.device_of(member)));
        out.push(Output::Event { queue: queue.name.clone(), event: Event::Member { change, member } });
    }
    fn announce(&mut self, queue: &mut Queue, now: Now, out: &mut Vec<Output>) {
        let announcing = &queue.settings.announcing;
        if announcing.every.is_zero() && announcing.periodic_every.is_zero() {
            return;
        }
        let hold = if announcing.hold == TellHold::No { 0 } else { queue.stats.hold };
        for (caller, place) in queue.callers.iter_mut().zip(1..) {
            let hears_while_called = announcing.to_first && !caller.offers().is_empty();
            if !caller.is_waiting() && !hears_while_called {
                continue;
            }
            let times = (now.at.since(caller.joined.at), Duration::from_secs(hold));
            let random = &mut self.random;
            let said = caller.voice.speak(announcing, place, times, now.at, &mut |end| random.below(end));
            if !said.is_empty() {
                out.push(Output::Order { caller: caller.channel, order: Order::Say(said) });
            }
        }
    }
}

/// The pause between two attempts.
fn pause(retry: Duration) -> Duration {
    retry.max(RETRY_MIN)
}

/// When an attempt that begins now ends.
fn ring_end(queue: &Queue, at: usize, now: Instant) -> Option<Instant> {
    let own = Some(queue.settings.timeout).filter(|timeout| !timeout.is_zero()).map(|timeout| now + timeout);
    let expires = queue.callers.get(at).and_then(|caller| caller.expires);
    let expires = expires.filter(|_| queue.settings.app_timeout_first);
    [own, expires].into_iter().flatten().min()
}

/// Nobody answered: the caller waits for the next attempt.
fn attempt_failed(queue: &mut Queue, at: usize, now: Instant) {
    let until = now + pause(queue.settings.retry);
    if let Some(caller) = queue.callers.get_mut(at) {
        caller.stage = Stage::Waiting { until };
        caller.tries += 1;
        caller.tried.clear();
    }
}

/// A line of the log about a caller, and about a member when one has to do with it.
pub(crate) fn log(queue: &Queue, now: Now, call: &Rc<str>, agent: Option<&Rc<str>>, entry: Entry) -> Output {
    Output::Log(Line {
        time: now.wall,
        call: call.clone(),
        queue: queue.name.clone(),
        agent: agent.cloned().unwrap_or_else(|| "NONE".into()),
        entry,
    })
}

fn agent_event(queue: &Queue, caller: ChannelId, offer: &Offer, step: AgentStep) -> Output {
    let (interface, name) = (offer.interface.clone(), offer.name.clone());
    let event = Event::Agent { step, caller, channel: offer.channel, interface, name };
    Output::Event { queue: queue.name.clone(), event }
}

fn tell_agent(queue: &Queue, at: usize, offer: &Offer, step: AgentStep, out: &mut Vec<Output>) {
    if let Some(caller) = queue.callers.get(at) {
        out.push(agent_event(queue, caller.channel, offer, step));
    }
}
