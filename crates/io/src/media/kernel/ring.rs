//! AF_XDP sockets: frames of one queue of one interface in shared memory, and the four rings that pass them to and fro.
//!
//! Copy mode and zero-copy look the same from here: the kernel takes what the driver has.
#![allow(unsafe_code)]

use std::io;
use std::mem;
use std::os::fd::{AsRawFd, OwnedFd};
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU32, Ordering};

use libc::{c_int, c_void, socklen_t};

use super::sys;

/// Bytes of a frame: the least that the kernel takes, which holds an Ethernet frame with the headroom of a driver.
pub(crate) const FRAME: usize = 2048;
/// Frames that wait to be filled by what arrives: 16 ms at the 250,000 packets a second of 5,000 calls.
const RECEIVE: u32 = 4096;
/// Frames that wait to be sent, or are on their way.
const SEND: u32 = 2048;
const FRAMES: u32 = RECEIVE + SEND;
/// Bytes of packets on their way, as the kernel counts them: all frames that can be.
const SEND_BYTES: c_int = 8 << 20;
/// Kicks of one flush: in copy mode the kernel takes 32 frames a kick.
const KICKS_MAX: u32 = SEND / 32 + 1;
/// Longest packet of an interface that we take; the driver's headroom (256) and the Ethernet header fit beside it.
pub(crate) const MTU_MAX: usize = FRAME - 256 - 14;

fn check(result: c_int) -> io::Result<()> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// A mapping that is unmapped when dropped.
#[derive(Debug)]
struct Mapping {
    start: NonNull<u8>,
    bytes: usize,
}

impl Mapping {
    fn new(fd: c_int, flags: c_int, bytes: usize, offset: libc::off_t) -> io::Result<Self> {
        // SAFETY: a new mapping at an address of the kernel's choice touches no memory of ours.
        let start = unsafe {
            libc::mmap(ptr::null_mut(), bytes, libc::PROT_READ | libc::PROT_WRITE, flags, fd, offset)
        };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let start = NonNull::new(start.cast()).ok_or(io::ErrorKind::Other)?;
        Ok(Self { start, bytes })
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: exactly what `new` mapped, and nobody has a reference any more.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.bytes) };
    }
}

/// One ring: two counters and a table of `T`, shared with the kernel. One side only writes, the other only reads.
#[derive(Debug)]
struct Ring<T> {
    _memory: Mapping,
    producer: NonNull<AtomicU32>,
    consumer: NonNull<AtomicU32>,
    flags: NonNull<AtomicU32>,
    table: NonNull<T>,
    mask: u32,
    /// Our own counter, ahead of the shared one until it is published.
    ours: u32,
    /// The kernel's, when it was read last: another processor writes it, so each reading may be a wait.
    theirs: u32,
}

