//! Functions over lists in text: CUT, FIELDQTY, FIELDNUM, PUSH and so on.

use super::{Answer, arg, native, reader, required, value_of};
use crate::args::split_args;
use crate::env::{Env, Fault};
use crate::registry::FunctionRow;
use crate::rights::Reach;
use crate::template::set_by_name;

pub(super) const ROWS: &[FunctionRow] = &[
    reader(
        "CUT",
        Reach::PLAIN,
        "CUT(varname,delimiter,fields)",
        "Takes fields out of a list: 2, 2-4, 2-, -3, joined with &.",
        cut,
    ),
    reader("FIELDQTY", Reach::PLAIN, "FIELDQTY(varname,delimiter)", "Counts the fields of a list.", fieldqty),
    reader(
        "FIELDNUM",
        Reach::PLAIN,
        "FIELDNUM(varname,delimiter,value)",
        "The place of a value in a list, 1 first, 0 when missing.",
        fieldnum,
    ),
    reader(
        "LISTFILTER",
        Reach::PLAIN,
        "LISTFILTER(listname,delimiter,value)",
        "A list without one value.",
        listfilter,
    ),
    native("PUSH", Reach::PLAIN, "PUSH(varname[,delimiter])", "Appends a value to a list.", None, Some(push)),
    native(
        "UNSHIFT",
        Reach::PLAIN,
        "UNSHIFT(varname[,delimiter])",
        "Puts a value before a list.",
        None,
        Some(unshift),
    ),
    reader("POP", Reach::SETS, "POP(varname[,delimiter])", "Takes the last value off a list.", pop),
    reader("SHIFT", Reach::SETS, "SHIFT(varname[,delimiter])", "Takes the first value off a list.", shift),
    reader("SORT", Reach::PLAIN, "SORT(key1:value1[,…])", "The keys, sorted by their numbers.", sort),
];

/// The delimiter argument: its first character, with the escapes of the field; a default when it is empty.
fn delimiter(text: &str, default: char) -> char {
    let mut symbols = text.chars();
    match (symbols.next(), symbols.next()) {
        (Some('\\'), Some('n')) => '\n',
        (Some('\\'), Some('r')) => '\r',
        (Some('\\'), Some('t')) => '\t',
        (Some('\\'), Some(other)) => other,
        (Some(first), _) => first,
        (None, _) => default,
    }
}

/// Name, delimiter and the rest. The delimiter may be an escaped comma or a quoted character.
fn list_args(args: &str, default: char) -> Result<(String, char, Vec<String>), Fault> {
    let raw = crate::args::split_raw(args, ',');
    let name = raw.first().map(|name| name.trim()).filter(|name| !name.is_empty());
    let name = name.ok_or(Fault::new("the variable's name is missing"))?;
    let mark = raw.get(1).copied().unwrap_or("");
    let mark = delimiter(mark.trim_matches('"'), default);
    Ok((name.to_owned(), mark, split_args(args).split_off(raw.len().min(2))))
}

fn cut(env: &mut dyn Env, args: &str, out: &mut String) -> Answer {
    let (name, mark, rest) = list_args(args, '-')?;
    let ranges = required(&rest, 0, "the field number")?;
    let value = value_of(env, &name);
    let fields: Vec<&str> = value.split(mark).collect();
    let mut picked: Vec<&str> = Vec::new();
    let mut bytes = 0usize;
    for part in ranges.split('&').map(str::trim) {
        let number = |text: &str, default: usize| match text.trim() {
            "" => Ok(default),
            text => {
                text.parse::<usize>().map_err(|_| Fault::new(format!("field `{part}` is not understood")))
            }
        };
        let (first, last) = match part.split_once('-') {
            Some((first, last)) => (number(first, 1)?, number(last, fields.len())?),
            None => (number(part, 0)?, number(part, 0)?),
        };
        let count = last.min(fields.len()).saturating_sub(first.max(1) - 1);
        for field in fields.iter().skip(first.max(1) - 1).take(if last == 0 { 0 } else { count }) {
            bytes += field.len() + 1;
            if bytes > crate::template::EXPAND_BYTES_MAX + 1 {
                return Err(Fault::new("the fields are longer than 64 KiB together"));
            }
            picked.push(field);
        }
    }
    out.push_str(&picked.join(&mark.to_string()));
    Ok(())
}

fn fieldqty(env: &mut dyn Env, args: &str, out: &mut String) -> Answer {
    let (name, mark, _) = list_args(args, '-')?;
    let value = value_of(env, &name);
    let count = if value.is_empty() { 0 } else { value.split(mark).count() };
    out.push_str(&count.to_string());
    Ok(())
}

fn fieldnum(env: &mut dyn Env, args: &str, out: &mut String) -> Answer {
    let (name, mark, rest) = list_args(args, '-')?;
    let wanted = required(&rest, 0, "the value")?;
    let value = value_of(env, &name);
    let at = value.split(mark).position(|field| field == wanted).map_or(0, |at| at + 1);
    out.push_str(&at.to_string());
    Ok(())
}

