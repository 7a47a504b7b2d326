//! Dial while it rings: results, races, what the caller hears, and the record that each leaves.

mod common;

use std::time::Duration;

use base::Cause;
use call::Notice;
use common::{
    BYE, SHOW, answers, at, at_rest, call, dialled, ends, in_order, lines, noted, phone, refusing, run,
    talks, warnings, world,
};
use sim::{Act, Phone};

#[test]
fn how_a_dial_ends_is_told_in_variables_and_in_a_record_for_each_leg() {
    type Row<'a> = (&'a str, &'a str, Vec<(&'a str, Phone)>, Vec<(u64, Act)>, Vec<&'a str>, &'a str);
    let rows: Vec<Row> = vec![
        (
            "answered",
            "Dial(SIM/6002,20)",
            vec![("6002", talks())],
            vec![],
            vec!["h ANSWER"],
            "ANSWERED 5 SIM/6002-00000001",
        ),
        (
            "option g",
            "Dial(SIM/6002,20,g)",
            vec![("6002", talks())],
            vec![],
            vec!["ANSWER/SIM/6002-00000001/6002/5/8/1000", "h ANSWER"],
            "ANSWERED 5 SIM/6002-00000001",
        ),
        (
            "busy",
            "Dial(SIM/6002,20)",
            vec![("6002", phone(&[(500, Act::Hangup(Cause::USER_BUSY))]))],
            vec![],
            vec!["BUSY/////", "h BUSY"],
            "BUSY 0 SIM/6002-00000001",
        ),
        (
            "congestion",
            "Dial(SIM/6002,20)",
            vec![("6002", phone(&[(500, Act::Hangup(Cause::NORMAL_CIRCUIT_CONGESTION))]))],
            vec![],
            vec!["CONGESTION/////", "h CONGESTION"],
            "FAILED 0 SIM/6002-00000001",
        ),
        (
            "rejected",
            "Dial(SIM/6002,20)",
            vec![("6002", phone(&[(500, Act::Hangup(Cause::CALL_REJECTED))]))],
            vec![],
            vec!["CHANUNAVAIL/////", "h CHANUNAVAIL"],
            "NO ANSWER 0 SIM/6002-00000001",
        ),
        (
            "not registered: no second party, no record",
            "Dial(SIM/6002,20)",
            vec![("6002", refusing(Cause::SUBSCRIBER_ABSENT))],
            vec![],
            vec!["CHANUNAVAIL/////", "h CHANUNAVAIL"],
            "",
        ),
        ("no such phone", "Dial(SIM/6009,20)", vec![], vec![], vec!["CHANUNAVAIL/////", "h CHANUNAVAIL"], ""),
        (
            "no such technology",
            "Dial(NO/6009,20)",
            vec![],
            vec![],
            vec!["CHANUNAVAIL/////", "h CHANUNAVAIL"],
            "",
        ),
        ("no technology", "Dial(6009)", vec![], vec![], vec!["CHANUNAVAIL/////", "h CHANUNAVAIL"], ""),
        (
            "nobody answers in time",
            "Dial(SIM/6002,2)",
            vec![("6002", answers())],
            vec![],
            vec!["NOANSWER/////1000", "h NOANSWER"],
            "NO ANSWER 0 SIM/6002-00000001",
        ),
        (
            "timeouts may have fractions",
            "Dial(SIM/6002,1.25)",
            vec![("6002", answers())],
            vec![],
            vec!["NOANSWER/////1000", "h NOANSWER"],
            "NO ANSWER 0 SIM/6002-00000001",
        ),
        (
            "silent legs are given up before the timeout",
            "Dial(SIM/6002,8^3)",
            vec![("6002", phone(&[]))],
            vec![],
            vec!["CHANUNAVAIL/////", "h CHANUNAVAIL"],
            "FAILED 0 SIM/6002-00000001",
        ),
        (
            "silent legs are given up without a timeout",
            "Dial(SIM/6002,^3)",
            vec![("6002", phone(&[]))],
            vec![],
            vec!["CHANUNAVAIL/////", "h CHANUNAVAIL"],
            "FAILED 0 SIM/6002-00000001",
        ),
        (
            "a leg that rings in time has the whole timeout",
            "Dial(SIM/6002,2^1.5)",
            vec![("6002", answers())],
            vec![],
            vec!["NOANSWER/////1000", "h NOANSWER"],
            "NO ANSWER 0 SIM/6002-00000001",
        ),
        (
            "nothing behind the sign is no second timeout",
            "Dial(SIM/6002,2^)",
            vec![("6002", answers())],
            vec![],
            vec!["NOANSWER/////1000", "h NOANSWER"],
            "NO ANSWER 0 SIM/6002-00000001",
        ),
        (
            "the phone gives up ringing",
            "Dial(SIM/6002,20)",
            vec![("6002", phone(&[(500, Act::Hangup(Cause::NO_ANSWER))]))],
            vec![],
            vec!["NOANSWER/////", "h NOANSWER"],
            "NO ANSWER 0 SIM/6002-00000001",
        ),
        (
            "the caller hangs up first",
            "Dial(SIM/6002,20)",
            vec![("6002", answers())],
            vec![(2000, BYE)],
            vec!["h CANCEL"],
            "NO ANSWER 0 SIM/6002-00000001",
        ),
        (
            "the caller hangs up later",
            "Dial(SIM/6002,20,g)",
            vec![("6002", answers())],
            vec![(6000, BYE)],
            vec!["h ANSWER"],
            "ANSWERED 3 SIM/6002-00000001",
        ),
        ("no argument ends the call", "Dial()", vec![], vec![], vec!["h INVALIDARGS"], ""),
        (
            "a limit that is none ends the call",
            "Dial(SIM/6002,,L(x))",
            vec![("6002", talks())],
            vec![],
            vec!["h INVALIDARGS"],
            "",
        ),
        (
            "a bad timeout rings on",
            "Dial(SIM/6002,soon)",
            vec![("6002", talks())],
            vec![],
            vec!["h ANSWER"],
            "ANSWERED 5 SIM/6002-00000001",
        ),
        (
            "an unknown letter is logged and nothing more",
            "Dial(SIM/6002,,%)",
            vec![("6002", talks())],
            vec![],
            vec!["h ANSWER"],
            "ANSWERED 5 SIM/6002-00000001",
        ),
        (
            "all busy",
            "Dial(SIM/6002&SIM/6003)",
            vec![
                ("6002", phone(&[(500, Act::Hangup(Cause::USER_BUSY))])),
                ("6003", phone(&[(700, Act::Hangup(Cause::USER_BUSY))])),
            ],
            vec![],
            vec!["BUSY/////", "h BUSY"],
            "BUSY 0 SIM/6002-00000001 | BUSY 0 SIM/6003-00000002",
        ),
        (
            "one busy, one unavailable",
            "Dial(SIM/6002&SIM/6003)",
            vec![
                ("6002", phone(&[(500, Act::Hangup(Cause::USER_BUSY))])),
                ("6003", refusing(Cause::SUBSCRIBER_ABSENT)),
            ],
            vec![],
            vec!["BUSY/////", "h BUSY"],
            "BUSY 0 SIM/6002-00000001",
        ),
        (
            "one busy, one that nobody answers",
            "Dial(SIM/6002&SIM/6003,2)",
            vec![("6002", phone(&[(500, Act::Hangup(Cause::USER_BUSY))])), ("6003", answers())],
            vec![],
            vec!["NOANSWER/////1000", "h NOANSWER"],
            "BUSY 0 SIM/6002-00000001 | NO ANSWER 0 SIM/6003-00000002",
        ),
        (
            "S ends it",
            "Dial(SIM/6002,,S(2))",
            vec![("6002", answers())],
            vec![],
            vec!["h ANSWER"],
            "ANSWERED 2 SIM/6002-00000001",
        ),
        (
            "S with g goes on",
            "Dial(SIM/6002,,S(2)g)",
            vec![("6002", answers())],
            vec![],
            vec!["ANSWER/SIM/6002-00000001/6002/2/5/1000", "h ANSWER"],
            "ANSWERED 2 SIM/6002-00000001",
        ),
        (
            "H while it rings goes on",
            "Dial(SIM/6002,,H)",
            vec![("6002", answers())],
            vec![(2000, Act::Press('*'))],
            vec!["CANCEL/////1000", "h CANCEL"],
            "NO ANSWER 0 SIM/6002-00000001",
        ),
        (
            "H while they talk ends it",
            "Dial(SIM/6002,,H)",
            vec![("6002", answers())],
            vec![(5000, Act::Press('*'))],
            vec!["h ANSWER"],
            "ANSWERED 2 SIM/6002-00000001",
        ),
        (
            "h by the called party",
            "Dial(SIM/6002,,hg)",
            vec![("6002", phone(&[(3000, Act::Answer), (5000, Act::PressRelayed('*'))]))],
            vec![],
            vec!["ANSWER/SIM/6002-00000001/6002/2/5/", "h ANSWER"],
            "ANSWERED 2 SIM/6002-00000001",
        ),
        (
            "without H a star is a digit",
            "Dial(SIM/6002)",
            vec![("6002", talks())],
            vec![(5000, Act::Press('*'))],
            vec!["h ANSWER"],
            "ANSWERED 5 SIM/6002-00000001",
        ),
        (
            "no RTP for too long",
            "Dial(SIM/6002)",
            vec![("6002", phone(&[(3000, Act::Answer), (5000, Act::MediaTimeout)]))],
            vec![],
            vec!["h ANSWER"],
            "ANSWERED 2 SIM/6002-00000001",
        ),
    ];
    for (name, dial, phones, caller, expected, record) in rows {
        let world = dialled(&format!("exten => 1,1,{dial}{SHOW}"), &phones, &caller);
        assert_eq!(noted(&world), expected, "{name}: {:?}", warnings(&world));
        let records: Vec<String> = world
            .cdrs
            .iter()
            // What the caller does after a conversation is a record of nobody else.
            .filter(|r| !r.dst_channel.is_empty())
            .map(|r| format!("{} {} {}", r.disposition.name(), r.billsec.as_secs(), r.dst_channel))
            .collect();
        let expected: Vec<&str> = record.split(" | ").filter(|record| !record.is_empty()).collect();
        assert_eq!(records, expected, "{name}");
        assert!(
            world.cdrs.iter().all(|r| r.dst == "1" && r.last_app == "Dial" || r.last_app == "NoOp"),
            "{name}"
        );
    }
}

