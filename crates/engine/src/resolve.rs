//! Host names, looked up by the system's resolver on a thread of its own.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, ToSocketAddrs as _, UdpSocket};

use io::wake::{Receiver, Sender, queue};

/// Names that wait, and answers that wait.
const WAITING_MAX: usize = 256;

/// What a look-up found; no address when there is none.
pub(crate) struct Found {
    pub(crate) host: String,
    pub(crate) addresses: Vec<IpAddr>,
}

/// The loop's end.
pub(crate) struct Resolver {
    wanted: std::sync::mpsc::SyncSender<String>,
    pub(crate) found: Receiver<Found>,
    asked: BTreeSet<String>,
}

impl Resolver {
    pub(crate) fn start() -> std::io::Result<Self> {
        let (wanted, inbox) = std::sync::mpsc::sync_channel::<String>(WAITING_MAX);
        let (answers, found): (Sender<Found>, _) = queue(WAITING_MAX)?;
        std::thread::Builder::new().name("resolver".to_owned()).spawn(move || {
            while let Ok(host) = inbox.recv() {
                let addresses = look_up(&host);
                if answers.send_blocking(Found { host, addresses }).is_err() {
                    return;
                }
            }
        })?;
        Ok(Self { wanted, found, asked: BTreeSet::new() })
    }
    /// Asks for a name, once until it was answered.
    pub(crate) fn ask(&mut self, host: &str) {
        // With the thread's queue full the name is not asked for; whoever needs it comes again.
        if self.asked.len() < WAITING_MAX
            && self.asked.insert(host.to_owned())
            && self.wanted.try_send(host.to_owned()).is_err()
        {
            self.asked.remove(host);
        }
    }
    pub(crate) fn answered(&mut self, host: &str) {
        self.asked.remove(host);
    }
}

fn look_up(host: &str) -> Vec<IpAddr> {
    // The port is only there because the resolver wants one.
    let found = (host, 5060).to_socket_addrs();
    found.map(|addresses| addresses.map(|address| address.ip()).collect()).unwrap_or_default()
}

/// Our address towards a peer, as the kernel's routes say; remembered, because a call asks for it every time.
#[derive(Default)]
pub(crate) struct Routes {
    known: std::cell::RefCell<std::collections::HashMap<IpAddr, IpAddr>>,
}

/// Peers remembered; beyond it all are asked for again.
const ROUTES_MAX: usize = 4096;

impl Routes {
    pub(crate) fn towards(&self, peer: IpAddr) -> Option<IpAddr> {
        if let Some(known) = self.known.borrow().get(&peer) {
            return Some(*known);
        }
        // Connecting a datagram socket sends nothing; it only chooses the source address.
        let any: IpAddr =
            if peer.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
        let socket = UdpSocket::bind((any, 0)).ok()?;
        socket.connect((peer, 5060)).ok()?;
        let own = socket.local_addr().ok()?.ip();
        let mut known = self.known.borrow_mut();
        if known.len() >= ROUTES_MAX {
            known.clear();
        }
        known.insert(peer, own);
        Some(own)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_asked_once_until_answered_and_again_when_there_was_no_room() {
        let (wanted, inbox) = std::sync::mpsc::sync_channel(1);
        let (_, found): (Sender<Found>, _) = queue(1).unwrap();
        let mut resolver = Resolver { wanted, found, asked: BTreeSet::new() };
        ["a", "a", "b"].iter().for_each(|host| resolver.ask(host));
        assert_eq!(inbox.try_iter().collect::<Vec<_>>(), ["a"]);
        ["a", "b"].iter().for_each(|host| resolver.ask(host));
        assert_eq!(inbox.try_iter().collect::<Vec<_>>(), ["b"]);
        resolver.answered("a");
        resolver.ask("a");
        assert_eq!(inbox.try_iter().collect::<Vec<_>>(), ["a"]);
    }
}
