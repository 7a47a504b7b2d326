//! Configuration files that lie in databases whole: asked for at the start and at each reload, and taken by another reload
//! when they say something else than before.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use base::Instant;
use call::Level;
use conf::Findings;
use realtime::{Answer, Failure, Filter, Load, Order, Query, Row};
use store::Snapshot;
use store::config::realtime::files::{COMMENTED, FILE, FileRow, ORDER, text_of_rows};

use crate::databases::{Asker, Shared, connection_name};

/// Longest that the start waits for files; what comes later is taken when it comes.
const START_WAIT: Duration = Duration::from_secs(10);
/// A file that could not be had is asked for again so much later.
const AGAIN: Duration = Duration::from_secs(5);

/// See the module's page.
pub(crate) struct Statics {
    databases: Shared,
    /// Where each file lies: connections and tables, first asked first.
    places: BTreeMap<String, Vec<(String, String)>>,
    texts: BTreeMap<String, String>,
    /// Questions on their way: the file, and which of its places has it.
    flights: BTreeMap<u64, (String, usize)>,
    next: u64,
    again_at: BTreeMap<String, Instant>,
    lines: Vec<(Level, String)>,
    /// Files that could not be had, and of which that was told.
    told: BTreeSet<String>,
    changed: bool,
}

impl Statics {
    /// Asks for the files that lie in databases. `None`: none does.
    pub(crate) fn open(snapshot: &Snapshot, databases: &Shared, now: Instant) -> Option<Self> {
        let mut statics = Self {
            databases: databases.clone(),
            places: BTreeMap::new(),
            texts: BTreeMap::new(),
            flights: BTreeMap::new(),
            next: 0,
            again_at: BTreeMap::new(),
            lines: Vec::new(),
            told: BTreeSet::new(),
            changed: false,
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
        self.places = files.map(|(name, of)| (name.to_owned(), of.iter().map(place).collect())).collect();
        let known = self.texts.len();
        self.texts.retain(|name, _| self.places.contains_key(name));
        self.changed |= known != self.texts.len();
        self.again_at.clear();
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
        if !std::mem::take(&mut self.changed) {
            return snapshot.clone();
        }
        match snapshot.reload_texts(&[], &self.texts) {
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
    /// The texts of the files.
    pub(crate) fn texts(&self) -> &BTreeMap<String, String> {
        &self.texts
    }
    /// When files are asked for again.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.again_at.values().copied().min()
    }
    /// Asks again for what could not be had.
    pub(crate) fn due(&mut self, now: Instant) {
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
        let order = ORDER.map(|(column, descending)| Order { column: column.to_owned(), descending });
        let query = Query::Load(Load {
            table,
            filters: vec![Filter::is(FILE, name.as_str()), Filter::is(COMMENTED, "0")],
            order: order.to_vec(),
            limit: None,
        });
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
                let text = text_of_rows(rows.iter().map(line));
                if self.texts.get(&name) != Some(&text) {
                    self.changed = true;
                    self.texts.insert(name, text);
                }
            }
            Ok(_) => {}
            Err(_) if self.places.get(&name).is_some_and(|places| place + 1 < places.len()) => {
                self.ask(name, place + 1, now);
            }
            Err(failure) => {
                let holds = if self.texts.contains_key(&name) {
                    "stays as it was"
                } else {
                    "is read from its folder"
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
        self.changed = false;
    }
    /// What there is to say.
    pub(crate) fn take_lines(&mut self) -> Vec<(Level, String)> {
        std::mem::take(&mut self.lines)
    }
    /// Whether files say something else than those in force, once all have come.
    pub(crate) fn take_changed(&mut self) -> bool {
        self.flights.is_empty() && std::mem::take(&mut self.changed)
    }
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
