//! Dial from the answer on: routines, announcements, limits, hold, and who goes on where.

mod common;

use common::{
    BYE, SHOW, answers, at, at_rest, call, dialled, in_order, lines, location, noted, phone, talks, warnings,
    world,
};
use sim::{Act, Phone};

#[test]
fn routines_before_and_after_the_answer() {
    type Row<'a> = (&'a str, &'a str, &'a str, Vec<&'a str>);
    let rows: Vec<Row> = vec![
        (
            "b on each leg before it is called",
            "Dial(SIM/6002,20,b(sub^s^1(x^y)))",
            "exten => s,1,NoOp(${ARG1}${ARG2} ${CHANNEL})\n same => n,Return()",
            vec!["xy SIM/6002-00000001", "h ANSWER"],
        ),
        (
            "b of the caller's context",
            "Dial(SIM/6002,20,b(2^1))\nexten => 2,1,NoOp(here ${CHANNEL})\n same => n,Return()",
            "",
            vec!["here SIM/6002-00000001", "h ANSWER"],
        ),
        ("b that does not exist is left out", "Dial(SIM/6002,20,b(none^s^1))", "", vec!["h ANSWER"]),
        (
            "b that hangs up takes the leg away",
            "Dial(SIM/6002,20,b(sub^s^1))",
            "exten => s,1,Hangup()",
            vec!["NOANSWER/////", "h NOANSWER"],
        ),
        (
            "B on the caller",
            "Dial(SIM/6002,20,B(sub^s^1(x)))",
            "exten => s,1,NoOp(${ARG1} ${CHANNEL})\n same => n,Return()",
            vec!["x SIM/6001-00000000", "h ANSWER"],
        ),
        (
            "U that says nothing",
            "Dial(SIM/6002,20,U(sub^x))",
            "exten => s,1,NoOp(${ARG1} ${CHANNEL})\n same => n,Return()",
            vec!["x SIM/6002-00000001", "h ANSWER"],
        ),
        ("U that does not exist is left out", "Dial(SIM/6002,20,U(none))", "", vec!["h ANSWER"]),
        (
            "U ABORT",
            "Dial(SIM/6002,20,U(sub))",
            "exten => s,1,Set(GOSUB_RESULT=ABORT)\n same => n,Return()",
            vec!["h ANSWER"],
        ),
        (
            "U CONGESTION",
            "Dial(SIM/6002,20,U(sub))",
            "exten => s,1,Set(GOSUB_RESULT=CONGESTION)\n same => n,Return()",
            vec!["CONGESTION/SIM/6002-00000001/6002///1000", "h CONGESTION"],
        ),
        (
            "U BUSY",
            "Dial(SIM/6002,20,U(sub))",
            "exten => s,1,Set(GOSUB_RESULT=BUSY)\n same => n,Return()",
            vec!["BUSY/SIM/6002-00000001/6002///1000", "h BUSY"],
        ),
        (
            "U CONTINUE",
            "Dial(SIM/6002,20,U(sub))",
            "exten => s,1,Set(GOSUB_RESULT=CONTINUE)\n same => n,Return()",
            vec!["ANSWER/SIM/6002-00000001/6002///1000", "h ANSWER"],
        ),
        (
            "U GOTO",
            "Dial(SIM/6002,20,U(sub))\nexten => 3,1,NoOp(gone)",
            "exten => s,1,Set(GOSUB_RESULT=GOTO:default^3^1)\n same => n,Return()",
            vec!["gone", "h ANSWER"],
        ),
        (
            "M on the called party, with its words",
            "Dial(SIM/6002,20,M(greet^x^y))",
            "exten => s,1,Return()\n[macro-greet]\nexten => s,1,NoOp(${ARG1}${ARG2} ${CHANNEL})",
            vec!["xy SIM/6002-00000001", "h ANSWER"],
        ),
        (
            "M CONTINUE, by MacroExit",
            "Dial(SIM/6002,20,M(greet))",
            "exten => s,1,Return()\n[macro-greet]\nexten => s,1,Set(MACRO_RESULT=CONTINUE)\n same => n,MacroExit()\n same => n,NoOp(not here)",
            vec!["ANSWER/SIM/6002-00000001/6002///1000", "h ANSWER"],
        ),
        ("M that does not exist is left out", "Dial(SIM/6002,20,M(none))", "", vec!["h ANSWER"]),
        ("U that hangs up", "Dial(SIM/6002,20,U(sub))", "exten => s,1,Hangup()", vec!["h ANSWER"]),
        (
            "U while the called party hangs up, g",
            "Dial(SIM/6002,20,U(sub)g)",
            "exten => s,1,Wait(60)\n same => n,Return()",
            vec!["ANSWER/SIM/6002-00000001/6002///1000", "h ANSWER"],
        ),
    ];
    for (name, dial, sub, expected) in rows {
        let (dial, more) = dial.split_once('\n').unwrap_or((dial, ""));
        let world =
            dialled(&format!("exten => 1,1,{dial}{SHOW}\n{more}\n[sub]\n{sub}"), &[("6002", talks())], &[]);
        assert_eq!(noted(&world), expected, "{name}: {:?}", warnings(&world));
    }
}

