//! Hearing: jitter buffer and decoder of one stream, built only when somebody needs linear samples of it.

use core::ops::Range;

use base::{FormatId, Granule, HoldBack};
use codec::{Coders, DecodeTask, Decoder};
use rtp::{Grid, Jitter, JitterLimits, LENGTH_BYTES, Pulled};

/// Delay that playout aims at when adaptation is on.
const AIM_MS: u16 = 20;
/// Longest delay with adaptation switched off: one frame in hand absorbs the phase between two slots.
const OFF_MAX_MS: u16 = 40;
/// After so long without a packet a stream counts as silent, and a bridge sends nothing for it.
const STARVED_MS: u32 = 200;
/// Longest hole that is filled from the packet after it, microseconds: one packet. What is before its copy is made up.
const RECOVERED_US_MAX: u32 = 60_000;
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
    /// What is there.
    pub(crate) fn filled(&self) -> &[i16] {
        self.samples.get(..self.filled).unwrap_or_default()
    }
    /// Free room of at most `count` samples; what was written there counts from [`Self::wrote`] on.
    pub(crate) fn room(&mut self, count: usize) -> &mut [i16] {
        let end = (self.filled + count).min(self.samples.len());
        self.samples.get_mut(self.filled..end).unwrap_or_default()
    }
    /// So many samples were written into [`Self::room`].
    pub(crate) fn wrote(&mut self, count: usize) {
        self.filled = (self.filled + count).min(self.samples.len());
    }
    /// Lends free room of `count` samples to `fill`, which says how many it wrote.
    pub(crate) fn push_with(&mut self, count: usize, fill: impl FnOnce(&mut [i16]) -> usize) {
        let room = self.room(count);
        let most = room.len();
        let wrote = fill(room).min(most);
        self.wrote(wrote);
    }
    /// Takes `out.len()` samples; what is not there is silence.
    pub(crate) fn take(&mut self, out: &mut [i16]) {
        let count = out.len().min(self.filled);
        let (now, silence) = out.split_at_mut(count);
        if let Some(samples) = self.samples.get(..count) {
            now.copy_from_slice(samples);
        }
        silence.fill(0);
        self.skip(count);
    }
    /// Drops the first `count` samples.
    pub(crate) fn skip(&mut self, count: usize) {
        let count = count.min(self.filled);
        self.samples.copy_within(count..self.filled, 0);
        self.filled -= count;
    }
}

/// Pieces that wait to be decoded: 60 ms in the shortest frames that lanes have, of 10 ms, and one more for the phase
/// between them.
const PIECES_MAX: usize = 7;

/// What the jitter buffer gave and the decoder has not seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Piece {
    /// Coded bytes, the next ones in [`Ear::coded`].
    Coded { bytes: usize, samples: usize },
    /// Nothing came for so many samples.
    Lost { samples: usize },
}

/// Jitter buffer and decoder.
///
/// A frame is heard in three steps, so that streams can be decoded side by side: [`Self::gather`] takes what is due from
/// the jitter buffer, [`Self::task`] lends one piece of it to a group, [`Self::take`] gives the samples. Formats without
/// lanes are decoded by `gather` at once.
#[derive(Debug)]
pub(crate) struct Ear {
    format: FormatId,
    jitter: Jitter,
    decoder: Decoder,
    fifo: Fifo,
    /// The frame that lanes work on, when the format has them.
    lane: Option<Granule>,
    /// Units taken from the jitter buffer at a time, and samples of one unit.
    step_units: usize,
    unit_samples: usize,
    /// Coded bytes of the pieces, from the first on; linear formats are turned from network order here.
    coded: Box<[u8]>,
    filled: usize,
    /// A run that lies in the jitter buffer, due and not decoded yet: nobody else decodes it, and most often all that is
    /// asked for.
    run: Range<usize>,
    pieces: [Piece; PIECES_MAX],
    waiting: usize,
    /// Samples of the piece that was lent; 0 while it is not decoded.
    lent: usize,
    starved_ms: u32,
    /// Frames that could not be read, as far as they were asked for.
    malformed: u32,
}

