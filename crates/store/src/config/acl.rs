//! Who may talk: `permit=` and `deny=` lists, and the named lists of `acl.conf`.

use conf::{File, Findings, Place};
use std::collections::BTreeMap;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;
use std::sync::Arc;

/// A network: an address and a mask. IPv4-mapped IPv6 addresses are IPv4 here and everywhere in this module.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Net {
    address: IpAddr,
    mask: IpAddr,
}

/// Takes an IPv4 address out of its IPv6 clothes (RFC 4291 §2.5.5.2).
fn plain(ip: IpAddr) -> IpAddr {
    ip.to_canonical()
}

fn and(a: IpAddr, b: IpAddr) -> Option<IpAddr> {
    match (a, b) {
        (IpAddr::V4(a), IpAddr::V4(b)) => Some(Ipv4Addr::from_bits(a.to_bits() & b.to_bits()).into()),
        (IpAddr::V6(a), IpAddr::V6(b)) => Some(Ipv6Addr::from_bits(a.to_bits() & b.to_bits()).into()),
        _ => None,
    }
}

impl Net {
    /// The one host.
    pub fn host(ip: IpAddr) -> Self {
        let address = plain(ip);
        Self { address, mask: if address.is_ipv4() { prefix_v4(32) } else { prefix_v6(128) } }
    }
    /// The address and the mask.
    pub fn pair(&self) -> (IpAddr, IpAddr) {
        (self.address, self.mask)
    }
    /// The address and the number of leading one bits of the mask.
    pub fn parts(&self) -> (IpAddr, u8) {
        let bits = match self.mask {
            IpAddr::V4(mask) => mask.to_bits().leading_ones(),
            IpAddr::V6(mask) => mask.to_bits().leading_ones(),
        };
        (self.address, u8::try_from(bits).unwrap_or(0))
    }
    /// The network that a text begins with, and what stands behind it: the field reads `10.0.0.0/8 // office` as a network.
    pub(crate) fn leading(text: &str) -> Option<(Self, &str)> {
        if let Ok(net) = text.parse() {
            return Some((net, ""));
        }
        let (first, rest) = text.split_once(char::is_whitespace)?;
        Some((first.parse().ok()?, rest.trim()))
    }
    /// Whether the address lies in it.
    pub fn contains(&self, ip: IpAddr) -> bool {
        and(plain(ip), self.mask) == Some(self.address)
    }
}

fn prefix_v4(bits: u32) -> IpAddr {
    Ipv4Addr::from_bits(u32::MAX.checked_shl(32 - bits.min(32)).unwrap_or(0)).into()
}

fn prefix_v6(bits: u32) -> IpAddr {
    Ipv6Addr::from_bits(u128::MAX.checked_shl(128 - bits.min(128)).unwrap_or(0)).into()
}

impl FromStr for Net {
    type Err = ();
    /// `192.0.2.1`, `192.0.2.0/24`, `192.0.2.0/255.255.255.0`, `2001:db8::/32`, brackets allowed. Host bits are cleared.
    fn from_str(text: &str) -> Result<Self, ()> {
        let (address, mask) = text.split_once('/').map_or((text, None), |(a, m)| (a.trim(), Some(m.trim())));
        let address = address.strip_prefix('[').and_then(|a| a.strip_suffix(']')).unwrap_or(address);
        let written: IpAddr = address.parse().map_err(|_| ())?;
        let address = plain(written);
        let mapped = written != address;
        let Some(mask) = mask else { return Ok(Self::host(address)) };
        let mask = match mask.parse::<u32>() {
            // A mapped network counts its bits from the front of the IPv6 form.
            Ok(bits @ 96..=128) if mapped => prefix_v4(bits - 96),
            Ok(_) if mapped => return Err(()),
            Ok(bits @ 0..=32) if address.is_ipv4() => prefix_v4(bits),
            Ok(bits @ 0..=128) if address.is_ipv6() => prefix_v6(bits),
            Ok(_) => return Err(()),
            Err(_) => mask.parse().map_err(|_| ())?,
        };
        let address = and(address, mask).ok_or(())?;
        Ok(Self { address, mask })
    }
}

impl fmt::Display for Net {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (bits, ones) = match self.mask {
            IpAddr::V4(mask) => (mask.to_bits().count_ones(), mask.to_bits().leading_ones()),
            IpAddr::V6(mask) => (mask.to_bits().count_ones(), mask.to_bits().leading_ones()),
        };
        if bits == ones {
            write!(f, "{}/{bits}", self.address)
        } else {
            write!(f, "{}/{}", self.address, self.mask)
        }
    }
}

