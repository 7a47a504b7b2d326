//! What phones and trunks really send: each change to an ordinary INVITE is read as it was meant.

use sip::{Index, Invalid, Message, Method, Scheme, Status};

const INVITE: &str = "INVITE sip:bob@pbx.example.com SIP/2.0\r\n\
    Via: SIP/2.0/UDP 192.0.2.1:5060;branch=z9hG4bK776asdhds;rport\r\n\
    From: \"Alice\" <sip:alice@example.com>;tag=1928301774\r\n\
    To: <sip:bob@pbx.example.com>\r\n\
    Call-ID: a84b4c76e66710@192.0.2.1\r\n\
    CSeq: 314159 INVITE\r\n\
    Max-Forwards: 70\r\n\
    Contact: <sip:alice@192.0.2.1>\r\n\
    Content-Type: application/sdp\r\n\
    Content-Length: 5\r\n\
    \r\n\
    v=0\r\n";

fn changed(from: &str, to: &[u8]) -> Vec<u8> {
    let at = INVITE.find(from).unwrap_or_else(|| panic!("{from}"));
    [&INVITE.as_bytes()[..at], to, &INVITE.as_bytes()[at + from.len()..]].concat()
}

#[test]
fn oddities_of_the_field_are_read_as_meant() {
    type Check = fn(&Message<'_>) -> bool;
    let no_length = changed("Content-Length: 5\r\n", b"");
    let lf_only = INVITE.replace("\r\n", "\n").replace("Length: 5", "Length: 4").into_bytes();
    let leading = [b"\r\n\r\n", INVITE.as_bytes()].concat();
    let cases: [(&str, Vec<u8>, Check); 14] = [
        ("Latin-1 in a display name", changed("Alice", b"J\xf6rg"), |m| {
            m.from().is_some_and(|from| from.display_name().as_ref() == b"J\xf6rg")
        }),
        ("UDP without Content-Length", no_length, |m| m.sdp() == Some(b"v=0\r\n")),
        ("LF-only lines", lf_only, |m| m.sdp() == Some(b"v=0\n")),
        ("CR LF before the start line", leading, |m| m.sdp() == Some(b"v=0\r\n")),
        ("tel: Request-URI", changed("sip:bob@pbx.example.com", b"tel:+12015550123"), |m| {
            m.request_uri().is_some_and(|uri| uri.scheme == Scheme::Tel && uri.user == b"+12015550123")
        }),
        ("urn: Request-URI", changed("sip:bob@pbx.example.com", b"urn:service:sos"), |m| {
            m.request_uri().is_some_and(|uri| uri.user == b"service:sos")
        }),
        ("quotes and an address inside a display name", changed("\"Alice\"", b"\"\\\"E\\\" <x>\""), |m| {
            m.from().is_some_and(|from| {
                from.display_name().as_ref() == b"\"E\" <x>" && from.tag() == Some(b"1928301774")
            })
        }),
        ("_ in the host of Via", changed("192.0.2.1:5060", b"my_host:5080"), |m| {
            m.top_via().is_some_and(|via| via.host.as_bytes() == b"my_host" && via.port == Some(5080))
        }),
        ("# in a user", changed("sip:bob@", b"sip:*72#100@"), |m| {
            m.request_uri().is_some_and(|uri| uri.user == b"*72#100")
        }),
        ("compact names", changed("From:", b"f:"), |m| m.from_tag() == Some(b"1928301774")),
        ("upper-case names", changed("Call-ID", b"CALL-ID"), |m| m.call_id().is_some()),
        ("binary body", changed("v=0\r\n", b"\x00\xff\x00\xfe\x0a"), |m| m.body() == b"\x00\xff\x00\xfe\x0a"),
        ("unknown method", INVITE.replace("INVITE", "NEWMETHOD").into_bytes(), |m| {
            m.method() == Method::Other(b"NEWMETHOD")
        }),
        (
            "no tag, branch or Max-Forwards (RFC 2543)",
            INVITE
                .replace(";tag=1928301774", "")
                .replace(";branch=z9hG4bK776asdhds", "")
                .replace("Max-Forwards: 70\r\n", "")
                .into_bytes(),
            |m| m.from_tag().is_none() && m.top_via().is_some_and(|via| !via.has_magic_cookie()),
        ),
    ];
    for (name, bytes, check) in cases {
        let mut index = Index::new();
        let message = Message::parse(&bytes, &mut index).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(message.validate(), Ok(()), "{name}");
        assert!(check(&message), "{name}");
    }
}

#[test]
fn what_cannot_be_trusted_is_answered_as_rfc_3261_says() {
    for (name, bytes, status) in [
        ("Content-Length: abc", changed("Length: 5", b"Length: abc"), 400),
        ("header without colon", changed("Max-Forwards: 70", b"Max-Forwards 70"), 400),
        ("body shorter than promised", changed("Length: 5", b"Length: 6"), 400),
        ("no To", changed("To: <sip:bob@pbx.example.com>\r\n", b""), 400),
        ("no Call-ID", changed("Call-ID: a84b4c76e66710@192.0.2.1\r\n", b""), 400),
        ("empty Call-ID", changed("a84b4c76e66710@192.0.2.1", b""), 400),
        ("two From", changed("Max-Forwards: 70", b"From: <sip:x@y>;tag=2"), 400),
        ("Max-Forwards: 256", changed(": 70", b": 256"), 400),
        ("CSeq of another method", changed("314159 INVITE", b"314159 BYE"), 400),
        ("SIP/3.0", changed("SIP/2.0", b"SIP/3.0"), 505),
        ("http:", changed("sip:bob@pbx.example.com", b"http://x"), 416),
        ("urn: in To", changed("<sip:bob@pbx.example.com>", b"<urn:service:sos>"), 416),
        ("NUL in a branch", changed("z9hG4bK776asdhds", b"z9hG4bK\0x"), 400),
        ("Contact: *", changed("<sip:alice@192.0.2.1>", b"*"), 400),
    ] {
        let mut index = Index::new();
        let message = Message::parse(&bytes, &mut index).unwrap();
        match message.validate() {
            Err(Invalid::Answer(found, _)) => assert_eq!(Some(found), Status::new(status), "{name}"),
            other => panic!("{name}: {other:?}"),
        }
    }
}

#[test]
fn malformed_responses_and_acks_are_dropped() {
    for text in [
        INVITE.replace("INVITE sip:bob@pbx.example.com SIP/2.0", "SIP/2.0 200 OK").replace("To:", "X:"),
        INVITE.replace("INVITE sip:bob@pbx.example.com SIP/2.0", "SIP/2.0 099 Low"),
        INVITE.replace("INVITE sip:bob@pbx.example.com SIP/2.0", "SIP/2.0 2000 High"),
        INVITE.replace("INVITE", "ACK").replace("Call-ID", "Call-Idea"),
        INVITE.replace("SIP/2.0/UDP 192.0.2.1", "garbage"),
    ] {
        let mut index = Index::new();
        let message = Message::parse(text.as_bytes(), &mut index).unwrap();
        assert!(matches!(message.validate(), Err(Invalid::Drop(_))), "{text}");
    }
}
