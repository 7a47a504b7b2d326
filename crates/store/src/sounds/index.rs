//! Which sounds there are, in which languages and formats: for programs that ask (ARI).

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use include_dir::Dir;

use super::catalogue::BUNDLED;

/// Most sounds that are listed: several languages of all that Debian's packages hold.
const SOUNDS_MAX: usize = 20_000;
/// How deep folders of sounds are looked into: `en/digits/at` is two deep.
const DEPTH_MAX: usize = 6;

/// Languages and formats of each sound, by its name.
pub type Listed = BTreeMap<String, BTreeSet<(String, &'static str)>>;

/// The sounds in folders that are named for languages, and those of the binary.
pub(super) fn listed(folders: &[std::path::PathBuf]) -> Listed {
    let mut all = Listed::new();
    for folder in folders {
        for (language, path) in entries(folder).filter(|(name, path)| is_language(name) && path.is_dir()) {
            walk(&path, "", &language, DEPTH_MAX, &mut all);
        }
    }
    for folder in BUNDLED.get_dir("sounds").into_iter().flat_map(Dir::dirs) {
        let name = folder.path().file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let files = folder.files().filter_map(|file| file.path().file_name()?.to_str());
        files.for_each(|file| add(file, "", name, &mut all));
    }
    all
}

fn entries(folder: &Path) -> impl Iterator<Item = (String, std::path::PathBuf)> {
    let read = std::fs::read_dir(folder).into_iter().flatten().flatten();
    read.filter_map(|entry| Some((entry.file_name().into_string().ok()?, entry.path())))
}

/// `en`, `de_AT`, `es_MX_f_Allison`.
fn is_language(name: &str) -> bool {
    let mut parts = name.split('_');
    let is_base = parts.next().is_some_and(|base| {
        (2..=3).contains(&base.len()) && base.bytes().all(|byte| byte.is_ascii_lowercase())
    });
    is_base && parts.all(|part| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_alphanumeric()))
}

fn walk(folder: &Path, below: &str, language: &str, depth: usize, all: &mut Listed) {
    for (name, path) in entries(folder) {
        if all.len() >= SOUNDS_MAX {
            return;
        }
        if path.is_file() {
            add(&name, below, language, all);
        } else if depth > 0 && !name.starts_with('.') {
            walk(&path, &format!("{below}{name}/"), language, depth - 1, all);
        }
    }
}

/// A file, if it is a sound.
fn add(file: &str, below: &str, language: &str, all: &mut Listed) {
    let Some((stem, extension)) = file.rsplit_once('.') else { return };
    let format = codec::extensions().find(|known| *known == extension).and_then(codec::extension_format);
    if let Some(format) = format.filter(|_| !stem.is_empty()) {
        all.entry(format!("{below}{stem}")).or_default().insert((language.to_owned(), format.name()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sounds_are_listed_by_name_with_languages_and_formats() {
        let folder = std::env::temp_dir().join(format!("strowger-index-{}", std::process::id()));
        for file in
            ["en/hello.sln", "en/hello.gsm", "en/digits/1.ulaw", "de_AT/hello.wav", "music/x.wav", "en/a.txt"]
        {
            let path = folder.join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "").unwrap();
        }
        let all = listed(std::slice::from_ref(&folder));
        let pairs = |name: &str| {
            let found = all.get(name).into_iter().flatten();
            found.map(|(language, format)| format!("{language} {format}")).collect::<Vec<_>>().join(", ")
        };
        for (name, expected) in
            // The binary has one of that name too.
            [
                ("hello", "de_AT slin, en g722, en gsm, en slin"),
                ("digits/1", "en ulaw"),
                ("x", ""),
                ("a", ""),
            ]
        {
            assert_eq!(pairs(name), expected, "{name}");
        }
        std::fs::remove_dir_all(folder).unwrap();
    }
}
