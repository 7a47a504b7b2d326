//! A database that is away for ten minutes while 250 peers a second register, on invented time: what registrations read goes
//! through the cache, what they write goes behind.

use std::collections::BTreeMap;
use std::time::Duration;

use base::Instant;
use realtime::behind::{Behind, Outcome};
use realtime::cache::{Cache, Given, Output, Rules, Unanswered};

const PEERS: u32 = 15_000;
/// Milliseconds between two registrations: 250 a second.
const EVERY_MS: u64 = 4;
/// Seconds at which the database goes, at which it is back, and at which nobody registers any more.
const GOES: u64 = 60;
const BACK: u64 = 660;
const ENDS: u64 = 720;
/// What a database that is there takes for an answer.
const PACE: Duration = Duration::from_millis(5);
/// After so long whoever asks gives a question up.
const GIVEN_UP: Duration = Duration::from_secs(10);

fn at(seconds: u64) -> Instant {
    Instant::ZERO + Duration::from_secs(seconds)
}

/// How a database is away.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Away {
    /// Nobody listens: a question fails at once.
    Gone,
    /// Somebody listens and says nothing: it fails when it is given up.
    Silent,
}

/// What happens at a moment.
enum Event {
    Registers(u32),
    Answered(u32, bool),
    AllAnswered,
    Written(Vec<(u32, u64)>, bool),
}

struct World {
    now: Instant,
    away: Away,
    events: BTreeMap<(Instant, u64), Event>,
    next: u64,
    cache: Cache<u32, u32, u32>,
    behind: Behind<u32, u64>,
    /// Rows as the database has them, and as they should be: the number of the registration that wrote them last.
    table: BTreeMap<u32, u64>,
    wanted: BTreeMap<u32, u64>,
    registered: u64,
    refused: u64,
    longest_wait: Duration,
    waiting: BTreeMap<u32, Vec<Instant>>,
    asked: u64,
    told: Vec<&'static str>,
}

