//! A contact centre and what always holds of it.

#![allow(dead_code, reason = "the bench runs the day only")]

use core::time::Duration;
use std::collections::{BTreeMap, BTreeSet};

use base::{ChannelId, Instant};
use kit::Random;
use queue::{
    Absence, Autopause, Config, DeviceState, End, Entry, Event, Exit, General, Input, Member, MemberChange,
    Order, Output, QueueConfig, Refusal, Settings, SkillChange, Skills, Stage, Strategy, Whom,
};

use crate::common::{Desk, caller, join_as, lines, member, queue};

/// None, one or two of two skills.
fn some_skills(random: &mut Random) -> Skills {
    let level = |random: &mut Random| random.below(5).saturating_sub(1);
    let (german, sales) = (level(random), level(random) * random.below(2));
    Skills::parse(&format!("german={german}&sales={sales}")).unwrap()
}

/// What the world outside believes, from orders and its own doings alone.
pub struct World {
    desk: Desk,
    random: Random,
    config: Config,
    agents: Vec<String>,
    /// Who rings for whom: agent and caller.
    ringing: BTreeSet<(String, u32)>,
    answered: BTreeMap<u32, String>,
    talking: BTreeMap<u32, String>,
    waiting: BTreeSet<u32>,
    /// Who is paused, by what watchers were told: queue and agent.
    paused: BTreeSet<(String, String)>,
    /// When each agent's last call of a queue ended.
    last: BTreeMap<(String, String), Instant>,
    entered: u32,
    ended: BTreeMap<String, u32>,
    joined: BTreeSet<String>,
    next: u32,
    /// Some agents take several calls at once.
    rings_in_use: bool,
    calls: u32,
}

impl World {
    pub fn new(seed: u64, queues: usize, agents: usize) -> Self {
        let mut random = Random(seed);
        let agents: Vec<String> = (0..agents).map(|number| format!("PJSIP/{number}")).collect();
        let rings_in_use = random.below(4) == 0;
        let shared_last_call = random.below(2) == 0;
        let configs = (0..queues).map(|number| {
            let (_, strategy) = Strategy::WORDS[random.below(8)];
            let mut settings = Settings {
                strategy,
                timeout: Duration::from_secs(random.below(20) as u64),
                retry: Duration::from_secs(random.below(6) as u64),
                weight: random.below(3) as u32,
                wrapup: Duration::from_secs(random.below(3) as u64 * 10),
                autofill: random.below(5) > 0,
                ring_in_use: rings_in_use,
                max_length: if random.below(3) == 0 { 6 } else { 0 },
                timeout_restart: random.below(2) == 0,
                app_timeout_first: random.below(2) == 0,
                autopause: [Autopause::No, Autopause::Yes, Autopause::All][random.below(3)],
                ..Settings::default()
            };
            settings.join_empty = [Absence::default(), Absence::STRICT][random.below(2)];
            settings.leave_when_empty = [Absence::default(), Absence::PAUSED][random.below(2)];
            settings.announcing.every = Duration::from_secs(random.below(2) as u64 * 30);
            settings.announcing.periodic_every = Duration::from_secs(random.below(2) as u64 * 45);
            let members: Vec<&str> =
                agents.iter().filter(|_| random.below(3) > 0).map(String::as_str).collect();
            settings.default_rule = ["", "less"][random.below(2)].to_owned();
            let mut config: QueueConfig = queue(&format!("q{number}"), settings, &members);
            config.members.iter_mut().for_each(|member| {
                member.penalty = random.below(3) as u32;
                member.skills = some_skills(&mut random);
            });
            config
        });
        let queues: Vec<QueueConfig> = configs.collect();
        let less = ["15,-1", "40,0"].map(|line| SkillChange::parse(line).unwrap());
        let config = Config {
            queues,
            skill_rules: vec![("less".to_owned(), less.to_vec())],
            general: General { shared_last_call, ..General::default() },
            ..Config::default()
        };
        Self::of(random, config, agents, rings_in_use)
    }
    fn of(random: Random, config: Config, agents: Vec<String>, rings_in_use: bool) -> Self {
        Self {
            desk: Desk::with(config.clone()),
            random,
            config,
            agents,
            ringing: BTreeSet::new(),
            answered: BTreeMap::new(),
            talking: BTreeMap::new(),
            waiting: BTreeSet::new(),
            paused: BTreeSet::new(),
            last: BTreeMap::new(),
            entered: 0,
            ended: BTreeMap::new(),
            joined: BTreeSet::new(),
            next: 0,
            rings_in_use,
            calls: 0,
        }
    }
    fn any<T: Clone>(&mut self, of: Vec<T>) -> Option<T> {
        if of.is_empty() { None } else { Some(of[self.random.below(of.len())].clone()) }
    }

