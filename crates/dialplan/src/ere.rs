//! POSIX extended regular expressions, leftmost-longest, on the engines of `regex-automata`.
//!
//! A pattern may come from a caller or a manager by way of a variable, and it is matched on the thread of the calls: the
//! time is linear in the text, and every search has a budget ([`WORK_MAX`]). The syntax is read here, because POSIX reads
//! it otherwise than the parser of `regex-syntax` does.
//!
//! The leftmost place where a match can begin is what a search from the end backwards finds last; from there the longest
//! match is what an anchored search finds last. Both are lazy automata with a bounded cache. A pattern that would fill
//! it is simulated state by state, as long as that fits the budget.

use std::borrow::Borrow;
use std::cell::RefCell;
use std::fmt;

use regex_automata::hybrid::dfa::{Cache, DFA};
use regex_automata::nfa::thompson::pikevm::PikeVM;
use regex_automata::nfa::thompson::{Compiler, Config, NFA, WhichCaptures};
use regex_automata::{Anchored, Input, MatchKind};
use regex_syntax::hir::{self, Hir};

/// Longest pattern, bytes.
pub const PATTERN_BYTES_MAX: usize = 4 * 1024;
/// Parts that a pattern may have when its repeats are written out; bounds what `{m,n}` can blow up, and compiling.
pub const PARTS_MAX: u64 = 4 * 1024;
/// Memory of one compiled form, bytes: room for all that [`PARTS_MAX`] allows.
const COMPILED_BYTES_MAX: usize = 2 * 1024 * 1024;
/// Memory of a lazy automaton, bytes: patterns in use fill a few thousand, and filling it takes less than a millisecond.
const CACHE_BYTES: usize = 128 * 1024;
/// Work of one search, or of all searches for one list: bytes looked at, bytes of automata made, states simulated. About
/// three milliseconds.
pub const WORK_MAX: u64 = 512 * 1024;
/// Largest repeat count (POSIX RE_DUP_MAX).
const REPEAT_MAX: u32 = 255;
/// Repeat marks one atom may carry (`a{2}{3}`).
const REPEATS_STACKED_MAX: u32 = 4;
/// Deepest nesting of groups.
const GROUP_DEPTH_MAX: u32 = 60;

/// Why a pattern was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BadPattern(&'static str);

impl fmt::Display for BadPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

/// A search would have taken more than its budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TooMuch;

impl fmt::Display for TooMuch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("pattern and text take too much work together")
    }
}

/// 256 bits, one a byte value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Bytes([u64; 4]);

impl Bytes {
    fn insert(&mut self, byte: u8) {
        self.0[usize::from(byte >> 6)] |= 1 << (byte & 63);
    }
    fn has(&self, byte: u8) -> bool {
        self.0[usize::from(byte >> 6)] >> (byte & 63) & 1 == 1
    }
    fn of(test: impl Fn(u8) -> bool) -> Self {
        let mut set = Self::default();
        (0..=255).filter(|&byte| test(byte)).for_each(|byte| set.insert(byte));
        set
    }
    fn inverted(self) -> Self {
        Self(self.0.map(|word| !word))
    }
}

#[derive(Debug, Clone)]
enum Ast {
    Empty,
    Set(Bytes),
    Start,
    End,
    Group(Box<Ast>),
    Sequence(Vec<Ast>),
    Either(Vec<Ast>),
    Repeat { inner: Box<Ast>, least: u32, most: Option<u32> },
}

/// A compiled pattern.
#[derive(Debug, Clone)]
pub struct Regex {
    /// From a place on: where the longest match ends.
    ahead: DFA,
    /// From the end backwards: where the leftmost match begins.
    back: DFA,
    /// Its states, for when the automata grow too large.
    states: NFA,
    /// The same with the end of the match as the end of the text, where there are groups.
    grouped: Option<NFA>,
    groups: u16,
}

/// Where a pattern matched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// First byte.
    pub start: usize,
    /// One past the last byte.
    pub end: usize,
    groups: Vec<Option<std::ops::Range<usize>>>,
}

impl Found {
    /// The range of group `n`, 1 for the first.
    pub fn group(&self, n: u16) -> Option<std::ops::Range<usize>> {
        self.groups.get(usize::from(n).checked_sub(1)?)?.clone()
    }
}

