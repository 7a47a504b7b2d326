//! Processors that do not sleep while something is measured.

use std::process::{Child, Command, Stdio};
use std::thread::available_parallelism;

/// Counts for as long as the process is there whose number is its argument, in a class below all others.
const COUNT: &str = "while [ -d /proc/$1 ]; do n=0; while [ $n -lt 100000 ]; do n=$((n+1)); done; done";

/// Keeps every processor from sleeping until it is dropped, as the kernel's `idle=poll` does.
///
/// A virtual processor that sleeps is taken away by its host. What it takes to get it back, and to fill its caches again,
/// is charged to whoever wakes it: on an idle virtual machine a thread per call takes half as much again, and a program
/// that sleeps between ticks is measured by its host. Whoever counts here runs in the class `SCHED_IDLE`, which everything
/// else preempts at once. Without `chrt` and `taskset` nothing is kept awake, and that is said.
#[derive(Debug)]
pub struct Awake(Vec<Child>);

impl Awake {
    /// From here on.
    pub fn keep() -> Self {
        let processors = available_parallelism().map_or(1, usize::from);
        let started: Result<Vec<Child>, _> = (0..processors).map(count).collect();
        if let Err(why) = &started {
            println!("skipped: keeping the processors awake: chrt (util-linux): {why}");
        }
        Self(started.unwrap_or_default())
    }
}

impl Drop for Awake {
    fn drop(&mut self) {
        for child in &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn count(processor: usize) -> std::io::Result<Child> {
    Command::new("chrt")
        .args(["--idle", "0", "taskset", "--cpu-list", &processor.to_string()])
        .args(["sh", "-c", COUNT, "awake", &std::process::id().to_string()])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
}
