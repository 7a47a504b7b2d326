//! Questions and answers as messages of the DNS (RFC 1035, RFC 2782, RFC 3403 §4.1, RFC 3596, RFC 6891).
//!
//! Bytes in, bytes out: whoever asks has the sockets.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use base::dns::{Naptr, Srv};

/// What a question asks for, by its number on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Type {
    /// IPv4 addresses (RFC 1035 §3.4.1).
    A = 1,
    /// IPv6 addresses (RFC 3596 §2.1).
    Aaaa = 28,
    /// Services (RFC 2782).
    Srv = 33,
    /// Ways on (RFC 3403 §4).
    Naptr = 35,
}

/// Type CNAME (RFC 1035 §3.2.2).
const CNAME: u16 = 5;
/// Type SOA (RFC 1035 §3.3.13).
const SOA: u16 = 6;
/// Type OPT (RFC 6891 §6.1.2).
const OPT: u16 = 41;
/// Class IN.
const INTERNET: u16 = 1;
/// Bytes of an answer over UDP that we take: what crosses every path in one piece.
pub(super) const UDP_BYTES_MAX: u16 = 1232;
/// Records of one answer that are kept: far more than any number has addresses.
const RECORDS_MAX: usize = 64;
/// Records of one answer that are looked at.
const SEEN_MAX: usize = 256;
/// Aliases followed within one answer.
const ALIASES_MAX: usize = 8;
/// Jumps within one compressed name; a name has at most 127 labels.
const JUMPS_MAX: usize = 127;
/// Longest name in text.
const NAME_BYTES_MAX: usize = 255;

/// Why a message is no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Flaw {
    /// It answers something else; somebody may be guessing.
    NotOurs,
    /// It cannot be read to its end.
    Malformed,
    /// Its server could not or would not.
    Refused,
}

/// One record of those asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Record {
    Address(IpAddr),
    Srv(Srv),
    Naptr(Naptr),
}

/// What a server said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Reply {
    /// The name's records, and how long they may be kept. When it has none, how long that may be remembered
    /// (RFC 2308 §5); `None` when the server does not say.
    Records(Vec<Record>, Option<Duration>),
    /// There is more than a datagram holds: ask over TCP.
    Truncated,
}

/// What was asked, to know the answer by.
#[derive(Debug, Clone)]
pub(super) struct Asked {
    pub(super) id: u16,
    pub(super) wanted: Type,
    /// The name, its letters in the case in which they were sent.
    pub(super) name: String,
    /// The answer has to repeat the case: what a server copies, and who does not see the question has to guess.
    pub(super) exact: bool,
}

impl Asked {
    /// The question as it is sent; `None` when the name is none.
    pub(super) fn bytes(&self) -> Option<Vec<u8>> {
        // One question, one additional record; recursion wanted.
        let mut out: Vec<u8> = [self.id, 0x0100, 1, 0, 0, 1].into_iter().flat_map(u16::to_be_bytes).collect();
        for label in self.name.trim_end_matches('.').split('.') {
            let length = u8::try_from(label.len()).ok().filter(|length| (1..=63).contains(length))?;
            out.push(length);
            out.extend(label.bytes());
        }
        out.push(0);
        out.extend([self.wanted as u16, INTERNET].into_iter().flat_map(u16::to_be_bytes));
        // OPT: the root's name, our size of datagrams, no flags, no options.
        out.push(0);
        out.extend([OPT, UDP_BYTES_MAX, 0, 0, 0].into_iter().flat_map(u16::to_be_bytes));
        Some(out)
    }

    /// Reads what came back.
    pub(super) fn read(&self, message: &[u8]) -> Result<Reply, Flaw> {
        let mut reader = Reader { message, at: 0 };
        let [id, flags, questions, answers, authorities, _] = reader.words().ok_or(Flaw::NotOurs)?;
        if id != self.id || flags & 0x8000 == 0 || questions != 1 {
            return Err(Flaw::NotOurs);
        }
        let asked = reader.name().ok_or(Flaw::NotOurs)?;
        let [kind, class] = reader.words().ok_or(Flaw::NotOurs)?;
        let name = self.name.trim_end_matches('.');
        let same = if self.exact { asked == name } else { asked.eq_ignore_ascii_case(name) };
        if !same || kind != self.wanted as u16 || class != INTERNET {
            return Err(Flaw::NotOurs);
        }
        // 3: there is no such name.
        if !matches!(flags & 0xf, 0 | 3) {
            return Err(Flaw::Refused);
        }
        if flags & 0x0200 != 0 {
            return Ok(Reply::Truncated);
        }
        let (records, lasts) = reader.answers(answers, asked, self.wanted).ok_or(Flaw::Malformed)?;
        if records.is_empty() {
            // What cannot be read of the zone's own record says nothing.
            return Ok(Reply::Records(records, reader.negative(authorities)));
        }
        Ok(Reply::Records(records, Some(Duration::from_secs(u64::from(lasts)))))
    }
}

