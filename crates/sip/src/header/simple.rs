//! The small headers: a number, a token, a token with parameters.

use super::Method;
use super::lex::{CommaList, Params, is_lws, is_token, number, split_once, trim, trim_start};

/// Largest sequence number of CSeq (RFC 3261 §8.1.1.5).
pub const MAX_CSEQ: u32 = 0x7FFF_FFFF;

/// Seconds of Expires and its like; what is too large counts as the largest (RFC 3261 §10.3), what is no number as `None`.
pub fn delta_seconds(value: &[u8]) -> Option<u32> {
    let value = trim(value);
    if value.is_empty() || !value.iter().all(u8::is_ascii_digit) {
        return None;
    }
    Some(number(value).and_then(|n| u32::try_from(n).ok()).unwrap_or(u32::MAX))
}

/// The CSeq header (RFC 3261 §20.16).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CSeq<'a> {
    /// Sequence number, at most 2^31 - 1.
    pub number: u32,
    /// Method.
    pub method: Method<'a>,
}

impl<'a> CSeq<'a> {
    /// Parses the value.
    pub fn parse(value: &'a [u8]) -> Option<Self> {
        let value = trim(value);
        let end = value.iter().position(|&b| is_lws(b))?;
        let (digits, rest) = value.split_at_checked(end)?;
        let method = trim_start(rest);
        let number = u32::try_from(number(digits)?).ok().filter(|&n| n <= MAX_CSEQ)?;
        is_token(method).then(|| Self { number, method: Method::from_bytes(method) })
    }
}

/// The RAck header (RFC 3262 §7.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RAck<'a> {
    /// RSeq of the provisional response that is acknowledged.
    pub rseq: u32,
    /// CSeq of that response.
    pub cseq: CSeq<'a>,
}

impl<'a> RAck<'a> {
    /// Parses the value.
    pub fn parse(value: &'a [u8]) -> Option<Self> {
        let value = trim(value);
        let end = value.iter().position(|&b| is_lws(b))?;
        let (digits, rest) = value.split_at_checked(end)?;
        Some(Self { rseq: u32::try_from(number(digits)?).ok()?, cseq: CSeq::parse(rest)? })
    }
}

/// A Content-Type: `type/subtype` and parameters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MediaType<'a> {
    /// Type.
    pub kind: &'a [u8],
    /// Subtype.
    pub subtype: &'a [u8],
    /// Parameters.
    pub params: Params<'a>,
}

impl<'a> MediaType<'a> {
    /// Parses the value.
    pub fn parse(value: &'a [u8]) -> Option<Self> {
        let (essence, params) = head_and_params(value)?;
        let (kind, subtype) = split_once(essence, b'/');
        let (kind, subtype) = (trim(kind), trim(subtype?));
        (is_token(kind) && is_token(subtype)).then_some(Self { kind, subtype, params })
    }
    /// Whether it is `kind/subtype`, any case.
    pub fn is(&self, kind: &str, subtype: &str) -> bool {
        self.kind.eq_ignore_ascii_case(kind.as_bytes())
            && self.subtype.eq_ignore_ascii_case(subtype.as_bytes())
    }
}

/// The Content-Disposition header (RFC 3261 §20.11).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Disposition<'a> {
    /// What the body is there for: `session`, `render`, `signal` or an extension.
    pub kind: &'a [u8],
    /// Parameters.
    pub params: Params<'a>,
}

impl<'a> Disposition<'a> {
    /// Parses the value.
    pub fn parse(value: &'a [u8]) -> Option<Self> {
        let (kind, params) = head_and_params(value)?;
        is_token(kind).then_some(Self { kind, params })
    }
    /// Whether it is this one, any case.
    pub fn is(&self, kind: &str) -> bool {
        self.kind.eq_ignore_ascii_case(kind.as_bytes())
    }
    /// Whether the body has to be understood (`handling`); `None` when it does not say.
    pub fn is_required(&self) -> Option<bool> {
        let handling = self.params.get(b"handling")?;
        let says = |word: &[u8]| handling.eq_ignore_ascii_case(word);
        if says(b"required") { Some(true) } else { says(b"optional").then_some(false) }
    }
}

/// The Event header (RFC 6665 §8.2.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Event<'a> {
    /// Package with its templates (`presence.winfo`).
    pub package: &'a [u8],
    /// Parameters.
    pub params: Params<'a>,
}

