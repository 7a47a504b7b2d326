//! Databases of SQLite that a site has, and that a test looks into and holds.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::{Site, installed};

/// A file of SQLite in a site's folder.
#[derive(Debug, Clone)]
pub struct Sqlite {
    /// Where it is.
    pub path: PathBuf,
}

impl Sqlite {
    /// One of this name with these tables; `None`, told, where there is no `sqlite3` to look into it with.
    pub fn new(site: &Site, name: &str, schema: &str) -> Option<Self> {
        if !installed(&["sqlite3"]) {
            return None;
        }
        let file = Self { path: site.place.join(name) };
        file.sql(schema);
        Some(file)
    }
    /// Runs statements; what they print.
    pub fn sql(&self, text: &str) -> String {
        sql(&self.path, text)
    }
    /// Holds it so that nobody else reads it.
    pub fn hold(&self) -> Held {
        Held::take(&self.path)
    }
    /// The site reaches it by this name of `extconfig.conf`'s driver `sqlite3`, for these families.
    pub fn described(&self, site: Site, name: &str, families: &[&str]) -> Site {
        let lines: String = families.iter().map(|family| format!("{family} => sqlite3,{name}\n")).collect();
        site.add("res_config_sqlite3.conf", &format!("[{name}]\ndbfile => {}\n", self.path.display()))
            .add("extconfig.conf", &format!("[settings]\n{lines}"))
    }
    /// The site reaches it as this class of `res_odbc.conf`, served by the native driver.
    pub fn as_class(&self, site: Site, class: &str) -> Site {
        let folder = site.place.join(".").display().to_string();
        let ini = format!("[source]\nDriver = SQLite3\nDatabase = {}\n", self.path.display());
        std::fs::write(site.place.join("odbc.ini"), ini).expect("the site's folder");
        let text = format!("[ENV]\nODBCINI => {folder}/odbc.ini\n[{class}]\ndsn => source\nnative => yes\n");
        site.add("res_odbc.conf", &text)
    }
}

fn sql(file: &Path, text: &str) -> String {
    let output = Command::new("sqlite3")
        .args(["-cmd", ".timeout 60000"])
        .arg(file)
        .arg(text)
        .output()
        .expect("sqlite3");
    assert!(output.status.success(), "{text}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).trim_end().to_owned()
}

/// A database that nobody else reads until this is dropped.
#[derive(Debug)]
pub struct Held(Child);

impl Held {
    fn take(file: &Path) -> Self {
        let mut child = Command::new("sqlite3")
            .arg(file)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("sqlite3");
        let stdin = child.stdin.as_mut().expect("piped");
        stdin.write_all(b".timeout 60000\nBEGIN EXCLUSIVE;\nSELECT 'held';\n").expect("it reads");
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().expect("piped")).read_line(&mut line).expect("it writes");
        assert_eq!(line, "held\n");
        Self(child)
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
