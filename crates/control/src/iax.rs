//! What console, managers and metrics see of IAX2, and what they may ask of it; filled by the engine.

use std::net::IpAddr;

use driver::iax::{
    ChannelRow, HostNumbers, KeyRow, NetstatRow, Numbers, PeerRow, RegistryRow, Stats, UserRow,
};

/// Which frames are told in the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Trace {
    /// None.
    #[default]
    Off,
    /// All.
    All,
    /// Those from and to this address.
    Of(IpAddr),
}

/// IAX2 as it is seen from outside: the driver in the running system, tables in tests.
pub trait Show {
    /// Peers in the order of their names, all or the one of this name.
    fn peers(&self, only: Option<&str>) -> Vec<PeerRow>;
    /// Users that rows of a database have made, as far as they are known.
    fn users_of_rows(&self) -> Vec<UserRow>;
    /// Registrations of ours in file order.
    fn registry(&self) -> Vec<RegistryRow>;
    /// Calls.
    fn channels(&self) -> Vec<ChannelRow>;
    /// How the network treats each call.
    fn netstats(&self) -> Vec<NetstatRow>;
    /// Totals.
    fn stats(&self) -> Stats;
    /// Files of keys, by name.
    fn keys(&self) -> Vec<KeyRow>;
    /// Use of call numbers.
    fn numbers(&self) -> Numbers;
    /// Addresses with call numbers, those with most first, or the one that is wanted; this many at most.
    fn hosts(&self, only: Option<IpAddr>, most: usize) -> Vec<HostNumbers>;
    /// Forgets where a peer has registered from; `false` when there is no such peer, or it has not.
    fn unregister(&mut self, peer: &str) -> bool;
    /// Says which frames are told in the log.
    fn set_trace(&mut self, trace: Trace);
    /// Says whether datagrams of trunks are told in the log.
    fn set_trunk_trace(&mut self, on: bool);
    /// Says whether the jitter buffers of calls are told in the log, once a second.
    fn set_jitter_trace(&mut self, on: bool);
    /// Of a hundred datagrams that come so many are thrown away; 0 takes them all.
    fn set_loss(&mut self, percent: u8);
    /// The longest datagram of trunks, bytes; what it was.
    fn set_trunk_mtu(&mut self, bytes: usize) -> usize;
}
