//! Queue: callers who wait, members who answer, and what is written down of it.

mod common;

use std::time::Duration;

use base::Cause;
use call::{Level, Notice};
use common::{BYE, at_rest, call, in_order, lines, noted, phone, refusing, steps, talks, world};
use queue::{Config, General, NewMember, QueueConfig, Settings, SkillChange, Skills, Strategy};
use sim::{Act, Phone, World};

/// A queue `sales` in which the phones ring one after the other.
fn sales(members: &[&str], change: impl FnOnce(&mut Settings)) -> Config {
    let mut settings = Settings {
        strategy: Strategy::Linear,
        timeout: Duration::from_secs(10),
        ring_in_use: false,
        ..Settings::default()
    };
    change(&mut settings);
    let members =
        members.iter().map(|interface| NewMember { interface: (*interface).into(), ..NewMember::default() });
    let queue = QueueConfig { name: "sales".into(), settings, members: members.collect(), is_row: false };
    Config { queues: vec![queue], ..Config::default() }
}

fn site(dialplan: &str, config: &Config, phones: &[(&str, Phone)]) -> World {
    let mut world = world(&format!("[default]\n{dialplan}\n"));
    world.watch();
    for (name, phone) in phones {
        world.phone(name, phone.clone());
    }
    world.shard.core.borrow_mut().with_queues(|queues, now, out| queues.configure(config, now, out));
    world
}

fn queued(dialplan: &str, config: &Config, phones: &[(&str, Phone)], caller: &[(u64, Act)]) -> World {
    let mut world = site(dialplan, config, phones);
    call(&mut world, "1", caller);
    world.run();
    at_rest(&world, dialplan);
    world
}

/// The log without times and UNIQUEIDs.
fn log(world: &World) -> Vec<String> {
    let lines = world.shard.core.borrow().queue_lines.clone();
    let plain = |line: &queue::Line| {
        let data = line.entry.data();
        let data: Vec<&str> = data.iter().map(String::as_str).filter(|data| !data.contains('.')).collect();
        format!("{} {} {}", line.agent, line.entry.name(), data.join("|"))
    };
    lines.iter().map(plain).collect()
}

fn queue_events(world: &World) -> Vec<&'static str> {
    use queue::{AgentStep, Event};
    let name = |notice: &Notice| match notice {
        Notice::Queue { event, .. } => match &**event {
            Event::CallerJoin { .. } => Some("join"),
            Event::CallerLeave { .. } => Some("leave"),
            Event::CallerAbandon { .. } => Some("abandon"),
            Event::Member { .. } => None,
            Event::Agent { step, .. } => Some(match step {
                AgentStep::Called => "called",
                AgentStep::NoAnswer { .. } => "no answer",
                AgentStep::Connect { .. } => "connect",
                AgentStep::Complete { .. } => "complete",
                AgentStep::Dump => "dump",
            }),
        },
        _ => None,
    };
    world.notices.iter().filter_map(name).collect()
}

const GO_ON: &str =
    "\n same => n,NoOp(${QUEUESTATUS}/${ABANDONED})\nexten => h,1,NoOp(h ${QUEUESTATUS}/${ABANDONED})";

#[test]
fn a_caller_hears_music_until_a_member_answers_and_then_they_talk() {
    let dialplan = format!("exten => 1,1,Answer()\n same => n,Queue(sales,c){GO_ON}");
    let world = queued(&dialplan, &sales(&["SIM/6002"], |_| ()), &[("6002", talks())], &[]);
    assert_eq!(noted(&world), ["CONTINUE/", "h CONTINUE/"]);
    assert_eq!(
        log(&world),
        ["NONE ENTERQUEUE |6001|1", "SIM/6002 CONNECT 3|3", "SIM/6002 COMPLETEAGENT 3|5|1"]
    );
    assert_eq!(queue_events(&world), ["join", "called", "leave", "connect", "complete"]);
    let began = world.notices.iter().any(|notice| matches!(notice, Notice::MusicOnHoldStart { .. }));
    let ended = world.notices.iter().any(|notice| matches!(notice, Notice::MusicOnHoldStop(_)));
    assert!(began && ended, "{:?}", steps(&world));
    assert_eq!(world.cdrs[0].dst_channel, "SIM/6002-00000001");
}

