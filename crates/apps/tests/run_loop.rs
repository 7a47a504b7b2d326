//! How a call goes through the dialplan: what the compatibility notes number §5.

mod common;

use base::Cause;
use call::{Level, Notice};
use common::{at, call, location, noted, run, steps, warnings, world};
use sim::{Act, Phone};

#[test]
fn section5_a_step_follows_the_other_until_there_is_none_and_then_h() {
    let world = run(
        "[default]\nexten => 100,1,Answer()\n same => n,Set(x=a,b)\n same => n,NoOp(${x}-${EXTEN}-${CONTEXT}-${PRIORITY})\n\
         exten => h,1,NoOp(bye ${EXTEN})\n",
        "100",
        &[],
    );
    assert_eq!(
        steps(&world),
        ["100,1 Answer()", "100,2 Set(x=a,b)", "100,3 NoOp(a,b-100-default-3)", "h,1 NoOp(bye h)"]
    );
    assert_eq!(world.transcript(), ["0 SIM/6001-00000000 is answered", "20 SIM/6001-00000000 ends with 0"]);
    let record = &world.cdrs[0];
    assert_eq!((record.dst.as_str(), record.last_app.as_str()), ("h", "NoOp"));
    assert_eq!(record.disposition, call::Disposition::Answered);
}

#[test]
fn watchers_see_the_arguments_of_every_step_substituted() {
    let world = run(
        "[default]\nexten => 1,1,Set(x=${EXTEN})\n same => n,GotoIf($[${x} = 1]?next)\n same => n(next),ExecIf(${x}?Set(y=${x}))\n \
         same => n,Gosub(sub,s,1(${x}))\n[sub]\nexten => s,1,Goto(${ARG1}+1)\n",
        "1",
        &[],
    );
    assert_eq!(
        steps(&world)[..5],
        [
            "1,1 Set(x=1)",
            "1,2 GotoIf(1?next)",
            "1,3 ExecIf(1?Set(y=1))",
            "1,4 Gosub(sub,s,1(1))",
            "s,1 Goto(1+1)"
        ]
    );
}

