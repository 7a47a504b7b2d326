//! One request after the other, until nobody asks any more.

use std::collections::HashMap;
use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;

use odbc::{Frames, ROWS_BYTES, Reply, Request, VALUE_BYTES_MAX, VALUES_MAX, Values};
use odbc_api::handles::StatementImpl;
use odbc_api::{
    Connection, ConnectionOptions, Cursor, Environment, Error, IntoParameter as _, Prepared,
    ResultSetMetadata as _, escape_attribute_value,
};

/// Statements that are kept prepared.
const PREPARED_MAX: usize = 256;
/// A buffer for values that has grown larger is not kept.
const BUFFER_BYTES: usize = 16 * 1024;

/// Why the process ends before its time.
type End = String;

/// Why a request came to nothing.
enum Trouble {
    /// The driver, or the driver manager, said so.
    Driver(Error),
    /// It cannot be passed on.
    Unfit(String),
    /// Nobody listens.
    Over(End),
}

impl From<Error> for Trouble {
    fn from(error: Error) -> Self {
        Self::Driver(error)
    }
}

/// The other end.
struct Asker {
    stream: UnixStream,
    frames: Frames,
    out: Vec<u8>,
}

impl Asker {
    /// The next request; `None` when there will be none.
    fn next(&mut self) -> Result<Option<Request>, End> {
        let mut buffer = [0; 16 * 1024];
        loop {
            if let Some(frame) = self.frames.frame().map_err(|flaw| flaw.to_string())? {
                return Request::read(frame).map(Some).map_err(|flaw| flaw.to_string());
            }
            match self.stream.read(&mut buffer) {
                Ok(0) => return Ok(None),
                Ok(bytes) => self.frames.push(buffer.get(..bytes).unwrap_or_default()),
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error.to_string()),
            }
        }
    }
    /// Says something, together with what comes behind it.
    fn say(&mut self, reply: &Reply) -> Result<(), Trouble> {
        reply.write(&mut self.out).map_err(|flaw| Trouble::Unfit(flaw.to_string()))
    }
    fn send(&mut self) -> Result<(), End> {
        let sent = self.stream.write_all(&self.out).map_err(|error| error.to_string());
        self.out.clear();
        self.out.shrink_to(2 * ROWS_BYTES);
        sent
    }
}

/// Connects as the first request says, and answers what follows it.
pub(crate) fn serve(stream: UnixStream) -> Result<(), End> {
    let mut asker = Asker { stream, frames: Frames::default(), out: Vec::new() };
    let Some(first) = asker.next()? else { return Ok(()) };
    let Request::Connect { dsn, user, password, within } = first else {
        return Err("the first request does not say where to".to_owned());
    };
    let environment = Environment::new().map_err(|error| error.to_string());
    let environment = match environment {
        Ok(environment) => environment,
        Err(why) => return refuse(&mut asker, &Trouble::Unfit(why), false),
    };
    let connection = match connect(&environment, &dsn, &user, &password, within) {
        Ok(connection) => connection,
        Err(error) => return refuse(&mut asker, &Trouble::Driver(error), true),
    };
    let dbms = connection.database_management_system_name().unwrap_or_default();
    let quote = connection.identifier_quote_char().ok().flatten();
    if let Err(trouble) = asker.say(&Reply::Connected { dbms, quote }) {
        return refuse(&mut asker, &trouble, true);
    }
    asker.send()?;
    let mut session = Session { connection: &connection, prepared: HashMap::new(), buffer: Vec::new() };
    while let Some(request) = asker.next()? {
        match session.answer(&mut asker, request) {
            Ok(changed) => {
                // Two numbers are no long frame.
                let _fits = asker.say(&Reply::Done { changed });
                asker.send()?;
            }
            Err(Trouble::Over(why)) => return Err(why),
            Err(trouble) => {
                let is_gone = matches!(trouble, Trouble::Driver(_)) && connection.is_dead().unwrap_or(false);
                refuse(&mut asker, &trouble, is_gone)?;
            }
        }
    }
    Ok(())
}

