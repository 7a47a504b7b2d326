//! Numbers, ordinals, dates and nouns in every language that is known, as the files that are played.

use dialplan::zone::Civil;

use super::counted::{adjective_suffix, noun_suffix};
use super::*;

/// Files of `digits/` by their names; what is elsewhere has a slash before it.
fn shown(files: &[String]) -> String {
    let name = |file: &String| file.strip_prefix("digits/").map_or_else(|| format!("/{file}"), str::to_owned);
    files.iter().map(name).collect::<Vec<_>>().join(" ")
}

fn check_numbers(tongue: Tongue, gender: Gender, rows: &[(i64, &str)]) {
    for (value, expected) in rows {
        assert_eq!(shown(&number(tongue, *value, gender)), *expected, "{tongue:?} {gender:?} {value}");
    }
}

#[test]
fn up_to_twenty_every_language_has_files_of_its_own_for_its_words() {
    use Tongue::*;
    for tongue in [
        English, British, Danish, Dutch, French, German, Italian, Polish, Portuguese, Russian, Spanish,
        Swedish,
    ] {
        for value in 0..=20 {
            assert_eq!(shown(&number(tongue, value, Gender::Plain)), value.to_string(), "{tongue:?}");
        }
    }
    for tongue in [Japanese, Mandarin] {
        check_numbers(
            tongue,
            Gender::Plain,
            &[(0, "0"), (9, "9"), (10, "10"), (11, "10 1"), (19, "10 9"), (20, "20")],
        );
    }
}

#[test]
fn numbers_of_english() {
    check_numbers(
        Tongue::English,
        Gender::Plain,
        &[
            (-3, "minus 3"),
            (21, "20 1"),
            (30, "30"),
            (45, "40 5"),
            (99, "90 9"),
            (100, "1 hundred"),
            (101, "1 hundred 1"),
            (121, "1 hundred 20 1"),
            (200, "2 hundred"),
            (999, "9 hundred 90 9"),
            (1000, "1 thousand"),
            (1001, "1 thousand 1"),
            (1100, "1 thousand 1 hundred"),
            (2000, "2 thousand"),
            (12_345, "12 thousand 3 hundred 40 5"),
            (21_000, "20 1 thousand"),
            (1_000_000, "1 million"),
            (2_000_001, "2 million 1"),
            (3_000_000_000, "3 billion"),
        ],
    );
    check_numbers(
        Tongue::British,
        Gender::Plain,
        &[
            (100, "1 hundred"),
            (121, "1 hundred /vm-and 20 1"),
            (1001, "1 thousand /vm-and 1"),
            (1100, "1 thousand 1 hundred"),
        ],
    );
}

#[test]
fn numbers_of_german_have_ones_before_tens_and_three_genders() {
    check_numbers(
        Tongue::German,
        Gender::Plain,
        &[
            (1, "1"),
            (21, "1-and 20"),
            (30, "30"),
            (45, "5-and 40"),
            (99, "9-and 90"),
            (100, "hundred"),
            (101, "1N hundred 1"),
            (121, "1N hundred 1-and 20"),
            (200, "2 hundred"),
            (999, "9 hundred 9-and 90"),
            (1000, "thousand"),
            (1001, "1N thousand 1"),
            (1100, "1N thousand 1N hundred"),
            (2000, "2 thousand"),
            (21_000, "1-and 20 thousand"),
            (1_000_000, "1F million"),
            (2_000_001, "2 millions 1"),
            (1_000_000_000, "1F milliard"),
            (2_000_000_000, "2 milliards"),
        ],
    );
    check_numbers(Tongue::German, Gender::Feminine, &[(1, "1F"), (21, "1-and 20"), (101, "1N hundred 1F")]);
    check_numbers(Tongue::German, Gender::Neuter, &[(1, "1N"), (2, "2")]);
    check_numbers(Tongue::German, Gender::Masculine, &[(1, "1")]);
}

