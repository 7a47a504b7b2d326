//! Applications that write calls down, in an invented world.

mod common;

use call::monitor::MonitorChange;
use common::*;
use sim::World;

fn said(world: &World, words: &str) -> usize {
    world.transcript().iter().filter(|line| line.contains(words)).count()
}

#[test]
fn applications_begin_pause_change_and_end_recordings() {
    for (name, steps, expected) in [
        ("mixed", "MixMonitor(call.wav)", vec![("monitored by 4: mixed", 1)]),
        (
            "with each side apart, while it talks",
            "MixMonitor(/tmp/call.wav,bar(in.gsm)t(out.ulaw))",
            vec![("4: mixed while bridged", 1), ("5: heard while bridged", 1), ("6: said while bridged", 1)],
        ),
        ("ended", "MixMonitor(call.wav)\nsame => n,StopMixMonitor()", vec![("monitored by 4 no more", 1)]),
        (
            "ended by id",
            "MixMonitor(a.wav,i(ONE))\nsame => n,MixMonitor(b.wav,i(TWO))\nsame => n,StopMixMonitor(${TWO})\n\
             same => n,NoOp(${ONE} ${TWO})",
            vec![("monitored by 8 no more", 1), ("monitored by 4 no more", 0)],
        ),
        ("in two files", "Monitor(wav,base)", vec![("by 4: heard", 1), ("by 5: said", 1)]),
        ("in one file", "Monitor(wav,base,m)", vec![("by 4: mixed", 1)]),
        ("while it talks", "Monitor(wav,base,mb)", vec![("by 4: mixed while bridged", 1)]),
        ("one side is not mixed", "Monitor(wav,base,mi)", vec![("by 4: said", 1), ("mixed", 0)]),
        ("in another format", "Monitor(wav49,/x/base)", vec![("records /x/base-in.WAV", 1)]),
        ("one side", "Monitor(wav,base,o)", vec![("by 4: heard", 1), ("said", 0)]),
        (
            "changed",
            "Monitor(wav,/x/base)\nsame => n,ChangeMonitor(/y/other)\nsame => n,StopMonitor()",
            vec![
                ("renames /x/base-in.wav to /y/other-in.wav", 1),
                ("renames /x/base-out.wav to /y/other-out.wav", 1),
                ("by 4 no more", 1),
                ("by 5 no more", 1),
            ],
        ),
        (
            "paused",
            "Monitor(wav,base)\nsame => n,PauseMonitor()\nsame => n,UnpauseMonitor()",
            vec![("monitor 4 hears true", 2)],
        ),
        (
            "a MixMonitor is not ended by StopMonitor",
            "MixMonitor(c.wav)\nsame => n,StopMonitor()",
            vec![("no more", 0)],
        ),
    ] {
        let plan = format!("[default]\nexten => 1,1,Answer()\nsame => n,{steps}\nsame => n,Wait(1)\n");
        let world = run(&plan, "1", &[(9000, BYE)]);
        for (words, count) in expected {
            assert_eq!(said(&world, words), count, "{name}: {words}: {:?}", world.transcript());
        }
        assert_eq!(warnings(&world), [""; 0], "{name}");
    }
}

/// Each option of MixMonitor: what it changes of what the media plane and the file thread are told.
#[test]
fn each_option_of_mix_monitor_does_what_it_says() {
    for (name, arguments, expected) in [
        ("a appends", "/x/c.wav,a", vec![("appends to /x/c.wav", 1)]),
        ("without a the file begins anew", "/x/c.wav", vec![("records /x/c.wav", 1)]),
        ("b waits for a bridge", "/x/c.wav,b", vec![("mixed while bridged", 1)]),
        ("D keeps the sides apart", "/x/c.raw,D", vec![("mixed side by side", 1)]),
        (
            "n leaves silence out",
            "/x/c.wav,nr(/x/r.wav)",
            vec![("heard out of step", 1), ("records /x/r.wav", 1)],
        ),
        ("S changes nothing", "/x/c.wav,S", vec![("by 4: mixed", 1), ("out of step", 0)]),
        ("p beeps before", "/x/c.wav,p", vec![("hears beep", 1)]),
        (
            "r writes what the channel says",
            "/x/c.wav,r(/x/r.gsm)",
            vec![("by 5: heard", 1), ("records /x/r.gsm", 1)],
        ),
        ("t writes what it hears", "/x/c.wav,t(/x/t.gsm)", vec![("by 5: said", 1), ("records /x/t.gsm", 1)]),
        (
            "r and t do without a file of both",
            ",r(/x/r.gsm)t(/x/t.gsm)",
            vec![("heard", 1), ("said", 1), ("mixed", 0)],
        ),
        ("v is about what is heard", "/x/c.wav,v(2)", vec![("mixed said louder or quieter", 1)]),
        ("V is about what is spoken", "/x/c.wav,V(-2)", vec![("mixed heard louder or quieter", 1)]),
        ("W is about both", "/x/c.wav,W(4)", vec![("heard louder or quieter said louder or quieter", 1)]),
        ("wav49 is called WAV", "/x/c.wav49", vec![("records /x/c.WAV", 1)]),
    ] {
        let plan = format!(
            "[default]\nexten => 1,1,Answer()\nsame => n,MixMonitor({arguments})\nsame => n,Wait(1)\n"
        );
        let world = run(&plan, "1", &[(9000, BYE)]);
        for (words, count) in expected {
            assert_eq!(said(&world, words), count, "{name}: {words}: {:?}", world.transcript());
        }
        assert_eq!(warnings(&world), [""; 0], "{name}");
    }
}