#[test]
fn the_first_answer_wins_and_the_others_learn_that_it_was_answered_elsewhere() {
    let world = dialled(
        &format!("exten => 1,1,Dial(SIM/6002&SIM/6003&SIM/6004,20,g){SHOW}"),
        &[("6002", answers()), ("6003", phone(&[(2000, Act::Answer), (4000, BYE)])), ("6004", answers())],
        &[],
    );
    assert_eq!(noted(&world)[0], "ANSWER/SIM/6003-00000002/6003/2/4/1000");
    in_order(
        &world,
        &[
            "2000 SIM/6002-00000001 ends with 26",
            "2000 SIM/6004-00000003 ends with 26",
            "2000 SIM/6001-00000000 is answered",
        ],
    );
    assert_eq!(ends(&world), ["CANCEL", "CANCEL", "ANSWER"]);
    let records: Vec<_> = world
        .cdrs
        .iter()
        .map(|r| (r.disposition.name(), r.dst_channel.as_str(), r.duration.as_secs(), r.sequence))
        .collect();
    assert_eq!(
        records,
        [
            ("NO ANSWER", "SIM/6002-00000001", 2, 0),
            ("ANSWERED", "SIM/6003-00000002", 4, 4),
            ("NO ANSWER", "SIM/6004-00000003", 2, 5),
            ("ANSWERED", "", 0, 6),
        ]
    );
    assert!(world.cdrs[..3].iter().all(|r| r.last_app == "Dial" && r.dst == "1"), "{:?}", world.cdrs);
}

