//! IAX2 peers by the ten thousand that register again and again (RFC 5456 §6.1), from many addresses, on one thread.
//!
//! A socket for each port, bound to every address of this machine: each datagram says which of them it leaves from, so that
//! a thousand sources cost no more than one. Peers begin at a steady rate, whatever the other side does, and what begins
//! and answers in a quarter of a millisecond leaves together.

mod calls;
mod exchange;
mod flood;
mod sources;

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use ::io::clock::Clock;
use ::io::media::thread_cpu;
use base::Instant;

use crate::histogram::Histogram;
pub use calls::{CallReport, CallerPlan, IaxCallers};
use exchange::Exchanges;
pub use flood::Flood;
use sources::Sources;

/// What begins in so much time begins together.
const TOGETHER: Duration = Duration::from_micros(250);
/// Longest sleep, after which it is looked whether to stop.
const LOOK: Duration = Duration::from_millis(20);
/// What should have begun longer ago than this is left out, and counted.
const CATCH_UP: Duration = Duration::from_millis(100);

/// Who registers, where, and how often.
#[derive(Debug, Clone)]
pub struct RegistrationPlan {
    /// Where the registrar listens.
    pub server: SocketAddr,
    /// Addresses of this machine that peers register from, in turn; of the server's family.
    pub sources: Vec<IpAddr>,
    /// Ports that each of them has.
    pub ports: usize,
    /// Peers that take turns: `name` with a number from 0 on.
    pub peers: u32,
    /// What their names begin with.
    pub name: String,
    /// The password of all.
    pub secret: String,
    /// Seconds that a registration is to last.
    pub refresh: u16,
    /// Registrations a second.
    pub rate: f64,
}

/// What was counted.
#[derive(Debug, Clone, Default)]
pub struct RegistrationReport {
    /// Length of the window.
    pub length: Duration,
    /// Registrations that were begun.
    pub begun: u64,
    /// Those that were confirmed.
    pub registered: u64,
    /// Those that were refused.
    pub refused: u64,
    /// Those that nobody answered, whatever was repeated.
    pub lost: u64,
    /// Frames that were sent again, because no answer came within a second.
    pub repeated: u64,
    /// Registrations that were not begun in time: this side was too slow, or too many were under way.
    pub skipped: u64,
    /// From the first REGREQ to REGACK.
    pub time: Histogram,
    /// How late they were begun.
    pub lateness: Histogram,
    /// Processor time of the generator.
    pub cpu: Duration,
}

enum Ask {
    Begin,
    Count(Sender<RegistrationReport>),
    Rate(f64),
}

/// Peers at work; they stop when this goes.
#[derive(Debug)]
pub struct Registrations {
    asks: Option<Sender<Ask>>,
    thread: Option<JoinHandle<()>>,
}

impl Registrations {
    /// Begins.
    ///
    /// # Errors
    /// When a socket or a thread is refused.
    pub fn start(plan: RegistrationPlan) -> io::Result<Self> {
        let (asks, asked) = channel();
        let (tell, told) = channel();
        let thread = std::thread::Builder::new().name("peers".into()).spawn(move || {
            match Peers::new(plan, Clock.now()) {
                Ok(peers) => {
                    // Whoever started it waits for this.
                    let _ = tell.send(Ok(()));
                    peers.run(&asked);
                }
                Err(error) => {
                    let _ = tell.send(Err(error));
                }
            }
        })?;
        told.recv().map_err(|_| io::Error::other("the thread of the peers has ended"))??;
        Ok(Self { asks: Some(asks), thread: Some(thread) })
    }
    /// So many a second from here on.
    pub fn set_rate(&self, rate: f64) {
        self.ask(Ask::Rate(rate));
    }
    /// Counts from here on.
    pub fn begin_window(&self) {
        self.ask(Ask::Begin);
    }
    /// What was counted since the start, or since [`Self::begin_window`].
    pub fn report(&self) -> RegistrationReport {
        let (reply, answer) = channel();
        self.ask(Ask::Count(reply));
        answer.recv().unwrap_or_default()
    }
    fn ask(&self, ask: Ask) {
        // A thread that has panicked says so when this is dropped.
        let _ = self.asks.as_ref().map(|asks| asks.send(ask));
    }
}

