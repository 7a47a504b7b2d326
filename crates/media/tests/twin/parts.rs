//! What one line of the twin is made of: hearing, speaking, playing, listening for things. One line at a time, sample by
//! sample where that is the plain way, everything at the moment it is due.

use std::collections::VecDeque;
use std::sync::{Arc, mpsc};

use base::{Clip, FormatId, Granule, Instant, Plan, PlayId, SampleRate, Wishes};
use codec::{Coders, Decoder, DtmfDetector, DtmfEdge, Encoder, Resampler};
use rtp::{EventEdge, Grid, Jitter, JitterLimits, LENGTH_BYTES, Pulled};

/// After so long without a packet a line is silent.
const STARVED_MS: u32 = 200;

/// Samples of `ms`.
pub fn samples(rate: SampleRate, ms: u8) -> usize {
    rate.0 as usize * usize::from(ms) / 1000
}

/// Takes what is there of `count` samples; the rest is silence.
fn take(fifo: &mut VecDeque<i16>, count: usize) -> Vec<i16> {
    (0..count).map(|_| fifo.pop_front().unwrap_or(0)).collect()
}

/// A jitter buffer and a decoder.
pub struct Ear {
    pub format: FormatId,
    jitter: Jitter,
    decoder: Decoder,
    decoded: VecDeque<i16>,
    unit_samples: usize,
    step_units: usize,
    starved_ms: u32,
    malformed: u32,
}

impl Ear {
    pub fn new(format: FormatId, jitter_max_ms: u16, coders: &Coders) -> Self {
        let limits = match jitter_max_ms {
            0 => JitterLimits { min_ms: 0, max_ms: 40 },
            most => JitterLimits { min_ms: most.min(20), max_ms: most },
        };
        let grid = grid(format);
        let unit_samples = (u64::from(format.rate().0) * u64::from(grid.unit_us) / 1_000_000) as usize;
        // A frame of the codec at a time, or 10 ms.
        let step_units = match codec::decode_frame(format) {
            Some(frame) => (frame.samples / unit_samples).max(1),
            None => (10_000 / grid.unit_us).max(1) as usize,
        };
        Self {
            format,
            jitter: Jitter::new(grid, limits),
            decoder: coders.decoder(format),
            decoded: VecDeque::new(),
            unit_samples,
            step_units,
            starved_ms: STARVED_MS,
            malformed: 0,
        }
    }
    fn lasts(&self, payload: &[u8]) -> usize {
        codec::packet_samples(self.format, payload)
    }
    pub fn can_read(&self, payload: &[u8]) -> bool {
        match self.jitter.grid().is_variable {
            true => (1..=samples(self.format.rate(), 60)).contains(&self.lasts(payload)),
            false => payload.len().is_multiple_of(self.jitter.grid().unit_bytes.into()),
        }
    }
    /// Whether the packet will be heard.
    pub fn push(&mut self, sequence: u16, timestamp: u32, payload: &[u8]) -> bool {
        if !self.jitter.grid().is_variable {
            return self.jitter.push(sequence, timestamp, payload);
        }
        let lasts = self.lasts(payload);
        lasts <= samples(self.format.rate(), 60)
            && self.jitter.push_units(sequence, timestamp, lasts / self.unit_samples, payload)
    }
    pub fn restart(&mut self) {
        self.jitter.reset();
        self.decoder.reset();
    }
    pub fn delay_ms(&self) -> u32 {
        self.jitter.delay_ms()
    }
    pub fn is_starved(&self) -> bool {
        self.starved_ms >= STARVED_MS
    }
    pub fn take_malformed(&mut self) -> u32 {
        let before = self.malformed;
        self.malformed = self.decoder.malformed();
        self.malformed.wrapping_sub(before)
    }
    /// The next `count` samples; their time has come.
    pub fn hear(&mut self, count: usize) -> Vec<i16> {
        let steps = count / (self.step_units * self.unit_samples).max(1) + 2;
        for _ in 0..steps {
            if self.decoded.len() >= count {
                break;
            }
            if !self.recover() {
                self.step();
            }
        }
        take(&mut self.decoded, count)
    }
    fn step(&mut self) {
        let Self { jitter, decoder, decoded, starved_ms, format, unit_samples, .. } = self;
        let grid = jitter.grid();
        jitter.pull(self.step_units, |run| match run {
            Pulled::Audio(coded) => {
                *starved_ms = 0;
                let count = match grid.is_variable {
                    true => codec::packet_samples(*format, coded),
                    false => coded.len() / usize::from(grid.unit_bytes) * *unit_samples,
                };
                let mut coded = coded.to_vec();
                if format.is_linear() {
                    codec::swap_bytes(&mut coded);
                }
                let mut linear = vec![0; count];
                let count = decoder.decode(&coded, &mut linear);
                decoded.extend(&linear[..count]);
            }
            Pulled::Missing(units) => {
                *starved_ms += (u64::from(grid.unit_us) * units as u64 / 1000) as u32;
                let mut linear = vec![0; units * *unit_samples];
                decoder.conceal(&mut linear);
                decoded.extend(&linear);
            }
        });
    }
    /// A hole of at most 60 ms comes from a copy in the packet after it, where the format has such.
    fn recover(&mut self) -> bool {
        let units_max = (60_000 / self.jitter.grid().unit_us) as usize;
        let Some((units, next)) = self.jitter.hole(units_max) else { return false };
        let mut linear = vec![0; units * self.unit_samples];
        if !self.decoder.recover(next, &mut linear) {
            return false;
        }
        self.decoded.extend(&linear);
        self.jitter.pull(units, |_| {});
        true
    }
}

