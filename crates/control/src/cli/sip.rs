//! SIP: endpoints, AORs, contacts and what else pjsip.conf names; and the words of `chan_sip` for them.

use core::time::Duration;
use std::fmt::Write as _;

use call::DeviceState;
use driver::sip::{AorRow, Bind, ContactRow, ContactState, EndpointRow};
use serde_json::{Value, json};

use super::text::{clean, clock};
use super::{Ask, Cli, Row, Said, show, verb};

const ENDPOINT_KEYS: &str =
    "endpoints [name caller_id state channels auths aors transport identifies options]";
const CONTACT_KEYS: &str = "contacts [aor endpoint uri hash status rtt_ms user_agent via_address expires]";

pub(super) const ROWS: &[Row] = &[
    show(
        "pjsip show endpoints",
        "Lists endpoints with their auths, AORs, contacts and channels.",
        ENDPOINT_KEYS,
        |cli, ask| cli.endpoints(ask, None),
    ),
    show(
        "pjsip show endpoint <endpoint>",
        "Shows one endpoint and its options in effect.",
        ENDPOINT_KEYS,
        |cli, ask| {
            let name = ask.need("endpoint").to_owned();
            cli.endpoints(ask, Some(&name))
        },
    ),
    show("pjsip list endpoints", "Lists endpoints, a line each.", ENDPOINT_KEYS, Cli::list_endpoints),
    show(
        "pjsip show aors",
        "Lists AORs and their contacts.",
        "aors [name max_contacts contacts]",
        |cli, ask| cli.aors(ask, None),
    ),
    show(
        "pjsip show aor <aor>",
        "Shows one AOR, its contacts and its options.",
        "aors [name max_contacts contacts options]",
        |cli, ask| {
            let name = ask.need("aor").to_owned();
            cli.aors(ask, Some(&name))
        },
    ),
    show(
        "pjsip list aors",
        "Lists AORs, a line each.",
        "aors [name max_contacts contacts]",
        Cli::list_aors,
    ),
    show("pjsip show contacts", "Lists contacts: configured and registered.", CONTACT_KEYS, |cli, ask| {
        cli.contacts(ask, None)
    })
    .also(&["pjsip list contacts"]),
    show(
        "pjsip show contact <uri>",
        "Shows one contact, named as URI or AOR/URI.",
        CONTACT_KEYS,
        |cli, ask| {
            let name = ask.need("uri").to_owned();
            cli.contacts(ask, Some(&name))
        },
    ),
    show("pjsip show auths", "Lists auths; never their secrets.", "auths [name username realm]", Cli::auths)
        .also(&["pjsip list auths"]),
    show("pjsip show auth <auth>", "Shows one auth; never its secret.", "auths [name username realm]", Cli::auths),
    show(
        "pjsip show transports",
        "Lists transports and the addresses they are bound to.",
        "transports [name protocol bind external_media_address external_signaling_address]",
        Cli::transports,
    )
    .also(&["pjsip list transports"]),
    show(
        "pjsip show transport <transport>",
        "Shows one transport.",
        "transports [name protocol bind external_media_address external_signaling_address]",
        Cli::transports,
    ),
    show(
        "pjsip show identifies",
        "Lists identify objects: which sources are which endpoint.",
        "identifies [name endpoint matches]",
        Cli::identifies,
    )
    .also(&["pjsip list identifies"]),
    show(
        "pjsip show registrations",
        "Lists registrations of ours with other servers. There are none: Strowger does not register itself yet.",
        "registrations",
        |_, ask| {
            ask.show(
                || json!({ "registrations": [] }),
                || "No objects found: outgoing registrations (type=registration) are not built in yet.\n\n".to_owned(),
            )
        },
    )
    .also(&["pjsip list registrations"]),
    show(
        "pjsip show channels",
        "Lists SIP channels.",
        "channels [name state endpoint seconds exten]",
        Cli::sip_channels,
    )
    .also(&["pjsip list channels"]),
    show(
        "pjsip show settings",
        "Shows global SIP settings.",
        "settings [name value]",
        Cli::pjsip_settings,
    ),
    show("pjsip show version", "Shows what answers SIP.", "version", |_, ask| {
        let version = concat!("Strowger ", env!("CARGO_PKG_VERSION"));
        ask.show(
            || json!({ "version": version }),
            || format!("SIP is answered by {version}; there is no PJPROJECT in it\n"),
        )
    }),
    verb(
        "pjsip set logger on|off",
        "Switches the log of SIP messages.",
        Cli::pjsip_set_logger,
    )
    .also(&["sip set debug on|off"])
    .detail("Passwords and digests are never logged in clear."),
    verb(
        "pjsip set logger host <address>",
        "Switches the log of SIP messages on, for every host: it cannot be limited to one yet.",
        Cli::pjsip_set_logger,
    )
    .also(&["sip set debug ip|peer <address>"]),
    verb(
        "pjsip reload",
        "Reads pjsip.conf again, and everything else with it. Calls and registrations go on.",
        |cli, _| cli.reload("res_pjsip", "Module 'res_pjsip.so' reloaded successfully.\n"),
    )
    .also(&["sip reload"]),
    show(
        "sip show peers",
        "Lists endpoints as chan_sip did.",
        "peers [name username host port dynamic force_rport symmetric_rtp status]",
        Cli::sip_show_peers,
    ),
    show("sip show channels", "Lists SIP channels as chan_sip did.", "channels [name state endpoint seconds exten]", Cli::sip_show_channels),
];

