//! A connection through ODBC: the program that speaks it, and what it is told.
//!
//! Each connection has a program of its own, so that a driver that crashes, hangs or fills its memory takes nothing but its
//! own question with it. Letting go of one ends it at once, whatever it is doing.

use std::io::Read as _;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream as Pair;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus};
use std::time::Duration;

use odbc::{Frames, Reply, Request};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixStream;

use crate::link::{Bound, Found, ROWS_MAX, Trouble};
use crate::query::ResultSet;
use crate::settings::Source;
use crate::sql::{Dialect, Marks, Statement, Table};

/// What it is called.
const PROGRAM: &str = "strowger-odbc";
/// Bytes of one answer: rows beyond that come to nothing, so that no table fills the memory.
const ANSWER_BYTES_MAX: usize = 512 * 1024 * 1024;
/// What is read at a time.
const READ_BYTES: usize = 64 * 1024;
/// Of a database's name for itself so much is shown.
const DBMS_CHARS: usize = 40;
/// Of what it prints, the last bytes are told.
const SAID_BYTES: usize = 300;

/// One connection.
pub(crate) struct Program {
    process: Process,
    stream: UnixStream,
    frames: Frames,
    /// What the database calls itself.
    pub(crate) dbms: String,
    /// What it understands.
    pub(crate) dialect: Dialect,
    out: Vec<u8>,
    buffer: Box<[u8]>,
}

/// The process, which ends with this.
struct Process {
    child: Option<Child>,
    /// The other end of its standard output and error.
    printed: Pair,
}

/// Everything that was said to one request.
#[derive(Default)]
struct Said {
    names: Vec<String>,
    found: Found,
}

impl Program {
    /// Starts it and has it connect.
    pub(crate) async fn connect(source: &Source, within: Duration) -> Result<Self, Trouble> {
        let broken = |error: std::io::Error| Trouble::Broken(error.to_string());
        let (process, stream) = Process::start(source)?;
        stream.set_nonblocking(true).map_err(broken)?;
        let mut program = Self {
            process,
            stream: UnixStream::from_std(stream).map_err(broken)?,
            frames: Frames::default(),
            dbms: String::new(),
            dialect: Dialect::Other { quote: None },
            out: Vec::new(),
            buffer: vec![0; READ_BYTES].into(),
        };
        let Source { dsn, user, password, .. } = source.clone();
        // The driver is to give up before its process is ended: it knows why.
        let within = u32::try_from(within.as_secs().saturating_sub(1).max(1)).unwrap_or(u32::MAX);
        program.tell(&Request::Connect { dsn, user, password, within }).await?;
        match program.hear().await? {
            Reply::Connected { dbms, quote } => {
                program.dialect = dialect(&dbms, quote);
                program.dbms = dbms.chars().filter(|c| !c.is_control()).take(DBMS_CHARS).collect();
            }
            Reply::Failed { words, .. } => return Err(Trouble::Refused(words)),
            other => return Err(nonsense(&format!("{other:?} to the first request"))),
        }
        Ok(program)
    }
    /// Has a statement prepared, bound and executed.
    pub(crate) async fn ask(&mut self, statement: &Statement) -> Result<Found, Trouble> {
        let most = u32::try_from(ROWS_MAX + 1).unwrap_or(u32::MAX);
        let limit = statement.limit.unwrap_or(most).min(most);
        let (sql, values) = (statement.sql.clone(), statement.values.clone());
        let found = self.exchange(&Request::Ask { sql, values, limit }).await?.found;
        if found.rows.len() > ROWS_MAX {
            return Err(Trouble::Unaskable(format!("there are more than {ROWS_MAX} rows")));
        }
        Ok(found)
    }
    /// Has a statement executed as it stands.
    pub(crate) async fn stand(&mut self, sql: &str, limit: usize) -> Result<ResultSet, Trouble> {
        let limit = u32::try_from(limit.min(ROWS_MAX)).unwrap_or(u32::MAX);
        let Said { names, found } = self.exchange(&Request::Stand { sql: sql.to_owned(), limit }).await?;
        // The field's drivers say -1, in one way or the other, where nothing was changed.
        let changed = if found.changed > i64::MAX.cast_unsigned() { 0 } else { found.changed };
        let columns = if found.rows.is_empty() { Vec::new() } else { names };
        Ok(ResultSet { columns, rows: found.rows, changed })
    }
    /// The columns of a table.
    pub(crate) async fn look_at(&mut self, name: &str) -> Result<Option<Table>, Trouble> {
        let (schema, table) = Dialect::split(name).map_err(Trouble::Unaskable)?;
        let (schema, table) = (schema.unwrap_or_default().to_owned(), table.to_owned());
        let found = self.exchange(&Request::Columns { schema, table }).await?.found;
        self.dialect.told_table(name, found.rows).map_err(Trouble::Unaskable)
    }
    /// Begins or ends a transaction.
    pub(crate) async fn bound(&mut self, bound: Bound) -> Result<(), Trouble> {
        let request = match bound {
            Bound::Begin => Request::Begin,
            Bound::Commit => Request::Commit,
            Bound::Rollback => Request::Rollback,
        };
        self.exchange(&request).await.map(|_| ())
    }

