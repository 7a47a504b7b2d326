//! What listens for speech and tones: WaitForNoise, BackgroundDetect, AMD, ReceiveMF, ReceiveSF, TALK_DETECT(), TONE_DETECT().

mod common;

use std::time::Duration;

use call::Notice;
use common::{BYE, at_rest, call, lines, noted, warnings, world};
use sim::{Act, World};

const LOUD: Act = Act::Sound(true, 0);

fn quiet(after_ms: u32) -> Act {
    Act::Sound(false, after_ms)
}

/// One call of `1`: its step, and what is read after it.
fn run(step: &str, read: &str, acts: &[(u64, Act)]) -> World {
    let read = if read.is_empty() { String::new() } else { format!(" same => n,NoOp({read})\n") };
    let mut world =
        world(&format!("[default]\nexten => 1,1,{step}\n{read}exten => h,1,NoOp(h ${{AMDSTATUS}})\n"));
    world.watch();
    call(&mut world, "1", acts);
    world.run();
    at_rest(&world, step);
    world
}

#[test]
fn noise_is_waited_for_so_often_and_so_long() {
    for (step, acts, expected) in [
        ("WaitForNoise(500)", vec![(2000, LOUD)], vec!["NOISE"]),
        ("WaitForNoise(500,2)", vec![(2000, LOUD), (3000, LOUD)], vec!["NOISE"]),
        ("WaitForNoise(500,2,5)", vec![(2000, LOUD), (2500, quiet(500))], vec!["TIMEOUT"]),
        ("WaitForNoise(500,1,5)", vec![(1000, Act::Press('1'))], vec!["TIMEOUT"]),
        ("WaitForNoise(none,0,)", vec![(2000, LOUD)], vec!["NOISE"]),
        ("WaitForNoise()", vec![(2000, BYE)], vec![]),
    ] {
        let world = run(step, "${WAITSTATUS}", &acts);
        assert_eq!(noted(&world)[..expected.len()], expected, "{step}");
        assert_eq!(noted(&world).len(), expected.len() + 1, "{step}");
    }
    for (step, watch) in [
        ("WaitForNoise(500)", "0 #1 Application watches for 500 ms above 256 and 0 ms below"),
        ("WaitForNoise()", "0 #1 Application watches for 1000 ms above 256 and 0 ms below"),
    ] {
        assert_eq!(lines(&run(step, "", &[(2000, LOUD)]), "watches"), [watch], "{step}");
    }
}

#[test]
fn a_tone_is_waited_for_so_often_and_so_long() {
    const HEARD: Act = Act::Tone(false);
    for (name, step, acts, expected) in [
        ("it comes", "WaitForTone(2600)", vec![(2000, HEARD)], Some("SUCCESS")),
        ("twice", "WaitForTone(2600,500,9,2)", vec![(2000, HEARD), (3000, HEARD)], Some("SUCCESS")),
        ("once where twice is wanted", "WaitForTone(2600,500,3,2)", vec![(2000, HEARD)], Some("TIMEOUT")),
        (
            "only in what the caller hears",
            "WaitForTone(2600,,3)",
            vec![(2000, Act::Tone(true))],
            Some("TIMEOUT"),
        ),
        ("a digit is none", "WaitForTone(2600,,3)", vec![(2000, Act::Press('1'))], Some("TIMEOUT")),
        ("hang-up", "WaitForTone(2600)", vec![(2000, BYE)], None),
        ("no frequency", "WaitForTone()", vec![], Some("ERROR")),
        ("one that no telephone carries", "WaitForTone(4100)", vec![], Some("ERROR")),
        ("no number", "WaitForTone(2600,long)", vec![], Some("ERROR")),
        ("never", "WaitForTone(2600,500,3,0)", vec![], Some("ERROR")),
        ("so loud", "WaitForTone(2600,500,3,1,d(0))", vec![], Some("ERROR")),
    ] {
        let world = run(step, "${WAITFORTONESTATUS}", &acts);
        let noted = noted(&world);
        assert_eq!(noted.first().map(String::as_str), Some(expected.unwrap_or("h ")), "{name}");
    }
    // What TONE_DETECT() listens for is set aside meanwhile, and goes on.
    let step = "Set(TONE_DETECT(425)=)\n same => n,WaitForTone(2600)";
    let world = run(
        step,
        "${WAITFORTONESTATUS} ${TONE_DETECT(rx)}\n same => n,Wait(2)\n same => n,NoOp(${TONE_DETECT(rx)}",
        &[(2000, HEARD), (3000, HEARD)],
    );
    assert_eq!(noted(&world)[..2], ["SUCCESS 0", "1"]);
}

