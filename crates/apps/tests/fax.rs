//! Faxes that call: where they go, when, and who is not taken for one.

mod common;

use std::time::Duration;

use call::FaxWatch;
use common::*;
use sim::{Act, World};

const PLAN: &str = "[default]\n\
    exten => 1,1,Answer()\n same => n,Wait(30)\n same => n,NoOp(spoke)\n\
    exten => 2,1,Dial(SIM/6002,20)\n\
    exten => 3,1,Set(FAXOPT(faxdetect)=${HOW})\n same => n,Answer()\n same => n,NoOp(${FAXOPT(faxdetect)})\n\
     same => n,Wait(30)\n same => n,NoOp(spoke)\n\
    exten => 4,1,Goto(plain,1,1)\n\
    exten => fax,1,NoOp(fax ${FAXEXTEN})\n same => n,Wait(30)\n same => n,NoOp(sent)\n\
    [plain]\nexten => 1,1,Answer()\n same => n,Wait(30)\n same => n,NoOp(spoke)\n";

const WATCH: FaxWatch = FaxWatch { tone: true, offer: true, timeout: Duration::ZERO };

/// A call to this extension on an endpoint that looks out for faxes, or does not.
fn calls(exten: &str, watch: Option<FaxWatch>, acts: &[(u64, Act)]) -> World {
    let mut world = world(PLAN);
    world.watch();
    world.phones_at_extensions();
    world.shard.core.borrow_mut().reach = apps::reach;
    world.phone("6002", phone(&[(2000, Act::Answer), (50_000, BYE)]));
    let id = call(&mut world, exten, acts);
    world.shard.core.borrow_mut().watch_fax(id, watch);
    world
}

#[test]
fn a_caller_who_sounds_like_a_fax_goes_to_its_extension_from_wherever_it_is_once() {
    let late = FaxWatch { timeout: Duration::from_secs(4), ..WATCH };
    let offers = FaxWatch { tone: false, ..WATCH };
    for (name, exten, watch, acts, expected) in [
        ("waits", "1", Some(WATCH), vec![(5000, Act::FaxTone)], &["fax 1", "sent"][..]),
        ("once", "1", Some(WATCH), vec![(5000, Act::FaxTone), (9000, Act::FaxTone)], &["fax 1", "sent"]),
        ("in time", "1", Some(late), vec![(3000, Act::FaxTone)], &["fax 1", "sent"]),
        ("too late", "1", Some(late), vec![(5000, Act::FaxTone)], &["spoke"]),
        ("not by its tone", "1", Some(offers), vec![(5000, Act::FaxTone)], &["spoke"]),
        ("nobody looks", "1", None, vec![(5000, Act::FaxTone)], &["spoke"]),
        ("no such extension", "4", Some(WATCH), vec![(5000, Act::FaxTone)], &["spoke"]),
        ("talks to somebody", "2", Some(WATCH), vec![(5000, Act::FaxTone)], &["fax 2", "sent"]),
        ("is not answered", "2", Some(WATCH), vec![(1000, Act::FaxTone)], &[]),
    ] {
        let mut world = calls(exten, watch, &acts);
        world.run();
        assert_eq!(noted(&world), expected, "{name}");
        at_rest(&world, name);
    }
}

#[test]
fn a_channel_is_listened_to_from_its_answer_on_and_not_after_the_fax_was_known() {
    let mut world = calls("2", Some(WATCH), &[(5000, Act::FaxTone)]);
    world.run();
    let said = lines(&world, "listened to for");
    assert_eq!(said, ["2000 #1 is listened to for a fax", "5000 #1 is listened to for a fax no more"]);
}

#[test]
fn an_offer_of_t38_counts_where_it_is_to() {
    for (watch, expected) in [
        (Some(WATCH), &["fax 1", "sent"][..]),
        (Some(FaxWatch { tone: false, ..WATCH }), &["fax 1", "sent"]),
        (Some(FaxWatch { offer: false, ..WATCH }), &["spoke"]),
        (None, &["spoke"]),
    ] {
        let mut world = calls("1", watch, &[]);
        world.run_until(at(4000));
        let ids: Vec<_> = world.shard.core.borrow().channels().map(|channel| channel.id).collect();
        world.shard.core.borrow_mut().fax_offered(ids[0]);
        world.run();
        assert_eq!(noted(&world), expected, "{watch:?}");
    }
}

#[test]
fn faxopt_looks_out_for_faxes_too() {
    for (how, expected) in [
        ("yes", &["yes", "fax 3", "sent"][..]),
        ("cng", &["cng", "fax 3", "sent"]),
        ("yes,10", &["yes,10", "fax 3", "sent"]),
        ("yes,2", &["yes,2", "spoke"]),
        ("t38", &["t38", "spoke"]),
        ("no", &["no", "spoke"]),
        ("yes,soon", &["yes,soon", "spoke"]),
    ] {
        let plan = PLAN.replace("${HOW}", how);
        let mut world = world(&plan);
        world.watch();
        world.shard.core.borrow_mut().reach = apps::reach;
        call(&mut world, "3", &[(5000, Act::FaxTone)]);
        world.run();
        assert_eq!(noted(&world), expected, "{how}");
        let warned = warnings(&world).iter().any(|line| line.contains("FAXOPT"));
        assert_eq!(warned, how == "yes,soon", "{how}: {:?}", warnings(&world));
    }
}
