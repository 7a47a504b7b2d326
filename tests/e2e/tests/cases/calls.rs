//! What phones, carriers and queues did to calls, and what readers of records and logs expect of them.

use super::peers::{Manager, connect, hears, managed};
use e2e::{Phone, Server, Site, Speak, wait};

const ALICE: f64 = 440.0;
const BOB: f64 = 620.0;
const CAROL: f64 = 880.0;

fn phone(server: &Server, name: &str, hertz: f64) -> Phone {
    let mut phone = Phone::new(server.site.sip, name);
    phone.media.speak(Speak::Tone(hertz));
    phone.must_register();
    phone
}

/// A site with a carrier that has no password, and the carrier.
fn with_carrier(name: &str) -> (Site, Phone) {
    let site = Site::new(name);
    let carrier = Phone::new(site.sip, "carrier");
    let at = carrier.local();
    let text = format!(
        "[carrier]\ntype=endpoint\ncontext=test\ndisallow=all\nallow=ulaw\ndirect_media=no\naors=carrier\n\
         redirect_method=uri_pjsip\n[carrier]\ntype=aor\ncontact=sip:{at}\n\
         [carrier]\ntype=identify\nendpoint=carrier\nmatch={}\n",
        at.ip()
    );
    (site.add("pjsip.conf", &text), carrier)
}

/// Parameters of a Contact as phones of mobile networks write them.
const INSTANCE: &str = ";+g.3gpp.accesstype=\"cellular\";+sip.instance=\"<urn:gsma:imei:00000000-000000-0>\"\
                        ;+g.3gpp.icsi-ref=\"urn%3Aurn-7%3A3gpp-service.ims.icsi.mmtel\"";

/// A Contact without brackets ends at its first parameter, whatever stands in quotation marks behind it.
#[test]
fn rfc3261_20_10_a_contact_without_brackets_ends_at_its_first_parameter() {
    let (site, mut carrier) = with_carrier("case-brackets");
    let server = Server::start(site.phone("alice").phone("bob").dialplan(
        "[test]\nexten => _0X,1,Dial(PJSIP/${EXTEN}@carrier,30)\nexten => alice,1,Dial(PJSIP/alice,30)\n",
    ));
    let mut alice = phone(&server, "alice", ALICE);
    let mut other = Phone::new(server.site.sip, "other");
    for (case, parameters) in [
        ("none", ""),
        ("an instance", INSTANCE),
        ("a comma", ";+sip.instance=\"<urn:a,b>\""),
        ("a semicolon and a question mark", ";x=\"a;b?c=d\""),
        ("an escaped mark", ";x=\"a\\\"<b>\""),
        ("a bracket alone", ";x=\">\""),
    ] {
        let uri = format!("sip:t77@{}", carrier.local());
        carrier.contact = Some(format!("{uri}{parameters}"));
        alice.begin("01");
        let invite = carrier.ring();
        carrier.accept(&invite);
        let ack = carrier.expect("ACK");
        assert_eq!(ack.start, format!("ACK {uri} SIP/2.0"), "{case}");
        assert_eq!(alice.outcome().status(), Some(200), "{case}");
        alice.hang_up();
        let bye = carrier.expect("BYE");
        assert_eq!(bye.start, format!("BYE {uri} SIP/2.0"), "{case}");
        carrier.respond(&bye, 200, "OK", false);

        connect(&mut carrier, &mut alice, "alice");
        alice.hang_up();
        let bye = carrier.expect("BYE");
        assert_eq!(bye.start, format!("BYE {uri} SIP/2.0"), "{case}, called by it");
        carrier.respond(&bye, 200, "OK", false);

        alice.begin("02");
        let invite = carrier.expect("INVITE");
        carrier.redirect(&invite, &format!("sip:t79@{}{parameters}", other.local()));
        let sent_on = other.expect("INVITE");
        assert_eq!(sent_on.start, format!("INVITE sip:t79@{} SIP/2.0", other.local()), "{case}");
        other.refuse(&sent_on, 486, "Busy Here");
        alice.outcome();

        let mut bob = Phone::new(server.site.sip, "bob");
        let bound = format!("sip:t78@{}", bob.local());
        bob.contact = Some(format!("{bound}{parameters};q=0.5;expires=60"));
        let registered = bob.register(3600);
        assert_eq!(registered.status(), Some(200), "{case}:\n{}", registered.text());
        let told = registered.all("Contact").find(|value| value.contains(&bound)).expect("its binding");
        let left = told.split("expires=").nth(1).and_then(|left| left.split(';').next()?.parse::<u32>().ok());
        assert!(left <= Some(60), "{case}: {told}");
        assert!(server.cli("pjsip show contacts").contains(&bound), "{case}");
        bob.contact = Some(format!("<{bound}>"));
        bob.register(0);
    }
    server.until_idle();
}

