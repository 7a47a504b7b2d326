//! What calls of every kind cost the whole program, on the back-end that needs nothing and on the best there is.
//!
//! Each point starts the program on a configuration of its own with one media thread, has `loadtest` make the calls from
//! another processor, and reads what the scheduler has counted for all threads of the process. Column C: `media_io=epoll` on
//! the loopback interface. Column A: `media_io=xdp` across a veth pair between two network namespaces; without the
//! privileges for that it is skipped, and said. Callers send 50 packets a second in every row, as phones do, unless the row
//! says otherwise.
//!
//! Soft interrupts (column A): each end of the wire is served by a thread of the kernel on the processor of those it
//! belongs to ([`Ground::wire`]), as two machines would be. What the program's end takes, and the kernel's own threads for
//! soft interrupts, are what is counted beside the process; what the phones' end takes is theirs.
//!
//! Others share the machine, so a point that misses what it is asked for is measured anew, up to [`ROUNDS`] times, with its
//! baseline; the best round is published, and what every round gave beside it.
//!
//! A thread a call, waiting with `poll`, is measured in the same run; a ratio to it counts only while it takes 11 us a packet
//! at most. `STROWGER_BENCH_ONLY` names rows, and columns as `row_a`; `STROWGER_BENCH_IO` another back-end for column C, to
//! compare; `STROWGER_BENCH_SHORT` shortens everything.

use std::net::SocketAddr;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use base::{FormatId, FormatSet};
use e2e::{Server, Site};
use io::media::IoWish;
use loadbench::{Awake, Ground, Meter, QUIET_LOG, World, ksoftirqd, short, thread_per_call};
use loadtest::{Hear, Load, Media, Plan, Report};
use serde_json::json;

/// Hertz of the prompts and of the music.
const PITCH: f64 = 440.0;
/// Length of the prompts, longer than any point takes.
const PROMPT_SECONDS: f64 = 60.0;
/// Port of the callees.
const CALLEES: u16 = 5062;
/// Calls a second that are begun.
const RATE: f64 = 500.0;
/// A baseline that takes more microseconds a packet is that of a machine that is too busy to compare on.
const BASELINE_MAX: f64 = 11.0;
/// Packets lost in a hundred from which on the calls are too many for this machine; then half of them are measured.
const LOSS_MAX: f64 = 0.5;
/// Listens that did not hear what they ought to, in a hundred, from which on it is the same.
const WRONG_MAX: f64 = 1.0;

/// The grid of 20 ms: which share of packets deviates by no more than so many milliseconds.
const GRID: [(&str, u64, f64); 2] = [("p99", 990, 1.0), ("p999", 999, 5.0)];
/// Streams from which on it is asked for.
const GRID_STREAMS: u64 = 5000;
/// Times at most that one point is measured.
const ROUNDS: usize = 3;

/// What the calls of a row do.
#[derive(Clone, Copy)]
struct Row {
    name: &'static str,
    title: &'static str,
    /// The number that is dialled; see [`DIALPLAN`].
    number: &'static str,
    offers: FormatId,
    /// The format of callees; a row with them has bridges.
    accepts: Option<FormatId>,
    media: Media,
    hear: Hear,
    /// Lines for rtp.conf.
    rtp: &'static str,
    /// Packets that the program sends in a second of one call.
    packets: f64,
    /// Calls and the most percent of a core that one may take, on each back-end; no calls: not measured there.
    a: (u64, Option<f64>),
    c: (u64, Option<f64>),
    /// What may be taken with soft interrupts.
    soft: Option<f64>,
    /// Packets are relayed below the process: what counts is what that costs beyond dropping them where they enter.
    is_below: bool,
    asterisk: &'static str,
}

const PLAYBACK: Row = Row {
    name: "playback",
    title: "ulaw Playback to ulaw calls",
    number: "100",
    offers: FormatId::ULAW,
    accepts: None,
    media: Media::Both,
    hear: Hear::Hertz(PITCH),
    rtp: "",
    packets: 50.0,
    a: (5000, Some(0.012)),
    c: (1500, Some(0.03)),
    soft: None,
    is_below: false,
    asterisk: "0.19 to 0.26",
};
const BRIDGE: Row = Row {
    name: "bridge",
    title: "ulaw bridge in user space",
    number: "700",
    accepts: Some(FormatId::ULAW),
    hear: Hear::Own,
    rtp: "kernel_relay = no\n",
    packets: 100.0,
    a: (2000, Some(0.018)),
    c: (800, Some(0.06)),
    soft: Some(0.022),
    asterisk: "0.22 to 0.30 native, 0.34 to 0.46 core",
    ..PLAYBACK
};
const SHARED: Row =
    Row { a: (2000, Some(0.012)), c: (1000, Some(0.03)), asterisk: "0.21 to 0.245", ..PLAYBACK };
