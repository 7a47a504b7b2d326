//! How SIP objects look: the columns of `pjsip show` and the JSON of the same rows.

use std::fmt::Write as _;

use driver::sip::{AorRow, Bind, ContactRow, EndpointRow, RegistrationRow};
use serde_json::{Value, json};
use store::config::pjsip::{Identify, SourceMatch};

use super::text::clean;

pub(super) const RULE: &str =
    "==========================================================================================";
pub(super) const NOTHING: &str = "No objects found.\n\n";

/// `<Name....>` of this width.
pub(super) fn field(name: &str, width: usize) -> String {
    let inner = width.saturating_sub(2);
    format!("<{name:.<inner$}>")
}

pub(super) fn found(count: usize) -> String {
    format!("\nObjects found: {count}\n\n")
}

/// The short name of a contact: the start of the MD5 of its URI.
pub(super) fn hash(contact: &ContactRow) -> String {
    contact.hash().chars().take(10).collect()
}

pub(super) fn rtt_ms(contact: &ContactRow) -> Option<f64> {
    contact.roundtrip.map(|rtt| (rtt.as_secs_f64() * 1e6).round() / 1e3)
}

pub(super) fn rtt_text(contact: &ContactRow) -> String {
    rtt_ms(contact).map_or_else(|| "nan".to_owned(), |ms| format!("{ms:.3}"))
}

/// A contact's line below its AOR; `indent` and `width` of the first column make the table.
pub(super) fn contact_line(contact: &ContactRow, indent: usize, width: usize, out: &mut String) {
    let name = format!("{}/{}", contact.aor, contact.uri);
    let _ = writeln!(
        out,
        "{:indent$}Contact:  {:<width$} {:<10} {:<8} {:>11}",
        "",
        clean(&name),
        hash(contact),
        contact.state.name(),
        rtt_text(contact)
    );
}

pub(super) fn contact_header(indent: usize, width: usize, out: &mut String) {
    let _ = writeln!(
        out,
        "{:indent$}Contact:  {} {} {} {}",
        "",
        field("Aor/ContactUri", width),
        field("Hash", 10),
        field("Status", 8),
        field("RTT(ms)", 11)
    );
}

pub(super) fn contact_json(contact: &ContactRow) -> Value {
    json!({
        "aor": contact.aor, "endpoint": contact.endpoint, "uri": contact.uri, "hash": hash(contact),
        "status": contact.state.name(), "rtt_ms": rtt_ms(contact), "user_agent": contact.user_agent,
        "via_address": contact.via, "expires": contact.expires,
    })
}

pub(super) fn aor_json(aor: &AorRow) -> Value {
    json!({
        "name": aor.name, "max_contacts": aor.max_contacts,
        "contacts": aor.contacts.iter().map(contact_json).collect::<Vec<_>>(),
    })
}

