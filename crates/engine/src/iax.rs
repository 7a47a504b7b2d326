//! IAX2 on real sockets: which bind is which socket, and the journal of who has registered.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::rc::Rc;
use std::time::Duration;

use call::{Core, Level, Shard};
use control::iax::{Show, Trace};
use control::site::Site;
use driver::iax::{
    ChannelRow, Config, HostNumbers, IaxDriver, KeyRow, Lease, NetstatRow, Numbers, PeerRow, RegistryRow,
    Stats, UserRow,
};
use io::clock::Clock;
use io::net::{BindError, Net, TransportId as Socket};
use serde::{Deserialize, Serialize};
use store::journal::Journal;

use crate::iax_rows::SharedIaxRows;
use crate::keys::pool::Pool;
use crate::listen::overlap;
use crate::registrations::Clocks;

/// File name in `astdbdir`, without its generation.
const STEM: &str = "iax-registrations";

/// A lease as it stands in the journal.
#[derive(Serialize, Deserialize)]
struct Record {
    peer: String,
    /// `None`: it is gone.
    address: Option<SocketAddr>,
    /// Seconds since the epoch: the monotonic clock begins anew with each start.
    expires: u64,
}

impl Record {
    fn of(lease: &Lease, clocks: Clocks) -> Vec<u8> {
        let expires = (clocks.wall + lease.expires_at.since(clocks.now)).as_secs();
        let record = Self { peer: lease.peer.to_string(), address: lease.address, expires };
        serde_json::to_vec(&record).unwrap_or_default()
    }
    /// The lease, when it still holds.
    fn lease(self, clocks: Clocks) -> Option<Lease> {
        let left = Duration::from_secs(self.expires).checked_sub(clocks.wall)?;
        let holds = self.address.is_some() && !left.is_zero();
        holds.then(|| Lease {
            peer: self.peer.as_str().into(),
            address: self.address,
            expires_at: clocks.now + left,
        })
    }
}

/// Sockets that were opened for a configuration that is not yet in force.
#[derive(Debug, Default)]
pub(crate) struct Fresh {
    opened: Vec<(SocketAddr, Socket)>,
    /// Places of sockets that were closed for them, and where those listened: one address is not bound twice.
    given_way: Vec<(usize, SocketAddr)>,
    /// Why those cannot be opened that could not be before either.
    pub(crate) still_absent: Vec<BindError>,
}

/// The sockets and the journal.
pub(crate) struct Iax {
    driver: Rc<RefCell<IaxDriver>>,
    /// By the number that the driver knows them by.
    sockets: Vec<Option<(SocketAddr, Socket)>>,
    /// Addresses that could not be had so far.
    absent: Vec<SocketAddr>,
    journal: Journal,
    live_bytes: u64,
    /// What lies in databases follows what the journal has.
    rows: Option<SharedIaxRows>,
    keys: Pool,
}

