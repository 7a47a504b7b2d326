//! Bodies of several parts, good and bad.

use super::*;
use crate::OwnedMessage;

const SDP: &str = "Content-Type: application/sdp\r\n\r\nv=0\r\n";
const COST: &str = "Content-Type: application/vnd.etsi.aoc+xml\r\n\r\n<aoc/>";

/// A message with these headers and this body.
fn message(headers: &str, body: &str) -> OwnedMessage {
    let length = body.len();
    let head = format!("INVITE sip:a@b SIP/2.0\r\n{headers}Content-Length: {length}\r\n\r\n{body}");
    OwnedMessage::parse(head.into_bytes()).unwrap()
}

/// One of several parts.
fn of(kind: &str, parts: &[&str]) -> OwnedMessage {
    message(&format!("Content-Type: multipart/{kind};boundary=edge\r\n"), &joined("edge", parts))
}

fn joined(boundary: &str, parts: &[&str]) -> String {
    let parts: String = parts.iter().map(|part| format!("--{boundary}\r\n{part}\r\n")).collect();
    format!("{parts}--{boundary}--\r\n")
}

fn sdp(message: &OwnedMessage) -> Option<String> {
    message.view().sdp().map(|sdp| String::from_utf8_lossy(sdp).into_owned())
}

fn verdict(message: &OwnedMessage) -> u16 {
    let reads = |kind: &MediaType<'_>| kind.is("application", "sdp");
    message.view().body_fits(reads).map_or_else(Status::code, |()| 200)
}

#[test]
fn rfc2046_5_1_1_parts_are_told_apart_as_gateways_write_them() {
    let kind = |rest: &str| format!("Content-Type: multipart/mixed{rest}\r\n");
    let plain = joined("edge", &[SDP, COST]);
    for (name, headers, body) in [
        ("plain", kind(";boundary=edge"), plain.clone()),
        ("in quotes", kind("; boundary=\"edge\""), plain.clone()),
        ("any case, folded", kind(";charset=utf-8;\r\n\tBoundary = edge"), plain.clone()),
        ("compact name", "c: Multipart/Mixed;boundary=edge\r\n".to_owned(), plain.clone()),
        ("a boundary that needs quotes", kind(";boundary=\"a:b=?\""), joined("a:b=?", &[SDP, COST])),
        (
            "preamble and epilogue",
            kind(";boundary=edge"),
            format!("for old readers\r\n{plain}--edge\r\n{COST}"),
        ),
        ("space after the boundary", kind(";boundary=edge"), plain.replace("--edge\r\n", "--edge \t\r\n")),
        ("bare line feeds", kind(";boundary=edge"), plain.replace("\r\n", "\n").replace("v=0\n", "v=0\r\n")),
        ("nothing after the end", kind(";boundary=edge"), plain.trim_end().to_owned()),
        ("no end", kind(";boundary=edge"), plain.replace("--edge--\r\n", "")),
        (
            "another boundary begins alike",
            kind(";boundary=edge"),
            joined("edge", &["\r\n--edges\r\n--edge-", SDP, COST]),
        ),
        ("a part without headers", kind(";boundary=edge"), joined("edge", &["\r\nin words", SDP, COST])),
        ("a part without anything", kind(";boundary=edge"), format!("--edge\r\n{plain}")),
        ("folded headers of a part", kind(";boundary=edge"), plain.replace(": appl", ":\r\n appl")),
        (
            "in each other",
            kind(";boundary=\"out\""),
            joined("out", &[&format!("{}\r\n{plain}", kind(";boundary=edge"))]),
        ),
    ] {
        let message = message(&headers, &body);
        assert_eq!(sdp(&message).as_deref(), Some("v=0\r\n"), "{name}");
        let cost = message.view().part("application", "vnd.etsi.aoc+xml").map(<[u8]>::trim_ascii_end);
        assert_eq!(cost, Some(&b"<aoc/>"[..]), "{name}");
        assert_eq!(verdict(&message), 200, "{name}");
    }
}

#[test]
fn rfc2046_5_1_the_line_break_before_a_boundary_is_no_part_of_the_body() {
    let message = of("mixed", &["Content-Type: text/plain\r\n\r\ntwo\r\nlines\r\n", SDP]);
    assert_eq!(message.view().part("text", "plain"), Some(&b"two\r\nlines\r\n"[..]));
    let message = of("mixed", &["Content-Type: text/plain\r\n", SDP]);
    assert_eq!(message.view().part("text", "plain"), Some(&b""[..]));
}

#[test]
fn rfc2046_5_1_4_of_alternatives_the_last_that_is_read_counts() {
    let better = SDP.replace("v=0", "v=1");
    assert_eq!(sdp(&of("alternative", &[SDP, &better, COST])).as_deref(), Some("v=1\r\n"));
    assert_eq!(sdp(&of("mixed", &[SDP, &better])).as_deref(), Some("v=0\r\n"));
}

#[test]
fn rfc3959_a_description_of_early_media_alone_is_not_that_of_the_session() {
    let early = SDP.replace("\r\n\r\nv=0", "\r\nContent-Disposition: early-session\r\n\r\nv=2");
    assert_eq!(sdp(&of("mixed", &[&early, SDP])).as_deref(), Some("v=0\r\n"));
    assert_eq!(sdp(&of("mixed", &[&early])), None);
}

