//! Live sound of one source for many listeners, each with a place of its own: a ring of samples without locks.
//!
//! Whoever writes knows nobody who listens. A listener hears what is written from a little before it began, hears silence
//! while nothing comes, and goes on with what is new when it fell behind.

use core::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicI16, AtomicUsize, Ordering};

use crate::{AudioSource, SampleRate};

/// What a listener has in hand when it begins: one packet of the longest kind.
const BEGIN_MS: usize = 60;
/// More than this is delay that would never end: it is brought back to [`BEGIN_MS`].
const MOST_MS: usize = 200;
/// What has room: far more, so that nothing is written over while it is read.
const ROOM_MS: usize = 1000;

/// Where it is written.
pub struct Broadcast {
    samples: Box<[AtomicI16]>,
    /// Samples since the beginning; they wrap around.
    written: AtomicUsize,
    rate: SampleRate,
}

impl fmt::Debug for Broadcast {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Broadcast").field("rate", &self.rate).finish_non_exhaustive()
    }
}

impl Broadcast {
    /// Sound at this rate.
    pub fn new(rate: SampleRate) -> Self {
        // A power of two, so that positions stay true when they wrap.
        let room = (rate.0 as usize * ROOM_MS / 1000).max(1).next_power_of_two();
        let samples = (0..room).map(|_| AtomicI16::new(0)).collect();
        Self { samples, written: AtomicUsize::new(0), rate }
    }
    /// Its rate.
    pub fn rate(&self) -> SampleRate {
        self.rate
    }
    fn at(&self, position: usize) -> Option<&AtomicI16> {
        self.samples.get(position % self.samples.len().max(1))
    }
    /// Adds samples, as they are to be heard: no faster than they last. For one writer.
    pub fn write(&self, samples: &[i16]) {
        let written = self.written.load(Ordering::Relaxed);
        for (n, sample) in samples.iter().enumerate() {
            if let Some(place) = self.at(written.wrapping_add(n)) {
                place.store(*sample, Ordering::Relaxed);
            }
        }
        self.written.store(written.wrapping_add(samples.len()), Ordering::Release);
    }
    /// Somebody who hears it from now on.
    pub fn listen(self: &Arc<Self>) -> Listening {
        let samples = |ms: usize| self.rate.0 as usize * ms / 1000;
        let (begin, most) = (samples(BEGIN_MS), samples(MOST_MS));
        let written = self.written.load(Ordering::Acquire);
        // Before the first sample there is silence, which the ring is made of.
        Listening { heard: written.wrapping_sub(begin), broadcast: self.clone(), begin, most, runs: true }
    }
}

/// Where it is heard.
pub struct Listening {
    broadcast: Arc<Broadcast>,
    heard: usize,
    /// Samples of [`BEGIN_MS`] and [`MOST_MS`].
    begin: usize,
    most: usize,
    runs: bool,
}

impl AudioSource for Listening {
    fn read(&mut self, samples: &mut [i16]) -> usize {
        let mut waiting = self.broadcast.written.load(Ordering::Acquire).wrapping_sub(self.heard);
        if waiting > self.most {
            self.heard = self.heard.wrapping_add(waiting - self.begin);
            waiting = self.begin;
        }
        self.runs = (self.runs || waiting >= self.begin) && waiting >= samples.len();
        if !self.runs {
            return 0;
        }
        for (n, sample) in samples.iter_mut().enumerate() {
            if let Some(place) = self.broadcast.at(self.heard.wrapping_add(n)) {
                *sample = place.load(Ordering::Relaxed);
            }
        }
        self.heard = self.heard.wrapping_add(samples.len());
        samples.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Frames of 20 ms at 1 kHz that a listener gets while so many are written before each; -1: silence.
    fn heard(listener: &mut Listening, broadcast: &Broadcast, next: &mut i16, written: &[i16]) -> Vec<i16> {
        written
            .iter()
            .map(|count| {
                let said: Vec<i16> = (*next..*next + *count).collect();
                *next += *count;
                broadcast.write(&said);
                let mut frame = [-1; 20];
                listener.read(&mut frame);
                assert!(frame.windows(2).all(|pair| pair[0] + 1 == pair[1] || pair[0] <= 0), "{frame:?}");
                frame[19]
            })
            .collect()
    }

    #[test]
    fn every_listener_hears_the_same_from_where_it_began() {
        let broadcast = Arc::new(Broadcast::new(SampleRate(1000)));
        let mut next = 1;
        let mut first = broadcast.listen();
        // What it has in hand is the silence before the first sample.
        assert_eq!(heard(&mut first, &broadcast, &mut next, &[20; 6]), [0, 0, 0, 20, 40, 60]);
        let mut second = broadcast.listen();
        let mut frame = [-1; 20];
        assert_eq!((second.read(&mut frame), frame[0]), (20, 61));
        assert_eq!((first.read(&mut frame), frame[0]), (20, 61));
    }

    #[test]
    fn who_runs_dry_hears_silence_until_there_is_a_packet_of_the_longest_kind() {
        let broadcast = Arc::new(Broadcast::new(SampleRate(1000)));
        let mut next = 1;
        let mut listener = broadcast.listen();
        let frames = heard(&mut listener, &broadcast, &mut next, &[60, 0, 0, 0, 0, 0, 0, 20, 20, 20]);
        assert_eq!(frames, [0, 0, 0, 20, 40, 60, -1, -1, -1, 80]);
    }

    #[test]
    fn who_falls_behind_goes_on_with_what_is_new() {
        let broadcast = Arc::new(Broadcast::new(SampleRate(1000)));
        let mut listener = broadcast.listen();
        let said: Vec<i16> = (1..=900).collect();
        broadcast.write(&said);
        let mut frame = [0; 20];
        assert_eq!((listener.read(&mut frame), frame[0]), (20, 841));
    }
}