impl Drop for Registrations {
    fn drop(&mut self) {
        self.asks = None;
        if let Some(Err(panic)) = self.thread.take().map(JoinHandle::join)
            && !std::thread::panicking()
        {
            std::panic::resume_unwind(panic);
        }
    }
}

/// The thread's own.
struct Peers {
    sources: Sources,
    exchanges: Exchanges,
    pace: Pace,
    peers: u32,
    next_peer: u32,
    counted_since: Instant,
    cpu_before: Duration,
}

impl Peers {
    fn new(plan: RegistrationPlan, now: Instant) -> io::Result<Self> {
        let sources = Sources::open(plan.server, plan.sources, plan.ports)?;
        let (peers, rate) = (plan.peers.max(1), plan.rate);
        let exchanges = Exchanges::new(plan.name, &plan.secret, plan.refresh);
        let (next_peer, cpu_before) = (0, thread_cpu());
        let pace = Pace::new(rate, now);
        Ok(Self { sources, exchanges, pace, peers, next_peer, counted_since: now, cpu_before })
    }
    fn run(mut self, asked: &Receiver<Ask>) {
        loop {
            match asked.try_recv() {
                Ok(ask) => self.answer(ask),
                Err(TryRecvError::Empty) => {}
                Err(TryRecvError::Disconnected) => return,
            }
            let now = Clock.now();
            self.begin(now);
            self.exchanges.repeat(now, &mut self.sources);
            let until = self.pace.next().max(now + TOGETHER).min(now + LOOK);
            let Self { sources, exchanges, .. } = &mut self;
            sources.wait(now, until);
            let now = Clock.now();
            sources.take(|sources, place, bytes| exchanges.take(now, place, bytes, sources));
        }
    }
    fn begin(&mut self, now: Instant) {
        while let Some(due) = self.pace.due(now) {
            if now.since(due) > CATCH_UP {
                self.exchanges.counted.skipped += 1;
                continue;
            }
            self.exchanges.counted.lateness.add(now.since(due));
            let peer = self.next_peer;
            self.next_peer = (peer + 1) % self.peers;
            let place = self.sources.of(peer as usize);
            self.exchanges.begin(now, peer, place, &mut self.sources);
        }
    }
    fn answer(&mut self, ask: Ask) {
        let (now, cpu) = (Clock.now(), thread_cpu());
        match ask {
            Ask::Begin => {
                self.exchanges.counted = RegistrationReport::default();
                (self.counted_since, self.cpu_before) = (now, cpu);
            }
            Ask::Count(reply) => {
                let length = now.since(self.counted_since);
                let cpu = cpu.saturating_sub(self.cpu_before);
                // Who asked may have gone.
                let _ = reply.send(RegistrationReport { length, cpu, ..self.exchanges.counted.clone() });
            }
            Ask::Rate(rate) => self.pace = Pace::new(rate, now),
        }
    }
}

/// When what is due at a steady rate.
struct Pace {
    since: Instant,
    rate: f64,
    done: u64,
}

impl Pace {
    fn new(rate: f64, since: Instant) -> Self {
        Self { since, rate: rate.max(1e-3), done: 0 }
    }
    /// When the next one is due.
    fn next(&self) -> Instant {
        self.since + Duration::from_secs_f64(self.done as f64 / self.rate)
    }
    /// Since when the next one is due, and on to the one after it; `None` when it is not yet.
    fn due(&mut self, now: Instant) -> Option<Instant> {
        let due = self.next();
        (due <= now).then(|| {
            self.done += 1;
            due
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pace_is_kept_whenever_it_is_looked_at() {
        let ms = |millis| Instant::ZERO + Duration::from_millis(millis);
        let mut pace = Pace::new(500.0, ms(10));
        assert_eq!(pace.due(ms(9)), None);
        let due: Vec<_> = std::iter::from_fn(|| pace.due(ms(17))).collect();
        assert_eq!(due, [ms(10), ms(12), ms(14), ms(16)]);
        assert_eq!(pace.next(), ms(18));
    }
}