/// One call each: dialplan, number, what happens to the phone, texts of its NoOps.
#[test]
fn section5_where_a_call_goes() {
    type Row = (&'static str, &'static str, &'static str, Vec<(u64, Act)>, Vec<&'static str>);
    let press = |digits: &str, from: u64| -> Vec<(u64, Act)> {
        digits.chars().zip(0u64..).map(|(digit, index)| (from + 200 * index, Act::Press(digit))).collect()
    };
    let rows: Vec<Row> = vec![
        (
            "a number that does not exist and has no s goes to i",
            "exten => 1,1,NoOp(one)\nexten => i,1,NoOp(invalid ${INVALID_EXTEN})",
            "9",
            vec![],
            vec!["invalid 9"],
        ),
        ("a number that does not exist falls back to s", "exten => s,1,NoOp(s)", "9", vec![], vec!["s"]),
        (
            "without i the exception goes to e",
            "exten => e,1,NoOp(${EXCEPTION(reason)} ${EXCEPTION(exten)})",
            "9",
            vec![],
            vec!["INVALID 9"],
        ),
        (
            "Goto a place without a step is invalid",
            "exten => 1,1,Goto(2,1)\nexten => i,1,NoOp(${INVALID_EXTEN})",
            "1",
            vec![],
            vec!["2"],
        ),
        (
            "Goto forms",
            "exten => 1,1,Goto(3)\n same => n,NoOp(no)\n same => n,Goto(2,1)\nexten => 2,1,Goto(other,3,lab)\n\
             [other]\nexten => 3,1,NoOp(no)\n same => n(lab),NoOp(yes)\n same => n,Goto(+2)\n same => n,NoOp(no)\n\
             same => n,NoOp(plus)",
            "1",
            vec![],
            vec!["yes", "plus"],
        ),
        (
            "GotoIf falls through where a side is empty",
            "exten => 1,1,GotoIf(0?a)\n same => n,GotoIf(1?:a)\n same => n,GotoIf(x?a:b)\n same => n(b),NoOp(b)\n\
             same => n(a),NoOp(a)",
            "1",
            vec![],
            vec!["a"],
        ),
        (
            "ExecIf takes the branch, commas kept",
            "exten => 1,1,ExecIf(1?Set(a=1,2):Set(a=3))\n same => n,ExecIf(0?NoOp(x):NoOp(${a}))\n same => n,ExecIf(0?NoOp(y))\n\
             same => n,NoOp(end)",
            "1",
            vec![],
            vec!["end"],
        ),
        (
            "WaitExten collects until nothing longer matches",
            "exten => 1,1,Answer()\n same => n,WaitExten(5)\nexten => _2X,1,NoOp(${EXTEN})",
            "1",
            press("25", 1000),
            vec!["25"],
        ),
        (
            "a number that may be longer waits for the digit timeout",
            "exten => 1,1,Set(TIMEOUT(digit)=2)\n same => n,WaitExten(5)\nexten => 2,1,NoOp(two)\nexten => 23,1,NoOp(long)",
            "1",
            press("2", 1000),
            vec!["two"],
        ),
        (
            "digits that match nothing go to i",
            "exten => 1,1,WaitExten(5)\nexten => 2,1,NoOp(two)\nexten => i,1,NoOp(invalid ${INVALID_EXTEN})",
            "1",
            press("7", 1000),
            vec!["invalid 7"],
        ),
        (
            "WaitExten without digits goes on with the next priority",
            "exten => 1,1,WaitExten(1)\n same => n,NoOp(next)\nexten => t,1,NoOp(timeout)",
            "1",
            vec![],
            vec!["next"],
        ),
        (
            "WaitExten without digits and a next priority goes to t",
            "exten => 1,1,WaitExten(1)\nexten => t,1,NoOp(timeout)",
            "1",
            vec![],
            vec!["timeout"],
        ),
        (
            "and without t to e",
            "exten => 1,1,WaitExten(1)\nexten => e,1,NoOp(${EXCEPTION(reason)})",
            "1",
            vec![],
            vec!["RESPONSETIMEOUT"],
        ),
        (
            "Incomplete waits for the rest of the number",
            "exten => _1,1,Incomplete(n)\nexten => _1XX,1,NoOp(${EXTEN})",
            "1",
            press("23", 1000),
            vec!["123"],
        ),
        (
            "Incomplete with nothing longer is invalid",
            "exten => 1,1,Incomplete(n)\nexten => i,1,NoOp(i)",
            "1",
            vec![],
            vec!["i"],
        ),
        (
            "the absolute timeout goes to T",
            "exten => 1,1,Set(TIMEOUT(absolute)=3)\n same => n,Wait(60)\n same => n,NoOp(no)\nexten => T,1,NoOp(T)",
            "1",
            vec![],
            vec!["T"],
        ),
        (
            "RaiseException goes to e",
            "exten => 1,1,RaiseException(why)\nexten => e,1,NoOp(${EXCEPTION(reason)} ${EXCEPTION(priority)})",
            "1",
            vec![],
            vec!["why 1"],
        ),
        (
            "a priority of an included context continues the extension",
            "exten => 1,1,NoOp(own)\ninclude => more\n[more]\nexten => 1,2,NoOp(included)",
            "1",
            vec![],
            vec!["own", "included"],
        ),
        (
            "the absolute timeout without T goes to e",
            "exten => 1,1,Set(TIMEOUT(absolute)=3)\n same => n,Wait(60)\nexten => e,1,NoOp(${EXCEPTION(reason)})",
            "1",
            vec![],
            vec!["ABSOLUTETIMEOUT"],
        ),
        (
            "GotoIfTime by the wall clock (Saturday noon)",
            "exten => 1,1,GotoIfTime(*,mon-fri,*,*?no)\n same => n,GotoIfTime(11:59-12:01,sat,21,nov?yes:no)\n \
             same => n(no),NoOp(no)\n same => n(yes),NoOp(yes)",
            "1",
            vec![],
            vec!["yes"],
        ),
        (
            "ExecIfTime and Exec run what they name",
            "exten => 1,1,ExecIfTime(*,sat,*,*?Set(a=1))\n same => n,ExecIfTime(*,sun,*,*?Set(a=2))\n \
             same => n,Exec(Set(b=3))\n same => n,NoOp(${a}${b})",
            "1",
            vec![],
            vec!["13"],
        ),
        (
            "an include by the time of day",
            "include => closed,*,sun,*,*\ninclude => open,*,sat,*,*\n[closed]\nexten => 1,1,NoOp(closed)\n[open]\nexten => 1,1,NoOp(open)",
            "1",
            vec![],
            vec!["open"],
        ),
        (
            "ExecIf carries a Goto out",
            "exten => 1,1,ExecIf(1?Goto(2,1))\n same => n,NoOp(no)\nexten => 2,1,NoOp(yes)",
            "1",
            vec![],
            vec!["yes"],
        ),
        (
            "a label that does not exist ends the call",
            "exten => 1,1,Goto(nowhere)\n same => n,NoOp(no)\nexten => i,1,NoOp(i)\nexten => h,1,NoOp(h)",
            "1",
            vec![],
            vec!["h"],
        ),
        (
            "Return without Gosub ends the call",
            "exten => 1,1,Return()\n same => n,NoOp(no)\nexten => h,1,NoOp(h)",
            "1",
            vec![],
            vec!["h"],
        ),
        (
            "a Gosub to nowhere ends the call",
            "exten => 1,1,Gosub(nowhere,s,1)\n same => n,NoOp(no)",
            "1",
            vec![],
            vec![],
        ),
        (
            "WaitDigit keeps its digit to itself",
            "exten => 1,1,WaitDigit(5,12)\n same => n,NoOp(${WAITDIGITSTATUS} ${WAITDIGITRESULT})\nexten => 2,1,NoOp(no)",
            "1",
            press("32", 1000),
            vec!["DTMF 2"],
        ),
        (
            "Random of a hundred percent and of none",
            "exten => 1,1,Random(0:no)\n same => n,Random(100:yes)\n same => n(no),NoOp(no)\n same => n(yes),NoOp(yes)",
            "1",
            vec![],
            vec!["yes"],
        ),
        (
            "MacroIf",
            "exten => 1,1,MacroIf(0?a:b,x)\n same => n,MacroIf(0?a)\n same => n,NoOp(end)\n[macro-a]\nexten => s,1,NoOp(a)\n[macro-b]\nexten => s,1,NoOp(b ${ARG1})",
            "1",
            vec![],
            vec!["b x", "end"],
        ),
        (
            "hang-up handlers are popped and wiped",
            "exten => 1,1,Set(CHANNEL(hangup_handler_push)=hh,s,1(a))\n same => n,Set(CHANNEL(hangup_handler_push)=hh,s,1(b))\n \
             same => n,Set(CHANNEL(hangup_handler_pop)=)\n same => n,Set(CHANNEL(hangup_handler_push)=1,away)\n \
             same => n,Hangup()\n same => n(away),NoOp(away)\n same => n,Return()\n[hh]\nexten => s,1,NoOp(${ARG1})\n same => n,Return()",
            "1",
            vec![],
            vec!["away", "a"],
        ),
        (
            "a caller-id match comes first",
            "exten => 1,1,NoOp(any)\nexten => 1/6001,1,NoOp(alice)",
            "1",
            vec![],
            vec!["alice"],
        ),
    ];
    for (name, dialplan, number, acts, expected) in rows {
        let world = run(&format!("[default]\n{dialplan}\n"), number, &acts);
        assert_eq!(noted(&world), expected, "{name}: {:?} {:?}", steps(&world), warnings(&world));
    }
}