/// The dialplan of one-touch parking: whoever is in the space is fetched, and an empty space parks.
#[test]
fn a_space_tells_who_is_parked_there_and_what_that_channel_carries() {
    let site = Site::new("case-space")
        .phone("alice")
        .phone("bob")
        .phone("carol")
        .add("res_parking.conf", "[general]\n[default]\nparkpos=>71-79\nparkext=>70\ncontext=parkedcalls\n")
        .dialplan(
            "[test]\nexten => bob,1,Dial(PJSIP/bob,30)\nexten => _7X,1,Gosub(slot,s,1(${EXTEN}))\n\
             [slot]\nexten => s,1,Set(WHO=${PARK_GET_CHANNEL(${ARG1},default)})\n \
             same => n,Set(DB(seen/who${LEN(${WHO})})=x${WHO})\n \
             same => n,Set(DB(seen/lot)=x${PARK_GET_CHANNEL(${ARG1},nowhere)})\n \
             same => n,Set(DB(seen/text)=x${PARK_GET_CHANNEL(abc)})\n \
             same => n,GotoIf($[${LEN(${WHO})} = 0]?park)\n same => n,Set(DB(seen/state)=${IMPORT(${WHO},REC_STATUS)})\n \
             same => n,Set(DB(seen/general)=${PARK_GET_CHANNEL(${ARG1})})\n \
             same => n,ParkedCall(default,${ARG1})\n same => n(park),Set(PARKINGEXTEN=${ARG1})\n \
             same => n,Set(REC_STATUS=RECORDING)\n same => n,Park(default,s)\n",
        );
    let server = Server::start(site);
    let (mut alice, mut bob, mut carol) =
        (phone(&server, "alice", ALICE), phone(&server, "bob", BOB), phone(&server, "carol", CAROL));
    connect(&mut alice, &mut bob, "bob");
    assert_eq!(bob.inside_with("REFER", "Refer-To: <sip:71@strowger>\r\n").status(), Some(202));
    wait::until_true("it is parked", || {
        server.json("parking show default").to_string().contains("PJSIP/alice")
    });
    assert_eq!(server.database("seen", "who0"), "x", "nobody was there");
    carol.must_call("71");
    assert_eq!(server.database("seen", "state"), "RECORDING");
    assert!(server.database("seen", "general").starts_with("PJSIP/alice-"), "the lot is the default one");
    assert_eq!((server.database("seen", "lot"), server.database("seen", "text")), ("x".into(), "x".into()));
    hears("carol", &carol, ALICE);
    hears("alice", &alice, CAROL);
    alice.hang_up();
    carol.until_hung_up();
}

