//! Sound itself: codecs, sample rate conversion, mixing, tones, DTMF, sound files.
//!
//! Streams of samples and bytes come in and go out; this room knows no packet, no channel, no file system.
//! Calls that a media worker makes per frame ([`Encoder`], [`Decoder`], [`Resampler`], [`mix`], [`DtmfDetector`]) allocate
//! nothing. [`Encoder`] and [`Decoder`] are the plain forms, one stream at a time; [`encode_group`] and [`decode_group`] run
//! the same states of many streams side by side in SIMD lanes, with the same bits.
#![forbid(unsafe_code)]

pub mod adpcm;
pub mod external;
pub mod g711;
pub mod g722;
pub mod g726;
pub mod gsm;
pub mod lpc10;
pub mod mix;
pub mod tone;

#[cfg(target_family = "wasm")]
#[path = "no_libraries.rs"]
mod bound;
mod coder;
mod coders;
mod dtmf;
mod file;
mod group;
mod handover;
mod measure;
mod pairs;
mod paths;
mod plc;
mod pulses;
mod resample;
mod transcode;

#[cfg(test)]
mod testing;

pub use coder::{Decoder, Encoder, fill_silence, missing_libraries, packet_samples, swap_bytes};
pub use coders::{Coders, IlbcSettings, OpusSettings, Settings, SpeexSettings};
pub use dtmf::{DtmfDetector, DtmfEdge};
pub use file::{
    Ending, PAGE_BYTES_MAX, Recording, SoundError, SoundFile, clip_of_samples, completed, extension_format,
    extensions, is_complete, packets_of, search_order,
};
pub use group::{
    DecodeTask, DecodeTasks, EncodeTask, EncodeTasks, GROUP_MAX, decode_frame, decode_group, encode_frame,
    encode_group, group_size,
};
pub use lanes::{Level, UnknownLevel};
pub use measure::{Material, Trial, Work};
pub use paths::{Costs, Path, Paths, Price};
pub use pulses::PulseDetector;
pub use resample::{RATES, Resampler, prepare as prepare_resamplers};
pub use speex::Quality as SpeexQuality;
pub use tone::{RenderedTone, Tone, ToneError, ToneGenerator, ToneScript, milliwatt, render_clip};
pub use transcode::{Transcoder, direct};
