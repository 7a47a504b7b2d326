//! The table of byte streams: who is on probation, who has a deadline, what waits to be written.
//!
//! Knows nothing of `epoll`; `Net` tells it what happened and does what it decides.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::os::fd::OwnedFd;
use std::time::Duration;

use base::{Instant, source_of};

use super::tls::Session;
use super::{FlowId, FlowKind, Limits, ListenerId, Peer, WRITE_BACKLOG_BYTES};

/// When a flow is closed without anybody asking.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Limit {
    /// Never.
    Open,
    /// At an instant.
    At(Instant),
    /// This long after the loop next reads the clock: a wait may have lasted an hour when the flow appears.
    Within(Duration),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    /// An outgoing connection that has not been answered.
    Connecting,
    /// Connected, and the handshake of TLS is not over: nothing was reported yet.
    Securing,
    /// Both ends talk.
    Open,
    /// The owner has let go; what was queued is still being written.
    Flushing,
    /// Everything is written; the peer's end is awaited, so that a reset does not destroy what it has not read.
    Lingering,
}

pub(super) struct Flow {
    pub(super) fd: OwnedFd,
    pub(super) kind: FlowKind,
    pub(super) phase: Phase,
    /// The cryptography of a flow under TLS.
    pub(super) session: Option<Box<Session>>,
    /// Where an accepted flow came in and from whom, until it is reported.
    pub(super) arrival: Option<(ListenerId, Peer)>,
    limit: Limit,
    /// The bucket that counts this flow while it is on probation.
    source: Option<IpAddr>,
    /// Bytes to write; `out[written..]` is left.
    out: Vec<u8>,
    written: usize,
    /// What the reactor watches for.
    pub(super) wants_write: bool,
    /// Set while the flow stands in the list of those to write at the next flush.
    pub(super) dirty: bool,
}

impl Flow {
    /// Whether its owner has vouched for it, or it was opened from here.
    pub(super) const fn is_trusted(&self) -> bool {
        self.source.is_none()
    }
    /// What is left to write.
    pub(super) fn unwritten(&self) -> &[u8] {
        self.out.get(self.written..).unwrap_or(&[])
    }
    /// Whether there is something to write, and somebody to write it to.
    pub(super) fn has_to_write(&self) -> bool {
        self.phase != Phase::Connecting && !self.unwritten().is_empty()
    }
    /// Bytes that are queued, before and behind the cryptography.
    pub(super) fn unsent(&self) -> usize {
        self.unwritten().len() + self.session.as_ref().map_or(0, |session| session.waiting())
    }
    /// The kernel has taken `count` bytes.
    pub(super) fn wrote(&mut self, count: usize) {
        self.written += count;
        if self.unwritten().is_empty() {
            self.out.clear();
            self.written = 0;
            // A burst that is over gives its memory back: a thousand idle clients cost nothing.
            if self.out.capacity() > KEPT_CAPACITY_BYTES {
                self.out = Vec::new();
            }
        }
    }
    /// Queues bytes; false when the peer reads too slowly to be kept.
    pub(super) fn queue(&mut self, bytes: &[u8]) -> bool {
        if self.unsent() + bytes.len() > WRITE_BACKLOG_BYTES {
            return false;
        }
        if self.written > 0 {
            self.out.drain(..self.written);
            self.written = 0;
        }
        match &mut self.session {
            Some(session) => session.send(bytes),
            None => self.out.extend_from_slice(bytes),
        }
        self.take_records();
        true
    }
    /// Queues what the session has for the peer.
    pub(super) fn take_records(&mut self) {
        if let Some(session) = &mut self.session {
            session.take_output(&mut self.out);
        }
    }
}

/// Output buffers up to this size stay allocated between bursts: one page.
const KEPT_CAPACITY_BYTES: usize = 4096;

/// Whether a new connection is let in.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Admission {
    Admit,
    /// Let in, after this one, the longest on probation, is closed.
    Evict(FlowId),
    Refuse,
}

