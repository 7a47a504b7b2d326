//! What the real program costs: processor time a call and a registration, memory a call, and what it does when nothing
//! happens.
//!
//! The benches start the program on a configuration of their own ([`e2e::Server`]), drive it with [`Callers`] or
//! [`Registrars`], and read what the kernel has counted for the process ([`Meter`]). Processor time is summed over all its
//! threads, so a machine that is busy with other things measures nearly the same; medians of several windows take the
//! rest. `STROWGER_BENCH_SHORT=1` shortens every window to see that the benches work at all. A target that is missed is
//! printed, never an error: what a shared machine measures must not fail a build.
#![forbid(unsafe_code)]

mod awake;
mod baseline;
mod caller;
mod crowd;
mod distance;
mod ends;
mod figure;
mod iax;
mod listener;
mod manager;
mod message;
mod meter;
mod old_iax;
mod pace;
mod registrar;
mod secure;
mod softirq;
mod watchers;

pub use awake::Awake;
pub use baseline::thread_per_call;
pub use caller::{Callers, Plan};
pub use crowd::Crowd;
pub use distance::far_away;
pub use e2e::World;
pub use ends::Ground;
pub use figure::{Figure, publish_points};
pub use iax::{Cpu, IAX_PEERS, IaxWindow, iax_peers, iax_window};
pub use listener::Listener;
pub use manager::Manager;
pub use meter::{Meter, Reading};
pub use old_iax::OldRegistrar;
pub use pace::{Window, median, run_windows, short};
pub use registrar::Registrars;
pub use secure::{Handshake, SecureManager, SecureRegistrars};
pub use softirq::ksoftirqd;
pub use watchers::Watchers;

/// Name of the incumbent's figures, which its own measurements on the same kind of machine gave.
pub const ASTERISK: &str = "Asterisk 23.4 (published, same kind of machine)";

/// A log that a site in service keeps: what went wrong, and nothing of what went right.
pub const QUIET_LOG: &str = "[general]\n[logfiles]\nmessages => notice,warning,error\n";
