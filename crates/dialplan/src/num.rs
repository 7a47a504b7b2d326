//! Numbers of `$[…]`: integers while they fit, else a float with 64 bits of significand.
//!
//! The field's dialplans were written against an x87 `long double` printed with `%.18Lg`; both are rebuilt here
//! in integer arithmetic, so that results agree digit by digit on every machine.

use std::fmt::Write as _;

/// Binary exponents beyond this are infinite, as in the x87 format.
const EXPONENT_MAX: i32 = 16_383;
/// Significant digits that are printed.
const DIGITS: usize = 18;
/// Integers below this print without an exponent.
const INTEGER_MAX: u64 = 1_000_000_000_000_000_000;
/// Fraction digits that are read; more change nothing that 64 bits can hold for numbers people write.
const FRACTION_DIGITS_MAX: usize = 27;
/// Pairs of zero bits brought down by a square root beyond the significand's own.
const ROOT_ZERO_PAIRS: i32 = 35;
/// Integer digits that are read before a number counts as infinite.
const INTEGER_DIGITS_MAX: usize = 5_000;

/// `significand * 2^exponent`, rounded to nearest even, 64 bits of significand.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Float {
    Finite { negative: bool, significand: u64, exponent: i32 },
    Infinite { negative: bool },
    Nan,
}

use Float::{Finite, Infinite, Nan};

impl Float {
    pub(crate) const ZERO: Self = Finite { negative: false, significand: 0, exponent: 0 };

