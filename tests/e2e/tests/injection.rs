//! What a caller writes is text: it dials nobody, forges no line, and tells nothing by its timing.

use e2e::{Phone, Server, Site, wait};
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::{Duration, Instant};

const HTTP: u16 = 8088;
const SECRET: &str = "a-long-manager-secret";
const DIALPLAN: &str = "
[test]
exten => _bob.,1,Dial(PJSIP/${EXTEN},2)
 same => n,Hangup()
exten => bob&co,1,Busy(1)
exten => who,1,Answer()
 same => n,Set(DB(said/name)=${CALLERID(name)})
 same => n,Set(DB(said/asked)=${PJSIP_HEADER(read,X-Asked)})
 same => n,Set(CDR(userfield)=${PJSIP_HEADER(read,X-Asked)})
 same => n,Set(CDR(accountcode)=${CALLERID(name)})
 same => n,UserEvent(Caller,Name: ${CALLERID(name)},From: ${REDIRECTING(from-name)} ${REDIRECTING(from-num)},Asked: ${PJSIP_HEADER(read,X-Asked)})
 same => n,Log(NOTICE,${CALLERID(name)} from ${REDIRECTING(from-name)} asks ${PJSIP_HEADER(read,X-Asked)})
 same => n,Verbose(${CALLERID(all)})
 same => n,Hangup()
exten => note,1,Set(DB(said/note)=${MESSAGE(body)})
 same => n,UserEvent(Note,Body: ${MESSAGE(body)},From: ${MESSAGE(from)})
 same => n,Log(NOTICE,${MESSAGE(body)})
exten => wait,1,Answer()
 same => n,Wait(30)
exten => placed,1,Set(DB(said/placed)=${TEXT})
 same => n,UserEvent(Placed,Text: ${TEXT},By: ${CALLERID(all)})
 same => n,Log(NOTICE,${TEXT} by ${CALLERID(all)} for ${CDR(accountcode)})
exten => _say!,1,Answer()
 same => n,UserEvent(Caller,Name: ${CALLERID(name)},Number: ${EXTEN})
 same => n,Log(NOTICE,caller ${CALLERID(name)} dialled ${EXTEN})
 same => n,Hangup()
";

/// What somebody writes who hopes that it is taken for more than text.
const TEXTS: &[&str] = &[
    "%0d%0aEvent: Forged%0d%0a%0d%0a",
    "%0aForged: yes",
    "\\r\\nForged: yes",
    "a\u{85}Forged: yes",
    "a\u{2028}Forged: yes",
    "a\u{1b}[2J\u{1b}[31mForged",
    "a\u{7f}\u{8}\u{8}Forged",
    "a\tForged: yes",
    "bob&PJSIP/carol",
    "carol@test/n",
    "bob|20|g",
    "PJSIP/carol^Local/carol@test",
    "a;b=c?Replaces=x",
    "${SHELL(id)}",
    "${EVAL(${DB(said/name)})}",
    "$[1 + 1]",
    "{TEXT}[0]",
    "'; DROP TABLE cdr; --",
    "=HYPERLINK(carol)",
    "<b onload=x>",
    "a]]>&#10;Forged: yes",
    "../../../../etc/passwd",
    "%n%s%x%c",
    "System(id)",
];

fn server(name: &str) -> Server {
    // Alice is called as she says.
    let alice = format!(
        "[alice]\ntype=endpoint\ncontext=test\nallow=ulaw\nauth=alice\naors=alice\ntrust_id_inbound=yes\n\
         [alice]\ntype=auth\nusername=alice\npassword={}\n[alice]\ntype=aor\nmax_contacts=4\n",
        e2e::SECRET
    );
    let site = Site::new(name).add("pjsip.conf", &alice).phone("bob").phone("carol");
    let ip = site.sip.ip();
    let site = site.dialplan(DIALPLAN).add(
        "manager.conf",
        &format!(
            "[general]\nenabled=yes\nwebenabled=yes\nport=5038\nbindaddr={ip}\n\
             [admin]\nsecret={SECRET}\nread=all\nwrite=all\n"
        ),
    );
    let http = format!("[general]\nenabled=yes\nbindaddr={ip}\nbindport={HTTP}\n");
    Server::start(site.add("http.conf", &http))
}

/// A manager client that hears everything.
struct Listener {
    stream: TcpStream,
    heard: String,
}