impl fmt::Debug for Net {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A list of rules. Everything is allowed until a rule says otherwise, and the last rule that matches decides.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Acl {
    rules: Vec<(bool, Net)>,
}

impl Acl {
    /// Adds the networks of one `permit=` or `deny=` line, comma separated; `!` before one turns its sense. An error is
    /// the item that is no network, and nothing of the line is added then.
    pub fn add(&mut self, permit: bool, networks: &str) -> Result<(), String> {
        let before = self.rules.len();
        for item in networks.split(',').map(str::trim).filter(|item| !item.is_empty()) {
            let (text, turned) = item.strip_prefix('!').map_or((item, false), |text| (text.trim(), true));
            let Some((net, _)) = Net::leading(text) else {
                self.rules.truncate(before);
                return Err(item.to_owned());
            };
            self.rules.push((permit != turned, net));
        }
        Ok(())
    }
    /// Whether the address may talk.
    pub fn allows(&self, ip: IpAddr) -> bool {
        self.rules.iter().rev().find(|(_, net)| net.contains(ip)).is_none_or(|(permit, _)| *permit)
    }
    /// Rules in order: whether it permits, and whom.
    pub fn rules(&self) -> &[(bool, Net)] {
        &self.rules
    }
    /// Whether there is no rule, so that everyone is allowed.
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }
}

/// Several lists that must all allow: an object's own rules and the named lists it refers to.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Access {
    lists: Vec<Arc<Acl>>,
}

impl Access {
    /// Whether every list lets the address talk.
    pub fn allows(&self, ip: IpAddr) -> bool {
        self.lists.iter().all(|list| list.allows(ip))
    }
    /// Whether nothing is restricted.
    pub fn is_empty(&self) -> bool {
        self.lists.is_empty()
    }
    /// Lets nobody in, whatever else is said.
    pub(crate) fn shut(&mut self) {
        self.lists.push(Self::nobody());
    }
    /// Access that nobody has; stands where a named list is missing, so that a typing error never opens a door.
    fn nobody() -> Arc<Acl> {
        let mut acl = Acl::default();
        let everyone = [
            Net { address: Ipv4Addr::UNSPECIFIED.into(), mask: prefix_v4(0) },
            Net { address: Ipv6Addr::UNSPECIFIED.into(), mask: prefix_v6(0) },
        ];
        acl.rules.extend(everyone.map(|net| (false, net)));
        Arc::new(acl)
    }
}

/// `acl.conf`: a section a list.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NamedAcls {
    lists: BTreeMap<String, Arc<Acl>>,
}

