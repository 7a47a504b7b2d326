//! Documents and names of files: JSON_DECODE, FILE_COUNT_LINE and its kin.

use serde_json::Value;

use super::{Answer, arg, reader, required, value_of};
use crate::args::split_args;
use crate::env::{Env, Fault};
use crate::registry::FunctionRow;
use crate::rights::Reach;

pub(super) const ROWS: &[FunctionRow] = &[
    reader(
        "JSON_DECODE",
        Reach::PLAIN,
        "JSON_DECODE(varname,item[,separator[,options]])",
        "Gives what a JSON text in a variable has under a key; keys within keys and places of arrays follow a separator (.); \
         option c counts an array.",
        json_decode,
    ),
    reader(
        "FILE_COUNT_LINE",
        Reach::OUTSIDE,
        "FILE_COUNT_LINE(filename[,format])",
        "Counts the lines of a file; format is u, d or m for line ends of Unix, DOS or old Macs.",
        count_lines,
    ),
    reader(
        "FILE_FORMAT",
        Reach::OUTSIDE,
        "FILE_FORMAT(filename)",
        "Tells the line ends of a file: u, d or m; x when it has none.",
        file_format,
    ),
    reader("BASENAME", Reach::PLAIN, "BASENAME(filename)", "A path's last part.", basename),
    reader("DIRNAME", Reach::PLAIN, "DIRNAME(filename)", "A path without its last part.", dirname),
];

fn json_decode(env: &mut dyn Env, args: &str, out: &mut String) -> Answer {
    let args = split_args(args);
    let variable = required(&args, 0, "the name of the variable")?.trim().to_owned();
    let item = required(&args, 1, "the key")?;
    let separator = Some(arg(&args, 2)).filter(|text| !text.is_empty()).unwrap_or(".");
    let text = value_of(env, &variable);
    if text.trim().is_empty() {
        return Err(Fault::new(format!("the variable {variable} is empty")));
    }
    let document: Value =
        serde_json::from_str(&text).map_err(|why| Fault::new(format!("{variable} is not JSON: {why}")))?;
    let mut found = Some(&document);
    for key in item.split(separator) {
        found = match found {
            Some(Value::Array(items)) => key.trim().parse().ok().and_then(|at: usize| items.get(at)),
            Some(Value::Object(members)) => members.get(key),
            _ => None,
        };
    }
    let counts = arg(&args, 3).contains('c');
    match found {
        // A key that is not there is empty, as the field has it.
        None | Some(Value::Null) => {}
        Some(Value::Array(items)) if counts => out.push_str(&items.len().to_string()),
        Some(Value::String(text)) => out.push_str(text),
        Some(Value::Bool(yes)) => out.push(if *yes { '1' } else { '0' }),
        Some(other) => out.push_str(&other.to_string()),
    }
    Ok(())
}

/// How the lines of a text end.
#[derive(Clone, Copy, PartialEq, Eq)]
enum LineEnd {
    Unix,
    Dos,
    Mac,
}

fn line_end(text: &str) -> Option<LineEnd> {
    let at = text.find(['\r', '\n'])?;
    Some(match text.get(at..) {
        Some(rest) if rest.starts_with("\r\n") => LineEnd::Dos,
        Some(rest) if rest.starts_with('\r') => LineEnd::Mac,
        _ => LineEnd::Unix,
    })
}

fn text_of(env: &mut dyn Env, name: &str) -> Result<String, Fault> {
    env.file_text(name).ok_or_else(|| Fault::new(format!("{name} cannot be read")))
}

fn count_lines(env: &mut dyn Env, args: &str, out: &mut String) -> Answer {
    let args = split_args(args);
    let text = text_of(env, required(&args, 0, "the file name")?)?;
    let end = match arg(&args, 1).trim() {
        "" => line_end(&text),
        "u" => Some(LineEnd::Unix),
        "d" => Some(LineEnd::Dos),
        "m" => Some(LineEnd::Mac),
        other => return Err(Fault::new(format!("format `{other}` is none of u d m"))),
    };
    let count = match end {
        None => 0,
        Some(LineEnd::Unix) => text.matches('\n').count(),
        Some(LineEnd::Dos) => text.matches("\r\n").count(),
        Some(LineEnd::Mac) => text.matches('\r').count(),
    };
    out.push_str(&count.to_string());
    Ok(())
}

fn file_format(env: &mut dyn Env, args: &str, out: &mut String) -> Answer {
    let text = text_of(env, args.trim())?;
    out.push(match line_end(&text) {
        Some(LineEnd::Unix) => 'u',
        Some(LineEnd::Dos) => 'd',
        Some(LineEnd::Mac) => 'm',
        None => 'x',
    });
    Ok(())
}

/// What stands before the last slash, and what follows it; slashes at the end do not count.
fn parts(path: &str) -> (&str, &str) {
    let path = path.trim();
    let bare = path.trim_end_matches('/');
    if bare.is_empty() {
        return if path.is_empty() { (".", "") } else { ("/", "/") };
    }
    match bare.rsplit_once('/') {
        None => (".", bare),
        Some((folder, name)) => {
            let folder = folder.trim_end_matches('/');
            (if folder.is_empty() { "/" } else { folder }, name)
        }
    }
}