/// Digits of trunks: MF (ITU-T Q.320) with its begin and end, and pulses.
#[test]
fn digits_of_trunks_are_collected_until_they_are_all_there() {
    let press = |digits: &str| -> Vec<(u64, Act)> {
        digits.chars().zip(0..).map(|(digit, at)| (1000 + at * 300, Act::Press(digit))).collect()
    };
    for (name, step, acts, expected) in [
        ("MF to its end", "ReceiveMF(got)", press("*42#"), "*42# START"),
        ("so many of MF", "ReceiveMF(got,,n(3))", press("*42"), "*42 MAXDIGITS"),
        ("MF that does not end", "ReceiveMF(got,4.5)", press("*42"), "*42 TIMEOUT"),
        ("MF for how long", "ReceiveMF(got,long)", vec![], " ERROR"),
        ("so many pulses", "ReceiveSF(got,3)", press("4207"), "420 MAXDIGITS"),
        ("pulses for some time", "ReceiveSF(got,,4)", press("42"), "42 TIMEOUT"),
        ("pulses of another frequency", "ReceiveSF(got,2,,2400,dq)", press("42"), "42 MAXDIGITS"),
        ("a frequency that no telephone carries", "ReceiveSF(got,2,,9000)", press("42"), " ERROR"),
        ("no number of digits", "ReceiveSF(got,all)", press("42"), " ERROR"),
    ] {
        let world = run(step, "${got} ${RECEIVEMFSTATUS}${RECEIVESFSTATUS}", &acts);
        assert_eq!(noted(&world).first().map(String::as_str), Some(expected), "{name}");
    }
}

/// One call of `1`, whose prompt `long` takes ten seconds.
fn prompted(steps: &str, acts: &[(u64, Act)]) -> World {
    let mut world = world(&format!(
        "[default]\nexten => 1,1,{steps}\n same => n,NoOp(on)\nexten => talk,1,NoOp(talk)\nexten => 7,1,NoOp(seven)\n\
         [mute]\nexten => 1,1,BackgroundDetect(long)\n same => n,NoOp(on ${{TALK_DETECTED}})\n"
    ));
    world.watch();
    world.clip("long", Duration::from_secs(10));
    world.missing("none");
    call(&mut world, "1", acts);
    world.run();
    at_rest(&world, steps);
    world
}

#[test]
fn a_prompt_stops_for_talk_of_the_right_length_and_for_digits_that_begin_an_extension() {
    for (name, step, acts, expected) in [
        ("to its end", "BackgroundDetect(long)", vec![], "on"),
        ("talk", "BackgroundDetect(long)", vec![(1000, LOUD), (3000, quiet(900))], "talk"),
        ("sound that does not end", "BackgroundDetect(long)", vec![(1000, LOUD)], "on"),
        (
            "as long as it may be",
            "BackgroundDetect(long,500,50,900)",
            vec![(1000, LOUD), (3000, quiet(900))],
            "talk",
        ),
        ("too long", "BackgroundDetect(long,500,50,899)", vec![(1000, LOUD), (3000, quiet(900))], "on"),
        (
            "the second is short enough",
            "BackgroundDetect(long,500,50,899)",
            vec![(1000, LOUD), (3000, quiet(900)), (4000, LOUD), (5000, quiet(500))],
            "talk",
        ),
        ("in time", "BackgroundDetect(long,500,,,3000)", vec![(1000, LOUD), (3400, quiet(900))], "talk"),
        ("too late", "BackgroundDetect(long,500,,,2000)", vec![(1000, LOUD), (3400, quiet(900))], "on"),
        ("a digit", "BackgroundDetect(long)", vec![(1000, Act::Press('7'))], "seven"),
        ("no extension begins with it", "BackgroundDetect(long)", vec![(1000, Act::Press('8'))], "on"),
        ("no such sound", "BackgroundDetect(none)", vec![(1000, LOUD), (3000, quiet(900))], "on"),
        ("no sound", "BackgroundDetect()", vec![], "on"),
        ("no extension talk", "Goto(mute,1,1)", vec![(1000, LOUD), (3000, quiet(900))], "on 900"),
    ] {
        assert_eq!(noted(&prompted(step, &acts)), [expected], "{name}");
    }
    for (step, watch) in [
        ("BackgroundDetect(long)", "Application watches for 100 ms above 256 and 1000 ms below"),
        ("BackgroundDetect(long,500,50)", "Application watches for 50 ms above 256 and 500 ms below"),
    ] {
        assert!(lines(&prompted(step, &[]), "watches")[0].ends_with(watch), "{step}");
    }
    // That there is no extension `talk` is nobody's fault.
    for (step, said) in [("BackgroundDetect()", Some("requires an argument")), ("Goto(mute,1,1)", None)] {
        let warnings = warnings(&prompted(step, &[(1000, LOUD), (3000, quiet(900))]));
        match said {
            Some(said) => assert!(warnings.iter().any(|line| line.contains(said)), "{step}: {warnings:?}"),
            None => assert!(warnings.is_empty(), "{step}: {warnings:?}"),
        }
    }
}

