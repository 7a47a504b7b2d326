//! Which databases there are, and how long they may take.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

/// Connections of one database that are open at once when nothing is said of it.
pub const CONNECTIONS_DEFAULT: u32 = 4;
/// How long connecting may take; the field's default of connect_timeout.
pub const CONNECT_WITHIN: Duration = Duration::from_secs(10);
/// How long a query may take, from when it is handed over.
pub const QUERY_WITHIN: Duration = Duration::from_secs(10);
/// How long a database that cannot be reached is left alone at most; the field's default of negative_connection_cache.
pub const NEGATIVE_CACHE: Duration = Duration::from_secs(300);
/// From when on a query counts as slow; the field's default of slow_query_limit.
pub const SLOW_QUERY: Duration = Duration::from_secs(5);
/// How long a transaction of a call may last when nothing is said of it.
pub const TRANSACTION_WITHIN: Duration = Duration::from_secs(60);
/// Queries of one database that are open at once, waiting ones among them: all phones of a large site at once.
pub const WAITING_DEFAULT: usize = 16_384;

/// All databases.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Settings {
    /// In the order of the files; of two with one name the first holds.
    pub connections: Vec<Connection>,
}

/// One database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Connection {
    /// What other files call it: the class of res_odbc.conf, the section of the driver's file.
    pub name: String,
    /// Where it is.
    pub target: Target,
    /// Connections that are open at once, at most (max_connections).
    pub connections_max: u32,
    /// Connects at the start, not with the first query (pre-connect).
    pub at_once: bool,
    /// How long connecting may take (connect_timeout).
    pub connect_within: Duration,
    /// How long a query may take, from when it is handed over.
    pub query_within: Duration,
    /// How long it is left alone at most when it cannot be reached (negative_connection_cache); tries begin after a second
    /// and come at twice the distance each time.
    pub negative_cache: Duration,
    /// How long a transaction may last from its first statement; then it is rolled back (transaction_timeout).
    pub transaction_within: Duration,
    /// A query that took longer counts as slow (slow_query_limit).
    pub slow_query: Duration,
    /// Queries that are open at once; further ones are turned away.
    pub waiting_max: usize,
    /// Statements that each connection begins with.
    pub at_connect: Vec<String>,
}

impl Connection {
    /// One with the defaults.
    pub fn new(name: impl Into<String>, target: Target) -> Self {
        Self {
            name: name.into(),
            target,
            connections_max: CONNECTIONS_DEFAULT,
            at_once: false,
            connect_within: CONNECT_WITHIN,
            query_within: QUERY_WITHIN,
            negative_cache: NEGATIVE_CACHE,
            transaction_within: TRANSACTION_WITHIN,
            slow_query: SLOW_QUERY,
            waiting_max: WAITING_DEFAULT,
            at_connect: Vec::new(),
        }
    }
}

/// Where a database is, and what speaks to it.
#[derive(Clone, PartialEq, Eq)]
pub enum Target {
    /// MySQL or MariaDB.
    Mysql(Server),
    /// PostgreSQL.
    Postgres(Server),
    /// A file of SQLite.
    Sqlite {
        /// The file; made when it is not there.
        path: PathBuf,
    },
    /// Whatever the driver manager of ODBC knows.
    Odbc(Source),
}

/// A data source of ODBC.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Source {
    /// Name in odbc.ini, or a whole connection string when it has a `=`.
    pub dsn: String,
    /// User; empty: the one of odbc.ini.
    pub user: String,
    /// Password; empty: the one of odbc.ini.
    pub password: String,
    /// Variables that unixODBC and its drivers are to find: `ODBCINI`, `ODBCSYSINI` and those of the drivers.
    pub environment: Vec<(String, String)>,
    /// The program that speaks ODBC; `None`: `strowger-odbc`, beside this one.
    pub program: Option<PathBuf>,
}

/// How a server is reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Transport {
    /// A host, by name or address, and a port.
    Tcp {
        /// The host.
        host: String,
        /// The port.
        port: u16,
    },
    /// A socket in the file system. For PostgreSQL the folder that it is in, with the port that names the file.
    Socket {
        /// The socket, or its folder.
        path: PathBuf,
        /// The port.
        port: u16,
    },
}

/// Whether what goes to a server is encrypted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Tls {
    /// In the clear.
    #[default]
    Never,
    /// Encrypted, whoever it is.
    Required,
    /// Encrypted, and the server has to prove its name.
    Verified,
}

/// A server of MySQL, MariaDB or PostgreSQL.
#[derive(Clone, PartialEq, Eq)]
pub struct Server {
    /// How it is reached.
    pub transport: Transport,
    /// User.
    pub user: String,
    /// Password; empty: none.
    pub password: String,
    /// The database on it.
    pub database: String,
    /// Whether it is encrypted.
    pub tls: Tls,
}

