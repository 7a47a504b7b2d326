//! Objects of SIP that lie in databases: what is known of them, what is asked, and what follows for the driver.
//!
//! Endpoints, AORs and auths are looked up one by one through a cache each, and all at once at the start, at a reload and
//! when somebody asks for it. Transports, identifies, registrations and the settings of the stack are read at the start and
//! at a reload. Nothing here waits, but for the start.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use base::Instant;
use call::Level;
use conf::{Findings, Section};
use control::site::{CacheFault, CacheLine, CacheWish, Caches, ObjectLine};
use driver::sip::{Aor, Auth, Config, Directory, Endpoint, Learned, Lookup};
use io::clock::Clock;
use realtime::cache::{Cache, Given, Output, Rules, Unanswered};
use realtime::{Answer, Failure, Filter, Load, Query, Row};
use store::Snapshot;
use store::config::pjsip::Pjsip;
use store::config::realtime::{ID, MemoryCache, Realtime, RowReader};

use crate::databases::{Asker, Shared};
use crate::family::{self, LOAD_AGAIN, Name, Rowed};
use crate::wire::{self, Hosts};

/// Longest that the start waits for rows; what comes later is taken when it comes.
pub(crate) const START_WAIT: Duration = Duration::from_secs(10);
/// Findings about rows that are told at once; the rest is counted.
pub(crate) const TOLD_MAX: usize = 20;
/// With more changed objects than this the driver is configured anew instead of taught one by one.
const BULK: usize = 500;

/// Kinds that are looked up one by one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    Endpoint,
    Aor,
    Auth,
}

const KINDS: [(Kind, &str); 3] = [(Kind::Endpoint, "endpoint"), (Kind::Aor, "aor"), (Kind::Auth, "auth")];
/// Kinds that are read as a whole, at the start and at a reload.
const WHOLE: [&str; 7] = ["transport", "identify", "registration", "global", "system", "acl", "domain_alias"];

/// Who is told: the endpoint whose look-up it is, and which object of it.
type Waiter = (Name, Name);
/// A family that is looked up one by one: where it lies, how its rows are read, and what is remembered of them.
type Held = (Table, RowReader, Cache<Name, Rowed, Waiter>);

/// One table, in the databases that hold it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Table {
    /// Connections and tables, first asked first.
    places: Vec<(String, String)>,
    database_first: bool,
}

