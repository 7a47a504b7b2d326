//! Caller identities: read from requests, written into ours.

use std::borrow::Cow;

use ::sip::{HeaderName, Message, NameAddr};
use call::{PartyId, Presentation, Redirecting};

use super::config::Endpoint;

/// Longest name or number taken from the wire, bytes; longer ones are cut.
const PARTY_BYTES_MAX: usize = 256;

/// Text from the wire: control characters dropped, Latin-1 bytes read as such, bounded.
pub(crate) fn text(bytes: &[u8]) -> String {
    let bytes = bytes.get(..bytes.len().min(PARTY_BYTES_MAX)).unwrap_or_default();
    let text: Cow<'_, str> = match core::str::from_utf8(bytes) {
        Ok(text) => text.into(),
        Err(_) => bytes.iter().map(|&b| char::from(b)).collect::<String>().into(),
    };
    text.chars().filter(|c| !c.is_control()).collect()
}

fn party(address: &NameAddr<'_>) -> PartyId {
    let (name, number) = (text(&address.display_name()), text(&address.uri.user_decoded()));
    PartyId {
        name: (!name.is_empty()).then_some(name),
        number: (!number.is_empty()).then_some(number),
        ..PartyId::default()
    }
}

/// The caller of a request: a trusted assertion, else From; fields the endpoint's `callerid=` sets win.
pub(crate) fn caller_of(message: &Message<'_>, endpoint: &Endpoint) -> PartyId {
    let asserted = endpoint.trust_id_inbound.then(|| asserted(message)).flatten();
    let mut caller = asserted.or_else(|| message.from().map(|from| party(&from))).unwrap_or_default();
    if let Some(number) = &endpoint.caller.number {
        caller.number = Some(number.clone());
    }
    if let Some(name) = &endpoint.caller.name {
        caller.name = Some(name.clone());
    }
    let hidden = if endpoint.caller.number_presentation.is_hidden() {
        Some(endpoint.caller.number_presentation)
    } else {
        (endpoint.trust_id_inbound && wants_privacy(message)).then_some(Presentation::ProhibNotScreened)
    };
    if let Some(presentation) = hidden {
        caller.number_presentation = presentation;
        caller.name_presentation = presentation;
    }
    caller.tag.clone_from(&endpoint.caller.tag);
    caller
}

/// What kind of line a caller says that it comes from (ANI II digits): a parameter of From, else of its URI.
pub(crate) fn originating_line(message: &Message<'_>) -> u16 {
    const NAMES: [&[u8]; 3] = [b"isup-oli", b"ss7-oli", b"oli"];
    let Some(from) = message.from() else { return 0 };
    let of_header = NAMES.iter().find_map(|name| from.params.get(name));
    let said = of_header.or_else(|| NAMES.iter().find_map(|name| from.uri.params.get(name)));
    said.and_then(|digits| core::str::from_utf8(digits).ok()?.parse().ok()).unwrap_or(0)
}

/// P-Asserted-Identity (RFC 3325) before Remote-Party-ID.
fn asserted(message: &Message<'_>) -> Option<PartyId> {
    let first = |name| message.values(name).next().and_then(NameAddr::parse);
    let (mut found, hidden) = match first(HeaderName::PAssertedIdentity) {
        Some(identity) => (party(&identity), wants_privacy(message)),
        None => {
            let rpid = first(HeaderName::RemotePartyId)?;
            let hidden = rpid.params.get(b"privacy").is_some_and(|p| !p.eq_ignore_ascii_case(b"off"));
            (party(&rpid), hidden)
        }
    };
    if hidden {
        found.number_presentation = Presentation::ProhibNotScreened;
        found.name_presentation = Presentation::ProhibNotScreened;
    }
    Some(found)
}

/// Whether a request asks that nobody outside learns whom it is from: by the network (`id`, RFC 3325 §9.3) or at all (`user`,
/// RFC 3323 §4.2).
fn wants_privacy(message: &Message<'_>) -> bool {
    asks_privacy(message, b"id") || asks_privacy(message, b"user")
}

/// Whether the Privacy header of a request holds this word; semicolons stand between them.
fn asks_privacy(message: &Message<'_>, word: &[u8]) -> bool {
    message.headers(HeaderName::Privacy).any(|value| holds_word(value, word))
}