const EACH: Row = Row {
    number: "101",
    rtp: "share_prompts = no\n",
    a: (1500, Some(0.045)),
    c: (1000, Some(0.06)),
    asterisk: "0.51 to 0.56 (30 ms)",
    ..PLAYBACK
};

const ROWS: [Row; 16] = [
    PLAYBACK,
    Row {
        name: "playback_heard",
        title: "the same, callers send nothing",
        media: Media::Receive,
        a: (5000, None),
        c: (1500, None),
        ..PLAYBACK
    },
    Row { name: "music", title: "music on hold", number: "102", a: (5000, Some(0.012)), ..SHARED },
    Row { name: "prompt_ilbc", title: "the same prompt to iLBC callers", offers: FormatId::ILBC, ..SHARED },
    Row {
        name: "prompt_speex",
        title: "the same prompt to Speex callers",
        offers: FormatId::SPEEX,
        ..SHARED
    },
    Row {
        name: "gsm_ilbc20",
        title: "GSM file to iLBC calls, 20 ms, encoded for each",
        offers: FormatId::ILBC,
        asterisk: "not measured",
        ..EACH
    },
    Row {
        name: "gsm_ilbc30",
        title: "GSM file to iLBC calls, 30 ms, encoded for each",
        offers: FormatId::ILBC30,
        packets: 33.3,
        a: (2000, Some(0.045)),
        ..EACH
    },
    Row {
        name: "gsm_speex",
        title: "GSM file to Speex calls, encoded for each",
        offers: FormatId::SPEEX,
        a: (1500, Some(0.04)),
        c: (1000, Some(0.055)),
        asterisk: "0.43 to 0.50",
        ..EACH
    },
    Row {
        name: "bridge_gsm_ilbc",
        title: "GSM call bridged to iLBC call, both live",
        offers: FormatId::GSM,
        accepts: Some(FormatId::ILBC30),
        packets: 83.3,
        a: (600, Some(0.065)),
        c: (600, Some(0.10)),
        soft: None,
        asterisk: "not measured",
        ..BRIDGE
    },
    BRIDGE,
    Row {
        name: "bridge_alaw",
        title: "alaw to ulaw bridge",
        offers: FormatId::ALAW,
        a: (2000, Some(0.023)),
        c: (800, Some(0.065)),
        soft: None,
        asterisk: "0.37 to 0.49",
        ..BRIDGE
    },
    Row {
        name: "relay",
        title: "ulaw bridge, kernel relay",
        rtp: "kernel_relay = yes\n",
        a: (2000, Some(0.010)),
        c: (0, None),
        soft: None,
        is_below: true,
        asterisk: "",
        ..BRIDGE
    },
    Row {
        name: "conference",
        title: "conference, 100 members in one room",
        number: "103",
        hear: Hear::Sound,
        a: (100, Some(0.02)),
        c: (100, Some(0.045)),
        asterisk: "0.26 to 0.27",
        ..PLAYBACK
    },
    Row {
        name: "recording",
        title: "recording to a RAM disk with playback",
        number: "104",
        a: (1000, Some(0.03)),
        c: (800, Some(0.05)),
        asterisk: "0.39 to 0.43",
        ..PLAYBACK
    },
    Row {
        name: "queue",
        title: "waiting in Queue() with music",
        number: "105",
        a: (5000, Some(0.012)),
        ..SHARED
    },
    Row {
        name: "queue_agent",
        title: "talking to an agent of Queue(), recorded to a RAM disk",
        number: "106",
        a: (600, Some(0.05)),
        c: (400, Some(0.10)),
        soft: None,
        asterisk: "not measured",
        ..BRIDGE
    },
];

const DIALPLAN: &str = "
exten => 100,1,Answer()
 same => n,Playback(long)
exten => 101,1,Answer()
 same => n,Playback(coded)
exten => 102,1,Answer()
 same => n,MusicOnHold()
