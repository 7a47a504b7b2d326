//! IAX2 registrations of peers whose rows lie in MariaDB: by the driver inside the program and through unixODBC, with rows
//! remembered (`rtcachefriends`) and written behind (`rtupdate`); with nothing remembered; while the database is stopped.
//!
//! The generator, the source addresses and how things are counted are those of the bench `iax`. MariaDB is Debian's, on a
//! port of its own on the same machine; its processor time is not counted, and that of the processes of ODBC drivers is.
//! Both have eight connections. With nothing remembered all peers come at once, from a database on this machine, whose
//! processors then do the work of peers, program and database, and from one a millisecond away, as the next machine is.
//! `STROWGER_BENCH_ONLY` names a row, `STROWGER_BENCH_SHORT` shortens everything.

#[path = "../../../crates/realtime/tests/common/mod.rs"]
mod common;

use std::cell::RefCell;
use std::process::Command;
use std::time::{Duration, Instant};

use e2e::{SECRET, Server, Site};
use loadbench::{Awake, Figure, IAX_PEERS, Meter, QUIET_LOG, far_away, iax_peers, iax_window, short};
use realtime::{Answer, Connection, Databases, Filter, Load, Order, Query, Target, Ticket};

/// Registrations a second, as many as 15,000 in a minute.
const RATE: f64 = 250.0;
const ADDRESSES: u16 = 8;
const ROUNDS: usize = 3;
/// So many times as long as their SELECTs alone all peers may take of whom nothing is remembered.
const COLD_TIMES: f64 = 1.2;
/// Connections to the database, of the program and of whoever asks without it.
const CONNECTIONS: u32 = 8;
const GOAL: &str = "the goal of this project";
/// From here to a database on another machine, and as long again back.
const EACH_WAY: Duration = Duration::from_millis(1);
/// Where Debian has the driver.
const DRIVER: &str = "/usr/lib/x86_64-linux-gnu/odbc/libmaodbc.so";
const TABLE: &str = "CREATE TABLE iaxfriends (name VARCHAR(40) PRIMARY KEY, type VARCHAR(10), secret VARCHAR(80), \
                     context VARCHAR(40), host VARCHAR(40), ipaddr VARCHAR(45), port INTEGER, regseconds BIGINT)";

/// How the program reaches the rows.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    Native,
    Odbc,
}

impl Way {
    fn name(self) -> &'static str {
        match self {
            Self::Native => "native",
            Self::Odbc => "ODBC",
        }
    }
}

/// One window, and what the program itself took of it.
struct Calm {
    window: loadbench::IaxWindow,
    /// Percent of one core, without the processes of drivers.
    alone: f64,
}

/// The database and the program.
struct Bench {
    database: common::Server,
    asked: Databases,
    /// Where the program finds the database.
    port: u16,
    server: Server,
}

impl Bench {
    /// `more` goes into the general section of iax.conf.
    fn start(way: Way, more: &str) -> Option<Self> {
        Self::start_at(way, more, Duration::ZERO)
    }
    /// The same with a database that is so far away.
    fn start_at(way: Way, more: &str, each_way: Duration) -> Option<Self> {
        if way == Way::Odbc && !std::path::Path::new(DRIVER).exists() {
            println!("skipped: odbc-mariadb is not installed");
            return None;
        }
        let database = common::Server::mariadb()?;
        let mut asked = common::open(database.settings());
        common::wait_for_answer(&mut asked, common::raw(TABLE));
        let rows = format!(
            "INSERT INTO iaxfriends (name, type, secret, context, host) \
             SELECT CONCAT('peer', seq), 'friend', '{SECRET}', 'default', 'dynamic' FROM seq_0_to_{}",
            IAX_PEERS - 1
        );
        common::wait_for_answer(&mut asked, common::raw(&rows));
        let port = match each_way {
            Duration::ZERO => database.port(),
            _ => far_away(([127, 0, 0, 1], database.port()).into(), each_way).expect("a port").port(),
        };
        let server = Server::start(site(way, port, more));
        Some(Self { database, asked, port, server })
    }
    /// The database as the program reaches it.
    fn settings(&self) -> Connection {
        let url = format!("mysql://pbx:s3cr%23t'@127.0.0.1:{}/pbx", self.port);
        Connection { target: Target::from_url(&url).expect("a database"), ..self.database.settings() }
    }
    /// One value that the database gives.
    fn number(&mut self, sql: &str) -> u64 {
        match common::wait_for_answer(&mut self.asked, common::raw(sql)) {
            Answer::Set(set) => {
                let last = set.rows.first().and_then(|row| row.last().cloned().flatten());
                last.and_then(|text| text.parse().ok()).unwrap_or_default()
            }
            _ => 0,
        }
    }
    /// Queries that it was asked so far.
    fn selects(&mut self) -> u64 {
        self.number("SHOW GLOBAL STATUS LIKE 'Com_select'")
    }
    /// Statements by which rows were written so far; one may write many.
    fn updates(&mut self) -> u64 {
        self.number("SHOW GLOBAL STATUS LIKE 'Com_update'")
    }
    /// What the database has taken of the processors.
    fn database(&self) -> Meter {
        Meter::new(self.database.pid().expect("it runs"))
    }
    /// Rows that say where their peer is.
    fn placed(&mut self) -> u64 {
        self.number("SELECT COUNT(*) FROM iaxfriends WHERE regseconds > 0")
    }
    /// The program and the processes that it has started.
    fn meters(&self) -> Vec<Meter> {
        let children = Command::new("pgrep").args(["-P", &self.server.pid().to_string()]).output();
        let children = children.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
        let children = children.unwrap_or_default();
        let ids = children.lines().filter_map(|line| line.trim().parse().ok());
        std::iter::once(self.server.pid()).chain(ids).map(Meter::new).collect()
    }
    fn peers(&self, rate: f64) -> loadtest::Registrations {
        iax_peers((self.server.site.sip.ip(), 4569).into(), ADDRESSES, rate)
    }
}

