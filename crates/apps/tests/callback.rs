//! QueueCallback: callers who hang up and keep their place.

mod common;

use std::time::Duration;

use base::Cause;
use call::{CALLBACKS, CALLBACKS_MAX, Notice};
use common::{BYE, answers, at_rest, call, noted, phone, refusing, warnings, world};
use queue::{Absence, Config, QueueConfig, Settings, Strategy};
use sim::{Act, Phone, World};

/// A queue without members; key 9 leads out of it.
fn site(change: impl FnOnce(&mut Settings), options: &str, phones: &[(&str, Phone)]) -> World {
    let dialplan = format!(
        "[default]\nexten => 1,1,Answer()\n same => n,Queue(sales)\nexten => 2,1,AddQueueMember(sales,SIM/6002)\n\
         exten => 3,1,Set(QUEUE_PRIO=5)\n same => n,Queue(sales)\nexten => 4,1,Goto(out,9,1)\n\
         exten => 5,1,Goto(out,8,1)\n\
         [out]\nexten => 9,1,QueueCallback(sales,SIM/6009{options})\n same => n,NoOp(${{QUEUECALLBACKSTATUS}} ${{QUEUEPOSITION}})\n\
         exten => 8,1,QueueCallback(support,SIM/6009)\n same => n,NoOp(${{QUEUECALLBACKSTATUS}})\n"
    );
    let mut settings = Settings {
        strategy: Strategy::Linear,
        timeout: Duration::from_secs(10),
        ring_in_use: false,
        ..Settings::default()
    };
    settings.handling.context = "out".into();
    change(&mut settings);
    let queue = QueueConfig { name: "sales".into(), settings, members: Vec::new(), is_row: false };
    let config = Config { queues: vec![queue], ..Config::default() };
    let mut world = world(&dialplan);
    world.watch();
    for (name, phone) in phones {
        world.phone(name, phone.clone());
    }
    world.shard.core.borrow_mut().with_queues(|queues, now, out| queues.configure(&config, now, out));
    world
}

fn log(world: &World) -> Vec<String> {
    let lines = world.shard.core.borrow().queue_lines.clone();
    let plain = |line: &queue::Line| {
        let data = line.entry.data();
        let data: Vec<&str> = data.iter().map(String::as_str).filter(|data| !data.contains('.')).collect();
        format!("{} {} {}", line.agent, line.entry.name(), data.join("|"))
    };
    lines.iter().map(plain).collect()
}

/// It rings, and nobody answers.
fn silent() -> Phone {
    phone(&[(1000, Act::Ring)])
}

fn until(world: &mut World, second: u64) {
    world.run_until(common::at(second * 1000));
}

/// What the database keeps of callers who are called back.
fn rows(world: &World) -> Vec<(String, String)> {
    let ours = |(family, key, value)| (family == CALLBACKS).then_some((key, value));
    world.database_rows().into_iter().filter_map(ours).collect()
}

/// Another process begins at `second` in the place of `before`, which was killed, with what that one has left in the
/// database: `world` is the same site anew. How many callers it takes up, and how many rows it does not.
fn restart(before: &World, world: &mut World, second: u64) -> (usize, usize) {
    for (family, key, value) in before.database_rows() {
        world.database(&family, &key, &value);
    }
    until(world, second);
    apps::restore_callbacks(&world.shard)
}

/// Whether a process that is to stop gracefully may.
fn is_idle(world: &World) -> bool {
    world.shard.core.borrow().is_idle()
}

/// It is answered after four seconds, and hung up 16 seconds later.
fn talks() -> Phone {
    phone(&[(1000, Act::Ring), (4000, Act::Answer), (20_000, BYE)])
}

