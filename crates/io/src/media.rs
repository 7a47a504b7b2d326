//! The hands of the media plane: ports, per-leg sockets, worker threads and the rings to them.
//!
//! [`Io`] chooses how packets are moved: one socket a leg, drained by `epoll` at each tick, or, with privileges, a few
//! descriptors a worker to which BPF programs bring all media ports. The signalling shard holds one [`MediaFront`].

mod backend;
mod front;
mod kernel;
mod load;
mod own;
mod pipe;
mod ports;
mod rooms;
mod sight;
mod sockets;
mod stopwatch;
mod sys;
mod thread;
mod translation;
mod uring;
mod wire;

pub use ::media::{
    Batch, Carried, Lanes, Level, Noted, Phase, Traced, Tracing, UnknownLevel, WAIT_MS_MAX, Watch,
};
pub use backend::{Interfaces, Io, IoError, IoWish, UnknownIo};
pub use codec::{Costs, Path, Paths, Price, missing_libraries};
pub use front::{MediaFront, MediaSettings, OpenError, StartError, Warning, take_priority};
pub use kernel::relay_program_nanos;
pub use load::{MediaLoads, WorkerLoad};
pub use ports::{PortPool, PortRange};
pub use sight::{LATENESS_US, Lateness, WorkerSight};
pub use stopwatch::Timed;
pub use sys::{allowed_processors, thread_cpu};
pub use translation::{SECONDS_MAX, Translation, processor_name};
pub use wire::{Wire, WireLeg, settle_thread};
