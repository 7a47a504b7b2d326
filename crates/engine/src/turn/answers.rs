//! Long answers on their way: a page a turn for each client that reads, so that calls never wait for a list.

use std::panic::{AssertUnwindSafe, catch_unwind};

use base::Instant;
use call::Level;
use control::socket::Output;

use super::Engine;

/// Bytes that a client may have unread before its next page is made: a few pages, far below where it is given up.
const UNREAD_BYTES_MAX: usize = 4 * control::pages::PAGE_BYTES;

impl Engine {
    /// Sends a page to each client that has room for one.
    pub(super) fn send_answers(&mut self, now: Instant) {
        for client in self.readers() {
            let mut out = Vec::new();
            let made = catch_unwind(AssertUnwindSafe(|| {
                self.managers.manager.turn_page(client, now, &mut out);
                self.sessions.turn_page(client, &mut *self.commands.borrow_mut(), &mut out);
                self.web.http.turn_page(client);
            }));
            if made.is_err() {
                self.log(Level::Error, "strowger", "the page of an answer panicked; its client is let go");
                self.managers.manager.closed(client);
                self.sessions.closed(client);
                self.web.closed(client);
                out = vec![Output::Close(client)];
            }
            self.carry_out(out);
        }
        self.ask_files(now);
    }
    /// Hands what is queued to the kernel while somebody reads a long answer: only what is left then says who has room, and
    /// a connection that has none wakes the loop when it has some.
    pub(super) fn flush_answers(&mut self) {
        let reading = self.sessions.reading().chain(self.managers.manager.reading());
        if reading.chain(self.web.http.reading()).next().is_some() {
            self.net.flush();
        }
    }
    /// Whether the next turn has a page to make already.
    pub(super) fn has_answers(&self) -> bool {
        !self.readers().is_empty()
    }
    /// Clients that wait for a page and have room for it. Who has none is looked at again when its connection has taken
    /// something, which ends a wait by itself; over HTTP the answer is collected first.
    fn readers(&self) -> Vec<u64> {
        let has_room = |client: &u64| {
            self.clients.get(client).is_none_or(|flow| self.net.unsent(*flow) < UNREAD_BYTES_MAX)
        };
        let reading = self.sessions.reading().chain(self.managers.manager.reading());
        reading.chain(self.web.http.reading()).filter(has_room).collect()
    }
}
