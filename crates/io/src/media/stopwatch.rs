//! Where a worker's time goes, for little more than the price of not asking.
//!
//! A turn's length is known from the two clock readings that the thread makes anyway. How it divides into phases is
//! measured in one turn of [`CALM`] or [`BUSY`], by a reading at each change of phase; the others are taken to divide alike. A
//! window of turns is booked at a time, so that the phases always add up to all the time that the worker was awake.
#![forbid(unsafe_code)]

use std::net::SocketAddr;
use std::time::Duration;

use base::Instant;
use media::{Batch, PacketIo, Phase, RelayPlan, Relayed};

use crate::clock::Clock;

/// Phases.
pub(crate) const PHASES: usize = Phase::ALL.len();

/// One turn of so many is measured. Neither has a divisor in common with the 120 slots of the wheel, so that in time every
/// slot is measured as often as the others.
const CALM: u32 = 7;
/// With a turn each millisecond: there are plenty, and in each are packets for which the clock would be read.
const BUSY: u32 = 31;

/// Measured turns that a window wants before it is booked; fewer say little about the others.
const WINDOW: u32 = 4;

/// Divides the time of turns into phases.
#[derive(Debug)]
pub(crate) struct Stopwatch {
    turns: u32,
    every: u32,
    /// This turn is measured.
    on: bool,
    phase: Phase,
    since: Instant,
    /// Measured in this window, and all of its turns.
    measured: [Duration; PHASES],
    measured_turns: u32,
    awake: Duration,
    /// Booked since the start.
    booked: [Duration; PHASES],
}

impl Default for Stopwatch {
    fn default() -> Self {
        Self {
            turns: 0,
            every: CALM,
            on: false,
            phase: Phase::Control,
            since: Instant::ZERO,
            measured: [Duration::ZERO; PHASES],
            measured_turns: 0,
            awake: Duration::ZERO,
            booked: [Duration::ZERO; PHASES],
        }
    }
}

impl Stopwatch {
    /// Turns come so many milliseconds apart from here on.
    pub(crate) fn pace(&mut self, step_ms: u64) {
        self.every = if step_ms > 1 { CALM } else { BUSY };
    }
    /// A turn begins.
    pub(crate) fn begin(&mut self, now: Instant) {
        self.turns = (self.turns + 1) % self.every;
        self.on = self.turns == 0;
        (self.phase, self.since) = (Phase::Control, now);
    }
    /// The phase changes. `clock` is asked only in a turn that is measured.
    #[inline]
    fn change(&mut self, phase: Phase, clock: impl FnOnce() -> Instant) {
        if self.on {
            self.lap(clock());
        }
        self.phase = phase;
    }
    fn lap(&mut self, now: Instant) {
        if let Some(time) = self.measured.get_mut(self.phase as usize) {
            *time += now - self.since;
        }
        self.since = now;
    }
    /// The turn that began at `began` is over.
    pub(crate) fn end(&mut self, began: Instant, now: Instant) {
        self.awake += now - began;
        if self.on {
            self.lap(now);
            self.on = false;
            self.measured_turns += 1;
            if self.measured_turns >= WINDOW {
                self.book();
            }
        }
    }
    /// Time in each phase since the start, in the order of [`Phase::ALL`].
    ///
    /// What the current window has seen is booked first when it has measured anything, so that a worker that goes to sleep
    /// leaves nothing open.
    pub(crate) fn booked(&mut self) -> &[Duration; PHASES] {
        self.book();
        &self.booked
    }
    fn book(&mut self) {
        let measured: Duration = self.measured.iter().sum();
        if measured.is_zero() {
            return;
        }
        let scale = self.awake.as_nanos() as f64 / measured.as_nanos() as f64;
        for (booked, part) in self.booked.iter_mut().zip(&mut self.measured) {
            *booked += Duration::from_nanos((part.as_nanos() as f64 * scale) as u64);
            *part = Duration::ZERO;
        }
        (self.measured_turns, self.awake) = (0, Duration::ZERO);
    }
}

/// A back-end under a stopwatch.
#[derive(Debug)]
pub struct Timed<P> {
    io: P,
    pub(crate) watch: Stopwatch,
    /// What the worker was at when it began to seal or to open a packet.
    sealing_in: Phase,
}

impl<P> Timed<P> {
    /// Nothing is measured yet.
    pub fn new(io: P) -> Self {
        Self { io, watch: Stopwatch::default(), sealing_in: Phase::Control }
    }
    /// Does a turn of a worker that ticks each `step_ms`, and books where its time went.
    pub fn turn(&mut self, step_ms: u64, work: impl FnOnce(&mut Self)) {
        let began = now();
        self.watch.pace(step_ms);
        self.watch.begin(began);
        work(self);
        self.watch.end(began, now());
    }
    /// The back-end itself, to change.
    pub const fn inner_mut(&mut self) -> &mut P {
        &mut self.io
    }
    /// The back-end itself.
    pub const fn inner(&self) -> &P {
        &self.io
    }
    /// Time that `work` of the back-end takes is time of sending, whatever the worker was at.
    #[inline]
    fn sending<T>(&mut self, work: impl FnOnce(&mut P) -> T) -> T {
        if !self.watch.on {
            return work(&mut self.io);
        }
        let before = self.watch.phase;
        self.watch.change(Phase::Send, now);
        let done = work(&mut self.io);
        self.watch.change(before, now);
        done
    }
}

