//! How often a value occurred, in classes whose width grows with the value.

use std::time::Duration;

/// Classes to each doubling: a value is known to 6 %.
const SUB: u64 = 16;
/// Values up to 2^26 us, a minute, have a class; larger ones share the last.
const DOUBLINGS: u64 = 26;
const CLASSES: usize = ((DOUBLINGS - SUB.ilog2() as u64 + 1) * SUB) as usize;

/// Microseconds, counted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Histogram {
    classes: Box<[u64]>,
    count: u64,
    worst: u64,
}

impl Default for Histogram {
    fn default() -> Self {
        Self { classes: vec![0; CLASSES].into(), count: 0, worst: 0 }
    }
}

impl Histogram {
    /// Counts one value.
    pub fn add(&mut self, value: Duration) {
        let micros = u64::try_from(value.as_micros()).unwrap_or(u64::MAX);
        if let Some(class) = self.classes.get_mut(class_of(micros)) {
            *class += 1;
        }
        self.count += 1;
        self.worst = self.worst.max(micros);
    }

    /// Adds what another one has counted.
    pub fn merge(&mut self, other: &Self) {
        for (class, more) in self.classes.iter_mut().zip(&other.classes) {
            *class += more;
        }
        self.count += other.count;
        self.worst = self.worst.max(other.worst);
    }

    /// How many values.
    pub const fn count(&self) -> u64 {
        self.count
    }

    /// The largest value; zero without any.
    pub const fn worst(&self) -> Duration {
        Duration::from_micros(self.worst)
    }

    /// So many thousandths of the values were no larger than this, to the width of a class; zero without values.
    pub fn permille(&self, share: u64) -> Duration {
        let wanted = (self.count * share).div_ceil(1000).max(1);
        let mut seen = 0;
        for (class, count) in self.classes.iter().enumerate() {
            seen += count;
            if seen >= wanted {
                return Duration::from_micros(top_of(class).min(self.worst));
            }
        }
        self.worst()
    }
}

/// Which class counts a value.
fn class_of(micros: u64) -> usize {
    let doubling = micros.max(1).ilog2().saturating_sub(SUB.ilog2());
    let class = u64::from(doubling) * SUB + (micros >> doubling);
    usize::try_from(class).unwrap_or(usize::MAX).min(CLASSES - 1)
}

/// The largest value of a class.
fn top_of(class: usize) -> u64 {
    let class = class as u64;
    let doubling = (class / SUB).saturating_sub(1);
    ((class - doubling * SUB + 1) << doubling) - 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_lies_in_a_class_that_is_at_most_a_sixteenth_wide() {
        let mut last = 0;
        for micros in (0..5000).chain((13..26).map(|power| (1 << power) + 77)) {
            let class = class_of(micros);
            assert!(class >= last, "{micros}");
            last = class;
            assert!(top_of(class) >= micros, "{micros} in class {class} up to {}", top_of(class));
            assert!(top_of(class) - micros <= micros / SUB, "{micros}: {}", top_of(class));
        }
        assert_eq!(class_of(u64::MAX), CLASSES - 1);
    }

    #[test]
    fn shares_are_told_within_a_class_and_two_histograms_make_one() {
        let (mut low, mut high) = (Histogram::default(), Histogram::default());
        for micros in 1..=900 {
            low.add(Duration::from_micros(micros));
        }
        for micros in 901..=1000 {
            high.add(Duration::from_micros(micros));
        }
        low.merge(&high);
        for (share, exact) in [(500, 500), (990, 990), (999, 999), (1000, 1000)] {
            let told = low.permille(share).as_micros();
            assert!(told >= exact && told <= exact + exact / 16, "{share}: {told}");
        }
        assert_eq!((low.count(), low.worst()), (1000, Duration::from_millis(1)));
        assert_eq!(Histogram::default().permille(500), Duration::ZERO);
    }
}
