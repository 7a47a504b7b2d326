//! Keys during a conversation: transfers, ending it, recording, applications of features.conf.

mod common;

use std::collections::BTreeMap;
use std::rc::Rc;

use call::features::{AppFeature, Features, PressedBy, RunsOn};
use common::{BYE, at, at_rest, call, in_order, lines, noted, phone, warnings, world};
use sim::{Act, World};

/// Presses these keys, 200 ms apart, from `from` on.
fn presses(from: u64, keys: &str) -> Vec<(u64, Act)> {
    (from..).step_by(200).zip(keys.chars().map(Act::Press)).collect()
}

/// A call from 6001 to 6002, who answers after three seconds, with these keys; both hang up after a minute.
fn talking(dialplan: &str, features: Features, caller: Vec<(u64, Act)>, callee: Vec<(u64, Act)>) -> World {
    let mut world = world(&format!("[default]\n{dialplan}\n"));
    world.watch();
    world.settings(|settings| settings.features = Rc::new(features));
    world.shard.core.borrow_mut().reach = apps::reach;
    let callee = [vec![(3000, Act::Answer)], callee, vec![(60_000, BYE)]].concat();
    world.phone("6002", phone(&callee));
    call(&mut world, "1", &[caller, vec![(60_000, BYE)]].concat());
    world.run();
    at_rest(&world, dialplan);
    world
}

fn map(change: impl FnOnce(&mut Features)) -> Features {
    let mut features = Features::default();
    change(&mut features);
    features
}

#[test]
fn the_other_one_is_sent_to_the_extension_that_is_dialled_after_the_code() {
    let elsewhere = "exten => 200,1,NoOp(${CHANNEL} by ${BLINDTRANSFER})\n same => n,Hangup()";
    // Who may, who presses what, and who comes out where.
    for (options, by_caller, keys, expected) in [
        ("T", true, "#200", "SIM/6002-00000001 by SIM/6001-00000000"),
        ("t", false, "#200", "SIM/6001-00000000 by SIM/6002-00000001"),
    ] {
        let plan = format!("exten => 1,1,Dial(SIM/6002,,{options})\n{elsewhere}");
        let pressed = presses(8000, keys);
        let (caller, callee) = if by_caller { (pressed, vec![]) } else { (vec![], pressed) };
        let world = talking(&plan, Features::default(), caller, callee);
        assert_eq!(noted(&world), [expected], "{options}: {:?}", warnings(&world));
        assert!(lines(&world, "is sent digit").is_empty(), "{options}: the other one hears no key");
        let (moved, stays) = if by_caller { ("#2", "#1") } else { ("#1", "#2") };
        in_order(
            &world,
            &[&format!("8000 {moved} hears music default"), &format!("8000 {stays} hears pbx-transfer")],
        );
    }
}

#[test]
fn who_may_not_presses_for_the_other_one() {
    for options in ["", "t", "H", "x"] {
        let plan = format!("exten => 1,1,Dial(SIM/6002,,{options})");
        let world = talking(&plan, Features::default(), presses(8000, "#1"), vec![]);
        let sent = lines(&world, "#2 is sent digit");
        assert_eq!(sent, ["8000 #2 is sent digit #", "8200 #2 is sent digit 1"], "{options}");
    }
}

#[test]
fn an_extension_that_is_not_there_can_be_dialled_again_and_then_the_two_talk_on() {
    let plan = "exten => 1,1,Dial(SIM/6002,,T)\nexten => 200,1,NoOp(there)";
    let again = [presses(8000, "#9"), presses(12_000, "200")].concat();
    let world = talking(plan, Features::default(), again, vec![]);
    assert_eq!(noted(&world), ["there"]);
    in_order(&world, &["8200 #1 hears pbx-invalid"]);

    let features = map(|features| features.attempts = 1);
    let world = talking(plan, features, presses(8000, "#9"), vec![]);
    assert!(noted(&world).is_empty());
    in_order(&world, &["8200 #1 hears privacy-incorrect", "9200 #1 and #2 talk"]);

    // Nothing is dialled: three times three seconds, and what is said between.
    let world = talking(plan, Features::default(), presses(8000, "#"), vec![]);
    in_order(
        &world,
        &[
            "8000 #1 hears pbx-transfer",
            "9000 #1 hears tone dial",
            "12000 #1 hears pbx-invalid",
            "16000 #1 hears pbx-invalid",
            "20000 #1 hears privacy-incorrect",
            "21000 #1 and #2 talk",
        ],
    );
}

