//! What listens to a stream besides its bridge: recording, silence watch, tone detection.

use base::{AudioSink, FormatId, SampleRate};
use codec::{DtmfDetector, DtmfEdge, Resampler};
use rtp::EventEdge;

use crate::ear::FRAME_SAMPLES_MAX;
use crate::monitor::Monitors;

/// Silence is judged over frames of so many milliseconds.
const JUDGED_MS: u32 = 20;
/// Edges that one frame of 60 ms can hold: the detector wants 25 ms on each side of one.
const EDGES_MAX: usize = 4;
/// Rate at which tones are looked for.
const DETECTOR_RATE: SampleRate = SampleRate(8000);

/// The taps of one stream.
#[derive(Default)]
pub(crate) struct Taps {
    record: Option<Record>,
    silence: Option<SilenceWatch>,
    pub(crate) inband: Option<Inband>,
    pub(crate) monitors: Option<Box<Monitors>>,
}

struct Record {
    sink: Box<dyn AudioSink>,
    format: FormatId,
    from: SampleRate,
    resampler: Option<Resampler>,
}

struct SilenceWatch {
    wanted_ms: u32,
    threshold: u16,
    silent_ms: u32,
    sum: u64,
    samples: u32,
}

/// What the taps found in one frame.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) silence_ms: Option<u32>,
    pub(crate) digits: [Option<EventEdge>; EDGES_MAX],
}

impl Taps {
    pub(crate) fn is_empty(&self) -> bool {
        let monitored = self.monitors.as_ref().is_some_and(|monitors| !monitors.is_empty());
        self.record.is_none() && self.silence.is_none() && self.inband.is_none() && !monitored
    }
    pub(crate) fn record(&mut self, format: FormatId, sink: Box<dyn AudioSink>) {
        self.record = Some(Record { sink, format, from: format.rate(), resampler: None });
    }
    pub(crate) fn stop_record(&mut self) {
        self.record = None;
    }
    pub(crate) fn watch_silence(&mut self, ms: u32, threshold: u16) {
        self.silence =
            (ms > 0).then_some(SilenceWatch { wanted_ms: ms, threshold, silent_ms: 0, sum: 0, samples: 0 });
    }
    pub(crate) fn detect_inband(&mut self, on: bool) {
        match (on, &self.inband) {
            (true, None) => self.inband = Some(Inband::new()),
            (true, Some(_)) => {}
            (false, _) => self.inband = None,
        }
    }
    /// Builds the converters for audio at `rate`; called when routes are planned, never per packet.
    pub(crate) fn prepare(&mut self, rate: SampleRate) {
        if let Some(record) = &mut self.record
            && (record.from != rate || record.resampler.is_none())
        {
            record.from = rate;
            record.resampler = Resampler::new(rate, record.format.rate());
        }
        if let Some(inband) = &mut self.inband {
            inband.prepare(rate);
        }
    }
    /// One frame at the rate that was prepared.
    pub(crate) fn frame(&mut self, linear: &[i16], rate: SampleRate) -> Found {
        let mut found = Found::default();
        if let Some(record) = &mut self.record {
            match &mut record.resampler {
                None => {
                    record.sink.write(linear);
                }
                Some(resampler) => {
                    let mut wide = [0; FRAME_SAMPLES_MAX + 8];
                    let count = resampler.process(linear, &mut wide);
                    record.sink.write(wide.get(..count).unwrap_or_default());
                }
            }
        }
        if let Some(watch) = &mut self.silence {
            found.silence_ms = watch.frame(linear, rate);
        }
        if let Some(inband) = &mut self.inband {
            inband.frame(linear, &mut found);
        }
        found
    }
}

impl SilenceWatch {
    fn frame(&mut self, linear: &[i16], rate: SampleRate) -> Option<u32> {
        let judged = (rate.0 * JUDGED_MS / 1000).max(1);
        let mut reached = None;
        for sample in linear {
            self.sum += u64::from(sample.unsigned_abs());
            self.samples += 1;
            if self.samples < judged {
                continue;
            }
            let silent = self.sum / u64::from(self.samples) < u64::from(self.threshold);
            (self.sum, self.samples) = (0, 0);
            self.silent_ms = if silent { self.silent_ms + JUDGED_MS } else { 0 };
            if self.silent_ms >= self.wanted_ms {
                reached = Some(self.silent_ms);
                self.silent_ms = 0;
            }
        }
        reached
    }
}

