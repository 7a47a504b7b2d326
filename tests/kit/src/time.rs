//! Time that does not pass while others have the processor.

use std::time::Duration;

/// Processor time that this thread has used so far: what a piece of work costs, however busy the machine is.
pub fn processor_time() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the structure lives during the call, which fills it.
    let result = unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    assert_eq!(result, 0, "a thread has a clock of its own");
    Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec.unsigned_abs() as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_work_takes_processor_time() {
        let before = processor_time();
        while processor_time() - before < Duration::from_millis(2) {
            std::hint::black_box(1);
        }
        let waited = std::sync::mpsc::channel::<()>();
        let before = processor_time();
        let _nothing = waited.1.recv_timeout(Duration::from_millis(200));
        assert!(processor_time() - before < Duration::from_millis(100));
    }
}
