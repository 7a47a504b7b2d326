//! What is remembered of rows, so that nobody waits for a database that has said it before.
//!
//! A machine without I/O: [`Cache::get`] says what is known or that it is awaited, [`Output`]s what is to be asked and whom to
//! tell, and time is an argument. For each key one question is on its way at most, and each waiter hears exactly once. While
//! the database is away or slow, what was known serves beyond its lifetime, for a bounded time.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use base::{Instant, Random};

/// Waiters of one cache at once; who comes then is told at once that nothing is known. A request waits for a row with some
/// kilobytes of memory of its own.
pub const WAITERS_MAX: usize = 16_384;
/// Keys that are known to have no row: enough for the mistakes of a site, and few against what a scanner may name.
pub const ABSENT_MAX: usize = 16_384;
/// Rows remembered when the rules name no bound; ten times the largest site known.
pub const OBJECTS_MAX: usize = 1_000_000;
/// While the database is away, so often a look-up of what is known asks it all the same.
const PROBE_EVERY: Duration = Duration::from_secs(1);
/// Lifetimes are shortened by up to this part, so that rows that came together do not go together.
const JITTER_PERCENT: u32 = 10;

/// What is remembered for how long.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rules {
    /// Something is remembered; else each look-up asks, and what is known serves only while the database is away.
    pub remembers: bool,
    /// Rows that are remembered at most; the oldest goes.
    pub objects_max: usize,
    /// After so long a row is asked for anew and awaited; `None`: never.
    pub lifetime: Option<Duration>,
    /// After so long a row serves and is asked for behind it; `None`: never.
    pub stale: Option<Duration>,
    /// For so long it is remembered that there is no row.
    pub negative: Duration,
    /// All rows are remembered at once, and what is not among them is not there (`full_backend_cache`). Of more rows than
    /// [`Rules::objects_max`] that cannot be said: then each is asked for that is not remembered.
    pub whole: bool,
    /// For so long a row serves beyond its lifetime while the database is away or slow.
    pub while_away: Duration,
    /// So long a waiter waits. A question that takes longer makes the database slow.
    pub patience: Duration,
}

impl Default for Rules {
    /// Without a cache: each look-up asks.
    fn default() -> Self {
        Self {
            remembers: false,
            objects_max: OBJECTS_MAX,
            lifetime: None,
            stale: None,
            negative: Duration::ZERO,
            whole: false,
            while_away: Duration::from_secs(86_400),
            patience: Duration::from_secs(3),
        }
    }
}

/// What a look-up gives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Given<V> {
    /// This row.
    Known(V),
    /// There is no row.
    Absent,
    /// The waiter will hear.
    Awaited,
    /// The database does not say, and nothing is known.
    Failed,
}

/// What is to be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Output<K, V, W> {
    /// Ask for the row of a key; [`Cache::answered`] takes the answer.
    Ask(K),
    /// Ask for all rows; [`Cache::all_answered`] takes the answer.
    AskAll,
    /// Tell a waiter; never [`Given::Awaited`].
    Tell(W, Given<V>),
    /// What is known of a key is another row than before, or none.
    Changed(K, Option<V>),
    /// The database is away; told once until it is back.
    Away,
    /// It is back.
    Back,
}

/// Counts for people.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Look-ups that were answered at once by what is fresh.
    pub hits: u64,
    /// By what is stale, with a question behind it.
    pub stale: u64,
    /// By what is past its lifetime, because the database is away or slow.
    pub away: u64,
    /// Look-ups that waited.
    pub waited: u64,
    /// Questions for one row.
    pub asked: u64,
    /// Questions for all rows.
    pub asked_all: u64,
    /// Rows that went for others.
    pub evicted: u64,
    /// Look-ups that nobody could answer.
    pub failed: u64,
}

/// A row as it is shown to people.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shown<'a, K, V> {
    /// Its key.
    pub key: &'a K,
    /// The row.
    pub value: &'a V,
    /// Seconds until a look-up asks behind it; `None`: never, `Some(0)`: it is stale.
    pub stale_in: Option<Duration>,
    /// The same for a look-up that waits.
    pub expires_in: Option<Duration>,
}

#[derive(Debug, Clone)]
struct Entry<V> {
    value: V,
    stale_at: Instant,
    expires_at: Instant,
}

/// Entries in the order in which they came.
#[derive(Debug, Clone)]
struct Aged<K, T> {
    entries: BTreeMap<K, (u64, T)>,
    ages: BTreeMap<u64, K>,
    next: u64,
}

