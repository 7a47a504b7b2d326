//! Questions for NAPTR records and the answers to them, as messages of the DNS (RFC 1035, RFC 3403 §4.1, RFC 6891).
//!
//! Bytes in, bytes out: whoever asks has the sockets ([`crate::enumdns`]).

use std::time::Duration;

use call::Naptr;

/// Type NAPTR (RFC 3403 §4).
const NAPTR: u16 = 35;
/// Type CNAME (RFC 1035 §3.2.2).
const CNAME: u16 = 5;
/// Type OPT (RFC 6891 §6.1.2).
const OPT: u16 = 41;
/// Class IN.
const INTERNET: u16 = 1;
/// Bytes of an answer over UDP that we take: what crosses every path in one piece.
pub(crate) const UDP_BYTES_MAX: u16 = 1232;
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
pub(crate) enum Flaw {
    /// It answers something else; somebody may be guessing.
    NotOurs,
    /// It cannot be read to its end.
    Malformed,
    /// Its server could not or would not.
    Refused,
}

/// What a server said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Answer {
    /// The name's records, and how long they may be kept; none when it has none.
    Records(Vec<Naptr>, Option<Duration>),
    /// There is more than a datagram holds: ask over TCP.
    Truncated,
}

/// A question for the NAPTR records of `name`; `None` when that is no name.
pub(crate) fn question(id: u16, name: &str) -> Option<Vec<u8>> {
    // One question, one additional record; recursion wanted.
    let mut out: Vec<u8> = [id, 0x0100, 1, 0, 0, 1].into_iter().flat_map(u16::to_be_bytes).collect();
    for label in name.trim_end_matches('.').split('.') {
        let length = u8::try_from(label.len()).ok().filter(|length| (1..=63).contains(length))?;
        out.push(length);
        out.extend(label.bytes());
    }
    out.push(0);
    out.extend([NAPTR, INTERNET].into_iter().flat_map(u16::to_be_bytes));
    // OPT: the root's name, our size of datagrams, no flags, no options.
    out.push(0);
    out.extend([OPT, UDP_BYTES_MAX, 0, 0, 0].into_iter().flat_map(u16::to_be_bytes));
    Some(out)
}