/// What a question was for.
#[derive(Debug, Clone)]
enum Wanted {
    One(Kind, Name),
    All(Kind),
    Whole(&'static str),
}

/// A question on its way, and which of the family's databases has it.
#[derive(Debug, Clone)]
struct Flight {
    wanted: Wanted,
    place: usize,
}

/// An endpoint that is being looked up with all that belongs to it.
#[derive(Debug, Default)]
struct Assembly {
    awaited: BTreeSet<(Kind, Name)>,
    failed: bool,
}

/// What is to be done with the driver.
#[derive(Default)]
pub(crate) struct Effects {
    pub(crate) lines: Vec<(Level, String)>,
    /// Endpoints that were looked up, and whether the database said something.
    pub(crate) finished: Vec<(Name, bool)>,
    changed: Vec<(Kind, Name, Option<Rowed>)>,
    /// Rows of kinds that are read as a whole are others than those in force.
    pub(crate) reload: bool,
}

/// Objects as the driver has them.
#[derive(Default)]
struct Objects {
    endpoints: BTreeMap<Name, Rc<Endpoint>>,
    aors: BTreeMap<Name, Rc<Aor>>,
    auths: BTreeMap<Name, Rc<Auth>>,
}

/// See the module's page.
pub(crate) struct Rows {
    databases: Shared,
    snapshot: Arc<Snapshot>,
    caches: BTreeMap<Kind, Held>,
    whole: BTreeMap<&'static str, (Table, RowReader)>,
    whole_rows: BTreeMap<&'static str, Vec<Section>>,
    flights: BTreeMap<u64, Flight>,
    next: u64,
    assemblies: BTreeMap<Name, Assembly>,
    /// Of files.
    own: Objects,
    /// Of rows.
    made: Objects,
    effects: Effects,
    again_at: BTreeMap<&'static str, Instant>,
    /// The next configuration comes of rows that were read just now.
    is_own_reload: bool,
    seed: u64,
}

fn rules(cache: Option<&MemoryCache>) -> Rules {
    let some = |time: Duration| Some(time).filter(|time| !time.is_zero());
    match cache {
        None => Rules::default(),
        Some(of) => Rules {
            remembers: true,
            objects_max: match of.maximum_objects {
                0 => realtime::cache::OBJECTS_MAX,
                most => usize::try_from(most).unwrap_or(usize::MAX),
            },
            lifetime: some(of.object_lifetime_maximum),
            stale: some(of.object_lifetime_stale),
            negative: of.negative_lifetime,
            whole: of.full_backend_cache,
            while_away: of.serve_while_down,
            ..Rules::default()
        },
    }
}

fn table(realtime: &Realtime, kind: &str) -> Option<(Table, RowReader)> {
    let (family, _) = realtime.sorcery.realtime(kind)?;
    let places = family::places(realtime, family);
    let reader = RowReader::new(kind, &places.first()?.1)?;
    let database_first = realtime.sorcery.objects.get(kind).is_some_and(|of| of.database_first());
    Some((Table { places, database_first }, reader))
}

impl Effects {
    pub(crate) fn is_nothing(&self) -> bool {
        self.lines.is_empty() && self.finished.is_empty() && self.changed.is_empty() && !self.reload
    }
}

impl Rows {
    /// Asks for what databases hold of SIP. `None`: nothing.
    pub(crate) fn open(
        snapshot: &Arc<Snapshot>,
        databases: &Shared,
        seed: u64,
        now: Instant,
    ) -> Option<Self> {
        if !snapshot.realtime.has_sip() {
            return None;
        }
        let mut rows = Self {
            databases: databases.clone(),
            snapshot: snapshot.clone(),
            caches: BTreeMap::new(),
            whole: BTreeMap::new(),
            whole_rows: BTreeMap::new(),
            flights: BTreeMap::new(),
            next: 0,
            assemblies: BTreeMap::new(),
            own: Objects::default(),
            made: Objects::default(),
            effects: Effects::default(),
            again_at: BTreeMap::new(),
            is_own_reload: false,
            seed,
        };
        rows.take_tables();
        rows.load_all(now);
        Some(rows)
    }
    /// Waits for what was asked for, as long as a start may. The configuration that holds for it, with its rows.
    pub(crate) fn wait(&mut self, now: &dyn Fn() -> Instant, findings: &mut Findings) {
        let until = now() + START_WAIT;
        while !self.flights.is_empty() && now() < until {
            self.databases.borrow_mut().wait(until.since(now()));
            self.take_in(now());
        }
        if !self.flights.is_empty() {
            let line = format!(
                "after {} s the databases have not said all that SIP needs; the rest is taken when it comes",
                START_WAIT.as_secs()
            );
            self.effects.lines.push((Level::Warning, line));
        }
        self.effects.reload = false;
        let sections = self.sections();
        if !sections.is_empty()
            && let Ok((snapshot, found)) = self.snapshot.reload_with(&sections)
        {
            (self.snapshot, *findings) = (snapshot, found);
        }
        let mut effects = self.take_effects();
        self.learn(&mut effects, &Hosts::default());
        self.effects.lines = effects.lines;
    }
    /// The configuration in force.
    pub(crate) fn snapshot(&self) -> &Arc<Snapshot> {
        &self.snapshot
    }
    /// Takes what the files say of tables.
    fn take_tables(&mut self) {
        let realtime = &self.snapshot.realtime;
        let mut before = std::mem::take(&mut self.caches);
        for (kind, word) in KINDS {
            let Some((table, reader)) = table(realtime, word) else { continue };
            let rules = rules(realtime.sorcery.realtime(word).and_then(|(_, cache)| cache));
            let known = before.remove(&kind).filter(|(known, ..)| known.places == table.places);
            self.seed = self.seed.wrapping_add(1);
            let mut cache = known.map_or_else(|| Cache::new(rules.clone(), self.seed), |(.., cache)| cache);
            cache.set_rules(rules);
            self.caches.insert(kind, (table, reader, cache));
        }
        self.whole = WHOLE.iter().filter_map(|kind| Some((*kind, table(realtime, kind)?))).collect();
        self.whole_rows.retain(|kind, _| self.whole.contains_key(kind));
        let caches = &self.caches;
        if !caches.contains_key(&Kind::Endpoint) {
            self.made.endpoints.clear();
        }
        if !caches.contains_key(&Kind::Aor) {
            self.made.aors.clear();
        }
        if !caches.contains_key(&Kind::Auth) {
            self.made.auths.clear();
        }
    }
    /// A reload has taken another configuration: all rows are asked for anew.
    pub(crate) fn configure(&mut self, snapshot: &Arc<Snapshot>, now: Instant) {
        self.snapshot = snapshot.clone();
        self.take_tables();
        for (kind, word) in KINDS {
            let cache = snapshot.realtime.sorcery.realtime(word).and_then(|(_, cache)| cache);
            if cache.is_some_and(|cache| cache.expire_on_reload)
                && let Some((.., cache)) = self.caches.get_mut(&kind)
            {
                cache.expire_all(now);
            }
        }
        if !std::mem::take(&mut self.is_own_reload) {
            self.load_all(now);
        }
    }
    /// Asks for all rows of all kinds.
    fn load_all(&mut self, now: Instant) {
        let mut out = VecDeque::new();
        for (kind, (.., cache)) in &mut self.caches {
            let mut said = Vec::new();
            cache.ask_all(now, &mut said);
            out.extend(said.into_iter().map(|output| (*kind, output)));
        }
        self.carry_out(out, now);
        let kinds: Vec<&'static str> = self.whole.keys().copied().collect();
        for kind in kinds {
            self.ask(Wanted::Whole(kind), 0, now);
        }
    }
    /// Whose patience ends when, and when a load is tried again.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        let waiters = self.caches.values().filter_map(|(.., cache)| cache.deadline());
        waiters.chain(self.again_at.values().copied()).min()
    }
    /// Tells who has waited long enough, and tries loads again.
    pub(crate) fn due(&mut self, now: Instant) {
        let mut out = VecDeque::new();
        for (kind, (.., cache)) in &mut self.caches {
            let mut said = Vec::new();
            cache.due(now, &mut said);
            out.extend(said.into_iter().map(|output| (*kind, output)));
        }
        self.carry_out(out, now);
        let due: Vec<&'static str> =
            self.again_at.iter().filter(|(_, at)| **at <= now).map(|(kind, _)| *kind).collect();
        for word in due {
            self.again_at.remove(word);
            match KINDS.iter().find(|(_, kind)| *kind == word) {
                Some((kind, _)) => self.populate(*kind, now),
                None => {
                    if let Some(kind) =
                        WHOLE.iter().find(|kind| **kind == word && self.whole.contains_key(**kind))
                    {
                        self.ask(Wanted::Whole(kind), 0, now);
                    }
                }
            }
        }
    }
    /// Asks for all rows of a kind.
    fn populate(&mut self, kind: Kind, now: Instant) {
        let Some((.., cache)) = self.caches.get_mut(&kind) else { return };
        let mut said = Vec::new();
        cache.ask_all(now, &mut said);
        self.carry_out(said.into_iter().map(|output| (kind, output)).collect(), now);
    }
    /// What databases have answered.
    pub(crate) fn take_in(&mut self, now: Instant) {
        let answers = self.databases.borrow_mut().take(Asker::Sip);
        for (number, answer) in answers {
            if let Some(flight) = self.flights.remove(&number) {
                self.answered(flight, answer, now);
            }
        }
    }
    fn answered(&mut self, flight: Flight, answer: Result<Answer, Failure>, now: Instant) {
        let rows = match answer {
            Ok(Answer::Rows(rows)) => Ok(rows),
            Ok(_) => Ok(Vec::new()),
            Err(failure) => Err(failure),
        };
        let places = match &flight.wanted {
            Wanted::One(kind, _) | Wanted::All(kind) => {
                self.caches.get(kind).map(|(table, ..)| table.places.len())
            }
            Wanted::Whole(kind) => self.whole.get(kind).map(|(table, _)| table.places.len()),
        };
        if rows.is_err() && flight.place + 1 < places.unwrap_or(0) {
            return self.ask(flight.wanted, flight.place + 1, now);
        }
        let mut out = Vec::new();
        match flight.wanted {
            Wanted::One(kind, name) => {
                let row = rows.map(|rows| rows.into_iter().next().map(Rc::new));
                self.tell_failure(kind, row.as_ref().err());
                if let Some((.., cache)) = self.caches.get_mut(&kind) {
                    cache.answered(&name, row.map_err(|_| Unanswered), now, &mut out);
                }
                self.carry_out(out.into_iter().map(|output| (kind, output)).collect(), now);
            }
            Wanted::All(kind) => {
                if rows.is_err() {
                    self.again_at.insert(word(kind), now + LOAD_AGAIN);
                }
                self.tell_failure(kind, rows.as_ref().err());
                let rows = rows
                    .map(|rows| rows.into_iter().filter_map(|row| Some((row.get(ID)?.into(), Rc::new(row)))));
                let Some((.., cache)) = self.caches.get_mut(&kind) else { return };
                cache.all_answered(rows.map(Iterator::collect).map_err(|_| Unanswered), now, &mut out);
                self.carry_out(out.into_iter().map(|output| (kind, output)).collect(), now);
            }
            Wanted::Whole(kind) => {
                let Some((_, reader)) = self.whole.get(kind) else { return };
                match rows {
                    Ok(rows) => {
                        let sections: Vec<Section> =
                            rows.iter().filter_map(|row| reader.section(row.get(ID), row.iter())).collect();
                        if self.whole_rows.get(kind).map_or(&[][..], Vec::as_slice) != sections {
                            self.effects.reload = true;
                        }
                        self.whole_rows.insert(kind, sections);
                    }
                    Err(failure) => {
                        if self.again_at.insert(kind, now + LOAD_AGAIN).is_none() {
                            let line = format!(
                                "objects of type {kind} stay as they were: {failure}; {}",
                                failure.remedy()
                            );
                            self.effects.lines.push((Level::Error, line));
                        }
                    }
                }
            }
        }
    }
    /// A failure is told when the database had answered before.
    fn tell_failure(&mut self, kind: Kind, failure: Option<&Failure>) {
        let is_away = self.caches.get(&kind).is_some_and(|(.., cache)| cache.is_away());
        if let Some(failure) = failure.filter(|_| !is_away) {
            let line = format!("objects of type {}: {failure}; {}", word(kind), failure.remedy());
            self.effects.lines.push((Level::Error, line));
        }
    }
    fn ask(&mut self, wanted: Wanted, place: usize, now: Instant) {
        let table = match &wanted {
            Wanted::One(kind, _) | Wanted::All(kind) => self.caches.get(kind).map(|(table, ..)| table),
            Wanted::Whole(kind) => self.whole.get(kind).map(|(table, _)| table),
        };
        let Some((connection, table)) = table.and_then(|table| table.places.get(place)).cloned() else {
            return;
        };
        let (filters, limit) = match &wanted {
            Wanted::One(_, name) => (vec![Filter::is(ID, &**name)], Some(1)),
            Wanted::All(_) | Wanted::Whole(_) => (Vec::new(), None),
        };
        self.next += 1;
        let query = Query::Load(Load { table, filters, limit, ..Load::default() });
        let flight = Flight { wanted, place };
        let submitted = self.databases.borrow_mut().submit(&connection, (Asker::Sip, self.next), query);
        match submitted {
            Ok(()) => _ = self.flights.insert(self.next, flight),
            Err(failure) => self.answered(flight, Err(failure), now),
        }
    }
    fn carry_out(&mut self, mut todo: VecDeque<(Kind, Output<Name, Rowed, Waiter>)>, now: Instant) {
        while let Some((kind, output)) = todo.pop_front() {
            match output {
                Output::Ask(name) => self.ask(Wanted::One(kind, name), 0, now),
                Output::AskAll => self.ask(Wanted::All(kind), 0, now),
                Output::Changed(name, row) => self.effects.changed.push((kind, name, row)),
                Output::Tell((endpoint, name), given) => {
                    let Some(mut assembly) = self.assemblies.remove(&endpoint) else { continue };
                    assembly.awaited.remove(&(kind, name));
                    match given {
                        Given::Known(row) if kind == Kind::Endpoint => {
                            self.gather(&endpoint, &row, &mut assembly, now, &mut todo);
                        }
                        Given::Failed => assembly.failed = true,
                        Given::Known(_) | Given::Absent | Given::Awaited => {}
                    }
                    match assembly.awaited.is_empty() {
                        true => self.effects.finished.push((endpoint, !assembly.failed)),
                        false => _ = self.assemblies.insert(endpoint, assembly),
                    }
                }
                Output::Away => {
                    let line = format!(
                        "objects of type {}: what is known serves until the database is back",
                        word(kind)
                    );
                    self.effects.lines.push((Level::Warning, line));
                }
                Output::Back => {
                    let line = format!("objects of type {}: the database is back", word(kind));
                    self.effects.lines.push((Level::Notice, line));
                    // It may be another than before.
                    self.again_at.insert(word(kind), now);
                }
            }
        }
    }
    /// Looks up what an endpoint refers to.
    fn gather(
        &mut self,
        endpoint: &Name,
        row: &Row,
        assembly: &mut Assembly,
        now: Instant,
        todo: &mut VecDeque<(Kind, Output<Name, Rowed, Waiter>)>,
    ) {
        for (kind, column) in [(Kind::Aor, "aors"), (Kind::Auth, "auth")] {
            let Some((.., cache)) = self.caches.get_mut(&kind) else { continue };
            let names = row.get(column).unwrap_or_default().split([',', ';']).map(str::trim);
            for name in names.filter(|name| !name.is_empty()) {
                let (name, mut out): (Name, _) = (name.into(), Vec::new());
                match cache.get(&name, (endpoint.clone(), name.clone()), now, &mut out) {
                    Given::Known(_) | Given::Absent => {}
                    Given::Awaited => _ = assembly.awaited.insert((kind, name)),
                    Given::Failed => assembly.failed = true,
                }
                todo.extend(out.into_iter().map(|output| (kind, output)));
            }
        }
    }