/// A call that the caller gave up is `CANCEL` where the site wants that, and one that nobody answered never is.
#[test]
fn a_call_that_its_caller_gave_up_is_told_from_one_that_nobody_answered_where_that_is_wanted() {
    for (on, given_up) in [("yes", "CANCEL"), ("no", "NO ANSWER")] {
        let mut site = Site::new("case-cancel").phone("alice").phone("bob").phone("carol").dialplan(
            "[test]\nexten => 1,1,Dial(PJSIP/bob,1)\nexten => _[2-4],1,Dial(PJSIP/bob,30)\n\
             exten => 5,1,Dial(PJSIP/bob&PJSIP/carol,30)\nexten => 6,1,Dial(PJSIP/bob,30)\n same => n,Hangup()\n\
             exten => 7,1,Answer()\n same => n,Dial(PJSIP/bob,30)\n",
        );
        site.rewrite(
            "cdr.conf",
            &format!(
                "[general]\nenable=yes\nunanswered=yes\ncanceldispositionenabled={on}\n[csv]\nloguniqueid=yes\n"
            ),
        );
        let server = Server::start(site);
        let (mut alice, mut bob, mut carol) =
            (phone(&server, "alice", ALICE), phone(&server, "bob", BOB), phone(&server, "carol", CAROL));
        for (number, case, expected) in [
            ("1", "nobody answers in time", "NO ANSWER"),
            ("2", "the caller gives up", given_up),
            ("3", "the called one is busy", "BUSY"),
            ("4", "the caller gives up before it rings", given_up),
            ("5", "the caller gives up two phones", given_up),
            ("6", "the call is taken", "ANSWERED"),
            ("7", "an answered caller gives up what rings", given_up),
        ] {
            alice.begin(number);
            let invite = bob.expect("INVITE");
            // Nothing may be cancelled before somebody has answered something (RFC 3261 §9.1).
            let (status, reason) = if number == "4" { (100, "Trying") } else { (180, "Ringing") };
            bob.respond(&invite, status, reason, false);
            if matches!(number, "2" | "5") {
                wait::until_true("it rings", || alice.progress().status() == Some(180));
            }
            let other = (number == "5").then(|| carol.ring());
            match number {
                "3" => bob.refuse(&invite, 486, "Busy Here"),
                "6" => {
                    bob.take(&invite);
                    assert_eq!(alice.outcome().status(), Some(200), "{case}");
                    alice.hang_up();
                    bob.until_hung_up();
                }
                "7" => {
                    assert_eq!(alice.outcome().status(), Some(200), "{case}");
                    alice.hang_up();
                }
                _ => {}
            }
            if matches!(number, "2" | "4" | "5") {
                assert_eq!(alice.cancel().status(), Some(200), "{case}");
            }
            if !matches!(number, "6" | "7") {
                alice.outcome();
            }
            if !matches!(number, "3" | "6") {
                let cancel = bob.expect("CANCEL");
                bob.respond(&cancel, 200, "OK", false);
                bob.refuse(&invite, 487, "Request Terminated");
            }
            if let Some(invite) = other {
                let cancel = carol.expect("CANCEL");
                carol.respond(&cancel, 200, "OK", false);
                carol.refuse(&invite, 487, "Request Terminated");
            }
            server.until_idle();
            // destination and disposition
            let of_call = |records: Vec<Vec<String>>| -> Vec<String> {
                let own = records.into_iter().filter(|record| record.get(2).is_some_and(|to| to == number));
                own.filter_map(|record| record.get(14).cloned()).collect()
            };
            let told =
                wait::until("a record", || Some(of_call(server.records())).filter(|told| !told.is_empty()));
            assert!(told.iter().all(|told| told == expected), "{on}: {case}: {told:?}, not {expected}");
        }
    }
}

const QUEUE: &str = "[general]\n[q1]\nmember=>PJSIP/alice\n[q2]\nmember=>PJSIP/bob\n";