#[test]
fn who_is_called_back_keeps_the_place_and_is_called_when_a_member_has_answered() {
    let phones =
        [("6002", answers()), ("6009", phone(&[(1000, Act::Ring), (4000, Act::Answer), (9000, BYE)]))];
    let mut world = site(|_| (), "", &phones);
    call(&mut world, "1", &[(5_000, Act::Press('9'))]);
    until(&mut world, 2);
    call(&mut world, "1", &[(60_000, BYE)]);
    until(&mut world, 10);
    {
        let core = world.shard.core.borrow();
        let names: Vec<String> = core
            .queues
            .get("sales")
            .unwrap()
            .callers()
            .iter()
            .map(|caller| core.get(caller.channel).unwrap().name.to_string())
            .collect();
        assert!(names[0].starts_with("SIM/6009-") && names[1].starts_with("SIM/6001-"), "{names:?}");
    }
    call(&mut world, "2", &[]);
    world.run();
    at_rest(&world, "called back");
    assert_eq!(noted(&world), ["SUCCESS 1"]);
    let log = log(&world);
    assert_eq!(
        log[..6],
        [
            "NONE ENTERQUEUE |6001|1",
            "NONE ENTERQUEUE |6001|2",
            "NONE EXITWITHKEY 9|1|1|4",
            "NONE ENTERQUEUE |6001|1",
            "NONE CALLBACK SIM/6009|1|4",
            "SIM/6002 ADDMEMBER ",
        ]
    );
    // 9 s until there is a member, 3 s until it answers, 4 s until who is called back does; the wait counts from the first.
    assert_eq!(log[6..8], ["SIM/6002 CONNECT 16|3", "SIM/6002 COMPLETECALLER 16|5|1"]);
    let dials = |name: &str| {
        world
            .notices
            .iter()
            .filter(|notice| matches!(notice, Notice::DialBegin { dest, .. } if dest.name.starts_with(name)))
            .count()
    };
    assert_eq!(dials("SIM/6009-"), 1, "it is called once, by the member's answer");
    assert!(world.shard.core.borrow().callbacks.is_empty());
}

#[test]
fn priorities_go_before_places_and_a_place_is_kept_once() {
    let mut world = site(|_| (), ",l(30)", &[("6009", silent())]);
    call(&mut world, "1", &[(4_000, Act::Press('9'))]);
    until(&mut world, 1);
    call(&mut world, "3", &[(60_000, BYE)]);
    call(&mut world, "1", &[(6_000, Act::Press('9'))]);
    world.run();
    at_rest(&world, "twice");
    assert_eq!(noted(&world), ["SUCCESS 2", "EXISTS 3"]);
    assert!(log(&world).contains(&"NONE EXITWITHTIMEOUT 2|2|33".to_owned()), "{:?}", log(&world));
}

#[test]
fn an_attempt_that_comes_to_nothing_is_made_again_from_the_same_place() {
    let never = silent();
    let busy = phone(&[(1000, Act::Hangup(Cause::USER_BUSY))]);
    let gives_up = phone(&[(1000, Act::Ring), (3000, Act::Answer), (5000, BYE)]);
    for (name, who, member, options, status, attempts) in [
        ("nobody answers", never.clone(), answers(), ",a(3)r(20)t(5)", "NOANSWER", 3),
        ("busy", busy, answers(), ",a(2)r(20)", "BUSY", 2),
        ("the member hangs up", never.clone(), gives_up, ",a(2)r(20)", "CANCEL", 2),
        ("once is enough", never, answers(), ",a(1)t(5)", "NOANSWER", 1),
    ] {
        let mut world = site(|_| (), options, &[("6002", member), ("6009", who)]);
        call(&mut world, "1", &[(5_000, Act::Press('9'))]);
        until(&mut world, 10);
        call(&mut world, "2", &[]);
        world.run();
        at_rest(&world, name);
        let log = log(&world);
        let of = |event: &str| log.iter().filter(|line| line.contains(event)).count();
        assert_eq!(of("CALLBACK SIM/6009"), attempts, "{name}: {log:?}");
        assert_eq!(of(&format!("CALLBACK {status}")), attempts, "{name}: {log:?}");
        assert_eq!(of("CONNECT"), 0, "{name}: {log:?}");
        assert_eq!(of("ENTERQUEUE"), 1 + attempts, "{name}");
    }
}

#[test]
fn what_cannot_be_is_told() {
    type Change = fn(&mut Settings);
    let same: Change = |_| ();
    let absent = || refusing(Cause::SUBSCRIBER_ABSENT);
    let rows: [(&str, Change, Phone, &str, &str); 4] = [
        ("who never waited stands at the end", same, silent(), "4", "SUCCESS 1"),
        ("no such queue", same, silent(), "5", "NOQUEUE"),
        ("no members and joinempty", |own| own.join_empty = Absence::STRICT, silent(), "4", "JOINEMPTY "),
        ("there is no way to the number", same, absent(), "4", "UNAVAILABLE "),
    ];
    for (name, change, who, exten, expected) in rows {
        let mut world = site(change, ",l(5)", &[("6009", who)]);
        call(&mut world, exten, &[]);
        world.run();
        at_rest(&world, name);
        assert_eq!(noted(&world), [expected], "{name}");
        assert!(world.shard.core.borrow().callbacks.is_empty(), "{name}");
    }
    let mut world = site(|own| own.max_length = 1, "", &[("6009", silent())]);
    call(&mut world, "1", &[(20_000, BYE)]);
    until(&mut world, 2);
    call(&mut world, "4", &[]);
    world.run();
    at_rest(&world, "full");
    assert_eq!(noted(&world), ["FULL "]);
}

