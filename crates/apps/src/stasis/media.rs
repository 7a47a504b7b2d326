//! What programs play, by its address: `sound:hello`, `recording:take`, `number:42`, `digits:42`, `characters:ab`, `tone:ring`.

use core::time::Duration;

use call::Core;
use call::stasis::{MEDIA_MAX, StasisError};

use crate::say::{self, Gender, Tongue};

/// Longest address of one sound, and addresses of one playback together, bytes.
const URI_BYTES_MAX: usize = 1024;
const URIS_BYTES_MAX: usize = 8 * 1024;
/// Longest name of a recording, bytes.
const NAME_BYTES_MAX: usize = 200;

/// How often the file of a recording that has just ended is looked at before it is played, and how many times.
pub(super) const FINISHING_EVERY: Duration = Duration::from_millis(50);
pub(super) const FINISHING_TRIES: usize = 40;

/// Something that is played.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Sounds {
    /// Files, one after the other.
    Files(Vec<String>),
    /// A tone, in a zone that may be empty, until it is stopped.
    Tone(String, String),
}

/// Whether what is to be played is of a size that is kept; whether it can be is found when its turn comes, as the field does.
pub(super) fn check(media: &[String]) -> Result<(), StasisError> {
    if media.is_empty() || media.iter().all(String::is_empty) {
        return Err(StasisError::BadRequest("At least one media URI must be provided".into()));
    }
    let bytes: usize = media.iter().map(String::len).sum();
    let is_long = media.iter().any(|uri| uri.len() > URI_BYTES_MAX);
    if media.len() > MEDIA_MAX || bytes > URIS_BYTES_MAX || is_long {
        return Err(StasisError::BadRequest("too many media URIs, or too long ones".into()));
    }
    Ok(())
}

/// Whether an address is that of a recording whose file is not complete yet.
pub(super) fn is_finishing(core: &Core, uri: &str) -> bool {
    uri.strip_prefix("recording:").is_some_and(|name| core.stasis_is_finishing(name))
}

/// What an address means in a language; `None`: nothing that can be played.
pub(super) fn sounds(core: &mut Core, uri: &str, language: &str) -> Option<Sounds> {
    let (scheme, rest) = uri.split_once(':')?;
    let files = match scheme {
        "sound" => vec![rest.to_owned()],
        "recording" => {
            let path = recording_path(core, rest).ok()?;
            // It may have been made again since it was heard last.
            core.services.library.forget(&path);
            vec![path]
        }
        "number" => say::number(Tongue::of(language), say::sayable(rest)?, Gender::Plain),
        "digits" => say::digits(rest),
        "characters" => say::spelled(rest),
        "tone" => {
            let (tone, options) = rest.split_once(';').unwrap_or((rest, ""));
            let zone = options.split(';').find_map(|option| option.strip_prefix("tonezone="));
            return Some(Sounds::Tone(tone.to_owned(), zone.unwrap_or_default().to_owned()));
        }
        _ => return None,
    };
    (!files.is_empty()).then_some(Sounds::Files(files))
}

/// Where a recording of this name lies, without extension: below the spool's `recording/`, which no name leads out of.
pub(super) fn recording_path(core: &Core, name: &str) -> Result<String, StasisError> {
    let part_is_bad = |part: &str| part.is_empty() || part.starts_with('.') || part.contains(['\\', '\0']);
    if name.len() > NAME_BYTES_MAX || name.chars().any(char::is_control) || name.split('/').any(part_is_bad) {
        return Err(StasisError::BadRequest("Invalid recording name".into()));
    }
    Ok(format!("{}/{name}", recording_folder(core)))
}

/// Where recordings of programs lie.
pub(super) fn recording_folder(core: &Core) -> String {
    let spool = core.settings.directories.0.get("spool").map(String::as_str).unwrap_or_default();
    format!("{spool}/recording")
}
