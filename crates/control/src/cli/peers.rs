//! The lists of `chan_sip`, for scripts that still ask for them.

use std::fmt::Write as _;

use call::DeviceState;
use driver::sip::{ContactRow, ContactState, EndpointRow};
use serde_json::{Value, json};

use super::sip_tables::rtt_ms;
use super::text::{clean, clock, s, yes_no};
use super::{Ask, Cli, Row, Said, show};

pub(super) const ROWS: &[Row] = &[
    show(
        "sip show peers",
        "Lists endpoints as chan_sip did.",
        "peers [name username host port dynamic force_rport symmetric_rtp status realtime]",
        Cli::sip_show_peers,
    ),
    show(
        "sip show channels",
        "Lists SIP channels as chan_sip did.",
        "channels [name state endpoint seconds exten]",
        Cli::sip_show_channels,
    ),
];

impl Cli {
    fn sip_show_peers(&self, ask: &mut Ask<'_>) -> Said {
        let peers: Vec<Peer> = self.endpoint_rows(None).iter().map(Peer::of).collect();
        let data = || {
            let rows: Vec<Value> = peers
                .iter()
                .map(|peer| {
                    json!({
                        "name": peer.name, "username": peer.username, "host": peer.host, "port": peer.port,
                        "dynamic": peer.dynamic, "force_rport": peer.force_rport,
                        "symmetric_rtp": peer.symmetric, "status": peer.status, "realtime": peer.realtime,
                    })
                })
                .collect();
            json!({ "peers": rows })
        };
        ask.show(data, || peers_text(&peers))
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
            let _ = writeln!(out, "{} active SIP dialog{}", rows.len(), s(rows.len()));
            out
        };
        ask.show(|| self.sip_channels_json(), text)
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
    realtime: bool,
}

impl Peer {
    fn of(endpoint: &EndpointRow) -> Self {
        let contact = endpoint.aors.iter().flat_map(|aor| &aor.contacts).next();
        let (host, port) = contact.map_or_else(|| ("(Unspecified)".to_owned(), "0".to_owned()), host_port);
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
            realtime: endpoint.is_realtime,
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
    // The field has the last column only where there is something in it.
    let has_rows = peers.iter().any(|peer| peer.realtime);
    let line = |cells: [&str; 10]| {
        let [name, host, dynamic, rport, comedia, acl, port, status, description, realtime] = cells;
        let realtime = if has_rows { format!(" {realtime}") } else { String::new() };
        format!(
            "{name:<25.25} {host:<39.39} {dynamic:<3.3} {rport:<10.10} {comedia:<10.10} {acl:<3.3} {port:<8} \
             {status:<11} {description:<32.32}{realtime}\n"
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
        "Realtime",
    ]);
    for peer in peers {
        let name = match peer.username.as_str() {
            "" => peer.name.clone(),
            user => format!("{}/{user}", peer.name),
        };
        let dynamic = if peer.dynamic { " D " } else { "   " };
        let (rport, comedia) = (yes_no(peer.force_rport), yes_no(peer.symmetric));
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
            if peer.realtime { "Cached RT" } else { "" },
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
