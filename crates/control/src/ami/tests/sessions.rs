//! Logins, refusals, limits, and what other sessions feel of it.

use std::path::Path;

use md5::{Digest as _, Md5};

use super::*;

#[test]
fn plain_and_md5_login_open_the_session_and_the_first_event_says_that_all_is_up() {
    let mut desk = Desk::new("login");
    assert_eq!(desk.open(1), "Asterisk Call Manager/9.0.0\r\n");
    let answer = desk.act(1, &format!("login|ACTIONID: x1|USERNAME: all|SECRET: {SECRET}"));
    let expected = "Response: Success\r\nActionID: x1\r\nMessage: Authentication accepted\r\n\r\n\
        Event: FullyBooted\r\nPrivilege: system,all\r\nUptime: 0\r\nLastReload: 0\r\nStatus: Fully Booted\r\n\r\n";
    assert_eq!(answer, expected);
    assert_eq!(desk.manager.authenticated(), [1]);
    assert!(desk.manager.authenticated().is_empty());
    assert_eq!(desk.manager.connected().collect::<Vec<_>>(), [(1, "all", peer())]);

    desk.open(2);
    let challenge = desk.act(2, "Challenge|AuthType: MD5");
    let challenge = field(&messages(&challenge)[0], "Challenge").unwrap().to_owned();
    let key: String =
        Md5::digest(format!("{challenge}{SECRET}")).iter().map(|byte| format!("{byte:02X}")).collect();
    let answer = desk.act(2, &format!("Login|AuthType: MD5|Username: all|Key: {key}|Events: off"));
    assert_eq!(answer, "Response: Success\r\nMessage: Authentication accepted\r\n\r\n");
    // A challenge is good once.
    desk.open(3);
    let answer = desk.act(3, &format!("Login|AuthType: MD5|Username: all|Key: {key}"));
    assert_eq!(answer, error("Authentication failed") + "<closed>");
}

#[test]
fn every_refused_login_looks_alike_and_only_the_log_tells_them_apart() {
    let mut desk = Desk::new("refused");
    let empty_key: String = Md5::digest(SECRET).iter().map(|byte| format!("{byte:02x}")).collect();
    for (session, (login, event)) in (1..).zip([
        (format!("Username: nobody|Secret: {SECRET}"), "InvalidAccountID"),
        ("Username: all|Secret: wrong".to_owned(), "InvalidPassword"),
        ("Username: all|Secret: no user has this secret".to_owned(), "InvalidPassword"),
        ("Username: nobody|Secret: no user has this secret".to_owned(), "InvalidAccountID"),
        ("Username: all".to_owned(), "InvalidPassword"),
        ("Secret: x".to_owned(), "InvalidAccountID"),
        (format!("Username: far|Secret: {SECRET}"), "FailedACL"),
        (format!("Username: all|AuthType: MD5|Key: {empty_key}"), "ChallengeResponseFailed"),
        ("Username: all|AuthType: MD5|Key: 00".to_owned(), "ChallengeResponseFailed"),
        ("Username: a\u{1b}[31m\"b|Secret: x".to_owned(), "InvalidAccountID"),
    ]) {
        desk.open(session);
        let answer = desk.act(session, &format!("Login|{login}"));
        assert_eq!(answer, error("Authentication failed") + "<closed>", "{login}");
        let log = desk.world.log(Level::Security);
        let line = log.last().unwrap();
        assert!(line.starts_with(&format!("SecurityEvent=\"{event}\"")), "{login}: {line}");
        assert!(line.ends_with("RemoteAddress=\"IPV4/TCP/127.0.0.1/40000\""), "{line}");
        assert!(!line.chars().any(char::is_control), "{line:?}");
    }
    assert!(desk.world.log(Level::Notice)[0].starts_with("127.0.0.1 failed to authenticate as 'nobody'"));
    assert!(!desk.world.log(Level::Security).concat().contains(SECRET));
}

