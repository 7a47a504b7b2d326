//! The line of a queue: who enters it, and how each comes out of it again.

use core::time::Duration;
use std::rc::Rc;

use base::ChannelId;

use super::{Queues, Talk, agent_event, log};
use crate::announce::Voice;
use crate::log::{Entry, Line};
use crate::{
    AgentStep, Caller, CallerId, Closed, End, Event, Exit, Join, Member, Now, Offer, Output, Queue, Stage,
};

/// Most callers in one queue: more than any machine carries; bounds what one look at a queue costs.
const CALLERS_MAX: usize = 10_000;

impl Queues {
    pub(super) fn enter(
        &mut self,
        queue: &mut Queue,
        slot: usize,
        join: Join,
        now: Now,
        out: &mut Vec<Output>,
    ) -> Result<usize, Closed> {
        let rule = if join.rule.is_empty() { &queue.settings.default_rule } else { &join.rule };
        let rule = rule.to_ascii_lowercase();
        let skill_rule = self.skill_rules.get(&rule).cloned().unwrap_or_default();
        let rule = self.rules.get(&rule).cloned().unwrap_or_default();
        let joined = join.since.filter(|since| since.at <= now.at).unwrap_or(now);
        let mut caller = Caller {
            channel: join.caller,
            uniqueid: join.uniqueid,
            priority: join.priority,
            joined,
            original: 0,
            stage: Stage::Waiting { until: now.at },
            bounds: join.bounds,
            skills: join.skills,
            expires: join.timeout.map(|timeout| now.at + timeout),
            no_retry: join.no_retry,
            tries: 0,
            linear: 0,
            tried: Vec::new(),
            rule,
            rules_done: 0,
            skill_rule,
            skill_rules_done: 0,
            voice: Voice::new(&queue.settings.announcing, now.at),
            expected: None,
        };
        if self.is_empty(queue, queue.settings.join_empty, &caller, now.at) {
            return Err(Closed::Empty);
        }
        let most = queue.settings.max_length as usize;
        let count = queue.callers.len();
        if queue.is_dead || count >= CALLERS_MAX || (most > 0 && count >= most) {
            return Err(if queue.is_dead { Closed::NoQueue } else { Closed::Full });
        }
        let at = match (join.since, join.position) {
            (Some(_), None) => queue.place_since(join.priority, joined.at),
            (_, wanted) => queue.place_for(join.priority, wanted),
        };
        let position = at + 1;
        caller.original = position;
        caller.expected = queue.pace.plain(position);
        let (channel, call) = (caller.channel, caller.uniqueid.clone());
        queue.callers.insert(at, caller);
        self.places.insert(channel, slot);
        let count = queue.callers.len();
        let event = Event::CallerJoin { caller: channel, position, count };
        out.push(Output::Event { queue: queue.name.clone(), event });
        let entry = self.entering(queue, join.url, join.id, position);
        out.push(log(queue, now, &call, None, entry));
        out.push(Output::Device(queue.name.clone()));
        self.dirty.insert(slot);
        Ok(position)
    }

    /// What the log says of who enters.
    fn entering(&self, queue: &Queue, url: String, id: CallerId, position: usize) -> Entry {
        let is_told = queue.settings.log_restricted || !id.is_restricted;
        let number = if is_told { id.number } else { String::new() };
        let name = self.general.log_caller_name.then(|| if is_told { id.name } else { String::new() });
        Entry::EnterQueue { url, number, position, name }
    }

    pub(super) fn connect(
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
        let (waited, expected) = (now.at.since(caller.joined.at), caller.expected);
        queue.pace.taken(waited, expected, queue.callers.len() > 1, now.at);
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
            pending: Some(agent_event(queue, caller.channel, &offer, AgentStep::Connect { ring, hold })),
        };
        self.talks.insert(caller.channel, talk);
        self.depart(queue, at, out);
        self.phones.change(&offer.interface.to_ascii_lowercase(), |phone| {
            phone.ringing = phone.ringing.saturating_sub(1);
            phone.talking += 1;
        });
        self.change_member(queue, &offer.interface, out, |member| member.in_call = true);
    }

    pub(super) fn ended(&mut self, caller: ChannelId, end: &End, now: Now, out: &mut Vec<Output>) -> bool {
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
                queues.change_member(queue, &interface, out, |member| member.took_call(now, wrapup));
                wrapup
            })
        });
        for slot in queues.into_iter().filter(|slot| shared && own != Some(*slot)) {
            self.with(slot, |queues, queue| {
                let took = |member: &mut Member| member.took_call(now, wrapup.unwrap_or_default());
                queues.change_member(queue, &interface, out, took);
            });
        }
        true
    }

    /// A caller leaves before it has talked to anybody.
    pub(super) fn leave(
        &mut self,
        queue: &mut Queue,
        at: usize,
        exit: Exit,
        now: Now,
        out: &mut Vec<Output>,
    ) {
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
    pub(super) fn depart(&mut self, queue: &mut Queue, at: usize, out: &mut Vec<Output>) {
        if at >= queue.callers.len() {
            return;
        }
        let caller = queue.callers.remove(at).channel;
        self.places.remove(&caller);
        if queue.callers.is_empty() {
            queue.pace.idle();
        }
        let event = Event::CallerLeave { caller, position: at + 1, count: queue.callers.len() };
        out.push(Output::Event { queue: queue.name.clone(), event });
        out.push(Output::Device(queue.name.clone()));
        if self.weighs {
            // A member may have been kept from a lighter queue for this caller.
            self.dirty.extend(self.places.values());
        }
    }
}
