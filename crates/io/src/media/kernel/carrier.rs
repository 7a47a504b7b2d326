//! One worker's hand on the table of relays: which ways a bridge may take, and whether they are still right.
#![forbid(unsafe_code)]

use std::collections::HashMap;
use std::net::{SocketAddr, SocketAddrV4};
use std::sync::Arc;
use std::time::Duration;

use base::Instant;
use media::{RelayPlan, Relayed};

use super::frame::Template;
use super::leg::SteeredLeg;
use super::relays::{Relays, Through, Ticket};
use super::route::{Features, Router, XDP_BASIC, XDP_NDO_XMIT};
use super::tables::{ASK_EVERY, Neighbour, Tables};

/// A bridge comes back after so long, for a second, so that the kernel's own way is taken again and its neighbours are
/// not forgotten.
const RENEW_EVERY: Duration = Duration::from_secs(60);

/// An interface that the XDP program runs on; `generic` when the kernel runs it above the driver.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Port {
    pub(super) interface: u32,
    pub(super) generic: bool,
}

/// How a frame gets from one interface out of another, or of the same: by redirection to it, or sent back by the driver.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Passage {
    Redirected,
    Back,
}

/// What a worker needs to bring bridges below.
pub(super) struct Carrier {
    relays: Arc<Relays>,
    ports: Arc<[Port]>,
    /// `None` where the kernel does not tell what drivers can do.
    features: Option<Features>,
    /// Pairs of interfaces: how a packet can go from one out of the other, and when that was asked.
    pairs: HashMap<(u32, u32), (Instant, Option<Passage>)>,
}

/// A direction of a bridge that is below, as the leg knows it that its packets come to.
#[derive(Debug)]
pub(super) struct Underway {
    relays: Arc<Relays>,
    ticket: Ticket,
    /// From our address to the peer's, and how that is marked.
    ends: (SocketAddrV4, SocketAddrV4, u8),
    through: Through,
    checked: Instant,
    began: Instant,
}

impl Underway {
    /// Ends it.
    pub(super) fn end(&self) -> Option<Relayed> {
        self.relays.end(self.ticket)
    }
    /// What a leg needs to end what leaves by it.
    pub(super) fn handle(&self) -> (Arc<Relays>, Ticket) {
        (self.relays.clone(), self.ticket)
    }
}

impl Carrier {
    pub(super) fn new(relays: Arc<Relays>, ports: Arc<[Port]>) -> Self {
        Self { relays, ports, features: Features::new(), pairs: HashMap::new() }
    }
    fn port(&self, interface: u32) -> Option<Port> {
        self.ports.iter().copied().find(|port| port.interface == interface)
    }
    /// How a packet that came by one of these interfaces can leave by the other (or the same) past the kernel.
    fn passage(&mut self, from: u32, to: u32, now: Instant, router: &mut Router) -> Option<Passage> {
        let (inward, _) = (self.port(from)?, self.port(to)?);
        if let Some((asked, passage)) = self.pairs.get(&(from, to))
            && now - *asked < ASK_EVERY
        {
            return *passage;
        }
        let passage = if inward.generic {
            // Above the driver the kernel sends by its own functions, which every driver has.
            Some(if from == to { Passage::Back } else { Passage::Redirected })
        } else {
            // What one end of a virtual pair sends back is not collected by the other end unless that has a program, too.
            let is_back = from == to && !router.is_veth(to);
            match self.features.as_mut().and_then(|features| features.of(to)) {
                Some(features) if is_back && features & XDP_BASIC != 0 => Some(Passage::Back),
                // Redirected frames are, and this bit says that it is ready for them.
                Some(features) if features & XDP_NDO_XMIT != 0 => Some(Passage::Redirected),
                None if is_back => Some(Passage::Back),
                Some(_) | None => None,
            }
        };
        self.pairs.insert((from, to), (now, passage));
        passage
    }
    /// The way of packets that come by an interface, and leave by a neighbour.
    fn through(
        &mut self,
        come: u32,
        (leave, macs, room): Neighbour,
        (from, to, tos): (SocketAddrV4, SocketAddrV4, u8),
        now: Instant,
        router: &mut Router,
    ) -> Option<Through> {
        let out = match self.passage(come, leave, now, router)? {
            Passage::Back => None,
            Passage::Redirected => Some(leave),
        };
        Some(Through { interfaces: (come, out), headers: Template::new(from, to, tos, macs), room })
    }
    /// Brings one direction below.
    pub(super) fn begin(
        &mut self,
        (from, to): (&mut SteeredLeg, &mut SteeredLeg),
        plan: &RelayPlan,
        now: Instant,
        tables: &mut Tables,
    ) -> bool {
        let (SocketAddr::V4(source), SocketAddr::V4(target)) = (plan.from, plan.to) else { return false };
        // Packets come by the interface by which packets to their source leave, or they are not relayed.
        let inward = tables.find(from.ip, *source.ip(), now).neighbour;
        let outward = tables.find(to.ip, *target.ip(), now).neighbour;
        let (Some((come, ..)), Some(outward)) = (inward, outward) else { return false };
        let ends = (SocketAddrV4::new(to.ip, to.port()), target, to.marking.tos);
        let through =
            self.through(come, outward, ends, now, &mut tables.router).filter(|_| from.underway.is_none());
        let Some(through) = through else { return false };
        let Some(ticket) = self.relays.begin(from.port(), source, plan, &through) else { return false };
        let relays = self.relays.clone();
        let underway = Underway { relays, ticket, ends, through, checked: now, began: now };
        to.fed = Some(underway.handle());
        from.underway = Some(Box::new(underway));
        true
    }
    /// What was relayed of what comes to a leg; `None` when it is not the way any more.
    pub(super) fn read(
        &mut self,
        leg: &mut SteeredLeg,
        now: Instant,
        tables: &mut Tables,
    ) -> Option<Relayed> {
        let underway = leg.underway.as_mut()?;
        let relayed = self.relays.read(underway.ticket)?;
        if now - underway.began >= RENEW_EVERY {
            return None;
        }
        if now - underway.checked >= ASK_EVERY {
            underway.checked = now;
            let (from, to) = (*underway.ends.0.ip(), *underway.ends.1.ip());
            let outward = tables.find(from, to, now).neighbour?;
            let come = underway.through.interfaces.0;
            let through = self.through(come, outward, underway.ends, now, &mut tables.router)?;
            if through != underway.through {
                return None;
            }
        }
        Some(relayed)
    }
}
