//! Commands about endpoints and other SIP objects.

use super::*;

#[test]
fn endpoints_are_shown_in_blocks() {
    let mut desk = Desk::new("endpoints");
    assert_eq!(
        desk.lines("pjsip show endpoints"),
        [
            "",
            " Endpoint:  <Endpoint/CID.....................................>  <State.....>  <Channels.>",
            "    I/OAuth:  <AuthId/UserName...........................................................>",
            "        Aor:  <Aor............................................>  <MaxContact>",
            "      Contact:  <Aor/ContactUri..........................> <Hash....> <Status> <RTT(ms)..>",
            "  Transport:  <TransportId........>  <Type>  <cos>  <tos>  <BindAddress..................>",
            "   Identify:  <Identify/Endpoint.........................................................>",
            "        Match:  <criteria.........................>",
            "    Channel:  <ChannelId......................................>  <State.....>  <Time.....>",
            "        Exten: <DialedExten...........>  CLCID: <ConnectedLineCID.......>",
            "==========================================================================================",
            "",
            " Endpoint:  6001/6001                                            Not in use    0 of inf",
            "     InAuth:  6001/user6001",
            "        Aor:  6001                                               0",
            // The MD5 of its URI.
            "      Contact:  6001/sip:6001@192.0.2.7:5070               0a8b07ec69 NonQual          nan",
            "",
            " Endpoint:  6002                                                 Unavailable   0 of inf",
            "     InAuth:  6002/user6002",
            "        Aor:  6002                                               2",
            "",
            "",
            "Objects found: 2",
            "",
        ]
    );
    let one = desk.text("pjsip show endpoint 6002");
    let says = |name: &str, value: &str| {
        one.lines().any(|line| {
            line.split_once(':').is_some_and(|(known, told)| known.trim() == name && told.trim() == value)
        })
    };
    assert!(says("ParameterName", "ParameterValue") && says("allow", "(ulaw)"), "{one}");
    assert!(!one.contains("6001"), "{one}");
    assert_eq!(
        desk.run("pjsip show endpoint nobody"),
        ("Unable to find object nobody.\n\nCommand 'pjsip show endpoint nobody' failed.\n".into(), 1)
    );
    let json = desk.json("pjsip show endpoints");
    assert_eq!(json["endpoints"][0]["aors"][0]["contacts"][0]["uri"], "sip:6001@192.0.2.7:5070");
    assert_eq!(json["endpoints"][1]["state"], "Unavailable");
}

#[test]
fn other_sip_objects_have_their_lists_and_no_secret_is_told() {
    let mut desk = Desk::new("sip");
    assert_eq!(
        desk.lines("pjsip show contacts")[1],
        "  Contact:  <Aor/ContactUri..............................> <Hash....> <Status> <RTT(ms)..>"
    );
    assert!(desk.text("pjsip show contacts").ends_with("\nObjects found: 1\n\n"));
    assert_eq!(
        desk.lines("pjsip show aors")[1..3],
        [
            "      Aor:  <Aor..............................................>  <MaxContact>",
            "    Contact:  <Aor/ContactUri............................> <Hash....> <Status> <RTT(ms)..>",
        ]
    );
    assert_eq!(
        desk.lines("pjsip show transports"),
        [
            "",
            "Transport:  <TransportId........>  <Type>  <cos>  <tos>  <BindAddress....................>",
            "==========================================================================================",
            "",
            "Transport:  transport-udp             udp      0      0  127.0.0.1:5060",
            "",
            "Objects found: 1",
            "",
        ]
    );
    assert_eq!(desk.lines("pjsip show auths")[4], "     Auth:  6001/user6001");
    assert_eq!(
        desk.lines("pjsip show registrations")[4],
        " provider/sip:192.0.2.50                                   6001                        Unregistered"
    );
    assert!(desk.text("pjsip show registration provider").contains("max_retries"));
    assert_eq!(desk.text("pjsip send register provider"), "Re-registration of provider is on its way\n");
    assert_eq!(desk.text("pjsip send unregister *all"), "Unregistration of *all is on its way\n");
    assert_eq!(desk.ask("pjsip send register nobody", false).1, 1);
    assert_eq!(desk.text("pjsip show identifies"), "No objects found.\n\n");
    assert_eq!(
        desk.lines("sip show peers"),
        [
            "Name/username             Host                                    Dyn Forcerport Comedia    ACL Port     \
             Status      Description",
            "6001/user6001             192.0.2.7                                   Yes        Yes            5070     \
             Unmonitored",
            "6002/user6002             (Unspecified)                            D  Yes        Yes            0        \
             UNKNOWN",
            "2 sip peers [Monitored: 0 online, 0 offline Unmonitored: 1 online, 1 offline]",
        ]
    );
    for row in rows().filter(|row| row.shape.contains("auth") || row.shape.contains("endpoint")) {
        let line = row.shape.replace("<auth>", "6001").replace("<endpoint>", "6001");
        assert!(!desk.run(&line).0.contains("very secret"), "{line}");
    }
    assert_eq!(desk.text("pjsip qualify 6001"), "Sending qualify to endpoint 6001\n");
    assert_eq!(desk.run("pjsip qualify 6002"), ("Endpoint 6002 has no contacts to ask\n".into(), 1));
    assert_eq!(desk.run("pjsip qualify 6003"), ("Unable to retrieve endpoint 6003\n".into(), 1));
    assert_eq!(desk.text("sip set debug on"), "PJSIP Logging enabled\n");
    assert!(desk.cli.site.sip.borrow().trace());
    for (line, status) in [
        ("pjsip set logger host 192.0.2.1", 0),
        ("pjsip set logger host 192.0.2.0/24 add", 0),
        ("pjsip set logger host phone.example add", 0),
        ("sip set debug ip 2001:db8::1", 0),
        ("pjsip set logger host 192.0.2.0/33", 1),
        ("pjsip set logger host a&b", 1),
    ] {
        let (said, code) = desk.run(line);
        assert_eq!(code, status, "{line}: {said}");
        assert_eq!(said.starts_with("PJSIP Logging Enabled for host: "), status == 0, "{line}: {said}");
    }
    assert!(desk.cli.site.sip.borrow().trace());
    assert_eq!(desk.text("pjsip set logger off"), "PJSIP Logging disabled\n");
    assert!(!desk.cli.site.sip.borrow().trace());
}