impl Listener {
    fn new(server: &Server) -> Self {
        let mut stream = TcpStream::connect((server.site.sip.ip(), 5038)).expect("a connection");
        stream.set_read_timeout(Some(Duration::from_millis(20))).expect("a time-out");
        let login = format!("Action: Login\r\nUsername: admin\r\nSecret: {SECRET}\r\n\r\n");
        stream.write_all(login.as_bytes()).expect("the connection stands");
        Self { stream, heard: String::new() }
    }
    fn until(&mut self, words: &str) {
        wait::until_true(words, || {
            let mut buffer = [0; 8192];
            let length = self.stream.read(&mut buffer).unwrap_or(0);
            self.heard.push_str(&String::from_utf8_lossy(&buffer[..length]));
            self.heard.contains(words)
        });
    }
    /// Sees that nothing that was heard is a line of a caller's making, and forgets it.
    fn assert_unforged(&mut self, what: &str) {
        // What was read may end within a line.
        let rest = self.heard.split_off(self.heard.rfind('\n').map_or(0, |end| end + 1));
        let is_forged = |line: &&str| {
            let line = line.trim_start_matches(|c: char| c.is_whitespace() || c.is_control());
            line.starts_with("Forged") || line.starts_with("Event: Forged")
        };
        let forged = self.heard.split(['\r', '\n', '\u{85}', '\u{2028}']).find(is_forged);
        assert_eq!(forged, None, "{what}: {}", self.heard);
        self.heard = rest;
    }
}

fn assert_log_is_whole(server: &Server) {
    let log = server.log();
    for line in log.lines() {
        assert!(line.starts_with('['), "a line of the log begins with a caller's words: {line:?}");
    }
    assert!(!log.contains('\u{1b}') && !log.contains('\0'), "the log holds control characters");
}

/// A text as a quoted string of a header.
fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

/// Whether a text has nothing that could not stand in a line.
fn is_plain(text: &str) -> bool {
    !text.contains(char::is_control)
}

#[test]
fn a_dialled_number_names_no_further_phone() {
    let server = server("fork");
    let mut alice = Phone::new(server.site.sip, "alice");
    let mut carol = Phone::new(server.site.sip, "carol");
    carol.must_register();
    for number in [
        "bob%26PJSIP%2Fcarol",
        "bob&PJSIP/carol",
        "bob%2Fsip:x%40192.0.2.1",
        "bob%40carol",
        "bob,20,G(test%5Esay%5E1)",
    ] {
        let outcome = alice.call(number);
        assert_eq!(outcome.status(), Some(404), "{number}:\n{}", outcome.text());
        assert!(!carol.comes("INVITE", Duration::from_millis(200)), "'{number}' rings carol");
    }
    // An extension that the site itself has named so is what the site wants.
    assert_eq!(alice.call("bob%26co").status(), Some(486));
    server.until_idle();
}

#[test]
fn a_caller_forges_no_event_and_no_line_of_the_log() {
    let server = server("lines");
    let mut manager = Listener::new(&server);
    let mut alice = Phone::new(server.site.sip, "alice");
    for number in
        ["say%0d%0aEvent:%20Forged%0d%0a%0d%0a", "say%0aForged:%20yes", "say%00Forged", "say%1b[31mForged"]
    {
        let outcome = alice.call(number);
        match outcome.status() {
            Some(200) => {
                alice.until_hung_up();
                manager.until("Event: Hangup");
            }
            status => assert!(status >= Some(400), "{}", outcome.text()),
        }
        manager.assert_unforged(number);
    }
    server.until_idle();
    assert_log_is_whole(&server);
}

