//! What programs ask of sounds that play.

use std::rc::Rc;

use call::Shard;
use call::stasis::{PlaybackState, PlaybackSteer, StasisError};

fn no_playback() -> StasisError {
    StasisError::NotFound("Playback not found".into())
}

/// Ends a sound, or takes it out of its queue.
///
/// Errors: no such sound (`NotFound`).
pub fn stop_playback(shard: &Rc<Shard>, id: &str) -> Result<(), StasisError> {
    let mut core = shard.core.borrow_mut();
    let found = core.stasis.playback_named(id).filter(|playback| !playback.is_stopped());
    let key = found.ok_or_else(no_playback)?.key.clone();
    core.stasis_steer_playback(&key, None);
    Ok(())
}

/// Steers a sound.
///
/// Errors: no such sound (`NotFound`), it is in a state in which that cannot be (`Conflict`): it waits, or rests and is to
/// do something else than to go on.
pub fn control_playback(shard: &Rc<Shard>, id: &str, steer: PlaybackSteer) -> Result<(), StasisError> {
    let mut core = shard.core.borrow_mut();
    let playback =
        core.stasis.playback_named(id).filter(|playback| !playback.is_stopped()).ok_or_else(no_playback)?;
    let can = match playback.state {
        PlaybackState::Playing | PlaybackState::Continuing => true,
        PlaybackState::Paused => matches!(steer, PlaybackSteer::Pause | PlaybackSteer::Unpause),
        // Nothing of it is heard, so that it begins anew already.
        PlaybackState::Queued if steer == PlaybackSteer::Restart => return Ok(()),
        PlaybackState::Queued | PlaybackState::Done | PlaybackState::Failed => false,
    };
    if !can {
        return Err(StasisError::Conflict(
            format!("Can only {} while media is playing", steer.name()).into(),
        ));
    }
    let key = playback.key.clone();
    core.stasis_steer_playback(&key, Some(steer));
    Ok(())
}
