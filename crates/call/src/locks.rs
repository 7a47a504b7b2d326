//! Locks of the dialplan (`LOCK()`): names that one channel at a time holds, until it gives them back or ends.

use std::collections::BTreeMap;
use std::task::Poll;

use base::{ChannelId, Instant};

use crate::chan::stop_of;
use crate::exec::TaskId;
use crate::{Chan, Core, Stop};

/// Locks that are held at once: what channels that never unlock could fill the table with.
pub const LOCKS_MAX: usize = 10_000;
/// Longest name of a lock, bytes.
pub const LOCK_NAME_MAX: usize = 256;

struct Held {
    by: ChannelId,
    /// How often its holder took it: as often it has to give it back.
    times: u32,
}

/// Who holds which lock, and who waits.
#[derive(Default)]
pub(crate) struct Locks {
    held: BTreeMap<String, Held>,
    /// Stories that wait for some lock to come free, in the order in which they came.
    waiters: Vec<TaskId>,
}

impl Core {
    /// Takes a lock that nobody else holds; once more when this channel holds it. False when another does, the table is full,
    /// or the name too long.
    pub fn try_lock(&mut self, id: ChannelId, name: &str) -> bool {
        if name.len() > LOCK_NAME_MAX {
            return false;
        }
        if let Some(held) = self.locks.held.get_mut(name) {
            held.times = held.times.saturating_add(u32::from(held.by == id));
            return held.by == id;
        }
        if self.locks.held.len() >= LOCKS_MAX {
            return false;
        }
        self.locks.held.insert(name.to_owned(), Held { by: id, times: 1 });
        true
    }
    /// Gives a lock back; false when this channel does not hold it.
    pub fn unlock(&mut self, id: ChannelId, name: &str) -> bool {
        let Some(held) = self.locks.held.get_mut(name).filter(|held| held.by == id) else { return false };
        held.times -= 1;
        if held.times == 0 {
            self.locks.held.remove(name);
            self.woken.append(&mut self.locks.waiters);
        }
        true
    }
    /// Whether a channel holds any lock.
    pub fn holds_lock(&self, id: ChannelId) -> bool {
        self.locks.held.values().any(|held| held.by == id)
    }
    /// A channel ends: what it held is free.
    pub(crate) fn release_locks(&mut self, id: ChannelId) {
        let before = self.locks.held.len();
        self.locks.held.retain(|_, held| held.by != id);
        if self.locks.held.len() < before {
            self.woken.append(&mut self.locks.waiters);
        }
    }
    fn is_free_for(&self, id: ChannelId, name: &str) -> bool {
        self.locks.held.get(name).is_none_or(|held| held.by == id)
    }
}

impl Chan {
    /// Waits until nobody else holds any of these locks, or `deadline`. What was free stays so until the story waits again.
    /// With `after_end` the end of the call, which is over anyway, stops nothing.
    pub async fn wait_for_locks(
        &self,
        names: &[String],
        deadline: Option<Instant>,
        after_end: bool,
    ) -> Result<(), Stop> {
        std::future::poll_fn(|_| {
            let mut core = self.shard().core.borrow_mut();
            let mut exec = self.shard().exec.borrow_mut();
            let now = core.now;
            let free = names.iter().all(|name| core.is_free_for(self.id(), name));
            let Some(channel) = core.get_mut(self.id()) else { return Poll::Ready(Err(Stop::Hangup)) };
            let done = match stop_of(channel, now).filter(|_| !after_end) {
                _ if free || deadline.is_some_and(|at| at <= now) => Ok(()),
                Some(stop) => Err(stop),
                None => {
                    channel.waiter = exec.current();
                    let absolute = channel.absolute_deadline.filter(|_| !after_end);
                    exec.set_deadline([deadline, absolute].into_iter().flatten().min());
                    if let Some(current) = exec.current().filter(|task| !core.locks.waiters.contains(task)) {
                        core.locks.waiters.push(current);
                    }
                    return Poll::Pending;
                }
            };
            exec.set_deadline(None);
            Poll::Ready(done)
        })
        .await
    }
}
