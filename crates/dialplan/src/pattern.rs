//! Extension names and patterns: what they match, and which comes first (§4).

use std::cmp::Ordering;

/// Longest name or pattern, positions; the field's limit for an extension is 80.
pub const PATTERN_POSITIONS_MAX: usize = 256;

/// One position of a pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Position {
    /// One of a set of bytes.
    Set { members: [u64; 4], count: u16, lowest: u8 },
    /// `.`: one or more of anything, to the end.
    Rest,
    /// `!`: zero or more of anything, and do not wait for more digits.
    Early,
}

/// How a name takes a number that is being dialled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fit {
    /// Whatever follows, it will not match.
    No,
    /// It does not match, but more digits could make it.
    NeedsMore,
    /// It matches, and no longer number would.
    Whole,
    /// It matches, and so would a longer number (`.`).
    WholeAndMore,
    /// It matches by `!`: dialling is over.
    Early,
}

impl Fit {
    /// The number as it stands matches.
    pub fn matches(self) -> bool {
        matches!(self, Self::Whole | Self::WholeAndMore | Self::Early)
    }
}

/// A name as the matcher holds it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pattern {
    positions: Vec<Position>,
    /// The name is literal (no leading `_`).
    literal: bool,
}

fn set_of(bytes: impl IntoIterator<Item = u8>) -> Position {
    let mut members = [0u64; 4];
    for byte in bytes {
        members[usize::from(byte >> 6)] |= 1 << (byte & 63);
    }
    let count = members.iter().map(|word| word.count_ones()).sum::<u32>();
    let lowest =
        (0..=255u8).find(|byte| members[usize::from(byte >> 6)] >> (byte & 63) & 1 == 1).unwrap_or(0);
    Position::Set { members, count: u16::try_from(count).unwrap_or(0), lowest }
}

impl Position {
    fn has(self, byte: u8) -> bool {
        match self {
            Self::Set { members, .. } => members[usize::from(byte >> 6)] >> (byte & 63) & 1 == 1,
            Self::Rest | Self::Early => true,
        }
    }
}

impl Pattern {
    /// Reads a name as `exten =>` spells it; the error says what is wrong with it.
    pub fn parse(name: &str) -> Result<Self, &'static str> {
        let mut positions = Vec::new();
        let Some(pattern) = name.strip_prefix('_') else {
            positions.extend(name.bytes().filter(|&byte| byte != b'-').map(|byte| set_of([byte])));
            if positions.len() > PATTERN_POSITIONS_MAX {
                return Err("the name is longer than 256 characters");
            }
            return Ok(Self { positions, literal: true });
        };
        let mut rest = pattern.as_bytes();
        while let Some((&byte, after)) = rest.split_first() {
            rest = after;
            positions.push(match byte {
                b'-' => continue,
                b'X' | b'x' => set_of(b'0'..=b'9'),
                b'Z' | b'z' => set_of(b'1'..=b'9'),
                b'N' | b'n' => set_of(b'2'..=b'9'),
                b'[' => {
                    let (set, after) = parse_set(rest)?;
                    rest = after;
                    // An empty set is as if it were not there.
                    let Some(set) = set else { continue };
                    set
                }
                b'.' => Position::Rest,
                b'!' => Position::Early,
                literal => set_of([literal]),
            });
            if matches!(positions.last(), Some(Position::Rest | Position::Early)) {
                // Nothing after `.` or `!` is looked at.
                break;
            }
            if positions.len() > PATTERN_POSITIONS_MAX {
                return Err("the pattern is longer than 256 positions");
            }
        }
        if positions.is_empty() {
            return Err("the pattern is empty");
        }
        Ok(Self { positions, literal: false })
    }
    /// Whether the name has no leading `_`.
    pub fn is_literal(&self) -> bool {
        self.literal
    }
    /// Whether it takes special extensions such as `h` and `i` along (`_.`, `_!`).
    pub fn takes_everything(&self) -> bool {
        !self.literal && matches!(self.positions.first(), Some(Position::Rest | Position::Early))
    }
    /// How the pattern takes `number`; dashes in it are ignored.
    pub fn fit(&self, number: &str) -> Fit {
        let mut positions = self.positions.iter();
        for byte in number.bytes().filter(|&byte| byte != b'-') {
            match positions.next() {
                None => return Fit::No,
                Some(Position::Rest) => return Fit::WholeAndMore,
                Some(Position::Early) => return Fit::Early,
                Some(set) if set.has(byte) => {}
                Some(_) => return Fit::No,
            }
        }
        match positions.next() {
            None => Fit::Whole,
            Some(Position::Early) => Fit::Early,
            Some(_) => Fit::NeedsMore,
        }
    }
    /// Whether a number that begins with this byte, which is no dash, can match.
    pub(crate) fn may_begin(&self, byte: u8) -> bool {
        self.positions.first().is_some_and(|position| position.has(byte))
    }
    /// The literal digits, dashes taken out, of a literal name.
    pub(crate) fn key(name: &str) -> String {
        name.chars().filter(|&symbol| symbol != '-').collect()
    }
}

