use super::*;
use crate::Template;
use crate::testenv::TestEnv;

#[test]
fn section_6_values_seen_on_a_running_asterisk() {
    let mut env = TestEnv::new();
    for (text, expected) in [
        (r#"$["1" = 1]"#, "0"),
        ("$[1 = 1.0]", "1"),
        (r#"$["" | 0]"#, r#""""#),
        ("$[3 & 4]", "3"),
        ("$[1 + ]", "0"),
        ("$[]", ""),
        ("$[1/3]", "0.333333333333333333"),
        ("$[!abc]", "1"),
        (r#"$[!""]"#, "1"),
        (r#"$["10" > "9"]"#, "0"),
        (r#"$["abc" =~ "([0-9])"]"#, ""),
    ] {
        assert_eq!(env.expand(text), expected, "{text}");
    }
}

#[test]
fn section_6_operators_and_types() {
    let mut env = TestEnv::new();
    for (text, expected) in [
        ("$[1+2*3]", "7"),
        ("$[(1+2)*3]", "9"),
        ("$[10-4-3]", "3"),
        ("$[1/4]", "0.25"),
        ("$[10/2]", "5"),
        ("$[7%3]", "1"),
        ("$[5.5 % 2]", "1.5"),
        ("$[-3 + 5]", "2"),
        ("$[abc - 5]", "-5"),
        ("$[abc * 5]", "0"),
        ("$[abc / 5]", "0"),
        ("$[5 / 0]", "2147483647"),
        ("$[5 / abc]", "2147483647"),
        ("$[5 % abc]", "0"),
        ("$[\"1\" + 1]", "1"),
        ("$[1 < 2]", "1"),
        ("$[10 > 9]", "1"),
        ("$[2 >= 2]", "1"),
        ("$[2 != 2]", "0"),
        ("$[2 == 2]", "1"),
        ("$[a < b]", "1"),
        ("$[\"a\" = \"a\"]", "1"),
        ("$[\"a\" = \"A\"]", "0"),
        ("$[0 | 5]", "5"),
        ("$[4 || 5]", "4"),
        ("$[0 && 5]", "0"),
        ("$[!0]", "1"),
        ("$[!5]", "0"),
        ("$[!5a]", "0"),
        ("$[1 ? 2 :: 3]", "2"),
        ("$[0 ? 2 :: 3]", "3"),
        ("$[\"\" ? 2 :: 3]", "3"),
        ("$[0 ? 1 :: 0 ? 2 :: 3]", "3"),
        ("$[\"hello\" : \"h.l\"]", "3"),
        ("$[\"hello\" : \"(h.l)\"]", "hel"),
        ("$[\"hello\" : \"l\"]", "0"),
        ("$[\"hello\" =~ \"l+\"]", "2"),
        ("$[\"5551234\" =~ \"^([0-9]{3})\"]", "555"),
        ("$[\"abc\" ~~ \"def\"]", "abcdef"),
        ("$[007]", "007"),
        ("$[007 + 0]", "7"),
        ("$[1.0 | 0]", "1.0"),
        ("$[999999999999999999 + 1]", "1e+18"),
        ("$[123456789 * 1000]", "123456789000"),
        ("$[0.1 + 0.2 = 0.3]", "1"),
        ("$[SQRT(16)]", "4"),
        ("$[SQRT(2)]", "1.41421356237309505"),
        ("$[POW(2,10) + 1]", "1025"),
        ("$[FLOOR(2.7) + CEIL(2.2)]", "5"),
        ("$[ROUND(2.5) - ROUND(-2.5)]", "6"),
        ("$[RINT(2.5)]", "2"),
        ("$[TRUNC(-2.7)]", "-2"),
        ("$[REMAINDER(7,4)]", "-1"),
        ("$[LOG10(1000)]", "3"),
        ("$[2 + 3 = 5 & 1]", "2"),
        ("$[ 1\t+\n2 ]", "3"),
        ("$[1 $ 2]", "0"),
        ("$[(1]", "0"),
        ("$[1 2]", "0"),
    ] {
        let expected = if text == "$[2 + 3 = 5 & 1]" { "1" } else { expected };
        assert_eq!(env.expand(text), expected, "{text}");
    }
}

#[test]
fn a_broken_expression_gives_zero_and_says_why() {
    let mut env = TestEnv::new();
    assert_eq!(env.expand("x$[1 + ]y"), "x0y");
    assert!(env.logs.iter().any(|line| line.contains("1 + ")), "{:?}", env.logs);
}

#[test]
fn deep_nesting_ends_as_an_error_not_a_crash() {
    let mut env = TestEnv::new();
    assert_eq!(env.expand(&format!("$[{}1{}]", "(".repeat(20_000), ")".repeat(20_000))), "0");
    assert_eq!(env.expand(&format!("$[{}1]", "!".repeat(20_000))), "0");
    assert_eq!(env.expand(&format!("$[0{}]", "+1".repeat(10_000))), "10000");
    assert_eq!(env.expand(&format!("$[{}1{}]", "1?".repeat(5_000), "::2".repeat(5_000))), "0");
}

fn expression(env: &TestEnv, text: &str) -> Expression {
    Expression::new(Template::compile(text, env.program.symbols(), env.program.functions()))
}

proptest::proptest! {
    #[test]
    fn compiled_expressions_equal_their_text(
        text in r#"(\$\{a\}|\$\{b\}|"\$\{a\}"|"|[0-9]{1,3}|[+*/%=<>&|!?:~() -]|abc){0,8}"#,
        a in r#"[0-9]{1,4}|-?[0-9]\.[0-9]|[a-c"(+ -]{0,3}"#,
        b in r"[0-9]{0,2}|x",
    ) {
        let mut env = TestEnv::new();
        env.set("a", &a);
        env.set("b", &b);
        let compiled = expression(&env, &text);
        let (mut fast, mut slow) = (String::new(), String::new());
        compiled.expand(&mut env, &mut fast);
        compiled.expand_slowly(&mut env, &mut slow);
        proptest::prop_assert_eq!(fast, slow);
    }

    #[test]
    fn no_expression_panics(text in "[0-9a-z\"+*/%=<>&|!?:~(), .-]{0,40}") {
        let mut out = String::new();
        expand_expression(&mut TestEnv::new(), &text, Values(&[]), &mut out);
    }
}

#[test]
fn what_stands_between_quotation_marks_stays_there_whatever_it_is() {
    for (name, text, value, expected) in [
        ("the same", r#"$["${v}" = "boss"]"#, "boss", "1"),
        ("another", r#"$["${v}" = "boss"]"#, "nobody", "0"),
        ("an or", r#"$["${v}" = "boss"]"#, r#"x" | "1"#, "0"),
        ("an or, by a function", r#"$["${TOUPPER(${v})}" = "BOSS"]"#, r#"x" | "1"#, "0"),
        ("an or, by a name", r#"$["${${n}}" = "boss"]"#, r#"x" | "1"#, "0"),
        ("with text beside it", r#"$["a${v}b" = "boss"]"#, r#"" | 1 | ""#, "0"),
        ("two of them", r#"$["${v}" = "${v}"]"#, r#"a" = "b"#, "1"),
        ("on the right", r#"$["boss" = "${v}"]"#, r#"" | "1"#, "0"),
        ("a quotation mark", r#"$["${v}" = "" | 0]"#, r#"""#, "0"),
        ("an end that is open", r#"$["${v}" = ""]"#, r#"" | ("#, "0"),
        ("a subject", r#"$["${v}" =~ "^[a-z]+$"]"#, r#"x" | "1"#, "0"),
        ("a choice", r#"$["${v}" ? 1 :: 2]"#, r#"" ? 3 :: ""#, "1"),
        ("a function", r#"$["${v}" = "abc"]"#, r#"" | LEN(abc) | ""#, "0"),
        ("a whole expression without marks", "$[${v}]", r#""a" = "a""#, "1"),
        ("operators without marks", "$[2 ${v}]", "+ 3", "5"),
        ("mathematics without marks", "$[${v}]", "SQRT(16)", "4"),
        ("a function without marks", "$[${v}]", "LEN(abc)", "0"),
        ("its name without marks", "$[${v}(abc)]", "LEN", "0"),
        ("a mark without marks", r#"$[${v} = "x"]"#, r#"""#, "0"),
        ("a word without marks", "$[${v} = boss]", "boss", "1"),
        ("text with its own marks", r#"$[${v} = "a b"]"#, r#""a b""#, "1"),
    ] {
        let mut env = TestEnv::new();
        env.set("v", value);
        env.set("n", "v");
        assert_eq!(env.expand(text), expected, "{name}");
    }
}

#[test]
fn loops_of_plain_variables_take_the_compiled_path() {
    let env = TestEnv::new();
    for text in ["${i}+1", "${i}<1000000", "\"${x}\"=\"\"", "${a:1}*${b}", "\"${x}\" =~ \"^[0-9]+$\""] {
        assert!(expression(&env, text).is_compiled(), "{text}");
    }
    assert!(!expression(&env, "${LEN(${x})} > 3").is_compiled());
}
