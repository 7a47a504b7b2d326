//! Back-ends that need privileges: the kernel brings all media ports to a few descriptors.
//!
//! Everything that needs a privilege happens in [`Kernel::set_up`], before any thread is started; afterwards descriptors
//! and shared memory are enough.
#![cfg_attr(not(bpf), allow(dead_code))]

mod frame;
mod leg;
mod ports;
mod route;
mod steered;
mod sys;

use std::os::fd::OwnedFd;
use std::sync::Arc;

pub(crate) use leg::SteeredLeg;
pub(crate) use ports::Ports;
pub(crate) use steered::SteeredIo;

/// Workers that can have a socket each; `WORKERS_MAX` of `media.bpf.c`.
pub(crate) const WORKERS_MAX: usize = 64;

/// Why a back-end is not to be had.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refused {
    pub(crate) why: String,
    pub(crate) remedy: &'static str,
}

/// The programs and what they steer to. Dropping it detaches them.
pub(crate) struct Kernel {
    pub(crate) ports: Arc<Ports>,
    /// A worker's part, until it is taken.
    workers: Vec<Option<SteeredIo>>,
    /// Where strangers' packets end.
    _nobody: OwnedFd,
    #[cfg(bpf)]
    _programs: aya::Ebpf,
}

impl Kernel {
    /// One worker's part; once.
    pub(crate) fn take_worker(&mut self, number: usize) -> Option<SteeredIo> {
        self.workers.get_mut(number)?.take()
    }

    #[cfg(not(bpf))]
    pub(crate) fn set_up(_: usize) -> Result<Self, Refused> {
        Err(Refused {
            why: "this program was built without BPF programs".into(),
            remedy: "install clang and build again",
        })
    }
}

#[cfg(bpf)]
mod load {
    use std::fmt::Display;
    use std::fs::File;
    use std::io;
    use std::net::SocketAddr;
    use std::os::fd::{AsFd, OwnedFd};

    use aya::maps::{Map, MapData, SockMap};
    use aya::programs::SkLookup;

    use super::steered::Descriptors;
    use super::{Arc, Kernel, Ports, Refused, SteeredIo, WORKERS_MAX, sys};

    const OBJECT: &[u8] = aya::include_bytes_aligned!(concat!(env!("OUT_DIR"), "/media.bpf.o"));

    /// What to do about every refusal that is one of privileges.
    const GRANT: &str = "start as root, or grant CAP_BPF, CAP_NET_ADMIN and CAP_NET_RAW (AmbientCapabilities= and \
                         CapabilityBoundingSet= of the systemd unit)";

    fn refused<E: Display>(what: &str) -> impl FnOnce(E) -> Refused {
        move |why| Refused { why: format!("{what}: {why}"), remedy: GRANT }
    }
    fn missing(what: &str) -> Refused {
        Refused { why: format!("the embedded programs have no {what}"), remedy: "build again" }
    }

    impl Kernel {
        /// Opens every descriptor, loads the programs, and brings media ports to `workers` sockets.
        pub(crate) fn set_up(workers: usize) -> Result<Self, Refused> {
            if workers > WORKERS_MAX {
                return Err(Refused {
                    why: format!("{workers} media workers, and there is room for {WORKERS_MAX}"),
                    remedy: "start fewer workers",
                });
            }
            let fds: Vec<Descriptors> = (0..workers)
                .map(|_| Descriptors::open())
                .collect::<Result<_, _>>()
                .map_err(refused("packet and raw sockets"))?;
            let nobody = nobody().map_err(refused("a socket that takes nothing"))?;
            let mut programs = aya::EbpfLoader::new()
                .load(OBJECT)
                .map_err(|why| Refused { why: told(&why), remedy: GRANT })?;
            let Some(Map::Array(ports)) = programs.map("PORTS") else { return Err(missing("map PORTS")) };
            let shared = sys::Shared::map(ports.fd().as_fd(), Ports::BYTES)
                .map_err(refused("shared memory of a map"))?;
            let map = programs.map_mut("SOCKETS").ok_or_else(|| missing("map SOCKETS"))?;
            let mut sockets: SockMap<&mut MapData> = map.try_into().map_err(refused("map SOCKETS"))?;
            let places =
                fds.iter().map(|fds| &fds.receiver).zip(0_u32..).chain([(&nobody, WORKERS_MAX as u32)]);
            for (socket, place) in places {
                sockets.set(place, socket, 0).map_err(refused("a place for a socket"))?;
            }
            let program = programs.program_mut("steer").ok_or_else(|| missing("program steer"))?;
            let steer: &mut SkLookup = program.try_into().map_err(refused("program steer"))?;
            steer.load().map_err(|why| Refused { why: told(&why), remedy: GRANT })?;
            let namespace =
                File::open("/proc/thread-self/ns/net").map_err(refused("/proc/thread-self/ns/net"))?;
            steer.attach(namespace.as_fd()).map_err(|why| Refused { why: told(&why), remedy: GRANT })?;
            let ports = Arc::new(Ports::new(shared));
            let workers = fds.into_iter().zip(0_u16..).map(|(fds, number)| {
                SteeredIo::new(number, ports.clone(), fds).map(Some).map_err(refused("netlink"))
            });
            let workers = workers.collect::<Result<_, _>>()?;
            Ok(Self { workers, ports, _nobody: nobody, _programs: programs })
        }
    }

    /// A socket that takes nothing, and answers nothing.
    fn nobody() -> io::Result<OwnedFd> {
        let socket = sys::open(libc::AF_INET, libc::SOCK_DGRAM, 0)?;
        sys::refuse_all(&socket)?;
        crate::sys::bind(&socket, SocketAddr::from(([127, 0, 0, 1], 0)))?;
        Ok(socket)
    }

    /// An error with its causes on one line, without the verifier's listing.
    fn told(error: &dyn std::error::Error) -> String {
        let mut text = error.to_string();
        let mut cause = error.source();
        while let Some(inner) = cause {
            let inner_text = inner.to_string();
            if !text.contains(&inner_text) {
                text = format!("{text}: {inner_text}");
            }
            cause = inner.source();
        }
        text.lines().next().unwrap_or_default().to_owned()
    }
}
