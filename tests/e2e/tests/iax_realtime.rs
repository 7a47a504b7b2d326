//! Users and peers of IAX2 in a database: looked up while running, registered while it is away, their rows written behind.

#[path = "../../../crates/realtime/tests/common/mod.rs"]
mod common;

use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::path::PathBuf;
use std::time::Duration;

use base::{Cause, Instant};
use e2e::{Phone, Server, Site, wait};
use iax2::machine::{Event, Registration};
use iax2::{Machine, Out, Secret, Settings};
use realtime::{Answer, Connection, Databases, Target};

const SECRET: &str = "between the two of us";

const TABLE: &str = "CREATE TABLE iaxfriends (name VARCHAR(40) PRIMARY KEY, type VARCHAR(10), secret VARCHAR(40), \
                     context VARCHAR(40), host VARCHAR(40), ipaddr VARCHAR(40), port INTEGER, regseconds INTEGER, \
                     regserver VARCHAR(40), requirecalltoken VARCHAR(5), tenant INTEGER)";

/// The database of a test.
struct Database {
    server: Option<common::Server>,
    file: Option<PathBuf>,
    asked: Databases,
}

impl Database {
    fn sqlite(site: &Site) -> Self {
        let path = site.place.join("realtime.sqlite3");
        std::fs::File::create(&path).expect("a file");
        let asked = common::open(Connection::new("db", Target::Sqlite { path: path.clone() }));
        Self { server: None, file: Some(path), asked }.with_table()
    }
    fn on(server: common::Server) -> Self {
        let asked = common::open(server.settings());
        Self { server: Some(server), file: None, asked }.with_table()
    }
    fn with_table(mut self) -> Self {
        common::wait_for_answer(&mut self.asked, common::raw("SELECT 1"));
        self.sql(TABLE);
        self
    }
    fn sql(&mut self, text: &str) -> Vec<Vec<String>> {
        match common::wait_for_answer(&mut self.asked, common::raw(text)) {
            Answer::Set(set) => set
                .rows
                .into_iter()
                .map(|row| row.into_iter().map(Option::unwrap_or_default).collect())
                .collect(),
            other => panic!("{text}: {other:?}"),
        }
    }
    fn stop(&mut self) {
        self.server.as_mut().expect("a server").stop();
    }
    fn start(&mut self) {
        self.server.as_mut().expect("a server").start(false);
    }
    fn add(&mut self, name: &str) {
        self.sql(&format!(
            "INSERT INTO iaxfriends (name, type, secret, context, host, tenant) \
             VALUES ('{name}', 'friend', '{SECRET}', 'incoming', 'dynamic', 7)"
        ));
    }
    /// Where a row says that its peer is, and whether that ends in the future.
    fn place(&mut self, name: &str) -> (String, bool) {
        let rows =
            self.sql(&format!("SELECT ipaddr, port, regseconds FROM iaxfriends WHERE name = '{name}'"));
        let [ip, port, until] = rows[0].as_slice() else { panic!("{rows:?}") };
        let now =
            std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("a clock").as_secs();
        (format!("{ip}:{port}"), until.parse::<u64>().is_ok_and(|until| until > now))
    }
    fn until_at(&mut self, name: &str, address: &str) {
        wait::until_true(&format!("the row of {name} says {address}"), || self.place(name).0 == address);
    }
    /// The files by which a site reaches it.
    fn described(&self, site: Site) -> Site {
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
        site.add(file, &text).add(
            "extconfig.conf",
            &format!("[settings]\niaxusers => {driver},db,iaxfriends\niaxpeers => {driver},db,iaxfriends\n"),
        )
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

/// A phone that registers, each time anew, from one socket.
struct Peer {
    socket: UdpSocket,
    registrar: SocketAddr,
    began: std::time::Instant,
}

/// What came of a registration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outcome {
    Registered,
    Refused(Cause),
    Lost,
}

impl Peer {
    fn new(ip: IpAddr, registrar: IpAddr) -> Self {
        let socket = UdpSocket::bind((ip, 0)).expect("a port");
        Self { socket, registrar: SocketAddr::new(registrar, 4569), began: std::time::Instant::now() }
    }
    fn address(&self) -> String {
        self.socket.local_addr().expect("an address").to_string()
    }
    fn now(&self) -> Instant {
        Instant::ZERO + self.began.elapsed()
    }
    fn register(&self, name: &str, secret: &str) -> Outcome {
        let key = u128::from(self.now().as_nanos()) << 32 | 7;
        let mut machine = Machine::new(self.now(), key, Settings::default());
        let mut out = Out::default();
        let wanted = Registration {
            at: self.registrar,
            username: name.as_bytes().to_vec(),
            secret: Secret::new(secret.as_bytes()),
            refresh: 60,
            plaintext: false,
        };
        machine.keep_registered(self.now(), wanted, &mut out).expect("a number");
        let mut buffer = [0; 2048];
        loop {
            for (to, bytes) in out.datagrams() {
                self.socket.send_to(bytes, to).expect("it leaves");
            }
            let events = std::mem::take(&mut out.events);
            out.clear();
            for event in events {
                match event {
                    Event::Registered { .. } => return Outcome::Registered,
                    Event::RegistrationRefused { cause, .. } => return Outcome::Refused(cause),
                    Event::RegistrationLost(_) => return Outcome::Lost,
                    _ => {}
                }
            }
            let now = self.now();
            let next = machine.next_timer().map_or(Duration::from_secs(1), |at| at.since(now));
            self.socket.set_read_timeout(Some(next.max(Duration::from_millis(1)))).expect("a timeout");
            match self.socket.recv_from(&mut buffer) {
                Ok((length, from)) => machine.on_datagram(self.now(), from, &buffer[..length], &mut out),
                Err(_) => machine.on_timer(self.now(), &mut out),
            }
        }
    }
}

const DIALPLAN: &str = "
[test]
exten => _to-.,1,Dial(IAX2/${EXTEN:3}/100,20)
 same => n,Hangup(${HANGUPCAUSE})
[incoming]
exten => bob,1,Dial(PJSIP/bob,20)
exten => 100,1,Answer()
 same => n,Wait(30)
";

/// A site whose users and peers lie in a database; `general` is more of its iax.conf.
fn site(name: &str, general: &str) -> Site {
    let site = Site::new(name).phone("alice").dialplan(DIALPLAN);
    let ip = site.sip.ip();
    site.add("iax.conf", &format!("[general]\nbindaddr = {ip}\ndisallow = all\nallow = ulaw\n{general}\n"))
}

/// A row that comes is looked up, a registration is written, an end is, and a crash loses neither.
fn comes_and_goes(home: Site, mut database: Database) {
    let ip = home.sip.ip();
    database.add("one");
    let mut server = Server::start(database.described(home));
    let (one, two) = (Peer::new(ip, ip), Peer::new(ip, ip));
    assert_eq!(one.register("one", SECRET), Outcome::Registered, "known since the start");
    let unknown = two.register("two", SECRET);
    assert_eq!(two.register("one", "something else"), unknown, "nobody and a wrong password");
    assert!(matches!(unknown, Outcome::Refused(_)), "{unknown:?}");
    database.add("two");
    assert_eq!(two.register("two", SECRET), Outcome::Registered, "a row that came");
    for (name, peer) in [("one", &one), ("two", &two)] {
        database.until_at(name, &peer.address());
        assert!(database.place(name).1, "{name}: until then");
    }
    let cache = server.json("sorcery memory cache show chan_iax2/iaxpeers");
    assert_eq!((cache["objects"].as_u64(), cache["failed"].as_u64()), (Some(2), Some(0)), "{cache}");
    server.kill_and_restart();
    let peers = server.json("iax2 show peers").to_string();
    for (name, peer) in [("one", &one), ("two", &two)] {
        assert!(
            peers.contains(&peer.socket.local_addr().expect("an address").port().to_string()),
            "{name}: {peers}"
        );
    }
    server.cli("iax2 unregister two");
    database.until_at("two", ":0");
    assert_eq!(database.place("one").0, one.address());
    database.sql("DELETE FROM iaxfriends WHERE name = 'one'");
    assert!(matches!(one.register("one", SECRET), Outcome::Refused(_)), "a row that is gone");
}

/// The database stops while peers register and call, and comes back.
fn goes_away(home: Site, mut database: Database) {
    let ip = home.sip.ip();
    for name in ["one", "two", "loop"] {
        database.add(name);
    }
    let mut server = Server::start(database.described(home));
    let (one, two) = (Peer::new(ip, ip), Peer::new(ip, ip));
    assert_eq!(one.register("one", SECRET), Outcome::Registered);
    database.until_at("one", &one.address());
    database.stop();
    let moved = Peer::new(ip, ip);
    assert_eq!(moved.register("one", SECRET), Outcome::Registered, "from another place");
    assert_eq!(two.register("two", SECRET), Outcome::Registered, "known since the start");
    let unknown = two.register("three", SECRET);
    assert_eq!(
        unknown,
        Outcome::Refused(Cause::SWITCH_CONGESTION),
        "nobody can say whether there is such a peer"
    );
    // What was not written when the process is killed is written by the next one, which knows who has registered from its
    // journal before it knows the rows.
    server.kill_and_restart();
    database.start();
    database.until_at("one", &moved.address());
    database.until_at("two", &two.address());
    assert!(database.place("one").1 && database.place("two").1);
    wait::until_true("peers are known again", || two.register("two", SECRET) == Outcome::Registered);
    database.add("three");
    assert_eq!(moved.register("three", SECRET), Outcome::Registered, "a row that came");
    server.assert_healthy();
}

#[test]
fn mariadb_stops_while_peers_register_and_no_row_is_lost() {
    let Some(server) = common::Server::mariadb() else { return };
    goes_away(site("iax-away-mariadb", "rtcachefriends = yes"), Database::on(server));
}

#[test]
fn postgresql_stops_while_peers_register_and_no_row_is_lost() {
    let Some(server) = common::Server::postgres() else { return };
    goes_away(site("iax-away-postgres", "rtcachefriends = yes"), Database::on(server));
}

#[test]
fn a_server_that_lies_keeps_nobody_of_the_file_out() {
    let home = site(
        "iax-lies",
        &format!("[known]\ntype = friend\nhost = dynamic\nsecret = {SECRET}\ncontext = incoming"),
    );
    let ip = home.sip.ip();
    let listener = std::net::TcpListener::bind((ip, 0)).expect("a port");
    let port = listener.local_addr().expect("an address").port();
    // What it says is no greeting of any database.
    let _liar = std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let _ = std::io::Write::write_all(&mut stream, b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
        }
    });
    let home = home
        .add("res_config_mysql.conf", &format!("[db]\ndbhost = {ip}\ndbport = {port}\ndbname = pbx\n"))
        .add(
            "extconfig.conf",
            "[settings]\niaxusers => mysql,db,iaxfriends\niaxpeers => mysql,db,iaxfriends\n",
        );
    let mut server = Server::start(home);
    let peer = Peer::new(ip, ip);
    assert_eq!(peer.register("known", SECRET), Outcome::Registered);
    assert_eq!(peer.register("other", SECRET), Outcome::Refused(Cause::SWITCH_CONGESTION));
    server.assert_healthy();
}

#[test]
fn a_row_that_came_is_dialled_without_a_reload() {
    let home = site("iax-dialled", "");
    let mut database = Database::sqlite(&home);
    let ip = home.sip.ip();
    let server = Server::start(database.described(home));
    let mut alice = Phone::new(server.site.sip, "alice");
    assert_ne!(alice.call("to-loop").status(), Some(200), "nobody knows it");
    database.add("loop");
    database.sql(&format!("UPDATE iaxfriends SET host = '{ip}' WHERE name = 'loop'"));
    alice.must_call("to-loop");
    alice.hang_up();
    server.until_idle();
}

#[test]
fn peers_of_sqlite_come_and_go_without_a_reload() {
    let home = site("iax-rows-sqlite", "");
    let database = Database::sqlite(&home);
    comes_and_goes(home, database);
}

#[test]
fn peers_of_mariadb_come_and_go_without_a_reload() {
    let Some(server) = common::Server::mariadb() else { return };
    comes_and_goes(site("iax-rows-mariadb", ""), Database::on(server));
}

#[test]
fn peers_of_postgresql_come_and_go_without_a_reload() {
    let Some(server) = common::Server::postgres() else { return };
    comes_and_goes(site("iax-rows-postgres", ""), Database::on(server));
}
