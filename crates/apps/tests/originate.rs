//! Calls that nobody called in for: the verb and the application.

mod common;

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use apps::originate::{Originate, Placed, Then, originate};
use base::Cause;
use call::{Notice, PartyId};
use common::{call, location, noted, warnings, world};
use sim::{Act, Phone, World};

const BYE: Act = Act::Hangup(Cause::NORMAL_CLEARING);

fn phones(world: &mut World) {
    for (name, acts) in [
        ("answers", vec![(500, Act::Ring), (1000, Act::Answer), (5000, BYE)]),
        ("busy", vec![(500, Act::Hangup(Cause::USER_BUSY))]),
        ("congested", vec![(500, Act::Hangup(Cause::NORMAL_CIRCUIT_CONGESTION))]),
        ("declines", vec![(500, BYE)]),
        ("rings", vec![(500, Act::Ring)]),
    ] {
        world.phone(name, Phone { acts, refuses: None });
    }
    world.phone("absent", Phone { acts: Vec::new(), refuses: Some(Cause::SUBSCRIBER_ABSENT) });
}

const PLAN: &str =
    "[default]\nexten => 5,1,NoOp(${CHANNEL(state)} ${CALLERID(all)} ${x})\n same => n,Wait(2)\n";

fn at_rest(world: &World, name: &str) {
    assert_eq!(world.shard.core.borrow().channel_count(), 0, "{name}");
    assert_eq!((world.shard.stories(), world.open_streams()), (0, 0), "{name}");
}

fn placed(wanted: Originate) -> (World, Option<Placed>) {
    let mut world = world(PLAN);
    world.watch();
    phones(&mut world);
    let came = Rc::new(Cell::new(None));
    let told = came.clone();
    assert!(originate(&world.shard.clone(), wanted, move |placed| told.set(Some(placed))));
    world.run();
    at_rest(&world, "originate");
    let came = came.get();
    (world, came)
}

#[test]
fn every_outcome_is_told_to_who_asked_and_to_watchers() {
    for (phone, outcome, reason) in [
        ("SIM/answers", Placed::Answered, 4),
        ("SIM/busy", Placed::Refused(Cause::USER_BUSY), 0),
        ("SIM/congested", Placed::Refused(Cause::NORMAL_CIRCUIT_CONGESTION), 0),
        ("SIM/declines", Placed::Refused(Cause::NORMAL_CLEARING), 0),
        ("SIM/rings", Placed::TimedOut, 3),
        ("SIM/absent", Placed::Refused(Cause::SUBSCRIBER_ABSENT), 0),
        ("SIM/nobody", Placed::Refused(Cause::UNALLOCATED), 0),
        ("NONE/x", Placed::Refused(Cause::CHAN_NOT_IMPLEMENTED), 0),
        ("nonsense", Placed::Refused(Cause::CHAN_NOT_IMPLEMENTED), 0),
    ] {
        let (world, came) = placed(Originate {
            target: phone.to_owned(),
            then: Then::Exten(location("default", "5")),
            timeout: Duration::from_secs(3),
            action_id: Some("7".to_owned()),
            ..Originate::default()
        });
        assert_eq!(came, Some(outcome), "{phone}");
        let responses: Vec<_> = world
            .notices
            .iter()
            .filter_map(|notice| match notice {
                Notice::OriginateResponse { action_id, success, reason, location, .. } => {
                    Some((action_id.as_str(), *success, *reason, location.1.as_str()))
                }
                _ => None,
            })
            .collect();
        assert_eq!(responses, [("7", outcome == Placed::Answered, reason, "5")], "{phone}");
        assert_eq!(noted(&world).len(), usize::from(outcome == Placed::Answered), "{phone}");
        assert_eq!(world.cdrs.len(), usize::from(outcome == Placed::Answered), "{phone}: records");
    }
}

#[test]
fn an_originated_call_brings_its_caller_id_variables_and_account() {
    let (world, _) = placed(Originate {
        target: "SIM/answers".to_owned(),
        then: Then::Exten(location("default", "5")),
        caller: PartyId::parse("Bob <42>"),
        variables: vec![("x".to_owned(), "y".to_owned())],
        account: "acme".to_owned(),
        ..Originate::default()
    });
    assert_eq!(noted(&world), ["Up \"Bob\" <42> y"]);
    let record = &world.cdrs[0];
    assert_eq!((record.account.as_str(), record.dst.as_str(), record.billsec.as_secs()), ("acme", "5", 2));
    assert_eq!((record.duration.as_secs(), record.disposition.name()), (3, "ANSWERED"));
}

#[test]
fn an_application_runs_and_then_the_call_ends() {
    let app = |name: &str, data: &str| Originate {
        target: "SIM/answers".to_owned(),
        then: Then::App { name: name.to_owned(), data: data.to_owned() },
        ..Originate::default()
    };
    let (world, _) = placed(app("Playback", "hello"));
    assert!(world.transcript().contains(&"1000 #1 hears hello".to_owned()));
    assert!(world.transcript().contains(&"2000 SIM/answers-00000000 ends with 0".to_owned()));
    let (world, _) = placed(app("Nonsense", ""));
    assert!(warnings(&world).iter().any(|line| line.contains("Nonsense")));
}

