//! Calls that are written down: which files a channel's two sides go to.

use core::time::Duration;
use std::sync::Arc;

use base::{ChannelId, Command, FormatId, Instant, MonitorSettings, MonitorSinks};

use crate::{ClipAnswer, ClipWant, Core, Level, LinkWant, Notice, Progress};

/// Most files that one channel may be written to at once.
const FILES_MAX: usize = 64;
/// Numbers of one recording: one for each of its files.
const NUMBERS: u32 = 4;

/// What goes into a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// Both sides.
    Mixed,
    /// What the channel's own party says.
    Heard,
    /// What it hears.
    Said,
}

/// One file: its path without extension, and that.
pub type FileName = (String, String);

/// What is to be written down of a channel.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct MonitorPlan {
    /// The application that asked.
    pub by: &'static str,
    /// Files, and what goes into each.
    pub files: Vec<(Side, FileName)>,
    /// Goes on after what is there.
    pub append: bool,
    /// The mixed file is removed when the recording is over.
    pub discard: bool,
    /// How often those who talk hear a beep.
    pub beep_every: Option<Duration>,
    /// The channel hears one when somebody ends the recording.
    pub beep_at_end: bool,
    /// Loudness, sides and when.
    pub settings: MonitorSettings,
    /// The program that is started when the files are complete.
    pub then: Option<LinkWant>,
}

/// A recording that has ended, and the program that waits for its files.
#[derive(Debug)]
pub(crate) struct Following {
    files: Vec<Arc<Progress>>,
    want: LinkWant,
    /// It is started then, whatever became of the files.
    at_last: Instant,
}

/// How long a program waits for its files to be complete: far longer than a disk that is not broken needs.
const COMPLETE_WITHIN: Duration = Duration::from_secs(60);

/// One recording of a channel.
#[derive(Debug, Clone)]
pub struct Monitor {
    /// Its number on the channel.
    pub number: u32,
    /// What is written.
    pub plan: MonitorPlan,
    /// How each of its files fares, and the rate of its samples.
    files: Vec<(Arc<Progress>, u32)>,
    /// When the next beep is due.
    beep_at: Option<Instant>,
}

/// The sound of a beep.
const BEEP: &str = "beep";

/// Seconds of sound in a row that a disk may be too slow for before its recording ends: longer hiccups than any that pass.
const SLOW_SECONDS_MAX: u64 = 10;

/// Something that happened to a recording.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MonitorChange {
    /// It began.
    Started,
    /// It ended: somebody ended it, or the channel is about to end.
    Stopped,
    /// It ended because this file cannot be written, for this reason.
    Failed(String, String),
    /// One side or both are written as silence, or as sound again: reads what the channel says, writes what it hears.
    Muted {
        /// What the channel says is concerned.
        read: bool,
        /// What it hears is.
        write: bool,
        /// It is silence from here on.
        silent: bool,
    },
}

impl Monitor {
    /// Its id, as dialplans and managers know it.
    pub fn id(&self) -> String {
        format!("{:#010x}", self.number)
    }
    /// Milliseconds of sound that found no room, because a disk is slow; of the file that lost most.
    pub fn lost_ms(&self) -> u64 {
        let lost = |(progress, rate): &(Arc<Progress>, u32)| progress.lost() * 1000 / u64::from(*rate).max(1);
        self.files.iter().map(lost).max().unwrap_or(0)
    }
    /// The file that cannot be written any more, and why.
    fn failure(&self) -> Option<(String, String)> {
        let names = self.plan.files.iter().map(|(_, (path, extension))| format!("{path}.{extension}"));
        names.zip(&self.files).find_map(|(name, (progress, rate))| {
            let slow = progress.lost_in_a_row() >= SLOW_SECONDS_MAX * u64::from(*rate);
            let why = progress.failure().map(str::to_owned);
            why.or_else(|| slow.then(|| "the disk is too slow".to_owned())).map(|why| (name, why))
        })
    }
    fn numbers(&self) -> impl Iterator<Item = u32> + use<> {
        let first = self.number * NUMBERS;
        first..first + self.plan.files.len() as u32
    }
}

