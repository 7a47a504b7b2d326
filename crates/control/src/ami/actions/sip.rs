//! SIP endpoints, addresses of record and contacts.

use driver::sip::{AorRow, ContactRow, ContactState, EndpointRow};

use super::super::table::{ActionRow, After, Done, Turn, may, must};
use super::sip_objects::{self as objects, names};

pub(super) const ROWS: &[ActionRow] = &[
    ActionRow {
        name: "PJSIPShowEndpoints",
        class: &["system"],
        synopsis: "Lists endpoints.",
        fields: &[],
        run: show_endpoints,
    },
    ActionRow {
        name: "PJSIPShowEndpoint",
        class: &["system"],
        synopsis: "Tells everything about one endpoint.",
        fields: &[may("Endpoint", "name")],
        run: show_endpoint,
    },
    ActionRow {
        name: "PJSIPShowAors",
        class: &["system"],
        synopsis: "Lists addresses of record.",
        fields: &[],
        run: show_aors,
    },
    ActionRow {
        name: "PJSIPShowContacts",
        class: &["system"],
        synopsis: "Lists contacts.",
        fields: &[],
        run: show_contacts,
    },
    ActionRow {
        name: "PJSIPQualify",
        class: &["system", "reporting"],
        synopsis: "Asks the contacts of an endpoint whether they answer; ContactStatus tells.",
        fields: &[may("Endpoint", "name")],
        run: qualify,
    },
    ActionRow {
        name: "SIPpeers",
        class: &["system", "reporting"],
        synopsis: "Lists endpoints in the form of the older driver, for clients that know only that.",
        fields: &[],
        run: peers,
    },
    ActionRow {
        name: "SIPshowpeer",
        class: &["system", "reporting"],
        synopsis: "Tells of one endpoint in the form of the older driver.",
        fields: &[must("Peer", "name")],
        run: show_peer,
    },
    ActionRow {
        name: "SIPqualifypeer",
        class: &["system", "reporting"],
        synopsis: "PJSIPQualify under the name of the older driver.",
        fields: &[must("Peer", "name")],
        run: qualify_peer,
    },
    ActionRow {
        name: "PJSIPShowAuths",
        class: &["system"],
        synopsis: "Lists the credentials of endpoints, without secrets.",
        fields: &[],
        run: show_auths,
    },
    ActionRow {
        name: "PJSIPShowRegistrationsOutbound",
        class: &["system", "reporting"],
        synopsis: "Lists registrations of ours with other servers.",
        fields: &[],
        run: outbound_registrations,
    },
    ActionRow {
        name: "PJSIPShowRegistrationsInbound",
        class: &["system"],
        synopsis: "Lists addresses of record that phones register with.",
        fields: &[],
        run: inbound_registrations,
    },
    ActionRow {
        name: "PJSIPShowRegistrationInboundContactStatuses",
        class: &["system"],
        synopsis: "Lists the contacts that phones have registered.",
        fields: &[],
        run: inbound_contacts,
    },
    ActionRow {
        name: "PJSIPShowResourceLists",
        class: &["system"],
        synopsis: "Lists resource lists.",
        fields: &[],
        run: resource_lists,
    },
    ActionRow {
        name: "PJSIPRegister",
        class: &["system", "reporting"],
        synopsis: "Registers with another server at once.",
        fields: &[must("Registration", "its section of pjsip.conf, or *all")],
        run: |turn| register(turn, true),
    },
    ActionRow {
        name: "PJSIPUnregister",
        class: &["system", "reporting"],
        synopsis: "Ends a registration with another server.",
        fields: &[must("Registration", "its section of pjsip.conf, or *all")],
        run: |turn| register(turn, false),
    },
];

fn endpoint_rows(turn: &Turn<'_>, only: Option<&str>) -> Vec<EndpointRow> {
    turn.site.sip.borrow().endpoint_rows(only, &turn.site.shard.core.borrow())
}

