//! Agents: logging in, being given calls, and everything that keeps the two apart.

mod common;

use std::rc::Rc;
use std::time::Duration;

use base::{Cause, ChannelId};
use call::{AgentChange, AgentRules, DeviceState, Notice};
use common::{BYE, at, at_rest, in_order, lines, location, noted, world};
use sim::{Act, World};

const PLAN: &str = "[default]\n\
    exten => login,1,AgentLogin(1001,s)\n same => n,NoOp(login ${AGENT_STATUS})\n\
    exten => again,1,AgentLogin(1001)\n same => n,NoOp(again ${AGENT_STATUS})\n\
    exten => nobody,1,AgentLogin(77)\n same => n,NoOp(nobody ${AGENT_STATUS})\n\
    exten => ask,1,AgentRequest(1001)\n same => n,NoOp(asked ${AGENT_STATUS} ${AGENT(1001)})\n\
    exten => 300,1,NoOp()\n\
    exten => unknown,1,AgentRequest(77)\n same => n,NoOp(asked ${AGENT_STATUS})\n";

fn site(change: impl FnOnce(&mut AgentRules)) -> World {
    let mut world = world(PLAN);
    world.watch();
    let mut rules = AgentRules { full_name: "Ann".to_owned(), ..AgentRules::default() };
    change(&mut rules);
    world.shard.core.borrow_mut().configure_agents([("1001".to_owned(), Rc::new(rules))]);
    world
}

/// `phone` calls `exten` at this moment of the world; `acts` count from there.
fn calls(world: &mut World, phone: &str, exten: &str, acts: &[(u64, Act)]) -> ChannelId {
    let id = world.incoming(phone, &format!("<{phone}>"), location("default", exten), acts);
    let shard = world.shard.clone();
    assert!(apps::pbx::start(&shard, id, location("default", exten)));
    id
}

fn device(world: &World) -> DeviceState {
    apps::hints::device_state(&world.shard, "Agent:1001")
}

fn changes(world: &World) -> Vec<AgentChange> {
    let of = |notice: &Notice| match notice {
        Notice::Agent { change, .. } => Some(*change),
        _ => None,
    };
    world.notices.iter().filter_map(of).collect()
}

#[test]
fn an_agent_waits_with_music_talks_and_waits_again() {
    let mut world = site(|_| {});
    assert_eq!(device(&world), DeviceState::Unavailable);
    calls(&mut world, "7001", "login", &[(60_000, BYE)]);
    world.run_until(at(5000));
    assert_eq!(device(&world), DeviceState::NotInUse);
    calls(&mut world, "6001", "ask", &[(10_000, BYE)]);
    world.run_until(at(10_000));
    assert_eq!((device(&world), world.joins()), (DeviceState::InUse, 1));
    let talk = world.shard.core.borrow().agents.get("1001").and_then(call::Agent::talk);
    assert!(talk.is_some());
    world.run_until(at(20_000));
    assert_eq!((device(&world), world.joins()), (DeviceState::NotInUse, 0));
    // The next one is served too.
    calls(&mut world, "6002", "ask", &[(5000, BYE)]);
    world.run();
    in_order(
        &world,
        &[
            "0 #1 hears music default",
            "5000 #1 hears beep",
            "6000 #2 and #1 talk",
            "15000 #1 hears music default",
            "20000 #1 hears beep",
            "21000 #3 and #1 talk",
        ],
    );
    assert_eq!(changes(&world), [AgentChange::Login, AgentChange::Logoff(60)]);
    assert!(world.shard.core.borrow().queue_lines.is_empty(), "the log of queues knows nothing of them");
    at_rest(&world, "agents");
}