impl Core {
    /// Begins to write a channel down; its recording's number. The error says what cannot be written.
    pub fn monitor_start(&mut self, id: ChannelId, plan: MonitorPlan) -> Result<u32, String> {
        let channel = self.get(id).ok_or("the channel is gone")?;
        let stream = channel.stream.ok_or("the channel has no media")?;
        let files: usize = channel.monitors.iter().map(|monitor| monitor.plan.files.len()).sum();
        if files + plan.files.len() > FILES_MAX || plan.files.len() > NUMBERS as usize {
            return Err(format!("a channel is written to {FILES_MAX} files at most"));
        }
        let mut takes = Vec::with_capacity(plan.files.len());
        for (side, (path, extension)) in &plan.files {
            let recorder = &mut self.services.recorder;
            let take = if plan.settings.stereo && *side == Side::Mixed {
                recorder.open_stereo(path, extension, plan.append)
            } else {
                recorder.open(path, extension, plan.append)
            };
            let take = take.map_err(|why| format!("{path}.{extension} cannot be written: {why}"))?;
            if plan.discard && *side == Side::Mixed {
                take.afterwards.discard();
            }
            takes.push((*side, take));
        }
        let beep_at = plan.beep_every.map(|every| self.now + every);
        let Some(channel) = self.get_mut(id) else { return Err("the channel is gone".to_owned()) };
        channel.last_monitor = channel.last_monitor.wrapping_add(1) & (u32::MAX / (2 * NUMBERS));
        let files = takes.iter().map(|(_, take)| (take.progress.clone(), rate_of(take, &plan))).collect();
        let monitor = Monitor { number: channel.last_monitor, plan, files, beep_at };
        let (number, settings) = (monitor.number, monitor.plan.settings);
        let (numbers, by) = (monitor.numbers(), monitor.plan.by);
        channel.monitors.push(monitor);
        for ((side, take), monitor) in takes.into_iter().zip(numbers) {
            let mut sinks = MonitorSinks::default();
            let sink = match side {
                Side::Mixed => &mut sinks.mixed,
                Side::Heard => &mut sinks.heard,
                Side::Said => &mut sinks.said,
            };
            *sink = Some(take.sink);
            let (format, sinks) = (take.format, Box::new(sinks));
            self.media(Command::Monitor { stream, monitor, format, settings, sinks });
        }
        self.monitor_notice(id, by, MonitorChange::Started);
        Ok(number)
    }
    /// Lets `sink` have what the channel says, linear at 8 kHz, until [`Core::monitor_starve`]: no recording, and not seen as
    /// one. Its number.
    pub fn monitor_feed(&mut self, id: ChannelId, sink: Box<dyn base::AudioSink>) -> Result<u32, String> {
        let stream = self.get(id).ok_or("the channel is gone")?.stream.ok_or("the channel has no media")?;
        let monitor = self.monitor_number(id).ok_or("the channel is gone")?;
        let sinks = Box::new(MonitorSinks { heard: Some(sink), ..MonitorSinks::default() });
        let settings = MonitorSettings::default();
        self.media(Command::Monitor { stream, monitor, format: FormatId::SLIN, settings, sinks });
        Ok(monitor)
    }
    /// A number for something that hears a channel and is no recording.
    pub(crate) fn monitor_number(&mut self, id: ChannelId) -> Option<u32> {
        let channel = self.get_mut(id)?;
        channel.last_monitor = channel.last_monitor.wrapping_add(1) & (u32::MAX / (2 * NUMBERS));
        Some(channel.last_monitor * NUMBERS)
    }
    /// Ends [`Core::monitor_feed`].
    pub fn monitor_starve(&mut self, id: ChannelId, monitor: u32) {
        if let Some(stream) = self.get(id).and_then(|channel| channel.stream) {
            self.media(Command::StopMonitor { stream, monitor });
        }
    }
    /// Has a program started when the files of the recordings of a channel that `which` chooses are complete.
    pub fn monitor_then(&mut self, id: ChannelId, which: impl Fn(&Monitor) -> bool, want: &LinkWant) {
        let Some(channel) = self.get_mut(id) else { return };
        for monitor in channel.monitors.iter_mut().filter(|monitor| which(monitor)) {
            monitor.plan.then = Some(want.clone());
        }
    }
    /// A recording has ended.
    fn monitor_ended(&mut self, monitor: Monitor) {
        let Some(want) = monitor.plan.then else { return };
        self.monitor_afterwards(monitor.files.into_iter().map(|(progress, _)| progress).collect(), want);
    }
    /// Has a program started when these files are complete.
    pub(crate) fn monitor_afterwards(&mut self, files: Vec<Arc<Progress>>, want: LinkWant) {
        self.following.push(Following { files, want, at_last: self.now + COMPLETE_WITHIN });
    }
    /// Starts the programs whose files are complete. Nobody talks to them.
    fn monitor_follow(&mut self) {
        let now = self.now;
        let is_due = |waiting: &mut Following| {
            waiting.at_last <= now || waiting.files.iter().all(|progress| progress.is_complete())
        };
        let due: Vec<_> = self.following.extract_if(.., is_due).collect();
        for Following { want, .. } in due {
            match self.services.links.open(want) {
                Ok(link) => self.services.links.close(link),
                Err(why) => {
                    let text = format!("the program that follows a recording was not started: {why}");
                    self.log(Level::Warning, "recordings", &text);
                }
            }
        }
    }
    /// Whether [`Core::monitor_look`] has something to look at that no running recording shows.
    pub fn monitor_waits(&self) -> bool {
        !self.following.is_empty() || self.conference_records()
    }
    /// Tells watchers what happened to a recording that this application began.
    pub fn monitor_notice(&mut self, id: ChannelId, by: &'static str, change: MonitorChange) {
        self.notice_of(id, |channel| Notice::Monitor { channel, by, change });
    }
    /// Ends the recordings whose files cannot be written any more, while the calls go on, and lets those who are recorded
    /// hear the beeps that are due. To be asked each second while there are recordings.
    pub fn monitor_look(&mut self) {
        self.monitor_beeps();
        self.monitor_follow();
        self.conference_look();
        let failed = |monitor: &Monitor| monitor.failure().map(|why| (monitor.number, why));
        let failed: Vec<_> = self
            .channels()
            .flat_map(|channel| channel.monitors.iter().filter_map(failed).map(|found| (channel.id, found)))
            .collect();
        for (id, (number, (file, why))) in failed {
            let name = self.get(id).map(|channel| channel.name.to_string()).unwrap_or_default();
            let text = format!("{name} is not recorded any more: {file}: {why}");
            self.log(Level::Warning, "recordings", &text);
            for by in self.monitor_take(id, |monitor| monitor.number == number) {
                self.monitor_notice(id, by, MonitorChange::Failed(file.clone(), why.clone()));
            }
        }
    }
    /// The beeps that are due.
    fn monitor_beeps(&mut self) {
        let now = self.now;
        let is_due = |monitor: &Monitor| monitor.beep_at.is_some_and(|at| at <= now);
        let due = self.channels().filter(|channel| channel.monitors.iter().any(is_due));
        let due: Vec<_> = due.map(|channel| channel.id).collect();
        for id in due {
            if !self.monitor_beep(id) {
                continue;
            }
            let Some(channel) = self.get_mut(id) else { continue };
            for monitor in channel.monitors.iter_mut().filter(|monitor| is_due(monitor)) {
                monitor.beep_at = monitor.plan.beep_every.map(|every| now + every);
            }
        }
    }
    /// Lets a channel, and whom it is bridged to, hear a beep beside what they hear anyway; false while the sound is being read.
    pub fn monitor_beep(&mut self, id: ChannelId) -> bool {
        let bridge = self.get(id).and_then(|channel| channel.bridge);
        let mut parties = bridge.map_or_else(Vec::new, |bridge| self.bridge_members(bridge).to_vec());
        if !parties.contains(&id) {
            parties.push(id);
        }
        let mut beeps = Vec::with_capacity(parties.len());
        for party in parties {
            let Some(channel) = self.get(party) else { continue };
            let Some(stream) = channel.stream else { continue };
            let (language, format) = (channel.language.clone(), channel.format.linear());
            let want = ClipWant { name: BEEP.to_owned(), language, format };
            match self.services.library.clip(&want) {
                ClipAnswer::Ready(clip) => beeps.push((stream, clip)),
                ClipAnswer::Loading => return false,
                ClipAnswer::Missing(_) => {}
            }
        }
        for (stream, clip) in beeps {
            self.media(Command::Whisper { stream, clip });
        }
        true
    }
    /// Gives the files of the recordings of a channel that `which` chooses other names; they are gone on with. The error says
    /// what could not be renamed; other files have their new names then.
    pub fn monitor_rename(
        &mut self,
        id: ChannelId,
        which: impl Fn(&Monitor) -> bool,
        name: impl Fn(Side) -> String,
    ) -> Result<(), String> {
        let Some(channel) = self.get_mut(id) else { return Ok(()) };
        let mut monitors = std::mem::take(&mut channel.monitors);
        let mut renamed = Ok(());
        for monitor in monitors.iter_mut().filter(|monitor| which(monitor)) {
            for (side, (path, extension)) in &mut monitor.plan.files {
                let to = name(*side);
                match self.services.recorder.rename(path, extension, &to) {
                    Ok(()) => *path = to,
                    Err(why) => renamed = Err(format!("{path}.{extension} keeps its name: {why}")),
                }
            }
        }
        if let Some(channel) = self.get_mut(id) {
            channel.monitors = monitors;
        }
        renamed
    }
    /// The channel ends, and its recordings with it.
    pub(crate) fn monitor_end(&mut self, id: ChannelId) {
        let Some(channel) = self.get_mut(id) else { return };
        for monitor in std::mem::take(&mut channel.monitors) {
            self.monitor_notice(id, monitor.plan.by, MonitorChange::Stopped);
            self.monitor_ended(monitor);
        }
    }
    /// Ends recordings of a channel that `which` chooses; how many.
    pub fn monitor_stop(&mut self, id: ChannelId, which: impl Fn(&Monitor) -> bool) -> usize {
        let ended = self.monitor_take(id, which);
        for by in &ended {
            self.monitor_notice(id, by, MonitorChange::Stopped);
        }
        ended.len()
    }
    /// Takes the recordings that `which` chooses away; which applications had begun them.
    fn monitor_take(&mut self, id: ChannelId, which: impl Fn(&Monitor) -> bool) -> Vec<&'static str> {
        let Some(channel) = self.get_mut(id) else { return Vec::new() };
        let (ended, going): (Vec<_>, Vec<_>) =
            std::mem::take(&mut channel.monitors).into_iter().partition(which);
        channel.monitors = going;
        if let Some(stream) = channel.stream {
            for monitor in ended.iter().flat_map(Monitor::numbers) {
                self.media(Command::StopMonitor { stream, monitor });
            }
        }
        let by = ended.iter().map(|monitor| monitor.plan.by).collect();
        ended.into_iter().for_each(|monitor| self.monitor_ended(monitor));
        by
    }
    /// Changes what is wanted of the recordings of a channel that `which` chooses; how many.
    pub fn monitor_adjust(
        &mut self,
        id: ChannelId,
        which: impl Fn(&Monitor) -> bool,
        change: impl Fn(&mut MonitorSettings),
    ) -> usize {
        let Some(channel) = self.get_mut(id) else { return 0 };
        let Some(stream) = channel.stream else { return 0 };
        let mut changed = Vec::new();
        let mut count = 0;
        for monitor in channel.monitors.iter_mut().filter(|monitor| which(monitor)) {
            change(&mut monitor.plan.settings);
            count += 1;
            changed.extend(monitor.numbers().map(|number| (number, monitor.plan.settings)));
        }
        for (monitor, settings) in changed {
            self.media(Command::AdjustMonitor { stream, monitor, settings });
        }
        count
    }
}

/// Samples a second that a file takes: of both channels, where it has two.
fn rate_of(take: &crate::Take, plan: &MonitorPlan) -> u32 {
    take.format.rate().0 * if plan.settings.stereo { 2 } else { 1 }
}
