//! The language, rule by rule. A row is: what it shows, the file, the sections it gives.

use conf::{File, Findings, Level, LoadError, Memory, Options, load};

fn read(source: &Memory) -> (Result<File, LoadError>, Findings) {
    let mut findings = Findings::new();
    let file = load(source, "test.conf", Options { allow_exec: true }, &mut findings);
    (file, findings)
}

/// `a{x=1,y=2} !b{z=3}`: sections in order, `!` before a template, `'` after an inherited variable's value.
fn show(file: &File) -> String {
    let sections = file.sections.iter().map(|section| {
        let variables: Vec<_> = section
            .variables
            .iter()
            .map(|v| format!("{}={}{}", v.name, v.value, if v.inherited { "'" } else { "" }))
            .collect();
        format!("{}{}{{{}}}", if section.template { "!" } else { "" }, section.name, variables.join(","))
    });
    sections.collect::<Vec<_>>().join(" ")
}

#[test]
fn rules_3_to_6_sections_and_variables() {
    for (name, text, expected) in [
        ("an empty file", "", ""),
        ("a section without variables", "[a]", "a{}"),
        ("rule 3: lines are trimmed", "  [a]  \n\t x  =  1  2 \t\n", "a{x=1  2}"),
        ("rule 6: an object arrow is the same", "[a]\nx => 1", "a{x=1}"),
        ("rule 6: values may be empty", "[a]\nx=\ny=>", "a{x=,y=}"),
        ("rule 6: the first = divides", "[a]\nx=y=z", "a{x=y=z}"),
        ("rule 6: quotes are part of the value", "[a]\nx=\"1\"", "a{x=\"1\"}"),
        ("rule 6: += appends without separator", "[a]\nx=1\nx+=2", "a{x=12}"),
        ("rule 6: += appends to the last value", "[a]\nx=1\nx=2\nX += 3", "a{x=1,x=23}"),
        ("rule 6: += sets what is not there", "[a]\nx+=2", "a{x=2}"),
        ("rule 6: += reaches an inherited value", "[t](!)\nx=1\n[a](t)\nx+=2", "!t{x=1} a{x=12'}"),
        ("rule 6: +=> is append too", "[a]\nx=>1\nx+=>2", "a{x=12}"),
        (
            "rule 6: a backslash lets a name begin with a special character",
            "[a]\n\\[b]=1\n\\#c=2\n\\;d=3\n\\e=4",
            "a{[b]=1,#c=2,;d=3,\\e=4}",
        ),
        ("rule 4: a template", "[t](!)\nx=1", "!t{x=1}"),
        ("rule 4: inheriting", "[t](!)\nx=1\n[a](t)\ny=2", "!t{x=1} a{x=1',y=2}"),
        ("rule 4: from a section", "[t]\nx=1\n[a](t)", "t{x=1} a{x=1'}"),
        ("rule 4: a template that inherits", "[t](!)\nx=1\n[u](!,t)\n[a](u)", "!t{x=1} !u{x=1'} a{x=1'}"),
        ("rule 4: own values do not erase", "[t](!)\nx=1\n[a](t)\nx=2", "!t{x=1} a{x=1',x=2}"),
        (
            "rule 4: parents left to right",
            "[t](!)\nx=1\n[u](!)\nx=2\n[a](u, t)",
            "!t{x=1} !u{x=2} a{x=2',x=1'}",
        ),
        ("rule 4: the last parent of a name", "[t](!)\nx=1\n[t](!)\nx=2\n[a](t)", "!t{x=1} !t{x=2} a{x=2'}"),
        (
            "rule 4: a copy is made at the header",
            "[t](!)\nx=1\n[a](t)\n[t](+TEMPLATES=include)\ny=2",
            "!t{x=1,y=2} a{x=1'}",
        ),
        ("rule 4: inherits from an earlier one of its own name", "[a]\nx=1\n[a](a)", "a{x=1} a{x=1'}"),
        ("rule 4: text after the bracket is not read", "[t](!)\n[a] (t)\nx=1", "!t{} a{x=1}"),
        ("rule 4: + continues", "[a]\nx=1\n[b]\n[a](+)\ny=2", "a{x=1,y=2} b{}"),
        ("rule 4: + continues the first", "[a]\nx=1\n[a]\nx=2\n[a](+)\ny=3", "a{x=1,y=3} a{x=2}"),
        ("rule 4: + with a parent", "[t](!)\nx=1\n[a]\n[a](+,t)", "!t{x=1} a{x=1'}"),
        (
            "rule 4: a filter narrows",
            "[a]\ntype=endpoint\n[a]\ntype=aor\n[a](+type=^end)\nx=1",
            "a{type=endpoint,x=1} a{type=aor}",
        ),
        (
            "rule 4: two filters",
            "[a]\nt=1\nu=1\n[a]\nt=1\nu=2\n[a](+t=1&u=1)\nx=1",
            "a{t=1,u=1,x=1} a{t=1,u=2}",
        ),
        ("rule 4: a + passes templates by", "[a](!)\nx=1\n[a]\nx=2\n[a](+)\ny=3", "!a{x=1} a{x=2,y=3}"),
        (
            "rule 4: TEMPLATES=restrict reaches only templates",
            "[a](!)\nx=1\n[a]\nx=2\n[a](+TEMPLATES=restrict)\ny=3",
            "!a{x=1,y=3} a{x=2}",
        ),
        (
            "rule 4: TEMPLATES=include reaches both",
            "[a]\nx=2\n[a](!)\nx=1\n[a](+TEMPLATES=include&x=1)\ny=3",
            "a{x=2} !a{x=1,y=3}",
        ),
        ("rule 5: same names are separate objects", "[a]\nx=1\n[a]\nx=2", "a{x=1} a{x=2}"),
        ("rule 2: a comment inside a header line", "[a] ; (t)\nx=1;2", "a{x=1}"),
    ] {
        let (file, findings) = read(&Memory::new().with("test.conf", text));
        let file = file.unwrap_or_else(|error| panic!("{name}: {error}\n{findings}"));
        assert_eq!(show(&file), expected, "{name}");
        assert!(!findings.has_errors(), "{name}: {findings}");
    }
}

