//! IF, IFTIME, ISNULL, EXISTS, REGEX, MATH, RAND and their kin.

use super::{Answer, arg, flag, reader, required};
use crate::args::{condition, split_args, split_raw, unquote};
use crate::env::{Env, Fault};
use crate::ere::{Regex, Searcher};
use crate::registry::FunctionRow;
use crate::rights::Reach;
use crate::timing::Timing;

pub(super) const ROWS: &[FunctionRow] = &[
    reader(
        "IF",
        Reach::PLAIN,
        "IF(condition?[true][:[false]])",
        "Gives one of two texts by a condition.",
        if_,
    ),
    reader(
        "IFTIME",
        Reach::PLAIN,
        "IFTIME(fields?[true][:[false]])",
        "Gives one of two texts by the time.",
        iftime,
    ),
    reader("ISNULL", Reach::PLAIN, "ISNULL(data)", "1 when there is no text, else 0.", isnull),
    reader("EXISTS", Reach::PLAIN, "EXISTS(data)", "1 when there is text, else 0.", exists),
    reader(
        "REGEX",
        Reach::PLAIN,
        "REGEX(\"pattern\" text)",
        "1 when text matches a POSIX extended pattern, else 0.",
        regex,
    ),
    reader("MATH", Reach::PLAIN, "MATH(number op number[,type])", "Calculates; type is f, i, h or c.", math),
    reader(
        "RAND",
        Reach::PLAIN,
        "RAND([min[,max]])",
        "A random integer between two others, both included.",
        rand,
    ),
    reader("UUID", Reach::PLAIN, "UUID()", "A random UUID (RFC 9562, version 4).", uuid),
    reader("MIN", Reach::PLAIN, "MIN(a,b)", "The smaller of two numbers.", min),
    reader("MAX", Reach::PLAIN, "MAX(a,b)", "The larger of two numbers.", max),
    reader("ABS", Reach::PLAIN, "ABS(number)", "The number without its sign.", abs),
];

/// Splits `test?yes:no`, quotes removed, blanks trimmed.
fn choices(args: &str) -> Result<(String, String, String), Fault> {
    let tidy = |text: &str| unquote(text).trim().to_owned();
    let test = split_raw(args, '?').first().copied().unwrap_or("");
    let rest = args.get(test.len() + 1..).ok_or(Fault::new("there is no `?`"))?;
    let yes = split_raw(rest, ':').first().copied().unwrap_or("");
    let no = rest.get(yes.len() + 1..).unwrap_or("");
    Ok((tidy(test), tidy(yes), tidy(no)))
}

fn if_(_: &mut dyn Env, args: &str, out: &mut String) -> Answer {
    let (test, yes, no) = choices(args)?;
    out.push_str(if condition(&test) { &yes } else { &no });
    Ok(())
}

fn iftime(env: &mut dyn Env, args: &str, out: &mut String) -> Answer {
    // The time fields hold colons, so the test ends at the question mark alone.
    let (test, yes, no) = choices(args)?;
    let timing = Timing::parse(&test).map_err(Fault::new)?;
    out.push_str(if timing.applies_on(env) { &yes } else { &no });
    Ok(())
}

fn isnull(_: &mut dyn Env, args: &str, out: &mut String) -> Answer {
    flag(args.is_empty(), out)
}

fn exists(_: &mut dyn Env, args: &str, out: &mut String) -> Answer {
    flag(!args.is_empty(), out)
}

fn regex(_: &mut dyn Env, args: &str, out: &mut String) -> Answer {
    let mut parts = args.splitn(3, '"');
    parts.next();
    let pattern = parts.next().ok_or(Fault::new("the pattern must stand in quotes"))?;
    let text = parts.next().ok_or(Fault::new("the pattern's quotes are not closed"))?;
    let text = text.strip_prefix(' ').unwrap_or(text);
    let regex = Regex::new(pattern).map_err(|why| Fault::new(format!("pattern `{pattern}`: {why}")))?;
    let matched = Searcher::new(&regex).is_match(text);
    flag(matched.map_err(|why| Fault::new(why.to_string()))?, out)
}