    /// Rounds `wide * 2^exponent`; `sticky` says that lower bits were lost.
    fn round(negative: bool, wide: u128, exponent: i32, sticky: bool) -> Self {
        if wide == 0 {
            return Self::ZERO;
        }
        let bits = 128 - wide.leading_zeros();
        let (mut significand, mut exponent) = if bits <= 64 {
            let shift = 64 - bits;
            #[allow(clippy::cast_possible_truncation)] // at most 64 bits by the test above
            (((wide as u64) << shift), exponent - shift as i32)
        } else {
            let drop = bits - 64;
            let kept = wide >> drop;
            let rest = wide & ((1u128 << drop) - 1);
            let half = 1u128 << (drop - 1);
            let up = rest > half || (rest == half && (sticky || kept & 1 == 1));
            let kept = kept + u128::from(up);
            if kept >> 64 != 0 {
                (1u64 << 63, exponent + drop as i32 + 1)
            } else {
                #[allow(clippy::cast_possible_truncation)] // 64 bits remain
                (kept as u64, exponent + drop as i32)
            }
        };
        if exponent > EXPONENT_MAX - 63 {
            return Infinite { negative };
        }
        if exponent < -EXPONENT_MAX - 63 {
            (significand, exponent) = (0, 0);
        }
        Finite { negative: negative && significand != 0, significand, exponent }
    }
    pub(crate) fn from_i64(value: i64) -> Self {
        Self::round(value < 0, u128::from(value.unsigned_abs()), 0, false)
    }
    pub(crate) fn from_f64(value: f64) -> Self {
        if value.is_nan() {
            return Nan;
        }
        if value.is_infinite() {
            return Infinite { negative: value < 0.0 };
        }
        let bits = value.to_bits();
        let field = i32::try_from((bits >> 52) & 0x7ff).unwrap_or(0);
        let fraction = bits & ((1 << 52) - 1);
        let (significand, exponent) =
            if field == 0 { (fraction, -1074) } else { (fraction | (1 << 52), field - 1075) };
        Self::round(value < 0.0, u128::from(significand), exponent, false)
    }
    #[allow(clippy::cast_precision_loss)] // the wanted rounding
    pub(crate) fn to_f64(self) -> f64 {
        match self {
            Finite { negative, significand, exponent } => {
                // In two steps: the power alone may be too small for a double where the product is not.
                let half = exponent.clamp(-2_400, 2_400) / 2;
                let size =
                    significand as f64 * 2f64.powi(half) * 2f64.powi(exponent.clamp(-2_400, 2_400) - half);
                if negative { -size } else { size }
            }
            Infinite { negative: true } => f64::NEG_INFINITY,
            Infinite { negative: false } => f64::INFINITY,
            Nan => f64::NAN,
        }
    }
    /// The value when it is a whole number below 10^18.
    pub(crate) fn to_integer(self) -> Option<i64> {
        let Finite { negative, significand, exponent } = self else { return None };
        if significand == 0 {
            return Some(0);
        }
        let size = if exponent >= 0 {
            significand.checked_shl(exponent.unsigned_abs()).filter(|_| exponent == 0)?
        } else {
            let drop = exponent.unsigned_abs();
            if drop >= 64 || significand.trailing_zeros() < drop {
                return None;
            }
            significand >> drop
        };
        if size >= INTEGER_MAX {
            return None;
        }
        let size = i64::try_from(size).ok()?;
        Some(if negative { -size } else { size })
    }
    /// The whole part, toward zero.
    pub(crate) fn trunc(self) -> Self {
        let Finite { negative, significand, exponent } = self else { return self };
        if exponent >= 0 {
            return self;
        }
        let drop = exponent.unsigned_abs();
        if drop >= 64 {
            return Self::ZERO;
        }
        Self::round(negative, u128::from(significand >> drop), 0, false)
    }
    pub(crate) fn neg(self) -> Self {
        match self {
            Finite { negative, significand, exponent } => {
                Finite { negative: !negative && significand != 0, significand, exponent }
            }
            Infinite { negative } => Infinite { negative: !negative },
            Nan => Nan,
        }
    }
    pub(crate) fn is_zero(self) -> bool {
        matches!(self, Finite { significand: 0, .. })
    }
    pub(crate) fn is_negative(self) -> bool {
        matches!(self, Finite { negative: true, .. } | Infinite { negative: true })
    }
    pub(crate) fn add(self, other: Self) -> Self {
        match (self, other) {
            (Nan, _) | (_, Nan) => Nan,
            (Infinite { negative: a }, Infinite { negative: b }) if a != b => Nan,
            (Infinite { .. }, _) => self,
            (_, Infinite { .. }) => other,
            (Finite { significand: 0, .. }, _) => other,
            (_, Finite { significand: 0, .. }) => self,
            (
                Finite { negative: an, significand: am, exponent: ae },
                Finite { negative: bn, significand: bm, exponent: be },
            ) => {
                if (ae, am) < (be, bm) {
                    return other.add(self);
                }
                // 62 bits of room below the larger significand, one above it for the carry.
                let big = u128::from(am) << 62;
                let small = u128::from(bm) << 62;
                let shift = ae.abs_diff(be);
                let (moved, sticky) = if shift >= 127 {
                    (0, true)
                } else {
                    (small >> shift, small & ((1u128 << shift) - 1) != 0)
                };
                if an == bn {
                    Self::round(an, big + moved, ae - 62, sticky)
                } else {
                    // What was shifted out makes the true difference a little smaller: borrow one, keep the sticky bit.
                    Self::round(an, big - moved - u128::from(sticky), ae - 62, sticky)
                }
            }
        }
    }
    pub(crate) fn sub(self, other: Self) -> Self {
        self.add(other.neg())
    }
    pub(crate) fn mul(self, other: Self) -> Self {
        match (self, other) {
            (
                Finite { negative: an, significand: am, exponent: ae },
                Finite { negative: bn, significand: bm, exponent: be },
            ) => Self::round(an != bn, u128::from(am) * u128::from(bm), ae + be, false),
            (Nan, _) | (_, Nan) => Nan,
            (a, b) if a.is_zero() || b.is_zero() => Nan,
            (a, b) => Infinite { negative: a.is_negative() != b.is_negative() },
        }
    }
    /// Quotient; the caller has ruled out division by zero.
    pub(crate) fn div(self, other: Self) -> Self {
        match (self, other) {
            (_, Finite { significand: 0, .. }) | (Nan, _) | (_, Nan) => Nan,
            (Infinite { .. }, Infinite { .. }) => Nan,
            (Infinite { negative }, b) => Infinite { negative: negative != b.is_negative() },
            (_, Infinite { .. }) => Self::ZERO,
            (
                Finite { negative: an, significand: am, exponent: ae },
                Finite { negative: bn, significand: bm, exponent: be },
            ) => {
                let divisor = u128::from(bm);
                let wide = u128::from(am) << 64;
                let (quotient, rest) = (wide / divisor, wide % divisor);
                let rest = rest << 2;
                let quotient = (quotient << 2) | (rest / divisor);
                Self::round(an != bn, quotient, ae - be - 66, rest % divisor != 0)
            }
        }
    }
    /// Square root, rounded; not a number for negative values.
    pub(crate) fn sqrt(self) -> Self {
        match self {
            Finite { significand: 0, .. } | Infinite { negative: false } => self,
            Finite { negative: false, significand, exponent } => {
                // Schoolbook, two bits a step: 33 pairs of the significand, then enough zeros for 64 bits and rounding.
                let odd = exponent & 1;
                let wide = u128::from(significand) << odd;
                let (mut root, mut rest) = (0u128, 0u128);
                for pair in 0..33 + ROOT_ZERO_PAIRS {
                    let bits = if pair < 33 { (wide >> (64 - 2 * pair)) & 3 } else { 0 };
                    rest = (rest << 2) | bits;
                    let trial = (root << 2) | 1;
                    root = (root << 1) | u128::from(rest >= trial);
                    if rest >= trial {
                        rest -= trial;
                    }
                }
                Self::round(false, root, (exponent - odd) / 2 - ROOT_ZERO_PAIRS, rest != 0)
            }
            _ => Nan,
        }
    }
    /// The remainder with the sign of `self`, exact (C `fmod`).
    pub(crate) fn rem(self, other: Self) -> Self {
        match (self, other) {
            (Finite { significand: 0, .. }, b) if !b.is_zero() && b != Nan => Self::ZERO,
            (Finite { .. }, Infinite { .. }) => self,
            (
                Finite { negative, significand: am, exponent: ae },
                Finite { significand: bm @ 1.., exponent: be, .. },
            ) => {
                let divisor = u128::from(bm);
                if ae < be {
                    // Both significands have their top bit set, so `self` is the smaller one.
                    return self;
                }
                let mut rest = u128::from(am) % divisor;
                for _ in 0..ae.abs_diff(be) {
                    rest = (rest << 1) % divisor;
                }
                Self::round(negative, rest, be, false)
            }
            _ => Nan,
        }
    }
    pub(crate) fn cmp(self, other: Self) -> Option<std::cmp::Ordering> {
        use std::cmp::Ordering::{Equal, Greater, Less};
        if self == other {
            return (self != Nan).then_some(Equal);
        }
        match (self, other) {
            (Nan, _) | (_, Nan) => None,
            (Infinite { negative }, _) => Some(if negative { Less } else { Greater }),
            (_, Infinite { negative }) => Some(if negative { Greater } else { Less }),
            (a, b) => {
                let difference = a.sub(b);
                Some(if difference.is_negative() { Less } else { Greater })
            }
        }
    }
    /// Reads `[-]digits[.digits]` whole; `None` for anything else.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (negative, text) = match text.as_bytes().first()? {
            b'-' => (true, text.get(1..)?),
            b'+' => (false, text.get(1..)?),
            _ => (false, text),
        };
        let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
        if whole.is_empty() && fraction.is_empty() {
            return None;
        }
        if !whole.bytes().chain(fraction.bytes()).all(|b| b.is_ascii_digit()) {
            return None;
        }
        let whole = whole.trim_start_matches('0');
        if whole.len() > INTEGER_DIGITS_MAX {
            return Some(Infinite { negative });
        }
        let kept =
            fraction.get(..fraction.len().min(FRACTION_DIGITS_MAX)).unwrap_or("").trim_end_matches('0');
        let mut big = Big::default();
        for digit in whole.bytes().chain(kept.bytes()) {
            big.mul_add(10, u32::from(digit - b'0'));
        }
        let (top, shift, lost) = big.top();
        let divisor = 10u128.checked_pow(u32::try_from(kept.len()).ok()?)?;
        // Long division, one bit at a time until 70 bits of quotient stand (divisor < 2^90, so nothing overflows).
        let (mut quotient, mut rest, mut exponent) = (top / divisor, top % divisor, shift);
        while divisor > 1 && quotient >> 70 == 0 && (quotient != 0 || rest != 0) {
            rest <<= 1;
            quotient = (quotient << 1) | u128::from(rest >= divisor);
            if rest >= divisor {
                rest -= divisor;
            }
            exponent -= 1;
        }
        Some(Self::round(negative, quotient, exponent, lost || rest != 0))
    }
    /// Appends the number as `%.18Lg` prints it.
    pub(crate) fn write(self, out: &mut String) {
        let Finite { negative, significand, exponent } = self else {
            out.push_str(match self {
                Nan => "nan",
                Infinite { negative: true } => "-inf",
                _ => "inf",
            });
            return;
        };
        if significand == 0 {
            out.push('0');
            return;
        }
        if negative {
            out.push('-');
        }
        let mut big = Big::from(significand);
        let point = if exponent >= 0 {
            for _ in 0..exponent {
                big.mul_add(2, 0);
            }
            0
        } else {
            for _ in 0..exponent.unsigned_abs() {
                big.mul_add(5, 0);
            }
            exponent.unsigned_abs() as usize
        };
        let digits = big.to_decimal();
        write_general(&digits, point, out);
    }
}