#[test]
fn numbers_of_french_count_in_twenties_above_sixty() {
    check_numbers(
        Tongue::French,
        Gender::Plain,
        &[
            (21, "20 et 1"),
            (30, "30"),
            (45, "40 5"),
            (70, "60 10"),
            (71, "60 et 11"),
            (79, "60 19"),
            (80, "80"),
            (81, "80 1"),
            (91, "80 11"),
            (99, "80 19"),
            (100, "hundred"),
            (101, "hundred 1"),
            (121, "hundred 20 et 1"),
            (200, "2 hundred"),
            (999, "9 hundred 80 19"),
            (1000, "thousand"),
            (1001, "thousand 1"),
            (1100, "thousand hundred"),
            (2000, "2 thousand"),
            (21_000, "20 et 1 thousand"),
            (1_000_000, "1 million"),
            (2_000_001, "2 million 1"),
        ],
    );
    check_numbers(
        Tongue::French,
        Gender::Feminine,
        &[(1, "1F"), (21, "20 et 1F"), (21_001, "20 et 1 thousand 1F")],
    );
}

#[test]
fn numbers_of_spanish() {
    check_numbers(
        Tongue::Spanish,
        Gender::Plain,
        &[
            (21, "21"),
            (30, "30"),
            (45, "40 and 5"),
            (99, "90 and 9"),
            (100, "hundred"),
            (101, "100-and 1"),
            (121, "100-and 21"),
            (200, "200"),
            (999, "900 90 and 9"),
            (1000, "thousand"),
            (1001, "thousand 1"),
            (1100, "thousand hundred"),
            (2000, "2 thousand"),
            (21_000, "21 thousand"),
            (1_000_000, "1M million"),
            (2_000_001, "2 millions 1"),
        ],
    );
    check_numbers(Tongue::Spanish, Gender::Feminine, &[(1, "1F"), (31, "30 and 1F"), (101, "100-and 1F")]);
    check_numbers(Tongue::Spanish, Gender::Masculine, &[(1, "1M"), (1001, "thousand 1M")]);
}

#[test]
fn numbers_of_italian_run_together_before_a_vowel() {
    check_numbers(
        Tongue::Italian,
        Gender::Plain,
        &[
            (21, "21"),
            (22, "20 2"),
            (28, "28"),
            (30, "30"),
            (45, "40 5"),
            (98, "98"),
            (99, "90 9"),
            (100, "hundred"),
            (101, "hundred 1"),
            (121, "hundred 21"),
            (200, "2 hundred"),
            (999, "9 hundred 90 9"),
            (1000, "thousand"),
            (1001, "thousand 1"),
            (1100, "thousand hundred"),
            (2000, "2 thousands"),
            (21_000, "21 thousands"),
            (1_000_000, "un million"),
            (2_000_001, "2 millions 1"),
        ],
    );
}

#[test]
fn numbers_of_portuguese_join_their_parts() {
    check_numbers(
        Tongue::Portuguese,
        Gender::Plain,
        &[
            (21, "20 pt-e 1"),
            (30, "30"),
            (45, "40 pt-e 5"),
            (99, "90 pt-e 9"),
            (100, "100"),
            (101, "100E pt-e 1"),
            (121, "100E pt-e 20 pt-e 1"),
            (200, "200"),
            (999, "900 pt-e 90 pt-e 9"),
            (1000, "1000"),
            (1001, "1000 pt-e 1"),
            (1100, "1000 pt-e 100"),
            (1121, "1000 100E pt-e 20 pt-e 1"),
            (2000, "2 1000"),
            (21_000, "20 pt-e 1 1000"),
            (1_000_000, "1 1000000"),
            (2_000_001, "2 1000000S 1"),
        ],
    );
    check_numbers(
        Tongue::Portuguese,
        Gender::Feminine,
        &[(1, "1F"), (2, "2F"), (200, "200F"), (2000, "2F 1000")],
    );
}

