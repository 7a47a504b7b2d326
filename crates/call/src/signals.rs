//! Calls that wait for others: by the name of a signal.

use base::ChannelId;

use crate::{ChanEvent, Core};

/// Calls that wait at once; bounds what a dialplan in a loop can pile up.
const WAITERS_MAX: usize = 4096;

impl Core {
    /// A channel waits for this signal, of which it hears by [`ChanEvent::Signal`]; false when too many wait.
    pub fn signal_await(&mut self, id: ChannelId, name: &str) -> bool {
        self.signal_forget(id);
        let has_room = self.signals.len() < WAITERS_MAX;
        if has_room {
            self.signals.push((name.to_owned(), id));
        }
        has_room
    }
    /// It waits no more.
    pub fn signal_forget(&mut self, id: ChannelId) {
        self.signals.retain(|(_, waiter)| *waiter != id);
    }
    /// Lets all go on who wait for this signal; how many they are.
    pub fn signal(&mut self, name: &str, payload: &str) -> usize {
        let told: Vec<_> = self.signals.extract_if(.., |(wanted, _)| wanted == name).collect();
        for (_, id) in &told {
            self.push_event(*id, ChanEvent::Signal(payload.to_owned()));
        }
        told.len()
    }
}
