//! What an administrator sees of calls from outside: traces, RTCP, and a log that other programs read.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::os::unix::net::UnixDatagram;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use e2e::{Message, Phone, Server, Site, wait};
use serde_json::Value;

const SECRET: &str = "a-long-manager-secret";

const DIALPLAN: &str = "
[test]
exten => 100,1,Answer()
 same => n,Wait(600)
exten => 200,1,NoOp(told)
 same => n,Dial(PJSIP/bob,30)
";

/// The request of a connection, once its body is whole.
fn request(stream: &mut TcpStream) -> Option<String> {
    let mut bytes = Vec::new();
    let mut buffer = [0; 65_536];
    loop {
        let length = stream.read(&mut buffer).ok().filter(|length| *length > 0)?;
        bytes.extend_from_slice(&buffer[..length]);
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        let head = head.to_ascii_lowercase();
        let wanted = head.lines().find_map(|line| line.strip_prefix("content-length: "))?;
        if body.len() >= wanted.parse().ok()? {
            return Some(body.to_owned());
        }
    }
}

/// A collector of OTLP over HTTP that takes everything: its address, and the spans as they come.
fn collector() -> (String, Receiver<Value>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a collector");
    let address = format!("http://{}", listener.local_addr().expect("its address"));
    let (tell, told) = channel();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            let Some(body) = request(&mut stream) else { continue };
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}");
            let body: Value = serde_json::from_str(&body).expect("JSON");
            let spans = body.pointer("/resourceSpans/0/scopeSpans/0/spans").and_then(Value::as_array);
            for span in spans.expect("spans") {
                if tell.send(span.clone()).is_err() {
                    return;
                }
            }
        }
    });
    (address, told)
}

fn attribute<'a>(span: &'a Value, key: &str) -> Option<&'a str> {
    let attributes = span["attributes"].as_array()?;
    attributes.iter().find(|attribute| attribute["key"] == key)?["value"]["stringValue"].as_str()
}

#[test]
fn a_call_is_a_trace_at_a_collector_of_opentelemetry() {
    let (address, told) = collector();
    let site = Site::new("traces").phone("alice").phone("bob").dialplan(DIALPLAN);
    let server = Server::start(site.add("opentelemetry.conf", &format!("[general]\nendpoint = {address}\n")));
    let (mut alice, mut bob) = (Phone::new(server.site.sip, "alice"), Phone::new(server.site.sip, "bob"));
    bob.must_register();
    alice.begin("200");
    let invite = bob.ring();
    bob.take(&invite);
    assert_eq!(alice.outcome().status(), Some(200));
    alice.hang_up();
    bob.until_hung_up();
    server.until_idle();
    let mut spans: Vec<Value> = Vec::new();
    wait::until_true("the call's own span has come", || {
        spans.extend(told.try_iter());
        spans.iter().any(|span| span["name"] == "call")
    });
    let root = spans.iter().find(|span| span["name"] == "call").expect("a root");
    assert_eq!(root["parentSpanId"], "");
    let under = |parent: &Value, name: &str| -> Vec<Value> {
        let is_it = |span: &&Value| span["parentSpanId"] == parent["spanId"] && span["name"] == name;
        spans.iter().filter(is_it).cloned().collect()
    };
    let legs = under(root, "channel");
    assert_eq!(legs.len(), 2, "{spans:#?}");
    let of = |name: &str| {
        let leg =
            legs.iter().find(|leg| attribute(leg, "channel").is_some_and(|known| known.starts_with(name)));
        leg.unwrap_or_else(|| panic!("{name} has no span: {legs:#?}"))
    };
    let (caller, called) = (of("PJSIP/alice-"), of("PJSIP/bob-"));
    for leg in [caller, called] {
        assert_eq!(under(leg, "bridge").len(), 1, "{spans:#?}");
        assert_eq!(attribute(leg, "hangupcause"), Some("16"));
        assert_eq!(attribute(leg, "exten"), None, "numbers are told only when details are wanted");
    }
    assert_eq!(under(caller, "NoOp").len(), 1, "{spans:#?}");
    let dial = under(caller, "Dial");
    let dialled = under(&dial[0], "dial");
    assert_eq!(attribute(&dialled[0], "dialstatus"), Some("ANSWER"), "{dialled:#?}");
    assert!(spans.iter().all(|span| span["traceId"] == root["traceId"]), "{spans:#?}");
    // Everything lies within the call.
    let nanos =
        |span: &Value, key: &str| span[key].as_str().and_then(|text| text.parse::<u64>().ok()).unwrap();
    for span in &spans {
        assert!(nanos(span, "startTimeUnixNano") >= nanos(root, "startTimeUnixNano"), "{span}");
        assert!(nanos(span, "endTimeUnixNano") <= nanos(root, "endTimeUnixNano"), "{span}");
    }
    // A collector that is gone disturbs no call.
    drop(told);
    alice.must_call("100");
    alice.hang_up();
    server.until_idle();
}

