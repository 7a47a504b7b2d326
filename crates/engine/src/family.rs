//! A family of rows that are looked up one by one: where they lie, what is remembered of them, what is on its way.
//!
//! What rows mean is the owner's to know; it takes what a family has said after each of its steps.

use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;
use std::time::Duration;

use base::Instant;
use call::Level;
use control::site::{CacheFault, CacheLine, CacheWish, ObjectLine};
use realtime::cache::{Cache, Given, Output, Rules, Unanswered};
use realtime::{Answer, Failure, Filter, Load, Query, Row};
use store::config::realtime::Realtime;

use crate::databases::{Asker, Shared, connection_name};

/// A load of all rows that failed is tried again so much later.
pub(crate) const LOAD_AGAIN: Duration = Duration::from_secs(5);

pub(crate) type Name = Rc<str>;
pub(crate) type Rowed = Rc<Row>;

/// Connections and tables that a family lies in, first asked first.
pub(crate) type Places = Vec<(String, String)>;

/// Where the rows of a family lie; empty: in no database.
pub(crate) fn places(realtime: &Realtime, family: &str) -> Places {
    let backends = realtime.families.of(family).iter();
    let place = |backend: &store::config::realtime::Backend| {
        (connection_name(realtime, backend.driver, &backend.database), backend.table.clone())
    };
    backends.map(place).collect()
}

/// What follows for the owner.
pub(crate) enum Said<W> {
    /// A waiter hears; never [`Given::Awaited`].
    Tell(W, Given<Rowed>),
    /// What is known of a name is another row than before, or none.
    Changed(Name, Option<Rowed>),
    /// The log.
    Line(Level, String),
}

/// What a question was for.
#[derive(Clone)]
enum Wanted {
    One(Name),
    All,
}

/// See the module's page.
pub(crate) struct Family<W> {
    databases: Shared,
    asker: Asker,
    /// What rows are called in the log: `users of IAX2`.
    what: &'static str,
    /// The column that names a row.
    key: &'static str,
    places: Places,
    cache: Cache<Name, Rowed, W>,
    /// Questions on their way, and which of the places has them.
    flights: BTreeMap<u64, (Wanted, usize)>,
    next: u64,
    again_at: Option<Instant>,
    said: Vec<Said<W>>,
}

