//! Signatures that are to be made and checked, which takes so long that others do it: who is whose turn, and how much waits.
//!
//! A signature of 1,024 bits takes a quarter of a millisecond and more, a check a fiftieth of one (release build): too long
//! for the thread of all calls, and a stranger with a call token may ask for a check of each key with one frame. So the shell is handed a few at a time
//! ([`IaxDriver::take_key_jobs`]), of all addresses in turn, and each address has a bound for what waits.

use core::net::IpAddr;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use base::{Cause, Place, source_of};
use call::{Core, Level, security};

use super::proof::busy;
use super::{At, IaxDriver};

/// Jobs that the shell has in hand at once, so that the next address waits for no more than these: a few milliseconds.
const IN_HAND_MAX: usize = 16;
/// Jobs of one address (IPv6: a /64), in hand or waiting: a site that begins as many calls in one moment is a large one.
const OF_SOURCE_MAX: usize = 64;
/// Jobs of all: at a fiftieth of a millisecond each they are done within what a caller waits before it repeats a frame.
const JOBS_MAX: usize = 4096;

/// What is to be done with a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeyWork {
    /// Find out whether the owner of any of these public keys has signed the challenge. All of them are tried, so that it
    /// takes the same whichever was right.
    Check {
        /// Their names.
        keys: Vec<String>,
        /// What was to be signed.
        challenge: Vec<u8>,
        /// The signature in base 64.
        signature: Vec<u8>,
    },
    /// Sign the challenge with a private key.
    Sign {
        /// Its name.
        key: String,
        /// What to sign.
        challenge: Vec<u8>,
    },
}

/// What came of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeyAnswer {
    /// Whether the signature was right.
    Checked(bool),
    /// The signature in base 64; `None`: there is no such key.
    Signed(Option<Vec<u8>>),
}

impl KeyWork {
    /// What it comes to where there are no keys, or where somebody has failed over it.
    pub fn failed(&self) -> KeyAnswer {
        match self {
            Self::Check { .. } => KeyAnswer::Checked(false),
            Self::Sign { .. } => KeyAnswer::Signed(None),
        }
    }
}

/// The keys of a configuration, for any thread.
pub trait KeySet: Send + Sync {
    /// Does the work; takes its time.
    fn work(&self, work: &KeyWork) -> KeyAnswer;
}

/// Work for another thread, which answers by [`IaxDriver::key_worked`].
pub struct KeyJob {
    /// Whose answer it will be.
    pub id: u64,
    /// The keys that held when it was asked for.
    pub keys: Option<Arc<dyn KeySet>>,
    /// What to do.
    pub work: KeyWork,
}

impl KeyJob {
    /// Does it.
    pub fn carry_out(&self) -> KeyAnswer {
        self.keys.as_ref().map_or_else(|| self.work.failed(), |keys| keys.work(&self.work))
    }
}

/// All jobs.
#[derive(Default)]
pub(super) struct Keywork {
    next_id: u64,
    /// Of each job that waits or is in hand: the leg and the source.
    asked: HashMap<u64, (At, IpAddr)>,
    /// How many of them each source has.
    counts: HashMap<IpAddr, usize>,
    waiting: HashMap<IpAddr, VecDeque<KeyJob>>,
    /// Sources that have jobs waiting, in turn.
    turns: VecDeque<IpAddr>,
    in_hand: usize,
}

impl Keywork {
    /// Puts a job behind those of its source; `false` when there are too many.
    fn put(&mut self, at: At, from: IpAddr, keys: Option<Arc<dyn KeySet>>, work: KeyWork) -> bool {
        let source = source_of(from);
        let count = self.counts.get(&source).copied().unwrap_or(0);
        if count >= OF_SOURCE_MAX || self.asked.len() >= JOBS_MAX {
            return false;
        }
        self.counts.insert(source, count + 1);
        let id = self.next_id;
        self.next_id += 1;
        self.asked.insert(id, (at, source));
        let own = self.waiting.entry(source).or_default();
        if own.is_empty() {
            self.turns.push_back(source);
        }
        own.push_back(KeyJob { id, keys, work });
        true
    }
    /// The next job to be handed out: each source has one before any has a second.
    fn next(&mut self) -> Option<KeyJob> {
        while self.in_hand < IN_HAND_MAX {
            let source = self.turns.pop_front()?;
            let Some(own) = self.waiting.get_mut(&source) else { continue };
            let job = own.pop_front();
            match own.is_empty() {
                true => _ = self.waiting.remove(&source),
                false => self.turns.push_back(source),
            }
            let Some(job) = job.filter(|job| self.asked.contains_key(&job.id)) else { continue };
            self.in_hand += 1;
            return Some(job);
        }
        None
    }
    /// A job that was handed out is done: whose it was, unless nobody waits for it any more.
    fn done(&mut self, id: u64) -> Option<At> {
        self.in_hand = self.in_hand.saturating_sub(1);
        self.forget(id)
    }
    fn forget(&mut self, id: u64) -> Option<At> {
        let (at, source) = self.asked.remove(&id)?;
        if let Some(count) = self.counts.get_mut(&source) {
            *count -= 1;
            if *count == 0 {
                self.counts.remove(&source);
            }
        }
        Some(at)
    }
    /// A socket was closed, and its legs with it.
    pub(super) fn forget_socket(&mut self, socket: u32) {
        let gone = self.asked.iter().filter(|(_, ((of, _), _))| *of == socket).map(|(id, _)| *id);
        gone.collect::<Vec<_>>().into_iter().for_each(|id| _ = self.forget(id));
    }
}