impl<'a> Event<'a> {
    /// Parses the value.
    pub fn parse(value: &'a [u8]) -> Option<Self> {
        let (package, params) = head_and_params(value)?;
        is_token(package).then_some(Self { package, params })
    }
    /// The `id` that tells subscriptions of one dialog apart.
    pub fn id(&self) -> Option<&'a [u8]> {
        self.params.get(b"id")
    }
}

/// The Subscription-State header (RFC 6665 §8.2.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SubscriptionState<'a> {
    /// `active`, `pending`, `terminated` or an extension.
    pub state: &'a [u8],
    /// Parameters: `expires`, `reason`, `retry-after`.
    pub params: Params<'a>,
}

impl<'a> SubscriptionState<'a> {
    /// Parses the value.
    pub fn parse(value: &'a [u8]) -> Option<Self> {
        let (state, params) = head_and_params(value)?;
        is_token(state).then_some(Self { state, params })
    }
    /// Whether the subscription is over.
    pub fn is_terminated(&self) -> bool {
        self.state.eq_ignore_ascii_case(b"terminated")
    }
}

/// The Session-Expires and Min-SE headers (RFC 4028 §4).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SessionExpires {
    /// Interval in seconds.
    pub seconds: u32,
    /// Who refreshes, when said: `Some(true)` the UAC.
    pub uac_refreshes: Option<bool>,
}

impl SessionExpires {
    /// Parses the value.
    pub fn parse(value: &[u8]) -> Option<Self> {
        let (seconds, params) = head_and_params(value)?;
        let uac_refreshes = params.get(b"refresher").and_then(|who| match who {
            _ if who.eq_ignore_ascii_case(b"uac") => Some(true),
            _ if who.eq_ignore_ascii_case(b"uas") => Some(false),
            _ => None,
        });
        Some(Self { seconds: delta_seconds(seconds)?, uac_refreshes })
    }
}

/// The Replaces header (RFC 3891 §6.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Replaces<'a> {
    /// Call-ID of the dialog that is replaced.
    pub call_id: &'a [u8],
    /// Tag that whoever reads this gave in it.
    pub to_tag: &'a [u8],
    /// Tag of the other side.
    pub from_tag: &'a [u8],
    /// It is replaced only before it is answered.
    pub early_only: bool,
}

impl<'a> Replaces<'a> {
    /// Parses the value; both tags must be there, once each.
    pub fn parse(value: &'a [u8]) -> Option<Self> {
        let (call_id, params) = head_and_params(value)?;
        let one = |name: &[u8]| {
            let mut found = params.iter().filter(|(known, _)| known.eq_ignore_ascii_case(name));
            let (_, tag) = found.next()?;
            tag.filter(|tag| !tag.is_empty() && found.next().is_none())
        };
        let plain = !call_id.is_empty() && !call_id.iter().any(|b| b.is_ascii_whitespace());
        plain.then_some(())?;
        Some(Self {
            call_id,
            to_tag: one(b"to-tag")?,
            from_tag: one(b"from-tag")?,
            early_only: params.has(b"early-only"),
        })
    }
}

/// The Retry-After header (RFC 3261 §20.33).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetryAfter {
    /// Seconds to wait.
    pub seconds: u32,
}

impl RetryAfter {
    /// Parses the value; a comment and parameters after the number are skipped.
    pub fn parse(value: &[u8]) -> Option<Self> {
        let value = trim(value);
        let end = value.iter().position(|b| !b.is_ascii_digit()).unwrap_or(value.len());
        value.get(..end).and_then(delta_seconds).map(|seconds| Self { seconds })
    }
}

/// One value of a Reason header (RFC 3326).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reason<'a> {
    /// `Q.850`, `SIP` or another token.
    pub protocol: &'a [u8],
    /// Parameters: `cause`, `text`.
    pub params: Params<'a>,
}

impl<'a> Reason<'a> {
    /// Parses one value.
    pub fn parse(value: &'a [u8]) -> Option<Self> {
        let (protocol, params) = head_and_params(value)?;
        is_token(protocol).then_some(Self { protocol, params })
    }
    /// The `cause` number.
    pub fn cause(&self) -> Option<u16> {
        self.params.get(b"cause").and_then(number).and_then(|cause| u16::try_from(cause).ok())
    }
}

