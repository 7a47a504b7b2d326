//! A dialplan's text in, what came of it out.
#![allow(dead_code)] // each test file uses its part

use std::time::Duration;

use base::{ChannelId, Instant};
use call::{Level, Location, Notice};
use sim::{Act, World};

/// A moment so many milliseconds after the world began.
pub fn at(millis: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(millis)
}

pub fn location(context: &str, exten: &str) -> Location {
    Location { context: context.to_owned(), exten: exten.to_owned(), priority: 1 }
}

/// A world whose dialplan is `[default]` and what follows.
pub fn world(dialplan: &str) -> World {
    let (program, findings) = sim::parse_dialplan(dialplan, &apps::table::tables());
    let errors: Vec<_> = findings.iter().filter(|line| line.contains("error")).collect();
    assert!(errors.is_empty(), "{errors:?}");
    World::new(program)
}

/// Starts a call from phone 6001 to `exten` of `default`.
pub fn call(world: &mut World, exten: &str, acts: &[(u64, Act)]) -> ChannelId {
    let id = world.incoming("6001", "\"Alice\" <6001>", location("default", exten), acts);
    let shard = world.shard.clone();
    assert!(apps::pbx::start(&shard, id, location("default", exten)));
    id
}

/// Runs one call of `dialplan` to its end; the world shows what happened.
pub fn run(dialplan: &str, exten: &str, acts: &[(u64, Act)]) -> World {
    let mut world = world(dialplan);
    world.watch();
    call(&mut world, exten, acts);
    world.run();
    world
}

/// The steps that were taken: `exten,priority App(data)`.
pub fn steps(world: &World) -> Vec<String> {
    let step = |notice: &Notice| match notice {
        Notice::NewExten { channel, application, data } => {
            Some(format!("{},{} {application}({data})", channel.location.exten, channel.location.priority))
        }
        _ => None,
    };
    world.notices.iter().filter_map(step).collect()
}

/// Texts of the steps of NoOp, in order: what most tests ask for.
pub fn noted(world: &World) -> Vec<String> {
    let step = |notice: &Notice| match notice {
        Notice::NewExten { application: "NoOp", data, .. } => Some(data.clone()),
        _ => None,
    };
    world.notices.iter().filter_map(step).collect()
}

pub fn warnings(world: &World) -> Vec<String> {
    let mut lines = world.log(Level::Warning);
    lines.extend(world.log(Level::Error));
    lines
}