#[test]
fn who_asks_for_an_agent_who_cannot_be_had_hears_why() {
    let mut world = site(|rules| rules.wrapup = Duration::from_secs(10));
    calls(&mut world, "6000", "unknown", &[]);
    calls(&mut world, "6000", "nobody", &[]);
    calls(&mut world, "6001", "ask", &[]);
    world.run_until(at(1000));
    assert_eq!(noted(&world), ["asked INVALID", "nobody INVALID", "asked NOT_LOGGED_IN LOGGEDOUT"]);
    calls(&mut world, "7001", "login", &[(60_000, BYE)]);
    world.run_until(at(2000));
    calls(&mut world, "7002", "again", &[]);
    calls(&mut world, "6001", "ask", &[(8000, BYE)]);
    world.run_until(at(4000));
    calls(&mut world, "6002", "ask", &[]);
    // And in the time that the agent has for itself after the call.
    world.run_until(at(15_000));
    assert_eq!(device(&world), DeviceState::InUse);
    calls(&mut world, "6003", "ask", &[]);
    world.run_until(at(25_000));
    assert_eq!(device(&world), DeviceState::NotInUse);
    world.run();
    assert_eq!(
        noted(&world)[3..],
        ["again ALREADY_LOGGED_IN", "asked BUSY LOGGEDIN", "asked BUSY LOGGEDIN"],
        "{:?}",
        noted(&world)
    );
    at_rest(&world, "agents");
}

#[test]
fn a_call_is_accepted_by_a_key_or_the_agent_is_logged_off() {
    // What the agent does, how long it may take for it, and what comes of it.
    for (name, keys, limit, talks, status, logged_in) in [
        ("it accepts", vec![(9000, '#')], 0, true, "", true),
        ("another key", vec![(9000, '5')], 0, false, "", true),
        ("too late", vec![(14_000, '#')], 5, false, "asked NOT_CONNECTED LOGGEDOUT", false),
        ("in time", vec![(9000, '#')], 5, true, "", true),
    ] {
        let mut world = site(|rules| {
            rules.acknowledges = true;
            rules.autologoff = Duration::from_secs(limit);
        });
        let keys = keys.into_iter().map(|(at, key)| (at, Act::Press(key)));
        let agent: Vec<(u64, Act)> = keys.chain([(60_000, BYE)]).collect();
        calls(&mut world, "7001", "login", &agent);
        world.run_until(at(5000));
        calls(&mut world, "6001", "ask", &[(15_000, BYE)]);
        world.run_until(at(19_000));
        assert_eq!(world.joins() == 1, talks, "{name}");
        assert_eq!(device(&world) != DeviceState::Unavailable, logged_in, "{name}");
        world.run();
        assert_eq!(noted(&world).join(""), status, "{name}");
        at_rest(&world, name);
    }
}

#[test]
fn the_agent_ends_a_call_by_the_code_of_disconnect_and_stays() {
    let mut world = site(|_| {});
    calls(&mut world, "7001", "login", &[(12_000, Act::Press('*')), (40_000, BYE)]);
    world.run_until(at(5000));
    calls(&mut world, "6001", "ask", &[(30_000, BYE)]);
    world.run_until(at(14_000));
    assert_eq!(device(&world), DeviceState::NotInUse);
    assert_eq!(noted(&world), ["asked  LOGGEDIN"], "the caller's dialplan goes on");
    world.run();
    at_rest(&world, "agents");
}

#[test]
fn an_agent_is_logged_off_at_once_or_when_its_call_is_over() {
    for (name, soft, gone_at_once) in [("soft", true, false), ("hard", false, true)] {
        let mut world = site(|_| {});
        calls(&mut world, "7001", "login", &[]);
        world.run_until(at(1000));
        calls(&mut world, "6001", "ask", &[(20_000, BYE)]);
        world.run_until(at(8000));
        assert!(world.shard.core.borrow_mut().agent_logoff("1001", soft), "{name}");
        world.run_until(at(9000));
        assert_eq!(world.joins() == 0, gone_at_once, "{name}");
        world.run();
        assert_eq!(device(&world), DeviceState::Unavailable, "{name}");
        assert!(!world.shard.core.borrow_mut().agent_logoff("1001", soft), "{name}");
        at_rest(&world, name);
    }
    // One who waits has no call to finish.
    let mut world = site(|_| {});
    calls(&mut world, "7001", "login", &[]);
    world.run_until(at(1000));
    world.shard.core.borrow_mut().agent_logoff("1001", true);
    world.run();
    assert_eq!(changes(&world), [AgentChange::Login, AgentChange::Logoff(1)]);
}

/// An agent talks to 6001 from 4 s on and asks at 300, who answers after two seconds, from 8 s on.
fn asking(
    change: impl FnOnce(&mut AgentRules),
    agent: &[(u64, Act)],
    third: &[(u64, Act)],
) -> (World, ChannelId) {
    let mut world = site(change);
    world.phones_at_extensions();
    world.shard.core.borrow_mut().reach = apps::reach;
    world.phone("300@default", common::phone(third));
    let id = calls(&mut world, "7001", "login", agent);
    world.run_until(at(3000));
    calls(&mut world, "6001", "ask", &[(60_000, BYE)]);
    world.run_until(at(8000));
    apps::consult::attended(&world.shard, id, &location("default", "300")).unwrap();
    (world, id)
}

