//! One worker thread: sleeps beside its bell until the next tick, never per packet.
//!
//! What arrives is only looked for at a tick: a packet wakes nobody. A worker
//! without streams sleeps without a timeout.
#![forbid(unsafe_code)]

use std::collections::VecDeque;
use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering, fence};
use std::time::Duration;

use base::{Event, Instant, StreamId};
use media::{Config, Input, Moving, Noted, PacketIo as _, Worker, tick_step};
use rtrb::{Consumer, Producer, PushError};

use super::backend::{Leg, MediaIo};
use super::front::RING;
use super::load::{LoadCell, ThreadLoad};
use super::sight::Lateness;
use super::stopwatch::{PHASES, Timed};
use super::sys;
use crate::clock::Clock;
use crate::sys::{Epoll, NOT_READY};
use crate::wake::Wake;

/// How often the shared counters are refreshed.
const LOAD_EVERY: Duration = Duration::from_millis(100);
/// Over which the busy share and the packet rate are taken.
const RATE_EVERY: Duration = Duration::from_secs(1);
/// When to try again after the ring to the shard was full.
const RETRY_EVERY: Duration = Duration::from_millis(5);

/// The tick while no packet moves.
const STILL_MS: u64 = tick_step(0).as_millis() as u64;

/// Front → thread.
pub(crate) enum ToWorker {
    /// For the worker itself.
    Input(Input<Leg>),
    /// Give this stream away.
    Release(StreamId),
    /// Close everything and end.
    Stop,
}

/// Thread → front.
pub(crate) enum FromWorker {
    /// For the signalling plane.
    Event(Event),
    /// The answer to [`ToWorker::Release`]; `None` when it is gone.
    Released(StreamId, Option<Box<Moving<Leg>>>),
    /// Packets for the trace.
    Traced(Box<Noted>),
}

/// The thread's ends of the rings and bells.
pub(crate) struct Ends {
    pub(crate) inputs: Consumer<ToWorker>,
    pub(crate) outputs: Producer<FromWorker>,
    pub(crate) bell: Wake,
    /// Set while the thread sleeps without a timeout; only then a message needs the bell.
    pub(crate) asleep: Arc<AtomicBool>,
    pub(crate) shard: Wake,
    pub(crate) cell: Arc<LoadCell>,
}

/// How a thread works.
#[derive(Clone, Copy)]
pub(crate) struct Manner {
    pub(crate) config: Config,
    /// Milliseconds of every tick; `None` lets the load decide.
    pub(crate) tick_ms: Option<u8>,
}

impl Manner {
    fn step_ms(self, packets_per_second: u64) -> u64 {
        self.tick_ms.map_or(tick_step(packets_per_second).as_millis() as u64, u64::from)
    }
}

/// Everything that can fail before the thread starts.
pub(crate) struct Prepared {
    io: MediaIo,
    sleep: Epoll,
    ends: Ends,
    manner: Manner,
}

impl Prepared {
    pub(crate) fn new(io: MediaIo, ends: Ends, manner: Manner) -> io::Result<Self> {
        let sleep = Epoll::new()?;
        sleep.add(ends.bell.as_fd(), libc::EPOLLIN | libc::EPOLLET, 0)?;
        Ok(Self { io, sleep, ends, manner })
    }
    /// What only the thread itself can make; says what is used instead when that fails.
    pub(crate) fn begin(&mut self) -> Option<String> {
        self.io.begin()
    }
    /// The thread's whole life.
    pub(crate) fn run(self) {
        let Self { io, sleep, ends, manner } = self;
        let step_ms = manner.step_ms(1);
        let mut thread = Thread {
            worker: Worker::new(manner.config),
            manner,
            io: Timed::new(io),
            sleep,
            ends,
            events: Vec::with_capacity(1024),
            waiting: VecDeque::with_capacity(256),
            untold: 0,
            step_ms,
            load: ThreadLoad { tick_ms: step_ms, ..ThreadLoad::default() },
            rate: Rate::default(),
            began: Clock.now(),
            lateness: Lateness::default(),
            recent: [0; PHASES],
            booked: [Duration::ZERO; PHASES],
        };
        while thread.turn() {}
    }
}

