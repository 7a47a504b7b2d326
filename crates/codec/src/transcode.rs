//! Sound files in another format: bytes of one → bytes of another. (Calls go through decoder and encoder themselves, which
//! `media` keeps in its ears and mouths.)
//!
//! The step is chosen once, in `new`: a copy, a table (µ-law ⇄ A-law), or decoder, resampler and encoder in a row.

use base::{Codec, FormatId};

use crate::coder::{Decoder, Encoder};
use crate::g711;
use crate::resample::Resampler;

/// Linear samples worked on at a time: 20 ms at 48 kHz. Also bounds the stack a step uses.
const CHUNK: usize = 960;
/// Samples that may wait for a frame to be full: the longest frame, 30 ms at 8 kHz and 20 ms at 48.
const CARRY: usize = 960;

enum Step {
    Copy,
    Bytes(&'static [u8; 256]),
    Pipe(Box<Pipe>),
}

struct Pipe {
    decoder: Decoder,
    resampler: Option<Resampler>,
    encoder: Encoder,
    /// Samples short of the encoder's granule, kept for the next call.
    carry: [i16; CARRY],
    carried: usize,
}

/// The table that turns one format into the other byte by byte, with nothing lost that decoding and encoding would keep:
/// µ-law ⇄ A-law (ITU-T G.711 tables 3 and 4), and the two packings of G.726.
pub fn direct(from: FormatId, to: FormatId) -> Option<&'static [u8; 256]> {
    match (from.codec(), to.codec()) {
        (Codec::Ulaw, Codec::Alaw) => Some(&g711::ULAW_TO_ALAW),
        (Codec::Alaw, Codec::Ulaw) => Some(&g711::ALAW_TO_ULAW),
        (Codec::G726, Codec::G726Aal2) | (Codec::G726Aal2, Codec::G726) => Some(&SWAPPED_NIBBLES),
        _ => None,
    }
}

static SWAPPED_NIBBLES: [u8; 256] = {
    let mut table = [0; 256];
    let mut code = 0;
    while code < 256 {
        table[code] = (code as u8).rotate_left(4);
        code += 1;
    }
    table
};

/// From one format of constant rate to another.
///
/// A format of variable rate has packets, which bytes in a row do not keep apart: [`FormatId::clip`] names what its sounds
/// are kept in instead.
pub struct Transcoder {
    from: FormatId,
    to: FormatId,
    step: Step,
}

