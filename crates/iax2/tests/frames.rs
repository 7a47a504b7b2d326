//! Frames and elements: what is written reads back, and what is spoiled does no harm.

use base::{Digit, FormatId};
use iax2::frame::{
    Auth, Command, Control, DATAGRAM_BYTES_MAX, Datagram, Discard, Element, Elements, Entry, Fields, Full,
    Kind, Media, Mini, Video, parse, write_element, write_trunk_entry, write_trunk_header,
};
use kit::{Random, bad_input, spoil};
use proptest::prelude::*;

fn full(kind: Kind, data: &[u8]) -> Full<'_> {
    Full { source: 0x1234, dest: 0x4321, again: false, timestamp: 0x0102_0304, oseq: 5, iseq: 6, kind, data }
}

#[test]
fn rfc5456_8_1_1_a_full_frame_has_these_octets() {
    let mut out = Vec::new();
    full(Kind::Iax(Command::NEW), &[11, 2, 0, 2]).write(&mut out);
    assert_eq!(out, [0x92, 0x34, 0x43, 0x21, 1, 2, 3, 4, 5, 6, 6, 1, 11, 2, 0, 2]);
    let again = Full { again: true, ..full(Kind::Control(Control::ANSWER), &[]) };
    out.clear();
    again.write(&mut out);
    assert_eq!(out, [0x92, 0x34, 0xc3, 0x21, 1, 2, 3, 4, 5, 6, 4, 4]);
    assert_eq!(parse(&out), Ok(Datagram::Full(again)));
}

#[test]
fn rfc5456_8_1_2_and_8_1_3_the_frames_of_media_have_these_octets() {
    let mut out = Vec::new();
    Mini { source: 0x1234, timestamp: 0xabcd, data: b"v" }.write(&mut out);
    assert_eq!(out, [0x12, 0x34, 0xab, 0xcd, b'v']);
    out.clear();
    Video { source: 0x1234, timestamp: 0x2bcd, mark: true, data: b"p" }.write(&mut out);
    assert_eq!(out, [0, 0, 0x92, 0x34, 0xab, 0xcd, b'p']);
    out.clear();
    write_trunk_header(0x0102_0304, true, &mut out);
    assert!(write_trunk_entry(&Entry { source: 0x7abc, timestamp: Some(0x0506), data: b"vo" }, &mut out));
    assert_eq!(out, [0, 0, 1, 1, 1, 2, 3, 4, 0, 2, 0x7a, 0xbc, 5, 6, b'v', b'o']);
    out.clear();
    write_trunk_header(7, false, &mut out);
    assert!(write_trunk_entry(&Entry { source: 0x7abc, timestamp: None, data: b"vo" }, &mut out));
    assert_eq!(out, [0, 0, 1, 0, 0, 0, 0, 7, 0x7a, 0xbc, 0, 2, b'v', b'o']);
}

#[test]
fn what_is_no_frame_is_a_word() {
    for (name, bytes, expected) in [
        ("nothing", &b""[..], Discard::TooShort),
        ("one octet", b"\x80", Discard::TooShort),
        ("a full frame without its end", b"\x80\x01\x00\x00\x00\x00\x00\x00\x00\x00\x06", Discard::TooShort),
        ("a mini frame without its timestamp", b"\x00\x01\x00", Discard::TooShort),
        ("a meta frame without its command", b"\x00\x00\x01", Discard::TooShort),
        ("a meta command of nobody", b"\x00\x00\x02\x00\x00\x00\x00\x00", Discard::UnknownMeta),
        ("a video frame without its timestamp", b"\x00\x00\x80\x01\x00", Discard::TooShort),
        ("a trunk frame without its timestamp", b"\x00\x00\x01\x00\x00\x00\x00", Discard::TooShort),
        ("a frame beyond an Ethernet's", &[0x80; DATAGRAM_BYTES_MAX + 1], Discard::TooLong),
    ] {
        assert_eq!(parse(bytes), Err(expected), "{name}");
    }
}

