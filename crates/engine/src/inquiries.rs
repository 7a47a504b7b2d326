//! What calls ask of databases: which one a family or a statement means, and what came.

use std::collections::{BTreeMap, BTreeSet};

use base::{Rows, RowsAsk, RowsWant};
use realtime::{Answer, Failure, Filter, Load, Op, Query};
use store::config::realtime::{Driver, Realtime};

use crate::databases::{Asker, Shared, connection_name};

/// Rows of answers that are kept for the time when a database is away: the dialplan of a large site, ten times.
const LAST_ROWS_MAX: usize = 200_000;

/// What came of a question, for the call that asked.
type Outcome = Result<Rows, String>;

/// Answers that serve when the same is asked and nobody answers; the oldest go.
#[derive(Default)]
struct Last {
    answers: BTreeMap<RowsAsk, (u64, Rows)>,
    ages: BTreeMap<u64, RowsAsk>,
    next: u64,
    rows: usize,
}

impl Last {
    /// Keeps an answer; that there is no row is not kept.
    fn keep(&mut self, ask: &RowsAsk, rows: &Rows) {
        self.forget(ask);
        if rows.rows.is_empty() {
            return;
        }
        self.next += 1;
        self.rows += rows.rows.len();
        self.ages.insert(self.next, ask.clone());
        self.answers.insert(ask.clone(), (self.next, rows.clone()));
        while self.rows > LAST_ROWS_MAX
            && let Some((_, oldest)) = self.ages.pop_first()
        {
            self.forget(&oldest);
        }
    }
    fn forget(&mut self, ask: &RowsAsk) {
        if let Some((age, rows)) = self.answers.remove(ask) {
            self.ages.remove(&age);
            self.rows -= rows.rows.len();
        }
    }
    fn get(&self, ask: &RowsAsk) -> Option<Rows> {
        self.answers.get(ask).map(|(_, rows)| rows.clone())
    }
}

/// A transaction whose first statement was asked.
struct Session {
    connection: String,
    /// One of its statements was answered, so that the database has it.
    is_begun: bool,
}

/// A question on its way.
struct Open {
    want: RowsWant,
    /// Connections and, for families, tables that can answer; those that were asked already are gone from it.
    places: Vec<(String, String)>,
    /// The first statement has changed nothing, and the other one is asked.
    is_second: bool,
    came: Option<Outcome>,
}

/// See the module's page.
#[derive(Default)]
pub(crate) struct Inquiries {
    databases: Option<Shared>,
    realtime: Realtime,
    open: BTreeMap<u64, Open>,
    /// Transactions of calls, by their numbers; a call ends all of its own.
    sessions: BTreeMap<u64, Session>,
    /// Commits that nobody waits for: what went wrong is logged.
    unheard: BTreeSet<u64>,
    next: u64,
    last: Last,
    /// Rows that calls have changed since it was last asked.
    written: Vec<RowsAsk>,
}

