//! Channels that clients bring together, apart and elsewhere.

use base::Cause;
use sim::{Act, Phone};

use super::*;

/// A desk where alice (in the dialplan) talks to bob (dialled).
fn talking(name: &str) -> (Desk, ChannelId) {
    let mut desk = Desk::new(name);
    desk.login(1, "all");
    desk.act(1, "Events|EventMask: call");
    desk.world.phone("bob", Phone { acts: vec![(100, Act::Answer)], refuses: None });
    let alice = desk.call("alice", "102");
    desk.pass_to(1_000);
    desk.sent(1);
    (desk, alice)
}

/// What actions made of the call within a second: the events, in order.
fn after(desk: &mut Desk, act: &str, expected: &str) -> Vec<String> {
    let answer = desk.act(1, act);
    assert!(answer.contains(&format!("Message: {expected}")), "{act}: {answer}");
    let now = desk.world.now().as_millis();
    desk.pass_to(now + 1_000);
    event_names(&desk.sent(1))
}

fn place(desk: &Desk, name: &str) -> Option<(String, String)> {
    let core = desk.world.shard.core.borrow();
    let channel = core.get(core.by_name(name)?)?;
    Some((channel.location.exten.clone(), channel.app.to_owned()))
}

const ALICE: &str = "SIM/alice-00000000";
const BOB: &str = "SIM/bob-00000001";

fn has(names: &[String], name: &str) -> bool {
    names.iter().any(|known| known == name)
}

#[test]
fn the_dialled_party_of_a_call_goes_where_it_is_redirected_and_both_at_once_go_their_ways() {
    let (mut desk, _) = talking("redirect-leg");
    let names = after(
        &mut desk,
        &format!("Redirect|Channel: {BOB}|Context: default|Exten: 100|Priority: 1"),
        "Redirect successful",
    );
    assert!(has(&names, "BridgeDestroy") && has(&names, "Hangup"), "{names:?}");
    assert_eq!(place(&desk, BOB), Some(("100".into(), "Wait".into())));
    assert_eq!(place(&desk, ALICE), None, "her Dial has ended");

    let (mut desk, _) = talking("redirect-both");
    let names = after(
        &mut desk,
        &format!(
            "Redirect|Channel: {ALICE}|ExtraChannel: {BOB}|Context: default|Exten: 100|Priority: 1|ExtraExten: 101"
        ),
        "Dual Redirect successful",
    );
    assert!(!has(&names, "Hangup"), "{names:?}");
    assert_eq!(place(&desk, ALICE), Some(("100".into(), "Wait".into())));
    assert_eq!(place(&desk, BOB), Some(("101".into(), "Wait".into())));
}

#[test]
fn bridge_takes_two_out_of_what_they_do_and_their_dialplans_go_on_afterwards() {
    let mut desk = Desk::new("bridge");
    desk.login(1, "all");
    desk.act(1, "Events|EventMask: call");
    for phone in ["alice", "carol"] {
        desk.call(phone, "100");
    }
    desk.pass_to(100);
    desk.sent(1);
    let both = "Bridge|Channel1: SIM/alice-00000000|Channel2: SIM/carol-00000001";
    let names = after(&mut desk, both, "Channels have been bridged");
    assert_eq!(names, ["NewConnectedLine", "NewConnectedLine", "BridgeCreate", "BridgeEnter", "BridgeEnter"]);
    assert_eq!(desk.world.joins(), 1);
    let text = desk.act(1, "BridgeList");
    let id = field(&messages(&text)[1], "BridgeUniqueid").unwrap().to_owned();
    let text = desk.act(1, &format!("BridgeInfo|BridgeUniqueid: {id}"));
    assert_eq!(event_names(&text), ["BridgeInfoChannel", "BridgeInfoChannel", "BridgeInfoComplete"]);
    // Nothing follows the step that alice was in: her call ends as if that had ended.
    let carol = "Redirect|Channel: SIM/carol-00000001|Context: default|Exten: 101|Priority: 1";
    let names = after(&mut desk, carol, "Redirect successful");
    assert!(has(&names, "BridgeDestroy") && has(&names, "Hangup"), "{names:?}");
    assert_eq!(place(&desk, "SIM/carol-00000001"), Some(("101".into(), "Wait".into())));
    assert_eq!(desk.world.joins(), 0);
    for (act, why) in [
        (
            "Bridge|Channel1: SIM/carol-00000001|Channel2: SIM/carol-00000001",
            "Cannot bridge a channel to itself",
        ),
        ("Bridge|Channel1: SIM/carol-00000001|Channel2: SIM/nobody", "Channel2 does not exist: SIM/nobody"),
        ("BridgeKick|Channel: SIM/carol-00000001", "Channel is not in a bridge"),
        ("BridgeDestroy|BridgeUniqueid: x", "Specified BridgeUniqueid not found"),
        ("BlindTransfer|Channel: SIM/carol-00000001|Exten: 100", "Channel is not in a bridge with one other"),
        ("Atxfer|Channel: SIM/carol-00000001|Exten: 100", "Channel is not in a bridge with one other"),
        ("CancelAtxfer|Channel: SIM/carol-00000001", "Channel is not in a bridge with one other"),
    ] {
        assert_eq!(desk.act(1, act), error(why), "{act}");
    }
}

