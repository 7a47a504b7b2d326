//! One rule of queues each, on invented time.

mod common;

use core::time::Duration;

use common::{Desk, caller, join_as, member, queue, settings};
use queue::{
    Absence, Autopause, Bounds, CallerId, Closed, Config, DeviceState, End, Exit, General, Input, Join,
    PenaltyChange, QueueConfig, Refusal, Refused, Settings, Strategy, Whom,
};

const A: &str = "PJSIP/a";
const B: &str = "PJSIP/b";
const NONE: [&str; 0] = [];

fn seconds(count: u64) -> Duration {
    Duration::from_secs(count)
}

#[test]
fn a_call_is_answered_and_ends_by_the_lines_that_reports_expect() {
    let mut desk = Desk::new(vec![queue("q", settings(), &[A])]);
    assert_eq!(desk.join("Q", 0), Ok(1));
    assert_eq!(desk.orders(), ["0: ring PJSIP/a"]);
    desk.pass(4);
    desk.connect(0, A);
    assert!(desk.queues.caller(caller(0)).is_none(), "who talks waits no more");
    desk.pass(60);
    assert!(desk.end(0, End::Agent));
    assert!(!desk.end(0, End::Agent), "a call ends once");
    assert_eq!(
        desk.log(),
        ["c0|q|NONE|ENTERQUEUE||100|1", "c0|q|PJSIP/a|CONNECT|4|b0|4", "c0|q|PJSIP/a|COMPLETEAGENT|4|60|1"]
    );
    let stats = desk.queues.get("q").unwrap().stats;
    assert_eq!((stats.hold, stats.talk, stats.completed, stats.abandoned), (1, 15, 1, 0));
}

#[test]
fn the_log_says_who_enters_as_far_as_it_may() {
    let known = CallerId { name: "Anna|Bea".into(), ..CallerId::of("100") };
    let hidden = CallerId { is_restricted: true, ..known.clone() };
    for (name, log_restricted, log_caller_name, id, expected) in [
        ("as the field has it", true, false, &known, "ENTERQUEUE||100|1"),
        ("the number of one who hides it, too", true, false, &hidden, "ENTERQUEUE||100|1"),
        ("not this one", false, false, &hidden, "ENTERQUEUE|||1"),
        ("but others", false, false, &known, "ENTERQUEUE||100|1"),
        ("a name", false, true, &known, "ENTERQUEUE||100|1|Anna_Bea"),
        ("a hidden one stays so", false, true, &hidden, "ENTERQUEUE|||1|"),
        ("or does not", true, true, &hidden, "ENTERQUEUE||100|1|Anna_Bea"),
    ] {
        let mut desk = Desk::with(Config {
            queues: vec![queue("q", Settings { log_restricted, ..settings() }, &[A])],
            general: General { log_caller_name, ..General::default() },
            ..Config::default()
        });
        let join = queue::Join { id: id.clone(), ..join_as(0) };
        desk.queues.join("q", join, desk.now, &mut desk.out).unwrap();
        assert_eq!(desk.log(), [format!("c0|q|NONE|{expected}")], "{name}");
    }
}

#[test]
fn who_does_not_answer_is_let_be_and_the_next_is_called_after_the_pause() {
    let mut desk = Desk::new(vec![queue("q", settings(), &[A, B])]);
    desk.join("q", 0).unwrap();
    desk.pass(14);
    assert_eq!(desk.orders(), ["0: ring PJSIP/a"]);
    desk.pass(1);
    assert_eq!(desk.orders(), ["0: let be"]);
    assert!(!desk.answer(0, A), "too late");
    desk.pass(5);
    assert_eq!(desk.orders(), ["0: ring PJSIP/b"]);
    assert!(desk.refuse(0, B, Refusal::Busy));
    assert_eq!(desk.orders(), ["0: ring PJSIP/a"], "in the same attempt, whoever has not been called");
    desk.leave(0);
    assert_eq!(
        desk.log(),
        [
            "c0|q|NONE|ENTERQUEUE||100|1",
            "c0|q|PJSIP/a|RINGNOANSWER|15000",
            "c0|q|PJSIP/b|RINGNOANSWER|0",
            "c0|q|PJSIP/a|RINGCANCELED|0",
            "c0|q|NONE|ABANDON|1|1|20",
        ]
    );
}

