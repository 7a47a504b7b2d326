//! Machines on invented time with a network between them that loses, doubles and delays as a seed says.
#![allow(dead_code, reason = "each test binary uses its part")]

use base::{FormatId, Instant, Place};
use core::net::SocketAddr;
use core::time::Duration;
use iax2::machine::{Accept, Dial, Lines, Priority};
use iax2::{Event, Machine, Out, Settings};
use kit::Random;
use std::collections::BTreeMap;

/// What the network does.
#[derive(Debug, Clone, Copy)]
pub struct Net {
    /// Datagrams lost, of a hundred.
    pub loss: usize,
    /// Datagrams that come twice, of a hundred.
    pub twice: usize,
    /// Shortest way, ms.
    pub delay: usize,
    /// By so much longer at most, ms; datagrams overtake each other.
    pub spread: usize,
}

/// A network that does nothing but take 10 ms.
pub const GOOD: Net = Net { loss: 0, twice: 0, delay: 10, spread: 0 };

/// Something that a machine told: when, which machine, what, and the media of it.
pub type Told = (Instant, usize, Event, Vec<u8>);

pub struct World {
    pub now: Instant,
    pub machines: Vec<Machine>,
    pub net: Net,
    pub random: Random,
    /// Everything that was told, in order.
    pub told: Vec<Told>,
    /// Every datagram that was sent: from, to, bytes.
    pub wire: Vec<(usize, SocketAddr, Vec<u8>)>,
    pub keep_wire: bool,
    /// Pairs of machines between which there is no way.
    pub blocked: Vec<(usize, usize)>,
    flight: BTreeMap<(Instant, u64), (SocketAddr, SocketAddr, Vec<u8>)>,
    sent: u64,
    /// Events that were handled.
    seen: usize,
    out: Out,
}

pub fn address(side: usize) -> SocketAddr {
    SocketAddr::from(([192, 0, 2, side as u8 + 1], 4569))
}

pub fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}
pub fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

impl World {
    pub fn new(settings: &[Settings]) -> Self {
        let now = Instant::ZERO + secs(100);
        let machine = |(seed, settings): (u128, &Settings)| Machine::new(now, seed + 77, settings.clone());
        Self {
            now,
            machines: (0..).zip(settings).map(machine).collect(),
            net: GOOD,
            random: Random(5456),
            told: Vec::new(),
            wire: Vec::new(),
            keep_wire: true,
            blocked: Vec::new(),
            flight: BTreeMap::new(),
            sent: 0,
            seen: 0,
            out: Out::default(),
        }
    }
    /// Two machines with the usual settings.
    pub fn two() -> Self {
        Self::new(&[Settings::default(), Settings::default()])
    }

    /// Lets a machine act; what it sends flies, what it tells is told.
    pub fn act<T>(&mut self, side: usize, act: impl FnOnce(&mut Machine, Instant, &mut Out) -> T) -> T {
        let mut out = core::mem::take(&mut self.out);
        out.clear();
        let value = act(&mut self.machines[side], self.now, &mut out);
        for (to, bytes) in out.datagrams() {
            if self.keep_wire {
                self.wire.push((side, to, bytes.to_vec()));
            }
            let no_way = self.blocked.iter().any(|(from, at)| *from == side && address(*at) == to);
            let copies = match self.random.below(100) {
                _ if no_way => 0,
                dice if dice < self.net.loss => 0,
                dice if dice < self.net.loss + self.net.twice => 2,
                _ => 1,
            };
            for _ in 0..copies {
                let spread = self.random.below(self.net.spread + 1);
                let at = self.now + ms((self.net.delay + spread) as u64);
                self.sent += 1;
                self.flight.insert((at, self.sent), (address(side), to, bytes.to_vec()));
            }
        }
        for event in core::mem::take(&mut out.events) {
            let payload = match &event {
                Event::Voice { payload, .. } | Event::Video { payload, .. } => out.payload(payload).to_vec(),
                _ => Vec::new(),
            };
            self.told.push((self.now, side, event, payload));
        }
        self.out = out;
        value
    }

