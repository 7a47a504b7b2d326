//! REALTIME() and its kin, and the functions that func_odbc.conf makes of statements.
//!
//! What they read is asked for before a step's arguments are expanded ([`Call::fetch_rows`]); reading the function gives
//! what came. What they write is done when the step has been taken ([`Call::write_rows`]), before the next one is. A call
//! that no step spells out asks nothing: neither a manager's `Getvar` nor text that came in from a caller does.

use core::time::Duration;
use std::collections::{BTreeMap, VecDeque};
use std::mem;
use std::sync::Arc;

use base::{Rows, RowsAsk, RowsWant};
use call::{Level, Stop};
use dialplan::functions::COLUMNS;
use dialplan::{Body, ChannelFunction, Fault, Inherit, Statement, Var, Vars, split_args};

use super::Read;
use crate::Call;
use crate::asking::want;

/// Calls of such functions that one step may have.
const CALLS_MAX: usize = 16;
/// How long a database may take to answer a call.
const WITHIN: Duration = Duration::from_secs(10);
/// Rows that a call takes of one answer.
const ROWS_MAX: usize = 10_000;
/// Bytes that a call keeps of one answer.
const BYTES_MAX: usize = 1024 * 1024;
/// Results that a call has open at once; the oldest goes.
const RESULTS_MAX: usize = 16;
/// Fields that `REALTIME_STORE()` takes, as in the field.
const FIELDS_MAX: usize = 30;

/// What came of a question; an error is told where the function is read.
type Outcome = crate::asking::Came<Rows>;

/// A call of a function, by its name and its arguments, and what came of it.
struct Came {
    name: String,
    args: String,
    outcome: Outcome,
    is_read: bool,
}

/// What a call has of databases.
#[derive(Default)]
pub(crate) struct Asked {
    came: Vec<Came>,
    writes: Vec<(Kind, RowsAsk)>,
    /// Results of which `ODBC_FETCH()` takes rows, by their names.
    results: BTreeMap<u32, Answer>,
    next: u32,
}

struct Answer {
    columns: Vec<String>,
    rows: VecDeque<Vec<Option<String>>>,
}

/// Whose variables tell what came of a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Statement,
    Store,
    Family,
}