#[test]
fn a_routine_sees_the_caller_hang_up_and_ends() {
    let world = dialled(
        "exten => 1,1,Dial(SIM/6002,20,U(sub))\nexten => h,1,NoOp(${DIALSTATUS})\n[sub]\nexten => s,1,Wait(60)",
        &[("6002", answers())],
        &[(5000, BYE)],
    );
    assert_eq!(noted(&world), ["ANSWER"]);
    assert_eq!(lines(&world, "ends with").len(), 2);
}

#[test]
fn announcements_and_digits_come_before_the_conversation() {
    let dial = |options: &str| {
        let phones = [("6002", phone(&[(1000, Act::Progress), (3000, Act::Answer), (60_000, BYE)]))];
        dialled(&format!("exten => 1,1,Dial(SIM/6002,20,{options})"), &phones, &[])
    };
    in_order(
        &dial("A(hello:you)"),
        &[
            "3000 #2 hears hello",
            "4000 SIM/6001-00000000 is answered",
            "4000 #1 hears you",
            "5000 #1 and #2 talk",
        ],
    );
    in_order(
        &dial("A(hello)a"),
        &["3000 SIM/6001-00000000 is answered", "3000 #2 hears hello", "4000 #1 and #2 talk"],
    );
    in_order(
        &dial("D(1w2:3:9)"),
        &[
            "1000 #2 is sent digit 9",
            "3000 #2 is sent digit 1",
            "3850 #2 is sent digit 2",
            "4200 #1 is sent digit 3",
            "4550 #1 and #2 talk",
        ],
    );
    let both = dialled(
        "exten => 1,1,Dial(SIM/6002,20,U(sub)D(1))\n[sub]\nexten => s,1,Return()",
        &[("6002", talks())],
        &[],
    );
    in_order(&both, &["3000 #2 is sent digit 1", "3350 #1 and #2 talk"]);
}

#[test]
fn limits_warn_and_end() {
    let world = dialled(
        "exten => 1,1,Set(LIMIT_WARNING_FILE=beep)\n same => n,Set(LIMIT_CONNECT_FILE=start)\n same => n,Set(LIMIT_TIMEOUT_FILE=over)\n \
         same => n,Set(LIMIT_PLAYAUDIO_CALLEE=yes)\n same => n,Dial(SIM/6002,,L(20000:10000:4000))",
        &[("6002", answers())],
        &[],
    );
    in_order(
        &world,
        &[
            "3000 #1 hears start",
            "4000 #1 and #2 talk",
            "14000 #1 hears beep",
            "14000 #2 hears beep",
            "19000 #1 hears beep",
            "19000 #2 hears beep",
            "24000 #1 talks no more",
            "24000 #2 hears over",
            "25000 #1 hears over",
            "26000 SIM/6001-00000000 ends with 16",
        ],
    );
    let said = dialled("exten => 1,1,Dial(SIM/6002,,L(90000:75000))", &[("6002", answers())], &[]);
    in_order(
        &said,
        &[
            "18000 #1 hears vm-youhave",
            "19000 #1 hears digits/1",
            "20000 #1 hears queue-minutes",
            "21000 #1 hears digits/15",
            "22000 #1 hears queue-seconds",
        ],
    );
    assert!(lines(&said, "#2 hears").is_empty(), "the called party is warned only when asked for");
}

