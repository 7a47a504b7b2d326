//! What listens to a stream besides its bridge: recording, watches for sound and silence, tone detection.

use base::{AudioSink, FormatId, Listener, SampleRate, SoundWatch, TrunkDigits};
use codec::{DtmfDetector, DtmfEdge, PulseDetector, Resampler};
use rtp::EventEdge;

use crate::ear::FRAME_SAMPLES_MAX;
use crate::monitor::Monitors;

/// Silence is judged over frames of so many milliseconds.
const JUDGED_MS: u32 = 20;
/// Edges that one frame of 60 ms can hold: the detector wants 25 ms on each side of one.
const EDGES_MAX: usize = 4;
/// Changes between sound and silence that one frame may tell; what comes besides is told with the next.
const CHANGES_MAX: usize = 4;
/// Rate at which tones are looked for.
const DETECTOR_RATE: SampleRate = SampleRate(8000);

/// The taps of one stream.
#[derive(Default)]
pub(crate) struct Taps {
    record: Option<Record>,
    silence: Option<SilenceWatch>,
    sound: [Option<Sound>; Listener::COUNT],
    pub(crate) inband: Option<Inband>,
    /// The same for digits of trunks.
    trunk: Option<Inband>,
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
    level: Level,
}

/// How loud frames of [`JUDGED_MS`] are.
#[derive(Default)]
struct Level {
    sum: u64,
    samples: u32,
}

/// Sound and silence as one listener tells them apart.
struct Sound {
    watch: SoundWatch,
    level: Level,
    /// What the last frame was, and for how long it has been so, frame after frame.
    is_loud: bool,
    run_ms: u32,
    /// What it counts as, and for how long.
    sounds: bool,
    lasted_ms: u32,
}

/// What a listener is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Change {
    pub(crate) listener: Listener,
    pub(crate) sounds: bool,
    pub(crate) before_ms: u32,
}

/// What the taps found in one frame.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) silence_ms: Option<u32>,
    pub(crate) digits: [Option<EventEdge>; EDGES_MAX],
    pub(crate) changes: [Option<Change>; CHANGES_MAX],
}

