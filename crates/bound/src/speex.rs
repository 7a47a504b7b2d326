//! Speex (RFC 5574) in narrow, wide and ultra-wide band, with variable bit rate, by libspeex.
//!
//! Packets are walked through before the library sees them: it writes what it finds wrong to the standard error, and a
//! stranger's packets are no reason to write there.

use core::ffi::{c_char, c_int, c_void};
use core::ptr::null_mut;
use std::sync::OnceLock;

use crate::library::functions;
use crate::{Concealed, Encoded, Unavailable};

/// Largest payload that is decoded; the library's own buffer has room for as many bytes.
pub const PAYLOAD_BYTES_MAX: usize = 1500;
/// Frames of 20 ms in a packet at most.
pub const FRAMES_MAX: usize = 6;

/// How much of the spectrum is coded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Band {
    /// 8 kHz.
    Narrow,
    /// 16 kHz.
    Wide,
    /// 32 kHz.
    UltraWide,
}

impl Band {
    /// Samples of a frame: 20 ms.
    pub const fn frame(self) -> usize {
        match self {
            Self::Narrow => 160,
            Self::Wide => 320,
            Self::UltraWide => 640,
        }
    }
    fn mode(self) -> c_int {
        match self {
            Self::Narrow => 0,
            Self::Wide => 1,
            Self::UltraWide => 2,
        }
    }
}

/// What the encoder goes by; names and defaults as in `codecs.conf`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Options {
    /// Quality at constant bit rate, 0 to 10.
    pub quality: u8,
    /// Effort, 0 to 10.
    pub complexity: u8,
    /// Whether the bit rate follows the sound.
    pub vbr: bool,
    /// Quality at variable bit rate, 0 to 10.
    pub vbr_quality: f32,
    /// Average bit rate to keep, in bits a second; 0 for none.
    pub abr: u32,
    /// Whether silence is told from speech (always at variable bit rate).
    pub vad: bool,
    /// Whether silence is not sent.
    pub dtx: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self { quality: 3, complexity: 2, vbr: false, vbr_quality: 4.0, abr: 0, vad: false, dtx: false }
    }
}

functions! {
    /// Of `speex.h` and `speex_bits.h`.
    Api {
        mode = b"speex_lib_get_mode\0": fn(c_int) -> *const c_void;
        encoder_init = b"speex_encoder_init\0": fn(*const c_void) -> *mut c_void;
        encoder_destroy = b"speex_encoder_destroy\0": fn(*mut c_void);
        encode = b"speex_encode_int\0": fn(*mut c_void, *mut i16, *mut Bits) -> c_int;
        encoder_ctl = b"speex_encoder_ctl\0": fn(*mut c_void, c_int, *mut c_void) -> c_int;
        decoder_init = b"speex_decoder_init\0": fn(*const c_void) -> *mut c_void;
        decoder_destroy = b"speex_decoder_destroy\0": fn(*mut c_void);
        decode = b"speex_decode_int\0": fn(*mut c_void, *mut Bits, *mut i16) -> c_int;
        decoder_ctl = b"speex_decoder_ctl\0": fn(*mut c_void, c_int, *mut c_void) -> c_int;
        bits_init = b"speex_bits_init\0": fn(*mut Bits);
        bits_destroy = b"speex_bits_destroy\0": fn(*mut Bits);
        bits_reset = b"speex_bits_reset\0": fn(*mut Bits);
        bits_read_from = b"speex_bits_read_from\0": fn(*mut Bits, *const c_char, c_int);
        bits_write = b"speex_bits_write\0": fn(*mut Bits, *mut c_char, c_int) -> c_int;
        bits_insert_terminator = b"speex_bits_insert_terminator\0": fn(*mut Bits);
    }
}

/// `SpeexBits`, which has 48 bytes: room for it and more, as aligned as it must be.
#[repr(C, align(16))]
#[derive(Debug)]
struct Bits([u64; 16]);