impl Inquiries {
    /// A reload says which databases there are, and what lies where.
    pub(crate) fn configure(&mut self, databases: Option<Shared>, realtime: Realtime) {
        (self.databases, self.realtime) = (databases, realtime);
    }
    /// Asks; the number of the question.
    pub(crate) fn ask(&mut self, want: RowsWant) -> Result<u64, String> {
        let mut places = self.places(&want.ask)?;
        places.reverse();
        if let RowsAsk::End { transaction, .. } = &want.ask {
            self.sessions.remove(transaction);
        }
        self.next += 1;
        let number = self.next;
        // A transaction that has asked for nothing yet ends at once.
        let came = matches!(want.ask, RowsAsk::End { .. }).then_some(Ok(Rows::default()));
        let came = came.filter(|_| places.is_empty());
        let is_over = came.is_some();
        self.open.insert(number, Open { want, places, is_second: false, came });
        if is_over {
            return Ok(number);
        }
        let Err(why) = self.submit(number) else { return Ok(number) };
        if let Some(open) = self.open.get_mut(&number).filter(|open| open.want.serves_last)
            && let Some(rows) = self.last.get(&open.want.ask)
        {
            open.came = Some(Ok(rows));
            return Ok(number);
        }
        self.open.remove(&number);
        Err(why)
    }
    /// Where a question can be answered, first asked first.
    fn places(&self, ask: &RowsAsk) -> Result<Vec<(String, String)>, String> {
        let realtime = &self.realtime;
        match ask {
            RowsAsk::Find { family, .. }
            | RowsAsk::Change { family, .. }
            | RowsAsk::Add { family, .. }
            | RowsAsk::Remove { family, .. } => {
                let place = |of: &store::config::realtime::Backend| {
                    (connection_name(realtime, of.driver, &of.database), of.table.clone())
                };
                let places: Vec<_> = realtime.families.of(family).iter().map(place).collect();
                match places.is_empty() {
                    true => Err(format!("extconfig.conf says nothing of a family '{family}'")),
                    false => Ok(places),
                }
            }
            RowsAsk::Statement { databases, within: None, .. } => {
                let place = |name: &String| (statement_connection(realtime, name), String::new());
                Ok(databases.iter().map(place).collect())
            }
            // It stays where it was begun.
            RowsAsk::Statement { databases, within: Some(transaction), .. } => {
                let place = match (self.sessions.get(&transaction.number), databases.first()) {
                    (Some(session), _) => Some(session.connection.clone()),
                    (None, first) => first.map(|name| statement_connection(realtime, name)),
                };
                Ok(place.map(|name| (name, String::new())).into_iter().collect())
            }
            RowsAsk::End { transaction, .. } => {
                let session = self.sessions.get(transaction);
                Ok(session.map(|session| (session.connection.clone(), String::new())).into_iter().collect())
            }
        }
    }
    /// Asks the next place that takes the question.
    fn submit(&mut self, number: u64) -> Result<(), String> {
        let Some(databases) = &self.databases else { return Err("no database is described".to_owned()) };
        let Some(open) = self.open.get_mut(&number) else { return Ok(()) };
        let mut why = None;
        while let Some((connection, table)) = open.places.pop() {
            let query = match (&open.want.ask, query(&open.want, &table, open.is_second)?) {
                (RowsAsk::Statement { within: Some(of), .. }, Query::Raw { sql, limit }) => {
                    let begins = self.sessions.get(&of.number).is_none_or(|session| !session.is_begun);
                    Query::Within { transaction: of.number, begins, isolation: of.isolation, sql, limit }
                }
                (_, query) => query,
            };
            match databases.borrow_mut().submit(&connection, (Asker::Calls, number), query) {
                Ok(()) => {
                    if let RowsAsk::Statement { within: Some(of), .. } = &open.want.ask {
                        let session = || Session { connection: connection.clone(), is_begun: false };
                        self.sessions.entry(of.number).or_insert_with(session);
                    }
                    if !open.is_second {
                        open.places.push((connection, table));
                    }
                    return Ok(());
                }
                Err(failure) => why = Some(told(&failure)),
            }
        }
        Err(why.unwrap_or_else(|| "no database is named".to_owned()))
    }
    /// Takes in answers; the questions that have theirs.
    pub(crate) fn take_in(&mut self) -> Vec<u64> {
        let came = match &self.databases {
            Some(databases) => databases.borrow_mut().take(Asker::Calls),
            None => Vec::new(),
        };
        let mut changed = Vec::new();
        for (number, answer) in came {
            if self.unheard.remove(&number)
                && let (Err(failure), Some(databases)) = (&answer, &self.databases)
            {
                let line =
                    format!("a transaction was not committed at the end of its call: {}", told(failure));
                databases.borrow_mut().note(line);
            }
            if let Some(outcome) = self.answered(number, answer)
                && let Some(open) = self.open.get_mut(&number)
            {
                if let (RowsAsk::Change { .. }, Ok(Rows { changed: 1.., .. })) = (&open.want.ask, &outcome) {
                    self.written.push(open.want.ask.clone());
                }
                open.came = Some(match (open.want.serves_last, outcome) {
                    (false, outcome) => outcome,
                    (true, Ok(rows)) => {
                        self.last.keep(&open.want.ask, &rows);
                        Ok(rows)
                    }
                    (true, Err(why)) => self.last.get(&open.want.ask).ok_or(why),
                });
                changed.push(number);
            }
        }
        changed
    }
    /// The changes of rows ([`RowsAsk::Change`]) that databases have carried out since the last call.
    pub(crate) fn take_written(&mut self) -> Vec<RowsAsk> {
        std::mem::take(&mut self.written)
    }
    /// What an answer means; `None`: more is asked first.
    fn answered(&mut self, number: u64, answer: Result<Answer, Failure>) -> Option<Outcome> {
        let open = self.open.get_mut(&number)?;
        let here = open.places.pop();
        if let (RowsAsk::Statement { within: Some(of), .. }, Ok(_)) = (&open.want.ask, &answer)
            && let Some(session) = self.sessions.get_mut(&of.number)
        {
            session.is_begun = true;
        }
        match answer {
            // Only where nothing was done another may be asked: a write that nobody answered may have been.
            Err(Failure::Unreachable { .. } | Failure::Busy { .. } | Failure::Unknown { .. })
                if !open.places.is_empty() && !open.is_second =>
            {
                self.submit(number).err().map(Err)
            }
            Err(failure) => Some(Err(told(&failure))),
            Ok(answer) => {
                let rows = rows(answer, open.want.rows_max);
                let otherwise = match &open.want.ask {
                    RowsAsk::Statement { otherwise, .. } => !otherwise.is_empty(),
                    _ => false,
                };
                if otherwise && rows.changed == 0 && !open.is_second {
                    open.is_second = true;
                    open.places = here.into_iter().collect();
                    return self.submit(number).err().map(Err);
                }
                Some(Ok(rows))
            }
        }
    }
    /// What came of a question.
    pub(crate) fn take(&mut self, number: u64) -> Option<Outcome> {
        self.open.get_mut(&number)?.came.take()
    }
    /// Nobody waits for it any more.
    pub(crate) fn forget(&mut self, number: u64) {
        let open = self.open.remove(&number).filter(|open| open.came.is_none() && !open.places.is_empty());
        match open.map(|open| open.want.ask) {
            Some(RowsAsk::End { commit: true, .. }) => _ = self.unheard.insert(number),
            // Whether it was begun is not known: it is not to be begun a second time.
            Some(RowsAsk::Statement { within: Some(of), .. }) => {
                self.sessions.entry(of.number).and_modify(|session| session.is_begun = true);
            }
            _ => {}
        }
    }
}

