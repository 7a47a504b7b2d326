//! A walk through call queues that lists of them make in portions.

use std::rc::Rc;

use call::Shard;

/// The queues that are meant, one after the other by name; queues may come and go meanwhile.
pub(crate) struct Walk {
    shard: Rc<Shard>,
    only: Option<String>,
    last: Option<Rc<str>>,
    is_over: bool,
}

impl Walk {
    /// All queues, or only one.
    pub(crate) fn new(shard: &Rc<Shard>, only: Option<&str>) -> Self {
        Self { shard: shard.clone(), only: only.map(str::to_owned), last: None, is_over: false }
    }
    /// The next queue's name, once the devices of its members were asked what they do; `None` behind the last.
    pub(crate) fn next(&mut self) -> Option<Rc<str>> {
        if self.is_over {
            return None;
        }
        let name = {
            let core = self.shard.core.borrow();
            let queue = match &self.only {
                Some(only) => core.queues.get(only),
                None => core.queues.after(self.last.as_deref()).next(),
            };
            queue.map(|queue| queue.name.clone())
        };
        self.is_over = name.is_none() || self.only.is_some();
        self.last.clone_from(&name);
        apps::hints::ask_members(&self.shard, name.as_deref()?);
        name
    }
}
