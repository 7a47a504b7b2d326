//! What keeps a process from starting, said with file, line and remedy; and what does not, although it is off then.

use std::fs;
use std::net::{SocketAddr, TcpListener, UdpSocket};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use control::site::{When, Wish};
use engine::{Asked, Engine, Options};
use store::Where;

/// A certificate and its key, made by openssl for this test alone and good for a hundred years.
const CERTIFICATE: &str = "\
-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgUTJiP5FXvOTHnewm
VmgEjH2myWJd7o3YMZVKHcdFJEehRANCAARKmFASqs+7Vy3P0Y0iTCHnqbK/o4cQ
orfZXiCOJk9aZ2oso2g5ptVIyfY3eLN8WAlmJ/IIBmZVQFJc0h+aP86V
-----END PRIVATE KEY-----
-----BEGIN CERTIFICATE-----
MIIBjzCCATagAwIBAgIUe3NtbR92KRJxq8BvW6dgsumwB0swCgYIKoZIzj0EAwIw
FDESMBAGA1UEAwwJbG9jYWxob3N0MCAXDTI2MTEyODA1MzkxMVoYDzIxMjYxMTA0
MDUzOTExWjAUMRIwEAYDVQQDDAlsb2NhbGhvc3QwWTATBgcqhkjOPQIBBggqhkjO
PQMBBwNCAARKmFASqs+7Vy3P0Y0iTCHnqbK/o4cQorfZXiCOJk9aZ2oso2g5ptVI
yfY3eLN8WAlmJ/IIBmZVQFJc0h+aP86Vo2QwYjAdBgNVHQ4EFgQU7/7JxKkPkdeH
NP+NwxMigBFuMi8wHwYDVR0jBBgwFoAU7/7JxKkPkdeHNP+NwxMigBFuMi8wDwYD
VR0TAQH/BAUwAwEB/zAPBgNVHREECDAGhwR/AAABMAoGCCqGSM49BAMCA0cAMEQC
ID7CDFDJzmPpUUErBqUqgEfW0wpE/Dmj5GBAzBd7TpsyAiAlw1CjydmR6ViDK8Rs
hPq0To/Ex3MMJdCh0bUnxqyQ8w==
-----END CERTIFICATE-----
";

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

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// One turn of the loop with these wishes.
fn turn(engine: &mut Engine, site: &Site, wish: Option<Wish>) {
    let running = engine.site().clone();
    running.stopping.set(None);
    running.wishes.borrow_mut().extend(wish);
    running.wishes.borrow_mut().push(Wish::Stop { when: When::Now, restart: false });
    // Somebody knocks, so that the loop turns at once.
    let _visitor = UnixStream::connect(site.path("run/asterisk.ctl")).unwrap();
    assert_eq!(engine.run().unwrap(), engine::End::Stop);
}

