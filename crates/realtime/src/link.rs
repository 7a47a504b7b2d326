//! One connection: its making, and one query after the other.

mod keys;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use base::Isolation;
use futures_util::TryStreamExt as _;
use sqlx::mysql::{MySqlConnectOptions, MySqlConnection, MySqlDatabaseError, MySqlRow, MySqlSslMode};
use sqlx::postgres::{PgConnectOptions, PgConnection, PgRow, PgSslMode};
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection, SqliteRow};
use sqlx::{AssertSqlSafe, ConnectOptions as _, Either, Executor as _, MySql, Postgres, Row as _, Sqlite};
use sqlx::{Column as _, ValueRef as _};

use crate::program::Program;
use crate::query::{Answer, Load, Query, ResultSet, Rewrite, Row};
use crate::settings::{Server, Target, Tls, Transport};
use crate::sql::{Dialect, Marks, Statement, Table};

/// Most rows of one answer: ten times the largest site's endpoints. More are refused, so that no table fills the memory.
pub(crate) const ROWS_MAX: usize = 500_000;
/// Tables of one database whose columns are remembered.
const TABLES_MAX: usize = 1_000;
/// Rows of one statement at most. Each database compares each row with each key: beyond this that is dearer than what is saved.
const REWRITTEN_MAX: usize = 64;
/// Statements that a connection keeps prepared.
const PREPARED_MAX: usize = 256;

pub(crate) use keys::Keys;

/// Why a query came to nothing, on this connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Trouble {
    /// The connection is of no use any more.
    Broken(String),
    /// The program that it was made by has ended, by no wish of ours. Other connections have their own.
    Ended(String),
    /// Nor is it after this.
    Malformed(String),
    /// Another is using what is wanted, and the database waited for it.
    Locked(String),
    Refused(String),
    /// A value is none for its column.
    Value(String),
    /// A table or a column is not what was remembered of it.
    Stale(String),
    Unaskable(String),
}

impl Trouble {
    /// Whether the connection can go on.
    pub(crate) const fn leaves_link(&self) -> bool {
        matches!(
            self,
            Self::Refused(_) | Self::Value(_) | Self::Stale(_) | Self::Unaskable(_) | Self::Locked(_)
        )
    }
    /// What a database means by its code.
    pub(crate) fn told(code: &str, why: String) -> Self {
        match code {
            // Shut down, or about to start (PostgreSQL, class 57P); shutdown and killed (MySQL).
            "57P01" | "57P02" | "57P03" | "57P05" | "08S01" | "70100" => Self::Broken(why),
            // Busy and locked (SQLite); lock not available, deadlock, serialization (SQLSTATE).
            "5" | "6" | "261" | "262" | "517" | "55P03" | "40P01" | "40001" => Self::Locked(why),
            // No such table or column: PostgreSQL, MySQL, SQLite.
            "42P01" | "42703" | "42S02" | "42S22" | "1" => Self::Stale(why),
            code if is_of_value(code) => Self::Value(why),
            _ => Self::Refused(why),
        }
    }
    fn of(error: sqlx::Error) -> Self {
        use sqlx::Error as E;
        let mut why = words(&error);
        if why.contains("RSA auth backend") {
            why = "the server wants the password by caching_sha2_password, which is not sent in the clear: write \
                   ?tls=required behind the URL, or give the user mysql_native_password"
                .to_owned();
        }
        match error {
            E::Database(told) => {
                let code = told.code();
                // MySQL has no class of its own for a text that is no number.
                let mysql = told.try_downcast_ref::<MySqlDatabaseError>().map(MySqlDatabaseError::number);
                match mysql {
                    Some(1366) => Self::Value(why),
                    _ => Self::told(code.as_deref().unwrap_or_default(), why),
                }
            }
            E::Protocol(_) | E::Decode(_) | E::ColumnDecode { .. } | E::TypeNotFound { .. } => {
                Self::Malformed(why)
            }
            E::Encode(_) | E::InvalidArgument(_) | E::Configuration(_) => Self::Unaskable(why),
            _ => Self::Broken(why),
        }
    }
}

