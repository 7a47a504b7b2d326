//! Requests and replies over a stream that comes in any pieces, and streams that lie.

use odbc::{FRAME_BYTES_MAX, Flaw, Frames, Reply, Request};
use proptest::prelude::*;

fn text() -> impl Strategy<Value = String> {
    "\\PC{0,40}"
}

fn values() -> impl Strategy<Value = Vec<Option<String>>> {
    proptest::collection::vec(proptest::option::of(text()), 0..6)
}

fn request() -> impl Strategy<Value = Request> {
    prop_oneof![
        (text(), text(), text(), any::<u32>()).prop_map(|(dsn, user, password, within)| Request::Connect {
            dsn,
            user,
            password,
            within
        }),
        (text(), values(), any::<u32>()).prop_map(|(sql, values, limit)| Request::Ask { sql, values, limit }),
        (text(), any::<u32>()).prop_map(|(sql, limit)| Request::Stand { sql, limit }),
        (text(), text()).prop_map(|(schema, table)| Request::Columns { schema, table }),
        Just(Request::Begin),
        Just(Request::Commit),
        Just(Request::Rollback),
    ]
}

fn reply() -> impl Strategy<Value = Reply> {
    let quote = prop_oneof![Just(None), Just(Some('"')), Just(Some('`')), Just(Some('['))];
    prop_oneof![
        (text(), quote).prop_map(|(dbms, quote)| Reply::Connected { dbms, quote }),
        proptest::collection::vec(text(), 0..6).prop_map(Reply::Names),
        proptest::collection::vec(values(), 0..6).prop_map(Reply::Rows),
        any::<u64>().prop_map(|changed| Reply::Done { changed }),
        (text(), any::<i32>(), text(), any::<bool>())
            .prop_map(|(state, native, words, is_gone)| { Reply::Failed { state, native, words, is_gone } }),
    ]
}

/// What comes of a stream that is read in pieces of these lengths, again and again.
fn cut(stream: &[u8], pieces: &[usize]) -> Result<Vec<Vec<u8>>, Flaw> {
    let (mut frames, mut found, mut left) = (Frames::default(), Vec::new(), stream);
    for piece in pieces.iter().cycle() {
        let (now, rest) = left.split_at((*piece).clamp(1, left.len().max(1)).min(left.len()));
        frames.push(now);
        while let Some(frame) = frames.frame()? {
            found.push(frame.to_vec());
        }
        if rest.is_empty() {
            break;
        }
        left = rest;
    }
    Ok(found)
}

proptest! {
    #[test]
    fn what_is_written_is_read_however_the_stream_is_cut(
        requests in proptest::collection::vec(request(), 0..5),
        replies in proptest::collection::vec(reply(), 0..5),
        pieces in proptest::collection::vec(1_usize..200, 1..5),
    ) {
        let mut stream = Vec::new();
        requests.iter().for_each(|request| request.write(&mut stream).unwrap());
        let frames = cut(&stream, &pieces).unwrap();
        let read: Vec<Request> = frames.iter().map(|frame| Request::read(frame).unwrap()).collect();
        prop_assert_eq!(read, requests);
        let mut stream = Vec::new();
        replies.iter().for_each(|reply| reply.write(&mut stream).unwrap());
        let frames = cut(&stream, &pieces).unwrap();
        let read: Vec<Reply> = frames.iter().map(|frame| Reply::read(frame).unwrap()).collect();
        prop_assert_eq!(read, replies);
    }

    #[test]
    fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        for frame in cut(&bytes, &[7]).unwrap_or_default().into_iter().chain([bytes]) {
            // What is understood is written as it was read; texts that are no UTF-8 only look like it.
            if let Ok(reply) = Reply::read(&frame) {
                let mut again = Vec::new();
                reply.write(&mut again).unwrap();
                prop_assert_eq!(Reply::read(&again[4..]), Ok(reply));
            }
            let _ = Request::read(&frame);
        }
    }

    #[test]
    fn a_frame_that_was_cut_short_is_never_taken_for_a_whole_one(reply in reply(), cut in any::<prop::sample::Index>()) {
        let mut whole = Vec::new();
        reply.write(&mut whole).unwrap();
        let frame = &whole[4..];
        let short = &frame[..cut.index(frame.len())];
        prop_assert!(Reply::read(short).is_err());
        prop_assert!(Reply::read(&[frame, b"x"].concat()).is_err(), "nothing may follow");
    }
}

#[test]
fn a_length_that_lies_costs_nothing() {
    let lie = |length: u32, rest: &[u8]| [&length.to_le_bytes()[..], rest].concat();
    let mut frames = Frames::default();
    frames.push(&lie(u32::MAX, b"Rxxxx"));
    assert_eq!(frames.frame(), Err(Flaw::TooLong(u32::MAX as usize)));
    let mut frames = Frames::default();
    frames.push(&lie(u32::try_from(FRAME_BYTES_MAX).unwrap(), b"R"));
    assert_eq!(frames.frame(), Ok(None), "it may still come");
    let huge = [0xfe, 0xff, 0xff, 0xff];
    for (name, frame, flaw) in [
        ("nothing in it", vec![], Flaw::Short),
        ("an unknown kind", b"?".to_vec(), Flaw::Kind(b'?')),
        ("more rows than bytes", [b"R", &huge[..]].concat(), Flaw::Many(0xffff_fffe)),
        ("rows without bytes", [b"R", &2_u32.to_le_bytes()[..]].concat(), Flaw::Short),
        ("more names than there are", [b"N", &huge[..]].concat(), Flaw::Many(0xffff_fffe)),
        ("a text beyond its end", [b"C", &huge[..]].concat(), Flaw::Short),
        ("bytes behind the end", [b"D", &[0; 9][..]].concat(), Flaw::Behind(1)),
    ] {
        assert_eq!(Reply::read(&frame), Err(flaw), "{name}");
    }
}

#[test]
fn what_no_frame_holds_is_not_written_and_leaves_the_stream_whole() {
    let long = "x".repeat(FRAME_BYTES_MAX);
    let mut stream = Vec::new();
    Request::Begin.write(&mut stream).unwrap();
    let before = stream.clone();
    let flaw = Request::Stand { sql: long, limit: 1 }.write(&mut stream).unwrap_err();
    assert!(matches!(flaw, Flaw::TooLong(_)), "{flaw}");
    assert_eq!(stream, before);
}

#[test]
fn a_password_is_never_shown() {
    let secret = "s3cr#t";
    let request =
        Request::Connect { dsn: "pbx".into(), user: "ann".into(), password: secret.into(), within: 10 };
    assert!(!format!("{request:?}").contains(secret));
}
