//! AST_CONFIG(): values of configuration files.

use std::cell::Cell;

use conf::{Findings, ReadError, Source};
use dialplan::Fault;

use super::Read;
use crate::Call;
use crate::call_ctx::args;

/// Most bytes that are read for one call, with all that the file includes: more than what people write by hand.
const BYTES_MAX: usize = 1024 * 1024;

/// Files of this machine, below the configuration's folder where they are not absolute. They are on a disk of this
/// machine, and read in one piece, as `FILE()` does it.
struct Files<'a> {
    call: &'a Call,
    folder: String,
    left: Cell<usize>,
}

impl Source for Files<'_> {
    fn read(&self, path: &str) -> Result<Vec<u8>, ReadError> {
        let path = self.full_name(path);
        let left = self.left.get();
        let (facts, text) = self.call.chan.core(|core| {
            let outside = &core.services.outside;
            (outside.file_facts(&path), outside.file_text(&path, left))
        });
        let (Some(facts), Some(text)) = (facts, text) else { return Err(ReadError::NotFound) };
        let size = usize::try_from(facts.size).unwrap_or(usize::MAX);
        let rest = left
            .checked_sub(size.max(text.len()))
            .ok_or_else(|| ReadError::Failed("too large".to_owned()))?;
        self.left.set(rest);
        Ok(text.into_bytes())
    }
    /// Folders are not looked into: wildcards find nothing.
    fn glob(&self, _: &str) -> Vec<String> {
        Vec::new()
    }
    fn full_name(&self, path: &str) -> String {
        if path.starts_with('/') { path.to_owned() } else { format!("{}/{path}", self.folder) }
    }
    fn exec(&self, _: &str) -> Result<Vec<u8>, ReadError> {
        Err(ReadError::Failed("calls run no programs of configuration files".to_owned()))
    }
}

/// `AST_CONFIG(file,category,variable[,index])`; index 0 is the first of several, -1 the last.
pub(super) fn read(call: &Call, text: &str, out: &mut String) -> Read {
    let parts = args::split(text);
    let arg = |index: usize| args::nth(&parts, index).trim();
    let (file, category, name) = (arg(0), arg(1), arg(2));
    for (value, what) in [(file, "the file"), (category, "the category"), (name, "the name of the variable")]
    {
        if value.is_empty() {
            return Err(Fault::new(format!("{what} is missing")));
        }
    }
    let index: i32 = match arg(3) {
        "" => 0,
        text => text.parse().map_err(|_| Fault::new(format!("the index '{text}' is no number")))?,
    };
    if file.split('/').any(|part| part == "..") {
        return Err(Fault::new(format!("'{file}' leads out of the configuration's folder")));
    }
    let folder = call.chan.core(|core| core.settings.directories.0.get("etc").cloned()).unwrap_or_default();
    let source = Files { call, folder, left: Cell::new(BYTES_MAX) };
    let loaded = conf::load(&source, file, conf::Options::default(), &mut Findings::new());
    let loaded = loaded.map_err(|_| Fault::new(format!("{file} cannot be read")))?;
    let mut found = loaded.named(category).flat_map(|section| section.all(name));
    let value = match usize::try_from(index) {
        Ok(index) => found.nth(index),
        // The last is that which holds where a template gave another before.
        Err(_) if index == -1 => found.last(),
        Err(_) => return Err(Fault::new(format!("the index {index} is neither -1 nor 0 or more"))),
    };
    let value = value.ok_or_else(|| Fault::new(format!("{file} has no such '{name}' in [{category}]")))?;
    out.push_str(&value.value);
    Ok(())
}