fn now() -> Instant {
    Clock.now()
}

impl<P: PacketIo> PacketIo for Timed<P> {
    type Leg = P::Leg;

    fn attach(&mut self, slot: u32, leg: &mut P::Leg) -> bool {
        self.io.attach(slot, leg)
    }
    fn detach(&mut self, leg: &mut P::Leg) {
        self.io.detach(leg);
    }
    fn rx_batch(&mut self, batch: &mut Batch) -> bool {
        self.io.rx_batch(batch)
    }
    fn put(&mut self, slot: u32, leg: &mut P::Leg, to: SocketAddr, packet: &[u8]) -> bool {
        self.sending(|io| io.put(slot, leg, to, packet))
    }
    fn put_rtcp(&mut self, slot: u32, leg: &mut P::Leg, to: SocketAddr, shared: bool, packet: &[u8]) -> bool {
        self.sending(|io| io.put_rtcp(slot, leg, to, shared, packet))
    }
    fn lock(&mut self, leg: &mut P::Leg, source: Option<SocketAddr>) {
        self.io.lock(leg, source);
    }
    fn relay(&mut self, from: &mut P::Leg, to: &mut P::Leg, plan: &RelayPlan) -> bool {
        self.io.relay(from, to, plan)
    }
    fn relayed(&mut self, leg: &mut P::Leg) -> Option<Relayed> {
        self.io.relayed(leg)
    }
    fn unrelay(&mut self, leg: &mut P::Leg) -> Option<Relayed> {
        self.io.unrelay(leg)
    }
    #[inline]
    fn phase(&mut self, phase: Phase) {
        self.watch.change(phase, now);
    }
    #[inline]
    fn seals(&mut self, begins: bool) {
        if begins {
            self.sealing_in = self.watch.phase;
            self.watch.change(Phase::Seal, now);
        } else {
            self.watch.change(self.sealing_in, now);
        }
    }
    fn tx_batch(&mut self) {
        self.sending(P::tx_batch);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(micros: u64) -> Instant {
        Instant::from_nanos(micros * 1000)
    }

    /// A turn of 100 us that spends 60 in receiving and 30 in sending.
    fn turn(watch: &mut Stopwatch, start: u64, reads: &mut u32) {
        watch.begin(at(start));
        for (after, phase) in [(10, Phase::Receive), (70, Phase::Send)] {
            watch.change(phase, || {
                *reads += 1;
                at(start + after)
            });
        }
        watch.end(at(start), at(start + 100));
    }

    #[test]
    fn phases_add_up_to_all_turns_and_the_clock_is_read_in_one_of_seven() {
        let (mut watch, mut reads) = (Stopwatch::default(), 0);
        for number in 0..70 {
            turn(&mut watch, number * 1000, &mut reads);
        }
        assert_eq!(reads, 2 * 70 / CALM);
        let booked = *watch.booked();
        let part = |phase: Phase| booked[phase as usize];
        assert_eq!(booked.iter().sum::<Duration>(), Duration::from_micros(7000));
        assert_eq!(part(Phase::Control), Duration::from_micros(700));
        assert_eq!(part(Phase::Receive), Duration::from_micros(4200));
        assert_eq!(part(Phase::Send), Duration::from_micros(2100));
        assert_eq!(part(Phase::Decode), Duration::ZERO);
    }

    #[test]
    fn turns_that_nobody_measured_wait_for_one_that_was() {
        let (mut watch, mut reads) = (Stopwatch::default(), 0);
        for number in 0..6 {
            turn(&mut watch, number * 1000, &mut reads);
        }
        assert_eq!((reads, watch.booked().iter().sum::<Duration>()), (0, Duration::ZERO));
        turn(&mut watch, 6000, &mut reads);
        assert_eq!(watch.booked().iter().sum::<Duration>(), Duration::from_micros(700));
        assert_eq!(watch.booked().iter().sum::<Duration>(), Duration::from_micros(700), "booked once");
    }

    #[test]
    fn every_slot_of_the_wheel_is_measured_in_time() {
        for every in [CALM, BUSY] {
            let mut seen = [false; 120];
            (0..120 * every).step_by(every as usize).for_each(|turn| seen[turn as usize % 120] = true);
            assert!(seen.iter().all(|seen| *seen), "{every}");
        }
    }
}