fn connect<'e>(
    environment: &'e Environment,
    dsn: &str,
    user: &str,
    password: &str,
    within: u32,
) -> Result<Connection<'e>, Error> {
    let mut string =
        if dsn.contains('=') { dsn.to_owned() } else { format!("DSN={}", escape_attribute_value(dsn)) };
    for (name, value) in [("UID", user), ("PWD", password)] {
        if !value.is_empty() {
            string.push_str(&format!(";{name}={}", escape_attribute_value(value)));
        }
    }
    let options = ConnectionOptions { login_timeout_sec: Some(within), ..ConnectionOptions::default() };
    environment.connect_with_connection_string(&string, options)
}

/// Says why there is no answer.
fn refuse(asker: &mut Asker, trouble: &Trouble, is_gone: bool) -> Result<(), End> {
    let (state, native, words) = match trouble {
        Trouble::Driver(error) => said(error),
        Trouble::Unfit(why) => ("HY000".to_owned(), 0, why.clone()),
        Trouble::Over(why) => return Err(why.clone()),
    };
    // Words of a driver are some lines.
    let words = words.chars().filter(|symbol| !symbol.is_control()).take(2_000).collect();
    let _fits = asker.say(&Reply::Failed { state, native, words, is_gone });
    asker.send()
}

/// The code that all drivers share, the database's own, and words.
fn said(error: &Error) -> (String, i32, String) {
    let record = match error {
        Error::Diagnostics { record, .. }
        | Error::UnsupportedOdbcApiVersion(record)
        | Error::InvalidRowArraySize { record, .. }
        | Error::UnableToRepresentNull(record)
        | Error::OracleOdbcDriverDoesNotSupport64Bit(record) => record,
        other => return ("HY000".to_owned(), 0, other.to_string()),
    };
    let state = String::from_utf8_lossy(&record.state.0).into_owned();
    let words = String::from_utf8_lossy(&record.message).into_owned();
    (state, record.native_error, words)
}

/// The connection, and what is kept of it.
struct Session<'c, 'e> {
    connection: &'c Connection<'e>,
    prepared: HashMap<String, Prepared<StatementImpl<'c>>>,
    buffer: Vec<u8>,
}

impl Session<'_, '_> {
    /// Says what was found. How many rows were changed.
    fn answer(&mut self, asker: &mut Asker, request: Request) -> Result<u64, Trouble> {
        match request {
            Request::Ask { sql, values, limit } => self.ask(asker, sql, &values, limit),
            Request::Stand { sql, limit } => self.stand(asker, &sql, limit),
            Request::Columns { schema, table } => self.columns(asker, &schema, &table),
            Request::Begin => self.connection.set_autocommit(false).map(|()| 0).map_err(Trouble::Driver),
            Request::Commit => {
                self.connection.commit()?;
                self.connection.set_autocommit(true)?;
                Ok(0)
            }
            Request::Rollback => {
                self.connection.rollback()?;
                self.connection.set_autocommit(true)?;
                Ok(0)
            }
            Request::Connect { .. } => Err(Trouble::Unfit("there is a connection already".to_owned())),
        }
    }
    fn ask(&mut self, asker: &mut Asker, sql: String, values: &Values, limit: u32) -> Result<u64, Trouble> {
        let mut statement = match self.prepared.remove(&sql) {
            Some(statement) => statement,
            None => self.connection.prepare(&sql)?,
        };
        let bound: Vec<_> = values.iter().map(|value| value.as_deref().into_parameter()).collect();
        let has_rows = found(asker, &mut self.buffer, statement.execute(bound.as_slice())?, limit)?;
        let changed = if has_rows { 0 } else { count(statement.row_count()?) };
        // One that failed is prepared anew: the driver may have kept what does not hold any more.
        if self.prepared.len() >= PREPARED_MAX {
            self.prepared.clear();
        }
        self.prepared.insert(sql, statement);
        Ok(changed)
    }
    fn stand(&mut self, asker: &mut Asker, sql: &str, limit: u32) -> Result<u64, Trouble> {
        let mut statement = self.connection.preallocate()?;
        let cursor = match statement.execute(sql, ())? {
            Some(mut cursor) => {
                let names = cursor.column_names()?.take(VALUES_MAX).collect::<Result<Vec<_>, _>>()?;
                asker.say(&Reply::Names(names))?;
                Some(cursor)
            }
            None => None,
        };
        let has_rows = found(asker, &mut self.buffer, cursor, limit)?;
        Ok(if has_rows { 0 } else { count(statement.row_count()?) })
    }
    fn columns(&mut self, asker: &mut Asker, schema: &str, table: &str) -> Result<u64, Trouble> {
        // What a database calls the folder of its tables is the one or the other, and some refuse the wrong one.
        let found = match self.told_columns(schema, "", table) {
            Ok(found) if !found.is_empty() || schema.is_empty() => found,
            Err(trouble) if schema.is_empty() => return Err(trouble),
            Ok(_) | Err(_) => self.told_columns("", schema, table)?,
        };
        // The name was a pattern, in which `_` is any letter.
        let is_exact = found.iter().any(|(name, _)| name == table);
        let is_meant = |name: &str| if is_exact { name == table } else { name.eq_ignore_ascii_case(table) };
        let meant = found.into_iter().filter(|(name, _)| is_meant(name)).map(|(_, row)| row);
        asker.say(&Reply::Rows(meant.take(VALUES_MAX).collect()))?;
        Ok(0)
    }
    fn told_columns(&self, catalogue: &str, schema: &str, table: &str) -> Result<Vec<Told>, Trouble> {
        let text = |field: Option<&str>| field.map(str::to_owned);
        let mut found = Vec::new();
        for row in self.connection.columns(catalogue, schema, table, "%")? {
            let row = row?;
            let name = row.table.as_str().ok().flatten().unwrap_or_default().to_owned();
            let column = row.column_name.as_str().ok().flatten();
            let kind = row.type_name.as_str().ok().flatten();
            found.push((name, vec![text(column), text(kind), Some(row.data_type.to_string())]));
        }
        Ok(found)
    }
}

