//! What Strowger and the program that speaks ODBC say to each other, as bytes on a stream.
//!
//! Drivers of ODBC are libraries of others, in C, and what is wrong with one ends the process that it is in. So it is in a
//! process of its own: one connection, one process, one question after the other. [`Request`] is what it is asked,
//! [`Reply`] what it says; [`Frames`] cuts the stream into them. Neither the socket nor ODBC itself is known here.
//!
//! ```text
//! frame   := length (4 octets, little-endian: of what follows) kind (1 octet) fields
//! text    := length (4 octets) octets of UTF-8
//! value   := text, or the length 0xffffffff alone: NULL
//! list    := count (4 octets) elements
//! ```
#![forbid(unsafe_code)]

mod field;
mod frames;

pub use field::Flaw;
pub use frames::{FRAME_BYTES_MAX, Frames};

use field::{Fields, Out};

/// Most values of one row, or parameters of one statement: databases have fewer columns.
pub const VALUES_MAX: usize = 4_096;
/// A reply of rows is sent when it has so many bytes, so that a large table is no large frame.
pub const ROWS_BYTES: usize = 64 * 1024;
/// Longest value that is passed on, bytes: a recording of voicemail of an hour and a half.
pub const VALUE_BYTES_MAX: usize = 8 * 1024 * 1024;

/// Column by column, `None` for NULL.
pub type Values = Vec<Option<String>>;

/// What the program is asked. Each request has an end: [`Reply::Done`] or [`Reply::Failed`], and before it what was found.
#[derive(Clone, PartialEq, Eq)]
pub enum Request {
    /// Connects: [`Reply::Connected`]. The first request, and the only one of its kind.
    Connect {
        /// Name in odbc.ini, or a whole connection string when it has a `=`.
        dsn: String,
        /// User; empty: the one of odbc.ini.
        user: String,
        /// Password; empty: the one of odbc.ini.
        password: String,
        /// Seconds after which the driver is to give up.
        within: u32,
    },
    /// Prepares a statement, unless it is still prepared, binds the values as text, and executes it.
    Ask {
        /// The statement, with a `?` for each value.
        sql: String,
        /// What is bound.
        values: Values,
        /// Most rows that are wanted.
        limit: u32,
    },
    /// Executes a statement as it stands. Its columns' names come first: [`Reply::Names`].
    Stand {
        /// The statement.
        sql: String,
        /// Most rows that are wanted.
        limit: u32,
    },
    /// The columns of a table, one a row, by SQLColumns: name, name of the type, number of the type.
    Columns {
        /// Its schema, or, for databases without, its catalogue; empty: where the connection is.
        schema: String,
        /// The table.
        table: String,
    },
    /// What follows is one transaction.
    Begin,
    /// It is done.
    Commit,
    /// It never was.
    Rollback,
}

/// What the program says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reply {
    /// There is a connection.
    Connected {
        /// What the database calls itself (SQL_DBMS_NAME).
        dbms: String,
        /// What it puts around names; `None`: nothing (SQL_IDENTIFIER_QUOTE_CHAR).
        quote: Option<char>,
    },
    /// Names of the columns of what is found.
    Names(Vec<String>),
    /// Some of the rows that are found.
    Rows(Vec<Values>),
    /// All is said; so many rows were changed.
    Done {
        /// Rows, as the driver counts them.
        changed: u64,
    },
    /// It came to nothing.
    Failed {
        /// Five letters and digits that every driver understands alike (SQLSTATE).
        state: String,
        /// The database's own number.
        native: i32,
        /// In words.
        words: String,
        /// The driver says that there is no connection any more.
        is_gone: bool,
    },
}

/// Without the password.
impl std::fmt::Debug for Request {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Connect { dsn, user, within, .. } => write!(out, "Connect {user}@{dsn} within {within} s"),
            Self::Ask { sql, values, limit } => write!(out, "Ask {sql:?} {values:?} limit {limit}"),
            Self::Stand { sql, limit } => write!(out, "Stand {sql:?} limit {limit}"),
            Self::Columns { schema, table } => write!(out, "Columns {schema:?} {table:?}"),
            Self::Begin => out.write_str("Begin"),
            Self::Commit => out.write_str("Commit"),
            Self::Rollback => out.write_str("Rollback"),
        }
    }
}

