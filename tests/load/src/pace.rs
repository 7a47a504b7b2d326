//! Rates, windows and medians.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::Meter;

/// What one window of a measurement gave.
#[derive(Debug, Clone, Copy)]
pub struct Window {
    /// Milliseconds of one core for each thing done.
    pub each: f64,
    /// Things done a second.
    pub rate: f64,
}

/// Whether only the working of the benches is to be seen.
pub fn short() -> bool {
    std::env::var_os("STROWGER_BENCH_SHORT").is_some()
}

/// Measures windows of 4 seconds after one for warming up; `done` counts things done since the start.
pub fn run_windows(meter: &Meter, done: impl Fn() -> u64) -> Vec<Window> {
    let (count, length) = if short() { (1, Duration::from_millis(500)) } else { (5, Duration::from_secs(4)) };
    std::thread::sleep(length);
    let mut before = (meter.read(), done());
    let mut windows = Vec::new();
    for _ in 0..count {
        std::thread::sleep(length);
        let after = (meter.read(), done());
        let things = (after.1 - before.1) as f64;
        assert!(things > 0.0, "nothing was done for {length:?}");
        windows.push(Window {
            each: after.0.cpu_since(&before.0) * 1000.0 / things,
            rate: things / after.0.seconds_since(&before.0),
        });
        before = after;
    }
    windows
}

/// The median.
pub fn median(values: impl IntoIterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.into_iter().collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

/// A thread that does something at a steady rate, evenly spaced, whatever the other side does.
#[derive(Debug)]
pub(crate) struct Pacer {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Pacer {
    /// Calls `each` with 0, 1, 2… `rate` times a second, `limit` times at most.
    pub(crate) fn start(rate: u32, limit: u64, each: impl FnMut(u64) + Send + 'static) -> Self {
        Self::spawn(rate, 0..limit, each)
    }
    /// One of `of` threads that share a rate: calls `each` with `share`, `share + of`… when their turns come.
    pub(crate) fn start_shared(
        rate: u32,
        (share, of): (u64, usize),
        each: impl FnMut(u64) + Send + 'static,
    ) -> Self {
        Self::spawn(rate, (share..u64::MAX).step_by(of), each)
    }
    fn spawn(
        rate: u32,
        numbers: impl Iterator<Item = u64> + Send + 'static,
        mut each: impl FnMut(u64) + Send + 'static,
    ) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = stop.clone();
        let thread = std::thread::spawn(move || {
            let begin = Instant::now();
            for number in numbers {
                let due = begin + Duration::from_nanos(number * 1_000_000_000 / u64::from(rate));
                std::thread::sleep(due.saturating_duration_since(Instant::now()));
                if stopped.load(Ordering::Relaxed) {
                    return;
                }
                each(number);
            }
        });
        Self { stop, thread: Some(thread) }
    }
}

impl Drop for Pacer {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(Err(panic)) = self.thread.take().map(JoinHandle::join)
            && !std::thread::panicking()
        {
            std::panic::resume_unwind(panic);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_the_middle_one() {
        assert_eq!(median([3.0, 1.0, 200.0]), 3.0);
        assert!(median([]).is_nan());
    }

    #[test]
    fn a_pacer_ends_at_its_limit() {
        let (send, received) = std::sync::mpsc::channel();
        let _pacer = Pacer::start(10_000, 3, move |number| send.send(number).expect("a receiver"));
        assert_eq!(received.iter().collect::<Vec<_>>(), [0, 1, 2]);
    }
}
