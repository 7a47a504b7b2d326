//! Conferences that are written down: all that is said in one, in one file.

use std::sync::Arc;

use base::{BridgeId, Command};

use super::NotThere;
use crate::{Core, Level, LinkWant, Notice, Progress};

/// Where a conference is recorded, and how.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RecordPlan {
    /// Path without extension.
    pub path: String,
    /// Extension, which is the format.
    pub extension: String,
    /// Goes on after what is there.
    pub appends: bool,
    /// Started when the file is complete.
    pub then: Option<LinkWant>,
}

/// A recording that runs.
#[derive(Debug, Clone)]
pub(super) struct Recording {
    pub(super) file: String,
    progress: Arc<Progress>,
    then: Option<LinkWant>,
}

/// Why a conference is not recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RecordRefused {
    /// There is none of this name.
    NotThere,
    /// It is recorded already.
    Running,
    /// It is not recorded.
    NotRunning,
    /// The file cannot be written, for this reason.
    Failed(String),
}

impl From<NotThere> for RecordRefused {
    fn from(_: NotThere) -> Self {
        Self::NotThere
    }
}

impl core::fmt::Display for RecordRefused {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Self::NotThere => "there is no conference of this name",
            Self::Running => "it is recorded already",
            Self::NotRunning => "it is not recorded",
            Self::Failed(why) => why,
        })
    }
}

impl Core {
    /// Begins to record a conference; the file's name.
    pub fn conference_record(&mut self, name: &str, plan: RecordPlan) -> Result<String, RecordRefused> {
        let conference = self.conferences.by_name.get(name).ok_or(RecordRefused::NotThere)?;
        if conference.recording.is_some() {
            return Err(RecordRefused::Running);
        }
        let (room, bridge) = (conference.room, conference.bridge);
        let RecordPlan { path, extension, appends, then } = plan;
        let file = format!("{path}.{extension}");
        let take = self.services.recorder.open(&path, &extension, appends);
        let take = take.map_err(|why| RecordRefused::Failed(format!("{file} cannot be written: {why}")))?;
        let record = Command::RecordRoom { room, format: take.format, sink: take.sink };
        let is_empty = |conference: &super::Conference| conference.members.iter().all(|member| !member.is_in);
        if self.conferences.get(name).is_some_and(is_empty) {
            // The media plane has a room from its first member on.
            self.conferences.unrecorded.insert(name.to_owned(), record);
        } else {
            self.media(record);
        }
        if let Some(conference) = self.conferences.by_name.get_mut(name) {
            conference.recording = Some(Recording { file: file.clone(), progress: take.progress, then });
            conference.recorded = Some((path, extension));
        }
        self.conference_recorder_comes(name);
        self.conference_record_notice(name, bridge, true);
        Ok(file)
    }
    /// Where a conference was recorded last: path and extension.
    pub fn conference_recorded(&self, name: &str) -> Option<(String, String)> {
        self.conferences.get(name)?.recorded.clone()
    }
    /// Ends the recording of a conference; the file's name.
    pub fn conference_record_stop(&mut self, name: &str) -> Result<String, RecordRefused> {
        if self.conferences.get(name).is_none() {
            return Err(RecordRefused::NotThere);
        }
        self.conference_record_end(name).ok_or(RecordRefused::NotRunning)
    }
    pub(super) fn conference_record_end(&mut self, name: &str) -> Option<String> {
        let conference = self.conferences.by_name.get_mut(name)?;
        let Recording { file, progress, then } = conference.recording.take()?;
        let (room, bridge) = (conference.room, conference.bridge);
        // One that nobody has come to is complete with what was to write it.
        if self.conferences.unrecorded.remove(name).is_none() {
            self.media(Command::StopRecordRoom { room });
        }
        self.conference_record_notice(name, bridge, false);
        self.conference_recorder_goes(name);
        if let Some(want) = then {
            self.monitor_afterwards(vec![progress], want);
        }
        Some(file)
    }
    fn conference_record_notice(&mut self, name: &str, bridge: BridgeId, runs: bool) {
        self.conference_tell_record(name, runs);
        let conference = name.to_owned();
        self.notice(|core| {
            let bridge = core.bridge_snapshot(bridge)?;
            Some(Notice::ConferenceRecord { conference, bridge, runs })
        });
    }
    /// Ends recordings whose files cannot be written any more, while the conferences go on.
    pub(crate) fn conference_look(&mut self) {
        let failure = |recording: &Recording| Some(recording.progress.failure()?.to_owned());
        let failed: Vec<_> = self
            .conferences
            .iter()
            .filter_map(|c| Some((c.name.clone(), failure(c.recording.as_ref()?)?)))
            .collect();
        self.conference_record_again();
        for (name, why) in failed {
            if let Some(file) = self.conference_record_end(&name) {
                let text = format!("conference {name} is not recorded any more: {file}: {why}");
                self.log(Level::Warning, "recordings", &text);
            }
        }
    }
    /// A room that is mixed on another worker from here on has lost its recording, which goes on.
    fn conference_record_again(&mut self) {
        let is_lost = |recording: &Recording| {
            recording.progress.is_complete() && recording.progress.failure().is_none()
        };
        let lost = self.conferences.iter().filter(|c| c.recording.as_ref().is_some_and(is_lost));
        let lost: Vec<_> = lost.filter_map(|c| Some((c.name.clone(), c.room, c.recorded.clone()?))).collect();
        for (name, room, (path, extension)) in lost {
            let Ok(take) = self.services.recorder.open(&path, &extension, true) else { continue };
            self.media(Command::RecordRoom { room, format: take.format, sink: take.sink });
            let conference = self.conferences.by_name.get_mut(&name);
            if let Some(recording) = conference.and_then(|conference| conference.recording.as_mut()) {
                recording.progress = take.progress;
            }
        }
    }
    /// Whether a conference is being recorded.
    pub(crate) fn conference_records(&self) -> bool {
        self.conferences.iter().any(|conference| conference.recording.is_some())
    }
}
