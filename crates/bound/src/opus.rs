//! Opus (RFC 6716) with what RFC 7587 lets two sides agree upon: bit rate, bandwidth, in-band FEC, DTX, constant bit rate.
//!
//! Encoder and decoder take any of [`RATES`]; both sides of a call need not use the same. Always mono: what comes in
//! stereo is mixed down by the decoder.

use opus::{Application, Bandwidth, Bitrate, Channels};

use crate::{Concealed, Encoded, Unavailable};

/// Rates of samples, in Hz.
pub const RATES: [u32; 5] = [8000, 12_000, 16_000, 24_000, 48_000];
/// Longest packet: 120 ms (RFC 6716 §3.2.5).
pub const PACKET_MS_MAX: usize = 120;
/// Largest payload that is decoded: six frames of 20 ms at the highest bit rate (510 kbit/s).
pub const PAYLOAD_BYTES_MAX: usize = 7650;
/// Share of packets that are taken to be lost when nobody says otherwise, in percent: without a loss there is no FEC.
const LOSS_PERCENT: u8 = 10;
/// Effort, 0 to 10: beyond the middle it costs twice as much for what few hear.
const COMPLEXITY: i32 = 5;
/// Packets of this size or less say nothing (libopus under DTX).
const SILENT_BYTES: usize = 2;

/// What the encoder goes by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// Bits a second at most on average; `None` for what suits the bandwidth.
    pub bitrate: Option<u32>,
    /// Highest rate that the peer can play, in Hz.
    pub playback_rate: u32,
    /// Whether packets carry a coarse copy of the frame before.
    pub fec: bool,
    /// Share of packets that are taken to be lost, in percent: how much is spent on that copy.
    pub loss_percent: u8,
    /// Whether silence is sent every 400 ms only.
    pub dtx: bool,
    /// Whether each packet is equally long.
    pub constant: bool,
    /// Effort, 0 to 10.
    pub complexity: u8,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            bitrate: None,
            playback_rate: 48_000,
            fec: false,
            loss_percent: LOSS_PERCENT,
            dtx: false,
            constant: false,
            complexity: COMPLEXITY as u8,
        }
    }
}

const UNAVAILABLE: Unavailable =
    Unavailable { library: "libopus", package: "no package: it is part of this program" };

/// Opus encoder of one stream.
#[derive(Debug)]
pub struct Encoder {
    encoder: opus::Encoder,
    rate: u32,
}

impl Encoder {
    /// An encoder of mono samples at one of [`RATES`].
    ///
    /// # Errors
    /// For another rate, or without memory.
    pub fn new(rate: u32, options: &Options) -> Result<Self, Unavailable> {
        Self::make(rate, options).map_err(|_| UNAVAILABLE)
    }

    fn make(rate: u32, options: &Options) -> opus::Result<Self> {
        let mut encoder = opus::Encoder::new(rate, Channels::Mono, Application::Voip)?;
        encoder.set_bitrate(options.bitrate.map_or(Bitrate::Auto, |bits| Bitrate::Bits(bits as i32)))?;
        encoder.set_vbr(!options.constant)?;
        encoder.set_max_bandwidth(match options.playback_rate {
            0..=8000 => Bandwidth::Narrowband,
            8001..=12_000 => Bandwidth::Mediumband,
            12_001..=16_000 => Bandwidth::Wideband,
            16_001..=24_000 => Bandwidth::Superwideband,
            _ => Bandwidth::Fullband,
        })?;
        encoder.set_inband_fec(options.fec)?;
        encoder.set_packet_loss_perc(if options.fec {
            i32::from(options.loss_percent.min(100))
        } else {
            0
        })?;
        encoder.set_dtx(options.dtx)?;
        encoder.set_complexity(i32::from(options.complexity.min(10)))?;
        Ok(Self { encoder, rate })
    }

    /// Encodes a packet of 2.5, 5, 10, 20, 40, 60, 80, 100 or 120 ms; nothing, and nothing written, for other lengths.
    ///
    /// The packet is as large as its bit rate says, and never larger than `out`.
    pub fn encode(&mut self, pcm: &[i16], out: &mut [u8]) -> Encoded {
        let bytes = self.encoder.encode(pcm, out).unwrap_or(0);
        Encoded { bytes, silent: bytes <= SILENT_BYTES }
    }

