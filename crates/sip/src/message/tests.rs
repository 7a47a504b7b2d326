use super::*;

const INVITE: &[u8] = b"INVITE sip:bob@example.com SIP/2.0\r\n\
v: SIP/2.0/UDP a.example.com;branch=z9hG4bK1, SIP/2.0/TCP b.example.com;branch=z9hG4bK2\r\n\
f: \"A, B\" <sip:alice@example.com>;tag=1\r\n\
To: <sip:bob@example.com>\r\n\
CALL-ID : x@y\r\n\
CSeq: 1\r\n INVITE\r\n\
Max-Forwards: 70\r\n\
m: <sip:alice@a.example.com>, <sip:alice2@a>;q=0.5\r\n\
X-Thing: 1\r\n\
x-thing: 2\r\n\
c: application/sdp\r\n\
l: 4\r\n\
\r\n\
v=0\nrest";

#[test]
fn headers_are_found_in_long_compact_folded_and_unknown_form() {
    let mut index = Index::new();
    let message = Message::parse(INVITE, &mut index).unwrap();
    assert_eq!(message.validate(), Ok(()));
    assert_eq!(message.method(), Method::Invite);
    assert_eq!(message.request_uri().unwrap().user, b"bob");
    assert_eq!(message.top_via().unwrap().branch(), Some(&b"z9hG4bK1"[..]));
    assert_eq!(message.vias().count(), 2);
    assert_eq!(message.from().unwrap().display_name().as_ref(), b"A, B");
    assert_eq!((message.from_tag(), message.to_tag()), (Some(&b"1"[..]), None));
    assert_eq!(message.call_id(), Some(&b"x@y"[..]));
    assert_eq!(message.cseq(), Some(CSeq { number: 1, method: Method::Invite }));
    assert_eq!(message.max_forwards(), Some(70));
    assert_eq!(message.contacts().count(), 2);
    assert_eq!(message.headers(HeaderName::Other(b"X-THING")).collect::<Vec<_>>(), [b"1", b"2"]);
    assert_eq!(message.sdp(), Some(&b"v=0\n"[..]));
}

#[test]
fn an_owned_message_says_the_same() {
    let owned = OwnedMessage::parse(INVITE).unwrap();
    let mut index = Index::new();
    let borrowed = Message::parse(INVITE, &mut index).unwrap();
    assert!(owned.view().fields().eq(borrowed.fields()));
    assert!(borrowed.into_owned().view().fields().eq(owned.view().fields()));
    assert_eq!(owned.view().body(), borrowed.body());
}

#[test]
fn what_is_no_message_is_no_message() {
    let mut index = Index::new();
    for (bytes, error) in [
        (&b""[..], ParseError::Empty),
        (b"\r\n\r\n", ParseError::Empty),
        (b"GET / HTTP/1.1\r\n\r\n", ParseError::NotSip),
        (b"INVITE sip:a@b SIP/2.0", ParseError::NotSip),
        (b"\x00\x01\x00\x00\x21\x12\xa4\x42\n", ParseError::NotSip),
        (&[b'a'; MAX_MESSAGE + 1], ParseError::TooLarge),
    ] {
        assert_eq!(Message::parse(bytes, &mut index).err(), Some(error));
    }
}

#[test]
fn bounds_answer_400_and_keep_what_was_read() {
    let start = b"OPTIONS sip:a@b SIP/2.0\r\nVia: SIP/2.0/UDP h;branch=z9hG4bKx\r\nFrom: <sip:a@b>;tag=1\r\nTo: <sip:a@b>\r\nCall-ID: c\r\nCSeq: 1 OPTIONS\r\n";
    let many = b"X: y\r\n".repeat(MAX_HEADERS);
    let long = [b"X: ".to_vec(), vec![b'y'; MAX_HEADER_BYTES], b"\r\n".to_vec()].concat();
    for (more, flaw) in [
        (&many[..], Flaw::TooManyHeaders),
        (&long, Flaw::HeaderTooLong),
        (b"no colon\r\n", Flaw::HeaderLine),
        (b": no name\r\n", Flaw::HeaderLine),
        (b"Content-Length: abc\r\n", Flaw::ContentLength),
        (b"Content-Length: -1\r\n", Flaw::ContentLength),
        (b"Content-Length: 1\r\n", Flaw::ContentLength),
        (b"Content-Length: 99999999999999999999\r\n", Flaw::ContentLength),
        (b"Content-Length: 0\r\nl: 0\r\n", Flaw::ContentLength),
    ] {
        let bytes = [start, more, b"\r\n"].concat();
        let mut index = Index::new();
        let message = Message::parse(&bytes, &mut index).unwrap();
        assert_eq!(message.flaw(), Some(flaw));
        assert!(matches!(message.validate(), Err(Invalid::Answer(Status::BAD_REQUEST, _))), "{flaw:?}");
        assert_eq!(message.call_id(), Some(&b"c"[..]), "{flaw:?}");
    }
}