#[test]
fn an_agent_who_has_transferred_a_caller_waits_for_the_next_one() {
    let takes = [(2000, Act::Answer), (90_000, BYE)];
    let completes: Vec<_> = (15_000..).step_by(200).zip("*2".chars().map(Act::Press)).collect();
    let (mut world, _) = asking(|rules| rules.wrapup = Duration::from_secs(5), &completes, &takes);
    world.run_until(at(12_000));
    assert_eq!(device(&world), DeviceState::InUse, "it asks, and has no time for others");
    let busy = calls(&mut world, "6002", "ask", &[]);
    world.run_until(at(17_000));
    assert_eq!(noted(&world), ["asked BUSY LOGGEDIN"], "{busy:?}");
    assert_eq!(world.joins(), 1, "the customer talks to who was asked");
    assert_eq!(device(&world), DeviceState::InUse, "it is left alone for a while");
    world.run_until(at(22_000));
    assert_eq!(device(&world), DeviceState::NotInUse);
    calls(&mut world, "6003", "ask", &[(20_000, BYE)]);
    world.run_until(at(26_000));
    assert_eq!((device(&world), world.joins()), (DeviceState::InUse, 2));
    assert_eq!(changes(&world), [AgentChange::Login], "it has been there all the time");
    assert_eq!(lines(&world, "agent-loginok").len(), 0);
    world.run_until(at(60_000));
    world.shard.core.borrow_mut().agent_logoff("1001", true);
    world.run();
    at_rest(&world, "agents");
}

#[test]
fn an_agent_who_is_refused_or_hangs_up_meanwhile_is_what_it_was_or_is_logged_off() {
    // Nobody takes the question: the two talk again, and after that the agent waits.
    let (mut world, _) = asking(|_| {}, &[], &[(2000, BYE)]);
    world.run_until(at(20_000));
    assert_eq!(world.joins(), 1);
    world.run_until(at(70_000));
    assert_eq!((device(&world), changes(&world).len()), (DeviceState::NotInUse, 1));
    world.shard.core.borrow_mut().agent_logoff("1001", true);
    world.run();
    at_rest(&world, "refused");
    // It hangs up, which connects the other two.
    let (mut world, _) = asking(|_| {}, &[(15_000, BYE)], &[(2000, Act::Answer), (90_000, BYE)]);
    world.run_until(at(20_000));
    assert_eq!((world.joins(), device(&world)), (1, DeviceState::Unavailable));
    assert_eq!(changes(&world), [AgentChange::Login, AgentChange::Logoff(15)]);
    world.run();
    at_rest(&world, "hung up");
    // Somebody sends it elsewhere in the dialplan.
    let (mut world, id) = asking(|_| {}, &[(40_000, BYE)], &[(2000, Act::Answer), (90_000, BYE)]);
    world.run_until(at(12_000));
    world.shard.core.borrow_mut().request_goto(id, location("default", "unknown"));
    world.run_until(at(20_000));
    assert_eq!(changes(&world), [AgentChange::Login, AgentChange::Logoff(12)]);
    assert!(noted(&world).contains(&"asked INVALID".to_owned()), "{:?}", noted(&world));
    world.run();
    at_rest(&world, "redirected");
}

#[test]
fn whoever_goes_away_the_other_one_is_as_before() {
    // The caller hangs up while the agent is told, and the agent while it talks.
    let mut world = site(|rules| rules.acknowledges = true);
    calls(&mut world, "7001", "login", &[(14_000, Act::Press('#')), (20_000, BYE)]);
    world.run_until(at(1000));
    calls(&mut world, "6001", "ask", &[(3000, BYE)]);
    world.run_until(at(8000));
    assert_eq!(device(&world), DeviceState::NotInUse, "the agent is free again");
    calls(&mut world, "6002", "ask", &[(60_000, BYE)]);
    world.run_until(at(25_000));
    assert_eq!(device(&world), DeviceState::Unavailable);
    assert!(
        matches!(noted(&world).as_slice(), [line] if line.starts_with("asked  ")),
        "its dialplan goes on"
    );
    world.run();
    at_rest(&world, "agents");
}

