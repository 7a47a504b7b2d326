//! A contact centre of 300 calls at once on one media thread: of ten calls six wait in `Queue()` with music and an
//! announcement every minute, three talk to an agent and are recorded to a RAM disk by `MixMonitor()`, and one comes and
//! goes.
//!
//! Column C: `media_io=epoll` on the loopback interface, without privileges. Column A: `media_io=xdp` across a veth pair
//! between two network namespaces, skipped without the privileges for that. What is counted is the processor time of all
//! threads of the process, as a share of one core, over a minute: every caller who waits hears its announcement once. The
//! callers who stay are one generator, those who come and go another.
//!
//! The baseline is a thread a call that does nothing but send packets on, for as many packets. What one call takes that
//! waits, or that talks and is recorded, is measured by the rows `queue` and `queue_agent` of the bench `density`.
//! `STROWGER_BENCH_ONLY` names a column, `centre_c` or `centre_a`; `STROWGER_BENCH_SHORT` takes a tenth.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use e2e::{Server, Site};
use io::media::{IoWish, PortRange};
use loadbench::{Awake, Figure, Ground, Meter, QUIET_LOG, World, short, thread_per_call};
use loadtest::{Hear, Load, Plan, Report};

/// Calls at once: who waits, who talks, who comes and goes.
const CALLS: [u64; 3] = [180, 90, 30];
/// How long one stays who comes and goes.
const STAY: Duration = Duration::from_secs(10);
/// Over how long callers come: their announcements are spread as they are.
const COMING: f64 = 60.0;
/// What is asked for of the process, percent of a core, and the latest of 99.9 % of the packets, milliseconds.
const TARGETS: [(char, f64); 2] = [('c', 20.0), ('a', 12.0)];
const LATE_MS: f64 = 5.0;
const CALLEES: u16 = 5062;

const DIALPLAN: &str = "[test]
exten => 900,1,Answer()
 same => n,Set(GLOBAL(turn)=$[(0${turn} + 1) % 3])
 same => n,GotoIf($[${turn} = 0]?agents)
 same => n,Queue(waiting)
 same => n,Hangup()
 same => n(agents),MixMonitor(RECORDINGS/${UNIQUEID}.wav,b)
 same => n,Queue(agents)
 same => n,Hangup()
exten => 901,1,Answer()
 same => n,Queue(waiting)
";
const QUEUES: &str = "[general]
[waiting]
musicclass=default
periodic-announce=patience
periodic-announce-frequency=60
[agents]
strategy=rrmemory
ringinuse=yes
member => PJSIP/callee
";

fn main() {
    // A refusal shows up as an error of the first socket too many.
    let _raised = io::process::raise_file_limit();
    let _awake = Awake::keep();
    let only = std::env::var("STROWGER_BENCH_ONLY").ok();
    for (column, target) in TARGETS {
        let name = format!("centre_{column}");
        if only.as_deref().is_some_and(|only| !only.split(',').any(|word| word.trim() == name)) {
            continue;
        }
        let ground = if column == 'c' { Ok(Ground::loopback()) } else { Ground::wire("centre") };
        match ground {
            Ok(ground) => measure(&name, target, &ground),
            Err(why) => println!("skipped: {name}, two network namespaces: {why}"),
        }
    }
}

/// Where recordings go; they are removed with it.
struct Recordings(PathBuf);

impl Recordings {
    fn new() -> std::io::Result<Self> {
        let place = PathBuf::from(format!("/dev/shm/strowger-centre-{}", std::process::id()));
        std::fs::create_dir_all(&place)?;
        Ok(Self(place))
    }
    /// How many of them hold sound.
    fn count(&self) -> usize {
        let files = std::fs::read_dir(&self.0).into_iter().flatten().flatten();
        files.filter(|file| file.metadata().is_ok_and(|data| data.len() > 1000)).count()
    }
}

impl Drop for Recordings {
    fn drop(&mut self) {
        let _absent = std::fs::remove_dir_all(&self.0);
    }
}

fn serve(ground: &Ground, recordings: &Recordings) -> Server {
    let (io, interfaces) = if ground.has_wire() { ("xdp", World::INTERFACE) } else { ("epoll", "") };
    let callees = SocketAddr::new(ground.phones, CALLEES);
    let mut site = Site::at("centre", SocketAddr::new(ground.program, 5060))
        .prompt("patience", 660.0, 3.0)
        .music(440.0, 60.0)
        .dialplan(&DIALPLAN.replace("RECORDINGS", &recordings.0.display().to_string()))
        .add("queues.conf", QUEUES)
        .add(
            "pjsip.conf",
            &format!(
                "[load]\ntype=endpoint\ncontext=test\ndisallow=all\nallow=ulaw\ndirect_media=no\naors=load\n\
                 [load]\ntype=aor\n[load]\ntype=identify\nendpoint=load\nmatch={phones}\n\
                 [callee]\ntype=endpoint\ncontext=test\ndisallow=all\nallow=ulaw\ndirect_media=no\naors=callee\n\
                 [callee]\ntype=aor\ncontact=sip:callee@{callees}\n",
                phones = ground.phones,
            ),
        );
    site.rewrite("logger.conf", QUIET_LOG);
    site.rewrite(
        "rtp.conf",
        &format!(
            "[general]\nrtpstart = 10000\nrtpend = 31999\nmedia_workers = 1\nmedia_io = {io}\nmedia_interfaces = {interfaces}\n\
             kernel_relay = no\n"
        ),
    );
    ground.at_program(|| Server::start(site))
}