/// How a call of a queue ended stands in its log, whoever ended it and however.
#[test]
fn what_ended_a_call_of_a_queue_is_what_its_log_says() {
    let (site, mut carrier) = with_carrier("case-queue");
    let site = managed(site)
        .phone("alice")
        .phone("bob")
        .add("queues.conf", QUEUE)
        .add("features.conf", "[featuremap]\natxfer=>*2\nblindxfer=>##\n")
        .dialplan(
            "[test]\nexten => 801,1,Answer()\n same => n,Queue(q1,tT,,,90)\n\
             exten => 802,1,Answer()\n same => n,Queue(q2,,,,90)\nexten => bob,1,Dial(PJSIP/bob,30)\n\
             exten => 300,1,Dial(PJSIP/bob,30)\nexten => wait,1,Answer()\n same => n,Wait(60)\n",
        );
    let server = Server::start(site);
    let (mut alice, mut bob) = (phone(&server, "alice", ALICE), phone(&server, "bob", BOB));
    carrier.media.speak(Speak::Tone(CAROL));
    let mut ends = 0;
    for (case, expected) in [
        ("REFER with Replaces", "ATTENDEDTRANSFER|BRIDGE|"),
        ("REFER with Replaces to a queue", "ATTENDEDTRANSFER|BRIDGE|"),
        ("keys that ask first", "ATTENDEDTRANSFER|BRIDGE|"),
        ("the action Atxfer", "ATTENDEDTRANSFER|BRIDGE|"),
        ("REFER", "BLINDTRANSFER|bob|test|"),
        ("keys", "BLINDTRANSFER|300|test|"),
        ("the action BlindTransfer", "BLINDTRANSFER|300|test|"),
        ("the caller hangs up", "COMPLETECALLER|"),
        ("the agent hangs up", "COMPLETEAGENT|"),
    ] {
        carrier.must_call("801");
        let invite = alice.ring();
        alice.take(&invite);
        hears(&format!("{case}: alice"), &alice, CAROL);
        let mut second = Phone::new(server.site.sip, "alice");
        second.media.speak(Speak::Tone(ALICE));
        let mut manager = Manager::login(&server, "admin");
        let mut to_bob = true;
        match case {
            "REFER with Replaces" => {
                connect(&mut second, &mut bob, "bob");
                let to = format!("Refer-To: <sip:bob@strowger?Replaces={}>\r\n", second.replaces());
                assert_eq!(alice.inside_with("REFER", &to).status(), Some(202), "{case}");
            }
            "REFER with Replaces to a queue" => {
                second.must_call("802");
                let invite = bob.ring();
                bob.take(&invite);
                hears(&format!("{case}: bob"), &bob, ALICE);
                let to = format!("Refer-To: <sip:802@strowger?Replaces={}>\r\n", second.replaces());
                assert_eq!(alice.inside_with("REFER", &to).status(), Some(202), "{case}");
            }
            "keys that ask first" | "the action Atxfer" => {
                if case.starts_with("keys") {
                    alice.media.type_digits("*2300");
                } else {
                    let channel = channel_of(&server, "alice");
                    let fields = [("Channel", channel.as_str()), ("Context", "test"), ("Exten", "300")];
                    assert!(manager.act("Atxfer", &fields).contains("Success"), "{case}");
                }
                let invite = bob.ring();
                bob.take(&invite);
                hears(&format!("{case}: bob"), &bob, ALICE);
                alice.hang_up();
            }
            "REFER" => assert_eq!(
                alice.inside_with("REFER", "Refer-To: <sip:bob@strowger>\r\n").status(),
                Some(202),
                "{case}"
            ),
            "keys" => alice.media.type_digits("##300"),
            "the action BlindTransfer" => {
                let channel = channel_of(&server, "alice");
                let fields = [("Channel", channel.as_str()), ("Context", "test"), ("Exten", "300")];
                let said = manager.act("BlindTransfer", &fields);
                assert!(said.contains("Success"), "{case}: {said}");
            }
            "the caller hangs up" => {
                carrier.hang_up();
                alice.until_hung_up();
                to_bob = false;
            }
            _ => {
                alice.hang_up();
                carrier.until_hung_up();
                to_bob = false;
            }
        }
        if matches!(case, "REFER" | "keys" | "the action BlindTransfer") {
            let invite = bob.ring();
            bob.take(&invite);
        }
        if to_bob {
            hears(&format!("{case}: bob"), &bob, CAROL);
            hears(&format!("{case}: the caller"), &carrier, BOB);
            carrier.hang_up();
            bob.until_hung_up();
        }
        server.until_idle();
        let told = wait::until("the end is logged", || {
            let log = server.site.place.read("log/queue_log");
            let of_queue = log.lines().filter(|line| line.split('|').nth(2) == Some("q1"));
            let all: Vec<String> = of_queue
                .filter(|line| line.contains("|COMPLETE") || line.contains("TRANSFER|"))
                .map(str::to_owned)
                .collect();
            (all.len() > ends).then_some(all)
        });
        assert_eq!(told.len(), ends + 1, "{case}: one line ends a call: {told:?}");
        ends = told.len();
        let last = told.last().expect("a line");
        assert!(last.contains(&format!("|{expected}")), "{case}: {last}");
        // A question by keys ends the call of the queue before there is a bridge to name.
        assert!(
            case.contains("keys") || case.contains("Atxfer") || !last.contains("BRIDGE||"),
            "{case}: {last}"
        );
    }
}