/// Whether a code blames a value: data exceptions and broken constraints (SQLSTATE classes 22 and 23), and SQLite's.
fn is_of_value(code: &str) -> bool {
    let class = if code.len() == 5 { code.get(..2) } else { None };
    let sqlite = code.parse::<u32>().ok().filter(|_| code.len() < 5).map(|code| code & 0xff);
    matches!(class, Some("22" | "23")) || matches!(sqlite, Some(18..=20))
}

/// The error with its causes, in one line.
fn words(error: &dyn std::error::Error) -> String {
    let mut out = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        let cause_words = cause.to_string();
        if !out.contains(&cause_words) {
            out.push_str(": ");
            out.push_str(&cause_words);
        }
        next = cause.source();
    }
    out.retain(|symbol| !symbol.is_control());
    out
}

/// An end of a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Bound {
    Begin,
    Commit,
    Rollback,
}

/// What is known of a database's tables; all connections to it share it. The shard never takes this lock.
pub(crate) type Tables = Arc<Mutex<BTreeMap<String, Arc<Table>>>>;

pub(crate) enum Link {
    Mysql(MySqlConnection),
    Postgres(PgConnection),
    Sqlite(SqliteConnection),
    Odbc(Program),
}

/// What came of a prepared statement.
#[derive(Default)]
pub(crate) struct Found {
    pub rows: Vec<Vec<Option<String>>>,
    pub changed: u64,
}

/// The two ways of asking are the same text for each driver, whose types have no name in common.
macro_rules! asks {
    ($prepared:ident, $as_it_stands:ident, $database:ty, $connection:ty, $row:ty) => {
        async fn $prepared(
            connection: &mut $connection,
            statement: &Statement,
        ) -> Result<Found, sqlx::Error> {
            let mut query = sqlx::query::<$database>(AssertSqlSafe(statement.sql.clone()));
            for value in &statement.values {
                query = query.bind(value.clone());
            }
            let mut found = Found::default();
            let mut stream = connection.fetch_many(query);
            while let Some(came) = stream.try_next().await? {
                match came {
                    Either::Left(done) => found.changed += done.rows_affected(),
                    Either::Right(_) if found.rows.len() == ROWS_MAX => return Err(too_many()),
                    Either::Right(row) => found.rows.push(texts(&row)?),
                }
            }
            Ok(found)
        }

        async fn $as_it_stands(
            connection: &mut $connection,
            sql: &str,
            limit: usize,
        ) -> Result<ResultSet, sqlx::Error> {
            let mut set = ResultSet::default();
            let mut is_over = false;
            let mut stream = connection.fetch_many(sqlx::raw_sql(AssertSqlSafe(sql.to_owned())));
            while let Some(came) = stream.try_next().await? {
                match came {
                    Either::Left(done) => (set.changed, is_over) = (done.rows_affected(), true),
                    Either::Right(row) => {
                        if std::mem::take(&mut is_over) {
                            set = ResultSet::default();
                        }
                        if set.columns.is_empty() {
                            let names = row.columns().iter().map(|column| column.name().to_owned());
                            set.columns = names.collect();
                        }
                        if set.rows.len() < limit {
                            set.rows.push(texts(&row)?);
                        }
                    }
                }
            }
            Ok(set)
        }
    };
}

asks!(ask_mysql, stand_mysql, MySql, MySqlConnection, MySqlRow);
asks!(ask_postgres, stand_postgres, Postgres, PgConnection, PgRow);
asks!(ask_sqlite, stand_sqlite, Sqlite, SqliteConnection, SqliteRow);

fn too_many() -> sqlx::Error {
    sqlx::Error::InvalidArgument(format!("there are more than {ROWS_MAX} rows"))
}

/// A row whose values can be had as text.
trait Texts {
    fn text(&self, at: usize) -> Result<Option<String>, sqlx::Error>;
    fn width(&self) -> usize;
}

fn texts(row: &impl Texts) -> Result<Vec<Option<String>>, sqlx::Error> {
    (0..row.width()).map(|at| row.text(at)).collect()
}

