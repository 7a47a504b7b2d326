//! One thread's worth of calls: the core, the technologies and the executor, and the turn that moves them.

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use base::{Cause, ChannelId, Instant};

use crate::conference::DOCUMENT_TYPE;
use crate::exec::Story;
use crate::{Advance, ChanState, Core, Executor, Indication, Interception, Level, Request, TaskId, Tech};

/// A story may be polled this often in one turn before datagrams and deadlines get theirs.
const POLLS_PER_TURN: usize = 4096;

/// See the module's page.
pub struct Shard {
    /// The owner of channels.
    pub core: RefCell<Core>,
    /// What the dialplan has to say before a channel's side is told who it talks to. Set by whoever runs the dialplan.
    pub interception: Cell<Interception>,
    techs: RefCell<Vec<Rc<RefCell<dyn Tech>>>>,
    pub(crate) exec: RefCell<Executor>,
    lamps: RefCell<Option<Lamps>>,
}

/// Looks at the devices that were touched ([`Core::touched_devices`]) and tells of them.
pub type Lamps = Rc<dyn Fn()>;

/// How often one call is sent on before it counts as going in a circle (the field's default of `CHANNEL(max_forwards)`).
pub const FORWARDS: i32 = 20;

impl Shard {
    /// A shard without technologies.
    pub fn new(core: Core) -> Rc<Self> {
        Rc::new(Self {
            core: RefCell::new(core),
            interception: Cell::new(|_, _| None),
            techs: RefCell::default(),
            exec: RefCell::default(),
            lamps: RefCell::default(),
        })
    }
    /// Has devices looked at between two stories, so that each state is told although the next story ends it.
    pub fn set_lamps(&self, lamps: Lamps) {
        *self.lamps.borrow_mut() = Some(lamps);
    }
    fn look_at_devices(&self) {
        if self.core.borrow().touched_devices.is_empty() {
            return;
        }
        let lamps = self.lamps.borrow().clone();
        lamps.into_iter().for_each(|lamps| lamps());
    }
    /// Adds a technology; the index goes into [`NewChannel::tech`](crate::NewChannel::tech).
    pub fn add_tech(&self, tech: Rc<RefCell<dyn Tech>>) -> usize {
        let mut techs = self.techs.borrow_mut();
        techs.push(tech);
        techs.len() - 1
    }
    /// The technology a dial string names before its `/`, any case.
    pub fn tech_named(&self, name: &str) -> Option<Rc<RefCell<dyn Tech>>> {
        let techs = self.techs.borrow();
        techs.iter().find(|t| t.borrow().names().iter().any(|n| n.eq_ignore_ascii_case(name))).cloned()
    }
    /// Calls the technology of a channel; `None` when the channel is gone.
    pub fn with_tech<R>(&self, id: ChannelId, call: impl FnOnce(&mut dyn Tech, &mut Core) -> R) -> Option<R> {
        let index = self.core.borrow().get(id)?.tech;
        let tech = self.techs.borrow().get(index).cloned()?;
        let mut tech = tech.borrow_mut();
        Some(call(&mut *tech, &mut self.core.borrow_mut()))
    }

