//! Keys that choose what somebody hears who hears music on hold (`digit` of musiconhold.conf).

use base::{ChannelId, Command, Digit};

use crate::channel::ChanState;
use crate::{Core, MusicAnswer, Notice};

impl Core {
    /// A key was pressed; where it chooses a class and the channel hears music, that class is played from here on.
    pub(crate) fn music_key(&mut self, id: ChannelId, digit: Digit) {
        let Some(class) = self.settings.music_keys.get(&digit.to_char()).cloned() else { return };
        if self.get(id).is_some_and(|channel| channel.engaged.hears_music()) {
            // The last key counts; so there are never more than channels.
            self.music_wanted.retain(|(of, _)| *of != id);
            self.music_wanted.push((id, class));
            self.change_music();
        }
    }
    /// Plays what was chosen and has been read by this time.
    pub(crate) fn change_music(&mut self) {
        for (id, class) in std::mem::take(&mut self.music_wanted) {
            let Some(channel) = self.get(id).filter(|channel| channel.engaged.hears_music()) else {
                continue;
            };
            let (Some(stream), format, state) = (channel.stream, channel.format, channel.state) else {
                continue;
            };
            if state != ChanState::Up && self.settings.music_when_answered.contains(&class) {
                continue;
            }
            let command = match self.services.library.music(&class, format) {
                MusicAnswer::Ready(clip, epoch) => Command::Music { stream, clip, epoch },
                MusicAnswer::Live(broadcast, format) => {
                    Command::Live { stream, format, source: Box::new(broadcast.listen()) }
                }
                MusicAnswer::Missing => continue,
                MusicAnswer::Loading => {
                    self.music_wanted.push((id, class));
                    continue;
                }
            };
            self.media(command);
            self.notice_of(id, |channel| Notice::MusicOnHoldStart { channel, class });
        }
    }
}