impl Texts for MySqlRow {
    fn text(&self, at: usize) -> Result<Option<String>, sqlx::Error> {
        let value = self.try_get_raw(at)?;
        if value.is_null() {
            return Ok(None);
        }
        let bytes = <&[u8] as sqlx::Decode<'_, MySql>>::decode(value).map_err(sqlx::Error::Decode)?;
        Ok(Some(String::from_utf8_lossy(bytes).into_owned()))
    }
    fn width(&self) -> usize {
        self.len()
    }
}

impl Texts for PgRow {
    fn text(&self, at: usize) -> Result<Option<String>, sqlx::Error> {
        let value = self.try_get_raw(at)?;
        if value.is_null() {
            return Ok(None);
        }
        let bytes = value.as_bytes().map_err(sqlx::Error::Decode)?;
        Ok(Some(String::from_utf8_lossy(bytes).into_owned()))
    }
    fn width(&self) -> usize {
        self.len()
    }
}

impl Texts for SqliteRow {
    fn text(&self, at: usize) -> Result<Option<String>, sqlx::Error> {
        let value = self.try_get_raw(at)?;
        if value.is_null() {
            return Ok(None);
        }
        let bytes = <Vec<u8> as sqlx::Decode<'_, Sqlite>>::decode(value).map_err(sqlx::Error::Decode)?;
        Ok(Some(String::from_utf8_lossy(&bytes).into_owned()))
    }
    fn width(&self) -> usize {
        self.len()
    }
}

impl Link {
    /// Connects, and says what each connection begins with.
    pub(crate) async fn open(
        target: &Target,
        at_connect: &[String],
        within: Duration,
    ) -> Result<Self, Trouble> {
        let mut link = match target {
            Target::Odbc(source) => Self::Odbc(Program::connect(source, within).await?),
            _ => Self::connect(target).await.map_err(Trouble::of)?,
        };
        for sql in at_connect {
            link.stand(sql, 0).await?;
        }
        Ok(link)
    }
    async fn connect(target: &Target) -> Result<Self, sqlx::Error> {
        Ok(match target {
            Target::Mysql(server) => Self::Mysql(mysql(server).connect().await?),
            Target::Postgres(server) => Self::Postgres(postgres(server).connect().await?),
            Target::Sqlite { path } => {
                let options = SqliteConnectOptions::new().filename(path).create_if_missing(true);
                // Whoever has a query's time waits in the pool for it, so the library gives up before.
                let options = options.busy_timeout(Duration::from_secs(2));
                let options = options.statement_cache_capacity(PREPARED_MAX).disable_statement_logging();
                Self::Sqlite(options.connect().await?)
            }
            Target::Odbc(_) => return Err(sqlx::Error::Configuration("a program speaks ODBC".into())),
        })
    }
    const fn dialect(&self) -> Dialect {
        match self {
            Self::Mysql(_) => Dialect::Mysql,
            Self::Postgres(_) => Dialect::Postgres(Marks::Numbered),
            Self::Sqlite(_) => Dialect::Sqlite,
            Self::Odbc(program) => program.dialect,
        }
    }
    /// What the database calls itself, when it was not known before.
    pub(crate) fn dbms(&self) -> Option<&str> {
        match self {
            Self::Odbc(program) => Some(&program.dbms),
            Self::Mysql(_) | Self::Postgres(_) | Self::Sqlite(_) => None,
        }
    }
    async fn ask(&mut self, statement: &Statement) -> Result<Found, Trouble> {
        let found = match self {
            Self::Mysql(connection) => ask_mysql(connection, statement).await,
            Self::Postgres(connection) => ask_postgres(connection, statement).await,
            Self::Sqlite(connection) => ask_sqlite(connection, statement).await,
            Self::Odbc(program) => return program.ask(statement).await,
        };
        found.map_err(Trouble::of)
    }
    async fn stand(&mut self, sql: &str, limit: usize) -> Result<ResultSet, Trouble> {
        let set = match self {
            Self::Mysql(connection) => stand_mysql(connection, sql, limit).await,
            Self::Postgres(connection) => stand_postgres(connection, sql, limit).await,
            Self::Sqlite(connection) => stand_sqlite(connection, sql, limit).await,
            Self::Odbc(program) => return program.stand(sql, limit).await,
        };
        set.map_err(Trouble::of)
    }