/// What SQLColumns says: the table's name, and name, type, and number of the type of its column.
type Told = (String, Values);

fn count(rows: Option<usize>) -> u64 {
    rows.map_or(0, |rows| rows as u64)
}

/// Says the rows, if the statement has any by its nature; whether it has.
fn found(
    asker: &mut Asker,
    buffer: &mut Vec<u8>,
    cursor: Option<impl Cursor>,
    limit: u32,
) -> Result<bool, Trouble> {
    let Some(cursor) = cursor else { return Ok(false) };
    rows(asker, buffer, cursor, limit)?;
    Ok(true)
}

/// Says the rows of a cursor, as text.
fn rows(asker: &mut Asker, buffer: &mut Vec<u8>, mut cursor: impl Cursor, limit: u32) -> Result<(), Trouble> {
    let columns = u16::try_from(cursor.num_result_cols()?).unwrap_or(0);
    if usize::from(columns) > VALUES_MAX {
        return Err(Trouble::Unfit(format!("{columns} columns, of at most {VALUES_MAX}")));
    }
    let (mut found, mut bytes) = (Vec::new(), 0);
    for _ in 0..limit {
        let Some(mut row) = cursor.next_row()? else { break };
        let mut values = Vec::with_capacity(columns.into());
        for column in 1..=columns {
            if buffer.capacity() > BUFFER_BYTES {
                *buffer = Vec::new();
            }
            if !row.get_text(column, buffer)? {
                values.push(None);
                continue;
            }
            if buffer.len() > VALUE_BYTES_MAX {
                let why = format!("a value of {} bytes, of at most {VALUE_BYTES_MAX}", buffer.len());
                return Err(Trouble::Unfit(why));
            }
            bytes += buffer.len() + 8;
            values.push(Some(String::from_utf8_lossy(buffer).into_owned()));
        }
        found.push(values);
        if bytes >= ROWS_BYTES {
            asker.say(&Reply::Rows(std::mem::take(&mut found)))?;
            asker.send().map_err(Trouble::Over)?;
            bytes = 0;
        }
    }
    if !found.is_empty() {
        asker.say(&Reply::Rows(found))?;
    }
    Ok(())
}
