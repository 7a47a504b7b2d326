//! `musiconhold.conf`: classes of music.

use super::kind::{Folder, Lines, Millis, Text, YesNo, choice};
use super::{options, read_object, read_settings};
use base::{Digit, FormatId};
use conf::{File, Findings};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

choice! {
    /// `mode=`: where the music comes from.
    Mode {
        Files | "files" "Files of a folder.";
        Playlist | "playlist" "The files of entry= lines.";
        Custom | "custom" | "customnb" "What a program writes.";
        Mp3 | "mp3" | "mp3nb" | "quietmp3" | "quietmp3nb" "MP3 files of a folder; what a program writes where there is application=.";
    }
}
choice! {
    /// `sort=`: in which order files play.
    Sort {
        Unsorted | "none" | "" "As the folder gives them.";
        Alpha | "alpha" "By name.";
        Random | "random" | "yes" "In random order.";
        RandStart | "randstart" "By name, from a random one on.";
    }
}

choice! {
    /// `kill_method=`.
    KillMethod {
        Group | "process_group" "The program and those whom it has started.";
        Process | "process" "The program.";
    }
}

options! {
    /// `[general]` of `musiconhold.conf`.
    MusicGeneral, "musiconhold.conf", "general", IsIgnored;
    preferchannelclass: YesNo = "yes", "The class that the dialplan chose for a channel, `CHANNEL(musicclass)`, goes before the one that an application, a queue or the other party names.";
    @recognised {
        "cachertclasses" "no" Later "classes come from this file only";
    }
}

options! {
    /// A class of music.
    MusicClass, "musiconhold.conf", "class", IsIgnored;
    mode: Mode = "files", "Where the music comes from.";
    directory: Folder = "", "Folder of mode files; relative to astdatadir.";
    entry: Lines = "", "Files of mode playlist, in order, without extension.";
    sort: Sort = "none", "Order of the files.";
    random: YesNo = "no", "Old spelling of sort=random.";
    digit: Text = "", "Key that chooses the class for whoever hears music on hold.";
    announcement: Text = "", "Prompt between two pieces.";
    answeredonly: YesNo = "no", "Callers who are not answered do not hear it.";
    loop_last: YesNo = "no", "Once all pieces were heard, the last one is repeated for ever, instead of all of them.";
    application: Text = "", "Program of mode custom, and its arguments; the files of directory follow them.";
    format: Text = "slin", "What that program writes: slin, ulaw, alaw or slin16 to slin48. Files need none: the one that costs least to play is taken.";
    kill_escalation_delay: Millis<0, 60_000> = "500", "Milliseconds between SIGHUP, SIGTERM and SIGKILL when the program is to end.";
    kill_method: KillMethod = "process_group", "Who is to end then.";
    @recognised {
        "respawn" "*" Ignored "a program that ends is started again after a second, then ever later, up to a minute";
    }
}

/// `musiconhold.conf` as a whole.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Music {
    /// `[general]`.
    pub general: MusicGeneral,
    /// Classes by name; `default` is what everyone hears who chooses nothing.
    pub classes: BTreeMap<String, MusicClass>,
}

impl Music {
    /// Reads the file. A class that cannot play is skipped.
    pub fn read(file: &File, findings: &mut Findings) -> Self {
        let general = read_settings(file, "general", findings);
        let mut music = Self { general, classes: BTreeMap::new() };
        for section in file.objects().filter(|section| !section.name.eq_ignore_ascii_case("general")) {
            let Some(mut class) = read_object::<MusicClass>(section, findings, &mut |_, _, _| false) else {
                continue;
            };
            if class.random && class.sort == Sort::Unsorted {
                class.sort = Sort::Random;
            }
            let name = section.name.to_string();
            let refused = match class.mode {
                Mode::Custom if class.application.trim().is_empty() => {
                    Some(("mode", "has no application", "add application=/usr/bin/player"))
                }
                Mode::Custom | Mode::Mp3 if class.is_live() && class.live_format().is_none() => Some((
                    "format",
                    "has a format that no program can play to it",
                    "write slin, ulaw or alaw",
                )),
                Mode::Files | Mode::Mp3 if !class.is_live() && class.directory.as_os_str().is_empty() => {
                    Some(("mode", "has no directory", "add directory=moh"))
                }
                Mode::Playlist if class.entry.is_empty() => {
                    Some(("mode", "has no entry", "add entry=/path/to/file"))
                }
                Mode::Files | Mode::Playlist | Mode::Custom | Mode::Mp3 => None,
            };
            if let Some((option, why, remedy)) = refused {
                let message = format!("the music class '{name}' {why}; it is skipped");
                findings.error(class.origin.place_of(option), message, remedy);
                continue;
            }
            if !class.digit.is_empty() && class.key().is_none() {
                let message = format!("digit={} of the music class '{name}' is no key", class.digit);
                findings.warning(
                    class.origin.place_of("digit"),
                    message,
                    "write one of 0 to 9, *, #, A to D",
                );
            }
            if music.classes.insert(name, class).is_some() {
                let message =
                    format!("the music class [{}] was there already; the last one holds", section.name);
                findings.warning(&section.place, message, "remove one of them");
            }
        }
        music
    }
}