impl<K: Ord + Clone, T> Aged<K, T> {
    fn new() -> Self {
        Self { entries: BTreeMap::new(), ages: BTreeMap::new(), next: 0 }
    }
    fn get(&self, key: &K) -> Option<&T> {
        self.entries.get(key).map(|(_, entry)| entry)
    }
    fn get_mut(&mut self, key: &K) -> Option<&mut T> {
        self.entries.get_mut(key).map(|(_, entry)| entry)
    }
    fn insert(&mut self, key: K, entry: T) -> Option<T> {
        let old = self.remove(&key);
        self.next += 1;
        self.ages.insert(self.next, key.clone());
        self.entries.insert(key, (self.next, entry));
        old
    }
    fn remove(&mut self, key: &K) -> Option<T> {
        let (age, entry) = self.entries.remove(key)?;
        self.ages.remove(&age);
        Some(entry)
    }
    fn remove_oldest(&mut self) -> Option<K> {
        let (_, key) = self.ages.pop_first()?;
        self.entries.remove(&key);
        Some(key)
    }
    fn len(&self) -> usize {
        self.entries.len()
    }
}

/// A question on its way.
#[derive(Debug, Clone)]
struct Flight<W> {
    since: Instant,
    /// By number, in the order in which they came.
    waiters: BTreeMap<u64, W>,
}

/// See the module's page. `K` names a row, `V` is one, `W` is told of one.
#[derive(Debug, Clone)]
pub struct Cache<K, V, W> {
    rules: Rules,
    rows: Aged<K, Entry<V>>,
    absent: Aged<K, Instant>,
    flights: BTreeMap<K, Flight<W>>,
    /// The question for all rows, and who waits for it with which key.
    all: Option<Flight<(K, W)>>,
    /// Until when all rows are remembered, and from when on they are stale.
    complete: Option<(Instant, Instant)>,
    /// There are more rows than are remembered: they are asked for one by one.
    is_overfull: bool,
    /// Whose patience ends when; in this order, as all are equally patient.
    patience: VecDeque<(Instant, u64, Option<K>)>,
    waiting: usize,
    next_waiter: u64,
    /// The database is away; when it is asked next for what is known.
    away: Option<Instant>,
    /// When it has answered last.
    heard_at: Option<Instant>,
    luck: Random,
    counts: Counts,
}

