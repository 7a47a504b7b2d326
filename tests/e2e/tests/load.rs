//! `strowger load` against the program itself: what it says when all is well, and when it is not.

use std::process::{Command, Output};

use e2e::{SECRET, Server, Site, address};

/// Runs the generator without privileges for the program's own calls.
fn load(server: &Server, words: &[&str]) -> Output {
    let (to, from) = (server.site.sip.to_string(), address().to_string());
    let mut command = Command::new(e2e::program());
    command.args(["load", &to, "--local", &from, "--io", "epoll", "-q", "--json"]).args(words);
    command.output().expect("the generator runs")
}

fn report(output: &Output) -> serde_json::Value {
    let said = String::from_utf8_lossy(&output.stdout);
    serde_json::from_str(&said)
        .unwrap_or_else(|error| panic!("{error}: {said}{}", String::from_utf8_lossy(&output.stderr)))
}

/// What the report complains of but that the generator had no processor for a while, which is this machine's fault.
fn faults(report: &serde_json::Value) -> Vec<&str> {
    let complaints = report["complaints"].as_array().expect("a list").iter();
    complaints.filter_map(|one| one.as_str()).filter(|one| !one.starts_with("the generator itself")).collect()
}

fn server(name: &str) -> Server {
    let site = Site::new(name).phone_with("load", "allow=ulaw,gsm\n").prompt("tone", 440.0, 30.0).dialplan(
        "[test]\nexten => 600,1,Answer()\n same => n,Echo()\nexten => 100,1,Answer()\n same => n,Playback(tone)\n\
         exten => 700,1,Dial(PJSIP/load)\n",
    );
    Server::start(site)
}

#[test]
fn calls_that_hear_what_they_ought_to_end_with_0_and_others_with_1() {
    let mut server = server("load-heard");
    let common = ["--secret", SECRET, "--calls", "5", "--rate", "50", "--seconds", "6", "--check-every", "1"];
    for (name, words, good) in [
        ("echo of the own tone", &["--to", "600", "--hear", "own"][..], true),
        ("a prompt's pitch, to GSM", &["--to", "100", "--hear", "440", "--offer", "gsm"], true),
        ("another pitch", &["--to", "100", "--hear", "1200"], false),
        ("a number that does not exist", &["--to", "999"], false),
    ] {
        // On a machine that is busy with other tests packets are late, and now and then one is lost.
        let output = load(&server, &[words, &common, &["--max-loss", "5"]].concat());
        let report = report(&output);
        let wrong = report["audio"]["wrong"].as_u64().unwrap_or(0);
        match name {
            "a number that does not exist" => {
                assert_eq!(report["calls"]["refused"]["404"], 5, "{name}: {report}")
            }
            "another pitch" => assert!(wrong > 0, "{name}: {report}"),
            _ => assert_eq!(report["calls"]["answered"], 5, "{name}: {report}"),
        }
        assert_eq!(faults(&report).is_empty(), good, "{name}: {report}");
        let complains = !report["complaints"].as_array().expect("a list").is_empty();
        assert_eq!(output.status.code(), Some(complains.into()), "{name}: {report}");
    }
    server.until_idle();
    server.assert_healthy();
}

#[test]
fn a_callee_that_registers_is_found_by_callers_of_the_same_run() {
    let mut server = server("load-bridge");
    let words = ["--secret", SECRET, "--register", "--answer", "--to", "700", "--hear", "own"];
    let output = load(
        &server,
        &[&words[..], &["--calls", "4", "--rate", "20", "--seconds", "8", "--max-loss", "5"]].concat(),
    );
    let report = report(&output);
    assert_eq!((&report["calls"]["answered"], &report["calls"]["taken"]), (&4.into(), &4.into()), "{report}");
    assert!(faults(&report).is_empty(), "{report}");
    server.until_idle();
    server.assert_healthy();
}

#[test]
fn a_wrong_password_is_named_with_what_to_check() {
    let server = server("load-refused");
    let output = load(&server, &["--register", "--answer", "--secret", "wrong"]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(
        said.contains("registration of 'load' was refused with 401; check --user and --secret"),
        "{said}"
    );
}
