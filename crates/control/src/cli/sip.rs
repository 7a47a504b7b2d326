//! SIP: endpoints, AORs, contacts and what else pjsip.conf names; and the words of `chan_sip` for them.

use core::time::Duration;
use std::fmt::Write as _;

use driver::sip::{AorRow, Bind, EndpointRow, NotifyTo, SubscriptionRow};
use serde_json::{Value, json};

use super::sip_tables::{
    NOTHING, RULE, aor_json, contact_header, contact_json, contact_line, contact_options, endpoint_header,
    endpoint_json, endpoint_line, field, found, matches_of, options_json, parameters, protocol,
    registration_header, registration_json, registration_line, transport_line,
};
use super::text::{clean, clock};
use super::{Ask, Cli, Row, Said, show, verb};

const ENDPOINT_KEYS: &str =
    "endpoints [name caller_id state channels auths aors transport identifies realtime options]";
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
    )
    .also(&["sip show peer <endpoint>"]),
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
    show("pjsip list aors", "Lists AORs, a line each.", "aors [name max_contacts contacts]", Cli::list_aors),
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
    show(
        "pjsip show auth <auth>",
        "Shows one auth; never its secret.",
        "auths [name username realm]",
        Cli::auths,
    ),
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
        "pjsip show identify <identify>",
        "Shows one identify object.",
        "identifies [name endpoint matches]",
        Cli::identifies,
    ),
    show(
        "pjsip show registrations",
        "Lists registrations of ours with other servers.",
        "registrations [name server_uri client_uri auth status expires]",
        |cli, ask| cli.registrations(ask, None),
    )
    .also(&["pjsip list registrations", "sip show registry"]),
    show(
        "pjsip show registration <registration>",
        "Shows one registration of ours and its options in effect.",
        "registrations [name server_uri client_uri auth status expires options]",
        |cli, ask| {
            let name = ask.need("registration").to_owned();
            cli.registrations(ask, Some(&name))
        },
    ),
    verb(
        "pjsip send register <registration>",
        "Registers with another server now, whatever failed before.",
        |cli, ask| cli.pjsip_send_register(ask, true),
    )
    .detail("*all names every registration."),
    verb(
        "pjsip send unregister <registration>",
        "Takes a registration with another server back, until pjsip send register.",
        |cli, ask| cli.pjsip_send_register(ask, false),
    )
    .also(&["sip unregister <registration>"])
    .detail("*all names every registration."),
    show(
        "pjsip show subscriptions inbound",
        "Lists who watches which extension or mailbox.",
        "subscriptions [endpoint resource event context call_id remote expires]",
        Cli::subscriptions,
    )
    .also(&["pjsip list subscriptions inbound", "sip show subscriptions"]),
    show(
        "pjsip show subscriptions outbound",
        "Lists what is watched elsewhere. There is nothing: Strowger does not subscribe.",
        "subscriptions",
        |_, ask| ask.show(|| json!({ "subscriptions": [] }), || NOTHING.to_owned()),
    )
    .also(&["pjsip list subscriptions outbound"]),
    show(
        "pjsip show channels",
        "Lists SIP channels.",
        "channels [name state endpoint seconds exten]",
        Cli::sip_channels,
    )
    .also(&["pjsip list channels"]),
    show(
        "pjsip show channelstats",
        "Shows how good the audio of each SIP channel is, as of its last RTCP report.",
        "channels [name bridge seconds format received lost jitter sent peer_lost peer_jitter round_trip]",
        Cli::sip_channelstats,
    ),
    show("pjsip show settings", "Shows global SIP settings.", "settings [name value]", Cli::pjsip_settings)
        .also(&["sip show settings"]),
    show("pjsip show version", "Shows what answers SIP.", "version", |_, ask| {
        let version = concat!("Strowger ", env!("CARGO_PKG_VERSION"));
        ask.show(
            || json!({ "version": version }),
            || format!("SIP is answered by {version}; there is no PJPROJECT in it\n"),
        )
    }),
    verb("pjsip set logger on|off", "Switches the log of SIP messages.", Cli::pjsip_set_logger)
        .also(&["sip set debug on|off"])
        .detail("Passwords and digests are never logged in clear."),
    verb(
        "pjsip set logger host <address> [add]",
        "Switches the log of SIP messages on for one host or network only, or for it as well.",
        Cli::pjsip_set_logger,
    )
    .detail("An address, a network such as 192.0.2.0/24, or a host name, which is looked up.")
    .also(&["sip set debug ip|peer <address>"]),
    verb(
        "pjsip qualify <endpoint>",
        "Asks every contact of an endpoint, at once, whether it is there.",
        Cli::pjsip_qualify,
    )
    .detail("The answer shows in pjsip show contacts.")
    .also(&["sip qualify peer <endpoint>"]),
    verb(
        "pjsip send notify <kind> endpoint|uri <peer...>",
        "Sends a NOTIFY of pjsip_notify.conf to the contacts of endpoints, or to a URI.",
        Cli::pjsip_send_notify,
    )
    .detail("kind is a section of pjsip_notify.conf; several endpoints may be named.")
    .also(&["sip notify <kind> <peer...>"]),
    verb(
        "pjsip reload",
        "Reads pjsip.conf again, and everything else with it. Calls and registrations go on.",
        |cli, _| cli.reload("res_pjsip", "Module 'res_pjsip.so' reloaded successfully.\n"),
    )
    .also(&["sip reload"]),
];

