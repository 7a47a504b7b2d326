//! Passwords, free devices, silence and old names of headers.

mod common;

use base::Cause;
use common::{answers, at_rest, call, lines, noted, refusing, warnings, world};
use sim::{Act, World};

const BYE: Act = Act::Hangup(Cause::NORMAL_CLEARING);

fn typed(digits: &str, from: u64) -> Vec<(u64, Act)> {
    digits.chars().zip(0u64..).map(|(digit, nth)| (from + 300 * nth, Act::Press(digit))).collect()
}

/// One call of `1`, whose step is this, then what NoOp shows.
fn run(step: &str, show: &str, acts: &[(u64, Act)]) -> World {
    let mut world = world(&format!("[default]\nexten => 1,1,{step}\n same => n,NoOp({show})\n"));
    world.watch();
    world.phone("bob", answers());
    world.phone("carol", answers());
    world.phone("dave", refusing(Cause::USER_BUSY));
    world.database("doors", "4711", "anything");
    call(&mut world, "1", acts);
    world.run();
    at_rest(&world, step);
    world
}

#[test]
fn a_password_lets_a_call_go_on_and_three_wrong_ones_end_it() {
    let account = "${CHANNEL(accountcode)}";
    for (name, step, digits, expected) in [
        ("the right one", "Authenticate(1234)", "1234#", Some("")),
        ("without an end, as long as it may be", "Authenticate(1234,,4)", "1234", Some("")),
        ("after a wrong one", "Authenticate(12)", "99#12#", Some("")),
        ("three wrong ones", "Authenticate(12)", "99#98#97#12#", None),
        ("nothing typed", "Authenticate(12)", "", None),
        ("as account code", "Authenticate(12,a)", "12#", Some("12")),
        ("a key of the database", "Authenticate(/doors,da)", "4711#", Some("4711")),
        ("no key of it", "Authenticate(/doors,d)", "1#2#3#", None),
        ("a file that is not there", "Authenticate(/no/file)", "1#", None),
        ("no password", "Authenticate()", "1#", None),
    ] {
        let world = run(step, account, &typed(digits, 500));
        let expected: Vec<String> = expected.map(str::to_owned).into_iter().collect();
        assert_eq!(noted(&world), expected, "{name}");
    }
    let world = run("Authenticate(/doors,dr)", "x", &typed("4711#", 500));
    assert_eq!((noted(&world).len(), world.stored("doors", "4711")), (1, None));
    let world = run("Authenticate(12,,,ask)", "x", &typed("1#12#", 500));
    let heard: Vec<String> =
        lines(&world, "hears").iter().filter_map(|l| Some(l.split_once("hears ")?.1.to_owned())).collect();
    assert_eq!(heard, ["ask", "auth-incorrect", "auth-thankyou"]);
}

#[test]
fn the_first_device_that_could_be_called_is_told_or_all() {
    let show = "${AVAILCHAN} ${AVAILORIGCHAN} ${AVAILCAUSECODE}";
    for (devices, expected) in [
        ("SIM/bob", "SIM/bob-00000001 SIM/bob 0"),
        ("SIM/dave&SIM/bob&SIM/carol", "SIM/bob-00000001 SIM/bob 0"),
        ("SIM/bob&SIM/carol,a", "SIM/bob-00000001&SIM/carol-00000002 SIM/bob&SIM/carol 0"),
        ("SIM/dave", "  17"),
        ("NONE/x", "  66"),
        ("nonsense", "  0"),
        ("SIM/bob,t", "SIM/bob SIM/bob 0"),
        ("", "  0"),
    ] {
        let world = run(&format!("ChanIsAvail({devices})"), show, &[]);
        assert_eq!(noted(&world)[0].trim_end(), expected.trim_end(), "{devices}");
    }
}

#[test]
fn silence_is_waited_for_so_often_and_so_long() {
    for (step, acts, expected) in [
        ("WaitForSilence(500)", vec![(2000, Act::Silence(500))], vec!["SILENCE"]),
        (
            "WaitForSilence(500,2)",
            vec![(2000, Act::Silence(500)), (3000, Act::Silence(500))],
            vec!["SILENCE"],
        ),
        ("WaitForSilence(500,2,5)", vec![(2000, Act::Silence(500))], vec!["TIMEOUT"]),
        ("WaitForSilence(500,1,5)", vec![], vec!["TIMEOUT"]),
        ("WaitForSilence()", vec![(2000, BYE)], vec![]),
    ] {
        let world = run(step, "${WAITSTATUS}", &acts);
        assert_eq!(noted(&world), expected, "{step}");
    }
    let watched = run("WaitForSilence(500)", "", &[(2000, Act::Silence(500))]);
    assert_eq!(lines(&watched, "watched"), ["0 #1 is watched for 500 ms of silence"]);
}

#[test]
fn what_is_no_header_is_not_added() {
    for (step, refused) in [
        ("SIPAddHeader(X-Door: red: and blue)", false),
        ("SIPAddHeader(nonsense)", true),
        ("SIPAddHeader(: x)", true),
        ("SIPAddHeader(X(y: z)", true),
        ("SIPAddHeader(X,y: z)", true),
        ("SIPRemoveHeader()", false),
        ("SIPRemoveHeader(X-Door:)", false),
        ("SIPRemoveHeader(a,b)", true),
    ] {
        let said = warnings(&run(step, "", &[]));
        // Here no SIP takes it; `tests/e2e/tests/old_headers.rs` looks at what is sent.
        let expected = if refused { "SIP" } else { "there is no PJSIP here" };
        assert!(said.iter().any(|line| line.contains(expected)), "{step}: {said:?}");
        assert_eq!(said.iter().any(|line| line.contains("no PJSIP")), !refused, "{step}: {said:?}");
    }
}