#[test]
fn strangers_are_few_bounded_and_closed_in_time_and_nothing_of_theirs_is_dispatched() {
    let mut desk = Desk::new("strangers");
    for row in actions().filter(|row| !["Login", "Logoff", "Challenge"].contains(&row.name)) {
        desk.open(9);
        assert_eq!(desk.act(9, row.name), error("Permission denied"), "{}", row.name);
        desk.manager.closed(9);
    }
    for session in 0..STRANGERS_OF_ADDRESS_MAX as u64 {
        assert_eq!(desk.open(session), "Asterisk Call Manager/9.0.0\r\n");
    }
    assert_eq!(desk.open(100), "<closed>");
    // One writes too much, one trickles; both end, the first at once.
    let much = format!("X: {}", "y".repeat(STRANGER_BYTES_MAX));
    assert_eq!(desk.bytes(0, much.as_bytes()), "<closed>");
    assert_eq!(desk.bytes(0, b"Action: Ping\r\n\r\n"), "");
    desk.pass_to(4_999);
    assert_eq!(desk.bytes(1, b"Act"), "");
    desk.pass_to(5_000);
    assert_eq!(desk.sent(1), "<closed>");
    assert_eq!(desk.manager.deadline(), None);
    assert_eq!(desk.open(200), "Asterisk Call Manager/9.0.0\r\n");
}

#[test]
fn a_user_who_may_be_logged_in_once_is_not_logged_in_twice() {
    let mut desk = Desk::new("twice");
    desk.login(1, "apart");
    desk.open(2);
    let answer = desk.act(2, &format!("Login|Username: apart|Secret: {SECRET}"));
    assert_eq!(answer, error("Login Already In Use") + "<closed>");
    assert_eq!(
        desk.act(1, "Logoff"),
        "Response: Goodbye\r\nMessage: Thanks for all the fish.\r\n\r\n<closed>"
    );
    desk.login(3, "apart");
}

#[test]
fn a_reload_closes_users_who_are_gone_and_changes_what_the_others_may() {
    let mut desk = Desk::new("reload");
    desk.login(1, "all");
    desk.login(2, "one");
    let changed = MANAGER.replace("[one]", "[other]").replacen("write = all", "write = call", 1);
    std::fs::write(desk.folder.join("manager.conf"), changed).unwrap();
    let site = desk.site();
    let (snapshot, _) = Snapshot::load(&Where::Dir(desk.folder.to_path_buf())).unwrap();
    *site.snapshot.borrow_mut() = snapshot;
    desk.manager.configure();
    desk.tell();
    assert_eq!(desk.sent(2), "<closed>");
    assert_eq!(desk.act(1, "CoreShowChannels"), error("Permission denied"));
}

/// The hostile manager inputs that come with the project's shared data, when they are at hand.
#[test]
fn hostile_input_neither_panics_nor_disturbs_a_neighbour() {
    let archive = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/bad-input/generated.tar.xz");
    if !archive.exists() {
        println!("skipped: {} is not there", archive.display());
        return;
    }
    let mut desk = Desk::new("hostile");
    let status =
        std::process::Command::new("tar").arg("-xJf").arg(&archive).arg("-C").arg(&*desk.folder).status();
    if !status.is_ok_and(|status| status.success()) {
        println!("skipped: tar cannot unpack {}", archive.display());
        return;
    }
    desk.login(1, "all");
    let mut cases = 0;
    for entry in std::fs::read_dir(desk.folder.join("generated/ami")).unwrap() {
        let bytes = std::fs::read(entry.unwrap().path()).unwrap();
        cases += 1;
        for (session, user) in [(2, None), (3, Some("one")), (4, Some("all"))] {
            match user {
                None => drop(desk.open(session)),
                Some(user) => desk.login(session, user),
            }
            let answer = desk.bytes(session, &bytes);
            let answer = answer.trim_end_matches("<closed>");
            if !answer.is_empty() {
                messages(answer);
            }
            desk.manager.closed(session);
        }
        assert!(desk.act(1, "Ping").starts_with("Response: Success"));
    }
    assert!(cases >= 400, "{cases}");
    assert_eq!(desk.world.log(Level::Error), [] as [&str; 0]);
}