impl Taps {
    pub(crate) fn is_empty(&self) -> bool {
        let monitored = self.monitors.as_ref().is_some_and(|monitors| !monitors.is_empty());
        let watched = self.silence.is_some() || self.sound.iter().any(Option::is_some);
        self.record.is_none() && !watched && self.inband.is_none() && self.trunk.is_none() && !monitored
    }
    pub(crate) fn record(&mut self, format: FormatId, sink: Box<dyn AudioSink>) {
        self.record = Some(Record { sink, format, from: format.rate(), resampler: None });
    }
    pub(crate) fn stop_record(&mut self) {
        self.record = None;
    }
    pub(crate) fn watch_silence(&mut self, ms: u32, threshold: u16) {
        let watch = SilenceWatch { wanted_ms: ms, threshold, silent_ms: 0, level: Level::default() };
        self.silence = (ms > 0).then_some(watch);
    }
    pub(crate) fn watch_sound(&mut self, listener: Listener, watch: Option<SoundWatch>) {
        if let Some(slot) = self.sound.get_mut(listener as usize) {
            *slot = watch.map(Sound::new);
        }
    }
    pub(crate) fn detect_inband(&mut self, on: bool) {
        match (on, &self.inband) {
            (true, None) => self.inband = Some(Inband::new(Detector::Pairs(DtmfDetector::new()))),
            (true, Some(_)) => {}
            (false, _) => self.inband = None,
        }
    }
    pub(crate) fn detect_trunk_digits(&mut self, digits: Option<TrunkDigits>) {
        self.trunk = digits.map(|digits| {
            Inband::new(match digits {
                TrunkDigits::Mf => Detector::Pairs(DtmfDetector::mf()),
                TrunkDigits::Sf(hertz) => Detector::Pulses(PulseDetector::new(hertz)),
            })
        });
    }
    /// Builds the converters for audio at `rate`; called when routes are planned, never per packet.
    pub(crate) fn prepare(&mut self, rate: SampleRate) {
        if let Some(record) = &mut self.record
            && (record.from != rate || record.resampler.is_none())
        {
            record.from = rate;
            record.resampler = Resampler::new(rate, record.format.rate());
        }
        for inband in [&mut self.inband, &mut self.trunk].into_iter().flatten() {
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
        for (sound, listener) in self.sound.iter_mut().zip([Listener::Application, Listener::Watcher]) {
            if let Some(sound) = sound {
                sound.frame(linear, rate, listener, &mut found);
            }
        }
        for inband in [&mut self.inband, &mut self.trunk].into_iter().flatten() {
            inband.frame(linear, &mut found);
        }
        found
    }
}

impl Level {
    /// Takes samples; tells the mean absolute amplitude of each frame that is whole.
    fn frames(&mut self, linear: &[i16], rate: SampleRate, mut judge: impl FnMut(u64)) {
        let judged = (rate.0 * JUDGED_MS / 1000).max(1);
        for sample in linear {
            self.sum += u64::from(sample.unsigned_abs());
            self.samples += 1;
            if self.samples >= judged {
                judge(self.sum / u64::from(self.samples));
                *self = Self::default();
            }
        }
    }
}

impl SilenceWatch {
    fn frame(&mut self, linear: &[i16], rate: SampleRate) -> Option<u32> {
        let Self { wanted_ms, threshold, silent_ms, level } = self;
        let mut reached = None;
        level.frames(linear, rate, |mean| {
            *silent_ms = if mean < u64::from(*threshold) { *silent_ms + JUDGED_MS } else { 0 };
            if *silent_ms >= *wanted_ms {
                reached = Some(*silent_ms);
                *silent_ms = 0;
            }
        });
        reached
    }
}

impl Sound {
    fn new(watch: SoundWatch) -> Self {
        let SoundWatch { sounds, .. } = watch;
        Self { watch, level: Level::default(), is_loud: sounds, run_ms: 0, sounds, lasted_ms: 0 }
    }
    fn frame(&mut self, linear: &[i16], rate: SampleRate, listener: Listener, found: &mut Found) {
        let Self { watch, level, is_loud, run_ms, sounds, lasted_ms } = self;
        level.frames(linear, rate, |mean| {
            let loud = mean >= u64::from(watch.threshold);
            *run_ms = if loud == *is_loud { run_ms.saturating_add(JUDGED_MS) } else { JUDGED_MS };
            *is_loud = loud;
            *lasted_ms = lasted_ms.saturating_add(JUDGED_MS);
            let wanted_ms = if loud { watch.sound_ms } else { watch.silence_ms };
            let slot = found.changes.iter_mut().find(|slot| slot.is_none());
            if loud != *sounds
                && *run_ms >= wanted_ms
                && let Some(slot) = slot
            {
                *slot = Some(Change { listener, sounds: loud, before_ms: *lasted_ms - *run_ms });
                (*sounds, *lasted_ms) = (loud, *run_ms);
            }
        });
    }
}

/// What tones are digits.
enum Detector {
    Pairs(DtmfDetector),
    Pulses(PulseDetector),
}

impl Detector {
    fn process(&mut self, linear: &[i16], report: impl FnMut(DtmfEdge)) {
        match self {
            Self::Pairs(detector) => detector.process(linear, report),
            Self::Pulses(detector) => detector.process(linear, report),
        }
    }
}

/// Recognises tones in the audio, at 8 kHz.
pub(crate) struct Inband {
    detector: Detector,
    from: SampleRate,
    resampler: Option<Resampler>,
}

impl Inband {
    fn new(detector: Detector) -> Self {
        Self { detector, from: DETECTOR_RATE, resampler: None }
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
    fn sound_and_silence_are_told_when_they_have_lasted_with_the_length_of_what_was_before() {
        let watch =
            |sound_ms, silence_ms, sounds| SoundWatch { threshold: 256, sound_ms, silence_ms, sounds };
        for (name, watch, frames, expected) in [
            (
                "each frame",
                watch(20, 20, false),
                "..##.#",
                &[(2, true, 40), (4, false, 40), (5, true, 20)][..],
            ),
            ("a word of 60 ms", watch(60, 40, false), ".#.###.#..", &[(5, true, 60), (9, false, 100)]),
            ("what is too short is none", watch(60, 40, false), "##.##.#.", &[]),
            ("silence from the start", watch(20, 60, true), "....", &[(2, false, 0)]),
            ("sound first", watch(20, 60, true), "##...", &[(4, false, 40)]),
            ("no time at all is one frame", watch(0, 0, false), "#.", &[(0, true, 0), (1, false, 20)]),
        ] {
            for (rate, frame_ms) in [(8000, 20), (16_000, 10), (48_000, 60)] {
                let rate = SampleRate(rate);
                let linear: Vec<i16> = frames
                    .chars()
                    .flat_map(|symbol| vec![if symbol == '#' { 256 } else { 255 }; rate.0 as usize / 50])
                    .collect();
                let mut taps = Taps::default();
                taps.watch_sound(Listener::Watcher, Some(watch));
                let mut told = Vec::new();
                for (n, frame) in linear.chunks(rate.0 as usize * frame_ms / 1000).enumerate() {
                    let found = taps.frame(frame, rate);
                    told.extend(found.changes.into_iter().flatten().map(|c| (n, c.sounds, c.before_ms)));
                    assert!(found.changes.into_iter().flatten().all(|c| c.listener == Listener::Watcher));
                }
                // Frames of other lengths tell it with the one in which it happens.
                let at = |n: usize| ((n + 1) * 20).div_ceil(frame_ms) - 1;
                let expected: Vec<_> = expected.iter().map(|&(n, sounds, ms)| (at(n), sounds, ms)).collect();
                assert_eq!(told, expected, "{name}, {} Hz, frames of {frame_ms} ms", rate.0);
            }
        }
    }

    #[test]
    fn each_listener_has_a_watch_of_its_own() {
        let watch = |threshold| SoundWatch { threshold, sound_ms: 20, silence_ms: 20, sounds: false };
        let mut taps = Taps::default();
        taps.watch_sound(Listener::Application, Some(watch(1000)));
        taps.watch_sound(Listener::Watcher, Some(watch(100)));
        let mut who = |level: i16| {
            let found = taps.frame(&[level; 160], SampleRate(8000));
            found.changes.into_iter().flatten().map(|change| change.listener).collect::<Vec<_>>()
        };
        assert_eq!(who(500), [Listener::Watcher]);
        assert_eq!(who(5000), [Listener::Application]);
        assert_eq!(who(0), [Listener::Application, Listener::Watcher]);
        taps.watch_sound(Listener::Application, None);
        assert!(!taps.is_empty());
        taps.watch_sound(Listener::Watcher, None);
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