/// How a format divides: in whole milliseconds and frames.
fn grid(format: FormatId) -> Grid {
    let Granule { samples, bytes } = format.granule();
    let (rate, clock) = (format.rate().0 as usize, u64::from(format.rtp_clock()));
    let variable = match format {
        FormatId::SPEEX => Some(62),
        FormatId::SPEEX16 | FormatId::SPEEX32 => Some(110),
        FormatId::OPUS => Some(160),
        _ => None,
    };
    let unit_samples = match format {
        FormatId::OPUS => rate / 100,
        FormatId::SLIN44 => rate / 100,
        _ => samples.max(rate / 1000),
    };
    let unit_us = (unit_samples * 1_000_000 / rate) as u32;
    Grid {
        unit_bytes: variable.map_or(unit_samples / samples * bytes, |most| most + LENGTH_BYTES) as u16,
        unit_stamps: (clock * u64::from(unit_us) / 1_000_000) as u16,
        unit_us,
        is_variable: variable.is_some(),
    }
}

/// A resampler and an encoder.
pub struct Mouth {
    from: SampleRate,
    wishes: Wishes,
    encoder: Encoder,
    resampler: Option<Resampler>,
    linear: Vec<i16>,
}

impl Mouth {
    pub fn new(from: SampleRate, to: FormatId, wishes: Wishes, coders: &Coders) -> Self {
        let resampler = Resampler::new(from, to.rate());
        Self { from, wishes, encoder: coders.encoder(to, &wishes), resampler, linear: Vec::new() }
    }
    pub fn fits(&self, from: SampleRate, to: FormatId, wishes: Wishes) -> bool {
        (self.from, self.encoder.format(), self.wishes) == (from, to, wishes)
    }
    /// Whether it is run in groups.
    pub fn has_lanes(&self) -> bool {
        self.encoder.lane().is_some()
    }
    /// The packet of `ms` that these samples make.
    pub fn say(&mut self, heard: &[i16], ms: u8) -> Vec<u8> {
        match &mut self.resampler {
            None => self.linear.extend(heard),
            Some(resampler) => {
                let mut out = vec![0; resampler.output_max(heard.len())];
                let count = resampler.process(heard, &mut out);
                self.linear.extend(&out[..count]);
            }
        }
        let format = self.encoder.format();
        let granule = format.granule();
        let mut coded = vec![0; format.packet_room(ms.into())];
        let whole = self.linear.len() / granule.samples;
        if format.is_constant() {
            let fits = whole.min(coded.len() / granule.bytes);
            let bytes = self.encoder.encode(&self.linear[..fits * granule.samples], &mut coded);
            codec::fill_silence(format, &mut coded[bytes..]);
        } else {
            let bytes = self.encoder.encode(&self.linear[..whole * granule.samples], &mut coded);
            coded.truncate(bytes);
        }
        // What is more than a packet would be delay that never ends.
        self.linear.drain(..whole * granule.samples);
        network_order(format, coded)
    }
}