    /// Answers a query. What is remembered of tables may have become wrong: when the database refuses, the tables are looked
    /// at again and it is asked once more.
    pub(crate) async fn perform(&mut self, tables: &Tables, query: &Query) -> Result<Answer, Trouble> {
        let known = lock(tables).len();
        let answer = self.perform_once(tables, query).await;
        match answer {
            Err(Trouble::Stale(_) | Trouble::Unaskable(_))
                if known > 0 && !matches!(query, Query::Raw { .. }) =>
            {
                lock(tables).clear();
                self.perform_once(tables, query).await
            }
            answer => answer,
        }
    }
    async fn perform_once(&mut self, tables: &Tables, query: &Query) -> Result<Answer, Trouble> {
        match query {
            Query::Load(load) => self.load(tables, load).await.map(Answer::Rows),
            Query::Raw { sql, limit } => self.stand(sql, rows_max(*limit)).await.map(Answer::Set),
            Query::Within { .. } | Query::End { .. } => {
                Err(Trouble::Unaskable("a transaction has a connection of its own".to_owned()))
            }
            Query::Columns { table } => {
                let found = self.look_at(table).await?;
                let names =
                    found.map(|table| table.columns.iter().map(|column| column.name.to_string()).collect());
                Ok(Answer::Columns(names.unwrap_or_default()))
            }
            Query::Batch(writes) => {
                if writes.len() > Query::BATCH_MAX {
                    return Err(Trouble::Unaskable(format!(
                        "a batch has {} writes at most",
                        Query::BATCH_MAX
                    )));
                }
                self.bound(Bound::Begin).await?;
                let mut changed = Vec::with_capacity(writes.len());
                for write in writes {
                    match self.write(tables, write).await {
                        Ok(count) => changed.push(count),
                        Err(trouble) => {
                            if trouble.leaves_link() {
                                self.bound(Bound::Rollback).await?;
                            }
                            return Err(trouble);
                        }
                    }
                }
                self.bound(Bound::Commit).await?;
                Ok(Answer::Batch(changed))
            }
            Query::Store { .. }
            | Query::Record { .. }
            | Query::Update { .. }
            | Query::Rewrite(_)
            | Query::Put { .. }
            | Query::Destroy { .. } => self.write(tables, query).await.map(Answer::Changed),
        }
    }
    /// Where a transaction begins or ends.
    async fn bound(&mut self, bound: Bound) -> Result<(), Trouble> {
        let sql = match (&mut *self, bound) {
            (Self::Odbc(program), bound) => return program.bound(bound).await,
            // Two that have begun, and write then, would find each other in the way.
            (Self::Sqlite(_), Bound::Begin) => "BEGIN IMMEDIATE",
            (_, Bound::Begin) => "BEGIN",
            (_, Bound::Commit) => "COMMIT",
            (_, Bound::Rollback) => "ROLLBACK",
        };
        self.stand(sql, 0).await.map(|_| ())
    }
    /// Begins a transaction that statements of a site follow in.
    pub(crate) async fn begin(&mut self, isolation: Isolation) -> Result<(), Trouble> {
        let level = format!("SET TRANSACTION ISOLATION LEVEL {}", isolation.sql());
        match self.dialect() {
            // It knows no other than serializable.
            Dialect::Sqlite => self.bound(Bound::Begin).await,
            // There it holds for the next transaction, elsewhere for the one that has begun.
            Dialect::Mysql => {
                self.stand(&level, 0).await?;
                self.bound(Bound::Begin).await
            }
            Dialect::Postgres(_) | Dialect::Other { .. } => {
                self.bound(Bound::Begin).await?;
                self.stand(&level, 0).await.map(|_| ())
            }
        }
    }
    /// Ends it.
    pub(crate) async fn end(&mut self, commit: bool) -> Result<(), Trouble> {
        self.bound(if commit { Bound::Commit } else { Bound::Rollback }).await
    }
    /// A statement within it.
    pub(crate) async fn within(&mut self, sql: &str, limit: Option<u32>) -> Result<Answer, Trouble> {
        self.stand(sql, rows_max(limit)).await.map(Answer::Set)
    }
    /// Whether the database may have let go of a transaction with this, so that what follows would stand for itself.
    pub(crate) const fn spoils(&self, trouble: &Trouble) -> bool {
        match self.dialect() {
            Dialect::Postgres(_) => true,
            Dialect::Sqlite => matches!(trouble, Trouble::Locked(_) | Trouble::Refused(_)),
            Dialect::Mysql | Dialect::Other { .. } => matches!(trouble, Trouble::Locked(_)),
        }
    }
    async fn write(&mut self, tables: &Tables, query: &Query) -> Result<u64, Trouble> {
        let dialect = self.dialect();
        let unaskable = Trouble::Unaskable;
        match query {
            Query::Store { table, sets } => {
                let table = self.table(tables, table).await?;
                let statement = dialect.store(&table, sets).map_err(unaskable)?;
                Ok(self.ask(&statement).await?.changed)
            }
            Query::Record { table, values } => {
                let table = self.table(tables, table).await?;
                let statement = dialect.record(&table, values).map_err(unaskable)?;
                Ok(self.ask(&statement).await?.changed)
            }
            Query::Update { table, keys, sets } => {
                let table = self.table(tables, table).await?;
                self.update(&table, keys, sets).await
            }
            Query::Rewrite(rewrite) => {
                let table = self.table(tables, &rewrite.table).await?;
                self.rewrite(&table, rewrite).await
            }
            Query::Put { table, keys, sets } => {
                let table = self.table(tables, table).await?;
                let changed = self.update(&table, keys, sets).await?;
                if changed > 0 {
                    return Ok(changed);
                }
                let keys = keys.iter().map(|(column, value)| (column.clone(), Some(value.clone())));
                let all: Vec<_> = sets.iter().cloned().chain(keys).collect();
                let statement = dialect.store(&table, &all).map_err(unaskable)?;
                Ok(self.ask(&statement).await?.changed)
            }
            Query::Destroy { table, keys } => {
                let table = self.table(tables, table).await?;
                let statement = dialect.destroy(&table, keys).map_err(unaskable)?;
                Ok(self.ask(&statement).await?.changed)
            }
            Query::Load(_)
            | Query::Raw { .. }
            | Query::Within { .. }
            | Query::End { .. }
            | Query::Batch(_)
            | Query::Columns { .. } => Err(unaskable("a batch has only writes".to_owned())),
        }
    }
    /// How many rows were found to change.
    async fn update(
        &mut self,
        table: &Table,
        keys: &[(String, String)],
        sets: &[(String, Option<String>)],
    ) -> Result<u64, Trouble> {
        let dialect = self.dialect();
        let Some(statement) = dialect.update(table, keys, sets).map_err(Trouble::Unaskable)? else {
            return Ok(0);
        };
        let changed = self.ask(&statement).await?.changed;
        if changed > 0 || !matches!(self, Self::Odbc(_)) || dialect != Dialect::Mysql {
            return Ok(changed);
        }
        // Through ODBC MySQL counts the rows that are others than before, unless the source has option 2.
        let statement = dialect.count(table, keys).map_err(Trouble::Unaskable)?;
        let found = self.ask(&statement).await?.rows;
        let count = found.first().and_then(|row| row.first()).and_then(Option::as_ref);
        Ok(count.and_then(|count| count.parse().ok()).unwrap_or(0))
    }
    /// How many rows were found to change. The numbers of rows of its statements are powers of two, so that few are prepared.
    async fn rewrite(
        &mut self,
        table: &Table,
        Rewrite { key, columns, rows, .. }: &Rewrite,
    ) -> Result<u64, Trouble> {
        let (dialect, mut rows) = (self.dialect(), rows.as_slice());
        let most = if dialect.is_known() { REWRITTEN_MAX } else { 1 };
        let mut changed = 0;
        while let Some(together) = rows.len().checked_ilog2().map(|log| most.min(1 << log)) {
            let (now, later) = rows.split_at(together);
            rows = later;
            changed += match now {
                [(row, values)] => {
                    let keys = [(key.clone(), row.clone())];
                    let sets: Vec<_> = columns.iter().cloned().zip(values.iter().cloned()).collect();
                    self.update(table, &keys, &sets).await?
                }
                many => match dialect.rewrite(table, key, columns, many).map_err(Trouble::Unaskable)? {
                    Some(statement) => self.ask(&statement).await?.changed,
                    None => 0,
                },
            };
        }
        Ok(changed)
    }
    async fn load(&mut self, tables: &Tables, load: &Load) -> Result<Vec<Row>, Trouble> {
        let table = self.table(tables, &load.table).await?;
        let statement = self.dialect().load(&table, load).map_err(Trouble::Unaskable)?;
        let found = self.ask(&statement).await?;
        Ok(found.rows.into_iter().map(|values| row(&table, values)).collect())
    }
    /// The columns of a table, asked for once.
    async fn table(&mut self, tables: &Tables, name: &str) -> Result<Arc<Table>, Trouble> {
        if let Some(table) = lock(tables).get(name) {
            return Ok(table.clone());
        }
        let table = self.look_at(name).await?;
        let none = || Trouble::Refused(format!("there is no table '{name}', or no right to see it"));
        let table = Arc::new(table.ok_or_else(none)?);
        let mut known = lock(tables);
        if known.len() >= TABLES_MAX {
            known.clear();
        }
        known.insert(name.to_owned(), table.clone());
        Ok(table)
    }
    async fn look_at(&mut self, name: &str) -> Result<Option<Table>, Trouble> {
        let dialect = self.dialect();
        if let Self::Odbc(program) = self
            && !matches!(dialect, Dialect::Postgres(_))
        {
            return program.look_at(name).await;
        }
        let statement = dialect.columns_of(name).map_err(Trouble::Unaskable)?;
        let found = self.ask(&statement).await?;
        dialect.table(name, found.rows).map_err(Trouble::Unaskable)
    }
}

