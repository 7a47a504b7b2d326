//! The pitch: the lag at which the signal differs least from itself, followed over time.

use super::{LAG_MAX, LAGS};

const COUNT: usize = LAGS.len();
/// Samples compared, every fourth of them.
const COMPARED: usize = 156;
/// Frames the tracker looks back.
const DEPTH: usize = 2;

/// The average magnitude difference function over [`LAGS`].
pub struct Differences {
    /// Difference by index of the lag.
    pub amdf: [f32; COUNT],
    /// Index of the least.
    pub lowest: usize,
    /// Index of the greatest near the least.
    pub highest: usize,
    /// The lag of the least, to a sample.
    pub lag: usize,
}

/// Searches a signal of [`COMPARED`] plus [`LAG_MAX`] samples.
pub fn search(signal: &[f32]) -> Differences {
    let mut amdf = LAGS.map(|lag| difference(signal, lag));
    let mut lowest = least(&amdf);
    let mut lag = LAGS[lowest];
    // A whole number from here on, as in the original.
    let mut minimum = amdf[lowest].trunc();

    // Lags between those of the table, near the least.
    let between = (lag.saturating_sub(3).max(41)..=(lag + 3).min(LAG_MAX - 1)).filter(|l| !LAGS.contains(l));
    if let Some((finer, value)) = best(signal, between)
        && value < minimum
    {
        (lag, minimum) = (finer, value.trunc());
    }
    // Half the lag: an octave error is the likeliest.
    if lag >= 80 {
        let half = lag / 2;
        let candidates = if half.is_multiple_of(2) { [half - 1, half + 1] } else { [half, half] };
        if let Some((halved, value)) = best(signal, candidates)
            && value < minimum
        {
            (lag, minimum) = (halved, value.trunc());
            lowest -= 20;
        }
    }
    amdf[lowest] = minimum;
    let mut highest = lowest.saturating_sub(5);
    for index in highest + 1..=(lowest + 5).min(COUNT - 1) {
        if amdf[index] > amdf[highest] {
            highest = index;
        }
    }
    Differences { amdf, lowest, highest, lag }
}

/// Sum of the differences at a lag, around the middle of the signal.
fn difference(signal: &[f32], lag: usize) -> f32 {
    let start = (LAG_MAX - lag) / 2;
    let mut sum = 0.0;
    for at in (start..start + COMPARED).step_by(4) {
        sum += (signal[at] - signal[at + lag]).abs();
    }
    sum
}

fn least(values: &[f32; COUNT]) -> usize {
    let mut lowest = 0;
    for (index, value) in values.iter().enumerate() {
        if *value < values[lowest] {
            lowest = index;
        }
    }
    lowest
}

/// The first of the lags with the least difference.
fn best(signal: &[f32], lags: impl IntoIterator<Item = usize>) -> Option<(usize, f32)> {
    let mut best: Option<(usize, f32)> = None;
    for lag in lags {
        let value = difference(signal, lag);
        if best.is_none_or(|(_, least)| value < least) {
            best = Some((lag, value));
        }
    }
    best
}

/// Follows the pitch by dynamic programming: a path through the differences of the frames that jumps little.
#[derive(Debug, Clone)]
pub struct Tracker {
    /// Cost of the best path to each lag.
    cost: [f32; COUNT],
    /// Where the best path to each lag comes from, for this frame and those before.
    path: [[usize; COUNT]; DEPTH],
    /// Which row of `path` is this frame's.
    row: usize,
    /// Smoothed depth of the minimum, which sets the price of a jump.
    depth: f32,
}

impl Default for Tracker {
    fn default() -> Self {
        Self { cost: [0.0; COUNT], path: [[0; COUNT]; DEPTH], row: 0, depth: 0.0 }
    }
}

impl Tracker {
    /// Takes a frame's differences; returns the index of the lag two frames ago and that of this frame.
    pub fn follow(&mut self, differences: &Differences, voiced: bool) -> (usize, usize) {
        let amdf = &differences.amdf;
        self.depth = if voiced {
            0.75 * self.depth + amdf[differences.lowest] / 2.0
        } else {
            (63.0 / 64.0) * self.depth
        };
        let price = if !voiced && self.depth < 128.0 { 8.0 } else { self.depth / 16.0 };
        self.spread(price);

        let mut now = 0;
        let (mut minimum, mut maximum) = (f32::MAX, f32::MIN);
        for (index, (cost, difference)) in self.cost.iter_mut().zip(amdf).enumerate() {
            *cost += difference / 2.0;
            maximum = maximum.max(*cost);
            if *cost < minimum {
                (now, minimum) = (index, *cost);
            }
        }
        for cost in &mut self.cost {
            *cost -= minimum;
        }
        // A half, a third or a quarter of the lag, if it is nearly as good.
        let good = (maximum - minimum) / 4.0;
        let shorter =
            [40, 30, 20].into_iter().find(|&step| now >= step && self.cost[now - step] < good).unwrap_or(0);
        now -= shorter;

        let mut then = now;
        for back in 0..DEPTH {
            then = self.path[(self.row + back) % DEPTH][then];
        }
        self.row = (self.row + DEPTH - 1) % DEPTH;
        (then, now)
    }

    /// Lets each path go on to its neighbours at a price for each step.
    fn spread(&mut self, price: f32) {
        let path = &mut self.path[self.row];
        let mut from = 0;
        let mut running = self.cost[0];
        for (index, (cost, path)) in self.cost.iter_mut().zip(path.iter_mut()).enumerate() {
            running += price;
            if running < *cost {
                *cost = running;
                *path = from;
            } else {
                running = *cost;
                *path = index;
                from = index;
            }
        }
        let mut running = self.cost[from];
        let mut next = from;
        while next > 0 {
            let index = next - 1;
            running += price;
            if running < self.cost[index] {
                self.cost[index] = running;
                path[index] = from;
                next = index;
            } else {
                from = path[index];
                running = self.cost[from];
                next = from;
            }
        }
    }
}
