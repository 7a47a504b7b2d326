//! Arguments of applications: splitting and option letters.

/// Splits at top-level `separator`s: not inside `()`, `[]` or quotes; quotes go, `\x` becomes `x`.
pub fn split(text: &str, separator: char) -> Vec<String> {
    let (mut parts, mut part) = (Vec::new(), String::new());
    let (mut round, mut square, mut quoted) = (0_u32, 0_u32, false);
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => part.extend(chars.next()),
            '"' => quoted = !quoted,
            _ if c == separator && round == 0 && square == 0 && !quoted => {
                parts.push(std::mem::take(&mut part))
            }
            _ => {
                match c {
                    '(' => round += 1,
                    ')' => round = round.saturating_sub(1),
                    '[' => square += 1,
                    ']' => square = square.saturating_sub(1),
                    _ => {}
                }
                part.push(c);
            }
        }
    }
    parts.push(part);
    parts
}

/// Option letters with their `(argument)`s in the order they stand; `Err` for an argument that is not closed.
pub fn options(text: &str) -> Result<Vec<(char, Option<String>)>, String> {
    let mut found = Vec::new();
    let mut rest = text.trim();
    while let Some(letter) = rest.chars().next() {
        rest = &rest[letter.len_utf8()..];
        let argument = match rest.strip_prefix('(') {
            Some(inner) => {
                let end = closing(inner).ok_or_else(|| format!("option '{letter}' has no closing ')'"))?;
                rest = &inner[end + 1..];
                Some(inner[..end].trim_matches('"').to_owned())
            }
            None => None,
        };
        found.push((letter, argument));
    }
    Ok(found)
}

fn closing(text: &str) -> Option<usize> {
    let mut depth = 0_u32;
    for (at, c) in text.char_indices() {
        match c {
            '(' => depth += 1,
            ')' if depth == 0 => return Some(at),
            ')' => depth -= 1,
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commas_inside_brackets_and_quotes_do_not_split() {
        for (text, expected) in [
            ("a,b", vec!["a", "b"]),
            ("a(1,2),[x,y]", vec!["a(1,2)", "[x,y]"]),
            ("\"a,b\",c", vec!["a,b", "c"]),
            (r"a\,b,c", vec!["a,b", "c"]),
            ("", vec![""]),
            (",", vec!["", ""]),
        ] {
            assert_eq!(split(text, ','), expected, "{text}");
        }
    }

    #[test]
    fn option_arguments_nest() {
        let parsed = options("gb(ctx^1(a,b))r").unwrap();
        assert_eq!(parsed, [('g', None), ('b', Some("ctx^1(a,b)".to_owned())), ('r', None)]);
        assert!(options("b(").is_err());
    }
}
