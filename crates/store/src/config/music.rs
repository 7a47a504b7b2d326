//! `musiconhold.conf`: classes of music.

use super::kind::{Folder, Lines, Text, YesNo, choice};
use super::{options, read_object, read_settings};
use conf::{File, Findings};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

choice! {
    /// `mode=`: where the music comes from.
    Mode {
        Files | "files" "Files of a folder.";
        Playlist | "playlist" "The files of entry= lines.";
        Custom | "custom" | "customnb" "A program; not built in.";
        Mp3 | "mp3" | "mp3nb" | "quietmp3" | "quietmp3nb" "A player for MP3; not built in.";
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

options! {
    /// `[general]` of `musiconhold.conf`.
    MusicGeneral, "musiconhold.conf", "general", IsIgnored;
    preferchannelclass: YesNo = "yes", "The class of the channel goes before the one an application asks for.",
        Later "no" "the class that an application names goes first";
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
    digit: Text = "", "Key that chooses the class for a caller who hears music.",
        Later "" "the class cannot be chosen by a key";
    announcement: Text = "", "Prompt between two pieces.",
        Later "" "nothing is announced";
    loop_last: YesNo = "no", "Repeat the last entry of a playlist for ever.",
        Later "no" "the whole list is repeated";
    format: Text = "", "Preferred format of the files.",
        Later "*" "of each piece the file that costs least to play is taken";
    @recognised {
        "application" "" Later "no program is started for music";
        "answeredonly" "no" Later "callers who are not answered hear it too";
        "kill_escalation_delay" "*" Later "no program is started for music";
        "kill_method" "*" Later "no program is started for music";
        "respawn" "*" Later "no program is started for music";
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
                Mode::Custom | Mode::Mp3 => {
                    Some(("mode", "plays from a program, which is not built in", "use mode=files"))
                }
                Mode::Files if class.directory.as_os_str().is_empty() => {
                    Some(("mode", "has no directory", "add directory=moh"))
                }
                Mode::Playlist if class.entry.is_empty() => {
                    Some(("mode", "has no entry", "add entry=/path/to/file"))
                }
                Mode::Files | Mode::Playlist => None,
            };
            if let Some((option, why, remedy)) = refused {
                let message = format!("the music class '{name}' {why}; it is skipped");
                findings.error(class.origin.place_of(option), message, remedy);
                continue;
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

impl MusicClass {
    /// The folder, which a relative name puts into the data folder.
    pub fn folder(&self, astdatadir: &Path) -> PathBuf {
        astdatadir.join(&self.directory)
    }
}