/// Parts of a pattern with its repeats written out.
fn weight(ast: &Ast) -> u64 {
    let all = |parts: &[Ast]| parts.iter().map(weight).fold(1, u64::saturating_add);
    match ast {
        Ast::Empty | Ast::Set(_) | Ast::Start | Ast::End => 1,
        Ast::Group(inner) => weight(inner).saturating_add(2),
        Ast::Sequence(parts) | Ast::Either(parts) => all(parts),
        Ast::Repeat { inner, least, most } => {
            let times = u64::from(most.unwrap_or(*least)).max(1);
            weight(inner).saturating_mul(times).saturating_add(1)
        }
    }
}

/// The same in the words of the engines; `groups` counts those that have begun.
fn spelled(ast: &Ast, groups: &mut u32) -> Hir {
    match ast {
        Ast::Empty => Hir::empty(),
        Ast::Set(set) => {
            let bytes = (0..=255).filter(|&byte| set.has(byte));
            let ranges = bytes.map(|byte| hir::ClassBytesRange::new(byte, byte));
            Hir::class(hir::Class::Bytes(hir::ClassBytes::new(ranges)))
        }
        Ast::Start => Hir::look(hir::Look::Start),
        Ast::End => Hir::look(hir::Look::End),
        Ast::Group(inner) => {
            *groups += 1;
            let index = *groups;
            Hir::capture(hir::Capture { index, name: None, sub: Box::new(spelled(inner, groups)) })
        }
        Ast::Sequence(parts) => Hir::concat(parts.iter().map(|part| spelled(part, groups)).collect()),
        Ast::Either(parts) => Hir::alternation(parts.iter().map(|part| spelled(part, groups)).collect()),
        Ast::Repeat { inner, least, most } => {
            let sub = Box::new(spelled(inner, groups));
            Hir::repetition(hir::Repetition { min: *least, max: *most, greedy: true, sub })
        }
    }
}

fn compiled(hir: &Hir, captures: WhichCaptures, reversed: bool) -> Result<NFA, BadPattern> {
    let config = Config::new()
        .utf8(false)
        .reverse(reversed)
        .which_captures(captures)
        .nfa_size_limit(Some(COMPILED_BYTES_MAX));
    Compiler::new().configure(config).build_from_hir(hir).map_err(|_| BadPattern("too large"))
}

fn lazy(states: &NFA) -> Result<DFA, BadPattern> {
    let config = DFA::config()
        .match_kind(MatchKind::All)
        .cache_capacity(CACHE_BYTES)
        .skip_cache_capacity_check(true)
        .minimum_cache_clear_count(Some(0));
    DFA::builder().configure(config).build_from_nfa(states.clone()).map_err(|_| BadPattern("too large"))
}

impl Regex {
    /// Compiles a pattern.
    pub fn new(pattern: &str) -> Result<Self, BadPattern> {
        if pattern.len() > PATTERN_BYTES_MAX {
            return Err(BadPattern("longer than 4096 bytes"));
        }
        let mut parser = Parser { rest: pattern.as_bytes(), groups: 0, depth: 0 };
        let ast = parser.either()?;
        if weight(&ast) > PARTS_MAX {
            return Err(BadPattern("too large"));
        }
        let hir = spelled(&ast, &mut 0);
        let states = compiled(&hir, WhichCaptures::Implicit, false)?;
        let (ahead, back) = (lazy(&states)?, lazy(&compiled(&hir, WhichCaptures::None, true)?)?);
        let grouped = (parser.groups > 0).then(|| {
            let whole = Hir::concat(vec![hir, Hir::look(hir::Look::End)]);
            compiled(&whole, WhichCaptures::All, false)
        });
        Ok(Self { ahead, back, states, grouped: grouped.transpose()?, groups: parser.groups })
    }
    /// How many groups it has.
    pub fn groups(&self) -> u16 {
        self.groups
    }
    /// The leftmost match, and of those the longest; none when that takes too much work.
    pub fn find(&self, text: &str) -> Option<Found> {
        Searcher::new(self).find(text).ok().flatten()
    }
    /// Whether it matches somewhere; not, when that takes too much work.
    pub fn is_match(&self, text: &str) -> bool {
        Searcher::new(self).is_match(text) == Ok(true)
    }
}

