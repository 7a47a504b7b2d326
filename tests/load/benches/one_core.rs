//! Signalling and media on one processor: how long a call takes to be answered, and how late ticks are, while so many calls
//! listen to a prompt, with real-time priority for the media thread and without.
//!
//! The whole program is put on one processor (`taskset`), and the media thread's priority is set from outside (`chrt`,
//! `renice`), so that all ways are measured of one program, whatever it would choose. Needs root or CAP_SYS_NICE; where that
//! is missing the bench says so.

use std::process::Command;
use std::time::{Duration, Instant};

use e2e::{SECRET, Server, Site, address};
use loadbench::{Callers, Figure, Listener, Meter, Plan, QUIET_LOG, median, short};

/// Callers that listen: a share of a core that leaves signalling something, and one that does not.
const CALLS: [u64; 2] = [500, 1500];
/// Calls that are timed.
const TIMED: usize = 100;
/// How long one waits for an answer.
const PATIENCE: Duration = Duration::from_secs(5);
/// What one has to wait at most for an answer that nobody shall notice.
const ANSWERED_MS: f64 = 50.0;

/// How the media thread stands to the others.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Priority {
    RealTime,
    Preferred,
    Normal,
}

fn main() {
    for calls in CALLS {
        let calls = if short() { calls / 10 } else { calls };
        let mut normal = None;
        for (name, priority) in [
            ("normal", Priority::Normal),
            ("preferred", Priority::Preferred),
            ("real_time", Priority::RealTime),
        ] {
            let Some((times, cpu, late)) = measure(calls, priority) else { return };
            let (half, most) = (median(times.iter().copied()), percentile(&times, 0.99));
            println!(
                "  {calls} calls, {name}: answered in {half:.2} ms, 99 % in {most:.2} ms, {cpu:.0} % of the core"
            );
            println!("{late}");
            let value = most;
            let baseline = *normal.get_or_insert(value);
            let name = &format!("one_core_{calls}_calls_{name}_answer");
            let unit = "ms until the answer, 99 %";
            Figure { name, value, unit, target: ANSWERED_MS, baseline, baseline_name: "normal priority" }
                .publish();
        }
    }
}

fn percentile(values: &[f64], share: f64) -> f64 {
    let mut values = values.to_vec();
    values.sort_by(f64::total_cmp);
    values.get((values.len() as f64 * share) as usize).or(values.last()).copied().unwrap_or(f64::NAN)
}

fn run(words: &[&str]) -> bool {
    let (program, words) = words.split_first().expect("a program");
    Command::new(program).args(words).output().is_ok_and(|output| output.status.success())
}

/// Milliseconds of each timed call, percent of a core that the program took, and what it says of its lateness; `None` when
/// priorities cannot be set.
fn measure(calls: u64, priority: Priority) -> Option<(Vec<f64>, f64, String)> {
    let ip = address();
    let mut site = Site::new("onecore")
        .prompt("long", 440.0, 120.0)
        .dialplan(
            "[test]\nexten => 100,1,Answer()\n same => n(again),Playback(long)\n same => n,Goto(again)\n\
             exten => 101,1,Answer()\n same => n,Hangup()\n",
        )
        .trunk("load", (ip, 5060).into());
    site.rewrite("logger.conf", QUIET_LOG);
    let ports = site.text("rtp.conf").to_owned();
    site.rewrite("rtp.conf", &format!("{ports}media_workers = 1\n"));
    let server = Server::start(site);
    if !put_on_one_processor(server.pid(), priority) {
        println!(
            "skipped: signalling and media on one processor, which needs taskset and chrt and CAP_SYS_NICE"
        );
        return None;
    }
    let listener = Listener::start(ip);
    let plan = |exten: &str, rate, limit| Plan {
        server: server.site.sip,
        ip,
        user: "load".into(),
        secret: SECRET.into(),
        exten: exten.into(),
        rate,
        limit,
        audio: listener.port(),
    };
    let callers = Callers::start(plan("100", 100, calls));
    e2e::wait::until_true("all calls are answered", || callers.answered() >= calls);
    std::thread::sleep(Duration::from_secs(2));
    let meter = Meter::new(server.pid());
    let before = meter.read();
    let times = (0..if short() { 5 } else { TIMED }).map(|_| {
        let begun = Instant::now();
        let caller = Callers::start(plan("101", 100, 1));
        // Callers say nothing twice: who has no answer by then has lost a datagram, or signalling starves.
        while caller.answered() == 0 && begun.elapsed() < PATIENCE {
            std::thread::sleep(Duration::from_micros(100));
        }
        begun.elapsed().as_secs_f64() * 1e3
    });
    let times = times.collect();
    let after = meter.read();
    let cpu = after.cpu_since(&before) / after.seconds_since(&before) * 100.0;
    Some((times, cpu, server.cli("media show workers")))
}

/// All threads of the program on the last processor, and its media threads preferred so.
fn put_on_one_processor(pid: u32, priority: Priority) -> bool {
    let last = std::thread::available_parallelism().map_or(0, |count| count.get() - 1);
    let mut done = run(&["taskset", "-acp", &last.to_string(), &pid.to_string()]);
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).expect("the program runs");
    for task in tasks.flatten() {
        let name = std::fs::read_to_string(task.path().join("comm")).unwrap_or_default();
        if name.starts_with("media-") {
            let id = &task.file_name().to_string_lossy().into_owned();
            done &= match priority {
                Priority::RealTime => run(&["chrt", "--fifo", "-p", "1", id]),
                Priority::Preferred => {
                    run(&["chrt", "--other", "-p", "0", id]) && run(&["renice", "-n", "-10", "-p", id])
                }
                Priority::Normal => {
                    run(&["chrt", "--other", "-p", "0", id]) && run(&["renice", "-n", "0", "-p", id])
                }
            };
        }
    }
    done
}
