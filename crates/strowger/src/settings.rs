//! `asterisk.conf`, which says where everything else lies, so that even `-rx` reads it.

use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use conf::{Findings, LoadError, Options, ReadError, Source};
use store::config::asterisk::Asterisk;

/// Where it is without `-C`.
const DEFAULT: &str = "/etc/asterisk/asterisk.conf";

/// Reads the file that `-C` names, or the default one; without a default file the defaults hold.
pub fn read(config: Option<&Path>, exec: bool) -> anyhow::Result<Asterisk> {
    let path = config.unwrap_or(Path::new(DEFAULT));
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let disk = Disk { folder: path.parent().unwrap_or(Path::new("/")).to_owned() };
    let mut findings = Findings::new();
    match conf::load(&disk, &path.to_string_lossy(), Options { allow_exec: exec }, &mut findings) {
        Ok(file) => {
            let asterisk = Asterisk::read(&file, &mut findings);
            findings.iter().filter(|finding| finding.level == conf::Level::Error).for_each(|finding| {
                eprintln!("{finding}");
            });
            Ok(asterisk)
        }
        Err(LoadError::Missing) if config.is_none() => Ok(Asterisk::default()),
        Err(LoadError::Missing) => {
            bail!("{} does not exist; name the site's asterisk.conf with -C", path.display())
        }
        Err(LoadError::Invalid) => {
            let said: Vec<String> = findings.iter().map(ToString::to_string).collect();
            bail!("{} is not valid:\n{}", path.display(), said.join("\n"))
        }
    }
}

/// Files below the folder of asterisk.conf.
struct Disk {
    folder: PathBuf,
}

impl Source for Disk {
    fn read(&self, path: &str) -> Result<Vec<u8>, ReadError> {
        std::fs::read(self.folder.join(path)).map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => ReadError::NotFound,
            _ => ReadError::Failed(error.to_string()),
        })
    }
    fn glob(&self, pattern: &str) -> Vec<String> {
        let full = self.folder.join(pattern);
        let Some(entries) = full.parent().and_then(|folder| std::fs::read_dir(folder).ok()) else {
            return Vec::new();
        };
        let paths = entries.flatten().map(|entry| entry.path().to_string_lossy().into_owned());
        let mut found: Vec<String> =
            paths.filter(|path| conf::glob_matches(&full.to_string_lossy(), path)).collect();
        found.sort_unstable();
        found
    }
    fn exec(&self, command: &str) -> Result<Vec<u8>, ReadError> {
        let output = std::process::Command::new("/bin/sh").args(["-c", command]).output();
        match output.with_context(|| format!("cannot run {command}")) {
            Ok(output) if output.status.success() => Ok(output.stdout),
            Ok(output) => Err(ReadError::Failed(format!("'{command}' ended with {}", output.status))),
            Err(error) => Err(ReadError::Failed(format!("{error:#}"))),
        }
    }
}