#[test]
fn the_record_and_the_log_name_who_the_queue_says() {
    for (name, update_cdr, hides, record, entered) in [
        ("the member's channel", false, false, "SIM/6002-00000001", "NONE ENTERQUEUE |6001|1|Bea"),
        ("the member", true, false, "Anna", "NONE ENTERQUEUE |6001|1|Bea"),
        ("a caller who hides", true, true, "Anna", "NONE ENTERQUEUE ||1|"),
    ] {
        let mut config = sales(&["SIM/6002"], |settings| settings.log_restricted = false);
        config.general = General { update_cdr, log_caller_name: true, ..General::default() };
        config.queues[0].members[0].name = "Anna".into();
        let hide = if hides { "\n same => n,Set(CALLERID(pres)=prohib)" } else { "" };
        let dialplan = format!(
            "exten => 1,1,Set(CALLERID(name)=Bea){hide}\n same => n,Queue(sales,c)\n same => n,Dial(SIM/6003)"
        );
        let world = queued(&dialplan, &config, &[("6002", talks()), ("6003", talks())], &[]);
        assert_eq!(log(&world)[0], entered, "{name}");
        let parties: Vec<&str> = world.cdrs.iter().map(|cdr| cdr.dst_channel.as_str()).collect();
        assert_eq!(parties, [record, "SIM/6003-00000002"], "{name}");
    }
}

#[test]
fn who_does_not_answer_refuses_or_is_not_there_costs_the_caller_nothing_but_time() {
    let members = ["SIM/6002", "SIM/6003", "SIM/6004", "NO/1", "SIM/6005"];
    let phones = [
        ("6002", phone(&[(1000, Act::Ring)])),
        ("6003", phone(&[(500, Act::Hangup(Cause::USER_BUSY))])),
        ("6004", refusing(Cause::SUBSCRIBER_ABSENT)),
        ("6005", talks()),
    ];
    let world = queued("exten => 1,1,Queue(sales)", &sales(&members, |_| ()), &phones, &[]);
    assert_eq!(
        log(&world),
        [
            "NONE ENTERQUEUE |6001|1",
            "SIM/6002 RINGNOANSWER 10000",
            "SIM/6003 RINGNOANSWER 500",
            "SIM/6005 CONNECT 18|3",
            "SIM/6005 COMPLETEAGENT 18|5|1",
        ]
    );
    assert_eq!(
        queue_events(&world),
        ["join", "called", "no answer", "called", "no answer", "called", "leave", "connect", "complete"]
    );
}

#[test]
fn every_way_out_has_its_status_and_its_line() {
    let go = |queue: &str| format!("exten => 1,1,Answer()\n same => n,{queue}{GO_ON}");
    let rings = [("6002", phone(&[(1000, Act::Ring)]))];
    let one = |change: fn(&mut Settings)| sales(&["SIM/6002"], change);
    type Row<'a> = (&'a str, String, Config, Vec<(u64, Act)>, Vec<&'a str>, &'a str);
    let rows: Vec<Row<'_>> = vec![
        (
            "timeout",
            go("Queue(sales,,,,7)"),
            one(|_| ()),
            vec![(20_000, BYE)],
            vec!["TIMEOUT/TRUE", "h TIMEOUT/TRUE"],
            "NONE EXITWITHTIMEOUT 1|1|7",
        ),
        (
            "n, all were tried",
            go("Queue(sales,n)"),
            one(|_| ()),
            vec![(40_000, BYE)],
            vec!["TIMEOUT/TRUE", "h TIMEOUT/TRUE"],
            "NONE EXITWITHTIMEOUT 1|1|10",
        ),
        (
            "hung up",
            go("Queue(sales)"),
            one(|_| ()),
            vec![(4_000, BYE)],
            vec!["h /TRUE"],
            "NONE ABANDON 1|1|3",
        ),
        (
            "nobody may be called",
            go("Queue(sales)"),
            sales(&[], |own| own.join_empty = queue::Absence::STRICT),
            vec![(4_000, BYE)],
            vec!["JOINEMPTY/", "h JOINEMPTY/"],
            "",
        ),
        ("no such queue", go("Queue(support)"), one(|_| ()), vec![(4_000, BYE)], vec!["/", "h /"], ""),
        (
            "a digit leads out",
            format!("{}\n[out]\nexten => 7,1,NoOp(out ${{QUEUESTATUS}})", go("Queue(sales)")),
            one(|own| own.handling.context = "out".into()),
            vec![(2_000, Act::Press('5')), (4_000, Act::Press('7')), (9_000, BYE)],
            vec!["out "],
            "NONE EXITWITHKEY 7|1|1|3",
        ),
    ];
    for (name, dialplan, config, caller, expected, line) in rows {
        let world = queued(&dialplan, &config, &rings, &caller);
        assert_eq!(noted(&world), expected, "{name}");
        assert_eq!(log(&world).last().map_or("", String::as_str), line, "{name}");
    }
}

