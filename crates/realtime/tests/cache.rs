//! The cache on invented time: what it serves, what it asks, and whom it tells.

use std::collections::BTreeMap;
use std::time::Duration;

use base::Instant;
use proptest::prelude::*;
use realtime::cache::{ABSENT_MAX, Cache, Given, Output, Rules, Unanswered, WAITERS_MAX};

type Rows = Cache<&'static str, u32, u32>;
type Outputs = Vec<Output<&'static str, u32, u32>>;

fn at(seconds: u64) -> Instant {
    Instant::ZERO + Duration::from_secs(seconds)
}

fn rules() -> Rules {
    let secs = |seconds| Some(Duration::from_secs(seconds));
    let negative = Duration::from_secs(30);
    Rules { remembers: true, lifetime: secs(600), stale: secs(100), negative, ..Rules::default() }
}

/// What somebody does to a cache, at a second.
enum Act {
    Get(Given<u32>),
    Answer(Option<u32>),
    NoAnswer,
    All(Vec<(&'static str, u32)>),
    NoAll,
    Expire,
    Stale,
    ExpireAll,
    Due,
}

/// A name, the rules, and what is done at which second with what comes of it.
type Case = (&'static str, Rules, Vec<(u64, Act, &'static str)>);

/// What came out, in the words of the rows of the table.
fn words(out: &mut Outputs) -> String {
    let words = out.drain(..).map(|output| match output {
        Output::Ask(key) => format!("ask {key}"),
        Output::AskAll => "ask all".to_owned(),
        Output::Tell(_, Given::Known(row)) => format!("tell {row}"),
        Output::Tell(_, Given::Absent) => "tell none".to_owned(),
        Output::Tell(_, given) => format!("tell {given:?}"),
        Output::Changed(key, Some(row)) => format!("{key} is {row}"),
        Output::Changed(key, None) => format!("{key} is gone"),
        Output::Away => "away".to_owned(),
        Output::Back => "back".to_owned(),
    });
    words.collect::<Vec<_>>().join(", ")
}

#[test]
fn what_is_served_asked_and_told_when() {
    use Act::{All, Answer, Due, Expire, ExpireAll, Get, NoAll, NoAnswer, Stale};
    let wait = || Get(Given::Awaited);
    let known = |row| Get(Given::Known(row));
    let none = || Get(Given::Absent);
    let whole = || Rules { whole: true, ..rules() };
    let cases: Vec<Case> = vec![
        (
            "one question however many wait, and each is told",
            rules(),
            vec![
                (0, wait(), "ask a"),
                (0, wait(), ""),
                (1, wait(), ""),
                (1, Answer(Some(1)), "a is 1, tell 1, tell 1, tell 1"),
            ],
        ),
        (
            "a fresh row is served",
            rules(),
            vec![(0, wait(), "ask a"), (0, Answer(Some(1)), "a is 1, tell 1"), (80, known(1), "")],
        ),
        (
            "a stale row is served and asked for once behind it",
            rules(),
            vec![
                (0, wait(), "ask a"),
                (0, Answer(Some(1)), "a is 1, tell 1"),
                (100, known(1), "ask a"),
                (100, known(1), ""),
                (101, known(1), ""),
                (102, Answer(Some(2)), "a is 2"),
                (103, known(2), ""),
            ],
        ),
        (
            "a row beyond its lifetime is waited for",
            rules(),
            vec![
                (0, wait(), "ask a"),
                (0, Answer(Some(1)), "a is 1, tell 1"),
                (600, wait(), "ask a"),
                (601, Answer(Some(1)), "tell 1"),
                (602, known(1), ""),
            ],
        ),
        (
            "that there is none is remembered for a while",
            rules(),
            vec![
                (0, wait(), "ask a"),
                (0, Answer(None), "tell none"),
                (26, none(), ""),
                (30, wait(), "ask a"),
                (30, Answer(Some(3)), "a is 3, tell 3"),
            ],
        ),
        (
            "a removed row is gone when it is asked for",
            rules(),
            vec![
                (0, wait(), "ask a"),
                (0, Answer(Some(1)), "a is 1, tell 1"),
                (5, Expire, ""),
                (5, wait(), "ask a"),
                (5, Answer(None), "a is gone, tell none"),
                (6, none(), ""),
            ],
        ),
        (
            "stale by command",
            rules(),
            vec![
                (0, wait(), "ask a"),
                (0, Answer(Some(1)), "a is 1, tell 1"),
                (5, Stale, ""),
                (5, known(1), "ask a"),
            ],
        ),
        (
            "the database is away: what was known serves, and it is asked once a second",
            rules(),
            vec![
                (0, wait(), "ask a"),
                (0, Answer(Some(1)), "a is 1, tell 1"),
                (700, wait(), "ask a"),
                (700, NoAnswer, "away, tell 1"),
                (700, known(1), ""),
                (701, known(1), "ask a"),
                (701, NoAnswer, ""),
                (702, known(1), "ask a"),
                (702, Answer(Some(2)), "back, a is 2"),
                (703, known(2), ""),
            ],
        ),
        (
            "but not for ever",
            Rules { while_away: Duration::from_secs(50), ..rules() },
            vec![
                (0, wait(), "ask a"),
                (0, Answer(Some(1)), "a is 1, tell 1"),
                (700, wait(), "ask a"),
                (700, NoAnswer, "away, tell Failed"),
            ],
        ),
        (
            "the database is away and nothing is known",
            rules(),
            vec![
                (0, wait(), "ask a"),
                (0, NoAnswer, "away, tell Failed"),
                (0, wait(), "ask a"),
                (0, NoAnswer, "tell Failed"),
            ],
        ),
        (
            "the database is slow: who waited is told what was known, and so is who comes then",
            rules(),
            vec![
                (0, wait(), "ask a"),
                (0, Answer(Some(1)), "a is 1, tell 1"),
                (700, wait(), "ask a"),
                (702, Due, ""),
                (703, Due, "tell 1"),
                (703, known(1), ""),
                (720, Answer(Some(2)), "a is 2"),
                (721, known(2), ""),
            ],
        ),
        (
            "without a cache each look-up asks, together while one is on its way",
            Rules::default(),
            vec![
                (0, wait(), "ask a"),
                (0, wait(), ""),
                (0, Answer(Some(1)), "a is 1, tell 1, tell 1"),
                (0, wait(), "ask a"),
                (0, Answer(Some(1)), "tell 1"),
                (1, wait(), "ask a"),
                (1, NoAnswer, "away, tell 1"),
            ],
        ),
        (
            "all rows at once: the first look-up asks for all, what is not among them is not there",
            whole(),
            vec![
                (0, wait(), "ask all"),
                (0, wait(), ""),
                (1, All(vec![("b", 2), ("c", 3)]), "b is 2, c is 3, tell none, tell none"),
                (2, none(), ""),
                (102, none(), "ask all"),
                (103, All(vec![("a", 1), ("b", 2)]), "a is 1, c is gone"),
                (104, known(1), ""),
            ],
        ),
        (
            "all rows at once: beyond their lifetime all are asked for, away they serve",
            whole(),
            vec![
                (0, wait(), "ask all"),
                (1, All(vec![("a", 1)]), "a is 1, tell 1"),
                (601, wait(), "ask all"),
                (602, NoAll, "away, tell 1"),
                (602, known(1), ""),
            ],
        ),
        (
            "all rows at once: one that was expired is asked for alone",
            whole(),
            vec![
                (0, wait(), "ask all"),
                (1, All(vec![("a", 1)]), "a is 1, tell 1"),
                (2, Expire, ""),
                (2, wait(), "ask a"),
                (2, Answer(None), "a is gone, tell none"),
                (3, none(), ""),
                (3, ExpireAll, ""),
                (3, wait(), "ask all"),
            ],
        ),
        (
            "all rows at once, of which there are too many: none is said not to be there that is, and each is asked for",
            Rules { objects_max: 2, ..whole() },
            vec![
                (0, wait(), "ask all"),
                (1, All(vec![("a", 1), ("b", 2), ("c", 3)]), "a is 1, b is 2, c is 3, tell 1"),
                (2, wait(), "ask a"),
                (2, Answer(Some(1)), "a is 1, tell 1"),
                (3, known(1), ""),
                (4, Answer(None), ""),
                (5, Expire, ""),
                (5, wait(), "ask a"),
                (5, Answer(None), "a is gone, tell none"),
                (6, none(), ""),
                (40, wait(), "ask a"),
            ],
        ),
        (
            "all rows at once, one more is learned than there is room for: what went is asked for",
            Rules { objects_max: 1, ..whole() },
            vec![
                (0, wait(), "ask all"),
                (1, All(vec![("b", 1)]), "b is 1, tell none"),
                (2, none(), ""),
                (3, All(vec![("a", 1), ("b", 2)]), "a is 1, b is 2"),
                (4, wait(), "ask a"),
                (4, All(vec![("a", 3)]), "a is 3, b is gone"),
                (5, known(3), ""),
                (5, Answer(Some(3)), "tell 3"),
            ],
        ),
    ];
    for (name, rules, acts) in cases {
        let (mut cache, mut out) = (Rows::new(rules, 7), Vec::new());
        for (number, (seconds, act, expected)) in acts.into_iter().enumerate() {
            let now = at(seconds);
            match act {
                Get(given) => assert_eq!(cache.get(&"a", 0, now, &mut out), given, "{name}, act {number}"),
                Answer(row) => cache.answered(&"a", Ok(row), now, &mut out),
                NoAnswer => cache.answered(&"a", Err(Unanswered), now, &mut out),
                All(rows) => cache.all_answered(Ok(rows), now, &mut out),
                NoAll => cache.all_answered(Err(Unanswered), now, &mut out),
                Expire => assert!(cache.expire(&"a", now), "{name}, act {number}"),
                Stale => assert!(cache.stale(&"a", now), "{name}, act {number}"),
                ExpireAll => cache.expire_all(now),
                Due => cache.due(now, &mut out),
            }
            assert_eq!(words(&mut out), expected, "{name}, act {number}");
        }
    }
}

#[test]
fn the_oldest_row_goes_when_there_are_too_many() {
    let (mut cache, mut out) = (Rows::new(Rules { objects_max: 2, ..rules() }, 7), Vec::new());
    for (key, second) in [("a", 0), ("b", 1), ("a", 2), ("c", 3)] {
        cache.expire(&key, at(second));
        assert_eq!(cache.get(&key, 0, at(second), &mut out), Given::Awaited, "{key}");
        cache.answered(&key, Ok(Some(1)), at(second), &mut out);
    }
    let kept: Vec<&str> = cache.shown(at(4)).map(|shown| *shown.key).collect();
    assert_eq!((kept, cache.counts().evicted), (vec!["a", "c"], 1));
}

#[test]
fn lifetimes_of_rows_that_came_together_end_apart_and_none_is_longer_than_it_was_to_be() {
    let mut cache: Cache<u32, u32, u32> = Cache::new(rules(), 7);
    let mut out = Vec::new();
    cache.all_answered(Ok((0..1000).map(|key| (key, key)).collect()), at(0), &mut out);
    let left: Vec<Duration> = cache.shown(at(0)).filter_map(|shown| shown.expires_in).collect();
    let distinct: std::collections::BTreeSet<&Duration> = left.iter().collect();
    assert!(distinct.len() > 500, "{}", distinct.len());
    let within = Duration::from_secs(540)..=Duration::from_secs(600);
    assert!(left.len() == 1000 && left.iter().all(|left| within.contains(left)));
}

#[test]
fn waiters_and_absent_keys_are_bounded() {
    let mut cache: Cache<u32, u32, u32> = Cache::new(rules(), 7);
    let (mut out, most) = (Vec::new(), u32::try_from(WAITERS_MAX).unwrap());
    for key in 0..most {
        assert_eq!(cache.get(&key, key, at(0), &mut out), Given::Awaited);
    }
    assert_eq!(cache.get(&most, most, at(0), &mut out), Given::Failed, "one too many");
    let absent = u32::try_from(ABSENT_MAX).unwrap();
    out.clear();
    for key in 0..=absent {
        cache.answered(&key, Ok(None), at(1), &mut out);
        let _ = cache.get(&key, key, at(1), &mut out);
        cache.answered(&key, Ok(None), at(1), &mut out);
    }
    assert_eq!(cache.get(&0, 0, at(1), &mut out), Given::Awaited, "the oldest went");
    assert_eq!(cache.get(&absent, 0, at(1), &mut out), Given::Absent, "the newest is known");
}

#[test]
fn waiters_whose_patience_ends_are_found_at_once_however_many_wait() {
    // Ten thousand waiters of one key: they are told in the order in which they came.
    for whole in [false, true] {
        let mut cache: Cache<u32, u32, u32> = Cache::new(Rules { whole, ..rules() }, 7);
        let mut out = Vec::new();
        for waiter in 0..10_000 {
            assert_eq!(cache.get(&1, waiter, at(0), &mut out), Given::Awaited);
        }
        out.clear();
        cache.due(at(3), &mut out);
        let told: Vec<u32> = out
            .iter()
            .filter_map(|output| match output {
                Output::Tell(waiter, Given::Failed) => Some(*waiter),
                _ => None,
            })
            .collect();
        assert_eq!(told, (0..10_000).collect::<Vec<_>>(), "in the order in which they came");
        assert_eq!(cache.waiting(), 0);
    }
}

/// What the world does to a cache in the property.
#[derive(Debug, Clone)]
enum Turn {
    Get(u8),
    Answer(u8, Option<Option<u8>>),
    AskAll,
    AnswerAll(Option<Vec<u8>>),
    Expire(u8),
    Stale(u8),
    ExpireAll,
    StaleAll,
    Wait(u16),
}

fn turn() -> impl Strategy<Value = Turn> {
    let key = 0..6_u8;
    prop_oneof![
        6 => key.clone().prop_map(Turn::Get),
        4 => (key.clone(), proptest::option::of(proptest::option::of(0..3_u8))).prop_map(|(key, row)| Turn::Answer(key, row)),
        1 => Just(Turn::AskAll),
        2 => proptest::option::of(proptest::collection::vec(0..6_u8, 0..6)).prop_map(Turn::AnswerAll),
        1 => key.clone().prop_map(Turn::Expire),
        1 => key.prop_map(Turn::Stale),
        1 => Just(Turn::ExpireAll),
        1 => Just(Turn::StaleAll),
        3 => (0..20_000_u16).prop_map(Turn::Wait),
    ]
}

proptest! {
    /// No more than one question in flight for a key, every waiter told exactly once, and what is served is what the
    /// database said of that key last.
    #[test]
    fn one_question_in_flight_and_each_waiter_is_told_once(
        turns in proptest::collection::vec(turn(), 1..200),
        whole: bool,
        remembers: bool,
        objects_max in 1..8_usize,
        seed: u64,
    ) {
        let secs = |seconds| Some(Duration::from_secs(seconds));
        let rules = Rules { remembers, whole, objects_max, lifetime: secs(20), stale: secs(5), negative: Duration::from_secs(3), ..Rules::default() };
        let mut cache: Cache<u8, u8, u32> = Cache::new(rules, seed);
        let (mut now, mut out) = (Instant::ZERO, Vec::new());
        let (mut flying, mut all_flying) = (BTreeMap::<u8, u32>::new(), 0_u32);
        let (mut asked, mut told) = (BTreeMap::<u32, u8>::new(), BTreeMap::<u32, u32>::new());
        let mut said: BTreeMap<u8, u8> = BTreeMap::new();
        let mut next = 0;
        for turn in turns.into_iter().chain([Turn::Wait(60_000)]) {
            match turn {
                Turn::Get(key) => {
                    next += 1;
                    match cache.get(&key, next, now, &mut out) {
                        Given::Awaited => { asked.insert(next, key); }
                        Given::Known(row) => prop_assert_eq!(said.get(&key), Some(&row)),
                        Given::Absent => prop_assert_eq!(said.get(&key), None),
                        Given::Failed => {}
                    }
                }
                Turn::Answer(key, answer) if flying.contains_key(&key) => {
                    flying.remove(&key);
                    match answer {
                        Some(Some(row)) => { said.insert(key, row); }
                        Some(None) => { said.remove(&key); }
                        None => {}
                    }
                    cache.answered(&key, answer.ok_or(Unanswered), now, &mut out);
                }
                Turn::Answer(key, answer) => {
                    cache.answered(&key, answer.ok_or(Unanswered), now, &mut out);
                    prop_assert!(out.is_empty(), "nobody asked");
                }
                Turn::AskAll => cache.ask_all(now, &mut out),
                Turn::AnswerAll(answer) if all_flying > 0 => {
                    all_flying -= 1;
                    if let Some(keys) = &answer {
                        said = keys.iter().map(|key| (*key, *key)).collect();
                    }
                    let rows = answer.map(|keys| keys.into_iter().map(|key| (key, key)).collect());
                    cache.all_answered(rows.ok_or(Unanswered), now, &mut out);
                }
                Turn::AnswerAll(_) => {}
                Turn::Expire(key) => { cache.expire(&key, now); }
                Turn::Stale(key) => { cache.stale(&key, now); }
                Turn::ExpireAll => cache.expire_all(now),
                Turn::StaleAll => cache.stale_all(now),
                Turn::Wait(millis) => {
                    now += Duration::from_millis(millis.into());
                    cache.due(now, &mut out);
                }
            }
            for output in out.drain(..) {
                match output {
                    Output::Ask(key) => {
                        *flying.entry(key).or_default() += 1;
                        prop_assert_eq!(flying.get(&key), Some(&1), "two questions for {}", key);
                    }
                    Output::AskAll => {
                        all_flying += 1;
                        prop_assert_eq!(all_flying, 1, "two questions for all");
                    }
                    Output::Tell(waiter, given) => {
                        prop_assert!(given != Given::Awaited);
                        prop_assert!(asked.contains_key(&waiter), "nobody of that number waits");
                        *told.entry(waiter).or_default() += 1;
                    }
                    Output::Changed(..) | Output::Away | Output::Back => {}
                }
            }
        }
        for waiter in asked.keys() {
            prop_assert_eq!(told.get(waiter), Some(&1), "waiter {}", waiter);
        }
        prop_assert_eq!(told.len(), asked.len());
    }
}