/// A connection of a manager that hears these events.
fn manager(server: &Server, events: &str) -> TcpStream {
    let mut stream = TcpStream::connect((server.site.sip.ip(), 5038)).expect("a connection");
    stream.set_read_timeout(Some(Duration::from_millis(20))).expect("a time-out");
    let login = format!("Action: Login\r\nUsername: admin\r\nSecret: {SECRET}\r\nEvents: {events}\r\n\r\n");
    stream.write_all(login.as_bytes()).expect("the connection stands");
    until(&mut stream, "Authentication accepted");
    stream
}

/// What comes up to the end of the message with these words.
fn until(stream: &mut TcpStream, words: &str) -> String {
    let mut heard = String::new();
    wait::until(words, || {
        let mut buffer = [0; 65_536];
        let length = match stream.read(&mut buffer) {
            Ok(length) => length,
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => 0,
            Err(error) => panic!("{error}"),
        };
        heard.push_str(&String::from_utf8_lossy(&buffer[..length]));
        let from = heard.find(words)?;
        let end = heard[from..].find("\r\n\r\n")?;
        Some(heard[..from + end].to_owned())
    })
}

fn with_manager(site: Site) -> Site {
    let ip = site.sip.ip();
    site.add(
        "manager.conf",
        &format!(
            "[general]\nenabled=yes\nport=5038\nbindaddr={ip}\n[admin]\nsecret={SECRET}\nread=all\nwrite=all\n"
        ),
    )
}

fn field<'a>(message: &'a str, name: &str) -> Option<&'a str> {
    message.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
}

/// The server's end of RTCP, from the description in its answer.
fn rtcp_port(answer: &Message) -> u16 {
    let text = answer.text();
    let media = text.lines().find_map(|line| line.strip_prefix("m=audio ")).expect("a stream");
    let port = media.split(' ').next().and_then(|port| port.parse::<u16>().ok()).expect("a port");
    port + 1
}

/// What a packet of HEPv3 has under a type.
fn chunk(packet: &[u8], wanted: u8) -> Option<&[u8]> {
    let mut rest = packet.get(6..)?;
    while let [0, 0, 0, kind, high, low, tail @ ..] = rest {
        let (value, after) = tail.split_at_checked(usize::from(u16::from_be_bytes([*high, *low])) - 6)?;
        if *kind == wanted {
            return Some(value);
        }
        rest = after;
    }
    None
}