    /// Asks, and hears it out.
    async fn exchange(&mut self, request: &Request) -> Result<Said, Trouble> {
        self.tell(request).await?;
        let (mut said, mut bytes) = (Said::default(), 0);
        loop {
            match self.hear().await? {
                Reply::Names(names) => said.names = names,
                Reply::Rows(rows) => {
                    bytes += rows.iter().map(|row| held(row)).sum::<usize>();
                    if bytes > ANSWER_BYTES_MAX || said.found.rows.len() > ROWS_MAX {
                        return Err(nonsense("an answer without an end"));
                    }
                    said.found.rows.extend(rows);
                }
                Reply::Done { changed } => {
                    said.found.changed = changed;
                    return Ok(said);
                }
                Reply::Failed { state, native, words, is_gone } => {
                    return Err(trouble(&state, native, words, is_gone));
                }
                Reply::Connected { .. } => return Err(nonsense("connected twice")),
            }
        }
    }
    async fn tell(&mut self, request: &Request) -> Result<(), Trouble> {
        self.out.clear();
        request.write(&mut self.out).map_err(|flaw| Trouble::Unaskable(flaw.to_string()))?;
        let sent = self.stream.write_all(&self.out).await;
        self.out.clear();
        self.out.shrink_to(READ_BYTES);
        sent.map_err(|_| self.process.ended())
    }
    async fn hear(&mut self) -> Result<Reply, Trouble> {
        loop {
            if let Some(frame) = self.frames.frame().map_err(|flaw| nonsense(&flaw.to_string()))? {
                return Reply::read(frame).map_err(|flaw| nonsense(&flaw.to_string()));
            }
            match self.stream.read(&mut self.buffer).await {
                Ok(0) | Err(_) => return Err(self.process.ended()),
                Ok(bytes) => self.frames.push(self.buffer.get(..bytes).unwrap_or_default()),
            }
        }
    }
}

/// Bytes that a row holds in memory.
fn held(row: &[Option<String>]) -> usize {
    row.iter().map(|value| size_of::<Option<String>>() + value.as_ref().map_or(0, String::len)).sum()
}

fn nonsense(why: &str) -> Trouble {
    Trouble::Malformed(format!("{PROGRAM}: {why}"))
}

/// What the database understands, by its name for itself.
fn dialect(dbms: &str, quote: Option<char>) -> Dialect {
    let dbms = dbms.to_ascii_lowercase();
    let is = |word: &str| dbms.contains(word);
    match () {
        () if is("mysql") || is("mariadb") => Dialect::Mysql,
        () if is("postgres") => Dialect::Postgres(Marks::Question),
        () if is("sqlite") => Dialect::Sqlite,
        () => Dialect::Other { quote },
    }
}