/// Formats decimal `digits` with `point` of them after the point, as `%.18Lg` does.
fn write_general(digits: &[u8], point: usize, out: &mut String) {
    let mut kept: Vec<u8> = digits.iter().copied().take(DIGITS).collect();
    // Decimal exponent of the first digit.
    let mut exponent = i64::try_from(digits.len()).unwrap_or(0) - 1 - i64::try_from(point).unwrap_or(0);
    if let Some((&next, rest)) = digits.get(DIGITS..).and_then(<[u8]>::split_first) {
        let odd = kept.last().is_some_and(|digit| digit % 2 == 1);
        let up = next > 5 || (next == 5 && (rest.iter().any(|&digit| digit != 0) || odd));
        if up {
            let mut carried = true;
            for digit in kept.iter_mut().rev() {
                if *digit < 9 {
                    *digit += 1;
                    carried = false;
                    break;
                }
                *digit = 0;
            }
            if carried {
                kept.insert(0, 1);
                kept.pop();
                exponent += 1;
            }
        }
    }
    while kept.len() > 1 && kept.last() == Some(&0) {
        kept.pop();
    }
    let digit = |at: usize| char::from(b'0' + kept.get(at).copied().unwrap_or(0));
    let limit = i64::try_from(DIGITS).unwrap_or(i64::MAX);
    if exponent < -4 || exponent >= limit {
        out.push(digit(0));
        if kept.len() > 1 {
            out.push('.');
            (1..kept.len()).for_each(|at| out.push(digit(at)));
        }
        let sign = if exponent < 0 { '-' } else { '+' };
        let _ = write!(out, "e{sign}{:02}", exponent.unsigned_abs());
        return;
    }
    if exponent < 0 {
        out.push_str("0.");
        (1..exponent.unsigned_abs()).for_each(|_| out.push('0'));
        (0..kept.len()).for_each(|at| out.push(digit(at)));
        return;
    }
    let whole = usize::try_from(exponent).unwrap_or(0) + 1;
    (0..whole).for_each(|at| out.push(digit(at)));
    if kept.len() > whole {
        out.push('.');
        (whole..kept.len()).for_each(|at| out.push(digit(at)));
    }
}

