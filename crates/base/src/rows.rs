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
    },
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
