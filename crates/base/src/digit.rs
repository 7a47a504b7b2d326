//! The sixteen DTMF digits and the hook flash.

/// A DTMF digit or event as RFC 4733 table 3 numbers them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digit(u8);

const SYMBOLS: &[u8; 17] = b"0123456789*#ABCD!";

impl Digit {
    /// The hook flash (event 16), written `!` in dialplans.
    pub const FLASH: Self = Self(16);

    /// The digit for an RFC 4733 event code 0 to 16.
    pub const fn from_event(code: u8) -> Option<Self> {
        if code <= 16 { Some(Self(code)) } else { None }
    }
    /// The digit a person writes: `0`-`9`, `*`, `#`, `A`-`D` in either case, `!` for flash.
    pub fn from_char(symbol: char) -> Option<Self> {
        let upper = symbol.to_ascii_uppercase();
        SYMBOLS.iter().position(|&s| char::from(s) == upper).and_then(|i| u8::try_from(i).ok()).map(Self)
    }
    /// The RFC 4733 event code, 0 to 16.
    pub const fn event(self) -> u8 {
        self.0
    }
    /// The character people and dialplans use.
    pub fn to_char(self) -> char {
        SYMBOLS.get(usize::from(self.0)).copied().map_or('!', char::from)
    }
    /// The row and column tone in hertz (ITU-T Q.23); `None` for the flash, which has no tone.
    pub fn tones(self) -> Option<(u16, u16)> {
        const ROWS: [u16; 4] = [697, 770, 852, 941];
        const COLUMNS: [u16; 4] = [1209, 1336, 1477, 1633];
        let (row, column) = match self.to_char() {
            '1' => (0, 0),
            '2' => (0, 1),
            '3' => (0, 2),
            'A' => (0, 3),
            '4' => (1, 0),
            '5' => (1, 1),
            '6' => (1, 2),
            'B' => (1, 3),
            '7' => (2, 0),
            '8' => (2, 1),
            '9' => (2, 2),
            'C' => (2, 3),
            '*' => (3, 0),
            '0' => (3, 1),
            '#' => (3, 2),
            'D' => (3, 3),
            _ => return None,
        };
        Some((ROWS[row], COLUMNS[column]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rfc4733_3_2_every_event_code_has_one_symbol_and_back() {
        for code in 0..=16 {
            let digit = Digit::from_event(code).unwrap();
            assert_eq!(Digit::from_char(digit.to_char()), Some(digit), "code {code}");
            assert_eq!(digit.tones().is_some(), digit != Digit::FLASH, "code {code}");
        }
        assert_eq!(Digit::from_event(17), None);
        assert_eq!(Digit::from_char('a').map(Digit::event), Some(12));
        assert_eq!(Digit::from_char('x'), None);
    }
}
