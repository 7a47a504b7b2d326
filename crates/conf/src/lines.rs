//! From bytes to logical lines: comments gone, blocks joined, text decoded.

/// Longest physical line read, in bytes; Asterisk's buffer minus its terminator and newline.
pub const LINE_BYTES_MAX: usize = 8_190;
/// Deepest nesting of `;-- --;` blocks, the field's limit.
pub const COMMENT_DEPTH_MAX: usize = 128;

/// What the scanner says about one logical line.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Line {
    /// A trimmed line with something on it.
    Text { line: u32, text: String, decoded: bool },
    /// A physical line over [`LINE_BYTES_MAX`] was skipped.
    TooLong { line: u32, bytes: usize },
    /// A block was opened deeper than [`COMMENT_DEPTH_MAX`]; the opener is taken as comment text.
    TooDeep { line: u32 },
    /// The file ended inside the block opened at this line.
    Unclosed { line: u32 },
}

/// Splits a file into logical lines.
pub(crate) fn scan(bytes: &[u8]) -> Vec<Line> {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let mut scanner = Scanner::default();
    let mut out = Vec::new();
    // A trailing newline makes a last, empty piece, which is no line and yields nothing.
    for (index, physical) in bytes.split(|&byte| byte == b'\n').enumerate() {
        let line = u32::try_from(index + 1).unwrap_or(u32::MAX);
        scanner.physical(line, physical, &mut out);
    }
    if let Some(&line) = scanner.openers.first() {
        out.push(Line::Unclosed { line });
    }
    out
}

/// Where the lines with something on them are: the number of the physical line (from 0), its text, and whether it stands
/// alone: no comment block reaches into it or out of it.
pub(crate) fn positions(bytes: &[u8]) -> Vec<(usize, String, bool)> {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let mut scanner = Scanner::default();
    let mut found = Vec::new();
    let mut out = Vec::new();
    // Lines from the first one of a text to the last one that a block joins to it.
    let mut alone = true;
    for (index, physical) in bytes.split(|&byte| byte == b'\n').enumerate() {
        let line = u32::try_from(index + 1).unwrap_or(u32::MAX);
        alone &= scanner.openers.is_empty();
        scanner.physical(line, physical, &mut out);
        alone &= scanner.openers.is_empty();
        for scanned in out.drain(..) {
            if let Line::Text { line, text, .. } = scanned {
                found.push((line.saturating_sub(1) as usize, text, alone));
            }
        }
        if scanner.openers.is_empty() {
            alone = true;
        }
    }
    found
}

#[derive(Default)]
struct Scanner {
    /// Text before a block that is not closed yet, and the line it began on.
    held: Vec<u8>,
    held_line: u32,
    /// Lines of the openers of the blocks we are in.
    openers: Vec<u32>,
}

impl Scanner {
    fn physical(&mut self, line: u32, physical: &[u8], out: &mut Vec<Line>) {
        if physical.len() > LINE_BYTES_MAX {
            out.push(Line::TooLong { line, bytes: physical.len() });
            return;
        }
        if self.held.is_empty() {
            self.held_line = line;
        }
        self.strip(line, physical, out);
        if self.openers.is_empty() {
            let held = std::mem::take(&mut self.held);
            let text = trim(&held);
            if !text.is_empty() {
                let (text, decoded) = decode(text);
                out.push(Line::Text { line: self.held_line, text, decoded });
            }
        }
    }

    /// Adds to `held` what of this physical line is no comment.
    fn strip(&mut self, line: u32, physical: &[u8], out: &mut Vec<Line>) {
        let mut rest = physical;
        loop {
            let inside = !self.openers.is_empty();
            match rest {
                [] => return,
                [b'\\', b';', tail @ ..] if !inside => {
                    self.held.push(b';');
                    rest = tail;
                }
                [b';', b'-', b'-', tail @ ..] if tail.first() != Some(&b'-') => {
                    if self.openers.len() < COMMENT_DEPTH_MAX {
                        self.openers.push(line);
                    } else {
                        out.push(Line::TooDeep { line });
                    }
                    rest = tail;
                }
                [b'-', b'-', b';', tail @ ..] if inside => {
                    self.openers.pop();
                    rest = tail;
                }
                [b';', ..] if !inside => return,
                [byte, tail @ ..] => {
                    if !inside {
                        self.held.push(*byte);
                    }
                    rest = tail;
                }
            }
        }
    }
}