#[test]
fn who_goes_on_where() {
    type Row<'a> = (&'a str, &'a str, Phone, Vec<(u64, Act)>, Vec<&'a str>);
    let rows: Vec<Row> = vec![
        (
            "G sends both on",
            "Dial(SIM/6002,,G(default^5^1))",
            answers(),
            vec![],
            vec!["one SIM/6001-00000000", "two SIM/6001-00000000", "two SIM/6002-00000001"],
        ),
        (
            "F sends the called party on",
            "Dial(SIM/6002,,F(default^5^2))",
            answers(),
            vec![(5000, BYE)],
            vec!["two SIM/6002-00000001"],
        ),
        (
            "F without a place is the next step",
            "Dial(SIM/6002,,F)\n same => n,NoOp(next ${CHANNEL})",
            answers(),
            vec![(5000, BYE)],
            vec!["next SIM/6002-00000001"],
        ),
        ("F when the called party hangs up", "Dial(SIM/6002,,F(default^5^2))", talks(), vec![], vec![]),
        (
            "e runs h on the called party, too",
            "Dial(SIM/6002,,e)\nexten => h,1,NoOp(h ${CHANNEL})",
            talks(),
            vec![],
            vec!["h SIM/6002-00000001", "h SIM/6001-00000000"],
        ),
        (
            "the caller is redirected while it rings",
            "Dial(SIM/6002)",
            answers(),
            vec![(2000, Act::Redirect(location("default", "5")))],
            vec!["one SIM/6001-00000000", "two SIM/6001-00000000"],
        ),
        (
            "the caller is redirected while they talk",
            "Dial(SIM/6002)",
            answers(),
            vec![(5000, Act::Redirect(location("default", "5")))],
            vec!["one SIM/6001-00000000", "two SIM/6001-00000000"],
        ),
        (
            "the called party is redirected while they talk",
            "Dial(SIM/6002,,g)\n same => n,NoOp(left alone)",
            phone(&[(3000, Act::Answer), (5000, Act::Redirect(location("default", "5")))]),
            vec![],
            vec!["left alone", "one SIM/6002-00000001", "two SIM/6002-00000001"],
        ),
        (
            "a leg that rings is not redirected",
            "Dial(SIM/6002,,g)\n same => n,NoOp(${DIALSTATUS})",
            phone(&[(1000, Act::Redirect(location("default", "5"))), (3000, Act::Answer), (5000, BYE)]),
            vec![],
            vec!["ANSWER"],
        ),
        (
            "the absolute timeout ends the conversation",
            "Set(TIMEOUT(absolute)=5)\n same => n,Dial(SIM/6002)\nexten => T,1,NoOp(T)",
            answers(),
            vec![],
            vec!["T"],
        ),
        (
            "the absolute timeout ends a routine, too",
            "Set(TIMEOUT(absolute)=5)\n same => n,Dial(SIM/6002,,U(long))\nexten => T,1,NoOp(T)\n[long]\nexten => s,1,Wait(60)",
            answers(),
            vec![],
            vec!["T"],
        ),
        (
            "d goes to the digit's extension",
            "Dial(SIM/6002,,d)",
            answers(),
            vec![(2000, Act::Press('5'))],
            vec!["one SIM/6001-00000000", "two SIM/6001-00000000"],
        ),
        (
            "d in EXITCONTEXT",
            "Set(EXITCONTEXT=out)\n same => n,Dial(SIM/6002,,d)\n[out]\nexten => 7,1,NoOp(out)",
            answers(),
            vec![(2000, Act::Press('7'))],
            vec!["out"],
        ),
        (
            "d where there is no such extension",
            "Dial(SIM/6002,,d)\nexten => h,1,NoOp(${DIALSTATUS})",
            talks(),
            vec![(2000, Act::Press('9'))],
            vec!["ANSWER"],
        ),
    ];
    for (name, dialplan, phone, caller, mut expected) in rows {
        let world = dialled(
            &format!(
                "exten => 5,1,NoOp(one ${{CHANNEL}})\n same => n,NoOp(two ${{CHANNEL}})\nexten => 1,1,{dialplan}"
            ),
            &[("6002", phone)],
            &caller,
        );
        // Two stories that go on at the same moment have no order of their own.
        let mut heard = noted(&world);
        heard.sort();
        expected.sort_unstable();
        assert_eq!(heard, expected, "{name}: {:?}", warnings(&world));
    }
}

