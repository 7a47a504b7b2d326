//! Which servers a URI leads to (RFC 3263): by which transport, at which addresses and ports, in which order.
//!
//! A machine without memory: it is given what is known of the DNS and says where to go, or what has to be asked before it
//! can. Weights are drawn with the caller's numbers.

use core::net::{IpAddr, SocketAddr};

pub use base::dns::by_rank;
use base::dns::{Kind, Question, Records};

use crate::layer::Protocol;
use crate::uri::{Scheme, Uri};

/// Servers that one request tries. A peer that names more has the others tried by later requests, as weights are drawn anew.
pub const TARGETS_MAX: usize = 8;
/// Addresses of one server that are tried.
const ADDRESSES_MAX: usize = 4;
/// Ways on of one name that are looked at; there is one for each transport.
const WAYS_MAX: usize = 16;

/// What a URI says of the way to its host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wanted {
    /// Host name or address, of `maddr` when there is one (RFC 3263 §4).
    pub host: String,
    /// The port, when one is given.
    pub port: Option<u16>,
    /// The transport, when the URI or the site says which.
    pub protocol: Option<Protocol>,
    /// Every hop has to be secure (`sips:`).
    pub secure: bool,
}

impl Wanted {
    /// What a URI says; `protocol` is what the site says, which goes before. `None` when it is no SIP URI.
    pub fn new(uri: &Uri<'_>, protocol: Option<Protocol>) -> Option<Self> {
        let secure = match uri.scheme {
            Scheme::Sip => false,
            Scheme::Sips => true,
            _ => return None,
        };
        let named = || {
            let name = uri.params.get(b"transport")?;
            PROTOCOLS
                .iter()
                .find(|(known, _)| name.eq_ignore_ascii_case(known))
                .map(|(_, protocol)| *protocol)
        };
        let maddr = uri.params.get(b"maddr").filter(|maddr| !maddr.is_empty());
        let host = maddr.unwrap_or(uri.host.as_bytes());
        Some(Self {
            host: String::from_utf8_lossy(host).to_ascii_lowercase(),
            port: uri.port,
            protocol: protocol
                .or_else(named)
                .map(|protocol| if secure { secured(protocol) } else { protocol }),
            secure,
        })
    }
}

/// Transports as URIs name them (RFC 3261 §25.1, RFC 7118 §4).
const PROTOCOLS: [(&[u8], Protocol); 5] = [
    (b"udp", Protocol::Udp),
    (b"tcp", Protocol::Tcp),
    (b"tls", Protocol::Tls),
    (b"ws", Protocol::Ws),
    (b"wss", Protocol::Wss),
];

/// `sips:` with `transport=tcp` is TLS over TCP (RFC 3261 §19.1.2).
const fn secured(protocol: Protocol) -> Protocol {
    match protocol {
        Protocol::Udp | Protocol::Tcp | Protocol::Tls => Protocol::Tls,
        Protocol::Ws | Protocol::Wss => Protocol::Wss,
    }
}

/// One server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Target {
    /// How it is spoken to.
    pub protocol: Protocol,
    /// Where it is.
    pub remote: SocketAddr,
}

/// What a search came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Found {
    /// The servers, first to be tried first; none when there is none.
    Targets(Vec<Target>),
    /// Answers have to be awaited.
    Awaited,
}

/// Looks for the servers of a URI, among the transports that exist here (in the site's order).
///
/// `known` says what the DNS said, `None` while it has not; it is called for everything that may be needed, so that all of it
/// is asked at once. `random` gives a number from 0 to its argument.
pub fn locate(
    wanted: &Wanted,
    available: &[Protocol],
    known: &mut dyn FnMut(&Question) -> Option<Records>,
    random: &mut dyn FnMut(u32) -> u32,
) -> Found {
    let fits = |protocol: &Protocol| !wanted.secure || protocol.is_secure();
    let available: Vec<Protocol> = available.iter().copied().filter(fits).collect();
    let mut search = Search { known, random, awaits: false, targets: Vec::new() };
    let plain = wanted.protocol.or_else(|| usual(&available));
    if let Some(ip) = crate::uri::parse_ip(wanted.host.as_bytes()) {
        // §4.1, §4.2: an address says where, and nobody is asked how.
        search.reach(plain, &[ip], wanted.port);
    } else if wanted.port.is_some() {
        // §4.1, §4.2: with a port the name stands for its addresses.
        search.reach_name(plain, &wanted.host, wanted.port);
    } else {
        search.reach_domain(wanted, &available);
    }
    match search.awaits {
        true => Found::Awaited,
        false => Found::Targets(search.targets),
    }
}

/// The transport of a URI that says nothing: UDP, or TLS for `sips:` (§4.1); what there is where that is not.
fn usual(available: &[Protocol]) -> Option<Protocol> {
    available.iter().copied().find(|protocol| *protocol == Protocol::Udp).or(available.first().copied())
}

struct Search<'a> {
    known: &'a mut dyn FnMut(&Question) -> Option<Records>,
    random: &'a mut dyn FnMut(u32) -> u32,
    awaits: bool,
    targets: Vec<Target>,
}

