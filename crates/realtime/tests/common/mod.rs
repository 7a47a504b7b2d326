//! Servers of Debian's packages, each on a port and in a folder of its own, gone with the test.

#![allow(dead_code, reason = "each test file uses its part")]

pub mod contract;

use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use realtime::{Answer, Connection, Databases, Failure, Query, Settings, Target, Ticket, Turned};
use tempfile::TempDir;

/// How long anything may take on a loaded machine.
pub const LIMIT: Duration = Duration::from_secs(60);

/// Several servers run beside each other, and none of them is to want more of the kernel than it gives.
const FRUGAL: [&str; 3] =
    ["--innodb-use-native-aio=0", "--innodb-buffer-pool-size=16M", "--innodb-flush-log-at-trx-commit=2"];

/// A server, until it is dropped.
pub struct Server {
    folder: TempDir,
    port: u16,
    kind: Kind,
    child: Option<Child>,
    has_certificate: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Mariadb,
    Postgres,
}

fn free_port() -> u16 {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap().port()
}

/// Where a program of a server is: not on everybody's path.
fn program(name: &str) -> Option<PathBuf> {
    let versions = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let folders = versions.map(|version| version.path().join("bin"));
    let folders = folders.chain(["/usr/bin", "/usr/sbin", "/usr/local/bin"].map(PathBuf::from));
    folders.map(|folder| folder.join(name)).find(|path| path.exists())
}

/// The command, as a user that the server accepts: none of them runs as root.
fn unprivileged(program: &Path, user: &str) -> Command {
    let mut command = if is_root() {
        let mut command = Command::new("setpriv");
        command.args([&format!("--reuid={user}"), &format!("--regid={user}"), "--clear-groups"]).arg(program);
        command
    } else {
        Command::new(program)
    };
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).current_dir("/");
    command
}

fn is_root() -> bool {
    Path::new("/proc/self").metadata().is_ok_and(|of| std::os::unix::fs::MetadataExt::uid(&of) == 0)
}

fn folder_for(user: &str) -> TempDir {
    let folder = tempfile::Builder::new().prefix("strowger-db-").tempdir().unwrap();
    if is_root() {
        let done = Command::new("chown").arg(user).arg(folder.path()).status().unwrap();
        assert!(done.success());
    }
    std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    folder
}

