//! Configuration files that lie in databases whole, and families whose rows stand beside files: asked for at the start and
//! at each reload, and taken by another reload when they say something else than before.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use base::Instant;
use call::Level;
use conf::Findings;
use realtime::{Answer, Failure, Filter, Load, Order, Query, Row};
use store::config::realtime::files::{COMMENTED, FILE, FileRow, ORDER, text_of_rows};
use store::config::realtime::{FAMILIES, FamilyRow};
use store::{Kept, Snapshot};

use crate::databases::{Asker, Shared, connection_name};

/// Longest that the start waits for files; what comes later is taken when it comes.
const START_WAIT: Duration = Duration::from_secs(10);
/// Rows of families are asked for so often: what is changed in a table holds a minute later without a reload.
const FAMILIES_EVERY: Duration = Duration::from_secs(60);
/// Whoever misses a row has them asked for at once, but not more often than this.
const FAMILIES_PAUSE: Duration = Duration::from_secs(1);
/// How long who misses a row waits for the databases.
const MISSED_WAIT: Duration = Duration::from_secs(3);
/// A file that could not be had is asked for again so much later.
const AGAIN: Duration = Duration::from_secs(5);

/// See the module's page.
pub(crate) struct Statics {
    databases: Shared,
    /// Where each file or family lies: connections and tables, first asked first.
    places: BTreeMap<String, Vec<(String, String)>>,
    kept: Kept,
    /// Questions on their way: the file or family, and which of its places has it.
    flights: BTreeMap<u64, (String, usize)>,
    next: u64,
    again_at: BTreeMap<String, Instant>,
    lines: Vec<(Level, String)>,
    /// Files that could not be had, and of which that was told.
    told: BTreeSet<String>,
    changed: bool,
    /// A file is among what has changed.
    files_changed: bool,
    /// What is asked for is asked because of a reload, which has read all files.
    is_of_reload: bool,
    /// When families were asked for last.
    families_asked: Instant,
    /// Until when somebody waits who has missed a row.
    awaited_until: Option<Instant>,
}

/// What databases have changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Changed {
    /// Files; else rows of families alone.
    pub(crate) files: bool,
    /// It was asked for by a reload, which has read the files of the folder.
    pub(crate) of_reload: bool,
}

