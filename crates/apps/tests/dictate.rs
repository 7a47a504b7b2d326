//! Dictate: which file, what keys do, and what is left behind.

mod common;

use std::collections::BTreeMap;
use std::time::Duration;

use call::Directories;
use common::{BYE, at_rest, call, lines, noted, warnings};
use sim::{Act, World};

fn world(argument: &str, prompts: bool) -> World {
    let mut world = common::world(&format!(
        "[default]\nexten => 1,1,Answer()\n same => n,Dictate({argument})\n same => n,NoOp(on)\n"
    ));
    world.watch();
    world.settings(|settings| {
        settings.directories = Directories(BTreeMap::from([("spool".to_owned(), "/spool".to_owned())]));
    });
    // What is in the file, as the keeper of mailboxes reads it.
    world.clip("what was recorded", Duration::from_secs(10));
    for name in [
        "enter_filename",
        "forhelp",
        "play_help",
        "record_help",
        "both_help",
        "record_mode",
        "playback_mode",
        "pause",
        "paused",
        "playback",
        "record",
        "truncating_audio",
    ] {
        match prompts {
            true => world.clip(&format!("dictate/{name}"), Duration::from_millis(100)),
            false => world.missing(&format!("dictate/{name}")),
        }
    }
    world.clip("beep", Duration::from_millis(100));
    world
}

/// Runs a call in which these keys are pressed, and which ends then; what it heard and what was written.
fn dictated(argument: &str, keys: &[(u64, char)], end_ms: u64) -> (World, Vec<String>) {
    let mut world = world(argument, true);
    let mut acts: Vec<(u64, Act)> = keys.iter().map(|(ms, key)| (*ms, Act::Press(*key))).collect();
    acts.push((end_ms, BYE));
    call(&mut world, "1", &acts);
    world.run();
    at_rest(&world, argument);
    let told = world.transcript().into_iter().filter_map(|line| {
        let (ms, what) = line.split_once(' ')?;
        let what = what.strip_prefix("#1 ").unwrap_or(what);
        let counts = ["hears", "is recorded", "appends to"].iter().any(|word| what.starts_with(word));
        counts.then(|| format!("{ms} {}", what.replace("hears dictate/", "hears ")))
    });
    let told = told.collect();
    (world, told)
}

#[test]
fn a_file_is_named_by_the_dialplan_or_by_the_caller() {
    for (name, argument, keys, expected) in [
        ("by the dialplan", ",letter", vec![], "appends to /spool/dictate/letter.raw"),
        ("in a folder", "6001,letter", vec![], "appends to /spool/dictate/6001/letter.raw"),
        ("anywhere", "/srv/letters/,letter", vec![], "appends to /srv/letters/letter.raw"),
        ("by the caller", "", vec![(200, '4'), (300, '2'), (400, '#')], "appends to /spool/dictate/42.raw"),
        (
            "by the caller, because the name leads away",
            ",../x",
            vec![(200, '4'), (300, '2'), (400, '#')],
            "appends to /spool/dictate/42.raw",
        ),
    ] {
        let keys: Vec<_> = keys.into_iter().chain([(1000, '1'), (1500, '*')]).collect();
        let (world, told) = dictated(argument, &keys, 4000);
        assert!(told.iter().any(|line| line.ends_with(expected)), "{name}: {told:?}");
        assert!(noted(&world).is_empty(), "{name}: it goes on until the caller hangs up");
    }
}

#[test]
fn what_leads_upwards_is_refused_and_who_names_nothing_goes_on() {
    let (world, told) = dictated("../elsewhere,x", &[], 60_000);
    assert_eq!((noted(&world), told.len()), (vec!["on".to_owned()], 0));
    assert!(warnings(&world).iter().any(|line| line.contains("must not lead upwards")));
    let (world, told) = dictated("", &[], 600_000);
    assert_eq!(noted(&world), ["on"]);
    assert_eq!(told.iter().filter(|line| line.ends_with("enter_filename")).count(), 3, "{told:?}");
}

