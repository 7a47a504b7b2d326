//! A configuration that is looked at: where a copy of another machine has the files that it names, and which sounds are there.

use super::Snapshot;
use crate::config::music::Mode;
use crate::folder::Copied;
use conf::Findings;
use std::path::Path;

impl Snapshot {
    /// Files that the configuration names, where a copy has them.
    pub(super) fn look_in(&mut self, copy: &Copied) {
        let look = |file: &mut String| {
            if Path::new(file).is_absolute() {
                *file = copy.find(Path::new(file)).display().to_string();
            }
        };
        for transport in self.pjsip.transports.values_mut() {
            [&mut transport.cert_file, &mut transport.priv_key_file].into_iter().for_each(look);
            [&mut transport.ca_list_file, &mut transport.ca_list_path].into_iter().for_each(look);
        }
        let manager = &mut self.manager.general;
        [&mut manager.tlscertfile, &mut manager.tlsprivatekey].into_iter().for_each(look);
        [&mut self.http.tlscertfile, &mut self.http.tlsprivatekey].into_iter().for_each(look);
        for class in self.music.classes.values_mut() {
            class.directory = copy.find(&class.directory);
        }
    }

    /// Says which sounds and music are not there that calls are to hear.
    pub fn check_sounds(&self, findings: &mut Findings) {
        let directories = &self.asterisk.directories;
        let data = &directories.astdatadir;
        let is_said = ["astdatadir", "astvarlibdir"].iter().any(|option| directories.origin.has(option));
        if !is_said && !data.exists() {
            // The folder is looked at on a machine that has nothing of the one it is for.
            return;
        }
        let sounds = data.join("sounds");
        if !sounds.is_dir() && !crate::sounds::packaged_sounds().is_dir() {
            let message = format!("there are no prompts: the folder {} is not there", sounds.display());
            let remedy = "put sound files there (Debian: asterisk-core-sounds-en), or correct astdatadir=";
            findings.warning(directories.origin.place_of("astdatadir"), message, remedy);
        }
        let is_sound = |name: &Path| {
            name.extension().is_some_and(|ending| {
                crate::sounds::extensions().any(|known| ending.eq_ignore_ascii_case(known))
            })
        };
        for (name, class) in &self.music.classes {
            let is_folder = matches!(class.mode, Mode::Files | Mode::Mp3) && !class.is_live();
            if !is_folder {
                continue;
            }
            let folder = class.folder(data);
            let has_sounds =
                |entries: std::fs::ReadDir| entries.flatten().any(|entry| is_sound(&entry.path()));
            let why = match std::fs::read_dir(&folder).map(has_sounds) {
                Err(_) => "is not there",
                Ok(true) => continue,
                Ok(false) => "has no sound files",
            };
            let message =
                format!("the music class '{name}' is silent: the folder {} {why}", folder.display());
            let place = class.origin.place_of("directory");
            findings.warning(place, message, "put sound files there, or correct directory=");
        }
    }
}