/// The connection of a class of `res_odbc.conf`, or of another driver's database when there is no such class.
fn statement_connection(realtime: &Realtime, name: &str) -> String {
    let drivers = [Driver::Odbc, Driver::Mysql, Driver::Pgsql, Driver::Sqlite3];
    let of = |driver: &Driver| realtime.databases.contains_key(&(*driver, name.to_owned()));
    let driver = drivers.into_iter().find(of).unwrap_or(Driver::Odbc);
    connection_name(realtime, driver, name)
}

fn told(failure: &Failure) -> String {
    format!("{failure}; {}", failure.remedy())
}

fn query(want: &RowsWant, table: &str, is_second: bool) -> Result<Query, String> {
    let table = table.to_owned();
    let limit = Some(u32::try_from(want.rows_max).unwrap_or(u32::MAX));
    let sets = |sets: &[(String, String)]| {
        sets.iter().map(|(column, value)| (column.clone(), Some(value.clone()))).collect()
    };
    Ok(match &want.ask {
        RowsAsk::Find { filters, .. } => {
            let filter = |(condition, value): &(String, String)| match Op::split(condition) {
                Some((column, op)) => Ok(Filter { column: column.to_owned(), op, value: value.clone() }),
                None => Err(format!("'{condition}' is no field, nor a field and an operator")),
            };
            let filters = filters.iter().map(filter).collect::<Result<_, _>>()?;
            Query::Load(Load { table, filters, limit, ..Load::default() })
        }
        RowsAsk::Change { keys, sets: new, .. } => {
            Query::Update { table, keys: keys.clone(), sets: sets(new) }
        }
        RowsAsk::Add { sets: new, .. } => Query::Store { table, sets: sets(new) },
        RowsAsk::Remove { keys, .. } => Query::Destroy { table, keys: keys.clone() },
        RowsAsk::End { transaction, commit } => Query::End { transaction: *transaction, commit: *commit },
        RowsAsk::Statement { sql, otherwise, .. } => {
            let sql = if is_second { otherwise.clone() } else { sql.clone() };
            Query::Raw { sql, limit }
        }
    })
}