#[test]
fn amd_says_who_has_answered_and_why() {
    let word = |from: u64, to: u64| {
        let lasted = u32::try_from(to - from).unwrap();
        [(from + 100, LOUD), (to + 50, quiet(lasted))]
    };
    for (step, acts, expected) in [
        ("AMD()", word(300, 700).to_vec(), "HUMAN HUMAN-800-800"),
        ("AMD()", vec![], "MACHINE INITIALSILENCE-2500-2500"),
        ("AMD(3000)", vec![], "MACHINE INITIALSILENCE-3000-3000"),
        ("AMD()", vec![(300, LOUD)], "MACHINE LONGGREETING-1500-1500"),
        ("AMD(,2000)", vec![(300, LOUD)], "MACHINE LONGGREETING-2000-2000"),
        ("AMD(,,400)", word(300, 700).to_vec(), "HUMAN HUMAN-400-400"),
        ("AMD(9000,,,2000)", vec![], "NOTSURE TOOLONG-2000"),
        ("AMD()", [word(300, 700), word(900, 1200)].concat(), "HUMAN HUMAN-800-800"),
        ("AMD(,,,,,,1)", [word(300, 700), word(900, 1200)].concat(), "MACHINE MAXWORDS-2-1"),
        ("AMD(,,,,,,3)", [word(300, 700), word(900, 1200)].concat(), "HUMAN HUMAN-800-800"),
        ("AMD(,,,,,,,,600)", vec![(300, LOUD)], "MACHINE MAXWORDLENGTH-600"),
        ("AMD(soon,,,,,,,,600)", vec![(300, LOUD)], "MACHINE MAXWORDLENGTH-600"),
    ] {
        let world = run(step, "${AMDSTATUS} ${AMDCAUSE}", &acts);
        assert_eq!(noted(&world)[0], expected, "{step}");
        let wrong = warnings(&world).iter().any(|line| line.contains("initialSilence 'soon' is no number"));
        assert_eq!(wrong, step.contains("soon"), "{step}");
    }
    assert_eq!(noted(&run("AMD()", "", &[(1000, BYE)])), ["h HANGUP"]);
    let world = run("AMD(,,,,80,60,,300,,tune)", "", &[]);
    assert_eq!(lines(&world, "watches"), ["0 #1 Application watches for 80 ms above 300 and 60 ms below"]);
    assert_eq!(lines(&world, "hears tune").len(), 1);
}

#[test]
fn amd_conf_says_what_the_arguments_do_not() {
    let mut world = world("[default]\nexten => 1,1,AMD()\n same => n,NoOp(${AMDCAUSE})\n");
    world.watch();
    {
        let core = &mut *world.shard.core.borrow_mut();
        let machines = call::MachineSettings { initial_silence_ms: 700, ..Default::default() };
        core.settings = call::Settings { machines, ..(*core.settings).clone() }.into();
    }
    call(&mut world, "1", &[]);
    world.run();
    assert_eq!(noted(&world), ["INITIALSILENCE-700-700"]);
}

#[test]
fn watchers_hear_who_talks_until_it_is_taken_back() {
    let spoken = |steps: &str| {
        let mut world = world(&format!("[default]\nexten => 1,1,{steps}\n same => n,Wait(20)\n"));
        world.watch();
        call(&mut world, "1", &[(1000, LOUD), (5000, quiet(1400))]);
        world.run();
        let talk = |notice: &Notice| match notice {
            Notice::Talking { duration_ms, .. } => Some(*duration_ms),
            _ => None,
        };
        (
            world.notices.iter().filter_map(talk).collect::<Vec<_>>(),
            lines(&world, "watches"),
            warnings(&world),
        )
    };
    for (value, watch) in [
        ("", "0 #1 Watcher watches for 0 ms above 256 and 2500 ms below"),
        ("1200", "0 #1 Watcher watches for 0 ms above 256 and 1200 ms below"),
        (",128", "0 #1 Watcher watches for 0 ms above 128 and 2500 ms below"),
        ("1200,70000", "0 #1 Watcher watches for 0 ms above 65535 and 1200 ms below"),
    ] {
        let (told, watches, said) = spoken(&format!("Set(TALK_DETECT(set)={value})"));
        assert_eq!(told, [None, Some(1400)], "{value}");
        assert_eq!(watches, [watch], "{value}");
        assert!(said.is_empty(), "{value}: {said:?}");
    }
    for (step, why) in [
        ("Set(TALK_DETECT(set)=0)", "no number from 1"),
        ("Set(TALK_DETECT(set)=soon)", "no number from 1"),
        ("Set(TALK_DETECT(on)=)", "no item 'on'"),
        ("NoOp(${TALK_DETECT(set)})", "cannot be read"),
    ] {
        let (_, watches, said) = spoken(step);
        assert!(watches.is_empty() && said.iter().any(|line| line.contains(why)), "{step}: {said:?}");
    }
    let (_, watches, said) = spoken("Set(TALK_DETECT(remove)=)");
    assert!(watches.is_empty() && said.is_empty());
}

