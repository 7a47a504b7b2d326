//! What an office expects beside queues and conferences, in an invented world: numbers that callers dial, names that they
//! spell, calls that are tried again, signals and tones.

mod common;

use std::sync::Arc;

use base::Cause;
use call::voicemail::{Account, BoxName, BoxRules, Greeting, Voicemail};
use common::*;
use sim::{Act, World};

/// Keys, one each half second from `from` on, then a hang-up at a minute.
fn typed(from: u64, keys: &str) -> Vec<(u64, Act)> {
    let presses = keys.chars().enumerate().filter(|(_, key)| *key != ' ');
    let mut acts: Vec<_> = presses.map(|(n, key)| (from + 500 * n as u64, Act::Press(key))).collect();
    acts.push((60_000, BYE));
    acts
}

fn said(world: &World, words: &str) -> usize {
    world.transcript().iter().filter(|line| line.contains(words)).count()
}

/// What was played, in order.
fn played(world: &World) -> Vec<String> {
    let sound = |line: String| line.split_once(" hears ").map(|(_, sound)| sound.to_owned());
    world.transcript().into_iter().filter_map(sound).collect()
}

mod directory {
    use super::*;

    const PEOPLE: &[(&str, &str)] = &[
        ("6001", "Alice Smith"),
        ("6002", "Bob Smithers"),
        ("6003", "Carol Jones"),
        ("6004", "Smilla Berg"),
        ("6005", "Zoe Hidden"),
    ];

    fn voicemail() -> Voicemail {
        let mut voicemail = Voicemail::default();
        for (number, full_name) in PEOPLE {
            let name = BoxName::new(number, "default").unwrap();
            let rules = BoxRules { hidefromdir: *number == "6005", ..BoxRules::clone(&voicemail.rules) };
            let account = Account {
                name: name.clone(),
                pin: "1".to_owned(),
                pin_is_fixed: false,
                full_name: (*full_name).to_owned(),
                emails: Vec::new(),
                pager: String::new(),
                rules: Arc::new(rules),
                is_row: false,
            };
            voicemail.accounts.insert(name, Arc::new(account));
        }
        voicemail
    }

    fn asked(arguments: &str, keys: &[(u64, Act)]) -> World {
        let mut world = world(&format!(
            "[default]\nexten => 1,1,Directory({arguments})\n same => n,NoOp(on ${{DIRECTORY_RESULT}} ${{DIRECTORY_EXTEN}})\n\
             exten => o,1,NoOp(operator ${{DIRECTORY_RESULT}})\nexten => a,1,NoOp(assistant ${{DIRECTORY_RESULT}})\n\
             exten => _600X,1,NoOp(${{EXTEN}} ${{DIRECTORY_RESULT}})\nexten => h,1,NoOp(h ${{DIRECTORY_RESULT}})\n\
             [other]\nexten => 6001,1,NoOp(other ${{EXTEN}})\n"
        ));
        world.watch();
        world.settings(|settings| settings.voicemail = Arc::new(voicemail()));
        world.greeting(&BoxName::new("6003", "default").unwrap(), Greeting::Name);
        call(&mut world, "1", keys);
        world.run();
        world
    }