#[test]
fn headers_without_the_empty_line_behind_them_are_read_as_if_it_stood_there() {
    let start = b"OPTIONS sip:a@b SIP/2.0\r\nVia: SIP/2.0/UDP h;branch=z9hG4bKx\r\nFrom: <sip:a@b>;tag=1\r\nTo: <sip:a@b>\r\nCSeq: 1 OPTIONS\r\nCall-ID: c";
    for end in ["", "\r\n", "\r\n\r\n", "\n", "\r\nContent-Length: 0"] {
        let bytes = [&start[..], end.as_bytes()].concat();
        let mut index = Index::new();
        let message = Message::parse(&bytes, &mut index).unwrap();
        assert_eq!((message.validate(), message.call_id()), (Ok(()), Some(&b"c"[..])), "{end:?}");
    }
}

#[test]
fn rfc3261_8_what_names_nobody_who_can_be_reached_is_refused_before_anything_else() {
    let plain = ["OPTIONS", "sip:a@b", "<sip:a@b>", "<sip:a@b>", "Contact: <sip:a@b>\r\n"];
    let with = |at: usize, text: &'static str| {
        let mut fields = plain;
        fields[at] = text;
        fields
    };
    let invite = |at: usize, text: &'static str| {
        let mut fields = with(at, text);
        fields[0] = "INVITE";
        fields
    };
    let [bad, foreign] = [Status::BAD_REQUEST, Status::UNSUPPORTED_URI_SCHEME];
    for (name, [method, uri, from, to, more], expected) in [
        ("nothing is wrong", plain, None),
        ("8.1.1.8: a call without Contact", invite(4, ""), Some((bad, "Missing Contact header"))),
        ("8.1.1.8: within a call", invite(3, "<sip:a@b>;tag=2"), None),
        ("OPTIONS need none", with(4, ""), None),
        ("From of another scheme", with(2, "<urn:55>"), Some((foreign, ""))),
        ("From is a number", with(2, "<tel:+155>"), None),
        ("To of another scheme", with(3, "<mailto:a@b>"), Some((foreign, ""))),
        ("To is a number", with(3, "<tel:+155>"), None),
        ("a Contact of another scheme", with(4, "Contact: <tel:+155>\r\n"), Some((foreign, ""))),
        ("in a call as well", invite(4, "Contact: <urn:a>\r\n"), Some((foreign, ""))),
        ("8.2.2.1: a number is called", invite(1, "tel:+155"), None),
        ("8.2.2.1: and not asked", with(1, "tel:+155"), Some((foreign, ""))),
    ] {
        let bytes = format!(
            "{method} {uri} SIP/2.0\r\nVia: SIP/2.0/UDP h;branch=z9hG4bKx\r\nFrom: {from};tag=1\r\nTo: {to}\r\n\
             Call-ID: c\r\nCSeq: 1 {method}\r\n{more}\r\n"
        );
        let mut index = Index::new();
        match (Message::parse(bytes.as_bytes(), &mut index).unwrap().validate(), expected) {
            (Ok(()), None) => {}
            (Err(Invalid::Answer(status, why)), Some((wanted, said))) => {
                assert_eq!(status, wanted, "{name}");
                assert!(said.is_empty() || said == why, "{name}: {why}");
            }
            other => panic!("{name}: {other:?}"),
        }
    }
}

#[test]
fn folds_become_single_spaces() {
    assert_eq!(unfold(b"a\r\n  b\r\n\tc").as_ref(), b"a b c");
    assert_eq!(unfold(b"a b").as_ref(), b"a b");
}
