//! Functions that tell of this machine, of other channels and of sounds, and locks: each argument and each error.

mod common;

use common::{BYE, call, noted, run, warnings, world};
use sim::Act;

/// What one call reads after its dialplan has set something.
fn read(before: &str, text: &str) -> (String, Vec<String>) {
    let before = if before.is_empty() { "NoOp(-)" } else { before };
    let world = run(&format!("[default]\nexten => 1,1,{before}\n same => n,NoOp(>{text}<)\n"), "1", &[]);
    let said = noted(&world).pop().unwrap_or_default();
    (said.trim_matches(['>', '<']).to_owned(), warnings(&world))
}

#[test]
fn items_of_what_does_not_exist_are_kept_and_their_writing_is_logged() {
    for (before, text, expected, logged) in [
        ("", "${FAXOPT(ecm)} ${FAXOPT(maxrate)} ${FAXOPT(modem)}", "yes 14400 v17,v27,v29", None),
        ("Set(FAXOPT(headerinfo)=Our fax)", "${FAXOPT(headerinfo)}", "Our fax", Some("faxes are neither")),
        ("Set(FAXOPT(gateway)=yes,10)", "${FAXOPT(gateway)}", "yes,10", Some("faxes are neither")),
        ("", "${FAXOPT(status)}", "", None),
        ("Set(FAXOPT(status)=x)", "${FAXOPT(status)}", "", Some("'status' can only be read")),
        ("", "${FAXOPT(colour)}", "", Some("no item 'colour'")),
        (
            "Set(GEOLOC_PROFILE(inheritable)=yes)",
            "${GEOLOC_PROFILE(inheritable)}",
            "yes",
            Some("no call carries a location"),
        ),
        ("", "${GEOLOC_PROFILE(id)}${GEOLOC_PROFILE(pidf_element)}", "device", None),
        ("", "${GEOLOC_PROFILE(north)}", "", Some("no item 'north'")),
        ("", "${STIR_SHAKEN(count)}", "0", None),
        ("", "${STIR_SHAKEN(0,identity)}", "", Some("no verification number 0")),
        ("", "${STIR_SHAKEN(0,colour)}", "", Some("no item 'colour'")),
        ("", "${STIR_SHAKEN(x,identity)}", "", Some("'x' is no index")),
        ("", "${STIR_SHAKEN(0)}", "", Some("takes count")),
        ("", "${CALLCOMPLETION(cc_agent_policy)}", "never", None),
        (
            "Set(CALLCOMPLETION(cc_agent_policy)=generic)",
            "${CALLCOMPLETION(cc_agent_policy)}",
            "generic",
            Some("no call is completed later"),
        ),
        ("", "${CALLCOMPLETION(colour)}", "", Some("no item 'colour'")),
        ("Set(DENOISE(tx)=on)", "${DENOISE(tx)}", "on", Some("no noise is taken away")),
        ("Set(PITCH_SHIFT(both)=high)", "", "", Some("voices stay as they are")),
        ("", "${PITCH_SHIFT(both)}", "", Some("cannot be read")),
        ("Set(SCRAMBLE(both)=5)", "", "", Some("voices stay as they are")),
        ("Set(FRAME_DROP(TX)=DTMF_BEGIN)", "", "", Some("no frames are dropped")),
        ("Set(FRAME_TRACE(white)=DTMF_BEGIN)", "", "", Some("frames are not shown")),
        ("Set(STIR_SHAKEN(count)=1)", "", "", Some("cannot be written")),
        ("Set(STIR_SHAKEN_ATTESTATION(suppress)=yes)", "", "", None),
        ("Set(STIR_SHAKEN_ATTESTATION(suppress)=perhaps)", "", "", Some("is yes or no")),
        ("Set(STIR_SHAKEN_ATTESTATION(level)=A)", "", "", Some("no item 'level'")),
    ] {
        let (said, lines) = read(before, text);
        assert_eq!(said, expected, "{before} {text}");
        match logged {
            Some(part) => assert!(lines.iter().any(|line| line.contains(part)), "{before} {text}: {lines:?}"),
            None => assert!(lines.is_empty(), "{before} {text}: {lines:?}"),
        }
    }
}