#[test]
fn a_called_party_that_goes_on_has_a_record_of_its_own() {
    let world = dialled(
        "exten => 1,1,Dial(SIM/6002,,F(default^5^1))\nexten => 5,1,Wait(4)",
        &[("6002", answers())],
        &[(5000, BYE)],
    );
    let records: Vec<_> = world
        .cdrs
        .iter()
        .map(|r| (r.channel.as_str(), r.dst.as_str(), r.duration.as_secs(), r.billsec.as_secs()))
        .collect();
    assert_eq!(records, [("SIM/6001-00000000", "1", 5, 2), ("SIM/6002-00000001", "5", 4, 4)]);
}

#[test]
fn hold_digits_and_text_cross_a_bridge() {
    let acts = [
        (3000, Act::Answer),
        (5000, Act::Hold),
        (7000, Act::Unhold),
        (8000, Act::Press('5')),
        (9000, Act::PressRelayed('6')),
        (9500, Act::Text("hi".to_owned())),
    ];
    let mut world =
        world("[default]\nexten => 1,1,Set(CHANNEL(musicclass)=jazz)\n same => n,Dial(SIM/6002)\n");
    world.watch();
    world.phone("6002", phone(&acts));
    let id = call(&mut world, "1", &[(10_000, Act::Press('7')), (20_000, BYE)]);
    world.run_until(at(6000));
    assert_eq!(world.endless_sound(id).as_deref(), Some("music jazz"));
    world.run_until(at(7500));
    assert_eq!(world.endless_sound(id), None);
    world.run();
    in_order(
        &world,
        &[
            "5000 SIM/6001-00000000 is held",
            "7000 SIM/6001-00000000 is held no more",
            "9500 SIM/6001-00000000 is sent text: hi",
        ],
    );
    assert_eq!(lines(&world, "digit"), ["8000 #1 is sent digit 5", "10000 #2 is sent digit 7"]);
}

#[test]
fn music_of_a_held_party_ends_with_the_bridge() {
    let mut world = world("[default]\nexten => 1,1,Dial(SIM/6002,,g)\n same => n,Wait(60)\n");
    world.phone("6002", phone(&[(3000, Act::Answer), (5000, Act::Hold), (7000, BYE)]));
    let id = call(&mut world, "1", &[]);
    world.run_until(at(6000));
    assert_eq!(world.endless_sound(id).as_deref(), Some("music default"));
    world.run_until(at(8000));
    assert_eq!((world.endless_sound(id), world.joins()), (None, 0));
}

#[test]
fn who_hears_music_chooses_the_class_by_a_key() {
    let key = |pressed: u64, digit: char| (pressed, Act::Press(digit));
    for (name, dialplan, pressed, expected) in [
        ("in MusicOnHold()", "Answer()\n same => n,MusicOnHold()", key(2000, '#'), Some("music jazz")),
        ("another key", "Answer()\n same => n,MusicOnHold()", key(2000, '5'), Some("music default")),
        (
            "a class with nothing in it",
            "Answer()\n same => n,MusicOnHold()",
            key(2000, '*'),
            Some("music default"),
        ),
        ("held by the other party", "Dial(SIM/6002,,g)", key(5500, '#'), Some("music jazz")),
        ("before there is music", "Dial(SIM/6002,,g)", key(4000, '#'), Some("music default")),
        ("where there is none", "Answer()\n same => n,Wait(60)", key(2000, '#'), None),
    ] {
        let mut world = world(&format!("[default]\nexten => 1,1,{dialplan}\n"));
        {
            let mut core = world.shard.core.borrow_mut();
            let keys = [('#', "jazz".to_owned()), ('*', "empty".to_owned())];
            std::rc::Rc::make_mut(&mut core.settings).music_keys = std::rc::Rc::new(keys.into());
        }
        world.missing("music empty");
        world.phone("6002", phone(&[(3000, Act::Answer), (5000, Act::Hold)]));
        let id = call(&mut world, "1", &[pressed]);
        world.run_until(at(6000));
        assert_eq!(world.endless_sound(id).as_deref(), expected, "{name}");
    }
}

