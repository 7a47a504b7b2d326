//! Keep-alives of flows of datagrams that SIP goes by (RFC 5626 §3.5.2): a STUN binding request (RFC 5389 §7.3.1) at the port
//! of SIP is answered with the address that it came from, by which who asks sees that its flow has another one.
//!
//! Phones ask us ([`answer`]), and we ask registrars ([`request`], [`told`]). Nothing else of STUN is spoken here: there is
//! nothing to log in to, and an answer has at most 1.5 times the bytes on the wire that its request has.

use core::net::{IpAddr, SocketAddr};

/// In every message (RFC 5389 §6); no SIP message has it there.
const COOKIE: [u8; 4] = [0x21, 0x12, 0xA4, 0x42];
/// Length of the head.
const HEAD_BYTES: usize = 20;
/// Longest request that is answered: a keep-alive has hardly any attributes.
const REQUEST_BYTES_MAX: usize = 256;
const BINDING_REQUEST: u16 = 0x0001;
const BINDING_SUCCESS: u16 = 0x0101;
const BINDING_ERROR: u16 = 0x0111;
const ERROR_CODE: u16 = 0x0009;
const UNKNOWN_ATTRIBUTES: u16 = 0x000A;
const XOR_MAPPED_ADDRESS: u16 = 0x0020;
/// Attributes below it have to be understood (RFC 5389 §15).
const OPTIONAL: u16 = 0x8000;
/// Attributes named in an error; a request that has more is told of the first of them.
const UNKNOWN_MAX: usize = 8;

/// Whether a datagram is a message of STUN, and none of SIP: its first two bits are zero, and the cookie is there.
pub fn is_stun(datagram: &[u8]) -> bool {
    datagram.first().is_some_and(|first| *first < 0x40)
        && datagram.get(4..8) == Some(&COOKIE)
        && datagram.len() >= HEAD_BYTES
}

/// The answer to a binding request that came from `source`; `None` for anything else, which is not answered.
pub fn answer(request: &[u8], source: SocketAddr) -> Option<Vec<u8>> {
    let (head, attributes) = request.split_at_checked(HEAD_BYTES)?;
    let word = |at: usize| Some(u16::from_be_bytes([*head.get(at)?, *head.get(at + 1)?]));
    let whole = usize::from(word(2)?) == attributes.len() && attributes.len().is_multiple_of(4);
    if !is_stun(request) || word(0)? != BINDING_REQUEST || !whole || request.len() > REQUEST_BYTES_MAX {
        return None;
    }
    let transaction = head.get(4..)?;
    let unknown = unknown(attributes)?;
    let mut body = Vec::new();
    let kind = if unknown.is_empty() {
        attribute(&mut body, XOR_MAPPED_ADDRESS, &mapped(source, transaction));
        BINDING_SUCCESS
    } else {
        // 420 without its words: they would make the answer of a forged request longer than it may be.
        attribute(&mut body, ERROR_CODE, b"\0\0\x04\x14");
        let names: Vec<u8> = unknown.iter().flat_map(|name| name.to_be_bytes()).collect();
        attribute(&mut body, UNKNOWN_ATTRIBUTES, &names);
        BINDING_ERROR
    };
    let mut message = kind.to_be_bytes().to_vec();
    message.extend_from_slice(&u16::try_from(body.len()).ok()?.to_be_bytes());
    message.extend_from_slice(transaction);
    message.extend_from_slice(&body);
    Some(message)
}

/// The number of a request and its answer.
pub type Transaction = [u8; 12];

/// A binding request.
pub fn request(transaction: &Transaction) -> Vec<u8> {
    [&BINDING_REQUEST.to_be_bytes()[..], &[0, 0], &COOKIE, transaction].concat()
}

/// What an answer to a binding request says: the address that it came from, or nothing when it was refused or has no
/// address that can be read. `None`: it answers another request, or none.
pub fn told(answer: &[u8], transaction: &Transaction) -> Option<Option<SocketAddr>> {
    let (head, attributes) = answer.split_at_checked(HEAD_BYTES)?;
    let [k0, k1, l0, l1, ..] = *head else { return None };
    let is_whole = usize::from(u16::from_be_bytes([l0, l1])) == attributes.len();
    if !is_stun(answer) || !is_whole || head.get(8..) != Some(transaction) {
        return None;
    }
    match u16::from_be_bytes([k0, k1]) {
        BINDING_SUCCESS => Some(mapped_in(attributes, head.get(4..).unwrap_or_default())),
        BINDING_ERROR => Some(None),
        _ => None,
    }
}