#[test]
fn the_caller_hears_its_place_and_the_music_goes_on_after_it() {
    let config = sales(&[], |own| own.announcing.every = Duration::from_secs(30));
    let dialplan = "exten => 1,1,Answer()\n same => n,Queue(sales)";
    let world = queued(dialplan, &config, &[], &[(20_000, BYE)]);
    let music =
        world.notices.iter().filter(|notice| matches!(notice, Notice::MusicOnHoldStart { .. })).count();
    assert_eq!(music, 2, "before and after");
    let heard = world.transcript();
    for sound in ["queue-youarenext", "queue-thankyou"] {
        assert!(heard.iter().any(|line| line.contains(sound)), "{sound}: {heard:#?}");
    }
}

#[test]
fn variables_tell_of_queue_member_and_wait_and_the_member_hears_what_is_for_it() {
    let config = sales(&["SIM/6002"], |own| {
        own.handling.set_interface_var = true;
        own.handling.set_queue_var = true;
        own.handling.set_entry_var = true;
        own.handling.announce = "beep".into();
    });
    let dialplan = "exten => 1,1,Queue(sales,c)\n \
         same => n,NoOp(${MEMBERINTERFACE} ${MEMBERCALLS} ${QEHOLDTIME} ${QEORIGINALPOS} ${QUEUENAME} ${QUEUECOMPLETED})";
    let world = queued(dialplan, &config, &[("6002", talks())], &[]);
    assert_eq!(noted(&world).first().map(String::as_str), Some("SIM/6002 0 4 1 sales 1"));
    in_order(&world, &[]);
    assert!(world.transcript().iter().any(|line| line.contains("beep")), "{:#?}", world.transcript());
}

#[test]
fn what_runs_on_a_member_knows_the_member_the_wait_and_the_queue() {
    let known = "${CHANNEL} ${MEMBERNAME} ${QEORIGINALPOS} ${QUEUENAME}";
    for (name, queue, gosub, macro_name) in [
        ("membergosub", "Queue(sales,c)", "member", ""),
        ("gosub of Queue() instead", "Queue(sales,c,,,,,member^s^1)", "none", ""),
        ("membermacro", "Queue(sales,c)", "", "member"),
        ("macro of Queue(), as Asterisk 20 has it", "Queue(sales,c,,,,,member,,,)", "", ""),
    ] {
        let config = sales(&["SIM/6002"], |own| {
            own.handling.set_interface_var = true;
            own.handling.set_queue_var = true;
            own.handling.set_entry_var = true;
            own.handling.member_gosub = gosub.into();
            own.handling.member_macro = macro_name.into();
        });
        let dialplan = format!(
            "exten => 1,1,{queue}\n same => n,NoOp(${{QUEUESTATUS}})\n\
             [member]\nexten => s,1,NoOp({known})\n same => n,Return()\n[macro-member]\nexten => s,1,NoOp({known})"
        );
        let world = queued(&dialplan, &config, &[("6002", talks())], &[]);
        assert_eq!(noted(&world), ["SIM/6002-00000001 SIM/6002 1 sales", "CONTINUE"], "{name}");
    }
}

