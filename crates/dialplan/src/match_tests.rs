//! The matcher against a naive one that follows the text of §4 word by word.

use std::sync::Arc;

use proptest::prelude::*;

use crate::find::Query;
use crate::load::tests::load_text;
use crate::pattern::{Fit, Pattern};
use crate::testenv::TestEnv;

/// Recursive matching by the definition of each letter; `more` asks for a longer number instead.
fn naive(pattern: &[char], number: &[char], more: bool) -> bool {
    match (pattern, number) {
        ([], []) => !more,
        (['-', rest @ ..], _) => naive(rest, number, more),
        (_, ['-', rest @ ..]) => naive(pattern, rest, more),
        (['.', ..], []) => more,
        (['.', ..], _) => true,
        (['!', ..], _) => !more,
        ([], _) => false,
        (_, []) => more,
        (['[', ..], [digit, after @ ..]) => {
            let end = pattern.iter().position(|&symbol| symbol == ']').expect("closed");
            in_set(&pattern[1..end], *digit) && naive(&pattern[end + 1..], after, more)
        }
        ([letter, rest @ ..], [digit, after @ ..]) => {
            let fits = match letter {
                'X' | 'x' => digit.is_ascii_digit(),
                'Z' | 'z' => ('1'..='9').contains(digit),
                'N' | 'n' => ('2'..='9').contains(digit),
                other => other == digit,
            };
            fits && naive(rest, after, more)
        }
    }
}

fn in_set(members: &[char], digit: char) -> bool {
    match members {
        [first, '-', last, rest @ ..] => (*first..=*last).contains(&digit) || in_set(rest, digit),
        [first, rest @ ..] => *first == digit || in_set(rest, digit),
        [] => false,
    }
}

fn naive_name(name: &str, number: &str, more: bool) -> bool {
    let number: Vec<char> = number.chars().collect();
    match name.strip_prefix('_') {
        Some(pattern) => naive(&pattern.chars().collect::<Vec<_>>(), &number, more),
        None => {
            let plain = |text: &str| text.replace('-', "");
            let (name, number) = (plain(name), plain(&number.iter().collect::<String>()));
            if more { name.len() > number.len() && name.starts_with(&number) } else { name == number }
        }
    }
}

#[test]
fn section_4_order_of_patterns_on_a_running_asterisk() {
    let order = ["9123", "_91XX", "_92X", "_9[2-3]X", "_9NX", "_9ZX", "_9XX", "_9.", "_9!"];
    let (program, _) = load_text(&format!(
        "[c]\n{}",
        order.iter().rev().map(|name| format!("exten => {name},1,NoOp()\n")).collect::<String>()
    ));
    let names: Vec<&str> =
        program.contexts()[0].extensions.iter().map(|extension| &*extension.name).collect();
    assert_eq!(names, order);
}

#[test]
fn section_4_pattern_letters() {
    for (pattern, number, expected) in [
        ("_NXX", "234", Fit::Whole),
        ("_NXX", "134", Fit::No),
        ("_nxx", "23", Fit::NeedsMore),
        ("_ZX", "05", Fit::No),
        ("_[1-35]X", "40", Fit::No),
        ("_[1-35]X", "50", Fit::Whole),
        (r"_[\]\-]", "-]", Fit::Whole),
        (r"_[a\-z]", "m", Fit::No),
        ("_555-1212", "5551212", Fit::Whole),
        ("555-1212", "5551212", Fit::Whole),
        ("555-1212", "555", Fit::NeedsMore),
        ("_9.", "9", Fit::NeedsMore),
        ("_9.", "91", Fit::WholeAndMore),
        ("_9!", "9", Fit::Early),
        ("_9!", "91", Fit::Early),
        ("_9!", "", Fit::NeedsMore),
        ("_*97", "*97", Fit::Whole),
        ("s", "s", Fit::Whole),
        ("_X.", "s", Fit::No),
        ("_.", "h", Fit::WholeAndMore),
    ] {
        assert_eq!(Pattern::parse(pattern).unwrap().fit(number), expected, "{pattern} {number}");
    }
}