#[test]
fn section5_routines() {
    let rows = [
        (
            "Gosub binds its arguments and Return gives a value",
            "exten => 1,1,Gosub(sub,s,1(a,\"b,c\"))\n same => n,NoOp(${GOSUB_RETVAL}|${ARG1}|${ARGC})\n\
             [sub]\nexten => s,1,Set(LOCAL(x)=in)\n same => n,NoOp(${ARG1}|${ARG2}|${ARGC}|${x})\n same => n,Return(done)",
            vec!["a|b,c|2|in", "done||"],
        ),
        (
            "arguments of an outer routine do not show in an inner one",
            "exten => 1,1,Gosub(a,s,1(1,2))\n[a]\nexten => s,1,Gosub(b,s,1(x))\n same => n,NoOp(${ARG1}${ARG2})\n same => n,Return()\n\
             [b]\nexten => s,1,NoOp(${ARG1}-${ARG2})\n same => n,Return()",
            vec!["x-", "12"],
        ),
        (
            "GosubIf",
            "exten => 1,1,GosubIf(0?sub,s,1(a):sub,s,1(b))\n same => n,GosubIf(0?sub,s,1(c))\n same => n,NoOp(end)\n\
             [sub]\nexten => s,1,NoOp(${ARG1})\n same => n,Return()",
            vec!["b", "end"],
        ),
        (
            "StackPop forgets one address",
            "exten => 1,1,Gosub(a,s,1)\n same => n,NoOp(back)\n[a]\nexten => s,1,Gosub(b,s,1)\n same => n,NoOp(no)\n\
             [b]\nexten => s,1,StackPop()\n same => n,Return()",
            vec!["back"],
        ),
        (
            "loops and conditions keep their places in variables while they are open",
            "exten => 1,1,While($[${i}0 < 10])\n same => n,NoOp(${default_1_1} ${WHILE_0} ${END_WHILE_0})\n same => n,Set(i=$[0${i} + 1])\n same => n,EndWhile()\n\
             same => n,NoOp([${WHILE_0}${END_WHILE_0}])\n same => n,If(1)\n same => n,NoOp(${IF_0})\n same => n,EndIf()\n same => n,NoOp([${IF_0}])",
            vec!["0 default,1,1 ", "[]", "default,1,6", "[]"],
        ),
        (
            "Macro comes back when its steps end, and MacroExit earlier",
            "exten => 1,1,Macro(m,a)\n same => n,Macro(m,stop)\n same => n,NoOp(end ${MACRO_EXTEN})\n\
             [macro-m]\nexten => s,1,ExecIf($[\"${ARG1}\" = \"stop\"]?MacroExit())\n same => n,NoOp(${ARG1} ${MACRO_EXTEN} ${MACRO_PRIORITY})",
            vec!["a 1 1", "end "],
        ),
        (
            "Goto out of a macro ends it",
            "exten => 1,1,Macro(m)\nexten => 2,1,NoOp(${MACRO_CONTEXT}out)\n[macro-m]\nexten => s,1,Goto(default,2,1)",
            vec!["out"],
        ),
    ];
    for (name, dialplan, expected) in rows {
        let world = run(&format!("[default]\n{dialplan}\n"), "1", &[]);
        assert_eq!(noted(&world), expected, "{name}: {:?} {:?}", steps(&world), warnings(&world));
    }
}

