//! SIP endpoints, addresses of record and contacts.

use driver::sip::{AorRow, ContactRow, ContactState, EndpointRow};

use super::super::packet::Message;
use super::super::table::{ActionRow, After, Done, Turn, must};

pub(super) const ROWS: &[ActionRow] = &[
    ActionRow {
        name: "PJSIPShowEndpoints",
        class: &["system", "reporting"],
        synopsis: "Lists endpoints.",
        fields: &[],
        run: show_endpoints,
    },
    ActionRow {
        name: "PJSIPShowEndpoint",
        class: &["system", "reporting"],
        synopsis: "Tells everything about one endpoint.",
        fields: &[must("Endpoint", "name")],
        run: show_endpoint,
    },
    ActionRow {
        name: "PJSIPShowAors",
        class: &["system", "reporting"],
        synopsis: "Lists addresses of record.",
        fields: &[],
        run: show_aors,
    },
    ActionRow {
        name: "PJSIPShowContacts",
        class: &["system", "reporting"],
        synopsis: "Lists contacts.",
        fields: &[],
        run: show_contacts,
    },
    ActionRow {
        name: "PJSIPQualify",
        class: &["system", "reporting"],
        synopsis: "Asks the contacts of an endpoint whether they answer; ContactStatus tells.",
        fields: &[must("Endpoint", "name")],
        run: qualify,
    },
    ActionRow {
        name: "SIPpeers",
        class: &["system", "reporting"],
        synopsis: "Lists endpoints in the form of the older driver, for clients that know only that.",
        fields: &[],
        run: peers,
    },
];

fn endpoint_rows(turn: &Turn<'_>, only: Option<&str>) -> Vec<EndpointRow> {
    turn.site.sip.borrow().endpoint_rows(only, &turn.site.shard.core.borrow())
}

fn contact_rows(turn: &Turn<'_>) -> Vec<ContactRow> {
    turn.site.sip.borrow().contact_rows(None, &turn.site.shard.core.borrow())
}

fn contacts(aors: &[AorRow]) -> String {
    let contacts = aors.iter().flat_map(|aor| &aor.contacts);
    contacts.fold(String::new(), |mut list, contact| {
        list.push_str(&contact.aor);
        list.push('/');
        list.push_str(&contact.uri);
        list.push(',');
        list
    })
}

fn names<'a>(items: impl Iterator<Item = &'a str>) -> String {
    items.collect::<Vec<_>>().join(",")
}

fn option<'a>(row: &'a EndpointRow, name: &str) -> &'a str {
    row.options.iter().find(|(known, _)| *known == name).map_or("", |(_, value)| value)
}

fn show_endpoints(turn: &mut Turn<'_>) -> Done {
    let rows = endpoint_rows(turn, None);
    if rows.is_empty() {
        return Err("No endpoints found".into());
    }
    turn.begin_list("A listing of Endpoints follows, presented as EndpointList events");
    for row in &rows {
        turn.item("EndpointList")
            .field("ObjectType", "endpoint")
            .field("ObjectName", &row.name)
            .field("Transport", &row.transport)
            .field("Aor", names(row.aors.iter().map(|aor| aor.name.as_str())))
            .field("Auths", names(row.auths.iter().map(|(name, _)| name.as_str())))
            .field("OutboundAuths", option(row, "outbound_auth"))
            .field("Contacts", contacts(&row.aors))
            .field("DeviceState", row.state.text())
            .field("ActiveChannels", row.channels.join(","))
            .end();
    }
    turn.end_list("EndpointListComplete", rows.len()).end();
    Ok(After::Go)
}

fn show_endpoint(turn: &mut Turn<'_>) -> Done {
    let name = turn.need("Endpoint")?.trim_start_matches("PJSIP/").to_owned();
    let Some(row) = endpoint_rows(turn, Some(&name)).pop() else {
        return Err(format!("Unable to retrieve endpoint {name}").into());
    };
    turn.begin_list("Following are Events for each object associated with the Endpoint");
    let detail = turn
        .item("EndpointDetail")
        .field("ObjectType", "endpoint")
        .field("ObjectName", &row.name)
        .field("DeviceState", row.state.text())
        .field("ActiveChannels", row.channels.join(","));
    // Names as in the list of options, each word with a capital: `dtmf_mode` is DtmfMode.
    row.options.iter().fold(detail, |detail, (name, value)| detail.field(&camel(name), value)).end();
    let mut items = 1;
    for aor in &row.aors {
        items += 1;
        aor_fields(turn.item("AorDetail"), aor).field("EndpointName", &row.name).end();
        for contact in &aor.contacts {
            items += 1;
            contact_fields(turn.item("ContactStatusDetail"), contact).field("EndpointName", &row.name).end();
        }
    }
    for (auth, user) in &row.auths {
        items += 1;
        // Secrets have no field here.
        turn.item("AuthDetail")
            .field("ObjectType", "auth")
            .field("ObjectName", auth)
            .field("Username", user)
            .field("EndpointName", &row.name)
            .end();
    }
    for identify in &row.identifies {
        items += 1;
        turn.item("IdentifyDetail")
            .field("ObjectType", "identify")
            .field("ObjectName", identify)
            .field("Endpoint", &row.name)
            .field("EndpointName", &row.name)
            .end();
    }
    turn.end_list("EndpointDetailComplete", items).end();
    Ok(After::Go)
}

fn camel(name: &str) -> String {
    name.split('_')
        .flat_map(|word| {
            let mut chars = word.chars();
            let first = chars.next().map(|c| c.to_ascii_uppercase());
            first.into_iter().chain(chars)
        })
        .collect()
}