#[test]
fn section_4_caller_matches_come_first_and_priorities_fall_through() {
    let (program, _) = load_text(
        "[c]\nexten => 100,1,NoOp(any)\nexten => 100/200,1,NoOp(from 200)\nexten => 100/_3XX,1,NoOp(from 3)\n\
         exten => 100/,1,NoOp(nobody)\nexten => _1XX,1,NoOp(pattern)\nexten => _1XX,2,NoOp(second)\n\
         include => d\n[d]\nexten => 100,3,NoOp(included)\nexten => 7,1,NoOp()\n",
    );
    let env = TestEnv::new();
    let context = program.context_id("c").unwrap();
    let args = |exten: &str, caller: &str, priority| {
        let at = program.find(Query { context, exten, caller }, priority, &env)?;
        Some(program.step(at)?.args.to_string())
    };
    for (exten, caller, priority, expected) in [
        ("100", "200", 1, Some("from 200")),
        ("100", "345", 1, Some("from 3")),
        ("100", "", 1, Some("nobody")),
        ("100", "999", 1, Some("any")),
        ("101", "999", 1, Some("pattern")),
        ("100", "999", 2, Some("second")),
        ("100", "999", 3, Some("included")),
        ("100", "999", 4, None),
        ("7", "", 1, Some("")),
        ("8", "", 1, None),
    ] {
        assert_eq!(args(exten, caller, priority).as_deref(), expected, "{exten} from {caller} at {priority}");
    }
}

#[test]
fn section_4_includes_are_depth_first_once_and_by_time() {
    let (program, _) = load_text(
        "[a]\ninclude => b\ninclude => c\n[b]\ninclude => d\ninclude => a\n[c]\nexten => 1,1,NoOp(c)\n\
         [d]\nexten => 1,1,NoOp(d)\n\
         [t]\ninclude => c,9:00-17:00,mon-fri,*,*\ninclude => d\n",
    );
    let mut env = TestEnv::new();
    let step = |name: &str, env: &TestEnv| {
        let query = Query { context: program.context_id(name).unwrap(), exten: "1", caller: "" };
        program.find(query, 1, env).map(|at| program.step(at).unwrap().args.to_string())
    };
    assert_eq!(step("a", &env).as_deref(), Some("d"));
    env.wall.seconds = 1_795_300_200; // Saturday
    assert_eq!(step("t", &env).as_deref(), Some("d"));
    env.wall.seconds += 2 * 86_400 - 12 * 3_600; // Monday 10:30
    assert_eq!(step("t", &env).as_deref(), Some("c"));
    let query = Query { context: program.context_id("t").unwrap(), exten: "1", caller: "" };
    assert!(program.route(query, &env).timed);
}

#[test]
fn section_4_a_chain_of_includes_ends_at_128() {
    let text: String =
        (0..200).map(|n| format!("[c{n}]\nexten => {n},1,NoOp()\ninclude => c{}\n", n + 1)).collect();
    let (program, _) = load_text(&text);
    let env = TestEnv::new();
    let context = program.context_id("c0").unwrap();
    let exists = |exten: &str| program.exists(Query { context, exten, caller: "" }, &env);
    assert!(exists("127") && !exists("128"));
}

#[test]
fn section_4_digit_collection_knows_what_may_still_come() {
    let (program, _) = load_text(
        "[c]\nexten => 1,1,NoOp()\nexten => 12,1,NoOp()\nexten => _3!,1,NoOp()\nexten => _35X,1,NoOp()\n\
         exten => _4.,1,NoOp()\nexten => 9,hint,PJSIP/a\nignorepat => 9\nignorepat => _8X\n",
    );
    let env = TestEnv::new();
    let context = program.context_id("c").unwrap();
    for (exten, exists, can, more) in [
        ("", false, true, true),
        ("1", true, true, true),
        ("12", true, true, false),
        ("13", false, false, false),
        ("3", true, true, true),
        ("35", true, true, true),
        ("351", true, true, false),
        ("36", true, true, false),
        ("4", false, true, true),
        ("41", true, true, true),
        ("9", false, false, false),
    ] {
        let query = Query { context, exten, caller: "" };
        let found =
            (program.exists(query, &env), program.can_match(query, &env), program.match_more(query, &env));
        assert_eq!(found, (exists, can, more), "{exten:?}");
    }
    assert!(
        program.ignores(context, "9") && program.ignores(context, "81") && !program.ignores(context, "8")
    );
}

