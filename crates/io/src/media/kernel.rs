//! Back-ends that need privileges: the kernel brings all media ports to a few descriptors.
//!
//! Everything that needs a privilege happens in [`Kernel::set_up`], before any thread is started; afterwards descriptors
//! and shared memory are enough.
#![cfg_attr(not(bpf), allow(dead_code))]

mod carrier;
mod frame;
mod leg;
mod ports;
mod relays;
mod ring;
mod route;
mod steered;
mod sys;
mod tables;
#[cfg(bpf)]
pub(crate) mod trial;
#[cfg(all(test, bpf))]
mod twin;

use std::os::fd::OwnedFd;
use std::sync::Arc;

pub(crate) use leg::SteeredLeg;
pub(crate) use ports::Ports;
pub(crate) use steered::SteeredIo;

/// Nanoseconds that the XDP program takes to relay a packet, in the kernel's own test run: for the bench.
///
/// # Errors
/// Why that cannot be measured here.
#[doc(hidden)]
pub fn relay_program_nanos() -> Result<f64, String> {
    #[cfg(bpf)]
    return trial::nanos_a_packet();
    #[cfg(not(bpf))]
    Err("this program was built without BPF programs".into())
}

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
    /// The table of bridges that the XDP program relays; or why there is none.
    relays: Result<Arc<relays::Relays>, String>,
    #[cfg(bpf)]
    programs: aya::Ebpf,
}

impl Kernel {
    /// One worker's part; once.
    pub(crate) fn take_worker(&mut self, number: usize) -> Option<SteeredIo> {
        self.workers.get_mut(number)?.take()
    }

    /// Why bridges are not relayed below; `None` when they are.
    pub(crate) fn why_no_relay(&self) -> Option<&str> {
        self.relays.as_ref().err().map(String::as_str)
    }

    #[cfg(not(bpf))]
    pub(crate) fn add_interfaces(&mut self, _: &[String]) -> Result<String, Refused> {
        Err(Refused { why: String::new(), remedy: "" })
    }
    #[cfg(not(bpf))]
    pub(crate) fn set_up(_: usize, _: bool) -> Result<Self, Refused> {
        Err(Refused {
            why: "this program was built without BPF programs".into(),
            remedy: "install clang and build again",
        })
    }
}

#[cfg(bpf)]
mod load {
    use std::fmt::Display;
    use std::fs::{self, File};
    use std::io;
    use std::net::SocketAddr;
    use std::os::fd::{AsFd, AsRawFd as _, OwnedFd};

    use aya::maps::{HashMap, Map, MapData, SockMap, XskMap};
    use aya::programs::{SkLookup, Xdp, xdp::XdpMode};

    use super::carrier::{Carrier, Port};
    use super::relays::{RELAYS_MAX, Relays};
    use super::ring::{MTU_MAX, Queue};
    use super::route::{Router, has_outgoing_policies};
    use super::steered::Descriptors;
    use super::{Arc, Kernel, Ports, Refused, SteeredIo, WORKERS_MAX, sys};

