//! Networks of addresses.

use core::net::{IpAddr, Ipv6Addr};

/// Whether `address` lies in the network (address, prefix bits); an IPv4 address mapped into IPv6 counts as IPv4.
pub fn in_network((net, bits): (IpAddr, u8), address: IpAddr) -> bool {
    let (differing, width) = match (net.to_canonical(), address.to_canonical()) {
        (IpAddr::V4(net), IpAddr::V4(address)) => (u128::from(net.to_bits() ^ address.to_bits()), 32),
        (IpAddr::V6(net), IpAddr::V6(address)) => (net.to_bits() ^ address.to_bits(), 128),
        _ => return false,
    };
    differing.checked_shr(width - u32::from(bits).min(width)).unwrap_or(0) == 0
}

/// What is counted as one source: an IPv4 address, or the /64 of an IPv6 address, which is the least that a site is given.
pub fn source_of(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V4(address) => address.into(),
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() & (u128::MAX << 64)).into(),
    }
}

/// Octets of IP and UDP around a datagram.
pub const fn datagram_overhead(ip: IpAddr) -> usize {
    match ip.to_canonical() {
        IpAddr::V4(_) => 20 + 8,
        IpAddr::V6(_) => 40 + 8,
    }
}

/// The most octets that may answer so many of somebody who has proved nothing, IP and UDP around both counted: 3/2. So
/// nobody is worth writing on a datagram as its sender.
pub const fn answer_octets(asked: usize) -> usize {
    asked.saturating_mul(3) / 2
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_lies_in_a_network_when_its_first_bits_are_the_same() {
        for (net, bits, address, inside) in [
            ("0.0.0.0", 0, "8.8.8.8", true),
            ("8.8.8.8", 32, "8.8.8.8", true),
            ("8.8.8.8", 32, "8.8.8.9", false),
            ("8.8.8.8", 255, "8.8.8.9", false),
            ("10.0.0.0", 8, "::ffff:10.1.1.1", true),
            ("::", 0, "8.8.8.8", false),
            ("::", 0, "2001:db8::1", true),
            ("2001:db8::", 32, "2001:db8:1::1", true),
            ("2001:db8::", 32, "2001:db9::1", false),
        ] {
            let network = (net.parse().unwrap(), bits);
            assert_eq!(in_network(network, address.parse().unwrap()), inside, "{net}/{bits}, {address}");
        }
    }

    #[test]
    fn a_source_is_an_ipv4_address_or_64_bits_of_ipv6() {
        for (address, source) in [
            ("192.0.2.1", "192.0.2.1"),
            ("::ffff:192.0.2.1", "192.0.2.1"),
            ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::"),
        ] {
            assert_eq!(source_of(address.parse().unwrap()), source.parse::<IpAddr>().unwrap(), "{address}");
        }
    }
}