/// A natural number, little end first: just enough to read and print decimals exactly.
#[derive(Debug, Default)]
struct Big(Vec<u32>);

impl From<u64> for Big {
    #[allow(clippy::cast_possible_truncation)] // split into halves
    fn from(value: u64) -> Self {
        Self(vec![value as u32, (value >> 32) as u32])
    }
}

impl Big {
    #[allow(clippy::cast_possible_truncation)] // low and high halves
    fn mul_add(&mut self, factor: u32, add: u32) {
        let mut carry = u64::from(add);
        for limb in &mut self.0 {
            let wide = u64::from(*limb) * u64::from(factor) + carry;
            *limb = wide as u32;
            carry = wide >> 32;
        }
        if carry != 0 {
            self.0.push(carry as u32);
        }
    }
    /// The leading bits, how far they were shifted down, and whether ones were lost below.
    fn top(&self) -> (u128, i32, bool) {
        let used = self.0.iter().rposition(|&limb| limb != 0).map_or(0, |at| at + 1);
        let skip = used.saturating_sub(4);
        let top = self
            .0
            .iter()
            .take(used)
            .skip(skip)
            .rev()
            .fold(0u128, |wide, &limb| (wide << 32) | u128::from(limb));
        let lost = self.0.iter().take(skip).any(|&limb| limb != 0);
        (top, i32::try_from(skip * 32).unwrap_or(i32::MAX), lost)
    }
    /// Decimal digits, most significant first.
    fn to_decimal(&self) -> Vec<u8> {
        const BILLION: u64 = 1_000_000_000;
        let mut limbs = self.0.clone();
        let mut digits = Vec::new();
        while limbs.iter().any(|&limb| limb != 0) {
            let mut rest = 0u64;
            for limb in limbs.iter_mut().rev() {
                let wide = (rest << 32) | u64::from(*limb);
                *limb = u32::try_from(wide / BILLION).unwrap_or(0);
                rest = wide % BILLION;
            }
            while limbs.last() == Some(&0) {
                limbs.pop();
            }
            for _ in 0..9 {
                digits.push(u8::try_from(rest % 10).unwrap_or(0));
                rest /= 10;
            }
        }
        while digits.last() == Some(&0) {
            digits.pop();
        }
        digits.reverse();
        digits
    }
}