#[test]
fn sayfiles_gives_what_would_be_played() {
    for (before, text, expected, logged) in [
        ("", "${SAYFILES(blah)}", "letters/b&letters/l&letters/a&letters/h", None),
        ("", "${SAYFILES(35,digits)}", "digits/3&digits/5", None),
        ("", "${SAYFILES(ab,phonetic)}", "phonetic/a_p&phonetic/b_p", None),
        ("", "${SAYFILES(1042,number)}", "digits/1&digits/thousand&digits/40&digits/2", None),
        ("", "${SAYFILES(1042,ordinal)}", "digits/1&digits/thousand&digits/40&digits/h-2", None),
        ("", "${SAYFILES(2.42,money)}", "digits/2&dollars&and&digits/40&digits/2&cents", None),
        ("Set(CHANNEL(language)=de)", "${SAYFILES(21,number)}", "digits/1-and&digits/20", None),
        ("", "${SAYFILES(x,number)}", "", Some("no number that can be said")),
        ("", "${SAYFILES(x,money)}", "", Some("no amount of dollars")),
        ("", "${SAYFILES(x,song)}", "", Some("no item 'song'")),
        ("", "${SAYFILES()}", "", Some("needs a value")),
    ] {
        let (said, lines) = read(before, text);
        assert_eq!(said, expected, "{text}");
        assert_eq!(
            lines.iter().any(|line| logged.is_some_and(|part| line.contains(part))),
            logged.is_some(),
            "{text}: {lines:?}"
        );
    }
}

#[test]
fn other_channels_sound_and_holds_are_reached() {
    for (before, text, expected, logged) in [
        ("Set(EXPORT(${CHANNEL},X)=5)", "${X}", "5", None),
        ("Set(EXPORT(${UNIQUEID},__X)=6)", "${X}", "6", None),
        ("Set(EXPORT(SIM/none-1,X)=5)", "${X}", "", Some("no channel 'SIM/none-1'")),
        ("Set(EXPORT(${CHANNEL})=5)", "", "", Some("needs a channel and a variable")),
        ("Set(MUTEAUDIO(all)=on)", "", "", None),
        ("Set(MUTEAUDIO(in)=off)", "", "", None),
        ("Set(MUTEAUDIO(left)=on)", "", "", Some("no item 'left'")),
        ("Set(MUTEAUDIO(in)=maybe)", "", "", Some("neither on nor off")),
        ("Set(HOLD_INTERCEPT(set)=)", "", "", None),
        ("Set(HOLD_INTERCEPT(twist)=)", "", "", Some("no item 'twist'")),
        ("", "${SYSINFO(numcalls)}", "1", None),
        ("", "${SYSINFO(colour)}", "", Some("no item 'colour'")),
        ("", "${SYSINFO(loadavg)}", "", Some("/proc/loadavg cannot be read")),
        ("", "${RECORDING_INFO(duration)}", "", Some("nothing was recorded")),
        ("", "${RECORDING_INFO(colour)}", "", Some("no item 'colour'")),
        ("", "${ENUMRESULT(7,1)}", "", Some("nothing was asked under the id '7'")),
    ] {
        let (said, lines) = read(before, text);
        assert_eq!(said, expected, "{before} {text}");
        assert_eq!(
            lines.iter().any(|line| logged.is_some_and(|part| line.contains(part))),
            logged.is_some(),
            "{before} {text}: {lines:?}"
        );
    }
}