impl<T: Copy> Ring<T> {
    fn map(
        fd: &OwnedFd,
        page: libc::off_t,
        offsets: &libc::xdp_ring_offset,
        entries: u32,
    ) -> io::Result<Self> {
        let at =
            |offset: u64| usize::try_from(offset).map_err(|_| io::Error::from(io::ErrorKind::InvalidData));
        let (producer, consumer, flags) = (at(offsets.producer)?, at(offsets.consumer)?, at(offsets.flags)?);
        let table = at(offsets.desc)?;
        let bytes = table + entries as usize * size_of::<T>();
        if [producer, consumer, flags].into_iter().any(|offset| offset + 4 > bytes || offset % 4 != 0) {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let memory = Mapping::new(fd.as_raw_fd(), libc::MAP_SHARED | libc::MAP_POPULATE, bytes, page)?;
        let start = memory.start;
        // SAFETY: every offset lies within the mapping, and so does the whole table (`bytes` was made from it). The kernel
        // aligns its table; the counters were checked.
        unsafe {
            Ok(Self {
                producer: start.add(producer).cast(),
                consumer: start.add(consumer).cast(),
                flags: start.add(flags).cast(),
                table: start.add(table).cast(),
                _memory: memory,
                mask: entries - 1,
                ours: 0,
                theirs: 0,
            })
        }
    }
    fn counter(place: &NonNull<AtomicU32>) -> &AtomicU32 {
        // SAFETY: inside the mapping, aligned, and alive as long as the ring that it belongs to.
        unsafe { place.as_ref() }
    }
    /// Entries that the kernel has produced and we have not taken.
    fn ready(&mut self) -> u32 {
        if self.theirs == self.ours {
            self.theirs = Self::counter(&self.producer).load(Ordering::Acquire);
        }
        self.theirs.wrapping_sub(self.ours)
    }
    /// One that is ready, so many places ahead.
    fn peek(&self, ahead: u32) -> Option<T> {
        let is_ready = self.theirs.wrapping_sub(self.ours) > ahead;
        let index = (self.ours.wrapping_add(ahead) & self.mask) as usize;
        // SAFETY: the mask keeps the index inside the table; the kernel has published the entry and will not write it until
        // we release it.
        is_ready.then(|| unsafe { ptr::read_volatile(self.table.as_ptr().add(index)) })
    }
    /// Takes one, if any is ready; the place is given back by [`Self::release`].
    fn take(&mut self) -> Option<T> {
        if self.ready() == 0 {
            return None;
        }
        let entry = self.peek(0);
        self.ours = self.ours.wrapping_add(1);
        entry
    }
    fn release(&self) {
        Self::counter(&self.consumer).store(self.ours, Ordering::Release);
    }
    /// Places that are free for us to produce into.
    fn room(&self) -> u32 {
        let waiting = self.ours.wrapping_sub(Self::counter(&self.consumer).load(Ordering::Acquire));
        (self.mask + 1).saturating_sub(waiting)
    }
    /// Puts one into a free place, to be published.
    fn put(&mut self, entry: T) {
        // SAFETY: the mask keeps the index inside the table, and the kernel does not read the place until it is published.
        unsafe { ptr::write_volatile(self.table.as_ptr().add((self.ours & self.mask) as usize), entry) };
        self.ours = self.ours.wrapping_add(1);
    }
    fn publish(&self) {
        Self::counter(&self.producer).store(self.ours, Ordering::Release);
    }
    fn needs_wakeup(&self) -> bool {
        Self::counter(&self.flags).load(Ordering::Relaxed) & libc::XDP_RING_NEED_WAKEUP != 0
    }
}

/// A socket on one queue.
#[derive(Debug)]
pub(crate) struct Queue {
    // Dropped before the memory it works in.
    socket: OwnedFd,
    received: Ring<libc::xdp_desc>,
    sending: Ring<libc::xdp_desc>,
    filling: Ring<u64>,
    sent: Ring<u64>,
    frames: Mapping,
    /// Frames that nobody has, to send with.
    free: Vec<u64>,
    /// Frames published for sending since the last kick.
    unkicked: bool,
}

// SAFETY: the pointers lead into mappings that the value owns and that move with it; one thread uses it at a time.
unsafe impl Send for Queue {}

impl Queue {
    /// Binds to one queue of an interface. Needs CAP_NET_RAW, and locked memory for the frames.
    ///
    /// `copies`: the program runs above the driver, which would pass zero-copy frames by it.
    pub(crate) fn open(interface: u32, queue: u32, copies: bool) -> io::Result<Self> {
        let socket = sys::open(libc::AF_XDP, libc::SOCK_RAW, 0)?;
        // In copy mode frames on their way are packets of this socket.
        crate::sys::set_option(&socket, libc::SOL_SOCKET, libc::SO_SNDBUFFORCE, SEND_BYTES)?;
        let anonymous = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        let frames = Mapping::new(-1, anonymous, FRAMES as usize * FRAME, 0)?;
        // SAFETY: all-zero bytes are a valid `xdp_umem_reg`.
        let mut memory: libc::xdp_umem_reg = unsafe { mem::zeroed() };
        memory.addr = frames.start.as_ptr() as u64;
        memory.len = u64::from(FRAMES) * FRAME as u64;
        memory.chunk_size = FRAME as u32;
        set(&socket, libc::XDP_UMEM_REG, &memory)?;
        for (ring, entries) in [
            (libc::XDP_UMEM_FILL_RING, RECEIVE),
            (libc::XDP_UMEM_COMPLETION_RING, SEND),
            (libc::XDP_RX_RING, RECEIVE),
            (libc::XDP_TX_RING, SEND),
        ] {
            set(&socket, ring, &entries)?;
        }
        let offsets = offsets(&socket)?;
        let received = Ring::map(&socket, libc::XDP_PGOFF_RX_RING, &offsets.rx, RECEIVE)?;
        let sending = Ring::map(&socket, libc::XDP_PGOFF_TX_RING, &offsets.tx, SEND)?;
        let mut filling =
            Ring::map(&socket, libc::XDP_UMEM_PGOFF_FILL_RING as libc::off_t, &offsets.fr, RECEIVE)?;
        let sent =
            Ring::map(&socket, libc::XDP_UMEM_PGOFF_COMPLETION_RING as libc::off_t, &offsets.cr, SEND)?;
        for frame in 0..RECEIVE {
            filling.put(u64::from(frame) * FRAME as u64);
        }
        filling.publish();
        let address = libc::sockaddr_xdp {
            sxdp_family: libc::AF_XDP as u16,
            sxdp_flags: libc::XDP_USE_NEED_WAKEUP | if copies { libc::XDP_COPY } else { 0 },
            sxdp_ifindex: interface,
            sxdp_queue_id: queue,
            sxdp_shared_umem_fd: 0,
        };
        // SAFETY: pointer and length describe `address`, which outlives the call.
        check(unsafe {
            libc::bind(
                socket.as_raw_fd(),
                (&raw const address).cast(),
                size_of::<libc::sockaddr_xdp>() as socklen_t,
            )
        })?;
        let free = (RECEIVE..FRAMES).map(|frame| u64::from(frame) * FRAME as u64).collect();
        Ok(Self { socket, received, sending, filling, sent, frames, free, unkicked: false })
    }
    pub(crate) const fn socket(&self) -> &OwnedFd {
        &self.socket
    }
    fn frame(&self, address: u64, length: usize) -> Option<&[u8]> {
        let start = usize::try_from(address).ok()?;
        let end = start.checked_add(length)?;
        // SAFETY: the range lies within the frames, which this value owns. The kernel does not write a frame that it has
        // given us, until it is given back.
        (end <= self.frames.bytes)
            .then(|| unsafe { std::slice::from_raw_parts(self.frames.start.as_ptr().add(start), length) })
    }
    /// Looks at the next frame that has arrived and gives its place back to the kernel.
    pub(crate) fn receive<T>(&mut self, look: impl FnOnce(&[u8]) -> T) -> Option<T> {
        let entry = self.received.take()?;
        let seen = self.frame(entry.addr, entry.len as usize).map(look);
        // The ring has room for every frame that was made for it; its address within the frame is of no account.
        self.filling.put(entry.addr / FRAME as u64 * FRAME as u64);
        seen
    }
    /// A frame that has arrived behind the next one, by so many.
    pub(crate) fn ahead(&self, ahead: u32) -> Option<&[u8]> {
        let entry = self.received.peek(ahead)?;
        self.frame(entry.addr, entry.len as usize)
    }
    /// Gives the kernel back what was taken, at the end of a receive phase.
    pub(crate) fn end_receive(&mut self) {
        self.received.release();
        self.filling.publish();
        if self.filling.needs_wakeup() {
            // SAFETY: no buffer; the call only tells the driver that there are frames to fill.
            unsafe {
                libc::recvfrom(
                    self.socket.as_raw_fd(),
                    ptr::null_mut(),
                    0,
                    libc::MSG_DONTWAIT,
                    ptr::null_mut(),
                    ptr::null_mut(),
                )
            };
        }
    }
    /// Adds a frame that `write` makes in the room it is given. False when there is no room or nothing was written.
    pub(crate) fn push(&mut self, write: impl FnOnce(&mut [u8]) -> usize) -> bool {
        if self.free.is_empty() {
            self.flush();
            self.reclaim();
        }
        if self.sending.room() == 0 {
            return false;
        }
        let Some(address) = self.free.pop() else { return false };
        let Ok(start) = usize::try_from(address) else { return false };
        // SAFETY: addresses in `free` are whole frames inside the mapping, which the kernel has no part in until they are
        // published, and each is there once.
        let room = unsafe { std::slice::from_raw_parts_mut(self.frames.start.as_ptr().add(start), FRAME) };
        let length = write(room).min(FRAME);
        if length == 0 {
            self.free.push(address);
            return false;
        }
        self.sending.put(libc::xdp_desc { addr: address, len: length as u32, options: 0 });
        self.unkicked = true;
        true
    }
    /// Takes back frames that have left.
    fn reclaim(&mut self) {
        let before = self.sent.ours;
        while let Some(address) = self.sent.take() {
            self.free.push(address);
        }
        if self.sent.ours != before {
            self.sent.release();
        }
    }
    /// Has the kernel send what waits.
    pub(crate) fn flush(&mut self) {
        if !self.unkicked {
            return;
        }
        self.unkicked = false;
        self.sending.publish();
        for _ in 0..KICKS_MAX {
            if !self.sending.needs_wakeup() || self.sending.room() == SEND {
                break;
            }
            // SAFETY: no buffer; the call only tells the kernel that there are frames to send.
            let sent = unsafe {
                libc::sendto(
                    self.socket.as_raw_fd(),
                    ptr::null::<c_void>(),
                    0,
                    libc::MSG_DONTWAIT,
                    ptr::null(),
                    0,
                )
            };
            // EAGAIN: more than one kick takes. Anything else leaves the frames for the next flush.
            if sent < 0 && io::Error::last_os_error().raw_os_error() != Some(libc::EAGAIN) {
                self.unkicked = true;
                break;
            }
        }
        self.reclaim();
    }
}

fn set<T>(socket: &OwnedFd, name: c_int, value: &T) -> io::Result<()> {
    // SAFETY: pointer and length describe `value`, which outlives the call.
    check(unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_XDP,
            name,
            ptr::from_ref(value).cast(),
            size_of::<T>() as socklen_t,
        )
    })
}

fn offsets(socket: &OwnedFd) -> io::Result<libc::xdp_mmap_offsets> {
    // SAFETY: all-zero bytes are a valid `xdp_mmap_offsets`.
    let mut offsets: libc::xdp_mmap_offsets = unsafe { mem::zeroed() };
    let mut length = size_of::<libc::xdp_mmap_offsets>() as socklen_t;
    // SAFETY: the kernel writes at most `length` bytes into `offsets`.
    check(unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_XDP,
            libc::XDP_MMAP_OFFSETS,
            (&raw mut offsets).cast(),
            &raw mut length,
        )
    })?;
    if (length as usize) < size_of::<libc::xdp_mmap_offsets>() {
        // Kernels before 5.4 have no flags in their rings.
        return Err(io::ErrorKind::Unsupported.into());
    }
    Ok(offsets)
}
