//! What the kernel has counted for a process.

use std::collections::BTreeMap;
use std::fs;
use std::time::Instant;

/// Reads the counters of one process.
#[derive(Debug)]
pub struct Meter {
    pid: u32,
}

/// Counters at one moment.
#[derive(Debug)]
pub struct Reading {
    at: Instant,
    /// By thread, so that a thread that ends takes nothing away: nanoseconds on a processor, and times it went to sleep.
    threads: BTreeMap<u32, (u64, u64)>,
}

impl Meter {
    /// Counters of a process that runs.
    pub fn new(pid: u32) -> Self {
        Self { pid }
    }

    /// The counters as they are.
    pub fn read(&self) -> Reading {
        let tasks = fs::read_dir(format!("/proc/{}/task", self.pid)).expect("the process runs");
        let threads = tasks.flatten().filter_map(|task| {
            let id = task.file_name().to_str()?.parse().ok()?;
            let schedule = fs::read_to_string(task.path().join("schedstat")).ok()?;
            let nanos = schedule.split(' ').next()?.parse().ok()?;
            let status = fs::read_to_string(task.path().join("status")).ok()?;
            let sleeps = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"))?;
            Some((id, (nanos, sleeps.trim().parse().ok()?)))
        });
        Reading { at: Instant::now(), threads: threads.collect() }
    }

    /// Resident memory in bytes.
    pub fn resident(&self) -> f64 {
        let statm = fs::read_to_string(format!("/proc/{}/statm", self.pid)).expect("the process runs");
        let pages = statm.split(' ').nth(1).and_then(|pages| pages.parse::<f64>().ok());
        pages.expect("a count of resident pages") * 4096.0
    }
}

impl Reading {
    /// Seconds of processor time since an earlier reading.
    pub fn cpu_since(&self, earlier: &Self) -> f64 {
        self.since(earlier, |counters| counters.0) as f64 / 1e9
    }

    /// Seconds of processor time of some threads since an earlier reading.
    pub fn cpu_of_since(&self, earlier: &Self, threads: &[u32]) -> f64 {
        let nanos = |reading: &Self, id| reading.threads.get(id).map_or(0, |counters| counters.0);
        threads.iter().map(|id| nanos(self, id).saturating_sub(nanos(earlier, id))).sum::<u64>() as f64 / 1e9
    }

    /// How often a thread went to sleep, and so was woken, since an earlier reading.
    pub fn wakes_since(&self, earlier: &Self) -> u64 {
        self.since(earlier, |counters| counters.1)
    }

    /// Seconds since an earlier reading.
    pub fn seconds_since(&self, earlier: &Self) -> f64 {
        self.at.duration_since(earlier.at).as_secs_f64()
    }

    fn since(&self, earlier: &Self, which: fn(&(u64, u64)) -> u64) -> u64 {
        let before = |id| earlier.threads.get(id).map_or(0, which);
        self.threads.iter().map(|(id, counters)| which(counters).saturating_sub(before(id))).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_of_this_process_is_counted() {
        let meter = Meter::new(std::process::id());
        let before = meter.read();
        let mut sum = 0_u64;
        loop {
            sum = std::hint::black_box(sum.wrapping_add(1));
            let after = meter.read();
            if after.cpu_since(&before) > 0.01 {
                assert!(after.cpu_since(&before) < 60.0 && after.seconds_since(&before) > 0.0);
                break;
            }
        }
        assert!(meter.resident() > 100_000.0);
    }
}