#[test]
fn what_a_caller_says_of_itself_is_text() {
    let server = server("self");
    let mut manager = Listener::new(&server);
    let mut alice = Phone::new(server.site.sip, "alice");
    let mut carol = Phone::new(server.site.sip, "carol");
    carol.must_register();
    let mut calls = 0;
    for text in TEXTS {
        let name = quoted(text);
        let uri = format!("sip:{}@example.com", text.replace(|c: char| !c.is_ascii_alphanumeric(), "%0d%0a"));
        for (place, display, more) in [
            ("From", name.clone(), String::new()),
            ("P-Asserted-Identity", String::new(), format!("P-Asserted-Identity: {name} <{uri}>\r\n")),
            ("Remote-Party-ID", String::new(), format!("Remote-Party-ID: {name} <{uri}>;party=calling\r\n")),
            ("Diversion", String::new(), format!("Diversion: {name} <{uri}>;reason={name}\r\n")),
            ("X-Asked", String::new(), format!("X-Asked: {text}\r\n")),
        ] {
            alice.display = display;
            alice.begin_with("who", &more);
            let outcome = alice.outcome();
            let what = format!("{text:?} in {place}");
            if outcome.status() != Some(200) {
                assert_eq!(outcome.status(), Some(400), "{what}: {}", outcome.text());
                continue;
            }
            calls += 1;
            alice.until_hung_up();
            manager.until("Event: Hangup");
            manager.assert_unforged(&what);
            let kept = match place {
                "X-Asked" => server.database("said", "asked"),
                "Diversion" => continue,
                _ => server.database("said", "name"),
            };
            if is_plain(text) {
                assert_eq!(kept, *text, "{what}");
            } else {
                assert!(is_plain(&kept), "{what}: {kept:?}");
            }
        }
    }
    assert!(calls >= 4 * TEXTS.len(), "{calls} calls");
    assert!(!carol.comes("INVITE", Duration::from_millis(100)), "a name rings carol");
    server.until_idle();
    assert_log_is_whole(&server);
    wait::until_true("a record a call", || server.records().len() == calls);
    let widths: Vec<usize> = server.records().iter().map(Vec::len).collect();
    assert!(widths.iter().all(|width| *width == widths[0]), "{widths:?}");
}

#[test]
fn a_message_and_a_transfer_are_text() {
    let server = server("message");
    let mut manager = Listener::new(&server);
    let (mut alice, mut bob, mut carol) = (
        Phone::new(server.site.sip, "alice"),
        Phone::new(server.site.sip, "bob"),
        Phone::new(server.site.sip, "carol"),
    );
    carol.must_register();
    let lines = ["a\r\nEvent: Forged\r\n\r\nb", "a\nForged: yes", "a\rForged: yes", "a\0Forged: yes"];
    for text in lines.iter().chain(TEXTS) {
        let answer = bob.say("note", "text/plain", text);
        assert!(matches!(answer.status(), Some(200 | 202)), "{text:?}: {}", answer.text());
        manager.until("UserEvent: Note");
        manager.until("\r\nBody: ");
        manager.until("\r\n\r\n");
        manager.assert_unforged(text);
        if is_plain(text) {
            assert_eq!(server.database("said", "note"), **text);
        }
    }
    for target in [
        "bob%26PJSIP%2Fcarol",
        "bob&PJSIP/carol",
        "bob%40carol",
        "bob%2C20%2CG(test%5Ecarol%5E1)",
        "say%0d%0aForged:%20yes",
        "%24%7BSHELL(id)%7D",
        "bob%7Ccarol",
    ] {
        alice.must_call("wait");
        let refer = format!("Refer-To: <sip:{target}@strowger>\r\nReferred-By: <sip:{target}@strowger>\r\n");
        let answer = alice.inside_with("REFER", &refer);
        assert!(answer.status() >= Some(200), "{target}: {}", answer.text());
        assert!(!carol.comes("INVITE", Duration::from_millis(100)), "'{target}' rings carol");
        manager.until("\r\n\r\n");
        manager.assert_unforged(target);
        alice.hang_up();
        server.until_idle();
    }
    assert_log_is_whole(&server);
}

/// What an HTTP request is answered, head and body.
fn get(server: &Server, target: &str, cookie: &str) -> String {
    let mut stream = TcpStream::connect((server.site.sip.ip(), HTTP)).expect("a connection");
    let request = format!("GET {target} HTTP/1.1\r\nHost: pbx\r\n{cookie}\r\n");
    stream.write_all(request.as_bytes()).expect("the connection stands");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    answer
}

fn escaped(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02x}")).collect()
}

