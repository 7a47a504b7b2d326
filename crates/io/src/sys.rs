//! The few system calls that `std` does not offer, each behind a safe function.
//!
//! This room knows nothing of SIP, flows or deadlines: it turns addresses and slices into what Linux wants.
//! All `unsafe` of the signalling side is here; what concerns the process itself is in `process`.
#![allow(unsafe_code)]

pub(crate) mod probe;
pub(crate) mod process;

use std::io;
use std::iter;
use std::mem;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::ptr;
use std::time::Duration;

use libc::{c_int, c_void, socklen_t};

/// Most datagrams that one system call moves. More than 64 saves less than one percent of the call's price.
pub(crate) const BATCH: usize = 64;
/// What one turn of a shard with little to do moves: the tables of a whole batch, 18 kB, would be cleared for nothing.
pub(crate) const SMALL_BATCH: usize = 4;
/// Longest UDP payload there is, rounded to a power of two so that no datagram is ever cut.
const DATAGRAM_BYTES: usize = 65_536;
/// Room for one `in6_pktinfo` control message (40 bytes with its header), rounded up.
const CONTROL_BYTES: usize = 64;

/// A file descriptor's answer as a `Result`.
fn check(result: c_int) -> io::Result<c_int> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

fn check_size(result: isize) -> io::Result<usize> {
    usize::try_from(result).map_err(|_| io::Error::last_os_error())
}

