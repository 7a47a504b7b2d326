use std::collections::{BTreeMap, BTreeSet};

use base::dns::{Naptr, Srv};

use super::*;

/// What the DNS of a test knows; what is not listed is not there.
#[derive(Default)]
struct Dns {
    records: BTreeMap<Question, Records>,
    /// Names whose answers have not come.
    slow: BTreeSet<String>,
    asked: Vec<Question>,
}

impl Dns {
    /// Lines as of a zone file: `example.com NAPTR 10 20 s SIP+D2U _sip._udp.example.com`,
    /// `_sip._udp.example.com SRV 0 1 5060 a.example.com`, `a.example.com A 192.0.2.1`, `x SLOW`.
    fn new(lines: &[&str]) -> Self {
        let mut dns = Self::default();
        for line in lines {
            let words: Vec<&str> = line.split(' ').collect();
            let number = |at: usize| words[at].parse::<u16>().unwrap();
            let rooted = |at: usize| words[at].trim_end_matches('.').to_owned();
            let kind = match words[1] {
                "SLOW" => {
                    dns.slow.insert(words[0].to_owned());
                    continue;
                }
                "A" => Kind::Addresses,
                "SRV" => Kind::Srv,
                _ => Kind::Naptr,
            };
            let known =
                dns.records.entry(Question::new(kind, words[0])).or_insert_with(|| Records::none(kind));
            match known {
                Records::Addresses(found) => {
                    *found = found.iter().copied().chain([words[2].parse().unwrap()]).collect();
                }
                Records::Srv(found) => {
                    let record =
                        Srv { priority: number(2), weight: number(3), port: number(4), target: rooted(5) };
                    *found = found.iter().cloned().chain([record]).collect();
                }
                Records::Naptr(found) => {
                    let record = Naptr {
                        order: number(2),
                        preference: number(3),
                        flags: words[4].to_owned(),
                        service: words[5].to_owned(),
                        regexp: String::new(),
                        replacement: rooted(6),
                    };
                    *found = found.iter().cloned().chain([record]).collect();
                }
            }
        }
        dns
    }
    fn locate(&mut self, uri: &str, available: &[Protocol]) -> Found {
        let wanted = Wanted::new(&Uri::parse(uri.as_bytes()).unwrap(), None).unwrap();
        let Self { records, slow, asked } = self;
        let mut known = |question: &Question| {
            asked.push(question.clone());
            if slow.contains(&question.name) {
                return None;
            }
            Some(records.get(question).cloned().unwrap_or_else(|| Records::none(question.kind)))
        };
        // The lowest number each time: those of no weight first, then in the order of the records.
        locate(&wanted, available, &mut known, &mut |_| 0)
    }
}

/// `udp 192.0.2.1:5060, tcp …`
fn spelt(found: &Found) -> String {
    let Found::Targets(targets) = found else { return "awaited".to_owned() };
    let words = targets.iter().map(|t| format!("{} {}", t.protocol.name().to_ascii_lowercase(), t.remote));
    words.collect::<Vec<_>>().join(", ")
}

const ALL: [Protocol; 3] = [Protocol::Udp, Protocol::Tcp, Protocol::Tls];

/// The zone of RFC 3263 §4.1, with hosts.
const ZONE: [&str; 12] = [
    "example.com NAPTR 50 50 s SIPS+D2T _sips._tcp.example.com.",
    "example.com NAPTR 90 50 s SIP+D2T _sip._tcp.example.com",
    "example.com NAPTR 100 50 s SIP+D2U _sip._udp.example.com.",
    "_sips._tcp.example.com SRV 0 1 5061 server1.example.com",
    "_sip._tcp.example.com SRV 0 1 5060 server1.example.com.",
    "_sip._tcp.example.com SRV 1 1 5060 server2.example.com.",
    "_sip._udp.example.com SRV 0 1 5070 server1.example.com",
    "_sip._udp.example.com SRV 1 1 5070 server2.example.com",
    "server1.example.com A 192.0.2.1",
    "server1.example.com A 2001:db8::1",
    "server2.example.com A 192.0.2.2",
    "example.com A 192.0.2.9",
];

