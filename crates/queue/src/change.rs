//! What administrators, dialplans and the configuration change.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use base::ChannelId;

use crate::log::{Entry, Line};
use crate::machine::log;
use crate::member::persist;
use crate::{
    Config, Exit, Input, Member, MemberChange, Membership, NewMember, Now, Order, Output, Queue, QueueConfig,
    Queues, Skills, Stats,
};

/// Why a change is not made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refused {
    /// There is no such queue.
    NoQueue,
    /// It is no member.
    NoMember,
    /// It is one already.
    AlreadyMember,
    /// The configuration made it a member.
    NotDynamic,
    /// There is no such caller.
    NoCaller,
    /// The queue has as many members as one may have.
    Full,
}

/// Whose member is changed, and who does it.
#[derive(Debug, Clone, Copy)]
pub struct Whom<'a> {
    /// One queue; `None`: all that have the member.
    pub queue: Option<&'a str>,
    /// The member's interface.
    pub interface: &'a str,
    /// For the log: a UNIQUEID, `MANAGER`, `COMMAND`.
    pub by: &'a str,
}

/// What is changed about a member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Edit<'a> {
    /// It gets no calls, or gets them again, for this reason.
    Pause(bool, &'a str),
    /// Its penalty.
    Penalty(u32),
    /// Whether it is called while it is on a call.
    RingInUse(bool),
    /// Its skills.
    Skills(&'a Skills),
}

/// Where the members of a queue are, by their interfaces in lower case.
fn places(queue: &Queue) -> BTreeMap<Rc<str>, usize> {
    queue.members.iter().enumerate().map(|(place, member)| (member.phone.clone(), place)).collect()
}

/// Most members of one queue.
const MEMBERS_MAX: usize = 10_000;

impl Queues {
    /// Takes another configuration. Callers, dynamic members and figures stay; a queue that is not in it goes with its last
    /// caller.
    pub fn configure(&mut self, config: &Config, now: Now, out: &mut Vec<Output>) {
        self.general = config.general;
        let rules =
            config.rules.iter().map(|(name, changes)| (name.to_ascii_lowercase(), changes.as_slice().into()));
        self.rules = rules.collect();
        let skills = config.skill_rules.iter();
        let skills = skills.map(|(name, changes)| (name.to_ascii_lowercase(), changes.as_slice().into()));
        self.skill_rules = skills.collect();
        let first_weight = config.queues.first().map(|queue| queue.settings.weight);
        self.weighs = config.general.longest_waiting_first
            || config.queues.iter().any(|queue| Some(queue.settings.weight) != first_weight);
        let mut named = vec![false; self.slots.len()];
        for queue in &config.queues {
            let slot = self.slot_for(&queue.name);
            if let Some(named) = named.get_mut(slot) {
                *named = true;
            }
            self.with(slot, |queues, own| queues.set_up(own, slot, queue, now, out));
            self.dirty.insert(slot);
        }
        for slot in named.iter().enumerate().filter(|(_, named)| !**named).map(|(slot, _)| slot) {
            self.with(slot, |_, queue| queue.is_dead = true);
            self.dirty.insert(slot);
        }
        self.settle(now, out);
    }
    fn slot_for(&mut self, name: &str) -> usize {
        if let Some(slot) = self.slot_of(name) {
            return slot;
        }
        let queue = Some(Box::new(Queue::new(name.into(), Rc::default())));
        // A slot whose queue is gone is not used again: a stale deadline may still name it.
        self.slots.push(queue);
        let slot = self.slots.len() - 1;
        self.by_name.insert(name.to_ascii_lowercase(), slot);
        slot
    }
    fn set_up(
        &mut self,
        queue: &mut Queue,
        slot: usize,
        config: &QueueConfig,
        now: Now,
        out: &mut Vec<Output>,
    ) {
        let rings_in_use = config.settings.ring_in_use;
        queue.is_dead = false;
        queue.is_row = config.is_row;
        queue.settings = Rc::new(config.settings.clone());
        let (rows, written): (Vec<&NewMember>, Vec<&NewMember>) =
            config.members.iter().partition(|new| new.row.is_some());
        self.take_unlisted(queue, slot, Membership::Static, &written, out);
        let mut known = places(queue);
        for new in written {
            let phone = new.interface.to_ascii_lowercase();
            let place = known.get(&*phone);
            match place.and_then(|place| queue.members.get_mut(*place)) {
                Some(member) => member.configure(new, rings_in_use),
                None => {
                    known.insert(phone.into(), queue.members.len());
                    self.put_member(queue, slot, new, Membership::Static, now);
                }
            }
        }
        self.set_rows(queue, slot, &rows, now, out);
    }
    /// The members of a queue that are rows are these. Whom the configuration or a dialplan has made a member stays what it is.
    fn set_rows(
        &mut self,
        queue: &mut Queue,
        slot: usize,
        rows: &[&NewMember],
        now: Now,
        out: &mut Vec<Output>,
    ) {
        self.take_unlisted(queue, slot, Membership::Realtime, rows, out);
        if rows.is_empty() {
            return;
        }
        let rings_in_use = queue.settings.ring_in_use;
        let mut known = places(queue);
        for new in rows {
            let phone = new.interface.to_ascii_lowercase();
            let has_room = queue.members.len() < MEMBERS_MAX;
            let place = known.get(&*phone);
            match place.and_then(|place| queue.members.get_mut(*place)) {
                Some(member) if member.membership == Membership::Realtime => {
                    let changed = member.take_row(new, rings_in_use, now).then(|| member.clone());
                    changed.iter().for_each(|of| self.tell_member(queue, of, MemberChange::Status, out));
                }
                Some(_) => {}
                None if has_room => {
                    known.insert(phone.into(), queue.members.len());
                    self.put_member(queue, slot, new, Membership::Realtime, now);
                }
                None => {}
            }
        }
    }
    /// Takes those of a kind out who are not listed any more: in one walk, for a queue may have ten thousand of them.
    fn take_unlisted(
        &mut self,
        queue: &mut Queue,
        slot: usize,
        kind: Membership,
        listed: &[&NewMember],
        out: &mut Vec<Output>,
    ) {
        if !queue.members.iter().any(|member| member.membership == kind) {
            return;
        }
        let listed: BTreeSet<String> = listed.iter().map(|new| new.interface.to_ascii_lowercase()).collect();
        let goes = |member: &Member| member.membership == kind && !listed.contains(&*member.phone);
        let turn = queue.turn;
        let before = queue.members.iter().take(turn).filter(|member| goes(member)).count();
        let gone: Vec<Member> = queue.members.extract_if(.., |member| goes(member)).collect();
        if gone.is_empty() {
            return;
        }
        queue.turn = turn - before;
        let kept: BTreeSet<&str> = queue.members.iter().map(|member| &*member.device).collect();
        gone.iter().for_each(|member| self.forget(member, slot, kept.contains(&*member.device)));
        gone.iter().for_each(|member| self.tell_member(queue, member, MemberChange::Removed, out));
    }
    /// What databases say of one queue at this moment: its row, if it has one, and those of its members. A queue that the
    /// configuration has keeps its settings.
    pub fn take_rows(
        &mut self,
        name: &str,
        row: Option<QueueConfig>,
        members: &[NewMember],
        now: Now,
        out: &mut Vec<Output>,
    ) {
        let known = self.slot_of(name);
        if known.is_none() && row.is_none() {
            return;
        }
        if let Some(row) = &row {
            let first = self.iter().next().map(|queue| queue.settings.weight);
            self.weighs |= first.is_some_and(|first| first != row.settings.weight);
        }
        let slot = self.slot_for(name);
        self.with(slot, |queues, queue| match row {
            Some(row) if known.is_none() || queue.is_row => {
                let row = QueueConfig { members: members.to_vec(), is_row: true, ..row };
                queues.set_up(queue, slot, &row, now, out);
            }
            None if queue.is_row => queue.is_dead = true,
            Some(_) | None => {
                let rows: Vec<&NewMember> = members.iter().collect();
                queues.set_rows(queue, slot, &rows, now, out);
            }
        });
        self.dirty.insert(slot);
        self.settle(now, out);
    }
    fn put_member(
        &mut self,
        queue: &mut Queue,
        slot: usize,
        new: &NewMember,
        membership: Membership,
        now: Now,
    ) {
        let member = Member::new(new, membership, queue.settings.ring_in_use, now);
        self.remember(&member, slot);
        if let Some(state) = new.state {
            self.know(&member.device, state);
        }
        queue.members.push(member);
    }
    fn take_member(&mut self, queue: &mut Queue, slot: usize, place: usize, out: &mut Vec<Output>) {
        if place >= queue.members.len() {
            return;
        }
        let member = queue.members.remove(place);
        if place < queue.turn {
            queue.turn -= 1;
        }
        self.tell_member(queue, &member, MemberChange::Removed, out);
        let shared = queue.members.iter().any(|other| other.device == member.device);
        self.forget(&member, slot, shared);
    }

    /// Adds a dynamic member. `by`: see [`Whom::by`].
    pub fn add(
        &mut self,
        queue: &str,
        new: &NewMember,
        by: &str,
        now: Now,
        out: &mut Vec<Output>,
    ) -> Result<(), Refused> {
        let slot = self.slot_of(queue).ok_or(Refused::NoQueue)?;
        let added = self.with(slot, |queues, queue| {
            queues.add_here(queue, slot, new, now)?;
            let Some(member) = queue.members.last().cloned() else { return Err(Refused::NoMember) };
            let entry = Entry::AddMember { paused: member.paused };
            out.push(log(queue, now, &by.into(), Some(&member.interface), entry));
            queues.tell_member(queue, &member, MemberChange::Added, out);
            out.push(Output::Device(queue.name.clone()));
            queues.keep(queue, out);
            Ok(())
        });
        self.dirty.insert(slot);
        self.settle(now, out);
        added.unwrap_or(Err(Refused::NoQueue))
    }
    fn add_here(&mut self, queue: &mut Queue, slot: usize, new: &NewMember, now: Now) -> Result<(), Refused> {
        if queue.member(&new.interface).is_some() {
            return Err(Refused::AlreadyMember);
        }
        if queue.members.len() >= MEMBERS_MAX {
            return Err(Refused::Full);
        }
        self.put_member(queue, slot, new, Membership::Dynamic, now);
        Ok(())
    }
    /// Makes those dynamic members again that the database has kept.
    pub fn restore(&mut self, queue: &str, text: &str, now: Now, out: &mut Vec<Output>) {
        let Some(slot) = self.slot_of(queue) else { return };
        self.with(slot, |queues, queue| {
            for new in crate::parse_persisted(text) {
                // Whom the configuration has made a member meanwhile is one already.
                let _ = queues.add_here(queue, slot, &new, now);
            }
        });
        self.dirty.insert(slot);
        self.settle(now, out);
    }
    /// Removes a dynamic member; what it was called.
    pub fn remove(
        &mut self,
        queue: &str,
        interface: &str,
        by: &str,
        now: Now,
        out: &mut Vec<Output>,
    ) -> Result<Rc<str>, Refused> {
        let slot = self.slot_of(queue).ok_or(Refused::NoQueue)?;
        let removed = self.with(slot, |queues, queue| {
            let its = |member: &Member| member.interface.eq_ignore_ascii_case(interface);
            let place = queue.members.iter().position(its).ok_or(Refused::NoMember)?;
            let member = queue.members.get(place).ok_or(Refused::NoMember)?;
            if member.membership != Membership::Dynamic {
                return Err(Refused::NotDynamic);
            }
            let (name, interface) = (member.name.clone(), member.interface.clone());
            out.push(log(queue, now, &by.into(), Some(&interface), Entry::RemoveMember));
            queues.take_member(queue, slot, place, out);
            queues.keep(queue, out);
            Ok(name)
        });
        self.dirty.insert(slot);
        self.settle(now, out);
        removed.unwrap_or(Err(Refused::NoQueue))
    }
    /// Pauses a member or lets it work again; in how many queues.
    pub fn pause(
        &mut self,
        whom: Whom<'_>,
        paused: bool,
        reason: &str,
        now: Now,
        out: &mut Vec<Output>,
    ) -> Result<usize, Refused> {
        let mut name = None;
        let count = self.change(whom, now, out, |queues, queue, out| {
            name = queue.member(whom.interface).map(|member| member.name.clone());
            queues.pause_here(queue, whom.interface, (paused, reason), &whom.by.into(), now, out);
        })?;
        if let (None, Some(agent)) = (whom.queue, name) {
            let reason = reason.to_owned();
            let entry = if paused { Entry::PauseAll { reason } } else { Entry::UnpauseAll { reason } };
            let (call, queue) = (whom.by.into(), "NONE".into());
            out.push(Output::Log(Line { time: now.wall, call, queue, agent, entry }));
        }
        Ok(count)
    }
    pub(crate) fn pause_here(
        &mut self,
        queue: &mut Queue,
        interface: &str,
        (paused, reason): (bool, &str),
        by: &Rc<str>,
        now: Now,
        out: &mut Vec<Output>,
    ) {
        let found = queue.members.iter_mut().find(|member| member.interface.eq_ignore_ascii_case(interface));
        let Some(member) = found else { return };
        if member.paused == paused && member.paused_reason == reason {
            return;
        }
        let was_paused = std::mem::replace(&mut member.paused, paused);
        member.paused_reason = if paused { reason.to_owned() } else { String::new() };
        if paused {
            member.last_pause = now.wall;
        }
        // That it works again is told with the reason, too.
        let (mut member, reason) = (member.clone(), reason.to_owned());
        member.paused_reason.clone_from(&reason);
        if paused && was_paused && self.general.log_unpause_on_reason_change {
            let reason = reason.clone();
            out.push(log(queue, now, by, Some(&member.name), Entry::Unpause { reason }));
        }
        let entry = if paused { Entry::Pause { reason } } else { Entry::Unpause { reason } };
        out.push(log(queue, now, by, Some(&member.name), entry));
        self.tell_member(queue, &member, MemberChange::Pause, out);
        out.push(Output::Device(queue.name.clone()));
        self.keep(queue, out);
    }
    /// Changes a member; in how many queues.
    pub fn edit(
        &mut self,
        whom: Whom<'_>,
        edit: Edit<'_>,
        now: Now,
        out: &mut Vec<Output>,
    ) -> Result<usize, Refused> {
        match edit {
            Edit::Pause(paused, reason) => self.pause(whom, paused, reason, now, out),
            Edit::Penalty(penalty) => self.set_penalty(whom, penalty, now, out),
            Edit::RingInUse(rings) => self.set_ring_in_use(whom, rings, now, out),
            Edit::Skills(skills) => self.set_skills(whom, skills, now, out),
        }
    }
    /// Changes a penalty; in how many queues.
    pub fn set_penalty(
        &mut self,
        whom: Whom<'_>,
        penalty: u32,
        now: Now,
        out: &mut Vec<Output>,
    ) -> Result<usize, Refused> {
        self.set(whom, now, out, Entry::Penalty(penalty), MemberChange::Penalty, |member| {
            member.penalty = penalty;
        })
    }
    /// Lets a member be called while it is on a call, or not; in how many queues.
    pub fn set_ring_in_use(
        &mut self,
        whom: Whom<'_>,
        rings: bool,
        now: Now,
        out: &mut Vec<Output>,
    ) -> Result<usize, Refused> {
        self.set(whom, now, out, Entry::RingInUse(rings), MemberChange::RingInUse, |member| {
            member.ring_in_use = rings;
        })
    }
    /// Changes the skills of a member; in how many queues.
    pub fn set_skills(
        &mut self,
        whom: Whom<'_>,
        skills: &Skills,
        now: Now,
        out: &mut Vec<Output>,
    ) -> Result<usize, Refused> {
        let entry = Entry::Custom { event: "SKILLS".to_owned(), data: vec![skills.to_string()] };
        self.set(whom, now, out, entry, MemberChange::Skills, |member| member.skills.clone_from(skills))
    }
    /// Lets the dialplan set the calls that a member has taken.
    pub fn set_calls(
        &mut self,
        whom: Whom<'_>,
        calls: u32,
        now: Now,
        out: &mut Vec<Output>,
    ) -> Result<usize, Refused> {
        self.change(whom, now, out, |queues, queue, out| {
            queues.at_member(queue, whom.interface, out, |member| member.calls = calls);
        })
    }
    fn set(
        &mut self,
        whom: Whom<'_>,
        now: Now,
        out: &mut Vec<Output>,
        entry: Entry,
        what: MemberChange,
        change: impl Fn(&mut Member),
    ) -> Result<usize, Refused> {
        self.change(whom, now, out, |queues, queue, out| {
            let its = |member: &&mut Member| member.interface.eq_ignore_ascii_case(whom.interface);
            let Some(member) = queue.members.iter_mut().find(its) else { return };
            change(member);
            let member = member.clone();
            out.push(log(queue, now, &whom.by.into(), Some(&member.interface), entry.clone()));
            queues.tell_member(queue, &member, what, out);
            queues.keep(queue, out);
        })
    }
    /// Does something in every queue that is meant; in how many.
    fn change(
        &mut self,
        whom: Whom<'_>,
        now: Now,
        out: &mut Vec<Output>,
        mut change: impl FnMut(&mut Self, &mut Queue, &mut Vec<Output>),
    ) -> Result<usize, Refused> {
        let mut slots = self.queues_of(whom.interface);
        if let Some(name) = whom.queue {
            let one = self.slot_of(name).ok_or(Refused::NoQueue)?;
            slots.retain(|slot| *slot == one);
        }
        for &slot in &slots {
            self.with(slot, |queues, queue| change(queues, queue, out));
            self.dirty.insert(slot);
        }
        self.settle(now, out);
        if slots.is_empty() { Err(Refused::NoMember) } else { Ok(slots.len()) }
    }
    /// Sets the figures of a queue back, or of all.
    pub fn reset(&mut self, queue: Option<&str>) -> Result<(), Refused> {
        let slots: Vec<usize> = match queue {
            Some(name) => vec![self.slot_of(name).ok_or(Refused::NoQueue)?],
            None => self.by_name.values().copied().collect(),
        };
        for slot in slots {
            self.with(slot, |_, queue| {
                queue.stats = Stats::default();
                queue.members.iter_mut().for_each(|member| {
                    member.calls = 0;
                    member.last_call = None;
                });
            });
        }
        Ok(())
    }
    /// Gives a caller another priority, and the place that goes with it.
    pub fn set_priority(
        &mut self,
        queue: &str,
        caller: ChannelId,
        priority: i32,
        now: Now,
        out: &mut Vec<Output>,
    ) -> Result<(), Refused> {
        let slot = self.slot_of(queue).ok_or(Refused::NoQueue)?;
        let changed = self.with(slot, |_, queue| {
            let at = queue.place_of(caller).ok_or(Refused::NoCaller)?;
            let mut moved = queue.callers.remove(at);
            moved.priority = priority;
            let at = queue.place_for(priority, None);
            queue.callers.insert(at, moved);
            Ok(())
        });
        self.dirty.insert(slot);
        self.settle(now, out);
        changed.unwrap_or(Err(Refused::NoQueue))
    }
    /// Takes a caller out, with a word for its dialplan.
    pub fn withdraw(
        &mut self,
        queue: &str,
        caller: ChannelId,
        info: &str,
        now: Now,
        out: &mut Vec<Output>,
    ) -> Result<(), Refused> {
        let found = self.get(queue).ok_or(Refused::NoQueue)?;
        let place = found.place_of(caller).ok_or(Refused::NoCaller)?;
        if matches!(found.callers.get(place).map(|caller| &caller.stage), Some(crate::Stage::Answered { .. }))
        {
            return Err(Refused::NoCaller);
        }
        let exit = Exit::Withdrawn(info.to_owned());
        out.push(Output::Order { caller, order: Order::Leave(exit.clone()) });
        self.input(caller, Input::Left(exit), now, out);
        Ok(())
    }
    /// Says what is to be kept of the dynamic members.
    fn keep(&self, queue: &Queue, out: &mut Vec<Output>) {
        if self.general.persistent_members {
            let value = Some(persist(queue.members.iter())).filter(|value| !value.is_empty());
            out.push(Output::Persist { queue: queue.name.clone(), value });
        }
    }
}