impl Iax {
    /// Without sockets. `keys` does what takes its time. The journal is below `folder`; what it holds is put back by the first [`take`](Self::take).
    pub(crate) fn open(
        folder: &Path,
        driver: Rc<RefCell<IaxDriver>>,
        keys: Pool,
    ) -> std::io::Result<(Self, Vec<Vec<u8>>)> {
        let (journal, replay) = Journal::open(&folder.join(STEM))?;
        Ok((
            Self {
                driver,
                sockets: Vec::new(),
                absent: Vec::new(),
                journal,
                live_bytes: 0,
                rows: None,
                keys,
            },
            replay.records,
        ))
    }
    /// Users and peers lie in these databases from here on.
    pub(crate) fn set_rows(&mut self, rows: &SharedIaxRows) {
        self.driver.borrow_mut().set_directory(Some(rows.clone()));
        self.rows = Some(rows.clone());
    }
    /// Puts back what was registered when the process ended. Says how many.
    pub(crate) fn restore(&mut self, core: &mut Core, records: &[Vec<u8>], clocks: Clocks) -> usize {
        let mut last: BTreeMap<String, Record> = BTreeMap::new();
        let mut gone: BTreeMap<String, (SocketAddr, u64)> = BTreeMap::new();
        for record in records.iter().filter_map(|bytes| serde_json::from_slice::<Record>(bytes).ok()) {
            if record.address.is_some() {
                gone.remove(&record.peer);
                last.insert(record.peer.clone(), record);
            } else if let Some(Record { peer, address: Some(address), expires }) = last.remove(&record.peer) {
                gone.insert(peer, (address, expires));
            }
        }
        let mut driver = self.driver.borrow_mut();
        last.into_values()
            .filter_map(|record| record.lease(clocks))
            .for_each(|lease| driver.restore(core, &lease));
        let count = driver.leases().count();
        if let Some(rows) = &self.rows {
            let gone =
                gone.into_iter().map(|(peer, (address, until))| (peer.as_str().into(), address, until));
            rows.borrow_mut().restored(driver.leases(), gone, clocks);
        }
        drop(driver);
        self.compact(clocks);
        count
    }
    /// Opens those sockets of the first configuration that can be, and says why others cannot: these are off, and each reload
    /// tries them again.
    pub(crate) fn begin(&mut self, net: &mut Net, config: &Config) -> Result<Fresh, BindError> {
        self.absent.clone_from(&config.binds);
        self.prepare(net, config)
    }
    /// Opens the sockets that are new in a configuration, or none.
    pub(crate) fn prepare(&mut self, net: &mut Net, config: &Config) -> Result<Fresh, BindError> {
        let mut fresh = Fresh::default();
        for bind in &config.binds {
            if self.sockets.iter().flatten().any(|(open, _)| open == bind) {
                continue;
            }
            for (at, place) in self.sockets.iter_mut().enumerate() {
                let gives_way =
                    |(old, _): &mut (SocketAddr, Socket)| !config.binds.contains(old) && overlap(*old, *bind);
                if let Some((old, socket)) = place.take_if(gives_way) {
                    net.close_udp(socket);
                    fresh.given_way.push((at, old));
                }
            }
            match bind_prompt(net, *bind) {
                Ok(socket) => {
                    self.absent.retain(|absent| absent != bind);
                    fresh.opened.push((*bind, socket));
                }
                Err(error) if self.absent.contains(bind) => fresh.still_absent.push(error),
                Err(error) => {
                    self.drop_fresh(net, fresh);
                    return Err(error);
                }
            }
        }
        Ok(fresh)
    }
    /// The configuration that they were opened for is not taken: what has given way is opened again, and its calls go on.
    pub(crate) fn drop_fresh(&mut self, net: &mut Net, fresh: Fresh) {
        fresh.opened.into_iter().for_each(|(_, socket)| net.close_udp(socket));
        let marking = self.driver.borrow().config().marking;
        for (at, bind) in fresh.given_way {
            // Whoever was quicker to take the address has it; the next reload says so.
            let Ok(socket) = bind_prompt(net, bind) else { continue };
            let _ = net.mark_udp(socket, marking);
            if let Some(place) = self.sockets.get_mut(at) {
                *place = Some((bind, socket));
            }
        }
    }
    /// Takes a configuration with the sockets that were opened for it.
    pub(crate) fn take(&mut self, net: &mut Net, core: &mut Core, fresh: Fresh, config: Config) {
        let mut driver = self.driver.borrow_mut();
        for (at, _) in fresh.given_way {
            driver.close(core, u32::try_from(at).unwrap_or(u32::MAX));
        }
        for (number, place) in (0..).zip(&mut self.sockets) {
            if let Some((_, socket)) = place.take_if(|(bind, _)| !config.binds.contains(bind)) {
                driver.close(core, number);
                net.close_udp(socket);
            }
        }
        for (bind, socket) in fresh.opened {
            let at = self.sockets.iter().position(Option::is_none).unwrap_or(self.sockets.len());
            if at == self.sockets.len() {
                self.sockets.push(None);
            }
            if let Some(place) = self.sockets.get_mut(at) {
                *place = Some((bind, socket));
            }
            driver.open(u32::try_from(at).unwrap_or(u32::MAX), bind, core.now);
        }
        for (_, socket) in self.sockets.iter().flatten() {
            // Packets without their mark are better than no packets.
            let _ = net.mark_udp(*socket, config.marking);
        }
        driver.configure(core, config);
    }
    /// What there is to see; `None` while nothing is served.
    pub(crate) fn sight(&self, shard: &Rc<Shard>) -> Option<Rc<RefCell<dyn Show>>> {
        self.sockets.iter().flatten().next()?;
        Some(Rc::new(RefCell::new(Sight { driver: self.driver.clone(), shard: shard.clone() })))
    }
    /// The number of a socket of ours.
    pub(crate) fn socket(&self, socket: Socket) -> Option<u32> {
        let at = self.sockets.iter().position(|place| place.is_some_and(|(_, own)| own == socket))?;
        u32::try_from(at).ok()
    }
    /// What helpers have signed and checked goes on.
    pub(crate) fn take_worked(&self, core: &mut Core) {
        for (id, answer) in self.keys.take_done() {
            self.driver.borrow_mut().key_worked(core, id, answer);
        }
    }
    /// Datagrams leave after what they acknowledge is written down. Says what went wrong.
    pub(crate) fn send(&mut self, net: &mut Net, core: &mut Core, clocks: Clocks) -> Option<String> {
        let changes = self.driver.borrow_mut().take_changes();
        let jobs = self.driver.borrow_mut().take_key_jobs();
        jobs.into_iter().for_each(|job| self.keys.ask(job));
        let trouble = if changes.is_empty() { None } else { self.write(&changes, clocks) };
        if let Some(rows) = self.rows.as_ref().filter(|_| !changes.is_empty()) {
            rows.borrow_mut().changed(&changes, clocks);
        }
        let sockets = &self.sockets;
        let mut driver = self.driver.borrow_mut();
        driver.send(|number, to, bytes, told| {
            if let Some(line) = told {
                core.log(Level::Verbose(0), "chan_iax2", &line);
            }
            if let Some(Some((_, socket))) = sockets.get(number as usize) {
                net.send_udp(*socket, None, to, bytes);
            }
        });
        trouble
    }
    fn write(&mut self, changes: &[Lease], clocks: Clocks) -> Option<String> {
        let mut trouble = self.journal.trouble();
        let records: Vec<Vec<u8>> = changes.iter().map(|lease| Record::of(lease, clocks)).collect();
        if let Err(why) = self.journal.append_all(records.iter().map(Vec::as_slice)) {
            let peers: Vec<&str> = changes.iter().map(|lease| &*lease.peer).collect();
            trouble = Some(format!("IAX2 registrations of {} are not on disk: {why}", peers.join(", ")));
        }
        if self.journal.wants_compaction(self.live_bytes) {
            self.compact(clocks);
        }
        trouble
    }
    fn compact(&mut self, clocks: Clocks) {
        let live: Vec<Vec<u8>> =
            self.driver.borrow().leases().map(|lease| Record::of(&lease, clocks)).collect();
        self.live_bytes = live.iter().map(|bytes| bytes.len() as u64).sum();
        self.journal.compact(live.iter().map(Vec::as_slice));
    }
}

