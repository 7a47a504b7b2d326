//! Lines of the site's own making, in the files that `cdr_custom.conf` names.

use super::{Outlet, Refused, Sink, append_all};
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Folder below astlogdir.
pub const CUSTOM_FOLDER: &str = "cdr-custom";
/// The same for channel events.
pub const CEL_FOLDER: &str = "cel-custom";

/// A line for a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// Name of the file below its folder, [`CUSTOM_FOLDER`] for call records; the reader of the configuration has seen to it that it stays there.
    pub file: Arc<str>,
    /// What to write. A line break inside would look like another record, so it becomes a space.
    pub text: String,
}

impl Sink<Line> {
    /// Starts a writer into `astlogdir`.
    pub fn start(astlogdir: &Path) -> io::Result<Self> {
        Self::over("cdr-custom", Lines { folder: astlogdir.join(CUSTOM_FOLDER), files: BTreeMap::new() })
    }
    /// Starts a writer of lines into files of this folder itself.
    pub fn below(folder: &Path) -> io::Result<Self> {
        Self::over("lines", Lines { folder: folder.to_owned(), files: BTreeMap::new() })
    }
}

struct Lines {
    folder: PathBuf,
    files: BTreeMap<PathBuf, String>,
}

impl Outlet<Line> for Lines {
    fn take(&mut self, batch: Vec<Line>) {
        for Line { file, text } in batch {
            let out = self.files.entry(self.folder.join(&*file)).or_default();
            out.extend(text.chars().map(|c| if matches!(c, '\n' | '\r') { ' ' } else { c }));
            out.push('\n');
        }
    }
    fn write(&mut self) -> Result<(), Refused> {
        append_all(&mut self.files)
    }
}