pub(super) fn options_json(options: &[(&'static str, String)]) -> Value {
    options.iter().map(|(name, value)| json!({ "name": name, "value": value })).collect()
}

pub(super) fn endpoint_json(endpoint: &EndpointRow) -> Value {
    let auths: Vec<Value> =
        endpoint.auths.iter().map(|(name, username)| json!({ "name": name, "username": username })).collect();
    json!({
        "name": endpoint.name, "caller_id": endpoint.caller, "state": endpoint.state.text(),
        "channels": endpoint.channels, "auths": auths,
        "aors": endpoint.aors.iter().map(aor_json).collect::<Vec<_>>(),
        "transport": endpoint.transport, "identifies": endpoint.identifies, "realtime": endpoint.is_realtime,
        "options": options_json(&endpoint.options),
    })
}

pub(super) fn registration_json(row: &RegistrationRow, whole: bool) -> Value {
    let mut json = json!({
        "name": row.name, "server_uri": row.server_uri, "client_uri": row.client_uri, "auth": row.auth,
        "status": row.status.word(), "expires": row.expires,
    });
    if let (true, Some(object)) = (whole, json.as_object_mut()) {
        object.insert("options".to_owned(), options_json(&row.options));
    }
    json
}

pub(super) fn registration_header() -> String {
    format!(
        "\n {}  {}  {}\n{RULE}\n\n",
        field("Registration/ServerURI", 56),
        field("Auth", 26),
        field("Status", 16)
    )
}

pub(super) fn registration_line(row: &RegistrationRow, out: &mut String) {
    let name = format!("{}/{}", row.name, row.server_uri);
    let expires = row.expires.map(|seconds| format!(" (exp. {seconds}s)")).unwrap_or_default();
    let auth = if row.auth.is_empty() { "n/a" } else { &row.auth };
    let _ = writeln!(out, " {:<56}  {:<26}  {:<16}{expires}", clean(&name), clean(auth), row.status.word());
}

pub(super) fn named(endpoint: &EndpointRow) -> String {
    match endpoint.caller.as_str() {
        "" => endpoint.name.clone(),
        caller => {
            let party = call::PartyId::parse(caller);
            let number = party.number();
            format!("{}/{}", endpoint.name, if number.is_empty() { caller } else { number })
        }
    }
}

pub(super) fn endpoint_line(endpoint: &EndpointRow, out: &mut String) {
    let limit = endpoint.options.iter().find(|(name, _)| *name == "device_state_busy_at");
    let limit = limit.map(|(_, value)| value.as_str()).filter(|value| *value != "0").unwrap_or("inf");
    let _ = writeln!(
        out,
        " Endpoint:  {:<51}  {:<12}  {} of {limit}",
        clean(&named(endpoint)),
        endpoint.state.text(),
        endpoint.channels.len()
    );
}

pub(super) fn endpoint_header() -> String {
    let mut out = String::from("\n");
    let _ = writeln!(
        out,
        " Endpoint:  {}  {}  {}",
        field("Endpoint/CID", 51),
        field("State", 12),
        field("Channels", 11)
    );
    let _ = writeln!(out, "    I/OAuth:  {}", field("AuthId/UserName", 76));
    let _ = writeln!(out, "        Aor:  {}  {}", field("Aor", 49), field("MaxContact", 12));
    contact_header(6, 42, &mut out);
    let _ = writeln!(
        out,
        "  Transport:  {}  {}  {}  {}  {}",
        field("TransportId", 21),
        field("Type", 6),
        field("cos", 5),
        field("tos", 5),
        field("BindAddress", 31)
    );
    let _ = writeln!(out, "   Identify:  {}", field("Identify/Endpoint", 76));
    let _ = writeln!(out, "        Match:  {}", field("criteria", 35));
    let _ = writeln!(
        out,
        "    Channel:  {}  {}  {}",
        field("ChannelId", 49),
        field("State", 12),
        field("Time", 11)
    );
    let _ = writeln!(
        out,
        "        Exten: {}  CLCID: {}",
        field("DialedExten", 24),
        field("ConnectedLineCID", 25)
    );
    let _ = write!(out, "{RULE}\n\n");
    out
}

pub(super) fn transport_line(bind: &Bind, indent: &str, width: usize, out: &mut String) {
    let _ = writeln!(
        out,
        "{indent}Transport:  {:<21}  {:>6}  {:>5}  {:>5}  {:<width$}",
        clean(&bind.name),
        protocol(bind),
        0,
        0,
        bind.local.to_string()
    );
}

pub(super) fn protocol(bind: &Bind) -> String {
    format!("{:?}", bind.protocol).to_ascii_lowercase()
}

pub(super) fn contact_options(contact: &ContactRow) -> Vec<(&'static str, String)> {
    vec![
        ("aor", contact.aor.clone()),
        ("endpoint", contact.endpoint.clone()),
        ("expires", contact.expires.map_or_else(|| "never".to_owned(), |seconds| seconds.to_string())),
        ("uri", contact.uri.clone()),
        ("user_agent", contact.user_agent.clone()),
        ("via_addr", contact.via.clone()),
    ]
}

/// What an identify object matches, as it was written.
pub(super) fn matches_of(identify: &Identify) -> Vec<String> {
    let sources = identify.match_source.iter().map(|source| match source {
        SourceMatch::Net(net) => net.to_string(),
        SourceMatch::Port(net, port) => format!("{net}:{port}"),
        SourceMatch::Host(host) => host.clone(),
    });
    let headers = identify.match_header.iter().map(|header| {
        let quote = if header.regex { "/" } else { "" };
        format!("{}: {quote}{}{quote}", header.name, header.value)
    });
    let uri = Some(&identify.match_request_uri).filter(|uri| !uri.is_empty()).cloned();
    sources.chain(headers).chain(uri).collect()
}

/// How far the rule below `ParameterValue` goes.
const PARAMETER_VALUE: usize = 23;

pub(super) fn parameters(options: &[(&'static str, String)], out: &mut String) {
    let width = options.iter().map(|(name, _)| name.len()).max().unwrap_or(0).max("ParameterName".len());
    let _ = writeln!(out, "\n {:<width$} : ParameterValue", "ParameterName");
    // As wide as the longest name, the colon and the value of the first option want.
    let _ = writeln!(out, " {}", "=".repeat(width + 3 + PARAMETER_VALUE));
    for (name, value) in options {
        let _ = writeln!(out, " {name:<width$} : {}", clean(value));
    }
    out.push('\n');
}
