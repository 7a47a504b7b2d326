//! One io_uring, what it receives into and what it sends from: the only place that shares memory with its kernel half.
//!
//! Memory is the kernel's while a request is under way. So that nobody has to follow it through the program, all of it lies
//! here: buffers that datagrams are received into are the kernel's until a completion names one, and packets that are sent
//! lie in `packets` until the submission that takes them has returned.
#![allow(unsafe_code)]

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::io;
use std::mem;
use std::net::SocketAddr;
use std::os::fd::{AsRawFd, RawFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU16, Ordering};

use io_uring::types::{BufRingEntry, Fixed, RecvMsgOut};
use io_uring::{EnterFlags, IoUring, cqueue, opcode, squeue};
use media::PACKET_BYTES_MAX;

use crate::sys::RawAddr;

/// Requests that wait to be submitted: packets of a batch, and sockets that begin or end to be listened to.
const REQUESTS: u32 = 512;
/// Completions that wait to be looked at; those beyond it wait in the kernel's memory.
const COMPLETIONS: u32 = 4096;
/// Datagrams that were received and not looked at; those beyond it wait in the sockets' own queues.
pub(super) const BUFFERS: u16 = 1024;
/// What the kernel writes before a datagram: a head of 16 bytes and the longest address.
const HEAD_BYTES: usize = 16 + size_of::<libc::sockaddr_in6>();
/// Bytes of a buffer, in whole lines of the cache.
const BUFFER_BYTES: usize = (HEAD_BYTES + PACKET_BYTES_MAX).next_multiple_of(64);
/// Packets of one submission.
const PACKETS: usize = 256;
/// Bytes of them all: so many of the usual length, or some long ones.
const PACKET_BYTES: usize = 128 * 1024;
/// The only group of buffers.
const GROUP: u16 = 0;
/// Alignment of what is shared with the kernel.
const PAGE: usize = 4096;
/// Attempts at a submission that the kernel puts off because it has too much to tell.
const ATTEMPTS: usize = 4;

/// What a completion is of: the highest byte of its number.
const LISTEN: u64 = 1 << 56;
const SEND: u64 = 2 << 56;
const CANCEL: u64 = 3 << 56;
const NUMBER: u64 = LISTEN - 1;

/// Memory that the kernel writes into.
struct Pages {
    start: NonNull<u8>,
    layout: Layout,
}

// SAFETY: nobody else has the pointer.
unsafe impl Send for Pages {}

impl Pages {
    fn new(bytes: usize) -> Self {
        let layout = Layout::from_size_align(bytes, PAGE).expect("a size that was written down here");
        // SAFETY: the size is not zero.
        let start = unsafe { alloc_zeroed(layout) };
        Self { start: NonNull::new(start).unwrap_or_else(|| handle_alloc_error(layout)), layout }
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        // SAFETY: allocated with this layout, and nobody has it any more.
        unsafe { dealloc(self.start.as_ptr(), self.layout) }
    }
}

/// A datagram in a buffer that is ours until it is given back.
#[derive(Debug, Clone, Copy)]
pub(super) struct Filled {
    buffer: u16,
    length: u32,
}

/// What the kernel tells.
#[derive(Debug, Clone, Copy)]
pub(super) enum Told {
    /// A socket was listened to: what it received, and whether it is listened to no longer.
    Heard { index: u32, filled: Option<Filled>, ended: bool },
    /// The packet in this place was not sent.
    Unsent { place: usize, refused: bool },
}

pub(super) struct Ring {
    /// Dropped first: the rest is the kernel's until then.
    ring: IoUring,
    /// The ring of buffers that the kernel takes from, and the buffers.
    free: Pages,
    buffers: Pages,
    tail: u16,
    /// Says how addresses are to be written.
    head: Box<libc::msghdr>,
    packets: Box<[u8]>,
    /// Where those packets of the submission go whose sockets are not connected, and the requests of all.
    names: Vec<RawAddr>,
    requests: Vec<squeue::Entry>,
    end: usize,
}

// SAFETY: the pointers in `head` are null, and those in requests point into what moves with them on the heap.
unsafe impl Send for Ring {}