#[test]
fn dialling_begins_no_other_record_where_the_site_says_so() {
    for (ignored, expected) in [(false, 3), (true, 0)] {
        let mut world =
            world("[default]\nexten => 1,1,Dial(SIM/6002&SIM/6003,20,g)\n same => n,Dial(SIM/6004,20,g)\n");
        world.settings(|settings| settings.cdr_ignore_dialling = ignored);
        for name in ["6002", "6003", "6004"] {
            world.phone(name, phone(&[(1000, Act::Hangup(Cause::USER_BUSY))]));
        }
        call(&mut world, "1", &[]);
        world.run();
        assert_eq!(world.cdrs.len(), expected, "{ignored}: {:?}", world.cdrs);
    }
}

#[test]
fn two_answers_at_once_leave_one_conversation() {
    let both = || phone(&[(2000, Act::Answer), (4000, BYE)]);
    let world = dialled("exten => 1,1,Dial(SIM/6002&SIM/6003)", &[("6002", both()), ("6003", both())], &[]);
    assert_eq!(lines(&world, "talk"), ["2000 #1 and #2 talk", "4000 #1 talks no more"]);
    assert_eq!(lines(&world, "ends with 26"), ["2000 SIM/6003-00000002 ends with 26"]);
}

#[test]
fn a_caller_who_hangs_up_at_the_moment_of_the_answer_talks_to_nobody() {
    let world = dialled("exten => 1,1,Dial(SIM/6002)", &[("6002", answers())], &[(3000, BYE)]);
    assert!(lines(&world, "talk").is_empty(), "{:?}", world.transcript());
    assert_eq!((world.cdrs.len(), world.cdrs[0].billsec), (1, Duration::ZERO));
}

