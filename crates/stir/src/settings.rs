//! What a site wants of its own calls and of those that come in.

use core::fmt;
use core::net::IpAddr;
use core::time::Duration;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;

use crate::{Authority, Sign, digits};

/// How sure the carrier is of the caller (RFC 8588 §4).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    /// The caller is a customer and may use the number.
    A,
    /// The caller is a customer.
    B,
    /// The call came in from elsewhere.
    C,
}

impl Level {
    /// Its letter.
    pub const fn word(self) -> &'static str {
        match self {
            Self::A => "A",
            Self::B => "B",
            Self::C => "C",
        }
    }
    /// The level of this letter.
    pub fn of(word: &str) -> Option<Self> {
        [Self::A, Self::B, Self::C].into_iter().find(|level| level.word() == word)
    }
}

/// What happens in the calls of a profile's endpoints.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Behavior {
    /// Nothing.
    #[default]
    Off,
    /// Calls to it are signed.
    Attest,
    /// Calls of it are verified.
    Verify,
    /// Both.
    On,
}

impl Behavior {
    /// Whether calls that go out are signed.
    pub const fn attests(self) -> bool {
        matches!(self, Self::Attest | Self::On)
    }
    /// Whether calls that come in are verified.
    pub const fn verifies(self) -> bool {
        matches!(self, Self::Verify | Self::On)
    }
}

/// What becomes of a call whose caller is not proved.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum FailureAction {
    /// It goes on.
    #[default]
    Continue,
    /// It is refused.
    RejectRequest,
    /// It goes on, and the response says why.
    ContinueReturnReason,
}

/// Who signs for numbers.
#[derive(Clone)]
pub struct Signer {
    /// The key.
    pub key: Rc<dyn Sign>,
    /// Where its certificate lies.
    pub url: String,
    /// How sure we are.
    pub level: Level,
    /// Certificates of the media are signed, too.
    pub send_mky: bool,
}

impl fmt::Debug for Signer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Signer({}, {:?})", self.url, self.level)
    }
}

/// By which rules certificates are fetched.
#[derive(Clone)]
pub struct Fetching {
    /// How long that may take.
    pub within: Duration,
    /// Addresses that may be asked.
    pub allows: Arc<dyn Fn(IpAddr) -> bool + Send + Sync>,
    /// Where what was fetched is kept.
    pub folder: PathBuf,
    /// How long it is kept at most.
    pub keep: Duration,
}

/// How callers are verified.
#[derive(Clone)]
pub struct Verification {
    /// Whose certificates are believed.
    pub authority: Rc<dyn Authority>,
    /// How certificates are fetched.
    pub fetching: Fetching,
    /// Seconds that a signature is good for.
    pub max_iat_age: u64,
    /// Seconds that a Date is.
    pub max_date_age: u64,
    /// A missing or bad Date is no failure.
    pub ignores_date: bool,
    /// `x5u` may be any port, and HTTP.
    pub any_port_and_scheme: bool,
    /// `x5u` may have a user, a query and a fragment.
    pub any_path: bool,
    /// What becomes of a call whose caller is not proved.
    pub failure_action: FailureAction,
    /// Reasons are of the protocol STIR (RFC 9410), else of SIP.
    pub stir_reasons: bool,
}

/// A profile as it holds, with what it inherits.
#[derive(Clone, Default)]
pub struct Profile {
    /// What happens.
    pub behavior: Behavior,
    /// Who signs for each number, by digits.
    pub numbers: Rc<BTreeMap<String, Signer>>,
    /// Who signs for all others.
    pub unknown: Option<Signer>,
    /// How callers are verified; `None`: nobody is.
    pub verification: Option<Rc<Verification>>,
}

impl Profile {
    /// Who signs for this caller.
    pub fn signer(&self, caller: &str) -> Option<&Signer> {
        let number = digits(caller);
        let known = self.numbers.get(&number).or(self.unknown.as_ref());
        known.filter(|_| !number.is_empty() && self.behavior.attests())
    }
}

/// All of it.
#[derive(Clone, Default)]
pub struct Settings {
    /// Profiles by name.
    pub profiles: BTreeMap<String, Rc<Profile>>,
    /// How callers are verified where no profile is named; `None`: they are not.
    pub verification: Option<Rc<Verification>>,
    /// Most certificates that are kept.
    pub certificates_max: usize,
    /// Certificates of ours that are to be looked at when this is taken: whose, where, and by which rules.
    pub checks: Vec<(String, String, Rc<Verification>)>,
}
