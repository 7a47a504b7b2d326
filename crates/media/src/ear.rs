//! Hearing: jitter buffer and decoder of one stream, built only when somebody needs linear samples of it.

use base::{FormatId, Granule};
use codec::Decoder;
use rtp::{Grid, Jitter, JitterLimits, Pulled};

/// Delay that playout aims at when adaptation is on.
const AIM_MS: u16 = 20;
/// Longest delay with adaptation switched off: one frame in hand absorbs the phase between two slots.
const OFF_MAX_MS: u16 = 40;
/// After so long without a packet a stream counts as silent, and a bridge sends nothing for it.
const STARVED_MS: u32 = 200;
/// Most samples one frame can have: 60 ms at 48 kHz.
pub(crate) const FRAME_SAMPLES_MAX: usize = 2880;

/// Samples between pieces of one size and frames of another. Fixed room, first in, first out.
#[derive(Debug)]
pub(crate) struct Fifo {
    samples: Box<[i16]>,
    filled: usize,
}

impl Fifo {
    pub(crate) fn new(room: usize) -> Self {
        Self { samples: vec![0; room].into(), filled: 0 }
    }
    pub(crate) const fn len(&self) -> usize {
        self.filled
    }
    /// Lends free room of `count` samples to `fill`, which says how many it wrote.
    pub(crate) fn push_with(&mut self, count: usize, fill: impl FnOnce(&mut [i16]) -> usize) {
        let end = (self.filled + count).min(self.samples.len());
        if let Some(room) = self.samples.get_mut(self.filled..end) {
            self.filled += fill(room).min(end - self.filled);
        }
    }
    /// Takes `out.len()` samples; what is not there is silence.
    pub(crate) fn take(&mut self, out: &mut [i16]) {
        let count = out.len().min(self.filled);
        let (now, silence) = out.split_at_mut(count);
        if let Some(samples) = self.samples.get(..count) {
            now.copy_from_slice(samples);
        }
        silence.fill(0);
        self.samples.copy_within(count..self.filled, 0);
        self.filled -= count;
    }
}

/// Jitter buffer and decoder.
#[derive(Debug)]
pub(crate) struct Ear {
    format: FormatId,
    jitter: Jitter,
    decoder: Decoder,
    fifo: Fifo,
    /// Units taken from the jitter buffer at a time, and samples of one unit.
    step_units: usize,
    unit_samples: usize,
    /// Room to turn L16 from network order; empty for other formats.
    swapped: Box<[u8]>,
    starved_ms: u32,
}