#[test]
fn what_makes_a_file_invalid_is_an_error_with_its_line() {
    for (name, text, line, message) in [
        ("rule 6: a line before any section", "\nx=1", 2, "before the first section"),
        ("rule 4: an open bracket", "[a]\n[b", 2, "no closing `]`"),
        ("rule 4: an open parenthesis", "[a](!", 1, "no closing `)`"),
        ("rule 4: an unknown parent", "[a]\n\n[b](c)", 3, "[c], which is not there yet"),
        ("rule 4: no inheriting from oneself", "[a](a)", 1, "[a], which is not there yet"),
        ("rule 4: nothing to continue", "[a](+)", 1, "continues a section that is not there"),
        (
            "rule 4: a + does not reach a template",
            "[a](!)\n[a](+)",
            2,
            "continues a section that is not there",
        ),
        (
            "rule 4: nothing passes the filter",
            "[a]\nx=1\n[a](+x=2)",
            3,
            "continues a section that is not there",
        ),
        ("rule 4: a bad expression", "[a]\n[a](+x=[)", 2, "expression `[`"),
        ("rule 4: a bad TEMPLATES", "[a]\n[a](+TEMPLATES=some)", 2, "neither include nor restrict"),
        ("rule 7: a missing include", "[a]\n#include b.conf", 2, "#include b.conf: no such file"),
        ("rule 7: a failing command", "[a]\n#exec false", 2, "the command of #exec failed"),
        ("rule 7: a file that includes itself", "[a]\n#include test.conf", 2, "nest deeper than 10"),
    ] {
        let (file, findings) = read(&Memory::new().with("test.conf", text));
        assert_eq!(file.unwrap_err(), LoadError::Invalid, "{name}");
        let errors: Vec<_> = findings.iter().filter(|f| f.level == Level::Error).collect();
        assert_eq!(errors.len(), 1, "{name}: {findings}");
        assert_eq!(errors[0].place.to_string(), format!("test.conf:{line}"), "{name}");
        assert!(errors[0].message.contains(message), "{name}: {}", errors[0].message);
    }
}