#[test]
fn packets_are_traced_of_everybody_or_one_host() {
    use io::media::{Tracing, Watch};
    let mut desk = Desk::new("trace");
    let host = Watch::Host([192, 0, 2, 1].into(), None);
    let port = Watch::Host([192, 0, 2, 1].into(), Some(4000));
    let said = |what: &str| format!("{what} Packet Debugging Enabled for address: 192.0.2.1\n");
    for (line, text, rtp, rtcp) in [
        ("rtp set debug on", "RTP Packet Debugging Enabled\n".to_owned(), Watch::All, Watch::Off),
        ("rtcp set debug on", "RTCP Packet Debugging Enabled\n".to_owned(), Watch::All, Watch::All),
        ("rtp set debug ip 192.0.2.1", said("RTP"), host, Watch::All),
        ("rtcp set debug ip 192.0.2.1", said("RTCP"), host, host),
        ("rtp set debug ip 192.0.2.1:4000", said("RTP").replace(".1\n", ".1:4000\n"), port, host),
        ("rtp set debug off", "RTP Packet Debugging Disabled\n".to_owned(), Watch::Off, host),
    ] {
        assert_eq!(desk.text(line), text, "{line}");
        assert_eq!(
            desk.cli.site.media.borrow().tracing(),
            Tracing { rtp, rtcp, ..Tracing::default() },
            "{line}"
        );
    }
    let refused = desk.run("rtp set debug ip nobody");
    assert_eq!(refused, ("Could not look up IP address nobody\n".to_owned(), 1));
}

#[test]
fn messages_are_kept_only_while_somebody_wants_them() {
    let mut desk = Desk::new("history");
    let options = |number: u32| {
        format!(
            "OPTIONS sip:100@192.0.2.1 SIP/2.0\r\nVia: SIP/2.0/UDP 192.0.2.7:5070;branch=z9hG4bK{number}\r\n\
             From: <sip:a@example.com>;tag=1\r\nTo: <sip:100@192.0.2.1>\r\nCall-ID: of-{number}\r\n\
             CSeq: {number} OPTIONS\r\nMax-Forwards: 70\r\nUser-Agent: {}\r\nContent-Length: 0\r\n\r\n",
            // Who has proved nothing gets no answer that is much longer than what it sent.
            "a".repeat(300)
        )
    };
    desk.hear(&options(1));
    assert!(desk.text("pjsip show history").starts_with("No history entries"));
    assert_eq!(desk.text("pjsip set history on"), "PJSIP History enabled\n");
    desk.hear(&options(2));
    assert_eq!(desk.text("pjsip set history off"), "PJSIP History disabled\n");
    desk.hear(&options(3));
    let kept = desk.lines("pjsip show history where sip.msg.method = OPTIONS");
    assert!(kept.len() > 3 && kept.iter().skip(2).all(|line| line.contains("192.0.2.7:5070")), "{kept:?}");
    assert!(
        kept[2].starts_with("00000 ")
            && kept[2].ends_with("<== 192.0.2.7:5070                 OPTIONS sip:100@192.0.2.1 SIP/2.0"),
        "{kept:?}"
    );
    assert!(kept[3].contains(" ==> "), "our answer: {kept:?}");
    let entry = desk.text("pjsip show history entry 0");
    assert!(entry.starts_with("<--- History Entry 0 Received from 192.0.2.7:5070 at "), "{entry}");
    assert!(entry.contains("\nCall-ID: of-2\n"), "{entry}");
    assert_eq!(desk.run("pjsip show history entry 99"), ("There is no entry 99 in the history\n".into(), 1));
    let ladder = desk.lines("pjsip show history ladder of-2");
    assert!(ladder[1].contains("----- OPTIONS ----"), "{ladder:?}");
    assert_eq!(desk.run("pjsip show history ladder of-3").1, 1);
    assert_eq!(desk.run("pjsip show history where colour = red"), ("There is no field 'colour'\n".into(), 1));
    assert_eq!(desk.text("pjsip set history clear"), "PJSIP History cleared\n");
    assert!(desk.text("pjsip show history").starts_with("No history entries"));
}
