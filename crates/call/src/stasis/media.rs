//! Sounds that programs play and recordings that they make, while they last.

use core::time::Duration;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use base::{AudioSink, ChannelId, Instant};

use super::{MediaChange, Stasis, StasisError, StasisNotice};
use crate::exec::TaskId;
use crate::{Afterwards, Core, Progress};

/// Most sounds that play or wait at once: one for each channel of a large site, and more behind some.
pub const PLAYBACKS_MAX: usize = 16_384;
/// What stands in the key of a sound between an id that was taken and its number.
const AGAIN: char = '\u{1}';
/// Most recordings that run or wait at once.
pub const RECORDINGS_MAX: usize = 4096;
/// Files of recordings that are completed at once, as far as is known: beyond, who plays one may hear less of it.
const FINISHING_MAX: usize = 256;
/// Most sounds of one playback.
pub const MEDIA_MAX: usize = 64;

/// What is played to, or recorded.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Target {
    /// A channel, by its UNIQUEID.
    Channel(Rc<str>),
    /// A bridge, by its id.
    Bridge(Rc<str>),
}

impl Target {
    /// `channel:ID` or `bridge:ID`.
    pub fn uri(&self) -> String {
        match self {
            Self::Channel(id) => format!("channel:{id}"),
            Self::Bridge(id) => format!("bridge:{id}"),
        }
    }
}

/// How far a sound is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlaybackState {
    /// It waits for its turn.
    Queued,
    /// It is heard.
    Playing,
    /// It is between two sounds.
    Continuing,
    /// It rests.
    Paused,
    /// It is over.
    Done,
    /// It could not be played.
    Failed,
}

impl PlaybackState {
    /// Its word.
    pub fn name(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Playing => "playing",
            Self::Continuing => "continuing",
            Self::Paused => "paused",
            Self::Done => "done",
            Self::Failed => "failed",
        }
    }
}

/// What can be done to a sound that plays.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlaybackSteer {
    /// It begins anew.
    Restart,
    /// It rests.
    Pause,
    /// It goes on.
    Unpause,
    /// It goes back some way.
    Reverse,
    /// It goes on some way further on.
    Forward,
}

impl PlaybackSteer {
    /// Its word.
    pub fn name(self) -> &'static str {
        match self {
            Self::Restart => "restart",
            Self::Pause => "pause",
            Self::Unpause => "unpause",
            Self::Reverse => "reverse",
            Self::Forward => "forward",
        }
    }
    /// Of its word.
    pub fn parse(word: &str) -> Option<Self> {
        Some(match word {
            "restart" => Self::Restart,
            "pause" => Self::Pause,
            "unpause" => Self::Unpause,
            "reverse" => Self::Reverse,
            "forward" => Self::Forward,
            _ => return None,
        })
    }
}

/// A sound, or several one after the other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Playback {
    /// Its id, which another one may have as well.
    pub id: Rc<str>,
    /// By what it is known here: its id, where no other one had that.
    pub key: Rc<str>,
    /// Who hears it.
    pub target: Target,
    /// What is played: `sound:hello`, `number:42` and so on.
    pub media: Vec<String>,
    /// Which of them is heard.
    pub at: usize,
    /// Language; empty: that of who hears it.
    pub language: String,
    /// How far it is.
    pub state: PlaybackState,
    /// Milliseconds into the first sound where it begins.
    pub offset_ms: u64,
    /// Milliseconds that forward and reverse move by.
    pub skip_ms: u64,
    /// The story that waits for what programs want of it, of a bridge.
    pub(crate) waiter: Option<TaskId>,
    /// What a program wants of it.
    pub(crate) steer: Vec<PlaybackSteer>,
    /// A program has ended it.
    pub(crate) is_stopped: bool,
}

/// Steps that wait for one sound at most; a client hears of each before it asks for the next.
const STEER_MAX: usize = 32;

impl Playback {
    /// One that waits for its turn.
    pub fn new(id: Rc<str>, target: Target, media: Vec<String>) -> Self {
        Self {
            key: id.clone(),
            id,
            target,
            media,
            at: 0,
            language: String::new(),
            state: PlaybackState::Queued,
            offset_ms: 0,
            skip_ms: 3000,
            waiter: None,
            steer: Vec::new(),
            is_stopped: false,
        }
    }
    /// What is heard.
    pub fn media_uri(&self) -> &str {
        self.media.get(self.at).map(String::as_str).unwrap_or_default()
    }
    /// Whether a program has ended it.
    pub fn is_stopped(&self) -> bool {
        self.is_stopped
    }
    /// What is heard next.
    pub fn next_media_uri(&self) -> Option<&str> {
        self.media.get(self.at + 1).map(String::as_str)
    }
}

