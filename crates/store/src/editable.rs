//! Files of the configuration folder that programs read and change: never one outside of it, and never half written.

use std::fs::{self, OpenOptions};
use std::io::{ErrorKind, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Component, Path, PathBuf};

/// Largest file that is changed, bytes; the largest configuration file seen in the field has 2 MB.
pub const EDITED_BYTES_MAX: u64 = 16 << 20;
/// Mode of a file that is made anew: secrets may stand in it.
const NEW_FILE_MODE: u32 = 0o640;

/// Why a file was not read or written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FileError {
    /// It is not in the folder, or would not be once links are followed.
    #[error("the file is outside the configuration folder")]
    Outside,
    /// There is none.
    #[error("there is no such file")]
    Missing,
    /// There is one already.
    #[error("there is such a file already")]
    Exists,
    /// It has more than [`EDITED_BYTES_MAX`] bytes.
    #[error("the file is too large")]
    TooLarge,
    /// The system refused.
    #[error("{0}")]
    Failed(String),
}

impl From<std::io::Error> for FileError {
    fn from(error: std::io::Error) -> Self {
        match error.kind() {
            ErrorKind::NotFound => Self::Missing,
            ErrorKind::AlreadyExists => Self::Exists,
            _ => Self::Failed(error.to_string()),
        }
    }
}

/// The configuration folder.
#[derive(Debug, Clone)]
pub struct Editable {
    folder: PathBuf,
}

impl Editable {
    /// A folder; nothing is touched yet.
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self { folder: folder.into() }
    }
    /// The whole file.
    pub fn read(&self, name: &str) -> Result<Vec<u8>, FileError> {
        let path = self.inside(name)?;
        let facts = fs::metadata(&path)?;
        if !facts.is_file() {
            return Err(FileError::Outside);
        }
        if facts.len() > EDITED_BYTES_MAX {
            return Err(FileError::TooLarge);
        }
        Ok(fs::read(path)?)
    }
    /// The path of a file that may be read, every link followed.
    pub fn path(&self, name: &str) -> Result<PathBuf, FileError> {
        let path = self.inside(name)?;
        if path.is_file() { Ok(path) } else { Err(FileError::Missing) }
    }
    /// Makes an empty file.
    pub fn create(&self, name: &str) -> Result<(), FileError> {
        let path = self.inside(name)?;
        OpenOptions::new().write(true).create_new(true).mode(NEW_FILE_MODE).open(path)?;
        Ok(())
    }
    /// Replaces a file's content in one step: whoever reads it sees the old text or the new one, after a crash too.
    pub fn write(&self, name: &str, bytes: &[u8]) -> Result<(), FileError> {
        let path = self.inside(name)?;
        let (Some(folder), Some(file)) = (path.parent(), path.file_name()) else {
            return Err(FileError::Outside);
        };
        let before = fs::metadata(&path).ok();
        if before.as_ref().is_some_and(|facts| !facts.is_file()) {
            return Err(FileError::Outside);
        }
        let temporary = folder.join(format!(".{}.{}.new", file.to_string_lossy(), std::process::id()));
        let written = (|| {
            let mode = before.as_ref().map_or(NEW_FILE_MODE, |facts| facts.mode() & 0o7777);
            let mut new = OpenOptions::new().write(true).create_new(true).mode(mode).open(&temporary)?;
            if let Some(facts) = &before {
                new.set_permissions(facts.permissions())?;
                // Only root may give a file away; anybody else keeps it as his own.
                let _ = std::os::unix::fs::fchown(&new, Some(facts.uid()), Some(facts.gid()));
            }
            new.write_all(bytes)?;
            new.sync_all()?;
            fs::rename(&temporary, &path)?;
            fs::File::open(folder)?.sync_all()
        })();
        written.map_err(|error: std::io::Error| {
            let _ = fs::remove_file(&temporary);
            error.into()
        })
    }

    /// Where a name leads, in the folder.
    fn inside(&self, name: &str) -> Result<PathBuf, FileError> {
        let name = Path::new(name);
        let below = if name.is_absolute() {
            name.strip_prefix(&self.folder).map_err(|_| FileError::Outside)?
        } else {
            name
        };
        let plain = |part: Component<'_>| matches!(part, Component::Normal(_));
        if below.as_os_str().is_empty() || !below.components().all(plain) {
            return Err(FileError::Outside);
        }
        let folder = fs::canonicalize(&self.folder)?;
        let path = folder.join(below);
        let real = match fs::canonicalize(&path) {
            Ok(real) => real,
            // A link that leads nowhere is not followed to make a file there.
            Err(_) if fs::symlink_metadata(&path).is_ok() => return Err(FileError::Outside),
            Err(error) if error.kind() == ErrorKind::NotFound => {
                let (Some(parent), Some(file)) = (path.parent(), path.file_name()) else {
                    return Err(FileError::Outside);
                };
                fs::canonicalize(parent)?.join(file)
            }
            Err(error) => return Err(error.into()),
        };
        if real.starts_with(&folder) && real != folder { Ok(real) } else { Err(FileError::Outside) }
    }
}
