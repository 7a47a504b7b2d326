//! Call queues on the shard: the machine of `queue` at work, and what follows from what it says.

use std::collections::VecDeque;
use std::rc::Rc;

use base::ChannelId;
use queue::{Event, Member, MemberChange, Membership, NewMember, Now, Order, Output, QueueConfig, Queues};

use crate::{ChanEvent, Core, Notice};

/// Family of the database that keeps dynamic members.
pub const PERSISTENT_MEMBERS: &str = "Queue/PersistentMembers";
/// Most orders that wait for one story: it takes them at its next step, so more than a few are a fault of its own.
const ORDERS_MAX: usize = 64;
/// Most changes of members that wait for whoever writes their rows.
const ROWS_MAX: usize = 100_000;
/// Most lines of the log that wait for whoever writes them.
const LINES_MAX: usize = 100_000;

/// How rows of the families `queues` and `queue_members` are read; each is columns and values.
pub trait QueueTables {
    /// Whether queues lie in a database.
    fn has_queues(&self) -> bool;
    /// Whether members do.
    fn has_members(&self) -> bool;
    /// A queue, without its members; `None` for a row that says something that cannot be.
    fn queue(&self, row: &[(String, String)]) -> Option<QueueConfig>;
    /// A member; `None` for a row without an interface.
    fn member(&self, row: &[(String, String)]) -> Option<NewMember>;
}

/// A member that is a row of a database has changed here: its queue, what, and the member as it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemberRow {
    /// Its queue.
    pub queue: Rc<str>,
    /// What has changed: whether it is paused, its penalty, or whether it is called while it is on a call.
    pub change: MemberChange,
    /// The member.
    pub member: Box<Member>,
}

impl Core {
    /// Changes of members whose rows are to be written. Until [`Core::queue_rows_written`] their rows are older than they.
    pub fn take_queue_rows(&mut self) -> Vec<MemberRow> {
        std::mem::take(&mut self.queue_rows)
    }
    /// So many rows of members wait to be written.
    pub fn queue_rows_written(&mut self, wait: usize) {
        self.queue_rows_wait = wait;
    }
    /// Whether members have changed here whose rows do not say so yet.
    pub fn queue_rows_wait(&self) -> bool {
        self.queue_rows_wait > 0 || !self.queue_rows.is_empty()
    }
    fn note_member_row(&mut self, queue: &Rc<str>, event: &Event) {
        let Event::Member { change, member } = event else { return };
        let is_written =
            matches!(change, MemberChange::Pause | MemberChange::Penalty | MemberChange::RingInUse);
        let (member, _) = &**member;
        if is_written && member.membership == Membership::Realtime && self.queue_rows.len() < ROWS_MAX {
            let member = Box::new(member.clone());
            self.queue_rows.push(MemberRow { queue: queue.clone(), change: *change, member });
        }
    }
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
            Output::Event { queue, event } => {
                self.note_member_row(&queue, &event);
                if let Event::Member { change: MemberChange::Added | MemberChange::Pause, member } = &event {
                    self.touched_devices.push(format!("Queue:{queue}_pause_{}", member.0.interface));
                }
                self.notice(|core| {
                    let (caller, member) = match &event {
                        Event::CallerJoin { caller, .. }
                        | Event::CallerLeave { caller, .. }
                        | Event::CallerAbandon { caller, .. } => (Some(*caller), None),
                        Event::Agent { caller, channel, .. } => (Some(*caller), *channel),
                        Event::Member { .. } => (None, None),
                    };
                    let of = |id: Option<ChannelId>| id.and_then(|id| core.snapshot_now(id)).map(Box::new);
                    let (caller, member) = (of(caller), of(member));
                    Some(Notice::Queue { queue, event: Box::new(event), caller, member })
                });
            }
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