/// What happens when a recording's file is there already.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum IfExists {
    /// It is not made.
    #[default]
    Fail,
    /// The file is replaced.
    Overwrite,
    /// It goes on after what is there.
    Append,
}

/// How far a recording is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecordingState {
    /// It waits for its turn.
    Queued,
    /// It runs.
    Recording,
    /// It rests.
    Paused,
    /// It is over.
    Done,
    /// It could not be made.
    Failed,
    /// It is over and nothing is kept.
    Canceled,
}

impl RecordingState {
    /// Its word.
    pub fn name(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Recording => "recording",
            Self::Paused => "paused",
            Self::Done => "done",
            Self::Failed => "failed",
            Self::Canceled => "canceled",
        }
    }
}

/// What becomes of a recording's file, and how it fares.
pub type TakeFile = (Arc<Afterwards>, Arc<Progress>);

/// A recording that runs or waits.
#[derive(Debug, Clone)]
pub struct LiveRecording {
    /// Its name, below the folder of recordings, without extension.
    pub name: Rc<str>,
    /// Its format, which is the extension.
    pub format: String,
    /// What is recorded.
    pub target: Target,
    /// How far it is.
    pub state: RecordingState,
    /// Why it failed.
    pub cause: String,
    /// How long it is; known when it is over.
    pub duration: Option<Duration>,
    /// How long the silence at its end is that ended it.
    pub silence: Option<Duration>,
    /// Longest recording; `None`: no limit.
    pub longest: Option<Duration>,
    /// Silence that ends it; `None`: none does.
    pub max_silence: Option<Duration>,
    /// A beep comes before it.
    pub beep: bool,
    /// Digits that end it.
    pub terminate_on: String,
    /// What happens when the file is there.
    pub if_exists: IfExists,
    /// It is written as silence.
    pub is_muted: bool,
    /// A program has ended it.
    pub(crate) is_stopped: bool,
    /// And does not want it.
    pub(crate) is_unwanted: bool,
    pub(crate) gate: Arc<AtomicU8>,
    pub(crate) file: Option<TakeFile>,
    /// When it began, and how long it has rested since.
    pub(crate) began: Option<Instant>,
    pub(crate) rested: Duration,
    pub(crate) rests_since: Option<Instant>,
    pub(crate) waiter: Option<TaskId>,
}

impl PartialEq for LiveRecording {
    /// As watchers see it.
    fn eq(&self, other: &Self) -> bool {
        (&self.name, self.state, self.duration) == (&other.name, other.state, other.duration)
    }
}

impl Eq for LiveRecording {}

impl LiveRecording {
    /// One that waits for its turn.
    pub fn new(name: Rc<str>, format: String, target: Target) -> Self {
        Self {
            name,
            format,
            target,
            state: RecordingState::Queued,
            cause: String::new(),
            duration: None,
            silence: None,
            longest: None,
            max_silence: None,
            beep: false,
            terminate_on: String::new(),
            if_exists: IfExists::Fail,
            is_muted: false,
            is_stopped: false,
            is_unwanted: false,
            gate: Arc::default(),
            file: None,
            began: None,
            rested: Duration::ZERO,
            rests_since: None,
            waiter: None,
        }
    }
    /// Lets what is recorded through, or not, as programs want it.
    pub fn gate(&self, inner: Box<dyn AudioSink>) -> Gate {
        Gate { inner, state: Arc::clone(&self.gate) }
    }
    /// How long it is at a moment.
    pub fn lasted(&self, now: Instant) -> Duration {
        let rests = self.rests_since.map_or(Duration::ZERO, |since| now.since(since));
        let all = self.began.map_or(Duration::ZERO, |began| now.since(began));
        all.saturating_sub(self.rested + rests)
    }
    /// When it is as long as it may be, if it goes on from here.
    pub fn ends_at(&self, now: Instant) -> Option<Instant> {
        let longest = self.longest.filter(|_| self.state == RecordingState::Recording)?;
        Some(now + longest.saturating_sub(self.lasted(now)))
    }
    /// Whether a program has ended it.
    pub fn is_stopped(&self) -> bool {
        self.is_stopped
    }
    /// And does not want it.
    pub fn is_unwanted(&self) -> bool {
        self.is_unwanted
    }
}

