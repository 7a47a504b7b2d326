//! What is kept of a call: its detail records, and its SIP messages when somebody wants them.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::time::Duration;

use e2e::{Phone, Server, Site, wait};

const DIALPLAN: &str = "
[test]
exten => 100,1,Answer()
 same => n,Wait(60)
exten => 101,1,Busy(1)
exten => _[a-z].,1,Dial(PJSIP/${EXTEN},60)
 same => n,Hangup()
exten => short,1,Dial(PJSIP/carol,2)
 same => n,Hangup()
";

// Columns of cdr-csv, in Asterisk's order.
const SRC: usize = 1;
const DST: usize = 2;
const CONTEXT: usize = 3;
const CLID: usize = 4;
const CHANNEL: usize = 5;
const DST_CHANNEL: usize = 6;
const LAST_APP: usize = 7;
const LAST_DATA: usize = 8;
const START: usize = 9;
const ANSWER: usize = 10;
const END: usize = 11;
const DURATION: usize = 12;
const BILLSEC: usize = 13;
const DISPOSITION: usize = 14;
const AMA: usize = 15;
const UNIQUEID: usize = 16;

fn record(server: &Server, number: &str) -> Vec<String> {
    wait::until("a record is written", || server.records().into_iter().find(|record| record[DST] == number))
}

#[test]
fn answered_busy_and_unanswered_calls_leave_one_record_each() {
    let mut site = Site::new("records").phone("alice").phone("bob").phone("carol").dialplan(DIALPLAN);
    // Calls that reach nobody are recorded only when the site says so.
    let cdr = site.text("cdr.conf").replace("enable = yes", "enable = yes\nunanswered = yes");
    site.rewrite("cdr.conf", &cdr);
    let server = Server::start(site);
    let mut alice = Phone::new(server.site.sip, "alice");
    let (mut bob, mut carol) = (Phone::new(server.site.sip, "bob"), Phone::new(server.site.sip, "carol"));
    bob.must_register();
    carol.must_register();

    alice.must_call("100");
    wait::until_true("the dialplan waits", || server.cli("core show channels concise").contains("!Wait!"));
    alice.hang_up();
    let answered = record(&server, "100");
    for (column, expected) in [
        (SRC, "alice"),
        (CONTEXT, "test"),
        (CLID, "\"Phone alice\" <alice>"),
        (DST_CHANNEL, ""),
        (LAST_APP, "Wait"),
        (LAST_DATA, "60"),
        (DISPOSITION, "ANSWERED"),
        (AMA, "DOCUMENTATION"),
    ] {
        assert_eq!(answered[column], expected, "column {column} of {answered:?}");
    }
    assert!(answered[CHANNEL].starts_with("PJSIP/alice-"), "{answered:?}");
    assert!(answered[START] <= answered[ANSWER] && answered[ANSWER] <= answered[END], "{answered:?}");
    assert!(answered[UNIQUEID].contains('.'), "{answered:?}");

    assert_eq!(alice.call("101").status(), Some(486));
    assert_eq!(record(&server, "101")[DISPOSITION], "BUSY");

    // Talk to bob for more than a second.
    alice.begin("bob");
    let invite = bob.ring();
    bob.take(&invite);
    assert_eq!(alice.outcome().status(), Some(200));
    bob.media.forget();
    wait::until_true("more than a second of talk", || bob.media.heard().packets() > 120);
    bob.hang_up();
    alice.until_hung_up();
    let talked = record(&server, "bob");
    assert_eq!((talked[DISPOSITION].as_str(), talked[LAST_APP].as_str()), ("ANSWERED", "Dial"));
    assert!(talked[DST_CHANNEL].starts_with("PJSIP/bob-"), "{talked:?}");
    let seconds = |column: usize| talked[column].parse::<u64>().expect("a number of seconds");
    assert!(seconds(BILLSEC) >= 1 && seconds(DURATION) >= seconds(BILLSEC), "{talked:?}");

    // Carol is busy, then does not answer.
    alice.begin("carol");
    let invite = carol.ring();
    carol.refuse(&invite, 486, "Busy Here");
    assert_eq!(alice.outcome().status(), Some(486));
    let busy = record(&server, "carol");
    assert_eq!(
        (busy[DISPOSITION].as_str(), busy[ANSWER].as_str(), busy[BILLSEC].as_str()),
        ("BUSY", "", "0")
    );

    alice.begin("short");
    let invite = carol.ring();
    let cancel = carol.expect("CANCEL");
    carol.respond(&cancel, 200, "OK", false);
    carol.refuse(&invite, 487, "Request Terminated");
    assert!(alice.outcome().status() >= Some(400));
    let unanswered = wait::until("a record of the unanswered call", || {
        server.records().into_iter().find(|record| record[DISPOSITION] == "NO ANSWER")
    });
    assert_eq!((unanswered[DST].as_str(), unanswered[ANSWER].as_str()), ("short", ""));
    server.until_idle();
    // What is done after an attempt that failed is a record of its own, which `unanswered` shows.
    let mut applications: Vec<String> =
        server.records().iter().map(|record| record[LAST_APP].clone()).collect();
    applications.sort();
    assert_eq!(applications, ["Busy", "Dial", "Dial", "Dial", "Hangup", "Hangup", "Wait"]);
}