#[test]
fn what_was_recorded_is_measured() {
    let plan = "[default]\nexten => 1,1,Answer()\n same => n,Record(/tmp/x.wav,0,3,q)\n same => n,NoOp(${RECORDING_INFO(duration)})\n";
    let world = run(plan, "1", &[]);
    assert_eq!(noted(&world), ["3000"], "{:?}", warnings(&world));
}

/// A dialplan whose extension `1` holds the lock for two seconds, `2` wants it after one, `3` tries it.
const LOCKS: &str = "[default]
exten => 1,1,NoOp(first ${LOCK(door)}${LOCK(door)})
 same => n,Wait(2)
 same => n,NoOp(once ${UNLOCK(door)})
 same => n,NoOp(twice ${UNLOCK(door)} more ${UNLOCK(door)})
exten => 2,1,Wait(1)
 same => n,NoOp(tried ${TRYLOCK(door)})
 same => n,NoOp(second ${LOCK(door)})
exten => 3,1,NoOp(holds ${LOCK(door)})
 same => n,Wait(100)
exten => 4,1,NoOp(other ${LOCK(window)})
 same => n,NoOp(gives up ${LOCK(door)} ${EPOCH})
exten => 5,1,NoOp([${LOCK()}][${UNLOCK()}])
";

#[test]
fn a_lock_is_held_by_one_channel_until_it_is_given_back_as_often_as_it_was_taken() {
    let mut world = world(LOCKS);
    world.watch();
    call(&mut world, "1", &[]);
    call(&mut world, "2", &[]);
    world.run();
    assert_eq!(noted(&world), ["first 11", "tried 0", "once 1", "twice 1 more 0", "second 1"]);
}

#[test]
fn the_end_of_a_channel_gives_its_locks_back() {
    let mut world = world(LOCKS);
    world.watch();
    call(&mut world, "3", &[(5000, BYE)]);
    call(&mut world, "2", &[]);
    world.run();
    assert_eq!(noted(&world), ["holds 1", "tried 0", "second 1"]);
}

#[test]
fn who_holds_a_lock_waits_three_seconds_for_another() {
    let mut world = world(LOCKS);
    world.watch();
    call(&mut world, "3", &[(9000, BYE)]);
    call(&mut world, "4", &[]);
    world.run();
    let began: i64 = 1_795_262_400;
    assert_eq!(
        noted(&world),
        ["holds 1".to_owned(), "other 1".to_owned(), format!("gives up 0 {}", began + 3)]
    );
}

#[test]
fn who_waits_for_a_lock_may_hang_up() {
    let mut world = world(LOCKS);
    world.watch();
    call(&mut world, "3", &[(9000, BYE)]);
    call(&mut world, "2", &[(4000, BYE)]);
    world.run();
    assert_eq!(noted(&world), ["holds 1", "tried 0"]);
}

#[test]
fn a_lock_needs_a_name() {
    let world = run(LOCKS, "5", &[]);
    assert_eq!(noted(&world), ["[][]"]);
    assert_eq!(warnings(&world).iter().filter(|line| line.contains("needs the name of a lock")).count(), 2);
}

#[test]
fn numbers_are_said_in_the_channels_language_and_in_english_order_where_files_are_missing() {
    let plan = "[default]
exten => 1,1,Answer()
 same => n,Set(CHANNEL(language)=de_AT)
 same => n,SayNumber(121,f)
 same => n,SayOrdinal(3)
 same => n,SayCountedNoun(2,apple)
 same => n,SayMoney(1.50)
 same => n,SayAlphaCase(u,aB)
 same => n,SayCountedNoun(x,apple)
 same => n,SayMoney(many)
 same => n,SayAlphaCase(z,a)
";
    let heard = |missing: &[&str]| {
        let mut world = world(plan);
        for name in missing {
            world.missing(name);
        }
        call(&mut world, "1", &[]);
        world.run();
        let plays: Vec<String> = world
            .transcript()
            .iter()
            .filter_map(|line| line.split_once(" hears ").map(|(_, sound)| sound.replace(" (de_AT)", "")))
            .collect();
        (plays.join(" "), warnings(&world))
    };
    let rest = "digits/h-3 apples digits/1 letters/dollar and digits/50 cents letters/a uppercase letters/b";
    let (said, lines) = heard(&[]);
    assert_eq!(said, format!("digits/1N digits/hundred digits/1-and digits/20 {rest}"));
    assert_eq!(lines.len(), 3, "what is no number, amount or case: {lines:?}");
    let (said, lines) = heard(&["digits/1-and", "digits/1N"]);
    assert_eq!(said, format!("digits/1 digits/hundred digits/20 digits/1 {rest}"));
    let missing: Vec<_> = lines.iter().filter(|line| line.contains("English order")).collect();
    assert_eq!(missing.len(), 1, "{lines:?}");
}

