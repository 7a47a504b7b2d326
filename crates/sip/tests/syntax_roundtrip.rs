//! What we write is what we read, for values nobody thought of; and no bytes at all break anything.

mod torture_support;

use proptest::collection::vec;
use proptest::prelude::*;
use sip::header::Params;
use sip::message::unfold;
use sip::write::{push_clean, push_display_name};
use sip::{HeaderName, Index, Message, MessageWriter, Method, NameAddr, Uri};
use torture_support::exercise;

/// Bytes that parsers care about, so that random input gets somewhere.
const PIECES: &[&[u8]] = &[
    b"INVITE sip:a@b SIP/2.0\r\n",
    b"SIP/2.0 200 OK\r\n",
    b"Via: SIP/2.0/UDP h:1;branch=z9hG4bK1;rport\r\n",
    b"From: \"x\\\"\" <sip:a@b>;tag=1\r\n",
    b"To: <sip:c@d>\r\n",
    b"Call-ID: 1\r\n",
    b"CSeq: 1 INVITE\r\n",
    b"Contact: *\r\n",
    b"m: <sip:a@b?x=y>;q=0.5, ",
    b"Record-Route: <sip:a;lr>,\r\n <sip:b>\r\n",
    b"WWW-Authenticate: Digest realm=\"r\",nonce=\"n\"\r\n",
    b"l: 5\r\n",
    b"v=0\r\n",
    b"m=audio 9 RTP/AVP 0 8 101\r\n",
    b"a=rtpmap:101 telephone-event/8000\r\n",
    b"c=IN IP4 192.0.2.1\r\n",
    b"\r\n\r\n",
    b"\r\n ",
    b"\r",
    b"\n",
    b"\"",
    b"\\",
    b"<",
    b">",
    b",",
    b";",
    b"=",
    b"%4",
    b"\x00",
    b"\xff",
    b"[::1]",
];

fn sippy() -> impl Strategy<Value = Vec<u8>> {
    vec(proptest::sample::select(PIECES), 0..24).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn no_bytes_break_anything(bytes in prop_oneof![vec(any::<u8>(), 0..400), sippy()]) {
        exercise(&bytes);
    }

    #[test]
    fn a_value_written_is_the_value_read(value in vec(any::<u8>(), 0..200), body in vec(any::<u8>(), 0..100)) {
        let mut out = Vec::new();
        let mut writer = MessageWriter::request(&mut out, Method::Info, "sip:a@b");
        writer.header(HeaderName::Subject, &value).header(HeaderName::Other(b"X-Other"), &value);
        writer.body("a/b", &body);
        let mut index = Index::new();
        let message = Message::parse(&out, &mut index).unwrap();
        let mut clean = Vec::new();
        push_clean(&mut clean, &value);
        let clean = trimmed(&clean);
        prop_assert_eq!(message.header(HeaderName::Subject), Some(clean));
        prop_assert_eq!(message.header(HeaderName::Other(b"x-other")), Some(clean));
        prop_assert_eq!(message.body(), &body[..]);
        prop_assert_eq!(message.fields().count(), 4);
    }

    #[test]
    fn a_display_name_survives(name in vec(any::<u8>(), 1..60)) {
        let mut text = Vec::new();
        push_display_name(&mut text, &name);
        text.extend_from_slice(b"<sip:a@b>;tag=x");
        let addr = NameAddr::parse(&text).unwrap();
        let clean: Vec<u8> = name.iter().map(|&b| if matches!(b, b'\r' | b'\n' | 0) { b' ' } else { b }).collect();
        let read = addr.display_name();
        prop_assert_eq!(read.as_ref(), &clean[..]);
        prop_assert_eq!(addr.tag(), Some(&b"x"[..]));
    }

    #[test]
    fn a_uri_is_its_parts(user in "[a-z0-9+*#_.;=?-]{0,12}", host in "[a-z][a-z0-9_.-]{0,10}", port in any::<Option<u16>>(), param in "[a-z]{1,5}") {
        let port_text = port.map(|port| format!(":{port}")).unwrap_or_default();
        let at = if user.is_empty() { "" } else { "@" };
        let text = format!("sip:{user}{at}{host}{port_text};{param}=1?x=y");
        let uri = Uri::parse(text.as_bytes()).unwrap();
        prop_assert_eq!(uri.user, user.as_bytes());
        prop_assert_eq!(uri.host.as_bytes(), host.as_bytes());
        prop_assert_eq!(uri.port, port);
        prop_assert_eq!(uri.params.get(param.as_bytes()), Some(&b"1"[..]));
        prop_assert_eq!(uri.headers, b"x=y");
        prop_assert!(uri.matches(&uri));
    }

    #[test]
    fn parameters_come_back_in_order(pairs in vec(("[a-z]{1,6}", "[a-z0-9.]{1,6}"), 0..8)) {
        let text: String = pairs.iter().map(|(name, value)| format!(" ; {name} = {value}")).collect();
        let params = Params::new(text.trim_start().as_bytes());
        let read: Vec<_> = params.iter().map(|(name, value)| {
            let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
            (text(name), text(value.unwrap()))
        }).collect();
        prop_assert_eq!(read, pairs);
        prop_assert!(params.well_formed());
    }

    #[test]
    fn unfolding_leaves_one_line(value in "[a-z \r\n\t]{0,40}") {
        prop_assert!(!unfold(value.as_bytes()).iter().any(|b| matches!(b, b'\r' | b'\n')));
    }
}

/// A value without the blanks that a header loses at both ends.
fn trimmed(value: &[u8]) -> &[u8] {
    let lws = |b: &u8| matches!(b, b' ' | b'\t');
    let start = value.iter().position(|b| !lws(b)).unwrap_or(value.len());
    let end = value.iter().rposition(|b| !lws(b)).map_or(start, |at| at + 1);
    &value[start..end]
}