#[test]
fn an_agent_whose_variable_says_no_accepts_calls_without_a_key() {
    for (word, joins) in [("no", 1), ("yes", 0)] {
        let plan = format!("{PLAN}exten => own,1,Set(AGENTACKCALL={word})\n same => n,AgentLogin(1001,s)\n");
        let mut world = common::world(&plan);
        let rules = AgentRules { acknowledges: true, beep: String::new(), ..AgentRules::default() };
        world.shard.core.borrow_mut().configure_agents([("1001".to_owned(), Rc::new(rules))]);
        calls(&mut world, "7001", "own", &[(30_000, BYE)]);
        world.run_until(at(5000));
        calls(&mut world, "6001", "ask", &[(15_000, BYE)]);
        world.run_until(at(8000));
        assert_eq!(world.joins(), joins, "{word}");
    }
}

#[test]
fn variables_of_the_channel_go_before_the_file_and_calls_are_recorded() {
    let plan = format!(
        "{PLAN}exten => own,1,Set(AGENTACKCALL=yes)\n same => n,Set(AGENTACCEPTDTMF=7)\n same => n,AgentLogin(1001)\n"
    );
    let mut world = common::world(&plan);
    world.watch();
    let rules = AgentRules { records: true, beep: String::new(), ..AgentRules::default() };
    world.shard.core.borrow_mut().configure_agents([("1001".to_owned(), Rc::new(rules))]);
    calls(&mut world, "7001", "own", &[(9000, Act::Press('7')), (30_000, BYE)]);
    world.run_until(at(5000));
    calls(&mut world, "6001", "ask", &[(15_000, BYE)]);
    world.run_until(at(8000));
    assert_eq!(world.joins(), 0);
    world.run_until(at(10_000));
    assert_eq!(world.joins(), 1);
    world.run();
    assert!(!lines(&world, "#1 hears agent-loginok").is_empty());
    let kinds = world.notices.iter().filter(|notice| matches!(notice, Notice::Monitor { .. })).count();
    assert!(kinds >= 2, "a recording begins and ends");
    at_rest(&world, "agents");
}

#[test]
fn a_record_of_the_agent_who_is_older_names_the_caller() {
    let mut world = site(|_| {});
    calls(&mut world, "7001", "login", &[(60_000, BYE)]);
    world.run_until(at(5000));
    calls(&mut world, "6001", "ask", &[(10_000, Act::Hangup(Cause::NORMAL_CLEARING))]);
    world.run();
    assert_eq!(world.cdrs.len(), 1, "{:?}", world.cdrs);
    let record = &world.cdrs[0];
    assert_eq!((record.src.as_str(), record.last_app.as_str()), ("7001", "AgentLogin"));
    assert_eq!(record.dst_channel, "SIM/6001-00000001");
    assert_eq!((record.disposition.name(), record.billsec.as_secs()), ("ANSWERED", 15));
}

#[test]
fn a_customers_call_becomes_part_of_the_older_one_of_the_agent() {
    use call::{CelKind, CelSettings};
    let mut world = site(|_| {});
    let all = CelSettings::new(CelKind::ALL.iter().copied(), []);
    world.settings(|settings| settings.cel = Some(Rc::new(all)));
    calls(&mut world, "7001", "login", &[(60_000, BYE)]);
    for start in [5000, 20_000] {
        world.run_until(at(start));
        calls(&mut world, "6001", "ask", &[(10_000, BYE)]);
    }
    world.run();
    let mut over = Vec::new();
    for event in &world.cels {
        let is_agent = event.channel.starts_with("SIM/7001");
        assert!(!is_agent || event.linkedid == event.uniqueid, "{event:?}");
        let joined = !is_agent && matches!(event.kind, CelKind::BridgeExit | CelKind::ChanEnd);
        assert!(!joined || event.linkedid != event.uniqueid, "{event:?}");
        over.extend((event.kind == CelKind::LinkedidEnd).then(|| event.linkedid.clone()));
    }
    let calls: std::collections::BTreeSet<_> =
        world.cels.iter().map(|event| event.linkedid.clone()).collect();
    assert_eq!(over.len(), 3, "each call ends once: {over:?}");
    assert_eq!(over.into_iter().collect::<std::collections::BTreeSet<_>>(), calls);
    at_rest(&world, "agents");
}
