//! Whatever callers, phones and administrators do, and in whatever order: nothing is left behind.
//!
//! Worlds are made from seeds by the core's own generator; a failing seed repeats exactly.

mod common;

use std::time::Duration;

use apps::originate::{Originate, Then, originate};
use base::Cause;
use call::{Disposition, Notice};
use common::{at, call, location};
use sim::{Act, Phone, World};

/// Worlds of one run.
const WORLDS: u64 = 1500;
/// After this nobody does anything any more; every call ends of itself soon after.
const BUSY_MS: u64 = 20_000;
/// Every dialplan here and every sound ends before this.
const QUIET_MS: u64 = 400_000;

/// What a bomb's panic says.
const BOMB: &str = "made to explode";

/// SplitMix64.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (z ^ (z >> 31)) % bound
    }
    fn one<T: Copy>(&mut self, of: &[T]) -> T {
        of[usize::try_from(self.below(of.len() as u64)).unwrap_or(0)]
    }
    /// Moments are few, so that many things happen at the same one.
    fn moment(&mut self) -> u64 {
        self.below(BUSY_MS / 500) * 500
    }
}

const PLAN: &str = "\
[default]
exten => s,1,Wait(1)
exten => 1,1,Dial(SIM/a,8)
exten => 2,1,Dial(SIM/a&SIM/b&SIM/c,8,gm)
 same => n,Playback(sorry)
exten => 3,1,Answer()
 same => n,Set(TIMEOUT(absolute)=12)
 same => n,Dial(SIM/b,8,hHeL(6000:3000:1000)A(hello)D(1))
exten => 4,1,Dial(SIM/c,8,U(sub)F(default^8^1))
exten => 5,1,Dial(SIM/a&SIM/c,8,G(default^8^1)b(sub^s^1)r)
exten => 6,1,BackGround(menu)
 same => n,WaitExten(3)
exten => 7,1,Record(x.wav,,5)
 same => n,Originate(SIM/b,exten,default,8,1,5)
 same => n,Playback(bomb)
exten => 8,1,Read(got,menu,3,,2,2)
 same => n,Echo()
exten => 9,1,MusicOnHold(,4)
 same => n,Dial(SIM/gone&SIM/b,4,dR)
 same => n,Dial(SIM/c,4,S(3))
exten => h,1,NoOp(${DIALSTATUS})
 same => n,Set(DB(calls/${UNIQUEID})=${EPOCH})
exten => t,1,Hangup()
exten => i,1,Goto(1,1)
exten => T,1,Playback(time)
[sub]
exten => s,1,Wait(1)
 same => n,ExecIf($[${RAND(0,9)} = 0]?Playback(bomb))
 same => n,Return()
";

fn anything(random: &mut Random) -> Act {
    match random.below(12) {
        0..=2 => Act::Press(random.one(&['1', '5', '8', '*', '#'])),
        3 => Act::PressRelayed('*'),
        4 => Act::Hold,
        5 => Act::Unhold,
        6 => Act::Redirect(location("default", random.one(&["8", "1", "nowhere", "s"]))),
        7 => Act::MediaTimeout,
        8 => Act::Silence(2000),
        9 => Act::Hangup(Cause::NORMAL_CLEARING),
        10 => Act::Progress,
        _ => Act::Ring,
    }
}

/// What a phone that is called does: mostly what phones do, now and then anything.
fn phone(random: &mut Random) -> Phone {
    let mut acts = Vec::new();
    if random.below(8) == 0 {
        return Phone { acts, refuses: Some(random.one(&[Cause::USER_BUSY, Cause::SUBSCRIBER_ABSENT])) };
    }
    for _ in 0..random.below(3) {
        acts.push((random.moment(), anything(random)));
    }
    match random.below(5) {
        0 => acts.push((random.below(6) * 500, Act::Hangup(Cause::USER_BUSY))),
        1 => acts.push((random.below(6) * 500, Act::Forward("SIM/b".to_owned()))),
        _ => acts.push((random.below(6) * 500, Act::Answer)),
    }
    Phone { acts, refuses: None }
}

fn world(random: &mut Random) -> World {
    let mut world = common::world(PLAN);
    world.watch();
    world.explosive("bomb");
    for name in ["a", "b", "c"] {
        let phone = phone(random);
        world.phone(name, phone);
    }
    world
}

