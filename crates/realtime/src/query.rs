//! What is asked, and what comes back.

use std::sync::Arc;

use base::Isolation;

/// A row of a table: names and values in the table's order, as text. A column that holds NULL is left out.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Row {
    columns: Vec<(Arc<str>, Box<str>)>,
}

impl Row {
    /// The value of a column; names are compared without regard to case, as databases do.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.iter().find(|(column, _)| column.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }
    /// Adds a column at the end.
    pub fn push(&mut self, name: Arc<str>, value: impl Into<Box<str>>) {
        self.columns.push((name, value.into()));
    }
    /// Names and values, in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.columns.iter().map(|(name, value)| (&**name, &**value))
    }
    /// How many columns hold something.
    pub fn len(&self) -> usize {
        self.columns.len()
    }
    /// Whether none does.
    pub fn is_empty(&self) -> bool {
        self.columns.is_empty()
    }
}

impl<N: AsRef<str>, V: AsRef<str>> FromIterator<(N, V)> for Row {
    fn from_iter<I: IntoIterator<Item = (N, V)>>(columns: I) -> Self {
        let columns = columns.into_iter().map(|(name, value)| (name.as_ref().into(), value.as_ref().into()));
        Self { columns: columns.collect() }
    }
}

/// How a column is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Op {
    /// `=`
    Equal,
    /// `<>`
    NotEqual,
    /// `<`
    Less,
    /// `<=`
    LessOrEqual,
    /// `>`
    Greater,
    /// `>=`
    GreaterOrEqual,
    /// `LIKE`: `%` is any text, `_` any character, `\` takes the meaning from the next.
    Like,
    /// `NOT LIKE`
    NotLike,
}

impl Op {
    /// As SQL spells it.
    pub const fn sql(self) -> &'static str {
        match self {
            Self::Equal => "=",
            Self::NotEqual => "<>",
            Self::Less => "<",
            Self::LessOrEqual => "<=",
            Self::Greater => ">",
            Self::GreaterOrEqual => ">=",
            Self::Like => "LIKE",
            Self::NotLike => "NOT LIKE",
        }
    }
    /// Column and comparison of a condition as the field writes it: the name, or the name and an operator (`name LIKE`,
    /// `regseconds >`). `None` when the operator is unknown.
    pub fn split(condition: &str) -> Option<(&str, Self)> {
        let condition = condition.trim();
        let Some((column, op)) = condition.split_once(char::is_whitespace) else {
            return Some((condition, Self::Equal));
        };
        let op = op.split_whitespace().collect::<Vec<_>>().join(" ").to_ascii_uppercase();
        let op = match op.as_str() {
            "=" => Self::Equal,
            "<>" | "!=" => Self::NotEqual,
            "<" => Self::Less,
            "<=" => Self::LessOrEqual,
            ">" => Self::Greater,
            ">=" => Self::GreaterOrEqual,
            "LIKE" => Self::Like,
            "NOT LIKE" => Self::NotLike,
            _ => return None,
        };
        Some((column, op))
    }
}

/// One condition; all of a query's conditions hold at once.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Filter {
    /// The column.
    pub column: String,
    /// How it is compared.
    pub op: Op,
    /// With what.
    pub value: String,
}

impl Filter {
    /// The column has this value.
    pub fn is(column: impl Into<String>, value: impl Into<String>) -> Self {
        Self { column: column.into(), op: Op::Equal, value: value.into() }
    }
}

/// The order of rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Order {
    /// By which column.
    pub column: String,
    /// Largest first.
    pub descending: bool,
}

/// Which rows are wanted.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Load {
    /// The table, or `schema.table`.
    pub table: String,
    /// Conditions; none: all rows.
    pub filters: Vec<Filter>,
    /// In which order; first column first. None: as the database has them.
    pub order: Vec<Order>,
    /// Most rows that are wanted; `Some(1)` for the one that is looked up by its key.
    pub limit: Option<u32>,
}

/// A column of a record, and what it gets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Value {
    /// The column.
    pub column: String,
    /// What is written; `None` is NULL.
    pub text: Option<String>,
    /// What is written instead where the column holds numbers.
    pub number: Option<String>,
}

/// Rows, each found by one column, that get the same columns. Of a row that is named twice the later values count.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Rewrite {
    /// The table.
    pub table: String,
    /// The column that says which row.
    pub key: String,
    /// What is written. Columns that the table lacks are left out, but not the key.
    pub columns: Vec<String>,
    /// The key's value and those of the columns, in their order; `None` is NULL.
    pub rows: Vec<(String, Vec<Option<String>>)>,
}