/// A pattern that a list is gone through with: all texts share one budget, and what does not fit it does not match.
#[derive(Debug)]
pub struct Matcher(RefCell<Searcher<Regex>>);

impl Matcher {
    /// Compiles a pattern.
    pub fn new(pattern: &str) -> Result<Self, BadPattern> {
        Ok(Self(RefCell::new(Searcher::new(Regex::new(pattern)?))))
    }
    /// Whether it matches somewhere in a text.
    pub fn is_match(&self, text: &str) -> bool {
        self.matches(text) == Ok(true)
    }
    /// The same; an error when the budget is gone.
    pub fn matches(&self, text: &str) -> Result<bool, TooMuch> {
        self.0.borrow_mut().is_match(text)
    }
    /// Begins another list: the budget is whole again, what the pattern has learned stays.
    pub fn renew(&self) {
        self.0.borrow_mut().left = WORK_MAX;
    }
}

/// A pattern on its way through texts, with one budget for all of them.
#[derive(Debug)]
pub struct Searcher<R> {
    regex: R,
    ahead: Cache,
    back: Cache,
    /// What the caches held when they were looked at last.
    made: usize,
    left: u64,
}

impl<R: Borrow<Regex>> Searcher<R> {
    /// One with the whole budget.
    pub fn new(regex: R) -> Self {
        let (ahead, back) = (regex.borrow().ahead.create_cache(), regex.borrow().back.create_cache());
        let made = ahead.memory_usage() + back.memory_usage();
        Self { regex, ahead, back, made, left: WORK_MAX }
    }
    fn charge(&mut self, work: usize) -> Result<(), TooMuch> {
        let work = u64::try_from(work).unwrap_or(u64::MAX);
        let left = self.left.checked_sub(work).ok_or(TooMuch);
        self.left = left.unwrap_or(0);
        left.map(drop)
    }
    /// Pays for what the lazy automata have grown by.
    fn charge_growth(&mut self) -> Result<(), TooMuch> {
        let made = self.ahead.memory_usage() + self.back.memory_usage();
        let grown = made.saturating_sub(self.made);
        self.made = made;
        self.charge(grown)
    }
    /// A machine that simulates `states` over a text, paid for.
    fn simulated(&mut self, states: &NFA, kind: MatchKind, bytes: usize) -> Result<PikeVM, TooMuch> {
        self.charge(states.states().len().saturating_mul(bytes + 1))?;
        PikeVM::builder()
            .configure(PikeVM::config().match_kind(kind))
            .build_from_nfa(states.clone())
            .map_err(|_| TooMuch)
    }
    /// Where the leftmost match begins.
    fn begin(&mut self, text: &str) -> Result<Option<usize>, TooMuch> {
        self.charge(text.len())?;
        let found = self.regex.borrow().back.try_search_rev(&mut self.back, &Input::new(text));
        self.charge_growth()?;
        match found {
            Ok(found) => Ok(found.map(|found| found.offset())),
            Err(_) => {
                self.back.reset(&self.regex.borrow().back);
                let states = self.regex.borrow().states.clone();
                let machine = self.simulated(&states, MatchKind::LeftmostFirst, text.len())?;
                Ok(machine.find(&mut machine.create_cache(), text).map(|found| found.start()))
            }
        }
    }
    /// Where the longest match from `start` on ends.
    fn end(&mut self, text: &str, start: usize) -> Result<Option<usize>, TooMuch> {
        self.charge(text.len() - start)?;
        let input = Input::new(text).range(start..).anchored(Anchored::Yes);
        let found = self.regex.borrow().ahead.try_search_fwd(&mut self.ahead, &input);
        self.charge_growth()?;
        match found {
            Ok(found) => Ok(found.map(|found| found.offset())),
            Err(_) => {
                self.ahead.reset(&self.regex.borrow().ahead);
                let states = self.regex.borrow().states.clone();
                let machine = self.simulated(&states, MatchKind::All, text.len() - start)?;
                Ok(machine.find(&mut machine.create_cache(), input).map(|found| found.end()))
            }
        }
    }
    /// The leftmost match, and of those the longest.
    pub fn find(&mut self, text: &str) -> Result<Option<Found>, TooMuch> {
        let Some(start) = self.begin(text)? else { return Ok(None) };
        let Some(end) = self.end(text, start)? else { return Ok(None) };
        let mut groups = Vec::new();
        if let Some(grouped) = self.regex.borrow().grouped.clone() {
            let machine = self.simulated(&grouped, MatchKind::LeftmostFirst, end - start)?;
            let mut captures = machine.create_captures();
            let text = text.as_bytes().get(..end).unwrap_or_default();
            let input = Input::new(text).range(start..).anchored(Anchored::Yes);
            machine.captures(&mut machine.create_cache(), input, &mut captures);
            let group = |n: u16| captures.get_group(n.into()).map(|span| span.range());
            groups.extend((1..=self.regex.borrow().groups).map(group));
        }
        Ok(Some(Found { start, end, groups }))
    }
    /// Whether it matches somewhere.
    pub fn is_match(&mut self, text: &str) -> Result<bool, TooMuch> {
        self.begin(text).map(|start| start.is_some())
    }
}