#[test]
fn what_is_heard_before_a_conversation_is_heard_by_whom_it_is_for() {
    let config = sales(&["SIM/6002"], |own| {
        own.handling.announce = "for-member".into();
        own.handling.caller_announce = "for-caller".into();
        own.handling.member_delay = Duration::from_secs(2);
        own.handling.report_hold = true;
        own.announcing.round_seconds = 10;
    });
    // Its phone rings for twelve seconds, which are said as ten.
    let slow = phone(&[(500, Act::Ring), (9_900, Act::Answer), (40_000, BYE)]);
    let world = queued("exten => 1,1,Answer()\n same => n,Queue(sales,c)", &config, &[("6002", slow)], &[]);
    in_order(
        &world,
        &[
            "11920 #2 hears queue-reporthold",
            "12920 #2 hears digits/10",
            "13920 #2 hears queue-seconds",
            "14920 #2 hears for-member",
            "15920 #1 hears for-caller",
        ],
    );
}

#[test]
fn a_member_who_is_gone_before_the_conversation_leaves_no_recording_behind() {
    for (name, queue, sound, recordings) in [
        ("while the caller hears what is for it", "Queue(sales)", "long", 0),
        ("while a script runs", "Queue(sales,,,,,/s)", "", 1),
    ] {
        let config = sales(&["SIM/6002"], |own| {
            own.handling.monitor_format = "wav".into();
            own.handling.mix_monitor = true;
            own.handling.caller_announce = sound.into();
        });
        let gone = phone(&[(1000, Act::Answer), (1500, BYE)]);
        let mut world = site(&format!("exten => 1,1,{queue}"), &config, &[("6002", gone)]);
        world.script("/s", sim::Script::of(&["STREAM FILE long \"\""]));
        world.clip("long", Duration::from_secs(4));
        call(&mut world, "1", &[(8_000, BYE)]);
        world.run();
        at_rest(&world, name);
        assert!(log(&world).iter().any(|line| line.contains("AGENTDUMP")), "{name}: {:?}", log(&world));
        let (begun, ended) = (lines(&world, "monitored by"), lines(&world, "no more"));
        let ended = ended.iter().filter(|line| line.contains("monitored by")).count();
        assert_eq!(
            (begun.len() - ended, ended),
            (recordings, recordings),
            "{name}: {:#?}",
            world.transcript()
        );
    }
}