exten => 103,1,Answer()
 same => n,ConfBridge(room)
exten => 104,1,Answer()
 same => n,MixMonitor(${UNIQUEID}.wav)
 same => n,Playback(long)
exten => 105,1,Answer()
 same => n,Queue(waiting)
exten => 106,1,Answer()
 same => n,MixMonitor(${UNIQUEID}.wav,b)
 same => n,Queue(agents)
exten => 700,1,Dial(PJSIP/callee)
";

/// Nobody takes calls of the first; of the second one agent takes as many as come.
const QUEUES: &str = "[general]\n[waiting]\nmusicclass=default\n\
    [agents]\nstrategy=rrmemory\nringinuse=yes\nmember => PJSIP/callee\n";

/// What a point has shown.
struct Point {
    calls: u64,
    /// Microseconds a packet of a thread a call, measured before it.
    baseline: f64,
    /// Percent of a core a call: the process; it and soft interrupts.
    process: f64,
    soft: Option<f64>,
    /// The same without what it costs to drop all packets where they enter.
    above_drops: Option<f64>,
    /// Percent of a core that the phones take, with their end of the wire.
    phones: f64,
    report: Report,
}

impl Point {
    /// What the figure of the row is about.
    fn value(&self) -> f64 {
        self.above_drops.unwrap_or(self.process)
    }

    /// The most that any figure takes of what it may, for 1 all of it; with nothing asked for nothing.
    fn excess(&self, row: &Row, target: Option<f64>) -> f64 {
        let Some(target) = target else { return 0.0 };
        let soft = self.soft.zip(row.soft).map(|(soft, most)| soft / most);
        let grid = |(permille, most)| self.deviation_ms(permille) / most;
        let grid = GRID.map(|(_, permille, most)| (permille, most)).map(grid);
        let grid = grid.into_iter().filter(|_| row.name == PLAYBACK.name && self.calls >= GRID_STREAMS);
        grid.chain(soft).fold(self.value() / target, f64::max)
    }

    fn deviation_ms(&self, permille: u64) -> f64 {
        self.report.arrivals.deviation.permille(permille).as_secs_f64() * 1e3
    }
}

/// Four places, as the figures are printed.
fn round4(value: f64) -> f64 {
    (value * 1e4).round() / 1e4
}

/// Why a point was not measured.
enum Missed {
    /// Not all of so many calls came up.
    TooMany(String),
    /// There is no measuring it here.
    Skipped(String),
}

/// How long things take.
struct Pace {
    settle: Duration,
    window: Duration,
    windows: u32,
    share: u64,
}

fn pace() -> Pace {
    let ms = Duration::from_millis;
    if short() {
        Pace { settle: ms(1500), window: ms(1000), windows: 1, share: 20 }
    } else {
        Pace { settle: ms(3200), window: ms(2500), windows: 2, share: 1 }
    }
}

fn main() {
    // A refusal shows up as an error of the first socket too many.
    let _raised = io::process::raise_file_limit();
    let _awake = Awake::keep();
    let only = std::env::var("STROWGER_BENCH_ONLY").ok();
    let wanted = |row: &Row, column: char| {
        let calls = if column == 'c' { row.c.0 } else { row.a.0 };
        let named = |word: &str| word == row.name || word == format!("{}_{column}", row.name);
        calls > 0 && only.as_deref().is_none_or(|only| only.split(',').any(|word| named(word.trim())))
    };
    for column in ['c', 'a'] {
        let rows: Vec<Row> = ROWS.iter().copied().filter(|row| wanted(row, column)).collect();
        if rows.is_empty() {
            continue;
        }
        let world = match column {
            'c' => Ok(Ground::loopback()),
            _ => Ground::wire("density"),
        };
        let world = match world {
            Ok(world) => world,
            Err(why) => {
                println!("skipped: column A, two network namespaces: {why}");
                continue;
            }
        };
        let baseline = thread_per_call(&world);
        println!("column {column}: a thread a call takes {baseline:.2} us a packet");
        for row in rows {
            measure_row(&row, column, &world, baseline);
        }
    }
}