impl Ear {
    pub(crate) fn new(format: FormatId, jitter_max_ms: u16) -> Self {
        let grid = grid(format);
        let limits = if jitter_max_ms == 0 {
            JitterLimits { min_ms: 0, max_ms: OFF_MAX_MS }
        } else {
            JitterLimits { min_ms: AIM_MS.min(jitter_max_ms), max_ms: jitter_max_ms }
        };
        let unit_samples = (u64::from(format.rate().0) * u64::from(grid.unit_us) / 1_000_000) as usize;
        let step_units = (10_000 / grid.unit_us).max(1) as usize;
        let swapped = if format.is_linear() { step_units * usize::from(grid.unit_bytes) } else { 0 };
        let frame = (format.rate().0 as usize * 60).div_ceil(1000);
        Self {
            format,
            jitter: Jitter::new(grid, limits),
            decoder: Decoder::new(format),
            fifo: Fifo::new(frame + step_units * unit_samples),
            step_units,
            unit_samples,
            swapped: vec![0; swapped].into(),
            starved_ms: STARVED_MS,
        }
    }
    pub(crate) const fn format(&self) -> FormatId {
        self.format
    }
    /// One packet's payload; false when it came too late or twice.
    pub(crate) fn push(&mut self, timestamp: u32, payload: &[u8]) -> bool {
        self.jitter.push(timestamp, payload)
    }
    /// The source changed or restarted.
    pub(crate) fn restart(&mut self) {
        self.jitter.reset();
        self.decoder.reset();
    }
    /// Whether so little came lately that there is nothing to pass on.
    pub(crate) const fn is_starved(&self) -> bool {
        self.starved_ms >= STARVED_MS
    }
    /// Fills `out` with the next samples in time; holes are concealed.
    pub(crate) fn hear(&mut self, out: &mut [i16]) {
        let Self { jitter, decoder, fifo, step_units, unit_samples, swapped, starved_ms, .. } = self;
        // A fifo that does not grow would end this loop too, because each pull moves time on: bounded by the frame.
        let steps_max = out.len() / (*step_units * *unit_samples).max(1) + 2;
        for _ in 0..steps_max {
            if fifo.len() >= out.len() {
                break;
            }
            jitter.pull(*step_units, |run| match run {
                Pulled::Audio(coded) => {
                    *starved_ms = 0;
                    let samples =
                        coded.len() / usize::from(grid(decoder.format()).unit_bytes) * *unit_samples;
                    let coded = match swapped.get_mut(..coded.len()) {
                        Some(room) if !room.is_empty() => {
                            room.copy_from_slice(coded);
                            codec::swap_bytes(room);
                            &*room
                        }
                        _ => coded,
                    };
                    fifo.push_with(samples, |room| decoder.decode(coded, room));
                }
                Pulled::Missing(units) => {
                    let us = u64::from(grid(decoder.format()).unit_us) * units as u64;
                    *starved_ms = starved_ms.saturating_add((us / 1000) as u32);
                    fifo.push_with(units * *unit_samples, |room| {
                        decoder.conceal(room);
                        room.len()
                    });
                }
            });
        }
        fifo.take(out);
    }
}

/// How a format divides: a millisecond, but codecs with longer frames in those, and 44.1 kHz in 10 ms, its shortest
/// whole number.
fn grid(format: FormatId) -> Grid {
    let Granule { samples, bytes } = format.granule();
    let rate = format.rate().0 as usize;
    let unit_samples = if rate.is_multiple_of(1000) { samples.max(rate / 1000) } else { rate / 100 };
    let unit_us = (unit_samples * 1_000_000 / rate) as u32;
    let stamps = u64::from(format.rtp_clock()) * u64::from(unit_us) / 1_000_000;
    Grid { unit_bytes: (unit_samples / samples * bytes) as u16, unit_stamps: stamps as u16, unit_us }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_format_divides_into_whole_units() {
        for format in FormatId::coded() {
            let grid = grid(format);
            let per_frame = 60_000 / grid.unit_us as usize;
            assert_eq!(per_frame * usize::from(grid.unit_bytes), format.bytes_in(60), "{format}");
            assert_eq!(
                per_frame as u32 * u32::from(grid.unit_stamps),
                format.rtp_clock() * 60 / 1000,
                "{format}"
            );
        }
    }

    #[test]
    fn frames_of_any_length_come_out_of_packets_of_any_length() {
        for format in FormatId::coded() {
            let mut ear = Ear::new(format, 0);
            let mut coded = vec![0; format.bytes_in(60)];
            codec::fill_silence(format, &mut coded);
            if format.is_linear() {
                coded.chunks_exact_mut(2).for_each(|sample| sample.copy_from_slice(&1000_i16.to_be_bytes()));
            }
            assert!(ear.push(0, &coded), "{format}");
            for ms in [10, 20, 30] {
                let mut out = vec![1; format.rate().0 as usize * ms / 1000];
                ear.hear(&mut out);
                if format.is_linear() {
                    assert!(out.iter().all(|&s| s == 1000), "{format} {ms} ms");
                }
            }
            assert!(!ear.is_starved(), "{format}");
            let mut out = vec![0; format.rate().0 as usize * 60 / 1000];
            (0..4).for_each(|_| ear.hear(&mut out));
            assert!(ear.is_starved(), "{format}");
        }
    }
}