#[test]
fn a_listener_that_cannot_be_opened_is_off_and_the_rest_starts_and_a_reload_tries_again() {
    let transport = |protocol: &str, more: &str| {
        format!("[t]\ntype=transport\nprotocol={protocol}\nbind=127.0.0.1:PORT\n{more}")
    };
    let certificate = "tlscertfile=CERT\n";
    for (name, file, text, protocol, said) in [
        (
            "udp",
            "pjsip.conf",
            transport("udp", ""),
            "udp",
            "Transport 't' could not be started: Address already in use",
        ),
        (
            "tcp",
            "pjsip.conf",
            transport("tcp", ""),
            "tcp",
            "Transport 't' could not be started: Address already in use",
        ),
        (
            "tls",
            "pjsip.conf",
            transport("tls", "cert_file=CERT\n"),
            "tcp",
            "Transport 't' could not be started: Address already in use",
        ),
        (
            "iax",
            "iax.conf",
            "[general]\nbindaddr=127.0.0.1:PORT\n".to_owned(),
            "udp",
            "Unable to create network socket: Address already in use",
        ),
        (
            "ami",
            "manager.conf",
            "[general]\nenabled=yes\nbindaddr=127.0.0.1\nport=PORT\n".to_owned(),
            "tcp",
            "Unable to bind AMI server to 127.0.0.1:PORT: Address already in use",
        ),
        (
            "ami-tls",
            "manager.conf",
            format!(
                "[general]\nenabled=yes\nport=OTHER\ntlsenable=yes\ntlsbindaddr=127.0.0.1:PORT\n{certificate}"
            ),
            "tcp",
            "Unable to bind AMI TLS server to 127.0.0.1:PORT: Address already in use",
        ),
        (
            "http",
            "http.conf",
            "[general]\nenabled=yes\nenable_status=yes\nbindaddr=127.0.0.1\nbindport=PORT\n".to_owned(),
            "tcp",
            "Unable to bind http server to 127.0.0.1:PORT: Address already in use",
        ),
        (
            "https",
            "http.conf",
            format!(
                "[general]\nenabled=yes\nbindport=OTHER\nenable_status=yes\ntlsenable=yes\ntlsbindaddr=127.0.0.1:PORT\n{certificate}"
            ),
            "tcp",
            "Unable to bind https server to 127.0.0.1:PORT: Address already in use",
        ),
    ] {
        let name = format!("listen-{name}");
        let port = free_port();
        let address = SocketAddr::from(([127, 0, 0, 1], port));
        let held: Box<dyn std::any::Any> = match protocol {
            "udp" => Box::new(UdpSocket::bind(address).unwrap()),
            _ => Box::new(TcpListener::bind(address).unwrap()),
        };
        let site = minimal(&name, "[u]\ntype=transport\nprotocol=udp\nbind=127.0.0.1:0\n".to_owned());
        let certificate = site.path("etc/certificate.pem");
        fs::write(&certificate, CERTIFICATE).unwrap();
        let fill = |text: &str| {
            text.replace("PORT", &port.to_string())
                .replace("OTHER", &free_port().to_string())
                .replace("CERT", &certificate.display().to_string())
        };
        let before = if file == "pjsip.conf" {
            fs::read_to_string(site.path("etc/pjsip.conf")).unwrap()
        } else {
            String::new()
        };
        fs::write(site.path("etc").join(file), before + &fill(&text)).unwrap();
        fs::write(site.path("etc/logger.conf"), "[logfiles]\nfull => notice,warning,error\n").unwrap();
        let mut engine = Engine::start(site.options()).unwrap_or_else(|why| panic!("{name}: {why}"));
        assert!(site.path("run/asterisk.ctl").exists(), "{name}: no console");
        let down = || {
            let site = engine.site().clone();
            let down = site.down.borrow();
            down.http || down.https || !down.transports.is_empty()
        };
        let is_seen = matches!(file, "pjsip.conf" | "http.conf");
        assert_eq!(down(), is_seen, "{name}");
        turn(&mut engine, &site, Some(Wish::Reload { module: String::new() }));
        let last = engine.site().last_reload.borrow().clone();
        assert!(last.taken, "{name}: what is off as before refuses nothing: {last:?}");
        drop(held);
        turn(&mut engine, &site, Some(Wish::Reload { module: String::new() }));
        let down = engine.site().down.borrow().clone();
        assert_eq!(down, control::site::Down::default(), "{name}: it is free");
        match protocol {
            "udp" => drop(UdpSocket::bind(address).expect_err(&name)),
            _ => drop(std::net::TcpStream::connect(address).expect(&name)),
        }
        drop(engine);
        let log = fs::read_to_string(site.path("log/full")).unwrap();
        let told: Vec<_> =
            log.lines().filter(|line| line.contains("ERROR") && line.contains(&fill(said))).collect();
        assert_eq!(told.len(), 2, "{name}: once at the start, once at the first reload:\n{log}");
        for line in told.iter().filter(|_| file == "pjsip.conf") {
            assert!(line.contains("pjsip.conf:") && line.contains(&port.to_string()), "{line}");
            assert!(line.rsplit("; ").next().is_some_and(|remedy| remedy.len() > 10), "{line}");
        }
    }
}