#[test]
fn transfer_context_says_where_extensions_are_looked_for() {
    let plan = "exten => 1,1,Set(__TRANSFER_CONTEXT=inner)\n same => n,Dial(SIM/6002,,t)\n[inner]\nexten => 7,1,NoOp(inner)";
    let world = talking(plan, Features::default(), vec![], presses(8000, "#7"));
    assert_eq!(noted(&world), ["inner"]);
}

#[test]
fn the_code_of_disconnect_ends_the_call_of_who_may() {
    for (options, code, by_caller) in [("H", "*", true), ("h", "*", false), ("H", "*0", true)] {
        let plan = format!(
            "exten => 1,1,Dial(SIM/6002,,{options})\nexten => h,1,NoOp(${{DIALSTATUS}} ${{ANSWEREDTIME}})"
        );
        let pressed = presses(8000, code);
        let (caller, callee) = if by_caller { (pressed, vec![]) } else { (vec![], pressed) };
        let features = map(|features| features.map.disconnect = code.to_owned());
        let world = talking(&plan, features, caller, callee);
        assert_eq!(noted(&world), ["ANSWER 5"], "{options} {code}");
    }
}

#[test]
fn digits_that_are_no_code_reach_the_other_one_once_that_is_sure() {
    let features = map(|features| features.map.blind = "#1".to_owned());
    let pressed = [presses(8000, "5#2"), presses(10_000, "#")].concat();
    let world = talking("exten => 1,1,Dial(SIM/6002,,T)", features, pressed, vec![]);
    assert_eq!(
        lines(&world, "#2 is sent digit"),
        [
            "8000 #2 is sent digit 5",
            "8400 #2 is sent digit #",
            "8400 #2 is sent digit 2",
            // The second digit of the code has not come within a second.
            "11000 #2 is sent digit #",
        ]
    );
}

#[test]
fn a_recording_begins_and_ends_by_its_code_and_both_hear_that() {
    let features = map(|features| {
        features.map.mix_monitor = "*3".to_owned();
        features.map.monitor = "*4".to_owned();
        features.courtesy_tone = "beep".to_owned();
    });
    let plan = "exten => 1,1,Dial(SIM/6002,,Xwg)\n same => n,NoOp(${TOUCH_MIXMONITOR_OUTPUT} ${TOUCH_MONITOR_OUTPUT})";
    let caller = [presses(8000, "*3"), presses(12_000, "*3")].concat();
    let callee = [presses(20_000, "*4"), vec![(30_000, BYE)]].concat();
    let world = talking(plan, features, caller, callee);
    in_order(
        &world,
        &[
            "8200 #1 is monitored by 4: mixed while bridged",
            "8200 #1 hears beep",
            "8200 #2 hears beep",
            "12200 #1 is monitored by 4 no more",
            "20200 #2 is monitored by 4: mixed",
        ],
    );
    let names = noted(&world);
    let [names] = names.as_slice() else { panic!("{names:?}") };
    let stamped: Vec<&str> = names.split(' ').collect();
    for (name, who) in stamped.iter().zip(["-6001-6002", "-6002-6001"]) {
        assert!(name.starts_with("auto-") && name.ends_with(who), "{name}");
    }
    assert_eq!(stamped.len(), 2);
}

#[test]
fn what_names_a_recording_leads_out_of_no_folder() {
    let features = map(|features| features.map.mix_monitor = "*3".to_owned());
    let plan = "exten => 1,1,Set(TOUCH_MIXMONITOR=../../etc/x,b)\n same => n,Set(TOUCH_MIXMONITOR_FORMAT=gsm)\n \
                same => n,Dial(SIM/6002,,Xg)\n same => n,NoOp(${TOUCH_MIXMONITOR_OUTPUT} ${MIXMONITOR_FILENAME})";
    let world = talking(plan, features, presses(8000, "*3"), vec![(30_000, BYE)]);
    let names = noted(&world);
    let (name, file) = names[0].split_once(' ').unwrap();
    assert!(name.ends_with("-..-..-etc-x-b"), "{name}");
    assert_eq!(file.rsplit_once('/').unwrap().1, format!("{name}.gsm"));
}

/// An application of the map: its code, whose channel it runs on, who may press it.
fn feature(code: &str, runs_on: RunsOn, pressed_by: PressedBy, app: &str, args: &str) -> AppFeature {
    let [code, app, args] = [code, app, args].map(str::to_owned);
    AppFeature { code, runs_on, pressed_by, app, args, music: String::new() }
}