/// What is wrong with a URL of a database.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UrlFlaw {
    /// Not one of the schemes.
    #[error("'{0}' begins with none of mysql://, mariadb://, postgresql://, sqlite: and odbc:")]
    Scheme(String),
    /// No database named.
    #[error("'{0}' names no database: mysql://user:password@host:3306/database")]
    Database(String),
    /// A port that is none.
    #[error("'{0}' is not a port")]
    Port(String),
    /// `%` without two digits, or bytes that are no UTF-8.
    #[error("'{0}' has a % that two hexadecimal digits do not follow")]
    Escape(String),
    /// An option that nobody knows.
    #[error("'{0}' is no option of a database's URL; there are socket and tls (never, required, verified)")]
    Option(String),
}

impl Target {
    /// Reads a URL: `mysql://user:password@host:3306/database`, `mariadb://…`, `postgresql://…`, each with `?socket=/path`
    /// and `?tls=required`; `sqlite:/path/to/file`; `odbc:dsn` or `odbc://user:password@dsn`.
    pub fn from_url(url: &str) -> Result<Self, UrlFlaw> {
        let scheme = || UrlFlaw::Scheme(without_password(url));
        let (kind, rest) = url.split_once(':').ok_or_else(scheme)?;
        let after = rest.strip_prefix("//");
        match (kind, after) {
            ("mysql" | "mariadb", Some(rest)) => Ok(Self::Mysql(Server::parse(url, rest, 3306)?)),
            ("postgres" | "postgresql", Some(rest)) => Ok(Self::Postgres(Server::parse(url, rest, 5432)?)),
            ("sqlite" | "sqlite3", _) => Ok(Self::Sqlite { path: after.unwrap_or(rest).into() }),
            ("odbc", None) => Ok(Self::Odbc(Source { dsn: rest.to_owned(), ..Source::default() })),
            ("odbc", Some(rest)) => {
                let (user, password, dsn) = credentials(rest)?;
                let dsn = dsn.trim_end_matches('/').to_owned();
                Ok(Self::Odbc(Source { dsn, user, password, ..Source::default() }))
            }
            _ => Err(scheme()),
        }
    }
    /// What speaks to it.
    pub const fn driver(&self) -> &'static str {
        match self {
            Self::Mysql(_) => "mysql",
            Self::Postgres(_) => "postgresql",
            Self::Sqlite { .. } => "sqlite",
            Self::Odbc(_) => "odbc",
        }
    }
}

/// Where it is, for people: never with the password.
impl fmt::Display for Target {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Mysql(server) | Self::Postgres(server) => {
                let driver = self.driver();
                match &server.transport {
                    Transport::Tcp { host, port } if host.contains(':') => {
                        write!(out, "{driver}://{}@[{host}]:{port}/{}", server.user, server.database)
                    }
                    Transport::Tcp { host, port } => {
                        write!(out, "{driver}://{}@{host}:{port}/{}", server.user, server.database)
                    }
                    Transport::Socket { path, .. } => {
                        let path = path.display();
                        write!(out, "{driver}://{}@/{}?socket={path}", server.user, server.database)
                    }
                }
            }
            Self::Sqlite { path } => write!(out, "sqlite:{}", path.display()),
            Self::Odbc(source) => write!(out, "odbc:{}", source.shown()),
        }
    }
}

impl fmt::Debug for Target {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, out)
    }
}

impl fmt::Debug for Source {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}@{}", self.user, self.shown())
    }
}

impl Source {
    /// Its name; of a connection string all but passwords.
    fn shown(&self) -> String {
        let is_secret = |part: &&str| {
            let name = part.split('=').next().unwrap_or_default().trim();
            ["pwd", "password"].iter().any(|secret| name.eq_ignore_ascii_case(secret))
        };
        self.dsn.split(';').filter(|part| !is_secret(part)).collect::<Vec<_>>().join(";")
    }
}

impl fmt::Debug for Server {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { transport, user, database, tls, .. } = self;
        write!(out, "{user}@{transport:?}/{database}, tls {tls:?}")
    }
}

