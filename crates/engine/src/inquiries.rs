//! What calls ask of databases: which one a family or a statement means, and what came.

use std::collections::BTreeMap;

use base::{Rows, RowsAsk, RowsWant};
use realtime::{Answer, Failure, Filter, Load, Op, Query};
use store::config::realtime::{Driver, Realtime};

use crate::databases::{Asker, Shared, connection_name};

/// What came of a question, for the call that asked.
type Outcome = Result<Rows, String>;

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
    next: u64,
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
        self.next += 1;
        let number = self.next;
        self.open.insert(number, Open { want, places, is_second: false, came: None });
        match self.submit(number) {
            Ok(()) => Ok(number),
            Err(why) => {
                self.open.remove(&number);
                Err(why)
            }
        }
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
            RowsAsk::Statement { databases, .. } => {
                let place = |name: &String| (statement_connection(realtime, name), String::new());
                Ok(databases.iter().map(place).collect())
            }
        }
    }
    /// Asks the next place that takes the question.
    fn submit(&mut self, number: u64) -> Result<(), String> {
        let Some(databases) = &self.databases else { return Err("no database is described".to_owned()) };
        let Some(open) = self.open.get_mut(&number) else { return Ok(()) };
        let mut why = None;
        while let Some((connection, table)) = open.places.pop() {
            let query = query(&open.want, &table, open.is_second)?;
            match databases.borrow_mut().submit(&connection, (Asker::Calls, number), query) {
                Ok(()) => {
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
            if let Some(outcome) = self.answered(number, answer)
                && let Some(open) = self.open.get_mut(&number)
            {
                open.came = Some(outcome);
                changed.push(number);
            }
        }
        changed
    }
    /// What an answer means; `None`: more is asked first.
    fn answered(&mut self, number: u64, answer: Result<Answer, Failure>) -> Option<Outcome> {
        let open = self.open.get_mut(&number)?;
        let here = open.places.pop();
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
        self.open.remove(&number);
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
            // Rows of one family are told apart by their keys; a call takes the first alone.
            let columns =
                found.first().map(|row| row.iter().map(|(name, _)| name.to_owned()).collect::<Vec<_>>());
            let values = |row: realtime::Row| row.iter().map(|(_, value)| Some(value.to_owned())).collect();
            let rows = found.into_iter().take(1).map(values).collect();
            Rows { columns: columns.unwrap_or_default(), rows, changed: 0 }
        }
        Answer::Changed(changed) => Rows { changed, ..Rows::default() },
        Answer::Batch(changed) => Rows { changed: changed.iter().sum(), ..Rows::default() },
        Answer::Columns(columns) => Rows { columns, ..Rows::default() },
    }
}
