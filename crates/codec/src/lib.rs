//! Sound itself: codecs, sample rate conversion, mixing, tones, DTMF, sound files.
//!
//! Streams of samples and bytes come in and go out; this room knows no packet, no channel, no file system.
//! Calls that a media worker makes per frame ([`Encoder`], [`Decoder`], [`Transcoder`], [`Resampler`], [`mix`],
//! [`DtmfDetector`]) allocate nothing. Every codec here is the plain scalar form: the reference for faster twins.
#![forbid(unsafe_code)]

pub mod adpcm;
pub mod g711;
pub mod g722;
pub mod g726;
pub mod gsm;
pub mod lpc10;
pub mod mix;
pub mod tone;

mod coder;
mod dtmf;
mod file;
mod pairs;
mod plc;
mod resample;
mod transcode;

#[cfg(test)]
mod testing;

pub use coder::{Decoder, Encoder, fill_silence, swap_bytes};
pub use dtmf::{DtmfDetector, DtmfEdge};
pub use file::{
    Recording, SoundError, SoundFile, clip_of_samples, extension_format, extensions, search_order,
};
pub use resample::{RATES, Resampler, prepare as prepare_resamplers};
pub use tone::{RenderedTone, Tone, ToneError, ToneGenerator, ToneScript, milliwatt, render_clip};
pub use transcode::Transcoder;
