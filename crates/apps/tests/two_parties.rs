//! The run loop around Dial: what a caller's dialplan does with what became of the called phone.

mod common;

use base::Cause;
use common::{call, noted, warnings, world};
use sim::{Act, Phone, World};

fn dialled(dialplan: &str, phone: Phone, caller: &[(u64, Act)]) -> World {
    let mut world = world(&format!("[default]\n{dialplan}\n"));
    world.watch();
    world.phone("6002", phone);
    call(&mut world, "1", caller);
    world.run();
    world
}

fn acts(acts: Vec<(u64, Act)>) -> Phone {
    Phone { acts, refuses: None }
}

#[test]
fn an_answered_call_ends_with_h_when_either_hangs_up() {
    for (name, phone, caller) in [
        (
            "the called party",
            acts(vec![(1000, Act::Ring), (3000, Act::Answer), (8000, Act::Hangup(Cause::NORMAL_CLEARING))]),
            vec![],
        ),
        (
            "the caller",
            acts(vec![(1000, Act::Ring), (3000, Act::Answer)]),
            vec![(8000, Act::Hangup(Cause::NORMAL_CLEARING))],
        ),
    ] {
        let world = dialled(
            "exten => 1,1,Dial(SIM/6002,20)\n same => n,NoOp(no)\nexten => h,1,NoOp(${DIALSTATUS} ${ANSWEREDTIME})",
            phone,
            &caller,
        );
        assert_eq!(noted(&world), ["ANSWER 5"], "{name}: {:?}", warnings(&world));
        let record = &world.cdrs[0];
        assert_eq!((record.dst.as_str(), record.last_app.as_str()), ("1", "Dial"), "{name}");
        assert_eq!((record.duration.as_secs(), record.billsec.as_secs()), (8, 5), "{name}");
        assert_eq!(world.shard.core.borrow().channel_count(), 0, "{name}");
    }
}

#[test]
fn a_refused_call_goes_on_with_its_status_and_the_caller_is_told_the_cause() {
    for (name, phone, expected, cause) in [
        ("busy", acts(vec![(500, Act::Hangup(Cause::USER_BUSY))]), "BUSY 17", 17),
        ("nobody is there", acts(vec![(500, Act::Ring)]), "NOANSWER 0", 0),
        (
            "not registered",
            Phone { acts: vec![], refuses: Some(Cause::SUBSCRIBER_ABSENT) },
            "CHANUNAVAIL 20",
            34,
        ),
    ] {
        let world = dialled(
            "exten => 1,1,Dial(SIM/6002,5)\n same => n,NoOp(${DIALSTATUS} ${HANGUPCAUSE})",
            phone,
            &[],
        );
        assert_eq!(noted(&world), [expected], "{name}");
        let end = world.transcript().pop().unwrap_or_default();
        assert!(end.ends_with(&format!("SIM/6001-00000000 ends with {cause}")), "{name}: {end}");
    }
}

#[test]
fn how_the_called_phone_ended_can_be_asked_by_its_channel() {
    let world = dialled(
        "exten => 1,1,Dial(SIM/6002,20)\n same => n,Set(leg=${HANGUPCAUSE_KEYS()})\n same => n,NoOp(${leg} ${HANGUPCAUSE(${leg},ast)})",
        acts(vec![(500, Act::Hangup(Cause::USER_BUSY))]),
        &[],
    );
    assert_eq!(noted(&world), ["SIM/6002-00000001 User busy"]);
}

#[test]
fn a_routine_on_the_called_party_runs_before_the_two_talk_and_leaves_no_trace_in_the_record() {
    let world = dialled(
        "exten => 1,1,Dial(SIM/6002,20,U(sub^hello))\n[sub]\nexten => s,1,NoOp(${ARG1} ${CHANNEL})\n same => n,Return()",
        acts(vec![(1000, Act::Answer), (4000, Act::Hangup(Cause::NORMAL_CLEARING))]),
        &[],
    );
    assert_eq!(noted(&world), ["hello SIM/6002-00000001"], "{:?}", warnings(&world));
    assert_eq!((world.cdrs[0].dst.as_str(), world.cdrs[0].last_app.as_str()), ("1", "Dial"));
}