impl NamedAcls {
    /// Reads the sections of `acl.conf`. A section with a bad line is skipped.
    pub fn read(file: &File, findings: &mut Findings) -> Self {
        let mut named = Self::default();
        for section in file.objects() {
            let mut acl = Acl::default();
            let mut valid = true;
            for variable in &section.variables {
                let permit = match variable.name.to_ascii_lowercase().as_str() {
                    "permit" => true,
                    "deny" => false,
                    other => {
                        let message = format!("`{other}` is neither permit nor deny and is ignored");
                        findings.warning(&variable.place, message, "write permit= or deny=");
                        continue;
                    }
                };
                if let Err(item) = acl.add(permit, &variable.value) {
                    let message = format!("`{item}` is no network; the list [{}] is skipped", section.name);
                    findings.error(&variable.place, message, "write 192.0.2.0/24 or 2001:db8::/32");
                    valid = false;
                }
            }
            if valid {
                named.lists.insert(section.name.to_string(), Arc::new(acl));
            }
        }
        named
    }
    /// A list by its name.
    pub fn get(&self, name: &str) -> Option<&Arc<Acl>> {
        self.lists.get(name)
    }
    /// Names in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.lists.keys().map(String::as_str)
    }
    /// An object's own rules with the named lists it refers to. A list that does not exist lets nobody in.
    pub fn access(&self, own: &Acl, names: &[String], place: &Place, findings: &mut Findings) -> Access {
        let mut access = Access::default();
        if !own.is_empty() {
            access.lists.push(Arc::new(own.clone()));
        }
        for name in names {
            match self.lists.get(name) {
                Some(list) => access.lists.push(list.clone()),
                None => {
                    let message =
                        format!("acl={name} names a list that acl.conf does not have; nobody is let in");
                    findings.error(place, message, format!("add a section [{name}] to acl.conf"));
                    access.lists.push(Access::nobody());
                }
            }
        }
        access
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn acl(rules: &[(bool, &str)]) -> Acl {
        let mut acl = Acl::default();
        for &(permit, text) in rules {
            acl.add(permit, text).unwrap();
        }
        acl
    }

    #[test]
    fn the_last_matching_rule_decides() {
        for (name, rules, ip, expected) in [
            ("no rule allows", &[][..], "192.0.2.1", true),
            ("deny all", &[(false, "0.0.0.0/0")], "192.0.2.1", false),
            (
                "deny all, permit one",
                &[(false, "0.0.0.0/0.0.0.0"), (true, "192.0.2.0/255.255.255.0")],
                "192.0.2.1",
                true,
            ),
            ("outside the permitted", &[(false, "0.0.0.0/0"), (true, "192.0.2.0/24")], "192.0.3.1", false),
            ("order matters", &[(true, "192.0.2.0/24"), (false, "0.0.0.0/0")], "192.0.2.1", false),
            ("a host", &[(false, "0.0.0.0/0"), (true, "192.0.2.1")], "192.0.2.1", true),
            ("host bits are cleared", &[(false, "192.0.2.77/24")], "192.0.2.1", false),
            (
                "turned in a list",
                &[(false, "0.0.0.0/0"), (true, "10.0.0.0/8,!10.1.0.0/16")],
                "10.1.2.3",
                false,
            ),
            ("IPv4 rules leave IPv6 alone", &[(false, "0.0.0.0/0")], "2001:db8::1", true),
            ("IPv6 rules leave IPv4 alone", &[(false, "::/0")], "192.0.2.1", true),
            ("IPv6", &[(false, "::/0"), (true, "2001:db8::/32")], "2001:db8:1::1", true),
            ("a mapped address is IPv4", &[(false, "192.0.2.0/24")], "::ffff:192.0.2.9", false),
            ("a mapped rule is IPv4", &[(false, "::ffff:192.0.2.0/120")], "192.0.2.9", false),
            ("a mask with holes", &[(false, "192.0.2.1/255.255.255.1")], "192.0.2.7", false),
        ] {
            assert_eq!(acl(rules).allows(ip.parse().unwrap()), expected, "{name}");
        }
    }

    #[test]
    fn what_is_no_network_is_refused_whole() {
        for text in
            ["", "x", "192.0.2.0/33", "192.0.2.0/::", "2001:db8::/129", "::ffff:192.0.2.0/24", "192.0.2", "/"]
        {
            assert_eq!(text.parse::<Net>(), Err(()), "{text:?}");
        }
        let mut list = Acl::default();
        assert_eq!(list.add(false, "10.0.0.0/8, nonsense"), Err("nonsense".to_owned()));
        assert!(list.is_empty());
        assert_eq!("192.0.2.9/24".parse::<Net>().unwrap().to_string(), "192.0.2.0/24");
    }

    /// The slow twin: compares bit by bit.
    fn oracle(rules: &[(bool, Ipv4Addr, u32)], ip: Ipv4Addr) -> bool {
        let mut allowed = true;
        for &(permit, net, bits) in rules {
            if (0..bits).all(|bit| (net.to_bits() >> (31 - bit)) & 1 == (ip.to_bits() >> (31 - bit)) & 1) {
                allowed = permit;
            }
        }
        allowed
    }

    proptest! {
        #[test]
        fn equals_the_bitwise_oracle(
            rules in proptest::collection::vec((any::<bool>(), 0u32..16, 26u32..=32), 0..8),
            host in 0u32..16,
            mapped in any::<bool>(),
        ) {
            // Sixteen neighbours, so that rules overlap.
            let base = u32::from(Ipv4Addr::new(192, 0, 2, 0));
            let rules: Vec<_> = rules.into_iter().map(|(p, n, b)| (p, Ipv4Addr::from(base + n), b)).collect();
            let mut list = Acl::default();
            for (permit, net, bits) in &rules {
                let text = if mapped { format!("::ffff:{net}/{}", bits + 96) } else { format!("{net}/{bits}") };
                list.add(*permit, &text).unwrap();
            }
            let ip = Ipv4Addr::from(base + host);
            let asked: IpAddr = if mapped { ip.into() } else { ip.to_ipv6_mapped().into() };
            prop_assert_eq!(list.allows(asked), oracle(&rules, ip));
        }
    }
}