#[test]
fn a_dial_after_a_dial_begins_another_record() {
    let busy = phone(&[(500, Act::Hangup(Cause::USER_BUSY))]);
    let world = dialled(
        "exten => 1,1,Dial(SIM/6002,20)\n same => n,Playback(busy)\n same => n,Dial(SIM/6003,20)",
        &[("6002", busy), ("6003", talks())],
        &[],
    );
    let records: Vec<_> = world
        .cdrs
        .iter()
        .map(|r| {
            (r.disposition.name(), r.dst_channel.as_str(), r.last_data.as_str(), r.sequence, r.dst.as_str())
        })
        .collect();
    assert_eq!(
        records,
        [
            // The attempt is over before Playback answers the caller; numbers count the records of legs, too.
            ("BUSY", "SIM/6002-00000001", "SIM/6002,20", 0, "1"),
            ("ANSWERED", "SIM/6003-00000002", "SIM/6003,20", 2, "1"),
        ]
    );
}

#[test]
fn what_the_caller_hears_while_it_rings() {
    let early = || phone(&[(500, Act::Ring), (1000, Act::Progress), (3000, Act::Answer), (4000, BYE)]);
    let quiet = || phone(&[(3000, Act::Answer), (4000, BYE)]);
    type Row<'a> = (&'a str, &'a str, Vec<(&'a str, Phone)>, Vec<&'a str>);
    let rows: Vec<Row> = vec![
        (
            "ringing is passed on, once",
            "Dial(SIM/6002&SIM/6003)",
            vec![("6002", talks()), ("6003", talks())],
            vec!["1000 SIM/6001-00000000 is told it rings"],
        ),
        ("nothing is told that is not so", "Dial(SIM/6002)", vec![("6002", quiet())], vec![]),
        (
            "r rings at once",
            "Dial(SIM/6002,,r)",
            vec![("6002", quiet())],
            vec!["0 SIM/6001-00000000 is told it rings"],
        ),
        (
            "r hides early audio",
            "Dial(SIM/6002,,r)",
            vec![("6002", early())],
            vec!["0 SIM/6001-00000000 is told it rings"],
        ),
        (
            "r(tone) is early media",
            "Dial(SIM/6002,,r(info))",
            vec![("6002", quiet())],
            vec!["0 SIM/6001-00000000 is told of early audio", "0 #1 hears tone info"],
        ),
        (
            "R rings until there is audio",
            "Dial(SIM/6002,,R)",
            vec![("6002", early())],
            vec![
                "0 SIM/6001-00000000 is told it rings",
                "500 SIM/6001-00000000 is told it rings",
                "1000 SIM/6001-00000000 is told of early audio",
                "1000 #1 and #2 talk",
            ],
        ),
        (
            "a single leg's early audio is heard",
            "Dial(SIM/6002)",
            vec![("6002", early())],
            vec![
                "500 SIM/6001-00000000 is told it rings",
                "1000 SIM/6001-00000000 is told of early audio",
                "1000 #1 and #2 talk",
            ],
        ),
        (
            "of two legs none is heard",
            "Dial(SIM/6002&SIM/6003)",
            vec![("6002", early()), ("6003", answers())],
            vec!["500 SIM/6001-00000000 is told it rings"],
        ),
        (
            "m is music",
            "Dial(SIM/6002,,m(jazz))",
            vec![("6002", early())],
            vec!["0 SIM/6001-00000000 is told of early audio", "0 #1 hears music jazz"],
        ),
        (
            "m without a class is the channel's",
            "Dial(SIM/6002,,m)",
            vec![("6002", quiet())],
            vec!["0 SIM/6001-00000000 is told of early audio", "0 #1 hears music default"],
        ),
    ];
    for (name, dial, phones, expected) in rows {
        let world = dialled(&format!("exten => 1,1,{dial}"), &phones, &[]);
        let before: Vec<String> = world
            .transcript()
            .into_iter()
            .take_while(|line| !line.contains("is answered"))
            .filter(|line| line.contains("told") || line.contains("hears") || line.contains(" talk"))
            .filter(|line| !line.contains("talks no more"))
            .collect();
        assert_eq!(before, expected, "{name}");
    }
}