#[test]
fn numbers_of_dutch_danish_and_swedish() {
    check_numbers(
        Tongue::Dutch,
        Gender::Plain,
        &[
            (21, "1-en 20"),
            (45, "5-en 40"),
            (99, "9-en 90"),
            (100, "hundred"),
            (101, "hundred 1"),
            (121, "hundred 1-en 20"),
            (200, "2 hundred"),
            (999, "9 hundred 9-en 90"),
            (1000, "thousand"),
            (1001, "thousand 1"),
            (1100, "11 hundred"),
            (2000, "2 thousand"),
            (21_000, "1-en 20 thousand"),
            (1_000_000, "1 million"),
            (2_000_001, "2 million 1"),
        ],
    );
    check_numbers(
        Tongue::Danish,
        Gender::Plain,
        &[
            (21, "1-and 20"),
            (45, "5-and 40"),
            (99, "9-and 90"),
            (100, "1N hundred"),
            (101, "1N hundred and 1"),
            (121, "1N hundred and 1-and 20"),
            (200, "2 hundred"),
            (999, "9 hundred and 9-and 90"),
            (1000, "1N thousand"),
            (1001, "1N thousand and 1"),
            (1100, "1N thousand 1N hundred"),
            (2000, "2 thousand"),
            (21_000, "1-and 20 thousand"),
            (1_000_000, "1 million"),
            (2_000_001, "2 millions and 1"),
        ],
    );
    check_numbers(Tongue::Danish, Gender::Neuter, &[(1, "1N")]);
    check_numbers(
        Tongue::Swedish,
        Gender::Plain,
        &[
            (21, "20 1"),
            (45, "40 5"),
            (99, "90 9"),
            (100, "1N hundred"),
            (101, "1N hundred 1"),
            (121, "1N hundred 20 1"),
            (200, "2 hundred"),
            (999, "9 hundred 90 9"),
            (1000, "1N thousand"),
            (1001, "1N thousand 1"),
            (1100, "1N thousand 1N hundred"),
            (2000, "2 thousand"),
            (21_000, "20 1N thousand"),
            (1_000_000, "1 million"),
            (2_000_001, "2 millions 1"),
        ],
    );
    check_numbers(Tongue::Swedish, Gender::Neuter, &[(1, "1N"), (21, "20 1N")]);
}

#[test]
fn numbers_of_polish_and_russian_decline_thousands() {
    check_numbers(
        Tongue::Polish,
        Gender::Plain,
        &[
            (21, "20 1"),
            (45, "40 5"),
            (99, "90 9"),
            (100, "100"),
            (101, "100 1"),
            (121, "100 20 1"),
            (200, "200"),
            (999, "900 90 9"),
            (1000, "1000"),
            (1001, "1000 1"),
            (1100, "1000 100"),
            (2000, "2 1000.2"),
            (5000, "5 1000.5"),
            (12_000, "12 1000.5"),
            (21_000, "20 1 1000.5"),
            (22_000, "20 2 1000.2"),
            (1_000_000, "1000000"),
            (2_000_001, "2 1000000.2 1"),
        ],
    );
    check_numbers(Tongue::Polish, Gender::Feminine, &[(1, "1z"), (2, "2z"), (21, "20 1"), (22, "20 2z")]);
    check_numbers(Tongue::Polish, Gender::Neuter, &[(1, "1n"), (2, "2")]);
    check_numbers(
        Tongue::Russian,
        Gender::Plain,
        &[
            (21, "20 1"),
            (45, "40 5"),
            (99, "90 9"),
            (100, "100"),
            (101, "100 1"),
            (121, "100 20 1"),
            (200, "200"),
            (999, "900 90 9"),
            (1000, "1f thousand"),
            (1001, "1f thousand 1"),
            (1100, "1f thousand 100"),
            (2000, "2f thousands-i"),
            (5000, "5 thousands"),
            (11_000, "11 thousands"),
            (21_000, "20 1f thousand"),
            (1_000_000, "1 million"),
            (2_000_001, "2 million-a 1"),
            (5_000_000, "5 millions"),
        ],
    );
    check_numbers(Tongue::Russian, Gender::Feminine, &[(1, "1f"), (2, "2f"), (21, "20 1f")]);
    check_numbers(Tongue::Russian, Gender::Neuter, &[(1, "1n"), (2, "2")]);
}