/// Measures a row until it gives what is asked for or no round is left, and publishes the best.
fn measure_row(row: &Row, column: char, world: &Ground, mut baseline: f64) {
    let target = if column == 'c' { row.c.1 } else { row.a.1 };
    let rounds = if short() { 1 } else { ROUNDS };
    let mut gave = Vec::new();
    let mut best: Option<Point> = None;
    while gave.len() < rounds {
        if !gave.is_empty() {
            baseline = thread_per_call(world);
        }
        let Some(point) = measure_heard(row, column, world, baseline) else { break };
        gave.push(round4(point.value()));
        let better = |best: &Point| {
            (best.calls, -best.excess(row, target)) < (point.calls, -point.excess(row, target))
        };
        if best.as_ref().is_none_or(better) {
            best = Some(point);
        }
        if best.as_ref().is_some_and(|best| best.excess(row, target) <= 1.0) {
            break;
        }
        println!(
            "  {}: round {} gave {:.4}, a thread a call {baseline:.1} us a packet",
            row.name,
            gave.len(),
            gave[gave.len() - 1]
        );
    }
    if let Some(best) = best {
        publish(row, column, target, &gave, &best);
    }
}

/// Measures a row with as many calls as this machine can carry.
fn measure_heard(row: &Row, column: char, world: &Ground, baseline: f64) -> Option<Point> {
    let calls = if column == 'c' { row.c.0 } else { row.a.0 };
    let mut calls = calls.div_ceil(pace().share);
    while calls > 0 {
        match measure(row, calls, world, baseline) {
            Err(Missed::Skipped(why)) => {
                println!("skipped: {}, column {column}: {why}", row.title);
                return None;
            }
            Err(Missed::TooMany(why)) => {
                println!("  {}: {calls} calls are too many here: {why}; half of them", row.name);
                calls /= 2;
            }
            Ok(point)
                if calls > 100
                    && let Some(why) = is_unheard(&point.report) =>
            {
                println!("  {}: {calls} calls are too many here: {why}; half of them", row.name);
                calls /= 2;
            }
            Ok(point) => return Some(point),
        }
    }
    None
}

/// Why what callers heard is not worth measuring what it cost.
fn is_unheard(report: &Report) -> Option<String> {
    let wrong = report.wrong as f64 / report.checked.max(1) as f64 * 100.0;
    if report.loss_percent() > LOSS_MAX {
        Some(format!("{:.2} % lost", report.loss_percent()))
    } else if wrong > WRONG_MAX {
        Some(format!("{wrong:.1} % of {} listens wrong", report.checked))
    } else {
        None
    }
}

/// The program in its place.
fn serve(row: &Row, world: &Ground) -> Result<Server, String> {
    let other = std::env::var("STROWGER_BENCH_IO").ok();
    let (io, interfaces) = match world.has_wire() {
        true => ("xdp", World::INTERFACE),
        false => (other.as_deref().unwrap_or("epoll"), ""),
    };
    let callees = SocketAddr::new(world.phones, CALLEES);
    let mut site = Site::at("density", SocketAddr::new(world.program, 5060))
        .prompt("long", PITCH, PROMPT_SECONDS)
        .prompt("linear", PITCH, PROMPT_SECONDS)
        .music(PITCH, PROMPT_SECONDS)
        .dialplan(&format!("[test]{DIALPLAN}"))
        // What is too many is found by loss here.
        .add("asterisk.conf", "maxbusy = 0\n")
        .add("queues.conf", QUEUES)
        .add("confbridge.conf", "[general]\n[default_bridge]\ntype=bridge\n[default_user]\ntype=user\n")
        .add(
            "pjsip.conf",
            &format!(
                "[load]\ntype=endpoint\ncontext=test\ndisallow=all\nallow={all}\ndirect_media=no\naors=load\n\
                 [load]\ntype=aor\n[load]\ntype=identify\nendpoint=load\nmatch={phones}\n\
                 [callee]\ntype=endpoint\ncontext=test\ndisallow=all\nallow={accepts}\ndirect_media=no\naors=callee\n\
                 [callee]\ntype=aor\ncontact=sip:callee@{callees}\n",
                all = "ulaw,alaw,gsm,ilbc,ilbc30,speex",
                accepts = row.accepts.map_or("ulaw", FormatId::name),
                phones = world.phones,
            ),
        );
    site.rewrite("logger.conf", QUIET_LOG);
    let recordings =
        std::path::Path::new("/dev/shm").join(format!("strowger-density-{}", std::process::id()));
    let rtp = format!(
        "[general]\nrtpstart = 10000\nrtpend = 31999\nmedia_workers = 1\nmedia_io = {io}\nmedia_interfaces = {interfaces}\n{}",
        row.rtp
    );
    site.rewrite("rtp.conf", &rtp);
    if ["104", "106"].contains(&row.number) {
        std::fs::create_dir_all(&recordings).map_err(|why| format!("no RAM disk: {why}"))?;
        let text = site
            .text("extensions.conf")
            .replace("${UNIQUEID}", &format!("{}/${{UNIQUEID}}", recordings.display()));
        site.rewrite("extensions.conf", &text);
    }
    if row.number == "101" {
        code_prompt(&site)?;
    }
    world.at_program(|| Server::try_start(site)).map_err(|refused| format!("{refused:?}"))
}