#[test]
fn rfc5621_4_parts_that_have_to_be_read_and_are_not_refuse_the_message() {
    const ISUP: &str = "Content-Type: application/isup;version=itu-t92+\r\n";
    let isup = |says: &str| format!("{ISUP}{says}\r\n\x01\x10\x00");
    let required = isup("Content-Disposition: signal;handling=required\r\n");
    let optional = isup("Content-Disposition: signal; Handling = Optional\r\n");
    let silent = isup("Content-Disposition: signal\r\n");
    let packed = SDP.replace("\r\n\r\n", "\r\nContent-Encoding: gzip\r\n\r\n");
    let spelt = SDP.replace("\r\n\r\n", "\r\nContent-Transfer-Encoding: base64\r\n\r\n");
    let eight_bits = SDP.replace("\r\n\r\n", "\r\nContent-Transfer-Encoding: 8Bit\r\n\r\n");
    let inner = |says: &str, parts: &[&str]| {
        format!("Content-Type: multipart/mixed;boundary=in\r\n{says}\r\n{}", joined("in", parts))
    };
    for (name, kind, parts, expected) in [
        ("required", "mixed", vec![SDP, &*required], 415),
        ("required, before", "mixed", vec![&*required, SDP], 415),
        ("optional", "mixed", vec![SDP, &*optional], 200),
        ("says nothing beside a description", "mixed", vec![SDP, &*silent], 200),
        ("says nothing alone", "mixed", vec![&*silent], 415),
        ("optional alone", "mixed", vec![&*optional], 200),
        ("a choice with one that is read", "alternative", vec![&*required, SDP], 200),
        ("a choice without", "alternative", vec![&*required, &*silent], 415),
        ("required deep inside", "mixed", vec![SDP, &inner("", &[&required])], 415),
        (
            "required inside what is optional",
            "mixed",
            vec![SDP, &inner("Content-Disposition: render;handling=optional\r\n", &[&required])],
            200,
        ),
        ("a packed description", "mixed", vec![&*packed], 415),
        ("a description in other letters", "mixed", vec![&*spelt], 415),
        ("a description that is said to be plain", "mixed", vec![&*eight_bits], 200),
        ("an unknown kind of several", "signed;protocol=x", vec![SDP, &*optional], 200),
    ] {
        assert_eq!(verdict(&of(kind, &parts)), expected, "{name}");
    }
}

#[test]
fn rfc3261_8_2_3_a_body_that_may_be_passed_over_refuses_nothing() {
    let kind = "Content-Type: text/plain\r\n";
    for (name, headers, expected) in [
        ("says nothing", kind.to_owned(), 415),
        ("no type", String::new(), 415),
        ("required", format!("{kind}Content-Disposition: render;handling=required\r\n"), 415),
        ("optional", format!("{kind}Content-Disposition: render;handling=optional\r\n"), 200),
        ("a handling nobody knows", format!("{kind}Content-Disposition: render;handling=maybe\r\n"), 415),
    ] {
        assert_eq!(verdict(&message(&headers, "hello")), expected, "{name}");
    }
    assert_eq!(verdict(&message(kind, "")), 200);
}

#[test]
fn rfc5621_parts_that_cannot_be_told_apart_are_a_bad_request() {
    let kind = |rest: &str| format!("Content-Type: multipart/mixed{rest}\r\n");
    let nested = |depth: usize| {
        (1..depth).fold((kind(";boundary=b0"), joined("b0", &[SDP])), |(inner, body), level| {
            (
                kind(&format!(";boundary=b{level}")),
                joined(&format!("b{level}"), &[&format!("{inner}\r\n{body}")]),
            )
        })
    };
    let many = |count: usize| (kind(";boundary=e"), joined("e", &vec![SDP; count]));
    let long = |length: usize| {
        (kind(&format!(";boundary={}", "x".repeat(length))), joined(&"x".repeat(length), &[SDP]))
    };
    for (name, (headers, body), expected) in [
        ("no boundary", (kind(""), joined("edge", &[SDP])), 400),
        ("an empty one", (kind(";boundary=\"\""), joined("", &[SDP])), 400),
        ("one that does not occur", (kind(";boundary=other"), joined("edge", &[SDP])), 400),
        ("not at the beginning of a line", (kind(";boundary=edge"), format!(" --edge\r\n{SDP}")), 400),
        ("only the end", (kind(";boundary=edge"), "--edge--\r\n".to_owned()), 400),
        ("cut off in the first delimiter", (kind(";boundary=edge"), "--edge".to_owned()), 400),
        ("the longest boundary", long(BOUNDARY_BYTES_MAX), 200),
        ("a longer one", long(BOUNDARY_BYTES_MAX + 1), 400),
        ("as many parts as may be", many(PARTS_MAX), 200),
        ("one more", many(PARTS_MAX + 1), 400),
        ("as deep as may be", nested(DEPTH_MAX), 200),
        ("deeper", nested(DEPTH_MAX + 1), 400),
    ] {
        let message = message(&headers, &body);
        assert_eq!((verdict(&message), sdp(&message).is_some()), (expected, expected == 200), "{name}");
    }
    let optional = format!("{}Content-Disposition: render;handling=optional\r\n", kind(""));
    assert_eq!(verdict(&message(&optional, "x")), 200);
}

#[test]
fn a_body_cut_off_anywhere_or_full_of_boundaries_is_read_to_its_end() {
    let whole = joined("edge", &[SDP, &format!("{COST}\r\n--edge"), "\r\n"]);
    for length in 0..=whole.len() {
        let cut = message("Content-Type: multipart/mixed;boundary=edge\r\n", whole.get(..length).unwrap());
        let _ = (verdict(&cut), sdp(&cut));
    }
    for body in ["\r\n--edge".repeat(6000), "\n--".repeat(20_000), "-".repeat(60_000)] {
        let flood = message("Content-Type: multipart/mixed;boundary=edge\r\n", &body);
        assert_eq!((verdict(&flood), sdp(&flood)), (400, None));
    }
}