/// What a driver means.
fn trouble(state: &str, native: i32, words: String, is_gone: bool) -> Trouble {
    // Gone away, lost, killed and shut down (MySQL's own numbers): drivers give them any state.
    let is_lost = matches!(native, 1053 | 1927 | 2006 | 2013 | 2055) && !words.contains("SQLite");
    match Trouble::told(state, words.clone()) {
        _ if is_gone || is_lost || state.starts_with("08") => Trouble::Broken(words),
        Trouble::Refused(words) if matches!(state, "HYT00" | "HYT01") => Trouble::Locked(words),
        // Lock wait timeout and deadlock (MySQL); no such table (ODBC 2), and what SQLite says where there is no state.
        Trouble::Refused(words) if matches!(native, 1205 | 1213) => Trouble::Locked(words),
        Trouble::Refused(words) if matches!(state, "S0002" | "S0022") => Trouble::Stale(words),
        Trouble::Refused(words) if matches!(state, "HY000" | "S1000" | "") => match native {
            1 | 5 | 6 | 261 | 262 | 517 => Trouble::told(&native.to_string(), words),
            _ => Trouble::Refused(words),
        },
        told => told,
    }
}

impl Process {
    /// Starts the program; the other end of its standard input.
    fn start(source: &Source) -> Result<(Self, Pair), Trouble> {
        let path = source.program.clone().unwrap_or_else(beside);
        let made = || -> std::io::Result<(Self, Pair)> {
            let (ours, theirs) = Pair::pair()?;
            let (printed, prints) = Pair::pair()?;
            printed.set_nonblocking(true)?;
            // What it prints and nobody reads is lost, and holds it up not.
            prints.set_nonblocking(true)?;
            let mut command = Command::new(&path);
            command
                .stdin(OwnedFd::from(theirs))
                .stdout(OwnedFd::from(prints.try_clone()?))
                .stderr(OwnedFd::from(prints))
                .current_dir("/")
                // Drivers take the coding of text from it.
                .env("LC_ALL", "C.UTF-8")
                .envs(source.environment.iter().map(|(name, value)| (name, value)))
                // What a terminal sends us is not for it.
                .process_group(0);
            let child = command.spawn()?;
            Ok((Self { child: Some(child), printed }, ours))
        };
        made().map_err(|error| {
            let path = path.display();
            Trouble::Unaskable(format!(
                "{path} cannot be started: {error}; `make install` puts it there, and native => yes does without it"
            ))
        })
    }
    /// It does not answer any more: collects it, and says how it has ended.
    fn ended(&mut self) -> Trouble {
        let status = self.child.as_mut().and_then(|child| {
            // Its end of the socket is closed, so it is ending or does nothing that anybody waits for.
            let status = child.try_wait().ok().flatten();
            status.or_else(|| child.kill().and_then(|()| child.wait()).ok())
        });
        self.child = None;
        let mut printed = Vec::new();
        // It ends where nothing more is there: the process, all of whose ends are closed, is gone.
        let _all = (&self.printed).take(1024 * 1024).read_to_end(&mut printed);
        let last = printed.get(printed.len().saturating_sub(SAID_BYTES)..).unwrap_or_default();
        let said: String = String::from_utf8_lossy(last).trim().chars().filter(|c| !c.is_control()).collect();
        let mut why = match status {
            Some(status) => format!("the driver of ODBC has ended its program {}", how(status)),
            None => "the program that speaks ODBC has gone".to_owned(),
        };
        if !said.is_empty() {
            why.push_str(": ");
            why.push_str(&said);
        }
        if said.contains("libodbc") {
            why.push_str("; apt-get install unixodbc, or write native => yes in res_odbc.conf");
        }
        Trouble::Ended(why)
    }
}

fn how(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("with status {code}"),
        (None, Some(signal)) => format!("by signal {signal}"),
        (None, None) => "in an unknown way".to_owned(),
    }
}

/// Beside this program; where it is not known, wherever programs are.
fn beside() -> PathBuf {
    let own = std::env::current_exe().ok();
    own.and_then(|own| Some(own.parent()?.join(PROGRAM))).unwrap_or_else(|| PROGRAM.into())
}

impl Drop for Process {
    fn drop(&mut self) {
        let Some(mut child) = self.child.take() else { return };
        let _gone_already = child.kill();
        // A process that reads from a dead disk does not end at once, and nobody is to wait for it.
        let _collected = std::thread::Builder::new().name("odbc-end".to_owned()).spawn(move || child.wait());
    }
}
