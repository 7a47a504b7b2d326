//! Transports: the addresses where SIP is listened for, and the numbers that the driver knows them under.

use core::net::{IpAddr, SocketAddr};

use conf::Findings;
use driver::sip::Bind;
use sip::stack::{Protocol, TransportId};
use store::config::pjsip;

use crate::wire::hosts::{Hosts, address_of};
use crate::wire::marking;

/// Binds that the SIP driver can tell apart.
const BINDS_MAX: u16 = driver::sip::BINDS_MAX;

/// The binds. One that listened at the same address `before` keeps its number, so that calls and registrations that
/// came over it still know their way.
pub(super) fn binds(
    pjsip: &pjsip::Pjsip,
    hosts: &Hosts,
    before: &[Bind],
    findings: &mut Findings,
) -> Vec<Bind> {
    let mut made: Vec<Bind> = Vec::new();
    let mut transports: Vec<_> = pjsip.transports.iter().collect();
    // Who stands first in the file is who is met by a client under TLS that names nobody.
    transports.sort_by(|(_, a), (_, b)| a.origin.place.cmp(&b.origin.place));
    for (name, transport) in transports {
        let protocol = match transport.protocol {
            pjsip::Protocol::Udp => Protocol::Udp,
            pjsip::Protocol::Tcp => Protocol::Tcp,
            pjsip::Protocol::Tls => Protocol::Tls,
            pjsip::Protocol::Ws => Protocol::Ws,
            pjsip::Protocol::Wss => Protocol::Wss,
            pjsip::Protocol::Flow => continue,
        };
        let Some(local) = transport.address() else { continue };
        let same = |bind: &&Bind| bind.protocol == protocol && bind.local == local;
        let other = made.iter().find(same).and_then(|bind| pjsip.transports.get_key_value(&bind.name));
        if let Some((other, first)) = other
            && let Err((option, remedy)) = beside(first, transport)
        {
            let message = format!("transport '{name}' listens where '{other}' does and is not opened");
            findings.error(transport.origin.place_of(option), message, remedy);
            continue;
        }
        // Of those that share an address each keeps its own, and who is renamed what nobody has any more.
        let own = |bind: &&Bind| bind.name == *name;
        let is_here =
            |other: &pjsip::Transport| other.protocol == transport.protocol && other.address() == Some(local);
        let is_free = |bind: &&Bind| {
            !pjsip.transports.get(&bind.name).is_some_and(is_here)
                && !made.iter().any(|made| made.id == bind.id)
        };
        let at_home = || before.iter().filter(same);
        let kept = at_home().find(own).or_else(|| at_home().find(is_free)).map(|bind| bind.id);
        let taken = |id: u16| before.iter().chain(&made).any(|bind| bind.id.0 == id);
        let Some(id) = kept.or_else(|| (0..BINDS_MAX).find(|id| !taken(*id)).map(TransportId)) else {
            let message = format!("transport '{name}' is one too many; {BINDS_MAX} are possible");
            findings.error(transport.origin.place_of("bind"), message, "remove transports or restart");
            continue;
        };
        let port = match transport.external_signaling_port {
            0 => local.port(),
            port => port,
        };
        let external = &transport.external_signaling_address;
        made.push(Bind {
            name: name.clone(),
            id,
            protocol,
            local,
            external_media: address_of(&transport.external_media_address, hosts),
            external_signaling: (!external.is_empty()).then(|| host_port(external, port)),
            local_nets: transport.local_net.iter().map(|net| net.parts()).collect(),
            domain: transport.domain.clone(),
            marking: marking(transport.tos, transport.cos),
        });
    }
    made
}

/// Whether a transport may listen where the first one there does: under TLS, when clients can tell them apart by name and
/// are asked for the same whichever they name. Else which option is in the way, and what to do.
fn beside(first: &pjsip::Transport, other: &pjsip::Transport) -> Result<(), (&'static str, &'static str)> {
    if other.protocol != pjsip::Protocol::Tls {
        return Err(("bind", "give one of them another bind="));
    }
    // What a client must prove may not depend on what it says.
    let rows = [
        ("verify_client", first.verify_client == other.verify_client),
        ("require_client_cert", first.require_client_cert == other.require_client_cert),
        ("ca_list_file", first.ca_list_file == other.ca_list_file || !first.verify_client),
        ("ca_list_path", first.ca_list_path == other.ca_list_path || !first.verify_client),
        ("method", first.method == other.method),
        ("cipher", first.cipher == other.cipher),
    ];
    match rows.iter().find(|(_, agrees)| !agrees) {
        Some((option, _)) => {
            let remedy = "transports of one address need the same verify_client, require_client_cert, ca_list_file, \
                          ca_list_path, method and cipher; or give one of them another bind=";
            Err((*option, remedy))
        }
        None if other.cert_file.is_empty() || first.cert_file.is_empty() => Err((
            "bind",
            "give each of them a cert_file with the name that its clients ask for, or another bind=",
        )),
        None => Ok(()),
    }
}

/// The address with this port. One that is written beside the address does not count: it has an option of its own.
fn host_port(host: &str, port: u16) -> String {
    let host = host.trim();
    let bare = match (host.strip_prefix('['), host.rsplit_once(':')) {
        (Some(rest), _) => rest.split(']').next().unwrap_or_default(),
        (None, Some((name, _))) if !name.contains(':') => name,
        (None, _) => host,
    };
    match bare.parse::<IpAddr>() {
        Ok(ip) => SocketAddr::new(ip, port).to_string(),
        Err(_) => format!("{bare}:{port}"),
    }
}

#[cfg(test)]
mod tests;