    #[test]
    fn letters_of_a_name_lead_to_its_extension() {
        for (name, arguments, keys, expected) in [
            ("the last name", "", typed(100, "764        1"), "6001 SELECTED"),
            ("the next one", "", typed(100, "764        *            1"), "6002 SELECTED"),
            ("the first name", ",,f", typed(100, "254        1"), "6001 SELECTED"),
            ("either", ",,b", typed(100, "764        *            *            1"), "6002 SELECTED"),
            ("more letters", ",,l(5)", typed(100, "76484        *             1"), "6002 SELECTED"),
            ("fewer, by #", "", typed(100, "5#        1"), "6003 SELECTED"),
            ("s goes nowhere", ",,s", typed(100, "566        1"), "on SELECTED 6003"),
            ("another context", ",other", typed(100, "764        1"), "other 6001"),
            ("a menu", ",,m", typed(100, "764          2"), "6002 SELECTED"),
            ("the operator", "", typed(100, "0"), "operator OPERATOR"),
            ("the assistant", "", typed(100, "*"), "assistant ASSISTANT"),
            ("the operator while names are read", "", typed(100, "764        0"), "operator OPERATOR"),
            ("out by #", "", typed(100, "764        #"), "on USEREXIT "),
            ("nobody presses anything", "", typed(100, ""), "on TIMEOUT "),
            (
                "nobody is called so, then somebody",
                "",
                typed(100, "999                 566        1"),
                "6003 SELECTED",
            ),
            ("who hides is not found", "", typed(100, "443      "), "on TIMEOUT "),
            ("no such extension", ",nowhere", typed(100, "764        1"), "h FAILED"),
        ] {
            let world = asked(arguments, &keys);
            let noted = noted(&world);
            assert_eq!(
                noted.first().map(String::as_str),
                Some(expected),
                "{name}: {:#?}",
                world.transcript()
            );
        }
        let world = asked("", &[(100, Act::Press('7')), (300, BYE)]);
        assert_eq!(noted(&world), ["h HANGUP"]);
    }

    #[test]
    fn names_are_said_as_recorded_or_spelled_and_extensions_when_asked_for() {
        for (name, arguments, keys, expected) in [
            ("recorded", "", "566", vec!["greet of 6003@default"]),
            ("spelled", "", "237", vec!["letters/s", "letters/m"]),
            ("with the extension", ",,e", "237", vec!["letters/g", "vm-extension", "digits/6", "digits/0"]),
            (
                "the common introduction",
                "",
                "",
                vec!["dir-welcome", "dir-pls-enter", "digits/3", "dir-last", "dir-usingkeypad"],
            ),
            ("of first names", ",,f(4)", "", vec!["dir-welcome", "dir-pls-enter", "digits/4", "dir-first"]),
            ("of both", ",,b", "", vec!["dir-firstlast"]),
            ("how to choose", "", "237", vec!["dir-instr", "dir-instr", "dir-instr", "dir-nomore"]),
            ("a menu", ",,m", "764", vec!["dir-multi1", "dir-multi2"]),
            ("nobody", "", "999", vec!["dir-nomatch"]),
        ] {
            let world = asked(arguments, &typed(100, keys));
            let sounds = played(&world);
            let mut rest = sounds.iter();
            for word in expected {
                assert!(rest.any(|sound| sound.contains(word)), "{name}: {word} in {sounds:?}");
            }
        }
        let world = asked(",,acZ", &[(3000, BYE)]);
        for why in ["option a has no effect", "option c has no effect", "option Z: there is none"] {
            assert!(warnings(&world).iter().any(|line| line.contains(why)), "{why}: {:?}", warnings(&world));
        }
    }
}

const EXTENS: &str = "exten => h,1,NoOp(h)\n[disa]\nexten => 12,1,NoOp(12 ${CALLERID(num)} ${CHANNEL(accountcode)})\n\
                      exten => 123,1,NoOp(123)\nexten => 9#,1,NoOp(hash)\n[out]\nexten => 12,1,NoOp(out ${CALLERID(num)})\n\
                      [strict]\nexten => 5,1,NoOp(5)\nexten => i,1,NoOp(i ${INVALID_EXTEN})\n";

fn one(step: &str, acts: &[(u64, Act)]) -> World {
    run(&format!("[default]\nexten => 1,1,{step}\n same => n,NoOp(on)\n{EXTENS}"), "1", acts)
}

