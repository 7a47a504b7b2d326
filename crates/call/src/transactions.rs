//! Transactions of the dialplan (`ODBC()`): what a channel has open in databases, until it commits, rolls back, or ends.
//!
//! Here is only which ones there are; a connection is lent to one with its first statement, by whoever asks databases.

use std::collections::BTreeMap;
use std::time::Duration;

use base::{ChannelId, Isolation, RowsAsk, RowsWant, Transaction};

use crate::{Core, LinkWant};

/// Transactions that a channel has at once.
pub const TRANSACTIONS_MAX: usize = 8;
/// Longest name of one, bytes.
pub const TRANSACTION_NAME_MAX: usize = 256;
/// How long an end may take that nobody waits for.
const WITHIN: Duration = Duration::from_secs(10);

/// What holds for the transactions of a database, unless they say otherwise.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TransactionRules {
    /// What they see of others.
    pub isolation: Isolation,
    /// They are committed when their call ends.
    pub forcecommit: bool,
}

/// A transaction of a channel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnTransaction {
    /// What the dialplan calls it.
    pub name: String,
    /// The database that it is in.
    pub database: String,
    /// What holds for it.
    pub rules: TransactionRules,
    number: u64,
}

/// Those of a channel, the one that is active last.
pub(crate) type OwnTransactions = BTreeMap<ChannelId, Vec<OwnTransaction>>;

/// Why there is no transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoTransaction {
    /// There is none of this name, and no database is named to make it in.
    Unknown,
    /// The configuration describes no such database.
    Database,
    /// The channel has as many as it may.
    Full,
    /// The name is empty or too long.
    Name,
}

impl NoTransaction {
    /// For people.
    pub const fn words(self) -> &'static str {
        match self {
            Self::Unknown => "there is no such transaction; Set(ODBC(transaction,class)=name) makes one",
            Self::Database => "no database of this name is described",
            Self::Full => "the channel has as many transactions as it may",
            Self::Name => "a transaction has a name, of 256 bytes at most",
        }
    }
}

impl Core {
    /// Makes a transaction the active one of a channel; it is made in `database` when there is none of this name.
    pub fn activate_transaction(
        &mut self,
        id: ChannelId,
        name: &str,
        database: &str,
    ) -> Result<(), NoTransaction> {
        if name.is_empty() || name.len() > TRANSACTION_NAME_MAX {
            return Err(NoTransaction::Name);
        }
        let own = self.transactions.get_mut(&id);
        if let Some(own) = own
            && let Some(at) = own.iter().position(|own| own.name.eq_ignore_ascii_case(name))
        {
            let active = own.remove(at);
            own.push(active);
            return Ok(());
        }
        if database.is_empty() || self.get(id).is_none() {
            return Err(NoTransaction::Unknown);
        }
        let rules = *self.settings.transactions.get(database).ok_or(NoTransaction::Database)?;
        let own = self.transactions.entry(id).or_default();
        if own.len() >= TRANSACTIONS_MAX {
            return Err(NoTransaction::Full);
        }
        self.next_transaction += 1;
        let (name, database) = (name.to_owned(), database.to_owned());
        own.push(OwnTransaction { name, database, rules, number: self.next_transaction });
        Ok(())
    }
    /// A transaction of a channel; without a name the active one.
    pub fn transaction(&self, id: ChannelId, name: Option<&str>) -> Option<&OwnTransaction> {
        let own = self.transactions.get(&id)?;
        match name {
            None => own.last(),
            Some(name) => own.iter().find(|own| own.name.eq_ignore_ascii_case(name)),
        }
    }
    /// Sets what holds for a transaction of a channel; false when there is none.
    pub fn rule_transaction(
        &mut self,
        id: ChannelId,
        name: Option<&str>,
        with: impl FnOnce(&mut TransactionRules),
    ) -> bool {
        let own = self.transactions.get_mut(&id);
        let found = own.and_then(|own| match name {
            None => own.last_mut(),
            Some(name) => own.iter_mut().find(|own| own.name.eq_ignore_ascii_case(name)),
        });
        found.map(|own| with(&mut own.rules)).is_some()
    }
    /// Which of a channel's transactions a statement is a part of that goes to one of these databases: of the first that has
    /// any, the one that was active last. The database's name with it.
    pub fn transaction_for(&self, id: ChannelId, databases: &[String]) -> Option<(String, Transaction)> {
        let own = self.transactions.get(&id)?;
        let of = |database: &String| own.iter().rev().find(|own| own.database == *database);
        let found = databases.iter().find_map(of)?;
        Some((found.database.clone(), found.part()))
    }
    /// A channel ends: its transactions are committed or rolled back, as each wants it. Nobody waits for that.
    pub(crate) fn end_transactions(&mut self, id: ChannelId) {
        for own in self.transactions.remove(&id).unwrap_or_default() {
            let want = own.end(own.rules.forcecommit);
            // What cannot be asked is over with its connection.
            if let Ok(link) = self.services.links.open(LinkWant::Rows(Box::new(want))) {
                self.services.links.close(link);
            }
        }
    }
}

impl OwnTransaction {
    fn part(&self) -> Transaction {
        Transaction { number: self.number, isolation: self.rules.isolation }
    }
    /// What ends it. A statement that follows begins it anew.
    pub fn end(&self, commit: bool) -> RowsWant {
        let ask = RowsAsk::End { transaction: self.number, commit };
        RowsWant { ask, rows_max: 1, within: WITHIN, serves_last: false }
    }
}
