//! A channel that a program records.

use core::time::Duration;
use std::rc::Rc;
use std::sync::Arc;

use base::{Command, Digit, Instant, PlayId};
use call::stasis::{IfExists, RecordingState};
use call::{Chan, Level, Progress, Stop, Take};

use super::media;
use super::stay::Stay;
use crate::listen::SILENCE_THRESHOLD;

/// How often the file is asked whether it can still be written.
const FAILURE_EVERY: Duration = Duration::from_secs(1);

/// A recording of a channel.
pub(super) struct Recording {
    name: Rc<str>,
    phase: Phase,
    /// Why it ends, and silence at its end that is not kept.
    ends: Option<(RecordingState, String, u32)>,
}

enum Phase {
    /// A beep comes first.
    Beep(PlayId),
    /// The beep is over.
    Begins,
    Runs(Arc<Progress>),
}

impl Recording {
    pub(super) fn new(name: Rc<str>) -> Self {
        Self { name, phase: Phase::Begins, ends: None }
    }
    /// Begins, with a beep where one is wanted; nothing when that cannot be.
    pub(super) async fn begin(mut self, stay: &mut Stay<'_>) -> Result<Option<Self>, Stop> {
        let chan = stay.chan;
        let beep = chan.core(|core| core.stasis.recording(&self.name).is_some_and(|found| found.beep));
        if beep && let Some(clip) = chan.clip("beep").await? {
            stay.hush();
            self.phase = Phase::Beep(chan.start_clip(clip, 0));
            return Ok(Some(self));
        }
        Ok(self.open(chan))
    }
    fn open(mut self, chan: &Chan) -> Option<Self> {
        let opened: Result<Take, String> = chan.core(|core| {
            let found = core.stasis.recording(&self.name).ok_or("it was taken back")?;
            let path = media::recording_path(core, &self.name).map_err(|why| why.to_string())?;
            let (format, append) = (found.format.clone(), found.if_exists == IfExists::Append);
            core.services.recorder.open(&path, &format, append)
        });
        let has_media = matches!(chan.stream(), Ok(Some(_)));
        let opened = opened.and_then(|take| has_media.then_some(take).ok_or("there is no media".to_owned()));
        let Take { sink, format, afterwards, progress } = match opened {
            Ok(take) => take,
            Err(why) => {
                chan.log(Level::Warning, "Stasis", &format!("recording {} is not made: {why}", self.name));
                self.ends = Some((RecordingState::Failed, why, 0));
                return self.end(chan);
            }
        };
        let Some((gate, silence)) = chan.core(|core| {
            let recording = core.stasis.recording(&self.name)?;
            Some((recording.gate(sink), recording.max_silence))
        }) else {
            return self.end(chan);
        };
        chan.media(|stream| Command::Record { stream, format, sink: Box::new(gate) });
        if let Some(silence) = silence {
            let ms = u32::try_from(silence.as_millis()).unwrap_or(u32::MAX);
            chan.media(|stream| Command::WatchSilence { stream, ms, threshold: SILENCE_THRESHOLD });
        }
        let file = (afterwards, progress.clone());
        chan.core(|core| core.stasis_start_recording(&self.name, Some(file)));
        self.phase = Phase::Runs(progress);
        Some(self)
    }
    /// It plays its beep.
    pub(super) fn sounds(&self) -> bool {
        matches!(self.phase, Phase::Beep(_))
    }
    pub(super) fn played(&mut self, play: PlayId) {
        if matches!(self.phase, Phase::Beep(beep) if beep == play) {
            self.phase = Phase::Begins;
        }
    }
    pub(super) fn silent(&mut self, ms: u32) {
        if matches!(self.phase, Phase::Runs(_)) {
            self.ends.get_or_insert((RecordingState::Done, String::new(), ms));
        }
    }
    pub(super) fn pressed(&mut self, chan: &Chan, digit: Digit) {
        let ends = chan.core(|core| {
            let found = core.stasis.recording(&self.name);
            found.is_some_and(|found| found.terminate_on.contains(digit.to_char()))
        });
        if ends && matches!(self.phase, Phase::Runs(_)) {
            self.ends.get_or_insert((RecordingState::Done, String::new(), 0));
        }
    }
    pub(super) fn deadline(&self, chan: &Chan) -> Option<Instant> {
        let Phase::Runs(_) = self.phase else { return None };
        let now = chan.now();
        let end = chan.core(|core| core.stasis.recording(&self.name)?.ends_at(now));
        Some(end.map_or(now + FAILURE_EVERY, |end| end.min(now + FAILURE_EVERY)))
    }
    /// Looks whether it ends; nothing is left then.
    pub(super) fn looked(mut self, stay: &Stay<'_>) -> Option<Self> {
        let chan = stay.chan;
        let now = chan.now();
        let wanted = chan.core(|core| {
            let found = core.stasis.recording(&self.name)?;
            let is_long = found.ends_at(now).is_some_and(|at| at <= now);
            Some((found.is_stopped(), found.is_unwanted(), is_long))
        });
        let ends = match (wanted, &self.phase) {
            (None | Some((true, true, _)), _) => Some((RecordingState::Canceled, String::new(), 0)),
            (Some((true, false, _)), _) | (Some((_, _, true)), Phase::Runs(_)) => {
                Some((RecordingState::Done, String::new(), 0))
            }
            (_, Phase::Runs(progress)) => {
                progress.failure().map(|why| (RecordingState::Failed, why.to_owned(), 0))
            }
            _ => None,
        };
        if let Some(ends) = ends {
            self.ends = Some(ends);
        }
        if self.ends.is_some() {
            return self.end(chan);
        }
        if matches!(self.phase, Phase::Begins) { self.open(chan) } else { Some(self) }
    }
    /// Its channel is gone, or goes on elsewhere: what there is is kept.
    pub(super) fn cut_short(mut self, chan: &Chan) {
        let state = match self.phase {
            Phase::Runs(_) => RecordingState::Done,
            Phase::Beep(_) | Phase::Begins => RecordingState::Failed,
        };
        self.ends.get_or_insert((state, String::new(), 0));
        self.end(chan);
    }
    fn end(self, chan: &Chan) -> Option<Self> {
        let (state, cause, cut_ms) = self.ends.unwrap_or((RecordingState::Failed, String::new(), 0));
        match self.phase {
            Phase::Beep(_) => chan.stop_sound(),
            Phase::Begins => {}
            Phase::Runs(_) => {
                if cut_ms > 0 {
                    chan.core(|core| core.stasis_cut_recording(&self.name, cut_ms));
                }
                chan.media(|stream| Command::WatchSilence { stream, ms: 0, threshold: SILENCE_THRESHOLD });
                chan.media(|stream| Command::StopRecord { stream });
            }
        }
        let cut = Duration::from_millis(u64::from(cut_ms));
        chan.core(|core| core.stasis_end_recording(&self.name, state, &cause, cut));
        None
    }
}