/// A record's owner, type, time to live and where its data end, as they stand before the data.
struct Head {
    owner: String,
    kind: u16,
    class: u16,
    ttl: u32,
    end: usize,
}

struct Reader<'a> {
    message: &'a [u8],
    at: usize,
}

impl Reader<'_> {
    fn word(&mut self) -> Option<u16> {
        let bytes = self.message.get(self.at..)?.first_chunk::<2>()?;
        self.at += 2;
        Some(u16::from_be_bytes(*bytes))
    }
    fn words<const N: usize>(&mut self) -> Option<[u16; N]> {
        let mut words = [0; N];
        for word in &mut words {
            *word = self.word()?;
        }
        Some(words)
    }
    /// A character string (RFC 1035 §3.3).
    fn text(&mut self) -> Option<String> {
        let length = usize::from(*self.message.get(self.at)?);
        let bytes = self.message.get(self.at + 1..self.at + 1 + length)?;
        self.at += 1 + length;
        Some(String::from_utf8_lossy(bytes).into_owned())
    }
    /// A name, compressed or not (RFC 1035 §4.1.4). Every jump goes back, so that none is made twice.
    fn name(&mut self) -> Option<String> {
        let mut name = String::new();
        let mut at = self.at;
        let mut after = None;
        let mut jumps = 0;
        loop {
            let length = *self.message.get(at)?;
            match length {
                0 => break,
                1..=63 => {
                    let label = self.message.get(at + 1..at + 1 + usize::from(length))?;
                    if !name.is_empty() {
                        name.push('.');
                    }
                    name.push_str(&String::from_utf8_lossy(label));
                    if name.len() > NAME_BYTES_MAX {
                        return None;
                    }
                    at += 1 + usize::from(length);
                }
                192.. => {
                    let low = *self.message.get(at + 1)?;
                    let to = usize::from(u16::from_be_bytes([length & 0x3f, low]));
                    jumps += 1;
                    if to >= at || jumps > JUMPS_MAX {
                        return None;
                    }
                    after.get_or_insert(at + 2);
                    at = to;
                }
                // Reserved (RFC 1035 §4.1.4).
                64..=191 => return None,
            }
        }
        self.at = after.unwrap_or(at + 1);
        Some(name)
    }
    fn head(&mut self) -> Option<Head> {
        let owner = self.name()?;
        let [kind, class, high, low, length] = self.words()?;
        let end = self.at + usize::from(length);
        // The highest bit makes no sense and counts as zero (RFC 2181 §8).
        let ttl = u32::from(high) << 16 | u32::from(low);
        let ttl = if ttl >> 31 == 1 { 0 } else { ttl };
        (end <= self.message.len()).then_some(Head { owner, kind, class, ttl, end })
    }
    /// The records of `name` among so many, aliases followed, and the shortest time to live on the way.
    fn answers(&mut self, count: u16, name: String, wanted: Type) -> Option<(Vec<Record>, u32)> {
        let mut aliases: Vec<(String, String, u32)> = Vec::new();
        let mut records: Vec<(String, Record, u32)> = Vec::new();
        for _ in 0..usize::from(count).min(SEEN_MAX) {
            let head = self.head()?;
            if head.class == INTERNET && head.kind == wanted as u16 && records.len() < RECORDS_MAX {
                let record = self.record(wanted, head.end)?;
                records.push((head.owner, record, head.ttl));
            } else if head.class == INTERNET && head.kind == CNAME && aliases.len() < ALIASES_MAX {
                aliases.push((head.owner, self.name()?, head.ttl));
            }
            self.at = head.end;
        }
        let (mut owner, mut lasts) = (name, u32::MAX);
        for _ in 0..ALIASES_MAX {
            let Some((_, to, ttl)) = aliases.iter().find(|(from, ..)| from.eq_ignore_ascii_case(&owner))
            else {
                break;
            };
            owner.clone_from(to);
            lasts = lasts.min(*ttl);
        }
        records.retain(|(of, ..)| of.eq_ignore_ascii_case(&owner));
        let lasts = records.iter().map(|(.., ttl)| *ttl).fold(lasts, u32::min);
        Some((records.into_iter().map(|(_, record, _)| record).collect(), lasts))
    }
    /// How long the absence of records may be remembered, as the zone's SOA says (RFC 2308 §5).
    fn negative(&mut self, count: u16) -> Option<Duration> {
        for _ in 0..usize::from(count).min(SEEN_MAX) {
            let head = self.head()?;
            if head.kind == SOA && head.class == INTERNET {
                self.name()?;
                self.name()?;
                let [.., high, low] = self.words::<10>()?;
                let minimum = u32::from(high) << 16 | u32::from(low);
                return Some(Duration::from_secs(u64::from(minimum.min(head.ttl))));
            }
            self.at = head.end;
        }
        None
    }
    fn record(&mut self, wanted: Type, end: usize) -> Option<Record> {
        let record = match wanted {
            Type::A => {
                let bytes = *self.message.get(self.at..end)?.first_chunk::<4>()?;
                self.at += bytes.len();
                Record::Address(Ipv4Addr::from(bytes).into())
            }
            Type::Aaaa => {
                let bytes = *self.message.get(self.at..end)?.first_chunk::<16>()?;
                self.at += bytes.len();
                Record::Address(Ipv6Addr::from(bytes).into())
            }
            Type::Srv => {
                let [priority, weight, port] = self.words()?;
                Record::Srv(Srv { priority, weight, port, target: self.name()? })
            }
            Type::Naptr => {
                let [order, preference] = self.words()?;
                let (flags, service, regexp) = (self.text()?, self.text()?, self.text()?);
                let replacement = self.name()?;
                Record::Naptr(Naptr { order, preference, flags, service, regexp, replacement })
            }
        };
        (self.at <= end).then_some(record)
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// An answer to `question` with these records, each with its owner's name as bytes of the message.
    pub(in crate::dns) fn message(
        question: &[u8],
        flags: u16,
        records: &[(Vec<u8>, u16, Vec<u8>)],
    ) -> Vec<u8> {
        let end = question.len() - 11;
        let count = u16::try_from(records.len()).unwrap();
        let mut out = question[..2].to_vec();
        out.extend([0x8180 | flags, 1, count, 0, 0].into_iter().flat_map(u16::to_be_bytes));
        out.extend(&question[12..end]);
        for (owner, kind, data) in records {
            record(&mut out, owner, *kind, 300, data);
        }
        out
    }
    fn record(out: &mut Vec<u8>, owner: &[u8], kind: u16, ttl: u16, data: &[u8]) {
        out.extend(owner);
        out.extend([kind, 1, 0, ttl].into_iter().flat_map(u16::to_be_bytes));
        out.extend(u16::try_from(data.len()).unwrap().to_be_bytes());
        out.extend(data);
    }
    pub(in crate::dns) fn naptr(order: u16, regexp: &str) -> Vec<u8> {
        let mut data: Vec<u8> = [order, 100].into_iter().flat_map(u16::to_be_bytes).collect();
        for text in ["u", "E2U+sip", regexp] {
            data.push(u8::try_from(text.len()).unwrap());
            data.extend(text.bytes());
        }
        data.push(0);
        data
    }
    const ASKED: [u8; 2] = [0xc0, 12];
    const ARPA: &str = "4.4.e164.arpa";

    fn asked(wanted: Type, name: &str) -> Asked {
        Asked { id: 7, wanted, name: name.to_owned(), exact: false }
    }
    fn count(asked: &Asked, message: &[u8]) -> Result<usize, Flaw> {
        match asked.read(message)? {
            Reply::Records(records, _) => Ok(records.len()),
            Reply::Truncated => Ok(usize::MAX),
        }
    }

    #[test]
    fn records_are_read_by_their_kind_with_their_time_to_live() {
        let naptr_data = naptr(10, "!^.*$!sip:a@example.com!");
        let expected = Naptr {
            order: 10,
            preference: 100,
            flags: "u".to_owned(),
            service: "E2U+sip".to_owned(),
            regexp: "!^.*$!sip:a@example.com!".to_owned(),
            replacement: String::new(),
        };
        let srv = |target: &str| Srv { priority: 1, weight: 2, port: 5070, target: target.to_owned() };
        let mut srv_data: Vec<u8> = vec![0, 1, 0, 2, 0x13, 0xce];
        let nowhere = [srv_data.clone(), vec![0]].concat();
        srv_data.extend([2, b'p', b'1', 0xc0, 12]);
        let six = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1);
        for (name, wanted, data, expected) in [
            ("RFC 3403 §4.1", Type::Naptr, naptr_data, Record::Naptr(expected)),
            ("RFC 2782", Type::Srv, srv_data, Record::Srv(srv("p1.4.4.e164.arpa"))),
            ("RFC 2782, decidedly not there", Type::Srv, nowhere, Record::Srv(srv(""))),
            ("RFC 1035 §3.4.1", Type::A, vec![192, 0, 2, 1], Record::Address([192, 0, 2, 1].into())),
            ("RFC 3596 §2.2", Type::Aaaa, six.octets().to_vec(), Record::Address(six.into())),
        ] {
            let asked = asked(wanted, ARPA);
            let reply = message(&asked.bytes().unwrap(), 0, &[(ASKED.to_vec(), wanted as u16, data)]);
            let got = asked.read(&reply);
            assert_eq!(got, Ok(Reply::Records(vec![expected], Some(Duration::from_secs(300)))), "{name}");
            for end in 0..reply.len() {
                assert!(asked.read(&reply[..end]).is_err(), "{name} cut at {end}");
            }
        }
    }

    #[test]
    fn rfc2308_5_absence_is_remembered_as_long_as_the_zone_says() {
        let asked = asked(Type::Srv, ARPA);
        let mut soa = vec![0, 0];
        soa.extend([0; 16]);
        soa.extend(120_u32.to_be_bytes());
        for (name, flags, ttl, expected) in [
            ("no such name", 3, 3600, 120),
            ("no such records", 0, 3600, 120),
            ("a shorter time to live", 3, 60, 60),
        ] {
            let mut reply = message(&asked.bytes().unwrap(), flags, &[]);
            reply[9] = 1;
            record(&mut reply, &[0], SOA, ttl, &soa);
            let got = asked.read(&reply);
            assert_eq!(got, Ok(Reply::Records(Vec::new(), Some(Duration::from_secs(expected)))), "{name}");
        }
        let silent = message(&asked.bytes().unwrap(), 3, &[]);
        assert_eq!(asked.read(&silent), Ok(Reply::Records(Vec::new(), None)));
    }

    #[test]
    fn rfc1035_4_1_1_only_the_answer_to_the_question_counts() {
        let own = asked(Type::Naptr, ARPA);
        let asked_bytes = own.bytes().unwrap();
        let with = |flags, records: &[(Vec<u8>, u16, Vec<u8>)]| message(&asked_bytes, flags, records);
        let alias = [2, b'i', b'x', 0].to_vec();
        let naptr_type = Type::Naptr as u16;
        let chain = [
            (ASKED.to_vec(), CNAME, alias.clone()),
            (alias.clone(), naptr_type, naptr(1, "!.*!sip:a@example.com!")),
        ];
        let stranger = [(alias.clone(), naptr_type, naptr(1, "!.*!sip:a@example.com!"))];
        let mut looping = with(0, &[]);
        looping[7] = 1;
        let here = u8::try_from(looping.len()).unwrap();
        looping.extend([0xc0, here]);
        let mut other_name = with(0, &[]);
        other_name[13] ^= 1;
        let mut question_only = asked_bytes.clone();
        question_only[2] = 1;
        let mut other_type = with(0, &[]);
        let last = other_type.len() - 3;
        other_type[last] = Type::A as u8;
        for (name, message, expected) in [
            ("through an alias", with(0, &chain), Ok(1)),
            ("records of another name", with(0, &stranger), Ok(0)),
            ("no such name", with(3, &[]), Ok(0)),
            ("no records", with(0, &[]), Ok(0)),
            ("a server that fails", with(2, &[]), Err(Flaw::Refused)),
            ("too long", with(0x200, &[]), Ok(usize::MAX)),
            ("another name", other_name, Err(Flaw::NotOurs)),
            ("another type", other_type, Err(Flaw::NotOurs)),
            ("a question", question_only, Err(Flaw::NotOurs)),
            ("a name that runs in a circle", looping, Err(Flaw::Malformed)),
            ("nothing", Vec::new(), Err(Flaw::NotOurs)),
        ] {
            assert_eq!(count(&own, &message), expected, "{name}");
        }
        let other = Asked { id: 8, ..own.clone() };
        assert_eq!(count(&other, &with(0, &[])), Err(Flaw::NotOurs), "another id");
        for (exact, expected) in [(false, Ok(0)), (true, Err(Flaw::NotOurs))] {
            let shouted = Asked { name: ARPA.to_ascii_uppercase(), exact, ..own.clone() };
            assert_eq!(count(&shouted, &with(0, &[])), expected, "exact: {exact}");
        }
        assert!(asked(Type::A, &format!("{}.arpa", "1".repeat(64))).bytes().is_none());
        assert!(asked(Type::A, "4..arpa").bytes().is_none());
    }
}
