//! Whatever programs, callers and managers do with calls, and in whatever order: each channel comes to a program and leaves it
//! as often, what plays and records ends, and nothing is left behind.
//!
//! Worlds are made from seeds; a failing one repeats exactly.

mod common;
#[path = "common/programs.rs"]
mod programs;

use std::collections::BTreeMap;
use std::time::Duration;

use apps::originate::Then;
use apps::stasis::{self, Continue, Create, Direction, Joining, Playing, Recording, Start};
use base::{Cause, ChannelId};
use call::stasis::{
    BridgeKind, Digits, IfExists, MediaChange, NewBridge, PlaybackSteer, StasisError, StasisNotice,
};
use call::{Exchange, Notice, PartyId};
use common::*;
use programs::*;
use sim::{Act, World};

/// Worlds of one run.
const WORLDS: u64 = 400;
/// Acts of one world.
const ACTS: usize = 120;

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
    fn one<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        &of[usize::try_from(self.below(of.len() as u64)).unwrap_or(0)]
    }
    fn chance(&mut self, of: u64) -> bool {
        self.below(of) == 0
    }
}

/// What has to have happened, so that the test means something.
const WORDS: &[&str] = &[
    "start", "instead", "end", "keeps", "plays", "goes", "played", "records", "recorded", "failed", "made",
    "gone", "enters", "leaves",
];

struct Game {
    world: World,
    random: Random,
    ids: Vec<ChannelId>,
    names: Vec<String>,
}

const APPS: [&str; 3] = ["app", "other", "third"];
const BRIDGES: [&str; 3] = ["a", "b", "c"];
const PLAYS: [&str; 4] = ["p0", "p1", "p2", "p3"];
const TAKES: [&str; 3] = ["r0", "r1", "r2"];
const SOUNDS: [&str; 7] =
    ["sound:hello", "digits:123", "tone:ring", "sound:gone", "number:42", "nonsense", "sound:bomb"];

