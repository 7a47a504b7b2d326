//! What the media plane does for a channel besides carrying its sound: as long as it does any of it, the sound has to come
//! here. Read off the commands that it is given, so that no application has to say it.

use base::{BridgeId, ChannelId, Command, FormatId, Listener, Loudness, PlayId, StreamId};

use crate::Core;

/// Monitors of one stream, and who murmurs to it, that are told apart; more count until the call ends.
const MONITORS_MAX: usize = 64;

/// What is done for one channel.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Engaged {
    plays: Option<PlayId>,
    music: bool,
    echo: bool,
    mutes: bool,
    records: bool,
    seeks_tones: bool,
    seeks_silence: bool,
    /// Tones, and sound, that each listener watches for.
    watches_tone: [bool; Listener::COUNT],
    watches_sound: [bool; Listener::COUNT],
    /// What comes of it is evened out.
    holds_back: bool,
    /// It is made louder, or hears louder.
    shapes: bool,
    in_room: bool,
    monitors: Vec<u32>,
    murmurs: Vec<u32>,
}

impl Engaged {
    pub(crate) fn is_busy(&self) -> bool {
        *self != Self::default()
    }
    /// The same of what is done beside its being in a room, and its hearing music while it is held.
    pub(crate) fn is_busy_beside_room(&self) -> bool {
        *self != Self { in_room: self.in_room, music: self.music, ..Self::default() }
    }
    /// Whether it is music on hold that is played to it.
    pub(crate) const fn hears_music(&self) -> bool {
        self.music
    }
    fn take(&mut self, command: &Command) {
        match command {
            Command::Play { play, .. } => (self.plays, self.music) = (Some(*play), false),
            Command::Music { .. } | Command::Live { .. } => (self.plays, self.music) = (None, true),
            Command::StopPlay { .. } => (self.plays, self.music) = (None, false),
            Command::Echo { on, .. } => self.echo = *on,
            Command::Mute { heard, sent, .. } => self.mutes = *heard || *sent,
            Command::Record { .. } => self.records = true,
            Command::StopRecord { .. } => self.records = false,
            Command::DetectInband { on, .. } => self.seeks_tones = *on,
            Command::DetectTrunkDigits { digits, .. } => self.seeks_tones = digits.is_some(),
            Command::WatchSilence { ms, .. } => self.seeks_silence = *ms > 0,
            Command::WatchTone { listener, watch, .. } => {
                note(&mut self.watches_tone, *listener, watch.is_some())
            }
            Command::WatchSound { listener, watch, .. } => {
                note(&mut self.watches_sound, *listener, watch.is_some());
            }
            Command::HoldBack { limits, .. } => self.holds_back = limits.is_some_and(|of| of.most_ms > 0),
            Command::Shape { heard, sent, .. } => self.shapes = [*heard, *sent] != [Loudness::PLAIN; 2],
            Command::Enter { .. } => self.in_room = true,
            Command::Part { .. } => self.in_room = false,
            Command::Monitor { monitor, .. } => begin(&mut self.monitors, *monitor),
            Command::StopMonitor { monitor, .. } => self.monitors.retain(|number| number != monitor),
            Command::Murmur { murmur, .. } => begin(&mut self.murmurs, *murmur),
            Command::StopMurmur { murmur, .. } => self.murmurs.retain(|number| number != murmur),
            _ => {}
        }
    }
}

fn note(listeners: &mut [bool; Listener::COUNT], listener: Listener, watches: bool) {
    if let Some(place) = listeners.get_mut(listener as usize) {
        *place = watches;
    }
}

fn begin(numbers: &mut Vec<u32>, number: u32) {
    numbers.retain(|known| *known != number);
    if numbers.len() < MONITORS_MAX {
        numbers.push(number);
    }
}

/// The stream of a command that [`Engaged`] reads.
fn engaging(command: &Command) -> Option<StreamId> {
    match command {
        Command::Play { stream, .. }
        | Command::Music { stream, .. }
        | Command::Live { stream, .. }
        | Command::StopPlay { stream }
        | Command::Echo { stream, .. }
        | Command::Mute { stream, .. }
        | Command::Record { stream, .. }
        | Command::StopRecord { stream }
        | Command::DetectInband { stream, .. }
        | Command::DetectTrunkDigits { stream, .. }
        | Command::WatchSilence { stream, .. }
        | Command::WatchTone { stream, .. }
        | Command::WatchSound { stream, .. }
        | Command::HoldBack { stream, .. }
        | Command::Shape { stream, .. }
        | Command::Enter { stream, .. }
        | Command::Part { stream }
        | Command::Monitor { stream, .. }
        | Command::StopMonitor { stream, .. }
        | Command::Murmur { stream, .. }
        | Command::StopMurmur { stream, .. } => Some(*stream),
        _ => None,
    }
}