#[test]
fn a_busy_member_begins_the_time_anew_only_when_the_queue_says_so() {
    for (restarts, until) in [(false, 5), (true, 15)] {
        let mut desk =
            Desk::new(vec![queue("q", Settings { timeout_restart: restarts, ..settings() }, &[A, B])]);
        desk.join("q", 0).unwrap();
        desk.pass(10);
        desk.refuse(0, A, Refusal::Busy);
        desk.orders();
        desk.pass(until - 1);
        assert_eq!(desk.orders(), NONE, "{restarts}");
        desk.pass(1);
        assert_eq!(desk.orders(), ["0: let be"], "{restarts}");
    }
}

#[test]
fn all_ring_at_once_and_one_answer_ends_it() {
    let ringall = Settings { strategy: Strategy::RingAll, ..settings() };
    let mut desk = Desk::new(vec![queue("q", ringall, &[A, B])]);
    desk.join("q", 0).unwrap();
    desk.join("q", 1).unwrap();
    assert_eq!(desk.orders(), ["0: ring PJSIP/b PJSIP/a"], "both ring for the first");
    assert!(desk.answer(0, B));
    assert!(!desk.answer(0, A), "the other was late");
    assert_eq!(desk.orders(), ["1: ring PJSIP/a"], "who is left may be called for the second");
    desk.refuse(1, A, Refusal::Declined);
    assert_eq!(desk.orders(), NONE, "all have refused: the pause");
    desk.pass(5);
    assert_eq!(desk.orders(), ["1: ring PJSIP/a"]);
}

#[test]
fn penalties_call_heavier_members_only_when_no_lighter_one_is_free() {
    let members = vec![member(A, 2), member(B, 1)];
    let config = QueueConfig { name: "q".into(), settings: settings(), members, is_row: false };
    let mut desk = Desk::new(vec![config.clone()]);
    desk.join("q", 0).unwrap();
    desk.join("q", 1).unwrap();
    assert_eq!(desk.orders(), ["0: ring PJSIP/b", "1: ring PJSIP/a"]);

    let limit = Settings { penalty_members_limit: 2, ..settings() };
    let mut desk = Desk::new(vec![QueueConfig { settings: limit, ..config }]);
    desk.join("q", 0).unwrap();
    assert_eq!(desk.orders(), ["0: ring PJSIP/a"], "so few members: penalties do not count");
}

#[test]
fn a_rule_widens_the_bounds_of_a_caller_over_time() {
    let changes = ["30,+3", "60,,,5"].map(|line| PenaltyChange::parse(line).unwrap()).to_vec();
    let members = vec![member(A, 4)];
    let default_rule = "wider".to_owned();
    let config = Config {
        queues: vec![QueueConfig {
            name: "q".into(),
            settings: Settings { default_rule, ..settings() },
            members,
            is_row: false,
        }],
        rules: vec![("Wider".into(), changes)],
        ..Config::default()
    };
    let mut desk = Desk::with(config);
    let bounds = Bounds { max: Some(1), ..Bounds::default() };
    desk.queues.join("q", queue::Join { bounds, ..join_as(0) }, desk.now, &mut desk.out).unwrap();
    desk.pass(29);
    assert_eq!(desk.orders(), NONE);
    desk.pass(1);
    assert_eq!(desk.orders(), ["0: bounds Some(4) None None", "0: ring PJSIP/a"]);
    desk.pass(30);
    assert_eq!(desk.orders()[0], "0: let be");
    assert_eq!(desk.queues.caller(caller(0)).unwrap().1.bounds.raise, Some(5));
}

#[test]
fn the_heavier_queue_gets_the_member_first() {
    let heavy = Settings { weight: 5, ..settings() };
    let mut desk = Desk::new(vec![queue("light", settings(), &[A, B]), queue("heavy", heavy, &[A])]);
    for (number, name) in [(0, "light"), (1, "light"), (2, "heavy"), (3, "light")] {
        desk.join(name, number).unwrap();
    }
    assert_eq!(desk.orders(), ["0: ring PJSIP/a", "1: ring PJSIP/b"]);
    desk.connect(0, A);
    desk.end(0, End::Agent);
    assert_eq!(desk.orders(), ["2: ring PJSIP/a"], "though the other has waited as long");
    desk.leave(2);
    assert_eq!(desk.orders(), ["3: ring PJSIP/a"], "and the lighter one when the heavier wants nobody");
}