fn listfilter(env: &mut dyn Env, args: &str, out: &mut String) -> Answer {
    let (name, mark, rest) = list_args(args, ',')?;
    let value = value_of(env, &name);
    let kept: Vec<&str> = value.split(mark).filter(|field| *field != arg(&rest, 0)).collect();
    out.push_str(&kept.join(&mark.to_string()));
    Ok(())
}

fn grow(env: &mut dyn Env, args: &str, value: &str, at_end: bool) -> Answer {
    let (name, mark, _) = list_args(args, ',')?;
    // Underscores say how it is inherited when it is set; it is read by its own name.
    let plain = name.strip_prefix("__").or_else(|| name.strip_prefix('_')).unwrap_or(&name);
    let old = value_of(env, plain);
    let new = match (old.is_empty(), at_end) {
        (true, _) => value.to_owned(),
        (false, true) => format!("{old}{mark}{value}"),
        (false, false) => format!("{value}{mark}{old}"),
    };
    if new.len() > crate::template::EXPAND_BYTES_MAX {
        return Err(Fault::new("the list would be longer than 64 KiB"));
    }
    set_by_name(env, &name, &new);
    Ok(())
}

fn push(env: &mut dyn Env, args: &str, value: &str) -> Answer {
    grow(env, args, value, true)
}

fn unshift(env: &mut dyn Env, args: &str, value: &str) -> Answer {
    grow(env, args, value, false)
}

fn shrink(env: &mut dyn Env, args: &str, at_end: bool, out: &mut String) -> Answer {
    let (name, mark, _) = list_args(args, ',')?;
    let old = value_of(env, &name);
    if old.is_empty() {
        return Ok(());
    }
    let (taken, left) = if at_end {
        old.rsplit_once(mark).map_or((old.as_str(), ""), |(left, taken)| (taken, left))
    } else {
        old.split_once(mark).unwrap_or((old.as_str(), ""))
    };
    out.push_str(taken);
    set_by_name(env, &name, left);
    Ok(())
}

fn pop(env: &mut dyn Env, args: &str, out: &mut String) -> Answer {
    shrink(env, args, true, out)
}

fn shift(env: &mut dyn Env, args: &str, out: &mut String) -> Answer {
    shrink(env, args, false, out)
}

fn sort(_: &mut dyn Env, args: &str, out: &mut String) -> Answer {
    let mut pairs = Vec::new();
    for part in split_args(args) {
        let (key, value) = part.split_once(':').ok_or_else(|| Fault::new(format!("`{part}` has no `:`")))?;
        pairs.push((value.trim().parse::<f64>().unwrap_or(0.0), key.to_owned()));
    }
    pairs.sort_by(|a, b| a.0.total_cmp(&b.0));
    out.push_str(&pairs.into_iter().map(|(_, key)| key).collect::<Vec<_>>().join(","));
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::testenv::TestEnv;

    #[test]
    fn list_functions() {
        let mut env = TestEnv::new();
        env.set("d", "a-b-c-d");
        env.set("c", "x,y,z");
        env.set("e", "");
        for (text, expected) in [
            ("${CUT(d,,2)}", "b"),
            ("${CUT(d,-,2-3)}", "b-c"),
            ("${CUT(d,-,3-)}", "c-d"),
            ("${CUT(d,-,-2)}", "a-b"),
            ("${CUT(d,-,1&4)}", "a-d"),
            ("${CUT(d,-,9)}", ""),
            ("${CUT(c,\\,,2)}", "y"),
            ("${CUT(c,\",\",3)}", "z"),
            ("${CUT(c,,1)}", "x,y,z"),
            ("${FIELDQTY(d,-)}${FIELDQTY(e,-)}${FIELDQTY(c,\\,)}", "403"),
            ("${FIELDNUM(d,-,c)}${FIELDNUM(d,-,q)}", "30"),
            ("${LISTFILTER(c,\\,,y)}", "x,z"),
            ("${SORT(a:3,b:1,c:2)}", "b,c,a"),
        ] {
            assert_eq!(env.expand(text), expected, "{text}");
        }
        env.set("PUSH(l)", "1");
        env.set("PUSH(l)", "2");
        env.set("UNSHIFT(l)", "0");
        assert_eq!(env.expand("${l}"), "0,1,2");
        env.set("PUSH(__w)", "a");
        env.set("PUSH(_w)", "b");
        env.set("UNSHIFT(__w,-)", "c");
        assert_eq!(env.expand("${w}"), "c-a,b", "an inherited list goes on");
        assert_eq!(env.expand("${POP(l)}${SHIFT(l)}[${l}]${SHIFT(l)}[${l}]${SHIFT(l)}"), "20[1]1[]");
    }
}
