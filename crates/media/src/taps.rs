//! What listens to a stream besides its bridge: recording, silence watch, tone detection.

use base::{AudioSink, Digit, FormatId, SampleRate};
use codec::Resampler;

use crate::ear::FRAME_SAMPLES_MAX;

/// Silence is judged over frames of so many milliseconds.
const JUDGED_MS: u32 = 20;

/// The taps of one stream.
#[derive(Default)]
pub(crate) struct Taps {
    record: Option<Record>,
    silence: Option<SilenceWatch>,
    pub(crate) inband: Option<Inband>,
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
    pub(crate) digit_began: Option<Digit>,
    pub(crate) digit_ended: Option<(Digit, u32)>,
}

impl Taps {
    pub(crate) const fn is_empty(&self) -> bool {
        self.record.is_none() && self.silence.is_none() && self.inband.is_none()
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
    from: SampleRate,
    resampler: Option<Resampler>,
}

impl Inband {
    fn new() -> Self {
        Self { from: SampleRate(8000), resampler: None }
    }
    fn prepare(&mut self, rate: SampleRate) {
        if self.from != rate {
            self.from = rate;
            self.resampler = Resampler::new(rate, SampleRate(8000));
        }
    }
    fn frame(&mut self, _linear: &[i16], _found: &mut Found) {}
}
