//! System calls of the media back-end that `std` does not offer, each behind a safe function.
#![allow(unsafe_code)]

use std::io;
use std::mem;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6};
use std::os::fd::{AsRawFd, RawFd};
use std::ptr;
use std::time::Duration;

use libc::{c_int, socklen_t};

/// Real-time priority of a worker: the least there is, which is above every thread that has none.
const FIFO_PRIORITY: c_int = 1;
/// Nice value asked for when real time is refused.
const NICE: c_int = -10;

/// Takes one datagram, and says who sent it. The descriptor must be a non-blocking IP socket.
pub(crate) fn receive_from(fd: RawFd, buffer: &mut [u8]) -> io::Result<(usize, SocketAddr)> {
    // SAFETY: all-zero bytes are a valid `sockaddr_in6`.
    let mut address: libc::sockaddr_in6 = unsafe { mem::zeroed() };
    let mut length = size_of::<libc::sockaddr_in6>() as socklen_t;
    // SAFETY: the buffer's pointer and length describe `buffer`; `address` is the larger of the two families that an
    // IP socket fills in, and `length` says how large. A descriptor that is not open gives EBADF.
    let count = unsafe {
        libc::recvfrom(
            fd,
            buffer.as_mut_ptr().cast(),
            buffer.len(),
            libc::MSG_DONTWAIT,
            (&raw mut address).cast(),
            &raw mut length,
        )
    };
    let count = usize::try_from(count).map_err(|_| io::Error::last_os_error())?;
    let from = match c_int::from(address.sin6_family) {
        libc::AF_INET => {
            // SAFETY: the family says that the kernel wrote a `sockaddr_in`, which is shorter and no more aligned.
            let v4: libc::sockaddr_in = unsafe { ptr::read((&raw const address).cast()) };
            SocketAddr::from((Ipv4Addr::from(u32::from_be(v4.sin_addr.s_addr)), u16::from_be(v4.sin_port)))
        }
        libc::AF_INET6 => SocketAddr::V6(SocketAddrV6::new(
            Ipv6Addr::from(address.sin6_addr.s6_addr),
            u16::from_be(address.sin6_port),
            0,
            address.sin6_scope_id,
        )),
        _ => return Err(io::ErrorKind::Unsupported.into()),
    };
    Ok((count, from))
}

/// Takes a UDP socket's connection away: everyone is let in again.
pub(crate) fn disconnect(socket: &impl AsRawFd) -> io::Result<()> {
    // SAFETY: all-zero bytes are a valid `sockaddr`, and zero is AF_UNSPEC.
    let nobody: libc::sockaddr = unsafe { mem::zeroed() };
    let length = size_of::<libc::sockaddr>() as socklen_t;
    // SAFETY: pointer and length describe `nobody`, which outlives the call.
    match unsafe { libc::connect(socket.as_raw_fd(), &raw const nobody, length) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Keeps the calling thread on one processor.
pub(crate) fn pin_to(processor: usize) -> io::Result<()> {
    if processor >= libc::CPU_SETSIZE as usize {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    // SAFETY: all-zero bytes are an empty `cpu_set_t`; the processor is below the set's size; the set outlives the call.
    let result = unsafe {
        let mut set: libc::cpu_set_t = mem::zeroed();
        libc::CPU_SET(processor, &mut set);
        libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &raw const set)
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Processors that the calling thread may run on.
pub fn allowed_processors() -> Vec<usize> {
    // SAFETY: all-zero bytes are an empty `cpu_set_t`, which the call fills and outlives it.
    let set = unsafe {
        let mut set: libc::cpu_set_t = mem::zeroed();
        if libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &raw mut set) != 0 {
            return Vec::new();
        }
        set
    };
    // SAFETY: every index is below the set's size.
    (0..libc::CPU_SETSIZE as usize).filter(|&n| unsafe { libc::CPU_ISSET(n, &set) }).collect()
}

/// Gives the calling thread real-time priority.
pub(crate) fn become_real_time() -> io::Result<()> {
    // SAFETY: all-zero bytes are a valid `sched_param`.
    let mut parameter: libc::sched_param = unsafe { mem::zeroed() };
    parameter.sched_priority = FIFO_PRIORITY;
    // SAFETY: the parameter outlives the call; pid 0 is the calling thread. SCHED_RESET_ON_FORK keeps children plain.
    let result = unsafe {
        libc::sched_setscheduler(0, libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK, &raw const parameter)
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Prefers the calling thread, short of real time.
pub(crate) fn become_preferred() -> io::Result<()> {
    // SAFETY: no pointers. On Linux a nice value belongs to a thread, and the caller's thread id names it.
    let result = unsafe {
        let thread = libc::gettid();
        libc::setpriority(libc::PRIO_PROCESS, thread.cast_unsigned(), NICE)
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Processor time that the calling thread has used.
pub fn thread_cpu() -> Duration {
    Duration::from_nanos(crate::sys::clock_nanos(libc::CLOCK_THREAD_CPUTIME_ID))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::UdpSocket;

    #[test]
    fn a_datagram_comes_with_its_source_in_both_families() {
        for local in ["127.0.0.1:0", "[::1]:0"] {
            let Ok(receiver) = UdpSocket::bind(local) else {
                println!("skipped: no {local} here");
                continue;
            };
            let sender = UdpSocket::bind(local).unwrap();
            sender.send_to(b"hello", receiver.local_addr().unwrap()).unwrap();
            let mut buffer = [0; 16];
            let (length, from) = receive_from(receiver.as_raw_fd(), &mut buffer).unwrap();
            assert_eq!((&buffer[..length], from), (&b"hello"[..], sender.local_addr().unwrap()));
            let empty = receive_from(receiver.as_raw_fd(), &mut buffer).unwrap_err();
            assert_eq!(empty.kind(), io::ErrorKind::WouldBlock);
        }
    }

    #[test]
    fn a_disconnected_socket_hears_everyone_again() {
        let bind = || UdpSocket::bind("127.0.0.1:0").unwrap();
        let (friend, stranger) = (bind(), bind());
        // A port that was asked for stays across a disconnection; one that the kernel chose does not.
        let receiver = (23_400..23_500).find_map(|port| UdpSocket::bind(("127.0.0.1", port)).ok()).unwrap();
        receiver.set_nonblocking(true).unwrap();
        let to = receiver.local_addr().unwrap();
        let mut buffer = [0; 16];
        receiver.connect(friend.local_addr().unwrap()).unwrap();
        stranger.send_to(b"1", to).unwrap();
        assert!(receive_from(receiver.as_raw_fd(), &mut buffer).is_err());
        disconnect(&receiver).unwrap();
        assert_eq!(receiver.local_addr().unwrap(), to, "the port stays");
        stranger.send_to(b"2", to).unwrap();
        assert!(receive_from(receiver.as_raw_fd(), &mut buffer).is_ok());
    }

    #[test]
    fn a_thread_can_be_pinned_where_it_may_run() {
        let allowed = allowed_processors();
        assert!(!allowed.is_empty());
        std::thread::spawn(move || {
            pin_to(allowed[0]).unwrap();
            assert_eq!(allowed_processors(), [allowed[0]]);
        })
        .join()
        .unwrap();
        assert!(pin_to(usize::MAX).is_err());
    }
}