/// Appends an integer.
pub(crate) fn write_integer(value: i64, out: &mut String) {
    if value < 0 {
        out.push('-');
    }
    let mut left = value.unsigned_abs();
    let mut buffer = [0u8; 20];
    let mut at = buffer.len();
    loop {
        at -= 1;
        buffer[at] = b'0' + u8::try_from(left % 10).unwrap_or(0);
        left /= 10;
        if left == 0 {
            break;
        }
    }
    buffer[at..].iter().for_each(|&digit| out.push(char::from(digit)));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn show(value: Float) -> String {
        let mut out = String::new();
        value.write(&mut out);
        out
    }
    fn number(text: &str) -> Float {
        Float::parse(text).unwrap()
    }

    #[test]
    fn numbers_print_with_eighteen_digits() {
        for (text, expected) in [
            ("0", "0"),
            ("1.0", "1"),
            ("0.1", "0.1"),
            ("00012.5000", "12.5"),
            ("123456789012345678", "123456789012345678"),
            ("1234567890123456789", "1.23456789012345679e+18"),
            ("9223372036854775808", "9.22337203685477581e+18"),
            ("100000000000000000000000", "1e+23"),
            ("0.00001", "1e-05"),
            ("0.0001", "0.0001"),
            ("-2.25", "-2.25"),
            ("999999999999999999.9", "1e+18"),
        ] {
            assert_eq!(show(number(text)), expected, "{text}");
        }
    }

    #[test]
    fn arithmetic_rounds_as_a_64_bit_significand_does() {
        let (one, three) = (Float::from_i64(1), Float::from_i64(3));
        assert_eq!(show(one.div(three)), "0.333333333333333333");
        assert_eq!(show(Float::from_i64(2).div(three)), "0.666666666666666667");
        assert_eq!(show(number("0.1").add(number("0.2"))), "0.3");
        assert_eq!(number("0.1").add(number("0.2")), number("0.3"));
        assert_eq!(show(number("5.5").rem(number("2"))), "1.5");
        assert_eq!(show(number("-7").rem(number("3"))), "-1");
        assert_eq!(show(number("1").sub(number("1.5"))), "-0.5");
        assert_eq!(show(number("1000000").mul(number("0.000001"))), "1");
        assert_eq!(one.div(Float::ZERO), Float::Nan);
    }

    proptest::proptest! {
        #[test]
        fn integers_and_halves_agree_with_machine_arithmetic(a in -1_000_000_000i64..1_000_000_000, b in -1_000_000_000i64..1_000_000_000) {
            let (x, y) = (Float::from_i64(a), Float::from_i64(b));
            proptest::prop_assert_eq!(x.add(y).to_integer(), Some(a + b));
            proptest::prop_assert_eq!(x.sub(y).to_integer(), Some(a - b));
            if let Some(product) = a.checked_mul(b).filter(|p| p.unsigned_abs() < INTEGER_MAX) {
                proptest::prop_assert_eq!(x.mul(y).to_integer(), Some(product));
            }
            if b != 0 {
                proptest::prop_assert_eq!(x.rem(y).to_integer(), Some(a % b));
                proptest::prop_assert_eq!(x.div(y).trunc().to_integer(), Some(a / b));
            }
            proptest::prop_assert_eq!(x.cmp(y), Some(a.cmp(&b)));
        }

        #[test]
        fn doubles_survive_the_way_in_and_out(value in proptest::num::f64::NORMAL) {
            proptest::prop_assert_eq!(Float::from_f64(value).to_f64(), value);
        }

        #[test]
        fn what_is_printed_reads_back_to_eighteen_digits(whole in 0u64..1_000_000, fraction in 0u32..1_000_000_000) {
            let text = format!("{whole}.{fraction:09}");
            let printed = show(number(&text));
            let clean = text.trim_end_matches('0').trim_end_matches('.');
            let clean = if clean.is_empty() { "0" } else { clean };
            if !printed.contains('e') {
                proptest::prop_assert_eq!(printed, clean);
            }
        }
    }
}
