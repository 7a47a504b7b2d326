//! 50,000 endpoints of SIP in MariaDB: how long a start and a reload take, and a registration of who is known.
//!
//! Rows are remembered (`memory_cache`). A start is measured from the process to its "fully booted", a reload from
//! `core reload` until the last of the rows, which was changed before, is in force, asked for every 20 ms. Phones register 50 times a second, from one address: from some 60 a second on the program
//! shares its turns and naps up to 20 ms between them, which would be measured instead.

#[path = "../../../crates/realtime/tests/common/mod.rs"]
mod common;

use std::time::{Duration, Instant};

use e2e::{SECRET, Server, Site};
use loadbench::{Awake, Figure, QUIET_LOG, Registrars, short};

const ENDPOINTS: u64 = 50_000;
/// Of them register.
const PHONES: u64 = 500;
const RATE: u32 = 50;
const GOAL: &str = "the goal of this project";

const TABLES: [&str; 3] = [
    "CREATE TABLE ps_endpoints (id VARCHAR(40) PRIMARY KEY, context VARCHAR(40), disallow VARCHAR(80), \
     allow VARCHAR(80), direct_media VARCHAR(5), auth VARCHAR(80), aors VARCHAR(80), callerid VARCHAR(40))",
    "CREATE TABLE ps_auths (id VARCHAR(40) PRIMARY KEY, auth_type VARCHAR(20), username VARCHAR(40), password VARCHAR(80))",
    "CREATE TABLE ps_aors (id VARCHAR(40) PRIMARY KEY, max_contacts INTEGER, minimum_expiration INTEGER)",
];

fn main() {
    let _awake = Awake::keep();
    let Some(database) = common::Server::mariadb() else { return };
    let mut asked = common::open(database.settings());
    let phones = format!("FROM seq_0_to_{}", ENDPOINTS - 1);
    let rows = [
        format!(
            "INSERT INTO ps_endpoints SELECT CONCAT('phone', seq), 'test', 'all', 'ulaw', 'no', CONCAT('phone', seq), \
             CONCAT('phone', seq), CONCAT('<', seq, '>') {phones}"
        ),
        format!(
            "INSERT INTO ps_auths SELECT CONCAT('phone', seq), 'userpass', CONCAT('phone', seq), '{SECRET}' {phones}"
        ),
        format!("INSERT INTO ps_aors SELECT CONCAT('phone', seq), 1, 60 {phones}"),
    ];
    for sql in TABLES.into_iter().chain(rows.iter().map(String::as_str)) {
        common::wait_for_answer(&mut asked, common::raw(sql));
    }
    let kinds = ["endpoint", "auth", "aor"];
    let sorcery = kinds.map(|kind| {
        format!("{kind}/cache=memory_cache,object_lifetime_stale=600,object_lifetime_maximum=3600\n{kind}=realtime,ps_{kind}s\n")
    });
    let families = kinds.map(|kind| format!("ps_{kind}s => mysql,phones\n"));
    let mut site = Site::new("endpoints")
        .add("sorcery.conf", &format!("[res_pjsip]\n{}", sorcery.concat()))
        .add("extconfig.conf", &format!("[settings]\n{}", families.concat()))
        .add(
            "res_config_mysql.conf",
            &format!(
                "[phones]\ndbhost=127.0.0.1\ndbport={}\ndbname=pbx\ndbuser=pbx\ndbpass=s3cr#t'\nmax_connections=8\n",
                database.port()
            ),
        );
    site.rewrite("logger.conf", QUIET_LOG);
    let begun = Instant::now();
    let server = Server::start(site);
    let start = begun.elapsed();
    let last = format!("phone{}", ENDPOINTS - 1);
    let change = format!("UPDATE ps_endpoints SET callerid = 'Changed <1>' WHERE id = '{last}'");
    common::wait_for_answer(&mut asked, common::raw(&change));
    let shown =
        || server.json(&format!("pjsip show endpoint {last}"))["endpoints"][0]["caller_id"].to_string();
    assert!(!shown().contains("Changed"), "the row is remembered");
    let begun = Instant::now();
    server.cli("core reload");
    let answered = begun.elapsed();
    while !shown().contains("Changed") {
        assert!(begun.elapsed() < Duration::from_secs(60), "the rows are not taken");
        std::thread::sleep(Duration::from_millis(20));
    }
    let reload = begun.elapsed();
    println!("  the reload's answer came after {:.2} s", answered.as_secs_f64());
    for (name, value, target) in
        [("realtime endpoints, start", start, 3.0), ("realtime endpoints, reload", reload, 1.0)]
    {
        let (value, unit) = (value.as_secs_f64(), "s with 50,000 endpoints");
        Figure { name, value, unit, target, baseline: target, baseline_name: GOAL }.publish();
    }
    let phones = Registrars::start(server.site.sip, e2e::address(), PHONES, SECRET, RATE);
    // Each once.
    std::thread::sleep(Duration::from_secs(PHONES / u64::from(RATE)));
    let _cold = phones.take_times();
    std::thread::sleep(Duration::from_secs(if short() { 2 } else { 15 }));
    let times = phones.take_times();
    assert_eq!(phones.refused(), 0, "registrations were refused");
    let value = times.permille(990).as_secs_f64() * 1e3;
    println!(
        "  {} registrations, half in {:.2} ms, 99 % in {value:.2} ms",
        times.count(),
        times.permille(500).as_secs_f64() * 1e3
    );
    let (name, unit) = ("realtime endpoints, REGISTER", "ms from REGISTER to 200, 99 %");
    Figure { name, value, unit, target: 5.0, baseline: 5.0, baseline_name: GOAL }.publish();
}