fn own(result: c_int) -> io::Result<OwnedFd> {
    let fd = check(result)?;
    // SAFETY: the kernel has just returned this descriptor and nobody else knows it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Length of `T` as the kernel counts it.
fn len_of<T>() -> socklen_t {
    // Every caller passes a kernel structure of at most 128 bytes.
    mem::size_of::<T>() as socklen_t
}

/// A socket address in the kernel's own layout.
#[derive(Clone, Copy)]
pub(crate) struct RawAddr {
    storage: libc::sockaddr_storage,
    len: socklen_t,
}

impl RawAddr {
    fn empty() -> Self {
        // SAFETY: all-zero bytes are a valid `sockaddr_storage` (family AF_UNSPEC).
        let storage = unsafe { mem::zeroed() };
        Self { storage, len: len_of::<libc::sockaddr_storage>() }
    }

    pub(crate) fn new(addr: SocketAddr) -> Self {
        let mut raw = Self::empty();
        match addr {
            SocketAddr::V4(v4) => {
                let sin = libc::sockaddr_in {
                    sin_family: libc::AF_INET as libc::sa_family_t,
                    sin_port: v4.port().to_be(),
                    sin_addr: to_in_addr(*v4.ip()),
                    sin_zero: [0; 8],
                };
                // SAFETY: `sockaddr_storage` is larger than and at least as aligned as `sockaddr_in`.
                unsafe { ptr::write((&raw mut raw.storage).cast(), sin) };
                raw.len = len_of::<libc::sockaddr_in>();
            }
            SocketAddr::V6(v6) => {
                let sin6 = libc::sockaddr_in6 {
                    sin6_family: libc::AF_INET6 as libc::sa_family_t,
                    sin6_port: v6.port().to_be(),
                    sin6_flowinfo: v6.flowinfo(),
                    sin6_addr: libc::in6_addr { s6_addr: v6.ip().octets() },
                    sin6_scope_id: v6.scope_id(),
                };
                // SAFETY: `sockaddr_storage` is larger than and at least as aligned as `sockaddr_in6`.
                unsafe { ptr::write((&raw mut raw.storage).cast(), sin6) };
                raw.len = len_of::<libc::sockaddr_in6>();
            }
        }
        raw
    }

    /// The address in `std`'s words; `None` for families other than IP (unix sockets).
    fn to_std(self) -> Option<SocketAddr> {
        match c_int::from(self.storage.ss_family) {
            libc::AF_INET => {
                // SAFETY: the family says that the kernel wrote a `sockaddr_in` here.
                let sin: libc::sockaddr_in = unsafe { ptr::read((&raw const self.storage).cast()) };
                let ip = Ipv4Addr::from(u32::from_be(sin.sin_addr.s_addr));
                Some(SocketAddr::V4(SocketAddrV4::new(ip, u16::from_be(sin.sin_port))))
            }
            libc::AF_INET6 => {
                // SAFETY: the family says that the kernel wrote a `sockaddr_in6` here.
                let sin6: libc::sockaddr_in6 = unsafe { ptr::read((&raw const self.storage).cast()) };
                let ip = Ipv6Addr::from(sin6.sin6_addr.s6_addr);
                let port = u16::from_be(sin6.sin6_port);
                Some(SocketAddr::V6(SocketAddrV6::new(ip, port, sin6.sin6_flowinfo, sin6.sin6_scope_id)))
            }
            _ => None,
        }
    }

    pub(crate) fn as_ptr(&self) -> *const libc::sockaddr {
        (&raw const self.storage).cast()
    }

    pub(crate) fn len(&self) -> socklen_t {
        self.len
    }
}

fn to_in_addr(ip: Ipv4Addr) -> libc::in_addr {
    libc::in_addr { s_addr: u32::from(ip).to_be() }
}

/// A non-blocking, close-on-exec IP socket of `kind` (`SOCK_DGRAM` or `SOCK_STREAM`) for the family of `addr`.
pub(crate) fn socket(addr: SocketAddr, kind: c_int) -> io::Result<OwnedFd> {
    let family = if addr.is_ipv4() { libc::AF_INET } else { libc::AF_INET6 };
    // SAFETY: `socket` takes no pointers.
    let fd = own(unsafe { libc::socket(family, kind | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC, 0) })?;
    if addr.is_ipv6() {
        // A v6 wildcard that also took v4 would collide with the v4 bind beside it and show mapped addresses.
        set_option(&fd, libc::IPPROTO_IPV6, libc::IPV6_V6ONLY, 1)?;
    }
    Ok(fd)
}

/// Sets one integer socket option.
pub(crate) fn set_option(fd: &impl AsRawFd, level: c_int, name: c_int, value: c_int) -> io::Result<()> {
    // SAFETY: the pointer and length describe `value`, which outlives the call.
    let result = unsafe {
        libc::setsockopt(fd.as_raw_fd(), level, name, (&raw const value).cast(), len_of::<c_int>())
    };
    check(result).map(drop)
}

/// Marks what a socket sends. Of an IPv6 socket the traffic class, else the type of service.
pub(crate) fn mark(fd: &impl AsRawFd, v6: bool, marking: base::Marking) -> io::Result<()> {
    let (level, name) =
        if v6 { (libc::IPPROTO_IPV6, libc::IPV6_TCLASS) } else { (libc::IPPROTO_IP, libc::IP_TOS) };
    // The type of service sets a priority of its own, so the one that was asked for comes after it.
    set_option(fd, level, name, marking.tos.into())?;
    set_option(fd, libc::SOL_SOCKET, libc::SO_PRIORITY, marking.priority.into())
}

/// Binds an IP socket.
pub(crate) fn bind(fd: &OwnedFd, addr: SocketAddr) -> io::Result<()> {
    let raw = RawAddr::new(addr);
    // SAFETY: pointer and length describe `raw`, which outlives the call.
    check(unsafe { libc::bind(fd.as_raw_fd(), raw.as_ptr(), raw.len) }).map(drop)
}

/// Starts listening with room for `backlog` connections that nobody accepted yet.
pub(crate) fn listen(fd: &OwnedFd, backlog: c_int) -> io::Result<()> {
    // SAFETY: no pointers.
    check(unsafe { libc::listen(fd.as_raw_fd(), backlog) }).map(drop)
}

/// Begins a connection; `Ok(false)` means that it is under way.
pub(crate) fn connect(fd: &OwnedFd, addr: SocketAddr) -> io::Result<bool> {
    let raw = RawAddr::new(addr);
    // SAFETY: pointer and length describe `raw`, which outlives the call.
    match check(unsafe { libc::connect(fd.as_raw_fd(), raw.as_ptr(), raw.len) }) {
        Ok(_) => Ok(true),
        Err(error) if error.raw_os_error() == Some(libc::EINPROGRESS) => Ok(false),
        Err(error) => Err(error),
    }
}

/// Takes one connection off a listener; the address is `None` on a unix socket.
pub(crate) fn accept(listener: &OwnedFd) -> io::Result<(OwnedFd, Option<SocketAddr>)> {
    let mut raw = RawAddr::empty();
    // SAFETY: address and length point into `raw`, whose length says how much room there is.
    let fd = own(unsafe {
        libc::accept4(
            listener.as_raw_fd(),
            (&raw mut raw.storage).cast(),
            &raw mut raw.len,
            libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC,
        )
    })?;
    Ok((fd, raw.to_std()))
}

/// The address a socket is bound to; `None` on a unix socket.
pub(crate) fn local_addr(fd: &OwnedFd) -> io::Result<Option<SocketAddr>> {
    let mut raw = RawAddr::empty();
    // SAFETY: address and length point into `raw`, whose length says how much room there is.
    check(unsafe { libc::getsockname(fd.as_raw_fd(), (&raw mut raw.storage).cast(), &raw mut raw.len) })?;
    Ok(raw.to_std())
}

/// How a connection attempt ended (`SO_ERROR`).
pub(crate) fn connect_result(fd: &OwnedFd) -> io::Result<()> {
    let mut error: c_int = 0;
    let mut len = len_of::<c_int>();
    // SAFETY: pointer and length describe `error`, which outlives the call.
    check(unsafe {
        libc::getsockopt(
            fd.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_ERROR,
            (&raw mut error).cast(),
            &raw mut len,
        )
    })?;
    if error == 0 { Ok(()) } else { Err(io::Error::from_raw_os_error(error)) }
}

/// The user and the group at the other end of a unix socket.
pub(crate) fn peer_ids(fd: &OwnedFd) -> io::Result<(u32, u32)> {
    let mut cred = libc::ucred { pid: 0, uid: 0, gid: 0 };
    let mut len = len_of::<libc::ucred>();
    // SAFETY: pointer and length describe `cred`, which outlives the call.
    check(unsafe {
        libc::getsockopt(
            fd.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_PEERCRED,
            (&raw mut cred).cast(),
            &raw mut len,
        )
    })?;
    Ok((cred.uid, cred.gid))
}

/// Reads from a stream socket.
pub(crate) fn recv(fd: &OwnedFd, buffer: &mut [u8]) -> io::Result<usize> {
    // SAFETY: pointer and length describe `buffer`.
    check_size(unsafe { libc::recv(fd.as_raw_fd(), buffer.as_mut_ptr().cast(), buffer.len(), 0) })
}

/// Writes to a stream socket; a peer that is gone is an error, never a signal.
pub(crate) fn send(fd: &OwnedFd, bytes: &[u8]) -> io::Result<usize> {
    // SAFETY: pointer and length describe `bytes`.
    check_size(unsafe { libc::send(fd.as_raw_fd(), bytes.as_ptr().cast(), bytes.len(), libc::MSG_NOSIGNAL) })
}

/// Says that nothing more will be written.
pub(crate) fn shutdown_write(fd: &OwnedFd) -> io::Result<()> {
    // SAFETY: no pointers.
    check(unsafe { libc::shutdown(fd.as_raw_fd(), libc::SHUT_WR) }).map(drop)
}

/// A unix stream listener whose file has exactly the permission bits `mode`.
///
/// The file is never reachable with wider permissions: it is made under a closed umask and widened afterwards.
/// The umask belongs to the whole process, so this is called before other threads make files.
pub(crate) fn bind_unix(path: &std::path::Path) -> io::Result<OwnedFd> {
    // SAFETY: `umask` cannot fail and takes no pointers.
    let before = unsafe { libc::umask(0o177) };
    let bound = std::os::unix::net::UnixListener::bind(path);
    // SAFETY: as above.
    unsafe { libc::umask(before) };
    let listener = bound?;
    listener.set_nonblocking(true)?;
    Ok(listener.into())
}

/// One control message's worth of aligned room.
#[repr(C, align(8))]
#[derive(Clone, Copy)]
struct Control([u8; CONTROL_BYTES]);

/// Datagrams received by one system call, in buffers that are reused for ever.
pub(crate) struct RecvBatch {
    /// Zeroed lazily by the kernel: only pages that datagrams reached count as memory.
    bytes: Vec<u8>,
    names: Vec<RawAddr>,
    control: Vec<Control>,
    sizes: [(usize, usize); BATCH],
}

/// What one place of a batch received: a datagram, or several of one sender that the kernel has left joined.
pub(crate) struct Received<'a> {
    pub(crate) from: SocketAddr,
    /// The address it was sent to, when the socket asks for it.
    pub(crate) local: Option<IpAddr>,
    bytes: &'a [u8],
    /// The length of each but the last, when there are several.
    segment: Option<usize>,
}