    /// What came, for the driver.
    pub(crate) fn take_effects(&mut self) -> Effects {
        self.is_own_reload |= self.effects.reload;
        std::mem::take(&mut self.effects)
    }
    /// Sections of `pjsip.conf` that lie in databases as a whole.
    pub(crate) fn sections(&self) -> Vec<Section> {
        self.whole_rows.values().flatten().cloned().collect()
    }
    /// Makes objects of rows that changed. `None`: they are so many that the driver is better configured anew.
    pub(crate) fn learn(&mut self, effects: &mut Effects, hosts: &Hosts) -> Option<Learned> {
        let changed = std::mem::take(&mut effects.changed);
        if changed.is_empty() {
            return Some(Learned::default());
        }
        // Of several changes the last holds.
        let last: BTreeMap<(Kind, Name), Option<Rowed>> =
            changed.into_iter().map(|(kind, name, row)| ((kind, name), row)).collect();
        let mut sections = Vec::new();
        for ((kind, _), row) in &last {
            let reader = self.caches.get(kind).map(|(_, reader, _)| reader);
            sections.extend(
                reader.zip(row.as_ref()).and_then(|(reader, row)| reader.section(row.get(ID), row.iter())),
            );
        }
        let mut findings = Findings::new();
        let (snapshot, stack) = (&self.snapshot, &self.snapshot.pjsip);
        let made = Pjsip::of_rows(sections, &snapshot.acls, snapshot.codecs.coded(), &mut findings);
        let bad = findings.iter().filter(|finding| finding.level == conf::Level::Error);
        let bad: Vec<String> = bad.map(crate::reload::one_line).collect();
        effects.lines.extend(bad.iter().take(TOLD_MAX).map(|line| (Level::Error, line.clone())));
        if bad.len() > TOLD_MAX {
            effects.lines.push((Level::Error, format!("{} more rows are no objects", bad.len() - TOLD_MAX)));
        }
        let is_bulk = last.len() > BULK;
        let mut learned = Learned::default();
        for (kind, name) in last.into_keys() {
            match kind {
                Kind::Endpoint => {
                    let object = made.endpoints.get(&*name).map(|of| {
                        let mut object = wire::sip_endpoint(stack, &name, of, hosts).1;
                        Rc::make_mut(&mut object).is_realtime = true;
                        object
                    });
                    set(&mut self.made.endpoints, &name, object);
                    let object = chosen(&self.made.endpoints, &self.own.endpoints, self.first(kind), &name);
                    learned.endpoints.push((name, object));
                }
                Kind::Aor => {
                    let object = made.aors.get(&*name).map(|of| wire::sip_aor(&name, of).1);
                    set(&mut self.made.aors, &name, object);
                    learned.aors.push((
                        name.clone(),
                        chosen(&self.made.aors, &self.own.aors, self.first(kind), &name),
                    ));
                }
                Kind::Auth => {
                    let object = made.auths.get(&*name).map(|of| wire::sip_auth(stack, &name, of).1);
                    set(&mut self.made.auths, &name, object);
                    let object = chosen(&self.made.auths, &self.own.auths, self.first(kind), &name);
                    learned.auths.push((name, object));
                }
            }
        }
        (!is_bulk).then_some(learned)
    }
    fn first(&self, kind: Kind) -> bool {
        self.caches.get(&kind).is_some_and(|(table, ..)| table.database_first)
    }
    /// Adds the objects of rows to those of files.
    pub(crate) fn merge(&mut self, config: &mut Config) {
        self.own = Objects {
            endpoints: config.endpoints.clone(),
            aors: config.aors.clone(),
            auths: config.auths.clone(),
        };
        merge(&mut config.endpoints, &self.made.endpoints, self.first(Kind::Endpoint));
        merge(&mut config.aors, &self.made.aors, self.first(Kind::Aor));
        merge(&mut config.auths, &self.made.auths, self.first(Kind::Auth));
    }
}

