//! What the wait brings: datagrams are handed over as they come, everything else once the reactor is free again, each to the
//! part that it is for.

use std::net::{IpAddr, SocketAddr};
use std::panic::{AssertUnwindSafe, catch_unwind};

use base::Instant;
use call::Level;
use control::cli::Finished;
use control::site::{Site, When, Wish};
use control::socket::Who;
use io::clock::Clock;
use io::net::{Closing, FlowId, FlowKind, NetEvent, Peer, Signal, TlsFault, Token};

use super::Engine;
use crate::registrations::Clocks;

pub(super) const MEDIA: Token = Token(1);
pub(super) const SOUNDS: Token = Token(2);
pub(super) const NAMES: Token = Token(3);
pub(super) const MEASURED: Token = Token(5);
pub(super) const LINKS: Token = Token(6);
pub(super) const CALL_FILES: Token = Token(7);
pub(super) const PAGES: Token = Token(8);
pub(super) const DATABASES: Token = Token(20);

/// Hands a message to the SIP machines. A panic there costs this message: nothing from the network ends the process.
pub(super) fn receive(site: &Site, flow: ::sip::stack::Flow, bytes: &[u8]) {
    let_ring(site, bytes);
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        let mut core = site.shard.core.borrow_mut();
        core.now = Clock.now();
        site.sip.borrow_mut().receive(&mut core, flow, bytes);
    }));
    if outcome.is_err() {
        let line = format!("a message from {} panicked the SIP machines; it is dropped", flow.remote);
        site.shard.core.borrow_mut().log(Level::Error, "chan_pjsip", &line);
    }
}

/// Lets stories hear that a phone rings before it is heard that it has answered, however close both come: who watches sees
/// it ring.
fn let_ring(site: &Site, bytes: &[u8]) {
    if bytes.starts_with(b"SIP/2.0 2") && site.shard.core.borrow().rings_unheard {
        site.shard.run(Clock.now());
    }
}

/// A registrar may have answered whether our flow is there.
fn stun_answered(site: &Site, flow: ::sip::stack::Flow, bytes: &[u8]) {
    let mut core = site.shard.core.borrow_mut();
    core.now = Clock.now();
    site.sip.borrow_mut().stun_answered(&mut core, flow, bytes);
}

/// Whether an address has guessed too many passwords to be listened to.
pub(crate) fn is_banned(site: &Site, address: IpAddr, now: Instant) -> bool {
    site.shard.core.borrow().bans.is_banned(address, now)
}

/// What an event of the wait asks of the loop, once the reactor is free again.
pub(super) enum Turn {
    Opened(FlowId, FlowKind, Peer, io::net::ListenerId),
    Bytes(FlowId, FlowKind, Vec<u8>),
    Closed(FlowId, FlowKind),
    Unsent(::sip::stack::Flow),
    Undelivered(::sip::stack::Flow, Vec<u8>),
    Reply(io::net::TransportId, SocketAddr, Vec<u8>),
    Insecure(FlowKind, SocketAddr, TlsFault),
    Media,
    Sounds,
    Names,
    Measured,
    Links,
    Pages,
    Databases,
    CallFiles,
    Signal(Signal),
}