#[test]
fn what_cannot_be_recorded_so_is_refused_with_a_reason_and_the_call_goes_on() {
    for (step, why) in [
        ("MixMonitor()", "wants a filename"),
        ("MixMonitor(nothing)", "filename.format"),
        ("MixMonitor(a.wav,r(b))", "filename.format"),
        ("MixMonitor(a.wav,v(9))", "-4 to 4"),
        ("MixMonitor(a.wav,W(loud))", "-4 to 4"),
        ("MixMonitor(a.wav,B(0))", "one second or more"),
        ("MixMonitor(a.wav,B(soon))", "one second or more"),
        ("MixMonitor(a.wav,m(100@default))", "no voicemail"),
        ("MixMonitor(a.wav,c)", "no voicemail"),
        ("MixMonitor(a.wav,dm(100@default))", "so it stays"),
        ("MixMonitor(a.wav,Z)", "option Z: there is none"),
        ("Monitor(wav,a,io)", "nothing to record"),
        ("Monitor(wav,a,B(0))", "one second or more"),
        ("Monitor(wav:http://here/,a)", "urlbase"),
        ("ChangeMonitor(b)", "not monitored"),
    ] {
        let plan = format!("[default]\nexten => 1,1,Answer()\nsame => n,{step}\nsame => n,NoOp(goes on)\n");
        let world = run(&plan, "1", &[(9000, BYE)]);
        let lines = warnings(&world);
        assert!(lines.iter().any(|line| line.contains(why)), "{step}: {lines:?}");
        assert_eq!(noted(&world), ["goes on"], "{step}");
    }
    let twice = "[default]\nexten => 1,1,Answer()\nsame => n,Monitor(wav,a)\nsame => n,Monitor(wav,b)\n";
    let lines = warnings(&run(twice, "1", &[(9000, BYE)]));
    assert!(lines.len() == 1 && lines[0].contains("monitored already"), "{lines:?}");
}

#[test]
fn check_says_what_of_a_recording_will_have_no_effect() {
    for (step, expected) in [
        ("MixMonitor(a.wav,abB(5)dDi(ID)npPr(r.wav)St(t.wav)v(1)V(1)W(1))", vec![]),
        (
            "MixMonitor(a.wav,m(100@default)c)",
            vec!["option m: there is no voicemail", "option c: there is no voicemail"],
        ),
        ("MixMonitor(a.wav,d,/bin/move)", vec![]),
        ("MixMonitor(a.wav,Q)", vec!["option Q: there is none"]),
        ("MixMonitor(a.wav,${OPTIONS},${COMMAND})", vec![]),
        ("Monitor(wav,a,mbB(5)io)", vec![]),
        ("Monitor(wav:http://here/,a,q)", vec!["option q: there is none", "urlbase"]),
        ("Record(a.wav,1,2,aknoqstuxy)", vec![]),
        ("Record(a.wav,1,2,qZ)", vec!["option Z: there is none"]),
    ] {
        let dialplan = format!("[default]\nexten => 1,1,{step}\n");
        let (program, _) = sim::parse_dialplan(&dialplan, &apps::table::tables());
        let concerns = apps::check(&program, &Default::default());
        let said: Vec<_> = concerns.iter().map(|concern| concern.message.as_str()).collect();
        assert_eq!(said.len(), expected.len(), "{step}: {said:?}");
        for (said, words) in said.iter().zip(expected) {
            assert!(said.contains("no effect has") && said.contains(words), "{step}: {said}");
        }
    }
}

#[test]
fn ids_and_names_are_told_to_the_dialplan() {
    let plan = "[default]\nexten => 1,1,Answer()\nsame => n,MixMonitor(/x/call.wav49,i(ID))\n\
                same => n,NoOp(${ID} ${MIXMONITOR_FILENAME} ${MIXMONITOR(${ID},filename)})\n\
                same => n,StopMixMonitor(${ID})\nsame => n,NoOp(${MIXMONITOR(${ID},filename)}.)\n";
    let world = run(plan, "1", &[(9000, BYE)]);
    assert_eq!(noted(&world), ["0x00000001 /x/call.WAV /x/call.WAV", "."]);
}

