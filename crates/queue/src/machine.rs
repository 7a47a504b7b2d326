//! The owner of all queues: what happens goes in, what is to be done comes out.
//!
//! `line` lets callers in and out, `attempt` says who is called for whom.

mod attempt;
mod line;

use core::ops::Bound;
use core::time::Duration;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::rc::Rc;

use base::{ChannelId, Deadlines, Instant, Random};

use crate::log::{Entry, Line};
use crate::names::Names;
use crate::{
    AgentStep, Caller, Closed, DeviceState, End, Event, Exit, General, Input, Join, Member, MemberChange,
    Now, Offer, Order, Output, PenaltyChange, Queue, SkillChange, Stage, TellHold,
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
    /// What watchers are still to be told of its beginning.
    pending: Option<Output>,
}

/// All queues.
#[derive(Debug)]
pub struct Queues {
    pub(crate) slots: Vec<Option<Box<Queue>>>,
    pub(crate) by_name: BTreeMap<String, usize>,
    pub(crate) rules: BTreeMap<String, Rc<[PenaltyChange]>>,
    pub(crate) skill_rules: BTreeMap<String, Rc<[SkillChange]>>,
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
            skill_rules: BTreeMap::new(),
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
    /// Those behind a name, by name; all of them behind none. A long list is made in portions with it, while queues come and
    /// go.
    pub fn after(&self, name: Option<&str>) -> impl Iterator<Item = &Queue> {
        let lower = name.map(str::to_ascii_lowercase);
        let begin = lower.map_or(Bound::Unbounded, Bound::Excluded);
        let slots = self.by_name.range((begin, Bound::Unbounded)).map(|(_, slot)| slot);
        slots.filter_map(|slot| self.slots.get(*slot)?.as_deref())
    }
    /// The rules, by name.
    pub fn rules(&self) -> impl Iterator<Item = (&str, &[PenaltyChange])> {
        self.rules.iter().map(|(name, changes)| (name.as_str(), &**changes))
    }
    /// Whether there is a rule of that name, for penalties or for skills.
    pub fn has_rule(&self, name: &str) -> bool {
        let name = name.to_ascii_lowercase();
        self.rules.contains_key(&name) || self.skill_rules.contains_key(&name)
    }
    /// The changes of a skill rule.
    pub fn skill_rule(&self, name: &str) -> &[SkillChange] {
        self.skill_rules.get(&name.to_ascii_lowercase()).map_or(&[], |changes| changes)
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
    /// The same, and those that nobody had when they were asked for: a database may have one since.
    pub fn unasked_or_invalid(&self, queue: &Queue) -> Vec<Rc<str>> {
        let known = |member: &Member| self.devices.get(&member.device).copied().flatten();
        let is_wanted = |member: &&Member| matches!(known(member), None | Some(DeviceState::Invalid));
        queue.members.iter().filter(is_wanted).map(|member| member.state_interface.clone()).collect()
    }
    /// Members of a queue who could be called now.
    pub fn available(&self, queue: &Queue, now: Instant) -> usize {
        queue.members.iter().filter(|member| self.is_free(member, now)).count()
    }
    /// How long whoever stands at a place of a queue, from 1 on, will wait from now on, as far as it goes on as it does. The
    /// mean of what callers waited while too little is known.
    pub fn estimate(&self, queue: &Queue, place: usize) -> Duration {
        queue.pace.estimate(place).unwrap_or(Duration::from_secs(queue.stats.hold))
    }
    /// A member had a call that no queue gave it, and talked for so many seconds: it counts as one of the queue. False when
    /// there is no such queue, or no such member, by its interface or name.
    pub fn outside_call(
        &mut self,
        queue: &str,
        member: &str,
        talked: Option<u64>,
        now: Now,
        out: &mut Vec<Output>,
    ) -> bool {
        let Some(slot) = self.slot_of(queue) else { return false };
        let done = self.with(slot, |queues, queue| {
            let is_it = |own: &&Member| {
                own.interface.eq_ignore_ascii_case(member) || own.name.eq_ignore_ascii_case(member)
            };
            let interface = queue.members.iter().find(is_it).map(|own| own.interface.clone())?;
            if let Some(talked) = talked {
                queue.stats.talked(talked);
                queue.stats.completed += 1;
                let wrapup = queue.settings.wrapup;
                queues.at_member(queue, &interface, out, |own| own.took_call(now, wrapup));
            }
            Some(())
        });
        self.dirty.insert(slot);
        self.settle(now, out);
        done.flatten().is_some()
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
            (_, Input::Introduced) => {
                let pending = self.talks.get_mut(&caller).and_then(|talk| talk.pending.take());
                let found = pending.is_some();
                out.extend(pending);
                found
            }
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
        self.set_device(name, state, true, now, out);
    }
    /// What a device does, of which nobody had said it ([`Self::unasked`]). That it is known is no news for watchers: who
    /// asks about ten thousand members would be told of each.
    pub fn learn(&mut self, name: &str, state: DeviceState, now: Now, out: &mut Vec<Output>) {
        self.set_device(name, state, false, now, out);
    }
    fn set_device(&mut self, name: &str, state: DeviceState, is_news: bool, now: Now, out: &mut Vec<Output>) {
        let key = name.to_ascii_lowercase();
        if self.devices.get(&key).is_none_or(|known| *known == Some(state)) {
            return;
        }
        for slot in self.devices.change(&key, |known| *known = Some(state)) {
            self.dirty.insert(slot);
            let Some(queue) = self.slots.get(slot).and_then(Option::as_deref) else { continue };
            let its = |member: &&Member| is_news && *member.device == *key;
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
                self.forget(member, slot, false);
            }
        }
    }
    /// Registers what a member is called by and watched by.
    pub(crate) fn remember(&mut self, member: &Member, slot: usize) {
        self.phones.join(&member.phone, slot);
        self.devices.join(&member.device, slot);
    }
    /// What a device does, unless that is known.
    pub(crate) fn know(&mut self, device: &str, state: DeviceState) {
        self.devices.change(device, |known| *known = known.or(Some(state)));
    }
    /// The reverse. `shared`: another member of the queue has the same device.
    pub(crate) fn forget(&mut self, member: &Member, slot: usize, shared: bool) {
        self.phones.part(&member.phone, slot);
        if shared {
            return;
        }
        self.devices.part(&member.device, slot);
        if self.devices.queues(&member.device).is_empty() {
            // Nobody is told any more what it does: whoever has it next asks.
            self.devices.change(&member.device, |known| *known = None);
        }
    }
    /// Queues that an interface is a member of.
    pub(crate) fn queues_of(&self, interface: &str) -> Vec<usize> {
        self.phones.queues(&interface.to_ascii_lowercase()).to_vec()
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
                caller.stage = Stage::Waiting { until: now.at + attempt::pause(queue.settings.retry) };
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
                | Input::Introduced
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
            if caller.follow_skill_rules(now.at) {
                out.push(Output::Order { caller: channel, order: Order::Skills(caller.skills.clone()) });
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
        let tried_all =
            caller.no_retry && caller.tries > 0 && caller.tries >= attempt::tries_of_a_round(queue);
        if tried_all || caller.expires.is_some_and(|at| at <= now) {
            return Some(Exit::Timeout);
        }
        self.is_empty(queue, queue.settings.leave_when_empty, caller, now).then_some(Exit::Empty)
    }
    fn is_empty(&self, queue: &Queue, absence: crate::Absence, caller: &Caller, now: Instant) -> bool {
        let penalised = queue.penalises();
        let absent =
            |member: &Member| member.is_absent(absence, self.device_of(member), caller, penalised, now);
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
    /// The same of what watchers hear only with what its device does.
    pub(crate) fn change_member(
        &self,
        queue: &mut Queue,
        interface: &str,
        out: &mut Vec<Output>,
        change: impl FnOnce(&mut Member),
    ) {
        let found = queue.members.iter_mut().find(|member| member.interface.eq_ignore_ascii_case(interface));
        if let Some(member) = found {
            change(member);
        }
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
