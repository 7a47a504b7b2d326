//! A process that cannot start says which file, which line, and what to do.

use std::fs;
use std::net::UdpSocket;
use std::path::{Path, PathBuf};

use engine::{Engine, Options};
use store::Where;

/// A site in a folder of its own; gone with the test.
struct Site(PathBuf);

impl Site {
    fn new(name: &str, files: &[(&str, String)]) -> Self {
        let folder = std::env::temp_dir().join(format!("strowger-start-{name}-{}", std::process::id()));
        fs::create_dir_all(folder.join("etc")).unwrap();
        let site = Self(folder);
        for (file, text) in files {
            fs::write(site.path("etc").join(file), text).unwrap();
        }
        site
    }
    fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
    /// Why it does not start.
    fn refusal(&self) -> String {
        let options = Options {
            place: Where::Site(self.path("etc/asterisk.conf")),
            console: None,
            verbose: 0,
            debug: 0,
            socket: None,
            files: 256,
            workers: Some(1),
        };
        match Engine::start(options) {
            Ok(_) => panic!("it starts"),
            Err(why) => why.to_string(),
        }
    }
}
impl Drop for Site {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).ok();
    }
}

/// `asterisk.conf` whose folders all lie below `base`.
fn directories(base: &Path) -> String {
    let base = base.display();
    format!(
        "[directories]\nastetcdir => {base}/etc\nastvarlibdir => {base}/lib\nastdbdir => {base}/db\n\
         astdatadir => {base}/lib\nastspooldir => {base}/spool\nastrundir => {base}/run\nastlogdir => {base}/log\n"
    )
}
fn base(name: &str) -> PathBuf {
    std::env::temp_dir().join(format!("strowger-start-{name}-{}", std::process::id()))
}
fn minimal(name: &str, pjsip: String) -> Site {
    Site::new(
        name,
        &[
            ("asterisk.conf", directories(&base(name))),
            ("extensions.conf", "[default]\n".to_owned()),
            ("pjsip.conf", pjsip),
        ],
    )
}

#[test]
fn a_port_in_use_is_named_with_its_line_and_a_remedy() {
    let taken = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    let site = minimal("port", format!("\n[t]\ntype=transport\nprotocol=udp\nbind={address}\n"));
    let said = site.refusal();
    assert!(said.contains("pjsip.conf:5: transport 't'"), "{said}");
    assert!(said.contains(&address.port().to_string()), "{said}");
    assert!(said.rsplit("; ").next().is_some_and(|remedy| remedy.len() > 10), "{said}");
    assert!(!said.contains('\n'), "{said}");
}

#[test]
fn a_folder_that_cannot_be_made_is_named_with_the_option_that_names_it() {
    let site = minimal("folder", String::new());
    // A file stands where the folder should be; root could write anywhere else.
    fs::write(site.path("db"), "").unwrap();
    let said = site.refusal();
    assert!(said.contains(&site.path("db").display().to_string()), "{said}");
    assert!(said.contains("change astdbdir in asterisk.conf [directories]"), "{said}");
}

#[test]
fn a_missing_file_is_named() {
    let site = Site::new("missing", &[]);
    let said = site.refusal();
    assert!(said.contains("asterisk.conf"), "{said}");
}