#[test]
fn a_file_that_is_not_to_be_kept_is_removed_when_its_recording_is_over() {
    for (options, discarded) in [("d", true), ("", false), ("dm(100@default)", false)] {
        let plan = format!(
            "[default]\nexten => 1,1,Answer()\nsame => n,MixMonitor(/x/c.wav,{options}r(/x/r.wav))\n"
        );
        let world = run(&plan, "1", &[(9000, BYE)]);
        assert_eq!(world.afterwards("/x/c.wav"), Some((discarded, 0)), "{options}");
        assert_eq!(world.afterwards("/x/r.wav"), Some((false, 0)), "{options}: what r names is kept");
    }
}

#[test]
fn both_parties_hear_a_beep_as_often_as_they_are_to() {
    for (step, alone) in
        [("MixMonitor(/x/c.wav,B(3))", 3), ("Monitor(wav,/x/c,B(3))", 3), ("MixMonitor(/x/c.wav,B)", 0)]
    {
        let mut world =
            world(&format!("[default]\nexten => 1,1,Answer()\nsame => n,{step}\nsame => n,Wait(60)\n"));
        call(&mut world, "1", &[(60_000, BYE)]);
        for second in 1..=11 {
            world.run_until(at(second * 1000));
            world.shard.core.borrow_mut().monitor_look();
        }
        assert_eq!(said(&world, "hears beep besides"), alone, "{step}: {:?}", world.transcript());
    }
    let plan = "[default]\nexten => 1,1,MixMonitor(/x/c.wav,B(5))\nsame => n,Dial(SIM/bob)\n";
    let mut world = world(plan);
    world.phone("bob", phone(&[(1000, sim::Act::Answer)]));
    call(&mut world, "1", &[(60_000, BYE)]);
    world.run_until(at(6000));
    world.shard.core.borrow_mut().monitor_look();
    assert_eq!(said(&world, "hears beep besides"), 2, "{:?}", world.transcript());
}

#[test]
fn who_ends_a_recording_hears_a_beep_if_it_was_begun_so() {
    for (options, beeps) in [("P", 1), ("", 0)] {
        let plan = format!(
            "[default]\nexten => 1,1,Answer()\nsame => n,MixMonitor(/x/c.wav,{options})\nsame => n,StopMixMonitor()\n\
             same => n,StopMixMonitor()\n"
        );
        let world = run(&plan, "1", &[(9000, BYE)]);
        assert_eq!(said(&world, "hears beep"), beeps, "{options}: {:?}", world.transcript());
    }
}

#[test]
fn watchers_hear_of_the_end_of_a_recording_that_the_call_ends_before_that_of_the_channel() {
    let plan = "[default]\nexten => 1,1,Answer()\nsame => n,MixMonitor(/x/c.wav)\nsame => n,Monitor(wav,/x/d)\nsame => n,Wait(60)\n";
    let world = run(plan, "1", &[(5000, BYE)]);
    let told: Vec<_> = world
        .notices
        .iter()
        .filter_map(|notice| match notice {
            call::Notice::Monitor { by, change: MonitorChange::Stopped, .. } => Some(*by),
            call::Notice::Hangup { .. } => Some("Hangup"),
            _ => None,
        })
        .collect();
    assert_eq!(told, ["MixMonitor", "Monitor", "Hangup"]);
}

#[test]
fn a_file_that_cannot_be_written_ends_its_recording_with_an_event_and_not_the_call() {
    let plan = "[default]\nexten => 1,1,Answer()\nsame => n,MixMonitor(/x/call.wav)\n\
                same => n,Monitor(wav,/x/other)\nsame => n,Wait(5)\nsame => n,NoOp(goes on)\n";
    let mut world = world(plan);
    world.watch();
    call(&mut world, "1", &[(9000, BYE)]);
    world.run_until(at(2000));
    world.fail_recording("/x/call.wav", "No space left on device");
    world.shard.core.borrow_mut().monitor_look();
    world.run();
    let changes: Vec<_> = world
        .notices
        .iter()
        .filter_map(|notice| match notice {
            call::Notice::Monitor { by, change, .. } => Some((*by, change.clone())),
            _ => None,
        })
        .collect();
    let failed = MonitorChange::Failed("/x/call.wav".to_owned(), "No space left on device".to_owned());
    let started = MonitorChange::Started;
    let ended = ("Monitor", MonitorChange::Stopped);
    assert_eq!(
        changes,
        [("MixMonitor", started.clone()), ("Monitor", started), ("MixMonitor", failed), ended]
    );
    assert_eq!(said(&world, "no more"), 1, "{:?}", world.transcript());
    assert_eq!(noted(&world), ["goes on"]);
    let lines = warnings(&world);
    assert!(lines.iter().any(|line| line.contains("/x/call.wav: No space left")), "{lines:?}");
}

