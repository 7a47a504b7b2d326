//! Look-ups of one table by one key that wait for a connection: those are asked together, by one statement.
//!
//! When all phones come back at once each of them wants its row. A database reads sixty rows by their keys in little more time
//! than one, and so does whoever asks.

use std::collections::VecDeque;
use std::time::Duration;

use tokio::time::{Instant, timeout_at};

use super::{Job, Pool, Told, failure, whole};
use crate::Failure;
use crate::link::{Keys, Link, Tables, Trouble};
use crate::query::{Answer, Filter, Load, Op, Query, Row};

/// Look-ups of one statement at most: beyond this the statement grows as fast as what is saved.
const TOGETHER_MAX: usize = 64;

/// What became of some that were asked together.
pub(super) struct Done {
    link: Option<Link>,
    jobs: Vec<Job>,
    outcome: Outcome,
}

enum Outcome {
    /// The row of each, if there is one.
    Found(Vec<Option<Row>>),
    /// The database would not have them all; each may still be asked alone.
    Refused,
    /// The time of the first of them was over.
    Slow,
    Failed {
        failure: Failure,
        /// The program that spoke ODBC has ended over it.
        has_ended: bool,
    },
}

/// Table, column and value of a look-up by a key; `None` of anything else.
fn key(query: &Query) -> Option<(&str, &str, &str)> {
    let Query::Load(Load { table, filters, order, limit: Some(1) }) = query else { return None };
    match filters.as_slice() {
        [Filter { column, op: Op::Equal, value }] if order.is_empty() => Some((table, column, value)),
        _ => None,
    }
}

/// Takes the look-ups in front that go together, when more wait than connections are free: a share of them for each.
pub(super) fn take(waiting: &mut VecDeque<Job>, free: usize) -> Option<Vec<Job>> {
    let most = waiting.len().div_ceil(free.max(1)).min(TOGETHER_MAX);
    let (table, column, _) = key(&waiting.front()?.query)?;
    let fits =
        |job: &&Job| !job.is_alone && key(&job.query).is_some_and(|(of, by, _)| (of, by) == (table, column));
    let count = waiting.iter().take(most).take_while(fits).count();
    (count > 1).then(|| waiting.drain(..count).collect())
}

impl<T: FnMut(Told) -> bool> Pool<T> {
    pub(super) fn hand_out_together(&mut self, mut link: Link, jobs: Vec<Job>) {
        self.busy += 1;
        let (name, within) = (self.settings.name.clone(), self.settings.query_within);
        let tables = self.tables.clone();
        self.tasks.spawn(async move {
            let first = jobs.iter().map(|job| job.handed).min().unwrap_or_else(Instant::now);
            let asked = timeout_at(first + within, whole(ask(&mut link, &tables, &jobs))).await;
            let (outcome, keeps) = match asked {
                Ok(Ok(rows)) => (Outcome::Found(rows), true),
                Ok(Err(trouble)) if trouble.leaves_link() => (Outcome::Refused, true),
                Ok(Err(trouble)) => {
                    let has_ended = matches!(trouble, Trouble::Ended(_));
                    (Outcome::Failed { failure: failure(trouble, name), has_ended }, false)
                }
                // What it goes on saying belongs to nobody: the connection is closed.
                Err(_) => (Outcome::Slow, false),
            };
            super::Done::Together(Done { link: keeps.then_some(link), jobs, outcome })
        });
    }
    pub(super) fn take_in_together(&mut self, Done { link, jobs, outcome }: Done) {
        self.busy -= 1;
        let keeps_link = link.is_some();
        self.idle.extend(link);
        match outcome {
            Outcome::Found(rows) => {
                self.endings = 0;
                for (job, row) in jobs.into_iter().zip(rows) {
                    self.settle(job, Ok(Answer::Rows(row.into_iter().collect())));
                }
            }
            Outcome::Refused => {
                for job in jobs.into_iter().rev() {
                    self.waiting.push_front(Job { is_alone: true, ..job });
                }
            }
            Outcome::Slow => {
                let within = self.settings.query_within;
                let slow = Failure::Slow { name: self.settings.name.clone(), within };
                self.heard(&Err(slow.clone()), keeps_link, false);
                for job in jobs.into_iter().rev() {
                    if has_time(&job, within, Instant::now()) {
                        self.waiting.push_front(Job { is_alone: true, ..job });
                    } else {
                        self.settle(job, Err(slow.clone()));
                    }
                }
            }
            Outcome::Failed { failure, has_ended } => {
                self.heard(&Err(failure.clone()), keeps_link, has_ended);
                for job in jobs.into_iter().rev() {
                    self.settle(job, Err(failure.clone()));
                }
            }
        }
    }
}

