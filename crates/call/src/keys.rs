//! Keys that mean something during a conversation: which codes there are, and what was pressed of them.

use core::time::Duration;

use base::{Digit, Instant};

/// Longest code; the field keeps eleven.
pub const CODE_MAX: usize = 11;

/// A code and what it stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Key {
    /// What is pressed, such as `*1`.
    pub code: Vec<Digit>,
    /// What it stands for: a number of whoever acts on it.
    pub meaning: usize,
}

impl Key {
    /// A key, if `code` is one to [`CODE_MAX`] of the characters `0-9 * # A-D`.
    pub fn new(code: &str, meaning: usize) -> Option<Self> {
        let code: Option<Vec<Digit>> = code.chars().map(Digit::from_char).collect();
        let code = code.filter(|code| (1..=CODE_MAX).contains(&code.len()))?;
        Some(Self { code, meaning })
    }
}

/// Codes of one party, and how long the next digit of one may take.
#[derive(Debug, Clone, Default)]
pub struct Keys {
    /// Codes; of equal ones the first holds.
    pub keys: Vec<Key>,
    /// `featuredigittimeout`.
    pub timeout: Duration,
}

/// A digit that was pressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stroke {
    /// Which.
    pub digit: Digit,
    /// Milliseconds it lasted.
    pub duration_ms: u32,
    /// The other party has heard it already.
    pub relayed: bool,
}

/// What a digit has come to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Pressed {
    /// It may become a code.
    Wait,
    /// This key, by its place in [`Keys::keys`].
    Key(usize),
    /// No code begins so: these digits are meant for the other party.
    PassOn(Vec<Stroke>),
}

/// What a party has pressed of a code.
#[derive(Debug, Default)]
pub struct Pressing {
    strokes: Vec<Stroke>,
    until: Option<Instant>,
}

impl Pressing {
    /// When [`Pressing::timeout`] is due.
    pub fn deadline(&self) -> Option<Instant> {
        self.until
    }
    /// A digit was pressed.
    pub fn stroke(&mut self, keys: &Keys, stroke: Stroke, now: Instant) -> Pressed {
        self.strokes.push(stroke);
        let pressed = self.strokes.len();
        let begins = |key: &Key| key.code.len() > pressed && self.digits().eq(&key.code[..pressed]);
        if keys.keys.iter().any(begins) {
            self.until = Some(now + keys.timeout);
            return Pressed::Wait;
        }
        self.timeout(keys)
    }
    /// No more digits came in time.
    pub fn timeout(&mut self, keys: &Keys) -> Pressed {
        self.until = None;
        let key = keys.keys.iter().position(|key| self.digits().eq(&key.code));
        let strokes = std::mem::take(&mut self.strokes);
        key.map_or(Pressed::PassOn(strokes), Pressed::Key)
    }
    fn digits(&self) -> impl Iterator<Item = &Digit> {
        self.strokes.iter().map(|stroke| &stroke.digit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_told_from_digits_that_are_meant_for_the_other_party() {
        let code = |(meaning, code): (usize, &&str)| Key::new(code, meaning).unwrap();
        let keys = Keys {
            keys: ["#", "*1", "*12", "*1", "99"].iter().enumerate().map(code).collect(),
            timeout: Duration::from_millis(1000),
        };
        // What is pressed (`.`: nothing more comes), which keys it is, what is passed on.
        for (pressed, meant, passed) in [
            ("#", vec![0], ""),
            ("5", vec![], "5"),
            ("*1.", vec![1], ""),
            ("*12", vec![2], ""),
            ("*13", vec![], "*13"),
            ("*.1", vec![], "*1"),
            ("*5#", vec![0], "*5"),
            ("9.99", vec![4], "9"),
            (".", vec![], ""),
        ] {
            let mut pressing = Pressing::default();
            let (mut keyed, mut sent) = (Vec::new(), String::new());
            let now = Instant::ZERO;
            for symbol in pressed.chars() {
                let came = match Digit::from_char(symbol) {
                    Some(digit) => {
                        pressing.stroke(&keys, Stroke { digit, duration_ms: 100, relayed: false }, now)
                    }
                    None => pressing.timeout(&keys),
                };
                assert_eq!(pressing.deadline().is_some(), came == Pressed::Wait, "{pressed}");
                match came {
                    Pressed::Wait => {}
                    Pressed::Key(key) => keyed.push(key),
                    Pressed::PassOn(digits) => {
                        sent.extend(digits.iter().map(|stroke| stroke.digit.to_char()))
                    }
                }
            }
            assert_eq!((keyed, sent.as_str()), (meant, passed), "{pressed}");
        }
    }

    #[test]
    fn a_code_is_one_to_eleven_digits() {
        for (code, taken) in
            [("", false), ("*", true), ("12345678901", true), ("123456789012", false), ("x", false)]
        {
            assert_eq!(Key::new(code, 0).is_some(), taken, "{code}");
        }
    }
}