impl<K: Ord + Clone, V: Clone + PartialEq, W> Cache<K, V, W> {
    /// An empty one. `seed` shares out lifetimes.
    pub fn new(rules: Rules, seed: u64) -> Self {
        Self {
            rules,
            rows: Aged::new(),
            absent: Aged::new(),
            flights: BTreeMap::new(),
            all: None,
            complete: None,
            is_overfull: false,
            patience: VecDeque::new(),
            waiting: 0,
            next_waiter: 0,
            away: None,
            heard_at: None,
            luck: Random::new(seed),
            counts: Counts::default(),
        }
    }
    /// Takes other rules. What is known stays as long as it was to stay.
    pub fn set_rules(&mut self, rules: Rules) {
        if rules.objects_max > self.rules.objects_max {
            self.is_overfull = false;
        }
        self.rules = rules;
    }
    /// The rules in force.
    pub fn rules(&self) -> &Rules {
        &self.rules
    }
    /// What was counted.
    pub fn counts(&self) -> Counts {
        self.counts
    }
    /// Rows that are known.
    pub fn len(&self) -> usize {
        self.rows.len()
    }
    /// Whether none is.
    pub fn is_empty(&self) -> bool {
        self.rows.len() == 0
    }
    /// Whether the database was away when it was asked last.
    pub fn is_away(&self) -> bool {
        self.away.is_some()
    }
    /// What is known of a key, however old.
    pub fn known(&self, key: &K) -> Option<&V> {
        self.rows.get(key).map(|entry| &entry.value)
    }
    /// Waiters that have not heard yet.
    pub fn waiting(&self) -> usize {
        self.waiting
    }
    /// Questions on their way.
    pub fn in_flight(&self) -> usize {
        self.flights.len() + usize::from(self.all.is_some())
    }
    /// Rows for people, by key.
    pub fn shown(&self, now: Instant) -> impl Iterator<Item = Shown<'_, K, V>> {
        let left = move |at: Instant| (at < Instant::FAR).then(|| at.since(now));
        self.rows.entries.iter().map(move |(key, (_, entry))| Shown {
            key,
            value: &entry.value,
            stale_in: left(entry.stale_at),
            expires_in: left(entry.expires_at),
        })
    }

    /// Looks a row up. Whoever gets [`Given::Awaited`] hears by [`Output::Tell`] with `waiter`.
    pub fn get(&mut self, key: &K, waiter: W, now: Instant, out: &mut Vec<Output<K, V, W>>) -> Given<V> {
        let complete = self.complete.filter(|(_, until)| self.rules.whole && now < *until);
        if let Some(entry) = self.rows.get(key) {
            let (value, stale_at, expires_at) = (entry.value.clone(), entry.stale_at, entry.expires_at);
            if now < expires_at {
                if now < stale_at {
                    self.counts.hits += 1;
                } else {
                    self.counts.stale += 1;
                    self.refresh(key, complete.is_some(), now, out);
                }
                return Given::Known(value);
            }
            if self.serves_while_away(key, expires_at, now) {
                self.counts.away += 1;
                if self.away.is_none_or(|again| again <= now) {
                    self.away = self.away.map(|_| now + PROBE_EVERY);
                    self.refresh(key, false, now, out);
                }
                return Given::Known(value);
            }
        } else if let Some((stale_at, _)) = complete {
            self.counts.hits += 1;
            if now >= stale_at {
                self.ask_all(now, out);
            }
            return Given::Absent;
        } else if self.absent.get(key).is_some_and(|until| now < *until) {
            self.counts.hits += 1;
            return Given::Absent;
        }
        self.wait(key, waiter, complete.is_some(), now, out)
    }

    /// Asks for all rows, unless that is on its way.
    pub fn ask_all(&mut self, now: Instant, out: &mut Vec<Output<K, V, W>>) {
        if self.all.is_none() {
            self.counts.asked_all += 1;
            self.all = Some(Flight { since: now, waiters: BTreeMap::new() });
            out.push(Output::AskAll);
        }
    }

    /// The answer for one key: its row, none, or that the database does not say.
    pub fn answered(
        &mut self,
        key: &K,
        answer: Result<Option<V>, Unanswered>,
        now: Instant,
        out: &mut Vec<Output<K, V, W>>,
    ) {
        let Some(flight) = self.flights.remove(key) else { return };
        let given = match answer {
            Ok(row) => {
                self.is_back(now, out);
                let given = row.clone().map_or(Given::Absent, Given::Known);
                self.learn(key, row, now, out);
                given
            }
            Err(Unanswered) => {
                self.is_gone(flight.since, now, out);
                // What is stale and serves does not ask again at once.
                if let Some(entry) = self.rows.get_mut(key).filter(|entry| now < entry.expires_at) {
                    entry.stale_at = entry.stale_at.max(now + PROBE_EVERY);
                }
                match flight.waiters.is_empty() {
                    true => Given::Failed,
                    false => self.last_resort(key, now),
                }
            }
        };
        for waiter in flight.waiters.into_values() {
            self.waiting = self.waiting.saturating_sub(1);
            out.push(Output::Tell(waiter, given.clone()));
        }
    }

    /// The answer for all rows. Of two rows with one key the first holds.
    pub fn all_answered(
        &mut self,
        answer: Result<Vec<(K, V)>, Unanswered>,
        now: Instant,
        out: &mut Vec<Output<K, V, W>>,
    ) {
        let (since, waiters) =
            self.all.take().map_or((now, BTreeMap::new()), |flight| (flight.since, flight.waiters));
        // Of more rows than are remembered some may be gone before their waiters are told.
        let mut wanted: BTreeMap<K, Option<V>> =
            waiters.values().map(|(key, _)| (key.clone(), None)).collect();
        let answered = answer.is_ok();
        match answer {
            Ok(rows) => {
                self.is_back(now, out);
                for (key, row) in &rows {
                    if let Some(place) = wanted.get_mut(key) {
                        place.get_or_insert_with(|| row.clone());
                    }
                }
                self.populate(rows, now, out);
            }
            Err(Unanswered) => self.is_gone(since, now, out),
        }
        for (key, waiter) in waiters.into_values() {
            self.waiting = self.waiting.saturating_sub(1);
            let given = match answered {
                true => wanted.get(&key).cloned().flatten().map_or(Given::Absent, Given::Known),
                false => self.last_resort(&key, now),
            };
            out.push(Output::Tell(waiter, given));
        }
    }

    /// Forgets how fresh a row is: who wants it next waits for the database. `false`: nothing is known of it.
    pub fn expire(&mut self, key: &K, now: Instant) -> bool {
        let was_absent = self.absent.remove(key).is_some();
        let Some(entry) = self.rows.get_mut(key) else { return was_absent };
        (entry.stale_at, entry.expires_at) = (now, now);
        true
    }
    /// Forgets a row: who wants it next waits for the database.
    pub fn forget(&mut self, key: &K, out: &mut Vec<Output<K, V, W>>) {
        self.absent.remove(key);
        if self.rows.remove(key).is_some() {
            self.complete = None;
            out.push(Output::Changed(key.clone(), None));
        }
    }
    /// The same as [`Self::expire`] for all rows.
    pub fn expire_all(&mut self, now: Instant) {
        self.complete = None;
        self.absent = Aged::new();
        for (_, entry) in self.rows.entries.values_mut() {
            (entry.stale_at, entry.expires_at) = (now, now);
        }
    }
    /// The next look-up of a row is answered by what is known and asks behind it. `false`: nothing is known of it.
    pub fn stale(&mut self, key: &K, now: Instant) -> bool {
        let Some(entry) = self.rows.get_mut(key) else { return false };
        entry.stale_at = now;
        true
    }
    /// The same for all rows.
    pub fn stale_all(&mut self, now: Instant) {
        self.complete = self.complete.map(|(_, until)| (now, until));
        for (_, entry) in self.rows.entries.values_mut() {
            entry.stale_at = now;
        }
    }

    /// When [`Self::due`] next wants to be called.
    pub fn deadline(&self) -> Option<Instant> {
        self.patience.front().map(|(at, ..)| *at)
    }
    /// Tells those who have waited long enough what there is.
    pub fn due(&mut self, now: Instant, out: &mut Vec<Output<K, V, W>>) {
        while let Some((at, ..)) = self.patience.front()
            && *at <= now
        {
            let Some((_, number, key)) = self.patience.pop_front() else { return };
            let (key, waiter) = match key {
                Some(key) => {
                    let waiters = self.flights.get_mut(&key).map(|flight| &mut flight.waiters);
                    let found = waiters.and_then(|waiters| waiters.remove(&number));
                    (Some(key), found)
                }
                None => match self.all.as_mut().and_then(|flight| flight.waiters.remove(&number)) {
                    Some((key, waiter)) => (Some(key), Some(waiter)),
                    None => (None, None),
                },
            };
            let (Some(key), Some(waiter)) = (key, waiter) else { continue };
            self.waiting = self.waiting.saturating_sub(1);
            let given = self.last_resort(&key, now);
            out.push(Output::Tell(waiter, given));
        }
    }

    fn wait(
        &mut self,
        key: &K,
        waiter: W,
        is_complete: bool,
        now: Instant,
        out: &mut Vec<Output<K, V, W>>,
    ) -> Given<V> {
        if self.waiting >= WAITERS_MAX {
            return self.last_resort(key, now);
        }
        self.counts.waited += 1;
        self.waiting += 1;
        self.next_waiter += 1;
        let (number, until) = (self.next_waiter, now + self.rules.patience);
        if self.rules.whole && !is_complete && !self.is_overfull {
            self.ask_all(now, out);
            if let Some(flight) = &mut self.all {
                flight.waiters.insert(number, (key.clone(), waiter));
            }
            self.patience.push_back((until, number, None));
        } else {
            self.ask(key, now, out);
            if let Some(flight) = self.flights.get_mut(key) {
                flight.waiters.insert(number, waiter);
            }
            self.patience.push_back((until, number, Some(key.clone())));
        }
        Given::Awaited
    }
    fn ask(&mut self, key: &K, now: Instant, out: &mut Vec<Output<K, V, W>>) {
        if !self.flights.contains_key(key) {
            self.counts.asked += 1;
            self.flights.insert(key.clone(), Flight { since: now, waiters: BTreeMap::new() });
            out.push(Output::Ask(key.clone()));
        }
    }
    /// Asks behind what serves: for all rows when they are remembered as a whole.
    fn refresh(&mut self, key: &K, whole: bool, now: Instant, out: &mut Vec<Output<K, V, W>>) {
        match whole && self.complete.is_some_and(|(stale_at, _)| stale_at <= now) {
            true => self.ask_all(now, out),
            false => self.ask(key, now, out),
        }
    }
    /// Whether a row that is past its lifetime serves because the database is away, or slow with its answer.
    fn serves_while_away(&self, key: &K, expired_at: Instant, now: Instant) -> bool {
        let is_slow = |since: Instant| now >= since + self.rules.patience;
        let slow = self.flights.get(key).is_some_and(|flight| is_slow(flight.since))
            || self.rules.whole && self.all.as_ref().is_some_and(|flight| is_slow(flight.since));
        (self.away.is_some() || slow) && now < expired_at + self.rules.while_away
    }
    /// What there is when the database does not say.
    fn last_resort(&mut self, key: &K, now: Instant) -> Given<V> {
        let entry = self.rows.get(key).filter(|entry| now < entry.expires_at + self.rules.while_away);
        let given = entry.map(|entry| Given::Known(entry.value.clone()));
        match &given {
            Some(_) => self.counts.away += 1,
            None => self.counts.failed += 1,
        }
        given.unwrap_or(Given::Failed)
    }
    fn is_back(&mut self, now: Instant, out: &mut Vec<Output<K, V, W>>) {
        self.heard_at = Some(now);
        if self.away.take().is_some() {
            out.push(Output::Back);
        }
    }
    /// A question that was asked `since` then has failed. One from before the last answer says nothing of this moment: of a
    /// database that was silent many fail after it is back.
    fn is_gone(&mut self, since: Instant, now: Instant, out: &mut Vec<Output<K, V, W>>) {
        if self.heard_at.is_some_and(|heard| since < heard) {
            return;
        }
        if self.away.is_none() {
            out.push(Output::Away);
        }
        self.away = Some(now + PROBE_EVERY);
    }
    fn populate(&mut self, rows: Vec<(K, V)>, now: Instant, out: &mut Vec<Output<K, V, W>>) {
        let mut gone: BTreeMap<K, ()> = self.rows.entries.keys().map(|key| (key.clone(), ())).collect();
        let mut seen: BTreeMap<K, ()> = BTreeMap::new();
        if self.rules.whole {
            let at = |after: Option<Duration>| after.map_or(Instant::FAR, |after| now + after);
            self.complete = Some((at(self.rules.stale), at(self.rules.lifetime)));
        }
        self.absent = Aged::new();
        self.is_overfull = false;
        if rows.len() > OBJECTS_MAX {
            self.overflow();
        }
        for (key, row) in rows.into_iter().take(OBJECTS_MAX) {
            if seen.insert(key.clone(), ()).is_none() {
                gone.remove(&key);
                self.learn(&key, Some(row), now, out);
            }
        }
        for key in gone.into_keys() {
            self.rows.remove(&key);
            out.push(Output::Changed(key, None));
        }
    }
    fn learn(&mut self, key: &K, row: Option<V>, now: Instant, out: &mut Vec<Output<K, V, W>>) {
        let Some(value) = row else {
            if self.rows.remove(key).is_some() {
                out.push(Output::Changed(key.clone(), None));
            }
            if !self.rules.negative.is_zero() {
                let until = now + self.shortened(self.rules.negative);
                self.absent.insert(key.clone(), until);
                if self.absent.len() > ABSENT_MAX {
                    self.absent.remove_oldest();
                }
            }
            return;
        };
        self.absent.remove(key);
        let complete = self.complete.filter(|_| self.rules.whole);
        let (stale_at, expires_at) = match (self.rules.remembers, complete) {
            (false, _) => (now, now),
            (true, Some((stale_at, expires_at))) => (stale_at.max(now), expires_at),
            (true, None) => {
                let expires_at = self.rules.lifetime.map(|after| now + self.shortened(after));
                let stale_at = self.rules.stale.map(|after| now + self.shortened(after));
                (stale_at.unwrap_or(Instant::FAR), expires_at.unwrap_or(Instant::FAR))
            }
        };
        let old = self.rows.insert(key.clone(), Entry { value: value.clone(), stale_at, expires_at });
        if old.is_none_or(|old| old.value != value) {
            out.push(Output::Changed(key.clone(), Some(value)));
        }
        while self.rows.len() > self.rules.objects_max.clamp(1, OBJECTS_MAX) {
            self.rows.remove_oldest();
            self.counts.evicted += 1;
            self.overflow();
        }
    }
    /// A row that is there is not remembered: from here on one that is not remembered may be there.
    fn overflow(&mut self) {
        self.complete = None;
        self.is_overfull = self.rules.whole;
    }
    /// Whether all rows were to be remembered and there are too many.
    pub fn is_overfull(&self) -> bool {
        self.is_overfull
    }
    /// A lifetime, a little shorter by luck.
    fn shortened(&mut self, lifetime: Duration) -> Duration {
        let part = u32::try_from(self.luck.below(1024)).unwrap_or_default();
        lifetime - lifetime * JITTER_PERCENT / 100 * part / 1024
    }
}

/// The database did not say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unanswered;