fn holds_word(value: &[u8], word: &[u8]) -> bool {
    let mut words = value.split(|byte| matches!(byte, b';' | b','));
    words.any(|held| held.trim_ascii().eq_ignore_ascii_case(word))
}

/// A header that the URI of a History-Info holds (RFC 7044 §5): Reason, Privacy.
fn held_in(entry: &NameAddr<'_>, name: &[u8]) -> Option<Vec<u8>> {
    let mut held = entry.uri.headers.split(|byte| *byte == b'&');
    held.find_map(|header| {
        let (found, value) = header.split_at_checked(header.iter().position(|byte| *byte == b'=')?)?;
        let value = ::sip::uri::percent_decode(value.get(1..)?);
        found.eq_ignore_ascii_case(name).then(|| value.into_owned())
    })
}

/// The status for which an entry of History-Info was left, by its Reason (RFC 3326, RFC 7044 §10.2).
fn left_for(entry: &NameAddr<'_>) -> Option<u32> {
    let held = held_in(entry, b"Reason")?;
    let mut reasons = ::sip::header::CommaList::new(&held).filter_map(::sip::header::Reason::parse);
    let sip = reasons.find(|reason| reason.protocol.eq_ignore_ascii_case(b"SIP"))?;
    sip.cause().map(u32::from)
}

/// Who a response says it speaks for, when the endpoint is trusted to say.
pub(crate) fn asserted_by(message: &Message<'_>, endpoint: &Endpoint) -> Option<PartyId> {
    endpoint.trust_id_inbound.then(|| asserted(message)).flatten()
}

/// A name-addr without tag: `"Name" <sip:user@host>`; the name is quoted, the user escaped, CR and LF dropped.
/// `phone` adds `user=phone` when the user is a number (RFC 3261 §19.1.1).
pub(crate) fn name_addr(name: &str, user: &str, host: &str, phone: bool) -> String {
    let mut out = Vec::with_capacity(64);
    if !name.is_empty() {
        ::sip::write::push_display_name(&mut out, name.as_bytes());
    }
    out.extend_from_slice(b"<sip:");
    if !user.is_empty() {
        ::sip::uri::percent_encode_user(user.as_bytes(), &mut out);
        out.push(b'@');
    }
    ::sip::write::push_clean(&mut out, host.as_bytes());
    if phone && is_number(user) {
        out.extend_from_slice(b";user=phone");
    }
    out.push(b'>');
    String::from_utf8(out).unwrap_or_default()
}

/// Whether a user part is a telephone number.
pub(crate) fn is_number(user: &str) -> bool {
    let digits = user.strip_prefix('+').unwrap_or(user);
    !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit() || b"*#-.()".contains(&b))
}

/// From of our INVITE.
pub(crate) fn from(endpoint: &Endpoint, connected: &PartyId, own_host: &str, default_user: &str) -> String {
    // Who has no number is as unknown as who withholds it, unless the site calls him something.
    let unknown = connected.number().is_empty() && endpoint.from_user.is_empty();
    let hidden = connected.number_presentation.is_hidden() || unknown;
    let host = if endpoint.from_domain.is_empty() { own_host } else { &endpoint.from_domain };
    let (name, number) = match (hidden, connected.number()) {
        (true, _) => ("Anonymous", "anonymous"),
        (false, "") => (connected.name(), default_user),
        (false, number) => (connected.name(), number),
    };
    // A user that the site has set is nobody's name.
    let name = if endpoint.from_user.is_empty() || hidden { name } else { "" };
    let name = if connected.name_presentation.is_hidden() && !hidden { "" } else { name };
    let user = if endpoint.from_user.is_empty() { number } else { &endpoint.from_user };
    let host = if hidden && endpoint.from_domain.is_empty() { "anonymous.invalid" } else { host };
    name_addr(name, user, host, endpoint.user_eq_phone)
}