#[test]
fn a_caller_who_is_up_hears_a_tone_and_it_ends_with_the_answer() {
    let mut world = world("[default]\nexten => 1,1,Answer(0)\n same => n,Dial(SIM/6002)\n");
    world.phone("6002", talks());
    let id = call(&mut world, "1", &[]);
    world.run_until(at(2000));
    assert_eq!(world.endless_sound(id).as_deref(), Some("tone ring"));
    world.run_until(at(4000));
    assert_eq!((world.endless_sound(id), world.joins()), (None, 1));
    world.run();
    at_rest(&world, "up");
}

#[test]
fn music_for_the_caller_ends_however_the_dial_does() {
    for (name, phone, until) in [
        ("answer", talks(), 4000),
        ("busy", phone(&[(500, Act::Hangup(Cause::USER_BUSY))]), 1000),
        ("timeout", answers(), 2500),
    ] {
        let timeout = if name == "timeout" { "2" } else { "" };
        let mut world =
            world(&format!("[default]\nexten => 1,1,Dial(SIM/6002,{timeout},m)\n same => n,Wait(60)\n"));
        world.watch();
        world.phone("6002", phone);
        let id = call(&mut world, "1", &[]);
        world.run_until(at(400));
        assert_eq!(world.endless_sound(id).as_deref(), Some("music default"), "{name}");
        world.run_until(at(until));
        assert_eq!(world.endless_sound(id), None, "{name}");
        let stops = world.notices.iter().filter(|n| matches!(n, Notice::MusicOnHoldStop(_))).count();
        assert_eq!(stops, 1, "{name}");
    }
}

#[test]
fn caller_ids_of_a_leg() {
    for (name, options, stored, shown) in [
        ("plain: its own number, the caller's is shown", "", "6002", "\"Alice\" <6001>"),
        ("f(id)", "f(Sales <100>)", "6002", "\"Sales\" <100>"),
        ("f: this extension and its hint's name", "f", "6002", "\"Reception\" <1>"),
        ("o: the caller's is the leg's own", "o", "6001", "\"Alice\" <6001>"),
        ("o(id)", "o(<77>)", "77", "\"Alice\" <6001>"),
        ("s and u of no f are not looked at", "s(vip)u(prohib)", "6002", "\"Alice\" <6001>"),
    ] {
        let world = dialled(
            &format!(
                "exten => 1,1,Dial(SIM/6002,,{options}b(sub^s^1))\nexten => 1,hint,SIM/6002,Reception\n[sub]\nexten => s,1,NoOp(${{CALLERID(num)}} ${{CONNECTEDLINE(all)}})\n same => n,Return()"
            ),
            &[("6002", talks())],
            &[],
        );
        assert_eq!(noted(&world), [format!("{stored} {shown}")], "{name}");
    }
}

#[test]
fn variables_are_inherited_by_their_prefix() {
    let world = dialled(
        "exten => 1,1,Set(a=1)\n same => n,Set(_b=2)\n same => n,Set(__c=3)\n same => n,Dial(SIM/6002,,b(sub^s^1))\n[sub]\nexten => s,1,NoOp(${a}${b}${c})\n same => n,Return()",
        &[("6002", talks())],
        &[],
    );
    assert_eq!(noted(&world), ["23"]);
}

