//! `FollowMe` in an invented world: who is called when, what everybody hears, and who gets the call.

mod common;

use core::time::Duration;
use std::sync::Arc;

use call::followme::{Profile, Profiles, Prompts, Step};
use common::*;
use sim::{Act, Phone, World};

/// The dialplan goes on, and shows what it knows.
const PLAN: &str = "\n same => n,NoOp(on ${ANSWEREDTIME}/${DIALEDTIME})\nexten => h,1,NoOp(over)\n\
                    [sub]\nexten => s,1,Set(X=${CHANNEL(name)})\n same => n,Return()";

fn step(numbers: &[&str], seconds: u64) -> Step {
    let numbers = numbers.iter().map(|number| (*number).to_owned()).collect();
    Step { numbers, timeout: Duration::from_secs(seconds) }
}

/// 1 for ten seconds, then 2 and 3 for twenty.
fn profile() -> Profile {
    Profile {
        music: "jazz".into(),
        context: "out".into(),
        steps: vec![step(&["1"], 10), step(&["2", "3"], 20)],
        ..Profile::default()
    }
}

/// Alice follows, with these phones at the numbers, and hangs up after a minute.
fn followed(application: &str, profile: Profile, phones: &[(&str, Phone)], acts: &[(u64, Act)]) -> World {
    let mut world = world(&format!("[default]\nexten => 1,1,{application}{PLAN}\n"));
    world.watch();
    world.phones_at_extensions();
    world.settings(|settings| settings.follow_me = Arc::new(Profiles::from([("ann".to_owned(), profile)])));
    for (number, phone) in phones {
        world.phone(&format!("{number}@out"), phone.clone());
    }
    let mut all = acts.to_vec();
    all.push((60_000, BYE));
    call(&mut world, "1", &all);
    world.run();
    at_rest(&world, application);
    world
}

/// It answers after a second, and presses a key two seconds later.
fn presses(key: char) -> Phone {
    phone(&[(1000, Act::Answer), (3000, Act::Press(key)), (13_000, BYE)])
}
fn rings() -> Phone {
    phone(&[(500, Act::Ring)])
}
fn said(world: &World, words: &str) -> usize {
    lines(world, words).len()
}