/// Every option letter of Queue(): what the dialplan sees of it, and what is heard and told.
#[test]
fn each_option_does_what_it_says() {
    let slow = || phone(&[(500, Act::Ring), (3000, Act::Answer), (9000, BYE)]);
    let stays = || phone(&[(500, Act::Ring), (3000, Act::Answer)]);
    let presses = |key: char| phone(&[(3000, Act::Answer), (5000, Act::Press(key))]);
    let forwards = || phone(&[(1000, Act::Forward("SIM/6003".to_owned()))]);
    let refers = "exten => 5,1,NoOp(goes on ${CHANNEL})";
    let sub = "[sub]\nexten => s,1,NoOp(${ARG1} ${CHANNEL})\n same => n,Return()";
    type Row<'a> = (&'a str, &'a str, Phone, u64, &'a [&'a str], &'a str, usize);
    let rows: Vec<Row<'_>> = vec![
        ("b", "b(sub^s^1(x))", slow(), 30_000, &["x SIM/6002-00000001", "h /"], "", 0),
        ("b that hangs up takes the phone away", "b(none^s^1(x))", slow(), 30_000, &["h /"], "", 0),
        ("B", "B(sub^s^1(y))", slow(), 30_000, &["y SIM/6001-00000000", "h /"], "", 0),
        ("c goes on when the member hangs up", "c", slow(), 30_000, &["CONTINUE/", "h CONTINUE/"], "", 0),
        ("without c it does not", "", slow(), 30_000, &["h /"], "", 0),
        (
            "C tells the member who stops ringing",
            "C",
            phone(&[(500, Act::Ring)]),
            2000,
            &["h /TRUE"],
            "ends with 26",
            1,
        ),
        ("without C it does not", "", phone(&[(500, Act::Ring)]), 2000, &["h /TRUE"], "ends with 26", 0),
        (
            "F sends the member on",
            "F(default^5^1)",
            stays(),
            6000,
            &["goes on SIM/6002-00000001", "h /", "h /"],
            "",
            0,
        ),
        (
            "h lets the member hang up by a key",
            "hc",
            presses('*'),
            30_000,
            &["CONTINUE/", "h CONTINUE/"],
            "",
            0,
        ),
        (
            "without h the key is the caller's to hear",
            "c",
            presses('*'),
            8000,
            &["h /"],
            "#1 is sent digit *",
            1,
        ),
        ("i lets no phone forward", "i", forwards(), 8000, &["h /TRUE"], "SIM/6003", 0),
        ("without i it may", "", forwards(), 8000, &["h /"], "SIM/6003-00000002 is called", 1),
        ("m names the music", "m(jazz)", slow(), 30_000, &["h /"], "#1 hears music jazz", 1),
        ("r rings instead", "r", slow(), 30_000, &["h /"], "hears music", 0),
        ("R rings while a phone does", "R", slow(), 30_000, &["h /"], "#1 hears tone ring", 1),
        ("I shows nobody", "I", slow(), 30_000, &["h /"], "is shown", 0),
        ("without I they see each other", "", slow(), 30_000, &["h /"], "SIM/6001-00000000 is shown 6002", 1),
    ];
    for (name, options, member, gives_up, expected, heard, times) in rows {
        let dialplan =
            format!("exten => 1,1,Answer()\n same => n,Queue(sales,{options}){GO_ON}\n{refers}\n{sub}");
        let phones = [("6002", member), ("6003", phone(&[(1000, Act::Answer)]))];
        let world = queued(&dialplan, &sales(&["SIM/6002"], |_| ()), &phones, &[(gives_up, BYE)]);
        let mut seen = noted(&world);
        seen.sort();
        let mut expected = expected.to_vec();
        expected.sort_unstable();
        assert_eq!(seen, expected, "{name}: {:#?}", world.transcript());
        if !heard.is_empty() {
            assert_eq!(lines(&world, heard).len(), times, "{name}: {:#?}", world.transcript());
        }
    }
}

#[test]
fn arguments_of_queue_name_the_rule_and_the_place_and_a_number_of_several_digits_leads_out() {
    // The rule lowers what penalty is admitted after five seconds: the dear member rings then.
    let mut config = sales(&[], |_| ());
    let dear = NewMember { interface: "SIM/6002".into(), penalty: 5, ..NewMember::default() };
    config.queues[0].members.push(dear);
    let change = queue::PenaltyChange::parse("5,10").unwrap();
    config.rules = vec![("later".into(), vec![change])];
    let dialplan = "exten => 1,1,Set(QUEUE_MAX_PENALTY=1)\n same => n,Queue(sales,c,,,,,,later)";
    let world = queued(dialplan, &config, &[("6002", talks())], &[(20_000, BYE)]);
    assert_eq!(lines(&world, "SIM/6002-00000001 is called"), ["5000 SIM/6002-00000001 is called"]);

    let mut world = site(
        "exten => 1,1,Queue(sales)\nexten => 2,1,Queue(sales,,,,,,,,1)\n same => n,Hangup()",
        &sales(&[], |_| ()),
        &[],
    );
    for exten in ["1", "1", "2"] {
        call(&mut world, exten, &[(9_000, BYE)]);
    }
    world.run();
    let places: Vec<String> = log(&world).into_iter().filter(|line| line.contains("ENTERQUEUE")).collect();
    let places: Vec<&str> = places.iter().filter_map(|line| line.rsplit('|').next()).collect();
    assert_eq!(places, ["1", "2", "1"]);

    let out = "exten => 1,1,Answer()\n same => n,Queue(sales)\n[out]\nexten => 123,1,NoOp(out ${EXTEN})\nexten => 9,1,NoOp(nine)";
    let config = sales(&[], |own| own.handling.context = "out".into());
    let keys = [(2_000, Act::Press('1')), (2_500, Act::Press('2')), (3_000, Act::Press('3')), (9_000, BYE)];
    assert_eq!(noted(&queued(out, &config, &[], &keys)), ["out 123"]);
    let keys = [(2_000, Act::Press('1')), (2_500, Act::Press('9')), (3_000, Act::Press('9')), (9_000, BYE)];
    assert_eq!(noted(&queued(out, &config, &[], &keys)), ["nine"], "what can lead nowhere is forgotten");
}