/// Whether one that was asked with others, whose time was over, is to be asked again: it came later.
fn has_time(job: &Job, within: Duration, now: Instant) -> bool {
    now < job.handed + within
}

async fn ask(link: &mut Link, tables: &Tables, jobs: &[Job]) -> Result<Vec<Option<Row>>, Trouble> {
    let Some((table, column, _)) = jobs.first().and_then(|job| key(&job.query)) else {
        return Ok(Vec::new());
    };
    let values = jobs.iter().filter_map(|job| key(&job.query)).map(|(.., value)| value).collect();
    link.load_each(tables, &Keys { table, column, values }).await
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Ticket;

    fn job(query: Query) -> Job {
        let ticket = Ticket { asker: 0, number: 0 };
        Job { ticket, query, handed: Instant::now(), is_second: false, is_alone: false }
    }
    fn by(table: &str, column: &str, value: &str) -> Load {
        let filters = vec![Filter::is(column, value)];
        Load { table: table.to_owned(), filters, limit: Some(1), ..Load::default() }
    }
    fn load(load: Load) -> Job {
        job(Query::Load(load))
    }
    fn one() -> Job {
        load(by("peers", "name", "a"))
    }

    #[test]
    fn look_ups_of_one_table_by_one_key_go_together_and_nothing_else_does() {
        let two = Load {
            filters: vec![Filter::is("name", "b"), Filter::is("host", "dynamic")],
            ..by("peers", "", "")
        };
        for (name, others, free, expected) in [
            ("fewer than connections", vec![one(), one()], 4, None),
            ("more", vec![one(), one(), one(), one()], 2, Some(3)),
            ("as many as one statement holds", (0..200).map(|_| one()).collect(), 1, Some(TOGETHER_MAX)),
            ("another table", vec![load(by("users", "name", "b"))], 1, None),
            ("another column", vec![load(by("peers", "host", "b"))], 1, None),
            ("several rows", vec![load(Load { limit: None, ..by("peers", "name", "b") })], 1, None),
            ("two conditions", vec![load(two)], 1, None),
            ("one that was refused", vec![Job { is_alone: true, ..one() }], 1, None),
            (
                "up to another kind",
                vec![one(), job(Query::Columns { table: "peers".into() }), one()],
                1,
                Some(2),
            ),
        ] {
            let mut waiting: VecDeque<Job> = std::iter::once(one()).chain(others).collect();
            let before = waiting.len();
            let taken = take(&mut waiting, free).map(|jobs| jobs.len());
            assert_eq!(taken, expected, "{name}");
            assert_eq!(waiting.len() + taken.unwrap_or(0), before, "{name}");
        }
        let mut refused: VecDeque<Job> = [Job { is_alone: true, ..one() }, one()].into();
        assert!(take(&mut refused, 1).is_none(), "one that was refused is in front");
    }

    #[test]
    fn who_came_later_is_not_late_because_the_first_is() {
        let (within, job) = (Duration::from_secs(3), one());
        let first = job.handed;
        for (after, expected) in [(0, false), (1, true), (2_999, true)] {
            let job = Job { handed: first + Duration::from_millis(after), ..one() };
            assert_eq!(has_time(&job, within, first + within), expected, "{after} ms after the first");
        }
    }
}