#[test]
fn whoever_hangs_up_the_channel_that_waits_ends_it() {
    let mut world = site(|_| (), "", &[("6009", silent())]);
    call(&mut world, "1", &[(5_000, Act::Press('9'))]);
    until(&mut world, 10);
    let waits = {
        let core = world.shard.core.borrow();
        core.queues.get("sales").unwrap().callers()[0].channel
    };
    world.shard.core.borrow_mut().request_hangup(waits, Cause::NORMAL_CLEARING);
    world.run();
    at_rest(&world, "hung up");
    assert_eq!(log(&world).last().unwrap(), "NONE ABANDON 1|1|9");
}

#[test]
fn a_restart_keeps_the_place_and_who_talks_is_called_no_more() {
    let phones = [("6002", answers()), ("6009", talks())];
    let mut killed = site(|_| (), "", &phones);
    call(&mut killed, "1", &[(5_000, Act::Press('9'))]);
    until(&mut killed, 10);
    assert_eq!((rows(&killed).len(), is_idle(&killed)), (1, true), "it waits");

    let mut next = site(|_| (), "", &phones);
    until(&mut next, 30);
    call(&mut next, "1", &[(60_000, BYE)]);
    assert_eq!(restart(&killed, &mut next, 32), (1, 0));
    assert!(!is_idle(&next), "somebody else waits, too");
    call(&mut next, "2", &[]);
    // The member answers at 35, who is called back at 39.
    until(&mut next, 37);
    assert_eq!((rows(&next).len(), is_idle(&next)), (1, false), "it rings");
    until(&mut next, 41);
    assert_eq!(rows(&next), [], "they talk");
    assert!(!next.shard.core.borrow().callbacks.is_empty(), "the place is theirs until they end");

    let mut third = site(|_| (), "", &phones);
    assert_eq!(restart(&next, &mut third, 50), (0, 0));
    next.run();
    at_rest(&next, "talked");
    let lines = log(&next);
    assert!(lines.contains(&"NONE CALLBACK SIM/6009|1|32".to_owned()), "{lines:?}");
    // The waits count from the first moment, though this process saw only the end of it.
    let served: Vec<&String> = lines.iter().filter(|line| line.contains("CONNECT")).collect();
    assert_eq!(served, ["SIM/6002 CONNECT 39|3", "SIM/6002 CONNECT 27|3"], "who came later is served later");
}

#[test]
fn a_restart_goes_on_after_the_attempts_that_were_made() {
    let silent = [("6002", answers()), ("6009", silent())];
    for (name, killed_at, restarted_at, attempts, again) in [
        // The member is there from 10 on, the attempt is over at 18, and the next one due at 38.
        ("while it rings", 15, 16, 3, "NONE CALLBACK SIM/6009|1|16"),
        ("in the pause", 20, 25, 2, "NONE CALLBACK SIM/6009|2|38"),
        ("over the pause's end", 20, 100, 2, "NONE CALLBACK SIM/6009|2|100"),
        ("in the second attempt", 42, 50, 2, "NONE CALLBACK SIM/6009|2|50"),
    ] {
        let mut killed = site(|_| (), ",a(3)r(20)t(5)", &silent);
        call(&mut killed, "1", &[(5_000, Act::Press('9'))]);
        until(&mut killed, 10);
        call(&mut killed, "2", &[]);
        until(&mut killed, killed_at);
        assert_eq!(rows(&killed).len(), 1, "{name}");
        let mut next = site(|_| (), "", &silent);
        assert_eq!(restart(&killed, &mut next, restarted_at), (1, 0), "{name}");
        call(&mut next, "2", &[]);
        next.run();
        at_rest(&next, name);
        let lines = log(&next);
        let of = |part: &str| lines.iter().filter(|line| line.contains(part)).count();
        assert_eq!(of("WITHDRAW"), attempts, "{name}: {lines:?}");
        let first = lines.iter().find(|line| line.contains("CALLBACK"));
        assert_eq!(first.map(String::as_str), Some(again), "{name}");
        assert_eq!(
            (rows(&next), next.shard.core.borrow().callbacks.is_empty()),
            (Vec::new(), true),
            "{name}"
        );
    }
}

