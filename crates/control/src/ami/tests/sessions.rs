//! Logins, refusals, limits, and what other sessions feel of it.

use std::path::Path;

use md5::{Digest as _, Md5};

use super::*;

#[test]
fn plain_and_md5_login_open_the_session_and_the_first_event_says_that_all_is_up() {
    let mut desk = Desk::new("login");
    assert_eq!(desk.open(1), "Asterisk Call Manager/12.0.0\r\n");
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
        let start = format!("SecurityEvent=\"{event}\",EventTV=\"");
        let time = line.strip_prefix(&start).and_then(|rest| rest.split('"').next());
        // 2026-11-27T19:05:12.345+0000
        assert!(time.is_some_and(|time| time.len() == 28 && time.contains('T')), "{login}: {line}");
        let way = "LocalAddress=\"IPV4/TCP/127.0.0.1/5038\",RemoteAddress=\"IPV4/TCP/127.0.0.1/40000\"";
        // Nobody's session has begun when time has.
        assert!(line.contains(way) && line.contains(",SessionTV=\"1970-01-01T"), "{line}");
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
        assert_eq!(desk.open(session), "Asterisk Call Manager/12.0.0\r\n");
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
    assert_eq!(desk.open(200), "Asterisk Call Manager/12.0.0\r\n");
}

#[test]
fn connections_that_say_nothing_keep_nobody_out() {
    let mut desk = Desk::new("silent");
    let greeting = "Asterisk Call Manager/12.0.0\r\n";
    let from = |host: u8| SocketAddr::from(([192, 0, 2, host], 40_000));
    // 50 places by default: 20 of one address, then one of each of 30 others.
    for session in 0..50 {
        let host = if session < 20 { 1 } else { 1 + session as u8 };
        assert_eq!(desk.open_from(session, from(host)), greeting);
    }
    // The crowd gives up its oldest first; who comes with others does not push out who is alone.
    assert_eq!(desk.open_from(100, from(200)), greeting);
    assert_eq!(
        (desk.sent(0), desk.sent(1), desk.sent(20)),
        ("<closed>".into(), String::new(), String::new())
    );
    // 18 more go, until no address has more than one; then whoever has waited longest.
    for session in 101..119 {
        assert_eq!(desk.open_from(session, from(session as u8)), greeting);
    }
    assert_eq!((desk.sent(18), desk.sent(19)), ("<closed>".into(), String::new()));
    assert_eq!(desk.open_from(119, from(119)), greeting);
    assert_eq!((desk.sent(19), desk.sent(20)), ("<closed>".into(), String::new()));
    // The crowd itself gets no more places than others have.
    assert_eq!(desk.open_from(120, from(119)), "<closed>");
    // Whoever has logged in stays.
    assert!(desk.act(119, &format!("Login|Username: all|Secret: {SECRET}")).starts_with("Response: Success"));
    for session in 121..180 {
        desk.open_from(session, from(session as u8));
    }
    assert!(desk.act(119, "Ping").starts_with("Response: Success"));
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

#[test]
fn a_turn_of_the_engine_is_shared_and_nothing_that_waits_for_the_next_is_lost() {
    thread_local! {
        static MICROS: std::cell::Cell<u64> = const { std::cell::Cell::new(0) };
    }
    let mut desk = Desk::new("shared-turns");
    desk.login(1, "all");
    desk.login(2, "calls");
    desk.manager.set_clock(|| {
        MICROS.set(MICROS.get() + 100);
        Instant::ZERO + Duration::from_micros(MICROS.get())
    });
    let pings: String = (0..100).map(|n| format!("Action: Ping\r\nActionID: {n}\r\n\r\n")).collect();
    let mut first = desk.bytes(1, pings.as_bytes());
    assert!(messages(&first).len() < 20, "{first}");
    assert_eq!(
        desk.bytes(2, b"Action: Ping\r\nActionID: other\r\n\r\n"),
        "",
        "the turn is over for everybody"
    );
    let mut turns = 0;
    let mut other_after = 0;
    while desk.manager.deadline() == Some(Instant::ZERO) {
        let now = desk.world.now();
        desk.manager.flush(&mut desk.out);
        desk.manager.due(now, &mut desk.out);
        first.push_str(&desk.sent(1));
        turns += 1;
        if desk.sent(2).contains("ActionID: other") {
            other_after = turns;
        }
    }
    let ids: Vec<&str> = first.lines().filter_map(|line| line.strip_prefix("ActionID: ")).collect();
    assert_eq!(ids, (0..100).map(|n| n.to_string()).collect::<Vec<_>>());
    assert!(turns > 5 && (1..=2).contains(&other_after), "{turns} turns, the other after {other_after}");
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