impl Server {
    fn parse(url: &str, rest: &str, port: u16) -> Result<Self, UrlFlaw> {
        let (rest, options) = rest.split_once('?').unwrap_or((rest, ""));
        let (user, password, rest) = credentials(rest)?;
        let none = || UrlFlaw::Database(without_password(url));
        let (address, database) = rest.split_once('/').ok_or_else(none)?;
        if database.is_empty() {
            return Err(none());
        }
        let (host, port) = match address.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
            Some((host, rest)) => (host, parse_port(rest.strip_prefix(':'), port)?),
            None => match address.split_once(':') {
                Some((host, given)) => (host, parse_port(Some(given), port)?),
                None => (address, port),
            },
        };
        let host = if host.is_empty() { "localhost".to_owned() } else { unescaped(host)? };
        let mut server = Self {
            transport: Transport::Tcp { host, port },
            user,
            password,
            database: unescaped(database)?,
            tls: Tls::Never,
        };
        for option in options.split('&').filter(|option| !option.is_empty()) {
            match option.split_once('=') {
                Some(("socket", path)) => {
                    server.transport = Transport::Socket { path: unescaped(path)?.into(), port };
                }
                Some(("tls", "never")) => server.tls = Tls::Never,
                Some(("tls", "required")) => server.tls = Tls::Required,
                Some(("tls", "verified")) => server.tls = Tls::Verified,
                _ => return Err(UrlFlaw::Option(option.to_owned())),
            }
        }
        Ok(server)
    }
}

fn parse_port(given: Option<&str>, otherwise: u16) -> Result<u16, UrlFlaw> {
    given.map_or(Ok(otherwise), |given| given.parse().map_err(|_| UrlFlaw::Port(given.to_owned())))
}

/// User, password, and what follows them.
fn credentials(rest: &str) -> Result<(String, String, &str), UrlFlaw> {
    let Some((who, rest)) = rest.rsplit_once('@') else { return Ok((String::new(), String::new(), rest)) };
    let (user, password) = who.split_once(':').unwrap_or((who, ""));
    Ok((unescaped(user)?, unescaped(password)?, rest))
}

fn unescaped(text: &str) -> Result<String, UrlFlaw> {
    let flaw = || UrlFlaw::Escape(text.to_owned());
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let mut digit = || rest.next().and_then(|digit| char::from(digit).to_digit(16));
        let (Some(high), Some(low)) = (digit(), digit()) else { return Err(flaw()) };
        bytes.push(u8::try_from(high * 16 + low).map_err(|_| flaw())?);
    }
    String::from_utf8(bytes).map_err(|_| flaw())
}

/// The URL as it may be shown.
fn without_password(url: &str) -> String {
    let Some((front, rest)) = url.rsplit_once('@') else { return url.to_owned() };
    let (scheme, who) = front.split_once("://").unwrap_or(("", front));
    let user = who.split_once(':').map_or(who, |(user, _)| user);
    format!("{scheme}://{user}@{rest}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_name_the_driver_the_place_and_who_asks() {
        for (url, shown) in [
            ("mysql://ann:s%40crt@db.example:3307/asterisk", "mysql://ann@db.example:3307/asterisk"),
            ("mariadb://ann@db/asterisk", "mysql://ann@db:3306/asterisk"),
            ("postgres://ann:x@[::1]/pbx", "postgresql://ann@[::1]:5432/pbx"),
            ("postgresql:///pbx", "postgresql://@localhost:5432/pbx"),
            ("mysql://a@h/d?socket=/run/m.sock&tls=required", "mysql://a@/d?socket=/run/m.sock"),
            ("sqlite:/var/lib/a.db", "sqlite:/var/lib/a.db"),
            ("sqlite:///var/lib/a.db", "sqlite:/var/lib/a.db"),
            ("odbc:asterisk-connector", "odbc:asterisk-connector"),
            ("odbc://ann:x@asterisk", "odbc:asterisk"),
            ("odbc:Driver=SQLite3;Pwd=x;Database=/a.db", "odbc:Driver=SQLite3;Database=/a.db"),
        ] {
            let target = Target::from_url(url);
            assert_eq!(target.map(|target| target.to_string()), Ok(shown.to_owned()), "{url}");
        }
        let Ok(Target::Mysql(server)) = Target::from_url("mysql://a%3ab:p%40ss%2f@h/d") else {
            panic!("no server")
        };
        assert_eq!((server.user.as_str(), server.password.as_str()), ("a:b", "p@ss/"));
        assert!(!format!("{server:?}").contains("p@ss"), "a password is never shown");
    }

    #[test]
    fn what_is_no_url_is_told_without_the_password() {
        for (url, expected) in [
            ("oracle://ann:secret@db/x", UrlFlaw::Scheme("oracle://ann@db/x".into())),
            ("asterisk", UrlFlaw::Scheme("asterisk".into())),
            ("mysql://ann:secret@db", UrlFlaw::Database("mysql://ann@db".into())),
            ("mysql://db/", UrlFlaw::Database("mysql://db/".into())),
            ("mysql://db:x/d", UrlFlaw::Port("x".into())),
            ("mysql://a%4@db/d", UrlFlaw::Escape("a%4".into())),
            ("mysql://db/d?ssl=1", UrlFlaw::Option("ssl=1".into())),
        ] {
            assert_eq!(Target::from_url(url), Err(expected), "{url}");
        }
    }
}