#[test]
fn a_heavier_queue_keeps_a_member_only_for_callers_who_may_get_it() {
    let limits = |max, min| Bounds { max, min, raise: None };
    let raised = Bounds { raise: Some(80), max: Some(50), min: None };
    let skilled = |needs: &str| queue::Skills::parse(needs).unwrap();
    let plain = settings();
    let one_by_one = Settings { autofill: false, ..settings() };
    let all = Settings { strategy: queue::Strategy::RingAll, ..settings() };
    // The heavier queue, who waits there (bounds, what it needs), and whether the member rings for the lighter queue.
    type Waiting<'a> = (Bounds, &'a str);
    let free = (Bounds::default(), "");
    let not_mine = (limits(Some(50), None), "");
    let cases: [(&str, &Settings, &[Waiting], bool); 13] = [
        ("nobody waits", &plain, &[], true),
        ("one without limits", &plain, &[free], false),
        ("its highest penalty excludes it", &plain, &[not_mine], true),
        ("its highest penalty admits it", &plain, &[(limits(Some(60), None), "")], false),
        ("its lowest penalty excludes it", &plain, &[(limits(None, Some(61)), "")], true),
        ("it is raised above the highest", &plain, &[(raised, "")], true),
        ("it lacks the skill", &plain, &[(Bounds::default(), "german=1")], true),
        ("one may not get it, one may", &plain, &[not_mine, free], false),
        (
            "one at a time: the first may not get it, who comes next may",
            &one_by_one,
            &[not_mine, free],
            false,
        ),
        ("one at a time: the first may get it", &one_by_one, &[free, not_mine], false),
        ("all ring, and it is excluded", &all, &[not_mine], true),
        ("all ring, and the second may get it", &all, &[not_mine, free], false),
        ("several, none of whom may get it", &all, &[not_mine, not_mine], true),
    ];
    for general in [General::default(), General { longest_waiting_first: true, ..General::default() }] {
        let is_equal = general.longest_waiting_first;
        for (name, heavy, waiting, rings) in &cases {
            let weight = if is_equal { 0 } else { 5 };
            let heavy = Settings { weight, ..(*heavy).clone() };
            let with = |name: &str, settings| QueueConfig {
                name: name.into(),
                settings,
                members: vec![member(A, 60)],
                is_row: false,
            };
            let queues = vec![with("light", settings()), with("heavy", heavy)];
            let mut desk = Desk::with(Config { queues, general, ..Config::default() });
            // Busy with a call of the lighter queue until all wait.
            desk.join("light", 90).unwrap();
            desk.connect(90, A);
            for (number, (bounds, needs)) in (0..).zip(*waiting) {
                let join = Join { bounds: *bounds, skills: skilled(needs), ..join_as(number) };
                desk.queues.join("heavy", join, desk.now, &mut desk.out).unwrap();
            }
            desk.pass(1);
            desk.join("light", 99).unwrap();
            desk.orders();
            desk.end(90, End::Agent);
            desk.pass(1);
            let orders = desk.orders();
            let rang = orders.iter().any(|order| order.starts_with("99: ring"));
            assert_eq!(rang, *rings, "{name}, equal weights {is_equal}: {orders:?}");
        }
    }
}

#[test]
fn a_caller_who_may_not_get_a_free_member_does_not_keep_it_from_those_behind() {
    let up_to = |max| Bounds { max: Some(max), ..Bounds::default() };
    let anyone = Bounds::default();
    // Bounds of those who wait, and who is called: the members' penalties are 0, 10 and 20.
    for (name, autofill, waiting, expected) in [
        ("the first wants nobody who is there", true, [up_to(5), up_to(5), anyone], vec!["0: a", "2: b"]),
        ("each its own", true, [up_to(0), up_to(10), up_to(20)], vec!["0: a", "1: b", "2: c"]),
        ("two want the same one", true, [up_to(0), up_to(0), up_to(10)], vec!["0: a", "2: b"]),
        ("one at a time", false, [up_to(5), anyone, anyone], vec!["0: a"]),
    ] {
        let members =
            [(A, 0), (B, 10), ("PJSIP/c", 20)].map(|(interface, penalty)| member(interface, penalty));
        let settings = Settings { autofill, ..settings() };
        let queue = QueueConfig { name: "q".into(), settings, members: members.into(), is_row: false };
        let mut desk = Desk::new(vec![queue]);
        for (number, bounds) in (0..).zip(waiting) {
            let join = Join { bounds, ..join_as(number) };
            desk.queues.join("q", join, desk.now, &mut desk.out).unwrap();
        }
        let called: Vec<String> =
            desk.orders().iter().map(|order| order.replace("ring PJSIP/", "")).collect();
        assert_eq!(called, expected, "{name}");
    }
}