/// What is wanted of a database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Query {
    /// Rows of a table: [`Answer::Rows`].
    Load(Load),
    /// A new row: [`Answer::Changed`]. Columns that the table lacks are left out, those not named get their default.
    Store {
        /// The table.
        table: String,
        /// Columns and values; `None` is NULL.
        sets: Vec<(String, Option<String>)>,
    },
    /// A new row, as [`Query::Store`] makes it, of values that are cut to what their columns hold: [`Answer::Changed`].
    Record {
        /// The table.
        table: String,
        /// Columns and values.
        values: Vec<Value>,
    },
    /// Changes the rows that have these keys: [`Answer::Changed`]. Columns that the table lacks are left out, but not keys.
    Update {
        /// The table.
        table: String,
        /// Which rows.
        keys: Vec<(String, String)>,
        /// What they get.
        sets: Vec<(String, Option<String>)>,
    },
    /// Changes many rows with as few statements as can be: [`Answer::Changed`], where rows that are not there count for nothing.
    Rewrite(Box<Rewrite>),
    /// Changes the row that has these keys, or makes it when there is none: [`Answer::Changed`].
    Put {
        /// The table.
        table: String,
        /// Which row.
        keys: Vec<(String, String)>,
        /// What it gets.
        sets: Vec<(String, Option<String>)>,
    },
    /// Removes the rows that have these keys: [`Answer::Changed`]. Without keys it is refused.
    Destroy {
        /// The table.
        table: String,
        /// Which rows.
        keys: Vec<(String, String)>,
    },
    /// A statement of the site's own, as it stands: [`Answer::Set`]. Whatever of it comes from outside has to be quoted by who
    /// writes it. Of several statements in one text the last result comes back.
    Raw {
        /// The statement.
        sql: String,
        /// Most rows that are wanted.
        limit: Option<u32>,
    },
    /// Writes that are done all or not at all, in one transaction: [`Answer::Batch`]. Neither `Raw` nor `Batch` may be among
    /// them, nor more than [`Query::BATCH_MAX`] in all.
    Batch(Vec<Query>),
    /// A statement of the site's own in a transaction that others follow in: [`Answer::Set`]. A connection is lent to the
    /// transaction from its first statement to its end, or until it has lasted for as long as it may.
    Within {
        /// Which transaction; who asks chooses the number, and never twice the same.
        transaction: u64,
        /// It may begin the transaction; otherwise one that is not there, or not any more, is refused.
        begins: bool,
        /// What it sees of others, when it is begun.
        isolation: Isolation,
        /// The statement.
        sql: String,
        /// Most rows that are wanted.
        limit: Option<u32>,
    },
    /// Ends a transaction of [`Query::Within`]: [`Answer::Changed`] of nothing. To commit one that is not there any more, or
    /// of which the database keeps nothing, is refused.
    End {
        /// Which transaction.
        transaction: u64,
        /// Keeps what was done.
        commit: bool,
    },
    /// The names of a table's columns: [`Answer::Columns`].
    Columns {
        /// The table.
        table: String,
    },
}

impl Query {
    /// Most writes of one transaction: rows stay locked until its end.
    pub const BATCH_MAX: usize = 1_000;
    /// The transaction of which it is a part, or that it ends.
    pub(crate) const fn transaction(&self) -> Option<u64> {
        match self {
            Self::Within { transaction, .. } | Self::End { transaction, .. } => Some(*transaction),
            _ => None,
        }
    }
}

/// The result of a statement of the site's own.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ResultSet {
    /// Names of the columns; none when the statement has no rows by its nature.
    pub columns: Vec<String>,
    /// Rows, `None` for NULL.
    pub rows: Vec<Vec<Option<String>>>,
    /// Rows that the statement changed.
    pub changed: u64,
}

/// What a database answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// The rows that were found.
    Rows(Vec<Row>),
    /// How many rows were found to change, or were made or removed.
    Changed(u64),
    /// The same for each write of a batch.
    Batch(Vec<u64>),
    /// What a statement gave.
    Set(ResultSet),
    /// The columns of a table, in its order; none when there is no such table.
    Columns(Vec<String>),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_condition_is_a_column_and_an_operator_when_one_follows() {
        for (condition, expected) in [
            ("name", Some(("name", Op::Equal))),
            ("name LIKE", Some(("name", Op::Like))),
            ("name not  like", Some(("name", Op::NotLike))),
            ("regseconds >", Some(("regseconds", Op::Greater))),
            ("port !=", Some(("port", Op::NotEqual))),
            ("port <>", Some(("port", Op::NotEqual))),
            (" port <= ", Some(("port", Op::LessOrEqual))),
            ("name; DROP TABLE x", None),
            ("name = 1 OR 1 =", None),
        ] {
            assert_eq!(Op::split(condition), expected, "{condition}");
        }
    }

    #[test]
    fn a_row_finds_its_columns_whatever_the_case_and_keeps_their_order() {
        let row: Row = [("id", "6001"), ("Context", "internal")].into_iter().collect();
        assert_eq!(row.get("context"), Some("internal"));
        assert_eq!(row.get("none"), None);
        assert_eq!(row.iter().collect::<Vec<_>>(), [("id", "6001"), ("Context", "internal")]);
    }
}