/// A row of what a table's columns hold.
fn row(table: &Table, values: Vec<Option<String>>) -> Row {
    let mut row = Row::default();
    for (column, value) in table.columns.iter().zip(values) {
        if let Some(value) = value {
            row.push(column.name.clone(), value);
        }
    }
    row
}

/// Rows of an answer that are taken.
fn rows_max(limit: Option<u32>) -> usize {
    limit.map_or(ROWS_MAX, |limit| usize::try_from(limit).unwrap_or(ROWS_MAX).min(ROWS_MAX))
}

fn lock(tables: &Tables) -> std::sync::MutexGuard<'_, BTreeMap<String, Arc<Table>>> {
    // What is in it is whole after every statement, so a panic of another leaves it good.
    tables.lock().unwrap_or_else(PoisonError::into_inner)
}

fn mysql(server: &Server) -> MySqlConnectOptions {
    let mut options = MySqlConnectOptions::new()
        .username(&server.user)
        .database(&server.database)
        .statement_cache_capacity(PREPARED_MAX)
        // The site's own: what it has set for its tables holds.
        .timezone(None)
        .pipes_as_concat(false)
        .no_engine_substitution(false)
        .ssl_mode(match server.tls {
            Tls::Never => MySqlSslMode::Disabled,
            Tls::Required => MySqlSslMode::Required,
            Tls::Verified => MySqlSslMode::VerifyIdentity,
        });
    options = match &server.transport {
        Transport::Tcp { host, port } => options.host(host).port(*port),
        Transport::Socket { path, .. } => options.socket(path),
    };
    if !server.password.is_empty() {
        options = options.password(&server.password);
    }
    options.disable_statement_logging()
}

fn postgres(server: &Server) -> PgConnectOptions {
    let mut options = PgConnectOptions::new_without_pgpass()
        .username(&server.user)
        .database(&server.database)
        .application_name("strowger")
        .statement_cache_capacity(PREPARED_MAX)
        .ssl_mode(match server.tls {
            Tls::Never => PgSslMode::Disable,
            Tls::Required => PgSslMode::Require,
            Tls::Verified => PgSslMode::VerifyFull,
        });
    options = match &server.transport {
        Transport::Tcp { host, port } => options.host(host).port(*port),
        Transport::Socket { path, port } => options.socket(path).port(*port),
    };
    if !server.password.is_empty() {
        options = options.password(&server.password);
    }
    options.disable_statement_logging()
}