/// Reads what came back.
pub(crate) fn answer(message: &[u8], id: u16, name: &str) -> Result<Answer, Flaw> {
    let mut reader = Reader { message, at: 0 };
    let [own, flags, questions, answers, _, _] = reader.words().ok_or(Flaw::NotOurs)?;
    if own != id || flags & 0x8000 == 0 || questions != 1 {
        return Err(Flaw::NotOurs);
    }
    let asked = reader.name().ok_or(Flaw::NotOurs)?;
    let [kind, class] = reader.words().ok_or(Flaw::NotOurs)?;
    if !asked.eq_ignore_ascii_case(name.trim_end_matches('.')) || kind != NAPTR || class != INTERNET {
        return Err(Flaw::NotOurs);
    }
    match flags & 0xf {
        0 => {}
        // There is no such name.
        3 => return Ok(Answer::Records(Vec::new(), None)),
        _ => return Err(Flaw::Refused),
    }
    if flags & 0x0200 != 0 {
        return Ok(Answer::Truncated);
    }
    let mut aliases: Vec<(String, String)> = Vec::new();
    let mut records: Vec<(String, Naptr, u32)> = Vec::new();
    for _ in 0..usize::from(answers).min(SEEN_MAX) {
        let owner = reader.name().ok_or(Flaw::Malformed)?;
        let [kind, class, high, low, length] = reader.words().ok_or(Flaw::Malformed)?;
        let end = reader.at + usize::from(length);
        if end > message.len() {
            return Err(Flaw::Malformed);
        }
        match kind {
            NAPTR if class == INTERNET && records.len() < RECORDS_MAX => {
                let record = reader.naptr(end).ok_or(Flaw::Malformed)?;
                records.push((owner, record, u32::from(high) << 16 | u32::from(low)));
            }
            CNAME if class == INTERNET && aliases.len() < ALIASES_MAX => {
                aliases.push((owner, reader.name().ok_or(Flaw::Malformed)?));
            }
            _ => {}
        }
        reader.at = end;
    }
    let mut owner = asked;
    for _ in 0..ALIASES_MAX {
        match aliases.iter().find(|(from, _)| from.eq_ignore_ascii_case(&owner)) {
            Some((_, to)) => owner.clone_from(to),
            None => break,
        }
    }
    records.retain(|(of, ..)| of.eq_ignore_ascii_case(&owner));
    let kept = records.iter().map(|(.., ttl)| *ttl).min().map(|ttl| Duration::from_secs(u64::from(ttl)));
    Ok(Answer::Records(records.into_iter().map(|(_, record, _)| record).collect(), kept))
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
    fn naptr(&mut self, end: usize) -> Option<Naptr> {
        let [order, preference] = self.words()?;
        let (flags, service, regexp) = (self.text()?, self.text()?, self.text()?);
        let replacement = self.name()?;
        (self.at <= end).then_some(Naptr { order, preference, flags, service, regexp, replacement })
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// An answer to `question` with these records, each with its owner's name as bytes of the message.
    pub(crate) fn message(question: &[u8], flags: u16, records: &[(Vec<u8>, u16, Vec<u8>)]) -> Vec<u8> {
        let end = question.len() - 11;
        let count = u16::try_from(records.len()).unwrap();
        let mut out = question[..2].to_vec();
        out.extend([0x8180 | flags, 1, count, 0, 0].into_iter().flat_map(u16::to_be_bytes));
        out.extend(&question[12..end]);
        for (owner, kind, data) in records {
            out.extend(owner);
            out.extend([*kind, 1, 0, 300].into_iter().flat_map(u16::to_be_bytes));
            out.extend(u16::try_from(data.len()).unwrap().to_be_bytes());
            out.extend(data);
        }
        out
    }
    pub(crate) fn naptr(order: u16, regexp: &str) -> Vec<u8> {
        let mut data: Vec<u8> = [order, 100].into_iter().flat_map(u16::to_be_bytes).collect();
        for text in ["u", "E2U+sip", regexp] {
            data.push(u8::try_from(text.len()).unwrap());
            data.extend(text.bytes());
        }
        data.push(0);
        data
    }
    const ASKED: [u8; 2] = [0xc0, 12];

    #[test]
    fn rfc3403_4_1_records_are_read_with_their_time_to_live() {
        let question = question(7, "4.4.e164.arpa").unwrap();
        let reply = message(&question, 0, &[(ASKED.to_vec(), NAPTR, naptr(10, "!^.*$!sip:a@example.com!"))]);
        let expected = Naptr {
            order: 10,
            preference: 100,
            flags: "u".to_owned(),
            service: "E2U+sip".to_owned(),
            regexp: "!^.*$!sip:a@example.com!".to_owned(),
            replacement: String::new(),
        };
        let got = answer(&reply, 7, "4.4.E164.arpa");
        assert_eq!(got, Ok(Answer::Records(vec![expected], Some(Duration::from_secs(300)))));
    }

    #[test]
    fn rfc1035_4_1_1_only_the_answer_to_the_question_counts() {
        let asked = question(7, "4.4.e164.arpa").unwrap();
        let with = |flags, records: &[(Vec<u8>, u16, Vec<u8>)]| message(&asked, flags, records);
        let alias = [2, b'i', b'x', 0].to_vec();
        let chain = [
            (ASKED.to_vec(), CNAME, alias.clone()),
            (alias.clone(), NAPTR, naptr(1, "!.*!sip:a@example.com!")),
        ];
        let count = |message: &[u8]| match answer(message, 7, "4.4.e164.arpa") {
            Ok(Answer::Records(records, _)) => Ok(records.len()),
            Ok(Answer::Truncated) => Ok(usize::MAX),
            Err(flaw) => Err(flaw),
        };
        let stranger = [(alias.clone(), NAPTR, naptr(1, "!.*!sip:a@example.com!"))];
        let mut looping = with(0, &[]);
        looping[7] = 1;
        let here = u8::try_from(looping.len()).unwrap();
        looping.extend([0xc0, here]);
        let mut other_name = with(0, &[]);
        other_name[13] ^= 1;
        let mut question_only = asked.clone();
        question_only[2] = 1;
        for (name, message, expected) in [
            ("through an alias", with(0, &chain), Ok(1)),
            ("records of another name", with(0, &stranger), Ok(0)),
            ("no such name", with(3, &[]), Ok(0)),
            ("no records", with(0, &[]), Ok(0)),
            ("a server that fails", with(2, &[]), Err(Flaw::Refused)),
            ("too long", with(0x200, &[]), Ok(usize::MAX)),
            ("another name", other_name, Err(Flaw::NotOurs)),
            ("a question", question_only, Err(Flaw::NotOurs)),
            ("a name that runs in a circle", looping, Err(Flaw::Malformed)),
            ("nothing", Vec::new(), Err(Flaw::NotOurs)),
        ] {
            assert_eq!(count(&message), expected, "{name}");
        }
        assert_eq!(answer(&with(0, &[]), 8, "4.4.e164.arpa"), Err(Flaw::NotOurs), "another id");
        let whole = with(0, &chain);
        for end in 0..whole.len() {
            assert!(answer(&whole[..end], 7, "4.4.e164.arpa").is_err(), "cut at {end}");
        }
        assert!(question(7, &format!("{}.arpa", "1".repeat(64))).is_none());
        assert!(question(7, "4..arpa").is_none());
    }
}
