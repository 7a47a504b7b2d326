//! What may be linked into a program that is Apache-2.0 OR MIT. `deny.toml` says the same to cargo-deny.

use crate::workspace::Package;

/// Licences that ask for no more than a notice.
const ALLOWED: &[&str] = &[
    "0BSD",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSL-1.0",
    "CC0-1.0",
    "ISC",
    "MIT",
    "MIT-0",
    "Unicode-3.0",
    "Unlicense",
    "Zlib",
];

/// Packages that must not come in, whatever their own label says.
const BANNED: &[(&str, &str)] = &[
    ("audio-codec", "switches g729-sys on by default"),
    ("audiopus", "dead since 2021"),
    ("bcg729", "GPL-3"),
    ("g729-sys", "a line port of bcg729, which is GPL-3, whatever its label says"),
    ("rsip", "dead since 2022"),
    ("sipral", "AGPL"),
    ("spandsp", "LGPL: only in a process of its own"),
    ("turn-rs", "GPL-2"),
];

/// Every package whose licence is not on the list or that is banned.
pub fn check(packages: &[Package]) -> Vec<String> {
    let mut broken = Vec::new();
    for Package { name, version, license } in packages {
        if let Some((_, why)) = BANNED.iter().find(|(banned, _)| banned == name) {
            broken.push(format!("{name} {version} is banned: {why}"));
        }
        if license.is_empty() {
            broken.push(format!("{name} {version} names no licence"));
        } else if !allows(license) {
            broken.push(format!("{name} {version} is under '{license}', which is not on the list"));
        }
    }
    broken
}

/// Whether an SPDX expression can be met from the list: one side of each OR, both of each AND.
fn allows(expression: &str) -> bool {
    // The old form `MIT/Apache-2.0` means OR.
    let spaced = expression.replace('/', " OR ").replace('(', " ( ").replace(')', " ) ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let mut rest = words.as_slice();
    any(&mut rest) && rest.is_empty()
}

fn any(rest: &mut &[&str]) -> bool {
    let mut met = all(rest);
    while let ["OR", after @ ..] = *rest {
        *rest = after;
        met |= all(rest);
    }
    met
}

fn all(rest: &mut &[&str]) -> bool {
    let mut met = one(rest);
    while let ["AND", after @ ..] = *rest {
        *rest = after;
        met &= one(rest);
    }
    met
}

fn one(rest: &mut &[&str]) -> bool {
    match *rest {
        ["(", after @ ..] => {
            *rest = after;
            let met = any(rest);
            let [")", after @ ..] = *rest else { return false };
            *rest = after;
            met
        }
        [name, "WITH", exception, after @ ..] => {
            *rest = after;
            ALLOWED.contains(&format!("{name} WITH {exception}").as_str())
        }
        [name, after @ ..] => {
            *rest = after;
            ALLOWED.contains(name)
        }
        [] => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spdx_expressions_are_met_by_one_side_of_or_and_both_of_and() {
        for (expression, expected) in [
            ("MIT", true),
            ("MIT/Apache-2.0", true),
            ("MIT OR GPL-3.0-only", true),
            ("GPL-2.0-only AND MIT", false),
            ("(MIT OR Apache-2.0) AND Unicode-3.0", true),
            ("(MIT OR Apache-2.0) AND LGPL-2.1-only", false),
            ("Apache-2.0 WITH LLVM-exception OR Apache-2.0 OR MIT", true),
            ("GPL-2.0 WITH Classpath-exception-2.0", false),
            ("MPL-2.0", false),
            ("(MIT", false),
            ("MIT Apache-2.0", false),
        ] {
            assert_eq!(allows(expression), expected, "{expression}");
        }
    }

    #[test]
    fn a_banned_package_is_refused_under_any_label() {
        let package = |name: &str, license: &str| Package {
            name: name.into(),
            version: "1.0.0".into(),
            license: license.into(),
        };
        let broken =
            check(&[package("g729-sys", "MIT"), package("memchr", "Unlicense OR MIT"), package("x", "")]);
        assert_eq!(broken.len(), 2, "{broken:?}");
        assert!(broken[0].contains("line port") && broken[1].contains("names no licence"), "{broken:?}");
    }
}