#[test]
fn section5_blocks() {
    let rows = [
        (
            "While repeats, ContinueWhile and ExitWhile leave",
            "exten => 1,1,Set(i=0)\n same => n,While($[${i} < 5])\n same => n,Set(i=$[${i} + 1])\n\
             same => n,ExecIf($[${i} = 2]?ContinueWhile())\n same => n,ExecIf($[${i} = 4]?ExitWhile())\n same => n,NoOp(${i})\n\
             same => n,EndWhile()\n same => n,NoOp(end ${i})",
            vec!["1", "3", "end 4"],
        ),
        (
            "a While that never holds is passed over, its inner one too",
            "exten => 1,1,While(0)\n same => n,While(1)\n same => n,NoOp(no)\n same => n,EndWhile()\n same => n,EndWhile()\n same => n,NoOp(end)",
            vec!["end"],
        ),
        (
            "If takes one branch",
            "exten => 1,1,Set(x=2)\n same => n,If($[${x} = 1])\n same => n,NoOp(one)\n same => n,ElseIf($[${x} = 2])\n\
             same => n,NoOp(two)\n same => n,ElseIf(1)\n same => n,NoOp(no)\n same => n,Else()\n same => n,NoOp(other)\n\
             same => n,EndIf()\n same => n,NoOp(end)",
            vec!["two", "end"],
        ),
        (
            "Else is taken when nothing else was, nested blocks are not looked into",
            "exten => 1,1,If(0)\n same => n,If(1)\n same => n,NoOp(no)\n same => n,Else()\n same => n,NoOp(no)\n same => n,EndIf()\n\
             same => n,Else()\n same => n,NoOp(else)\n same => n,EndIf()",
            vec!["else"],
        ),
    ];
    for (name, dialplan, expected) in rows {
        let world = run(&format!("[default]\n{dialplan}\n"), "1", &[]);
        assert_eq!(noted(&world), expected, "{name}: {:?} {:?}", steps(&world), warnings(&world));
    }
}

#[test]
fn section5_autofallthrough_ends_as_the_last_dial_did() {
    for (name, dialplan, expected) in [
        (
            "an answered caller hears busy for ten seconds",
            "exten => 1,1,Answer(0)\n same => n,Set(DIALSTATUS=BUSY)",
            vec![
                "0 SIM/6001-00000000 is answered",
                "0 #1 hears tone busy",
                "10000 SIM/6001-00000000 ends with 17",
            ],
        ),
        (
            "one who was not answered is refused at once",
            "exten => 1,1,Set(DIALSTATUS=CHANUNAVAIL)",
            vec!["0 SIM/6001-00000000 ends with 34"],
        ),
        (
            "without a status the call just ends",
            "exten => 1,1,NoOp()",
            vec!["0 SIM/6001-00000000 ends with 0"],
        ),
        (
            "an answered call as well",
            "exten => 1,1,Answer(0)",
            vec!["0 SIM/6001-00000000 is answered", "0 SIM/6001-00000000 ends with 0"],
        ),
        (
            "Hangup() gives the cause of a usual end",
            "exten => 1,1,Hangup()",
            vec!["0 SIM/6001-00000000 ends with 16"],
        ),
    ] {
        let world = run(&format!("[default]\n{dialplan}\n"), "1", &[]);
        assert_eq!(world.transcript(), expected, "{name}");
    }
}

#[test]
fn section5_without_autofallthrough_digits_are_awaited() {
    let dialplan = "[general]\nautofallthrough=no\n[default]\nexten => 1,1,NoOp(one)\nexten => 2,1,NoOp(two)\nexten => t,1,NoOp(t)\n same => n,Hangup()\n";
    for (acts, expected) in
        [(vec![(2000, Act::Press('2'))], vec!["one", "two", "t"]), (vec![], vec!["one", "t"])]
    {
        let world = run(dialplan, "1", &acts);
        assert_eq!(noted(&world), expected);
    }
}