/// The first XOR-MAPPED-ADDRESS.
fn mapped_in(mut rest: &[u8], mask: &[u8]) -> Option<SocketAddr> {
    while let Some(([k0, k1, l0, l1], behind)) = rest.split_first_chunk::<4>() {
        let length = usize::from(u16::from_be_bytes([*l0, *l1]));
        if u16::from_be_bytes([*k0, *k1]) == XOR_MAPPED_ADDRESS {
            let [_, family, port @ ..] = behind.get(..4)? else { return None };
            let clear =
                |bytes: &[u8]| bytes.iter().zip(mask).map(|(byte, mask)| byte ^ mask).collect::<Vec<u8>>();
            let port = u16::from_be_bytes(clear(port).try_into().ok()?);
            let ip = clear(behind.get(4..length)?);
            return match family {
                1 => Some(SocketAddr::new(<[u8; 4]>::try_from(ip).ok()?.into(), port)),
                2 => Some(SocketAddr::new(<[u8; 16]>::try_from(ip).ok()?.into(), port)),
                _ => None,
            };
        }
        rest = behind.get(length.next_multiple_of(4)..)?;
    }
    None
}

/// Attributes that would have to be understood; `None` when they cannot be told apart.
fn unknown(mut rest: &[u8]) -> Option<Vec<u16>> {
    let mut unknown = Vec::new();
    while let Some(([k0, k1, l0, l1], behind)) = rest.split_first_chunk::<4>() {
        let length = usize::from(u16::from_be_bytes([*l0, *l1])).next_multiple_of(4);
        rest = behind.get(length..)?;
        let kind = u16::from_be_bytes([*k0, *k1]);
        if kind < OPTIONAL && unknown.len() < UNKNOWN_MAX {
            unknown.push(kind);
        }
    }
    Some(unknown)
}

fn attribute(out: &mut Vec<u8>, kind: u16, value: &[u8]) {
    out.extend_from_slice(&kind.to_be_bytes());
    out.extend_from_slice(&u16::try_from(value.len()).unwrap_or(0).to_be_bytes());
    out.extend_from_slice(value);
    out.resize(out.len().next_multiple_of(4), 0);
}

