//! Whoever guesses passwords is not listened to for a while, and others go on.

use e2e::{Message, Phone, Server, Site, address, wait};
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

const MANAGER: u16 = 5038;
const HTTP: u16 = 8088;

/// A site on which three wrong passwords of a user, or six of an address, are too many for the length of the test.
fn site(name: &str) -> Site {
    let site = Site::new(name);
    let ip = site.sip.ip();
    site.phone("alice")
        .phone("bob")
        .dialplan("[test]\nexten => 600,1,Answer()\n same => n,Echo()\n")
        .add(
            "asterisk.conf",
            "[bans]\nmaxretry=3\nmaxretry_address=6\nfindtime=3600\nbantime=3600\nloopback=yes\n",
        )
        .add(
            "manager.conf",
            &format!(
                "[general]\nenabled=yes\nwebenabled=yes\nport={MANAGER}\nbindaddr={ip}\n\
                 [admin]\nsecret=a-long-manager-secret\nread=all\nwrite=all\n\
                 [other]\nsecret=another-long-secret\nread=all\nwrite=all\n"
            ),
        )
        .add("http.conf", &format!("[general]\nenabled=yes\nbindaddr={ip}\nbindport={HTTP}\n"))
}

fn bans(server: &Server) -> Vec<(String, String)> {
    let listed = server.json("core show bans");
    let bans = listed["bans"].as_array().expect("a list");
    let text = |ban: &serde_json::Value, key: &str| ban[key].as_str().unwrap_or_default().to_owned();
    bans.iter().map(|ban| (text(ban, "address"), text(ban, "user"))).collect()
}

fn status(message: &Message) -> Option<u16> {
    message.status()
}

#[test]
fn a_user_who_is_guessed_at_is_not_listened_to_from_there_and_everybody_else_is() {
    let server = Server::start(site("bans-user"));
    let place = address();
    let mut guesser = Phone::at(place, server.site.sip, "alice");
    guesser.secret = "wrong".to_owned();
    for _ in 0..3 {
        assert_eq!(status(&guesser.register(300)), Some(401));
    }
    assert_eq!(bans(&server), [(place.to_string(), "alice".to_owned())]);
    guesser.secret = e2e::SECRET.to_owned();
    assert_eq!(status(&guesser.register(300)), Some(401), "the right one is not looked at any more");
    Phone::at(place, server.site.sip, "bob").must_register();
    Phone::new(server.site.sip, "alice").must_register();
    server.until_logged(&[&format!("user 'alice' at {place} is banned for 3600 s")]);
    assert!(server.cli("core show bans").contains("1 ban\n"));
    assert!(server.cli(&format!("core unban {place} alice")).contains("1 ban lifted"));
    assert_eq!(bans(&server), []);
    guesser.must_register();
    assert!(!server.run(&format!("core unban {place}")).status.success(), "there is none");
}

#[test]
fn an_address_that_tries_all_names_falls_silent_for_them_unless_phones_are_at_home_there() {
    let server = Server::start(site("bans-address"));
    let (place, home) = (address(), address());
    Phone::at(home, server.site.sip, "bob").must_register();
    for place in [place, home] {
        for number in 0..6 {
            let mut guesser = Phone::at(place, server.site.sip, &format!("10{number}"));
            assert_eq!(status(&guesser.register(300)), Some(401));
        }
    }
    assert_eq!(bans(&server), [(place.to_string(), String::new())]);
    let mut silent = Phone::at(place, server.site.sip, "alice");
    silent.send(b"OPTIONS sip:a SIP/2.0\r\nVia: SIP/2.0/UDP 192.0.2.1;rport;branch=z9hG4bKsilent\r\nFrom: <sip:a@b>;tag=1\r\n\
                  To: <sip:a@b>\r\nCall-ID: silent\r\nCSeq: 1 OPTIONS\r\nMax-Forwards: 70\r\n\r\n");
    // What is answered shows that what came before was not.
    assert_eq!(status(&Phone::at(home, server.site.sip, "alice").register(300)), Some(200));
    assert!(!silent.comes("", Duration::from_millis(1)), "nothing is said to it");
    assert!(server.cli("core unban all").contains("1 ban lifted"));
    silent.must_register();
}

