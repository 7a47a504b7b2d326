//! Who takes in what comes by a wire between two namespaces: a thread of the kernel for each end, on a processor of its own.
//!
//! A virtual pair has no hardware between its ends. Left alone, each end is served on the time of whoever sends to it, so
//! that the program would pay for the phones' part of the kernel, and the phones for its part. Here each end is polled by
//! a thread of its own (threaded NAPI) on the processor of those it belongs to, above their priority as an interrupt
//! would be, and not for each packet, as network cards put their interrupts off (`ethtool -C … rx-usecs`). A pair holds 256
//! packets; with a queue at an end (Linux from 6.16 on) a sender waits when it is full, as for a card, and nothing is lost.

use std::fs;
use std::ops::Deref;
use std::process::Command;

use e2e::World;

/// How long an end lets packets gather, nanoseconds.
const GATHER_NANOS: u32 = 50_000;
/// Real-time priority: above the program's media thread and the generator.
const PRIORITY: &str = "2";

/// A [`World`] to measure in.
#[derive(Debug)]
pub struct Ground {
    world: World,
    /// The ends of the wire, the program's and the phones'.
    ends: Option<[End; 2]>,
}

impl Ground {
    /// All on the loopback interface.
    pub fn loopback() -> Self {
        Self { world: World::loopback(), ends: None }
    }
    /// A wire whose ends take in on processors of their own: the program's on the last one, where its media thread is, the
    /// phones' on [`Self::phones_processor`].
    ///
    /// # Errors
    /// Without the programs `ip`, `tc`, `ethtool`, `taskset` and `chrt` or the privileges.
    pub fn wire(name: &str) -> Result<Self, String> {
        let world = World::wire(name)?;
        let processors = io::media::allowed_processors();
        let last = processors.last().copied().unwrap_or_default();
        let [program, phones] = world.namespaces().ok_or("no wire")?;
        let ends = [
            End::serve(program, World::INTERFACE, last)?,
            End::serve(phones, World::PHONES_INTERFACE, Self::phones_processor().unwrap_or(last))?,
        ];
        Ok(Self { world, ends: Some(ends) })
    }
    /// The processor before the last: the program's media thread takes the last one.
    pub fn phones_processor() -> Option<usize> {
        io::media::allowed_processors().iter().rev().nth(1).copied()
    }
    /// Seconds of processor time that taking in packets has cost at the program's end of the wire, so far.
    pub fn intake(&self) -> f64 {
        self.ends.as_ref().map_or(0.0, |[program, _]| program.cpu())
    }
    /// The same at the phones' end.
    pub fn phones_intake(&self) -> f64 {
        self.ends.as_ref().map_or(0.0, |[_, phones]| phones.cpu())
    }
}

impl Deref for Ground {
    type Target = World;
    fn deref(&self) -> &World {
        &self.world
    }
}

/// One end of a wire.
#[derive(Debug)]
struct End {
    /// The thread that takes in for it.
    thread: u32,
}

impl End {
    /// Has an interface of a namespace served by a thread on this processor.
    ///
    /// What a sender that could segment sends from an AF_XDP socket would be taken in on the sender's time all the same, where
    /// no XDP program waits at the other end: hence without segmentation.
    fn serve(namespace: &str, device: &str, processor: usize) -> Result<Self, String> {
        let folder = format!("/sys/class/net/{device}");
        let before = threads(device);
        let script = format!(
            "ethtool -K {device} gro on tso off && tc qdisc replace dev {device} root pfifo && \
             echo {GATHER_NANOS} > {folder}/gro_flush_timeout && echo 1 > {folder}/napi_defer_hard_irqs && \
             echo 1 > {folder}/threaded"
        );
        run("ip", &["netns", "exec", namespace, "sh", "-c", &script])?;
        let mut new = threads(device).into_iter().filter(|id| !before.contains(id));
        let thread = new.next().ok_or("the kernel's thread for it is not to be seen here")?;
        run("taskset", &["-pc", &processor.to_string(), &thread.to_string()])?;
        run("chrt", &["-f", "-p", PRIORITY, &thread.to_string()])?;
        Ok(Self { thread })
    }
    /// Seconds of processor time of its thread.
    fn cpu(&self) -> f64 {
        let schedule = fs::read_to_string(format!("/proc/{}/schedstat", self.thread)).unwrap_or_default();
        let nanos = schedule.split(' ').next().and_then(|nanos| nanos.parse::<f64>().ok());
        nanos.unwrap_or_default() / 1e9
    }
}

fn run(program: &str, words: &[&str]) -> Result<(), String> {
    let output = Command::new(program).args(words).output();
    let output = output.map_err(|error| format!("no program {program}: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    Err(format!("{program} {}: {}", words.join(" "), String::from_utf8_lossy(&output.stderr).trim()))
}

/// Threads of the kernel that serve interfaces of this name, in whatever namespace.
fn threads(device: &str) -> Vec<u32> {
    let prefix = format!("napi/{device}-");
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let ids = processes.filter_map(|process| {
        let id = process.file_name().to_str()?.parse().ok()?;
        fs::read_to_string(process.path().join("comm")).ok()?.starts_with(&prefix).then_some(id)
    });
    ids.collect()
}
