//! Which back-end moves the packets: chosen once, at the start, by what the kernel and the privileges allow.
#![forbid(unsafe_code)]

use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::str::FromStr;

use base::{Marking, PIPE, StreamId};
use media::{Arrival, Batch, PacketIo, RelayPlan, Relayed};

use super::kernel::{Kernel, Refused, SteeredIo, SteeredLeg};
use super::own::OwnSockets;
use super::pipe::{Inlet, Outlet};
use super::ports::Lease;
use super::sockets::SocketLeg;
use super::uring;

/// `media_io` of rtp.conf.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum IoWish {
    /// The best that there is.
    #[default]
    Auto,
    /// AF_XDP sockets.
    Xdp,
    /// A socket a worker, by a `sk_lookup` program.
    SkLookup,
    /// io_uring.
    Uring,
    /// A socket a leg; needs no privilege.
    Epoll,
}

impl IoWish {
    const ALL: [(Self, &str); 5] = [
        (Self::Auto, "auto"),
        (Self::Xdp, "xdp"),
        (Self::SkLookup, "sklookup"),
        (Self::Uring, "uring"),
        (Self::Epoll, "epoll"),
    ];
    /// The word of rtp.conf.
    pub fn name(self) -> &'static str {
        Self::ALL.into_iter().find(|(wish, _)| *wish == self).map_or("", |(_, name)| name)
    }
}

/// A word that is no back-end.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no media back-end '{0}'; auto, xdp, sklookup, uring and epoll are known")]
pub struct UnknownIo(String);

impl FromStr for IoWish {
    type Err = UnknownIo;

    fn from_str(text: &str) -> Result<Self, UnknownIo> {
        let found = Self::ALL.into_iter().find(|(_, name)| *name == text);
        found.map(|(wish, _)| wish).ok_or_else(|| UnknownIo(text.to_owned()))
    }
}

/// Why the back-end that was asked for is not to be had.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("media_io={wish}: {why}", wish = .wish.name())]
pub struct IoError {
    wish: IoWish,
    why: String,
    remedy: &'static str,
}

impl IoError {
    /// What to do about it.
    pub const fn remedy(&self) -> &'static str {
        self.remedy
    }
    fn new(wish: IoWish, Refused { why, remedy }: Refused) -> Self {
        Self { wish, why, remedy }
    }
}

/// Interfaces for AF_XDP.
#[derive(Debug, Clone, Copy, Default)]
pub struct Interfaces<'a> {
    /// Their names; none for all that are fit.
    pub names: &'a [String],
    /// Bridges that nobody listens to may be relayed on them, by the XDP program, as far as the kernel can.
    pub kernel_relay: bool,
}

/// The back-end of a media plane that is about to start, with all that needed privileges.
pub struct Io {
    used: IoWish,
    reason: String,
    workers: usize,
    kernel: Option<Kernel>,
}

impl fmt::Debug for Io {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Io({}, {} workers, {})", self.used.name(), self.workers, self.reason)
    }
}

