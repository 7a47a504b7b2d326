//! The mathematical functions that `$[…]` knows by itself.

use crate::num::Float;

/// Whether a name is that of one of these functions.
pub(crate) fn is_known(name: &str) -> bool {
    call(name, &[]).is_some()
}

/// Calls a function by name; `None` when it is none of these.
pub(crate) fn call(name: &str, args: &[Float]) -> Option<Result<Float, String>> {
    let upper = name.to_ascii_uppercase();
    let arity = match upper.as_str() {
        "ATAN2" | "POW" | "REMAINDER" => 2,
        "COS" | "SIN" | "TAN" | "ACOS" | "ASIN" | "ATAN" | "SQRT" | "FLOOR" | "CEIL" | "ROUND" | "RINT"
        | "TRUNC" | "EXP" | "EXP2" | "EXP10" | "LOG" | "LOG2" | "LOG10" => 1,
        _ => return None,
    };
    let (x, y) = match *args {
        [x] if arity == 1 => (x, Float::ZERO),
        [x, y] if arity == 2 => (x, y),
        _ => return Some(Err(format!("{upper}() takes {arity} argument(s), {} given", args.len()))),
    };
    let half = Float::from_f64(0.5);
    let one = Float::from_i64(1);
    let (a, b) = (x.to_f64(), y.to_f64());
    Some(Ok(match upper.as_str() {
        "TRUNC" => x.trunc(),
        "FLOOR" => floor(x),
        "CEIL" => floor(x.neg()).neg(),
        "ROUND" if x.is_negative() => floor(x.neg().add(half)).neg(),
        "ROUND" => floor(x.add(half)),
        "RINT" => nearest_even(x),
        "REMAINDER" if !y.is_zero() => x.sub(nearest_even(x.div(y)).mul(y)),
        "SQRT" => x.sqrt(),
        "POW" => power(x, y).unwrap_or_else(|| Float::from_f64(a.powf(b))),
        "EXP10" => power(Float::from_i64(10), x).unwrap_or_else(|| Float::from_f64(10f64.powf(a))),
        "EXP2" => power(Float::from_i64(2), x).unwrap_or_else(|| Float::from_f64(a.exp2())),
        "COS" => Float::from_f64(a.cos()),
        "SIN" => Float::from_f64(a.sin()),
        "TAN" => Float::from_f64(a.tan()),
        "ACOS" => Float::from_f64(a.acos()),
        "ASIN" => Float::from_f64(a.asin()),
        "ATAN" => Float::from_f64(a.atan()),
        "ATAN2" => Float::from_f64(a.atan2(b)),
        "EXP" => Float::from_f64(a.exp()),
        "LOG" => Float::from_f64(a.ln()),
        "LOG2" => exact_log(x, 2).unwrap_or_else(|| Float::from_f64(a.log2())),
        "LOG10" => exact_log(x, 10).unwrap_or_else(|| Float::from_f64(a.log10())),
        _ => one.sub(one),
    }))
}

fn floor(x: Float) -> Float {
    let whole = x.trunc();
    if x.is_negative() && whole != x { whole.sub(Float::from_i64(1)) } else { whole }
}

/// The nearest whole number, halves to the even one.
fn nearest_even(x: Float) -> Float {
    let low = floor(x);
    let distance = x.sub(low);
    let half = Float::from_f64(0.5);
    let odd = !low.rem(Float::from_i64(2)).is_zero();
    match distance.cmp(half) {
        Some(std::cmp::Ordering::Greater) => low.add(Float::from_i64(1)),
        Some(std::cmp::Ordering::Equal) if odd => low.add(Float::from_i64(1)),
        _ => low,
    }
}

/// Whole powers by repeated squaring; `None` for other exponents.
fn power(base: Float, exponent: Float) -> Option<Float> {
    let exponent = exponent.to_integer().filter(|n| n.unsigned_abs() <= 65_536)?;
    let one = Float::from_i64(1);
    let (mut result, mut square, mut left) = (one, base, exponent.unsigned_abs());
    while left > 0 {
        if left & 1 == 1 {
            result = result.mul(square);
        }
        square = square.mul(square);
        left >>= 1;
    }
    if exponent < 0 && result.is_zero() {
        return None;
    }
    Some(if exponent < 0 { one.div(result) } else { result })
}

/// The logarithm of an exact power.
fn exact_log(x: Float, base: i64) -> Option<Float> {
    let value = x.to_integer().filter(|&value| value > 0)?;
    let log = value.ilog(base);
    (base.checked_pow(log) == Some(value)).then(|| Float::from_i64(i64::from(log)))
}