/// Takes control characters and blanks off both ends.
pub(crate) fn trim(mut bytes: &[u8]) -> &[u8] {
    while let [0..=b' ', rest @ ..] = bytes {
        bytes = rest;
    }
    while let [rest @ .., 0..=b' '] = bytes {
        bytes = rest;
    }
    bytes
}

/// UTF-8 as it is; any other line byte for byte as Latin-1, which loses nothing and can be written back.
fn decode(bytes: &[u8]) -> (String, bool) {
    match std::str::from_utf8(bytes) {
        Ok(text) => (text.to_owned(), false),
        Err(_) => (bytes.iter().map(|&byte| char::from(byte)).collect(), true),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(bytes: &[u8]) -> Vec<(u32, String)> {
        let lines = scan(bytes).into_iter();
        lines
            .filter_map(|l| if let Line::Text { line, text, .. } = l { Some((line, text)) } else { None })
            .collect()
    }

    #[test]
    fn rule_2_comments() {
        for (name, file, expected) in [
            ("to the end of the line", "a=1 ; note\n", &[(1, "a=1")][..]),
            ("escaped", "a=1\\; not a note ; note\n", &[(1, "a=1; not a note")]),
            ("other backslashes stay", "a=\\n\\\\\n", &[(1, "a=\\n\\\\")]),
            ("a block over lines", "a=1\n;--\nb=2\n--;\nc=3\n", &[(1, "a=1"), (5, "c=3")]),
            ("dashes are an ordinary comment", ";----\na=1\n;-----;\nb=2\n", &[(2, "a=1"), (4, "b=2")]),
            ("within a line", "a=1;-- x --;2\n", &[(1, "a=12")]),
            ("joins lines", "a=1;-- x\ny\n--;2 ; note\nb=3\n", &[(1, "a=12"), (4, "b=3")]),
            ("nests", ";-- 1 ;-- 2 --; still --;a=1\n", &[(1, "a=1")]),
            ("a lone semicolon inside means nothing", ";-- x ; --;a=1\n", &[(1, "a=1")]),
            ("an escape inside means nothing", ";-- x \\;-- --; --;a=1\n", &[(1, "a=1")]),
            ("an opener after a comment is comment", "a=1 ; x ;-- y\nb=2\n", &[(1, "a=1"), (2, "b=2")]),
            ("a closer outside a block is text and comment", "a=--; x\n", &[(1, "a=--")]),
            ("a block right at the end", "a=1 ;--\n--;", &[(1, "a=1")]),
        ] {
            let expected: Vec<_> = expected.iter().map(|&(line, text)| (line, text.to_owned())).collect();
            assert_eq!(texts(file.as_bytes()), expected, "{name}");
        }
    }

    #[test]
    fn rule_2_an_unclosed_block_is_reported_with_its_outermost_opener() {
        assert_eq!(scan(b"\n;--\n;--\n--;\n"), [Line::Unclosed { line: 2 }]);
    }

    #[test]
    fn rule_2_blocks_nest_128_deep() {
        let deep = |n: usize| format!("{}{}a=1", ";-- ".repeat(n), "--;".repeat(n));
        assert_eq!(texts(deep(128).as_bytes()), [(1, "a=1".to_owned())]);
        assert!(scan(deep(129).as_bytes()).contains(&Line::TooDeep { line: 1 }));
    }

    #[test]
    fn rule_1_bytes() {
        let fits = format!("a={}", "x".repeat(LINE_BYTES_MAX - 2));
        assert_eq!(texts(fits.as_bytes()), [(1, fits.clone())]);
        let long = format!("{fits}x\nb=2\n");
        assert_eq!(
            scan(long.as_bytes()).first(),
            Some(&Line::TooLong { line: 1, bytes: LINE_BYTES_MAX + 1 }),
            "a byte too long"
        );
        assert_eq!(texts(long.as_bytes()), [(2, "b=2".to_owned())], "only that line is skipped");
        assert_eq!(
            texts(b"\xef\xbb\xbf[a]\r\nb=2\r\n"),
            [(1, "[a]".into()), (2, "b=2".into())],
            "BOM and CR"
        );
        assert_eq!(texts(b"\t \x00a=1\x0b\n"), [(1, "a=1".into())], "control characters are blanks");
        assert_eq!(texts(b"a=\\\nb=2"), [(1, "a=\\".into()), (2, "b=2".into())], "no continuation");
        assert_eq!(
            scan(b"cid=Andr\xe9"),
            [Line::Text { line: 1, text: "cid=Andr\u{e9}".into(), decoded: true }],
            "Latin-1 keeps every byte"
        );
        assert_eq!(texts("cid=André".as_bytes()), [(1, "cid=André".into())]);
    }
}