impl<'a> Received<'a> {
    /// The datagrams in order; one without bytes is one, too.
    pub(crate) fn datagrams(&self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        let parts = self.segment.and_then(|length| self.bytes.split_at_checked(length));
        let (first, rest) = parts.unwrap_or((self.bytes, &[]));
        iter::once(first).chain(rest.chunks(first.len().max(1)))
    }
}

impl RecvBatch {
    pub(crate) fn new() -> Self {
        Self {
            bytes: vec![0; BATCH * DATAGRAM_BYTES],
            names: vec![RawAddr::empty(); BATCH],
            control: vec![Control([0; CONTROL_BYTES]); BATCH],
            sizes: [(0, 0); BATCH],
        }
    }

    /// Fills at most `wanted` places and says how many; never blocks.
    pub(crate) fn receive(&mut self, fd: &OwnedFd, wanted: usize) -> io::Result<usize> {
        match wanted {
            0..=SMALL_BATCH => self.receive_up_to::<SMALL_BATCH>(fd, wanted.max(1)),
            _ => self.receive_up_to::<BATCH>(fd, wanted.min(BATCH)),
        }
    }

    fn receive_up_to<const N: usize>(&mut self, fd: &OwnedFd, wanted: usize) -> io::Result<usize> {
        let wanted = wanted.min(N);
        // SAFETY: all-zero bytes are a valid `iovec` and a valid `mmsghdr` (null pointers, zero lengths).
        let (mut parts, mut heads): ([libc::iovec; N], [libc::mmsghdr; N]) =
            unsafe { (mem::zeroed(), mem::zeroed()) };
        let buffers = self.bytes.chunks_exact_mut(DATAGRAM_BYTES);
        let places =
            heads.iter_mut().zip(&mut parts).zip(&mut self.names).zip(&mut self.control).zip(buffers);
        for ((((head, part), name), control), buffer) in places.take(wanted) {
            *part = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
            head.msg_hdr.msg_name = (&raw mut name.storage).cast();
            head.msg_hdr.msg_namelen = len_of::<libc::sockaddr_storage>();
            head.msg_hdr.msg_iov = part;
            head.msg_hdr.msg_iovlen = 1;
            head.msg_hdr.msg_control = control.0.as_mut_ptr().cast();
            head.msg_hdr.msg_controllen = CONTROL_BYTES;
        }
        // SAFETY: the first `wanted` heads point at buffers, names and control room inside `self`, each with its
        // true length, and nothing moves them before the call returns.
        let count = check(unsafe {
            libc::recvmmsg(
                fd.as_raw_fd(),
                heads.as_mut_ptr(),
                wanted as libc::c_uint,
                libc::MSG_DONTWAIT,
                ptr::null_mut(),
            )
        })?;
        let count = usize::try_from(count).unwrap_or(0);
        for ((head, size), name) in heads.iter().zip(&mut self.sizes).zip(&mut self.names).take(count) {
            *size = (head.msg_len as usize, head.msg_hdr.msg_controllen);
            name.len = head.msg_hdr.msg_namelen;
        }
        Ok(count)
    }