fn aor_fields<'a>(message: Message<'a>, aor: &AorRow) -> Message<'a> {
    let registered = aor.contacts.iter().filter(|contact| contact.expires.is_some()).count();
    message
        .field("ObjectType", "aor")
        .field("ObjectName", &aor.name)
        .field("MaxContacts", aor.max_contacts)
        .field("Contacts", names(aor.contacts.iter().map(|contact| contact.uri.as_str())))
        .field("TotalContacts", aor.contacts.len())
        .field("ContactsRegistered", registered)
}

/// The word of contact events for a state.
fn contact_status(state: ContactState) -> &'static str {
    match state {
        ContactState::NonQualified => "NonQualified",
        ContactState::Unknown => "Unknown",
        ContactState::Available => "Reachable",
        ContactState::Unavailable => "Unreachable",
    }
}

fn contact_fields<'a>(message: Message<'a>, contact: &ContactRow) -> Message<'a> {
    message
        .field("AOR", &contact.aor)
        .field("URI", &contact.uri)
        .field("UserAgent", &contact.user_agent)
        .field("RegExpire", contact.expires.unwrap_or(0))
        .field("ViaAddress", &contact.via)
        .field("Status", contact_status(contact.state))
        .field("RoundtripUsec", contact.roundtrip.map_or(0, |time| time.as_micros()))
}

fn show_aors(turn: &mut Turn<'_>) -> Done {
    let rows = turn.site.sip.borrow().aor_rows(&turn.site.shard.core.borrow());
    if rows.is_empty() {
        return Err("No Aors found".into());
    }
    turn.begin_list("A listing of Aors follows, presented as AorList events");
    for row in &rows {
        aor_fields(turn.item("AorList"), row).end();
    }
    turn.end_list("AorListComplete", rows.len()).end();
    Ok(After::Go)
}

fn show_contacts(turn: &mut Turn<'_>) -> Done {
    let rows = contact_rows(turn);
    if rows.is_empty() {
        return Err("No Contacts found".into());
    }
    turn.begin_list("A listing of Contacts follows, presented as ContactList events");
    for row in &rows {
        let message = turn
            .item("ContactList")
            .field("ObjectType", "contact")
            .field("ObjectName", format_args!("{};@{}", row.aor, row.uri))
            .field("Endpoint", &row.endpoint);
        contact_fields(message, row).end();
    }
    turn.end_list("ContactListComplete", rows.len()).end();
    Ok(After::Go)
}

fn qualify(turn: &mut Turn<'_>) -> Done {
    let name = turn.need("Endpoint")?.trim_start_matches("PJSIP/").to_owned();
    let asked = turn.site.sip.borrow_mut().qualify_endpoint(&mut turn.site.shard.core.borrow_mut(), &name);
    match asked {
        Some(_) => turn.success("Endpoint found, will qualify"),
        None => Err(format!("Unable to retrieve endpoint {name}").into()),
    }
}

fn peers(turn: &mut Turn<'_>) -> Done {
    let rows = endpoint_rows(turn, None);
    turn.begin_list("Peer status list will follow");
    for row in &rows {
        let contact = row.aors.iter().flat_map(|aor| &aor.contacts).next();
        let (address, port) = contact.map_or(("-none-", "0"), |contact| host_and_port(&contact.uri));
        let dynamic = row.aors.iter().any(|aor| aor.max_contacts > 0);
        turn.item("PeerEntry")
            .field("Channeltype", "SIP")
            .field("ObjectName", &row.name)
            .field("ChanObjectType", "peer")
            .field("IPaddress", address)
            .field("IPport", port)
            .field("Dynamic", if dynamic { "yes" } else { "no" })
            .field("AutoForcerport", "no")
            .field("Forcerport", if option(row, "force_rport") == "true" { "yes" } else { "no" })
            .field("AutoComedia", "no")
            .field("Comedia", if option(row, "rtp_symmetric") == "true" { "yes" } else { "no" })
            .field("VideoSupport", "no")
            .field("TextSupport", "no")
            .field("ACL", "no")
            .field("Status", peer_status(contact))
            .field("RealtimeDevice", "no")
            .field("Description", &row.caller)
            .field("Accountcode", option(row, "accountcode"))
            .end();
    }
    turn.end_list("PeerlistComplete", rows.len()).end();
    Ok(After::Go)
}

/// Status in the older driver's words.
fn peer_status(contact: Option<&ContactRow>) -> String {
    match contact.map(|contact| (contact.state, contact.roundtrip)) {
        Some((ContactState::Available, time)) => {
            format!("OK ({} ms)", time.map_or(0, |time| time.as_millis()))
        }
        Some((ContactState::Unavailable, _)) => "UNREACHABLE".to_owned(),
        Some((ContactState::NonQualified, _)) => "Unmonitored".to_owned(),
        Some((ContactState::Unknown, _)) | None => "UNKNOWN".to_owned(),
    }
}

/// Host and port of a contact URI as text; port 5060 when none is written.
fn host_and_port(uri: &str) -> (&str, &str) {
    let rest = uri.split_once(':').map_or(uri, |(_, rest)| rest);
    let rest = rest.rsplit_once('@').map_or(rest, |(_, host)| host);
    let host = rest.split([';', '?', '>']).next().unwrap_or(rest);
    match host.strip_prefix('[').and_then(|host| host.split_once(']')) {
        Some((host, port)) => (host, port.strip_prefix(':').unwrap_or("5060")),
        None => host.split_once(':').unwrap_or((host, "5060")),
    }
}