#[test]
fn tones_are_counted_on_each_side_and_lead_elsewhere() {
    // A tone in what the caller says, then two in what it hears.
    let heard = |set: &str| {
        let mut world = world(&format!(
            "[default]\nexten => 1,1,{set}\n same => n,Wait(5)\n\
             same => n,NoOp(${{TONE_DETECT(rx)}} ${{TONE_DETECT(tx)}})\n same => n,Wait(5)\n\
             [tone]\nexten => s,1,NoOp(gone ${{TONE_DETECT(rx)}} ${{TONE_DETECT(tx)}})\n"
        ));
        world.watch();
        let acts = [(1000, Act::Tone(false)), (2000, Act::Tone(true)), (3000, Act::Tone(true))];
        call(&mut world, "1", &acts);
        world.run();
        (noted(&world), lines(&world, "tones"), warnings(&world))
    };
    let all = "0 #1 watches for tones: 2600 Hz for 500 ms, 16 dB, Tones(0), received yes, sent yes";
    for (set, watch, notes) in [
        ("Set(TONE_DETECT(2600)=)", all, "1 2"),
        (
            "Set(TONE_DETECT(2600,1000,rd(12))=)",
            "0 #1 watches for tones: 2600 Hz for 1000 ms, 12 dB, Tones(0), received yes, sent no",
            "1 2",
        ),
        (
            "Set(TONE_DETECT(0,,abcpt)=)",
            "0 #1 watches for tones: 0 Hz for 500 ms, 16 dB, Tones(15), received no, sent yes",
            "1 2",
        ),
        ("Set(TONE_DETECT(2600,,g(tone,s,1))=)", all, "gone 1 0"),
        ("Set(TONE_DETECT(2600,,h(tone,s,1))=)", all, "gone 1 1"),
        ("Set(TONE_DETECT(2600,,n(2)h(tone,s,1))=)", all, "gone 1 2"),
        ("Set(TONE_DETECT(2600,,n(2)g(tone,s,1))=)", all, "1 2"),
    ] {
        let (noted, watches, said) = heard(set);
        assert_eq!((noted, watches), (vec![notes.to_owned()], vec![watch.to_owned()]), "{set}");
        assert!(said.is_empty(), "{set}: {said:?}");
    }
    for (set, why) in [
        ("Set(TONE_DETECT()=)", "nothing to listen for"),
        ("Set(TONE_DETECT(high)=)", "no frequency"),
        ("Set(TONE_DETECT(4000)=)", "no frequency"),
        ("Set(TONE_DETECT(2600,soon)=)", "no number from 1"),
        ("Set(TONE_DETECT(2600,,g(nowhere))=)", "nowhere"),
        ("NoOp(${TONE_DETECT(both)})", "no item 'both'"),
    ] {
        let (_, watches, said) = heard(set);
        assert!(watches.is_empty() && said.iter().any(|line| line.contains(why)), "{set}: {said:?}");
    }
    let (_, _, said) = heard("Set(TONE_DETECT(2600,,s)=)");
    assert!(said.iter().any(|line| line.contains("not squelched")), "{said:?}");
    let (noted, watches, _) = heard("Set(TONE_DETECT(2600)=)\n same => n,Set(TONE_DETECT(0,,x)=)");
    assert_eq!(noted, ["0 0"]);
    assert_eq!(watches, [all, "0 #1 watches for tones no more"]);
}