impl Io {
    /// One socket a leg, whatever else there may be. `workers`: `None` for one less than the processors, at least one.
    pub fn sockets(workers: Option<usize>) -> Self {
        let reason = "it was asked for".to_owned();
        Self { used: IoWish::Epoll, reason, workers: count(workers), kernel: None }
    }
    /// Probes what there is and takes the best of it, or what was asked for. `interfaces` are those for AF_XDP; when none is
    /// named it is taken only where it was asked for, and then on all that are fit. Call it before any other thread starts, while
    /// the process has its privileges.
    ///
    /// # Errors
    /// When a back-end was asked for that is not to be had; `auto` steps down instead.
    pub fn choose(wish: IoWish, interfaces: Interfaces<'_>, workers: Option<usize>) -> Result<Self, IoError> {
        let Interfaces { names: interfaces, kernel_relay } = interfaces;
        let workers = count(workers);
        let refuse = |why| IoError::new(wish, why);
        let asked = || "it was asked for".to_owned();
        let with = |used, reason, kernel| Self { used, reason, workers, kernel };
        match wish {
            IoWish::Epoll => Ok(Self::sockets(Some(workers))),
            IoWish::Uring => {
                uring::probe().map_err(refuse)?;
                Ok(with(wish, asked(), None))
            }
            IoWish::Xdp => {
                let mut kernel = Kernel::set_up(workers, kernel_relay).map_err(refuse)?;
                let on = kernel.add_interfaces(interfaces).map_err(refuse)?;
                Ok(with(wish, format!("it was asked for; on {on}"), Some(kernel)))
            }
            IoWish::SkLookup => {
                Ok(with(wish, asked(), Some(Kernel::set_up(workers, false).map_err(refuse)?)))
            }
            IoWish::Auto => {
                let mut kernel = match Kernel::set_up(workers, kernel_relay && !interfaces.is_empty()) {
                    Ok(kernel) => kernel,
                    Err(Refused { why, remedy }) => {
                        let reason = format!("sklookup is not to be had: {why}; {remedy}");
                        return Ok(with(IoWish::Epoll, reason, None));
                    }
                };
                // A driver may take its link down for a second when a program is attached: not without being told to.
                if interfaces.is_empty() {
                    let reason =
                        "kernel and privileges allow it; xdp wants media_interfaces in rtp.conf".to_owned();
                    return Ok(with(IoWish::SkLookup, reason, Some(kernel)));
                }
                Ok(match kernel.add_interfaces(interfaces) {
                    Ok(on) => {
                        with(IoWish::Xdp, format!("kernel and privileges allow it; on {on}"), Some(kernel))
                    }
                    Err(Refused { why, remedy }) => {
                        // What was set up on some of the interfaces goes with the first attempt.
                        drop(kernel);
                        let reason = format!("xdp is not to be had: {why}; {remedy}");
                        match Kernel::set_up(workers, false) {
                            Ok(kernel) => with(IoWish::SkLookup, reason, Some(kernel)),
                            Err(_) => with(IoWish::Epoll, reason, None),
                        }
                    }
                })
            }
        }
    }
    /// What moves packets, as a heading.
    pub fn name(&self) -> &'static str {
        match self.used {
            IoWish::Xdp => "xdp, AF_XDP sockets and one socket a worker",
            IoWish::SkLookup => "sklookup, one socket a worker",
            IoWish::Uring => "uring, one socket a leg",
            _ => "epoll, one socket a leg",
        }
    }
    /// Which it is.
    pub const fn used(&self) -> IoWish {
        self.used
    }
    /// Whether bridges that nobody listens to are relayed by the XDP program; why not, otherwise.
    ///
    /// # Errors
    /// The reason in words.
    pub fn kernel_relay(&self) -> Result<(), &str> {
        match &self.kernel {
            Some(kernel) if self.used == IoWish::Xdp => kernel.why_no_relay().map_or(Ok(()), Err),
            _ => Err("it needs media_io=xdp"),
        }
    }
    /// Why this one.
    pub fn reason(&self) -> &str {
        &self.reason
    }
    pub(crate) const fn workers(&self) -> usize {
        self.workers
    }
    /// The back-end of one worker; once.
    pub(crate) fn take_worker(&mut self, number: usize) -> io::Result<MediaIo> {
        let steered = self.kernel.as_mut().and_then(|kernel| kernel.take_worker(number));
        Ok(MediaIo {
            sockets: OwnSockets::new()?,
            wants_uring: self.used == IoWish::Uring,
            has_sockets: false,
            steered: steered.map(Box::new),
            steered_done: false,
            pipe: None,
        })
    }
    /// A leg on a port that was leased and bound, for a stream that will live on `worker`. What arrives waits from here on.
    pub(crate) fn leg(
        &self,
        (worker, slot): (usize, u32),
        ip: IpAddr,
        (lease, socket): (Lease, UdpSocket),
        wants_rtcp: bool,
        marking: Marking,
    ) -> Leg {
        match (&self.kernel, ip) {
            // The bind has shown that no other program has the port. On all addresses at once a port is the kernel's.
            (Some(kernel), IpAddr::V4(ip)) if !ip.is_unspecified() => {
                drop(socket);
                let leg = SteeredLeg::new(ip, lease, wants_rtcp, marking, kernel.ports.clone());
                // A worker more than there is room for has no back-end that could be set up.
                leg.attach(u16::try_from(worker).unwrap_or(u16::MAX), slot);
                Leg::Steered(leg)
            }
            _ => Leg::Socket(SocketLeg::new(ip, (lease, socket), wants_rtcp, marking)),
        }
    }
}

fn count(workers: Option<usize>) -> usize {
    workers.unwrap_or_else(|| super::sys::allowed_processors().len().saturating_sub(1)).max(1)
}

/// The ports of one stream, whichever back-end serves them. IPv6 always has sockets of its own.
#[derive(Debug)]
#[allow(clippy::large_enum_variant, reason = "a box would cost a leg an allocation and each packet a jump")]
pub(crate) enum Leg {
    /// With sockets of its own.
    Socket(SocketLeg),
    /// On a worker's socket.
    Steered(SteeredLeg),
    /// Without ports: what it receives and sends passes through the signalling shard.
    Piped(StreamId),
}

