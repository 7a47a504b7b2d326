//! Processor time in nanoseconds, of this process and of the kernel's own threads, where soft interrupts may run.
#![allow(unsafe_code)]

use std::fs;

/// What all of them have used so far. Threads that end in between take theirs along.
pub fn nanos() -> u64 {
    let own = clock(libc::CLOCK_PROCESS_CPUTIME_ID);
    let numbers = fs::read_dir("/proc").into_iter().flatten().flatten();
    let numbers = numbers.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let kernel = numbers.filter(|number| {
        // Threads of the kernel have no command line.
        fs::read(format!("/proc/{number}/cmdline")).is_ok_and(|line| line.is_empty())
    });
    // The processor clock of another process (`clock_getcpuclockid`).
    own + kernel.map(|number| clock(!number << 3 | 2)).sum::<u64>()
}

fn clock(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the kernel writes one `timespec`, which outlives the call.
    match unsafe { libc::clock_gettime(clock, &raw mut time) } {
        0 => time.tv_sec.cast_unsigned() * 1_000_000_000 + time.tv_nsec.cast_unsigned(),
        _ => 0, // it has ended
    }
}