/// Operators of MATH(), longest first.
const OPERATORS: &[&str] =
    &["AND", "XOR", "OR", "**", "<<", ">>", "<=", ">=", "==", "+", "-", "/", "*", "%", "^", "<", ">"];

fn math(_: &mut dyn Env, args: &str, out: &mut String) -> Answer {
    let args = split_args(args);
    let text = required(&args, 0, "the expression")?;
    // A sign directly at the start belongs to the first number.
    let from = usize::from(text.starts_with(['-', '+']));
    let tail = text.get(from..).unwrap_or("");
    let found = tail.char_indices().find_map(|(at, _)| {
        let here = tail.get(at..)?;
        OPERATORS.iter().find(|operator| here.starts_with(**operator)).map(|operator| (at + from, *operator))
    });
    let (at, operator) = found.ok_or(Fault::new(format!("`{text}` has no operator")))?;
    let number = |text: &str| {
        let text = text.trim();
        text.parse::<f64>().map_err(|_| Fault::new(format!("`{text}` is no number")))
    };
    let a = number(text.get(..at).unwrap_or(""))?;
    let b = number(text.get(at + operator.len()..).unwrap_or(""))?;
    let truth = |yes: bool| if yes { "TRUE" } else { "FALSE" };
    #[allow(clippy::cast_possible_truncation)] // as the functions of the field convert
    let (whole_a, whole_b) = (a as i64, b as i64);
    #[allow(clippy::cast_precision_loss)]
    let bits = |value: i64| value as f64;
    let shift = u32::try_from(whole_b.clamp(0, 63)).unwrap_or(0);
    let result = match operator {
        "+" => a + b,
        "-" => a - b,
        "*" => a * b,
        "/" => a / b,
        "%" if whole_b == 0 => return Err(Fault::new("division by zero")),
        "%" => bits(whole_a.wrapping_rem(whole_b)),
        "^" | "**" => a.powf(b),
        "AND" => bits(whole_a & whole_b),
        "OR" => bits(whole_a | whole_b),
        "XOR" => bits(whole_a ^ whole_b),
        "<<" => bits(whole_a.wrapping_shl(shift)),
        ">>" => bits(whole_a.wrapping_shr(shift)),
        "<" => return push(out, truth(a < b)),
        ">" => return push(out, truth(a > b)),
        "<=" => return push(out, truth(a <= b)),
        ">=" => return push(out, truth(a >= b)),
        _ => return push(out, truth((a - b).abs() == 0.0)),
    };
    #[allow(clippy::cast_possible_truncation)]
    let whole = result as i64;
    let shown = match arg(&args, 1).trim() {
        "i" | "int" => whole.to_string(),
        "h" | "hex" => format!("{whole:x}"),
        "c" | "char" => u8::try_from(whole).map(char::from).map(String::from).unwrap_or_default(),
        "" | "f" | "float" => format!("{result:.6}"),
        other => return Err(Fault::new(format!("type `{other}` is not f, i, h or c"))),
    };
    push(out, &shown)
}

fn push(out: &mut String, text: &str) -> Answer {
    out.push_str(text);
    Ok(())
}

fn rand(env: &mut dyn Env, args: &str, out: &mut String) -> Answer {
    let args = split_args(args);
    let read = |at: usize, default: i64| match arg(&args, at).trim() {
        "" => Ok(default),
        text => text.parse::<i64>().map_err(|_| Fault::new(format!("`{text}` is no integer"))),
    };
    let (mut low, mut high) = (read(0, 0)?, read(1, i64::from(i32::MAX))?);
    if low > high {
        std::mem::swap(&mut low, &mut high);
    }
    let span = high.abs_diff(low).saturating_add(1);
    let value = low.saturating_add_unsigned(env.random() % span);
    push(out, &value.to_string())
}

fn uuid(env: &mut dyn Env, _: &str, out: &mut String) -> Answer {
    let (high, low) = (env.random(), env.random());
    // RFC 9562 5.4: four bits tell the version and two the variant.
    let (high, low) = (high & !0xf000 | 0x4000, low & !(0b11 << 62) | 0b10 << 62);
    let parts = [
        (high >> 32, 8),
        (high >> 16 & 0xffff, 4),
        (high & 0xffff, 4),
        (low >> 48, 4),
        (low & ((1 << 48) - 1), 12),
    ];
    let parts: Vec<String> = parts.iter().map(|(part, width)| format!("{part:0width$x}")).collect();
    push(out, &parts.join("-"))
}