#[test]
fn record_ends_when_its_file_cannot_be_written() {
    let plan = "[default]\nexten => 1,1,Answer()\nsame => n,Record(/x/note.wav,,,q)\nsame => n,NoOp(${RECORD_STATUS})\n";
    let mut world = world(plan);
    world.watch();
    call(&mut world, "1", &[(60_000, BYE)]);
    world.run_until(at(5000));
    world.fail_recording("/x/note.wav", "Input/output error");
    world.run();
    assert_eq!(noted(&world), ["ERROR"]);
}

/// What was started, as the shell gets it: its line and the values.
fn started(world: &sim::World) -> Vec<Vec<String>> {
    let args = |want: &call::LinkWant| match want {
        call::LinkWant::Program { path, args, .. } if path == "/bin/sh" => args.clone(),
        other => panic!("{other:?}"),
    };
    world.wanted_links().iter().map(args).collect()
}

#[test]
fn the_command_of_a_recording_runs_when_its_file_is_complete_and_gets_values_as_arguments() {
    let quiet = "exec </dev/null >/dev/null\n";
    for (step, script, values) in [
        (
            "MixMonitor(/x/a.wav,b,/bin/post \"^{MIXMONITOR_FILENAME}\" ${EVIL})",
            "/bin/post \"${1}\" ${2:+\"${2}\"}",
            &["/x/a.wav", "a,b; id"][..],
        ),
        ("MixMonitor(/x/a.wav,,/bin/post --name=${EVIL}, x)", "/bin/post --name=\"${1}\", x", &["a,b; id"]),
        ("MixMonitor(/x/a.wav,,${COMMAND})", "\"${1}\" \"${2}\" \"${3}\"", &["/bin/mail", "-s", "/x/a.wav"]),
        ("MixMonitor(/x/a.wav,d,/bin/post)", "( /bin/post\n)\nrm -f -- \"${1}\"", &["/x/a.wav"]),
        (
            "ExecIf($[\"${EVIL}\" != \"\"]?MixMonitor(/x/a.wav,,/bin/post ${EVIL}):NoOp())",
            "/bin/post ${1:+\"${1}\"}",
            &["a,b; id"],
        ),
    ] {
        let plan = format!(
            "[default]\nexten => 1,1,Set(EVIL=a,b; id)\nsame => n,Set(COMMAND=/bin/mail -s ^{{MIXMONITOR_FILENAME}})\n\
             same => n,Answer()\nsame => n,{step}\nsame => n,Wait(5)\n"
        )
        .replace("; id", "\\; id");
        let mut world = world(&plan);
        world.watch();
        world.script("/bin/sh", sim::Script::of(&[]));
        call(&mut world, "1", &[(2000, BYE)]);
        world.run();
        world.shard.core.borrow_mut().monitor_look();
        assert!(
            started(&world).is_empty() && world.shard.core.borrow().monitor_waits(),
            "{step}: the file is open"
        );
        world.complete_recording("/x/a.wav");
        world.shard.core.borrow_mut().monitor_look();
        let mut expected = vec!["-c".to_owned(), format!("{quiet}{script}"), "sh".to_owned()];
        expected.extend(values.iter().map(|value| (*value).to_owned()));
        assert_eq!(started(&world), [expected], "{step}: {:?}", warnings(&world));
        assert!(!world.shard.core.borrow().monitor_waits(), "{step}");
    }
}

#[test]
fn a_command_that_nobody_wrote_down_is_not_run() {
    for step in ["Exec(MixMonitor(/x/a.wav,,/bin/post))", "MixMonitor(${ALL})"] {
        let plan = format!(
            "[default]\nexten => 1,1,Set(ALL=/x/a.wav,,/bin/post)\nsame => n,Answer()\nsame => n,{step}\nsame => n,Wait(5)\n"
        );
        let mut world = world(&plan);
        world.script("/bin/sh", sim::Script::of(&[]));
        call(&mut world, "1", &[(2000, BYE)]);
        world.run();
        world.complete_recording("/x/a.wav");
        world.shard.core.borrow_mut().monitor_look();
        assert!(started(&world).is_empty(), "{step}");
        assert_eq!(said(&world, "records /x/a.wav"), 1, "{step}");
        assert!(warnings(&world).iter().any(|line| line.contains("the command")), "{step}");
    }
}
