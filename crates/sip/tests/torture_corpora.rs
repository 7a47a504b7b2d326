//! Thousands of inputs made to break SIP and SDP parsers: nothing panics, and what is answered is well formed.

mod torture_support;

use torture_support::{exercise, unpacked};

#[test]
fn fuzz_seeds_of_others_break_nothing() {
    for path in unpacked("pjsip-fuzz.tar.xz").into_iter().flatten() {
        exercise(&std::fs::read(path).unwrap());
    }
}

#[test]
fn generated_malformed_input_of_every_protocol_breaks_nothing() {
    for path in unpacked("generated.tar.xz").into_iter().flatten() {
        exercise(&std::fs::read(path).unwrap());
    }
}

#[test]
fn protos_cases_break_nothing() {
    for path in unpacked("protos-c07-sip.tar.xz").into_iter().flatten() {
        let template = std::fs::read(path).unwrap();
        let fill = |text: &[u8]| {
            let mut text = text.to_vec();
            for (placeholder, value) in [
                (&b"<To>"[..], &b"bob@192.0.2.2"[..]),
                (b"<From>", b"alice@192.0.2.1"),
                (b"<From-Address>", b"192.0.2.1"),
                (b"<From-IP>", b"192.0.2.1"),
                (b"<Local-Port>", b"5060"),
                (b"<Branch-ID>", b"1"),
                (b"<Call-ID>", b"call"),
                (b"<CSeq>", b"7"),
                (b"<Teardown-Method>", b"CANCEL"),
                (b"<Content-Length>", b"0"),
            ] {
                text = replaced(&text, placeholder, value);
            }
            text
        };
        let filled = fill(&template);
        // `<length> <text>`: what follows the number is the message.
        let body_at = filled.iter().position(|&b| b == b' ').map_or(0, |at| at + 1);
        let message = &filled[body_at..];
        exercise(message);
        exercise(&[b"INVITE ", message.trim_ascii_start()].concat());
    }
}

fn replaced(text: &[u8], from: &[u8], to: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = memchr::memmem::find(rest, from) {
        out.extend_from_slice(&rest[..at]);
        out.extend_from_slice(to);
        rest = &rest[at + from.len()..];
    }
    out.extend_from_slice(rest);
    out
}