    /// What is in place `index` of the last `receive`; `None` outside it or when it came from no IP address.
    pub(crate) fn get(&self, index: usize) -> Option<Received<'_>> {
        let (len, control_len) = *self.sizes.get(index)?;
        let bytes = self.bytes.chunks_exact(DATAGRAM_BYTES).nth(index)?.get(..len)?;
        let from = self.names.get(index)?.to_std()?;
        let control = self.control.get(index)?.0.get(..control_len)?;
        let local = Messages(control).find_map(|(level, kind, body)| destination(level, kind, body));
        let segment = Messages(control).find_map(|(level, kind, body)| segment(level, kind, body));
        Some(Received { from, local, bytes, segment })
    }
}

/// Control room of a report: the report with an IPv6 address takes 64 bytes, and the packet's own addresses stand before it.
const REPORT_CONTROL_BYTES: usize = 256;

#[repr(align(8))]
struct ReportControl([u8; REPORT_CONTROL_BYTES]);

/// What the network said of a datagram of ours.
pub(crate) struct NetworkError {
    /// Whom it was for.
    pub(crate) to: SocketAddr,
    /// Nothing can be delivered there (RFC 1122 §3.2.2.1, RFC 4443 §3.1), as opposed to what passes.
    pub(crate) is_unreachable: bool,
    /// Bytes of the datagram that are quoted, at the front of the buffer.
    pub(crate) quoted: usize,
}

/// Takes the next report out of the error queue of a datagram socket that was given one (`report_errors`); `None` when it is
/// empty. `Some(None)` is a report of something else than a peer.
pub(crate) fn next_error(fd: &OwnedFd, buffer: &mut [u8]) -> Option<Option<NetworkError>> {
    let mut name = RawAddr::empty();
    let mut control = ReportControl([0; REPORT_CONTROL_BYTES]);
    // SAFETY: all-zero bytes are a valid `msghdr` (null pointers, zero lengths).
    let mut head: libc::msghdr = unsafe { mem::zeroed() };
    let mut part = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
    head.msg_name = (&raw mut name.storage).cast();
    head.msg_namelen = len_of::<libc::sockaddr_storage>();
    head.msg_iov = &raw mut part;
    head.msg_iovlen = 1;
    head.msg_control = control.0.as_mut_ptr().cast();
    head.msg_controllen = REPORT_CONTROL_BYTES;
    // SAFETY: `head` points at `name`, `part` and `control`, which live until after the call, each with its true length.
    let size =
        unsafe { libc::recvmsg(fd.as_raw_fd(), &raw mut head, libc::MSG_ERRQUEUE | libc::MSG_DONTWAIT) };
    let quoted = check_size(size).ok()?;
    name.len = head.msg_namelen;
    let report = extended_error(control.0.get(..head.msg_controllen).unwrap_or_default());
    let of_peer = name.to_std().zip(report).map(|(to, (origin, kind, code))| NetworkError {
        to,
        is_unreachable: is_unreachable(origin, kind, code),
        quoted: quoted.min(buffer.len()),
    });
    Some(of_peer)
}

/// The messages of a control block that the kernel wrote: level, kind and body of each.
struct Messages<'a>(&'a [u8]);