impl Statics {
    /// Asks for the files that lie in databases. `None`: none does.
    pub(crate) fn open(snapshot: &Snapshot, databases: &Shared, now: Instant) -> Option<Self> {
        let mut statics = Self {
            databases: databases.clone(),
            places: BTreeMap::new(),
            kept: Kept::default(),
            flights: BTreeMap::new(),
            next: 0,
            again_at: BTreeMap::new(),
            lines: Vec::new(),
            told: BTreeSet::new(),
            changed: false,
            files_changed: false,
            is_of_reload: true,
            families_asked: now,
            awaited_until: None,
        };
        statics.configure(snapshot, now);
        (!statics.places.is_empty()).then_some(statics)
    }
    /// A reload says which files lie where; all are asked for anew.
    pub(crate) fn configure(&mut self, snapshot: &Snapshot, now: Instant) {
        let realtime = &snapshot.realtime;
        let place = |of: &store::config::realtime::Backend| {
            (connection_name(realtime, of.driver, &of.database), of.table.clone())
        };
        let files = realtime.families.files();
        let families = FAMILIES.iter().map(|(name, _)| (*name, realtime.families.of(name)));
        let all = files.chain(families.filter(|(_, of)| !of.is_empty()));
        self.places = all.map(|(name, of)| (name.to_owned(), of.iter().map(place).collect())).collect();
        let known = self.kept.texts.len();
        self.kept.texts.retain(|name, _| self.places.contains_key(name));
        self.files_changed |= known != self.kept.texts.len();
        self.changed |= self.files_changed;
        self.changed |= self.kept.families.retain(|name| self.places.contains_key(name));
        self.again_at.clear();
        (self.is_of_reload, self.families_asked) = (true, now);
        let names: Vec<String> = self.places.keys().cloned().collect();
        names.into_iter().for_each(|name| self.ask(name, 0, now));
    }
    /// Waits for the files, as long as a start may. The configuration with them.
    pub(crate) fn wait(
        &mut self,
        snapshot: &Arc<Snapshot>,
        now: &dyn Fn() -> Instant,
        findings: &mut Findings,
    ) -> Arc<Snapshot> {
        let until = now() + START_WAIT;
        while !self.flights.is_empty() && now() < until {
            self.databases.borrow_mut().wait(until.since(now()));
            self.take_in(now());
        }
        if !self.flights.is_empty() {
            let line = format!(
                "after {} s the databases have not given all files; the rest is taken when it comes",
                START_WAIT.as_secs()
            );
            self.lines.push((Level::Warning, line));
        }
        self.files_changed = false;
        if !std::mem::take(&mut self.changed) {
            return snapshot.clone();
        }
        match snapshot.reload_kept(&[], &self.kept) {
            Ok((snapshot, found)) => {
                *findings = found;
                snapshot
            }
            Err(found) => {
                self.lines.push((
                    Level::Error,
                    "files of databases are refused; those of the folder hold".to_owned(),
                ));
                let told = found.iter().map(|finding| (Level::Error, crate::reload::one_line(finding)));
                self.lines.extend(told);
                snapshot.clone()
            }
        }
    }
    /// Texts of files, and rows of families.
    pub(crate) fn kept(&self) -> &Kept {
        &self.kept
    }
    /// A call has changed rows: what is known of their family is changed as they were, so that a reload that is taken
    /// before the database has answered, or while it is away, does not undo it. What is in force is the call's to change.
    pub(crate) fn learn(&mut self, change: &base::RowsAsk) {
        if let base::RowsAsk::Change { family, keys, sets } = change {
            self.kept.families.change(family, keys, sets);
        }
    }
    /// When files are asked for again.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        let families = self.has_families().then(|| self.families_asked + FAMILIES_EVERY);
        self.again_at.values().copied().chain(families).chain(self.awaited_until).min()
    }
    /// Whether families lie in databases.
    pub(crate) fn has_families(&self) -> bool {
        self.places.keys().any(|name| is_family(name))
    }
    /// Somebody misses a row.
    pub(crate) fn missed(&mut self, now: Instant) {
        self.awaited_until = Some(now + MISSED_WAIT);
        if now >= self.families_asked + FAMILIES_PAUSE {
            self.ask_families(now);
        }
    }
    /// Whether who misses a row need not wait any longer.
    pub(crate) fn have_come(&mut self, now: Instant) -> bool {
        let is_over = self.flights.is_empty() && !self.changed;
        let done = self.awaited_until.is_some_and(|until| is_over || until <= now);
        if done {
            self.awaited_until = None;
        }
        done
    }
    fn ask_families(&mut self, now: Instant) {
        (self.is_of_reload, self.families_asked) = (false, now);
        let on_their_way: BTreeSet<&String> = self.flights.values().map(|(name, _)| name).collect();
        let families = self.places.keys().filter(|name| is_family(name) && !on_their_way.contains(name));
        let families: Vec<String> = families.cloned().collect();
        families.into_iter().for_each(|name| self.ask(name, 0, now));
    }
    /// Asks again for what could not be had.
    pub(crate) fn due(&mut self, now: Instant) {
        if self.has_families() && now >= self.families_asked + FAMILIES_EVERY {
            self.ask_families(now);
        }
        let due: Vec<String> =
            self.again_at.iter().filter(|(_, at)| **at <= now).map(|(name, _)| name.clone()).collect();
        for name in due {
            self.again_at.remove(&name);
            self.ask(name, 0, now);
        }
    }
    /// What databases have answered.
    pub(crate) fn take_in(&mut self, now: Instant) {
        let came = self.databases.borrow_mut().take(Asker::Files);
        for (number, answer) in came {
            if let Some((name, place)) = self.flights.remove(&number) {
                self.answered(name, place, answer, now);
            }
        }
    }
    fn ask(&mut self, name: String, place: usize, now: Instant) {
        let Some((connection, table)) = self.places.get(&name).and_then(|of| of.get(place)).cloned() else {
            return;
        };
        let order = |(column, descending): (&str, bool)| Order { column: column.to_owned(), descending };
        let family = FAMILIES.iter().find(|(family, _)| *family == name);
        let (filters, order) = match family {
            Some((_, columns)) => (Vec::new(), columns.iter().map(|column| order((column, false))).collect()),
            None => {
                let filters = vec![Filter::is(FILE, name.as_str()), Filter::is(COMMENTED, "0")];
                (filters, ORDER.map(order).to_vec())
            }
        };
        let query = Query::Load(Load { table, filters, order, limit: None });
        self.next += 1;
        let submitted = self.databases.borrow_mut().submit(&connection, (Asker::Files, self.next), query);
        match submitted {
            Ok(()) => _ = self.flights.insert(self.next, (name, place)),
            Err(failure) => self.answered(name, place, Err(failure), now),
        }
    }
    fn answered(&mut self, name: String, place: usize, answer: Result<Answer, Failure>, now: Instant) {
        match answer {
            Ok(Answer::Rows(rows)) => {
                self.told.remove(&name);
                if is_family(&name) {
                    let rows = rows.iter().map(family_row).collect();
                    self.changed |= self.kept.families.take(&name, rows);
                    return;
                }
                let text = text_of_rows(rows.iter().map(line));
                if self.kept.texts.get(&name) != Some(&text) {
                    (self.changed, self.files_changed) = (true, true);
                    self.kept.texts.insert(name, text);
                }
            }
            Ok(_) => {}
            Err(_) if self.places.get(&name).is_some_and(|places| place + 1 < places.len()) => {
                self.ask(name, place + 1, now);
            }
            Err(failure) => {
                let holds = match (is_family(&name), self.kept.texts.contains_key(&name)) {
                    (true, _) => "has the rows that are known of it",
                    (false, true) => "stays as it was",
                    (false, false) => "is read from its folder",
                };
                if self.told.insert(name.clone()) {
                    let line = format!("{name} {holds}: {failure}; {}", failure.remedy());
                    self.lines.push((Level::Error, line));
                }
                if failure.is_passing() {
                    self.again_at.insert(name, now + AGAIN);
                }
            }
        }
    }
    /// The configuration in force is of the files as they are known.
    pub(crate) fn rest(&mut self) {
        (self.changed, self.files_changed) = (false, false);
    }
    /// What there is to say.
    pub(crate) fn take_lines(&mut self) -> Vec<(Level, String)> {
        std::mem::take(&mut self.lines)
    }
    /// What says something else than what is in force, once all have come.
    pub(crate) fn take_changed(&mut self) -> Option<Changed> {
        if !self.flights.is_empty() || !std::mem::take(&mut self.changed) {
            return None;
        }
        Some(Changed { files: std::mem::take(&mut self.files_changed), of_reload: self.is_of_reload })
    }
}

fn is_family(name: &str) -> bool {
    FAMILIES.iter().any(|(family, _)| *family == name)
}

fn family_row(row: &Row) -> FamilyRow {
    row.iter().map(|(column, value)| (column.to_owned(), value.to_owned())).collect()
}

fn line(row: &Row) -> FileRow<'_> {
    let field = |name| row.get(name).unwrap_or_default();
    FileRow {
        metric: field("cat_metric"),
        category: field("category"),
        name: field("var_name"),
        value: field("var_val"),
    }
}