impl Request {
    /// Appends its frame. A flaw: it is longer than a frame may be, and nothing was appended.
    pub fn write(&self, out: &mut Vec<u8>) -> Result<(), Flaw> {
        let mut frame = match self {
            Self::Connect { .. } => Out::new(out, b'c'),
            Self::Ask { .. } => Out::new(out, b'a'),
            Self::Stand { .. } => Out::new(out, b's'),
            Self::Columns { .. } => Out::new(out, b't'),
            Self::Begin => Out::new(out, b'b'),
            Self::Commit => Out::new(out, b'e'),
            Self::Rollback => Out::new(out, b'r'),
        };
        match self {
            Self::Connect { dsn, user, password, within } => {
                frame.text(dsn);
                frame.text(user);
                frame.text(password);
                frame.number(*within);
            }
            Self::Ask { sql, values, limit } => {
                frame.text(sql);
                frame.values(values);
                frame.number(*limit);
            }
            Self::Stand { sql, limit } => {
                frame.text(sql);
                frame.number(*limit);
            }
            Self::Columns { schema, table } => {
                frame.text(schema);
                frame.text(table);
            }
            Self::Begin | Self::Commit | Self::Rollback => {}
        }
        frame.finish()
    }
    /// Reads what a frame holds.
    pub fn read(frame: &[u8]) -> Result<Self, Flaw> {
        let mut fields = Fields::new(frame);
        let request = match fields.octet()? {
            b'c' => Self::Connect {
                dsn: fields.text()?,
                user: fields.text()?,
                password: fields.text()?,
                within: fields.number()?,
            },
            b'a' => Self::Ask { sql: fields.text()?, values: fields.values()?, limit: fields.number()? },
            b's' => Self::Stand { sql: fields.text()?, limit: fields.number()? },
            b't' => Self::Columns { schema: fields.text()?, table: fields.text()? },
            b'b' => Self::Begin,
            b'e' => Self::Commit,
            b'r' => Self::Rollback,
            kind => return Err(Flaw::Kind(kind)),
        };
        fields.end()?;
        Ok(request)
    }
}

impl Reply {
    /// Appends its frame. A flaw: it is longer than a frame may be, and nothing was appended.
    pub fn write(&self, out: &mut Vec<u8>) -> Result<(), Flaw> {
        let mut frame = match self {
            Self::Connected { .. } => Out::new(out, b'C'),
            Self::Names(_) => Out::new(out, b'N'),
            Self::Rows(_) => Out::new(out, b'R'),
            Self::Done { .. } => Out::new(out, b'D'),
            Self::Failed { .. } => Out::new(out, b'F'),
        };
        match self {
            Self::Connected { dbms, quote } => {
                frame.text(dbms);
                frame.number(quote.map_or(0, u32::from));
            }
            Self::Names(names) => {
                frame.number(u32::try_from(names.len()).unwrap_or(u32::MAX));
                names.iter().for_each(|name| frame.text(name));
            }
            Self::Rows(rows) => {
                frame.number(u32::try_from(rows.len()).unwrap_or(u32::MAX));
                rows.iter().for_each(|row| frame.values(row));
            }
            Self::Done { changed } => frame.long(*changed),
            Self::Failed { state, native, words, is_gone } => {
                frame.text(state);
                frame.number(native.cast_unsigned());
                frame.text(words);
                frame.number(u32::from(*is_gone));
            }
        }
        frame.finish()
    }
    /// Reads what a frame holds. What a driver says in another coding than UTF-8 is shown as far as it can be.
    pub fn read(frame: &[u8]) -> Result<Self, Flaw> {
        let mut fields = Fields::new(frame);
        let reply = match fields.octet()? {
            b'C' => Self::Connected {
                dbms: fields.text()?,
                quote: char::from_u32(fields.number()?).filter(|quote| !quote.is_control() && *quote != ' '),
            },
            b'N' => {
                let count = fields.count(VALUES_MAX)?;
                Self::Names((0..count).map(|_| fields.text()).collect::<Result<_, _>>()?)
            }
            b'R' => {
                let count = fields.count(frame.len())?;
                Self::Rows((0..count).map(|_| fields.values()).collect::<Result<_, _>>()?)
            }
            b'D' => Self::Done { changed: fields.long()? },
            b'F' => Self::Failed {
                state: fields.text()?,
                native: fields.number()?.cast_signed(),
                words: fields.text()?,
                is_gone: fields.number()? != 0,
            },
            kind => return Err(Flaw::Kind(kind)),
        };
        fields.end()?;
        Ok(reply)
    }
}