impl Ear {
    pub(crate) fn new(format: FormatId, jitter_max_ms: u16, coders: &Coders) -> Self {
        let limits = HoldBack { least_ms: AIM_MS.min(jitter_max_ms), most_ms: jitter_max_ms };
        Self::holding_back(format, limits, coders)
    }
    pub(crate) fn holding_back(format: FormatId, limits: HoldBack, coders: &Coders) -> Self {
        let grid = grid(format);
        let limits = match limits.most_ms {
            0 => JitterLimits { min_ms: 0, max_ms: OFF_MAX_MS },
            most_ms => JitterLimits { min_ms: limits.least_ms.min(most_ms), max_ms: most_ms },
        };
        let rate = u64::from(format.rate().0);
        let unit_samples = (rate * u64::from(grid.unit_us) / 1_000_000) as usize;
        let lane = codec::decode_frame(format);
        let step_units = match lane {
            Some(frame) => (frame.samples / unit_samples.max(1)).max(1),
            None => (10_000 / grid.unit_us).max(1) as usize,
        };
        let step_bytes = step_units * usize::from(grid.unit_bytes);
        let frame = (format.rate().0 as usize * 60).div_ceil(1000);
        // One payload of variable rate may last as long as a packet.
        let coded_room = match (lane, grid.is_variable) {
            (Some(_), _) => step_bytes * PIECES_MAX,
            (None, true) => 60_000 / grid.unit_us as usize * usize::from(grid.unit_bytes),
            (None, false) => step_bytes,
        };
        let most = if grid.is_variable { frame } else { step_units * unit_samples };
        Self {
            format,
            jitter: Jitter::new(grid, limits),
            decoder: coders.decoder(format),
            fifo: Fifo::new(frame + most),
            lane,
            step_units,
            unit_samples,
            coded: vec![0; coded_room].into(),
            filled: 0,
            run: 0..0,
            pieces: [Piece::Lost { samples: 0 }; PIECES_MAX],
            waiting: 0,
            lent: 0,
            starved_ms: STARVED_MS,
            malformed: 0,
        }
    }
    pub(crate) const fn format(&self) -> FormatId {
        self.format
    }
    /// Whether it still serves for a stream that receives this format.
    pub(crate) fn fits(&self, format: FormatId) -> bool {
        self.format == format && !self.decoder.is_orphan()
    }
    /// Whether frames of this ear are decoded in lanes.
    pub(crate) const fn has_lanes(&self) -> bool {
        self.lane.is_some()
    }
    /// One packet's payload; false when it came too late or twice.
    pub(crate) fn push(&mut self, sequence: u16, timestamp: u32, payload: &[u8]) -> bool {
        self.fetch_run();
        if !self.jitter.grid().is_variable {
            return self.jitter.push(sequence, timestamp, payload);
        }
        let samples = codec::packet_samples(self.format, payload);
        let whole = samples <= self.format.rate().0 as usize * 60 / 1000;
        whole && self.jitter.push_units(sequence, timestamp, samples / self.unit_samples.max(1), payload)
    }
    /// Whether all of a payload is audio of this format, as far as its size tells.
    pub(crate) fn can_read(&self, payload: &[u8]) -> bool {
        let grid = self.jitter.grid();
        match grid.is_variable {
            true => {
                let samples = codec::packet_samples(self.format, payload);
                samples > 0 && samples <= self.format.rate().0 as usize * 60 / 1000
            }
            false => payload.len().is_multiple_of(usize::from(grid.unit_bytes).max(1)),
        }
    }
    /// Frames that the decoder could not read since this was asked last.
    pub(crate) fn take_malformed(&mut self) -> u32 {
        let all = self.decoder.malformed();
        all.wrapping_sub(core::mem::replace(&mut self.malformed, all))
    }
    /// How long packets are held back, milliseconds.
    pub(crate) fn delay_ms(&self) -> u32 {
        self.jitter.delay_ms()
    }
    /// The source changed or restarted. What was due before is heard all the same.
    pub(crate) fn restart(&mut self) {
        self.finish();
        self.jitter.reset();
        self.decoder.reset();
    }
    /// Whether so little came lately that there is nothing to pass on.
    pub(crate) const fn is_starved(&self) -> bool {
        self.starved_ms >= STARVED_MS
    }
    /// Takes from the jitter buffer what `count` samples need; their time has come. Nothing else is heard until they are
    /// [taken](Self::take).
    pub(crate) fn gather(&mut self, count: usize) {
        self.fetch_run();
        if self.fifo.len() == 0 && self.waiting == 0 && !self.has_lanes() && !self.format.is_linear() {
            let units = count / self.unit_samples.max(1);
            let is_whole = units * self.unit_samples == count && units.is_multiple_of(self.step_units);
            if is_whole && let Some(run) = self.jitter.pull_run(units) {
                (self.run, self.starved_ms) = (run, 0);
                return;
            }
        }
        let step_samples = (self.step_units * self.unit_samples).max(1);
        // A fifo that does not grow would end this loop too, because each pull moves time on: bounded by the frame.
        let steps_max = count / step_samples + 2;
        for _ in 0..steps_max {
            if self.fifo.len() + self.waiting_samples() >= count {
                break;
            }
            self.pull();
            if !self.has_lanes() || self.waiting == PIECES_MAX {
                self.finish();
            }
        }
    }
    /// One step from the jitter buffer into pieces.
    fn pull(&mut self) {
        if self.recover() {
            return;
        }
        let Self { jitter, decoder, fifo, coded, filled, pieces, waiting, starved_ms, .. } = self;
        let (unit_samples, unit_us) = (self.unit_samples, jitter.grid().unit_us);
        let unit_bytes = usize::from(jitter.grid().unit_bytes).max(1);
        let (format, is_linear) = (self.format, self.format.is_linear());
        let is_apart = self.lane.is_none() && !is_linear;
        let is_variable = jitter.grid().is_variable;
        jitter.pull(self.step_units, |run| {
            let piece = match run {
                Pulled::Audio(audio) => {
                    *starved_ms = 0;
                    let samples = match is_variable {
                        true => codec::packet_samples(format, audio),
                        false => audio.len() / unit_bytes * unit_samples,
                    };
                    Piece::Coded { bytes: audio.len(), samples }
                }
                Pulled::Missing(units) => {
                    let ms = u64::from(unit_us) * units as u64 / 1000;
                    *starved_ms = starved_ms.saturating_add(ms as u32);
                    Piece::Lost { samples: units * unit_samples }
                }
            };
            if is_apart {
                // Without lanes there is nobody to wait for.
                match (piece, run) {
                    (Piece::Coded { samples, .. }, Pulled::Audio(audio)) => {
                        fifo.push_with(samples, |room| decoder.decode(audio, room));
                    }
                    (Piece::Lost { samples }, _) | (Piece::Coded { samples, .. }, _) => {
                        conceal(samples, decoder, fifo);
                    }
                }
                return;
            }
            if *waiting == PIECES_MAX {
                // Holes like a comb: what waits is decoded by itself.
                for piece in drain(pieces, waiting) {
                    decode_piece(piece, decoder, coded, filled, fifo);
                }
            }
            if let Pulled::Audio(audio) = run
                && let Some(room) = coded.get_mut(*filled..*filled + audio.len())
            {
                room.copy_from_slice(audio);
                if is_linear {
                    codec::swap_bytes(room);
                }
                *filled += audio.len();
            }
            if let Some(slot) = pieces.get_mut(*waiting) {
                *slot = piece;
                *waiting += 1;
            }
        });
    }
    /// Fills a hole from the packet after it, when that is there already and may hold a copy; false when there is none.
    fn recover(&mut self) -> bool {
        let Self { jitter, decoder, fifo, unit_samples, .. } = self;
        let unit_us = jitter.grid().unit_us.max(1);
        let Some((units, next)) = jitter.hole((RECOVERED_US_MAX / unit_us) as usize) else { return false };
        let mut recovered = false;
        fifo.push_with(units * *unit_samples, |room| {
            recovered = decoder.recover(next, room);
            if recovered { room.len() } else { 0 }
        });
        if recovered {
            jitter.pull(units, |_| {});
        }
        recovered
    }
    fn waiting_samples(&self) -> usize {
        let samples = |piece: &Piece| match *piece {
            Piece::Coded { samples, .. } | Piece::Lost { samples } => samples,
        };
        self.pieces.iter().take(self.waiting).map(samples).sum()
    }
    /// Decodes what lies in the jitter buffer and is due.
    fn fetch_run(&mut self) {
        if self.run.is_empty() {
            return;
        }
        let Self { jitter, decoder, fifo, run, unit_samples, .. } = self;
        let run = core::mem::take(run);
        let units = run.len() / usize::from(jitter.grid().unit_bytes).max(1);
        fifo.push_with(units * *unit_samples, |room| decoder.decode(jitter.coded(run), room));
    }
    /// Decodes everything that waits, by itself.
    pub(crate) fn finish(&mut self) {
        self.fetch_run();
        if self.waiting == 0 {
            return;
        }
        let Self { decoder, fifo, coded, filled, pieces, waiting, .. } = self;
        for piece in drain(pieces, waiting) {
            decode_piece(piece, decoder, coded, filled, fifo);
        }
    }
    /// Decodes or conceals what waits up to the next piece that a group can decode; false when there is none.
    pub(crate) fn settle(&mut self) -> bool {
        while self.waiting > 0 {
            let [piece, ..] = self.pieces;
            let is_constant = self.format.is_constant();
            if let (Piece::Coded { bytes, samples }, Some(frame)) = (piece, self.lane)
                && samples == frame.samples
                && (bytes == frame.bytes || !is_constant)
            {
                return true;
            }
            self.drop_first();
            decode_piece(piece, &mut self.decoder, &mut self.coded, &mut self.filled, &mut self.fifo);
        }
        false
    }
    /// Whether the piece that was lent has been decoded.
    pub(crate) const fn is_done(&self) -> bool {
        self.lent > 0
    }
    /// Bytes and samples of the first piece.
    const fn first(&self) -> (usize, usize) {
        let [piece, ..] = self.pieces;
        match piece {
            Piece::Coded { bytes, samples } => (bytes, samples),
            Piece::Lost { samples } => (0, samples),
        }
    }
    /// Lends the first piece, which [`Self::settle`] found to be fit for a group.
    pub(crate) fn task(&mut self) -> DecodeTask<'_> {
        self.lent = 0;
        let (bytes, samples) = self.first();
        DecodeTask {
            decoder: &mut self.decoder,
            coded: self.coded.get(..bytes).unwrap_or_default(),
            linear: self.fifo.room(samples),
            samples: &mut self.lent,
        }
    }
    /// Takes note of the piece that was lent, if it has been decoded.
    pub(crate) fn decoded(&mut self) {
        if self.lent == 0 {
            return;
        }
        let (bytes, _) = self.first();
        self.fifo.wrote(core::mem::take(&mut self.lent));
        consume(&mut self.coded, &mut self.filled, bytes);
        self.drop_first();
    }
    /// The test hook: the next group with this ear in it panics.
    pub(crate) fn poison(&mut self) {
        self.decoder.poison();
    }
    /// Gives the gathered samples, in time; holes are concealed.
    pub(crate) fn take(&mut self, out: &mut [i16]) {
        let units = self.run.len() / usize::from(self.jitter.grid().unit_bytes).max(1);
        if units > 0 && units * self.unit_samples == out.len() {
            let run = core::mem::take(&mut self.run);
            let count = self.decoder.decode(self.jitter.coded(run), out);
            out.get_mut(count..).unwrap_or_default().fill(0);
            return;
        }
        self.finish();
        self.fifo.take(out);
    }
    fn drop_first(&mut self) {
        self.pieces.rotate_left(1);
        self.waiting = self.waiting.saturating_sub(1);
    }
}