#[test]
fn the_longest_waiting_of_a_members_queues_goes_first_when_that_is_asked_for() {
    let general = General { longest_waiting_first: true, ..General::default() };
    let queues = vec![queue("a", settings(), &[A]), queue("b", settings(), &[A])];
    let mut desk = Desk::with(Config { queues, general, ..Config::default() });
    desk.join("a", 0).unwrap();
    desk.pass(1);
    desk.join("b", 1).unwrap();
    desk.pass(1);
    desk.join("a", 2).unwrap();
    desk.connect(0, A);
    desk.orders();
    desk.end(0, End::Caller);
    assert_eq!(desk.orders(), ["1: ring PJSIP/a"]);
}

#[test]
fn a_member_wraps_up_before_the_next_call_in_one_queue_or_in_all() {
    for (shared, own, elsewhere) in [(false, 10, 0), (true, 10, 10)] {
        let wrapup = Settings { wrapup: seconds(10), ..settings() };
        let queues = vec![queue("a", wrapup, &[A]), queue("b", settings(), &[A])];
        let general = General { shared_last_call: shared, ..General::default() };
        let mut desk = Desk::with(Config { queues, general, ..Config::default() });
        desk.join("a", 0).unwrap();
        desk.connect(0, A);
        desk.end(0, End::Caller);
        desk.orders();
        for (name, number, wait) in [("a", 1, own), ("b", 2, elsewhere)] {
            let mut desk_now = 0;
            desk.join(name, number).unwrap();
            while desk.queues.caller(caller(number)).unwrap().1.is_waiting() {
                desk.pass(1);
                desk_now += 1;
                assert!(desk_now <= 10);
            }
            // The first of the two has taken the time of both.
            let expected = if number == 1 { wait } else { wait - own.min(wait) };
            assert_eq!(desk_now, expected, "{shared} {name}");
            desk.leave(number);
        }
    }
}

#[test]
fn paused_engaged_and_unreachable_members_are_not_called_until_that_changes() {
    let mut desk = Desk::new(vec![queue("q", settings(), &[A])]);
    for (state, rings) in [
        (DeviceState::InUse, false),
        (DeviceState::Ringing, false),
        (DeviceState::OnHold, false),
        (DeviceState::Unavailable, false),
        (DeviceState::Invalid, false),
        (DeviceState::Unknown, true),
        (DeviceState::NotInUse, true),
    ] {
        desk.queues.device("pjsip/A", state, desk.now, &mut desk.out);
        desk.join("q", 0).unwrap();
        assert_eq!(desk.orders().len() == 1, rings, "{state:?}");
        desk.queues.device(A, DeviceState::NotInUse, desk.now, &mut desk.out);
        assert_eq!(desk.orders().len() == 1, !rings, "{state:?}: called as soon as it is free");
        desk.leave(0);
        desk.orders();
    }
    let whom = Whom { queue: None, interface: A, by: "MANAGER" };
    desk.log();
    assert_eq!(desk.queues.pause(whom, true, "lunch", desk.now, &mut desk.out), Ok(1));
    desk.join("q", 1).unwrap();
    assert_eq!(desk.orders(), NONE);
    desk.queues.pause(whom, false, "", desk.now, &mut desk.out).unwrap();
    assert_eq!(desk.orders(), ["1: ring PJSIP/a"]);
    assert_eq!(
        desk.log(),
        [
            "MANAGER|q|PJSIP/a|PAUSE|lunch",
            "MANAGER|NONE|PJSIP/a|PAUSEALL|lunch",
            "c1|q|NONE|ENTERQUEUE||100|1",
            "MANAGER|q|PJSIP/a|UNPAUSE|",
            "MANAGER|NONE|PJSIP/a|UNPAUSEALL|"
        ]
    );
}

#[test]
fn ringinuse_calls_a_member_who_talks() {
    for (rings, expected) in [(true, 1), (false, 0)] {
        let mut desk = Desk::new(vec![queue("q", Settings { ring_in_use: rings, ..settings() }, &[A])]);
        desk.join("q", 0).unwrap();
        desk.connect(0, A);
        desk.queues.device(A, DeviceState::InUse, desk.now, &mut desk.out);
        desk.orders();
        desk.join("q", 1).unwrap();
        assert_eq!(desk.orders().len(), expected, "ringinuse={rings}");
    }
}

#[test]
fn autofill_serves_several_at_once_and_its_absence_one_after_the_other() {
    for (autofill, expected) in
        [(true, vec!["0: ring PJSIP/a", "1: ring PJSIP/b"]), (false, vec!["0: ring PJSIP/a"])]
    {
        let mut desk = Desk::new(vec![queue("q", Settings { autofill, ..settings() }, &[A, B])]);
        desk.join("q", 0).unwrap();
        desk.join("q", 1).unwrap();
        assert_eq!(desk.orders(), expected, "autofill={autofill}");
        desk.connect(0, A);
        assert_eq!(desk.orders().len(), usize::from(!autofill), "the next one's turn");
    }
}