#[test]
fn disa_gives_a_dial_tone_after_a_password() {
    for (name, arguments, keys, expected) in [
        ("a password and an extension", "4711", "4711# 12      ", "12 6001 4711"),
        ("a longer extension", "4711", "4711# 123", "123"),
        ("without a password", "no-password", "123", "123"),
        ("p, # ends it", "no-password,disa,,,p", "12#", "12 6001 "),
        ("a caller id", "no-password,disa,99", "12", "12 99 "),
        ("another context", "no-password,out", "12", "out 6001"),
        ("a wrong password", "4711,strict", "4712#", "i "),
        ("an extension that is not there", "no-password,strict", "7", "i 7"),
        ("refused with a tone", "4711", "4712#", "h"),
        ("nothing dialled", "no-password,strict", "", "i "),
        ("no argument", "", "", "h"),
        ("a file that is not there", "/none", "", "h"),
    ] {
        let world = one(&format!("DISA({arguments})"), &typed(1000, keys));
        assert_eq!(
            noted(&world).first().map(String::as_str),
            Some(expected),
            "{name}: {:#?}",
            world.transcript()
        );
    }
    let world = one("DISA(4711)", &typed(1000, "4712#"));
    assert!(
        said(&world, "tone congestion") > 0 || said(&world, "congestion") > 0,
        "{:#?}",
        world.transcript()
    );
}

#[test]
fn read_exten_reads_an_extension() {
    for (name, arguments, keys, expected) in [
        ("a whole one", "X,,disa", "123", "OK 123"),
        ("the shorter after a while", "X,,disa,,2", "12", "OK 12"),
        ("a # ends it", "X,,disa", "12#", "OK 12"),
        ("a # that belongs to it", "X,,disa", "9#", "OK 9#"),
        ("not there", "X,,disa", "7", "INVALID i 7"),
        ("nothing", "X,,disa,,2", "", "TIMEOUT t"),
        ("with a file", "X,hello,disa", "123", "OK 123"),
        ("with a tone", "X,dial,disa,i", "123", "OK 123"),
        ("skipped while it rings", "X,,disa,s", "", "SKIP"),
        ("read while it rings", "X,,disa,n", "123", "OK 123"),
        ("no variable", "", "", "ERROR"),
        ("the present context", "X", "1", "OK 1"),
    ] {
        let step = format!(
            "ReadExten({arguments})\n same => n,NoOp(${{READEXTENSTATUS}} ${{X}} ${{INVALID_EXTEN}})"
        );
        let world = one(&step, &typed(1200, keys));
        assert_eq!(noted(&world)[0].trim(), expected, "{name}: {:#?}", world.transcript());
    }
    let world = run(
        "[default]\nexten => 1,1,ReadExten(X)\nexten => h,1,NoOp(${READEXTENSTATUS})\n",
        "1",
        &[(500, BYE)],
    );
    assert_eq!(noted(&world), ["HANGUP"]);
}

#[test]
fn who_has_no_number_is_asked_for_one() {
    let asked = |arguments: &str, caller: &str, keys: &str| {
        let plan = format!(
            "[default]\nexten => 1,1,PrivacyManager({arguments})\n\
             same => n,NoOp(${{PRIVACYMGRSTATUS}} ${{CALLERID(num)}} ${{CALLERID(name)}})\n[known]\nexten => _55X,1,NoOp()\n"
        );
        let mut world = world(&plan);
        world.watch();
        let place = location("default", "1");
        let id = world.incoming("6001", caller, place.clone(), &typed(3500, keys));
        assert!(apps::pbx::start(&world.shard.clone(), id, place));
        world.run();
        world
    };
    for (name, arguments, caller, keys, expected) in [
        ("a number is there", "", "\"Bob\" <6002>", "", " 6002 Bob"),
        ("one is typed", "", "", "5551234567#", "SUCCESS 5551234567 Privacy Manager"),
        ("a short one", "1,3", "", "555#", "SUCCESS 555 Privacy Manager"),
        ("too short", "1", "", "555#", "FAILED"),
        ("again", "2,4", "", "555#      5555#", "SUCCESS 5555 Privacy Manager"),
        ("of a context", "1,3,,known", "", "551#", "SUCCESS 551 Privacy Manager"),
        ("of none", "1,3,,known", "", "661#", "FAILED"),
        ("nothing", "", "", "", "FAILED"),
    ] {
        let world = asked(arguments, caller, keys);
        assert_eq!(noted(&world)[0].trim_end(), expected, "{name}: {:#?}", world.transcript());
    }
    let world = asked("0,x", "", "5551234567#");
    assert_eq!(warnings(&world).len(), 2, "{:?}", warnings(&world));
    assert!(said(&world, "hears privacy-unident") == 1 && said(&world, "hears privacy-thankyou") == 1);
}

