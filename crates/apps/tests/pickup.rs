//! Call pickup: who may take which call that rings, and who talks to whom then.

mod common;

use std::rc::Rc;

use base::{Cause, ChannelId};
use call::pickup::PickupGroups;
use call::{Disposition, Notice};
use common::{BYE, at, at_rest, ends, in_order, lines, location, noted, phone, warnings, world};
use sim::{Act, World};

const PLAN: &str = "[default]\nexten => 1,1,Dial(SIM/6002)\n same => n,NoOp(${DIALSTATUS} ${DIALEDPEERNAME})\n\
    exten => 2,1,Set(__PICKUPMARK=mine)\n same => n,Dial(SIM/6002&SIM/6003,,g)\n\
    exten => h,1,NoOp(${CHANNEL} ${DIALSTATUS} ${DIALEDPEERNAME})\n\
    exten => 90,1,Pickup()\n same => n,NoOp(no)\nexten => 91,1,Pickup(1)\n same => n,NoOp(no)\n\
    exten => 92,1,Pickup(7@default&1@default)\n same => n,NoOp(no)\nexten => 93,1,Pickup(mine@PICKUPMARK)\n same => n,NoOp(no)\n\
    exten => 94,1,PickupChan(SIM/6009&SIM/6002)\n same => n,NoOp(no)\nexten => 95,1,PickupChan(SIM/6002-00000001,p)\n \
    same => n,NoOp(no)\nexten => 96,1,Pickup(1@other)\n same => n,NoOp(no)\nexten => 97,1,PickupChan()\n same => n,NoOp(no)\n\
    exten => 98,1,Set(CHANNEL(pickupgroup)=3)\n same => n,NoOp(${CHANNEL(pickupgroup)} ${CHANNEL(callgroup)})\n \
    same => n,Pickup()\n same => n,NoOp(no)\n";

/// A world in which 6002 and 6003 ring for a minute.
fn ringing(features: impl FnOnce(&mut call::features::Features)) -> World {
    let mut world = world(PLAN);
    world.watch();
    let mut own = call::features::Features::default();
    features(&mut own);
    world.settings(|settings| settings.features = Rc::new(own));
    for name in ["6002", "6003"] {
        world.phone(name, phone(&[(1000, Act::Ring), (60_000, Act::Hangup(Cause::NO_ANSWER))]));
    }
    world
}

fn begin(world: &mut World, from: &str, exten: &str, groups: &str, acts: &[(u64, Act)]) -> ChannelId {
    let place = location("default", exten);
    let id = world.incoming(from, &format!("<{from}>"), place.clone(), acts);
    set_groups(world, id, "", groups);
    let shard = world.shard.clone();
    assert!(apps::pickup::start(&shard, id, place));
    id
}

fn set_groups(world: &World, id: ChannelId, calls: &str, pickups: &str) {
    let mut groups = PickupGroups::default();
    groups.call.set_numbers(calls).unwrap();
    groups.pickup.set_numbers(pickups).unwrap();
    world.shard.core.borrow_mut().get_mut(id).unwrap().pickup = Rc::new(groups);
}

/// The phones that ring are in this group.
fn ring_in(world: &World, group: &str) {
    let ids: Vec<ChannelId> = world
        .shard
        .core
        .borrow()
        .channels()
        .filter(|channel| channel.outgoing)
        .map(|channel| channel.id)
        .collect();
    ids.into_iter().for_each(|id| set_groups(world, id, group, ""));
}