#[test]
fn a_trunk_frame_that_breaks_off_gives_what_was_whole() {
    let mut out = Vec::new();
    write_trunk_header(1, true, &mut out);
    for source in 1..=3 {
        write_trunk_entry(&Entry { source, timestamp: Some(source), data: &[9; 20] }, &mut out);
    }
    out.truncate(out.len() - 1);
    let Ok(Datagram::Trunk(trunk)) = parse(&out) else { panic!("a trunk frame") };
    assert_eq!(trunk.entries.map(|entry| entry.source).collect::<Vec<_>>(), [1, 2]);
}

#[test]
fn rfc5456_8_6_elements_have_these_octets() {
    for (name, element, octets) in [
        ("text", Element::Username(b"bob"), &b"\x06\x03bob"[..]),
        ("two octets", Element::Version(2), b"\x0b\x02\x00\x02"),
        ("four octets", Element::Capability(0xff), b"\x08\x04\x00\x00\x00\xff"),
        ("nothing but presence", Element::AutoAnswer(()), b"\x19\x00"),
        ("methods", Element::AuthMethods(Auth::MD5.with(Auth::RSA)), b"\x0e\x02\x00\x06"),
        (
            "an IPv4 address",
            Element::ApparentAddr("10.1.2.3:4569".parse().unwrap()),
            b"\x12\x10\x02\x00\x11\xd9\x0a\x01\x02\x03\0\0\0\0\0\0\0\0",
        ),
        (
            "an IPv6 address",
            Element::ApparentAddr("[::1]:4569".parse().unwrap()),
            b"\x12\x1c\x0a\x00\x11\xd9\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x01\0\0\0\0",
        ),
        (
            "wide formats",
            Element::Capability2(Media::all(&[FormatId::ULAW, FormatId::OPUS])),
            b"\x37\x09\x00\x00\x00\x00\x04\x00\x00\x00\x04",
        ),
        ("of nobody", Element::Other(200, b"x"), b"\xc8\x01x"),
    ] {
        let mut out = Vec::new();
        write_element(&element, &mut out);
        assert_eq!(out, octets, "{name}");
        assert_eq!(Elements::new(&out).collect::<Vec<_>>(), [element], "{name}");
    }
}

#[test]
fn an_element_of_the_wrong_length_is_kept_apart_and_one_that_runs_over_spoils_its_frame() {
    let read: Vec<_> = Elements::new(b"\x0b\x01\x02\x06\x01a").collect();
    assert_eq!(read, [Element::Other(11, b"\x02"), Element::Username(b"a")]);
    for cut in [&b"\x06"[..], b"\x06\x02a", b"\x0b\x02\x00\x02\x06\xff"] {
        assert_eq!(Fields::collect(cut), None, "{cut:?}");
    }
    let long = [b'x'; 300];
    let mut out = Vec::new();
    write_element(&Element::Cause(&long), &mut out);
    assert_eq!(Fields::collect(&out).unwrap().cause.unwrap().len(), 255);
}

#[test]
fn the_wide_element_of_formats_is_believed_before_the_narrow_one() {
    let mut out = Vec::new();
    write_element(&Element::Capability2(Media(1 << 34)), &mut out);
    write_element(&Element::Capability(4), &mut out);
    write_element(&Element::Format(4), &mut out);
    let fields = Fields::collect(&out).unwrap();
    assert_eq!((fields.formats(), fields.format_one()), (Media(1 << 34), Media(4)));
}

fn kinds() -> impl Strategy<Value = Kind> {
    prop_oneof![
        (0u8..64).prop_map(|bit| Kind::Voice(Media(1 << bit))),
        (0u8..64, any::<bool>()).prop_map(|(bit, mark)| Kind::Video(Media(1 << bit), mark)),
        (0u8..128).prop_map(|code| Kind::Iax(Command(code))),
        (0u8..128).prop_map(|code| Kind::Control(Control(code))),
        (0u8..=16).prop_map(|code| Kind::DigitEnd(Digit::from_event(code).unwrap())),
        (0u8..=16).prop_map(|code| Kind::DigitBegin(Digit::from_event(code).unwrap())),
        any::<u8>().prop_map(Kind::Noise),
        Just(Kind::Text),
    ]
}