    /// Something happens.
    pub fn step(&mut self) {
        match self.random.below(100) {
            0..25 => self.arrive(),
            25..45 => self.time_passes(),
            45..62 => self.agent_answers(),
            62..72 => self.agent_refuses(),
            72..80 => self.conversation_ends(),
            80..86 => self.caller_gives_up(),
            86..92 => self.device_changes(),
            92..96 => self.agent_pauses(),
            96..98 => self.agent_comes_or_goes(),
            98 => self.caller_vanishes(),
            _ => self.reload(),
        }
        self.check();
    }
    fn arrive(&mut self) {
        let number = self.next;
        self.next += 1;
        let name = format!("q{}", self.random.below(self.config.queues.len()));
        let timeout = (self.random.below(3) == 0).then(|| Duration::from_secs(self.random.below(60) as u64));
        // Some have been here before and kept their place.
        let ago = Duration::from_secs(self.random.below(90) as u64);
        let earlier = self.desk.now.at.since(base::Instant::ZERO).saturating_sub(ago);
        let earlier = queue::Now { at: base::Instant::ZERO + earlier, ..self.desk.now };
        let since = (self.random.below(5) == 0).then_some(earlier);
        let join = queue::Join {
            since,
            timeout,
            priority: self.random.below(3) as i32,
            position: (self.random.below(4) == 0).then(|| self.random.below(5)),
            no_retry: self.random.below(5) == 0,
            skills: some_skills(&mut self.random),
            ..join_as(number)
        };
        // Out of two hundred slots: a channel's number comes again with another caller, later.
        if self.waiting.len() < 60
            && self.desk.queues.join(&name, join, self.desk.now, &mut self.desk.out).is_ok()
        {
            self.waiting.insert(number);
            self.joined.insert(format!("c{number}"));
        }
    }
    fn time_passes(&mut self) {
        let seconds = self.random.below(4) as u64;
        self.desk.now.at += Duration::from_secs(seconds) + Duration::from_millis(137);
        self.desk.now.wall += seconds as i64;
        self.desk.queues.due(self.desk.now, &mut self.desk.out);
    }
    fn agent_answers(&mut self) {
        if let Some((number, agent)) = self.any(self.answered.clone().into_iter().collect()) {
            self.answered.remove(&number);
            if self.random.below(6) == 0 {
                assert!(self.desk.tell(number, Input::Dumped));
            } else {
                assert!(self.desk.tell(number, Input::Connected { bridged: "b".into() }));
                self.waiting.remove(&number);
                self.talking.insert(number, agent);
            }
        } else if let Some((agent, number)) = self.any(self.ringing.iter().cloned().collect()) {
            self.ringing.retain(|(_, other)| *other != number);
            assert!(self.desk.answer(number, &agent), "who rings may answer");
            self.answered.insert(number, agent);
        } else if let (Some(agent), Some(number)) =
            (self.any(self.agents.clone()), self.any(self.waiting.iter().copied().collect()))
        {
            assert!(!self.desk.answer(number, &agent), "who does not ring answers too late");
        }
    }
    fn agent_refuses(&mut self) {
        let Some((agent, number)) = self.any(self.ringing.iter().cloned().collect()) else { return };
        let refusals = [Refusal::Busy, Refusal::Unavailable, Refusal::Declined, Refusal::NoChannel];
        let refusal = refusals[self.random.below(4)];
        self.ringing.remove(&(agent.clone(), number));
        assert!(self.desk.refuse(number, &agent, refusal));
    }
    fn conversation_ends(&mut self) {
        let Some((number, agent)) = self.any(self.talking.clone().into_iter().collect()) else { return };
        let talk = self.desk.queues.talk(caller(number)).unwrap().clone();
        let ends = [End::Caller, End::Agent, End::Blind { exten: "1".into(), context: "c".into() }];
        let end = ends[self.random.below(3)].clone();
        assert!(self.desk.end(number, end));
        self.talking.remove(&number);
        self.last.insert((talk.queue.to_string(), agent), self.desk.now.at);
        self.calls += 1;
    }
    fn caller_gives_up(&mut self) {
        let Some(number) = self.any(self.waiting.iter().copied().collect()) else { return };
        let exits = [Exit::Abandoned, Exit::Key("1".into())];
        self.forget(number);
        let exit = exits[self.random.below(2)].clone();
        assert!(self.desk.tell(number, Input::Left(exit)));
    }
    fn caller_vanishes(&mut self) {
        let all = self.waiting.iter().chain(self.talking.keys()).copied().collect();
        let Some(number) = self.any(all) else { return };
        if let Some(talk) = self.desk.queues.talk(caller(number)) {
            let key = (talk.queue.to_string(), talk.interface.to_string());
            self.last.insert(key, self.desk.now.at);
        }
        self.forget(number);
        self.desk.queues.gone(caller(number), self.desk.now, &mut self.desk.out);
    }
    fn forget(&mut self, number: u32) {
        self.waiting.remove(&number);
        self.answered.remove(&number);
        self.talking.remove(&number);
        self.ringing.retain(|(_, other)| *other != number);
    }
    fn device_changes(&mut self) {
        use DeviceState::*;
        let Some(agent) = self.any(self.agents.clone()) else { return };
        let states = [NotInUse, NotInUse, NotInUse, InUse, Unavailable, Unknown];
        let state = states[self.random.below(states.len())];
        self.desk.queues.device(&agent, state, self.desk.now, &mut self.desk.out);
    }
    fn agent_pauses(&mut self) {
        let Some(agent) = self.any(self.agents.clone()) else { return };
        let paused = self.random.below(3) == 0;
        let whom = Whom { queue: None, interface: &agent, by: "MANAGER" };
        let _ = self.desk.queues.pause(whom, paused, "", self.desk.now, &mut self.desk.out);
    }
    fn agent_comes_or_goes(&mut self) {
        let Some(agent) = self.any(self.agents.clone()) else { return };
        let name = format!("q{}", self.random.below(self.config.queues.len()));
        let (now, out) = (self.desk.now, &mut self.desk.out);
        if self.desk.queues.remove(&name, &agent, "x", now, out).is_err()
            && self.desk.queues.add(&name, &member(&agent, 1), "x", now, out).is_ok()
        {
            // Who comes again comes without a past.
            self.last.remove(&(name, agent));
        }
    }
    fn reload(&mut self) {
        let dynamic = self.random.below(self.config.queues.len());
        let mut config = self.config.clone();
        let changed = &mut config.queues[dynamic].settings;
        changed.timeout = Duration::from_secs(3 + self.random.below(10) as u64);
        self.desk.queues.configure(&config, self.desk.now, &mut self.desk.out);
    }

