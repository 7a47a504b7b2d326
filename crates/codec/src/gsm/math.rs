//! The 16-bit words and operations GSM 06.10 §5.1 computes with. Saturation is part of the standard.

/// Saturating product of two fractions, truncated.
#[inline]
pub const fn mult(a: i16, b: i16) -> i16 {
    let product = (a as i32 * b as i32) >> 15;
    if product > 32767 { 32767 } else { product as i16 } // only MIN × MIN gets there
}

/// Saturating product of two fractions, rounded.
#[inline]
pub const fn mult_r(a: i16, b: i16) -> i16 {
    let product = (a as i32 * b as i32 + 16384) >> 15;
    if product > 32767 { 32767 } else { product as i16 }
}

/// Left shifts that bring a long word's most significant bit below its sign; 0 for 0.
#[inline]
pub const fn norm(a: i32) -> u32 {
    if a == 0 { 0 } else { (a ^ (a >> 31)).leading_zeros() - 1 }
}

/// The 15-bit quotient of `numerator`/`denominator`, for 0 ≤ numerator ≤ denominator; 0 outside of that domain.
#[inline]
pub const fn div(numerator: i16, denominator: i16) -> i16 {
    if numerator <= 0 || denominator < numerator {
        return 0;
    }
    let quotient = ((numerator as i32) << 15) / denominator as i32;
    if quotient > 32767 { 32767 } else { quotient as i16 }
}

/// Shift left; to the right when negative. Bits that leave are lost, 16 and more leave nothing.
#[inline]
pub const fn asl(a: i16, n: i32) -> i16 {
    match n {
        16.. => 0,
        0..=15 => ((a as i32) << n) as i16,
        -15..=-1 => a >> -n,
        _ => a >> 15,
    }
}

/// Shift right with sign; to the left when negative.
#[inline]
pub const fn asr(a: i16, n: i32) -> i16 {
    asl(a, -n)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::shared;

    fn number(token: &str) -> i64 {
        match token {
            "+" => i64::from(i16::MAX),
            "-" => i64::from(i16::MIN),
            "++" => i64::from(i32::MAX),
            "--" => i64::from(i32::MIN),
            _ => {
                let (sign, digits) = token.strip_prefix('-').map_or((1, token), |rest| (-1, rest));
                let parsed = match digits.strip_prefix("0x") {
                    Some(hex) => i64::from_str_radix(hex, 16),
                    None => digits.parse(),
                };
                sign * parsed.unwrap_or_else(|_| panic!("number {token}"))
            }
        }
    }

    fn compute(op: &str, args: &[i64]) -> Option<i64> {
        let word = |i: usize| args[i] as i16;
        let long = |i: usize| args[i] as i32;
        Some(match op.strip_prefix("M_").unwrap_or(op) {
            "add" => word(0).saturating_add(word(1)).into(),
            "sub" => word(0).saturating_sub(word(1)).into(),
            "abs" => word(0).saturating_abs().into(),
            "mult" => mult(word(0), word(1)).into(),
            "mult_r" => mult_r(word(0), word(1)).into(),
            "div" => div(word(0), word(1)).into(),
            "<<" => asl(word(0), long(1)).into(),
            ">>" => asr(word(0), long(1)).into(),
            "L_add" => long(0).saturating_add(long(1)).into(),
            "L_sub" => long(0).saturating_sub(long(1)).into(),
            "L_mult" => ((i32::from(word(0)) * i32::from(word(1))) << 1).into(),
            "norm" => norm(long(0)).into(),
            _ => return None,
        })
    }

    /// Checks every line `op a [b] = result`; returns how many there were.
    fn check(text: &str) -> usize {
        let mut count = 0;
        for line in text.lines().filter(|line| !line.starts_with([';', '\'', '"'])) {
            let Some((left, right)) = line.split(';').next().unwrap_or_default().split_once('=') else {
                continue;
            };
            let mut tokens = left.split_whitespace();
            let (Some(op), Some(expected)) = (tokens.next(), right.split_whitespace().next()) else {
                continue;
            };
            let args: Vec<i64> = tokens.map(number).collect();
            if let Some(result) = compute(op, &args) {
                let expected = number(expected);
                // The file writes shifted words as unsigned bit patterns.
                let expected = if op == "<<" { i64::from(expected as i16) } else { expected };
                assert_eq!(result, expected, "{line}");
                count += 1;
            }
        }
        count
    }

    #[test]
    fn gsm0610_5_1_operations_at_their_edges() {
        let rows = "add + 1 = +\n add - -1 = -\n sub 0 - = +\n abs - = +\n mult - - = +\n mult_r - - = +
            mult_r 4711 0x4000 = 2356\n mult -4711 -0x4000 = 2355\n norm 0 = 0\n norm 1 = 30\n norm -1 = 31
            norm ++ = 0\n norm -- = 0\n div 1 1 = 32767\n div 1 2 = 0x4000\n div 0 5 = 0\n L_add ++ 1 = ++
            << 1 15 = -\n >> -1 15 = -1\n << 1 16 = 0";
        assert_eq!(check(rows), 20);
    }

    #[test]
    fn gsm0610_5_1_operations_equal_the_published_test_data() {
        let Some(bytes) = shared("gsm0610/add_test.dta") else { return };
        let count = check(&String::from_utf8_lossy(&bytes));
        assert!(count >= 380, "only {count} rows were understood");
    }
}