fn channel_of(server: &Server, name: &str) -> String {
    let said = server.cli("core show channels concise");
    let line = said.lines().find(|line| line.starts_with(&format!("PJSIP/{name}-")));
    line.and_then(|line| line.split('!').next()).expect("a channel").to_owned()
}

/// What was accepted is done, however soon the transferer hangs up and whatever he answers (RFC 5589 §7, RFC 3515 §2.4.4).
#[test]
fn rfc3515_2_4_4_a_transfer_that_was_accepted_goes_on_when_the_transferer_hangs_up() {
    let (site, mut carrier) = with_carrier("case-early");
    let server = Server::start(site.phone("alice").phone("carol").dialplan(
        "[test]\nexten => _0X,1,Dial(PJSIP/${EXTEN}@carrier,30)\nexten => carol,1,Dial(PJSIP/carol,30)\n\
         exten => alice,1,Dial(PJSIP/alice,30)\n",
    ));
    let (mut alice, mut carol) = (phone(&server, "alice", ALICE), phone(&server, "carol", CAROL));
    carrier.media.speak(Speak::Tone(BOB));
    for (case, calls) in [
        // First, before any other has told the carrier anything.
        ("without a subscription", false),
        ("no NOTIFY is answered", false),
        ("at once", false),
        ("at once, who has called", true),
        ("before the target rings", false),
        ("with a consultation, both right after the 202", false),
        ("with a consultation, in one breath", false),
        ("with a consultation, who has called", true),
    ] {
        let consults = case.contains("consultation");
        if calls {
            connect(&mut carrier, &mut alice, "alice");
        } else {
            connect(&mut alice, &mut carrier, "01");
        }
        // The second call of the carrier leaves from the same address.
        let mut second = Phone::at(carrier.local().ip(), server.site.sip, "carrier");
        second.media.speak(Speak::Tone(BOB));
        let mut to = "Refer-To: <sip:carol@strowger>\r\n".to_owned();
        if consults {
            connect(&mut second, &mut carol, "carol");
            to = format!("Refer-To: <sip:carol@strowger?Replaces={}>\r\n", second.replaces());
        }
        if case == "without a subscription" {
            to += "Refer-Sub: false\r\n";
        }
        if case.ends_with("in one breath") {
            carrier.poke_with("REFER", &to);
        } else {
            let answer = carrier.inside_with("REFER", &to);
            // Without a subscription either is right (RFC 4488 §4).
            let accepted = answer.status() == Some(202) || case == "without a subscription";
            assert!(accepted && answer.status() <= Some(202), "{case}:\n{}", answer.text());
        }
        if consults {
            second.poke("BYE");
            carrier.poke("BYE");
        } else {
            let invite = if case == "at once" { None } else { Some(carol.expect("INVITE")) };
            carrier.poke("BYE");
            let invite = invite.unwrap_or_else(|| carol.expect("INVITE"));
            carol.respond(&invite, 180, "Ringing", false);
            carol.take(&invite);
        }
        hears(&format!("{case}: carol"), &carol, ALICE);
        hears(&format!("{case}: alice"), &alice, CAROL);
        if case == "without a subscription" {
            assert!(!carrier.comes("NOTIFY", std::time::Duration::from_millis(1)), "{case}");
        }
        alice.hang_up();
        carol.until_hung_up();
        carrier.deaf();
        server.until_idle();
    }
}