impl Ring {
    /// A ring for so many sockets. The calling thread is the only one that may use it.
    pub(super) fn new(sockets: u32) -> io::Result<Self> {
        let ring = IoUring::builder()
            .setup_cqsize(COMPLETIONS)
            .setup_single_issuer()
            .setup_defer_taskrun()
            .setup_taskrun_flag()
            .setup_submit_all()
            .dontfork()
            .build(REQUESTS)?;
        ring.submitter().register_files_sparse(sockets)?;
        let free = Pages::new(usize::from(BUFFERS) * size_of::<BufRingEntry>());
        let buffers = Pages::new(usize::from(BUFFERS) * BUFFER_BYTES);
        // SAFETY: so many entries are there, zeroed, and outlive the ring, which is dropped before them.
        unsafe {
            ring.submitter().register_buf_ring_with_flags(free.start.as_ptr() as u64, BUFFERS, GROUP, 0)?;
        }
        // SAFETY: all-zero bytes are a valid `msghdr`.
        let mut head: Box<libc::msghdr> = Box::new(unsafe { mem::zeroed() });
        head.msg_namelen = size_of::<libc::sockaddr_in6>() as libc::socklen_t;
        let mut made = Self {
            ring,
            free,
            buffers,
            tail: 0,
            head,
            packets: vec![0; PACKET_BYTES].into(),
            names: Vec::with_capacity(PACKETS),
            requests: Vec::with_capacity(PACKETS),
            end: 0,
        };
        (0..BUFFERS).for_each(|buffer| made.offer(buffer));
        made.publish();
        Ok(made)
    }
    /// Gives a socket its number.
    pub(super) fn seat(&self, index: u32, socket: &impl AsRawFd) -> io::Result<()> {
        self.ring.submitter().register_files_update(index, &[socket.as_raw_fd()]).map(drop)
    }
    /// Takes the number away; nothing may be under way for it. Then nothing here keeps the socket open.
    pub(super) fn unseat(&self, index: u32) {
        const NOBODY: RawFd = -1;
        // Cannot fail for an index that was seated.
        let _ = self.ring.submitter().register_files_update(index, &[NOBODY]);
    }
    /// Listens to a socket until [`Told::Heard`] says that this has ended. False: not now.
    pub(super) fn listen(&mut self, index: u32) -> bool {
        let entry = opcode::RecvMsgMulti::new(Fixed(index), &raw const *self.head, GROUP).build();
        // SAFETY: `head` is not changed and lives as long as the ring; buffers come from the registered group.
        unsafe { self.push(&entry.user_data(LISTEN | u64::from(index))) }
    }
    /// Ends that. What was received and is not told yet is told still.
    pub(super) fn cancel(&mut self, index: u32) -> bool {
        let entry = opcode::AsyncCancel::new(LISTEN | u64::from(index)).build();
        // SAFETY: the request has no pointers.
        unsafe { self.push(&entry.flags(squeue::Flags::SKIP_SUCCESS).user_data(CANCEL)) }
    }
    /// Puts a packet into the submission that is next; false when there is no room. `to` is for sockets that are not
    /// connected.
    pub(super) fn put(&mut self, index: u32, to: Option<SocketAddr>, packet: &[u8]) -> bool {
        let place = self.requests.len();
        let Some(room) = self.packets.get_mut(self.end..self.end + packet.len()) else { return false };
        if place >= PACKETS {
            return false;
        }
        room.copy_from_slice(packet);
        self.end += packet.len();
        // A full queue of the socket is no reason to wait: with the flag every request is over when submission returns.
        let flags = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;
        let send = opcode::Send::new(Fixed(index), room.as_ptr(), packet.len() as u32).flags(flags);
        // The vector has room for all, so that names do not move.
        self.names.extend(to.map(RawAddr::new));
        let send = match self.names.last().filter(|_| to.is_some()) {
            Some(name) => send.dest_addr(name.as_ptr()).dest_addr_len(name.len()),
            None => send,
        };
        let entry = send.build().flags(squeue::Flags::SKIP_SUCCESS).user_data(SEND | place as u64);
        self.requests.push(entry);
        true
    }
    /// Packets that were put.
    pub(super) fn waiting(&self) -> usize {
        self.requests.len()
    }
    /// Submits packets, from this place on, and whatever else waits. What was not sent is told next.
    pub(super) fn send(&mut self, from: usize) -> bool {
        for place in from..self.requests.len() {
            let Some(entry) = self.requests.get(place).cloned() else { break };
            // SAFETY: packet and name lie in `packets` and `names` and stay there until [`Self::clear`].
            if !unsafe { self.push(&entry) } {
                return false;
            }
        }
        self.submit()
    }
    /// Submits one packet again.
    pub(super) fn send_again(&mut self, place: usize) -> bool {
        let Some(entry) = self.requests.get(place).cloned() else { return false };
        // SAFETY: as above.
        unsafe { self.push(&entry) }
    }
    /// Forgets the packets of the submission.
    pub(super) fn clear(&mut self) {
        self.requests.clear();
        self.names.clear();
        self.end = 0;
    }
    /// Whether the kernel has something to do or to tell.
    pub(super) fn has_work(&mut self) -> bool {
        let queue = self.ring.submission();
        let is_due = !queue.is_empty() || queue.taskrun() || queue.cq_overflow();
        drop(queue);
        is_due || !self.ring.completion().is_empty()
    }
    /// Lets the kernel do what it has to do for this ring: submits, and receives.
    pub(super) fn submit(&mut self) -> bool {
        for _ in 0..ATTEMPTS {
            let count = self.ring.submission().len() as u32;
            // SAFETY: `count` requests wait whose memory is valid, as whoever pushed them has promised; no argument.
            let entered =
                unsafe { self.ring.submitter().enter::<()>(count, 0, EnterFlags::GETEVENTS.bits(), None) };
            if self.ring.submission().is_empty() {
                return true;
            }
            if entered.is_err_and(|error| {
                !matches!(error.raw_os_error(), Some(libc::EINTR | libc::EAGAIN | libc::EBUSY))
            }) {
                break;
            }
        }
        false
    }
    /// The next completion.
    pub(super) fn told(&mut self) -> Option<Told> {
        loop {
            let entry = self.ring.completion().next()?;
            let number = entry.user_data() & NUMBER;
            match entry.user_data() & !NUMBER {
                LISTEN => return Some(self.heard(number as u32, &entry)),
                SEND if entry.result() < 0 => {
                    let refused = entry.result() == -libc::ECONNREFUSED;
                    return Some(Told::Unsent { place: number as usize, refused });
                }
                // A request that was not there to be ended has told its own end.
                _ => {}
            }
        }
    }
    fn heard(&mut self, index: u32, entry: &cqueue::Entry) -> Told {
        let buffer = cqueue::buffer_select(entry.flags()).filter(|buffer| *buffer < BUFFERS);
        let filled = match (buffer, u32::try_from(entry.result())) {
            (Some(buffer), Ok(length)) => Some(Filled { buffer, length }),
            (Some(buffer), Err(_)) => {
                self.give_back(buffer);
                None
            }
            (None, _) => None,
        };
        Told::Heard { index, filled, ended: !cqueue::more(entry.flags()) }
    }
    /// Shows a datagram and where it is from, and gives its buffer back.
    pub(super) fn take<T>(&mut self, filled: Filled, show: impl FnOnce(SocketAddr, &[u8]) -> T) -> Option<T> {
        let length = (filled.length as usize).min(BUFFER_BYTES);
        // SAFETY: the buffer is one of `BUFFERS`, the kernel has told that it is ours with so many bytes of it written, and
        // it does not write into it before it is given back below.
        let bytes = unsafe {
            let start = self.buffers.start.as_ptr().add(usize::from(filled.buffer) * BUFFER_BYTES);
            std::slice::from_raw_parts(start, length)
        };
        let parsed = RecvMsgOut::parse(bytes, &self.head).ok();
        let shown = parsed.and_then(|parsed| Some(show(address(parsed.name_data())?, parsed.payload_data())));
        self.give_back(filled.buffer);
        shown
    }
    fn give_back(&mut self, buffer: u16) {
        self.offer(buffer);
        self.publish();
    }
    /// Writes a buffer into the ring of free ones, for the kernel to see with the next [`publish`](Self::publish).
    fn offer(&mut self, buffer: u16) {
        let place = usize::from(self.tail % BUFFERS);
        // SAFETY: both places are within their pages. The kernel reads the entry only once it is published, and each buffer is
        // in one entry at most.
        unsafe {
            let entry = &mut *self.free.start.as_ptr().cast::<BufRingEntry>().add(place);
            entry.set_addr(self.buffers.start.as_ptr().add(usize::from(buffer) * BUFFER_BYTES) as u64);
            entry.set_len(BUFFER_BYTES as u32);
            entry.set_bid(buffer);
        }
        self.tail = self.tail.wrapping_add(1);
    }
    fn publish(&mut self) {
        let first = self.free.start.as_ptr().cast::<BufRingEntry>().cast_const();
        // SAFETY: the first entry of a ring of buffers holds its tail, aligned, which the kernel reads and we alone write.
        unsafe { AtomicU16::from_ptr(BufRingEntry::tail(first).cast_mut()) }
            .store(self.tail, Ordering::Release);
    }
    /// # Safety
    /// What the request points to is valid until it is over.
    unsafe fn push(&mut self, entry: &squeue::Entry) -> bool {
        // SAFETY: as the caller has promised.
        if unsafe { self.ring.submission().push(entry) }.is_ok() {
            return true;
        }
        // SAFETY: as the caller has promised.
        self.submit() && unsafe { self.ring.submission().push(entry) }.is_ok()
    }
}