#[test]
fn section5_hangup_tells_its_cause_and_runs_h_and_then_the_handlers_last_pushed_first() {
    use call::HandlerChange::{Push, Run};
    let world = run(
        "[default]\nexten => 1,1,Set(CHANNEL(hangup_handler_push)=hh,s,1(first))\n same => n,Set(CHANNEL(hangup_handler_push)=hh,s,1(second))\n\
         same => n,Hangup(USER_BUSY)\nexten => h,1,NoOp(h ${HANGUPCAUSE})\n[hh]\nexten => s,1,NoOp(${ARG1})\n same => n,Return()\n",
        "1",
        &[],
    );
    assert_eq!(noted(&world), ["h 17", "second", "first"]);
    let handler = |notice: &call::Notice| match notice {
        call::Notice::HangupHandler { change, handler, .. } => Some((*change, handler.clone())),
        _ => None,
    };
    let told: Vec<_> = world.notices.iter().filter_map(handler).collect();
    let expected = [(Push, "first"), (Push, "second"), (Run, "second"), (Run, "first")]
        .map(|(change, name)| (change, format!("hh,s,1({name})")));
    assert_eq!(told, expected);
    assert_eq!(world.transcript(), ["0 SIM/6001-00000000 ends with 17"]);
    // cdr.conf `unanswered=no`: nobody answered and nobody was dialled.
    assert!(world.cdrs.is_empty());
}

#[test]
fn section5_a_caller_who_hangs_up_ends_what_runs_and_h_still_runs() {
    let world = run(
        "[default]\nexten => 1,1,Answer()\n same => n,Wait(60)\n same => n,NoOp(no)\nexten => h,1,NoOp(h)\n same => n,Set(DB(a/b)=1)\n",
        "1",
        &[(5000, Act::Hangup(Cause::NORMAL_CLEARING))],
    );
    assert_eq!(noted(&world), ["h"]);
    assert_eq!(world.stored("a", "b").as_deref(), Some("1"));
    let record = &world.cdrs[0];
    assert_eq!(
        (record.billsec.as_secs(), record.last_app.as_str(), record.last_data.as_str()),
        (5, "Set", "DB(a/b)=1")
    );
}

#[test]
fn section5_a_redirect_leaves_what_runs_and_goes_there() {
    let mut world = world("[default]\nexten => 1,1,Wait(60)\nexten => 2,1,NoOp(there)\n");
    world.watch();
    let id = call(&mut world, "1", &[]);
    world.run_until(at(1000));
    world.shard.core.borrow_mut().request_goto(id, location("default", "2"));
    world.run();
    assert_eq!(noted(&world), ["there"]);
    assert_eq!(world.now(), at(1000));
}

#[test]
fn section5_an_unknown_application_ends_the_call_and_names_itself() {
    let (program, findings) = sim::parse_dialplan(
        "[default]\nexten => 1,1,NoSuchThing(x)\n same => n,NoOp(no)\n",
        &apps::table::tables(),
    );
    assert!(findings.iter().any(|line| line.contains("NoSuchThing")), "{findings:?}");
    let mut world = sim::World::new(program);
    world.watch();
    call(&mut world, "1", &[]);
    world.run();
    assert!(noted(&world).is_empty());
    assert!(world.log(Level::Error).iter().any(|line| line.contains("No application 'NoSuchThing'")));
}

#[test]
fn an_application_of_a_module_that_was_switched_off_does_not_exist() {
    let mut world = world("[default]\nexten => 1,1,Verbose(hello)\n same => n,NoOp(no)\n");
    world.watch();
    world.settings(|settings| {
        settings.disabled_modules.insert("app_verbose".to_owned());
    });
    call(&mut world, "1", &[]);
    world.run();
    assert!(noted(&world).is_empty());
}

#[test]
fn a_panic_in_an_application_ends_that_call_only() {
    let mut world = world(
        "[default]\nexten => 1,1,Answer(0)\n same => n,SayDigits(7)\n same => n,NoOp(no)\nexten => 2,1,Wait(2)\n same => n,NoOp(other)\n",
    );
    world.watch();
    world.explosive("digits/7");
    call(&mut world, "2", &[]);
    call(&mut world, "1", &[]);
    world.run();
    assert_eq!(noted(&world), ["other"]);
    assert!(
        world.log(Level::Error).iter().any(|line| line.contains("SayDigits") && line.contains("panicked"))
    );
    assert_eq!(world.shard.core.borrow().channel_count(), 0);
}

#[test]
fn a_loop_that_never_waits_lets_others_have_their_turn() {
    let mut world = world(
        "[default]\nexten => 1,1,Set(i=0)\n same => n(loop),Set(i=$[${i}+1])\n same => n,GotoIf($[${i}<5000]?loop)\n same => n,Set(GLOBAL(order)=${GLOBAL(order)}loop)\n\
         exten => 2,1,Set(GLOBAL(order)=${GLOBAL(order)}other,)\n",
    );
    call(&mut world, "1", &[]);
    call(&mut world, "2", &[]);
    world.run();
    assert_eq!(world.global("order").as_deref(), Some("other,loop"));
}

#[test]
fn the_console_shows_each_step_when_it_listens() {
    let mut world = world("[default]\nexten => 600,1,Answer()\n");
    world.verbose(3);
    call(&mut world, "600", &[]);
    world.run();
    let lines = world.log(Level::Verbose(3));
    assert_eq!(lines[0], "Executing [600@default:1] Answer(\"SIM/6001-00000000\", \"\") in new stack");
}

