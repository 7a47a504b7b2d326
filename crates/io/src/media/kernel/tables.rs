//! What the kernel's tables have said of ways to peers, for as long as it is believed: one question serves all legs that
//! talk with the same host.
#![forbid(unsafe_code)]

use std::collections::HashMap;
use std::io;
use std::net::Ipv4Addr;
use std::time::Duration;

use base::Instant;

use super::frame::{ETHERNET, IPV4, Mac, UDP};
use super::route::{Route, Router};
use super::sys::FRAME_BYTES;

/// How long an answer of the kernel's tables is believed.
pub(super) const ASK_EVERY: Duration = Duration::from_secs(2);
/// How soon a way is asked for again whose next hop was not known: a look-up by the kernel takes milliseconds.
const ASK_AGAIN: Duration = Duration::from_millis(200);
/// Answers that are kept; when there are more, all are forgotten but by the legs that have them.
const ANSWERS_MAX: usize = 4096;

/// A neighbour on Ethernet: the interface, its hardware address and ours, the longest packet.
pub(super) type Neighbour = (u32, (Mac, Mac), usize);

/// The way from one of our addresses to a peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Answer {
    pub(super) route: Option<Route>,
    /// Who takes packets on that way, when that is a neighbour on Ethernet who may be sent to past the kernel's IP layer.
    pub(super) neighbour: Option<Neighbour>,
    pub(super) good_until: Instant,
}

/// The kernel's tables as one worker knows them.
#[derive(Debug)]
pub(super) struct Tables {
    pub(super) router: Router,
    direct: bool,
    /// Has room for all from the start.
    answers: HashMap<(Ipv4Addr, Ipv4Addr), Answer>,
}

impl Tables {
    /// `direct`: packets to neighbours may leave past the kernel's IP layer.
    pub(super) fn new(direct: bool) -> io::Result<Self> {
        Ok(Self { router: Router::new()?, direct, answers: HashMap::with_capacity(ANSWERS_MAX) })
    }
    /// Whether anything may leave past the kernel's IP layer.
    pub(super) const fn is_direct(&self) -> bool {
        self.direct
    }
    /// What was said within the last two seconds.
    pub(super) fn known(&self, from: Ipv4Addr, to: Ipv4Addr, now: Instant) -> Option<Answer> {
        self.answers.get(&(from, to)).copied().filter(|answer| now < answer.good_until)
    }
    /// Asks the kernel: some 10 us for each of its three tables.
    pub(super) fn ask(&mut self, from: Ipv4Addr, to: Ipv4Addr, now: Instant) -> Answer {
        let route = self.router.route(from, to);
        let neighbour = route.filter(|route| self.direct && !route.special).and_then(|route| {
            let router = &mut self.router;
            let macs = (router.neighbour(route.interface, route.next_hop)?, router.own_mac(route.interface)?);
            let room = route.mtu.min(FRAME_BYTES - ETHERNET).saturating_sub(IPV4 + UDP);
            Some((route.interface, macs, room))
        });
        let is_settled = neighbour.is_some() || !self.direct || route.is_some_and(|route| route.special);
        let good_until = now + if is_settled { ASK_EVERY } else { ASK_AGAIN };
        let answer = Answer { route, neighbour, good_until };
        if self.answers.len() >= ANSWERS_MAX {
            self.answers.clear();
        }
        self.answers.insert((from, to), answer);
        answer
    }
    /// What is known, or what the kernel says.
    pub(super) fn find(&mut self, from: Ipv4Addr, to: Ipv4Addr, now: Instant) -> Answer {
        self.known(from, to, now).unwrap_or_else(|| self.ask(from, to, now))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_believed_for_two_seconds_and_serves_everyone_with_the_same_peer() {
        let mut tables = Tables::new(true).unwrap();
        let (local, peer) = (Ipv4Addr::LOCALHOST, Ipv4Addr::new(127, 3, 2, 1));
        let now = Instant::ZERO + Duration::from_secs(9);
        assert_eq!(tables.known(local, peer, now), None);
        let answer = tables.find(local, peer, now);
        assert!(answer.route.is_some_and(|route| route.special) && answer.neighbour.is_none(), "{answer:?}");
        assert_eq!(tables.find(local, peer, now + Duration::from_secs(1)), answer);
        assert_eq!(tables.known(peer, local, now), None, "the other way is another question");
        assert_eq!(tables.known(local, peer, now + ASK_EVERY), None);
        assert!(tables.find(local, peer, now + ASK_EVERY).good_until > answer.good_until);
    }

    #[test]
    fn past_the_kernel_goes_nothing_where_nothing_may() {
        let mut tables = Tables::new(false).unwrap();
        let answer = tables.ask(Ipv4Addr::UNSPECIFIED, Ipv4Addr::new(192, 0, 2, 1), Instant::ZERO);
        assert_eq!((answer.neighbour, answer.good_until), (None, Instant::ZERO + ASK_EVERY));
    }
}