#[test]
fn numbers_of_japanese_and_mandarin_count_in_ten_thousands() {
    check_numbers(
        Tongue::Japanese,
        Gender::Plain,
        &[
            (21, "20 1"),
            (45, "40 5"),
            (99, "90 9"),
            (100, "100"),
            (101, "100 1"),
            (121, "100 20 1"),
            (300, "300"),
            (999, "900 90 9"),
            (1000, "1000"),
            (1001, "1000 1"),
            (1100, "1000 100"),
            (2000, "2000"),
            (21_000, "2 10000 1000"),
            (1_000_000, "100 10000"),
            (2_000_001, "200 10000 1"),
            (300_000_000, "3 100000000"),
        ],
    );
    check_numbers(
        Tongue::Mandarin,
        Gender::Plain,
        &[
            (21, "20 1"),
            (45, "40 5"),
            (99, "90 9"),
            (100, "1 hundred"),
            (101, "1 hundred 0 1"),
            (110, "1 hundred 1 10"),
            (121, "1 hundred 20 1"),
            (200, "2 hundred"),
            (999, "9 hundred 90 9"),
            (1000, "1 thousand"),
            (1001, "1 thousand 0 1"),
            (1100, "1 thousand 1 hundred"),
            (2000, "2 thousand"),
            (21_000, "2 wan 1 thousand"),
            (1_000_000, "1 hundred wan"),
            (2_000_001, "2 hundred wan 0 1"),
            (300_000_000, "3 yi"),
        ],
    );
}

#[test]
fn ordinals_are_those_of_their_language() {
    for (tongue, value, gender, expected) in [
        (Tongue::English, 1, Gender::Plain, "h-1"),
        (Tongue::English, 21, Gender::Plain, "20 h-1"),
        (Tongue::English, 100, Gender::Plain, "1 h-hundred"),
        (Tongue::English, 2_000_000, Gender::Plain, "2 h-million"),
        (Tongue::German, 1, Gender::Masculine, "h-1"),
        (Tongue::German, 1, Gender::Feminine, "h-1F"),
        (Tongue::German, 3, Gender::Neuter, "h-3"),
        (Tongue::German, 21, Gender::Plain, "1-and h-20"),
        (Tongue::German, 100, Gender::Plain, "h-hundred"),
        (Tongue::Danish, 21, Gender::Plain, "1-and h-20"),
        (Tongue::Dutch, 21, Gender::Plain, "1-en h-20"),
        (Tongue::Swedish, 21, Gender::Plain, "20 h-1"),
        (Tongue::French, 1, Gender::Feminine, "h-1"),
        (Tongue::French, 22, Gender::Plain, "20 h-2"),
        (Tongue::Spanish, 21, Gender::Plain, "h-20 h-1"),
        (Tongue::Italian, 12, Gender::Plain, "h-12"),
        (Tongue::Portuguese, 30, Gender::Plain, "h-30"),
        (Tongue::Polish, 22, Gender::Plain, "h-20 h-2"),
        (Tongue::Russian, 22, Gender::Feminine, "20 h-2"),
        (Tongue::Japanese, 3, Gender::Plain, "dai 3"),
        (Tongue::Mandarin, 3, Gender::Plain, "di 3"),
    ] {
        assert_eq!(shown(&ordinal(tongue, value, gender)), expected, "{tongue:?} {value}");
    }
}