#[test]
fn autopause_pauses_who_does_not_answer_here_or_everywhere_and_not_soon_after_a_call() {
    let both = |autopause, extra: fn(&mut Settings)| {
        let mut own = Settings { autopause, ..settings() };
        extra(&mut own);
        Desk::new(vec![queue("q", own, &[A]), queue("r", settings(), &[A])])
    };
    let paused =
        |desk: &Desk| ["q", "r"].map(|name| desk.queues.get(name).unwrap().member(A).unwrap().paused);
    for (name, autopause, extra, refusal, expected) in [
        ("no", Autopause::No, (|_| ()) as fn(&mut Settings), Refusal::Declined, [false, false]),
        ("yes", Autopause::Yes, |_| (), Refusal::Declined, [true, false]),
        ("all", Autopause::All, |_| (), Refusal::Declined, [true, true]),
        ("busy", Autopause::Yes, |_| (), Refusal::Busy, [false, false]),
        ("busy too", Autopause::Yes, |own| own.autopause_busy = true, Refusal::Busy, [true, false]),
        ("away", Autopause::Yes, |_| (), Refusal::Unavailable, [false, false]),
        (
            "away too",
            Autopause::Yes,
            |own| own.autopause_unavailable = true,
            Refusal::Unavailable,
            [true, false],
        ),
        ("no call at all", Autopause::Yes, |_| (), Refusal::NoChannel, [false, false]),
    ] {
        let mut desk = both(autopause, extra);
        desk.join("q", 0).unwrap();
        desk.refuse(0, A, refusal);
        assert_eq!(paused(&desk), expected, "{name}");
    }
    let mut desk = both(Autopause::Yes, |own| own.autopause_delay = seconds(60));
    for (number, expected) in [(0, false), (1, true)] {
        desk.join("q", number * 2).unwrap();
        if number == 0 {
            desk.connect(0, A);
            desk.end(0, End::Agent);
            desk.join("q", 1).unwrap();
            desk.refuse(1, A, Refusal::Declined);
            desk.leave(1);
            desk.pass(60);
        } else {
            desk.refuse(2, A, Refusal::Declined);
        }
        assert_eq!(paused(&desk)[0], expected, "{number}");
    }
}

#[test]
fn joining_and_staying_depend_on_members_as_the_conditions_say() {
    let strict = Absence::STRICT;
    for (name, absence, pause, device, empty) in [
        ("never", Absence::default(), true, DeviceState::Invalid, false),
        ("strict, one who is there", strict, false, DeviceState::NotInUse, false),
        ("strict, one who talks", strict, false, DeviceState::InUse, false),
        ("strict, paused", strict, true, DeviceState::NotInUse, true),
        ("strict, away", strict, false, DeviceState::Unavailable, true),
        ("loose, paused", Absence::LOOSE, true, DeviceState::NotInUse, false),
        ("loose, no such device", Absence::LOOSE, false, DeviceState::Invalid, true),
        ("inuse", Absence { in_use: true, ..Absence::default() }, false, DeviceState::InUse, true),
        ("ringing", Absence { ringing: true, ..Absence::default() }, false, DeviceState::Ringing, true),
        ("unknown", Absence { unknown: true, ..Absence::default() }, false, DeviceState::Unknown, true),
    ] {
        let own = Settings { join_empty: absence, ..settings() };
        let mut desk = Desk::new(vec![queue("q", own, &[A])]);
        let away = |desk: &mut Desk| {
            let whom = Whom { queue: Some("q"), interface: A, by: "x" };
            desk.queues.pause(whom, pause, "", desk.now, &mut desk.out).unwrap();
            desk.queues.device(A, device, desk.now, &mut desk.out);
        };
        away(&mut desk);
        assert_eq!(desk.join("q", 0).is_err(), empty, "{name}: joining");

        let own = Settings { leave_when_empty: absence, ..settings() };
        let mut desk = Desk::new(vec![queue("q", own, &[A])]);
        desk.queues.device(A, DeviceState::OnHold, desk.now, &mut desk.out);
        if !absence.in_use {
            desk.join("q", 0).unwrap();
            desk.orders();
            away(&mut desk);
            let left = desk.orders().contains(&"0: leave Empty".to_owned());
            assert_eq!(left, empty, "{name}: staying");
        }
    }
    let mut desk =
        Desk::new(vec![queue("q", Settings { join_empty: strict, max_length: 1, ..settings() }, &[])]);
    assert_eq!(desk.join("q", 0), Err(Closed::Empty), "nobody at all");
    assert_eq!(desk.join("other", 0), Err(Closed::NoQueue));
}