/// A recording's samples on their way to its file: they pass, are taken for silence, or are left out.
pub struct Gate {
    inner: Box<dyn AudioSink>,
    state: Arc<AtomicU8>,
}

const PASSES: u8 = 0;
const SILENT: u8 = 1;
const SHUT: u8 = 2;
/// Samples of silence that are written in one piece.
const SILENCE: [i16; 960] = [0; 960];

impl AudioSink for Gate {
    fn write(&mut self, samples: &[i16]) -> usize {
        match self.state.load(Ordering::Relaxed) {
            SHUT => samples.len(),
            SILENT => {
                let mut written = 0;
                while written < samples.len() {
                    let piece = (samples.len() - written).min(SILENCE.len());
                    let took = self.inner.write(SILENCE.get(..piece).unwrap_or_default());
                    written += took;
                    if took < piece {
                        break;
                    }
                }
                written
            }
            _ => self.inner.write(samples),
        }
    }
}

impl Stasis {
    /// A sound that plays or waits, by what it is known by here.
    pub fn playback(&self, key: &str) -> Option<&Playback> {
        self.playbacks.get(key)
    }
    /// The oldest of those of this id.
    pub fn playback_named(&self, id: &str) -> Option<&Playback> {
        let again: Rc<str> = format!("{id}{AGAIN}").into();
        let later = || self.playbacks.range(again..).map(|(_, found)| found);
        self.playbacks.get(id).or_else(|| later().next().filter(|found| *found.id == *id))
    }
    /// All sounds that play or wait.
    pub fn playbacks(&self) -> impl Iterator<Item = &Playback> {
        self.playbacks.values()
    }
    /// A recording that runs or waits.
    pub fn recording(&self, name: &str) -> Option<&LiveRecording> {
        self.recordings.get(name)
    }
    /// All recordings that run or wait.
    pub fn recordings(&self) -> impl Iterator<Item = &LiveRecording> {
        self.recordings.values()
    }
    /// What was for one is for the other from here on, both ways.
    pub(super) fn swap_targets(&mut self, one: &Target, other: &Target) {
        let targets = self.playbacks.values_mut().map(|playback| &mut playback.target);
        for target in targets.chain(self.recordings.values_mut().map(|recording| &mut recording.target)) {
            if target == one {
                target.clone_from(other);
            } else if target == other {
                target.clone_from(one);
            }
        }
    }
}