/// An address under the cookie and the transaction's number, so that no router on the way takes it for one that it has to
/// translate (RFC 5389 §15.2).
fn mapped(source: SocketAddr, transaction: &[u8]) -> Vec<u8> {
    let (family, ip) = match source.ip().to_canonical() {
        IpAddr::V4(ip) => (1, ip.octets().to_vec()),
        IpAddr::V6(ip) => (2, ip.octets().to_vec()),
    };
    let port = source.port().to_be_bytes();
    let masked =
        |bytes: &[u8]| bytes.iter().zip(transaction).map(|(byte, mask)| byte ^ mask).collect::<Vec<u8>>();
    [vec![0, family], masked(&port), masked(&ip)].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The number of the transaction in RFC 5769.
    const NUMBER: [u8; 12] = [0xb7, 0xe7, 0xa7, 0x01, 0xbc, 0x34, 0xd6, 0x86, 0xfa, 0x87, 0xdf, 0xae];

    fn request(kind: u16, attributes: &[u8]) -> Vec<u8> {
        let length = u16::try_from(attributes.len()).unwrap();
        [&kind.to_be_bytes()[..], &length.to_be_bytes(), &COOKIE, &NUMBER, attributes].concat()
    }

    #[test]
    fn rfc5626_3_5_2_a_binding_request_is_told_the_address_it_came_from() {
        // The mapped addresses of RFC 5769 §2.2 and §2.3.
        for (source, expected) in [
            ("192.0.2.1:32853", &[0, 0x20, 0, 8, 0, 1, 0xa1, 0x47, 0xe1, 0x12, 0xa6, 0x43][..]),
            ("[::ffff:192.0.2.1]:32853", &[0, 0x20, 0, 8, 0, 1, 0xa1, 0x47, 0xe1, 0x12, 0xa6, 0x43]),
            (
                "[2001:db8:1234:5678:11:2233:4455:6677]:32853",
                &[
                    0, 0x20, 0, 20, 0, 2, 0xa1, 0x47, 0x01, 0x13, 0xa9, 0xfa, 0xa5, 0xd3, 0xf1, 0x79, 0xbc,
                    0x25, 0xf4, 0xb5, 0xbe, 0xd2, 0xb9, 0xd9,
                ],
            ),
        ] {
            // SOFTWARE need not be understood.
            let said =
                answer(&request(BINDING_REQUEST, b"\x80\x22\0\x03abc\0"), source.parse().unwrap()).unwrap();
            assert_eq!(said.get(..2), Some(&[1, 1][..]), "{source}");
            assert_eq!(said.get(4..20), Some(&[&COOKIE[..], &NUMBER].concat()[..]), "{source}");
            assert_eq!(said.get(20..), Some(expected), "{source}");
            assert_eq!(usize::from(said[2]) << 8 | usize::from(said[3]), expected.len(), "{source}");
        }
    }

    #[test]
    fn rfc5389_7_3_3_an_answer_is_that_of_its_request_and_says_where_that_came_from() {
        for source in ["192.0.2.1:32853", "[2001:db8::1]:5060"] {
            let source: SocketAddr = source.parse().unwrap();
            let asked = super::request(&NUMBER);
            let said = answer(&asked, source).unwrap();
            assert_eq!(told(&said, &NUMBER), Some(Some(source)));
            assert_eq!(told(&said, &[0; 12]), None, "of another request");
            assert_eq!(told(&asked, &NUMBER), None, "no answer");
            for length in 0..said.len() {
                assert_eq!(told(&said[..length], &NUMBER), None, "{length} bytes of it");
            }
        }
        let refused = answer(
            &request(BINDING_REQUEST, &[0x00, 0x03, 0, 4, 0, 0, 0, 2]),
            "192.0.2.1:1".parse().unwrap(),
        );
        assert_eq!(told(&refused.unwrap(), &NUMBER), Some(None));
        let unreadable = request(BINDING_SUCCESS, &[0, 0x20, 0, 8, 0, 9, 0xa1, 0x47, 0xe1, 0x12, 0xa6, 0x43]);
        assert_eq!(told(&unreadable, &NUMBER), Some(None), "of no family");
        let too_long = request(BINDING_SUCCESS, &[0, 0x20, 0, 80, 0, 1, 0xa1, 0x47, 0xe1, 0x12, 0xa6, 0x43]);
        assert_eq!(told(&too_long, &NUMBER), Some(None), "longer than the message");
    }

    #[test]
    fn rfc5389_7_3_1_what_has_to_be_understood_and_is_not_is_named() {
        let wants_relay = request(BINDING_REQUEST, &[0x00, 0x03, 0, 4, 0, 0, 0, 2]);
        let said = answer(&wants_relay, "192.0.2.1:5060".parse().unwrap()).unwrap();
        assert_eq!(said.get(..2), Some(&[1, 0x11][..]));
        assert!(said.windows(6).any(|window| window == [0, 0x0A, 0, 2, 0, 3]), "{said:x?}");
        assert_eq!(said.len() % 4, 0);
    }

    #[test]
    fn an_answer_has_at_most_one_and_a_half_times_the_bytes_on_the_wire_of_its_request() {
        let unknown = |count: u8| (1..=count).flat_map(|kind| [0, kind, 0, 0]).collect::<Vec<u8>>();
        let of_v4 = ("192.0.2.1:5060", 20 + 8);
        let of_v6 = ("[2001:db8::1]:5060", 40 + 8);
        for (name, attributes) in [
            ("nothing to understand", Vec::new()),
            ("the shortest that is refused", unknown(1)),
            ("two of them", unknown(2)),
            ("as many as are named", unknown(8)),
            ("more", unknown(40)),
        ] {
            for (source, head) in [of_v4, of_v6] {
                let asked = request(BINDING_REQUEST, &attributes);
                let said = answer(&asked, source.parse().unwrap()).unwrap();
                let (asked, said) = (asked.len() + head, said.len() + head);
                assert!(2 * said <= 3 * asked, "{name}, {source}: {said} bytes for {asked}");
            }
        }
    }

    #[test]
    fn what_is_no_binding_request_is_not_answered() {
        let whole = request(BINDING_REQUEST, &[]);
        let mut rows: Vec<(&str, Vec<u8>)> = vec![
            ("a response", request(BINDING_SUCCESS, &[])),
            ("an indication", request(0x0011, &[])),
            ("an allocation", request(0x0003, &[])),
            ("an attribute that ends nowhere", request(BINDING_REQUEST, &[0x80, 0x22, 0, 8, 1, 2, 3, 4])),
            ("half an attribute", request(BINDING_REQUEST, &[0x80, 0x22])),
            ("too long", request(BINDING_REQUEST, &[0; 512])),
            ("SIP", b"OPTIONS sip:a@b SIP/2.0\r\n\r\n".to_vec()),
            ("a line break", b"\r\n\r\n".to_vec()),
            ("more than it says", [whole.clone(), vec![0; 4]].concat()),
        ];
        rows.extend((0..whole.len()).map(|end| ("cut off", whole.get(..end).unwrap().to_vec())));
        for (name, bytes) in rows {
            assert_eq!(answer(&bytes, "192.0.2.1:5060".parse().unwrap()), None, "{name} {}", bytes.len());
        }
        assert!(is_stun(&whole) && !is_stun(b"OPTIONS sip:a@b SIP/2.0\r\n\r\n"));
    }
}