#[test]
fn a_leg_may_send_the_call_elsewhere() {
    let forward = |to: &str| phone(&[(1000, Act::Forward(to.to_owned()))]);
    let world = dialled(
        "exten => 1,1,Dial(SIM/6002,20)\nexten => h,1,NoOp(${DIALSTATUS} ${DIALEDPEERNUMBER})",
        &[("6002", forward("SIM/6003")), ("6003", talks())],
        &[],
    );
    // Whom a phone sends the call to was not dialled.
    assert_eq!(noted(&world), ["ANSWER "]);
    let looping = dialled(
        "exten => 1,1,Dial(SIM/6002,60)\n same => n,NoOp(${DIALSTATUS})",
        &[("6002", forward("SIM/6003")), ("6003", forward("SIM/6002"))],
        &[],
    );
    assert_eq!(noted(&looping), ["CHANUNAVAIL"]);
}

#[test]
fn who_sends_a_call_on_is_named_on_the_next_leg_which_rings_before_the_one_before_it_ends() {
    let forward = phone(&[(1000, Act::Forward("SIM/6003".to_owned()))]);
    let world =
        dialled("exten => 1,1,Dial(SIM/6002,20)", &[("6002", forward), ("6003", talks())], &[(9000, BYE)]);
    let told: Vec<String> = world
        .notices
        .iter()
        .filter_map(|notice| match notice {
            Notice::NewChannel(channel) => Some(format!("new {}", channel.name)),
            Notice::VarSet { channel: Some(channel), variable, value } => {
                (variable == "FORWARDERNAME").then(|| format!("{} by '{value}'", channel.name))
            }
            Notice::DialBegin { dest, .. } => Some(format!("begin {}", dest.name)),
            Notice::DialEnd { dest, status, forward, .. } => {
                Some(format!("end {} {status} {forward:?}", dest.name))
            }
            Notice::BridgeEnter { channel, .. } => Some(format!("enter {}", channel.name)),
            _ => None,
        })
        .collect();
    assert_eq!(
        told,
        [
            "new SIM/6001-00000000",
            "new SIM/6002-00000001",
            "begin SIM/6002-00000001",
            "new SIM/6003-00000002",
            "SIM/6003-00000002 by 'SIM/6002-00000001'",
            "end SIM/6002-00000001 CANCEL Some(\"SIM/6003\")",
            "begin SIM/6003-00000002",
            "end SIM/6003-00000002 ANSWER None",
            "enter SIM/6003-00000002",
            // It has arrived.
            "SIM/6003-00000002 by ''",
            "enter SIM/6001-00000000",
        ]
    );
}

#[test]
fn a_caller_who_is_refused_is_seen_busy_and_ends_the_call_himself() {
    for (name, step, cause) in [
        ("Busy", "Busy(3)", Cause::USER_BUSY),
        ("Congestion", "Congestion()", Cause::NORMAL_CIRCUIT_CONGESTION),
        ("the dialplan runs out after a Dial", "Dial(SIM/6002,20)", Cause::USER_BUSY),
    ] {
        let plan = format!("exten => 1,1,{step}");
        let world = dialled(&plan, &[("6002", refusing(Cause::USER_BUSY))], &[]);
        let told: Vec<String> = world
            .notices
            .iter()
            .filter_map(|notice| match notice {
                Notice::NewState(channel) if channel.name.contains("6001") => {
                    Some(format!("{:?}", channel.state))
                }
                Notice::HangupRequest { channel, cause } if channel.name.contains("6001") => {
                    Some(format!("{cause:?}"))
                }
                _ => None,
            })
            .collect();
        assert_eq!(told, ["Busy".to_owned(), format!("{:?}", Some(cause))], "{name}");
    }
}

#[test]
fn a_forced_caller_id_has_its_tag_and_its_presentation() {
    for (options, expected) in [
        ("f(<100>)", "100 allowed_not_screened "),
        ("f(<100>)u(prohib)s(vip)", "100 prohib vip"),
        ("f(<100>)u(unavailable)", "100 unavailable "),
    ] {
        let seen = "${CONNECTEDLINE(num)} ${CONNECTEDLINE(num-pres)} ${CONNECTEDLINE(tag)}";
        let world = dialled(
            &format!(
                "exten => 1,1,Dial(SIM/6002,,{options}b(sub^s^1))\n[sub]\nexten => s,1,NoOp({seen})\n same => n,Return()"
            ),
            &[("6002", talks())],
            &[],
        );
        assert_eq!(noted(&world), [expected], "{options}");
    }
}