/// Recognises tones in the audio, at 8 kHz.
pub(crate) struct Inband {
    detector: DtmfDetector,
    from: SampleRate,
    resampler: Option<Resampler>,
}

impl Inband {
    fn new() -> Self {
        Self { detector: DtmfDetector::new(), from: DETECTOR_RATE, resampler: None }
    }
    fn prepare(&mut self, rate: SampleRate) {
        if self.from != rate {
            self.from = rate;
            self.resampler = Resampler::new(rate, DETECTOR_RATE);
        }
    }
    fn frame(&mut self, linear: &[i16], found: &mut Found) {
        let Self { detector, resampler, .. } = self;
        let mut report = |edge| {
            let edge = match edge {
                DtmfEdge::Begin(digit) => EventEdge::Begin(digit),
                DtmfEdge::End(digit, ms) => EventEdge::End(digit, ms),
            };
            if let Some(slot) = found.digits.iter_mut().find(|slot| slot.is_none()) {
                *slot = Some(edge);
            }
        };
        match resampler {
            None => detector.process(linear, &mut report),
            Some(resampler) => {
                let mut narrow = [0; FRAME_SAMPLES_MAX + 8];
                let count = resampler.process(linear, &mut narrow);
                detector.process(narrow.get(..count).unwrap_or_default(), &mut report);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Digit;
    use std::sync::mpsc;

    #[test]
    fn silence_is_reported_each_time_it_lasted_long_enough_and_sound_starts_it_over() {
        let mut taps = Taps::default();
        taps.watch_silence(60, 256);
        let mut at = Vec::new();
        let (quiet, loud) = ([100; 160], [5000; 160]);
        for (n, frame) in [quiet, quiet, loud, quiet, quiet, quiet, quiet, quiet, quiet].iter().enumerate() {
            if let Some(ms) = taps.frame(frame, SampleRate(8000)).silence_ms {
                at.push((n, ms));
            }
        }
        assert_eq!(at, [(5, 60), (8, 60)]);
        taps.watch_silence(0, 256);
        assert!(taps.is_empty());
    }

    #[test]
    fn tones_are_recognised_at_any_rate_and_in_any_frame_length() {
        for rate in [8000, 16_000, 48_000] {
            for ms in [10, 20, 60] {
                let rate = SampleRate(rate);
                let mut taps = Taps::default();
                taps.detect_inband(true);
                taps.prepare(rate);
                let mut linear: Vec<i16> = Vec::new();
                for symbol in "159D".chars() {
                    linear.extend(codec::tone::dtmf(Digit::from_char(symbol).unwrap(), 100, rate));
                    linear.extend(vec![0; rate.0 as usize / 10]);
                }
                let frames = linear.chunks(rate.0 as usize * ms / 1000);
                let edges = frames.flat_map(|frame| taps.frame(frame, rate).digits).flatten();
                let heard: String = edges
                    .filter_map(
                        |edge| if let EventEdge::Begin(digit) = edge { Some(digit.to_char()) } else { None },
                    )
                    .collect();
                assert_eq!(heard, "159D", "{} Hz, {ms} ms", rate.0);
            }
        }
    }

    struct Kept(mpsc::Sender<Vec<i16>>);
    impl AudioSink for Kept {
        fn write(&mut self, samples: &[i16]) -> usize {
            self.0.send(samples.to_vec()).unwrap();
            samples.len()
        }
    }

    #[test]
    fn a_recording_has_the_rate_it_was_asked_for() {
        for (from, format, samples) in
            [(8000, FormatId::SLIN, 1600), (16_000, FormatId::SLIN, 1600), (8000, FormatId::SLIN16, 3200)]
        {
            let (sink, kept) = mpsc::channel();
            let mut taps = Taps::default();
            taps.record(format, Box::new(Kept(sink)));
            taps.prepare(SampleRate(from));
            for _ in 0..10 {
                taps.frame(&vec![1000; from as usize / 50], SampleRate(from));
            }
            let kept: Vec<i16> = kept.try_iter().flatten().collect();
            assert_eq!(kept.len(), samples, "{from} to {format}");
            assert!(kept[samples / 2..].iter().all(|s| (s - 1000).abs() < 20), "{from} to {format}");
        }
    }
}