#[test]
fn a_call_goes_on_over_a_reload_with_the_new_dialplan() {
    let mut world = world("[default]\nexten => 1,1,Wait(2)\n same => n,NoOp(old)\n");
    world.watch();
    call(&mut world, "1", &[]);
    world.run_until(at(1000));
    let tables = apps::table::tables();
    let (program, _) =
        sim::parse_dialplan("[default]\nexten => 1,1,Wait(9)\n same => n,NoOp(new)\n", &tables);
    world.shard.core.borrow_mut().program = std::sync::Arc::new(program);
    world.run();
    assert_eq!((noted(&world), world.now()), (vec!["new".to_owned()], at(2000)));
}

#[test]
fn other_servers_are_told_what_happens_here_and_not_what_they_said() {
    use call::DeviceState::{InUse, NotInUse, Unavailable};
    let lamp =
        "exten => 100,hint,Custom:lamp\nexten => 200,hint,SIM/7001\nexten => _3XX,hint,Custom:${EXTEN}\n";
    let mut world = world(&format!("[default]\n{lamp}exten => 1,1,Set(DEVICE_STATE(Custom:lamp)=INUSE)\n"));
    let mut hints = apps::hints::Hints::default();
    let shard = world.shard.clone();
    hints.update(&shard);
    let told = |hints: &mut apps::hints::Hints| {
        hints.update(&shard);
        let mut core = shard.core.borrow_mut();
        let extensions = std::mem::take(&mut core.outward.extensions);
        let extensions: Vec<_> = extensions.into_iter().map(|(of, state)| (of.exten, state)).collect();
        (extensions, std::mem::take(&mut core.outward.devices))
    };
    // Nobody wants to know.
    shard.core.borrow_mut().touched_devices.push("Custom:lamp".to_owned());
    assert_eq!(told(&mut hints), (vec![], vec![]));
    {
        let outward = &mut shard.core.borrow_mut().outward;
        (outward.wants_extensions, outward.wants_devices, outward.wants_all) = (true, true, true);
    }
    let before = hints.rows()[0].state;
    let (extensions, _) = told(&mut hints);
    assert_eq!(extensions.len(), 2, "a pattern has no state: {extensions:?}");
    assert_eq!(extensions[0], ("100".to_owned(), Some(before)));
    assert_eq!(told(&mut hints), (vec![], vec![]), "once");
    call(&mut world, "1", &[]);
    world.run();
    let (extensions, devices) = told(&mut hints);
    assert_eq!(extensions, [("100".to_owned(), Some(InUse))]);
    assert!(devices.contains(&("Custom:lamp".to_owned(), InUse)), "{devices:?}");
    // A phone of theirs.
    shard.core.borrow_mut().told_of_device("SIM/7001", 1, InUse);
    let (extensions, devices) = told(&mut hints);
    assert_eq!((extensions, devices), (vec![("200".to_owned(), Some(InUse))], vec![]));
    assert_eq!(apps::hints::device_state(&shard, "SIM/7001"), InUse);
    shard.core.borrow_mut().told_of_device("SIM/7001", 1, NotInUse);
    assert_eq!(told(&mut hints).0, [("200".to_owned(), Some(NotInUse))]);
    shard.core.borrow_mut().forget_teller(1);
    assert_eq!(told(&mut hints).0, [("200".to_owned(), Some(Unavailable))], "there is no such phone here");
    // Its hint goes.
    let tables = apps::table::tables();
    let (program, _) = sim::parse_dialplan("[default]\nexten => 200,hint,SIM/7001\n", &tables);
    shard.core.borrow_mut().program = std::sync::Arc::new(program);
    assert!(told(&mut hints).0.contains(&("100".to_owned(), None)));
}

#[test]
fn a_device_is_told_when_it_does_something_else_and_a_local_channel_at_each_step() {
    let mut world = world("[default]\nexten => 1,1,NoOp()\n");
    world.watch();
    world.phone("6002", Phone::default());
    let mut hints = apps::hints::Hints::default();
    let shard = world.shard.clone();
    hints.update(&shard);
    for (device, touches, told) in [
        // An idle phone that is called and does not ring yet goes on being idle.
        ("SIM/6002", 3, 1),
        ("Local/1@default", 2, 2),
    ] {
        let before = states_of(&shard, device);
        for _ in 0..touches {
            shard.core.borrow_mut().touched_devices.push(device.to_owned());
            hints.update(&shard);
        }
        assert_eq!(states_of(&shard, device) - before, told, "{device}");
    }
}

