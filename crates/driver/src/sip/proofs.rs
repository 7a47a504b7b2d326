//! Names that peers under TLS have to prove, and the numbers by which flows carry them.

use std::collections::HashMap;

use ::sip::stack::PeerName;

/// Names that are told apart; a site calls tens of domains. Beyond it calls to new ones under TLS find no way.
const NAMES_MAX: usize = 65_536;

/// Both directions.
#[derive(Default)]
pub(super) struct Proofs {
    numbers: HashMap<Box<str>, PeerName>,
    names: Vec<Box<str>>,
}

impl Proofs {
    /// The number of a host name or address; `None` when there are too many.
    pub(super) fn number(&mut self, host: &str) -> Option<PeerName> {
        let host = host.to_ascii_lowercase();
        if let Some(known) = self.numbers.get(&*host) {
            return Some(*known);
        }
        if self.names.len() >= NAMES_MAX {
            return None;
        }
        self.names.push(host.clone().into());
        // From one: zero is `PeerName::NONE`.
        let number = PeerName(u32::try_from(self.names.len()).ok()?);
        self.numbers.insert(host.into(), number);
        Some(number)
    }
    /// The name of a number.
    pub(super) fn name(&self, number: PeerName) -> Option<&str> {
        let at = usize::try_from(number.0).ok()?.checked_sub(1)?;
        self.names.get(at).map(|name| &**name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_name_has_one_number_however_it_is_written_and_none_has_none() {
        let mut proofs = Proofs::default();
        let a = proofs.number("a.example").unwrap();
        assert_eq!(proofs.number("A.Example"), Some(a));
        assert_ne!(proofs.number("b.example"), Some(a));
        assert_eq!((proofs.name(a), proofs.name(PeerName::NONE)), (Some("a.example"), None));
        assert_eq!(proofs.name(PeerName(99)), None);
    }
}