impl<'a> Iterator for Messages<'a> {
    type Item = (c_int, c_int, &'a [u8]);
    fn next(&mut self) -> Option<Self::Item> {
        let header = mem::size_of::<libc::cmsghdr>();
        if self.0.len() < header {
            return None;
        }
        // SAFETY: the block holds at least one header; `read_unaligned` asks nothing of its alignment.
        let head: libc::cmsghdr = unsafe { ptr::read_unaligned(self.0.as_ptr().cast()) };
        let length = head.cmsg_len.min(self.0.len());
        let body = self.0.get(header..length)?;
        // Messages begin at multiples of the size of a word.
        let next = length.next_multiple_of(mem::size_of::<usize>());
        self.0 = self.0.get(next..).unwrap_or_default();
        Some((head.cmsg_level, head.cmsg_type, body))
    }
}

/// Origin, ICMP type and ICMP code of the report in a control block.
fn extended_error(control: &[u8]) -> Option<(u8, u8, u8)> {
    const REPORTS: [(c_int, c_int); 2] =
        [(libc::IPPROTO_IP, libc::IP_RECVERR), (libc::IPPROTO_IPV6, libc::IPV6_RECVERR)];
    let (.., body) = Messages(control).find(|(level, kind, _)| REPORTS.contains(&(*level, *kind)))?;
    // struct sock_extended_err: errno in four bytes, then origin, type and code.
    Some((*body.get(4)?, *body.get(5)?, *body.get(6)?))
}

/// Whether a message of ICMP says that nothing can be delivered (RFC 3261 §18.4: host, network, port or protocol
/// unreachable, or a parameter problem), and not only that a router is busy or a packet was too long.
fn is_unreachable(origin: u8, kind: u8, code: u8) -> bool {
    const FRAGMENTATION_NEEDED: u8 = 4;
    match origin {
        libc::SO_EE_ORIGIN_ICMP => kind == 3 && code != FRAGMENTATION_NEEDED || kind == 12,
        libc::SO_EE_ORIGIN_ICMP6 => kind == 1 || kind == 4,
        _ => false,
    }
}

/// The destination address, when a control message tells it.
fn destination(level: c_int, kind: c_int, body: &[u8]) -> Option<IpAddr> {
    match (level, kind) {
        // struct in_pktinfo: interface, address to answer from, address in the packet; four bytes each.
        (libc::IPPROTO_IP, libc::IP_PKTINFO) => {
            let octets: [u8; 4] = body.get(8..12)?.try_into().ok()?;
            Some(IpAddr::V4(Ipv4Addr::from(octets)))
        }
        // struct in6_pktinfo: sixteen bytes of address, then the interface.
        (libc::IPPROTO_IPV6, libc::IPV6_PKTINFO) => {
            let octets: [u8; 16] = body.get(..16)?.try_into().ok()?;
            Some(IpAddr::V6(Ipv6Addr::from(octets)))
        }
        _ => None,
    }
}

/// The length of the datagrams that the kernel has left joined, when a control message tells it.
fn segment(level: c_int, kind: c_int, body: &[u8]) -> Option<usize> {
    if (level, kind) != (libc::SOL_UDP, libc::UDP_GRO) {
        return None;
    }
    let length = c_int::from_ne_bytes(body.get(..4)?.try_into().ok()?);
    usize::try_from(length).ok().filter(|length| *length > 0)
}

/// A datagram that waits to be sent; its bytes are `arena[start..start + len]`.
#[derive(Clone, Copy)]
pub(crate) struct Outgoing {
    pub(crate) to: SocketAddr,
    /// The source address to use on a wildcard bind.
    pub(crate) local: Option<IpAddr>,
    pub(crate) start: usize,
    pub(crate) len: usize,
}

/// Fewer datagrams than these are not joined: there is little to gain, and each network device takes them as they are.
const JOINED_LEAST: usize = 4;
/// Most datagrams that the kernel takes as one (UDP_MAX_SEGMENTS of Linux 4.18).
const JOINED_MOST: usize = 64;
/// Most bytes of datagrams that are joined, so that they are one datagram of IP.
const JOINED_BYTES: usize = 65_000;
/// Longest datagram that is joined to others: what an Ethernet carries whole by IPv6 as by IPv4.
const SEGMENT_BYTES: usize = 1452;

/// How many datagrams, from the first on, may be sent as one message, which the kernel takes apart again, or the receiver
/// when it is on this machine: of one length, to one address, one behind the other in the arena. The last may be shorter.
pub(crate) fn joined(datagrams: &[Outgoing]) -> usize {
    let Some((first, others)) = datagrams.split_first() else { return 0 };
    if first.len == 0 || first.len > SEGMENT_BYTES {
        return 1;
    }
    let (mut count, mut end) = (1, first.start + first.len);
    for next in others.iter().take(JOINED_MOST - 1) {
        let follows = next.to == first.to && next.local == first.local && next.start == end;
        let fits = (1..=first.len).contains(&next.len) && end + next.len - first.start <= JOINED_BYTES;
        if !(follows && fits) {
            break;
        }
        (count, end) = (count + 1, end + next.len);
        if next.len < first.len {
            break;
        }
    }
    if count < JOINED_LEAST { 1 } else { count }
}

/// Sends datagrams with one system call and says how many the kernel took. With `joins`, those that can be are joined.
///
/// An error means that the first of them, or those that are joined to it, could not be sent.
pub(crate) fn send_batch(
    fd: &OwnedFd,
    arena: &[u8],
    datagrams: &[Outgoing],
    joins: bool,
) -> io::Result<usize> {
    match datagrams {
        [one] if one.local.is_none() => send_one(fd, arena, one),
        few if few.len() <= SMALL_BATCH => send_up_to::<SMALL_BATCH>(fd, arena, few, joins),
        many => send_up_to::<BATCH>(fd, arena, many, joins),
    }
}

/// Most turns of a quiet socket send one, which needs none of the tables of many.
fn send_one(fd: &OwnedFd, arena: &[u8], datagram: &Outgoing) -> io::Result<usize> {
    let bytes = arena.get(datagram.start..datagram.start + datagram.len).unwrap_or_default();
    let name = RawAddr::new(datagram.to);
    // SAFETY: the bytes and the name outlive the call, each with its true length; the kernel only reads them.
    let sent = unsafe {
        libc::sendto(
            fd.as_raw_fd(),
            bytes.as_ptr().cast(),
            bytes.len(),
            libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL,
            (&raw const name.storage).cast(),
            name.len,
        )
    };
    check_size(sent).map(|_| 1)
}

fn send_up_to<const N: usize>(
    fd: &OwnedFd,
    arena: &[u8],
    mut datagrams: &[Outgoing],
    joins: bool,
) -> io::Result<usize> {
    let mut names: [RawAddr; N] = [RawAddr::empty(); N];
    let mut control = [Control([0; CONTROL_BYTES]); N];
    let (mut counts, mut messages) = ([0; N], 0);
    // SAFETY: all-zero bytes are a valid `iovec` and a valid `mmsghdr` (null pointers, zero lengths).
    let (mut parts, mut heads): ([libc::iovec; N], [libc::mmsghdr; N]) =
        unsafe { (mem::zeroed(), mem::zeroed()) };
    let places = heads.iter_mut().zip(&mut parts).zip(&mut names).zip(&mut control).zip(&mut counts);
    for ((((head, part), name), control), count) in places {
        let Some(first) = datagrams.first() else { break };
        *count = if joins { joined(datagrams) } else { 1 };
        let (now, later) = datagrams.split_at_checked(*count).unwrap_or((datagrams, &[]));
        let len: usize = now.iter().map(|datagram| datagram.len).sum();
        let bytes = arena.get(first.start..first.start + len).unwrap_or(&[]);
        *name = RawAddr::new(first.to);
        *part = libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast::<c_void>(), iov_len: bytes.len() };
        head.msg_hdr.msg_name = (&raw mut name.storage).cast();
        head.msg_hdr.msg_namelen = name.len;
        head.msg_hdr.msg_iov = part;
        head.msg_hdr.msg_iovlen = 1;
        let mut used = first.local.map_or(0, |local| write_source(&mut control.0, local));
        if now.len() > 1 {
            used += write_segment(control.0.get_mut(used..).unwrap_or_default(), first.len);
        }
        if used > 0 {
            head.msg_hdr.msg_control = control.0.as_mut_ptr().cast();
            head.msg_hdr.msg_controllen = used;
        }
        (datagrams, messages) = (later, messages + 1);
    }
    // SAFETY: the first `messages` heads point at names, parts and control room on this stack frame and at bytes of
    // `arena`, each with its true length; the kernel only reads them.
    let sent = check(unsafe {
        libc::sendmmsg(
            fd.as_raw_fd(),
            heads.as_mut_ptr(),
            messages as libc::c_uint,
            libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL,
        )
    })?;
    Ok(counts.iter().take(usize::try_from(sent).unwrap_or(0)).sum())
}

