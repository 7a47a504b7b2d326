//! One door to every codec: [`Encoder`] and [`Decoder`], dispatched by [`FormatId`].
//!
//! Linear formats are little-endian here, as in files and [`base::Clip`]s; RTP's L16 is big-endian, and
//! [`swap_bytes`] turns one into the other in place. Nothing here allocates after `new`.

use base::{Codec, FormatId};

use crate::plc::Concealer;
use crate::{g711, g722, gsm};

enum EncoderKind {
    Ulaw,
    Alaw,
    Linear,
    G722(Box<g722::Encoder>),
    Gsm(Box<gsm::Encoder>),
    /// Of a format that is passed through only: codes nothing.
    Nothing,
}

/// Linear samples → one format. One per direction of a stream.
pub struct Encoder {
    format: FormatId,
    kind: EncoderKind,
}

impl Encoder {
    /// An encoder in its initial state. One of a format that is not [`FormatId::is_coded`] codes nothing.
    pub fn new(format: FormatId) -> Self {
        let kind = match format.codec() {
            Codec::Ulaw => EncoderKind::Ulaw,
            Codec::Alaw => EncoderKind::Alaw,
            Codec::Slin => EncoderKind::Linear,
            Codec::G722 => EncoderKind::G722(Box::default()),
            Codec::Gsm => EncoderKind::Gsm(Box::default()),
            _ => EncoderKind::Nothing,
        };
        Self { format, kind }
    }
    /// The format it makes.
    pub fn format(&self) -> FormatId {
        self.format
    }
    /// Encodes as many whole granules as both slices hold; returns the bytes written.
    ///
    /// Samples are at the format's rate. A rest smaller than a [`Granule`] is not consumed.
    pub fn encode(&mut self, linear: &[i16], coded: &mut [u8]) -> usize {
        match &mut self.kind {
            EncoderKind::Ulaw => g711::ulaw_encode(linear, coded),
            EncoderKind::Alaw => g711::alaw_encode(linear, coded),
            EncoderKind::Linear => {
                for (pair, sample) in coded.chunks_exact_mut(2).zip(linear) {
                    pair.copy_from_slice(&sample.to_le_bytes());
                }
                linear.len().min(coded.len() / 2) * 2
            }
            EncoderKind::G722(state) => state.encode(linear, coded),
            EncoderKind::Gsm(state) => {
                let frames = linear.chunks_exact(gsm::FRAME_SAMPLES);
                let mut count = 0;
                for (frame, out) in frames.zip(coded.chunks_exact_mut(gsm::FRAME_BYTES)) {
                    if let (Some(frame), Some(out)) = (frame.first_chunk(), out.first_chunk_mut()) {
                        state.encode(frame, out);
                        count += gsm::FRAME_BYTES;
                    }
                }
                count
            }
            EncoderKind::Nothing => 0,
        }
    }
    /// Back to the initial state.
    pub fn reset(&mut self) {
        match &mut self.kind {
            EncoderKind::Ulaw | EncoderKind::Alaw | EncoderKind::Linear | EncoderKind::Nothing => {}
            EncoderKind::G722(state) => **state = g722::Encoder::default(),
            EncoderKind::Gsm(state) => **state = gsm::Encoder::default(),
        }
    }
}

impl core::fmt::Debug for Encoder {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "Encoder({})", self.format)
    }
}

enum DecoderKind {
    Ulaw,
    Alaw,
    Linear,
    G722(Box<g722::Decoder>),
    Gsm(Box<gsm::Decoder>),
    /// Of a format that is passed through only: decodes nothing.
    Nothing,
}

/// One format → linear samples. One per direction of a stream.
pub struct Decoder {
    format: FormatId,
    kind: DecoderKind,
    malformed: u32,
    /// None for GSM, whose decoder conceals by itself.
    concealer: Option<Concealer>,
}