/// Reasons of Diversion (RFC 5806 §8), in the dialplan's words, and the SIP cause of History-Info (RFC 4458 §2).
const REASONS: [(&str, &str, u16); 13] = [
    ("unknown", "unknown", 404),
    ("cfb", "user-busy", 486),
    ("cfnr", "no-answer", 408),
    ("unavailable", "unavailable", 503),
    ("cfu", "unconditional", 302),
    ("time_of_day", "time-of-day", 404),
    ("dnd", "do-not-disturb", 404),
    ("deflection", "deflection", 480),
    ("follow_me", "follow-me", 404),
    ("out_of_order", "out-of-service", 404),
    ("away", "away", 404),
    ("cf_dte", "cf_dte", 404),
    ("send_to_vm", "send_to_vm", 404),
];

/// Diversion and History-Info about a call that was sent on, as the endpoint is to get them.
pub(crate) fn redirections(
    endpoint: &Endpoint,
    redirecting: &Redirecting,
    own_host: &str,
    target: &str,
) -> Vec<(String, String)> {
    let from = &redirecting.from;
    let hidden = from.number_presentation.is_hidden();
    let mut headers = Vec::new();
    if from.number().is_empty() || (hidden && !endpoint.trust_id_outbound) {
        return headers;
    }
    let host = if endpoint.from_domain.is_empty() { own_host } else { &endpoint.from_domain };
    let by = name_addr(from.name(), from.number(), host, endpoint.user_eq_phone);
    let (reason, status) = reason_of(redirecting);
    if endpoint.send_diversion {
        let privacy = if hidden { ";privacy=full" } else { "" };
        headers.push(("Diversion".to_owned(), format!("{by};reason={reason}{privacy}")));
    }
    if endpoint.send_history {
        // Both URIs are made of the request's own To.
        let private = if hidden { "?Privacy=history" } else { "" };
        let host = target.rsplit_once('@').map_or(own_host, |(_, host)| host);
        let entry = |party: &PartyId| name_addr(party.name(), party.number(), host, endpoint.user_eq_phone);
        let first = entry(from);
        let first = first.trim_end_matches('>');
        headers.push(("History-Info".to_owned(), format!("{first}{private}>;index=1")));
        let to = &redirecting.to;
        let last = if to.number().is_empty() { format!("<{target}>") } else { entry(to) };
        let last = last.trim_end_matches('>');
        headers.push(("History-Info".to_owned(), format!("{last};cause={status}>;index=1.1")));
    }
    headers
}

/// A reason as Diversion has it, and the cause of History-Info.
fn reason_of(redirecting: &Redirecting) -> (&'static str, u16) {
    let known = REASONS.iter().find(|(word, ..)| *word == redirecting.reason);
    let (_, reason, status) = *known.unwrap_or(&REASONS[0]);
    (reason, status)
}

/// What a 181 or 3xx says of where the call is sent on to: here Diversion names the new target.
pub(crate) fn sent_on_to(
    endpoint: &Endpoint,
    redirecting: &Redirecting,
    own_host: &str,
) -> Vec<(String, String)> {
    let mut headers = vec![("Supported".to_owned(), "histinfo".to_owned())];
    let (from, to) = (&redirecting.from, &redirecting.to);
    let host = if endpoint.from_domain.is_empty() { own_host } else { &endpoint.from_domain };
    let shown = |party: &PartyId| !party.number_presentation.is_hidden() || endpoint.trust_id_outbound;
    let named = |party: &PartyId| name_addr(party.name(), party.number(), host, endpoint.user_eq_phone);
    let (reason, status) = reason_of(redirecting);
    if endpoint.send_diversion && !to.number().is_empty() && shown(to) {
        headers.push(("Diversion".to_owned(), format!("{};reason={reason}", named(to))));
    }
    if endpoint.send_history && !from.number().is_empty() && shown(from) {
        headers.push(("History-Info".to_owned(), format!("{};index=1", named(from))));
        if !to.number().is_empty() && shown(to) {
            let to = named(to);
            let to = to.trim_end_matches('>');
            headers.push(("History-Info".to_owned(), format!("{to};cause={status}>;index=1.1")));
        }
    }
    headers
}