#[test]
fn reports_of_rtcp_are_told_to_managers_and_to_a_capture_server() {
    let capture = UdpSocket::bind("127.0.0.1:0").expect("a capture server");
    capture.set_read_timeout(Some(wait::SOON)).expect("a limit");
    let address = capture.local_addr().expect("its address");
    let site = with_manager(Site::new("rtcp").phone("alice").dialplan(DIALPLAN))
        .add("hep.conf", &format!("[general]\ncapture_address = {address}\n"))
        .add("rtp.conf", "rtcpinterval = 1000\n");
    let server = Server::start(site);
    let mut events = manager(&server, "reporting");
    let mut alice = Phone::new(server.site.sip, "alice");
    let answer = alice.must_call("100");
    let sent = until(&mut events, "Event: RTCPSent");
    let port = rtcp_port(&answer);
    let ours = format!("{}:{port}", server.site.sip.ip());
    let message = sent.rsplit("\r\n\r\n").next().expect("an event");
    assert_eq!(field(message, "From"), Some(ours.as_str()), "{message}");
    assert!(field(message, "Channel").is_some_and(|name| name.starts_with("PJSIP/alice-")), "{message}");
    assert!(matches!(field(message, "PT"), Some("200(SR)" | "201(RR)")), "{message}");
    // A receiver report of the phone's: 8 bytes and a block, loss of a quarter.
    let mut report = vec![0x81, 201, 0, 7, 0, 0, 0, 0x2A];
    for word in [0x17_u32, 64 << 24 | 3, 9, 11, 0, 0] {
        report.extend_from_slice(&word.to_be_bytes());
    }
    let phone = UdpSocket::bind((alice.media.local().ip(), 0)).expect("a socket");
    phone.send_to(&report, (server.site.sip.ip(), port)).expect("it leaves");
    let came = until(&mut events, "Event: RTCPReceived");
    let message = came.rsplit("\r\n\r\n").next().expect("an event");
    for (name, value) in [
        ("To", ours.as_str()),
        ("SSRC", "0x0000002a"),
        ("PT", "201(RR)"),
        ("ReportCount", "1"),
        ("Report0SourceSSRC", "0x00000017"),
        ("Report0FractionLost", "64"),
        ("Report0CumulativeLost", "3"),
        ("Report0IAJitter", "11"),
    ] {
        assert_eq!(field(message, name), Some(value), "{message}");
    }
    // The capture server has both, as JSON.
    let mut buffer = [0; 65_535];
    let mut kinds = [false; 2];
    let mut looks = 0;
    while kinds != [true; 2] {
        looks += 1;
        assert!(looks < 1_000, "no report among {looks} packets");
        let length = capture.recv(&mut buffer).expect("a packet in time");
        let (kind, payload) = (chunk(&buffer[..length], 11), chunk(&buffer[..length], 15));
        if kind != Some(&[5]) {
            continue;
        }
        let said: Value = serde_json::from_slice(payload.expect("a payload")).expect("JSON");
        let is_ours = said["ssrc"] != 0x2A;
        kinds[usize::from(is_ours)] = true;
        if !is_ours {
            assert_eq!(
                (&said["type"], &said["report_blocks"][0]["fraction_lost"]),
                (&201.into(), &64.into())
            );
        }
    }
    alice.hang_up();
    server.until_idle();
}

#[test]
fn lines_about_a_call_have_its_number_and_the_systems_log_gets_those_it_wants() {
    let mut site = Site::new("callids").phone("alice").phone("bob").dialplan(DIALPLAN);
    let path = site.place.join("dev-log");
    std::fs::create_dir_all(path.parent().expect("a folder")).expect("the folder");
    let daemon = UnixDatagram::bind(&path).expect("a daemon's socket");
    let (tell, told) = channel();
    // It takes lines as they come: the kernel keeps ten.
    std::thread::spawn(move || {
        let mut buffer = [0; 65_536];
        while let Ok(length) = daemon.recv(&mut buffer) {
            if tell.send(String::from_utf8_lossy(&buffer[..length]).into_owned()).is_err() {
                return;
            }
        }
    });
    site.rewrite(
        "logger.conf",
        &format!(
            "[general]\nsyslog_socket = {}\n[logfiles]\nfull => notice,warning,error,verbose,security\n\
             facts => [json]verbose\nsyslog.local3 => verbose,notice,warning,error\n",
            path.display()
        ),
    );
    let server = Server::start(site);
    let (mut alice, mut bob) = (Phone::new(server.site.sip, "alice"), Phone::new(server.site.sip, "bob"));
    bob.must_register();
    for number in ["one", "two"] {
        alice.begin("200");
        let invite = bob.ring();
        bob.take(&invite);
        assert_eq!(alice.outcome().status(), Some(200), "{number}");
        alice.hang_up();
        bob.until_hung_up();
        server.until_idle();
    }
    // Both channels of a call have its number, and the next call has another.
    wait::until_true("both calls are in the log", || {
        let log = server.log();
        let of = |number: &str| log.lines().filter(|line| line.contains(number)).count();
        of("][C-00000001]: ") >= 2 && of("][C-00000002]: ") >= 2
    });
    let facts = server.site.place.join("log/facts");
    wait::until_true("JSON lines have it, too", || {
        let text = std::fs::read_to_string(&facts).unwrap_or_default();
        let lines = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        lines
            .into_iter()
            .any(|line| line["identifiers"]["callid"] == "C-00000002" && line["level"] == "VERBOSE")
    });
    wait::until_true("a line of the second call is in the system's log", || {
        told.try_iter().any(|line| {
            assert!(line.starts_with('<') && line.contains(" asterisk["), "{line}");
            // local3 is 19; what the dialplan does is as quiet there as what is for developers.
            line.starts_with("<159>") && line.contains("VERBOSE[C-00000002]: ")
        })
    });
}

