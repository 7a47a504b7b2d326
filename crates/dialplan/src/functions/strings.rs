//! Functions over text: LEN, FILTER, TOLOWER, REPLACE and so on.

use super::{Answer, arg, head_and_rest, reader, required, value_of};
use crate::args::{split_args, unquote};
use crate::env::{Env, Fault};
use crate::registry::FunctionRow;
use crate::rights::Reach;
use crate::template::EXPAND_BYTES_MAX;

pub(super) const ROWS: &[FunctionRow] = &[
    reader("LEN", Reach::PLAIN, "LEN(text)", "The length of text, bytes.", len),
    reader("TOLOWER", Reach::PLAIN, "TOLOWER(text)", "Text in small letters.", tolower),
    reader("TOUPPER", Reach::PLAIN, "TOUPPER(text)", "Text in capitals.", toupper),
    reader("TRIM", Reach::PLAIN, "TRIM(text)", "Text without blanks at its ends.", trim),
    reader("LTRIM", Reach::PLAIN, "LTRIM(text)", "Text without blanks at its start.", ltrim),
    reader("RTRIM", Reach::PLAIN, "RTRIM(text)", "Text without blanks at its end.", rtrim),
    reader(
        "FILTER",
        Reach::PLAIN,
        "FILTER(allowed,text)",
        "Keeps only allowed characters; a-z is a range, \\xHH a byte.",
        filter,
    ),
    reader(
        "REPLACE",
        Reach::PLAIN,
        "REPLACE(varname,find[,replace])",
        "Replaces single characters.",
        replace,
    ),
    reader(
        "STRREPLACE",
        Reach::PLAIN,
        "STRREPLACE(varname,find[,replace[,max]])",
        "Replaces substrings.",
        strreplace,
    ),
    reader(
        "STRBETWEEN",
        Reach::PLAIN,
        "STRBETWEEN(varname,between)",
        "Puts text between the characters of a variable.",
        strbetween,
    ),
];

fn len(_: &mut dyn Env, args: &str, out: &mut String) -> Answer {
    out.push_str(&args.len().to_string());
    Ok(())
}

fn tolower(_: &mut dyn Env, args: &str, out: &mut String) -> Answer {
    out.push_str(&args.to_ascii_lowercase());
    Ok(())
}

fn toupper(_: &mut dyn Env, args: &str, out: &mut String) -> Answer {
    out.push_str(&args.to_ascii_uppercase());
    Ok(())
}

fn trim(_: &mut dyn Env, args: &str, out: &mut String) -> Answer {
    out.push_str(args.trim());
    Ok(())
}

fn ltrim(_: &mut dyn Env, args: &str, out: &mut String) -> Answer {
    out.push_str(args.trim_start());
    Ok(())
}

fn rtrim(_: &mut dyn Env, args: &str, out: &mut String) -> Answer {
    out.push_str(args.trim_end());
    Ok(())
}

/// One character of an encoded set, and whether it was escaped (an escaped `-` makes no range).
fn encoded(text: &str) -> Vec<(char, bool)> {
    let mut members = Vec::new();
    let mut symbols = text.chars().peekable();
    while let Some(symbol) = symbols.next() {
        if symbol != '\\' {
            members.push((symbol, false));
            continue;
        }
        let Some(escape) = symbols.next() else {
            members.push(('\\', true));
            break;
        };
        let member = match escape {
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'x' => {
                let mut value = 0u32;
                for _ in 0..2 {
                    let Some(digit) = symbols.peek().and_then(|symbol| symbol.to_digit(16)) else { break };
                    value = value * 16 + digit;
                    symbols.next();
                }
                char::from_u32(value).unwrap_or('x')
            }
            '0'..='7' => {
                let mut value = escape.to_digit(8).unwrap_or(0);
                for _ in 0..2 {
                    let Some(digit) = symbols.peek().and_then(|symbol| symbol.to_digit(8)) else { break };
                    value = value * 8 + digit;
                    symbols.next();
                }
                char::from_u32(value).unwrap_or('0')
            }
            other => other,
        };
        members.push((member, true));
    }
    members
}