#[test]
fn a_restart_after_the_end_calls_nobody() {
    let phones = [("6002", answers()), ("6009", talks())];
    let mut killed = site(|_| (), ",l(60)", &phones);
    call(&mut killed, "1", &[(5_000, Act::Press('9'))]);
    until(&mut killed, 10);
    for (name, second, expected) in [
        ("before it", 30, "NONE CALLBACK SIM/6009|1|30"),
        ("at it", 65, "NONE CALLBACK SIM/6009|EXPIRED|65"),
        ("long after it", 90_000, "NONE CALLBACK SIM/6009|EXPIRED|90000"),
    ] {
        let mut next = site(|_| (), "", &phones);
        assert_eq!(restart(&killed, &mut next, second), (1, 0), "{name}");
        next.run();
        at_rest(&next, name);
        assert_eq!(rows(&next), [], "{name}");
        assert!(log(&next).contains(&expected.to_owned()), "{name}: {:?}", log(&next));
    }
}

#[test]
fn who_is_told_that_it_is_kept_may_rely_on_the_disk() {
    for (name, moves_at, hangs_up_at, told, kept) in [
        ("at work", 0, 60, "SUCCESS 1", 1),
        ("it stands for a while", 8, 60, "SUCCESS 1", 1),
        ("it stands", 60, 70, "UNSAVED 1", 0),
        ("the caller does not wait for it", 8, 7, "", 1),
        ("nor does the disk come back", 60, 7, "", 0),
    ] {
        let mut world = site(|_| (), "", &[("6009", silent()), ("6002", answers())]);
        world.stop_disk(moves_at > 0);
        call(&mut world, "1", &[(5_000, Act::Press('9')), (hangs_up_at * 1000, BYE)]);
        until(&mut world, 6);
        if moves_at > 0 {
            assert_eq!(noted(&world), [""; 0], "{name}: nothing is told yet");
            assert_eq!(world.shard.core.borrow().queues.get("sales").unwrap().callers().len(), 0, "{name}");
        }
        // Nobody else has to wait for the disk.
        call(&mut world, "3", &[(1_000, BYE)]);
        until(&mut world, 7);
        assert!(log(&world).contains(&"NONE ABANDON 1|1|1".to_owned()), "{name}: {:?}", log(&world));
        until(&mut world, moves_at);
        world.stop_disk(false);
        until(&mut world, 61);
        let notes = noted(&world);
        assert_eq!(notes.first().map_or("", String::as_str), told, "{name}");
        assert_eq!(rows(&world).len(), kept, "{name}");
        assert_eq!(world.shard.core.borrow().callbacks.is_empty(), kept == 0, "{name}");
        let warned = warnings(&world);
        assert!(warned.is_empty(), "{name}: {warned:?}");
    }
}

#[test]
fn a_queue_that_lets_its_callers_go_when_nobody_is_there_keeps_places_all_the_same() {
    let empty = |own: &mut Settings| own.leave_when_empty = Absence::STRICT;
    let phones = [("6002", answers()), ("6009", talks())];
    let mut killed = site(empty, ",r(20)", &phones);
    call(&mut killed, "4", &[]);
    until(&mut killed, 30);
    assert_eq!(noted(&killed), ["SUCCESS 1"]);
    assert_eq!(
        log(&killed).iter().filter(|line| line.contains("EXITEMPTY")).count(),
        2,
        "{:?}",
        log(&killed)
    );

    // A queue that takes nobody at first, or is not there any more.
    for (name, there) in [("it takes nobody", true), ("it is gone", false)] {
        let strict = |own: &mut Settings| own.join_empty = Absence::STRICT;
        let mut next = site(strict, "", &phones);
        if !there {
            let none = Config::default();
            next.shard.core.borrow_mut().with_queues(|queues, now, out| queues.configure(&none, now, out));
        }
        assert_eq!(restart(&killed, &mut next, 35), (1, 0), "{name}");
        until(&mut next, 50);
        assert_eq!((rows(&next).len(), is_idle(&next)), (1, true), "{name}");
        call(&mut next, "2", &[]);
        next.run();
        at_rest(&next, name);
        assert_eq!(rows(&next), [], "{name}");
        let ends = if there { "COMPLETE" } else { "CALLBACK SIM/6009|EXPIRED" };
        assert!(log(&next).last().is_some_and(|line| line.contains(ends)), "{name}: {:?}", log(&next));
    }
}