#[test]
fn a_call_that_reached_nobody_is_recorded_only_when_the_site_says_so() {
    let server = Server::start(Site::new("nobody").phone("alice").dialplan(DIALPLAN));
    let mut alice = Phone::new(server.site.sip, "alice");
    assert_eq!(alice.call("101").status(), Some(486));
    server.until_idle();
    alice.must_call("100");
    alice.hang_up();
    // Records are written in the order the calls ended.
    record(&server, "100");
    assert_eq!(server.records().len(), 1, "{:?}", server.records());
}

#[test]
fn a_record_that_was_seen_survives_kill_9() {
    let mut server = Server::start(Site::new("keep").phone("alice").dialplan(DIALPLAN));
    let mut alice = Phone::new(server.site.sip, "alice");
    alice.must_call("100");
    alice.hang_up();
    let before = record(&server, "100");
    server.kill_and_restart();
    assert_eq!(server.records(), [before]);
}

#[test]
fn no_kill_while_calls_end_loses_a_line_that_was_there_or_leaves_half_a_one() {
    const SEED: u64 = 0x5eed_0c4d;
    let dialplan = "[test]\nexten => _1XX,1,Answer()\n same => n,QueueLog(sales,${UNIQUEID},NONE,MARK,\"of\" ${EXTEN})\n \
                    same => n,Hangup()\n";
    let site = Site::new("kills")
        .phone("alice")
        .dialplan(dialplan)
        .add("cel.conf", "[general]\nenable=yes\nevents=ALL\n")
        .add("cel_custom.conf", "[mappings]\nall.csv => ${eventtype}|${CHANNEL(uniqueid)}|${CSV_QUOTE(${CHANNEL(channame)})}|end\n")
        .add("queues.conf", "[sales]\n");
    let mut server = Server::start(site);
    let files = ["cdr-csv/Master.csv", "cel-custom/all.csv", "queue_log"];
    let read = |server: &Server, file: &str| -> String {
        std::fs::read_to_string(server.site.place.join("log").join(file)).unwrap_or_default()
    };
    let whole = |file: &str, line: &str| match file {
        "queue_log" => line.split('|').count() >= 5,
        "cel-custom/all.csv" => line.split('|').count() == 4 && line.ends_with("|end"),
        _ => line.matches('"').count().is_multiple_of(2) && line.contains("\",\""),
    };
    let mut random = SEED;
    // SplitMix64.
    let mut below = |most: u64| {
        random = random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (random ^ (random >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        ((mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb) >> 33) % most
    };
    let mut seen: [Vec<String>; 3] = Default::default();
    for round in 0..8 {
        let mut alice = Phone::new(server.site.sip, "alice");
        for n in 0..=below(12) {
            alice.must_call(&format!("1{round}{}", n % 10));
            alice.until_hung_up();
        }
        // Up to a fifth of a second of waiting for company, writing and forcing to disk.
        let until = std::time::Instant::now() + Duration::from_millis(below(200));
        while std::time::Instant::now() < until {
            for (file, seen) in files.iter().zip(&mut seen) {
                let text = read(&server, file);
                let ended = text.rfind('\n').map_or("", |at| &text[..at]);
                *seen = ended.lines().map(str::to_owned).collect();
            }
        }
        server.kill_and_restart();
    }
    let mut alice = Phone::new(server.site.sip, "alice");
    alice.must_call("199");
    alice.until_hung_up();
    for (file, seen) in files.iter().zip(&seen) {
        let text = wait::until("the last call is there", || {
            let text = read(&server, file);
            (text.lines().count() > seen.len() && text.ends_with('\n')).then_some(text)
        });
        let lines: Vec<&str> = text.lines().collect();
        let before: Vec<&str> = seen.iter().map(String::as_str).collect();
        assert!(lines.starts_with(&before), "seed {SEED:#x}: {file} lost one of {before:#?}: {lines:#?}");
        assert!(seen.len() > 8, "{file}: {}", seen.len());
        for line in lines {
            assert!(whole(file, line), "seed {SEED:#x}: {file}: {line}");
        }
    }
}

/// Longest wait for the manager's next line.
const LINE_WAIT: Duration = Duration::from_secs(60);

/// The fields of the next message of a manager that has this line.
fn message_with(manager: &mut BufReader<TcpStream>, line: &str) -> BTreeMap<String, String> {
    let mut message = Vec::new();
    loop {
        let mut text = String::new();
        let read = manager.read_line(&mut text).expect("the manager says a line in time");
        assert!(read > 0, "the manager ended the connection before {line}");
        if !text.trim_end().is_empty() {
            message.push(text.trim_end().to_owned());
        } else if message.iter().any(|known| known == line) {
            let pairs = message.iter().filter_map(|field| field.split_once(": "));
            return pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        } else {
            message.clear();
        }
    }
}

#[test]
fn records_go_to_lines_and_tables_of_the_sites_own_and_to_managers() {
    const SECRET: &str = "a-long-manager-secret";
    let site = Site::new("own-records").phone("alice").dialplan(
        "[test]\nexten => 100,1,Answer()\n same => n,Set(CDR(rate)=7 \"cents\")\n same => n,ForkCDR(v)\n \
         same => n,Wait(60)\n",
    );
    let ip = site.sip.ip();
    let server = Server::start(
        site.add(
            "cdr_custom.conf",
            "[mappings]\nown/calls.csv => ${CSV_QUOTE(${CDR(src)})},${CDR(dst)},${CDR(sequence)},${CSV_QUOTE(${CDR(rate)})},${CDR(disposition)}\n",
        )
        .add(
            "cdr_sqlite3_custom.conf",
            "[master]\ntable => calls\ncolumns => number, price\nvalues => '${CDR(dst)}','${CDR(rate)}'\n",
        )
        .add("cdr_manager.conf", "[general]\nenabled = yes\n[mappings]\nrate => Rate\n")
        .add(
            "manager.conf",
            &format!("[general]\nenabled=yes\nbindaddr={ip}\n[board]\nsecret={SECRET}\nread=cdr\nwrite=\n"),
        ),
    );
    let status = server.cli("cdr show status");
    for backend in ["csv", "CDR File custom bac", "cdr_sqlite3_custom", "cdr_manager"] {
        assert!(status.lines().any(|line| line.trim() == backend), "{backend}: {status}");
    }
    let manager = TcpStream::connect((ip, 5038)).expect("the manager listens");
    manager.set_read_timeout(Some(LINE_WAIT)).expect("a limit");
    let mut manager = BufReader::new(manager);
    let login = format!("Action: Login\r\nUsername: board\r\nSecret: {SECRET}\r\n\r\n");
    manager.get_mut().write_all(login.as_bytes()).expect("the manager reads");
    message_with(&mut manager, "Response: Success");

    let mut alice = Phone::new(server.site.sip, "alice");
    alice.must_call("100");
    wait::until_true("the dialplan waits", || server.cli("core show channels concise").contains("!Wait!"));
    alice.hang_up();
    for _ in 0..2 {
        let event = message_with(&mut manager, "Event: Cdr");
        for (field, expected) in [
            ("Source", "alice"),
            ("Destination", "100"),
            ("LastApplication", "Wait"),
            ("Disposition", "ANSWERED"),
            ("Rate", "7 \"cents\""),
        ] {
            assert_eq!(event.get(field).map(String::as_str), Some(expected), "{field} of {event:?}");
        }
    }
    let lines = wait::until("both lines of the fork", || {
        let text = server.site.place.read("log/cdr-custom/own/calls.csv");
        (text.matches('\n').count() == 2).then_some(text)
    });
    let line = |sequence| format!("\"alice\",100,{sequence},\"7 \"\"cents\"\"\",ANSWERED\n");
    assert_eq!(lines, line(0) + &line(1));
    // SQLite keeps text as it is, so that it can be seen without a client.
    wait::until_true("the rows are in the database", || {
        let bytes = std::fs::read(server.site.place.join("log/master.db")).unwrap_or_default();
        let row = b"1007 \"cents\"";
        let found = bytes.windows(row.len()).filter(|window| window == row).count();
        bytes.starts_with(b"SQLite format 3") && found >= 2
    });
}

#[test]
fn the_messages_of_a_call_are_drawn_as_a_ladder() {
    let server = Server::start(Site::new("ladder").phone("alice").phone("bob").dialplan(DIALPLAN));
    let (mut alice, mut bob) = (Phone::new(server.site.sip, "alice"), Phone::new(server.site.sip, "bob"));
    bob.must_register();
    assert!(server.cli("pjsip show history").starts_with("No history entries"), "nothing is kept unasked");
    server.cli("pjsip set history on");
    alice.begin("bob");
    let invite = bob.ring();
    bob.take(&invite);
    assert_eq!(alice.outcome().status(), Some(200));
    let channels = server.json("core show channels");
    let name = channels["channels"].as_array().and_then(|all| all.first()).map(|one| one["name"].clone());
    let name = name.as_ref().and_then(|name| name.as_str()).expect("a channel").to_owned();
    // The ACKs come when the phones send them: for the challenge, and for the answers of both legs.
    let drawn = wait::until("all ACKs are in the ladder", || {
        let drawn = server.cli(&format!("core show channel {name} ladder"));
        (drawn.matches(" ACK ").count() >= 3).then_some(drawn)
    });
    let lines: Vec<&str> = drawn.lines().collect();
    assert!(lines[0].contains("Strowger"), "{drawn}");
    assert!(lines[1].contains(" INVITE (SDP) ------> |"), "the call begins at the left: {drawn}");
    for (label, least) in
        [(" INVITE (SDP) ", 3), (" 401 Unauthorized ", 1), (" 180 Ringing ", 1), (" 200 OK (SDP) ", 2)]
    {
        assert!(drawn.matches(label).count() >= least, "{label}: {drawn}");
    }
    let json = server.json(&format!("core show channel {name} ladder"));
    assert_eq!(json["peers"].as_array().map(Vec::len), Some(2), "{json}");
    assert!(json["steps"].as_array().map(Vec::len) >= Some(lines.len() - 1), "{json}");
    let call_id = json["steps"][0]["call_id"].as_str().expect("a Call-ID").to_owned();
    alice.hang_up();
    server.until_idle();
    // What was kept stays when the call is gone.
    server.cli("pjsip set history off");
    let after = server.cli(&format!("pjsip show history ladder {call_id}"));
    assert!(after.contains(" BYE ") && after.contains(" 200 OK (BYE) "), "{after}");
    let found = server.cli("pjsip show history where sip.msg.method = BYE and addr like 127");
    assert!(found.contains("BYE sip:"), "{found}");
}

/// A packet of HEPv3: its chunks of vendor 0 by type.
fn hep_chunks(packet: &[u8]) -> BTreeMap<u16, Vec<u8>> {
    assert_eq!(
        (&packet[..4], usize::from(u16::from_be_bytes([packet[4], packet[5]]))),
        (&b"HEP3"[..], packet.len())
    );
    let (mut rest, mut chunks) = (&packet[6..], BTreeMap::new());
    while let [0, 0, kind_high, kind_low, high, low, tail @ ..] = rest {
        let length = usize::from(u16::from_be_bytes([*high, *low])) - 6;
        chunks.insert(u16::from_be_bytes([*kind_high, *kind_low]), tail[..length].to_vec());
        rest = &tail[length..];
    }
    assert!(rest.is_empty(), "what is no chunk: {rest:?}");
    chunks
}

/// An address of a packet: IPv4 in the one chunk, the port in the other.
fn hep_address(chunks: &BTreeMap<u16, Vec<u8>>, ip: u16, port: u16) -> SocketAddr {
    let ip: [u8; 4] = chunks[&ip].as_slice().try_into().expect("an IPv4 address");
    let port: [u8; 2] = chunks[&port].as_slice().try_into().expect("a port");
    (ip, u16::from_be_bytes(port)).into()
}

#[test]
fn a_capture_server_gets_a_copy_of_every_message_of_a_call() {
    captured("call-id", |_| false);
}

#[test]
fn a_capture_server_knows_a_call_by_its_channel_when_that_is_wanted() {
    // Before the channel is made, and when it is gone, there is only the Call-ID.
    captured("channel", |text| {
        text.starts_with("SIP/2.0 200") && text.contains(" INVITE\r\n") || text.starts_with("BYE ")
    });
}

/// Captures a call whose messages are tied together so; `by_channel` says which of them have a channel.
fn captured(uuid_type: &str, by_channel: fn(&str) -> bool) {
    let capture = UdpSocket::bind("127.0.0.1:0").expect("a capture server");
    capture.set_read_timeout(Some(LINE_WAIT)).expect("a limit");
    let address = capture.local_addr().expect("its address");
    let site = Site::new(&format!("capture-{uuid_type}")).phone("alice").dialplan(DIALPLAN).add(
        "hep.conf",
        &format!("[general]\ncapture_address = {address}\ncapture_id = 2001\ncapture_password = let me in\nuuid_type = {uuid_type}\n"),
    );
    let server = Server::start(site);
    let mut alice = Phone::new(server.site.sip, "alice");
    alice.must_call("100");
    alice.hang_up();
    let mut buffer = [0; 65_535];
    let mut starts = Vec::new();
    loop {
        let length = match capture.recv(&mut buffer) {
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
            received => received.expect("a copy in time"),
        };
        let chunks = hep_chunks(&buffer[..length]);
        if chunks[&11] == [5] {
            continue; // what RTCP says, when the call lasted so long
        }
        let text = String::from_utf8_lossy(&chunks[&15]).into_owned();
        let (from, to) = (hep_address(&chunks, 3, 7), hep_address(&chunks, 4, 8));
        assert!([from, to].contains(&server.site.sip), "{from} {to}: {text}");
        assert_eq!(to == server.site.sip, !text.starts_with("SIP/2.0"), "alice asks, we answer: {text}");
        assert_eq!(
            (&chunks[&1][..], &chunks[&2][..], &chunks[&11][..]),
            (&[2][..], &[17][..], &[1][..]),
            "{text}"
        );
        assert_eq!(chunks[&12], 2001_u32.to_be_bytes(), "{text}");
        assert_eq!(chunks[&14], b"let me in", "{text}");
        let call_id = text.lines().find_map(|line| line.strip_prefix("Call-ID: ")).expect("a Call-ID");
        let correlation = String::from_utf8_lossy(&chunks[&17]);
        match by_channel(&text) {
            true => assert!(correlation.starts_with("PJSIP/alice-"), "{correlation}: {text}"),
            false if uuid_type == "call-id" => assert_eq!(correlation, call_id, "{text}"),
            false => assert!(correlation == call_id || correlation.starts_with("PJSIP/alice-"), "{text}"),
        }
        let is_last = text.starts_with("SIP/2.0 200") && text.contains(" BYE\r\n");
        starts.push(text.lines().next().unwrap_or_default().to_owned());
        if is_last {
            break;
        }
    }
    for expected in ["INVITE sip:100@", "SIP/2.0 401", "ACK sip:", "SIP/2.0 200 OK", "BYE sip:"] {
        assert!(starts.iter().any(|start| start.starts_with(expected)), "{expected}: {starts:#?}");
    }
}
