//! Why there is no answer, in words for people.

use std::time::Duration;

/// Why a database gave no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// There is no connection, and none can be made for the moment. Nothing was changed.
    #[error("{name}: the database cannot be reached: {why}")]
    Unreachable {
        /// The connection's name.
        name: String,
        /// What the network, or the database at the start, said.
        why: String,
    },
    /// It did not answer in time. A write may have been done all the same.
    #[error("{name}: the database did not answer within {} ms", .within.as_millis())]
    Slow {
        /// The connection's name.
        name: String,
        /// How long it was given.
        within: Duration,
    },
    /// The connection broke while the query was on its way. A write may have been done all the same.
    #[error("{name}: the connection broke: {why}")]
    Broken {
        /// The connection's name.
        name: String,
        /// What was seen of it.
        why: String,
    },
    /// Another is using what is wanted, and went on using it. Nothing was changed.
    #[error("{name}: another holds a lock: {why}")]
    Locked {
        /// The connection's name.
        name: String,
        /// The database's own words.
        why: String,
    },
    /// It answered, and will not do it: nothing was changed, and nothing would be by another try.
    #[error("{name}: the database refused: {why}")]
    Refused {
        /// The connection's name.
        name: String,
        /// Its own words.
        why: String,
    },
    /// It answered, and does not take a value for its column: nothing was changed. Another row may do.
    #[error("{name}: the database does not take a value: {why}")]
    Value {
        /// The connection's name.
        name: String,
        /// Its own words.
        why: String,
    },
    /// What came is not what its protocol allows.
    #[error("{name}: the database answered what makes no sense: {why}")]
    Malformed {
        /// The connection's name.
        name: String,
        /// What was wrong with it.
        why: String,
    },
    /// The query itself cannot be asked: a name that no table has, no column that would be written.
    #[error("{name}: {why}")]
    Unaskable {
        /// The connection's name.
        name: String,
        /// What is wrong with it.
        why: String,
    },
    /// As many queries wait as may. Nothing was changed.
    #[error("{name}: {waiting} queries wait for the database already")]
    Busy {
        /// The connection's name.
        name: String,
        /// How many wait.
        waiting: usize,
    },
    /// No connection has this name.
    #[error("there is no database connection '{name}'")]
    Unknown {
        /// The name that was asked for.
        name: String,
    },
}

impl Failure {
    /// What to do about it.
    pub const fn remedy(&self) -> &'static str {
        match self {
            Self::Unreachable { .. } => {
                "start the database, and compare host, port, user and password with what it expects"
            }
            Self::Slow { .. } | Self::Locked { .. } => {
                "look at the database's load and locks, and at the indexes of the table"
            }
            Self::Broken { .. } => "look into the database's own log; it is connected to again by itself",
            Self::Refused { .. } => {
                "correct the table or the user's rights; `strowger db check URL` names what is missing"
            }
            Self::Value { .. } => "make the column wide enough, or of a type that takes what is written",
            Self::Malformed { .. } => {
                "make sure that the address and the port are those of this kind of database"
            }
            Self::Unaskable { .. } => {
                "correct the name, or add the column: `strowger db upgrade URL` adds those of the standard"
            }
            Self::Busy { .. } => {
                "raise max_connections of the connection, or find out why the database is slow"
            }
            Self::Unknown { .. } => {
                "describe the connection in res_odbc.conf or in the file of its driver, or correct the name"
            }
        }
    }
    /// Whether it is the database's state that failed, so that another try may do: what is cached stays good meanwhile.
    pub const fn is_passing(&self) -> bool {
        match self {
            Self::Unreachable { .. }
            | Self::Slow { .. }
            | Self::Locked { .. }
            | Self::Broken { .. }
            | Self::Malformed { .. }
            | Self::Busy { .. } => true,
            Self::Refused { .. } | Self::Value { .. } | Self::Unaskable { .. } | Self::Unknown { .. } => {
                false
            }
        }
    }
}
