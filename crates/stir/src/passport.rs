//! PASSporTs (RFC 8225) of the kind shaken (RFC 8588), and the Identity header that carries one (RFC 8224 §4).

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Map, Value};

use crate::{Level, Sign};

/// Longest Identity header that is read, bytes: a token with a long URL and several numbers has one or two thousand.
pub const IDENTITY_BYTES_MAX: usize = 8 * 1024;
/// Fingerprints of one description that are signed: one for each stream, mostly the same.
const FINGERPRINTS_MAX: usize = 8;

/// A certificate of DTLS as a description names it (RFC 8225 §5.2.2).
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Fingerprint {
    /// The hash, such as `sha-256`.
    pub algorithm: String,
    /// Its digits in base 16, without colons.
    pub digest: String,
}

/// The fingerprints of a description (RFC 8122 §5), each once and in order.
pub fn fingerprints(sdp: &str) -> Vec<Fingerprint> {
    let lines = sdp.lines().filter_map(|line| line.strip_prefix("a=fingerprint:"));
    let mut found: Vec<Fingerprint> = lines
        .filter_map(|value| {
            let (algorithm, digest) = value.trim().split_once(' ')?;
            let digest: String = digest.chars().filter(char::is_ascii_hexdigit).collect();
            Some(Fingerprint {
                algorithm: algorithm.to_ascii_lowercase(),
                digest: digest.to_ascii_uppercase(),
            })
        })
        .take(FINGERPRINTS_MAX)
        .collect();
    found.sort();
    found.dedup();
    found
}

/// What is signed of a call of ours (RFC 8588 §5).
#[derive(Debug, Clone, Copy)]
pub struct Claims<'a> {
    /// How sure we are of the caller.
    pub attest: Level,
    /// The called number, in digits.
    pub dest: &'a str,
    /// Seconds since 1970.
    pub iat: u64,
    /// Certificates of its media.
    pub mky: &'a [Fingerprint],
    /// The caller, in digits.
    pub orig: &'a str,
    /// A UUID.
    pub origid: &'a str,
}

fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}

impl Claims<'_> {
    /// The claims in the one form that they are signed in: no blanks, keys in order (RFC 8225 §9).
    fn payload(&self) -> String {
        let mky: Vec<String> = self
            .mky
            .iter()
            .map(|of| format!("{{\"alg\":{},\"dig\":{}}}", quoted(&of.algorithm), quoted(&of.digest)))
            .collect();
        let mky = if mky.is_empty() { String::new() } else { format!("\"mky\":[{}],", mky.join(",")) };
        format!(
            "{{\"attest\":\"{}\",\"dest\":{{\"tn\":[{}]}},\"iat\":{},{mky}\"orig\":{{\"tn\":{}}},\"origid\":{}}}",
            self.attest.word(),
            quoted(self.dest),
            self.iat,
            quoted(self.orig),
            quoted(self.origid)
        )
    }
    /// The token, signed by this key whose certificate lies at `url`; `None` when the key cannot sign.
    pub fn sign(&self, url: &str, key: &dyn Sign) -> Option<String> {
        let url = quoted(url);
        let header = format!("{{\"alg\":\"ES256\",\"ppt\":\"shaken\",\"typ\":\"passport\",\"x5u\":{url}}}");
        let signed = format!("{}.{}", URL_SAFE_NO_PAD.encode(header), URL_SAFE_NO_PAD.encode(self.payload()));
        let signature = key.sign(signed.as_bytes())?;
        Some(format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature)))
    }
}

/// The value of an Identity header that carries a token.
pub fn identity_header(token: &str, url: &str) -> String {
    format!("{token};info=<{url}>;alg=ES256;ppt=shaken")
}

/// A token that came, taken apart and not believed yet.
#[derive(Debug, Clone, PartialEq)]
pub struct Token {
    /// What the signature is over.
    pub signed: String,
    /// The signature.
    pub signature: Vec<u8>,
    header: Map<String, Value>,
    claims: Map<String, Value>,
}

impl Token {
    /// Takes a token in full form apart (RFC 7515 §7.1); `None` when it is none.
    pub fn read(token: &str) -> Option<Self> {
        if token.len() > IDENTITY_BYTES_MAX {
            return None;
        }
        let (signed, signature) = token.rsplit_once('.')?;
        let (header, claims) = signed.split_once('.')?;
        Some(Self {
            header: object(header)?,
            claims: object(claims)?,
            signature: URL_SAFE_NO_PAD.decode(signature).ok().filter(|bytes| !bytes.is_empty())?,
            signed: signed.to_owned(),
        })
    }
    /// Text of its header.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.header.get(name)?.as_str()
    }
    /// One of its claims.
    pub fn claim(&self, name: &str) -> Option<&Value> {
        self.claims.get(name)
    }
    /// Whether it claims anything.
    pub fn has_claims(&self) -> bool {
        !self.claims.is_empty()
    }
}

