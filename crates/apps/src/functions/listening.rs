//! Functions that have a channel listened to.

use base::{Command, HoldBack, Listener, SoundWatch, ToneWatch, Tones};
use call::{ToneCounts, ToneSide};
use dialplan::{Fault, Options};

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

/// Decibels by which a tone stands out; the field's default.
pub(crate) const TONE_DECIBELS: u32 = 16;
/// How long it lasts, milliseconds; the field's default.
pub(crate) const TONE_MS: u32 = 500;
/// Highest frequency that telephones carry, hertz.
pub(crate) const TONE_HERTZ_MAX: u16 = 3900;

/// `Set(TONE_DETECT(freq[,duration_ms[,options]])=)`: one detector a channel, the last one set.
pub(super) fn write_tone(call: &Call, text: &str) -> Read {
    let parts = args::split(text);
    let options = Options::parse(args::nth(&parts, 2), "abcdeghnprstx");
    if options.has('x') {
        let _gone = call.chan.with(|channel| channel.tones = None);
        call.chan.media(|stream| Command::WatchTone { stream, listener: Listener::Application, watch: None });
        return Ok(());
    }
    let hertz = match args::nth(&parts, 0) {
        "" => 0,
        text => text.parse().ok().filter(|hertz| *hertz <= TONE_HERTZ_MAX).ok_or_else(|| {
            Fault::new(format!("'{text}' is no frequency in hertz from 1 to {TONE_HERTZ_MAX}, or 0 for none"))
        })?,
    };
    let mut signals = Tones::default();
    let letters = [('a', Tones::INFORMATION), ('b', Tones::BUSY), ('c', Tones::DIAL), ('p', Tones::RINGBACK)];
    for (_, signal) in letters.iter().filter(|(letter, _)| options.has(*letter)) {
        signals = signals | *signal;
    }
    if hertz == 0 && signals == Tones::default() {
        return Err(Fault::new("nothing to listen for: give a frequency or one of the options a, b, c, p"));
    }
    let argument = |letter: char| options.arg(letter).unwrap_or_default();
    let decibels = number(argument('d'), TONE_DECIBELS)?;
    let place = |letter: char| match options.arg(letter) {
        None => Ok(None),
        Some(place) => call.resolve(place).map(Some).map_err(|why| Fault::new(format!("'{place}': {why}"))),
    };
    let side = |goto| ToneSide { count: 0, goto };
    let (received, sent) = (side(place('g')?), side(place('h')?));
    let watch = ToneWatch {
        hertz: (hertz > 0).then_some(hertz),
        duration_ms: number(args::nth(&parts, 1), TONE_MS)?,
        decibels: u8::try_from(decibels).unwrap_or(u8::MAX),
        signals,
        heard: options.has('r') || !options.has('t'),
        sent: options.has('t') || !options.has('r'),
    };
    if options.has('s') {
        call.log(call::Level::Warning, "TONE_DETECT: tones are not squelched, option s says nothing here");
    }
    let counts =
        ToneCounts { received, sent, times: number(argument('n'), 1)?, once: options.has('e'), watch };
    let _gone = call.chan.with(|channel| channel.tones = Some(Box::new(counts)));
    call.chan.media(|stream| Command::WatchTone {
        stream,
        listener: Listener::Application,
        watch: Some(watch),
    });
    Ok(())
}

/// `${TONE_DETECT(rx)}`, `${TONE_DETECT(tx)}`: how often a tone has come.
pub(super) fn read_tone(call: &Call, side: &str, out: &mut String) -> Read {
    let counts = call.chan.with(|channel| {
        let of = |side: fn(&ToneCounts) -> u32| channel.tones.as_deref().map_or(0, side);
        (of(|tones| tones.received.count), of(|tones| tones.sent.count))
    });
    let (received, sent) = counts.unwrap_or_default();
    let count = match side.trim().to_ascii_lowercase().as_str() {
        "rx" => received,
        "tx" => sent,
        other => return Err(unknown(other)),
    };
    out.push_str(&count.to_string());
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