impl<W> Family<W> {
    pub(crate) fn new(
        databases: Shared,
        asker: Asker,
        (what, key): (&'static str, &'static str),
        places: Places,
        (rules, seed): (Rules, u64),
    ) -> Self {
        Self {
            databases,
            asker,
            what,
            key,
            places,
            cache: Cache::new(rules, seed),
            flights: BTreeMap::new(),
            next: 0,
            again_at: None,
            said: Vec::new(),
        }
    }
    pub(crate) fn places(&self) -> &Places {
        &self.places
    }
    pub(crate) fn set_rules(&mut self, rules: Rules) {
        self.cache.set_rules(rules);
    }
    /// All that is known.
    pub(crate) fn rows(&self, now: Instant) -> impl Iterator<Item = (&Name, &Rowed)> {
        self.cache.shown(now).map(|shown| (shown.key, shown.value))
    }
    /// Whether questions are on their way.
    pub(crate) fn is_asking(&self) -> bool {
        !self.flights.is_empty()
    }
    /// Looks a row up. Whoever gets [`Given::Awaited`] hears by [`Said::Tell`].
    pub(crate) fn get(&mut self, name: &Name, waiter: W, now: Instant) -> Given<Rowed> {
        let mut out = Vec::new();
        let given = self.cache.get(name, waiter, now, &mut out);
        self.carry_out(out, now);
        given
    }
    /// Asks for all rows.
    pub(crate) fn load(&mut self, now: Instant) {
        let mut out = Vec::new();
        self.cache.ask_all(now, &mut out);
        self.carry_out(out, now);
    }
    /// Forgets a row.
    pub(crate) fn forget(&mut self, name: &Name, now: Instant) {
        let mut out = Vec::new();
        self.cache.forget(name, &mut out);
        self.carry_out(out, now);
    }
    /// What databases have answered.
    pub(crate) fn take_in(&mut self, now: Instant) {
        let answers = self.databases.borrow_mut().take(self.asker);
        for (number, answer) in answers {
            if let Some((wanted, place)) = self.flights.remove(&number) {
                self.answered(wanted, place, answer, now);
            }
        }
    }
    /// Whose patience ends when, and when a load is tried again.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.cache.deadline().into_iter().chain(self.again_at).min()
    }
    /// Tells who has waited long enough, and tries a load again.
    pub(crate) fn due(&mut self, now: Instant) {
        let mut out = Vec::new();
        self.cache.due(now, &mut out);
        if self.again_at.take_if(|at| *at <= now).is_some() {
            self.cache.ask_all(now, &mut out);
        }
        self.carry_out(out, now);
    }
    /// What follows for the owner.
    pub(crate) fn take_said(&mut self) -> Vec<Said<W>> {
        std::mem::take(&mut self.said)
    }

    fn ask(&mut self, wanted: Wanted, place: usize, now: Instant) {
        let Some((connection, table)) = self.places.get(place).cloned() else { return };
        let (filters, limit) = match &wanted {
            Wanted::One(name) => (vec![Filter::is(self.key, &**name)], Some(1)),
            Wanted::All => (Vec::new(), None),
        };
        self.next += 1;
        let query = Query::Load(Load { table, filters, limit, ..Load::default() });
        let submitted = self.databases.borrow_mut().submit(&connection, (self.asker, self.next), query);
        match submitted {
            Ok(()) => _ = self.flights.insert(self.next, (wanted, place)),
            Err(failure) => self.answered(wanted, place, Err(failure), now),
        }
    }
    fn answered(&mut self, wanted: Wanted, place: usize, answer: Result<Answer, Failure>, now: Instant) {
        let rows = match answer {
            Ok(Answer::Rows(rows)) => Ok(rows),
            Ok(_) => Ok(Vec::new()),
            Err(_) if place + 1 < self.places.len() => return self.ask(wanted, place + 1, now),
            Err(failure) => {
                // A failure is told when the database had answered before.
                if !self.cache.is_away() {
                    let line = format!("{}: {failure}; {}", self.what, failure.remedy());
                    self.said.push(Said::Line(Level::Error, line));
                }
                Err(Unanswered)
            }
        };
        let mut out = Vec::new();
        match wanted {
            Wanted::One(name) => {
                let row = rows.map(|rows| rows.into_iter().next().map(Rc::new));
                self.cache.answered(&name, row, now, &mut out);
            }
            Wanted::All => {
                if rows.is_err() {
                    self.again_at = Some(now + LOAD_AGAIN);
                }
                let named = |row: Row| Some((row.get(self.key)?.into(), Rc::new(row)));
                let rows = rows.map(|rows| rows.into_iter().filter_map(named).collect());
                let before = self.cache.is_overfull();
                self.cache.all_answered(rows, now, &mut out);
                if self.cache.is_overfull() && !before {
                    let line = format!(
                        "{}: there are more rows than are remembered (full_backend_cache, maximum_objects); each is asked for \
                         that is not",
                        self.what
                    );
                    self.said.push(Said::Line(Level::Warning, line));
                }
            }
        }
        self.carry_out(out, now);
    }
    fn carry_out(&mut self, out: Vec<Output<Name, Rowed, W>>, now: Instant) {
        let mut todo = VecDeque::from(out);
        while let Some(output) = todo.pop_front() {
            match output {
                Output::Ask(name) => self.ask(Wanted::One(name), 0, now),
                Output::AskAll => self.ask(Wanted::All, 0, now),
                Output::Tell(waiter, given) => self.said.push(Said::Tell(waiter, given)),
                Output::Changed(name, row) => self.said.push(Said::Changed(name, row)),
                Output::Away => {
                    let line = format!("{}: what is known serves until the database is back", self.what);
                    self.said.push(Said::Line(Level::Warning, line));
                }
                Output::Back => {
                    self.said.push(Said::Line(Level::Notice, format!("{}: the database is back", self.what)));
                    // It may be another than before.
                    self.again_at = Some(now);
                }
            }
        }
    }

    /// What there is to show of what is remembered, under this name.
    pub(crate) fn line(&self, name: String) -> CacheLine {
        cache_line(&self.cache, name)
    }
    /// Rows that are remembered.
    pub(crate) fn objects(&self, most: usize, now: Instant) -> Vec<ObjectLine> {
        object_lines(&self.cache, most, now)
    }
    /// Does something to a row, or to all.
    pub(crate) fn change(
        &mut self,
        object: Option<&str>,
        wish: CacheWish,
        now: Instant,
    ) -> Result<(), CacheFault> {
        if wish == CacheWish::Populate {
            self.load(now);
            return Ok(());
        }
        change(&mut self.cache, object, wish, now)
    }
}

fn seconds(time: Option<Duration>) -> Option<u64> {
    time.map(|time| time.as_secs())
}

/// What there is to show of a cache.
pub(crate) fn cache_line<W>(cache: &Cache<Name, Rowed, W>, name: String) -> CacheLine {
    let (rules, counts) = (cache.rules(), cache.counts());
    CacheLine {
        name,
        objects: cache.len(),
        maximum: rules.objects_max,
        lifetime: if rules.remembers { seconds(rules.lifetime) } else { Some(0) },
        stale: seconds(rules.stale),
        whole: rules.whole,
        is_away: cache.is_away(),
        hits: counts.hits,
        stale_hits: counts.stale,
        away_hits: counts.away,
        waited: counts.waited,
        failed: counts.failed,
        asked: counts.asked + counts.asked_all,
        evicted: counts.evicted,
        in_flight: cache.in_flight(),
        waiting: cache.waiting(),
    }
}

/// Rows that a cache remembers, so many at most.
pub(crate) fn object_lines<W>(cache: &Cache<Name, Rowed, W>, most: usize, now: Instant) -> Vec<ObjectLine> {
    let line = |shown: realtime::cache::Shown<'_, Name, Rowed>| ObjectLine {
        name: shown.key.to_string(),
        stale_in: seconds(shown.stale_in),
        expires_in: seconds(shown.expires_in),
    };
    cache.shown(now).take(most).map(line).collect()
}

/// Has a row, or all, asked for anew.
pub(crate) fn change<W>(
    cache: &mut Cache<Name, Rowed, W>,
    object: Option<&str>,
    wish: CacheWish,
    now: Instant,
) -> Result<(), CacheFault> {
    let known = match (wish, object.map(Name::from)) {
        (CacheWish::Expire, Some(object)) => cache.expire(&object, now),
        (CacheWish::Stale, Some(object)) => cache.stale(&object, now),
        (CacheWish::Expire, None) => {
            cache.expire_all(now);
            true
        }
        (CacheWish::Stale, None) => {
            cache.stale_all(now);
            true
        }
        // The owner asks.
        (CacheWish::Populate, _) => true,
    };
    if known { Ok(()) } else { Err(CacheFault::NoObject) }
}
