//! How stories wait that belong to no channel: those of a bridge's sounds and recordings.

use std::rc::Rc;
use std::task::Poll;

use base::{FormatId, Instant};

use crate::{ClipAnswer, ClipWant, Core, Library, MusicAnswer, Shard, TaskId};

/// What a story looks after.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Tended {
    /// A sound, by its id.
    Playback(Rc<str>),
    /// A recording, by its name.
    Recording(Rc<str>),
    /// Music of a bridge, which looks for itself what is wanted.
    Music(Rc<str>),
}

impl Core {
    fn stasis_tend(&mut self, what: &Tended, story: Option<TaskId>) {
        let waiter = match what {
            Tended::Playback(id) => self.stasis.playbacks.get_mut(id).map(|found| &mut found.waiter),
            Tended::Music(_) => None,
            Tended::Recording(name) => self.stasis.recordings.get_mut(name).map(|found| &mut found.waiter),
        };
        if let Some(waiter) = waiter {
            *waiter = story;
        }
    }
}

impl Shard {
    /// Waits until something is wanted of what a story looks after, or until `deadline`.
    pub async fn stasis_wait(&self, what: &Tended, deadline: Option<Instant>) {
        let mut waited = false;
        std::future::poll_fn(|_| {
            let mut core = self.core.borrow_mut();
            let mut exec = self.exec.borrow_mut();
            if core::mem::replace(&mut waited, true) {
                core.stasis_tend(what, None);
                exec.set_deadline(None);
                return Poll::Ready(());
            }
            let current = exec.current();
            core.stasis_tend(what, current);
            exec.set_deadline(deadline);
            Poll::Pending
        })
        .await;
    }
    /// Music of a class, once it has been read.
    pub async fn stasis_music(&self, class: &str, format: FormatId) -> MusicAnswer {
        let known = |answer: &MusicAnswer| !matches!(answer, MusicAnswer::Loading);
        self.read(|library| library.music(class, format), known).await
    }
    /// A sound, once it has been read.
    pub async fn stasis_clip(&self, want: &ClipWant) -> ClipAnswer {
        self.read(|library| library.clip(want), |answer| !matches!(answer, ClipAnswer::Loading)).await
    }
    /// What the library answers, once it is `known`.
    async fn read<T>(&self, mut ask: impl FnMut(&mut dyn Library) -> T, known: impl Fn(&T) -> bool) -> T {
        std::future::poll_fn(|_| {
            let mut core = self.core.borrow_mut();
            let answer = ask(&mut *core.services.library);
            if known(&answer) {
                return Poll::Ready(answer);
            }
            let current = self.exec.borrow().current();
            core.library_waiters.extend(current);
            Poll::Pending
        })
        .await
    }
}