#[test]
fn a_state_that_the_next_story_ends_is_told_and_each_hint_after_a_reload() {
    let mut world = world(
        "[default]\nexten => 100,hint,Custom:lamp\nexten => 1,1,Set(DEVICE_STATE(Custom:lamp)=RINGING)\n\
         exten => 2,1,Set(DEVICE_STATE(Custom:lamp)=INUSE)\n",
    );
    world.watch();
    let hints = std::rc::Rc::new(std::cell::RefCell::new(apps::hints::Hints::default()));
    let shard = world.shard.clone();
    hints.borrow_mut().update(&shard);
    let (lamps, seen) = (hints.clone(), std::rc::Rc::downgrade(&shard));
    shard.set_lamps(std::rc::Rc::new(move || lamps.borrow_mut().update(&seen.upgrade().unwrap())));
    call(&mut world, "1", &[]);
    call(&mut world, "2", &[]);
    world.run();
    hints.borrow_mut().update(&shard);
    let told = |notices: &[Notice]| {
        let state = |notice: &Notice| match notice {
            Notice::ExtensionStatus { exten, state, .. } => Some(format!("{exten} {}", state.name())),
            Notice::DeviceStateChange { device, state } if device.starts_with("Custom:") => {
                Some(format!("{device} {state}"))
            }
            _ => None,
        };
        notices.iter().filter_map(state).collect::<Vec<_>>()
    };
    let both = ["Custom:lamp RINGING", "100 RINGING", "Custom:lamp INUSE", "100 INUSE"];
    let rest = std::mem::take(&mut shard.core.borrow_mut().notices);
    assert_eq!([told(&world.notices), told(&rest)].concat(), both);
    for (is_reload, more) in [(false, &[][..]), (true, &["100 INUSE"])] {
        let program = (*shard.core.borrow().program).clone();
        shard.core.borrow_mut().program = std::sync::Arc::new(program);
        shard.core.borrow_mut().reloaded_hints = is_reload;
        shard.core.borrow_mut().touched_devices.push("Custom:lamp".to_owned());
        hints.borrow_mut().update(&shard);
        let notices = std::mem::take(&mut shard.core.borrow_mut().notices);
        assert_eq!(told(&notices), more, "reload: {is_reload}");
    }
}

#[test]
fn a_caller_who_is_turned_away_is_busy_before_he_is_gone() {
    for (steps, state) in [
        ("Busy()", Some(call::ChanState::Busy)),
        ("Congestion(1)", Some(call::ChanState::Busy)),
        ("Set(DIALSTATUS=BUSY)", Some(call::ChanState::Busy)),
        ("Set(DIALSTATUS=CHANUNAVAIL)", Some(call::ChanState::Busy)),
        ("Set(DIALSTATUS=NOANSWER)", None),
        ("Hangup(17)", None),
        ("Answer()\n same => n,Busy(1)", Some(call::ChanState::Up)),
    ] {
        let world = run(&format!("[default]\nexten => 1,1,{steps}\n"), "1", &[]);
        let mut states = world.notices.iter().filter_map(|notice| match notice {
            Notice::NewState(channel) => Some(channel.state),
            _ => None,
        });
        assert_eq!(states.next_back(), state, "{steps}");
    }
}

#[test]
fn functions_of_set_var_are_written_before_the_dialplan_begins() {
    let mut world = world("[default]\nexten => 1,1,NoOp(${CHANNEL(language)} ${CDR(userfield)})\n");
    world.watch();
    let id = call(&mut world, "1", &[]);
    let assigned = [("CHANNEL(language)", "de"), ("CDR(userfield)", "trunk"), ("NOSUCH(x)", "1")];
    let assigned = assigned.map(|(name, value)| (name.to_owned(), value.to_owned()));
    world.shard.core.borrow_mut().get_mut(id).unwrap().assigned = assigned.to_vec();
    world.run();
    assert_eq!(noted(&world), ["de trunk"]);
}

/// How often watchers were told of a device.
fn states_of(shard: &std::rc::Rc<call::Shard>, device: &str) -> usize {
    let core = shard.core.borrow();
    let of =
        |notice: &&Notice| matches!(notice, Notice::DeviceStateChange { device: of, .. } if of == device);
    core.notices.iter().filter(of).count()
}

#[test]
fn hints_tell_when_their_devices_change() {
    let mut world = world(
        "[default]\nexten => 100,hint,SIM/6002&Custom:lamp\nexten => 1,1,Set(DEVICE_STATE(Custom:lamp)=INUSE)\n same => n,NoOp(${EXTENSION_STATE(100)} ${HINT(100)})\n",
    );
    world.watch();
    world.phone("6002", Phone::default());
    let mut hints = apps::hints::Hints::default();
    let shard = world.shard.clone();
    hints.update(&shard);
    assert_eq!(hints.rows()[0].state, call::DeviceState::NotInUse);
    call(&mut world, "1", &[]);
    world.run();
    hints.update(&shard);
    let told: Vec<_> = shard
        .core
        .borrow()
        .notices
        .iter()
        .filter_map(|notice| match notice {
            Notice::ExtensionStatus { exten, state, .. } => Some((exten.clone(), *state)),
            _ => None,
        })
        .collect();
    assert_eq!(told, [("100".to_owned(), call::DeviceState::InUse)]);
    assert_eq!(noted(&world), ["INUSE SIM/6002&Custom:lamp"]);
}