fn site(way: Way, port: u16, more: &str) -> Site {
    let mut site = Site::new("iax-rows");
    let iax = format!("[general]\nbindaddr={}\nrtcachefriends=yes\nrtupdate=yes\n{more}", site.sip.ip());
    site.append("iax.conf", &iax);
    let driver = match way {
        Way::Native => {
            let lines = format!(
                "[phones]\ndbhost=127.0.0.1\ndbport={port}\ndbname=pbx\ndbuser=pbx\ndbpass=s3cr#t'\nmax_connections={CONNECTIONS}\n"
            );
            site.append("res_config_mysql.conf", &lines);
            "mysql"
        }
        Way::Odbc => {
            let source =
                format!("[bench]\nDriver={DRIVER}\nServer=127.0.0.1\nPort={port}\nDatabase=pbx\nOPTION=2\n");
            site.place.write("odbc.ini", &source);
            let lines = format!(
                "[ENV]\nODBCINI => {}\n[phones]\nenabled => yes\ndsn => bench\nusername => pbx\npassword => s3cr#t'\n\
                 pre-connect => yes\nmax_connections => {CONNECTIONS}\n",
                site.place.join("odbc.ini").display()
            );
            site.append("res_odbc.conf", &lines);
            "odbc"
        }
    };
    let families = ["iaxusers", "iaxpeers"].map(|family| format!("{family} => {driver},phones,iaxfriends\n"));
    site.append("extconfig.conf", &format!("[settings]\n{}", families.concat()));
    site.rewrite("logger.conf", QUIET_LOG);
    site
}

/// 15,000 registrations in a minute, all rows known.
fn calm(way: Way) {
    let Some(mut bench) = Bench::start(way, "") else { return };
    let mut best: Option<Calm> = None;
    for _ in 0..ROUNDS {
        let (meters, peers) = (bench.meters(), bench.peers(RATE));
        let start: Vec<_> = meters.iter().map(Meter::read).collect();
        // The first is the program; the window reads at its begin and at its end.
        let own = RefCell::new(Vec::new());
        let cpu = || {
            let each: Vec<f64> =
                meters.iter().zip(&start).map(|(meter, start)| meter.read().cpu_since(start)).collect();
            own.borrow_mut().extend(each.first().copied());
            each.iter().sum()
        };
        let (asked, before) = (bench.selects(), Instant::now());
        let window = iax_window(&peers, &cpu, 60.0);
        window.tell(&format!("rows, {}", way.name()), RATE);
        let asked = bench.selects() - asked;
        let spent = match own.borrow()[..] {
            [begin, .., end] => end - begin,
            _ => 0.0,
        };
        let alone = spent * 100.0 / window.report.length.as_secs_f64();
        println!(
            "  {asked} queries in {:.0} s; {alone:.2} % of one core by the program alone",
            before.elapsed().as_secs_f64()
        );
        if best.as_ref().is_none_or(|best| window.percent < best.window.percent) {
            best = Some(Calm { window, alone });
        }
        if best.as_ref().is_some_and(|best| best.window.percent <= 3.0 && best.window.p99_ms() <= 2.0) {
            break;
        }
    }
    let Some(Calm { window, alone }) = best else { return };
    assert!(window.is_whole(), "registrations were lost or refused");
    let name = format!("iax rows, {}", way.name());
    let (value, unit) = (window.percent, "% of one core");
    Figure { name: &name, value, unit, target: 3.0, baseline: 3.0, baseline_name: GOAL }.publish();
    if way == Way::Odbc {
        let (name, value) = ("iax rows, ODBC, program", alone);
        Figure { name, value, unit, target: 3.0, baseline: 3.0, baseline_name: GOAL }.publish();
    }
    let name = format!("iax rows, {}, time", way.name());
    let (value, unit) = (window.p99_ms(), "ms from REGREQ to REGACK, 99 %");
    Figure { name: &name, value, unit, target: 2.0, baseline: 2.0, baseline_name: GOAL }.publish();
}

