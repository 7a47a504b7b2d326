//! When lines and rooms have their turn: everyone once a packet, in the milliseconds that have least to do.

/// Milliseconds after which everything repeats.
const CYCLE: usize = 120;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seat {
    pub every_ms: u8,
    pub first_ms: u8,
    /// Visits that make one packet, where its length does not divide the cycle.
    pub visits: u8,
}

pub struct Timetable {
    due: Vec<Vec<u32>>,
    births: usize,
}

impl Timetable {
    pub fn new() -> Self {
        Self { due: vec![Vec::new(); CYCLE], births: 0 }
    }
    pub fn sit(&mut self, who: u32, length_ms: u8) -> Seat {
        let every_ms = (1..=length_ms)
            .rev()
            .find(|ms| length_ms.is_multiple_of(*ms) && CYCLE.is_multiple_of(usize::from(*ms)))
            .unwrap_or(1);
        let every = usize::from(every_ms);
        let work = |first: usize| -> usize {
            (0..CYCLE).filter(|ms| ms % every == first).map(|ms| self.due[ms].len()).sum()
        };
        // Of equally good ones each birth begins to look seven further on.
        let order = (0..every).map(|n| (7 * n + 7 * self.births % 256) % every);
        let first = order.min_by_key(|first| work(*first)).unwrap_or(0);
        self.births += 1;
        for ms in (first..CYCLE).step_by(every) {
            self.due[ms].push(who);
        }
        Seat { every_ms, first_ms: first as u8, visits: length_ms / every_ms }
    }
    pub fn rise(&mut self, who: u32, seat: Seat) {
        for ms in (usize::from(seat.first_ms)..CYCLE).step_by(seat.every_ms.into()) {
            if let Some(at) = self.due[ms].iter().position(|other| *other == who) {
                self.due[ms].swap_remove(at);
            }
        }
    }
    pub fn due(&self, ms: u64) -> &[u32] {
        &self.due[(ms % CYCLE as u64) as usize]
    }
}