fn basename(_: &mut dyn Env, args: &str, out: &mut String) -> Answer {
    out.push_str(parts(args).1);
    Ok(())
}

fn dirname(_: &mut dyn Env, args: &str, out: &mut String) -> Answer {
    out.push_str(parts(args).0);
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::testenv::TestEnv;

    #[test]
    fn json_is_looked_into_by_keys_and_places() {
        let mut env = TestEnv::new();
        env.set("doc", r#"{"city":"Anytown","n":42,"f":1.5,"yes":true,"no":false,"nil":null,"a":["x",{"b":"deep"}],"o":{"p.q":"dot","r":{"s":"t"}}}"#);
        env.set("list", r#"["first","second"]"#);
        env.set("bad", "{");
        for (call, expected) in [
            ("JSON_DECODE(doc,city)", "Anytown"),
            ("JSON_DECODE(doc,n)", "42"),
            ("JSON_DECODE(doc,f)", "1.5"),
            ("JSON_DECODE(doc,yes)", "1"),
            ("JSON_DECODE(doc,no)", "0"),
            ("JSON_DECODE(doc,nil)", ""),
            ("JSON_DECODE(doc,a.0)", "x"),
            ("JSON_DECODE(doc,a.1.b)", "deep"),
            ("JSON_DECODE(doc,a.9)", ""),
            ("JSON_DECODE(doc,a,,c)", "2"),
            ("JSON_DECODE(doc,o.r.s)", "t"),
            ("JSON_DECODE(doc,o/p.q,/)", "dot"),
            ("JSON_DECODE(doc,o.r)", r#"{"s":"t"}"#),
            ("JSON_DECODE(doc,city.x)", ""),
            ("JSON_DECODE(doc,missing)", ""),
            ("JSON_DECODE(list,1)", "second"),
        ] {
            assert_eq!(env.expand(&format!("${{{call}}}")), expected, "{call}");
            assert!(env.logs.is_empty(), "{call}: {:?}", env.logs);
        }
        for (call, why) in [
            ("JSON_DECODE(bad,x)", "not JSON"),
            ("JSON_DECODE(nothing,x)", "is empty"),
            ("JSON_DECODE(doc)", "the key is missing"),
            ("JSON_DECODE()", "the name of the variable is missing"),
        ] {
            env.logs.clear();
            assert_eq!(env.expand(&format!("${{{call}}}")), "", "{call}");
            assert!(env.logs.iter().any(|line| line.contains(why)), "{call}: {:?}", env.logs);
        }
    }

    #[test]
    fn json_that_nests_without_end_is_refused() {
        let mut env = TestEnv::new();
        env.set("deep", &"[".repeat(4000));
        assert_eq!(env.expand("${JSON_DECODE(deep,0)}"), "");
        assert_eq!(env.logs.len(), 1, "{:?}", env.logs);
    }

    #[test]
    fn names_of_files_are_taken_apart() {
        let mut env = TestEnv::new();
        for (call, expected) in [
            ("BASENAME(/var/spool/x.wav)", "x.wav"),
            ("DIRNAME(/var/spool/x.wav)", "/var/spool"),
            ("BASENAME(x.wav)", "x.wav"),
            ("DIRNAME(x.wav)", "."),
            ("BASENAME(/var/)", "var"),
            ("DIRNAME(/var/)", "/"),
            ("DIRNAME(/)", "/"),
            ("BASENAME(/)", "/"),
            ("BASENAME()", ""),
        ] {
            assert_eq!(env.expand(&format!("${{{call}}}")), expected, "{call}");
        }
    }

    #[test]
    fn lines_of_files_are_counted_by_their_ends() {
        for (text, format, count) in [
            ("a\nb\n", "u", "2"),
            ("a\r\nb\r\n", "d", "2"),
            ("a\rb\r", "m", "2"),
            ("a", "x", "0"),
            ("", "x", "0"),
        ] {
            let mut env = TestEnv::new();
            env.files.insert("/f".to_owned(), text.to_owned());
            assert_eq!(env.expand("${FILE_FORMAT(/f)}"), format, "{text:?}");
            assert_eq!(env.expand("${FILE_COUNT_LINE(/f)}"), count, "{text:?}");
            assert_eq!(
                env.expand("${FILE_COUNT_LINE(/f,u)}"),
                text.matches('\n').count().to_string(),
                "{text:?}"
            );
            for (call, why) in [
                ("FILE_COUNT_LINE(/f,q)", "none of u d m"),
                ("FILE_COUNT_LINE(/g)", "cannot be read"),
                ("FILE_COUNT_LINE()", "the file name is missing"),
                ("FILE_FORMAT(/g)", "cannot be read"),
            ] {
                env.logs.clear();
                assert_eq!(env.expand(&format!("${{{call}}}")), "", "{call}");
                assert!(env.logs.iter().any(|line| line.contains(why)), "{call}: {:?}", env.logs);
            }
        }
    }
}
