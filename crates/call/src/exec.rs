//! The executor of application stories: a slab of futures on one thread, with timers on the shard's own clock.
//!
//! There are no cross-thread wakers. A story waits for an event of its channels or for a deadline; whoever pushes
//! the event names the task, and the shard polls it. Each poll runs inside `catch_unwind`, so that a panic ends one
//! story and through its channel guard one call.

use std::collections::{BinaryHeap, VecDeque};
use std::future::Future;
use std::pin::Pin;

use base::{ChannelId, Instant};

/// A story in the executor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TaskId {
    slot: u32,
    generation: u32,
}

pub(crate) type Story = Pin<Box<dyn Future<Output = ()>>>;

#[derive(Default)]
struct Task {
    story: Option<Story>,
    generation: u32,
    alive: bool,
    queued: bool,
    deadline: Option<Instant>,
    owner: Option<ChannelId>,
}

/// Most stories at once; a call has one, so this is far above any call cap a machine can carry.
const TASKS_MAX: usize = 1 << 20;

/// The slab, the ready queue and the timers.
#[derive(Default)]
pub struct Executor {
    tasks: Vec<Task>,
    free: Vec<u32>,
    ready: VecDeque<TaskId>,
    timers: BinaryHeap<core::cmp::Reverse<(Instant, TaskId)>>,
    current: Option<TaskId>,
}

impl Executor {
    /// Adds a story and queues its first poll; `None` when the slab is full.
    pub fn spawn(
        &mut self,
        owner: Option<ChannelId>,
        story: impl Future<Output = ()> + 'static,
    ) -> Option<TaskId> {
        let slot = match self.free.pop() {
            Some(slot) => slot,
            None if self.tasks.len() < TASKS_MAX => {
                self.tasks.push(Task::default());
                u32::try_from(self.tasks.len() - 1).ok()?
            }
            None => return None,
        };
        let task = self.tasks.get_mut(slot as usize)?;
        task.alive = true;
        task.story = Some(Box::pin(story));
        task.owner = owner;
        let id = TaskId { slot, generation: task.generation };
        self.wake(id);
        Some(id)
    }
    /// Queues a poll; once, however often it is woken before.
    pub fn wake(&mut self, id: TaskId) {
        if let Some(task) = self.get_mut(id)
            && !task.queued
        {
            task.queued = true;
            self.ready.push_back(id);
        }
    }
    /// The story that is being polled.
    pub fn current(&self) -> Option<TaskId> {
        self.current
    }
    /// The channel that a story runs on.
    pub(crate) fn owner(&mut self, id: TaskId) -> Option<ChannelId> {
        self.get_mut(id)?.owner
    }
    /// Stories alive.
    pub fn len(&self) -> usize {
        self.tasks.len() - self.free.len()
    }
    /// Whether there is no story.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// When the earliest waiting story wants to be polled; `Instant::ZERO` when one is ready.
    pub fn deadline(&mut self) -> Option<Instant> {
        if !self.ready.is_empty() {
            return Some(Instant::ZERO);
        }
        self.next_timer()
    }
    fn next_timer(&mut self) -> Option<Instant> {
        while let Some(&core::cmp::Reverse((at, id))) = self.timers.peek() {
            if self.get_mut(id).is_some_and(|task| task.deadline == Some(at)) {
                return Some(at);
            }
            self.timers.pop();
        }
        None
    }

    /// Sets when the current story is to be polled again at the latest; replaces its earlier deadline.
    pub(crate) fn set_deadline(&mut self, deadline: Option<Instant>) {
        let Some(id) = self.current else { return };
        let Some(task) = self.get_mut(id) else { return };
        if task.deadline == deadline {
            return;
        }
        task.deadline = deadline;
        if let Some(at) = deadline {
            self.timers.push(core::cmp::Reverse((at, id)));
        }
        self.shed_stale_timers();
    }
    /// Makes sure that the current story is polled again at `deadline` or before.
    pub(crate) fn bring_deadline_forward(&mut self, deadline: Option<Instant>) {
        let Some(task) = self.current.and_then(|id| self.get_mut(id)) else { return };
        let earliest = [task.deadline, deadline].into_iter().flatten().min();
        self.set_deadline(earliest);
    }
    /// Queues every story whose deadline has come.
    pub(crate) fn expire(&mut self, now: Instant) {
        while self.next_timer().is_some_and(|at| at <= now)
            && let Some(core::cmp::Reverse((_, id))) = self.timers.pop()
        {
            if let Some(task) = self.get_mut(id) {
                task.deadline = None;
            }
            self.wake(id);
        }
    }
    /// Takes the next ready story out for polling.
    pub(crate) fn take_ready(&mut self) -> Option<(TaskId, Story)> {
        while let Some(id) = self.ready.pop_front() {
            if let Some(task) = self.get_mut(id) {
                task.queued = false;
                if let Some(story) = task.story.take() {
                    self.current = Some(id);
                    return Some((id, story));
                }
            }
        }
        None
    }
    /// Puts a story back after a poll that was pending.
    pub(crate) fn put_back(&mut self, id: TaskId, story: Story) {
        self.current = None;
        if let Some(task) = self.get_mut(id) {
            task.story = Some(story);
        }
    }
    /// Frees the slot of a story that has ended; says whose it was.
    pub(crate) fn retire(&mut self, id: TaskId) -> Option<ChannelId> {
        self.current = None;
        let task = self.get_mut(id)?;
        task.alive = false;
        task.generation = task.generation.wrapping_add(1);
        task.deadline = None;
        task.queued = false;
        let owner = task.owner.take();
        self.free.push(id.slot);
        owner
    }
    /// Puts another story in the place of each that belongs to a channel and waits; how many there were.
    pub(crate) fn replace_all(&mut self, owner: ChannelId, with: impl Fn(Story) -> Story) -> usize {
        let mut replaced = Vec::new();
        for (slot, task) in (0..).zip(self.tasks.iter_mut()).filter(|(_, task)| task.owner == Some(owner)) {
            if let Some(story) = task.story.take() {
                task.story = Some(with(story));
                replaced.push(TaskId { slot, generation: task.generation });
            }
        }
        replaced.iter().for_each(|id| self.wake(*id));
        replaced.len()
    }
    /// How many stories are ready.
    pub(crate) fn ready_len(&self) -> usize {
        self.ready.len()
    }

    fn get_mut(&mut self, id: TaskId) -> Option<&mut Task> {
        self.tasks.get_mut(id.slot as usize).filter(|task| task.alive && task.generation == id.generation)
    }
    /// Rebuilds the heap when most of its entries are of deadlines that were replaced, so that it stays O(stories).
    fn shed_stale_timers(&mut self) {
        if self.timers.len() > 64 + 4 * self.tasks.len() {
            let live: BinaryHeap<_> = self
                .timers
                .drain()
                .filter(|core::cmp::Reverse((at, id))| {
                    self.tasks
                        .get(id.slot as usize)
                        .is_some_and(|t| t.alive && t.generation == id.generation && t.deadline == Some(*at))
                })
                .collect();
            self.timers = live;
        }
    }
}
