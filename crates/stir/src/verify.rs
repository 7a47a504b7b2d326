//! Who calls: what an INVITE says of it, step after step, until the first that fails (RFC 8224 §6.2).

use serde_json::Value;

use crate::passport::Token;
use crate::{Certificate, Level, Verdict, Verification, digits, is_acceptable, read_date};

/// Identity headers of one request that are looked at: those beside the one of shaken tell of diversions.
pub const IDENTITIES_MAX: usize = 8;

const PPT: &str = "shaken";
const ALG: &str = "ES256";
const TYP: &str = "passport";

/// What a request says of its caller.
#[derive(Debug, Clone, Copy, Default)]
pub struct Call<'a> {
    /// The number, as the channel has it; empty: none.
    pub caller: &'a str,
    /// Its Identity headers.
    pub identities: &'a [&'a str],
    /// Its Date.
    pub date: Option<&'a str>,
}

/// What came of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// The caller, in digits.
    pub caller: String,
    /// The attestation of a token whose signature is right.
    pub attestation: Option<Level>,
    /// Whether it is proved.
    pub verdict: Verdict,
}

/// Where a verification stands after what the request itself says.
#[derive(Debug, Clone, PartialEq)]
pub enum Begun {
    /// It has failed.
    Failed(Outcome),
    /// It goes on with the certificate of [`Pending::url`].
    Needs(Box<Pending>),
}

/// A verification that waits for a certificate.
#[derive(Debug, Clone, PartialEq)]
pub struct Pending {
    /// Where the certificate lies.
    pub url: String,
    caller: String,
    token: Token,
    iat: u64,
}

/// Looks at what a request says, at that second since 1970.
pub fn begin(call: &Call<'_>, rules: &Verification, now: u64) -> Begun {
    let caller = digits(call.caller);
    match examine(&caller, call, rules, now) {
        Ok(pending) => Begun::Needs(Box::new(pending)),
        Err(verdict) => Begun::Failed(Outcome { caller, attestation: None, verdict }),
    }
}

fn examine(caller: &str, call: &Call<'_>, rules: &Verification, now: u64) -> Result<Pending, Verdict> {
    if caller.is_empty() {
        return Err(Verdict::NoCallerId);
    }
    let token = token(call.identities)?;
    if token.header("ppt") != Some(PPT) {
        return Err(Verdict::BadPpt);
    }
    judge_date(call.date, rules, now)?;
    let url = token.header("x5u").ok_or(Verdict::BadX5u)?;
    if !is_acceptable(url, rules.any_port_and_scheme, rules.any_path) {
        return Err(Verdict::BadX5u);
    }
    let iat = token.claim("iat").ok_or(Verdict::MissingIat)?.as_u64().ok_or(Verdict::InvalidGrant)?;
    // One from the future could be used for longer than the site lets a signature be used.
    if now.abs_diff(iat) > rules.max_iat_age {
        return Err(Verdict::IatRange);
    }
    Ok(Pending { url: url.to_owned(), caller: caller.to_owned(), iat, token })
}

/// The token of shaken; the first one where there is none, so that it is said what is wrong with it.
fn token(identities: &[&str]) -> Result<Token, Verdict> {
    let tokens = identities.iter().take(IDENTITIES_MAX).map(|value| {
        let (token, _) = value.split_once(';').ok_or(Verdict::InvalidHeader)?;
        match token.trim() {
            "" => Err(Verdict::MissingJwt),
            token => Token::read(token).ok_or(Verdict::InvalidHeader),
        }
    });
    let mut first = Err(Verdict::MissingIdentity);
    for (at, token) in tokens.enumerate() {
        match token {
            Ok(token) if token.header("ppt") == Some(PPT) => return Ok(token),
            other if at == 0 => first = other,
            _ => {}
        }
    }
    first
}

