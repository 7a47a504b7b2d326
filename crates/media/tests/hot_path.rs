//! The figure of the hot path in `docs/media.md` is that of the program: its functions exist, each calls those that it leads
//! to, there are no more than ten, and none of them has a lock, an allocation or a look-up by key in it.

use std::collections::BTreeMap;
use std::path::Path;

/// Functions from socket to socket.
const FUNCTIONS_MAX: usize = 10;

/// What would be a lock, an allocation, a hand-off or a look-up.
const FOREIGN: [&str; 22] = [
    ".lock()",
    ".read()",
    ".write()",
    "Mutex",
    "RwLock",
    "Once",
    "Atomic",
    "Box::new",
    "Arc::",
    "Rc::",
    "vec!",
    "Vec::",
    ".to_vec(",
    ".to_owned(",
    ".collect(",
    "String",
    "format!",
    "println!",
    "HashMap",
    "BTreeMap",
    ".find(",
    "spawn",
];

fn read(path: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    std::fs::read_to_string(root.join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The body of a function.
fn body<'a>(source: &'a str, name: &str) -> &'a str {
    let start = source.find(&format!("fn {name}(")).or_else(|| source.find(&format!("fn {name}<")));
    let start = start.unwrap_or_else(|| panic!("there is no function {name}"));
    // A signature may have patterns with braces; the body's first brace ends its line.
    let open = start + source[start..].find("{\n").expect("a body");
    let text = &source[open..];
    let mut depth = 0;
    for (at, letter) in text.char_indices() {
        match letter {
            '{' => depth += 1,
            '}' if depth == 1 => return &text[..=at],
            '}' => depth -= 1,
            _ => {}
        }
    }
    panic!("the function {name} does not end");
}

#[test]
fn the_figure_of_the_hot_path_is_that_of_the_program() {
    let page = read("docs/media.md");
    let figure = page.split("```mermaid").nth(1).and_then(|rest| rest.split("```").next()).expect("a figure");
    // Boxes are written `name["function<br>file"]`, arrows `name --> name`.
    let mut functions = BTreeMap::new();
    let mut arrows = Vec::new();
    for line in figure.lines().map(str::trim) {
        if let Some((name, label)) = line.split_once("[\"") {
            let (function, file) = label.trim_end_matches("\"]").split_once("<br>").expect("a file");
            functions.insert(name, (function, file));
        } else if let Some((from, to)) = line.split_once(" --> ") {
            arrows.push((from, to));
        }
    }
    assert!((5..=FUNCTIONS_MAX).contains(&functions.len()), "{} functions", functions.len());
    let function = |name: &str| functions.get(name).copied().unwrap_or_else(|| panic!("no box {name}"));
    for (name, (function, file)) in &functions {
        let source = read(file);
        let text = body(&source, function.rsplit("::").next().unwrap());
        for word in FOREIGN {
            assert!(!text.contains(word), "{function} has {word} in it");
        }
        assert!(arrows.iter().any(|(from, to)| from == name || to == name), "nothing leads to {function}");
    }
    for (from, to) in arrows {
        let ((caller, file), (callee, _)) = (function(from), function(to));
        let source = read(file);
        let text = body(&source, caller.rsplit("::").next().unwrap());
        let callee = callee.rsplit("::").next().unwrap();
        assert!(
            text.contains(&format!("{callee}(")) || text.contains(&format!(".{callee}(")),
            "{caller} does not call {callee}"
        );
    }
}