/// The pieces that wait, which wait no longer.
fn drain(pieces: &[Piece; PIECES_MAX], waiting: &mut usize) -> impl Iterator<Item = Piece> + use<> {
    let pieces: [Piece; PIECES_MAX] = *pieces;
    pieces.into_iter().take(core::mem::take(waiting))
}

fn decode_piece(piece: Piece, decoder: &mut Decoder, coded: &mut [u8], filled: &mut usize, fifo: &mut Fifo) {
    match piece {
        Piece::Coded { bytes, samples } => {
            let audio = coded.get(..bytes).unwrap_or_default();
            fifo.push_with(samples, |room| decoder.decode(audio, room));
            consume(coded, filled, bytes);
        }
        Piece::Lost { samples } => conceal(samples, decoder, fifo),
    }
}

fn conceal(samples: usize, decoder: &mut Decoder, fifo: &mut Fifo) {
    fifo.push_with(samples, |room| {
        decoder.conceal(room);
        room.len()
    });
}

/// Drops the first `bytes` of what is there.
fn consume(coded: &mut [u8], filled: &mut usize, bytes: usize) {
    let bytes = bytes.min(*filled);
    coded.copy_within(bytes..*filled, 0);
    *filled -= bytes;
}

/// Most bytes of a unit that are heard of a format of variable rate: a Speex frame of the highest quality, 10 ms of Opus at
/// 128 kbit/s, the frames of G.729 and G.723.1, which end with shorter ones before a silence.
fn variable_bytes(format: FormatId) -> Option<usize> {
    match format {
        FormatId::SPEEX => Some(62),
        FormatId::SPEEX16 | FormatId::SPEEX32 => Some(110),
        FormatId::OPUS => Some(160),
        FormatId::G729 | FormatId::G723 => Some(format.granule().bytes),
        _ => None,
    }
}