impl Cli {
    pub(super) fn sip_names(&self, kind: &str) -> Vec<String> {
        let driver = self.site.sip.borrow();
        let config = driver.config();
        match kind {
            "endpoint" => config.endpoints.keys().map(|name| name.to_string()).collect(),
            "aor" => config.aors.keys().map(|name| name.to_string()).collect(),
            "registration" => config.registrations.iter().map(|of| of.name.to_string()).collect(),
            "auth" => config.auths.keys().map(|name| name.to_string()).collect(),
            _ => config.binds.iter().map(|bind| bind.name.clone()).collect(),
        }
    }

    pub(super) fn endpoint_rows(&self, only: Option<&str>) -> Vec<EndpointRow> {
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
        let snapshot = self.site.snapshot.borrow();
        for name in &endpoint.identifies {
            let _ = writeln!(out, "   Identify:  {}", clean(&format!("{name}/{}", endpoint.name)));
            let object = snapshot.pjsip.identifies.iter().find(|identify| *identify.origin.name == **name);
            for source in object.map(matches_of).unwrap_or_default() {
                let _ = writeln!(out, "        Match: {}", clean(&source));
            }
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
            return Said::refused(format!("Unable to find object {}.\n\n", clean(only)));
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
            return Said::refused(format!("Unable to find object {}.\n\n", clean(only)));
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
        let rows = self.aor_rows();
        let contacts = rows.iter().filter(|row| row.name == name).flat_map(|row| &row.contacts);
        let mut options = vec![("authenticate_qualify", aor.authenticate_qualify.to_string())];
        options.extend(contacts.map(|contact| ("contact", contact.uri.clone())));
        options.extend([
            ("default_expiration", aor.default_expiration.to_string()),
            ("mailboxes", aor.mailboxes.join(",")),
            ("max_contacts", aor.max_contacts.to_string()),
            ("maximum_expiration", aor.maximum_expiration.to_string()),
            ("minimum_expiration", aor.minimum_expiration.to_string()),
            ("outbound_proxy", aor.outbound_proxy.clone()),
            ("qualify_2xx_only", aor.qualify_2xx_only.to_string()),
            ("qualify_frequency", aor.qualify_frequency.to_string()),
            ("qualify_timeout", format!("{:.6}", aor.qualify_timeout.as_secs_f64())),
            ("remove_existing", aor.remove_existing.to_string()),
            ("remove_unavailable", aor.remove_unavailable.to_string()),
            ("support_path", aor.support_path.to_string()),
            ("voicemail_extension", aor.voicemail.clone()),
        ]);
        options
    }

    fn contacts(&self, ask: &mut Ask<'_>, only: Option<&str>) -> Said {
        let mut rows = self.site.sip.borrow().contact_rows(None, &self.site.shard.core.borrow());
        if let Some(only) = only {
            rows.retain(|row| row.uri == only || format!("{}/{}", row.aor, row.uri) == only);
            if rows.is_empty() {
                return Said::refused(format!("Unable to find object {}.\n\n", clean(only)));
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
            return Said::refused(format!("Unable to find object {}.\n\n", clean(only)));
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
        let down = self.site.down.borrow();
        let is_shown =
            |bind: &&Bind| only.is_none_or(|only| bind.name == only) && !down.transports.contains(&bind.name);
        let rows: Vec<&Bind> = driver.config().binds.iter().filter(is_shown).collect();
        if let (Some(only), true) = (only, rows.is_empty()) {
            return Said::refused(format!("Unable to find object {}.\n\n", clean(only)));
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
        let snapshot = self.site.snapshot.borrow();
        let only = ask.arg("identify");
        let rows: Vec<_> = snapshot
            .pjsip
            .identifies
            .iter()
            .filter(|identify| only.is_none_or(|only| *identify.origin.name == *only))
            .collect();
        if let (Some(only), true) = (only, rows.is_empty()) {
            return Said::refused(format!("Unable to find object {}.\n\n", clean(only)));
        }
        let data = || {
            let rows: Vec<Value> = rows
                .iter()
                .map(|identify| {
                    json!({
                        "name": &*identify.origin.name, "endpoint": identify.endpoint,
                        "matches": matches_of(identify),
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
            for identify in &rows {
                let name = format!("{}/{}", identify.origin.name, identify.endpoint);
                let _ = writeln!(out, " Identify:  {}", clean(&name));
                for one in matches_of(identify) {
                    let _ = writeln!(out, "      Match:  {}", clean(&one));
                }
                out.push('\n');
            }
            out.push_str(&found(rows.len()));
            out
        };
        ask.show(data, text)
    }

    /// SIP channels: name, state, endpoint, age, extension.
    pub(super) fn sip_channel_rows(&self) -> Vec<(String, &'static str, String, Duration, String)> {
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

    pub(super) fn sip_channels_json(&self) -> Value {
        let rows: Vec<Value> = self
            .sip_channel_rows()
            .into_iter()
            .map(|(name, state, endpoint, age, exten)| {
                json!({ "name": name, "state": state, "endpoint": endpoint, "seconds": age.as_secs(), "exten": exten })
            })
            .collect();
        json!({ "channels": rows })
    }

    fn subscriptions(&self, ask: &mut Ask<'_>) -> Said {
        let rows = self.site.sip.borrow().subscription_rows(&self.site.shard.core.borrow());
        let value = || {
            let of = |row: &SubscriptionRow| {
                json!({
                    "endpoint": row.endpoint, "resource": row.resource, "event": row.event, "context": row.context,
                    "call_id": row.call_id, "remote": row.remote, "expires": row.expires,
                })
            };
            json!({ "subscriptions": rows.iter().map(of).collect::<Vec<_>>() })
        };
        let text = || {
            if rows.is_empty() {
                return NOTHING.to_owned();
            }
            let sip = self.site.sip.borrow();
            let mut out = format!(
                "Endpoint: {}\nResource: {}\n  Expiry: {}  {}\n{}\n\n",
                field("Endpoint/Caller-ID", 65),
                field("Resource/Event", 65),
                field("Expiry", 8),
                field("Call-id", 55),
                "=".repeat(75)
            );
            for row in &rows {
                let endpoint = sip.config().endpoints.get(row.endpoint.as_str());
                let caller = endpoint.map(|endpoint| endpoint.caller.all()).unwrap_or_default();
                let slash = if caller.is_empty() { "" } else { "/" };
                let _ = writeln!(
                    out,
                    "Endpoint: {}{slash}{}\nResource: {}/{}\n  Expiry: {:8}  {}\n",
                    clean(&row.endpoint),
                    clean(&caller),
                    clean(&row.resource),
                    row.event,
                    row.expires,
                    clean(&row.call_id)
                );
            }
            let _ = writeln!(out, "{} active subscriptions", rows.len());
            out
        };
        ask.show(value, text)
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

    fn sip_channelstats(&self, ask: &mut Ask<'_>) -> Said {
        let core = self.site.shard.core.borrow();
        let mut rows: Vec<(&call::Channel, call::Quality)> = core
            .channels()
            .filter(|c| c.name.starts_with("PJSIP/"))
            .map(|c| (c, c.quality.as_deref().copied().unwrap_or_default()))
            .collect();
        rows.sort_by_key(|(c, _)| c.id);
        let up_time = |c: &call::Channel| core.now.since(c.answered.unwrap_or(core.now));
        let bridge =
            |c: &call::Channel| c.bridge.map(|bridge| format!("{:08x}", bridge.slot)).unwrap_or_default();
        let data = || {
            let rows: Vec<Value> = rows
                .iter()
                .map(|(c, quality)| {
                    let stats = &quality.latest;
                    json!({
                        "name": &*c.name, "bridge": bridge(c), "seconds": up_time(c).as_secs(),
                        "format": c.format.name(), "received": stats.received_packets, "lost": stats.lost_packets,
                        "discarded": stats.discarded_packets,
                        "jitter": call::seconds(stats.jitter_us), "sent": stats.sent_packets,
                        "peer_lost": stats.peer_lost_packets, "peer_jitter": call::seconds(stats.peer_jitter_us),
                        "round_trip": call::seconds(stats.round_trip_us),
                    })
                })
                .collect();
            json!({ "channels": rows })
        };
        let text = || {
            if rows.is_empty() {
                return NOTHING.to_owned();
            }
            let mut out = format!(
                "\n{:47}...........Receive......... .........Transmit..........\n \
                 BridgeId ChannelId ........ UpTime.. Codec.   Count    Lost Pct  Jitter   Count    Lost Pct  Jitter RTT....\n \
                 {}\n\n",
                "",
                "=".repeat(107)
            );
            for (c, quality) in &rows {
                let stats = &quality.latest;
                let share = |lost: u32, of: u64| u64::from(lost) * 100 / (u64::from(lost) + of).max(1);
                let _ = writeln!(
                    out,
                    " {:8} {:18.18} {:8} {:6.6} {:7} {:7} {:3} {:7.3} {:7} {:7} {:3} {:7.3} {:7.3}",
                    bridge(c),
                    clean(c.name.trim_start_matches("PJSIP/")),
                    clock(up_time(c)),
                    c.format.name(),
                    stats.received_packets,
                    stats.lost_packets,
                    share(stats.lost_packets, stats.received_packets),
                    call::seconds(stats.jitter_us),
                    stats.sent_packets,
                    stats.peer_lost_packets,
                    share(stats.peer_lost_packets, stats.sent_packets),
                    call::seconds(stats.peer_jitter_us),
                    call::seconds(stats.round_trip_us),
                );
            }
            out.push('\n');
            out.push_str(&found(rows.len()));
            out
        };
        ask.show(data, text)
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

    fn pjsip_send_notify(&self, ask: &mut Ask<'_>) -> Said {
        let (kind, peers) = (ask.need("kind"), ask.need("peer"));
        let by_uri = ask.choice() == Some("uri");
        let snapshot = self.site.snapshot.borrow().clone();
        let Some(lines) = snapshot.notify.kinds.get(kind) else {
            return Said::failed(format!(
                "Unable to find notify type '{}' in pjsip_notify.conf\n",
                clean(kind)
            ));
        };
        let core = &mut *self.site.shard.core.borrow_mut();
        let mut said = String::new();
        let mut all_known = true;
        for peer in peers.split_whitespace() {
            let to = if by_uri { NotifyTo::Uri(peer) } else { NotifyTo::Endpoint(peer) };
            let sent = self.site.sip.borrow_mut().send_notify(core, to, lines);
            all_known &= sent.is_some_and(|count| count > 0);
            let _ = match sent {
                None => writeln!(said, "Unable to find '{}'", clean(peer)),
                Some(0) => writeln!(said, "'{}' has no contact to notify", clean(peer)),
                Some(_) => writeln!(said, "Sending NOTIFY of type '{}' to '{}'", clean(kind), clean(peer)),
            };
        }
        if all_known { Said::done(said) } else { Said::failed(said) }
    }
    fn pjsip_qualify(&self, ask: &mut Ask<'_>) -> Said {
        let name = ask.need("endpoint");
        let core = &mut *self.site.shard.core.borrow_mut();
        match self.site.sip.borrow_mut().qualify_endpoint(core, name) {
            None => Said::failed(format!("Unable to retrieve endpoint {}\n", clean(name))),
            Some(0) => Said::failed(format!("Endpoint {} has no contacts to ask\n", clean(name))),
            Some(_) => Said::done(format!("Sending qualify to endpoint {}\n", clean(name))),
        }
    }

    fn registrations(&self, ask: &mut Ask<'_>, only: Option<&str>) -> Said {
        let now = self.site.shard.core.borrow().now;
        let mut rows = self.site.sip.borrow().registration_rows(now);
        rows.retain(|row| only.is_none_or(|only| row.name == only));
        if let (Some(only), true) = (only, rows.is_empty()) {
            return Said::refused(format!("Unable to find object {}.\n\n", clean(only)));
        }
        let data = || {
            let rows: Vec<Value> = rows.iter().map(|row| registration_json(row, only.is_some())).collect();
            json!({ "registrations": rows })
        };
        let text = || {
            if rows.is_empty() {
                return NOTHING.to_owned();
            }
            let mut out = registration_header();
            rows.iter().for_each(|row| registration_line(row, &mut out));
            match (only, rows.first()) {
                (Some(_), Some(row)) => parameters(&row.options, &mut out),
                _ => out.push_str(&found(rows.len())),
            }
            out
        };
        ask.show(data, text)
    }

    fn pjsip_send_register(&self, ask: &mut Ask<'_>, register: bool) -> Said {
        let name = ask.need("registration");
        let core = &mut *self.site.shard.core.borrow_mut();
        let driver = &mut *self.site.sip.borrow_mut();
        let (found, what) = match register {
            true => (driver.register_now(core, name), "Re-registration"),
            false => (driver.unregister_now(core, name), "Unregistration"),
        };
        match found {
            true => Said::done(format!("{what} of {} is on its way\n", clean(name))),
            false => Said::failed(format!("Unable to retrieve registration {}\n", clean(name))),
        }
    }

    fn pjsip_set_logger(&self, ask: &mut Ask<'_>) -> Said {
        if let Some(text) = ask.arg("address") {
            let Ok(host) = text.parse() else {
                return Said::failed(format!("'{}' is no address, network or host name\n", clean(text)));
            };
            let add = ask.choice() == Some("add");
            let core = self.site.shard.core.borrow();
            return match self.site.sip.borrow_mut().trace_host(&core, host, add) {
                true => Said::done(format!("PJSIP Logging Enabled for host: {}\n", clean(text))),
                false => {
                    Said::failed("So many hosts are logged that no more fit: begin anew without 'add'\n")
                }
            };
        }
        let on = ask.choice() == Some("on");
        self.site.sip.borrow_mut().set_trace(on);
        Said::done(if on { "PJSIP Logging enabled\n" } else { "PJSIP Logging disabled\n" })
    }
}