/// Lets things happen; the caller hangs up at the latest when the busy time is over.
fn happen(world: &mut World, random: &mut Random) {
    for _ in 0..=random.below(3) {
        let mut acts: Vec<(u64, Act)> =
            (0..random.below(5)).map(|_| (random.moment(), anything(random))).collect();
        acts.push((random.moment() + 500, Act::Hangup(Cause::NORMAL_CLEARING)));
        let exten = random.one(&["1", "2", "3", "4", "5", "6", "7", "8", "9", "77"]);
        call(world, exten, &acts);
    }
    if random.below(3) == 0 {
        let then = match random.below(2) {
            0 => Then::App { name: "Dial".to_owned(), data: "SIM/b,5".to_owned() },
            _ => Then::Exten(location("default", "8")),
        };
        let wanted = Originate { target: "SIM/a".to_owned(), then, ..Originate::default() };
        let _ = originate(&world.shard.clone(), wanted, |_| {});
    }
    // An administrator sends or ends whatever there is at some moments.
    for _ in 0..random.below(4) {
        world.run_until(world.now() + Duration::from_millis(random.below(6) * 500));
        let ids: Vec<_> = world.shard.core.borrow().channels().map(|c| c.id).collect();
        if ids.is_empty() {
            continue;
        }
        let id = random.one(&ids);
        let mut core = world.shard.core.borrow_mut();
        match random.below(2) {
            0 => core.request_hangup(id, Cause::NORMAL_CLEARING),
            _ => core.request_goto(id, location("default", "8")),
        }
    }
    world.run_until(at(BUSY_MS));
    let ids: Vec<_> = world.shard.core.borrow().channels().map(|c| c.id).collect();
    for id in ids {
        world.hang_up(id);
    }
    world.run();
}

/// Each channel that was made is told to have ended, once; bridges likewise.
fn ends_match(world: &World, seed: u64) {
    let count = |of: fn(&Notice) -> bool| world.notices.iter().filter(|notice| of(notice)).count();
    let pairs = [
        (
            "channels",
            count(|n| matches!(n, Notice::NewChannel(_))),
            count(|n| matches!(n, Notice::Hangup { .. })),
        ),
        (
            "bridges",
            count(|n| matches!(n, Notice::BridgeCreate { .. })),
            count(|n| matches!(n, Notice::BridgeDestroy { .. })),
        ),
        (
            "members",
            count(|n| matches!(n, Notice::BridgeEnter { .. })),
            count(|n| matches!(n, Notice::BridgeLeave { .. })),
        ),
    ];
    for (what, begun, ended) in pairs {
        assert_eq!(begun, ended, "seed {seed}: {what}");
    }
}

/// Every channel that ran a dialplan and was answered has a record; none has two of the same conversation.
fn records_match(world: &World, seed: u64) {
    let mut seen = std::collections::BTreeSet::new();
    for record in &world.cdrs {
        assert!(
            seen.insert((record.uniqueid.clone(), record.sequence)),
            "seed {seed}: {} has record {} twice",
            record.channel,
            record.sequence
        );
        assert!(record.billsec <= record.duration, "seed {seed}: {record:?}");
        let answered = record.disposition == Disposition::Answered;
        assert!(answered || !record.dst_channel.is_empty(), "seed {seed}: {record:?}");
    }
    let up = world.notices.iter().filter_map(|notice| match notice {
        Notice::NewState(channel) if channel.state == call::ChanState::Up => {
            Some((channel.name.to_string(), channel.uniqueid.clone()))
        }
        _ => None,
    });
    // From the log: watchers are told at once of where a channel is sent, which may end before it takes a step there. Dial's
    // option `e` runs `h` on a leg, which makes no call of it.
    let stepped: std::collections::BTreeSet<String> = world
        .log(call::Level::Verbose(3))
        .iter()
        .filter_map(|line| {
            let (place, rest) = line.strip_prefix("Executing [")?.split_once("] ")?;
            let (exten, context) = place.split_once('@')?;
            let (_, channel) = rest.split_once("(\"")?;
            let is_call = context.starts_with("default:") && exten != "h";
            is_call.then(|| channel.split_once('"').map_or(channel, |(name, _)| name).to_owned())
        })
        .collect();
    for (_, uniqueid) in up.filter(|(name, _)| stepped.contains(name)) {
        let answered = world.cdrs.iter().filter(|r| *r.uniqueid == *uniqueid && r.answer.is_some());
        assert!(answered.count() >= 1, "seed {seed}: {uniqueid} was answered and has no record");
    }
}

#[test]
fn nothing_is_left_of_any_call_and_every_answered_one_has_its_record() {
    // The bombs are meant to go off; the world's own log keeps their texts.
    let loud = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |fault| {
        let meant = fault.payload().downcast_ref::<String>().is_some_and(|text| text.contains(BOMB));
        if !meant {
            loud(fault);
        }
    }));
    let mut faults = 0;
    for seed in 0..WORLDS {
        let random = &mut Random(seed);
        let mut world = world(random);
        happen(&mut world, random);
        {
            let core = world.shard.core.borrow();
            assert_eq!(core.channel_count(), 0, "seed {seed}: channels");
            assert_eq!(core.call_count(), 0, "seed {seed}: calls");
            assert_eq!(core.bridges().count(), 0, "seed {seed}: bridges");
        }
        assert_eq!(world.shard.stories(), 0, "seed {seed}: stories");
        assert_eq!((world.open_streams(), world.joins()), (0, 0), "seed {seed}: streams");
        assert!(world.now() < at(QUIET_MS), "seed {seed}: it lasted until {:?}", world.now());
        for line in world.log(call::Level::Error).iter().filter(|line| line.contains("panicked")) {
            assert!(line.contains(BOMB), "seed {seed}: {line}");
            faults += 1;
        }
        ends_match(&world, seed);
        records_match(&world, seed);
    }
    assert!(faults > 0, "no bomb went off: the worlds are too tame");
}
