//! What a call may ask of databases, and what comes back.

use core::time::Duration;
use std::sync::Arc;

/// What is wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RowsWant {
    /// The question.
    pub ask: RowsAsk,
    /// Most rows that are taken of the answer.
    pub rows_max: usize,
    /// How long it may take.
    pub within: Duration,
    /// While the database does not answer, what it said to the same question last serves.
    pub serves_last: bool,
}

/// A question. Families are those of `extconfig.conf`; conditions are a column, or a column and an operator.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum RowsAsk {
    /// The rows of a family that meet all conditions.
    Find {
        /// The family.
        family: String,
        /// Conditions and values.
        filters: Vec<(String, String)>,
    },
    /// Sets columns in the rows that have these keys.
    Change {
        /// The family.
        family: String,
        /// Columns and values of the rows that are meant.
        keys: Vec<(String, String)>,
        /// Columns and their new values.
        sets: Vec<(String, String)>,
    },
    /// A new row.
    Add {
        /// The family.
        family: String,
        /// Columns and values.
        sets: Vec<(String, String)>,
    },
    /// Removes the rows that have these keys.
    Remove {
        /// The family.
        family: String,
        /// Columns and values of the rows that are meant.
        keys: Vec<(String, String)>,
    },
    /// A statement of the site's own, as it stands.
    Statement {
        /// Databases by the names of their classes; the next is asked when one cannot be reached.
        databases: Arc<[String]>,
        /// The statement.
        sql: String,
        /// Follows in the same database when the first changed nothing; empty: nothing does.
        otherwise: String,
        /// The transaction that it is a part of; there is one database then.
        within: Option<Transaction>,
    },
    /// Ends a transaction. One that no statement has begun, or that is gone, is rolled back with nothing to do.
    End {
        /// Its number.
        transaction: u64,
        /// Keeps what its statements have done.
        commit: bool,
    },
}

/// A transaction that statements of a call are parts of. The first of them begins it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Transaction {
    /// Its number; never used twice in the life of a process.
    pub number: u64,
    /// What it sees of others.
    pub isolation: Isolation,
}

/// What a transaction sees of those beside it (SQL-92, 4.28).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum Isolation {
    /// Also what they may yet take back.
    ReadUncommitted,
    /// What they have committed.
    #[default]
    ReadCommitted,
    /// Rows that it has read stay as they were.
    RepeatableRead,
    /// As if there were no others.
    Serializable,
}

impl Isolation {
    /// All of them, by the names that `res_odbc.conf` and `ODBC()` give them.
    pub const NAMES: [(&str, Self); 4] = [
        ("read_committed", Self::ReadCommitted),
        ("read_uncommitted", Self::ReadUncommitted),
        ("repeatable_read", Self::RepeatableRead),
        ("serializable", Self::Serializable),
    ];
    /// By its name, whatever its case.
    pub fn named(name: &str) -> Option<Self> {
        let found = Self::NAMES.iter().find(|(known, _)| known.eq_ignore_ascii_case(name.trim()));
        found.map(|(_, level)| *level)
    }
    /// Its name.
    pub fn name(self) -> &'static str {
        Self::NAMES.iter().find(|(_, level)| *level == self).map_or("", |(name, _)| name)
    }
    /// As SQL spells it.
    pub const fn sql(self) -> &'static str {
        match self {
            Self::ReadUncommitted => "READ UNCOMMITTED",
            Self::ReadCommitted => "READ COMMITTED",
            Self::RepeatableRead => "REPEATABLE READ",
            Self::Serializable => "SERIALIZABLE",
        }
    }
}

/// What a database gave.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Rows {
    /// Names of the columns.
    pub columns: Vec<String>,
    /// Rows, `None` for NULL.
    pub rows: Vec<Vec<Option<String>>>,
    /// Rows that were changed, made or removed.
    pub changed: u64,
}
