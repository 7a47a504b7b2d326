//! What comes of a verification, and the response that each failure stands for.

/// Makes the verdicts of a table: the word that `STIR_SHAKEN(n,verify_result)` gives, and the refusal.
macro_rules! verdicts {
    ($($name:ident $word:literal $refusal:expr, $doc:literal;)*) => {
        /// What came of looking at who calls.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Verdict {
            $(#[doc = $doc] $name,)*
        }
        impl Verdict {
            /// All of them.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];
            /// The word for it, as dialplans see it.
            pub const fn word(self) -> &'static str {
                match self { $(Self::$name => $word,)* }
            }
            /// The response that it stands for; `None` when nothing has failed.
            pub const fn refusal(self) -> Option<Refusal> {
                match self { $(Self::$name => $refusal,)* }
            }
        }
    };
}

/// A response that refuses a call whose caller is not proved (RFC 8224 §6.2.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Refusal {
    /// Its status.
    pub status: u16,
    /// Its phrase.
    pub phrase: &'static str,
}

const fn refusal(status: u16, phrase: &'static str) -> Option<Refusal> {
    Some(Refusal { status, phrase })
}

const STALE: Option<Refusal> = refusal(403, "Stale Date");
const USE_IDENTITY: Option<Refusal> = refusal(428, "Use Identity Header");
const ANONYMOUS: Option<Refusal> = refusal(433, "Anonymity Disallowed");
const BAD_INFO: Option<Refusal> = refusal(436, "Bad Identity Info");
const CREDENTIAL: Option<Refusal> = refusal(437, "Unsupported Credential");
const INVALID: Option<Refusal> = refusal(438, "Invalid Identity Header");
const INTERNAL: Option<Refusal> = refusal(500, "Server Internal Error");

verdicts! {
    Success "success" None, "The carrier that signed vouches for the caller.";
    Disabled "disabled" None, "Nothing is verified.";
    InvalidArguments "invalid_arguments" INTERNAL, "The verification was asked for wrongly.";
    InternalError "internal_error" INTERNAL, "The verification itself failed.";
    MissingDate "missing_date_hdr" STALE, "There is no Date.";
    BadDate "date_hdr_parse_failure" STALE, "The Date cannot be read, or names no zone.";
    DateRange "date_hdr_range_error" STALE, "The Date lies in the future or too far back.";
    IatRange "iat_range_error" STALE, "The time of the signature lies too far back or ahead.";
    MissingIdentity "missing_identity_hdr" USE_IDENTITY, "There is no Identity.";
    NoCallerId "invalid_or_no_callerid" ANONYMOUS, "The caller has no number.";
    Retrieval "cert_retrieval_failure" BAD_INFO, "The certificate could not be fetched.";
    CertContents "cert_contents_invalid" CREDENTIAL, "What was fetched is no certificate.";
    CertNotTrusted "cert_not_trusted" CREDENTIAL, "No trusted authority vouches for the certificate.";
    CertDate "cert_date_failure" CREDENTIAL, "The certificate was not valid when it signed.";
    CertNoTnAuth "cert_no_tn_auth_ext" CREDENTIAL, "The certificate does not say for which numbers it is.";
    CertNoSpc "cert_no_spc_in_auth_ext" CREDENTIAL, "It names no service provider.";
    NoRawKey "no_raw_key" CREDENTIAL, "Its key is no key of ES256.";
    MissingJwt "missing_jwt_hdr" INVALID, "The Identity has no token.";
    BadX5u "invalid_or_no_x5u" INVALID, "The token does not say where the certificate lies, or not acceptably.";
    CacheMiss "cert_cache_miss" INVALID, "The certificate is not in the cache.";
    CacheInvalid "cert_cache_invalid" INVALID, "The cache has something else.";
    CacheExpired "cert_cache_expired" INVALID, "The cache has it no longer.";
    Signature "signature_validation" INVALID, "The key of the certificate has not made the signature.";
    MissingIat "missing_iat" INVALID, "The token does not say when it was signed.";
    BadPpt "invalid_or_no_ppt" INVALID, "The token is no PASSporT of the kind shaken.";
    BadAlg "invalid_or_no_alg" INVALID, "The algorithm is not ES256.";
    BadTyp "invalid_or_no_typ" INVALID, "The token is no PASSporT.";
    BadGrants "invalid_or_no_grants" INVALID, "The token claims nothing.";
    BadAttest "invalid_or_no_attest" INVALID, "The attestation is not A, B or C.";
    MissingOrigId "missing_origid" INVALID, "The token does not identify where the call comes from.";
    MissingOrigTn "missing_orig_tn" INVALID, "The token has no caller.";
    MissingDestTn "missing_dest_tn" INVALID, "The token has no called number.";
    InvalidHeader "invalid_header" INVALID, "The Identity cannot be read.";
    InvalidGrant "invalid_grant" INVALID, "A claim is of another kind than it has to be.";
    OrigMismatch "cid_orig_tn_mismatch" INVALID, "The token is about another caller.";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rfc8224_6_2_2_each_verdict_has_its_word_and_its_response() {
        let mut words: Vec<&str> = Verdict::ALL.iter().map(|verdict| verdict.word()).collect();
        words.sort_unstable();
        words.dedup();
        assert_eq!(words.len(), Verdict::ALL.len());
        for (status, phrase, expected) in [
            (403, "Stale Date", 4),
            (428, "Use Identity Header", 1),
            (433, "Anonymity Disallowed", 1),
            (436, "Bad Identity Info", 1),
            (437, "Unsupported Credential", 6),
            (438, "Invalid Identity Header", 18),
            (500, "Server Internal Error", 2),
        ] {
            let with = Verdict::ALL.iter().filter_map(|verdict| verdict.refusal());
            assert_eq!(
                with.filter(|refusal| *refusal == Refusal { status, phrase }).count(),
                expected,
                "{status}"
            );
        }
    }
}