/// A `sockaddr` as the kernel has written it.
fn address(bytes: &[u8]) -> Option<SocketAddr> {
    let family = u16::from_ne_bytes(*bytes.first_chunk()?);
    let port = u16::from_be_bytes(bytes.get(2..4)?.try_into().ok()?);
    match libc::c_int::from(family) {
        libc::AF_INET => {
            let octets: [u8; 4] = bytes.get(4..8)?.try_into().ok()?;
            Some(SocketAddr::from((octets, port)))
        }
        libc::AF_INET6 => {
            let octets: [u8; 16] = bytes.get(8..24)?.try_into().ok()?;
            let scope = u32::from_ne_bytes(bytes.get(24..28)?.try_into().ok()?);
            Some(SocketAddr::V6(std::net::SocketAddrV6::new(octets.into(), port, 0, scope)))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_as_the_kernel_writes_them() {
        for text in ["192.0.2.7:5004", "[2001:db8::7]:5004", "[fe80::1%3]:9"] {
            let wanted: SocketAddr = text.parse().unwrap();
            let raw = RawAddr::new(wanted);
            // SAFETY: pointer and length describe `raw`.
            let bytes = unsafe { std::slice::from_raw_parts(raw.as_ptr().cast::<u8>(), raw.len() as usize) };
            assert_eq!(address(bytes), Some(wanted));
            assert_eq!(address(&bytes[..3]), None);
        }
        assert_eq!(address(&[0; 28]), None);
    }
}