#[test]
fn numbers_are_called_in_turn_until_somebody_takes_the_call() {
    type Row<'a> = (&'a str, Vec<(&'a str, Phone)>, &'a [&'a str], &'a [&'a str]);
    let busy = || phone(&[(500, Act::Hangup(base::Cause::USER_BUSY))]);
    let silent = || phone(&[(1000, Act::Answer)]);
    let rows: Vec<Row> = vec![
        (
            "the first takes it",
            vec![("1", presses('1')), ("2", rings()), ("3", rings())],
            &["ANSWER"],
            &["on 10/13", "over"],
        ),
        (
            "the first declines, of the others one takes it",
            vec![("1", presses('2')), ("2", presses('1')), ("3", rings())],
            &["ANSWER", "ANSWER", "CANCEL"],
            &["on 10/16", "over"],
        ),
        (
            "the first rings ten seconds, and the others twenty",
            vec![("1", rings()), ("2", rings()), ("3", rings())],
            &["NOANSWER", "NOANSWER", "NOANSWER"],
            &["on /", "over"],
        ),
        (
            "who is busy makes room at once",
            vec![("1", busy()), ("2", presses('1')), ("3", busy())],
            &["BUSY", "BUSY", "ANSWER"],
            &["on 10/13", "over"],
        ),
        ("who is not there too", vec![("2", presses('1'))], &["ANSWER"], &["on 10/13", "over"]),
        (
            "who presses nothing has declined, and another key is none",
            vec![("1", silent()), ("2", presses('7')), ("3", silent())],
            &["ANSWER", "ANSWER", "ANSWER"],
            &["on /", "over"],
        ),
        (
            "two answer, and who presses has it",
            vec![("1", busy()), ("2", silent()), ("3", presses('1'))],
            &["BUSY", "ANSWER", "ANSWER"],
            &["on 10/13", "over"],
        ),
    ];
    for (name, phones, ended, expected) in rows {
        let world = followed("FollowMe(ann)", profile(), &phones, &[]);
        assert_eq!(ends(&world), ended, "{name}: {:#?}", world.transcript());
        assert_eq!(noted(&world), expected, "{name}: {:#?}", world.transcript());
    }
}

#[test]
fn who_answers_hears_who_calls_and_which_keys_there_are() {
    let phones = || [("1", phone(&[(1000, Act::Answer), (8000, Act::Press('1')), (20_000, BYE)]))];
    let prompts = Prompts { connecting: "one-moment".into(), ..Prompts::default() };
    for (name, application, profile, caller, callee) in [
        (
            "with defaults",
            "FollowMe(ann)",
            profile(),
            &["followme/pls-hold-while-try"][..],
            &["followme/no-recording", "followme/options"][..],
        ),
        ("d, no hold", "FollowMe(ann,d)", profile(), &[], &["followme/no-recording", "followme/options"]),
        (
            "s, a status",
            "FollowMe(ann,s)",
            profile(),
            &["followme/status", "followme/pls-hold-while-try"],
            &["followme/no-recording", "followme/options"],
        ),
        (
            "own prompts",
            "FollowMe(ann,d)",
            Profile { prompts, ..profile() },
            &[],
            &["followme/no-recording", "followme/options", "one-moment"],
        ),
        ("nobody is asked", "FollowMe(ann,d)", Profile { asks: false, ..profile() }, &[], &[]),
    ] {
        let world = followed(application, profile, &phones(), &[]);
        let hears = |who: &str| -> Vec<String> {
            let part = format!("{who} hears ");
            let all = lines(&world, &part);
            let said = all.iter().filter_map(|line| Some(line.split_once(&part)?.1.to_owned()));
            said.filter(|sound| !sound.starts_with("music")).collect()
        };
        assert_eq!(hears("#1"), caller, "{name}: {:#?}", world.transcript());
        assert_eq!(hears("#2"), callee, "{name}: {:#?}", world.transcript());
        assert_eq!(said(&world, "#1 and #2 talk"), 1, "{name}");
        assert_eq!(warnings(&world), [""; 0], "{name}");
    }
}

#[test]
fn the_caller_hears_music_until_somebody_is_found_or_nobody_is() {
    let taken = followed("FollowMe(ann)", profile(), &[("1", presses('1'))], &[]);
    assert_eq!(said(&taken, "music jazz"), 1, "{:#?}", taken.transcript());
    let nobody = followed("FollowMe(ann,n)", profile(), &[("1", rings())], &[]);
    in_order(&nobody, &["11020 #1 hears followme/sorry"]);
    let quiet = followed("FollowMe(ann)", profile(), &[("1", rings())], &[]);
    assert_eq!(said(&quiet, "followme/sorry"), 0);
}

#[test]
fn with_a_the_name_is_recorded_and_heard_and_gone_afterwards() {
    let world = followed(
        "FollowMe(ann,ad)",
        profile(),
        &[("1", phone(&[(1000, Act::Answer), (8000, Act::Press('1')), (20_000, BYE)]))],
        &[(4000, Act::Press('#'))],
    );
    let transcript = world.transcript();
    let heard: Vec<_> = transcript.iter().filter(|line| line.contains("#2 hears")).collect();
    assert_eq!(heard.len(), 3, "{transcript:#?}");
    assert!(heard[0].contains("followme/call-from") && heard[1].contains("/followme/name-"), "{heard:?}");
    assert!(heard[2].contains("followme/options"), "{heard:?}");
    assert!(transcript.iter().any(|line| line.contains("#1 hears vm-rec-name")));
}

#[test]
fn with_n_capital_the_caller_is_answered_when_the_call_is_taken() {
    let taken = followed("FollowMe(ann,Nas)", profile(), &[("1", presses('1'))], &[]);
    in_order(&taken, &["3000 SIM/6001-00000000 is answered"]);
    assert_eq!(said(&taken, "#1 hears"), 0, "{:#?}", taken.transcript());
    let nobody = followed("FollowMe(ann,N)", profile(), &[("1", rings())], &[]);
    assert_eq!(said(&nobody, "is answered"), 0, "{:#?}", nobody.transcript());
    let told = followed("FollowMe(ann,Nn)", profile(), &[("1", rings())], &[]);
    assert_eq!((said(&told, "is answered"), said(&told, "followme/sorry")), (1, 1));
    let up = followed("Answer()\n same => n,FollowMe(ann,N)", profile(), &[("1", rings())], &[]);
    assert_eq!(said(&up, "followme/pls-hold-while-try"), 1, "who is answered hears as without N");
}

#[test]
fn routines_run_on_the_caller_and_on_each_number() {
    let sets = |options: &str| {
        let application = format!("FollowMe(ann,{options})");
        let world = followed(&application, profile(), &[("1", rings()), ("2", rings()), ("3", rings())], &[]);
        steps(&world).into_iter().filter(|step| step.contains("Set(X=")).collect::<Vec<_>>()
    };
    let callees = sets("b(sub^s^1)");
    assert_eq!(callees.len(), 3, "{callees:?}");
    assert!(callees.iter().all(|step| !step.contains("6001-")), "{callees:?}");
    assert_eq!(sets("B(sub^s^1)"), ["s,1 Set(X=SIM/6001-00000000)"]);
}

#[test]
fn with_i_capital_nobody_is_shown_and_with_l_local_channels_stay() {
    let called = |options: &str| {
        let world = followed(&format!("FollowMe(ann,{options})"), profile(), &[("1", presses('1'))], &[]);
        let dialled = world.notices.iter().find_map(|notice| match notice {
            call::Notice::DialBegin { dial_string, .. } => Some(dial_string.clone()),
            _ => None,
        });
        (dialled.unwrap_or_default(), said(&world, "is told"))
    };
    let (plain, shown) = called("d");
    assert_eq!(plain, "1@out");
    assert_eq!(called("dl").0, "1@out/n");
    assert!(called("dI").1 <= shown, "fewer are told");
}

#[test]
fn all_end_when_the_caller_hangs_up() {
    let never = || phone(&[(500, Act::Ring)]);
    let world = followed("FollowMe(ann,d)", profile(), &[("1", never())], &[(3000, BYE)]);
    assert_eq!(ends(&world), ["CANCEL"]);
    assert_eq!(noted(&world), ["over"]);
    let asked =
        followed("FollowMe(ann,d)", profile(), &[("1", phone(&[(500, Act::Answer)]))], &[(1500, BYE)]);
    assert_eq!((ends(&asked), noted(&asked)), (vec!["ANSWER"], vec!["over".to_owned()]));
}

#[test]
fn what_cannot_be_followed_is_said() {
    for (application, why, goes_on) in [
        ("FollowMe()", "requires an argument", false),
        ("FollowMe(bob)", "no profile 'bob'", true),
        ("FollowMe(ann,Z)", "option Z: there is none", true),
    ] {
        let world = followed(application, profile(), &[("1", rings())], &[]);
        assert!(
            warnings(&world).iter().any(|line| line.contains(why)),
            "{application}: {:?}",
            warnings(&world)
        );
        assert_eq!(noted(&world).contains(&"on /".to_owned()), goes_on, "{application}");
    }
}