/// Callers who stay, and callers who come and go.
fn plans(ground: &Ground, [waiting, talking, passing]: [u64; 3]) -> [Plan; 2] {
    let server = SocketAddr::new(ground.program, 5060);
    let staying = waiting + talking;
    let stay = STAY.as_secs_f64();
    let both = Plan {
        hear: Hear::Sound,
        processor: Ground::phones_processor(),
        real_time: true,
        check_every: Duration::from_secs(10),
        ..Plan::new(server, ground.phones)
    };
    [
        Plan {
            number: Some("900".into()),
            sip_port: CALLEES,
            answers: true,
            rate: if short() { 20.0 } else { staying as f64 / COMING },
            calls: staying,
            io: if ground.has_wire() { IoWish::Xdp } else { IoWish::Auto },
            interfaces: if ground.has_wire() { vec![World::PHONES_INTERFACE.into()] } else { Vec::new() },
            ports: PortRange { first: 33_000, last: 48_999 },
            ..both.clone()
        },
        Plan {
            number: Some("901".into()),
            rate: passing as f64 / stay,
            calls: u64::MAX,
            hold: Some(STAY),
            io: IoWish::Epoll,
            ports: PortRange { first: 49_000, last: 57_999 },
            ..both
        },
    ]
}

fn measure(name: &str, target: f64, ground: &Ground) {
    let calls = if short() { CALLS.map(|calls| calls / 10) } else { CALLS };
    let [waiting, talking, passing] = calls;
    let baseline = thread_per_call(ground);
    let recordings = match Recordings::new() {
        Ok(recordings) => recordings,
        Err(why) => return println!("skipped: {name}: no RAM disk: {why}"),
    };
    let server = serve(ground, &recordings);
    let loads = plans(ground, calls).map(|plan| {
        ground.at_phones(|| Load::start(plan)).unwrap_or_else(|why| panic!("{why}; {}", why.remedy()))
    });
    let [stay, pass] = &loads;
    // Each who talks has an agent, who is a side too.
    let sides = waiting + 2 * talking;
    let begun = Instant::now();
    while stay.progress().up.load(Relaxed) < sides || pass.progress().up.load(Relaxed) + 1 < passing {
        if begun.elapsed() > Duration::from_secs_f64(3.0 * COMING) {
            let up = loads.each_ref().map(|load| load.progress().up.load(Relaxed));
            let said = loads.each_ref().map(|load| load.report().complaints(100.0).join("; "));
            return println!("skipped: {name}: only {up:?} sides of {sides} and {passing} came up: {said:?}");
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    std::thread::sleep(Duration::from_secs(2));
    let meter = Meter::new(server.pid());
    let length = if short() { Duration::from_secs(3) } else { Duration::from_secs(60) };
    let before = meter.read();
    loads.iter().for_each(Load::begin_window);
    std::thread::sleep(length);
    let [stay, pass] = loads.each_ref().map(Load::report);
    let after = meter.read();
    let share = after.cpu_since(&before) / after.seconds_since(&before) * 100.0;
    let counted = recordings.count();
    assert!(counted as u64 >= talking, "{counted} of {talking} conversations are recorded");
    // Who talks is two streams, one who waits or passes one.
    let packets = 50.0 * (waiting + 2 * talking + passing) as f64;
    let late = |report: &Report| report.arrivals.lateness.permille(999).as_secs_f64() * 1e3;
    let (late, own) = (late(&stay).max(late(&pass)), stay.own.lateness.permille(999).as_secs_f64() * 1e3);
    println!(
        "  {name}: {waiting} wait, {talking} talk and are recorded, {} came, {} went in {:.0} s; {:.0} packets a second heard, \
         {:.3} % lost, {} of {} times silence; late p99.9 {late:.2} ms (phones themselves {own:.2} ms)",
        pass.begun,
        pass.answered,
        stay.length.as_secs_f64(),
        (stay.arrivals.received + pass.arrivals.received) as f64 / stay.length.as_secs_f64(),
        stay.loss_percent(),
        stay.wrong + pass.wrong,
        stay.checked + pass.checked,
    );
    let unit = &format!("percent of a core, {} calls", waiting + talking + passing);
    let threads = baseline * packets / 1e4;
    let baseline_name = &format!("a thread a call, {baseline:.1} us a packet");
    Figure { name, value: share, unit, target, baseline: threads, baseline_name }.publish();
    let name = &format!("{name}_late");
    let (unit, baseline_name) = ("ms late, 99.9 % of the packets", "the phones themselves");
    Figure { name, value: late, unit, target: LATE_MS, baseline: own, baseline_name }.publish();
}
