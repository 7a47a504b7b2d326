//! The answer to a digest challenge (RFC 2617 with qop=auth), as a phone gives it.

use md5::{Digest as _, Md5};

fn md5(text: &str) -> String {
    Md5::digest(text).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A parameter of a challenge, its quotes taken off.
pub fn parameter<'a>(challenge: &'a str, name: &str) -> Option<&'a str> {
    let rest = challenge.split_once(' ').map_or(challenge, |(_, rest)| rest);
    rest.split(',').find_map(|part| {
        let (key, value) = part.trim().split_once('=')?;
        (key.eq_ignore_ascii_case(name)).then(|| value.trim().trim_matches('"'))
    })
}

/// Value of the Authorization header that answers `challenge`.
pub fn answer(challenge: &str, user: &str, secret: &str, method: &str, uri: &str) -> String {
    let realm = parameter(challenge, "realm").unwrap_or_default();
    let nonce = parameter(challenge, "nonce").unwrap_or_default();
    let (ha1, ha2) = (md5(&format!("{user}:{realm}:{secret}")), md5(&format!("{method}:{uri}")));
    let (count, client) = ("00000001", "e2e");
    let (proof, qop) = match parameter(challenge, "qop") {
        Some(_) => (
            md5(&format!("{ha1}:{nonce}:{count}:{client}:auth:{ha2}")),
            format!(", qop=auth, nc={count}, cnonce=\"{client}\""),
        ),
        None => (md5(&format!("{ha1}:{nonce}:{ha2}")), String::new()),
    };
    let opaque =
        parameter(challenge, "opaque").map(|value| format!(", opaque=\"{value}\"")).unwrap_or_default();
    format!(
        "Digest username=\"{user}\", realm=\"{realm}\", nonce=\"{nonce}\", uri=\"{uri}\", response=\"{proof}\", \
         algorithm=MD5{qop}{opaque}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rfc2617_3_5_example_without_the_client_nonce() {
        // The example's user, realm, nonce and resource; without qop the answer is that of RFC 2069.
        let challenge = "Digest realm=\"testrealm@host.com\", nonce=\"dcd98b7102dd2f0e8b11d0f600bfb0c093\"";
        let answer = answer(challenge, "Mufasa", "Circle Of Life", "GET", "/dir/index.html");
        assert_eq!(parameter(&answer, "response"), Some("670fd8c2df070c60b045671b8b24ff02"));
    }
}