/// Whether an error may be one of joined datagrams alone.
pub(crate) fn is_of_joining(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EINVAL | libc::EIO | libc::EMSGSIZE | libc::EOPNOTSUPP))
}

/// Writes a packet-info control message that chooses the source address; returns its length.
fn write_source(control: &mut [u8], local: IpAddr) -> usize {
    let mut body = [0; 20];
    match local {
        // struct in_pktinfo: interface, address to send from, address in the packet; four bytes each.
        IpAddr::V4(ip) => {
            body[4..8].copy_from_slice(&ip.octets());
            write_message(control, libc::IPPROTO_IP, libc::IP_PKTINFO, &body[..12])
        }
        // struct in6_pktinfo: sixteen bytes of address, then the interface.
        IpAddr::V6(ip) => {
            body[..16].copy_from_slice(&ip.octets());
            write_message(control, libc::IPPROTO_IPV6, libc::IPV6_PKTINFO, &body)
        }
    }
}

/// Writes a control message that says how long each of the joined datagrams is; returns its length.
fn write_segment(control: &mut [u8], length: usize) -> usize {
    let length = u16::try_from(length).unwrap_or(u16::MAX);
    write_message(control, libc::SOL_UDP, libc::UDP_SEGMENT, &length.to_ne_bytes())
}

/// Writes a control message at the front; returns its length in whole words, as CMSG_SPACE does, 0 without room for it.
fn write_message(control: &mut [u8], level: c_int, kind: c_int, body: &[u8]) -> usize {
    let header = mem::size_of::<libc::cmsghdr>();
    let Some((front, room)) = control.split_at_mut_checked(header) else { return 0 };
    let Some(room) = room.get_mut(..body.len()) else { return 0 };
    // SAFETY: all-zero bytes are a valid `cmsghdr`.
    let mut head: libc::cmsghdr = unsafe { mem::zeroed() };
    (head.cmsg_len, head.cmsg_level, head.cmsg_type) = (header + body.len(), level, kind);
    // SAFETY: `front` is as long as a header; `write_unaligned` asks nothing of its alignment.
    unsafe { ptr::write_unaligned(front.as_mut_ptr().cast(), head) };
    room.copy_from_slice(body);
    header + body.len().next_multiple_of(mem::size_of::<usize>())
}

/// A set of descriptors to wait for.
pub(crate) struct Epoll {
    fd: OwnedFd,
    /// Cleared on kernels before 5.11, which wait in whole milliseconds only.
    fine: bool,
}