    /// Waits until all is known of who `tech/resource` names that a database will tell; who dials does so before
    /// [`Self::request`].
    pub async fn look_up(&self, tech: &str, resource: &str) {
        self.look_all_up(&[(tech, resource)]).await;
    }
    /// The same of many, who are all asked for before the first answer is waited for.
    pub async fn look_all_up(&self, names: &[(&str, &str)]) {
        let ask = |(tech, resource): &(&str, &str)| {
            self.tech_named(tech)?.borrow_mut().look_up(&mut self.core.borrow_mut(), resource)
        };
        let asked: Vec<_> = names.iter().filter_map(ask).collect();
        std::future::poll_fn(|_| {
            if asked.iter().all(|known| known.get()) {
                return Poll::Ready(());
            }
            self.wait_for_outside();
            Poll::Pending
        })
        .await;
    }
    /// The story that runs is woken by [`Core::outside_changed`].
    pub(crate) fn wait_for_outside(&self) {
        let mut core = self.core.borrow_mut();
        let current = self.exec.borrow().current().filter(|id| !core.outside_waiters.contains(id));
        core.outside_waiters.extend(current);
    }
    /// Makes an outgoing channel for `tech/resource` without calling it yet.
    pub fn request(&self, tech: &str, request: &Request) -> Result<ChannelId, Cause> {
        let tech = self.tech_named(tech).ok_or(Cause::CHAN_NOT_IMPLEMENTED)?;
        let mut tech = tech.borrow_mut();
        let core = &mut *self.core.borrow_mut();
        let from = request.requestor.and_then(|id| core.get(id));
        let (forwards, hops) = from.map_or((FORWARDS, None), |from| (from.forwards, from.hops));
        if forwards <= 0 {
            let name = from.map(|from| from.name.to_string()).unwrap_or_default();
            let line = format!("cannot place a call from channel '{name}': max forwards exceeded");
            core.log(crate::Level::Warning, "max_forwards", &line);
            return Err(Cause::NO_ROUTE_DESTINATION);
        }
        let made = tech.request(core, request)?;
        if request.requestor.is_some()
            && let Some(channel) = core.get_mut(made)
        {
            channel.forwards = forwards - 1;
            // No message is sent on here; whoever sends one takes one of them.
            channel.hops = hops;
        }
        Ok(made)
    }
    /// Answers an incoming channel; nothing happens when it is up.
    pub fn answer(&self, id: ChannelId) {
        let state = self.core.borrow().get(id).map(|c| (c.state, c.hangup));
        if matches!(state, Some((state, None)) if state != ChanState::Up) {
            self.with_tech(id, |tech, core| tech.answer(core, id));
            self.core.borrow_mut().answered(id);
        }
    }
    /// Tells the other side of a channel.
    pub fn indicate(&self, id: ChannelId, indication: &Indication) {
        {
            let mut core = self.core.borrow_mut();
            match indication {
                Indication::Ringing => {
                    if let Some(channel) = core.get_mut(id) {
                        channel.is_told_ringing = true;
                    }
                    core.advance(id, Advance::Ringing);
                    core.touch_caller(id);
                }
                Indication::Progress => {
                    core.advance(id, Advance::Early);
                    core.touch_caller(id);
                }
                Indication::Hold if core.catches_hold(id, true) => return,
                Indication::Unhold if core.catches_hold(id, false) => return,
                Indication::Hold => core.told_held(id, true),
                Indication::Unhold => core.told_held(id, false),
                _ => {}
            }
        }
        if self.core.borrow().get(id).is_some_and(|c| c.hangup.is_none()) {
            self.with_tech(id, |tech, core| tech.indicate(core, id, indication));
        }
    }
    /// Tells every technology that two channels have changed places.
    pub(crate) fn techs_exchanged(&self, a: ChannelId, b: ChannelId) {
        let techs = self.techs.borrow().clone();
        for tech in techs {
            tech.borrow_mut().exchanged(&self.core.borrow(), a, b);
        }
    }
    /// Ends a channel for good: the driver says goodbye if that is still to do, records are written, the id is void.
    pub fn finish(&self, id: ChannelId, cause: Cause) {
        {
            let mut core = self.core.borrow_mut();
            let Some(channel) = core.get_mut(id) else { return };
            channel.hangup.get_or_insert(cause);
            core.tell_quality(id);
        }
        self.with_tech(id, |tech, core| {
            let cause = core.get(id).and_then(|c| c.hangup).unwrap_or(cause);
            tech.hangup(core, id, cause);
        });
        self.core.borrow_mut().remove(id);
    }

