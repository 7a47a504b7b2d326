//! Functions that have a channel listened to.

use base::{Command, HoldBack, Listener, SoundWatch};
use dialplan::Fault;

use super::{Read, unknown};
use crate::Call;
use crate::call_ctx::args;
use crate::listen::SILENCE_THRESHOLD;

/// Silence after which nobody talks any more, milliseconds; the field's default.
const SILENCE_MS: u32 = 2500;
/// How long a jitter buffer holds packets back when nothing is said, milliseconds; the field's default.
const BUFFER_MS: u16 = 200;
/// The least that an adaptive one does: one packet.
const BUFFER_LEAST_MS: u16 = 20;
/// The longest that one may: beyond it nobody could talk.
const BUFFER_MOST_MS: u16 = 1000;
/// Sources of sound that may listen to a channel or change what it says, as the field names them.
const SOURCES: &[&str] =
    &["Chanspy", "JACK_HOOK", "MixMonitor", "Mute", "Speex", "TALK_DETECT", "Volume", "pitch_shift"];

/// `Set(TALK_DETECT(set)=[silence milliseconds][,loudness])`, `Set(TALK_DETECT(remove)=)`. Sound counts at once.
pub(super) fn write_talk(call: &Call, act: &str, value: &str) -> Read {
    let watch = match act.trim().to_ascii_lowercase().as_str() {
        "remove" => None,
        "set" => {
            let parts = args::split(value);
            let silence_ms = number(args::nth(&parts, 0), SILENCE_MS)?;
            let threshold = number(args::nth(&parts, 1), u32::from(SILENCE_THRESHOLD))?;
            // Nothing is louder than a sample can be.
            let threshold = u16::try_from(threshold).unwrap_or(u16::MAX);
            Some(SoundWatch { threshold, sound_ms: 0, silence_ms, sounds: false })
        }
        other => return Err(unknown(other)),
    };
    call.chan.media(|stream| Command::WatchSound { stream, listener: Listener::Watcher, watch });
    Ok(())
}

fn number(text: &str, otherwise: u32) -> Result<u32, Fault> {
    match text.trim() {
        "" => Ok(otherwise),
        text => text
            .parse()
            .ok()
            .filter(|number| (1..=i32::MAX.unsigned_abs()).contains(number))
            .ok_or_else(|| Fault::new(format!("'{text}' is no number from 1 to {}", i32::MAX))),
    }
}

/// `Set(JITTERBUFFER(fixed|adaptive|disabled)=default|milliseconds[,resync_threshold[,target_extra[,sync_video]]])`. What
/// follows the milliseconds has no meaning here: a leap of the sender's clock is recognised by itself.
pub(super) fn write_buffer(call: &Call, kind: &str, value: &str) -> Read {
    let parts = args::split(value);
    let most_ms = match args::nth(&parts, 0).trim() {
        "" | "default" => BUFFER_MS,
        text => text.parse().ok().filter(|ms| (BUFFER_LEAST_MS..=BUFFER_MOST_MS).contains(ms)).ok_or_else(
            || {
                Fault::new(format!(
                    "'{text}' is no number of milliseconds from {BUFFER_LEAST_MS} to {BUFFER_MOST_MS}"
                ))
            },
        )?,
    };
    let limits = match kind.trim().to_ascii_lowercase().as_str() {
        "disabled" => HoldBack { least_ms: 0, most_ms: 0 },
        "fixed" => HoldBack { least_ms: most_ms, most_ms },
        "adaptive" => HoldBack { least_ms: BUFFER_LEAST_MS, most_ms },
        other => return Err(unknown(other)),
    };
    call.chan.media(|stream| Command::HoldBack { stream, limits: Some(limits) });
    Ok(())
}

/// `Set(AUDIOHOOK_INHERIT(MixMonitor)=yes)`: what it asks for is always so.
pub(super) fn write_inherit(source: &str) -> Read {
    let source = source.trim();
    let known = SOURCES.iter().any(|known| known.eq_ignore_ascii_case(source));
    if known { Ok(()) } else { Err(unknown(source)) }
}