/// L16 is big-endian on the wire.
pub fn network_order(format: FormatId, mut coded: Vec<u8>) -> Vec<u8> {
    if format.is_linear() {
        codec::swap_bytes(&mut coded);
    }
    coded
}

/// A clip with a cursor.
pub struct Player {
    pub play: Option<PlayId>,
    clip: Arc<Clip>,
    pub offset: usize,
    end: usize,
    repeat_from: Option<usize>,
    voice: Option<(Decoder, VecDeque<i16>, Mouth)>,
}

impl Player {
    pub fn clip(play: PlayId, clip: Arc<Clip>, offset: usize, plan: &Plan, coders: &Coders) -> Option<Self> {
        let repeat_from = clip.loop_from;
        Self::new(Some(play), clip, offset, repeat_from, plan, coders)
    }
    pub fn music(
        clip: Arc<Clip>,
        epoch: Instant,
        now: Instant,
        plan: &Plan,
        coders: &Coders,
    ) -> Option<Self> {
        let frames = (now - epoch).as_millis() as usize / usize::from(plan.ptime_ms);
        let frame = clip.format.bytes_in(plan.ptime_ms.into()).max(clip.format.granule().bytes);
        let (end, from) = (whole(&clip), clip.loop_from.unwrap_or(0));
        let mut offset = frames * frame;
        while offset >= end && offset > 0 {
            offset -= end - from;
        }
        Self::new(None, clip, offset, Some(from), plan, coders)
    }
    fn new(
        play: Option<PlayId>,
        clip: Arc<Clip>,
        offset: usize,
        repeat_from: Option<usize>,
        plan: &Plan,
        coders: &Coders,
    ) -> Option<Self> {
        let end = whole(&clip);
        let offset = offset.min(end);
        let offset = offset - offset % clip.format.granule().bytes;
        let repeat_from = repeat_from.filter(|from| *from < end);
        let mut player = Self { play, clip, offset, end, repeat_from, voice: None };
        player.retarget(plan, coders).then_some(player)
    }
    /// Whether the line can still play it under this plan.
    pub fn retarget(&mut self, plan: &Plan, coders: &Coders) -> bool {
        let (from, to) = (self.clip.format, plan.format);
        if from == to {
            self.voice = None;
            return true;
        }
        if !from.is_coded() || !to.is_coded() {
            return false;
        }
        let fits = self.voice.as_ref().is_some_and(|(_, _, mouth)| mouth.fits(from.rate(), to, plan.wishes));
        if !fits {
            let mouth = Mouth::new(from.rate(), to, plan.wishes, coders);
            // What was decoded before goes on where it was.
            match &mut self.voice {
                Some((_, _, own)) => *own = mouth,
                None => self.voice = Some((coders.decoder(from), VecDeque::new(), mouth)),
            }
        }
        true
    }
    pub fn is_over(&self) -> bool {
        self.offset >= self.end && self.repeat_from.is_none()
    }
    pub fn has_lanes(&self) -> bool {
        self.voice.as_ref().is_some_and(|(_, _, mouth)| mouth.has_lanes())
    }
    fn granule(&mut self) -> Option<Vec<u8>> {
        if self.offset >= self.end {
            self.offset = self.repeat_from?;
        }
        let from = self.offset;
        self.offset += self.clip.format.granule().bytes;
        Some(self.clip.data[from..self.offset].to_vec())
    }
    /// The next packet.
    pub fn packet(&mut self, format: FormatId, ms: u8) -> Vec<u8> {
        let source = self.clip.format;
        let granule = source.granule();
        let Some((mut decoder, mut decoded, mut mouth)) = self.voice.take() else {
            let size = format.packet_room(ms.into());
            let mut packet = Vec::new();
            while packet.len() < size
                && let Some(granule) = self.granule()
            {
                packet.extend(granule);
            }
            let filled = packet.len();
            packet.resize(size, 0);
            codec::fill_silence(format, &mut packet[filled..]);
            return network_order(format, packet);
        };
        let count = samples(source.rate(), ms);
        while decoded.len() < count
            && let Some(coded) = self.granule()
        {
            let mut linear = vec![0; granule.samples];
            let count = decoder.decode(&coded, &mut linear);
            decoded.extend(&linear[..count]);
        }
        let packet = mouth.say(&take(&mut decoded, count), ms);
        self.voice = Some((decoder, decoded, mouth));
        packet
    }
}

