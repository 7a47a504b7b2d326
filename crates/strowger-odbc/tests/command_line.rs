//! What the program says to people.

use std::process::{Command, Stdio};

#[test]
fn started_by_hand_it_says_that_there_is_nothing_to_start_it_for() {
    let run = |words: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_strowger-odbc"));
        command.args(words).stdin(Stdio::null()).output().unwrap()
    };
    let output = run(&[]);
    assert!(!output.status.success());
    assert!(String::from_utf8_lossy(&output.stderr).contains("starts it by itself"), "{output:?}");
    let output = run(&["--version"]);
    assert!(output.status.success());
    assert!(String::from_utf8_lossy(&output.stdout).starts_with("strowger-odbc "), "{output:?}");
}