#[test]
fn a_call_is_tried_again_until_somebody_answers() {
    let busy = || phone(&[(10, Act::Hangup(Cause::USER_BUSY))]);
    for (name, step, phones, acts, calls, expected) in [
        (
            "three times",
            "RetryDial(sorry,2,3,SIM/bob)",
            vec![("bob", busy())],
            vec![(60_000, BYE)],
            3,
            vec!["on BUSY", "h"],
        ),
        ("without end", "RetryDial(,2,0,SIM/bob)", vec![("bob", busy())], vec![(20_500, BYE)], 11, vec!["h"]),
        ("answered", "RetryDial(sorry,2,3,SIM/bob)", vec![("bob", talks())], vec![], 0, vec!["h"]),
        (
            "answered, and on",
            "RetryDial(sorry,2,3,SIM/bob,,g)",
            vec![("bob", talks())],
            vec![],
            0,
            vec!["on ANSWER", "h"],
        ),
        (
            "a digit meanwhile",
            "RetryDial(,5,3,SIM/bob,,d)",
            vec![("bob", busy())],
            vec![(1000, Act::Press('3')), (2000, Act::Press('7'))],
            1,
            vec!["seven", "h"],
        ),
        (
            "digits without d",
            "RetryDial(,5,2,SIM/bob)",
            vec![("bob", busy())],
            vec![(1000, Act::Press('7'))],
            2,
            vec!["on BUSY", "h"],
        ),
        ("nothing to dial", "RetryDial(sorry,2,3)", vec![], vec![], 0, vec!["h"]),
    ] {
        let plan = format!(
            "exten => 1,1,{step}\n same => n,NoOp(on ${{DIALSTATUS}})\nexten => 7,1,NoOp(seven)\nexten => h,1,NoOp(h)"
        );
        let world = dialled(&plan, &phones, &acts);
        assert_eq!(noted(&world), expected, "{name}: {:#?}", world.transcript());
        assert_eq!(
            warnings(&world).len().min(9),
            usize::from(step.ends_with(",3)") && phones.is_empty()),
            "{name}: {:?}",
            warnings(&world)
        );
        let tried = ends(&world).iter().filter(|status| **status == "BUSY").count();
        assert!(calls == 0 || tried == calls, "{name}: {tried}");
    }
}

#[test]
fn calls_wait_for_signals_and_conditions() {
    let plan = "[default]\nexten => 1,1,WaitForSignal(go,${T})\n same => n,NoOp(${WAITFORSIGNALSTATUS} ${WAITFORSIGNALPAYLOAD})\n\
                exten => 2,1,Signal(go,now)\n same => n,NoOp(${SIGNALSTATUS})\nexten => 3,1,Signal(stop)\n same => n,NoOp(${SIGNALSTATUS})\n\
                exten => h,1,NoOp(h ${WAITFORSIGNALSTATUS})\n";
    for (name, waits, timeout, then, expected) in [
        ("signalled", 2, "", "2", vec!["SUCCESS", "SIGNALED now", "SIGNALED now"]),
        ("nobody waits", 0, "", "2", vec!["FAILURE"]),
        ("another signal", 1, "", "3", vec!["FAILURE", "h HANGUP"]),
        ("too late", 1, "1", "2", vec!["TIMEOUT ", "FAILURE"]),
    ] {
        let mut world = world(&plan.replace("${T}", timeout));
        world.watch();
        for _ in 0..waits {
            call(&mut world, "1", &[(8000, BYE)]);
        }
        world.run_until(at(3000));
        call(&mut world, then, &[]);
        world.run();
        at_rest(&world, name);
        let lines: Vec<_> = noted(&world)
            .into_iter()
            .filter(|line| !line.starts_with("h ") || line.ends_with("HANGUP"))
            .collect();
        assert_eq!(lines, expected, "{name}");
    }
    for (name, arguments, expected) in [
        ("true from the start", "#,#[1=1]", "TRUE"),
        ("true later", "#,#[#{EPOCH}>1795262402],10", "TRUE"),
        ("never", "#,#[1=2],2", "TIMEOUT"),
        ("two characters", "##,1", "FAILURE"),
        ("no expression", "#", "FAILURE"),
        ("slowly", "#,#[#{EPOCH}>1795262402],10,1", "TRUE"),
        ("until the end", "#,#[1=2]", "HANGUP"),
    ] {
        let step = format!("WaitForCondition({arguments})");
        let plan = format!(
            "[default]\nexten => 1,1,Answer()\n same => n,{step}\nexten => h,1,NoOp(${{WAITFORCONDITIONSTATUS}})\n"
        );
        assert_eq!(noted(&run(&plan, "1", &[(20_000, BYE)])), [expected], "{name}");
    }
}