#[test]
fn a_bridged_pair_of_two_calls_leaves_nobody_behind() {
    let (mut desk, _) = talking("bridge-legs");
    desk.world.phone("dan", Phone { acts: vec![(100, Act::Answer)], refuses: None });
    desk.act(1, "Originate|Async: true|Channel: SIM/dan|Application: Wait|Data: 600");
    let now = desk.world.now().as_millis();
    desk.pass_to(now + 500);
    desk.sent(1);
    let act = format!("Bridge|Channel1: {BOB}|Channel2: SIM/dan-00000002");
    let names = after(&mut desk, &act, "Channels have been bridged");
    assert!(has(&names, "Hangup"), "alice has nobody left: {names:?}");
    let names = after(&mut desk, "Hangup|Channel: SIM/dan-00000002", "Channel Hungup");
    assert_eq!(names.iter().filter(|name| *name == "Hangup").count(), 2, "{names:?}");
    assert_eq!((desk.world.shard.core.borrow().channel_count(), desk.world.shard.stories()), (0, 0));
    assert_eq!(desk.world.open_streams(), 0);
}

#[test]
fn kicking_ends_a_bridge_and_who_has_a_dialplan_goes_on_in_it() {
    let (mut desk, _) = talking("kick");
    let names = after(&mut desk, &format!("BridgeKick|Channel: {BOB}"), "Channel has been kicked");
    assert!(has(&names, "BridgeDestroy"), "{names:?}");
    let (mut desk, _) = talking("destroy");
    let text = desk.act(1, "BridgeList|BridgeType: basic");
    let id = field(&messages(&text)[1], "BridgeUniqueid").unwrap().to_owned();
    let act = format!("BridgeDestroy|BridgeUniqueid: {id}");
    let names = after(&mut desk, &act, "Bridge has been destroyed");
    assert_eq!(names.iter().filter(|name| *name == "Hangup").count(), 2, "{names:?}");
    assert_eq!(desk.world.shard.stories(), 0);
}

#[test]
fn a_blind_transfer_sends_the_other_party_and_says_so() {
    for (from, stays, goes) in [(ALICE, ALICE, BOB), (BOB, BOB, ALICE)] {
        let (mut desk, _) = talking("blind");
        let answer = desk.act(1, &format!("BlindTransfer|Channel: {from}|Context: default|Exten: 100"));
        assert!(answer.contains("Message: Transfer succeeded"), "{answer}");
        desk.pass_to(2_000);
        let text = desk.sent(1);
        let all = messages(&text);
        let event = all.iter().find(|message| field(message, "Event") == Some("BlindTransfer")).unwrap();
        assert_eq!(field(event, "TransfererChannel"), Some(stays));
        assert_eq!(field(event, "TransfereeChannel"), Some(goes));
        assert_eq!((field(event, "Extension"), field(event, "IsExternal")), (Some("100"), Some("No")));
        assert_eq!(place(&desk, goes), Some(("100".into(), "Wait".into())));
        assert_eq!(place(&desk, stays), None);
        let answer = desk.act(1, &format!("Getvar|Channel: {goes}|Variable: BLINDTRANSFER"));
        assert!(answer.contains(&format!("Value: {stays}")), "{answer}");
    }
}

