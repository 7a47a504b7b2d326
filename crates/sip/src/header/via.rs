//! The Via header (RFC 3261 §20.42, RFC 3581).

use core::net::IpAddr;

use super::lex::{Params, is_lws, is_token, number, split_once, trim, trim_start};
use crate::uri::{Host, parse_ip};

/// The branch prefix of transactions that follow RFC 3261 (§8.1.1.7).
pub const MAGIC_COOKIE: &[u8] = b"z9hG4bK";

/// One Via value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Via<'a> {
    /// `UDP`, `TCP`, `TLS`, `WS`, `WSS` or another token, as written.
    pub transport: &'a [u8],
    /// Where the sender says it is.
    pub host: Host<'a>,
    /// Port, when written.
    pub port: Option<u16>,
    /// Parameters.
    pub params: Params<'a>,
}

impl<'a> Via<'a> {
    /// Parses one value; `None` unless protocol, version, transport and host are there. Any version will do, so that a
    /// request of another one can be answered 505.
    pub fn parse(value: &'a [u8]) -> Option<Self> {
        let value = trim_start(value);
        let rest = match value {
            [b'S', b'I', b'P', b'/', b'2', b'.', b'0', b'/', rest @ ..] => rest,
            _ => {
                let (protocol, rest) = split_once(value, b'/');
                let (version, rest) = split_once(rest?, b'/');
                if !trim(protocol).eq_ignore_ascii_case(b"SIP") || !is_token(trim(version)) {
                    return None;
                }
                trim_start(rest?)
            }
        };
        let end = rest.iter().position(|&b| is_lws(b))?;
        let (transport, rest) = rest.split_at_checked(end)?;
        let rest = trim_start(rest);
        let params_at = memchr::memchr(b';', rest).unwrap_or(rest.len());
        let (sent_by, params) = rest.split_at_checked(params_at)?;
        let sent_by = trim(sent_by);
        let host_end = match sent_by {
            [b'[', ..] => memchr::memchr(b']', sent_by)? + 1,
            _ => memchr::memchr(b':', sent_by).unwrap_or(sent_by.len()),
        };
        let (host, port) = sent_by.split_at_checked(host_end)?;
        let port = match trim(port) {
            [] => None,
            [b':', digits @ ..] => Some(u16::try_from(number(trim(digits))?).ok()?),
            _ => return None,
        };
        let host = Host::parse(trim(host))?;
        is_token(transport).then_some(Self { transport, host, port, params: Params::new(params) })
    }

    /// The `branch` parameter.
    pub fn branch(&self) -> Option<&'a [u8]> {
        self.params.get(b"branch").filter(|branch| !branch.is_empty())
    }
    /// Whether the branch is a transaction id by RFC 3261 §17.2.3: the magic cookie and something after it.
    pub fn has_magic_cookie(&self) -> bool {
        self.branch()
            .is_some_and(|branch| branch.len() > MAGIC_COOKIE.len() && branch.starts_with(MAGIC_COOKIE))
    }
    /// Where the request really came from, when a later hop noted it; IPv6 with or without brackets (RFC 5118 §4.5).
    pub fn received(&self) -> Option<IpAddr> {
        self.params.get(b"received").and_then(parse_ip)
    }
    /// `Some(None)`: the sender asks for symmetric response routing; `Some(Some(port))`: the port it was seen at (RFC 3581).
    pub fn rport(&self) -> Option<Option<u16>> {
        let value = self.params.find(b"rport")?;
        Some(value.and_then(number).and_then(|port| u16::try_from(port).ok()))
    }
    /// Where to send the response by multicast or detour (RFC 3261 §18.2.2).
    pub fn maddr(&self) -> Option<&'a [u8]> {
        self.params.get(b"maddr")
    }
    /// Time to live of a multicast response.
    pub fn ttl(&self) -> Option<u8> {
        self.params.get(b"ttl").and_then(number).and_then(|ttl| u8::try_from(ttl).ok())
    }
    /// Whether responses go back on the connection the request came by.
    pub fn is_reliable(&self) -> bool {
        !self.transport.eq_ignore_ascii_case(b"UDP")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vias_of_the_field_parse() {
        for (text, transport, host, port, branch) in [
            (
                "SIP/2.0/UDP my_host:5062;rport;branch=z9hG4bKa",
                "UDP",
                "my_host",
                Some(5062),
                Some("z9hG4bKa"),
            ),
            (
                "SIP  / 2.0\r\n / TCP     spindle.example.com   ;\r\n  branch  =   z9hG4bK9",
                "TCP",
                "spindle.example.com",
                None,
                Some("z9hG4bK9"),
            ),
            (
                "SIP/2.0/TLS [2001:db8::1]:5061;received=[2001:db8::2]",
                "TLS",
                "[2001:db8::1]",
                Some(5061),
                None,
            ),
            (
                "SIP/2.0/UDP 192.0.2.2 : 5060 ;branch=390skdjuw",
                "UDP",
                "192.0.2.2",
                Some(5060),
                Some("390skdjuw"),
            ),
        ] {
            let via = Via::parse(text.as_bytes()).unwrap_or_else(|| panic!("{text}"));
            assert_eq!(via.transport, transport.as_bytes(), "{text}");
            assert_eq!(via.host.as_bytes(), host.as_bytes(), "{text}");
            assert_eq!((via.port, via.branch()), (port, branch.map(str::as_bytes)), "{text}");
        }
        for text in [
            "garbage",
            "",
            "SIP/2.0/UDP",
            "SIP/2.0/UDP ",
            "HTTP/2.0/UDP h",
            "SIP/2.0/UDP h:x",
            "SIP/2.0/UDP [::g]",
        ] {
            assert_eq!(Via::parse(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn received_and_rport_are_read_as_rfc_3581_and_5118_ask() {
        let via =
            Via::parse(b"SIP/2.0/UDP h;rport=5099;received=2001:db8::9:255;ttl=3;branch=z9hG4bK").unwrap();
        assert_eq!(via.received(), "2001:db8::9:255".parse().ok());
        assert_eq!(via.rport(), Some(Some(5099)));
        assert_eq!(via.ttl(), Some(3));
        assert!(!via.has_magic_cookie(), "the bare cookie identifies nothing");
        assert_eq!(Via::parse(b"SIP/2.0/UDP h;rport").unwrap().rport(), Some(None));
    }
}
