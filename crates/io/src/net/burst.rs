//! What is written to several connections in one turn leaves by one system call.
//!
//! Each send wakes its reader, which may take this processor at once: a turn that answers eight programs one by one is put
//! aside four times, and comes back to cold caches. The kernel does all sends of a burst before it looks who else may run.
//! Where io_uring is not to be had, nothing but that is lost.
#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

use io_uring::{IoUring, opcode, types};

/// Sends of one system call.
pub(super) const SENDS_MAX: usize = 64;

/// A ring that holds nothing between two calls.
pub(super) struct Burst(IoUring);

impl Burst {
    /// `None` where the kernel, or whoever confines this process, has none for us.
    pub(super) fn new() -> Option<Self> {
        let ring = IoUring::builder().setup_submit_all().dontfork().build(SENDS_MAX as u32).ok()?;
        Some(Self(ring))
    }
    /// Sends to each what it takes at once; `sent` hears for each, by its place, how much that was. The first [`SENDS_MAX`]
    /// are sent, the others are not told of.
    ///
    /// # Errors
    /// When the ring is of no use any more; some may have been told of.
    pub(super) fn send(
        &mut self,
        sends: &[(BorrowedFd<'_>, &[u8])],
        mut sent: impl FnMut(usize, io::Result<usize>),
    ) -> io::Result<()> {
        let mut queued = 0;
        for (place, (fd, bytes)) in sends.iter().take(SENDS_MAX).enumerate() {
            let length = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
            let request = opcode::Send::new(types::Fd(fd.as_raw_fd()), bytes.as_ptr(), length)
                .flags(libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL)
                .build()
                .user_data(place as u64);
            // SAFETY: the descriptor and the bytes outlive this function, which does not return before each request that
            // was taken is completed: neither is read after that.
            if unsafe { self.0.submission().push(&request) }.is_err() {
                break;
            }
            queued += 1;
        }
        let mut told = 0;
        while told < queued {
            // Nothing waits for a reader, so this is over when all was tried.
            match self.0.submit_and_wait(queued - told) {
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // The kernel is short of something for a moment.
                Err(error) if matches!(error.raw_os_error(), Some(libc::EAGAIN | libc::EBUSY)) => {}
                // Nothing else is said of a ring that is whole; with requests under way there is no way back.
                Err(error) if told == 0 && self.0.submission().len() == queued => return Err(error),
                Err(_) => std::process::abort(),
            }
            for completion in self.0.completion() {
                told += 1;
                let place = usize::try_from(completion.user_data()).unwrap_or(usize::MAX);
                let result = completion.result();
                sent(place, usize::try_from(result).map_err(|_| io::Error::from_raw_os_error(-result)));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read as _;
    use std::net::{TcpListener, TcpStream};
    use std::os::fd::AsFd as _;

    fn pair() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        near.set_nonblocking(true).unwrap();
        (near, listener.accept().unwrap().0)
    }

    #[test]
    fn each_hears_what_is_sent_to_it_and_who_is_full_or_gone_delays_nobody() {
        let Some(mut burst) = Burst::new() else {
            return println!("skipped: this kernel gives no io_uring");
        };
        let mut pairs: Vec<_> = (0..5).map(|_| pair()).collect();
        // One takes no more, one is closed for us.
        let whole = vec![7; 1 << 20];
        while std::io::Write::write(&mut pairs[1].0, &whole).is_ok() {}
        pairs[3].0.shutdown(std::net::Shutdown::Write).unwrap();
        let texts: Vec<String> = (0..5).map(|number| format!("to {number}")).collect();
        let sends: Vec<_> =
            pairs.iter().zip(&texts).map(|((near, _), text)| (near.as_fd(), text.as_bytes())).collect();
        let mut results: Vec<Option<io::Result<usize>>> = (0..5).map(|_| None).collect();
        burst.send(&sends, |place, result| results[place] = Some(result)).unwrap();
        let results: Vec<_> = results.into_iter().map(|result| result.unwrap()).collect();
        for number in [0, 2, 4] {
            assert_eq!(*results[number].as_ref().unwrap(), 4);
            let mut heard = [0; 4];
            pairs[number].1.read_exact(&mut heard).unwrap();
            assert_eq!(heard, texts[number].as_bytes());
        }
        assert_eq!(results[1].as_ref().unwrap_err().kind(), io::ErrorKind::WouldBlock);
        assert_eq!(results[3].as_ref().unwrap_err().kind(), io::ErrorKind::BrokenPipe);
    }

    #[test]
    fn more_than_a_burst_takes_are_left() {
        let Some(mut burst) = Burst::new() else {
            return println!("skipped: this kernel gives no io_uring");
        };
        let (near, mut far) = pair();
        let sends = vec![(near.as_fd(), &b"x"[..]); SENDS_MAX + 9];
        let mut count = 0;
        burst.send(&sends, |_, result| count += result.unwrap()).unwrap();
        assert_eq!(count, SENDS_MAX);
        let mut heard = [0; SENDS_MAX];
        far.read_exact(&mut heard).unwrap();
        burst.send(&[], |_, _| unreachable!()).unwrap();
    }
}