#[test]
fn forwarding_is_refused_with_i_and_ends_the_timeout_with_z() {
    let forward = |to: &str| phone(&[(1000, Act::Forward(to.to_owned()))]);
    let late = || phone(&[(9000, Act::Answer), (20_000, BYE)]);
    for (options, expected) in [("", "NOANSWER"), ("i", "BUSY"), ("z", "ANSWER")] {
        let world = dialled(
            &format!(
                "exten => 1,1,Dial(SIM/6002,5,{options})\n same => n,Hangup()\nexten => h,1,NoOp(${{DIALSTATUS}})"
            ),
            &[("6002", forward("SIM/6003")), ("6003", late())],
            &[],
        );
        assert_eq!(noted(&world), [expected], "{options}");
    }
}

#[test]
fn q_says_what_the_others_are_told_of_an_answer() {
    for (options, cause) in [("", 26), ("Q(USER_BUSY)", 17), ("Q(31)", 31), ("Q(NONE)", 0)] {
        let world = dialled(
            &format!("exten => 1,1,Dial(SIM/6002&SIM/6003,,{options})"),
            &[("6002", phone(&[(500, Act::Ring)])), ("6003", talks())],
            &[],
        );
        let ends = lines(&world, "6002-00000001 ends");
        assert!(ends.iter().all(|line| line.ends_with(&format!("ends with {cause}"))), "{options}: {ends:?}");
        assert_eq!(ends.len(), 1, "{options}");
    }
}

#[test]
fn c_in_capitals_begins_the_record_anew() {
    for (options, expected) in [("", "old"), ("C", "")] {
        let world = dialled(
            &format!(
                "exten => 1,1,Set(CDR(userfield)=old)\n same => n,Wait(5)\n same => n,Dial(SIM/6002,,{options})"
            ),
            &[("6002", talks())],
            &[],
        );
        assert_eq!(world.cdrs[0].user_field, expected, "{options}");
    }
}

#[test]
fn who_answers_decides_and_the_site_remembers() {
    let keys = |key: char| phone(&[(1000, Act::Answer), (4500, Act::Press(key)), (40_000, BYE)]);
    let silent = || phone(&[(1000, Act::Answer), (60_000, BYE)]);
    type Row<'a> = (&'a str, &'a str, &'a str, Phone, &'a str);
    let rows: Vec<Row> = vec![
        ("1 talks", "p", "", keys('1'), "ANSWER/"),
        ("2 is no answer", "p", "", keys('2'), "NOANSWER/"),
        ("3 torments", "p", "", keys('3'), "TORTURE/"),
        ("4 wants no call", "p", "", keys('4'), "DONTCALL/"),
        ("5 is no key of p", "p", "", keys('5'), "NOANSWER/"),
        ("nothing is pressed", "p", "", silent(), "NOANSWER/"),
        ("P keeps what was decided below the extension", "P", "", keys('1'), "ANSWER/ALLOW"),
        ("P, no", "P", "", keys('2'), "NOANSWER/DENY"),
        ("P, torment", "P", "", keys('3'), "TORTURE/TORTURE"),
        ("P, never", "P", "", keys('4'), "DONTCALL/KILL"),
        ("P, from the next call on", "P", "", keys('5'), "NOANSWER/ALLOW"),
        ("who is let in is not asked about", "P", "ALLOW", talks(), "ANSWER/ALLOW"),
        ("who is not let in rings nowhere", "P", "DENY", talks(), "NOANSWER/DENY"),
        ("nor who is tormented", "P", "TORTURE", talks(), "TORTURE/TORTURE"),
        ("nor who is never wanted", "P", "KILL", talks(), "DONTCALL/KILL"),
        ("N lets callers in who have a number", "PN", "", talks(), "ANSWER/"),
        ("n keeps no name", "pn", "", keys('1'), "ANSWER/"),
    ];
    for (name, option, before, phone, expected) in rows {
        let known = "${DB(privacy/1/6001)}";
        let set = if before.is_empty() { String::new() } else { format!("Set(DB(privacy/1/6001)={before})") };
        let world = dialled(
            &format!(
                "exten => 1,1,NoOp()\n same => n,{set}\n same => n,Dial(SIM/6002,20,{option})\n same => n,Hangup()\n                 exten => h,1,Set(IS=${{DIALSTATUS}}/{known})\n same => n,NoOp(${{IS}})",
                set = if set.is_empty() { "NoOp()" } else { &set },
            ),
            &[("6002", phone)],
            &[(50_000, BYE)],
        );
        let shown: Vec<String> = noted(&world).into_iter().filter(|line| !line.is_empty()).collect();
        assert_eq!(shown, [expected], "{name}: {:#?}", world.transcript());
        let asked = lines(&world, "hears priv-callpending").len();
        let is_asked = option != "PN" && before.is_empty();
        assert_eq!(asked, usize::from(is_asked), "{name}: {:#?}", world.transcript());
    }
}