fn contact_rows(turn: &Turn<'_>) -> Vec<ContactRow> {
    turn.site.sip.borrow().contact_rows(None, &turn.site.shard.core.borrow())
}

/// Seconds since the epoch.
fn wall(turn: &Turn<'_>) -> i64 {
    turn.site.shard.core.borrow().services.wall.now_micros().div_euclid(1_000_000)
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
            .field("ActiveChannels", row.channels.len())
            .end();
    }
    turn.end_list("EndpointListComplete", rows.len()).end();
    Ok(After::Go)
}

/// Options that the field's events do not have; told only of endpoints that use them.
fn is_own_default(name: &str, value: &str) -> bool {
    matches!((name, value), ("call_limit", "0") | ("contact_user" | "security_mechanisms", ""))
}

fn show_endpoint(turn: &mut Turn<'_>) -> Done {
    let missing = "PJSIPShowEndpoint requires an endpoint name";
    let name = turn.get("Endpoint").ok_or(missing)?.trim_start_matches("PJSIP/").to_owned();
    let Some(row) = endpoint_rows(turn, Some(&name)).pop() else {
        return Err(format!("Unable to retrieve endpoint {name}").into());
    };
    turn.begin_list("Following are Events for each object associated with the Endpoint");
    let detail = turn.item("EndpointDetail").field("ObjectType", "endpoint").field("ObjectName", &row.name);
    // Names as in the list of options, each word with a capital: `dtmf_mode` is DtmfMode.
    let told = row.options.iter().filter(|(name, value)| !is_own_default(name, value));
    let detail = told.fold(detail, |detail, (name, value)| detail.field(&camel(name), value));
    detail.field("DeviceState", row.state.text()).field("ActiveChannels", row.channels.len()).end();
    let mut items = 1;
    let now = wall(turn);
    let snapshot = turn.site.snapshot.borrow().clone();
    let pjsip = &snapshot.pjsip;
    let outbound = option(&row, "outbound_auth").split(',').filter(|name| !name.is_empty());
    let outbound = outbound.map(|name| (name.to_owned(), String::new()));
    for (auth, user) in row.auths.iter().cloned().chain(outbound) {
        items += 1;
        objects::auth(turn.item("AuthDetail"), pjsip, &auth, &user).field("EndpointName", &row.name).end();
    }
    if let Some(transport) = pjsip.transports.get(&row.transport) {
        items += 1;
        let message = objects::transport(turn.item("TransportDetail"), &row.transport, transport);
        message.field("EndpointName", &row.name).end();
    }
    for aor in &row.aors {
        items += 1;
        let message = objects::aor(turn.item("AorDetail"), aor).field("Contacts", objects::contacts_of(aor));
        objects::aor_counts(message, aor).field("EndpointName", &row.name).end();
    }
    for contact in row.aors.iter().flat_map(|aor| &aor.contacts) {
        items += 1;
        objects::contact_detail(turn.item("ContactStatusDetail"), contact, now).end();
    }
    for name in &row.identifies {
        items += 1;
        let object = pjsip.identifies.iter().find(|identify| *identify.origin.name == **name);
        objects::identify(turn.item("IdentifyDetail"), name, object).field("EndpointName", &row.name).end();
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

fn show_aors(turn: &mut Turn<'_>) -> Done {
    let rows = turn.site.sip.borrow().aor_rows(&turn.site.shard.core.borrow());
    if rows.is_empty() {
        return Err("No AORs found".into());
    }
    turn.begin_list("A listing of AORs follows, presented as AorList events");
    for row in &rows {
        objects::aor(turn.item("AorList"), row).field("Contacts", objects::contacts_of(row)).end();
    }
    turn.end_list("AorListComplete", rows.len()).end();
    Ok(After::Go)
}

fn show_contacts(turn: &mut Turn<'_>) -> Done {
    let mut rows = contact_rows(turn);
    // Those that are written are no objects of their own.
    rows.retain(|row| row.expires.is_some());
    if rows.is_empty() {
        return Err("No Contacts found".into());
    }
    turn.begin_list("A listing of Contacts follows, presented as ContactList events");
    let now = wall(turn);
    let server = turn.site.shard.core.borrow().settings.system_name.clone();
    for row in &rows {
        objects::contact_listed(turn.item("ContactList"), row, &server, now).end();
    }
    turn.end_list("ContactListComplete", rows.len()).end();
    Ok(After::Go)
}

fn qualify(turn: &mut Turn<'_>) -> Done {
    let missing = "Endpoint parameter missing.";
    let name = turn.get("Endpoint").ok_or(missing)?.trim_start_matches("PJSIP/").to_owned();
    let asked = turn.site.sip.borrow_mut().qualify_endpoint(&mut turn.site.shard.core.borrow_mut(), &name);
    match asked {
        Some(_) => turn.success("Endpoint found, will qualify"),
        None => Err("Unable to retrieve endpoint\n".into()),
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
            .field("RealtimeDevice", if row.is_realtime { "cached" } else { "no" })
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

fn show_peer(turn: &mut Turn<'_>) -> Done {
    let name = turn.need("Peer")?.to_owned();
    let Some(row) = endpoint_rows(turn, Some(&name)).pop() else {
        return Err(format!("Peer {name} not found.").into());
    };
    let contact = row.aors.iter().flat_map(|aor| &aor.contacts).next();
    let (address, port) = contact.map_or(("(null)", "0"), |contact| host_and_port(&contact.uri));
    let dynamic = row.aors.iter().any(|aor| aor.max_contacts > 0);
    turn.response("Success")
        .field("Channeltype", "SIP")
        .field("ObjectName", &row.name)
        .field("ChanObjectType", "peer")
        .field("SecretExist", yes(!row.auths.is_empty()))
        .field("Context", option(&row, "context"))
        .field("Accountcode", option(&row, "accountcode"))
        .field("Callerid", &row.caller)
        .field("Dynamic", yes(dynamic))
        .field("Address-IP", address)
        .field("Address-Port", port)
        .field("Codecs", format_args!("({})", option(&row, "allow").replace(',', "|")))
        .field("Status", peer_status(contact))
        .field("SIP-Useragent", contact.map_or("", |contact| &contact.user_agent))
        .field("Reg-Contact", contact.map_or("", |contact| &contact.uri))
        .end();
    Ok(After::Go)
}

const fn yes(yes: bool) -> &'static str {
    if yes { "Y" } else { "N" }
}

fn qualify_peer(turn: &mut Turn<'_>) -> Done {
    let name = turn.need("Peer")?.to_owned();
    let asked = turn.site.sip.borrow_mut().qualify_endpoint(&mut turn.site.shard.core.borrow_mut(), &name);
    match asked {
        Some(_) => turn.success("SIP peer qualified"),
        None => Err(format!("Peer {name} not found").into()),
    }
}

fn show_auths(turn: &mut Turn<'_>) -> Done {
    let mut auths: Vec<(String, String)> =
        endpoint_rows(turn, None).into_iter().flat_map(|row| row.auths).collect();
    let written = turn.site.snapshot.borrow().clone();
    auths.extend(written.pjsip.auths.iter().map(|(name, auth)| (name.clone(), auth.username.clone())));
    auths.sort();
    auths.dedup();
    if auths.is_empty() {
        return Err("No Auths found".into());
    }
    let snapshot = turn.site.snapshot.borrow().clone();
    turn.begin_list("A listing of Auths follows, presented as AuthList events");
    for (name, user) in &auths {
        objects::auth(turn.item("AuthList"), &snapshot.pjsip, name, user).end();
    }
    turn.end_list("AuthListComplete", auths.len()).end();
    Ok(After::Go)
}

fn outbound_registrations(turn: &mut Turn<'_>) -> Done {
    let rows = turn.site.sip.borrow().registration_rows(turn.now);
    turn.begin_list("Following are Events for each Outbound registration");
    let registered = rows.iter().filter(|row| row.status.word() == "Registered").count();
    let snapshot = turn.site.snapshot.borrow().clone();
    for row in &rows {
        let object = snapshot.pjsip.registrations.get(&row.name);
        objects::registration(turn.item("OutboundRegistrationDetail"), row, object)
            .field("Status", row.status.word())
            .field("NextReg", row.expires.unwrap_or(0))
            .end();
        let auths = object.map_or_else(|| vec![row.auth.clone()], |object| object.outbound_auth.clone());
        for auth in auths.iter().filter(|auth| !auth.is_empty()) {
            objects::auth(turn.item("AuthDetail"), &snapshot.pjsip, auth, "").end();
        }
    }
    turn.end_list("OutboundRegistrationDetailComplete", rows.len())
        .field("Registered", registered)
        .field("NotRegistered", rows.len() - registered)
        .end();
    Ok(After::Go)
}

fn inbound_registrations(turn: &mut Turn<'_>) -> Done {
    let rows = turn.site.sip.borrow().aor_rows(&turn.site.shard.core.borrow());
    turn.begin_list("Following are Events for each Inbound registration");
    for row in &rows {
        let message = objects::aor(turn.item("InboundRegistrationDetail"), row);
        message
            .field("Contact", objects::contacts_of(row))
            .field("Contacts", contacts(std::slice::from_ref(row)))
            .end();
    }
    turn.end_list("InboundRegistrationDetailComplete", rows.len()).end();
    Ok(After::Go)
}

fn inbound_contacts(turn: &mut Turn<'_>) -> Done {
    let rows = contact_rows(turn);
    let rows: Vec<&ContactRow> = rows.iter().filter(|contact| contact.expires.is_some()).collect();
    let now = wall(turn);
    turn.begin_list("Following are ContactStatusEvents for each Inbound registration");
    for row in &rows {
        objects::contact_detail(turn.item("ContactStatusDetail"), row, now).end();
    }
    turn.end_list("ContactStatusDetailComplete", rows.len()).end();
    Ok(After::Go)
}

fn resource_lists(turn: &mut Turn<'_>) -> Done {
    let lists = turn.site.sip.borrow().resource_lists();
    turn.begin_list("A listing of resource lists follows, presented as ResourceListDetail events");
    for (name, list) in &lists {
        let yes = |said: bool| if said { "true" } else { "false" };
        turn.item("ResourceListDetail")
            .field("ObjectType", "resource_list")
            .field("ObjectName", name)
            .field("Event", &list.event)
            .field("ListItem", list.items.join(","))
            .field("FullState", yes(list.full_state))
            .field("NotificationBatchInterval", list.batch.as_millis())
            .field("ResourceDisplayName", yes(list.display_names))
            .end();
    }
    turn.end_list("ResourceListDetailComplete", lists.len()).end();
    Ok(After::Go)
}

fn register(turn: &mut Turn<'_>, again: bool) -> Done {
    let wanted = turn.need("Registration")?.to_owned();
    let names: Vec<String> = match wanted.as_str() {
        "*all" => {
            turn.site.sip.borrow().registration_rows(turn.now).into_iter().map(|row| row.name).collect()
        }
        _ => vec![wanted.clone()],
    };
    let site = turn.site.clone();
    let (mut sip, mut core) = (site.sip.borrow_mut(), site.shard.core.borrow_mut());
    for name in &names {
        let known =
            if again { sip.register_now(&mut core, name) } else { sip.unregister_now(&mut core, name) };
        if !known {
            return Err("Unable to retrieve registration entry".into());
        }
    }
    if wanted == "*all" {
        return turn.success(if again { "Reregistrations queued." } else { "Unregistrations queued." });
    }
    turn.success(if again { "Reregistration sent" } else { "Unregistration sent" })
}