fn judge_date(date: Option<&str>, rules: &Verification, now: u64) -> Result<(), Verdict> {
    let verdict = match date.map(read_date) {
        None => Verdict::MissingDate,
        Some(None) => Verdict::BadDate,
        Some(Some(date)) if date > now || now - date > rules.max_date_age => Verdict::DateRange,
        Some(Some(_)) => return Ok(()),
    };
    if rules.ignores_date { Ok(()) } else { Err(verdict) }
}

impl Pending {
    /// Goes on with the certificate, or with why there is none.
    pub fn finish(self, certificate: Result<&Certificate, Verdict>, rules: &Verification) -> Outcome {
        let mut attestation = None;
        let verdict = certificate.and_then(|certificate| self.judge(certificate, rules, &mut attestation));
        Outcome { caller: self.caller, attestation, verdict: verdict.err().unwrap_or(Verdict::Success) }
    }
    fn judge(
        &self,
        certificate: &Certificate,
        rules: &Verification,
        attestation: &mut Option<Level>,
    ) -> Result<(), Verdict> {
        is_usable(certificate, rules, self.iat)?;
        let key = certificate.key.as_deref().ok_or(Verdict::NoRawKey)?;
        let Token { signed, signature, .. } = &self.token;
        if !rules.authority.verifies(key, signed.as_bytes(), signature) {
            return Err(Verdict::Signature);
        }
        for (name, wanted, verdict) in
            [("alg", ALG, Verdict::BadAlg), ("ppt", PPT, Verdict::BadPpt), ("typ", TYP, Verdict::BadTyp)]
        {
            if self.token.header(name) != Some(wanted) {
                return Err(verdict);
            }
        }
        self.judge_claims(attestation)
    }
    fn judge_claims(&self, attestation: &mut Option<Level>) -> Result<(), Verdict> {
        let token = &self.token;
        if !token.has_claims() {
            return Err(Verdict::BadGrants);
        }
        let attest = token.claim("attest").and_then(Value::as_str).and_then(Level::of);
        *attestation = Some(attest.ok_or(Verdict::BadAttest)?);
        let object = |name: &str, missing: Verdict| match token.claim(name) {
            Some(Value::Object(map)) => Ok(map),
            Some(_) => Err(Verdict::InvalidGrant),
            None => Err(missing),
        };
        let dest = object("dest", Verdict::MissingDestTn)?;
        match dest.get("tn") {
            Some(Value::Array(numbers)) if !numbers.is_empty() && numbers.iter().all(Value::is_string) => {}
            Some(Value::Array(numbers)) if numbers.is_empty() => return Err(Verdict::MissingDestTn),
            Some(_) => return Err(Verdict::InvalidGrant),
            None => return Err(Verdict::MissingDestTn),
        }
        let orig = object("orig", Verdict::MissingOrigTn)?;
        let orig = match orig.get("tn") {
            Some(Value::String(number)) => number,
            Some(_) => return Err(Verdict::InvalidGrant),
            None => return Err(Verdict::MissingOrigTn),
        };
        if digits(orig) != self.caller {
            return Err(Verdict::OrigMismatch);
        }
        match token.claim("origid") {
            Some(Value::String(id)) if !id.is_empty() => Ok(()),
            Some(Value::String(_)) | None => Err(Verdict::MissingOrigId),
            Some(_) => Err(Verdict::InvalidGrant),
        }
    }
}

/// Whether a certificate may speak for anybody, at the second at which it signed.
pub fn is_usable(certificate: &Certificate, rules: &Verification, at: u64) -> Result<(), Verdict> {
    // Whether it is trusted and whether it is in its time are two questions.
    let in_time = at.max(certificate.not_before).min(certificate.not_after);
    if !rules.authority.trusts(certificate, in_time) {
        return Err(Verdict::CertNotTrusted);
    }
    if !certificate.is_valid_at(at) {
        return Err(Verdict::CertDate);
    }
    let list = certificate.tn_auth.as_ref().ok_or(Verdict::CertNoTnAuth)?;
    if list.as_ref().and_then(crate::TnAuthList::spc).is_none() {
        return Err(Verdict::CertNoSpc);
    }
    Ok(())
}
