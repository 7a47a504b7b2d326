//! What the shard pays for each thing it writes down, and what a large configuration costs to read.
//!
//! `cargo run --release -p store --example cost`

use call::{Cdr, Level};
use conf::{Findings, Memory, Options};
use std::time::Instant;
use store::astdb::AstDb;
use store::cdr::CdrSink;
use store::config::cdr::CdrCsv;
use store::config::logger::{Channel, Formatter, Levels, Logger, Target};
use store::config::pjsip::Pjsip;
use store::journal::Journal;
use store::log::LogSink;

fn each(name: &str, times: u32, mut what: impl FnMut(u32)) {
    let start = Instant::now();
    (0..times).for_each(&mut what);
    println!("{name}: {:.2} us", start.elapsed().as_secs_f64() * 1e6 / f64::from(times));
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let dir = std::env::temp_dir().join(format!("strowger-cost-{}", std::process::id()));
    std::fs::create_dir_all(&dir)?;

    let record = Cdr {
        clid: "\"Somebody\" <1001>".into(),
        channel: "PJSIP/1001-00000001".into(),
        dst_channel: "PJSIP/1002-00000002".into(),
        last_app: "Dial".into(),
        last_data: "PJSIP/1002,20".into(),
        ..Cdr::default()
    };
    let mut cdr = CdrSink::start(&dir, &CdrCsv::default())?;
    each("cdr, handed over", 20_000, |_| {
        cdr.write(record.clone());
    });
    let start = Instant::now();
    drop(cdr);
    println!("cdr, rest of 20,000 to the disk: {:.1} ms", start.elapsed().as_secs_f64() * 1e3);

    let mut db = AstDb::open(&dir.join("astdb.sqlite3"))?;
    each("astdb, put", 50_000, |n| {
        db.put("family", &(n % 5_000).to_string(), "value");
    });
    each("astdb, get", 200_000, |n| {
        std::hint::black_box(db.get("family", if n % 2 == 0 { "17" } else { "4711" }));
    });
    let start = Instant::now();
    drop(db);
    println!("astdb, rest of 50,000 to the disk: {:.0} ms", start.elapsed().as_secs_f64() * 1e3);

    let (mut journal, _) = Journal::open(&dir.join("registrations"))?;
    let contact = [b'x'; 300];
    each("journal, append of 300 bytes", 50_000, |_| {
        let _ = journal.append(&contact);
    });
    drop(journal);

    let file = Channel {
        target: Target::File("full".into()),
        formatter: Formatter::Default,
        levels: Levels::ALL,
        verbose: None,
    };
    let mut logger = Logger { channels: vec![file], ..Logger::default() };
    logger.general.logger_queue_limit = 1_000_000;
    let (sink, log) = LogSink::start(&logger, &dir, None)?;
    each("log, a line somebody reads", 100_000, |_| {
        log.line(Level::Notice, "app_dial", "PJSIP/1001-00000001 rings")
    });
    each("log, a line nobody reads", 1_000_000, |_| log.line(Level::Verbose(5), "app_dial", "nothing"));
    sink.flush();

    let mut text = String::from(
        "[t](!)\ntype=endpoint\ncontext=internal\ndisallow=all\nallow=ulaw\nrtp_symmetric=yes\n",
    );
    for n in 0..10_000 {
        text += &format!(
            "[{n}](t)\nauth={n}\naors={n}\n[{n}]\ntype=auth\nusername={n}\npassword=a-long-password-{n}\n[{n}]\ntype=aor\nmax_contacts=1\n"
        );
    }
    let source = Memory::new().with("pjsip.conf", text);
    let mut findings = Findings::new();
    let start = Instant::now();
    let file = conf::load(&source, "pjsip.conf", Options::default(), &mut findings)?;
    println!("conf, 10,000 phones read: {:.0} ms", start.elapsed().as_secs_f64() * 1e3);
    let start = Instant::now();
    let pjsip = Pjsip::read(&file, &mut findings);
    println!(
        "conf, {} endpoints typed: {:.0} ms",
        pjsip.endpoints.len(),
        start.elapsed().as_secs_f64() * 1e3
    );
    std::fs::remove_dir_all(&dir)?;
    Ok(())
}
