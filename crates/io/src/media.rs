//! The hands of the media plane: ports, per-leg sockets, worker threads and the rings to them.
//!
//! One socket a leg, connected once its source is locked, drained by `epoll` at each tick. The signalling shard holds one
//! [`MediaFront`]; nothing else of this room is seen outside.

mod front;
mod load;
mod ports;
mod rooms;
mod sight;
mod sockets;
mod stopwatch;
mod sys;
mod thread;
mod translation;

pub use ::media::{Carried, Lanes, Level, Noted, Phase, Traced, Tracing, UnknownLevel, WAIT_MS_MAX, Watch};
pub use codec::{Costs, Path, Paths, Price, missing_libraries};
pub use front::{MediaFront, MediaSettings, OpenError, StartError, Warning};
pub use load::{MediaLoads, WorkerLoad};
pub use ports::{PortPool, PortRange};
pub use sight::{LATENESS_US, Lateness, WorkerSight};
pub use sockets::{Leg, SocketIo};
pub use sys::thread_cpu;
pub use translation::{SECONDS_MAX, Translation};
