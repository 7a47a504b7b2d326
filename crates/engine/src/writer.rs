//! Rows that are written behind: what changes often is written once, in batches, and again until a database takes it.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::rc::Rc;

use base::Instant;
use call::Level;
use realtime::behind::{Behind, Outcome};
use realtime::{Answer, Failure, Query, Rewrite};

use crate::databases::{Asker, Shared};
use crate::family::Places;

/// Columns that say which row, and their values.
pub(crate) type Keys = Vec<(String, String)>;
/// Columns and what is written there.
pub(crate) type Sets = Vec<(String, Option<String>)>;
/// A key's value and what is written there.
type Rows = Vec<(String, Vec<Option<String>>)>;

/// What is to become of a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Write {
    /// It has these values, if there is such a row.
    Update(Keys, Sets),
    /// It has these values, and is made when there is none.
    Put(Keys, Sets),
    /// It is a new one.
    Add(Sets),
    /// It is not there.
    Destroy(Keys),
}

impl Write {
    fn query(&self, table: &str) -> Query {
        let table = table.to_owned();
        match self.clone() {
            Self::Update(keys, sets) => Query::Update { table, keys, sets },
            Self::Put(keys, sets) => Query::Put { table, keys, sets },
            Self::Add(sets) => Query::Store { table, sets },
            Self::Destroy(keys) => Query::Destroy { table, keys },
        }
    }
}

/// A batch as the database is asked for it. Every row is its own, so those that get the same columns go together.
fn queries(batch: &[Rc<Write>], table: &str) -> Vec<Query> {
    let mut alike: BTreeMap<(&str, Vec<&str>), Rows> = BTreeMap::new();
    let mut queries = Vec::new();
    for write in batch {
        if let Write::Update(keys, sets) = &**write
            && let [(key, value)] = keys.as_slice()
        {
            let columns = sets.iter().map(|(column, _)| column.as_str()).collect();
            let values = sets.iter().map(|(_, value)| value.clone()).collect();
            alike.entry((key, columns)).or_default().push((value.clone(), values));
        } else {
            queries.push(write.query(table));
        }
    }
    queries.extend(alike.into_iter().map(|((key, columns), rows)| {
        let columns = columns.into_iter().map(str::to_owned).collect();
        Query::Rewrite(Box::new(Rewrite { table: table.to_owned(), key: key.to_owned(), columns, rows }))
    }));
    queries
}

/// What writes new values of a row of which this is still to be written: one that is yet to be made is made with them.
fn renewed(pending: Option<&Write>, keys: Keys, sets: Sets) -> Write {
    match pending {
        Some(Write::Put(..) | Write::Add(..)) => Write::Put(keys, sets),
        Some(Write::Update(..) | Write::Destroy(..)) | None => Write::Update(keys, sets),
    }
}

/// A batch on its way: its number, and which of the places has it.
#[derive(Debug, Clone, Copy)]
struct Flight {
    number: u64,
    place: usize,
}

/// See the module's page. `K` names a row.
pub(crate) struct Writer<K> {
    databases: Shared,
    asker: Asker,
    /// What rows are called in the log.
    what: &'static str,
    places: Places,
    behind: Behind<K, Rc<Write>>,
    /// The batch on its way, for places that may follow.
    batch: Vec<Rc<Write>>,
    flight: Option<Flight>,
    next: u64,
    is_away: bool,
    lines: Vec<(Level, String)>,
}