impl Game {
    fn new(seed: u64) -> Self {
        let mut world = programs();
        world.missing("gone");
        world.explosive("bomb");
        world.phone("a", phone(&[(1000, Act::Ring), (2000, Act::Answer)]));
        world.phone("late", phone(&[(1000, Act::Ring)]));
        world.phone("busy", phone(&[(1000, Act::Hangup(Cause::USER_BUSY))]));
        Self { world, random: Random(seed), ids: Vec::new(), names: Vec::new() }
    }
    fn channel(&mut self) -> String {
        if self.names.is_empty() { "nobody".to_owned() } else { self.random.one(&self.names).clone() }
    }
    fn keep(&mut self, id: ChannelId) {
        self.ids.push(id);
        self.names.push(uid(&self.world, id));
    }
    fn act(&mut self) {
        match self.random.below(10) {
            0 => self.come(),
            1 => self.disturb(),
            2 | 3 => self.bridges(),
            4 | 5 => self.media(),
            _ => self.verbs(),
        }
        // Whatever came of it, it is one of these.
        let now = self.world.now().as_millis();
        let pass = *self.random.one(&[0, 0, 1, 20, 500, 2000]);
        self.world.run_until(common::at(now + pass));
        let core = self.world.shard.core.borrow();
        let direct = core.stasis.bridges().filter(|bridge| bridge.is_direct()).count();
        assert_eq!(self.world.joins(), direct, "who hears whom is what bridges say: {:?}", core.stasis);
    }
    fn come(&mut self) {
        let id = format!("c{}", self.names.len());
        let endpoint = (*self.random.one(&["SIM/a", "SIM/late", "SIM/busy", "SIM/none"])).to_owned();
        let create = Create { endpoint, id: Some(id), ..Create::default() };
        let app = (*self.random.one(&APPS)).to_owned();
        let shard = self.world.shard.clone();
        let made = match self.random.below(4) {
            0 | 1 => {
                let exten = *self.random.one(&["1", "4", "6"]);
                Ok(call(&mut self.world, exten, &[]))
            }
            2 => stasis::create(&shard, create, (&app, Vec::new()), dialplan::Rights::CALLS),
            _ => {
                let then = Then::Stasis { app, args: Vec::new() };
                let timeout = Some(Duration::from_secs(5));
                let start = Start { create, then, caller: PartyId::default(), timeout };
                stasis::originate(&shard, start, dialplan::Rights::CALLS)
            }
        };
        if let Ok(id) = made {
            self.keep(id);
        }
    }
    /// What others do.
    fn disturb(&mut self) {
        if self.ids.is_empty() {
            return;
        }
        let id = *self.random.one(&self.ids);
        let at = Duration::from_millis(self.random.below(3) * 500);
        match self.random.below(9) {
            0 => self.world.act(id, at, BYE),
            1 => self.world.act(id, at, Act::Press('#')),
            2 => self.world.act(id, at, Act::Silence(1000)),
            3 => self.world.act(id, at, Act::Redirect(location("default", "4"))),
            4 => self.world.act(id, at, Act::Hold),
            5 => self.world.act(id, at, Act::Unhold),
            6 => {
                let app = *self.random.one(&APPS);
                let mut core = self.world.shard.core.borrow_mut();
                core.stasis.unregister(app);
            }
            7 => {
                let app = *self.random.one(&APPS);
                register(&self.world, app);
            }
            _ => {
                let newcomer = *self.random.one(&self.ids);
                if newcomer != id {
                    self.world.shard.core.borrow_mut().request_exchange(Exchange {
                        place: id,
                        newcomer,
                        leaving: Vec::new(),
                        is_fresh: false,
                        mirrored: false,
                        answers: false,
                        notice: None,
                        cause: Cause::NORMAL_CLEARING,
                    });
                }
            }
        }
    }
    fn bridges(&mut self) {
        let shard = self.world.shard.clone();
        let (bridge, channel) = (*self.random.one(&BRIDGES), self.channel());
        let kind = *self.random.one(&[BridgeKind::Mixing, BridgeKind::Mixing, BridgeKind::Holding]);
        let joining = Joining { announces: self.random.chance(3), ..Joining::default() };
        let done: Result<(), StasisError> = match self.random.below(10) {
            0 | 1 => {
                let new = NewBridge { id: Some(bridge.to_owned()), kind, ..NewBridge::default() };
                stasis::create_bridge(&shard, new).map(drop)
            }
            2 => stasis::destroy_bridge(&shard, bridge),
            3 => stasis::remove_channels(&shard, bridge, &[&channel]),
            4 => {
                let play = *self.random.one(&PLAYS);
                let media = [*self.random.one(&SOUNDS[..6]), *self.random.one(&SOUNDS[..6])];
                stasis::bridge_play(&shard, bridge, playing(play, &media)).map(drop)
            }
            5 => {
                let take = *self.random.one(&TAKES);
                stasis::bridge_record(&shard, bridge, self.take(take, false)).map(drop)
            }
            6 => {
                let class = self.random.chance(2).then_some("soft");
                stasis::bridge_music(&shard, bridge, class)
            }
            _ => stasis::add_channels(&shard, bridge, &[&channel], joining),
        };
        known(done);
    }
    fn take(&mut self, name: &str, of_channel: bool) -> Recording {
        Recording {
            longest: Duration::from_secs(self.random.below(5)),
            max_silence: Duration::from_secs(if of_channel { self.random.below(2) } else { 0 }),
            if_exists: *self.random.one(&[IfExists::Overwrite, IfExists::Append, IfExists::Fail]),
            beep: self.random.chance(2),
            terminate_on: if of_channel && self.random.chance(2) { "#".to_owned() } else { String::new() },
            ..recording(name)
        }
    }
    fn media(&mut self) {
        let shard = self.world.shard.clone();
        let (channel, play, take) = (self.channel(), *self.random.one(&PLAYS), *self.random.one(&TAKES));
        let steers = [
            PlaybackSteer::Restart,
            PlaybackSteer::Pause,
            PlaybackSteer::Unpause,
            PlaybackSteer::Reverse,
            PlaybackSteer::Forward,
        ];
        let on = self.random.chance(2);
        let done: Result<(), StasisError> = match self.random.below(10) {
            0..=2 => {
                // A bomb is a fault in our own code: rare.
                let most = if self.random.chance(30) { 7 } else { 6 };
                let media = [*self.random.one(&SOUNDS[..most]), *self.random.one(&SOUNDS[..6])];
                let wanted = Playing { offset_ms: self.random.below(2000), ..playing(play, &media) };
                stasis::play(&shard, &channel, wanted).map(drop)
            }
            3 => {
                let wanted = self.take(take, true);
                stasis::record(&shard, &channel, wanted).map(drop)
            }
            4 | 5 => {
                let steer = *self.random.one(&steers);
                stasis::control_playback(&shard, play, steer)
            }
            6 => stasis::stop_playback(&shard, play),
            7 => stasis::pause_recording(&shard, take, on),
            8 => stasis::mute_recording(&shard, take, on),
            _ if on => stasis::stop_recording(&shard, take),
            _ => stasis::discard_recording(&shard, take),
        };
        known(done);
    }
    fn verbs(&mut self) {
        let shard = self.world.shard.clone();
        let channel = self.channel();
        let on = self.random.chance(2);
        let pause = Duration::from_millis(self.random.below(1000));
        let done: Result<(), StasisError> = match self.random.below(15) {
            0 => stasis::answer(&shard, &channel),
            1 => stasis::hangup(&shard, &channel, None, None),
            2 => stasis::continue_in_dialplan(&shard, &channel, &Continue::default()),
            3 => {
                let to = Continue { extension: Some("4".into()), ..Continue::default() };
                stasis::continue_in_dialplan(&shard, &channel, &to)
            }
            4 => {
                let app = *self.random.one(&APPS);
                stasis::move_to(&shard, &channel, app, vec!["x".into()])
            }
            5 => stasis::ring(&shard, &channel, on),
            6 => stasis::mute(&shard, &channel, Direction::Both, on),
            7 => stasis::hold(&shard, &channel, on),
            8 => stasis::music(&shard, &channel, on.then_some("soft")),
            9 => stasis::silence(&shard, &channel, on),
            10 => {
                let digits = "1w2".to_owned();
                let digits = Digits { digits, before: pause, between: pause, duration_ms: 100, after: pause };
                stasis::send_digits(&shard, &channel, digits)
            }
            11 => stasis::dial(&shard, &channel, None, Duration::from_secs(self.random.below(4))),
            12 => stasis::set_channel_variable(&shard, &channel, ("A", "1"), None, dialplan::Rights::CALLS),
            13 => stasis::rtp_statistics(&shard, &channel).map(drop),
            _ => stasis::redirect(&shard, &channel, "SIM/9"),
        };
        known(done);
    }
    /// All that is there ends.
    fn end(&mut self) {
        let ids: Vec<ChannelId> =
            self.world.shard.core.borrow().channels().map(|channel| channel.id).collect();
        for id in ids {
            self.world.hang_up(id);
        }
        for bridge in BRIDGES {
            let _ = stasis::destroy_bridge(&self.world.shard, bridge);
        }
        self.world.run();
    }
}