/// An answer in the words of calls.
fn rows(answer: Answer, most: usize) -> Rows {
    match answer {
        Answer::Set(set) => {
            let rows = set.rows.into_iter().take(most).collect();
            Rows { columns: set.columns, rows, changed: set.changed }
        }
        Answer::Rows(found) => {
            // A row has no column that is NULL in it; all of one answer have those that any of them has.
            let mut columns: Vec<String> = Vec::new();
            for (name, _) in found.iter().take(most).flat_map(realtime::Row::iter) {
                if !columns.iter().any(|known| known == name) {
                    columns.push(name.to_owned());
                }
            }
            let values = |row: &realtime::Row| {
                columns.iter().map(|column| row.get(column).map(str::to_owned)).collect::<Vec<_>>()
            };
            let rows = found.iter().take(most).map(values).collect();
            Rows { columns, rows, changed: 0 }
        }
        Answer::Changed(changed) => Rows { changed, ..Rows::default() },
        Answer::Batch(changed) => Rows { changed: changed.iter().sum(), ..Rows::default() },
        Answer::Columns(columns) => Rows { columns, ..Rows::default() },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(family: usize) -> RowsAsk {
        RowsAsk::Find { family: family.to_string(), filters: Vec::new() }
    }
    fn answer(count: usize) -> Rows {
        Rows { columns: vec!["a".to_owned()], rows: vec![vec![None]; count], changed: 0 }
    }

    #[test]
    fn rows_of_one_answer_have_the_same_columns() {
        let first: realtime::Row = [("exten", "100"), ("priority", "1")].into_iter().collect();
        let second: realtime::Row = [("exten", "100"), ("appdata", "x")].into_iter().collect();
        let got = rows(Answer::Rows(vec![first, second]), 10);
        assert_eq!(got.columns, ["exten", "priority", "appdata"]);
        let text = |text: &str| Some(text.to_owned());
        assert_eq!(got.rows, [[text("100"), text("1"), None], [text("100"), None, text("x")]]);
    }

    #[test]
    fn the_last_answers_are_kept_within_a_bound_and_an_empty_one_takes_its_place() {
        let mut last = Last::default();
        last.keep(&ask(0), &answer(3));
        assert_eq!(last.get(&ask(0)), Some(answer(3)));
        last.keep(&ask(0), &answer(0));
        assert_eq!(last.get(&ask(0)), None, "the rows are gone");
        for family in 0..5 {
            last.keep(&ask(family), &answer(LAST_ROWS_MAX / 4));
        }
        assert_eq!(last.get(&ask(0)), None, "the oldest goes");
        assert_eq!((last.rows, last.answers.len(), last.ages.len()), (LAST_ROWS_MAX, 4, 4));
    }
}