/// A socket that is looked at as soon as something comes: a registration is three questions, and voice suffers from each wait.
fn bind_prompt(net: &mut Net, bind: SocketAddr) -> Result<Socket, BindError> {
    let socket = net.bind_udp_shared(bind)?;
    net.set_udp_prompt(socket);
    Ok(socket)
}

/// What console, managers and metrics see of it.
struct Sight {
    driver: Rc<RefCell<IaxDriver>>,
    shard: Rc<Shard>,
}

impl Show for Sight {
    fn peers(&self, only: Option<&str>) -> Vec<PeerRow> {
        self.driver.borrow().show_peers(&self.shard.core.borrow(), only)
    }
    fn users_of_rows(&self) -> Vec<UserRow> {
        self.driver.borrow().show_users_of_rows()
    }
    fn registry(&self) -> Vec<RegistryRow> {
        self.driver.borrow().show_registry()
    }
    fn channels(&self) -> Vec<ChannelRow> {
        self.driver.borrow().show_channels(&self.shard.core.borrow())
    }
    fn netstats(&self) -> Vec<NetstatRow> {
        self.driver.borrow().show_netstats(&self.shard.core.borrow())
    }
    fn stats(&self) -> Stats {
        self.driver.borrow().show_stats()
    }
    fn keys(&self) -> Vec<KeyRow> {
        self.driver.borrow().config().keys.rows.to_vec()
    }
    fn numbers(&self) -> Numbers {
        self.driver.borrow().show_numbers()
    }
    fn hosts(&self, only: Option<std::net::IpAddr>, most: usize) -> Vec<HostNumbers> {
        self.driver.borrow().show_hosts(only, most)
    }
    fn unregister(&mut self, peer: &str) -> bool {
        self.driver.borrow_mut().unregister(&mut self.shard.core.borrow_mut(), peer)
    }
    fn set_trace(&mut self, trace: Trace) {
        self.driver.borrow_mut().set_trace(match trace {
            Trace::Off => driver::iax::Trace::Off,
            Trace::All => driver::iax::Trace::All,
            Trace::Of(address) => driver::iax::Trace::Of(address),
        });
    }
    fn set_trunk_trace(&mut self, on: bool) {
        self.driver.borrow_mut().set_trunk_trace(on);
    }
    fn set_jitter_trace(&mut self, on: bool) {
        self.driver.borrow_mut().set_jitter_trace(on, Clock.now());
    }
    fn set_loss(&mut self, percent: u8) {
        self.driver.borrow_mut().set_loss(percent);
    }
    fn set_trunk_mtu(&mut self, bytes: usize) -> usize {
        self.driver.borrow_mut().set_trunk_mtu(bytes)
    }
}