impl Core {
    /// Takes note of what a command begins or ends.
    pub(crate) fn note_engaged(&mut self, command: &Command) {
        if let Command::Plan { stream, plan } = command
            && let Some(id) = self.channel_of_stream(*stream)
            && let Some(channel) = self.get_mut(id).filter(|channel| !channel.call_id.is_empty())
        {
            channel.rtp_digits = Some(plan.dtmf);
        }
        if let Some(id) = engaging(command).and_then(|stream| self.channel_of_stream(stream)) {
            self.engage(id, |engaged| engaged.take(command));
            if matches!(
                command,
                Command::Monitor { .. }
                    | Command::StopMonitor { .. }
                    | Command::Murmur { .. }
                    | Command::StopMurmur { .. }
            ) {
                self.bridge_of_changed(id);
            }
            let now = self.now;
            if let Some(channel) = self.get_mut(id).filter(|channel| !channel.engaged.hears_music()) {
                channel.music_place.pause(now);
            }
        }
    }
    /// A play request has ended by itself.
    pub(crate) fn note_played(&mut self, id: ChannelId, ended: PlayId) {
        self.engage(id, |engaged| engaged.plays = engaged.plays.filter(|play| *play != ended));
    }
    fn engage(&mut self, id: ChannelId, change: impl FnOnce(&mut Engaged)) {
        let Some(channel) = self.get_mut(id) else { return };
        let before = channel.engaged.is_busy();
        change(&mut channel.engaged);
        if channel.engaged.is_busy() != before {
            self.regroup(id);
        }
    }
    /// Who talks to this channel, or what hears it there, has changed: its driver hears of it.
    pub(crate) fn regroup(&mut self, id: ChannelId) {
        if self.regrouped.last() != Some(&id) {
            self.regrouped.push(id);
        }
        self.spied_changed(id);
    }
    /// Channels of which this is true since the last time, each once or more often.
    pub fn regrouped(&self) -> &[ChannelId] {
        &self.regrouped
    }
    /// The same, for the last who looks at them.
    pub fn take_regrouped(&mut self) -> Vec<ChannelId> {
        std::mem::take(&mut self.regrouped)
    }
    /// Whether a channel's digits go to whom it is bridged to without being asked.
    pub(crate) fn keep_digits(&mut self, id: ChannelId, on: bool) {
        let Some(channel) = self.get_mut(id).filter(|channel| channel.keeps_digits != on) else { return };
        channel.keeps_digits = on;
        self.tell_kept_digits(id);
    }
    /// Tells the media plane of it.
    pub(crate) fn tell_kept_digits(&mut self, id: ChannelId) {
        if let Some((stream, on)) = self.get(id).and_then(|c| Some((c.stream?, c.keeps_digits))) {
            self.media(Command::KeepDigits { stream, on });
        }
    }
    /// Two talk in this bridge and nobody else; `listens`: their digits are waited for.
    pub(crate) fn bridge_pairs(&mut self, bridge: BridgeId, listens: bool) {
        if let Some(entry) = self.bridge_mut(bridge) {
            entry.pair = Some(listens);
        }
    }
    /// The one other channel that this one talks to, when there is exactly one.
    pub fn talks_to(&self, id: ChannelId) -> Option<ChannelId> {
        let bridge = self.get(id)?.bridge?;
        self.bridge_pair(bridge)?;
        let [a, b] = self.bridge_members(bridge) else { return None };
        Some(if *a == id { *b } else { *a })
    }
    /// The format of what the channel is sent: that of whom it talks to, whatever it is coded into on the way, or else its own.
    pub fn written_format(&self, id: ChannelId) -> Option<FormatId> {
        let other = self.talks_to(id).and_then(|other| self.get(other));
        other.or(self.get(id)).map(|channel| channel.format)
    }
    /// Whether something here hears the channel, or is heard by it, besides the other one in its bridge.
    pub fn is_overheard(&self, id: ChannelId) -> bool {
        let Some(channel) = self.get(id) else { return false };
        let awaited = channel.bridge.and_then(|bridge| self.bridge_pair(bridge));
        channel.engaged.is_busy() || awaited == Some(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_channel_is_engaged_until_the_last_thing_that_is_done_for_it_ends() {
        let stream = StreamId::new(1, 0);
        let (echo, no_echo) = (Command::Echo { stream, on: true }, Command::Echo { stream, on: false });
        let silence = |ms| Command::WatchSilence { stream, ms, threshold: 256 };
        let tones = |on| Command::DetectInband { stream, on };
        let monitor = |monitor| Command::Monitor {
            stream,
            monitor,
            format: base::FormatId::SLIN,
            settings: Default::default(),
            sinks: Box::default(),
        };
        let end = |monitor| Command::StopMonitor { stream, monitor };
        let digit = Command::SendDigit { stream, digit: base::Digit::FLASH, duration_ms: 80 };
        let mut engaged = Engaged::default();
        for (name, command, busy) in [
            ("a digit passes", digit, false),
            ("echo", echo, true),
            ("silence is watched for as well", silence(500), true),
            ("no more echo", no_echo, true),
            ("no more silence", silence(0), false),
            ("muted one way", Command::Mute { stream, heard: true, sent: false }, true),
            ("no more", Command::Mute { stream, heard: false, sent: false }, false),
            ("tones", tones(true), true),
            ("no more tones", tones(false), false),
            ("a monitor", monitor(1), true),
            ("the same again", monitor(1), true),
            ("another", monitor(2), true),
            ("the first ends", end(1), true),
            ("the other ends", end(2), false),
            ("what had ended", Command::StopPlay { stream }, false),
        ] {
            engaged.take(&command);
            assert_eq!(engaged.is_busy(), busy, "{name}");
        }
    }
}
