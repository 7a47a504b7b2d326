//! A dialplan's text in, what came of it out.
#![allow(dead_code)] // each test file uses its part

use std::time::Duration;

use base::{Cause, ChannelId, Instant};
use call::{Level, Location, Notice};
use sim::{Act, Phone, World};

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
    let world = World::new(program);
    world.shard.interception.set(apps::intercept);
    world
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
    // From the log: watchers are not told again of the step that somebody was sent to.
    let step = |line: &String| {
        let (_, arguments) = line.strip_prefix("Executing [")?.split_once("] NoOp(\"")?;
        let (_, data) = arguments.split_once("\", \"")?;
        data.strip_suffix("\") in new stack").map(str::to_owned)
    };
    world.log(Level::Verbose(3)).iter().filter_map(step).collect()
}

pub fn warnings(world: &World) -> Vec<String> {
    let mut lines = world.log(Level::Warning);
    lines.extend(world.log(Level::Error));
    lines
}

pub fn phone(acts: &[(u64, Act)]) -> Phone {
    Phone { acts: acts.to_vec(), refuses: None }
}

pub fn refusing(cause: Cause) -> Phone {
    Phone { acts: Vec::new(), refuses: Some(cause) }
}

pub const BYE: Act = Act::Hangup(Cause::NORMAL_CLEARING);

/// A phone that rings after one second and is picked up after three.
pub fn answers() -> Phone {
    phone(&[(1000, Act::Ring), (3000, Act::Answer)])
}

/// The same, hanging up five seconds after the answer.
pub fn talks() -> Phone {
    phone(&[(1000, Act::Ring), (3000, Act::Answer), (8000, BYE)])
}

/// One call of `1` in a world with these phones.
pub fn dialled(dialplan: &str, phones: &[(&str, Phone)], caller: &[(u64, Act)]) -> World {
    let mut world = world(&format!("[default]\n{dialplan}\n"));
    world.watch();
    for (name, phone) in phones {
        world.phone(name, phone.clone());
    }
    call(&mut world, "1", caller);
    world.run();
    at_rest(&world, dialplan);
    world
}

/// Nothing is left of any call.
pub fn at_rest(world: &World, name: &str) {
    let core = world.shard.core.borrow();
    assert_eq!(core.channel_count(), 0, "{name}: channels");
    // Where agents and parked calls wait is there for the next ones, and a program's until the program takes it away.
    let stays = |id| {
        let used_for = core.bridge_snapshot(id).map(|bridge| bridge.used_for);
        let waits = matches!(used_for, Some(call::BridgeUse::Agents | call::BridgeUse::Parking));
        waits || core.stasis_bridge_with(id).is_some()
    };
    let left = core.bridges().filter(|(id, members)| !members.is_empty() || !stays(*id));
    assert_eq!(left.count(), 0, "{name}: bridges");
    assert_eq!(world.shard.stories(), 0, "{name}: stories");
    assert_eq!((world.open_streams(), world.joins()), (0, 0), "{name}: streams");
}

/// Lines of the transcript that hold `part`.
pub fn lines(world: &World, part: &str) -> Vec<String> {
    world.transcript().into_iter().filter(|line| line.contains(part)).collect()
}

/// Statuses of DialEnd, in order.
pub fn ends(world: &World) -> Vec<&'static str> {
    let status = |notice: &Notice| match notice {
        Notice::DialEnd { status, .. } => Some(*status),
        _ => None,
    };
    world.notices.iter().filter_map(status).collect()
}

/// Whether every line is in the transcript, in this order.
pub fn in_order(world: &World, wanted: &[&str]) {
    let transcript = world.transcript();
    let mut rest = transcript.iter();
    for line in wanted {
        assert!(rest.any(|said| said == line), "{line:?} is not (or not there) in {transcript:#?}");
    }
}

/// Result variables as NoOp shows them, however the call goes on: also from `h`.
pub const SHOW: &str = "\n same => n,NoOp(${DIALSTATUS}/${DIALEDPEERNAME}/${DIALEDPEERNUMBER}/${ANSWEREDTIME}/${DIALEDTIME}/${RINGTIME_MS})\
                    \nexten => h,1,NoOp(h ${DIALSTATUS})";
