//! System calls of the privileged back-ends, each behind a safe function: shared memory, packet and raw sockets, batches.
#![allow(unsafe_code)]

use std::io;
use std::mem;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr::{self, NonNull};
use std::sync::atomic::AtomicU64;

use libc::{c_int, c_uint};
use media::PACKET_BYTES_MAX;

/// Datagrams of one system call. More than 64 saves less than one percent of the call's price.
pub(crate) const BATCH: usize = 64;
/// Bytes of one frame that waits to be sent: what every way carries without fragments, with its headers.
pub(crate) const FRAME_BYTES: usize = 1344;
/// Room for one `sockaddr_in` control message with its header, rounded up.
const CONTROL_BYTES: usize = 64;

fn check(result: c_int) -> io::Result<c_int> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

/// Memory that is shared with the kernel, or at least with other threads.
#[derive(Debug)]
pub(crate) struct Shared {
    start: NonNull<AtomicU64>,
    bytes: usize,
}

// SAFETY: the memory is only reached as atomics, and belongs to this value until it is dropped.
unsafe impl Send for Shared {}
// SAFETY: as above.
unsafe impl Sync for Shared {}

impl Shared {
    /// The values of a BPF array map that was made to be shared.
    pub(crate) fn map(fd: BorrowedFd<'_>, bytes: usize) -> io::Result<Self> {
        Self::new(fd.as_raw_fd(), libc::MAP_SHARED, bytes)
    }
    /// Memory of our own, for tests.
    #[cfg(test)]
    pub(crate) fn anonymous(bytes: usize) -> io::Result<Self> {
        Self::new(-1, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, bytes)
    }
    fn new(fd: c_int, flags: c_int, bytes: usize) -> io::Result<Self> {
        // SAFETY: a new mapping at an address of the kernel's choice touches no memory of ours.
        let start =
            unsafe { libc::mmap(ptr::null_mut(), bytes, libc::PROT_READ | libc::PROT_WRITE, flags, fd, 0) };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let start = NonNull::new(start.cast()).ok_or(io::ErrorKind::Other)?;
        Ok(Self { start, bytes })
    }
    /// All of it.
    pub(crate) fn words(&self) -> &[AtomicU64] {
        // SAFETY: the mapping is page-aligned, `bytes` long and lives as long as `self`; any bytes are valid atomics.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.bytes / 8) }
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        // SAFETY: exactly what `new` mapped, and nobody has a reference any more.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.bytes) };
    }
}

/// A non-blocking, close-on-exec socket of any family.
pub(crate) fn open(family: c_int, kind: c_int, protocol: c_int) -> io::Result<OwnedFd> {
    // SAFETY: no pointers.
    let fd =
        check(unsafe { libc::socket(family, kind | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC, protocol) })?;
    // SAFETY: the kernel has just returned this descriptor and nobody else knows it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Makes a socket take nothing: a filter that accepts no byte.
pub(crate) fn refuse_all(fd: &OwnedFd) -> io::Result<()> {
    let mut nothing = libc::sock_filter { code: (libc::BPF_RET | libc::BPF_K) as u16, jt: 0, jf: 0, k: 0 };
    let program = libc::sock_fprog { len: 1, filter: &raw mut nothing };
    // SAFETY: the program and its one instruction outlive the call, and the length is theirs.
    check(unsafe {
        libc::setsockopt(
            fd.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_ATTACH_FILTER,
            (&raw const program).cast(),
            size_of::<libc::sock_fprog>() as u32,
        )
    })
    .map(drop)
}

/// The number of an interface; `None` when there is none of that name.
pub(crate) fn interface_index(name: &str) -> Option<u32> {
    let name = std::ffi::CString::new(name).ok()?;
    // SAFETY: the name is terminated and outlives the call.
    match unsafe { libc::if_nametoindex(name.as_ptr()) } {
        0 => None,
        index => Some(index),
    }
}

/// One control message's worth of aligned room.
#[repr(C, align(8))]
#[derive(Clone, Copy)]
struct Control([u8; CONTROL_BYTES]);

/// Datagrams taken from one socket by one system call, with the address that each was sent to.
pub(crate) struct Receiver {
    bytes: Box<[u8]>,
    names: Box<[libc::sockaddr_in]>,
    control: Box<[Control]>,
    parts: Box<[libc::iovec]>,
    heads: Box<[libc::mmsghdr]>,
    filled: usize,
}

// SAFETY: the pointers inside lead into the boxes beside them, which move with the value and nobody else holds.
unsafe impl Send for Receiver {}

/// One datagram.
pub(crate) struct Datagram<'a> {
    pub(crate) from: SocketAddrV4,
    pub(crate) to: SocketAddrV4,
    pub(crate) bytes: &'a [u8],
}