impl Call {
    /// Asks what the functions in `text` will give, and keeps it for the step that is about to be taken.
    pub(crate) async fn fetch_rows(&self, text: &str, after_end: bool) -> Result<(), Stop> {
        self.run.rows.borrow_mut().came.clear();
        let program = self.chan.core(|core| core.program.clone());
        let functions = program.functions();
        let wanted = |name: &str| functions.asks_rows(name);
        let calls: Vec<_> = dialplan::functions::calls_of(text, wanted).take(CALLS_MAX).collect();
        // An inner call stands after the one whose argument it is.
        for (name, args) in calls.into_iter().rev() {
            let Some(row) = functions.lookup(name).and_then(|id| functions.row(id)) else { continue };
            let args = self.expand(args);
            let outcome = match &row.body {
                Body::Statement(of) => {
                    let sql = self.with_arguments(of, &args, None, || self.expand(&of.read));
                    let ask = self.statement_ask(&of.read_from, sql, String::new());
                    self.ask_database(want(ask, rows_max(of), WITHIN), after_end).await?
                }
                Body::Channel { function, .. } => self.ask_family(*function, &args, after_end).await?,
                Body::Native { .. } => continue,
            };
            let came = Came { name: row.name.to_string(), args, outcome, is_read: false };
            self.run.rows.borrow_mut().came.insert(0, came);
        }
        Ok(())
    }
    async fn ask_family(
        &self,
        function: ChannelFunction,
        args: &str,
        after_end: bool,
    ) -> Result<Outcome, Stop> {
        let args = split_args(args);
        let [family, column, value] = [0, 1, 2].map(|at| arg(&args, at).to_owned());
        if family.is_empty() || column.is_empty() {
            return Ok(Err("needs a family and a field".to_owned()));
        }
        let there = self.chan.core(|core| core.settings.has_module("func_realtime"));
        if !there {
            return Ok(Err("modules.conf switches func_realtime off".to_owned()));
        }
        let key = (column, value);
        let find = RowsAsk::Find { family: family.clone(), filters: vec![key.clone()] };
        let found = self.ask_database(want(find, 1, WITHIN), after_end).await?;
        if function == ChannelFunction::RealtimeDestroy
            && found.as_ref().is_ok_and(|rows| !rows.rows.is_empty())
        {
            let remove = RowsAsk::Remove { family, keys: vec![key] };
            let removed = self.ask_database(want(remove, 1, WITHIN), after_end).await?;
            return Ok(removed.and(found));
        }
        Ok(found)
    }
    /// Whether the step that was taken has left writes.
    pub(crate) fn has_writes(&self) -> bool {
        !self.run.rows.borrow().writes.is_empty()
    }
    /// Does what the step that was taken has written. A write that was begun is waited for though the call ends meanwhile.
    pub(crate) async fn write_rows(&self, after_end: bool) -> Result<(), Stop> {
        let writes = mem::take(&mut self.run.rows.borrow_mut().writes);
        for (kind, ask) in writes {
            let outcome = self.ask_database(want(ask, 1, WITHIN), after_end).await?;
            if let Err(why) = &outcome {
                self.log(Level::Warning, &format!("the database was not written: {why}"));
            }
            let changed = outcome.as_ref().map_or_else(|_| "-1".to_owned(), |rows| rows.changed.to_string());
            match kind {
                Kind::Statement => {
                    self.set("ODBCROWS", &changed);
                    self.set("ODBCSTATUS", if outcome.is_ok() { "SUCCESS" } else { "FAILURE" });
                }
                Kind::Store => self.set("RTSTOREID", &changed),
                Kind::Family => {}
            }
        }
        Ok(())
    }
    /// A statement, in the transaction that the channel has open in one of these databases.
    fn statement_ask(&self, databases: &Arc<[String]>, sql: String, otherwise: String) -> RowsAsk {
        match self.chan.core(|core| core.transaction_for(self.chan.id(), databases)) {
            Some((database, part)) => {
                RowsAsk::Statement { databases: [database].into(), sql, otherwise, within: Some(part) }
            }
            None => RowsAsk::Statement { databases: databases.clone(), sql, otherwise, within: None },
        }
    }
    /// Runs `body` while the arguments of a function, and the value that is written, are variables of the channel.
    fn with_arguments<T>(
        &self,
        of: &Statement,
        args: &str,
        value: Option<&str>,
        body: impl FnOnce() -> T,
    ) -> T {
        let mut variables: Vec<(String, String)> = Vec::new();
        let args = if args.is_empty() { Vec::new() } else { split_args(args) };
        let least = usize::try_from(of.min_args).unwrap_or(usize::MAX).min(ARGUMENTS_MAX);
        let count = args.len().min(ARGUMENTS_MAX);
        variables.push(("ARGC".to_owned(), count.to_string()));
        for at in 0..count.max(least) {
            variables.push((format!("ARG{}", at + 1), arg(&args, at).to_owned()));
        }
        if let Some(value) = value {
            variables.push(("VALUE".to_owned(), value.to_owned()));
            let parts = split_args(value);
            let numbered = (1..=ARGUMENTS_MAX).zip(&parts);
            variables.extend(numbered.map(|(at, part)| (format!("VAL{at}"), part.clone())));
        }
        let before: Vec<Option<String>> = self.with_variables(|vars| {
            let mut push = |(name, value): &(String, String)| {
                let before = vars.get(Var::named(name)).map(ToString::to_string);
                vars.set(Var::named(name), value, Inherit::Never);
                before
            };
            variables.iter().map(&mut push).collect()
        });
        let result = body();
        self.with_variables(|vars| {
            for ((name, _), before) in variables.iter().zip(before) {
                match before {
                    Some(before) => _ = vars.set(Var::named(name), &before, Inherit::Never),
                    None => _ = vars.remove(Var::named(name)),
                }
            }
        });
        result
    }
    /// The variables of the channel, or the global ones where there is none (the console's statements).
    fn with_variables<T>(&self, with: impl FnOnce(&mut Vars) -> T) -> T {
        let id = self.chan.id();
        self.chan.core(|core| match core.get_mut(id) {
            Some(channel) => with(&mut channel.vars),
            None => with(&mut core.globals),
        })
    }
    /// What came of this call of a function.
    fn came(&self, name: &str, args: &str) -> Result<Outcome, Fault> {
        let asked = &mut *self.run.rows.borrow_mut();
        let is_it = |came: &&mut Came| came.name == name && came.args == args;
        let fresh =
            asked.came.iter().position(|came| !came.is_read && came.name == name && came.args == args);
        let found = match fresh {
            Some(at) => asked.came.get_mut(at),
            None => asked.came.iter_mut().rev().find(is_it),
        };
        let came = found
            .ok_or_else(|| Fault::new("asks a database only where a step of the dialplan spells it out"))?;
        came.is_read = true;
        Ok(came.outcome.clone())
    }
    fn tell_status(&self, rows: Option<usize>, status: &str) {
        self.set("ODBCROWS", &rows.map_or_else(|| "-1".to_owned(), |rows| rows.to_string()));
        self.set("ODBCSTATUS", status);
    }
    fn may_write(&self) -> Read {
        match self.run.place.borrow().is_some() {
            true => Ok(()),
            false => Err(Fault::new("writes only where a step of the dialplan spells it out")),
        }
    }
    fn push_write(&self, kind: Kind, ask: RowsAsk) -> Read {
        let writes = &mut self.run.rows.borrow_mut().writes;
        if writes.len() >= CALLS_MAX {
            return Err(Fault::new(format!("a step writes {CALLS_MAX} times at most")));
        }
        writes.push((kind, ask));
        Ok(())
    }
}

