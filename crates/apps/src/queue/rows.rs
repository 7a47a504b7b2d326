//! Queues and members that are rows of a database: read anew when a caller comes.

use core::time::Duration;

use ::queue::NewMember;
use base::{Rows, RowsAsk, RowsWant};
use call::{Level, Stop};

use crate::Call;

/// How long a database may take; what is known serves then.
const WITHIN: Duration = Duration::from_secs(3);
/// Members of one queue that are taken: as many as it may have.
const MEMBERS_MAX: usize = 10_000;

/// The rows as pairs of columns and values.
fn pairs(rows: &Rows) -> impl Iterator<Item = Vec<(String, String)>> + '_ {
    let pair = |(column, value): (&String, &Option<String>)| Some((column.clone(), value.clone()?));
    rows.rows.iter().map(move |row| rows.columns.iter().zip(row).filter_map(pair).collect())
}

/// Has databases say what a queue is at this moment, where queues lie in one.
pub(super) async fn refresh(call: &Call, name: &str) -> Result<(), Stop> {
    let Some(tables) = call.chan.core(|core| core.queue_tables.clone()) else { return Ok(()) };
    let mut row = None;
    if tables.has_queues() {
        match find(call, "queues", "name", name, 1).await? {
            Some(rows) => row = pairs(&rows).next().and_then(|row| tables.queue(&row)),
            None => return Ok(()),
        }
    }
    let mut members: Vec<NewMember> = Vec::new();
    if tables.has_members() {
        match find(call, "queue_members", "queue_name", name, MEMBERS_MAX).await? {
            Some(rows) => members = pairs(&rows).filter_map(|row| tables.member(&row)).collect(),
            None => return Ok(()),
        }
    }
    call.chan.core(|core| {
        // What was changed here and is not written yet is newer than the row.
        if !core.queue_rows_wait() {
            core.with_queues(|queues, now, out| queues.take_rows(name, row, &members, now, out));
        }
    });
    Ok(())
}

/// Rows of a family; `None`, told, when the database does not say.
async fn find(
    call: &Call,
    family: &str,
    column: &str,
    value: &str,
    rows_max: usize,
) -> Result<Option<Rows>, Stop> {
    let filters = vec![(column.to_owned(), value.to_owned())];
    let ask = RowsAsk::Find { family: family.to_owned(), filters };
    let want = RowsWant { ask, rows_max, within: WITHIN, serves_last: false };
    Ok(match call.ask_database(want, false).await? {
        Ok(rows) => Some(rows),
        Err(why) => {
            call.log(Level::Warning, &format!("what is known of queue '{value}' serves: {why}"));
            None
        }
    })
}