#[test]
fn a_call_that_rings_is_taken_by_group_number_mark_and_channel() {
    for (dialled, by, taken) in [
        ("1", "90", true),
        ("1", "*8", true),
        ("1", "91", true),
        ("1", "92", true),
        ("2", "93", true),
        ("1", "94", true),
        ("1", "95", true),
        ("1", "98", true),
        ("1", "96", false),
        ("1", "93", false),
        ("1", "97", false),
    ] {
        let mut world = ringing(|_| {});
        begin(&mut world, "6001", dialled, "", &[(70_000, BYE)]);
        world.run_until(at(2000));
        ring_in(&world, "3");
        let name = format!("{dialled} {by}");
        let groups = if by == "98" { "" } else { "1,3" };
        let picker = begin(&mut world, "6007", by, groups, &[(10_000, BYE)]);
        world.run();
        let told = world.notices.iter().filter(|notice| matches!(notice, Notice::Pickup { .. })).count();
        assert_eq!(told, usize::from(taken), "{name}: {:?}", warnings(&world));
        if !taken {
            assert!(noted(&world).contains(&"no".to_owned()), "{name}: {:?}", noted(&world));
            continue;
        }
        let stream = if dialled == "2" { "#4" } else { "#3" };
        // Whoever dials the code for it is nobody who has answered elsewhere.
        let cause = if by == "*8" { 16 } else { 26 };
        let ends_so = format!("2000 SIM/6002-00000001 ends with {cause}");
        in_order(&world, &[&format!("2000 #1 and {stream} talk"), &ends_so]);
        let peer = if dialled == "2" { "SIM/6007-00000003" } else { "SIM/6007-00000002" };
        assert!(
            noted(&world).contains(&format!("SIM/6001-00000000 ANSWER {peer}")),
            "{name}: {:?}",
            noted(&world)
        );
        assert!(!noted(&world).contains(&"no".to_owned()), "{name}");
        assert_eq!(ends(&world).iter().filter(|status| **status == "ANSWER").count(), 1, "{name}");
        // Each is shown the other.
        assert!(
            !lines(&world, "SIM/6001-00000000 is shown 6007").is_empty(),
            "{name}: {:?}",
            lines(&world, "shown")
        );
        assert!(
            !lines(&world, &format!("{peer} is shown 6001")).is_empty(),
            "{name}: {:?}",
            lines(&world, "shown")
        );
        // One of several that rang and was let be has a record of its own.
        let of_caller =
            world.cdrs.iter().find(|cdr| cdr.channel == "SIM/6001-00000000" && cdr.dst_channel == peer);
        assert_eq!(of_caller.map(|cdr| cdr.disposition), Some(Disposition::Answered), "{name}");
        // Who picks up is the party that was called from there on.
        assert!(world.cdrs.iter().all(|cdr| cdr.channel != peer), "{name}: {:?}", world.cdrs);
        assert!(world.cdrs.iter().all(|cdr| cdr.channel != "SIM/6002-00000001"), "{name}");
        at_rest(&world, &name);
        let _ = picker;
    }
}

#[test]
fn without_a_group_in_common_nothing_is_taken_and_that_is_heard() {
    for (groups, by) in [("", "90"), ("1", "90"), ("1,2", "*8")] {
        let mut world = ringing(|features| features.pickup_fail_sound = "beeperr".to_owned());
        begin(&mut world, "6001", "1", "", &[(20_000, BYE)]);
        world.run_until(at(2000));
        ring_in(&world, "3");
        begin(&mut world, "6007", by, groups, &[(10_000, BYE)]);
        world.run();
        in_order(&world, &["2000 #3 hears beeperr"]);
        let expected = if by == "*8" {
            "3000 SIM/6007-00000002 ends with 21"
        } else {
            "3000 SIM/6007-00000002 ends with 0"
        };
        in_order(&world, &[expected]);
        at_rest(&world, by);
    }
}

#[test]
fn of_several_calls_that_ring_the_one_that_has_rung_longest_is_taken() {
    let mut world = ringing(|_| {});
    begin(&mut world, "6001", "1", "", &[(40_000, BYE)]);
    world.run_until(at(2000));
    begin(&mut world, "6004", "2", "", &[(40_000, BYE)]);
    world.run_until(at(4000));
    ring_in(&world, "3");
    begin(&mut world, "6007", "90", "3", &[(10_000, BYE)]);
    world.run_until(at(5000));
    assert!(lines(&world, "talk").contains(&"4000 #1 and #6 talk".to_owned()), "{:?}", lines(&world, "talk"));
    world.run();
    at_rest(&world, "longest");
}

#[test]
fn two_who_want_one_call_do_not_both_get_it() {
    let mut world = ringing(|features| {
        features.pickup_sound = "beep".to_owned();
        features.pickup_fail_sound = "beeperr".to_owned();
    });
    begin(&mut world, "6001", "1", "", &[(40_000, BYE)]);
    world.run_until(at(2000));
    ring_in(&world, "3");
    for from in ["6007", "6008"] {
        begin(&mut world, from, "90", "3", &[(10_000, BYE)]);
    }
    world.run();
    // Who has got it hears so once they talk.
    in_order(&world, &["2000 #1 and #3 talk", "2000 #3 hears beep"]);
    assert_eq!(lines(&world, "hears beeperr"), ["2000 #4 hears beeperr"]);
    at_rest(&world, "two");
}

#[test]
fn a_call_that_was_answered_before_stays_where_it_is() {
    let mut world = ringing(|features| features.pickup_sound = "beep".to_owned());
    world.phone("6002", phone(&[(1000, Act::Ring), (1500, Act::Answer), (20_000, BYE)]));
    begin(&mut world, "6001", "1", "", &[(40_000, BYE)]);
    world.run_until(at(2000));
    ring_in(&world, "3");
    begin(&mut world, "6007", "90", "3", &[(10_000, BYE)]);
    world.run();
    in_order(&world, &["1500 #1 and #2 talk"]);
    assert_eq!(lines(&world, "hears beep"), [""; 0]);
    assert!(noted(&world).contains(&"no".to_owned()));
    at_rest(&world, "answered");
}