const RULE: &str =
    "==========================================================================================";
const NOTHING: &str = "No objects found.\n\n";

/// `<Name....>` of this width.
fn field(name: &str, width: usize) -> String {
    let inner = width.saturating_sub(2);
    format!("<{name:.<inner$}>")
}

fn found(count: usize) -> String {
    format!("\nObjects found: {count}\n\n")
}

/// A short name of a contact that stays the same while its URI does (FNV-1a, 40 bits of it).
pub(super) fn hash(uri: &str) -> String {
    let hash = uri
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3));
    format!("{:010x}", hash >> 24)
}

fn rtt_ms(contact: &ContactRow) -> Option<f64> {
    contact.roundtrip.map(|rtt| (rtt.as_secs_f64() * 1e6).round() / 1e3)
}

fn rtt_text(contact: &ContactRow) -> String {
    rtt_ms(contact).map_or_else(|| "nan".to_owned(), |ms| format!("{ms:.3}"))
}

/// A contact's line below its AOR; `indent` and `width` of the first column make the table.
fn contact_line(contact: &ContactRow, indent: usize, width: usize, out: &mut String) {
    let name = format!("{}/{}", contact.aor, contact.uri);
    let _ = writeln!(
        out,
        "{:indent$}Contact:  {:<width$} {:<10} {:<8} {:>11}",
        "",
        clean(&name),
        hash(&contact.uri),
        contact.state.name(),
        rtt_text(contact)
    );
}