#[test]
fn a_queue_is_full_at_its_length() {
    let mut desk = Desk::new(vec![queue("q", Settings { max_length: 2, ..settings() }, &[])]);
    assert_eq!([0, 1, 2].map(|number| desk.join("q", number)), [Ok(1), Ok(2), Err(Closed::Full)]);
    desk.leave(0);
    assert_eq!(desk.join("q", 2), Ok(2));
    assert_eq!(desk.join("q", 2), Err(Closed::Full), "a channel waits once");
}

#[test]
fn a_caller_leaves_after_its_time_at_once_or_after_the_ringing_as_timeoutpriority_says() {
    for (app_timeout_first, left_after) in [(true, 10), (false, 15)] {
        let mut desk = Desk::new(vec![queue("q", Settings { app_timeout_first, ..settings() }, &[A])]);
        let join = queue::Join { timeout: Some(seconds(10)), ..join_as(0) };
        desk.queues.join("q", join, desk.now, &mut desk.out).unwrap();
        desk.pass(left_after - 1);
        assert_eq!(desk.orders(), ["0: ring PJSIP/a"]);
        desk.pass(1);
        assert_eq!(desk.orders(), ["0: let be", "0: leave Timeout"]);
        let expected = format!("c0|q|NONE|EXITWITHTIMEOUT|1|1|{left_after}");
        assert_eq!(desk.log().last(), Some(&expected));
        assert!(!desk.leave(0), "it is out");
    }
}

#[test]
fn who_wants_no_second_round_leaves_after_the_members_of_one() {
    let each = 15 + 5 + 15;
    for (strategy, left_after) in [
        (Strategy::Linear, each),
        (Strategy::RoundRobinMemory, each),
        (Strategy::RoundRobinOrdered, each),
        (Strategy::RingAll, 15),
        (Strategy::LeastRecent, 15),
        (Strategy::FewestCalls, 15),
        (Strategy::Random, 15),
        (Strategy::WeightedRandom, 15),
    ] {
        let mut desk = Desk::new(vec![queue("q", Settings { strategy, ..settings() }, &[A, B])]);
        let join = queue::Join { no_retry: true, ..join_as(0) };
        desk.queues.join("q", join, desk.now, &mut desk.out).unwrap();
        desk.pass(left_after - 1);
        let leaves = |desk: &mut Desk| desk.orders().iter().any(|order| order == "0: leave Timeout");
        assert!(!leaves(&mut desk), "{strategy:?}");
        desk.pass(1);
        assert!(leaves(&mut desk), "{strategy:?}");
    }
}

#[test]
fn members_may_ring_without_end() {
    let mut desk = Desk::new(vec![queue("q", Settings { timeout: Duration::ZERO, ..settings() }, &[A])]);
    desk.join("q", 0).unwrap();
    desk.pass(10_000);
    assert_eq!(desk.orders(), ["0: ring PJSIP/a"]);
    assert!(desk.answer(0, A));
}

#[test]
fn a_member_who_goes_away_before_the_conversation_costs_the_caller_nothing() {
    let mut desk = Desk::new(vec![queue("q", settings(), &[A])]);
    desk.join("q", 0).unwrap();
    desk.answer(0, A);
    assert!(desk.tell(0, Input::Dumped));
    assert!(!desk.tell(0, Input::Connected { bridged: String::new() }));
    desk.orders();
    desk.pass(5);
    assert_eq!(desk.orders(), ["0: ring PJSIP/a"]);
    assert_eq!(desk.log(), ["c0|q|NONE|ENTERQUEUE||100|1", "c0|q|PJSIP/a|AGENTDUMP|"]);
}