/// An error is one that a client is told, and says something.
fn known(done: Result<(), StasisError>) {
    if let Err(why) = done {
        assert!((400..=500).contains(&why.status()) && !why.text().is_empty(), "{why:?}");
    }
}

/// Everything that begins ends once, and nothing ends that has not begun; bridges hold who entered and did not leave.
fn balance(notices: &[Notice], seed: u64) {
    let mut inside: BTreeMap<String, String> = BTreeMap::new();
    let mut bridged: BTreeMap<String, String> = BTreeMap::new();
    let (mut plays, mut takes) = (BTreeMap::new(), BTreeMap::new());
    for notice in notices {
        let Notice::Stasis(of) = notice else { continue };
        match &**of {
            StasisNotice::Start { app, channel, .. } => {
                let before = inside.insert(channel.uniqueid.to_string(), app.to_string());
                assert_eq!(before, None, "seed {seed}: {} started twice", channel.name);
            }
            StasisNotice::End { app, channel } => {
                let before = inside.remove(&*channel.uniqueid);
                assert_eq!(before.as_deref(), Some(&**app), "seed {seed}: {} ended", channel.name);
            }
            StasisNotice::Playback { change, playback } => {
                // Several may have one id.
                let running: &mut bool = plays.entry(playback.key.to_string()).or_default();
                match change {
                    // Of each sound of a list, and again after a rest.
                    MediaChange::Started => *running = true,
                    MediaChange::Continuing => assert!(*running, "seed {seed}"),
                    _ => *running = false,
                }
            }
            StasisNotice::Recording { change, recording } => {
                let running: &mut bool = takes.entry(recording.name.to_string()).or_default();
                match change {
                    MediaChange::Started => assert!(!core::mem::replace(running, true), "seed {seed}"),
                    _ => *running = false,
                }
            }
            StasisNotice::BridgeEntered { bridge, channel } => {
                let before = bridged.insert(channel.uniqueid.to_string(), bridge.id.to_string());
                assert_eq!(before, None, "seed {seed}: {} entered twice", channel.name);
                assert!(bridge.channels.contains(&channel.uniqueid), "seed {seed}");
            }
            StasisNotice::BridgeLeft { bridge, channel } => {
                let before = bridged.remove(&*channel.uniqueid);
                assert_eq!(before.as_deref(), Some(&*bridge.id), "seed {seed}: {} left", channel.name);
            }
            _ => {}
        }
    }
    assert!(inside.is_empty() && bridged.is_empty(), "seed {seed}: {inside:?} {bridged:?}");
    assert!(plays.values().chain(takes.values()).all(|running| !running), "seed {seed}");
}

#[test]
fn whatever_is_done_in_whatever_order_all_that_begins_ends_once() {
    let worlds = std::env::var("STROWGER_WORLDS").ok().and_then(|n| n.parse().ok()).unwrap_or(WORLDS);
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    let first = std::env::var("STROWGER_SEED").ok().and_then(|n| n.parse().ok()).unwrap_or(0);
    for seed in first..first + worlds {
        let mut game = Game::new(seed);
        for _ in 0..ACTS {
            game.act();
        }
        game.end();
        balance(&game.world.notices, seed);
        for line in told(&game.world) {
            let word = line.split(' ').rfind(|word| WORDS.contains(word)).unwrap_or("");
            *seen.entry(word.to_owned()).or_default() += 1;
        }
        let name = format!("seed {seed}");
        at_rest(&game.world, &name);
        let core = game.world.shard.core.borrow();
        assert!(core.stasis.is_at_rest(), "{name}: {:?}", core.stasis);
    }
    for word in WORDS {
        assert!(seen.get(*word).is_some_and(|count| *count > 10), "{word} hardly ever came: {seen:?}");
    }
}
