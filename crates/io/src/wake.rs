//! Waking a thread that sleeps in `epoll`, and bounded queues that do so.
//!
//! A burst of notices costs one system call: the first writes the eventfd, the rest see that a wake-up is under
//! way. Register `Wake::fd` with `Net::watch` (edge-triggered), so that nobody needs to read the counter back.
#![forbid(unsafe_code)]

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc;

use crate::sys;

/// A bell that any thread may ring and one thread sleeps beside.
#[derive(Debug, Clone)]
pub struct Wake {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    fd: OwnedFd,
    /// Set from the first ring until the sleeper answers it.
    rung: AtomicBool,
}

impl Wake {
    /// A silent bell. Fails only when the process has no descriptor left.
    pub fn new() -> io::Result<Self> {
        Ok(Self { inner: Arc::new(Inner { fd: sys::eventfd()?, rung: AtomicBool::new(false) }) })
    }
    /// Wakes the sleeper; free when it has already been woken and has not looked yet.
    pub fn ring(&self) {
        if !self.inner.rung.swap(true, Ordering::AcqRel) {
            sys::eventfd_add(self.inner.fd.as_fd());
        }
    }
    /// Says whether the bell was rung, and makes the next ring wake again.
    ///
    /// Look at what the bell stands for *after* this call, never before: a ring in between is then not lost.
    pub fn answer(&self) -> bool {
        self.inner.rung.swap(false, Ordering::AcqRel)
    }
    /// `answer` for a level-triggered poll loop, which also needs the counter emptied.
    pub fn answer_and_clear(&self) -> bool {
        sys::eventfd_clear(self.inner.fd.as_fd());
        self.answer()
    }
}

impl AsFd for Wake {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.inner.fd.as_fd()
    }
}

/// A bounded queue from many threads to one that sleeps in `epoll`.
pub fn queue<T: Send>(capacity: usize) -> io::Result<(Sender<T>, Receiver<T>)> {
    let wake = Wake::new()?;
    let (sender, receiver) = mpsc::sync_channel(capacity);
    let refused = Arc::new(AtomicU64::new(0));
    Ok((
        Sender { sender, wake: wake.clone(), refused: refused.clone() },
        Receiver { receiver, wake, refused },
    ))
}

/// The producing end; clone it for each thread.
#[derive(Debug)]
pub struct Sender<T> {
    sender: mpsc::SyncSender<T>,
    wake: Wake,
    refused: Arc<AtomicU64>,
}

impl<T> Clone for Sender<T> {
    fn clone(&self) -> Self {
        Self { sender: self.sender.clone(), wake: self.wake.clone(), refused: self.refused.clone() }
    }
}

/// Why an item was given back.
#[derive(Debug, PartialEq, Eq)]
pub enum NotSent<T> {
    /// The queue is full; counted in `Receiver::refused`.
    Full(T),
    /// The receiver no longer exists.
    Gone(T),
}

impl<T> Sender<T> {
    /// Queues `item` and wakes the receiver; never blocks.
    pub fn send(&self, item: T) -> Result<(), NotSent<T>> {
        match self.sender.try_send(item) {
            Ok(()) => {
                self.wake.ring();
                Ok(())
            }
            Err(mpsc::TrySendError::Full(item)) => {
                self.refused.fetch_add(1, Ordering::Relaxed);
                Err(NotSent::Full(item))
            }
            Err(mpsc::TrySendError::Disconnected(item)) => Err(NotSent::Gone(item)),
        }
    }
    /// Queues `item`, waiting for room: for threads that may block, when the item must not be lost.
    pub fn send_blocking(&self, item: T) -> Result<(), NotSent<T>> {
        self.sender.send(item).map_err(|mpsc::SendError(item)| NotSent::Gone(item))?;
        self.wake.ring();
        Ok(())
    }
}

/// The consuming end, with the descriptor to sleep on.
#[derive(Debug)]
pub struct Receiver<T> {
    receiver: mpsc::Receiver<T>,
    wake: Wake,
    refused: Arc<AtomicU64>,
}

impl<T> Receiver<T> {
    /// Hands everything that waits to `each`, in order of arrival.
    pub fn drain(&self, mut each: impl FnMut(T)) {
        self.wake.answer();
        while let Ok(item) = self.receiver.try_recv() {
            each(item);
        }
    }
    /// Makes the descriptor unreadable until more comes, for those who poll it level-triggered; drain after it.
    pub fn clear(&self) {
        self.wake.answer_and_clear();
    }
    /// How many items a full queue has turned away so far.
    pub fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }
}

impl<T> AsFd for Receiver<T> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.wake.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_queue_gives_the_item_back_and_counts_it() {
        let (sender, receiver) = queue(2).unwrap();
        assert_eq!(sender.send(1), Ok(()));
        assert_eq!(sender.send(2), Ok(()));
        assert_eq!(sender.send(3), Err(NotSent::Full(3)));
        assert_eq!(receiver.refused(), 1);
        let mut seen = Vec::new();
        receiver.drain(|item| seen.push(item));
        assert_eq!(seen, [1, 2]);
        drop(receiver);
        assert_eq!(sender.send(4), Err(NotSent::Gone(4)));
    }

    #[test]
    fn a_ring_after_the_answer_wakes_again_and_one_before_it_does_not() {
        let wake = Wake::new().unwrap();
        assert!(!wake.answer());
        wake.ring();
        wake.ring();
        assert!(wake.answer());
        assert!(!wake.answer());
        wake.ring();
        assert!(wake.answer_and_clear());
    }
}