#[test]
fn every_way_out_has_its_line() {
    for (exit, expected) in [
        (Exit::Abandoned, "c0|q|NONE|ABANDON|1|1|3"),
        (Exit::Key("5".into()), "c0|q|NONE|EXITWITHKEY|5|1|1|3"),
        (Exit::Timeout, "c0|q|NONE|EXITWITHTIMEOUT|1|1|3"),
        (Exit::Empty, "c0|q|NONE|EXITEMPTY|1|1|3"),
        (Exit::Withdrawn("vip".into()), "c0|q|NONE|WITHDRAW|1|1|3|vip"),
    ] {
        let mut desk = Desk::new(vec![queue("q", settings(), &[])]);
        desk.join("q", 0).unwrap();
        desk.pass(3);
        assert!(desk.tell(0, Input::Left(exit)));
        assert_eq!(desk.log().last().map(String::as_str), Some(expected));
    }
    for (end, expected) in [
        (End::Caller, "c0|q|PJSIP/a|COMPLETECALLER|0|9|1"),
        (End::Agent, "c0|q|PJSIP/a|COMPLETEAGENT|0|9|1"),
        (End::Blind { exten: "7".into(), context: "c".into() }, "c0|q|PJSIP/a|BLINDTRANSFER|7|c|0|9|1"),
        (
            End::Attended { method: "BRIDGE".into(), to: "x".into() },
            "c0|q|PJSIP/a|ATTENDEDTRANSFER|BRIDGE|x|0|9|1",
        ),
    ] {
        let mut desk = Desk::new(vec![queue("q", settings(), &[A])]);
        desk.join("q", 0).unwrap();
        desk.connect(0, A);
        desk.pass(9);
        desk.end(0, end);
        assert_eq!(desk.log().last().map(String::as_str), Some(expected));
    }
}

#[test]
fn dynamic_members_come_and_go_and_the_database_keeps_them() {
    let general = General { persistent_members: true, ..General::default() };
    let queues = vec![queue("q", settings(), &[A])];
    let mut desk = Desk::with(Config { queues: queues.clone(), general, ..Config::default() });
    let (now, out) = (desk.now, &mut desk.out);
    let new = queue::NewMember {
        name: "Bea".into(),
        state_interface: "hint:b@c".into(),
        paused: true,
        paused_reason: "x;y|z".into(),
        wrapup: Some(seconds(7)),
        ..member(B, 3)
    };
    assert_eq!(desk.queues.add("q", &new, "COMMAND", now, out), Ok(()));
    assert_eq!(desk.queues.add("q", &new, "COMMAND", now, out), Err(Refused::AlreadyMember));
    assert_eq!(desk.queues.add("r", &new, "COMMAND", now, out), Err(Refused::NoQueue));
    assert_eq!(desk.queues.remove("q", A, "COMMAND", now, out), Err(Refused::NotDynamic));
    assert_eq!(desk.queues.remove("q", "PJSIP/z", "COMMAND", now, out), Err(Refused::NoMember));
    let kept = out.iter().rev().find_map(|output| match output {
        queue::Output::Persist { value, .. } => value.clone(),
        _ => None,
    });
    let kept = kept.unwrap();
    assert_eq!(kept, "PJSIP/b;3;1;Bea;hint:b@c;x y z;7");
    assert_eq!(desk.queues.remove("q", B, "COMMAND", now, out).as_deref(), Ok("Bea"));
    assert!(desk.queues.get("q").unwrap().member(B).is_none());
    assert_eq!(desk.log(), ["COMMAND|q|PJSIP/b|ADDMEMBER|PAUSED", "COMMAND|q|PJSIP/b|REMOVEMEMBER|"]);

    let mut desk = Desk::with(Config { queues, general, ..Config::default() });
    desk.queues.restore("q", &format!("{kept}|;;|PJSIP/c"), desk.now, &mut desk.out);
    let queue = desk.queues.get("q").unwrap();
    let again = queue.member(B).unwrap();
    assert_eq!((&*again.name, again.penalty, again.paused, again.wrapup), ("Bea", 3, true, Some(seconds(7))));
    assert_eq!(queue.members().len(), 3);
}

#[test]
fn another_configuration_keeps_callers_dynamic_members_and_figures() {
    let mut desk = Desk::new(vec![queue("q", settings(), &[A, B]), queue("old", settings(), &[A])]);
    desk.join("q", 0).unwrap();
    desk.connect(0, A);
    desk.end(0, End::Agent);
    desk.join("old", 1).unwrap();
    desk.queues.add("q", &member("PJSIP/c", 0), "x", desk.now, &mut desk.out).unwrap();
    let louder = Settings { timeout: seconds(30), ..settings() };
    let queues = vec![queue("q", louder, &["PJSIP/d", A])];
    desk.queues.configure(&Config { queues, ..Config::default() }, desk.now, &mut desk.out);
    let q = desk.queues.get("q").unwrap();
    let names: Vec<&str> = q.members().iter().map(|member| &*member.interface).collect();
    assert_eq!(names, [A, "PJSIP/c", "PJSIP/d"]);
    assert_eq!((q.members()[0].calls, q.stats.completed, q.settings.timeout), (1, 1, seconds(30)));
    assert!(desk.queues.get("old").is_some(), "somebody waits in it");
    assert_eq!(desk.join("old", 2), Err(Closed::NoQueue), "nobody enters it any more");
    desk.leave(1);
    assert!(desk.queues.get("old").is_none());
    assert!(desk.queues.has_device(A) && !desk.queues.has_device(B));
}