#[test]
fn an_attended_transfer_connects_the_two_others_when_the_one_who_asked_hangs_up() {
    let (mut desk, alice) = talking("attended");
    let act = format!("Atxfer|Channel: {ALICE}|Context: default|Exten: 100");
    let names = after(&mut desk, &act, "Atxfer successfully queued");
    assert!(has(&names, "MusicOnHoldStart") && !names.iter().any(|name| name == "Hangup"), "{names:?}");
    desk.world.act(alice, Duration::ZERO, Act::Hangup(Cause::NORMAL_CLEARING));
    let now = desk.world.now().as_millis();
    desk.pass_to(now + 1_000);
    let text = desk.sent(1);
    let names = event_names(&text);
    let order = |name: &str| names.iter().position(|known| known == name);
    assert!(order("MusicOnHoldStop") < order("AttendedTransfer"), "{names:?}");
    assert!(has(&names, "AttendedTransfer"), "{names:?}");
    assert_eq!(place(&desk, ALICE), None);
    let text = desk.act(1, "CoreShowChannels");
    assert_eq!(
        messages(&text).iter().filter(|m| field(m, "Event") == Some("CoreShowChannel")).count(),
        3,
        "{text}"
    );
    let names = after(&mut desk, &format!("Hangup|Channel: {BOB}"), "Channel Hungup");
    assert_eq!(names.iter().filter(|name| *name == "Hangup").count(), 3, "{names:?}");
    assert_eq!(desk.world.shard.stories(), 0);
}

#[test]
fn an_attended_transfer_that_is_cancelled_brings_the_two_together_again() {
    let (mut desk, _) = talking("cancelled");
    let act = format!("Atxfer|Channel: {BOB}|Context: default|Exten: 100");
    after(&mut desk, &act, "Atxfer successfully queued");
    let names = after(&mut desk, &format!("CancelAtxfer|Channel: {BOB}"), "CancelAtxfer successfully queued");
    assert!(has(&names, "MusicOnHoldStop") && has(&names, "BridgeCreate"), "{names:?}");
    assert!(place(&desk, ALICE).is_some() && place(&desk, BOB).is_some());
    assert_eq!(desk.world.joins(), 1);
    assert_eq!(desk.world.shard.core.borrow().channel_count(), 2);
}

#[test]
fn a_local_channel_leaves_the_way_of_the_two_that_it_connects_once_both_talk() {
    let mut desk = Desk::new("optimize");
    desk.login(1, "all");
    desk.world.phone("bob", Phone { acts: vec![(1_000, Act::Answer)], refuses: None });
    desk.world.phone("dan", Phone { acts: vec![(100, Act::Answer)], refuses: None });
    // ;1 goes to dan, once ;2 has bob.
    desk.act(1, "Originate|Async: true|Channel: Local/102@default|Application: Dial|Data: SIM/dan");
    desk.act(1, "Events|EventMask: call");
    desk.pass_to(100);
    desk.sent(1);
    let one = desk.act(1, "Status");
    let all = messages(&one);
    let halves: Vec<&str> = all
        .iter()
        .filter_map(|message| field(message, "Channel"))
        .filter(|name| name.starts_with("Local/"))
        .collect();
    assert_eq!(halves.len(), 2, "{one}");
    // Nobody talks yet: it goes as soon as it can.
    let act = format!("LocalOptimizeAway|Channel: {}", halves[0]);
    assert!(desk.act(1, &act).contains("Queued channel to be optimized away"));
    desk.sent(1);
    desk.pass_to(5_000);
    {
        let core = desk.world.shard.clone();
        assert!(desk.local.borrow_mut().optimize(&mut core.core.borrow_mut()));
    }
    desk.pass_to(6_000);
    let text = desk.sent(1);
    let told = messages(&text);
    let of = |name: &str| told.iter().find(|message| field(message, "Event") == Some(name));
    let (begin, end) = (of("LocalOptimizationBegin").unwrap(), of("LocalOptimizationEnd").unwrap());
    assert_eq!(field(begin, "SourceChannel").map(|name| name.starts_with("SIM/dan-")), Some(true));
    assert_eq!((field(begin, "Id"), field(end, "Success")), (field(end, "Id"), Some("No")));
    let names = event_names(&text);
    let at = |name: &str| names.iter().position(|known| known == name).unwrap();
    assert!(at("LocalOptimizationBegin") < at("LocalOptimizationEnd"), "{names:?}");
    assert!(at("LocalOptimizationEnd") < at("Hangup"), "{names:?}");
    // The two talk in one bridge, and nobody else is left.
    let list = desk.act(1, "CoreShowChannels");
    let left: Vec<(String, String)> = messages(&list)
        .iter()
        .filter(|message| field(message, "Event") == Some("CoreShowChannel"))
        .map(|message| {
            let text = |name: &str| field(message, name).unwrap_or_default().to_owned();
            (text("Channel"), text("BridgeId"))
        })
        .collect();
    assert_eq!(left.len(), 2, "{left:?}");
    assert!(left.iter().all(|(name, _)| name.starts_with("SIM/")), "{left:?}");
    assert!(!left[0].1.is_empty() && left[0].1 == left[1].1, "{left:?}");
    assert_eq!(desk.world.joins(), 1);
    // Either ends it for both.
    let act = format!("Hangup|Channel: {}", left[0].0);
    desk.act(1, &act);
    desk.pass_to(8_000);
    assert_eq!((desk.world.shard.core.borrow().channel_count(), desk.world.shard.stories()), (0, 0));
    assert_eq!(desk.world.open_streams(), 0);
    let alice = desk.call("alice", "100");
    let name = desk.world.shard.core.borrow().get(alice).map(|c| c.name.to_string()).unwrap();
    desk.sent(1);
    let act = format!("LocalOptimizeAway|Channel: {name}");
    assert_eq!(desk.act(1, &act), error("Unable to optimize channel"));
}