/// What a caller calls himself is text, wherever it stands in an expression in quotation marks.
#[test]
fn the_name_of_a_caller_changes_no_expression_that_reads_it_in_quotation_marks() {
    let server = Server::start(Site::new("case-name").phone_with("alice", "callerid=").dialplan(
        "[test]\nexten => 555,1,Set(OPEN=${DB(door/open)})\n \
         same => n,GotoIf($[\"${CALLERID(name)}\" = \"boss\"]?yes)\n \
         same => n,GotoIf($[\"boss\" = \"${CALLERID(name)}\"]?yes)\n \
         same => n,GotoIf($[\"${CALLERID(name)}\" : \"^boss$\"]?yes)\n \
         same => n,ExecIf($[\"${CALLERID(name)}\" = \"boss\"]?Set(DB(door/by)=1))\n \
         same => n,Set(OTHER=${IF($[\"${CALLERID(name)}\" = \"boss\"]?open:shut)})\n \
         same => n,GotoIf($[\"${OTHER}\" = \"open\"]?yes)\n \
         same => n,GotoIf($[\"${TOLOWER(${CALLERID(name)})}\" = \"boss\"]?yes)\n \
         same => n,Hangup(17)\n same => n(yes),Hangup(34)\n",
    ));
    let mut alice = Phone::new(server.site.sip, "alice");
    for (name, opens) in [
        ("nobody", false),
        ("boss", true),
        ("x\\\" | \\\"1", false),
        ("x\\\" | 1 | \\\"x", false),
        ("x\\\" = \\\"x\\\" | \\\"", false),
        ("boss\\\" | \\\"", false),
        ("1", false),
        ("\\\"", false),
        ("\\\\", false),
        ("\\\\\\\" | 1 | \\\"", false),
        ("x)]?yes:yes)", false),
        ("x]?yes", false),
        ("${DB(door/x)}", false),
        ("$[1]", false),
        (".*", false),
        ("boss ", false),
    ] {
        alice.display = format!("\"{name}\" ");
        let answer = alice.call("555");
        assert_eq!(answer.status(), Some(if opens { 503 } else { 486 }), "{name}:\n{}", answer.text());
    }
    assert_eq!(server.database_now("door", "by"), None);
}

/// A name that stands for a rule and is none is told when a call asks for it, and the call goes on.
#[test]
fn a_rule_that_is_not_there_is_told_of_in_the_log_and_the_routine_runs_where_its_place_is() {
    let server = Server::start(
        Site::new("case-rule")
            .phone("alice")
            .phone("bob")
            .add(
                "queues.conf",
                "[general]\n[sales]\nmember=>PJSIP/bob\n[ruled]\ndefaultrule=gone\nmember=>PJSIP/bob\n",
            )
            .dialplan(
                "[test]\nexten => 1,1,Answer()\n same => n,Queue(sales,cr,,,60,,,on-connect)\n\
                 exten => 2,1,Answer()\n same => n,Queue(sales,cr,,,60,,on-connect)\n\
                 exten => 3,1,Answer()\n same => n,Queue(sales,cr,,,60,,,,norule)\n\
                 exten => 4,1,Answer()\n same => n,Queue(ruled,cr,,,60)\n\
                 [on-connect]\nexten => s,1,Set(DB(connected/of)=${CALLERID(num)})\n same => n,Return()\n",
            ),
    );
    let (mut alice, mut bob) = (phone(&server, "alice", ALICE), phone(&server, "bob", BOB));
    for (number, rule) in [("1", Some("on-connect")), ("2", None), ("3", Some("norule")), ("4", Some("gone"))]
    {
        alice.must_call(number);
        let invite = bob.ring();
        bob.take(&invite);
        hears("bob", &bob, ALICE);
        if let Some(rule) = rule {
            server.until_logged(&["WARNING", rule]);
        } else {
            assert_eq!(server.database("connected", "of"), "bob", "the member runs it");
        }
        alice.hang_up();
        bob.until_hung_up();
        server.until_idle();
    }
}