#[test]
fn priorities_and_withdrawals_move_callers() {
    let mut desk = Desk::new(vec![queue("q", settings(), &[])]);
    for number in 0..3 {
        desk.join("q", number).unwrap();
    }
    let order = |desk: &Desk| -> Vec<u32> {
        desk.queues.get("q").unwrap().callers().iter().map(|caller| caller.channel.slot).collect()
    };
    let (now, out) = (desk.now, &mut desk.out);
    assert_eq!(desk.queues.set_priority("q", caller(2), 10, now, out), Ok(()));
    assert_eq!(desk.queues.set_priority("q", caller(9), 10, now, out), Err(Refused::NoCaller));
    assert_eq!(desk.queues.withdraw("q", caller(0), "info", now, out), Ok(()));
    assert_eq!(desk.queues.withdraw("q", caller(0), "info", now, out), Err(Refused::NoCaller));
    assert_eq!(order(&desk), [2, 1]);
    assert_eq!(desk.orders(), ["0: leave Withdrawn(\"info\")"]);
}

#[test]
fn waiting_callers_are_told_their_place_and_called_ones_only_where_the_queue_says_so() {
    let mut own = settings();
    own.announcing.every = seconds(30);
    let mut desk = Desk::new(vec![queue("q", own.clone(), &[A])]);
    desk.join("q", 0).unwrap();
    desk.join("q", 1).unwrap();
    assert_eq!(desk.orders(), ["0: ring PJSIP/a", "1: say 4"]);
    own.announcing.to_first = true;
    let mut desk = Desk::new(vec![queue("q", own, &[A])]);
    desk.join("q", 0).unwrap();
    assert_eq!(desk.orders(), ["0: ring PJSIP/a", "0: say 2"]);
}

#[test]
fn what_a_device_does_is_forgotten_with_the_last_member_that_has_it() {
    let shared =
        |interface: &str| queue::NewMember { state_interface: "Custom:desk".into(), ..member(interface, 0) };
    let mut config = queue("q", settings(), &[]);
    config.members = vec![shared(A), shared(B)];
    let mut desk = Desk::new(vec![config.clone()]);
    desk.queues.device("Custom:desk", DeviceState::InUse, desk.now, &mut desk.out);
    let state = |desk: &Desk| {
        let queue = desk.queues.get("q").unwrap();
        queue.members().first().map(|member| desk.queues.device_of(member))
    };
    let mut reload = |desk: &mut Desk, members: Vec<queue::NewMember>| {
        config.members = members;
        let config = Config { queues: vec![config.clone()], ..Config::default() };
        desk.queues.configure(&config, desk.now, &mut desk.out);
    };
    reload(&mut desk, vec![shared(B)]);
    assert_eq!(state(&desk), Some(DeviceState::InUse), "another still has it");
    reload(&mut desk, vec![]);
    assert!(!desk.queues.has_device("Custom:desk"));
    reload(&mut desk, vec![shared(A)]);
    assert_eq!(state(&desk), Some(DeviceState::Unknown), "it is asked anew");
}

#[test]
fn what_a_device_does_is_told_when_it_changes_and_not_when_it_is_asked() {
    let mut desk = Desk::new(vec![queue("q", settings(), &[A])]);
    let told = |desk: &mut Desk, asked: bool, state| {
        let (now, out) = (desk.now, &mut desk.out);
        match asked {
            true => desk.queues.learn(A, state, now, out),
            false => desk.queues.device(A, state, now, out),
        }
        let member = |output: &queue::Output| {
            matches!(output, queue::Output::Event { event: queue::Event::Member { .. }, .. })
        };
        let count = desk.out.iter().filter(|output| member(output)).count();
        desk.out.clear();
        count
    };
    assert_eq!(told(&mut desk, true, DeviceState::NotInUse), 0);
    assert_eq!(told(&mut desk, false, DeviceState::InUse), 1);
    assert_eq!(told(&mut desk, false, DeviceState::InUse), 0);
    let queue = desk.queues.get("q").unwrap();
    assert_eq!(desk.queues.device_of(&queue.members()[0]), DeviceState::InUse);
}
