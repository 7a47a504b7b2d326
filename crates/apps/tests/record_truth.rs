//! Call records against a plain model: random calls, each a dialplan, phones and settings from a seed, and what a reader of
//! `docs/records.md` says must be written of them.
//!
//! The model walks the same steps with numbers alone: no channels, no bridges, no turns. `STROWGER_RECORD_SEEDS=100000
//! cargo test -p apps --test record_truth` runs more than the quick set; a failure names its seed.

mod common;

use std::time::Duration;

use base::{Cause, Random};
use call::{Cdr, Disposition, Settings};
use common::{BYE, at, at_rest, call, phone, refusing, world};
use queue::{Config, NewMember, QueueConfig};
use sim::{Act, Phone, World};

const SEEDS: u64 = 2_000;
/// The caller hangs up after so many seconds when nothing ends the call before.
const LONGEST: u64 = 200;

/// What a phone does when it is called; milliseconds from then.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    /// Cannot be called at all.
    Absent(Cause),
    Refuses(u64, Cause),
    /// Answers, and hangs up so long after.
    Answers(u64, u64),
    /// Answers and sends the caller to extension 2 so long after.
    Transfers(u64, u64),
    Rings,
}

#[derive(Debug, Clone)]
enum Step {
    Answer,
    Wait(u64),
    /// Phones, seconds, and whether the dialplan goes on after a conversation.
    Dial(Vec<usize>, u64, bool),
    /// The same for a queue with one member.
    Queue(usize, u64, bool),
}

#[derive(Debug)]
struct Case {
    phones: Vec<Way>,
    /// Extensions 1 and 2.
    plans: [Vec<Step>; 2],
    hangs_up: u64,
    settings: (bool, bool, bool, bool, bool),
}

/// A record as the model has it; milliseconds from the beginning.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Told {
    dst: &'static str,
    party: Option<usize>,
    app: &'static str,
    disposition: Disposition,
    start: u64,
    answer: Option<u64>,
    end: u64,
    billed: u64,
}

fn below(random: &mut Random, most: u64) -> u64 {
    random.bits() % most
}

/// A whole number of seconds, and a rest that no other moment of the case has.
fn moment(random: &mut Random, most: u64, rest: &mut u64) -> u64 {
    *rest += 1;
    1000 * (1 + below(random, most)) + *rest
}

fn case(seed: u64) -> Case {
    let random = &mut Random::new(seed);
    let mut rest = 0;
    let causes = [Cause::USER_BUSY, Cause::NORMAL_CIRCUIT_CONGESTION, Cause::NO_ANSWER, Cause::UNALLOCATED];
    let pick = |random: &mut Random| causes[below(random, 4) as usize];
    let way = |random: &mut Random, rest: &mut u64| match below(random, 8) {
        0 => Way::Absent(pick(random)),
        1 | 2 => Way::Refuses(moment(random, 12, rest), pick(random)),
        3 => Way::Rings,
        4 => Way::Transfers(moment(random, 12, rest), moment(random, 9, rest)),
        _ => Way::Answers(moment(random, 12, rest), moment(random, 20, rest)),
    };
    let phones = (0..8).map(|_| way(random, &mut rest)).collect();
    // Each phone is asked for once in a call, so that its moments stay its own.
    let mut next = 0;
    let mut plan = |random: &mut Random, most: u64| -> Vec<Step> {
        let mut steps = Vec::new();
        for _ in 0..=below(random, most) {
            let goes_on = below(random, 2) == 0;
            steps.push(match below(random, 6) {
                0 => Step::Answer,
                1 => Step::Wait(moment(random, 4, &mut rest)),
                2 if next < 8 => {
                    next += 1;
                    Step::Queue(next - 1, 2 + below(random, 20), goes_on)
                }
                _ => {
                    let count = (1 + below(random, 3) as usize).min(8 - next);
                    let legs: Vec<usize> = (next..next + count).collect();
                    next += count;
                    if legs.is_empty() {
                        Step::Answer
                    } else {
                        Step::Dial(legs, 2 + below(random, 14), goes_on)
                    }
                }
            });
        }
        steps
    };
    let (mut plan_one, mut plan_two) = (plan(random, 4), plan(random, 2));
    let hangs_up = match below(random, 3) {
        0 => moment(random, 60, &mut rest),
        _ => 1000 * LONGEST,
    };
    // A member that refuses is called again and again, which is the queue's matter.
    let phones: Vec<Way> = phones;
    for plan in [&mut plan_one, &mut plan_two] {
        for step in plan.iter_mut() {
            if matches!(step, Step::Queue(member, ..) if matches!(phones[*member], Way::Refuses(..))) {
                *step = Step::Answer;
            }
        }
    }
    let plans = [plan_one, plan_two];
    let mut yes = || below(random, 2) == 0;
    Case { phones, plans, hangs_up, settings: (yes(), yes(), yes(), yes(), yes()) }
}