impl Core {
    /// Keeps a sound that waits for its turn, and gives it what it is known by where its id is taken.
    ///
    /// Errors: there are too many (`Internal`).
    pub fn stasis_add_playback(&mut self, mut playback: Playback) -> Result<Playback, StasisError> {
        if self.stasis.playbacks.len() >= PLAYBACKS_MAX {
            return Err(StasisError::full());
        }
        if self.stasis.playbacks.contains_key(&playback.key) {
            // Among others of its id the oldest comes first.
            let serial = self.next_serial();
            playback.key = format!("{}{AGAIN}{serial:016x}", playback.id).into();
        }
        self.stasis.playbacks.insert(playback.key.clone(), playback.clone());
        Ok(playback)
    }
    /// A sound is so far; watchers hear of its beginning and of each that follows in it.
    pub fn stasis_playback(&mut self, id: &str, at: usize, state: PlaybackState) {
        let Some(playback) = self.stasis.playbacks.get_mut(id) else { return };
        let before = playback.state;
        playback.state = state;
        let change = match (before, state) {
            // Its beginning, that of each further sound, and going on after a rest.
            (
                PlaybackState::Queued | PlaybackState::Continuing | PlaybackState::Paused,
                PlaybackState::Playing,
            ) => MediaChange::Started,
            (_, PlaybackState::Continuing) => MediaChange::Continuing,
            _ => {
                playback.at = at;
                return;
            }
        };
        // Going on to the next sound is told of the one that has ended.
        playback.at = if change == MediaChange::Continuing { at.saturating_sub(1) } else { at };
        let told = Box::new(playback.clone());
        playback.at = at;
        let playback = told;
        self.stasis_tell(|_| Some(StasisNotice::Playback { change, playback }));
    }
    /// A sound is over, well or not; it is forgotten and watchers hear of it.
    pub fn stasis_end_playback(&mut self, id: &str, state: PlaybackState) {
        let Some(mut playback) = self.stasis.playbacks.remove(id) else { return };
        playback.state = state;
        self.woken.extend(playback.waiter.take());
        let (change, playback) = (MediaChange::Finished, Box::new(playback));
        self.stasis_tell(|_| Some(StasisNotice::Playback { change, playback }));
    }
    /// Ends a sound, or steers it (`Some`): the story that plays it looks.
    pub fn stasis_steer_playback(&mut self, id: &str, steer: Option<PlaybackSteer>) {
        let Some(playback) = self.stasis.playbacks.get_mut(id) else { return };
        if let (None, PlaybackState::Queued, Target::Bridge(bridge)) =
            (steer, playback.state, &playback.target)
        {
            let bridge = bridge.clone();
            self.stasis_bridge_played(&bridge, id);
            return self.stasis_end_playback(id, PlaybackState::Done);
        }
        match steer {
            None => playback.is_stopped = true,
            Some(steer) if playback.steer.len() < STEER_MAX => playback.steer.push(steer),
            Some(_) => {}
        }
        self.woken.extend(playback.waiter);
        let target = playback.target.clone();
        self.stasis_rouse_target(&target);
    }
    /// What was wanted of a sound since this was asked last; `None`: that it ends.
    pub fn stasis_steered(&mut self, id: &str) -> Option<Vec<PlaybackSteer>> {
        let playback = self.stasis.playbacks.get_mut(id).filter(|playback| !playback.is_stopped)?;
        Some(core::mem::take(&mut playback.steer))
    }