impl Transcoder {
    /// A transcoder in its initial state. Every pair of formats of constant rate has one; equal formats copy.
    pub fn new(from: FormatId, to: FormatId) -> Self {
        debug_assert!(from.is_constant() && to.is_constant(), "{from} -> {to}");
        let step = match direct(from, to) {
            _ if from == to => Step::Copy,
            Some(table) => Step::Bytes(table),
            None => Step::Pipe(Box::new(Pipe {
                decoder: Decoder::new(from),
                resampler: Resampler::new(from.rate(), to.rate()),
                encoder: Encoder::new(to),
                carry: [0; CARRY],
                carried: 0,
            })),
        };
        Self { from, to, step }
    }
    /// The format that goes in.
    pub fn from(&self) -> FormatId {
        self.from
    }
    /// The format that comes out.
    pub fn to(&self) -> FormatId {
        self.to
    }
    /// Room that `input` bytes may need on the way out.
    pub fn output_max(&self, input: usize) -> usize {
        if matches!(self.step, Step::Copy | Step::Bytes(_)) {
            return input;
        }
        let (source, target) = (self.from.granule(), self.to.granule());
        let samples = input.div_ceil(source.bytes) * source.samples;
        let resampled =
            (samples as u64 * u64::from(self.to.rate().0)).div_ceil(u64::from(self.from.rate().0));
        (resampled as usize + 1 + target.samples) / target.samples * target.bytes
    }
    /// Transcodes whole granules of `input`; returns the bytes written.
    ///
    /// `output` should have [`Self::output_max`] bytes; what does not fit is lost. Samples that do not fill a frame
    /// of the target (10 ms towards GSM) wait for the next call, so 20 ms in give 20 ms out on average.
    pub fn transcode(&mut self, input: &[u8], output: &mut [u8]) -> usize {
        match &mut self.step {
            Step::Copy => {
                let count = input.len().min(output.len());
                if let (Some(out), Some(data)) = (output.get_mut(..count), input.get(..count)) {
                    out.copy_from_slice(data);
                }
                count
            }
            Step::Bytes(table) => {
                for (to, from) in output.iter_mut().zip(input) {
                    *to = table[usize::from(*from)];
                }
                input.len().min(output.len())
            }
            Step::Pipe(pipe) => {
                let granule = self.from.granule();
                let bytes = CHUNK / 6 / granule.samples * granule.bytes;
                let mut written = 0;
                for chunk in input.chunks(bytes.max(granule.bytes)) {
                    let mut linear = [0; CHUNK];
                    let count = pipe.decoder.decode(chunk, &mut linear);
                    written += pipe.push_all(linear.get(..count).unwrap_or_default(), output, written);
                }
                written
            }
        }
    }
    /// Fills in for a packet of `samples` source samples that never came; returns the bytes written.
    ///
    /// At most 60 ms at a time; longer gaps are called for in pieces.
    pub fn conceal(&mut self, samples: usize, output: &mut [u8]) -> usize {
        let Step::Pipe(pipe) = &mut self.step else {
            let room = samples.saturating_mul(self.to.granule().bytes) / self.to.granule().samples;
            let count = room.min(output.len());
            return crate::coder::fill_silence(self.to, output.get_mut(..count).unwrap_or_default());
        };
        let mut written = 0;
        let mut left = samples.min(CHUNK * 3);
        while left > 0 {
            let mut linear = [0; CHUNK];
            let count = left.min(self.from.granule().samples.max(CHUNK / 6));
            let piece = linear.get_mut(..count).unwrap_or_default();
            pipe.decoder.conceal(piece);
            written += pipe.push_all(piece, output, written);
            left -= count;
        }
        written
    }
    /// Malformed input frames so far.
    pub fn malformed(&self) -> u32 {
        match &self.step {
            Step::Pipe(pipe) => pipe.decoder.malformed(),
            Step::Copy | Step::Bytes(_) => 0,
        }
    }
    /// Back to the initial state.
    pub fn reset(&mut self) {
        if let Step::Pipe(pipe) = &mut self.step {
            pipe.decoder.reset();
            pipe.encoder.reset();
            pipe.carried = 0;
            if let Some(resampler) = &mut pipe.resampler {
                resampler.reset();
            }
        }
    }
}

impl core::fmt::Debug for Transcoder {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "Transcoder({} -> {})", self.from, self.to)
    }
}

