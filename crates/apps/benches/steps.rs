//! How many dialplan steps a millisecond one call takes while nobody watches, against an interpreter that parses each
//! step's text anew and looks it up by name.
#![allow(clippy::disallowed_types)] // a bench reads the clock

use std::collections::HashMap;
use std::time::{Duration, Instant};

use call::Location;
use sim::World;

/// Turns of the measured loop.
const TURNS: u32 = 1_000_000;
/// Turns of the twin's loop; it is slower.
const TWIN_TURNS: u32 = 50_000;
/// Steps of one turn: Set, NoOp, GotoIf.
const STEPS_PER_TURN: u32 = 3;
/// Each is measured so often; the best counts.
const ROUNDS: u32 = 3;

fn main() {
    let ours = (0..ROUNDS).map(|_| compiled(TURNS)).min().unwrap_or_default();
    let theirs = (0..ROUNDS).map(|_| twin(TWIN_TURNS)).min().unwrap_or_default();
    let (value, baseline) = (per_millisecond(TURNS, ours), per_millisecond(TWIN_TURNS, theirs));
    let ratio = value / baseline;
    let json = format!(
        "{{\"name\": \"dialplan_steps\", \"value\": {value:.0}, \"unit\": \"steps/ms\", \"baseline\": {baseline:.0}, \
         \"baseline_name\": \"parse and look up each step\", \"ratio\": {ratio:.2}}}\n"
    );
    print!("{json}");
    let folder = std::env::var("STROWGER_BENCH_DIR")
        .unwrap_or_else(|_| concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/bench").to_owned());
    let written = std::fs::create_dir_all(&folder)
        .and_then(|()| std::fs::write(format!("{folder}/dialplan_steps.json"), &json));
    if let Err(error) = written {
        eprintln!("{folder}/dialplan_steps.json cannot be written: {error}");
        std::process::exit(1);
    }
}

fn per_millisecond(turns: u32, took: Duration) -> f64 {
    f64::from(turns * STEPS_PER_TURN) / (took.as_secs_f64() * 1e3)
}

fn location() -> Location {
    Location { context: "default".to_owned(), exten: "100".to_owned(), priority: 1 }
}

/// The run loop as it is.
fn compiled(turns: u32) -> Duration {
    let text = format!(
        "[default]\nexten => 100,1,Set(i=0)\n same => n(loop),Set(i=$[${{i}}+1])\n same => n,NoOp()\n \
         same => n,GotoIf($[${{i}}<{turns}]?loop)\n same => n,Set(GLOBAL(done)=${{i}})\n"
    );
    let (program, _) = sim::parse_dialplan(&text, &apps::table::tables());
    let mut world = World::new(program);
    let id = world.incoming("6001", "6001", location(), &[]);
    let began = Instant::now();
    apps::pbx::start(&world.shard.clone(), id, location());
    world.run();
    let took = began.elapsed();
    assert_eq!(world.global("done"), Some(turns.to_string()), "the loop ran to its end");
    took
}

/// The same steps, each found by name and parsed when it runs.
fn twin(turns: u32) -> Duration {
    let (program, _) = sim::parse_dialplan("[default]\nexten => 100,1,NoOp()\n", &apps::table::tables());
    let mut world = World::new(program);
    let id = world.incoming("6001", "6001", location(), &[]);
    let call = apps::Call::new(call::Chan::new(world.shard.clone(), id));
    let condition = format!("$[${{i}}<{turns}]?2");
    let lines = ["Set(i=0)", "Set(i=$[${i}+1])", "NoOp()", &format!("GotoIf({condition})")];
    let steps: HashMap<(String, String, u32), String> = (1u32..)
        .zip(lines)
        .map(|(priority, line)| (("default".to_owned(), "100".to_owned(), priority), line.to_owned()))
        .collect();
    let began = Instant::now();
    let mut at = location();
    while let Some(line) = steps.get(&(at.context.clone(), at.exten.clone(), at.priority)) {
        let (name, args, _) = dialplan::args::split_app(line);
        let args = call.expand(args);
        at.priority += 1;
        match name.to_ascii_lowercase().as_str() {
            "set" => {
                if let Some((name, value)) = args.split_once('=') {
                    call.assign(name, value);
                }
            }
            "gotoif" => {
                if let Some((test, target)) = args.split_once('?')
                    && dialplan::condition(test)
                {
                    at.priority = target.parse().unwrap_or(0);
                }
            }
            _ => {}
        }
    }
    let took = began.elapsed();
    assert_eq!(call.get("i"), Some(turns.to_string()), "the twin's loop ran to its end");
    took
}
