//! The option letters of Queue, typed.

use call::features::Rights;
use dialplan::Options;

use crate::dial::rights;

/// The letter for modems: nothing here delays a call less for it.
const UNSUPPORTED: &str = "d";
/// All letters that are known.
pub(crate) const LETTERS: &str = "bBcCFhHiIkKmnrRtTwWxXd";

/// Typed options.
#[derive(Debug, Clone, Default)]
pub(crate) struct QueueOptions {
    pub(crate) callee_routine: Option<String>,
    pub(crate) caller_routine: Option<String>,
    pub(crate) go_on: bool,
    pub(crate) answered_elsewhere: bool,
    pub(crate) callee_goes_on: Option<String>,
    /// What the caller and the member may do with keys.
    pub(crate) caller_rights: Rights,
    pub(crate) callee_rights: Rights,
    pub(crate) ignore_forwards: bool,
    pub(crate) ignore_parties: bool,
    pub(crate) music: Option<String>,
    pub(crate) no_retry: bool,
    pub(crate) ring: bool,
    pub(crate) ring_when_ringing: bool,
    pub(crate) without_effect: Vec<char>,
}

impl QueueOptions {
    pub(crate) fn parse(text: &str) -> Self {
        let given = Options::parse(text, LETTERS);
        let arg = |letter: char| given.has(letter).then(|| given.arg(letter).unwrap_or_default());
        let place = |letter: char| arg(letter).map(|text| text.replace('^', ","));
        let not_done = UNSUPPORTED.chars().filter(|letter| given.has(*letter));
        Self {
            callee_routine: place('b'),
            caller_routine: place('B'),
            go_on: given.has('c'),
            answered_elsewhere: given.has('C'),
            callee_goes_on: place('F'),
            caller_rights: rights(&given, "THXWK"),
            callee_rights: rights(&given, "thxwk"),
            ignore_forwards: given.has('i'),
            ignore_parties: given.has('I'),
            music: arg('m').map(str::to_owned).filter(|class| !class.is_empty()),
            no_retry: given.has('n'),
            ring: given.has('r'),
            ring_when_ringing: given.has('R'),
            without_effect: not_done.chain(given.unknown.iter().copied()).collect(),
        }
    }
}