#[test]
fn who_is_muted_by_a_manager_says_and_hears_nothing_and_types_all_the_same() {
    use e2e::Speak;
    let dialplan = "[test]\nexten => 100,1,Answer()\n same => n,Echo()\n\
                    exten => 200,1,Answer()\n same => n,Read(DIGITS,,1,,1,50)\n same => n,NoOp(typed ${DIGITS})\n \
                    same => n,Wait(600)\n";
    let site = with_manager(Site::new("mute").phone("alice").dialplan(dialplan));
    let server = Server::start(site);
    let mut control = manager(&server, "off");
    let mut alice = Phone::new(server.site.sip, "alice");
    alice.must_call("100");
    alice.media.speak(Speak::Tone(440.0));
    let flows = |alice: &Phone| {
        alice.media.forget();
        wait::for_some(wait::SOON, || (alice.media.heard().packets() > 20).then_some(())).is_some()
    };
    assert!(flows(&alice), "the echo is heard");
    let act = |control: &mut TcpStream, number: u32, direction: &str, state: &str| {
        let list = server.cli("core show channels concise");
        let channel = list.split('!').next().expect("a channel").to_owned();
        let text = format!(
            "Action: MuteAudio\r\nActionID: {number}\r\nChannel: {channel}\r\nDirection: {direction}\r\nState: {state}\r\n\r\n"
        );
        control.write_all(text.as_bytes()).expect("the connection stands");
        let answer = until(control, &format!("ActionID: {number}"));
        assert!(answer.contains("Response: Success"), "{answer}");
    };
    for (number, direction) in [(1, "in"), (3, "out")] {
        act(&mut control, number, direction, "on");
        // What was under way still comes; then nothing does, however much is said.
        wait::until_true("nothing comes any more", || {
            let before = (alice.media.sent(), alice.media.received());
            wait::until_true("alice has spoken on", || alice.media.sent() > before.0 + 25);
            alice.media.received() == before.1
        });
        act(&mut control, number + 1, direction, "off");
        assert!(flows(&alice), "{direction}: the echo is heard again");
    }
    alice.hang_up();
    server.until_idle();
    // Digits go on.
    alice.must_call("200");
    act(&mut control, 5, "all", "on");
    alice.media.type_digits("7");
    server.until_logged(&["typed 7"]);
    alice.hang_up();
    server.until_idle();
}

#[test]
fn what_a_dialplan_says_of_statistics_reaches_their_server() {
    let server = std::net::UdpSocket::bind("127.0.0.1:0").expect("a socket");
    server.set_read_timeout(Some(std::time::Duration::from_secs(30))).expect("a limit");
    let address = server.local_addr().expect("an address");
    let site = Site::new("statsd")
        .phone("alice")
        .add(
            "statsd.conf",
            &format!("[general]\nenabled=yes\nserver={address}\nprefix=pbx\nadd_newline=yes\n"),
        )
        .dialplan(
            "[test]\nexten => 100,1,StatsD(c,calls.${CALLERID(num)},+1)\n same => n,StatsD(x,wrong,1)\n \
             same => n,StatsD(ms,wait,320)\n same => n,Busy(1)\n",
        );
    let pbx = Server::start(site);
    Phone::new(pbx.site.sip, "alice").call("100");
    let read = || {
        let mut bytes = [0; 512];
        let length = server.recv(&mut bytes).expect("a datagram");
        String::from_utf8_lossy(&bytes[..length]).into_owned()
    };
    assert_eq!([read(), read()], ["pbx.calls.alice:+1|c\n", "pbx.wait:320|ms\n"]);
    pbx.until_logged(&["StatsD", "'x' is no type"]);
}
