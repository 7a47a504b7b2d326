//! The client's side of a security agreement (RFC 3329 §2.3.1): what we say we can do, what the other side says it can do,
//! and that we say back to it, so that nobody in between has shortened its list.
//!
//! The mechanisms meant here protect media, not signalling (`mediasec`, draft-dawes-sipcore-mediasec-parameter): nothing
//! begins to be encrypted by the agreement, and its option tag is `mediasec` in the place of `sec-agree`.

use crate::header::HeaderName;
use crate::header::lex::{Params, is_token, split_once, trim};
use crate::message::Message;

/// Mechanisms of a list that are kept; networks name three.
const MECHANISMS_MAX: usize = 16;
/// Longest mechanism with its parameters, bytes.
const MECHANISM_BYTES_MAX: usize = 255;
/// Option tag, and the parameter of mechanisms that protect media.
const TAG: &str = "mediasec";

/// Whether this is a mechanism as RFC 3329 §2.2 writes them: a token with parameters.
pub fn is_mechanism(text: &[u8]) -> bool {
    let (name, _) = split_once(text, b';');
    let params = text.get(name.len()..).unwrap_or_default();
    text.len() <= MECHANISM_BYTES_MAX && is_token(trim(name)) && Params::new(params).well_formed()
}

/// Whether this mechanism says that it protects media.
pub fn protects_media(mechanism: &[u8]) -> bool {
    let (name, _) = split_once(mechanism, b';');
    Params::new(mechanism.get(name.len()..).unwrap_or_default()).has(TAG.as_bytes())
}

/// See the module's page. One for each server that requests are sent to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Agreement {
    /// Ours, as `Security-Client` says them.
    client: Vec<String>,
    /// The server's, in its order and its words; empty: not known.
    server: Vec<String>,
}

