//! A pattern, a line end and a text: what is found lies in the text, and all of it takes its budget at most.
#![no_main]

use dialplan::ere::{Matcher, Regex};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let text = String::from_utf8_lossy(bytes);
    let (pattern, text) = text.split_once('\n').unwrap_or((&text, "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab"));
    let Ok(regex) = Regex::new(pattern) else { return };
    if let Some(found) = regex.find(text) {
        assert!(regex.is_match(text));
        for group in 0..=regex.groups() {
            let Some(range) = found.group(group) else { continue };
            // Octets are matched, as in the C locale: a group may end inside a character.
            assert!(text.as_bytes().get(range.clone()).is_some(), "{range:?}");
        }
    }
    let matcher = Matcher::new(pattern).expect("it was a pattern");
    for _ in 0..3 {
        let _ = matcher.matches(text);
    }
});
