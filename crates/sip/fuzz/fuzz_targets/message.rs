//! Any datagram: it is parsed, every header is read, and a request is answered.
//! Oracles: the answer holds only headers we meant, and the answer to a good request is good.
#![no_main]

use libfuzzer_sys::fuzz_target;
use sip::digest::{Authenticator, Credentials, Login, Secret};
use sip::header::{Event, MediaType, RAck, Reason, RetryAfter, SessionExpires, SubscriptionState};
use sip::{CSeq, Contact, HeaderName, Index, Message, MessageWriter, NameAddr, Reply, Status, Via};

fuzz_target!(|bytes: &[u8]| {
    let mut index = Index::new();
    let Ok(message) = Message::parse(bytes, &mut index) else { return };
    for (_, value) in message.fields() {
        let addr =
            NameAddr::parse(value).map(|addr| (addr.display_name(), addr.tag(), addr.q(), addr.expires()));
        let via = Via::parse(value).map(|via| (via.branch(), via.received(), via.rport(), via.ttl()));
        std::hint::black_box((addr, via, CSeq::parse(value), Contact::parse(value), RAck::parse(value)));
        std::hint::black_box((Event::parse(value), MediaType::parse(value), Reason::parse(value)));
        std::hint::black_box((RetryAfter::parse(value), SessionExpires::parse(value)));
        std::hint::black_box((SubscriptionState::parse(value), Credentials::parse(value)));
    }
    let (fits, sdp) = (message.body_fits(|kind| kind.is("application", "sdp")), message.sdp());
    assert!(sdp.is_none_or(|sdp| !sdp.is_empty() && sdp.len() <= message.body().len()));
    if fits.is_ok() && !message.has(HeaderName::ContentDisposition) && !message.body().is_empty() {
        assert_ne!(message.body_fits(|_| true).err(), Some(Status::BAD_REQUEST));
    }
    let login = Login { realm: None, username: b"a", secret: Secret::Password(b"b"), algorithms: &[] };
    let mut authenticator = Authenticator::new();
    authenticator.challenged(&message, &[login]);
    authenticator.credentials(b"X", b"sip:a", b"c", &[login], |_, value| {
        assert!(!value.iter().any(|b| matches!(b, b'\r' | b'\n')));
    });
    let verdict = message.validate();
    if !message.is_request() {
        return;
    }
    let source = "192.0.2.200:5099".parse().ok();
    let reply = Reply { to_tag: Some(b"us"), source, ..Reply::default() };
    let mut out = Vec::new();
    MessageWriter::response(&mut out, &message, Status::OK, &reply).finish();
    let mut index = Index::new();
    let response = Message::parse(&out, &mut index).expect("what we write is a message");
    for (name, _) in response.fields() {
        use HeaderName::{CSeq, CallId, ContentLength, From, RecordRoute, To, Via};
        assert!([Via, From, To, CallId, CSeq, RecordRoute, ContentLength].contains(&name));
    }
    if verdict.is_ok() {
        assert_eq!(response.validate(), Ok(()));
        assert_eq!(response.cseq(), message.cseq());
    }
});
