//! How many numbers one address may have, and how many answers without state one network gets.

use crate::token::address_bytes;
use base::Instant;
use base::hash::{DigestMap, Key};
use base::in_network;
use core::net::{IpAddr, SocketAddr};
use core::time::Duration;

/// Numbers that an address may have when nothing else is said (`maxcallnumbers`).
pub const NUMBERS_OF_ADDRESS: u32 = 2048;
/// Numbers that may be given without a token altogether (`maxcallnumbers_nonvalidated`).
pub const NUMBERS_WITHOUT_TOKEN: u32 = 8192;

/// An address and the bits that count: IPv4 addresses, and the /64 of IPv6, which one host can fill with addresses.
pub(crate) fn host(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(v6) => IpAddr::V6(core::net::Ipv6Addr::from_bits(v6.to_bits() >> 64 << 64)),
        v4 => v4,
    }
}

/// Numbers in use, by host; the most that each may have.
#[derive(Debug)]
pub struct Hosts {
    key: Key,
    counts: DigestMap<(IpAddr, u32)>,
    most: u32,
    ranges: Vec<((IpAddr, u8), u32)>,
}

impl Hosts {
    /// `ranges` are those of `[callnumberlimits]`: the first that holds an address decides.
    pub fn new(key: Key, most: u32, ranges: Vec<((IpAddr, u8), u32)>) -> Self {
        Self { key, counts: DigestMap::default(), most, ranges }
    }
    /// Other limits; what is in use stays.
    pub fn set_limits(&mut self, most: u32, ranges: Vec<((IpAddr, u8), u32)>) {
        (self.most, self.ranges) = (most, ranges);
    }
    /// The most that an address may have.
    pub fn limit(&self, address: IpAddr) -> u32 {
        let range = self.ranges.iter().find(|(network, _)| in_network(*network, address));
        range.map_or(self.most, |(_, most)| *most)
    }
    fn name(&self, address: IpAddr) -> u128 {
        self.key.digest(&[&address_bytes(SocketAddr::new(host(address), 0))])
    }
    /// Counts one more for `address`; `false`, and not counted, when it has as many as it may. `most` is the peer's own
    /// limit, which goes before that of its address.
    pub fn take(&mut self, address: IpAddr, most: Option<u32>) -> bool {
        let most = most.unwrap_or_else(|| self.limit(address));
        let (_, count) = self.counts.entry(self.name(address)).or_insert((host(address), 0));
        if *count >= most {
            let empty = *count == 0;
            if empty {
                self.counts.remove(&self.name(address));
            }
            return false;
        }
        *count += 1;
        true
    }
    /// Counts one less.
    pub fn give_back(&mut self, address: IpAddr) {
        let name = self.name(address);
        if let Some((_, count)) = self.counts.get_mut(&name) {
            *count -= 1;
            if *count == 0 {
                self.counts.remove(&name);
            }
        }
    }
    /// Numbers of an address.
    pub fn count(&self, address: IpAddr) -> u32 {
        self.counts.get(&self.name(address)).map_or(0, |(_, count)| *count)
    }
    /// Addresses with numbers, in no order: how many each has, and how many it may have.
    pub fn each(&self) -> impl Iterator<Item = (IpAddr, u32, u32)> {
        self.counts.values().map(|(address, count)| (*address, *count, self.limit(*address)))
    }
    /// Addresses with numbers.
    pub fn len(&self) -> usize {
        self.counts.len()
    }
    /// Whether no address has a number.
    pub fn is_empty(&self) -> bool {
        self.counts.is_empty()
    }
}

/// Buckets; networks share one when their hashes do, so memory does not grow with addresses.
const BUCKETS: usize = 4096;

/// Answers without state that a network may have: a bucket that a rate fills.
#[derive(Debug)]
pub struct Throttle {
    key: Key,
    /// Answers a second, and the most at once.
    rate: u32,
    /// When the bucket would be full; the fuller, the earlier.
    full_at: Vec<Instant>,
}