/// Says one thing to the manager; what it answers until it has hung up or paused.
fn login(server: &Server, user: &str, secret: &str) -> Option<String> {
    let at = SocketAddr::new(server.site.sip.ip(), MANAGER);
    let mut stream = TcpStream::connect(at).expect("the port is open");
    stream.set_read_timeout(Some(wait::SOON)).expect("a time-out");
    let _written = write!(stream, "Action: Login\r\nUsername: {user}\r\nSecret: {secret}\r\n\r\n");
    let mut lines = BufReader::new(stream).lines().map_while(Result::ok);
    lines.find(|line| line.starts_with("Response: "))
}

#[test]
fn managers_and_metrics_are_counted_as_phones_are() {
    let server = Server::start(site("bans-manager"));
    let good = || login(&server, "admin", "a-long-manager-secret");
    assert_eq!(good().as_deref(), Some("Response: Success"));
    for _ in 0..3 {
        assert_eq!(login(&server, "admin", "wrong").as_deref(), Some("Response: Error"));
    }
    assert_eq!(good().as_deref(), Some("Response: Error"), "the right one is not looked at any more");
    assert_eq!(login(&server, "other", "another-long-secret").as_deref(), Some("Response: Success"));
    for _ in 0..2 {
        login(&server, "nobody", "wrong");
    }
    let address = (String::from("127.0.0.1"), String::new());
    assert!(bans(&server).contains(&address), "{:?}", bans(&server));
    assert_eq!(login(&server, "other", "another-long-secret"), None, "it is not listened to");
    let http = SocketAddr::new(server.site.sip.ip(), HTTP);
    let mut stream = TcpStream::connect(http).expect("the port is open");
    let _written = stream.write_all(b"GET /metrics HTTP/1.1\r\n\r\n");
    assert!(BufReader::new(stream).lines().map_while(Result::ok).next().is_none(), "nor there");
    server.cli("core unban all");
    assert_eq!(good().as_deref(), Some("Response: Success"));
}

/// The stock filter of fail2ban finds everybody who was refused, by the log of the messages and by that of security alone.
#[test]
fn the_stock_filter_of_fail2ban_finds_who_was_refused() {
    if !e2e::installed(&["fail2ban-regex"]) {
        return;
    }
    let filter = std::path::Path::new("/etc/fail2ban/filter.d/asterisk.conf");
    let site = site("bans-filter").add(
        "logger.conf",
        "[general]\n[logfiles]\nfull => notice,warning,error,verbose,security\n\
         messages => notice,warning,error\nsecurity => security\n",
    );
    let server = Server::start(site);
    let places: Vec<_> = (0..3).map(|_| address()).collect();
    for (place, name, secret) in [(places[0], "alice", "wrong"), (places[1], "nobody", "wrong")] {
        let mut guesser = Phone::at(place, server.site.sip, name);
        guesser.secret = secret.to_owned();
        assert_eq!(status(&guesser.register(300)), Some(401));
    }
    let mut caller = Phone::at(places[2], server.site.sip, "stranger");
    caller.secret = "wrong".to_owned();
    assert_eq!(status(&caller.call("600")), Some(401));
    login(&server, "admin", "wrong");
    server.until_logged(&["Request 'INVITE'", &places[2].to_string()]);
    server.until_logged(&["failed to authenticate as 'admin'"]);
    let names = ["a wrong password", "an unknown user", "a call of a stranger"];
    for log in ["messages", "security"] {
        let file = server.site.place.join(format!("log/{log}"));
        let found = std::process::Command::new("fail2ban-regex")
            .args(["-v", "--usedns=no"])
            .args([file.as_path(), filter])
            .output()
            .expect("fail2ban-regex runs");
        let found = String::from_utf8_lossy(&found.stdout).into_owned();
        let found = found.split("Ignoreregex").next().unwrap_or_default();
        for (name, place) in names.iter().zip(&places) {
            assert!(found.contains(&format!(" {place} ")), "{log}: {name}, {place}:\n{found}");
        }
        assert!(found.contains(" 127.0.0.1 "), "{log}: a manager with a wrong password:\n{found}");
    }
}