// The model.

struct Model<'a> {
    case: &'a Case,
    now: u64,
    answered: Option<u64>,
    /// The record that says what the caller runs, while it is about nobody.
    open: Option<Told>,
    dst: &'static str,
    told: Vec<Told>,
}

/// How a step left the call.
#[derive(PartialEq, Eq)]
enum Left {
    GoesOn,
    Over,
    Transferred,
}

fn refused(cause: Cause) -> Disposition {
    match cause {
        Cause::USER_BUSY => Disposition::Busy,
        Cause::NORMAL_CIRCUIT_CONGESTION => Disposition::Congestion,
        _ => Disposition::NoAnswer,
    }
}

impl<'a> Model<'a> {
    fn run(case: &'a Case) -> Vec<Told> {
        let mut model = Model { case, now: 0, answered: None, open: None, dst: "1", told: Vec::new() };
        let mut plan = 0;
        loop {
            model.dst = ["1", "2"][plan];
            match model.steps(&case.plans[plan]) {
                Left::Transferred if plan == 0 => plan = 1,
                _ => break,
            }
        }
        if let Some(open) = model.open.take() {
            let disposition =
                if open.answer.is_some() { Disposition::Answered } else { Disposition::NoAnswer };
            model.close(open, disposition);
        }
        model.told
    }
    fn steps(&mut self, steps: &[Step]) -> Left {
        for step in steps {
            let left = match step {
                Step::Answer => {
                    self.runs("Answer");
                    self.answer();
                    Left::GoesOn
                }
                Step::Wait(ms) => {
                    self.runs("Wait");
                    self.until(self.now + ms)
                }
                Step::Dial(legs, seconds, goes_on) => self.dial(legs, 1000 * seconds, *goes_on),
                Step::Queue(member, seconds, goes_on) => self.queue(*member, 1000 * seconds, *goes_on),
            };
            if left != Left::GoesOn {
                return left;
            }
        }
        self.runs("Hangup");
        Left::Over
    }
    /// Time passes until then, or until the caller hangs up.
    fn until(&mut self, then: u64) -> Left {
        self.now = then.min(self.case.hangs_up);
        if then < self.case.hangs_up { Left::GoesOn } else { Left::Over }
    }
    fn fresh(&self, app: &'static str, party: Option<usize>) -> Told {
        let start = if self.told.is_empty() && self.open.is_none() { 0 } else { self.now };
        Told {
            dst: self.dst,
            party,
            app,
            disposition: Disposition::NoAnswer,
            start,
            answer: self.answered.map(|_| self.now),
            end: 0,
            billed: 0,
        }
    }
    /// An application begins: the open record says so, or a new one.
    fn runs(&mut self, app: &'static str) {
        let mut open = self.open.take().unwrap_or_else(|| self.fresh(app, None));
        (open.app, open.dst) = (app, self.dst);
        self.open = Some(open);
    }
    fn answer(&mut self) {
        self.answered.get_or_insert(self.now);
        if let Some(open) = &mut self.open {
            open.answer.get_or_insert(self.now);
        }
    }
    fn ignores_dialling(&self) -> bool {
        self.case.settings.3
    }
    fn close(&mut self, mut record: Told, disposition: Disposition) {
        let (_, congestion, initiated, _, _) = self.case.settings;
        record.end = self.now;
        let talked = record.answer.map_or(0, |at| record.end - at);
        record.billed = talked / 1000 + u64::from(initiated && !talked.is_multiple_of(1000));
        record.disposition = match disposition {
            Disposition::Congestion if !congestion => Disposition::Failed,
            other => other,
        };
        self.told.push(record);
    }
    /// From an answer to what comes after the conversation.
    fn talk(&mut self, mut record: Told, party: usize, goes_on: bool) -> Left {
        self.answer();
        record.party = Some(party);
        record.answer.get_or_insert(self.now);
        let (lasts, moves) = match self.case.phones[party] {
            Way::Answers(_, talk) => (talk, false),
            // Only extension 1 lets who is called transfer; else it talks on.
            Way::Transfers(_, talk) if self.dst == "1" => (talk + 200, true),
            _ => (u64::MAX / 2, false),
        };
        let left = self.until(self.now + lasts);
        if left == Left::GoesOn && moves {
            record.dst = "2";
        }
        self.close(record, Disposition::Answered);
        match left {
            Left::GoesOn if moves => Left::Transferred,
            Left::GoesOn if !goes_on => Left::Over,
            left => left,
        }
    }
    fn queue(&mut self, member: usize, limit: u64, goes_on: bool) -> Left {
        self.runs("Queue");
        let leaves = self.now + limit;
        let after = match self.case.phones[member] {
            Way::Absent(_) => return self.until(leaves),
            Way::Answers(after, _) | Way::Transfers(after, _) => after,
            Way::Refuses(..) | Way::Rings => u64::MAX,
        };
        if after < limit {
            if self.until(self.now + after) == Left::GoesOn {
                let record = self.open.take().expect("it runs Queue");
                return self.talk(record, member, goes_on);
            }
        } else {
            self.until(leaves);
        }
        let left = if self.now < self.case.hangs_up { Left::GoesOn } else { Left::Over };
        if !self.ignores_dialling() {
            let mut record = self.open.take().expect("it runs Queue");
            record.party = Some(member);
            self.close(record, Disposition::NoAnswer);
        }
        left
    }
    fn dial(&mut self, phones: &[usize], limit: u64, goes_on: bool) -> Left {
        let way = |phone: usize| self.case.phones[phone];
        let mut legs: Vec<usize> =
            phones.iter().copied().filter(|phone| !matches!(way(*phone), Way::Absent(_))).collect();
        self.runs("Dial");
        if legs.is_empty() {
            return Left::GoesOn;
        }
        let (began, gives_up) = (self.now, self.now + limit);
        let when = |phone: usize| match self.case.phones[phone] {
            Way::Refuses(after, _) | Way::Answers(after, _) | Way::Transfers(after, _) => began + after,
            Way::Absent(_) | Way::Rings => u64::MAX,
        };
        let times: Vec<(usize, u64)> = legs.iter().map(|phone| (*phone, when(*phone))).collect();
        let when = |phone: usize| times.iter().find(|row| row.0 == phone).map_or(u64::MAX, |row| row.1);
        let mut rings: Vec<Told> = Vec::new();
        if !self.ignores_dialling() {
            for phone in &legs {
                // The first is what the open record is about from here on.
                let record =
                    self.open.take().unwrap_or_else(|| Told { start: began, ..self.fresh("Dial", None) });
                rings.push(Told { party: Some(*phone), ..record });
            }
        }
        loop {
            let soonest = legs.iter().copied().min_by_key(|phone| when(*phone)).expect("somebody rings");
            // Who hangs up at the moment of the answer was first.
            if when(soonest) > gives_up || when(soonest) >= self.case.hangs_up {
                let left = self.until(gives_up);
                rings.into_iter().for_each(|record| self.close(record, Disposition::NoAnswer));
                return left;
            }
            self.now = when(soonest);
            legs.retain(|phone| *phone != soonest);
            let own = rings.iter().position(|record| record.party == Some(soonest));
            let own = own.map(|at| rings.remove(at));
            match self.case.phones[soonest] {
                Way::Refuses(_, cause) => {
                    own.into_iter().for_each(|record| self.close(record, refused(cause)));
                    if legs.is_empty() {
                        return Left::GoesOn;
                    }
                }
                _ => {
                    rings.into_iter().for_each(|record| self.close(record, Disposition::NoAnswer));
                    let record = own.or_else(|| self.open.take()).expect("it dials");
                    return self.talk(record, soonest, goes_on);
                }
            }
        }
    }
}

