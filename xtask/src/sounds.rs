//! The sounds of `assets`: each prompt is made, and each that the program names is there.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::Context;

use crate::sources::File;

/// How names of sounds begin, one family of applications each.
const FAMILIES: &[&str] = &[
    "agent-",
    "auth-",
    "call-fwd-",
    "conf-",
    "dictate/",
    "dir-",
    "do-not-disturb",
    "followme/",
    "pbx-",
    "priv-",
    "privacy-",
    "queue-",
    "screen-",
    "vm-",
];
/// What begins like one and is none: options of the same name as what they say, and words of other kinds.
const OTHERS: &[&str] = &[
    "auth-int",
    "auth-int,auth",
    "dir-multi",
    "priv-callerintros",
    "privacy-id",
    "queue-callerannounce",
    "queue-lessthan",
    "vm-prepend-timeout",
];

/// What is wrong, a line each.
pub fn check(root: &Path, files: &[File]) -> anyhow::Result<Vec<String>> {
    let assets = root.join("assets");
    let prompts = std::fs::read_to_string(assets.join("prompts.txt")).context("assets/prompts.txt")?;
    let lines = prompts.lines().filter(|line| !line.starts_with('#'));
    let said: BTreeSet<&str> = lines.filter_map(|line| Some(line.split_once('\t')?.0)).collect();
    let is_made = |name: &str| assets.join("sounds/en").join(format!("{name}.g722")).is_file();
    let unmade = said.iter().filter(|name| !is_made(name));
    let mut broken: Vec<String> = unmade
        .map(|name| format!("assets/prompts.txt: {name} is not made; run assets/make-assets.sh"))
        .collect();
    let named = files.iter().filter(|file| file.path.starts_with("crates/") && file.path.contains("/src/"));
    for file in named {
        for (number, name) in
            file.program_lines().flat_map(|(number, line)| names(line).map(move |name| (number, name)))
        {
            if !is_made(name) {
                let place = format!("{}:{}", file.path, number + 1);
                broken
                    .push(format!("{place}: there is no sound '{name}'; write a line of assets/prompts.txt"));
            }
        }
    }
    Ok(broken)
}

/// The sounds that a line names.
fn names(line: &str) -> impl Iterator<Item = &str> {
    let code = if line.trim_start().starts_with("//") { "" } else { line };
    let literals = code.split('"').skip(1).step_by(2);
    let is_name =
        |text: &&str| text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-/_".contains(&byte));
    let is_sound =
        |text: &&str| FAMILIES.iter().any(|family| text.starts_with(family) && text.len() > family.len() - 1);
    literals
        .filter(is_name)
        .filter(is_sound)
        .filter(|text| !OTHERS.contains(text) && !FAMILIES.contains(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sounds_are_told_from_options_and_comments() {
        for (line, expected) in [
            (r##"self.say(&["vm-intro", "vm-theperson"], "#").await?"##, vec!["vm-intro", "vm-theperson"]),
            (r#"say(vec![format!("dir-multi{key}")])"#, vec![]),
            (r#"(name, "auth-int")"#, vec![]),
            (r#"/// Plays "vm-nothing"."#, vec![]),
            (r#"("PJSIP/6001", "queue-")"#, vec![]),
        ] {
            assert_eq!(names(line).collect::<Vec<_>>(), expected, "{line}");
        }
    }
}