impl Music {
    /// Keys, and the classes that they choose; of two classes with one key the first by name has it.
    pub fn keys(&self) -> BTreeMap<char, String> {
        let mut keys = BTreeMap::new();
        for (name, class) in &self.classes {
            class.key().map(|key| keys.entry(key).or_insert_with(|| name.clone()));
        }
        keys
    }
}

impl MusicClass {
    /// The key that chooses it.
    pub fn key(&self) -> Option<char> {
        let mut characters = self.digit.trim().chars();
        let key = Digit::from_char(characters.next()?)?.to_char();
        characters.next().is_none().then_some(key)
    }
    /// Whether a program plays it.
    pub fn is_live(&self) -> bool {
        let has_program = !self.application.trim().is_empty();
        has_program && matches!(self.mode, Mode::Custom | Mode::Mp3)
    }
    /// What that program writes; `None`: nothing that is heard.
    pub fn live_format(&self) -> Option<FormatId> {
        let name = self.format.trim();
        let format = FormatId::from_name(if name.is_empty() { "slin" } else { name })?;
        (format.is_linear() || [FormatId::ULAW, FormatId::ALAW].contains(&format)).then_some(format)
    }
    /// The folder, which a relative name puts into the data folder.
    pub fn folder(&self, astdatadir: &Path) -> PathBuf {
        astdatadir.join(&self.directory)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_plays_where_one_is_named_and_a_class_without_a_source_is_skipped() {
        for (lines, live, said) in [
            ("mode=custom\napplication=/bin/player -q", Some(Some(FormatId::SLIN)), ""),
            ("mode=custom\napplication=/bin/player\nformat=ulaw", Some(Some(FormatId::ULAW)), ""),
            ("mode=mp3\napplication=/bin/player\ndirectory=songs", Some(Some(FormatId::SLIN)), ""),
            ("mode=quietmp3\ndirectory=songs", Some(None), ""),
            ("mode=files\ndirectory=songs\napplication=/bin/player", Some(None), ""),
            ("mode=files\ndirectory=songs\ndigit=#", Some(None), ""),
            ("mode=files\ndirectory=songs\ndigit=12", Some(None), "is no key"),
            ("mode=custom", None, "has no application"),
            ("mode=custom\napplication=/bin/player\nformat=g729", None, "no program can play"),
            ("mode=mp3", None, "has no directory"),
        ] {
            let mut findings = Findings::new();
            let source = conf::Memory::new().with("musiconhold.conf", format!("[own]\n{lines}\n"));
            let file =
                conf::load(&source, "musiconhold.conf", conf::Options::default(), &mut findings).unwrap();
            let music = Music::read(&file, &mut findings);
            let key = lines.contains("digit=#").then_some(('#', "own".to_owned()));
            assert_eq!(music.keys(), key.into_iter().collect(), "{lines}");
            let found = music.classes.get("own");
            let format = |class: &MusicClass| if class.is_live() { class.live_format() } else { None };
            assert_eq!(found.map(format), live, "{lines}");
            let words: Vec<_> = findings.iter().map(|finding| finding.message.as_str()).collect();
            assert!(words.concat().contains(said), "{lines}: {words:?}");
            assert_eq!(words.is_empty(), said.is_empty(), "{lines}: {words:?}");
        }
    }
}