// The program.

fn dialplan(case: &Case) -> String {
    let mut text = String::from("[default]\n");
    for (exten, (steps, may_transfer)) in [1, 2].into_iter().zip(case.plans.iter().zip(["t", ""])) {
        let mut priority = 0;
        let mut line = |app: String| {
            priority += 1;
            text.push_str(&format!("exten => {exten},{priority},{app}\n"));
        };
        for step in steps {
            line(match step {
                Step::Answer => "Answer(0)".to_owned(),
                Step::Wait(ms) => format!("Wait({}.{:03})", ms / 1000, ms % 1000),
                Step::Dial(phones, seconds, goes_on) => {
                    let phones: Vec<String> = phones.iter().map(|phone| format!("SIM/700{phone}")).collect();
                    let goes_on = if *goes_on { "g" } else { "" };
                    format!("Dial({},{seconds},{goes_on}{may_transfer})", phones.join("&"))
                }
                Step::Queue(member, seconds, goes_on) => {
                    let goes_on = if *goes_on { "c" } else { "" };
                    format!("Queue(q{member},{goes_on}{may_transfer},,,{seconds})")
                }
            });
        }
        line("Hangup()".to_owned());
    }
    text
}

fn sim_phone(way: Way) -> Phone {
    match way {
        Way::Absent(cause) => refusing(cause),
        Way::Refuses(after, cause) => phone(&[(after, Act::Hangup(cause))]),
        Way::Answers(after, talk) => phone(&[(after, Act::Answer), (after + talk, BYE)]),
        Way::Transfers(after, talk) => phone(&[
            (after, Act::Answer),
            (after + talk, Act::Press('#')),
            (after + talk + 200, Act::Press('2')),
        ]),
        Way::Rings => phone(&[(1, Act::Ring)]),
    }
}

