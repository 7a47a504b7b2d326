//! Connections that are lent to transactions: each from the first statement to the end, and no longer than it may last.
//!
//! They come on top of those that queries have, and there are as many at most: whoever holds a transaction open is in nobody
//! else's way but of those who begin further ones, and these wait no longer than a query may.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use base::Isolation;
use tokio::time::{Instant, timeout_at};

use super::{Job, Pool, Told, failure, whole};
use crate::Failure;
use crate::link::{Link, Trouble};
use crate::query::{Answer, Query};

/// A transaction that has a connection.
struct Lent {
    /// When it is rolled back, whatever becomes of it.
    until: Instant,
    /// `None` while something is on its way.
    link: Option<Link>,
    /// What follows.
    next: VecDeque<Job>,
    /// The database may keep nothing of it: nothing more is done in it, and it cannot be committed.
    is_spoiled: bool,
}

/// The transactions of a database.
#[derive(Default)]
pub(super) struct Lending {
    lent: BTreeMap<u64, Lent>,
    /// First statements of transactions that have no connection yet.
    borrowers: VecDeque<Job>,
}

/// What came of something that was done in a transaction.
pub(super) struct Done {
    transaction: u64,
    /// `None`: the connection is of no use any more.
    link: Option<Link>,
    /// Who wants to hear of it; nobody, when its time was over.
    job: Option<Job>,
    result: Result<Answer, Failure>,
    spoils: bool,
    /// It was the end.
    is_end: bool,
    /// The program that spoke ODBC has ended over it.
    has_ended: bool,
}

/// What is done on a connection that is lent.
enum Work {
    First { isolation: Isolation, sql: String, limit: Option<u32> },
    Further { sql: String, limit: Option<u32> },
    End { commit: bool, is_spoiled: bool },
}

impl Work {
    /// Does it. A transaction that could not be begun is at its end.
    async fn on(self, link: &mut Link, is_end: &mut bool) -> Result<Answer, Trouble> {
        match self {
            Self::First { isolation, sql, limit } => {
                let begun = link.begin(isolation).await;
                *is_end = begun.is_err();
                begun?;
                link.within(&sql, limit).await
            }
            Self::Further { sql, limit } => link.within(&sql, limit).await,
            Self::End { commit, is_spoiled } => {
                link.end(commit && !is_spoiled).await?;
                match commit && is_spoiled {
                    true => {
                        let why = "a statement of the transaction has failed: it was rolled back";
                        Err(Trouble::Refused(why.to_owned()))
                    }
                    false => Ok(Answer::Changed(0)),
                }
            }
        }
    }
}

impl Lending {
    /// Whether nothing is on its way and nobody waits. What is merely open ends with its connection.
    pub(super) fn is_idle(&self) -> bool {
        self.borrowers.is_empty() && self.lent.values().all(|lent| lent.link.is_some())
    }
    pub(super) fn len(&self) -> usize {
        self.lent.len()
    }
    pub(super) fn busy(&self) -> usize {
        self.lent.values().filter(|lent| lent.link.is_none()).count()
    }
    pub(super) fn waiting(&self) -> usize {
        self.borrowers.len()
    }
    /// Connections that could be lent if there were any.
    pub(super) fn wanted(&self, most: usize) -> usize {
        self.borrowers.len().min(most.saturating_sub(self.lent.len()))
    }
    pub(super) fn pop_borrower(&mut self) -> Option<Job> {
        self.borrowers.pop_front()
    }
    /// When somebody has waited for too long, or had one for too long.
    pub(super) fn deadline(&self, query_within: Duration) -> Option<Instant> {
        let resting = self.lent.values().filter(|lent| lent.link.is_some()).map(|lent| lent.until);
        let oldest = self.borrowers.front().map(|job| job.handed + query_within);
        resting.chain(oldest).min()
    }
}

