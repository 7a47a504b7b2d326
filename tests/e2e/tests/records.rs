//! Call detail records, as billing reads them from `Master.csv`.

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
    assert_eq!(server.records().len(), 5, "{:#?}", server.records());
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