impl<K: Ord + Clone + Display> Writer<K> {
    pub(crate) fn new(databases: Shared, asker: Asker, what: &'static str, places: Places) -> Self {
        Self {
            databases,
            asker,
            what,
            places,
            behind: Behind::default(),
            batch: Vec::new(),
            flight: None,
            next: 0,
            is_away: false,
            lines: Vec::new(),
        }
    }
    /// Rows lie elsewhere from here on.
    pub(crate) fn set_places(&mut self, places: Places) {
        self.places = places;
    }
    /// Notes what is to become of a row, in place of what was to.
    pub(crate) fn put(&mut self, row: K, write: Write, now: Instant) {
        if !self.places.is_empty() && !self.behind.put(row, Rc::new(write), now) {
            let (_, lost) = self.behind.counts();
            if lost.is_power_of_two() {
                let line = format!(
                    "{}: {lost} rows were not noted, as {} wait for the database already",
                    self.what,
                    self.behind.len()
                );
                self.lines.push((Level::Error, line));
            }
        }
    }
    /// Notes new values of a row that was made before, and is not made again when it is gone.
    pub(crate) fn renew(&mut self, row: K, keys: Keys, sets: Sets, now: Instant) {
        let write = renewed(self.behind.pending(&row).map(|write| &**write), keys, sets);
        self.put(row, write, now);
    }
    /// When [`Self::due`] wants to be called.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.behind.deadline()
    }
    /// Sends what is due.
    pub(crate) fn due(&mut self, now: Instant) {
        let writes: Vec<Rc<Write>> = self.behind.take(now).iter().map(|(_, write)| write.clone()).collect();
        if !writes.is_empty() {
            self.batch = writes;
            self.send(0, now);
        }
    }
    fn send(&mut self, place: usize, now: Instant) {
        let Some((connection, table)) = self.places.get(place) else {
            return self.behind.done(Outcome::Refused, now);
        };
        let queries = queries(&self.batch, table);
        self.next += 1;
        let asked = (self.asker, self.next);
        let submitted = self.databases.borrow_mut().submit(connection, asked, Query::Batch(queries));
        self.flight = Some(Flight { number: self.next, place });
        if let Err(failure) = submitted {
            self.answered(Err(failure), now);
        }
    }
    /// What databases have answered.
    pub(crate) fn take_in(&mut self, now: Instant) {
        let answers = self.databases.borrow_mut().take(self.asker);
        for (number, answer) in answers {
            if self.flight.is_some_and(|flight| flight.number == number) {
                self.answered(answer, now);
            }
        }
    }
    fn answered(&mut self, answer: Result<Answer, Failure>, now: Instant) {
        let Some(flight) = self.flight.take() else { return };
        let failure = match answer {
            Ok(_) => {
                if std::mem::take(&mut self.is_away) {
                    let line =
                        format!("{}: the database is back, {} rows catch up", self.what, self.behind.len());
                    self.lines.push((Level::Notice, line));
                }
                return self.behind.done(Outcome::Written, now);
            }
            Err(failure) => failure,
        };
        if flight.place + 1 < self.places.len() {
            return self.send(flight.place + 1, now);
        }
        // A connection that a reload took away may come back with another.
        if failure.is_passing() || matches!(failure, Failure::Unknown { .. }) {
            if !std::mem::replace(&mut self.is_away, true) {
                let line = format!(
                    "{}: {failure}; rows are written when the database is back; {}",
                    self.what,
                    failure.remedy()
                );
                self.lines.push((Level::Warning, line));
            }
            return self.behind.done(Outcome::Away, now);
        }
        // A batch that was refused is written row by row, so that only the bad one is lost.
        if self.batch.len() == 1 {
            let line = format!("{}: a row is not written: {failure}; {}", self.what, failure.remedy());
            self.lines.push((Level::Error, line));
        }
        self.behind.done(Outcome::Refused, now);
    }
    /// All that waits is due at once: the process ends.
    pub(crate) fn hurry(&mut self, now: Instant) {
        self.behind.hurry(now);
        self.due(now);
    }
    /// Rows that are not written yet.
    pub(crate) fn len(&self) -> usize {
        self.behind.len()
    }
    /// Whether the database was away when it was written to last.
    pub(crate) fn is_away(&self) -> bool {
        self.is_away
    }
    /// Rows that wait, that were written, and that were lost.
    pub(crate) fn counts(&self) -> [u64; 3] {
        let (written, lost) = self.behind.counts();
        [self.behind.len() as u64, written, lost]
    }
    /// What the log is to be told.
    pub(crate) fn take_lines(&mut self) -> Vec<(Level, String)> {
        std::mem::take(&mut self.lines)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair(name: &str, value: &str) -> (String, String) {
        (name.to_owned(), value.to_owned())
    }

    #[test]
    fn new_values_make_no_row_unless_it_is_yet_to_be_made() {
        let (keys, old) = (vec![pair("id", "a")], vec![("port".to_owned(), Some("1".to_owned()))]);
        let sets = vec![("port".to_owned(), Some("2".to_owned()))];
        for (name, pending, makes) in [
            ("written long ago", None, false),
            ("yet to be made", Some(Write::Put(keys.clone(), old.clone())), true),
            ("yet to be renewed", Some(Write::Update(keys.clone(), old)), false),
            ("yet to be removed", Some(Write::Destroy(keys.clone())), false),
        ] {
            let write = renewed(pending.as_ref(), keys.clone(), sets.clone());
            let expected = if makes { Write::Put } else { Write::Update };
            assert_eq!(write, expected(keys.clone(), sets.clone()), "{name}");
        }
    }

    #[test]
    fn rows_that_get_the_same_columns_are_written_together_and_all_others_by_themselves() {
        let sets = |columns: &[&str], value: &str| -> Sets {
            columns.iter().map(|column| ((*column).to_owned(), Some(value.to_owned()))).collect()
        };
        let update = |name: &str, columns: &[&str], value: &str| {
            Write::Update(vec![pair("name", name)], sets(columns, value))
        };
        let two_keys = Write::Update(vec![pair("name", "d"), pair("host", "x")], sets(&["port"], "4"));
        let batch: [Rc<Write>; 5] = [
            update("a", &["port"], "1"),
            Write::Destroy(vec![pair("name", "b")]),
            update("c", &["port", "ipaddr"], "2"),
            two_keys.clone(),
            update("e", &["port"], "3"),
        ]
        .map(Rc::new);
        let row = |name: &str, values: &[&str]| {
            (name.to_owned(), values.iter().map(|value| Some((*value).to_owned())).collect())
        };
        let rewrite = |columns: &[&str], rows: Rows| {
            let columns = columns.iter().map(|column| (*column).to_owned()).collect();
            Query::Rewrite(Box::new(Rewrite { table: "t".to_owned(), key: "name".to_owned(), columns, rows }))
        };
        let expected = [
            batch[1].query("t"),
            two_keys.query("t"),
            rewrite(&["port"], vec![row("a", &["1"]), row("e", &["3"])]),
            rewrite(&["port", "ipaddr"], vec![row("c", &["2", "2"])]),
        ];
        assert_eq!(queries(&batch, "t"), expected);
    }
}