/// How long a SELECT for each peer takes, by nobody but a pool like the program's, and what they take of the processors in the
/// database; seconds.
fn selects_alone(bench: &Bench) -> (f64, f64) {
    let mut connection = bench.settings();
    (connection.connections_max, connection.at_once) = (CONNECTIONS, true);
    let mut pool = common::open(connection);
    common::wait_for_answer(&mut pool, common::raw("SELECT 1"));
    let (mut next, mut come) = (0, 0);
    let (mut answers, mut turned) = (Vec::new(), Vec::new());
    let meter = bench.database();
    let (before, begun) = (meter.read(), Instant::now());
    while come < u64::from(IAX_PEERS) {
        while next < u64::from(IAX_PEERS) {
            let filters = vec![Filter::is("name", format!("peer{next}"))];
            // What has an order the pool asks by itself: this is what is to be saved.
            let order = vec![Order { column: "name".into(), descending: false }];
            let load = Load { table: "iaxfriends".into(), filters, order, limit: Some(1) };
            // Full: the rest when there are answers.
            if pool.submit("db", Ticket { asker: 0, number: next }, Query::Load(load)).is_err() {
                break;
            }
            next += 1;
        }
        pool.wait(Duration::from_secs(1));
        pool.drain(&mut answers, &mut turned);
        come += answers.len() as u64;
        for (_, answer) in answers.drain(..) {
            assert!(matches!(answer, Ok(Answer::Rows(rows)) if rows.len() == 1), "the row of a peer");
        }
        assert!(begun.elapsed() < Duration::from_secs(60), "{come} answers");
    }
    (begun.elapsed().as_secs_f64(), meter.read().cpu_since(&before))
}

/// Nothing is remembered, and all peers come as fast as their SELECTs alone were answered by a database so far away. A round
/// that misses its figure is measured again, and the best counts.
fn cold(each_way: Duration, place: &str) {
    let Some(mut bench) = Bench::start_at(Way::Native, "", each_way) else { return };
    let rounds: Vec<_> = (0..ROUNDS).map(|_| selects_alone(&bench)).collect();
    let least = |of: fn(&(f64, f64)) -> f64| rounds.iter().map(of).fold(f64::INFINITY, f64::min);
    let alone = (least(|round| round.0), least(|round| round.1));
    let (mut queries, mut times) = (0.0_f64, f64::INFINITY);
    for _ in 0..ROUNDS {
        let (asked, total) = all_at_once(&mut bench, place, alone);
        queries = queries.max(asked as f64 / f64::from(IAX_PEERS));
        times = times.min(total / alone.0);
        if times <= COLD_TIMES {
            break;
        }
    }
    let (name, unit) = (format!("iax rows, cold{place}, queries"), "queries a peer");
    Figure { name: &name, value: queries, unit, target: 1.0, baseline: 1.0, baseline_name: GOAL }.publish();
    let name = format!("iax rows, cold{place}, time");
    let (value, unit) = (times, "times their SELECTs alone");
    let baseline_name = "the SELECTs through a pool like the program's";
    Figure { name: &name, value, unit, target: COLD_TIMES, baseline: 1.0, baseline_name }.publish();
}

