//! What programs ask of recordings: those that run, and those that are kept.

use std::rc::Rc;

use call::Shard;
use call::stasis::StasisError;

use super::media::{recording_folder, recording_path};

/// Most recordings that are listed.
pub const STORED_MAX: usize = 10_000;

/// A recording that is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stored {
    /// Its name.
    pub name: String,
    /// Its format.
    pub format: String,
}

/// Ends a recording and keeps it. Errors, of this and the next: no such recording runs or waits (`NotFound`).
pub fn stop_recording(shard: &Rc<Shard>, name: &str) -> Result<(), StasisError> {
    shard.core.borrow_mut().stasis_stop_recording(name, true)
}

/// Ends a recording and keeps nothing.
pub fn discard_recording(shard: &Rc<Shard>, name: &str) -> Result<(), StasisError> {
    shard.core.borrow_mut().stasis_stop_recording(name, false)
}

/// Lets a recording rest, or go on; what is said meanwhile is not in it.
pub fn pause_recording(shard: &Rc<Shard>, name: &str, rests: bool) -> Result<(), StasisError> {
    shard.core.borrow_mut().stasis_pause_recording(name, rests)
}

/// Lets a recording hold silence, or sound again.
pub fn mute_recording(shard: &Rc<Shard>, name: &str, muted: bool) -> Result<(), StasisError> {
    shard.core.borrow_mut().stasis_mute_recording(name, muted)
}

/// Recordings that are kept, by name; at most [`STORED_MAX`].
pub fn stored_recordings(shard: &Rc<Shard>) -> Vec<Stored> {
    let core = &mut *shard.core.borrow_mut();
    let folder = recording_folder(core);
    let found = core.services.recorder.stored(&folder, STORED_MAX).into_iter();
    found.map(|(name, format)| Stored { name, format }).collect()
}

/// A recording that is kept.
///
/// Errors: a name that leads elsewhere (`BadRequest`), none of this name (`NotFound`).
pub fn stored_recording(shard: &Rc<Shard>, name: &str) -> Result<Stored, StasisError> {
    stored(shard, name).map(|(_, format)| Stored { name: name.to_owned(), format })
}

/// Path, without extension, and extension of a recording that is kept: for whoever sends the file. Errors as there.
pub fn stored(shard: &Rc<Shard>, name: &str) -> Result<(String, String), StasisError> {
    let core = &mut *shard.core.borrow_mut();
    let path = recording_path(core, name)?;
    let format = core.services.recorder.extensions(&path).into_iter().next();
    let format = format.ok_or_else(|| StasisError::NotFound("Recording not found".into()))?;
    Ok((path, format))
}

/// Deletes a recording, in whatever formats it is. Errors as there.
pub fn delete_stored(shard: &Rc<Shard>, name: &str) -> Result<(), StasisError> {
    let (path, _) = stored(shard, name)?;
    let core = &mut *shard.core.borrow_mut();
    for format in core.services.recorder.extensions(&path) {
        core.services.recorder.remove(&path, &format);
    }
    Ok(())
}

/// Copies a recording.
///
/// Errors: a name that leads elsewhere (`BadRequest`), none of this name (`NotFound`), one of the new name (`Conflict`), the
/// disk refuses (`Internal`).
pub fn copy_stored(shard: &Rc<Shard>, name: &str, to: &str) -> Result<Stored, StasisError> {
    let (from, format) = stored(shard, name)?;
    let core = &mut *shard.core.borrow_mut();
    let target = recording_path(core, to)?;
    if !core.services.recorder.is_free(&target, &format) {
        return Err(StasisError::Conflict(
            "A recording with the same name already exists on the system".into(),
        ));
    }
    core.services.recorder.copy(&from, &format, &target).map_err(|why| StasisError::Internal(why.into()))?;
    Ok(Stored { name: to.to_owned(), format })
}