impl Receiver {
    pub(crate) fn new() -> Self {
        // SAFETY: all-zero bytes are valid `sockaddr_in`s, `iovec`s and `mmsghdr`s (null pointers, zero lengths).
        let (name, part, head): (libc::sockaddr_in, libc::iovec, libc::mmsghdr) =
            unsafe { (mem::zeroed(), mem::zeroed(), mem::zeroed()) };
        let mut receiver = Self {
            bytes: vec![0; BATCH * PACKET_BYTES_MAX].into(),
            names: vec![name; BATCH].into(),
            control: vec![Control([0; CONTROL_BYTES]); BATCH].into(),
            parts: vec![part; BATCH].into(),
            heads: vec![head; BATCH].into(),
            filled: 0,
        };
        let places = receiver
            .heads
            .iter_mut()
            .zip(&mut receiver.parts)
            .zip(&mut receiver.names)
            .zip(&mut receiver.control)
            .zip(receiver.bytes.chunks_exact_mut(PACKET_BYTES_MAX));
        for ((((head, part), name), control), buffer) in places {
            *part = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
            head.msg_hdr.msg_name = ptr::from_mut(name).cast();
            head.msg_hdr.msg_iov = part;
            head.msg_hdr.msg_iovlen = 1;
            head.msg_hdr.msg_control = control.0.as_mut_ptr().cast();
        }
        receiver
    }
    /// Takes what waits and says how many; never blocks.
    pub(crate) fn fill(&mut self, fd: &OwnedFd) -> usize {
        for head in &mut self.heads {
            head.msg_hdr.msg_namelen = size_of::<libc::sockaddr_in>() as u32;
            head.msg_hdr.msg_controllen = CONTROL_BYTES;
        }
        // SAFETY: every head points at a buffer, a name and control room inside the boxes of `self`, which are never
        // reallocated, each with its true length.
        let count = unsafe {
            libc::recvmmsg(
                fd.as_raw_fd(),
                self.heads.as_mut_ptr(),
                BATCH as c_uint,
                libc::MSG_DONTWAIT,
                ptr::null_mut(),
            )
        };
        self.filled = usize::try_from(count).unwrap_or(0);
        self.filled
    }
    /// A datagram of the last [`Self::fill`]; `None` beyond it, or when it does not say where it was sent to.
    pub(crate) fn get(&self, index: usize) -> Option<Datagram<'_>> {
        let head = self.heads.get(index).filter(|_| index < self.filled)?;
        let control = self.control.get(index)?.0.get(..head.msg_hdr.msg_controllen)?;
        let bytes = self.bytes.chunks_exact(PACKET_BYTES_MAX).nth(index)?.get(..head.msg_len as usize)?;
        Some(Datagram { from: to_std(self.names.get(index)?), to: destination(control)?, bytes })
    }
}

fn to_std(name: &libc::sockaddr_in) -> SocketAddrV4 {
    SocketAddrV4::new(Ipv4Addr::from(u32::from_be(name.sin_addr.s_addr)), u16::from_be(name.sin_port))
}