/// Whole granules of a clip, in bytes.
fn whole(clip: &Clip) -> usize {
    clip.data.len() - clip.data.len() % clip.format.granule().bytes
}

/// The way of samples to whoever keeps them.
pub type Keep = mpsc::Sender<Vec<i16>>;

/// Who listens to what a line hears.
#[derive(Default)]
pub struct Taps {
    pub record: Option<Tap<Keep>>,
    pub digits: Option<Tap<DtmfDetector>>,
    pub silence: Option<Silence>,
}

pub struct Tap<T> {
    pub to: T,
    rate: SampleRate,
    from: SampleRate,
    resampler: Option<Resampler>,
}

impl<T> Tap<T> {
    pub fn new(to: T, rate: SampleRate) -> Self {
        Self { to, rate, from: rate, resampler: None }
    }
    /// The line is heard at this rate from here on.
    fn prepare(&mut self, from: SampleRate) {
        if self.from != from || self.resampler.is_none() {
            self.from = from;
            self.resampler = Resampler::new(from, self.rate);
        }
    }
    fn frame(&mut self, linear: &[i16]) -> Vec<i16> {
        let Some(resampler) = &mut self.resampler else { return linear.to_vec() };
        let mut out = vec![0; resampler.output_max(linear.len())];
        let count = resampler.process(linear, &mut out);
        out.truncate(count);
        out
    }
}

pub struct Silence {
    pub wanted_ms: u32,
    pub threshold: u16,
    pub lasted_ms: u32,
    pub judged: Vec<i16>,
}

impl Taps {
    pub fn is_empty(&self) -> bool {
        self.record.is_none() && self.digits.is_none() && self.silence.is_none()
    }
    pub fn detect(&mut self, on: bool) {
        match on {
            true if self.digits.is_none() => {
                self.digits = Some(Tap::new(DtmfDetector::new(), SampleRate(8000)));
            }
            true => {}
            false => self.digits = None,
        }
    }
    pub fn prepare(&mut self, rate: SampleRate) {
        if let Some(tap) = &mut self.record {
            tap.prepare(rate);
        }
        if let Some(tap) = &mut self.digits {
            tap.prepare(rate);
        }
    }
    /// One frame: how long the silence is when it has been watched for, and digits in the sound.
    pub fn frame(&mut self, linear: &[i16], rate: SampleRate) -> (Option<u32>, Vec<EventEdge>) {
        if let Some(tap) = &mut self.record {
            let said = tap.frame(linear);
            tap.to.send(said).expect("somebody keeps it");
        }
        let mut silent = None;
        if let Some(watch) = &mut self.silence {
            for sample in linear {
                watch.judged.push(*sample);
                if watch.judged.len() < samples(rate, 20) {
                    continue;
                }
                let sum: u64 = watch.judged.iter().map(|sample| u64::from(sample.unsigned_abs())).sum();
                let mean = sum / watch.judged.len() as u64;
                watch.judged.clear();
                watch.lasted_ms = if mean < u64::from(watch.threshold) { watch.lasted_ms + 20 } else { 0 };
                if watch.lasted_ms >= watch.wanted_ms {
                    silent = Some(watch.lasted_ms);
                    watch.lasted_ms = 0;
                }
            }
        }
        let mut edges = Vec::new();
        if let Some(tap) = &mut self.digits {
            let narrow = tap.frame(linear);
            tap.to.process(&narrow, &mut |edge| {
                edges.push(match edge {
                    DtmfEdge::Begin(digit) => EventEdge::Begin(digit),
                    DtmfEdge::End(digit, ms) => EventEdge::End(digit, ms),
                });
            });
        }
        (silent, edges)
    }
}
