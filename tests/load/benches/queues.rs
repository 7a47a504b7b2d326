//! 40,000 queues with 75,000 members: how long a start and a reload take, what one answer about a queue takes, and how
//! long others wait while all of them are listed.
//!
//! The baseline of each figure is the same with a tenth of the queues, times ten where the work is that of all of them: a
//! ratio near 1 says that nothing grows faster than the configuration, and one near 1 of what concerns one queue says that
//! it does not grow at all. `STROWGER_BENCH_ONLY=queues` runs nothing else, `STROWGER_BENCH_SHORT` takes a hundredth.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use e2e::{Server, Site};
use loadbench::{Awake, Figure, Manager, QUIET_LOG, short};

const QUEUES: usize = 40_000;
const MEMBERS: usize = 75_000;
/// Queues that are asked for, one after the other.
const ASKED: usize = 200;
/// How many of all queues the baseline has.
const PART: usize = 10;
const BASELINE: &str = "a tenth of the queues";

/// What one site has shown.
struct Shown {
    start: Duration,
    reload: Duration,
    one_console: Duration,
    one_manager: Duration,
    all_console: Duration,
    all_manager: Duration,
    /// The longest that a Ping waited for its answer meanwhile.
    held: Duration,
}

fn main() {
    if std::env::var("STROWGER_BENCH_ONLY").is_ok_and(|only| only != "queues") {
        return;
    }
    let _awake = Awake::keep();
    let share = if short() { 100 } else { 1 };
    let all = measure(QUEUES / share, MEMBERS / share);
    let part = measure(QUEUES / share / PART, MEMBERS / share / PART);
    let seconds = |time: Duration| time.as_secs_f64();
    let ms = |time: Duration| time.as_secs_f64() * 1e3;
    let linear = PART as f64;
    for (name, unit, value, target, baseline) in [
        ("queues_start", "s from the process to the first answer", seconds(all.start), 2.0, {
            seconds(part.start) * linear
        }),
        ("queues_reload", "s of queue reload all, until the next answer", seconds(all.reload), 2.0, {
            seconds(part.reload) * linear
        }),
        ("queue_show_one", "ms of queue show NAME", ms(all.one_console), 5.0, ms(part.one_console)),
        ("queue_status_one", "ms of QueueStatus of one queue", ms(all.one_manager), 5.0, {
            ms(part.one_manager)
        }),
        ("queue_show_all", "s of queue show", seconds(all.all_console), 5.0, {
            seconds(part.all_console) * linear
        }),
        ("queue_status_all", "s of QueueStatus", seconds(all.all_manager), 5.0, {
            seconds(part.all_manager) * linear
        }),
        ("queue_lists_hold", "ms that another waits at most while all are listed", ms(all.held), 5.0, {
            ms(part.held)
        }),
    ] {
        Figure { name, value, unit, target, baseline, baseline_name: BASELINE }.publish();
    }
}

fn site(queues: usize, members: usize) -> Site {
    let mut text = String::from("[general]\n");
    let mut member = 0;
    for queue in 0..queues {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "[q{queue}]\nstrategy=rrmemory\ntimeout=15\nannounce-frequency=45");
        while member * queues < (queue + 1) * members {
            let _ = writeln!(text, "member => PJSIP/{member},0,Agent {member}");
            member += 1;
        }
    }
    let site =
        Site::new("queues-bench").dialplan("[test]\nexten => 200,1,Hangup()\n").add("queues.conf", &text);
    let ip = site.sip.ip();
    let mut site = site.add("manager.conf", &Manager::file(ip));
    site.rewrite("logger.conf", QUIET_LOG);
    site
}

fn measure(queues: usize, members: usize) -> Shown {
    let site = site(queues, members);
    let begun = Instant::now();
    let server = Server::start(site);
    let start = begun.elapsed();
    let mut manager = Manager::login(server.site.sip.ip());
    let reload = manager.times(
        1,
        |_| "Action: Command\r\nCommand: queue reload all\r\n\r\nAction: Ping\r\n\r\n".to_owned(),
        "Ping: Pong",
    );
    let asked = ASKED.min(queues);
    let name = |number: usize| format!("q{}", number * (queues / asked) % queues);
    let one_console = manager.times(
        asked,
        |number| format!("Action: Command\r\nCommand: queue show {}\r\n\r\n", name(number)),
        "Output: ",
    );
    let one_manager = manager.times(
        asked,
        |number| format!("Action: QueueStatus\r\nQueue: {}\r\n\r\n", name(number)),
        "QueueStatusComplete",
    );
    let other = Other::start(&server);
    let all_console =
        manager.times(1, |_| "Action: Command\r\nCommand: queue show\r\n\r\n".to_owned(), "Output: ");
    assert_eq!(manager.count("has 0 calls"), queues, "every queue is shown");
    let all_manager = manager.times(1, |_| "Action: QueueStatus\r\n\r\n".to_owned(), "QueueStatusComplete");
    assert_eq!(manager.count("Event: QueueMember\r\n"), members, "every member is listed");
    let held = other.longest();
    println!(
        "  {queues} queues: start {start:.2?}, reload {reload:.2?}, one {one_console:.2?} and {one_manager:.2?}, all \
         {all_console:.2?} and {all_manager:.2?}, others held for {held:.2?} at most"
    );
    Shown { start, reload, one_console, one_manager, all_console, all_manager, held }
}

/// Another program that asks all the time.
struct Other {
    stop: std::sync::mpsc::Sender<()>,
    thread: std::thread::JoinHandle<Duration>,
}

impl Other {
    fn start(server: &Server) -> Self {
        let mut client = Manager::login(server.site.sip.ip());
        let (stop, stopped) = std::sync::mpsc::channel();
        let thread = std::thread::spawn(move || {
            let mut longest = Duration::ZERO;
            while stopped.try_recv().is_err() {
                longest = longest.max(client.ask("Action: Ping\r\n\r\n", "Ping: Pong"));
                std::thread::sleep(Duration::from_millis(1));
            }
            longest
        });
        Self { stop, thread }
    }
    fn longest(self) -> Duration {
        // A thread that has panicked says so when it is joined.
        let _ = self.stop.send(());
        self.thread.join().expect("it is answered")
    }
}