#[test]
fn mute_audio_is_a_command_to_the_media_plane_for_each_way() {
    let mut desk = Desk::new("mute");
    desk.login(1, "all");
    let id = desk.call("alice", "100");
    desk.pass_to(100);
    let muted = |desk: &Desk| desk.world.shard.core.borrow().get(id).map(|channel| channel.muted);
    let channel = "SIM/alice-00000000";
    for (act, after) in [
        ("Direction: in|State: on", (true, false)),
        ("Direction: out|State: on", (true, true)),
        ("Direction: in|State: off", (false, true)),
        ("Direction: all|State: on", (true, true)),
        ("Direction: ALL|State: OFF", (false, false)),
    ] {
        let answer = desk.act(1, &format!("MuteAudio|Channel: {channel}|{act}"));
        assert_eq!(answer, "Response: Success\r\n\r\n", "{act}");
        assert_eq!(muted(&desk), Some(after), "{act}");
    }
    for (act, why) in [
        ("Channel: SIM/alice-00000000|Direction: up|State: on", "Invalid direction"),
        ("Channel: SIM/alice-00000000|Direction: in|State: maybe", "Invalid state"),
        ("Channel: SIM/nobody|Direction: in|State: on", "Channel not found"),
        ("Channel: SIM/alice-00000000|Direction: in", "State not specified"),
    ] {
        assert_eq!(desk.act(1, &format!("MuteAudio|{act}")), error(why), "{act}");
    }
}

#[test]
fn keys_of_who_asks_end_the_question_complete_the_transfer_or_change_between_the_two() {
    // What alice presses once 100 has answered; who talks then (all three after the last); whether alice is still there.
    for (keys, talks, is_there) in [
        ("*1", vec![ALICE, BOB], true),
        ("*2", vec![BOB, "Local/100@default-00000002;1"], false),
        ("*4", vec![ALICE, BOB], true),
        ("*4*4", vec![ALICE, "Local/100@default-00000002;1"], true),
        ("*4*1", vec![ALICE, BOB], true),
        ("*4*2", vec![BOB, "Local/100@default-00000002;1"], false),
        ("*7", vec![ALICE, "Local/100@default-00000002;1"], true),
        ("*3", vec![ALICE, BOB, "Local/100@default-00000002;1"], true),
    ] {
        let (mut desk, alice) = talking("attended-keys");
        let act = format!("Atxfer|Channel: {ALICE}|Context: default|Exten: 100");
        after(&mut desk, &act, "Atxfer successfully queued");
        for (place, key) in (0..).zip(keys.chars()) {
            desk.world.act(alice, Duration::from_millis(place * 200), Act::Press(key));
        }
        let now = desk.world.now().as_millis();
        desk.pass_to(now + 5_000);
        desk.sent(1);
        assert_eq!(place(&desk, ALICE).is_some(), is_there, "{keys}");
        let core = desk.world.shard.clone();
        let core = core.core.borrow();
        let mut together: Vec<String> = core
            .bridges()
            .flat_map(|(_, members)| {
                members.iter().filter_map(|id| core.get(*id)).map(|c| c.name.to_string())
            })
            .collect();
        together.sort();
        let mut talks = talks;
        talks.sort_unstable();
        assert_eq!(together, talks, "{keys}");
    }
}