#[test]
fn tones_are_played_once_and_tell_so() {
    for (name, step, caller, expected, status) in [
        ("morse", "Morsecode(E)", "", vec!["800/80,0/240"], ""),
        (
            "slower and lower",
            "Set(MORSEDITLEN=100)\n same => n,Set(MORSETONE=400)\n same => n,Morsecode(T)",
            "",
            vec!["400/300,0/300"],
            "",
        ),
        ("dead line", "Zapateller(answer)", "1", vec!["950/330,1400/330,1800/330,0/1000"], "ZAPPED"),
        ("not for who has a number", "Zapateller(answer|nocallerid)", "<6001>", vec![], "NOTHING"),
        ("but for who has none", "Zapateller(answer&nocallerid)", "", vec!["950/330"], "ZAPPED"),
    ] {
        let mut world =
            world(&format!("[default]\nexten => 1,1,{step}\n same => n,NoOp(on ${{ZAPATELLERSTATUS}})\n"));
        world.watch();
        let place = location("default", "1");
        let id = world.incoming("6001", caller, place.clone(), &[(30_000, BYE)]);
        assert!(apps::pbx::start(&world.shard.clone(), id, place));
        world.run();
        for words in &expected {
            assert_eq!(said(&world, words), 1, "{name}: {:#?}", world.transcript());
        }
        assert_eq!(noted(&world), [format!("on {status}")], "{name}");
    }
    for (step, why) in [
        ("Morsecode()", "requires an argument"),
        ("Set(MORSETYPE=american)\n same => n,Morsecode(E)", "international code"),
        ("Zapateller(loud)", "no option 'loud'"),
        ("Flash()", "analogue"),
    ] {
        let world = one(step, &[(9000, BYE)]);
        assert!(warnings(&world).iter().any(|line| line.contains(why)), "{step}: {:?}", warnings(&world));
    }
}

#[test]
fn small_ones_do_what_they_say() {
    for (step, expected) in [
        ("SendURL(http://here)\n same => n,NoOp(${SENDURLSTATUS})", "UNSUPPORTED"),
        ("SendImage(face)\n same => n,NoOp(${SENDIMAGESTATUS})", "UNSUPPORTED"),
        (
            "Set(HASH(a,x)=1)\n same => n,Set(HASH(b,x)=2)\n same => n,ClearHash(a)\n same => n,NoOp(${HASH(a,x)}${HASHKEYS(a)} ${HASH(b,x)})",
            " 2",
        ),
        ("Dial(SIM/none)\n same => n,HangupCauseClear()\n same => n,NoOp([${HANGUPCAUSE_KEYS()}])", "[]"),
    ] {
        assert_eq!(noted(&one(step, &[(9000, BYE)]))[0], expected, "{step}");
    }
}