fn happens(case: &Case) -> World {
    let mut world = world(&dialplan(case));
    world.shard.core.borrow_mut().reach = apps::reach;
    let (unanswered, congestion, initiated, ignores, before_h) = case.settings;
    world.settings(|settings| {
        *settings = Settings {
            cdr_unanswered: unanswered,
            cdr_congestion: congestion,
            cdr_initiated_seconds: initiated,
            cdr_ignore_dialling: ignores,
            cdr_end_before_h: before_h,
            ..settings.clone()
        };
    });
    let mut queues = Vec::new();
    for (number, way) in case.phones.iter().enumerate() {
        world.phone(&format!("700{number}"), sim_phone(*way));
        let settings = queue::Settings { timeout: Duration::from_secs(90), ..queue::Settings::default() };
        let member = NewMember { interface: format!("SIM/700{number}"), ..NewMember::default() };
        queues.push(QueueConfig {
            name: format!("q{number}"),
            settings,
            members: vec![member],
            is_row: false,
        });
    }
    let config = Config { queues, ..Config::default() };
    world.shard.core.borrow_mut().with_queues(|queues, now, out| queues.configure(&config, now, out));
    call(&mut world, "1", &[(case.hangs_up, BYE)]);
    world.run();
    world
}

fn told(record: &Cdr, base: i64) -> Told {
    let ms = |wall: i64| u64::try_from((wall - base) / 1000).expect("no record begins before its call");
    let party = record.dst_channel.strip_prefix("SIM/700").and_then(|rest| rest.get(..1)?.parse().ok());
    let names = ["1", "2"];
    let known = |name: &str| names.into_iter().find(|known| *known == name).unwrap_or("another");
    let apps = ["Answer", "Wait", "Dial", "Queue", "Hangup"];
    let app = apps.into_iter().find(|known| *known == record.last_app).unwrap_or("another");
    let length = (record.end - record.start) / 1000;
    assert_eq!(i64::try_from(record.duration.as_millis()), Ok(length), "{record:?}");
    Told {
        dst: known(&record.dst),
        party,
        app,
        disposition: record.disposition,
        start: ms(record.start),
        answer: record.answer.map(ms),
        end: ms(record.end),
        billed: record.billed,
    }
}

#[test]
fn what_is_written_of_a_call_is_what_a_plain_model_says() {
    let seeds = std::env::var("STROWGER_RECORD_SEEDS").ok().and_then(|text| text.parse().ok());
    let mut written = 0;
    for seed in 0..seeds.unwrap_or(SEEDS) {
        let case = case(seed);
        let world = happens(&case);
        at_rest(&world, &format!("seed {seed}"));
        let base = 1_795_262_400_000_000;
        let order = |told: &Told| (told.start, told.end, told.party);
        // How one that reached nobody and was not answered came out says the cause of its end.
        let counts = |told: &Told| told.party.is_some() || told.disposition == Disposition::Answered;
        let mut real: Vec<Told> = world.cdrs.iter().map(|record| told(record, base)).filter(counts).collect();
        let mut model = Model::run(&case);
        model.retain(counts);
        real.sort_by_key(order);
        model.sort_by_key(order);
        assert_eq!(real, model, "seed {seed}: {case:#?}\n{}\n{:#?}", dialplan(&case), world.transcript());
        written += real.len();
        let sequences: std::collections::BTreeSet<u32> =
            world.cdrs.iter().map(|record| record.sequence).collect();
        assert_eq!(sequences.len(), world.cdrs.len(), "seed {seed}: a serial number comes once");
    }
    assert!(written > 1000, "most calls have records: {written}");
}