pub(super) struct Flows {
    table: BTreeMap<FlowId, Flow>,
    next: u64,
    limits: Limits,
    /// Accepted flows that their owner has not vouched for, oldest first.
    probation: BTreeSet<FlowId>,
    /// How many of those each source has.
    sources: BTreeMap<IpAddr, usize>,
    deadlines: BTreeSet<(Instant, FlowId)>,
    unstamped: Vec<FlowId>,
}

impl Flows {
    pub(super) fn new(limits: Limits) -> Self {
        Self {
            table: BTreeMap::new(),
            next: 1,
            limits,
            probation: BTreeSet::new(),
            sources: BTreeMap::new(),
            deadlines: BTreeSet::new(),
            unstamped: Vec::new(),
        }
    }

    pub(super) fn get(&self, id: FlowId) -> Option<&Flow> {
        self.table.get(&id)
    }
    pub(super) fn get_mut(&mut self, id: FlowId) -> Option<&mut Flow> {
        self.table.get_mut(&id)
    }
    pub(super) fn len(&self) -> usize {
        self.table.len()
    }
    pub(super) fn is_full(&self) -> bool {
        self.table.len() >= self.limits.flows
    }
    pub(super) fn on_probation(&self) -> usize {
        self.probation.len()
    }

    /// Decides about a new connection from `source` (`None`: a unix socket).
    pub(super) fn admit(&self, source: Option<IpAddr>) -> Admission {
        let Some(source) = source else {
            return if self.is_full() { Admission::Refuse } else { Admission::Admit };
        };
        if self.sources.get(&source_of(source)).is_some_and(|&count| count >= self.limits.per_source) {
            return Admission::Refuse;
        }
        if self.probation.len() < self.limits.probation && !self.is_full() {
            return Admission::Admit;
        }
        self.probation.first().map_or(Admission::Refuse, |&oldest| Admission::Evict(oldest))
    }

    /// Takes a flow in. A `source` puts it on probation.
    pub(super) fn insert(
        &mut self,
        fd: OwnedFd,
        kind: FlowKind,
        phase: Phase,
        limit: Limit,
        source: Option<IpAddr>,
    ) -> FlowId {
        let id = FlowId(self.next);
        self.next += 1;
        let source = source.map(source_of);
        if let Some(source) = source {
            *self.sources.entry(source).or_default() += 1;
            self.probation.insert(id);
        }
        let flow = Flow {
            fd,
            kind,
            phase,
            session: None,
            arrival: None,
            limit: Limit::Open,
            source,
            out: Vec::new(),
            written: 0,
            wants_write: false,
            dirty: false,
        };
        self.table.insert(id, flow);
        self.set_limit(id, limit);
        id
    }

    pub(super) fn remove(&mut self, id: FlowId) -> Option<Flow> {
        self.end_probation(id);
        self.set_limit(id, Limit::Open);
        self.table.remove(&id)
    }

    pub(super) fn end_probation(&mut self, id: FlowId) {
        let Some(source) = self.table.get_mut(&id).and_then(|flow| flow.source.take()) else { return };
        self.probation.remove(&id);
        if let Some(count) = self.sources.get_mut(&source) {
            *count -= 1;
            if *count == 0 {
                self.sources.remove(&source);
            }
        }
    }

    pub(super) fn set_limit(&mut self, id: FlowId, limit: Limit) {
        let Some(flow) = self.table.get_mut(&id) else { return };
        if let Limit::At(at) = flow.limit {
            self.deadlines.remove(&(at, id));
        }
        flow.limit = limit;
        match limit {
            Limit::Open => {}
            Limit::At(at) => {
                self.deadlines.insert((at, id));
            }
            Limit::Within(_) => self.unstamped.push(id),
        }
    }

    /// Turns "within" into "at" for every flow that appeared since the last call.
    pub(super) fn stamp(&mut self, now: Instant) {
        for id in std::mem::take(&mut self.unstamped) {
            if let Some(Limit::Within(period)) = self.table.get(&id).map(|flow| flow.limit) {
                self.set_limit(id, Limit::At(now + period));
            }
        }
    }

    pub(super) fn deadline(&self) -> Option<Instant> {
        self.deadlines.first().map(|&(at, _)| at)
    }