/// How a format divides: a millisecond, but codecs with longer frames in those, and 44.1 kHz in 10 ms, its shortest
/// whole number.
fn grid(format: FormatId) -> Grid {
    let Granule { samples, bytes } = format.granule();
    let rate = format.rate().0 as usize;
    if let Some(bytes) = variable_bytes(format) {
        // Opus has packets of 10 ms.
        let unit_us = if format == FormatId::OPUS { 10_000 } else { samples * 1_000_000 / rate } as u32;
        let unit_stamps = (u64::from(format.rtp_clock()) * u64::from(unit_us) / 1_000_000) as u16;
        return Grid { unit_bytes: (bytes + LENGTH_BYTES) as u16, unit_stamps, unit_us, is_variable: true };
    }
    let unit_samples = if rate.is_multiple_of(1000) { samples.max(rate / 1000) } else { rate / 100 };
    let unit_us = (unit_samples * 1_000_000 / rate) as u32;
    let stamps = u64::from(format.rtp_clock()) * u64::from(unit_us) / 1_000_000;
    Grid {
        unit_bytes: (unit_samples / samples * bytes) as u16,
        unit_stamps: stamps as u16,
        unit_us,
        is_variable: false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_format_divides_into_whole_units() {
        for format in FormatId::coded().filter(|format| format.is_constant()) {
            let grid = grid(format);
            let ms = if format == FormatId::LPC10 { 45 } else { 60 };
            let per_frame = ms * 1000 / grid.unit_us as usize;
            assert_eq!(per_frame * usize::from(grid.unit_bytes), format.bytes_in(ms as u16), "{format}");
            assert_eq!(
                per_frame * usize::from(grid.unit_stamps),
                format.rtp_clock() as usize * ms / 1000,
                "{format}"
            );
        }
    }

    #[test]
    fn rfc6716_2_1_7_a_lost_opus_packet_is_filled_from_the_copy_in_the_next_one() {
        let coders = Coders::default();
        let sound = |n: usize| -> Vec<i16> {
            // A voice-like sum that changes from packet to packet, so that the last one again is not the lost one.
            (n * 960..(n + 1) * 960)
                .map(|t| {
                    let t = t as f64 / 48_000.0;
                    let pitch = 120.0 + 60.0 * (t * 9.0).sin();
                    (1..12)
                        .map(|k| {
                            (t * pitch * f64::from(k) * core::f64::consts::TAU).sin() * 1500.0 / f64::from(k)
                        })
                        .sum::<f64>() as i16
                })
                .collect()
        };
        let lost = |n: usize| n > 6 && n % 6 == 3;
        let listen = |packets: &[Vec<u8>], lost: &dyn Fn(usize) -> bool| -> Vec<i16> {
            let mut ear = Ear::new(FormatId::OPUS, 200, &coders);
            let mut heard = Vec::new();
            for (n, packet) in packets.iter().enumerate() {
                if !lost(n) {
                    ear.push(n as u16, n as u32 * 960, packet);
                }
                // A packet in hand, as the buffer aims at.
                if n > 0 {
                    let mut out = [0; 960];
                    ear.gather(out.len());
                    ear.take(&mut out);
                    heard.extend(out);
                }
            }
            heard
        };
        // How far apart what is heard with losses and without is, for a peer that gets copies or none.
        let distance = |fec: bool| -> f64 {
            let wishes = base::Wishes { fec, bitrate: Some(24_000), ..Default::default() };
            let mut encoder = coders.encoder(FormatId::OPUS, &wishes);
            let packets: Vec<Vec<u8>> = (0..60)
                .map(|n| {
                    let mut packet = vec![0; base::VARIABLE_BYTES_MAX];
                    let bytes = encoder.encode(&sound(n), &mut packet);
                    packet.truncate(bytes);
                    packet
                })
                .collect();
            let (whole, lossy) = (listen(&packets, &|_| false), listen(&packets, &lost));
            assert_eq!(lossy.len(), whole.len());
            lossy.iter().zip(&whole).map(|(a, b)| f64::from(i32::from(*a) - i32::from(*b)).powi(2)).sum()
        };
        let (copies, none) = (distance(true), distance(false));
        assert!(copies < none, "{copies:.3e} with copies, {none:.3e} without");
    }

    #[test]
    fn frames_of_any_length_come_out_of_packets_of_any_length() {
        for format in FormatId::coded().filter(|format| format.is_constant()) {
            let mut ear = Ear::new(format, 0, &Coders::default());
            let mut coded = vec![0; format.bytes_in(60)];
            codec::fill_silence(format, &mut coded);
            if format.is_linear() {
                coded.chunks_exact_mut(2).for_each(|sample| sample.copy_from_slice(&1000_i16.to_be_bytes()));
            }
            assert!(ear.push(0, 0, &coded), "{format}");
            for ms in [10, 20, 30] {
                let mut out = vec![1; format.rate().0 as usize * ms / 1000];
                ear.gather(out.len());
                ear.take(&mut out);
                if format.is_linear() {
                    assert!(out.iter().all(|&s| s == 1000), "{format} {ms} ms");
                }
            }
            assert!(!ear.is_starved(), "{format}");
            let mut out = vec![0; format.rate().0 as usize * 60 / 1000];
            (0..4).for_each(|_| {
                ear.gather(out.len());
                ear.take(&mut out);
            });
            assert!(ear.is_starved(), "{format}");
        }
    }
}