/// Requests of `speex_encoder_ctl` and `speex_decoder_ctl`.
mod request {
    use core::ffi::c_int;
    pub const ENHANCE: c_int = 0;
    pub const QUALITY: c_int = 4;
    pub const VBR: c_int = 12;
    pub const VBR_QUALITY: c_int = 14;
    pub const COMPLEXITY: c_int = 16;
    pub const RESET: c_int = 26;
    pub const VAD: c_int = 30;
    pub const ABR: c_int = 32;
    pub const DTX: c_int = 34;
}

const UNAVAILABLE: Unavailable = Unavailable { library: "libspeex.so.1", package: "libspeex1" };

fn api() -> Result<&'static Api, Unavailable> {
    static API: OnceLock<Option<Api>> = OnceLock::new();
    API.get_or_init(|| Api::load(&["libspeex.so.1"])).as_ref().ok_or(UNAVAILABLE)
}

/// Whether the library is there.
///
/// # Errors
/// When it is not.
pub fn available() -> Result<(), Unavailable> {
    api().map(|_| ())
}

/// A state of the library, and its bits.
struct Handle {
    api: &'static Api,
    state: *mut c_void,
    bits: Box<Bits>,
    band: Band,
    destroy: unsafe extern "C" fn(*mut c_void),
}

// SAFETY: a state of libspeex is memory that only calls with its pointer touch; nothing in it belongs to a thread. The
// pointer is never copied out of the handle, and every call needs the handle exclusively.
unsafe impl Send for Handle {}

impl Handle {
    fn new(band: Band, encoder: bool) -> Result<Self, Unavailable> {
        let api = api()?;
        let (init, destroy) = if encoder {
            (api.encoder_init, api.encoder_destroy)
        } else {
            (api.decoder_init, api.decoder_destroy)
        };
        let mut bits = Box::new(Bits([0; 16]));
        // SAFETY: the mode's number is one of the library's three; `init` takes the mode it gives.
        let state = unsafe { init((api.mode)(band.mode())) };
        if state.is_null() {
            return Err(UNAVAILABLE);
        }
        // SAFETY: `bits` has room for a `SpeexBits`, and stays where it is.
        unsafe { (api.bits_init)(&mut *bits) };
        Ok(Self { api, state, bits, band, destroy })
    }

    /// Sets a whole number of the encoder.
    fn set(&mut self, request: c_int, mut value: i32) {
        // SAFETY: the state is an encoder's; these requests read an `int`.
        unsafe { (self.api.encoder_ctl)(self.state, request, (&raw mut value).cast()) };
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        // SAFETY: both were made by the library in `new` and are not used again.
        unsafe {
            (self.destroy)(self.state);
            (self.api.bits_destroy)(&mut *self.bits);
        }
    }
}

impl core::fmt::Debug for Handle {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "Speex({:?})", self.band)
    }
}

/// Speex encoder of one stream.
#[derive(Debug)]
pub struct Encoder(Handle);

impl Encoder {
    /// An encoder in its initial state.
    ///
    /// # Errors
    /// Without libspeex.
    pub fn new(band: Band, options: &Options) -> Result<Self, Unavailable> {
        let mut handle = Handle::new(band, true)?;
        handle.set(request::COMPLEXITY, i32::from(options.complexity.min(10)));
        handle.set(request::QUALITY, i32::from(options.quality.min(10)));
        handle.set(request::VAD, i32::from(options.vad));
        handle.set(request::VBR, i32::from(options.vbr));
        let mut quality = options.vbr_quality.clamp(0.0, 10.0);
        // SAFETY: the state is an encoder's; this request reads a `float`.
        unsafe { (handle.api.encoder_ctl)(handle.state, request::VBR_QUALITY, (&raw mut quality).cast()) };
        if options.abr > 0 {
            handle.set(request::ABR, options.abr.min(100_000) as i32);
        }
        handle.set(request::DTX, i32::from(options.dtx));
        Ok(Self(handle))
    }

