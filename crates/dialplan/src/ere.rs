//! POSIX extended regular expressions, leftmost-longest, in time linear in pattern times text.
//!
//! A pattern may come from a caller by way of a variable, so nothing here backtracks.

use std::fmt;

/// Longest pattern, bytes.
pub const PATTERN_BYTES_MAX: usize = 4 * 1024;
/// Steps a compiled pattern may have; bounds what `{m,n}` can blow up.
pub const PROGRAM_STEPS_MAX: usize = 8 * 1024;
/// Largest repeat count (POSIX RE_DUP_MAX).
const REPEAT_MAX: u32 = 255;
/// Repeat marks one atom may carry (`a{2}{3}`).
const REPEATS_STACKED_MAX: u32 = 4;
/// Parts looked at while compiling: bounds repeats of parts that compile to nothing.
const EMIT_PARTS_MAX: u32 = 64 * 1024;
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
    Group(u16, Box<Ast>),
    Sequence(Vec<Ast>),
    Either(Vec<Ast>),
    Repeat { inner: Box<Ast>, least: u32, most: Option<u32> },
}

#[derive(Debug, Clone, Copy)]
enum Step {
    Byte(u16),
    Start,
    End,
    Split(u16, u16),
    Jump(u16),
    Save(u16),
    Match,
}

/// A compiled pattern.
#[derive(Debug, Clone)]
pub struct Regex {
    steps: Vec<Step>,
    sets: Vec<Bytes>,
    groups: u16,
}

/// Where a pattern matched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// First byte.
    pub start: usize,
    /// One past the last byte.
    pub end: usize,
    slots: Vec<usize>,
}

impl Found {
    /// The range of group `n`, 1 for the first.
    pub fn group(&self, n: u16) -> Option<std::ops::Range<usize>> {
        let at = usize::from(n).checked_sub(1)? * 2;
        let (start, end) = (*self.slots.get(at)?, *self.slots.get(at + 1)?);
        (start <= end && end != UNSET).then_some(start..end)
    }
}

const UNSET: usize = usize::MAX;

