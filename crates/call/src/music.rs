//! Music on hold: how far a channel is in it, and keys that choose what it hears (`digit` of musiconhold.conf).

use core::time::Duration;

use base::{ChannelId, Command, Digit, Instant};

use crate::channel::ChanState;
use crate::{Core, MusicAnswer, Notice};

/// How far a channel is in a class that each hears from its beginning on (`loop_last`).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct MusicPlace {
    class: String,
    /// What it has heard of it, without what it hears of it since then.
    heard: Duration,
    since: Option<Instant>,
}

impl MusicPlace {
    /// It hears this class from here on; when it would have begun if it had heard it all along.
    fn begin(&mut self, class: &str, now: Instant) -> Instant {
        self.pause(now);
        if self.class != class {
            *self = Self { class: class.to_owned(), ..Self::default() };
        }
        self.since = Some(now);
        let heard = u64::try_from(self.heard.as_nanos()).unwrap_or(u64::MAX);
        Instant::from_nanos(now.as_nanos().saturating_sub(heard))
    }
    /// It hears no music for now.
    pub(crate) fn pause(&mut self, now: Instant) {
        self.heard += self.since.take().map_or(Duration::ZERO, |since| now - since);
    }
}

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
            let (format, waits) = (channel.format, channel.state != ChanState::Up);
            if channel.stream.is_none() || waits && self.settings.music_when_answered.contains(&class) {
                continue;
            }
            let answer = self.services.library.music(&class, format);
            if matches!(answer, MusicAnswer::Loading) {
                self.music_wanted.push((id, class));
                continue;
            }
            if self.play_music(id, &class, answer) {
                self.notice_of(id, |channel| Notice::MusicOnHoldStart { channel, class });
            }
        }
    }
    /// Plays what the library has said of a class; false when it has nothing, or nothing yet.
    pub(crate) fn play_music(&mut self, id: ChannelId, class: &str, answer: MusicAnswer) -> bool {
        let now = self.now;
        let Some(channel) = self.get_mut(id) else { return false };
        let stream = channel.stream;
        let command = match answer {
            MusicAnswer::Ready(clip, epoch) => {
                let epoch = match epoch {
                    Some(shared) => {
                        channel.music_place = MusicPlace::default();
                        shared
                    }
                    None => channel.music_place.begin(class, now),
                };
                stream.map(|stream| Command::Music { stream, clip, epoch })
            }
            MusicAnswer::Live(broadcast, format) => {
                channel.music_place = MusicPlace::default();
                stream.map(|stream| Command::Live { stream, format, source: Box::new(broadcast.listen()) })
            }
            MusicAnswer::Loading | MusicAnswer::Missing => return false,
        };
        if let Some(command) = command {
            self.media(command);
        }
        true
    }
}
