//! What channels have beside the sound that is served: video, and further sound. It goes from one channel to the other, slot by
//! slot, and nowhere else. No story knows of it; it follows the sound into bridges and out of them.

use base::{ChannelId, Command, StreamId};

use crate::Core;

impl Core {
    /// Gives a channel its streams that are passed through, by their slots (driver). They join those of the channel that
    /// it is bridged to; what it had before and has no more is the driver's to close.
    pub fn set_passed(&mut self, id: ChannelId, passed: Vec<Option<StreamId>>) {
        let Some(channel) = self.get_mut(id).filter(|channel| channel.passed != passed) else { return };
        let before = std::mem::replace(&mut channel.passed, passed);
        let after = channel.passed.clone();
        let gone: Vec<_> = before.into_iter().flatten().filter(|of| !after.contains(&Some(*of))).collect();
        self.conference_streams(id, &gone);
        if let Some(other) = self.talks_to(id) {
            self.join_passed(id, other);
        }
    }
    /// Lets the sound of two channels go from one to the other, and what they have beside it.
    pub fn join_streams(&mut self, a: ChannelId, b: ChannelId) {
        if let (Some(one), Some(other)) = (self.stream_of(a), self.stream_of(b)) {
            self.media(Command::Join { a: one, b: other });
        }
        self.join_passed(a, b);
    }
    /// Takes a channel's sound and what it has beside it out of what they were joined to; false when it has no stream.
    pub fn part_streams(&mut self, id: ChannelId) -> bool {
        self.passed_command(id, |stream| Command::Part { stream });
        let Some(stream) = self.stream_of(id) else { return false };
        self.media(Command::Part { stream });
        true
    }
    /// Sends a command to each of a channel's streams that are passed through.
    pub fn passed_command(&mut self, id: ChannelId, command: impl Fn(StreamId) -> Command) {
        let streams = self.get(id).map(|channel| channel.passed.clone()).unwrap_or_default();
        for stream in streams.into_iter().flatten() {
            self.media(command(stream));
        }
    }
    fn stream_of(&self, id: ChannelId) -> Option<StreamId> {
        self.get(id)?.stream
    }
    fn join_passed(&mut self, a: ChannelId, b: ChannelId) {
        let of = |id| self.get(id).map(|channel| channel.passed.clone()).unwrap_or_default();
        let pairs: Vec<_> = of(a).into_iter().zip(of(b)).collect();
        for (one, other) in pairs {
            if let (Some(a), Some(b)) = (one, other) {
                self.media(Command::Join { a, b });
            }
        }
    }
}