#[test]
fn members_come_and_go_by_the_dialplan_and_functions_see_them() {
    let dialplan = "\
exten => 1,1,AddQueueMember(sales,SIM/6009,3,,Bea,Custom:bea,20)
 same => n,NoOp(${AQMSTATUS} ${QUEUE_MEMBER(sales,count)} ${QUEUE_MEMBER_LIST(sales)} ${QUEUE_MEMBER_PENALTY(sales,SIM/6009)})
 same => n,AddQueueMember(sales,SIM/6009)
 same => n,NoOp(${AQMSTATUS})
 same => n,AddQueueMember(nowhere)
 same => n,NoOp(${AQMSTATUS} ${QUEUE_EXISTS(sales)}${QUEUE_EXISTS(nowhere)} ${QUEUE_WAITING_COUNT(sales)})
 same => n,PauseQueueMember(,SIM/6009,,lunch)
 same => n,NoOp(${PQMSTATUS} ${QUEUE_MEMBER(sales,paused,SIM/6009)} ${QUEUE_MEMBER(sales,ready)})
 same => n,UnpauseQueueMember(sales,SIM/6009)
 same => n,NoOp(${UPQMSTATUS} ${QUEUE_MEMBER(sales,paused,SIM/6009)})
 same => n,Set(QUEUE_MEMBER(sales,penalty,SIM/6009)=7)
 same => n,NoOp(${QUEUE_MEMBER(sales,penalty,SIM/6009)} ${QUEUE_MEMBER(sales,name,SIM/6009)})
 same => n,Set(QUEUE_MEMBER(,skills,SIM/6009)=German=3&sales)
 same => n,NoOp(${QUEUE_MEMBER(sales,skills,SIM/6009)})
 same => n,RemoveQueueMember(sales,SIM/6009)
 same => n,NoOp(${RQMSTATUS})
 same => n,RemoveQueueMember(sales,SIM/6002)
 same => n,NoOp(${RQMSTATUS} ${QUEUE_VARIABLES(sales)} ${QUEUESTRATEGY})
 same => n,QueueLog(sales,7.1,Bea,DID,1234|5)";
    let world = queued(dialplan, &sales(&["SIM/6002"], |_| ()), &[], &[]);
    assert_eq!(
        noted(&world),
        [
            "ADDED 2 SIM/6002,SIM/6009 3",
            "MEMBERALREADY",
            "NOSUCHQUEUE 10 0",
            "PAUSED 1 0",
            "UNPAUSED 0",
            "7 Bea",
            "german=3&sales=1",
            "REMOVED",
            "NOTDYNAMIC -1 ",
        ]
    );
    assert_eq!(
        log(&world),
        [
            "SIM/6009 ADDMEMBER ",
            "Bea PAUSE lunch",
            "Bea PAUSEALL lunch",
            "Bea UNPAUSE ",
            "SIM/6009 PENALTY 7",
            "SIM/6009 SKILLS german=3&sales=1",
            "SIM/6009 REMOVEMEMBER ",
            "Bea DID 1234|5",
        ]
    );
}

#[test]
fn a_caller_who_needs_a_skill_gets_who_has_it_and_the_rule_lowers_what_is_needed() {
    let mut config = sales(&["SIM/6002", "SIM/6003"], |own| own.default_rule = "less".into());
    config.queues[0].members[1].skills = Skills::parse("german=2").unwrap();
    config.skill_rules = vec![("less".to_owned(), vec![SkillChange::parse("20,german=-1").unwrap()])];
    for (needs, agent, waited, left) in [
        ("", "SIM/6002", 0..20, "needed "),
        ("german=2", "SIM/6003", 0..20, "needed german=2"),
        ("german=3", "SIM/6003", 20..40, "needed german=2"),
        ("very good", "SIM/6002", 0..20, "needed very good"),
    ] {
        let dialplan = format!(
            "exten => 1,1,Set(QUEUE_SKILLS={needs})\n same => n,Queue(sales,c)\n same => n,NoOp(needed ${{QUEUE_SKILLS}})"
        );
        let world = queued(&dialplan, &config, &[("6002", talks()), ("6003", talks())], &[]);
        let lines = world.shard.core.borrow().queue_lines.clone();
        let connected = lines.iter().find_map(|line| match line.entry {
            queue::Entry::Connect { hold, .. } => Some((line.agent.to_string(), hold)),
            _ => None,
        });
        let (who, hold) = connected.expect("somebody answers");
        assert!(who == agent && waited.contains(&hold), "{needs}: {who} after {hold} s");
        assert_eq!(noted(&world).concat(), left, "{needs}");
    }
}

