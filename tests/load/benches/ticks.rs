//! What the length of a tick costs and saves: the whole program with nothing to do, and with 496 callers in Playback.
//!
//! Four chunks of 124 calls, the load of Sangoma's paper on the length of TDM chunks. Rounds go through all ticks, a start
//! of the program each, and the least window of a tick counts, because others share the machine. While that does not give
//! what is asked for there is one more round, up to [`ROUNDS`].
//!
//! Processors may sleep between ticks here, as at a site: to be woken is part of what a short tick costs.
//!
//! Twice: with `epoll` on the loopback interface, where most of the cost is the kernel's for each packet and no tick saves
//! that; and with `xdp` across a wire between network namespaces, skipped without the privileges for that.
//! `STROWGER_BENCH_ONLY` names one of them, `496_calls` or `496_calls_xdp`.

use std::time::Duration;

use e2e::{SECRET, Server, Site};
use loadbench::{Callers, Figure, Ground, Listener, Meter, Plan, QUIET_LOG, World, short};

/// Callers that listen.
const CALLS: u64 = 496;
/// Packets of one caller a second.
const PACKETS: f64 = 50.0;
/// What `media_tick` can be, milliseconds.
const TICKS: [u8; 5] = [1, 2, 5, 10, 20];
/// What a program with nothing to do may take at most.
const IDLE: f64 = 0.1;
/// What a tick of 10 ms may take at most of one of 1 ms.
const TEN: f64 = 0.5;
/// Rounds at least and at most.
const ROUNDS: [usize; 2] = [2, 4];

/// Percent of a core at one tick.
#[derive(Clone, Copy)]
struct Cost {
    idle: f64,
    busy: f64,
}

fn main() {
    let only = std::env::var("STROWGER_BENCH_ONLY").ok();
    let wanted =
        |load: &str| only.as_deref().is_none_or(|only| only.split(',').any(|word| word.trim() == load));
    if wanted("496_calls") {
        of_world("496_calls", &Ground::loopback());
    }
    if !wanted("496_calls_xdp") {
        return;
    }
    match Ground::wire("ticks") {
        Ok(world) => of_world("496_calls_xdp", &world),
        Err(why) => println!("skipped: ticks with xdp, two network namespaces: {why}"),
    }
}

/// All ticks in one place; `load` is what the figures of it are called.
fn of_world(load: &str, world: &Ground) {
    let [few, many] = if short() { [1, 1] } else { ROUNDS };
    let mut least = TICKS.map(|tick| (tick, Cost { idle: f64::MAX, busy: f64::MAX }));
    for round in 0..many {
        let [(_, one), .., (_, ten), _] = least;
        if round >= few && ten.busy <= one.busy * TEN {
            break;
        }
        for (tick, least) in &mut least {
            let Cost { idle, busy } = measure(*tick, world);
            println!(
                "  {load}, a tick of {tick} ms: {idle:.3} % of a core idle, {busy:.2} % with {CALLS} calls"
            );
            *least = Cost { idle: least.idle.min(idle), busy: least.busy.min(busy) };
        }
    }
    if least.iter().any(|(_, cost)| cost.busy == f64::MAX) {
        println!("{load}: of some tick no window counts: the machine is too busy");
        return;
    }
    let [(_, one), .., (_, ten), _] = least;
    println!(
        "{load}: a tick of 10 ms takes {:.2} of one of 1 ms; target {TEN} {}",
        ten.busy / one.busy,
        if ten.busy <= one.busy * TEN { "met" } else { "NOT met" }
    );
    for (tick, cost) in least {
        let busy_target = if tick < 10 { one.busy } else { one.busy * TEN };
        let busy = (load, cost.busy, busy_target, one.busy);
        let idle = (!world.has_wire()).then_some(("idle", cost.idle, IDLE, one.idle));
        for (what, value, target, baseline) in idle.into_iter().chain([busy]) {
            let name = &format!("tick_{tick:02}_ms_{what}");
            let unit = "percent of a core";
            Figure { name, value, unit, target, baseline, baseline_name: "a tick of 1 ms" }.publish();
        }
    }
}

fn measure(tick: u8, world: &Ground) -> Cost {
    let calls = if short() { CALLS / 8 } else { CALLS };
    let (windows, length) =
        if short() { (1, Duration::from_millis(500)) } else { (3, Duration::from_secs(2)) };
    let mut site = Site::at("ticks", (world.program, 5060).into())
        .prompt("long", 440.0, 120.0)
        .dialplan(
            "[test]\nexten => 100,1,Answer()\n same => n(again),Playback(long)\n same => n,Goto(again)\n",
        )
        .trunk("load", (world.phones, 5060).into());
    site.rewrite("logger.conf", QUIET_LOG);
    let io = if world.has_wire() {
        format!("xdp\nmedia_interfaces = {}", World::INTERFACE)
    } else {
        "epoll".into()
    };
    let rtp = format!(
        "[general]\nrtpstart = 10000\nrtpend = 19999\nmedia_workers = 1\nmedia_tick = {tick}\nmedia_io = {io}\n"
    );
    site.rewrite("rtp.conf", &rtp);
    let server = world.at_program(|| Server::start(site));
    let meter = Meter::new(server.pid());
    // Windows that `counts` does not let count say nothing.
    let least = |counts: &dyn Fn() -> bool| {
        let mut before = meter.read();
        let shares = (0..windows).map(|_| {
            std::thread::sleep(length);
            let after = meter.read();
            let share = after.cpu_since(&before) / after.seconds_since(&before) * 100.0;
            before = after;
            if counts() { share } else { f64::MAX }
        });
        shares.fold(f64::MAX, f64::min)
    };
    std::thread::sleep(length);
    let idle = least(&|| true);
    let listener = world.at_phones(|| Listener::start(world.phones));
    let plan = Plan {
        server: server.site.sip,
        ip: world.phones,
        user: "load".into(),
        secret: SECRET.into(),
        exten: "100".into(),
        rate: 250,
        limit: calls,
        audio: listener.port(),
    };
    let callers = world.at_phones(|| Callers::start(plan));
    let hear = || (world.at_phones(|| listener.heard()), std::time::Instant::now());
    e2e::wait::until_true("all calls are answered", || callers.answered() >= calls);
    // The set-up has left replies, records and a worker that measures its load once a second.
    std::thread::sleep(length);
    let heard = std::cell::Cell::new(hear());
    let busy = least(&|| {
        let (before, since) = heard.get();
        let (all, now) = hear();
        heard.set((all, now));
        let due = calls as f64 * PACKETS * (now - since).as_secs_f64();
        let share = (all - before) as f64 / due;
        // A figure of a program that sends less than it should would be one of another load; and where the listener is
        // crowded out, so is the program.
        if share < 0.95 {
            println!("  {:.1} % of the packets were heard: this window does not count", share * 100.0);
        }
        share >= 0.95
    });
    assert_eq!((callers.refused(), callers.ended()), (0, 0), "every call stays up");
    Cost { idle, busy }
}
