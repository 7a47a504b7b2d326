//! Connections that SIP comes by: bytes of TCP and TLS, frames of WebSocket, and their end.

use std::time::Duration;

use base::Instant;
use control::http::Upgraded;
use io::net::{Closing, FlowId};
use sip::frame::Frame;
use sip::stack::Protocol;

use super::Engine;
use super::arrivals::{is_banned, receive};
use crate::listen::Framing;

/// How long a SIP connection may be idle: longer than the longest registration an AOR grants by default.
const SIP_IDLE: Duration = Duration::from_secs(3 * 3600);

/// How long one may say nothing at all: clients that keep a flow open and balancers open theirs ahead of use (RFC 5626
/// §4.4.1), and answer our pings, of which two have gone unanswered by then.
pub(super) const SIP_UNHEARD: Duration = Duration::from_secs(180);

impl Engine {
    /// Bytes of a SIP connection: whole messages go to the driver, a ping is answered, nonsense ends it.
    pub(super) fn stream(&mut self, flow: FlowId, bytes: &[u8], now: Instant) {
        let Some(connection) = self.listeners.connection(flow) else { return };
        let source = connection.flow;
        if is_banned(&self.site, source.remote.ip(), now) {
            self.net.close_flow(flow, Closing::AtOnce);
            return self.connection_lost(flow);
        }
        let Framing::Stream(framer) = &mut connection.framing else { return };
        framer.push(bytes);
        let (mut answers, mut has_spoken) = (false, false);
        loop {
            match framer.next_frame() {
                Ok(Some(Frame::Message(message))) => {
                    has_spoken = true;
                    self.net.keep(flow, Some(now + SIP_IDLE));
                    receive(&self.site, source, message);
                }
                Ok(Some(Frame::Ping)) => self.net.send_flow(flow, b"\r\n"),
                Ok(Some(Frame::Pong)) => answers = true,
                Ok(None) => break,
                Err(_) => {
                    self.net.close_flow(flow, Closing::Flush);
                    return self.connection_lost(flow);
                }
            }
        }
        self.listeners.heard(flow, answers);
        if has_spoken {
            self.listeners.has_spoken(flow);
        }
        if self.listeners.may_say_nothing(flow) {
            self.net.keep(flow, Some(now + SIP_UNHEARD));
        }
        // A phone that keeps its flow open is there as long as anything comes (RFC 5626 §4.4.1).
        if let Some(patience) = self.site.sip.borrow().patience(source) {
            self.net.keep(flow, Some(now + patience));
        }
        if let Some(quiet) = self.site.sip.borrow().quiet(source) {
            self.listeners.keep(flow, quiet, now);
        }
    }
    /// A connection of HTTP speaks SIP in frames from here on. It stays on probation until its first message.
    pub(super) fn upgrade(&mut self, upgraded: Upgraded, now: Instant) {
        let Upgraded { session, peer, secure, rest } = upgraded;
        let Some(flow) = self.clients.remove(&session) else { return };
        self.by_flow.remove(&flow);
        let protocol = if secure { Protocol::Wss } else { Protocol::Ws };
        if !self.listeners.adopt(flow, peer, protocol, now) {
            self.net.close_flow(flow, Closing::Flush);
        } else if !rest.is_empty() {
            self.frames(flow, &rest, now);
        }
    }
    /// Bytes of a WebSocket: each message goes to the driver; a goodbye or nonsense ends it.
    pub(super) fn frames(&mut self, flow: FlowId, bytes: &[u8], now: Instant) {
        let Some(connection) = self.listeners.connection(flow) else { return };
        let source = connection.flow;
        if is_banned(&self.site, source.remote.ip(), now) {
            self.net.close_flow(flow, Closing::AtOnce);
            return self.connection_lost(flow);
        }
        let Framing::WebSocket(socket) = &mut connection.framing else { return };
        let mut messages: Vec<Vec<u8>> = Vec::new();
        let over = socket.receive(bytes, &mut |message| messages.push(message.to_vec())).is_err();
        let output = socket.take_output();
        if !output.is_empty() {
            self.net.send_flow(flow, &output);
        }
        for message in messages {
            // Line breaks are the pings of clients that know none of WebSocket's (RFC 7118 §6).
            if message.iter().all(|byte| matches!(byte, b'\r' | b'\n')) {
                continue;
            }
            self.net.keep(flow, Some(now + SIP_IDLE));
            receive(&self.site, source, &message);
        }
        if over {
            self.net.close_flow(flow, Closing::Flush);
            self.connection_lost(flow);
        }
    }
    /// A connection that SIP came by is gone.
    pub(super) fn connection_lost(&mut self, flow: FlowId) {
        if let Some(flow) = self.listeners.closed(flow) {
            let mut core = self.site.shard.core.borrow_mut();
            self.site.sip.borrow_mut().transport_error(&mut core, flow);
        }
    }
}
