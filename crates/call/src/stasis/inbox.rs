//! Orders of programs that wait for a channel's story.

use core::time::Duration;
use std::collections::VecDeque;
use std::rc::Rc;

use base::ChannelId;

use super::StasisError;
use crate::Core;

/// Orders that wait for one channel at most: a story takes them in the same turn.
pub const ORDERS_MAX: usize = 256;
/// Sounds, recordings and digits that one channel has before it at most.
pub const WORKS_MAX: usize = 256;

/// Digits to be sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Digits {
    /// Which.
    pub digits: String,
    /// Pause before the first.
    pub before: Duration,
    /// Pause between two.
    pub between: Duration,
    /// How long each lasts, milliseconds.
    pub duration_ms: u16,
    /// Pause after the last.
    pub after: Duration,
}

/// A channel that was made to be called later is called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Placing {
    /// The channel on whose behalf it is called.
    pub caller: Option<ChannelId>,
    /// How long it rings; `None`: as long as it takes.
    pub timeout: Option<Duration>,
}

/// What a channel does one after the other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Work {
    /// A sound, by its id.
    Play(Rc<str>),
    /// A recording, by its name.
    Record(Rc<str>),
    /// Digits.
    Digits(Digits),
}

/// What a program wants of a channel's story.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Order {
    /// Does this when what is before it is done.
    Work(Work),
    /// Plays music of this class while nothing else is played.
    Music(String),
    /// Plays none any more.
    NoMusic,
    /// Calls it.
    Dial(Placing),
    /// Gives it to another program.
    Move(Rc<str>, Vec<String>),
    /// Lets it go on in the dialplan at the next priority.
    Continue,
}

/// What waits for a story.
#[derive(Debug, Default)]
pub(crate) struct Inbox {
    orders: VecDeque<Order>,
    /// Works that were ordered and are not done.
    pub(super) works: usize,
    /// It was let go: no other order is taken.
    pub(super) leaves: bool,
}

impl Core {
    /// Orders something of the story of a channel that a program has.
    ///
    /// Errors: no such channel (`NotFound`), no program has it (`Conflict`), too many orders wait (`Internal`).
    pub fn stasis_order(&mut self, id: ChannelId, order: Order) -> Result<(), StasisError> {
        self.stasis_stays(id)?;
        let visit = self.stasis.visits.get_mut(&id).ok_or_else(StasisError::not_in_stasis)?;
        let inbox = &mut visit.inbox;
        let is_work = matches!(order, Order::Work(_));
        if inbox.orders.len() >= ORDERS_MAX || (is_work && inbox.works >= WORKS_MAX) {
            return Err(StasisError::full());
        }
        inbox.works += usize::from(is_work);
        inbox.leaves |= order == Order::Continue;
        inbox.orders.push_back(order);
        self.stasis_rouse(id);
        Ok(())
    }
    /// The next order of a channel, for its story.
    pub fn stasis_next_order(&mut self, id: ChannelId) -> Option<Order> {
        self.stasis.visits.get_mut(&id)?.inbox.orders.pop_front()
    }
    /// A channel's story has done a work, or will not do it.
    pub fn stasis_work_done(&mut self, id: ChannelId) {
        if let Some(visit) = self.stasis.visits.get_mut(&id) {
            visit.inbox.works = visit.inbox.works.saturating_sub(1);
        }
    }
}
