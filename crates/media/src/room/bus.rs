//! Sums by sample rate.
//!
//! Members of one rate are added up on one bus, exactly; what they say reaches the buses of other rates resampled once,
//! together. So nobody's own voice passes a filter before it is taken out of what they hear, and a narrow-band
//! conversation with one wide-band member in it is not filtered twice.

use base::SampleRate;
use codec::{Level, Resampler, mix};

use crate::room::ROUND_MS_MAX;

/// The sum of members at one rate.
#[derive(Debug)]
pub(crate) struct Bus {
    pub(crate) rate: SampleRate,
    /// Somebody said something in this round.
    pub(crate) is_live: bool,
    /// What members of this rate said.
    sum: Vec<i32>,
    /// The same with what came from other rates.
    total: Vec<i32>,
    /// That, limited: what everyone hears who does not talk.
    full: Vec<i16>,
    /// `sum`, limited: what other rates are given.
    given: Vec<i16>,
}

impl Bus {
    pub(crate) fn new(rate: SampleRate) -> Self {
        let count = samples(rate, ROUND_MS_MAX);
        Self {
            rate,
            is_live: false,
            sum: vec![0; count],
            total: vec![0; count],
            full: vec![0; count],
            given: vec![0; count],
        }
    }
    /// Begins a round.
    pub(crate) fn clear(&mut self) {
        self.sum.fill(0);
        self.is_live = false;
    }
    /// Adds what a member says.
    pub(crate) fn add(&mut self, level: Level, pcm: &[i16]) {
        mix::wide::accumulate(level, &mut self.sum, pcm);
        self.is_live = true;
    }
    /// What everyone hears who does not talk.
    pub(crate) fn full(&self, ms: u8) -> &[i16] {
        self.full.get(..samples(self.rate, ms)).unwrap_or_default()
    }
    /// What somebody hears who says `own`.
    pub(crate) fn without(&self, level: Level, own: &[i16], out: &mut [i16]) {
        mix::wide::limit_minus_self(level, &self.total, own, out);
    }
}

/// Samples of `ms` at a rate.
pub(crate) const fn samples(rate: SampleRate, ms: u8) -> usize {
    rate.0 as usize * ms as usize / 1000
}

/// The way from one bus to another.
#[derive(Debug)]
struct Link {
    from: usize,
    to: usize,
    resampler: Resampler,
    /// Rounds of silence that still come out of the filter.
    tail: u8,
}

/// Rounds after the last sound in which a filter may still give some: its longest branch is 368 samples, and the shortest
/// round 10 ms of 8 kHz.
const TAIL_ROUNDS: u8 = 5;

/// All buses of a room.
#[derive(Debug, Default)]
pub(crate) struct Buses {
    pub(crate) list: Vec<Bus>,
    links: Vec<Link>,
    resampled: Vec<i16>,
}

impl Buses {
    /// The bus of a rate, made when there is none.
    pub(crate) fn of(&mut self, rate: SampleRate) -> usize {
        if let Some(at) = self.list.iter().position(|bus| bus.rate == rate) {
            return at;
        }
        let new = self.list.len();
        for (at, bus) in self.list.iter().enumerate() {
            for (from, to, resampler) in
                [(at, new, Resampler::new(bus.rate, rate)), (new, at, Resampler::new(rate, bus.rate))]
            {
                self.links.extend(resampler.map(|resampler| Link { from, to, resampler, tail: 0 }));
            }
        }
        self.list.push(Bus::new(rate));
        let most = self.list.iter().map(|bus| samples(bus.rate, ROUND_MS_MAX)).max().unwrap_or(0);
        self.resampled.resize(most + 2, 0);
        new
    }
    /// Removes the bus at this place; the last one takes its place.
    pub(crate) fn remove(&mut self, at: usize) {
        self.list.swap_remove(at);
        let moved = self.list.len();
        self.links.retain(|link| link.from != at && link.to != at);
        for link in &mut self.links {
            for end in [&mut link.from, &mut link.to] {
                if *end == moved {
                    *end = at;
                }
            }
        }
    }
    /// Ends a round: every bus gets what was said on the others.
    pub(crate) fn join(&mut self, level: Level, ms: u8) {
        let Self { list, links, resampled } = self;
        for bus in list.iter_mut() {
            bus.total.copy_from_slice(&bus.sum);
            if !links.is_empty() {
                mix::wide::limit(level, &bus.sum, &mut bus.given);
            }
        }
        for Link { from, to, resampler, tail } in links {
            let Some(source) = list.get(*from) else { continue };
            if source.is_live {
                *tail = TAIL_ROUNDS;
            } else if *tail == 0 {
                continue;
            } else {
                *tail -= 1;
            }
            let given = source.given.get(..samples(source.rate, ms)).unwrap_or_default();
            let count = resampler.process(given, resampled);
            if let (Some(bus), Some(said)) = (list.get_mut(*to), resampled.get(..count)) {
                mix::wide::accumulate(level, &mut bus.total, said);
            }
        }
        for bus in list {
            mix::wide::limit(level, &bus.total, &mut bus.full);
        }
    }
}