impl Regex {
    /// Compiles a pattern.
    pub fn new(pattern: &str) -> Result<Self, BadPattern> {
        if pattern.len() > PATTERN_BYTES_MAX {
            return Err(BadPattern("longer than 4096 bytes"));
        }
        let mut parser = Parser { rest: pattern.as_bytes(), groups: 0, depth: 0 };
        let ast = parser.either()?;
        let mut regex = Self { steps: Vec::new(), sets: Vec::new(), groups: parser.groups };
        regex.emit(&ast, &mut 0)?;
        regex.push(Step::Match)?;
        Ok(regex)
    }
    /// How many groups it has.
    pub fn groups(&self) -> u16 {
        self.groups
    }
    fn push(&mut self, step: Step) -> Result<u16, BadPattern> {
        if self.steps.len() >= PROGRAM_STEPS_MAX {
            return Err(BadPattern("too large"));
        }
        self.steps.push(step);
        u16::try_from(self.steps.len() - 1).map_err(|_| BadPattern("too large"))
    }
    fn here(&self) -> u16 {
        u16::try_from(self.steps.len()).unwrap_or(u16::MAX)
    }
    fn patch(&mut self, at: u16, step: Step) {
        if let Some(slot) = self.steps.get_mut(usize::from(at)) {
            *slot = step;
        }
    }
    fn emit(&mut self, ast: &Ast, parts_seen: &mut u32) -> Result<(), BadPattern> {
        *parts_seen += 1;
        if *parts_seen > EMIT_PARTS_MAX {
            return Err(BadPattern("too large"));
        }
        match ast {
            Ast::Empty => {}
            Ast::Set(set) => {
                let at = self.sets.iter().position(|known| known == set).unwrap_or(self.sets.len());
                if at == self.sets.len() {
                    self.sets.push(*set);
                }
                self.push(Step::Byte(u16::try_from(at).map_err(|_| BadPattern("too large"))?))?;
            }
            Ast::Start => drop(self.push(Step::Start)?),
            Ast::End => drop(self.push(Step::End)?),
            Ast::Group(n, inner) => {
                self.push(Step::Save(n * 2 - 2))?;
                self.emit(inner, parts_seen)?;
                self.push(Step::Save(n * 2 - 1))?;
            }
            Ast::Sequence(parts) => {
                for part in parts {
                    self.emit(part, parts_seen)?;
                }
            }
            Ast::Either(parts) => {
                let mut exits = Vec::new();
                for (index, part) in parts.iter().enumerate() {
                    if index + 1 == parts.len() {
                        self.emit(part, parts_seen)?;
                        break;
                    }
                    let split = self.push(Step::Match)?;
                    self.emit(part, parts_seen)?;
                    exits.push(self.push(Step::Match)?);
                    self.patch(split, Step::Split(split + 1, self.here()));
                }
                for exit in exits {
                    self.patch(exit, Step::Jump(self.here()));
                }
            }
            Ast::Repeat { inner, least, most } => self.emit_repeat(inner, *least, *most, parts_seen)?,
        }
        Ok(())
    }
    fn emit_repeat(
        &mut self,
        inner: &Ast,
        least: u32,
        most: Option<u32>,
        parts_seen: &mut u32,
    ) -> Result<(), BadPattern> {
        for _ in 0..least {
            self.emit(inner, parts_seen)?;
        }
        match most {
            None => {
                let split = self.push(Step::Match)?;
                self.emit(inner, parts_seen)?;
                self.push(Step::Jump(split))?;
                self.patch(split, Step::Split(split + 1, self.here()));
            }
            Some(most) => {
                let mut splits = Vec::new();
                for _ in least..most {
                    splits.push(self.push(Step::Match)?);
                    self.emit(inner, parts_seen)?;
                }
                let end = self.here();
                for split in splits {
                    self.patch(split, Step::Split(split + 1, end));
                }
            }
        }
        Ok(())
    }
    /// The leftmost match, and of those the longest.
    pub fn find(&self, text: &str) -> Option<Found> {
        let text = text.as_bytes();
        let slots = usize::from(self.groups) * 2;
        let mut best: Option<Found> = None;
        let mut threads = Threads::new(self.steps.len());
        let mut next = Threads::new(self.steps.len());
        for at in 0..=text.len() {
            if best.is_none() {
                let thread = Thread { step: 0, start: at, slots: vec![UNSET; slots] };
                self.follow(&mut threads, thread, at, text.len());
            }
            if threads.list.is_empty() && best.is_some() {
                break;
            }
            for thread in threads.list.drain(..) {
                if best.as_ref().is_some_and(|best| thread.start > best.start) {
                    continue;
                }
                match self.steps.get(usize::from(thread.step)) {
                    // Of two matches from one start the longer wins; of equally long ones the first found.
                    Some(Step::Match)
                        if best.as_ref().is_none_or(|best| thread.start < best.start || at > best.end) =>
                    {
                        best = Some(Found { start: thread.start, end: at, slots: thread.slots });
                    }
                    Some(Step::Byte(set)) => {
                        let takes = text
                            .get(at)
                            .zip(self.sets.get(usize::from(*set)))
                            .is_some_and(|(&byte, set)| set.has(byte));
                        if takes {
                            let moved = Thread { step: thread.step + 1, ..thread };
                            self.follow(&mut next, moved, at + 1, text.len());
                        }
                    }
                    _ => {}
                }
            }
            threads.seen.fill(false);
            std::mem::swap(&mut threads, &mut next);
        }
        best
    }
    /// Adds a thread and all it reaches without taking a byte.
    fn follow(&self, threads: &mut Threads, thread: Thread, at: usize, len: usize) {
        let Threads { list, seen, stack } = threads;
        stack.push(thread);
        while let Some(mut thread) = stack.pop() {
            let index = usize::from(thread.step);
            match seen.get_mut(index) {
                Some(seen @ false) => *seen = true,
                _ => continue,
            }
            match self.steps.get(index).copied() {
                Some(Step::Jump(to)) => stack.push(Thread { step: to, ..thread }),
                Some(Step::Split(first, second)) => {
                    stack.push(Thread { step: second, ..thread.clone() });
                    stack.push(Thread { step: first, ..thread });
                }
                Some(Step::Save(slot)) => {
                    if let Some(slot) = thread.slots.get_mut(usize::from(slot)) {
                        *slot = at;
                    }
                    thread.step += 1;
                    stack.push(thread);
                }
                Some(Step::Start) if at == 0 => stack.push(Thread { step: thread.step + 1, ..thread }),
                Some(Step::End) if at == len => stack.push(Thread { step: thread.step + 1, ..thread }),
                Some(Step::Byte(_) | Step::Match) => list.push(thread),
                Some(Step::Start | Step::End) | None => {}
            }
        }
    }
}

#[derive(Debug, Clone)]
struct Thread {
    step: u16,
    start: usize,
    slots: Vec<usize>,
}

struct Threads {
    list: Vec<Thread>,
    seen: Vec<bool>,
    /// Empty between calls; kept for its memory.
    stack: Vec<Thread>,
}

impl Threads {
    fn new(steps: usize) -> Self {
        Self { list: Vec::new(), seen: vec![false; steps], stack: Vec::new() }
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
                let n = self.groups;
                let inner = self.either()?;
                if !self.eat(b')') {
                    return Err(BadPattern("unmatched `(`"));
                }
                self.depth -= 1;
                Ast::Group(n, Box::new(inner))
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

    proptest::proptest! {
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