#[test]
fn rfc3263_4_1_and_4_2_transport_addresses_and_ports() {
    let two = "tcp 192.0.2.1:5060, tcp [2001:db8::1]:5060, tcp 192.0.2.2:5060";
    for (name, uri, available, expected) in [
        ("NAPTR: the lowest order that exists here", "sip:example.com", &ALL[..2], two),
        ("TLS, where there is TLS", "sip:example.com", &ALL, "tls 192.0.2.1:5061, tls [2001:db8::1]:5061"),
        ("sips takes no other", "sips:example.com", &ALL, "tls 192.0.2.1:5061, tls [2001:db8::1]:5061"),
        ("sips, and no TLS here", "sips:example.com", &ALL[..2], ""),
        ("a transport in the URI: its services", "sip:example.com;transport=tcp", &ALL, two),
        (
            "sips by TCP is TLS",
            "sips:example.com;transport=tcp",
            &ALL,
            "tls 192.0.2.1:5061, tls [2001:db8::1]:5061",
        ),
        ("a port: the name's addresses, by UDP", "sip:example.com:5080", &ALL, "udp 192.0.2.9:5080"),
        ("a port and sips: TLS", "sips:example.com:5080", &ALL, "tls 192.0.2.9:5080"),
        ("a port and a transport", "sip:example.com:5080;transport=TCP", &ALL, "tcp 192.0.2.9:5080"),
        ("an address: UDP and the usual port", "sip:192.0.2.7", &ALL, "udp 192.0.2.7:5060"),
        ("an address and sips", "sips:192.0.2.7", &ALL, "tls 192.0.2.7:5061"),
        ("an address and a transport", "sip:[2001:db8::7];transport=tls", &ALL, "tls [2001:db8::7]:5061"),
        ("maddr is where it goes (§4)", "sip:example.com;maddr=192.0.2.8", &ALL, "udp 192.0.2.8:5060"),
        ("no service of that transport", "sip:server2.example.com;transport=tcp", &ALL, "tcp 192.0.2.2:5060"),
        ("no record but addresses: UDP", "sip:server2.example.com", &ALL, "udp 192.0.2.2:5060"),
        ("no record but addresses, sips", "sips:server2.example.com", &ALL, "tls 192.0.2.2:5061"),
        ("no UDP here", "sip:server2.example.com", &ALL[1..], "tcp 192.0.2.2:5060"),
        ("WebSocket has no services", "sip:server2.example.com;transport=ws", &ALL, "ws 192.0.2.2:80"),
        ("no such name", "sip:nowhere.example.com", &ALL, ""),
    ] {
        assert_eq!(spelt(&Dns::new(&ZONE).locate(uri, available)), expected, "{name}");
    }
}