#[test]
fn the_hint_of_a_pattern_knows_each_number_of_its_own() {
    let mut world = world(
        "[default]\nexten => _*76XXX,hint,Custom:DND${EXTEN:3}-${CONTEXT}\n\
         exten => 1,1,NoOp(${HINT(*76123)} ${EXTENSION_STATE(*76123)} ${EXTENSION_STATE(*76124)})\n",
    );
    world.watch();
    let shard = world.shard.clone();
    let mut hints = apps::hints::Hints::default();
    let lamp = |exten: &str| {
        std::rc::Rc::new(call::Watched { context: "default".to_owned(), exten: exten.to_owned() })
    };
    let (lit, dark) = (lamp("*76123"), lamp("*76124"));
    shard.core.borrow_mut().board.follow(&lit);
    shard.core.borrow_mut().board.follow(&dark);
    hints.update(&shard);
    shard.core.borrow_mut().set_custom_device("DND123-default", call::DeviceState::InUse);
    hints.update(&shard);
    let core = shard.core.borrow();
    assert_eq!(core.board.state(&lit), Some(call::DeviceState::InUse));
    assert_eq!(core.board.devices(&lit).collect::<Vec<_>>(), ["Custom:DND123-default"]);
    assert_eq!(core.board.state(&dark), Some(call::DeviceState::Unknown));
    drop(core);
    call(&mut world, "1", &[]);
    world.run();
    assert_eq!(noted(&world), ["Custom:DND123-default INUSE UNKNOWN"]);
}

#[test]
fn lamps_follow_what_is_set_of_a_number_whoever_sets_it() {
    use call::Diversion;
    let world = world("[default]\nexten => 1,1,NoOp()\n");
    let shard = world.shard.clone();
    let mut hints = apps::hints::Hints::default();
    let mut lamps = |act: &dyn Fn(&mut call::Core)| {
        act(&mut shard.core.borrow_mut());
        hints.update(&shard);
        shard.core.borrow_mut().take_diverted();
        ["DND6001", "CF6001"].map(|name| world.stored("CustomDevstate", name).unwrap_or_default())
    };
    assert_eq!(lamps(&|core| assert!(core.set_diversion("6001", Diversion::Busy, Some("6002")))), ["", ""]);
    assert_eq!(
        lamps(&|core| assert!(core.set_diversion("6001", Diversion::Disturb, Some("YES")))),
        ["INUSE", ""]
    );
    assert_eq!(lamps(&|core| assert!(core.services.db.put("CFIM", "6001", "6002"))), ["INUSE", "INUSE"]);
    assert_eq!(lamps(&|core| assert_eq!(core.services.db.delete_tree("DND", ""), 1)), ["NOT_INUSE", "INUSE"]);
    assert_eq!(
        lamps(&|core| assert!(core.set_diversion("6001", Diversion::All, None))),
        ["NOT_INUSE", "NOT_INUSE"]
    );
}

#[test]
fn devices_make_hints_of_their_own_where_the_context_wants_them() {
    let mut world =
        world("[default]\nautohints=yes\nexten => 6002,hint,SIM/6002\n[other]\nexten => 1,1,NoOp()\n");
    world.watch();
    let mut hints = apps::hints::Hints::default();
    let shard = world.shard.clone();
    hints.update(&shard);
    for (device, exten) in [
        ("SIM/6001", Some("6001")),
        ("Custom:door", Some("door")),
        ("SIM/6002", Some("6002")),
        ("Local/made-up@default", None),
        ("Custom:a,b", None),
        ("Custom:_X", None),
        ("nothing", None),
    ] {
        for _ in 0..2 {
            shard.core.borrow_mut().touched_devices.push(device.to_owned());
            hints.update(&shard);
        }
        let of: Vec<_> = hints
            .rows()
            .iter()
            .filter(|row| row.devices == device)
            .map(|row| (&*row.exten, &*row.context))
            .collect();
        assert_eq!(of, exten.map(|exten| (exten, "default")).into_iter().collect::<Vec<_>>(), "{device}");
    }
}

#[test]
fn each_change_of_a_custom_device_is_told_however_soon_the_next_one_follows() {
    use call::DeviceState as S;
    let mut world = world("[default]\nexten => 100,hint,Custom:door\n");
    world.watch();
    let mut hints = apps::hints::Hints::default();
    let shard = world.shard.clone();
    hints.update(&shard);
    for state in [S::InUse, S::Busy, S::NotInUse] {
        shard.core.borrow_mut().set_custom_device("door", state);
    }
    hints.update(&shard);
    let core = shard.core.borrow();
    let told = core.notices.iter().filter_map(|notice| match notice {
        Notice::DeviceStateChange { state, .. } => Some(*state),
        _ => None,
    });
    assert_eq!(told.collect::<Vec<_>>(), ["INUSE", "BUSY", "NOT_INUSE"]);
    assert_eq!(hints.rows()[0].state, S::NotInUse);
}
