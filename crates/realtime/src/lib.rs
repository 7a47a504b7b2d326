//! Databases that configuration comes from and records go to, asked on threads of their own: a call never waits for one.
//!
//! [`Query`] says what is wanted in words that every database understands, [`Answer`] and [`Failure`] what came of it. Names
//! of tables and columns are quoted and compared with what the table has; values are only ever bound. What a column means
//! is not known here; [`schema`] knows the standard's names.
#![forbid(unsafe_code)]

pub mod behind;
pub mod cache;
mod databases;
mod failure;
mod link;
mod pool;
mod program;
mod query;
pub mod schema;
mod settings;
mod sql;

pub use base::Isolation;
pub use databases::{Databases, Standing, Status, Turned};
pub use failure::Failure;
pub use query::{Answer, Filter, Load, Op, Order, Query, ResultSet, Rewrite, Row, Value};
pub use settings::{
    CONNECT_WITHIN, CONNECTIONS_DEFAULT, Connection, NEGATIVE_CACHE, QUERY_WITHIN, SLOW_QUERY, Server,
    Settings, Source, TRANSACTION_WITHIN, Target, Tls, Transport, UrlFlaw, WAITING_DEFAULT,
};

/// Which question an answer belongs to. Whoever asks chooses it, and several may ask of one set of databases.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticket {
    /// Who asks; the owner of the databases hands the answer to it.
    pub asker: u8,
    /// The asker's own number for it.
    pub number: u64,
}
