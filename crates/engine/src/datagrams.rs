//! A server that is told by datagrams: found by its name, which is looked up anew once in a while. For threads of their own.

use std::net::{SocketAddr, ToSocketAddrs as _, UdpSocket};
use std::time::{Duration, Instant};

/// How long an address of the server's name holds, and how long it is not asked for again when there is none.
const ADDRESS_HOLDS: Duration = Duration::from_secs(60);

/// See the module's page.
pub(crate) struct Server {
    host: String,
    port: u16,
    target: Option<(UdpSocket, SocketAddr)>,
    looked_up: Option<Instant>,
}

impl Server {
    /// Nothing is looked up yet.
    pub(crate) fn new(host: &str, port: u16) -> Self {
        Self { host: host.to_owned(), port, target: None, looked_up: None }
    }
    /// Sends a datagram; whether it has left.
    pub(crate) fn send(&mut self, bytes: &[u8]) -> bool {
        self.target().is_some_and(|(socket, server)| socket.send_to(bytes, server).is_ok())
    }
    fn target(&mut self) -> Option<&(UdpSocket, SocketAddr)> {
        if self.looked_up.is_none_or(|at| at.elapsed() >= ADDRESS_HOLDS) {
            let found = (self.host.as_str(), self.port).to_socket_addrs();
            let found = found.ok().and_then(|mut found| found.next());
            // An address that was good stays good when its name cannot be looked up for a while.
            if let Some(server) =
                found.filter(|found| self.target.as_ref().is_none_or(|(_, known)| known != found))
            {
                let any = if server.is_ipv6() { "[::]:0" } else { "0.0.0.0:0" };
                self.target = UdpSocket::bind(any).ok().map(|socket| (socket, server));
            }
            self.looked_up = Some(Instant::now());
        }
        self.target.as_ref()
    }
}
