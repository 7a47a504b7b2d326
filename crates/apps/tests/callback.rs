//! QueueCallback: callers who hang up and keep their place.

mod common;

use std::time::Duration;

use base::Cause;
use call::Notice;
use common::{BYE, answers, at_rest, call, noted, phone, refusing, world};
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