/// One descriptor that is ready.
pub(crate) type Ready = libc::epoll_event;

/// An empty place for `Epoll::wait` to fill.
pub(crate) const NOT_READY: Ready = Ready { events: 0, u64: 0 };

impl Epoll {
    pub(crate) fn new() -> io::Result<Self> {
        // SAFETY: no pointers.
        let fd = own(unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) })?;
        Ok(Self { fd, fine: true })
    }

    fn control(&self, operation: c_int, fd: RawFd, interest: c_int, key: u64) -> io::Result<()> {
        let mut event = Ready { events: interest as u32, u64: key };
        // SAFETY: the event outlives the call, which only reads it.
        check(unsafe { libc::epoll_ctl(self.fd.as_raw_fd(), operation, fd, &raw mut event) }).map(drop)
    }

    /// Adds a descriptor; it leaves by being closed.
    pub(crate) fn add(&self, fd: BorrowedFd<'_>, interest: c_int, key: u64) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_ADD, fd.as_raw_fd(), interest, key)
    }

    /// Changes what a descriptor is watched for.
    pub(crate) fn modify(&self, fd: BorrowedFd<'_>, interest: c_int, key: u64) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_MOD, fd.as_raw_fd(), interest, key)
    }

    /// Takes a descriptor out.
    pub(crate) fn remove(&self, fd: BorrowedFd<'_>) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_DEL, fd.as_raw_fd(), 0, 0)
    }

    /// Waits until something is ready, `timeout` has passed (`None`: for ever) or a signal came; says how many.
    pub(crate) fn wait(&mut self, ready: &mut [Ready], timeout: Option<Duration>) -> io::Result<usize> {
        let result =
            if self.fine { self.wait_fine(ready, timeout) } else { self.wait_coarse(ready, timeout) };
        match result {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(0),
            Err(error) if self.fine && error.raw_os_error() == Some(libc::ENOSYS) => {
                self.fine = false;
                self.wait(ready, timeout)
            }
            other => other,
        }
    }

    fn wait_fine(&self, ready: &mut [Ready], timeout: Option<Duration>) -> io::Result<usize> {
        let time = timeout.map(|timeout| libc::timespec {
            tv_sec: libc::time_t::try_from(timeout.as_secs()).unwrap_or(libc::time_t::MAX),
            tv_nsec: libc::c_long::from(timeout.subsec_nanos()),
        });
        let time = time.as_ref().map_or(ptr::null(), ptr::from_ref);
        // SAFETY: pointer and count describe `ready`; the time is null or outlives the call; no signal mask.
        let count = unsafe {
            libc::syscall(
                libc::SYS_epoll_pwait2,
                self.fd.as_raw_fd(),
                ready.as_mut_ptr(),
                c_int::try_from(ready.len()).unwrap_or(c_int::MAX),
                time,
                ptr::null::<libc::sigset_t>(),
                0_usize,
            )
        };
        usize::try_from(count).map_err(|_| io::Error::last_os_error())
    }

    fn wait_coarse(&self, ready: &mut [Ready], timeout: Option<Duration>) -> io::Result<usize> {
        // Rounded up: waking early would spin until the deadline.
        let millis =
            timeout.map_or(-1, |t| c_int::try_from(t.as_micros().div_ceil(1000)).unwrap_or(c_int::MAX));
        // SAFETY: pointer and count describe `ready`.
        let count = check(unsafe {
            libc::epoll_wait(
                self.fd.as_raw_fd(),
                ready.as_mut_ptr(),
                c_int::try_from(ready.len()).unwrap_or(c_int::MAX),
                millis,
            )
        })?;
        Ok(usize::try_from(count).unwrap_or(0))
    }
}

/// A non-blocking event counter.
pub(crate) fn eventfd() -> io::Result<OwnedFd> {
    // SAFETY: no pointers.
    own(unsafe { libc::eventfd(0, libc::EFD_NONBLOCK | libc::EFD_CLOEXEC) })
}

/// Adds one to an event counter.
pub(crate) fn eventfd_add(fd: BorrowedFd<'_>) {
    let one: u64 = 1;
    // SAFETY: an eventfd takes eight bytes, which `one` has. A full counter (EAGAIN) already says "ready".
    let _written = unsafe { libc::write(fd.as_raw_fd(), (&raw const one).cast(), 8) };
}

/// Sets an event counter to zero.
pub(crate) fn eventfd_clear(fd: BorrowedFd<'_>) {
    let mut count: u64 = 0;
    // SAFETY: an eventfd gives eight bytes, for which `count` has room. EAGAIN means that it was zero.
    let _read = unsafe { libc::read(fd.as_raw_fd(), (&raw mut count).cast(), 8) };
}

