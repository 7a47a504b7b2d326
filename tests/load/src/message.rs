//! As much of SIP as a load generator needs: lines found in text, and the answer to a challenge.

use md5::{Digest as _, Md5};

/// The value of the first header of a name, which is written as the program writes it.
pub(crate) fn header<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    text.split("\r\n").find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
}

/// Status of a response; `None` for a request.
pub(crate) fn status(text: &str) -> Option<u16> {
    text.strip_prefix("SIP/2.0 ")?.get(..3)?.parse().ok()
}

/// 200 OK to a request of the program.
pub(crate) fn ok(request: &str) -> String {
    let mut text = String::with_capacity(512);
    text.push_str("SIP/2.0 200 OK\r\n");
    for line in request.split("\r\n") {
        if ["Via:", "From:", "To:", "Call-ID:", "CSeq:"].iter().any(|name| line.starts_with(name)) {
            text.push_str(line);
            text.push_str("\r\n");
        }
    }
    text.push_str("Content-Length: 0\r\n\r\n");
    text
}

fn md5(text: &str) -> String {
    Md5::digest(text).iter().map(|byte| format!("{byte:02x}")).collect()
}

fn parameter<'a>(challenge: &'a str, name: &str) -> &'a str {
    let mut parts =
        challenge.trim_start_matches("Digest ").split(',').filter_map(|part| part.trim().split_once('='));
    parts.find(|(key, _)| *key == name).map_or("", |(_, value)| value.trim_matches('"'))
}

/// The Authorization line that answers a challenge with MD5 and qop=auth (RFC 7616).
pub(crate) fn authorization(challenge: &str, user: &str, secret: &str, method: &str, uri: &str) -> String {
    let (realm, nonce) = (parameter(challenge, "realm"), parameter(challenge, "nonce"));
    let (ha1, ha2) = (md5(&format!("{user}:{realm}:{secret}")), md5(&format!("{method}:{uri}")));
    let proof = md5(&format!("{ha1}:{nonce}:00000001:load:auth:{ha2}"));
    let opaque = match parameter(challenge, "opaque") {
        "" => String::new(),
        opaque => format!(",opaque=\"{opaque}\""),
    };
    format!(
        "Authorization: Digest username=\"{user}\",realm=\"{realm}\",nonce=\"{nonce}\",uri=\"{uri}\",\
         response=\"{proof}\",algorithm=MD5,qop=auth,nc=00000001,cnonce=\"load\"{opaque}\r\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const BYE: &str = "BYE sip:a@h SIP/2.0\r\nVia: SIP/2.0/UDP h;branch=z9hG4bK1\r\nMax-Forwards: 70\r\n\
                       From: <sip:b@h>;tag=1\r\nTo: <sip:a@h>;tag=2\r\nCall-ID: c\r\nCSeq: 2 BYE\r\n\r\n";

    #[test]
    fn rfc3261_8_2_6_2_a_response_copies_the_five_headers() {
        let text = ok(BYE);
        assert_eq!((status(&text), status(BYE)), (Some(200), None));
        for name in ["Via", "From", "To", "Call-ID", "CSeq"] {
            assert_eq!(header(&text, name), header(BYE, name), "{name}");
        }
        assert_eq!(header(&text, "Max-Forwards"), None);
    }

    #[test]
    fn a_challenge_is_answered_with_its_realm_nonce_and_opaque() {
        let challenge = "Digest realm=\"r\", nonce=\"n=\", opaque=\"o\", algorithm=MD5, qop=\"auth\"";
        let line = authorization(challenge, "u", "s", "REGISTER", "sip:h");
        // md5(md5("u:r:s"):n=:00000001:load:auth:md5("REGISTER:sip:h")), worked out with Python's hashlib.
        let proof = "5d0980512e4d876623644b74a5e3be0b";
        assert!(
            line.contains(&format!("realm=\"r\",nonce=\"n=\",uri=\"sip:h\",response=\"{proof}\"")),
            "{line}"
        );
        assert!(line.ends_with(",opaque=\"o\"\r\n"));
    }
}
