//! A process that cannot start says which file, which line, and what to do.

use std::fs;
use std::net::UdpSocket;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use control::site::{When, Wish};
use engine::{Asked, Engine, Options};
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
    fn options(&self) -> Options {
        Options {
            place: Where::Site(self.path("etc/asterisk.conf")),
            console: None,
            verbose: 0,
            debug: 0,
            socket: None,
            files: 256,
            timestamps: false,
            asked: Asked::default(),
            workers: Some(1),
            fault_injection: false,
        }
    }
    /// Why it does not start.
    fn refusal(&self) -> String {
        match Engine::start(self.options()) {
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

#[test]
fn the_control_socket_goes_only_to_a_group_that_exists() {
    let files = "[files]\nastctlgroup = no-such-group-here\n";
    let text = directories(&base("owner")) + files;
    let site = Site::new(
        "owner",
        &[
            ("asterisk.conf", text),
            ("extensions.conf", "[default]\n".to_owned()),
            ("pjsip.conf", String::new()),
        ],
    );
    let said = site.refusal();
    assert!(said.contains("asterisk.conf:10: control socket"), "{said}");
    assert!(said.contains("group 'no-such-group-here'"), "{said}");
}

#[test]
fn limits_ports_and_records_follow_the_command_line_and_then_the_files() {
    let site = minimal("limits", String::new());
    fs::write(site.path("etc/rtp.conf"), "[general]\nrtpstart=20000\nrtpend=20100\n").unwrap();
    let asked = Asked { max_calls: Some(7), max_load: Some(2.5) };
    let mut engine = Engine::start(Options { asked, ..site.options() }).unwrap();
    let running = engine.site().clone();
    let limits = || {
        let limits = running.shard.core.borrow().admission.limits();
        (limits.max_calls, limits.max_load_centi)
    };
    let ports = || {
        let range = running.media.borrow().ports().range();
        (range.first, range.last)
    };
    assert_eq!((limits(), ports()), ((7, 250), (20_000, 20_100)));
    let text = directories(&base("limits")) + "[options]\nmaxcalls = 100\nmaxload = 9\n";
    fs::write(site.path("etc/asterisk.conf"), text).unwrap();
    fs::write(site.path("etc/rtp.conf"), "[general]\nrtpstart=21000\nrtpend=21100\n").unwrap();
    fs::write(site.path("etc/cdr.conf"), "[general]\nenable=yes\n[csv]\nloguniqueid=yes\n").unwrap();
    let turn = |engine: &mut Engine, wishes: Vec<Wish>, account: &str| {
        let record = call::Cdr { account: account.to_owned(), ..call::Cdr::default() };
        running.shard.core.borrow_mut().cdrs.push(record);
        *running.wishes.borrow_mut() = wishes;
        running.wishes.borrow_mut().push(Wish::Stop { when: When::Now, restart: false });
        // Somebody knocks, so that the loop turns at once.
        let _visitor = UnixStream::connect(site.path("run/asterisk.ctl")).unwrap();
        assert_eq!(engine.run().unwrap(), engine::End::Stop);
    };
    turn(&mut engine, vec![Wish::Reload { module: String::new() }], "before");
    assert!(running.last_reload.borrow().taken, "{:?}", running.last_reload.borrow());
    assert_eq!((limits(), ports()), ((7, 250), (21_000, 21_100)));
    turn(&mut engine, vec![], "after");
    drop(engine);
    let written = fs::read_to_string(site.path("log/cdr-csv/Master.csv")).unwrap();
    assert!(written.starts_with("\"after\",") && written.lines().count() == 1, "{written}");
}