/// Reads a set after its `[`.
fn parse_set(text: &[u8]) -> Result<(Option<Position>, &[u8]), &'static str> {
    // One member and whether it was escaped: an escaped `-` or `]` stands for itself.
    let mut members: Vec<(u8, bool)> = Vec::new();
    let mut at = 0;
    loop {
        match text.get(at) {
            None => return Err("a set has no closing `]`"),
            Some(b']') => break,
            Some(b'\\') => {
                let byte = *text.get(at + 1).ok_or("a set has no closing `]`")?;
                members.push((byte, true));
                at += 2;
            }
            Some(&byte) => {
                members.push((byte, false));
                at += 1;
            }
        }
    }
    let mut bytes = Vec::new();
    let mut index = 0;
    while let Some(&(byte, _)) = members.get(index) {
        match (members.get(index + 1), members.get(index + 2)) {
            (Some((b'-', false)), Some(&(last, _))) => {
                if last < byte {
                    return Err("a range in a set runs backwards");
                }
                bytes.extend(byte..=last);
                index += 3;
            }
            _ => {
                bytes.push(byte);
                index += 1;
            }
        }
    }
    let set = (!bytes.is_empty()).then(|| set_of(bytes));
    Ok((set, text.get(at + 1..).unwrap_or(&[])))
}

/// Rank of a position: fewer members first, then the lowest member; `.` after all sets, `!` after `.`, the end last.
fn rank(position: Option<&Position>) -> (u32, u16, u8) {
    match position {
        Some(&Position::Set { count, lowest, .. }) => (0, count, lowest),
        Some(Position::Rest) => (1, 0, 0),
        Some(Position::Early) => (2, 0, 0),
        None => (3, 0, 0),
    }
}

impl Ord for Pattern {
    /// Most specific first: literal names, then patterns position by position.
    fn cmp(&self, other: &Self) -> Ordering {
        other.literal.cmp(&self.literal).then_with(|| {
            let longest = self.positions.len().max(other.positions.len());
            for at in 0..=longest {
                let (a, b) = (self.positions.get(at), other.positions.get(at));
                let order = if self.literal { a.is_some().cmp(&b.is_some()) } else { Ordering::Equal };
                let order = order.then_with(|| rank(a).cmp(&rank(b)));
                let order = order.then_with(|| match (a, b) {
                    // Whoever has the first character that the other has not goes first.
                    (Some(Position::Set { members: a, .. }), Some(Position::Set { members: b, .. })) => {
                        b.map(u64::reverse_bits).cmp(&a.map(u64::reverse_bits))
                    }
                    _ => Ordering::Equal,
                });
                if order != Ordering::Equal {
                    return order;
                }
            }
            Ordering::Equal
        })
    }
}

impl PartialOrd for Pattern {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
