//! Data sources in an `odbc.ini` of the test's own.

#![allow(dead_code, reason = "each test file uses its part")]

use std::path::{Path, PathBuf};

use realtime::{Connection, Source, Target};
use tempfile::TempDir;

use crate::common::Server;

/// The password that the servers' user has.
pub const PASSWORD: &str = "s3cr#t'";

/// A folder with `odbc.ini` and what is needed for a driver.
pub struct Sources {
    folder: TempDir,
    library: PathBuf,
}

impl Sources {
    /// For a driver, by the file of its library; `None` when it is not installed.
    pub fn for_driver(library: &str) -> Option<Self> {
        let folders = ["/usr/lib/x86_64-linux-gnu/odbc", "/usr/lib/aarch64-linux-gnu/odbc", "/usr/lib/odbc"];
        let found =
            folders.map(|folder| Path::new(folder).join(library)).into_iter().find(|path| path.exists());
        if found.is_none() {
            println!("skipped: {library} is not installed");
        }
        Some(Self { folder: tempfile::tempdir().unwrap(), library: found? })
    }
    /// Where the files are.
    pub fn place(&self) -> &Path {
        self.folder.path()
    }
    /// A data source on a server.
    pub fn connection(&self, server: &Server) -> Connection {
        let lines = format!(
            "Servername = 127.0.0.1\nServer = 127.0.0.1\nPort = {}\nDatabase = pbx\nUsername = pbx\nUser = nobody\n",
            server.port()
        );
        self.described("pbx", &lines)
    }
    /// A data source on a file.
    pub fn file(&self) -> Connection {
        let lines = format!("Database = {}\nTimeout = 2000\n", self.folder.path().join("pbx.db").display());
        self.described("", &lines)
    }
    /// A data source as these lines describe it.
    pub fn described(&self, user: &str, lines: &str) -> Connection {
        let text = format!("[pbx]\nDriver = {}\n{lines}", self.library.display());
        std::fs::write(self.folder.path().join("odbc.ini"), text).unwrap();
        std::fs::write(self.folder.path().join("odbcinst.ini"), "").unwrap();
        self.source("pbx", user, if user.is_empty() { "" } else { PASSWORD })
    }
    /// A data source by its name.
    pub fn source(&self, dsn: &str, user: &str, password: &str) -> Connection {
        let folder = self.folder.path();
        let set = |name: &str, path: PathBuf| (name.to_owned(), path.display().to_string());
        let source = Source {
            dsn: dsn.to_owned(),
            user: user.to_owned(),
            password: password.to_owned(),
            environment: vec![set("ODBCINI", folder.join("odbc.ini")), set("ODBCSYSINI", folder.to_owned())],
            program: Some(env!("CARGO_BIN_EXE_strowger-odbc").into()),
        };
        Connection::new("db", Target::Odbc(source))
    }
}