/// The Q.850 cause among the values of Reason headers, when one is there.
pub fn q850_cause<'a>(values: impl IntoIterator<Item = &'a [u8]>) -> Option<base::Cause> {
    values
        .into_iter()
        .filter_map(Reason::parse)
        .filter(|reason| reason.protocol.eq_ignore_ascii_case(b"Q.850"))
        .find_map(|reason| reason.cause().and_then(|cause| u8::try_from(cause).ok()).filter(|&c| c < 128))
        .map(base::Cause)
}

/// Whether one of these comma lists names `token`, any case (Supported, Require, Allow, Privacy).
pub fn has_token<'a>(values: impl IntoIterator<Item = &'a [u8]>, token: &[u8]) -> bool {
    values.into_iter().flat_map(CommaList::new).any(|value| value.eq_ignore_ascii_case(token))
}

/// What stands before the first `;`, trimmed, and the parameters from there on.
fn head_and_params(value: &[u8]) -> Option<(&[u8], Params<'_>)> {
    let value = trim(value);
    let (head, params) = value.split_at_checked(memchr::memchr(b';', value).unwrap_or(value.len()))?;
    Some((trim(head), Params::new(params)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_stay_in_the_bounds_of_their_headers() {
        assert_eq!(CSeq::parse(b"0009\r\n  INVITE"), Some(CSeq { number: 9, method: Method::Invite }));
        assert_eq!(CSeq::parse(b"2147483647 FOO").map(|c| c.method), Some(Method::Other(b"FOO")));
        for bad in [
            "2147483648 INVITE",
            "36893488147419103232 REGISTER",
            "1",
            "x INVITE",
            "-1 INVITE",
            "1 INV ITE",
            "",
        ] {
            assert_eq!(CSeq::parse(bad.as_bytes()), None, "{bad}");
        }
        assert_eq!(delta_seconds(b" 3600 "), Some(3600));
        assert_eq!(delta_seconds(b"99999999999999999999999"), Some(u32::MAX));
        assert_eq!(delta_seconds(b"-1"), None);
        assert_eq!(RetryAfter::parse(b"18 (I'm in a meeting);duration=3"), Some(RetryAfter { seconds: 18 }));
        assert_eq!(RAck::parse(b"776656 1 INVITE").map(|r| (r.rseq, r.cseq.number)), Some((776_656, 1)));
    }

    #[test]
    fn tokens_with_parameters_are_read() {
        let kind = MediaType::parse(b"Application / SDP ; charset=\"x;y\"").unwrap();
        assert!(kind.is("application", "sdp"));
        assert_eq!(MediaType::parse(b"text"), None);
        assert_eq!(
            SessionExpires::parse(b"1800;refresher=UAC"),
            Some(SessionExpires { seconds: 1800, uac_refreshes: Some(true) })
        );
        let reasons: [&[u8]; 2] = [b"SIP;cause=200;text=\"Call completed elsewhere\"", b"Q.850 ;cause=17"];
        assert_eq!(q850_cause(reasons), Some(base::Cause::USER_BUSY));
        let supported: [&[u8]; 2] = [b"replaces, 100rel", b"timer"];
        assert!(has_token(supported, b"100REL") && has_token(supported, b"timer"));
        assert!(!has_token(supported, b"path"));
        assert!(SubscriptionState::parse(b"terminated;reason=noresource").unwrap().is_terminated());
        let replaces = Replaces::parse(b"98asj@h ;to-tag=12;from-tag=5FFE-3994; early-only").unwrap();
        assert_eq!(
            (replaces.call_id, replaces.to_tag, replaces.from_tag),
            (&b"98asj@h"[..], &b"12"[..], &b"5FFE-3994"[..])
        );
        assert!(replaces.early_only);
        for bad in [
            "",
            ";to-tag=1;from-tag=2",
            "a;to-tag=1",
            "a;from-tag=2",
            "a;to-tag;from-tag=2",
            "a;to-tag=1;to-tag=3;from-tag=2",
            "a b;to-tag=1;from-tag=2",
        ] {
            assert_eq!(Replaces::parse(bad.as_bytes()), None, "{bad}");
        }
        assert_eq!(Event::parse(b"dialog;id=7").unwrap().id(), Some(&b"7"[..]));
    }
}