/// A row for a caller of `sales` who is to be called at once.
fn row(target: &str, ends: i64) -> String {
    format!("target={target};queue=sales;since=5;attempts=2;attempt=1;due=0;ends={ends};pause=600;ring=5")
}

/// As late as a row can say.
const LAST: i64 = i64::MAX;

#[test]
fn rows_that_somebody_else_has_written_do_no_harm() {
    let good = || row("SIM/6009", LAST);
    let long = format!("{};name={}", good(), "x".repeat(20_000));
    let change = |from: &str, to: &str| good().replace(from, to);
    for (name, key, value, is_read) in [
        ("ours", "7", good(), true),
        ("nothing", "7", String::new(), false),
        ("garbage", "7", "\u{0}%%;==;\u{fffd}%é;;".to_owned(), false),
        ("too long", "7", long, false),
        ("a key that is no number", "seven", good(), false),
        ("a number written otherwise", "007", good(), false),
        ("a number with a sign", "+7", good(), false),
        ("the last number that there is", "18446744073709551615", good(), false),
        ("no number", "0", good(), false),
        ("a family below", "7/8", good(), false),
        ("the end of time", "9007199254740992", good(), true),
        ("times that overflow", "7", change("since=5", "since=-9223372036854775808"), true),
        ("due never", "7", change("due=0", "due=9223372036854775807"), true),
        ("pauses of a century", "7", change("pause=600", "pause=4294967295"), true),
        ("numbers that are none", "7", change("pause=600", "pause=99999999999999999999"), false),
        (
            "attempts without end",
            "7",
            change("attempts=2;attempt=1", "attempts=4294967295;attempt=4294967295"),
            true,
        ),
        ("no such technology", "7", change("SIM/6009", "NONE/6009"), true),
        ("no such queue", "7", change("sales", "elsewhere"), true),
        ("skills that are none", "7", format!("{};skills=&&==;rule=%00", good()), true),
    ] {
        let mut world = site(|_| (), "", &[("6002", answers()), ("6009", silent())]);
        world.database(CALLBACKS, key, &value);
        let (read, ignored) = apps::restore_callbacks(&world.shard);
        assert_eq!((read, ignored), (usize::from(is_read), usize::from(!is_read)), "{name}");
        call(&mut world, "2", &[]);
        world.run();
        at_rest(&world, name);
        assert!(warnings(&world).is_empty(), "{name}: {:?}", warnings(&world));
        // What cannot be read is left for whoever has to look at it.
        assert_eq!(rows(&world).len(), usize::from(!is_read), "{name}");
        assert!(log(&world).len() < 1_000, "{name}");
        // Another is taken all the same, by a number of its own.
        call(&mut world, "4", &[]);
        let then = world.shard.core.borrow().now;
        world.run_until(then + Duration::from_secs(1));
        assert_eq!(noted(&world), ["SUCCESS 1"], "{name}");
        assert!(rows(&world).iter().any(|(other, _)| other != key || is_read), "{name}");
    }
}

#[test]
fn rows_that_are_too_many_or_twice_the_same_are_not_followed() {
    const MORE: usize = 500;
    let mut world = site(|_| (), "", &[("6009", silent())]);
    for n in 0..CALLBACKS_MAX + MORE {
        world.phone(&n.to_string(), silent());
        world.database(CALLBACKS, &(n + 1).to_string(), &row(&format!("SIM/{n}"), LAST));
    }
    assert_eq!(apps::restore_callbacks(&world.shard), (CALLBACKS_MAX, MORE));
    until(&mut world, 60);
    let standing = world.shard.core.borrow().queues.get("sales").unwrap().callers().len();
    assert_eq!((standing, rows(&world).len()), (CALLBACKS_MAX, CALLBACKS_MAX + MORE));
    call(&mut world, "4", &[]);
    until(&mut world, 61);
    assert_eq!(noted(&world), ["FULL "]);

    let mut world = site(|_| (), "", &[("6009", silent())]);
    for key in 1..=5 {
        world.database(CALLBACKS, &key.to_string(), &row(["SIM/6009", "sim/6009"][key % 2], LAST));
    }
    assert_eq!(apps::restore_callbacks(&world.shard), (1, 4));
    until(&mut world, 1);
    assert_eq!(rows(&world).len(), 1, "what says the same is of no use");
}