/// A worker's ends of the pipes to and from the shard.
pub(crate) struct Pipe {
    from_shard: Outlet,
    to_shard: Inlet,
    /// Whose packets are let in, by slot: one that waited while its stream ended is not the next stream's.
    streams: Vec<Option<StreamId>>,
    /// Something was put in since the shard was told.
    has_put: bool,
    /// Packets of both directions so far.
    moved: u64,
}

impl Pipe {
    pub(crate) const fn new(from_shard: Outlet, to_shard: Inlet) -> Self {
        Self { from_shard, to_shard, streams: Vec::new(), has_put: false, moved: 0 }
    }
    fn attach(&mut self, stream: StreamId) {
        let slot = stream.slot as usize;
        if self.streams.len() <= slot {
            self.streams.resize(slot + 1, None);
        }
        if let Some(place) = self.streams.get_mut(slot) {
            *place = Some(stream);
        }
    }
    fn detach(&mut self, stream: StreamId) {
        if let Some(place) = self.streams.get_mut(stream.slot as usize) {
            *place = None;
        }
    }
    /// Moves packets into the batch, as many as have room.
    fn receive(&mut self, batch: &mut Batch) {
        while let Some(room) = batch.room() {
            let Some((stream, length)) = self.from_shard.take(room) else { return };
            if self.streams.get(stream.slot as usize) == Some(&Some(stream)) {
                batch.push(Arrival { slot: stream.slot, rtcp: false, from: PIPE, length });
                self.moved += 1;
            }
        }
    }
}

/// What one worker receives from and sends to.
pub(crate) struct MediaIo {
    sockets: OwnSockets,
    wants_uring: bool,
    /// There was a leg with sockets of its own: before the first nobody looks for what they received.
    has_sockets: bool,
    steered: Option<Box<SteeredIo>>,
    /// In this receive phase nothing is left of theirs.
    steered_done: bool,
    /// To the shard, where there is one.
    pipe: Option<Box<Pipe>>,
}

impl MediaIo {
    /// What only the worker's own thread can make; says what is used instead when that fails.
    pub(crate) fn begin(&mut self) -> Option<String> {
        let made = if self.wants_uring { self.sockets.use_uring() } else { Ok(()) };
        made.err().map(|why| format!("a media worker uses epoll instead of io_uring: {why}"))
    }
    /// Streams may be piped from here on.
    pub(crate) fn connect(&mut self, pipe: Pipe) {
        self.pipe = Some(Box::new(pipe));
    }
    /// Whether the shard has packets to fetch that it was not told of.
    pub(crate) fn has_piped(&mut self) -> bool {
        self.pipe.as_mut().is_some_and(|pipe| std::mem::take(&mut pipe.has_put))
    }
    /// Packets of streams without ports so far.
    pub(crate) fn piped(&self) -> u64 {
        self.pipe.as_ref().map_or(0, |pipe| pipe.moved)
    }
    /// Datagrams received by AF_XDP.
    pub(crate) fn by_xdp(&self) -> u64 {
        self.steered.as_ref().map_or(0, |steered| steered.by_xdp())
    }
    /// Packets that were taken for sending and that no socket took.
    pub(crate) fn refused(&self) -> u64 {
        let piped = self.pipe.as_ref().map_or(0, |pipe| pipe.to_shard.lost());
        self.sockets.refused() + self.steered.as_ref().map_or(0, |steered| steered.refused()) + piped
    }
}

impl PacketIo for MediaIo {
    type Leg = Leg;

