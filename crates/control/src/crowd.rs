//! Who gives up a place when too many want one: connections that say nothing must not keep out who has something to say.

use core::cmp::Reverse;
use std::collections::BTreeMap;
use std::net::IpAddr;

use base::source_of;

/// The strangers of each source.
pub(crate) struct Crowd(BTreeMap<IpAddr, Source>);

/// How many there are, the oldest of them, and where that one stands among all.
#[derive(Debug, Clone, Copy)]
struct Source {
    count: usize,
    place: usize,
    oldest: u64,
}

impl Crowd {
    /// Those whose numbers and addresses these are, the oldest first.
    pub fn of(strangers: impl Iterator<Item = (u64, IpAddr)>) -> Self {
        let mut sources = BTreeMap::new();
        for (place, (oldest, address)) in strangers.enumerate() {
            sources.entry(source_of(address)).or_insert(Source { count: 0, place, oldest }).count += 1;
        }
        Self(sources)
    }
    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.values().map(|source| source.count).sum()
    }
    /// How many the source of an address has.
    pub fn from(&self, address: IpAddr) -> usize {
        self.0.get(&source_of(address)).map_or(0, |source| source.count)
    }
    /// The oldest of the source that has most, and how many those are; of sources that have as many, the one that has
    /// waited longest.
    pub fn most(&self) -> Option<(usize, u64)> {
        let most = self.0.values().max_by_key(|source| (source.count, Reverse(source.place)))?;
        Some((most.count, most.oldest))
    }
    /// The oldest of the source of an address.
    pub fn oldest_of(&self, address: IpAddr) -> Option<u64> {
        self.0.get(&source_of(address)).map(|source| source.oldest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_of_the_most_crowded_source_goes_and_a_site_of_ipv6_is_one_source() {
        for (name, addresses, most) in [
            ("nobody", &[][..], None),
            ("each alone", &["192.0.2.1", "192.0.2.2"], Some((1, 9))),
            ("a crowd that came last", &["192.0.2.1", "192.0.2.2", "192.0.2.2"], Some((2, 8))),
            ("one site", &["192.0.2.1", "2001:db8::1", "2001:db8::2:1"], Some((2, 8))),
            ("mapped", &["192.0.2.2", "192.0.2.1", "::ffff:192.0.2.1"], Some((2, 8))),
        ] {
            let strangers = addresses.iter().map(|address| address.parse().unwrap());
            // Numbers say nothing of age.
            let crowd = Crowd::of((0..10).rev().zip(strangers));
            assert_eq!((crowd.most(), crowd.len()), (most, addresses.len()), "{name}");
        }
    }
}