/// Arguments that a function takes, and values that are told apart.
const ARGUMENTS_MAX: usize = 100;

fn arg(args: &[String], at: usize) -> &str {
    args.get(at).map_or("", |text| text.as_str())
}

fn rows_max(of: &Statement) -> usize {
    let limit = of.row_limit.and_then(|limit| usize::try_from(limit).ok()).filter(|limit| *limit > 0);
    if of.multirow { limit.unwrap_or(ROWS_MAX).min(ROWS_MAX) } else { 1 }
}

/// A row as `ARRAY()` and `HASH()` take it.
fn joined(row: &[Option<String>], escape: bool) -> String {
    let mut out = String::new();
    for (at, value) in row.iter().enumerate() {
        if at > 0 {
            out.push(',');
        }
        for symbol in value.as_deref().unwrap_or_default().chars() {
            if escape && matches!(symbol, ',' | '\\') {
                out.push('\\');
            }
            out.push(symbol);
        }
    }
    out
}

/// As many rows as a call may keep.
fn within_bounds(rows: Vec<Vec<Option<String>>>) -> VecDeque<Vec<Option<String>>> {
    let mut bytes = 0;
    let mut fits = |row: &Vec<Option<String>>| {
        bytes += row.iter().flatten().map(String::len).sum::<usize>();
        bytes <= BYTES_MAX
    };
    rows.into_iter().take_while(|row| fits(row)).collect()
}

/// `${ODBC_NAME(arguments)}`.
pub(crate) fn read_statement(
    call: &Call,
    name: &str,
    of: &Arc<Statement>,
    args: &str,
    out: &mut String,
) -> Read {
    let answer = match call.came(name, args)? {
        Ok(answer) => answer,
        Err(why) => {
            call.tell_status(None, "FAILURE");
            return Err(Fault::new(why));
        }
    };
    let columns = answer.columns.join(",");
    let rows = within_bounds(answer.rows);
    let Some(first) = rows.front() else {
        call.tell_status(Some(0), "NODATA");
        return Ok(());
    };
    call.tell_status(Some(rows.len()), "SUCCESS");
    if of.multirow {
        let asked = &mut *call.run.rows.borrow_mut();
        asked.next += 1;
        out.push_str(&asked.next.to_string());
        asked.results.insert(asked.next, Answer { columns: answer.columns, rows });
        if asked.results.len() > RESULTS_MAX {
            asked.results.pop_first();
        }
        return Ok(());
    }
    out.push_str(&joined(first, of.escape_commas));
    call.set(COLUMNS, &columns);
    Ok(())
}

/// What a function of `func_odbc.conf` sends when it is read, or written with a value; `None`: there is no such function.
pub fn statement(
    call: &Call,
    name: &str,
    args: &str,
    value: Option<&str>,
) -> Option<Result<RowsWant, String>> {
    let program = call.chan.core(|core| core.program.clone());
    let row = program.functions().lookup(name).and_then(|id| program.functions().row(id))?;
    let Body::Statement(of) = &row.body else { return None };
    let (template, databases, there) = match value {
        None => (&of.read, &of.read_from, row.readable()),
        Some(_) => (&of.write, &of.write_to, row.writable()),
    };
    if !there {
        let way = if value.is_some() { "written" } else { "read" };
        return Some(Err(format!("The function {} cannot be {way}.\n", row.name)));
    }
    let (sql, otherwise) = call.with_arguments(of, args, value, || {
        let otherwise = value.map(|_| call.expand(&of.insert)).unwrap_or_default();
        (call.expand(template), otherwise)
    });
    let ask = call.statement_ask(databases, sql, otherwise);
    Some(Ok(want(ask, if value.is_some() { 1 } else { rows_max(of) }, WITHIN)))
}

/// `${ODBC_FETCH(result)}`.
pub(super) fn read_fetch(call: &Call, args: &str, out: &mut String) -> Read {
    let next = {
        let asked = &mut *call.run.rows.borrow_mut();
        let number = args.trim().parse::<u32>().ok();
        let result = number.and_then(|number| asked.results.get_mut(&number));
        let next = result.and_then(|result| Some((result.columns.join(","), result.rows.pop_front()?)));
        if let (None, Some(number)) = (&next, number) {
            asked.results.remove(&number);
        }
        next
    };
    let Some((columns, row)) = next else {
        call.set("ODBC_FETCH_STATUS", "FAILURE");
        return Ok(());
    };
    out.push_str(&joined(&row, true));
    call.set(COLUMNS, &columns);
    call.set("ODBC_FETCH_STATUS", "SUCCESS");
    Ok(())
}

