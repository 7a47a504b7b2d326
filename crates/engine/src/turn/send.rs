//! What leaves at the end of a turn, after what it acknowledges is written down.

use call::Level;
use io::clock::Clock;

use super::Engine;
use crate::registrations::Clocks;

impl Engine {
    /// What IAX2 has to send, and what it acknowledges by that.
    pub(super) fn send_iax(&mut self) {
        let clocks = Clocks { now: Clock.now(), wall: Clock.wall() };
        let site = self.site.clone();
        let trouble = self.iax.send(&mut self.net, &mut site.shard.core.borrow_mut(), clocks);
        if let Some(trouble) = trouble {
            self.log(Level::Error, "registrations", &trouble);
        }
    }
    /// Messages leave after what they acknowledge is written down.
    pub(super) fn send(&mut self) {
        let (changes, watched, sends, lookups) = {
            let mut sip = self.site.sip.borrow_mut();
            let watched = sip.take_subscription_changes(Clock.now());
            (sip.take_changes(), watched, sip.take_sends(), sip.take_lookups())
        };
        if !watched.is_empty() {
            let clocks = Clocks { now: Clock.now(), wall: Clock.wall() };
            let trouble = self.subscriptions.write(&watched, &self.site.sip.borrow(), clocks);
            if let Some(trouble) = trouble {
                self.log(Level::Error, "subscriptions", &trouble);
            }
        }
        if !changes.is_empty() {
            let clocks = Clocks { now: Clock.now(), wall: Clock.wall() };
            let trouble = self.registrations.write(&changes, &self.site.sip.borrow(), clocks);
            if let Some(contacts) = &mut *self.loader.contacts.borrow_mut() {
                contacts.changed(&changes, &self.site.sip.borrow(), clocks);
            }
            if let Some(trouble) = trouble {
                self.log(Level::Error, "registrations", &trouble);
            }
        }
        let more = self.site.iax.borrow_mut().take_lookups();
        lookups.iter().chain(&more).for_each(|question| self.names.borrow_mut().ask(question));
        self.send_iax();
        self.send_captured();
        self.send_statistics();
        let now = Clock.now();
        for send in sends {
            let sent = {
                let sip = self.site.sip.borrow();
                let name = sip.peer_name(send.flow);
                self.listeners.send(&mut self.net, send.flow, name, &send.bytes, now)
            };
            if !sent {
                let mut core = self.site.shard.core.borrow_mut();
                self.site.sip.borrow_mut().transport_error(&mut core, send.flow);
            }
        }
    }
}
