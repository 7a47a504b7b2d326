//! Without any configuration nothing is open to anybody.

use e2e::{Phone, Server};
use std::path::Path;

/// The program looks at this file first; a machine that has one is no place for these tests.
fn has_site() -> bool {
    let has = Path::new("/etc/asterisk/asterisk.conf").exists();
    if has {
        println!("skipped: this machine has /etc/asterisk/asterisk.conf, so the defaults do not hold");
    }
    has
}

/// The password of a phone as it was printed at the first start.
fn printed_secret(server: &Server, phone: &str) -> String {
    let said = format!("user {phone} ");
    e2e::wait::until(&format!("a password for {phone}"), || {
        let console = server.console();
        let (line, _) = console.split_once(&said).and_then(|(_, rest)| rest.split_once('\n'))?;
        line.split_whitespace().last().map(str::to_owned)
    })
}

#[test]
fn only_loopback_is_bound_and_the_manager_is_off() {
    if has_site() {
        return;
    }
    let server = Server::embedded("loopback");
    let sockets = server.sockets();
    assert!(sockets.iter().any(|(_, at)| *at == server.site.sip), "{sockets:?}");
    for (protocol, at) in &sockets {
        assert!(at.ip().is_loopback(), "{protocol} {at} is open to the network");
        assert_ne!(at.port(), 5038, "the manager is on");
    }
}

#[test]
fn guests_are_refused_and_the_sample_phones_work() {
    if has_site() {
        return;
    }
    let server = Server::embedded("guests");
    for (name, number) in [("guest", "600"), ("6001", "600"), ("anonymous", "0123456"), ("6001", "s")] {
        let mut guest = Phone::new(server.site.sip, name);
        guest.secret = name.to_owned();
        let refused = guest.call(number);
        assert_eq!(refused.status(), Some(401), "{name} calls {number}:\n{}", refused.text());
    }
    assert_eq!(server.channels(), 0);
    let mut phone = Phone::new(server.site.sip, "6001");
    phone.secret = printed_secret(&server, "6001");
    phone.must_register();
    for number in ["600", "601", "602", "604"] {
        phone.must_call(number);
        e2e::wait::until_true(number, || phone.media.heard().sounding() >= 300);
        phone.hang_up();
        phone.media.forget();
    }
    assert_ne!(phone.call("00123456789").status(), Some(200));
}

#[test]
fn the_sample_menu_obeys_keys_and_digits_are_read_back() {
    if has_site() {
        return;
    }
    let server = Server::embedded("menu");
    let mut phone = Phone::new(server.site.sip, "6001");
    phone.secret = printed_secret(&server, "6001");
    // Key 2 leads to the music.
    phone.must_call("603");
    phone.media.type_digits("2");
    e2e::wait::until_true("the menu leads to the music", || {
        server.cli("core show channels concise").contains("!602!")
    });
    phone.hang_up();
    phone.must_call("610");
    phone.media.forget();
    e2e::wait::until_true("the beep is heard", || phone.media.heard().sounding() >= 60);
    // So many that they are still being said when somebody looks.
    phone.media.type_digits("4242424242#");
    e2e::wait::until_true("the digits are said", || {
        server.cli("core show channels concise").contains("!SayDigits!4242424242!")
    });
    phone.hang_up();
    server.until_idle();
}

#[test]
fn secrets_are_long_private_kept_and_printed_once() {
    if has_site() {
        return;
    }
    let mut server = Server::embedded("secrets");
    let secrets = [printed_secret(&server, "6001"), printed_secret(&server, "6002")];
    assert!(secrets.iter().all(|secret| secret.len() >= 16) && secrets[0] != secrets[1], "too weak");
    let log = server.log() + &server.site.place.read("state/log/messages.log");
    assert!(secrets.iter().all(|secret| !log.contains(secret)), "a password is in the log");
    let file = server.site.place.join("state/phones");
    let mode =
        std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(file).expect("the file").permissions());
    assert_eq!(mode & 0o077, 0, "others can read the passwords: {mode:o}");
    let before = server.console().len();
    server.kill_and_restart();
    let after = server.console()[before..].to_owned();
    assert!(secrets.iter().all(|secret| !after.contains(secret)), "printed again:\n{after}");
    let mut phone = Phone::new(server.site.sip, "6002");
    phone.secret.clone_from(&secrets[1]);
    phone.must_register();
}
