//! Codec 2 at 2.4 kbit/s: 160 samples at 8 kHz ⇄ 6 bytes, by libcodec2.

use core::ffi::{c_int, c_void};
use std::sync::OnceLock;

use crate::Unavailable;
use crate::library::functions;

/// Samples of a frame: 20 ms at 8 kHz.
pub const FRAME_SAMPLES: usize = 160;
/// Bytes of a frame.
pub const FRAME_BYTES: usize = 6;
/// `CODEC2_MODE_2400`.
const MODE_2400: c_int = 1;

functions! {
    /// Of `codec2.h`.
    Api {
        create = b"codec2_create\0": fn(c_int) -> *mut c_void;
        destroy = b"codec2_destroy\0": fn(*mut c_void);
        encode = b"codec2_encode\0": fn(*mut c_void, *mut u8, *mut i16);
        decode = b"codec2_decode\0": fn(*mut c_void, *mut i16, *const u8);
        samples = b"codec2_samples_per_frame\0": fn(*mut c_void) -> c_int;
        bits = b"codec2_bits_per_frame\0": fn(*mut c_void) -> c_int;
    }
}

const UNAVAILABLE: Unavailable =
    Unavailable { library: "libcodec2.so", package: "libcodec2-1.0 or libcodec2-1.2" };

fn api() -> Result<&'static Api, Unavailable> {
    static API: OnceLock<Option<Api>> = OnceLock::new();
    // These functions are the same in all three versions: Debian 12 has 1.0, Debian 13 has 1.2.
    let load = || Api::load(&["libcodec2.so.1.2", "libcodec2.so.1.1", "libcodec2.so.1.0"]);
    API.get_or_init(load).as_ref().ok_or(UNAVAILABLE)
}

/// Whether the library is there.
///
/// # Errors
/// When it is not.
pub fn available() -> Result<(), Unavailable> {
    api().map(|_| ())
}

/// A state of the library.
struct Handle {
    api: &'static Api,
    state: *mut c_void,
}

// SAFETY: a state of libcodec2 is memory that only calls with its pointer touch; nothing in it belongs to a thread. The
// pointer is never copied out of the handle, and every call needs the handle exclusively. All states share one number, the
// last of the noise: threads that overwrite it for one another hear other noise.
unsafe impl Send for Handle {}

impl Handle {
    fn new() -> Result<Self, Unavailable> {
        let api = api()?;
        // SAFETY: the mode is one of the library's.
        let state = unsafe { (api.create)(MODE_2400) };
        if state.is_null() {
            return Err(UNAVAILABLE);
        }
        let handle = Self { api, state };
        // SAFETY: the state was just made.
        let (samples, bits) = unsafe { ((api.samples)(state), (api.bits)(state)) };
        // The slices below are as long as these say.
        let expected = (FRAME_SAMPLES as c_int, FRAME_BYTES as c_int * 8);
        if (samples, bits) == expected { Ok(handle) } else { Err(UNAVAILABLE) }
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        // SAFETY: the state was made by the library in `new` and is not used again.
        unsafe { (self.api.destroy)(self.state) };
    }
}

impl core::fmt::Debug for Handle {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Codec2(2400)")
    }
}

/// Codec 2 encoder of one stream.
#[derive(Debug)]
pub struct Encoder(Handle);

impl Encoder {
    /// An encoder in its initial state.
    ///
    /// # Errors
    /// Without libcodec2.
    pub fn new() -> Result<Self, Unavailable> {
        Handle::new().map(Self)
    }

    /// Encodes a frame.
    pub fn encode(&mut self, pcm: &[i16; FRAME_SAMPLES], out: &mut [u8; FRAME_BYTES]) {
        // The library's parameter is not `const`.
        let mut pcm = *pcm;
        // SAFETY: `new` made sure that a frame of this state has so many samples and bytes.
        unsafe { (self.0.api.encode)(self.0.state, out.as_mut_ptr(), pcm.as_mut_ptr()) };
    }
}

/// Codec 2 decoder of one stream. It is better not asked to fill in for lost frames: each frame says how it differs from
/// the one before, so that the same one again goes on changing.
#[derive(Debug)]
pub struct Decoder(Handle);

impl Decoder {
    /// A decoder in its initial state.
    ///
    /// # Errors
    /// Without libcodec2.
    pub fn new() -> Result<Self, Unavailable> {
        Handle::new().map(Self)
    }

    /// Decodes a frame. Every combination of bits is a frame.
    pub fn decode(&mut self, payload: &[u8; FRAME_BYTES], pcm: &mut [i16; FRAME_SAMPLES]) {
        // SAFETY: `new` made sure that a frame of this state has so many samples and bytes.
        unsafe { (self.0.api.decode)(self.0.state, pcm.as_mut_ptr(), payload.as_ptr()) };
    }
}