fn to_raw(address: SocketAddrV4) -> libc::sockaddr_in {
    libc::sockaddr_in {
        sin_family: libc::AF_INET as libc::sa_family_t,
        sin_port: address.port().to_be(),
        sin_addr: libc::in_addr { s_addr: u32::from(*address.ip()).to_be() },
        sin_zero: [0; 8],
    }
}

/// Where a datagram was sent to, by the one control message that the socket asks for.
fn destination(control: &[u8]) -> Option<SocketAddrV4> {
    let (header, data) = control.split_at_checked(size_of::<libc::cmsghdr>())?;
    // SAFETY: `header` has exactly the length of a `cmsghdr`; `read_unaligned` asks nothing of its alignment.
    let header: libc::cmsghdr = unsafe { ptr::read_unaligned(header.as_ptr().cast()) };
    let wanted = header.cmsg_level == libc::SOL_IP && header.cmsg_type == libc::IP_ORIGDSTADDR;
    let name = data.get(..size_of::<libc::sockaddr_in>()).filter(|_| wanted)?;
    // SAFETY: `name` has exactly the length of a `sockaddr_in`, of which any bytes are valid.
    let name: libc::sockaddr_in = unsafe { ptr::read_unaligned(name.as_ptr().cast()) };
    Some(to_std(&name))
}

/// Whom a waiting frame is for, in the words of the socket that it leaves by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Via {
    /// A packet socket and the interface: the frame has its Ethernet header.
    Interface(u32),
    /// A raw IP socket: the kernel finds the way. From this address of ours.
    Kernel(Ipv4Addr, Ipv4Addr),
}

#[repr(C, align(8))]
#[derive(Clone, Copy)]
struct SourceControl {
    header: libc::cmsghdr,
    info: libc::in_pktinfo,
}

/// A frame's address, whichever socket it leaves by.
#[derive(Clone, Copy)]
union Name {
    link: libc::sockaddr_ll,
    ip: libc::sockaddr_in,
}

/// Frames that wait to be sent. A run of them that leaves by one socket is one system call.
pub(crate) struct Outbox {
    bytes: Box<[u8]>,
    names: Box<[Name]>,
    sources: Box<[SourceControl]>,
    parts: Box<[libc::iovec]>,
    heads: Box<[libc::mmsghdr]>,
    /// Which of the caller's sockets each frame leaves by.
    sockets: [u8; BATCH],
    waiting: usize,
}

// SAFETY: the pointers inside lead into the boxes beside them, which move with the value and nobody else holds.
unsafe impl Send for Outbox {}