/// Who sent the call on, as a request says: Diversion, the latest first (RFC 5806 §4), else History-Info.
pub(crate) fn redirected_by(message: &Message<'_>) -> Option<Redirecting> {
    let hidden = |party: PartyId, privacy: Option<&[u8]>| match privacy {
        Some(word) if !word.eq_ignore_ascii_case(b"off") && !word.eq_ignore_ascii_case(b"name") => PartyId {
            number_presentation: Presentation::ProhibNotScreened,
            name_presentation: Presentation::ProhibNotScreened,
            ..party
        },
        _ => party,
    };
    let diversions: Vec<NameAddr<'_>> =
        message.values(HeaderName::Diversion).take(REDIRECTIONS_MAX).filter_map(NameAddr::parse).collect();
    if let (Some(last), Some(first)) = (diversions.first(), diversions.last()) {
        let told = |of: &NameAddr<'_>| hidden(party(of), of.params.get(b"privacy"));
        let reason =
            last.params.get(b"reason").map(|word| text(&::sip::header::unquote(word))).unwrap_or_default();
        let word = REASONS.iter().find(|(_, sip, _)| sip.eq_ignore_ascii_case(&reason));
        let counted = last.params.get(b"counter").and_then(::sip::header::delta_seconds);
        return Some(Redirecting {
            orig: told(first),
            from: told(last),
            reason: word.map_or("unknown", |(word, ..)| word).to_owned(),
            count: counted.unwrap_or(0).max(u32::try_from(diversions.len()).unwrap_or(u32::MAX)),
            ..Redirecting::default()
        });
    }
    // The last entry is whom the call is for; the one before it sent it there.
    let history: Vec<NameAddr<'_>> =
        message.values(HeaderName::HistoryInfo).take(REDIRECTIONS_MAX).filter_map(NameAddr::parse).collect();
    let (to, before) = history.split_last()?;
    let from = before.last()?;
    let cause = to.uri.params.get(b"cause").and_then(::sip::header::delta_seconds).or_else(|| left_for(from));
    let all_hidden = asks_privacy(message, b"history");
    let told = |of: &NameAddr<'_>| {
        let asks = held_in(of, b"Privacy").is_some_and(|value| holds_word(&value, b"history"));
        hidden(party(of), (asks || all_hidden).then_some(b"full"))
    };
    let word = REASONS.iter().find(|(_, _, status)| Some(u32::from(*status)) == cause && *status != 404);
    Some(Redirecting {
        orig: before.first().map(told).unwrap_or_default(),
        from: told(from),
        to: party(to),
        reason: word.map_or("unknown", |(word, ..)| word).to_owned(),
        count: u32::try_from(before.len()).unwrap_or(u32::MAX),
    })
}

/// Where a 181 says that the call goes: from whom we called to whom its Diversion names, which there is the new target.
pub(crate) fn sent_on_by(message: &Message<'_>) -> Option<Redirecting> {
    let told = redirected_by(message)?;
    let is_diverted = message.has(HeaderName::Diversion);
    let called = message.to().map(|to| party(&to)).unwrap_or_default();
    let (from, to) = if is_diverted { (called, told.from) } else { (told.from, told.to) };
    Some(Redirecting { orig: told.orig, from, to, reason: told.reason, count: told.count })
}

/// Redirections of one request that are looked at; a call that was sent on more often is in a circle.
const REDIRECTIONS_MAX: usize = 32;

/// The identity headers that the endpoint is to get about `party`, who is `calling` or `called`.
pub(crate) fn assertions(
    endpoint: &Endpoint,
    party: &PartyId,
    own_host: &str,
    role: &str,
) -> Vec<(String, String)> {
    let hidden = party.number_presentation.is_hidden();
    let mut headers = Vec::new();
    if party.number().is_empty() || (hidden && !endpoint.trust_id_outbound) {
        return headers;
    }
    let host = if endpoint.from_domain.is_empty() { own_host } else { &endpoint.from_domain };
    let real = name_addr(party.name(), party.number(), host, endpoint.user_eq_phone);
    if endpoint.send_pai {
        headers.push(("P-Asserted-Identity".to_owned(), real.clone()));
        if hidden {
            headers.push(("Privacy".to_owned(), "id".to_owned()));
        }
    }
    if endpoint.send_rpid {
        let privacy = if hidden { "full" } else { "off" };
        headers
            .push(("Remote-Party-ID".to_owned(), format!("{real};party={role};privacy={privacy};screen=no")));
    }
    headers
}
