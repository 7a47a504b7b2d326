//! TNAuthList, the extension of a certificate that says for which numbers it may sign (RFC 8226 §9).

use crate::tlv::{all, only};

/// Entries of one list that are read; carriers have one, and a certificate has 16 KiB.
const ENTRIES_MAX: usize = 512;

const SEQUENCE: u8 = 0x30;
const IA5_STRING: u8 = 0x16;
const INTEGER: u8 = 0x02;

/// What the holder may sign for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TnEntry {
    /// All numbers of a service provider, by its code.
    Spc(String),
    /// Numbers from one on.
    Range {
        /// The first.
        start: String,
        /// How many.
        count: u64,
    },
    /// One number.
    One(String),
}

/// The list as a whole.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TnAuthList(pub Vec<TnEntry>);

impl TnAuthList {
    /// Reads the value of the extension; `None` when it is malformed.
    pub fn read(value: &[u8]) -> Option<Self> {
        let entries = all(only(value, SEQUENCE)?, ENTRIES_MAX)?;
        let entries: Option<Vec<TnEntry>> =
            entries.into_iter().map(|(tag, value)| entry(tag, value)).collect();
        Some(Self(entries?)).filter(|list| !list.0.is_empty())
    }
    /// The code of a service provider, if one is named.
    pub fn spc(&self) -> Option<&str> {
        self.0.iter().find_map(|entry| match entry {
            TnEntry::Spc(code) => Some(code.as_str()),
            TnEntry::Range { .. } | TnEntry::One(_) => None,
        })
    }
}

/// The module of RFC 8226 has explicit tags.
fn entry(tag: u8, value: &[u8]) -> Option<TnEntry> {
    match tag {
        0xa0 => Some(TnEntry::Spc(string(value)?)),
        0xa1 => {
            let parts = all(only(value, SEQUENCE)?, 2)?;
            let [(IA5_STRING, start), (INTEGER, count)] = parts.as_slice() else { return None };
            let count = count
                .iter()
                .try_fold(0u64, |sum, byte| Some(sum.checked_mul(256)?.saturating_add(u64::from(*byte))))?;
            Some(TnEntry::Range { start: text(start)?, count })
        }
        0xa2 => Some(TnEntry::One(string(value)?)),
        _ => None,
    }
}

fn string(value: &[u8]) -> Option<String> {
    text(only(value, IA5_STRING)?)
}

fn text(value: &[u8]) -> Option<String> {
    let is_plain = !value.is_empty() && value.iter().all(u8::is_ascii_graphic);
    is_plain.then(|| String::from_utf8_lossy(value).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rfc8226_9_entries_are_codes_ranges_and_numbers() {
        let spc = [0x30, 0x08, 0xa0, 0x06, 0x16, 0x04, b'1', b'2', b'3', b'A'];
        let range = [0x30, 0x0c, 0xa1, 0x0a, 0x30, 0x08, 0x16, 0x03, b'1', b'0', b'0', 0x02, 0x01, 0x0a];
        let one = [0x30, 0x07, 0xa2, 0x05, 0x16, 0x03, b'1', b'0', b'0'];
        for (name, bytes, expected) in [
            ("a code", &spc[..], Some(vec![TnEntry::Spc("123A".to_owned())])),
            ("a range", &range, Some(vec![TnEntry::Range { start: "100".to_owned(), count: 10 }])),
            ("a number", &one, Some(vec![TnEntry::One("100".to_owned())])),
            ("nothing", &[0x30, 0], None),
            ("no list", &[0x16, 1, b'1'], None),
            ("an implicit tag", &[0x30, 3, 0x80, 1, b'1'], None),
            ("control characters", &[0x30, 5, 0xa0, 3, 0x16, 1, b'\n'], None),
            ("something behind", &[0x30, 5, 0xa0, 3, 0x16, 1, b'1', 0], None),
            ("cut short", &spc[..9], None),
        ] {
            assert_eq!(TnAuthList::read(bytes).map(|list| list.0), expected, "{name}");
        }
        assert_eq!(TnAuthList::read(&spc).unwrap().spc(), Some("123A"));
        assert_eq!(TnAuthList::read(&one).unwrap().spc(), None);
    }
}