struct Parser<'p> {
    rest: &'p [u8],
    groups: u16,
    depth: u32,
}

impl Parser<'_> {
    fn take(&mut self) -> Option<u8> {
        let (&first, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(first)
    }
    fn eat(&mut self, byte: u8) -> bool {
        let found = self.rest.first() == Some(&byte);
        if found {
            self.take();
        }
        found
    }
    fn either(&mut self) -> Result<Ast, BadPattern> {
        let mut parts = vec![self.sequence()?];
        while self.eat(b'|') {
            parts.push(self.sequence()?);
        }
        Ok(if parts.len() == 1 { parts.remove(0) } else { Ast::Either(parts) })
    }
    fn sequence(&mut self) -> Result<Ast, BadPattern> {
        let mut parts = Vec::new();
        while let Some(&first) = self.rest.first() {
            if first == b'|' || (first == b')' && self.depth > 0) {
                break;
            }
            let atom = self.atom()?;
            parts.push(self.repeats(atom)?);
        }
        Ok(if parts.is_empty() { Ast::Empty } else { Ast::Sequence(parts) })
    }
    fn repeats(&mut self, mut atom: Ast) -> Result<Ast, BadPattern> {
        let mut stacked = 0u32;
        loop {
            let (least, most) = match self.rest.first() {
                Some(b'*') => (0, None),
                Some(b'+') => (1, None),
                Some(b'?') => (0, Some(1)),
                Some(b'{') if self.rest.get(1).is_some_and(u8::is_ascii_digit) => {
                    self.take();
                    let counts = self.counts()?;
                    atom = repeat(atom, counts.0, counts.1);
                    stacked += 1;
                    if stacked > REPEATS_STACKED_MAX {
                        return Err(BadPattern("too many repeats"));
                    }
                    continue;
                }
                _ => return Ok(atom),
            };
            self.take();
            stacked += 1;
            if stacked > REPEATS_STACKED_MAX {
                return Err(BadPattern("too many repeats"));
            }
            atom = repeat(atom, least, most);
        }
    }
    fn count(&mut self) -> Option<u32> {
        let mut count = None;
        while let Some(digit) = self.rest.first().filter(|byte| byte.is_ascii_digit()) {
            count = Some(count.unwrap_or(0u32).saturating_mul(10).saturating_add(u32::from(digit - b'0')));
            self.take();
        }
        count
    }
    fn counts(&mut self) -> Result<(u32, Option<u32>), BadPattern> {
        let least = self.count().unwrap_or(0);
        let most = if self.eat(b',') { self.count() } else { Some(least) };
        let fits = least <= REPEAT_MAX && most.is_none_or(|most| most <= REPEAT_MAX && least <= most);
        if !self.eat(b'}') || !fits {
            return Err(BadPattern("invalid content of `{}`"));
        }
        Ok((least, most))
    }
    fn atom(&mut self) -> Result<Ast, BadPattern> {
        let single = |byte: u8| Ast::Set(Bytes::of(|other| other == byte));
        Ok(match self.take() {
            Some(b'.') => Ast::Set(Bytes::of(|_| true)),
            Some(b'^') => Ast::Start,
            Some(b'$') => Ast::End,
            Some(b'[') => Ast::Set(self.set()?),
            Some(b'(') => {
                self.depth += 1;
                if self.depth > GROUP_DEPTH_MAX {
                    return Err(BadPattern("groups nest too deep"));
                }
                self.groups += 1;
                let inner = self.either()?;
                if !self.eat(b')') {
                    return Err(BadPattern("unmatched `(`"));
                }
                self.depth -= 1;
                Ast::Group(Box::new(inner))
            }
            Some(b'*' | b'+' | b'?') => return Err(BadPattern("nothing to repeat")),
            Some(b'\\') => match self.take() {
                Some(b'w') => Ast::Set(Bytes::of(is_word)),
                Some(b'W') => Ast::Set(Bytes::of(is_word).inverted()),
                Some(b's') => Ast::Set(Bytes::of(|byte| byte.is_ascii_whitespace())),
                Some(b'S') => Ast::Set(Bytes::of(|byte| byte.is_ascii_whitespace()).inverted()),
                Some(b'1'..=b'9') => return Err(BadPattern("back references are not supported")),
                Some(byte) => single(byte),
                None => return Err(BadPattern("trailing backslash")),
            },
            Some(byte) => single(byte),
            None => Ast::Empty,
        })
    }
    /// What stands between `[` and `]`.
    fn set(&mut self) -> Result<Bytes, BadPattern> {
        let mut set = Bytes::default();
        let inverted = self.eat(b'^');
        let mut first = true;
        loop {
            let byte = self.take().ok_or(BadPattern("unmatched `[`"))?;
            if byte == b']' && !first {
                break;
            }
            first = false;
            if byte == b'[' && self.rest.first() == Some(&b':') {
                let end = self.rest.windows(2).skip(1).position(|pair| pair == b":]").map(|at| at + 1);
                let end = end.ok_or(BadPattern("unmatched `[:`"))?;
                let class = class(self.rest.get(1..end).unwrap_or(&[]));
                let class = class.ok_or(BadPattern("unknown character class"))?;
                (0..=255).filter(|&byte| class(&byte)).for_each(|byte| set.insert(byte));
                self.rest = self.rest.get(end + 2..).unwrap_or(&[]);
                continue;
            }
            let range =
                self.rest.first() == Some(&b'-') && self.rest.get(1).is_some_and(|&next| next != b']');
            if !range {
                set.insert(byte);
                continue;
            }
            self.take();
            let last = self.take().unwrap_or(byte);
            if last < byte {
                return Err(BadPattern("invalid range end"));
            }
            (byte..=last).for_each(|byte| set.insert(byte));
        }
        Ok(if inverted { set.inverted() } else { set })
    }
}

