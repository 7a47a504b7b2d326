//! Messages built to make a parser slow: the time grows with the length, not with its square.

mod torture_support;

use std::time::Duration;

use torture_support::exercise;

/// Repetitions of a pattern inside an otherwise good message.
fn message(before: &str, pattern: &str, after: &str, bytes: usize) -> Vec<u8> {
    let mut text = b"INVITE sip:a@b SIP/2.0\r\nVia: SIP/2.0/UDP h;branch=z9hG4bKx\r\nFrom: <sip:a@b>;tag=1\r\nTo: <sip:a@b>\r\nCall-ID: c\r\nCSeq: 1 INVITE\r\n".to_vec();
    text.extend_from_slice(before.as_bytes());
    text.extend(pattern.bytes().cycle().take(bytes / pattern.len() * pattern.len()));
    text.extend_from_slice(after.as_bytes());
    text
}

fn fastest(bytes: &[u8]) -> Duration {
    (0..10)
        .map(|_| {
            let start = kit::processor_time();
            exercise(bytes);
            kit::processor_time() - start
        })
        .min()
        .unwrap()
}

#[test]
fn time_grows_with_length_only() {
    for (name, before, pattern, after) in [
        ("headers", "", "X: y\r\n", "\r\n"),
        ("short headers", "", "v:\n", "\n"),
        ("Via values", "Via: ", "SIP/2.0/UDP h,", "\r\n\r\n"),
        ("Contact values", "Contact: ", "<sip:a@b>,", "\r\n\r\n"),
        ("parameters", "Contact: <sip:a@b>", ";a=b", "\r\n\r\n"),
        ("URI parameters", "Contact: <sip:a@b", ";a=b", ">\r\n\r\n"),
        ("URI headers", "Contact: <sip:a@b?", "a=b&", ">\r\n\r\n"),
        ("folds", "X: y", "\r\n ", "\r\n\r\n"),
        ("open quotes", "Contact: ", "\"", "\r\n\r\n"),
        ("escapes", "Contact: \"", "\\\"", "\r\n\r\n"),
        ("open brackets", "Contact: ", "<", "\r\n\r\n"),
        ("brackets", "Contact: ", "<>", "\r\n\r\n"),
        ("commas", "Contact: ", ",", "\r\n\r\n"),
        ("carriage returns", "X: ", "\r", "\r\n\r\n"),
        ("line breaks", "\r\n", "\r\n", ""),
        ("percent", "Contact: <sip:", "%", "@b>\r\n\r\n"),
        ("attributes", "Content-Type: application/sdp\r\n\r\nv=0\r\nm=audio 1 RTP/AVP 0\r\n", "a=x\r\n", ""),
        (
            "maps",
            "Content-Type: application/sdp\r\n\r\nv=0\r\nm=audio 1 RTP/AVP 0\r\n",
            "a=rtpmap:0 PCMU/8000\r\n",
            "",
        ),
        ("payloads", "Content-Type: application/sdp\r\n\r\nv=0\r\nm=audio 1 RTP/AVP", " 0", "\r\n"),
        ("challenges", "WWW-Authenticate: Digest ", "a=b,", "\r\n\r\n"),
    ] {
        let quarter = fastest(&message(before, pattern, after, 15_000));
        let whole = fastest(&message(before, pattern, after, 60_000));
        // Four times the bytes are four times the work, sixteen times for a quadratic parser. Very short times are noise.
        let bound = (quarter * 10).max(Duration::from_millis(20));
        assert!(whole < bound, "{name}: {quarter:?} for 15 kB, {whole:?} for 60 kB");
    }
}