    /// Encodes the whole frames of a packet, at most [`FRAMES_MAX`]; a rest is left out.
    ///
    /// Nothing is written when `out` is too small; 110 bytes a frame are always enough.
    pub fn encode(&mut self, pcm: &[i16], out: &mut [u8]) -> Encoded {
        let Handle { api, state, bits, band, .. } = &mut self.0;
        // The library may write to its input.
        let mut frame = [0i16; Band::UltraWide.frame()];
        let mut silent = true;
        // SAFETY: `bits` was initialised in `new`.
        unsafe { (api.bits_reset)(&mut **bits) };
        for samples in pcm.chunks_exact(band.frame()).take(FRAMES_MAX) {
            for (slot, sample) in frame.iter_mut().zip(samples) {
                *slot = *sample;
            }
            // SAFETY: the state is an encoder's of this band; `frame` has at least a frame of it.
            let needed = unsafe { (api.encode)(*state, frame.as_mut_ptr(), &mut **bits) };
            silent &= needed == 0;
        }
        // SAFETY: as above; `bits_write` writes at most as many bytes as it is told, and stops short of a whole packet
        // rather than beyond.
        let bytes = unsafe {
            (api.bits_insert_terminator)(&mut **bits);
            let room = c_int::try_from(out.len().min(PAYLOAD_BYTES_MAX)).unwrap_or(0);
            (api.bits_write)(&mut **bits, out.as_mut_ptr().cast(), room)
        };
        let bytes = usize::try_from(bytes).unwrap_or(0).min(out.len());
        let whole = out.get(..bytes).is_some_and(|payload| frames(payload, *band).is_some());
        Encoded { bytes: if whole { bytes } else { 0 }, silent }
    }

    /// Back to the initial state, with the same options.
    pub fn reset(&mut self) {
        // SAFETY: the state is an encoder's; this request ignores its argument.
        unsafe { (self.0.api.encoder_ctl)(self.0.state, request::RESET, null_mut()) };
    }
}

/// Speex decoder of one stream.
#[derive(Debug)]
pub struct Decoder(Handle);

impl Decoder {
    /// A decoder in its initial state, with the perceptual enhancer or without.
    ///
    /// # Errors
    /// Without libspeex.
    pub fn new(band: Band, enhance: bool) -> Result<Self, Unavailable> {
        let handle = Handle::new(band, false)?;
        let mut value = i32::from(enhance);
        // SAFETY: the state is a decoder's; this request reads an `int`.
        unsafe { (handle.api.decoder_ctl)(handle.state, request::ENHANCE, (&raw mut value).cast()) };
        Ok(Self(handle))
    }

    /// Decodes the frames of a packet as far as `pcm` reaches; returns the samples written.
    ///
    /// # Errors
    /// For a malformed packet: a frame was made up instead.
    pub fn decode(&mut self, payload: &[u8], pcm: &mut [i16]) -> Result<usize, Concealed> {
        let size = self.0.band.frame();
        let Some(count) = frames(payload, self.0.band).filter(|&count| count > 0) else {
            let samples = size.min(pcm.len());
            self.conceal(pcm.get_mut(..samples).unwrap_or_default());
            return Err(Concealed(samples));
        };
        let Handle { api, state, bits, .. } = &mut self.0;
        // SAFETY: `bits` was initialised in `new`; it copies the payload, which is no longer than its buffer.
        unsafe { (api.bits_read_from)(&mut **bits, payload.as_ptr().cast(), payload.len() as c_int) };
        let mut made = 0;
        for frame in pcm.chunks_exact_mut(size).take(count) {
            // SAFETY: the state is a decoder's of this band; `frame` has room for a frame of it.
            let answer = unsafe { (api.decode)(*state, &mut **bits, frame.as_mut_ptr()) };
            if answer != 0 {
                self.conceal(frame);
                return Err(Concealed(made + size));
            }
            made += size;
        }
        Ok(made)
    }

    /// Fills in for what never came, from what was heard.
    pub fn conceal(&mut self, pcm: &mut [i16]) {
        let Handle { api, state, band, .. } = &mut self.0;
        let mut frames = pcm.chunks_exact_mut(band.frame());
        for frame in &mut frames {
            // SAFETY: without bits a decoder makes a frame up; `frame` has room for one.
            unsafe { (api.decode)(*state, null_mut(), frame.as_mut_ptr()) };
        }
        frames.into_remainder().fill(0);
    }

    /// Back to the initial state.
    pub fn reset(&mut self) {
        // SAFETY: the state is a decoder's; this request ignores its argument.
        unsafe { (self.0.api.decoder_ctl)(self.0.state, request::RESET, null_mut()) };
    }
}