/// The prompt as a GSM file, made by the program.
fn code_prompt(site: &Site) -> Result<(), String> {
    let sounds = site.place.join("data/sounds/en");
    let output = std::process::Command::new(e2e::program())
        .args(["codec", "encode"])
        .args([sounds.join("linear.wav"), sounds.join("coded.gsm")])
        .output()
        .map_err(|error| error.to_string())?;
    if output.status.success() { Ok(()) } else { Err(String::from_utf8_lossy(&output.stderr).into_owned()) }
}

fn plan(row: &Row, calls: u64, world: &Ground) -> Plan {
    let one = |format: FormatId| -> FormatSet { [format].into_iter().collect() };
    let is_wire = world.has_wire();
    Plan {
        number: Some(row.number.into()),
        sip_port: CALLEES,
        answers: row.accepts.is_some(),
        rate: RATE,
        calls,
        offers: one(row.offers),
        accepts: one(row.accepts.unwrap_or(row.offers)),
        packet_ms: if [Some(row.offers), row.accepts].contains(&Some(FormatId::ILBC30))
            && row.accepts.is_none()
        {
            30
        } else {
            20
        },
        media: row.media,
        hear: row.hear,
        io: if is_wire { IoWish::Xdp } else { IoWish::Auto },
        interfaces: if is_wire { vec![World::PHONES_INTERFACE.into()] } else { Vec::new() },
        processor: Ground::phones_processor(),
        real_time: true,
        check_every: Duration::from_secs(10),
        ..Plan::new(SocketAddr::new(world.program, 5060), world.phones)
    }
}