fn object(encoded: &str) -> Option<Map<String, Value>> {
    let bytes = URL_SAFE_NO_PAD.decode(encoded).ok()?;
    match serde_json::from_slice(&bytes).ok()? {
        Value::Object(map) => Some(map),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Echo;

    impl Sign for Echo {
        fn sign(&self, message: &[u8]) -> Option<[u8; 64]> {
            message.first_chunk::<64>().copied()
        }
    }

    fn claims<'a>(mky: &'a [Fingerprint]) -> Claims<'a> {
        Claims {
            attest: Level::B,
            dest: "12155551213",
            iat: 1_443_208_345,
            mky,
            orig: "12155551212",
            origid: "123e4567-e89b-12d3-a456-426655440000",
        }
    }

    #[test]
    fn rfc8588_5_claims_are_written_in_one_form() {
        let mky = [Fingerprint { algorithm: "sha-256".to_owned(), digest: "4AAD".to_owned() }];
        let token = claims(&mky).sign("https://cert.example.org/passport.cer", &Echo).unwrap();
        let mut parts = token.split('.').map(|part| URL_SAFE_NO_PAD.decode(part).unwrap());
        let header = String::from_utf8(parts.next().unwrap()).unwrap();
        let payload = String::from_utf8(parts.next().unwrap()).unwrap();
        assert_eq!(
            header,
            r#"{"alg":"ES256","ppt":"shaken","typ":"passport","x5u":"https://cert.example.org/passport.cer"}"#
        );
        assert_eq!(
            payload,
            r#"{"attest":"B","dest":{"tn":["12155551213"]},"iat":1443208345,"mky":[{"alg":"sha-256","dig":"4AAD"}],"orig":{"tn":"12155551212"},"origid":"123e4567-e89b-12d3-a456-426655440000"}"#
        );
        let read = Token::read(&token).unwrap();
        assert_eq!(read.header("x5u"), Some("https://cert.example.org/passport.cer"));
        assert_eq!(read.claim("iat").and_then(Value::as_u64), Some(1_443_208_345));
        assert_eq!(read.signature.len(), 64);
        let bare = Token::read(&claims(&[]).sign("https://h/", &Echo).unwrap()).unwrap();
        assert_eq!(bare.claim("mky"), None);
        assert_eq!(
            identity_header("a.b.c", "https://h/x.pem"),
            "a.b.c;info=<https://h/x.pem>;alg=ES256;ppt=shaken"
        );
    }

    #[test]
    fn rfc7515_7_1_what_is_no_token_is_not_read() {
        let encode = |text: &str| URL_SAFE_NO_PAD.encode(text);
        let (object, sig) = (encode("{}"), encode("x"));
        for (name, token, expected) in [
            ("empty objects", format!("{object}.{object}.{sig}"), true),
            ("no signature", format!("{object}.{object}."), false),
            ("two parts", format!("{object}.{object}"), false),
            ("four parts", format!("{object}.{object}.{object}.{sig}"), false),
            ("compact form", format!("..{sig}"), false),
            ("no object", format!("{}.{object}.{sig}", encode("[]")), false),
            ("no JSON", format!("{}.{object}.{sig}", encode("{")), false),
            ("no base 64", format!("!.{object}.{sig}"), false),
            ("padding", format!("{object}=.{object}.{sig}"), false),
            (
                "a deep claim",
                format!("{object}.{}.{sig}", encode(&format!("{{\"a\":{}", "[".repeat(500)))),
                false,
            ),
            ("too long", format!("{object}.{object}.{}", "A".repeat(IDENTITY_BYTES_MAX)), false),
            ("nothing", String::new(), false),
        ] {
            assert_eq!(Token::read(&token).is_some(), expected, "{name}");
        }
    }

    #[test]
    fn rfc8122_5_fingerprints_are_signed_each_once() {
        let sdp = "v=0\r\na=fingerprint:SHA-256 4a:AD:b9\r\nm=audio 1 RTP/AVP 0\r\na=fingerprint:sha-256 4A:AD:B9\r\n\
                   a=fingerprint:sha-1 00:11\r\na=fingerprint:broken\r\n";
        let found = fingerprints(sdp);
        let found: Vec<(&str, &str)> =
            found.iter().map(|of| (of.algorithm.as_str(), of.digest.as_str())).collect();
        assert_eq!(found, [("sha-1", "0011"), ("sha-256", "4AADB9")]);
    }
}