#[test]
fn what_is_not_there_is_off_and_the_rest_starts() {
    let group = "[files]\nastctlgroup = no-such-group-here\n";
    let owner = "[files]\nastctlowner = no-such-user-here\n";
    for (name, file, text, said) in [
        (
            "address",
            "pjsip.conf",
            "[t]\ntype=transport\nprotocol=udp\nbind=192.0.2.1:5060\n".to_owned(),
            &["Transport 't' could not be started", "pjsip.conf:4"][..],
        ),
        (
            "certificate",
            "pjsip.conf",
            "[t]\ntype=transport\nprotocol=tls\nbind=127.0.0.1:0\ncert_file=/nowhere.pem\n".to_owned(),
            &["transport 't'", "/nowhere.pem"],
        ),
        (
            "iax-address",
            "iax.conf",
            "[general]\nbindaddr=192.0.2.1\n".to_owned(),
            &["Unable to create network socket"],
        ),
        (
            "include",
            "queues.conf",
            "#include nowhere.conf\n".to_owned(),
            &["queues.conf", "refused as a whole: what it configures is off"],
        ),
        (
            "dialplan",
            "extensions.conf",
            "[default]\n#include nowhere.conf\n".to_owned(),
            &["extensions.conf", "refused as a whole: what it configures is off"],
        ),
        (
            "group",
            "asterisk.conf",
            directories(&base("gone-group")) + group,
            &["asterisk.conf:10", "group 'no-such-group-here'"],
        ),
        (
            "owner",
            "asterisk.conf",
            directories(&base("gone-owner")) + owner,
            &["asterisk.conf:10", "'no-such-user-here'"],
        ),
    ] {
        let name = format!("gone-{name}");
        let site = minimal(&name, String::new());
        fs::write(site.path("etc").join(file), text).unwrap();
        fs::write(site.path("etc/logger.conf"), "[logfiles]\nfull => notice,warning,error\n").unwrap();
        let mut engine = Engine::start(site.options()).unwrap_or_else(|why| panic!("{name}: {why}"));
        turn(&mut engine, &site, Some(Wish::Reload { module: String::new() }));
        let last = engine.site().last_reload.borrow().clone();
        assert!(last.taken, "{name}: what is off as before refuses nothing: {last:?}");
        drop(engine);
        let log = fs::read_to_string(site.path("log/full")).unwrap();
        let has = |line: &&str| line.contains("ERROR") && said.iter().all(|word| line.contains(word));
        assert!(log.lines().any(|line| has(&line)), "{name}: {said:?}:\n{log}");
    }
}

#[test]
fn two_servers_share_the_port_that_all_have_for_iax2() {
    let iax = |port: u16| format!("[general]\nbindaddr=127.0.0.1:{port}\n");
    let port = free_port();
    let sites = ["iax-one", "iax-two"].map(|name| {
        let site = minimal(name, String::new());
        fs::write(site.path("etc/iax.conf"), iax(port)).unwrap();
        fs::write(site.path("etc/logger.conf"), "[logfiles]\nfull => notice,warning,error\n").unwrap();
        site
    });
    let engines = sites.each_ref().map(|site| Engine::start(site.options()).unwrap());
    drop(engines);
    for site in &sites {
        let log = fs::read_to_string(site.path("log/full")).unwrap_or_default();
        assert!(!log.contains("ERROR"), "{log}");
    }
}

#[test]
fn a_core_file_that_is_refused_refuses_the_start() {
    for file in store::CORE_FILES {
        let name = format!("core-{}", file.split('.').next().unwrap());
        let site = minimal(&name, String::new());
        let before = fs::read_to_string(site.path("etc").join(file)).unwrap_or_default();
        fs::write(site.path("etc").join(file), before + "#include nowhere.conf\n").unwrap();
        let said = site.refusal();
        assert!(said.contains(file) && said.contains("nowhere.conf"), "{said}");
    }
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
    let record = |account: &str| {
        let record = call::Cdr { account: account.to_owned(), ..call::Cdr::default() };
        running.shard.core.borrow_mut().cdrs.push(record);
    };
    record("before");
    turn(&mut engine, &site, Some(Wish::Reload { module: String::new() }));
    assert!(running.last_reload.borrow().taken, "{:?}", running.last_reload.borrow());
    assert_eq!((limits(), ports()), ((7, 250), (21_000, 21_100)));
    record("after");
    turn(&mut engine, &site, None);
    drop(engine);
    let written = fs::read_to_string(site.path("log/cdr-csv/Master.csv")).unwrap();
    assert!(written.starts_with("\"after\",") && written.lines().count() == 1, "{written}");
}
