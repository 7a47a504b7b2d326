//! The DNS as its clients see it: names, addresses, services and ways on, asked for on a thread of its own.
//!
//! The thread has many questions open at once, so that servers that do not answer hold nobody up. Addresses come from the
//! hosts file first, then from the name servers, and last from whatever else the system's resolver knows.
#![forbid(unsafe_code)]

mod asking;
mod message;
mod places;

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::os::fd::AsFd as _;
use std::sync::mpsc::{SyncSender, sync_channel};

use base::dns::{Answer, Question};

use crate::wake::{Receiver, Wake, queue};

/// Questions that wait, and answers that wait.
const WAITING_MAX: usize = 1024;

/// Who is asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// Name servers; when there is none, those of `resolv_conf`.
    pub servers: Vec<SocketAddr>,
    /// A file in the form of resolv.conf.
    pub resolv_conf: String,
    /// The hosts file.
    pub hosts: String,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            servers: Vec::new(),
            resolv_conf: "/etc/resolv.conf".to_owned(),
            hosts: "/etc/hosts".to_owned(),
        }
    }
}

/// What the thread is told.
enum Order {
    Ask(Question),
    Settings(Settings),
    /// The system's resolver has looked a name up.
    System(Question, Vec<std::net::IpAddr>),
    /// An answer that was too long for a datagram: of which question, of which of its parts.
    Streamed(Question, usize, Option<Vec<u8>>),
    Stop,
}

/// The asker's end.
pub struct Client {
    orders: SyncSender<Order>,
    wake: Wake,
    found: Receiver<(Question, Answer)>,
    asked: BTreeSet<Question>,
}

impl Client {
    /// Starts the thread. `random` is unpredictable: who guesses it can forge answers (RFC 5452).
    pub fn start(settings: Settings, random: impl FnMut() -> u64 + Send + 'static) -> std::io::Result<Self> {
        let (orders, inbox) = sync_channel(WAITING_MAX);
        let (answers, found) = queue(WAITING_MAX)?;
        let wake = Wake::new()?;
        let thread = asking::Thread::new(settings, inbox, (orders.clone(), wake.clone()), answers, random)?;
        std::thread::Builder::new().name("resolver".to_owned()).spawn(move || thread.run())?;
        Ok(Self { orders, wake, found, asked: BTreeSet::new() })
    }
    /// Others are asked from here on.
    pub fn configure(&self, settings: Settings) {
        if self.orders.try_send(Order::Settings(settings)).is_ok() {
            self.wake.ring();
        }
    }
    /// Asks, once until it was answered. With too many questions open it is not asked: whoever needs it comes again.
    pub fn ask(&mut self, question: &Question) {
        if self.asked.len() < WAITING_MAX && !self.asked.contains(question) {
            if self.orders.try_send(Order::Ask(question.clone())).is_ok() {
                self.asked.insert(question.clone());
            }
            self.wake.ring();
        }
    }
    /// Readable when there are answers.
    pub fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
        self.found.as_fd()
    }
    /// The answers that came.
    pub fn take_in(&mut self) -> Vec<(Question, Answer)> {
        let mut came = Vec::new();
        self.found.drain(|found| came.push(found));
        for (question, _) in &came {
            self.asked.remove(question);
        }
        came
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        // With the queue full the thread ends when it cannot say what it found.
        let _full = self.orders.try_send(Order::Stop);
        self.wake.ring();
    }
}

#[cfg(test)]
mod tests;
