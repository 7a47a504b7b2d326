//! Names that stand in files: the servers of resolv.conf, the addresses of the hosts file.

use std::io::Read as _;
use std::net::{IpAddr, SocketAddr};

use base::dns::{Kind, Question};

/// The DNS's port.
const PORT: u16 = 53;
/// Servers that are asked, one after the other (resolv.conf names at most three).
const SERVERS_MAX: usize = 4;
/// Bytes of such a file that are read; lists of names to block run to some hundred kilobytes.
const FILE_BYTES_MAX: u64 = 4 << 20;

fn text_of(path: &str) -> String {
    let mut bytes = Vec::new();
    // A file that cannot be read says nothing.
    let read = std::fs::File::open(path).and_then(|file| file.take(FILE_BYTES_MAX).read_to_end(&mut bytes));
    if read.is_err() {
        bytes.clear();
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Whom to ask.
pub(super) fn servers(settings: &super::Settings) -> Vec<SocketAddr> {
    let mut found = settings.servers.clone();
    if found.is_empty() {
        found = resolv_conf(&text_of(&settings.resolv_conf));
    }
    found.truncate(SERVERS_MAX);
    found
}

/// The servers of a resolv.conf.
fn resolv_conf(text: &str) -> Vec<SocketAddr> {
    let lines = text.lines().filter_map(|line| line.trim().strip_prefix("nameserver"));
    lines.filter_map(|rest| Some(SocketAddr::new(rest.trim().parse::<IpAddr>().ok()?, PORT))).collect()
}

/// The addresses that the hosts file gives a name, if it has it.
pub(super) fn hosts(settings: &super::Settings, name: &str) -> Option<Vec<IpAddr>> {
    let found = addresses(&text_of(&settings.hosts), name);
    (!found.is_empty()).then_some(found)
}

fn addresses(text: &str, name: &str) -> Vec<IpAddr> {
    let mut found = Vec::new();
    for line in text.lines() {
        let mut words = line.split('#').next().unwrap_or_default().split_ascii_whitespace();
        let Some(address) = words.next().and_then(|word| word.parse().ok()) else { continue };
        let named = words.any(|word| word.trim_end_matches('.').eq_ignore_ascii_case(name));
        if named && !found.contains(&address) {
            found.push(address);
        }
    }
    found
}

/// The host that a question is about, without the labels that name a service.
pub(super) fn host_of(question: &Question) -> &str {
    let mut name = question.name.as_str();
    if question.kind != Kind::Addresses {
        while let Some((_, rest)) = name.split_once('.').filter(|(label, _)| label.starts_with('_')) {
            name = rest;
        }
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_stand_in_resolv_conf() {
        let text =
            "# comment\nnameserver 192.0.2.53\nsearch example.com\nnameserver\t2001:db8::53\nnameserver x\n";
        let expected: Vec<SocketAddr> =
            vec!["192.0.2.53:53".parse().unwrap(), "[2001:db8::53]:53".parse().unwrap()];
        assert_eq!(resolv_conf(text), expected);
    }

    #[test]
    fn addresses_stand_in_the_hosts_file() {
        let text = "127.0.0.1\tlocalhost pbx # gw\n::1 localhost\n192.0.2.9 gw.example.com gw\n127.0.0.1 LOCALHOST\nx y\n";
        let ip = |text: &str| text.parse::<IpAddr>().unwrap();
        for (name, expected) in [
            ("localhost", vec![ip("127.0.0.1"), ip("::1")]),
            ("gw", vec![ip("192.0.2.9")]),
            ("GW.example.com", vec![ip("192.0.2.9")]),
            ("example.com", Vec::new()),
        ] {
            assert_eq!(addresses(text, name), expected, "{name}");
        }
    }

    #[test]
    fn a_service_is_one_of_a_host() {
        for (kind, name, host) in [
            (Kind::Srv, "_sip._udp.example.com", "example.com"),
            (Kind::Naptr, "example.com", "example.com"),
            (Kind::Addresses, "_odd.example.com", "_odd.example.com"),
            (Kind::Srv, "_sip", "_sip"),
        ] {
            assert_eq!(host_of(&Question::new(kind, name)), host, "{name}");
        }
    }
}