    /// Starts a story. When it belongs to a channel and panics, that channel is ended; `false` when there is no room.
    pub fn spawn(&self, owner: Option<ChannelId>, story: impl Future<Output = ()> + 'static) -> bool {
        self.exec.borrow_mut().spawn(owner, story).is_some()
    }
    /// Makes the stories of a channel panic at their next poll: fault injection for tests of the whole. `false` when it
    /// has none.
    #[doc(hidden)]
    pub fn inject_panic(&self, id: ChannelId) -> bool {
        let faulty = |story: Story| -> Story {
            Box::pin(async move {
                let _story = story;
                panic!("a fault injected into the application")
            })
        };
        self.exec.borrow_mut().replace_all(id, faulty) > 0
    }
    /// Lets every story run whose event or deadline has come. The only way time gets in.
    pub fn run(&self, now: Instant) {
        {
            let mut core = self.core.borrow_mut();
            core.now = now;
            core.rings_unheard = false;
            let paused = std::mem::take(&mut core.paused);
            core.woken.extend(paused);
            core.queues_due();
            core.change_music();
            core.sum_up_strangers();
        }
        self.exchange_pending();
        self.seat_pending();
        self.couple_pending();
        self.exec.borrow_mut().expire(now);
        self.poll_ready();
        self.hand_over_wakes();
        self.documents_pending();
    }
    /// Lets those stories run that have been woken.
    pub(crate) fn poll_ready(&self) {
        for _ in 0..POLLS_PER_TURN {
            self.look_at_devices();
            self.hand_over_wakes();
            let Some((id, story)) = self.exec.borrow_mut().take_ready() else { break };
            self.poll(id, story);
        }
    }
    /// Sends what members of conferences are told in their calls.
    fn documents_pending(&self) {
        let documents = self.core.borrow_mut().take_documents();
        for (id, document) in documents {
            self.with_tech(id, |tech, core| tech.send_document(core, id, DOCUMENT_TYPE, &document));
        }
    }
    /// When [`Shard::run`] next wants to be called; `Instant::ZERO`: at once.
    pub fn deadline(&self) -> Option<Instant> {
        {
            let core = self.core.borrow();
            let waits = [core.woken.is_empty(), core.paused.is_empty(), core.exchanges.is_empty()];
            if waits.contains(&false) || !core.documents.is_empty() {
                return Some(Instant::ZERO);
            }
        }
        let (queues, strangers) = {
            let core = self.core.borrow();
            (core.queues.deadline(), core.strangers.deadline())
        };
        [self.exec.borrow_mut().deadline(), queues, strangers].into_iter().flatten().min()
    }
    /// Stories alive.
    pub fn stories(&self) -> usize {
        self.exec.borrow().len()
    }
    /// Stories ready to be polled: the queue's length, a measure of lag.
    pub fn backlog(&self) -> usize {
        self.exec.borrow().ready_len()
    }

    fn hand_over_wakes(&self) {
        let mut core = self.core.borrow_mut();
        let mut exec = self.exec.borrow_mut();
        core.woken.drain(..).for_each(|task| exec.wake(task));
    }
    fn poll(&self, id: TaskId, mut story: Story) {
        let mut context = Context::from_waker(Waker::noop());
        let owner = self.exec.borrow_mut().owner(id);
        self.core.borrow_mut().speak_of(owner);
        let outcome = catch_unwind(AssertUnwindSafe(|| story.as_mut().poll(&mut context)));
        match outcome {
            Ok(Poll::Pending) => self.exec.borrow_mut().put_back(id, story),
            Ok(Poll::Ready(())) => {
                drop(story);
                self.exec.borrow_mut().retire(id);
            }
            Err(panic) => {
                // Dropping a story that panicked runs its guards (legs hang up); a second panic there is caught too.
                let _ = catch_unwind(AssertUnwindSafe(|| drop(story)));
                let owner = self.exec.borrow_mut().retire(id);
                self.bury(owner, &*panic);
            }
        }
        self.core.borrow_mut().speak_of(None);
    }
    fn bury(&self, owner: Option<ChannelId>, panic: &(dyn std::any::Any + Send)) {
        let said = panic_text(panic);
        {
            let mut core = self.core.borrow_mut();
            let (name, app) =
                owner.and_then(|id| core.get(id)).map(|c| (c.name.to_string(), c.app)).unwrap_or_default();
            core.log(
                Level::Error,
                "pbx",
                &format!("{name}: application {app:?} panicked, its call is ended: {said}"),
            );
        }
        if let Some(id) = owner {
            let _ = catch_unwind(AssertUnwindSafe(|| self.finish(id, Cause::NORMAL_TEMPORARY_FAILURE)));
        }
    }
}

/// What a panic said.
pub fn panic_text(panic: &(dyn std::any::Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("no message")
}
