//! The shape of a command: what its row writes (`core show channels [concise|verbose|count]`), how a typed line fits it,
//! and what may come next.
//!
//! `word`, `one|other`, `<name>`, `<name...>` for the rest of the line, and `[…]` around what may be left out. A word
//! with alternatives, or one that may be left out, is an argument named [`CHOICE`].

use std::collections::VecDeque;

/// The name under which the word that was taken of several alternatives is found.
pub(crate) const CHOICE: &str = "|";

/// One piece of a shape.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Piece {
    /// This word.
    Word(&'static str),
    /// One of these words; which one is told.
    Pick(Vec<&'static str>),
    /// An argument of this name.
    Arg(&'static str),
    /// One or more words, joined by blanks.
    Rest(&'static str),
    /// May be left out as a whole.
    Maybe(Vec<Piece>),
}

/// Arguments by name.
pub(crate) type Args = Vec<(&'static str, String)>;

/// Reads a row's own text; it is ours and well formed.
pub(crate) fn parse(text: &'static str) -> Vec<Piece> {
    pieces(text, false)
}

fn pieces(text: &'static str, optional: bool) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        let (piece, tail) = match rest.strip_prefix('[') {
            Some(inner) => {
                let (inner, tail) = until_closed(inner);
                (Piece::Maybe(self::pieces(inner, true)), tail)
            }
            None => {
                let (word, tail) = rest.split_once(' ').unwrap_or((rest, ""));
                (piece(word, optional), tail)
            }
        };
        pieces.push(piece);
        rest = tail.trim_start();
    }
    pieces
}

/// Cuts at the bracket that closes an open one.
fn until_closed(text: &'static str) -> (&'static str, &'static str) {
    let mut open = 1;
    for (at, c) in text.char_indices() {
        open += match c {
            '[' => 1,
            ']' => -1,
            _ => 0,
        };
        if open == 0 {
            return (text.get(..at).unwrap_or(text), text.get(at + 1..).unwrap_or_default());
        }
    }
    (text, "")
}

fn piece(word: &'static str, optional: bool) -> Piece {
    match word.strip_prefix('<').and_then(|inner| inner.strip_suffix('>')) {
        Some(name) => match name.strip_suffix("...") {
            Some(name) => Piece::Rest(name),
            None => Piece::Arg(name),
        },
        None if optional || word.contains('|') => Piece::Pick(word.split('|').collect()),
        None => Piece::Word(word),
    }
}

/// Cuts a line into words: blanks part them, `"` keeps them together, `\` takes the next character as it is.
pub(crate) fn words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    let (mut word, mut open, mut quoted) = (String::new(), false, false);
    let mut chars = line.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => {
                word.extend(chars.next());
                open = true;
            }
            '"' => {
                quoted = !quoted;
                open = true;
            }
            c if c.is_whitespace() && !quoted => {
                if std::mem::take(&mut open) {
                    words.push(std::mem::take(&mut word));
                }
            }
            c => {
                word.push(c);
                open = true;
            }
        }
    }
    if open {
        words.push(word);
    }
    words
}

/// Fits words to a shape; how many of them were the shape's own words.
pub(crate) fn fit(pieces: &[Piece], words: &[String], args: &mut Args) -> Option<usize> {
    let Some((piece, rest)) = pieces.split_first() else { return words.is_empty().then_some(0) };
    match (piece, words.split_first()) {
        (Piece::Maybe(inner), _) => {
            let whole: Vec<Piece> = inner.iter().chain(rest).cloned().collect();
            let mark = args.len();
            fit(&whole, words, args).or_else(|| {
                args.truncate(mark);
                fit(rest, words, args)
            })
        }
        (_, None) => None,
        (Piece::Word(known), Some((word, tail))) => {
            let fits = known.eq_ignore_ascii_case(word).then_some(1)?;
            fit(rest, tail, args).map(|count| count + fits)
        }
        (Piece::Pick(known), Some((word, tail))) => {
            let known = known.iter().find(|known| known.eq_ignore_ascii_case(word))?;
            args.push((CHOICE, (*known).to_owned()));
            fit(rest, tail, args).map(|count| count + 1)
        }
        (Piece::Arg(name), Some((word, tail))) => {
            args.push((name, word.clone()));
            fit(rest, tail, args)
        }
        (Piece::Rest(name), Some(_)) => {
            args.push((name, words.join(" ")));
            Some(0)
        }
    }
}