/// Saturday 2026-11-21 22:05:09 UTC.
const EVENING: i64 = 1_795_298_709;

#[test]
fn every_language_says_a_moment_in_its_own_order() {
    let then = Civil::at(EVENING, 0);
    for (tongue, expected) in [
        (Tongue::English, "day-6 mon-10 20 h-1 2 thousand 20 6 at 10 oh 5 p-m"),
        (Tongue::British, "day-6 mon-10 20 h-1 2 thousand /vm-and 20 6 at 10 oh 5 p-m"),
        (Tongue::Danish, "day-6 1-and h-20 mon-10 2 thousand and 6-and 20 2-and 20 5 9"),
        (Tongue::German, "day-6 1-and h-20 mon-10 2 thousand 6-and 20 2-and 20 oclock 5 9"),
        (Tongue::Dutch, "day-6 1-en 20 mon-10 2 thousand 6-en 20 at 2-en 20 oclock 5"),
        (Tongue::French, "day-6 20 et 1 mon-10 2 thousand 20 6 at 20 2 oclock 5"),
        (Tongue::Italian, "day-6 21 mon-10 2 thousands 20 6 at 20 2 5"),
        (Tongue::Spanish, "es-el day-6 21 es-de mon-10 es-de 2 thousand 26 at 10 5 p-m"),
        (Tongue::Portuguese, "day-6 20 pt-e 1 pt-de mon-10 pt-de 2 1000 pt-e 20 pt-e 6 20 pt-e 2F pt-e 5"),
        (Tongue::Swedish, "day-6 20 h-1 mon-10 2 thousand 20 6 20 2 5"),
        (Tongue::Polish, "day-6 h-20 h-1 mon-10 2 1000.2 20 6 at h-20 h-2 5"),
        (Tongue::Russian, "day-6 20 h-1 mon-10 2f thousands-i 20 6 20 2 5"),
        (Tongue::Japanese, "2000 20 6 nen mon-10 20 1 nichi day-6 20 2 ji 5 fun"),
        (Tongue::Mandarin, "2 0 2 6 year mon-10 20 1 day day-6 20 2 oclock 5 /minute"),
    ] {
        let files = moment(tongue, then, then, default_format(tongue));
        assert_eq!(shown(&files), expected, "{tongue:?}");
    }
}

#[test]
fn each_letter_of_a_format_says_its_part() {
    // Monday 1905-05-01 01:00:30 UTC.
    let early = Civil::at(-2_040_850_770, 0);
    let today = Civil::at(EVENING, 0);
    for (tongue, format, expected) in [
        (Tongue::English, "AaBbh", "day-1 day-1 mon-4 mon-4 mon-4"),
        (Tongue::English, "dem", "h-1 h-1 h-5"),
        (Tongue::English, "Y", "19 oh 5"),
        (Tongue::English, "IlHk", "1 1 oh 1 1"),
        (Tongue::English, "M", "oclock"),
        (Tongue::English, "Sp", "30 a-m"),
        (Tongue::English, "R", "oh 1 oclock"),
        (Tongue::English, "T", "oh 1 oclock 30"),
        (Tongue::English, "'/tmp/jingle'A", "//tmp/jingle day-1"),
        (Tongue::English, "Q", "day-1 mon-4 h-1 19 oh 5"),
        (Tongue::German, "dY", "h-1 19 hundred 5"),
        (Tongue::German, "HM", "1N oclock"),
        (Tongue::German, "Q", "day-1 h-1 mon-4 19 hundred 5"),
        (Tongue::French, "dHM", "h-1 1F oclock"),
        (Tongue::Italian, "HM", "ore-una"),
        (Tongue::Spanish, "IM", "1F"),
        (Tongue::Polish, "H", "h-1"),
        (Tongue::Mandarin, "Y", "1 9 0 5 year"),
    ] {
        assert_eq!(shown(&moment(tongue, early, today, format)), expected, "{tongue:?} {format}");
    }
}