/// Bits of a narrow-band frame by its submode, the five of its head included.
const NARROW_BITS: [usize; 9] = [5, 43, 119, 160, 220, 300, 364, 492, 79];
/// Bits of a layer above by its submode, the four of its head included.
const LAYER_BITS: [usize; 5] = [4, 36, 112, 192, 352];
/// Submodes that are none: the end, a request, and the user's own data.
const TERMINATOR: u32 = 15;
const REQUEST: u32 = 14;
const USER: u32 = 13;

/// The frames of a payload, when it is one that a decoder of this band reads to its end without complaint.
pub fn frames(payload: &[u8], band: Band) -> Option<usize> {
    if payload.len() > PAYLOAD_BYTES_MAX {
        return None;
    }
    let mut reader = Reader { payload, at: 0 };
    let mut count = 0;
    loop {
        // Layers follow their frame, the highest last; of the uppermost there is one submode.
        let mut layers = 0;
        while reader.left() >= 5 && reader.peek() == 1 {
            reader.take(1)?;
            let size = *LAYER_BITS.get(reader.take(3)? as usize)?;
            layers += 1;
            let known = layers == 1 || layers == 2 && (size <= LAYER_BITS[1] || band != Band::UltraWide);
            if count == 0 || !known {
                return None;
            }
            reader.skip(size - 4)?;
        }
        if reader.left() < 5 {
            return Some(count);
        }
        reader.take(1)?;
        match reader.take(4)? {
            TERMINATOR => return Some(count),
            REQUEST => {
                let size = match reader.take(4)? {
                    0..=1 => 1,
                    2..=7 => 4,
                    8..=9 => 8,
                    10..=11 => 16,
                    12..=13 => 32,
                    _ => 64,
                };
                reader.skip(size)?;
            }
            USER => {
                let size = reader.take(4)? as usize;
                reader.skip(5 + 8 * size)?;
            }
            mode => {
                reader.skip(NARROW_BITS.get(mode as usize)? - 5)?;
                count += 1;
                if count > FRAMES_MAX {
                    return None;
                }
            }
        }
    }
}

struct Reader<'a> {
    payload: &'a [u8],
    at: usize,
}

impl Reader<'_> {
    fn left(&self) -> usize {
        self.payload.len() * 8 - self.at
    }
    fn bit(&self, at: usize) -> u32 {
        self.payload.get(at / 8).map_or(0, |byte| u32::from(byte >> (7 - at % 8) & 1))
    }
    fn peek(&self) -> u32 {
        self.bit(self.at)
    }
    fn take(&mut self, count: usize) -> Option<u32> {
        let start = self.at;
        self.skip(count)?;
        Some((start..self.at).fold(0, |value, at| value << 1 | self.bit(at)))
    }
    fn skip(&mut self, count: usize) -> Option<()> {
        if count > self.left() {
            return None;
        }
        self.at += count;
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn payloads_are_walked_frame_by_frame_and_what_a_decoder_would_complain_of_is_none() {
        // 0 0000 is a frame without excitation; 0 1111 ends.
        for (name, payload, band, expected) in [
            ("nothing", &[][..], Band::Narrow, Some(0)),
            ("a terminator", &[0b0111_1000], Band::Narrow, Some(0)),
            ("an empty frame and a terminator", &[0b0000_0011, 0b1100_0000], Band::Narrow, Some(1)),
            ("a submode that is none", &[0b0101_0000, 0], Band::Narrow, None),
            ("a frame cut short", &[0b0001_1000, 0], Band::Narrow, None),
            ("a layer without a frame", &[0b1000_0000, 0], Band::Wide, None),
            ("a frame with an empty layer", &[0b0000_0100, 0b0011_1100], Band::Wide, Some(1)),
            ("a layer that is none", &[0b0000_0110, 0b1011_1100], Band::Wide, None),
            ("too many frames", &[0; 8], Band::Narrow, None),
            ("the user's data cut short", &[0b0110_1111, 0b1000_0000], Band::Narrow, None),
        ] {
            assert_eq!(frames(payload, band), expected, "{name}");
        }
    }
}
