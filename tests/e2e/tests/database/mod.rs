//! Databases of a site that tests run beside it, and look into.

#![allow(dead_code, reason = "each test file uses its part")]

#[path = "../../../../crates/realtime/tests/common/mod.rs"]
pub mod common;

use std::path::PathBuf;

use e2e::Site;
use realtime::{Answer, Connection, Databases, Target};

/// The database of a test.
pub struct Database {
    server: Option<common::Server>,
    file: Option<PathBuf>,
    asked: Databases,
}

impl Database {
    pub fn sqlite(site: &Site) -> Self {
        let path = site.place.join("realtime.sqlite3");
        std::fs::File::create(&path).expect("a file");
        let asked = common::open(Connection::new("db", Target::Sqlite { path: path.clone() }));
        Self { server: None, file: Some(path), asked }
    }
    pub fn on(server: common::Server) -> Self {
        let mut asked = common::open(server.settings());
        common::wait_for_answer(&mut asked, common::raw("SELECT 1"));
        Self { server: Some(server), file: None, asked }
    }
    pub fn sql(&mut self, text: &str) -> Vec<Vec<String>> {
        match common::wait_for_answer(&mut self.asked, common::raw(text)) {
            Answer::Set(set) => set
                .rows
                .into_iter()
                .map(|row| row.into_iter().map(Option::unwrap_or_default).collect())
                .collect(),
            other => panic!("{text}: {other:?}"),
        }
    }
    /// Where `strowger db` reaches it.
    pub fn url(&self) -> String {
        match (&self.file, &self.server) {
            (Some(file), _) => format!("sqlite:{}", file.display()),
            (None, Some(server)) => {
                let is_mysql = matches!(server.settings().target, Target::Mysql(_));
                let scheme = if is_mysql { "mysql" } else { "postgresql" };
                format!("{scheme}://pbx:s3cr%23t'@127.0.0.1:{}/pbx", server.port())
            }
            (None, None) => unreachable!("a database is somewhere"),
        }
    }
    pub fn stop(&mut self) {
        self.server.as_mut().expect("a server").stop();
    }
    pub fn start(&mut self) {
        self.server.as_mut().expect("a server").start(false);
    }
    /// The files by which a site reaches it.
    pub fn described(&self, site: Site, families: &[(&str, &str)]) -> Site {
        let (driver, file, text) = match (&self.server, &self.file) {
            (None, Some(path)) => {
                ("sqlite3", "res_config_sqlite3.conf", format!("[db]\ndbfile => {}\n", path.display()))
            }
            (Some(server), _) => match server.settings().target {
                Target::Mysql(of) => ("mysql", "res_config_mysql.conf", ("[db]\n", of)),
                Target::Postgres(of) => ("pgsql", "res_pgsql.conf", ("[general]\n", of)),
                other => panic!("{other}"),
            }
            .describe(),
            (None, None) => unreachable!("a database is somewhere"),
        };
        let line = |(family, table): &(&str, &str)| format!("{family} => {driver},db,{table}\n");
        let lines: String = families.iter().map(line).collect();
        site.add(file, &text).add("extconfig.conf", &format!("[settings]\n{lines}"))
    }
}

trait Describe {
    fn describe(self) -> (&'static str, &'static str, String);
}

impl Describe for (&'static str, &'static str, (&'static str, realtime::Server)) {
    fn describe(self) -> (&'static str, &'static str, String) {
        let (driver, file, (head, of)) = self;
        let realtime::Transport::Tcp { host, port } = of.transport else { panic!("a port") };
        let text = format!(
            "{head}dbhost = {host}\ndbport = {port}\ndbname = {}\ndbuser = {}\ndbpass = {}\nconnect_timeout = 5\n",
            of.database, of.user, of.password
        );
        (driver, file, text)
    }
}
