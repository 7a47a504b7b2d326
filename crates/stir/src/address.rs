//! Addresses that a certificate may be fetched from when the site has no list of its own.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

const fn v4(a: u8, b: u8, c: u8, d: u8, bits: u8) -> (IpAddr, u8) {
    (IpAddr::V4(Ipv4Addr::new(a, b, c, d)), bits)
}

const fn v6(first: u16, second: u16, bits: u8) -> (IpAddr, u8) {
    (IpAddr::V6(Ipv6Addr::new(first, second, 0, 0, 0, 0, 0, 0)), bits)
}

/// Networks that are not the internet (IANA's registries of special-purpose addresses, RFC 6890), and groups.
const SPECIAL: &[(IpAddr, u8)] = &[
    v4(0, 0, 0, 0, 8),
    v4(10, 0, 0, 0, 8),
    v4(100, 64, 0, 0, 10),
    v4(127, 0, 0, 0, 8),
    v4(169, 254, 0, 0, 16),
    v4(172, 16, 0, 0, 12),
    v4(192, 0, 0, 0, 24),
    v4(192, 0, 2, 0, 24),
    v4(192, 88, 99, 0, 24),
    v4(192, 168, 0, 0, 16),
    v4(198, 18, 0, 0, 15),
    v4(198, 51, 100, 0, 24),
    v4(203, 0, 113, 0, 24),
    v4(224, 0, 0, 0, 4),
    v4(240, 0, 0, 0, 4),
    // `::`, `::1`, and addresses of IPv4 in other clothes.
    v6(0, 0, 8),
    v6(0x64, 0xff9b, 32),
    v6(0x100, 0, 64),
    v6(0x2001, 0, 23),
    v6(0x2001, 0xdb8, 32),
    v6(0x2002, 0, 16),
    v6(0x3fff, 0, 20),
    v6(0x5f00, 0, 16),
    v6(0xfc00, 0, 7),
    v6(0xfe80, 0, 10),
    v6(0xfec0, 0, 10),
    v6(0xff00, 0, 8),
];

/// Whether an address is one of the internet: not a private, local, reserved or group address, by which a caller could have
/// this machine ask its neighbours.
pub fn is_public(address: IpAddr) -> bool {
    let address = address.to_canonical();
    !SPECIAL.iter().any(|net| base::in_network(*net, address))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_are_not_asked() {
        for (address, expected) in [
            ("8.8.8.8", true),
            ("172.32.0.1", true),
            ("2606:4700::1111", true),
            ("127.0.0.1", false),
            ("10.1.2.3", false),
            ("172.31.255.255", false),
            ("192.168.1.1", false),
            ("169.254.169.254", false),
            ("100.64.0.1", false),
            ("0.0.0.0", false),
            ("224.0.0.1", false),
            ("255.255.255.255", false),
            ("::", false),
            ("::1", false),
            ("::ffff:10.0.0.1", false),
            ("::ffff:8.8.8.8", true),
            ("64:ff9b::a00:1", false),
            ("fe80::1", false),
            ("fd00::1", false),
            ("ff02::1", false),
            ("2002:a00:1::", false),
        ] {
            assert_eq!(is_public(address.parse().unwrap()), expected, "{address}");
        }
    }
}