    fn attach(&mut self, slot: u32, leg: &mut Leg) -> bool {
        match leg {
            Leg::Socket(leg) => {
                self.has_sockets = true;
                self.sockets.attach(slot, leg)
            }
            Leg::Steered(leg) => self.steered.as_mut().is_some_and(|steered| steered.attach(slot, leg)),
            Leg::Piped(stream) => self.pipe.as_mut().map(|pipe| pipe.attach(*stream)).is_some(),
        }
    }
    fn detach(&mut self, leg: &mut Leg) {
        match (leg, &mut self.steered) {
            (Leg::Socket(leg), _) => self.sockets.detach(leg),
            (Leg::Steered(leg), Some(steered)) => steered.detach(leg),
            (Leg::Steered(_), None) => {}
            (Leg::Piped(stream), _) => {
                if let Some(pipe) = &mut self.pipe {
                    pipe.detach(*stream);
                }
            }
        }
    }
    fn rx_batch(&mut self, batch: &mut Batch) -> bool {
        if let Some(pipe) = &mut self.pipe {
            pipe.receive(batch);
            if !batch.is_empty() {
                return true;
            }
        }
        if !self.steered_done
            && let Some(steered) = &mut self.steered
        {
            if steered.rx_batch(batch) {
                return true;
            }
            self.steered_done = true;
        }
        let more = self.has_sockets && self.sockets.rx_batch(batch);
        self.steered_done = more;
        more
    }
    fn put(&mut self, slot: u32, leg: &mut Leg, to: SocketAddr, packet: &[u8]) -> bool {
        match (leg, &mut self.steered) {
            (Leg::Socket(leg), _) => self.sockets.put(slot, leg, to, packet),
            (Leg::Steered(leg), Some(steered)) => steered.put(slot, leg, to, packet),
            (Leg::Steered(_), None) => false,
            (Leg::Piped(stream), _) => self.pipe.as_mut().is_some_and(|pipe| {
                pipe.has_put = true;
                pipe.moved += 1;
                pipe.to_shard.put(*stream, packet)
            }),
        }
    }
    fn put_rtcp(&mut self, slot: u32, leg: &mut Leg, to: SocketAddr, shared: bool, packet: &[u8]) -> bool {
        match (leg, &mut self.steered) {
            (Leg::Socket(leg), _) => self.sockets.put_rtcp(slot, leg, to, shared, packet),
            (Leg::Steered(leg), Some(steered)) => steered.put_rtcp(slot, leg, to, shared, packet),
            (Leg::Steered(_) | Leg::Piped(_), _) => false,
        }
    }
    fn lock(&mut self, leg: &mut Leg, source: Option<SocketAddr>) {
        match (leg, &mut self.steered) {
            (Leg::Socket(leg), _) => self.sockets.lock(leg, source),
            (Leg::Steered(leg), Some(steered)) => steered.lock(leg, source),
            (Leg::Steered(_) | Leg::Piped(_), _) => {}
        }
    }
    fn relay(&mut self, from: &mut Leg, to: &mut Leg, plan: &RelayPlan) -> bool {
        match (from, to, &mut self.steered) {
            (Leg::Steered(from), Leg::Steered(to), Some(steered)) => steered.relay(from, to, plan),
            _ => false,
        }
    }
    fn relayed(&mut self, leg: &mut Leg) -> Option<Relayed> {
        match (leg, &mut self.steered) {
            (Leg::Steered(leg), Some(steered)) => steered.relayed(leg),
            _ => None,
        }
    }
    fn unrelay(&mut self, leg: &mut Leg) -> Option<Relayed> {
        match (leg, &mut self.steered) {
            (Leg::Steered(leg), Some(steered)) => steered.unrelay(leg),
            _ => None,
        }
    }
    fn tx_batch(&mut self) {
        if let Some(steered) = &mut self.steered {
            steered.tx_batch();
        }
        if self.has_sockets {
            self.sockets.tx_batch();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_of_the_setting_are_read_and_others_are_named() {
        for (wish, name) in IoWish::ALL {
            assert_eq!(name.parse(), Ok(wish));
            assert_eq!(wish.name(), name);
        }
        assert!("dpdk".parse::<IoWish>().unwrap_err().to_string().contains("'dpdk'"));
    }

    #[test]
    fn a_back_end_that_is_not_to_be_had_is_an_error_with_a_remedy_when_it_was_asked_for() {
        match Io::choose(IoWish::Uring, Interfaces::default(), Some(1)) {
            Ok(io) => assert_eq!(io.used(), IoWish::Uring),
            Err(error) => assert!(
                error.to_string().starts_with("media_io=uring: ") && error.remedy().contains("epoll"),
                "{error}"
            ),
        }
        let error = Io::choose(IoWish::SkLookup, Interfaces::default(), Some(10_000)).unwrap_err();
        assert!(!error.remedy().is_empty(), "{error}");
        // Left to itself it steps down, and says why.
        let io = Io::choose(IoWish::Auto, Interfaces::default(), Some(10_000)).unwrap();
        assert_eq!(io.used(), IoWish::Epoll);
        assert!(io.reason().starts_with("sklookup is not to be had: "), "{}", io.reason());
        assert_eq!(Io::choose(IoWish::Epoll, Interfaces::default(), None).unwrap().used(), IoWish::Epoll);
    }
}
