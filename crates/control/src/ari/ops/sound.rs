//! What operations on channels and on bridges share: what is to be played, and what is to be recorded.

use core::time::Duration;

use apps::stasis::{Playing, Recording};
use call::stasis::{IfExists, StasisError};

use super::super::asked::Asked;
use super::super::table::{Answer, Done, Param, flag, int, text};

/// Longest recording and silence, seconds: a day.
const SECONDS_MAX: i64 = 86_400;

/// What is played.
pub(super) const MEDIA: Param =
    text("media", "what is played, one after the other: sound:NAME, recording:NAME, number:N, digits:N, characters:TEXT, tone:NAME")
        .must()
        .many();
/// In which language.
pub(super) const LANG: Param = text("lang", "language; that of who hears it when absent");
/// Where it begins.
pub(super) const OFFSET: Param =
    int("offsetms", "milliseconds into the first sound where it begins").or("0").range(0, 86_400_000);
/// How far it moves.
pub(super) const SKIP: Param =
    int("skipms", "milliseconds that forward and reverse move by").or("3000").range(0, 86_400_000);
/// Its id.
pub(super) const PLAYBACK: Param = text("playbackId", "id of the playback; one is made when absent");

/// Name of a recording.
pub(super) const NAME: Param = text("name", "name of the recording").must();
/// Its format.
pub(super) const FORMAT: Param = text("format", "its format, as files end: wav").must();
/// Its length.
pub(super) const DURATION: Param =
    int("maxDurationSeconds", "longest recording, seconds; 0: no limit").or("0").range(0, SECONDS_MAX);
/// What ends it.
pub(super) const SILENCE: Param =
    int("maxSilenceSeconds", "silence that ends it, seconds; 0: none does").or("0").range(0, SECONDS_MAX);
/// What if it is there.
pub(super) const IF_EXISTS: Param = text("ifExists", "what happens when the file is there")
    .words(&["fail", "overwrite", "append"])
    .or("fail");
/// What comes first.
pub(super) const BEEP: Param = flag("beep", "a beep comes first").or("false");
/// What ends it.
pub(super) const TERMINATE: Param =
    text("terminateOn", "digits that end it").words(&["none", "any", "*", "#"]).or("none");

/// An operation that answers nothing.
pub(super) fn done(outcome: Result<(), StasisError>) -> Done {
    outcome?;
    Ok(Answer::Nothing)
}

/// What is to be played.
pub(super) fn playing(asked: &Asked<'_>) -> Playing {
    let millis = |name: &str| asked.number(name).and_then(|millis| u64::try_from(millis).ok());
    Playing {
        media: asked.all("media"),
        language: asked.get("lang").unwrap_or_default().to_owned(),
        offset_ms: millis("offsetms").unwrap_or(0),
        skip_ms: millis("skipms"),
        id: asked.get("playbackId").map(str::to_owned),
    }
}

/// What is to be recorded.
pub(super) fn recorded(asked: &Asked<'_>) -> Recording {
    let seconds = |name: &str| {
        Duration::from_secs(asked.number(name).and_then(|seconds| u64::try_from(seconds).ok()).unwrap_or(0))
    };
    Recording {
        name: asked.need("name").to_owned(),
        format: asked.need("format").to_owned(),
        longest: seconds("maxDurationSeconds"),
        max_silence: seconds("maxSilenceSeconds"),
        if_exists: match asked.get("ifExists") {
            Some("overwrite") => IfExists::Overwrite,
            Some("append") => IfExists::Append,
            _ => IfExists::Fail,
        },
        beep: asked.is("beep"),
        terminate_on: asked.get("terminateOn").unwrap_or("none").to_owned(),
    }
}
