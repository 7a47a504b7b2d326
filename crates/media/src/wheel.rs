//! The wheel of 120 slots of a millisecond: 10, 20, 30, 40 and 60 ms streams all divide it.

/// Slots, one a millisecond.
pub(crate) const SLOTS: usize = 120;

/// Where a stream sits on the wheel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Seat {
    /// Milliseconds between visits; divides 120.
    pub(crate) period: u8,
    /// First slot, less than the period.
    pub(crate) phase: u8,
    /// Visits that make one frame: 1, but 5 visits of 10 ms for 50 ms and 3 of 15 ms for 45, which do not divide 120.
    pub(crate) visits: u8,
}

/// Which streams are visited in which millisecond.
#[derive(Debug)]
pub(crate) struct Wheel {
    slots: Vec<Vec<u32>>,
    /// Rotates ties, so that a burst of births spreads.
    next: u8,
}

impl Wheel {
    pub(crate) fn new() -> Self {
        Self { slots: vec![Vec::new(); SLOTS], next: 0 }
    }
    /// Seats a stream in the phase with the least work.
    pub(crate) fn sit(&mut self, stream: u32, ptime_ms: u8) -> Seat {
        let period = common_divisor(ptime_ms.max(10), SLOTS as u8);
        let visits = ptime_ms.max(10) / period;
        let load = |phase: u8| -> usize {
            let mine = self.slots.iter().skip(usize::from(phase)).step_by(usize::from(period));
            mine.map(Vec::len).sum()
        };
        // Ties go round by a step that is coprime to every period, so that neighbours in time stay apart.
        let order =
            (0..period).map(|n| ((u16::from(n) * 7 + u16::from(self.next)) % u16::from(period)) as u8);
        let phase = order.min_by_key(|&phase| load(phase)).unwrap_or(0);
        self.next = self.next.wrapping_add(7);
        let seat = Seat { period, phase, visits };
        for slot in self.slots.iter_mut().skip(usize::from(phase)).step_by(usize::from(period)) {
            slot.push(stream);
        }
        seat
    }
    /// Takes a stream off its seat.
    pub(crate) fn rise(&mut self, stream: u32, seat: Seat) {
        for slot in self.slots.iter_mut().skip(usize::from(seat.phase)).step_by(usize::from(seat.period)) {
            if let Some(at) = slot.iter().position(|&s| s == stream) {
                slot.swap_remove(at);
            }
        }
    }
    /// The `index`-th stream of the slot that millisecond `tick` falls in.
    pub(crate) fn at(&self, tick: u64, index: usize) -> Option<u32> {
        self.slots.get((tick % SLOTS as u64) as usize)?.get(index).copied()
    }
}

const fn common_divisor(a: u8, b: u8) -> u8 {
    if b == 0 { a } else { common_divisor(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn visits(wheel: &Wheel, tick: u64) -> Vec<u32> {
        (0..).map_while(|index| wheel.at(tick, index)).collect()
    }

    #[test]
    fn every_period_is_visited_exactly_once_a_period() {
        for (ptime, every) in [(10, 10), (20, 20), (30, 30), (40, 40), (45, 15), (50, 10), (60, 60)] {
            let mut wheel = Wheel::new();
            let seat = wheel.sit(7, ptime);
            let at: Vec<u64> = (0..240).filter(|&tick| !visits(&wheel, tick).is_empty()).collect();
            assert_eq!(at.len() as u64, 240 / every, "{ptime} ms");
            assert!(at.windows(2).all(|pair| pair[1] - pair[0] == every), "{ptime} ms");
            wheel.rise(7, seat);
            assert!((0..240).all(|tick| visits(&wheel, tick).is_empty()), "{ptime} ms");
        }
    }

    #[test]
    fn a_thousand_streams_spread_evenly_over_the_slots() {
        let mut wheel = Wheel::new();
        for stream in 0..1000 {
            wheel.sit(stream, 20);
        }
        assert!((0..120).all(|tick| visits(&wheel, tick).len() == 50));
        for stream in 1000..1600 {
            wheel.sit(stream, [10, 20, 30, 40, 60][stream as usize % 5]);
        }
        let loads: Vec<_> = (0..120).map(|tick| visits(&wheel, tick).len()).collect();
        let (least, most) = (loads.iter().min().unwrap(), loads.iter().max().unwrap());
        assert!(most - least <= 4, "{least} to {most}");
    }
}