impl Outbox {
    pub(crate) fn new() -> Self {
        // SAFETY: all-zero bytes are valid values of all of these (null pointers, zero lengths).
        let (name, source, part, head): (Name, SourceControl, libc::iovec, libc::mmsghdr) =
            unsafe { (mem::zeroed(), mem::zeroed(), mem::zeroed(), mem::zeroed()) };
        let mut outbox = Self {
            bytes: vec![0; BATCH * FRAME_BYTES].into(),
            names: vec![name; BATCH].into(),
            sources: vec![source; BATCH].into(),
            parts: vec![part; BATCH].into(),
            heads: vec![head; BATCH].into(),
            sockets: [0; BATCH],
            waiting: 0,
        };
        let places =
            outbox.heads.iter_mut().zip(&mut outbox.parts).zip(&mut outbox.names).zip(&mut outbox.sources);
        for (((head, part), name), source) in places {
            source.header = libc::cmsghdr {
                // Without the padding at the end.
                cmsg_len: size_of::<libc::cmsghdr>() + size_of::<libc::in_pktinfo>(),
                cmsg_level: libc::SOL_IP,
                cmsg_type: libc::IP_PKTINFO,
            };
            head.msg_hdr.msg_name = ptr::from_mut(name).cast();
            head.msg_hdr.msg_iov = part;
            head.msg_hdr.msg_iovlen = 1;
            head.msg_hdr.msg_control = ptr::from_mut(source).cast();
        }
        outbox
    }
    pub(crate) const fn is_full(&self) -> bool {
        self.waiting == BATCH
    }
    pub(crate) const fn is_empty(&self) -> bool {
        self.waiting == 0
    }
    /// Adds a frame that `write` makes in the room it is given, to be sent from its byte `skip` on. False when it is
    /// full or nothing was written.
    pub(crate) fn push(
        &mut self,
        socket: u8,
        via: Via,
        skip: usize,
        write: impl FnOnce(&mut [u8]) -> usize,
    ) -> bool {
        let index = self.waiting;
        let Some(room) = self.bytes.chunks_exact_mut(FRAME_BYTES).nth(index) else { return false };
        let length = write(room).min(FRAME_BYTES);
        let Some(frame) = room.get_mut(skip..length).filter(|frame| !frame.is_empty()) else { return false };
        let (Some(head), Some(part), Some(name), Some(source), Some(place)) = (
            self.heads.get_mut(index),
            self.parts.get_mut(index),
            self.names.get_mut(index),
            self.sources.get_mut(index),
            self.sockets.get_mut(index),
        ) else {
            return false;
        };
        *part = libc::iovec { iov_base: frame.as_mut_ptr().cast(), iov_len: frame.len() };
        *place = socket;
        match via {
            Via::Interface(index) => {
                // SAFETY: all-zero bytes are a valid `sockaddr_ll`. The hardware address stands in the frame.
                let mut link: libc::sockaddr_ll = unsafe { mem::zeroed() };
                link.sll_family = libc::AF_PACKET as u16;
                link.sll_protocol = (libc::ETH_P_IP as u16).to_be();
                link.sll_ifindex = index.cast_signed();
                name.link = link;
                head.msg_hdr.msg_namelen = size_of::<libc::sockaddr_ll>() as u32;
                head.msg_hdr.msg_controllen = 0;
            }
            Via::Kernel(from, to) => {
                name.ip = to_raw(SocketAddrV4::new(to, 0));
                source.info = libc::in_pktinfo {
                    ipi_ifindex: 0,
                    ipi_spec_dst: to_raw(SocketAddrV4::new(from, 0)).sin_addr,
                    ipi_addr: libc::in_addr { s_addr: 0 },
                };
                head.msg_hdr.msg_namelen = size_of::<libc::sockaddr_in>() as u32;
                head.msg_hdr.msg_controllen = size_of::<SourceControl>();
            }
        }
        self.waiting += 1;
        true
    }
    /// Sends all that waits and returns how many were refused.
    pub(crate) fn send(&mut self, sockets: &[OwnedFd]) -> usize {
        let (mut next, mut refused) = (0, 0);
        while next < self.waiting {
            let Some(&socket) = self.sockets.get(next) else { break };
            let run = self.sockets.get(next..self.waiting).unwrap_or_default();
            let length = run.iter().take_while(|other| **other == socket).count();
            let sent = match (sockets.get(usize::from(socket)), self.heads.get_mut(next..next + length)) {
                // SAFETY: `heads` has `length` entries, each of which points at a frame, a name and control room inside
                // the boxes of `self`, which are never reallocated, each with its true length.
                (Some(fd), Some(heads)) => unsafe {
                    libc::sendmmsg(fd.as_raw_fd(), heads.as_mut_ptr(), length as c_uint, libc::MSG_DONTWAIT)
                },
                _ => 0,
            };
            match usize::try_from(sent) {
                Ok(sent) if sent > 0 => next += sent,
                // The first of the run was refused; the others have their chance.
                _ => {
                    refused += 1;
                    next += 1;
                }
            }
        }
        self.waiting = 0;
        refused
    }
}

/// Reads one value of plain bytes out of a message; `None` when it is shorter.
pub(crate) fn read_plain<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..)?.first_chunk().copied()
}