impl Engine {
    /// Waits, and hands datagrams over as they come; what else there is to do is in `turns`. False: nothing came but what IAX2
    /// has dealt with by itself.
    pub(super) fn wait(
        &mut self,
        now: Instant,
        until: Option<Instant>,
        turns: &mut Vec<Turn>,
    ) -> std::io::Result<bool> {
        let (site, listeners, iax) = (&self.site, &self.listeners, &self.iax);
        let mut has_more = false;
        self.net.wait(now, until, &mut |event| {
            if let NetEvent::Datagram { transport, from, bytes, .. } = event
                && let Some(socket) = iax.socket(transport)
            {
                has_more |=
                    !is_banned(site, from.ip(), now) && crate::iax::receive(site, socket, from, bytes);
                return;
            }
            has_more = true;
            match event {
                NetEvent::Datagram { transport, from, bytes, .. } => {
                    if let Some(flow) = listeners.datagram(transport, from)
                        && !is_banned(site, from.ip(), now)
                    {
                        match ::sip::stun::is_stun(bytes) {
                            true => match ::sip::stun::answer(bytes, from) {
                                Some(answer) => turns.push(Turn::Reply(transport, from, answer)),
                                None => stun_answered(site, flow, bytes),
                            },
                            false => receive(site, flow, bytes),
                        }
                    }
                }
                NetEvent::Accepted { flow, kind, peer, listener } => {
                    turns.push(Turn::Opened(flow, kind, peer, listener))
                }
                NetEvent::Bytes { flow, kind, bytes } => turns.push(Turn::Bytes(flow, kind, bytes.to_vec())),
                NetEvent::Closed { flow, kind, why: _ } => turns.push(Turn::Closed(flow, kind)),
                NetEvent::Unsent { transport, to, .. } => {
                    turns.extend(listeners.unsent(transport, to).map(Turn::Unsent));
                }
                NetEvent::Undelivered { transport, to, quoted } => {
                    let flow = listeners.unsent(transport, to);
                    turns.extend(flow.map(|flow| Turn::Undelivered(flow, quoted.to_vec())));
                }
                NetEvent::Readable { token: SOUNDS } => turns.push(Turn::Sounds),
                NetEvent::Readable { token: NAMES } => turns.push(Turn::Names),
                NetEvent::Readable { token: MEASURED } => turns.push(Turn::Measured),
                NetEvent::Readable { token: LINKS } => turns.push(Turn::Links),
                NetEvent::Readable { token: PAGES } => turns.push(Turn::Pages),
                NetEvent::Readable { token: DATABASES } => turns.push(Turn::Databases),
                NetEvent::Readable { token: CALL_FILES } => turns.push(Turn::CallFiles),
                NetEvent::Readable { .. } | NetEvent::Connected { .. } => {}
                NetEvent::Insecure { kind, remote, fault, .. } => {
                    turns.push(Turn::Insecure(kind, remote, fault.clone()))
                }
                NetEvent::Signal(signal) => turns.push(Turn::Signal(signal)),
            }
        })?;
        Ok(has_more)
    }
    pub(super) fn take(&mut self, turn: Turn, now: Instant) {
        let mut out = Vec::new();
        match turn {
            Turn::Opened(flow, FlowKind::Sip, peer, listener) => {
                let name = self.net.asked_for(flow);
                let known = matches!(peer, Peer::Ip { remote, .. } if self.listeners.accepted(listener, flow, remote, name, now));
                if !known {
                    self.net.close_flow(flow, Closing::AtOnce);
                } else if self.listeners.may_say_nothing(flow) {
                    self.net.keep(flow, Some(now + super::connections::SIP_UNHEARD));
                }
            }
            Turn::Opened(flow, FlowKind::Control, peer, _) => {
                let client = self.new_client(flow);
                let who = match peer {
                    Peer::Local { uid, gid } => Some(Who { uid, gid }),
                    Peer::Ip { .. } => None,
                };
                self.sessions.open(client, who);
                self.net.keep(flow, None);
            }
            Turn::Opened(flow, FlowKind::Manager, peer, _) => {
                let client = self.new_client(flow);
                if let Peer::Ip { remote, .. } = peer {
                    self.managers.manager.open(client, remote, now, &mut out);
                }
            }
            Turn::Opened(flow, FlowKind::Http, peer, listener) => {
                let client = self.new_client(flow);
                if let Peer::Ip { remote, .. } = peer {
                    self.web.open(client, remote, listener, &mut out);
                }
            }
            Turn::Bytes(flow, FlowKind::Sip, bytes) => self.stream(flow, &bytes, now),
            Turn::Bytes(flow, FlowKind::Http, bytes) if self.listeners.is_websocket(flow) => {
                self.frames(flow, &bytes, now);
            }
            Turn::Bytes(flow, kind, bytes) => {
                let Some(client) = self.by_flow.get(&flow).copied() else { return };
                match kind {
                    FlowKind::Manager => self.managers.manager.bytes(client, &bytes, now, &mut out),
                    FlowKind::Http if self.web.ari.has(client) => {
                        self.web.ari.bytes(client, &bytes, &mut out)
                    }
                    FlowKind::Http => {
                        self.web.http.bytes(client, &bytes, &mut out);
                        for client in self.web.answer_programs(now, &mut out) {
                            if let Some(flow) = self.clients.get(&client) {
                                // It says nothing for hours, and is told what happens.
                                self.net.keep(*flow, None);
                            }
                        }
                        for request in self.web.http.take_requests() {
                            // It is whole, and may wait for what it asks.
                            self.net.keep(flow, None);
                            self.managers.manager.web(request, now);
                        }
                        self.ask_files(now);
                        self.answer_web(&mut out);
                        let upgraded = self.web.http.take_upgraded();
                        self.carry_out(core::mem::take(&mut out));
                        upgraded.into_iter().for_each(|upgraded| self.upgrade(upgraded, now));
                    }
                    _ => self.sessions.bytes(client, &bytes, &mut *self.commands.borrow_mut(), &mut out),
                }
            }
            Turn::Closed(flow, FlowKind::Sip) => self.connection_lost(flow),
            Turn::Closed(flow, FlowKind::Http) if self.listeners.is_websocket(flow) => {
                self.connection_lost(flow);
            }
            Turn::Closed(flow, kind) => {
                let Some(client) = self.by_flow.remove(&flow) else { return };
                self.clients.remove(&client);
                match kind {
                    FlowKind::Manager => {
                        self.managers.manager.closed(client);
                        self.managers_changed = true;
                    }
                    FlowKind::Http => {
                        self.web.closed(client);
                        self.managers.manager.web_closed(client);
                    }
                    _ => self.sessions.closed(client),
                }
            }
            Turn::Unsent(flow) => {
                let mut core = self.site.shard.core.borrow_mut();
                self.site.sip.borrow_mut().transport_error(&mut core, flow);
            }
            Turn::Undelivered(flow, quoted) => {
                let mut core = self.site.shard.core.borrow_mut();
                self.site.sip.borrow_mut().undelivered(&mut core, flow, &quoted);
            }
            Turn::Reply(socket, to, bytes) => self.net.send_udp(socket, None, to, &bytes),
            Turn::Insecure(kind, remote, fault) => {
                let mut core = self.site.shard.core.borrow_mut();
                for line in self.insecure.tell(kind, remote, &fault, now) {
                    core.log(Level::Warning, "tls", &line);
                }
            }
            Turn::Media => {
                let mut events = Vec::new();
                self.site.media.borrow_mut().drain_events(|event| events.push(event));
                let traced = self.site.media.borrow_mut().take_trace();
                let mut core = self.site.shard.core.borrow_mut();
                if let Some(noted) = traced {
                    crate::trace::write(&mut core, &noted);
                }
                let mut sip = self.site.sip.borrow_mut();
                events.into_iter().for_each(|event| sip.media_event(&mut core, event));
                let mut iax = self.site.iax.borrow_mut();
                self.site.media.borrow_mut().drain_piped(|packets| iax.media(now, packets));
            }
            Turn::Sounds => {
                self.sounds_wake.answer_and_clear();
                self.take_codecs();
                self.web.take_files(&mut out);
                self.carry_out(core::mem::take(&mut out));
                let told = self.site.sounds.borrow_mut().take_told();
                told.iter().for_each(|line| self.log(Level::Warning, "res_musiconhold", line));
                if self.site.sounds.borrow_mut().take_in() {
                    self.site.shard.core.borrow_mut().library_changed();
                }
                self.site.shard.core.borrow_mut().database_saved();
                self.iax.take_worked(&mut self.site.shard.core.borrow_mut());
                for (url, came) in self.certificates.take_done() {
                    let mut core = self.site.shard.core.borrow_mut();
                    self.site.sip.borrow_mut().certificate_came(&mut core, &url, came);
                }
                if let Some(mail) = &self.mail {
                    mail.take_in(&mut self.site.shard.core.borrow_mut());
                }
            }
            Turn::Names => {
                let came = self.names.borrow_mut().take_in(now);
                if !came.is_empty() {
                    self.site.shard.core.borrow_mut().outside_changed();
                }
                for (question, answer) in came {
                    self.resolved(&question, answer);
                }
            }
            Turn::Databases => {
                if let Some(rows) = &*self.loader.rows.borrow() {
                    rows.borrow_mut().take_in(now);
                }
                if let Some(rows) = &*self.loader.iax_rows.borrow() {
                    rows.borrow_mut().take_in(Clocks { now, wall: Clock.wall() });
                }
                if let Some(contacts) = &mut *self.loader.contacts.borrow_mut() {
                    contacts.take_in(now);
                }
                self.tell_databases();
                if let Some(statics) = &mut *self.loader.statics.borrow_mut() {
                    statics.take_in(now);
                }
                if let Some(ledger) = &mut self.ledger {
                    ledger.take_in(now);
                }
                if let Some(rows) = &mut self.queue_rows {
                    rows.take_in(now);
                }
                let changed = self.links.borrow_mut().take_in_rows();
                let written = self.links.borrow_mut().take_written();
                if let Some(statics) = &mut *self.loader.statics.borrow_mut() {
                    written.iter().for_each(|change| statics.learn(change));
                }
                let mut core = self.site.shard.core.borrow_mut();
                changed.into_iter().for_each(|link| core.link_changed(link));
            }
            Turn::CallFiles => {
                if let Some(files) = &self.call_files {
                    files.take_in(&self.site.shard);
                }
            }
            Turn::Links => {
                let changed = self.links.borrow_mut().take_in();
                let mut core = self.site.shard.core.borrow_mut();
                changed.into_iter().for_each(|link| core.link_changed(link));
            }
            Turn::Pages => {
                let changed = self.links.borrow_mut().take_in_pages();
                let mut core = self.site.shard.core.borrow_mut();
                changed.into_iter().for_each(|link| core.link_changed(link));
            }
            Turn::Measured => {
                let finished = self.commands.borrow().measured();
                for Finished { session, text, status } in finished {
                    self.sessions.finish(session, &text, status, &mut *self.commands.borrow_mut(), &mut out);
                }
            }
            Turn::Signal(Signal::Stop) => self.site.wish(Wish::Stop { when: When::Now, restart: false }),
            Turn::Signal(Signal::Reload) => self.site.wish(Wish::Reload { module: String::new() }),
        }
        self.carry_out(out);
    }
}