fn filter(_: &mut dyn Env, args: &str, out: &mut String) -> Answer {
    let (allowed, text) = head_and_rest(args);
    let members = encoded(allowed);
    let mut ranges = Vec::new();
    let mut at = 0;
    while let Some(&(first, _)) = members.get(at) {
        match (members.get(at + 1), members.get(at + 2)) {
            (Some(('-', false)), Some(&(last, _))) => {
                ranges.push((first, last));
                at += 3;
            }
            _ => {
                ranges.push((first, first));
                at += 1;
            }
        }
    }
    // In order and without overlaps, so that each symbol is looked up rather than compared with all of them.
    ranges.retain(|(first, last)| first <= last);
    ranges.sort_unstable();
    ranges.dedup_by(|next, kept| {
        let joined = next.0 <= kept.1;
        if joined {
            kept.1 = kept.1.max(next.1);
        }
        joined
    });
    out.extend(text.chars().filter(|symbol| {
        let after = ranges.partition_point(|(first, _)| first <= symbol);
        after.checked_sub(1).and_then(|at| ranges.get(at)).is_some_and(|(_, last)| symbol <= last)
    }));
    Ok(())
}

fn replace(env: &mut dyn Env, args: &str, out: &mut String) -> Answer {
    let raw = crate::args::split_raw(args, ',');
    let part = |at: usize| raw.get(at).copied().unwrap_or("");
    let name =
        Some(part(0)).filter(|name| !name.is_empty()).ok_or(Fault::new("the variable's name is missing"))?;
    let mut find: Vec<char> = encoded(part(1)).into_iter().map(|(symbol, _)| symbol).collect();
    find.sort_unstable();
    if find.is_empty() {
        return Err(Fault::new("there is nothing to find"));
    }
    let by = encoded(part(2)).first().map(|&(symbol, _)| symbol);
    for symbol in value_of(env, name).chars() {
        if find.binary_search(&symbol).is_ok() {
            out.extend(by);
        } else {
            out.push(symbol);
        }
    }
    Ok(())
}

fn strreplace(env: &mut dyn Env, args: &str, out: &mut String) -> Answer {
    let args = split_args(args);
    let name = required(&args, 0, "the variable's name")?;
    let find = required(&args, 1, "what to find")?;
    let by = arg(&args, 2);
    let most = match arg(&args, 3).trim() {
        "" => usize::MAX,
        text => text.parse().map_err(|_| Fault::new(format!("`{text}` is no count")))?,
    };
    let value = value_of(env, name);
    let mut rest = value.as_str();
    let mut done = 0;
    while done < most && out.len() <= EXPAND_BYTES_MAX {
        let Some((before, after)) = rest.split_once(find) else { break };
        out.push_str(before);
        out.push_str(by);
        rest = after;
        done += 1;
    }
    out.push_str(rest);
    Ok(())
}

fn strbetween(env: &mut dyn Env, args: &str, out: &mut String) -> Answer {
    let (name, between) = head_and_rest(args);
    let (name, between) = (unquote(name), unquote(between));
    let name = Some(name.trim()).filter(|name| !name.is_empty());
    let text = value_of(env, name.ok_or(Fault::new("the variable's name is missing"))?);
    for (at, symbol) in text.chars().enumerate() {
        if at > 0 {
            out.push_str(&between);
        }
        if out.len() > EXPAND_BYTES_MAX {
            break;
        }
        out.push(symbol);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::testenv::TestEnv;

    #[test]
    fn text_functions() {
        let mut env = TestEnv::new();
        env.set("v", "(+49) 221-1234");
        env.set("s", "one two two");
        env.set("n", "123");
        for (text, expected) in [
            ("${LEN()}${LEN(abc)}${LEN(a,b)}", "033"),
            ("${TOLOWER(AbC)}${TOUPPER(AbC)}", "abcABC"),
            ("${FILTER(0-9,${v})}", "492211234"),
            ("${FILTER(0-9+\\-,${v})}", "+49221-1234"),
            ("${FILTER(\\x41-C,ABCDabc)}", "ABC"),
            ("${REPLACE(v, -()+)}", "492211234"),
            ("${REPLACE(v,0-9,x)}", "(+4x) 221x1234"),
            ("${STRREPLACE(s,two,three)}", "one three three"),
            ("${STRREPLACE(s,two,2,1)}", "one 2 two"),
            ("${STRREPLACE(s,two)}", "one  "),
            ("${TRIM( a b )}|${LTRIM( a )}|${RTRIM( a )}", "a b|a | a"),
            ("${STRBETWEEN(n,w)}|${STRBETWEEN(PASSTHRU(ab),--)}|${STRBETWEEN(nothing,w)}", "1w2w3|a--b|"),
        ] {
            assert_eq!(env.expand(text), expected, "{text}");
        }
    }
}
