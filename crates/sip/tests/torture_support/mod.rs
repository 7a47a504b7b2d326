//! What every torture test does to bytes: all of the public syntax, with oracles that hold for any input.
#![allow(dead_code, reason = "each test binary uses its part")]

use std::path::{Path, PathBuf};
use std::process::Command;

use base::{FormatId, FormatSet};
use sip::digest::{Authenticator, Credentials, Login, Secret};
use sip::frame::Framer;
use sip::header::{
    Event, MediaType, RAck, RetryAfter, SessionExpires, SubscriptionState, has_token, q850_cause,
};
use sip::sdp::{Local, Negotiator, Session};
use sip::{HeaderName, Index, Message, MessageWriter, NameAddr, OwnedMessage, Reply, Status, Uri};

/// The folder of shared bad input; `None`, with a word on why, in a plain checkout.
pub fn bad_input() -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/bad-input");
    if !folder.is_dir() {
        println!("skipped: {} is not here", folder.display());
        return None;
    }
    Some(folder)
}

/// Unpacks a set and returns its files; `None` when the set or a program to unpack it is missing.
pub fn unpacked(set: &str) -> Option<Vec<PathBuf>> {
    let archive = bad_input()?.join(set);
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join(set.replace('.', "_"));
    std::fs::create_dir_all(&target).unwrap();
    let tar = Command::new("tar").arg("-xJf").arg(&archive).arg("-C").arg(&target).status();
    if !tar.is_ok_and(|status| status.success()) {
        println!("skipped: tar and xz cannot unpack {}", archive.display());
        return None;
    }
    let mut files = Vec::new();
    let mut folders = vec![target];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() { folders.push(path) } else { files.push(path) }
        }
    }
    files.sort();
    Some(files)
}

/// Everything that may be done with bytes from the network.
pub fn exercise(bytes: &[u8]) {
    let mut index = Index::new();
    if let Ok(message) = Message::parse(bytes, &mut index) {
        read_all(&message);
        answer(&message);
        let owned = OwnedMessage::parse(bytes).unwrap();
        assert!(owned.view().fields().eq(message.fields()));
        describe(message.body());
    }
    describe(bytes);
    if let Some(uri) = Uri::parse(bytes) {
        assert!(uri.matches(&uri), "{}", bytes.escape_ascii());
    }
    stream(bytes);
}

fn read_all(message: &Message<'_>) {
    let addresses =
        [HeaderName::From, HeaderName::To, HeaderName::Route, HeaderName::ReferTo, HeaderName::Diversion];
    for value in addresses.into_iter().flat_map(|name| message.values(name).collect::<Vec<_>>()) {
        if let Some(addr) = NameAddr::parse(value) {
            let _ = (addr.display_name(), addr.tag(), addr.q(), addr.expires());
            assert!(addr.uri.matches(&addr.uri));
        }
    }
    for via in message.vias() {
        let _ = (via.branch(), via.received(), via.rport(), via.maddr(), via.ttl(), via.is_reliable());
    }
    for contact in message.contacts() {
        let _ = contact.addr().map(|addr| (addr.q(), addr.expires()));
    }
    for (_, value) in message.fields() {
        let _ = (Event::parse(value), MediaType::parse(value), RAck::parse(value), RetryAfter::parse(value));
        let _ = (SessionExpires::parse(value), SubscriptionState::parse(value), Credentials::parse(value));
        let _ = (has_token([value], b"x"), q850_cause([value]), sip::message::unfold(value));
    }
    let login = Login { realm: None, username: b"a", secret: Secret::Password(b"b"), algorithms: &[] };
    let mut authenticator = Authenticator::new();
    authenticator.challenged(message, &[login]);
    authenticator.credentials(b"X", b"sip:a", b"c", &[login], |_, value| {
        assert!(!value.iter().any(|b| matches!(b, b'\r' | b'\n')));
    });
}

/// Oracle: the answer to a good request is a good response; the answer to any request has no line we did not mean.
fn answer(request: &Message<'_>) {
    let verdict = request.validate();
    if !request.is_request() {
        return;
    }
    let reply = Reply {
        to_tag: Some(b"us"),
        source: Some("192.0.2.200:5099".parse().unwrap()),
        force_rport: true,
        ..Reply::default()
    };
    let mut out = Vec::new();
    MessageWriter::response(&mut out, request, Status::OK, &reply).finish();
    let mut index = Index::new();
    let response = Message::parse(&out, &mut index).unwrap();
    let ours = [
        HeaderName::Via,
        HeaderName::From,
        HeaderName::To,
        HeaderName::CallId,
        HeaderName::CSeq,
        HeaderName::RecordRoute,
        HeaderName::ContentLength,
    ];
    for (name, _) in response.fields() {
        assert!(ours.contains(&name), "{name}: {}", out.escape_ascii());
    }
    if verdict.is_ok() {
        assert_eq!(response.validate(), Ok(()), "{}", out.escape_ascii());
        assert_eq!(response.cseq(), request.cseq());
        assert_eq!(response.from_tag(), request.from_tag());
        assert_eq!(response.top_via().unwrap().branch(), request.top_via().unwrap().branch());
        assert_eq!(response.top_via().unwrap().rport(), Some(Some(5099)));
        assert!(response.to_tag().is_some());
    }
}

/// Oracle: what we answer to a description is a description, with as many streams.
fn describe(text: &[u8]) {
    let formats: FormatSet = FormatId::ALL.iter().copied().collect();
    let local = Local { rtcp_mux: true, ..Local::new(formats, [192, 0, 2, 1].into(), 4000) };
    let mut negotiator = Negotiator::new(7);
    let mut out = Vec::new();
    if let Ok(agreed) = negotiator.answer(text, &local, &mut out) {
        let (theirs, ours) = (Session::parse(text).unwrap(), Session::parse(&out).unwrap());
        assert_eq!(theirs.streams.len(), ours.streams.len(), "{}", out.escape_ascii());
        assert!(agreed.primary().is_some() && agreed.receive[0].is_some());
        assert!((10..=60).contains(&agreed.ptime_ms));
        negotiator.offer(&local, &mut out);
    }
    let mut caller = Negotiator::new(8);
    caller.offer(&local, &mut out);
    let _ = caller.accept_answer(text, &local);
}

/// Oracle: frames do not depend on how the stream was cut.
fn stream(bytes: &[u8]) {
    let frames = |size: usize| {
        let mut framer = Framer::new();
        let mut lengths = Vec::new();
        for piece in bytes.chunks(size) {
            framer.push(piece);
            loop {
                match framer.next_frame() {
                    Ok(Some(frame)) => lengths.push(format!("{frame:?}").len()),
                    Ok(None) => break,
                    Err(_) => return lengths,
                }
            }
        }
        lengths
    };
    if bytes.len() < 4096 {
        assert_eq!(frames(7), frames(4096), "{}", bytes.escape_ascii());
    }
}