/// Hands a datagram to the machine of its socket. A panic there costs this datagram. Says whether more may follow than
/// datagrams to send.
pub(crate) fn receive(site: &Site, socket: u32, from: SocketAddr, bytes: &[u8]) -> bool {
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        let mut core = site.shard.core.borrow_mut();
        core.now = Clock.now();
        site.iax.borrow_mut().receive(&mut core, socket, from, bytes)
    }));
    outcome.unwrap_or_else(|_| {
        let line = format!("a datagram from {from} panicked the IAX2 machines; it is dropped");
        site.shard.core.borrow_mut().log(Level::Error, "chan_iax2", &line);
        true
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use io::net::Limits;

    /// Addresses that are listened at, in the order of their places.
    fn open(iax: &Iax, net: &Net) -> Vec<Option<SocketAddr>> {
        iax.sockets.iter().map(|place| place.and_then(|(_, socket)| net.udp_addr(socket))).collect()
    }
    fn asked_for(binds: &[SocketAddr]) -> Config {
        Config { binds: binds.to_vec(), ..Config::default() }
    }

    #[test]
    fn a_socket_gives_way_to_one_at_its_port_and_comes_back_when_the_configuration_is_refused() {
        let mut net = Net::new(Limits::default()).unwrap();
        let folder = std::env::temp_dir().join(format!("strowger-iax-binds-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let driver = Rc::new(RefCell::new(IaxDriver::new(1)));
        let (mut iax, _) = Iax::open(&folder, driver, Pool::new(std::sync::Arc::new(|| {}))).unwrap();
        std::fs::remove_dir_all(&folder).unwrap();
        let free = |net: &mut Net, ip: &str| {
            let socket = net.bind_udp(SocketAddr::new(ip.parse().unwrap(), 0)).unwrap();
            let at = net.udp_addr(socket).unwrap();
            net.close_udp(socket);
            at
        };
        let one = free(&mut net, "127.0.0.1");
        let all = SocketAddr::new("0.0.0.0".parse().unwrap(), one.port());
        let other = free(&mut net, "127.0.0.2");
        let taken = net.bind_udp("127.0.0.3:0".parse().unwrap()).unwrap();
        let taken = net.udp_addr(taken).unwrap();
        for (name, old, new) in [
            ("one address to all", one, vec![all]),
            ("all addresses to one", all, vec![one]),
            ("with another beside it", one, vec![all, other]),
        ] {
            iax.sockets = vec![Some((old, bind_prompt(&mut net, old).unwrap()))];
            let refused = iax.prepare(&mut net, &asked_for(&[new.as_slice(), &[taken]].concat()));
            assert!(refused.is_err(), "{name}");
            assert_eq!(open(&iax, &net), [Some(old)], "{name}: nothing has changed");
            let fresh = iax.prepare(&mut net, &asked_for(&new)).expect(name);
            assert_eq!(fresh.given_way, [(0, old)], "{name}");
            iax.drop_fresh(&mut net, fresh);
            assert_eq!(open(&iax, &net), [Some(old)], "{name}: a part of the site refused it");
            net.close_udp(iax.sockets[0].take().unwrap().1);
        }
        iax.sockets = vec![Some((one, bind_prompt(&mut net, one).unwrap()))];
        let fresh = iax.prepare(&mut net, &asked_for(&[one, other])).unwrap();
        assert!(fresh.given_way.is_empty() && fresh.opened.len() == 1, "what stays is left alone");
    }
}