    /// What always holds.
    fn check(&mut self) {
        self.hear();
        for number in &self.waiting {
            assert!(self.desk.queues.caller(caller(*number)).is_some(), "caller {number} is lost");
        }
        for number in self.talking.keys() {
            assert!(self.desk.queues.talk(caller(*number)).is_some(), "conversation {number} is lost");
        }
    }
    /// What the machine has said of the last event.
    fn hear(&mut self) {
        let mut fresh = Vec::new();
        for output in std::mem::take(&mut self.desk.out) {
            match output {
                Output::Order { caller, order } => self.obey(caller, order, &mut fresh),
                Output::Log(line) => {
                    self.entered += u32::from(matches!(line.entry, Entry::EnterQueue { .. }));
                    if line.entry.ends_a_call() {
                        *self.ended.entry(line.call.to_string()).or_default() += 1;
                    }
                }
                Output::Event { queue, event: Event::Member { change, member } } => {
                    let key = (queue.to_string(), member.0.interface.to_string());
                    match member.0.paused && change != MemberChange::Removed {
                        true => self.paused.insert(key),
                        false => self.paused.remove(&key),
                    };
                }
                Output::Event { .. } | Output::Persist { .. } | Output::Device(_) => {}
            }
        }
        for (agent, number) in &fresh {
            self.check_offer(agent, *number);
        }
    }
    fn obey(&mut self, channel: ChannelId, order: Order, fresh: &mut Vec<(String, u32)>) {
        let number = channel.slot;
        match order {
            Order::Ring(offers) => {
                let others = self.ringing.iter().filter(|(_, other)| *other == number).count();
                assert_eq!(others, 0, "caller {number} is offered by two attempts");
                assert!(!offers.is_empty() && !self.answered.contains_key(&number));
                for offer in offers {
                    let agent = offer.interface.to_string();
                    let place = self.desk.queues.caller(channel).map(|(queue, _)| queue.name.to_string());
                    let key = (place.unwrap_or_default(), agent.clone());
                    assert!(!self.paused.contains(&key), "{agent} is paused in {}", key.0);
                    assert!(
                        self.ringing.insert((agent.clone(), number)),
                        "{agent} is offered {number} twice"
                    );
                    fresh.push((agent, number));
                }
            }
            Order::LetBe => self.ringing.retain(|(_, other)| *other != number),
            Order::Leave(_) => self.forget(number),
            Order::Say(said) => assert!(!said.is_empty()),
            Order::Bounds(_) | Order::Skills(_) => {}
        }
    }
    /// A member is called: it may be.
    fn check_offer(&self, agent: &str, number: u32) {
        let Some((queue, waiting)) = self.desk.queues.caller(caller(number)) else { return };
        if !matches!(waiting.stage, Stage::Ringing { .. }) {
            return;
        }
        let Some(member) = queue.member(agent) else { return };
        assert!(
            member.skills.meet(&waiting.skills),
            "{agent} has {}, and {number} needs {}",
            member.skills,
            waiting.skills
        );
        if !self.rings_in_use {
            let rings = self.ringing.iter().filter(|(other, _)| other == agent).count();
            let busy =
                self.answered.values().chain(self.talking.values()).filter(|other| *other == agent).count();
            assert_eq!((rings, busy), (1, 0), "{agent} is called for {number} while it has another call");
            let device = self.desk.queues.device_of(member);
            assert!(matches!(device, DeviceState::NotInUse | DeviceState::Unknown), "{agent} is {device:?}");
        }
        let wrapup = queue.settings.wrapup;
        if let Some(last) = self.last.get(&(queue.name.to_string(), agent.to_owned())) {
            assert!(*last + wrapup <= self.desk.now.at, "{agent} wraps up in {}", queue.name);
        }
        if !self.rings_in_use {
            self.check_weights(queue, agent);
        }
    }
    /// No heavier queue has callers whom this member could have served and nobody else can.
    fn check_weights(&self, own: &queue::Queue, agent: &str) {
        let now = self.desk.now.at;
        for other in self.desk.queues.iter().filter(|other| other.settings.weight > own.settings.weight) {
            let at_once = other.settings.autofill && other.settings.strategy != Strategy::RingAll;
            let works = |member: &Member| !member.paused && !member.wraps_up(now);
            if !at_once || !other.member(agent).is_some_and(works) {
                continue;
            }
            let Some(there) = other.member(agent) else { continue };
            let waiting: Vec<_> = other.callers().iter().filter(|caller| caller.is_waiting()).collect();
            let free: Vec<&Member> =
                other.members().iter().filter(|member| self.desk.queues.is_free(member, now)).collect();
            let penalises = other.penalises();
            let may = |caller: &queue::Caller, member: &Member| {
                let is_within = !penalises || caller.bounds.admit(member.penalty).is_some();
                is_within && member.skills.meet(&caller.skills)
            };
            let choice = |caller: &queue::Caller| free.iter().filter(|member| may(caller, member)).count();
            let competing = waiting.iter().filter(|caller| choice(caller) > 0).count();
            for caller in waiting.iter().filter(|caller| may(caller, there)) {
                let choice = choice(caller);
                assert!(
                    competing <= choice,
                    "{agent} is wanted by {}: {competing} wait, {choice} are free",
                    other.name
                );
            }
        }
    }
    /// Everybody goes home.
    pub fn close(mut self) -> u32 {
        for number in self.waiting.iter().chain(self.talking.keys()).copied().collect::<Vec<_>>() {
            self.desk.queues.gone(caller(number), self.desk.now, &mut self.desk.out);
        }
        for line in lines(&self.desk.out).filter(|line| line.entry.ends_a_call()) {
            *self.ended.entry(line.call.to_string()).or_default() += 1;
        }
        assert_eq!(self.entered as usize, self.joined.len());
        assert_eq!(self.ended.keys().collect::<Vec<_>>(), self.joined.iter().collect::<Vec<_>>());
        for (call, times) in &self.ended {
            assert_eq!(*times, 1, "{call} ended so many times");
        }
        for queue in self.desk.queues.iter() {
            assert_eq!(queue.callers().len(), 0);
        }
        self.calls
    }
}