/// How many of the shape's leading plain words the line has, when it has all of them.
pub(crate) fn leads(pieces: &[Piece], words: &[String]) -> Option<usize> {
    let leading = pieces.iter().map_while(|piece| match piece {
        Piece::Word(known) => Some(known),
        _ => None,
    });
    let mut count = 0;
    for (at, known) in leading.enumerate() {
        if !words.get(at).is_some_and(|word| word.eq_ignore_ascii_case(known)) {
            return None;
        }
        count = at + 1;
    }
    Some(count)
}

/// How many of the line's first words are the shape's.
pub(crate) fn likeness(pieces: &[Piece], words: &[String]) -> usize {
    let same = |(piece, word): &(&Piece, &String)| matches!(piece, Piece::Word(known) if word.eq_ignore_ascii_case(known));
    pieces.iter().zip(words).take_while(same).count()
}

/// What may come after these words.
pub(crate) fn next(pieces: &[Piece], words: &[String]) -> Vec<Piece> {
    let mut out = Vec::new();
    walk(pieces.iter().collect(), words, &mut out);
    out
}

fn walk(mut pieces: VecDeque<&Piece>, words: &[String], out: &mut Vec<Piece>) {
    let Some(piece) = pieces.pop_front() else { return };
    match (piece, words.split_first()) {
        (Piece::Maybe(inner), _) => {
            walk(inner.iter().chain(pieces.iter().copied()).collect(), words, out);
            walk(pieces, words, out);
        }
        (Piece::Rest(_), _) | (_, None) => out.push(piece.clone()),
        (Piece::Word(known), Some((word, tail))) => {
            if known.eq_ignore_ascii_case(word) {
                walk(pieces, tail, out);
            }
        }
        (Piece::Pick(known), Some((word, tail))) => {
            if known.iter().any(|known| known.eq_ignore_ascii_case(word)) {
                walk(pieces, tail, out);
            }
        }
        (Piece::Arg(_), Some((_, tail))) => walk(pieces, tail, out),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_cut_at_blanks_outside_quotes() {
        for (line, expected) in [
            ("core  show channels ", vec!["core", "show", "channels"]),
            ("database put a b \"x y\"", vec!["database", "put", "a", "b", "x y"]),
            (r#"a \"b\ c "" d"e f"g"#, vec!["a", "\"b c", "", "de fg"]),
            ("", vec![]),
            ("open \"quote", vec!["open", "quote"]),
        ] {
            assert_eq!(words(line), expected, "{line}");
        }
    }

    #[test]
    fn a_line_fits_its_shape_or_not() {
        for (shape, line, expected) in [
            ("core show channels [concise|count]", "core show channels", Some((3, vec![]))),
            (
                "core show channels [concise|count]",
                "CORE show channels Count",
                Some((4, vec![(CHOICE, "count")])),
            ),
            ("core show channels [concise|count]", "core show channels x", None),
            ("core show channels [concise|count]", "core show channels count x", None),
            ("a [like <text>]", "a like b", Some((2, vec![(CHOICE, "like"), ("text", "b")]))),
            ("a [like <text>]", "a like", None),
            ("a <x> [<rest...>]", "a 1", Some((1, vec![("x", "1")]))),
            ("a <x> [<rest...>]", "a 1 2 3", Some((1, vec![("x", "1"), ("rest", "2 3")]))),
            ("a <x>", "a", None),
            ("a [<x> [<y>]] [b]", "a 1 b", Some((1, vec![("x", "1"), ("y", "b")]))),
            ("a [<x> [<y>]] [b]", "a 1 2 b", Some((2, vec![("x", "1"), ("y", "2"), (CHOICE, "b")]))),
        ] {
            let mut args = Args::new();
            let count = fit(&parse(shape), &words(line), &mut args);
            let found = count
                .map(|count| (count, args.iter().map(|(name, value)| (*name, value.as_str())).collect()));
            assert_eq!(found, expected, "{shape}: {line}");
        }
    }

    #[test]
    fn what_may_come_next_looks_into_optional_parts() {
        let shape = parse("core set verbose [atleast] <level>");
        let next = |line: &str| next(&shape, &words(line));
        assert_eq!(next("core set"), [Piece::Word("verbose")]);
        assert_eq!(next("core set verbose"), [Piece::Pick(vec!["atleast"]), Piece::Arg("level")]);
        // `atleast` could be the level, too, as far as the shape knows.
        assert_eq!(next("core set verbose atleast"), [Piece::Arg("level")]);
        assert_eq!(next("core show"), []);
    }
}