impl Pipe {
    /// Takes up to [`CHUNK`] samples; returns the bytes written from `start` on.
    fn push_all(&mut self, linear: &[i16], output: &mut [u8], start: usize) -> usize {
        let mut written = 0;
        for piece in linear.chunks(CHUNK / 6) {
            written += self.push(piece, output.get_mut(start + written..).unwrap_or_default());
        }
        written
    }
    /// Takes at most `CHUNK / 6` samples at the source's rate (the widest ratio is 8 → 48 kHz).
    fn push(&mut self, linear: &[i16], output: &mut [u8]) -> usize {
        let granule = self.encoder.format().granule();
        // Carried samples, then resampled ones, side by side.
        let mut work = [0i16; CARRY + CHUNK + 2];
        let (head, tail) = work.split_at_mut(self.carried);
        head.copy_from_slice(self.carry.get(..self.carried).unwrap_or_default());
        let fresh = match &mut self.resampler {
            Some(resampler) => resampler.process(linear, tail),
            None => {
                for (slot, &sample) in tail.iter_mut().zip(linear) {
                    *slot = sample;
                }
                linear.len()
            }
        };
        let total = self.carried + fresh;
        let whole = total / granule.samples * granule.samples;
        let written = self.encoder.encode(work.get(..whole).unwrap_or_default(), output);
        let rest = work.get(whole..total).unwrap_or_default();
        for (slot, &sample) in self.carry.iter_mut().zip(rest) {
            *slot = sample;
        }
        self.carried = rest.len();
        written
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{rms, sine};

    const VOCODERS: [FormatId; 2] = [FormatId::LPC10, FormatId::CODEC2];

    #[test]
    fn every_pair_of_formats_carries_a_tone() {
        for from in FormatId::coded().filter(|format| format.is_constant()) {
            for to in FormatId::coded().filter(|format| format.is_constant()) {
                let second = from.rate().0 as usize;
                let pcm = sine(1004.0, from.rate().0, 10_000.0, second);
                let mut coded = vec![0; from.bytes_in(1000)];
                Encoder::new(from).encode(&pcm, &mut coded);
                let mut transcoder = Transcoder::new(from, to);
                let mut result = Vec::new();
                let packet = from.bytes_in(u16::from(from.usual_ms()));
                for (turn, packet) in coded.chunks_exact(packet).enumerate() {
                    let mut room = vec![0; transcoder.output_max(packet.len())];
                    let count = transcoder.transcode(packet, &mut room);
                    result.extend_from_slice(&room[..count]);
                    let due = to.bytes_in((turn as u16 + 1) * u16::from(from.usual_ms()));
                    // 22.5 ms are no whole number of samples at 44.1 kHz.
                    assert!(result.len().abs_diff(due) <= to.granule().bytes, "{from} -> {to}");
                }
                let mut linear = vec![0; to.rate().0 as usize];
                let count = Decoder::new(to).decode(&result, &mut linear);
                assert!(count > linear.len() * 9 / 10, "{from} -> {to}: {count}");
                let level = rms(&linear[linear.len() / 2..linear.len() * 9 / 10]) / rms(&pcm);
                // A vocoder keeps no level of a sine.
                let kept =
                    [from, to].iter().any(|format| VOCODERS.contains(format)) || (0.8..1.15).contains(&level);
                assert!(kept, "{from} -> {to}: {level:.3}");
            }
        }
    }

    #[test]
    fn ten_ms_packets_fill_gsm_frames_every_other_time() {
        let mut transcoder = Transcoder::new(FormatId::ULAW, FormatId::GSM);
        let mut room = [0; 66];
        let counts: Vec<usize> = (0..6).map(|_| transcoder.transcode(&[0xff; 80], &mut room)).collect();
        assert_eq!(counts, [0, 33, 0, 33, 0, 33]);
        transcoder.reset();
        assert_eq!(transcoder.transcode(&[0xff; 80], &mut room), 0);
    }

    #[test]
    fn a_lost_packet_is_filled_with_its_own_length() {
        for (from, to, samples, bytes) in [
            (FormatId::ULAW, FormatId::ALAW, 160, 160),
            (FormatId::GSM, FormatId::ULAW, 160, 160),
            (FormatId::ULAW, FormatId::G722, 160, 160),
            (FormatId::ULAW, FormatId::GSM, 320, 66),
            (FormatId::G722, FormatId::SLIN48, 320, 1920),
        ] {
            let mut room = vec![0; 4000];
            assert_eq!(Transcoder::new(from, to).conceal(samples, &mut room), bytes, "{from} -> {to}");
        }
    }

    #[test]
    fn g711_takes_the_table_and_equal_formats_are_copied_untouched() {
        let all: Vec<u8> = (0..=255).collect();
        let mut room = [0; 256];
        assert_eq!(Transcoder::new(FormatId::GSM, FormatId::GSM).transcode(&all, &mut room), 256);
        assert_eq!(room.as_slice(), all);
        assert_eq!(Transcoder::new(FormatId::ULAW, FormatId::ALAW).transcode(&all, &mut room), 256);
        assert_eq!(room.to_vec(), all.iter().map(|&c| g711::ulaw_to_alaw_one(c)).collect::<Vec<_>>());
    }
}
