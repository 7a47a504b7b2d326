//! What the benches of packets share: the wait of a thread a call, their baseline.

use std::net::UdpSocket;
use std::os::fd::AsRawFd;

/// Which of two sockets have something to read; waits up to 100 ms.
#[allow(unsafe_code)]
pub fn poll_two(legs: &[UdpSocket; 2]) -> impl Iterator<Item = usize> + use<> {
    let mut polled =
        [0, 1].map(|n: usize| libc::pollfd { fd: legs[n].as_raw_fd(), events: libc::POLLIN, revents: 0 });
    // SAFETY: pointer and count describe `polled`, which outlives the call.
    unsafe { libc::poll(polled.as_mut_ptr(), 2, 100) };
    let ready = polled.map(|one| one.revents & libc::POLLIN != 0);
    (0..2).filter(move |&n| ready[n])
}