impl Decoder {
    /// A decoder in its initial state. One of a format that is not [`FormatId::is_coded`] decodes nothing.
    pub fn new(format: FormatId) -> Self {
        let kind = match format.codec() {
            Codec::Ulaw => DecoderKind::Ulaw,
            Codec::Alaw => DecoderKind::Alaw,
            Codec::Slin => DecoderKind::Linear,
            Codec::G722 => DecoderKind::G722(Box::default()),
            Codec::Gsm => DecoderKind::Gsm(Box::default()),
            _ => DecoderKind::Nothing,
        };
        let concealer = (format.codec() != Codec::Gsm).then(|| Concealer::new(format.rate().0));
        Self { format, kind, malformed: 0, concealer }
    }
    /// The format it reads.
    pub fn format(&self) -> FormatId {
        self.format
    }
    /// Decodes as many whole granules as both slices hold; returns the samples written.
    ///
    /// A GSM frame without its signature is concealed; it and a rest smaller than a [`Granule`] count as
    /// [`Self::malformed`]. Panics never.
    pub fn decode(&mut self, coded: &[u8], linear: &mut [i16]) -> usize {
        if !coded.len().is_multiple_of(self.format.granule().bytes) {
            self.malformed = self.malformed.saturating_add(1);
        }
        let count = match &mut self.kind {
            DecoderKind::Ulaw => g711::ulaw_decode(coded, linear),
            DecoderKind::Alaw => g711::alaw_decode(coded, linear),
            DecoderKind::Linear => {
                for (sample, pair) in linear.iter_mut().zip(coded.as_chunks::<2>().0) {
                    *sample = i16::from_le_bytes(*pair);
                }
                linear.len().min(coded.len() / 2)
            }
            DecoderKind::G722(state) => state.decode(coded, linear),
            DecoderKind::Gsm(state) => {
                let frames = linear.chunks_exact_mut(gsm::FRAME_SAMPLES);
                let mut count = 0;
                for (out, frame) in frames.zip(coded.chunks_exact(gsm::FRAME_BYTES)) {
                    if let (Some(out), Some(frame)) = (out.first_chunk_mut(), frame.first_chunk()) {
                        if !state.decode(frame, out) {
                            self.malformed = self.malformed.saturating_add(1);
                        }
                        count += gsm::FRAME_SAMPLES;
                    }
                }
                count
            }
            DecoderKind::Nothing => 0,
        };
        if let Some(concealer) = &mut self.concealer {
            concealer.follow(linear.get_mut(..count).unwrap_or_default());
        }
        count
    }
    /// Fills `linear` in place of a packet that never came.
    ///
    /// GSM repeats its last frame and mutes it over 320 ms (GSM 06.11 §5); the others go on with the last pitch period
    /// and fade within 60 ms (after G.711 Appendix I), and the next packet is blended in.
    pub fn conceal(&mut self, linear: &mut [i16]) {
        match &mut self.kind {
            DecoderKind::Gsm(state) => {
                let mut frames = linear.chunks_exact_mut(gsm::FRAME_SAMPLES);
                for frame in frames.by_ref().filter_map(|frame| frame.first_chunk_mut()) {
                    state.conceal(frame);
                }
                frames.into_remainder().fill(0);
            }
            DecoderKind::Nothing => linear.fill(0),
            DecoderKind::Ulaw | DecoderKind::Alaw | DecoderKind::Linear | DecoderKind::G722(_) => {
                if let Some(concealer) = &mut self.concealer {
                    concealer.fill(linear);
                }
            }
        }
    }
    /// How many frames were malformed since `new`.
    pub fn malformed(&self) -> u32 {
        self.malformed
    }
    /// Back to the initial state; the count of malformed frames stays.
    pub fn reset(&mut self) {
        if let Some(concealer) = &mut self.concealer {
            concealer.reset();
        }
        match &mut self.kind {
            DecoderKind::Ulaw | DecoderKind::Alaw | DecoderKind::Linear | DecoderKind::Nothing => {}
            DecoderKind::G722(state) => **state = g722::Decoder::default(),
            DecoderKind::Gsm(state) => **state = gsm::Decoder::default(),
        }
    }
}

impl core::fmt::Debug for Decoder {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "Decoder({}, {} malformed)", self.format, self.malformed)
    }
}

/// Swaps the bytes of each 16-bit sample: little-endian ⇄ network order (RTP's L16). A last odd byte stays.
pub fn swap_bytes(linear: &mut [u8]) {
    for pair in linear.as_chunks_mut::<2>().0 {
        pair.swap(0, 1);
    }
}