#[test]
fn rfc3263_4_1_without_naptr_the_first_transport_with_services_is_taken() {
    let zone = [
        "_sip._tcp.example.com SRV 10 1 5080 b.example.com",
        "_sip._tcp.example.com SRV 5 1 5081 a.example.com",
        "_sips._tcp.example.com SRV 1 1 5061 a.example.com",
        "a.example.com A 192.0.2.1",
        "b.example.com A 192.0.2.2",
        "example.com A 192.0.2.9",
    ];
    let with = |more: &[&'static str]| Dns::new(&[&zone[..], more].concat());
    for (name, more, expected) in [
        ("TCP has services", &[][..], "tcp 192.0.2.1:5081, tcp 192.0.2.2:5080"),
        (
            "UDP is decidedly not there (RFC 2782)",
            &["_sip._udp.example.com SRV 0 0 0 ."],
            "tcp 192.0.2.1:5081, tcp 192.0.2.2:5080",
        ),
        (
            "a server without an address is passed over",
            &["_sip._tcp.example.com SRV 1 1 5060 gone.example.com"],
            "tcp 192.0.2.1:5081, tcp 192.0.2.2:5080",
        ),
        (
            "NAPTR that leads nowhere",
            &["example.com NAPTR 1 1 s SIP+D2U _sip._udp.other.example.com"],
            "tcp 192.0.2.1:5081, tcp 192.0.2.2:5080",
        ),
        (
            "NAPTR for other things",
            &["example.com NAPTR 1 1 u E2U+sip example.com", "example.com NAPTR 1 1 s SIP+D2S example.com"],
            "tcp 192.0.2.1:5081, tcp 192.0.2.2:5080",
        ),
        (
            "NAPTR to another domain's services",
            &[
                "example.com NAPTR 1 1 S sip+d2u _sip._udp.other.example.com",
                "_sip._udp.other.example.com SRV 0 0 5090 b.example.com",
            ],
            "udp 192.0.2.2:5090",
        ),
        (
            "addresses of everybody and nobody are no servers",
            &[
                "_sip._udp.example.com SRV 0 0 5060 all.example.com",
                "all.example.com A 255.255.255.255",
                "all.example.com A 224.0.1.75",
                "all.example.com A 0.0.0.0",
                "all.example.com A ::",
                "all.example.com A 192.0.2.3",
            ],
            "udp 192.0.2.3:5060",
        ),
    ] {
        assert_eq!(spelt(&with(more).locate("sip:example.com", &ALL)), expected, "{name}");
    }
}

#[test]
fn everything_that_may_be_needed_is_asked_at_once() {
    for (slow, asked) in [
        ("example.com", 5),
        ("_sip._udp.example.com", 6),
        // Its services are known: their hosts' addresses are asked for too.
        ("server1.example.com", 8),
    ] {
        let slow = format!("{slow} SLOW");
        let zone: Vec<&str> = ZONE[2..].iter().copied().chain([slow.as_str()]).collect();
        let mut dns = Dns::new(&zone);
        assert_eq!(dns.locate("sip:example.com", &ALL), Found::Awaited, "{slow}");
        assert_eq!(dns.asked.len(), asked, "{slow}: {:?}", dns.asked);
    }
    let mut dns = Dns::new(&ZONE);
    dns.locate("sip:192.0.2.1", &ALL);
    assert!(dns.asked.is_empty());
    dns.locate("sip:example.com:5060", &ALL);
    assert_eq!(dns.asked, [Question::new(Kind::Addresses, "example.com")]);
}

#[test]
fn rfc2782_priority_comes_before_weight_and_weights_are_shares() {
    let record = |priority, weight, port| Srv { priority, weight, port, target: "x".to_owned() };
    let records = [record(2, 9, 1), record(1, 30, 2), record(1, 0, 3), record(1, 10, 4), record(1, 60, 5)];
    for (drawn, expected) in [
        ([0, 0, 0, 0, 0], [3, 2, 4, 5, 1]),
        ([1, 0, 0, 0, 0], [2, 3, 4, 5, 1]),
        ([30, 11, 0, 0, 0], [2, 5, 3, 4, 1]),
        ([31, 0, 0, 0, 0], [4, 3, 2, 5, 1]),
        ([100, 40, 10, 0, 0], [5, 4, 2, 3, 1]),
    ] {
        let mut left = drawn.iter();
        let mut sums = Vec::new();
        let ranked = by_rank(&records, &mut |sum| {
            sums.push(sum);
            (*left.next().unwrap()).min(sum)
        });
        let ports: Vec<u16> = ranked.iter().map(|record| record.port).collect();
        assert_eq!((ports.as_slice(), sums[0]), (&expected[..], 100), "{drawn:?}");
    }
    // Over many draws the shares are those of the weights.
    let mut state = 1_u64;
    let mut draw = |most: u32| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((state >> 33) % (u64::from(most) + 1)) as u32
    };
    let mut first = BTreeMap::new();
    for _ in 0..10_000 {
        *first.entry(by_rank(&records, &mut draw)[0].port).or_insert(0_u32) += 1;
    }
    for (port, share) in [(2, 3000), (4, 1000), (5, 6000)] {
        assert!(first[&port].abs_diff(share) < 300, "{first:?}");
    }
}

#[test]
fn what_somebody_else_lists_is_bounded() {
    let lines: Vec<String> = (0..40)
        .flat_map(|n| {
            [
                format!("_sip._udp.example.com SRV 0 1 5060 h{n}.example.com"),
                format!("h{n}.example.com A 192.0.2.{n}"),
            ]
        })
        .collect();
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    let Found::Targets(targets) = Dns::new(&lines).locate("sip:example.com", &ALL) else { panic!("known") };
    assert_eq!(targets.len(), TARGETS_MAX);
}
