//! Call queues on the shard: the machine of `queue` at work, and what follows from what it says.

use std::collections::VecDeque;

use base::ChannelId;
use queue::{Event, Now, Order, Output, Queues};

use crate::{ChanEvent, Core, Notice};

/// Family of the database that keeps dynamic members.
pub const PERSISTENT_MEMBERS: &str = "Queue/PersistentMembers";
/// Most orders that wait for one story: it takes them at its next step, so more than a few are a fault of its own.
const ORDERS_MAX: usize = 64;
/// Most lines of the log that wait for whoever writes them.
const LINES_MAX: usize = 100_000;

impl Core {
    /// Time as queues want it.
    pub fn queue_now(&self) -> Now {
        Now { at: self.now, wall: self.services.wall.now_micros().div_euclid(1_000_000) }
    }
    /// Lets something happen to the queues, and carries out what follows.
    pub fn with_queues<R>(&mut self, act: impl FnOnce(&mut Queues, Now, &mut Vec<Output>) -> R) -> R {
        let now = self.queue_now();
        let mut out = Vec::new();
        let result = act(&mut self.queues, now, &mut out);
        for output in out {
            self.follow_queues(output);
        }
        result
    }
    /// What the story of a caller is to do next.
    pub fn queue_order(&mut self, caller: ChannelId) -> Option<Order> {
        self.queue_orders.get_mut(&caller)?.pop_front()
    }
    /// The story of a caller takes no more orders.
    pub fn queue_orders_end(&mut self, caller: ChannelId) {
        self.queue_orders.remove(&caller);
    }
    /// Lets everything happen in the queues whose time has come.
    pub(crate) fn queues_due(&mut self) {
        if self.queues.deadline().is_some_and(|at| at <= self.now) {
            self.with_queues(Queues::due);
        }
    }
    /// A channel is gone, and with it what it did in queues.
    pub(crate) fn queue_gone(&mut self, id: ChannelId) {
        if self.queues.caller(id).is_some() || self.queues.talk(id).is_some() {
            self.with_queues(|queues, now, out| queues.gone(id, now, out));
        }
        self.queue_orders.remove(&id);
    }
    fn follow_queues(&mut self, output: Output) {
        match output {
            Output::Order { caller, order } => {
                let orders: &mut VecDeque<Order> = self.queue_orders.entry(caller).or_default();
                if orders.len() < ORDERS_MAX {
                    orders.push_back(order);
                }
                self.push_event(caller, ChanEvent::Queue);
            }
            Output::Log(line) => {
                if self.queue_lines.len() < LINES_MAX {
                    self.queue_lines.push(line);
                }
            }
            Output::Event { queue, event } => self.notice(|core| {
                let (caller, member) = match &event {
                    Event::CallerJoin { caller, .. }
                    | Event::CallerLeave { caller, .. }
                    | Event::CallerAbandon { caller, .. } => (Some(*caller), None),
                    Event::Agent { caller, channel, .. } => (Some(*caller), *channel),
                    Event::Member { .. } => (None, None),
                };
                let of = |id: Option<ChannelId>| id.and_then(|id| core.snapshot(id)).map(Box::new);
                Some(Notice::Queue { queue, event: Box::new(event), caller: of(caller), member: of(member) })
            }),
            Output::Persist { queue, value } => {
                match value {
                    Some(value) => drop(self.services.db.put(PERSISTENT_MEMBERS, &queue, &value)),
                    None => drop(self.services.db.delete(PERSISTENT_MEMBERS, &queue)),
                };
            }
            Output::Device(queue) => {
                self.touched_devices.extend([format!("Queue:{queue}"), format!("Queue:{queue}_avail")]);
            }
        }
    }
}