#[test]
fn texts_are_spoken_in_a_language_and_keys_begin_an_extension() {
    for (app, acts, missing, heard, expected) in [
        ("Playback(say:Hello)", vec![], "", "say:Hello", "SUCCESS"),
        ("Playback(\"say:Hello, you\")", vec![], "", "say:Hello, you", "SUCCESS"),
        ("Espeak(\"Hello, A & B\")", vec![], "", "say:Hello, A & B", "SUCCESS"),
        ("Espeak(Hallo,,de)", vec![], "", "say:Hallo (de)", "SUCCESS"),
        ("Festival(Hello)", vec![], "", "say:Hello", "SUCCESS"),
        ("Espeak(Hello)", vec![], "say:Hello", "", "FAILED"),
        ("Espeak()", vec![], "", "", "FAILED"),
        ("Espeak(Hello,any)", vec![(500, Act::Press('7'))], "", "say:Hello", "went to 7"),
        ("Espeak(Hello,12)", vec![(500, Act::Press('7'))], "", "say:Hello", "SUCCESS"),
    ] {
        let plan = format!(
            "[default]\nexten => 1,1,{app}\n same => n,NoOp(${{PLAYBACKSTATUS}})\nexten => 7,1,NoOp(went to 7)\n"
        );
        let mut world = world(&plan);
        world.watch();
        if !missing.is_empty() {
            world.missing(missing);
        }
        call(&mut world, "1", &acts);
        world.run();
        let said: Vec<String> = world
            .transcript()
            .iter()
            .filter_map(|line| line.split_once(" hears ").map(|(_, sound)| sound.to_owned()))
            .collect();
        assert_eq!(said.join(" "), heard, "{app}");
        assert_eq!(noted(&world), [expected], "{app}: {:?}", warnings(&world));
    }
}

#[test]
fn a_hold_that_is_intercepted_is_told_to_managers_and_not_to_the_other_party() {
    for (before, of_called, is_held, told) in [
        ("NoOp(-)", "NoOp()", true, 1),
        // What the channel's own phone does is not caught, what its peer does is.
        ("Set(HOLD_INTERCEPT(set)=)", "NoOp()", true, 1),
        ("NoOp(-)", "Set(HOLD_INTERCEPT(set)=)", false, 2),
        ("NoOp(-)", "Set(HOLD_INTERCEPT(remove)=)", true, 1),
    ] {
        let mut world = world(&format!(
            "[default]\nexten => 1,1,{before}\n same => n,Dial(SIM/6002,20,b(called^s^1))\n\
             [called]\nexten => s,1,{of_called}\n same => n,Return()\n"
        ));
        world.watch();
        world.phone("6002", common::talks());
        call(&mut world, "1", &[(4000, Act::Hold)]);
        world.run();
        let held = world.transcript().iter().any(|line| line.contains("is held"));
        assert_eq!(held, is_held, "{before} {of_called}: {:#?}", world.transcript());
        let notices =
            world.notices.iter().filter(|notice| matches!(notice, call::Notice::Hold { .. })).count();
        assert_eq!(notices, told, "{before} {of_called}");
    }
}