    /// A flow whose time is over at `now`.
    pub(super) fn expired(&self, now: Instant) -> Option<FlowId> {
        self.deadlines.first().filter(|(at, _)| *at <= now).map(|&(_, id)| id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn some_fd() -> OwnedFd {
        crate::sys::eventfd().unwrap()
    }

    fn ip(last: u8) -> IpAddr {
        IpAddr::from([192, 0, 2, last])
    }

    fn accept(flows: &mut Flows, source: IpAddr) -> FlowId {
        let limit = Limit::Within(Duration::from_secs(5));
        flows.insert(some_fd(), FlowKind::Manager, Phase::Open, limit, Some(source))
    }

    #[test]
    fn one_source_has_a_bounded_share_until_it_is_vouched_for() {
        let mut flows = Flows::new(Limits { flows: 10, probation: 10, per_source: 2 });
        let first = accept(&mut flows, ip(1));
        accept(&mut flows, ip(1));
        assert_eq!(flows.admit(Some(ip(1))), Admission::Refuse);
        assert_eq!(flows.admit(Some(ip(2))), Admission::Admit);
        flows.end_probation(first);
        assert_eq!(flows.admit(Some(ip(1))), Admission::Admit);
    }

    #[test]
    fn a_full_waiting_room_turns_out_who_has_waited_longest_and_never_who_is_vouched_for() {
        let mut flows = Flows::new(Limits { flows: 10, probation: 2, per_source: 2 });
        let vouched = accept(&mut flows, ip(1));
        flows.end_probation(vouched);
        let oldest = accept(&mut flows, ip(2));
        accept(&mut flows, ip(3));
        assert_eq!(flows.admit(Some(ip(4))), Admission::Evict(oldest));
        let mut full = Flows::new(Limits { flows: 1, probation: 2, per_source: 2 });
        let only = accept(&mut full, ip(1));
        full.end_probation(only);
        assert_eq!(full.admit(Some(ip(2))), Admission::Refuse);
        assert_eq!(full.admit(None), Admission::Refuse);
    }

    #[test]
    fn ipv6_sources_are_counted_by_their_64_bit_prefix() {
        let mut flows = Flows::new(Limits { flows: 10, probation: 10, per_source: 1 });
        accept(&mut flows, "2001:db8:1:2::1".parse().unwrap());
        assert_eq!(flows.admit(Some("2001:db8:1:2:ffff::9".parse().unwrap())), Admission::Refuse);
        assert_eq!(flows.admit(Some("2001:db8:1:3::1".parse().unwrap())), Admission::Admit);
        assert_eq!(source_of("::ffff:192.0.2.1".parse().unwrap()), ip(1));
    }

    #[test]
    fn a_deadline_counts_from_the_first_clock_reading_after_the_flow_appeared() {
        let mut flows = Flows::new(Limits::default());
        let flow = accept(&mut flows, ip(1));
        assert_eq!(flows.deadline(), None);
        let now = Instant::from_nanos(3_600_000_000_000);
        flows.stamp(now);
        let at = now + Duration::from_secs(5);
        assert_eq!(flows.deadline(), Some(at));
        assert_eq!(flows.expired(now), None);
        assert_eq!(flows.expired(at), Some(flow));
        flows.set_limit(flow, Limit::Open);
        assert_eq!(flows.expired(at), None);
        flows.remove(flow);
        assert_eq!((flows.len(), flows.on_probation(), flows.sources.len()), (0, 0, 0));
    }

    #[test]
    fn a_peer_that_does_not_read_may_owe_one_backlog_and_no_more() {
        let mut flows = Flows::new(Limits::default());
        let id = accept(&mut flows, ip(1));
        let flow = flows.get_mut(id).unwrap();
        assert!(flow.queue(&vec![7; WRITE_BACKLOG_BYTES]));
        assert!(!flow.queue(&[7]));
        flow.wrote(10);
        assert!(flow.queue(&[8; 10]));
        assert_eq!(flow.unwritten().len(), WRITE_BACKLOG_BYTES);
        flow.wrote(WRITE_BACKLOG_BYTES);
        assert!(flow.unwritten().is_empty() && flow.out.capacity() == 0);
    }
}