/// Calls of a dialplan, and the records that they leave, in the order in which they are written:
/// party A, party B, application, disposition, seconds.
#[test]
fn each_pair_of_a_call_has_a_record_and_what_comes_after_it_another() {
    type Row<'a> = (&'a str, &'a str, &'a [(&'a str, u64, u64)], &'a [&'a str]);
    let rows: [Row<'_>; 7] = [
        (
            "what the caller does after a conversation",
            "1,1,Dial(SIM/7001,10,g)\nexten => 1,2,Wait(1)\nexten => 1,3,Hangup()",
            &[("1", 0, 100_000)],
            &["6001 7001 Dial ANSWERED 3", "6001 - Hangup ANSWERED 1"],
        ),
        (
            "nothing after an attempt that nobody answered",
            "1,1,Dial(SIM/7002,10)\nexten => 1,2,Hangup()",
            &[("1", 0, 100_000)],
            &["6001 7002 Dial BUSY 1"],
        ),
        (
            "a caller who was up before",
            "1,1,Answer(0)\nexten => 1,2,Wait(2)\nexten => 1,3,Dial(SIM/7003,4)\nexten => 1,4,Hangup()",
            &[("1", 0, 100_000)],
            &["6001 7003 Dial NO ANSWER 6", "6001 - Hangup ANSWERED 0"],
        ),
        (
            "the called party goes on by itself",
            "1,1,Dial(SIM/7004,10,F(default^2^1))\nexten => 2,1,Wait(3)\nexten => 2,2,Hangup()",
            &[("1", 0, 5000)],
            &["6001 7004 Dial ANSWERED 5", "7004 - Hangup ANSWERED 3"],
        ),
        (
            "a copy, and both get the next attempt",
            "1,1,Dial(SIM/7002,10)\nexten => 1,2,ForkCDR()\nexten => 1,3,Dial(SIM/7001,10)",
            &[("1", 0, 100_000)],
            &["6001 7002 Dial BUSY 1", "6001 7001 Dial ANSWERED 3", "6001 7001 Dial ANSWERED 3"],
        ),
        (
            "switched off for one attempt",
            "1,1,Set(CDR_PROP(disable)=1)\nexten => 1,2,Dial(SIM/7001,10,g)\nexten => 1,3,Set(CDR_PROP(disable)=0)\n\
             exten => 1,4,Dial(SIM/7001,10)",
            &[("1", 0, 100_000)],
            &["6001 7001 Dial ANSWERED 3"],
        ),
        (
            "a conference of three",
            "1,1,Answer(0)\nexten => 1,2,ConfBridge(meet)",
            &[("1", 0, 10_000), ("1", 1000, 8000), ("1", 2000, 9000)],
            &[
                "6001 6001 ConfBridge ANSWERED 7",
                "6001 - ConfBridge ANSWERED 0",
                "6001 6001 ConfBridge ANSWERED 8",
                "6001 6001 ConfBridge ANSWERED 7",
            ],
        ),
    ];
    for (name, dialplan, calls, expected) in rows {
        let mut world = world(&format!("[default]\nexten => {dialplan}\n"));
        for (number, way) in [
            ("7001", Way::Answers(1000, 2000)),
            ("7002", Way::Refuses(1000, Cause::USER_BUSY)),
            ("7003", Way::Rings),
            ("7004", Way::Answers(1000, 60_000)),
        ] {
            world.phone(number, sim_phone(way));
        }
        for (exten, from, until) in calls {
            world.run_until(at(*from));
            call(&mut world, exten, &[(until - from, BYE)]);
        }
        world.run();
        let number = |channel: &str| channel.get(4..8).unwrap_or("-").to_owned();
        let left: Vec<String> = world
            .cdrs
            .iter()
            .map(|cdr| {
                let (a, b) = (number(&cdr.channel), number(&cdr.dst_channel));
                let seconds = (cdr.duration + Duration::from_millis(500)).as_secs();
                format!("{a} {b} {} {} {seconds}", cdr.last_app, cdr.disposition.name())
            })
            .collect();
        assert_eq!(left, expected, "{name}");
        at_rest(&world, name);
    }
}