proptest! {
    #[test]
    fn patterns_match_as_the_text_says(
        name in r"_?([0-35XZNxzn-]|\[[0-3]-[4-6]\]|\[[0-9]{1,3}\]){1,4}[.!]?",
        number in "[0-9-]{0,6}",
    ) {
        prop_assume!(name != "_" && !name.trim_matches(['_', '-']).is_empty());
        // Sets, dots and bangs in a name without `_` are literal; the naive matcher has them only after `_`.
        let pattern = Pattern::parse(&name).unwrap();
        let fit = pattern.fit(&number);
        prop_assert_eq!(fit.matches(), naive_name(&name, &number, false), "{} {} {:?}", name, number, fit);
        let more = matches!(fit, Fit::NeedsMore | Fit::WholeAndMore);
        prop_assert_eq!(more, naive_name(&name, &number, true), "{} {} {:?}", name, number, fit);
    }

    #[test]
    fn routes_find_exactly_the_matching_names_in_order(
        names in proptest::collection::btree_set(r"(_[0-3XZN]{1,3}[.!]?|[0-3]{1,3})", 1..12),
        number in "[0-3]{1,3}",
    ) {
        let lines: String = names.iter().map(|name| format!("exten => {name},1,NoOp()\n")).collect();
        let (program, _) = load_text(&format!("[c]\n{lines}"));
        let env = TestEnv::with(program);
        let program = Arc::clone(&env.program);
        let query = Query { context: program.context_id("c").unwrap(), exten: &number, caller: "" };
        let route = program.route(query, &env);
        let found: Vec<String> =
            route.candidates.iter().map(|&at| program.extension(at).unwrap().name.to_string()).collect();
        let mut expected: Vec<String> = names.iter().filter(|name| naive_name(name, &number, false)).cloned().collect();
        expected.sort_by_key(|name| Pattern::parse(name).unwrap());
        prop_assert_eq!(found, expected);
    }

    #[test]
    fn pattern_order_is_total(names in proptest::collection::vec(r"_?[0-35XZN\[\]-]{1,4}[.!]?", 3)) {
        let patterns: Vec<Pattern> = names.iter().filter_map(|name| Pattern::parse(name).ok()).collect();
        for a in &patterns {
            for b in &patterns {
                prop_assert_eq!(a.cmp(b), b.cmp(a).reverse());
                for c in &patterns {
                    if a <= b && b <= c {
                        prop_assert!(a <= c);
                    }
                }
            }
        }
    }
}

#[test]
fn section_4_of_two_sets_of_a_size_the_one_with_the_lower_characters_and_empty_ones_are_not_there() {
    for (text, number, expected) in [
        ("exten => _7[13-6],1,NoOp()\nexten => _7[1-5],1,NoOp()\n", "74", "_7[1-5]"),
        ("exten => _7[1-5],1,NoOp()\nexten => _7[13-6],1,NoOp()\n", "74", "_7[1-5]"),
        ("exten => _0[]4X,1,NoOp()\n", "041", "_0[]4X"),
    ] {
        let (program, _) = crate::load::tests::load_text(&format!("[c]\n{text}"));
        let context = program.context(program.context_id("c").unwrap()).unwrap();
        let first = context.extensions.iter().find(|extension| extension.pattern.fit(number).matches());
        assert_eq!(first.map(|extension| &*extension.name), Some(expected), "{text}");
    }
}