#[test]
fn the_jitter_buffer_holds_back_as_long_as_it_is_told() {
    for (step, held, why) in [
        ("JITTERBUFFER(adaptive)=default", "0 #1 is held back 20 to 200 ms", ""),
        ("JITTERBUFFER(adaptive)=", "0 #1 is held back 20 to 200 ms", ""),
        ("JITTERBUFFER(Adaptive)=120,1000,40,yes", "0 #1 is held back 20 to 120 ms", ""),
        ("JITTERBUFFER(fixed)=60", "0 #1 is held back 60 to 60 ms", ""),
        ("JITTERBUFFER(fixed)=default", "0 #1 is held back 200 to 200 ms", ""),
        ("JITTERBUFFER(disabled)=", "0 #1 is held back 0 to 0 ms", ""),
        ("JITTERBUFFER(fixed)=5", "", "no number of milliseconds"),
        ("JITTERBUFFER(fixed)=long", "", "no number of milliseconds"),
        ("JITTERBUFFER(elastic)=", "", "no item 'elastic'"),
    ] {
        let world = run(&format!("Set({step})"), "", &[]);
        let lines = lines(&world, "held back");
        assert_eq!(lines, if held.is_empty() { vec![] } else { vec![held] }, "{step}");
        let said = warnings(&world);
        assert!(
            if why.is_empty() { said.is_empty() } else { said.iter().any(|line| line.contains(why)) },
            "{step}: {said:?}"
        );
    }
}

#[test]
fn volume_and_automatic_gain_are_set_for_what_a_channel_says_and_hears_and_given_back() {
    for (steps, read, shaped, said, why) in [
        ("VOLUME(TX)=3", "${VOLUME(TX)} ${VOLUME(rx)}", &["heard 256, sent 768"][..], "3 0", ""),
        ("VOLUME(rx)=-4", "${VOLUME(RX)} ${VOLUME(TX)}", &["heard 64, sent 256"], "-4 0", ""),
        (
            "VOLUME(RX)=2)\n same => n,Set(VOLUME(TX)=3)\n same => n,Set(VOLUME(RX)=0",
            "${VOLUME(RX)} ${VOLUME(TX)}",
            &["heard 512, sent 256", "heard 512, sent 768", "heard 256, sent 768"],
            "0 3",
            "",
        ),
        ("VOLUME(TX)=5000", "${VOLUME(TX)}", &["heard 256, sent 32512"], "127", ""),
        ("VOLUME(TX)=0", "${VOLUME(TX)}", &[], "0", ""),
        ("AGC(rx)=8000", "${AGC(rx)} ${AGC(tx)}", &["heard 256 at 8000, sent 256"], "8000 off", ""),
        (
            "AGC(tx)=4000.0)\n same => n,Set(AGC(tx)=off",
            "${AGC(tx)}",
            &["heard 256, sent 256 at 4000", "heard 256, sent 256"],
            "off",
            "",
        ),
        ("VOLUME(UP)=3", "", &[], "", "no item 'UP'"),
        ("VOLUME(TX)=loud", "", &[], "", "no volume such as 3 or -3"),
        ("AGC(rx)=0", "", &[], "", "neither off nor a level"),
        ("AGC(rx)=loud", "", &[], "", "neither off nor a level"),
    ] {
        let world = run(&format!("Set({steps})"), read, &[]);
        let expected: Vec<String> = shaped.iter().map(|shaped| format!("0 #1 is made {shaped}")).collect();
        assert_eq!(lines(&world, "is made"), expected, "{steps}");
        assert_eq!(
            noted(&world).first().map_or("", |line| line.as_str()),
            if said.is_empty() { "h " } else { said },
            "{steps}"
        );
        let warned = warnings(&world);
        assert!(
            if why.is_empty() { warned.is_empty() } else { warned.iter().any(|line| line.contains(why)) },
            "{steps}: {warned:?}"
        );
    }
}

#[test]
fn with_option_p_of_volume_the_party_turns_it_up_and_down_by_its_keys_which_stay_digits() {
    let acts: Vec<(u64, Act)> = [(1000, '*'), (1500, '*'), (2000, '#'), (2500, '5')]
        .iter()
        .map(|(at, key)| (*at, Act::Press(*key)))
        .collect();
    for (step, shaped) in [
        (
            "VOLUME(TX,p)=2",
            &[
                "0 #1 is made heard 256, sent 512",
                "1000 #1 is made heard 256, sent 768",
                "1500 #1 is made heard 256, sent 1024",
                "2000 #1 is made heard 256, sent 768",
            ][..],
        ),
        ("VOLUME(TX)=2", &["0 #1 is made heard 256, sent 512"]),
    ] {
        let world = run(&format!("Set({step})\n same => n,Read(KEYS,,4,,,5)"), "${KEYS}", &acts);
        assert_eq!(lines(&world, "is made"), shaped, "{step}");
        // Read takes # for the end of what is dialled.
        assert_eq!(noted(&world).first().map(String::as_str), Some("**"), "{step}");
    }
}