impl Agreement {
    /// Nothing is known of the server.
    pub fn new(mechanisms: &[String]) -> Self {
        Self { client: mechanisms.to_vec(), server: Vec::new() }
    }
    /// Whether the server's list is known.
    pub fn is_made(&self) -> bool {
        !self.server.is_empty()
    }
    /// Takes in what a response says of the server. Whether the same request may fare better for it: the list is another
    /// one, and has a mechanism of ours.
    pub fn learn(&mut self, response: &Message<'_>) -> bool {
        let listed = response.values(HeaderName::Other(b"Security-Server")).take(MECHANISMS_MAX);
        let listed: Vec<String> = listed
            .filter(|mechanism| is_mechanism(mechanism))
            .filter_map(|mechanism| core::str::from_utf8(mechanism).ok().map(str::to_owned))
            .collect();
        let name = |mechanism: &str| trim(split_once(mechanism.as_bytes(), b';').0).to_ascii_lowercase();
        let is_ours = |theirs: &String| self.client.iter().any(|own| name(own) == name(theirs));
        if listed == self.server || !listed.iter().any(is_ours) {
            return false;
        }
        self.server = listed;
        true
    }
    /// Forgets the server's list: the registration that it was for is gone (RFC 3329 §2.3.1).
    pub fn forget(&mut self) {
        self.server.clear();
    }
    /// Headers of a request to the server. A REGISTER says our mechanisms each time, others only while the server's are not
    /// known.
    pub fn headers(&self, is_register: bool) -> Vec<(String, String)> {
        if self.client.is_empty() {
            return Vec::new();
        }
        let mut headers: Vec<(&str, String)> = Vec::new();
        // A line for each mechanism: some registrars compare whole lines.
        if is_register || !self.is_made() {
            headers.extend(self.client.iter().map(|own| ("Security-Client", own.clone())));
        }
        if self.is_made() {
            headers.extend(self.server.iter().map(|said| ("Security-Verify", said.clone())));
        }
        headers.extend(["Require", "Proxy-Require"].map(|name| (name, TAG.to_owned())));
        headers.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
    }
    /// What a request that is sent again gets beside what it had.
    pub fn verification(&self) -> impl Iterator<Item = (String, String)> {
        let said = self.server.iter().filter(|_| self.is_made());
        said.map(|said| ("Security-Verify".to_owned(), said.clone()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::OwnedMessage;

    fn response(headers: &str) -> OwnedMessage {
        let text = format!(
            "SIP/2.0 494 Security Agreement Required\r\nVia: SIP/2.0/TLS a;branch=z9hG4bK1\r\nFrom: <sip:a@h>;tag=1\r\n\
             To: <sip:a@h>;tag=2\r\nCall-ID: 1\r\nCSeq: 1 REGISTER\r\n{headers}Content-Length: 0\r\n\r\n"
        );
        OwnedMessage::parse(text.into_bytes()).expect("a response")
    }
    fn said(agreement: &Agreement, is_register: bool) -> Vec<String> {
        agreement.headers(is_register).iter().map(|(name, value)| format!("{name}: {value}")).collect()
    }

    #[test]
    fn rfc3329_2_3_1_the_servers_list_is_said_back_as_it_came() {
        let mut agreement = Agreement::new(&["sdes-srtp;mediasec".to_owned()]);
        let required = ["Require: mediasec", "Proxy-Require: mediasec"].map(str::to_owned);
        let first: Vec<String> =
            ["Security-Client: sdes-srtp;mediasec".to_owned()].into_iter().chain(required.clone()).collect();
        assert_eq!((said(&agreement, true), said(&agreement, false)), (first.clone(), first.clone()));
        assert_eq!(agreement.verification().next(), None);
        let list = "Security-Server: msrp-tls;mediasec\r\nSecurity-Server: SDES-SRTP;mediasec;q=0.1, dtls-srtp;mediasec\r\n";
        assert!(agreement.learn(&response(list).view()));
        assert!(!agreement.learn(&response(list).view()), "the same again is nothing new");
        let verify = ["msrp-tls;mediasec", "SDES-SRTP;mediasec;q=0.1", "dtls-srtp;mediasec"]
            .map(|mechanism| format!("Security-Verify: {mechanism}"));
        let expected: Vec<String> = verify.clone().into_iter().chain(required.clone()).collect();
        assert_eq!(said(&agreement, false), expected);
        let expected: Vec<String> = first[..1].iter().cloned().chain(expected).collect();
        assert_eq!(said(&agreement, true), expected);
        let shorter = "Security-Server: sdes-srtp;mediasec\r\n";
        assert!(agreement.learn(&response(shorter).view()), "another list is another agreement");
        agreement.forget();
        assert_eq!(said(&agreement, false), first);
    }

    #[test]
    fn rfc3329_2_3_1_a_list_without_a_mechanism_of_ours_is_no_agreement() {
        let long = format!("Security-Server: sdes-srtp;mediasec;x={}\r\n", "a".repeat(300));
        for list in [
            "",
            "Security-Server: \r\n",
            "Security-Server: tls;q=0.1, ipsec-3gpp\r\n",
            "Security-Server: sdes-srtp;=\r\n",
            "Security-Server: sdes srtp\r\n",
            long.as_str(),
        ] {
            let mut agreement = Agreement::new(&["sdes-srtp;mediasec".to_owned()]);
            assert!(!agreement.learn(&response(list).view()) && !agreement.is_made(), "{list}");
        }
        let many = format!("Security-Server: {}\r\n", vec!["sdes-srtp"; 200].join(", "));
        let mut agreement = Agreement::new(&["sdes-srtp;mediasec".to_owned()]);
        assert!(agreement.learn(&response(&many).view()));
        assert_eq!(agreement.server.len(), MECHANISMS_MAX);
        assert!(Agreement::new(&[]).headers(true).is_empty(), "without mechanisms nothing is said");
    }

    #[test]
    fn rfc3329_2_2_a_mechanism_is_a_token_with_parameters() {
        for (text, expected) in [
            ("sdes-srtp;mediasec", (true, true)),
            ("tls;q=0.2", (true, false)),
            ("ipsec-3gpp;alg=hmac-md5-96; prot=esp", (true, false)),
            ("sdes-srtp", (true, false)),
            ("", (false, false)),
            (";mediasec", (false, true)),
            ("a b", (false, false)),
            ("tls\r\nX: y", (false, false)),
            ("tls;q=0.1\r\nX: y", (false, false)),
        ] {
            assert_eq!((is_mechanism(text.as_bytes()), protects_media(text.as_bytes())), expected, "{text}");
        }
    }
}
