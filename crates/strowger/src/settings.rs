//! `asterisk.conf`, which says where everything else lies, so that even `-rx` reads it.

use std::path::Path;

use anyhow::bail;
use conf::{Findings, LoadError, Options};
use store::Folder;
use store::config::asterisk::Asterisk;

/// Where it is without `-C`.
const DEFAULT: &str = "/etc/asterisk/asterisk.conf";

/// Reads the file that `-C` names, or the default one; without a default file the defaults hold.
pub fn read(config: Option<&Path>, exec: bool) -> anyhow::Result<Asterisk> {
    let path = config.unwrap_or(Path::new(DEFAULT));
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let folder = Folder::new(path.parent().unwrap_or(Path::new("/")));
    let mut findings = Findings::new();
    match conf::load(&folder, &path.to_string_lossy(), Options { allow_exec: exec }, &mut findings) {
        Ok(file) => {
            let asterisk = Asterisk::read(&file, &mut findings);
            findings.iter().filter(|finding| finding.level == conf::Level::Error).for_each(|finding| {
                eprintln!("{finding}");
            });
            Ok(asterisk)
        }
        Err(LoadError::Missing) if config.is_none() => embedded(),
        Err(LoadError::Missing) => {
            bail!("{} does not exist; name the site's asterisk.conf with -C", path.display())
        }
        Err(LoadError::Invalid) => {
            let said: Vec<String> = findings.iter().map(ToString::to_string).collect();
            bail!("{} is not valid:\n{}", path.display(), said.join("\n"))
        }
    }
}

/// The site's `asterisk.conf`; `None` when there is none and the embedded defaults hold.
pub fn site(config: Option<&Path>) -> Option<std::path::PathBuf> {
    let path = config.unwrap_or(Path::new(DEFAULT));
    (config.is_some() || path.exists()).then(|| std::path::absolute(path).unwrap_or_else(|_| path.to_owned()))
}

fn embedded() -> anyhow::Result<Asterisk> {
    match store::Snapshot::load(&store::Where::Embedded(crate::embedded::place())) {
        Ok((snapshot, _)) => Ok(snapshot.asterisk.clone()),
        Err(findings) => {
            let said: Vec<String> = findings.iter().map(ToString::to_string).collect();
            bail!("the embedded configuration is not valid:\n{}", said.join("\n"))
        }
    }
}
