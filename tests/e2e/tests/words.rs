//! What a caller writes ends as text, wherever it gets: one table of hostile words, each taken to every place where the
//! words of a message become somebody else's line.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc;
use std::time::Duration;

use e2e::{Phone, Server, Site, address, wait};

const SECRET: &str = "a-long-manager-secret";

/// A name for the table, the caller's display name, his number as a URI has it, and what he dials after `bob`.
///
/// A name stands between quotes, where `\"` is a quote; what a number may not hold is escaped by `%`.
const ROWS: &[(&str, &str, &str, &str)] = &[
    ("a header line in the number", "x", "1%0d%0aX-Forged:%20yes", "1"),
    ("a bare line feed", "x", "1%0aX-Forged: yes", "1"),
    ("the end of the headers", "x", "1%0d%0a%0d%0aX-Forged:%20yes", "1"),
    ("an event of the manager", "x", "1%0d%0a%0d%0aEvent:%20Forged%0d%0aX-Forged:%20yes%0d%0a%0d%0a", "1"),
    ("a line of AGI", "x", "1%0aagi_forged:%20yes", "1"),
    ("a line of the log", "x", "1%0a[2026-01-01%2000:00:00]%20X-Forged:%20yes", "1"),
    ("an escape sequence of terminals", "x", "1%1b[31mX-Forged", "1"),
    ("a NUL", "x", "1%00X-Forged", "1"),
    ("C1 controls", "x", "1%c2%85X-Forged:%20yes", "1"),
    ("a quote that ends the name", "a\\\" <sip:carol@h>;tag=forged, \\\"b", "1", "1"),
    ("a backslash at the end", "a\\\\", "1", "1"),
    ("angle brackets", "a> <sip:carol@h", "1%3e%3csip:carol%40h", "1"),
    ("parameters", "a;tag=forged", "1%3btag=forged", "1"),
    ("a variable", "${GLOBAL(SECRET)}", "%24%7bGLOBAL(SECRET)%7d", "%24%7bGLOBAL(SECRET)%7d"),
    ("an expression", "$[41+999999]", "%24[41+999999]", "1"),
    ("a function that acts", "${SHELL(touch forged)}", "%24%7bSHELL(touch forged)%7d", "1"),
    ("columns of a record", "a\\\",\\\"forged\\\",\\\"", "1,forged,2", "1"),
    ("arguments of an application", "a,forged,U(x)", "1%2c20%2cU(x)", "%2c20%2cU(x)"),
    ("further phones", "bob&PJSIP/carol", "1%26PJSIP%2fcarol", "%26PJSIP%2fcarol"),
    ("another way to the phone", "bob/sip:x@h", "1%2fsip:x%40h", "%2fsip:x%40h"),
    ("a trunk", "bob@carol", "1%40carol", "%40carol"),
];

fn dialplan(agi: &str) -> String {
    format!(
        "[globals]\nSECRET=hidden-word\n[test]\nexten => _bob!,1,UserEvent(Words,Name: ${{CALLERID(name)}},Number: ${{CALLERID(num)}},Dialled: ${{EXTEN}})\n \
         same => n,Log(NOTICE,${{CALLERID(all)}} dialled ${{EXTEN}})\n \
         same => n,Verbose(1,${{CALLERID(all)}})\n \
         same => n,Set(CDR(userfield)=${{CALLERID(name)}})\n \
         same => n,AGI(agi://{agi}/words,${{CALLERID(num)}})\n \
         same => n,Dial(PJSIP/bob,20)\n same => n,Hangup()\n"
    )
}

/// Reads what AGI says of each call, and lets the call go on.
fn listen() -> (String, mpsc::Receiver<Vec<String>>) {
    let listener = TcpListener::bind((address(), 0)).expect("a port");
    let place = listener.local_addr().expect("an address").to_string();
    let (heard, calls) = mpsc::channel();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(stream) = stream else { return };
            let lines = BufReader::new(stream).lines().map_while(Result::ok);
            if heard.send(lines.take_while(|line| !line.is_empty()).collect()).is_err() {
                return;
            }
        }
    });
    (place, calls)
}