/// What a day was like.
#[derive(Debug)]
pub struct Day {
    /// Callers who came.
    pub arrived: usize,
    /// Conversations.
    pub calls: u32,
    /// How long callers wait, as the queue says it.
    pub hold_seconds: u64,
}

/// Working hours.
const SECONDS: u32 = 8 * 3600;
const CALLS_AN_HOUR: u32 = 10_000;
const AGENTS: usize = 1000;

/// A thousand agents, ten thousand calls an hour, for eight hours. Some agents answer late, refuse, vanish at the answer, pause
/// or lose their phone, and some callers lose patience; what always holds is looked at after every second.
pub fn working_day(seed: u64) -> Day {
    let agents: Vec<String> = (0..AGENTS).map(|number| format!("PJSIP/{number}")).collect();
    let names: Vec<&str> = agents.iter().map(String::as_str).collect();
    let settings = Settings {
        strategy: Strategy::LeastRecent,
        wrapup: Duration::from_secs(10),
        ring_in_use: false,
        ..Settings::default()
    };
    let config = Config { queues: vec![queue("q", settings, &names)], ..Config::default() };
    // Those who pause and lose their phones.
    let restless = agents.into_iter().take(AGENTS / 10).collect();
    let mut world = World::of(Random(seed), config, restless, false);
    let mut ends = BTreeMap::<u32, Vec<u32>>::new();
    for second in 0..SECONDS {
        for _ in 0..(second + 1) * CALLS_AN_HOUR / 3600 - second * CALLS_AN_HOUR / 3600 {
            world.arrive_at("q");
            world.hear();
        }
        world.phones_act(second, &mut ends);
        for number in ends.remove(&second).unwrap_or_default() {
            world.hang_up(number, End::Agent);
            world.hear();
        }
        if world.random.below(20) == 0 {
            world.caller_gives_up();
            world.hear();
        }
        if world.random.below(10) == 0 {
            world.agent_pauses();
            world.hear();
        }
        if world.random.below(10) == 0 {
            world.device_changes();
            world.hear();
        }
        world.desk.now.at += Duration::from_secs(1);
        world.desk.now.wall += 1;
        world.desk.queues.due(world.desk.now, &mut world.desk.out);
        world.check();
    }
    let (arrived, hold_seconds) =
        (world.joined.len(), world.desk.queues.get("q").map_or(0, |queue| queue.stats.hold));
    Day { arrived, calls: world.close(), hold_seconds }
}

