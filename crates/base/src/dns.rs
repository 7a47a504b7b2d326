//! What is asked of the DNS and what it says, in the words of those who ask.

use core::net::IpAddr;
use core::time::Duration;
use std::sync::Arc;

/// Longest domain name in text (RFC 1035 §2.3.4).
pub const NAME_BYTES_MAX: usize = 253;
/// Longest label of a domain name (RFC 1035 §2.3.4).
pub const LABEL_BYTES_MAX: usize = 63;

/// What is asked about a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// IPv4 and IPv6 addresses, of the hosts file too.
    Addresses,
    /// Who serves it (RFC 2782).
    Srv,
    /// Where to go on from it (RFC 3403).
    Naptr,
}

/// One thing to be asked.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Question {
    /// What is asked.
    pub kind: Kind,
    /// Domain name, in lower case and without the root's dot.
    pub name: String,
}

impl Question {
    /// A question; names are equal whatever their case (RFC 4343).
    pub fn new(kind: Kind, name: &str) -> Self {
        Self { kind, name: name.trim_end_matches('.').to_ascii_lowercase() }
    }
    /// Whether such a name can be asked for at all: labels of 1 to 63 bytes, 253 in all, of what names are made of.
    pub fn is_askable(&self) -> bool {
        self.name.len() <= NAME_BYTES_MAX
            && self.name.split('.').all(|label| (1..=LABEL_BYTES_MAX).contains(&label.len()))
            && self.name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte))
    }
}

/// Where a service is (RFC 2782).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Srv {
    /// Lower ones are tried first.
    pub priority: u16,
    /// Share among those of one priority.
    pub weight: u16,
    /// Port.
    pub port: u16,
    /// Host; empty when the service is decidedly not there.
    pub target: String,
}

/// A naming authority pointer (RFC 3403 §4.1): one way on from a domain name.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Naptr {
    /// Records of a lower order come first; those of a higher one count only when none of a lower fits.
    pub order: u16,
    /// Among records of one order the lower comes first.
    pub preference: u16,
    /// `u`: the rule ends with a URI; `s`: SRV records follow; empty: another look-up follows.
    pub flags: String,
    /// What can be done with the result: `E2U+sip`, `SIP+D2U`.
    pub service: String,
    /// Delimiter, extended regular expression, delimiter, replacement, delimiter, flags.
    pub regexp: String,
    /// Domain name to go on with; empty with `regexp`.
    pub replacement: String,
}

/// All that a name has of what was asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Records {
    /// Its addresses, preferred first.
    Addresses(Arc<[IpAddr]>),
    /// Who serves it, in no order.
    Srv(Arc<[Srv]>),
    /// Ways on from it, in no order.
    Naptr(Arc<[Naptr]>),
}

impl Records {
    /// No record of this kind.
    pub fn none(kind: Kind) -> Self {
        match kind {
            Kind::Addresses => Self::Addresses(Arc::default()),
            Kind::Srv => Self::Srv(Arc::default()),
            Kind::Naptr => Self::Naptr(Arc::default()),
        }
    }
    /// What they answer.
    pub const fn kind(&self) -> Kind {
        match self {
            Self::Addresses(_) => Kind::Addresses,
            Self::Srv(_) => Kind::Srv,
            Self::Naptr(_) => Kind::Naptr,
        }
    }
    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        match self {
            Self::Addresses(found) => found.is_empty(),
            Self::Srv(found) => found.is_empty(),
            Self::Naptr(found) => found.is_empty(),
        }
    }
    /// Addresses; none when something else was asked.
    pub fn addresses(&self) -> &[IpAddr] {
        if let Self::Addresses(found) = self { found } else { &[] }
    }
}

/// SRV records in the order in which they are to be tried (RFC 2782): by priority, and by weight in one priority, where each
/// place is drawn among those that are left. What names no host is left out.
pub fn by_rank<'a>(records: &'a [Srv], random: &mut dyn FnMut(u32) -> u32) -> Vec<&'a Srv> {
    let mut left: Vec<&Srv> = records.iter().filter(|record| !record.target.is_empty()).collect();
    // Those of no weight first, so that they have a small chance (RFC 2782, "Weight").
    left.sort_by_key(|record| (record.priority, record.weight != 0));
    let mut ranked = Vec::with_capacity(left.len());
    while let Some(priority) = left.first().map(|record| record.priority) {
        let group = left.iter().take_while(|record| record.priority == priority);
        let sum: u32 = group.clone().map(|record| u32::from(record.weight)).sum();
        let drawn = random(sum);
        let mut running = 0;
        let chosen = group
            .clone()
            .position(|record| {
                running += u32::from(record.weight);
                running >= drawn
            })
            .unwrap_or(0);
        ranked.push(left.remove(chosen));
    }
    ranked
}

/// What a look-up came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// The records; `None` when no server gave a usable answer.
    pub records: Option<Records>,
    /// How long it may be kept.
    pub keep: Duration,
}