fn repeat(inner: Ast, least: u32, most: Option<u32>) -> Ast {
    Ast::Repeat { inner: Box::new(inner), least, most }
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

fn class(name: &[u8]) -> Option<fn(&u8) -> bool> {
    Some(match name {
        b"alpha" => u8::is_ascii_alphabetic,
        b"digit" => u8::is_ascii_digit,
        b"alnum" => u8::is_ascii_alphanumeric,
        b"upper" => u8::is_ascii_uppercase,
        b"lower" => u8::is_ascii_lowercase,
        b"space" => |byte| matches!(byte, b' ' | 9..=13),
        b"blank" => |byte| matches!(byte, b' ' | b'\t'),
        b"punct" => u8::is_ascii_punctuation,
        b"cntrl" => u8::is_ascii_control,
        b"print" => |byte| (32..127).contains(byte),
        b"graph" => u8::is_ascii_graphic,
        b"xdigit" => u8::is_ascii_hexdigit,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn posix_leftmost_longest_with_groups_classes_and_repeats() {
        for (pattern, text, expected) in [
            ("a|ab", "xab", Some((1, 3, None))),
            ("^[0-9]+$", "12345", Some((0, 5, None))),
            ("^[0-9]+$", "12a", None),
            ("([0-9]+)-([0-9]+)", "tel 555-1234", Some((4, 12, Some("555")))),
            ("[[:alpha:]_]+", "12ab_c3", Some((2, 6, None))),
            ("a{2,3}", "aaaa", Some((0, 3, None))),
            ("a{2}", "a", None),
            ("[]x]", "]", Some((0, 1, None))),
            ("[^a-z-]", "a-B", Some((2, 3, None))),
            ("", "abc", Some((0, 0, None))),
            ("x*", "aaa", Some((0, 0, None))),
            ("(a*)*b", "aaab", Some((0, 4, Some("aaa")))),
            (r"\.", "a.b", Some((1, 2, None))),
            ("a)", "xa)", Some((1, 3, None))),
            ("colou?r", "the color", Some((4, 9, None))),
        ] {
            let found = Regex::new(pattern).unwrap().find(text);
            let shown = found.map(|f| (f.start, f.end, f.group(1).and_then(|range| text.get(range))));
            assert_eq!(shown, expected, "{pattern} on {text}");
        }
    }

    #[test]
    fn bad_patterns_are_refused_by_name() {
        for pattern in [
            "(",
            "[a",
            "*a",
            "a{2,1}",
            "a{300}",
            r"(a)\1",
            "((a{255}){255}){255}",
            "a{0}{255}{255}{255}",
            "a*****",
            "[z-a]",
            "\\",
        ] {
            assert!(Regex::new(pattern).is_err(), "{pattern}");
        }
        assert!(Regex::new(&"(".repeat(5_000)).is_err());
    }

    #[test]
    fn a_pattern_that_would_make_a_backtracker_explode_stays_linear() {
        let text = format!("{}!", "a".repeat(3_000));
        assert_eq!(Regex::new("^(a+)+(a|aa)+$").unwrap().find(&text), None);
    }

    #[test]
    fn no_search_takes_more_than_its_budget() {
        let ab = "ab".repeat(30_000);
        for (name, pattern, text, fits) in [
            ("short", "^(0044|0)([0-9]+)$".to_owned(), "004412345".to_owned(), true),
            ("a long text", "[0-9]+x".to_owned(), ab.clone(), true),
            ("many stars", format!("{}c", "(a|b|ab)*".repeat(200)), ab.clone(), true),
            ("automata of all ends", format!("(a|b)*a{}", "(a|b)".repeat(255)), ab_of(60_000), false),
            ("counted twice", "((a{1,60}b?){1,60}c)+".to_owned(), ab, false),
        ] {
            let regex = Regex::new(&pattern).unwrap();
            let mut searcher = Searcher::new(&regex);
            // Whatever comes out, a second list like it has to fit the same budget or be refused.
            let found = searcher.find(&text);
            assert!(!fits || found.is_ok(), "{name}: {found:?}");
            while searcher.is_match(&text).is_ok() {}
            assert_eq!(searcher.left, 0, "{name}");
        }
    }

    /// Letters a and b without a period.
    fn ab_of(length: usize) -> String {
        let mut seed = 1u32;
        let mut next = || {
            seed = seed.wrapping_mul(1_103_515_245).wrapping_add(12_345);
            if seed >> 16 & 1 == 0 { 'a' } else { 'b' }
        };
        (0..length).map(|_| next()).collect()
    }

    proptest::proptest! {
        #[test]
        fn a_match_is_leftmost_and_longest(pattern in r"([ab|*+?]|\([ab|]{0,3}\)){1,7}", text in "[ab]{0,8}") {
            let Ok(regex) = Regex::new(&pattern) else { return Ok(()) };
            let Ok(whole) = Regex::new(&format!("^({pattern})$")) else { return Ok(()) };
            let spans = (0..=text.len()).flat_map(|start| (start..=text.len()).rev().map(move |end| (start, end)));
            let expected = spans.into_iter().find(|&(start, end)| whole.is_match(&text[start..end]));
            proptest::prop_assert_eq!(regex.find(&text).map(|found| (found.start, found.end)), expected);
        }

        #[test]
        fn no_pattern_panics(pattern in "[\\[\\](){}|*+?^$\\\\a-c0-3,:.-]{0,24}", text in "[a-c0-3-]{0,24}") {
            if let Ok(regex) = Regex::new(&pattern)
                && let Some(found) = regex.find(&text)
            {
                proptest::prop_assert!(found.start <= found.end && found.end <= text.len());
            }
        }
    }
}