struct Thread {
    worker: Worker<Leg>,
    io: Timed<MediaIo>,
    sleep: Epoll,
    ends: Ends,
    events: Vec<Event>,
    /// Told as soon as the ring has room; edges are never dropped.
    waiting: VecDeque<FromWorker>,
    /// Packets of the trace for which the ring had no room.
    untold: u64,
    manner: Manner,
    step_ms: u64,
    load: ThreadLoad,
    rate: Rate,
    began: Instant,
    lateness: Lateness,
    /// Thousandths of the last second in each phase, and the phases when it began.
    recent: [u64; PHASES],
    booked: [Duration; PHASES],
}

/// What the current second has seen.
#[derive(Default)]
struct Rate {
    since: Instant,
    stored: Instant,
    packets: u64,
    piped: u64,
    awake: Duration,
}

impl Thread {
    /// Sleeps until something is due and does it; false when the thread is to end.
    fn turn(&mut self) -> bool {
        let before = Clock.now();
        let due = self.worker.deadline(self.step_ms);
        let retry = (!self.waiting.is_empty()).then(|| before + RETRY_EVERY);
        let until = [due, retry].into_iter().flatten().min();
        if until.is_none() {
            self.recent = [0; PHASES];
            self.store_load(before);
            self.ends.asleep.store(true, Ordering::Relaxed);
            fence(Ordering::SeqCst);
        }
        let news = until.is_none() && !self.ends.inputs.is_empty();
        if !news && until.is_none_or(|until| until > before) {
            // An error here can only be a broken descriptor of our own; the next turn would meet it again, so time
            // still passes by the deadline.
            let _ = self.sleep.wait(&mut [NOT_READY], until.map(|until| until - before));
        }
        self.ends.asleep.store(false, Ordering::Relaxed);
        let now = Clock.now();
        self.io.watch.pace(self.step_ms);
        self.io.watch.begin(now);
        self.ends.bell.answer();
        let mut go_on = true;
        let mut obeyed = 0;
        while let Ok(message) = self.ends.inputs.pop() {
            go_on &= self.obey(message, now);
            obeyed += 1;
        }
        if obeyed >= RING / 2 {
            // The shard may hold back messages for which there was no room.
            self.ends.shard.ring();
        }
        if self.worker.deadline(self.step_ms).is_some_and(|due| due <= now) {
            if let Some(due) = due {
                self.lateness.add(now - due);
            }
            self.worker.tick(now, &mut self.io, &mut self.events);
            if self.io.inner_mut().has_piped() {
                self.ends.shard.ring();
            }
            // The first packet after a silence ends the long ticks at once, not with the next measurement.
            if self.step_ms == STILL_MS && self.packets() > self.rate.packets {
                self.step_ms = self.manner.step_ms(1);
                self.load.tick_ms = self.step_ms;
            }
        } else if obeyed > 0 {
            // Last words of a stream, after which there may be no tick.
            self.io.tx_batch();
        }
        self.tell();
        self.show_trace();
        let after = Clock.now();
        self.rate.awake += after - now;
        self.io.watch.end(now, after);
        self.measure(after);
        go_on
    }
    fn obey(&mut self, message: ToWorker, now: Instant) -> bool {
        match message {
            ToWorker::Input(input) => {
                self.worker.input(input, now, &mut self.io, &mut self.events);
                true
            }
            ToWorker::Release(id) => {
                // What the stream said so far comes before it leaves.
                self.waiting.extend(self.events.drain(..).map(FromWorker::Event));
                let moving = self.worker.release(id, now, &mut self.io, &mut self.events);
                self.waiting.extend(self.events.drain(..).map(FromWorker::Event));
                let moving = moving.map(Box::new);
                self.waiting.push_back(FromWorker::Released(id, moving));
                true
            }
            ToWorker::Stop => {
                let ids: Vec<_> = self.worker.streams().collect();
                for stream in ids {
                    let close = Input::Command(base::Command::Close { stream });
                    self.worker.input(close, now, &mut self.io, &mut self.events);
                }
                false
            }
        }
    }
    /// Passes on what there is to tell; what the ring does not take waits in order.
    fn tell(&mut self) {
        if self.events.is_empty() && self.waiting.is_empty() {
            return;
        }
        let mut told = false;
        while let Some(message) = self.waiting.pop_front() {
            match self.ends.outputs.push(message) {
                Ok(()) => told = true,
                Err(PushError::Full(message)) => {
                    self.waiting.push_front(message);
                    break;
                }
            }
        }
        for event in self.events.drain(..) {
            let expected =
                matches!(event, Event::Closed { fault: None, .. } | Event::Stats { asked: false, .. });
            let message = FromWorker::Event(event);
            if self.waiting.is_empty() {
                match self.ends.outputs.push(message) {
                    Ok(()) => told |= !expected,
                    Err(PushError::Full(message)) => {
                        self.waiting.push_back(message);
                        self.load.events_delayed += 1;
                    }
                }
            } else {
                self.waiting.push_back(message);
                self.load.events_delayed += 1;
            }
        }
        if told || self.ends.outputs.slots() < RING / 2 {
            self.ends.shard.ring();
        }
    }
    /// Passes the trace on, as long as the ring has plenty of room for what matters more.
    fn show_trace(&mut self) {
        let Some(mut noted) = self.worker.take_trace() else { return };
        noted.missed += std::mem::take(&mut self.untold);
        let spare = self.waiting.is_empty() && self.ends.outputs.slots() > RING / 2;
        let packets = noted.packets.len() as u64 + noted.missed;
        if spare && self.ends.outputs.push(FromWorker::Traced(Box::new(noted))).is_ok() {
            self.ends.shard.ring();
        } else {
            self.untold = packets;
        }
    }
    fn measure(&mut self, now: Instant) {
        if now - self.rate.stored >= LOAD_EVERY {
            self.store_load(now);
        }
        let elapsed = now - self.rate.since;
        if elapsed < RATE_EVERY {
            return;
        }
        let (packets, piped) = (self.packets(), self.io.inner().piped());
        let each_second = |count: u64| count * 1000 / (elapsed.as_millis() as u64).max(1);
        // The pipe holds far more than any tick brings, and each tick wakes the shard too: it wants no short ones.
        let by_sockets = (packets - self.rate.packets).saturating_sub(piped - self.rate.piped);
        let per_second = each_second(by_sockets).max(u64::from(packets > self.rate.packets));
        self.load.busy_permille = (self.rate.awake.as_nanos() * 1000 / elapsed.as_nanos().max(1)) as u64;
        self.step_ms = self.manner.step_ms(per_second);
        self.load.tick_ms = self.step_ms;
        let booked = *self.io.watch.booked();
        for ((recent, now), before) in self.recent.iter_mut().zip(booked).zip(self.booked) {
            *recent = ((now - before).as_nanos() * 1000 / elapsed.as_nanos().max(1)) as u64;
        }
        self.booked = booked;
        self.rate = Rate { since: now, stored: self.rate.stored, packets, piped, awake: Duration::ZERO };
    }
    /// Packets moved so far.
    fn packets(&self) -> u64 {
        let load = self.worker.load();
        load.received + load.sent
    }
    fn store_load(&mut self, now: Instant) {
        self.rate.stored = now;
        self.load.unsent = self.io.inner().refused();
        self.load.by_xdp = self.io.inner().by_xdp();
        self.load.cpu_nanos = sys::thread_cpu().as_nanos() as u64;
        self.ends.cell.store(self.worker.load(), self.load);
        self.ends.cell.sight.store(self.began, self.io.watch.booked(), self.recent, &self.lateness);
    }
}
