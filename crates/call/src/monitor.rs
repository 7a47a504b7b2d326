//! Calls that are written down: which files a channel's two sides go to.

use base::{ChannelId, Command, MonitorSettings, MonitorSinks};

use crate::Core;

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
    /// Loudness, sides and when.
    pub settings: MonitorSettings,
}

/// One recording of a channel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Monitor {
    /// Its number on the channel.
    pub number: u32,
    /// What is written.
    pub plan: MonitorPlan,
}

impl Monitor {
    /// Its id, as dialplans and managers know it.
    pub fn id(&self) -> String {
        format!("{:#010x}", self.number)
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
            takes.push((*side, take.map_err(|why| format!("{path}.{extension} cannot be written: {why}"))?));
        }
        let Some(channel) = self.get_mut(id) else { return Err("the channel is gone".to_owned()) };
        channel.last_monitor = channel.last_monitor.wrapping_add(1) & (u32::MAX / (2 * NUMBERS));
        let monitor = Monitor { number: channel.last_monitor, plan };
        let (number, settings) = (monitor.number, monitor.plan.settings);
        let numbers = monitor.numbers();
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
        Ok(number)
    }
    /// Ends recordings of a channel that `which` chooses; how many.
    pub fn monitor_stop(&mut self, id: ChannelId, which: impl Fn(&Monitor) -> bool) -> usize {
        let Some(channel) = self.get_mut(id) else { return 0 };
        let (ended, going): (Vec<_>, Vec<_>) =
            std::mem::take(&mut channel.monitors).into_iter().partition(which);
        channel.monitors = going;
        let Some(stream) = channel.stream else { return 0 };
        for monitor in ended.iter().flat_map(Monitor::numbers) {
            self.media(Command::StopMonitor { stream, monitor });
        }
        ended.len()
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