/// How many queries were asked for all peers of whom nothing is remembered, and seconds until the last has registered. `alone`
/// is what [`selects_alone`] gives.
fn all_at_once(bench: &mut Bench, place: &str, (alone, worked_alone): (f64, f64)) -> (u64, f64) {
    for cache in ["chan_iax2/iaxusers", "chan_iax2/iaxpeers"] {
        bench.server.cli(&format!("sorcery memory cache expire {cache}"));
    }
    let (meter, database) = (Meter::new(bench.server.pid()), bench.database());
    let (asked, updates) = (bench.selects(), bench.updates());
    let (before, worked) = (meter.read(), database.read());
    let begun = Instant::now();
    let peers = bench.peers(f64::from(IAX_PEERS) / alone);
    let (report, total) = loop {
        std::thread::sleep(Duration::from_millis(2));
        let report = peers.report();
        let has_begun = report.begun >= u64::from(IAX_PEERS);
        if has_begun {
            peers.set_rate(1e-3);
        }
        // Some may have begun once more before they were told to rest.
        let done = report.registered + report.refused + report.lost;
        if has_begun && done >= report.begun || begun.elapsed() > Duration::from_secs(30) {
            break (report, begun.elapsed().as_secs_f64());
        }
    };
    let (cpu, worked) = (meter.read().cpu_since(&before), database.read().cpu_since(&worked));
    let (asked, updates) = (bench.selects() - asked, bench.updates() - updates);
    println!(
        "  cold{place}: {} begun, {} registered, {} refused, {} lost; {asked} queries, {updates} updates; {:.1} us of one core each; 99 % in {:.1} ms; \
         all in {total:.2} s, their SELECTs alone in {alone:.2} s; the database worked {worked:.2} s, {worked_alone:.2} s for their \
         SELECTs alone",
        report.begun,
        report.registered,
        report.refused,
        report.lost,
        cpu * 1e6 / report.registered.max(1) as f64,
        report.time.permille(990).as_secs_f64() * 1e3
    );
    (asked, total)
}

/// The database stops under 250 registrations a second, and comes back.
fn stopped() {
    // Nobody's registration lapses before its row could be written.
    let Some(mut bench) = Bench::start(Way::Native, "minregexpire=3600\nmaxregexpire=3600\n") else { return };
    let away = match std::env::var("STROWGER_BENCH_AWAY").ok().and_then(|seconds| seconds.parse().ok()) {
        Some(seconds) => Duration::from_secs(seconds),
        None if short() => Duration::from_secs(5),
        None => Duration::from_secs(600),
    };
    // Nobody has registered before it stops, and nobody does after it is back: each row that is there then is one that has
    // waited.
    bench.database.stop();
    let peers = bench.peers(RATE);
    std::thread::sleep(away);
    peers.set_rate(1e-3);
    std::thread::sleep(Duration::from_secs(1));
    let report = peers.report();
    bench.database.start(false);
    let came = Instant::now();
    let wanted = report.registered.min(u64::from(IAX_PEERS));
    while bench.placed() < wanted && came.elapsed() < Duration::from_secs(120) {
        std::thread::sleep(Duration::from_millis(100));
    }
    let placed = bench.placed();
    println!(
        "  without a database for {} s: {} registered, {} refused, {} lost; 99 % in {:.2} ms; {placed} of {wanted} rows \
         written {:.1} s after it is back",
        away.as_secs(),
        report.registered,
        report.refused,
        report.lost,
        report.time.permille(990).as_secs_f64() * 1e3,
        came.elapsed().as_secs_f64()
    );
    for (name, value, unit) in [
        ("iax rows, stopped, refused", report.refused + report.lost, "registrations refused or lost"),
        ("iax rows, stopped, rows lost", wanted.saturating_sub(placed), "rows that are not written"),
    ] {
        let (value, baseline_name) = (value as f64, "at most");
        Figure { name, value, unit, target: 0.0, baseline: 0.0, baseline_name }.publish();
    }
}

fn main() {
    let _awake = Awake::keep();
    let only = std::env::var("STROWGER_BENCH_ONLY").ok();
    let wanted = |row: &str| only.as_ref().is_none_or(|only| only == row);
    for (row, way) in [("iax_rows_native", Way::Native), ("iax_rows_odbc", Way::Odbc)] {
        if wanted(row) {
            calm(way);
        }
    }
    if wanted("iax_rows_cold") {
        cold(Duration::ZERO, "");
        cold(EACH_WAY, ", away");
    }
    if wanted("iax_rows_stopped") {
        stopped();
    }
}