/// Blocks `signals` in this thread (and those it starts later) and opens a descriptor that reads them.
pub(crate) fn signalfd(signals: &[c_int]) -> io::Result<OwnedFd> {
    // SAFETY: `sigemptyset`, `sigaddset` and `pthread_sigmask` write and read a set that lives on this frame.
    unsafe {
        let mut set: libc::sigset_t = mem::zeroed();
        libc::sigemptyset(&raw mut set);
        for &signal in signals {
            check(libc::sigaddset(&raw mut set, signal))?;
        }
        match libc::pthread_sigmask(libc::SIG_BLOCK, &raw const set, ptr::null_mut()) {
            0 => own(libc::signalfd(-1, &raw const set, libc::SFD_NONBLOCK | libc::SFD_CLOEXEC)),
            error => Err(io::Error::from_raw_os_error(error)),
        }
    }
}

/// The number of the next signal that waits in a signal descriptor.
pub(crate) fn signalfd_next(fd: &OwnedFd) -> Option<c_int> {
    let size = mem::size_of::<libc::signalfd_siginfo>();
    // SAFETY: all-zero bytes are a valid `signalfd_siginfo`; the kernel writes at most its size into it.
    let (info, read) = unsafe {
        let mut info: libc::signalfd_siginfo = mem::zeroed();
        let read = libc::read(fd.as_raw_fd(), (&raw mut info).cast(), size);
        (info, read)
    };
    (usize::try_from(read) == Ok(size)).then(|| c_int::try_from(info.ssi_signo).ok()).flatten()
}

/// Ignores a broken pipe, so that it comes back as an error of the write.
pub(crate) fn ignore_sigpipe() {
    // SAFETY: SIG_IGN is a valid disposition and no handler of ours is replaced.
    unsafe { libc::signal(libc::SIGPIPE, libc::SIG_IGN) };
}

/// Nanoseconds of a kernel clock.
pub(crate) fn clock_nanos(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` outlives the call. The clocks asked for exist on every Linux.
    unsafe { libc::clock_gettime(clock, &raw mut time) };
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    seconds.saturating_mul(1_000_000_000).saturating_add(u64::try_from(time.tv_nsec).unwrap_or(0))
}

/// Sends a signal to the calling thread.
#[cfg(test)]
pub(crate) fn raise(signal: c_int) {
    // SAFETY: no pointers; the tests that use it have blocked the signal.
    unsafe { libc::raise(signal) };
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Datagrams one behind the other, to these ports and of these lengths.
    fn run(datagrams: &[(u16, usize)]) -> Vec<Outgoing> {
        let mut start = 0;
        let each = |(port, len): &(u16, usize)| {
            let to = SocketAddr::from((Ipv4Addr::LOCALHOST, *port));
            let datagram = Outgoing { to, local: None, start, len: *len };
            start += len;
            datagram
        };
        datagrams.iter().map(each).collect()
    }

    #[test]
    fn datagrams_of_one_length_to_one_address_are_joined_and_the_last_may_be_shorter() {
        for (name, datagrams, expected) in [
            ("none", vec![], 0),
            ("one", vec![(1, 100)], 1),
            ("few", vec![(1, 100); 3], 1),
            ("enough", vec![(1, 100); 4], 4),
            ("a shorter one ends it", [[(1, 100); 4].as_slice(), &[(1, 50), (1, 50)]].concat(), 5),
            ("a longer one does not belong", [[(1, 100); 4].as_slice(), &[(1, 101)]].concat(), 4),
            ("to somebody else", [[(1, 100); 5].as_slice(), &[(2, 100)]].concat(), 5),
            ("nothing in the first", vec![(1, 0); 9], 1),
            ("nothing in the last", [[(1, 100); 4].as_slice(), &[(1, 0)]].concat(), 4),
            ("too long for an Ethernet", vec![(1, 1453); 9], 1),
            ("as many as the kernel takes", vec![(1, 10); 99], JOINED_MOST),
            ("as many bytes as a datagram has", vec![(1, 1452); 99], JOINED_BYTES / 1452),
        ] {
            assert_eq!(joined(&run(&datagrams)), expected, "{name}");
        }
        let mut apart = run(&[(1, 100); 9]);
        apart[4].start += 1;
        assert_eq!(joined(&apart), 4, "not one behind the other");
        apart[2].local = Some(Ipv4Addr::LOCALHOST.into());
        assert_eq!(joined(&apart), 1, "from another address of ours");
    }

    #[test]
    fn what_is_written_into_a_control_block_is_what_is_read_from_it() {
        for (local, used) in [("192.0.2.1", 32), ("2001:db8::1", 40)] {
            let (mut control, local): (_, IpAddr) = ([0; CONTROL_BYTES], local.parse().unwrap());
            let source = write_source(&mut control, local);
            let segment = write_segment(&mut control[source..], 1170);
            assert_eq!((source, segment), (used, 24), "both have room");
            let read: Vec<_> = Messages(&control[..source + segment]).collect();
            assert_eq!(read.len(), 2);
            assert_eq!(
                (read[1].0, read[1].1, read[1].2),
                (libc::SOL_UDP, libc::UDP_SEGMENT, &1170_u16.to_ne_bytes()[..])
            );
            assert_eq!(write_message(&mut control[..20], 1, 2, &[0; 8]), 0, "no room");
        }
        assert_eq!(Messages(&[0; 15]).count(), 0, "less than a message");
        assert!(Messages(&[0xff; 64]).count() <= 1, "a length that is not true");
    }
}