proptest! {
    #[test]
    fn every_full_frame_reads_back(
        (source, dest) in (0u16..0x8000, 0u16..0x8000),
        again: bool, timestamp: u32, oseq: u8, iseq: u8, kind in kinds(),
        data in prop::collection::vec(any::<u8>(), 0..300),
    ) {
        let frame = Full { source, dest, again, timestamp, oseq, iseq, kind, data: &data };
        let mut out = Vec::new();
        frame.write(&mut out);
        prop_assert_eq!(parse(&out), Ok(Datagram::Full(frame)));
    }

    #[test]
    fn every_trunk_frame_reads_back(
        timestamp: u32, stamped: bool,
        calls in prop::collection::vec((1u16..0x8000, any::<u16>(), prop::collection::vec(any::<u8>(), 0..60)), 0..10),
    ) {
        let entries: Vec<_> = calls
            .iter()
            .map(|(source, at, data)| Entry { source: *source, timestamp: stamped.then_some(*at), data })
            .collect();
        let mut out = Vec::new();
        write_trunk_header(timestamp, stamped, &mut out);
        for entry in &entries {
            prop_assert!(write_trunk_entry(entry, &mut out));
        }
        let Ok(Datagram::Trunk(trunk)) = parse(&out) else { panic!("a trunk frame") };
        prop_assert_eq!(trunk.timestamp, timestamp);
        prop_assert_eq!(trunk.entries.collect::<Vec<_>>(), entries);
    }

    #[test]
    fn any_elements_read_back_as_they_were_written(data in prop::collection::vec(any::<u8>(), 0..400)) {
        let mut out = Vec::new();
        Elements::new(&data).for_each(|element| write_element(&element, &mut out));
        prop_assert!(Elements::new(&data).eq(Elements::new(&out)));
    }
}

/// What has to hold for any bytes.
fn exercise(bytes: &[u8]) {
    let mut again = Vec::new();
    match parse(bytes) {
        Ok(Datagram::Full(frame)) => {
            frame.write(&mut again);
            assert_eq!(parse(&again), Ok(Datagram::Full(frame)));
            let read: Vec<_> = frame.elements().collect();
            again.clear();
            read.iter().for_each(|element| write_element(element, &mut again));
            assert!(Elements::new(&again).eq(read));
            if let Some(fields) = Fields::collect(frame.data) {
                assert!(fields.formats().formats().count() <= 64);
            }
        }
        Ok(Datagram::Mini(mini)) => mini.write(&mut again),
        Ok(Datagram::Video(video)) => video.write(&mut again),
        Ok(Datagram::Trunk(trunk)) => {
            assert!(trunk.entries.map(|entry| entry.data.len() + 4).sum::<usize>() <= bytes.len());
        }
        Err(_) => {}
    }
}

#[test]
fn bad_input_is_read_without_harm() {
    for file in bad_input("generated.tar.xz", "/iax2/") {
        exercise(&file);
    }
}

#[test]
fn spoiled_frames_are_read_without_harm() {
    let mut random = Random(5456);
    let mut elements = Vec::new();
    for element in
        [Element::Version(2), Element::Username(b"bob"), Element::CallToken(b""), Element::Format(4)]
    {
        write_element(&element, &mut elements);
    }
    for _ in 0..20_000 {
        let mut bytes = Vec::new();
        match random.below(3) {
            0 => full(Kind::Iax(Command::NEW), &elements).write(&mut bytes),
            1 => Mini { source: 7, timestamp: 9, data: &[1; 33] }.write(&mut bytes),
            _ => {
                write_trunk_header(3, true, &mut bytes);
                write_trunk_entry(&Entry { source: 7, timestamp: Some(1), data: &[1; 33] }, &mut bytes);
                write_trunk_entry(&Entry { source: 8, timestamp: Some(1), data: &[1; 33] }, &mut bytes);
            }
        }
        spoil(&mut random, &mut bytes);
        exercise(&bytes);
    }
}