fn measure(row: &Row, calls: u64, world: &Ground, baseline: f64) -> Result<Point, Missed> {
    let server = serve(row, world).map_err(Missed::Skipped)?;
    let load = world.at_phones(|| Load::start(plan(row, calls, world)));
    let load = load.map_err(|error| Missed::Skipped(format!("{error}; {}", error.remedy())))?;
    let sides = if row.accepts.is_some() { 2 * calls } else { calls };
    let begin = Instant::now();
    let patience = Duration::from_secs_f64(15.0 + 3.0 * calls as f64 / RATE);
    while load.progress().up.load(Relaxed) < sides {
        if begin.elapsed() > patience {
            return Err(Missed::TooMany(format!(
                "only {} of {sides} sides came up: {}",
                load.progress().up.load(Relaxed),
                load.report().complaints(100.0).join("; ")
            )));
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    let Pace { settle, window, windows, .. } = pace();
    std::thread::sleep(settle);
    let meter = Meter::new(server.pid());
    let mut best: Option<Point> = None;
    for _ in 0..windows {
        let soft = || ksoftirqd() + world.intake();
        let (before, soft_before, phones) = (meter.read(), soft(), world.phones_intake());
        let report = load.window(window);
        let (after, soft_after) = (meter.read(), soft());
        let seconds = after.seconds_since(&before);
        let share = |cpu: f64| cpu / seconds / calls as f64 * 100.0;
        let process = share(after.cpu_since(&before));
        let soft = world.has_wire().then(|| process + share(soft_after - soft_before));
        let phones = report.own.cpu.as_secs_f64() + world.phones_intake() - phones;
        let phones = phones / seconds * 100.0;
        let point = Point { calls, baseline, process, soft, above_drops: None, phones, report };
        if best.as_ref().is_none_or(|best| process < best.process) {
            best = Some(point);
        }
    }
    let mut best = best.ok_or_else(|| Missed::Skipped("no window was measured".into()))?;
    if row.is_below {
        // Every call sends from another one's port, and the XDP program knows strangers.
        load.stray(true);
        std::thread::sleep(Duration::from_millis(500));
        let (begin, before) = (Instant::now(), world.intake());
        std::thread::sleep(window);
        let drops = (world.intake() - before) / begin.elapsed().as_secs_f64() / calls as f64 * 100.0;
        best.above_drops = best.soft.map(|soft| soft - drops);
    }
    drop(load);
    drop(server);
    let recordings =
        std::path::Path::new("/dev/shm").join(format!("strowger-density-{}", std::process::id()));
    let _absent = std::fs::remove_dir_all(recordings);
    Ok(best)
}

fn publish(row: &Row, column: char, target: Option<f64>, gave: &[f64], point: &Point) {
    let Point { calls, baseline, process, soft, above_drops, phones, report } = point;
    // The same packets, each sent on by a thread of its call.
    let threads = baseline * row.packets / 1e4;
    let value = point.value();
    let ratio = (*baseline <= BASELINE_MAX).then(|| (threads / value * 100.0).round() / 100.0);
    let verdict = match target {
        Some(target) if value <= target => format!("; target {target} met"),
        Some(target) => format!("; target {target} NOT met"),
        None => String::new(),
    };
    let late = |permille| report.arrivals.lateness.permille(permille).as_secs_f64() * 1e3;
    let off = |permille| point.deviation_ms(permille);
    let own = |permille| report.own.lateness.permille(permille).as_secs_f64() * 1e3;
    let mut soft_text = soft.map_or_else(String::new, |soft| format!(" ({soft:.4} with soft interrupts)"));
    if let Some(above) = above_drops {
        soft_text += &format!("; {above:.4} beyond dropping the packets where they enter");
    }
    println!(
        "{} {column}: {process:.4} % of a core a call{soft_text}, {calls} calls{verdict}\n    {:.0} packets a second heard, \
         {:.3} % lost, {} of {} times wrong, {} silent; late p99 {:.2} p99.9 {:.2} ms, deviation p99 {:.2} p99.9 {:.2} ms; \
         phones {phones:.0} % of a core, late p99 {:.2} ms",
        row.name,
        report.arrivals.received as f64 / report.length.as_secs_f64(),
        report.loss_percent(),
        report.wrong,
        report.checked,
        report.silent,
        late(990),
        late(999),
        off(990),
        off(999),
        own(990),
    );
    let json = json!({
        "name": format!("density {} {column}", row.name),
        "value": value,
        "unit": "percent of a core per call",
        "baseline": threads,
        "baseline_name": format!("a thread a call, {baseline:.1} us a packet"),
        "ratio": ratio,
        "rounds": gave,
        "order": ROWS.iter().position(|known| known.name == row.name),
        "title": row.title,
        "column": column.to_string(),
        "calls": calls,
        "process": process,
        "with_soft_interrupts": soft,
        "above_drops": above_drops,
        "target": target,
        "soft_target": row.soft,
        "asterisk": row.asterisk,
        "loss_percent": report.loss_percent(),
        "late_ms": [late(500), late(990), late(999)],
        "deviation_ms": [off(500), off(990), off(999)],
        "generator_late_ms": [own(500), own(990), own(999)],
        "audio": [report.checked, report.wrong],
        "silent": report.silent,
        "packets_per_second": report.arrivals.received as f64 / report.length.as_secs_f64(),
    });
    write(&format!("density_{}_{column}", row.name), &json);
    if row.name == "playback" {
        for (share, permille, target) in GRID {
            let value = off(permille);
            let verdict = if value <= target { "met" } else { "NOT met" };
            println!("    20 ms grid, {share} of the deviation: {value:.2} ms; target {target} {verdict}");
            let json = json!({
                "name": format!("density grid {share} {column}"),
                "value": value,
                "unit": format!("ms off the 20 ms grid, {calls} streams"),
                "baseline": target,
                "baseline_name": "target",
                "ratio": (target / value.max(1e-3) * 100.0).round() / 100.0,
            });
            write(&format!("density_grid_{share}_{column}"), &json);
        }
    }
}

fn write(name: &str, json: &serde_json::Value) {
    let folder = std::env::var_os("STROWGER_BENCH_DIR").map_or_else(
        || std::path::PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../target/bench"),
        std::path::PathBuf::from,
    );
    std::fs::create_dir_all(&folder).expect("a folder for the figures");
    std::fs::write(folder.join(format!("{name}.json")), format!("{json}\n")).expect("a file for the figure");
}