#[test]
fn a_call_that_a_member_placed_itself_counts_when_the_dialplan_says_so() {
    let dialplan = "\
exten => 1,1,QueueUpdate(sales,${UNIQUEID},SIM/6002,ANSWER,40,5|12345)
 same => n,NoOp(${QUEUEUPDATESTATUS} ${QUEUE_MEMBER(sales,calls,SIM/6002)} ${QUEUE_MEMBER(sales,ready)})
 same => n,QueueUpdate(sales,${UNIQUEID},SIM/6002,BUSY,0)
 same => n,NoOp(${QUEUEUPDATESTATUS} ${QUEUE_MEMBER(sales,calls,SIM/6002)} ${QUEUE_VARIABLES(sales)}${QUEUETALKTIME} ${QUEUE_ESTIMATE(sales)})
 same => n,QueueUpdate(nowhere,1.1,x,ANSWER,1)
 same => n,NoOp(${QUEUEUPDATESTATUS})
 same => n,QueueUpdate(sales)
 same => n,NoOp(${QUEUEUPDATESTATUS})";
    let config = sales(&["SIM/6002"], |settings| {
        settings.wrapup = Duration::from_secs(10);
        settings.handling.set_queue_var = true;
    });
    let world = queued(dialplan, &config, &[], &[]);
    assert_eq!(noted(&world), ["UPDATED 1 0", "UPDATED 1 010 0", "NOQUEUE", "ERROR"]);
    assert_eq!(log(&world), ["SIM/6002 OUTCALL ANSWER|40|5|12345", "SIM/6002 OUTCALL BUSY|0|"]);
}

#[test]
fn two_callers_are_served_in_turn_and_a_panic_loses_nobody_else() {
    let config = sales(&["SIM/6002"], |_| ());
    let mut world = site("exten => 1,1,Queue(sales)", &config, &[("6002", talks())]);
    let first = call(&mut world, "1", &[]);
    call(&mut world, "1", &[]);
    let now = world.shard.core.borrow().now;
    world.shard.run(now);
    assert!(world.shard.inject_panic(first));
    world.run();
    at_rest(&world, "panic");
    let log = log(&world);
    assert_eq!(log.iter().filter(|line| line.contains("ABANDON")).count(), 1, "{log:?}");
    assert_eq!(log.iter().filter(|line| line.contains("COMPLETEAGENT")).count(), 1, "{log:?}");
    assert!(world.log(Level::Error).iter().any(|line| line.contains("panicked")));
}

#[test]
fn music_for_answered_callers_is_not_heard_before_the_answer() {
    for (answered_only, expected) in [(false, 2), (true, 1)] {
        let dialplan = "exten => 1,1,StartMusicOnHold()\n same => n,Wait(1)\n same => n,StopMusicOnHold()\n \
             same => n,Answer()\n same => n,StartMusicOnHold()\n same => n,Wait(1)\n";
        let mut world = site(dialplan, &sales(&[], |_| ()), &[]);
        if answered_only {
            let mut core = world.shard.core.borrow_mut();
            let settings = std::rc::Rc::make_mut(&mut core.settings);
            settings.music_when_answered = std::rc::Rc::new(["default".to_owned()].into());
        }
        call(&mut world, "1", &[]);
        world.run();
        at_rest(&world, dialplan);
        let began = world.notices.iter().filter(|notice| matches!(notice, Notice::MusicOnHoldStart { .. }));
        assert_eq!(began.count(), expected, "{answered_only}");
    }
}