#[test]
fn keys_do_what_is_written_of_them() {
    for (name, keys, end_ms, expected) in [
        (
            "it is recorded, rests, and is recorded further",
            vec![(1000, '1'), (2000, '*'), (5000, '*'), (6000, '*')],
            8000,
            vec![
                "20 hears forhelp",
                "1000 hears record_mode",
                "2000 hears record",
                "2100 appends to /spool/dictate/a.raw",
                "2100 is recorded",
                "5000 is recorded no more",
                "5000 hears pause",
                "6000 hears record",
                "6100 appends to /spool/dictate/a.raw",
                "6100 is recorded",
                "8000 is recorded no more",
            ],
        ),
        (
            "it is heard, wound, and heard to its end",
            vec![(1000, '*'), (3100, '7'), (4100, '8')],
            20_000,
            vec![
                "20 hears forhelp",
                "1000 hears playback",
                "1100 hears what was recorded",
                "3100 hears what was recorded from 1000 ms",
                "4100 hears what was recorded from 5000 ms",
                "9100 hears paused",
            ],
        ),
        (
            "it rests where it is, and begins anew after its end",
            vec![(1000, '*'), (2100, '*'), (3000, '*'), (15_000, '*')],
            16_000,
            vec![
                "20 hears forhelp",
                "1000 hears playback",
                "1100 hears what was recorded",
                "2100 hears pause",
                "3000 hears playback",
                "3100 hears what was recorded from 1000 ms",
                "12100 hears paused",
                "15000 hears playback",
                "15100 hears what was recorded",
            ],
        ),
        (
            "twice as fast from the second second on, and once again",
            vec![(1000, '*'), (2100, '2'), (3100, '2'), (3100, '2'), (3200, '2')],
            4000,
            vec![
                "20 hears forhelp",
                "1000 hears playback",
                "1100 hears what was recorded",
                "2100 hears unnamed",
                "3100 hears unnamed",
                "3100 hears unnamed",
                "3200 hears what was recorded from 3400 ms",
            ],
        ),
        (
            "all is erased while it is recorded, which goes on",
            vec![(1000, '1'), (2000, '*'), (5000, '8')],
            6000,
            vec![
                "20 hears forhelp",
                "1000 hears record_mode",
                "2000 hears record",
                "2100 appends to /spool/dictate/a.raw",
                "2100 is recorded",
                "5000 is recorded no more",
                "5000 hears truncating_audio",
                "5100 appends to /spool/dictate/a.raw",
                "5100 is recorded",
                "6000 is recorded no more",
            ],
        ),
        (
            "keys are told, and a key ends that",
            vec![(1000, '0'), (2000, '1'), (3000, '0'), (3050, '1')],
            4000,
            vec![
                "20 hears forhelp",
                "1000 hears play_help",
                "1100 hears both_help",
                "2000 hears record_mode",
                "3000 hears record_help",
                "3050 hears playback_mode",
            ],
        ),
        (
            "keys that mean nothing disturb nothing",
            vec![(1000, '1'), (2000, '*'), (3000, '2'), (3500, '7'), (4000, '9')],
            5000,
            vec![
                "20 hears forhelp",
                "1000 hears record_mode",
                "2000 hears record",
                "2100 appends to /spool/dictate/a.raw",
                "2100 is recorded",
                "5000 is recorded no more",
            ],
        ),
        (
            "another file",
            vec![(1000, '#'), (1500, '7'), (1600, '#'), (2000, '1'), (3000, '*')],
            4000,
            vec![
                "20 hears forhelp",
                "1000 hears enter_filename",
                "1600 hears forhelp",
                "2000 hears record_mode",
                "3000 hears record",
                "3100 appends to /spool/dictate/7.raw",
                "3100 is recorded",
                "4000 is recorded no more",
            ],
        ),
    ] {
        let (_, told) = dictated(",a", &keys, end_ms);
        assert_eq!(told, expected, "{name}");
    }
}

#[test]
fn without_its_prompts_it_beeps_and_a_file_that_cannot_be_written_is_told_of() {
    let mut world = world(",a", false);
    world.missing("/spool/dictate/a.raw");
    let acts = [(1000, Act::Press('1')), (2000, Act::Press('*')), (4000, BYE)];
    call(&mut world, "1", &acts);
    world.run();
    at_rest(&world, "beeps");
    let heard: Vec<String> =
        lines(&world, "hears").iter().map(|line| line.rsplit(' ').next().unwrap().to_owned()).collect();
    assert_eq!(heard, ["beep", "beep", "beep", "beeperr"]);
    assert_eq!(warnings(&world).iter().filter(|line| line.contains("cannot record to")).count(), 1);
}
