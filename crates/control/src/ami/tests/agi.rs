//! Calls that clients steer by AGI commands.

use super::*;

/// A desk with a call in `AGI(agi:async)` and a session of `user` that hears events of the class.
fn steered(name: &str, user: &str) -> (Desk, String) {
    let mut desk = Desk::new(name);
    desk.login(1, user);
    desk.act(1, "Events|EventMask: agi");
    desk.call("alice", "120");
    desk.pass_to(10);
    let start = desk.sent(1);
    (desk, start)
}

const ALICE: &str = "SIM/alice-00000000";

#[test]
fn a_client_steers_a_call_by_commands_and_hears_what_came_of_them() {
    let (mut desk, start) = steered("agi", "all");
    let message = &messages(&start)[0];
    assert_eq!(field(message, "Event"), Some("AsyncAGIStart"));
    assert_eq!(field(message, "Channel"), Some(ALICE));
    let env = field(message, "Env").unwrap();
    assert!(env.starts_with("agi_request%3A%20async%0Aagi_channel%3A%20SIM%2Falice-00000000%0A"), "{env}");
    assert!(env.ends_with("%0A%0A"), "{env}");

    let act = format!("AGI|Channel: {ALICE}|Command: GET VARIABLE EXTEN|CommandID: one");
    assert_eq!(desk.act(1, &act), "Response: Success\r\nMessage: Added AGI command to queue\r\n\r\n");
    desk.pass_to(20);
    let said = desk.sent(1);
    assert_eq!(event_names(&said), ["AGIExecStart", "AGIExecEnd", "AsyncAGIExec"]);
    let told = messages(&said);
    assert_eq!(field(&told[0], "Command"), Some("GET VARIABLE EXTEN"));
    assert_eq!((field(&told[1], "ResultCode"), field(&told[1], "Result")), (Some("200"), Some("Success")));
    assert_eq!(
        (field(&told[2], "CommandID"), field(&told[2], "Result")),
        (Some("one"), Some("200%20result%3D1%20%28120%29%0A"))
    );
    desk.act(1, &format!("AGI|Channel: {ALICE}|Command: ASYNCAGI BREAK"));
    desk.pass_to(30);
    assert_eq!(event_names(&desk.sent(1)).last().map(String::as_str), Some("AsyncAGIEnd"));
}

#[test]
fn a_channel_that_is_not_steered_takes_no_commands() {
    let mut desk = Desk::new("agi-none");
    desk.login(1, "all");
    desk.call("alice", "100");
    desk.pass_to(10);
    assert_eq!(
        desk.act(1, &format!("AGI|Channel: {ALICE}|Command: NOOP")),
        error(&format!("Channel {ALICE} is not setup for Async AGI."))
    );
    assert!(desk.act(1, "AGI|Channel: SIM/none|Command: NOOP").starts_with("Response: Error"));
}

#[test]
fn commands_that_reach_beyond_calls_need_the_class_system() {
    let (mut desk, _) = steered("agi-reach", "steers");
    for (command, allowed) in [
        ("STREAM FILE hello \"\"", true),
        ("EXEC Playback hello", true),
        ("GET VARIABLE EXTEN", true),
        ("GET VARIABLE CALLERID(num)", true),
        ("GET FULL VARIABLE ${EXTEN}", true),
        ("SET VARIABLE a b", true),
        ("EXEC System reboot", false),
        ("exec \"AGI\" /bin/sh", false),
        ("EXEC Set x=y", false),
        ("GET VARIABLE FILE(/etc/passwd)", false),
        // What it substitutes is judged when it does.
        ("GET FULL VARIABLE ${FILE(/etc/passwd)}", true),
        ("DATABASE GET a b", false),
        ("SET VARIABLE DB(a/b) c", false),
        ("DATABASE PUT a b c", false),
        ("DATABASE DELTREE a", false),
        ("RECORD FILE /etc/x wav # 1000", false),
    ] {
        let answer = desk.act(1, &format!("AGI|Channel: {ALICE}|Command: {command}"));
        assert_eq!(answer == error("Permission denied"), !allowed, "{command}: {answer}");
    }
}