/// Fills `coded` with silence of `format`: whole granules, the rest zero. Returns the bytes of whole granules.
pub fn fill_silence(format: FormatId, coded: &mut [u8]) -> usize {
    match format.codec() {
        Codec::Ulaw => coded.fill(g711::ULAW_SILENCE),
        Codec::Alaw => coded.fill(g711::ALAW_SILENCE),
        Codec::Slin => coded.fill(0),
        Codec::G722 => coded.fill(g722::SILENCE),
        Codec::Gsm => {
            let (frames, rest) = coded.as_chunks_mut::<{ gsm::FRAME_BYTES }>();
            frames.fill(gsm::SILENCE);
            rest.fill(0);
        }
        // No decoder of ours will hear it.
        _ => coded.fill(0),
    }
    let bytes = format.granule().bytes;
    coded.len() / bytes * bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Noise, sine};

    #[test]
    fn whole_granules_go_in_and_out_for_every_format() {
        for format in FormatId::coded() {
            let granule = format.granule();
            let pcm = sine(440.0, format.rate().0, 8000.0, granule.samples * 8 + granule.samples / 2);
            let mut coded = vec![0; granule.bytes * 10];
            let bytes = Encoder::new(format).encode(&pcm, &mut coded);
            assert_eq!(bytes, granule.bytes * 8, "{format}");
            let mut linear = vec![0; granule.samples * 10];
            let mut decoder = Decoder::new(format);
            assert_eq!(decoder.decode(&coded[..bytes], &mut linear), granule.samples * 8, "{format}");
            assert_eq!(decoder.malformed(), 0, "{format}");
        }
    }

    #[test]
    fn short_slices_bound_the_work_on_either_side() {
        for format in FormatId::coded() {
            let granule = format.granule();
            let pcm = vec![0; granule.samples * 4];
            let mut coded = vec![0; granule.bytes * 2];
            assert_eq!(Encoder::new(format).encode(&pcm, &mut coded), granule.bytes * 2, "{format}");
            assert_eq!(Encoder::new(format).encode(&[], &mut coded), 0, "{format}");
            let mut linear = vec![0; granule.samples];
            assert_eq!(Decoder::new(format).decode(&coded, &mut linear), granule.samples, "{format}");
        }
    }

    #[test]
    fn hostile_bytes_are_counted_and_never_panic() {
        let mut noise = Noise(1);
        for format in FormatId::coded() {
            let mut decoder = Decoder::new(format);
            let mut linear = [0i16; 2000];
            for length in 0..400usize {
                let bytes: Vec<u8> = (0..length).map(|_| noise.bits() as u8).collect();
                decoder.decode(&bytes, &mut linear);
                decoder.conceal(&mut linear[..length]);
            }
            let expect_malformed = matches!(format.codec(), Codec::Gsm | Codec::Slin);
            assert_eq!(decoder.malformed() > 0, expect_malformed, "{format}");
        }
    }

    #[test]
    fn silence_decodes_to_almost_nothing_and_reset_repeats_the_first_run() {
        for format in FormatId::coded() {
            let granule = format.granule();
            let mut coded = vec![1; granule.bytes * 50];
            assert_eq!(fill_silence(format, &mut coded), granule.bytes * 50, "{format}");
            let mut linear = vec![0; granule.samples * 50];
            Decoder::new(format).decode(&coded, &mut linear);
            let peak = linear.iter().map(|s| s.unsigned_abs()).max().unwrap();
            assert!(peak <= 16, "{format}: {peak}");

            let pcm = sine(1000.0, format.rate().0, 5000.0, granule.samples * 10);
            let (mut first, mut second) = (vec![0; granule.bytes * 10], vec![0; granule.bytes * 10]);
            let mut encoder = Encoder::new(format);
            encoder.encode(&pcm, &mut first);
            encoder.reset();
            encoder.encode(&pcm, &mut second);
            assert_eq!(first, second, "{format}");
        }
    }

    #[test]
    fn a_long_gap_fades_to_silence() {
        for format in FormatId::coded() {
            let rate = format.rate().0 as usize;
            let granule = format.granule();
            let pcm = sine(440.0, rate as u32, 12_000.0, granule.samples * 200);
            let mut coded = vec![0; granule.bytes * 200];
            Encoder::new(format).encode(&pcm, &mut coded);
            let mut decoder = Decoder::new(format);
            let mut linear = vec![0; granule.samples * 200];
            decoder.decode(&coded, &mut linear);
            let mut gap = vec![1; rate / 50 * 20];
            decoder.conceal(&mut gap);
            assert!(
                gap[gap.len() - 10..].iter().all(|s| s.abs() <= 32),
                "{format}: {:?}",
                &gap[gap.len() - 10..]
            );
        }
    }

    #[test]
    fn states_are_small() {
        assert!(size_of::<g722::Decoder>() + size_of::<g722::Encoder>() <= 1024);
        assert!(size_of::<gsm::Decoder>() <= 1024 && size_of::<gsm::Encoder>() <= 1024);
        assert!(size_of::<Encoder>() <= 32 && size_of::<Decoder>() <= 80);
    }
}