impl<T: FnMut(Told) -> bool> Pool<T> {
    /// Takes in a statement of a transaction, or its end.
    pub(super) fn enter_lent(&mut self, transaction: u64, job: Job) {
        if let Some(lent) = self.lending.lent.get_mut(&transaction) {
            lent.next.push_back(job);
            return self.go_on(transaction);
        }
        match job.query {
            Query::Within { begins: true, .. } => self.lending.borrowers.push_back(job),
            Query::End { commit: false, .. } => {
                self.forget_borrowers(transaction);
                self.answer(job.ticket, Ok(Answer::Changed(0)));
            }
            _ => {
                self.forget_borrowers(transaction);
                let gone = self.gone();
                self.answer(job.ticket, Err(gone));
            }
        }
    }
    fn forget_borrowers(&mut self, transaction: u64) {
        let is_of_it = |job: &Job| job.query.transaction() == Some(transaction);
        let (gone, left) = std::mem::take(&mut self.lending.borrowers).into_iter().partition(is_of_it);
        self.lending.borrowers = left;
        for job in Vec::from(gone) {
            let gone = self.gone();
            self.answer(job.ticket, Err(gone));
        }
    }
    fn refused(&self, why: &str) -> Failure {
        Failure::Refused { name: self.settings.name.clone(), why: why.to_owned() }
    }
    fn gone(&self) -> Failure {
        self.refused("the transaction is over: it was ended, lasted too long, or lost its connection")
    }
    /// Lends connections that rest to whoever waits for one.
    pub(super) fn lend(&mut self, now: Instant) {
        let most = self.connections_max();
        while self.lending.lent.len() < most
            && !self.lending.borrowers.is_empty()
            && let Some(link) = self.idle.pop()
            && let Some(job) = self.lending.borrowers.pop_front()
        {
            let until = now + self.settings.transaction_within;
            let Query::Within { transaction, isolation, sql, limit, .. } = job.query.clone() else {
                continue;
            };
            let lent = Lent { until, link: None, next: VecDeque::new(), is_spoiled: false };
            self.lending.lent.insert(transaction, lent);
            self.work(transaction, link, Some(job), Work::First { isolation, sql, limit });
        }
    }
    /// Does what comes next in a transaction, if nothing is on its way in it.
    fn go_on(&mut self, transaction: u64) {
        while let Some(lent) = self.lending.lent.get_mut(&transaction)
            && lent.link.is_some()
            && let Some(job) = lent.next.pop_front()
        {
            let is_spoiled = lent.is_spoiled;
            match job.query.clone() {
                Query::Within { .. } if is_spoiled => {
                    let refused = self.refused("a statement of the transaction has failed before; end it");
                    self.answer(job.ticket, Err(refused));
                }
                Query::Within { sql, limit, .. } => {
                    let Some(link) = lent.link.take() else { return };
                    self.work(transaction, link, Some(job), Work::Further { sql, limit });
                }
                Query::End { commit, .. } => {
                    let Some(link) = lent.link.take() else { return };
                    self.work(transaction, link, Some(job), Work::End { commit, is_spoiled });
                }
                // Nothing else has a transaction.
                _ => {}
            }
        }
    }
    /// Rolls back what has lasted too long, and turns away who has waited too long.
    pub(super) fn expire_lent(&mut self, now: Instant) {
        let query_within = self.settings.query_within;
        // Those that were handed over first are in front.
        while let Some(job) = self.lending.borrowers.pop_front_if(|job| job.handed + query_within <= now) {
            let why = format!("as many transactions are open as may be: {}", self.connections_max());
            let locked = Failure::Locked { name: self.settings.name.clone(), why };
            self.answer(job.ticket, Err(locked));
        }
        let over = self.lending.lent.iter_mut().filter(|(_, lent)| lent.until <= now);
        let over: Vec<_> = over.filter_map(|(number, lent)| Some((*number, lent.link.take()?))).collect();
        for (transaction, link) in over {
            self.work(transaction, link, None, Work::End { commit: false, is_spoiled: false });
        }
    }
    /// Has a connection that is lent do something.
    fn work(&mut self, transaction: u64, mut link: Link, job: Option<Job>, work: Work) {
        let (name, within) = (self.settings.name.clone(), self.settings.query_within);
        let until = job.as_ref().map_or_else(Instant::now, |job| job.handed) + within;
        self.tasks.spawn(async move {
            let mut is_end = matches!(work, Work::End { .. });
            let asked = timeout_at(until, whole(work.on(&mut link, &mut is_end))).await;
            let mut done = Done {
                transaction,
                link: None,
                job,
                result: Err(Failure::Slow { name: name.clone(), within }),
                spoils: false,
                is_end,
                has_ended: false,
            };
            match asked {
                Ok(Ok(answer)) => (done.result, done.link) = (Ok(answer), Some(link)),
                Ok(Err(trouble)) => {
                    done.spoils = link.spoils(&trouble);
                    done.has_ended = matches!(trouble, Trouble::Ended(_));
                    // A connection whose transaction did not end is closed, and the database ends it.
                    let keeps = trouble.leaves_link() && !is_end;
                    done.link = keeps.then_some(link);
                    done.result = Err(failure(trouble, name));
                }
                // What it goes on saying belongs to nobody: the connection is closed.
                Err(_) => {}
            }
            super::Done::Lent(done)
        });
    }
    /// A connection has done what it was to do in a transaction.
    pub(super) fn take_back(&mut self, done: Done) {
        let Done { transaction, link, job, result, spoils, is_end, has_ended } = done;
        // An end that was refused has closed a connection that was good.
        let is_good = link.is_some() || matches!(result, Err(Failure::Refused { .. }));
        self.heard(&result, is_good, has_ended);
        if let Some(job) = job {
            self.time(&job);
            self.answer(job.ticket, result);
        }
        match link {
            Some(link) if !is_end => {
                if let Some(lent) = self.lending.lent.get_mut(&transaction) {
                    lent.link = Some(link);
                    lent.is_spoiled |= spoils;
                }
                self.go_on(transaction);
            }
            link => {
                self.idle.extend(link);
                let left = self.lending.lent.remove(&transaction);
                for job in left.into_iter().flat_map(|lent| lent.next) {
                    let answer = match job.query {
                        Query::End { commit: false, .. } => Ok(Answer::Changed(0)),
                        _ => Err(self.gone()),
                    };
                    self.answer(job.ticket, answer);
                }
            }
        }
    }
}
