//! Users and peers of IAX2 in a database: looked up while running, registered while it is away, their rows written behind.

mod database;

use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::time::Duration;

use base::{Cause, Instant};
use database::{Database, common};
use e2e::{Phone, Server, Site, wait};
use iax2::machine::{Event, Registration};
use iax2::{Machine, Out, Secret, Settings};

const SECRET: &str = "between the two of us";

const TABLE: &str = "CREATE TABLE iaxfriends (name VARCHAR(40) PRIMARY KEY, type VARCHAR(10), secret VARCHAR(40), \
                     context VARCHAR(40), host VARCHAR(40), ipaddr VARCHAR(40), port INTEGER, regseconds INTEGER, \
                     regserver VARCHAR(40), requirecalltoken VARCHAR(5), tenant INTEGER)";

/// A table of users and peers.
struct Friends(Database);

impl Friends {
    fn of(mut database: Database) -> Self {
        database.sql(TABLE);
        Self(database)
    }
    fn described(&self, site: Site) -> Site {
        self.0.described(site, &[("iaxusers", "iaxfriends"), ("iaxpeers", "iaxfriends")])
    }
    fn sql(&mut self, text: &str) -> Vec<Vec<String>> {
        self.0.sql(text)
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
fn comes_and_goes(home: Site, database: Database) {
    let ip = home.sip.ip();
    let mut database = Friends::of(database);
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
fn goes_away(home: Site, database: Database) {
    let ip = home.sip.ip();
    let mut database = Friends::of(database);
    for name in ["one", "two", "loop"] {
        database.add(name);
    }
    let mut server = Server::start(database.described(home));
    let (one, two) = (Peer::new(ip, ip), Peer::new(ip, ip));
    assert_eq!(one.register("one", SECRET), Outcome::Registered);
    database.until_at("one", &one.address());
    database.0.stop();
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
    database.0.start();
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
    let mut database = Friends::of(Database::sqlite(&home));
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
fn a_row_that_changed_is_asked_for_anew_once_it_was_pruned() {
    let home = site("iax-prune", "rtcachefriends = yes");
    let mut database = Friends::of(Database::sqlite(&home));
    database.add("one");
    let ip = home.sip.ip();
    let server = Server::start(database.described(home));
    let one = Peer::new(ip, ip);
    assert_eq!(one.register("one", SECRET), Outcome::Registered);
    database.sql("UPDATE iaxfriends SET secret = 'another one since today'");
    for prune in ["one", "all"] {
        assert_eq!(one.register("one", SECRET), Outcome::Registered, "what is remembered holds");
        server.cli(&format!("iax2 prune realtime {prune}"));
        assert!(matches!(one.register("one", SECRET), Outcome::Refused(_)), "{prune}: the row is another");
        database.sql(&format!("UPDATE iaxfriends SET secret = '{SECRET}'"));
        server.cli("iax2 prune realtime one");
        assert_eq!(one.register("one", SECRET), Outcome::Registered);
        database.sql("UPDATE iaxfriends SET secret = 'another one since today'");
    }
    assert!(!server.run("iax2 prune realtime nobody").status.success());
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

#[test]
fn a_system_writes_its_name_forgets_who_has_gone_and_writes_all_rows_before_it_ends() {
    let options = "rtcachefriends = yes\nrtautoclear = yes\nrtsavesysname = yes";
    let home = site("iax-options", options).add("asterisk.conf", "systemname = here\n");
    let ip = home.sip.ip();
    let mut database = Friends::of(Database::sqlite(&home));
    database.add("one");
    let mut server = Server::start(database.described(home));
    let peer = Peer::new(ip, ip);
    let objects = |server: &Server| {
        server.json("sorcery memory cache show chan_iax2/iaxpeers")["objects"].as_u64().expect("a count")
    };
    assert_eq!(peer.register("one", SECRET), Outcome::Registered);
    database.until_at("one", &peer.address());
    assert_eq!(database.sql("SELECT regserver FROM iaxfriends"), [["here"]]);
    assert_eq!(objects(&server), 1);
    server.cli("iax2 unregister one");
    database.until_at("one", ":0");
    assert_eq!(database.sql("SELECT regserver FROM iaxfriends"), [[""]]);
    wait::until_true("its row is forgotten", || objects(&server) == 0);

    // The row of a registration is gathered for a fifth of a second; an end waits for it.
    assert_eq!(peer.register("one", SECRET), Outcome::Registered);
    server.signal("TERM");
    wait::until_true("the process has ended", || server.ended().is_some());
    assert_eq!(database.place("one"), (peer.address(), true));
}

#[test]
fn a_peer_is_called_where_its_row_says_that_it_was_when_that_may_be_long_ago() {
    for (name, option, answer) in [("iax-old", "no", None), ("iax-old-ignored", "yes", Some(200))] {
        let home = site(name, &format!("rtcachefriends = yes\nrtignoreregexpire = {option}"));
        let ip = home.sip.ip();
        let mut database = Friends::of(Database::sqlite(&home));
        database.add("loop");
        database.sql(&format!("UPDATE iaxfriends SET ipaddr = '{ip}', port = 4569, regseconds = 1"));
        let server = Server::start(database.described(home));
        let mut alice = Phone::new(server.site.sip, "alice");
        let status = alice.call("to-loop").status();
        assert_eq!(status == Some(200), answer.is_some(), "{option}: {status:?}");
        if answer.is_some() {
            alice.hang_up();
        }
        server.until_idle();
    }
}
