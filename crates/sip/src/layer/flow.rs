//! Where messages come from and go to, without a socket.

use core::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use base::in_network;

/// One of our binds, numbered by whoever opens the sockets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TransportId(pub u16);

/// One connection of a connection-oriented transport, numbered by whoever accepts or opens it; never reused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnectionId(pub u64);

/// The name that a peer has to prove before it gets anything (RFC 5922), numbered by the driver.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct PeerName(pub u32);

impl PeerName {
    /// No name was asked for: the peer is known by its address, or by having come to us.
    pub const NONE: Self = Self(0);
}

/// What carries SIP.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Protocol {
    /// Datagrams; the only one over which we retransmit.
    Udp,
    /// Stream, framed by Content-Length.
    Tcp,
    /// TCP inside TLS.
    Tls,
    /// WebSocket (RFC 7118).
    Ws,
    /// WebSocket inside TLS.
    Wss,
}

impl Protocol {
    /// Whether the transport itself retransmits.
    pub const fn is_reliable(self) -> bool {
        !matches!(self, Self::Udp)
    }
    /// Whether nobody on the way can read or change what it carries.
    pub const fn is_secure(self) -> bool {
        matches!(self, Self::Tls | Self::Wss)
    }
    /// Its name in a Via.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Udp => "UDP",
            Self::Tcp => "TCP",
            Self::Tls => "TLS",
            Self::Ws => "WS",
            Self::Wss => "WSS",
        }
    }
    /// Its name as a parameter of a URI (RFC 7118 §5.2.2: one for both kinds of WebSocket).
    pub const fn parameter(self) -> &'static str {
        match self {
            Self::Udp => "udp",
            Self::Tcp => "tcp",
            Self::Tls => "tls",
            Self::Ws | Self::Wss => "ws",
        }
    }
    /// Port of a URI or Via that names none (RFC 3261 §19.1.2).
    pub const fn default_port(self) -> u16 {
        match self {
            Self::Udp | Self::Tcp => 5060,
            Self::Tls => 5061,
            Self::Ws => 80,
            Self::Wss => 443,
        }
    }
}

/// A way to one peer: which bind, which connection if any, which address.
///
/// As a source it says where bytes came from. As a destination without `connection` on a reliable transport it asks the
/// driver to use an open connection to `remote` or to make one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Flow {
    /// Which bind.
    pub transport: TransportId,
    /// What it speaks.
    pub protocol: Protocol,
    /// Which connection; `None` for datagrams and for a connection yet to be made.
    pub connection: Option<ConnectionId>,
    /// Whom the connection has to lead to. Connections are shared by those who ask for the same name, never by address
    /// alone.
    pub name: PeerName,
    /// The peer.
    pub remote: SocketAddr,
}

impl Flow {
    /// The way to another address of the same peer through the same bind.
    pub const fn towards(self, remote: SocketAddr) -> Self {
        Self { connection: None, remote, ..self }
    }
}

/// Bytes for the driver to send. Cloning shares the bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Send {
    /// Where to.
    pub flow: Flow,
    /// One whole message.
    pub bytes: Arc<[u8]>,
}

/// How we name ourselves on one bind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Transport {
    /// `host[:port]` for Via and Contact towards peers in `local_nets`, or towards all when `external` is `None`.
    pub sent_by: String,
    /// `host[:port]` towards everybody else (`external_signaling_address`).
    pub external: Option<String>,
    /// Networks (address, prefix bits) that see us directly (`local_net`).
    pub local_nets: Vec<(IpAddr, u8)>,
    /// The TCP bind that takes requests too large for datagrams of this one (RFC 3261 §18.1.1), if they are to.
    pub stream: Option<TransportId>,
}

impl Transport {
    /// `host[:port]` by which `peer` reaches us.
    pub fn sent_by(&self, peer: IpAddr) -> &str {
        match &self.external {
            Some(external) if !self.local_nets.iter().any(|net| in_network(*net, peer)) => external,
            _ => &self.sent_by,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn external_address_is_named_only_outside_the_local_nets() {
        let transport = Transport {
            sent_by: "10.0.0.1:5060".into(),
            external: Some("203.0.113.9:5060".into()),
            local_nets: vec![("10.0.0.0".parse().unwrap(), 8), ("fd00::".parse().unwrap(), 8)],
            stream: None,
        };
        for (peer, expected) in [
            ("10.9.8.7", "10.0.0.1:5060"),
            ("11.0.0.1", "203.0.113.9:5060"),
            ("fd12::1", "10.0.0.1:5060"),
            ("2001:db8::1", "203.0.113.9:5060"),
            ("::ffff:10.1.1.1", "10.0.0.1:5060"),
        ] {
            assert_eq!(transport.sent_by(peer.parse().unwrap()), expected, "{peer}");
        }
    }
}