    /// Keeps a recording that waits for its turn.
    ///
    /// Errors: one of this name is made (`Conflict`), or there are too many (`Internal`).
    pub fn stasis_add_recording(&mut self, recording: LiveRecording) -> Result<(), StasisError> {
        if self.stasis.recordings.contains_key(&recording.name) {
            return Err(StasisError::Conflict("a recording of this name is in progress".into()));
        }
        if self.stasis.recordings.len() >= RECORDINGS_MAX {
            return Err(StasisError::full());
        }
        self.stasis.recordings.insert(recording.name.clone(), recording);
        Ok(())
    }
    /// A recording runs from here on; watchers hear of it. Without a file nobody is there yet who could be recorded.
    pub fn stasis_start_recording(&mut self, name: &str, file: Option<TakeFile>) {
        let now = self.now;
        let Some(recording) = self.stasis.recordings.get_mut(name) else { return };
        recording.file = file;
        recording.began = Some(now);
        recording.state = RecordingState::Recording;
        if recording.rests_since.is_some() {
            (recording.state, recording.rests_since) = (RecordingState::Paused, Some(now));
        }
        let (change, recording) = (MediaChange::Started, Box::new(recording.clone()));
        self.stasis_tell(|_| Some(StasisNotice::Recording { change, recording }));
    }
    /// The last `ms` of a recording are not kept.
    pub fn stasis_cut_recording(&mut self, name: &str, ms: u32) {
        let recording = self.stasis.recordings.get(name);
        if let Some((afterwards, _)) = recording.and_then(|recording| recording.file.as_ref()) {
            afterwards.cut(ms);
        }
    }
    /// A recording rests, or goes on.
    pub fn stasis_pause_recording(&mut self, name: &str, rests: bool) -> Result<(), StasisError> {
        let now = self.now;
        let recording = self.stasis_running(name)?;
        match (rests, recording.rests_since) {
            (true, None) => {
                recording.rests_since = Some(now);
                if recording.state == RecordingState::Recording {
                    recording.state = RecordingState::Paused;
                }
            }
            (false, Some(since)) => {
                recording.rested += now.since(since);
                recording.rests_since = None;
                if recording.state == RecordingState::Paused {
                    recording.state = RecordingState::Recording;
                }
            }
            _ => {}
        }
        recording.settle_gate();
        self.stasis_rouse_recording(name);
        Ok(())
    }
    /// A recording is written as silence, or as sound again.
    pub fn stasis_mute_recording(&mut self, name: &str, muted: bool) -> Result<(), StasisError> {
        let recording = self.stasis_running(name)?;
        recording.is_muted = muted;
        recording.settle_gate();
        Ok(())
    }
    /// A program ends a recording, and keeps it or not: the story that makes it looks.
    pub fn stasis_stop_recording(&mut self, name: &str, keep: bool) -> Result<(), StasisError> {
        let recording = self.stasis_running(name)?;
        recording.is_stopped = true;
        recording.is_unwanted |= !keep;
        self.stasis_rouse_recording(name);
        Ok(())
    }
    /// The file of a recording that has ended has gone on to another one, in another room.
    pub fn stasis_recording_file(&mut self, name: &str, file: TakeFile) {
        if let Some(recording) = self.stasis.recordings.get_mut(name) {
            recording.file = Some(file);
        }
    }
    /// Whether the file of a recording that is over is being completed: it takes a moment.
    pub fn stasis_is_finishing(&self, name: &str) -> bool {
        self.stasis.finishing.iter().any(|(known, progress)| &**known == name && !progress.is_complete())
    }
    /// A recording is over; it is forgotten and watchers hear of it. `cut` is silence at its end that is not kept.
    pub fn stasis_end_recording(&mut self, name: &str, state: RecordingState, cause: &str, cut: Duration) {
        let now = self.now;
        let Some(mut recording) = self.stasis.recordings.remove(name) else { return };
        recording.duration = Some(recording.lasted(now).saturating_sub(cut));
        recording.silence = (!cut.is_zero()).then_some(cut);
        (recording.state, recording.cause) = (state, cause.to_owned());
        if let Some((afterwards, progress)) = recording.file.take() {
            if state == RecordingState::Canceled {
                afterwards.discard();
            }
            self.stasis
                .finishing
                .retain(|(known, progress)| known != &recording.name && !progress.is_complete());
            if self.stasis.finishing.len() < FINISHING_MAX {
                self.stasis.finishing.push((recording.name.clone(), progress));
            }
        }
        self.woken.extend(recording.waiter.take());
        let failed = state == RecordingState::Failed;
        let change = if failed { MediaChange::Failed } else { MediaChange::Finished };
        let recording = Box::new(recording);
        self.stasis_tell(|_| Some(StasisNotice::Recording { change, recording }));
    }
    /// Ends what a story that was broken off has left of the works of a channel.
    pub(super) fn stasis_sweep(&mut self, id: ChannelId) {
        if self.stasis.visits.get(&id).is_none_or(|visit| visit.inbox.works == 0) {
            return;
        }
        let Some(own) = self.get(id).map(|channel| Target::Channel(channel.uniqueid.clone())) else { return };
        let plays = self.stasis.playbacks.values().filter(|playback| playback.target == own);
        for play in plays.map(|playback| playback.key.clone()).collect::<Vec<_>>() {
            self.stasis_end_playback(&play, PlaybackState::Failed);
        }
        let recordings = self.stasis.recordings.values().filter(|recording| recording.target == own);
        for name in recordings.map(|recording| recording.name.clone()).collect::<Vec<_>>() {
            self.stasis_end_recording(&name, RecordingState::Failed, "the channel is gone", Duration::ZERO);
        }
    }
    fn stasis_running(&mut self, name: &str) -> Result<&mut LiveRecording, StasisError> {
        let found = self.stasis.recordings.get_mut(name).filter(|recording| !recording.is_stopped);
        found.ok_or_else(|| StasisError::NotFound("Recording not found".into()))
    }
    /// The story that makes a recording looks at what is wanted of it.
    fn stasis_rouse_recording(&mut self, name: &str) {
        let Some(recording) = self.stasis.recordings.get(name) else { return };
        self.woken.extend(recording.waiter);
        let target = recording.target.clone();
        self.stasis_rouse_target(&target);
    }
    fn stasis_rouse_target(&mut self, target: &Target) {
        if let Target::Channel(uniqueid) = target
            && let Ok(id) = self.stasis_channel(uniqueid)
        {
            self.stasis_rouse(id);
        }
    }
}

impl LiveRecording {
    fn settle_gate(&self) {
        let state = match (self.rests_since, self.is_muted) {
            (Some(_), _) => SHUT,
            (None, true) => SILENT,
            (None, false) => PASSES,
        };
        self.gate.store(state, Ordering::Relaxed);
    }
}