#[test]
fn an_application_may_be_left_for_a_dialplan() {
    let mut world = world(PLAN);
    world.watch();
    world.phone(
        "sent",
        Phone {
            acts: vec![(1000, Act::Answer), (2000, Act::Redirect(location("default", "5")))],
            refuses: None,
        },
    );
    let then = Then::App { name: "Wait".to_owned(), data: "60".to_owned() };
    let wanted = Originate { target: "SIM/sent".to_owned(), then, ..Originate::default() };
    assert!(originate(&world.shard.clone(), wanted, |_| {}));
    world.run();
    assert_eq!(noted(&world).len(), 1);
    at_rest(&world, "redirect");
}

#[test]
fn the_application_says_how_it_came_out() {
    for (args, status) in [
        ("SIM/answers,exten,default,5,1", "SUCCESS"),
        ("SIM/answers,app,Playback,hello", "SUCCESS"),
        ("SIM/busy,exten,default,5,1", "BUSY"),
        ("SIM/congested,exten,default,5,1", "CONGESTION"),
        ("SIM/declines,exten,default,5,1", "HANGUP"),
        ("SIM/rings,exten,default,5,1,2", "RINGING"),
        ("SIM/nobody,exten,default,5,1", "FAILED"),
        (",exten,default,5,1", "FAILED"),
        ("SIM/answers,other,default", "FAILED"),
        ("SIM/busy,exten,default,5,1,,a", "SUCCESS"),
    ] {
        let mut world = world(&format!(
            "{PLAN}exten => 1,1,Answer(0)\n same => n,Originate({args})\n same => n,NoOp(${{ORIGINATE_STATUS}})\n"
        ));
        world.watch();
        phones(&mut world);
        call(&mut world, "1", &[]);
        world.run();
        at_rest(&world, args);
        assert!(
            noted(&world).contains(&status.to_owned()),
            "{args}: {:?} {:?}",
            noted(&world),
            warnings(&world)
        );
    }
}

#[test]
fn the_application_gives_caller_id_and_variables() {
    let mut world = world(&format!(
        "{PLAN}exten => 1,1,Originate(SIM/answers,exten,default,5,1,10,c(42)n(Bob)v(x=1^z=2))\n same => n,Wait(20)\n"
    ));
    world.watch();
    phones(&mut world);
    call(&mut world, "1", &[]);
    world.run();
    assert_eq!(noted(&world), ["Up \"Bob\" <42> 1"]);
}

#[test]
fn a_caller_who_hangs_up_takes_the_unanswered_call_with_him() {
    let mut world = world(&format!("{PLAN}exten => 1,1,Originate(SIM/rings,exten,default,5,1,60)\n"));
    phones(&mut world);
    call(&mut world, "1", &[(2000, BYE)]);
    world.run();
    at_rest(&world, "caller gone");
    assert!(world.transcript().contains(&"2000 SIM/rings-00000001 ends with 16".to_owned()));
}

#[test]
fn a_call_that_is_sent_elsewhere_goes_on_there() {
    for (name, to, outcome) in [
        ("to somebody who answers", "SIM/answers", Placed::Answered),
        ("to somebody who is busy", "SIM/busy", Placed::Refused(Cause::USER_BUSY)),
        ("to nobody", "SIM/nobody", Placed::Refused(Cause::REDIRECTED)),
        ("round in a circle", "SIM/circle", Placed::Refused(Cause::NORMAL_TEMPORARY_FAILURE)),
    ] {
        let mut world = world(PLAN);
        world.watch();
        phones(&mut world);
        for (phone, target) in [("sends", to), ("circle", "SIM/circle")] {
            let acts = vec![(500, Act::Forward(target.to_owned()))];
            world.phone(phone, Phone { acts, refuses: None });
        }
        let came = Rc::new(Cell::new(None));
        let told = came.clone();
        let wanted = Originate {
            target: "SIM/sends".into(),
            then: Then::Exten(location("default", "5")),
            ..Originate::default()
        };
        assert!(originate(&world.shard.clone(), wanted, move |placed| told.set(Some(placed))));
        world.run();
        at_rest(&world, name);
        assert_eq!(came.get(), Some(outcome), "{name}");
        let forwards = world.notices.iter().filter_map(|notice| match notice {
            Notice::DialEnd { status: "CANCEL", forward: Some(forward), forwarded, .. } => {
                Some((forward.clone(), forwarded.is_some()))
            }
            _ => None,
        });
        let first = forwards.clone().next();
        assert_eq!(first, Some((to.to_owned(), to != "SIM/nobody")), "{name}");
    }
}
