//! Writes that are done behind: what changes often is written once, in its last state, and again until the database takes it.
//!
//! A machine without I/O: [`Behind::put`] notes a write, [`Behind::take`] gives a batch of them when the database may be
//! asked, [`Behind::done`] says what became of it. Nothing that was noted goes while there is room, however long the database
//! is away.

use std::collections::BTreeMap;
use std::time::Duration;

use base::Instant;

/// Writes that wait at most: those of the largest site known, ten times over. A write holds some hundred bytes.
pub const WAITING_MAX: usize = 500_000;
/// Writes of one batch; rows stay locked while it is written.
pub const BATCH_MAX: usize = 250;
/// So long writes are gathered before they are taken.
pub const GATHER: Duration = Duration::from_millis(500);
/// After a failure it is tried again so much later, and twice as late each time.
const RETRY_FIRST: Duration = Duration::from_secs(1);
/// But not later than this.
const RETRY_LAST: Duration = Duration::from_secs(5);

/// What became of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// It is written.
    Written,
    /// The database is away; another try may do.
    Away,
    /// The database will not have it.
    Refused,
}

/// Writes of `V` by `K`.
#[derive(Debug, Clone)]
pub struct Behind<K, V> {
    /// By the order in which their keys came.
    waiting: BTreeMap<u64, (K, V)>,
    places: BTreeMap<K, u64>,
    next: u64,
    flying: Vec<(K, V)>,
    due_at: Option<Instant>,
    retry: Duration,
    /// A batch was refused: its writes go one by one, so that only the bad one is lost.
    singly: usize,
    lost: u64,
    written: u64,
}

impl<K: Ord + Clone, V> Default for Behind<K, V> {
    fn default() -> Self {
        Self {
            waiting: BTreeMap::new(),
            places: BTreeMap::new(),
            next: 0,
            flying: Vec::new(),
            due_at: None,
            retry: RETRY_FIRST,
            singly: 0,
            lost: 0,
            written: 0,
        }
    }
}

impl<K: Ord + Clone, V> Behind<K, V> {
    /// Notes a write in place of one of its key that waits. `false`: as many wait as may, and this one is lost.
    pub fn put(&mut self, key: K, value: V, now: Instant) -> bool {
        if let Some(place) = self.places.get(&key) {
            self.waiting.insert(*place, (key, value));
            return true;
        }
        if self.waiting.len() >= WAITING_MAX {
            self.lost += 1;
            return false;
        }
        self.insert(key, value);
        self.due_at.get_or_insert(now + GATHER);
        true
    }
    /// What is still to be written of a key: the newest of what waits and what is on its way.
    pub fn pending(&self, key: &K) -> Option<&V> {
        let waiting = self.places.get(key).and_then(|place| self.waiting.get(place));
        let flying = || self.flying.iter().find(|(of, _)| of == key);
        waiting.or_else(flying).map(|(_, value)| value)
    }
    /// The next batch, in the order in which the keys came; empty while one is on its way, or it is not time.
    pub fn take(&mut self, now: Instant) -> &[(K, V)] {
        if !self.flying.is_empty() || self.due_at.is_none_or(|at| now < at) {
            return &[];
        }
        let most = if self.singly > 0 { 1 } else { BATCH_MAX };
        while self.flying.len() < most {
            let Some((_, (key, value))) = self.waiting.pop_first() else { break };
            self.places.remove(&key);
            self.flying.push((key, value));
        }
        self.due_at = None;
        &self.flying
    }
    /// What became of the batch that was taken last.
    pub fn done(&mut self, outcome: Outcome, now: Instant) {
        let flown = std::mem::take(&mut self.flying);
        match outcome {
            Outcome::Written => {
                self.written += flown.len() as u64;
                self.singly = self.singly.saturating_sub(1);
                self.retry = RETRY_FIRST;
            }
            Outcome::Refused if flown.len() == 1 => {
                self.lost += 1;
                self.singly = self.singly.saturating_sub(1);
            }
            Outcome::Away | Outcome::Refused => {
                if outcome == Outcome::Refused {
                    self.singly = flown.len();
                }
                for (key, value) in flown {
                    // A newer write of the key has come meanwhile.
                    if !self.places.contains_key(&key) {
                        self.insert(key, value);
                    }
                }
            }
        }
        if self.waiting.is_empty() {
            (self.due_at, self.singly) = (None, 0);
        } else if outcome == Outcome::Away {
            self.due_at = Some(now + self.retry);
            self.retry = (self.retry * 2).min(RETRY_LAST);
        } else {
            self.due_at = Some(now);
        }
    }
    /// All that waits is due at once: the process ends.
    pub fn hurry(&mut self, now: Instant) {
        if !self.waiting.is_empty() {
            self.due_at = Some(now);
        }
    }
    /// When [`Self::take`] has something.
    pub fn deadline(&self) -> Option<Instant> {
        self.due_at.filter(|_| self.flying.is_empty())
    }
    /// Writes that are not done yet.
    pub fn len(&self) -> usize {
        self.waiting.len() + self.flying.len()
    }
    /// Whether all is written.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// Writes that were done, and those that were lost.
    pub fn counts(&self) -> (u64, u64) {
        (self.written, self.lost)
    }
    fn insert(&mut self, key: K, value: V) {
        self.next += 1;
        self.places.insert(key.clone(), self.next);
        self.waiting.insert(self.next, (key, value));
    }
}
