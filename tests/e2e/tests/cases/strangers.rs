//! What strangers, guests and users with few rights could do by SIP.

use super::peers::{Ask, Stranger};
use e2e::{Message, Phone, SECRET, Server, Site, Speak, address, digest, wait};
use std::net::{SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

const DIALPLAN: &str = "
[test]
exten => 600,1,Answer()
 same => n,Echo()
exten => 601,1,Progress()
 same => n,Wait(60)
exten => _70X,1,Hangup(17)
exten => bob,1,Dial(PJSIP/bob,60)
[guests]
exten => _X.,1,Hangup(17)
";

fn site(name: &str) -> Site {
    Site::new(name).phone("alice").phone("bob").dialplan(DIALPLAN)
}

/// A site whose accounts stand in sip.conf, which pjsip.conf makes no listener of.
fn old_site(name: &str, accounts: &str) -> Site {
    let mut site = Site::new(name).dialplan(DIALPLAN);
    let SocketAddr::V4(at) = site.sip else { panic!("IPv4") };
    site.rewrite("pjsip.conf", "");
    site.add("sip.conf", &format!("[general]\nbindaddr={}\nbindport={}\n{accounts}", at.ip(), at.port()))
}

fn ask(server: &Server, method: &'static str, user: &str, to: &str) -> Ask {
    let at = server.site.sip;
    let uri = if method == "REGISTER" { format!("sip:{at}") } else { format!("sip:{to}@{at}") };
    Ask {
        method,
        uri,
        from: format!("<sip:{user}@{at}>"),
        to: (method == "REGISTER").then(|| format!("<sip:{user}@{at}>")),
        body: if method == "INVITE" { description() } else { String::new() },
        more: match method {
            "SUBSCRIBE" | "PUBLISH" | "NOTIFY" => "Event: presence\r\nExpires: 60\r\n".to_owned(),
            "REFER" => format!("Refer-To: <sip:600@{at}>\r\n"),
            "REGISTER" => "Expires: 60\r\n".to_owned(),
            _ => String::new(),
        },
        ..Ask::default()
    }
}

fn description() -> String {
    "v=0\r\no=- 1 1 IN IP4 127.0.0.1\r\ns=-\r\nc=IN IP4 127.0.0.1\r\nt=0 0\r\nm=audio 4000 RTP/AVP 0\r\n"
        .to_owned()
}

/// A proof is good for its own URI, once (RFC 7616 §3.4.6, RFC 3261 §22.4).
#[test]
fn rfc7616_3_4_6_a_proof_calls_the_number_it_was_made_for_and_that_once() {
    let server = Server::start(site("case-uri"));
    let place = address();
    for qop in [true, false] {
        for (case, method, made_for, sent_to, again, good) in [
            ("the number it was made for", "INVITE", "701", "701", false, true),
            ("the same once more", "INVITE", "701", "701", true, false),
            ("another number", "INVITE", "701", "700", false, false),
            ("another of the same length", "INVITE", "701", "702", false, false),
            ("another in capitals", "MESSAGE", "bob", "BOB", false, false),
            ("another once more", "INVITE", "701", "700", true, false),
            ("another method's", "OPTIONS", "701", "701", true, false),
        ] {
            let stranger = Stranger::at(place, server.site.sip);
            let made = ask(&server, method, "alice", made_for);
            let mut challenge = stranger.challenge(&made);
            if !qop {
                challenge = challenge.replace("qop=\"auth\"", "x=\"auth\"");
            }
            let proof = digest::answer(&challenge, "alice", SECRET, method, &made.uri);
            let with = |method, to| {
                let ask = ask(&server, method, "alice", to);
                Ask { more: format!("{}Authorization: {proof}\r\n", ask.more), sequence: 2, ..ask }
            };
            if again {
                stranger.ask(&with(method, made_for));
            }
            let method = if case.starts_with("another method") { "INVITE" } else { method };
            let answer = stranger.ask(&with(method, sent_to));
            assert_eq!(answer.status() != Some(401), good, "qop {qop}, {case}:\n{}", answer.text());
        }
    }
}

/// `insecure=` waives the password of an INVITE, of nothing else.
#[test]
fn what_is_waived_for_calls_is_not_waived_for_registrations_and_the_rest() {
    let rows = [
        ("friend", "port,invite", true),
        ("friend", "invite", true),
        ("friend", "very", true),
        ("peer", "invite,port", true),
        ("friend", "port", false),
        ("friend", "yes", false),
        ("friend", "no", false),
    ];
    let accounts: String = rows
        .iter()
        .enumerate()
        .map(|(number, (kind, insecure, _))| {
            format!(
                "[leg{number}]\ntype={kind}\nhost=dynamic\nsecret={SECRET}\ninsecure={insecure}\ncontext=test\n"
            )
        })
        .collect();
    let server = Server::start(old_site("case-insecure", &format!("allowguest=no\n{accounts}")));
    for (number, (kind, insecure, _)) in rows.iter().enumerate() {
        let (user, case) = (format!("leg{number}"), format!("{kind}, insecure={insecure}"));
        let stranger = Stranger::at(address(), server.site.sip);
        for method in ["REGISTER", "SUBSCRIBE", "PUBLISH", "MESSAGE", "OPTIONS", "REFER", "NOTIFY"] {
            let asked = ask(&server, method, &user, "600");
            let challenge = stranger.challenge(&asked);
            let answer = stranger.prove(&asked, &challenge, &user, "a-guess");
            assert_eq!(answer.status(), Some(401), "{case}: {method}:\n{}", answer.text());
        }
        let mut phone = Phone::at(stranger.local.ip(), server.site.sip, &user);
        assert_eq!(phone.register(60).status(), Some(200), "{case}: its own password");
    }
}

/// What is told about a user and about nobody, without what is random or repeats the question.
fn masked(answer: &Message, user: &str) -> String {
    let own = ["Via", "From", "To", "Call-ID", "CSeq", "WWW-Authenticate"];
    let kept = answer.headers.iter().filter(|(name, _)| !own.contains(&name.as_str()));
    let headers: String = kept.map(|(name, value)| format!("{name}: {value}\n")).collect();
    let challenged = answer.all("WWW-Authenticate").count();
    format!("{}\n{headers}{challenged}\n{}", answer.start, answer.body).replace(user, "USER")
}

/// Where guests may call, nothing but a call tells who exists; and it takes the same lines of the log.
#[test]
fn who_exists_is_told_neither_by_answers_nor_by_lines_of_the_log_where_guests_may_call() {
    const METHODS: [&str; 12] = [
        "REGISTER",
        "OPTIONS",
        "SUBSCRIBE",
        "MESSAGE",
        "NOTIFY",
        "PUBLISH",
        "REFER",
        "INFO",
        "UPDATE",
        "BYE",
        "PRACK",
        "FOO",
    ];
    let account =
        format!("context=guests\n[alice]\ntype=friend\nhost=dynamic\nsecret={SECRET}\ncontext=test\n");
    for (net, case, site) in [
        (1_u8, "no guests", site("case-guest0")),
        (2, "sip.conf, allowguest not written", old_site("case-guest1", &account)),
        (3, "sip.conf, no guests", old_site("case-guest2", &format!("allowguest=no\n{account}"))),
        (
            4,
            "pjsip.conf with anonymous",
            site("case-guest3")
                .add("pjsip.conf", "[anonymous]\ntype=endpoint\ncontext=guests\ndisallow=all\nallow=ulaw\n"),
        ),
    ] {
        let server = Server::start(site);
        let lines_of = |user: &str| {
            let mut answers = Vec::new();
            for (number, method) in METHODS.into_iter().enumerate() {
                // An address has so many lines, and who asks often is told of: neither is to be reached here.
                // All addresses are as long: a shorter request can have a shorter answer.
                let host = number as u8 + if user == "alice" { 101 } else { 201 };
                let stranger = Stranger::at([127, 1, net, host].into(), server.site.sip);
                let asked = ask(&server, method, user, "600");
                let first = stranger.ask(&asked);
                let second = match first.header("WWW-Authenticate") {
                    Some(challenge) => stranger.prove(&asked, challenge, user, "a-guess"),
                    None => first.clone(),
                };
                answers.push((method, masked(&first, user), masked(&second, user)));
            }
            answers
        };
        let (of_known, of_unknown) = (lines_of("alice"), lines_of("nobod"));
        for ((method, first, second), (_, other_first, other_second)) in of_known.iter().zip(&of_unknown) {
            assert_eq!(first, other_first, "{case}: {method}");
            assert_eq!(second, other_second, "{case}: {method} with a wrong password");
            assert!(first.starts_with("SIP/2.0 401"), "{case}: {method}: {first}");
        }
        // What is logged later is behind what was logged before.
        let mark = Stranger::at(address(), server.site.sip);
        let asked = ask(&server, "REGISTER", "marker", "600");
        let challenge = mark.challenge(&asked);
        mark.prove(&asked, &challenge, "marker", "a-guess");
        server.until_logged(&[&format!("{}", mark.local.ip())]);
        let log = server.log();
        let count = |host: usize| {
            let named = [format!("/127.1.{net}.{host}/"), format!("'127.1.{net}.{host}:")];
            log.lines().filter(|line| named.iter().any(|named| line.contains(named))).count()
        };
        for (number, method) in METHODS.iter().enumerate() {
            let (known, unknown) = (count(number + 101), count(number + 201));
            assert!(known > 0 && known == unknown, "{case}: {method}: {known} and {unknown} lines:\n{log}");
        }
    }
}

/// Every request inside a dialog whose names are known, from an address that is not the phone's.
#[test]
fn rfc3261_12_2_2_nobody_elsewhere_is_obeyed_inside_a_dialog() {
    let server = Server::start(site("case-inside"));
    let (home, elsewhere) = (address(), address());
    let mut alice = Phone::at(home, server.site.sip, "alice");
    alice.must_register();
    alice.media.speak(Speak::Tone(440.0));
    for (case, user) in
        [("who has no password", "nobody"), ("who has a wrong one", "alice"), ("who is another user", "bob")]
    {
        for (number, method) in
            ["INVITE", "BYE", "INFO", "UPDATE", "PRACK", "REFER", "SUBSCRIBE", "MESSAGE", "NOTIFY", "FOO"]
                .into_iter()
                .enumerate()
        {
            let answer = alice.must_call("600");
            let stranger = Stranger::at(elsewhere, server.site.sip);
            let mut asked = ask(&server, method, user, "600");
            asked.uri = answer.contact().expect("a contact").to_owned();
            asked.from = answer.must("From").to_owned();
            asked.to = Some(answer.must("To").to_owned());
            asked.call_id = Some(answer.must("Call-ID").to_owned());
            asked.sequence = 50;
            let case = format!("{case}, {method}");
            let mut refused = stranger.ask(&asked);
            if let (Some(challenge), true) = (refused.header("WWW-Authenticate"), user != "nobody") {
                let challenge = challenge.to_owned();
                let password = if user == "alice" { "a-guess" } else { SECRET };
                refused = stranger.prove(&asked, &challenge, user, password);
            }
            let status = refused.status().unwrap_or_default();
            assert!(matches!(status, 401 | 403 | 481), "{case}: {}", refused.text());
            if number == 0 {
                alice.media.forget();
                wait::until_true(&case, || alice.media.heard().tone(440.0) >= 200);
            }
            // It is still there for its own phone.
            alice.hang_up();
        }
    }
    for (case, user) in [("nobody", "nobody"), ("another user", "bob")] {
        let answer = alice.must_call("600");
        let stranger = Stranger::at(elsewhere, server.site.sip);
        let mut asked = ask(&server, "INVITE", user, "600");
        asked.more = format!(
            "Replaces: {}\r\n",
            alice.replaces().replace("%40", "@").replace("%3B", ";").replace("%3D", "=")
        );
        let mut refused = stranger.ask(&asked);
        if let (Some(challenge), "bob") = (refused.header("WWW-Authenticate"), user) {
            let challenge = challenge.to_owned();
            refused = stranger.prove(&asked, &challenge, user, "a-guess");
        }
        assert!(refused.status() >= Some(400), "{case}, Replaces: {answer:?} {}", refused.text());
        alice.hang_up();
    }
    server.until_idle();
}

/// Nobody is sent more than one and a half times what was sent in his name, with IP and UDP around each datagram.
#[test]
fn who_has_proved_nothing_is_sent_at_most_one_and_a_half_times_what_was_said_in_his_name() {
    let mixed =
        Site::new("case-amplify1").phone("alice").phone_with("bob", "force_rport=no").dialplan(DIALPLAN);
    for (case, site) in [("all alike", site("case-amplify0")), ("one with force_rport=no", mixed)] {
        let server = Server::start(site);
        let victims: Vec<_> = [
            "OPTIONS",
            "INVITE",
            "REGISTER",
            "SUBSCRIBE",
            "MESSAGE",
            "PUBLISH",
            "X",
            "BYE",
            "ACK",
        ]
        .into_iter()
        .map(|method| {
            let ip = address();
            let bind = |port| UdpSocket::bind((ip, port)).expect("a port");
            let [from, named] = [bind(0), bind(5090)];
            let text = format!(
                "{method} sip:a SIP/2.0\r\nv:SIP/2.0/UDP {ip}:5090\r\nf:sip:a\r\nt:sip:a\r\ni:3{method}\r\n\
                     CSeq:1 {method}\r\n\r\n"
            );
            from.send_to(text.as_bytes(), server.site.sip).expect("the datagram leaves");
            (method, text.len(), [from, named])
        })
        .collect();
        // An answer to an INVITE is said again after half a second.
        let end = Instant::now() + Duration::from_millis(1200);
        for (method, sent, sockets) in &victims {
            let mut got = 0;
            let mut buffer = [0; 65_536];
            for (number, socket) in sockets.iter().enumerate() {
                loop {
                    let left = if number == 0 {
                        end.saturating_duration_since(Instant::now())
                    } else {
                        Duration::ZERO
                    };
                    socket.set_read_timeout(Some(left.max(Duration::from_millis(1)))).expect("a time-out");
                    let Ok(length) = socket.recv(&mut buffer) else { break };
                    got += length + 28;
                }
            }
            let most = (sent + 28) * 3 / 2;
            assert!(got <= most, "{case}: {method} of {sent} octets is answered by {got}");
        }
    }
}

/// Lines of the log that strangers can have written within a minute, whatever they send.
#[test]
fn strangers_can_have_so_many_lines_written_in_a_minute_and_no_more() {
    /// Most lines of one kind in a period, and what sums up or is of others.
    const MOST: usize = 700;
    const DATAGRAMS: usize = 1500;
    let made_up = "Authorization: Digest username=\"alice\", realm=\"asterisk\", nonce=\"abc\", uri=\"sip:a\", \
                   response=\"00000000000000000000000000000000\"\r\n";
    let server = Server::start(site("case-lines"));
    let sockets: Vec<_> = (1..=50_u8)
        .map(|host| UdpSocket::bind(SocketAddr::from(([127, 1, 0, host], 0))).expect("a port"))
        .collect();
    let mut alice = Phone::new(server.site.sip, "alice");
    for (case, line, more) in [
        ("REGISTER of nobody", "REGISTER", ""),
        ("REGISTER with a nonce that is made up", "REGISTER", made_up),
        ("INVITE of nobody", "INVITE", ""),
        ("INVITE with a nonce that is made up", "INVITE", made_up),
        ("OPTIONS of nobody", "OPTIONS", made_up),
        ("SUBSCRIBE of nobody", "SUBSCRIBE", made_up),
        ("a method that nobody knows", "FOO", made_up),
        ("a name of a method that is none", "F@O", ""),
        ("a header that cannot be read", "REGISTER", "Contact: <\r\n"),
        ("another length", "REGISTER", "Content-Length: 99999\r\n"),
    ] {
        let before = server.log().lines().count();
        let mut buffer = [0; 4096];
        for number in 0..DATAGRAMS {
            let socket = &sockets[number % sockets.len()];
            let text = format!(
                "{line} sip:a SIP/2.0\r\nVia: SIP/2.0/UDP a;rport;branch=z9hG4bK{number}{}\r\nFrom: <sip:u{number}@b>;tag=1\r\n\
                 To: <sip:a@b>\r\nCall-ID: {number}{}\r\nCSeq: 1 {line}\r\n{more}\r\n",
                case.len(),
                case.len()
            );
            let _full = socket.send_to(text.as_bytes(), server.site.sip);
            socket.set_nonblocking(true).expect("a socket");
            while socket.recv(&mut buffer).is_ok() {}
        }
        // Whoever has proved himself finds it working.
        alice.must_register();
        let lines = server.log().lines().count() - before;
        assert!(lines <= MOST, "{case}: {lines} lines for {DATAGRAMS} datagrams");
    }
}
