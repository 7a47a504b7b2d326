//! What consoles and managers wish of the process, and its end.

use std::time::Duration;

use base::Cause;
use call::{Level, Notice};
use control::site::{When, Wish};
use driver::sip::SipDriver;
use io::clock::Clock;
use io::net::NetEvent;

use super::arrivals::receive;
use super::{End, Engine};

/// Longest that a stop waits for the goodbyes of the calls that it ends.
const GOODBYE: Duration = Duration::from_secs(1);
/// How long an end waits for a database that takes rows; what it has not taken then it gets after the next start.
const LAST_ROWS: Duration = Duration::from_secs(5);
/// Longest that a stop waits for databases to take call records; the journal keeps what they do not.
const LAST_RECORDS: Duration = Duration::from_secs(2);

impl Engine {
    pub(super) fn grant_wishes(&mut self) {
        let wishes = std::mem::take(&mut *self.site.wishes.borrow_mut());
        for wish in wishes {
            match wish {
                Wish::Stop { when, restart } => self.stop(when, restart),
                Wish::AbortStop => {
                    self.site.stopping.set(None);
                    self.site.shard.core.borrow_mut().admission.set_closed(false);
                }
                Wish::Reload { module } => {
                    self.loader.load(&module);
                }
                Wish::RotateLogs => {
                    self.site.log.rotate();
                    self.rotate_queue_log();
                }
            }
        }
        self.take_configuration();
        if self.end.is_none() && self.site.stopping.get().is_some() && self.site.shard.core.borrow().is_idle()
        {
            self.end(true);
        }
    }
    /// The process ends with this turn, of which watchers hear.
    fn end(&mut self, graceful: bool) {
        let restart = self.restart_wanted;
        self.end = Some(if restart { End::Restart } else { End::Stop });
        self.site.shard.core.borrow_mut().notice(|_| Some(Notice::Shutdown { graceful, restart }));
    }
    fn stop(&mut self, when: When, restart: bool) {
        self.restart_wanted = restart;
        self.site.stopping.set(Some(when));
        if when != When::Now {
            let what = if restart { "restart" } else { "halt" };
            let calls = if when == When::Gracefully { "refused" } else { "taken" };
            let line = format!("a {what} waits until no call is up; new calls are {calls}");
            self.log(Level::Notice, "strowger", &line);
        }
        match when {
            When::Now => self.end(false),
            When::Gracefully => {
                self.site.shard.core.borrow_mut().admission.set_closed(true);
            }
            When::Convenient => {}
        }
    }
    /// Says goodbye on every call and to registrars, lets what is queued leave, and writes down what is to be written.
    pub(super) fn leave(&mut self, _end: End) {
        let ids: Vec<_> = self.site.shard.core.borrow().channels().map(|c| c.id).collect();
        for id in ids {
            self.site.shard.finish(id, Cause::NORMAL_CLEARING);
        }
        self.site.sip.borrow_mut().take_back_registrations(&mut self.site.shard.core.borrow_mut());
        let until = Clock.now() + GOODBYE;
        self.write_records();
        self.send();
        self.tell_watchers(Clock.now());
        self.tell_consoles();
        // Peers answer our BYEs, and registrars; a second is enough on any network that carries calls.
        let is_awaited = |sip: &SipDriver| sip.load().dialogs > 0 || sip.awaits_registrars();
        while is_awaited(&self.site.sip.borrow()) && Clock.now() < until {
            let (site, listeners) = (&self.site, &self.listeners);
            let waited = self.net.wait(Clock.now(), Some(until), &mut |event| {
                if let NetEvent::Datagram { transport, from, bytes, .. } = event
                    && let Some(flow) = listeners.datagram(transport, from)
                {
                    receive(site, flow, bytes);
                }
            });
            if waited.is_err() {
                break;
            }
            self.send();
        }
        self.net.flush();
        self.write_rows(Clock.now() + LAST_ROWS);
        if let Some(ledger) = &mut self.ledger {
            ledger.finish(&|| Clock.now(), LAST_RECORDS);
        }
        if let Some(traces) = &mut self.traces {
            traces.finish(GOODBYE);
        }
        self.site.log.flush();
    }
}
