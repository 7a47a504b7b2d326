//! Callers that call, are answered and hang up, at a steady rate: how long that takes.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use ::io::clock::Clock;
use ::io::net::{Limits, Net, NetEvent};
use base::{Cause, Instant, Place};
use iax2::frame::Control;
use iax2::machine::Dial;
use iax2::{Event, Machine, Out, Secret, Settings};

use super::{LOOK, Pace};
use crate::histogram::Histogram;

/// How long an answered call lasts.
const HOLD: Duration = Duration::from_millis(200);

/// What callers met.
#[derive(Debug, Clone, Default)]
pub struct CallReport {
    /// Calls that were begun.
    pub begun: u64,
    /// Calls that were answered.
    pub answered: u64,
    /// Calls that ended before that.
    pub failed: u64,
    /// From NEW to ANSWER.
    pub time: Histogram,
}

/// Callers at work; they stop when this goes.
#[derive(Debug)]
pub struct IaxCallers {
    asks: Option<Sender<Sender<CallReport>>>,
    thread: Option<JoinHandle<()>>,
}

/// Who calls, where from, whom, how often.
#[derive(Debug, Clone)]
pub struct CallerPlan {
    /// Where the program listens.
    pub server: SocketAddr,
    /// Our address.
    pub local: IpAddr,
    /// Our user there, and its password.
    pub user: String,
    /// The password.
    pub secret: String,
    /// The number that is called.
    pub number: String,
    /// Calls a second.
    pub rate: f64,
}

impl IaxCallers {
    /// Begins.
    ///
    /// # Errors
    /// When a socket or a thread is refused.
    pub fn start(plan: CallerPlan) -> io::Result<Self> {
        let (asks, asked) = channel();
        let (tell, told) = channel();
        let thread = std::thread::Builder::new().name("callers".into()).spawn(move || {
            match Callers::new(plan) {
                Ok(callers) => {
                    // Whoever started it waits for this.
                    let _ = tell.send(Ok(()));
                    let done = callers.run(&asked);
                    debug_assert!(done.is_ok(), "{done:?}");
                }
                Err(error) => {
                    let _ = tell.send(Err(error));
                }
            }
        })?;
        told.recv().map_err(|_| io::Error::other("the thread of the callers has ended"))??;
        Ok(Self { asks: Some(asks), thread: Some(thread) })
    }
    /// What was counted since the last time.
    pub fn report(&self) -> CallReport {
        let (reply, answer) = channel();
        // A thread that has panicked says so when this is dropped.
        let _ = self.asks.as_ref().map(|asks| asks.send(reply));
        answer.recv().unwrap_or_default()
    }
}

impl Drop for IaxCallers {
    fn drop(&mut self) {
        self.asks = None;
        if let Some(Err(panic)) = self.thread.take().map(JoinHandle::join)
            && !std::thread::panicking()
        {
            std::panic::resume_unwind(panic);
        }
    }
}

struct Callers {
    plan: CallerPlan,
    net: Net,
    socket: ::io::net::TransportId,
    machine: Machine,
    out: Out,
    pace: Pace,
    /// When calls that are not answered yet were begun.
    waiting: HashMap<Place, Instant>,
    /// When those that are end, in order.
    ending: VecDeque<(Instant, Place)>,
    counted: CallReport,
}

impl Callers {
    fn new(plan: CallerPlan) -> io::Result<Self> {
        let mut net = Net::new(Limits::default())?;
        let socket = net.bind_udp(SocketAddr::new(plan.local, 0)).map_err(io::Error::other)?;
        net.set_udp_prompt(socket);
        let now = Clock.now();
        let machine = Machine::new(now, u128::from(now.as_nanos()), Settings::default());
        let pace = Pace::new(plan.rate, now);
        let (waiting, ending) = (HashMap::new(), VecDeque::new());
        let (out, counted) = (Out::default(), CallReport::default());
        Ok(Self { plan, net, socket, machine, out, pace, waiting, ending, counted })
    }
    fn run(mut self, asked: &Receiver<Sender<CallReport>>) -> io::Result<()> {
        loop {
            match asked.try_recv() {
                // Who asked may have gone.
                Ok(reply) => drop(reply.send(std::mem::take(&mut self.counted))),
                Err(TryRecvError::Empty) => {}
                Err(TryRecvError::Disconnected) => return Ok(()),
            }
            let now = Clock.now();
            self.machine.on_timer(now, &mut self.out);
            while self.pace.due(now).is_some() {
                self.call(now);
            }
            while let Some((_, leg)) = self.ending.pop_front_if(|(at, _)| *at <= now) {
                // It may be over already.
                let _ = self.machine.hang_up(now, leg, Cause::NORMAL_CLEARING, &mut self.out);
            }
            self.settle(now);
            let ends = self.ending.front().map(|(at, _)| *at);
            let until = [Some(now + LOOK), Some(self.pace.next()), self.machine.next_timer(), ends];
            let until = until.into_iter().flatten().min();
            let Self { net, machine, out, .. } = &mut self;
            net.wait(now, until, &mut |event| {
                if let NetEvent::Datagram { from, bytes, .. } = event {
                    machine.on_datagram(Clock.now(), from, bytes, out);
                }
            })?;
            self.settle(Clock.now());
        }
    }
    fn call(&mut self, now: Instant) {
        let CallerPlan { server, user, secret, number, .. } = &self.plan;
        let dial = Dial {
            called: number.as_bytes(),
            username: user.as_bytes(),
            secret: Some(Secret::new(secret.as_bytes())),
            ..Dial::to(*server)
        };
        self.counted.begun += 1;
        match self.machine.dial(now, &dial, &mut self.out) {
            Ok(leg) => drop(self.waiting.insert(leg, now)),
            Err(_) => self.counted.failed += 1,
        }
    }
    /// Takes in what the machine says, and sends what it wants sent.
    fn settle(&mut self, now: Instant) {
        for event in std::mem::take(&mut self.out.events) {
            match event {
                Event::Control(leg, Control::ANSWER) => {
                    if let Some(begun) = self.waiting.remove(&leg) {
                        self.counted.answered += 1;
                        self.counted.time.add(now.since(begun));
                        self.ending.push_back((now + HOLD, leg));
                    }
                }
                Event::Ended { leg, .. } => {
                    self.counted.failed += u64::from(self.waiting.remove(&leg).is_some());
                }
                _ => {}
            }
        }
        for (to, bytes) in self.out.datagrams() {
            self.net.send_udp(self.socket, None, to, bytes);
        }
        self.out.clear();
    }
}