#[test]
fn a_fault_in_a_leg_s_routine_ends_that_call_only() {
    let mut world = world(
        "[default]\nexten => 1,1,Dial(SIM/6002,,U(sub))\nexten => 2,1,Dial(SIM/6003)\nexten => h,1,NoOp(h ${CHANNEL})\n[sub]\nexten => s,1,Playback(bomb)\n",
    );
    world.watch();
    world.explosive("bomb");
    world.phone("6002", answers());
    world.phone("6003", talks());
    call(&mut world, "2", &[]);
    call(&mut world, "1", &[]);
    world.run();
    at_rest(&world, "panic");
    assert_eq!(noted(&world), ["h SIM/6001-00000000"]);
    let errors = world.log(call::Level::Error);
    assert!(errors.iter().any(|line| line.contains("panicked") && line.contains("bomb")), "{errors:?}");
    in_order(&world, &["3000 #1 and #3 talk", "8000 #1 talks no more"]);
}

#[test]
fn the_absolute_timeout_is_kept_whatever_the_dial_waits_for() {
    for (options, acts) in [
        ("", answers()),
        ("U(long)", answers()),
        ("A(long)", answers()),
        ("b(long^s^1)", answers()),
        ("D(WWWWWWWWW)", answers()),
    ] {
        let mut world = world(&format!(
            "[default]\nexten => 1,1,Set(TIMEOUT(absolute)=5)\n same => n,Dial(SIM/6002,,{options})\nexten => T,1,NoOp(${{DIALSTATUS}})\n[long]\nexten => s,1,Wait(60)\n"
        ));
        world.watch();
        world.clip("long", std::time::Duration::from_secs(60));
        world.phone("6002", acts);
        call(&mut world, "1", &[]);
        world.run_until(at(5000));
        assert_eq!(noted(&world).len(), 1, "{options}");
        world.run();
        at_rest(&world, options);
    }
}

#[test]
fn who_is_held_hears_its_own_class_else_what_the_holder_suggests_else_the_holders() {
    for (name, own, holder, suggested, heard) in [
        ("nobody says anything", "", "", "", "music default"),
        ("its own", "jazz", "soft", "loud", "music jazz"),
        ("suggested", "", "soft", "loud", "music loud"),
        ("the holder's", "", "soft", "", "music soft"),
    ] {
        let set = if own.is_empty() {
            String::new()
        } else {
            format!("exten => 1,1,Set(CHANNEL(musicclass)={own})\n")
        };
        let dial = if own.is_empty() { "exten => 1,1," } else { " same => n," };
        let mut world = world(&format!("[default]\n{set}{dial}Dial(SIM/6002,,g)\n same => n,Wait(60)\n"));
        world.phone("6002", phone(&[(3000, Act::Answer), (5000, Act::Hold), (7000, BYE)]));
        let id = call(&mut world, "1", &[]);
        world.run_until(at(4000));
        {
            let mut core = world.shard.core.borrow_mut();
            let phone = core.channels().find(|channel| channel.id != id).map(|channel| channel.id).unwrap();
            let phone = core.get_mut(phone).unwrap();
            phone.music_suggested = suggested.to_owned();
            phone.music_class = if holder.is_empty() { "default".to_owned() } else { holder.to_owned() };
        }
        world.run_until(at(6000));
        assert_eq!(world.endless_sound(id).as_deref(), Some(heard), "{name}");
    }
}