#[test]
fn a_caller_who_gives_up_while_somebody_decides_leaves_nobody_behind() {
    let world = dialled(
        "exten => 1,1,Dial(SIM/6002,20,p)\nexten => h,1,NoOp(${DIALSTATUS})",
        &[("6002", phone(&[(1000, Act::Answer)]))],
        &[(9000, BYE)],
    );
    assert_eq!(lines(&world, "ends with").len(), 2, "{:#?}", world.transcript());
}

#[test]
fn nothing_of_an_earlier_dial_shows_in_the_next() {
    let world = dialled(
        &format!("exten => 1,1,Dial(SIM/6002,20,g)\n same => n,Dial(SIM/6009){SHOW}"),
        &[("6002", talks())],
        &[],
    );
    assert_eq!(noted(&world)[0], "CHANUNAVAIL/////");
}

#[test]
fn c_tells_the_legs_of_an_answer_elsewhere_when_the_caller_gives_up() {
    for (options, cause) in [("", 16), ("c", 26)] {
        let world = dialled(
            &format!("exten => 1,1,Dial(SIM/6002,,{options})"),
            &[("6002", answers())],
            &[(2000, BYE)],
        );
        assert_eq!(
            lines(&world, "6002-00000001 ends"),
            [format!("2000 SIM/6002-00000001 ends with {cause}")]
        );
    }
}

#[test]
fn rfc3326_3_1_legs_hear_that_the_call_was_answered_elsewhere_from_a_caller_who_was_told_so() {
    for (cause, told) in [(Cause::ANSWERED_ELSEWHERE, 26), (Cause::USER_BUSY, 17), (Cause::INTERWORKING, 127)]
    {
        let world = dialled(
            "exten => 1,1,Dial(SIM/6002&SIM/6003)",
            &[("6002", answers()), ("6003", answers())],
            &[(2000, Act::Hangup(cause))],
        );
        for leg in ["SIM/6002-00000001", "SIM/6003-00000002"] {
            assert_eq!(lines(&world, &format!("{leg} ends")), [format!("2000 {leg} ends with {told}")]);
        }
    }
}

#[test]
fn digits_reach_a_menu_that_talks_before_it_answers() {
    let world = dialled(
        "exten => 1,1,Dial(SIM/6002,5)",
        &[("6002", phone(&[(500, Act::Progress)]))],
        &[(400, Act::Press('1')), (1000, Act::Press('2'))],
    );
    assert_eq!(lines(&world, "digit"), ["1000 #2 is sent digit 2"]);
}

#[test]
fn digits_typed_while_answer_waits_are_kept() {
    let world = run(
        "[default]\nexten => 1,1,Answer(1000)\n same => n,Read(got,,2)\n same => n,NoOp(${got})\n",
        "1",
        &[(300, Act::Press('4')), (600, Act::Press('2'))],
    );
    assert_eq!(noted(&world), ["42"]);
    let menu = run(
        "[default]\nexten => 1,1,Answer(1000)\n same => n,BackGround(menu)\n same => n,WaitExten(1)\nexten => 42,1,NoOp(42)\n",
        "1",
        &[(300, Act::Press('4')), (600, Act::Press('2'))],
    );
    assert_eq!(noted(&menu), ["42"]);
}