fn contact_header(indent: usize, width: usize, out: &mut String) {
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

fn contact_json(contact: &ContactRow) -> Value {
    json!({
        "aor": contact.aor, "endpoint": contact.endpoint, "uri": contact.uri, "hash": hash(&contact.uri),
        "status": contact.state.name(), "rtt_ms": rtt_ms(contact), "user_agent": contact.user_agent,
        "via_address": contact.via, "expires": contact.expires,
    })
}

fn aor_json(aor: &AorRow) -> Value {
    json!({
        "name": aor.name, "max_contacts": aor.max_contacts,
        "contacts": aor.contacts.iter().map(contact_json).collect::<Vec<_>>(),
    })
}

fn options_json(options: &[(&'static str, String)]) -> Value {
    options.iter().map(|(name, value)| json!({ "name": name, "value": value })).collect()
}

fn endpoint_json(endpoint: &EndpointRow) -> Value {
    let auths: Vec<Value> =
        endpoint.auths.iter().map(|(name, username)| json!({ "name": name, "username": username })).collect();
    json!({
        "name": endpoint.name, "caller_id": endpoint.caller, "state": endpoint.state.text(),
        "channels": endpoint.channels, "auths": auths,
        "aors": endpoint.aors.iter().map(aor_json).collect::<Vec<_>>(),
        "transport": endpoint.transport, "identifies": endpoint.identifies,
        "options": options_json(&endpoint.options),
    })
}

fn named(endpoint: &EndpointRow) -> String {
    match endpoint.caller.as_str() {
        "" => endpoint.name.clone(),
        caller => format!("{}/{caller}", endpoint.name),
    }
}

fn endpoint_line(endpoint: &EndpointRow, out: &mut String) {
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

fn endpoint_header() -> String {
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

fn transport_line(bind: &Bind, indent: &str, width: usize, out: &mut String) {
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

fn protocol(bind: &Bind) -> String {
    format!("{:?}", bind.protocol).to_ascii_lowercase()
}

impl Cli {
    pub(super) fn sip_names(&self, kind: &str) -> Vec<String> {
        let driver = self.site.sip.borrow();
        let config = driver.config();
        match kind {
            "endpoint" => config.endpoints.keys().map(|name| name.to_string()).collect(),
            "aor" => config.aors.keys().map(|name| name.to_string()).collect(),
            "auth" => config.auths.keys().map(|name| name.to_string()).collect(),
            _ => config.binds.iter().map(|bind| bind.name.clone()).collect(),
        }
    }

    fn endpoint_rows(&self, only: Option<&str>) -> Vec<EndpointRow> {
        self.site.sip.borrow().endpoint_rows(only, &self.site.shard.core.borrow())
    }

    fn endpoint_block(&self, endpoint: &EndpointRow, out: &mut String) {
        endpoint_line(endpoint, out);
        for (name, user) in &endpoint.auths {
            let _ = writeln!(out, "     InAuth:  {}", clean(&format!("{name}/{user}")));
        }
        for aor in &endpoint.aors {
            let _ = writeln!(out, "        Aor:  {:<49}  {}", clean(&aor.name), aor.max_contacts);
            for contact in &aor.contacts {
                contact_line(contact, 6, 42, out);
            }
        }
        let driver = self.site.sip.borrow();
        for bind in driver.config().binds.iter().filter(|bind| bind.name == endpoint.transport) {
            transport_line(bind, "  ", 31, out);
        }
        for identify in &endpoint.identifies {
            let _ = writeln!(out, "   Identify:  {}", clean(&format!("{identify}/{}", endpoint.name)));
        }
        let core = self.site.shard.core.borrow();
        let channels = endpoint.channels.iter().filter_map(|name| core.get(core.by_name(name)?));
        for channel in channels {
            let _ = writeln!(
                out,
                "    Channel:  {:<49}  {:<12}  {}",
                clean(&channel.name),
                channel.state.name(),
                clock(core.now.since(channel.created))
            );
            let _ = writeln!(
                out,
                "        Exten: {:<24}  CLCID: {}",
                clean(&channel.location.exten),
                clean(&channel.connected.all())
            );
        }
        out.push('\n');
    }

    fn endpoints(&self, ask: &mut Ask<'_>, only: Option<&str>) -> Said {
        let rows = self.endpoint_rows(only);
        if let (Some(only), true) = (only, rows.is_empty()) {
            return Said::failed(format!("Unable to find object {}.\n\n", clean(only)));
        }
        let data = || json!({ "endpoints": rows.iter().map(endpoint_json).collect::<Vec<_>>() });
        let text = || {
            if rows.is_empty() {
                return NOTHING.to_owned();
            }
            let mut out = endpoint_header();
            for row in &rows {
                self.endpoint_block(row, &mut out);
            }
            match (only, rows.first()) {
                (Some(_), Some(row)) => parameters(&row.options, &mut out),
                _ => out.push_str(&found(rows.len())),
            }
            out
        };
        ask.show(data, text)
    }

    fn list_endpoints(&self, ask: &mut Ask<'_>) -> Said {
        let rows = self.endpoint_rows(None);
        let data = || json!({ "endpoints": rows.iter().map(endpoint_json).collect::<Vec<_>>() });
        let text = || {
            if rows.is_empty() {
                return NOTHING.to_owned();
            }
            let mut out = format!(
                "\n Endpoint:  {}  {}  {}\n{RULE}\n\n",
                field("Endpoint/CID", 51),
                field("State", 12),
                field("Channels", 11)
            );
            rows.iter().for_each(|row| endpoint_line(row, &mut out));
            out.push_str(&found(rows.len()));
            out
        };
        ask.show(data, text)
    }

    fn aor_rows(&self) -> Vec<AorRow> {
        self.site.sip.borrow().aor_rows(&self.site.shard.core.borrow())
    }

    fn aors(&self, ask: &mut Ask<'_>, only: Option<&str>) -> Said {
        let mut rows = self.aor_rows();
        rows.retain(|row| only.is_none_or(|only| row.name == only));
        let options = only.map(|only| self.aor_options(only));
        if let (Some(only), true) = (only, rows.is_empty()) {
            return Said::failed(format!("Unable to find object {}.\n\n", clean(only)));
        }
        let data = || {
            let rows: Vec<Value> = rows
                .iter()
                .map(|row| {
                    let mut row = aor_json(row);
                    if let (Some(object), Some(options)) = (row.as_object_mut(), &options) {
                        object.insert("options".to_owned(), options_json(options));
                    }
                    row
                })
                .collect();
            json!({ "aors": rows })
        };
        let text = || {
            if rows.is_empty() {
                return NOTHING.to_owned();
            }
            let mut out = format!("\n      Aor:  {}  {}\n", field("Aor", 51), field("MaxContact", 12));
            contact_header(4, 44, &mut out);
            let _ = write!(out, "{RULE}\n\n");
            for aor in &rows {
                let _ = writeln!(out, "      Aor:  {:<51}  {}", clean(&aor.name), aor.max_contacts);
                aor.contacts.iter().for_each(|contact| contact_line(contact, 4, 44, &mut out));
                out.push('\n');
            }
            match &options {
                Some(options) => parameters(options, &mut out),
                None => out.push_str(&found(rows.len())),
            }
            out
        };
        ask.show(data, text)
    }

    fn list_aors(&self, ask: &mut Ask<'_>) -> Said {
        let rows = self.aor_rows();
        let data = || json!({ "aors": rows.iter().map(aor_json).collect::<Vec<_>>() });
        let text = || {
            if rows.is_empty() {
                return NOTHING.to_owned();
            }
            let mut out =
                format!("\n      Aor:  {}  {}\n{RULE}\n\n", field("Aor", 51), field("MaxContact", 12));
            for aor in &rows {
                let _ = writeln!(out, "      Aor:  {:<51}  {}", clean(&aor.name), aor.max_contacts);
            }
            out.push_str(&found(rows.len()));
            out
        };
        ask.show(data, text)
    }

    fn aor_options(&self, name: &str) -> Vec<(&'static str, String)> {
        let driver = self.site.sip.borrow();
        let Some(aor) = driver.config().aors.get(name) else { return Vec::new() };
        vec![
            ("contact", aor.contacts.join(",")),
            ("default_expiration", aor.default_expiration.to_string()),
            ("max_contacts", aor.max_contacts.to_string()),
            ("maximum_expiration", aor.maximum_expiration.to_string()),
            ("minimum_expiration", aor.minimum_expiration.to_string()),
            ("qualify_frequency", aor.qualify_frequency.to_string()),
            ("qualify_timeout", format!("{:.6}", aor.qualify_timeout.as_secs_f64())),
            ("remove_existing", aor.remove_existing.to_string()),
            ("remove_unavailable", aor.remove_unavailable.to_string()),
            ("support_path", aor.support_path.to_string()),
        ]
    }

    fn contacts(&self, ask: &mut Ask<'_>, only: Option<&str>) -> Said {
        let mut rows = self.site.sip.borrow().contact_rows(None, &self.site.shard.core.borrow());
        if let Some(only) = only {
            rows.retain(|row| row.uri == only || format!("{}/{}", row.aor, row.uri) == only);
            if rows.is_empty() {
                return Said::failed(format!("Unable to find object {}.\n\n", clean(only)));
            }
        }
        let data = || json!({ "contacts": rows.iter().map(contact_json).collect::<Vec<_>>() });
        let text = || {
            if rows.is_empty() {
                return NOTHING.to_owned();
            }
            let mut out = String::from("\n");
            contact_header(2, 46, &mut out);
            let _ = write!(out, "{RULE}\n\n");
            rows.iter().for_each(|row| contact_line(row, 2, 46, &mut out));
            match (only, rows.first()) {
                (Some(_), Some(row)) => parameters(&contact_options(row), &mut out),
                _ => out.push_str(&found(rows.len())),
            }
            out
        };
        ask.show(data, text)
    }

    fn auths(&self, ask: &mut Ask<'_>) -> Said {
        let driver = self.site.sip.borrow();
        let only = ask.arg("auth");
        let rows: Vec<_> = driver
            .config()
            .auths
            .iter()
            .filter(|(name, _)| only.is_none_or(|only| ***name == *only))
            .collect();
        if let (Some(only), true) = (only, rows.is_empty()) {
            return Said::failed(format!("Unable to find object {}.\n\n", clean(only)));
        }
        let data = || {
            let rows: Vec<Value> = rows
                .iter()
                .map(|(name, auth)| {
                    json!({ "name": &***name, "username": auth.username, "realm": auth.realm })
                })
                .collect();
            json!({ "auths": rows })
        };
        let text = || {
            if rows.is_empty() {
                return NOTHING.to_owned();
            }
            let mut out = format!("\n  I/OAuth:  {}\n{RULE}\n\n", field("AuthId/UserName", 78));
            for (name, auth) in &rows {
                let _ = writeln!(out, "     Auth:  {}", clean(&format!("{name}/{}", auth.username)));
            }
            out.push_str(&found(rows.len()));
            out
        };
        ask.show(data, text)
    }

    fn transports(&self, ask: &mut Ask<'_>) -> Said {
        let driver = self.site.sip.borrow();
        let only = ask.arg("transport");
        let rows: Vec<&Bind> =
            driver.config().binds.iter().filter(|bind| only.is_none_or(|only| bind.name == only)).collect();
        if let (Some(only), true) = (only, rows.is_empty()) {
            return Said::failed(format!("Unable to find object {}.\n\n", clean(only)));
        }
        let data = || {
            let rows: Vec<Value> = rows
                .iter()
                .map(|bind| {
                    json!({
                        "name": bind.name, "protocol": protocol(bind), "bind": bind.local.to_string(),
                        "external_media_address": bind.external_media.map(|ip| ip.to_string()),
                        "external_signaling_address": bind.external_signaling,
                    })
                })
                .collect();
            json!({ "transports": rows })
        };
        let text = || {
            if rows.is_empty() {
                return NOTHING.to_owned();
            }
            let mut out = format!(
                "\nTransport:  {}  {}  {}  {}  {}\n{RULE}\n\n",
                field("TransportId", 21),
                field("Type", 6),
                field("cos", 5),
                field("tos", 5),
                field("BindAddress", 33)
            );
            rows.iter().for_each(|bind| transport_line(bind, "", 33, &mut out));
            out.push_str(&found(rows.len()));
            out
        };
        ask.show(data, text)
    }

    fn identifies(&self, ask: &mut Ask<'_>) -> Said {
        // The driver keeps rules compiled; what was written stands in the configuration.
        let driver = self.site.sip.borrow();
        let rows = &driver.config().identifies;
        let data = || {
            let rows: Vec<Value> = rows
                .iter()
                .map(|identify| {
                    json!({
                        "name": &*identify.name, "endpoint": &*identify.endpoint,
                        "matches": identify.matches.iter().map(matched).collect::<Vec<_>>(),
                    })
                })
                .collect();
            json!({ "identifies": rows })
        };
        let text = || {
            if rows.is_empty() {
                return NOTHING.to_owned();
            }
            let mut out = format!("\n Identify:  {}\n", field("Identify/Endpoint", 78));
            let _ = write!(out, "      Match:  {}\n{RULE}\n\n", field("criteria", 35));
            for identify in rows {
                let _ = writeln!(
                    out,
                    " Identify:  {}",
                    clean(&format!("{}/{}", identify.name, identify.endpoint))
                );
                for one in &identify.matches {
                    let _ = writeln!(out, "      Match:  {}", clean(&matched(one)));
                }
                out.push('\n');
            }
            out.push_str(&found(rows.len()));
            out
        };
        ask.show(data, text)
    }

    /// SIP channels: name, state, endpoint, age, extension.
    fn sip_channel_rows(&self) -> Vec<(String, &'static str, String, Duration, String)> {
        let core = self.site.shard.core.borrow();
        let channels = core.channels().filter_map(|channel| {
            let endpoint = channel.name.strip_prefix("PJSIP/")?.rsplit_once('-')?.0;
            Some((
                channel.name.to_string(),
                channel.state.name(),
                endpoint.to_owned(),
                core.now.since(channel.created),
                channel.location.exten.clone(),
            ))
        });
        channels.collect()
    }

    fn sip_channels_json(&self) -> Value {
        let rows: Vec<Value> = self
            .sip_channel_rows()
            .into_iter()
            .map(|(name, state, endpoint, age, exten)| {
                json!({ "name": name, "state": state, "endpoint": endpoint, "seconds": age.as_secs(), "exten": exten })
            })
            .collect();
        json!({ "channels": rows })
    }

    fn sip_channels(&self, ask: &mut Ask<'_>) -> Said {
        let text = || {
            let rows = self.sip_channel_rows();
            if rows.is_empty() {
                return NOTHING.to_owned();
            }
            let mut out = format!(
                "\n  Channel:  {}  {}  {}\n      Exten: {}\n{RULE}\n\n",
                field("ChannelId", 51),
                field("State", 12),
                field("Time", 11),
                field("DialedExten", 28)
            );
            for (name, state, _, age, exten) in &rows {
                let _ = writeln!(out, "  Channel:  {:<51}  {state:<12}  {}", clean(name), clock(*age));
                let _ = writeln!(out, "      Exten: {}\n", clean(exten));
            }
            out.push_str(&found(rows.len()));
            out
        };
        ask.show(|| self.sip_channels_json(), text)
    }

    fn sip_show_channels(&self, ask: &mut Ask<'_>) -> Said {
        let text = || {
            let rows = self.sip_channel_rows();
            let mut out = format!(
                "{:<15.15}  {:<15.15}  {:<30.30}  {:<10.10}  {:<15.15}\n",
                "Peer", "State", "Channel", "Duration", "Extension"
            );
            for (name, state, endpoint, age, exten) in &rows {
                let _ = writeln!(
                    out,
                    "{:<15.15}  {state:<15.15}  {:<30.30}  {:<10.10}  {:<15.15}",
                    clean(endpoint),
                    clean(name),
                    clock(*age),
                    clean(exten)
                );
            }
            let _ = writeln!(out, "{} active SIP dialog{}", rows.len(), super::text::s(rows.len()));
            out
        };
        ask.show(|| self.sip_channels_json(), text)
    }

    fn pjsip_settings(&self, ask: &mut Ask<'_>) -> Said {
        let driver = self.site.sip.borrow();
        let (config, load) = (driver.config(), driver.load());
        let order: Vec<String> =
            config.order.iter().map(|way| format!("{way:?}").to_ascii_lowercase()).collect();
        let rows: Vec<(&'static str, String)> = vec![
            ("debug", if driver.trace() { "yes" } else { "no" }.to_owned()),
            ("default_outbound_endpoint", config.default_outbound.clone()),
            ("default_realm", config.default_realm.clone()),
            ("endpoint_identifier_order", order.join(",")),
            ("user_agent", config.user_agent.clone()),
            ("endpoints", config.endpoints.len().to_string()),
            ("load", format!("{load:?}")),
        ];
        let data = || json!({ "settings": options_json(&rows) });
        let text = || {
            let mut out = String::from("\nGlobal Settings:\n");
            parameters(&rows, &mut out);
            out
        };
        ask.show(data, text)
    }

    fn pjsip_set_logger(&self, ask: &mut Ask<'_>) -> Said {
        if let Some(host) = ask.arg("address") {
            self.site.sip.borrow_mut().set_trace(true);
            return Said::done(format!(
                "PJSIP Logging enabled for every host: it cannot be limited to '{}' yet\n",
                clean(host)
            ));
        }
        let on = ask.choice() == Some("on");
        self.site.sip.borrow_mut().set_trace(on);
        Said::done(if on { "PJSIP Logging enabled\n" } else { "PJSIP Logging disabled\n" })
    }

    fn sip_show_peers(&self, ask: &mut Ask<'_>) -> Said {
        let peers: Vec<Peer> = self.endpoint_rows(None).iter().map(Peer::of).collect();
        let data = || {
            let rows: Vec<Value> = peers
                .iter()
                .map(|peer| {
                    json!({
                        "name": peer.name, "username": peer.username, "host": peer.host, "port": peer.port,
                        "dynamic": peer.dynamic, "force_rport": peer.force_rport,
                        "symmetric_rtp": peer.symmetric, "status": peer.status,
                    })
                })
                .collect();
            json!({ "peers": rows })
        };
        ask.show(data, || peers_text(&peers))
    }
}

/// An endpoint as `sip show peers` sees it: its first contact stands for it.
struct Peer {
    name: String,
    username: String,
    host: String,
    port: String,
    dynamic: bool,
    force_rport: bool,
    symmetric: bool,
    status: String,
    /// Online, when it is asked.
    monitored: Option<bool>,
    there: bool,
}

impl Peer {
    fn of(endpoint: &EndpointRow) -> Self {
        let contact = endpoint.aors.iter().flat_map(|aor| &aor.contacts).next();
        let (host, port) =
            contact.map_or_else(|| ("(Unspecified)".to_owned(), "0".to_owned()), |c| host_port(c));
        let (status, monitored) = match contact.map(|contact| (contact.state, rtt_ms(contact))) {
            Some((ContactState::Available, rtt)) => {
                (format!("OK ({} ms)", rtt.unwrap_or(0.0).round()), Some(true))
            }
            Some((ContactState::Unavailable, _)) => ("UNREACHABLE".to_owned(), Some(false)),
            Some((ContactState::NonQualified, _)) => ("Unmonitored".to_owned(), None),
            Some((ContactState::Unknown, _)) | None => ("UNKNOWN".to_owned(), None),
        };
        let is = |name: &str| endpoint.options.iter().any(|(known, value)| *known == name && value == "true");
        Self {
            name: endpoint.name.clone(),
            username: endpoint.auths.first().map_or_else(String::new, |(_, user)| user.clone()),
            host,
            port,
            dynamic: endpoint.aors.iter().any(|aor| aor.max_contacts > 0),
            force_rport: is("force_rport"),
            symmetric: is("rtp_symmetric"),
            status,
            monitored,
            there: contact.is_some() && endpoint.state != DeviceState::Unavailable,
        }
    }
}

/// Host and port of a contact: where it registered from, or what its URI says.
fn host_port(contact: &ContactRow) -> (String, String) {
    let place = if contact.via.is_empty() {
        let uri = contact.uri.split_once(':').map_or(contact.uri.as_str(), |(_, rest)| rest);
        let uri = uri.split([';', '?']).next().unwrap_or_default();
        uri.rsplit_once('@').map_or(uri, |(_, place)| place)
    } else {
        contact.via.as_str()
    };
    let cut = place.rsplit_once(':').filter(|(host, port)| {
        !port.is_empty()
            && port.bytes().all(|b| b.is_ascii_digit())
            && (!host.contains(':') || host.ends_with(']'))
    });
    let (host, port) = cut.unwrap_or((place, "5060"));
    (host.trim_matches(['[', ']']).to_owned(), port.to_owned())
}

fn peers_text(peers: &[Peer]) -> String {
    let line = |cells: [&str; 9]| {
        let [name, host, dynamic, rport, comedia, acl, port, status, description] = cells;
        format!(
            "{name:<25.25} {host:<39.39} {dynamic:<3.3} {rport:<10.10} {comedia:<10.10} {acl:<3.3} {port:<8} \
             {status:<11} {description:<32.32}\n"
        )
    };
    let mut out = line([
        "Name/username",
        "Host",
        "Dyn",
        "Forcerport",
        "Comedia",
        "ACL",
        "Port",
        "Status",
        "Description",
    ]);
    let yes = |value: bool| if value { "Yes" } else { "No" };
    for peer in peers {
        let name = match peer.username.as_str() {
            "" => peer.name.clone(),
            user => format!("{}/{user}", peer.name),
        };
        let dynamic = if peer.dynamic { " D " } else { "   " };
        let (rport, comedia) = (yes(peer.force_rport), yes(peer.symmetric));
        out += &line([
            &clean(&name),
            &clean(&peer.host),
            dynamic,
            rport,
            comedia,
            "",
            &peer.port,
            &peer.status,
            "",
        ]);
    }
    let count = |wanted: &dyn Fn(&Peer) -> bool| peers.iter().filter(|peer| wanted(peer)).count();
    let _ = writeln!(
        out,
        "{} sip peers [Monitored: {} online, {} offline Unmonitored: {} online, {} offline]",
        peers.len(),
        count(&|peer| peer.monitored == Some(true)),
        count(&|peer| peer.monitored == Some(false)),
        count(&|peer| peer.monitored.is_none() && peer.there),
        count(&|peer| peer.monitored.is_none() && !peer.there),
    );
    out
}

fn contact_options(contact: &ContactRow) -> Vec<(&'static str, String)> {
    vec![
        ("aor", contact.aor.clone()),
        ("endpoint", contact.endpoint.clone()),
        ("expires", contact.expires.map_or_else(|| "never".to_owned(), |seconds| seconds.to_string())),
        ("uri", contact.uri.clone()),
        ("user_agent", contact.user_agent.clone()),
        ("via_addr", contact.via.clone()),
    ]
}

fn matched(one: &driver::sip::Match) -> String {
    match one {
        driver::sip::Match::Source(_) => "source address".to_owned(),
        driver::sip::Match::Header(name, _) => format!("header {name}"),
        driver::sip::Match::RequestUri(_) => "request URI".to_owned(),
    }
}

fn parameters(options: &[(&'static str, String)], out: &mut String) {
    let width = options.iter().map(|(name, _)| name.len()).max().unwrap_or(0).max("ParameterName".len());
    let _ = writeln!(out, "\n {:<width$} : ParameterValue", "ParameterName");
    let _ = writeln!(out, " {}", "=".repeat(width + 17));
    for (name, value) in options {
        let _ = writeln!(out, " {name:<width$} : {}", clean(value));
    }
    out.push('\n');
}