#[test]
fn dates_near_today_are_said_by_name() {
    let today = Civil::at(EVENING, 0);
    for (days, expected) in [(0, "today"), (1, "yesterday"), (3, "day-3")] {
        let then = Civil::at(EVENING - days * 86_400, 0);
        assert_eq!(shown(&moment(Tongue::English, then, today, "Q")), expected, "{days} days ago");
    }
    assert!(moment(Tongue::English, today, today, "q").is_empty());
}

#[test]
fn what_is_counted_has_the_form_that_goes_with_the_number() {
    for (tongue, count, noun, adjective) in [
        (Tongue::English, 1, "", ""),
        (Tongue::English, 0, "s", ""),
        (Tongue::English, 21, "s", ""),
        (Tongue::German, 2, "s", ""),
        (Tongue::Russian, 1, "", "a"),
        (Tongue::Russian, 21, "", "a"),
        (Tongue::Russian, 3, "x1", "x"),
        (Tongue::Russian, 12, "x2", "x"),
        (Tongue::Russian, 5, "x2", "x"),
        (Tongue::Polish, 1, "", "a"),
        (Tongue::Polish, 21, "x2", "x"),
        (Tongue::Polish, 22, "x1", "x"),
        (Tongue::Mandarin, 5, "", ""),
    ] {
        assert_eq!(noun_suffix(tongue, count), noun, "{tongue:?} {count}");
        assert_eq!(adjective_suffix(tongue, count, Gender::Feminine), adjective, "{tongue:?} {count}");
    }
    for (letter, expected) in [("m", ""), ("f", "a"), ("n", "o"), ("c", ""), ("", "")] {
        assert_eq!(adjective_suffix(Tongue::Russian, 1, Gender::of(letter)), expected, "{letter}");
    }
}

#[test]
fn languages_are_known_by_their_base() {
    for (language, expected) in [
        ("en", Tongue::English),
        ("en_US", Tongue::English),
        ("en_GB", Tongue::British),
        ("de", Tongue::German),
        ("de_AT", Tongue::German),
        ("DE", Tongue::German),
        ("es-mx", Tongue::Spanish),
        ("pt_BR", Tongue::Portuguese),
        ("zh_TW", Tongue::Mandarin),
        ("tlh", Tongue::English),
        ("", Tongue::English),
    ] {
        assert_eq!(Tongue::of(language), expected, "{language}");
    }
}

#[test]
fn money_letters_and_marks_have_files_and_others_are_passed_over() {
    assert_eq!(spelled("A1-"), ["letters/a", "digits/1", "letters/dash"]);
    assert_eq!(phonetic("b"), ["phonetic/b_p"]);
    assert_eq!(digits("1*#x"), ["digits/1", "digits/star", "digits/pound"]);
    assert_eq!(
        with_case("a", "aB1").unwrap_or_default(),
        ["lowercase", "letters/a", "uppercase", "letters/b", "digits/1"]
    );
    assert_eq!(with_case("u", "aB").unwrap_or_default(), ["letters/a", "uppercase", "letters/b"]);
    assert_eq!(with_case("n", "aB").unwrap_or_default(), ["letters/a", "letters/b"]);
    assert_eq!(with_case("x", "aB"), None);
    for (amount, expected) in [
        ("0", Some("0 /cents")),
        ("0.01", Some("1 /cent")),
        (".42", Some("40 2 /cents")),
        ("1", Some("1 /letters/dollar")),
        ("$1.4", Some("1 /letters/dollar /and 40 /cents")),
        ("-2.429", Some("minus 2 /dollars /and 40 2 /cents")),
        ("", None),
        (".", None),
        ("ten", None),
    ] {
        assert_eq!(money(amount).map(|files| shown(&files)).as_deref(), expected, "{amount}");
    }
}