fn application_map() -> Features {
    map(|features| {
        let rows = [
            ("own", feature("#1", RunsOn::Own, PressedBy::Both, "Playback", "hello")),
            ("peer", feature("#2", RunsOn::Peer, PressedBy::Caller, "Playback", "there")),
            ("gosub", feature("#3", RunsOn::Peer, PressedBy::Callee, "Gosub", "sub,s,1(${CALLERID(num)})")),
            ("none", feature("#4", RunsOn::Own, PressedBy::Both, "NoSuchApp", "")),
        ];
        features.apps = rows.into_iter().map(|(name, feature)| (name.to_owned(), feature)).collect();
        features.groups = BTreeMap::from([("two".to_owned(), vec![("own".to_owned(), "99".to_owned())])]);
    })
}

#[test]
fn applications_of_the_map_run_on_who_is_meant_while_the_other_one_hears_music() {
    let plan = "exten => 1,1,Set(__DYNAMIC_FEATURES=own#peer#gosub#none#two#ghost)\n same => n,Dial(SIM/6002)\n[sub]\n\
                exten => s,1,NoOp(${CHANNEL} ${ARG1})\n same => n,Return()";
    let caller =
        [presses(8000, "#1"), presses(10_000, "#2"), presses(12_000, "99"), presses(14_000, "#4")].concat();
    let world = talking(plan, application_map(), caller, presses(20_000, "#3"));
    in_order(
        &world,
        &[
            "8200 #2 hears music default",
            "8200 #1 hears hello",
            "9200 #1 and #2 talk",
            "10200 #1 hears music default",
            "10200 #2 hears there",
            "11200 #2 and #1 talk",
            "12200 #2 hears music default",
            "12200 #1 hears hello",
        ],
    );
    assert_eq!(noted(&world), ["SIM/6001-00000000 6001"], "{:#?}", world.transcript());
    let warned = warnings(&world).join("\n");
    for what in ["no application 'NoSuchApp'", "no feature 'ghost'"] {
        assert!(warned.contains(what), "{what}: {warned}");
    }
}

#[test]
fn who_may_not_press_a_feature_presses_for_the_other_one() {
    let plan = "exten => 1,1,Set(__DYNAMIC_FEATURES=peer)\n same => n,Dial(SIM/6002)";
    let world = talking(plan, application_map(), vec![], presses(8000, "#2"));
    assert_eq!(lines(&world, "#1 is sent digit").len(), 2);
    assert!(lines(&world, "hears there").is_empty());
}

#[test]
fn an_end_while_a_key_is_acted_on_ends_the_call() {
    let plan = "exten => 1,1,Dial(SIM/6002,,T)\nexten => 200,1,NoOp(no)\nexten => h,1,NoOp(h)";
    for (name, caller, callee) in [
        ("who transfers", [presses(8000, "#"), vec![(8500, BYE)]].concat(), vec![]),
        ("the other one", presses(8000, "#"), vec![(8500, BYE)]),
    ] {
        let world = talking(plan, Features::default(), caller, callee);
        assert_eq!(noted(&world), ["h"], "{name}");
        assert!(world.now() <= at(61_000), "{name}");
    }
}

#[test]
fn a_dialplan_changes_what_keys_do_on_one_channel() {
    let plan = "exten => 1,1,Set(FEATUREMAP(blindxfer)=**)\n same => n,Set(FEATURE(transferannouncesound)=hello)\n \
                same => n,NoOp(${FEATUREMAP(BLINDXFER)} ${FEATUREMAP(disconnect)} ${FEATURE(featuredigittimeout)})\n \
                same => n,Set(FEATUREMAP(atxfer)=xyz)\n same => n,Set(FEATURE(featuredigittimeout)=0)\n \
                same => n,Set(FEATURE(nothing)=1)\n same => n,Dial(SIM/6002,,T)\nexten => 200,1,NoOp(there)";
    let pressed = [presses(8000, "#1"), presses(10_000, "**"), presses(12_000, "200")].concat();
    let world = talking(plan, Features::default(), pressed, vec![]);
    assert_eq!(noted(&world), ["** * 1000", "there"], "{:?}", warnings(&world));
    in_order(&world, &["8200 #2 is sent digit 1", "10200 #1 hears hello"]);
    let warned = warnings(&world).join("\n");
    for what in ["'xyz' cannot be pressed", "'0' is no number", "no item 'nothing'"] {
        assert!(warned.contains(what), "{what}: {warned}");
    }
}