impl IaxDriver {
    /// What the shell is to have done by another thread; it answers each with [`IaxDriver::key_worked`], in any order. There
    /// is more when some are answered.
    pub fn take_key_jobs(&mut self) -> Vec<KeyJob> {
        core::iter::from_fn(|| self.keywork.next()).collect()
    }
    /// What came of a job. Who waited for it goes on.
    pub fn key_worked(&mut self, core: &mut Core, id: u64, answer: KeyAnswer) {
        let Some(at) = self.keywork.done(id) else { return };
        match answer {
            KeyAnswer::Checked(right) => self.judge(at, right),
            KeyAnswer::Signed(signature) => self.sign(core, at, signature),
        }
        self.settle(core);
    }
    /// Has work done for a leg; `false` when its other side has too much waiting already.
    fn ask_keys(&mut self, (socket, place): At, work: KeyWork) -> bool {
        let Some(from) = self.remote_of((socket, place)) else { return false };
        let keys = self.config.keys.set.clone();
        self.keywork.put((socket, place), from, keys, work)
    }
    fn remote_of(&self, (socket, place): (u32, Place)) -> Option<IpAddr> {
        let machine = &self.sockets.get(socket as usize)?.as_ref()?.machine;
        machine.remote(place).map(|remote| remote.ip())
    }
    /// Who was asked answers with a signature.
    pub(super) fn signed(&mut self, core: &mut Core, at: At, challenge: &[u8], signature: &[u8]) {
        let keys = self.door.keys_of(at);
        let work = KeyWork::Check { keys, challenge: challenge.to_vec(), signature: signature.to_vec() };
        if !self.ask_keys(at, work) {
            // As it would be for anybody from there, so that it tells nothing.
            let Some((name, from)) = self.door.turned_away(at) else { return };
            let name = security::shown(&name);
            let line = format!("the signature of '{name}' is not looked at: too many of {from} wait already");
            core.log(Level::Notice, "chan_iax2", &line);
            let (cause, why) = busy();
            self.refuse(core.now, at, cause, why);
        }
    }
    /// The other side wants a signature for this challenge, by this key of ours.
    pub(super) fn ask_signature(&mut self, core: &mut Core, at: At, key: String, challenge: &[u8]) {
        if !self.ask_keys(at, KeyWork::Sign { key, challenge: challenge.to_vec() }) {
            self.unsigned(core, at, Cause::SWITCH_CONGESTION, "while too many wait already");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn work() -> KeyWork {
        KeyWork::Sign { key: "us".to_owned(), challenge: b"12345".to_vec() }
    }
    fn at(slot: u32) -> At {
        (0, Place { slot, generation: 0 })
    }
    fn from(host: u8) -> IpAddr {
        IpAddr::from([192, 0, 2, host])
    }

    #[test]
    fn each_address_has_its_turn_and_no_more_than_its_share_waits() {
        let mut jobs = Keywork::default();
        let taken = (0..200).filter(|slot| jobs.put(at(*slot), from(1), None, work())).count();
        assert_eq!(taken, OF_SOURCE_MAX, "of one address");
        assert!(jobs.put(at(200), from(2), None, work()), "of another one");
        assert!(jobs.put(at(201), from(2), None, work()));
        let mut order = Vec::new();
        while let Some(job) = jobs.next() {
            order.push(job.id);
        }
        assert_eq!(order.len(), IN_HAND_MAX);
        let (of_other, own) = (OF_SOURCE_MAX as u64, 0);
        assert_eq!(order[..5], [own, of_other, own + 1, of_other + 1, own + 2], "in turn");
        assert_eq!(jobs.done(of_other), Some(at(200)));
        assert_eq!(jobs.done(of_other), None, "once");
        assert!(jobs.put(at(300), from(2), None, work()));
        assert!(!jobs.put(at(301), from(1), None, work()), "what is in hand counts");
    }

    #[test]
    fn all_addresses_together_have_a_bound_and_leave_nothing() {
        let mut jobs = Keywork::default();
        let sources = (0..u16::MAX).map(|net| IpAddr::from([0x2001, 0xdb8, net, 0, 0, 0, 0, 1]));
        let taken =
            (0..).zip(sources).filter(|(slot, from)| jobs.put(at(*slot), *from, None, work())).count();
        assert_eq!(taken, JOBS_MAX);
        let mut done = 0;
        while let Some(job) = jobs.next() {
            assert!(jobs.done(job.id).is_some());
            done += 1;
        }
        assert_eq!(done, JOBS_MAX);
        let left = (jobs.asked.len(), jobs.counts.len(), jobs.waiting.len(), jobs.turns.len(), jobs.in_hand);
        assert_eq!(left, (0, 0, 0, 0, 0));
    }

    #[test]
    fn the_jobs_of_a_closed_socket_are_nobodys() {
        let mut jobs = Keywork::default();
        for host in [1, 1, 2] {
            assert!(jobs.put(at(host.into()), from(host), None, work()));
        }
        let in_hand = jobs.next().expect("a job");
        jobs.forget_socket(0);
        assert!(jobs.next().is_none());
        assert_eq!(jobs.done(in_hand.id), None);
        let left = (jobs.asked.len(), jobs.counts.len(), jobs.waiting.len(), jobs.turns.len(), jobs.in_hand);
        assert_eq!(left, (0, 0, 0, 0, 0));
    }
}