impl Throttle {
    /// `rate` answers a second for each IPv4 /24 and IPv6 /48.
    pub fn new(key: Key, rate: u32) -> Self {
        Self { key, rate: rate.max(1), full_at: vec![Instant::ZERO; BUCKETS] }
    }
    /// Another rate.
    pub fn set_rate(&mut self, rate: u32) {
        self.rate = rate.max(1);
    }
    /// Takes one answer; `false` when there is none left.
    pub fn take(&mut self, now: Instant, address: IpAddr) -> bool {
        let network = match address.to_canonical() {
            IpAddr::V4(v4) => u128::from(v4.to_bits() >> 8),
            IpAddr::V6(v6) => v6.to_bits() >> 80 | 1 << 127,
        };
        let at = self.key.digest(&[&network.to_le_bytes()]) as usize % BUCKETS;
        let Some(full_at) = self.full_at.get_mut(at) else { return false };
        let cost = Duration::from_nanos(1_000_000_000 / u64::from(self.rate));
        let next = (*full_at).max(now) + cost;
        // A second's worth at once.
        if next - now > Duration::from_secs(1) {
            return false;
        }
        *full_at = next;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn an_address_gets_as_many_as_its_range_says_and_an_ipv6_network_counts_as_one() {
        let ranges = vec![((ip("10.1.0.0"), 16), 3), ((ip("10.0.0.0"), 8), 1), ((ip("192.0.2.9"), 32), 0)];
        let mut hosts = Hosts::new(Key::new(1), 2, ranges);
        for (name, address, own, granted) in [
            ("the default", "203.0.113.1", None, 2),
            ("the first range that fits", "10.1.2.3", None, 3),
            ("the wider range", "10.2.2.3", None, 1),
            ("none", "192.0.2.9", None, 0),
            ("the peer's own", "203.0.113.2", Some(5), 5),
        ] {
            let taken = (0..10).filter(|_| hosts.take(ip(address), own)).count();
            assert_eq!(taken, granted, "{name}");
            assert_eq!(hosts.count(ip(address)), granted as u32, "{name}");
        }
        assert!(hosts.take(ip("2001:db8::1"), None) && hosts.take(ip("2001:db8::2"), None));
        assert!(!hosts.take(ip("2001:db8::ffff:3"), None), "the third of one /64");
        assert!(hosts.take(ip("2001:db8:0:1::1"), None), "another /64");
        assert_eq!(hosts.count(ip("::ffff:203.0.113.1")), 2, "a mapped address is an IPv4 one");
    }

    #[test]
    fn what_is_given_back_leaves_nothing() {
        let mut hosts = Hosts::new(Key::new(1), 2, Vec::new());
        for octet in 0..=255 {
            assert!(hosts.take(IpAddr::from([192, 0, 2, octet]), None));
        }
        assert_eq!(hosts.len(), 256);
        for octet in 0..=255 {
            hosts.give_back(IpAddr::from([192, 0, 2, octet]));
        }
        assert!(hosts.is_empty());
        hosts.give_back(ip("192.0.2.1"));
        assert!(hosts.is_empty());
    }

    #[test]
    fn a_network_gets_its_rate_of_answers_and_another_network_its_own() {
        let mut throttle = Throttle::new(Key::new(1), 100);
        let start = Instant::ZERO + Duration::from_secs(7);
        let taken = (0..=255).filter(|octet| throttle.take(start, IpAddr::from([192, 0, 2, *octet]))).count();
        assert_eq!(taken, 100, "a second's worth at once");
        assert!(throttle.take(start, ip("198.51.100.1")));
        let later = start + Duration::from_millis(500);
        let taken = (0..=255).filter(|octet| throttle.take(later, IpAddr::from([192, 0, 2, *octet]))).count();
        assert_eq!(taken, 50, "half a second later");
    }
}
