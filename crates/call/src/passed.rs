//! Video of channels: streams beside the sound, which go from one channel to the other and nowhere else. No story knows of
//! them; they follow the sound into bridges and out of them.

use base::{ChannelId, Command, StreamId};

use crate::Core;

impl Core {
    /// Gives a channel its streams of video, by their order in its description (driver). They join those of the channel that
    /// it is bridged to; what it had before and has no more is the driver's to close.
    pub fn set_video(&mut self, id: ChannelId, video: Vec<Option<StreamId>>) {
        let Some(channel) = self.get_mut(id).filter(|channel| channel.video != video) else { return };
        let before = std::mem::replace(&mut channel.video, video);
        let after = channel.video.clone();
        let gone: Vec<_> = before.into_iter().flatten().filter(|of| !after.contains(&Some(*of))).collect();
        self.conference_streams(id, &gone);
        if let Some(other) = self.talks_to(id) {
            self.join_video(id, other);
        }
    }
    /// Lets the sound of two channels go from one to the other, and their video.
    pub fn join_streams(&mut self, a: ChannelId, b: ChannelId) {
        if let (Some(one), Some(other)) = (self.stream_of(a), self.stream_of(b)) {
            self.media(Command::Join { a: one, b: other });
        }
        self.join_video(a, b);
    }
    /// Takes a channel's sound and video out of what they were joined to; false when it has no stream.
    pub fn part_streams(&mut self, id: ChannelId) -> bool {
        self.video_command(id, |stream| Command::Part { stream });
        let Some(stream) = self.stream_of(id) else { return false };
        self.media(Command::Part { stream });
        true
    }
    /// Sends a command to each of a channel's streams of video.
    pub fn video_command(&mut self, id: ChannelId, command: impl Fn(StreamId) -> Command) {
        let streams = self.get(id).map(|channel| channel.video.clone()).unwrap_or_default();
        for stream in streams.into_iter().flatten() {
            self.media(command(stream));
        }
    }
    fn stream_of(&self, id: ChannelId) -> Option<StreamId> {
        self.get(id)?.stream
    }
    fn join_video(&mut self, a: ChannelId, b: ChannelId) {
        let of = |id| self.get(id).map(|channel| channel.video.clone()).unwrap_or_default();
        let pairs: Vec<_> = of(a).into_iter().zip(of(b)).collect();
        for (one, other) in pairs {
            if let (Some(a), Some(b)) = (one, other) {
                self.media(Command::Join { a, b });
            }
        }
    }
}