#[test]
fn what_is_ignored_is_a_warning_with_its_line() {
    for (name, text, line, message) in [
        ("rule 3: a line without =", "[a]\nhello", 2, "no `=`"),
        ("rule 6: an empty name", "[a]\n= 1", 2, "no name"),
        ("rule 7: an unknown directive", "[a]\n#define x", 2, "#define is no directive"),
        ("rule 7: an include of nothing", "[a]\n#include", 2, "names nothing"),
        ("rule 7: a wildcard without a match", "[a]\n#include x/*.conf", 2, "no file matches x/*.conf"),
        ("rule 4: a space before the options", "[a] (!)", 1, "options of [a] are not read"),
        ("rule 4: text after the header", "[a] b", 1, "text after [a] is ignored"),
        ("rule 2: an open block", "[a]\n;-- x", 2, "never closed"),
    ] {
        let (file, findings) = read(&Memory::new().with("test.conf", text));
        assert_eq!(show(&file.unwrap()), "a{}", "{name}");
        let all: Vec<_> = findings.iter().collect();
        assert_eq!(all.len(), 1, "{name}: {findings}");
        assert_eq!(all[0].level, Level::Warning, "{name}");
        assert_eq!(all[0].place.to_string(), format!("test.conf:{line}"), "{name}");
        assert!(all[0].message.contains(message), "{name}: {}", all[0].message);
    }
}

#[test]
fn rule_7_includes() {
    let files = Memory::new()
        .with("b.conf", "x=1\n[b]\ny=2")
        .with("d/2.conf", "n=2")
        .with("d/1.conf", "n=1")
        .with("d/10.conf", "n=10")
        .with("bare.conf", "z=9")
        .with_command("printf 'n=1'", "n=1");
    for (name, text, expected) in [
        (
            "continues the section, and a section opened inside stays open",
            "[a]\n#include b.conf\nz=3",
            "a{x=1} b{y=2,z=3}",
        ),
        ("in quotes", "[a]\n#include \"bare.conf\"", "a{z=9}"),
        ("in angle brackets, without a space", "[a]\n#include<bare.conf>", "a{z=9}"),
        ("before the first section", "#include other.conf\n[a]", "o{} a{}"),
        ("wildcards in sorted order", "[a]\n#include d/*.conf", "a{n=1,n=10,n=2}"),
        ("braces", "[a]\n#include d/{2,1}.conf", "a{n=1,n=2}"),
        ("any case", "[a]\n#INCLUDE bare.conf", "a{z=9}"),
        ("tryinclude of a file", "[a]\n#tryinclude bare.conf", "a{z=9}"),
        ("tryinclude of nothing", "[a]\n#tryinclude none.conf\nx=1", "a{x=1}"),
        ("tryinclude of a wildcard without a match", "[a]\n#tryinclude none*.conf\nx=1", "a{x=1}"),
        ("exec", "[a]\n#exec printf 'n=1'\nm=2", "a{n=1,m=2}"),
        ("exec in quotes", "[a]\n#exec \"printf 'n=1'\"", "a{n=1}"),
    ] {
        let (file, findings) = read(&files.clone().with("other.conf", "[o]").with("test.conf", text));
        assert_eq!(show(&file.unwrap()), expected, "{name}");
        assert!(findings.is_empty(), "{name}: {findings}");
    }
}

#[test]
fn rule_7_exec_only_when_allowed() {
    let source = Memory::new().with("test.conf", "[a]\n#exec printf\nx=1").with_command("printf", "[b]");
    let mut findings = Findings::new();
    let file = load(&source, "test.conf", Options::default(), &mut findings).unwrap();
    assert_eq!(show(&file), "a{x=1}");
    assert!(!file.ran_exec);
    assert!(findings.iter().any(|f| f.remedy.contains("execincludes=yes")), "{findings}");
    let (file, _) = read(&source);
    let file = file.unwrap();
    assert!(file.ran_exec, "a reload must know");
    assert_eq!(show(&file), "a{} b{x=1}");
}

#[test]
fn rule_7_ten_levels_of_includes_are_read() {
    let mut source = Memory::new().with("test.conf", "[a]\n#include 1.conf");
    for level in 1..10 {
        source = source.with(format!("{level}.conf"), format!("#include {}.conf", level + 1));
    }
    let (file, findings) = read(&source.clone().with("10.conf", "x=1"));
    let file = file.unwrap_or_else(|_| panic!("{findings}"));
    assert_eq!(show(&file), "a{x=1}");
    assert_eq!(file.files.len(), 11);
    assert_eq!(file.sections[0].variables[0].place.to_string(), "10.conf:1");
    let (file, findings) = read(&source.with("10.conf", "#include 11.conf").with("11.conf", "x=1"));
    assert_eq!(file.unwrap_err(), LoadError::Invalid);
    assert_eq!(findings.iter().next().unwrap().place.to_string(), "10.conf:1");
}

