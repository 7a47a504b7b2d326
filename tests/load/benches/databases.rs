//! What a look-up in MariaDB costs, by the driver in the program and through unixODBC: processor time, and how many a second.

#[path = "../../../crates/realtime/tests/common/mod.rs"]
mod common;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use common::{open, raw, wait_for_answer};
use loadbench::{Figure, Meter, median, short};
use realtime::{Connection, Databases, Filter, Load, Query, Source, Target, Ticket};

/// Where Debian's package puts the driver.
const DRIVERS: [&str; 2] =
    ["/usr/lib/x86_64-linux-gnu/odbc/libmaodbc.so", "/usr/lib/aarch64-linux-gnu/odbc/libmaodbc.so"];
/// Rows of the table: the peers of a large site.
const PEERS: u64 = 15_000;
/// Questions on their way at once.
const OPEN: usize = 64;
/// Connections of each database.
const CONNECTIONS: u32 = 4;

/// What a round of questions took: seconds by the clock, and on processors, for one.
#[derive(Clone, Copy)]
struct Cost {
    wall: f64,
    cpu: f64,
}

fn main() {
    let Some(driver) = DRIVERS.into_iter().find(|path| Path::new(path).exists()) else {
        return println!("skipped: odbc-mariadb is not installed");
    };
    let Some(server) = common::Server::mariadb() else { return };
    let mut native = open(Connection { connections_max: CONNECTIONS, ..server.settings() });
    fill(&mut native);
    let folder = tempfile::tempdir().expect("a folder");
    let lines = format!(
        "[pbx]\nDriver = {driver}\nServer = 127.0.0.1\nPort = {}\nDatabase = pbx\nUser = pbx\n",
        server.port()
    );
    let file = folder.path().join("odbc.ini");
    std::fs::write(&file, lines).expect("a file");
    let source = Source {
        dsn: "pbx".to_owned(),
        user: "pbx".to_owned(),
        password: "s3cr#t'".to_owned(),
        environment: vec![("ODBCINI".to_owned(), file.display().to_string())],
        program: Some(e2e::program().with_file_name("strowger-odbc")),
    };
    let target = Target::Odbc(source);
    let mut odbc = open(Connection { connections_max: CONNECTIONS, ..Connection::new("db", target) });
    let (rounds, questions) = if short() { (1, 200) } else { (7, 10_000) };
    // The first round connects and prepares.
    round(&mut native, questions / 10);
    round(&mut odbc, questions / 10);
    let (mut natively, mut by_odbc) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        natively.push(round(&mut native, questions));
        by_odbc.push(round(&mut odbc, questions));
    }
    let of = |costs: &[Cost], what: fn(&Cost) -> f64| median(costs.iter().map(what)) * 1e6;
    for (name, what, target) in [
        ("odbc_query_cpu", (|cost| cost.cpu) as fn(&Cost) -> f64, 300.0),
        ("odbc_query", |cost| cost.wall, 300.0),
    ] {
        Figure {
            name,
            value: of(&by_odbc, what),
            unit: "us",
            target,
            baseline: of(&natively, what),
            baseline_name: "built-in driver, same run",
        }
        .publish();
    }
}

/// Makes the table and its rows.
fn fill(databases: &mut Databases) {
    let table = "CREATE TABLE iaxfriends (name VARCHAR(40) PRIMARY KEY, type VARCHAR(10), username VARCHAR(40), secret VARCHAR(40), \
                 context VARCHAR(40), host VARCHAR(40), ipaddr VARCHAR(45), port INT, regseconds BIGINT, callerid VARCHAR(80), \
                 disallow VARCHAR(100), allow VARCHAR(100), requirecalltoken VARCHAR(5), qualify VARCHAR(10))";
    wait_for_answer(databases, raw(table));
    for first in (0..PEERS).step_by(1_000) {
        let row = |number: u64| {
            format!(
                "('peer{number}','friend','peer{number}','a-long-secret-{number}','phones','dynamic',NULL,0,0,\
                 'Peer <{number}>','all','ulaw,alaw','yes','no')"
            )
        };
        let rows: Vec<String> = (first..first + 1_000).map(row).collect();
        databases.ask("db", raw(&format!("INSERT INTO iaxfriends VALUES {}", rows.join(",")))).expect("rows");
    }
}

/// Asks for so many rows by their key, and waits for all of them.
fn round(databases: &mut Databases, questions: u64) -> Cost {
    let query = |number: u64| {
        let filters = vec![Filter::is("name", format!("peer{}", number * 7_919 % PEERS))];
        Query::Load(Load { table: "iaxfriends".into(), filters, limit: Some(1), ..Load::default() })
    };
    // The processes of a database that has had a round are there already.
    let meters: Vec<Meter> = [std::process::id()].into_iter().chain(programs()).map(Meter::new).collect();
    let before: Vec<_> = meters.iter().map(Meter::read).collect();
    let start = Instant::now();
    let (mut asked, mut answered) = (0, 0);
    let (mut answers, mut turned) = (Vec::new(), Vec::new());
    while answered < questions {
        while asked < questions && asked - answered < OPEN as u64 {
            databases.submit("db", Ticket { asker: 0, number: asked }, query(asked)).expect("it is taken");
            asked += 1;
        }
        databases.wait(Duration::from_secs(10));
        databases.drain(&mut answers, &mut turned);
        for (_, answer) in answers.drain(..) {
            answer.expect("an answer");
            answered += 1;
        }
    }
    let wall = start.elapsed().as_secs_f64() / questions as f64;
    let cpu: f64 = meters.iter().zip(&before).map(|(meter, before)| meter.read().cpu_since(before)).sum();
    Cost { wall, cpu: cpu / questions as f64 }
}

/// The processes that speak ODBC for this one.
fn programs() -> Vec<u32> {
    let tasks = std::fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    let children = tasks.filter_map(|task| std::fs::read_to_string(task.path().join("children")).ok());
    let numbers: Vec<u32> = children
        .flat_map(|line| line.split_whitespace().filter_map(|word| word.parse().ok()).collect::<Vec<u32>>())
        .collect();
    let is_one = |number: &u32| {
        let name = std::fs::read_to_string(PathBuf::from(format!("/proc/{number}/comm"))).unwrap_or_default();
        name.trim() == "strowger-odbc"
    };
    numbers.into_iter().filter(is_one).collect()
}