#[test]
fn what_a_caller_writes_ends_as_text_wherever_it_gets() {
    let (agi, environments) = listen();
    let site = Site::new("words").phone("bob").phone("carol").dialplan(&dialplan(&agi));
    let ip = site.sip.ip();
    let mut mallory = Phone::at(address(), site.sip, "mallory");
    let own = format!(
        "[mallory]\ntype=endpoint\ncontext=test\ndisallow=all\nallow=ulaw\naors=mallory\ntrust_id_inbound=yes\n\
         [mallory]\ntype=aor\ncontact=sip:mallory@{}\n[mallory]\ntype=identify\nendpoint=mallory\nmatch={}\n",
        mallory.local(),
        mallory.local().ip()
    );
    let login = format!("[admin]\nsecret={SECRET}\nread=all\nwrite=all\n");
    let manager = format!("[general]\nenabled=yes\nport=5038\nbindaddr={ip}\n{login}");
    let server = Server::start(site.add("pjsip.conf", &own).add("manager.conf", &manager));
    let mut manager = TcpStream::connect((ip, 5038)).expect("a connection");
    manager.set_read_timeout(Some(Duration::from_millis(20))).expect("a limit");
    let login = format!("Action: Login\r\nUsername: admin\r\nSecret: {SECRET}\r\n\r\n");
    manager.write_all(login.as_bytes()).expect("the connection stands");
    let (mut bob, mut carol) = (Phone::new(server.site.sip, "bob"), Phone::new(server.site.sip, "carol"));
    bob.must_register();
    carol.must_register();

    let mut calls = 0;
    for (name, display, number, dialled) in ROWS {
        let said = format!("P-Asserted-Identity: \"{display}\" <sip:{number}@example.net>\r\n");
        let more = format!("{said}X-Words: {display}\r\n");
        mallory.begin_with(&format!("bob{dialled}"), &more);
        // What a dial string takes for its own matches no pattern.
        if *dialled != "1" {
            let outcome = mallory.outcome();
            assert_eq!(outcome.status(), Some(404), "{name}: {}", outcome.text());
            continue;
        }
        calls += 1;
        let invite = bob.ring();
        // The phone that is called.
        let text = invite.text();
        let forged = |line: &str| {
            ["x-forged", "agi_forged", "event: forged"]
                .iter()
                .any(|word| line.to_ascii_lowercase().starts_with(word))
        };
        assert!(!text.lines().any(forged), "{name}: a line of the INVITE:\n{text}");
        assert_eq!(invite.all("From").count(), 1, "{name}:\n{text}");
        // Behind the address there is one tag, whatever stands between the quotes.
        let behind = invite.must("From").rsplit('>').next().unwrap_or_default();
        assert_eq!(behind.matches("tag=").count(), 1, "{name}: {}", invite.must("From"));
        let expanded = ["hidden-word", "1000040"].into_iter().find(|word| text.contains(word));
        assert_eq!(expanded, None, "{name}: something was expanded:\n{text}");
        // A script.
        let environment = environments.recv_timeout(wait::SOON).expect("AGI is asked");
        for line in &environment {
            assert!(line.starts_with("agi_") && !forged(line), "{name}: {environment:?}");
        }
        bob.refuse(&invite, 486, "Busy Here");
        mallory.outcome();
        server.until_idle();
    }
    assert!(!carol.comes("INVITE", Duration::from_millis(100)), "carol was never called");

    // Managers.
    let mut heard = String::new();
    wait::until_true("all ends are told", || {
        let mut buffer = [0; 16 * 1024];
        let length = manager.read(&mut buffer).unwrap_or(0);
        heard.push_str(&String::from_utf8_lossy(&buffer[..length]));
        heard.matches("UserEvent: Words").count() >= calls
            && heard.matches("Event: Hangup").count() >= 2 * calls
    });
    // The last line may be on its way still.
    let whole = heard.rsplit_once("\r\n").map_or("", |(whole, _)| whole);
    for line in whole.lines() {
        let is_forged = ["X-Forged", "agi_forged", "Event: Forged"].iter().any(|word| line.starts_with(word));
        assert!(!is_forged, "a line for managers: {line:?}");
        assert!(
            line.is_empty()
                || line.contains(": ")
                || line.ends_with(':')
                || line.starts_with("Asterisk Call Manager"),
            "{line:?}"
        );
    }
    // Records: as many as calls, each with all its columns.
    wait::until_true("all records are written", || server.records().len() >= calls);
    let records = server.records();
    let columns = records.first().map_or(0, Vec::len);
    assert_eq!(records.len(), calls, "{records:?}");
    assert!(records.iter().all(|record| record.len() == columns), "{records:?}");
    // The log.
    let log = server.log();
    for line in log.lines() {
        assert!(line.starts_with('['), "a line of the log begins with a caller's words: {line:?}");
    }
    assert!(!log.contains('\u{1b}') && !log.contains('\0'), "the log holds control characters");
    assert!(!server.site.place.join("forged").exists());
}