#[test]
fn fields_of_the_manager_are_text() {
    let server = server("fields");
    let mut manager = Listener::new(&server);
    let mut carol = Phone::new(server.site.sip, "carol");
    carol.must_register();
    let answer = get(&server, &format!("/rawman?action=login&username=admin&secret={SECRET}"), "");
    let cookie =
        answer.split("Set-Cookie: ").nth(1).and_then(|rest| rest.split(';').next()).expect("a cookie");
    let cookie = format!("Cookie: {cookie}\r\n");
    let ask = |fields: &str| get(&server, &format!("/rawman?{fields}"), &cookie);
    // By HTTP a field may hold the end of a line.
    let lines = [
        "a\r\nEvent: Forged\r\n\r\nb",
        "a\nForged: yes",
        "a\rForged: yes",
        "a\r\nVariable: CARRIED=1",
        "a\0Forged",
    ];
    for text in lines.iter().chain(TEXTS) {
        let value = escaped(text);
        let answer = ask(&format!("action=setvar&variable=KEPT&value={value}"));
        assert!(answer.contains("Response: Success"), "{text:?}: {answer}");
        ask(&format!("action=userevent&userevent=Told&text={value}&{value}=x"));
        manager.until("UserEvent: Told");
        ask(&format!("action=dbput&family=said&key=put&val={value}"));
        let answer = ask(&format!("action=ping&actionid={value}"));
        assert!(answer.contains("Ping: Pong"), "{text:?}: {answer}");
        let body = answer.split_once("\r\n\r\n").map_or("", |(_, body)| body);
        assert_eq!(body.lines().count(), 5, "{text:?}: {answer}");
        let originate = format!(
            "action=originate&channel=Local%2Fwait%40test&context=test&exten=placed&priority=1&async=true\
             &callerid={value}&account={value}&variable=TEXT%3D{value}&channelid={value}"
        );
        let answer = ask(&originate.replace(&format!("&channelid={value}"), ""));
        assert!(answer.contains("Response: Success"), "{text:?}: {answer}");
        manager.until("UserEvent: Placed");
        wait::until_true("the call is over", || {
            server.cli("channel request hangup all");
            server.channels() == 0
        });
        manager.until("Event: Hangup");
        manager.assert_unforged(text);
        if is_plain(text) && !text.contains(',') {
            assert_eq!(server.database("said", "put"), **text);
            assert_eq!(server.database("said", "placed"), **text);
        }
        // Neither are these places of a dial string.
        for field in ["channel", "exten", "context", "application", "data"] {
            let fields = format!("channel=Local%2Fsay%40test&application=NoOp&{field}={value}");
            let one: Vec<&str> =
                fields.split('&').filter(|pair| !pair.starts_with(&format!("{field}="))).collect();
            let asked = ask(&format!("action=originate&async=true&{}&{field}={value}", one.join("&")));
            assert!(asked.contains("Response: "), "{text:?} in {field}: {asked}");
        }
    }
    let answer =
        ask("action=originate&async=true&application=Wait&data=5&channel=PJSIP%2Fbob%26PJSIP%2Fcarol");
    assert!(answer.contains("Response: "), "{answer}");
    assert!(!carol.comes("INVITE", Duration::from_millis(200)), "a field rings carol");
    manager.until("\r\n\r\n");
    manager.assert_unforged("the rest");
    server.cli("channel request hangup all");
    server.until_idle();
    assert_log_is_whole(&server);
}

/// How often a value of the second list is larger than one of the first, ties counted half: 0.5 when nobody can tell.
fn area(first: &[Duration], second: &[Duration]) -> f64 {
    let mut sorted = first.to_vec();
    sorted.sort_unstable();
    let score = |value: &Duration| {
        let below = sorted.partition_point(|other| other < value);
        let equal = sorted.partition_point(|other| other <= value) - below;
        below as f64 + equal as f64 / 2.0
    };
    second.iter().map(score).sum::<f64>() / (first.len() * second.len()) as f64
}

#[test]
fn the_time_of_an_answer_does_not_tell_who_exists() {
    const TRIES: usize = 1_500;
    let server = server("timing");
    let ip = e2e::address();
    let mut phones = ["alice", "nobod"].map(|name| {
        let mut phone = Phone::at(ip, server.site.sip, name);
        phone.secret = "wrong".to_owned();
        phone
    });
    let mut times = [Vec::new(), Vec::new()];
    for turn in 0..TRIES {
        // Alternating who goes first, so that whatever else the machine does falls on both alike.
        for which in [turn % 2, 1 - turn % 2] {
            let begun = Instant::now();
            let answer = phones[which].register(60);
            times[which].push(begun.elapsed());
            assert_eq!(answer.status(), Some(401), "{}", answer.text());
        }
    }
    let area = area(&times[0], &times[1]);
    // A release gives 0.50. Without optimisation it is 0.46 to 0.47, and a busy machine moves that by some hundredths.
    assert!((0.39..=0.61).contains(&area), "the two are told apart with {area:.3}");
}