impl Caches for Rows {
    fn list(&self) -> Vec<CacheLine> {
        self.caches.iter().map(|(kind, (.., cache))| family::cache_line(cache, cache_name(*kind))).collect()
    }
    fn objects(&self, cache: &str, most: usize) -> Option<Vec<ObjectLine>> {
        let (_, (.., cache)) = self.caches.iter().find(|(kind, _)| cache_name(**kind) == cache)?;
        Some(family::object_lines(cache, most, Clock.now()))
    }
    fn change(&mut self, cache: &str, object: Option<&str>, wish: CacheWish) -> Result<(), CacheFault> {
        let now = Clock.now();
        let kind = self.caches.keys().find(|kind| cache_name(**kind) == cache).copied();
        let kind = kind.ok_or(CacheFault::NoCache)?;
        if wish == CacheWish::Populate {
            self.populate(kind, now);
            return Ok(());
        }
        let Some((.., cache)) = self.caches.get_mut(&kind) else { return Err(CacheFault::NoCache) };
        family::change(cache, object, wish, now)
    }
}

/// What people call a cache.
fn cache_name(kind: Kind) -> String {
    format!("res_pjsip/{}", word(kind))
}

impl Directory for Rows {
    fn look_up(&mut self, endpoint: &str, now: Instant) -> Lookup {
        let name: Name = endpoint.into();
        let first = self.first(Kind::Endpoint);
        if !first && self.own.endpoints.contains_key(&name) {
            return Lookup::Ready;
        }
        if self.assemblies.contains_key(&name) {
            return Lookup::Awaited;
        }
        let Some((.., cache)) = self.caches.get_mut(&Kind::Endpoint) else { return Lookup::Ready };
        let (mut assembly, mut out, mut todo) = (Assembly::default(), Vec::new(), VecDeque::new());
        let given = cache.get(&name, (name.clone(), name.clone()), now, &mut out);
        todo.extend(out.into_iter().map(|output| (Kind::Endpoint, output)));
        match given {
            Given::Known(row) => self.gather(&name, &row, &mut assembly, now, &mut todo),
            Given::Absent => {}
            Given::Awaited => _ = assembly.awaited.insert((Kind::Endpoint, name.clone())),
            Given::Failed => assembly.failed = true,
        }
        let lookup = match (assembly.awaited.is_empty(), assembly.failed) {
            (true, false) => Lookup::Ready,
            (true, true) => Lookup::Unavailable,
            (false, _) => {
                self.assemblies.insert(name, assembly);
                Lookup::Awaited
            }
        };
        self.carry_out(todo, now);
        lookup
    }
}

fn word(kind: Kind) -> &'static str {
    KINDS.iter().find(|(own, _)| *own == kind).map_or("", |(_, word)| word)
}

fn set<T>(map: &mut BTreeMap<Name, T>, name: &Name, object: Option<T>) {
    match object {
        Some(object) => _ = map.insert(name.clone(), object),
        None => _ = map.remove(name),
    }
}

/// Which of two objects of one name holds.
fn chosen<T: Clone>(
    made: &BTreeMap<Name, T>,
    own: &BTreeMap<Name, T>,
    made_first: bool,
    name: &Name,
) -> Option<T> {
    let (first, second) = if made_first { (made, own) } else { (own, made) };
    first.get(name).or_else(|| second.get(name)).cloned()
}

fn merge<T: Clone>(config: &mut BTreeMap<Name, T>, made: &BTreeMap<Name, T>, made_first: bool) {
    for (name, object) in made {
        if made_first || !config.contains_key(name) {
            config.insert(name.clone(), object.clone());
        }
    }
}
