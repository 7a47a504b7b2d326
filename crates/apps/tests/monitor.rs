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
        ("one side", "Monitor(wav,base,o)", vec![("by 4: heard", 1), ("said", 0)]),
        (
            "changed",
            "Monitor(wav,base)\nsame => n,ChangeMonitor(other)\nsame => n,StopMonitor()",
            vec![("by 4 no more", 1), ("by 8: heard", 1), ("by 9 no more", 1)],
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

#[test]
fn ids_and_names_are_told_and_what_has_no_effect_is_logged() {
    let plan = "[default]\nexten => 1,1,Answer()\nsame => n,MixMonitor(/x/call.wav,i(ID)pB(5),echo)\n\
                same => n,NoOp(${ID} ${MIXMONITOR_FILENAME})\nsame => n,MixMonitor(nothing)\n\
                same => n,MixMonitor(call.wav,v(9))\nsame => n,Monitor(wav,a)\nsame => n,Monitor(wav,b)\n";
    let world = run(plan, "1", &[(9000, BYE)]);
    assert_eq!(noted(&world), ["0x00000001 /x/call.wav"]);
    let lines = warnings(&world);
    for words in [
        "no effect has B",
        "no effect has p",
        "no effect has the command",
        "filename.format",
        "-4 to 4",
        "already",
    ] {
        assert!(lines.iter().any(|line| line.contains(words)), "{words}: {lines:?}");
    }
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
    assert_eq!(changes, [("MixMonitor", started.clone()), ("Monitor", started), ("MixMonitor", failed)]);
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