impl Server {
    /// MariaDB with a database `pbx` and a user `pbx`, password `s3cr#t'`.
    pub fn mariadb() -> Option<Self> {
        let (Some(install), Some(_)) = (program("mariadb-install-db"), program("mariadbd")) else {
            println!("skipped: mariadb-server is not installed");
            return None;
        };
        let folder = folder_for("mysql");
        let data = folder.path().join("data");
        let done = unprivileged(&install, "mysql")
            .args(["--no-defaults", "--auth-root-authentication-method=normal", "--skip-test-db"])
            .arg(format!("--datadir={}", data.display()))
            .arg(format!("--tmpdir={}", folder.path().display()))
            .env("TMPDIR", folder.path())
            .args(FRUGAL)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .output()
            .unwrap();
        assert!(done.status.success(), "mariadb-install-db: {done:?}");
        let init = "CREATE DATABASE pbx CHARACTER SET utf8mb4; CREATE USER pbx@'%' IDENTIFIED BY 's3cr#t\\''; \
                    GRANT ALL ON pbx.* TO pbx@'%';\n";
        std::fs::write(folder.path().join("init.sql"), init.replace("; ", ";\n")).unwrap();
        let mut server =
            Self { folder, port: free_port(), kind: Kind::Mariadb, child: None, has_certificate: false };
        server.start(true);
        Some(server)
    }
    /// PostgreSQL with a database `pbx` and a user `pbx`.
    pub fn postgres() -> Option<Self> {
        let (Some(initdb), Some(_)) = (program("initdb"), program("postgres")) else {
            println!("skipped: postgresql is not installed");
            return None;
        };
        let folder = folder_for("postgres");
        let password = folder.path().join("password");
        std::fs::write(&password, "s3cr#t'\n").unwrap();
        let done = unprivileged(&initdb, "postgres")
            .args(["--username=pbx", "--auth=scram-sha-256", "--no-sync", "--encoding=UTF8", "--locale=C"])
            .arg(format!("--pwfile={}", password.display()))
            .arg(format!("--pgdata={}", folder.path().join("data").display()))
            .status()
            .unwrap();
        assert!(done.success(), "initdb");
        let mut server =
            Self { folder, port: free_port(), kind: Kind::Postgres, child: None, has_certificate: false };
        server.start(true);
        let mut databases = open(server.connection("postgres"));
        wait_for_answer(&mut databases, raw("SELECT 1"));
        databases.ask("db", raw("CREATE DATABASE pbx")).unwrap();
        Some(server)
    }
    /// Stops it and starts it with a certificate that nobody knows; whether there is an `openssl` to make one.
    pub fn restart_with_certificate(&mut self) -> bool {
        let folder = self.folder.path();
        let key = folder.join("key.pem");
        let made = Command::new("openssl")
            .args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"])
            .args(["-days", "2", "-subj", "/CN=localhost", "-keyout"])
            .arg(&key)
            .arg("-out")
            .arg(folder.join("cert.pem"))
            .stderr(Stdio::null())
            .status();
        if !made.is_ok_and(|status| status.success()) {
            println!("skipped: openssl is not installed");
            return false;
        }
        if is_root() {
            let user = if self.kind == Kind::Postgres { "postgres" } else { "mysql" };
            assert!(Command::new("chown").arg(user).arg(&key).status().unwrap().success());
        }
        std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o600)).unwrap();
        // Whoever is stopped before has not made its users.
        wait_for_answer(&mut open(self.settings()), raw("SELECT 1"));
        self.has_certificate = true;
        self.stop();
        self.start(false);
        true
    }
    /// Starts it (again).
    pub fn start(&mut self, first: bool) {
        let data = self.folder.path().join("data");
        let mut command = match self.kind {
            Kind::Mariadb => {
                let mut command = unprivileged(&program("mariadbd").unwrap(), "mysql");
                command
                    .args(["--no-defaults", "--bind-address=127.0.0.1", "--skip-log-bin"])
                    .args(FRUGAL)
                    .arg(format!("--tmpdir={}", self.folder.path().display()))
                    .arg(format!("--datadir={}", data.display()))
                    .arg(format!("--port={}", self.port))
                    .arg(format!("--socket={}", self.folder.path().join("socket").display()))
                    .arg(format!("--pid-file={}", self.folder.path().join("pid").display()));
                if first {
                    command.arg(format!("--init-file={}", self.folder.path().join("init.sql").display()));
                }
                command
            }
            Kind::Postgres => {
                let mut command = unprivileged(&program("postgres").unwrap(), "postgres");
                command
                    .arg("-D")
                    .arg(&data)
                    .args(["-c", "listen_addresses=127.0.0.1", "-c", "fsync=off", "-p"])
                    .arg(self.port.to_string())
                    .arg("-k")
                    .arg(self.folder.path());
                command
            }
        };
        if self.has_certificate {
            let file = |name: &str| self.folder.path().join(name).display().to_string();
            let (cert, key) = (file("cert.pem"), file("key.pem"));
            match self.kind {
                Kind::Mariadb => command.args([format!("--ssl-cert={cert}"), format!("--ssl-key={key}")]),
                Kind::Postgres => {
                    let (cert, key) = (format!("ssl_cert_file={cert}"), format!("ssl_key_file={key}"));
                    command.args(["-c", "ssl=on", "-c", &cert, "-c", &key])
                }
            };
        }
        self.child = Some(command.spawn().unwrap());
        let until = Instant::now() + LIMIT;
        while TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)).is_err() {
            assert!(Instant::now() < until, "the server does not come up");
            std::thread::yield_now();
        }
    }
    /// Ends it at once, as a power cut would.
    pub fn stop(&mut self) {
        if let Some(mut child) = self.child.take() {
            // The immediate shutdown of PostgreSQL is SIGQUIT; its children outlive the one that started them.
            let signal = if self.kind == Kind::Postgres { "-QUIT" } else { "-KILL" };
            let _ = Command::new("kill").arg(signal).arg(child.id().to_string()).status();
            let _ = child.wait();
        }
    }
    fn connection(&self, database: &str) -> Connection {
        let scheme = if self.kind == Kind::Postgres { "postgresql" } else { "mysql" };
        let url = format!("{scheme}://pbx:s3cr%23t'@127.0.0.1:{}/{database}", self.port);
        Connection::new("db", Target::from_url(&url).unwrap())
    }
    /// Its process, while it runs.
    pub fn pid(&self) -> Option<u32> {
        self.child.as_ref().map(Child::id)
    }
    /// The port of 127.0.0.1 that it listens to.
    pub fn port(&self) -> u16 {
        self.port
    }
    /// How it is reached.
    pub fn settings(&self) -> Connection {
        self.connection("pbx")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop();
    }
}

pub fn open(connection: Connection) -> Databases {
    Databases::open(Settings { connections: vec![connection] }).unwrap()
}

pub fn raw(sql: &str) -> Query {
    Query::Raw { sql: sql.to_owned(), limit: None }
}

/// Asks until the server has come up.
pub fn wait_for_answer(databases: &mut Databases, query: Query) -> Answer {
    let until = Instant::now() + LIMIT;
    loop {
        match databases.ask("db", query.clone()) {
            Ok(answer) => return answer,
            Err(failure) => {
                assert!(failure.is_passing() && Instant::now() < until, "{failure}");
                databases.wait(Duration::from_millis(200));
            }
        }
    }
}

/// Answers, and databases whose standing has changed.
pub type Came = (Vec<(Ticket, Result<Answer, Failure>)>, Vec<Turned>);

/// What came, once `count` answers have.
pub fn collect(databases: &mut Databases, count: usize) -> Came {
    let (mut answers, mut turned) = (Vec::new(), Vec::new());
    let until = Instant::now() + LIMIT;
    while answers.len() < count {
        assert!(Instant::now() < until, "{} of {count} answers", answers.len());
        databases.wait(Duration::from_secs(1));
        databases.drain(&mut answers, &mut turned);
    }
    (answers, turned)
}