impl World {
    fn new(away: Away, rules: Rules) -> Self {
        let mut world = Self {
            now: Instant::ZERO,
            away,
            events: BTreeMap::new(),
            next: 0,
            cache: Cache::new(rules, 7),
            behind: Behind::default(),
            table: BTreeMap::new(),
            wanted: BTreeMap::new(),
            registered: 0,
            refused: 0,
            longest_wait: Duration::ZERO,
            waiting: BTreeMap::new(),
            asked: 0,
            told: Vec::new(),
        };
        let mut out = Vec::new();
        world.cache.ask_all(world.now, &mut out);
        world.carry_out(out);
        let registrations = (1_000..ENDS * 1_000).step_by(EVERY_MS as usize).zip((0..PEERS).cycle());
        for (millis, peer) in registrations {
            world.plan(Instant::ZERO + Duration::from_millis(millis), Event::Registers(peer));
        }
        world
    }
    fn plan(&mut self, when: Instant, event: Event) {
        self.next += 1;
        self.events.insert((when, self.next), event);
    }
    /// When a question that is asked now is answered, and whether by the database.
    fn answer_at(&self) -> (Instant, bool) {
        let is_away = (at(GOES)..at(BACK)).contains(&self.now);
        match (is_away, self.away) {
            (false, _) => (self.now + PACE, true),
            (true, Away::Gone) => (self.now, false),
            (true, Away::Silent) => (self.now + GIVEN_UP, false),
        }
    }
    fn carry_out(&mut self, out: Vec<Output<u32, u32, u32>>) {
        for output in out {
            match output {
                Output::Ask(peer) => {
                    self.asked += 1;
                    let (when, answers) = self.answer_at();
                    self.plan(when, Event::Answered(peer, answers));
                }
                Output::AskAll => {
                    let (when, _) = self.answer_at();
                    self.plan(when, Event::AllAnswered);
                }
                Output::Tell(peer, given) => {
                    let since = self.waiting.get_mut(&peer).and_then(Vec::pop).expect("somebody waits");
                    self.longest_wait = self.longest_wait.max(self.now.since(since));
                    self.finish(peer, &given);
                }
                Output::Changed(..) => {}
                Output::Away => self.told.push("away"),
                Output::Back => self.told.push("back"),
            }
        }
    }
    fn finish(&mut self, peer: u32, given: &Given<u32>) {
        match given {
            Given::Known(row) if *row == peer => {
                self.registered += 1;
                self.wanted.insert(peer, self.registered);
                assert!(self.behind.put(peer, self.registered, self.now), "there is room");
            }
            _ => self.refused += 1,
        }
    }
    fn happen(&mut self, event: Event) {
        let mut out = Vec::new();
        match event {
            Event::Registers(peer) => match self.cache.get(&peer, peer, self.now, &mut out) {
                Given::Awaited => self.waiting.entry(peer).or_default().push(self.now),
                given => self.finish(peer, &given),
            },
            Event::Answered(peer, answers) => {
                let answer = if answers { Ok(Some(peer)) } else { Err(Unanswered) };
                self.cache.answered(&peer, answer, self.now, &mut out);
            }
            Event::AllAnswered => {
                let rows = (0..PEERS).map(|peer| (peer, peer)).collect();
                self.cache.all_answered(Ok(rows), self.now, &mut out);
            }
            Event::Written(rows, answers) => {
                let outcome = if answers { Outcome::Written } else { Outcome::Away };
                self.table.extend(rows.iter().copied().filter(|_| answers));
                self.behind.done(outcome, self.now);
            }
        }
        self.carry_out(out);
    }
    fn run(&mut self) {
        loop {
            let next = self.events.first_key_value().map(|((when, _), _)| *when);
            let machines = [self.cache.deadline(), self.behind.deadline()];
            let Some(now) = machines.into_iter().flatten().chain(next).min() else { return };
            self.now = self.now.max(now);
            while let Some(entry) = self.events.first_entry().filter(|entry| entry.key().0 <= self.now) {
                let event = entry.remove();
                self.happen(event);
            }
            let mut out = Vec::new();
            self.cache.due(self.now, &mut out);
            self.carry_out(out);
            let batch = self.behind.take(self.now).to_vec();
            if !batch.is_empty() {
                let (when, answers) = self.answer_at();
                self.plan(when, Event::Written(batch, answers));
            }
        }
    }
}

#[test]
fn nobody_whom_the_cache_knows_is_refused_and_no_row_is_lost() {
    let remembers = Rules {
        remembers: true,
        stale: Some(Duration::from_secs(600)),
        negative: Duration::from_secs(10),
        ..Rules::default()
    };
    for (name, rules) in [("remembered", remembers), ("asked each time", Rules::default())] {
        for away in [Away::Gone, Away::Silent] {
            let mut world = World::new(away, rules.clone());
            world.run();
            let name = format!("{name}, {away:?}");
            assert_eq!(world.registered, (ENDS - 1) * 1_000 / EVERY_MS, "{name}");
            assert_eq!(world.refused, 0, "{name}");
            assert_eq!(world.table, world.wanted, "{name}: rows have caught up");
            assert_eq!(world.table.len(), PEERS as usize, "{name}");
            let (_, lost) = world.behind.counts();
            assert_eq!((lost, world.behind.len()), (0, 0), "{name}");
            assert!(world.longest_wait <= rules.patience, "{name}: {:?}", world.longest_wait);
            // One more when what was asked before it went is answered after another question has failed.
            let times = world.told.iter().filter(|told| **told == "away").count();
            assert!((1..=2).contains(&times), "{name}: away is told {times} times");
            // The last rows are written within the longest pause between two tries.
            assert!(world.now <= at(ENDS + 60), "{name}: {:?}", world.now);
        }
    }
}

#[test]
fn while_it_is_away_it_is_asked_about_what_is_known_once_a_second() {
    let mut world = World::new(Away::Gone, Rules::default());
    world.run();
    // Each registration asks while it is there; while it is gone a probe a second does.
    let there = (ENDS - 1 - (BACK - GOES)) * 1_000 / EVERY_MS;
    assert!(world.asked >= there, "{}", world.asked);
    assert!(world.asked <= there + 2 * (BACK - GOES), "{} more than {there}", world.asked - there);
}