impl Search<'_> {
    /// §4.1 and §4.2 for a name without a port.
    fn reach_domain(&mut self, wanted: &Wanted, available: &[Protocol]) {
        let host = &wanted.host;
        // Everything that may be needed is asked at once.
        let services: Vec<Protocol> = match wanted.protocol {
            Some(protocol) => vec![protocol],
            None => available.to_vec(),
        };
        let ways = wanted.protocol.is_none().then(|| self.ask(Kind::Naptr, host));
        let records: Vec<(Protocol, Option<Records>)> = services
            .iter()
            .filter_map(|protocol| {
                Some((*protocol, self.ask(Kind::Srv, &format!("{}.{host}", label(*protocol)?))))
            })
            .collect();
        let addresses = self.ask(Kind::Addresses, host);
        // §4.1: NAPTR says which transport, and under which name its services are found.
        if let Some(ways) = ways {
            let Some(ways) = ways else { return self.awaits = true };
            for (protocol, name) in usable(&ways, wanted.secure, available) {
                let Some(services) = self.ask(Kind::Srv, &name) else { return self.awaits = true };
                if self.reach_services(protocol, &services) {
                    return;
                }
            }
        }
        // Without one: the first transport for which there are services (§4.1), or those of the one that is named (§4.2).
        for (protocol, services) in records {
            let Some(services) = services else { return self.awaits = true };
            if self.reach_services(protocol, &services) {
                return;
            }
        }
        // Without any: the name's own addresses.
        let plain = wanted.protocol.or_else(|| usual(available));
        match addresses {
            Some(addresses) => self.reach(plain, addresses.addresses(), None),
            None => self.awaits = true,
        }
    }
    fn ask(&mut self, kind: Kind, name: &str) -> Option<Records> {
        (self.known)(&Question::new(kind, name))
    }
    /// Adds the servers that SRV records name; whether there were any to go to, or their addresses are awaited.
    fn reach_services(&mut self, protocol: Protocol, records: &Records) -> bool {
        let Records::Srv(services) = records else { return false };
        for service in by_rank(services, self.random) {
            if self.targets.len() < TARGETS_MAX {
                self.reach_name(Some(protocol), &service.target, Some(service.port));
            }
        }
        self.awaits || !self.targets.is_empty()
    }
    fn reach_name(&mut self, protocol: Option<Protocol>, name: &str, port: Option<u16>) {
        match self.ask(Kind::Addresses, name) {
            Some(records) => self.reach(protocol, records.addresses(), port),
            None => self.awaits = true,
        }
    }
    fn reach(&mut self, protocol: Option<Protocol>, addresses: &[IpAddr], port: Option<u16>) {
        let Some(protocol) = protocol else { return };
        let port = port.unwrap_or(protocol.default_port());
        let usable = addresses.iter().filter(|ip| is_one_host(**ip) && port != 0).take(ADDRESSES_MAX);
        for ip in usable {
            let target = Target { protocol, remote: SocketAddr::new(*ip, port) };
            if self.targets.len() < TARGETS_MAX && !self.targets.contains(&target) {
                self.targets.push(target);
            }
        }
    }
}

/// Whether an address can be that of a server: requests for everybody, or for nobody, are made by whoever owns the name.
fn is_one_host(ip: IpAddr) -> bool {
    match ip.to_canonical() {
        IpAddr::V4(ip) => !(ip.is_unspecified() || ip.is_multicast() || ip.is_broadcast()),
        IpAddr::V6(ip) => !(ip.is_unspecified() || ip.is_multicast()),
    }
}

/// The name of a transport's service (RFC 3263 §4.1, RFC 7118 has none).
const fn label(protocol: Protocol) -> Option<&'static str> {
    match protocol {
        Protocol::Udp => Some("_sip._udp"),
        Protocol::Tcp => Some("_sip._tcp"),
        Protocol::Tls => Some("_sips._tcp"),
        Protocol::Ws | Protocol::Wss => None,
    }
}

/// The ways on that lead somewhere by a transport that exists here, best first (§4.1): the transport, and the name whose
/// services are to be asked for.
fn usable(records: &Records, secure: bool, available: &[Protocol]) -> Vec<(Protocol, String)> {
    let Records::Naptr(ways) = records else { return Vec::new() };
    let mut ways: Vec<_> = ways.iter().take(WAYS_MAX).collect();
    ways.sort_by_key(|way| (way.order, way.preference));
    let services = [("SIP+D2U", Protocol::Udp), ("SIP+D2T", Protocol::Tcp), ("SIPS+D2T", Protocol::Tls)];
    let read = ways.into_iter().filter(|way| way.flags.eq_ignore_ascii_case("s")).filter_map(|way| {
        let (_, protocol) = services.iter().find(|(name, _)| way.service.eq_ignore_ascii_case(name))?;
        let leads = available.contains(protocol) && !way.replacement.is_empty();
        (leads && (protocol.is_secure() || !secure)).then(|| (*protocol, way.replacement.clone()))
    });
    read.collect()
}

#[cfg(test)]
mod tests;