/// `ODBCFinish(result)`.
pub(crate) fn finish(call: &Call, args: &str) {
    if let Ok(number) = args.trim().parse::<u32>() {
        call.run.rows.borrow_mut().results.remove(&number);
    }
}

/// `Set(ODBC_NAME(arguments)=value)`.
pub(crate) fn write_statement(call: &Call, of: &Arc<Statement>, args: &str, value: &str) -> Read {
    call.may_write()?;
    let (sql, otherwise) =
        call.with_arguments(of, args, Some(value), || (call.expand(&of.write), call.expand(&of.insert)));
    let ask = call.statement_ask(&of.write_to, sql, otherwise);
    call.push_write(Kind::Statement, ask)
}

/// `${REALTIME(…)}` and its kin.
pub(super) fn read_family(call: &Call, function: ChannelFunction, args: &str, out: &mut String) -> Read {
    use ChannelFunction as F;
    let name = match function {
        F::RealtimeField => "REALTIME_FIELD",
        F::RealtimeHash => "REALTIME_HASH",
        F::RealtimeDestroy => "REALTIME_DESTROY",
        _ => "REALTIME",
    };
    let answer = call.came(name, args)?.map_err(Fault::new)?;
    let args = split_args(args);
    let Some(row) = answer.rows.into_iter().next() else { return Ok(()) };
    let filled =
        answer.columns.iter().zip(&row).filter_map(|(column, value)| Some((column, value.as_deref()?)));
    match function {
        F::RealtimeField => {
            let wanted = arg(&args, 3);
            let mut found = filled.filter(|(column, _)| column.eq_ignore_ascii_case(wanted));
            out.push_str(found.next().map_or("", |(_, value)| value));
        }
        F::RealtimeHash => {
            let (columns, values): (Vec<&str>, Vec<Option<String>>) =
                filled.map(|(column, value)| (column.as_str(), Some(value.to_owned()))).unzip();
            out.push_str(&joined(&values, true));
            call.set(COLUMNS, &columns.join(","));
        }
        _ => {
            let mark = |at: usize, otherwise: &'static str| match arg(&args, at) {
                "" => otherwise.to_owned(),
                given => given.to_owned(),
            };
            let (between, within) = (mark(3, ","), mark(4, "="));
            let pairs: Vec<String> =
                filled.map(|(column, value)| format!("{column}{within}{value}")).collect();
            out.push_str(&pairs.join(&between));
        }
    }
    Ok(())
}

/// `Set(REALTIME(…)=value)` and its kin.
pub(super) fn write_family(call: &Call, function: ChannelFunction, args: &str, value: &str) -> Read {
    use ChannelFunction as F;
    call.may_write()?;
    let there = call.chan.core(|core| core.settings.has_module("func_realtime"));
    if !there {
        return Err(Fault::new("modules.conf switches func_realtime off"));
    }
    let args = split_args(args);
    let need = |at: usize, what: &str| match arg(&args, at) {
        "" => Err(Fault::new(format!("the {what} is missing"))),
        text => Ok(text.to_owned()),
    };
    let family = need(0, "family")?;
    let keys = || Ok::<_, Fault>(vec![(need(1, "field")?, arg(&args, 2).to_owned())]);
    match function {
        F::RealtimeStore => {
            let names = args.iter().skip(1).take(FIELDS_MAX).cloned();
            let sets: Vec<(String, String)> = names.zip(split_args(value)).collect();
            if sets.is_empty() {
                return Err(Fault::new("needs fields and values"));
            }
            call.push_write(Kind::Store, RowsAsk::Add { family, sets })
        }
        F::RealtimeDestroy => call.push_write(Kind::Family, RowsAsk::Remove { family, keys: keys()? }),
        _ => {
            let sets = vec![(need(3, "field that is set")?, value.to_owned())];
            call.push_write(Kind::Family, RowsAsk::Change { family, keys: keys()?, sets })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_a_list_whose_commas_can_be_told_from_those_of_its_values() {
        let row = [Some("a,b".to_owned()), None, Some("c\\d".to_owned())];
        assert_eq!(joined(&row, true), "a\\,b,,c\\\\d");
        assert_eq!(joined(&row, false), "a,b,,c\\d");
        assert_eq!(split_args(&joined(&row, true)), ["a,b", "", "c\\d"]);
    }

    #[test]
    fn an_answer_is_cut_where_a_call_may_keep_no_more() {
        let row = vec![Some("x".repeat(BYTES_MAX / 3))];
        assert_eq!(within_bounds(vec![row; 5]).len(), 3);
    }
}