    pub(super) const OBJECT: &[u8] = aya::include_bytes_aligned!(concat!(env!("OUT_DIR"), "/media.bpf.o"));

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
        ///
        /// `relays`: interfaces are to be added, and bridges may be relayed on them.
        pub(crate) fn set_up(workers: usize, relays: bool) -> Result<Self, Refused> {
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
                .map_max_entries("RELAYS", if relays { RELAYS_MAX } else { 1 })
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
            // What is to be encrypted goes through the kernel's IP layer.
            let direct = !has_outgoing_policies().map_err(refused("policies of IPsec"))?;
            let workers = fds.into_iter().zip(0_u16..).map(|(fds, number)| {
                SteeredIo::new(number, ports.clone(), fds, direct).map(Some).map_err(refused("netlink"))
            });
            let workers = workers.collect::<Result<_, _>>()?;
            let relays = if relays { load_relay(&mut programs) } else { Err("kernel_relay=no".into()) };
            Ok(Self { workers, ports, _nobody: nobody, relays: relays.map(Arc::new), programs })
        }
    }

    /// Loads the program that relays bridges, and maps their table.
    fn load_relay(programs: &mut aya::Ebpf) -> Result<Relays, String> {
        let program = programs.program_mut("relay").ok_or("the embedded programs have no program relay")?;
        let relay: &mut Xdp = program.try_into().map_err(|why| told(&why))?;
        relay.load().map_err(|why| told(&why))?;
        let Some(Map::Array(table)) = programs.map("RELAYS") else {
            return Err("the embedded programs have no map RELAYS".into());
        };
        let shared = sys::Shared::map(table.fd().as_fd(), Relays::BYTES).map_err(|why| why.to_string())?;
        Ok(Relays::new(shared))
    }

    /// Queues of all interfaces together; `RINGS_MAX` of `media.bpf.c`.
    const RINGS_MAX: u32 = 256;

    impl Kernel {
        /// Puts AF_XDP sockets on the queues of these interfaces, or of all that are fit when none is named. Says which.
        pub(crate) fn add_interfaces(&mut self, names: &[String]) -> Result<String, Refused> {
            let mut router = Router::new().map_err(refused("netlink"))?;
            if self.relays.is_err() {
                let program = self.programs.program_mut("take").ok_or_else(|| missing("program take"))?;
                let take: &mut Xdp = program.try_into().map_err(refused("program take"))?;
                take.load().map_err(|why| Refused { why: told(&why), remedy: GRANT })?;
            }
            let (mut ring, mut added, mut ports) = (0, Vec::new(), Vec::new());
            let mut why_not = "there is no Ethernet interface that is up".to_owned();
            for name in if names.is_empty() { interfaces() } else { names.to_vec() } {
                match self.add_interface(&mut router, &name, &mut ring) {
                    Ok((port, how)) => {
                        added.push(how);
                        ports.push(port);
                    }
                    Err(why) if names.is_empty() => why_not = why,
                    Err(why) => return Err(Refused { why, remedy: INTERFACES }),
                }
            }
            if added.is_empty() {
                return Err(Refused { why: why_not, remedy: INTERFACES });
            }
            if let Ok(relays) = &self.relays {
                let ports: Arc<[Port]> = ports.into();
                for io in self.workers.iter_mut().flatten() {
                    io.set_carrier(Carrier::new(relays.clone(), ports.clone()));
                }
            }
            Ok(added.join(", "))
        }
        fn add_interface(
            &mut self,
            router: &mut Router,
            name: &str,
            ring: &mut u32,
        ) -> Result<(Port, String), String> {
            let Some(index) = sys::interface_index(name) else {
                return Err(format!("there is no interface {name}"));
            };
            let Some(link) = router.link(index) else {
                return Err(format!("interface {name} is not Ethernet or not up"));
            };
            if link.mtu > MTU_MAX {
                return Err(format!(
                    "packets of interface {name} can have {} bytes, more than {MTU_MAX}",
                    link.mtu
                ));
            }
            let failed = |what: &str, why: &dyn std::error::Error| format!("{what} on {name}: {}", told(why));
            let generic = self.attach(index).map_err(|why| failed("the XDP program", &*why))?;
            let mut queues = 0;
            for number in 0..link.queues {
                let queue = match Queue::open(index, number, generic) {
                    Ok(queue) => queue,
                    // Interfaces may have fewer queues than there is room for.
                    Err(_) if number > 0 => break,
                    Err(why) => return Err(failed("an AF_XDP socket", &why)),
                };
                if *ring >= RINGS_MAX {
                    break;
                }
                self.place(index, number, queue, *ring)
                    .map_err(|why| failed("a place for a queue", &*why))?;
                *ring += 1;
                queues += 1;
            }
            let how = if generic { "generic" } else { "driver" };
            let how = format!("{name} ({how}, {queues} {})", if queues == 1 { "queue" } else { "queues" });
            Ok((Port { interface: index, generic }, how))
        }
        /// Has the program look at what an interface receives; true when the driver cannot and the kernel does.
        fn attach(&mut self, interface: u32) -> Result<bool, Box<dyn std::error::Error>> {
            let name = if self.relays.is_ok() { "relay" } else { "take" };
            let program = self.programs.program_mut(name).ok_or("no program for interfaces")?;
            let take: &mut Xdp = program.try_into()?;
            match take.attach_to_if_index(interface, XdpMode::Driver) {
                Ok(_) => Ok(false),
                Err(_) => {
                    take.attach_to_if_index(interface, XdpMode::Skb)?;
                    Ok(true)
                }
            }
        }
        /// Gives a queue to one of the workers.
        fn place(
            &mut self,
            interface: u32,
            number: u32,
            queue: Queue,
            ring: u32,
        ) -> Result<(), Box<dyn std::error::Error>> {
            let worker = number % u32::try_from(self.workers.len()).unwrap_or(u32::MAX).max(1);
            let map = self.programs.map_mut("RINGS").ok_or("no map RINGS")?;
            let mut rings: XskMap<&mut MapData> = map.try_into()?;
            rings.set(ring, queue.socket().as_raw_fd(), 0)?;
            let map = self.programs.map_mut("QUEUES").ok_or("no map QUEUES")?;
            let mut queues: HashMap<&mut MapData, [u32; 2], u32> = map.try_into()?;
            queues.insert([interface, number], worker << 16 | ring, 0)?;
            if let Some(Some(io)) = self.workers.get_mut(worker as usize) {
                io.add_queue(interface, queue);
            }
            Ok(())
        }
    }

    /// What to do about an interface that cannot be used.
    const INTERFACES: &str = "name Ethernet interfaces that are up in media_interfaces of rtp.conf, free of other XDP programs \
                              (ip link set dev NAME xdp off), with an MTU of at most 1778";
    const _: () = assert!(MTU_MAX == 1778);

    /// Every interface of the namespace, by name.
    fn interfaces() -> Vec<String> {
        let table = fs::read_to_string("/proc/thread-self/net/dev").unwrap_or_default();
        // Two lines of headings.
        let names = table.lines().skip(2).filter_map(|line| line.split_once(':'));
        names.map(|(name, _)| name.trim().to_owned()).collect()
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