    /// Puts a datagram of anybody's on its way.
    pub fn inject(&mut self, from: SocketAddr, side: usize, bytes: &[u8]) {
        self.act(side, |machine, now, out| machine.on_datagram(now, from, bytes, out));
    }

    fn next(&self) -> Option<Instant> {
        let timers = self.machines.iter().filter_map(Machine::next_timer);
        timers.chain(self.flight.keys().next().map(|(at, _)| *at)).min()
    }

    /// Lets time pass. `handle` answers what machines tell.
    pub fn run(&mut self, span: Duration, handle: &mut dyn FnMut(&mut Self, usize, &Event)) {
        let until = self.now + span;
        loop {
            while self.seen < self.told.len() {
                let (_, side, event, _) = self.told[self.seen].clone();
                self.seen += 1;
                handle(self, side, &event);
            }
            let Some(at) = self.next().filter(|at| *at <= until) else { break };
            self.now = self.now.max(at);
            while let Some(entry) = self.flight.first_entry().filter(|entry| entry.key().0 <= self.now) {
                let (from, to, bytes) = entry.remove();
                let side = (0..self.machines.len()).find(|side| address(*side) == to);
                if let Some(side) = side {
                    self.inject(from, side, &bytes);
                }
            }
            for side in 0..self.machines.len() {
                self.act(side, |machine, now, out| machine.on_timer(now, out));
            }
        }
        self.now = until;
    }

    /// What a machine told.
    pub fn of(&self, side: usize) -> impl Iterator<Item = &Event> {
        self.told.iter().filter(move |(_, at, ..)| *at == side).map(|(_, _, event, _)| event)
    }

    /// After every number has rested nothing is left.
    pub fn assert_empty(&mut self) {
        self.run(secs(300), &mut |_, _, _| {});
        for (side, machine) in self.machines.iter_mut().enumerate() {
            machine.on_timer(self.now, &mut Out::default());
            let counts = machine.counts();
            let left = (counts.legs, counts.shared, counts.own_resting, counts.hosts, counts.indexed);
            assert_eq!(left, (0, (0, 0), 0, 0, 0), "machine {side}");
            assert_eq!((counts.without_token, counts.trunks), (0, 0), "machine {side}");
        }
    }

    /// A call from machine 0 to machine 1 that is accepted and answered: its legs there and here.
    pub fn call(&mut self, dial: impl FnOnce(&mut Dial<'_>)) -> (Place, Place) {
        let mut order = Dial::to(address(1));
        order.called = b"100";
        dial(&mut order);
        let caller = self.act(0, |machine, now, out| machine.dial(now, &order, out)).unwrap();
        let mut callee = None;
        let trunk = order.trunk;
        self.run(secs(2), &mut |world, side, event| {
            if let (1, Event::Call(leg, _)) = (side, event) {
                let leg = *leg;
                callee = Some(leg);
                let accept = Accept { trunk, ..accept_any() };
                world.act(1, |machine, now, out| {
                    machine.accept(now, leg, &accept, out).unwrap();
                    machine.control(now, leg, iax2::frame::Control::ANSWER, out).unwrap();
                });
            }
        });
        let callee = callee.expect("a call");
        let answered = Event::Control(caller, iax2::frame::Control::ANSWER);
        assert!(self.of(0).any(|event| *event == answered), "{:?}", self.told);
        (caller, callee)
    }
}

/// Takes anything that we have.
pub const fn accept_any() -> Accept<'static> {
    const ALL: &[FormatId] = &[FormatId::ULAW, FormatId::ALAW, FormatId::GSM];
    Accept {
        formats: ALL,
        video: &[FormatId::H264, FormatId::VP8],
        priority: Priority::Host,
        trunk: false,
        transferable: true,
        lines: Lines { send: true, take: true },
    }
}
