//! The databases of the process: opened once, and shared by everybody here who asks them.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::os::fd::BorrowedFd;
use std::rc::Rc;
use std::time::Duration;

use call::Level;
use control::site::{DatabaseLine, DatabaseLines};
use realtime::{
    Answer, Connection, Databases, Failure, Query, Server, Settings, Source, Standing, Target, Ticket,
    Transport, Turned,
};
use store::config::realtime::{Driver, Link, Realtime};

/// Who asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub(crate) enum Asker {
    /// Objects of SIP.
    Sip = 1,
    /// Who calls by IAX2.
    IaxUsers = 2,
    /// Who registers and is called by IAX2.
    IaxPeers = 3,
    /// Where who registers by IAX2 is.
    IaxLeases = 4,
    /// Contacts of SIP, as they are read.
    ContactRows = 5,
    /// The same, as they are written.
    Contacts = 6,
    /// Calls.
    Calls = 7,
    /// Call records.
    Records = 8,
    /// Files that lie in databases whole, and rows that stand beside files.
    Files = 9,
    /// Members of queues, as they are written.
    QueueMembers = 10,
    /// The log of queues.
    QueueLog = 11,
}

/// A handle that every asker has.
pub(crate) type Shared = Rc<RefCell<DatabaseDesk>>;

/// What came of a question, with the asker's number for it.
type Came = (u64, Result<Answer, Failure>);

/// See the module's page.
pub(crate) struct DatabaseDesk {
    databases: Databases,
    /// What came and was not taken yet. Nothing is put down for an asker that has not asked, and what was asked is bounded.
    came: BTreeMap<u8, Vec<Came>>,
    /// Lines for the log that nobody has taken yet.
    lines: Vec<(Level, String)>,
}

impl DatabaseDesk {
    /// Opens the databases that files describe. `None`: they describe none.
    pub(crate) fn open(realtime: &Realtime) -> std::io::Result<Option<Shared>> {
        if realtime.databases.is_empty() {
            return Ok(None);
        }
        let databases = Databases::open(settings(realtime))?;
        Ok(Some(Rc::new(RefCell::new(Self { databases, came: BTreeMap::new(), lines: Vec::new() }))))
    }
    /// A reload describes these.
    pub(crate) fn configure(&mut self, realtime: &Realtime) {
        self.databases.configure(settings(realtime));
    }
    /// Asks. What comes is taken by the asker, with its number. An error: it was not asked, and nothing comes.
    pub(crate) fn submit(
        &mut self,
        name: &str,
        (asker, number): (Asker, u64),
        query: Query,
    ) -> Result<(), Failure> {
        self.databases.submit(name, Ticket { asker: asker as u8, number }, query)
    }
    /// What came for an asker since it last looked.
    pub(crate) fn take(&mut self, asker: Asker) -> Vec<Came> {
        let (mut answers, mut turned) = (Vec::new(), Vec::new());
        self.databases.drain(&mut answers, &mut turned);
        for (ticket, answer) in answers {
            self.came.entry(ticket.asker).or_default().push((ticket.number, answer));
        }
        self.lines.extend(turned.into_iter().filter_map(line));
        self.came.remove(&(asker as u8)).unwrap_or_default()
    }
    /// Something of a database that nobody else tells.
    pub(crate) fn note(&mut self, line: String) {
        self.lines.push((Level::Warning, line));
    }
    /// What is to be told of the databases themselves.
    pub(crate) fn take_lines(&mut self) -> Vec<(Level, String)> {
        std::mem::take(&mut self.lines)
    }
    /// Sleeps until something came, at most this long: for the start, which may wait.
    pub(crate) fn wait(&mut self, within: Duration) {
        self.databases.wait(within);
    }
    /// Readable when something came.
    pub(crate) fn as_fd(&self) -> BorrowedFd<'_> {
        self.databases.as_fd()
    }
}

/// What the log says of a database whose standing has changed.
fn line(Turned { name, standing }: Turned) -> Option<(Level, String)> {
    match standing {
        Standing::Untried => None,
        Standing::Up => Some((Level::Verbose(2), format!("database {name}: connected"))),
        Standing::Down(failure) => {
            Some((Level::Warning, format!("database {failure}; {}", failure.remedy())))
        }
    }
}

impl DatabaseLines for DatabaseDesk {
    fn lines(&self) -> Vec<DatabaseLine> {
        let line = |status: realtime::Status| DatabaseLine {
            standing: match status.standing {
                Standing::Untried => "not asked yet".to_owned(),
                Standing::Up => "up".to_owned(),
                Standing::Down(failure) => format!("down: {failure}"),
            },
            name: status.name,
            driver: status.driver,
            target: status.target,
            open: status.open,
            busy: status.busy,
            lent: status.lent,
            max: status.connections_max,
            waiting: status.waiting,
            answered: status.answered,
            failed: status.failed,
            slow: status.slow,
        };
        self.databases.status().into_iter().map(line).collect()
    }
}

/// What the databases are to the crate that asks them.
fn settings(realtime: &Realtime) -> Settings {
    let mut connections: Vec<Connection> = Vec::new();
    for ((driver, name), of) in &realtime.databases {
        let server = |server: &store::config::realtime::Server| Server {
            transport: match (server.socket.as_str(), server.host.as_str()) {
                ("", "") => Transport::Tcp { host: "localhost".to_owned(), port: server.port },
                ("", host) => Transport::Tcp { host: host.to_owned(), port: server.port },
                (socket, _) => Transport::Socket { path: socket.into(), port: server.port },
            },
            user: server.user.clone(),
            password: server.password.expose().to_owned(),
            database: server.database.clone(),
            tls: realtime::Tls::Never,
        };
        let target = match &of.link {
            Link::Odbc { dsn, user, password, environment } => Target::Odbc(Source {
                dsn: dsn.clone(),
                user: user.clone(),
                password: password.expose().to_owned(),
                environment: environment.clone(),
                program: None,
            }),
            Link::Mysql(of) => Target::Mysql(server(of)),
            Link::Pgsql(of) => Target::Postgres(server(of)),
            Link::Sqlite(path) => Target::Sqlite { path: path.clone() },
        };
        connections.push(Connection {
            connections_max: of.connections,
            at_once: of.pre_connect,
            connect_within: of.connect_timeout,
            negative_cache: of.retry_after,
            transaction_within: of.transaction_timeout,
            slow_query: if of.slow.is_zero() { Duration::MAX } else { of.slow },
            ..Connection::new(connection_name(realtime, *driver, name), target)
        });
    }
    Settings { connections }
}

/// What a connection is called: as its file says, and with the driver before it when another driver's has that name.
pub(crate) fn connection_name(realtime: &Realtime, driver: Driver, name: &str) -> String {
    let first = realtime.databases.keys().find(|(_, other)| other == name);
    match first.is_none_or(|(first, _)| *first == driver) {
        true => name.to_owned(),
        false => format!("{}:{name}", driver.word()),
    }
}