    /// Rate of the samples.
    pub fn rate(&self) -> u32 {
        self.rate
    }

    /// Back to the initial state, with the same options.
    pub fn reset(&mut self) {
        // Resetting fails for a state of another library only.
        let _ = self.encoder.reset_state();
    }
}

/// Opus decoder of one stream.
#[derive(Debug)]
pub struct Decoder {
    decoder: opus::Decoder,
    rate: u32,
    /// Samples of the last packet.
    usual: usize,
}

impl Decoder {
    /// A decoder to mono samples at one of [`RATES`].
    ///
    /// # Errors
    /// For another rate, or without memory.
    pub fn new(rate: u32) -> Result<Self, Unavailable> {
        let decoder = opus::Decoder::new(rate, Channels::Mono).map_err(|_| UNAVAILABLE)?;
        Ok(Self { decoder, rate, usual: rate as usize / 50 })
    }

    /// Decodes a packet; returns the samples written.
    ///
    /// # Errors
    /// For a malformed packet and one longer than `pcm`: what the stream is used to was made up instead.
    pub fn decode(&mut self, payload: &[u8], pcm: &mut [i16]) -> Result<usize, Concealed> {
        // An empty payload asks libopus for concealment, which is not what an empty packet is.
        let whole = !payload.is_empty() && payload.len() <= PAYLOAD_BYTES_MAX;
        match whole.then(|| self.decoder.decode(payload, pcm, false)) {
            Some(Ok(samples)) => {
                self.usual = samples;
                Ok(samples)
            }
            _ => {
                let samples = self.usual.min(pcm.len());
                self.conceal(pcm.get_mut(..samples).unwrap_or_default());
                Err(Concealed(samples))
            }
        }
    }

    /// Fills in for what never came, from what was heard.
    pub fn conceal(&mut self, pcm: &mut [i16]) {
        self.fill(&[], pcm);
    }

    /// Fills in for what never came from the coarse copy in the packet after it, where there is one.
    ///
    /// The packet is decoded by [`Self::decode`] afterwards as any other.
    pub fn recover(&mut self, next: &[u8], pcm: &mut [i16]) {
        let next = if next.len() <= PAYLOAD_BYTES_MAX { next } else { &[] };
        self.fill(next, pcm);
    }

    fn fill(&mut self, next: &[u8], pcm: &mut [i16]) {
        // libopus wants multiples of 2.5 ms, at most 120 ms of them.
        let unit = self.rate as usize / 400;
        let most = unit * (PACKET_MS_MAX * 2 / 5);
        let whole = pcm.len() / unit * unit;
        let (filled, rest) = pcm.split_at_mut(whole);
        rest.fill(0);
        for piece in filled.chunks_mut(most) {
            if self.decoder.decode(next, piece, !next.is_empty()).is_err()
                && self.decoder.decode(&[], piece, false).is_err()
            {
                piece.fill(0);
            }
        }
    }

    /// Rate of the samples.
    pub fn rate(&self) -> u32 {
        self.rate
    }

    /// Back to the initial state.
    pub fn reset(&mut self) {
        // Resetting fails for a state of another library only.
        let _ = self.decoder.reset_state();
    }
}

/// Samples that a packet lasts at this rate (RFC 6716 §3.1); `None` for what is no packet.
pub fn samples(payload: &[u8], rate: u32) -> Option<usize> {
    if payload.is_empty() || !RATES.contains(&rate) {
        return None;
    }
    let samples = opus::packet::get_nb_samples(payload, rate).ok()?;
    (samples <= rate as usize * PACKET_MS_MAX / 1000).then_some(samples)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rfc6716_3_1_the_first_byte_tells_how_long_a_packet_is() {
        for (payload, rate, expected) in [
            (&[0x00u8, 1, 2][..], 48_000, Some(480)),
            (&[0x08, 1], 8000, Some(160)),
            (&[0xfb, 6, 0], 48_000, Some(5760)),
            (&[0xfb, 63, 0], 48_000, None),
            (&[], 48_000, None),
            (&[0x08], 44_100, None),
        ] {
            assert_eq!(samples(payload, rate), expected, "{payload:?} at {rate}");
        }
    }
}