#[test]
fn templates_that_double_end_at_a_bound() {
    let mut text = String::from("[t0](!)\nx=1\n");
    for n in 1..40 {
        text += &format!("[t{n}](!,t{0},t{0})\n", n - 1);
    }
    let (file, findings) = read(&Memory::new().with("test.conf", text));
    assert_eq!(file.unwrap_err(), LoadError::Invalid);
    assert!(findings.iter().next().unwrap().message.contains("256 MB"), "{findings}");
}

#[test]
fn a_missing_file_is_the_callers_business() {
    let (file, findings) = read(&Memory::new());
    assert_eq!(file.unwrap_err(), LoadError::Missing);
    assert!(findings.is_empty());
}

#[test]
fn consumers_choose_first_last_or_all() {
    let text = "[general](!)\n[t](!)\nallow=ulaw\n[general]\nx=no\n[General]\nx=2\n[p](t)\nAllow=!all,alaw\n";
    let (file, _) = read(&Memory::new().with("test.conf", text));
    let file = file.unwrap();
    assert_eq!(
        file.get("general", "x").map(|v| &*v.value),
        Some("no"),
        "first object of the name, no template"
    );
    assert_eq!(file.section("GENERAL").map(|s| s.place.line), Some(4), "any case");
    assert_eq!(file.section("General").map(|s| s.place.line), Some(6), "exact case first");
    assert_eq!(file.named("general").count(), 2);
    let p = file.section("p").unwrap();
    assert_eq!(p.first("allow").map(|v| &*v.value), Some("ulaw"));
    assert_eq!(p.value("ALLOW"), Some("!all,alaw"));
    let all: Vec<_> = p.all("allow").map(|v| (v.place.line, v.inherited)).collect();
    assert_eq!(all, [(3, true), (9, false)]);
    assert_eq!(p.parents.iter().map(|n| &**n).collect::<Vec<_>>(), ["t"]);
}

#[test]
fn latin_1_is_told_once_a_file() {
    let text = b"[a]\nx=\xe9\ny=\xfc\n".to_vec();
    let (file, findings) = read(&Memory::new().with("test.conf", text));
    assert_eq!(show(&file.unwrap()), "a{x=é,y=ü}");
    assert_eq!(findings.len(), 1, "{findings}");
}

mod never_panics {
    use super::*;
    use proptest::prelude::*;

    /// Pieces that mean something, so that the cases reach deep.
    fn piece() -> impl Strategy<Value = Vec<u8>> {
        prop_oneof![
            Just(b"[a]".to_vec()),
            Just(b"[b](!)\n".to_vec()),
            Just(b"[a](+)\n".to_vec()),
            Just(b"[c](a,b,+x=1&TEMPLATES=include)\n".to_vec()),
            Just(b"x=1\n".to_vec()),
            Just(b"x+=>2\n".to_vec()),
            Just(b";--".to_vec()),
            Just(b"--;".to_vec()),
            Just(b"\\;".to_vec()),
            Just(b"#include test.conf\n".to_vec()),
            Just(b"#include {a,b}*[\n".to_vec()),
            Just(b"\n".to_vec()),
            proptest::collection::vec(any::<u8>(), 0..12),
        ]
    }

    proptest! {
        #[test]
        fn whatever_the_bytes(pieces in proptest::collection::vec(piece(), 0..40)) {
            let text: Vec<u8> = pieces.concat();
            let (file, findings) = read(&Memory::new().with("test.conf", text));
            prop_assert_eq!(file.is_err(), findings.has_errors());
            if let Ok(file) = file {
                for variable in file.sections.iter().flat_map(|section| &section.variables) {
                    prop_assert!(!variable.name.is_empty());
                    prop_assert!(variable.place.line > 0);
                }
            }
        }

        #[test]
        fn whatever_the_wildcard(pattern in "[*?a-c/\\[\\]{},!^-]{0,24}", path in "[a-c/.]{0,12}") {
            let matched = conf::glob_matches(&pattern, &path);
            if !conf::is_glob(&pattern) {
                prop_assert_eq!(matched, pattern == path);
            }
        }
    }
}
