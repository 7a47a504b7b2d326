//! Byte streams: they are let in, read, put under TLS, written and ended.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use crate::sys;

use super::burst::SENDS_MAX;
use super::flow::{Admission, Flow, Limit, Phase};
use super::tls::{Progress, Session, TlsFault};
use super::{
    Close, Closing, FlowId, FlowKind, KEY_FLOW, ListenerId, Net, NetEvent, PROBATION, Peer, Pending,
    is_out_of_descriptors, key,
};

/// How long a flow that its owner closed may take to drain.
const FLUSH_WITHIN: Duration = Duration::from_secs(5);
/// How long the peer's own end is awaited after that.
const LINGER_WITHIN: Duration = Duration::from_secs(1);
/// Connections taken from one listener in one turn, so that a flood of them leaves room for the rest.
const ACCEPTS_PER_TURN: usize = 16;

impl Net {
    pub(super) fn accept(&mut self, id: ListenerId, sink: &mut dyn FnMut(NetEvent<'_>)) {
        for _ in 0..ACCEPTS_PER_TURN {
            let Some(listener) = self.listeners.get(id) else { return };
            let (kind, tls, at) = (listener.kind, listener.tls.clone(), listener.addr);
            let (fd, remote) = match sys::accept(&listener.fd) {
                Ok(accepted) => accepted,
                Err(error) => {
                    if exhausted(&error) {
                        self.stats.rests += 1;
                        self.listeners.tire(&self.epoll, id);
                    }
                    return;
                }
            };
            if remote.is_some_and(|addr| (self.shut_out)(addr.ip())) {
                self.stats.refused += 1;
                continue;
            }
            match self.flows.admit(remote.map(|addr| addr.ip())) {
                Admission::Admit => {}
                Admission::Evict(oldest) => {
                    self.stats.evicted += 1;
                    self.end(oldest, Close::Evicted);
                }
                Admission::Refuse => {
                    self.stats.refused += 1;
                    continue;
                }
            }
            let Ok(peer) = peer_of(&fd, remote, at) else { continue };
            let limit = if remote.is_some() { Limit::Within(PROBATION) } else { Limit::Open };
            let secured = tls.as_ref().zip(remote);
            let session = secured.and_then(|(tls, remote)| Session::server(tls, remote).ok()).map(Box::new);
            if tls.is_some() != session.is_some() {
                continue;
            }
            let phase = if session.is_some() { Phase::Securing } else { Phase::Open };
            let Ok(flow) = self.insert_flow(fd, kind, phase, limit, remote.map(|addr| addr.ip())) else {
                continue;
            };
            self.stats.accepted += 1;
            match self.flows.get_mut(flow) {
                Some(open) if session.is_some() => {
                    (open.session, open.arrival) = (session, Some((id, peer)));
                    // Who has waited to be accepted has sent its first message long since.
                    self.read_flow(flow, sink);
                }
                _ => sink(NetEvent::Accepted { flow, listener: id, kind, peer }),
            }
        }
        self.left_over = true;
    }

    pub(super) fn insert_flow(
        &mut self,
        fd: OwnedFd,
        kind: FlowKind,
        phase: Phase,
        limit: Limit,
        source: Option<IpAddr>,
    ) -> io::Result<FlowId> {
        let flow = self.flows.insert(fd, kind, phase, limit, source);
        let connecting = phase == Phase::Connecting;
        let interest = if connecting { libc::EPOLLIN | libc::EPOLLOUT } else { libc::EPOLLIN };
        let Some(open) = self.flows.get_mut(flow) else { return Ok(flow) };
        open.wants_write = connecting;
        if let Err(error) = self.epoll.add(open.fd.as_fd(), interest, key(KEY_FLOW, flow.0)) {
            self.flows.remove(flow);
            return Err(error);
        }
        Ok(flow)
    }

    pub(super) fn flow_ready(&mut self, flow: FlowId, events: u32, sink: &mut dyn FnMut(NetEvent<'_>)) {
        let readable = events & (libc::EPOLLIN | libc::EPOLLHUP | libc::EPOLLERR) as u32 != 0;
        let Some(open) = self.flows.get_mut(flow) else { return };
        if open.phase == Phase::Connecting {
            match sys::connect_result(&open.fd).and_then(|()| sys::local_addr(&open.fd)) {
                Ok(_) if open.session.is_some() => {
                    open.phase = Phase::Securing;
                    open.take_records();
                }
                Ok(local) => {
                    open.phase = Phase::Open;
                    let kind = open.kind;
                    self.flows.set_limit(flow, Limit::Open);
                    if let Some(local) = local {
                        sink(NetEvent::Connected { flow, kind, local });
                    }
                }
                Err(error) => return self.end(flow, Close::Failed(error.kind())),
            }
        }
        if events & libc::EPOLLOUT as u32 != 0 {
            self.write_flow(flow);
        }
        if readable {
            self.read_flow(flow, sink);
        }
    }

    /// Reads once: what is left wakes the loop again, after everybody else had a turn.
    fn read_flow(&mut self, flow: FlowId, sink: &mut dyn FnMut(NetEvent<'_>)) {
        let Some(open) = self.flows.get_mut(flow) else { return };
        let (talking, securing) = (open.phase == Phase::Open, open.phase == Phase::Securing);
        if securing && self.handshakes_left == 0 {
            // What is not read wakes the loop again: the others have their turn in between.
            self.left_over = true;
            return;
        }
        let read = sys::recv(&open.fd, &mut self.buffer);
        if read.as_ref().is_err_and(is_transient) {
            return;
        }
        self.handshakes_left -= usize::from(securing);
        // Phones that have registered come in a crowd, as datagrams do; nobody else may make the loop nap.
        if open.kind == FlowKind::Sip && open.is_trusted() {
            self.messages += 1;
        } else {
            self.reads += 1;
        }
        match read {
            Ok(0) if talking && !open.unwritten().is_empty() => {
                // A client that has said everything and closed its side still gets its answers.
                self.pending.push_back(Pending::Closed { flow, kind: open.kind, why: Close::Peer });
                self.close_flow(flow, Closing::Flush);
            }
            Ok(0) => self.end(flow, Close::Peer),
            Ok(count) if open.session.is_some() && (talking || securing) => {
                self.read_session(flow, count, sink);
                // A client asks in the same breath as it ends the handshake: one look saves a turn for that alone.
                if !talking && self.flows.get(flow).is_some_and(|open| open.phase == Phase::Open) {
                    self.read_flow(flow, sink);
                }
            }
            Ok(count) if talking => {
                sink(NetEvent::Bytes {
                    flow,
                    kind: open.kind,
                    bytes: self.buffer.get(..count).unwrap_or(&[]),
                });
            }
            // The owner has let go: what still comes is read only so that the peer sees an orderly end.
            Ok(_) => {}
            Err(error) => self.end(flow, Close::Failed(error.kind())),
        }
    }

    /// Hands what came on a flow under TLS to its session, and what that says to the owner.
    fn read_session(&mut self, flow: FlowId, count: usize, sink: &mut dyn FnMut(NetEvent<'_>)) {
        let Some(open) = self.flows.get_mut(flow) else { return };
        let Flow { session: Some(session), kind, phase, .. } = open else { return };
        let kind = *kind;
        let was_securing = *phase == Phase::Securing;
        let bytes = self.buffer.get(..count).unwrap_or(&[]);
        // Data may come in the same packet as the end of the handshake, which is reported first.
        let mut early: Vec<u8> = Vec::new();
        let progress = session.receive(bytes, &mut self.plain, &mut |bytes| match was_securing {
            true => early.extend_from_slice(bytes),
            false => sink(NetEvent::Bytes { flow, kind, bytes }),
        });
        let is_secure = !session.is_handshaking();
        let arrival = open.arrival;
        if was_securing && is_secure && progress.is_ok() {
            open.phase = Phase::Open;
            open.arrival = None;
            if let Some(session) = &mut open.session {
                session.send_early();
            }
            self.stats.secured += 1;
            if let Some((listener, peer)) = arrival {
                sink(NetEvent::Accepted { flow, listener, kind, peer });
            } else if let Ok(Some(local)) = sys::local_addr(&open.fd) {
                self.flows.set_limit(flow, Limit::Open);
                sink(NetEvent::Connected { flow, kind, local });
            }
            if !early.is_empty() {
                sink(NetEvent::Bytes { flow, kind, bytes: &early });
            }
        }
        if let Some(open) = self.flows.get_mut(flow) {
            open.take_records();
        }
        // It leaves with what this turn makes of it: tickets with the first answer, a turn's handshakes together.
        self.write_later(flow);
        match progress {
            Ok(Progress::Open) => {}
            Ok(Progress::Over) => {
                if is_secure {
                    self.pending.push_back(Pending::Closed { flow, kind, why: Close::Peer });
                }
                self.drain_flow(flow);
            }
            Err(fault) => self.break_off(flow, arrival, fault),
        }
    }

    /// Says why TLS ended, and lets the alert leave.
    fn break_off(&mut self, flow: FlowId, arrival: Option<(ListenerId, Peer)>, fault: TlsFault) {
        self.stats.insecure += 1;
        let Some(open) = self.flows.get(flow) else { return };
        let (kind, was_reported) = (open.kind, arrival.is_none());
        if let Some(session) = &open.session {
            let (remote, outgoing) = (session.remote, session.outgoing);
            self.pending.push_back(Pending::Insecure { kind, remote, outgoing, fault });
        }
        if was_reported {
            self.pending.push_back(Pending::Closed { flow, kind, why: Close::Insecure });
        }
        self.drain_flow(flow);
    }

    /// What is queued is still written; nothing more is reported.
    pub(super) fn drain_flow(&mut self, flow: FlowId) {
        if let Some(open) = self.flows.get_mut(flow) {
            open.phase = Phase::Flushing;
            self.flows.set_limit(flow, Limit::Within(FLUSH_WITHIN));
            self.write_flow(flow);
        }
    }

    /// Has what a flow has to write leave at the next flush.
    pub(super) fn write_later(&mut self, flow: FlowId) {
        if let Some(open) = self.flows.get_mut(flow).filter(|open| !open.dirty && open.has_to_write()) {
            open.dirty = true;
            self.dirty.push(flow);
        }
    }

    /// Writes to several flows at once what they take; whatever else comes of it, `write_flow` finds.
    pub(super) fn write_together(&mut self, flows: &[FlowId]) {
        let Some(burst) = &mut self.burst else { return };
        let mut wrote = [0; SENDS_MAX];
        let ready = |flow: &FlowId| self.flows.get(*flow).filter(|open| open.has_to_write());
        let sends: Vec<_> =
            flows.iter().filter_map(ready).map(|open| (open.fd.as_fd(), open.unwritten())).collect();
        let whole = burst.send(&sends, |place, result| {
            if let (Some(wrote), Ok(count)) = (wrote.get_mut(place), result) {
                *wrote = count;
            }
        });
        if whole.is_err() {
            self.burst = None;
        }
        let mut wrote = wrote.into_iter();
        for flow in flows {
            // One that had nothing to write has no count either: those that are let go have written already.
            let Some(open) = self.flows.get_mut(*flow).filter(|open| open.has_to_write()) else { continue };
            if let Some(count) = wrote.next() {
                open.wrote(count);
            }
        }
    }

    pub(super) fn write_flow(&mut self, flow: FlowId) {
        loop {
            let Some(open) = self.flows.get_mut(flow) else { return };
            if open.phase == Phase::Connecting {
                return;
            }
            if open.unwritten().is_empty() {
                break;
            }
            match sys::send(&open.fd, open.unwritten()) {
                Ok(count) => open.wrote(count),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => return self.end(flow, Close::Failed(error.kind())),
            }
        }
        self.wrote_all_it_could(flow);
    }

    fn wrote_all_it_could(&mut self, flow: FlowId) {
        let Some(open) = self.flows.get_mut(flow) else { return };
        let left = !open.unwritten().is_empty();
        if left != open.wants_write {
            open.wants_write = left;
            let interest = if left { libc::EPOLLIN | libc::EPOLLOUT } else { libc::EPOLLIN };
            if let Err(error) = self.epoll.modify(open.fd.as_fd(), interest, key(KEY_FLOW, flow.0)) {
                return self.end(flow, Close::Failed(error.kind()));
            }
        }
        if !left && open.phase == Phase::Flushing {
            open.phase = Phase::Lingering;
            if sys::shutdown_write(&open.fd).is_err() {
                self.flows.remove(flow);
            } else {
                self.flows.set_limit(flow, Limit::Within(LINGER_WITHIN));
            }
        }
    }

    /// Ends a flow and reports it, unless its owner has already let go.
    pub(super) fn end(&mut self, flow: FlowId, why: Close) {
        let Some(ended) = self.flows.remove(flow) else { return };
        // An incoming flow was not reported before its handshake was over.
        let unknown = ended.phase == Phase::Securing && ended.arrival.is_some();
        if matches!(ended.phase, Phase::Open | Phase::Connecting | Phase::Securing) && !unknown {
            self.pending.push_back(Pending::Closed { flow, kind: ended.kind, why });
        }
    }
}

/// Whether the process, not the peer, is why no connection could be taken.
fn exhausted(error: &io::Error) -> bool {
    let short = matches!(error.raw_os_error(), Some(libc::ENOBUFS | libc::ENOMEM));
    short || is_out_of_descriptors(error)
}

fn is_transient(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}

/// Who came to a listener at `at`.
fn peer_of(fd: &OwnedFd, remote: Option<SocketAddr>, at: Option<SocketAddr>) -> io::Result<Peer> {
    let Some(remote) = remote else {
        let (uid, gid) = sys::peer_ids(fd)?;
        return Ok(Peer::Local { uid, gid });
    };
    // Of a listener on every address only the kernel knows which of them was called.
    let local = match at.filter(|at| !at.ip().is_unspecified()) {
        Some(at) => at,
        None => sys::local_addr(fd)?.unwrap_or(remote),
    };
    Ok(Peer::Ip { remote, local })
}