fn numbers(args: &str) -> Result<Vec<(f64, String)>, Fault> {
    split_args(args)
        .into_iter()
        .map(|text| {
            let text = text.trim().to_owned();
            let value = text.parse::<f64>().map_err(|_| Fault::new(format!("`{text}` is no number")))?;
            Ok((value, text))
        })
        .collect()
}

fn min(_: &mut dyn Env, args: &str, out: &mut String) -> Answer {
    let least = numbers(args)?.into_iter().min_by(|a, b| a.0.total_cmp(&b.0));
    push(out, &least.map(|(_, text)| text).unwrap_or_default())
}

fn max(_: &mut dyn Env, args: &str, out: &mut String) -> Answer {
    let most = numbers(args)?.into_iter().max_by(|a, b| a.0.total_cmp(&b.0));
    push(out, &most.map(|(_, text)| text).unwrap_or_default())
}

fn abs(_: &mut dyn Env, args: &str, out: &mut String) -> Answer {
    let text = numbers(args)?.into_iter().next().map(|(_, text)| text).unwrap_or_default();
    push(out, text.strip_prefix(['-', '+']).unwrap_or(&text))
}

#[cfg(test)]
mod tests {
    use crate::testenv::TestEnv;

    #[test]
    fn conditions_regex_and_arithmetic() {
        let mut env = TestEnv::new();
        env.wall.seconds = 1_795_300_200; // Saturday 2026-11-21 22:30 UTC
        env.set("x", "a:b");
        for (text, expected) in [
            ("${IF($[1 = 1]?yes:no)}", "yes"),
            ("${IF($[1 = 2]?yes:no)}", "no"),
            ("${IF(1?\"a:b\":c)}", "a:b"),
            ("${IF(0?a:b:c)}", "b:c"),
            ("${IF(0?a)}", ""),
            ("${IF(${ISNULL()}? x : y )}", "x"),
            ("${IFTIME(9:00-17:00,*,*,*?open:closed)}", "closed"),
            ("${IFTIME(*,sat&sun,*,*?rest:work)}", "rest"),
            ("${ISNULL()}${ISNULL(a)}${EXISTS()}${EXISTS(a)}", "1001"),
            ("${REGEX(\"^[0-9]+$\" 1234)}${REGEX(\"^[0-9]+$\" 12x)}", "10"),
            ("${MATH(123%16,int)}", "11"),
            ("${MATH(7/2)}", "3.500000"),
            ("${MATH(-3+5,i)}", "2"),
            ("${MATH(2**10,int)}${MATH(255 AND 15,hex)}", "1024f"),
            ("${MATH(8>7)}${MATH(8==7)}", "TRUEFALSE"),
            ("${MIN(3,2)}${MAX(3,2)}${ABS(-4)}", "234"),
        ] {
            assert_eq!(env.expand(text), expected, "{text}");
        }
    }

    #[test]
    fn a_uuid_is_random_and_says_so_rfc9562_5_4() {
        let mut env = TestEnv::new();
        let (one, other) = (env.expand("${UUID()}"), env.expand("${UUID()}"));
        assert_ne!(one, other);
        for uuid in [one, other] {
            let lengths: Vec<usize> = uuid.split('-').map(str::len).collect();
            assert_eq!(lengths, [8, 4, 4, 4, 12], "{uuid}");
            let digit = |at: usize| uuid.chars().nth(at).expect("36 characters");
            assert!(digit(14) == '4' && "89ab".contains(digit(19)), "{uuid}");
        }
    }
    #[test]
    fn random_numbers_stay_between_their_bounds() {
        let mut env = TestEnv::new();
        let seen: std::collections::BTreeSet<String> = (0..200).map(|_| env.expand("${RAND(3,5)}")).collect();
        assert_eq!(seen.into_iter().collect::<Vec<_>>(), ["3", "4", "5"]);
    }
}
