//! What the kernel does beside the processes: its threads for soft interrupts.

use std::fs;

/// Seconds of processor time of `ksoftirqd` on all processors, by the scheduler's nanoseconds.
pub fn ksoftirqd() -> f64 {
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let nanos = processes.filter_map(|process| {
        let name = process.file_name();
        name.to_str()?.parse::<u32>().ok()?;
        let path = process.path();
        if !fs::read_to_string(path.join("comm")).ok()?.starts_with("ksoftirqd/") {
            return None;
        }
        fs::read_to_string(path.join("schedstat")).ok()?.split(' ').next()?.parse::<f64>().ok()
    });
    nanos.sum::<f64>() / 1e9
}