impl World {
    fn arrive_at(&mut self, queue: &str) {
        let number = self.next;
        self.next += 1;
        if self.desk.queues.join(queue, join_as(number), self.desk.now, &mut self.desk.out).is_ok() {
            self.waiting.insert(number);
            self.joined.insert(format!("c{number}"));
        }
    }
    /// One second of everybody whose phone rings, or who has picked it up. `ends`: when conversations do.
    fn phones_act(&mut self, second: u32, ends: &mut BTreeMap<u32, Vec<u32>>) {
        for (number, agent) in std::mem::take(&mut self.answered) {
            if self.random.below(50) == 0 {
                assert!(self.desk.tell(number, Input::Dumped), "{number} was answered");
                continue;
            }
            assert!(
                self.desk.tell(number, Input::Connected { bridged: "b".into() }),
                "{number} was answered"
            );
            self.waiting.remove(&number);
            self.talking.insert(number, agent);
            ends.entry(second + 60 + self.random.below(400) as u32).or_default().push(number);
        }
        for (agent, number) in self.ringing.clone() {
            // An answer for the same caller may have come first.
            if !self.ringing.contains(&(agent.clone(), number)) {
                continue;
            }
            match self.random.below(40) {
                // It is picked up late.
                0..10 => {}
                10 => {
                    self.ringing.remove(&(agent.clone(), number));
                    assert!(self.desk.refuse(number, &agent, Refusal::Declined), "{agent} rang for {number}");
                    self.hear();
                }
                _ => {
                    self.ringing.retain(|(_, other)| *other != number);
                    assert!(self.desk.answer(number, &agent), "{agent} rang for {number}");
                    self.answered.insert(number, agent);
                    self.hear();
                }
            }
        }
    }
    fn hang_up(&mut self, number: u32, end: End) {
        let Some(talk) = self.desk.queues.talk(caller(number)).cloned() else { return };
        assert!(self.desk.end(number, end), "{number} was talking");
        self.talking.remove(&number);
        self.last.insert((talk.queue.to_string(), talk.interface.to_string()), self.desk.now.at);
        self.calls += 1;
    }
}
